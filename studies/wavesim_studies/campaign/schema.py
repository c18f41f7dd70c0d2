"""Declarations of all elements and keys of a campaign file, in the same form as for a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.schema import child, children, choice, flag, key, place, text

DESIGNS = ("seeds", "list", "grid", "one-at-a-time", "random", "latin", "sobol", "halton", "sensitivity")
DISTRIBUTIONS = ("uniform", "log-uniform", "normal", "truncated")


@dataclass(frozen=True)
class FactorTarget:
    """Key of the configuration that a factor sets."""

    path: str = text(
        "Path of the key: the elements below <wavesim> and then the key, as in `fleet/vehicle[lauv]/position`. If"
        " there are several elements of the same type, add the name of one, or its number (from 0), in brackets."
    )
    text: str = text(
        "Text that is written to the key. {} stands for the value of the factor, as in `{} ppm` or `-{} {} 8 m`. To "
        "give each of the factor's `values` its own text, separate the texts with |, as in `a | b | c`.",
        "{}",
    )
    place: str = place()


@dataclass(frozen=True)
class Factor:
    """Factor that differs between runs. It has either listed `values` or a range of numbers.

    With kind=function, a factor needs no <key>, because the program receives its value directly.
    """

    name: str = text("Unique name; the table has a column with this name.")
    values: str = text(
        "Values of the factor: numbers or names, separated by |. If empty, the factor has a range (`low` and `high`) "
        "or a distribution.",
        "",
    )
    low: float = key("Minimum value of the range, without a unit. `text` adds the unit.", default=0.0)
    high: float = key("Maximum value of the range, without a unit.", default=0.0)
    distribution: str = choice(
        "Distribution of the values between `low` and `high`. `normal` uses only `mean` and `deviation`. `truncated` "
        "is a normal distribution that is cut off at `low` and `high`.",
        DISTRIBUTIONS,
        "uniform",
    )
    mean: float = key("Mean of a normal distribution.", default=0.0)
    deviation: float = key("Standard deviation of a normal distribution.", default=1.0, low=0.0)
    levels: int = key(
        "Number of values that the `grid` and `one-at-a-time` designs take from the range or distribution.",
        default=3,
        low=1,
        integer=True,
    )
    key: tuple[FactorTarget, ...] = children(FactorTarget, "A key that the factor sets.")
    place: str = place()


@dataclass(frozen=True)
class DesignPoint:
    """One point of the `list` design."""

    set: str = text("Value of each factor, as NAME=VALUE pairs separated by semicolons.")
    place: str = place()


@dataclass(frozen=True)
class PointFilter:
    """Condition that the points of the design must fulfil. Other points are not run."""

    where: str = text("Condition on the factors, such as `spread &gt; 100 and drift == 0`.")
    place: str = place()


@dataclass(frozen=True)
class DesignConfig:
    """Selection of the points to run, and the number of runs at each point."""

    kind: str = choice(
        "Type of design. `seeds` varies only the replicates. `list` runs each <point>. `grid` runs all combinations. "
        "`one-at-a-time` varies each factor alone around its middle value. `random`, `latin`, `sobol` and `halton` "
        "draw `points` samples. `sensitivity` draws points x (factors + 2) samples.",
        DESIGNS,
        "grid",
    )
    points: int = key(
        "Number of samples. The `sobol` and `sensitivity` designs require a power of two.",
        default=16,
        low=1,
        integer=True,
    )
    strength: int = key(
        "Strength of a Latin hypercube. Strength 2 also fills each plane of two factors evenly; it needs p^2 points, where p is a prime.",
        default=1,
        low=1,
        high=2,
        integer=True,
    )
    replicates: int = key(
        "Number of runs at each point, with different random numbers. Every point uses the same set of seeds.",
        default=1,
        low=1,
        integer=True,
    )
    point: tuple[DesignPoint, ...] = children(DesignPoint, "A point of the `list` design.")
    keep: tuple[PointFilter, ...] = children(PointFilter, "A condition that the points must fulfil.")


@dataclass(frozen=True)
class RunConfig:
    """Definition of one run of a campaign."""

    kind: str = choice(
        "Type of run. `lab` runs the engine as a library in the worker process. `trial` starts the server, emulators and "
        "programs as separate processes. `function` only calls `program` with the factors and a seed; nothing is "
        "simulated.",
        ("lab", "trial", "function"),
        "lab",
    )
    program: str = text(
        "Python function to call, as FILE.py:FUNCTION; the path is relative to this file. With kind=lab, the function "
        "receives (lab, seconds), controls the vehicles and advances the simulation; without a program, only "
        "time advances. With kind=function, it receives (factors, seed) and returns the metrics.",
        "",
    )
    duration: float = key(
        "Simulated time of a run. 0 s selects the duration that the configuration specifies.", "time", 0.0, low=0.0
    )
    timeout: float = key("Wall time after which a run is stopped.", "time", 600.0, low=0.1)
    attempts: int = key(
        "Maximum number of attempts for a run whose worker crashed. A run that raises an error is not repeated.",
        default=3,
        low=1,
        high=10,
        integer=True,
    )
    logs: str = choice("Trial logs to keep.", ("all", "failed", "none"), "failed")


@dataclass(frozen=True)
class Metric:
    """Metric: a number computed from each run."""

    name: str = text("Unique name; the table has a column with this name.")
    of: str = text(
        "A metric from the library, or FILE.py:FUNCTION, which is called with the result of a run. If empty, the "
        "metric is the value that `program` returns under the metric's name.",
        "",
    )
    body: str = text("Body for which the metric is computed. If empty, the first vehicle is used.", "")
    unit: str = text("Unit of a metric that your own function computes.", "")
    better: str = choice(
        "Whether higher or lower values are better. If empty, the library's definition applies.",
        ("", "lower", "higher"),
        "",
    )
    margin: float = key(
        "Margin by which the mean may become worse before `gate` fails, as a fraction of the mean in the earlier "
        "campaign.",
        default=0.05,
        low=0.0,
    )
    place: str = place()


@dataclass(frozen=True)
class SuccessRule:
    """Condition under which a finished run is a success. Without it, every finished run is a success."""

    where: str = text("Condition on the metrics, such as `navigation &lt; 5`.")
    place: str = place()


@dataclass(frozen=True)
class WorkersConfig:
    """Workers that execute the runs."""

    kind: str = choice(
        "Type of workers. `pool` uses processes on this machine, and `dask` does the same through dask.distributed. "
        "`ssh`, `slurm` and `kubernetes` use other machines through dask; these must have the campaign's folder at "
        "the same path.",
        ("pool", "dask", "ssh", "slurm", "kubernetes"),
        "pool",
    )
    count: int = key("Number of simultaneous runs; 0 = one per core.", default=0, low=0, high=10_000, integer=True)
    hosts: str = text(
        "For kind=ssh: hosts that execute the runs, separated by spaces. The first host also runs the scheduler.", ""
    )
    options: str = text(
        "For kind=dask: `address=tcp://HOST:PORT` of a running scheduler. Its workers must have the campaign's "
        "folder at the same path. For ssh, slurm and kubernetes: NAME=VALUE options of the dask cluster, such as "
        "`queue=short; memory=2GB; job_cpu=2`.",
        "",
    )
    dashboard: bool = flag("For kind=dask: whether dask serves its dashboard on loopback.", False)


@dataclass(frozen=True)
class Campaign:
    """Root element <campaign>."""

    name: str = text("Name of the campaign. Its results are written to a folder of this name.")
    config: str = text(
        "Base configuration of all runs, as a path relative to this file. Runs with kind=function need none.", ""
    )
    seed: int = key("Seed for the design and the runs.", default=1, low=0, high=2**53, integer=True)
    design: DesignConfig = child(DesignConfig, "Design of the campaign.")
    run: RunConfig = child(RunConfig, "Definition of a run.")
    workers: WorkersConfig = child(WorkersConfig, "Workers that execute the runs.")
    factor: tuple[Factor, ...] = children(Factor, "Factor that differs between runs.")
    metric: tuple[Metric, ...] = children(Metric, "Metric that is computed from each run.")
    success: SuccessRule | None = child(SuccessRule, "Condition for success.")
