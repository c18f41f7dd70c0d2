"""Attitude and heading reference, and speed log."""

from __future__ import annotations

import numpy as np

from wavesim_emulators.base import Emulator, Noise, Rows
from wavesim_sdk import frames
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot

TILT_SIGMA = np.radians(0.1)
HEADING_SIGMA = np.radians(0.3)
RATE_SIGMA = np.radians(0.02)
SPEED_SIGMA = 0.01  #: m/s


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
