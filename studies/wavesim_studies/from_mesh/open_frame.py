"""Open-frame vehicles: drag and added mass as the sum of their parts, with stated shielding.

A part in the wake of another one has less drag. The share of its area that another part covers follows from the meshes,
seen along each axis. The covered area keeps a share of its drag that grows with the gap (`WAKE_SHARE`). Both directions
of motion count equally. The user may state the exposure of a part instead.

Bodies that move one behind the other also share added mass: without gaps, n equal plates have the added mass of one.
The influence of one body on another decays with the gap (`INFLUENCE`). The water between two close bodies moves along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_server.friction import DENSITY
from wavesim_studies.from_mesh import added_mass_of_parts
from wavesim_studies.from_mesh.hull_sections import panels
from wavesim_studies.from_mesh.resistance import COUPLING, LIFT, LINEAR, BodyDrag, DragEstimate, HullFlow
from wavesim_world.hull_geometry import mass_properties

#: gap divided by the width of the part upstream, and the drag of the covered area divided by its drag without the part
#: upstream. Assumed, from the wakes of two cylinders and of two discs in tandem (Zdravkovich, J. Fluids Eng. 99, 1977;
#: Hoerner 1965, 8-1)
WAKE_GAP = np.array([0.0, 1.0, 3.0, 5.0, 10.0, 20.0])
WAKE_SHARE = np.array([0.0, 0.1, 0.3, 0.55, 0.75, 0.9])
#: decay of the mutual influence of two bodies in potential flow, per gap divided by width. Assumed
INFLUENCE = 1.5
PART_STATIONS = 12  #: sections of each part
RASTER = 64  #: cells along the longer side of the picture in which parts cover each other
FRAME_DRAG, FRAME_TURN = 0.40, 0.50  #: relative standard deviations of the drag
FRAME_MASS = 0.40  #: relative standard deviation of the added mass
#: the Munk moment of potential flow does not act on an open frame with its wake
CORIOLIS_WITHOUT = "15 16 26 35 51 53 61 62"


class OpenFramePart(NamedTuple):
    """Part of an open frame: its name and its closed mesh, triangles (n, 3, 3) in m and body axes.

    ``shape`` is `box`, `cylinder`, `ellipsoid`, or empty: then it follows from the volume. ``exposure`` (3,) is the share
    of the undisturbed drag along x, y and z; None means that it follows from the meshes.
    """

    name: str
    triangles: Array
    shape: str = ""
    exposure: tuple[float, float, float] | None = None


class PartEstimate(NamedTuple):
    """Values of one part: its shape, the exposure (3,) to the flow along x, y and z, its share (3,) of the total drag
    along them, and its added mass (3,) in kg.
    """

    name: str
    shape: str
    exposure: Array
    drag_share: Array
    added_mass: Array


class OpenFrameEstimate(NamedTuple):
    """Open frame: its drag, the added mass matrix (6, 6), the relative standard deviation of the latter, and its parts."""

    drag: DragEstimate
    added_mass: Array
    added_mass_deviation: float
    parts: tuple[PartEstimate, ...]


def open_frame(parts: Sequence[OpenFramePart], design_speed: float, density: float = DENSITY) -> OpenFrameEstimate:
    """Return the drag and the added mass of an open frame about the origin. Raises ValueError without parts."""
    if not parts:
        raise ValueError("an open frame needs at least one part with a closed mesh")
    covered, gaps, influence, between = _covers([p.triangles for p in parts])
    linear, quadratic, added = (np.zeros((6, 6)) for _ in range(3))
    found, drags, wetted = [], [], 0.0
    for k, part in enumerate(parts):
        exposure = 1.0 - covered[k] * (1.0 - np.interp(gaps[k], WAKE_GAP, WAKE_SHARE))
        if part.exposure is not None:
            exposure = np.asarray(part.exposure, float)
        frame = part_axes(part.triangles)
        local = part.triangles @ frame.T
        shares = np.abs(frame) @ exposure / np.abs(frame).sum(axis=1)
        body = BodyDrag(local, HullFlow(density, design_speed, tuple(shares)), stations=PART_STATIONS)
        more = body.matrices(np.zeros(3), frame)
        linear, quadratic = linear + more[0], quadratic + more[1]
        drags.append(np.diag(more[1])[:3])
        wetted += body.wetted
        shape, inertia = _inertia(part, local, density)
        kept = np.abs(frame) @ (1.0 / (1.0 + influence[k])) / np.abs(frame).sum(axis=1)
        water = density * np.abs(frame) @ between[k]
        inertia = inertia._replace(mass=inertia.mass * kept + water)
        low, high = local.reshape(-1, 3).min(axis=0), local.reshape(-1, 3).max(axis=0)
        matrix = added_mass_of_parts.about_origin(inertia, frame, 0.5 * (low + high) @ frame)
        added = added + matrix
        found.append(PartEstimate(part.name, shape, exposure, np.zeros(3), np.diag(matrix)[:3]))
    total = np.maximum(np.diag(quadratic)[:3], 1e-12)
    found = [p._replace(drag_share=d / total) for p, d in zip(found, drags, strict=True)]
    deviation = np.full((6, 6), COUPLING)
    np.fill_diagonal(deviation, [FRAME_DRAG] * 3 + [FRAME_TURN] * 3)
    points = np.concatenate([p.triangles.reshape(-1, 3) for p in parts])
    frontal = float(np.prod(np.ptp(points, axis=0)[1:]))
    notes = [
        f"open frame of {len(parts)} parts: each part has the drag of a separate body, multiplied by its exposure",
        *(
            f"{p.name}: {p.shape}, exposure " + " ".join(f"{e:.2f}" for e in p.exposure) + " along x, y, z"
            for p in found
        ),
        f"drag {FRAME_DRAG:.0%}, in rotation {FRAME_TURN:.0%}: the shielding between the parts is assumed",
        f"added mass {FRAME_MASS:.0%}: simple bodies; the influence of the parts on each other is assumed",
    ]
    drag = DragEstimate(
        _symmetric_zero(linear),
        _symmetric_zero(quadratic),
        np.zeros((6, 6)),
        np.full((6, 6), LINEAR),
        deviation,
        np.full((6, 6), LIFT),
        CORIOLIS_WITHOUT,
        "open frame",
        wetted,
        frontal,
        float(linear[0, 0] * design_speed + quadratic[0, 0] * design_speed**2),
        tuple(notes),
    )
    return OpenFrameEstimate(drag, 0.5 * (added + added.T), FRAME_MASS, tuple(found))


def part_axes(triangles: Array) -> Array:
    """Return the axes (3, 3) of a part as rows, the long one first. They are body axes, unless the box along the
    principal axes of the part is clearly smaller than the box along the body axes.
    """
    points = triangles.reshape(-1, 3)
    weight = np.sqrt((np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]) ** 2).sum(axis=1))
    middle = triangles.mean(axis=1)
    mean = (weight[:, None] * middle).sum(axis=0) / weight.sum()
    _, vectors = np.linalg.eigh(np.einsum("i,ij,ik->jk", weight, middle - mean, middle - mean))
    axes = np.eye(3)
    if np.prod(np.ptp(points @ vectors, axis=0)) < 0.85 * np.prod(np.ptp(points, axis=0)):
        axes = vectors.T
    order = np.argsort(-np.ptp(points @ axes.T, axis=0), kind="stable")
    axes = axes[order]
    return np.asarray(axes * np.array([[1.0], [1.0], [float(np.sign(np.linalg.det(axes)))]]))


def _inertia(part: OpenFramePart, local: Array, density: float) -> tuple[str, added_mass_of_parts.PartInertia]:
    size = np.ptp(local.reshape(-1, 3), axis=0)
    shape = part.shape
    if not shape:
        full = abs(mass_properties(part.triangles).volume) / float(np.prod(size))
        shape = "box" if full > 0.87 else "cylinder" if full > 0.65 else "ellipsoid"
    if shape == "cylinder":  # its axis is the side that differs most from the other two
        k = int(np.argmax([abs(np.log(size[(i + 1) % 3] / size[(i + 2) % 3])) < 0.2 for i in range(3)]))
        rolled = added_mass_of_parts.cylinder(np.roll(size, -k), density)
        return shape, added_mass_of_parts.PartInertia(np.roll(rolled.mass, k), np.roll(rolled.moment, k))
    return shape, getattr(added_mass_of_parts, shape)(size, density)


def _covers(meshes: Sequence[Array]) -> tuple[Array, Array, Array, Array]:
    """Return for each part and axis, as arrays (n, 3): the share of its area that other parts cover, the mean of both
    directions; the mean gap to the covering part divided by the width of that part; the sum of the influences of all
    other parts; and the volume in m3 of the water that moves with the part.
    """
    count = len(meshes)
    covered, gaps, influence, water = (np.zeros((count, 3)) for _ in range(4))
    points = np.concatenate([m.reshape(-1, 3) for m in meshes])
    cell = float(np.ptp(points, axis=0).max()) / RASTER
    low = points.min(axis=0)
    samples = [panels(m, cell).centre for m in meshes]
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        shape = tuple(int(np.ptp(points[:, k]) / cell) + 2 for k in (u, v))
        near, far = np.full((count, *shape), np.inf), np.full((count, *shape), -np.inf)
        for k, points_k in enumerate(samples):
            at = tuple(((points_k[:, c] - low[c]) / cell).astype(int) for c in (u, v))
            np.minimum.at(near[k], at, points_k[:, axis])
            np.maximum.at(far[k], at, points_k[:, axis])
        seen = np.isfinite(near)
        cells = seen.sum(axis=(1, 2))
        width = np.sqrt(cells) * cell
        for k in range(count):
            both = seen & seen[k]
            both[k] = False
            ahead = np.where(both, near[k] - np.where(both, far, 0.0), np.inf)
            behind = np.where(both, np.where(both, near, 0.0) - far[k], np.inf)
            for gap in (ahead, behind):
                # the closest part upstream in each cell
                gap = np.where(gap > -0.5 * cell, np.maximum(gap, 0.0), np.inf)
                closest, which = gap.min(axis=0), gap.argmin(axis=0)
                hit = np.isfinite(closest)
                weight = 0.5 * hit.sum() / cells[k]
                if hit.any():
                    ratio = closest[hit] / width[which[hit]]
                    gaps[k, axis] += weight * float(ratio.mean())
                    covered[k, axis] += weight
                    water[k, axis] += 0.5 * float((closest[hit] * np.exp(-INFLUENCE * ratio)).sum()) * cell * cell
            apart = np.where(both, np.maximum(np.maximum(ahead, behind), 0.0), np.inf)
            influence[k, axis] = float(np.exp(-INFLUENCE * apart / width[:, None, None]).sum()) / cells[k]
    return covered, np.where(covered > 0.0, gaps / np.where(covered > 0.0, covered, 1.0), 0.0), influence, water


def _symmetric_zero(matrix: Array) -> Array:
    """Set the entries to zero that only the rounding of the sum contains."""
    size = float(np.abs(matrix).max())
    return np.where(np.abs(matrix) > 1e-6 * size, matrix, 0.0) + 0.0
