"""What `wavesim check` asks of the server's side: whatever `wavesim serve` would refuse is refused here."""

from __future__ import annotations

from wavesim_sdk.config import LoadedConfig
from wavesim_server.simulation import Simulation


def check(loaded: LoadedConfig) -> None:
    """Make what the engine would make of a configuration; ConfigError for the first thing that it cannot use."""
    Simulation(loaded)
