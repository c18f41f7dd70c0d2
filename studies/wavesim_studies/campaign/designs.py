"""Designs of campaigns, which determine the values of the factors at each point."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_studies.campaign.schema import Campaign, Factor

Value = float | str


def values_of(factor: Factor) -> tuple[Value, ...]:
    """Return the named values of a factor, or an empty tuple if the factor has a range."""
    return tuple(_plain(v) for v in factor.values.split("|")) if factor.values.strip() else ()


def _plain(text: str) -> Value:
    try:
        number = float(text)
    except ValueError:
        return text.strip()
    if not math.isfinite(number):
        raise ConfigError(f"'{text.strip()}' is not a finite number")
    return number


def _law(factor: Factor) -> Any:
    """Return the distribution over the range of a factor."""
    from scipy import stats  # takes a second of processor time; a grid of named values does not need it

    low, high = factor.low, factor.high
    if factor.distribution == "normal":
        return stats.norm(factor.mean, factor.deviation)
    if factor.distribution == "truncated":
        scale = factor.deviation
        return stats.truncnorm((low - factor.mean) / scale, (high - factor.mean) / scale, factor.mean, scale)
    return stats.loguniform(low, high) if factor.distribution == "log-uniform" else stats.uniform(low, high - low)


def check(factor: Factor) -> None:
    """Raise ConfigError if a factor has no valid values or range."""
    file, _, line = factor.place.rpartition(":")
    place = file, int(line or 0)
    if values_of(factor):
        return
    if factor.distribution != "normal" and not factor.low < factor.high:
        raise ConfigError(f"factor '{factor.name}' needs `values`, or `low` less than `high`", *place)
    if factor.distribution == "log-uniform" and factor.low <= 0.0:
        raise ConfigError(f"factor '{factor.name}': log-uniform requires `low` > 0", *place)
    if factor.distribution in ("normal", "truncated") and factor.deviation <= 0.0:
        raise ConfigError(f"factor '{factor.name}' requires `deviation` > 0", *place)


def values_at_shares(factor: Factor, shares_: Floats) -> list[Value]:
    """Return the quantiles of a factor's distribution at the given probabilities (0..1)."""
    named = values_of(factor)
    if named:
        return [named[min(int(u * len(named)), len(named) - 1)] for u in shares_.tolist()]
    # the ends of a normal distribution are at infinity
    return list(_law(factor).ppf(np.clip(shares_, 1e-12, 1.0 - 1e-12)).tolist())


def value_at_share(factor: Factor, share: float) -> Value:
    """Return the quantile of a factor's distribution at one probability (0..1)."""
    return values_at_shares(factor, np.array([share]))[0]


def boundary_values(factor: Factor) -> tuple[Value, ...]:
    """Return the extreme values of a factor, which are used to check that its whole range is valid."""
    named = values_of(factor)
    return named or (
        (value_at_share(factor, 0.001), value_at_share(factor, 0.999))
        if factor.distribution == "normal"
        else (factor.low, factor.high)
    )


def _levels(factor: Factor) -> tuple[Value, ...]:
    named = values_of(factor)
    if named:
        return named
    if factor.distribution != "uniform":  # the centres of intervals of equal probability
        return tuple(value_at_share(factor, (k + 0.5) / factor.levels) for k in range(factor.levels))
    return (
        tuple(np.linspace(factor.low, factor.high, factor.levels).tolist())
        if factor.levels > 1
        else (value_at_share(factor, 0.5),)
    )


def unit_samples(campaign: Campaign) -> Any:
    """Draw samples in the unit cube; the shape is (points, factors)."""
    design, d = campaign.design, len(campaign.factor)
    n = design.points
    random = np.random.default_rng(campaign.seed)
    if design.kind == "random":
        return random.random((n, d))
    from scipy.stats import qmc

    if design.kind == "latin":
        try:
            return qmc.LatinHypercube(d, strength=design.strength, rng=random).random(n)
        except ValueError as error:
            raise ConfigError(f"invalid Latin hypercube of strength {design.strength}: {error}") from None
    if design.kind == "halton":
        return qmc.Halton(d, rng=random).random(n)
    m = n.bit_length() - 1
    if n != 1 << m:
        raise ConfigError(
            f"{design.kind}: {n} points; the sequence is balanced only if the number of points is a power of two, such as {1 << m} or {2 << m}"
        )
    if design.kind == "sobol":
        return qmc.Sobol(d, rng=random).random_base2(m)
    both = qmc.Sobol(2 * d, rng=random).random_base2(m)
    a, b = both[:, :d], both[:, d:]
    mixed = [np.where(np.arange(d) == k, b, a) for k in range(d)]
    return np.concatenate([a, b, *mixed])


def points(campaign: Campaign) -> list[dict[str, Value]]:
    """Return the values of all factors at each point, in the order in which the points are numbered."""
    design, factors = campaign.design, campaign.factor
    if design.kind == "seeds" or not factors:
        return [{}]
    names = [f.name for f in factors]
    if design.kind == "list":
        return [_listed(p.set, campaign, p.place) for p in design.point]
    if design.kind == "grid":
        return [dict(zip(names, v, strict=True)) for v in itertools.product(*map(_levels, factors))]
    if design.kind == "one-at-a-time":
        middle = {f.name: _levels(f)[len(_levels(f)) // 2] for f in factors}
        return [middle, *({**middle, f.name: v} for f in factors for v in _levels(f) if v != middle[f.name])]
    columns = [values_at_shares(f, u) for f, u in zip(factors, unit_samples(campaign).T, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _listed(text: str, campaign: Campaign, place: str) -> dict[str, Value]:
    file, _, line = place.rpartition(":")
    found = {n.strip(): _plain(v) for n, _, v in (part.partition("=") for part in text.split(";") if part.strip())}
    names = {f.name for f in campaign.factor}
    if set(found) != names:
        raise ConfigError(f"'{text}' must set each of {', '.join(sorted(names))} exactly once", file, int(line or 0))
    for f in campaign.factor:
        if (named := values_of(f)) and found[f.name] not in named:
            raise ConfigError(f"factor '{f.name}' has no value '{found[f.name]}'", file, int(line or 0))
    return found
