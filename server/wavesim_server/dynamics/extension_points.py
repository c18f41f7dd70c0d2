"""Extension points for packages that add terms, actuator types or integrators to the dynamics (docs/extending.md).

A package publishes an object of one of these classes as an entry point in the group ``wavesim.dynamics``. Forces are
compiled functions, decorated with :func:`wavesim_kernels.compiler.always_inline`. They use the operations in
:mod:`wavesim_server.dynamics.lanes`, read the rows of :mod:`~wavesim_server.dynamics.work_rows` and
:mod:`~wavesim_server.dynamics.parameter_rows`, and add forces (N) and moments (N m) in B to the rows ``W.FORCE`` of
the work array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wavesim_server.dynamics.sizes import GAINS, OTHER_COEFFICIENTS, STAGES


@dataclass(frozen=True)
class Term:
    """A hull force for models with ``<term name="...">``.

    The kernel calls ``force(block, params, first, work)``; the coefficients are ``broadcast(params, first)``,
    ``broadcast(params, first + 1)``, ...
    """

    name: str
    coefficients: tuple[str, ...]  #: names of the coefficients that a model must state, in SI units
    force: Callable[..., None]


@dataclass(frozen=True)
class ActuatorType:
    """An actuator type for models with ``<actuator type="...">``.

    The kernel calls ``force(block, params, first, slot, work)``. The coefficients are read as for a :class:`Term`;
    ``load(work, slot)`` is the lagged value of the actuator.
    """

    name: str
    coefficients: tuple[str, ...]  #: names of the coefficients (at most OTHER_COEFFICIENTS)
    force: Callable[..., None]

    def __post_init__(self) -> None:
        if len(self.coefficients) > OTHER_COEFFICIENTS:
            raise ValueError(f"{len(self.coefficients)} coefficients; the maximum is {OTHER_COEFFICIENTS}")


@dataclass(frozen=True)
class Integrator:
    """An explicit Runge-Kutta method with its tableau and its stability limit."""

    name: str
    times: tuple[float, ...]  #: times of the stages as fractions of the step; the first one is 0
    stages: tuple[tuple[float, ...], ...]  #: for each stage, the weights of the derivatives of all earlier stages
    weights: tuple[float, ...]  #: weights with which the derivatives of all stages enter the result of the step
    stable: float  #: stability limit: the maximum abs(lambda) h at which motions do not grow, reduced by a margin

    def __post_init__(self) -> None:
        n = len(self.times)
        if not 1 <= n <= STAGES:
            raise ValueError(f"{n} stages; use 1 to {STAGES}")
        if [len(s) for s in self.stages] != list(range(n)) or len(self.weights) != n:
            raise ValueError(
                "invalid number of weights: stage k (counted from 0) needs k weights, and the step needs one weight per stage"
            )
        sums = [*map(sum, self.stages), sum(self.weights)]
        if any(abs(a - b) > 1e-12 for a, b in zip(sums, (*self.times, 1.0), strict=True)):
            raise ValueError(
                "the weights of each stage must add up to its time, and the weights of the step must add up to 1"
            )
        if min(self.times) < 0.0 or max(self.times) > 1.0 or len(self.gains) > GAINS:
            raise ValueError(
                f"stage times must be from 0 to 1, with at most {GAINS - 1} different times other than 0 and 1"
            )

    @property
    def gains(self) -> tuple[float, ...]:
        """Return the times at which the values of lagged actuators are needed, except the start of the step. The end of
        the step comes first, because the next step needs the values at this time.
        """
        return (1.0, *sorted({*self.times} - {0.0, 1.0}))
