"""What a viewer is shown of one moment, and its bytes on the websocket.

A frame is a head of 64 bytes, then ``bodies`` and ``signals`` as rows of float32 (little-endian)::

     0  u4  magic "WVF1"          28  f4  real-time factor       44  u4  version of the roster
     4  u4  state of the run      32  f4  lateness, ms           48  u4  number of bodies
     8  f8  time, s               36  f4  greatest lateness, ms  52  u4  number of signals
    16  f8  tick                  40  u4  ticks late             56  f4  water level, m
    24  f4  wanted speed                                         60  u4  1 = time jumped: draw no motion between

Frames W and B as everywhere; the page turns them into its own axes.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]
_HEAD = struct.Struct("<4sIddffffIIIIfI")
BODY = 9  #: row, position (3), attitude (4), speed over ground
SIGNAL = 9  #: number, row of the sender, origin (3), radius, level, level at the source, frequency
MOST_SIGNALS = 256


def no_signals() -> Array:
    return np.zeros((0, SIGNAL), np.float32)


@dataclass
class Frame:
    """One moment."""

    time_s: float
    tick: int
    state: int
    bodies: Array
    signals: Array = field(default_factory=no_signals)
    speed: float = 1.0
    factor: float = 0.0
    lateness_ms: float = 0.0
    lateness_max_ms: float = 0.0
    ticks_late: int = 0
    level: float = 0.0
    roster: int = 0
    jumped: bool = False

    def pack(self) -> bytes:
        signals = self.signals[-MOST_SIGNALS:]
        head = _HEAD.pack(
            b"WVF1", self.state, self.time_s, self.tick, self.speed, self.factor, self.lateness_ms,
            self.lateness_max_ms, self.ticks_late, self.roster, len(self.bodies), len(signals), self.level, self.jumped,
        )  # fmt: skip
        return b"".join((head, self.bodies.tobytes(), signals.tobytes()))


def bodies(rows: Any, p_WB_W: Any, q_WB: Any, v_WB_B: Any) -> Array:
    """The rows of a frame from columns of a table."""
    out = np.empty((len(rows), BODY), np.float32)
    out[:, 0] = rows
    out[:, 1:4] = p_WB_W
    out[:, 4:8] = q_WB
    out[:, 8] = np.sqrt(np.einsum("ij,ij->i", v_WB_B, v_WB_B))
    return out


def signals(table: Any) -> Array:
    """The rows of a frame from records that have the columns of the table ``signals``."""
    out = np.empty((len(table), SIGNAL), np.float32)
    out[:, 0] = table["id"] % (1 << 24)
    out[:, 1] = table["source"]
    out[:, 2:5] = table["origin_W"]
    for k, name in enumerate(("radius", "level", "source_level", "frequency")):
        out[:, 5 + k] = table[name]
    return out


def word(value: Any) -> str:
    """The text of a column; whoever cut it in the midst of a letter loses that letter only."""
    return bytes(value).decode("utf-8", "replace")


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinities are null, arrays are lists, bytes are text."""
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, np.void):
        return {name: plain(value[name]) for name in value.dtype.names or ()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


_SENT = ("id", "source", "query", "kind", "outcome", "frequency", "source_level")
_RECEPTION = (
    "id",
    "source",
    "receiver",
    "query",
    "kind",
    "outcome",
    "level",
    "range",
    "distance",
    "measured",
    "one_way",
)


def sent_rows(records: Any) -> list[dict[str, Any]]:
    """Signals sent, for the event list."""
    return [
        {k: plain(r[k]) for k in _SENT} | {"time": int(r["emission_ns"]) * 1e-9, "at": plain(r["origin_W"])}
        for r in records
    ]


def reception_rows(records: Any) -> list[dict[str, Any]]:
    """What became of signals, for flashes, range lines and the event list."""
    return [
        {k: plain(r[k]) for k in _RECEPTION}
        | {
            "time": int(r["arrival_ns"]) * 1e-9,
            "emission": int(r["emission_ns"]) * 1e-9,
            "at": plain(r["position_W"]),
            "bounces": int(r["surface"]) + int(r["bottom"]),
        }
        for r in records
    ]
