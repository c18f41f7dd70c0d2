"""Compiled search for all arrivals of a signal at one node, outside a simulation.

The search calls the same functions as the medium to find paths, compute their losses and test them for obstacles. Its
results therefore agree with those of a simulation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.tables import Table, integer, value
from wavesim_server.acoustics import eigenrays, image_paths, rays
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.medium_arrays import Medium, MediumTable
from wavesim_server.acoustics.propagation import (
    PropagationPath,
    eigenray_search,
    find_bed_eigenrays,
    keep_direction,
    path_points,
    reflected_path,
    refracted_path,
    straight_path,
    travel_time,
)
from wavesim_server.acoustics.reception import level_of, spreading_loss
from wavesim_server.acoustics.sound_field import speed_at
from wavesim_server.acoustics.transducer_motion import TickInterval
from wavesim_server.acoustics.types import Records, Vector

FOUND_PATH = Table(
    "found path",
    "A path of a signal to a node.",
    "medium",
    (
        value("time", "s", "Travel time."),
        value("length", "m", "Length along the path."),
        value("loss", "dB", "Transmission loss: spreading, absorption and bounces, without beam patterns."),
        value("spreading", "dB", "Spreading loss."),
        value("absorption", "dB", "Absorption along the path."),
        value("surface_loss", "dB", "Loss of all bounces off the surface."),
        value("bottom_loss", "dB", "Loss of all bounces off the bottom."),
        value("phase", "rad", "Phase from bounces and caustics, for pressures that vary as exp(+i w t)."),
        value("sx", "", "Direction of the path at the source, W."),
        value("sy", "", ""),
        value("sz", "", ""),
        value("rx", "", "Direction of the path at the node, in the world frame W."),
        value("ry", "", ""),
        value("rz", "", ""),
        integer("surface", "", "Bounces off the surface."),
        integer("bottom", "", "Bounces off the bottom."),
        integer("turns", "", "Turning points."),
        integer("caustics", "", "Caustics passed."),
        integer("blocker", "", "Row of the obstacle that blocks the path, or a result of image_paths.find_blocker."),
        integer("points", "", "Number of points along the path."),
    ),
)


#: indices of the counts: paths, points along these paths, and dropped paths
PATHS, POINTS, DROPPED = range(3)


class PathResults(NamedTuple):
    """Results of a search: the paths as FOUND_PATH records, the points (n, 3) along these paths, one path after the
    other, and the counts (3,). If a count exceeds the length of its array, the array contains only the first results.
    """

    found: Records
    track: Floats
    counts: Ints


@device_function
def _add_path(
    m: Medium, scene: AcousticScene, way: PropagationPath, travel: float, turns: int, results: PathResults
) -> None:
    """Append a path of signal 0 to node 0 to the results. Candidate 0 identifies the path."""
    signal, place, w = m.signals[0], m.places[0, 0], m.water[0]
    count = path_points(m, scene, 0, 0, Vector(place.x, place.y, place.z))
    n, first = results.counts[PATHS], results.counts[POINTS]
    results.counts[PATHS], results.counts[POINTS] = n + 1, first + count
    if first + count <= results.track.shape[0]:
        for k in range(count):
            for i in range(3):
                results.track[first + k, i] = m.points[k, i]
    if n >= results.found.shape[0]:
        return
    row = results.found[n]
    row.time, row.length, row.points = travel, way.length, count
    row.sx, row.sy, row.sz, row.rx, row.ry, row.rz = way.sx, way.sy, way.sz, way.rx, way.ry, way.rz
    row.surface, row.bottom, row.turns, row.caustics = way.surface, way.bottom, turns, way.caustics
    row.phase = math.pi * way.surface + 0.5 * math.pi * way.caustics + way.turned
    row.spreading = way.spreading_loss if way.spreading_loss >= 0.0 else spreading_loss(way.length, w.spreading)
    row.absorption, row.bottom_loss = signal.absorption * max(way.length, 1.0), way.bottom_loss
    time = signal.emission + travel
    row.loss = signal.source_level - level_of(m, 0, 0, way, TickInterval(0, time, time), time)
    rest = row.loss - row.spreading - row.absorption - row.bottom_loss
    row.surface_loss = max(rest, 0.0) if way.surface > 0 else 0.0
    row.blocker = image_paths.NOT_BLOCKED
    if w.blocking != 0:
        row.blocker = image_paths.BLOCKED_BY_BED
        if count > 0:
            row.blocker = image_paths.find_blocker(scene, m.points, count, m.candidates[0].bed == 0)


@kernel
def find_paths(t: MediumTable, scene: AcousticScene, results: PathResults) -> int:
    """Find all paths of signal 0 to node 0, and return their number."""
    m = a.unpack_medium(t)
    signal, place, candidate, w = m.signals[0], m.places[0, 0], m.candidates[0], m.water[0]
    point, counts = Vector(place.x, place.y, place.z), results.counts
    counts[PATHS] = counts[POINTS] = counts[DROPPED] = 0
    candidate.path, candidate.bed = 0, 0
    dx, dy = point.x - signal.x, point.y - signal.y
    across = math.sqrt(dx * dx + dy * dy)
    if w.mode == a.ISOVELOCITY:
        for path in range(2 * w.order + 2):
            if path == 1:
                continue  # paths without bounces have the index 0 only
            way = straight_path(m, scene, 0, path, point)
            if way.length == way.length:
                candidate.path = path
                _add_path(m, scene, way, way.length / w.speed, 0, results)
    elif w.mode == a.GRADIENT:
        if rays.gradient_arc(w.speed, w.gradient, w.bottom, signal.z, point.z, across, m.ray[0]):
            way = refracted_path(m, 0, 0, point)
            turned = m.ray[0].sin_source * m.ray[0].sin_receiver < 0.0
            _add_path(m, scene, way, m.ray[0].time, 1 if turned else 0, results)
    else:
        link = rays.link_in_water(a.sound_speed_profile(m), signal.z, point.z, across)
        count = 0
        if w.mode == a.RAYS:
            angles = eigenrays.launch_fan(link.profile, link.source, m.fan)
            count, counts[DROPPED] = eigenrays.find_eigenrays(eigenray_search(m, link), angles)
        if w.uneven != 0 or w.mode == a.VOLUME:
            count, more = find_bed_eigenrays(m, scene, 0, point, count)
            counts[DROPPED] += more
        for k in range(count):
            ray, kept = m.eigenrays[k], m.kept_rays[0]
            candidate.path, candidate.bed = 2 * ray.reversals + ray.down, ray.bed
            kept.angle, kept.travel = ray.angle, ray.time
            keep_direction(kept, ray)
            travel = travel_time(m, scene, 0, 0, point, True)
            if travel == travel:
                path = a.to_row(candidate.path)
                way = reflected_path(m, 0, point) if candidate.bed else refracted_path(m, 0, path, point)
                _add_path(m, scene, way, travel, path // 2 - way.surface - way.bottom, results)
    return int(counts[PATHS])


@kernel
def fill_speeds(t: MediumTable, time: float, points: Floats, speeds: Floats) -> int:
    """Write the sound speeds of a medium's sound field at points (n, 3) to ``speeds``; return the number of points."""
    field = a.sound_field(a.unpack_medium(t), time)
    for k in range(points.shape[0]):
        speeds[k] = speed_at(field, Vector(points[k, 0], points[k, 1], points[k, 2]))
    return int(points.shape[0])
