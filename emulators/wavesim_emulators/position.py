"""Position above the water: satellites, ultra-wideband."""

from __future__ import annotations

import math

import numpy as np
import pymap3d

from wavesim_emulators.base import Emulator, Noise, Rows
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded

BIAS = 500  #: index of the first draws of the slow errors


class Gps(Emulator):
    """WGS84 position of the antenna; W is the plane that touches the ellipsoid at the origin. Valid while the antenna is
    above the water. Position errors are slow (Gauss-Markov), velocity errors white."""

    sensor = "gps"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        w = loaded.config.world
        self.origin = math.degrees(w.latitude), math.degrees(w.longitude)
        self.error = np.zeros((loaded.config.shared.vehicles, 3))
        self.time = np.zeros(loaded.config.shared.vehicles, np.int64)

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p, m = self.parameters, self.mounted(view, rows)
        sigma = np.array([p.hacc, p.hacc, p.vacc]) * (np.sqrt(0.5), np.sqrt(0.5), 1.0)
        dt = (view.time_ns - self.time[rows]) * 1e-9
        keep = np.exp(-dt / p.correlation)[:, None] if p.correlation > 0.0 else np.zeros((len(rows), 1))
        keep = np.where(self.new[rows, None], 0.0, keep)
        self.error[rows] = keep * self.error[rows] + np.sqrt(1.0 - keep**2) * sigma * noise.vector(0)
        self.time[rows] = view.time_ns
        place = m.p_WS_W + self.error[rows]
        latitude, longitude, _ = pymap3d.ned2geodetic(place[:, 0], place[:, 1], np.zeros(len(rows)), *self.origin, 0.0)
        velocity = m.v_WS_W + p.speed_sigma * noise.vector(3)
        out["latitude"][rows], out["longitude"][rows] = np.radians(latitude), np.radians(longitude)
        out["height"][rows] = -place[:, 2]
        out["sog"][rows] = np.hypot(velocity[:, 0], velocity[:, 1])
        out["cog"][rows] = np.mod(np.arctan2(velocity[:, 1], velocity[:, 0]), 2.0 * np.pi)
        out["hdop"][rows], out["hacc"][rows], out["satellites"][rows] = p.hdop, p.hacc, p.satellites
        out["valid"][rows] = m.p_WS_W[:, 2] < 0.0


class Uwb(Emulator):
    """Position in W with white noise, above the water."""

    sensor = "uwb"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        place = self.mounted(view, rows).p_WS_W
        out["position"][rows] = place + self.parameters.sigma * noise.vector(0)
        out["valid"][rows] = place[:, 2] < 0.0
