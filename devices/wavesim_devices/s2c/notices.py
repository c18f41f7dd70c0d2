"""Notices that an S2C modem sends to its hosts. Lines end with CR LF; floats have a decimal point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavesim_sdk.algebra import matvec
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import asin, atan2
from wavesim_sdk.frames import quaternion, rotation

CLOCK_US = 2**32  #: period of the modem's clock, which counts microseconds in 32 bits
RSSI_ZERO_DB = 170.0  #: received level (dB re 1 uPa) that the modem reports as 0 dB
INTEGRITY = 60.0, 4.0  #: reported integrity at a signal-to-noise ratio of 0 dB, and its increase per dB


@dataclass(frozen=True)
class Quality:
    """Quality with which a modem has received a packet."""

    duration_us: int
    level: float
    snr: float
    velocity: float  #: closing speed in m/s

    @property
    def rssi(self) -> int:
        """Strength of the signal in dB, from an assumed sensitivity."""
        return round(self.level - RSSI_ZERO_DB)

    @property
    def integrity(self) -> int:
        """Integrity of the signal, from an assumed relation. It exceeds 100 for a good reception."""
        return min(max(round(INTEGRITY[0] + INTEGRITY[1] * self.snr), 0), 250)


def received(name: str, fields: Sequence[object], data: bytes, process: int | None) -> bytes:
    """Return a notice with data. Its first fields are the program identifier and the length of the data."""
    own = [] if process is None else [f"p{process}"]
    head = ",".join([name, *own, str(len(data)), *map(str, fields)])
    return head.encode() + b"," + data + b"\r\n"


@dataclass(frozen=True)
class UsblFix:
    """Direction and distance of another modem from a USBL head."""

    time: float  #: time of the notice in s
    measured: float  #: time of the measurement in s
    address: int
    direction_B: Floats
    attitude: tuple[float, float, float]  #: roll, pitch and heading in rad, from the compass
    accuracy: float  #: accuracy of the direction in rad

    def notices(self, distance: float, travel_us: int, quality: Quality) -> list[str]:
        """Return the USBLLONG and USBLANGLES notices. X, Y, Z are forward, starboard and down; E, N, U are east, north
        and up.
        """
        north, east, down = matvec(rotation(quaternion(*self.attitude)), self.direction_B)
        attitude = ",".join(f"{a:.4f}" for a in self.attitude)
        times = f"{self.time:.6f},{self.measured:.6f},{self.address}"
        x, y, z = self.direction_B
        place = ",".join(f"{distance * v:.4f}" for v in (x, y, z, east, north, -down))
        angles = (atan2(y, x), -asin(z), atan2(east, north), -asin(down))
        end = f"{quality.rssi},{quality.integrity}"
        return [
            f"USBLLONG,{times},{place},{attitude},{travel_us},{end},{distance * self.accuracy:.4f}",
            f"USBLANGLES,{times},{','.join(f'{float(a):.4f}' for a in angles)},{attitude},{end},{self.accuracy:.4f}",
        ]
