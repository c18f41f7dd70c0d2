"""Keys of a campaign's file that would be taken and have no effect: each is refused before the first run.

A key that equals its default is refused as well when it stands in the file: what is written there is what its author believes in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wavesim_sdk.config import xml
from wavesim_sdk.errors import ConfigError
from wavesim_studies.campaign import clusters
from wavesim_studies.campaign.designs import values_of
from wavesim_studies.campaign.metrics import LIBRARY
from wavesim_studies.campaign.schema import Campaign, Factor, Metric

Unused = tuple[Any, tuple[str, ...], str]
SAMPLED = ("random", "latin", "sobol", "halton", "sensitivity")


def check(campaign: Campaign, text: str, file: str) -> None:
    """ConfigError, with the line, for the first such key or element."""
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
    """Each (element, its keys that have no effect; none: all of it, why)."""
    kind, nothing = campaign.run.kind, 'kind="function" simulates nothing'
    if kind == "function" and campaign.config:
        yield root, ("config",), nothing
    for run in root.findall("run"):
        if kind == "function":
            yield run, ("duration",), nothing
        if kind == "trial":
            yield run, ("program",), "in a trial, bodies have the programs that the configuration names"
        else:
            yield run, ("logs",), f'kind="{kind}" writes no logs'
    for design in root.findall("design"):
        yield from _of_design(design, campaign)
    for element, factor in zip(root.findall("factor"), campaign.factor, strict=True):
        if campaign.design.kind == "seeds":
            yield element, (), 'kind="seeds" has replicates alone'
        yield element, *_of_factor(factor, campaign.design.kind)
    for element, metric in zip(root.findall("metric"), campaign.metric, strict=True):
        yield element, *_of_metric(metric, kind)


def _of_design(design: Any, campaign: Campaign) -> Iterator[Unused]:
    kind = campaign.design.kind
    if kind not in SAMPLED:
        yield design, ("points",), f'kind="{kind}" draws no samples'
    elif not campaign.factor:
        yield design, (), f'kind="{kind}" needs a <factor>'
    if kind != "latin":
        yield design, ("strength",), 'it is of kind="latin"'
    if kind != "list":
        for point in design.findall("point"):
            yield point, (), 'it is of kind="list"'


def _of_factor(factor: Factor, design: str) -> tuple[tuple[str, ...], str]:
    """(keys that have no effect, why)."""
    if values_of(factor):
        return ("low", "high", "distribution", "mean", "deviation", "levels"), "the factor has `values`"
    if factor.distribution == "normal":
        return ("low", "high", *_levels(design)), "it is of other distributions, or designs"
    if factor.distribution != "truncated":
        return ("mean", "deviation", *_levels(design)), "it is of other distributions, or designs"
    return _levels(design), "levels are of the designs grid and one-at-a-time"


def _levels(design: str) -> tuple[str, ...]:
    return () if design in ("grid", "one-at-a-time") else ("levels",)


def _of_metric(metric: Metric, kind: str) -> tuple[tuple[str, ...], str]:
    """(keys that have no effect, why)."""
    if kind == "function":
        return ("of", "body"), 'of kind="function" the program returns its metrics, by their names'
    if metric.of in LIBRARY:
        return ("unit",), "a metric of the library has its own"
    return ("body",), "whoever computes it decides whose it is"
