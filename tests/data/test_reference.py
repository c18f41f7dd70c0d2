"""Trajectories of other simulators with the same terms configured, and the effect of our additional terms."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.twin import Twin
from wavesim_sdk import frames
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics.sizes import SLOT_BUCKET, SLOT_FIN, SLOTS
from wavesim_world.config import LoadedConfig, Model, library
from wavesim_world.config.vehicle import CrossFlow

pytestmark = [pytest.mark.data, pytest.mark.compiled]

REMUS = {"remus100_straight_1000rpm": (0.0, 0.0, 1000.0), "remus100_rudder0.1_1000rpm": (0.1, 0.0, 1000.0)}
OTTER = {"otter_straight_60_60": (60.0, 60.0), "otter_turn_80_60": (80.0, 60.0)}


def simulate(
    config: Callable[..., LoadedConfig], model: Model, world: str, step_ms: float, z: float
) -> tuple[Simulation, int]:
    """One vehicle of a model, at rest at depth z."""
    loaded = config(f'<time step="{step_ms} ms"/><world {world}><bed depth="9000 m"/></world>')
    sim = Simulation(dataclasses.replace(loaded, models={model.name: model}))
    return sim, sim.enter("v", model.name, (0.0, 0.0, z))


def state_of(sim: Simulation, row: int) -> Any:
    """[x y z phi theta psi u v w p q r]."""
    s = sim.state()[row]
    return np.concatenate([s["p_WB_W"], frames.euler(s["q_WB"]), s["v_WB_B"], s["w_WB_B"]])


def errors(ours: Any, theirs: Any) -> Any:
    """Difference with angles compared on the circle."""
    d = ours - theirs
    d[3:6] = (d[3:6] + math.pi) % (2 * math.pi) - math.pi
    return d


def run_to(sim: Simulation, row: int, times: list[float]) -> list[Any]:
    states = []
    for t in times:
        sim.advance(round(t * 1e9 / sim.step_ns) - sim.tick)
        states.append(state_of(sim, row))
    return states


class Original(Twin):
    """Fossen's vehicles with actuators that lag, and cross-flow drag by 21 strips of L/20 or by the exact integral."""

    def __init__(self, model: Model, commands: list[float], by_strips: bool) -> None:
        super().__init__(model, 1026.0, 9.81, np.zeros(3), np.zeros(SLOTS))
        actuators = [*model.thruster, *model.fin]
        self.slots = [*range(len(model.thruster)), *(SLOT_FIN + k for k in range(len(model.fin)))]
        self.goals, self.lags, self.by_strips = np.array(commands), np.array([a.lag for a in actuators]), by_strips

    def derivative(self, x: Any) -> Any:
        self.commands[self.slots] = x[B.RIGID_ROWS :]
        return np.concatenate([super().derivative(x[: B.RIGID_ROWS]), (self.goals - x[B.RIGID_ROWS :]) / self.lags])

    def strips(self, c: CrossFlow, a: float, b: float) -> tuple[Any, Any]:
        if not self.by_strips:
            return super().strips(c, a, b)
        return np.linspace(-c.length / 2, c.length / 2, 21), np.full(21, c.length / 20)

    def run_to(self, start: dict[str, Any], times: list[float]) -> list[Any]:
        attitude = frames.quaternion(*start["eta0"][3:])
        x, states = np.concatenate([start["eta0"][:3], attitude, start["nu0"], np.zeros(len(self.slots))]), []
        for k in range(1, round(times[-1] / 0.005) + 1):
            x = self.step(x, 0.005)
            if k * 0.005 in times:
                states.append(np.concatenate([x[:3], frames.euler(x[3:7]), x[7:13]]))
        return states


def model_of(case: str) -> tuple[Model, list[float]]:
    """The library's model of a case, and its commands."""
    if case in OTTER:
        return library()["otter-fossen"], [n / (2 * math.pi) for n in OTTER[case]]
    rudder, stern, rpm = REMUS[case]
    return library()["remus100-fossen"], [rpm / 60.0, rudder, stern]


def fossen(data_dir: Path, case: str) -> tuple[dict[str, Any], list[float], list[Any]]:
    """The original's start, times and states."""
    reference = json.loads((data_dir / "reference/remus100_otter_fossen.json").read_text())["cases"][case]
    samples = reference["rk4_dt0.005"]
    return reference, [s["t"] for s in samples], [np.array(s["eta"] + s["nu"]) for s in samples]


SCALE = [1, 1, 1, 0.1, 0.1, 1, 1, 1, 1, 0.1, 0.1, 0.1]


@pytest.mark.parametrize("case", [*REMUS, *OTTER])
def test_fossens_remus_and_otter_with_their_terms(data_dir: Path, case: str) -> None:
    """The twin of the kernels, for 10 s: the kernels have the exact integral instead of strips."""
    model, commands = model_of(case)
    if case in REMUS:
        model = dataclasses.replace(model, thruster=(dataclasses.replace(model.thruster[0], inflow="total"),))
    start, times, states = fossen(data_dir, case)
    for ours, theirs in zip(Original(model, commands, True).run_to(start, times[:2]), states[:2], strict=True):
        assert np.abs(errors(ours, theirs) / np.maximum(np.abs(theirs), SCALE)).max() < 1e-6


@pytest.mark.parametrize(("case", "bound"), [*((c, 0.05) for c in REMUS), *((c, 0.02) for c in OTTER)])
def test_what_the_better_terms_change(
    config: Callable[..., LoadedConfig], data_dir: Path, case: str, bound: float
) -> None:
    """The exact cross-flow integral instead of 21 strips, and the propeller's own inflow, change speeds by little:
    straight ahead hardly at all, in a turn by what 5 % of sway drag and 21 % of yaw moment are worth."""
    model, commands = model_of(case)
    start, times, theirs = fossen(data_dir, case)
    sim, row = simulate(config, model, 'density="1026 kg/m3"', 5.0, start["eta0"][2])
    sim.command(row, commands)
    sim.set_pose(row, start["eta0"][:3], start["eta0"][3:], start["nu0"])
    ours = run_to(sim, row, times)
    for kernels, twin in zip(ours[:1], Original(model, commands, False).run_to(start, times[:1]), strict=True):
        assert np.abs(errors(kernels, twin) / np.maximum(np.abs(twin), SCALE)).max() < 1e-8
    difference = errors(ours[-1].copy(), theirs[-1])[6:]
    speed = np.linalg.norm(theirs[-1][6:9])
    assert np.abs(difference[:3]).max() < bound * speed
    if "straight" not in case:
        assert np.abs(difference).max() > 1e-5, "the terms do differ"


def test_dunes_lauv(config: Callable[..., LoadedConfig], data_dir: Path) -> None:
    """DUNE's model as imported, with its peculiarities as named derivatives and a push (see docs/models.md): Coriolis
    by the mass 24 kg at 9 mm below the origin while the inertia is 18 kg, the added mass of translation in the
    rotational part of C, and no surge component of the net buoyancy. The limit is Richardson's from its steps."""
    from wavesim_server.importers import read
    from wavesim_world.config.vehicle import Derivative, Derivatives

    text = read(data_dir / "dune/vsim-models.ini", "lauv", {}, None).xml
    body = text[text.index("<model ") : text.index("</models>")]
    model = config(f"<models>{body}</models>").models["lauv"]
    m, lever, rotary = 24.0 - 18.0, 24.0 * 0.009, 15.0 - (2.1 - 0.04)
    extra = {
        "X_qw": -m,
        "X_rv": m,
        "Y_ru": -m,
        "Y_pw": m,
        "Z_pv": -m,
        "Z_qu": m,
        "X_pr": -lever,
        "Y_qr": -lever,
        "Z_pp": lever,
        "Z_qq": lever,
        "K_ru": lever,
        "K_wp": -lever,
        "M_rv": lever,
        "M_wq": -lever,
        "M_pr": rotary,
        "N_pq": -rotary,
    }
    model = dataclasses.replace(
        model, derivatives=Derivatives(derivative=tuple(Derivative(name=k, value=v) for k, v in extra.items()))
    )
    runs = json.loads((data_dir / "reference/lauv_dune_vsim.json").read_text())
    for case, rudder in (("straight_thr0.5", 0.0), ("rudder0.1_thr0.5", 0.1)):
        series = {
            dt: [np.array(s["eta"] + s["nu"]) for s in runs[f"{case}|dt={dt}"]["samples"]] for dt in ("0.001", "0.0001")
        }
        times = [s["t"] for s in runs[f"{case}|dt=0.001"]["samples"]]
        # Euler's error is linear in the step
        limit = [(10 * b - a) / 9 for a, b in zip(series["0.001"], series["0.0001"], strict=True)]
        sim, row = simulate(config, model, 'density="1000 kg/m3" gravity="9.80665 m/s2"', 5.0, 10.0)
        sim.command(row, [0.5, rudder, 0.0, 0.0, rudder])
        net = (24.0 - 24.2) * 9.80665
        for t, wanted in zip(times[:3], limit, strict=False):
            while sim.time_ns < t * 1e9 - 1:
                q = sim.fleet.body(row)[3:7]
                sim.push(row, [-net * 2 * (q[1] * q[3] - q[2] * q[0]), 0.0, 0.0])
                sim.advance(1)
            d = errors(state_of(sim, row), wanted)
            scale = np.maximum(np.abs(wanted), 1.0)
            assert np.abs(d / scale).max() < 1e-4, (case, t)


def test_odin_against_its_authors_simulator(config: Callable[..., LoadedConfig], data_dir: Path) -> None:
    """hilsim, 0.5 ms, against the shipped `odin-hilsim`: the actuators to its printed digits, the track to 0.1 % of its
    length, roll and speeds; no constant is fitted. Its air has 1.204 kg/m3, and its deflectors start at 0."""
    model = library()["odin-hilsim"]
    lines = (data_dir / "odin/sea-trial-actuators-1.txt").read_text().split("\n")
    trial = np.array([[float(x) for x in line.strip().strip(",").split(",")[:6]] for line in lines if line.strip()])
    constant = np.tile([50.0, 20.0, 100.0] * 2, (10_000, 1))
    for name, commands in (("const50_20_100", constant), ("sea-trial-actuators-1", trial)):
        reference = np.loadtxt(data_dir / f"reference/odin_{name}.csv", delimiter=",", skiprows=1)
        air = '<wind air_density="1.204 kg/m3"/><bed depth="9000 m"/>'
        loaded = config(f'<time step="5 ms"/><world density="1000 kg/m3">{air}</world>')
        sim = Simulation(dataclasses.replace(loaded, models={model.name: model}))
        row = sim.enter("v", model.name, (0.0, 0.0, 0.0))
        sim.fleet.body(row)[B.ACTUATOR_STATE + SLOT_BUCKET : B.ACTUATOR_STATE + SLOT_BUCKET + 2] = 0.0
        path = error = 0.0
        for wanted in reference[: int(reference[-1, 0])]:
            while sim.time_ns < wanted[0] * 1e9 - 1:
                c = commands[min(round(sim.time_ns * 1e-7), len(commands) - 1)]
                angles = [-math.radians(27.0) * c[1] / 100, -math.radians(27.0) * c[4] / 100]
                idling = max(c[0] / 100, 1e-9), max(c[3] / 100, 1e-9)  # at 400 rpm
                sim.command(row, [*idling, *angles, c[2] / 100, c[5] / 100])
                sim.advance(2)
            n, a, d = (sim.actuation()["actual"][row][k : k + 2] for k in (0, 2, 4))
            thrust = 9.0 * n * np.abs(n)
            assert float(thrust @ (d * np.cos(a))) == pytest.approx(wanted[13], rel=1e-3, abs=2.0)
            assert float(thrust @ np.sin(a)) == pytest.approx(wanted[14], rel=1e-3, abs=2.0)
            s = state_of(sim, row)
            path += float(np.hypot(wanted[7], wanted[8]))
            error = max(error, float(np.hypot(s[0] - wanted[1], s[1] - wanted[2])))
            assert np.abs(errors(s, wanted[1:13])[[2, 3, 4, 6, 7, 8]]).max() < 0.005, "upright, and as fast"
        assert error < 0.001 * path, (name, error, path)


@pytest.mark.parametrize("run", ["a", "b"])
def test_sookshma_driven_by_recorded_rudder_commands(data_dir: Path, run: str) -> None:
    """What agrees: the sign and the shape of the yaw rate (correlation above 0.9 with the IMU over 20 s of a rudder
    that switches between its stops). What does not: its size. The published derivatives are linear; at 35 deg of
    rudder they turn the model 2 to 4 times as fast as the boat."""
    import csv

    from wavesim_server.study import replay

    def read(name: str, column: str) -> tuple[Any, Any]:
        rows = list(csv.DictReader((data_dir / f"sookshma/run-{run}/{name}.csv").open()))
        return np.array([int(r["t_ns"]) for r in rows]) * 1e-9, np.array([float(r[column]) for r in rows])

    t, rudder = read("mav_rudder_command", "data")
    at, yaw_rate = read("sookshma_00_imu_data", "wz")
    # 800 rpm hold about 0.5 m/s in the record: a push of that drag
    push = [0.5 * 1025.0 * 0.01 * 0.5**2, 0.0, 0.0, 0.0, 0.0, 0.0]
    track = replay(
        library()["sookshma"], t - t[0], {0: rudder}, 0.01, velocity=[0.5, 0, 0, 0, 0, 0], push=push, every=0.02
    )
    inside = (at - t[0] > 2.0) & (at - t[0] < track[-1, 0])
    ours = np.interp(at[inside] - t[0], track[:, 0], track[:, 12])
    assert np.corrcoef(ours, yaw_rate[inside])[0, 1] > 0.9
    assert 2.0 < ours.std() / yaw_rate[inside].std() < 4.0


def test_the_supply_vessels_memory_and_wave_forces(config: Callable[..., LoadedConfig], data_dir: Path) -> None:
    """The fitted fluid memory has the damping of the tables around the periods that matter; in a regular head sea the
    force is the operator's, in size and in phase."""
    from scipy.io import loadmat

    from wavesim_world.config.exposure import Rao
    from wavesim_world.ocean import surface

    vessel = loadmat(str(data_dir / "ships/supply.mat"), squeeze_me=True, struct_as_record=False)["vessel"]
    model = library()["supply"]
    for memory in model.memory:
        i = "uvwpqr".index(memory.source)
        s = 1j * vessel.freqs
        a, c = memory.a, memory.c
        h = (c[0] + c[1] * s + c[2] * s * s) / (a[0] + a[1] * s + a[2] * s * s + s**3)
        band = vessel.freqs > 0.35
        damping = vessel.B[i, i]
        assert np.abs(h.real - damping)[band].max() < 0.11 * damping.max(), memory.source
    place = f"{data_dir / 'ships' / 'x.xml'}:1"
    model = dataclasses.replace(model, rao=Rao(file="supply.mat"), active="u", place=place)
    wave = '<waves height="2.83 m" peak="0.6 rad/s" components="1" direction="180 deg"/>'
    loaded = config(f'<time step="20 ms"/><world>{wave}<bed depth="9000 m"/></world>')
    sim = Simulation(dataclasses.replace(loaded, models={"supply": model}))
    row = sim.enter("s", "supply")
    component = sim.weather_model.weather.sea[0]
    heave, angle = [], []
    for _ in range(1500):
        sim.advance(1)
        heave.append(sim.fleet.body(row)[B.ENVIRONMENT_WRENCH + 2])
        p = sim.fleet.body(row)[:2]
        t = (sim.tick - 1) * 0.02
        angle.append(
            component[surface.S_FREQUENCY] * t - component[surface.S_NORTH] * p[0] + component[surface.S_PHASE]
        )
    k = int(np.argmin(np.abs(np.degrees(vessel.headings) - 180.0)))
    size = np.interp(component[surface.S_FREQUENCY], vessel.forceRAO.w, vessel.forceRAO.amp[2][:, k, 0])
    fit = np.linalg.lstsq(np.stack([np.cos(angle), np.sin(angle)], axis=1), np.array(heave), rcond=None)[0]
    assert np.hypot(*fit) == pytest.approx(size * component[surface.S_AMPLITUDE], rel=0.01)
    phase = np.interp(component[surface.S_FREQUENCY], vessel.forceRAO.w, vessel.forceRAO.phase[2][:, k, 0])
    assert math.cos(math.atan2(-fit[1], fit[0]) - phase) > 0.99
