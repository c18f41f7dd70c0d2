"""Derived properties of the library models against known values."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from click.testing import CliRunner

from tests.conftest import wavesim
from wavesim_sdk.cli import cli
from wavesim_server.cli_vehicles import vehicles
from wavesim_server.dynamics.model_compiler import aerofoil_table
from wavesim_server.model_properties import derived_properties, describe
from wavesim_world.config import library
from wavesim_world.config.build import read_models


def here(command: str, *arguments: str | Path) -> CompletedProcess[str]:
    """The same as ``wavesim`` without a process for each."""
    cli.add_command(vehicles)
    done = CliRunner().invoke(cli, [command, *map(str, arguments)])
    return CompletedProcess([], done.exit_code, done.stdout, done.stderr)


def test_lauv() -> None:
    found = derived_properties(library()["lauv"])
    # 2.4 u + 2.4 u^2 = 12 N
    # over ground; lighter than the water it rises on its way
    assert found["full_speed_m_s"] == pytest.approx((-2.4 + (2.4**2 + 4 * 2.4 * 12) ** 0.5) / 4.8, rel=5e-3)
    assert found["displacement_kg"] == pytest.approx(1025 * 0.01762, abs=1e-3)
    assert 2.0 < found["turning_diameter_m"] < 15.0


def test_a_box_buoy_floats_at_its_draft() -> None:
    found = derived_properties(library()["box-buoy"])
    assert found["draft_m"] == pytest.approx(307.5 / 1025, abs=2e-3)
    # heave: (m + a33) and rho g A_wp
    assert found["natural_periods_s"]["heave"] == pytest.approx(
        6.2832 * ((307.5 + 230) / (1025 * 9.81)) ** 0.5, rel=0.02
    )


def test_periods_of_linear_restoring() -> None:
    """Jolner's roll, nearly uncoupled: (I_xx + a_44) and G_44."""
    found = derived_properties(library()["jolner"])["natural_periods_s"]
    assert found["roll"] == pytest.approx(6.2832 * ((5.1224 + 2.55) / 248.83) ** 0.5, rel=0.1)
    assert None not in found.values()


def test_every_model_has_its_sheet() -> None:
    for name in ("odin", "otter", "supply", "vita1"):
        sheet = describe(library()[name])
        assert sheet["source"] and sheet["validated"]
        assert 0.5 < sheet["derived"]["full_speed_m_s"] < 10.0


def test_the_sheet_names_the_sensors_of_a_model(root: Path) -> None:
    models = ["--models", root / "examples/trials/fleet.xml"]
    said = wavesim("vehicles", "explain", "profiler", *models).stdout
    assert "sensors              pressure 2 Hz, temperature 2 Hz" in said
    sheet = json.loads(wavesim("vehicles", "explain", "profiler", *models, "--json").stdout)
    assert sheet["sensors"][1] == {"name": "temperature", "type": "temperature", "rate_hz": 2.0}
    assert describe(library()["jolner"])["sensors"] == []


def test_drawing(tmp_path: Path) -> None:
    for name, command in (("vita1", wavesim), ("buoy", here), ("rexrov2", here)):
        out = tmp_path / f"{name}.png"
        assert command("vehicles", "draw", name, "--out", out).returncode == 0
        assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and out.stat().st_size > 20_000


@pytest.mark.data
def test_importing(data_dir: Path, tmp_path: Path) -> None:
    """Each kind of file: what is missing is asked for, and the result can be explained."""
    cases: list[tuple[str, list[str], list[str], str]] = [
        (
            "dune/vsim-models.ini",
            ["--section", "asv"],
            ["--set", "added-mass=5 50 50 0.1 0.1 1", "--set", "active=u v r"],
            "asv",
        ),
        (
            "odin/Odin.yaml",
            ["--partial"],
            ["--set", "size=10.5 3.5 1.4", "--set", "cross-flow-density=1000", "--angles", "deg"],
            "odin",
        ),
        ("sookshma/model", [], ["--angles", "deg"], "sookshma"),
        ("vehicles/rexrov2_model_params_exact.yaml", [], ["--set", "thrusters=0 0 0 1 0 0 900"], "rexrov2"),
        (
            "vehicles/BlueROV.yaml",
            ["--partial"],
            [
                f"--set={k}"
                for k in ("mass=11.5", "inertia=0.16 0.16 0.16", "size=0.46 0.34 0.25", "thrusters=0 0 0 1 0 0 90")
            ],
            "bluerov",
        ),
    ]
    for file, always, missing, name in cases:
        refused = here("vehicles", "import", data_dir / file, *always)
        assert refused.returncode == 2 and "supply" in refused.stderr, file
        for item in missing:
            key = item.removeprefix("--set=").partition("=")[0]
            assert item in ("--set", "deg") or key in refused.stderr, (file, item)
        out = tmp_path / f"{name}.xml"
        done = here("vehicles", "import", data_dir / file, *always, *missing, "--out", out)
        assert done.returncode == 0, done.stderr
        shown = here("vehicles", "explain", name, "--models", out, "--json")
        assert json.loads(shown.stdout)["name"] == name
    assert (
        "select one of the models in this file" in here("vehicles", "import", data_dir / "dune/vsim-models.ini").stderr
    )
    wrong = wavesim("vehicles", "import", data_dir / "dune/bathymetry-apdl.ini", "--section", "x")
    assert wrong.returncode == 2 and "Traceback" not in wrong.stderr


@pytest.mark.data
def test_importing_an_aerofoil(data_dir: Path, tmp_path: Path) -> None:
    """A Panisim folder whose rudder names a NACA table: its lift and drag at the local flow angle."""
    source = data_dir / "sookshma/model"
    folder = tmp_path / "boat"
    folder.mkdir()
    for file in source.iterdir():
        text = file.read_text()
        if file.name == "control_surfaces.yml":
            text = text.replace("naca_number: &naca None", 'naca_number: &naca "0015"')
            text = text.partition("      Y_delta")[0]  # coefficients would take the place of the table
        (folder / file.name).write_text(text)
    without = wavesim("vehicles", "import", folder, "--angles", "deg", "--set", "added-mass=1 1 1 1 1 1")
    assert without.returncode == 0 and "no aerofoil table 0015" in without.stderr
    assert "lift_slope" in without.stdout
    (tmp_path / "NACA0015.csv").symlink_to(data_dir / "sookshma/NACA0015.csv")
    out = tmp_path / "boat.xml"
    asked = ("--angles", "deg", "--set", "added-mass=1 1 1 1 1 1", "--partial")
    done = wavesim("vehicles", "import", folder, *asked, "--out", out)
    assert done.returncode == 0, done.stderr
    model = read_models(out)["sookshma"]
    assert model.fin[0].law == "aerofoil" and model.fin[0].aerofoil is not None
    table = aerofoil_table(model.fin[0].aerofoil, model.fin[0].plate)
    alpha = np.linspace(-180, 180, table.shape[1])
    assert np.interp(-19.5, alpha, table[0]) == pytest.approx(-1.3072, abs=1e-3), "the file's own row"
    assert np.interp(90.0, alpha, table[1]) == pytest.approx(1.2, abs=1e-3), "a plate of finite span across the flow"


@pytest.mark.data
def test_replaying_recorded_commands(data_dir: Path, tmp_path: Path) -> None:
    replay = ("replay-actuators", data_dir / "odin/sea-trial-actuators-1.txt", "--model", "odin", "--rate", "100")
    done = wavesim(
        *replay,
        "--map",
        "port=1*0.01",
        "--map",
        "starboard=4*0.01",
        "--map",
        "port-angle=2*-0.0047124",
        "--map",
        "starboard-angle=5*-0.0047124",
        "--map",
        "port-deflector=3*0.01",
        "--map",
        "starboard-deflector=6*0.01",
        "--track",
        data_dir / "reference/odin_sea-trial-actuators-1.csv",
        "--north",
        "x",
        "--east",
        "y",
        "--out",
        tmp_path / "track.csv",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["seconds"] == pytest.approx(58.37, abs=0.02)
    assert data["comparison"]["length_m"] == pytest.approx(160, abs=5)
    track = np.loadtxt(tmp_path / "track.csv", delimiter=",", skiprows=1)
    assert len(track) > 500 and np.abs(track[:, 4:6]).max() < 0.15, "upright"
    assert data["comparison"]["rms_m"] < 40.0
    wrong = wavesim(
        *replay,
        "--map",
        "prt=1",
    )
    assert wrong.returncode == 2 and "did you mean 'port'" in wrong.stderr


def test_the_command() -> None:
    listed = json.loads(wavesim("vehicles", "--json").stdout)
    assert {m["name"] for m in listed} == set(library())
    shown = json.loads(wavesim("vehicles", "buoy", "--json").stdout)
    assert shown["derived"]["net_buoyancy_N"] == pytest.approx(265.7, abs=0.1)
    wrong = wavesim("vehicles", "remus")
    assert wrong.returncode == 2 and "did you mean 'remus100'" in wrong.stderr
