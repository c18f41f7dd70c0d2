"""Published experiments repeated: VITA1 in the tunnel (Sensors 2022), Jolner's speeds and step-size study (NTNU 2017)."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from wavesim_sdk import frames
from wavesim_server import Simulation
from wavesim_server.dynamics.model_compiler import mass_matrices
from wavesim_server.study import batch
from wavesim_world.config import LoadedConfig, library, matrix

pytestmark = pytest.mark.compiled
TUNNEL = '<obstacles><tunnel position="100 0 50 m" length="220 m" width="8 m" height="8 m"/></obstacles>'


class Pilot:
    """The paper's structure: guidance that smooths, PI surge, PID centring from echosounders, attitude, and a stabiliser
    that compensates drag, Coriolis and restoring at 400 Hz. The gains are ours; the paper prints none."""

    def __init__(self, sim: Simulation, row: int, amplitude: float) -> None:
        model = library()["vita1"]
        self.sim, self.row, self.amplitude = sim, row, amplitude
        rigid, added = mass_matrices(model)
        self.M, self.DL, self.DQ = rigid + added, matrix(model.linear_drag), matrix(model.quadratic_drag)
        H = np.zeros((6, 8))
        for k, t in enumerate(model.thruster):
            H[:, k] = [*t.direction, *np.cross(t.position, t.direction)]
        self.Hplus = np.linalg.pinv(H)
        self.integral = np.zeros(3)
        self.asked = np.zeros(6)  # accelerations of the 20 Hz controllers
        self.smooth = np.zeros((2, 2))  # guidance: (offset, rate) in sway and heave

    def echoes(self) -> np.ndarray:
        """Left, right, up, down: from the faces of the 0.6 m cube to the walls along the body axes."""
        b = self.sim.fleet.body(self.row)
        p, R = b[:3], frames.rotation(b[3:7])
        out = []
        for axis, sign in ((1, -1), (1, 1), (2, -1), (2, 1)):
            d = sign * R[:, axis]
            start = p + 0.3 * d
            ways = [
                (centre + math.copysign(4.0, d[k]) - start[k]) / d[k] for k, centre in ((1, 0.0), (2, 50.0)) if d[k]
            ]
            out.append(min(ways))
        return np.array(out)

    def control(self, time: float) -> None:
        b = self.sim.fleet.body(self.row)
        dt = 0.05
        left, right, up, down = self.echoes()
        offset = np.array([0.5 * (left - right), 0.5 * (up - down)])  # east and below the centre
        wanted = np.array([0.0, self.amplitude * math.sin(2 * math.pi / 17.5 * time)])
        for k in range(2):  # second-order smoothing of the references, critically damped
            acceleration = 0.72**2 * (wanted[k] - self.smooth[k, 0]) - 2 * 0.72 * self.smooth[k, 1]
            self.smooth[k] += dt * np.array([self.smooth[k, 1], acceleration])
        nu, R = b[7:13], frames.rotation(b[3:7])
        speed = R[1:, :] @ nu[:3]
        error = np.array([0.2 - nu[0], *(self.smooth[:, 0] - offset)])
        self.integral += dt * np.clip(error, -0.3, 0.3)
        world = 1.2 * error[1:] + 0.05 * self.integral[1:] + 1.8 * (self.smooth[:, 1] - speed)
        force = R.T @ np.array([0.0, *world])
        force[0] = 0.8 * error[0] + 0.1 * self.integral[0]
        q = b[3:7] * math.copysign(1.0, b[3])
        self.asked = np.concatenate([force, -5.0 * 2 * q[1:] - 4.0 * nu[3:]])

    def stabilise(self) -> None:
        b = self.sim.fleet.body(self.row)
        nu, R = b[7:13], frames.rotation(b[3:7])
        h = self.M @ nu
        coriolis = np.concatenate([np.cross(nu[3:], h[:3]), np.cross(nu[3:], h[3:]) + np.cross(nu[:3], h[:3])])
        lift = 1025 * 9.81 * 0.01121951
        down = R.T @ [0.0, 0.0, 1.0]
        restoring = np.concatenate([(lift - 11.5 * 9.81) * down, np.cross([0.0, 0.0, -0.02], lift * down)])
        tau = self.M @ self.asked + coriolis + (self.DL + self.DQ * np.abs(nu)) @ nu + restoring
        self.sim.command(self.row, list(self.Hplus @ tau))


def pilot(config: Callable[..., LoadedConfig], amplitude: float, seconds: float) -> tuple[Simulation, int, np.ndarray]:
    """Echoes, attitude and offsets at 20 Hz."""
    sim = Simulation(config(f'<time step="2.5 ms"/><world>{TUNNEL}<bed depth="900 m"/></world>'))
    row = sim.enter("vita", "vita1", (3.0, 1.0, 49.0), tuple(np.radians([5.0, 20.0, 15.0])))
    controller = Pilot(sim, row, amplitude)
    rows = []
    for tick in range(round(seconds / 0.0025)):
        if tick % 20 == 0:
            controller.control(tick * 0.0025)
            b = sim.fleet.body(row)
            rows.append([*controller.echoes(), *np.degrees(frames.euler(b[3:7])), b[1], b[2] - 50.0, b[7]])
        controller.stabilise()
        sim.advance(1)
    assert sim.contacts.count == 0
    return sim, row, np.array(rows)


def test_vita1_in_the_tunnel(config: Callable[..., LoadedConfig]) -> None:
    _, _, rows = pilot(config, 0.0, 80.0)
    assert np.allclose(rows[-1, :4], 3.70, atol=0.005), "all four echosounders"
    assert np.abs(rows[-1, 4:7]).max() < 1.0, "angles, deg"
    assert rows[-1, 9] == pytest.approx(0.2, abs=0.005)


def test_vita1_on_a_sine(config: Callable[..., LoadedConfig]) -> None:
    _, _, rows = pilot(config, 1.0, 90.0)
    heave = rows[-700:, 8]  # two periods
    assert 0.89 <= heave.max() <= 0.91 and 0.89 <= -heave.min() <= 0.91
    assert np.abs(rows[-700:, 7]).max() < 0.02, "it stays in the middle sideways"
    assert np.abs(rows[-1, 4:7]).max() < 1.0


@pytest.mark.parametrize(("force", "speed"), [(25.0, 1.2), (250.0, 3.0)])
def test_jolners_speeds(force: float, speed: float) -> None:
    n = math.sqrt(0.5 * force / 0.05)  # K n abs(n), 3000 rpm for 125 N each
    track = batch([library()["jolner"]], {"port": n, "starboard": n}, 60.0, depth=0.0)
    assert track[0, -1, 7] == pytest.approx(speed, rel=0.01)


def test_jolners_step_size_study(config: Callable[..., LoadedConfig]) -> None:
    """X = 100 N, N = 5 Nm, 100 s, shrinking steps: the tracks converge, with each integrator by its order."""
    ends: dict[str, list[np.ndarray]] = {}
    for integrator in ("euler", "rk4"):
        for step in (80, 40, 20, 10):
            sim = Simulation(
                config(f'<time step="{step} ms" integrator="{integrator}"/><world><bed depth="900 m"/></world>')
            )
            row = sim.enter("j", "jolner")
            sim.push(row, [100.0, 0.0, 0.0], [0.0, 0.0, 5.0])
            sim.advance(100_000 // step)
            ends.setdefault(integrator, []).append(sim.state()["p_WB_W"][row][:2].copy())
    for tracks, least in ((ends["euler"], 1.7), (ends["rk4"], 4.0)):
        gaps = [float(np.linalg.norm(b - a)) for a, b in itertools.pairwise(tracks)]
        assert gaps[1] < gaps[0] / least and gaps[2] < gaps[1] / least
    assert np.linalg.norm(ends["rk4"][-1] - ends["rk4"][-2]) < 1e-4
    assert np.linalg.norm(ends["euler"][-1] - ends["rk4"][-1]) < 0.5


def test_rovs_reach_the_speed_of_their_algebra() -> None:
    """Four horizontal thrusters ahead: 4 T cos 45 = d u + q u^2; VITA1's drag is Wu's, the BlueROV2's 2.75 times that."""
    for name, thrust, share in (("bluerov2", 20.0, 2.75), ("vita1", 20.0, 1.0)):
        model = dataclasses.replace(library()[name], active="u")
        track = batch(
            [model], dict.fromkeys(("front-port", "front-starboard", "rear-port", "rear-starboard"), thrust), 60.0
        )
        force = 4 * thrust * math.sqrt(0.5) / share
        assert track[0, -1, 7] == pytest.approx(
            (-4.03 + math.sqrt(4.03**2 + 4 * 18.18 * force)) / (2 * 18.18), rel=1e-3
        )
