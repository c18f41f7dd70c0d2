"""Forces on a vehicle of Gazebo as the sources of its plugins compute them, in forward-left-up axes, written term by term
and without any code of the importer.

The plugins are gz-sim's Hydrodynamics, Thruster, LiftDrag and Buoyancy (gz-sim, 93bbf3ed), SimpleHydrodynamics and
Surface of VRX (93ae8d07), and those of UUV Simulator (bfb40cb1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

G = 9.81
FLIP = np.diag([1.0, -1.0, -1.0, 1.0, -1.0, -1.0])


def turn(roll: float, pitch: float, yaw: float) -> Any:
    """Rotation for fixed-axis angles."""
    x = np.array([[1, 0, 0], [0, math.cos(roll), -math.sin(roll)], [0, math.sin(roll), math.cos(roll)]])
    y = np.array([[math.cos(pitch), 0, math.sin(pitch)], [0, 1, 0], [-math.sin(pitch), 0, math.cos(pitch)]])
    z = np.array([[math.cos(yaw), -math.sin(yaw), 0], [math.sin(yaw), math.cos(yaw), 0], [0, 0, 1]])
    return z @ y @ x


def rigid(parts: Any) -> Any:
    """M_RB about the origin of bodies (mass, centre, inertia about the centre)."""
    m = np.zeros((6, 6))
    for mass, c, inertia in parts:
        s = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
        m[:3, :3] += mass * np.eye(3)
        m[:3, 3:] -= mass * s
        m[3:, :3] += mass * s
        m[3:, 3:] += inertia - mass * s @ s
    return m


def rigid_coriolis(m: Any, nu: Any) -> Any:
    """-C_RB(nu) nu, from momentum and its moment."""
    h = m @ nu
    return -np.concatenate([np.cross(nu[3:], h[:3]), np.cross(nu[:3], h[:3]) + np.cross(nu[3:], h[3:])])


def hydrodynamics(n: Mapping[str, float], nu: Any) -> tuple[Any, Any]:
    """Added mass and other forces of gz-sim's Hydrodynamics, as in its PreUpdate."""
    ma, c, d = np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 6))
    for i, f in enumerate("xyzkmn"):
        for j, v in enumerate("UVWPQR"):
            ma[i, j] = n.get(f"{f}Dot{v}", 0.0)
            d[i, j] = -n.get(f"{f}{v}", 0.0)
            for k, v2 in enumerate("UVWPQR"):
                d[i, j] -= n.get(f"{f}{v}abs{v2}", 0.0) * abs(nu[k]) + n.get(f"{f}{v}{v2}", 0.0) * nu[k]
    a = [ma[i, i] * nu[i] for i in range(6)]
    for i, j, value in (
        (0, 4, -a[2]), (0, 5, a[1]), (1, 3, a[2]), (1, 5, -a[0]), (2, 3, -a[1]), (2, 4, a[0]),
        (3, 1, -a[2]), (3, 2, a[1]), (3, 4, -a[5]), (3, 5, a[4]), (4, 0, a[2]), (4, 2, -a[0]),
        (4, 3, a[5]), (4, 5, -a[3]), (5, 0, -a[1]), (5, 1, a[0]), (5, 3, -a[4]), (5, 4, a[3]),
    ):  # fmt: skip
        c[i, j] = value
    total = d @ nu
    if not n.get("disable_coriolis"):
        total -= c @ nu
    return (np.zeros((6, 6)) if n.get("disable_added_mass") else -ma), -total


def lrauv(n: Mapping[str, float], nu: Any) -> tuple[Any, Any]:
    """LRAUV's own plugin without its Coriolis matrix."""
    letters = list(zip("xyzkmn", "UVWPQR", strict=True))
    ma = np.diag([n[f"{f}Dot{v}"] for f, v in letters])
    d = np.array([-n[f"{f}{v}"] - n[f"{f}{v}{v}"] * abs(s) for (f, v), s in zip(letters, nu, strict=True)])
    return -ma, -d * nu


def vrx(n: Mapping[str, float], nu: Any) -> tuple[Any, Any]:
    """SimpleHydrodynamics of VRX: the added mass multiplies the true acceleration, v' + w x v."""
    letters = list(zip("xyzkmn", "UVWPQR", strict=True))
    lack = dict(zip("xyzkmn", (5, 5, 0.1, 0.1, 0.1, 1), strict=True))
    ma = np.diag([n.get(f"{f}Dot{v}", lack[f]) for f, v in letters])
    d = [n.get(f"{f}{v}", 20.0) + n.get(f"{f}{v}{v}", 0.0) * abs(s) for (f, v), s in zip(letters, nu, strict=True)]
    return ma, -np.array(d) * nu - ma @ np.concatenate([np.cross(nu[3:], nu[:3]), np.zeros(3)])


def uuv_fossen(n: Mapping[str, Any], nu: Any) -> tuple[Any, Any]:
    """UUV Simulator's Fossen model: matrices and velocities in forward-starboard-down axes."""
    v = FLIP @ nu
    ma = np.array(n["added_mass"]).reshape(6, 6)

    def matrix(key: str) -> Any:
        m = np.array(n.get(key, [0.0] * 6))
        return np.diag(m) if m.size == 6 else m.reshape(6, 6)

    d = -matrix("linear_damping") - v[0] * matrix("linear_damping_forward_speed")
    d -= np.diag(np.diag(matrix("quadratic_damping")) * np.abs(v))
    return FLIP @ ma @ FLIP, FLIP @ (rigid_coriolis(0.5 * (ma + ma.T), v) - d @ v)


def lift_drag(n: Mapping[str, Any], velocity: Any) -> Any:
    """Force of gz-sim's LiftDrag at the centre of pressure. ``velocity``, `forward` and `upward` have the same axes."""
    forward, upward = np.array(n["forward"], float), np.array(n["upward"], float)
    if np.linalg.norm(velocity) <= 0.01 or forward @ velocity <= 0.0:
        return np.zeros(3)
    span = np.cross(forward, upward)
    sine = span @ velocity / np.linalg.norm(velocity)
    sweep = 1.0 - sine**2 if n.get("sweep", True) else 1.0
    plane = velocity - velocity @ span * span
    drag, lift = -plane / np.linalg.norm(plane), np.cross(span, plane) / np.linalg.norm(plane)
    angle = math.acos(min(1.0, max(-1.0, lift @ upward)))
    alpha = n.get("a0", 0.0) + (angle if lift @ forward >= 0.0 else -angle)
    stall, cla, cda = n["alpha_stall"], n["cla"], n["cda"]
    if alpha > stall:
        cl = max(0.0, cla * stall + n["cla_stall"] * (alpha - stall))
        cd = cda * stall + n["cda_stall"] * (alpha - stall)
    elif alpha < -stall:
        cl = min(0.0, -cla * stall + n["cla_stall"] * (alpha + stall))
        cd = -cda * stall + n["cda_stall"] * (alpha + stall)
    else:
        cl, cd = cla * alpha, cda * alpha
    q = 0.5 * n["air_density"] * (plane @ plane) * n["area"] * sweep
    return q * (cl * lift + abs(cd) * drag)


def uuv_fin(n: Mapping[str, float], velocity: Any) -> Any:
    """Force of a fin of UUV Simulator with a quadratic law, in the axes of the turned fin (chord x, span z)."""
    plane = np.array([velocity[0], velocity[1], 0.0])
    angle = math.atan2(plane[1], plane[0])
    angle -= math.copysign(math.pi, angle) if abs(angle) > math.pi / 2 else 0.0
    square, size = plane @ plane, np.linalg.norm(plane)
    lift = -np.cross([0, 0, 1.0], plane) / size
    return angle * square * n["lift_constant"] * lift - angle**2 * square * n["drag_constant"] * plane / size


def weight_and_buoyancy(m: Any, volume: float, centre: Any, density: float, up: Any) -> Any:
    """Weight of a mass matrix and buoyancy, for a unit vector that points up in the axes of the vehicle."""
    s = m[3:, :3]
    moment = np.array([s[2, 1], s[0, 2], s[1, 0]])
    force = (density * volume - m[0, 0]) * G * up
    return np.concatenate([force, np.cross(centre, density * volume * G * up) - np.cross(moment, G * up)])


def at(place: Any, force: Any) -> Any:
    """Wrench of a force at a place."""
    return np.concatenate([force, np.cross(place, force)])


def velocity_at(nu: Any, place: Any) -> Any:
    """Velocity of a point of the vehicle."""
    return nu[:3] + np.cross(nu[3:], place)
