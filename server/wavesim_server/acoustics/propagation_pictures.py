"""Pictures of the sound paths between two points, and of the transmission loss around a source (needs matplotlib)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, cos, hypot, sin
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import check_installed
from wavesim_sdk.names import shorten
from wavesim_server.acoustics import loss_planes
from wavesim_server.acoustics.propagation_model import PropagationModel, first_free_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BED, INK, WEAK = "#7a6a58", "#1b2733", "#ffffff"
#: colours of low and high sound speeds, light enough for dark rays
SPEEDS = ("#7fb0d8", "#c9dff0", "#fbf6ea")
SHAPE = (240, 480)  #: rows and columns of a picture of the loss


class View(NamedTuple):
    """Subject of a picture: source and receiver, time of emission (s), carrier (Hz), and the plane of the transmission
    loss (None, "vertical" or "horizontal") with its extent and depth (m; None = the default).
    """

    source: Floats
    receiver: Floats
    time_s: float
    frequency: float
    loss: str | None = None
    reach: float | None = None
    depth: float | None = None
    coherent: bool = False


def check(model: PropagationModel, view: View, path: Path) -> None:
    """Check that the picture can be drawn, before its computation. Raises ConfigError for a path without the ending of a
    known format, and InvalidArgument for a horizontal plane without water.
    """
    check_installed("matplotlib")
    from matplotlib.backend_bases import FigureCanvasBase

    formats = FigureCanvasBase.get_supported_filetypes()
    ending = path.suffix[1:].lower()
    if ending not in formats:
        problem = f"cannot draw this format: '{shorten(ending)}'" if ending else "the name has no ending"
        raise ConfigError(f"{problem}; use one of {', '.join(sorted(formats))}", str(path))
    if view.loss == "horizontal":
        loss_planes.check_in_water(model, _level(view))


def draw(model: PropagationModel, view: View, path: Path) -> None:
    """Draw the rays over the sound speed and, if requested, the transmission loss. The ending of ``path`` selects the
    format, such as PNG or SVG. Raises ConfigError if the file cannot be written, and the errors of :func:`check`.
    """
    check(model, view, path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 9.0 if view.loss else 4.8), layout="constrained")
    axes = figure.subplots(2 if view.loss else 1, 1, squeeze=False)[:, 0]
    _draw_rays(model, view, figure, axes[0])
    if view.loss == "vertical":
        _draw_vertical_loss(model, view, figure, axes[1])
    elif view.loss == "horizontal":
        _draw_horizontal_loss(model, view, figure, axes[1])
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise ConfigError(f"cannot write the file: {error.strerror}", str(path)) from None


def _kilometres(far: float) -> tuple[float, str]:
    return (1e-3, "km") if far > 3000.0 else (1.0, "m")


def _draw_bed(axes: Axes, ranges: Floats, bed: Floats, deepest: float) -> None:
    axes.fill_between(ranges, np.nan_to_num(bed, nan=deepest), deepest, color=BED, linewidth=0.0, zorder=3)


def _name(axes: Axes, name: str, x: float, y: float, shift: int = 6) -> None:
    """Mark a point and write its name beside it."""
    from matplotlib.patheffects import withStroke

    axes.plot([x], [y], "o", color=WEAK, markeredgecolor=INK, markersize=7, clip_on=False, zorder=6)
    text = axes.annotate(name, (x, y), (shift, 7), textcoords="offset points", color=INK, weight="bold", zorder=7)
    text.set_path_effects([withStroke(linewidth=3.0, foreground=WEAK)])


def _draw_rays(model: PropagationModel, view: View, figure: Figure, axes: Axes) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    a, b = view.source, view.receiver
    table, tracks = model.arrivals_and_tracks(a, b, view.time_s, view.frequency)
    far = float(hypot(b[0] - a[0], b[1] - a[1]))
    along = (b[:2] - a[:2]) / far if far > 1.0 else np.array([1.0, 0.0])
    reach = [min([0.0, *(t[:, 0].min() for t in tracks)]), max([far, 1.0, *(t[:, 0].max() for t in tracks)])]
    margin = 0.02 * (reach[1] - reach[0])
    start, end = (np.array([*(a[:2] + along * u), 0.0]) for u in (reach[0] - margin, reach[1] + margin))
    section = model.sound_speed_section(start, end, view.time_s)
    scale, unit = _kilometres(far)
    ranges = (section.ranges + reach[0] - margin) * scale
    deepest = 1.04 * float(section.depths[-1])
    speed = model.sound_speed(section.positions, view.time_s)  # also below the bed, which covers it
    span = max(float(np.nanmax(section.speed) - np.nanmin(section.speed)), 1.0)
    middle = 0.5 * float(np.nanmax(section.speed) + np.nanmin(section.speed))
    shades = axes.pcolormesh(
        ranges,
        section.depths,
        speed,
        cmap=LinearSegmentedColormap.from_list("sound speed", SPEEDS),
        shading="gouraud",
        rasterized=True,
        vmin=middle - 0.5 * span,
        vmax=middle + 0.5 * span,
    )
    bar = figure.colorbar(shades, ax=axes, label="sound speed (m/s)", pad=0.01)
    bar.ax.ticklabel_format(useOffset=False)
    _draw_bed(axes, ranges, section.bed, deepest)
    order = np.argsort(-table["loss"], kind="stable")  # the strongest paths on top
    least, earliest = float(table["loss"].min()) if len(table) else 0.0, first_free_path(table)
    for k in order.tolist():
        first, track = k == earliest, tracks[k]
        strength = max(0.0, 1.0 - (float(table["loss"][k]) - least) / 40.0)
        style: dict[str, Any] = {
            "color": "#d9480f" if first else INK,
            "linewidth": 2.0 if first else 0.6 + 0.7 * strength,
        }
        if table["blocked_by"][k]:
            style |= {"linestyle": "--", "color": "#b02a37"}
        axes.plot(
            track[:, 0] * scale,
            track[:, 1],
            alpha=1.0 if first else 0.35 + 0.6 * strength,
            zorder=5 if first else 4,
            **style,
        )
    _name(axes, "A", 0.0, float(a[2]))
    _name(axes, "B", far * scale, float(b[2]), -15)
    axes.set_xlim(ranges[0], ranges[-1])
    axes.set_ylim(deepest, 0.0)
    axes.set(xlabel=f"range along the line from A to B ({unit})", ylabel="depth (m)")
    axes.set_title(_rays_title(table), fontsize=10, loc="left")


def _rays_title(table: Any) -> str:
    if not len(table):
        return "acoustic shadow: no path from A to B"
    parts, first = [f"{len(table)} path{'s' if len(table) > 1 else ''}"], first_free_path(table)
    if first is None:
        return f"{parts[0]} from A to B, all blocked"
    parts.append(
        f"orange: first free, {table['time'][first]:.6f} s" if first else f"orange: first, {table['time'][0]:.6f} s"
    )
    parts.append(f"straight-line error {table['straight_line_error'][first]:+.2f} m")
    if (table["blocked_by"] != "").any():
        parts.append("dashed: blocked")
    return "; ".join(parts)


def _colour_range(loss: Floats) -> tuple[float, float]:
    known = loss[np.isfinite(loss) & (loss < loss_planes.MAX_LOSS_DB)]
    if not len(known):
        return 0.0, 1.0
    low, high = np.percentile(known, (2.0, 98.0))
    return 5.0 * math.floor(low / 5.0), max(
        5.0 * math.ceil(min(high, low + 60.0) / 5.0), 5.0 * math.floor(low / 5.0) + 10.0
    )


def _draw_vertical_loss(model: PropagationModel, view: View, figure: Figure, axes: Axes) -> None:
    a, b = view.source, view.receiver
    far = float(hypot(b[0] - a[0], b[1] - a[1]))
    bearing = float(atan2(b[1] - a[1], b[0] - a[0])) if far > 0.0 else 0.0
    reach = view.reach or max(1.05 * far, 10.0)
    plane = loss_planes.vertical_plane(model, a, bearing, reach, SHAPE)
    loss = loss_planes.transmission_loss(model, a, plane, view.time_s, view.frequency, view.coherent)
    scale, unit = _kilometres(reach)
    low, high = _colour_range(loss)
    shown = axes.pcolormesh(
        plane.ranges * scale, plane.depths, loss, cmap="turbo_r", vmin=low, vmax=high, rasterized=True
    )
    figure.colorbar(shown, ax=axes, label="transmission loss (dB)", pad=0.01, extend="both")
    bed = model.bed_depth(a[0] + plane.ranges * cos(bearing), a[1] + plane.ranges * sin(bearing))
    deepest = 1.04 * float(plane.depths[-1])
    _draw_bed(axes, plane.ranges * scale, bed, deepest)
    _name(axes, "A", 0.0, float(a[2]))
    if 0.0 < far <= reach:
        _name(axes, "B", far * scale, float(b[2]), -15)
    axes.set_xlim(0.0, plane.ranges[-1] * scale)
    axes.set_ylim(deepest, 0.0)
    axes.set(xlabel=f"range from A ({unit})", ylabel="depth (m)")
    axes.set_title(f"{_loss_title(view)}, bearing {math.degrees(bearing) % 360.0:.1f} deg", fontsize=10, loc="left")


def _level(view: View) -> loss_planes.HorizontalPlane:
    """Return the horizontal plane of a view."""
    a, b = view.source, view.receiver
    far = float(hypot(b[0] - a[0], b[1] - a[1]))
    depth = float(b[2]) if view.depth is None else view.depth
    return loss_planes.horizontal_plane(a, depth, view.reach or max(1.2 * far, 10.0), (SHAPE[0], SHAPE[0]))


def _draw_horizontal_loss(model: PropagationModel, view: View, figure: Figure, axes: Axes) -> None:
    a, b = view.source, view.receiver
    plane = _level(view)
    reach, depth = float(plane.east[-1] - a[1]), plane.depth
    loss = loss_planes.transmission_loss(model, a, plane, view.time_s, view.frequency, view.coherent)
    scale, unit = _kilometres(reach)
    low, high = _colour_range(loss)
    axes.set_facecolor(BED)
    shown = axes.pcolormesh(
        plane.east * scale, plane.north * scale, loss, cmap="turbo_r", vmin=low, vmax=high, rasterized=True
    )
    figure.colorbar(shown, ax=axes, label="transmission loss (dB)", pad=0.01, extend="both")
    for p, name in ((a, "A"), (b, "B")):
        _name(axes, name, p[1] * scale, p[0] * scale)
    axes.set_aspect("equal")
    axes.set(xlabel=f"east ({unit})", ylabel=f"north ({unit})")
    axes.set_title(f"{_loss_title(view)}, depth {depth:g} m", fontsize=10, loc="left")


def _loss_title(view: View) -> str:
    return f"{'coherent' if view.coherent else 'incoherent'} transmission loss from A, {view.frequency / 1e3:g} kHz"
