"""A model boat that tracks the way-points of the Panisim manual around four corners, and the log of its run."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.frames import wrap
from wavesim_studies.navigation import lab_logs
from wavesim_world.config import load_text

ROOT = Path(__file__).resolve().parents[2]
CORNERS = np.array([[0.0, 0.0], [-4.0, -10.0], [8.0, -5.0], [9.0, 9.0], [0.0, 0.0]])
RADIUS = 0.5  #: m, at which a way-point counts as reached
DRAG = 1.28  #: N, that of the boat at 0.5 m/s
#: the covariances of the boat's sensor file, as one standard deviation for each sensor: UWB in m, IMU as densities at 50 Hz
UWB_SIGMA = math.sqrt((0.04533883 + 0.05869406) / 2.0)
GYRO = math.sqrt((5.28022053e-05 + 3.58062060e-05 + 5.01080310e-06) / 3.0 / 50.0)
ACCELEROMETER = math.sqrt((0.01973958 + 0.0211394 + 0.03132967) / 3.0 / 50.0)
SENSORS = (
    f'<imu rate="50 Hz" gyro_noise="{GYRO:.4e}" accelerometer_noise="{ACCELEROMETER:.4e}" gyro_walk="0" accelerometer_walk="0" '
    'gyro_turn_on="0.002" accelerometer_turn_on="0.02"/>'
    f'<uwb rate="{{rate:g}} Hz" sigma="{UWB_SIGMA:.4f} m" position="0.2 0.05 -0.4 m"/>'
)


def boat_model() -> str:
    """The shipped model with a thruster, which it lacks."""
    text = (ROOT / "world/wavesim_world/models/surface.xml").read_text()
    found = re.search(r'<model name="sookshma".*?</model>', text, re.DOTALL)
    assert found is not None
    thruster = '<thruster name="t" position="0 0 0 m" direction="1 0 0" law="force" minimum="0" maximum="2" lag="0 s"/>'
    return found[0].replace('"sookshma"', '"boat"').replace("<fin ", thruster + "<fin ")


def configuration(sensors: str, seed: int, extra: str = "", heading: float = -112.0) -> str:
    return (
        f'<wavesim seed="{seed}"><time step="20 ms"/><world latitude="13 deg" longitude="80 deg"><bed depth="5 m"/></world><models>{boat_model()}</models>'
        f'<fleet><vehicle name="boat" model="boat" position="0 0 0 m" attitude="0 0 {heading:g} deg" speed="0.5 m/s" client="none">'
        f'<sensors inherit="no">{sensors}</sensors>{extra}</vehicle></fleet></wavesim>'
    )


class Corners:
    """The manual's cascade: cross-track error to heading (0.6, 0.05), heading to rudder (0.7, 0.5)."""

    def __init__(self) -> None:
        self.leg, self.integral, self.reached = 1, 0.0, 0

    def __call__(self, time: float, state: Any, dt: float) -> dict[str, float]:
        p, heading, r = state["p_WB_W"][:2], float(frames.euler(state["q_WB"])[2]), float(state["w_WB_B"][2])
        a, b = CORNERS[self.leg - 1], CORNERS[self.leg]
        along = (b - a) / np.linalg.norm(b - a)
        across = float(along[0] * (p - a)[1] - along[1] * (p - a)[0])
        self.integral += across * dt
        wanted = math.atan2(along[1], along[0]) - 0.6 * across - 0.05 * self.integral
        rudder = 0.7 * float(wrap(wanted - heading)) - 0.5 * r
        if np.linalg.norm(p - b) < RADIUS:
            self.leg, self.integral, self.reached = self.leg % 4 + 1, 0.0, self.reached + 1
        return {"rudder": -float(np.clip(rudder, -0.61, 0.61)), "t": DRAG}


def run(log: Path, seconds: float, seed: int, sensors: str) -> Corners:
    program = Corners()
    loaded = load_text(configuration(sensors, seed))
    lab_logs.record(loaded, "boat", log, seconds, seed, program, every=0.02, state=0.1)
    return program
