"""Viscous forces on a hull, estimated from its mesh.

Axial drag: friction on the wetted surface (ITTC 1957) multiplied by Hoerner's form factor, plus the pressure drag of
blunt ends. The section areas and the ends decide between three regimes (`streamlined`, `blunt ends`, `bluff`).

Drag across the axis: each strip of the hull has the 2-D drag coefficient of its section, multiplied by a factor for the
finite length. Rotation: every panel has a pressure drag proportional to the square of the flow normal to it. The
coefficients of the panels follow from the strips, so sway and heave agree with the strips exactly. A body of revolution
has no pressure drag about its own axis, and a sphere has none about any axis.

Body lift: the nose of a slender hull carries the lift of potential flow, up to the section where the flow separates
(Hopkins, NACA RM A51C14, 1951; USAF DATCOM 4.2.1.1). The Coriolis matrix of the added mass contains the lift of
potential flow on the whole hull, and with it the Munk moment. The lift matrix therefore contains the difference only.

All coefficients have the signs of a models file: tau = -D_L nu - D_Q abs(nu) nu - L abs(u) nu.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_server.dynamics.cross_flow_sections import hoerner
from wavesim_server.friction import DENSITY, VISCOSITY, ittc_line, streamlined_form_factor
from wavesim_server.spheroid import spheroid_added_mass
from wavesim_studies.from_mesh.hull_sections import STATIONS, HullPanels, HullSections, cut, panels
from wavesim_studies.from_mesh.section_drag import (
    base_drag,
    ellipsoid_drag,
    head_drag,
    section_drag,
    span_factor,
)
from wavesim_world.hull import Hull

TURBULENT = 5e5  #: Reynolds number above which the friction across the axis and in rotation follows the ITTC line
LATERAL_SHARE = 0.25  #: speed of sway, heave and the tips in rotation, divided by the design speed
FLAT_COSINE, BLUNT_SINE = 0.94, 0.574  #: faces within 20 deg of the bow direction; tails steeper than 35 deg
SLENDER, SHORT = 3.0, 1.5  #: slenderness from which the lift is that of a slender body, and from which there is any
#: terms below this share of the largest ones are rounding errors of the mesh
NEGLIGIBLE = 2e-3
#: relative standard deviations, with the reasons in `REASONS`
STREAMLINED, BLUNT, BLUFF, CROSS, SURFACE_CROSS, TURN, COUPLING, LIFT, SHORT_LIFT, LINEAR = (
    *(0.15, 0.30, 0.25, 0.30, 0.35, 0.40, 0.60, 0.40, 0.60, 0.50),
)
REASONS = {
    "streamlined": f"axial drag {STREAMLINED:.0%}: roughness, small fittings and the place of transition",
    "blunt ends": f"axial drag {BLUNT:.0%}: scatter of base drag and of the drag of blunt heads in Hoerner's figures",
    "bluff": f"axial drag {BLUFF:.0%}: scatter of the coefficients of short bodies, and the drag crisis",
    "cross": f"drag in sway and heave {CROSS:.0%}: corners, Reynolds number and the ends of the hull",
    "surface": f"drag in sway and heave {SURFACE_CROSS:.0%}: Hoerner's curve applies to long hulls without keels",
    "turn": f"drag in rotation {TURN:.0%}, coupling terms {COUPLING:.0%}: coefficients of steady flow along the axes",
    "lift": f"body lift {LIFT:.0%}: the section at which the flow separates",
    "short lift": f"body lift {SHORT_LIFT:.0%}: the hull is too short for the theory of slender bodies",
    "linear": f"linear drag {LINEAR:.0%}: laminar or turbulent boundary layer",
}


class DragEstimate(NamedTuple):
    """Viscous forces of a model about the origin of the mesh, in SI units.

    ``linear``, ``quadratic`` and ``lift`` are the matrices (6, 6) of <linear-drag>, <quadratic-drag> and <lift>. The
    matrices (6, 6) ``..._deviation`` contain the relative standard deviation of each entry. ``coriolis_without`` is the
    attribute of the model with this name. ``regime`` is `streamlined`, `blunt ends`, `bluff` or `open frame`. ``wetted``
    and ``frontal`` are areas in m2, and ``drag`` is the axial drag in N at the design speed. ``notes`` state the source
    of the values and the reasons for the deviations.
    """

    linear: Array
    quadratic: Array
    lift: Array
    linear_deviation: Array
    quadratic_deviation: Array
    lift_deviation: Array
    coriolis_without: str
    regime: str
    wetted: float
    frontal: float
    drag: float
    notes: tuple[str, ...]


class HullFlow(NamedTuple):
    """Water and speed: density in kg/m3, design speed in m/s, and the share (3,) of the undisturbed drag along each
    axis (below 1 for a part behind another one).
    """

    density: float = DENSITY
    speed: float = 1.0
    exposure: Sequence[float] = (1.0, 1.0, 1.0)


def resistance(
    triangles: Array, design_speed: float, density: float = DENSITY, surface: float | None = None
) -> DragEstimate:
    """Return the viscous forces on a closed hull, triangles (n, 3, 3) in m and body axes, about the origin.

    ``design_speed`` is in m/s. ``surface`` is the z of the waterline in m for a floating hull; None means submerged.
    Raises ValueError if the surface is not closed, is inside out, or does not reach below the waterline.
    """
    hull, level = Hull(triangles), 0.0
    t = hull.triangles
    if surface is not None:
        t, level = hull.wetted_triangles((0.0, 0.0, 1.0), surface), surface
        if not len(t):
            raise ValueError(f"no part of the hull is below the waterline at z = {surface:g} m")
    shape = BodyDrag(t - np.array([0.0, 0.0, level]), HullFlow(density, design_speed), floating=surface is not None)
    linear, quadratic = shape.matrices(np.array([0.0, 0.0, level]))
    lift = shape.lift()
    deviation = np.full((6, 6), COUPLING)
    cross = CROSS if surface is None else SURFACE_CROSS
    axial = {"streamlined": STREAMLINED, "blunt ends": BLUNT, "bluff": BLUFF}[shape.regime]
    np.fill_diagonal(deviation, (axial, cross, cross, TURN, TURN, TURN))
    slender = shape.thickness <= 1.0 / SLENDER
    drag = float(linear[0, 0] * design_speed + quadratic[0, 0] * design_speed**2)
    reasons = [shape.regime, "cross" if surface is None else "surface", "turn", "linear"]
    return DragEstimate(
        linear,
        quadratic,
        lift,
        np.full((6, 6), LINEAR),
        deviation,
        np.full((6, 6), LIFT if slender else SHORT_LIFT),
        "",
        shape.regime,
        shape.wetted,
        shape.sections.largest,
        drag,
        (
            *shape.notes(),
            *(REASONS[r] for r in [*reasons, *([("lift" if slender else "short lift")] if lift.any() else [])]),
        ),
    )


class BodyDrag:
    """Drag of one body. The long axis of the body is its x axis; a floating body is cut off at z = 0."""

    def __init__(self, triangles: Array, flow: HullFlow, floating: bool = False, stations: int = STATIONS) -> None:
        self.flow, self.floating = flow, floating
        self.sections: HullSections = cut(triangles, stations)
        self.panels: HullPanels = panels(triangles, float(np.ptp(triangles.reshape(-1, 3), axis=0).max()) / stations)
        self.wetted = float(self.panels.area.sum())
        s = self.sections
        self.thickness = (1.4142135623730951 if floating else 1.0) * s.diameter / s.length  # with the mirror image
        facing = self.panels.normal[:, 0] * self.panels.area / s.largest
        self.flat = min(float(facing[self.panels.normal[:, 0] > FLAT_COSINE].sum()), 1.0)
        self.blunt = min(float(-facing[self.panels.normal[:, 0] < -BLUNT_SINE].sum()), 1.0)
        self.friction = ittc_line(flow.speed * max(s.length, s.diameter) / VISCOSITY)
        self.pressure = self._pressure_drag()

    @property
    def regime(self) -> str:
        if self.thickness > 0.4:
            return "bluff"
        return "blunt ends" if head_drag(self.flat) > 0.02 or self.blunt > 0.1 else "streamlined"

    @property
    def form_factor(self) -> float:
        """Friction with form drag, divided by friction alone: limited to the bodies that the formula applies to."""
        return streamlined_form_factor(min(self.thickness, 0.4))

    def levers(self) -> Array:
        """Return the typical lever (6,) in m of the forces in each motion, and 1 for translations."""
        s = self.sections
        return np.array([1.0, 1.0, 1.0, 0.5 * max(s.beam.max(), s.height.max()), 0.5 * s.length, 0.5 * s.length])

    def _pressure_drag(self) -> float:
        """Return the pressure drag coefficient along the axis, based on the largest section area, in addition to the
        form factor.
        """
        skin = self.friction * self.wetted / self.sections.largest
        head = head_drag(self.flat)
        ends = head + self.blunt * base_drag(skin / max(self.blunt, 1e-9))
        share = float(np.clip(1.0 / self.thickness - 2.0, 0.0, 1.0))  # 0 for bluff bodies, 1 for slender ones
        round_body = max(ellipsoid_drag(self.thickness, self.friction) - skin * self.form_factor, 0.0)
        square = min(head / 0.8, 1.0)
        bluff = square * ends + (1.0 - square) * round_body
        return share * ends + (1.0 - share) * bluff

    def cross_flow(self) -> tuple[Array, Array]:
        """Return the drag area (n,) of each cell in sway and in heave, divided by its length, in m."""
        s = self.sections
        if self.floating:
            wide = np.where(s.height > 0.0, s.height, 1.0)
            drag = hoerner(np.asarray(0.5 * s.beam / wide))
            side = s.height * drag * span_factor(0.5 * s.length / s.height.max())
            # only the lower face is in the water
            under = 0.5 * s.beam * section_drag(2.0 * s.height, s.beam, s.fullness())
            return side, under * span_factor(s.length / s.beam.max())
        full = s.fullness()
        side = s.height * section_drag(s.beam, s.height, full) * span_factor(s.length / s.height.max())
        under = s.beam * section_drag(s.height, s.beam, full) * span_factor(s.length / s.beam.max())
        return side, under

    def coefficients(self) -> Array:
        """Return the pressure coefficients (n, 3) of the panels along the axes of the body."""
        p, s = self.panels, self.sections
        found = np.zeros((len(p.area), 3))
        cubed = np.abs(p.normal) ** 3 * p.area[:, None]
        total = float(cubed[:, 0].sum())
        if total > 0.0:
            found[:, 0] = self.pressure * s.largest / total
        cell = s.cell(p.centre[:, 0])
        for axis, strips in enumerate(self.cross_flow(), 1):
            raw = np.bincount(cell, cubed[:, axis], len(s.x))
            wanted = strips * s.step
            # a cell without panels (a long facet) leaves its drag to the others
            found[:, axis] = np.where(raw > 0.0, wanted / np.where(raw > 0.0, raw, 1.0), 0.0)[cell]
            sum_of_cells = float(wanted[raw > 0.0].sum())
            if sum_of_cells > 0.0:
                found[:, axis] *= float(wanted.sum()) / sum_of_cells
        return np.asarray(found * np.asarray(self.flow.exposure))

    def matrices(self, origin: Array, frame: Array | None = None) -> tuple[Array, Array]:
        """Return the linear and the quadratic drag matrix about the origin of the vehicle.

        ``origin`` is added to the positions of the panels. The rows of ``frame`` (3, 3) are the axes of the body in axes
        of the vehicle; without it, both have the same axes.
        """
        axes = np.eye(3) if frame is None else frame
        p, half = self.panels, 0.5 * self.flow.density
        position = p.centre @ axes + origin
        pressure, lateral = self.coefficients(), LATERAL_SHARE * self.flow.speed
        s = self.sections
        small = float(np.sqrt(max(_mean(s.beam), 1e-9) * max(_mean(s.height), 1e-9)))
        linear, quadratic = np.zeros((6, 6)), np.zeros((6, 6))
        for i in range(6):
            unit = np.eye(6)[i]
            motion = np.broadcast_to(unit[:3], position.shape) + np.cross(unit[3:], position)
            v = motion @ axes.T
            normal = (v * p.normal).sum(axis=1)
            along = v - normal[:, None] * p.normal
            fast = np.sqrt((along**2).sum(axis=1))
            forces = half * pressure * (np.abs(normal) * normal * p.area)[:, None] * p.normal
            # along its axis, the body has the friction of its length; its wetted area counts in full
            axial = i < 3 and abs(float(axes[0, i])) > 0.7
            speed = self.flow.speed if axial else lateral
            reynolds = speed * (max(s.length, s.diameter) if axial else small) / VISCOSITY
            law = ittc_line if axial or reynolds > TURBULENT else laminar_friction
            full, slow = law(reynolds), law(0.5 * reynolds)
            skin = p.area[:, None] * along * half * np.mean(self.flow.exposure)
            curved, steady = fast[:, None] * skin, speed * skin
            if axial:
                wanted = half * np.mean(self.flow.exposure) * self.form_factor * self.wetted
                curved *= wanted / max(float((curved * v).sum()), 1e-12)
                steady *= wanted * speed / max(float((steady * v).sum()), 1e-12)
            # the same friction at the given speed and at half of it
            curved, steady = forces + (2.0 * full - slow) * curved, (slow - full) * steady
            quadratic[:, i], linear[:, i] = (_resultant(f @ axes, position, i) for f in (curved, steady))
        return _clean(linear, self.levers(), 1), _clean(quadratic, self.levers(), 2)

    def lift(self) -> Array:
        """Return the lift matrix (6, 6): the difference between viscous flow and potential flow."""
        found = np.zeros((6, 6))
        s = self.sections
        if self.thickness > 1.0 / SHORT:
            return found
        k1, k2, _ = spheroid_added_mass(1.0 / self.thickness)
        # the section areas fall towards the stern: the steepest fall is that of a transom, if there is one
        fall = np.diff(np.concatenate([[0.0], s.area]))[: len(s.x) // 2]
        steepest = s.first + s.step * int(np.argmax(fall))
        bow = s.first + s.length
        separation = bow - s.length * (0.378 + 0.527 * (bow - steepest) / s.length)
        # the mirror image of a floating hull doubles its height; half of the force acts on the hull
        planes = [(s.height, 1, 5, 1.0), (s.beam, 2, 4, -1.0)]
        if self.floating:
            planes = [(np.sqrt(2.0) * s.height, 1, 5, 1.0)]
        for breadth, y, n, sign in planes:
            m = self.flow.density * (k2 - k1) * 0.25 * np.pi * breadth**2
            aft = s.x < separation
            x = np.concatenate([[s.first], s.x[aft], [separation]])
            m = np.concatenate([[0.0], m[aft], [float(np.interp(separation, s.x, m))]])
            middle = 0.5 * (x[1:] + x[:-1])
            found[y, y] = m[-1]
            found[y, n] = sign * m[-1] * x[-1]
            found[n, y] = sign * float((middle * np.diff(m)).sum())
            found[n, n] = float((middle * np.diff(m * x)).sum())
        return _clean(found, self.levers(), 1)

    def notes(self) -> list[str]:
        s, u = self.sections, self.flow.speed
        found = [
            f"axial drag: {self.regime} (slenderness {1.0 / self.thickness:.3g}), ITTC 1957 at {u:g} m/s on "
            f"{self.wetted:.3g} m2, form factor {self.form_factor:.3g}, pressure drag coefficient {self.pressure:.3g} "
            f"on {s.largest:.3g} m2"
        ]
        side, under = self.cross_flow()
        area = [max(_mean(b) * s.length, 1e-12) for b in (s.height, s.beam)]
        found.append(
            f"cross-flow drag: strips, mean coefficient {_mean(side) * s.length / area[0]:.3g} in sway and "
            f"{_mean(under) * s.length / area[1]:.3g} in heave"
        )
        froude = u / np.sqrt(9.81 * s.length)
        if self.floating and froude > 0.25:
            found.append(f"the drag contains no wave resistance, which matters at this Froude number ({froude:.2f})")
        return found


def laminar_friction(reynolds: float) -> float:
    """Return the friction coefficient of a plate with a laminar boundary layer (Blasius)."""
    return 1.328 / math.sqrt(max(reynolds, 100.0))


def _mean(values: Array) -> float:
    return float(values.mean())


def _resultant(forces: Array, position: Array, motion: int) -> Array:
    """Return the force and the moment (6,). A translation produces drag only, without a force across it."""
    if motion < 3:
        forces = forces * np.eye(3)[motion]
    return np.concatenate([forces.sum(axis=0), np.cross(position, forces).sum(axis=0)])


def _clean(matrix: Array, levers: Array, power: int) -> Array:
    """Set entries off the diagonal to zero that are rounding errors of the mesh. ``levers`` (6,) contains 1 for each
    translation and the lever in m for each rotation; the forces are proportional to this power of the motion.
    """
    scaled = np.abs(matrix) / levers[:, None] / levers[None, :] ** power
    return np.where((scaled > NEGLIGIBLE * float(scaled.max())) | np.eye(6, dtype=bool), matrix, 0.0) + 0.0
