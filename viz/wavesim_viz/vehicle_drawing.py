"""Drawing of a model from the side, from above and from ahead, with its actuators."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from wavesim_sdk.extras import check_installed

check_installed("matplotlib")
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Ellipse, Rectangle

from wavesim_world.config import Model
from wavesim_world.config.primitives import shape_of

#: views of a drawing: title, horizontal axis, vertical axis, axis along the line of sight, and labels of the axes
_VIEWS = (
    ("from starboard", 0, 2, 1, ("x forward, m", "z down, m")),
    ("from above", 0, 1, 2, ("x forward, m", "y starboard, m")),
    ("from ahead", 1, 2, 0, ("y starboard, m", "z down, m")),
)


def _hull(axes: Any, model: Model, i: int, j: int) -> None:
    size = shape_of(model).size
    style: dict[str, Any] = {"facecolor": "#e8eef4", "edgecolor": "#34495e", "linewidth": 1.5, "zorder": 1}
    if model.sphere is not None:
        axes.add_patch(Circle((0, 0), size[0] / 2, **style))
    elif model.cylinder is not None and i == 1:
        axes.add_patch(Ellipse((0, 0), size[1], size[2], **style))
    else:
        axes.add_patch(Rectangle((-size[i] / 2, -size[j] / 2), size[i], size[j], **style))


def draw(model: Model, path: Path) -> None:
    """Write a drawing of a model."""
    size = shape_of(model).size
    reach = max(size)
    figure, views = plt.subplots(1, 3, figsize=(14, 5.2), gridspec_kw={"width_ratios": [2, 2, 1.2]})
    for axes, (title, i, j, _, labels) in zip(views, _VIEWS, strict=True):
        _hull(axes, model, i, j)
        if model.allocation is None:
            for k, t in enumerate(model.thruster):
                d = np.array(t.direction) / np.linalg.norm(t.direction) * 0.14 * reach
                p = t.position
                axes.plot(
                    p[i], p[j], "o", color="#c0392b", markersize=5, zorder=3, label="thruster" if k == 0 else None
                )
                if math.hypot(d[i], d[j]) > 0.02 * reach:
                    axes.annotate(
                        "",
                        (p[i] + d[i], p[j] + d[j]),
                        (p[i], p[j]),
                        arrowprops={"arrowstyle": "-|>", "color": "#c0392b", "linewidth": 1.5},
                        zorder=3,
                    )
        for k, f in enumerate(model.fin):
            chord = np.array(f.chord) / np.linalg.norm(f.chord)
            normal = np.array(f.normal) / np.linalg.norm(f.normal)
            half = 0.5 * math.sqrt(f.area) if f.area else 0.04 * reach
            span, c = np.cross(chord, normal) * half, chord * half
            corners = np.array([span + c, span - c, -span - c, -span + c, span + c]) + np.array(f.position)
            axes.plot(corners[:, i], corners[:, j], color="#16a085", zorder=3, label="fin" if k == 0 else None)
        marks = [("centre of mass", model.mass.centre, "x", "black")]
        if model.restoring is None:
            centre = model.buoyancy.centre if model.buoyancy else (0.0, 0.0, 0.0)
            marks.append(("centre of buoyancy", centre, "+", "#2980b9"))
        if model.transducer is not None:
            marks.append(("transducer", model.transducer.position, "^", "#8e44ad"))
        marks += [(f"ballast {b.name}", b.position, "s", "#7f8c8d") for b in model.ballast]
        for label, p, mark, colour in marks:
            axes.plot(p[i], p[j], mark, color=colour, markersize=8, zorder=4, label=label)
        margin = 0.25 * reach if i == 0 else 0.45 * max(size[1:])
        axes.set_xlim(-size[i] / 2 - margin, size[i] / 2 + margin)
        axes.set_ylim(size[j] / 2 + margin, -size[j] / 2 - margin)
        axes.set_aspect("equal")
        axes.set_title(title)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.grid(alpha=0.3)
    handles, names = views[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncol=len(names), frameon=False)
    figure.suptitle(model.title or model.name, fontsize=13)
    figure.tight_layout(rect=(0, 0.06, 1, 0.97))
    figure.savefig(path, dpi=110)
    plt.close(figure)
