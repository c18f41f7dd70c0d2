"""Acoustic Doppler current profiler (ADCP): the water's velocity relative to the instrument, cell by cell."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_emulators import ray_kernels
from wavesim_emulators.base import Batch
from wavesim_emulators.ranging import BeamGeometry, RaycastEmulator
from wavesim_sdk.algebra import dot, vecmat
from wavesim_sdk.arrays import Floats, Record
from wavesim_sdk.elementary import cos, sin
from wavesim_world.config import LoadedConfig
from wavesim_world.config.adcp import AdcpConfig as Parameters
from wavesim_world.instruments import adcp_beams
from wavesim_world.ocean.water import Water, uniform_current

#: sampling positions (in cells) and weights of the triangular window, which is two cells wide
# A cell has its greatest weight at its middle, and none at the middles of its neighbours.
PLACES, WEIGHTS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 3.0, np.array([1.0, 2.0, 3.0, 2.0, 1.0]) / 9.0


class AdcpGeometry(NamedTuple):
    """Geometry of a current profiler: parameters, beams in S, cell distances along the axis, cosine of the beam angle,
    noise per beam.
    """

    parameters: Parameters
    beams: BeamGeometry
    middles: Floats
    steep: float
    sigma: float


class AdcpEmulator(RaycastEmulator):
    """Emulator of an ADCP with four beams. In each cell, a beam measures the component of the water velocity along the
    beam. The measured positions on opposite beams are separated by twice the distance of the cell times the tangent of
    the beam angle. The velocity computed from the beams is exact only if the flow is equal at both positions; the error
    velocity reveals any difference.

    A beam measures a cell if bottom, surface and obstacles are beyond the end of the cell along that beam. Side lobes
    interfere beyond a distance that equals the shortest range of all beams times the cosine of the beam angle; the cell
    must also end before this distance. At least three beams are needed.
    """

    sensor = "adcp"

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.water = Water(loaded)
        self.world = loaded.config.world

    def prepare(self, parameters: Parameters) -> AdcpGeometry:
        p = parameters.resolved
        middles = p.blank + p.cell * (1.0 + np.arange(p.cells))
        return AdcpGeometry(
            p,
            BeamGeometry.from_origin(adcp_beams(p)),
            np.asarray(middles, np.float64),
            float(cos(p.angle)),
            p.sigma * float(sin(p.angle)) * math.sqrt(2.0),
        )

    def measure(self, now: Batch, out: Record) -> None:
        profile = now.prepared
        p, m, cells = profile.parameters, now.mounted, profile.parameters.cells
        rays = self.rays(now, profile.beams)
        directions, starts = rays[:, :, ray_kernels.DIRECTION :][:, :, :3], rays[:, :1, : ray_kernels.DIRECTION]
        reach = (profile.middles[-1] + p.cell) / (
            profile.steep * profile.steep
        )  # maximum distance at which side lobes matter for a cell in range
        self.cast(now, rays, reach)
        ranges = rays[:, :, ray_kernels.RANGE]
        slant = profile.middles / profile.steep
        beams = np.zeros((len(now), 4, cells))
        drift = np.array(now.weather["current_W"]) - uniform_current(self.world.current, now.time)
        for place, weight in zip(PLACES, WEIGHTS, strict=True):
            away = slant + place * p.cell / profile.steep
            points = starts[:, :, None] + away[:, None] * directions[:, :, None, :]
            flow = self.water.current(points, now.time) + drift - m.v_WS_W[:, None, None]
            beams += weight * dot(flow, directions[:, :, None, :])
        beams += profile.sigma * now.noise.normals(4 * cells).reshape(-1, 4, cells)
        nearest = profile.steep * ranges.min(axis=1)  # range of the side lobes, which look along the axis
        ends = profile.middles + 0.5 * p.cell
        heard = (ends / profile.steep < ranges[:, :, None]) & (ends / profile.steep < nearest[:, None, None])
        within = profile.middles <= p.range
        x, y, z, error = self._solve(p, profile, beams, heard & within)
        for name, found in (("x", x), ("y", y), ("z", z), ("error", error)):
            out[name] = np.nan
            out[name][:, :cells] = found
        out["ranges"] = np.where(np.isfinite(ranges), ranges, np.nan)
        out["first"], out["cell"], out["good"] = profile.middles[0], p.cell, np.isfinite(x).sum(axis=1)
        out["valid"] = now.depth > 0.0

    @staticmethod
    def _solve(
        p: Parameters, profile: AdcpGeometry, beams: Floats, heard: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the velocity in S and the error velocity (n, cells) from four beams. If only three beams are valid,
        the fourth is assumed to agree with them.
        """
        whole = beams[:, 0] - beams[:, 1] + beams[:, 2] - beams[:, 3]  # opposite beams have the same sum
        count = heard.sum(axis=1)
        filled = beams.copy()
        for k, sign in enumerate((1.0, -1.0, 1.0, -1.0)):
            filled[:, k] = np.where(heard[:, k], beams[:, k], beams[:, k] - sign * whole)
        s, c = float(sin(p.angle)), profile.steep
        ahead, aside = (filled[:, 0] - filled[:, 2]) / (2.0 * s), (filled[:, 1] - filled[:, 3]) / (2.0 * s)
        turn = np.array([[cos(p.first), -sin(p.first)], [sin(p.first), cos(p.first)]])
        level = vecmat(np.stack([ahead, aside], axis=-1), turn.T)
        good = count >= 3
        z = filled.sum(axis=1) / (4.0 * c)
        error = np.where(count == 4, whole / (2.0 * np.sqrt(2.0) * s), np.nan)
        return tuple(np.where(good, v, np.nan) for v in (level[..., 0], level[..., 1], z)) + (error,)  # type: ignore[return-value]
