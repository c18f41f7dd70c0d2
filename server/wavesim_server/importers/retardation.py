"""Identification of a radiation memory from added mass and damping over frequency.

    K(i w) = B(w) + i w (A(w) - A_inf)                    (Ogilvie 1964)
    K_fit(s) = s P^T (s^2 + R s + diag(w_n^2))^-1 P,      R = L L^T

K_fit is fitted in the frequency domain by least squares (SciPy's trust region), jointly for all motions that radiate
the same waves. It is zero at zero frequency, falls as 1/s, and is passive and stable for any coefficients, so that no
pole needs to be moved or removed afterwards. If the table lacks the added mass at infinite frequency, the fit also
determines this added mass. The number of oscillators grows until the error is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.extras import check_installed
from wavesim_server.importers.panel_results import DOFS, RadiationCoefficients
from wavesim_world.config.validation import MAX_OSCILLATORS

TARGET_ERROR = 0.01  #: rms error, relative to the maximum in the table, at which no more oscillators are added
MAX_ERROR = 0.15  #: rms error above which the fit is rejected
MAX_GROUP_OSCILLATORS = 6  #: maximum number of oscillators for motions that radiate the same waves
SAMPLES = 80  #: maximum number of frequencies that the fit uses from a table
#: minimum damping of an oscillator relative to its frequency, because the radiated waves of a hull decay
MIN_DAMPING_RATIO = 0.02
#: maximum damping that is allowed at the lowest and at the highest frequency of a table, as fractions of the maximum
#: in the table
LEFT = 0.3, 0.8
#: a motion counts as radiating no waves if its damping is below this fraction of the maximum for motions of its kind
#: (translations or rotations)
RADIATION_THRESHOLD = 1e-6
#: two motions are fitted separately if their coupled damping is below this fraction of the geometric mean of their own
#: dampings
APART = 0.02


@dataclass(frozen=True)
class RadiationMemory:
    """Oscillators (w_n (n,) in rad/s, R (n, n), P (n, 6)), the added mass at infinite frequency (6, 6), and the errors
    of the fit.

    For each pair of motions, the errors are the rms and maximum errors of damping, and the maximum error of added mass.
    They are relative to the maximum in each table.
    """

    frequencies: Array
    damping: Array
    coupling: Array
    infinite: Array
    errors: dict[tuple[int, int], tuple[float, float, float]]

    def retardation(self, w: Array) -> Array:
        """Return the values ``K(i w)`` (frequencies, 6, 6)."""
        return _response(self.frequencies, self.damping, self.coupling, w)

    @property
    def poles(self) -> Array:
        """Return the poles of the oscillators in 1/s; all of them have a negative real part."""
        n = len(self.frequencies)
        if not n:
            return np.zeros(0, complex)
        system = np.block([[np.zeros((n, n)), np.eye(n)], [-np.diag(self.frequencies**2), -self.damping]])
        return np.asarray(np.linalg.eigvals(system))


def identify_memory(c: RadiationCoefficients) -> RadiationMemory:
    """Identify the radiation memory of a hull. Raises ValueError if the tables do not determine it."""
    a, b = (0.5 * (m + m.transpose(0, 2, 1)) for m in (c.added_mass, c.damping))
    loud = _radiating_motions(c.frequencies, b)
    _check_frequency_range(c.frequencies, b, loud)
    scale = np.sqrt(np.array([max(b[:, i, i].max(), 0.0) for i in range(6)]))
    infinite = np.array(c.infinite if c.infinite is not None else a[-1])
    infinite = 0.5 * (infinite + infinite.T)
    found: list[tuple[Array, Array, Array]] = []
    left = MAX_OSCILLATORS
    groups = _coupled_groups(b, loud, scale)
    for at, group in enumerate(groups):
        pick = np.ix_(range(len(c.frequencies)), group, group)
        unit = np.outer(scale[group], scale[group])
        known = None if c.infinite is None else infinite[np.ix_(group, group)] / unit
        room = left - 2 * (len(groups) - at - 1)
        w, r, p, inf = _fit(c.frequencies, a[pick] / unit, b[pick] / unit, known, min(MAX_GROUP_OSCILLATORS, room))
        coupling = np.zeros((len(w), 6))
        coupling[:, group] = p * scale[group]
        infinite[np.ix_(group, group)] = inf * unit
        found.append((w, r, coupling))
        left -= len(w)
    memory = _join_groups(found, infinite)
    fitted = memory.retardation(c.frequencies)
    errors = {}
    for group in groups:
        for i in group:
            for j in group:
                if j >= i and np.abs(b[:, i, j]).max() > APART * scale[i] * scale[j]:
                    errors[i, j] = _fit_errors(c.frequencies, a[:, i, j], b[:, i, j], fitted[:, i, j], infinite[i, j])
    memory = RadiationMemory(memory.frequencies, memory.damping, memory.coupling, memory.infinite, errors)
    worst = max(errors, key=lambda k: errors[k][0], default=None)
    if worst is not None and errors[worst][0] > MAX_ERROR:
        raise ValueError(
            f"the memory from {DOFS[worst[1]]} to {DOFS[worst[0]]} cannot be fitted: the error is {100 * errors[worst][0]:.0f} % rms of the "
            "maximum damping; look for irregular frequencies and for gaps between frequencies"
        )
    return memory


def _radiating_motions(w: Array, b: Array) -> list[int]:
    """Return the motions that radiate waves. Raises ValueError if the damping is physically impossible."""
    peak_damping = [float(b[:, i, i].max()) for i in range(6)]
    loud = []
    for i in range(6):
        kind = peak_damping[:3] if i < 3 else peak_damping[3:]
        if peak_damping[i] > RADIATION_THRESHOLD * max(kind) and peak_damping[i] > 0.0:
            loud.append(i)
            if -float(b[:, i, i].min()) > 0.1 * peak_damping[i]:
                raise ValueError(
                    f"the damping in {DOFS[i]} is negative at {w[int(b[:, i, i].argmin())]:.3g} rad/s ({b[:, i, i].min():.3g}); it must be "
                    "positive: check its sign, and whether this frequency is irregular (adding a lid to the panel mesh helps)"
                )
    return loud


def _check_frequency_range(w: Array, b: Array, loud: list[int]) -> None:
    """Raise ValueError if the damping at an end of the frequency range is still too high."""
    if len(w) < 8:
        raise ValueError(f"the table has {len(w)} frequencies; the memory needs at least 8; 40 or more are recommended")
    for i in loud:
        damping = b[:, i, i]
        for end, word, most in ((0, "longer", LEFT[0]), (-1, "shorter", LEFT[1])):
            share = damping[end] / damping.max()
            if share > most:
                raise ValueError(
                    f"periods {word} than {2 * np.pi / w[end]:.3g} s are missing: at this end of the range, the damping in {DOFS[i]} is still "
                    f"{100 * share:.0f} % of its maximum; at most {100 * most:.0f} % is allowed"
                )


def _coupled_groups(b: Array, loud: list[int], scale: Array) -> list[list[int]]:
    """Group those motions that radiate the same waves."""
    left, groups = list(loud), []
    while left:
        group = [left.pop(0)]
        for i in group:
            for j in [j for j in left if np.abs(b[:, i, j]).max() > APART * scale[i] * scale[j]]:
                left.remove(j)
                group.append(j)
        groups.append(sorted(group))
    return groups


def _response(w_n: Array, r: Array, p: Array, w: Array) -> Array:
    """Return s P^T (s^2 + R s + diag(w_n^2))^-1 P at s = i w."""
    n = len(w_n)
    if not n:
        return np.zeros((len(w), p.shape[1], p.shape[1]), complex)
    system = np.diag(w_n * w_n) - (w * w)[:, None, None] * np.eye(n) + 1j * w[:, None, None] * r
    return np.asarray(1j * w[:, None, None] * (p.T @ np.linalg.solve(system, np.broadcast_to(p, (len(w), *p.shape)))))


def _fit(w: Array, a: Array, b: Array, known: Array | None, most: int) -> tuple[Array, Array, Array, Array]:
    """Fit (w_n, R, P, A_inf) for one group of motions. The units are chosen so that the maximum damping of each motion
    is 1.
    """
    check_installed("scipy")
    from scipy.optimize import least_squares

    some = np.unique(np.linspace(0, len(w) - 1, min(len(w), SAMPLES)).round().astype(int))
    w, a, b = w[some], a[some], b[some]
    best: tuple[float, tuple[Array, Array, Array]] | None = None
    for n in range(max(2, min(b.shape[1], most)), max(most, 2) + 1):
        search = _FitProblem(w, a, b, known, n)
        before = np.inf if best is None else best[0]
        for start in _initial_guesses(w, b, n):
            # give little weight to single frequencies at which the panel code fails (irregular ones)
            solved = least_squares(
                search.residuals,
                start,
                search.residual_jacobian,
                x_scale="jac",
                loss="soft_l1",
                f_scale=0.1,
                max_nfev=200,
            )
            error = float(np.sqrt(2.0 * solved.cost / len(solved.fun)))
            if best is None or error < best[0]:
                best = error, search.parameters(solved.x)
        assert best is not None
        if best[0] < TARGET_ERROR or best[0] > 0.97 * before:
            break
    assert best is not None
    w_n, r, p = best[1]
    order = np.argsort(w_n)
    w_n, r, p = w_n[order], r[np.ix_(order, order)], p[order]
    return w_n, r, p, _infinite(w, a, _response(w_n, r, p, w), known)


def _frequency_weights(w: Array) -> Array:
    """Return the weight of each frequency: the fraction of the frequency range that it represents. With these weights,
    clusters of frequencies do not dominate the fit.
    """
    v = np.gradient(w)
    return np.asarray(np.sqrt(v / v.mean()))[:, None, None]


def _infinite(w: Array, a: Array, k: Array, known: Array | None) -> Array:
    """Return the best-fitting added mass at infinite frequency, or the known value."""
    if known is not None:
        return known
    at = w[:, None, None]
    v = _frequency_weights(w) ** 2 * at
    return np.asarray((v * (at * a - k.imag)).sum(axis=0) / (v * at).sum(axis=0))


class _FitProblem:
    """Residuals of the fit with n oscillators, and their Jacobian. The variables x are log w_n and the elements of L
    and P in row-major order, with R = L L^T + MIN_DAMPING_RATIO diag(w_n).
    """

    def __init__(self, w: Array, a: Array, b: Array, known: Array | None, n: int) -> None:
        self.w, self.a, self.b, self.known, self.n = w, a, b, known, n
        self.lower = np.tril_indices(n)
        self.weight = _frequency_weights(w)

    def parameters(self, x: Array) -> tuple[Array, Array, Array]:
        """Return (w_n, R, P), computed from ``x``, the variables of the fit."""
        n, root = self.n, self._root(x)
        w_n = np.exp(x[:n])
        return w_n, root @ root.T + MIN_DAMPING_RATIO * np.diag(w_n), x[n + len(self.lower[0]) :].reshape(n, -1)

    def _root(self, x: Array) -> Array:
        root = np.zeros((self.n, self.n))
        root[self.lower] = x[self.n : self.n + len(self.lower[0])]
        return root

    def residuals(self, x: Array) -> Array:
        """Return the weighted errors of the damping and of the added mass multiplied by w."""
        k = _response(*self.parameters(x), self.w)
        infinite = _infinite(self.w, self.a, k, self.known)
        at = self.w[:, None, None]
        return self._flat(k.real - self.b, k.imag - at * (self.a - infinite))

    def _flat(self, real: Array, imaginary: Array) -> Array:
        return np.concatenate([(self.weight * real).ravel(), (self.weight * imaginary).ravel()])

    def residual_jacobian(self, x: Array) -> Array:
        """Return the derivatives of the residuals with respect to x."""
        w_n, r, p = self.parameters(x)
        root, at = self._root(x), self.w[:, None, None]
        system = np.diag(w_n * w_n) - at * at * np.eye(self.n) + 1j * at * r
        y = np.linalg.solve(system, np.broadcast_to(p, (len(self.w), *p.shape)))
        columns = []
        for n in range(self.n):  # dK = -i w Y^T dS Y
            yy = y[:, n, :, None] * y[:, n, None, :]
            columns.append(-1j * at * yy * (2.0 * w_n[n] ** 2 + 1j * at * MIN_DAMPING_RATIO * w_n[n]))
        for i, j in zip(*self.lower, strict=True):
            cross = y[:, i, :, None] * (root[:, j] @ y)[:, None, :]
            columns.append(at * at * (cross + cross.transpose(0, 2, 1)))
        for n in range(self.n):
            for k in range(p.shape[1]):
                d = np.zeros((len(self.w), p.shape[1], p.shape[1]), complex)
                d[:, k, :] += y[:, n]
                d[:, :, k] += y[:, n]
                columns.append(1j * at * d)
        flat = []
        for d in columns:
            imaginary = d.imag
            if self.known is None:
                v = self.weight**2 * at
                imaginary = imaginary - at * ((v * imaginary).sum(axis=0) / (v * at).sum(axis=0))
            flat.append(self._flat(d.real, imaginary))
        return np.array(flat).T


def _initial_guesses(w: Array, b: Array, n: int) -> list[Array]:
    """Return initial guesses for the oscillators.

    The frequencies of the oscillators are spread over the band in which the hull radiates waves. Each oscillator has
    the direction of strongest radiation at its frequency. The second guess starts with the directions of the next
    strongest radiation.
    """
    power = np.trace(b, axis1=1, axis2=2)
    grown = np.cumsum(power * np.gradient(w))
    grown /= grown[-1]
    starts = []
    for turn, (low, high) in enumerate(((0.1, 0.9), (0.02, 0.98))):
        centres = np.interp(np.linspace(low, high, n), grown, w)
        width = max((centres[-1] - centres[0]) / n, 0.2 * centres[0])
        p = np.zeros((n, b.shape[1]))
        for k, c in enumerate(centres):
            values, vectors = np.linalg.eigh(b[int(np.argmin(np.abs(w - c)))])
            rank = (k * turn) % b.shape[1]
            p[k] = vectors[:, -1 - rank] * np.sqrt(max(values[-1 - rank], 0.05) * width)
        root = np.diag(np.full(n, np.sqrt(width)))
        starts.append(np.concatenate([np.log(centres), root[np.tril_indices(n)], p.ravel()]))
    return starts


def _join_groups(found: list[tuple[Array, Array, Array]], infinite: Array) -> RadiationMemory:
    """Join the fits of all groups of motions into one radiation memory."""
    n = sum(len(w) for w, _, _ in found)
    r, first = np.zeros((n, n)), 0
    for w, part, _ in found:
        r[first : first + len(w), first : first + len(w)] = part
        first += len(w)
    w = np.concatenate([w for w, _, _ in found]) if found else np.zeros(0)
    p = np.concatenate([p for _, _, p in found]) if found else np.zeros((0, 6))
    values, vectors = np.linalg.eigh(infinite)
    return RadiationMemory(w, r, p, (vectors * np.maximum(values, 0.0)) @ vectors.T, {})


def _fit_errors(w: Array, a: Array, b: Array, k: Array, infinite: float) -> tuple[float, float, float]:
    """Return the rms error of the damping, the maximum error of the damping, and the maximum error of the added mass,
    each relative to the maximum in its table.
    """
    damping = np.abs(k.real - b) / np.abs(b).max()
    added = np.abs(infinite + k.imag / w - a) / np.abs(a).max()
    return float(np.sqrt((damping**2).mean())), float(damping.max()), float(added.max())
