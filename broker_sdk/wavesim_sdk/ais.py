"""AIS: the reports of a station with their interval and resolution, and the sentences of a receiver.

    for line in sentences(position(report), own=False): ...     # b"!AIVDM,1,1,,A,..."

Messages according to ITU-R M.1371-5: 1 (class A), 18 (class B), 21 (aids to navigation), 5 and 24 (name, call sign, type, size).  Pure
functions of SI values; an unknown value is None and becomes the code for "not available".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from wavesim_sdk.sensors import AIS_STATIONS
from wavesim_sdk.wire.state import Value

KNOT = 1852.0 / 3600.0
CLASS_A, CLASS_B, CLASS_B_SO, AID_TO_NAVIGATION, RECEIVER = range(1, 6)  #: types of station
STATION_CLASSES = {"A": CLASS_A, "B": CLASS_B, "B-SO": CLASS_B_SO, "mark": AID_TO_NAVIGATION, "receiver": RECEIVER}
STATIC_PERIOD = 360.0  #: interval of messages 5 and 24 in s
ANCHORED = 1  #: navigational status: at anchor
MAX_PAYLOAD_CHARACTERS = 60  #: maximum number of payload characters per sentence

# resolution of the position reports
STEP_ANGLE = math.radians(1.0 / 600_000.0)  #: in rad; 1/10 000 minute of arc, or 0.185 m of latitude
STEP_SPEED = 0.1 * KNOT
STEP_COURSE = math.radians(0.1)
STEP_HEADING = math.radians(1.0)


@dataclass(frozen=True)
class AisReport:
    """Report of a station. Angles in rad, speed in m/s, turn in rad/s to starboard, lengths in m; None = unknown."""

    mmsi: int
    kind: int = CLASS_A
    latitude: float | None = None
    longitude: float | None = None
    sog: float | None = None
    cog: float | None = None
    heading: float | None = None
    turn: float | None = None
    time: float = 0.0  #: time in s; the message contains only the second within the minute
    status: int = 0
    name: str = ""
    callsign: str = ""
    ship_type: int = 0
    length: float = 0.0
    width: float = 0.0
    destination: str = ""


def reporting_interval(kind: int, sog: float, turning: bool, status: int = 0) -> float:
    """Return the interval of position reports in s (ITU-R M.1371-5, table 1), or 0 for a receiver, which sends none."""
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
    """Round to the resolution of a report; halves round up, so that results are the same on every machine."""
    return math.floor(value / step + 0.5) * step


def turn_code(turn: float | None) -> int:
    """Return the rate-of-turn field of message 1: 4.733 sqrt(deg/min), signed, at most 126; -128 = not available."""
    if turn is None:
        return -128
    code = min(126, math.floor(4.733 * math.sqrt(math.degrees(abs(turn)) * 60.0) + 0.5))
    return code if turn >= 0.0 else -code


# ------------------------------------------------------------------ bits

BitFields = list[tuple[int, int]]  # (value, width)


def _text(text: str, characters: int) -> BitFields:
    """Return six bits per character: @ A..Z [ \\ ] ^ _ and blank to ?. Other characters become blanks; padding is @."""
    codes = []
    for c in text.upper()[:characters]:
        at = ord(c)
        codes.append(at - 64 if 64 <= at < 96 else at if 32 <= at < 64 else 32)
    return [(code, 6) for code in codes + [0] * (characters - len(codes))]


def packed(text: str) -> tuple[float, float, float]:
    """Pack a name of twenty characters into three integers of 42 bits (seven characters each), for a sensor value."""
    codes = [code for code, _ in _text(text, 21)]
    codes[20] = 0
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


def _degrees(value: float | None, none: int, width: int) -> tuple[int, int]:
    code = none * 600_000 if value is None else math.floor(value / STEP_ANGLE + 0.5)
    return code & (1 << width) - 1, width


def _speed(sog: float | None) -> tuple[int, int]:
    return (1023 if sog is None else min(1022, math.floor(abs(sog) / STEP_SPEED + 0.5))), 10


def _angle(angle: float | None, step: float, around: int, none: int, width: int) -> tuple[int, int]:
    return (none if angle is None else math.floor(angle / step + 0.5) % around), width


def _place(r: AisReport) -> BitFields:
    return [_degrees(r.longitude, 181, 28), _degrees(r.latitude, 91, 27)]


def _course(r: AisReport) -> BitFields:
    return [
        _angle(r.cog, STEP_COURSE, 3600, 3600, 12),
        _angle(r.heading, STEP_HEADING, 360, 511, 9),
        (math.floor(r.time) % 60, 6),
    ]


def _size(r: AisReport) -> BitFields:
    """Return the distances to bow, stern, port and starboard from the reported position, the middle of the vessel."""
    length, width = min(1022, math.floor(r.length + 0.5)), min(126, math.floor(r.width + 0.5))
    return [(length // 2, 9), (length - length // 2, 9), (width // 2, 6), (width - width // 2, 6)]


def position_report(r: AisReport) -> BitFields:
    """Return message 1, 18 or 21, depending on the type of station."""
    if r.kind == CLASS_A:
        head = [(1, 6), (0, 2), (r.mmsi, 30), (r.status, 4), (turn_code(r.turn) & 255, 8), _speed(r.sog), (1, 1)]
        return [*head, *_place(r), *_course(r), (0, 2), (0, 3), (0, 1), (0, 19)]
    if r.kind == AID_TO_NAVIGATION:
        head = [(21, 6), (0, 2), (r.mmsi, 30), (r.ship_type, 5), *_text(r.name, 20), (1, 1)]
        return [
            *head,
            *_place(r),
            *_size(r),
            (1, 4),
            (math.floor(r.time) % 60, 6),
            (0, 1),
            (0, 8),
            (0, 1),
            (0, 1),
            (0, 1),
            (0, 1),
        ]
    carrier = (
        [(1, 1), (0, 1), (0, 1), (1, 1), (0, 1)] if r.kind == CLASS_B else [(0, 1), (0, 1), (0, 1), (1, 1), (0, 1)]
    )
    head = [(18, 6), (0, 2), (r.mmsi, 30), (0, 8), _speed(r.sog), (1, 1), *_place(r), *_course(r), (0, 2)]
    return [*head, *carrier, (0, 1), (0, 1), (0, 20)]


def static_reports(r: AisReport) -> Iterator[BitFields]:
    """Yield message 5 or both parts of message 24. An aid to navigation has neither: message 21 contains its name."""
    if r.kind == CLASS_A:
        head = [
            (5, 6),
            (0, 2),
            (r.mmsi, 30),
            (2, 2),
            (0, 30),
            *_text(r.callsign, 7),
            *_text(r.name, 20),
            (r.ship_type, 8),
        ]
        yield [
            *head,
            *_size(r),
            (1, 4),
            (0, 4),
            (0, 5),
            (24, 5),
            (60, 6),
            (0, 8),
            *_text(r.destination, 20),
            (0, 1),
            (0, 1),
        ]
    elif r.kind in (CLASS_B, CLASS_B_SO):
        yield [(24, 6), (0, 2), (r.mmsi, 30), (0, 2), *_text(r.name, 20), (0, 8)]
        yield [
            (24, 6),
            (0, 2),
            (r.mmsi, 30),
            (1, 2),
            (r.ship_type, 8),
            (0, 42),
            *_text(r.callsign, 7),
            *_size(r),
            (1, 4),
            (0, 2),
        ]


def sentences(bits: BitFields, own: bool = False, channel: str = "A", number: int = 0) -> Iterator[bytes]:
    """Yield the sentences of a message: ``!AIVDM`` for others, ``!AIVDO`` for own station.

    ``number`` distinguishes the parts of different multi-sentence messages.
    """
    total, width = 0, 0
    for value, bit in bits:
        total, width = total << bit | value, width + bit
    fill = -width % 6
    total, count = total << fill, (width + fill) // 6
    codes = [total >> 6 * (count - 1 - k) & 63 for k in range(count)]
    payload = "".join(chr(code + 48 if code < 40 else code + 56) for code in codes)
    parts = [payload[k : k + MAX_PAYLOAD_CHARACTERS] for k in range(0, count, MAX_PAYLOAD_CHARACTERS)]
    for k, part in enumerate(parts):
        message = str(number % 10) if len(parts) > 1 else ""
        last = fill if k == len(parts) - 1 else 0
        body = f"AIVD{'O' if own else 'M'},{len(parts)},{k + 1},{message},{channel},{part},{last}"
        check = 0
        for byte in body.encode("ascii"):
            check ^= byte
        yield f"!{body}*{check:02X}\r\n".encode("ascii")


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def reports(value: Value) -> list[AisReport | None]:
    """Return the reports of a sensor `ais` by slot, with the own station first and None for an empty slot."""
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
