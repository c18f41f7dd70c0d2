"""The ``acoustics`` command: the sound paths between two points, as a table, an image, CSV or JSON."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wavesim_sdk import units
from wavesim_sdk.cli import json_option
from wavesim_sdk.cli_commands import unused
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import ConfigError, InvalidArgument, UnknownName, WaveSimError
from wavesim_sdk.names import shorten, suggest_name
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.terminal_text import echo
from wavesim_server import compiling
from wavesim_world.cli_options import files_option

if TYPE_CHECKING:
    from wavesim_sdk.arrays import Floats
    from wavesim_server.acoustics.propagation_model import PropagationModel
    from wavesim_world.config import LoadedConfig, TransducerConfig


class AcousticShadow(WaveSimError):
    """Raised if no free path leads from the source to the receiver."""

    exit_code = 20


class EndPoint(NamedTuple):
    """One end of the paths: its name, its position, and its transducer if it is a body that has one."""

    name: str
    position: Floats
    transducer: TransducerConfig | None

    def __str__(self) -> str:
        n, e, d = (f"{v:.2f}".rstrip("0").rstrip(".") for v in self.position.tolist())
        place = f"north {n} m, east {e} m, depth {d} m"
        return f"{self.name} ({place})" if self.name else place


def find_end_point(loaded: LoadedConfig, text: str, option: str) -> EndPoint:
    """Return the body with the name ``text``, or the position if ``text`` has the form `north,east,depth`. Raises
    UnknownName if it is neither, and InvalidArgument if a coordinate is invalid.
    """
    import numpy as np

    from wavesim_sdk import frames
    from wavesim_sdk.algebra import matvec

    bodies = {b.name: b for b in loaded.config.fleet.bodies}
    if text in bodies:
        body = bodies[text]
        transducer = loaded.transducer(body)
        offset = np.array(transducer.position if transducer is not None else (0.0, 0.0, 0.0))
        position = np.array(body.position) + matvec(frames.rotation(frames.quaternion(*body.attitude)), offset)
        return EndPoint(text, position, transducer)
    words = text.split(",")
    if len(words) != 3:
        known = suggest_name(text, bodies) or "; the configuration has no bodies"
        known += "" if known.endswith("?") else "."
        raise UnknownName(f"{option}: unknown body '{shorten(text)}'{known} A position has the form north,east,depth")
    numbers = []
    for name, word in zip(("north", "east", "depth"), words, strict=True):
        try:
            numbers.append(float(word))
        except ValueError:
            try:
                numbers.append(units.parse(word, "length")[0])
            except ValueError as error:
                raise InvalidArgument(f"{option}: invalid {name}: {error}") from None
    return EndPoint("", np.array(numbers), None)


def carrier_of(*ends: EndPoint) -> float | None:
    """Return the carrier in Hz of the first end with a transducer: the frequency of its modem, pinger, replies or
    queries, or the centre frequency of its receiving band.
    """
    for t in (end.transducer for end in ends):
        if t is not None:
            own = (t.modem.frequency if t.modem else 0.0, t.pinger.frequency if t.pinger else 0.0, t.reply, t.query)
            return next((f for f in own if f > 0.0), 0.5 * (t.listen_low + t.listen_high))
    return None


def table_text(table: Any) -> str:
    """Return the arrivals as a table that is less than 100 characters wide."""
    from wavesim_server.acoustics.propagation_model import first_free_path

    first = first_free_path(table)
    names = ("time", "length", "error", "loss", "spread", "absorb", "surface", "bottom", "launch", "arrival", *"SBTC")
    unit_names = ("s", "m", "m", *["dB"] * 5, "deg", "deg", "", "", "", "")
    widths = (11, 11, 9, 7, 7, 7, 8, 7, 8, 8, 3, 3, 3, 3)
    lines = [
        "  " + "".join(f"{word:>{w}}" for word, w in zip(row, widths, strict=True)).rstrip()
        for row in (names, unit_names)
    ]
    for k, row in enumerate(table):
        mark = "*" if k == first else " "
        mark += "x" if row["blocked_by"] else " " if row["followed"] else "-"
        columns = ("loss", "spreading", "absorption", "surface_loss", "bottom_loss")
        words = [f"{row['time']:.6f}", f"{row['length']:.2f}", f"{row['straight_line_error']:.2f}"]
        words += [f"{row[name]:.1f}" for name in columns]
        words += [f"{math.degrees(row[f'{end}_elevation']):.2f}" for end in ("launch", "arrival")]
        words += [str(row[name]) for name in ("surface", "bottom", "turning_points", "caustics")]
        lines.append(mark + "".join(f"{word:>{w}}" for word, w in zip(words, widths, strict=True)))
    return "\n".join(lines)


def notes_text(table: Any) -> str:
    """Return the legend for the marks and columns of the arrival table."""
    lines = [
        f"{'* first path that is free. ' if (table['blocked_by'] == '').any() else ''}Angles are downwards from the horizontal.",
        "S, B: bounces off the surface and the bottom; T: turning points; C: caustics.",
    ]
    for name in sorted({str(n) for n in table["blocked_by"] if n}):
        count = int((table["blocked_by"] == name).sum())
        lines.append(f"x blocked by {name}: {count} path{'s' if count > 1 else ''}")
    if not (table["followed"] | (table["blocked_by"] != "")).all():
        lines.append("- ignored by a simulation (see `order` of <multipath> and `paths` of <acoustics>)")
    return "\n".join(lines)


def first_path_text(model: PropagationModel, table: Any, distance: float) -> str:
    """Return the range error of instruments that use the first free path and assume a straight line."""
    from wavesim_server.acoustics.propagation_model import first_free_path

    k, c = first_free_path(table), model.acoustics.sound_speed
    if k is None:
        return "All paths are blocked, so an instrument measures no range."
    first = table[k]
    return (
        f"The first {'free ' if k else ''}path takes {first['time']:.9f} s. An instrument that assumes {c:g} m/s measures "
        f"{c * first['time']:.3f} m;\nthe straight-line error is {first['straight_line_error']:+.3f} m."
    )


@click.command()
@click.argument("config", type=click.Path(path_type=Path), default="config.xml")
@files_option
@click.option("--from", "source", metavar="A", help="Source: a body in the configuration, or north,east,depth in m.")
@click.option("--to", "receiver", metavar="B", help="Receiver: a body in the configuration, or north,east,depth in m.")
@click.option(
    "--frequency",
    type=Quantity("frequency", low=1.0, high=1e6),
    help="Carrier frequency; default: the carrier of A's or B's transducer, otherwise 25 kHz.",
)
@click.option(
    "--time",
    "time_s",
    type=Quantity("time", low=0.0),
    default=0.0,
    help="Time of the emission since the start; default: 0.",
)
@click.option(
    "--png",
    type=click.Path(path_type=Path),
    help="Write a plot of the rays over the sound speed to this image file; with --loss, also plot the loss.",
)
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write the arrivals to this CSV file.")
@json_option
@click.option(
    "--loss",
    type=click.Choice(["vertical", "horizontal"]),
    help="Also compute the transmission loss in the vertical plane through A and B, or in the horizontal plane at the depth "
    "of B; needs --png.",
)
@click.option(
    "--range",
    "reach",
    type=Quantity("length", low=1.0, high=1e6),
    help="Extent of the plane from A; default: slightly beyond B.",
)
@click.option("--depth", type=Quantity("length", low=0.0), help="Depth of a horizontal plane; default: the depth of B.")
@click.option(
    "--coherent",
    is_flag=True,
    help="Sum all paths in the plane coherently (complex pressures) instead of incoherently (powers).",
)
@click.option(
    "--serve", "serving", is_flag=True, help="Answer JSON requests from standard input, one per line, for the viewer."
)
def acoustics(
    config: Path,
    source: str | None,
    receiver: str | None,
    frequency: float | None,
    time_s: float,
    png: Path | None,
    csv_file: Path | None,
    as_json: bool,
    loss: str | None,
    reach: float | None,
    depth: float | None,
    coherent: bool,
    serving: bool,
) -> None:
    """Compute the sound paths between two points.

    The command does not run a simulation. It prints all arrivals, with travel times, losses and angles, and the range
    error of an instrument that assumes a straight line. Beam patterns are not included. Bodies are at their initial
    positions. The exit code is 20 if no path leads from A to B, or if all paths are blocked.

    \b
    wavesim acoustics config.xml --from auv1 --to buoy2
    wavesim acoustics config.xml --from 0,0,20 --to 1500,200,60 --png rays.png
    wavesim acoustics config.xml --from auv1 --to 5000,0,50 --loss vertical --png loss.png
    """
    if serving:
        _serve()
        return
    if source is None or receiver is None:
        raise click.UsageError("both --from and --to are required")
    _check_options(loss, png)
    from wavesim_sdk.extras import check_installed
    from wavesim_world import data_files
    from wavesim_world.config import load

    for path in filter(None, (png, csv_file)):
        check_writable(path)
    if png is not None:
        check_installed("matplotlib")
    loaded = load(config)
    data_files.check(loaded)
    a, b = find_end_point(loaded, source, "--from"), find_end_point(loaded, receiver, "--to")
    from wavesim_server.acoustics.propagation_model import DEFAULT_FREQUENCY, PropagationModel

    model = PropagationModel(loaded)
    carrier = frequency or carrier_of(a, b) or DEFAULT_FREQUENCY
    ends = (a.position, b.position)
    for end, option in ((a, "--from"), (b, "--to")):
        model.check_position(end.position, f"{option} {end.name}".rstrip())
    from wavesim_sdk.algebra import norm
    from wavesim_server.acoustics import propagation_pictures
    from wavesim_world.ocean.sound_warnings import NodePlace

    view = propagation_pictures.View(*ends, time_s, carrier, loss, reach, depth, coherent)
    if png is not None:
        propagation_pictures.check(model, view, png)
    places = [NodePlace(end.name or option, end.position) for end, option in ((a, "--from"), (b, "--to"))]
    for note in model.notes(places, time_s):
        echo(f"note: {note}", err=True)
    with compiling.compiled_on_first_use("sound-paths", "sound paths"):
        table = model.arrivals(*ends, time_s, carrier)
    distance = float(norm(ends[1] - ends[0]))
    if as_json:
        _print_json(a, b, time_s, carrier, distance, table)
    elif len(table):
        echo(f"from {a}\nto   {b}")
        echo(f"{distance:.3f} m apart; {carrier:g} Hz; emission at {time_s:g} s; profile {model.acoustics.profile}\n")
        echo(f"{table_text(table)}\n\n{notes_text(table)}\n{first_path_text(model, table, distance)}")
    if csv_file is not None:
        _write_csv(csv_file, table)
        echo(f"wrote {csv_file}", err=True)
    if png is not None:
        if loss is None:
            propagation_pictures.draw(model, view, png)
        else:
            with compiling.compiled_on_first_use("sound-planes", "transmission loss"):
                propagation_pictures.draw(model, view, png)
        echo(f"wrote {png}", err=True)
    _check_free_path(a, b, table)


def _check_options(loss: str | None, png: Path | None) -> None:
    """Raise UsageError for a combination of options in which one of them has no effect."""
    if loss is None:
        unused("without --loss", "reach", "depth", "coherent")
    elif png is None:
        raise click.UsageError("--loss requires --png")
    if loss == "vertical":
        unused("with --loss vertical", "depth")


def _check_free_path(a: EndPoint, b: EndPoint, table: Any) -> None:
    """Raise AcousticShadow if no path is free."""
    from wavesim_server.acoustics.propagation_model import first_free_path

    if not len(table):
        raise AcousticShadow(f"acoustic shadow: no path leads from {a} to {b}")
    if first_free_path(table) is None:
        names = ", ".join(sorted(set(table["blocked_by"].tolist())))
        raise AcousticShadow(f"all paths from {a} to {b} are blocked by {names}")


def _serve() -> None:
    """Answer requests from standard input until it ends."""
    from wavesim_server.acoustics_worker import serve

    unused("with --serve", "config", "source", "receiver", "frequency", "time_s", "png", "csv_file", "as_json", "loss")
    unused("with --serve", "reach", "depth", "coherent")

    def write(answer: str) -> None:
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()

    if sys.stdin is not None:  # None if the program was started with a closed input
        serve(sys.stdin.buffer, write)  # bytes, because a line may not be valid UTF-8


def _print_json(a: EndPoint, b: EndPoint, time_s: float, carrier: float, distance: float, table: Any) -> None:
    from wavesim_server.acoustics_worker import arrival_rows

    found = {
        "from": a.position.tolist(),
        "to": b.position.tolist(),
        "time": time_s,
        "frequency": carrier,
        "distance": round(distance, 4),
        "arrivals": arrival_rows(table),
    }
    echo(json.dumps(found, indent=2))


def _write_csv(path: Path, table: Any) -> None:
    from wavesim_server.acoustics_worker import arrival_rows

    try:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, table.dtype.names)
            writer.writeheader()
            writer.writerows(arrival_rows(table))
    except OSError as error:
        raise ConfigError(f"cannot write the file: {error.strerror}", str(path)) from None
