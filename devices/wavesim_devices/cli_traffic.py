"""Options of `wavesim device` that set the locations of ports and that record, print or disturb the traffic."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from wavesim_devices.line_faults import LineFault
    from wavesim_devices.ports import OpenPort

PLACES = "tcp:PORT or udp-server:PORT (listens on the port), udp:PORT (sends to the port), pty:LINK, or pty: for a terminal without a link"


def where(text: str) -> OpenPort:
    """Return the function that opens a port. ``text`` is its location: `tcp:PORT`, `udp:PORT`, `udp-server:PORT` or
    `pty:LINK`.
    """
    from wavesim_devices import ports

    kind, colon, at = text.partition(":")
    if kind == "pty" and colon:
        return lambda accept: ports.PtyPort(accept, at)
    if at.isdigit() and int(at) <= 65535:
        if kind == "tcp":
            return lambda accept: ports.TcpPort(accept, int(at))
        if kind == "udp" and int(at):
            return lambda accept: ports.UdpPort(accept, int(at))
        if kind == "udp-server":
            return lambda accept: ports.UdpServerPort(accept, int(at))
    raise click.BadParameter(f"invalid port location '{text}': use {PLACES}")


def _faults(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> tuple[LineFault, ...]:
    from wavesim_devices.line_faults import parse_fault

    try:
        return tuple(map(parse_fault, texts))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def traffic_options(function: Any) -> Any:
    """Add the traffic options to a command. The command receives them as the argument ``traffic``."""

    @functools.wraps(function)
    def run(record: Path | None, is_printed: bool, fault: tuple[LineFault, ...], seed: int, **own: Any) -> Any:
        from wavesim_devices.serve import TrafficOptions

        return function(traffic=TrafficOptions(record, is_printed, fault, seed), **own)

    for option in (
        click.option("--fault-seed", "seed", default=0, help="Random seed for the faults."),
        click.option(
            "--fault",
            multiple=True,
            metavar="FAULT",
            callback=_faults,
            help="Fault on the line: `lost P`, `garbled P` or `doubled P` (probability per byte), `late TIME`, "
            "silent, stalled, disconnected, or restarted. Add at=TIME, for=TIME and every=TIME (simulation time) to "
            "schedule the fault. Repeatable.",
        ),
        click.option("--print", "is_printed", is_flag=True, help="Print the traffic exchanged with the hosts."),
        click.option(
            "--record",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Write the traffic exchanged with the hosts to this file, for `wavesim device replay`.",
        ),
    ):
        run = option(run)
    return run
