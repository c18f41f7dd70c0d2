"""Telegrams of ship USBL systems. A telegram has the form ``$...*``, followed by the exclusive or of its bytes, CR and
LF.

The telegrams are PSIMSSB and PSIMSNS (Kongsberg), PTSAG, PTSAX and PTSAH (iXblue), and PSONLLD (Sonardyne). Encoders
are pure functions of SI values and return the telegrams with their checksums and line ends. Sources: manuals of NAVIS
DP and Tritech MicronNav, the iXblue GAPS guide, and the parsers of QGIS PosiView.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from wavesim_devices.nmea import sentence

MAX_FRAME = 99999
ALL_HYDROPHONES = "F"  #: code that declares all four hydrophones of GAPS valid
NO_DEPTH, CALCULATED_DEPTH = 0, 1  #: codes with which GAPS indicates the source of the depth
NO_SENSOR_DEPTH = 9999.0


@dataclass(frozen=True)
class BeaconFix:
    """Position of a beacon. Offsets are from the reference point of the ship, in m; angles are in rad."""

    time: datetime
    beacon: int
    forward: float
    starboard: float
    depth: float  #: depth below the waterline in m
    north: float
    east: float
    latitude: float
    longitude: float


@dataclass(frozen=True)
class ShipState:
    """State of the ship at a given time. Angles are in rad; the speed is over ground, in m/s."""

    time: datetime
    latitude: float
    longitude: float
    speed: float
    heading: float
    roll: float
    pitch: float


def _time(time: datetime, digits: int) -> str:
    return time.strftime("%H%M%S.") + f"{time.microsecond // 10 ** (6 - digits):0{digits}d}"


def _minutes(value: float, width: int, letters: str) -> str:
    """Return an angle in degrees and minutes, followed by one of the two ``letters``: the first if the angle is
    positive or zero, the second if it is negative.
    """
    minutes = round(abs(math.degrees(value)) * 60e5)
    letter = letters[value < 0.0]
    return f"{minutes // 6_000_000:0{width}d}{minutes % 6_000_000 / 1e5:08.5f},{letter}"


def _heading(value: float) -> float:
    return round(math.degrees(value), 2) % 360.0


def psimssb(fix: BeaconFix, orientation: str) -> bytes:
    """Return PSIMSSB in Cartesian coordinates. If ``orientation`` is H, x points to starboard and y forward. If it is
    E, x points east and y north.
    """
    x, y = (fix.starboard, fix.forward) if orientation == "H" else (fix.east, fix.north)
    return sentence(
        f"PSIMSSB,{_time(fix.time, 2)},B{fix.beacon:02d},A,,C,{orientation},M,{x:.2f},{y:.2f},{fix.depth:.2f},0.0,N,,"
    )


def psimssb_lost(time: datetime, beacon: int, orientation: str) -> bytes:
    """Return PSIMSSB for a beacon that did not reply."""
    return sentence(f"PSIMSSB,{_time(time, 2)},B{beacon:02d},V,,C,{orientation},M,,,,,N,,")


def psimsns(ship: ShipState) -> bytes:
    """Return PSIMSNS: roll, pitch and heading of the ship. Its heave is unknown."""
    angles = f"{math.degrees(ship.roll):.2f},{math.degrees(ship.pitch):.2f},,{_heading(ship.heading):.2f}"
    return sentence(f"PSIMSNS,{_time(ship.time, 2)},USBL,1,1,{angles},,,0.0,,M")


def _gaps_head(name: str, frame: int, time: datetime, beacon: int) -> str:
    return f"{name},#{frame:05d},{_time(time, 3)},{time.strftime('%d,%m,%Y')},{beacon}"


def ptsag(frame: int, fix: BeaconFix) -> bytes:
    """Return PTSAG: latitude, longitude and depth of a beacon."""
    place = f"{_minutes(fix.latitude, 2, 'NS')},{_minutes(fix.longitude, 3, 'EW')}"
    depth = f"{fix.depth:.2f},{CALCULATED_DEPTH},{NO_SENSOR_DEPTH:.2f}"
    return sentence(f"{_gaps_head('PTSAG', frame, fix.time, fix.beacon)},{place},{ALL_HYDROPHONES},{depth}")


def ptsag_ship(frame: int, ship: ShipState) -> bytes:
    """Return PTSAG for the ship, which has the number 0 and no depth."""
    place = f"{_minutes(ship.latitude, 2, 'NS')},{_minutes(ship.longitude, 3, 'EW')}"
    depth = f"0.00,{NO_DEPTH},{NO_SENSOR_DEPTH:.2f}"
    return sentence(f"{_gaps_head('PTSAG', frame, ship.time, 0)},{place},{ALL_HYDROPHONES},{depth}")


def ptsax(frame: int, fix: BeaconFix) -> bytes:
    """Return PTSAX: position of a beacon relative to the ship."""
    depth = f"{fix.depth:.2f},{CALCULATED_DEPTH},{NO_SENSOR_DEPTH:.2f}"
    place = f"{fix.forward:.2f},{fix.starboard:.2f},{ALL_HYDROPHONES},{depth}"
    return sentence(f"{_gaps_head('PTSAX', frame, fix.time, fix.beacon)},{place}")


def ptsah(ship: ShipState) -> bytes:
    """Return PTSAH: heading (deg) and speed (m/s) of the ship."""
    return sentence(f"PTSAH,0,{_heading(ship.heading):.2f},{ship.speed:.2f}")


def _degrees(value: float) -> str:
    return f"{math.degrees(value):.8f}".rstrip("0").rstrip(".")


def psonlld(fix: BeaconFix) -> bytes:
    """Return PSONLLD: latitude, longitude and depth of a beacon."""
    place = f"{_degrees(fix.latitude)},{_degrees(fix.longitude)},{fix.depth:.1f}"
    return sentence(f"PSONLLD,{_time(fix.time, 3)},{fix.beacon},A,{place},,,,,,,,")


def psonlld_lost(time: datetime, beacon: int) -> bytes:
    """Return PSONLLD for a beacon that did not reply."""
    return sentence(f"PSONLLD,{_time(time, 3)},{beacon},V,,,,,,,,,,,")
