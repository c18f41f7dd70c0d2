"""Stonefish scenarios: the parts have the mass, added mass and drag that Stonefish computes, by closed forms written for
this test; everything else is imported or named.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import read
from wavesim_server.importers import stonefish_parts as parts
from wavesim_server.importers.stonefish_scenario import StonefishScenario
from wavesim_world.config.build import read_models

ROBOT = """<?xml version="1.0"?>
<scenario>
  <robot name="$(arg name)" fixed="false" self_collisions="false">
    <base_link name="Hull" type="compound" physics="submerged">
      <external_part name="Tube" type="cylinder" physics="submerged" buoyant="true">
        <dimensions radius="0.2" height="${2*0.6}"/>
        <origin rpy="0.0 ${pi/2} 0.0" xyz="0.0 0.0 0.0"/>
        <material name="Foam"/><look name="red"/>
        <compound_transform rpy="0.0 0.0 0.0" xyz="0.1 0.0 -0.1"/>
      </external_part>
      <external_part name="Skid" type="model" physics="submerged" buoyant="false">
        <physical><mesh filename="$(find vehicle)/skid.obj" scale="0.5"/><thickness value="0.01"/>
          <origin rpy="0 0 0" xyz="0 0 0"/></physical>
        <material name="Steel"/><look name="red"/>
        <compound_transform rpy="0.0 0.0 0.0" xyz="0.0 0.0 0.3"/>
      </external_part>
      <internal_part name="Lead" type="sphere" physics="submerged" buoyant="false">
        <dimensions radius="0.05"/><origin rpy="0 0 0" xyz="0 0 0"/>
        <material name="Steel"/><mass value="30"/><look name="red"/>
        <compound_transform rpy="0 0 0" xyz="0.1 0 0.1"/>
      </internal_part>
    </base_link>
    <sensor name="imu" type="imu" rate="50"><link name="Hull"/><origin rpy="0 0 0.5" xyz="0.2 0 0"/>
      <noise angular_velocity="0.01" linear_acceleration="0.1 0.2 0.3" yaw_drift="0.001"/></sensor>
    <sensor name="arm" type="fls"><link name="Hull"/><origin rpy="0 0 0" xyz="0 0 0"/></sensor>
    <actuator name="Left" type="thruster"><link name="Hull"/><origin rpy="0 0 0" xyz="-0.5 -0.2 0"/>
      <specs max_setpoint="100" inverted_setpoint="true" normalized_setpoint="true"/>
      <propeller diameter="0.2" right="true"/>
      <rotor_dynamics type="first_order"><time_constant value="0.3"/></rotor_dynamics>
      <thrust_model type="fluid_dynamics"><thrust_coeff forward="0.5" reverse="0.4"/><torque_coeff value="0.05"/></thrust_model>
    </actuator>
    <actuator name="Up" type="thruster"><link name="Hull"/><origin rpy="0 ${-pi/2} 0" xyz="0 0 -0.3"/>
      <specs max_setpoint="300"/><propeller diameter="0.2" right="false"/><rotor_dynamics type="zero_order"/>
      <thrust_model type="quadratic"><thrust_coeff value="0.001"/></thrust_model>
    </actuator>
    <joint name="wrist" type="revolute"/>
    <world_transform rpy="0 0 0" xyz="0 0 0"/>
  </robot>
</scenario>
"""
SCENE = """<scenario>
  <environment><ocean><water density="1020"/></ocean></environment>
  <materials><material name="Foam" density="800"/><material name="Steel" density="7800"/></materials>
  <looks><look name="red" rgb="0.8 0.1 0.1"/></looks>
  <include file="$(find vehicle)/robot.scn"><arg name="name" value="Probe"/></include>
</scenario>
"""
#: a closed box of 2 x 1 x 0.4 m, divided so that no triangle is refined
SKID = "v -1 -.5 -.2\nv 1 -.5 -.2\nv 1 .5 -.2\nv -1 .5 -.2\nv -1 -.5 .2\nv 1 -.5 .2\nv 1 .5 .2\nv -1 .5 .2\n"
SKID += "f 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 4 8 7 3\nf 2 3 7 6\nf 1 5 8 4\n"


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    folder = tmp_path / "vehicle"
    folder.mkdir()
    (folder / "robot.scn").write_text(ROBOT)
    (folder / "skid.obj").write_text(SKID)
    (folder / "scene.scn").write_text(SCENE)
    return folder / "scene.scn"


def body(scene: Path) -> parts.StonefishBody:
    scenario = StonefishScenario(scene, {}, ())
    base = scenario.root.find("robot/base_link")
    assert base is not None
    return parts.body(base, scenario, {"Foam": 800.0, "Steel": 7800.0}, 1020.0)


def pyramids(shift: float) -> np.ndarray:
    """Moments of inertia of the pyramids from the centre to the faces of a box, each moved outwards: Stonefish's shell."""
    size, second = np.array([1.0, 0.5, 0.2]), np.zeros(3)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        face, height = 2.0 * size[i] * size[j], size[k] / 2.0 + shift
        second[k] += face * height**3 / 5.0
        second[i] += face * height * size[i] ** 2 / 60.0
        second[j] += face * height * size[j] ** 2 / 60.0
    return np.asarray(second.sum() - second)


def test_the_parts_by_closed_forms(scene: Path) -> None:
    """A cylinder along x, a shell of steel from a mesh of half the size, and a sphere with a stated mass."""
    found = body(scene)
    tube, skid, lead = found.parts
    volume = math.pi * 0.04 * 1.2
    assert tube.mass == pytest.approx(800.0 * volume)
    assert (tube.volume, skid.volume, lead.volume) == (pytest.approx(volume), 0.0, 0.0)
    polygon = math.pi * 0.04 * (2.0 * math.pi / 32) / math.sin(2.0 * math.pi / 32)  # 32 slices, the circle's area
    section = 1020.0 * polygon
    assert tube.added_mass == pytest.approx((2.0 * section * 1.2 + section) / 3.0)
    assert tube.drag == pytest.approx([1.0, 0.5, 0.5])
    area = 2.0 * (1.0 * 0.5 + 1.0 * 0.2 + 0.5 * 0.2)
    assert skid.mass == pytest.approx(7800.0 * 0.01 * area)
    assert np.diag(skid.inertia) == pytest.approx(7800.0 * (pyramids(0.005) - pyramids(-0.005)), rel=1e-9)
    assert lead.mass == 30.0 and lead.inertia[0, 0] == pytest.approx(0.4 * 30.0 * 0.05**2)
    total = tube.mass + skid.mass + 30.0
    centre = (
        tube.mass * np.array([0.1, 0, -0.1]) + skid.mass * np.array([0, 0, 0.3]) + 30.0 * np.array([0.1, 0, 0.1])
    ) / total
    assert found.centre == pytest.approx(centre) and found.centre_of_buoyancy == pytest.approx([0.1, 0.0, -0.1])
    assert found.added_mass[0, 0] == pytest.approx(tube.added_mass + skid.added_mass), "internal parts add none"
    assert found.added_mass[1, 5] == pytest.approx(found.added_mass[0, 0] * centre[0])


def test_the_drag_by_closed_forms(scene: Path) -> None:
    """Ahead, the front faces push with the third power of the speed, and the sides rub linearly."""
    found = body(scene)
    skid = found.parts[1]
    front = np.pi * 0.04 * 1.0 + 0.5 * 0.2 * skid.drag[0]
    for speed in (0.5, 1.0, 2.0):
        pressure, friction = parts.drag_forces(found, 1020.0, np.array([speed, 0, 0, 0, 0, 0]))
        assert pressure[0] == pytest.approx(-0.5 * 1020.0 * front * speed**3, rel=1e-3)
        polygon_side = (
            2.0
            * math.sqrt(32 * math.sin(2 * math.pi / 32) / (2 * math.pi)) ** -1
            * 32
            * 0.2
            * math.sin(math.pi / 32)
            * 1.2
        )
        sides = polygon_side * 0.1 * 1.0 + 2.0 * (0.5 + 0.2) * 1.0 * 0.1 * skid.drag[0]
        assert friction[0] == pytest.approx(-1020.0 * sides * speed, rel=1e-3)
    assert skid.drag.max() == 1.0 and skid.drag[2] > skid.drag[1] > skid.drag[0], "the widest face has the largest"


def test_a_scenario_becomes_a_model(scene: Path, tmp_path: Path) -> None:
    """Thrusters with their setpoints and torque, a sensor with its mounting, and a list of all that is left out."""
    with pytest.raises(ConfigError) as error:
        read(scene, None, {}, None)
    for item in ("arm", "wrist", "yaw_drift"):
        assert item in str(error.value), "nothing is dropped in silence"
    found = read(scene, None, {}, None, partial=True)
    for name, content in found.files.items():
        assert isinstance(content, bytes) and content.startswith(b"glTF")
        (tmp_path / name).write_bytes(content)
    (tmp_path / "m.xml").write_text(found.xml)
    model = read_models(tmp_path / "m.xml")["probe"]
    left, up = model.thruster
    assert left.coefficients == pytest.approx((0.0, 1020.0 * 0.2**4 * 0.5, -1020.0 * 0.2**3 * 0.5))
    assert left.reverse == pytest.approx((0.0, 1020.0 * 0.2**4 * 0.4, -1020.0 * 0.2**3 * 0.5))
    assert (left.maximum, left.lag) == (1.0, 0.3) and left.motor[1] == pytest.approx(-100.0 / (2.0 * math.pi))
    assert up.coefficients[1] == pytest.approx(0.001 * (2.0 * math.pi) ** 2) and up.maximum == 300.0
    assert up.motor[1] < 0.0, "a left-handed propeller"
    assert up.direction == pytest.approx((0.0, 0.0, 1.0), abs=1e-9)
    assert model.allocation is not None
    column = np.array(model.allocation.rows).reshape(6, 2)[:, 0]
    assert column == pytest.approx([1.0, 0.0, 0.0, -0.05 * 0.2 / 0.5, 0.0, 0.2])
    assert model.derivatives is not None and len(model.derivatives.derivative) <= 48
    assert 'acceleration_covariance="0.01 0 0 0 0.04 0 0 0 0.09"' in found.xml
    assert 'attitude="0 0 28.64789 deg"' in found.xml


def test_thrusters_of_older_versions(scene: Path) -> None:
    """Their coefficients are attributes of <specs>; the law is the same."""
    robot = scene.parent / "robot.scn"
    text = robot.read_text()
    start, end = text.index("<specs max_setpoint"), text.index("</actuator>")
    old = '<specs thrust_coeff="0.5" thrust_coeff_backward="0.4" torque_coeff="0.05" max_rpm="954.929658551" inverted="true"/>'
    new = read(scene, None, {}, None, partial=True).xml
    robot.write_text(text[:start] + old + '<propeller diameter="0.2" right="true"/>' + text[end:])
    first = next(line for line in new.splitlines() if "<thruster" in line)
    again = next(line for line in read(scene, None, {}, None, partial=True).xml.splitlines() if "<thruster" in line)
    assert again == first.replace('lag="0.3 s"', 'lag="0.125 s"')


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('value="Probe"/>', 'value="Probe"/><arg name="x"/>', ""),
        ("$(arg name)", "$(arg title)", "--set arg.title="),
        ("${2*0.6}", "${2*side}", "2*side"),
        ("skid.obj", "lost.obj", "--path"),
        ('name="Foam"/><look', 'name="Cork"/><look', "Cork"),
        ('type="cylinder"', 'type="torus"', "torus"),
        ('"first_order"', '"magnetic"', "magnetic"),
        ('radius="0.2" ', 'radius="wide" ', "wide"),
        ("<robot", "<robbot", "XML"),
    ],
)
def test_a_mistake_gives_one_message(scene: Path, old: str, new: str, words: str) -> None:
    robot = scene.parent / "robot.scn"
    robot.write_text(robot.read_text().replace(old, new))
    if words:
        with pytest.raises(ConfigError, match=words.replace("*", r"\*")):
            read(scene, None, {}, None, partial=True)
