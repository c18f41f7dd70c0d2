"""Compiled kernels for the distance between convex bodies: boxes, cylinders along their x axis, points (centres of
spheres), and triangles.

Each body is a core that is rounded by a margin. The algorithm of Gilbert, Johnson & Keerthi (1988) computes the
distance between the cores. The arguments that describe a body are a code, three half sizes and a pose. The pose is one
array of 12 numbers: the position (3) and R_WB in row-major order (9). For a triangle, the corners (in W, relative to
its centre) replace R_WB, and the first half size is the bounding radius.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats

BOX, CYLINDER, SPHERE, TRIANGLE = 0, 1, 2, 3
#: columns of a geometry: code, half sizes of the core (3), margin by which it is rounded, and pose (12)
SHAPE_CODE, CORE, CORE_MARGIN, POSE = 0, 1, 4, 5
HALF_X, HALF_Y, HALF_Z = range(CORE, CORE + 3)
RADIUS = HALF_X  # of a triangle, around its centre
X, Y, Z = range(POSE, POSE + 3)  # in W
ROTATION = POSE + 3  # R_WB, row by row
R11, R12, R13, R21, R22, R23, R31, R32, R33 = range(ROTATION, ROTATION + 9)
CORNERS = ROTATION  # of a triangle, relative to its centre, in W
GEOMETRY = POSE + 12
MAX_FEATURES = 8  #: maximum number of feature points of a body


@always_inline
def to_body(g: Floats, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Rotate a vector from W to body axes."""
    return (
        g[R11] * x + g[R21] * y + g[R31] * z,
        g[R12] * x + g[R22] * y + g[R32] * z,
        g[R13] * x + g[R23] * y + g[R33] * z,
    )


@always_inline
def triangle_corner(g: Floats, k: int) -> tuple[float, float, float]:
    """Return corner k of a triangle, relative to its centre."""
    first = CORNERS + 3 * k
    return g[first], g[first + 1], g[first + 2]


@always_inline
def _set_to_world(g: Floats, x: float, y: float, z: float, out: Floats) -> None:
    """Convert the point (x, y, z) from the axes of a body to W, and write it to ``out``."""
    out[0] = g[X] + g[R11] * x + g[R12] * y + g[R13] * z
    out[1] = g[Y] + g[R21] * x + g[R22] * y + g[R23] * z
    out[2] = g[Z] + g[R31] * x + g[R32] * y + g[R33] * z


@always_inline
def _set_to_corner(g: Floats, k: int, out: Floats) -> None:
    x, y, z = triangle_corner(g, k)
    out[0], out[1], out[2] = g[X] + x, g[Y] + y, g[Z] + z


@device_function
def support_point(g: Floats, dx: float, dy: float, dz: float, out: Floats) -> None:
    """Fill in the point of a core that is farthest in a direction given in W."""
    if g[SHAPE_CODE] == TRIANGLE:
        best, farthest = -math.inf, 0
        for k in range(3):
            x, y, z = triangle_corner(g, k)
            along = x * dx + y * dy + z * dz
            if along > best:
                best, farthest = along, k
        _set_to_corner(g, farthest, out)
        return
    bx, by, bz = to_body(g, dx, dy, dz)
    if g[SHAPE_CODE] == BOX:
        x = math.copysign(g[HALF_X], bx)
        y = math.copysign(g[HALF_Y], by)
        z = math.copysign(g[HALF_Z], bz)
    elif g[SHAPE_CODE] == CYLINDER:
        x = math.copysign(g[HALF_X], bx)
        across = math.sqrt(by * by + bz * bz)
        y, z = (g[HALF_Y] * by / across, g[HALF_Y] * bz / across) if across > 1e-12 else (0.0, 0.0)
    else:
        x = y = z = 0.0
    _set_to_world(g, x, y, z, out)


@device_function
def feature_point(g: Floats, i: int, dx: float, dy: float, dz: float, out: Floats) -> None:
    """Fill in point i of the eight points that represent a flat or straight side facing a direction in W.

    For a box, the points are its corners. For a cylinder, they are the foremost point and three more points on both
    rims. For a sphere, they are its centre, and for a triangle, its corners.
    """
    if g[SHAPE_CODE] == TRIANGLE:
        _set_to_corner(g, i % 3, out)
        return
    if g[SHAPE_CODE] == BOX:
        x = g[HALF_X] if i & 1 else -g[HALF_X]
        y = g[HALF_Y] if i & 2 else -g[HALF_Y]
        z = g[HALF_Z] if i & 4 else -g[HALF_Z]
    elif g[SHAPE_CODE] == CYLINDER:
        _, by, bz = to_body(g, dx, dy, dz)
        across = math.sqrt(by * by + bz * bz)
        by, bz = (by / across, bz / across) if across > 1e-9 else (1.0, 0.0)
        x = g[HALF_X] if i & 1 else -g[HALF_X]
        quarter = i // 2
        y, z = by, bz
        if quarter == 1:
            y, z = -bz, by
        elif quarter == 2:
            y, z = bz, -by
        elif quarter == 3:
            y, z = -by, -bz
        y, z = g[HALF_Y] * y, g[HALF_Y] * z
    else:
        x = y = z = 0.0
    _set_to_world(g, x, y, z, out)


@device_function
def feature_count(g: Floats) -> int:
    """Return the number of feature points of a body."""
    return 3 if g[SHAPE_CODE] == TRIANGLE else 0 if g[SHAPE_CODE] == SPHERE else MAX_FEATURES


@device_function
def triangle_normal(g: Floats) -> tuple[float, float, float]:
    """Return the unit normal of a triangle."""
    (x0, y0, z0), (x1, y1, z1), (x2, y2, z2) = triangle_corner(g, 0), triangle_corner(g, 1), triangle_corner(g, 2)
    ax, ay, az = x1 - x0, y1 - y0, z1 - z0
    bx, by, bz = x2 - x0, y2 - y0, z2 - z0
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    s = math.sqrt(nx * nx + ny * ny + nz * nz)
    return nx / s, ny / s, nz / s


@device_function
def is_over_triangle(g: Floats, dx: float, dy: float, dz: float, hair: float) -> bool:
    """Return whether a point, given relative to a triangle's centre, projects onto the triangle or onto a point within
    ``hair`` of its edges.
    """
    nx, ny, nz = triangle_normal(g)
    for k in range(3):
        (ax, ay, az), (bx, by, bz) = triangle_corner(g, k), triangle_corner(g, (k + 1) % 3)
        ex, ey, ez = bx - ax, by - ay, bz - az
        px, py, pz = dx - ax, dy - ay, dz - az
        inside = nx * (ey * pz - ez * py) + ny * (ez * px - ex * pz) + nz * (ex * py - ey * px)
        if inside < -hair * math.sqrt(ex * ex + ey * ey + ez * ez):
            return False
    return True


@device_function
def _nearest_of_simplex(s: Floats, n: int, weights: Floats, trial: Floats) -> float:
    """Find the point of a simplex (rows 0..n-1 of s) that is nearest to the origin. Compute the weights of this point,
    and return its squared distance.

    A face is a vertex, an edge, a triangle, or the whole tetrahedron. For each face, the function finds the point
    nearest to the origin, ignoring the borders of the face. The face is a candidate if this point has no
    negative weight. The result is the nearest of the candidates.
    """
    best = math.inf
    for mask in range(1, 1 << n):
        count = first = 0
        index0 = index1 = index2 = index3 = -1
        for i in range(n):
            if mask >> i & 1:
                if count == 0:
                    index0 = first = i
                elif count == 1:
                    index1 = i
                elif count == 2:
                    index2 = i
                else:
                    index3 = i
                count += 1
        for i in range(4):
            trial[i] = 0.0
        o = s[first]
        if count == 1:
            trial[index0] = 1.0
        elif count == 2:
            a0, a1, a2 = s[index1, 0] - o[0], s[index1, 1] - o[1], s[index1, 2] - o[2]
            square = a0 * a0 + a1 * a1 + a2 * a2
            if square < 1e-30:
                continue
            t = -(a0 * o[0] + a1 * o[1] + a2 * o[2]) / square
            trial[index0], trial[index1] = 1.0 - t, t
        else:
            ax, ay, az = s[index1, 0] - o[0], s[index1, 1] - o[1], s[index1, 2] - o[2]
            bx, by, bz = s[index2, 0] - o[0], s[index2, 1] - o[1], s[index2, 2] - o[2]
            if count == 3:
                aa, ab, bb = ax * ax + ay * ay + az * az, ax * bx + ay * by + az * bz, bx * bx + by * by + bz * bz
                ao, bo = -(ax * o[0] + ay * o[1] + az * o[2]), -(bx * o[0] + by * o[1] + bz * o[2])
                det = aa * bb - ab * ab
                if det < 1e-14 * aa * bb or det <= 0.0:
                    continue
                t, u = (ao * bb - bo * ab) / det, (bo * aa - ao * ab) / det
                trial[index0], trial[index1], trial[index2] = 1.0 - t - u, t, u
            else:
                cx, cy, cz = s[index3, 0] - o[0], s[index3, 1] - o[1], s[index3, 2] - o[2]
                nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
                det = ax * nx + ay * ny + az * nz
                if abs(det) < 1e-24:
                    continue
                ox, oy, oz = -o[0], -o[1], -o[2]
                t = (ox * nx + oy * ny + oz * nz) / det
                mx, my, mz = oy * cz - oz * cy, oz * cx - ox * cz, ox * cy - oy * cx
                u = (ax * mx + ay * my + az * mz) / det
                qx, qy, qz = by * oz - bz * oy, bz * ox - bx * oz, bx * oy - by * ox
                v = (ax * qx + ay * qy + az * qz) / det
                trial[index0], trial[index1], trial[index2], trial[index3] = 1.0 - t - u - v, t, u, v
        if min(trial[0], trial[1], trial[2], trial[3]) < 0.0:
            continue
        px = py = pz = 0.0
        for i in range(n):
            px += trial[i] * s[i, 0]
            py += trial[i] * s[i, 1]
            pz += trial[i] * s[i, 2]
        distance = px * px + py * py + pz * pz
        if distance < best:
            best = distance
            for i in range(4):
                weights[i] = trial[i]
    return best


@device_function
def distance(ga: Floats, gb: Floats, work: Floats, pa: Floats, pb: Floats) -> float:
    """Return the distance between two cores, and fill in their nearest points. If the cores overlap, the distance is 0
    and the points are not unique.

    ``work`` is a scratch array (16, 3).
    """
    s, on_a, on_b = work[0:4], work[4:8], work[8:12]
    weights, trial = work[12:14].ravel(), work[14:16].ravel()
    d = pa  # direction from b to a, kept in the output until the end
    vx, vy, vz = ga[X] - gb[X], ga[Y] - gb[Y], ga[Z] - gb[Z]
    if vx * vx + vy * vy + vz * vz < 1e-18:
        vx = 1.0
    n, square = 0, math.inf
    for _ in range(40):
        support_point(ga, -vx, -vy, -vz, on_a[n])
        support_point(gb, vx, vy, vz, on_b[n])
        for i in range(3):
            s[n, i] = on_a[n, i] - on_b[n, i]
        # no point of the difference is farther towards the origin: v is the nearest
        if n and square - (vx * s[n, 0] + vy * s[n, 1] + vz * s[n, 2]) <= 1e-10 * square + 1e-18:
            break
        square = _nearest_of_simplex(s, n + 1, weights, trial)
        kept = 0
        vx = vy = vz = 0.0
        for i in range(n + 1):
            if weights[i] > 0.0:
                for k in range(3):
                    s[kept, k], on_a[kept, k], on_b[kept, k] = s[i, k], on_a[i, k], on_b[i, k]
                weights[kept] = weights[i]
                vx += weights[kept] * s[kept, 0]
                vy += weights[kept] * s[kept, 1]
                vz += weights[kept] * s[kept, 2]
                kept += 1
        n = kept
        if square < 1e-16 or n == 4:
            return 0.0
    for k in range(3):
        a = b = 0.0
        for i in range(n):
            a += weights[i] * on_a[i, k]
            b += weights[i] * on_b[i, k]
        d[k], pb[k] = a, b
    return math.sqrt(square)
