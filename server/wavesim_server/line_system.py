"""Lines in a run. They are read from the configuration, laid out when their bodies are added, and published in the
`lines` table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.algebra import dot, interpolate, matvec, norm
from wavesim_sdk.arrays import Floats
from wavesim_sdk.tables import MAX_SEGMENTS
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import lines as w
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_world.config.lines import STRETCHED, Line
from wavesim_world.config.validation import fail_at
from wavesim_world.config.world import World

MAX_SUBSTEPS = 1000  #: maximum number of substeps per tick
STABILITY_MARGIN = 0.9  #: substep as a fraction of the largest stable step
CURVE_POINTS = 64  #: number of points on the curve along which a line is laid out
BedDepthFunction = Callable[[Any, Any], Any]  #: function that returns the depth of the bed at (north, east)


class LineSystem:
    """All lines in a run. ``rows`` maps the names of configured bodies to rows; ``params`` returns the model parameters
    for a row.
    """

    def __init__(
        self,
        declared: Sequence[Line],
        rows: Mapping[str, int],
        params: Callable[[int], Floats],
        world: World,
        step: float,
        bed: Callable[[], BedDepthFunction],
    ) -> None:
        self.declared = tuple(declared)
        self.bed = bed() if declared else None
        self._step_ns = round(step * 1e9)
        ends = [[rows[e.body] if e.body else -1 for e in line.end] for line in declared]
        self._order, groups, bodies = _group_lines(ends)
        at_bodies = [row for pair in ends for row in pair if row >= 0]
        first = np.cumsum([0, *(self.declared[k].segments + 1 for k in self._order)])
        m = len(declared)
        self.arrays = w.LineArrays(
            np.zeros((int(first[-1]), w.NODE)),
            np.zeros((m, w.LINE)),
            np.zeros((m, w.LINE_INTS), np.int64),
            np.zeros((2 * m, w.END)),
            np.zeros((len(bodies), w.BODY)),
            np.array(bodies, np.int64),
            np.array(groups, np.int64).reshape(-1, w.GROUP),
            np.zeros(int(first[-1]), np.int64),
        )
        self._reported = np.zeros(m, bool)  # breaks that have been reported
        self._present_rows: set[int] = set()  # rows that hold a body
        for k, number in enumerate(self._order):
            line, ints = self.declared[number], self.arrays.ints[k]
            self.arrays.lines[k] = _line_row(line, world)
            ints[w.I_FIRST], ints[w.I_SEGMENTS], ints[w.I_BROKEN_SEGMENT] = first[k], line.segments, -1
            for j, (end, row) in enumerate(zip(line.end, ends[number], strict=True)):
                ints[w.I_BODY + j] = bodies.index(row) if row >= 0 else -1
                self.arrays.ends[2 * k + j, w.E_AT : w.E_AT + 3] = end.position
            yields = [
                _point_mobility(params(row), e.position) * at_bodies.count(row) if row >= 0 else 0.0
                for e, row in zip(line.end, ends[number], strict=True)
            ]
            needed = _substeps(line, self.arrays.lines[k], yields, step)
            group = next(g for g in self.arrays.groups if g[w.G_LINE] <= k < g[w.G_LINES])
            group[w.G_STEPS] = max(group[w.G_STEPS], line.substeps or needed)

    def has_lines(self, row: int) -> bool:
        """Return whether any line is attached to the body in a row."""
        return bool((self.arrays.rows == row).any())

    # -- bodies enter and leave -----------------------------------------------------------------

    def enter(self, row: int, fleet: FleetDynamics) -> None:
        """Lay out the lines of a body that has been added or moved."""
        self._present_rows.add(row)
        for k in self._lines_of(row):
            if all(
                b < 0 or int(self.arrays.rows[b]) in self._present_rows
                for b in self.arrays.ints[k, w.I_BODY : w.I_BODY + 2]
            ):
                self._lay_line(k, fleet)
        if self.has_lines(row):
            fleet.body(row)[B.LINE_WRENCH : B.LINE_WRENCH + 6] = 0.0

    def lay_anchored_lines(self, fleet: FleetDynamics) -> None:
        """Lay out the lines between two anchors. These lines exist from the start."""
        for k, ints in enumerate(self.arrays.ints):
            if (ints[w.I_BODY : w.I_BODY + 2] < 0).all():
                self._lay_line(k, fleet)

    def leave(self, row: int) -> None:
        """Remove the lines of a body that is being removed."""
        self._present_rows.discard(row)
        for k in self._lines_of(row):
            self.arrays.ints[k, w.I_BOTH_PRESENT] = 0

    def _lines_of(self, row: int) -> list[int]:
        body = np.flatnonzero(self.arrays.rows == row)
        if not len(body):
            return []
        return np.flatnonzero((self.arrays.ints[:, w.I_BODY : w.I_BODY + 2] == body[0]).any(axis=1)).tolist()

    def _lay_line(self, k: int, fleet: FleetDynamics) -> None:
        """Lay out a line above the bed, either as a parabola whose arc length is the length of the line, or as a
        straight line.
        """
        ints, line = self.arrays.ints[k], self.declared[self._order[k]]
        places, speeds = zip(*(self._end_motion(k, j, fleet) for j in range(2)), strict=True)
        first, n = int(ints[w.I_FIRST]), line.segments
        nodes = self.arrays.nodes[first : first + n + 1]
        nodes[:] = 0.0
        heavy = self.arrays.lines[k, w.L_WEIGHT] >= self.arrays.lines[k, w.L_DISPLACED_WEIGHT]
        points = _parabola_nodes(places[0], places[1], line.length, n, 1.0 if heavy else -1.0)
        between = slice(1, n)
        assert self.bed is not None
        points[between, 2] = np.minimum(points[between, 2], self.bed(points[between, 0], points[between, 1]))
        if not heavy:
            points[between, 2] = np.maximum(points[between, 2], 0.0)
        share = np.linspace(0.0, 1.0, n + 1)[:, None]
        nodes[:, w.N_P : w.N_P + 3] = points
        nodes[:, w.N_V : w.N_V + 3] = (1.0 - share) * speeds[0] + share * speeds[1]
        ints[w.I_BOTH_PRESENT], ints[w.I_BROKEN_SEGMENT] = 1, -1
        self._reported[k] = False

    def _end_motion(self, k: int, j: int, fleet: FleetDynamics) -> tuple[Floats, Floats]:
        """Return the position and velocity of a line's end in W."""
        body, place = int(self.arrays.ints[k, w.I_BODY + j]), self.arrays.ends[2 * k + j, w.E_AT : w.E_AT + 3]
        if body < 0:
            return place.copy(), np.zeros(3)
        b = fleet.body(int(self.arrays.rows[body]))
        R_WB = frames.rotation(b[B.QW : B.QW + 4])
        speed = b[B.NU : B.NU + 3] + np.cross(b[B.NU + 3 : B.NU + 6], place)
        return b[B.PX : B.PX + 3] + matvec(R_WB, place), matvec(R_WB, speed)

    def check_reach(self, row: int, position: Floats, q_WB: Floats, fleet: FleetDynamics) -> None:
        """Check that the lines of a body reach from its new position to their other ends.

        Raises ValueError if a line is too short to reach its other end.
        """
        for k in self._lines_of(row):
            line, ints = self.declared[self._order[k]], self.arrays.ints[k]
            mine = next(j for j in range(2) if ints[w.I_BODY + j] >= 0 and self.arrays.rows[ints[w.I_BODY + j]] == row)
            other = ints[w.I_BODY + 1 - mine]
            if other >= 0 and int(self.arrays.rows[other]) not in self._present_rows:
                continue
            place = position + matvec(frames.rotation(q_WB), self.arrays.ends[2 * k + mine, w.E_AT : w.E_AT + 3])
            away = float(norm(place - self._end_motion(k, 1 - mine, fleet)[0]))
            if away > STRETCHED * line.length:
                raise ValueError(
                    f"line '{line.name}' is {line.length:g} m long, but its ends would be {away:.4g} m apart"
                )

    # -- published results -----------------------------------------------------------------------

    def take_breaks(self) -> list[tuple[int, str, int, float]]:
        """Return the lines that have broken since the last call, in chronological order.

        Each item is (time in ns, name, row of an attached body or -1, tension in N).
        """
        if not self._order:
            return []
        found = []
        for k in np.flatnonzero((self.arrays.ints[:, w.I_BROKEN_SEGMENT] >= 0) & ~self._reported).tolist():
            ints = self.arrays.ints[k]
            rows = [int(self.arrays.rows[b]) for b in ints[w.I_BODY : w.I_BODY + 2] if b >= 0]
            found.append(
                (
                    int(ints[w.I_BROKEN_TICK]),
                    self._order[k],
                    rows[0] if rows else -1,
                    float(self.arrays.lines[k, w.L_BROKEN_TENSION]),
                )
            )
            self._reported[k] = True
        return [(tick * self._step_ns, self.declared[k].name, row, load) for tick, k, row, load in sorted(found)]

    def publish(self, table: Any) -> None:
        """Fill the `lines` table in the order of the configuration."""
        nodes, ints = self.arrays.nodes, self.arrays.ints
        number = np.arange(MAX_SEGMENTS + 1)
        at_node = ints[:, w.I_FIRST, None] + np.minimum(number, ints[:, w.I_SEGMENTS, None])
        there = ints[:, w.I_BOTH_PRESENT] == 1
        is_node = (number <= ints[:, w.I_SEGMENTS, None]) & there[:, None]
        is_segment = is_node & (number < ints[:, w.I_SEGMENTS, None])
        tension = np.where(is_segment, nodes[at_node, w.N_TENSION], 0.0)
        places = np.where(is_node[:, :, None], nodes[at_node, w.N_P : w.N_P + 3], 0.0)
        lies = np.where(is_node, nodes[at_node, w.N_ON_BED], 0.0)
        rows = np.append(self.arrays.rows, -1)
        out = np.zeros(len(ints), table.dtype)
        out["present"], out["nodes"], out["broken"] = there, ints[:, w.I_SEGMENTS] + 1, ints[:, w.I_BROKEN_SEGMENT]
        out["name"] = [self.declared[k].name.encode() for k in self._order]
        out["first_body"], out["second_body"] = rows[ints[:, w.I_BODY]], rows[ints[:, w.I_BODY + 1]]
        out["tension"][:, 0] = tension[:, 0]
        out["tension"][:, 1] = np.take_along_axis(tension, ints[:, w.I_SEGMENTS, None] - 1, axis=1)[:, 0]
        out["greatest"] = tension.max(axis=1)
        out["on_bed"] = lies.sum(axis=1) * self.arrays.lines[:, w.L_LENGTH]
        out["nodes_W"] = places.reshape(out["nodes_W"].shape)
        table[: len(ints)][self._order] = out


def _group_lines(ends: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]], list[int]]:
    """Sort the lines so that those connected through bodies are adjacent and form a group.

    Returns the order of the lines, the groups, and the body rows sorted by group.
    """
    group = list(range(len(ends)))
    first: dict[int, int] = {}  # by body: group of the first line attached to it
    for k, pair in enumerate(ends):
        for row in pair:
            if row >= 0:
                known = first.setdefault(row, group[k])
                old = group[k]
                if known != old:
                    group = [min(known, old) if g in (known, old) else g for g in group]
                    first = {b: min(known, old) if g in (known, old) else g for b, g in first.items()}
    order: list[int] = []
    bodies: list[int] = []
    groups: list[list[int]] = []
    for g in sorted(set(group)):
        mine = [k for k in range(len(ends)) if group[k] == g]
        theirs = sorted({row for k in mine for row in ends[k] if row >= 0})
        groups.append([len(order), len(order) + len(mine), len(bodies), len(bodies) + len(theirs), 1])
        order += mine
        bodies += theirs
    return order, groups, bodies


def _line_row(line: Line, world: World) -> Floats:
    """Return the parameter row of a line."""
    segment = line.length / line.segments
    displaced = world.density * 0.25 * math.pi * line.diameter * line.diameter * segment
    o = np.zeros(w.LINE)
    o[w.L_LENGTH], o[w.L_EA] = segment, line.stiffness
    o[w.L_DAMPING] = line.damping * math.sqrt(line.stiffness * line.mass) * segment
    o[w.L_MASS], o[w.L_WEIGHT] = line.mass * segment, line.mass * segment * world.gravity
    o[w.L_DISPLACED_MASS], o[w.L_DISPLACED_WEIGHT] = displaced, displaced * world.gravity
    o[w.L_ADDED] = line.added_mass * displaced
    o[w.L_NORMAL_DRAG] = 0.5 * world.density * line.drag * line.diameter * segment
    o[w.L_TANGENTIAL_DRAG] = 0.5 * world.density * line.drag_along * math.pi * line.diameter * segment
    o[w.L_DIAMETER], o[w.L_FRICTION], o[w.L_BREAKING_LOAD] = line.diameter, line.friction, line.breaking
    return o


def _point_mobility(params: Floats, arm: Sequence[float]) -> float:
    """Return the maximum acceleration of a point on a body per unit force at that point, in 1/kg."""
    x, y, z = arm
    jacobian = np.hstack([np.eye(3), np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])])
    inverse = params[P.MASS_INVERSE : P.MASS_INVERSE + 36].reshape(6, 6)
    return sum(float(dot(jacobian[i], matvec(inverse, jacobian[i]))) for i in range(3))


def _substeps(line: Line, numbers: Floats, yields: Sequence[float], step: float) -> int:
    """Return the number of substeps per tick for which the stretching of a line is stable.

    Raises ConfigError if a line needs more substeps than are allowed or configured.

    No motion of the line is faster than the oscillation of a single segment on its own. Half the mass of an inner node
    belongs to each of its two segments.
    """
    stiffness = numbers[w.L_EA] / numbers[w.L_LENGTH]
    shares = [2.0 / numbers[w.L_MASS]] * (2 * line.segments)
    shares[0], shares[-1] = yields
    fastest = math.sqrt(stiffness * max(a + b for a, b in zip(shares[::2], shares[1::2], strict=True)))
    if fastest == 0.0:  # one segment between two anchors
        return 1
    damped = float(0.5 * fastest * numbers[w.L_DAMPING] / numbers[w.L_EA])
    longest = STABILITY_MARGIN * 2.0 / fastest * (math.sqrt(1.0 + damped * damped) - damped)
    needed = math.ceil(float(step / longest))
    tick = f"a tick of {1e3 * step:g} ms"
    if needed > MAX_SUBSTEPS:
        fail_at(
            line.place,
            f"line '{line.name}': its stiffness needs {needed} substeps in {tick}; the maximum is {MAX_SUBSTEPS}. Divide the line into "
            f"fewer than {line.segments} segments, or reduce its stiffness or damping, or increase its mass",
        )
    if 0 < line.substeps < needed:
        fail_at(
            line.place,
            f"line '{line.name}': with substeps=\"{line.substeps}\" the integration is unstable; the line needs {needed} substeps in {tick} (0 selects "
            "the number automatically)",
        )
    return needed


def _parabola_nodes(first: Floats, second: Floats, length: float, segments: int, down: float) -> Floats:
    """Return nodes (segments + 1, 3) at equal steps along a parabola whose arc length is the length of the line.

    The nodes are on a straight line if the chord is as long as the line.
    """
    chord = second - first
    away = float(norm(chord))
    share = np.linspace(0.0, 1.0, segments + 1)
    if away >= 0.9999 * length or segments == 1:
        return first + share[:, None] * chord
    along = chord / max(away, 1e-9)
    aside = np.array([0.0, 0.0, down]) - down * along[2] * along
    if norm(aside) < 0.1:  # one end above the other: bow to the north
        aside = np.array([1.0, 0.0, 0.0]) - along[0] * along
    aside = aside / norm(aside)
    s = np.linspace(0.0, 1.0, CURVE_POINTS * 4 + 1)

    def curve(sag: float) -> Floats:
        return np.asarray(first + s[:, None] * chord + (4.0 * sag * s * (1.0 - s))[:, None] * aside)

    def passed(points: Floats) -> Floats:
        return np.append(0.0, np.cumsum(norm(np.diff(points, axis=0))))

    low, high = 0.0, length
    for _ in range(60):
        sag = 0.5 * (low + high)
        low, high = (sag, high) if passed(curve(sag))[-1] < length else (low, sag)
    points = curve(0.5 * (low + high))
    way = passed(points)
    return np.stack([interpolate(share * way[-1], way, points[:, k]) for k in range(3)], axis=1)
