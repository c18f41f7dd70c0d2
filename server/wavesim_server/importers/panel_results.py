"""Results of a panel code for a hull, in the axes of this project; the readers for all codes return results in this
form.

In panel codes, x is forward, y is to port and z is up; a heading is the direction in which the waves travel, and
increases towards port. In this module, x is forward, y is to starboard and z is down; headings are clockwise as seen
from above; and phases lead the elevation at the origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array

DOFS = ("surge", "sway", "heave", "roll", "pitch", "yaw")
#: factors that convert from the panel codes' axes to body axes
AXIS_SIGNS = np.array([1.0, -1.0, -1.0, 1.0, -1.0, -1.0])
#: for each axis, the sign by which the response of a symmetric hull is multiplied when the same wave comes from the
#: other side
MIRROR_SIGNS = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
AXIS_SIGN_PRODUCTS = np.outer(AXIS_SIGNS, AXIS_SIGNS)


@dataclass(frozen=True)
class RadiationCoefficients:
    """Added mass and damping (frequencies, 6, 6) in SI units, by ascending frequency (rad/s), and the added mass at
    infinite frequency (6, 6) if it was computed.
    """

    frequencies: Array
    added_mass: Array
    damping: Array
    infinite: Array | None


@dataclass(frozen=True)
class PanelOperators:
    """Complex force (N, N m) or motion (m, rad) per m of wave amplitude (6, frequencies, headings).

    :attr:`headings` are in rad, in equal steps over the full circle, starting at 0 (following sea). :attr:`use` is the
    kind of operator, as named in <rao>. :attr:`drift` is the mean force (N, N m) in surge, sway and yaw per squared
    amplitude (3, frequencies, headings), if it was computed.
    """

    frequencies: Array
    headings: Array
    response: Array
    use: str
    drift: Array | None = None


@dataclass
class PanelResults:
    """All results of a panel code for a hull.

    The stiffness (6, 6) includes the contribution of the weight. All matrices, such as M_RB (6, 6), are about the
    origin. The depth of the origin is given in m below the mean surface.
    """

    coefficients: RadiationCoefficients | None = None
    operators: PanelOperators | None = None
    stiffness: Array | None = None
    rigid_body: Array | None = None
    depth: float = 0.0
    density: float = 0.0  # density of the water, kg/m3; 0 = not stated
    notes: tuple[str, ...] = ()
    infinite: Array | None = None  # added mass at infinite frequency, if a file states it without a table


def make_coefficients(frequencies: Any, added: Any, damping: Any, infinite: Any = None) -> RadiationCoefficients:
    """Create coefficients from values in the axes of a panel code, with frequencies in any order. Raises ValueError if
    the frequencies are invalid.
    """
    w = np.asarray(frequencies, float)
    if len(np.unique(w)) != len(w) or not (w > 0.0).all() or not np.isfinite(w).all():
        raise ValueError("the frequencies must be positive and different from each other")
    order = np.argsort(w)
    a, b = (np.asarray(m, float)[order] * AXIS_SIGN_PRODUCTS for m in (added, damping))
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("some values are not finite")
    return RadiationCoefficients(
        w[order], a, b, None if infinite is None else np.asarray(infinite, float) * AXIS_SIGN_PRODUCTS
    )


def make_operators(
    frequencies: Any, headings: Any, response: Any, use: str, drift: Array | None = None
) -> PanelOperators:
    """Create operators from results in the axes of a panel code. ``headings`` (rad) may be in any order. The response
    (6, frequencies, headings) has leading phases. ``drift`` (3, frequencies, headings) is the mean drift in surge, sway
    and yaw.

    Headings from 0 to 180 deg are sufficient for a hull that is symmetric about its centre plane. For other hulls, such
    headings raise a ValueError.
    """
    w, x = np.asarray(frequencies, float), np.asarray(response, complex)
    signs, other = AXIS_SIGNS, MIRROR_SIGNS
    if drift is not None:
        x = np.concatenate([x, drift])
        signs, other = (np.append(s, s[[0, 1, 5]]) for s in (signs, other))
    if not np.isfinite(x).all() or not (w > 0.0).all():
        raise ValueError("some values are not finite, or some frequencies are not positive")
    degrees = np.round(np.degrees(np.asarray(headings, float)), 6)
    all_headings = f"the headings are {' '.join(f'{d:g}' for d in degrees)} deg; use equal steps from 0 to 360 deg, or from 0 to 180 deg for a hull that is symmetric about its centre plane"
    turned = np.mod(degrees, 360.0)
    turned, first = np.unique(turned, return_index=True)
    x = x[:, :, first]
    if turned[0] == 0.0 and turned[-1] == 180.0:
        _check_symmetry(x[:, :, [0, -1]], all_headings)
        inner = slice(len(turned) - 2, 0, -1)
        x = np.concatenate([x, other[:, None, None] * x[:, :, inner]], axis=2)
        turned = np.concatenate([turned, 360.0 - turned[inner]])
    steps = np.diff([*turned, 360.0])
    if turned[0] != 0.0 or len(turned) < 2 or np.ptp(steps) > 1e-3:
        raise ValueError(all_headings)
    order, ahead = np.argsort(w), np.argsort(np.mod(360.0 - turned, 360.0))
    x = (signs[:, None, None] * x)[:, order][:, :, ahead]
    turned_back = np.radians(np.mod(360.0 - turned, 360.0)[ahead])
    return PanelOperators(w[order], turned_back, x[:6], use, None if drift is None else x[6:].real)


def _check_symmetry(x: Array, heading_name: str) -> None:
    """Raise ValueError if a head or following sea pushes the hull sideways, because the hull is then not symmetric
    about its centre plane.
    """
    for odd, even in ((1, (0, 2)), (3, (4,)), (5, (4,))):
        most = max(np.abs(x[list(even)]).max(), 1e-300)
        if np.abs(x[odd]).max() > 0.02 * most:
            raise ValueError(
                f"{heading_name}; this hull is not symmetric: a following or head sea moves it in {DOFS[odd]}"
            )


def operators_csv(o: PanelOperators) -> str:
    """Return the operators as the text of a CSV file that <rao> reads."""
    names = [f"{d}{part}" for d in DOFS for part in ("", "_phase_deg")]
    drifts = np.zeros((0, *o.response.shape[1:])) if o.drift is None else o.drift
    names += [f"drift_{DOFS[k]}" for k in (0, 1, 5)][: len(drifts)]
    lines = [",".join(["heading_deg", "frequency", *names])]
    for k, heading in enumerate(o.headings):
        for j, w in enumerate(o.frequencies):
            z = o.response[:, j, k]
            cells = np.stack([np.abs(z), np.degrees(np.angle(z))], axis=1).ravel()
            row = (np.degrees(heading), w, *cells, *drifts[:, j, k])
            lines.append(",".join(f"{c + 0.0:.9g}" for c in row))
    return "\n".join(lines) + "\n"
