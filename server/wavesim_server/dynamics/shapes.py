"""Distance between convex bodies, compiled: boxes, cylinders along their x axis, points (spheres' centres), triangles.

Each body is a core and a margin by which it is rounded; the distance is between cores, by the algorithm of
Gilbert, Johnson & Keerthi (1988).  A body is described by (code, three half sizes, pose): the pose holds its
place (3) and R_WB by rows (9) as one array of 12 numbers.  A triangle has its corners, in W from its middle, in
the place of R_WB, and the radius around its middle as its first half size.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb

_njit = nb.njit(cache=True, error_model="numpy")
BOX, CYLINDER, SPHERE, TRIANGLE = 0, 1, 2, 3
#: rows of a geometry: code, half sizes of the core (3), margin, pose (12)
CODE, CORE, ROUND, POSE = 0, 1, 4, 5
GEOMETRY = 17
POINTS = 8  #: feature points of a body


@_njit
def support(g: Any, dx: float, dy: float, dz: float, out: Any) -> None:
    """The point of a core that lies farthest along a direction of W."""
    if g[CODE] == TRIANGLE:
        best, at = -math.inf, 8
        for k in range(8, GEOMETRY, 3):
            along = g[k] * dx + g[k + 1] * dy + g[k + 2] * dz
            if along > best:
                best, at = along, k
        out[0], out[1], out[2] = g[5] + g[at], g[6] + g[at + 1], g[7] + g[at + 2]
        return
    bx = g[8] * dx + g[11] * dy + g[14] * dz
    by = g[9] * dx + g[12] * dy + g[15] * dz
    bz = g[10] * dx + g[13] * dy + g[16] * dz
    if g[CODE] == BOX:
        x = math.copysign(g[1], bx)
        y = math.copysign(g[2], by)
        z = math.copysign(g[3], bz)
    elif g[CODE] == CYLINDER:
        x = math.copysign(g[1], bx)
        across = math.sqrt(by * by + bz * bz)
        y, z = (g[2] * by / across, g[2] * bz / across) if across > 1e-12 else (0.0, 0.0)
    else:
        x = y = z = 0.0
    _to_world(g, x, y, z, out)


@_njit
def _to_world(g: Any, x: float, y: float, z: float, out: Any) -> None:
    out[0] = g[5] + g[8] * x + g[9] * y + g[10] * z
    out[1] = g[6] + g[11] * x + g[12] * y + g[13] * z
    out[2] = g[7] + g[14] * x + g[15] * y + g[16] * z


@_njit
def feature(g: Any, i: int, dx: float, dy: float, dz: float, out: Any) -> None:
    """Point i of the eight that stand for a flat or straight side facing a direction of W: corners of a box;
    on both rims of a cylinder the foremost point and three more; the centre of a sphere; the corners of a triangle."""
    if g[CODE] == TRIANGLE:
        k = 8 + 3 * (i % 3)
        out[0], out[1], out[2] = g[5] + g[k], g[6] + g[k + 1], g[7] + g[k + 2]
        return
    if g[CODE] == BOX:
        x = g[1] if i & 1 else -g[1]
        y = g[2] if i & 2 else -g[2]
        z = g[3] if i & 4 else -g[3]
    elif g[CODE] == CYLINDER:
        by = g[9] * dx + g[12] * dy + g[15] * dz
        bz = g[10] * dx + g[13] * dy + g[16] * dz
        across = math.sqrt(by * by + bz * bz)
        by, bz = (by / across, bz / across) if across > 1e-9 else (1.0, 0.0)
        x = g[1] if i & 1 else -g[1]
        turn = i // 2
        y, z = by, bz
        if turn == 1:
            y, z = -bz, by
        elif turn == 2:
            y, z = bz, -by
        elif turn == 3:
            y, z = -by, -bz
        y, z = g[2] * y, g[2] * z
    else:
        x = y = z = 0.0
    _to_world(g, x, y, z, out)


@_njit
def points(g: Any) -> int:
    """How many feature points a body has."""
    return 3 if g[CODE] == TRIANGLE else 0 if g[CODE] == SPHERE else POINTS


@_njit
def normal(g: Any) -> tuple[float, float, float]:
    """Unit normal of a triangle."""
    ax, ay, az = g[11] - g[8], g[12] - g[9], g[13] - g[10]
    bx, by, bz = g[14] - g[8], g[15] - g[9], g[16] - g[10]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    s = math.sqrt(nx * nx + ny * ny + nz * nz)
    return nx / s, ny / s, nz / s


@_njit
def in_prism(g: Any, dx: float, dy: float, dz: float, hair: float) -> bool:
    """Whether a point, given from a triangle's middle, lies over it: inside its edges, or within a hair of them."""
    nx, ny, nz = normal(g)
    for k in range(3):
        a, b = 8 + 3 * k, 8 + 3 * ((k + 1) % 3)
        ex, ey, ez = g[b] - g[a], g[b + 1] - g[a + 1], g[b + 2] - g[a + 2]
        px, py, pz = dx - g[a], dy - g[a + 1], dz - g[a + 2]
        inside = nx * (ey * pz - ez * py) + ny * (ez * px - ex * pz) + nz * (ex * py - ey * px)
        if inside < -hair * math.sqrt(ex * ex + ey * ey + ez * ez):
            return False
    return True


@_njit
def _nearest(s: Any, n: int, weights: Any, trial: Any) -> float:
    """Weights of the point of a simplex (rows 0..n-1 of s) that is nearest to the origin: of all faces whose
    own nearest point has positive weights, the nearest. Returns its squared distance."""
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


@_njit
def distance(ga: Any, gb: Any, work: Any, pa: Any, pb: Any) -> float:
    """Distance between two cores; fills their nearest points. 0 if they overlap (then the points are not unique).

    ``work`` is a scratch array (16, 3)."""
    s, on_a, on_b = work[0:4], work[4:8], work[8:12]
    weights, trial = work[12:14].ravel(), work[14:16].ravel()
    d = pa  # direction from b to a, kept in the output until the end
    vx, vy, vz = ga[5] - gb[5], ga[6] - gb[6], ga[7] - gb[7]
    if vx * vx + vy * vy + vz * vz < 1e-18:
        vx = 1.0
    n, square = 0, math.inf
    for _ in range(40):
        support(ga, -vx, -vy, -vz, on_a[n])
        support(gb, vx, vy, vz, on_b[n])
        for i in range(3):
            s[n, i] = on_a[n, i] - on_b[n, i]
        # no point of the difference lies farther towards the origin: v is the nearest
        if n and square - (vx * s[n, 0] + vy * s[n, 1] + vz * s[n, 2]) <= 1e-10 * square + 1e-18:
            break
        square = _nearest(s, n + 1, weights, trial)
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
