"""Simulation of one case of the exam: a scenario at a level with a seed."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.log import Log, read
from wavesim_sdk.tables import SENT, STATE
from wavesim_studies.exam.facts import MeasurementTable, bodies, exam_facts, measurement_tables
from wavesim_studies.exam.live import FACTS
from wavesim_studies.exam.scenario import Scenario
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_studies.navigation.track_files import read_track
from wavesim_world.config import LoadedConfig, allow_files, load

__all__ = ["ExamRun", "simulate"]

#: source level in dB re 1 uPa at 1 m of an omnidirectional source of 1 W (Urick 1983, section 4.2)
ONE_WATT_DB = 170.8


@dataclass(frozen=True)
class ExamRun:
    """One simulated case: its facts and measurements, and the truth."""

    scenario: Scenario
    level: str
    seed: int
    loaded: LoadedConfig
    log: Log
    facts: dict[str, Any]
    tables: dict[str, MeasurementTable]

    @property
    def name(self) -> str:
        """Name of the case, which is also the name of its folder."""
        return f"{self.scenario.name}-{self.level}-{self.seed}"

    def truth(self, vehicle: str) -> PoseTrack:
        """Return the true track of a vehicle."""
        return read_track(self.log, "", vehicle, true=True)

    @property
    def truth_hash(self) -> str:
        """Hash of the true states of the scored vehicles. It is the same for each filter beside the pilot."""
        found = hashlib.sha256()
        for vehicle in self.scenario.vehicles:
            series = self.log.get(f"/state/{vehicle}", STATE)
            found.update(series.time_ns.tobytes() + np.ascontiguousarray(series.records).tobytes())
        return found.hexdigest()

    def ping_energy(self, vehicle: str) -> float:
        """Return the acoustic energy in J that a vehicle has emitted. Each source counts as omnidirectional."""
        rows = {row for row, b in self.log.bodies.items() if b["name"] == vehicle}
        sent = self.log.get("/acoustics/sent", SENT).records
        mine = sent[np.isin(sent["source"], list(rows)) & (sent["outcome"] == 0)]
        return float(np.sum(10.0 ** ((mine["source_level"] - ONE_WATT_DB) / 10.0) * mine["duration"]))


def simulate(scenario: Scenario, level: str, seed: int, program: Path | None = None) -> ExamRun:
    """Simulate a case in this process. ``program`` replaces the on-board program of the scored vehicles."""
    from wavesim_server import Trial

    allowed = [] if program is None else [program.resolve().parent]
    with tempfile.TemporaryDirectory(prefix="wavesim-exam-") as folder, allow_files(*allowed):
        path = scenario.write(Path(folder), level, seed, program)
        loaded = load(path)
        facts = exam_facts(scenario, level, seed, loaded)
        (Path(folder) / FACTS).write_text(json.dumps(facts, indent=2) + "\n")
        with Trial(path, Path(folder) / "out", seed=scenario.run_seed(level, seed)) as trial:
            trial.run()
        log = read(trial.log)
        tables = measurement_tables(log, loaded, scenario)
    return ExamRun(scenario, level, seed, loaded, log, facts, tables)


def helpers(run: ExamRun) -> tuple[str, ...]:
    """Return the vehicles with a program that are not scored."""
    return tuple(n for n, b in bodies(run.loaded).items() if b.program is not None and n not in run.scenario.vehicles)
