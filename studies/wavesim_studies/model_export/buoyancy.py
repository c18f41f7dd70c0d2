"""Collision shapes whose volume gives a model its weight, buoyancy and stability with Gazebo's Buoyancy plugin.

Of a floating shape, the plugin takes the volume below the water, but it does not turn the water plane with the shape.
One box therefore does not right itself. Four equal boxes at the corners of a rectangle have the waterplane area of the
hull, and its stability in roll and pitch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import parameter_rows as P
from wavesim_studies.linear_models.trim import ModelMotion
from wavesim_studies.model_export.axes import FLIP
from wavesim_studies.model_export.hull_terms import HullTerms
from wavesim_world.config.primitives import shape_of

CHANGE = 1e-4  #: step of the numerical derivative of the restoring force in m and rad


@dataclass(frozen=True)
class CollisionShape:
    """A box, cylinder (axis along x) or sphere: its kind, its full size (3,) in m and its centre (3,)."""

    kind: str
    size: Floats
    centre: Floats


def floats_in_gazebo(motion: ModelMotion) -> bool:
    """Return whether the model needs a water surface in Gazebo."""
    return motion.model.type in ("surface", "buoy")


def collision_shapes(motion: ModelMotion, terms: HullTerms) -> list[CollisionShape]:
    """Return the collision shapes of the hull. Texts are added to the ``missing`` and ``notes`` of ``terms``."""
    if floats_in_gazebo(motion):
        return _four_boxes(motion, terms)
    p, shape = motion.form.compiled.params, shape_of(motion.model)
    volume = float(p[P.FULL_BUOYANCY]) / (motion.density * motion.gravity)
    scale = (volume / shape.volume) ** (1.0 / 3.0)
    if abs(scale - 1.0) > 1e-9:
        terms.notes.append(
            f"The collision shape is {scale:.4g} times the primitive shape of the model, so that it has its displaced volume."
        )
    if motion.model.buoyancy is not None and motion.model.buoyancy.compressibility:
        terms.missing.append("the compressibility of the hull")
    terms.missing.append("the loss of buoyancy above the water surface")
    centre = FLIP * p[P.FULL_BUOYANCY_CENTRE : P.FULL_BUOYANCY_CENTRE + 3]
    return [CollisionShape(shape.kind, scale * np.array(shape.size), centre)]


def stiffness(motion: ModelMotion) -> Floats:
    """Return the restoring force and moments (3, 3) in heave, roll and pitch per m and rad, about the equilibrium."""
    states = np.zeros((6, 12))
    states[:, 2] = motion.depth
    for k in range(3):
        states[k, 2 + k] += CHANGE
        states[3 + k, 2 + k] -= CHANGE
    idle = np.tile(motion.body.rest_values[[a.slot for a in motion.actuators]], (6, 1))
    p = motion.form.compiled.params
    loads = motion.accelerations(states, idle) @ p[P.TOTAL_INERTIA : P.TOTAL_INERTIA + 36].reshape(6, 6).T
    return np.asarray(-(loads[:3] - loads[3:]).T[2:5] / (2.0 * CHANGE))


def _four_boxes(motion: ModelMotion, terms: HullTerms) -> list[CollisionShape]:
    size, weight = shape_of(motion.model).size, terms.mass * motion.gravity
    specific, surface = motion.density * motion.gravity, motion.depth
    if motion.free_dofs[2:5].all():
        found = stiffness(motion)
        heave, roll, pitch = np.diag(found)
        flotation = -found[0, 2] / heave  # centre of the waterplane area forward of the origin
        terms.missing.append("the shape of the hull (four boxes have its weight, waterplane area and stability)")
        if max(abs(found[0, 1]), abs(found[1, 2])) > 1e-6 * heave * max(size):
            terms.missing.append("the coupling of roll with heave and pitch")
    else:
        heave, flotation = specific * size[0] * size[1], float(terms.centre[0])
        lever = surface - 0.5 * weight / heave - terms.centre[2]
        roll, pitch = (heave * w**2 / 12.0 + weight * lever for w in (size[1], size[0]))
        pitch += heave * flotation**2
        terms.notes.append(
            "The model cannot heave, roll or pitch. In the file, these motions are those of a box of its size."
        )
    area, draught = heave / specific, weight / heave
    along, across, difference = 0.5 * size[0], 0.5 * size[1], 0.0
    for _ in range(
        50
    ):  # the draughts of the boxes fore and aft, and the distances between the boxes, depend on each other
        buoyancy = surface - 0.5 * (draught**2 + difference**2) / draught
        lever = weight * (buoyancy - terms.centre[2])
        squares = (pitch - lever) / heave - flotation**2, (roll - lever) / heave
        along, across = (math.sqrt(max(x, 1e-6 * size[0] ** 2)) for x in squares)
        difference = max(-0.9, min(0.9, (terms.centre[0] - flotation) / along)) * draught
    for name, square in zip(("pitch", "roll"), squares, strict=True):
        if square < 0.0:
            terms.missing.append(f"the stability in {name}, which is less than that of any hull of this draught")
    side, found_boxes = 0.5 * math.sqrt(area), []
    for x in (1.0, -1.0):
        depth = draught + x * difference
        height = depth + max(draught, size[2] - draught)
        for y in (1.0, -1.0):
            centre = np.array([flotation + x * along, terms.centre[1] + y * across, surface - depth + 0.5 * height])
            found_boxes.append(CollisionShape("box", np.array([side, side, height]), centre))
    return found_boxes
