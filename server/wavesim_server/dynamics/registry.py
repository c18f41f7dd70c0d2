"""What installed packages add to the equation of motion, see :mod:`wavesim_server.dynamics.seams`.

The forces are called one after the other by functions that are made here and inlined into the kernel: with nothing
registered they are empty, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.kernel_compiler import always_inline
from wavesim_server.dynamics.rows import (
    ACTUATORS,
    BALLASTS,
    EXTRA,
    EXTRAS,
    FIRST_EXTRA_FLAG,
    KIND_FLAGS,
    KIND_OTHER,
    OTHER,
    OTHER_COEFFICIENTS,
    SLOT_BALLAST,
)
from wavesim_server.dynamics.seams import ActuatorType, Integrator, Term
from wavesim_server.dynamics.types import Floats, Ints

GROUP = "wavesim.dynamics"
MOST_TERMS = 32  #: each takes a flag
Seam = Term | ActuatorType | Integrator
Forces = Callable[[Floats, Floats, Floats, Ints], None]  #: of block, params, work, kind


def _registered() -> list[Seam]:
    """What all packages offer; ConfigError names the package whose offer cannot be used."""
    found: list[Seam] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        try:
            made = entry.load()
        except Exception as error:
            raise ConfigError(f"the entry point '{entry.name}' of {GROUP} cannot be loaded: {error}") from error
        if not isinstance(made, (Term, ActuatorType, Integrator)) or made.name != entry.name:
            raise ConfigError(
                f"the entry point '{entry.name}' of {GROUP} is no term, type of actuator or integrator of that name"
            )
        if made.name in (f.name for f in found):
            raise ConfigError(f"two packages offer '{entry.name}' by entry points of {GROUP}")
        found.append(made)
    return found


problem: ConfigError | None = None  #: with what is registered; raised where a fleet is made, not where this is imported
try:
    _all = _registered()
except ConfigError as _error:
    problem, _all = _error, []
TERMS: tuple[Term, ...] = tuple(t for t in _all if isinstance(t, Term))
ACTUATOR_TYPES: tuple[ActuatorType, ...] = tuple(t for t in _all if isinstance(t, ActuatorType))
INTEGRATORS: tuple[Integrator, ...] = tuple(t for t in _all if isinstance(t, Integrator))
#: row of the first coefficient of each term
FIRST = [EXTRA + sum(len(t.coefficients) for t in TERMS[:k]) for k in range(len(TERMS) + 1)]
if FIRST[-1] > EXTRA + EXTRAS or len(TERMS) > MOST_TERMS:
    problem = ConfigError(
        f"{len(TERMS)} terms with {FIRST[-1] - EXTRA} coefficients are registered; there is room for {MOST_TERMS} with {EXTRAS}"
    )


def flag_of(k: int) -> int:
    """The flag of kinds that have term k."""
    return FIRST_EXTRA_FLAG << k


@always_inline
def _nothing(block: Floats, params: Floats, work: Floats, kind: Ints) -> None:
    return


def _and_term(before: Forces, force: Callable[..., None], flag: int, first: int) -> Forces:
    @always_inline
    def forces(block: Floats, params: Floats, work: Floats, kind: Ints) -> None:
        before(block, params, work, kind)
        if kind[KIND_FLAGS] & flag:
            force(block, params, first, work)

    return forces


def _and_actuators(before: Forces, force: Callable[..., None], number: int) -> Forces:
    @always_inline
    def forces(block: Floats, params: Floats, work: Floats, kind: Ints) -> None:
        before(block, params, work, kind)
        for k in range(BALLASTS):
            if kind[KIND_OTHER + k] == number:
                force(block, params, OTHER + OTHER_COEFFICIENTS * k, ACTUATORS + SLOT_BALLAST + k, work)

    return forces


#: forces of all registered terms that a kind has, and of its actuators of registered types
terms: Forces = _nothing
for _k, _term in enumerate(TERMS):
    terms = _and_term(terms, _term.force, flag_of(_k), FIRST[_k])
actuators: Forces = _nothing
for _k, _type in enumerate(ACTUATOR_TYPES):
    actuators = _and_actuators(actuators, _type.force, 1 + _k)
