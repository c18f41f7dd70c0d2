"""Backward pass of the smoother over the tape of the filter (compiled kernels).

It uses Bryson & Frazier's form of the fixed-interval smoother (Bierman 1973). The results equal those of the form of
Rauch, Tung & Striebel, but no covariance is inverted. The smoother therefore also works with a singular covariance,
which occurs directly after a pose has been cloned.
"""

from __future__ import annotations

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_studies.navigation.forward_filter import TAPE_CLONE, TAPE_DROP, TAPE_PROPAGATE, TAPE_UPDATE, inject_error
from wavesim_studies.navigation.strapdown import CLONE, FilterConstants, kernel, propagate_back, transition


@device_function
def _inverse(L: Floats, m: int, W: Floats) -> None:
    """Compute W = (L L^T)^-1. This is the inverse of the matrix whose Cholesky factor is L."""
    for c in range(m):
        for i in range(m):
            s = 1.0 if i == c else 0.0
            for b in range(i):
                s -= L[i, b] * W[b, c]
            W[i, c] = s / L[i, i]
        for i in range(m - 1, -1, -1):
            s = W[i, c]
            for b in range(i + 1, m):
                s -= L[b, i] * W[b, c]
            W[i, c] = s / L[i, i]


@device_function
def _apply_innovation(a: Floats, A: Floats, H: Floats, U: Floats, W: Floats, pull: Floats) -> None:
    """Subtract H^T pull from a, and add H^T (W H / 2 - U) and its transpose to A."""
    m, n = H.shape
    for k in range(m):
        for i in range(n):
            h = H[k, i]
            if h == 0.0:
                continue
            a[i] -= h * pull[k]
            for j in range(n):
                s = -U[k, j]
                for b in range(m):
                    s += 0.5 * W[k, b] * H[b, j]
                A[i, j] += h * s
                A[j, i] += h * s


@device_function
def _back_over_update(tape: Floats, at: int, a: Floats, A: Floats) -> None:
    """Propagate the adjoint a and its information matrix A backwards over a measurement:

    a = (1 - K H)^T a - H^T S^-1 y
    A = (1 - K H)^T A (1 - K H) + H^T S^-1 H
    """
    m, n = int(tape[at]), int(tape[at + 1])
    H, K, U = np.empty((m, n)), np.empty((m, n)), np.zeros((m, n))
    L, y = np.zeros((m, m)), np.empty(m)
    at += 2
    for k in range(m):
        for i in range(n):
            H[k, i], K[k, i] = tape[at + i], tape[at + n + i]
        at += 2 * n
        for b in range(m):
            L[k, b] = tape[at + b]
        y[k] = tape[at + m]
        at += m + 1
    W = np.zeros((m, m))  # S^-1
    _inverse(L, m, W)
    pull = np.zeros(m)
    for k in range(m):
        for i in range(n):
            pull[k] += K[k, i] * a[i]
            for j in range(n):
                U[k, i] += K[k, j] * A[j, i]
        for b in range(m):
            pull[k] += W[k, b] * y[b]
    for k in range(m):
        for b in range(m):
            for j in range(n):
                W[k, b] += U[k, j] * K[b, j]
    _apply_innovation(a, A, H, U, W, pull)


@device_function
def _undo_clone_start(a: Floats, A: Floats, n: int, o: int) -> None:
    """Propagate backwards over the creation of a clone: add the elements of the clone to those of the cloned pose."""
    for i in range(CLONE):
        to = i if i < 3 else i + 3
        a[to] += a[o + i]
        a[o + i] = 0.0
        for j in range(n):
            A[to, j] += A[o + i, j]
    for i in range(CLONE):
        to = i if i < 3 else i + 3
        for j in range(n):
            A[j, to] += A[j, o + i]
    for i in range(o, n):
        for j in range(n):
            A[i, j] = A[j, i] = 0.0


@device_function
def _undo_clone_end(a: Floats, A: Floats, n: int, o: int) -> None:
    """Propagate backwards over the removal of a clone: insert the rows and columns of the clone again."""
    for i in range(n - 1, o + CLONE - 1, -1):
        a[i] = a[i - CLONE]
        for j in range(n):
            A[i, j] = A[i - CLONE, j]
    for j in range(n - 1, o + CLONE - 1, -1):
        for i in range(n):
            A[i, j] = A[i, j - CLONE]
    for i in range(o, o + CLONE):
        a[i] = 0.0
        for j in range(n):
            A[i, j] = A[j, i] = 0.0


@device_function
def _smoothed_state(P: Floats, a: Floats, A: Floats, n: int, base: int, S: Floats, found: Floats, d: Floats) -> None:
    """Compute the correction d of a state, and replace P by the smoothed covariance of the state."""
    for i in range(base):
        d[i] = 0.0
        for j in range(n):
            d[i] -= P[i, j] * a[j]
            S[i, j] = 0.0
            for k in range(n):
                S[i, j] += P[i, k] * A[k, j]
    for i in range(base):
        for j in range(i + 1):
            s = P[i, j]
            for k in range(n):
                s -= S[i, k] * P[j, k]
            found[i, j] = found[j, i] = s
    for i in range(base):
        for j in range(base):
            P[i, j] = found[i, j]


@kernel
def smooth(
    tape: Floats,
    count: Ints,
    constants: FilterConstants,
    nodes: Floats,
    covariances: Floats,
) -> None:
    """Process the tape backwards. ``nodes`` receives the smoothed states, and the first n columns of ``covariances``
    receive their covariances.
    """
    size, base = covariances.shape[2], count[0]
    ix, earth, noise = constants.ix, constants.earth, constants.noise
    a, A, d = np.zeros(size), np.zeros((size, size)), np.zeros(size)
    F, moved, S = np.zeros((9, 3, 3)), np.empty((2, 3)), np.zeros((base, size))
    found = np.zeros((base, base))
    none, alone = np.zeros((0, 8)), np.array([base, 0, 0])
    n, end = base + CLONE * count[1], count[2]
    while end > 0:
        op, at = tape[end - 1], end - 2 - int(tape[end - 2])
        end = at
        if op == TAPE_PROPAGATE:
            transition(tape[at + 1 : at + 5], tape[at + 5 : at + 8], tape[at + 8 : at + 11], tape[at], earth, F, moved)
            propagate_back(A, a, n, tape[at], F, ix, noise)
        elif op == TAPE_UPDATE:
            _back_over_update(tape, at, a, A)
        elif op == TAPE_CLONE:
            o = int(tape[at])
            _undo_clone_start(a, A, n, o)
            n = o
        elif op == TAPE_DROP:
            o, n = int(tape[at]), int(tape[at + 1])
            _undo_clone_end(a, A, n, o)
        else:
            _smoothed_state(covariances[int(tape[at])], a, A, n, base, S, found, d)
            inject_error(nodes[int(tape[at])], ix, none, alone, d)
