"""Compiled lumped-mass model of lines, such as tethers, moorings and tow cables.

A line is divided into equal segments. Their mass, weight, buoyancy and drag act at the nodes between them (Walton and
Polachek 1960; Hall and Goupee 2015). For the part of the line that belongs to a node with the tangent t, this equation
of motion holds:

    (m + A) a = T_+ t_+ - T_- t_- + (m - rho V) g + (rho V + A) a_w + D,   T = max(0, EA e + C e')

In this equation, e is the strain of a segment and V is its volume. The added mass A is Ca rho V across t and zero along
t. a_w is the acceleration of the water. D is the drag, 1/2 rho Cd d l across t and 1/2 rho Cdt pi d l along t; each
part is quadratic in its component of the velocity. Bending and torsion are neglected. Half a segment belongs to each
end of the line: its weight and drag act on the body, and its mass is neglected.

A tick of the bodies is divided into substeps for the lines (semi-implicit Euler, with the drag implicit in the speed).
Bodies take part in the substeps. The motion of a body in the tick is first computed with the previous force from its
lines. In the substeps, the body departs from this motion because the line force changes. Therefore, a stiff line on a
light body needs short substeps but not short ticks, and a hanging line at rest stays at rest.

Near the bed, the downward speed of a node is limited so that the node moves by at most its distance from the bed in one
substep. The impulse that enforces this limit bounds the friction.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import rotation
from wavesim_server.dynamics.bodies import BodyArrays
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.elementary import flush
from wavesim_server.seabed import BedParameters, SoundingsMesh, bed_depth

BED_EXIT_SPEED = 0.2  #: speed in m/s at which a node below the bed rises

#: columns in the table of line nodes:
# position and velocity, W; water velocity and acceleration, depth of the water surface, depth of the bed; force on the
# node; tension, direction and submerged share of the segment behind the node; whether the node touches the bed
N_P, N_V, N_WATER_VELOCITY, N_WATER_ACCELERATION, N_WATER_LEVEL, N_BED, N_FORCE, N_TENSION, N_DIRECTION, N_WET_SHARE, N_ON_BED, NODE = (
    0, 3, 6, 9, 12, 13, 14, 17, 18, 21, 22, 23,
)  # fmt: skip
#: columns for a line:
# for each of its segments: length, EA, C, mass, weight, weight and mass of the displaced water, added mass, factors of
# the drag across and along; for the line itself: diameter, friction, breaking load (0 = unlimited), tension at which it
# broke
(
    L_LENGTH,
    L_EA,
    L_DAMPING,
    L_MASS,
    L_WEIGHT,
    L_DISPLACED_WEIGHT,
    L_DISPLACED_MASS,
    L_ADDED,
    L_NORMAL_DRAG,
    L_TANGENTIAL_DRAG,
    L_DIAMETER,
    L_FRICTION,
    L_BREAKING_LOAD,
    L_BROKEN_TENSION,
    LINE,
) = range(15)
#: columns for the integers of a line:
# first node, segments, bodies at the ends (rows of the rig; -1 = anchor), whether both are present, broken segment
# (-1 = none), tick of the break
I_FIRST, I_SEGMENTS, I_BODY, I_BOTH_PRESENT, I_BROKEN_SEGMENT, I_BROKEN_TICK, LINE_INTS = 0, 1, 2, 4, 5, 6, 7
#: columns for an end of a line: its attachment point in B or W, and its position and velocity in W before and after the
#: tick
E_AT, E_P0, E_V0, E_P1, E_V1, END = 0, 3, 6, 9, 12, 15
#: columns for a body that has lines attached:
# position, attitude and velocity before and after its step; departure from that motion, B: velocity, position; sum of
# the line forces
B_BEFORE, B_AFTER, B_DEPARTURE_VELOCITY, B_DEPARTURE, B_WRENCH_SUM, BODY = 0, 13, 26, 32, 38, 44
#: columns for a group of connected lines and bodies; the members of a group are stepped together
G_LINE, G_LINES, G_BODY, G_BODIES, G_STEPS, GROUP = range(6)


class Wrench(NamedTuple):
    """Force and moment in B."""

    x: float
    y: float
    z: float
    k: float
    m: float
    n: float


class LineArrays(NamedTuple):
    """All lines in a run."""

    nodes: Floats  # (n, NODE)
    lines: Floats  # (m, LINE)
    ints: Ints  # (m, LINE_INTS)
    ends: Floats  # (2 m, END)
    bodies: Floats  # (k, BODY)
    rows: Ints  # (k,): rows of the bodies in the tables
    groups: Ints  # (g, GROUP)
    cursors: Ints  # (n,): triangles of the bed


@device_function
def _store_bodies(f: BodyArrays, rig: LineArrays, to: int) -> None:
    """Store the position, attitude and velocity of all bodies with lines."""
    for k in range(rig.rows.shape[0]):
        slot = f.slots[rig.rows[k]]
        if slot >= 0:
            b, l = f.blocks[slot // LANES], slot % LANES
            for i in range(B.RIGID_ROWS):
                rig.bodies[k, to + i] = b[i * LANES + l]


@device_function
def store_before(f: BodyArrays, rig: LineArrays) -> None:
    """Store the state of bodies with lines before the bodies move."""
    _store_bodies(f, rig, B_BEFORE)


@device_function
def update_bed_depths(rig: LineArrays, bed: BedParameters, net: SoundingsMesh) -> None:
    """Update the depth of the bed below all nodes."""
    for i in range(rig.nodes.shape[0]):
        rig.nodes[i, N_BED] = bed_depth(bed, net, rig.cursors, i, rig.nodes[i, N_P], rig.nodes[i, N_P + 1])


@device_function
def _end_motion(end: Floats, o: Floats, at: int, place: int, speed: int) -> None:
    """Compute the position and velocity of a line's end that is attached to a body in a given state."""
    w, x, y, z = o[at + 3], o[at + 4], o[at + 5], o[at + 6]
    ax, ay, az = end[E_AT], end[E_AT + 1], end[E_AT + 2]
    p, q, s = o[at + 10], o[at + 11], o[at + 12]
    end[place], end[place + 1], end[place + 2] = rotation.to_world(w, x, y, z, ax, ay, az)
    end[speed], end[speed + 1], end[speed + 2] = rotation.to_world(
        w, x, y, z, o[at + 7] + q * az - s * ay, o[at + 8] + s * ax - p * az, o[at + 9] + p * ay - q * ax
    )
    for i in range(3):
        end[place + i] += o[at + i]


@device_function
def _place_end(end: Floats, node: Floats, s: float, h: float) -> None:
    """Move the end of a line to its position at the fraction ``s`` of a tick, by Hermite interpolation over the tick."""
    square, cube = s * s, s * s * s
    rest, there = 2.0 * cube - 3.0 * square + 1.0, 3.0 * square - 2.0 * cube
    leave, arrive = (cube - 2.0 * square + s) * h, (cube - square) * h
    change = 6.0 * (square - s) / h
    for i in range(3):
        p0, v0, p1, v1 = end[E_P0 + i], end[E_V0 + i], end[E_P1 + i], end[E_V1 + i]
        node[N_P + i] = rest * p0 + leave * v0 + there * p1 + arrive * v1
        node[N_V + i] = change * (p0 - p1) + (3.0 * square - 4.0 * s + 1.0) * v0 + (3.0 * square - 2.0 * s) * v1


@device_function
def _displace_end(end: Floats, node: Floats, o: Floats) -> None:
    """Displace an end of a line from its interpolated path by the deviation of the attached body."""
    ax, ay, az = end[E_AT], end[E_AT + 1], end[E_AT + 2]
    for to, k in ((N_P, B_DEPARTURE), (N_V, B_DEPARTURE_VELOCITY)):
        x, y, z = rotation.to_world(
            o[B_AFTER + 3],
            o[B_AFTER + 4],
            o[B_AFTER + 5],
            o[B_AFTER + 6],
            o[k] + o[k + 4] * az - o[k + 5] * ay,
            o[k + 1] + o[k + 5] * ax - o[k + 3] * az,
            o[k + 2] + o[k + 3] * ay - o[k + 4] * ax,
        )
        node[to] += x
        node[to + 1] += y
        node[to + 2] += z


@device_function
def _segment_forces(nodes: Floats, line: Floats, ints: Ints, tick: int) -> None:
    """Compute the tension in all segments and, together with their weight, the force on all nodes."""
    first, last = ints[I_FIRST], ints[I_FIRST] + ints[I_SEGMENTS]
    for i in range(first, last + 1):
        for k in range(3):
            nodes[i, N_FORCE + k] = 0.0
    for i in range(first, last):
        a, b = nodes[i], nodes[i + 1]
        x, y, z = b[N_P] - a[N_P], b[N_P + 1] - a[N_P + 1], b[N_P + 2] - a[N_P + 2]
        long = math.sqrt(x * x + y * y + z * z)
        by = 1.0 / max(long, 1e-12)
        x, y, z = x * by, y * by, z * by
        strain = long / line[L_LENGTH] - 1.0
        tension = 0.0
        if strain > 0.0:
            away = x * (b[N_V] - a[N_V]) + y * (b[N_V + 1] - a[N_V + 1]) + z * (b[N_V + 2] - a[N_V + 2])
            tension = max(line[L_EA] * strain + line[L_DAMPING] * away / line[L_LENGTH], 0.0)
        if tension > line[L_BREAKING_LOAD] and line[L_BREAKING_LOAD] > 0.0 and ints[I_BROKEN_SEGMENT] < 0:
            ints[I_BROKEN_SEGMENT], ints[I_BROKEN_TICK], line[L_BROKEN_TENSION] = i - first, tick, tension
        if ints[I_BROKEN_SEGMENT] == i - first:
            tension = x = y = z = 0.0
        a[N_TENSION], a[N_DIRECTION], a[N_DIRECTION + 1], a[N_DIRECTION + 2] = tension, x, y, z
        level, diameter = 0.5 * (a[N_WATER_LEVEL] + b[N_WATER_LEVEL]), line[L_DIAMETER]
        deep = max(a[N_P + 2], b[N_P + 2]) + 0.5 * diameter - level
        wet = min(max(deep / (abs(b[N_P + 2] - a[N_P + 2]) + diameter), 0.0), 1.0)
        a[N_WET_SHARE] = wet
        half = 0.5 * (line[L_WEIGHT] - wet * line[L_DISPLACED_WEIGHT])
        x, y, z = tension * x, tension * y, tension * z
        a[N_FORCE] += x
        a[N_FORCE + 1] += y
        a[N_FORCE + 2] += z + half
        b[N_FORCE] -= x
        b[N_FORCE + 1] -= y
        b[N_FORCE + 2] -= z - half


@device_function
def _node_tangent(nodes: Floats, i: int, first: int, last: int) -> tuple[float, float, float, float]:
    """Return the tangent at a node, and the submerged fraction of the two half segments that belong to the node."""
    x = y = z = wet = 0.0
    for k in range(max(i - 1, first), min(i + 1, last)):
        x += nodes[k, N_DIRECTION]
        y += nodes[k, N_DIRECTION + 1]
        z += nodes[k, N_DIRECTION + 2]
        wet += 0.5 * nodes[k, N_WET_SHARE]
    by = 1.0 / max(math.sqrt(x * x + y * y + z * z), 1e-12)
    return x * by, y * by, z * by, wet


@device_function
def _step_inner_nodes(nodes: Floats, line: Floats, ints: Ints, dt: float) -> None:
    """Advance the inner nodes of a line (all nodes except its two ends) by one substep."""
    first, last = ints[I_FIRST], ints[I_FIRST] + ints[I_SEGMENTS]
    for i in range(first + 1, last):
        n = nodes[i]
        tx, ty, tz, wet = _node_tangent(nodes, i, first, last)
        mass, added, water = line[L_MASS], wet * line[L_ADDED], wet * line[L_DISPLACED_MASS]
        px, py, pz = n[N_WATER_ACCELERATION], n[N_WATER_ACCELERATION + 1], n[N_WATER_ACCELERATION + 2]
        along = px * tx + py * ty + pz * tz
        fx = n[N_FORCE] + (water + added) * px - added * along * tx
        fy = n[N_FORCE + 1] + (water + added) * py - added * along * ty
        fz = n[N_FORCE + 2] + (water + added) * pz - added * along * tz
        vx, vy, vz = n[N_V], n[N_V + 1], n[N_V + 2]
        wx, wy, wz = n[N_WATER_VELOCITY], n[N_WATER_VELOCITY + 1], n[N_WATER_VELOCITY + 2]
        f_t, v_t, w_t = fx * tx + fy * ty + fz * tz, vx * tx + vy * ty + vz * tz, wx * tx + wy * ty + wz * tz
        ux, uy, uz = wx - w_t * tx - vx + v_t * tx, wy - w_t * ty - vy + v_t * ty, wz - w_t * tz - vz + v_t * tz
        d_t = wet * line[L_TANGENTIAL_DRAG] * abs(w_t - v_t) * dt
        d_n = wet * line[L_NORMAL_DRAG] * math.sqrt(ux * ux + uy * uy + uz * uz) * dt
        v_t1 = (mass * v_t + dt * f_t + d_t * w_t) / (mass + d_t)
        m = mass + added
        by = 1.0 / (m + d_n)
        fx, fy, fz = fx - f_t * tx, fy - f_t * ty, fz - f_t * tz
        vx1 = v_t1 * tx + (m * (vx - v_t * tx) + dt * fx + d_n * (wx - w_t * tx)) * by
        vy1 = v_t1 * ty + (m * (vy - v_t * ty) + dt * fy + d_n * (wy - w_t * ty)) * by
        vz1 = v_t1 * tz + (m * (vz - v_t * tz) + dt * fz + d_n * (wz - w_t * tz)) * by
        n[N_ON_BED] = 0.0
        most = (n[N_BED] - n[N_P + 2]) / dt
        if vz1 > most:
            most = max(most, -BED_EXIT_SPEED)
            stopped = max(vz1 - most, 0.0)
            vz1, n[N_ON_BED] = min(vz1, most), 1.0
            level = math.sqrt(vx1 * vx1 + vy1 * vy1)
            keep = max(1.0 - line[L_FRICTION] * stopped / max(level, 1e-12), 0.0)
            vx1, vy1 = keep * vx1, keep * vy1
        n[N_V], n[N_V + 1], n[N_V + 2] = flush(vx1), flush(vy1), flush(vz1)
        n[N_P] += dt * vx1
        n[N_P + 1] += dt * vy1
        n[N_P + 2] += dt * vz1


@device_function
def _drag_at_end(nodes: Floats, line: Floats, ints: Ints, i: int) -> None:
    """Add the drag of the half segment at an end of a line to the force on the node at that end."""
    n = nodes[i]
    tx, ty, tz, wet = _node_tangent(nodes, i, ints[I_FIRST], ints[I_FIRST] + ints[I_SEGMENTS])
    ux, uy, uz = (
        n[N_WATER_VELOCITY] - n[N_V],
        n[N_WATER_VELOCITY + 1] - n[N_V + 1],
        n[N_WATER_VELOCITY + 2] - n[N_V + 2],
    )
    u_t = ux * tx + uy * ty + uz * tz
    ux, uy, uz = ux - u_t * tx, uy - u_t * ty, uz - u_t * tz
    across = wet * line[L_NORMAL_DRAG] * math.sqrt(ux * ux + uy * uy + uz * uz)
    along = wet * line[L_TANGENTIAL_DRAG] * abs(u_t) * u_t
    n[N_FORCE] += across * ux + along * tx
    n[N_FORCE + 1] += across * uy + along * ty
    n[N_FORCE + 2] += across * uz + along * tz


@device_function
def _apply_end_force(end: Floats, node: Floats, o: Floats, params: Floats, dt: float) -> None:
    """Update the velocity of a body according to the force that the end of a line exerts on it."""
    x, y, z = rotation.to_world(
        o[B_AFTER + 3],
        -o[B_AFTER + 4],
        -o[B_AFTER + 5],
        -o[B_AFTER + 6],
        node[N_FORCE],
        node[N_FORCE + 1],
        node[N_FORCE + 2],
    )
    ax, ay, az = end[E_AT], end[E_AT + 1], end[E_AT + 2]
    k, m, n = ay * z - az * y, az * x - ax * z, ax * y - ay * x
    _apply_wrench(o, params, Wrench(x, y, z, k, m, n), dt)
    o[B_WRENCH_SUM] += x
    o[B_WRENCH_SUM + 1] += y
    o[B_WRENCH_SUM + 2] += z
    o[B_WRENCH_SUM + 3] += k
    o[B_WRENCH_SUM + 4] += m
    o[B_WRENCH_SUM + 5] += n


@device_function
def _apply_wrench(o: Floats, params: Floats, w: Wrench, dt: float) -> None:
    """Apply a force and a moment to a body for a given time."""
    for i in range(6):
        row = P.MASS_INVERSE + 6 * i
        o[B_DEPARTURE_VELOCITY + i] += dt * (
            params[row] * w.x
            + params[row + 1] * w.y
            + params[row + 2] * w.z
            + params[row + 3] * w.k
            + params[row + 4] * w.m
            + params[row + 5] * w.n
        )


@device_function
def _substep(f: BodyArrays, rig: LineArrays, g: Ints, s: float, dt: float, h: float, tick: int) -> None:
    """Advance a group of connected lines and bodies by one substep; ``s`` is the fraction of the tick at which the
    substep ends.
    """
    for m in range(g[G_LINE], g[G_LINES]):
        if rig.ints[m, I_BOTH_PRESENT]:
            _segment_forces(rig.nodes, rig.lines[m], rig.ints[m], tick)
            _step_inner_nodes(rig.nodes, rig.lines[m], rig.ints[m], dt)
    for k in range(g[G_BODY], g[G_BODIES]):
        slot, o = f.slots[rig.rows[k]], rig.bodies[k]
        if slot >= 0:  # force that already acted in the body's own step
            b, l = f.blocks[slot // LANES], slot % LANES
            held = Wrench(
                b[B.LINE_WRENCH * LANES + l],
                b[(B.LINE_WRENCH + 1) * LANES + l],
                b[(B.LINE_WRENCH + 2) * LANES + l],
                b[(B.LINE_WRENCH + 3) * LANES + l],
                b[(B.LINE_WRENCH + 4) * LANES + l],
                b[(B.LINE_WRENCH + 5) * LANES + l],
            )
            _apply_wrench(o, f.params[f.block_heads[slot // LANES, B.HEAD_MODEL]], held, -dt)
    for m in range(g[G_LINE], g[G_LINES]):
        ints = rig.ints[m]
        for j in range(2):
            k = ints[I_BODY + j]
            if ints[I_BOTH_PRESENT] and k >= 0:
                i = ints[I_FIRST] + j * ints[I_SEGMENTS]
                _drag_at_end(rig.nodes, rig.lines[m], ints, i)
                params = f.params[f.block_heads[f.slots[rig.rows[k]] // LANES, B.HEAD_MODEL]]
                _apply_end_force(rig.ends[2 * m + j], rig.nodes[i], rig.bodies[k], params, dt)
    for k in range(g[G_BODY], g[G_BODIES]):
        for i in range(6):
            rig.bodies[k, B_DEPARTURE + i] += dt * rig.bodies[k, B_DEPARTURE_VELOCITY + i]
    for m in range(g[G_LINE], g[G_LINES]):
        ints = rig.ints[m]
        for j in range(2):
            k = ints[I_BODY + j]
            if ints[I_BOTH_PRESENT] and k >= 0:
                i = ints[I_FIRST] + j * ints[I_SEGMENTS]
                _place_end(rig.ends[2 * m + j], rig.nodes[i], s, h)
                _displace_end(rig.ends[2 * m + j], rig.nodes[i], rig.bodies[k])


@device_function
def _store_body_motion(f: BodyArrays, rig: LineArrays, k: int, steps: int) -> None:
    """Store the body state that results from the body's own motion and its lines. The mean line force acts in the next
    step.
    """
    slot, o = f.slots[rig.rows[k]], rig.bodies[k]
    b, l = f.blocks[slot // LANES], slot % LANES
    total = 0.0
    for i in range(18):
        total += o[B_DEPARTURE_VELOCITY + i]
    if not math.isfinite(total):
        return
    w, x, y, z = o[B_AFTER + 3], o[B_AFTER + 4], o[B_AFTER + 5], o[B_AFTER + 6]
    dx, dy, dz = rotation.to_world(w, x, y, z, o[B_DEPARTURE], o[B_DEPARTURE + 1], o[B_DEPARTURE + 2])
    b[B.PX * LANES + l] += dx
    b[B.PY * LANES + l] += dy
    b[B.PZ * LANES + l] += dz
    p, q, s = 0.5 * o[B_DEPARTURE + 3], 0.5 * o[B_DEPARTURE + 4], 0.5 * o[B_DEPARTURE + 5]
    qw, qx, qy, qz = (
        w - x * p - y * q - z * s,
        x + w * p + y * s - z * q,
        y + w * q + z * p - x * s,
        z + w * s + x * q - y * p,
    )
    by = 1.0 / math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    b[B.QW * LANES + l], b[B.QX * LANES + l] = qw * by, qx * by
    b[B.QY * LANES + l], b[B.QZ * LANES + l] = qy * by, qz * by
    for i in range(6):
        b[(B.NU + i) * LANES + l] += o[B_DEPARTURE_VELOCITY + i]
        b[(B.LINE_WRENCH + i) * LANES + l] = o[B_WRENCH_SUM + i] / steps


@device_function
def _step_group(f: BodyArrays, rig: LineArrays, g: Ints, h: float, tick: int) -> None:
    """Advance a group of lines by the tick in which its bodies moved."""
    total = 0.0
    for k in range(g[G_BODY], g[G_BODIES]):
        if f.slots[rig.rows[k]] >= 0:
            for i in range(B_DEPARTURE_VELOCITY, BODY):
                rig.bodies[k, i] = 0.0
            for i in range(B.RIGID_ROWS):
                total += rig.bodies[k, B_AFTER + i]
    if not math.isfinite(total):
        return  # the body will be held at its previous state
    for m in range(g[G_LINE], g[G_LINES]):
        for j in range(2):
            k = rig.ints[m, I_BODY + j]
            if rig.ints[m, I_BOTH_PRESENT] and k >= 0:
                _end_motion(rig.ends[2 * m + j], rig.bodies[k], B_BEFORE, E_P0, E_V0)
                _end_motion(rig.ends[2 * m + j], rig.bodies[k], B_AFTER, E_P1, E_V1)
    steps = g[G_STEPS]
    for i in range(steps):
        _substep(f, rig, g, (i + 1.0) / steps, h / steps, h, tick)
    for k in range(g[G_BODY], g[G_BODIES]):
        if f.slots[rig.rows[k]] >= 0:
            _store_body_motion(f, rig, k, steps)


@device_function
def advance(f: BodyArrays, rig: LineArrays, h: float, tick: int) -> None:
    """Advance all lines by the tick in which the bodies moved, and compute the pull of the lines."""
    _store_bodies(f, rig, B_AFTER)
    for i in range(rig.groups.shape[0]):
        _step_group(f, rig, rig.groups[i], h, tick)
