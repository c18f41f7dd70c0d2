"""Functions of MATLAB and of the MSS toolbox, for the evaluation of its vehicles. The toolbox's own functions follow T. I.
Fossen (2021); the sections are named in the docstrings.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.kinematics import skew
from wavesim_server import spheroid as lamb
from wavesim_server.importers import marine_functions as marine
from wavesim_server.importers.source_code import SourceError, power, zeros
from wavesim_server.importers.spatial_matrices import shift_matrix

DENSITY = 1025.0  #: density of the water in kg/m3 in most functions of the toolbox
#: semi-major axis squared, eccentricity and gravity at the equator of the earth (WGS-84)
EQUATOR_GRAVITY, GRAVITY_FORMULA, ECCENTRICITY2 = 9.7803253359, 0.001931850400, 0.006694384442042


def mtimes(a: Any, b: Any) -> Any:
    """Return the matrix product; a scalar scales."""
    return a * b if np.ndim(a) == 0 or np.ndim(b) == 0 else np.matmul(a, b)


def mldivide(a: Any, b: Any) -> Any:
    return b / a if np.ndim(a) == 0 else np.linalg.solve(a, b)


def mrdivide(a: Any, b: Any) -> Any:
    if np.ndim(b):
        raise SourceError("the division by a matrix")
    return a / b


def matrix(*rows: list[Any]) -> Any:
    """Return the matrix of MATLAB's brackets. A single row or column is a vector."""
    if all(len(row) == 1 for row in rows) and not (len(rows) == 1 and np.ndim(rows[0][0]) == 2):
        parts = [np.asarray(row[0], float) for row in rows]
        if all(p.ndim < 2 for p in parts):
            return np.concatenate([np.atleast_1d(p) for p in parts])
        return np.concatenate([np.atleast_2d(p) for p in parts])
    lines = []
    for row in rows:
        parts = [np.asarray(e, float) for e in row]
        if any(p.ndim == 2 for p in parts):
            lines.append(np.concatenate([p if p.ndim == 2 else p.reshape(-1, 1) for p in parts], axis=1))
        else:
            lines.append(np.concatenate([np.atleast_1d(p) for p in parts]))
    return lines[0] if len(lines) == 1 else np.concatenate([np.atleast_2d(line) for line in lines])


def colon(start: float, *rest: float) -> Any:
    step, end = (rest[0], rest[1]) if len(rest) == 2 else (1.0, rest[0])
    count = math.floor((end - start) / step + 1e-9) + 1
    if count > 10_000:
        raise SourceError("a range is too long")
    return start + step * np.arange(max(count, 0))


def transpose(a: Any) -> Any:
    return np.asarray(a).T if np.ndim(a) == 2 else a


def diagonal(a: Any) -> Any:
    return np.diag(np.asarray(a, float))


def gravity(latitude: float) -> float:
    """Return the gravity in m/s2 by the ellipsoid of WGS-84 (Fossen 2021, sec. 2)."""
    s = math.sin(latitude) ** 2
    return EQUATOR_GRAVITY * (1.0 + GRAVITY_FORMULA * s) / math.sqrt(1.0 - ECCENTRICITY2 * s)


def spheroid(a: float, b: float, rates: Any, centre: Any) -> list[Any]:
    """Return M_RB and C_RB of a spheroid of the density of the water, about the origin (sec. 8.4)."""
    m = 4.0 / 3.0 * math.pi * DENSITY * a * b * b
    across = 0.2 * m * (a * a + b * b)
    return _about(m, np.diag([0.4 * m * b * b, across, across]), rates, centre)


def rigid_body(m: float, r44: float, r55: float, r66: float, rates: Any, centre: Any) -> list[Any]:
    """Return M_RB and C_RB from radii of gyration (sec. 3.3)."""
    return _about(m, m * np.diag([r44**2, r55**2, r66**2]), rates, centre)


def _about(m: float, inertia: Any, rates: Any, centre: Any) -> list[Any]:
    h, none = shift_matrix(centre), np.zeros((3, 3))
    mass = np.block([[m * np.eye(3), none], [none, inertia]])
    turn = np.block([[m * skew(rates), none], [none, -skew(inertia @ rates)]])
    return [h.T @ mass @ h, h.T @ turn @ h]


def spheroid_added_mass(a: float, b: float, nu: Any, r44: float = 0.0) -> list[Any]:
    """Return M_A and C_A of a spheroid by Lamb's factors (sec. 8.4)."""
    m = 4.0 / 3.0 * math.pi * marine.CROSS_FLOW_DENSITY * a * b * b
    k1, k2, about = lamb.spheroid_added_mass(a / b)
    turn = about * 0.2 * m * (a * a + b * b)
    mass = np.diag([m * k1, m * k2, m * k2, r44 * 0.4 * m * b * b, turn, turn])
    return [mass, marine.coriolis(mass, nu)]


def damping(times: Any, ratios: Any, rigid: Any, added: Any, hydrostatics: Any) -> Any:
    """Return the linear damping from time constants and damping ratios (sec. 6.4)."""
    m = np.diag(rigid + added)
    if np.ndim(hydrostatics) == 1:
        stiffness = hydrostatics[0] * (hydrostatics[3] - hydrostatics[6])
        heave, roll, pitch = m[2] / times[1], stiffness, stiffness
    else:
        heave = 2.0 * 0.2 * math.sqrt(hydrostatics[2, 2] * m[2])
        roll, pitch = hydrostatics[3, 3], hydrostatics[4, 4]
    return np.diag(
        [
            m[0] / times[0],
            m[1] / times[1],
            heave,
            2.0 * ratios[0] * math.sqrt(roll * m[3]),
            2.0 * ratios[1] * math.sqrt(pitch * m[4]),
            m[5] / times[2],
        ]
    )


def added_mass_surge(m: float, length: float, density: float = DENSITY) -> Any:
    """Return the added mass in surge of a ship by Soding's formula."""
    return 2.7 * density * (m / density) ** (5.0 / 3.0) / length**2


def cross_flow(length: float, beam: float, draft: float, nu: Any) -> Any:
    """Return the cross-flow drag in sway, yaw, heave and pitch, as the toolbox defines it but with the exact integral."""
    scale = DENSITY / marine.CROSS_FLOW_DENSITY
    across = marine.cross_flow(length, beam, draft, nu) * scale
    down = marine.cross_flow(length, beam, draft, np.array([0.0, nu[2], 0.0, 0.0, 0.0, nu[4]])) * scale
    return across + np.array([0.0, 0.0, down[1], 0.0, down[5], 0.0])


def euler_rates(roll: float, pitch: float, yaw: float) -> list[Any]:
    """Return the 6x6 transformation from velocities to the rates of the coordinates, and the rotation (sec. 2.2)."""
    turn, t, c = marine.rotation(roll, pitch, yaw), math.tan(pitch), math.cos(pitch)
    s, k = math.sin(roll), math.cos(roll)
    rates = np.array([[1.0, s * t, k * t], [0.0, k, -s], [0.0, s / c, k / c]])
    none = np.zeros((3, 3))
    return [np.block([[turn, none], [none, rates]]), turn]


MATLAB_FUNCTIONS = {
    **marine.PYTHON_FUNCTIONS,
    "mtimes": mtimes,
    "mldivide": mldivide,
    "mrdivide": mrdivide,
    "power": power,
    "matrix": matrix,
    "colon": colon,
    "transpose": transpose,
    "diag": diagonal,
    "zeros": zeros,
    "eye": lambda n, *_: np.eye(min(int(n), 100)),
    "inv": np.linalg.inv,
    "length": lambda a: float(np.size(a) if np.ndim(a) < 2 else max(np.shape(a))),
    "numel": lambda a: float(np.size(a)),
    "deg2rad": np.deg2rad,
    "sign": np.sign,
    "cross": np.cross,
    "interp1": lambda x, y, at: float(np.interp(at, x, y)),
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "exp", "log")},
    "sqrt": np.sqrt,
    "atan2": math.atan2,
    "abs": np.abs,
    "gravity": gravity,
    "gRvect": marine.restoring_by_rotation,
    "spheroid": spheroid,
    "rbody": rigid_body,
    "imlay61": spheroid_added_mass,
    "Dmtrx": damping,
    "addedMassSurge": added_mass_surge,
    "eulerang": euler_rates,
    "satlim": marine.saturated,
}
