"""Contact impulses: normal impulses, Coulomb friction, and the correction of overlap; compiled.

A Jacobian is [n; r x n], in B. Its product with the velocity of a body is the speed of the contact point along n. A
unit impulse along n changes the body's momentum by the Jacobian.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import rotation
from wavesim_server.dynamics.bodies import BodyArrays
from wavesim_server.dynamics.contact_memory import (
    C_A,
    C_B,
    C_FRICTION,
    C_GAP,
    C_IMPULSE,
    C_INVERSE,
    C_NORMAL,
    C_POINT,
    D_JACOBIAN,
    D_RESPONSE,
    L_ARM,
    L_NORMAL,
    L_RESPONSE,
    OVERLAP_TOLERANCE,
)
from wavesim_server.dynamics.shapes import BOX
from wavesim_server.dynamics.sizes import LANES

OVERLAP_CORRECTION = 0.2  #: fraction of the overlap that is removed per tick
#: maximum speed in m/s at which overlapping bodies are moved apart, at each contact point
MAX_CORRECTION_SPEED = 0.2
FRICTION = 0.3
ROLLING_RESISTANCE = (
    #: coefficient of rolling resistance, as a fraction of the radius; the value is that of wheels on firm soil
    # (Gillespie 1992); the coefficient is 0.3 on sand and 0.015 on concrete
    0.08
)


@always_inline
def _set_jacobian(lever: Floats, x: float, y: float, z: float, j: Floats, first: int) -> None:
    """Write [n; r x n] for a direction in W to ``j``, starting at j[first]."""
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = (
        lever[0],
        lever[1],
        lever[2],
        lever[3],
        lever[4],
        lever[5],
        lever[6],
        lever[7],
        lever[8],
    )
    rx, ry, rz = lever[L_ARM], lever[L_ARM + 1], lever[L_ARM + 2]
    nx, ny, nz = r11 * x + r21 * y + r31 * z, r12 * x + r22 * y + r32 * z, r13 * x + r23 * y + r33 * z
    j[first], j[first + 1], j[first + 2] = nx, ny, nz
    j[first + 3], j[first + 4], j[first + 5] = ry * nz - rz * ny, rz * nx - rx * nz, rx * ny - ry * nx


@always_inline
def _inverse_mass(f: BodyArrays, row: int, j: Floats, first: int) -> float:
    """Return the inverse effective mass of a body at a contact point along a direction."""
    p = f.params[f.block_heads[f.slots[row] // LANES, B.HEAD_MODEL]]
    inverse = 0.0
    for i in range(6):
        for k in range(6):
            inverse += j[first + i] * p[P.MASS_INVERSE + 6 * i + k] * j[first + k]
    return inverse


@always_inline
def _set_response(f: BodyArrays, row: int, j: Floats, first: int, response: Floats, at: int) -> None:
    """Compute the change in velocity that a unit impulse along a direction causes, and write it to ``response``,
    starting at response[at].
    """
    p = f.params[f.block_heads[f.slots[row] // LANES, B.HEAD_MODEL]]
    for i in range(6):
        change = 0.0
        for k in range(6):
            change += p[P.MASS_INVERSE + 6 * i + k] * j[first + k]
        response[at + i] = change


@always_inline
def _point_speed(f: BodyArrays, row: int, j: Floats, first: int) -> float:
    """Return the speed of a body's contact point along a direction."""
    slot, speed = f.slots[row], 0.0
    b, l = f.blocks[slot // LANES], slot % LANES
    for i in range(6):
        speed += j[first + i] * b[(B.NU + i) * LANES + l]
    return speed


@always_inline
def _apply_impulse(f: BodyArrays, row: int, response: Floats, at: int, size: float) -> None:
    """Apply an impulse to a body."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    for i in range(6):
        b[(B.NU + i) * LANES + l] += response[at + i] * size


@device_function
def prepare_contact(f: BodyArrays, c: Floats, levers: Floats) -> None:
    """Fill in those values of a contact that depend on the poses: levers (2, LEVER), and inverse masses along the
    normal. Fixed bodies have infinite mass.
    """
    for side in range(2):
        row, lever = int(c[C_A + side]), levers[side]
        c[C_INVERSE + side] = 0.0
        if row < 0:
            continue
        slot = f.slots[row]
        b, l = f.blocks[slot // LANES], slot % LANES
        r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation.matrix(
            b[B.QW * LANES + l], b[B.QX * LANES + l], b[B.QY * LANES + l], b[B.QZ * LANES + l]
        )
        lever[0], lever[1], lever[2], lever[3], lever[4], lever[5] = r11, r12, r13, r21, r22, r23
        lever[6], lever[7], lever[8] = r31, r32, r33
        dx = c[C_POINT] - b[B.PX * LANES + l]
        dy = c[C_POINT + 1] - b[B.PY * LANES + l]
        dz = c[C_POINT + 2] - b[B.PZ * LANES + l]
        lever[L_ARM] = r11 * dx + r21 * dy + r31 * dz
        lever[L_ARM + 1] = r12 * dx + r22 * dy + r32 * dz
        lever[L_ARM + 2] = r13 * dx + r23 * dy + r33 * dz
        _set_jacobian(lever, c[C_NORMAL], c[C_NORMAL + 1], c[C_NORMAL + 2], lever, L_NORMAL)
        c[C_INVERSE + side] = _inverse_mass(f, row, lever, L_NORMAL)
        _set_response(f, row, lever, L_NORMAL, lever, L_RESPONSE)


@always_inline
def approach_speed(f: BodyArrays, c: Floats, levers: Floats) -> float:
    """Return the speed at which the bodies in a contact approach each other along its normal."""
    a, b = int(c[C_A]), int(c[C_B])
    return _point_speed(f, a, levers[0], L_NORMAL) - (0.0 if b < 0 else _point_speed(f, b, levers[1], L_NORMAL))


@always_inline
def normal_impulse(f: BodyArrays, c: Floats, levers: Floats, limit: float) -> None:
    """Apply a normal impulse that changes the approach speed of a contact to ``limit``.

    The sum of a contact's normal impulses is never negative.
    """
    a, b, inverse = int(c[C_A]), int(c[C_B]), c[C_INVERSE] + c[C_INVERSE + 1]
    if inverse <= 0.0:
        return
    had = c[C_IMPULSE]
    size = max(had + (approach_speed(f, c, levers) - limit) / inverse, 0.0)
    _apply_impulse(f, a, levers[0], L_RESPONSE, -(size - had))
    if b >= 0:
        _apply_impulse(f, b, levers[1], L_RESPONSE, size - had)
    c[C_IMPULSE] = size


@always_inline
def _sliding_speed(f: BodyArrays, c: Floats, levers: Floats, directions: Floats, x: float, y: float, z: float) -> float:
    """Return the speed of body ``a`` relative to body ``b`` at a contact, along a direction whose Jacobians have been
    computed.
    """
    a, b = int(c[C_A]), int(c[C_B])
    _set_jacobian(levers[0], x, y, z, directions[0], D_JACOBIAN)
    speed = _point_speed(f, a, directions[0], D_JACOBIAN)
    if b < 0:
        return speed - 0.0
    _set_jacobian(levers[1], x, y, z, directions[1], D_JACOBIAN)
    return speed - _point_speed(f, b, directions[1], D_JACOBIAN)


@always_inline
def friction_impulse(f: BodyArrays, c: Floats, levers: Floats, directions: Floats) -> None:
    """Apply friction that opposes the sliding at a contact and is at most FRICTION times the contact's impulse;
    ``directions`` is scratch space.
    """
    a, b = int(c[C_A]), int(c[C_B])
    x = _sliding_speed(f, c, levers, directions, 1.0, 0.0, 0.0)
    y = _sliding_speed(f, c, levers, directions, 0.0, 1.0, 0.0)
    z = _sliding_speed(f, c, levers, directions, 0.0, 0.0, 1.0)
    along = x * c[C_NORMAL] + y * c[C_NORMAL + 1] + z * c[C_NORMAL + 2]
    x, y, z = x - along * c[C_NORMAL], y - along * c[C_NORMAL + 1], z - along * c[C_NORMAL + 2]
    speed = math.sqrt(x * x + y * y + z * z)
    if speed < 1e-12:
        return
    x, y, z = x / speed, y / speed, z / speed
    _sliding_speed(f, c, levers, directions, x, y, z)
    inverse = _inverse_mass(f, a, directions[0], D_JACOBIAN)
    inverse += 0.0 if b < 0 else _inverse_mass(f, b, directions[1], D_JACOBIAN)
    if inverse <= 0.0:
        return
    # the sum of a contact's friction stays within the cone
    tx = c[C_FRICTION] + x * speed / inverse
    ty = c[C_FRICTION + 1] + y * speed / inverse
    tz = c[C_FRICTION + 2] + z * speed / inverse
    size = math.sqrt(tx * tx + ty * ty + tz * tz)
    share = min(1.0, FRICTION * c[C_IMPULSE] / size) if size > 0.0 else 1.0
    x, y, z = share * tx - c[C_FRICTION], share * ty - c[C_FRICTION + 1], share * tz - c[C_FRICTION + 2]
    c[C_FRICTION], c[C_FRICTION + 1], c[C_FRICTION + 2] = share * tx, share * ty, share * tz
    size = math.sqrt(x * x + y * y + z * z)
    if size == 0.0:
        return
    _sliding_speed(f, c, levers, directions, x / size, y / size, z / size)
    _set_response(f, a, directions[0], D_JACOBIAN, directions[0], D_RESPONSE)
    _apply_impulse(f, a, directions[0], D_RESPONSE, -size)
    if b >= 0:
        _set_response(f, b, directions[1], D_JACOBIAN, directions[1], D_RESPONSE)
        _apply_impulse(f, b, directions[1], D_RESPONSE, size)


@device_function
def rolling_impulse(f: BodyArrays, c: Floats, levers: Floats, twist: Floats) -> None:
    """Apply rolling resistance to a round body that rolls or turns on a fixed body.

    The resistance is at most ROLLING_RESISTANCE times the radius times the contact's impulse. It reduces the rotation
    about the contact point, which does not move. ``twist`` (6,) is scratch space. Because friction at a point does no
    work on a wheel, a torpedo on the bed would rock on its keel for minutes without this resistance.
    """
    row, lever = int(c[C_A]), levers[0]
    slot = f.slots[row]
    p = f.params[f.block_heads[slot // LANES, B.HEAD_MODEL]]
    if p[P.SHAPE] == BOX:
        return
    b, l = f.blocks[slot // LANES], slot % LANES
    wx, wy, wz = b[(B.NU + 3) * LANES + l], b[(B.NU + 4) * LANES + l], b[(B.NU + 5) * LANES + l]
    turning = math.sqrt(wx * wx + wy * wy + wz * wz)
    if turning < 1e-12:
        return
    wx, wy, wz = wx / turning, wy / turning, wz / turning
    rx, ry, rz = lever[L_ARM], lever[L_ARM + 1], lever[L_ARM + 2]
    twist[0], twist[1], twist[2] = ry * wz - rz * wy, rz * wx - rx * wz, rx * wy - ry * wx
    twist[3], twist[4], twist[5] = wx, wy, wz
    for i in range(6):
        twist[i] *= p[P.FREE_DOFS + i]
    inertia = momentum = 0.0
    for i in range(6):
        for k in range(6):
            both = 0.5 * (p[P.TOTAL_INERTIA + 6 * i + k] + p[P.TOTAL_INERTIA + 6 * k + i]) * twist[i]
            inertia += both * twist[k]
            momentum += both * b[(B.NU + k) * LANES + l]
    size = min(momentum, ROLLING_RESISTANCE * p[P.HALF + 1] * c[C_IMPULSE])
    if size > 0.0 and inertia > 0.0:
        for i in range(6):
            b[(B.NU + i) * LANES + l] -= size / inertia * twist[i]


@device_function
def correct_overlap(f: BodyArrays, c: Floats, levers: Floats, h: float) -> None:
    """Move overlapping bodies apart by a fraction of the overlap; the lighter body moves farther."""
    push = min(OVERLAP_CORRECTION * max(-c[C_GAP] - OVERLAP_TOLERANCE, 0.0), MAX_CORRECTION_SPEED * h)
    if push == 0.0:
        return
    nx, ny, nz = c[C_NORMAL], c[C_NORMAL + 1], c[C_NORMAL + 2]
    prepare_contact(f, c, levers)  # earlier contacts may have moved them
    ka, kb = c[C_INVERSE], c[C_INVERSE + 1]
    if ka + kb <= 0.0:
        return
    a, b = int(c[C_A]), int(c[C_B])
    _translate(f, a, -push * ka / (ka + kb), nx, ny, nz)
    if b >= 0:
        _translate(f, b, push * kb / (ka + kb), nx, ny, nz)


@device_function
def _translate(f: BodyArrays, row: int, by: float, nx: float, ny: float, nz: float) -> None:
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    b[B.PX * LANES + l] += by * nx
    b[B.PY * LANES + l] += by * ny
    b[B.PZ * LANES + l] += by * nz
