"""Frames of imaging sonars in numbered pieces: how the server cuts them, how a client puts them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from wavesim_sdk.wire.messages import PIECE_BYTES, Piece


@dataclass(frozen=True)
class WholeFrame:
    """All bytes of a frame have come. ``sensor``: number of the SENSOR event; ``data``: as docs/sonars.md says."""

    sensor: int
    number: int
    data: bytes


def split_frame(sensor: int, number: int, data: bytes) -> Iterator[Piece]:
    """The pieces of a frame, in order."""
    parts = -(-len(data) // PIECE_BYTES)
    for part in range(parts):
        yield Piece(sensor, number, part, parts, data[part * PIECE_BYTES : (part + 1) * PIECE_BYTES])


@dataclass
class _PartialFrame:
    """The frame of a sonar that is under way, and the last that was whole."""

    number: int = 0
    parts: int = 0
    pieces: dict[int, bytes] = field(default_factory=dict)
    last_complete: int = 0


class FrameAssembler:
    """Puts pieces together, in whatever order they come. Of each sonar one frame is under way; a piece of a newer one ends it."""

    def __init__(self) -> None:
        self._sonars: dict[int, _PartialFrame] = {}
        self.lost_frames = 0  #: frames of which the network lost a piece, or all

    def add(self, piece: Piece) -> WholeFrame | None:
        """The frame that this piece completes, if it does."""
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
