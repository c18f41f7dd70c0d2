"""NMEA 0183 sentences that ship instruments send, computed from the sensors of a body.

Each sensor type has its sentences: GGA, RMC, VTG, GSA and GSV for gps; HDT, ROT and XDR for ahrs; MTW for ctd and
temperature; TTM and TLL for radar; DPT and DBT for echosounder; VHW for speedlog; MWV for anemometer; and !AIVDM (other
stations) and !AIVDO (the receiver's own station) for ais.

The talker of the gps sentences is GP, because readers derive the satellite system from it. The talker of the other
sentences is II (integrated instrumentation) by default, because gpsd ignores a heading from the talker HE.

Encoders are pure functions of SI values. Each returns a sentence with its checksum and line end. A value with a
missing component is not sent, because its sentence would have empty fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from wavesim_devices.ais import AisSentences
from wavesim_devices.ports import Bytes
from wavesim_devices.sensor_selection import NewValueFilter
from wavesim_sdk.broker import Step
from wavesim_sdk.checksums import xor
from wavesim_sdk.epoch import utc
from wavesim_sdk.guidance.encounters import closest_approach
from wavesim_sdk.sensors import RADAR_TARGETS
from wavesim_sdk.wire.state import Value

NAUTICAL_MILE = 1852.0
KNOT = NAUTICAL_MILE / 3600.0
EARTH = 6_371_000.0  #: radius of the Earth in m
TALKER = "II"  #: default talker of all sentences except those of the satellite receiver
MAX_SATELLITES = 12  #: maximum number of satellites that GSA can list
Clock = Callable[[float], datetime]  #: function that returns the time to report for a simulation time in ns
#: clocks by name: simulation time, or the time of this machine when the value is sent
CLOCKS: Mapping[str, Clock] = MappingProxyType({"simulation": utc, "wall": lambda _: datetime.now(UTC)})
#: sensor types that have an NMEA 0183 sentence
TYPES = ("gps", "ahrs", "echosounder", "ctd", "temperature", "speedlog", "anemometer", "radar", "ais")


def sentence(body: str) -> bytes:
    """Return ``$body*checksum`` with the line end. The checksum is the exclusive or of the bytes of ``body``."""
    return f"${body}*{xor(body.encode('ascii')):02X}\r\n".encode("ascii")


def _angle(value: float, width: int) -> str:
    """Return the magnitude of an angle in degrees and minutes, ``ddmm.mmmmmm``, with a resolution equivalent to 2 mm on
    the ground.
    """
    minutes = round(abs(math.degrees(value)) * 60e6)
    return f"{minutes // 60_000_000:0{width}d}{minutes % 60_000_000 / 1e6:09.6f}"


def _latitude(value: float) -> str:
    return f"{_angle(value, 2)},{'N' if value >= 0 else 'S'}"


def _longitude(value: float) -> str:
    return f"{_angle(value, 3)},{'E' if value >= 0 else 'W'}"


def place(latitude: float, longitude: float) -> str:
    """Return the fields of a sentence for a position given in rad."""
    return f"{_latitude(latitude)},{_longitude(longitude)}"


def _clock(time: datetime) -> str:
    return time.strftime("%H%M%S.") + f"{time.microsecond // 10_000:02d}"


def _degrees(value: float) -> float:
    """Return an angle in degrees that is still in [0, 360) after it has been rounded to a hundredth."""
    return round(math.degrees(value), 2) % 360.0


def gga(time: datetime, latitude: float, longitude: float, height: float, satellites: int, hdop: float) -> bytes:
    """Return GGA: time, position, quality, satellites, HDOP, height above mean sea level (here: above the ellipsoid)."""
    where = place(latitude, longitude)
    return sentence(f"GPGGA,{_clock(time)},{where},1,{satellites:02d},{hdop:.1f},{height:.2f},M,0.0,M,,")


def rmc(time: datetime, latitude: float, longitude: float, sog: float, cog: float) -> bytes:
    """Return RMC: time, position, speed and course over ground, date."""
    where = place(latitude, longitude)
    return sentence(
        f"GPRMC,{_clock(time)},A,{where},{sog / KNOT:.3f},{_degrees(cog):.2f},{time.strftime('%d%m%y')},,,A"
    )


def vtg(sog: float, cog: float) -> bytes:
    """Return VTG: course and speed over ground."""
    return sentence(f"GPVTG,{_degrees(cog):.2f},T,,M,{sog / KNOT:.3f},N,{sog * 3.6:.3f},K,A")


def gsa(satellites: int, hdop: float) -> bytes:
    """Return GSA: three-dimensional fix, satellites in use, HDOP. PDOP and VDOP are unknown."""
    used = [f"{k + 1:02d}" for k in range(min(satellites, MAX_SATELLITES))]
    return sentence(f"GPGSA,A,3,{','.join(used + [''] * (MAX_SATELLITES - len(used)))},,{hdop:.1f},")


def gsv(satellites: int) -> Iterator[bytes]:
    """Yield GSV: satellites in view, four in each sentence. The sky is not simulated, so the satellites are spread
    evenly over it.
    """
    n = min(satellites, MAX_SATELLITES)
    parts = math.ceil(n / 4)
    for part in range(parts):
        seen = (f"{k + 1:02d},{15 + 30 * (k % 3)},{360 * k // n:03d},40" for k in range(4 * part, min(4 * part + 4, n)))
        yield sentence(f"GPGSV,{parts},{part + 1},{n:02d},{','.join(seen)}")


def hdt(heading: float) -> bytes:
    """Return HDT: true heading."""
    return sentence(f"{TALKER}HDT,{_degrees(heading):.2f},T")


def rot(rate: float) -> bytes:
    """Return ROT: rate of turn in degrees per minute, positive to starboard."""
    return sentence(f"{TALKER}ROT,{math.degrees(rate) * 60.0:.1f},A")


def xdr(roll: float, pitch: float) -> bytes:
    """Return XDR: pitch and roll as transducer measurements."""
    return sentence(f"{TALKER}XDR,A,{math.degrees(pitch):.2f},D,PITCH,A,{math.degrees(roll):.2f},D,ROLL")


def dpt(depth: float, offset: float = 0.0) -> bytes:
    """Return DPT: depth below the transducer, and offset of the transducer (positive: distance to the waterline)."""
    return sentence(f"{TALKER}DPT,{depth:.2f},{offset:.1f}")


def dbt(depth: float) -> bytes:
    """Return DBT: depth below the transducer in feet, metres and fathoms."""
    return sentence(f"{TALKER}DBT,{depth / 0.3048:.2f},f,{depth:.2f},M,{depth / 1.8288:.2f},F")


def mtw(temperature: float) -> bytes:
    """Return MTW: water temperature."""
    return sentence(f"{TALKER}MTW,{temperature:.2f},C")


def vhw(heading: float | None, speed: float) -> bytes:
    """Return VHW: speed through the water, and the heading if it is known."""
    true = f"{_degrees(heading):.2f},T" if heading is not None else ",T"
    return sentence(f"{TALKER}VHW,{true},,M,{speed / KNOT:.3f},N,{speed * 3.6:.3f},K")


def mwv(angle: float, speed: float) -> bytes:
    """Return MWV: apparent wind, as an angle from the bow and a speed."""
    return sentence(f"{TALKER}MWV,{_degrees(angle):.1f},R,{speed:.2f},M,A")


def with_talker(line: bytes, talker: str) -> bytes:
    """Return the sentence with a different talker, unless it comes from the satellite receiver."""
    body = line[1:].partition(b"*")[0].decode("ascii")
    return line if body.startswith("GP") else sentence(talker + body[2:])


def _text(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else ""


def ttm(
    number: int,
    distance: float,
    bearing: float,
    speed: float,
    course: float,
    approach: tuple[float, float] | None,
    status: str,
    time: datetime,
) -> bytes:
    """Return TTM: range, bearing, course and speed of a tracked target.

    ``distance`` is in m, the true ``bearing`` in rad, ``speed`` over ground in m/s, ``course`` in rad (NaN = not yet
    known). ``approach`` is (CPA in m, TCPA in s) or None. ``status`` is L (lost), Q (query: the target is being
    acquired) or T (tracked).
    """
    cpa = ("", "") if approach is None else (f"{approach[0] / NAUTICAL_MILE:.3f}", f"{approach[1] / 60.0:.2f}")
    return sentence(
        f"{TALKER}TTM,{number:02d},{distance / NAUTICAL_MILE:.3f},{math.degrees(bearing) % 360.0:.1f},T,"
        f"{_text(speed / KNOT, 1)},{_text(math.degrees(course), 1)},T,{cpa[0]},{cpa[1]},N,,{status},,{_clock(time)},A"
    )


def tll(number: int, latitude: float, longitude: float, status: str, time: datetime) -> bytes:
    """Return TLL: position of a tracked target."""
    return sentence(f"{TALKER}TLL,{number:02d},{place(latitude, longitude)},,{_clock(time)},{status},")


def target_sentences(value: Value, gps: Value | None, clock: Clock = utc) -> Iterator[bytes]:
    """Yield TTM for each target of a `radar` sensor. If a GPS value is given, TTM includes the closest approach, and
    TLL follows.
    """
    time = clock(value.time_ns)
    for i in range(RADAR_TARGETS):
        if not math.isfinite(value.target[i]):
            continue
        number, status = int(value.target[i]), "T" if value.status[i] == 2.0 else "Q"
        r, b, speed, course = value.range[i], value.bearing[i], value.speed[i], value.course[i]
        approach = None
        if gps is not None and math.isfinite(course):
            own = gps.sog * math.cos(gps.cog), gps.sog * math.sin(gps.cog)
            d, t = closest_approach(
                [r * math.cos(b), r * math.sin(b)],
                [speed * math.cos(course) - own[0], speed * math.sin(course) - own[1]],
            )
            approach = float(d), float(t)
        yield ttm(number, r, b, speed, course, approach, status, time)
        if gps is not None:
            north, east = r * math.cos(b), r * math.sin(b)
            yield tll(
                number,
                gps.latitude + north / EARTH,
                gps.longitude + east / (EARTH * math.cos(gps.latitude)),
                status,
                time,
            )


def sentences(type_: str, value: Value, heading: float | None = None, clock: Clock = utc) -> Iterator[bytes]:
    """Yield the sentences for a sensor value, or none if a component of the value is missing. ``heading`` is reported
    with the speed through the water.
    """
    if not all(map(math.isfinite, value.numbers)):
        return
    time = clock(value.time_ns)
    match type_:
        case "gps":
            yield gga(time, value.latitude, value.longitude, value.height, round(value.satellites), value.hdop)
            yield rmc(time, value.latitude, value.longitude, value.sog, value.cog)
            yield vtg(value.sog, value.cog)
            yield gsa(round(value.satellites), value.hdop)
            yield from gsv(round(value.satellites))
        case "ahrs":
            yield hdt(value.heading)
            yield rot(value.rates[2])
            yield xdr(value.roll, value.pitch)
        case "echosounder":
            yield dpt(value.range)
            yield dbt(value.range)
        case "ctd" | "temperature":
            yield mtw(value.temperature)
        case "speedlog":
            yield vhw(heading, value.v_FB_B[0])
        case "anemometer":
            yield mwv(value.angle, value.speed)


class NmeaDevice:
    """NMEA 0183 talker that sends each new sensor value once. ``picked`` maps each sensor type to the name of the
    sensor.
    """

    def __init__(self, send: Bytes, picked: Mapping[str, str], talker: str = TALKER, clock: Clock = utc) -> None:
        self.send, self.sensor_names, self.talker, self.clock = send, picked, talker, clock
        self._new_values = NewValueFilter(picked)
        self._ais = AisSentences(clock)

    def receive(self, data: bytes) -> None:
        """Ignore received bytes, because a talker only sends."""

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        ahrs = step.sensors.get(self.sensor_names.get("ahrs", ""))
        for type_, value in self._new_values.new_values(step.sensors):
            if type_ == "ais":
                for line in self._ais.lines(value):
                    self.send(line)
                continue
            if type_ == "radar":
                lines = target_sentences(value, step.sensors.get(self.sensor_names.get("gps", "")), self.clock)
            else:
                lines = sentences(type_, value, ahrs.heading if ahrs is not None else None, self.clock)
            for line in lines:
                self.send(line if self.talker == TALKER else with_talker(line, self.talker))
