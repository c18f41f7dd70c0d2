"""Read configurations: :func:`load` turns a file into typed objects in SI units."""

from wavesim_sdk.config.acoustics import Acoustics, TransducerConfig
from wavesim_sdk.config.load import LoadedConfig, library, load, load_text
from wavesim_sdk.config.model import BodyConfig, Config
from wavesim_sdk.config.validation import matrix
from wavesim_sdk.config.vehicle import Model

__all__ = [
    "Acoustics",
    "BodyConfig",
    "Config",
    "LoadedConfig",
    "Model",
    "TransducerConfig",
    "library",
    "load",
    "load_text",
    "matrix",
]
