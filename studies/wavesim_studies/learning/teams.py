"""PettingZoo environments for teams whose members communicate through the engine's acoustic medium.

A packet arrives after the travel time r/c. A member receives the packet if the member is not transmitting and no other
packet arrives at the same time.

    from wavesim_studies.learning import teams
    env = teams.Localisation(members=5)
    observations, infos = env.reset(seed=1)
    while env.agents:
        observations, rewards, terminations, truncations, infos = env.step({a: env.action_space(a).sample() for a in
        env.agents})

In cooperative localisation, one member knows its position. The others use dead reckoning from heading and speed, in a
current that they cannot measure. A packet contains the estimated position of its sender, and the range follows from the
delay of the packet.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import gymnasium
import numpy as np
from pettingzoo import ParallelEnv

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import cos, sin
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.guidance import control
from wavesim_sdk.tables import Outcome
from wavesim_server import Simulation
from wavesim_world.config import load_text

__all__ = [
    "Localisation",
    "Navigator",
    "TransmissionSchedule",
    "aloha",
    "configuration",
    "evaluate_schedule",
    "tdma",
    "transmit_always",
    "transmit_never",
]

STEP_S = 1.0  #: time in s between two actions
CONTROL_S = 0.2  #: interval in s between two commands of the autopilot
TICK_S = 0.02
BYTES = 4  #: number of bytes in a packet that a member may fill freely
_PACKET = struct.Struct(f"<hhhH{BYTES}s")  # north, east, depth, deviation, all in decimetres; and the free bytes
_KNOWN = 32768  # bit in the deviation: the sender has GPS
BIT_RATE, PREAMBLE = 160.0, 0.05
PACKET_S = PREAMBLE + 8 * _PACKET.size / BIT_RATE  #: duration of a packet in s
LEVELS = (150.0, 188.0)  #: source levels in dB re 1 uPa at 1 m for the minimum and the maximum action
FASTEST = 1.6  #: speed through water in m/s at the maximum action
FAR = 3000.0  #: distance in m from the centre beyond which a member counts as lost
ACTIONS = ("course", "speed", "send", "level", "slot", *(f"byte{k}" for k in range(BYTES)))
OWN = 11  #: number of values in an observation that describe the member itself
PER_MEMBER = 6 + BYTES  #: number of values in an observation that describe each of the other members
BOUND = 10.0
#: standard deviations of the members' unknown errors: heading (rad), speed scale, current (m/s per axis), range (m)
HEADING, SCALE, CURRENT, RANGE = 0.03, 0.02, 0.2, 1.0
GPS = 0.5  #: position accuracy in m of members with GPS


def configuration(members: int) -> str:
    """Return the configuration of a team in deep water with a constant sound speed, ambient noise, and clocks with
    small errors.
    """
    fleet = "".join(
        f"""<vehicle name="m{k}" model="lauv" position="0 {30 * k} 20 m" client="optional">
        <transducer position="0.3 0 0.08 m" threshold="80 dB" recharge="0 s" timing_noise="0.1 ms">
        <clock offset_deviation="0.2 ms" drift_deviation="1 ppm"/>
        <modem address="{k + 1}" frequency="25 kHz" bandwidth="4 kHz" bit_rate="{BIT_RATE:g}" preamble="{PREAMBLE:g} s" payload="{_PACKET.size}"/>
        </transducer></vehicle>"""
        for k in range(members)
    )
    return f"""<wavesim><time step="{TICK_S:g} s"/><shared vehicles="{members}"/><world><bed depth="200 m"/></world>
    <acoustics ambient_noise="70 dB"/><fleet>{fleet}</fleet></wavesim>"""


class Navigator:
    """Estimated position of a member. A Kalman filter estimates position and current (north, east) from dead reckoning
    and ranges.
    """

    def __init__(self, place: Floats, has_gps: bool) -> None:
        self.x = np.array([place[0], place[1], 0.0, 0.0])
        self.P = np.diag([1.0, 1.0, CURRENT**2, CURRENT**2])
        self.has_gps = has_gps
        self.velocity = np.zeros(2)  #: velocity over ground, north and east, m/s

    def predict(self, v_FB_W: Floats, dt: float) -> None:
        """Predict over ``dt`` with ``v_FB_W``, the measured velocity through water in W."""
        self.velocity = v_FB_W + self.x[2:]
        self.x[:2] += self.velocity * dt
        F = np.eye(4)
        F[0, 2] = F[1, 3] = dt
        # heading and scale errors last long: add in each second what they would cause in twenty seconds
        wrong = (HEADING**2 + SCALE**2) * float(v_FB_W @ v_FB_W) * 20.0
        self.P = F @ self.P @ F.T + np.diag([wrong, wrong, 1e-6, 1e-6]) * dt

    def update_by_gps(self, place: Floats) -> None:
        """Update the estimate with a GPS position."""
        self._update(np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]), place - self.x[:2], np.eye(2) * GPS**2)

    def update_by_range(self, far: float, place: Floats, sigma: float, age: float) -> None:
        """Update the estimate with a horizontal distance that was measured ``age`` seconds ago.

        The other member is at ``place``. The error of this position has the standard deviation ``sigma`` (m) and is
        independent of our own estimate.
        """
        to = self.x[:2] - self.velocity * age - place
        distance = max(math.sqrt(float(to @ to)), 1.0)
        H = np.zeros((1, 4))
        H[0, :2] = to / distance
        spread = float(np.trace(self.P[:2, :2])) ** 2 / (8.0 * distance**2)  # second-order term: the circle is curved
        innovation, variance = far - distance, RANGE**2 + sigma**2 + spread
        if innovation**2 < 16.0 * (variance + float((H @ self.P @ H.T)[0, 0])):
            self._update(H, np.array([innovation]), np.array([[variance]]))

    def _update(self, H: Floats, innovation: Floats, R: Floats) -> None:
        K = self.P @ H.T @ np.linalg.inv(H @ self.P @ H.T + R)
        self.x += K @ innovation
        A = np.eye(4) - K @ H
        self.P = A @ self.P @ A.T + K @ R @ K.T

    @property
    def sigma(self) -> float:
        """Standard deviation of each coordinate in m."""
        return math.sqrt(0.5 * float(self.P[0, 0] + self.P[1, 1]))


class _TeamMember:
    """One vehicle with its autopilot, its instruments and their errors, and its navigator."""

    def __init__(self, row: int, place: Floats, known: bool, random: np.random.Generator) -> None:
        self.row, self.navigator = row, Navigator(place, known)
        self.wrong_heading, self.wrong_scale = HEADING * random.standard_normal(), SCALE * random.standard_normal()
        self.depth = float(place[2])
        self._heading, self._depth = (
            control.HeadingController(1.0, 1.2, math.radians(25.0)),
            control.DepthController(limit=math.radians(25.0)),
        )
        self._speed = control.SpeedController(12.0, 4.0, 0.0, 12.0)
        self.transmitting_until = 0.0  #: time in s at which the current transmission ends
        self.effort = 0.0
        self.heard: dict[int, Floats] = {}  # by member number: data received in this step

    def steer(
        self, course: float, speed: float, state: Any, dt: float, random: np.random.Generator
    ) -> dict[str, float]:
        """Return commands computed from the instrument values."""
        _, pitch, yaw = (float(v) for v in frames.euler(state["q_WB"]))
        surge, sway = (float(v) for v in state["v_FB_B"][:2])
        _, q, r = (float(v) for v in state["w_WB_B"])
        heading = yaw + self.wrong_heading + 0.005 * random.standard_normal()
        u, v = ((1.0 + self.wrong_scale) * s + 0.01 * random.standard_normal() for s in (surge, sway))
        c, s = cos(heading), sin(heading)
        self.navigator.predict(np.array([u * c - v * s, u * s + v * c]), dt)
        if self.navigator.has_gps:
            self.navigator.update_by_gps(state["p_WB_W"][:2] + GPS * random.standard_normal(2))
        rudder = -self._heading.control_action(course, heading, r)
        planes = self._depth.planes(self.depth, float(state["p_WB_W"][2]), float(pitch), q, dt)
        thrust = self._speed.thrust(speed, u, dt)
        self.effort += (thrust / 12.0) ** 2 * dt
        fins = {"rudder-top": rudder, "rudder-bottom": rudder, "plane-port": planes, "plane-starboard": planes}
        return {"propeller": thrust, **fins}


class Localisation(ParallelEnv):  # type: ignore[misc]
    """A team of ``members`` vehicles, of which the first ``known`` have GPS. An episode has at most ``limit`` steps of
    one second.

    An action has these values, each from -1 to 1: course (fraction of half a turn), speed, whether to send (above 0),
    level, start of the transmission within the step (0: immediately; 1: so late that the transmission ends with the
    step; below 0 counts as 0), and bytes that the member may fill freely. docs/learning.md describes observation and
    reward.
    """

    metadata: dict[str, Any] = {"render_modes": [], "name": "wavesim_localisation_v0", "is_parallelizable": True}  # noqa: RUF012  # as PettingZoo declares it

    def __init__(self, members: int = 5, known: int = 1, limit: int = 300, render_mode: str | None = None) -> None:
        if not 2 <= members <= 20 or not 0 <= known <= members:
            raise ConfigError(
                f"a team needs 2 to 20 members, of which any number may have GPS; got {members} members and {known} with GPS"
            )
        self._loaded = load_text(configuration(members))
        self.known, self.limit, self.render_mode = known, limit, render_mode
        self.possible_agents = [f"m{k}" for k in range(members)]
        self.agents: list[str] = []
        size = OWN + PER_MEMBER * (members - 1)
        box = gymnasium.spaces.Box
        self._observed = {a: box(-BOUND, BOUND, (size,), np.float32) for a in self.possible_agents}
        self._acted = {a: box(-1.0, 1.0, (len(ACTIONS),), np.float32) for a in self.possible_agents}
        self.state_space = box(-np.inf, np.inf, (members * 8,), np.float32)
        self._random = np.random.default_rng()
        self.simulation: Simulation | None = None  #: simulation engine of this episode

    def observation_space(self, agent: str) -> Any:
        """Return the observation space of a member. Repeated calls return the same object."""
        return self._observed[agent]

    def action_space(self, agent: str) -> Any:
        """Return the action space of a member. Repeated calls return the same object."""
        return self._acted[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Place the members at equal angles around the centre, at distances of 100 to 150 m, in a random current. The
        same seed always produces the same start.
        """
        if seed is not None:
            self._random = np.random.default_rng(seed)
        random, n = self._random, len(self.possible_agents)
        self.simulation = sim = Simulation(self._loaded, int(random.integers(2**31)))
        self.agents, self._steps = list(self.possible_agents), 0
        self.members: dict[str, _TeamMember] = {}
        self._sent_payloads: dict[int, tuple[float, bytes]] = {}  # packets under way, by signal
        turn = 2.0 * math.pi * random.random()
        for k, name in enumerate(self.possible_agents):
            around, far = turn + 2.0 * math.pi * k / n, random.uniform(100.0, 150.0)
            place = np.array([far * cos(around), far * sin(around), random.uniform(15.0, 40.0)])
            row = sim.enter(name)
            sim.set_pose(
                row, place.tolist(), (0.0, 0.0, random.uniform(-math.pi, math.pi)), (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            )
            self.members[name] = _TeamMember(row, place, k < self.known, random)
        north, east = CURRENT * random.standard_normal(2)
        sim.set_weather(current_north=float(north), current_east=float(east))
        return {a: self._observe(a) for a in self.agents}, {a: {} for a in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Advance all members by one second. Raise ValueError unless each member has a complete action."""
        if wrong := [a for a in self.agents if np.shape(np.asarray(actions.get(a))) != (len(ACTIONS),)]:
            raise ValueError(
                f"'{wrong[0]}' expects an action of {len(ACTIONS)} numbers, got {actions.get(wrong[0])!r:.60}"
            )
        sim, now = self._simulation(), self._steps * STEP_S
        clipped = {a: np.clip(np.nan_to_num(np.asarray(actions[a], float)), -1.0, 1.0) for a in self.agents}
        for name, action in clipped.items():
            self.members[name].heard.clear()
            self.members[name].effort = 0.0
            if action[2] > 0.0:
                self._send(self.members[name], action, now)
        for _ in range(round(STEP_S / CONTROL_S)):
            state = sim.state()
            for name, action in clipped.items():
                m = self.members[name]
                speed = 0.5 * FASTEST * (1.0 + action[1])
                sim.command(m.row, m.steer(math.pi * action[0], speed, state[m.row], CONTROL_S, self._random))
            sim.advance(round(CONTROL_S / TICK_S))
        self._steps += 1
        records = self._receive()
        return self._ended({a: bool(clipped[a][2] > 0.0) for a in self.agents}, records)

    def _simulation(self) -> Simulation:
        if self.simulation is None:
            raise RuntimeError("call reset() first")
        return self.simulation

    def _send(self, member: _TeamMember, action: Floats, now: float) -> None:
        """Schedule a packet that contains the sender's estimated position at the time of emission."""
        sim = self._simulation()
        after = max(float(action[4]), 0.0) * (STEP_S - PACKET_S)
        n = member.navigator
        place = [round(10.0 * float(v)) for v in (*(n.x[:2] + n.velocity * after), member.depth)]
        if max(map(abs, place)) > 32767:
            return  # too far away to encode its position
        own = bytes(round(127.5 * (1.0 + float(v))) for v in action[5:])
        payload = _PACKET.pack(*place, min(round(10.0 * n.sigma), 32767) | _KNOWN * n.has_gps, own)
        level = LEVELS[0] + 0.5 * (1.0 + float(action[3])) * (LEVELS[1] - LEVELS[0])
        offset, drift = sim.channel.nodes[member.row].clock
        leaves = now + after
        sim.send(member.row, payload, level=level, at=max(round((leaves * (1.0 + drift) + offset) * 1e9), 0))
        member.transmitting_until = leaves + PACKET_S

    def _receive(self) -> dict[str, list[dict[str, Any]]]:
        """Pass received packets to the navigators; return the records of all receptions by member."""
        sim, now = self._simulation(), self._steps * STEP_S
        sent, receptions = sim.take_signals()
        for s in sent:
            self._sent_payloads[int(s["id"])] = now, bytes(s["payload"]).ljust(_PACKET.size, b"\0")
        names = {m.row: a for a, m in self.members.items()}
        records: dict[str, list[dict[str, Any]]] = {a: [] for a in self.agents}
        for r in receptions:
            name, other = names[int(r["receiver"])], int(r["source"])
            if name not in records:
                continue
            records[name].append(
                {
                    "source": other,
                    "outcome": int(r["outcome"]),
                    "sent_ns": int(r["emission_ns"]),
                    "arrival_ns": int(r["arrival_ns"]),
                    "range": float(r["one_way"]),
                    "level": float(r["level"]),
                }
            )
            if int(r["outcome"]) != Outcome.HEARD or int(r["id"]) not in self._sent_payloads:
                continue
            north, east, depth, deviation, free = _PACKET.unpack(self._sent_payloads[int(r["id"])][1])
            place, sigma, far = np.array([north, east]) * 0.1, 0.1 * (deviation % _KNOWN), float(r["one_way"])
            m, age = self.members[name], now - int(r["arrival_ns"]) * 1e-9
            flat = math.sqrt(max(far**2 - (0.1 * depth - m.depth) ** 2, 1.0))
            if (
                deviation >= _KNOWN and not m.navigator.has_gps
            ):  # the other member may have derived its position from us or from a third member
                m.navigator.update_by_range(flat, place, sigma, age)
            free_values = [2.0 * b / 255.0 - 1.0 for b in free]
            m.heard[other] = np.array([1.0, age / STEP_S, far / 1000.0, *(place / 1000.0), sigma / 100.0, *free_values])
        self._sent_payloads = {k: v for k, v in self._sent_payloads.items() if now - v[0] < 10.0}
        return records

    def _ended(
        self, sending: dict[str, bool], records: dict[str, list[dict[str, Any]]]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Return observations, rewards, terminations, truncations and infos."""
        state, now = self._simulation().state(), self.agents
        observations = {a: self._observe(a) for a in now}
        rewards, gone, late, infos = {}, {}, {}, {}
        for a in now:
            m = self.members[a]
            p = state[m.row]["p_WB_W"]
            error = float(np.linalg.norm(m.navigator.x[:2] - p[:2]))
            parts = -min((0.1 * error) ** 2, 10.0), -0.1 * m.effort, -0.05 * sending[a]
            rewards[a] = sum(parts)
            gone[a] = not float(p @ p) < FAR**2
            late[a] = not gone[a] and self._steps >= self.limit
            infos[a] = {
                "error": error,
                "sigma": m.navigator.sigma,
                "reward_error": parts[0],
                "reward_energy": parts[1],
                "reward_packets": parts[2],
                "receptions": records[a],
            }
        for a in now:
            if gone[a]:
                self._simulation().leave(self.members[a].row)
        self.agents = [a for a in now if not (gone[a] or late[a])]
        return observations, rewards, gone, late, infos

    def _observe(self, name: str) -> Any:
        """Return the observation of a member."""
        m, sim = self.members[name], self._simulation()
        n, state, now = m.navigator, sim.state()[m.row], self._steps * STEP_S
        heading = float(frames.euler(state["q_WB"])[2]) + m.wrong_heading
        own = [
            *(n.x[:2] / 1000.0),
            n.sigma / 100.0,
            sin(heading),
            cos(heading),
            *n.velocity,
            m.depth / 100.0,
            self._steps / self.limit,
            max(m.transmitting_until - now, 0.0) / STEP_S,
            float(n.has_gps),
        ]
        others = [o for a, o in self.members.items() if a != name]
        parts = [m.heard.get(o.row, np.zeros(PER_MEMBER)) for o in others]
        parts += [np.zeros(PER_MEMBER)] * (len(self.possible_agents) - 1 - len(others))
        return np.clip(np.concatenate([own, *parts]), -BOUND, BOUND).astype(np.float32)

    def state(self) -> Any:
        """Return a complete state for a central critic: true position (m), velocity (m/s) and estimation error (m) of
        each member.
        """
        table, found = self._simulation().state(), np.zeros((len(self.possible_agents), 8), np.float32)
        for k, name in enumerate(self.possible_agents):
            m = self.members[name]
            s = table[m.row]
            found[k] = *s["p_WB_W"], *s["v_WB_B"], *(m.navigator.x[:2] - s["p_WB_W"][:2])
        return found.ravel()

    def render(self) -> None:
        """Do nothing, because rendering is not supported."""

    def close(self) -> None:
        """Release the simulation engine."""
        self.simulation = None


# ------------------------------------------------------------------ baselines for learners


class TransmissionSchedule:
    """Baseline in which each member sails along its own circle. Member number ``k`` sends in the steps for which
    ``when(step, k)`` is true.
    """

    def __init__(self, env: Localisation, when: Any) -> None:
        self.env, self._when = env, when

    def act(self, step: int) -> dict[str, Any]:
        """Return the actions of all members at a step; steps count from 0."""
        actions = {}
        for a in self.env.agents:
            k = self.env.possible_agents.index(a)
            course = (step / 100.0 + 0.37 * k + 1.0) % 2.0 - 1.0
            action = np.zeros(len(ACTIONS), np.float32)
            action[:5] = course, 0.5, 1.0 if self._when(step, k) else -1.0, 1.0, 0.0
            actions[a] = action
        return actions


def transmit_never(env: Localisation) -> TransmissionSchedule:
    """Return a schedule in which no member sends."""
    return TransmissionSchedule(env, lambda step, k: False)


def tdma(env: Localisation) -> TransmissionSchedule:
    """Return a schedule in which the members send one after the other, for one step each."""
    return TransmissionSchedule(env, lambda step, k: step % len(env.possible_agents) == k)


def aloha(env: Localisation, share: float = 0.184, seed: int = 0) -> TransmissionSchedule:
    """Return a schedule in which each member sends at random, in a fraction ``share`` of all steps."""
    random = np.random.default_rng(seed)
    return TransmissionSchedule(env, lambda step, k: bool(random.random() < share))


def transmit_always(env: Localisation) -> TransmissionSchedule:
    """Return a schedule in which all members send in every step."""
    return TransmissionSchedule(env, lambda step, k: True)


def evaluate_schedule(env: Localisation, plan: TransmissionSchedule, seed: int) -> dict[str, float]:
    """Run one episode. Return the RMS error (m) of members without GPS, the number of packets sent, the number of
    packets received, and the mean reward of a member.
    """
    env.reset(seed=seed)
    square, count, heard, sent, total = 0.0, 0, 0, 0, 0.0
    for step in range(env.limit):
        if not env.agents:
            break
        actions = plan.act(step)
        sent += sum(int(a[2] > 0.0) for a in actions.values())
        _, rewards, _, _, infos = env.step(actions)
        total += sum(rewards.values()) / len(env.possible_agents)
        for a, info in infos.items():
            heard += sum(r["outcome"] == Outcome.HEARD for r in info["receptions"])
            if not env.members[a].navigator.has_gps:
                square, count = square + info["error"] ** 2, count + 1
    return {"rms": math.sqrt(square / max(count, 1)), "sent": float(sent), "heard": float(heard), "reward": total}
