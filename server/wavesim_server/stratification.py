"""Difference between the buoyancy in stratified water and the buoyancy in water with the world's constant density.

At the pressure p, a hull loses the fraction k p of its volume. Let r be the EOS-80 density at the local temperature,
conductivity and pressure, and let r_0 be the constant density. The buoyancy then changes by the fraction r/r_0 (1 - k
p) - 1. This fraction is updated every half second, together with its change per metre of depth. Between two updates,
the buoyancy therefore varies with the body's depth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_server.occupants import Occupant
from wavesim_world.config import Model
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.world import World
from wavesim_world.ocean import seawater
from wavesim_world.ocean.water import Water

PERIOD_S = 0.5
SPAN_M = 1.0  #: depth interval over which the density gradient is computed


def water_density(water: Water, p_W: Any, time_s: float) -> Floats:
    """Return the density of the water in kg/m3 at positions (..., 3) in W. Above the surface, return the density at the
    surface.
    """
    p = np.array(p_W, float)
    p[..., 2] = np.maximum(p[..., 2], 0.0)
    gauge = np.maximum(water.pressure(p) - water.world.pressure_0, 0.0)
    return np.asarray(seawater.density(water.salinity(p, time_s), water.temperature(p, time_s), gauge))


class Stratification:
    """Computes the displaced volumes of bodies. It writes them to ``volumes``, the buoyancy rows of
    :class:`~wavesim_server.environment.weather.WeatherArrays`.

    In unstratified worlds, the class does nothing.
    """

    def __init__(
        self, world: World, water: Water, fleet: FleetDynamics, occupants: Mapping[int, Occupant], volumes: Floats
    ) -> None:
        self.world, self.water = world, water
        self._fleet, self._occupants, self._volumes = fleet, occupants, volumes
        #: number of ticks between two updates; 0 means that there are no updates
        self.period = max(1, round(PERIOD_S / fleet.step)) if world.is_stratified else 0

    def refresh(self, rows: Sequence[int], time_s: float) -> None:
        """Update the displaced volumes of the bodies in ``rows`` from the density of the water around them."""
        models = {row: self._occupants[row].model for row in rows} if self.period else {}
        mine = [row for row, model in models.items() if model.restoring is None]
        if not mine:
            return
        p_W = np.array([self._fleet.body(row)[B.PX : B.PX + 3] for row in mine])
        p_W = np.where(np.isfinite(p_W), p_W, 0.0)
        here = self._excess_rows(mine, models, p_W, time_s)
        below = self._excess_rows(mine, models, p_W + (0.0, 0.0, SPAN_M), time_s)
        for k, row in enumerate(mine):
            b = models[row].buoyancy
            volume = b.volume if b else shape_of(models[row]).volume
            self._volumes[row] = (
                self.world.density * self.world.gravity * volume,
                *(b.centre if b else (0.0, 0.0, 0.0)),
                here[k],
                (below[k] - here[k]) / SPAN_M,
                p_W[k, 2],
            )

    def _excess_rows(self, rows: Sequence[int], models: Mapping[int, Model], p_W: Floats, time_s: float) -> Floats:
        deep = np.maximum(p_W, (-np.inf, -np.inf, 0.0))
        pressed = np.maximum(self.water.pressure(deep) - self.world.pressure_0, 0.0)
        soft = np.array([b.compressibility if (b := models[row].buoyancy) else 0.0 for row in rows])
        return water_density(self.water, p_W, time_s) / self.world.density * (1.0 - soft * pressed) - 1.0
