"""Checksums, ASCII lines and binary frames of VectorNav sensors. Frames are built from a table of all their fields."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavesim_sdk.checksums import xor

Numbers = Mapping[str, Sequence[float]]  #: mapping from the name of each quantity to its values

#: fields of each group, starting with bit 0: name of the quantity and format; a quantity without a value is sent as
#: zeros
GROUPS: tuple[tuple[tuple[str, str], ...], ...] = (
    (  # common
        ("startup", "Q"), ("gps_ns", "Q"), ("", "Q"), ("ypr", "3f"), ("quaternion", "4f"), ("rates", "3f"),
        ("lla", "3d"), ("velocity", "3f"), ("acceleration", "3f"), ("imu", "6f"), ("magnetic_pressure", "5f"),
        ("deltas", "7f"), ("ins_status", "H"), ("", "I"), ("", "Q"),
    ),
    (  # time
        ("startup", "Q"), ("gps_ns", "Q"), ("tow_ns", "Q"), ("week", "H"), ("", "Q"), ("", "Q"), ("utc", "b5BH"),
        ("", "I"), ("", "I"), ("time_status", "B"),
    ),
    (  # IMU
        ("", "H"), ("magnetic", "3f"), ("acceleration", "3f"), ("rates", "3f"), ("temperature", "f"),
        ("pressure", "f"), ("delta_angles", "4f"), ("delta_velocities", "3f"), ("magnetic", "3f"),
        ("acceleration", "3f"), ("rates", "3f"), ("", "H"), ("", "40x"),
    ),
    (  # GPS
        ("utc", "b5BH"), ("tow_ns", "Q"), ("week", "H"), ("satellites", "B"), ("fix", "B"), ("gps_lla", "3d"),
        ("", "3d"), ("gps_velocity", "3f"), ("", "3f"), ("gps_accuracy", "3f"), ("speed_accuracy", "f"),
        ("time_accuracy", "f"), ("", "H"), ("dops", "7f"),
    ),
    (  # attitude
        ("", "H"), ("ypr", "3f"), ("quaternion", "4f"), ("matrix", "9f"), ("magnetic_ned", "3f"),
        ("acceleration_ned", "3f"), ("", "3f"), ("", "3f"), ("ypr_accuracy", "3f"), ("", "3f"), ("", "28x"),
        ("", "24x"), ("", "3f"),
    ),
    (  # INS
        ("ins_status", "H"), ("lla", "3d"), ("", "3d"), ("velocity_body", "3f"), ("velocity", "3f"), ("", "3f"),
        ("", "3f"), ("", "3f"), ("", "3f"), ("position_accuracy", "f"), ("speed_accuracy", "f"), ("", "68x"),
        ("", "64x"),
    ),
)  # fmt: skip
GROUPS += (GROUPS[3],)  #: the second receiver of a VN-300 has the same fields as the first
_COUNTS = {"Q": 1, "H": 1, "I": 1, "B": 1, "f": 1, "b5BH": 7}


def crc16(data: bytes) -> int:
    """Return the CRC-16-CCITT: polynomial 1021, initial value 0."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def line(text: str) -> bytes:
    """Return an ASCII line with its checksum."""
    data = text.encode("ascii", errors="replace")
    return b"$%s*%02X\r\n" % (data, xor(data))


def _pack(layout: str, numbers: Sequence[float]) -> bytes:
    if layout.endswith("x"):
        return bytes(int(layout[:-1]))
    count = _COUNTS.get(layout) or int(layout[:-1])
    values = [*numbers[:count], *[0.0] * (count - len(numbers))]
    if layout[-1] not in "fd":
        return struct.pack(f"<{layout}", *(int(v) for v in values))
    return struct.pack(f"<{layout}", *values)


@dataclass(frozen=True)
class BinaryOutput:
    """Settings of a binary output: the bits of its groups, the bits of the fields in each group, and the divisor of the
    base rate.
    """

    groups: int
    fields: tuple[int, ...]
    divisor: int

    def frame(self, numbers: Numbers) -> bytes:
        """Return a frame with its CRC."""
        head = bytes((self.groups,)) + b"".join(struct.pack("<H", f) for f in self.fields)
        content = bytearray(head)
        numbered = [k for k in range(8) if self.groups >> k & 1]
        for group, bits in zip(numbered, self.fields, strict=True):
            for k, (name, layout) in enumerate(GROUPS[group]):
                if bits >> k & 1:
                    content += _pack(layout, numbers.get(name, ()))
        return b"\xfa" + bytes(content) + struct.pack(">H", crc16(bytes(content)))


def is_known(groups: int, fields: Sequence[int]) -> bool:
    """Return whether all groups and fields of a binary output exist."""
    numbered = [k for k in range(8) if groups >> k & 1]
    return all(g < len(GROUPS) and 0 < f < 1 << len(GROUPS[g]) for g, f in zip(numbered, fields, strict=True))
