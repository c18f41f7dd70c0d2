"""A modem in software that speaks JANUS: messages of class 16, with the library ``wavesim_sdk.janus``.

The cargo of such a message has neither a destination nor a check sum. Here it begins with the address of the receiver and
the length of the payload, and two bytes of CRC-16 follow the payload. The station of the packet is the sender.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.arrays import Floats
from wavesim_sdk.checksums import crc16
from wavesim_sdk.janus import JanusReceiver, JanusReception, Transmission, message

RATE = 96_000  #: sampling rate, Hz
STATION_BIT = 18  #: lowest bit of the station in the application data


@dataclass(frozen=True)
class Heard:
    """A packet that was received. ``time`` is its start in s after sample 0, and ``speed`` the speed in m/s at which the
    range decreases.
    """

    time: float
    speed: float
    sender: int
    to: int
    payload: bytes


def packet(payload: bytes, *, sender: int, to: int) -> Floats:
    """Return the samples of a packet."""
    body = bytes([to, len(payload)]) + payload
    cargo = body + crc16(body, 0xFFFF).to_bytes(2, "big")
    return Transmission(*message(cargo, station=sender)).samples(RATE)


class JanusStream:
    """Receiver for a stream of samples, which may have gaps."""

    def __init__(self) -> None:
        self._receiver = JanusReceiver(RATE)
        self._start = self._next = 0  # numbers of the receiver's first sample, and of the sample after the last one

    def push(self, samples: Floats, first: int) -> list[Heard]:
        """Process samples, and return the packets that they complete. ``first`` is the number of the first sample; a gap
        before it discards an incomplete packet.
        """
        if first != self._next:
            self._receiver, self._start = JanusReceiver(RATE), first
        self._next = first + len(samples)
        found = (self._read(reception) for reception in self._receiver.push(samples))
        return [heard for heard in found if heard is not None]

    def _read(self, reception: JanusReception) -> Heard | None:
        cargo = reception.cargo or b""
        if len(cargo) < 4 or 4 + cargo[1] > len(cargo):
            return None
        body = cargo[: 2 + cargo[1]]
        if crc16(body, 0xFFFF).to_bytes(2, "big") != cargo[len(body) : len(body) + 2]:
            return None
        sender = reception.packet.data >> STATION_BIT & 255
        return Heard(self._start / RATE + reception.start, reception.speed, sender, body[0], body[2:])
