"""Long-baseline navigation with the Micro-Modem. One query is answered by up to four transponders, each with its own
frequency or code.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wavesim_devices.micromodem.sentences import INVALID_ARGUMENT, InvalidSentence, whole
from wavesim_sdk.wire.items import Reception

TOLERANCE_HZ = 400.0  #: maximum difference in Hz between the frequencies of a reply and of its transponder
REMUS_CODES = (
    1,
    2,
    3,
    4,
)  #: codes of the replies from the digital transponders A to D; the configuration must contain the same codes
#: base code of a query to digital transponders; the code is this number plus the number of the channel
REMUS_QUERY = 100
MAX_TIMEOUT_MS = 60_000


@dataclass
class NavigationQuery:
    """A query, the replies that it expects, and the travel times of the replies that have arrived."""

    frequency: float  #: frequency of the query in Hz
    timeout: float  #: time in s after the emission at which the modem reports the replies
    expected: list[tuple[float, int | None] | None]  #: frequency in Hz of each transponder, and its code if it has one
    code: int | None = None
    duration: float | None = None  #: duration of the query in s; None = the transducer's own signal duration
    sent_ns: int | None = None  #: time of the emission in ns on the node's clock
    deadline: float = 0.0  #: simulation time in s at which the modem reports the replies; valid after the emission
    times: dict[int, float] = field(default_factory=dict)  #: one-way travel times in s, by transponder

    def add(self, r: Reception, turn_around: float) -> None:
        """Accept a pulse as the reply from a transponder if it is the first pulse that matches this transponder.
        ``turn_around`` is in s.
        """
        if self.sent_ns is None:
            return
        travel = 0.5 * ((r.reception_ns - self.sent_ns) * 1e-9 - turn_around)
        if travel <= 0.0:
            return
        fitting = [
            (abs(e[0] - r.frequency), k)
            for k, e in enumerate(self.expected)
            if e is not None and abs(e[0] - r.frequency) <= TOLERANCE_HZ and e[1] in (None, r.code)
        ]
        if fitting:
            self.times.setdefault(min(fitting)[1], travel)

    def fields(self) -> list[str]:
        """Return the four fields with travel times for SNTTA. The fields of transponders that did not reply are empty."""
        return [f"{self.times[k]:.4f}" if k in self.times else "" for k in range(4)]


def narrow_band(fields: list[str]) -> NavigationQuery:
    """Return the query that a CCPNT sentence requests. Its fields are Ftx, Ttx, Trx, timeout, FA, FB, FC, FD and flag
    (in Hz and ms).
    """
    heard = [whole(fields, k, 0, 1_000_000) for k in range(4, 8)]
    whole(fields, 2, 0, 1000)
    return NavigationQuery(
        frequency=whole(fields, 0, 1000, 1_000_000),
        timeout=1e-3 * whole(fields, 3, 1, MAX_TIMEOUT_MS),
        expected=[(float(f), None) if f else None for f in heard],
        duration=1e-3 * whole(fields, 1, 1, 1000),
    )


def digital(fields: list[str], carrier: float) -> NavigationQuery:
    """Return the query that a CCPDT sentence requests. Its fields are group, channel, SF, STO, timeout and four flags."""
    wanted = [whole(fields, k, 0, 1) for k in range(5, 9)]
    whole(fields, 0, 1, 1)
    return NavigationQuery(
        frequency=carrier,
        timeout=1e-3 * whole(fields, 4, 1, MAX_TIMEOUT_MS),
        expected=[(carrier, c) if w else None for w, c in zip(wanted, REMUS_CODES, strict=True)],
        code=REMUS_QUERY + whole(fields, 1, 1, 4),
    )


def generic(fields: list[str]) -> NavigationQuery:
    """Return the query that a CCPGT sentence requests. Its fields are Ftx, nbits, code, timeout, Frx, nbits, four
    codes, bandwidths and reserved.
    """
    heard = float(whole(fields, 4, 1000, 1_000_000))
    codes = [_code(fields, k) for k in range(6, 10)]
    return NavigationQuery(
        frequency=whole(fields, 0, 1000, 1_000_000),
        timeout=1e-3 * whole(fields, 3, 1, MAX_TIMEOUT_MS),
        expected=[(heard, c) if c else None for c in codes],
        code=_code(fields, 2),
    )


def _code(fields: list[str], index: int) -> int:
    try:
        code = int(fields[index] or "0", 16)
    except (IndexError, ValueError):
        code = -1
    if not 0 <= code <= 0xFFFF:
        raise InvalidSentence(INVALID_ARGUMENT, f"Field {index + 1} is not a code of up to 16 bits")
    return code
