"""Trim and linear models of vehicles, to design controllers with other programs."""

from wavesim_studies.linear_models.linearisation import LinearModel, Mode, linearise
from wavesim_studies.linear_models.trim import Trim, find_trim

__all__ = ["LinearModel", "Mode", "Trim", "find_trim", "linearise"]
