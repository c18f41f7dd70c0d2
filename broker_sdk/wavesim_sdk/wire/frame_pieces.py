"""Frames from imaging sonars in numbered pieces: the server splits the frames and a client assembles them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from wavesim_sdk.wire.messages import PIECE_BYTES, Piece


@dataclass(frozen=True)
class WholeFrame:
    """Complete frame from an imaging sonar. ``sensor`` is the number of the sonar, as in its SENSOR event;
    docs/sonars.md defines ``data``.
    """

    sensor: int
    number: int
    data: bytes


def split_frame(sensor: int, number: int, data: bytes) -> Iterator[Piece]:
    """Return the pieces of a frame, in order."""
    parts = -(-len(data) // PIECE_BYTES)
    for part in range(parts):
        yield Piece(sensor, number, part, parts, data[part * PIECE_BYTES : (part + 1) * PIECE_BYTES])


@dataclass
class _PartialFrame:
    """The incomplete frame from a sonar, and the number of its last complete frame."""

    number: int = 0
    parts: int = 0
    pieces: dict[int, bytes] = field(default_factory=dict)
    last_complete: int = 0


class FrameAssembler:
    """Assembler for frames whose pieces may arrive in any order.

    Each sonar has one incomplete frame at a time; a piece of a newer frame discards it.
    """

    def __init__(self) -> None:
        self._sonars: dict[int, _PartialFrame] = {}
        self.lost_frames = 0  #: number of frames of which at least one piece was lost in the network

    def add(self, piece: Piece) -> WholeFrame | None:
        """Add a piece and return the frame that the piece completes, or None."""
        s = self._sonars.setdefault(piece.sensor, _PartialFrame())
        if piece.number > max(s.number, s.last_complete):
            s.number, s.parts, s.pieces = piece.number, piece.parts, {}
        if piece.number != s.number or piece.number <= s.last_complete or piece.part >= s.parts:
            return None
        s.pieces[piece.part] = piece.data
        if len(s.pieces) < s.parts:
            return None
        data = b"".join(s.pieces[k] for k in range(s.parts))
        self.lost_frames += s.number - s.last_complete - 1
        s.last_complete, s.pieces = s.number, {}
        return WholeFrame(piece.sensor, piece.number, data)
