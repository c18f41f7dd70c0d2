"""Water that flows up or down: bodies, lines and Doppler logs against closed forms, and the same motion in still water."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.physics.test_lines import RHO, end, line, world
from wavesim_sdk import frames
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.lab import Lab
from wavesim_world.config import LoadedConfig

#: neutrally buoyant, of 33.5 kg with its added mass in each direction, with a linear drag of 20 N s/m
BALL = """<models><model name="ball" type="underwater"><sphere diameter="0.4 m"/><mass value="20.5 kg"/><inertia xx="1" yy="1" zz="1"/>
<buoyancy volume="20 l"/><added-mass diagonal="13 13 13 0 0 0"/><linear-drag diagonal="20 20 20 1 1 1"/></model></models>"""


def flow_world(north: float, east: float, down: float, depth: float = 1000.0) -> str:
    return (
        f'<time step="20 ms"/><world><current north="{north} m/s" east="{east} m/s" down="{down} m/s"/>'
        f'<bed depth="{depth} m"/></world>'
    )


def test_a_neutral_body_drifts_with_the_flow(config: Callable[..., LoadedConfig]) -> None:
    """From rest, v = v_c (1 - exp(-d t/m)), in all three directions and in any attitude."""
    flow = np.array([0.1, -0.2, 0.3])
    sim = Simulation(config(flow_world(*flow) + BALL))
    row = sim.enter("b", "ball", (0.0, 0.0, 100.0), (0.4, -0.3, 2.0))
    for _ in range(10):
        sim.advance(25)
        s, t = sim.state()[row], sim.time_s
        gone = math.exp(-20.0 * t / 33.5)
        assert frames.rotation(s["q_WB"]) @ s["v_WB_B"] == pytest.approx(flow * (1.0 - gone), rel=1e-8)
        assert s["p_WB_W"] - (0, 0, 100) == pytest.approx(flow * (t - 33.5 / 20.0 * (1.0 - gone)), rel=1e-7)
        assert frames.rotation(s["q_WB"]) @ s["v_FB_B"] == pytest.approx(-flow * gone, rel=1e-8)


def test_a_body_follows_layers(config: Callable[..., LoadedConfig]) -> None:
    """An upwelling that dies out at the surface: w = -0.02 z, so that the depth of a body that follows it decays as
    exp(-0.02 t), after the lag of its mass."""
    layers = '<current><layer depth="0 m"/><layer depth="100 m" down="-2 m/s"/></current>'
    sim = Simulation(config(f'<time step="20 ms"/><world>{layers}<bed depth="1000 m"/></world>{BALL}'))
    row = sim.enter("b", "ball", (0.0, 0.0, 80.0))
    sim.advance(500)
    depths = []
    for _ in range(4):
        depths.append(float(sim.state()["p_WB_W"][row][2]))
        sim.advance(500)
    # z" = (20/33.5) (-0.02 z - z') has the slow root below
    d = 20.0 / 33.5
    slow = 0.5 * (-d + math.sqrt(d * d - 0.08 * d))
    assert np.diff(np.log(depths)) == pytest.approx([10.0 * slow] * 3, rel=2e-3)


@pytest.mark.compiled
def test_an_auv_in_an_upwelling_moves_as_in_still_water(config: Callable[..., LoadedConfig]) -> None:
    """The motion of a LAUV relative to water that moves evenly is that in still water: same track, forces and energy,
    for the whole turn. The track over ground differs by the flow times the time."""
    flow, tracks = np.array([0.3, -0.2, -0.4]), []
    for c in (flow, np.zeros(3)):
        body = (
            '<fleet><vehicle name="v" model="lauv" position="0 0 300 m" attitude="0 0 50 deg" speed="1.5 m/s"/></fleet>'
        )
        sim = Simulation(config(flow_world(*c) + body))
        sim.enter_residents()
        steady = sim.results.effort()[0]
        sim.advance(1000)
        kept = sim.state()[0].copy(), sim.results.effort()[0].copy()
        sim.command(0, {"rudder-top": 0.2, "rudder-bottom": 0.2})
        sim.advance(1000)
        tracks.append((sim.state()[0].copy(), sim.results.effort()[0].copy(), *kept, steady.copy(), sim.time_s))
    (moved, force, early, pull, start, t), (still, expected, early_still, pull_still, start_still, _) = tracks
    assert moved["p_WB_W"] - still["p_WB_W"] == pytest.approx(flow * t, abs=1e-7)
    assert early["p_WB_W"] - early_still["p_WB_W"] == pytest.approx(flow * 0.5 * t, abs=1e-7)
    for name in ("q_WB", "w_WB_B", "v_FB_B"):
        assert moved[name] == pytest.approx(still[name], abs=1e-7), name
    assert np.linalg.norm(still["p_WB_W"][:2]) > 10.0 and abs(still["w_WB_B"][2]) > 0.02, "it moved and turned"
    for ours, theirs in ((force, expected), (pull, pull_still), (start, start_still)):
        for part in ("actuators", "restoring"):
            assert ours[part] == pytest.approx(theirs[part], abs=1e-5), part
    for ours, theirs in ((pull, pull_still), (start, start_still)):  # in the turn, the drag includes M v_c'
        assert ours["drag"] == pytest.approx(theirs["drag"], abs=1e-3)
    assert early["v_FB_B"][0] == pytest.approx(1.5, rel=0.02), "the speed through the water that its thruster holds"


def test_a_line_and_its_float_feel_a_vertical_flow() -> None:
    """The anchor of a float carries the drag of float and line less: 35 v^2 and 0.5 rho 0.01 pi d L v^2."""
    rope = {
        "length": "75 m",
        "diameter": "8 mm",
        "mass": "0.04 kg/m",
        "stiffness": "60 kN",
        "segments": "10",
        "damping": "1",
    }
    text = line(ends=end("0 0 0 m", "f") + end("0 0 90 m"), **rope)
    body = "<vehicle name='f' model='float' position='0 0 14.9 m'/>"
    pulls = []
    for down in (0.0, 0.5):
        sim = world(text, body, f"<bed depth='90 m'/><current down='{down} m/s'/>")
        sim.advance(7500)
        seen = []
        for _ in range(500):  # it still bounces a little on the elastic line
            sim.advance(10)
            seen.append(sim.results.lines()[0]["tension"].copy())
        pulls.append(np.mean(seen, axis=0))
    drag, along = 35.0 * 0.25, 0.5 * RHO * 0.01 * math.pi * 0.008 * 75.0 * 0.25
    lost = pulls[0] - pulls[1]
    # each end is that of a segment, of which a half lies beyond the place of its tension
    assert lost[0] == pytest.approx(drag + along / 20.0, rel=0.01)
    assert lost[1] == pytest.approx(drag + along * 19.0 / 20.0, rel=0.01)


def test_waves_end_in_a_vertical_flow(config: Callable[..., LoadedConfig]) -> None:
    """The flow is added to the orbital velocity, and alone remains of both when the sea has become calm."""
    waves = '<waves height="2 m" peak="0.8 rad/s"/>'
    sims = [
        Simulation(config(f'<world>{waves}<current down="{down} m/s"/><bed depth="1000 m"/></world>'))
        for down in (0.25, 0.0)
    ]
    rows = [sim.enter("b", "lauv", (3.0, 4.0, 5.0)) for sim in sims]
    moved, still = (sim.fleet.body(row)[B.V_WF_W : B.A_WF_W + 3].copy() for sim, row in zip(sims, rows, strict=True))
    assert moved - still == pytest.approx([0.0, 0.0, 0.25, 0.0, 0.0, 0.0]) and abs(still[2]) > 0.01
    sims[0].set_weather(wave_height=0.0)
    sims[0].advance(2)
    assert sims[0].fleet.body(rows[0])[B.V_WF_W : B.A_WF_W + 3].tolist() == [0.0, 0.0, 0.25, 0.0, 0.0, 0.0]
    sims[0].set_weather(current_down=0.0)
    sims[0].advance(1)
    assert not sims[0].fleet.body(rows[0])[B.V_WF_W : B.A_WF_W + 3].any()


def test_a_doppler_log_measures_the_vertical_flow(config: Callable[..., LoadedConfig]) -> None:
    lab = Lab(
        config(
            flow_world(0.1, 0.2, -0.3, 150.0)
            + '<fleet><vehicle name="v" model="lauv" position="0 0 100 m" attitude="5 -10 60 deg"><sensors>'
            '<dvl noise="0"/></sensors></vehicle></fleet>'
        )
    )
    lab.advance(0)
    v = lab.sensors("v").dvl
    R_WB = frames.rotation(frames.quaternion(math.radians(5), math.radians(-10), math.radians(60)))
    assert np.array(v.water) == pytest.approx(-R_WB.T @ [0.1, 0.2, -0.3], abs=1e-9)
    assert np.array(v.bottom) == pytest.approx([0.0] * 3, abs=1e-9)
