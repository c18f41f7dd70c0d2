"""Motion: attitude and heading, inertial unit, speed log, Doppler log, and everything at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_emulators.base import Emulator, Floats, Noise, Rows
from wavesim_sdk import frames
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded
from wavesim_sdk.ocean.scene import Scene
from wavesim_sdk.tables import SensorFault

TILT_SIGMA = np.radians(0.1)
HEADING_SIGMA = np.radians(0.3)
RATE_SIGMA = np.radians(0.02)
SPEED_SIGMA = 0.01  #: m/s
BIAS = 500  #: index of the draws of the turn-on bias


class Ahrs(Emulator):
    """Roll, pitch, heading and rates. White noise: 0.1, 0.1, 0.3 deg, 0.02 deg/s; no bias."""

    sensor = "ahrs"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        angles = frames.euler(view.state["q_WB"][rows])
        out["roll"][rows] = angles[:, 0] + TILT_SIGMA * noise(0)
        out["pitch"][rows] = angles[:, 1] + TILT_SIGMA * noise(1)
        out["heading"][rows] = np.mod(angles[:, 2] + HEADING_SIGMA * noise(2), 2 * np.pi)
        for axis in range(3):
            out["rates"][rows, axis] = view.state["w_WB_B"][rows, axis] + RATE_SIGMA * noise(3 + axis)


class SpeedLog(Emulator):
    """Velocity through the water in B. White noise of 1 cm/s on each axis."""

    sensor = "speedlog"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        for axis in range(3):
            out["v_FB_B"][rows, axis] = view.state["v_FB_B"][rows, axis] + SPEED_SIGMA * noise(axis)


class SinceLast(Emulator):
    """A sensor of what has changed since its last value."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        n = loaded.config.shared.vehicles
        self.velocity, self.rates, self.R_WS = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3, 3))
        self.time = np.full(n, -1, np.int64)

    def step(self, view: Snapshot, rows: Rows, velocity: Floats, R_WS: Floats) -> tuple[Floats, Floats, Floats, Any]:
        """(mean acceleration in W, mean angular velocity in B, mean R_WS, whether there was a value before) and the
        time since it; remembers this one."""
        had = (self.time[rows] >= 0) & ~self.new[rows] & (self.time[rows] < view.time_ns)
        dt = np.where(had, (view.time_ns - self.time[rows]) * 1e-9, 1.0)
        rates = view.state["w_WB_B"][rows]
        a = (velocity - self.velocity[rows]) / dt[:, None]
        w = 0.5 * (rates + self.rates[rows])
        R = 0.5 * (R_WS + self.R_WS[rows])
        self.velocity[rows], self.rates[rows], self.R_WS[rows], self.time[rows] = velocity, rates, R_WS, view.time_ns
        self.dt = dt
        return a, w, R, had


class Imu(SinceLast):
    """Mean specific force and angular rate since the last value, at the sensor's place (lever arm included), with white
    noise, random walk of the biases and turn-on biases."""

    sensor = "imu"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.gravity = loaded.config.world.gravity
        self.bias = np.zeros((loaded.config.shared.vehicles, 6))

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p, m = self.parameters, self.mounted(view, rows)
        a, w, R, had = self.step(view, rows, m.v_WS_W, m.R_WS)
        force = np.einsum("nji,nj->ni", R, a - (0.0, 0.0, self.gravity))
        rates = w @ self.R_BS
        fresh = self.new[rows]
        first = np.concatenate(
            [p.accelerometer_turn_on * noise.vector(BIAS), p.gyro_turn_on * noise.vector(BIAS + 3)], axis=1
        )
        walk = np.concatenate([p.accelerometer_walk * noise.vector(6), p.gyro_walk * noise.vector(9)], axis=1)
        root = np.sqrt(self.dt)[:, None]
        self.bias[rows] = np.where(fresh[:, None], first, self.bias[rows] + walk * root)
        out["force"][rows] = force + self.bias[rows, :3] + p.accelerometer_noise / root * noise.vector(0)
        out["rates"][rows] = rates + self.bias[rows, 3:] + p.gyro_noise / root * noise.vector(3)
        out["valid"][rows] = had


class Navigation(SinceLast):
    """Pose, velocity and acceleration of the body's origin: the truth, for reference."""

    sensor = "navigation"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        state, R = view.state[rows], frames.rotation(view.state["q_WB"][rows])
        velocity = np.einsum("nij,nj->ni", R, state["v_WB_B"])
        a, _, _, had = self.step(view, rows, velocity, R)
        out["p_WB_W"][rows], out["euler"][rows] = state["p_WB_W"], frames.euler(state["q_WB"])
        out["v_WB_W"][rows], out["w_WB_B"][rows], out["a_WB_W"][rows] = velocity, state["w_WB_B"], a
        out["valid"][rows] = had


class Dvl(Emulator):
    """Four Janus beams: velocity over the bottom from at least three that have lock, velocity through the water."""

    sensor = "dvl"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.scene = Scene(loaded)
        p = self.parameters
        azimuth = p.first + np.arange(4) * math.pi / 2.0
        self.beams = np.stack(
            [math.sin(p.angle) * np.cos(azimuth), math.sin(p.angle) * np.sin(azimuth), np.full(4, math.cos(p.angle))],
            axis=1,
        )
        self.solve = {}
        for mask in range(16):
            used = [k for k in range(4) if mask >> k & 1]
            if len(used) >= 3:
                self.solve[mask] = np.zeros((3, 4))
                self.solve[mask][:, used] = np.linalg.pinv(self.beams[used])

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p, m = self.parameters, self.mounted(view, rows)
        directions = np.einsum("nij,kj->nki", m.R_WS, self.beams)
        ranges = self.scene.cast(m.p_WS_W[:, None, :], directions, p.maximum, surface=False)
        lock = np.isfinite(ranges) & (ranges >= p.minimum)
        if p.beam_drop_out > 0.0:
            lock &= np.stack([noise.chance(100 + k) for k in range(4)], axis=1) >= p.beam_drop_out
        lock &= (self.faulty != SensorFault.UNLOCKED)[:, None]
        over = np.einsum("nji,nj->ni", m.R_WS, m.v_WS_W)
        beams = over @ self.beams.T + p.bottom_sigma * np.stack([noise(k) for k in range(4)], axis=1)
        bottom = np.full((len(rows), 3), np.nan)
        masks = lock @ (1 << np.arange(4))
        for mask, inverse in self.solve.items():
            here = masks == mask
            bottom[here] = beams[here] @ inverse.T
        through = view.state["v_FB_B"][rows] + np.cross(view.state["w_WB_B"][rows], self.lever)
        in_S = through @ self.R_BS
        water = in_S @ self.beams.T + p.water_sigma * np.stack([noise(4 + k) for k in range(4)], axis=1)
        out["bottom"][rows], out["water"][rows] = bottom, water @ self.solve[15].T
        out["beams"][rows], out["ranges"][rows] = np.where(lock, beams, np.nan), np.where(lock, ranges, np.nan)
        down = np.where(lock, ranges * directions[:, :, 2], 0.0).sum(axis=1)
        count = lock.sum(axis=1)
        out["altitude"][rows] = np.where(count > 0, down / np.maximum(count, 1), np.nan)
        out["locked"][rows] = count
        out["valid"][rows] = m.p_WS_W[:, 2] > 0.0
