"""JANUS packets: 64 bits with a check sum, and the message of class 16, application type 0, with its cargo.

Sources: ANEP-87 (STANAG 4748) as published by CMRE, and the specification of class 16 on januswiki.com. The standard
itself was not available.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from wavesim_sdk.checksums import crc8
from wavesim_sdk.errors import InvalidArgument

__all__ = ["Message", "Packet", "cargo_size", "message", "reservation_time"]

VERSION = 3
REFERENCE_CLASS = 16  #: class of the reference implementation; its application type 0 is a message
MAX_MESSAGE = 480  #: bytes of the longest message
RESERVATIONS = 128  #: number of entries in the table of reservation times
_EXACT_RESERVATIONS = {60: 1.0, 84: 10.0, 103: 60.0, 127: 600.0}
#: name, bits, fields in the order of transmission, highest bit first
_FIELDS = (
    ("version", 4),
    ("mobile", 1),
    ("scheduled", 1),
    ("receives", 1),
    ("forwards", 1),
    ("class_id", 8),
    ("application", 6),
    ("block", 34),
)


@dataclass(frozen=True)
class Packet:
    """The fields of a JANUS packet.

    ``data`` has 34 bits. If ``interval`` is given, it has 26 bits, because the schedule occupies the first eight:
    ``interval`` is an index (0 to 127) into the table of reservation times or, with ``repeat``, into the table of
    repeat intervals.
    """

    class_id: int = REFERENCE_CLASS
    application: int = 0
    data: int = 0
    mobile: bool = False
    receives: bool = True  #: the tx/rx flag: the sender can also receive
    forwards: bool = False
    interval: int | None = None
    repeat: bool = False

    def __post_init__(self) -> None:
        limits = [("class_id", self.class_id, 8), ("application", self.application, 6)]
        limits.append(("data", self.data, 34 if self.interval is None else 26))
        if self.interval is not None:
            limits.append(("interval", self.interval, 7))
        elif self.repeat:
            raise InvalidArgument("repeat has no effect without an interval: set interval to 0..127")
        for name, value, bits in limits:
            if not 0 <= value < 1 << bits:
                raise InvalidArgument(
                    f"{name} does not fit into {bits} bits: expected 0..{(1 << bits) - 1}, got {value}"
                )

    def to_bytes(self) -> bytes:
        """Return the eight bytes of the packet; the last one is the check sum."""
        block = self.data
        if self.interval is not None:
            block |= int(self.repeat) << 33 | self.interval << 26
        values = {**self.__dict__, "version": VERSION, "scheduled": self.interval is not None, "block": block}
        bits = 0
        for name, size in _FIELDS:
            bits = bits << size | int(values[name])
        head = bits.to_bytes(7, "big")
        return head + bytes([crc8(head)])

    @classmethod
    def from_bytes(cls, data: bytes) -> Packet:
        """Return the fields of eight bytes. Raise InvalidArgument if the check sum or the version is wrong."""
        if len(data) != 8:
            raise InvalidArgument(f"a JANUS packet has 8 bytes, got {len(data)}")
        if crc8(data[:7]) != data[7]:
            raise InvalidArgument(f"the check sum of the JANUS packet {data.hex()} is wrong")
        bits = int.from_bytes(data[:7], "big")
        values = {}
        for name, size in reversed(_FIELDS):
            values[name], bits = bits & (1 << size) - 1, bits >> size
        if values["version"] != VERSION:
            raise InvalidArgument(f"expected JANUS version {VERSION}, got version {values['version']}")
        block, interval, repeat = values["block"], None, False
        if values["scheduled"]:
            repeat, interval, block = bool(block >> 33), block >> 26 & 127, block & (1 << 26) - 1
        return cls(
            class_id=values["class_id"],
            application=values["application"],
            data=block,
            mobile=bool(values["mobile"]),
            receives=bool(values["receives"]),
            forwards=bool(values["forwards"]),
            interval=interval,
            repeat=repeat,
        )


class Message(NamedTuple):
    """A message of class 16, application type 0: the packet, and the cargo that follows it."""

    packet: Packet
    cargo: bytes


def reservation_time(index: int) -> float:
    """Return an entry of the table of reservation times, in s."""
    if not 0 <= index < RESERVATIONS:
        raise InvalidArgument(f"expected an index of 0..{RESERVATIONS - 1}, got {index}")
    return _EXACT_RESERVATIONS.get(index) or float(3.3211e-3 * 11**index / 10**index)


def cargo_size(packet: Packet) -> int:
    """Return the number of cargo bytes that follow a packet: 0 unless it is a message of class 16, type 0."""
    if (packet.class_id, packet.application) != (REFERENCE_CLASS, 0):
        return 0
    index = packet.data & 63
    return (0, 1, 2, 4)[index] if index < 4 else 8 * (index - 3)


def message(text: bytes, station: int = 0, chip: float = 1 / 160) -> Message:
    """Return a message of class 16, application type 0, with ``text`` as its cargo.

    Cargo has 0, 1, 2, 4 or a multiple of 8 bytes; zeros fill the rest. ``station`` is the identifier of the sender (0
    to 255). A packet with cargo reserves the channel for the duration of the cargo, with chips of ``chip`` s.
    """
    if len(text) > MAX_MESSAGE:
        raise InvalidArgument(
            f"the message has {len(text)} bytes, and JANUS cargo of class 16 has at most {MAX_MESSAGE}: split the message"
        )
    if not 0 <= station <= 255:
        raise InvalidArgument(f"expected a station of 0..255, got {station}")
    size = next(s for s in (0, 1, 2, 4, *range(8, MAX_MESSAGE + 1, 8)) if s >= len(text))
    index = (0, 1, 2, 3, 3)[size] if size <= 4 else size // 8 + 3
    interval = None
    if size:
        duration = 2 * (8 * size + 8) * chip
        interval = next((i for i in range(RESERVATIONS) if reservation_time(i) >= duration), None)
        if interval is None:
            raise InvalidArgument(
                f"the cargo lasts {duration:.0f} s in this band, and a packet can reserve the channel for at most "
                f"{reservation_time(RESERVATIONS - 1):.0f} s: shorten the message"
            )
    return Message(Packet(data=station << 18 | index, interval=interval), text.ljust(size, b"\0"))
