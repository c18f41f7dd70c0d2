"""Rays that the medium remembers for each pair of nodes as first guesses for their next signal; compiled. The medium of
the transducers remembers rays in a sound field only, the medium of the hydrophones also rays through layers.

A search for all rays between two points traces hundreds of rays. Between two signals, the nodes move only slightly, so
the rays of the earlier signal are aimed at the new position instead. They are the same rays that a search would find,
to within the tolerance of the aim. A search is repeated if one of the rays is lost, if the nodes have moved too far, or
after a fixed time, because new rays can appear. It is always repeated if no direct ray is known, because a direct ray
that appears would be the first to arrive. Each search also gives the rays in the opposite direction, by reciprocity.

The fronts of a signal follow each other within milliseconds. Rays through layers are therefore refined from front to
front, and searched again after a short time, so that a new ray is missed for that time at most.

The pairs are in a table with a fixed number of rows. Each pair can be stored in one of a few adjacent rows. A new pair
uses an empty row among these, or replaces the least recently used pair.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function
from wavesim_server.acoustics import eigenrays, fans, propagation, rays, waveguides
from wavesim_server.acoustics import medium_arrays as a
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.types import Record, Vector
from wavesim_server.acoustics.volume_rays import RayTarget
from wavesim_server.elementary import asin

REFRESH_S = 60.0  #: simulation time in s after which a search in a sound field is repeated
LAYER_REFRESH_S = 0.2  #: simulation time in s after which a search in layers is repeated
#: relative difference of the launch angles of two rays of the same path below which they count as one ray
SAME_ANGLE = 1e-6
#: total displacement of both nodes after which a search is repeated: as a fraction of the distance between them, and
#: vertically as a fraction of the water depth
RANGE_SHARE, DEPTH_SHARE = 0.05, 0.1
WAYS = 4  #: number of rows in which a pair can be stored


@device_function
def find_eigenrays(m: Medium, scene: AcousticScene, s: int, j: int, point: Vector) -> tuple[int, int]:
    """Find the eigenrays of a signal to a node at a point; ``m.eigenrays`` receives them.

    Returns (number of eigenrays, number of eigenrays that were dropped).
    """
    signal = m.signals[s]
    source, key = Vector(signal.x, signal.y, signal.z), _key(m, signal.source, j)
    row = _row_of(m, key)
    if row >= 0 and _is_fresh(m, row, source, point, signal.emission, REFRESH_S):
        count = _aim_known_rays(m, scene, s, row, point)
        if count >= 0:
            m.pairs[row].used = signal.emission
            return count, int(m.pairs[row].dropped)
    count, dropped = propagation.find_bed_eigenrays(m, scene, s, point, 0)
    if m.pairs.shape[0] > 0:
        back = _key(m, j, signal.source)
        if count <= a.KNOWN_RAYS and _has_direct_ray(m, count):
            _remember(m, key, source, point, signal.emission, count, dropped, False)
            _remember(m, back, point, source, signal.emission, count, dropped, True)
        else:
            _forget(m, row)
            _forget(m, _row_of(m, back))
    return count, dropped


@device_function
def find_layered_eigenrays(m: Medium, s: int, j: int, point: Vector, link: rays.Link, angles: int) -> tuple[int, int]:
    """Find the eigenrays of a signal to a node at a point through layers of water, apart from those that bounce off a bed
    that is not level; ``m.eigenrays`` receives them. ``angles`` is the number of rays in the fan; -1 = not launched yet.

    Returns (number of eigenrays, number of eigenrays that were dropped).
    """
    signal = m.signals[s]
    row = _layered_row(m, s, j, point)
    if row >= 0:
        count = _refine_known_rays(m, row, link)
        if count >= 0:
            m.pairs[row].used = signal.emission
            return count, int(m.pairs[row].dropped)
    launched = angles if angles >= 0 else propagation.launch_angles(m, s)
    count, dropped = eigenrays.find_eigenrays(propagation.eigenray_search(m, link), launched)
    key = _key(m, signal.source, j)
    if count <= a.KNOWN_RAYS:
        source = Vector(signal.x, signal.y, signal.z)
        _remember(m, key, source, point, signal.emission, count, dropped, False)
    else:
        _forget(m, _row_of(m, key))
    return count, dropped


@device_function
def knows_layered_rays(m: Medium, s: int, j: int, point: Vector) -> bool:
    """Return whether the rays of a signal through layers to a node at a point can probably be refined without a search."""
    return _layered_row(m, s, j, point) >= 0


@device_function
def _layered_row(m: Medium, s: int, j: int, point: Vector) -> int:
    """Return the row of a pair whose rays through layers are good first guesses; -1 if there is none."""
    signal = m.signals[s]
    row = _row_of(m, _key(m, signal.source, j))
    source = Vector(signal.x, signal.y, signal.z)
    if row >= 0 and _is_fresh(m, row, source, point, signal.emission, LAYER_REFRESH_S):
        return row
    return -1


@device_function
def _refine_known_rays(m: Medium, row: int, link: rays.Link) -> int:
    """Refine the known rays of a pair for a link; ``m.eigenrays`` receives them. Returns their number, or -1 if a ray is
    lost, has become another kind of ray, or coincides with another one.
    """
    w, ray, count = m.water[0], m.ray[0], int(m.pairs[row].count)
    for k in range(count):
        known, found = m.known_rays[row, k], m.eigenrays[k]
        down, reversals = known.path % 2, known.path // 2
        angle = eigenrays.refine_eigenray(link, known.angle, down == 1, reversals, m.no_points, ray, False)
        if angle != angle or ray.surface + ray.bottom > w.order or (ray.bottom > 0 and w.uneven != 0):
            return -1
        for i in range(k):
            other = m.eigenrays[i]
            if other.down == down and other.reversals == reversals and abs(other.angle - angle) <= SAME_ANGLE * angle:
                return -1
        found.angle, found.down, found.reversals, found.time, found.bed = angle, down, reversals, ray.time, 0
        known.angle = angle
    return count


@device_function
def _has_direct_ray(m: Medium, count: int) -> bool:
    """Return whether one of the found rays has no bounce."""
    direct = 0
    for k in range(count):
        direct += 1 if m.eigenrays[k].bed == 1 else 0
    return direct > 0


@device_function
def _forget(m: Medium, row: int) -> None:
    """Make the rays of a pair too old to be used, if the pair has a row."""
    if row >= 0:
        m.pairs[row].searched = -math.inf


@device_function
def _key(m: Medium, source: int, receiver: int) -> int:
    """Return the number that identifies a pair of nodes; numbers start at 1."""
    return int(source) * m.nodes.shape[0] + receiver + 1


@device_function
def _first_row(m: Medium, key: int) -> int:
    """Return the first of the rows in which a pair can be stored."""
    return key % (m.pairs.shape[0] // WAYS) * WAYS


@device_function
def _row_of(m: Medium, key: int) -> int:
    """Return the row of a pair; -1 if its rays are not known."""
    if m.pairs.shape[0] == 0:
        return -1
    first = _first_row(m, key)
    for row in range(first, first + WAYS):
        if m.pairs[row].key == key:
            return row
    return -1


@device_function
def _is_fresh(m: Medium, row: int, source: Vector, receiver: Vector, time: float, refresh: float) -> bool:
    """Return whether a pair has moved so little, and its search is so recent, that its rays are good first guesses."""
    pair = m.pairs[row]
    if not time - pair.searched <= refresh:
        return False
    ax, ay, az = source.x - pair.ax, source.y - pair.ay, source.z - pair.az
    bx, by, bz = receiver.x - pair.bx, receiver.y - pair.by, receiver.z - pair.bz
    moved = math.sqrt(ax * ax + ay * ay + az * az) + math.sqrt(bx * bx + by * by + bz * bz)
    x, y, z = receiver.x - source.x, receiver.y - source.y, receiver.z - source.z
    distance = math.sqrt(x * x + y * y + z * z)
    return moved <= RANGE_SHARE * distance and abs(az) + abs(bz) <= DEPTH_SHARE * m.water[0].bottom


@device_function
def _aim_known_rays(m: Medium, scene: AcousticScene, s: int, row: int, point: Vector) -> int:
    """Aim the known rays of a pair at a point; ``m.eigenrays`` receives them. Returns their number, or -1 if a ray is
    lost.
    """
    guide, source, receiver = propagation.path_waveguide(m, scene, s, point)
    legs, shot, count = waveguides.legs_view(m.legs), m.shot[0], int(m.pairs[row].count)
    for k in range(count):
        known = m.known_rays[row, k]
        target = RayTarget(receiver, known.path // 2, known.bed - 1)
        guess = propagation.kept_guess(known, known.path)
        if not fans.aim_ray(guide, source, target, guess, False, legs, m.no_points, shot):
            return -1
        if shot.reversals > eigenrays.REVERSALS or fans.is_known(guide, m.eigenrays, k, shot):
            return -1  # two rays have become one
        ray = m.eigenrays[k]
        fans.store_eigenray(ray, asin(min(abs(shot.sz), 1.0)), shot)
        _store_ray(known, ray)
    return count


@device_function
def _store_ray(known: Record, ray: Record) -> None:
    """Store an eigenray as a known ray."""
    propagation.keep_direction(known, ray)
    known.angle = ray.angle
    known.path, known.bed = 2 * ray.reversals + ray.down, ray.bed


@device_function
def _remember(
    m: Medium, key: int, source: Vector, receiver: Vector, time: float, count: int, dropped: int, reverse: bool
) -> None:
    """Remember the rays in ``m.eigenrays`` for a pair, in their own or in the reverse direction."""
    row = _row_of(m, key)
    if row < 0:
        first = _first_row(m, key)
        row = first
        for other in range(first, first + WAYS):
            if m.pairs[other].key == 0:
                row = other
                break
            if m.pairs[other].used < m.pairs[row].used:
                row = other
    pair = m.pairs[row]
    pair.key, pair.searched, pair.used, pair.count, pair.dropped = key, time, time, count, dropped
    pair.ax, pair.ay, pair.az = source.x, source.y, source.z
    pair.bx, pair.by, pair.bz = receiver.x, receiver.y, receiver.z
    for k in range(count):
        ray = m.eigenrays[k]
        known = m.known_rays[row, k]
        _store_ray(known, ray)
        if reverse:
            known.sx, known.sy, known.path = -ray.rx, -ray.ry, 2 * ray.reversals + (1 if ray.rz < 0.0 else 0)
            known.down_x = known.down_y = known.down_z = known.side_x = known.side_y = known.side_z = 0.0
