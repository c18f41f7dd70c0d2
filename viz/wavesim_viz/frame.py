"""State of the simulation at one moment for a viewer, and its encoding for the websocket.

A frame consists of a header of 64 bytes, followed by ``bodies`` and ``signals`` as rows of float32 (little-endian)::

     0  u4  magic "WVF1"          28  f4  real-time factor       44  u4  version of the roster
     4  u4  state of the run      32  f4  lateness, ms           48  u4  number of bodies
     8  f8  time, s               36  f4  maximum lateness, ms   52  u4  number of signals
    16  f8  tick                  40  u4  late ticks             56  f4  water level, m
    24  f4  requested speed                                      60  u4  number of time jumps so far

The page does not interpolate the motion between two frames if a time jump separates them.

A body's last number is its condition: 0 normal; 1 frozen, because its state diverged (NaN or infinity); 2 invalid state
(not finite, or beyond the permitted range), with NaN as position. Vectors are in the frames W and B; the page converts
them to its own axes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_viz.page_content import RosterEntry, SentSignal, SignalReception

Array = np.ndarray[Any, np.dtype[np.float32]]
_HEAD = struct.Struct("<4sIddffffIIIIfI")
BODY = 10  #: number of values per body: row, position (3), attitude (4), velocity over ground, condition
WELL, HELD, INVALID = 0, 1, 2  #: conditions of a body: normal, frozen, invalid state
FARTHEST, FASTEST = 1e7, 1e5  #: maximum distance (m) and velocity (m/s); a state beyond these limits is invalid
#: number of values per signal: number, row of the sender, origin (3), radius, level, source level, frequency
SIGNAL = 9
MOST_SIGNALS = 256
NEW_RUN = -1.0  #: time that precedes all times of a run


def no_signals() -> Array:
    return np.zeros((0, SIGNAL), np.float32)


@dataclass
class ViewerFrame:
    """State at one moment that the hub sends to the viewers."""

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
    #: number of jumps of simulation time: a source sets 1 for a jump; viewers receive the total so far, because they
    #: may miss frames
    jumped: int = 0
    #: time in s at which the simulation continues after a time change since the previous frame; None = no time change,
    #: NEW_RUN = another run
    returned_s: float | None = None
    v_WB_B: Any = None  #: velocity over ground of each body in B in m/s; it is not part of the bytes that are sent

    def pack(self) -> bytes:
        signals = self.signals[-MOST_SIGNALS:]
        head = _HEAD.pack(
            b"WVF1",
            self.state,
            self.time_s,
            self.tick,
            self.speed,
            self.factor,
            self.lateness_ms,
            self.lateness_max_ms,
            self.ticks_late,
            self.roster,
            len(self.bodies),
            len(signals),
            self.level,
            self.jumped,
        )
        return b"".join((head, self.bodies.tobytes(), signals.tobytes()))


def bodies(rows: Any, p_WB_W: Any, q_WB: Any, v_WB_B: Any, held: Any = False) -> Array:
    """Build the body rows of a frame from table columns. ``held`` is the mask of frozen bodies."""
    out = np.empty((len(rows), BODY), np.float32)
    p, q, v = (
        np.asarray(column, float).reshape(len(rows), size) for column, size in ((p_WB_W, 3), (q_WB, 4), (v_WB_B, 3))
    )
    with np.errstate(over="ignore", invalid="ignore"):
        wild = ~((np.abs(p) < FARTHEST).all(axis=1) & (np.abs(v) < FASTEST).all(axis=1) & np.isfinite(q).all(axis=1))
        if wild.any():
            p, q, v = (np.where(wild[:, None], np.nan, column) for column in (p, q, v))
    out[:, 0] = rows
    out[:, 1:4] = p
    out[:, 4:8] = q
    out[:, 8] = np.sqrt(np.einsum("ij,ij->i", v, v))
    out[:, 9] = np.where(wild, INVALID, np.where(held, HELD, WELL))
    return out


class HeldBodyDetector:
    """Detector of frozen bodies: bodies that have moved before, and whose velocity is exactly zero although time
    advances.

    Shared memory does not state which bodies are frozen, but a body that moves in water never has exactly zero
    velocity.
    """

    def __init__(self, begun: Mapping[str, Sequence[float]] | None = None) -> None:
        """``begun`` maps the names of bodies to their initial positions. A body that is not at its initial position
        counts as having moved.
        """
        self._begun, self._moved = begun or {}, set[tuple[Any, ...]]()
        self._tick, self._held = -1, np.zeros(0, bool)

    def restart(self) -> None:
        """Forget which bodies have moved, because the simulation time has changed."""
        self._moved.clear()
        self._tick = -1

    def update(self, tick: int, roster: Sequence[RosterEntry], rows: Any, p_WB_W: Any, v_WB_B: Any, w_WB_B: Any) -> Any:
        """Return one boolean per row, which states whether the body is frozen."""
        if tick == self._tick and len(self._held) == len(rows):
            return self._held
        still = ~(np.any(v_WB_B, axis=1) | np.any(w_WB_B, axis=1))
        went_on, self._tick = tick > self._tick >= 0, tick
        lives = {b[0]: (b[0], b[1], b[4]) for b in roster}
        self._moved.intersection_update(lives.values())
        self._moved.update(lives[row] for row in np.asarray(rows)[~still].tolist() if row in lives)
        self._held = np.zeros(len(rows), bool)
        for k in np.flatnonzero(still) if went_on else ():
            life = lives.get(int(rows[k]))
            begun = self._begun.get(life[1]) if life is not None else None
            self._held[k] = life in self._moved or (
                begun is not None and bool(np.any(np.abs(p_WB_W[k] - begun) > 1e-6))
            )
        return self._held


def signals(table: Any) -> Array:
    """Build the signal rows of a frame from records with the columns of the ``signals`` table."""
    out = np.empty((len(table), SIGNAL), np.float32)
    out[:, 0] = table["id"] % (1 << 24)
    out[:, 1] = table["source"]
    out[:, 2:5] = table["origin_W"]
    for k, name in enumerate(("radius", "level", "source_level", "frequency")):
        out[:, 5 + k] = table[name]
    return out


def decode_text(value: Any) -> str:
    """Decode the UTF-8 text in a column. Invalid bytes, such as an incomplete last character, become U+FFFD."""
    return bytes(value).decode("utf-8", "replace")


def to_json_value(value: Any) -> Any:
    """Convert a value for JSON: NaN and infinities become null, arrays become lists, and bytes become text."""
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, np.ndarray):
        return [to_json_value(v) for v in value.tolist()]
    if isinstance(value, np.void):
        return {name: to_json_value(value[name]) for name in value.dtype.names or ()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {k: to_json_value(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def sent_rows(records: Any) -> list[SentSignal]:
    """Build messages about sent signals for the event list."""
    return [
        {
            "id": int(r["id"]),
            "source": int(r["source"]),
            "query": int(r["query"]),
            "kind": int(r["kind"]),
            "outcome": int(r["outcome"]),
            "frequency": to_json_value(r["frequency"]),
            "source_level": to_json_value(r["source_level"]),
            "duration": to_json_value(r["duration"]),
            "code": int(r["code"]),
            "from_address": int(r["from_address"]),
            "to_address": int(r["to_address"]),
            "payload": int(r["payload_bytes"]),
            "time": int(r["emission_ns"]) * 1e-9,
            "at": to_json_value(r["origin_W"]),
        }
        for r in records
    ]


def reception_rows(records: Any) -> list[SignalReception]:
    """Build messages about the outcomes of signals, from which the page draws flashes, range lines and the event
    list.
    """
    return [
        {
            "id": int(r["id"]),
            "source": int(r["source"]),
            "receiver": int(r["receiver"]),
            "query": int(r["query"]),
            "kind": int(r["kind"]),
            "outcome": int(r["outcome"]),
            "to_address": int(r["to_address"]),
            "level": to_json_value(r["level"]),
            "noise": to_json_value(r["noise"]),
            "range": to_json_value(r["range"]),
            "distance": to_json_value(r["distance"]),
            "measured": to_json_value(r["measured"]),
            "one_way": to_json_value(r["one_way"]),
            "duration": to_json_value(r["duration"]),
            "azimuth": to_json_value(r["azimuth"]),
            "elevation": to_json_value(r["elevation"]),
            "time": int(r["arrival_ns"]) * 1e-9,
            "emission": int(r["emission_ns"]) * 1e-9,
            "at": to_json_value(r["position_W"]),
            "bounces": int(r["surface"]) + int(r["bottom"]),
        }
        for r in records
    ]
