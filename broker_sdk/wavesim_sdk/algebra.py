"""Operations on small vectors and matrices with a fixed order of summation, so that results are the same on every machine.

NumPy's ``@``, ``dot``, ``einsum`` and ``linalg`` call a library that chooses, for each processor, the order of
summation and whether to use fused multiply-add.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats


def norm(v: Any) -> Any:
    """Return the lengths (...) of vectors (..., n)."""
    v = np.asarray(v, float)
    return np.sqrt(dot(v, v))


def dot(a: Any, b: Any) -> Any:
    """Return the inner products (...) of vectors (..., n), summed from the first component to the last."""
    total = a[..., 0] * b[..., 0]
    for i in range(1, a.shape[-1]):
        total = total + a[..., i] * b[..., i]
    return total


def matvec(m: Any, v: Any) -> Any:
    """Multiply matrices (..., n, k) by vectors (..., k); the result is (..., n)."""
    total = m[..., 0] * v[..., 0, None]
    for i in range(1, m.shape[-1]):
        total = total + m[..., i] * v[..., i, None]
    return total


def vecmat(v: Any, m: Any) -> Any:
    """Multiply vectors (..., n) by matrices (..., n, k); the result is (..., k). This is the product of the transposed
    matrices and the vectors.
    """
    total = v[..., 0, None] * m[..., 0, :]
    for i in range(1, m.shape[-2]):
        total = total + v[..., i, None] * m[..., i, :]
    return total


def matmul(a: Any, b: Any) -> Any:
    """Multiply matrices (..., n, k) by matrices (..., k, m); the result is (..., n, m)."""
    total = a[..., :, 0, None] * b[..., 0, None, :]
    for i in range(1, a.shape[-1]):
        total = total + a[..., :, i, None] * b[..., i, None, :]
    return total


def inverse(matrix: Any) -> Floats:
    """Return the inverse of a matrix (n, n), computed by Gauss-Jordan elimination with row pivoting.

    Raises ValueError if the matrix is singular.
    """
    a = np.array(matrix, float)
    n = len(a)
    b = np.eye(n)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        if a[pivot, k] == 0.0:
            raise ValueError("the matrix is singular and cannot be inverted")
        a[[k, pivot]], b[[k, pivot]] = a[[pivot, k]], b[[pivot, k]]
        b[k] /= a[k, k]
        a[k] /= a[k, k]
        for i in range(n):
            if i != k:
                b[i] -= a[i, k] * b[k]
                a[i] -= a[i, k] * a[k]
    return b


def symmetric_eigen(matrix: Any) -> tuple[Floats, Floats]:
    """Return the eigenvalues (n,) of a symmetric matrix in descending order, and its eigenvectors as rows (n, n),
    computed by Jacobi rotations.
    """
    a, v = np.array(matrix, float), np.eye(len(matrix))
    for _ in range(60):
        apart = [(abs(a[p, q]), p, q) for p in range(len(a)) for q in range(p + 1, len(a))]
        most, p, q = max(apart, default=(0.0, 0, 0))
        if most <= 1e-18 * abs(a).max():
            break
        theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
        t = (1.0 if theta >= 0.0 else -1.0) / (abs(theta) + math.sqrt(theta * theta + 1.0))
        c = 1.0 / math.sqrt(t * t + 1.0)
        s = t * c
        a[p], a[q] = c * a[p] - s * a[q], s * a[p] + c * a[q]
        a[:, p], a[:, q] = c * a[:, p] - s * a[:, q], s * a[:, p] + c * a[:, q]
        v[p], v[q] = c * v[p] - s * v[q], s * v[p] + c * v[q]
    order = np.argsort(-a.diagonal(), kind="stable")
    return a.diagonal()[order], v[order]


#: lowest eigenvalue of a covariance, relative to the largest, that still counts as zero: rounding a covariance to eight
#: digits can make eigenvalues slightly negative
INDEFINITE = -1e-6


def covariance_factor(matrix: Any) -> Floats:
    """Return the Cholesky factor L (n, n) of a symmetric, positive semi-definite matrix: L times its transpose is the
    matrix. If z are independent standard normal numbers, L z has this covariance. Raises ValueError for any other
    matrix.
    """
    a = np.array(matrix, float)
    for i, j in itertools.combinations(range(len(a)), 2):
        if abs(a[i, j] - a[j, i]) > 1e-9 * max(abs(a[i, j]), abs(a[j, i])):
            raise ValueError(f"is not symmetric: elements ({i + 1}, {j + 1}) and ({j + 1}, {i + 1}) differ")
    values, vectors = symmetric_eigen(a)
    most, least = float(values[0]), float(values[-1])
    if least < INDEFINITE * max(most, 0.0):
        raise ValueError(f"is not positive semi-definite: its smallest eigenvalue is {least:.3g}")
    if least < 0.0:
        a = matmul(vectors.T * np.maximum(values, 0.0), vectors)
    factor = np.zeros_like(a)
    for k in range(len(a)):
        pivot = a[k, k] - dot(factor[k], factor[k])
        if pivot > 1e-12 * most:  # otherwise the column is zero but for rounding errors
            factor[k, k] = math.sqrt(pivot)
            for j in range(k + 1, len(a)):
                factor[j, k] = (a[j, k] - dot(factor[j], factor[k])) / factor[k, k]
    return factor


def pseudo_inverse(points: Any, tolerance: float = 1e-6) -> tuple[Floats, int, Floats]:
    """Return the pseudo-inverse (k, n) of a matrix (n, k), the rank of the matrix, and its right singular vectors (k,
    k), for small k.

    For a matrix M, the function keeps the eigenvectors of M^T M whose singular values exceed ``tolerance`` times the
    largest one. The last singular vectors span the null space.
    """
    m = np.asarray(points, float)
    values, directions = symmetric_eigen(matmul(m.T, m))
    rank = int((values > tolerance * tolerance * values[0]).sum())
    found = np.zeros(m.T.shape)
    for value, d in zip(values[:rank], directions[:rank], strict=True):
        found += d[:, None] * (matvec(m, d) / value)[None, :]
    return found, rank, directions


def interpolate(x: Any, at: Sequence[float] | Floats, values: Sequence[float] | Floats) -> Floats:
    """Return the values at ``x``, interpolated linearly between the ascending points ``at``. Outside these points,
    return the first or last value.
    """
    x, at, values = (np.asarray(a, float) for a in (x, at, values))
    if len(at) == 1:
        return np.full(x.shape, values[0])
    k = np.clip(np.searchsorted(at, x, side="right") - 1, 0, len(at) - 2)
    gap = at[k + 1] - at[k]
    fraction = np.clip((x - at[k]) / np.where(gap > 0.0, gap, 1.0), 0.0, 1.0)
    return np.asarray(values[k] + fraction * (values[k + 1] - values[k]))
