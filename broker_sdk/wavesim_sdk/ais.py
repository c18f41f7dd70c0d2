"""AIS (ITU-R M.1371-5): the reports from a station, with their interval and resolution."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavesim_sdk.sensors import AIS_STATIONS
from wavesim_sdk.wire.state import Value

KNOT = 1852.0 / 3600.0
CLASS_A, CLASS_B, CLASS_B_SO, AID_TO_NAVIGATION, RECEIVER = range(1, 6)  #: types of AIS station
STATION_CLASSES = {"A": CLASS_A, "B": CLASS_B, "B-SO": CLASS_B_SO, "mark": AID_TO_NAVIGATION, "receiver": RECEIVER}
ANCHORED = 1  #: navigational status "at anchor"

# resolution of the position reports
#: resolution of AIS positions in rad: 1/10 000 minute of arc, or 0.185 m of latitude
STEP_ANGLE = math.radians(1.0 / 600_000.0)
STEP_SPEED = 0.1 * KNOT
STEP_COURSE = math.radians(0.1)
STEP_HEADING = math.radians(1.0)


@dataclass(frozen=True)
class AisReport:
    """Report from an AIS station. Angles in rad, speed in m/s, rate of turn in rad/s to starboard, lengths in m; None =
    unknown.
    """

    mmsi: int
    kind: int = CLASS_A
    latitude: float | None = None
    longitude: float | None = None
    sog: float | None = None
    cog: float | None = None
    heading: float | None = None
    turn: float | None = None
    time: float = 0.0  #: time of the report in s; the AIS message contains only the second within the minute
    status: int = 0
    name: str = ""
    callsign: str = ""
    ship_type: int = 0
    length: float = 0.0
    width: float = 0.0
    destination: str = ""


def reporting_interval(kind: int, sog: float, turning: bool, status: int = 0) -> float:
    """Return the interval of position reports in s (ITU-R M.1371-5, table 1), or 0 for a receiver, which sends no
    reports.
    """
    knots = sog / KNOT
    if kind == RECEIVER:
        return 0.0
    if kind == AID_TO_NAVIGATION or (kind == CLASS_A and status == ANCHORED and knots < 3.0):
        return 180.0
    if kind == CLASS_A:
        if knots <= 14.0:
            return 10.0 / 3.0 if turning else 10.0
        return 2.0 if knots > 23.0 or turning else 6.0
    if knots <= 2.0:
        return 180.0
    if kind == CLASS_B or knots <= 14.0:
        return 30.0
    return 15.0 if knots <= 23.0 else 5.0


def quantise(value: float, step: float) -> float:
    """Round a value to the resolution of a report; halves are rounded up, so that results are the same on every
    machine.
    """
    return math.floor(value / step + 0.5) * step


def six_bit_text(text: str) -> str:
    """Return a string in the AIS character set (ASCII 32 to 95, upper case). Other characters become blanks."""
    return "".join(c if 32 <= ord(c) < 96 else " " for c in text.upper())


def packed(text: str) -> tuple[float, float, float]:
    """Pack a name of twenty characters into three integers of 42 bits (seven characters each), which a sensor value can
    store as floating-point numbers without loss.
    """
    codes = [ord(c) & 63 for c in six_bit_text(text)[:20].ljust(21, "@")]
    numbers = []
    for k in (0, 7, 14):
        total = 0
        for code in codes[k : k + 7]:
            total = total << 6 | code
        numbers.append(float(total))
    return numbers[0], numbers[1], numbers[2]


def unpacked(numbers: tuple[float, ...]) -> str:
    """Return the name that :func:`packed` encoded in three numbers."""
    text = ""
    for number in numbers:
        for shift in range(36, -1, -6):
            code = int(number) >> shift & 63
            text += chr(code + 64) if 0 < code < 32 else chr(code) if code >= 32 else ""
    return text.rstrip()


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def reports(value: Value) -> list[AisReport | None]:
    """Return the reports in a value of an `ais` sensor, in the order of its slots: own station first, None for an empty
    slot.
    """
    found: list[AisReport | None] = []
    for i in range(AIS_STATIONS):
        if not math.isfinite(value.mmsi[i]):
            found.append(None)
            continue
        kind = int(value.station[i])
        found.append(
            AisReport(
                int(value.mmsi[i]),
                kind,
                _known(value.latitude[i]),
                _known(value.longitude[i]),
                _known(value.sog[i]),
                _known(value.cog[i]),
                _known(value.heading[i]),
                _known(value.turn[i]),
                value.time_ns * 1e-9 - value.age[i],
                int(value.status[i]),
                unpacked(value.called[3 * i : 3 * i + 3]),
                "",
                int(value.kind[i]),
                value.length[i],
                value.width[i],
            )
        )
    return found
