"""Command ``wavesim nav import``: convert recordings from other programs to WaVeSim logs."""

from __future__ import annotations

from pathlib import Path

import click

from wavesim_sdk.terminal_text import echo
from wavesim_studies.cli_options import frame_option


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path),
    help="Import map (.xml): files, columns and topics, and the instruments of the vehicle.",
)
@click.option("--vehicle", default="", help="Name of the vehicle; default: the name in the map, or `vehicle`.")
@click.option(
    "--configuration",
    type=click.Path(path_type=Path),
    help="Configuration that contains the vehicle with the mounts and accuracies of its instruments.",
)
@click.option(
    "--truth",
    default="",
    help="True track: a topic of the bag, a file (TUM, CSV, bag, log), or, for a vehicle's log, the type of a message or "
    "`none`; default: the simulator's ground truth or, if there is none, the vehicle's own estimate.",
)
@frame_option
def import_(
    source: Path, out: Path, map_file: Path | None, vehicle: str, configuration: Path | None, truth: str, frame: str
) -> None:
    """Import a recording from another program as a WaVeSim log.

    SOURCE is a log of MAVLink (.tlog), ArduPilot (.bin), PX4 (.ulg) or DUNE (.lsf, .lsf.gz), a ROS 2 bag, a ROS 1 bag
    (.bag), a folder with CSV files that --map describes, or a folder from `wavesim log export --csv`. OUT is the new log
    (.mcap). Commands that read logs also accept SOURCE itself. The command reports missing quantities, gaps and
    suspicious values.
    """
    from wavesim_sdk.errors import LogError
    from wavesim_studies.navigation import foreign_logs

    if out.suffix.lower() != ".mcap":
        raise click.BadParameter(f"'{out}' must end in .mcap", param_hint="OUT")
    if out.exists():
        raise LogError(f"{out} already exists; choose another file")
    made = foreign_logs.import_log(
        source, map_file, vehicle=vehicle, configuration=configuration, truth=truth, frame=frame
    )
    foreign_logs.write_log(made, out)
    for line in foreign_logs.report_lines(made):
        echo(line)
    echo(f"{out}: {made.log.end_ns * 1e-9:.1f} s of '{made.vehicle}'")
