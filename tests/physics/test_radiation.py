"""Radiated waves: oscillators in the kernel, their identification from tables, hulls from the files of panel codes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.linalg import expm

from tests.physics import hemisphere as h
from tests.physics.test_terms import FULL, HEAD
from tests.physics.test_waves import regular
from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.cli_vehicles import vehicles
from wavesim_server.dynamics import block_rows as B
from wavesim_server.environment import exposure, weather
from wavesim_server.importers import panel_results, read, retardation
from wavesim_world.config import LoadedConfig, Model
from wavesim_world.config.build import read_models
from wavesim_world.config.exposure import Oscillator, Radiation
from wavesim_world.config.validation import check_model

Make = Callable[..., LoadedConfig]
SQUARES, DAMPING = np.array([0.64, 2.25]), np.array([[0.5, 0.2], [0.2, 0.9]])
COUPLING = np.array([[9.0, 0, 0, 0, 4.0, 0], [-3.0, 0, 0, 0, 7.0, 0]])


def oscillators(squares: np.ndarray, damping: np.ndarray, coupling: np.ndarray) -> Radiation:
    return Radiation(
        oscillator=tuple(
            Oscillator(frequency=math.sqrt(s), damping=tuple(d), coupling=tuple(c))
            for s, d, c in zip(squares, damping, coupling, strict=True)
        )
    )


def test_oscillators_against_their_equations(config: Make) -> None:
    """A pushed body with two coupled oscillators in surge and pitch, against the matrix exponential."""
    xml = "".join(
        f'<oscillator frequency="{math.sqrt(s)} rad/s" damping="{" ".join(map(str, d))}" coupling="{" ".join(map(str, c))}"/>'
        for s, d, c in zip(SQUARES, DAMPING, COUPLING, strict=True)
    )
    text = HEAD.format(
        attributes='active="u"',
        buoyancy='<buoyancy volume="0.2439 m3"/>',
        added=FULL,
        terms=f"<radiation>{xml}</radiation>",
    )
    sim = Simulation(config(f"<time step='10 ms'/><world><bed depth='1000 m'/></world>{text}"))
    row = sim.enter("v", "m", (0.0, 0.0, 100.0))
    sim.push(row, [50.0, 0, 0])
    mass, b = 262.0, COUPLING[:, 0]
    a = np.zeros((5, 5))  # u, q, q'
    a[0, 0], a[0, 3:] = -8.0 / mass, -b / mass
    a[1:3, 3:] = np.eye(2)
    a[3:, 0], a[3:, 1:3], a[3:, 3:] = b, -np.diag(SQUARES), -DAMPING
    big = expm(np.block([[a, np.array([50.0 / mass, 0, 0, 0, 0])[:, None]], [np.zeros((1, 6))]]) * 5.0)
    sim.advance(500)
    body = sim.fleet.body(row)
    assert np.allclose([body[B.NU], *body[B.MEMORY_STATE : B.MEMORY_STATE + 4]], big[:5, 5], atol=1e-7)


def test_operators_of_motion_know_the_oscillators() -> None:
    """Impedance of a model with them against K(i w) written out."""
    model = _model(oscillators(SQUARES, DAMPING, COUPLING))
    bare = dataclasses.replace(model, radiation=None)
    w = np.array([0.3, 0.9, 2.0])
    (a, b), (c, d) = exposure.impedance(model, w), exposure.impedance(bare, w)
    for k, at in enumerate(w):
        s = 1j * at
        wanted = s * (s * COUPLING.T @ np.linalg.inv(s * s * np.eye(2) + s * DAMPING + np.diag(SQUARES)) @ COUPLING)
        assert np.allclose((a - c)[k] + 1j * (b - d)[k], wanted, atol=1e-6)  # of a difference of stiffnesses of 1e7


def _model(radiation: Radiation | None) -> Model:
    from wavesim_world.config import library

    return dataclasses.replace(library()["supply"], memory=(), radiation=radiation)


@pytest.mark.parametrize(
    ("damping", "message"),
    [
        ([[0.5, 0.2], [0.1, 0.9]], "not symmetric"),
        ([[0.5, 0.8], [0.8, 0.9]], "negative eigenvalue, so they would supply energy"),
        ([[0.5, 0.0], [0.0, 0.0]], "oscillate forever"),
        ([[0.5], [0.2]], "1 numbers in `damping`, but needs 2: one per oscillator"),
    ],
)
def test_what_gives_energy_is_refused(damping: list[list[float]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_model(_model(oscillators(SQUARES, np.array(damping), COUPLING)))


# ------------------------------------------------------------------ identification


@pytest.mark.parametrize("known", [True, False])
def test_a_known_memory_is_found_again(known: bool) -> None:
    """Surge and pitch together, heave apart; without the added mass at infinite frequency too, 0.2 % of the greatest."""
    damping = np.zeros((3, 3))
    damping[:2, :2], damping[2, 2] = DAMPING, 0.6
    coupling = np.vstack([COUPLING, [0, 0, 11.0, 0, 0, 0]])
    made = retardation.RadiationMemory(
        np.sqrt([*SQUARES, 1.2]), damping, coupling, np.diag([50.0, 80, 70, 10, 60, 5]), {}
    )
    w = np.linspace(0.05, 6.0, 90)
    k = made.retardation(w)
    tables = panel_results.RadiationCoefficients(
        w, made.infinite + k.imag / w[:, None, None], k.real, made.infinite if known else None
    )
    found = retardation.identify_memory(tables)
    between = np.linspace(0.07, 5.9, 57)
    for i, j in ((0, 0), (0, 4), (4, 4), (2, 2)):
        error = np.abs(found.retardation(between) - made.retardation(between))[:, i, j]
        assert error.max() < (0.002 if known else 0.03) * np.abs(k[:, i, j]).max(), (i, j)
    assert np.diag(found.infinite)[[0, 2, 4]] == pytest.approx([50.0, 70.0, 60.0], rel=1e-6 if known else 0.01)
    assert set(found.errors) == {(0, 0), (0, 4), (4, 4), (2, 2)} and not found.coupling[:, [1, 3, 5]].any()


def test_hulmes_hemisphere() -> None:
    """3 % of the greatest damping, the published added mass at infinite frequency to 3 %, passive at every frequency."""
    zero = np.zeros((len(h.FREQUENCIES), 6, 6))
    a, b = zero.copy(), zero.copy()
    a[:, 2, 2], b[:, 2, 2] = h.ADDED, h.DAMPING
    found = retardation.identify_memory(panel_results.make_coefficients(h.FREQUENCIES, a, b))
    rms, damping, added = found.errors[2, 2]
    assert rms < 0.01 and damping < 0.03 and added < 0.03
    assert found.infinite[2, 2] / h.MASS == pytest.approx(h.INFINITE, rel=0.03)
    k = found.retardation(np.geomspace(1e-3, 1e3, 2000))[:, 2, 2]
    assert k.real.min() >= 0.0 and found.poles.real.max() < -0.01


def test_tables_that_hold_too_little() -> None:
    def identify(some: slice, sign: float = 1.0) -> None:
        a, b = np.zeros((2, len(h.FREQUENCIES), 6, 6))
        a[:, 2, 2], b[:, 2, 2] = h.ADDED, sign * h.DAMPING
        retardation.identify_memory(panel_results.make_coefficients(h.FREQUENCIES[some], a[some], b[some]))

    with pytest.raises(
        ValueError,
        match=r"periods longer than 5\.\d+ s are missing: at this end of the range, the damping in heave is still 9\d %",
    ):
        identify(slice(6, None))
    with pytest.raises(ValueError, match=r"periods shorter than \d\.\d+ s are missing"):
        identify(slice(0, 12))
    with pytest.raises(ValueError, match="the table has 5 frequencies"):
        identify(slice(None, None, 5))
    a = np.zeros((len(h.FREQUENCIES), 6, 6))
    b = a.copy()
    b[:, 2, 2] = np.linspace(-1.0, 1.0, len(b))
    with pytest.raises(ValueError, match="the damping in heave is negative"):
        retardation.identify_memory(panel_results.make_coefficients(h.FREQUENCIES, a, b))


# ------------------------------------------------------------------ files


def write(code: str, folder: Path) -> tuple[Path, dict[str, str]]:
    """The hemisphere as a code writes it, and what else it takes to import it."""
    if code == "capytaine":
        return h.capytaine(folder / "bowl.nc"), h.SETTINGS
    if code == "nemoh":
        return h.nemoh(folder / "bowl"), h.SETTINGS
    more = {"length": "2", "gravity": f"{h.G}", "water-density": f"{h.DENSITY}", "origin-depth": "0"}
    return h.wamit(folder / "bowl.1"), h.SETTINGS | more


def imported(code: str, folder: Path) -> Model:
    """By the command, as a user does it."""
    path, settings = write(code, folder)
    arguments = ["import", str(path), "--angles", "rad", "--out", str(folder / "bowl.xml")]
    for key, value in settings.items():
        arguments += ["--set", f"{key}={value}"]
    done = CliRunner().invoke(vehicles, arguments)
    assert done.exit_code == 0, done.output
    assert "radiation heave-heave: damping error" in done.output and "passive" in done.output
    return read_models(folder / "bowl.xml")["bowl"]


@pytest.fixture(scope="module")
def bowls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    return {code: imported(code, tmp_path_factory.mktemp(code)) for code in ("capytaine", "nemoh", "wamit")}


def test_three_codes_give_one_hull(bowls: dict[str, Model]) -> None:
    """Operators with their phases, restoring and memory; WAMIT's file holds the added mass at infinite frequency."""
    at = np.array([0.6, 1.1, 1.9])
    wanted = np.interp(at, h.FREQUENCIES, h.FORCE)
    lag = np.interp(at, h.FREQUENCIES, h.LAG)
    for code, model in bowls.items():
        assert model.rao is not None and model.restoring is not None
        operators = exposure.read_operators(model, model.rao)
        force = operators.force_at(at)[:, :, 2]
        assert operators.headings == 4, code
        for k in range(4):
            z = -(force[k, :, 0] + 1j * force[k, :, 1])  # z down
            assert np.allclose(np.abs(z), wanted, rtol=2e-3) and np.allclose(-np.angle(z), lag, atol=2e-3), code
        _, b = exposure.impedance(dataclasses.replace(model, linear_drag=None), at)
        assert np.allclose(b[:, 2, 2] / at, np.interp(at, h.FREQUENCIES, h.DAMPING), atol=0.03 * h.DAMPING.max()), code
        assert np.array(model.restoring.rows).reshape(6, 6)[2, 2] == pytest.approx(h.STIFFNESS, rel=1e-5)
    added = [
        np.reshape(m.added_mass.rows or np.diag(m.added_mass.diagonal), (6, 6))[2, 2] / h.MASS for m in bowls.values()
    ]
    assert added == pytest.approx([h.INFINITE] * 3, rel=0.03) and added[2] == pytest.approx(h.INFINITE, rel=1e-5)


@pytest.mark.compiled
def test_an_imported_hull_heaves_as_its_table_says(config: Make, bowls: dict[str, Model]) -> None:
    """In the running simulation, regular waves through resonance (at 1.1 rad/s), against Hulme's coefficients: 3 %."""
    model = dataclasses.replace(bowls["capytaine"], active="w")
    for w in (0.6, 0.9, 1.05, 1.2, 1.5, 2.2):
        loaded = config(f'<time step="20 ms"/><world density="1000 kg/m3">{regular(0.05, w)}</world>')
        sim = Simulation(dataclasses.replace(loaded, models={"bowl": model}))
        row = sim.enter("b", "bowl")
        sim.advance(4000)
        size, z, times = sim.weather_model.weather.sea[0, weather.S_AMPLITUDE], [], []
        for _ in range(round(3 * 2 * math.pi / w / 0.1)):
            sim.advance(5)
            z.append(sim.state()["p_WB_W"][row][2])
            times.append(sim.time_ns * 1e-9)
        angle = w * np.array(times)
        fit = np.linalg.lstsq(
            np.stack([np.cos(angle), np.sin(angle), np.ones(len(z))], axis=1), np.array(z), rcond=None
        )[0]
        assert np.hypot(fit[0], fit[1]) / size == pytest.approx(h.heave(w), rel=0.03), w


def refused(path: Path, message: str, angles: str | None = "rad", **settings: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(path, None, h.SETTINGS | {k.replace("_", "-"): v for k, v in settings.items()}, angles)


def test_refusals(tmp_path: Path) -> None:
    """Headings, units, periods and modes that cannot be taken."""
    refused(h.capytaine(tmp_path / "a.nc", (0.0, 30.0, 50.0)), "the headings are 0 30 50 deg; use equal steps")
    refused(h.capytaine(tmp_path / "b.nc", (0.0,)), "the headings are 0 deg")
    refused(h.capytaine(tmp_path / "c.nc", some=slice(6, None)), "periods longer than 5.*s are missing")
    (tmp_path / "d.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    refused(tmp_path / "d.nc", "the file is in NetCDF 4 format; run `pip install h5py`|cannot|unexpected content")
    folder = h.nemoh(tmp_path / "n")
    refused(folder, "--angles deg or --angles rad  .the file states no unit for the phases", angles=None)
    cal = (folder / "Nemoh.cal").read_text()
    (folder / "Nemoh.cal").write_text(cal.replace("1\t! Number of bodies", "2\t! Number of bodies"))
    refused(folder, "the run has 2 bodies; only one can be imported")
    (folder / "Nemoh.cal").write_text(cal)
    tec = folder / "Results/RadiationCoefficients.tec"
    tec.write_text(tec.read_text().replace("w (rad/s)", "T (s)"))
    refused(folder, "the first column is .*must be w")
    one = h.wamit(tmp_path / "w.1")
    refused(one, r"--set gravity=(.|\n)*--set water-density=(.|\n)*--set origin-depth=")
    units = {"length": "2", "gravity": "9.81", "water_density": "1000", "origin_depth": "0"}
    refused(one, "wave-column=hours: use period or frequency", wave_column="hours", **units)
    one.write_text(one.read_text() + " 5.0 7 7 1.0 1.0\n")
    refused(one, "w.1 contains mode 7; a single rigid body has only modes 1 to 6", **units)
    one.with_suffix(".3").unlink()
    refused(one, "missing w.3 .exciting force. or w.4", **units)


def test_a_hull_that_is_not_alike_on_both_sides_needs_all_headings() -> None:
    w, x = np.array([0.5, 1.0]), np.ones((6, 2, 3), complex)
    with pytest.raises(ValueError, match="this hull is not symmetric: a following or head sea moves it in sway"):
        panel_results.make_operators(w, np.radians([0.0, 90.0, 180.0]), x, "force")
    x[[1, 3, 5]] = 0.0
    x[[1, 3, 5], :, 1] = 2.0  # pushed to port by a sea that travels to port
    found = panel_results.make_operators(w, np.radians([0.0, 90.0, 180.0]), x, "force")
    assert np.degrees(found.headings).tolist() == [0.0, 90.0, 180.0, 270.0]
    assert found.response[1, 0].tolist() == [0.0, 2.0, 0.0, -2.0], "to starboard by one that travels to starboard"
    assert found.response[2, 0].tolist() == [-1.0] * 4
