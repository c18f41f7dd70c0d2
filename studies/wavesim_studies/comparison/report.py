"""Text of a comparison: lines for the terminal, and a page of Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from wavesim_sdk.errors import LogError
from wavesim_studies.comparison.block_bootstrap import Interval
from wavesim_studies.comparison.comparison import Comparison
from wavesim_studies.comparison.differences import QuantityDifference
from wavesim_studies.comparison.requirements import Requirement

__all__ = ["markdown", "terminal_lines", "write"]

#: units in which reports show values, with the factor from the unit of the log
SHOWN = {"rad": ("deg", 180.0 / math.pi), "rad/s": ("deg/s", 180.0 / math.pi)}
HEAD_MOTION = (
    "difference (real - simulated)",
    "values",
    "bias",
    "95 %",
    "rms",
    "95 %",
    "p95",
    "corr.",
    "gain",
    "in the 90 % band",
    "95 %",
)
HEAD_SENSORS = (*HEAD_MOTION[:-2], "noise real", "noise sim.", *HEAD_MOTION[-2:])
HEAD_RANGES = (
    "range",
    "values",
    "bias real",
    "95 %",
    "bias sim.",
    "95 %",
    "MAD real",
    "95 %",
    "MAD sim.",
    "95 %",
    "KS",
    "p",
)
HEAD_DETECTIONS = ("distance", "real", "95 %", "sim.", "95 %", "real - sim.", "95 %", "signals")

Rows = list[tuple[str, ...]]


def number(x: float) -> str:
    """Return a number with three significant digits; a dash if it is unknown."""
    if not math.isfinite(x):
        return "-"
    if x == 0.0 or 1e-3 <= abs(x) < 1e5:
        digits = max(0, min(4, 2 - math.floor(math.log10(abs(x))))) if x else 2
        return f"{x:.{digits}f}"
    return f"{x:.2e}"


def interval(x: Interval, factor: float = 1.0) -> str:
    """Return the bounds of an interval; a dash if they are unknown."""
    return f"{number(factor * x.low)} to {number(factor * x.high)}" if math.isfinite(x.low) else "-"


def percent(x: Interval) -> tuple[str, str]:
    """Return a share and its interval in percent."""
    bounds = f"{100.0 * x.low:.0f} to {100.0 * x.high:.0f} %" if math.isfinite(x.low) else "-"
    return (f"{100.0 * x.value:.0f} %" if math.isfinite(x.value) else "-"), bounds


def _quantity_row(q: QuantityDifference, with_noise: bool) -> tuple[str, ...]:
    unit, factor = SHOWN.get(q.unit, (q.unit, 1.0))
    covered = percent(q.coverage.shares["90"]) if q.coverage is not None else ("", "")
    row = [
        f"{q.name} ({unit})" if unit else q.name,
        str(q.values),
        number(factor * q.bias.value),
        interval(q.bias, factor),
        number(factor * q.rms.value),
        interval(q.rms, factor),
        number(factor * q.p95),
        f"{q.correlation:.2f}" if math.isfinite(q.correlation) else "",
        f"{q.gain:.2f}" if math.isfinite(q.gain) else "",
    ]
    if with_noise:
        row += [number(factor * q.noise[0]), number(factor * q.noise[1])]
    return (*row, *covered)


def tables(c: Comparison) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    """Yield title, head and rows of each table that is not empty."""
    sensors = {name: q for name, q in c.quantities.items() if q.name in _columns(c)}
    motion = [q for name, q in c.quantities.items() if name not in sensors]
    if motion:
        yield "Track and motion", HEAD_MOTION, [_quantity_row(q, False) for q in motion]
    if sensors:
        yield "Instruments", HEAD_SENSORS, [_quantity_row(q, True) for q in sensors.values()]
    if c.ranges:
        rows: Rows = []
        for r in c.ranges:
            parts = [
                (number(x.value), interval(x)) for x in (r.real_bias, r.simulated_bias, r.real_mad, r.simulated_mad)
            ]
            flat = [cell for part in parts for cell in part]
            rows.append(
                (f"{r.pair} (m)", f"{r.real_count}, {r.simulated_count}", *flat, f"{r.statistic:.2f}", f"{r.p:.3f}")
            )
        yield "Residuals of acoustic ranges (measured - true)", HEAD_RANGES, rows
    if c.detections:
        rows = []
        for d in c.detections:
            change = f"{100.0 * d.change.low:+.0f} to {100.0 * d.change.high:+.0f} %"
            rows.append(
                (
                    f"{d.low:g} to {d.high:g} m",
                    *percent(d.real),
                    *percent(d.simulated),
                    f"{100.0 * d.change.value:+.0f} %",
                    change,
                    f"{d.real_count}, {d.simulated_count}",
                )
            )
        yield "Share of detected signals", HEAD_DETECTIONS, rows


def _columns(c: Comparison) -> set[str]:
    return {channel.name for columns in c.real.sensors.values() for channel in columns.values()}


def summary_lines(c: Comparison) -> list[tuple[str, str]]:
    """Return label and text of the facts on which the comparison rests."""
    names = [s.name for s in c.simulated]
    seeds = [s.log.metadata.get("seed", "?") for s in c.simulated if s.log is not None]
    simulated = names[0] if len(names) == 1 else f"{len(names)} runs ({names[0]}, ...)"
    simulated += f", vehicle {c.simulated[0].vehicle}, seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds[:6])}{', ...' if len(seeds) > 6 else ''}"
    o = c.offset
    offset = f"{o.seconds:+.4g} s added to the real times, given"
    if not o.given:
        known = sorted((o.correlations or {}).items(), key=lambda item: -item[1])[:3]
        bounds = f"95 %: {o.low:+.3f} to {o.high:+.3f}" if math.isfinite(o.low) else "too short for an interval"
        said = ", ".join(f"{name} {rho:.2f}" for name, rho in known)
        offset = f"{o.seconds:+.3f} s added to the real times ({bounds}; correlations: {said})"
    frame = f"origins {c.frame.origins}; "
    if c.frame.kind == "none":
        frame += "tracks not aligned"
    else:
        north, east, down = c.frame.translation
        frame += (
            f"real track aligned ({c.frame.kind}): rotated by {math.degrees(c.frame.yaw):+.2f} deg, moved by {north:+.2f} m north, "
            f"{east:+.2f} m east, {down:+.2f} m down"
        )
    other = "" if len(names) == 1 else f" - mean of {len(names)} runs"
    return [
        ("real", f"{c.real.name}, vehicle {c.real.vehicle}"),
        ("simulated", simulated),
        ("clocks", offset),
        ("frame", frame),
        (
            "period",
            f"{c.begin:.1f} to {c.end:.1f} s by the clock of the simulation ({c.end - c.begin:.1f} s){other and f'; differences: real{other}'}",
        ),
    ]


def verdict_lines(c: Comparison) -> list[str]:
    """Return lines about the spread of the ensemble."""
    found: dict[str, list[str]] = {}
    for q in c.quantities.values():
        if q.coverage is not None:
            found.setdefault(q.coverage.verdict, []).append(q.name)
    if not found:
        return []
    return [f"{'ensemble':10} {verdict}: {', '.join(names)}" for verdict, names in sorted(found.items())]


def requirement_lines(outcomes: Sequence[tuple[Requirement, float, bool]]) -> list[str]:
    """Return a line for each limit."""
    return [
        f"{'passed' if met else 'FAILED'}  {r.text} (found {number(value)} {r.unit})".replace(" )", ")")
        for r, value, met in outcomes
    ]


def terminal_lines(c: Comparison, outcomes: Sequence[tuple[Requirement, float, bool]]) -> Iterator[str]:
    """Yield the lines of the report for a terminal."""
    yield from (f"{label:10} {text}" for label, text in summary_lines(c))
    for title, head, rows in tables(c):
        yield ""
        yield title
        widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
        for row in (head, *rows):
            cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            yield "  ".join(cells).rstrip()
    lines = [*verdict_lines(c), *(f"{'note':10} {note}" for note in c.notes), *requirement_lines(outcomes)]
    if lines:
        yield ""
        yield from lines


def markdown(c: Comparison, outcomes: Sequence[tuple[Requirement, float, bool]], picture: str = "") -> str:
    """Return the report as a page of Markdown."""
    lines = [f"# {c.real.name} and its simulation", ""]
    lines += [f"- **{label}**: {text}" for label, text in summary_lines(c)]
    lines += ["", f"![Tracks and differences]({picture})"] if picture else []
    for title, head, rows in tables(c):
        lines += ["", f"## {title}", ""]
        for row in (head, ("---",) + ("--:",) * (len(head) - 1), *rows):
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    rest = [*(line.strip() for line in verdict_lines(c)), *c.notes]
    if rest:
        lines += ["", "## Notes", "", *(f"- {' '.join(note.split())}" for note in rest)]
    if outcomes:
        lines += ["", "## Limits", "", *(f"- {line}" for line in requirement_lines(outcomes))]
    return "\n".join(lines) + "\n"


def write(out: Path, text: str) -> None:
    """Write a text file. Raise LogError if that is impossible."""
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None
