"""Registry of the extensions of installed packages; see :mod:`wavesim_server.dynamics.extension_points`.

The functions that are generated here call the force functions of the extensions one after the other, and are inlined
into the kernel. Without extensions, the generated functions are empty and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from wavesim_kernels.compiler import MODE, Mode, always_inline
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.errors import ConfigError
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.extension_points import ActuatorType, Integrator, Term
from wavesim_server.dynamics.sizes import BALLASTS, MAX_EXTENSION_COEFFICIENTS, OTHER_COEFFICIENTS, SLOT_BALLAST

GROUP = "wavesim.dynamics"
MAX_TERMS = 32  #: maximum number of terms; each term uses one flag
Extension = Term | ActuatorType | Integrator
#: type of a force function with the arguments block, params, work and kind
Forces = Callable[[Floats, Floats, Floats, Ints], None]


def _load_extensions() -> list[Extension]:
    """Load the extensions of all packages. Raises ConfigError, naming the package, if an extension cannot be used."""
    found: list[Extension] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        if MODE is Mode.MACHINE_CODE:
            raise ConfigError(
                f"'{entry.name}' extends the dynamics, so the kernels must be compiled: run pip install 'wavesim[extend]'"
            )
        try:
            made = entry.load()
        except Exception as error:
            raise ConfigError(f"the entry point '{entry.name}' of {GROUP} cannot be loaded: {error}") from error
        if not isinstance(made, (Term, ActuatorType, Integrator)) or made.name != entry.name:
            raise ConfigError(
                f"the entry point '{entry.name}' of {GROUP} must refer to a term, actuator type or integrator with the name '{entry.name}'"
            )
        if made.name in (f.name for f in found):
            raise ConfigError(f"two packages provide '{entry.name}' as entry points of {GROUP}")
        found.append(made)
    return found


load_error: ConfigError | None = (
    None  #: error in a registered extension; it is raised when a fleet is created, not when this module is imported
)
try:
    _all = _load_extensions()
except ConfigError as _error:
    load_error, _all = _error, []
TERMS: tuple[Term, ...] = tuple(t for t in _all if isinstance(t, Term))
ACTUATOR_TYPES: tuple[ActuatorType, ...] = tuple(t for t in _all if isinstance(t, ActuatorType))
INTEGRATORS: tuple[Integrator, ...] = tuple(t for t in _all if isinstance(t, Integrator))
#: row of the first coefficient of each term
FIRST_COEFFICIENT = [
    P.EXTENSION_COEFFICIENT + sum(len(t.coefficients) for t in TERMS[:k]) for k in range(len(TERMS) + 1)
]
if FIRST_COEFFICIENT[-1] > P.EXTENSION_COEFFICIENT + MAX_EXTENSION_COEFFICIENTS or len(TERMS) > MAX_TERMS:
    load_error = ConfigError(
        f"{len(TERMS)} terms with {FIRST_COEFFICIENT[-1] - P.EXTENSION_COEFFICIENT} coefficients are registered; the maximum is {MAX_TERMS} terms with {MAX_EXTENSION_COEFFICIENTS} coefficients"
    )


def term_flag(k: int) -> int:
    """Return the flag of the models that have term k."""
    return M.FIRST_EXTRA_FLAG << k


@always_inline
def _no_force(block: Floats, params: Floats, work: Floats, model_ints: Ints) -> None:
    return


def _chain_term(before: Forces, force: Callable[..., None], flag: int, first: int) -> Forces:
    @always_inline
    def forces(block: Floats, params: Floats, work: Floats, kind: Ints) -> None:
        before(block, params, work, kind)
        if kind[M.FLAGS] & flag:
            force(block, params, first, work)

    return forces


def _chain_actuator_type(before: Forces, force: Callable[..., None], number: int) -> Forces:
    @always_inline
    def forces(block: Floats, params: Floats, work: Floats, kind: Ints) -> None:
        before(block, params, work, kind)
        for k in range(BALLASTS):
            if kind[M.OTHER_TYPES + k] == number:
                force(
                    block,
                    params,
                    P.OTHER_COEFFICIENT + OTHER_COEFFICIENTS * k,
                    W.STAGE_ACTUATORS + SLOT_BALLAST + k,
                    work,
                )

    return forces


#: forces from a model's registered terms and from its actuators with registered types
terms: Forces = _no_force
for _k, _term in enumerate(TERMS):
    terms = _chain_term(terms, _term.force, term_flag(_k), FIRST_COEFFICIENT[_k])
actuators: Forces = _no_force
for _k, _type in enumerate(ACTUATOR_TYPES):
    actuators = _chain_actuator_type(actuators, _type.force, 1 + _k)
