"""A custom modem type with a Hamming code and time slots.

Each half byte is sent as 7 bits; one wrong bit among them is corrected (Hamming 1950). Time is divided into eight slots
of half a second, by the modem's own clock. A packet is sent at the start of the modem's next free slot, which has the
number ``address`` (modulo 8).
"""

import math

from wavesim_server.acoustics.modems import ModemType
from wavesim_world.config.acoustics import Modem

SLOT, SLOTS = 0.5, 8


def bits(modem: Modem, count: int) -> float:
    return 14.0 * count


def decoded(modem: Modem, count: int) -> float:
    p = modem.bit_error
    word = (1.0 - p) ** 7 + 7.0 * p * (1.0 - p) ** 6
    return float(word ** (2 * count))


def departure(modem: Modem, requested: float, busy: float, draw: float) -> float:
    own = SLOT * (modem.address % SLOTS)
    return own + SLOT * SLOTS * math.ceil((max(requested, busy) - own) / (SLOT * SLOTS) - 1e-9)


SLOTTED = ModemType("slotted", bits, decoded, departure)
