"""What a package may add to the equation of motion: terms, types of actuators, integrators (docs/extending.md).

A package offers an object of one of these classes by an entry point of the group ``wavesim.dynamics``. Forces are
compiled functions, ``numba.njit(error_model="numpy", forceinline=True)``, made of what :mod:`wavesim_server.dynamics.lanes`
has and of the rows of :mod:`wavesim_server.dynamics.rows`: they add to the rows ``FORCE`` of the work, N and N m in B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wavesim_server.dynamics.rows import GAINS, OTHER_COEFFICIENTS, STAGES


@dataclass(frozen=True)
class Term:
    """A force of the hull, of models with ``<term name="...">``.

    ``force(block, params, first, work)``: the coefficients are ``broadcast(params, first)``, ``first + 1``, ...
    """

    name: str
    coefficients: tuple[str, ...]  #: names of the numbers that a model must give, SI
    force: Callable[..., None]


@dataclass(frozen=True)
class ActuatorType:
    """A type of actuator, of models with ``<actuator type="...">``.

    ``force(block, params, first, slot, work)``: coefficients as for a term; ``load(work, slot)`` is the lagged value.
    """

    name: str
    coefficients: tuple[str, ...]  #: at most OTHER_COEFFICIENTS
    force: Callable[..., None]

    def __post_init__(self) -> None:
        if len(self.coefficients) > OTHER_COEFFICIENTS:
            raise ValueError(f"{len(self.coefficients)} coefficients; there is room for {OTHER_COEFFICIENTS}")


@dataclass(frozen=True)
class Integrator:
    """An explicit method of Runge and Kutta: its tableau, and how far it is stable."""

    name: str
    times: tuple[float, ...]  #: of the stages, as parts of the step; the first is 0
    stages: tuple[tuple[float, ...], ...]  #: of each stage the weights of the derivatives before it; the first is empty
    weights: tuple[float, ...]  #: of all derivatives in the step
    stable: float  #: the greatest abs(lambda) h, less a margin, with which motions do not grow

    def __post_init__(self) -> None:
        n = len(self.times)
        if not 1 <= n <= STAGES:
            raise ValueError(f"{n} stages; 1 to {STAGES} are possible")
        if [len(s) for s in self.stages] != list(range(n)) or len(self.weights) != n:
            raise ValueError("stage k has k weights, the first none, and the step one for each stage")
        sums = [*map(sum, self.stages), sum(self.weights)]
        if any(abs(a - b) > 1e-12 for a, b in zip(sums, (*self.times, 1.0), strict=True)):
            raise ValueError("the weights of each stage must have its time for their sum, and those of the step 1")
        if min(self.times) < 0.0 or max(self.times) > 1.0 or len(self.gains) > GAINS:
            raise ValueError(f"stages are from 0 to 1, at no more than {GAINS - 1} times in between")

    @property
    def gains(self) -> tuple[float, ...]:
        """Times at which lagged actuators are needed, the start aside; first the end, for the next step."""
        return (1.0, *sorted({*self.times} - {0.0, 1.0}))
