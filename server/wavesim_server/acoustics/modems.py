"""Modem types. A type determines packet length, packet loss probability and medium access.

A package provides a :class:`ModemType` object as an entry point in the group ``wavesim.modems``, and a configuration
selects it by name with ``<modem type="...">`` (docs/extending.md). The medium itself models preamble, carrier, band,
half duplex and collisions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from wavesim_sdk.elementary import log
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_world.config.acoustics import Modem

GROUP = "wavesim.modems"


def _depart_at_once(modem: Modem, requested: float, busy: float, draw: float) -> float:
    return requested


@dataclass(frozen=True)
class ModemType:
    """Coding and medium access of a modem, for packets with a given number of bytes.

    All times are in s on the modem's own clock. The results must depend only on the arguments, so that a trial is
    exactly repeatable.
    """

    name: str
    #: number of bits that are transmitted after the preamble
    bits: Callable[[Modem, int], float]
    #: probability that a packet is decoded if each transmitted bit is wrong with the probability ``modem.bit_error``
    decoded: Callable[[Modem, int], float]
    #: departure time of a packet, as a function of (modem, ``requested``, ``busy``, ``draw``);
    # requested: time of the request; busy: time until which the modem receives, sends, or has packets to send, as far
    # as it knows at the request; draw: a random number for this packet, from 0 to 1
    departure: Callable[[Modem, float, float, float], float] = _depart_at_once

    def equivalent_bits(self, modem: Modem, count: int) -> float:
        """Return the number of uncoded bits that would have the same probability of loss as a packet. The medium uses
        this number when it draws at random whether the packet is lost.
        """
        if not 0.0 < modem.bit_error < 1.0:
            return self.bits(modem, count)
        return log(max(self.decoded(modem, count), 1e-300)) / log(1.0 - modem.bit_error)


@functools.cache
def modem_types() -> dict[str, ModemType]:
    """Return the modem types of all installed packages, by name. Raises ConfigError if a package provides an invalid
    type.
    """
    found: dict[str, ModemType] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        try:
            made = entry.load()
        except Exception as error:
            raise ConfigError(f"the entry point '{entry.name}' of {GROUP} cannot be loaded: {error}") from error
        if not isinstance(made, ModemType) or made.name != entry.name:
            raise ConfigError(
                f"the entry point '{entry.name}' of {GROUP} must refer to a modem type with the name '{entry.name}'"
            )
        if made.name in found:
            raise ConfigError(f"two packages provide '{entry.name}' as entry points of {GROUP}")
        found[made.name] = made
    return found


def modem_type_of(modem: Modem) -> ModemType | None:
    """Return the modem type that a configuration names. None means that packets are not coded and are transmitted
    immediately. Raises ValueError if no package provides the type.
    """
    if not modem.type:
        return None
    types = modem_types()
    if modem.type not in types:
        raise ValueError(
            f"no installed package provides the modem type '{modem.type}'{suggest_name(modem.type, types)}"
        )
    return types[modem.type]
