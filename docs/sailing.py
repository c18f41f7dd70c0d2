"""Sail every model of the library and write the tables of docs/models.md and their picture (`python docs/sailing.py`)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from generate import ROOT, between

from wavesim_server.dynamics.model_compiler import shape_of
from wavesim_server.manoeuvres import STABLE, ManoeuvreTrial, trials
from wavesim_server.sailing import ManoeuvreRun, is_surface_model, run_manoeuvres
from wavesim_world.config import Model, library
from wavesim_world.config.vehicle import Performance

DRAWN = {"port": "tab:red", "starboard": "tab:green", "zig-zag": "tab:blue"}


def table(runs: list[ManoeuvreRun]) -> str:
    """Return one row for each model: speeds, turning circle and largest tilts."""
    lines = [
        "| model | purpose | full ahead m/s | published m/s, deg/s | full astern m/s | turning circle m | rate deg/s | maximum tilt in calm water, deg | "
        "Hs in m: maximum tilt in deg, adrift / full ahead |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for model in library().values():
        if model.type == "aircraft":  # it neither sails nor turns in the water
            continue
        mine = {run.manoeuvre: run for run in runs if run.model == model.name}

        def speed(name: str, mine: dict[str, ManoeuvreRun] = mine) -> str:
            return f"{mine[name].end_speed:.2f}" if name in mine else "-"

        def tilt(*names: str, mine: dict[str, ManoeuvreRun] = mine) -> str:
            tilts = [math.degrees(mine[n].tilts.max()) for n in names if n in mine]
            return f"{max(tilts):.0f}" if tilts else "-"

        turn = mine.get("starboard")
        circle = (
            [f"{turn.turning_circle[0]:.1f}", f"{math.degrees(turn.turning_circle[1]):.1f}"] if turn else ["-", "-"]
        )
        calm = tilt(*(n for n in mine if n not in ("waves", "seaway")))
        lines.append(
            f"| `{model.name}` | {model.valid_speed:g} m/s | {speed('ahead')} | {published(model)} | {speed('astern')} | {circle[0]} | {circle[1]} | "
            f"{calm} | {model.valid_sea:g}: {tilt('waves')} / {tilt('seaway')} |"
        )
    return "\n".join(lines)


def published(model: Model) -> str:
    """Return the speed and rate of turn of the real vehicle."""
    p = model.performance or Performance(source="")
    figures = [f"{p.speed:g}" if p.speed else "-"] + ([f"{math.degrees(p.turn_rate):g}"] if p.turn_rate else [])
    return ", ".join(figures)


def manoeuvre_table(found: list[ManoeuvreTrial]) -> str:
    """Return one row for each model: speeds, effect of a push, spiral, overshoots, turning circle, and the real
    vehicle.
    """
    lines = [
        "| model | m/s | yaw rate remaining after a push, deg/s | stable: model / vehicle | spiral test: difference "
        "between the yaw rates amidships, deg/s | overshoots 10/10, deg "
        "| 20/20, deg | turning diameter, lengths | fraction of the speed that remains in the turn |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for model in library().values():
        mine = [t for t in found if t.model == model.name]

        def of(manoeuvre: str, value: Callable[[ManoeuvreTrial], str], mine: list[ManoeuvreTrial] = mine) -> str:
            return " / ".join(value(t) for t in mine if t.manoeuvre == manoeuvre) or "-"

        if not mine:
            continue
        stable = all(t.residual < STABLE for t in mine if t.manoeuvre == "push")
        real = model.performance.stable if model.performance is not None else "unknown"
        cells = (
            of("push", lambda t: f"{math.hypot(*t.before[:2]):.2f}"),
            of("push", lambda t: f"{math.degrees(t.residual):.2f}"),
            f"{'yes' if stable else 'no'} / {real}",
            of("spiral", lambda t: f"{math.degrees(t.loop):.1f}"),
            of("zig-zag 10/10", lambda t: ", ".join(f"{math.degrees(a):.0f}" for a in t.overshoots)),
            of("zig-zag 20/20", lambda t: ", ".join(f"{math.degrees(a):.0f}" for a in t.overshoots)),
            of("circle", lambda t: f"{t.circle[0]:.1f}"),
            of("circle", lambda t: f"{t.circle[2]:.2f}"),
        )
        lines.append(f"| `{model.name}` | " + " | ".join(cells).replace("inf", "-") + " |")
    return "\n".join(lines)


def picture(runs: list[ManoeuvreRun], path: Path) -> None:
    """Draw the tracks of the first minute and a half of steered models, in lengths of the vehicle."""
    models = [m for m in library().values() if any(r.model == m.name and r.manoeuvre == "zig-zag" for r in runs)]
    columns = 4
    figure, axes = plt.subplots(math.ceil(len(models) / columns), columns, figsize=(14, 9), layout="constrained")
    for axis in axes.flat:
        axis.set_visible(False)
    for axis, model in zip(axes.flat, models, strict=False):
        axis.set_visible(True)
        length = shape_of(model).size[0]
        for run in runs:
            if run.model == model.name and run.manoeuvre in DRAWN:
                p = (run.track[:90, :2] - run.track[0, :2]) / length
                axis.plot(p[:, 1], p[:, 0], color=DRAWN[run.manoeuvre], label=run.manoeuvre, linewidth=1.0)
        where = "surface" if is_surface_model(model) else "under water"
        axis.set_title(f"{model.name} ({length:g} m, {where})", fontsize=9)
        axis.set_aspect("equal", "datalim")
        axis.tick_params(labelsize=7)
    handles = {h.get_label(): h for axis in axes.flat for h in axis.get_lines()}
    figure.legend(handles.values(), handles.keys(), loc="lower right", fontsize=9)
    figure.supxlabel("east, lengths", fontsize=9)
    figure.supylabel("north, lengths", fontsize=9)
    figure.savefig(path, dpi=80)


def main() -> None:
    runs = run_manoeuvres(library().values())
    page = ROOT / "docs/models.md"
    page.write_text(between(page.read_text(), "sailing", table(runs)))
    page.write_text(between(page.read_text(), "manoeuvres", manoeuvre_table(trials(library().values()))))
    picture(runs, ROOT / "docs/images/sailing.png")
    print(f"{len(runs)} runs; all finite: {bool(np.all([run.is_finite for run in runs]))}")


if __name__ == "__main__":
    main()
