"""Every optional term of the kernel against the slow twin; memory, frozen axes, ballast, faults; the integrators."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.twin import Twin
from wavesim_kernels.compiler import kernel
from wavesim_sdk import frames
from wavesim_sdk.actuators import FIRST_SLOT, ActuatorKind
from wavesim_server import Simulation
from wavesim_server import elementary as el
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.lanes import LANES, load, store
from wavesim_server.dynamics.sizes import SLOTS
from wavesim_server.study import batch, varied
from wavesim_world.config import LoadedConfig, library

HEAD = """<models><model name="m" type="underwater" {attributes}><cylinder length="2 m" radius="0.2 m"/><mass value="250 kg" centre="0.1 0.02 0.03 m"/>
<inertia xx="5" yy="80" zz="81" xz="0.5"/>{buoyancy}
<added-mass>{added}</added-mass>
<linear-drag diagonal="8 9 10 3 4 5"/>{terms}</model></models>"""
FULL = "12 0 0 0 1 0  0 240 0 -2 0 6  0 0 238 0 -5 0  0 -2 0 3 0 0  1 0 -5 0 70 0  0 6 0 0 0 71"
COUPLED = "12 1 2 0 1 0.5  1 240 3 -2 1 6  2 3 238 1 -5 2  0 -2 1 3 0 0.2  1 1 -5 0 70 1  0.5 6 2 0.2 1 71"
AEROFOIL = "-180 0 0.1 -20 -1.2 0.2 -10 -0.9 0.03 0 0 0.01 10 0.9 0.03 20 1.2 0.2 180 0 0.1"
TERMS = {
    "coupled masses": ("", ""),
    "lift": ("", "<lift>" + "0 " * 7 + "20 0 0 0 -4 0 0 20 0 4 0 " + "0 " * 6 + "0 0 6 0 1 0 0 -6 0 0 0 1" + "</lift>"),
    "cross-flow": ("", '<cross-flow length="2 m" sway="120 kg/m2" heave="90 kg/m2" pitch="70 kg/m2"/>'),
    "cross-flow off the middle": (
        "",
        '<cross-flow length="2 m" centre="-0.3 m" still="0.01 m/s" sway="120 kg/m2" yaw="60 kg/m2" heave="90 kg/m2"/>',
    ),
    "on the surface": ('coriolis_added="plane"', '<cross-flow length="2 m" heave="90 kg/m2"/>'),
    "friction": ("", '<surge-friction factor="30 kg/m" residual="0.01" length="2 m"/>'),
    "fading": ("", '<fading-drag diagonal="20 30 0 0 0 0" fade="2"/>'),
    "body lift": ("", '<body-lift area="0.4 m2" span="0.4 m" drag="0.1"/>'),
    "without Munk": ('coriolis_without="15 16 26 35 51 53 61 62"', ""),
    "derivatives": (
        "",
        '<derivatives><derivative name="X_u_au" value="-9"/><derivative name="N_uv" value="-8"/>'
        '<derivative name="Y_v_ar" value="-7"/><derivative name="N_u_u_dr" value="6"/></derivatives>'
        '<fin name="f" law="derivatives" limit="30 deg"/>',
    ),
    "prime": (
        "",
        '<derivatives system="prime" length="2 m"><derivative name="X_uu" value="-0.01"/><derivative name="Y_v" value="-0.02"/>'
        '<derivative name="N_r" value="-0.003"/><derivative name="N_d" value="0.004"/><derivative name="Y_vvr" value="0.01"/>'
        '</derivatives><fin name="f" law="derivatives" limit="30 deg"/>',
    ),
    "laws": (
        "",
        '<thruster name="a" position="-1 0.1 0 m" direction="1 0 0" law="shaft" minimum="-20" maximum="20" lag="0 s"'
        ' coefficients="0.1 0.5 -0.6" reverse="0.1 0.3 -0.2" wake="0.1"/>'
        '<thruster name="b" position="-1 -0.1 0 m" direction="1 0.1 0" law="shaft" minimum="-20" maximum="20" lag="0 s"'
        ' coefficients="0 0.5 -0.6" inflow="total" thrust_limit="30 N"/>',
    ),
    "propeller": (
        "",
        '<thruster name="a" position="-1 0 0 m" direction="1 0 0" law="shaft" minimum="-20" maximum="20" lag="0 s">'
        '<open-water diameter="0.2 m" kt="0.45 -0.4" kq="0.07 -0.05" torque_share="0.5" deduction="0.1"/></thruster>',
    ),
    "KT table": (
        "",
        '<thruster name="a" position="-1 0 0 m" direction="1 0 0" law="shaft" minimum="-20" maximum="20" lag="0 s">'
        '<open-water diameter="0.2 m">0 0.45  0.72 0.162  1.44 -0.126</open-water></thruster>',
    ),
    "azimuth and jet": (
        "",
        '<thruster name="a" position="-1 0.3 0.1 m" direction="1 0 0" law="force" minimum="-90" maximum="90" lag="0 s"><swivel/></thruster>'
        '<thruster name="b" position="-1 -0.3 0.1 m" direction="1 0 0" law="shaft" minimum="0" maximum="90" lag="0 s"'
        ' coefficients="0 0.2 0"><swivel minimum="-27 deg" maximum="27 deg"/><deflector/></thruster>',
    ),
    "fin coefficients": (
        "",
        '<fin name="a" law="coefficients" normal="0 1 0" per_angle="0 4 0 0 0 -3" per_square="-4 0 0 0 0 0" limit="30 deg"/>'
        '<fin name="b" law="coefficients" normal="0 0 1" per_angle="0 0 4 0 3 0" speed="total" limit="30 deg"/>',
    ),
    "aerofoil": (
        "",
        '<fin name="a" law="aerofoil" position="-0.9 0.1 -0.3 m" normal="0 1 0.2" chord="1 0 0" area="0.05 m2" limit="30 deg">'
        f"<aerofoil>{AEROFOIL}</aerofoil></fin>",
    ),
    "twelve thrusters": (
        "",
        "".join(
            f'<thruster name="t{k}" position="{-1 + 0.1 * k} {0.1 * (k % 3)} {-0.05 * k} m" direction="{1 - 0.1 * k} 0.{k} 0.2"'
            f' law="shaft" minimum="-20" maximum="20" lag="0 s" coefficients="0.1 {0.1 + 0.02 * k} -0.3">'
            + ("<swivel/><deflector/>" if k < 4 else "")
            + "</thruster>"
            for k in range(12)
        )
        + "".join(
            f'<ballast name="b{k}" position="0.{k} 0.1 0.1 m" minimum="-5 kg" maximum="5 kg"/>' for k in range(4)
        ),
    ),
    "simple thrusters, eight fins": (
        "",
        "".join(
            f'<thruster name="t{k}" position="{-1 + 0.1 * k} 0.1 0 m" direction="1 0.{k} 0" law="force" minimum="-20" maximum="20"'
            ' lag="0 s"/>'
            for k in range(12)
        )
        + "".join(
            f'<fin name="f{k}" position="{-1 + 0.2 * k} 0 {0.1 * k} m" normal="0 1 0.{k}" area="0.01 m2" lift_slope="3" limit="30 deg"/>'
            for k in range(8)
        ),
    ),
    "fins that stall": (
        "",
        "".join(
            f'<fin name="f{k}" position="{-0.9 + 0.5 * k} {0.2 * (k % 3)} {0.1 * k - 0.3} m" normal="{normal}" area="0.02 m2" '
            f'lift_slope="3" stall="{stall} deg" plate="{1.1 + 0.05 * k}" inflow="{inflow}" limit="30 deg"/>'
            for k, (normal, stall, inflow) in enumerate(
                (
                    ("0 1 0", 3, "yes"),
                    ("0 0 1", 3, "yes"),
                    ("0 1 0", 4, "no"),
                    ("0 0 1", 4, "no"),
                    ("0 1 0.4", 12, "yes"),
                )
            )
        ),
    ),
    "eight fins of all laws": (
        "",
        '<derivatives><derivative name="N_u_u_d5" value="6"/><derivative name="Y_u_u_d8" value="-7"/></derivatives>'
        + "".join(
            (
                f'<fin name="f{k}" position="{-1 + 0.2 * k} 0 {0.1 * k} m" area="0.01 m2" lift_slope="3" limit="30 deg"/>',
                f'<fin name="f{k}" law="coefficients" per_angle="0 {k} 0 0 0 -3" per_square="-4 0 0 0 0 0" limit="30 deg"/>',
                f'<fin name="f{k}" law="aerofoil" position="-0.9 0.{k} 0 m" area="0.02 m2" limit="30 deg"><aerofoil>{AEROFOIL}'
                "</aerofoil></fin>",
                f'<fin name="f{k}" law="derivatives" limit="30 deg"/>',
            )[k % 4]
            for k in range(8)
        ),
    ),
    "ballast": ("", '<ballast name="t" position="0.5 0.1 0.1 m" minimum="-5 kg" maximum="5 kg"/>'),
    "restoring": (
        "restoring",
        '<restoring z="99 m">'
        + "0 " * 14
        + "9000 0 -300 0 "
        + "0 0 0 700 0 0 0 0 -300 0 900 0 "
        + "0 " * 6
        + "</restoring>"
        '<load mass="10 kg" position="0.2 0.1 -0.1 m"/>',
    ),
}


def model_text(name: str) -> str:
    attributes, terms = TERMS[name]
    buoyancy = '<buoyancy volume="0.2439 m3" centre="0.1 0 -0.1 m"/>'
    if attributes == "restoring":
        attributes = buoyancy = ""
    added = COUPLED if name == "coupled masses" else FULL
    return HEAD.format(attributes=attributes, buoyancy=buoyancy, added=added, terms=terms)


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_every_term_against_the_twin(config: Callable[..., LoadedConfig], name: str, sign: float) -> None:
    sim = Simulation(
        config(
            '<time step="10 ms"/><world><current north="0.3 m/s" east="-0.2 m/s"/><bed depth="1000 m"/></world>'
            + model_text(name)
        )
    )
    row = sim.enter("v", "m", (0.0, 0.0, 100.0), (0.2, -0.1, 2.0))
    sim.set_pose(row, velocity=[1.3 * sign if name != "prime" else 1.3, 0.2, -0.1, 0.1, -0.2 * sign, 0.35])
    values = {
        ActuatorKind.THRUSTER: (8.0 * sign, 7.0, *(1.0 + 0.5 * k for k in range(10))),
        ActuatorKind.FIN: (0.2 * sign, -0.1, *(0.02 * k for k in range(1, 7))),
        ActuatorKind.ANGLE: (0.3, -0.2, 0.1, 0.5),
        ActuatorKind.DEFLECTOR: (1.0, 0.6, -0.3, 0.9),
        ActuatorKind.BALLAST: (3.0 * sign, -1.0, 2.0, 0.5),
    }
    sim.command(row, [values[a.kind][a.slot - FIRST_SLOT[a.kind]] for a in sim.fleet.actuators(row)])
    world = sim.config.world
    model = sim.loaded.models["m"]
    values = sim.fleet.body(row)[B.ACTUATOR_COMMAND : B.ACTUATOR_COMMAND + SLOTS].copy()
    twin = Twin(model, world.density, world.gravity, np.array([0.3, -0.2, 0.0]), values)
    x = sim.fleet.body(row)[: B.RIGID_ROWS].copy()
    start = x.copy()
    for _ in range(50 if sys.gettrace() is None else 10):
        sim.advance(1)
        x = twin.step(x, 0.01)
        assert np.allclose(sim.fleet.body(row)[: B.RIGID_ROWS], x, rtol=1e-10, atol=1e-11)
    assert np.abs(x[7:] - start[7:]).max() > 0.01, "it moved"


@pytest.mark.parametrize(
    ("a", "c"),
    [((2, 3, 1.5), (30, 20, 10)), ((1.2,), (25,)), ((6, 1.1), (0, -20)), ((0.45, 5.4, 11.5, 6), (0, 40, 240, 150))],
)
def test_fluid_memory_against_its_transfer_function(
    config: Callable[..., LoadedConfig], a: tuple[float, ...], c: tuple[float, ...]
) -> None:
    """Held at a steady surge the force is c0/a0 times it; in between it follows the systems' own equations."""
    n = len(a)
    text = HEAD.format(
        attributes='active="u"',
        buoyancy='<buoyancy volume="0.2439 m3"/>',
        added=FULL,
        terms=f'<memory source="u" force="X" a="{" ".join(map(str, a))}" c="{" ".join(map(str, c))}"/>',
    )
    sim = Simulation(config(f"<time step='10 ms'/><world><bed depth='1000 m'/></world>{text}"))
    row = sim.enter("v", "m", (0.0, 0.0, 100.0))
    sim.push(row, [50.0, 0, 0])
    # states: u, x0, x1 ...
    mass = 262.0
    A = np.eye(n + 1, k=1)
    A[0] = np.array([-8.0, *(-np.array(c))]) / mass
    A[n] = [1.0, *(-np.array(a))]
    b = np.array([50 / mass, *[0] * n])
    from scipy.linalg import expm

    big = expm(np.block([[A, b[:, None]], [np.zeros((1, n + 2))]]) * 5.0)
    sim.advance(500)
    body = sim.fleet.body(row)
    assert np.allclose([body[B.NU], *body[B.MEMORY_STATE : B.MEMORY_STATE + n]], big[: n + 1, n + 1], atol=1e-7)


def test_frozen_axes_stay_at_rest_and_carry_their_load(config: Callable[..., LoadedConfig]) -> None:
    text = model_text("coupled masses").replace('type="underwater"', 'type="underwater" active="u v r"')
    sim = Simulation(config(f"<world><bed depth='1000 m'/></world>{text}"))
    row = sim.enter("v", "m", (0.0, 0.0, 100.0))
    sim.push(row, [50.0, 20.0, 30.0], [5.0, 5.0, 5.0])
    sim.advance(1000)
    nu = sim.fleet.body(row)[B.NU : B.NU + 6]
    assert np.all(nu[[2, 3, 4]] == 0.0) and np.all(np.abs(nu[[0, 1, 5]]) > 0.01)
    assert sim.state()["p_WB_W"][row][2] == 100.0


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1.0), ("rk4", 4.0), ("dp5", 5.0)])
@pytest.mark.compiled
def test_order_of_each_integrator(config: Callable[..., LoadedConfig], integrator: str, order: float) -> None:
    """Linear drag only (abs(nu) nu has a kink, where no integrator keeps its order), a lagging actuator, a current."""
    text = HEAD.format(
        attributes="",
        buoyancy='<buoyancy volume="0.2439 m3" centre="0.1 0 -0.1 m"/>',
        added=FULL,
        terms='<thruster name="t" position="-1 0.1 0 m" direction="1 0 0" law="force" minimum="-99" maximum="99" lag="0.5 s"/>',
    )
    steps = (50, 25, 12.5) if integrator != "dp5" else (100, 50, 25)
    ends = []
    for ms in (*steps, 2.5):
        kind = integrator if ms != 2.5 else "dp5"
        sim = Simulation(
            config(
                f'<time step="{ms} ms" integrator="{kind}"/><world><current north="0.4 m/s"/><bed depth="1000 m"/></world>{text}'
            )
        )
        row = sim.enter("v", "m", (0.0, 0.0, 100.0), (0.5, 0.3, 1.0))
        sim.set_pose(row, velocity=[1.0, 0.4, -0.3, 0.8, 0.5, -0.6])
        sim.command(row, [80.0])
        sim.advance(round(4000 / ms))
        ends.append(sim.fleet.body(row)[: B.RIGID_ROWS].copy())
    errors = [float(np.abs(e - ends[-1]).max()) for e in ends[:-1]]
    for a, b in itertools.pairwise(errors):
        assert math.log2(a / b) == pytest.approx(order, abs=0.4)


MIXED = """
import hashlib, sys
from pathlib import Path
from typing import Any
from wavesim_world.config import library, load
from wavesim_server import Simulation
path = Path(sys.argv[1])
sim = Simulation(load(path))
for k, name in enumerate(sorted(library())):
    kind = library()[name]
    row = sim.enter(f"v{k}", name, (90.0 * k, 0.0, 60.0 if kind.type == "underwater" else 0.1), (0.05, -0.03, 0.4 * k))
    sim.set_pose(row, velocity=[0.8, 0.1, 0.05, 0.02, -0.03, 0.04])
    sim.command(row, [0.5 if a.kind == 0 else 0.1 if a.kind == 1 else None for a in sim.fleet.actuators(row)])
sim.advance(5)
print(hashlib.sha256(sim.state().tobytes()).hexdigest())
"""


def test_the_same_bits_with_compilation_off(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """The whole library in wind and waves, five ticks, in two processes: compiled and as plain Python."""
    loaded = config(
        '<time step="10 ms"/><shared vehicles="32" signals="4"/><world><current north="0.3 m/s" east="-0.2 m/s">'
        '<layer depth="0 m" north="0.1 m/s"/><layer depth="100 m" north="0.4 m/s"/></current><bed depth="1000 m"/>'
        '<wind speed="8 m/s" gusts="20"/><waves height="1 m" peak="1 rad/s" components="20"/></world>'
    )
    script = tmp_path / "mixed.py"
    script.write_text(MIXED)
    hashes = []
    for off in ("0", "1"):
        done = subprocess.run(
            [sys.executable, str(script), str(loaded.path)],
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
            timeout=200,
            check=True,
        )
        hashes.append(done.stdout)
    assert hashes[0] == hashes[1]
    assert len(hashes[0].strip()) == hashlib.sha256().digest_size * 2


def test_a_batch_is_like_single_runs() -> None:
    models = [varied("lauv", linear_drag=1.0 + 0.1 * k, mass=18.0 + 0.01 * k) for k in range(11)]
    together = batch(models, {"propeller": 8.0, "rudder-top": 0.1}, 3.0, every=3.0)
    for k in (0, 7, 10):
        alone = batch([models[k]], {"propeller": 8.0, "rudder-top": 0.1}, 3.0, every=3.0)[0]
        assert np.allclose(together[k], alone, rtol=1e-12, atol=1e-9), "only the starting place differs"
    assert together[10, -1, 7] < together[0, -1, 7]


@pytest.mark.compiled
def test_faults_of_actuators(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<time step="10 ms"/><world><bed depth="500 m"/></world>'))
    row = sim.enter("v", "lauv", (0.0, 0.0, 50.0))
    actual = lambda k: float(sim.actuation()["actual"][row][k])  # noqa: E731
    effect = lambda k: float(sim.fleet.body(row)[B.ACTUATOR_EFFECT + k])  # noqa: E731
    sim.command(row, [8.0, 0.2])
    sim.advance(300)
    sim.fail(row, "rudder-top", "stuck")
    sim.command(row, {"propeller": 8.0, "rudder-top": -0.2})
    sim.advance(100)
    assert actual(1) == pytest.approx(0.2), "it stays where it is"
    sim.fail(row, "rudder-top", "none")
    sim.advance(100)
    assert actual(1) == pytest.approx(-0.2, abs=1e-3), "repaired, it follows the last command"
    sim.fail(row, 0, "frozen", 0.5)
    sim.command(row, [2.0])
    sim.advance(49)
    assert actual(0) == pytest.approx(8.0)
    sim.advance(300)
    assert actual(0) == pytest.approx(2.0, abs=1e-5), "it comes back by itself"
    sim.fail(row, 0, "reversed")
    sim.advance(300)
    assert actual(0) == pytest.approx(-2.0, abs=1e-5)
    sim.fail(row, 0, "none")
    sim.command(row, [8.0])
    sim.advance(3000)
    full = float(sim.state()["v_WB_B"][row][0])
    sim.fail(row, 0, "reduced", 0.5)
    assert effect(0) == 0.5
    sim.advance(3000)
    half = float(sim.state()["v_WB_B"][row][0])
    assert half < 0.8 * full
    sim.fail(row, 0, "lost")
    sim.advance(6000)
    assert float(sim.state()["v_WB_B"][row][0]) < 0.1 * full
    with pytest.raises(ValueError, match="is not an actuator fault"):
        sim.fail(row, 0, "broken")
    with pytest.raises(ValueError, match="is not a valid command"):
        sim.command(row, [math.nan])


def test_start_time_dead_band_motor_law_and_feedback(config: Callable[..., LoadedConfig]) -> None:
    thruster = (
        '<thruster name="t" position="-1 0 0 m" direction="1 0 0" law="shaft" minimum="-1" maximum="1" lag="0 s"'
        ' coefficients="0 1 0" motor="2 10" dead_band="0.1" start="1 s" feedback="0.2 s"/>'
    )
    text = HEAD.format(attributes="", buoyancy="", added=FULL, terms=thruster)
    sim = Simulation(config(f"<time step='10 ms'/><world><bed depth='500 m'/></world>{text}"))
    row = sim.enter("v", "m", (0.0, 0.0, 50.0))
    sim.command(row, [0.5])
    sim.advance(100)
    assert sim.actuation()["actual"][row][0] == 0.0, "not started"
    sim.advance(10)
    assert sim.actuation()["actual"][row][0] == 7.0, "2 + 10 x 0.5"
    assert sim.actuation()["feedback"][row][0] == pytest.approx(3.5), "half of the window"
    sim.advance(20)
    assert sim.actuation()["feedback"][row][0] == pytest.approx(7.0)
    sim.command(row, [0.05])
    sim.advance(1)
    assert sim.actuation()["actual"][row][0] == 0.0, "dead band"


def test_an_allocation_matrix_set_on_the_way(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config("<world><bed depth='500 m'/></world>"))
    a, b = sim.enter("a", "rexrov2", (0.0, 0.0, 50.0)), sim.enter("b", "rexrov2", (50.0, 0.0, 50.0))
    matrix = np.zeros((6, 8))
    matrix[1, 0] = 1.0  # the first thruster pushes to starboard now
    sim.allocate(a, matrix)
    for row in (a, b):
        sim.command(row, [1000.0, *[0.0] * 7])
    sim.advance(500)
    va, vb = (sim.state()["v_WB_B"][k] for k in (a, b))
    assert va[1] > 0.2 and abs(va[0]) < 0.2 * va[1]
    assert abs(vb[0]) > 0.01, "the other one is as it was"
    with pytest.raises(ValueError, match="6 x 8"):
        sim.allocate(a, np.zeros((6, 3)))


@pytest.mark.compiled
def test_free_decay_of_a_ship_by_its_matrices(config: Callable[..., LoadedConfig]) -> None:
    """Coupled heave and pitch of a hull with linear restoring: the eigenvalues of its matrices."""
    text = model_text("restoring").replace('<load mass="10 kg" position="0.2 0.1 -0.1 m"/>', "")
    sim = Simulation(config(f"<time step='5 ms'/><world><bed depth='1000 m'/></world>{text}"))
    row = sim.enter("v", "m", (0.0, 0.0, 99.001))
    p = sim.fleet.coefficients(row)
    m, g = p[P.MASS : P.MASS + 36].reshape(6, 6), np.zeros((6, 6))
    g[:, 2:5] = p[P.RESTORING : P.RESTORING + 18].reshape(6, 3)
    d = np.diag([8.0, 9, 10, 3, 4, 5])
    system = np.block([[np.zeros((6, 6)), np.eye(6)], [-np.linalg.solve(m, g), -np.linalg.solve(m, d)]])
    from scipy.linalg import expm

    x0 = np.zeros(12)
    x0[2] = 0.001
    for seconds in (1.0, 3.0, 7.0):
        sim.advance(round(seconds / 0.005) - sim.tick)
        state = sim.state()[row]
        ours = [state["p_WB_W"][2] - 99.0, frames.euler(state["q_WB"])[1], state["v_WB_B"][2]]
        x = expm(system * seconds) @ x0
        assert np.allclose(ours, [x[2], x[4], x[8]], atol=1e-6)


def test_steps_that_are_unstable_are_refused(config: Callable[..., LoadedConfig]) -> None:
    from wavesim_sdk.errors import ConfigError

    sim = Simulation(config('<time step="100 ms"/>'))
    stiff = dataclasses.replace(library()["lauv"], name="stiff")
    stiff = varied(stiff, linear_drag=400.0)
    with pytest.raises(ConfigError, match="time step"):
        sim.enter("v", position=(0.0, 0.0, 20.0), variant=stiff)


def test_bad_derivatives_are_named() -> None:
    from wavesim_server.dynamics.model_compiler import derivative_factors

    for name, message in (
        ("Q_u", "invalid derivative 'Q_u'"),
        ("X_z", "unknown factor 'z'"),
        ("X_uuuuu", "1 to 4"),
        ("Y_v_dot", "unknown factor"),
    ):
        with pytest.raises(ValueError, match=message):
            derivative_factors(name)
    assert derivative_factors("N_uv_ar") == (5, ["u", "v", "ar"])


@kernel
def _on_lanes(a: Any, out: Any) -> None:
    x, y, z = load(a, 0), load(a, 1), load(a, 2)
    store(out, 0, el.atan2(x, y))
    store(out, 1, el.asin(y))
    s, c = el.sin_cos(x)
    store(out, 2, s)
    store(out, 3, c)
    store(out, 4, el.log10(z))
    store(out, 5, el.exp(y))


@kernel
def _one_by_one(a: Any, out: Any) -> None:
    for l in range(LANES):
        x, y, z = a[l], a[LANES + l], a[2 * LANES + l]
        out[l], out[LANES + l] = el.atan2(x, y), el.asin(y)
        out[2 * LANES + l], out[3 * LANES + l] = el.sin_cos(x)
        out[4 * LANES + l], out[5 * LANES + l] = el.log10(z), el.exp(y)


def test_functions_on_all_lanes_one_by_one_and_not_compiled() -> None:
    rng = np.random.default_rng(4)
    for k in range(200):
        x, y = rng.normal(size=LANES) * 10.0 ** rng.integers(-6, 6), rng.uniform(-1.1, 1.1, LANES)
        if k == 0:
            x[:] = [0.0, math.pi, -math.pi, math.pi / 2, -math.pi / 2, math.pi / 4, 3 * math.pi / 4, -0.0]
        z = 10 ** rng.uniform(-9, 9, LANES)
        if k >= 100:
            sizes = [0.0, 5e-324, 1e-310, 5e-309, 1e-300, 1e-160, 1e-20, 0.5, 1e9, 1e17, 1e151, 1e291, 1.7e308]
            x, y = rng.choice([-1.0, 1.0], (2, LANES)) * rng.choice(sizes, (2, LANES))
            z = rng.choice(sizes, LANES)
        found = np.zeros((2, 6 * LANES))
        for function, out in zip((_on_lanes, _one_by_one), found, strict=True):
            function(np.concatenate([x, y, z]), out)
        plain = np.concatenate([el.atan2(x, y), el.asin(y), *el.sin_cos(x), el.log10(z), el.exp(y)])
        assert found[0].tobytes() == plain.tobytes() == found[1].tobytes()
