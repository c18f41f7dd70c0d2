"""Exact buoyancy of partly submerged boxes, cylinders, spheres and closed meshes.

Each function takes the plane of the water surface (the water plane) in body axes, and returns the submerged volume and
its first moments (volume times centroid) in closed form.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics.sizes import TABLE_FACES, TABLE_POINTS
from wavesim_server.elementary import asin

BOX, CYLINDER, SPHERE = 0.0, 1.0, 2.0  #: shapes of primitive bodies


Point: TypeAlias = tuple[float, float, float]  #: a point or vector in B


class WaterPlane(NamedTuple):
    """Plane of the water surface, ``n . x = d``, in B.

    The unit vector ``n`` points down, so water is where ``n . x > d``.
    """

    nx: float
    ny: float
    nz: float
    d: float


@device_function
def sphere_cap(radius: float, d: float) -> tuple[float, float]:
    """Return the volume of the cap n.x > d of a sphere about the origin, and its first moment along n."""
    d = min(max(d, -radius), radius)
    h = radius - d
    volume = math.pi * h * h * (3.0 * radius - h) / 3.0
    moment = math.pi * (radius * radius - d * d) * (radius * radius - d * d) / 4.0
    return volume, moment


@device_function
def _chord(s: float, radius: float) -> tuple[float, float, float]:
    """Return the integrals from -R to s of w(x), x w(x) and x^2 w(x), with w = 2 sqrt(R^2 - x^2)."""
    s = min(max(s, -radius), radius)
    r2 = radius * radius
    root = math.sqrt(max(r2 - s * s, 0.0))
    angle = asin(s / radius) + 0.5 * math.pi
    m0 = s * root + r2 * angle
    m1 = -2.0 / 3.0 * (root * root * root)
    m2 = 0.25 * (s * (2.0 * s * s - r2) * root + r2 * r2 * angle)
    return m0, m1, m2


@device_function
def cylinder(half: float, radius: float, plane: WaterPlane) -> tuple[float, float, float, float]:
    """Return the volume and the first moments (mx, my, mz) of the submerged part of a cylinder along x.

    At each point of the circular section, the submerged length is a linear function of the coordinate ``s`` along the
    tilt of the plane. The submerged length is limited to the range from 0 to the length of the cylinder, 2 ``half``.
    Its integral follows from the moments of the chord.
    """
    nx, ny, nz, d = plane
    tilt = math.sqrt(ny * ny + nz * nz)
    sign = 1.0 if nx >= 0.0 else -1.0
    ey, ez = (ny / tilt, nz / tilt) if tilt > 1e-12 else (0.0, 1.0)
    # Under water where |nx| X + tilt s > d, with X = sign x. A plane nearly along the axis is
    # treated as 1e-6 rad off it: relative error below 1e-6.
    a = max(abs(nx), 1e-6)
    length = 2.0 * half
    # Submerged length along the axis: half - X0(s), X0 = (d - tilt s)/a, clamped.
    if tilt > 1e-9:
        s_dry = (d - a * half) / tilt  # below this s nothing is submerged
        s_full = (d + a * half) / tilt  # above this s the whole length is submerged
    else:
        s_dry = -2.0 * radius if d < a * half else 2.0 * radius
        s_full = -2.0 * radius if d < -a * half else 2.0 * radius
    p0, p1, p2 = _chord(s_dry, radius)
    q0, q1, q2 = _chord(s_full, radius)
    e0, e1, _ = _chord(radius, radius)
    # part with the whole length
    volume = length * (e0 - q0)
    ms = length * (e1 - q1)
    mx = 0.0
    # part with the length half - X0 = b + k s
    b, k = half - d / a, tilt / a
    w0, w1, w2 = q0 - p0, q1 - p1, q2 - p2
    volume += b * w0 + k * w1
    ms += b * w1 + k * w2
    # its centroid in X lies at half - L/2, so the moment is half L - L^2/2
    mx += half * (b * w0 + k * w1) - 0.5 * (b * b * w0 + 2.0 * b * k * w1 + k * k * w2)
    return volume, sign * mx, ms * ey, ms * ez


@device_function
def submerged_share(
    shape: float, h0: float, h1: float, h2: float, reach: float, plane: WaterPlane
) -> tuple[float, float, float, float]:
    """Return the submerged fraction of the volume of a box (shape 0), cylinder (1) or sphere (2), and the centroid of
    the submerged part.
    """
    if plane.d <= -reach:
        return 1.0, 0.0, 0.0, 0.0
    if plane.d >= reach:
        return 0.0, 0.0, 0.0, 0.0
    if shape == BOX:
        volume, mx, my, mz = box(h0, h1, h2, plane)
        whole = 8.0 * h0 * h1 * h2
    elif shape == CYLINDER:
        volume, mx, my, mz = cylinder(h0, h1, plane)
        whole = 2.0 * math.pi * h1 * h1 * h0
    else:
        volume, m = sphere_cap(h0, plane.d)
        mx, my, mz = m * plane.nx, m * plane.ny, m * plane.nz
        whole = 4.0 / 3.0 * math.pi * (h0 * h0 * h0)
    if volume <= 0.0:
        return 0.0, 0.0, 0.0, 0.0
    return volume / whole, mx / volume, my / volume, mz / volume


@device_function
def box(hx: float, hy: float, hz: float, plane: WaterPlane) -> tuple[float, float, float, float]:
    """Return the volume and the first moments (mx, my, mz) of the submerged part of a box about the origin, for a plane
    that cuts only the box's upright edges.
    """
    nx, ny, nz, d = plane
    if abs(nx) * hx + abs(ny) * hy + abs(d) < abs(nz) * hz:
        # The plane cuts the four upright edges only: the depth of a column is linear in x and y.
        area, at = 4.0 * hx * hy, d / nz
        tx, ty = nx / nz, ny / nz
        side = 1.0 if nz > 0.0 else -1.0
        square = at * at + (tx * tx * hx * hx + ty * ty * hy * hy) / 3.0
        return (
            area * (hz - side * at),
            side * area * tx * hx * hx / 3.0,
            side * area * ty * hy * hy / 3.0,
            side * 0.5 * area * (hz * hz - square),
        )
    return clipped_box(hx, hy, hz, plane)


@always_inline
def _clipped_vertex(a: Point, b: Point, plane: WaterPlane, step: int) -> tuple[bool, float, float, float]:
    """Return whether an edge of a face contributes a vertex to the wet part of the face, and this vertex.

    Step 0 of an edge from ``a`` to ``b`` is ``a`` itself, if it is wet; step 1 is the point where the edge crosses the
    plane. The steps of all edges in turn yield the vertices of the wet part in order (Sutherland and Hodgman 1974).
    """
    da = plane.nx * a[0] + plane.ny * a[1] + plane.nz * a[2] - plane.d
    if step == 0:
        return not da < 0.0, a[0], a[1], a[2]
    db = plane.nx * b[0] + plane.ny * b[1] + plane.nz * b[2] - plane.d
    if (da < 0.0) == (db < 0.0):
        return False, 0.0, 0.0, 0.0
    t = da / (da - db)
    return True, a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2])


@always_inline
def _tetrahedron(a: Point, b: Point, c: Point) -> float:
    """Return the volume of a tetrahedron with the apex at the origin."""
    return (
        a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])
    ) / 6.0


@device_function
def clipped_box(hx: float, hy: float, hz: float, plane: WaterPlane) -> tuple[float, float, float, float]:
    """Return the volume and the first moments (mx, my, mz) of the submerged part of a box at any attitude.

    Each face is clipped by the plane and joined to a point in the plane. The tetrahedra of the clipped faces add up to
    the submerged part of the box, and the cut surface itself contributes nothing.
    """
    ox, oy, oz = plane.nx * plane.d, plane.ny * plane.d, plane.nz * plane.d  # the apex, on the plane
    volume = mx = my = mz = 0.0
    for axis in range(3):
        for side in range(2):
            sign = 1.0 if side == 1 else -1.0
            # first vertex of the fan, previous vertex, number of vertices
            fx = fy = fz = px = py = pz = 0.0
            count = 0
            for corner in range(4):
                a = _corner(axis, sign, corner, hx, hy, hz)
                b = _corner(axis, sign, (corner + 1) % 4, hx, hy, hz)
                for step in range(2):
                    is_vertex, vx, vy, vz = _clipped_vertex(a, b, plane, step)
                    if not is_vertex:
                        continue
                    if count == 0:
                        fx, fy, fz = vx, vy, vz
                    elif count >= 2:
                        v6 = _tetrahedron(
                            (fx - ox, fy - oy, fz - oz), (px - ox, py - oy, pz - oz), (vx - ox, vy - oy, vz - oz)
                        )
                        volume += v6
                        mx += v6 * 0.25 * (ox + fx + px + vx)
                        my += v6 * 0.25 * (oy + fy + py + vy)
                        mz += v6 * 0.25 * (oz + fz + pz + vz)
                    px, py, pz = vx, vy, vz
                    count += 1
    return volume, mx, my, mz


@device_function
def _corner(axis: int, sign: float, corner: int, hx: float, hy: float, hz: float) -> Point:
    """Return corner 0, 1, 2 or 3 of a face, counter-clockwise as seen from outside."""
    a = 1.0 if corner == 1 or corner == 2 else -1.0
    b = 1.0 if corner >= 2 else -1.0
    a *= sign  # mirrored faces have the opposite orientation
    if axis == 0:
        return sign * hx, a * hy, b * hz
    if axis == 1:
        return b * hx, sign * hy, a * hz
    return a * hx, b * hy, sign * hz


@device_function
def mesh_volume(model_ints: Ints, tables: Floats, plane: WaterPlane) -> tuple[float, float, float, float]:
    """Return the volume and the first moments (mx, my, mz) of the submerged part of a model's closed mesh.

    The wetted part of each face is joined to a point in the water plane, as in :func:`clipped_box`.
    :class:`wavesim_world.hull.Hull` uses the same method in more readable code.
    """
    ox, oy, oz = plane.nx * plane.d, plane.ny * plane.d, plane.nz * plane.d
    volume = mx = my = mz = 0.0
    for f in range(model_ints[M.FACES]):
        table, at = tables[model_ints[M.HULL + f // TABLE_FACES]], 9 * (f % TABLE_FACES)
        fx = fy = fz = px = py = pz = 0.0
        count = 0
        for corner in range(3):
            a, b = _mesh_corner(table, at, corner), _mesh_corner(table, at, (corner + 1) % 3)
            for step in range(2):
                is_vertex, vx, vy, vz = _clipped_vertex(a, b, plane, step)
                if not is_vertex:
                    continue
                vx, vy, vz = vx - ox, vy - oy, vz - oz
                if count == 0:
                    fx, fy, fz = vx, vy, vz
                elif count >= 2:
                    v6 = _tetrahedron((fx, fy, fz), (px, py, pz), (vx, vy, vz))
                    volume += v6
                    mx += v6 * (ox + 0.25 * (fx + px + vx))
                    my += v6 * (oy + 0.25 * (fy + py + vy))
                    mz += v6 * (oz + 0.25 * (fz + pz + vz))
                px, py, pz = vx, vy, vz
                count += 1
    return volume, mx, my, mz


@always_inline
def _mesh_corner(table: Floats, at: int, corner: int) -> Point:
    """Return a corner of the triangle whose coordinates begin at the index ``at`` in a table."""
    k = at + 3 * corner
    return _number(table, k), _number(table, k + 1), _number(table, k + 2)


@device_function
def _number(table: Floats, k: int) -> float:
    """Return an element of a table by its flat index."""
    return table[0, k] if k < TABLE_POINTS else table[1, k - TABLE_POINTS]
