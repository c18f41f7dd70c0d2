"""Signals of Micro-Modems in the water: data frames at seven rates, and mini-packets.

A packet is a series of signals, because a signal in the medium carries at most 256 bytes. Each frame is one signal, or
two signals with half a frame each. Each signal has a header; a signal without this header comes from a modem of another
manufacturer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

MINI_S = 0.9  #: duration of an FSK mini-packet in s
BROADCAST = 127
DATA, FLEXIBLE, CYCLE, MINI, ACK = range(5)  #: kinds of content that a signal can have
_HEADER = struct.Struct(">2s9B")
_MAGIC = b"WH"
_MAX_PART = 240


@dataclass(frozen=True)
class Rate:
    """One of the modem's data rates."""

    frames: int  #: maximum number of frames in a packet
    size: int  #: size of a frame in bytes
    bit_rate: float
    preamble: float = 0.0  #: duration in s of the probe and the gap before the data

    def frame_time(self) -> float:
        """Return the duration of a frame in s. Frames that are not full have the same duration."""
        return 8.0 * self.size / self.bit_rate


#: the manufacturer publishes only the packet length of rate 6; the packet lengths of the other rates follow from their
#: bit rates, and the bit rates of rates 1 to 4 are assumed
RATES = {
    0: Rate(1, 32, 80.0),
    1: Rate(3, 64, 250.0),
    2: Rate(3, 64, 500.0),
    3: Rate(2, 256, 1200.0),
    4: Rate(2, 256, 1300.0),
    5: Rate(8, 256, 5200.0),
    6: Rate(6, 32, 8 * 6 * 32 / 2.95, 0.30),
}


@dataclass(frozen=True)
class Signal:
    """One signal of a packet. ``frame`` counts from 0 to ``frames`` - 1, ``part`` from 0 to ``parts`` - 1."""

    kind: int
    source: int
    destination: int
    rate: int = 0
    frames: int = 1
    number: int = 0  #: number of the packet, the same in all its signals
    frame: int = 0
    part: int = 0
    parts: int = 1
    ack: bool = False  #: whether the receiver must acknowledge the frame
    data: bytes = b""
    duration: float = MINI_S

    def encode(self) -> bytes:
        """Return the payload of the signal."""
        places = (self.part << 4 | self.parts, int(self.ack))
        head = (self.kind, self.source, self.destination, self.rate, self.frames, self.number, self.frame)
        return _HEADER.pack(_MAGIC, *head, *places) + self.data

    @classmethod
    def decode(cls, payload: bytes) -> Signal | None:
        """Return the signal that a payload contains, or None if it comes from a modem of another manufacturer."""
        if len(payload) < _HEADER.size or payload[:2] != _MAGIC:
            return None
        _, kind, source, destination, rate, frames, number, frame, places, ack = _HEADER.unpack_from(payload)
        if kind > ACK or rate not in RATES or not 0 <= frame < frames or not 0 <= places >> 4 < places & 15:
            return None
        content = payload[_HEADER.size :]
        return cls(
            kind, source, destination, rate, frames, number, frame, places >> 4, places & 15, bool(ack), content, 0.0
        )


def data_signals(first: Signal, frames: list[tuple[bytes, bool]]) -> list[Signal]:
    """Return the signals of a packet. Each frame is a pair: its content, and whether it must be acknowledged. ``first``
    holds the kind, the addresses, the rate and the number of the packet.
    """
    rate, found = RATES[first.rate], []
    for index, (content, ack) in enumerate(frames):
        parts = 1 if rate.size <= _MAX_PART else 2
        size = -(-rate.size // parts)
        for part in range(parts):
            lead = rate.preamble if not index and not part else 0.0
            found.append(
                Signal(
                    first.kind,
                    first.source,
                    first.destination,
                    first.rate,
                    len(frames),
                    first.number,
                    index,
                    part,
                    parts,
                    ack,
                    content[part * size : (part + 1) * size],
                    lead + rate.frame_time() / parts,
                )
            )
    return found


@dataclass
class PacketAssembler:
    """Assembler for the frames of a packet that is being received."""

    first: Signal
    frames: dict[int, bytes] = field(default_factory=dict)  #: complete frames, by their index
    acks: set[int] = field(default_factory=set)  #: complete frames that must be acknowledged
    reported: set[int] = field(default_factory=set)  #: indices of the lost frames that have been reported to the host
    _parts: list[bytes] = field(default_factory=list)
    _current: int = -1

    def matches(self, s: Signal) -> bool:
        """Return whether a signal belongs to this packet."""
        f = self.first
        return (s.kind, s.source, s.number, s.rate) == (f.kind, f.source, f.number, f.rate)

    def add(self, s: Signal) -> int | None:
        """Add a signal; return the index of the frame that it completes, or None."""
        if s.frame != self._current:
            self._current, self._parts = s.frame, []
        if len(self._parts) != s.part:
            return None  # an earlier part of this frame was lost
        self._parts.append(s.data)
        if len(self._parts) < s.parts:
            return None
        self.frames[s.frame] = b"".join(self._parts)
        if s.ack:
            self.acks.add(s.frame)
        return s.frame

    def time_left(self, s: Signal) -> float:
        """Return the time in s from the end of a signal to the end of its packet."""
        frame_time = RATES[s.rate].frame_time()
        return frame_time * (s.frames - s.frame - (s.part + 1) / s.parts)
