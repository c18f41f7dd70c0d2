"""Command ``wavesim compare``: a real run beside simulations of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wavesim_sdk.cli import json_option, whole
from wavesim_sdk.cli_commands import unused
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.terminal_text import echo, finite_json
from wavesim_studies.cli_options import check_suffix, frame_option

FORMATS = (".pdf", ".png", ".svg", ".md", ".json")


class RequirementFailed(WaveSimError):
    """Raised when a comparison does not meet a limit that --require states."""

    exit_code = 21


@click.command()
@click.argument("real", type=click.Path(path_type=Path))
@click.argument("simulated", metavar="SIM...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--vehicle", default="", help="Vehicle in the simulated logs; default: the only one.")
@click.option("--real-vehicle", default="", help="Vehicle in REAL, if its name differs.")
@click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path),
    help="Import map (.xml) of REAL: its files, columns and topics.",
)
@click.option("--truth", default="", help="Track of the real vehicle: a topic of the bag, or a file.")
@click.option(
    "--layout",
    default="",
    metavar="KEYS",
    help="Layout of REAL if it is a track: frame=ned or frame=enu, topic=NAME, unit=ns, or columns such as time=t:ns "
    "north=x heading=yaw:deg.",
)
@frame_option
@click.option(
    "--offset",
    type=Quantity("time"),
    help="Time in s to add to the times of REAL; default: from the correlation of speeds and rates.",
)
@click.option(
    "--search",
    default=10.0,
    show_default=True,
    type=Quantity("time", low=0.1, high=86400.0),
    help="Largest offset in s that is searched.",
)
@click.option(
    "--gap",
    default=2.0,
    show_default=True,
    type=Quantity("time", low=0.0),
    help="Length in s of the longest gap that is interpolated.",
)
@click.option(
    "--align",
    type=click.Choice(["none", "start", "translation", "yaw"]),
    default="none",
    show_default=True,
    help="How to align the real track: move it to the simulated start, shift it by the mean difference, or rotate and shift it.",
)
@click.option(
    "--require",
    "limits",
    multiple=True,
    metavar="LIMIT",
    help='Fail with exit code 21 unless this holds, e.g. "track rms < 2 m" or "speed coverage90 > 80 %". Repeatable.',
)
@click.option(
    "--out",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write the report to this file: plots (.pdf, .png, .svg), text (.md) or values (.json). Repeatable.",
)
@json_option
def compare(
    real: Path,
    simulated: tuple[Path, ...],
    vehicle: str,
    real_vehicle: str,
    offset: float | None,
    search: float,
    gap: float,
    align: str,
    limits: tuple[str, ...],
    outputs: tuple[Path, ...],
    as_json: bool,
    **source: Any,
) -> None:
    """Compare a real run with simulations of it.

    REAL is a WaVeSim log, a recording that `wavesim nav import` reads, or a track (.csv, TUM). SIM is a WaVeSim log, or
    a folder with logs. Several logs are an ensemble: runs of one configuration with different seeds.

    The report contains the offset between the clocks, the differences of track, motion, instruments, acoustic ranges
    and detections, and how well the ensemble covers the real run. Differences are real minus simulated. Intervals
    (95 %) allow for correlation in time.
    """
    from wavesim_studies.comparison import compared_runs, page, report
    from wavesim_studies.comparison.comparison import ComparisonOptions
    from wavesim_studies.comparison.comparison import compare as compared
    from wavesim_studies.comparison.requirements import parse_requirement

    for out in outputs:
        check_suffix(out, FORMATS, "--out")
        check_writable(out)
    if offset is not None:
        unused("with --offset", "search")
    recording = compared_runs.RealSource(real, **source)
    kind = compared_runs.kind_of(recording)
    if kind == "a WaVeSim log":
        unused(f"if REAL is {kind}", "map_file", "truth", "layout", "frame")
    elif kind == "a track":
        unused(f"if REAL is {kind}; see --layout", "truth", "frame")
    wanted = [parse_requirement(text) for text in limits]
    runs = compared_runs.read_simulated(simulated, vehicle)
    mine = compared_runs.read_real(recording, real_vehicle, runs[0].vehicle)
    found = compared(mine, runs, ComparisonOptions(offset, search, gap, align))
    outcomes = [(r, *r.outcome(found)) for r in wanted]
    values = found.plain() | {
        "requirements": [{"limit": r.text, "value": value, "met": met} for r, value, met in outcomes]
    }
    picture = next((p.name for p in outputs if p.suffix.lower() in (".png", ".svg")), "")
    for out in outputs:
        if out.suffix.lower() == ".md":
            report.write(out, report.markdown(found, outcomes, picture))
        elif out.suffix.lower() == ".json":
            report.write(out, finite_json(values, 2) + "\n")
        else:
            page.draw(found, out)
    if as_json:
        echo(finite_json(values, 2))
    else:
        for line in report.terminal_lines(found, outcomes):
            echo(line)
    for run in (mine, *runs):
        if run.log is not None:
            whole(run.log)
    if failed := [r.text for r, _, met in outcomes if not met]:
        raise RequirementFailed(f"not met: {'; '.join(failed)}")
