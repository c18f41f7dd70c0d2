"""Odin's sea trial: its recorded commands in a live server, compared with the track of its author's simulator."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import run_trial
from wavesim_sdk.frames import euler
from wavesim_sdk.log import read
from wavesim_sdk.tables import ESTIMATE, STATE
from wavesim_server.resources import remove_leftovers

pytestmark = [pytest.mark.data, pytest.mark.system, pytest.mark.xdist_group("vessels"), pytest.mark.timeout(240)]

#: columns: rpm %, nozzle %, bucket % to port, then to starboard; the nozzles turn by 27 deg, the other way round
MAPS = {
    "port": "1*0.01",
    "starboard": "4*0.01",
    "port-angle": "2*-0.004712389",
    "starboard-angle": "5*-0.004712389",
    "port-deflector": "3*0.01",
    "starboard-deflector": "6*0.01",
}
IDLE = 1e-5  #: %: 0 would stop the engine, which idled at 400 rpm
APART = 3000.0
VESSEL = """<vehicle name="{model}" model="{model}" position="0 {east} 0 m" client="required" truth="none">
<program run="recorded.py" period="10 ms" options="--commands commands.txt --rate 100 {maps} {more}"/></vehicle>"""
TRIAL = """<wavesim name="{name}"><time step="5 ms" duration="57 s" pace="fast"/><world density="1000 kg/m3">
<wind air_density="1.204 kg/m3"/><bed depth="9000 m"/></world><fleet>{fleet}</fleet></wavesim>"""


def test_odins_sea_trial_through_a_live_server(data_dir: Path, root: Path, tmp_path: Path) -> None:
    """Her author's model follows his simulator's track to 1 % of the way; the shipped one stays upright and within a third of it."""
    lines = (data_dir / "odin/sea-trial-actuators-1.txt").read_text().splitlines()
    commands = np.array([[float(x) for x in line.strip().strip(",").split(",")[:6]] for line in lines if line.strip()])
    commands[:, [0, 3]] = np.maximum(commands[:, [0, 3]], IDLE)
    np.savetxt(tmp_path / "commands.txt", commands)
    shutil.copy(data_dir / "reference/odin_sea-trial-actuators-1.csv", tmp_path / "track.csv")
    for program in ("recorded.py", "program.py"):
        shutil.copy(root / "examples/onboard" / program, tmp_path)
    maps = " ".join(f"--map {which}={column}" for which, column in MAPS.items())
    beside = "--track track.csv --north x --east y"
    fleet = VESSEL.format(model="odin-hilsim", east=0.0, maps=maps, more=beside) + VESSEL.format(
        model="odin", east=APART, maps=maps, more=""
    )
    name = f"sea{os.getpid()}"
    (tmp_path / "config.xml").write_text(TRIAL.format(name=name, fleet=fleet))
    done = run_trial(tmp_path / "config.xml", tmp_path, name, timeout=200)
    assert done.returncode == 0, done.stderr
    assert remove_leftovers(name) == []
    log = read(tmp_path / name / "run.mcap")
    reference = np.loadtxt(tmp_path / "track.csv", delimiter=",", skiprows=1)
    reference = reference[reference[:, 0] <= 57.0]
    way = np.hypot(*np.diff(reference[:, 1:3], axis=0).T).sum()
    for model, east, share in (("odin-hilsim", 0.0, 0.01), ("odin", APART, 0.33)):
        state = log.get(f"/state/{model}", STATE)
        t, p = state.time_ns * 1e-9, state.records["p_WB_W"] - (0.0, east, 0.0)
        at = np.array([np.interp(reference[:, 0], t, p[:, k]) for k in (0, 1)])
        away = np.hypot(*(at - reference[:, 1:3].T))
        assert away.max() < share * way, (model, away.max(), way)
        assert np.abs(euler(state.records["q_WB"])[:, :2]).max() < np.radians(15.0), "upright"
    believed = log.get("/estimate/odin-hilsim", ESTIMATE)
    assert len(believed.records) > 500, "and the track stands beside it"


def test_a_model_boat_beside_its_measured_track(data_dir: Path, root: Path, tmp_path: Path) -> None:
    """Sookshma's recorded rudder through a live server, beside the odometry of the boat: within 1.5 m for ten seconds, 5 m apart
    after 25 (she turns too fast, see docs/models.md). The distance in the table is that between log and record."""
    import csv

    record = list(csv.DictReader((data_dir / "sookshma/run-b/sookshma_00_odometry.csv").open()))
    rudder = list(csv.DictReader((data_dir / "sookshma/run-b/mav_rudder_command.csv").open()))
    begin = int(record[0]["t_ns"])
    heading = euler(np.array([[float(record[0][q]) for q in ("qw", "qx", "qy", "qz")]]))[0, 2]
    at = np.array([int(k["t_ns"]) - begin for k in record]) * 1e-9
    east, north = (np.array([float(k[axis]) - float(record[0][axis]) for k in record]) for axis in ("y", "x"))
    c, s = np.cos(heading), np.sin(heading)  # begins at the origin, heading north
    track = np.stack([at, c * north + s * east, c * east - s * north], axis=1)
    np.savetxt(tmp_path / "track.csv", track, delimiter=",", header="t,north,east", comments="")
    drag = 0.5 * 1025.0 * 0.01 * 0.5**2  # 800 rpm hold about 0.5 m/s in the record
    lines = [((int(k["t_ns"]) - begin) * 1e-9, float(k["data"]), drag) for k in rudder]
    lines[0] = 0.0, *lines[0][1:]
    np.savetxt(tmp_path / "commands.csv", lines, delimiter=",", header="t,rudder,thrust", comments="")
    for program in ("recorded.py", "program.py"):
        shutil.copy(root / "examples/onboard" / program, tmp_path)
    library = (root / "world/wavesim_world/models/surface.xml").read_text()
    model = re.search(r'<model name="sookshma".*?</model>', library, re.DOTALL)
    assert model is not None
    own = (
        model[0]
        .replace('"sookshma"', '"boat"')
        .replace(
            "<fin ",
            '<thruster name="t" position="0 0 0 m" direction="1 0 0" law="force" minimum="0" maximum="9" lag="0 s"/><fin ',
        )
    )
    orders = "--map rudder=rudder --map t=thrust --track track.csv"
    name = f"boat{os.getpid()}"
    (tmp_path / "config.xml").write_text(
        f'<wavesim name="{name}"><time step="10 ms" duration="25 s" pace="fast"/><world><bed depth="5 m"/></world>'
        f'<models>{own}</models><fleet><vehicle name="boat" model="boat" position="0 0 0 m" speed="0.5 m/s" client="required" truth="none">'
        f'<program run="recorded.py" period="20 ms" options="--commands commands.csv {orders}"/></vehicle></fleet></wavesim>'
    )
    done = run_trial(tmp_path / "config.xml", tmp_path, name, timeout=200)
    assert done.returncode == 0, done.stderr
    assert remove_leftovers(name) == []
    log = read(tmp_path / name / "run.mcap")
    state = log.get("/state/boat", STATE)
    t, p = state.time_ns * 1e-9, state.records["p_WB_W"]
    away = np.hypot(*(np.interp(t, track[:, 0], track[:, k]) - p[:, k - 1] for k in (1, 2)))
    assert away[t < 10.0].max() < 1.5 and 3.0 < away[-1] < 6.0
    vehicle = json.loads((tmp_path / name / "table.json").read_text())["vehicles"][0]
    assert vehicle["navigation_rms_m"] == pytest.approx(np.sqrt(np.mean(away**2)), rel=0.02)
