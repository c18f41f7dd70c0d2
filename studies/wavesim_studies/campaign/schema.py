"""Declare every element and key of a campaign file, in the same way as those of a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.schema import child, children, choice, flag, key, place, text

DESIGNS = ("seeds", "list", "grid", "one-at-a-time", "random", "latin", "sobol", "halton", "sensitivity")
DISTRIBUTIONS = ("uniform", "log-uniform", "normal", "truncated")


@dataclass(frozen=True)
class FactorTarget:
    """Key of the configuration that follows a factor."""

    path: str = text(
        "Path of the key: elements below <wavesim> and then the key, as in `fleet/vehicle[lauv]/position`. Names, "
        "or numbers from 0, distinguish several elements of the same kind."
    )
    text: str = text(
        "Text written to the key, with {} for the factor's value: `{} ppm`, `-{} {} 8 m`. `a | b | c`: one text for "
        "each of the factor's `values`.",
        "{}",
    )
    place: str = place()


@dataclass(frozen=True)
class Factor:
    """Factor that differs between runs: named `values`, or a range of numbers.

    With kind=function a factor needs no <key>, because the program receives its value directly.
    """

    name: str = text("Unique name; it becomes a column of the table.")
    values: str = text("Values separated by |: numbers or names. Empty: `low` and `high`, or a distribution.", "")
    low: float = key("Minimum value, a pure number. The text of the key gives the unit.", default=0.0)
    high: float = key("Maximum value, a pure number.", default=0.0)
    distribution: str = choice(
        "Distribution of the values between `low` and `high`. normal: by `mean` and `deviation` only. truncated: "
        "the same, cut off at `low` and `high`.",
        DISTRIBUTIONS,
        "uniform",
    )
    mean: float = key("Mean of a normal distribution.", default=0.0)
    deviation: float = key("Standard deviation of a normal distribution.", default=1.0, low=0.0)
    levels: int = key(
        "Number of values into which a range is divided by the designs grid and one-at-a-time.",
        default=3,
        low=1,
        integer=True,
    )
    key: tuple[FactorTarget, ...] = children(FactorTarget, "A key that follows the factor.")
    place: str = place()


@dataclass(frozen=True)
class DesignPoint:
    """One point of design=list."""

    set: str = text("NAME=VALUE for each factor, separated by ;.")
    place: str = place()


@dataclass(frozen=True)
class PointFilter:
    """Condition that the points of the design must fulfil. All other points are left out."""

    where: str = text("Comparison of factors, such as `spread &gt; 100 and drift == 0`.")
    place: str = place()


@dataclass(frozen=True)
class DesignConfig:
    """Points of the factors to run, and the number of runs of each."""

    kind: str = choice(
        "seeds: replicates only, without factors. list: the given <point>s. grid: all combinations. one-at-a-time: "
        "each factor varies alone around its middle value. random, latin, sobol, halton: `points` samples. "
        "sensitivity: points (factors + 2) samples for Sobol indices.",
        DESIGNS,
        "grid",
    )
    points: int = key("Number of samples; a power of two for sobol and sensitivity.", default=16, low=1, integer=True)
    strength: int = key(
        "2: a latin hypercube that is even in all pairs of factors. It needs p^2 points with p a prime.",
        default=1,
        low=1,
        high=2,
        integer=True,
    )
    replicates: int = key(
        "Runs of each point with different random numbers. Every point uses the same set of seeds.",
        default=1,
        low=1,
        integer=True,
    )
    point: tuple[DesignPoint, ...] = children(DesignPoint, "A point of design=list.")
    keep: tuple[PointFilter, ...] = children(PointFilter, "A condition that points must fulfil.")


@dataclass(frozen=True)
class RunConfig:
    """Definition of one run."""

    kind: str = choice(
        "lab: the engine as a library, in the worker's process. trial: server, emulators and programs as separate "
        "processes. function: only `program`, called with the factors and a seed; nothing is simulated.",
        ("lab", "trial", "function"),
        "lab",
    )
    program: str = text(
        "FILE.py:FUNCTION, relative to this file. lab: called with (lab, seconds); it drives and advances the "
        "simulation. Without a program, time only advances. function: called with (factors, seed); it returns the "
        "metrics.",
        "",
    )
    duration: float = key("Simulated time; 0 s = that of the configuration.", "time", 0.0, low=0.0)
    timeout: float = key("Wall time after which a run is stopped.", "time", 600.0, low=0.1)
    attempts: int = key(
        "Maximum attempts for a run whose worker crashed. A run that raises an error is not repeated.",
        default=3,
        low=1,
        high=10,
        integer=True,
    )
    logs: str = choice("Logs of trials to keep.", ("all", "failed", "none"), "failed")


@dataclass(frozen=True)
class Metric:
    """Metric: a number computed from each run."""

    name: str = text("Unique name; it becomes a column of the table.")
    of: str = text(
        "A metric of the library, or FILE.py:FUNCTION, called with the result of a run. With kind=function, a value "
        "that the program returns.",
        "",
    )
    body: str = text("Body that the metric is about. Empty: the first vehicle.", "")
    unit: str = text("Unit of a metric of your own.", "")
    better: str = choice(
        "Direction that counts as better. Empty: as defined in the library.", ("", "lower", "higher"), ""
    )
    margin: float = key(
        "Amount by which the mean may worsen before `gate` fails, as a share of the previous mean.",
        default=0.05,
        low=0.0,
    )
    place: str = place()


@dataclass(frozen=True)
class SuccessRule:
    """Condition under which a finished run is a success. Without it, every finished run is one."""

    where: str = text("Comparison of metrics, such as `navigation &lt; 5`.")
    place: str = place()


@dataclass(frozen=True)
class WorkersConfig:
    """Workers that execute the runs."""

    kind: str = choice(
        "pool: processes on this machine. dask: the same through dask.distributed. ssh, slurm, kubernetes: other "
        "machines through dask. These must have the campaign's folder at the same path.",
        ("pool", "dask", "ssh", "slurm", "kubernetes"),
        "pool",
    )
    count: int = key("Number of runs at the same time; 0 = one per core.", default=0, low=0, high=10_000, integer=True)
    hosts: str = text(
        "For ssh: hosts separated by spaces, which share the runs. The first one also runs the scheduler.", ""
    )
    options: str = text(
        "dask: `address=tcp://HOST:PORT` of a running scheduler whose workers have the campaign's folder at the "
        "same path; `count` limits its runs at the same time. ssh, slurm, kubernetes: NAME=VALUE options of the "
        "dask cluster, separated by ; (`queue=short; memory=2GB; job_cpu=2`).",
        "",
    )
    dashboard: bool = flag("For dask: whether to serve its own dashboard, on loopback.", False)


@dataclass(frozen=True)
class Campaign:
    """Root element <campaign>."""

    name: str = text("Name of the campaign. Its results go to a folder of this name.")
    config: str = text("Base configuration of all runs, relative to this file. Not needed for kind=function.", "")
    seed: int = key("Seed of the design and of the runs.", default=1, low=0, high=2**53, integer=True)
    design: DesignConfig = child(DesignConfig, "Design of the campaign.")
    run: RunConfig = child(RunConfig, "Definition of a run.")
    workers: WorkersConfig = child(WorkersConfig, "Workers that execute the runs.")
    factor: tuple[Factor, ...] = children(Factor, "A factor.")
    metric: tuple[Metric, ...] = children(Metric, "A metric.")
    success: SuccessRule | None = child(SuccessRule, "Condition for success.")
