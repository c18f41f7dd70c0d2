"""Training missions: one vehicle follows a random program at sea, and its log is added to a dataset.

Each mission has its own environment (current, depth), program (speeds, courses, rudder, depths) and instrument
errors. All of them follow from its seed.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.elementary import sin
from wavesim_sdk.frames import wrap
from wavesim_sdk.guidance import control
from wavesim_server.logbook.datasets import add_mission
from wavesim_studies.navigation import lab_logs
from wavesim_world.config import load_text

NAME = "auv"
#: periods of the engine, of the IMU, and of the recorded true states and commands
TICK_S, IMU_S, STATE_S = 0.02, 0.1, 0.2
CURRENT = 0.15  #: maximum speed of the current in m/s
SPEED = (0.6, 1.7)  #: minimum and maximum speed through water in m/s
DEPTH = (8.0, 30.0)


def configuration(seed: int) -> str:
    """Return the configuration of a mission with its environment and instruments."""
    random = np.random.default_rng([seed, 1])
    speed, whither = CURRENT * math.sqrt(random.random()), 2.0 * math.pi * random.random()
    north, east = speed * math.cos(whither), speed * math.sin(whither)
    return f"""<wavesim name="mission" seed="{seed}"><time step="{TICK_S:g} s"/>
    <world><current north="{north:.4f} m/s" east="{east:.4f} m/s"/><bed depth="{random.uniform(45.0, 80.0):.1f} m"/></world>
    <fleet><sensors><imu rate="{1.0 / IMU_S:g} Hz" grade="tactical"/><ahrs rate="5 Hz"/><ctd rate="5 Hz"/><dvl rate="5 Hz"/></sensors>
    <vehicle name="{NAME}" model="lauv" position="0 0 15 m" attitude="0 0 {360.0 * random.random():.1f} deg" client="none"
      velocity="1 0 0 m/s"/></fleet></wavesim>"""


class MissionProgramme:
    """Program of random legs that take 20 to 90 s each. A leg is a straight course, a slow turn or a rudder zigzag,
    with a speed and a target depth.
    """

    def __init__(self, seed: int, heading: float) -> None:
        self._random = np.random.default_rng([seed, 2])
        self._until, self._course = 0.0, heading
        self._heading, self._depth = (
            control.HeadingController(1.0, 1.2, math.radians(25.0)),
            control.DepthController(limit=math.radians(20.0)),
        )
        self._speed = control.SpeedController(12.0, 4.0, 0.0, 12.0)

    def commands(self, time: float, state: np.void, dt: float) -> dict[str, float]:
        """Return the commands for all actuators, given the time (s) and a row of the `state` table."""
        if time >= self._until:
            r = self._random
            self._until = time + r.uniform(20.0, 90.0)
            self._kind, self._turn = int(r.integers(3)), float(r.uniform(-2.5, 2.5))
            self._rudder, self._period = float(r.uniform(0.05, 0.3)), float(r.uniform(6.0, 25.0))
            self._wanted, self._down, self._since = float(r.uniform(*SPEED)), float(r.uniform(*DEPTH)), time
            self._course = float(wrap(self._course + self._turn))
        _, pitch, yaw = (float(v) for v in frames.euler(state["q_WB"]))
        _, q, rate = (float(v) for v in state["w_WB_B"])
        if self._kind == 0:
            rudder = -self._heading.control_action(self._course, yaw, rate)
        elif self._kind == 1:
            rudder = math.copysign(0.3 * self._rudder, self._turn)
        else:
            rudder = self._rudder * float(sin(2.0 * math.pi * (time - self._since) / self._period))
        if self._kind:
            self._course = yaw
        planes = self._depth.planes(self._down, float(state["p_WB_W"][2]), pitch, q, dt)
        thrust = self._speed.thrust(self._wanted, float(state["v_FB_B"][0]), dt)
        return {
            "propeller": thrust,
            "rudder-top": rudder,
            "rudder-bottom": rudder,
            "plane-port": planes,
            "plane-starboard": planes,
        }


def run_mission(seed: int, seconds: float, log: Path) -> None:
    """Run one mission and write its log."""
    loaded = load_text(configuration(seed))
    begin = next(b for b in loaded.config.fleet.bodies if b.name == NAME)
    programme = MissionProgramme(seed, float(begin.attitude[2]))
    lab_logs.record(loaded, NAME, log, seconds, seed, programme.commands, every=IMU_S, state=STATE_S)


def make_dataset(folder: Path, count: int, seconds: float, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Run missions and add them to a dataset. Yield, for each mission, its name and the part of the split to which it
    belongs.
    """
    for k in range(count):
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch) / "run.mcap"
            run_mission(seed + k, seconds, log)
            yield add_mission(log, folder)
