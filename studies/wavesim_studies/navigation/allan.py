"""Allan deviation of an IMU at rest: noise coefficients with their uncertainty, from a log or from columns of a CSV
file.

The coefficients follow IEEE Std 952. The model of the Allan variance at the averaging time t is
3 Q^2 / t^2 + N^2 / t + B^2 + K^2 t / 3. N is the angle random walk (gyro) or the velocity random walk (accelerometer),
B is the flat level of the Allan deviation (bias instability), K is the random walk of the bias, and Q is quantisation
noise. The B of IEEE Std 952 is this flat level divided by 0.664.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from wavesim_sdk import units
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log
from wavesim_sdk.tables import STATE
from wavesim_studies.navigation import logs
from wavesim_world.config.sensors import ImuConfig

AXES = ("x", "y", "z")
#: for each group of axes: the key prefix of its errors in ImuConfig
PREFIX = {"rates": "gyro", "force": "accelerometer"}
UNITS = {"rates": "rad/s", "force": "m/s2"}
#: units of a CSV file, with factors to SI
CSV_UNITS = {
    "time": units.QUANTITIES["time"],
    "rates": units.QUANTITIES["angular rate"] | {"deg/h": math.pi / 648000.0},
    "force": units.QUANTITIES["acceleration"] | {"g": 9.80665, "mg": 9.80665e-3},
}
COEFFICIENTS = ("quantisation", "noise", "instability", "walk")
#: factor that allows for the correlation between deviations at neighbouring averaging times, which use the same samples
SHARED = 2.0
BETTER = 10.0  #: decrease in misfit above which a Gauss-Markov process is preferred to a flat curve
LEAST = 64  #: minimum number of samples
CLUSTERS = 5  #: minimum number of clusters of the longest averaging time
GAP = 2.5  #: minimum length of a gap, as a multiple of the mean interval
#: true velocity in m/s and rate in rad/s above which a vehicle is not at rest
MOVING = (0.05, 0.01)


@dataclass(frozen=True)
class InertialRecording:
    """Samples of one IMU in SI units at a constant rate."""

    name: str
    rate: float  #: in Hz
    values: dict[str, Floats]  #: samples (S, 3) of `rates` and `force`
    declared: ImuConfig | None = None  #: the configured errors, if they are known
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Duration in s."""
        return len(next(iter(self.values.values()))) / self.rate


@dataclass(frozen=True)
class NoiseCoefficient:
    """A noise coefficient. If it cannot be distinguished from 0, it is unresolved, and ``limit`` bounds it."""

    value: float
    sigma: float  #: standard deviation; 0 if the coefficient is unresolved
    limit: float  #: value that the coefficient does not exceed, with a probability of 95 %
    resolved: bool

    @classmethod
    def of_square(cls, square: float, sigma: float) -> NoiseCoefficient:
        """Return the coefficient whose square was estimated as ``square``, with the standard deviation ``sigma``."""
        root, limit = math.sqrt(square), math.sqrt(square + 2.0 * sigma)
        return cls(root, sigma / (2.0 * root), limit, True) if square > 2.0 * sigma else cls(0.0, 0.0, limit, False)

    def scaled(self, factor: float) -> NoiseCoefficient:
        """Return the coefficient in another unit."""
        return NoiseCoefficient(factor * self.value, factor * self.sigma, factor * self.limit, self.resolved)

    def __str__(self) -> str:
        return f"{self.value:.3g} +- {self.sigma:.1g}" if self.resolved else f"< {self.limit:.2g}"


@dataclass(frozen=True)
class Curve:
    """Allan deviations of one axis, or of the mean of several axes, and the coefficients read from them."""

    times: Floats  #: averaging times in s
    deviations: Floats
    errors: Floats  #: relative standard deviations of the deviations
    coefficients: dict[str, NoiseCoefficient]
    instability_time: float  #: correlation time of the bias instability in s; 0 if it is a flat section of the curve


def overlapping_deviation(x: Any, sizes: Sequence[int]) -> Floats:
    """Return the overlapping Allan deviations of samples (S) or axes (S, k), for clusters of the given sizes."""
    x = np.asarray(x, float)
    sums = np.concatenate([np.zeros((1, *x.shape[1:])), np.cumsum(x - x.mean(axis=0), axis=0)])
    found = []
    for m in sizes:
        second = sums[2 * m :] - 2.0 * sums[m:-m] + sums[: -2 * m]
        found.append(np.sqrt(0.5 * np.mean(second * second, axis=0)) / m)
    return np.array(found)


def gauss_markov(t: Floats) -> Floats:
    """Return the Allan variance of a Gauss-Markov process with unit variance. ``t`` is a multiple of the correlation
    time.
    """
    return np.asarray((2.0 / t) * (1.0 - (3.0 - 4.0 * np.exp(-t) + np.exp(-2.0 * t)) / (2.0 * t)))


PEAK = float(gauss_markov(np.array([1.89]))[0])  #: maximum Allan variance of a Gauss-Markov process


def cluster_sizes(samples: int) -> list[int]:
    """Return the cluster sizes: powers of two, up to the largest size for which the recording contains at least
    ``CLUSTERS`` clusters.
    """
    return [1 << k for k in range(int(math.log2(samples / CLUSTERS)) + 1)]


def fit(times: Floats, variances: Floats, errors: Floats) -> tuple[dict[str, NoiseCoefficient], float]:
    """Fit the noise model to a curve. Return the coefficients, and the correlation time (s) of the bias instability.

    The correlation time is 0 if the instability is fitted by a flat section of the curve. It is not 0 if a Gauss-Markov
    process, whose curve has a peak, fits better. The standard deviations do not include the uncertainty of this choice.
    """
    flat = _fit(times, variances, errors, np.ones_like(times))
    best, lag = flat, 0.0
    longest = times[-1] / 2.0  # the peak, at 1.89 correlation times, must be within the curve
    for t in np.geomspace(4.0 * times[0], longest, 24) if longest > 8.0 * times[0] else ():
        found = _fit(times, variances, errors, gauss_markov(times / t) / PEAK)
        if found[2] < min(best[2], flat[2] - BETTER):
            best, lag = found, float(t)
    squares, spread, _ = best
    if (
        lag
    ):  # the process has few independent values, two correlation times apart (4); its correlation time is unknown (6)
        seconds = times[-1] * (1.0 + 0.5 / errors[-1] ** 2)  # duration, multiplied by the number of averaged axes
        spread[2] = math.hypot(spread[2], squares[2] * math.sqrt(6.0 * lag / seconds))
    return {
        name: NoiseCoefficient.of_square(square, sigma)
        for name, square, sigma in zip(COEFFICIENTS, map(float, squares), map(float, spread), strict=True)
    }, lag


def _fit(times: Floats, variances: Floats, errors: Floats, level: Floats) -> tuple[Floats, Floats, float]:
    """Return the squares of the coefficients (none is negative), the standard deviations of these squares, and the
    misfit.

    The weights follow the fitted variances, not the measured ones, because a variance that happens to be small must not
    gain weight.
    """
    from scipy.optimize import nnls

    terms = np.stack([3.0 / times**2, 1.0 / times, level, times / 3.0], axis=1)
    model, squares = variances, np.zeros(4)
    for _ in range(6):
        weights = 1.0 / (2.0 * errors * model)
        squares, _ = nnls(terms * weights[:, None], variances * weights)
        model = np.maximum(terms @ squares, 1e-3 * variances)
    weighted = terms * (1.0 / (2.0 * errors * model))[:, None]
    scale = 1.0 / np.linalg.norm(weighted, axis=0)
    unit = weighted * scale
    spread = np.sqrt(SHARED * np.diag(np.linalg.pinv(unit.T @ unit))) * scale
    # a variance of n degrees of freedom has this log-likelihood, without constants
    misfit = float(np.sum((variances / model - 1.0 - np.log(variances / model)) / (2.0 * errors**2)))
    return squares, spread, misfit


def curves(recording: InertialRecording) -> dict[str, dict[str, Curve]]:
    """Return the curve of each axis, and of the mean variance of the axes (`mean`), for `rates` and `force`."""
    found: dict[str, dict[str, Curve]] = {}
    for group, x in recording.values.items():
        sizes = cluster_sizes(len(x))
        times = np.array(sizes) / recording.rate
        errors = 1.0 / np.sqrt(2.0 * (len(x) / np.array(sizes) - 1.0))
        deviations = overlapping_deviation(x, sizes)
        found[group] = {}
        every = {**dict(zip(AXES, deviations.T, strict=True)), "mean": np.sqrt(np.mean(deviations**2, axis=1))}
        for axis, d in every.items():
            if not d.all():
                continue  # constant values have no deviation
            e = errors / math.sqrt(3.0) if axis == "mean" else errors
            found[group][axis] = Curve(times, d, e, *fit(times, d * d, e))
    return found


def declared_deviation(p: ImuConfig, group: str, times: Floats) -> Floats:
    """Return the Allan deviations that follow from the configured errors of an IMU."""
    p, which = p.resolved, PREFIX[group]
    noise, walk, level, step = (getattr(p, f"{which}_{k}") for k in ("noise", "walk", "instability", "step"))
    variance = noise**2 / times + walk**2 * times / 3.0
    variance += gauss_markov(times / p.instability_time) * level**2 / PEAK
    return np.asarray(np.sqrt((p.noise**2) * variance + (step / (2.0 * times)) ** 2))


# ------------------------------------------------------------------ input


def from_log(log: Log, vehicle: str, sensor: str = "") -> InertialRecording:
    """Return the samples of an IMU in a log: the IMU with this name, or the first one. Raise LogError if there is
    none.
    """
    carriers = list(dict.fromkeys(body for body, _ in log.by_type("imu")))
    if not carriers or (vehicle and vehicle not in carriers):
        whose = f"'{vehicle}'" if vehicle else "the log"
        raise LogError(
            f"{log.path}: {whose} has no values from an IMU; vehicles with an IMU: {', '.join(carriers) or 'none'}"
        )
    vehicle = vehicle or carriers[0]
    units_ = logs.instruments_of_type(log, vehicle, "imu")
    if not units_:
        raise LogError(f"{log.path}: '{vehicle}' has no valid values from an IMU in its configuration")
    if sensor and sensor not in units_:
        raise LogError(f"{log.path}: '{vehicle}' has no IMU '{sensor}'; IMUs: {', '.join(units_)}")
    name = sensor or next(iter(units_))
    instrument, r = units_[name]
    values = {group: np.asarray(r[group], float) for group in PREFIX}
    time = r["time_ns"] * 1e-9
    notes = []
    state = log.series.get(f"/state/{vehicle}")
    if state is not None and state.type == STATE.name and len(state.records):
        fast = [float(np.sqrt(np.mean(np.square(state.records[k]).sum(axis=1)))) for k in ("v_WB_B", "w_WB_B")]
        if fast[0] > MOVING[0] or fast[1] > MOVING[1]:
            notes.append(
                f"'{vehicle}' moved ({fast[0]:.2g} m/s, {fast[1]:.2g} rad/s rms): the deviations contain this motion"
            )
    return _regular(f"{vehicle}/{name}", time, values, notes, cast("ImuConfig", instrument.parameters))


def from_csv(path: Path, columns: Mapping[str, tuple[Sequence[str], str]], rate: float = 0.0) -> InertialRecording:
    """Return the samples in a CSV file with a header.

    ``columns`` contains, for `time`, `rates` and `force`, the names of the columns (one for the time, three for the
    others) and their unit. Without a time column, ``rate`` (Hz) is required; if both are given, ``rate`` takes
    precedence.
    """
    wanted = [name for names, _ in columns.values() for name in names]
    try:
        with path.open(newline="") as file:
            lines = csv.reader(line for line in file if line.strip())
            header = [h.strip() for h in next(lines, [])]
            if missing := [name for name in wanted if name not in header]:
                raise LogError(f"{path} has no column '{missing[0]}'; columns: {', '.join(header) or 'none'}")
            at = [header.index(name) for name in wanted]
            rows = []
            for number, line in enumerate(lines, start=2):
                try:
                    rows.append([float(line[k]) for k in at])
                except (ValueError, IndexError):
                    raise LogError(
                        f"{path}: row {number} has no number in each of the columns {', '.join(wanted)}"
                    ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LogError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    table = np.array(rows, float).reshape(-1, len(wanted))
    if not np.isfinite(table).all():
        raise LogError(f"{path} contains values that are not finite numbers")
    ends = np.cumsum([len(names) for names, _ in columns.values()])
    found = {
        group: table[:, end - len(names) : end] * CSV_UNITS[group][unit]
        for (group, (names, unit)), end in zip(columns.items(), ends, strict=True)
    }
    time = np.arange(len(table)) / rate if rate else found["time"][:, 0]
    return _regular(path.name, time, {k: v for k, v in found.items() if k != "time"}, [], None)


def _regular(
    name: str, time: Floats, values: dict[str, Floats], notes: list[str], declared: ImuConfig | None
) -> InertialRecording:
    """Return the longest segment without gaps. Raise LogError if it is too short."""
    steps = np.diff(time)
    if len(time) < LEAST or not (steps >= 0.0).all() or time[-1] <= time[0]:
        raise LogError(f"{name}: an Allan deviation needs at least {LEAST} samples in chronological order")
    ends = [0, *(np.flatnonzero(steps > GAP * np.mean(steps)) + 1), len(time)]
    first, last = max(itertools.pairwise(ends), key=lambda part: part[1] - part[0])
    if last - first < LEAST:
        raise LogError(f"{name}: the longest segment without gaps has {last - first} samples; {LEAST} are needed")
    if last - first < len(time):
        notes = [
            *notes,
            f"{len(ends) - 2} gaps: only the longest segment without gaps is used, {last - first} of {len(time)} "
            "samples",
        ]
    rate = (last - first - 1) / (time[last - 1] - time[first])
    return InertialRecording(name, float(rate), {k: v[first:last] for k, v in values.items()}, declared, tuple(notes))


# ------------------------------------------------------------------ output


def report(recording: InertialRecording, found: dict[str, dict[str, Curve]]) -> dict[str, Any]:
    """Return the results as a tree of numbers, for JSON."""
    tree: dict[str, Any] = {"rate": recording.rate, "seconds": recording.seconds, "notes": list(recording.notes)}
    for group, each in found.items():
        which = PREFIX[group]
        tree[which] = {
            axis: {
                "times": c.times.tolist(),
                "deviations": c.deviations.tolist(),
                **{k: asdict(c) for k, c in c.coefficients.items()},
                "instability_time": c.instability_time,
            }
            for axis, c in each.items()
        }
        if recording.declared is not None:
            tree[which]["declared"] = declared_coefficients(recording.declared, group)
    return tree


def declared_coefficients(p: ImuConfig, group: str) -> dict[str, float]:
    """Return the configured coefficients."""
    r, which = p.resolved, PREFIX[group]
    found = {k: r.noise * float(getattr(r, f"{which}_{k}")) for k in COEFFICIENTS[1:]}
    return {"quantisation": float(getattr(r, f"{which}_step")) / math.sqrt(12.0), **found}


def table(recording: InertialRecording, found: dict[str, dict[str, Curve]]) -> list[str]:
    """Return the coefficients as lines of text. The units are the same as in the configuration keys."""
    lines = [f"{recording.name}: {recording.seconds:.6g} s at {recording.rate:.6g} Hz", *recording.notes]
    for group, each in found.items():
        which, unit = PREFIX[group], UNITS[group]
        derived = f"{unit[:-2]}/s3/sqrt(Hz)" if unit.endswith("s2") else f"{unit}2/sqrt(Hz)"
        lines += ["", f"{which:14}{'noise':>24}{'instability':>24}{'walk':>24}"]
        lines += [f"{'':14}{f'{unit}/sqrt(Hz)':>24}{unit:>24}{derived:>24}"]
        for axis, c in each.items():
            lines.append(f"  {axis:12}" + "".join(f"{c.coefficients[k]!s:>24}" for k in COEFFICIENTS[1:]))
        if recording.declared is not None:
            declared = declared_coefficients(recording.declared, group)
            lines.append(f"  {'configured':12}" + "".join(f"{declared[k]:>24.3g}" for k in COEFFICIENTS[1:]))
        if "mean" in each:
            lines.append(f"  in data-sheet units: {_data_sheet(each['mean'], group)}")
    return lines


def _data_sheet(c: Curve, group: str) -> str:
    """Return the coefficients of a curve in data-sheet units."""
    noise, level, walk = (c.coefficients[k] for k in COEFFICIENTS[1:])
    degree = 180.0 / math.pi
    factors = (
        (degree * 60.0, degree * 3600.0, degree * 216000.0) if group == "rates" else (60.0, 1.0 / 9.80665e-3, 3600.0)
    )
    names = ("deg/sqrt(h)", "deg/h", "deg/h/sqrt(h)") if group == "rates" else ("m/s/sqrt(h)", "mg", "m/s2/sqrt(h)")
    text = ", ".join(f"{k.scaled(f)} {unit}" for k, f, unit in zip((noise, level, walk), factors, names, strict=True))
    return text + (
        f"; correlation time of the instability about {c.instability_time:.0f} s" if c.instability_time else ""
    )


def draw(recording: InertialRecording, found: dict[str, dict[str, Curve]], out: Path) -> None:
    """Draw the Allan deviations of all axes with their uncertainty and, if they are known, the configured ones."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    for chart, (group, each) in zip(np.atleast_1d(figure.subplots(1, len(found))), found.items(), strict=True):
        for axis, c in each.items():
            if axis != "mean":
                chart.errorbar(
                    c.times, c.deviations, c.deviations * c.errors, lw=1.2, marker=".", capsize=2, label=axis
                )
            elif recording.declared is not None:
                declared = declared_deviation(recording.declared, group, c.times)
                chart.plot(c.times, declared, "k--", lw=1.0, label="configured")
        chart.set(xscale="log", yscale="log", xlabel="averaging time (s)", ylabel=f"Allan deviation ({UNITS[group]})")
        chart.set_title(f"{recording.name}: {PREFIX[group]}", fontsize=10)
        chart.grid(visible=True, which="both", alpha=0.25)
        chart.legend(fontsize=8)
    try:
        figure.savefig(out, dpi=110)
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None
