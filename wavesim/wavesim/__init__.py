"""WaVeSim, a simulation server for marine vehicles and acoustic navigation: the names that a program usually needs.

Each name is imported from its own module when it is first used, so `import wavesim` itself takes almost no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavesim_sdk.broker import AsyncBroker, Broker
    from wavesim_sdk.errors import InvalidArgument, UnknownName, WaveSimError
    from wavesim_sdk.estimate import Estimate
    from wavesim_sdk.geodesy import Origin
    from wavesim_sdk.log import read as read_log
    from wavesim_sdk.observer import Observer
    from wavesim_server.in_process.notebook import Trial
    from wavesim_server.lab import Lab
    from wavesim_server.simulation import Simulation
    from wavesim_world.mixing import Mixer

__all__ = [
    "AsyncBroker",
    "Broker",
    "Estimate",
    "InvalidArgument",
    "Lab",
    "Mixer",
    "Observer",
    "Origin",
    "Simulation",
    "Trial",
    "UnknownName",
    "WaveSimError",
    "read_log",
]

#: for each exported name, the module that defines it and, if the names differ, its name in that module
_PLACES = {
    "AsyncBroker": ("wavesim_sdk.broker",),
    "Broker": ("wavesim_sdk.broker",),
    "Estimate": ("wavesim_sdk.estimate",),
    "InvalidArgument": ("wavesim_sdk.errors",),
    "Lab": ("wavesim_server.lab",),
    "Mixer": ("wavesim_world.mixing",),
    "Observer": ("wavesim_sdk.observer",),
    "Origin": ("wavesim_sdk.geodesy",),
    "Simulation": ("wavesim_server.simulation",),
    "Trial": ("wavesim_server.in_process.notebook",),
    "UnknownName": ("wavesim_sdk.errors",),
    "WaveSimError": ("wavesim_sdk.errors",),
    "read_log": ("wavesim_sdk.log", "read"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, *other = _PLACES[name]
    return getattr(import_module(module), other[0] if other else name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
