"""The ``vehicles`` and ``replay-actuators`` commands."""

from __future__ import annotations

import csv
import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.terminal_text import echo

if TYPE_CHECKING:
    from wavesim_world.config import Model


def find_model(name: str, models: Path | None = None) -> Model:
    """Find a model in the library or in a models file."""
    from wavesim_world.config import library

    offered = dict(library())
    if models is not None:
        offered |= _load_models(models)
    if name not in offered:
        raise ConfigError(f"no model named '{name}'{suggest_name(name, offered)}")
    return offered[name]


def _load_models(path: Path) -> dict[str, Model]:
    """Read and check the models in a file whose root is <models> or <wavesim>."""
    from wavesim_world.config.build import read_models
    from wavesim_world.config.validation import check_model

    found = read_models(path)
    for model in found.values():
        check_model(model)
    return found


class _VehiclesGroup(click.Group):
    """Command group that treats ``vehicles NAME`` as ``vehicles explain NAME``, and ``vehicles`` alone as ``vehicles
    list``.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def _load(self) -> None:
        """Add the commands of other packages."""
        for entry in entry_points(group="wavesim.vehicles"):
            if entry.name not in self.commands:
                self.add_command(entry.load(), entry.name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["list", *args]
        elif self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            args = ["explain", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_VehiclesGroup)
def vehicles() -> None:
    """List, draw, estimate, import or linearise models. `vehicles` lists the library; `vehicles NAME` explains one model."""


@vehicles.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the models in the library."""
    from wavesim_world.config import library

    listed = [{"name": m.name, "type": m.type, "title": m.title} for m in library().values()]
    if as_json:
        echo(json.dumps(listed, indent=2))
        return
    width = max(len(m["name"]) for m in listed)
    for m in listed:
        echo(f"{m['name']:{width}} {m['type']:11} {m['title']}")


models_option = click.option(
    "--models",
    type=click.Path(path_type=Path),
    help="Models file or configuration file to search in addition to the library.",
)


@vehicles.command()
@click.argument("name")
@models_option
@json_option
def explain(name: str, models: Path | None, as_json: bool) -> None:
    """Show the source, validation and properties of model NAME."""
    from wavesim_server.model_properties import describe

    model = find_model(name, models)
    data = describe(model)
    if as_json:
        echo(json.dumps(data, indent=2))
        return
    data["sensors"] = model.sensors.instruments if model.sensors is not None else []
    found = data.pop("derived")
    for key, value in (data | found).items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v if v is not None else '-'}" for k, v in value.items())
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        echo(f"{key:20} {'none' if text in ('', None) else text}")


@vehicles.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="PNG or SVG file; default: NAME.png.")
@models_option
def draw(name: str, out: Path | None, models: Path | None) -> None:
    """Draw the side, top and front views of model NAME."""
    model = find_model(name, models)
    target = out or Path(f"{name}.png")
    for entry in entry_points(group="wavesim.drawings", name="vehicle"):
        entry.load()(model, target)
        echo(f"wrote {target}")
        return
    raise click.ClickException("drawing requires the wavesim-viz package")


@vehicles.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--section",
    help="Section of a DUNE .ini file, model of an SDF file, robot of a Stonefish scenario or agent of a HoloOcean "
    "scenario to import.",
)
@click.option(
    "--path",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder to search for files that an SDF, URDF or xacro file or a Stonefish scenario names. Repeatable.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Value of a key that the file does not contain. Repeatable.",
)
@click.option("--angles", type=click.Choice(["deg", "rad"]), help="Unit of those angles that have no unit in the file.")
@click.option("--partial", is_flag=True, help="Omit file entries that have no counterpart in a model.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Models file to write; default: print it to standard output."
)
def import_(
    file: Path,
    section: str | None,
    folders: tuple[Path, ...],
    settings: tuple[str, ...],
    angles: str | None,
    partial: bool,
    out: Path | None,
) -> None:
    """Convert another program's parameter files into a models file.

    FILE is a DUNE vsim-models.ini (with --section), a Panisim or Makara folder, or a hilsim, UUV Simulator or MarineGym
    YAML file. Vehicles of Gazebo and UUV Simulator are SDF, URDF or xacro files (with --path). FILE can also be a Stonefish
    scenario (.scn), a HoloOcean scenario (.json), or the source code of a vehicle of Fossen's Python Vehicle Simulator
    (.py) or the MSS toolbox (.m), which is evaluated but never run. The output of panel codes works too: a Capytaine
    NetCDF file, a HydRA JSON file, a NEMOH folder, or a
    WAMIT .1 file with its .3 or .4 and .hst files in the same folder. The command names each missing value so that you
    can add it with --set. It reports everything that it omits. For a Panisim folder, it uses the values in
    Panisim's manual for missing values and adds a note about each.
    """
    from wavesim_server.importers import read

    pairs = {}
    for item in settings:
        key, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"invalid --set {item}: use KEY=VALUE")
        pairs[key.strip()] = value
    found = read(file, section, pairs, angles, partial, folders)
    for note in found.notes:
        echo(f"note: {note}", err=True)
    if found.files and out is None:
        raise click.UsageError(f"--out is required: {', '.join(found.files)} must be written next to the models file")
    for name, content in found.files.items():
        target = (out or Path()).with_name(name)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    _write_models_file(found.xml, out)


@vehicles.command()
@click.argument("name")
@click.option("--length", type=Quantity("length"), required=True, help="Length of the hull in m.")
@click.option("--diameter", type=Quantity("length"), required=True, help="Diameter of the hull in m.")
@click.option("--mass", type=Quantity("mass"), help="Mass in kg; default: the mass of the displaced water.")
@click.option("--speed", type=Quantity("speed"), default=1.5, show_default=True, help="Design speed in m/s.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Models file to write; default: print it to standard output."
)
def estimate(name: str, length: float, diameter: float, mass: float | None, speed: float, out: Path | None) -> None:
    """Estimate model NAME for a torpedo-shaped vehicle.

    Every coefficient is an estimate from the dimensions; the file states the formulas. Use it as a first model and correct
    it with trial data.
    """
    from wavesim_server.model_estimate import models_file

    text = models_file(name, length, diameter, mass, speed)
    _write_models_file(text, out)


def _write_models_file(text: str, out: Path | None) -> None:
    """Print a models file, or write it and check that it can be read."""
    if out is None:
        echo(text, nl=False)
        return
    out.write_text(text)
    _load_models(out)
    echo(f'wrote {out}; use it with <models><include file="{out.name}"/></models>')


@click.command("replay-actuators")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--model", required=True, help="Model to simulate.")
@models_option
@click.option(
    "--map",
    "maps",
    multiple=True,
    required=True,
    metavar="ACTUATOR=COLUMN[*FACTOR]",
    help="Column that commands an actuator. ACTUATOR is its name, NAME-angle, NAME-deflector or a number; COLUMN is a name "
    "in the header or a number from 1; FACTOR is a number, deg or rpm. Repeatable.",
)
@click.option(
    "--rate",
    type=Quantity("frequency", low=1e-3),
    help="Sampling rate in Hz (lines per second); required for a file without a time column.",
)
@click.option(
    "--step", type=Quantity("time", low=1e-4, high=0.1), default=0.01, show_default=True, help="Time step in s."
)
@click.option(
    "--start",
    type=(Quantity("length"),) * 3,
    metavar="NORTH EAST DOWN",
    default=(0.0, 0.0, 0.0),
    help="Start position: north, east and down in m; default: 0 0 0.",
)
@click.option("--yaw", type=Quantity("angle", "deg"), default=0.0, help="Heading at the start in deg; default: 0.")
@click.option("--speed", type=Quantity("speed"), default=0.0, help="Surge speed at the start in m/s; default: 0.")
@click.option(
    "--push",
    type=Quantity("force"),
    default=0.0,
    help="Constant surge force in N, for a model without a propeller; default: 0.",
)
@click.option("--world", default="", help="XML content of <world>: current, wind, waves.")
@click.option("--track", type=click.Path(path_type=Path), help="CSV file with the measured track to compare with.")
@click.option(
    "--north",
    "north",
    default="north",
    show_default=True,
    help="Column with the north coordinates of the measured track.",
)
@click.option(
    "--east", "east", default="east", show_default=True, help="Column with the east coordinates of the measured track."
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the simulated track to this CSV file.")
@json_option
def replay_actuators(
    file: Path,
    model: str,
    models: Path | None,
    maps: tuple[str, ...],
    rate: float | None,
    step: float,
    start: tuple[float, float, float],
    yaw: float,
    speed: float,
    push: float,
    world: str,
    track: Path | None,
    north: str,
    east: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Replay recorded actuator commands on a model. The result can be compared with a measured track.

    FILE is a CSV file with a header, or plain columns of numbers. Each line applies until the next one.
    """
    import math

    from wavesim_server import study
    from wavesim_world.recorded_data import parse_map, read_columns

    kind = find_model(model, models)
    columns, times = read_columns(file, rate)
    commands = dict(parse_map(kind, item, columns) for item in maps)
    result = study.replay(
        kind,
        times,
        commands,
        step,
        start,
        math.radians(yaw),
        [speed, 0, 0, 0, 0, 0],
        [push, 0, 0, 0, 0, 0],
        world=world,
    )
    data: dict[str, Any] = {
        "model": kind.name,
        "seconds": round(float(result[-1, 0]), 3),
        "end": {k: round(float(v), 4) for k, v in zip(study.TRACK[1:], result[-1, 1:], strict=True)},
    }
    if track is not None:
        measured, at = read_columns(track, rate)
        for name in (north, east):
            if name not in measured:
                raise ConfigError(f"the track has no column named '{name}'{suggest_name(name, measured)}", str(track))
        data["comparison"] = study.compare(result, at, measured[north], measured[east])
    if out is not None:
        with out.open("w", newline="") as target:
            writer = csv.writer(target)
            writer.writerow(study.TRACK)
            writer.writerows([[f"{v:.9g}" for v in row] for row in result])
    if as_json:
        echo(json.dumps(data, indent=2))
        return
    for key, value in data.items():
        text = ", ".join(f"{k} {v:g}" for k, v in value.items()) if isinstance(value, dict) else value
        echo(f"{key:12} {text}")
    if out is not None:
        echo(f"wrote {out}")
