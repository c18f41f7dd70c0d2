"""Exposure of a model to wind and waves, response amplitude operators from a file, and the obstacles in a
configuration.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wavesim_sdk.algebra import interpolate, inverse, matmul, matvec, norm
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import check_installed
from wavesim_server.dynamics.model_compiler import AXES, MOTIONS, mass_matrices, radiation_oscillators
from wavesim_server.dynamics.shapes import BOX, CORE, CYLINDER, GEOMETRY, POSE, ROTATION, SHAPE_CODE, TRIANGLE
from wavesim_server.dynamics.types import Complexes
from wavesim_server.environment import operator_table
from wavesim_server.environment import weather as w
from wavesim_world.config import LoadedConfig, Model, matrix
from wavesim_world.config.exposure import Radiation, Rao
from wavesim_world.config.primitives import PrimitiveShape
from wavesim_world.ocean import mesh, wind
from wavesim_world.ocean.scene import obstacle_boxes


def exposure_row(model: Model, air_drag: float, shape: PrimitiveShape) -> Floats:
    """Return the row of a body in :class:`~wavesim_server.environment.weather.WeatherArrays`."""
    e = np.zeros(w.EXPOSURE)
    e[w.E_REACH], e[w.E_HALF_LENGTH], e[w.E_HALF_WIDTH] = shape.bounding_radius, shape.half_size[0], shape.half_size[1]
    flags = 0
    if (d := model.wind_drag) is not None:
        flags |= w.HAS_WIND
        e[w.E_LAW] = float(d.law == "simple")
        e[w.E_FRONTAL_AREA : w.E_FORWARD + 1] = d.frontal, d.lateral, d.length, d.height, d.forward
        e[w.E_PROFILE] = wind.wind_profile(air_drag, d.height)
        e[w.E_C : w.E_C + 5] = d.drag if d.law == "blendermann" else (*d.simple, 0.0, 0.0)
    if model.aerodynamics is not None:
        flags |= w.HAS_AIR
        e[w.E_PROFILE_FACTOR], e[w.E_ROUGHNESS] = wind.profile_law(air_drag)
    if model.wave_filter is not None:
        flags |= w.HAS_FILTER
        e[w.E_GAIN : w.E_GAIN + 6] = model.wave_filter.gain
        e[w.E_DAMPING] = model.wave_filter.damping
    if model.rao is not None:
        flags |= w.HAS_RAO
    e[w.E_FLAGS] = flags
    return e


@dataclass(frozen=True)
class ResponseOperators:
    """Response amplitude operators: the complex force, or motion, per wave amplitude (degrees of freedom, frequencies,
    headings).

    ``drift`` is the mean drift force per squared wave amplitude in surge, sway and yaw (3, frequencies, headings).
    """

    frequencies: Floats  # rad/s, ascending
    response: Complexes
    drift: Floats
    # for operators of motion: complex force per motion (frequencies, 6, 6)
    impedance: Callable[[Floats], tuple[Floats, Floats]] | None

    @property
    def headings(self) -> int:
        """Return the number of headings. They are equally spaced over a full circle; at the first heading, the sea is
        following.
        """
        return int(self.response.shape[2])

    def force_at(self, frequencies: Floats) -> Floats:
        """Return the real and imaginary parts of the force at other frequencies (headings, frequencies, 6, 2)."""
        real, imaginary = np.zeros((2, self.headings, len(frequencies), 6))
        for dof, responses in enumerate(self.response):
            for k, values in enumerate(responses.T):
                real[k, :, dof] = interpolate(frequencies, self.frequencies, values.real)
                imaginary[k, :, dof] = interpolate(frequencies, self.frequencies, values.imag)
        if self.impedance is not None:
            a, b = self.impedance(frequencies)
            real, imaginary = matvec(a, real) - matvec(b, imaginary), matvec(a, imaginary) + matvec(b, real)
        return np.stack([real, imaginary], axis=-1)

    def drift_at(self, frequencies: Floats) -> Floats:
        """Return the signed square root of the mean drift force (headings, frequencies, 3)."""
        table = np.zeros((self.headings, len(frequencies), 3))
        for dof, responses in enumerate(self.drift):
            for k, values in enumerate(responses.T):
                table[k, :, dof] = interpolate(frequencies, self.frequencies, values)
        return np.sign(table) * np.sqrt(np.abs(table))


def impedance(model: Model, frequencies: Floats) -> tuple[Floats, Floats]:
    """Return the real and imaginary parts of Z(w) = -w^2 (M_RB + M_A) + i w (D_L + K(i w)) + G. G is the linear
    restoring matrix of the model, and K is its fluid memory.
    """
    rigid, added = mass_matrices(model)
    w = np.asarray(frequencies)
    real = matrix(model.restoring) - (w * w)[:, None, None] * (rigid + added)
    imaginary = w[:, None, None] * matrix(model.linear_drag)
    for m in model.memory:
        at = AXES.index(m.force), MOTIONS.index(m.source)
        (a, b), (c, d) = _polynomial(m.c, w), _polynomial((*m.a, 1.0), w)
        square = c * c + d * d
        real[:, *at] -= w * (b * c - a * d) / square
        imaginary[:, *at] += w * (a * c + b * d) / square
    if model.radiation is not None:
        a, b = _radiation_impedance(model.radiation, w)
        real -= w[:, None, None] * b
        imaginary += w[:, None, None] * a
    return real, imaginary


def _radiation_impedance(radiation: Radiation, w: Floats) -> tuple[Floats, Floats]:
    """Return the real and imaginary parts (frequencies, 6, 6) of K(i w) = i w B^T (diag(w_n^2) - w^2 + i w R)^-1 B."""
    squares, damping, coupling = radiation_oscillators(radiation)
    n = len(squares)
    real, imaginary = np.zeros((2, len(w), 6, 6))
    for k, at in enumerate(w):
        stiff = np.diag(squares - at * at)
        y = matmul(inverse(np.block([[stiff, -at * damping], [at * damping, stiff]]))[:, :n], coupling)
        real[k], imaginary[k] = -at * matmul(coupling.T, y[n:]), at * matmul(coupling.T, y[:n])
    return real, imaginary


def _polynomial(coefficients: Sequence[float], w: Floats) -> tuple[Floats, Floats]:
    """Return the real and imaginary parts of the polynomial in ``i w`` with the coefficients ``c_k``."""
    real = imaginary = np.zeros_like(w)
    for c in reversed(coefficients):
        real, imaginary = c - w * imaginary, w * real
    return real, imaginary


def read_operators(model: Model, rao: Rao) -> ResponseOperators:
    """Read the operators from a file: either a table (``.csv``, see :mod:`~wavesim_server.environment.operator_table`)
    or a MATLAB structure.
    """
    path = Path(model.place.rpartition(":")[0]).parent / rao.file
    if rao.use == "motion" and model.restoring is None:
        raise ConfigError(
            f"model '{model.name}': <rao use=\"motion\"> needs <restoring>", model.place.rpartition(":")[0]
        )
    try:
        if path.suffix.lower() == ".csv":
            frequencies, headings, response, drift = operator_table.read_operator_table(path)
        else:
            frequencies, headings, response, drift = _read_mss_vessel(path, rao)
    except OSError as error:
        raise ConfigError(f"cannot read the RAO file: {error.strerror or error}", str(path)) from None
    except ValueError as error:
        raise ConfigError(f"invalid RAO file: {error}", str(path)) from None
    shape = len(frequencies), len(headings)
    if response.shape[1:] != shape or drift.shape[1:] != shape:
        raise ConfigError(
            f"the RAO file has {len(frequencies)} frequencies and {len(headings)} headings, but operators of shape {response.shape[1:]}"
            f" and drift forces of shape {drift.shape[1:]}",
            str(path),
        )
    good = np.isfinite(response).all() and np.isfinite(drift).all() and np.isfinite(frequencies).all()
    if not (good and (np.diff(frequencies) > 0.0).all()):
        raise ConfigError(
            "some values of the RAO file are not finite, or its frequencies are not in ascending order", str(path)
        )
    # headings cover a full circle; the last repeats the first
    closed = math.isclose(headings[-1] - headings[0], 2 * math.pi, rel_tol=1e-6)
    keep = slice(None, len(headings) - closed)
    return ResponseOperators(
        frequencies,
        response[:, :, keep],
        drift[:, :, keep],
        functools.partial(impedance, model) if rao.use == "motion" else None,
    )


def _read_mss_vessel(path: Path, rao: Rao) -> tuple[Floats, Floats, Complexes, Floats]:
    """Read the frequencies, headings, operators and mean drift from a MATLAB structure in the format of the MSS
    toolbox.

    The structure contains ``headings`` (rad, 0 = following sea); ``forceRAO.w``, ``.amp`` and ``.phase`` for each
    degree of freedom, each (frequencies, headings, speeds); the same for ``motionRAO``; and ``driftfrc.amp`` in surge,
    sway and yaw. Raises OSError if the file cannot be read, or ValueError if it does not contain this structure.
    """
    check_installed("scipy")
    from scipy.io import loadmat  # imported here, so that only users of such a file pay for it
    from scipy.io.matlab import MatReadError

    what = f"{rao.use}RAO"
    try:
        vessel = loadmat(str(path), squeeze_me=True, struct_as_record=False)[rao.group]
        found, headings = getattr(vessel, what), np.atleast_1d(vessel.headings)
        frequencies = np.atleast_1d(np.asarray(found.w, float))
        response = np.array([_response(found.amp[k], found.phase[k], rao.speed) for k in range(6)])
        drift = np.zeros((3, *response.shape[1:]))
        if hasattr(vessel, "driftfrc"):
            drift = np.array([_response(vessel.driftfrc.amp[k], 0.0, rao.speed).real for k in range(3)])
    except (KeyError, AttributeError, IndexError, TypeError, ValueError, NotImplementedError, MatReadError) as error:
        raise ValueError(f"{what} of '{rao.group}' is missing: {error}") from None
    return frequencies, headings, response, drift


def _response(amplitude: Floats, phase: Floats | float, speed: int) -> Complexes:
    """Return the complex operator for one degree of freedom at one speed (frequencies, headings)."""
    a, p = (np.asarray(x)[..., speed] if np.ndim(x) == 3 else np.asarray(x) for x in (amplitude, phase))
    sine, cosine = sin_cos(p)
    return a * cosine + 1j * (a * sine)


def obstacle_shapes(loaded: LoadedConfig) -> Floats:
    """Return the obstacles as rows in the format of :mod:`wavesim_server.dynamics.shapes`."""
    o = loaded.config.world.obstacles
    boxes = []
    for x, y, z, length, width, height, heading in obstacle_boxes(o):
        g = np.zeros(GEOMETRY)
        g[SHAPE_CODE], g[CORE : CORE + 3] = BOX, (length, width, height)
        s, c = sin_cos(heading)
        g[POSE:ROTATION], g[ROTATION:] = (x, y, z), (c, -s, 0, s, c, 0, 0, 0, 1)
        boxes.append(g)
    piers = []
    for p in o.pier:
        g = np.zeros(GEOMETRY)
        g[SHAPE_CODE], g[CORE : CORE + 3] = CYLINDER, (p.height / 2, p.radius, p.radius)
        # the cylinder's axis (x) is vertical
        g[POSE:ROTATION], g[ROTATION:] = p.position, (0, 0, 1, 0, 1, 0, -1, 0, 0)
        piers.append(g)
    corners = mesh.all_triangles(loaded)
    faces = np.zeros((len(corners), GEOMETRY))
    middle = corners.mean(axis=1)
    relative = corners - middle[:, None, :]
    faces[:, SHAPE_CODE], faces[:, POSE:ROTATION], faces[:, ROTATION:] = TRIANGLE, middle, relative.reshape(-1, 9)
    faces[:, CORE] = norm(relative).max(axis=1, initial=0.0)
    blocks = len(o.block)
    return np.concatenate([np.array([*boxes[:blocks], *piers, *boxes[blocks:]]).reshape(-1, GEOMETRY), faces])


def obstacle_names(loaded: LoadedConfig) -> list[str]:
    """Return the name of the obstacle for each row of :func:`obstacle_shapes`."""
    o = loaded.config.world.obstacles
    found = [f"block {k}" for k in range(1, len(o.block) + 1)] + [f"pier {k}" for k in range(1, len(o.pier) + 1)]
    found += [f"tunnel {k}" for k in range(1, len(o.tunnel) + 1) for _ in range(4)]
    for m, triangles in zip(o.mesh, mesh.mesh_triangles(loaded), strict=True):
        found += [f"mesh {m.file}"] * len(triangles)
    return found
