"""Short runs of the vehicles that autopilots control: BlueROV2 with T200 thrusters, a model ship, and a WAM-V."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from wavesim_bridges.ardupilot import FRAMES
from wavesim_bridges.servo_outputs import Mixer
from wavesim_sdk import frames
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_server import Simulation
from wavesim_server.study import batch
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig, library

pytestmark = pytest.mark.compiled


def mixer(model: str, frame: str) -> Mixer:
    own = actuators_of(library()[model])
    return Mixer(
        FRAMES[frame], [ActuatorDescription(k, a.name, a.kind, a.unit, a.minimum, a.maximum) for k, a in enumerate(own)]
    )


@pytest.mark.parametrize(("model", "frame"), [("bluerov2-vectored", "vectored"), ("bluerov2-heavy", "vectored_6dof")])
def test_t200_thrusters(model: str, frame: str) -> None:
    """What the data sheet gives at 16 V for 1100, 1900 and 1528 us, whichever way the thruster looks: 1 and 2 astern."""
    mixed, count = mixer(model, frame), len(FRAMES[frame])
    full, back = (mixed.commands([u] * count) for u in (1.0, -1.0))
    assert full[:4] == [-51.48, -51.48, 51.48, 51.48] and set(full[4:]) == {51.48}
    assert back[:4] == pytest.approx([39.91, 39.91, -39.91, -39.91]) and set(back[4:]) == {-39.91}
    dead = mixed.commands([28 / 400] * count)
    track = batch([library()[model]], dict(zip([t.name for t in library()[model].thruster], dead, strict=True)), 2.0)  # type: ignore[arg-type]
    still = batch([library()[model]], {}, 2.0)
    assert np.array_equal(track, still), "the dead band of the speed controller"


@pytest.mark.parametrize("model", ["bluerov2-vectored", "bluerov2-heavy"])
def test_a_rov_holds_its_depth(config: Callable[..., LoadedConfig], model: str) -> None:
    """Vertical thrusters by depth and its rate, 3 m down in half a minute, while it goes ahead."""
    sim = Simulation(config('<time step="10 ms"/><world><bed depth="50 m"/></world>'))
    row = sim.enter("rov", model, (0.0, 0.0, 2.0), (0.1, 0.0, 0.5))
    names = [t.name for t in library()[model].thruster]
    for _ in range(600):
        state = sim.state()[row]
        down = 12.0 * (5.0 - state["p_WB_W"][2]) - 25.0 * (frames.rotation(state["q_WB"]) @ state["v_WB_B"])[2]
        sim.command(row, {n: min(max(float(down), -4.0), 4.0) if n.startswith("vertical") else 1.0 for n in names})
        sim.advance(5)
        assert np.isfinite(state["q_WB"]).all() and np.abs(frames.euler(state["q_WB"])[:2]).max() < 0.5
    assert state["p_WB_W"][2] == pytest.approx(5.0, abs=0.15)
    assert np.hypot(*state["p_WB_W"][:2]) > 2.5


def test_the_wam_v_and_its_turning_engines() -> None:
    """Full ahead: 2 x 2353 N = 100 u + 150 u^2; engines to starboard turn the bow to port."""
    model = library()["wam-v"]
    track = batch([model], {"port": 2353.0, "starboard": 2353.0}, 30.0, depth=-0.126)[0]
    assert track[-1, 7] == pytest.approx((-100 + math.sqrt(100**2 + 4 * 150 * 4706)) / 300, rel=0.01)
    assert np.abs(track[:, 4]).max() < 1e-6 and np.abs(track[:, 5]).max() < 0.3 and abs(track[-1, 3] + 0.126) < 0.1
    turned = batch(
        [model], {"port": 200.0, "starboard": 200.0, "port-angle": 0.5, "starboard-angle": 0.5}, 10.0, -0.126
    )
    assert turned[0, -1, 12] < -0.05 and np.abs(turned[0, :, 4:6]).max() < 0.2
    skid = mixer("wam-v", "skid").commands([0.5, 0.0, -0.5])
    assert skid == pytest.approx([588.25, -588.25, None, None])


def test_the_model_ship_and_its_rudder() -> None:
    """Its straight speed is that of its published coefficients; a Rover's positive rudder turns it to starboard."""
    model = library()["cybership2"]
    ahead, right = (mixer("cybership2", "boat").commands([rudder, 0.0, 0.8]) for rudder in (0.0, 0.5))
    assert ahead == pytest.approx([0.8 * 33.3, 0.0])
    commands = [dict(zip(("propeller", "rudder"), c, strict=True)) for c in (ahead, right)]
    straight, turn = (batch([model], c, 60.0, depth=0.0)[0] for c in commands)  # type: ignore[arg-type]
    u, n = straight[-1, 7], 0.8 * 33.3
    thrust = 7.30068e-3 * n * n - 3.04936e-4 * n * u
    assert thrust == pytest.approx(0.72253 * u + 1.32742 * u * u + 5.86643 * u**3, rel=1e-3)
    assert abs(straight[-1, 2]) < 1e-6 and turn[-1, 12] > 0.05 and turn[10, 2] > 0.1
    assert max(np.abs(straight[:, 4:6]).max(), np.abs(turn[:, 4:6]).max()) < 0.1
    radius = np.hypot(turn[-1, 7], turn[-1, 8]) / turn[-1, 12]
    assert 1.0 < radius / 1.255 < 8.0, "in ship's lengths"
