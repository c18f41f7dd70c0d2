"""On-board program for VITA1 in a flooded tunnel. Four echosounders keep it in the centre of the tunnel.

    python tunnel.py --config ../trials/tunnel.xml --vehicle vita [--amplitude 1] [--heading 137] [--speed 0.25]

The structure follows the published controllers (Simu2VITA, Sensors 2022): guidance that smooths its references, PID
centring from range differences, PI surge, and a stabiliser that compensates drag, Coriolis and restoring forces. The
paper does not publish its gains; the gains here are our own.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import numpy as np

import program
from wavesim_sdk.algebra import matmul, matvec, pseudo_inverse, vecmat
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.elementary import sin
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.frames import quaternion, rotation
from wavesim_world.config import BodyConfig, LoadedConfig
from wavesim_world.config.validation import matrix

PERIOD = 17.5  #: period in s of the sinusoidal depth variation
GUIDANCE = 0.05  #: time in s between readings from the echosounders
SMOOTH = 0.72  #: bandwidth of the reference filter in rad/s
LIFT_ARM = 0.02  #: distance in m from the centre of mass up to the centre of buoyancy


class Rov:
    """Guidance, centring and stabilisation for one vehicle."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig, options: argparse.Namespace) -> None:
        model = loaded.model(body.model)
        self.amplitude, self.surge = options.amplitude, options.speed
        self.axis = quaternion(0.0, 0.0, math.radians(options.heading))
        self.R_WT = rotation(self.axis)  # T: along the tunnel, to starboard, down
        self.names = [t.name for t in model.thruster]
        inertia = model.inertia
        if inertia is None or model.buoyancy is None:
            raise BrokerError("this program needs a model with <inertia> and <buoyancy>")
        own = [model.mass.value] * 3 + [inertia.xx, inertia.yy, inertia.zz]
        self.mass = np.array(own) + matrix(model.added_mass).diagonal()
        self.linear, self.quadratic = matrix(model.linear_drag).diagonal(), matrix(model.quadratic_drag).diagonal()
        self.lift = loaded.config.world.density * loaded.config.world.gravity * model.buoyancy.volume
        rows = [[*t.direction, *_cross(t.position, t.direction)] for t in model.thruster]
        self.allocation = pseudo_inverse(np.array(rows).T)[0]
        self.integral = np.zeros(3)
        self.smooth = np.zeros((2, 2))  # offset and its rate, to starboard and down
        self.wanted = np.zeros(6)
        self._at = -1.0

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], None]:
        motion = step.state.motion
        if motion is None:
            raise BrokerError(
                'this program needs the true attitude and rates; set truth="full" for the vehicle in the configuration'
            )
        state = np.array(motion)
        R_WB = rotation(state[3:7])
        ranger = step.sensors.get("ranger")
        if ranger is not None and (self._at < 0.0 or step.time - self._at > GUIDANCE - 1e-6):
            self._at = step.time
            self._centre(np.array(ranger.range[:4]), state, matmul(self.R_WT.T, R_WB), step.time)
        return dict(zip(self.names, self._stabilise(state, R_WB).tolist(), strict=True)), None

    def _centre(self, ranges: np.ndarray, state: np.ndarray, R_TB: np.ndarray, time: float) -> None:
        left, right, up, down = ranges
        offset = np.array([0.5 * (left - right), 0.5 * (up - down)])
        wanted = np.array([0.0, self.amplitude * float(sin(2.0 * math.pi / PERIOD * time))])
        for k in range(2):
            pull = SMOOTH * SMOOTH * (wanted[k] - self.smooth[k, 0]) - 2.0 * SMOOTH * self.smooth[k, 1]
            self.smooth[k] += GUIDANCE * np.array([self.smooth[k, 1], pull])
        q = _turned(state[3:7], self.axis)
        q *= math.copysign(1.0, q[0])
        self.wanted[3:] = -10.0 * q[1:] - 4.0 * state[10:13]
        if not np.isfinite(ranges).any():  # beyond the end of the tunnel: stop
            self.wanted[:3] = -0.8 * state[7:10]
            return
        speed = matvec(R_TB, state[7:10])
        error = np.array([self.surge - state[7], *(self.smooth[:, 0] - offset)])
        if not np.isfinite(error).all():
            return  # a wall is out of range
        self.integral += GUIDANCE * np.clip(error, -0.3, 0.3)
        world = 1.2 * error[1:] + 0.05 * self.integral[1:] + 1.8 * (self.smooth[:, 1] - speed[1:])
        force = vecmat(np.array([0.0, *world]), R_TB)
        force[0] = 0.8 * error[0] + 0.1 * self.integral[0]
        self.wanted[:3] = force

    def _stabilise(self, state: np.ndarray, R_WB: np.ndarray) -> np.ndarray:
        nu = state[7:13]
        down = vecmat(np.array([0.0, 0.0, 1.0]), R_WB)
        righting = _cross((0.0, 0.0, -LIFT_ARM), self.lift * down)
        tau = self.mass * self.wanted + (self.linear + self.quadratic * np.abs(nu)) * nu
        h = self.mass * nu
        tau[:3] += _cross(nu[3:], h[:3])
        tau[3:] += righting + _cross(nu[3:], h[3:]) + _cross(nu[:3], h[:3])
        return np.asarray(matvec(self.allocation, tau))


def _turned(q_WB: np.ndarray, q_WT: np.ndarray) -> np.ndarray:
    """Return q_TB, the attitude relative to the tunnel's frame T, which differs from W only in its heading."""
    (w, x, y, z), (c, _, _, s) = q_WB, q_WT
    return np.array([c * w + s * z, c * x + s * y, c * y - s * x, c * z - s * w])


def _cross(a: Any, b: Any) -> np.ndarray:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--amplitude", type=float, default=0.0, help="amplitude of a sinusoidal depth variation, in m")
    parser.add_argument("--heading", type=float, default=0.0, help="heading of the tunnel, in deg")
    parser.add_argument("--speed", type=float, default=0.2, help="surge speed, in m/s")


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Rov, options))
