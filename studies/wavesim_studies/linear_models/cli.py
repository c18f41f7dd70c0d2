"""Commands of the group ``wavesim vehicles``: trims, linear models and matrices."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from wavesim_sdk.cli import json_option
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.terminal_text import echo, finite_json
from wavesim_server.cli_vehicles import find_model, models_option
from wavesim_studies.cli_options import PICTURES, check_suffix

if TYPE_CHECKING:
    from wavesim_studies.linear_models.linearisation import LinearModel

SUFFIXES = (".json", ".mat", ".npz")  #: formats of model_files, which is imported only when a command runs
TABLES = (".csv", ".json")  #: formats of a table of trims
RESPONSE_POINTS = 400  #: number of points of a step response in the picture
STEP = 0.01  #: size of a step in the picture, as a fraction of the trim value, or of 1 if the trim value is smaller
NEGLIGIBLE = 1e-9  #: responses in rad or m/s that are smaller are rounding errors

depth_option = click.option(
    "--depth",
    type=Quantity("length"),
    help="Depth of the origin of an underwater vehicle in m; default: 1000 m. Other vehicles float.",
)


@click.command()
@click.argument("name")
@click.option(
    "--speed",
    "speeds",
    type=Quantity("speed"),
    multiple=True,
    help="Speed over ground in m/s; negative: astern. Repeatable.",
)
@click.option(
    "--speeds",
    "span",
    type=Quantity("speed"),
    nargs=3,
    metavar="FIRST LAST STEP",
    help="Speeds from FIRST to LAST in steps of STEP, instead of --speed.",
)
@depth_option
@click.option("--out", type=click.Path(path_type=Path), help="Table to write: .csv or .json.")
@models_option
@json_option
def trim(
    name: str,
    speeds: tuple[float, ...],
    span: tuple[float, float, float] | None,
    depth: float | None,
    out: Path | None,
    models: Path | None,
    as_json: bool,
) -> None:
    """Find the attitude and commands of steady motion.

    The motion of model NAME is straight and level, in still water. The course is north, so the yaw angle is the drift
    angle.
    """
    from wavesim_studies.linear_models.trim_table import speeds_of, trim_rows, write_table

    check_suffix(out, TABLES, "--out")
    check_writable(out)
    if bool(speeds) == (span is not None):
        raise click.UsageError("give --speed, or --speeds FIRST LAST STEP")
    rows = trim_rows(find_model(name, models), speeds or speeds_of(*(span or ())), depth)
    if len(rows) == 1 and "problem" in rows[0]:
        raise ConfigError(rows[0]["problem"])
    if out is not None:
        write_table(rows, out)
    if as_json:
        echo(finite_json(rows, indent=2, default=float))
        return
    for row in rows:
        if "problem" in row:
            echo(f"{row['speed_m_s']:g} m/s: {row['problem']}")
            continue
        echo(
            f"{row['speed_m_s']:g} m/s: roll {row['roll_deg']:.2f} deg, pitch {row['pitch_deg']:.2f} deg, "
            f"yaw {row['yaw_deg']:.2f} deg, depth {row['depth_m']:.3f} m"
        )
        for actuator, value in row["actuators"].items():
            echo(f"    {actuator:30} {value:.5g}")
    if out is not None:
        echo(f"wrote {out}")


@click.command()
@click.argument("name")
@click.option("--speed", type=Quantity("speed"), required=True, help="Speed over ground in m/s at the trim.")
@depth_option
@click.option("--lags", is_flag=True, help="Add the actual value of each actuator with a lag as a state.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="File with A, B and the trim: .json, .mat (MATLAB) or .npz (NumPy)."
)
@click.option("--picture", type=click.Path(path_type=Path), help="Picture of the step responses: .png, .pdf or .svg.")
@click.option(
    "--time", "seconds", type=Quantity("time", low=0.01), help="Duration of the step responses in s; default: 20 s."
)
@models_option
@json_option
def linearise(
    name: str,
    speed: float,
    depth: float | None,
    lags: bool,
    out: Path | None,
    picture: Path | None,
    seconds: float | None,
    models: Path | None,
    as_json: bool,
) -> None:
    """Linearise a model about its trim: A, B, modes, steps.

    The states of model NAME are deviations of position, attitude and velocity from the trim; the inputs are deviations of the
    actuator values. The command prints the modes; --out writes the matrices.
    """
    from wavesim_studies.linear_models import linearisation
    from wavesim_studies.linear_models.model_files import linear_model_content, write_content

    check_suffix(out, SUFFIXES, "--out")
    check_suffix(picture, PICTURES)
    if seconds is not None and picture is None:
        raise click.UsageError("--time needs --picture")
    check_writable(out)
    check_writable(picture)
    model = linearisation.linearise(find_model(name, models), speed, depth, lags)
    if out is not None:
        write_content(linear_model_content(model), out)
    if picture is not None:
        draw_responses(model, picture, 20.0 if seconds is None else seconds)
    modes = model.modes()
    if as_json:
        content = {k: np.asarray(v).tolist() for k, v in linear_model_content(model).items()}
        content["modes"] = [
            {
                "real_1_s": m.eigenvalue.real,
                "imag_1_s": m.eigenvalue.imag,
                "multiplicity": m.multiplicity,
                "states": list(m.states),
                "controllable": m.controllable,
            }
            for m in modes
        ]
        echo(finite_json(content, indent=2))
        return
    echo(f"{len(model.A)} states: {', '.join(model.states)}")
    echo(f"{len(model.inputs)} inputs: {', '.join(model.inputs) or 'none'}")
    echo(f"{'time constant':>14}  {'period':>9}  {'damping':>8}  mode")
    for m in modes:
        constant = f"{m.time_constant:.4g} s" if math.isfinite(m.time_constant) else "-"
        period = f"{m.period:.4g} s" if math.isfinite(m.period) else "-"
        damping = f"{m.damping_ratio:.3f}" if math.isfinite(m.period) else "-"
        remark = "" if m.controllable else "; not controllable"
        echo(f"{constant:>14}  {period:>9}  {damping:>8}  {', '.join(m.states)}{remark}")
    for path in (out, picture):
        if path is not None:
            echo(f"wrote {path}")


@click.command()
@click.argument("name")
@click.option(
    "--format",
    "form",
    type=click.Choice(["matrices", "sdf", "urdf"]),
    default="matrices",
    show_default=True,
    help="matrices: those of Fossen's equation. sdf: model and world for Gazebo. urdf: description for ROS.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write for matrices: .json, .mat (MATLAB) or .npz (NumPy). Folder to write for sdf and urdf.",
)
@models_option
def export(name: str, form: str, out: Path, models: Path | None) -> None:
    """Write a model for other programs.

    The matrices M, D and G of Fossen's equation come with weight, buoyancy, their centres, and the force and moment per
    unit of thrust. SDF and URDF files have axes forward, to port and up. The command lists the terms of model NAME that
    the files do not represent.
    """
    model = find_model(name, models)
    if form != "matrices":
        from wavesim_studies.model_export.files import write_description

        paths, missing = write_description(model, form, out, models.parent if models is not None else None)
        for path in paths:
            echo(f"wrote {path}")
        for text in missing:
            echo(f"not in the files: {text}")
        return
    from wavesim_studies.linear_models.model_files import fossen_matrices, write_content

    check_suffix(out, SUFFIXES, "--out")
    check_writable(out)
    content = fossen_matrices(model)
    write_content(content, out)
    echo(f"wrote {out}")
    for text in content["not_in_matrices"]:
        echo(f"not in the matrices: {text}")


def step_text(size: float, unit: str) -> str:
    """Return the size of a step with its sign and unit; angles are in degrees."""
    return f"{math.degrees(size):+.3g} deg" if unit == "rad" else f"{size:+.3g} {unit}".rstrip()


def draw_responses(model: LinearModel, path: Path, seconds: float) -> None:
    """Draw the responses of velocity and attitude to a step of each actuator."""
    from matplotlib.figure import Figure

    shown = [k for k, name in enumerate(model.states) if name in ("u", "v", "w", "roll", "pitch", "yaw")]
    times = np.linspace(0.0, seconds, RESPONSE_POINTS)
    moved = [k for k in range(len(model.inputs)) if np.abs(model.B[:, k]).max() > 0.0]
    figure = Figure(figsize=(3.2 * len(shown), 1.9 * max(len(moved), 1) + 0.6), layout="constrained")
    grid = figure.subplots(max(len(moved), 1), len(shown), squeeze=False, sharex=True)
    for row, k in zip(grid, moved, strict=False):
        size = STEP * max(abs(model.trim.actuators[k]), 1.0)
        found = model.step_response(model.inputs[k], size, times)
        found[:, np.abs(found).max(axis=0) < NEGLIGIBLE] = 0.0
        for axes, state in zip(row, shown, strict=True):
            angle = model.state_units[state] == "rad"
            axes.plot(times, np.degrees(found[:, state]) if angle else found[:, state])
            axes.grid(alpha=0.3)
            axes.set_title(f"{model.states[state]} ({'deg' if angle else 'm/s'})", fontsize=8)
            axes.tick_params(labelsize=7)
        row[0].set_ylabel(f"{model.inputs[k]}\n{step_text(size, model.input_units[k])}", fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)", fontsize=8)
    figure.savefig(path, dpi=110)
