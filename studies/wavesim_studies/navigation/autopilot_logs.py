"""Readers for the logs of autopilots: MAVLink telemetry (.tlog), ArduPilot's on-board log (.bin) and PX4's (.ulg)."""

from __future__ import annotations

import contextlib
import io
import os
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import LogError
from wavesim_sdk.extras import check_installed
from wavesim_sdk.recorded_messages import RecordedFile, RecordedMessages
from wavesim_studies.navigation.pose_tracks import epoch_time

#: MAV_TYPE of vehicles below and on the water
KINDS = {12: "submarine", 11: "surface", 10: "surface"}
NO_AUTOPILOT = 8  #: MAV_AUTOPILOT of programs such as ground stations
STAMP = struct.Struct(">Q")  #: time of reception in us, before each frame of a .tlog file
#: start of a MAVLink frame: its version, and the sizes of header and checksum
STARTS = {0xFE: (6, 2), 0xFD: (10, 2)}
SIGNATURE_BYTES = 13
FAST_INDEX = "PYMAVLINK_FAST_INDEX"
BOOT_CLOCK = "the file does not state the civil time; times are those since the start of the autopilot"


@contextlib.contextmanager
def _library(path: Path, package: str) -> Iterator[None]:
    """Convert the errors of a library that reads a file to LogError. Raise MissingPackage if it is not installed."""
    check_installed(package)
    try:
        yield
    except LogError:
        raise
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # the libraries pass on errors of their parsers, such as struct.error
        raise LogError(f"cannot read {path}: {type(error).__name__}: {error}") from None


# ------------------------------------------------------------------ MAVLink


def read_tlog(path: Path, wanted: Collection[str]) -> RecordedFile:
    """Return the messages of the vehicle with the most messages in a telemetry log: frames of MAVLink 1 or 2, each after
    the time of its reception. Times are those of the autopilot's clock, moved to the receiver's clock.
    """
    with _library(path, "pymavlink"):
        from pymavlink.dialects.v20 import ardupilotmega as dialect

        decoder = dialect.MAVLink(None)
        made, faults = RecordedFile([]), Counter[str]()
        types: dict[int, Counter[int]] = defaultdict(Counter)
        rows: dict[tuple[int, int, str], list[tuple[float, Any]]] = defaultdict(list)
        for received, frame in _frames(path.read_bytes(), faults):
            kind = dialect.mavlink_map.get(_number(frame))
            name = kind.msgname if kind is not None else f"message {_number(frame)}"
            if name not in wanted and name not in ("HEARTBEAT", "GPS_GLOBAL_ORIGIN"):
                made.others[name] = made.others.get(name, 0) + 1
                continue
            try:
                message = decoder.decode(bytearray(frame))
            except dialect.MAVError as error:
                faults[str(error).partition(" (")[0]] += 1
                continue
            system = message.get_srcSystem()
            if name == "HEARTBEAT":
                if message.autopilot != NO_AUTOPILOT:
                    types[system][message.type] += 1
            elif name == "GPS_GLOBAL_ORIGIN":
                made.origin = float(np.radians(message.latitude * 1e-7)), float(np.radians(message.longitude * 1e-7))
            else:
                rows[system, message.get_srcComponent(), name].append((received, message))
    if not rows and not made.others and not types:
        raise LogError(f"cannot read {path}: it contains no MAVLink messages")
    made.notes += [f"{n} damaged parts were skipped ({why})" for why, n in faults.items()]
    counts: Counter[int] = Counter()
    for (system, _, _), found in rows.items():
        counts[system] += len(found)
    if counts:
        own = max(counts, key=lambda s: (s in types, counts[s]))
        if len(counts) > 1:
            made.notes.append(f"system {own} is used, and not {', '.join(str(s) for s in sorted(counts) if s != own)}")
        made.kind = KINDS.get(types[own].most_common(1)[0][0], "") if types[own] else ""
        _add_messages(made, {key: found for key, found in rows.items() if key[0] == own})
    return made


def _number(frame: bytes) -> int:
    return frame[5] if frame[0] == 0xFE else int.from_bytes(frame[7:10], "little")


def _frames(data: bytes, faults: Counter[str]) -> Iterator[tuple[float, bytes]]:
    """Yield the time of reception in s (Unix) and the bytes of each frame. Bytes that begin no frame are skipped."""
    at, end, lost = 0, len(data), False
    while at + STAMP.size + 1 < end:
        start = at + STAMP.size
        if data[start] not in STARTS or not 0 < STAMP.unpack_from(data, at)[0] < 1 << 53:
            faults["bytes outside of frames"] += not lost
            at, lost = at + 1, True
            continue
        head, check = STARTS[data[start]]
        signed = SIGNATURE_BYTES if data[start] == 0xFD and start + 2 < end and data[start + 2] & 1 else 0
        after = start + head + data[start + 1] + check + signed
        if after > end:
            break
        lost = False
        yield STAMP.unpack_from(data, at)[0] * 1e-6, data[start:after]
        at = after
    if at < end and not lost:
        faults["the file ends within a frame"] += 1


def _add_messages(made: RecordedFile, rows: dict[tuple[int, int, str], list[tuple[float, Any]]]) -> None:
    """Add the messages of one system. The clock of the autopilot is moved by the median delay of its messages."""
    clocks = {}
    for key, found in rows.items():
        stamp = next((k for k in ("time_boot_ms", "time_usec", "usec") if hasattr(found[0][1], k)), "")
        own = (
            np.array([getattr(m, stamp) for _, m in found], float) * (1e-3 if stamp == "time_boot_ms" else 1e-6)
            if stamp
            else np.zeros(0)
        )
        clocks[key] = own if own.any() else np.zeros(0)
    delays = [
        np.array([r for r, _ in rows[key]]) - own
        for key, own in clocks.items()
        if len(own) and not epoch_time(float(np.median(own)))
    ]
    offset = float(np.median(np.concatenate(delays))) if delays else 0.0
    for (system, component, name), found in rows.items():
        received, own = np.array([r for r, _ in found]), clocks[system, component, name]
        time = received if not len(own) else own if epoch_time(float(np.median(own))) else own + offset
        first = found[0][1]
        columns = {
            k: np.array([getattr(m, k) for _, m in found], float)
            for k in first.get_fieldnames()
            if not isinstance(getattr(first, k), str | bytes)
        }
        label = name if component == 1 else f"{name} (component {component})"
        made.messages.append(
            RecordedMessages(label, name, time, columns, received if len(own) else None, f"{system}/{component}")
        )
    if delays:
        made.notes.append("times are those of the autopilot's clock, moved to the receiver's clock by the median delay")


# ------------------------------------------------------------------ ArduPilot


@contextlib.contextmanager
def _python_index() -> Iterator[None]:
    """Let pymavlink index a file in Python: its compiled index prints each damaged byte past Python's output."""
    before = os.environ.get(FAST_INDEX)
    os.environ[FAST_INDEX] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[FAST_INDEX]
        else:
            os.environ[FAST_INDEX] = before


def read_bin(path: Path, wanted: Collection[str]) -> RecordedFile:
    """Return the messages of an on-board log of ArduPilot. Times are Unix times if a GPS message states them."""
    made = RecordedFile([])
    heard = io.StringIO()
    with _library(path, "pymavlink"), contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        from pymavlink.DFReader import DFReader_binary

        with _python_index(), DFReader_binary(str(path)) as reader:
            zero = float(reader.clock.timebase or 0.0)
            counts = {fmt.name: int(reader.counts[number]) for number, fmt in reader.formats.items()}
            chosen = [name for name in (*wanted, "ORGN") if counts.get(name)]
            rows: dict[tuple[str, str], list[Any]] = defaultdict(list)
            while chosen and (m := reader.recv_match(type=chosen)) is not None:
                instance = m.fmt.instance_field
                rows[m.get_type(), "" if instance is None else f"[{getattr(m, instance)}]"].append(m)
            kind = reader.mav_type
    if not any(counts.values()):
        raise LogError(f"cannot read {path}: it contains no ArduPilot messages")
    made.others = {
        name: n
        for name, n in counts.items()
        if n and name not in chosen and name not in ("FMT", "FMTU", "PARM", "UNIT", "MULT")
    }
    made.kind = KINDS.get(kind, "")
    if heard.getvalue():
        made.notes.append(f"damaged parts were skipped ({heard.getvalue().strip().splitlines()[0]})")
    for m in rows.pop(("ORGN", "[0]"), rows.pop(("ORGN", ""), [])):
        made.origin = float(np.radians(m.Lat)), float(np.radians(m.Lng))
    for (name, instance), found in rows.items():
        if name == "ORGN":
            continue
        first = found[0]
        if "TimeUS" not in first.get_fieldnames():
            made.notes.append(f"{name} has no TimeUS (a log from before 2015) and is not used")
            continue
        columns = {
            k: np.array([getattr(m, k) for m in found], float)
            for k in first.get_fieldnames()
            if isinstance(getattr(first, k), int | float)
        }
        made.messages.append(
            RecordedMessages(name + instance, name, zero + columns["TimeUS"] * 1e-6, columns, None, instance)
        )
    if not zero:
        made.notes.append(BOOT_CLOCK)
    return made


# ------------------------------------------------------------------ PX4


def read_ulg(path: Path, wanted: Collection[str]) -> RecordedFile:
    """Return the topics of an on-board log of PX4. Times are Unix times if a GPS topic states them."""
    made, heard = RecordedFile([]), io.StringIO()
    with _library(path, "pyulog"), contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        from pyulog import ULog

        log = ULog(str(path))
        made.kind = KINDS.get(int(log.initial_parameters.get("MAV_TYPE", 0)), "")
        damaged = bool(log.file_corruption)
        lost_s = sum(d.duration for d in log.dropouts) * 1e-3
        several = Counter(d.name for d in log.data_list)
        zero = _utc_offset(log.data_list)
        for data in log.data_list:
            if data.name not in wanted:
                made.others[data.name] = made.others.get(data.name, 0) + len(data.data["timestamp"])
                continue
            label = f"{data.name}[{data.multi_id}]" if several[data.name] > 1 else data.name
            columns = _vectors(data.data)
            made.messages.append(
                RecordedMessages(
                    label, data.name, zero + columns["timestamp"] * 1e-6, columns, None, str(data.multi_id)
                )
            )
    if not log.data_list:
        raise LogError(f"cannot read {path}: it contains no data (only definitions, or the file is cut off)")
    if damaged:
        made.notes.append("the file is damaged; the readable parts are used")
    if lost_s:
        made.notes.append(f"the autopilot could not log for {lost_s:.2f} s in total ({len(log.dropouts)} dropouts)")
    if not any(epoch_time(float(m.time[-1])) for m in made.messages):  # a simulator can log Unix times itself
        made.notes.append(BOOT_CLOCK)
    return made


def _utc_offset(topics: Any) -> float:
    """Return the time in s to add to times since the start; 0 if no receiver states the civil time."""
    for data in topics:
        if data.name in ("vehicle_gps_position", "sensor_gps") and "time_utc_usec" in data.data:
            utc = np.asarray(data.data["time_utc_usec"], float) * 1e-6
            known = utc > 1e8
            if known.any():
                return float(np.median(utc[known] - np.asarray(data.data["timestamp"], float)[known] * 1e-6))
    return 0.0


def _vectors(data: dict[str, Any]) -> dict[str, Any]:
    """Return columns in which the elements `q[0]`, `q[1]` ... are joined to one column (T, n)."""
    made: dict[str, Any] = {}
    arrays: dict[str, list[Any]] = defaultdict(list)
    for name, values in data.items():
        if name.endswith("]"):
            arrays[name.partition("[")[0]].append(np.asarray(values, float))
        else:
            made[name] = np.asarray(values, float)
    return made | {name: np.stack(parts, axis=1) for name, parts in arrays.items()}
