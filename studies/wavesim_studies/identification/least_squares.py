"""Robust nonlinear least squares for problems with a sparse Jacobian.

The residuals of many short segments depend on few common unknowns and on the start state of one segment each. With the
sparse normal equations, a step costs a small part of what the dense solver of SciPy needs. The loss is SciPy's
``soft_l1``; a test compares both solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import erf

from wavesim_sdk.arrays import Floats, Mask
from wavesim_studies.navigation.metrics import robust_deviation

Residuals = Callable[[Floats], Floats]
Jacobian = Callable[[Floats], tuple[Floats, Any]]
SCALE = 2.0  #: size of a residual, in standard deviations, from which it counts as an outlier


@dataclass(frozen=True)
class Solution:
    """Minimum of the cost: unknowns (n,), cost, weighted normal matrix (n, n), and residuals with their Jacobian."""

    x: Floats
    cost: float
    normal: Floats
    residuals: Floats
    jacobian: Any
    weights: Floats  #: robust weights of the residuals
    rounds: int
    converged: bool


def cost_of(r: Floats, robust: Mask) -> float:
    """Return half the sum of squares; robust residuals count by SciPy's ``soft_l1`` with ``f_scale`` = SCALE."""
    if not np.isfinite(r).all():
        return float("inf")
    z = (r[robust] / SCALE) ** 2
    return float(0.5 * np.sum(r[~robust] ** 2) + SCALE**2 * np.sum(np.sqrt(1.0 + z) - 1.0))


def weights_of(r: Floats, robust: Mask) -> Floats:
    """Return the weights (m,) with which the squares of the residuals have the same gradient as the cost."""
    w = np.ones(len(r))
    w[robust] = 1.0 / np.sqrt(1.0 + (r[robust] / SCALE) ** 2)
    return w


def solve(
    residuals: Residuals, jacobian: Jacobian, x: Floats, robust: Mask, rounds: int = 30, tolerance: float = 1e-9
) -> Solution:
    """Minimise the cost by the method of Levenberg and Marquardt, beginning at ``x`` (n,).

    ``jacobian`` returns residuals (m,) and their sparse Jacobian (m, n). ``robust`` selects the residuals that may be
    outliers. The search ends when a round reduces the cost by less than ``tolerance`` of it.
    """
    damping, converged, taken = 1e-4, False, 0
    r, J = jacobian(x)
    cost = cost_of(r, robust)
    for taken in range(1, rounds + 1):  # noqa: B007  # read after the loop
        w = weights_of(r, robust)
        normal = (J.T @ J.multiply(w[:, None]).tocsr()).toarray()
        gradient = J.T @ (w * r)
        scale = np.diagonal(normal).copy()
        gain = 0.0
        for _ in range(12):
            step = cho_solve(cho_factor(normal + np.diag(damping * scale + 1e-12)), -gradient)
            new = cost_of(residuals(x + step), robust)
            if new <= cost:
                gain = cost - new
                damping = max(damping * 0.1, 1e-12)
                x = x + step
                break
            damping = max(damping * 10.0, 1e-8)
        else:
            converged = True  # no step reduces the cost any further
            break
        r, J = jacobian(x)
        cost = cost_of(r, robust)
        if gain <= tolerance * cost + 1e-14:
            converged = True
            break
    w = weights_of(r, robust)
    normal = (J.T @ J.multiply(w[:, None]).tocsr()).toarray()
    return Solution(x, cost, normal, r, J, w, taken, converged)


def robust_scale(r: Floats) -> float:
    """Return the standard deviation of the residuals (m,) without the influence of outliers: the root mean square of
    values limited to 2.5 standard deviations, corrected for the limit. For normal residuals it is as good as the root
    mean square, and better than the median of the absolute values.
    """
    limit = 2.5
    density = np.exp(-0.5 * limit**2) / np.sqrt(2.0 * np.pi)
    share = erf(limit / np.sqrt(2.0))
    expected = share - 2.0 * limit * density + limit**2 * (1.0 - share)
    scale = float(robust_deviation(r))
    for _ in range(20):
        scale = float(np.sqrt(np.mean(np.minimum(r * r, (limit * scale) ** 2)) / expected))
    return scale
