"""Logs of other programs, written from the public descriptions of their formats: telemetry by pymavlink itself, the on-board
logs of ArduPilot and PX4 byte by byte, and DUNE's log by its serialisation of IMC.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.log import Log

LATITUDE, LONGITUDE = 41.18, -8.71  #: deg, off Porto
UNIX = 1_790_000_000.0  #: time 0 of a voyage, s since 1970
BOOT_S = 37.25  #: age of an autopilot then
GPS_EPOCH, LEAP_S, WEEK_S = 315964800, 18, 604800


@dataclass
class Content:
    """What a log is to contain: attitudes and rates, velocities of a Doppler log, absolute pressures, fixes, and the truth."""

    t: Any
    angles: Any  #: (T, 3) rad
    rates: Any
    dvl_t: Any
    dvl: Any
    fix_t: Any
    fixes: Any  #: (N, 2) deg
    truth_t: Any
    p: Any
    q: Any
    v: Any  #: (T, 3) W
    w: Any
    more: dict[str, Any] = field(default_factory=dict)

    def clock(self, t: float) -> float:
        """What the vehicle's clock says at a time; the order of the messages is that of the times."""
        return float(self.more.get("clock", lambda x: x)(t))

    @property
    def origin(self) -> Origin:
        return Origin(math.radians(LATITUDE), math.radians(LONGITUDE))

    def places(self) -> Any:
        """Latitudes and longitudes (T, 2) of the truth, deg."""
        return np.stack(self.origin.degrees(self.p), axis=1)


def content(log: Log) -> Content:
    """What a log of ours contains, with fixes every second."""
    ahrs, dvl, state = (log.series[k].records for k in ("/sensor/auv/ahrs", "/sensor/auv/dvl", "/state/auv"))
    t = log.series["/state/auv"].time_ns * 1e-9
    v = np.einsum("tij,tj->ti", frames.rotation(state["q_WB"]), state["v_WB_B"])
    some = np.arange(0, len(t), round(1.0 / float(np.median(np.diff(t)))))
    origin = Origin(math.radians(LATITUDE), math.radians(LONGITUDE))
    return Content(
        t=ahrs["time_ns"] * 1e-9,
        angles=np.stack([ahrs["roll"], ahrs["pitch"], (ahrs["heading"] + np.pi) % (2.0 * np.pi) - np.pi], axis=1),
        rates=np.asarray(ahrs["rates"], float),
        dvl_t=dvl["time_ns"] * 1e-9,
        dvl=np.asarray(dvl["bottom"], float),
        fix_t=t[some],
        fixes=np.stack(origin.degrees(state["p_WB_W"][some]), axis=1),
        truth_t=t,
        p=np.asarray(state["p_WB_W"], float),
        q=np.asarray(state["q_WB"], float),
        v=v,
        w=np.asarray(state["w_WB_B"], float),
    )


def merged(*streams: Iterable[tuple[float, bytes]]) -> bytes:
    """The messages of all streams, each (time, bytes), in the order of their times."""
    return b"".join(data for _, data in sorted((m for s in streams for m in s), key=lambda m: m[0]))


def dbar(c: Content) -> Any:
    return 10.1325 + 1.0063 * c.p[:, 2]


# ------------------------------------------------------------------ MAVLink


def write_tlog(c: Content, path: Path, delay: float = 0.08) -> Path:
    from pymavlink.dialects.v20 import ardupilotmega as m

    link = m.MAVLink(None, srcSystem=7, srcComponent=1)

    def stamped(t: float, message: Any) -> tuple[float, bytes]:
        received = c.more.get("received", lambda x: x)(t) + UNIX + delay
        return received, struct.pack(">Q", round(received * 1e6)) + message.pack(link)

    def boot_ms(t: float) -> int:
        return round((c.clock(t) + BOOT_S) * 1e3)

    def us(t: float) -> int:
        return round((c.clock(t) + BOOT_S) * 1e6)

    def beats() -> Iterable[tuple[float, bytes]]:
        for t in c.truth_t[::10]:
            yield stamped(t, m.MAVLink_heartbeat_message(12, 3, 0, 0, 4, 3))
            yield stamped(t, m.MAVLink_statustext_message(6, b"hello"))

    def attitudes() -> Iterable[tuple[float, bytes]]:
        for t, a, w in zip(c.t, c.angles, c.rates, strict=True):
            yield stamped(t, m.MAVLink_attitude_message(boot_ms(t), *map(float, (*a, *w))))

    def velocities() -> Iterable[tuple[float, bytes]]:
        for t, v in zip(c.dvl_t, c.dvl, strict=True):  # over 0.1 s around the time
            step = [float(x) * 0.1 for x in v]
            yield stamped(t, m.MAVLink_vision_position_delta_message(us(t + 0.05), 100000, [0.0] * 3, step, 100.0))

    def truths() -> Iterable[tuple[float, bytes]]:
        for t, place, p, q, v, w in zip(c.truth_t, c.places(), c.p, c.q, c.v, c.w, strict=True):
            lat, lon = (round(float(x) * 1e7) for x in place)
            cm = [round(float(x) * 100.0) for x in v]
            yield stamped(
                t,
                m.MAVLink_hil_state_quaternion_message(
                    us(t), [*map(float, q)], *map(float, w), lat, lon, round(-1000.0 * float(p[2])), *cm, 0, 0, 0, 0, 0
                ),
            )

    def fixes() -> Iterable[tuple[float, bytes]]:
        for t, place in zip(c.fix_t, c.fixes, strict=True):
            lat, lon = (round(float(x) * 1e7) for x in place)
            yield stamped(t, m.MAVLink_gps_raw_int_message(us(t), 3, lat, lon, 0, 100, 100, 0, 0, 9, h_acc=2000))
        if len(c.fix_t):
            yield stamped(c.fix_t[0], m.MAVLink_gps_raw_int_message(us(c.fix_t[0]) + 1, 1, 0, 0, 0, 100, 100, 0, 0, 0))

    def pressures() -> Iterable[tuple[float, bytes]]:
        for t, p in zip(c.truth_t, dbar(c), strict=True):
            yield stamped(t, m.MAVLink_scaled_pressure_message(boot_ms(t), 1013.0, 0.0, 2000))
            yield stamped(t, m.MAVLink_scaled_pressure2_message(boot_ms(t), float(p) * 100.0, 0.0, 2000))

    path.write_bytes(merged(beats(), attitudes(), velocities(), truths(), fixes(), pressures()))
    return path


# ------------------------------------------------------------------ ArduPilot


LETTERS = {"Q": "Q", "f": "f", "d": "d", "B": "B", "H": "H", "I": "I", "L": "i", "c": "h", "C": "H", "e": "i"}
SCALES = {"L": 1e7, "c": 100.0, "C": 100.0, "e": 100.0}


def write_bin(c: Content, path: Path) -> Path:
    """A DataFlash log: each message begins with A3 95 and its number, and FMT messages describe the others."""
    formats = {
        "ATT": (1, "Qfff", "TimeUS,Roll,Pitch,Yaw"),
        "VISO": (2, "Qffffffff", "TimeUS,dt,AngDX,AngDY,AngDZ,PosDX,PosDY,PosDZ,conf"),
        "GPS": (3, "QBBIHBcLLe", "TimeUS,I,Status,GMS,GWk,NSats,HDop,Lat,Lng,Alt"),
        "SIM": (4, "QfffdLL", "TimeUS,Roll,Pitch,Yaw,Alt,Lat,Lng"),
        "BARO": (5, "QBff", "TimeUS,I,Alt,Press"),
        "VER": (6, "QB", "TimeUS,BU"),
        "RCIN": (7, "QH", "TimeUS,C1"),
    }

    def layout(letters: str) -> str:
        return "<" + "".join(LETTERS[x] for x in letters)

    def described(name: str, number: int, letters: str, columns: str) -> bytes:
        size = 3 + struct.calcsize(layout(letters))
        return b"\xa3\x95\x80" + struct.pack(
            "<BB4s16s64s", number, size, name.encode(), letters.encode(), columns.encode()
        )

    def message(name: str, *values: float) -> bytes:
        number, letters, _ = formats[name]
        scaled = [
            round(v * SCALES.get(x, 1.0)) if LETTERS[x] not in "fd" else float(v)
            for x, v in zip(letters, values, strict=True)
        ]
        return struct.pack("<BBB", 0xA3, 0x95, number) + struct.pack(layout(letters), *scaled)

    def us(t: float) -> int:
        return round((c.clock(t) + BOOT_S) * 1e6)

    def fixes() -> Iterable[tuple[float, bytes]]:
        for t, (lat, lon) in zip(c.fix_t, c.fixes, strict=True):
            week, rest = divmod(t + UNIX - GPS_EPOCH + LEAP_S, WEEK_S)
            yield t, message("GPS", us(t), 0, 3, round(rest * 1e3), week, 9, 1.0, lat, lon, 0.0)

    degrees = np.degrees(c.angles)
    true = np.degrees(frames.euler(c.q))
    head = [described(name, *rest) for name, rest in formats.items()]
    path.write_bytes(
        b"".join(head)
        + message("VER", us(0.0), 7)
        + merged(
            ((t, message("ATT", us(t), a[0], a[1], a[2] % 360.0)) for t, a in zip(c.t, degrees, strict=True)),
            ((t, message("VISO", us(t + 0.05), 0.1, 0, 0, 0, *(0.1 * v), 1.0)) for t, v in zip(c.dvl_t, c.dvl, strict=True)),
            fixes(),
            ((t, message("SIM", us(t), a[0], a[1], a[2] % 360.0, -p[2], *place)) for t, a, p, place in zip(c.truth_t, true, c.p, c.places(), strict=True)),
            ((t, message("BARO", us(t), 0, 0.0, 1e4 * p)) for t, p in zip(c.truth_t, dbar(c), strict=True)),
            ((t, message("RCIN", us(t), 1500)) for t in c.truth_t[::20]),
        )
    )  # fmt: skip
    return path


# ------------------------------------------------------------------ PX4


ULOG = {"uint64_t": "Q", "float": "f", "double": "d", "uint8_t": "B", "int32_t": "i"}


def write_ulg(c: Content, path: Path) -> Path:
    """A ULog file, version 1: definitions, then data; each message begins with its size and its letter."""
    topics = {
        "vehicle_attitude": "uint64_t timestamp;float[4] q;",
        "vehicle_angular_velocity": "uint64_t timestamp;float[3] xyz;",
        "vehicle_visual_odometry": "uint64_t timestamp;float[3] velocity;uint8_t velocity_frame;",
        "sensor_gps": "uint64_t timestamp;uint64_t time_utc_usec;double latitude_deg;double longitude_deg;"
        "double altitude_msl_m;float eph;uint8_t fix_type;",
        "vehicle_local_position_groundtruth": "uint64_t timestamp;double ref_lat;double ref_lon;float x;float y;float z;"
        "float vx;float vy;float vz;",
        "vehicle_attitude_groundtruth": "uint64_t timestamp;float[4] q;",
        "sensor_baro": "uint64_t timestamp;float pressure;",
        "cpuload": "uint64_t timestamp;float load;",
    }

    def message(letter: bytes, data: bytes) -> bytes:
        return struct.pack("<H", len(data)) + letter + data

    def layout(text: str) -> str:
        found = "<"
        for one in text.split(";")[:-1]:
            kind, _, count = one.split()[0].partition("[")
            found += (count.rstrip("]") or "") + ULOG[kind]
        return found

    layouts = {name: layout(text) for name, text in topics.items()}
    number = {name: k for k, name in enumerate(topics)}

    def us(t: float) -> int:
        return round((c.clock(t) + BOOT_S) * 1e6)

    def data(name: str, t: float, *values: float) -> tuple[float, bytes]:
        return t, message(b"D", struct.pack("<H", number[name]) + struct.pack(layouts[name], us(t), *values))

    key = b"int32_t MAV_TYPE"
    head = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", us(0.0))
    head += message(b"B", bytes(40))
    head += b"".join(message(b"F", f"{name}:{text}".encode()) for name, text in topics.items())
    head += message(b"P", bytes([len(key)]) + key + struct.pack("<i", 12))
    head += b"".join(message(b"A", struct.pack("<BH", 0, k) + name.encode()) for name, k in number.items())
    q = frames.quaternion(*c.angles.T)
    body = merged(
        (data("vehicle_attitude", t, *x) for t, x in zip(c.t, q, strict=True)),
        (data("vehicle_angular_velocity", t, *x) for t, x in zip(c.t, c.rates, strict=True)),
        (data("vehicle_visual_odometry", t, *x, 3) for t, x in zip(c.dvl_t, c.dvl, strict=True)),
        (data("sensor_gps", t, round((t + UNIX) * 1e6), *x, 0.0, 2.0, 3) for t, x in zip(c.fix_t, c.fixes, strict=True)),
        (data("vehicle_local_position_groundtruth", t, LATITUDE, LONGITUDE, *p, *v) for t, p, v in zip(c.truth_t, c.p, c.v, strict=True)),
        (data("vehicle_attitude_groundtruth", t, *x) for t, x in zip(c.truth_t, c.q, strict=True)),
        (data("sensor_baro", t, 1e4 * p) for t, p in zip(c.truth_t, dbar(c), strict=True)),
        (data("cpuload", t, 0.5) for t in c.truth_t[::20]),
    )  # fmt: skip
    path.write_bytes(head + body)
    return path


# ------------------------------------------------------------------ DUNE


def write_lsf(c: Content, path: Path, order: str = "<") -> Path:
    """IMC packets as DUNE writes them, with the CRC computed bit by bit."""
    from tests.bridges.dune import checksum

    def packet(t: float, number: int, entity: int, layout: str, *values: Any) -> tuple[float, bytes]:
        payload = struct.pack(order + layout, *values)
        head = struct.pack(
            order + "HHHdHBHB", 0xFE54, number, len(payload), c.clock(t) + UNIX, 0x0015, entity, 0xFFFF, 255
        )
        return t, head + payload + struct.pack(order + "H", checksum(head + payload))

    def label(entity: int, name: bytes) -> tuple[float, bytes]:
        layout = f"BH{len(name)}sHHH"
        return packet(0.0, 3, entity, layout, entity, len(name), name, 0, 0, 0)

    at = math.radians(LATITUDE), math.radians(LONGITUDE)
    true = frames.euler(c.q)
    path.write_bytes(
        merged(
            (label(78, b"AHRS"), label(79, b"DVL"), label(71, b"GPS"), label(70, b"CTD")),
            (packet(t, 150, 1, "") for t in c.truth_t[::10]),
            (packet(t, 254, 78, "ddddd", t, *a, a[2]) for t, a in zip(c.t, c.angles, strict=True)),
            (packet(t, 256, 78, "dddd", t, *w) for t, w in zip(c.t, c.rates, strict=True)),
            (packet(t, 259, 79, "Bddd", 7, *v) for t, v in zip(c.dvl_t, c.dvl, strict=True)),
            (packet(t, 265, 70, "f", p[2]) for t, p in zip(c.truth_t, c.p, strict=True)),
            (
                packet(t, 253, 71, "HBHBBfddfBffffff", 0x27, 0, 2026, 9, 21, 0.0, *np.radians(x), 0.0, 9, 0, 0, 1, 1, 2.0, 3.0)
                for t, x in zip(c.fix_t, c.fixes, strict=True)
            ),
            (
                packet(t, 50, 0, "ddffffffffffffffff", *at, 0.0, *p, *a, 0, 0, 0, *w, 0, 0, 0)
                for t, p, a, w in zip(c.truth_t, c.p, true, c.w, strict=True)
            ),
        )
    )  # fmt: skip
    return path


WRITERS: dict[str, Callable[[Content, Path], Path]] = {
    ".tlog": write_tlog,
    ".bin": write_bin,
    ".ulg": write_ulg,
    ".lsf": write_lsf,
}
