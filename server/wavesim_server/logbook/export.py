"""Export of logs as CSV, with one file per topic, and of CTD measurements as a Sea-Bird file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_devices import seabird
from wavesim_sdk.errors import LogError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.imaging_frames import FRAME_KINDS
from wavesim_sdk.log import Log, read, usable
from wavesim_sdk.log import frames as frames_of
from wavesim_sdk.log_tables import topic_columns


def write_csv(log: Path | Log, folder: Path) -> Iterator[tuple[str, int]]:
    """Write each topic to a file; yield the name and the number of rows of each file.

    Arrays become one column for each element; actuator columns have the names of the actuators.
    """
    found = read(log)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for topic, series in sorted(found.series.items()):
            table = topic_columns(found, topic, series)
            yield _write(folder, topic, list(table), zip(*table.values(), strict=True)), len(series.time_ns)
        for topic, messages in found.json.items():
            keys = list(dict.fromkeys(key for _, m in messages for key in m))
            lines = ([t, *(_csv_cell(m.get(c, "")) for c in keys)] for t, m in messages)
            yield _write(folder, topic, ["time_ns", *keys], lines), len(messages)
    except OSError as error:
        raise LogError(f"cannot write to {folder}: {error.strerror}") from None


def write_cnv(log: Path | Log, vehicle: str, out: Path, name: str = "") -> int:
    """Write the valid values of a body's CTD as a Sea-Bird file (.cnv); return the number of values. ``name`` selects
    one of several CTDs.
    """
    found = read(log)
    there = found.by_type("ctd")
    mine = [n for body, n in there if body == vehicle]
    if not mine:
        have = list(dict.fromkeys(body for body, _ in there))
        raise LogError(f"{log} has no CTD data from '{vehicle}'; vehicles with a CTD: {', '.join(have) or 'none'}")
    if not name and len(mine) > 1:
        raise LogError(f"'{vehicle}' has several CTDs; select one of {', '.join(mine)}")
    if name and name not in mine:
        raise LogError(f"'{vehicle}' has no CTD named '{name}'; available: {', '.join(mine)}")
    values = there[vehicle, name or mine[0]].records
    values = values[values["valid"] == 1]
    new = np.concatenate([[True], np.diff(values["sequence"]) > 0]) if len(values) else np.zeros(0, bool)
    values = values[new]
    world = json.loads(found.metadata.get("origin", "[0, 0]"))
    try:
        out.write_text(seabird.cnv(values["time_ns"] * 1e-9, values, world[0], world[1]), newline="")
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None
    return len(values)


def write_frames(log: Path, out: Path, format_: Any, kind: str, vehicle: str = "", name: str = "") -> int:
    """Write the frames from one sonar in a survey format; return the number of frames.

    ``format_`` is the module that implements the format with ``head`` and ``ping``. ``kind`` is the kind of sonar;
    ``vehicle`` and ``name`` select one sonar if the log has several.
    """
    found = read(log)
    wanted = FRAME_KINDS.index(kind)
    have = []
    for topic, series in sorted(found.series.items()):
        if topic.startswith("/sonar/") and len(series.records) and series.records["kind"][0] == wanted:
            have.append(tuple(topic.split("/")[2:4]))
    mine = [(b, n) for b, n in have if vehicle in ("", b) and name in ("", n)]
    if len(mine) != 1:
        description = ", ".join(f"{b} {n}" for b, n in have) or "none"
        what = "several sonars of this kind" if mine else "no matching sonar of this kind"
        raise LogError(f"{log} has {what}: select one with --vehicle and --sonar; available: {description}")
    times = found.series["/sonar/" + "/".join(mine[0])].time_ns
    period = float(np.median(np.diff(times))) * 1e-9 if len(times) > 1 else 0.0
    origin = Origin(*json.loads(found.metadata.get("origin", "[0, 0]")))
    written = 0
    try:
        with out.open("wb") as file, usable(log):
            for frame in frames_of(log, *mine[0]):
                if not written:
                    file.write(format_.file_header(frame, origin))
                file.write(format_.ping(frame, origin, period))
                written += 1
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None
    return written


def _csv_cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _write(folder: Path, topic: str, header: list[str], rows: Any) -> str:
    name = topic.strip("/").replace("/", ".") + ".csv"
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return name
