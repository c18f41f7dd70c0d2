"""Snapshots: a restored simulation continues to the same bits, in the same process, in a branch and in a new process."""

from __future__ import annotations

import subprocess
import sys
import zlib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.errors import InvalidArgument, WaveSimError
from wavesim_server import Lab, Simulation, snapshots
from wavesim_server.snapshots import Snapshot
from wavesim_server.study import varied
from wavesim_world.config import load, load_text

TRIALS = Path(__file__).parents[2] / "examples" / "trials"

#: everything that has a memory: waves and gusts, drift, lines, contacts, sound on several paths, delayed replies,
#: instruments with latency, drop-outs and random walks
SCENE = """<wavesim name="scene"><time step="10 ms"/><shared vehicles="12"/>
<world><bed depth="40 m"/><current north="0.2 m/s"><drift speed="0.1 m/s" speed_deviation="0.05 m/s"/></current>
<wind speed="8 m/s" slow_deviation="1 m/s"/><waves height="1 m" peak="0.8 rad/s"/>
<obstacles><block position="60 0 20 m" size="4 20 40 m"/></obstacles></world>
<acoustics><multipath order="1"/></acoustics>
<fleet><sensors><ctd drop_out="0.3" latency="70 ms"/><imu rate="20 Hz"/><dvl/><ais mmsi="211000001"/></sensors>
<vehicle name="boat" model="jolner" position="0 30 0 m" client="none"/>
<vehicle name="auv" model="lauv" position="30 0 20 m" client="none" speed="1.5 m/s">
  <fault part="rudder-top" kind="stuck" at="2 s"/></vehicle>
<vehicle name="tug" model="lauv" position="0 0 10 m" client="none"/>
<vehicle name="fish" model="lauv" position="-25 0 10 m" client="none"/>
<buoy name="beacon" model="buoy" position="20 10 30 m">
<transducer threshold="60 dB" turn_around="15 ms" query="25 kHz" reply="27 kHz"><pinger frequency="26 kHz" period="2 s"/></transducer></buoy>
<line name="tow" length="28 m" diameter="12 mm" mass="95 g/m" stiffness="3 kN" segments="6"><end body="tug"/><end body="fish"/></line>
</fleet></wavesim>"""


def digest(lab: Simulation) -> str:
    """Return a hash of everything that a user can observe, and of the memory behind it."""
    d = sha256(lab.state().tobytes() + lab.actuation().tobytes() + lab.results.effort().tobytes())
    d.update(lab.results.surroundings(lab.time_s).tobytes() + lab.results.lines().tobytes())
    for array in (*lab.weather_model.weather, *lab.line_system.arrays, lab.channel.medium.signals):
        d.update(np.ascontiguousarray(array).tobytes())
    if isinstance(lab, Lab):
        for _, bank in sorted(lab._banks.by_type.items()):
            d.update(bank.table.tobytes())
    for records in lab.take_signals():
        d.update(records.tobytes())
    d.update(repr((lab.take_meetings(), lab.line_system.take_breaks(), lab.frozen_bodies, lab.tick)).encode())
    return d.hexdigest()


def act(lab: Lab, ticks: int) -> str:
    """Command, disturb and advance a scene in a way that depends only on its state and time."""
    for k in range(ticks // 50):
        for name in lab.names:
            row, phase = lab.row(name), 0.37 * lab.tick + 3.0 * k
            for position, a in enumerate(lab.fleet.actuators(row)):
                values: list[float | None] = [None] * len(lab.fleet.actuators(row))
                values[position] = a.rest_value + np.sin(phase + position)
                lab.command(row, values)
        transmitters = [r for r in lab.rows if lab.occupants[r].transducer is not None]
        for row in transmitters[k % 2 :: 2]:
            lab.ping(row, 25e3)
        if k % 4 == 1:
            lab.set_weather(wind_speed=6.0 + 0.01 * lab.tick, current_east=0.001 * k)
        lab.advance(50)
    return digest(lab)


@pytest.fixture
def scene() -> Lab:
    lab = Lab(SCENE, seed=11)
    lab.enter("heavy", "", (10.0, -30.0, 5.0), variant=varied("lauv", mass=19.0))
    lab.enter("late", "lauv", (10.0, -40.0, 5.0))
    lab.allocate(lab.row("boat"), np.ones((6, len(lab.occupants[lab.row("boat")].model.thruster))))
    lab.fail(lab.row("late"), "propeller", "frozen", 4.0)
    act(lab, 200)
    lab.leave(lab.row("late"))
    return lab


def test_restored_scene_continues_to_the_same_bits(scene: Lab) -> None:
    snapshot = scene.snapshot()
    first = act(scene, 400)
    scene.restore(snapshot)
    assert scene.tick == snapshot.tick == 200
    assert act(scene, 400) == first
    scene.restore(snapshot)
    scene.push(scene.row("auv"), (5.0, 0.0, 0.0))
    assert act(scene, 400) != first, "what if"


def test_snapshot_does_not_disturb_the_run(scene: Lab) -> None:
    snapshot = scene.snapshot()
    first = act(scene, 200)
    scene.restore(snapshot)
    for _ in range(3):
        scene.snapshot()
    assert act(scene, 200) == first


def test_branch_in_another_lab_and_reset_of_the_branch(scene: Lab, tmp_path: Path) -> None:
    scene.snapshot().write(tmp_path / "scene.snapshot")
    branch = Lab(SCENE, seed=5)
    branch.restore(Snapshot.read(tmp_path / "scene.snapshot"))
    assert branch.seed == 11 and branch.names == scene.names
    assert act(branch, 300) == act(scene, 300)
    scene.reset()
    branch.reset()
    assert act(branch, 100) == act(scene, 100)


def test_new_process_continues_to_the_same_bits(scene: Lab, tmp_path: Path) -> None:
    scene.snapshot().write(tmp_path / "scene.snapshot")
    (tmp_path / "scene.xml").write_text(SCENE)
    program = (
        "import sys; from tests.server.test_snapshots import *; lab = Lab(SCENE);"
        f"lab.restore(Snapshot.read({str(tmp_path / 'scene.snapshot')!r})); print(act(lab, 300))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert found.stdout.strip() == act(scene, 300)


@pytest.mark.parametrize("trial", sorted(p.stem for p in TRIALS.glob("*.xml") if p.stem != "real-water"))
def test_shipped_trials_continue_to_the_same_bits(trial: str) -> None:
    lab = Lab(TRIALS / f"{trial}.xml")
    for name in lab._occupants.reserved:
        if lab.row_of(name) is None:
            lab.enter(name)
    act(lab, 100)
    snapshot = lab.snapshot()
    first = act(lab, 200)
    lab.restore(snapshot)
    assert act(lab, 200) == first


def test_threads_do_not_change_a_restored_run() -> None:
    text = '<wavesim><shared vehicles="40"/></wavesim>'
    runs = [Simulation(load_text(text), threads=n) for n in (1, 2)]
    for sim in runs:
        sim.tick_executor.threads.min_bodies = 1
        for k in range(40):
            sim.command(sim.enter(f"auv{k}", "lauv", (0.0, 10.0 * k, 20.0)), {"propeller": 5.0})
    runs[0].advance(100)
    runs[1].restore(runs[0].snapshot())
    assert runs[1].tick_executor.threads.count == 2
    for sim in runs:
        sim.tick_executor.threads.min_bodies = 1
        sim.advance(100)
    assert digest(runs[0]) == digest(runs[1])


# -- completeness ------------------------------------------------------------------------------------


def contents(value: Any, seen: set[int]) -> bytes:
    """Return the contents of an object and of everything that it refers to."""
    if id(value) in seen:
        return b"again"
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).tobytes()
    if isinstance(value, (str, bytes, int, float, type(None), np.generic)):
        return repr(value).encode()
    seen.add(id(value))
    if isinstance(value, dict):
        return b"".join(repr(k).encode() + contents(v, seen) for k, v in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return b"".join(contents(v, seen) for v in value)
    return contents(vars(value), seen) if hasattr(value, "__dict__") else type(value).__name__.encode()


def test_what_a_snapshot_omits_does_not_change(scene: Lab) -> None:
    """The constants that a snapshot refers to by name are the same after a run that changes everything else."""
    names = snapshots.constants(scene)
    assert {"loaded", "world", "water", "bed", "model lauv" if "model lauv" in names else "library lauv"} <= set(names)
    before = {name: sha256(contents(value, set())).digest() for name, value in names.items()}
    act(scene, 400)
    after = {name: sha256(contents(value, set())).digest() for name, value in snapshots.constants(scene).items()}
    assert after == before


def test_every_changing_attribute_is_in_the_snapshot(scene: Lab) -> None:
    """Walk through all attributes of all objects of a simulation. Each one is stored, constant, or one of a few that
    the objects omit because they follow from the others.
    """
    omitted: set[str] = set()
    constant = {id(value) for value in snapshots.constants(scene).values()}
    seen: set[int] = set()

    def walk(value: Any) -> None:
        if id(value) in seen or id(value) in constant or isinstance(value, (np.ndarray, str, bytes, int, float)):
            return
        seen.add(id(value))
        if isinstance(value, dict):
            for v in (*value, *value.values()):
                walk(v)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for v in value:
                walk(v)
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("wavesim_server"):
            state = value.__getstate__() if value is not scene else None
            stored = vars(value) if not isinstance(state, dict) else state
            for name, v in vars(value).items():
                if name in (scene._OUTSIDE if value is scene else ()) or (name not in stored):
                    omitted.add(f"{type(value).__name__}.{name}")
                else:
                    walk(v)

    walk(scene)
    assert len(seen) > 100
    derived = {f"AcousticChannel.{n}" for n in snapshots_derived()}
    lab = {f"Lab.{n}" for n in ("_banks", "_imaging", "_instant_frames", "instruments", "tracks")}
    assert omitted == derived | lab | {"TickExecutor._state"}


def snapshots_derived() -> set[str]:
    return {"table", "_record_counts", "_totals", "_paths_dropped", "_emission_array", "_emission"}


def test_state_added_later_is_stored_without_further_code(scene: Lab) -> None:
    scene.weather_model.new_state = np.arange(3.0)  # type: ignore[attr-defined]
    snapshot = scene.snapshot()
    scene.weather_model.new_state[:] = 7.0  # type: ignore[attr-defined]
    scene.restore(snapshot)
    assert scene.weather_model.new_state.tolist() == [0.0, 1.0, 2.0]  # type: ignore[attr-defined]


def test_object_that_cannot_be_stored_is_named(scene: Lab) -> None:
    scene.weather_model.strange = lambda: 1  # type: ignore[attr-defined]
    with pytest.raises(InvalidArgument, match="cannot store"):
        scene.snapshot()


# -- files -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Lab:
    lab = Lab('<wavesim name="small"><fleet><sensors><ctd/></sensors></fleet></wavesim>')
    lab.enter("a", "lauv", (0.0, 0.0, 5.0))
    lab.advance(10)
    return lab


def test_file_states_what_it_is(small: Lab, tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    snapshot = small.snapshot()
    snapshot.write(path)
    found = Snapshot.read(path)
    assert found == snapshot and (found.name, found.tick) == ("small", 10)
    assert found.time_s == pytest.approx(10 * small.step_ns * 1e-9) and "data" not in repr(found)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("cut", [5, 40, 400, -1])
def test_damaged_file_is_refused(small: Lab, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.snapshot"
    small.snapshot().write(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InvalidArgument, match="snapshot"):
        Snapshot.read(path)


def test_absent_file_and_folder_give_one_message(small: Lab, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot read the snapshot"):
        Snapshot.read(tmp_path / "none")
    with pytest.raises(InvalidArgument, match="cannot write the snapshot"):
        small.snapshot().write(tmp_path / "none" / "a")


def test_foreign_snapshot_is_refused_and_changes_nothing(small: Lab) -> None:
    snapshot, before = small.snapshot(), digest(small)
    other = Lab('<wavesim name="other"><fleet><sensors><ctd/></sensors></fleet></wavesim>')
    with pytest.raises(InvalidArgument, match="another configuration: 'small'"):
        other.restore(snapshot)
    with pytest.raises(InvalidArgument, match=r"made with WaVeSim 0\.0"):
        small.restore(replace(snapshot, version="0.0"))
    with pytest.raises(InvalidArgument, match="made by a Simulation"):
        small.restore(Simulation(small.loaded).snapshot())
    assert digest(small) == before


@pytest.mark.parametrize(
    "code", [b"cos\nsystem\n(S'false'\ntR.", b"cbuiltins\neval\n(S'1'\ntR.", b"cwavesim_server.snapshots\nio.open\n."]
)
def test_snapshot_cannot_run_code(small: Lab, code: bytes) -> None:
    with pytest.raises(InvalidArgument, match="damaged"):
        small.restore(replace(small.snapshot(), data=zlib.compress(code)))


def test_simulation_without_instruments_has_snapshots_too() -> None:
    sim = Simulation(load(TRIALS / "two-auvs.xml"))
    row = sim.enter(next(iter(sim._occupants.reserved)))
    sim.advance(50)
    snapshot = sim.snapshot()
    sim.advance(50)
    first = digest(sim)
    sim.restore(snapshot)
    sim.advance(50)
    assert digest(sim) == first and sim.row_of(sim.occupants[row].name) == row


def test_errors_are_of_the_project() -> None:
    assert issubclass(InvalidArgument, WaveSimError)
