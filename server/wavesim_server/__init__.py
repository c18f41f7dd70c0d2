"""WaVeSim server: engine, network front, logger, models."""

from wavesim_server import cache

cache.choose()

from wavesim_server.simulation import Simulation  # noqa: E402

__all__ = ["Simulation"]
