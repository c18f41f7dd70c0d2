"""Avoiders: methods of collision avoidance that decide for one vessel, once a second.

An avoider is a class, or a function that returns an object. Both are called with the length of the vessel in m and its
speed in m/s. The object has the method ``order``, or is itself a function with the parameters of ``order``. A function
with the parameters of ``order`` can itself be the avoider if it needs neither the length nor a memory. This is an
avoider as a class::

    class Mine:
        def __init__(self, length, speed): ...

        def order(self, place, velocity, wanted, targets, way):
            return None  # follow the mission; otherwise (course in rad, speed in m/s)

:class:`wavesim_sdk.guidance.avoidance.Avoider` is the reference avoider. Packages provide others by name as entry points
in the group ``wavesim.avoiders``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.guidance.targets import Target
from wavesim_sdk.named_objects import described, load_object
from wavesim_sdk.names import shorten, suggest_name

__all__ = ["AvoiderFailed", "CollisionAvoider", "NamedAvoider", "avoider_named", "make_avoider"]

GROUP = "wavesim.avoiders"
REFERENCE = "reference"  #: name of the reference avoider
Place = tuple[float, float]
_CALL = "(place, velocity, wanted, targets, way)"
AvoiderFactory = Callable[..., Any]  #: called with length and speed, or with the parameters of ``order``


class CollisionAvoider(Protocol):
    """Interface of an avoider."""

    def order(
        self,
        place: Place,
        velocity: Place,
        wanted: tuple[float, float],
        targets: Sequence[Target],
        way: Sequence[Place],
    ) -> tuple[float, float] | None:
        """Return the (course, speed) to hold during the next second, in rad and m/s over ground, or None to follow the
        mission.

        ``place`` (m) and ``velocity`` (m/s, over ground) of own ship are (north, east). ``wanted`` is the (course,
        speed) that the mission requires at this place. ``targets`` are the other vessels. ``way`` consists of the
        start of the current leg, the next waypoint and the waypoint after it (if any).
        """


class AvoiderFailed(WaveSimError):
    """Raised when an avoider raises an exception or returns an invalid order. The message names the avoider."""


class NamedAvoider:
    """Wrapper that gives an avoider a name and checks its orders."""

    def __init__(self, name: str, avoider: Any) -> None:
        self.name, self.avoider = name, avoider
        self._order: Callable[..., Any] = getattr(avoider, "order", avoider)

    def order(
        self,
        place: Place,
        velocity: Place,
        wanted: tuple[float, float],
        targets: Sequence[Target],
        way: Sequence[Place],
    ) -> tuple[float, float] | None:
        """Return the avoider's order; see :meth:`CollisionAvoider.order`. Raise AvoiderFailed if it is invalid."""
        try:
            order = self._order(place, velocity, wanted, targets, way)
        except Exception as error:  # a user's code may raise anything
            raise AvoiderFailed(f"avoider '{self.name}' failed: {described(error)}") from error
        if order is None:
            return None
        try:
            course, speed = (float(v) for v in order)
        except (TypeError, ValueError):
            course = speed = math.nan
        if not (math.isfinite(course) and math.isfinite(speed) and speed >= 0.0):
            raise AvoiderFailed(
                f"avoider '{self.name}' must return None or (course in rad, speed in m/s >= 0), got {shorten(order, 60)}"
            )
        return course, speed


def make_avoider(source: str | AvoiderFactory, length: float, speed: float) -> NamedAvoider:
    """Create the avoider for a vessel with the given length (m) and mission speed (m/s).

    ``source`` is a name (see :func:`avoider_named`), a class, or a function. Raises ConfigError if ``source`` does not
    provide an avoider.
    """
    factory: Any = avoider_named(source) if isinstance(source, str) else source
    name = source if isinstance(source, str) else getattr(source, "__name__", shorten(source))
    if not callable(factory):
        kind = "pass its class, not an instance" if hasattr(factory, "order") else f"got {shorten(factory)}"
        raise ConfigError(f"avoider '{name}' must be a class or a function: {kind}")
    if not _accepts(factory, 2):
        if isinstance(factory, type) or not _accepts(factory, 5):
            other = "" if isinstance(factory, type) else f" or {_CALL}"
            raise ConfigError(f"avoider '{name}' must accept (length, speed){other}")
        return NamedAvoider(name, factory)
    try:
        avoider = factory(length, speed)
    except Exception as error:  # a user's code may raise anything
        raise ConfigError(f"avoider '{name}' cannot be created: {described(error)}") from error
    order = getattr(avoider, "order", avoider)
    if not callable(order) or not _accepts(order, 5):
        raise ConfigError(f"avoider '{name}' needs the method order{_CALL}")
    return NamedAvoider(name, avoider)


def _accepts(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function can be called with this number of positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def avoider_named(name: str) -> AvoiderFactory:
    """Find an avoider by its name.

    ``name`` is ``reference``, the name of an installed avoider, FILE.py:OBJECT or MODULE:OBJECT. Raises ConfigError if
    the avoider does not exist or cannot be loaded.
    """
    if ":" in name:
        return load_object(name, "avoider")  # type: ignore[no-any-return]  # make_avoider checks it
    if name == REFERENCE:
        from wavesim_sdk.guidance.avoidance import Avoider

        return Avoider
    installed = {e.name: e for e in entry_points(group=GROUP)}
    if name not in installed:
        hint = suggest_name(name, [REFERENCE, *sorted(installed)])
        raise ConfigError(f"unknown avoider '{name}': use FILE.py:OBJECT, MODULE:OBJECT or an installed avoider{hint}")
    try:
        return installed[name].load()  # type: ignore[no-any-return]  # make_avoider checks it
    except Exception as error:
        raise ConfigError(f"the entry point '{name}' of {GROUP} cannot be loaded: {described(error)}") from error
