"""Commands of the ``wavesim`` program for the fences of a running server."""

from __future__ import annotations

from typing import Any

import click

from wavesim_sdk.cli_commands import METRES, send, server_option
from wavesim_sdk.cli_numbers import NumbersCommand
from wavesim_sdk.terminal_text import echo


@click.group()
def fence() -> None:
    """Change or list the fences of a running server.

    A change takes effect at the next check of the fences, at most 0.2 s of simulation time later. The configuration
    stays unchanged.
    """


@fence.command("set", cls=NumbersCommand)
@click.argument("name")
@click.argument("values", metavar="NORTH EAST...", nargs=-1, required=True)
@click.option(
    "--keep",
    type=click.Choice(("inside", "outside")),
    default="inside",
    show_default=True,
    help="Side on which vehicles must stay.",
)
@server_option
def set_fence(name: str, values: tuple[str, ...], keep: str, server: str) -> None:
    """Add the fence NAME, or replace the fence with this name.

    Specify the north and east coordinates (m) of each corner, in order around the area. At least three corners are
    required.
    """
    numbers = [METRES.convert(text, None, None) for text in values]
    if len(numbers) % 2:
        raise click.UsageError(f"expected two numbers per corner (north, east), got {len(numbers)} numbers")
    send(server, "fence", name=name, keep=keep, corners=numbers)


@fence.command("remove")
@click.argument("name")
@server_option
def remove_fence(name: str, server: str) -> None:
    """Remove the fence NAME."""
    send(server, "fence", name=name)


@fence.command("list")
@server_option
def list_fences(server: str) -> None:
    """Print the current fences with their corners (north, east in m)."""
    from wavesim_sdk.commander import Commander

    with Commander(server) as commander:
        fences: list[dict[str, Any]] = commander.send("status").data["fences"]
    for f in fences:
        echo(f"{f['name']} (keep {f['keep']}): " + ", ".join(f"{n:g} {e:g}" for n, e in f["corners"]))
    if not fences:
        echo("no fences", err=True)
