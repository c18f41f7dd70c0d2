"""Training missions: one vehicle follows a random program at sea, and its log is added to a dataset.

By default, the vehicle is a LAUV, and each mission has its own environment (current, depth), program (speeds, courses,
rudder, depths) and instrument errors. A user's configuration supplies any other vehicle and its environment; the
program then commands its thrusters and rudders. All random choices follow from the seed.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.actuators import ActuatorKind
from wavesim_sdk.elementary import sin
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import wrap
from wavesim_sdk.guidance import control
from wavesim_server.logbook.datasets import add_mission
from wavesim_studies.navigation import lab_logs
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig, Model, load_text

NAME = "auv"
#: periods of the engine, of the IMU, and of the recorded true states and commands
TICK_S, IMU_S, STATE_S = 0.02, 0.1, 0.2
RECORD_S = 0.1  #: period in s at which the true states and commands of other vehicles are recorded
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


class RandomCommands:
    """Commands for any vehicle that moves horizontally: random legs that take 4 to 20 s each. A leg is straight, a turn
    or a zigzag, at a random thrust.

    Rudders steer the vehicle. If it has none, horizontal thrusters steer it by differential thrust. Fins with a
    vertical normal, vertical thrusters, and all other actuators are not commanded.
    """

    def __init__(self, model: Model, seed: int) -> None:
        self._random = np.random.default_rng([seed, 3])
        self._until = self._since = 0.0
        actuators = {a.name: a for a in actuators_of(model)}
        level = [t for t in model.thruster if abs(t.direction[2]) < 0.7]
        self._thrust = {t.name: (actuators[t.name], math.copysign(1.0, t.direction[0] or 1.0)) for t in level}
        normals = ((f.name, f.normal) for f in model.fin)
        self._steer = {name: actuators[name].maximum for name, n in normals if abs(n[1]) >= abs(n[2])}
        self._steer |= {a.name: a.maximum for a in actuators.values() if a.kind == ActuatorKind.ANGLE}
        self._sides = {
            t.name: math.copysign(1.0, t.position[0] * t.direction[1] - t.position[1] * t.direction[0]) for t in level
        }
        self._zero = dict.fromkeys(actuators, 0.0)
        if not level and not self._steer:
            raise ConfigError(
                f"model '{model.name}' has neither a horizontal thruster nor a rudder for random commands"
            )

    def commands(self, time: float, _state: np.void, _dt: float) -> dict[str, float]:
        """Return the commands for all actuators at a time (s)."""
        if time >= self._until:
            r = self._random
            self._since, self._until = time, time + r.uniform(4.0, 20.0)
            self._kind, self._thrusting = int(r.integers(3)), float(r.uniform(0.3, 0.9))
            self._turn, self._period = float(r.uniform(-1.0, 1.0)), float(r.uniform(4.0, 15.0))
        phase = sin(2.0 * math.pi * (time - self._since) / self._period)
        steer = (0.0, self._turn, self._turn * float(phase))[self._kind]
        found = dict(self._zero)
        for name, (a, ahead) in self._thrust.items():
            share = (
                self._thrusting
                if self._steer
                else float(np.clip(0.5 * self._thrusting * ahead + 0.5 * steer * self._sides[name], -1, 1))
            )
            found[name] = share * (a.maximum if share > 0.0 else -a.minimum)
        for name, most in self._steer.items():
            found[name] = steer * most
        return found


def run_configured_mission(loaded: LoadedConfig, seed: int, seconds: float, log: Path) -> None:
    """Run the first vehicle of a configuration with random commands, and write the log."""
    body = next((b for b in loaded.config.fleet.bodies if loaded.model(b.model).type != "buoy"), None)
    if body is None:
        raise ConfigError("the configuration has no vehicle for the missions")
    imu = next((i for i in loaded.suite(body) if i.type == "imu"), None)
    if imu is None:
        raise ConfigError(f"'{body.name}' has no IMU; declare <imu/> in its <sensors>")
    every = max(1.0 / imu.parameters.rate, loaded.config.time.step)
    state = every * max(round(RECORD_S / every), 1)
    programme = RandomCommands(loaded.model(body.model), seed)
    lab_logs.record(loaded, body.name, log, seconds, seed, programme.commands, every=every, state=state)


def make_dataset(
    folder: Path, count: int, seconds: float, seed: int = 1, loaded: LoadedConfig | None = None
) -> Iterator[tuple[str, str]]:
    """Run missions of a LAUV, or of the first vehicle of a configuration, and add them to a dataset. Yield the name of
    each mission and the split (training, validation or test) to which it belongs.
    """
    for k in range(count):
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch) / "run.mcap"
            if loaded is None:
                run_mission(seed + k, seconds, log)
            else:
                run_configured_mission(loaded, seed + k, seconds, log)
            yield add_mission(log, folder)
