"""Commands ``wavesim check`` (checks a configuration), ``modems`` (lists modem presets), ``new`` (writes a new
configuration) and ``stubs`` (writes the bodies of a configuration as Python types).
"""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.cli_commands import unused
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.terminal_text import echo
from wavesim_world.cli_drive import drive
from wavesim_world.cli_options import files_option
from wavesim_world.templates import CONFIG, TEMPLATES, write_template


@click.command()
@click.argument("config", type=click.Path(path_type=Path), default="config.xml")
@click.option("--schema", is_flag=True, help="Print the XML schema for editors instead of reading CONFIG.")
@files_option
@json_option
def check(config: Path, schema: bool, as_json: bool) -> None:
    """Check a configuration, and report errors or contents."""
    from wavesim_world import data_files
    from wavesim_world.config import export, instrument_checks, load
    from wavesim_world.ocean.sound_warnings import sound_warnings

    if schema:
        unused("with --schema", "config", "as_json")
        echo(export.xsd().decode(), nl=False)
        return
    loaded = load(config)
    data_files.check(loaded)
    for entry in entry_points(
        group="wavesim.checks"
    ):  # checks of installed packages, which refuse what they cannot run
        entry.load()(loaded)
    bodies = loaded.config.fleet.bodies
    warnings = [*loaded.notices, *instrument_checks.drowned(loaded), *sound_warnings(loaded)]
    for text in warnings:
        echo(f"wavesim: {config}: {text}", err=True)
    if as_json:
        entries = [
            {"name": b.name, "model": b.model, "client": b.client, "sensors": [i.as_dict for i in loaded.suite(b)]}
            for b in bodies
        ]
        echo(
            json.dumps(
                {"name": loaded.config.name, "digest": loaded.digest, "bodies": entries, "warnings": warnings}, indent=2
            )
        )
        return
    echo(f"{config} is valid: server '{loaded.config.name}', bodies: {len(bodies)}, digest {loaded.digest[:12]}")
    for b in bodies:
        carried = ", ".join(map(str, loaded.suite(b))) or "none"
        echo(f"  {b.name:16} {b.model:12} client {b.client:9} sensors: {carried}")


@click.command()
@click.argument("names", nargs=-1)
@json_option
def modems(names: tuple[str, ...], as_json: bool) -> None:
    """List or describe modem presets.

    With NAMES, the command describes these presets: each value and its
    source. Without NAMES, it lists all presets and all modem curves. Use
    a preset in a configuration as <transducer preset="NAME">, and a curve
    as <modem curve="NAME">.
    """
    import dataclasses

    from wavesim_world import modem_curves, modem_presets

    chosen = [modem_presets.find_preset(n) for n in names] or list(modem_presets.PRESETS.values())
    if as_json:
        echo(json.dumps([dataclasses.asdict(p) for p in chosen], indent=2))
    elif names:
        echo("\n\n".join(modem_presets.describe_preset(p) for p in chosen))
    else:
        echo(modem_presets.list_presets())
        echo(f"\n{modem_curves.list_curves()}")
        echo("\n`wavesim modems NAME` describes one preset and marks values that are assumed.")


@click.command()
@click.argument("config", type=click.Path(path_type=Path), default="config.xml")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Python file to write [default: print it]")
def stubs(config: Path, out: Path | None) -> None:
    """Write the bodies in a configuration as Python types.

    With this file, editors complete the names of sensors and actuators, and type checkers report misspelt names. Import
    the class of a body from it.
    """
    from wavesim_world.config import load
    from wavesim_world.stubs import module_text

    text = module_text(load(config))
    if out is None:
        echo(text, nl=False)
        return
    try:
        out.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot write the file: {error.strerror}", str(out)) from None
    echo(f"wrote {out}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="demo",
    show_default=True,
    help="; ".join(f"{name}: {t.title}" for name, t in TEMPLATES.items()) + ".",
)
def new(folder: Path, template: str) -> None:
    """Write a configuration and its programs from a template.

    FOLDER receives config.xml and the on-board programs of a template; default: the current folder. Existing files are
    never overwritten. `wavesim trial` runs the result.
    """
    for path in write_template(template, folder):
        echo(path)
    if extra := TEMPLATES[template].extra:
        echo(f"this template needs the extra '{extra}': pip install 'wavesim[{extra}]'", err=True)
    at = f"{folder}/{CONFIG}" if folder != Path() else ""
    echo(f"run it with: wavesim trial {at}".rstrip(), err=True)


def commands() -> list[click.Command]:
    """Return the commands that this package adds to ``wavesim``."""
    return [check, drive, modems, new, stubs]
