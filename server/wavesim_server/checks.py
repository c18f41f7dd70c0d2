"""The server's part of `wavesim check`, which rejects every configuration that `wavesim serve` would reject."""

from __future__ import annotations

from wavesim_server.simulation import Simulation
from wavesim_world.config import LoadedConfig


def check(loaded: LoadedConfig) -> None:
    """Build the simulation as the engine would. Raises ConfigError for the first invalid item."""
    Simulation(loaded)
