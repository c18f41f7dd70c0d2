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
from wavesim_sdk.janus.coding import PACKET_CHIPS, chip_count
from wavesim_sdk.janus.packet import message
from wavesim_sdk.janus.waveform import ParameterSet
from wavesim_sdk.names import suggest_name
from wavesim_world.config.acoustics import Modem
from wavesim_world.modem_curves import ModemCurve, energy_gain, find_curve

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
    #: probability that a packet is decoded if each transmitted bit is wrong with the probability ``modem.bit_error``;
    #: not used if the modem has a curve
    decoded: Callable[[Modem, int], float]
    #: departure time of a packet, as a function of (modem, ``requested``, ``busy``, ``draw``);
    # requested: time of the request; busy: time until which the modem receives, sends, or has packets to send, as far
    # as it knows at the request; draw: a random number for this packet, from 0 to 1
    departure: Callable[[Modem, float, float, float], float] = _depart_at_once
    curve: str = ""  #: name of the modem curve that applies unless ``<modem curve>`` names another one
    #: returns a message if the type cannot work with the other keys of a modem, and otherwise an empty text
    check: Callable[[Modem], str] = lambda modem: ""

    def equivalent_bits(self, modem: Modem, count: int) -> float:
        """Return the number of uncoded bits that would have the same probability of loss as a packet. The medium uses
        this number when it draws at random whether the packet is lost.
        """
        if not 0.0 < modem.bit_error < 1.0:
            return self.bits(modem, count)
        return log(max(self.decoded(modem, count), 1e-300)) / log(1.0 - modem.bit_error)


def _janus_bits(modem: Modem, count: int) -> float:
    """Return the number of chips after the preamble. Cargo has the sizes of application type 0 of class 16."""
    size = len(message(bytes(count)).cargo)
    return float(PACKET_CHIPS + (chip_count(size) if size else 0))


def _janus_check(modem: Modem) -> str:
    spacing = ParameterSet(round(modem.frequency), round(modem.bandwidth)).spacing
    if modem.bit_rate != spacing:
        return f"a bandwidth of {modem.bandwidth:g} Hz has {spacing} chips per second: set `bit_rate` to {spacing}"
    return ""


#: JANUS packets of class 16, application type 0; `bit_rate` is the number of chips per second
JANUS = ModemType("janus", _janus_bits, lambda modem, count: 1.0, curve="janus", check=_janus_check)


@functools.cache
def modem_types() -> dict[str, ModemType]:
    """Return the built-in modem type and those of all installed packages, by name. Raises ConfigError if a package
    provides an invalid type.
    """
    found = {JANUS.name: JANUS}
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
            raise ConfigError(
                f"the name '{entry.name}' of an entry point of {GROUP} is already the name of another modem type"
            )
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


def curve_of(modem: Modem) -> ModemCurve | None:
    """Return the curve that decides whether a modem decodes a packet. None means that the bit error
    probability of the modem decides.
    """
    made = modem_type_of(modem)
    name = modem.curve or (made.curve if made is not None else "")
    return find_curve(name) if name else None


def lowest_snr(modem: Modem) -> float | None:
    """Return the signal-to-noise ratio (dB) below which a modem's curve detects no packet; None without a curve."""
    curve = curve_of(modem)
    return None if curve is None else float(curve.energies[0]) - energy_gain(modem.bandwidth, modem.bit_rate)


def check_modem(modem: Modem) -> None:
    """Raise ValueError if a modem's type does not exist, or cannot work with its other keys."""
    made = modem_type_of(modem)
    if made is not None and (wrong := made.check(modem)):
        raise ValueError(f"the modem type '{made.name}': {wrong}")
    if curve_of(modem) is not None and modem.bit_error:
        raise ValueError("its modem has a curve, which replaces `bit_error`: remove `bit_error`")
