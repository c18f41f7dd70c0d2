"""Text of navigation scores for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from wavesim_studies.navigation.metrics import NavigationScore

HEAD = f"{'':12}{'distance':>10}{'rms':>9}{'95 %':>9}{'final':>9}{'of dist.':>9}{'heading':>10}{'NEES (2)':>10}"


def score_line(name: str, s: NavigationScore) -> str:
    """Return a row of the table of scores. Unknown values are omitted."""
    heading = f"{math.degrees(s.heading_rms):6.2f} deg" if math.isfinite(s.heading_rms) else "-"
    nees = f"{s.nees:.2f}" if math.isfinite(s.nees) else "-"
    return f"{name:12}{s.distance:8.0f} m{s.rms:7.2f} m{s.p95:7.2f} m{s.final:7.2f} m{s.percent:7.2f} %{heading:>10}{nees:>10}"


def detail_lines(s: NavigationScore, coverage: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the lines below a row: relative errors, depth, consistency and, for an estimate, the times that it covers."""
    if coverage is not None:
        share, begin, end = coverage["coverage"], coverage["begin"], coverage["end"]
        yield f"covers {100.0 * share:.0f} % of the track ({begin:.2f} to {end:.2f} s are scored)"
        if coverage.get("aligned_rms") is not None:
            yield f"rms after alignment {coverage['aligned_rms']:.2f} m"
    parts = [f"{value:.2f} m over {distance} m" for distance, value in s.per_leg.items()]
    if math.isfinite(s.depth_rms):
        parts.append(f"depth {s.depth_rms:.2f} m rms")
    if parts:
        yield f"relative error {', '.join(parts)}" if s.per_leg else parts[0]
    if math.isfinite(s.nees):
        low, high = s.nees_bounds
        verdict = "" if low <= s.nees <= high else ": overconfident" if s.nees > high else ": too cautious"
        yield f"NEES {s.nees:.2f} of 2 (95 %: {low:.2f} to {high:.2f}){verdict}"


def sensor_lines(sensors: Mapping[str, Mapping[str, Any]], unused: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each instrument of the reference filter."""
    for sensor, c in sensors.items():
        raw = f", raw error {c['raw']:.2f} m rms" if "raw" in c else ""
        raw += f", noise x {c['noise']:.2f}" if c["noise"] != 1.0 else ""
        nis = "-" if math.isnan(c["nis"]) else f"{c['nis']:.2f}"  # no measurement contained information
        yield (
            f"{sensor:14}{c['taken']:8} accepted{c['refused']:7} rejected   NIS {nis} of {c['numbers']:.0f}"
            f" (95 %: {c['low']:.2f} to {c['high']:.2f}){raw}"
        )
        if c["advice"]:
            yield f"{'':14}{c['advice']}."
    for sensor, reason in unused.items():
        yield f"{sensor:14}not used: {reason}"
