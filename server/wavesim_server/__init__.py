"""WaVeSim server: engine, network front, logger, models."""

from wavesim_server import cache

cache.choose()

from wavesim_server.simulation import Simulation  # noqa: E402  # after the cache folder is chosen

__all__ = ["Simulation"]
