"""Warnings of `wavesim check` about acoustic settings that have no effect, or not the effect that a user would expect."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.algebra import interpolate, norm
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_world.config import xml
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.ocean.bed import is_uneven, profile_depth
from wavesim_world.ocean.sound import SoundSpeedVolume, sound_speed_on_grid, sound_speed_profile
from wavesim_world.ocean.surface import LEAST_HEIGHT, sea_state
from wavesim_world.ocean.volume import VolumeGrid
from wavesim_world.ocean.water import Water

LEAST_RANGE_ERROR_M = 0.05  #: range error in m, due to the volume, below which there is no warning
#: difference in m/s of the sound speed in a volume that is not used, below which there is no warning
LEAST_DIFFERENCE_M_S = 1.0
#: approximate maximum number of times, and of rows in each direction, for which this difference is computed
MAX_SAMPLES = 9


class NodePlace(NamedTuple):
    """Position of a node at the start or at a waypoint."""

    name: str
    p_W: Floats  #: north, east, down in m


def sound_warnings(loaded: LoadedConfig) -> list[str]:
    """Return warnings about keys that have no effect, about a moving surface that has none, and about a <volume> that
    the sound-speed profile ignores or that does not cover the run.
    """
    return _idle_keys(loaded) + _idle_surface(loaded) + _idle_volume(loaded)


def _idle_keys(loaded: LoadedConfig) -> list[str]:
    """Return a warning for each key of <acoustics> that the sound-speed profile makes ineffective."""
    acoustics, world = loaded.config.acoustics, loaded.config.world
    found = []
    if acoustics.profile != "volume":
        element = xml.parse(loaded.text.encode()).find("acoustics")
        if element is not None and element.get("refinement") is not None:
            found.append(f'`refinement` has no effect with profile="{acoustics.profile}"; use it with profile="volume"')
    elif not acoustics.blocking and is_uneven(world):
        found.append(
            'blocking="no" has no effect on the sea bed with profile="volume": rays are traced over the bed itself, '
            "which always stops or reflects them; only obstacles let sound through"
        )
    return found


def _idle_surface(loaded: LoadedConfig) -> list[str]:
    """Return a warning for each reason why a moving surface has no effect, or an effect that is counted twice."""
    multipath, world = loaded.config.acoustics.multipath, loaded.config.world
    if multipath is None or multipath.surface != "moving":
        return []
    found = []
    if multipath.order == 0:
        found.append('<multipath surface="moving"> has no effect, because order="0" means that there are no echoes')
    if sea_state(world.waves)[0] < LEAST_HEIGHT and world.tide.amplitude == 0.0:
        found.append(
            '<multipath surface="moving"> has no effect, because the sea is flat: add <waves height="..."/> to the world, '
            "unless a command sets the waves during the run"
        )
    if multipath.surface_loss > 0.0:
        found.append(
            '<multipath surface="moving"> scatters sound but keeps its energy, and `surface_loss` then removes a part of '
            "it at each bounce; remove `surface_loss` if it represents the roughness of the sea"
        )
    return found


def _idle_volume(loaded: LoadedConfig) -> list[str]:
    """Return warnings about a <volume> that the sound-speed profile ignores, or that does not cover the run."""
    places = _node_places(loaded)
    if loaded.config.world.volume is None or not places:
        return []
    profile = loaded.config.acoustics.profile
    if profile == "file":  # measured sound speeds
        return []
    water = Water(loaded)
    assert water.volume is not None  # the world has one
    if profile in ("constant", "gradient"):
        return _unused(loaded, water, water.volume)
    if profile == "volume":
        return _uncovered(loaded, water.volume, places)
    try:
        field = sound_speed_on_grid(loaded, water, water.volume)
    except ConfigError:  # too large to trace sound in it, so the warning would suggest what is not possible
        return []
    return _ignored(loaded, water, field, places)


def _unused(loaded: LoadedConfig, water: Water, grid: VolumeGrid) -> list[str]:
    """Warn if the sound speed of a volume varies, but the profile does not use it. A configured gradient may represent
    the dependence on depth. Only part of the grid is examined.
    """
    t, n, e = (max((count - 1) // (MAX_SAMPLES - 1), 1) for count in np.array(grid.values.shape)[[0, 3, 4]])
    part = dataclasses.replace(
        grid,
        times=grid.times[::t],
        values=grid.values[::t, :, :, ::n, ::e],
        filled=grid.filled[::t, :, ::n, ::e],
        spacing=(grid.spacing[0] * n, grid.spacing[1] * e),
    )
    acoustics = loaded.config.acoustics
    coarse = dataclasses.replace(acoustics, refinement=1)
    config = dataclasses.replace(loaded.config, acoustics=coarse)
    try:
        c = sound_speed_on_grid(dataclasses.replace(loaded, config=config), water, part).c
    except ConfigError:  # too many depths to trace sound in it
        return []
    low, high = float(c.min()), float(c.max())
    varies = high - low if acoustics.profile == "constant" else float(np.ptp(c, axis=(0, 2, 3)).max())
    if varies < LEAST_DIFFERENCE_M_S:
        return []
    where = "" if acoustics.profile == "constant" else f", and by up to {varies:.1f} m/s at one depth"
    return [
        f'profile="{acoustics.profile}" ignores the sound speed of the <volume>, which is between {low:.1f} and '
        f'{high:.1f} m/s{where}; to trace sound through this water, use profile="volume"'
    ]


def _node_places(loaded: LoadedConfig) -> list[NodePlace]:
    """Return the positions of all nodes at the start and at their waypoints."""
    found = []
    for b in loaded.config.fleet.bodies:
        if loaded.transducer(b) is not None:
            found.append(NodePlace(b.name, np.array(b.position, float)))
            found += [NodePlace(b.name, np.array([w.north, w.east, w.depth], float)) for w in b.waypoint]
    return found


def _ignored(loaded: LoadedConfig, water: Water, field: SoundSpeedVolume, places: list[NodePlace]) -> list[str]:
    """Return a warning if ranges are wrong because the profile at the origin ignores the sound speeds of the volume."""
    z, c = sound_speed_profile(loaded, water, float(field.depths[-1]))
    assumed = loaded.config.acoustics.sound_speed
    worst, pair = 0.0, ("", "", 0.0)
    share = (np.arange(256)[:, None] + 0.5) / 256
    for one, other in itertools.combinations(_outermost(places), 2):
        line = one.p_W + share * (other.p_W - one.p_W)
        slower = 1.0 / field(line) - 1.0 / interpolate(line[:, 2], z, c)
        length = float(norm(other.p_W - one.p_W))
        error = assumed * length * float(slower.mean())
        if abs(error) > abs(worst):
            worst, pair = error, (one.name, other.name, length)
    if abs(worst) < LEAST_RANGE_ERROR_M:
        return []
    difference, depth = _horizontal_difference(field, places)
    a, b, length = pair
    return [
        f'profile="water" uses the water at the origin everywhere, but the sound speed of the <volume> differs by up to '
        f"{difference:.2f} m/s between positions of the nodes at the same depth ({depth:g} m): ranges between '{a}' "
        f"and '{b}' ({length:.0f} m apart) are wrong by up to {abs(worst):.2f} m; use profile=\"volume\""
    ]


def _outermost(places: list[NodePlace]) -> list[NodePlace]:
    """Return the positions that are outermost in eight horizontal directions."""
    p = np.stack([place.p_W for place in places])
    sides = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
    return [places[k] for k in dict.fromkeys(int((p[:, 0] * n + p[:, 1] * e).argmax()) for n, e in sides)]


def _horizontal_difference(field: SoundSpeedVolume, places: list[NodePlace]) -> tuple[float, float]:
    """Return the largest difference of the sound speed at one depth in m/s, within the rectangle around the node
    positions, and this depth in m.
    """
    p = np.stack([place.p_W for place in places])
    north, east = (np.linspace(p[:, axis].min(), p[:, axis].max(), 33) for axis in (0, 1))
    at = np.stack(np.broadcast_arrays(north[:, None], east[None, :], 0.0), axis=-1)
    found = []
    for depth in field.depths:
        c = field(at + np.array([0.0, 0.0, depth]))
        found.append((float(np.ptp(c)), float(depth)))
    return max(found)


def _uncovered(loaded: LoadedConfig, grid: VolumeGrid, places: list[NodePlace]) -> list[str]:
    """Return warnings about the nodes, depths and times that the volume does not cover."""
    found = _beyond_edge(grid, places)
    bottom, last = profile_depth(loaded), float(grid.depths[-1])
    if bottom > last:
        found.append(
            f"the <volume> ends at a depth of {last:g} m, but the bed is up to {bottom:g} m deep: below that depth, "
            "the deepest values apply"
        )
    end = loaded.config.time.duration
    return found + _after_end(grid, end or math.inf, f"the run lasts {end:g} s" if end else "the run has no end time")


def volume_warnings(grid: VolumeGrid, places: Sequence[NodePlace], time_s: float) -> list[str]:
    """Return warnings if a signal between these positions crosses the edge of the volume, or is emitted after its last
    time.
    """
    return _beyond_edge(grid, places) + _after_end(grid, time_s, f"the emission is at {time_s:g} s")


def _after_end(grid: VolumeGrid, time_s: float, subject: str) -> list[str]:
    until = float(grid.times[-1])
    if len(grid.times) == 1 or time_s <= until:
        return []
    return [f"the <volume> ends at {until:g} s, but {subject}: after that time, the last values apply"]


def _beyond_edge(grid: VolumeGrid, places: Sequence[NodePlace]) -> list[str]:
    found = []
    beyond: dict[str, float] = {}
    for name, p_W in places:
        for axis in (0, 1):
            low = grid.origin[axis]
            high = low + (grid.values.shape[3 + axis] - 1) * grid.spacing[axis]
            outside = max(low - p_W[axis], p_W[axis] - high)
            if outside > 0.0:
                beyond[name] = max(outside, beyond.get(name, 0.0))
    if beyond:
        names = ", ".join(f"'{name}'" for name in list(beyond)[:4]) + (", ..." if len(beyond) > 4 else "")
        found.append(
            f"the <volume> does not contain all positions of {names} (up to {max(beyond.values()):.0f} m outside): "
            "beyond its edge, the sound speed at the edge applies"
        )
    return found
