"""The server's commands ``serve``, ``trial``, ``log`` and ``compile``; the other commands are in ``cli_vehicles``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk.cli import json_option, whole
from wavesim_sdk.cli_commands import unused
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.terminal_text import echo
from wavesim_server import compiling
from wavesim_server.cli_acoustics import acoustics
from wavesim_server.cli_vehicles import replay_actuators, vehicles
from wavesim_world.cli_options import files_option

if TYPE_CHECKING:
    from wavesim_world.config import LoadedConfig


def _load_and_compile(config: Path, threads: int = 1) -> LoadedConfig:
    """Read and check a configuration and the files that it names, and compile the kernels."""
    from wavesim_world import data_files
    from wavesim_world.config import instrument_checks, load

    loaded = load(config)
    data_files.check(loaded)
    for text in (*loaded.notices, *instrument_checks.drowned(loaded)):
        echo(f"wavesim: {config}: {text}", err=True)
    compiling.ensure_compiled(threads=threads, hydrophones="hydrophone" in loaded.sensor_rows)
    return loaded


config_argument = click.argument("config", type=click.Path(path_type=Path), default="config.xml")
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**53), help="Random seed; default: from the configuration."
)
name_option = click.option(
    "--server", "-s", "--name", "name", help="Name of the server; default: from the configuration."
)
port_option = click.option(
    "--port", type=click.IntRange(0, 65535), help="UDP port; 0 = any free port; default: from the configuration."
)


@click.command()
@config_argument
@files_option
@name_option
@port_option
@click.option("--log", "log_file", help="Log file; empty = no log; default: from the configuration.")
@seed_option
@click.option(
    "--speed",
    type=Quantity(),
    help="Number of simulated seconds per wall-clock second; 0 = as fast as possible; default: from the configuration.",
)
@click.option(
    "--duration",
    type=Quantity("time", low=0.0),
    help="End the run after this many simulated seconds; 0 = never; default: from the configuration.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    default=1,
    help="Number of threads that compute a tick, at most one per processor; useful with thousands of bodies. The "
    "results do not depend on this number.",
)
@click.option(
    "--start",
    is_flag=True,
    help='Start the clock without `wavesim start`, as soon as the clients of all bodies with client="required" have joined.',
)
@click.option("--no-wait", is_flag=True, help="With --start: do not wait for required clients.")
def serve(
    config: Path,
    name: str | None,
    port: int | None,
    log_file: str | None,
    seed: int | None,
    speed: float | None,
    duration: float | None,
    threads: int,
    start: bool,
    no_wait: bool,
) -> None:
    """Run a server. Its clock is stopped until `wavesim start`; Ctrl-C ends the server."""
    from wavesim_sdk.commands import make_command
    from wavesim_server.serve import Supervisor, default_options
    from wavesim_server.serve import serve as run

    if no_wait and not start:
        raise click.UsageError("--no-wait requires --start")
    if speed is not None:
        try:
            make_command("speed", {"factor": speed})
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--speed") from None
    loaded = _load_and_compile(config, threads)
    options = default_options(loaded, name, port, log_file, seed, speed, threads, duration)

    def started(server: Supervisor) -> None:
        if not server.wait_ready(options.name):
            return
        echo(
            f"server '{options.name}' on UDP {loaded.config.network.address}:{server.port}; log {server.options.log or 'off'}",
            err=True,
        )
        if loaded.config.network.insecure:
            echo(
                'INSECURE: no keys; anyone who can reach this address can join and control the simulation (insecure="yes")',
                err=True,
            )
        if start:
            server.start_clock(not no_wait, lambda text: echo(text, err=True))

    run(loaded, options, started)


@click.group()
def log() -> None:
    """Read a log file, or export its data."""


@log.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def info(file: Path, as_json: bool) -> None:
    """Show the seed, versions, topics and content hash of a log."""
    from wavesim_sdk.log import read

    found = read(file)
    data: dict[str, Any] = {
        "file": str(file),
        "complete": found.complete,
        "duration_s": found.end_ns * 1e-9,
        "messages": found.messages,
        "content_hash": found.content_hash,
        **{k: v for k, v in found.metadata.items() if k not in ("configuration", "versions", "labels")},
        "versions": json.loads(found.metadata.get("versions", "{}")),
        "topics": {t: len(s.records) for t, s in sorted(found.series.items())}
        | {t: len(v) for t, v in found.json.items()},
    }
    for key, value in data.items() if not as_json else ():
        if isinstance(value, dict):
            echo(f"{key}:")
            for k, v in value.items():
                echo(f"  {k:34} {v}")
        else:
            echo(f"{key:20} {value}")
    if as_json:
        echo(json.dumps(data, indent=2))
    whole(found)


@log.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--csv", "folder", type=click.Path(path_type=Path), help="Write one CSV file per topic to this folder.")
@click.option("--parquet", type=click.Path(path_type=Path), help="Write one Parquet file per table to this folder.")
@click.option(
    "--netcdf", type=click.Path(path_type=Path), help="Write one NetCDF file (CF 1.8) per table to this folder."
)
@click.option(
    "--tum",
    type=click.Path(path_type=Path),
    help="Write the true track of each body to this folder, as one TUM file per body.",
)
@click.option(
    "--rosbag",
    "bag",
    type=click.Path(path_type=Path),
    help="Write a ROS 2 bag with Odometry, Imu, NavSatFix ... messages to this folder.",
)
@click.option("--dataset", type=click.Path(path_type=Path), help="Add the log to this data set as one mission.")
@click.option(
    "--xtf",
    "side_scan",
    type=click.Path(path_type=Path),
    help="Write the frames of a side-scan sonar to this XTF file.",
)
@click.option(
    "--kmall",
    "soundings",
    type=click.Path(path_type=Path),
    help="Write the frames of a multibeam echosounder to this KMALL file.",
)
@click.option(
    "--ros", "ros", type=click.Path(path_type=Path), help="Write sonar frames as ROS 2 messages to this MCAP file."
)
@click.option(
    "--coco",
    type=click.Path(path_type=Path),
    help="Add the frames of sonars and cameras to this data set: PNG pictures, and masks in COCO format.",
)
@click.option(
    "--png",
    type=click.Path(path_type=Path),
    help="Add the frames and their labels to the data set in this folder, as PNG images.",
)
@click.option(
    "--numpy",
    "arrays",
    type=click.Path(path_type=Path),
    help="Add the frames and their labels to the data set in this folder, as one NPZ file per frame.",
)
@click.option("--vehicle", default="", help="Vehicle that carries the sonar; required if several vehicles have one.")
@click.option("--sonar", default="", help="Name of the sonar or camera; required if the vehicle has several.")
def export(
    file: Path,
    folder: Path | None,
    parquet: Path | None,
    netcdf: Path | None,
    tum: Path | None,
    bag: Path | None,
    dataset: Path | None,
    side_scan: Path | None,
    soundings: Path | None,
    ros: Path | None,
    coco: Path | None,
    png: Path | None,
    arrays: Path | None,
    vehicle: str,
    sonar: str,
) -> None:
    """Export tables, or frames of sonars and cameras, from a log.

    The options --coco, --png and --numpy export the frames of all sonars and cameras, unless --vehicle or --sonar
    selects some of them. All frames of a log belong to the same split of the data set: training, validation or test.
    """
    from wavesim_devices.sonar_formats import kmall, xtf
    from wavesim_sdk.log import read
    from wavesim_server import frame_datasets
    from wavesim_server.logbook import datasets, sonar_rosbag
    from wavesim_server.logbook import navigation_rosbag as rosbags
    from wavesim_server.logbook.export import write_csv, write_frames

    writers = (
        (folder, write_csv),
        (parquet, datasets.write_parquet),
        (netcdf, datasets.write_netcdf),
        (tum, datasets.write_tum),
        (bag, rosbags.write_rosbag),
    )
    labelled = {"coco": coco, "png": png, "numpy": arrays}
    of_frames = (side_scan, soundings, ros, *labelled.values())
    if all(out is None for out in (folder, parquet, netcdf, tum, bag, dataset, *of_frames)):
        raise click.UsageError(
            "select at least one output: --csv, --parquet, --netcdf, --tum, --rosbag, --dataset, --xtf, --kmall, --ros, --coco, --png or --numpy"
        )
    if all(out is None for out in of_frames):
        unused("without --xtf, --kmall, --ros, --coco, --png or --numpy", "vehicle", "sonar")
    log = file if all(out is None for out in (dataset, *(out for out, _ in writers))) else read(file)
    for out, write in writers:
        for name, rows in write(log, out) if out is not None else ():
            echo(f"{name:44} {rows} rows")
    if dataset is not None:
        mission, split = datasets.add_mission(log, dataset)
        echo(f"{dataset}: mission {mission}, split {split}")
    for out, format_, kind in ((side_scan, xtf, "sidescan"), (soundings, kmall, "bathymetry")):
        if out is not None:
            echo(f"{out}: {write_frames(file, out, format_, kind, vehicle, sonar)} pings")
    if ros is not None:
        echo(f"{ros}: {sonar_rosbag.write_sonar_messages(file, ros, vehicle, sonar)} messages")
    for kind, out in labelled.items():
        if out is not None:
            count, split = frame_datasets.add_log(file, out, kind, vehicle, sonar)
            echo(f"{out}: {count} {'frames' if kind == 'numpy' else 'pictures'}, split {split}")
    whole(read(log))


@log.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("vehicle")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--sensor", default="", help="Name of the CTD; required if the vehicle has several.")
def ctd(file: Path, vehicle: str, out: Path, sensor: str) -> None:
    """Write the CTD data of VEHICLE as a Sea-Bird file (.cnv)."""
    from wavesim_sdk.log import read
    from wavesim_server.logbook.export import write_cnv

    log = read(file)
    echo(f"{out}: {write_cnv(log, vehicle, out, sensor)} samples")
    whole(log)


@log.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def report(file: Path, as_json: bool) -> None:
    """Print a table of distances, signals and navigation errors."""
    from wavesim_sdk.log import read
    from wavesim_server.logbook import report as reports

    found = read(file)
    table = reports.trial_table(found)
    echo(reports.table_json(table) if as_json else reports.table_text(table))
    whole(found)


@log.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@click.option(
    "--picture", type=click.Path(path_type=Path), help="Write a space-time diagram to this file (.svg, .png or .pdf)."
)
@click.option("--since", type=Quantity("time", low=0.0), help="With --picture: begin of the diagram, in s.")
@click.option("--until", type=Quantity("time", low=0.0), help="With --picture: end of the diagram, in s.")
@click.option("--node", default="", help="With --picture: draw the signals to and from this body only.")
@click.option("--addressed", is_flag=True, help="With --picture: omit nodes to which a signal is not addressed.")
def network(
    file: Path,
    as_json: bool,
    picture: Path | None,
    since: float | None,
    until: float | None,
    node: str,
    addressed: bool,
) -> None:
    """Print the load, losses, delays and fairness of packets."""
    from wavesim_sdk.extras import check_installed
    from wavesim_sdk.log import read
    from wavesim_sdk.output_files import check_writable
    from wavesim_sdk.terminal_text import finite_json
    from wavesim_server.logbook import network_report, signal_diagram

    if picture is None:
        unused("without --picture", "since", "until", "node", "addressed")
    else:
        check_installed("matplotlib")
        signal_diagram.check_format(picture)
        check_writable(picture)
    found = read(file)
    if picture is not None:
        selection = signal_diagram.DiagramSelection(since, until, node, addressed)
        signal_diagram.draw_diagram(found, picture, selection)
    table = network_report.report_of_log(found)
    echo(finite_json(table, 2) if as_json else network_report.report_text(table))
    whole(found)


@click.command()
@config_argument
@files_option
@click.option("--demo", is_flag=True, help="Run the demonstration, which needs no configuration file.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Write the log, table and plots to this folder.",
)
@click.option("--realtime", is_flag=True, help="Run in real time instead of as fast as possible.")
@click.option(
    "--duration",
    type=Quantity("time", low=0.1),
    help="End after this many simulated seconds; default: from the configuration.",
)
@name_option
@port_option
@seed_option
@click.option("--no-plots", is_flag=True, help="Do not draw plots.")
@click.option("--quiet", is_flag=True, help="Do not show a progress bar.")
@click.option("--in-process", is_flag=True, help="Run everything in one process, without a network.")
@click.option("--keep-going", is_flag=True, help="If a program exits with an error, continue the trial without it.")
@click.option("--pdb", "debug", is_flag=True, help="Open the debugger when a program fails (with --in-process).")
def trial(
    config: Path,
    demo: bool,
    out: Path,
    realtime: bool,
    duration: float | None,
    name: str | None,
    port: int | None,
    seed: int | None,
    no_plots: bool,
    quiet: bool,
    in_process: bool,
    keep_going: bool,
    debug: bool,
) -> None:
    """Run a complete trial and report the results. The command starts the server, the emulators and the on-board programs, then writes the table of results and the plots."""
    from wavesim_server.in_process.trial import InProcessTrial
    from wavesim_server.trial import Trial
    from wavesim_world.templates import CONFIG, write_template

    if debug and not in_process:
        raise click.UsageError("--pdb needs --in-process: the debugger works only for programs in this process")
    if demo:
        unused("with --demo", "config")
        folder = click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="wavesim-"))
        write_template("demo", Path(folder))
        config = Path(folder) / CONFIG
    loaded = _load_and_compile(config)
    kind = InProcessTrial if in_process else Trial
    trial = kind(loaded, out, realtime=realtime, duration=duration, name=name, port=port, seed=seed, quiet=quiet)
    trial.keep_going = keep_going
    if isinstance(trial, InProcessTrial):
        trial.debug = debug
    echo(trial.run(plots=not no_plots))
    trial.check()


@click.command("compile")
def compile_() -> None:
    """Compile the kernels in advance. Other commands compile them automatically when needed."""
    compiling.ensure_compiled(hydrophones=True)


def commands() -> list[click.Command]:
    return [serve, trial, log, vehicles, replay_actuators, acoustics, compile_]
