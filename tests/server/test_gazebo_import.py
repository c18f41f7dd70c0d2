"""Vehicles in SDF, URDF and xacro accelerate as in the simulator for which they were written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.server import gazebo_twin as twin
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import read
from wavesim_server.study import empty_sea
from wavesim_world.config import Model
from wavesim_world.config.build import read_models

STEP = 1e-4
FLIP = twin.FLIP

GZ = {
    "xDotU": -6.0, "yDotV": -15.0, "zDotW": -18.0, "kDotP": -0.2, "mDotQ": -1.3, "nDotR": -1.1, "xU": -2.0, "yV": -5.0,
    "zW": -5.5, "kP": -0.3, "mQ": -0.8, "nR": -0.7, "yR": 0.4, "nV": -0.6, "xUabsU": -21.0, "yVabsV": -60.0,
    "zWabsW": -65.0, "kPabsP": -0.5, "mQabsQ": -2.0, "nRabsR": -1.8, "yVabsR": -3.0, "nUV": -1.5,
}  # fmt: skip
FIN = {
    "air_density": 998.0, "cla": 4.0, "cla_stall": -1.2, "cda": 0.3, "cda_stall": 0.6, "alpha_stall": 0.2, "a0": 0.0,
    "area": 0.02, "forward": (1.0, 0.0, 0.0), "upward": (0.0, 1.0, 0.0),
}  # fmt: skip
BASE_POSE, NOSE_TURN = (0.4, -0.1, 0.2, 0.0, 0.0, 0.6), (0.1, -0.2, 0.3)


def tags(values: dict[str, Any]) -> str:
    return "".join(f"<{k}>{' '.join(map(str, v)) if isinstance(v, tuple) else v}</{k}>" for k, v in values.items())


def inertial(mass: float, moments: tuple[float, float, float], pose: tuple[float, ...] = (0,) * 6) -> str:
    inner = tags({"ixx": moments[0], "iyy": moments[1], "izz": moments[2], "ixy": 0, "ixz": 0, "iyz": 0})
    return f"<inertial><pose>{' '.join(map(str, pose))}</pose><mass>{mass}</mass><inertia>{inner}</inertia></inertial>"


def sdf(hydrodynamics: str = "", more: str = "") -> str:
    """A torpedo with a weight in the nose, a propeller whose joint is turned, a rudder and a thruster by speed."""
    return f"""<sdf version="1.9"><world name="w">
<plugin filename="gz-sim-buoyancy-system" name="gz::sim::systems::Buoyancy">
  <uniform_fluid_density>998</uniform_fluid_density></plugin>
<model name="Torpedo 7"><pose>5 6 -7 0 0 1</pose>
<link name="hull"><pose>{" ".join(map(str, BASE_POSE))}</pose>{inertial(20, (0.2, 2.0, 2.1), (0.05, 0, -0.02, 0, 0, 0))}
  <collision name="c"><pose>0.02 0 0.03 0 1.5707963267948966 0</pose><geometry>
    <cylinder><radius>0.08</radius><length>1.2</length></cylinder></geometry></collision>
  <sensor name="imu" type="imu"><pose>0.1 0.02 0.03 3.14159265358979 0 0</pose><update_rate>100</update_rate><imu>
    <angular_velocity>{"".join(f"<{a}><noise type='gaussian'><stddev>0.002</stddev><bias_stddev>0.01</bias_stddev></noise></{a}>" for a in "xyz")}
    </angular_velocity></imu></sensor></link>
<link name="nose"><pose relative_to="hull">0.5 0 0 {" ".join(map(str, NOSE_TURN))}</pose>{inertial(3, (0.01, 0.03, 0.05))}</link>
<link name="prop"><pose relative_to="hull">-0.62 0 0 0 0 0</pose>{inertial(0.1, (0.001, 0.001, 0.001))}</link>
<link name="rudder"><pose relative_to="hull">-0.5 0 0.08 0 0 0</pose>{inertial(0.05, (0.001, 0.001, 0.001))}</link>
<link name="side"><pose relative_to="hull">0.3 0.1 0 0 0 1.5707963267948966</pose>{inertial(0.1, (0.001, 0.001, 0.001))}</link>
<joint name="nose_joint" type="fixed"><parent>hull</parent><child>nose</child></joint>
<joint name="prop_joint" type="revolute"><pose>0 0 0 0 1.5707963267948966 0</pose><parent>hull</parent><child>prop</child>
  <axis><xyz>0 0 1</xyz></axis></joint>
<joint name="rudder_joint" type="revolute"><parent>hull</parent><child>rudder</child>
  <axis><xyz>0 0 1</xyz><limit><lower>-0.4</lower><upper>0.4</upper></limit></axis></joint>
<joint name="side_joint" type="continuous"><parent>hull</parent><child>side</child><axis><xyz>1 0 0</xyz></axis></joint>
<plugin filename="gz-sim-hydrodynamics-system" name="gz::sim::systems::Hydrodynamics"><link_name>hull</link_name>{tags(GZ)}{hydrodynamics}</plugin>
<plugin filename="gz-sim-thruster-system" name="gz::sim::systems::Thruster"><joint_name>prop_joint</joint_name>
  <max_thrust_cmd>40</max_thrust_cmd><min_thrust_cmd>-25</min_thrust_cmd><velocity_control>true</velocity_control></plugin>
<plugin filename="gz-sim-thruster-system" name="gz::sim::systems::Thruster"><joint_name>side_joint</joint_name>
  <max_thrust_cmd>200</max_thrust_cmd><min_thrust_cmd>-200</min_thrust_cmd><use_angvel_cmd>1</use_angvel_cmd>
  <thrust_coefficient>-0.01</thrust_coefficient><fluid_density>998</fluid_density><propeller_diameter>0.1</propeller_diameter></plugin>
<plugin filename="gz-sim-lift-drag-system" name="gz::sim::systems::LiftDrag"><link_name>rudder</link_name>{tags(FIN)}</plugin>
{more}</model></world></sdf>"""


def imported(path: Path, text: str, *, partial: bool = False, **settings: str) -> tuple[Model, list[str]]:
    path.write_text(text)
    found = read(path, None, {k.replace("_", "-"): v for k, v in settings.items()}, None, partial)
    out = path.with_suffix(".models.xml")
    out.write_text(found.xml)
    return next(iter(read_models(out).values())), found.notes


def acceleration(
    model: Model, nu: Any, attitude: tuple[float, float, float], commands: dict[str, float], density: float
) -> Any:
    """Acceleration in the engine, in forward-left-up axes."""
    sim = empty_sea(1, STEP, f'<world density="{density} kg/m3"><bed depth="11000 m"/></world>')
    row = sim.enter("v", position=(0.0, 0.0, 1000.0), variant=model)
    sim.command(row, commands)
    sim.set_pose(row, attitude=attitude, velocity=FLIP @ nu)
    sim.advance(1)
    now = sim.state()[row]
    return FLIP @ (np.concatenate([now["v_WB_B"], now["w_WB_B"]]) - FLIP @ nu) / STEP


def torpedo_acceleration(nu: Any, up: Any, thrust: float, speed: float, angle: float, forces: Any) -> Any:
    """What gz-sim's plugins do to the vehicle of :func:`sdf`, about the origin of its hull."""
    nose = twin.turn(*NOSE_TURN)
    small = np.eye(3) * 0.001
    m = twin.rigid(
        [
            (20, (0.05, 0, -0.02), np.diag([0.2, 2.0, 2.1])),
            (3, (0.5, 0, 0), nose @ np.diag([0.01, 0.03, 0.05]) @ nose.T),
            (0.1, (-0.62, 0, 0), small),
            (0.05, (-0.5, 0, 0.08), small),
            (0.1, (0.3, 0.1, 0), small),
        ]
    )
    added, tau = forces
    tau = tau + twin.rigid_coriolis(m, nu)
    tau += twin.weight_and_buoyancy(m, math.pi * 0.08**2 * 1.2, (0.02, 0, 0.03), 998.0, up)
    tau += twin.at((-0.62, 0, 0), np.array([thrust, 0, 0]))
    tau += twin.at((0.3, 0.1, 0), np.array([0, -0.01 * 998 * 0.1**4 * speed * abs(speed), 0]))
    place = np.array([-0.5, 0, 0.08])
    r = twin.turn(0, 0, angle)
    tau += twin.at(place, r @ twin.lift_drag(FIN | {"sweep": False}, r.T @ twin.velocity_at(nu, place)))
    return np.linalg.solve(m + added, tau)


def forces(n: dict[str, float], nu: Any, case: str) -> tuple[Any, Any]:
    added, tau = twin.hydrodynamics(n, nu)
    if case == "fossen":
        _, without = twin.hydrodynamics(n | {"disable_coriolis": 1}, nu)
        tau = 2.0 * without - tau  # the Coriolis forces with the other sign
    return added, tau


def up_of(roll: float, pitch: float) -> Any:
    """Upward direction in forward-left-up axes, for the roll and pitch of a body whose z axis points down."""
    down = np.array([-math.sin(pitch), math.sin(roll) * math.cos(pitch), math.cos(roll) * math.cos(pitch)])
    return -np.diag([1.0, -1.0, -1.0]) @ down


STATES = [
    (np.array([1.4, 0.2, -0.1, 0.3, -0.2, 0.25]), (0.2, -0.3), 30.0, 120.0, 0.15),
    (np.array([0.9, -0.5, 0.3, -0.4, 0.3, -0.5]), (-0.5, 0.2), -20.0, -60.0, -0.3),
    (np.array([-0.6, 0.3, 0.2, 0.1, 0.2, 0.1]), (0.1, 0.9), 10.0, 10.0, 0.0),
]


@pytest.mark.parametrize("case", ["fossen", "gz", "none"])
def test_a_vehicle_of_gz_sim_accelerates_as_its_plugins_say(tmp_path: Path, case: str) -> None:
    """gz-sim adds the Coriolis forces of the added mass with the wrong sign, and only those of its diagonal."""
    extra = {"fossen": {}, "none": {"disable_coriolis": 1}, "gz": {"yDotR": -0.7, "nDotV": -0.7}}[case]
    model, notes = imported(tmp_path / "t.sdf", sdf(tags(extra)), **({"coriolis": "gz"} if case == "gz" else {}))
    assert any("998 kg/m3" in note for note in notes)
    for nu, (roll, pitch), thrust, speed, angle in STATES:
        commands = {"prop": thrust, "side": speed / (2 * math.pi), "rudder": angle}
        ours = acceleration(model, nu, (roll, pitch, 0.7), commands, 998.0)
        wanted = torpedo_acceleration(nu, up_of(roll, pitch), thrust, speed, angle, forces(GZ | extra, nu, case))
        assert ours == pytest.approx(wanted, abs=2e-3 * np.abs(wanted).max()), (nu, case)


def test_masses_axes_and_instruments(tmp_path: Path) -> None:
    model, _ = imported(tmp_path / "t.sdf", sdf())
    assert model.name == "torpedo-7" and model.type == "underwater"
    assert model.mass.value == pytest.approx(23.25)
    assert model.thruster[0].direction == pytest.approx((1.0, 0.0, 0.0), abs=1e-9)
    assert model.thruster[1].position == pytest.approx((0.3, -0.1, 0.0))
    assert model.sensors is not None
    imu = model.sensors.imu[0]
    assert imu.position == pytest.approx((0.1, -0.02, -0.03)) and not np.any(imu.attitude)
    assert imu.gyro_noise == pytest.approx(0.002 / 10.0) and imu.gyro_turn_on == 0.01 and imu.gyro_walk == 0.0
    assert imu.accelerometer_noise == 0.0
    turned, _ = imported(tmp_path / "t.sdf", sdf(), forward="-x")
    assert turned.thruster[0].direction == pytest.approx((-1.0, 0.0, 0.0), abs=1e-9)
    assert turned.mass.centre[0] == pytest.approx(-model.mass.centre[0])


def test_nothing_of_a_vehicle_is_dropped_in_silence(tmp_path: Path) -> None:
    more = """<link name="arm"><pose relative_to="hull">0 0 -0.2 0 0 0</pose><inertial><mass>2</mass></inertial>
<sensor name="sniffer" type="custom" gz:type="methane"><update_rate>1</update_rate></sensor></link>
<joint name="shoulder" type="revolute"><parent>hull</parent><child>arm</child><axis><xyz>0 1 0</xyz></axis></joint>
<plugin filename="libGripper.so" name="my::Gripper"><force>3</force></plugin>"""
    with pytest.raises(ConfigError) as found:
        imported(tmp_path / "t.sdf", sdf("<zWabsQ2>1</zWabsQ2>", more))
    text = str(found.value)
    for lost in ("methane", "shoulder (revolute): moves 2 kg", "my::Gripper", "zWabsQ2 = 1"):
        assert lost in text
    model, notes = imported(tmp_path / "t.sdf", sdf("<zWabsQ2>1</zWabsQ2>", more), partial=True)
    assert model.mass.value == pytest.approx(25.25) and sum("omitted" in note for note in notes) == 4


URDF = """<robot name="fish" xmlns:xacro="http://www.ros.org/wiki/xacro">
<link name="fish/base_link"><inertial><origin xyz="0 0 -0.02" rpy="0.1 0 0"/><mass value="18"/>
  <inertia ixx="0.1" iyy="1.5" izz="1.6" ixy="0.01" ixz="0" iyz="0"/></inertial></link>
<link name="fish/thruster_0"><inertial><mass value="0.5"/><inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="fish/fin0"/>
<joint name="fish/thruster_0_joint" type="continuous"><origin xyz="-0.5 0.1 0" rpy="0 0 0.3"/><axis xyz="1 0 0"/>
  <parent link="fish/base_link"/><child link="fish/thruster_0"/></joint>
<joint name="fish/fin0_joint" type="revolute"><origin xyz="-0.4 -0.04 0" rpy="1.5707963267948966 0 0"/><axis xyz="0 0 1"/>
  <limit lower="-0.7" upper="0.7" effort="0" velocity="0"/><parent link="fish/base_link"/><child link="fish/fin0"/></joint>
<gazebo><plugin name="t" filename="libuuv_thruster_ros_plugin.so"><linkName>fish/thruster_0</linkName>
  <jointName>fish/thruster_0_joint</jointName><thrusterID>0</thrusterID><gain>2</gain><thrustMin>-50</thrustMin><thrustMax>50</thrustMax>
  <dynamics><type>ZeroOrder</type></dynamics><conversion><type>Basic</type><rotorConstant>0.0004</rotorConstant></conversion></plugin></gazebo>
<gazebo><plugin name="f" filename="libuuv_fin_ros_plugin.so"><dynamics><type>ZeroOrder</type></dynamics>
  <liftdrag><type>Quadratic</type><lift_constant>9.9</lift_constant><drag_constant>6.5</drag_constant></liftdrag>
  <fin_id>0</fin_id><link_name>fish/fin0</link_name><joint_name>fish/fin0_joint</joint_name></plugin></gazebo>
<gazebo><plugin name="u" filename="libuuv_underwater_object_ros_plugin.so"><fluid_density>1028</fluid_density>
  <link name="fish/base_link"><volume>0.0177</volume><box><width>0.15</width><length>1.1</length><height>0.15</height></box>
  <center_of_buoyancy>0 0 0.03</center_of_buoyancy><hydrodynamic_model><type>fossen</type>
  <added_mass>{added}</added_mass><linear_damping>{linear}</linear_damping>
  <linear_damping_forward_speed>{forward}</linear_damping_forward_speed>
  <quadratic_damping>-2.4 -80 -80 -0.1 -9 -9</quadratic_damping></hydrodynamic_model></link></plugin></gazebo>
</robot>"""
ADDED = np.diag([1.0, 16.0, 17.0, 0.01, 1.3, 1.4])
ADDED[1, 5] = ADDED[5, 1] = 0.4
LINEAR, FORWARD = -np.diag([2.4, 23.0, 23.0, 0.3, 9.7, 9.7]), np.zeros((6, 6))
LINEAR[1, 5], FORWARD[4, 2], FORWARD[1, 1] = 11.5, 3.0, -20.0


def rows(m: Any) -> str:
    return " ".join(f"{x:g}" for x in np.ravel(m))


def test_a_vehicle_of_uuv_simulator_accelerates_as_its_plugins_say(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    text = URDF.format(added=rows(ADDED), linear=rows(LINEAR), forward=rows(FORWARD))
    xacro = text.replace('value="18"', 'value="${2 * half}"').replace(
        "<link name", '<xacro:property name="half" value="9"/><link name', 1
    )
    model, _ = imported(tmp_path / "fish.urdf.xacro", xacro)
    m = twin.rigid(
        [
            (
                18,
                (0, 0, -0.02),
                twin.turn(0.1, 0, 0) @ [[0.1, 0.01, 0], [0.01, 1.5, 0], [0, 0, 1.6]] @ twin.turn(0.1, 0, 0).T,
            ),
            (0.5, (-0.5, 0.1, 0), np.eye(3) * 0.001),
        ]
    )
    floating = '<link name="sea"/><joint name="free" type="floating"><parent link="sea"/><child link="fish/base_link"/></joint>'
    fixed = text.replace('type="continuous"', 'type="fixed"').replace('type="revolute"', 'type="fixed"')
    judge = mujoco.MjModel.from_xml_string(fixed.replace("<link name", floating + "<link name", 1))
    data, full = mujoco.MjData(judge), np.zeros((6, 6))
    mujoco.mj_forward(judge, data)
    mujoco.mj_fullM(judge, data, full)
    c = FLIP[:3, :3] @ model.mass.centre
    i = model.inertia
    assert i is not None
    central = FLIP[:3, :3] @ [[i.xx, i.xy, i.xz], [i.xy, i.yy, i.yz], [i.xz, i.yz, i.zz]] @ FLIP[:3, :3]
    assert twin.rigid([(model.mass.value, c, central)]) == pytest.approx(full, abs=1e-6)
    for nu, (roll, pitch), thrust, _, angle in STATES:
        command = math.copysign(math.sqrt(abs(thrust) / 0.0004) / 2, thrust)
        ours = acceleration(model, nu, (roll, pitch, 0.7), {"thruster-0": command, "fin0": angle}, 1028.0)
        n = {"added_mass": ADDED, "linear_damping": LINEAR, "linear_damping_forward_speed": FORWARD}
        added, tau = twin.uuv_fossen(n | {"quadratic_damping": [-2.4, -80, -80, -0.1, -9, -9]}, nu)
        tau = tau + twin.rigid_coriolis(m, nu)
        tau += twin.weight_and_buoyancy(m, 0.0177, (0, 0, 0.01), 1028.0, up_of(roll, pitch))
        tau += twin.at((-0.5, 0.1, 0), thrust * twin.turn(0, 0, 0.3)[:, 0])
        r, place = twin.turn(math.pi / 2, 0, 0) @ twin.turn(0, 0, angle), (-0.4, -0.04, 0)
        force = twin.uuv_fin({"lift_constant": 9.9, "drag_constant": 6.5}, r.T @ twin.velocity_at(nu, place))
        tau += twin.at(place, r @ force)
        wanted = np.linalg.solve(m + added, tau)
        assert ours == pytest.approx(wanted, abs=2e-3 * np.abs(wanted).max()), nu


def test_included_models_and_packages_are_found_with_path(tmp_path: Path) -> None:
    """The nose is a model of its own, merged at a pose; the base is in a package."""
    folder = tmp_path / "elsewhere/models/nose"
    folder.mkdir(parents=True)
    (folder / "model.sdf").write_text(
        f"<sdf version='1.6'><model name='nose'><link name='tip'><pose>1 0 0 0 0 0</pose>{inertial(4, (0.1, 0.1, 0.1))}</link></model></sdf>"
    )
    path = tmp_path / "boat.sdf"
    path.write_text(
        f"""<sdf version="1.9"><model name="boat"><link name="hull">{inertial(4, (1, 1, 1))}
<collision name="c"><geometry><box><size>2 1 0.5</size></box></geometry></collision></link>
<include merge="true"><uri>model://nose</uri><pose degrees="true">0 2 0 0 0 90</pose></include>
<include><uri>model://nose</uri><name>second</name><pose>0 -3 0 0 0 0</pose></include>
<joint name="a" type="fixed"><parent>hull</parent><child>tip</child></joint>
<joint name="b" type="fixed"><parent>hull</parent><child>second::tip</child></joint></model></sdf>"""
    )
    settings = {"added-mass": "1 1 1 1 1 1", "linear-drag": "1 1 1 1 1 1"}
    with pytest.raises(ConfigError, match=r"model://nose.*--path"):
        read(path, None, settings, None)
    out = tmp_path / "models.xml"
    out.write_text(read(path, None, settings, None, folders=[tmp_path / "elsewhere"]).xml)
    model = read_models(out)["boat"]
    assert model.mass.value == 12.0
    # the tips are at (0, 3, 0) and (1, -3, 0) in the file
    assert model.mass.centre == pytest.approx((1 / 3, 0.0, 0.0), abs=1e-12)
    assert model.buoyancy is not None and model.buoyancy.volume == pytest.approx(1.0)
    fish = tmp_path / "fish.xacro"
    fish.write_text(
        '<robot name="f" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="$(find shapes)/a.xacro"/></robot>'
    )
    with pytest.raises(ConfigError, match=r"\$\(find shapes\).*--path"):
        read(fish, None, {}, None)


def test_an_impossible_inertia_is_asked_for(tmp_path: Path) -> None:
    """As in the ECA A9 of UUV Simulator: one principal moment exceeds the sum of the others."""
    text = sdf().replace("<ixx>0.2</ixx><iyy>2.0</iyy>", "<ixx>0.2</ixx><iyy>12.0</iyy>")
    with pytest.raises(ConfigError, match=r"--set inertia=.*impossible: principal moments"):
        imported(tmp_path / "t.sdf", text)
    model, _ = imported(tmp_path / "t.sdf", text, inertia="0.3 2 2.1")
    assert model.inertia is not None and model.inertia.yy == 2.0
