"""The paths of a signal to a point, as the medium finds them, for comparisons; compiled."""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import eigenrays, image_paths, rays
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.medium_arrays import MediumTable
from wavesim_server.acoustics.propagation import (
    PropagationPath,
    _ray_points,
    eigenray_search,
    find_bed_eigenrays,
    found_way,
    straight_path,
)
from wavesim_server.acoustics.types import Vector

#: columns of a path
TIME, LAUNCH, ARRIVAL, SPREAD, BOTTOM_LOSS, TURNED, LENGTH, SURFACE, BOTTOM, CAUSTICS = range(10)


@kernel
def find_paths(t: MediumTable, scene: AcousticScene, x: float, y: float, z: float, out: Floats) -> int:
    """Fill in the paths of the first signal to a point, as the medium finds them; return their number."""
    m = a.unpack_medium(t)
    w, signal, point, n = m.water[0], m.signals[0], Vector(x, y, z), 0
    count = 0
    if w.mode == a.ISOVELOCITY:
        for path in range(2 * w.order + 2):
            if path == 1:
                continue
            way = straight_path(m, scene, 0, path, point)
            if path == 0:
                m.points[0, 0], m.points[0, 1], m.points[0, 2] = signal.x, signal.y, signal.z
                m.points[1, 0], m.points[1, 1], m.points[1, 2] = x, y, z
            if way.length == way.length and not (path == 0 and image_paths.is_path_blocked(scene, m.points, 2, True)):
                n = _store(out, n, way, way.length / w.speed)
        return n
    if w.mode != a.VOLUME:
        profile = a.sound_speed_profile(m)
        angles = eigenrays.launch_fan(profile, signal.z, m.fan)
        link = rays.link_in_water(profile, signal.z, z, math.sqrt((x - signal.x) ** 2 + (y - signal.y) ** 2))
        count, _ = eigenrays.find_eigenrays(eigenray_search(m, link), angles)
    if w.uneven != 0 or w.mode == a.VOLUME:
        count, _ = find_bed_eigenrays(m, scene, 0, point, count)
    for k in range(count):
        there, way = found_way(m, scene, 0, k, point)
        found = m.eigenrays[k]
        if there and w.uneven != 0 and found.bed == 0:
            corners = _ray_points(m, 0, 2 * found.reversals + found.down, found.angle, point)
            there = not image_paths.is_path_blocked(scene, m.points, corners, True)
        if there:
            n = _store(out, n, way, found.time)
    return n


@device_function
def _store(out: Floats, n: int, way: PropagationPath, time: float) -> int:
    row = out[n]
    row[TIME], row[LAUNCH], row[ARRIVAL] = time, math.atan2(way.sz, way.sx), math.atan2(way.rz, way.rx)
    row[SPREAD], row[BOTTOM_LOSS], row[TURNED] = way.spreading_loss, way.bottom_loss, way.turned
    row[LENGTH], row[SURFACE], row[BOTTOM], row[CAUSTICS] = way.length, way.surface, way.bottom, way.caustics
    return n + 1
