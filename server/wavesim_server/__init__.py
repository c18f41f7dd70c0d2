"""WaVeSim server: engine, network front, logger, models."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavesim_server.lab import Lab
    from wavesim_server.simulation import Simulation

__all__ = ["Lab", "Simulation"]


def __getattr__(name: str) -> Any:
    """Import ``Simulation`` and ``Lab`` on first use: front and supervisor do not need their kernels."""
    if name == "Simulation":
        from wavesim_server.simulation import Simulation

        return Simulation
    if name == "Lab":
        from wavesim_server.lab import Lab

        return Lab
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
