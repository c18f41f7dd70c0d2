"""WaVeSim SDK, the library for brokers, emulators and viewers.

The names below are imported from their modules on first use.
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

__version__ = "0.1.0"
__all__ = [
    "AsyncBroker",
    "Broker",
    "Estimate",
    "InvalidArgument",
    "Observer",
    "Origin",
    "UnknownName",
    "WaveSimError",
    "read_log",
]

#: for each exported name, the module that defines it and, if the names differ, its name in that module
_PLACES = {
    "AsyncBroker": ("broker",),
    "Broker": ("broker",),
    "Estimate": ("estimate",),
    "InvalidArgument": ("errors",),
    "Observer": ("observer",),
    "Origin": ("geodesy",),
    "UnknownName": ("errors",),
    "WaveSimError": ("errors",),
    "read_log": ("log", "read"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, *other = _PLACES[name]
    return getattr(import_module(f"wavesim_sdk.{module}"), other[0] if other else name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
