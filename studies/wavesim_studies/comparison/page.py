"""One page of plots of a comparison."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import LogError
from wavesim_studies.comparison.channels import Channel
from wavesim_studies.comparison.comparison import Comparison, renamed
from wavesim_studies.comparison.differences import ensemble_at
from wavesim_studies.comparison.report import SHOWN, interval, number, percent, summary_lines

__all__ = ["draw"]

REAL, SIMULATED, SHADE, INK, FAINT = "#d1495b", "#1f5f8b", "#9cc3dd", "#22313f", "#8395a7"
_STYLE: Any = {
    "font.size": 8,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titleweight": "bold",
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dfe6ec",
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.framealpha": 0.75,
    "legend.edgecolor": "none",
    "legend.borderpad": 0.2,
    "legend.labelspacing": 0.2,
    "legend.fontsize": 7,
    "lines.linewidth": 1.1,
}
#: quantities that are drawn over time, in the order of preference; three of them are drawn
SERIES = ("heading", "yaw rate", "speed", "down", "pitch", "surge", "roll")
POINTS = 1500
TABLE_ROWS = 14


def draw(c: Comparison, out: Path) -> None:
    """Write a page with tracks, differences, coverage, ranges and detections, as far as the comparison has them. The
    suffix of ``out`` selects the format. Raise LogError if the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure: Any = Figure(figsize=(8.27, 11.69), layout="constrained")  # its type does not know arrays of parts
        top, charts, bottom = figure.subfigures(3, 1, height_ratios=(0.085, 0.64, 0.275))
        _head(c, top)
        left, right = charts.subfigures(1, 2)
        panels = _panels(c)
        columns = [panels[: (len(panels) + 1) // 2], panels[(len(panels) + 1) // 2 :]]
        for side, mine in zip((left, right), columns, strict=True):
            if mine:
                grid = side.subplots(len(mine), 1, squeeze=False, height_ratios=[w for _, w in mine])[:, 0]
                for axes, (panel, _) in zip(grid, mine, strict=True):
                    panel(c, axes)
        _numbers(c, bottom)
        try:
            figure.savefig(out, dpi=120)
        except OSError as error:
            raise LogError(f"cannot write {out}: {error.strerror}") from None


def _panels(c: Comparison) -> list[tuple[Any, float]]:
    """Return the functions that draw the panels, with relative heights."""
    found: list[tuple[Any, float]] = []
    if c.track is not None:
        found += [(_map, 1.7), (_errors, 1.0)]
    shown = _shown(c)
    found += [((lambda c, axes, name=name: _series(c, axes, name)), 1.0) for name in shown]
    if c.ranges:
        found.append((_ranges, 1.0))
    if c.detections:
        found.append((_detections, 1.0))
    if any(q.coverage for q in c.quantities.values()):
        found += [(_coverage, 1.2), (_ranks, 1.0)]
    return found


def _shown(c: Comparison) -> list[str]:
    """Return the names of the quantities that are drawn over time."""
    motion = [name for name in SERIES if name in c.quantities or (name == "down" and "vertical" in c.quantities)]
    sensors = sorted(
        (name for name in c.quantities if "." in name), key=lambda name: -_excess(c, name)
    )  # the worst instruments first
    return [*motion[:2], *sensors[: max(1, 3 - len(motion[:2]))], *motion[2:3]][:3]


def _excess(c: Comparison, name: str) -> float:
    """Return the rms difference of an instrument's column in units of its real noise."""
    q = c.quantities[name]
    noise = max(q.noise[0], q.noise[1], 1e-9 + 1e-6 * abs(q.bias.value))
    return q.rms.value / noise if math.isfinite(noise) else 0.0


def _head(c: Comparison, figure: Any) -> None:
    figure.text(0.012, 0.93, f"{c.real.name} and its simulation", fontsize=13, weight="bold", color=INK, va="top")
    lines = "\n".join(f"{label}: {text}" for label, text in summary_lines(c)[1:])
    figure.text(0.012, 0.66, lines, fontsize=7.2, color=INK, va="top", linespacing=1.25, wrap=True)


def _few(time: Any) -> Any:
    return slice(None, None, max(len(time) // POINTS, 1))


def _map(c: Comparison, axes: Any) -> None:
    for k, run in enumerate(c.simulated):
        if run.track is None:
            continue
        now = (run.track.time >= c.begin) & (run.track.time <= c.end)
        p = run.track.p[now]
        p = p[_few(p)]
        many = len(c.simulated) > 1
        axes.plot(
            p[:, 1],
            p[:, 0],
            color=SHADE if many else SIMULATED,
            lw=0.7 if many else 1.1,
            label="simulated" if k == 0 else None,
        )
    track = c.real.track
    assert track is not None
    p = track.p[(track.time >= c.begin) & (track.time <= c.end)]
    p = p[_few(p)]
    axes.plot(p[:, 1], p[:, 0], color=REAL, lw=1.4, label="real")
    axes.plot(p[0, 1], p[0, 0], "o", color=REAL, ms=5, mec="white")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="east (m)", ylabel="north (m)", title="tracks (dot: start)")
    axes.legend(loc="best")


def _errors(c: Comparison, axes: Any) -> None:
    track = c.track
    assert track is not None
    few = _few(track.time)
    for k, (name, colour) in enumerate((("along", SIMULATED), ("cross", REAL), ("down", "#edae49"))):
        if not np.isfinite(track.errors[:, k]).all():
            continue
        axes.plot(track.time[few], track.errors[few, k], color=colour, lw=0.9, label=name)
    axes.axhline(0.0, color=FAINT, lw=0.6)
    axes.set(xlabel="time (s)", ylabel="m", title="position, real - simulated")
    axes.legend(ncols=3, loc="best")


def _series(c: Comparison, axes: Any, name: str) -> None:
    real = c.real.channels[name]
    unit, factor = SHOWN.get(real.unit, (real.unit, 1.0))
    now = (real.time >= c.begin) & (real.time <= c.end)
    time = real.time[now][_few(real.time[now])]
    values = _unwrapped(real, real.values[now])[_few(real.time[now])]
    members = [_member(c, k, name) for k in range(len(c.simulated))]
    x = ensemble_at(members, time, math.inf)
    if real.turns:
        x = np.unwrap(x, axis=1)
        x += 2.0 * math.pi * np.round((np.nanmean(values) - np.nanmean(x)) / (2.0 * math.pi))
    style = {"ls": "", "marker": ".", "ms": 1.5} if real.sampled and len(members) == 1 else {"lw": 0.8}
    if len(members) > 2:
        low, high = np.nanquantile(x, [0.05, 0.95], axis=0)
        axes.fill_between(time, factor * low, factor * high, color=SHADE, lw=0, label="simulated, 5 to 95 %")
        axes.plot(time, factor * np.nanmedian(x, axis=0), color=SIMULATED, lw=0.8, label="simulated, median")
    else:
        axes.plot(time, factor * x[0], color=SIMULATED, label="simulated", **style)
    axes.plot(time, factor * values, color=REAL, label="real", **style)
    axes.set(xlabel="time (s)", ylabel=unit, title=name)
    axes.legend(loc="best")


def _unwrapped(channel: Channel, values: Any) -> Any:
    return np.unwrap(values) if channel.turns else values


def _member(c: Comparison, k: int, name: str) -> Channel:
    """Return the channel of a simulated run that was compared under this name."""
    return renamed(c.simulated[k], c.real).channels[name]


def _ranges(c: Comparison, axes: Any) -> None:
    for k, r in enumerate(c.ranges[:8]):
        for shift, colour, bias, mad in (
            (-0.15, REAL, r.real_bias, r.real_mad),
            (0.15, SIMULATED, r.simulated_bias, r.simulated_mad),
        ):
            axes.errorbar(k + shift, bias.value, yerr=mad.value, color=colour, lw=1.0, capsize=2)
            if math.isfinite(bias.low):
                axes.plot([k + shift] * 2, [bias.low, bias.high], color=colour, lw=4.0, solid_capstyle="butt")
            axes.plot(k + shift, bias.value, "o", ms=3, color=colour)
    axes.set_xticks(range(len(c.ranges[:8])), [r.pair.replace(", ", "\n") for r in c.ranges[:8]], fontsize=6)
    axes.set_xlim(-0.6, len(c.ranges[:8]) - 0.4)
    axes.axhline(0.0, color=FAINT, lw=0.6)
    axes.set(ylabel="m", title="range residuals: bias (thick: 95 %) and MAD")


def _detections(c: Comparison, axes: Any) -> None:
    for name, colour, shift in (("real", REAL, -0.06), ("simulated", SIMULATED, 0.06)):
        at = [0.5 * (d.low + d.high) + shift * (d.high - d.low) for d in c.detections]
        shares = [getattr(d, name) for d in c.detections]
        axes.errorbar(
            at,
            [s.value for s in shares],
            yerr=[[s.value - s.low for s in shares], [s.high - s.value for s in shares]],
            fmt="o",
            ms=3,
            color=colour,
            capsize=2,
            lw=1.0,
            label=name,
        )
    axes.set(xlabel="distance (m)", ylabel="share", title="detected signals (95 %)", ylim=(0.0, 1.03))
    axes.legend(loc="best")


def _coverage(c: Comparison, axes: Any) -> None:
    having = [q for q in c.quantities.values() if q.coverage is not None][:TABLE_ROWS]
    for row, q in enumerate(having):
        assert q.coverage is not None
        for share, colour, shift in zip(
            q.coverage.shares.items(), (SHADE, SIMULATED, INK), (-0.22, 0.0, 0.22), strict=True
        ):
            s = share[1]
            label = f"{share[0]} % band" if row == 0 else None
            axes.plot([100.0 * s.low, 100.0 * s.high], [row + shift] * 2, color=colour, lw=1.2)
            axes.plot(100.0 * s.value, row + shift, "o", ms=3, color=colour, label=label)
    for nominal, colour in ((50.0, SHADE), (90.0, SIMULATED), (95.0, INK)):
        axes.axvline(nominal, color=colour, lw=0.7, ls="--")
    axes.set_yticks(range(len(having)), [q.name for q in having], fontsize=6.5)
    axes.invert_yaxis()
    axes.set(xlabel="% of the real values inside (dashed: nominal)", title="coverage", xlim=(-2.0, 102.0))
    axes.legend(ncols=3, loc="lower right", bbox_to_anchor=(1.02, 0.97), columnspacing=1.0, handletextpad=0.1)


def _ranks(c: Comparison, axes: Any) -> None:
    having = [q for q in c.quantities.values() if q.coverage is not None]
    total = np.sum([np.array(q.coverage.ranks) / sum(q.coverage.ranks) for q in having if q.coverage], axis=0) / len(
        having
    )
    axes.bar(range(len(total)), total * len(total), color=SHADE, edgecolor=SIMULATED, width=1.0, lw=0.5)
    axes.axhline(1.0, color=INK, lw=0.8, ls="--")
    axes.set(
        xlabel="rank of the real value among the runs",
        ylabel="relative frequency",
        title="rank histogram, mean of all quantities",
    )


def _numbers(c: Comparison, figure: Any) -> None:
    """Draw the table of the most important numbers."""
    axes = figure.subplots()
    axes.axis("off")
    head = ["real - simulated", "bias", "95 %", "rms", "95 %", "corr.", "in the 90 % band", "95 %"]
    cells = []
    names = list(c.quantities)
    motion = [n for n in names if "." not in n][:TABLE_ROWS]
    for name in [*motion, *[n for n in names if "." in n][: TABLE_ROWS - len(motion)]]:
        q = c.quantities[name]
        unit, factor = SHOWN.get(q.unit, (q.unit, 1.0))
        covered = percent(q.coverage.shares["90"]) if q.coverage is not None else ("", "")
        rho = f"{q.correlation:.2f}" if math.isfinite(q.correlation) else ""
        cells.append(
            [
                f"{q.name} ({unit})",
                number(factor * q.bias.value),
                interval(q.bias, factor),
                number(factor * q.rms.value),
                interval(q.rms, factor),
                rho,
                *covered,
            ]
        )
    table = axes.table(
        cells,
        colLabels=head,
        loc="upper center",
        cellLoc="right",
        edges="horizontal",
        colWidths=[0.24, 0.08, 0.16, 0.08, 0.16, 0.06, 0.12, 0.1],
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7)
    table.scale(1.0, 1.05)
    for (row, column), cell in table.get_celld().items():
        cell.set_edgecolor("#dfe6ec")
        cell.set_text_props(color=INK, weight="bold" if row == 0 else "normal")
        if column == 0:
            cell.set_text_props(ha="left")
            cell._loc = "left"
