"""Slow reference of the team environments: the engine itself (`Simulation`) with the SDK's controllers, and a navigation
filter with matrices. It starts from the state of a team of a vector and draws the same random numbers.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk import frames
from wavesim_sdk.guidance import control
from wavesim_sdk.tables import Outcome
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics.sizes import LANES
from wavesim_studies.learning import team_core as core
from wavesim_studies.learning import team_tables as layout
from wavesim_world.config import load_text

PACKET = struct.Struct("<hhhH4s")  # north, east, depth, deviation, all in decimetres; and the free bytes
KNOWN = 32768  # bit in the deviation: the sender has GPS


def normals(key: int, counter: int, first: int) -> list[float]:
    """Six normal numbers from three hashes; each hash gives two uniform numbers of 26 bits."""
    found = []
    for i in range(3):
        u = float(randomness.uniform(np.array([key], np.uint64), counter, first + i)[0]) * 2.0**26
        high = float(np.rint(u))
        radius = math.sqrt(-2.0 * math.log((high + 0.5) / (2.0**26 + 1.0)))
        found += [radius * math.cos(2.0 * math.pi * (u - high)), radius * math.sin(2.0 * math.pi * (u - high))]
    return found


class Navigator:
    """A Kalman filter of position and current (north, east)."""

    def __init__(self, place: Any, has_gps: bool) -> None:
        self.x = np.array([place[0], place[1], 0.0, 0.0])
        self.P = np.diag([1.0, 1.0, core.CURRENT**2, core.CURRENT**2])
        self.has_gps, self.velocity = has_gps, np.zeros(2)

    def predict(self, v: Any, dt: float) -> None:
        self.velocity = v + self.x[2:]
        self.x[:2] += self.velocity * dt
        F = np.eye(4)
        F[0, 2] = F[1, 3] = dt
        wrong = (core.HEADING**2 + core.SCALE**2) * float(v @ v) * 20.0
        self.P = F @ self.P @ F.T + np.diag([wrong, wrong, 1e-6, 1e-6]) * dt

    def update_by_gps(self, place: Any) -> None:
        self._update(np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]), place - self.x[:2], np.eye(2) * core.GPS**2)

    def update_by_range(self, far: float, place: Any, sigma: float, age: float) -> None:
        to = self.x[:2] - self.velocity * age - place
        distance = max(math.hypot(*to), 1.0)
        H = np.zeros((1, 4))
        H[0, :2] = to / distance
        spread = float(np.trace(self.P[:2, :2])) ** 2 / (8.0 * distance**2)
        innovation, variance = far - distance, core.RANGE**2 + sigma**2 + spread
        if innovation**2 < 16.0 * (variance + float((H @ self.P @ H.T)[0, 0])):
            self._update(H, np.array([innovation]), np.array([[variance]]))

    def _update(self, H: Any, innovation: Any, R: Any) -> None:
        K = self.P @ H.T @ np.linalg.inv(H @ self.P @ H.T + R)
        self.x += K @ innovation
        A = np.eye(4) - K @ H
        self.P = A @ self.P @ A.T + K @ R @ K.T

    @property
    def sigma(self) -> float:
        return math.sqrt(0.5 * float(self.P[0, 0] + self.P[1, 1]))


class Member:
    """A vehicle with its autopilot, its instruments and their errors, and its navigator."""

    def __init__(self, row: int, place: Any, own: Any, known: bool, current: Any) -> None:
        self.current = current
        self.row, self.navigator, self.depth = row, Navigator(place, known), float(own[layout.DEPTH])
        self.wrong_heading, self.wrong_scale = own[layout.HEADING_ERROR], own[layout.SCALE_ERROR]
        self.heading = control.HeadingController(1.0, 1.2, math.radians(25.0))
        self.planes = control.DepthController(limit=math.radians(25.0))
        self.speed = control.SpeedController(12.0, 4.0, 0.0, 12.0)
        self.effort, self.until, self.seen = 0.0, 0.0, dict[int, Any]()

    def steer(self, course: float, speed: float, state: Any, noise: list[float]) -> dict[str, float]:
        dt = layout.CONTROL_S
        _, pitch, yaw = (float(v) for v in frames.euler(state["q_WB"]))
        # the published velocity through water follows a change of the current one tick later
        surge, sway = (float(v) for v in (state["v_WB_B"] - frames.rotation(state["q_WB"]).T @ self.current)[:2])
        _, q, r = (float(v) for v in state["w_WB_B"])
        heading = yaw + self.wrong_heading + 0.005 * noise[0]
        u, v = ((1.0 + self.wrong_scale) * s + 0.01 * n for s, n in zip((surge, sway), noise[1:3], strict=True))
        c, s = math.cos(heading), math.sin(heading)
        self.navigator.predict(np.array([u * c - v * s, u * s + v * c]), dt)
        if self.navigator.has_gps:
            self.navigator.update_by_gps(state["p_WB_W"][:2] + core.GPS * np.array(noise[3:5]))
        rudder = -self.heading.control_action(course, heading, r)
        planes = self.planes.planes(self.depth, float(state["p_WB_W"][2]), float(pitch), q, dt)
        thrust = self.speed.thrust(speed, u, dt)
        self.effort += (thrust / 12.0) ** 2 * dt
        fins = {"rudder-top": rudder, "rudder-bottom": rudder, "plane-port": planes, "plane-starboard": planes}
        return {"propeller": thrust, **fins}


class ReferenceTeam:
    """One team, computed by the engine. ``substeps`` is the number of ticks between two commands."""

    def __init__(self, vector: core.VectorLocalisation, team: int, substeps: int) -> None:
        n, group, lane = vector.members, team // LANES, team % LANES
        self.vector, self.substeps, self.steps = vector, substeps, 0
        self.key = int(vector.arrays.keys[team])
        self.episode = int(vector.arrays.groups[group].reshape(-1, LANES)[layout.EPISODE, lane])
        self.sim = sim = Simulation(load_text(core.configuration(n, substeps)))
        self.members, self.packets = [], dict[int, bytes]()
        for k in range(n):
            body = vector.fleet.blocks[group * n + k].reshape(B.ROWS, LANES)[:, lane]
            own = vector.arrays.members[group * n + k].reshape(-1, LANES)[:, lane]
            row, place = sim.enter(f"m{k}"), body[B.PX : B.PX + 3]
            angles = frames.euler(body[B.QW : B.QW + 4]).tolist()
            sim.set_pose(row, place.tolist(), angles, body[B.NU : B.NU + 6].tolist())
            node, mine = vector.media.media[team].nodes[k], sim.channel.medium.nodes[row]
            mine.key, mine.clock_offset, mine.clock_drift = node.key, node.clock_offset, node.clock_drift
            sim.channel.nodes[row].clock = float(node.clock_offset), float(node.clock_drift)
            current = body[B.V_WF_W : B.V_WF_W + 3].copy()
            self.members.append(Member(row, place.copy(), own, k < vector.known, current))
        sim.set_weather(current_north=float(current[0]), current_east=float(current[1]))

    def step(self, actions: Any) -> tuple[Any, Any, Any]:
        """Return observations, rewards and the records of receptions."""
        sim, now = self.sim, self.steps * layout.STEP_S
        for m, action in zip(self.members, actions, strict=True):
            m.seen.clear()
            m.effort = 0.0
            if action[2] > 0.0:
                self._send(m, action, now)
        for interval in range(5):
            state = sim.state()
            for k, (m, action) in enumerate(zip(self.members, actions, strict=True)):
                counter = (self.episode << 20) + self.steps * 5 + interval + 1
                noise = normals(self.key, counter, 3 * k)
                speed = 0.5 * core.FASTEST * (1.0 + float(action[1]))
                sim.command(m.row, m.steer(math.pi * float(action[0]), speed, state[m.row], noise))
            sim.advance(self.substeps)
        self.steps += 1
        records = self._receive()
        rewards = []
        for m, action in zip(self.members, actions, strict=True):
            error = math.hypot(*(m.navigator.x[:2] - sim.state()[m.row]["p_WB_W"][:2]))
            rewards.append(-min((0.1 * error) ** 2, 10.0) - 0.1 * m.effort - 0.05 * (action[2] > 0.0))
        return np.array([self._observe(m) for m in self.members]), np.array(rewards), records

    def _send(self, m: Member, action: Any, now: float) -> None:
        leaves = now + max(float(action[4]), 0.0) * (layout.STEP_S - core.PACKET_S)
        n = m.navigator
        place = [round(10.0 * float(v)) for v in (*(n.x[:2] + n.velocity * (leaves - now)), m.depth)]
        own = bytes(round(127.5 * (1.0 + float(v))) for v in action[5:])
        payload = PACKET.pack(*place, min(round(10.0 * n.sigma), 32767) | KNOWN * n.has_gps, own)
        level = core.LEVELS[0] + 0.5 * (1.0 + float(action[3])) * (core.LEVELS[1] - core.LEVELS[0])
        offset, drift = self.sim.channel.nodes[m.row].clock
        at = max(round((leaves * (1.0 + drift) + offset) * 1e9), 0)
        self.sim.send(m.row, payload, level=level, at=at)
        m.until = leaves + core.PACKET_S

    def _receive(self) -> Any:
        sent, receptions = self.sim.take_signals()
        for s in sent:
            self.packets[int(s["id"])] = bytes(s["payload"]).ljust(PACKET.size, b"\0")
        by_row = {m.row: m for m in self.members}
        for r in receptions:
            if int(r["outcome"]) != Outcome.HEARD:
                continue
            north, east, depth, deviation, free = PACKET.unpack(self.packets[int(r["id"])])
            place, sigma, far = np.array([north, east]) * 0.1, 0.1 * (deviation % KNOWN), float(r["one_way"])
            m, age = by_row[int(r["receiver"])], self.steps * layout.STEP_S - int(r["arrival_ns"]) * 1e-9
            flat = math.sqrt(max(far**2 - (0.1 * depth - m.depth) ** 2, 1.0))
            if deviation >= KNOWN and not m.navigator.has_gps:
                m.navigator.update_by_range(flat, place, sigma, age)
            values = [2.0 * b / 255.0 - 1.0 for b in free]
            m.seen[int(r["source"])] = [1.0, age, far / 1000.0, *(place / 1000.0), sigma / 100.0, *values]
        return receptions

    def _observe(self, m: Member) -> Any:
        n, state, now = m.navigator, self.sim.state()[m.row], self.steps * layout.STEP_S
        heading = float(frames.euler(state["q_WB"])[2]) + m.wrong_heading
        own = [*(n.x[:2] / 1000.0), n.sigma / 100.0, math.sin(heading), math.cos(heading), *n.velocity]
        own += [m.depth / 100.0, self.steps / self.vector.limit, max(m.until - now, 0.0), float(n.has_gps)]
        others = [m.seen.get(o.row, [0.0] * 10) for o in self.members if o is not m]
        return np.clip(np.concatenate([own, *others]), -10.0, 10.0).astype(np.float32)
