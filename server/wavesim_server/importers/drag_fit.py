"""Hydrodynamic derivatives of third order that reproduce a drag given as a function of the motion."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from wavesim_sdk.arrays import Floats

MOTIONS = "uvwpqr"
FORCES = "XYZKMN"
TERMS = 8  #: derivatives of each force; a model may have 48
SAMPLES = 240  #: number of random motions
PURE_WEIGHT = 5.0  #: weight of the motions along one axis
NEGLIGIBLE = 1e-3  #: terms that reduce the error by less than this fraction of the force are left out


def fit_cubic(drag: Callable[[Floats], Floats], speed: float, rate: float) -> tuple[dict[str, float], Floats]:
    """Return derivatives such as `X_u_au_av`, and the rms error (6,) of each force as a fraction of its rms value.

    ``drag`` gives the forces (6,) for u, v, w, p, q, r. The fit covers motions up to the speed in m/s and the rate in
    rad/s.
    """
    random = np.random.default_rng(1)
    size = np.repeat([speed, rate], 3)
    motions = random.normal(size=(SAMPLES, 6)) * random.choice([0.0, 1.0], (SAMPLES, 6), p=[0.4, 0.6])
    motions *= size / np.maximum(np.linalg.norm(motions, axis=1), 1e-9)[:, None]
    pure = np.concatenate([np.diag(size), -np.diag(size)])
    weight = np.concatenate([np.ones(SAMPLES), np.full(len(pure), PURE_WEIGHT)])
    motions = np.concatenate([motions, pure])
    forces = np.array([drag(m) for m in motions])
    pairs = list(itertools.combinations_with_replacement(range(6), 2))
    names, columns = [], []
    for k in range(6):
        for a, b in pairs:
            names.append(f"{MOTIONS[k]}_a{MOTIONS[a]}_a{MOTIONS[b]}")
            columns.append(motions[:, k] * np.abs(motions[:, a] * motions[:, b]))
    basis = np.array(columns).T * weight[:, None]
    scale = np.linalg.norm(basis, axis=0)
    found: dict[str, float] = {}
    errors = np.zeros(6)
    for f, letter in enumerate(FORCES):
        goal = forces[:, f] * weight
        size_of_force = float(np.linalg.norm(goal))
        if size_of_force <= 1e-6 * float(np.linalg.norm(forces)):
            continue
        chosen: list[int] = []
        values, rest = np.zeros(0), goal
        for _ in range(TERMS):
            best = int(np.argmax(np.abs(basis.T @ rest) / scale))
            trial = [*chosen, best]
            solved = np.linalg.lstsq(basis[:, trial], goal, rcond=None)[0]
            left = goal - basis[:, trial] @ solved
            if best in chosen or np.linalg.norm(rest) - np.linalg.norm(left) < NEGLIGIBLE * size_of_force:
                break
            chosen, values, rest = trial, solved, left
        found |= {f"{letter}_{names[k]}": float(v) for k, v in zip(chosen, values, strict=True)}
        errors[f] = float(np.linalg.norm(rest)) / size_of_force
    return found, errors
