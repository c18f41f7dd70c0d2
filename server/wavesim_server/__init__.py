"""WaVeSim server: the engine, the network front, the logger, the models."""

from wavesim_server.simulation import Simulation

__all__ = ["Simulation"]
