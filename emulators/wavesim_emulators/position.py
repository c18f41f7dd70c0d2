"""Instruments that measure position above the water: satellite navigation and ultra-wideband."""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.base import Batch, CovarianceNoise, Emulator
from wavesim_sdk.algebra import matvec
from wavesim_sdk.arrays import Record
from wavesim_sdk.elementary import atan2, exp, hypot
from wavesim_sdk.geodesy import Origin
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import GpsConfig, UwbConfig


class GpsEmulator(Emulator):
    """Emulator of a satellite receiver: WGS84 position of the antenna. W is the tangent plane of the ellipsoid at the
    origin, so a boat 10 km away is 8 m above the ellipsoid. The value is valid while the antenna is above the water
    surface. Position errors vary slowly (Gauss-Markov), and velocity errors are white.
    """

    sensor = "gps"
    needs_all_bodies = False

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        w = loaded.config.world
        self.origin = Origin(w.latitude, w.longitude)

    def prepare(self, parameters: GpsConfig) -> tuple[CovarianceNoise, CovarianceNoise]:
        return CovarianceNoise(parameters.position_covariance), CovarianceNoise(parameters.velocity_covariance)

    def measure(self, now: Batch, out: Record) -> None:
        p, m = now.parameters, now.mounted
        position, speed = now.prepared
        sigma = np.array([p.hacc, p.hacc, p.vacc]) * (np.sqrt(0.5), np.sqrt(0.5), 1.0)
        keep = exp(-now.since / p.correlation) if p.correlation > 0.0 else np.zeros(len(now))
        keep = np.where(now.fresh, 0.0, keep)[:, None]
        drawn = now.noise.for_purpose("slow error").normals(3)
        if position.factor is None:
            error = keep * out["error_W"] + np.sqrt(1.0 - keep * keep) * sigma * drawn
            accuracy = p.hacc
        else:
            error = keep * out["error_W"] + np.sqrt(1.0 - keep * keep) * matvec(position.factor, drawn)
            accuracy = math.sqrt(p.position_covariance[0] + p.position_covariance[4])
        out["error_W"] = error
        place = m.p_WS_W + error
        latitude, longitude, height = self.origin.geodetic(place)
        velocity = m.v_WS_W + speed.errors(now.noise.normals(3), p.speed_sigma)
        out["latitude"], out["longitude"], out["height"] = latitude, longitude, height
        out["sog"] = hypot(velocity[:, 0], velocity[:, 1])
        out["cog"] = np.mod(atan2(velocity[:, 1], velocity[:, 0]), 2.0 * np.pi)
        out["hdop"], out["hacc"], out["satellites"] = p.hdop, accuracy, p.satellites
        out["valid"] = now.depth < 0.0


class UwbEmulator(Emulator):
    """Emulator of an ultra-wideband receiver: position in W with white noise, valid only while the receiver is above
    the water.
    """

    sensor = "uwb"
    needs_all_bodies = False

    def prepare(self, parameters: UwbConfig) -> CovarianceNoise:
        return CovarianceNoise(parameters.position_covariance)

    def measure(self, now: Batch, out: Record) -> None:
        out["position"] = now.p_WS_W + now.prepared.errors(now.noise.normals(3), now.parameters.sigma)
        out["valid"] = now.depth < 0.0
