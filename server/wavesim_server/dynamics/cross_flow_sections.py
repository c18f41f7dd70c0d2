"""Cross-flow drag from the dimensions of the hull: Hoerner's curve, and the reduction of cross-sections to the kernel's
coefficients.

The kernel integrates the drag of a hull with constant beam and draft exactly. If the sections of a hull vary, the model
compiler replaces the hull by a uniform one with the same integrals of k, k x and k x^2, where k = 1/2 rho T CD. Named
derivatives (v abs(v), v abs(r), r abs(v), r abs(r) and the same for heave and pitch) correct the difference. Pure sway
and pure yaw are then exact. Between them, the largest error is 1.5 % of the largest force and 3.5 % of the largest
moment. In heave and pitch, the errors are up to 3 % of the largest force and 6 % of the largest moment, because the
kernel has one uniform hull for both planes (tests/physics/test_cross_flow.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wavesim_sdk.algebra import interpolate
from wavesim_sdk.arrays import Floats
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.vehicle import Model

#: drag coefficient CD of a cross-section as a function of B/(2T): Hoerner, Fluid-Dynamic Drag (1965), as digitised in
#: T. I. Fossen's MSS toolbox (HYDRO/Hoerner.m, MIT licence) after Leite et al., Applied Ocean Research 20 (1998),
#: 145-156
HOERNER_RATIO = (
    *(0.0108623, 0.176606, 0.353025, 0.451863, 0.472838, 0.492877, 0.493252, 0.558473, 0.646401, 0.833589),
    *(0.988002, 1.30807, 1.63918, 1.85998, 2.31288, 2.59998, 3.00877, 3.45075, 3.7379, 4.00309),
)
HOERNER_DRAG = (
    *(1.96608, 1.96573, 1.89756, 1.78718, 1.58374, 1.27862, 1.21082, 1.08356, 0.998631, 0.87959),
    *(0.828415, 0.759941, 0.691442, 0.657076, 0.630693, 0.596186, 0.586846, 0.585909, 0.559877, 0.559315),
)
CELLS = 2000  #: number of cells over which the sections of a hull are integrated
GRID = 32  #: number of directions of (v, r h) in a quadrant in which the difference is corrected
#: relative size below which a correction is a rounding error
NEGLIGIBLE = 1e-9


def hoerner(ratio: Floats) -> Floats:
    """Return the cross-flow drag coefficient of a cross-section with the ratio B/(2T) of beam to twice the draft.
    Outside the range of the curve (0.01 to 4.0), the coefficient keeps its value at the nearer end.
    """
    return interpolate(ratio, HOERNER_RATIO, HOERNER_DRAG)


def drag_per_length(beam: Floats, draft: Floats, density: float) -> Floats:
    """Return k = 1/2 rho T CD(B/(2T)) in kg/m2 for cross-sections with a beam and a draft in m."""
    ratio = 0.5 * beam / np.where(draft > 0.0, draft, 1.0)
    return 0.5 * density * draft * hoerner(ratio)


@dataclass
class CrossFlowCoefficients:
    """Coefficients of the kernel's cross-flow drag, and the named derivatives that correct them."""

    sway: float  #: coefficient k of the uniform hull in sway, kg/m2
    heave: float
    half: float  #: half length of the uniform hull in m
    centre: float  #: distance in m from the origin to the centre of the uniform hull, positive forward
    #: named derivatives that correct the uniform hull, in SI units
    derivatives: dict[str, float] = field(default_factory=dict)


def from_dimensions(model: Model, density: float) -> CrossFlowCoefficients:
    """Return the coefficients of a model's <cross-flow coefficient="hoerner"> in water of the given density (kg/m3)."""
    c = model.cross_flow
    assert c is not None
    submerged = model.type == "underwater"
    if c.section:
        x, beam, draft = (np.array([getattr(s, name) for s in c.section]) for name in ("x", "beam", "draft"))
    else:
        size = shape_of(model).size
        length, width = c.length or size[0], c.beam or size[1]
        if submerged:
            height = c.draft or size[2]
        else:
            height = c.draft or min(model.mass.value / (density * length * width), size[2])
        x = c.centre + 0.5 * length * np.array([-1.0, 1.0])
        beam, draft = np.full(2, width), np.full(2, height)
    return from_sections(x, beam, draft, density, submerged)


def from_sections(x: Floats, beam: Floats, draft: Floats, density: float, submerged: bool) -> CrossFlowCoefficients:
    """Return the coefficients of a hull from its sections, in m.

    The water surface acts as a mirror: a floating section of draft T has half the force of a submerged section of
    height 2T, and the same CD. A submerged section has drag in heave and pitch, too.
    """
    edges = np.concatenate(
        [np.linspace(a, b, max(CELLS // (len(x) - 1), 1) + 1)[:-1] for a, b in itertools.pairwise(x)]
    )
    edges = np.append(edges, x[-1])
    at, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    b, t = interpolate(at, x, beam), interpolate(at, x, draft)
    half_height = 0.5 * t if submerged else t  # down to the mirror
    side = (2.0 if submerged else 1.0) * drag_per_length(b, half_height, density) * width
    under = 2.0 * drag_per_length(t, 0.5 * b, density) * width if submerged else 0.0 * side
    total, first, second = (_sum(side, at, n) for n in (0, 1, 2))
    if np.ptp(beam) == 0.0 == np.ptp(draft):  # the kernel's integral is that of this hull
        half, centre = 0.5 * float(x[-1] - x[0]), 0.5 * float(x[0] + x[-1])
        return CrossFlowCoefficients(0.5 * total / half, 0.5 * _sum(under, at, 0) / half, half, centre)
    centre = first / total
    half = math.sqrt(3.0 * (second / total - centre * centre))
    c = CrossFlowCoefficients(0.5 * total / half, 0.5 * _sum(under, at, 0) / half, half, centre)
    force, moment = _correct(side, at, c.sway, c)
    c.derivatives |= {f"Y_{n}": v for n, v in zip(_names("v", "r"), force, strict=True)}
    c.derivatives |= {f"N_{n}": v for n, v in zip(_names("v", "r"), moment, strict=True)}
    if submerged:
        force, moment = _correct(under, at, c.heave, c)
        # the pitch rate q turns the bow up, against +z: s = w - x q and M = -integral(x ...)
        signs = (1.0, 1.0, -1.0, -1.0)
        c.derivatives |= {f"Z_{n}": s * v for n, s, v in zip(_names("w", "q"), signs, force, strict=True)}
        c.derivatives |= {f"M_{n}": -s * v for n, s, v in zip(_names("w", "q"), signs, moment, strict=True)}
    c.derivatives = {name: value for name, value in c.derivatives.items() if value}
    return c


def _names(v: str, r: str) -> list[str]:
    return [f"{v}_a{v}", f"{v}_a{r}", f"{r}_a{v}", f"{r}_a{r}"]


def _sum(weights: Floats, x: Floats, power: int) -> float:
    """Return the sum of w x^power. The result is bit-identical on every processor."""
    found = weights
    for _ in range(power):
        found = found * x
    return math.fsum(found.tolist())


def uniform(v: float, r: float, h: float) -> tuple[float, float]:
    """Return the integrals over x in [-h, h] of s abs(s) and x s abs(s), with s = v + x r."""
    if abs(r) * h <= abs(v):
        sign = math.copysign(1.0, v)
        return sign * (2.0 * h * v * v + 2.0 / 3.0 * h * h * h * r * r), sign * 4.0 / 3.0 * h * h * h * v * r
    low, high = v - r * h, v + r * h
    cubes = (abs(high) * high * high - abs(low) * low * low) / 3.0
    fourths = 0.25 * (abs(high) * high * high * high - abs(low) * low * low * low)
    return cubes / r, (fourths - v * cubes) / (r * r)


def _correct(
    weights: Floats, x: Floats, coefficient: float, hull: CrossFlowCoefficients
) -> tuple[list[float], list[float]]:
    """Return the derivatives of the force and of the moment with respect to v abs(v), v abs(r), r abs(v) and r abs(r)
    that correct the uniform hull. Pure sway and pure yaw become exact. The second and third derivatives are a
    least-squares fit to the motions between them.
    """
    h, x0 = hull.half, hull.centre

    def differences(v: float, turn: float) -> tuple[float, float]:
        r = turn / h
        s = v + r * x
        s = weights * np.abs(s) * s
        y, n = uniform(v + x0 * r, r, h)
        return coefficient * y - _sum(s, x, 0), coefficient * (n + x0 * y) - _sum(s, x, 1)

    steps = [k / GRID for k in range(GRID)]  # half the tangents of the angles, for the same bits on each processor
    arc = [((1.0 - s * s) / (1.0 + s * s), 2.0 * s / (1.0 + s * s)) for s in steps]
    points = arc + [(-t, v) for v, t in arc]
    found = [differences(*p) for p in points]
    largest = [max(_sum(weights, np.abs(x), n), h * _sum(weights, np.abs(x), 0)) for n in (0, 1)]
    return tuple(  # type: ignore[return-value]
        _fit(points, [f[k] for f in found], [differences(1.0, 0.0)[k], differences(0.0, 1.0)[k]], h, NEGLIGIBLE * size)
        for k, size in enumerate(largest)
    )


def _fit(
    points: Sequence[tuple[float, float]], values: Sequence[float], ends: Sequence[float], h: float, least: float
) -> list[float]:
    """Return four derivatives. ``ends`` contains the first and the last; the other two are fitted."""
    rest = [d - ends[0] * v * abs(v) - ends[1] * t * abs(t) for (v, t), d in zip(points, values, strict=True)]
    a = [v * abs(t) for v, t in points]
    b = [t * abs(v) for v, t in points]
    aa, ab, bb = _product(a, a), _product(a, b), _product(b, b)
    ay, by = _product(a, rest), _product(b, rest)
    determinant = aa * bb - ab * ab
    scaled = [ends[0], (ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant, ends[1]]
    # the turn is r h
    return [c * f if abs(c) > least else 0.0 for c, f in zip(scaled, (1.0, h, h, h * h), strict=True)]


def _product(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the scalar product. The result is bit-identical on every processor."""
    return math.fsum(m * n for m, n in zip(a, b, strict=True))
