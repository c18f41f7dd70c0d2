"""Types of modems: how long a packet is, how often it is lost, and when it may be sent.

A package offers an object of :class:`ModemType` by an entry point of the group ``wavesim.modems``; a configuration
names it, ``<modem type="...">`` (docs/extending.md).  Preamble, carrier, band, half duplex and collisions are the medium's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from wavesim_sdk.config.acoustics import Modem
from wavesim_sdk.elementary import log
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name

GROUP = "wavesim.modems"


def _depart_at_once(modem: Modem, asked: float, busy: float, draw: float) -> float:
    return asked


@dataclass(frozen=True)
class ModemType:
    """What a modem does to a packet of so many bytes, and its medium access.

    All times are of the modem's own clock, s. What they return must depend on their arguments alone: a trial repeats exactly.
    """

    name: str
    #: bits on the air, after the preamble
    bits: Callable[[Modem, int], float]
    #: probability that a packet is decoded when each bit on the air is wrong with probability ``modem.bit_error``
    decoded: Callable[[Modem, int], float]
    #: when a packet leaves that was asked for at ``asked``; until ``busy`` the modem hears something, sends, or has
    #: packets to send, as it knows it when it is asked; ``draw``, 0..1, is a random number of this packet
    departure: Callable[[Modem, float, float, float], float] = _depart_at_once

    def equivalent_bits(self, modem: Modem, count: int) -> float:
        """So many bits without a code would be lost as often: what the medium draws by."""
        if not 0.0 < modem.bit_error < 1.0:
            return self.bits(modem, count)
        return log(max(self.decoded(modem, count), 1e-300)) / log(1.0 - modem.bit_error)


@functools.cache
def modem_types() -> dict[str, ModemType]:
    """What all installed packages offer, by name; ConfigError names the package whose offer cannot be used."""
    found: dict[str, ModemType] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        try:
            made = entry.load()
        except Exception as error:
            raise ConfigError(f"the entry point '{entry.name}' of {GROUP} cannot be loaded: {error}") from error
        if not isinstance(made, ModemType) or made.name != entry.name:
            raise ConfigError(f"the entry point '{entry.name}' of {GROUP} is no type of modem of that name")
        if made.name in found:
            raise ConfigError(f"two packages offer '{entry.name}' by entry points of {GROUP}")
        found[made.name] = made
    return found


def modem_type_of(modem: Modem) -> ModemType | None:
    """The type that a modem names; None = no code, and packets leave at once. ValueError if nobody offers it."""
    if not modem.type:
        return None
    types = modem_types()
    if modem.type not in types:
        raise ValueError(
            f"no installed package offers the type of modem '{modem.type}'{suggest_name(modem.type, types)}"
        )
    return types[modem.type]
