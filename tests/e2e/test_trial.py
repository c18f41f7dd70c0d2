"""The demonstration trial, shortened: real processes, real UDP, real shared memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from tests.conftest import CLI, wavesim
from tests.readers import READERS, compare
from wavesim_sdk.log import Log, read
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import ACTUATION, ESTIMATE, RECEPTION, STATE, Outcome
from wavesim_server.resources import remove_leftovers
from wavesim_world.config import load

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("trial"), pytest.mark.timeout(300)]


def run_trial(config: Path, out: Path, name: str, *arguments: str, **machine: str) -> tuple[Log, dict[str, Any], str]:
    """(log, table, what it printed) of a trial; ``machine`` is added to the environment."""
    done = subprocess.run(
        [*CLI, "trial", str(config), "--out", str(out), "--name", name, "--port", "0", "--quiet", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, **machine},
    )
    assert done.returncode == 0, done.stderr
    assert remove_leftovers(name) == [], "nothing is left in shared memory"
    folder = out / name
    log = read(folder / "run.mcap")
    assert log.metadata["server"] == name, "the name of the server, not that of the configuration"
    return log, json.loads((folder / "table.json").read_text()), done.stdout


@pytest.fixture(scope="module")
def trial(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Log, dict[str, Any], str]:
    return run_trial(root / "config.xml", tmp_path_factory.mktemp("trial"), f"full{os.getpid()}", "--duration", "300")


@pytest.fixture(scope="module")
def short(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Log:
    """The log of its first 40 s."""
    return run_short(root, tmp_path_factory.mktemp("short"))


def run_short(root: Path, out: Path, **machine: str) -> Log:
    more = ("--duration", "40", "--no-plots", "--seed", "7")
    return run_trial(root / "config.xml", out, f"short{os.getpid()}", *more, **machine)[0]


def test_lbl_navigation_holds_while_dead_reckoning_drifts(trial: tuple[Log, dict[str, Any], str]) -> None:
    log, table, text = trial
    for vehicle in table["vehicles"][:2]:
        assert vehicle["navigation_max_m"] < 3.0
        assert vehicle["dead_reckoning_end_m"] > 20.0
        assert vehicle["name"] in text
        _, nav, dead = log.navigation_errors(vehicle["name"])
        assert len(nav) > 2900 and nav.max() < 3.0 and dead[-1] > 20.0


def test_the_table_counts_signals(trial: tuple[Log, dict[str, Any], str]) -> None:
    _, table, _ = trial
    by_name = {v["name"]: v for v in table["vehicles"]}
    assert list(by_name) == ["lauv", "remus", "jolner", "lbl1", "lbl2", "lbl3", "lbl4"]
    assert by_name["lauv"]["sent"] == by_name["remus"]["sent"] == 75
    assert all(by_name[f"lbl{k}"]["sent"] == 150 for k in range(1, 5)), "every query of both vehicles is answered"
    assert by_name["lauv"]["ranges"] == pytest.approx(300, abs=8)
    assert by_name["lauv"]["lost"] == {} and set(by_name["jolner"]["lost"]) == {"out_of_band"}
    assert by_name["jolner"]["heard"] == 300 and by_name["jolner"]["lost"]["out_of_band"] == pytest.approx(450, abs=8)
    assert 0.01 < by_name["lauv"]["range_error_rms_m"] < 0.06, "50 us of timing noise: 75 mm / 2 / sqrt 1"
    assert 300 < by_name["lauv"]["distance_m"] < 550


def test_vehicles_follow_their_missions(trial: tuple[Log, dict[str, Any], str], root: Path) -> None:
    log = trial[0]
    bodies = {b.name: b for b in load(root / "config.xml").config.fleet.vehicle}
    for name in ("lauv", "remus"):
        track = log.get(f"/state/{name}", STATE).records["p_WB_W"]
        first = bodies[name].waypoint[0]
        assert np.hypot(track[:, 0] - first.north, track[:, 1] - first.east).min() < 12.0
    boat = log.get("/state/jolner", STATE).records["p_WB_W"][:2800]
    assert np.abs(boat[:, 0]).max() < 1.0 and boat[-1, 1] > 70.0, "along its first leg, straight"
    assert abs(log.get("/state/lauv", STATE).records["p_WB_W"][2500:2900, 2] - 12.0).max() < 0.5, "depth is held"
    speed = log.get("/state/remus", STATE).records["v_FB_B"][600:700, 0]
    assert speed == pytest.approx(1.5, abs=0.1)


def test_the_log_holds_everything(trial: tuple[Log, dict[str, Any], str]) -> None:
    log = trial[0]
    assert log.complete
    for name in ("lauv", "remus", "jolner", "lbl1"):
        assert len(log.get(f"/state/{name}", STATE).records) == 3001
        assert len(log.get(f"/actuation/{name}", ACTUATION).records) == 3001
    assert len(log.get("/estimate/lauv", ESTIMATE).records) == pytest.approx(3000, abs=3)
    for sensor, count in (("ctd", 3001), ("ahrs", 3001), ("speedlog", 3001), ("echosounder", 1501)):
        assert len(log.get(f"/sensor/lauv/{sensor}", SENSORS[sensor]).records) == count
    assert json.loads(log.metadata["versions"])["numba"]
    assert log.metadata["seed"] == "7" and "lbl4" in log.metadata["configuration"]
    assert [m["state"] for _, m in log.json["/run"]] == ["running", "ended"]


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_open_the_log_and_find_the_same(short: Log, reader: Callable[..., Any]) -> None:
    assert compare(short.path, reader) == short.messages


def test_emulators_followed_the_formulas(trial: tuple[Log, dict[str, Any], str], root: Path) -> None:
    from wavesim_world.ocean.bed import sea_bed
    from wavesim_world.ocean.water import Water

    log, loaded = trial[0], load(root / "config.xml")
    ctd = log.get("/sensor/lauv/ctd", SENSORS["ctd"]).records
    p = log.get("/state/lauv", STATE).records["p_WB_W"]
    water = Water(loaded)
    assert np.std(ctd["temperature"] - water.temperature(p)) == pytest.approx(0.002, rel=0.1)
    assert np.std(ctd["pressure"] - water.pressure(p)) == pytest.approx(0.01, rel=0.1)
    assert np.std(ctd["conductivity"] - water.conductivity(p)) == pytest.approx(0.0003, rel=0.1)
    echo = log.get("/sensor/lauv/echosounder", SENSORS["echosounder"]).records
    expected = sea_bed(loaded)(p[::2, 0], p[::2, 1]) - p[::2, 2]
    assert np.std(echo["range"] - expected) == pytest.approx(0.02, rel=0.1)


class Track:
    """An independent reconstruction of a transducer's track from the logged states: cubic Hermite for the
    position, spherical interpolation for the attitude."""

    def __init__(self, log: Log, name: str, lever: tuple[float, ...]) -> None:
        series = log.get(f"/state/{name}", STATE)
        self.t = series.time_ns * 1e-9
        s = series.records.copy()
        self.rotations = Rotation.from_quat(np.ascontiguousarray(s["q_WB"][:, [1, 2, 3, 0]]))
        self.p, self.v = s["p_WB_W"], self.rotations.apply(np.ascontiguousarray(s["v_WB_B"]))
        self.slerp = Slerp(self.t, self.rotations)
        self.lever = lever

    def __call__(self, time: Any) -> Any:
        k = np.clip(np.searchsorted(self.t, time, side="right") - 1, 0, len(self.t) - 2)
        h = self.t[k + 1] - self.t[k]
        x = ((time - self.t[k]) / h)[:, None]
        h = h[:, None]
        a = (1 + 2 * x) * (1 - x) ** 2 * self.p[k] + x * (1 - x) ** 2 * h * self.v[k]
        b = x**2 * (3 - 2 * x) * self.p[k + 1] + x**2 * (x - 1) * h * self.v[k + 1]
        return a + b + self.slerp(time).apply(self.lever)


@pytest.mark.parametrize(
    "tick", ["4 ms", pytest.param("1 ms", marks=pytest.mark.long), pytest.param("20 ms", marks=pytest.mark.long)]
)
def test_every_exchange_equals_its_two_true_legs(root: Path, tmp_path: Path, tick: str) -> None:
    """c (t - turn-around) is the way out plus the way back to 1.5 mm, turns included, at any tick."""
    text, seconds = (root / "config.xml").read_text().replace('step="4 ms"', f'step="{tick}"'), 60
    first = '<waypoint north="-120 m" east="-120 m"'
    assert first in text
    sharp = (
        '<waypoint north="-165 m" east="-145 m" depth="12 m" speed="1.4 m/s"/><waypoint north="-100 m" east="-210 m"'
    )
    text = text.replace(first, sharp)  # turns soon
    text = text.replace('state_rate="10 Hz"', 'state_rate="20 Hz"').replace("<fleet>", _quiet_models(root) + "<fleet>")
    for sensor in ("ctd", "echosounder", "ahrs", "speedlog"):
        text = text.replace(f"<{sensor} rate", f'<{sensor} noise="0" rate')
    text = text.replace('model="lauv"', 'model="lauv-quiet"').replace('model="remus100"', 'model="remus-quiet"')
    (tmp_path / "examples").symlink_to(root / "examples")
    linked = "--files", str(root / "examples")
    config = tmp_path / "config.xml"
    config.write_text(text)
    loaded = load(config)
    log, _, _ = run_trial(config, tmp_path, f"legs{os.getpid()}", *linked, "--duration", str(seconds), "--no-plots")
    pairs = exchanges(log)
    assert len(pairs) > 1.8 * seconds
    assert (pairs["reported_ns"] == pairs["heard_ns"]).all(), "noise is off"
    levers = {b.name: (b.transducer or loaded.model(b.model).transducer).position for b in loaded.config.fleet.bodies}  # type: ignore[union-attr]
    tracks = {row: Track(log, b["name"], levers[b["name"]]) for row, b in log.bodies.items()}
    worst = 0.0
    for row in set(pairs["row"].tolist()):
        for beacon in set(pairs["beacon"].tolist()):
            mine = pairs[(pairs["row"] == row) & (pairs["beacon"] == beacon)]
            asked, heard = mine["asked_ns"] * 1e-9, mine["heard_ns"] * 1e-9
            vehicle, buoy = tracks[row], tracks[beacon]
            received = asked + mine["out"] / 1500.0
            out = np.linalg.norm(buoy(received) - vehicle(asked), axis=1)
            replied = received + mine["turn_ns"] * 1e-9
            back = np.linalg.norm(vehicle(heard) - buoy(replied), axis=1)
            measured = 1500.0 * (mine["reported_ns"] - mine["asked_ns"] - mine["turn_ns"]) * 1e-9
            assert (mine["turn_ns"] == 15_000_000).all()
            worst = max(worst, float(np.abs(measured - out - back).max()))
    assert worst < 1.5e-3, f"worst error {worst * 1e3:.3f} mm"
    heading = np.unwrap(np.arctan2(tracks[0].rotations.as_matrix()[:, 1, 0], tracks[0].rotations.as_matrix()[:, 0, 0]))
    assert np.ptp(heading) > np.radians(80.0), "the run includes turns"


def exchanges(log: Log) -> Any:
    """Every completed query and reply: an array of records.

    Columns: ``row`` of the asker, ``beacon`` row, ``query`` and ``reply`` signal numbers, ``asked_ns``, ``heard_ns`` (exact),
    ``reported_ns`` (by the instrument), ``turn_ns`` (from the query's arrival to the reply), ``out`` and
    ``back``: true lengths of the legs in m.
    """
    kind = np.dtype(
        [(n, "i8") for n in ("row", "beacon", "query", "reply", "asked_ns", "heard_ns", "reported_ns", "turn_ns")]
        + [("out", "f8"), ("back", "f8")]
    )
    receptions = log.get("/acoustics/reception", RECEPTION).records
    heard = receptions[receptions["outcome"] == Outcome.HEARD]
    outward = {(int(r["id"]), int(r["receiver"])): r for r in heard}
    found = []
    for r in heard:
        first = outward.get((int(r["query"]), int(r["source"]))) if r["query"] else None
        if first is None or r["receiver"] != first["source"]:
            continue
        turn = int(r["emission_ns"]) - int(first["arrival_ns"])
        found.append(
            (
                r["receiver"],
                r["source"],
                r["query"],
                r["id"],
                first["emission_ns"],
                r["arrival_ns"],
                r["reported_ns"],
                turn,
                first["range"],
                r["range"],
            )
        )
    return np.array(found, kind)


def _quiet_models(root: Path) -> str:
    """The AUV models of the library without timing noise."""
    text = (root / "world/wavesim_world/models/auv.xml").read_text()
    inner = text[text.index("<models>") : text.index("</models>") + len("</models>")]
    inner = inner.replace('timing_noise="50 us"', "")
    return inner.replace('name="lauv"', 'name="lauv-quiet"').replace('name="remus100"', 'name="remus-quiet"')


#: the first 40 s of the demonstration trial, seed 7, on any machine; it changes when what is computed changes, and then
#: on purpose
GOLDEN = "0bb62994eae6da96a99567feff8359b27b87211392304513314b9948b0a0f99c"
#: what chooses other code in NumPy, in its BLAS, and in the C library
SIMD = "AVX512F,AVX512CD,AVX512_SKX,AVX512_CLX,AVX512_CNL,AVX512_ICL,AVX512_SPR,AVX2,FMA3"
OLD_NUMPY = {"NPY_DISABLE_CPU_FEATURES": SIMD, "OPENBLAS_CORETYPE": "Nehalem", "PYTHONWARNINGS": "ignore"}
OLD_LIBC = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable"}


def test_one_seed_has_one_hash_on_every_machine(root: Path, tmp_path: Path, short: Log) -> None:
    """The second has the libraries of older processors, and shares the machine with a busy process."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        again = run_short(root, tmp_path / "b", **OLD_NUMPY, **OLD_LIBC)
    finally:
        busy.kill()
        busy.wait()
    assert again.content_hash == short.content_hash
    assert short.content_hash == GOLDEN, "what is computed has changed: if it should, this is the new hash"


def test_real_time_keeps_the_wall_clock(root: Path, tmp_path: Path) -> None:
    _, table, _ = run_trial(
        root / "config.xml", tmp_path, f"real{os.getpid()}", "--duration", "6", "--no-plots", "--realtime"
    )
    assert table["realtime_factor"] == pytest.approx(1.0, abs=0.1)
    assert table["vehicles"][0]["sent"] >= 1


def test_pictures_are_drawn(trial: tuple[Log, dict[str, Any], str]) -> None:
    folder = trial[0].path.parent
    for name in ("tracks", "navigation", "ctd", "motion"):
        data = (folder / f"{name}.png").read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 30_000


def path_of(first: Path) -> str:
    """The search path of this process, with another folder first."""
    return os.pathsep.join(filter(None, (str(first), os.environ.get("PYTHONPATH"))))


def test_time_does_not_run_before_the_emulators_are_ready(tmp_path: Path) -> None:
    """One that has claimed its table, and then takes its time: to compile, or because the machine is busy."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\n"
        "if 'trial' in sys.orig_argv:\n"
        "    from wavesim_emulators.sensor_bank import SensorBank\n"
        "    begin = SensorBank.__init__\n"
        "    SensorBank.__init__ = lambda *a, **b: (time.sleep(2.0), begin(*a, **b))[1]\n"
    )
    path = tmp_path / "config.xml"
    path.write_text(
        """<wavesim><time step="20 ms" duration="2 s" pace="fast"/><network port="0"/><fleet>
        <buoy name="b" model="buoy" position="0 0 5 m"><sensors><ctd rate="10 Hz"/></sensors></buoy></fleet></wavesim>"""
    )
    log, _, _ = run_trial(path, tmp_path, f"late{os.getpid()}", "--no-plots", PYTHONPATH=path_of(tmp_path))
    assert len(log.get("/sensor/b/ctd", SENSORS["ctd"]).records) == 21


def test_a_trial_with_a_frozen_body_says_so(tmp_path: Path) -> None:
    """A boat far below the surface: its linear restoring force is too large for the step, and its state diverges."""
    name = f"frozen{os.getpid()}"
    path = tmp_path / "config.xml"
    path.write_text(
        f'''<wavesim name="{name}"><time step="20 ms" duration="20 s" pace="fast"/><network port="0"/>
        <world><bed depth="5000 m"/></world><fleet>
        <vehicle name="wild" model="otter" position="0 0 1600 m" attitude="-53 19 -96 deg"/>
        <buoy name="tame" model="buoy" position="0 99 0 m"/></fleet></wavesim>'''
    )
    done = wavesim("trial", path, "--out", tmp_path, "--port", "0", "--quiet", "--no-plots", timeout=280)
    assert done.returncode == 13, done.stderr
    assert "the state diverged (NaN or infinity): wild at " in done.stderr
    assert "tame" not in done.stderr and "Traceback" not in done.stderr
    assert "wild         FROZEN" in done.stdout and "nan" not in done.stdout
    table = json.loads((tmp_path / name / "table.json").read_text())
    assert [v["distance_m"] is None for v in table["vehicles"]] == [True, False]
