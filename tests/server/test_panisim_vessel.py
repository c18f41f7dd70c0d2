"""The complete example vessel of Panisim's manual is imported and sails as it is printed; so does one of the same structure
with other numbers, whose parts are also left out one by one."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.conftest import wavesim
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import read
from wavesim_server.importers.panisim_vessel import estimated_added_mass
from wavesim_server.study import empty_sea
from wavesim_world.config import Model
from wavesim_world.config.build import read_models
from wavesim_world.config.validation import check_model

#: of the same structure as the manual's example
VESSEL: dict[str, dict[str, Any]] = {
    "geometry": {
        "geometry_file": "inputs/small_cat/hull.gdf",
        "length": 4.0,
        "breadth": 1.2,
        "depth": 0.8,
        "CO": {"position": [0.0, 0.0, 0.0], "orientation": [0.0, 0.0, 0.0]},
        "CG": {"position": [0.0, 0.0, 0.1], "orientation": [0.0, 0.0, 0.0]},
        "CB": {"position": [0.0, 0.0, -0.2], "orientation": [0.0, 0.0, 0.0]},
        "gyration": [0.5, 1.1, 1.1],
    },
    "inertia": {"mass": 600.0, "buoyancy_mass": 600.0, "inertia_matrix": "None", "added_mass_matrix": "None"},
    "hydrodynamics": {
        "dim_flag": False,
        "hydra_file": "inputs/small_cat/hydrodynamics.json",
        "coriolis_flag": True,
        "X_u": -40.0,
        "X_u_au": -60.0,
        "Y_v": -150.0,
        "Y_v_av": -300.0,
        "N_r": -250.0,
        "N_r_ar": -300.0,
    },
    "control_surfaces": {
        "naca_file": "inputs/naca0012.csv",
        "control_surfaces": [
            {
                "control_surface_id": 1,
                "control_surface_name": "Stern Rudder",
                "control_surface_location": [-1.9, 0.0, 0.0],
                "control_surface_orientation": [0, 0, 1.57],
                "control_surface_area": 0.1,
                "control_surface_T": 0.4,
                "control_surface_delta_max": 30.0,
                "control_surface_deltad_max": 15.0,
                "control_surface_hydrodynamics": "None",
            }
        ],
    },
    "thrusters": {
        "thrusters": [
            {
                "thruster_id": 1,
                "thruster_name": "Main Propeller",
                "thruster_location": [-1.9, 0.0, 0.0],
                "thruster_orientation": [0.0, 0.0, 0.0],
                "D_prop": 0.3,
                "KT_at_J0": 0.45,
                "n_max": 1200,
                "tp": 0.08,
            }
        ]
    },
    "initial_conditions": {
        "start_location": [0.0, 0.0, 0.0],
        "start_orientation": [0.0, 0.0, 0.0],
        "start_velocity": [0.0] * 6,
        "use_quaternion": False,
    },
    "sensors": {
        "sensors": [
            {
                "sensor_type": "IMU",
                "sensor_topic": "/vessel/imu",
                "sensor_location": [0.0, 0.0, 0.1],
                "sensor_orientation": [0.0, 0.0, 0.0],
                "publish_rate": 50,
                "use_custom_covariance": True,
                "custom_covariance": {
                    f"{what}_covariance": [v, 0.0, 0.0, 0.0, v, 0.0, 0.0, 0.0, v]
                    for what, v in (("orientation", 0.02), ("angular_velocity", 0.01), ("linear_acceleration", 0.04))
                },
            }
        ]
    },
}
SIMULATION: dict[str, Any] = {
    "density": 1025.0,
    "gravity": 9.80665,
    "agents": [
        {"name": "small_cat", "type": "usv", "active_dof": [1, 1, 0, 0, 0, 1], "U": 2.0, "maintain_speed": False}
    ],
}


def written(tmp_path: Path, change: dict[str, dict[str, Any]] | None = None, simulation: Any = SIMULATION) -> Path:
    """The folder of a vessel in `inputs`, with some entries changed (None = left out)."""
    folder = tmp_path / "inputs/small_cat"
    folder.mkdir(parents=True)
    for part, content in VESSEL.items():
        new = {**content, **(change or {}).get(part, {})}
        (folder / f"{part}.yml").write_text(yaml.safe_dump({k: v for k, v in new.items() if v is not None}))
    if simulation is not None:
        (folder.parent / "simulation_input.yml").write_text(yaml.safe_dump(simulation))
    return folder


def imported(folder: Path, settings: dict[str, str] | None = None, partial: bool = False) -> tuple[Model, list[str]]:
    """The model, which the server accepts, and the notes."""
    found = read(folder, None, settings or {}, None, partial)
    out = folder.parent / "models.xml"
    out.write_text(found.xml)
    (model,) = read_models(out).values()
    check_model(model)
    return model, found.notes


def checks(folder: Path) -> None:
    """The commands that a user types: import without options, then check a configuration with the model."""
    out = folder.parent / "boat.xml"
    done = wavesim("vehicles", "import", folder, "--out", out)
    assert done.returncode == 0 and "note: " in done.stderr, done.stderr
    config = folder.parent / "config.xml"
    config.write_text(
        f'<wavesim name="t"><models><include file="boat.xml"/></models><fleet><vehicle name="v" model="{folder.name}" '
        'position="0 0 0 m"/></fleet></wavesim>'
    )
    done = wavesim("check", config)
    assert done.returncode == 0, done.stdout + done.stderr


def sailed(model: Model, rudder: float, seconds: float = 180.0) -> np.ndarray[Any, Any]:
    """Rows (t, x, y, speed, yaw rate), two a second, at half the propeller's speed; the rudder from 60 s on."""
    step = 0.02
    sim = empty_sea(1, step, "")
    row = sim.enter("v", position=(0.0, 0.0, 0.0), variant=model)
    rows = []
    for k in range(int(2 * seconds)):
        sim.command(row, [0.5 * model.thruster[0].maximum, rudder if k >= 120 else 0.0])
        sim.advance(round(0.5 / step))
        now = sim.state()[row]
        rows.append((0.5 * (k + 1), *now["p_WB_W"][:2], math.hypot(*now["v_WB_B"][:2]), now["w_WB_B"][2]))
    return np.array(rows)


def is_plausible(model: Model) -> dict[str, float]:
    """Speed and turning circle of a boat: between a tenth and twice its length per second, in one to thirty lengths."""
    assert model.box is not None
    length = model.box.length
    port, starboard = sailed(model, 0.3), sailed(model, -0.3)
    found: dict[str, float] = {}
    for track in (port, starboard):
        assert np.isfinite(track).all()
        assert abs(track[119, 2]) < 0.01 * track[119, 1], "a straight course without rudder"
    turn = port[-120:]
    found["speed"] = float(port[119, 3])
    found["turn speed"], found["rate"] = float(turn[:, 3].mean()), float(turn[:, 4].mean())
    found["diameter"] = 2.0 * found["turn speed"] / abs(found["rate"])
    assert starboard[-1, 4] == pytest.approx(-port[-1, 4], rel=1e-3)
    assert 0.1 * length < found["speed"] < 2.0 * length, found
    assert length < found["diameter"] < 30.0 * length, found
    assert found["turn speed"] < found["speed"]
    return found


@pytest.mark.data
def test_the_manuals_vessel_as_it_is_printed(data_dir: Path, tmp_path: Path) -> None:
    """Every file is that of the manual; the aerofoil table, of which it prints an excerpt, is absent or the whole one."""
    seeds = data_dir.parent / "seeds"
    if not seeds.is_dir():
        pytest.skip("the manual is absent")
    text = next(t for p in seeds.glob("*.txt") if "Example: Complete Vessel Configuration" in (t := p.read_text()))
    text = text[text.index("Example: Complete Vessel Configuration") :]
    parts = re.split(r"(?m)^\d\. `?(\w+\.yml)`?:$", text)[1:]
    files = {name: re.findall(r"(?s)```\n(.*?)```", body) for name, body in zip(parts[::2], parts[1::2], strict=True)}
    assert len(files) == 9
    folder = tmp_path / "inputs/example_vessel"
    folder.mkdir(parents=True)
    for name, blocks in files.items():
        if name == "simulation_input.yml":  # a page break divides its last entry, which loses its indentation
            first, second = blocks[:2]
            rest = "".join(f"    {line}\n" for line in second.splitlines())
            (folder.parent / name).write_text(first.rstrip() + "\n" + rest)
        else:
            (folder / name).write_text(blocks[0])
    model, notes = imported(folder)
    assert model.name == "example_vessel" and model.type == "surface" and model.active == "u v r"
    assert model.thruster[0].name == "main-propeller" and model.fin[0].name == "rudder"
    assert model.mass.value == 1000.0 and model.thruster[0].maximum == 25.0
    for word in ("main-propeller", "control_surface_type", "added mass", "dim_flag", "no aerofoil table", "yaw of 90"):
        assert any(word in note for note in notes), word
    checks(folder)
    print("as printed", is_plausible(model))
    table = folder.parent / "NACA0015.csv"
    table.write_text((data_dir / "sookshma/NACA0015.csv").read_text())
    whole, notes = imported(folder)
    assert whole.fin[0].law == "aerofoil" and not any("no aerofoil table" in n for n in notes)
    print("with the table", is_plausible(whole))


def test_a_vessel_of_the_manuals_structure_sails(tmp_path: Path) -> None:
    model, notes = imported(written(tmp_path))
    assert model.name == "small_cat" and model.type == "surface" and model.active == "u v r"
    assert model.thruster[0].name == "main-propeller" and model.fin[0].name == "stern-rudder"
    assert model.fin[0].rate == pytest.approx(math.radians(15.0)) and model.fin[0].limit == pytest.approx(
        math.radians(30.0)
    )
    assert model.fin[0].normal == (0.0, 1.0, 0.0) and model.fin[0].chord == (1.0, 0.0, 0.0)
    assert model.derivatives is not None and model.derivatives.system == "dimensional"
    assert any("--set derivatives=prime" in n for n in notes)
    assert model.sensors is not None and (model.sensors.ahrs or any("orientation_covariance" in n for n in notes))
    checks(tmp_path / "inputs/small_cat")
    found = is_plausible(model)
    # 0.92 rho D^4 KT (1 - u/(n D)) n^2 = 40 u + 60 u^2 at n = 10/s
    thrust = 0.92 * 1025.0 * 0.3**4 * 0.45 * 100.0
    speed = max(np.roots([60.0, 40.0 + thrust / 3.0, -thrust]).real)
    assert found["speed"] == pytest.approx(speed, rel=0.01)


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"inertia": {"buoyancy_mass": None}}, "buoyancy_mass is missing"),
        ({"geometry": {"CB": None}}, "CB is missing"),
        ({"geometry": {"geometry_file": None}}, "--set added-mass"),
        ({"hydrodynamics": {"dim_flag": True}}, "--set added-mass"),
        ({"control_surfaces": {"naca_file": None}}, "no aerofoil table"),
        ({"initial_conditions": {"start_location": None}}, "initial state"),
    ],
)
def test_what_is_left_out_has_a_note(tmp_path: Path, change: dict[str, dict[str, Any]], note: str) -> None:
    _, notes = imported(written(tmp_path, change))
    assert any(note in n for n in notes), notes


def test_a_partial_import_loads(tmp_path: Path) -> None:
    """With content that no model can have: a derivative of an unknown name, a lidar, a propeller without thrust."""
    more: dict[str, dict[str, Any]] = {
        "hydrodynamics": {"Y_foo": 3.0, "cross_flow_drag": True},
        "geometry": {"keel": 1.0},
    }
    more["thrusters"] = {
        "thrusters": [*VESSEL["thrusters"]["thrusters"] * 2, {**VESSEL["thrusters"]["thrusters"][0], "KT_at_J0": 0}]
    }
    folder = written(tmp_path, more)
    with pytest.raises(ConfigError, match="Y_foo"):
        read(folder, None, {}, None)
    model, notes = imported(folder, partial=True)
    assert [t.name for t in model.thruster] == ["main-propeller", "main-propeller-2"]
    for word in ("Y_foo", "keel", "KT_at_J0"):
        assert any(word in n and n.startswith("omitted") for n in notes), word


AUV: dict[str, dict[str, Any]] = {
    "geometry": {"length": 2.0, "breadth": 0.3, "depth": 0.3},
    "inertia": {"mass": 120.0, "buoyancy_mass": 121.0},
}


def test_an_auv_is_an_underwater_vehicle(tmp_path: Path) -> None:
    """By its agent, by its depth at the start, by its mass, or by the user's word."""
    auv = {**SIMULATION, "agents": [{"name": "small_cat", "type": "auv"}]}
    model, _ = imported(written(tmp_path / "a", AUV, auv))
    assert model.type == "underwater" and model.buoyancy is not None
    assert model.buoyancy.volume == pytest.approx(121.0 / 1025.0) and model.buoyancy.centre == (0.0, 0.0, -0.2)
    deep = {**AUV, "initial_conditions": {"start_location": [0.0, 0.0, 5.0]}, "inertia": {"mass": 60.0}}
    for k, change in enumerate((AUV, deep)):
        model, notes = imported(written(tmp_path / f"b{k}", change, None))
        assert model.type == "underwater" and any("type: underwater" in n for n in notes)
    model, _ = imported(written(tmp_path / "c", AUV, None), {"type": "surface"})
    assert model.type == "surface"
    with pytest.raises(ConfigError, match="use surface or underwater"):
        read(written(tmp_path / "d", AUV, None), None, {"type": "boat"}, None)


def test_the_mounting_of_a_surface_is_kept(tmp_path: Path) -> None:
    """A plane lies flat and its positive angle lifts; a rudder is upright; dihedral and sweep turn both."""
    surface = VESSEL["control_surfaces"]["control_surfaces"][0]

    def fin(number: int, name: str, angles: list[float]) -> tuple[Any, Any]:
        one = {**surface, "control_surface_name": name, "control_surface_orientation": angles}
        model, _ = imported(written(tmp_path / str(number), {"control_surfaces": {"control_surfaces": [one]}}))
        return model.fin[0].chord, model.fin[0].normal

    assert fin(0, "stern plane", [0, 0, 0]) == ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
    assert fin(1, "stern plane", [0.3, 0, 0])[1] == pytest.approx((0.0, math.sin(0.3), -math.cos(0.3)))
    assert fin(2, "stern plane", [0, 0.1, 0])[0] == pytest.approx((math.cos(0.1), 0.0, -math.sin(0.1)))
    assert fin(3, "rudder", [math.pi / 2, 0, 0])[1] == pytest.approx((0.0, 1.0, 0.0))
    assert fin(4, "rudder", [0, 0, 0.1])[0] == pytest.approx((math.cos(0.1), math.sin(0.1), 0.0))


# ------------------------------------------------------------------ the panel hull


def gdf(path: Path, half_beams: list[tuple[float, float, float]], top: float = 0.0) -> None:
    """A hull of rectangular sections (x, half beam, draft), one half of it (ISY = 1), with flat ends."""
    panels = []
    for (x, b, t), (x2, b2, t2) in itertools.pairwise(half_beams):
        panels.append([(x, b, top), (x2, b2, top), (x2, b2, -t2), (x, b, -t)])
        panels.append([(x, b, -t), (x2, b2, -t2), (x2, 0, -t2), (x, 0, -t)])
        if top < 0.0:
            panels.append([(x, b, top), (x2, b2, top), (x2, 0, top), (x, 0, top)])
    for x, b, t in (half_beams[0], half_beams[-1]):
        panels.append([(x, 0, top), (x, b, top), (x, b, -t), (x, 0, -t)])
    lines = [" ".join(f"{c:g}" for c in corner) for panel in panels for corner in panel]
    path.write_text("\n".join(["a hull", "1.0 9.81 ULEN GRAV", "0 1 ISX ISY", str(len(panels)), *lines]) + "\n")


@pytest.mark.parametrize("kind", ["usv", "auv"])
def test_the_cross_flow_drag_comes_from_the_panel_hull(tmp_path: Path, kind: str) -> None:
    """Panisim's `cross_flow_drag`: the sections of the file, a box with a bow that tapers; and the integral of each plane."""
    agents = {**SIMULATION, "agents": [{"name": "small_cat", "type": kind}]}
    drag: dict[str, Any] = {"cross_flow_drag": True, "Y_v_av": None, "N_r_ar": None}
    change: dict[str, dict[str, Any]] = {"hydrodynamics": drag} if kind == "usv" else {"hydrodynamics": drag, **AUV}
    folder = written(tmp_path, change, agents)
    with pytest.raises(
        ConfigError, match=r"cross_flow_drag = True, because the panel hull .*--set hull-file=FILE\.gdf"
    ):
        read(folder, None, {}, None)
    gdf(folder / "hull.gdf", [(-2.0, 0.5, 0.3), (1.0, 0.5, 0.3), (2.0, 0.1, 0.2)], 0.0 if kind == "usv" else -0.1)
    model, notes = imported(folder)
    assert any("25 sections of hull.gdf" in n for n in notes)
    assert model.cross_flow is not None and model.cross_flow.coefficient == "hoerner"
    found = np.array([(s.x, s.beam, s.draft) for s in model.cross_flow.section])
    beam = np.interp(found[:, 0], [-2, 1, 2], [1.0, 1.0, 0.2])
    depth = np.interp(found[:, 0], [-2, 1, 2], [0.3, 0.3, 0.2]) - (0.0 if kind == "usv" else 0.1)
    assert found[:, 0] == pytest.approx(np.linspace(-2, 2, 25), abs=1e-5)
    assert found[:, 1] == pytest.approx(beam, abs=1e-5) and found[:, 2] == pytest.approx(depth, abs=1e-5)
    sim = empty_sea(1, 0.02, "")
    row = sim.enter("v", position=(0.0, 0.0, 30.0), variant=model)
    sim.set_pose(row, velocity=(0.0, 1.0, 0.0, 0.0, 0.0, 0.3))
    sim.advance(500)
    assert np.isfinite(sim.state()["p_WB_W"][row]).all()


def test_coefficients_that_panisim_has_already_written_are_used(tmp_path: Path) -> None:
    folder = written(tmp_path, {"hydrodynamics": {"cross_flow_drag": True}})
    gdf(folder / "hull.gdf", [(-2.0, 0.5, 0.3), (2.0, 0.5, 0.3)])
    model, notes = imported(folder)
    assert model.cross_flow is None and any("already contains N_r_ar, Y_v_av" in n for n in notes)


@pytest.mark.parametrize("text", ["", "a\n1 9.81\n0 1\n2\n0 0 0 1 0 0 1 1 0 0 1 0\n", "a\n1 9.81\n0 1\nten\n"])
def test_a_broken_panel_hull_is_named(tmp_path: Path, text: str) -> None:
    folder = written(tmp_path, {"hydrodynamics": {"cross_flow_drag": True, "Y_v_av": None, "N_r_ar": None}})
    (folder / "hull.gdf").write_text(text)
    with pytest.raises(ConfigError, match="not a panel hull"):
        read(folder, None, {}, None)


def test_the_estimated_added_mass_is_that_of_known_sections() -> None:
    """A circular cylinder adds its own mass of water across, and nothing in roll; afloat, half as much. A flat plate of
    beam b adds pi rho b^2/4 in heave and pi rho b^4/128 in roll."""
    rho, length, r = 1025.0, 6.0, 0.5
    x = np.linspace(-3.0, 3.0, 201)
    water = rho * math.pi * r * r * length
    tube = estimated_added_mass(np.column_stack([x, 0 * x + 2 * r, 0 * x + 2 * r]), water, rho, True)
    assert tube[1:4] == pytest.approx([water, water, 0.0]) and 0.01 * water < tube[0] < 0.1 * water
    assert tube[4:] == pytest.approx([water * length**2 / 12] * 2, rel=1e-3)
    afloat = estimated_added_mass(np.column_stack([x, 0 * x + 2 * r, 0 * x + r]), water / 2, rho, False)
    assert afloat[1:] == pytest.approx(tube[1:] / 2)
    plate = estimated_added_mass(np.column_stack([x, 0 * x + 1.0, 0 * x]), 10.0, rho, True)
    assert plate[1:4] == pytest.approx([0.0, math.pi / 4 * rho * length, math.pi / 128 * rho * length])
