"""Commands in the `wavesim device` group: the group, the options that all devices share, and the decorators that create
a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from wavesim_devices.cli_traffic import PLACES, traffic_options, where
from wavesim_sdk.cli_commands import address_options
from wavesim_sdk.cli_numbers import Quantity

if TYPE_CHECKING:
    from wavesim_devices.serve import DeviceOptions, TrafficOptions


@click.group()
def device() -> None:
    """Serve a virtual device. Its serial port or socket answers as the real instrument does."""


def at_body(function: Any) -> Any:
    """Add the options of a command whose device belongs to body NAME. The decorated function receives them as its first
    argument.
    """

    def run(
        name: str,
        server: tuple[str, int],
        pilot: bool,
        lockstep: float,
        traffic: TrafficOptions,
        sensor: tuple[str, ...] = (),
        **own: Any,
    ) -> None:
        from wavesim_devices.serve import DeviceOptions

        command = click.get_current_context().info_name or ""
        function(DeviceOptions(name, server, command, pilot, lockstep, sensor, traffic, click.echo), **own)

    run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # its own options
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    for option in (
        click.option(
            "--lockstep",
            type=Quantity("time"),
            default=0.0,
            help="Lockstep period in s: the server waits for this device; 0 (default) = the server does not wait.",
        ),
        click.option(
            "--pilot",
            is_flag=True,
            help="Join as the pilot, so that no other program can drive the body. The body enters the simulation when "
            "this command starts, and leaves it when the command exits.",
        ),
        traffic_options,
        address_options,
        click.argument("name"),
    ):
        run = option(run)
    return run


sensor_option = click.option(
    "--sensor",
    multiple=True,
    help="Name of the sensor to read; required if the body has several of one type. Repeatable.",
)


def device_command(meaning: str, *more: Any, talks: bool = False, modem: bool = False) -> Any:
    """Create a command that serves a device of body NAME. The decorated function returns the device type."""

    def make(function: Any) -> click.Command:
        def run(place: DeviceOptions, tcp: int | None, udp: int | None, link: str, **own: Any) -> None:
            import asyncio

            from wavesim_devices import ports
            from wavesim_devices.serve import serve_devices

            if sum((tcp is not None, udp is not None, bool(link))) > 1:
                raise click.UsageError("use only one of --tcp, --udp and --link")

            def open_port(accept: ports.Accept) -> ports.Port:
                if udp is not None:
                    return ports.UdpPort(accept, udp) if talks else ports.UdpServerPort(accept, udp)
                return ports.PtyPort(accept, link) if tcp is None else ports.TcpPort(accept, tcp)

            asyncio.run(serve_devices(place, (function(**own), {"port": open_port})))

        for option in (
            click.option("--link", default="", help="Create this symbolic link to the pseudo-terminal."),
            click.option(
                "--udp",
                type=click.IntRange(1 if talks else 0, 65535),
                help="Send datagrams to this UDP port on loopback instead of opening a pseudo-terminal."
                if talks
                else "Listen on this UDP port on loopback (0 = any free port) instead of opening a pseudo-terminal.",
            ),
            click.option(
                "--tcp",
                type=click.IntRange(0, 65535),
                help="Listen on this TCP port on loopback (0 = any free port) instead of opening a pseudo-terminal.",
            ),
            *(() if modem else (sensor_option,)),
            *reversed(more),
        ):
            run = option(run)
        return device.command(function.__name__, help=meaning)(at_body(run))

    return make


def address_option(high: int) -> Any:
    """Return the option for the address of a modem, from 1 to ``high``."""
    return click.option(
        "--address", type=click.IntRange(1, high), required=True, help="Address of the modem, as in the configuration."
    )


def carrier_option(default: str) -> Any:
    """Return the option for the carrier frequency of a modem."""
    return click.option(
        "--carrier",
        type=Quantity("frequency", low=1.0),
        default=default,
        show_default=True,
        help="Carrier frequency of the modem, as in the configuration.",
    )


def outlet_option(option: str, title: str) -> Any:
    return click.option(
        option,
        multiple=True,
        metavar="WHERE",
        help=f"{title}. Repeatable.",
        callback=lambda _context, _option, texts: tuple(map(where, texts)),
    )


def port_option(port: str, default: str, *, can_be_off: bool) -> Any:
    """Return the option that sets where a device opens one of its ports. The word `off` is converted to None."""
    return click.option(
        f"--{port}",
        metavar="WHERE",
        default=default,
        show_default=True,
        help=f"Path or address of the `{port}` port.",
        callback=lambda _context, _option, text: None if can_be_off and text == "off" else where(text),
    )


def multi_port_command(meaning: str, default_ports: Mapping[str, str], *more: Any, modem: bool = False) -> Any:
    """Create a command that serves a device with several ports. The decorated function returns the device type.

    ``default_ports`` maps the name of each port to the location where it opens by default; `off` means that the port is
    not opened. The command has an option for each port, named after the port.
    """

    def make(function: Any) -> click.Command:
        name = function.__name__.replace("_", "-")

        def run(place: DeviceOptions, **own: Any) -> None:
            import asyncio

            from wavesim_devices.serve import serve_devices

            opened = {port: own.pop(port) for port in default_ports}
            chosen = {port: open_port for port, open_port in opened.items() if open_port is not None}
            if not chosen:
                raise click.UsageError(f"{name} has no port: set one of {', '.join(f'--{p}' for p in default_ports)}")
            asyncio.run(serve_devices(place, (function(**own), chosen)))

        options = [port_option(port, default, can_be_off=True) for port, default in default_ports.items()]
        for option in (*reversed(options), *(() if modem else (sensor_option,)), *reversed(more)):
            run = option(run)
        text = f"{meaning}\n\nWHERE is {PLACES}, all on loopback, or off."
        return device.command(name, help=text)(at_body(run))

    return make
