"""Primitive shapes of bodies (box, cylinder, sphere) as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from wavesim_sdk.algebra import norm
from wavesim_world.config.sensors import MAST, MAST_M, InstrumentConfig
from wavesim_world.config.vehicle import Model


@dataclass(frozen=True)
class PrimitiveShape:
    """Primitive shape of a body as numbers: shape code, half sizes (m), radius of the bounding sphere (m), volume (m3),
    full sizes (m).
    """

    code: int
    half_size: tuple[float, float, float]
    bounding_radius: float
    volume: float
    size: tuple[float, float, float]

    @property
    def kind(self) -> str:
        """Name of the primitive shape: box, cylinder or sphere."""
        return ("box", "cylinder", "sphere")[self.code]


def shape_of(model: Model) -> PrimitiveShape:
    """Return the primitive shape of a model."""
    if model.box is not None:
        b = model.box
        half = (b.length / 2, b.width / 2, b.height / 2)
        return PrimitiveShape(0, half, float(norm(half)), b.length * b.width * b.height, (b.length, b.width, b.height))
    if model.cylinder is not None:
        c = model.cylinder
        a = c.length / 2
        volume = math.pi * c.radius * c.radius * c.length
        size = (c.length, 2 * c.radius, 2 * c.radius)
        return PrimitiveShape(1, (a, c.radius, c.radius), float(norm((a, c.radius))), volume, size)
    assert model.sphere is not None
    d = model.sphere.diameter
    return PrimitiveShape(2, (d / 2, d / 2, d / 2), d / 2, math.pi / 6 * (d * d * d), (d, d, d))


def mounted(instrument: InstrumentConfig, model: Model) -> InstrumentConfig:
    """Return an instrument as mounted on a body with this model. If its position is the keyword `mast`, the coordinates
    of the mast top replace it.
    """
    place: object = instrument.parameters.position
    if place != MAST:
        return instrument
    top = shape_of(model).half_size[2] + MAST_M[model.type]
    return replace(instrument, parameters=replace(instrument.parameters, position=(0.0, 0.0, -top)))
