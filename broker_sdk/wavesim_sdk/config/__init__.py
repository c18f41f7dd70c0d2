"""Configuration: :func:`load` a file, get typed objects in SI units."""

from wavesim_sdk.config.acoustics import Acoustics, Transducer
from wavesim_sdk.config.load import Loaded, library, load, load_text
from wavesim_sdk.config.model import Body, Config
from wavesim_sdk.config.plausible import matrix
from wavesim_sdk.config.vehicle import Model

__all__ = ["Acoustics", "Body", "Config", "Loaded", "Model", "Transducer", "library", "load", "load_text", "matrix"]
