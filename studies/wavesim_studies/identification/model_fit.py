"""Fit of a model's coefficients to recorded trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats, Mask
from wavesim_sdk.errors import ConfigError
from wavesim_studies.identification.least_squares import Solution, cost_of, solve, weights_of
from wavesim_studies.identification.recorded_trials import RecordedTrial
from wavesim_studies.identification.shooting import ShootingOptions, ShootingProblem
from wavesim_studies.identification.uncertainty import FitUncertainty, uncertainty
from wavesim_studies.identification.unknowns import FittedUnknown
from wavesim_world.config import Model

Say = Callable[[str], object]
ROUNDS = 3  #: number of fits; after each, the noise of the channels is estimated again


@dataclass(frozen=True)
class FitResult:
    """Result of a fit."""

    problem: ShootingProblem
    solution: Solution
    uncertainty: FitUncertainty

    @property
    def unknowns(self) -> list[FittedUnknown]:
        return self.problem.unknowns

    def value(self, k: int) -> float:
        """Return the fitted value of an unknown."""
        return self.unknowns[k].value(float(self.solution.x[k]))

    def sd(self, k: int) -> float:
        """Return the standard deviation of the fitted value of an unknown."""
        return self.unknowns[k].deviation(float(self.solution.x[k]), float(self._sds[k]))

    def interval(self, k: int) -> tuple[float, float]:
        """Return the 95 % interval of an unknown."""
        x, s = float(self.solution.x[k]), 1.96 * float(self._sds[k])
        a, b = (self.unknowns[k].value(x + side * s) for side in (-1.0, 1.0))
        return min(a, b), max(a, b)

    @property
    def _sds(self) -> Floats:
        return np.sqrt(np.diagonal(self.uncertainty.covariance))

    @property
    def model(self) -> Model:
        """The model with the fitted coefficients."""
        return self.problem.model_at(self.solution.x)

    def common_values(self) -> dict[str, float]:
        """Return the fitted unknowns that are neither coefficients nor belong to one log."""
        return {u.path: self.value(k) for k, u in enumerate(self.unknowns) if u.kind != "coefficient" and u.log < 0}


def fit(
    model: Model,
    trials: Sequence[RecordedTrial],
    unknowns: Sequence[FittedUnknown],
    options: ShootingOptions,
    assumed: dict[str, float] | None = None,
    say: Say = lambda text: None,
    rounds: int = 30,
) -> FitResult:
    """Fit the unknowns to the trials. The noise of each channel is estimated from the residuals."""
    problem = ShootingProblem(model, trials, unknowns, options, assumed)
    x = np.zeros(problem.size)
    for k in range(ROUNDS):
        last = k == ROUNDS - 1
        solution = solve(problem.residuals, problem.jacobian, x, problem.robust, rounds if last else min(rounds, 12))
        x = solution.x
        if not last:
            problem.update_noise(solution.residuals)
            problem.reassign(x)
        say(f"round {k + 1} of {ROUNDS}: cost {solution.cost:.6g} after {solution.rounds} steps")
    return FitResult(problem, solution, uncertainty(problem, solution))


def assess(
    model: Model,
    trials: Sequence[RecordedTrial],
    unknowns: Sequence[FittedUnknown],
    options: ShootingOptions,
    assumed: dict[str, float] | None = None,
) -> FitResult:
    """Return what the trials tell about the unknowns, at the values that the model has now. Only the start states are
    fitted.
    """
    problem = ShootingProblem(model, trials, unknowns, options, assumed)
    k, x = len(problem.unknowns), np.zeros(problem.size)
    for _ in range(2):
        part = _solve_part(problem, x, np.arange(problem.size) >= k, 8)
        x = np.concatenate([x[:k], part.x])
        problem.update_noise(part.residuals)
    r, J = problem.jacobian(x)
    w = weights_of(r, problem.robust)
    normal = (J.T @ J.multiply(w[:, None]).tocsr()).toarray()
    solution = Solution(x, cost_of(r, problem.robust), normal, r, J, w, 0, True)
    return FitResult(problem, solution, uncertainty(problem, solution))


def _solve_part(problem: ShootingProblem, x: Floats, free: Mask, rounds: int) -> Solution:
    """Fit the unknowns that ``free`` selects; the others keep their values in ``x``."""
    chosen = np.flatnonzero(free)

    def whole(y: Floats) -> Floats:
        made = x.copy()
        made[chosen] = y
        return made

    def jacobian(y: Floats) -> tuple[Floats, Any]:
        r, J = problem.jacobian(whole(y))
        return r, J[:, chosen]

    return solve(lambda y: problem.residuals(whole(y)), jacobian, x[chosen], problem.robust, rounds)


def profile(result: FitResult, k: int, steps: Sequence[float] = (-2.0, 2.0)) -> list[float]:
    """Return the increase of twice the cost when an unknown is held at some standard deviations from its fitted value,
    and all others are fitted again. For a nearly linear problem with white residuals, it is the square of ``steps``.
    """
    problem, solution = result.problem, result.solution
    sd = np.sqrt(np.linalg.inv(solution.normal)[k, k])
    found = []
    for step in steps:
        x = solution.x.copy()
        x[k] += step * sd
        part = _solve_part(problem, x, np.arange(problem.size) != k, 6)
        found.append(2.0 * (part.cost - solution.cost))
    return found


def reversed_signs(result: FitResult, say: Say = lambda text: None) -> list[str]:
    """Return a sentence for each actuator whose commands fit much better with the opposite sign. Nothing is changed.

    Fits with the opposite sign take time, so this is tested only if a channel's residuals are as large as half of its
    variation.
    """
    problem = result.problem
    if all(share > 0.75 for share in explained(problem, result.solution.residuals).values()):
        return []
    found = []
    for name in dict.fromkeys(n for t in problem.trials for n in t.commands):
        values = np.concatenate([t.commands[name].value for t in problem.trials if name in t.commands])
        if np.ptp(values) < 1e-9 or not (values.min() < 0.0 < values.max()):
            continue
        say(f"testing the sign of '{name}'")
        other = ShootingProblem(
            problem.model, [t.reversed_commands(name) for t in problem.trials], problem.unknowns, problem.options,
            problem.assumed,
        )  # fmt: skip
        other.sigma = dict(problem.sigma)
        try:
            best = solve(other.residuals, other.jacobian, np.zeros(other.size), other.robust, 8)
        except ConfigError:  # it diverges, so it does not fit better
            continue
        now = cost_of(result.solution.residuals, problem.robust)
        if best.cost < 0.5 * now:
            found.append(
                f"the commands of '{name}' fit much better with the opposite sign (cost {best.cost:.3g} instead of "
                f"{now:.3g}): check the sign in the log or in the map; nothing was changed"
            )
    return found


def explained(problem: ShootingProblem, r: Floats) -> dict[str, float]:
    """Return the share of the variance of each channel that the fitted segments explain."""
    found = {}
    for channel in problem.channels:
        mine = problem.rows_of(channel)
        values = np.concatenate([v.value - np.mean(v.value) for v in problem.measured if v.channel == channel])
        if len(values) and np.var(values) > 0.0:
            found[channel] = 1.0 - float(np.var(r[mine]) * problem.sigma[channel] ** 2 / np.var(values))
    return found
