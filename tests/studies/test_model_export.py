"""Export to SDF and URDF. Judges: Gazebo's equations, written from its sources, and MuJoCo, which reads URDF."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from tests.studies.gazebo_twin import GazeboTwin
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.cli_vehicles import vehicles
from wavesim_studies.linear_models.model_files import fossen_matrices
from wavesim_studies.linear_models.trim import free_motion
from wavesim_studies.model_export.description import describe_model
from wavesim_studies.model_export.sdf import write_sdf
from wavesim_studies.model_export.urdf import write_urdf
from wavesim_world.config import library
from wavesim_world.config.build import read_models

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("linear models")]
FLIP = np.array([1.0, -1.0, -1.0])
FLIP6 = np.tile(FLIP, 2)


def differences(name: str, folder: Path, spread: Floats, angle: float, count: int = 20) -> tuple[Floats, Floats]:
    """Return the accelerations (count, 6) of a model and of Gazebo's twin at random states.

    ``spread`` contains the range of u..r, then of the depth, the roll and the pitch; ``angle`` that of the fins.
    """
    model = library()[name]
    described = describe_model(model)
    folder.mkdir()
    write_sdf(described, folder)
    twin, motion, rng = GazeboTwin(folder / "world.sdf"), free_motion(model), np.random.default_rng(5)
    shafts = {t.name for t in model.thruster if t.law == "shaft"}
    limits = {p.name: (p.minimum, p.maximum) for p in described.thrusters}
    ours, theirs = [], []
    for _ in range(count):
        state = np.zeros(12)
        state[6:] = rng.uniform(-1.0, 1.0, 6) * spread[:6]
        state[6] = spread[0] * (0.7 + 0.3 * rng.uniform())
        state[2] = motion.depth + rng.uniform(-1.0, 1.0) * spread[6]
        state[3:6] = *(rng.uniform(-1.0, 1.0, 2) * spread[7:9]), rng.uniform(-3.0, 3.0)
        commands, values = {}, []
        for actuator in motion.actuators:
            if actuator.name in limits:
                value = rng.uniform(0.05, 1.0) * limits[actuator.name][1]
                commands[f"{actuator.name}_joint"] = value
                values.append(value / (2.0 * math.pi) if actuator.name in shafts else value)
            else:
                values.append(rng.uniform(-angle, angle))
                commands[f"{actuator.name}_joint"] = values[-1]
        ours.append(motion.accelerations(state[None], np.array(values)[None])[0] * FLIP6)
        roll, pitch, yaw = state[3:6]
        theirs.append(twin.acceleration(-state[2], np.array([roll, -pitch, -yaw]), state[6:] * FLIP6, commands))
    return np.array(ours), np.array(theirs)


@pytest.mark.parametrize("name", ["bluerov2-heavy", "bluerov2", "rexrov2", "vita1"])
def test_gazebo_accelerates_a_vehicle_with_thrusters_exactly_like_wavesim(name: str, tmp_path: Path) -> None:
    spread = np.array([1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 1.0, 1.0])
    ours, theirs = differences(name, tmp_path / name, spread, 0.0)
    assert np.abs(ours).max() > 0.5
    assert np.abs(theirs - ours).max() < 1e-9 * np.abs(ours).max()


@pytest.mark.parametrize("name", ["lauv", "remus100"])
def test_the_forces_of_fins_differ_by_the_square_of_the_angle_of_attack(name: str, tmp_path: Path) -> None:
    """LiftDrag turns the lift with the flow, and the linear law does not. At 0.05 rad, this is 0.4 % of the acceleration."""
    sizes = []
    for k, part in enumerate((1.0, 0.1, 0.0)):
        spread = np.array([1.5, *(part * np.array([0.07, 0.07, 0.1, 0.1, 0.1])), 5.0, 0.3, 0.3])
        ours, theirs = differences(name, tmp_path / str(k), spread, 0.1 * part)
        sizes.append(float(np.abs(theirs - ours).max() / np.abs(ours).max()))
    assert sizes[0] < 4e-3 and sizes[1] < 0.03 * sizes[0] and sizes[2] < 1e-9


def test_an_otter_floats_and_moves_like_wavesim(tmp_path: Path) -> None:
    """Sway and yaw are tested one at a time, because the cross-flow drag of combined motions has no counterpart."""
    for k, motion in enumerate(([1.5, 0.5, 0.0], [1.5, 0.0, 0.5])):
        spread = np.array([motion[0], motion[1], 0.2, 0.1, 0.1, motion[2], 0.01, 0.01, 0.01])
        ours, theirs = differences("otter", tmp_path / str(k), spread, 0.0)
        assert np.abs(theirs - ours).max() < 0.01 * np.abs(ours).max()


def test_each_coefficient_is_written_once(tmp_path: Path) -> None:
    """Coefficients are written once: products of two velocities are not counted twice."""
    described = describe_model("bluerov2")
    write_sdf(described, tmp_path)
    plugin = next(p for p in ET.parse(tmp_path / "model.sdf").iter("plugin") if "Hydrodynamics" in p.get("name", ""))
    tags = [e.tag for e in plugin]
    assert len(tags) == len(set(tags)) and not any(
        t[1:] == u[1:][::-1] for t in tags for u in tags if t < u and len(t) == 3
    )


def attached(path: Path) -> Any:
    """Return MuJoCo's model of a URDF file, with all bodies kept apart and the base free."""
    mujoco = pytest.importorskip("mujoco")
    root = ET.parse(path).getroot()
    settings = ET.SubElement(ET.SubElement(root, "mujoco"), "compiler")
    settings.set("fusestatic", "false")
    settings.set("balanceinertia", "false")
    settings.set("strippath", "true")
    spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    return spec.compile()


@pytest.mark.parametrize("name", ["lauv", "bluerov2-heavy", "supply"])
def test_mujoco_reads_the_mass_the_inertia_and_the_frames_of_a_urdf_file(name: str, tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    described = describe_model(name)
    write_urdf(described, tmp_path)
    model = attached(tmp_path / f"{name}.urdf")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    terms = described.terms
    assert float(model.body_mass.sum()) == pytest.approx(terms.mass, rel=1e-9)
    centre = (model.body_mass[:, None] * data.xipos).sum(axis=0) / model.body_mass.sum()
    assert centre == pytest.approx(terms.centre, abs=1e-9)
    inertia = np.zeros((3, 3))
    for k in range(model.nbody):
        axes, arm = data.ximat[k].reshape(3, 3), data.xipos[k] - centre
        inertia += axes @ np.diag(model.body_inertia[k]) @ axes.T
        inertia += model.body_mass[k] * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    assert inertia == pytest.approx(terms.inertia, rel=1e-6, abs=1e-7 * terms.inertia.max())
    for part in described.thrusters:
        frame = data.body(f"{part.name}_link")
        assert frame.xpos == pytest.approx(part.position, abs=1e-9)
        assert frame.xmat.reshape(3, 3)[:, 0] == pytest.approx(part.axis, abs=1e-9)
    assert data.body("base_link_frd").xmat.reshape(3, 3) == pytest.approx(np.diag(FLIP), abs=1e-12)


def test_joints_turn_like_the_actuators(tmp_path: Path) -> None:
    """A positive angle turns the chord of a fin towards its force, and the thrust of a swivel from forward to starboard."""
    mujoco = pytest.importorskip("mujoco")
    for name in ("lauv", "supply"):
        described = describe_model(name)
        folder = tmp_path / name
        folder.mkdir()
        write_urdf(described, folder)
        model = attached(folder / f"{name}.urdf")
        data = mujoco.MjData(model)
        for part in described.fins:
            data.joint(f"{part.name}_joint").qpos[:] = 0.2
        for thruster in described.thrusters:
            if thruster.swivel is not None:
                data.joint(f"{thruster.name}-angle_joint").qpos[:] = 0.2
        mujoco.mj_forward(model, data)
        for part in described.fins:
            chord = data.body(f"{part.name}_link").xmat.reshape(3, 3)[:, 0]
            assert chord == pytest.approx(math.cos(0.2) * part.forward + math.sin(0.2) * part.upward, abs=1e-9)
        for thruster in described.thrusters:
            if thruster.swivel is not None:
                turned = data.body(f"{thruster.name}_link").xmat.reshape(3, 3)[:, 0]
                assert turned == pytest.approx([math.cos(0.2), -math.sin(0.2), 0.0], abs=1e-9)


PROBE = """<models><model name="probe" type="underwater" appearance="probe.glb">
<cylinder length="1.5 m" radius="0.1 m"/><mass value="40 kg"/><inertia gyration="0.05 0.4 0.4 m"/>
<added-mass diagonal="1 30 30 0 5 5"/><quadratic-drag diagonal="5 60 60 1 30 30"/>
<thruster name="screw" law="shaft" position="-0.7 0 0 m" direction="1 0 0" minimum="-20" maximum="20" lag="0 s"
  wake="0.2" inflow="total"><open-water diameter="0.2 m" kt="0.4 -0.3"/></thruster>
<sensors><imu rate="100 Hz" grade="tactical" position="0.1 0.2 0.3 m"/><dvl position="0.2 0 0.1 m" attitude="0 0 45 deg"/><gps/>
<pressure/><magnetometer/><camera position="0.7 0 0 m" attitude="0 -10 5 deg"/><lidar/><leak/></sensors></model></models>"""


def test_the_command_writes_instruments_with_noise_and_lists_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "models.xml").write_text(PROBE)
    (tmp_path / "probe.glb").write_bytes(b"glTF")
    for form in ("sdf", "urdf"):
        arguments = ["export", "probe", "--models", tmp_path / "models.xml", "--format", form, "--out", tmp_path / form]
        result = CliRunner().invoke(vehicles, [str(a) for a in arguments])
        assert result.exit_code == 0, result.output
        assert (tmp_path / form / "meshes" / "probe.glb").read_bytes() == b"glTF"
        text = (tmp_path / form / ("model.sdf" if form == "sdf" else "probe.urdf")).read_text()
        lines = [line.removeprefix("not in the files: ") for line in result.output.splitlines() if "not in the" in line]
        assert lines and all(line in text for line in lines)
        assert form == "urdf" or "instrument 'leak' (type leak); the file has its frame leak_link" in lines
    root = ET.parse(tmp_path / "sdf" / "world.sdf").getroot()
    sensors = {s.get("name"): s for s in root.iter("sensor")}
    assert sorted(sensors) == ["camera", "dvl", "gps", "imu", "lidar", "magnetometer", "pressure"]
    imu = sensors["imu"]
    assert imu.findtext("pose") == "0.1 -0.2 -0.3 0 0 0" and imu.findtext("update_rate") == "100"
    assert float(imu.findtext("imu/angular_velocity/x/noise/stddev", "")) == pytest.approx(10.0 * 4.363e-5)
    assert float(imu.findtext("imu/linear_acceleration/z/noise/bias_stddev", "")) == pytest.approx(7.36e-3)
    turned = [float(x) for x in sensors["camera"].findtext("pose", "").split()[3:]]
    assert turned == pytest.approx([0.0, math.radians(10.0), math.radians(-5.0)])  # 10 deg down, 5 deg to starboard
    types = {p.get("name", "").split("::")[-1] for p in root.iter("plugin")}
    assert types >= {"Sensors", "Imu", "NavSat", "Altimeter", "Magnetometer", "DopplerVelocityLogSystem", "Buoyancy"}
    urdf = ET.parse(tmp_path / "urdf" / "probe.urdf").getroot()
    links = {link.get("name") for link in urdf.findall("link")}
    assert links >= {"base_link", "imu_link", "leak_link", "camera_optical_frame", "screw_link"}
    mesh = urdf.find("link/visual/geometry/mesh")
    assert mesh is not None and mesh.get("filename") == "package://probe_description/meshes/probe.glb"


def test_a_propeller_loses_thrust_with_speed_like_wavesim(tmp_path: Path) -> None:
    (tmp_path / "models.xml").write_text(PROBE.replace(' appearance="probe.glb"', ""))
    model = read_models(tmp_path / "models.xml")["probe"]
    write_sdf(describe_model(model), tmp_path)
    twin, motion = GazeboTwin(tmp_path / "world.sdf"), free_motion(model)
    for speed, turns in ((0.0, 10.0), (1.5, 10.0), (1.5, 18.0)):
        state = np.zeros(12)
        state[2], state[6] = 1000.0, speed
        ours = motion.accelerations(state[None], np.array([[turns]]))[0] * FLIP6
        theirs = twin.acceleration(-2.0, np.zeros(3), state[6:] * FLIP6, {"screw_joint": 2.0 * math.pi * turns})
        assert theirs == pytest.approx(ours, abs=1e-9) and abs(ours[0]) > 0.1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["lauv", "--format", "sdf", "--out", "no/such/folder"], "cannot write to the folder"),
        (["aerosonde", "--format", "urdf", "--out", "x"], "is an aircraft"),
    ],
)
def test_mistakes(words: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(vehicles, ["export", *words])
    assert isinstance(result.exception, ConfigError) and text in str(result.exception)


@pytest.mark.parametrize("name", ["bluerov2-heavy", "bluerov2", "rexrov2", "vita1"])
def test_the_importer_reads_the_same_model_back(name: str, tmp_path: Path) -> None:
    write_sdf(describe_model(name), tmp_path)
    arguments = ["import", tmp_path / "world.sdf", "--partial", "--out", tmp_path / "back.xml"]
    result = CliRunner().invoke(vehicles, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    (back,) = read_models(tmp_path / "back.xml").values()
    ours, theirs = fossen_matrices(library()[name]), fossen_matrices(back)
    for key in ("M_RB", "M_A", "D_L", "D_Q", "W", "B", "r_G", "r_B", "T"):
        assert theirs[key] == pytest.approx(ours[key], rel=1e-8, abs=1e-8 * np.abs(ours[key]).max()), key
    a, b, rng = free_motion(name), free_motion(back), np.random.default_rng(3)
    states = np.zeros((20, 12))
    states[:, 2], states[:, 6:] = a.depth, rng.uniform(-1.0, 1.0, (20, 6))
    thrusts = rng.uniform(0.0, 0.5, (20, len(a.actuators))) * [x.maximum for x in a.actuators]
    assert [x.name for x in a.actuators] == [x.name for x in b.actuators]
    found = a.accelerations(states, thrusts)
    assert b.accelerations(states, thrusts) == pytest.approx(found, abs=1e-8 * np.abs(found).max())
