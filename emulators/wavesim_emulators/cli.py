"""Command ``wavesim emulate``: start one emulator, or start and supervise several."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

import click

from wavesim_sdk.cli import json_option, server_option
from wavesim_sdk.errors import UnknownPart
from wavesim_sdk.names import suggest_name
from wavesim_sdk.terminal_text import echo
from wavesim_world.cli_options import files_option


@click.command()
@click.argument("sensors", nargs=-1, required=True)
@server_option
@files_option
@click.option(
    "--free",
    is_flag=True,
    help="Run the emulators at their own pace in wall-clock time; the engine never waits for them.",
)
def emulate(sensors: tuple[str, ...], server: str, free: bool) -> None:
    """Emulate sensors for a running server.

    SENSORS are sensor types (ctd, gps, ...), or `all` for every type in the configuration. The last argument may be the
    configuration that the server uses; default: config.xml. A single emulator runs in this process. Several emulators
    run in separate processes and are restarted when they fail. Each can be stopped and replaced at any time.

    With --server HOST:PORT, the emulators join a server on another machine over the network. They need a copy of that
    server's configuration file. If the server requires keys, set WAVESIM_KEYS to the path of the emulators' key file.
    """
    named = sensors[-1].endswith(".xml") or Path(sensors[-1]).is_file()
    *names, config = sensors if named else (*sensors, "config.xml")
    if not names:
        raise click.UsageError("name at least one sensor, or `all`")
    from wavesim_emulators.manager import EmulatorManager
    from wavesim_emulators.process import EmulatorProcess
    from wavesim_world.config import load

    known = {e.name: e for e in entry_points(group="wavesim.emulators")}

    def checked(types: Iterable[str]) -> list[str]:
        for sensor in (found := list(dict.fromkeys(types))):
            if sensor not in known:
                raise UnknownPart(f"unknown emulator '{sensor}'{suggest_name(sensor, sorted(known))}")
        return found

    requested = (
        [] if names == ["all"] else checked(n.replace("-", "_") for n in names)
    )  # before the configuration is read
    there = (loaded := load(Path(config))).sensor_rows
    types = requested or checked(there)  # one of its sensors may belong to a package that is not installed
    if not types:
        raise UnknownPart(f"{config} has no sensors; add them under <sensors>")
    for sensor in types:
        if sensor not in there:
            raise UnknownPart(f"no body in {config} has a sensor of type '{sensor}'{suggest_name(sensor, there)}")
    kinds = {s: known[s].load() for s in types}
    if len(types) > 1:
        for kind in kinds.values():
            kind.load_kernels()  # once, for all emulators, which are forks of this process
        EmulatorManager(types, config, server, free, lambda text: echo(text, err=True)).run()
        return
    process = EmulatorProcess(kinds[types[0]](loaded), server, free)
    written = process.run(lambda: echo(f"emulator {types[0]} serves '{server}'", err=True))
    echo(f"emulator {types[0]}: {written} values written", err=True)


@click.command()
@click.argument("names", nargs=-1)
@json_option
def sonars(names: tuple[str, ...], as_json: bool) -> None:
    """List or describe imaging sonar presets.

    With NAMES, the command describes these presets: the type of the
    sonar, its parameters and their sources. Without NAMES, it lists
    all presets.
    """
    import dataclasses
    import json

    from wavesim_world.sonars import presets

    chosen = [presets.find_preset(n) for n in names] or list(presets.PRESETS.values())
    if as_json:
        echo(json.dumps([dataclasses.asdict(p) for p in chosen], indent=2))
    elif names:
        echo("\n\n".join(presets.describe_preset(p) for p in chosen))
    else:
        echo(presets.list_presets())
        echo(
            "\n`wavesim sonars NAME` describes one preset and marks values that are assumed or for which no source is known."
        )


def commands() -> list[click.Command]:
    return [emulate, sonars]
