"""Pressure, temperature, conductivity and flow as pure functions of position and time.

The module covers analytic models (profile with two knees, Gaussian spots, pressure polynomial), gridded volumes,
measured points and scalar quantities. All functions accept arrays of positions. The server, emulators and user programs
use the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from wavesim_sdk.algebra import dot, interpolate
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import cos, exp, sin
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.world import ConductivityConfig, Current, Gaussian, Spot, TemperatureConfig, World
from wavesim_world.ocean import seawater
from wavesim_world.ocean.sample_files import SeparateSamples, read_sample_files
from wavesim_world.ocean.volume import VOLUME_COLUMNS, ScatteredSamples, VolumeGrid, read_samples, read_volume

Number = TypeVar("Number", float, Floats)

NO_SCALAR = -1.0  #: value of a scalar quantity where it is absent


def pressure(world: World, depth: Floats) -> Floats:
    """Return absolute pressure in dbar: UNESCO 44 for a standard ocean (salinity 35, 0 C), or P0 + P1 z + P2 z^2 if P1
    is configured.
    """
    z = np.asarray(depth, float)
    if world.pressure_1 == 0.0:
        return np.asarray(world.pressure_0 + seawater.pressure(z, world.latitude))
    return np.asarray(world.pressure_0 + z * (world.pressure_1 + z * world.pressure_2))


def depth_of_pressure(world: World, pressure_dbar: Number) -> Number:
    """Return depth in m: the inverse of :func:`pressure`."""
    p, a, b = pressure_dbar - world.pressure_0, world.pressure_2, world.pressure_1
    if b == 0.0:
        return seawater.depth(p, world.latitude)
    if a == 0.0:
        return p / b
    return 2.0 * p / (b + np.sqrt(b * b + 4.0 * a * p))  # type: ignore[no-any-return]  # NumPy: a float gives a float


def two_knee_profile(field: TemperatureConfig | ConductivityConfig, z: Floats) -> Floats:
    """Return the vertical profile with two knees: constant above the first knee, ``gradient_1`` between the knees,
    ``gradient_2`` below.
    """
    first = np.clip(z - field.knee_1, 0.0, max(field.knee_2 - field.knee_1, 0.0))
    return np.asarray(field.surface + field.gradient_1 * first + field.gradient_2 * np.maximum(z - field.knee_2, 0.0))


def spot_deviation(of: Sequence[Spot], p_W: Floats) -> Floats:
    """Return the sum of the Gaussian deviations at positions (..., 3)."""
    total = np.zeros(p_W.shape[:-1])
    for s in of:
        d = (p_W - np.array(s.position)) * np.array([s.alpha, s.beta, s.gamma])
        total += s.deviation * exp(-dot(d, d))
    return total


def gaussian_sum(of: Sequence[Gaussian], p_W: Floats) -> Floats:
    """Return the sum of the Gaussian patches at positions (..., 3). Depth is ignored."""
    total = np.zeros(p_W.shape[:-1])
    for g in of:
        x, y = (p_W[..., 0] - g.north) / g.sigma_north, (p_W[..., 1] - g.east) / g.sigma_east
        total += g.peak * exp(-0.5 * (x * x + y * y))
    return total


def uniform_current(current: Current, time_s: float) -> Floats:
    """Return the uniform current (north, east, down), including its tidal stream, in m/s at the given time."""
    stream = current.tide_amplitude * cos(2 * math.pi * time_s / current.tide_period + current.tide_phase)
    return np.array(
        [
            current.north + stream * cos(current.tide_direction),
            current.east + stream * sin(current.tide_direction),
            current.down,
        ]
    )


class Water:
    """Water properties that a configuration defines. The methods accept positions (..., 3) in frame W."""

    def __init__(self, loaded: LoadedConfig) -> None:
        world = self.world = loaded.config.world
        self.scalar_columns = list(dict.fromkeys(s.column for s in world.scalar if s.column))
        self.volume: VolumeGrid | None = None
        self._measured: VolumeGrid | ScatteredSamples | SeparateSamples | None = None
        if v := world.volume:
            self.volume = read_volume(loaded.data_file(v.file), v.latitude, v.longitude, self.scalar_columns)
            self._measured = self.volume
        if m := world.samples:
            self._measured = (
                read_samples(loaded.data_file(m.file), m.latitude, m.longitude, m.radius, m.power)
                if m.file
                else read_sample_files(loaded, m)
            )

    def pressure(self, p_W: Floats) -> Floats:
        """Return absolute pressure in dbar."""
        return pressure(self.world, np.asarray(p_W)[..., 2])

    def temperature(self, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return temperature in C."""
        if self._measured is not None:
            return np.asarray(self._measured(p_W, time_s)[0])
        field = self.world.temperature
        return two_knee_profile(field, np.asarray(p_W)[..., 2]) + spot_deviation(field.spot, np.asarray(p_W))

    def conductivity(self, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return conductivity in S/m. Measured salinity is converted with temperature and pressure."""
        if self._measured is not None:
            values = self._measured(p_W, time_s)
            return seawater.conductivity(values[1], values[0], self._gauge(p_W))
        field = self.world.conductivity
        return two_knee_profile(field, np.asarray(p_W)[..., 2]) + spot_deviation(field.spot, np.asarray(p_W))

    def salinity(self, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return practical salinity, always computed from temperature, conductivity and pressure."""
        return seawater.salinity(self.conductivity(p_W, time_s), self.temperature(p_W, time_s), self._gauge(p_W))

    def scalar(self, k: int, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return the k-th scalar quantity of the water; -1 above the depth at which it begins."""
        s, p = self.world.scalar[k], np.asarray(p_W, float)
        if s.column:
            assert self.volume is not None  # validation: a column needs a volume
            found = self.volume(p, time_s)[len(VOLUME_COLUMNS) + self.scalar_columns.index(s.column)]
        else:
            found = gaussian_sum(s.gaussian, p)
        return np.where(p[..., 2] >= s.above, found, NO_SCALAR)

    def _gauge(self, p_W: Floats) -> Floats:
        return np.maximum(self.pressure(p_W) - self.world.pressure_0, 0.0)

    def current(self, p_W: Floats, time_s: float) -> Floats:
        """Return the current (..., 3) as north, east, down in m/s, without the random drift, which the server
        publishes.
        """
        p = np.asarray(p_W, float)
        flow = np.broadcast_to(uniform_current(self.world.current, time_s), p.shape).copy()
        layers = self.world.current.layer
        if layers:
            depths = [layer.depth for layer in layers]
            flow[..., 0] += interpolate(p[..., 2], depths, [layer.north for layer in layers])
            flow[..., 1] += interpolate(p[..., 2], depths, [layer.east for layer in layers])
            flow[..., 2] += interpolate(p[..., 2], depths, [layer.down for layer in layers])
        if self.volume is not None:
            values = self.volume(p, time_s)
            for axis, quantity in enumerate(self.volume.flow):
                flow[..., axis] += values[quantity]
        return flow
