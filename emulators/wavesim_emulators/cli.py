"""``wavesim emulate``: start one emulator."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import click

from wavesim_sdk.cli import server_option
from wavesim_sdk.config import load
from wavesim_sdk.config.load import nearest
from wavesim_sdk.errors import AttachError


@click.command()
@click.argument("sensor")
@click.argument("config", type=click.Path(path_type=Path), default="config.xml")
@server_option
@click.option("--free", is_flag=True, help="At its own pace in wall time; the engine never waits for it.")
def emulate(sensor: str, config: Path, server: str, free: bool) -> None:
    """Write the values of SENSOR (ctd, echosounder, ahrs, speedlog, or one of your own package's).

    The emulator can be stopped and replaced at any time. CONFIG is the file the server runs.
    """
    known = {e.name: e for e in entry_points(group="wavesim.emulators")}
    if sensor not in known:
        raise AttachError(f"there is no emulator '{sensor}'{nearest(sensor, sorted(known))}")
    emulator = known[sensor].load()(load(config))
    click.echo(f"emulator {sensor}: {emulator.run(server, free)} values written", err=True)


def commands() -> list[click.Command]:
    return [emulate]
