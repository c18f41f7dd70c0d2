"""Plots of a run, drawn from its log alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wavesim_sdk.extras import check_installed

check_installed("matplotlib")
import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon
from matplotlib.ticker import MaxNLocator

from wavesim_sdk import forked_process
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frames import euler
from wavesim_sdk.guidance.encounters import CONTACT_NOTICE_PREFIX
from wavesim_sdk.log import Log, read, usable
from wavesim_sdk.tables import ACTUATION, ESTIMATE, STATE
from wavesim_viz.cables import cable_messages
from wavesim_viz.scene import of_log

COLOURS = ("#d1495b", "#00798c", "#edae49", "#6a4c93", "#30638e", "#8c564b")
_CORNERS = np.array([(1, 1), (1, -1), (-1, -1), (-1, 1)])
INK, FAINT = "#22313f", "#8395a7"
_STYLE: Any = {
    "figure.dpi": 130,
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titleweight": "bold",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dfe6ec",
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
}


class LoggedRun:
    """Log of a run, with the data that all plots need."""

    def __init__(self, path: Path) -> None:
        self.log: Log = read(path)
        bodies = sorted(self.log.bodies.items())
        self.vehicles = [b["name"] for _, b in bodies if b["type"] != "buoy"]
        self.buoys = [b["name"] for _, b in bodies if b["type"] == "buoy"]
        self.rows = {b["name"]: row for row, b in bodies}
        self.colour = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(self.vehicles)}
        self.navigators = [n for n in self.vehicles if f"/estimate/{n}" in self.log.series]

    def state(self, name: str) -> Any:
        return self.log.get(f"/state/{name}", STATE)

    def actuators(self, name: str) -> list[dict[str, str]]:
        """Return the name, kind and unit of each actuator of a body, in the order of the actuation columns."""
        found: list[dict[str, str]] = self.log.bodies[self.rows[name]].get("actuators", [])
        return found

    def title(self) -> str:
        m, length = self.log.metadata, f"{self.log.end_ns * 1e-9:.0f} s"
        if "server" not in m:  # a recording from another program
            return f"{self.log.path.name}, {length}"
        return f"{m['server']}, {length}, seed {m.get('seed', '?')}"


def draw(run: LoggedRun, folder: Path, processes: int = 1) -> list[Path]:
    """Draw every plot for which the log has data, in parallel processes. The processes are forked, so the caller must
    not have threads. Return the paths of the plots.

    Raise WaveSimError if one of the processes fails; the process prints the error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    targets = [folder / f"{name}.png" for name in PICTURES]
    for target in targets:
        target.unlink(missing_ok=True)
    shares = [targets[k::processes] for k in range(processes)]
    others = [forked_process.fork_process("wavesim-plot", functools.partial(_make, run, share)) for share in shares[1:]]
    try:
        _make(run, shares[0])
        if any(process.wait() for process in others):
            raise WaveSimError("a plot could not be drawn (see above)")
    finally:
        for process in others:
            process.kill()
            process.wait()
    return [target for target in targets if target.exists()]


def _make(run: LoggedRun, targets: Sequence[Path]) -> None:
    """Draw the plots with these file names, if the log has data for them."""
    with plt.rc_context(_STYLE), usable(run.log):
        for target in targets:
            figure = PICTURES[target.stem](run)
            if figure is not None:
                figure.savefig(target, bbox_inches="tight", facecolor="white")
                plt.close(figure)


def tracks(run: LoggedRun) -> Figure | None:
    """Draw the true and estimated tracks over the sea bed, and below them the depth over time."""
    if not run.vehicles:
        return None
    figure = plt.figure(figsize=(10, 11.2))
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 0.03), height_ratios=(4, 1.15), hspace=0.18, wspace=0.04)
    chart, profile = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    _bed(run, chart, figure.add_subplot(grid[0, 1]))
    ways: list[Any] = []
    sounded = False
    for name in run.vehicles:
        p = run.state(name).records["p_WB_W"]
        if not len(p):
            continue
        colour = run.colour[name]
        chart.plot(p[:, 1], p[:, 0], color=colour, lw=1.8, label=f"{name}: true", zorder=4)
        chart.plot(p[0, 1], p[0, 0], "o", color=colour, ms=6, mec="white", zorder=6)
        chart.plot(p[-1, 1], p[-1, 0], "s", color=colour, ms=6, mec="white", zorder=6)
        ways.append(p[:, 1::-1])
        if name in run.navigators:
            e = _decimate(run.log.get(f"/estimate/{name}", ESTIMATE).records)  # dashes are slow to draw
            chart.plot(
                e["p_WB_W"][:, 1],
                e["p_WB_W"][:, 0],
                color="black",
                lw=0.7,
                ls=(0, (4, 3)),
                zorder=5,
                label=f"{name}: estimate",
            )
            chart.plot(
                e["dead_reckoning_W"][:, 1],
                e["dead_reckoning_W"][:, 0],
                color=colour,
                lw=1.1,
                ls=":",
                zorder=3,
                label=f"{name}: dead reckoning",
            )
        time = run.state(name).time_ns * 1e-9
        profile.plot(time, p[:, 2], color=colour, label=name)
        sounded |= _bottom_under(run, profile, name, colour)
    _obstacles(run, chart)
    ways += _cables(run, chart)
    _contacts(run, chart)
    for name in run.buoys:
        p = run.state(name).records["p_WB_W"]
        if len(p):
            chart.plot(p[-1, 1], p[-1, 0], marker="^", ms=9, color="#f7b801", mec=INK, ls="", zorder=7)
            chart.annotate(
                name,
                (p[-1, 1], p[-1, 0]),
                textcoords="offset points",
                xytext=(8, 6),
                color=INK,
                fontsize=8,
                zorder=8,
                bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.7},
            )
    _fit_limits(chart, ways)
    chart.set_aspect("equal")
    chart.set_xlabel("east (m)")
    chart.set_ylabel("north (m)")
    chart.set_title(f"Tracks over the sea bed ({run.title()})")
    figure.legend(
        *chart.get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0.065), ncols=3, fontsize=8
    )
    profile.invert_yaxis()
    profile.set_xlabel("time (s)")
    profile.set_ylabel("depth (m)")
    profile.set_title(
        "Depth, and the sea bed under each vehicle as measured by its echosounder (dots)" if sounded else "Depth"
    )
    return figure


def _obstacles(run: LoggedRun, chart: Axes) -> None:
    """Draw blocks, tunnel walls and piers from above."""
    scene, _ = of_log(run.log)
    for x, y, _, length, width, _, heading in scene["boxes"]:
        c, s = np.cos(heading), np.sin(heading)
        corners = [(y + s * a + c * b, x + c * a - s * b) for a, b in _CORNERS * (length, width)]
        chart.add_patch(Polygon(corners, fc=FAINT, ec=INK, lw=0.6, alpha=0.7, zorder=3))
    for x, y, _, radius, _ in scene["piers"]:
        chart.add_patch(Circle((y, x), radius, fc=FAINT, ec=INK, lw=0.6, alpha=0.7, zorder=3))


def _cables(run: LoggedRun, chart: Axes) -> list[Any]:
    """Draw the mooring lines and cables at the end of the run, from above. Return their nodes (n, 2), east and north."""
    ways, label = [], "line at the end"
    for topic, series in run.log.series.items():
        if topic.startswith("/lines/") and len(series.records):
            for line in cable_messages(series.records[-1:]):
                nodes = np.reshape(line["points"], (-1, 3))[:, 1::-1]
                ways.append(nodes if line["broken"] < 0 else np.insert(nodes, line["broken"] + 1, np.nan, axis=0))
                chart.plot(*ways[-1].T, color=INK, lw=0.9, zorder=3.5, label=label)
                label = ""
    return ways


def _contacts(run: LoggedRun, chart: Axes) -> None:
    """Draw the positions of contacts."""
    label: str | None = "contact"
    for time_ns, notice in run.log.json.get("/notices", []):
        if notice["body"] in run.vehicles and notice["text"].startswith(CONTACT_NOTICE_PREFIX):
            state = run.state(notice["body"])
            north, east = (np.interp(time_ns, state.time_ns, state.records["p_WB_W"][:, k]) for k in (0, 1))
            chart.plot(east, north, "X", color="#d00000", mec="white", ms=8, ls="", zorder=9, label=label)
            label = None


def _decimate(values: Any, points: int = 1200) -> Any:
    """Return about ``points`` of the values, evenly spaced."""
    return values[:: max(1, len(values) // points)]


def _bed(run: LoggedRun, chart: Axes, bar: Axes) -> None:
    """Draw filled depth contours."""
    message = next((m for _, m in run.log.json.get("/world/bed", [])), None)
    if message is None:
        bar.axis("off")
        return
    depth = np.array([[np.nan if d is None else d for d in row] for row in message["depth"]])
    low, high = np.nanmin(depth), np.nanmax(depth)
    chart.set_xlim(message["east"][0], message["east"][-1])
    chart.set_ylim(message["north"][0], message["north"][-1])
    chart.grid(False)
    if high - low < 0.1:  # flat: one colour and a label instead of a scale
        bar.set_axis_off()
        chart.set_facecolor(plt.get_cmap("GnBu")(0.12))
        chart.text(0.99, 0.01, f"flat bed, {low:.0f} m", transform=chart.transAxes, ha="right", va="bottom", fontsize=8)
        return
    levels = np.linspace(low, high, 25)
    filled = chart.contourf(message["east"], message["north"], depth, levels=levels, cmap="GnBu", alpha=0.85)
    lines = chart.contour(message["east"], message["north"], depth, levels=levels[::4], colors="white", linewidths=0.5)
    digits = "%.0f" if high - low > 8.0 else "%.1f" if high - low > 0.8 else "%.2f"
    chart.clabel(lines, fmt=f"{digits} m", fontsize=6.5)
    colours = chart.figure.colorbar(filled, cax=bar, ticks=MaxNLocator(8), format=digits)
    colours.set_label("depth of the sea bed (m)")
    colours.ax.invert_yaxis()


def _fit_limits(chart: Axes, ways: Sequence[Any]) -> None:
    """Extend the chart to the complete tracks (n, 2), even beyond the drawn bed."""
    if not ways:
        return
    every = np.vstack(ways)
    every = every[np.isfinite(every).all(axis=1)]
    if not len(every):
        return
    low, high = every.min(axis=0), every.max(axis=0)
    margin = 0.05 * float(np.max(high - low))
    for (first, last), limits, k in ((chart.get_xlim(), chart.set_xlim, 0), (chart.get_ylim(), chart.set_ylim, 1)):
        limits(min(first, low[k] - margin), max(last, high[k] + margin))


def _bottom_under(run: LoggedRun, profile: Axes, name: str, colour: str) -> bool:
    """Draw the sea bed under a vehicle, as measured by its echosounder. Return whether there are measurements."""
    state, sounded = run.state(name), False
    for (body, _), echo in run.log.by_type("echosounder").items():
        good = echo.records["valid"] == 1
        if body == name and good.any() and len(state.time_ns) > 1:
            at = echo.records["time_ns"][good]
            depth = np.interp(at, state.time_ns, state.records["p_WB_W"][:, 2])
            profile.plot(at * 1e-9, depth + echo.records["range"][good], ".", ms=1.2, color=colour, alpha=0.5)
            sounded = True
    return sounded


def navigation(run: LoggedRun) -> Figure | None:
    """Draw the navigation error, the error of dead reckoning for comparison, and the residuals of ranges."""
    if not run.navigators:
        return None
    figure, axes = plt.subplots(2, 2, figsize=(10.5, 6.4), width_ratios=(3, 1))
    error, spread, residual, histogram = axes[0, 0], axes[0, 1], axes[1, 0], axes[1, 1]
    for name in run.navigators:
        colour = run.colour[name]
        estimate = run.log.get(f"/estimate/{name}", ESTIMATE)
        t, nav, dead = run.log.navigation_errors(name)
        error.semilogy(
            _decimate(t), np.maximum(_decimate(dead), 1e-2), color=colour, ls=":", label=f"{name}: dead reckoning"
        )
        error.semilogy(t, np.maximum(nav, 1e-2), color=colour, lw=0.9, label=f"{name}: estimate")
        spread.plot(np.sort(nav), np.linspace(0, 100, len(nav)), color=colour)
        inn = estimate.records["innovation"]
        has = np.isfinite(inn)
        residual.plot(estimate.time_ns[has] * 1e-9, inn[has], ".", ms=2.5, color=colour, alpha=0.7, label=name)
        if has.any():
            limit = max(1.0, float(np.percentile(np.abs(inn[has]), 99.5)))
            histogram.hist(
                np.clip(inn[has], -limit, limit), bins=50, color=colour, alpha=0.55, orientation="horizontal"
            )
    error.axhline(3.0, color=FAINT, lw=0.8)
    error.text(error.get_xlim()[1], 3.1, "3 m ", ha="right", va="bottom", color=FAINT, fontsize=8)
    error.set_title(f"Horizontal position error ({run.title()})", pad=30)
    error.set_ylabel("error (m)")
    error.legend(ncols=3, fontsize=7, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderpad=0.1)
    spread.set_title("Distribution")
    spread.set_xlabel("error (m)")
    spread.set_ylabel("% of the time below this error")
    residual.set_title("Range residuals (measured minus expected by the filter)")
    residual.set_xlabel("time (s)")
    residual.set_ylabel("residual (m)")
    residual.legend(fontsize=8, markerscale=3)
    histogram.set_ylim(residual.get_ylim())
    histogram.set_xlabel("count")
    figure.tight_layout()
    return figure


def ctd(run: LoggedRun) -> Figure | None:
    """Draw the CTD measurements against depth."""
    found = {who: s for who, s in run.log.by_type("ctd").items() if who[0] in run.vehicles and len(s.records)}
    if not found:
        return None
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.6), sharey=True)
    columns = (
        ("temperature", "temperature (C)"),
        ("conductivity", "conductivity (S/m)"),
        ("salinity", "practical salinity"),
    )
    several = len({name for name, _ in found}) < len(found)
    for (name, which), sensor in found.items():
        state, label = run.state(name), f"{name}: {which}" if several else name
        good = sensor.records["valid"] == 1
        values = sensor.records[good]
        depth = np.interp(values["time_ns"], state.time_ns, state.records["p_WB_W"][:, 2])
        for ax, (column, _) in zip(axes, columns, strict=True):
            ax.plot(values[column], depth, ".", ms=1.5, alpha=0.5, color=run.colour[name], label=label)
    for ax, (_, title) in zip(axes, columns, strict=True):
        ax.set_xlabel(title)
        ax.ticklabel_format(useOffset=False)
    axes[0].invert_yaxis()
    axes[0].set_ylabel("depth (m)")
    axes[0].set_title(f"CTD ({run.title()})")
    axes[0].legend(markerscale=6, fontsize=8)
    figure.tight_layout()
    return figure


#: rows of actuators in the plot of the motion: the kinds of actuator, the title of the row, and the axis label and
#: factor for each unit
_ACTING: tuple[tuple[tuple[str, ...], str, dict[str, tuple[str, float]]], ...] = (
    (("thruster",), "thrusters", {"N": ("thrust (N)", 1.0), "1/s": ("revolutions (1/s)", 1.0)}),
    (("fin", "angle"), "fins and nozzles", {"rad": ("angle (deg)", float(np.degrees(1.0)))}),
    (("deflector",), "deflectors", {"": ("deflector (%)", 100.0)}),
    (("ballast",), "tanks", {"kg": ("ballast (kg)", 1.0)}),
)


def motion(run: LoggedRun) -> Figure | None:
    """Draw speed, attitude and actuators of each vehicle."""
    names = [n for n in run.vehicles if len(run.state(n).records)]
    if not names:
        return None
    used = [r for r in _ACTING if any(a["kind"] in r[0] for n in names for a in run.actuators(n))]
    rows = 2 + len(used)
    figure, axes = plt.subplots(
        rows, len(names), figsize=(3.9 * len(names), 2.05 * rows), sharex=True, squeeze=False, layout="constrained"
    )
    for k, name in enumerate(names):
        state = run.state(name)
        t, s = state.time_ns * 1e-9, state.records
        colour = run.colour[name]
        speed, angle = axes[:2, k]
        if s["v_FB_B"].any():  # recordings of other programs lack it
            speed.plot(t, s["v_FB_B"][:, 0], color=colour, label="through the water")
        speed.plot(t, np.linalg.norm(s["v_WB_B"], axis=1), color=FAINT, lw=0.8, label="over ground")
        speed.set_title(name)
        speed.set_ylabel("speed (m/s)")
        attitude = np.degrees(euler(s["q_WB"]))
        angle.plot(t, attitude[:, 0], color=FAINT, lw=0.8, label="roll")
        angle.plot(t, attitude[:, 1], color=colour, lw=0.9, label="pitch")
        angle.set_ylabel("angle (deg)")
        for ax, (kinds, title, labels) in zip(axes[2:, k], used, strict=True):
            _plot_actuation(run, name, ax, kinds, title, labels)
        axes[-1, k].set_xlabel("time (s)")
        for ax in axes[:, k]:
            if ax.lines:
                ax.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, borderpad=0.1)
    return figure


def _plot_actuation(
    run: LoggedRun, name: str, ax: Axes, kinds: tuple[str, ...], title: str, labels: dict[str, tuple[str, float]]
) -> None:
    """Draw the actuators of the given kinds. The label of the axis states the unit of their values."""
    series = run.log.get(f"/actuation/{name}", ACTUATION)
    t, actual = series.time_ns * 1e-9, series.records["actual"]
    mine = [(i, a) for i, a in enumerate(run.actuators(name)) if a["kind"] in kinds]
    tints = list(dict.fromkeys((run.colour[name], INK, FAINT, *COLOURS)))
    for n, (i, a) in enumerate(mine):
        _, factor = labels[a["unit"]]
        ax.plot(t, factor * actual[:, i], lw=0.9, color=tints[n % len(tints)], label=a["name"])
    if not mine:
        ax.set_yticks([])
        ax.text(0.5, 0.5, f"no {title}", transform=ax.transAxes, ha="center", color=FAINT)
    ax.set_ylabel(" / ".join(dict.fromkeys(labels[a["unit"]][0] for _, a in mine)))


#: function that draws each plot, by file name
PICTURES: dict[str, Callable[[LoggedRun], Figure | None]] = {
    "tracks": tracks,
    "navigation": navigation,
    "ctd": ctd,
    "motion": motion,
}
