"""Knowledge of a program in a run of the exam: facts before the run, and tables of measurements.

Neither contains the truth. Times are those that the instruments report, in s; lengths are in m, angles in rad.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.log import Log
from wavesim_sdk.tables import RECEPTION, SENT, Outcome
from wavesim_studies.exam.scenario import Scenario
from wavesim_studies.navigation.logs import valid_values
from wavesim_world.config import BodyConfig, LoadedConfig
from wavesim_world.config.sensors import DvlConfig
from wavesim_world.instruments import HEADING_SIGMA, PRESSURE_SIGMA, RATE_SIGMA, SPEED_SIGMA, TILT_SIGMA
from wavesim_world.ocean.water import depth_of_pressure

__all__ = ["MeasurementTable", "exam_facts", "measurement_tables", "timing_sigma"]


@dataclass(frozen=True)
class MeasurementTable:
    """Table of measurements: the names of its columns, and its rows (N, columns). The first columns may be texts."""

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def column(self, name: str) -> Any:
        """Return a column as an array."""
        k = self.columns.index(name)
        return np.array([row[k] for row in self.rows])


def timing_sigma(transducer: Any) -> float:
    """Return the standard deviation in s of the arrival times that a transducer reports."""
    return float(np.hypot(transducer.timing_noise, transducer.timing_resolution / 12.0**0.5))


def bodies(loaded: LoadedConfig) -> dict[str, BodyConfig]:
    """Return the bodies of a configuration by name."""
    return {b.name: b for b in loaded.config.fleet.bodies}


def exam_facts(scenario: Scenario, level: str, seed: int, loaded: LoadedConfig) -> dict[str, Any]:
    """Return the facts that a program may know before the run."""
    settings, vehicles, nodes = scenario.settings(level), {}, {}
    for name, body in bodies(loaded).items():
        t = loaded.transducer(body)
        place = [round(float(body.position[k] + t.position[k]), 6) for k in range(3)] if t is not None else None
        if body.program is None:
            if t is not None:
                nodes[name] = {"position": place, **_signals(t), "timing_sigma": timing_sigma(t)}
            continue
        error = scenario.start_errors(level, seed, name)
        vehicles[name] = {
            "scored": name in scenario.vehicles,
            "start": [round(float(body.position[k]) + error[k], 3) for k in range(2)],
            "start_sigma": scenario.start_sigma(level),
            "transducer": list(t.position) if t is not None else None,
            **({} if t is None else {**_signals(t), "timing_sigma": timing_sigma(t)}),
            "head": _head(t),
            "instruments": [
                {"name": i.name, "type": i.type, "rate": i.parameters.rate, "position": list(i.parameters.position)}
                for i in loaded.suite_by_name(name, body.model)
            ],
        }
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "level": level,
        "seed": seed,
        "digest": scenario.digest,
        "duration": scenario.duration,
        "requirement": scenario.requirement,
        "score_from": scenario.score_from,
        "knowledge": list(scenario.knowledge),
        "sound_speed": loaded.config.acoustics.sound_speed,
        "prior": {k: getattr(settings, k) for k in settings.__dataclass_fields__ if k != "adaptive"},
        "noise": {
            "heading": HEADING_SIGMA,
            "roll_pitch": TILT_SIGMA,
            "rates": RATE_SIGMA,
            "speedlog": SPEED_SIGMA,
            "pressure": PRESSURE_SIGMA,
            "dvl_beam": _dvl_sigma(loaded, scenario),
        },
        "vehicles": vehicles,
        "nodes": nodes,
    }


def dvl_of(loaded: LoadedConfig, vehicle: str) -> DvlConfig | None:
    """Return the configuration of the first DVL of a vehicle, or None if it has none."""
    suite = loaded.suite_by_name(vehicle, bodies(loaded)[vehicle].model)
    return next((p for i in suite if isinstance(p := i.parameters, DvlConfig)), None)


def _dvl_sigma(loaded: LoadedConfig, scenario: Scenario) -> float | None:
    dvl = dvl_of(loaded, scenario.vehicles[0])
    return None if dvl is None else dvl.bottom_sigma


def _head(t: Any) -> dict[str, Any] | None:
    if t is None or t.head is None:
        return None
    return {"hydrophones": [list(h.position) for h in t.head.hydrophone], "timing_sigma": t.head.timing_noise}


def _signals(t: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if t.query:
        found |= {"query": t.query, "reply": t.reply, "turn_around": t.turn_around}
    if t.pinger is not None:
        p = t.pinger
        found["pinger"] = {"frequency": p.frequency, "period": p.period, "offset": p.offset}
    return found


# ------------------------------------------------------------------ measurements

#: columns of the values of each type of instrument
COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ahrs": (("roll", "pitch", "heading", "rates"), ("roll", "pitch", "heading", "p", "q", "r")),
    "speedlog": (("v_FB_B",), ("u", "v", "w")),
    "dvl": (("bottom",), ("u", "v", "w")),
}


def measurement_tables(log: Log, loaded: LoadedConfig, scenario: Scenario) -> dict[str, MeasurementTable]:
    """Return the measurements of a run: one table for each instrument, ``ranges``, ``directions`` and ``one-way``."""
    found = {}
    for name, body in bodies(loaded).items():
        if body.program is None:
            continue
        types = {i.name: i.type for i in loaded.suite_by_name(name, body.model)}
        for instrument, series in log.sensors(name).items():
            table = _instrument(f"{name}-{instrument}", types[instrument], valid_values(series), loaded)
            if table is not None:
                found[table.name] = table
    for table in (*_round_trips(log, loaded), _one_way(log, loaded, scenario)):
        if table.rows:
            found[table.name] = table
    return found


def _instrument(name: str, type_: str, values: Any, loaded: LoadedConfig) -> MeasurementTable | None:
    times = values["time_ns"] * 1e-9
    if type_ in ("ctd", "pressure"):
        depth = depth_of_pressure(loaded.config.world, values["pressure"])
        return MeasurementTable(name, ("time", "depth"), list(zip(times.tolist(), depth.tolist(), strict=True)))
    if type_ not in COLUMNS:
        return None
    fields, columns = COLUMNS[type_]
    table = np.concatenate([times[:, None], *(values[f].reshape(len(times), -1) for f in fields)], axis=1)
    table = table[np.isfinite(table).all(axis=1)]
    return MeasurementTable(name, ("time", *columns), [tuple(row) for row in table.tolist()])


def _round_trips(log: Log, loaded: LoadedConfig) -> tuple[MeasurementTable, MeasurementTable]:
    """Return the ranges from round trips, and the directions from USBL heads."""
    names, known = {row: b["name"] for row, b in log.bodies.items()}, bodies(loaded)
    sent = log.get("/acoustics/sent", SENT).records
    asked = {int(r["id"]): (int(r["source"]), int(r["clock_ns"]) * 1e-9) for r in sent}
    ranges, directions = [], []
    for r in heard(log):
        source, receiver = names[int(r["source"])], names[int(r["receiver"])]
        if not np.isfinite(r["measured"]) or known[receiver].program is None or int(r["query"]) not in asked:
            continue
        if asked[int(r["query"])][0] != int(r["receiver"]):
            continue
        time = int(r["reported_ns"]) * 1e-9
        ranges.append((receiver, source, time, asked[int(r["query"])][1], float(r["measured"])))
        if np.isfinite(r["azimuth"]) and np.isfinite(r["elevation"]):
            directions.append((receiver, source, time, float(r["azimuth"]), float(r["elevation"])))
    return (
        MeasurementTable("ranges", ("vehicle", "node", "time", "query_time", "range"), ranges),
        MeasurementTable("directions", ("vehicle", "node", "time", "azimuth", "elevation"), directions),
    )


def _one_way(log: Log, loaded: LoadedConfig, scenario: Scenario) -> MeasurementTable:
    """Return the receptions of pings whose times of emission are known: from nodes to vehicles, from vehicles to nodes,
    and between vehicles. Each time is a reading of the clock of its own node.
    """
    names = {row: b["name"] for row, b in log.bodies.items()}
    pingers = {n for n, b in bodies(loaded).items() if (t := loaded.transducer(b)) is not None and t.pinger is not None}
    movers = {n for n, b in bodies(loaded).items() if b.program is not None}
    sent = log.get("/acoustics/sent", SENT).records
    emitted = {int(r["id"]): int(r["clock_ns"]) * 1e-9 for r in sent if r["query"] == 0 and r["request"] == 0}
    rows = []
    for r in heard(log):
        source, receiver = names[int(r["source"])], names[int(r["receiver"])]
        stations = source in scenario.vehicles  # nodes record the pings of scored vehicles only
        if source not in pingers or int(r["id"]) not in emitted or not (receiver in movers or stations):
            continue
        begin, end = emitted[int(r["id"])], int(r["reported_ns"]) * 1e-9
        rows.append((source, receiver, begin, end, loaded.config.acoustics.sound_speed * (end - begin)))
    return MeasurementTable("one-way", ("sender", "receiver", "sent", "received", "length"), rows)


def heard(log: Log) -> Any:
    """Return the records of all receptions."""
    records = log.get("/acoustics/reception", RECEPTION).records
    return records[records["outcome"] == Outcome.HEARD]


def write_tables(tables: dict[str, MeasurementTable], folder: Path) -> list[Path]:
    """Write the tables as CSV files, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for table in tables.values():
        path = folder / f"{table.name}.csv"
        lines = [",".join(table.columns)]
        lines += [",".join(x if isinstance(x, str) else f"{x:.9g}" for x in row) for row in table.rows]
        path.write_text("\n".join(lines) + "\n")
        paths.append(path)
    return paths


def as_floats(table: MeasurementTable | None, *columns: str) -> Floats:
    """Return some columns of a table as an array (N, columns); it is empty without a table."""
    if table is None or not table.rows:
        return np.zeros((0, len(columns)))
    return np.stack([table.column(c).astype(float) for c in columns], axis=1)
