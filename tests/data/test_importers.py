"""Imported models compute what the other simulator computes. Unsupported values are named, and refused unless the user
allows them.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import read
from wavesim_server.study import empty_sea
from wavesim_world.config import Model
from wavesim_world.config.build import read_models

pytestmark = pytest.mark.data


def imported(
    path: Path, tmp_path: Path, *, section: str | None = None, partial: bool = False, **settings: str
) -> Model:
    given = {key.replace("_", "-"): value for key, value in settings.items()}
    out = tmp_path / "models.xml"
    out.write_text(read(path, section, given, "deg", partial).xml)
    return next(iter(read_models(out).values()))


def hilsim_acceleration(d: dict[str, float], nu: Any, rho: float) -> Any:
    """Of a hull in its equilibrium, with the upper half of its M_RB, after `Vessel::updateMatrices` and `nuFunction`: M dnu = -(C + D) nu."""
    u, v, _, _, q, r = nu
    g = {k: float(x) for k, x in d.items()}
    m = [[g[f"m_{min(i, j)}{max(i, j)}"] for j in range(1, 7)] for i in range(1, 7)]
    added = [[g[f"{f}_{s}_dot"] for s in "uvwpqr"] for f in "XYZKMN"]
    friction = g["X_uu_c"] * (0.075 / (math.log10(u * g["L_pp"] / 1e-6) - 2.0) ** 2 + 0.014)
    x = np.linspace(-0.5, 0.5, 200_001) * g["L_pp"]
    cross = v + x * r
    strip = g["T"] * g["C_d_2d"] * rho / 2.0 * np.abs(cross) * cross
    sway, yaw = -2.0 * np.trapezoid(strip, x), -np.trapezoid(strip * x, x)
    tau = np.array(
        [
            (g["X_u"] + friction * abs(u) + g["X_uuu"] * u * u) * u,
            (g["Y_v"] + g["Y_vvv"] * v * v + g["Y_rv"] * abs(r)) * v
            + sway
            + (g["Y_r"] + g["Y_vr"] * abs(v) + g["Y_rr"] * abs(r) + g["Y_rrr"] * r * r) * r,
            0.0,
            0.0,
            g["M_qq"] * abs(q) * q,
            (g["N_v"] + g["N_rv"] * abs(r) + g["N_vvv"] * v * v) * v
            + yaw
            + (g["N_r"] + g["N_vr"] * abs(v) + g["N_rr"] * abs(r) + g["N_rrr"] * r * r) * r,
        ]
    )
    tau -= u * np.array(
        [
            0.0,
            (g["C_rb_26"] + g["C_a_26"]) * r,
            (g["C_rb_35"] + g["C_a_35"]) * q,
            (g["C_rb_46"] + g["C_a_46"]) * r,
            g["C_a_55"] * q,
            g["C_a_66"] * r,
        ]
    )
    return np.linalg.solve(np.add(m, added), tau)


def test_hilsims_forces_term_by_term(data_dir: Path, tmp_path: Path) -> None:
    """Jolner, whose file has nearly every term; the two that are zero there are given a value."""
    text = (data_dir / "odin/Jolner.yaml").read_text() + "\nM_qq: -3.0\nN_rrr: -2.0\n"
    path = tmp_path / "jolner.yaml"
    path.write_text(text)
    model = imported(path, tmp_path, partial=True, size="1.65 0.7 0.4", cross_flow_density="1025", rigid_body="upper")
    assert model.cross_flow is not None and model.cross_flow.sway == pytest.approx(1025 * 0.2 * 0.65)
    for nu in ((1.5, 0.3, 0, 0, 0.2, 0.4), (0.8, -0.2, 0, 0, -0.3, 0.5), (1.2, 0.4, 0, 0, 0.0, -0.6)):
        sim = empty_sea(1, 1e-4, "")
        row = sim.enter("v", position=(0.0, 0.0, 0.0), variant=model)
        sim.set_pose(row, velocity=nu)
        sim.advance(1)
        now = sim.state()[row]
        rate = (np.concatenate([now["v_WB_B"], now["w_WB_B"]]) - nu) / 1e-4
        wanted = hilsim_acceleration(yaml.safe_load(text), nu, 1025.0)
        assert rate == pytest.approx(wanted, abs=2e-3 * np.abs(wanted).max()), nu


def test_what_hilsim_has_more_is_named(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"K_bowthruster = 0\.001") as found:
        imported(data_dir / "odin/Odin.yaml", tmp_path, size="10.5 3.5 1.4", cross_flow_density="1000")
    assert "X_uu" not in str(found.value), "the friction takes its place there, too"
    path = tmp_path / "odin.yaml"
    path.write_text((data_dir / "odin/Odin.yaml").read_text() + "\nY_uvw: 7.0\n")
    with pytest.raises(ConfigError, match=r"Y_uvw = 7\.0"):
        imported(path, tmp_path, size="10.5 3.5 1.4", cross_flow_density="1000")


def test_a_matrix_that_is_not_symmetric_is_asked_for_not_averaged(data_dir: Path, tmp_path: Path) -> None:
    path, size = data_dir / "odin/Jolner.yaml", "1.65 0.7 0.4"
    with pytest.raises(ConfigError, match=r"--set rigid-body=.*m_42 = 11\.4 and m_24 = -11\.4"):
        imported(path, tmp_path, partial=True, size=size, cross_flow_density="1000")
    for half, sign in (("upper", -1.0), ("lower", 1.0)):
        model = imported(path, tmp_path, partial=True, size=size, cross_flow_density="1000", rigid_body=half)
        assert model.rigid_body is not None
        m = np.reshape(model.rigid_body.rows, (6, 6))
        assert m[1, 3] == m[3, 1] == sign * 11.4


THRUSTERS = """thrusters:
  - thruster_name: back
    thruster_id: 1
    thruster_location: [-0.5, 0.1, 0.05]
    thruster_orientation: [0.0, 0.0, 0.2]
    T_prop: 1.0
    D_prop: 0.1
    tp: 0.1
    KT_at_J0: 0.4
    n_max: 1200
    J_vs_KT: None
"""


def boat(data_dir: Path, tmp_path: Path, **files: str) -> Path:
    """Sookshma's folder with other files in it; beside it what it has beside it."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in (data_dir / "sookshma/model").iterdir():
        (folder / file.name).write_text(files.get(file.stem, file.read_text()))
    (tmp_path / "sookshma_hydra.json").write_text((data_dir / "sookshma/sookshma_hydra.json").read_text())
    return folder


def test_a_panisim_folder_is_carried_over_whole(data_dir: Path, tmp_path: Path) -> None:
    folder = boat(data_dir, tmp_path, thrusters=THRUSTERS)
    model, notes = imported(folder, tmp_path), read(folder, None, {}, "deg").notes
    assert model.fin[0].rate == 1.0, "it turns with at most 1 rad/s, not 1 deg/s"
    assert model.fin[0].limit == pytest.approx(math.radians(35.0))
    (propeller,) = model.thruster
    assert propeller.open_water is not None and propeller.open_water.kt == (0.4, -0.4)
    assert propeller.open_water.deduction == pytest.approx(0.1) and propeller.maximum == pytest.approx(20.0)
    assert propeller.direction == pytest.approx((math.cos(0.2), math.sin(0.2), 0.0)) and propeller.lag == 1.0
    assert model.sensors is not None
    rates = {i.name: i.parameters.rate for i in model.sensors.instruments}
    assert rates == {"imu": 50.0, "uwb": 1.0, "encoder": 10.0}
    assert model.sensors.uwb[0].position_covariance == (
        *(0.04533883, -0.05014115, 0.0),
        *(-0.05014115, 0.05869406, 0.0),
        *(0.0, 0.0, 1e-8),
    )
    assert any('position="50 73 0 m"' in note and 'velocity="0.4 0 0 m/s"' in note for note in notes)
    assert any("sookshma_hydra.json" in note for note in notes)
    # HydRA's axes: its mass matrix has the centre of mass of geometry.yml below the origin, so A24 = -z A22 is negative
    hull, _, _ = read(
        tmp_path / "sookshma_hydra.json", None, {"size": "1 0.24 0.5", "linear-drag": "0 0 0 0 0 0"}, None
    )
    assert 'centre="0.0289415957632 3.89727092713e-07 0.136 m"' in hull
    added = np.array(model.added_mass.rows).reshape(6, 6)
    assert added[1, 3] == pytest.approx(-0.20126471013481237) and added[2, 2] == pytest.approx(11.8548934409)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("hydrodynamics", "cross_flow_drag: false", "cross_flow_drag: true", "cross_flow_drag = True"),
        ("sensors", "sensor_type: UWB", "sensor_type: lidar", "a sensor of type lidar"),
        ("inertia", "buoyancy_mass: 7.65", "buoyancy_mass: 9.0", "buoyancy_mass"),
        ("geometry", "length: 1\n", "length: 1\nkeel: 0.1\n", "keel = 0.1"),
    ],
)
def test_what_a_panisim_folder_has_more_is_named(
    data_dir: Path, tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    text = (data_dir / f"sookshma/model/{file}.yml").read_text()
    assert old in text
    folder = boat(data_dir, tmp_path, **{file: text.replace(old, new, 1)})
    with pytest.raises(ConfigError, match=re.escape(message)):
        imported(folder, tmp_path)
    assert any(message in note for note in read(folder, None, {}, "deg", True).notes)


def test_panisims_covariances_are_carried_over_whole(data_dir: Path, tmp_path: Path) -> None:
    """Each 3x3 matrix of the example in Panisim's manual and of Sookshma's folder, with no error that Panisim lacks."""
    text = (data_dir / "sookshma/model/sensors.yml").read_text().replace("covariance: false", "covariance: true")
    more = """
  - sensor_type: GPS
    sensor_topic: /sookshma_00/gps
    sensor_location: [1.0, 0.01, 0.015]
    sensor_orientation: [0.0, 0.0, 0.0]
    publish_rate: 1
    use_custom_covariance: true
    custom_covariance:
      position_covariance: [0.1, 0.02, 0.0, 0.02, 0.1, 0.0, 0.0, 0.0, 0.4]
  - sensor_type: DVL
    sensor_topic: /sookshma_00/dvl
    sensor_location: [1.0, 0.01, 0.015]
    sensor_orientation: [0.0, 0.0, 0.0]
    publish_rate: 50
    use_custom_covariance: true
    custom_covariance:
      linear_velocity_covariance: [0.01, 0.002, 0.0, 0.002, 0.02, 0.0, 0.0, 0.0, 0.03]
"""
    folder = boat(data_dir, tmp_path, sensors=text.rstrip() + more)
    sensors = imported(folder, tmp_path).sensors
    assert sensors is not None
    notes = read(folder, None, {}, "deg").notes
    assert not any("mean of the variances" in note or "covariance" in note for note in notes)
    (imu,), (ahrs,), (gps,), (dvl,) = sensors.imu, sensors.ahrs, sensors.gps, sensors.dvl
    assert np.reshape(imu.acceleration_covariance, (3, 3))[0].tolist() == [0.01973958, -0.01976063, 0.02346221]
    assert imu.angular_rate_covariance[8] == 5.01080310e-06
    assert ahrs.orientation_covariance[2] == -5.37921803e-06 and ahrs.rate == imu.rate == 50.0
    assert {imu.gyro_walk, imu.gyro_turn_on, imu.accelerometer_walk, imu.accelerometer_turn_on, gps.correlation} == {
        0.0
    }
    assert gps.position_covariance == (0.1, 0.02, 0.0, 0.02, 0.1, 0.0, 0.0, 0.0, 0.4)
    assert dvl.bottom_covariance == (0.01, 0.002, 0.0, 0.002, 0.02, 0.0, 0.0, 0.0, 0.03)


def test_panisims_own_matrices_come_first(data_dir: Path, tmp_path: Path) -> None:
    rigid, added = np.diag([8.0, 8, 8, 0.1, 0.5, 0.5]), np.diag([1.0, 2, 3, 0.1, 0.2, 0.3])
    inertia = {"mass": 8.0, "buoyancy_mass": 8.0, "inertia_matrix": rigid.tolist(), "added_mass_matrix": added.tolist()}
    model = imported(boat(data_dir, tmp_path, inertia=yaml.safe_dump(inertia)), tmp_path)
    assert model.rigid_body is not None and model.rigid_body.diagonal == pytest.approx(np.diag(rigid))
    assert model.inertia is None and model.added_mass.diagonal == pytest.approx(np.diag(added))


def test_which_axes_of_a_dune_boat_move_is_asked(data_dir: Path, tmp_path: Path) -> None:
    """Its sections damp no heave, roll or pitch, or do not float: DUNE moves boats in the plane."""
    path = data_dir / "dune/vsim-models.ini"
    with pytest.raises(ConfigError, match="--set active"):
        imported(path, tmp_path, section="autonaut")
    model = imported(path, tmp_path, section="autonaut", active="u v r")
    sim = empty_sea(1, 0.01, "")
    row = sim.enter("v", position=(0.0, 0.0, 0.0), variant=model)
    sim.command(row, [0.5, 0.1])
    sim.advance(2000)
    p = sim.state()["p_WB_W"][row]
    assert p[2] == 0.0 and 1.0 < np.hypot(p[0], p[1]) < 100.0
    assert imported(path, tmp_path, section="lauv").active == "u v w p q r", "an AUV moves in all of them"


def test_a_setting_that_nothing_asks_for_is_refused(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--set mass: not needed; the file contains this value"):
        imported(data_dir / "dune/vsim-models.ini", tmp_path, section="lauv", mass="30")


def leaves(table: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Places and values of all that a file says (of lists of numbers the ends), and in each table one key that nobody knows."""
    if isinstance(table, dict):
        yield (*at, "strange"), 0.0
        for key, value in table.items():
            yield from leaves(value, (*at, key))
    elif isinstance(table, list):
        for key in {0, len(table) - 1} if table and not isinstance(table[0], dict) else range(len(table)):
            yield from leaves(table[key], (*at, key))
    else:
        yield at, table


def other(value: Any) -> Any:
    """Another value of its kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return 1.5 * value + 0.125
    return 3.5 if value is None else value.replace(".", "x.") if "." in value else f"{value}x"


SETTINGS = {
    "size": "10 3 1",
    "cross-flow-density": "1000",
    "thrusters": "0 0 0 1 0 0 9",
    "inertia": "1 2 3",
    "mass": "9",
}


@pytest.mark.parametrize(
    ("file", "needs"),
    [
        ("odin/Odin.yaml", "size cross-flow-density"),
        ("vehicles/eca_a9_model_params.yaml", "thrusters"),
        ("vehicles/rexrov2_model_params_exact.yaml", "thrusters"),
        ("vehicles/BlueROV.yaml", "thrusters size mass inertia"),
        *(
            (f"sookshma/model/{part}.yml", "")
            for part in ("geometry", "inertia", "hydrodynamics", "control_surfaces", "sensors")
        ),
        ("sookshma/model/initial_conditions.yml", ""),
    ],
)
def test_nothing_of_a_file_is_dropped_in_silence(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, needs: str
) -> None:
    """Every number of it, changed, changes the model, what is noted or what is refused; a key more in any of its tables does, too."""
    monkeypatch.setattr(yaml, "safe_load", lambda text: yaml.load(text, yaml.CSafeLoader))  # the same, faster
    if "sookshma" in file:
        path = boat(data_dir, tmp_path)
        changed = path / Path(file).name
    else:
        path = changed = tmp_path / Path(file).name
        changed.write_text((data_dir / file).read_text())
    settings = {k: SETTINGS[k] for k in needs.split()}

    def outcome() -> Any:
        try:
            return read(path, None, settings, "deg", True)
        except ConfigError as refused:
            return str(refused)

    table = yaml.safe_load(changed.read_text())
    before = outcome()
    assert not isinstance(before, str), before
    silent = []
    for at, value in leaves(table):
        if any(f"{key} = {{" in note for key in at for note in before.notes):  # a table that is named as a whole
            continue
        changed_table = copy.deepcopy(table)
        inner = changed_table
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] = other(value)
        changed.write_text(json.dumps(changed_table))  # which is YAML, and is written faster
        if outcome() == before:
            silent.append((at, value))
    assert not silent, silent


def test_nothing_of_a_dune_section_is_dropped_in_silence(data_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "models.ini"
    text = (data_dir / "dune/vsim-models.ini").read_text()
    begin = text.index("/lauv]")
    end = text.index("\n[", begin)
    lines = text[begin:end].splitlines()
    before = read(data_dir / "dune/vsim-models.ini", "lauv", {}, "deg", True)
    keys = [k for k, line in enumerate(lines) if re.match(r"[A-Z][\w ]+=", line)]
    assert len(keys) > 15
    for k in keys:
        name, _, rest = lines[k].partition("=")
        first = re.match(r"\s*(-?[\d.]+)(.*)", rest)
        value = f" {1.5 * float(first[1]) + 0.125}{first[2]}" if first else f"{rest}x"
        path.write_text(text[:begin] + "\n".join([*lines[:k], f"{name}={value}", *lines[k + 1 :]]) + text[end:])
        try:
            found = read(path, "lauv", {}, "deg", True)
        except ConfigError:
            continue
        assert found != before._replace(files=found.files), lines[k]
    path.write_text(text[:begin] + "\n".join([*lines, "Strange Key = 7"]) + text[end:])
    with pytest.raises(ConfigError, match="Strange Key = 7"):
        read(path, "lauv", {}, "deg")
