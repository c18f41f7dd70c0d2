"""What stands in a campaign's file: every element and key, declared once as those of a configuration are."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.schema import child, children, choice, flag, key, place, text

DESIGNS = ("seeds", "list", "grid", "one-at-a-time", "random", "latin", "sobol", "halton", "sensitivity")
DISTRIBUTIONS = ("uniform", "log-uniform", "normal", "truncated")


@dataclass(frozen=True)
class FactorTarget:
    """A key of the configuration that follows a factor."""

    path: str = text(
        "Where it stands: elements below <wavesim> and the key, as in `fleet/vehicle[lauv]/position`. Several elements of a kind "
        "are told apart by name, or by number from 0."
    )
    text: str = text(
        "What is written there, with {} for the factor's value: `{} ppm`, `-{} {} 8 m`. `a | b | c`: one for each of its `values`.",
        "{}",
    )
    place: str = place()


@dataclass(frozen=True)
class Factor:
    """Something that differs between runs: named `values`, or a range of numbers. What a program (kind=function) is given needs
    no <key>."""

    name: str = text("Unique name; a column of the table.")
    values: str = text("The values with | between: numbers or names. Empty: `low` and `high`, or a distribution.", "")
    low: float = key("Least value, a pure number: the unit stands in the text of the key.", default=0.0)
    high: float = key("Greatest value.", default=0.0)
    distribution: str = choice(
        "How values lie between `low` and `high`; normal: by `mean` and `deviation` alone; truncated: the same, cut off there.",
        DISTRIBUTIONS,
        "uniform",
    )
    mean: float = key("Of a normal distribution.", default=0.0)
    deviation: float = key("Standard deviation.", default=1.0, low=0.0)
    levels: int = key(
        "In a grid or one at a time, into how many values a range is cut.", default=3, low=1, integer=True
    )
    key: tuple[FactorTarget, ...] = children(FactorTarget, "The keys that follow it.")
    place: str = place()


@dataclass(frozen=True)
class DesignPoint:
    """One point of design=list."""

    set: str = text("NAME=VALUE of each factor, with ; between.")
    place: str = place()


@dataclass(frozen=True)
class PointFilter:
    """Points where this does not hold are left out."""

    where: str = text("A comparison of factors: `spread &gt; 100 and drift == 0`.")
    place: str = place()


@dataclass(frozen=True)
class DesignConfig:
    """Which points of the factors are run, and how often."""

    kind: str = choice(
        "seeds: no factors, replicates alone. list: the <point> given. grid: all combinations. one-at-a-time: each factor alone "
        "leaves its middle. random, latin, sobol, halton: `points` samples. sensitivity: points (factors + 2) samples for Sobol's indices.",
        DESIGNS,
        "grid",
    )
    points: int = key("Samples; of sobol and sensitivity a power of two.", default=16, low=1, integer=True)
    strength: int = key(
        "2: a latin hypercube that is even in all pairs of factors; its points are p^2 of a prime p.",
        default=1,
        low=1,
        high=2,
        integer=True,
    )
    replicates: int = key(
        "Runs of each point, with other random numbers; the same ones at every point.", default=1, low=1, integer=True
    )
    point: tuple[DesignPoint, ...] = children(DesignPoint, "A point of design=list.")
    keep: tuple[PointFilter, ...] = children(PointFilter, "A condition on points.")


@dataclass(frozen=True)
class RunConfig:
    """What one run is."""

    kind: str = choice(
        "lab: the engine as a library, in the worker's process. trial: server, emulators and programs as processes of their own. "
        "function: `program` alone, given the factors and a seed; nothing is simulated.",
        ("lab", "trial", "function"),
        "lab",
    )
    program: str = text(
        "FILE.py:FUNCTION, relative to this file. Of a lab: called with (lab, seconds), it steers and advances; without one, time "
        "just passes. Of a function: called with (factors, seed), it returns the metrics.",
        "",
    )
    duration: float = key("Simulated time; 0 s: that of the configuration.", "time", 0.0, low=0.0)
    timeout: float = key("Wall time after which a run is stopped.", "time", 600.0, low=0.1)
    attempts: int = key(
        "How often a run is tried whose worker died. What a run raises is not tried again.",
        default=3,
        low=1,
        high=10,
        integer=True,
    )
    logs: str = choice("Which logs of trials are kept.", ("all", "failed", "none"), "failed")


@dataclass(frozen=True)
class Metric:
    """A number of each run."""

    name: str = text("Unique name; a column of the table.")
    of: str = text(
        "A metric of the library, or FILE.py:FUNCTION, called with the result of a run; of kind=function what it returns.",
        "",
    )
    body: str = text("Whose; empty: the first vehicle.", "")
    unit: str = text("Unit, for a metric of one's own.", "")
    better: str = choice("Which way is better; empty: as the library says.", ("", "lower", "higher"), "")
    margin: float = key(
        "How much worse its mean may become before `gate` fails, as a share of the mean it had.", default=0.05, low=0.0
    )
    place: str = place()


@dataclass(frozen=True)
class SuccessRule:
    """When a finished run counts as a success; without this every finished run does."""

    where: str = text("A comparison of metrics: `navigation &lt; 5`.")
    place: str = place()


@dataclass(frozen=True)
class WorkersConfig:
    """Who runs them."""

    kind: str = choice(
        "pool: processes of this machine. dask: the same by dask.distributed. ssh, slurm, kubernetes: other machines by dask; "
        "they need the campaign's folder at the same place.",
        ("pool", "dask", "ssh", "slurm", "kubernetes"),
        "pool",
    )
    count: int = key("How many at a time; 0: one for each core.", default=0, low=0, high=10_000, integer=True)
    hosts: str = text("Of ssh: hosts with blanks between, which share the runs; the first has the scheduler, too.", "")
    options: str = text(
        "Of dask: `address=tcp://HOST:PORT` of a scheduler that runs already, whose workers have this campaign's folder at the same "
        "place; `count` limits how many runs it is given at a time. Of ssh, slurm and kubernetes: NAME=VALUE of dask's cluster, with ; "
        "between (`queue=short; memory=2GB; job_cpu=2`).",
        "",
    )
    dashboard: bool = flag("Of dask: its own page, on loopback.", False)


@dataclass(frozen=True)
class Campaign:
    """The root element <campaign>."""

    name: str = text("Its name; the results go to a folder of that name.")
    config: str = text(
        "The configuration that all runs start from, relative to this file. Not needed for kind=function.", ""
    )
    seed: int = key("Seed of design and runs.", default=1, low=0, high=2**53, integer=True)
    design: DesignConfig = child(DesignConfig, "The design.")
    run: RunConfig = child(RunConfig, "A run.")
    workers: WorkersConfig = child(WorkersConfig, "Who runs them.")
    factor: tuple[Factor, ...] = children(Factor, "A factor.")
    metric: tuple[Metric, ...] = children(Metric, "A metric.")
    success: SuccessRule | None = child(SuccessRule, "What success is.")
