"""Meshes of vehicles, made from their published dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_studies.from_mesh.open_frame import OpenFramePart
from wavesim_world.hull_geometry import outward


def revolved(x: Any, radius: Any, around: int = 32) -> Any:
    """Triangles of a body of revolution about x, closed by flat ends."""
    angle = 2.0 * np.pi * np.arange(around) / around
    ring = np.stack([np.zeros(around), np.cos(angle), np.sin(angle)], axis=1)
    p = np.stack([xi * np.array([1.0, 0.0, 0.0]) + ri * ring for xi, ri in zip(x, radius, strict=True)])
    q = np.roll(p, -1, axis=1)
    sides = [np.stack([p[:-1], q[:-1], q[1:]], axis=2), np.stack([p[:-1], q[1:], p[1:]], axis=2)]
    ends = []
    for k, (a, b) in ((0, (q, p)), (-1, (p, q))):
        middle = np.broadcast_to(p[k].mean(axis=0), p[k].shape)
        ends.append(np.stack([middle, a[k], b[k]], axis=1))
    t = np.concatenate([s.reshape(-1, 3, 3) for s in sides] + ends)
    cross = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
    return outward(t[(cross**2).sum(axis=1) > 1e-20])


def myring(nose: float, middle: float, tail: float, diameter: float, **o: float) -> Any:
    """Hull with D. F. Myring's lines (1976), as in T. Prestero's thesis. Options: ``nose_cut`` and ``tail_cut`` (lengths
    missing at the ends), ``angle`` (half angle of the tail in rad), and ``ahead`` (x of the foremost point); lengths in m.
    """
    cut, end, angle = o["nose_cut"], tail - o["tail_cut"], math.tan(o["angle"])
    s = cut + (nose - cut) * (1.0 - np.cos(np.linspace(0.0, 0.5 * np.pi, 24)))
    front = 0.5 * diameter * np.sqrt(1.0 - ((s - nose) / nose) ** 2)
    u = np.linspace(0.0, end, 24)
    rear = 0.5 * diameter - (1.5 * diameter / tail**2 - angle / tail) * u**2
    rear = rear + (diameter / tail**3 - angle / tail**2) * u**3
    s = np.concatenate([s, nose + middle + u])
    return revolved(o["ahead"] - (s - cut), np.concatenate([front, rear]))


#: REMUS 100 (Prestero 2001, tables 2.1 and 2.2); the origin is the centre of buoyancy
REMUS = {"nose_cut": 0.0165, "tail_cut": 0.0368, "angle": 0.436, "ahead": 0.610}


def remus() -> Any:
    return myring(0.191, 0.654, 0.541, 0.191, **REMUS)


def lauv() -> Any:
    """LAUV: length and diameter as published (1.08 m, 0.15 m); nose and tail after pictures of the vehicle."""
    return myring(0.15, 0.68, 0.25, 0.15, nose_cut=0.0, tail_cut=0.0, angle=0.4, ahead=0.54)


def bluerov2_heavy() -> list[OpenFramePart]:
    """BlueROV2 Heavy: overall size (457 x 575 x 254 mm), tubes of 4 and 3 inches, panels of 3/8 and 1/2 inch and T200
    thrusters as published by Blue Robotics, thruster positions as in the model `bluerov2-heavy`; sizes and places of the
    floats, guards and panels after pictures of the vehicle. Thrusters are solid cylinders. Cables, lights and fasteners
    are missing.
    """
    import trimesh as library

    trimesh: Any = library
    parts: list[OpenFramePart] = []

    def add(name: str, mesh: Any, at: tuple[float, float, float], axis: Any = None, yaw: float = 0.0) -> None:
        if axis is not None:
            mesh.apply_transform(trimesh.geometry.align_vectors([0.0, 0.0, 1.0], axis))
        mesh.apply_transform(trimesh.transformations.rotation_matrix(yaw, [0.0, 0.0, 1.0]))
        mesh.apply_translation(at)
        parts.append(OpenFramePart(f"{name}-{len(parts)}", np.asarray(mesh.triangles)))

    def tube(diameter: float, length: float) -> Any:
        return trimesh.creation.cylinder(0.5 * diameter, length, sections=24)

    box, ahead, down = trimesh.creation.box, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    add("electronics", tube(0.114, 0.36), (0.0, 0.0, -0.02), ahead)
    add("battery", tube(0.089, 0.31), (-0.02, 0.0, 0.085), ahead)
    add("bottom-panel", box((0.20, 0.32, 0.0127)), (0.0, 0.0, 0.12))
    for side in (-1, 1):
        add("side-panel-lower", box((0.45, 0.0095, 0.045)), (0.0, 0.165 * side, 0.105))
        add("side-panel-upper", box((0.42, 0.0095, 0.05)), (0.0, 0.165 * side, -0.06))
        for x in (-0.19, 0.0, 0.19):
            add("side-panel-post", box((0.05, 0.0095, 0.12)), (x, 0.165 * side, 0.02))
        for end in (-1, 1):
            add("float", box((0.19, 0.10, 0.075)), (0.12 * end, 0.105 * side, -0.09))
            turn = 0.25 * math.pi * end * side
            add("centre-panel", box((0.0127, 0.11, 0.15)), (0.105 * end, 0.085 * side, 0.03), None, turn)
            add("thruster", tube(0.098, 0.10), (0.156 * end, 0.111 * side, 0.06), [1.0, 1.0 * end * side, 0.0])
            add("vertical-thruster", tube(0.098, 0.10), (0.12 * end, 0.218 * side, 0.0), down)
        add("round-float", tube(0.09, 0.08), (0.0, 0.115 * side, -0.06), down)
        add("guard", box((0.34, 0.006, 0.045)), (0.0, 0.28 * side, 0.0))
    return parts
