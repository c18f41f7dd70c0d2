"""Commands in the `wavesim device` group for a device written by a user, and for the replay of a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wavesim_devices.cli_devices import at_body, device, sensor_option
from wavesim_devices.cli_traffic import PLACES, where
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.terminal_text import echo

if TYPE_CHECKING:
    from wavesim_devices.ports import OpenPort
    from wavesim_devices.serve import DeviceOptions

at_option = click.option(
    "--at",
    "places",
    multiple=True,
    metavar="[PORT=]WHERE",
    help=f"Path or address of a port. WHERE is {PLACES}. Repeatable.",
)


def _open_ports(default: Mapping[str, str], places: tuple[str, ...]) -> dict[str, OpenPort]:
    """Return the functions that open the ports, either at their default locations or at the locations given with
    ``--at``."""
    chosen = dict(default)
    for text in places:
        port, equals, place = text.rpartition("=")
        if not equals:
            if len(chosen) != 1:
                raise click.UsageError(f"--at {text}: specify the port: {', '.join(f'{p}=WHERE' for p in chosen)}")
            port = next(iter(chosen))
        if port not in chosen:
            raise click.UsageError(f"--at {text}: there is no port '{port}': use {', '.join(chosen)}")
        chosen[port] = place
    return {port: where(place) for port, place in chosen.items()}


@device.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@at_body
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="Option for the device. Repeatable.")
@at_option
@sensor_option
def run(place: DeviceOptions, file: Path, options: tuple[str, ...], places: tuple[str, ...]) -> None:
    """Serve your own device, a class in FILE, on body NAME.

    FILE is a Python file with one class that has the methods `step` and `receive` (or `connect`). The keyword-only
    arguments of the class are its options. Without --at, the class determines where its ports open; by default, it
    opens one pseudo-terminal.
    """
    import asyncio

    from wavesim_devices.own_device import OwnDevice
    from wavesim_devices.serve import serve_devices

    own = OwnDevice(file)
    place = replace(place, device=file.stem)
    asyncio.run(serve_devices(place, (own.device_type(options), _open_ports(own.ports, places))))


@device.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@at_option
@click.option(
    "--speed",
    type=Quantity(low=0.0),
    default=1.0,
    show_default=True,
    help="Playback speed: ratio of recorded time to wall time; 0 = no pauses.",
)
@click.option(
    "--patience",
    type=Quantity("time", low=0.0),
    default=2.0,
    show_default=True,
    help="Wall time in s for which the replay waits for the driver to send the recorded commands.",
)
def replay(file: Path, places: tuple[str, ...], speed: float, patience: float) -> None:
    """Replay the recording of a device to a driver.

    FILE was written by `--record`. The replay opens the same ports without a server, begins when the driver connects
    or sends data, and follows the recorded times. It waits for the driver's commands and compares them with the
    recording. The exit code is 5 if they differ.
    """
    import asyncio

    from wavesim_devices.replay import Replay
    from wavesim_devices.traffic import read_recording
    from wavesim_sdk.errors import BrokerError

    async def play() -> dict[tuple[str, int], str]:
        return await Replay(recording, _open_ports(recording.ports, places), speed, patience, click.echo).run()

    recording = read_recording(file)
    differences = asyncio.run(play())
    for (port, host), difference in differences.items():
        echo(f"host {host} of {port}: {difference or 'as recorded'}")
    broken = sum(bool(d) for d in differences.values())
    if broken:
        raise BrokerError(f"{broken} of {len(differences)} hosts differ from the recording")
