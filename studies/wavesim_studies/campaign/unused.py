"""Check of a campaign file for keys that would have no effect. They are rejected before the first run.

A key that equals its default is also rejected, because its author expects an effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_studies.campaign import clusters
from wavesim_studies.campaign.designs import values_of
from wavesim_studies.campaign.metrics import LIBRARY
from wavesim_studies.campaign.schema import Campaign, Factor, Metric
from wavesim_world.config import xml

Unused = tuple[Any, tuple[str, ...], str]
SAMPLED = ("random", "latin", "sobol", "halton", "sensitivity")


def check(campaign: Campaign, text: str, file: str) -> None:
    """Raise ConfigError, with the line number, for the first key or element that has no effect."""
    root = xml.parse(text.encode(), file)
    for element, names, why in _unused(root, campaign):
        found = [name for name in names if name in element.attrib]
        if found or not names:
            what = f"<{element.tag} {found[0]}=...>" if found else f"<{element.tag}>"
            raise ConfigError(f"{what} has no effect: {why}", file, element.sourceline)
    for workers in root.findall("workers"):
        try:
            clusters.check(campaign.workers)
        except ConfigError as error:
            raise ConfigError(error.message, file, workers.sourceline) from None


def _unused(root: Any, campaign: Campaign) -> Iterator[Unused]:
    """For each element that has keys without effect, yield the element, these keys, and the reason.

    If the tuple of keys is empty, the whole element has no effect.
    """
    kind, nothing = campaign.run.kind, 'kind="function" simulates nothing'
    if kind == "function" and campaign.config:
        yield root, ("config",), nothing
    for run in root.findall("run"):
        if kind == "function":
            yield run, ("duration",), nothing
        if kind == "trial":
            yield run, ("program",), "in a trial, the configuration specifies the program of each body"
        else:
            yield run, ("logs",), f'kind="{kind}" writes no logs'
    for design in root.findall("design"):
        yield from _of_design(design, campaign)
    for element, factor in zip(root.findall("factor"), campaign.factor, strict=True):
        if campaign.design.kind == "seeds":
            yield element, (), 'kind="seeds" varies replicates only'
        yield element, *_of_factor(factor, campaign.design.kind)
    for element, metric in zip(root.findall("metric"), campaign.metric, strict=True):
        yield element, *_of_metric(metric, kind)


def _of_design(design: Any, campaign: Campaign) -> Iterator[Unused]:
    kind = campaign.design.kind
    if kind not in SAMPLED:
        yield design, ("points",), f'kind="{kind}" draws no samples'
    elif not campaign.factor:
        yield design, (), f'kind="{kind}" requires a <factor>'
    if kind != "latin":
        yield design, ("strength",), 'it applies only to kind="latin"'
    if kind != "list":
        for point in design.findall("point"):
            yield point, (), 'it applies only to kind="list"'


def _of_factor(factor: Factor, design: str) -> tuple[tuple[str, ...], str]:
    """Return the keys of a factor that have no effect, and the reason."""
    if values_of(factor):
        return ("low", "high", "distribution", "mean", "deviation", "levels"), "the factor has `values`"
    if factor.distribution == "normal":
        return ("low", "high", *_levels(design)), "this key applies only to other distributions or designs"
    if factor.distribution != "truncated":
        return ("mean", "deviation", *_levels(design)), "this key applies only to other distributions or designs"
    return _levels(design), "`levels` applies only to the designs `grid` and `one-at-a-time`"


def _levels(design: str) -> tuple[str, ...]:
    return () if design in ("grid", "one-at-a-time") else ("levels",)


def _of_metric(metric: Metric, kind: str) -> tuple[tuple[str, ...], str]:
    """Return the keys of a metric that have no effect, and the reason."""
    if kind == "function":
        return ("of", "body"), 'with kind="function", the program itself returns the metrics by name'
    if metric.of in LIBRARY:
        return ("unit",), "a library metric has a fixed unit"
    return ("body",), "the function that computes the metric selects the body"
