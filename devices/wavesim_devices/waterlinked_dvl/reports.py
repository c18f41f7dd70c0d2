"""Reports and replies of the Water Linked DVL in JSON and in the serial protocol."""

from __future__ import annotations

import json
import math
from typing import Any

from wavesim_devices.waterlinked_dvl.dead_reckoning import LocalPosition
from wavesim_devices.waterlinked_dvl.measurement import NOISE_DBM, Measurement
from wavesim_sdk.checksums import crc8

FORMAT = "json_v3.3"
_DIGITS = 9  #: number of decimal places; with this number, each message stays below 2000 bytes


def json_line(message: dict[str, Any], kind: str) -> bytes:
    """Return a JSON message with its line end. Drivers search for the keys, so their order matters."""
    return json.dumps({**message, "format": FORMAT, "type": kind}, separators=(",", ":")).encode() + b"\r\n"


def json_response(command: str, error: str = "", result: Any = None) -> bytes:
    """Return the response to a JSON command. A non-empty ``error`` means that the command failed."""
    return json_line(
        {"response_to": command, "success": not error, "error_message": error, "result": result}, "response"
    )


def json_velocity(m: Measurement, time_of_validity: int, time_of_transmission: int) -> bytes:
    """Return a velocity report. Its times are Unix times in us."""
    vx, vy, vz = (round(v, _DIGITS) for v in (m.velocity if m.valid else (0.0, 0.0, 0.0)))
    report: dict[str, Any] = {
        "time": m.interval_ms,
        "vx": vx,
        "vy": vy,
        "vz": vz,
        "fom": round(m.figure_of_merit, _DIGITS),
        "covariance": [[round(c, 15) for c in row] for row in m.covariance.tolist()],
        "altitude": _or(m.altitude, -1.0),
        "transducers": [
            {
                "id": k,
                "velocity": _or(b.velocity, 0.0),
                "distance": _or(b.distance, -1.0),
                "rssi": round(b.level, 3),
                "nsd": NOISE_DBM,
                "beam_valid": b.valid,
            }
            for k, b in enumerate(m.beams)
        ],
        "velocity_valid": m.valid,
        "status": 0,
        "time_of_validity": time_of_validity,
        "time_of_transmission": time_of_transmission,
    }
    if m.is_water:
        del report["altitude"]
    return json_line(report, "velocity_water" if m.is_water else "velocity")


def json_position(p: LocalPosition, unix_s: float) -> bytes:
    """Return a dead reckoning report."""
    x, y, z = (round(v, _DIGITS) for v in p.position)
    roll, pitch, yaw = (round(v, _DIGITS) for v in p.angles)
    report = {"ts": unix_s, "x": x, "y": y, "z": z, "std": round(p.deviation, _DIGITS)}
    return json_line({**report, "roll": roll, "pitch": pitch, "yaw": yaw, "status": 0}, "position_local")


def _or(value: float, otherwise: float) -> float:
    return round(value, _DIGITS) if math.isfinite(value) else otherwise


# ------------------------------------------------------------------ serial protocol


def serial_line(text: str) -> bytes:
    """Return a line in the serial protocol with its checksum."""
    data = text.encode("ascii", errors="replace")
    return b"%s*%02x\r\n" % (data, crc8(data))


def serial_velocity(m: Measurement, time_of_validity: int, time_of_transmission: int, old: bool) -> bytes:
    """Return the sentences for a measurement: wrz or wrs, and wru for each transducer. With ``old``, also return wrx
    and wrt.
    """
    velocity = ",".join(f"{v:.3f}" for v in (m.velocity if m.valid else (0.0, 0.0, 0.0)))
    valid, altitude = "y" if m.valid else "n", f"{_or(m.altitude, -1.0):.2f}"
    covariance = ";".join(f"{c:.6g}" for c in m.covariance.flat)
    middle = "" if m.is_water else f"{altitude},"
    lines = [
        f"wr{'s' if m.is_water else 'z'},{velocity},{valid},{middle}{m.figure_of_merit:.3f},{covariance},"
        f"{time_of_validity},{time_of_transmission},{m.interval_ms:.2f},0"
    ]
    lines += [
        f"wru,{k},{_or(b.velocity, 0.0):.3f},{_or(b.distance, -1.0):.2f},{b.level:.0f},{NOISE_DBM:.0f}"
        for k, b in enumerate(m.beams)
    ]
    if old and not m.is_water:
        lines.append(f"wrx,{m.interval_ms:.2f},{velocity},{m.figure_of_merit:.3f},{altitude},{valid},0")
        lines.append("wrt," + ",".join(f"{_or(b.distance, -1.0):.2f}" for b in m.beams))
    return b"".join(map(serial_line, lines))


def serial_position(p: LocalPosition, unix_s: float) -> bytes:
    """Return the sentence for a dead reckoning report."""
    x, y, z = p.position
    roll, pitch, yaw = p.angles
    return serial_line(f"wrp,{unix_s:.3f},{x:.2f},{y:.2f},{z:.2f},{p.deviation:.3f},{roll:.1f},{pitch:.1f},{yaw:.1f},0")
