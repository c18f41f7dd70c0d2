"""Unknowns of a fit: coefficients of the model, and quantities that every log brings with it. Each has a prior.

A prior is normal, or log-normal for coefficients that are not 0 and whose prior is relative: these keep their sign. An unknown is computed as
``start + spread x``, or as ``start exp(spread x)``, where ``x`` is standard normal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_studies.identification.coefficients import FORCES, ModelCoefficients
from wavesim_studies.identification.recorded_trials import CHANNELS, unit_of
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model

PUBLISHED, ASSUMED = 0.3, 1.0  #: relative standard deviations of published and of assumed coefficients
#: unknowns that are not in the model file, with the standard deviation of their prior, their unit, and whether each log
#: has its own
COMMON: dict[str, tuple[float, str]] = {"delay": (0.3, "s"), "push": (0.0, "N")}
PER_LOG: dict[str, tuple[float, str]] = {"current/north": (0.3, "m/s"), "current/east": (0.3, "m/s")}
BIAS = {"m": 1.0, "rad": 0.05, "m/s": 0.1, "rad/s": 0.02}  #: standard deviation of a channel's bias, by its unit
SHIFT = 0.2  #: standard deviation in s of the shift of a channel's clock
OFFSET = 0.05  #: standard deviation of an actuator's offset, as a fraction of its range
_FORM = re.compile(r"(?P<path>[^=~]+?)(?:=(?P<start>[-+0-9.eE]+))?(?:~(?P<sigma>[0-9.eE+-]+)(?P<percent>%?))?")
#: words in the source of a model for the motion that a row of a matrix belongs to
_MOTIONS = {"X": "surge", "Y": "sway", "Z": "heave", "K": "roll", "M": "pitch", "N": "yaw"}


@dataclass(frozen=True)
class FittedUnknown:
    """An unknown of a fit, with its prior."""

    path: str
    start: float  #: median of the prior
    spread: float  #: standard deviation of the prior: absolute, or relative if ``logarithmic``
    logarithmic: bool
    unit: str
    kind: str  #: coefficient, delay, offset, push, current, bias or shift
    reason: str  #: origin of the prior
    log: int = -1  #: index of the log that the unknown belongs to; -1 = all logs

    def value(self, x: float) -> float:
        """Return the value for a standardised unknown ``x``."""
        if self.logarithmic:
            return self.start * math.exp(self.spread * x)
        return self.start + self.spread * x

    def deviation(self, x: float, sd: float) -> float:
        """Return the standard deviation of the value, given that of ``x``."""
        return self.spread * sd * (abs(self.value(x)) if self.logarithmic else 1.0)

    @property
    def target(self) -> str:
        """Actuator, channel or axis that the unknown belongs to; empty if there is none."""
        return self.path.partition("/")[2] if self.kind in ("offset", "bias", "shift", "current") else ""


def parse_unknowns(texts: Sequence[str], model: Model, channels: Sequence[str], logs: int) -> list[FittedUnknown]:
    """Parse ``PATH[=START][~SIGMA]`` or ``PATH~PERCENT%`` into unknowns. Raise ConfigError for an invalid one.

    ``current`` stands for both components, and ``bias`` and ``shift`` for those of all channels.
    """
    found: list[FittedUnknown] = []
    coefficients = ModelCoefficients(model)
    for text in texts:
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise ConfigError(f"invalid unknown '{text}': use PATH, PATH=START, PATH~SIGMA or PATH~PERCENT%")
        for path in _expanded(match["path"].strip(), channels):
            start = None if match["start"] is None else _number(match["start"], text)
            sigma = None if match["sigma"] is None else _number(match["sigma"], text)
            if sigma is not None and not sigma > 0.0:
                raise ConfigError(f"invalid unknown '{text}': the standard deviation must be positive")
            relative = match["percent"] == "%"
            found += _unknowns(path, start, sigma, relative, (coefficients, model), channels, logs)
    paths = [(u.path, u.log) for u in found]
    if repeated := next((p for p in paths if paths.count(p) > 1), None):
        raise ConfigError(f"'{repeated[0]}' is given more than once; remove one")
    return found


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"invalid unknown '{where}': '{text}' is not a number")
    return value


def _expanded(path: str, channels: Sequence[str]) -> list[str]:
    if path == "current":
        return [*PER_LOG]
    return [f"{path}/{c}" for c in channels] if path in ("bias", "shift") else [path]


def _unknowns(
    path: str,
    start: float | None,
    sigma: float | None,
    relative: bool,
    of: tuple[ModelCoefficients, Model],
    channels: Sequence[str],
    logs: int,
) -> list[FittedUnknown]:
    coefficients, model = of
    kind, _, target = path.partition("/")
    if kind not in ("delay", "push", "offset", "bias", "shift", "current"):
        return [_coefficient(path, start, sigma, relative, coefficients, model)]
    if relative:
        raise ConfigError(f"'{path}' needs a standard deviation in its unit instead of a percentage")
    per_log, usual, unit = kind in ("bias", "shift", "current"), 0.0, "s"
    if path in COMMON:
        usual, unit = COMMON[path]
    elif path in PER_LOG:
        usual, unit = PER_LOG[path]
    elif kind == "offset":
        actuators = {a.name: a for a in actuators_of(model)}
        if target not in actuators:
            raise ConfigError(f"'{path}': '{model.name}' has no actuator '{target}'{suggest_name(target, actuators)}")
        a = actuators[target]
        usual, unit = OFFSET * (a.maximum - a.minimum), a.unit
    elif kind in ("bias", "shift") and target in CHANNELS:
        if target not in channels:
            raise ConfigError(f"'{path}': the logs have no channel '{target}'; channels: {', '.join(channels)}")
        usual, unit = (BIAS[unit_of(target)], unit_of(target)) if kind == "bias" else (SHIFT, "s")
    else:
        offered = [*COMMON, *PER_LOG, *(f"{k}/{c}" for k in ("bias", "shift") for c in channels)]
        raise ConfigError(f"unknown quantity '{path}'{suggest_name(path, offered)}")
    if path == "push" and sigma is None:
        raise ConfigError("'push' needs a start and a standard deviation in N, for example push=1.28~0.5")
    reason = "as given" if sigma is not None else "usual"
    made = (path, start or 0.0, sigma or usual, False, unit, kind, reason)
    return [FittedUnknown(*made, log=k) for k in range(logs)] if per_log else [FittedUnknown(*made)]


def _coefficient(
    path: str,
    start: float | None,
    sigma: float | None,
    relative: bool,
    coefficients: ModelCoefficients,
    model: Model,
) -> FittedUnknown:
    shipped = coefficients.value(path)
    begin = shipped if start is None else start
    if sigma is not None and not relative:
        return FittedUnknown(path, begin, sigma, False, "", "coefficient", "as given")
    if begin == 0.0:
        raise ConfigError(f"'{path}' is 0 in '{model.name}': give the standard deviation of its prior, {path}~SIGMA")
    if sigma is not None:
        return FittedUnknown(path, begin, sigma / 100.0, True, "", "coefficient", "as given")
    assumed = _is_assumed(path, model.source)
    spread, reason = (ASSUMED, "assumed in the source") if assumed else (PUBLISHED, "published")
    return FittedUnknown(path, begin, spread, True, "", "coefficient", reason)


def _is_assumed(path: str, source: str) -> bool:
    """Return whether the source of a model calls a coefficient assumed: a sentence that begins with `Assumed` names its
    element, or its motion together with the damping.
    """
    element, _, last = path.rpartition("/")
    named = element.partition("/")[0].partition("[")[0] or last
    words = {named, last, named.replace("-", " ")}
    sentences = [s.partition("Assumed")[2] for s in re.split(r"(?<=[a-z)])\. ", source) if "Assumed" in s]
    if last[:2] in {f"{f}_" for f in FORCES} and "drag" in named:
        motion = _MOTIONS[last[0]]
        return any(motion in s and ("damping" in s or "drag" in s) for s in sentences)
    return any(re.search(rf"\b{re.escape(w)}s?\b", s) for s in sentences for w in words if len(w) > 2)
