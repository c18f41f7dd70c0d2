"""Transmission loss in a vertical or a horizontal plane, by fans of rays.

    from wavesim_server.acoustics import loss_planes
    plane = loss_planes.VerticalPlane(bearing=0.0, ranges=numpy.linspace(10.0, 5e3, 500), depths=numpy.linspace(0.0, 100.0, 101))
    loss = loss_planes.transmission_loss(loaded, (0.0, 0.0, 20.0), plane)

:mod:`wavesim_server.acoustics.ray_fan` contains the method and its limits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import asinh, atan2, cos, exp, hypot, log10, sin
from wavesim_sdk.errors import InvalidArgument
from wavesim_server.acoustics import ray_fan, volume_rays
from wavesim_server.acoustics.propagation_model import Position, PropagationModel
from wavesim_server.acoustics.waveguides import MAX_LEGS
from wavesim_world.config import LoadedConfig

__all__ = [
    "HorizontalPlane",
    "VerticalPlane",
    "check_in_water",
    "horizontal_plane",
    "transmission_loss",
    "vertical_plane",
]

RAYS = 1500  #: number of rays in a fan, before it is refined
FLAT = 0.15  #: launch angle in rad above which the steps between the rays of a fan grow
BEARINGS = 180  #: number of fans of a horizontal plane in water that changes with the direction
MAX_RANGE = 1e6  #: maximum extent of a plane in m
MAX_LOSS_DB = 250.0  #: loss where no sound arrives


class VerticalPlane(NamedTuple):
    """A grid of ranges from the source and depths (m, both ascending in equal steps), at a bearing (rad, clockwise from
    north).
    """

    bearing: float
    ranges: Floats
    depths: Floats


class HorizontalPlane(NamedTuple):
    """A grid of positions north and east (m) at one depth (m)."""

    depth: float
    north: Floats
    east: Floats


def vertical_plane(
    model: PropagationModel, source: Position, bearing: float, reach: float, shape: tuple[int, int]
) -> VerticalPlane:
    """Return the vertical plane from a source to the range ``reach`` (m) and to the deepest point of the bed, with a
    number of depths and a number of ranges.
    """
    ranges = np.linspace(reach / shape[1], reach, shape[1])
    bed = model.bed_depth(source[0] + ranges * cos(bearing), source[1] + ranges * sin(bearing))
    deepest = float(np.nanmax(bed)) if np.isfinite(bed).any() else 0.0
    return VerticalPlane(bearing, ranges, np.linspace(0.0, max(deepest, float(source[2]), 1.0), shape[0]))


def horizontal_plane(source: Position, depth: float, reach: float, shape: tuple[int, int]) -> HorizontalPlane:
    """Return the horizontal plane at the given depth. It extends ``reach`` (m) to each side of a source."""
    north, east = (np.linspace(-reach, reach, n) + at for n, at in zip(shape, source, strict=False))
    return HorizontalPlane(depth, north, east)


def check_in_water(model: PropagationModel, plane: HorizontalPlane) -> None:
    """Raise InvalidArgument if no point of a horizontal plane is in the water."""
    n, e = np.broadcast_arrays(np.asarray(plane.north)[:, None], np.asarray(plane.east)[None, :])
    if not plane.depth >= 0.0:
        raise InvalidArgument(f"a plane cannot be {-plane.depth:.6g} m above the surface; use a depth from 0 m")
    bed = model.bed_depth(n, e)
    deepest = float(np.max(bed, initial=0.0, where=np.isfinite(bed)))
    if plane.depth > deepest:
        raise InvalidArgument(
            f"the plane at a depth of {plane.depth:.6g} m contains no water; use a depth from 0 to {deepest:.6g} m"
        )


def transmission_loss(
    loaded: LoadedConfig | PropagationModel,
    source: Position,
    plane: VerticalPlane | HorizontalPlane,
    time_s: float = 0.0,
    frequency: float | None = None,
    coherent: bool = False,
    bounces: int | None = None,
) -> Floats:
    """Return the transmission loss in dB in a plane: an array (depths, ranges) or (north, east).

    The loss is NaN outside the water, and MAX_LOSS_DB where no sound arrives. ``bounces`` is the maximum number of
    bounces of a path (default: from the configuration). By default, the powers of all paths are added; with
    ``coherent``, their pressures are added with their phases. Raises InvalidArgument if the source is outside the water
    or the plane is invalid.
    """
    model = loaded if isinstance(loaded, PropagationModel) else PropagationModel(loaded)
    start = model.check_position(source, "the source")
    model.prepare_signal(start, time_s, frequency)
    most = int(model.medium.water[0].order) if bounces is None else int(bounces)
    if not 0 <= most < MAX_LEGS:
        raise InvalidArgument(f"invalid number of bounces {most}: use 0 to {MAX_LEGS - 1}")
    if isinstance(plane, VerticalPlane):
        ranges, depths = _ascending(plane.ranges, "ranges"), _ascending(plane.depths, "depths")
        if ranges[0] <= 0.0:
            raise InvalidArgument("the ranges of a plane must be greater than 0 m")
        loss = _fan_loss(model, plane.bearing, ranges, depths, most, coherent)
        n, e = start[0] + ranges * cos(plane.bearing), start[1] + ranges * sin(plane.bearing)
        in_water = (depths[:, None] >= 0.0) & (depths[:, None] <= model.bed_depth(n, e))
        return np.where(in_water, loss, np.nan)
    return _horizontal(model, start, plane, most, coherent)


def _ascending(values: Floats, name: str) -> Floats:
    found = np.asarray(values, float)
    if found.ndim != 1 or len(found) < 2 or not np.isfinite(found).all() or (np.diff(found) <= 0.0).any():
        raise InvalidArgument(f"the {name} of a plane must be at least two ascending numbers in m")
    return found


def launch_angles(count: int = RAYS) -> Floats:
    """Return ascending launch angles from straight up to straight down; the steps grow above `FLAT`."""
    u = np.linspace(-1.0, 1.0, count) * float(asinh(np.array(1.5705 / FLAT)))
    return np.asarray(0.5 * FLAT * (exp(u) - exp(-u)))


def _fan_loss(
    model: PropagationModel, bearing: float, ranges: Floats, depths: Floats, bounces: int, coherent: bool
) -> Floats:
    """Return the loss in dB at the depths (equal steps) and ranges of a vertical plane."""
    step = float(depths[1] - depths[0]) if len(depths) > 1 else 1.0
    if np.abs(np.diff(depths) - step).max(initial=0.0) > 1e-6 * step:
        raise InvalidArgument("the depths of a vertical plane must have equal steps")
    plan = ray_fan.FanPlan(
        float(cos(bearing)), float(sin(bearing)), launch_angles(), ranges, float(depths[0]), step, bounces
    )
    slots = ray_fan.HALVINGS + 2
    fan = ray_fan.FanRays(
        np.zeros((slots, len(ranges), ray_fan.STATES)),
        np.zeros((slots, MAX_LEGS, 2)),
        np.zeros((slots, 3)),
        np.zeros((max(volume_rays.DENSE_TRACK, len(model.medium.points)), 3)),
    )
    field = np.zeros((3, len(depths), len(ranges)))
    ray_fan.add_fan(model.table, model.scene, plan, fan, field)
    square = field[1] * field[1] + field[2] * field[2] if coherent else field[0]
    return np.asarray(np.minimum(-10.0 * log10(np.maximum(square, 1e-300)), MAX_LOSS_DB))


def _horizontal(model: PropagationModel, start: Floats, plane: HorizontalPlane, bounces: int, coherent: bool) -> Floats:
    """Return the loss on a horizontal plane, interpolated between fans at equal steps of the bearing."""
    north, east = _ascending(plane.north, "north coordinates"), _ascending(plane.east, "east coordinates")
    check_in_water(model, plane)
    dx, dy = north[:, None] - start[0], east[None, :] - start[1]
    far = hypot(dx, dy)
    step = min(float(np.diff(north).min()), float(np.diff(east).min()))
    ranges = np.arange(step, float(far.max()) + 1.5 * step, step)
    depths = np.array([float(plane.depth)])
    along = np.clip(far / step - 1.0, 0.0, len(ranges) - 1.001)
    k, u = along.astype(int), along - along.astype(int)
    if model.same_in_all_directions:
        one = _fan_loss(model, 0.0, ranges, depths, bounces, coherent)[0]
        loss = one[k] + u * (one[k + 1] - one[k])
    else:
        angle = 2.0 * math.pi / BEARINGS
        fans = np.array([_fan_loss(model, b * angle, ranges, depths, bounces, coherent)[0] for b in range(BEARINGS)])
        turn = atan2(dy, dx) % (2.0 * math.pi) / angle
        b = turn.astype(int) % BEARINGS
        v, c = turn - np.floor(turn), (b + 1) % BEARINGS
        loss = (1.0 - v) * (fans[b, k] + u * (fans[b, k + 1] - fans[b, k]))
        loss = loss + v * (fans[c, k] + u * (fans[c, k + 1] - fans[c, k]))
    n, e = np.broadcast_arrays(north[:, None], east[None, :])
    return np.where(model.bed_depth(n, e) >= plane.depth, loss, np.nan)
