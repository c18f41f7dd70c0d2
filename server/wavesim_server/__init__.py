"""WaVeSim server: engine, network front end, logger and models."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavesim_server.in_process.notebook import Trial
    from wavesim_server.lab import Lab
    from wavesim_server.simulation import Simulation

__all__ = ["Lab", "Simulation", "Trial"]


def __getattr__(name: str) -> Any:
    """Import ``Simulation``, ``Lab`` and ``Trial`` on first use, because the front end and the supervisor do not need
    their kernels.
    """
    if name == "Simulation":
        from wavesim_server.simulation import Simulation

        return Simulation
    if name == "Lab":
        from wavesim_server.lab import Lab

        return Lab
    if name == "Trial":
        from wavesim_server.in_process.notebook import Trial

        return Trial
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
