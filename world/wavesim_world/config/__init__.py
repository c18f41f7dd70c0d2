"""Configurations: :func:`load` reads a file into typed objects in SI units."""

from wavesim_world.config.acoustics import Acoustics, TransducerConfig
from wavesim_world.config.build import library
from wavesim_world.config.load import load, load_text
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.model import BodyConfig, Config
from wavesim_world.config.validation import matrix
from wavesim_world.config.vehicle import Model
from wavesim_world.file_access import allow_files

__all__ = [
    "Acoustics",
    "BodyConfig",
    "Config",
    "LoadedConfig",
    "Model",
    "TransducerConfig",
    "allow_files",
    "library",
    "load",
    "load_text",
    "matrix",
]
