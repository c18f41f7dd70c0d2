"""The ``wavesim`` command. Each installed package adds its subcommands through an entry point."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk import __version__, extras
from wavesim_sdk.cli_commands import address_options, unused
from wavesim_sdk.cli_commands import server_option as server_option
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import LogError, WaveSimError
from wavesim_sdk.terminal_text import echo

if TYPE_CHECKING:
    from wavesim_sdk.log import Log

_ORDER = ("serve", "trial", "servers", "start", "stop", "pause", "resume", "step", "speed", "status", "shutdown")


class _Group(click.Group):
    """Command group that lists the most frequently used commands first and reports a WaVeSimError in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.commands, key=lambda c: (_ORDER.index(c) if c in _ORDER else 99, c))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands and args[0] in extras.COMMANDS:
            package = extras.COMMANDS[args[0]]
            raise extras.MissingPackage(f"the command '{args[0]}' is not installed: run pip install '{package}'")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except WaveSimError as error:
            echo(f"wavesim: {error}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            echo("wavesim: interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)
        except OSError as error:  # out of file descriptors, read-only file system, ...
            place = f" ({error.filename})" if error.filename else ""
            echo(f"wavesim: operating system error: {error.strerror or error}{place}", err=True)
            ctx.exit(WaveSimError.exit_code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="wavesim")
def cli() -> None:
    """Simulate marine vehicles and acoustic navigation with the WaVeSim server.

    \b
    wavesim trial config.xml      run a complete trial: server, emulators, programs, report
    wavesim serve config.xml      run a server that brokers and emulators can join
    wavesim status                show the status of a running server

    Shell completion: eval "$(_WAVESIM_COMPLETE=bash_source wavesim)"
    """


def load_commands() -> None:
    """Add the commands of every installed package to ``wavesim``."""
    for entry in entry_points(group="wavesim.commands"):
        try:
            offered = entry.load()()
        except ImportError as error:  # one broken package must not disable the others
            echo(f"wavesim: cannot load the commands of '{entry.value}': {error}", err=True)
            continue
        for command in offered:
            cli.add_command(command)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@click.command()
@server_option
@click.option("--all", "everything", is_flag=True, help="Also print every value of the server's status.")
@json_option
@click.option(
    "--prometheus", is_flag=True, help="Print the status in Prometheus text format, for the textfile collector."
)
def status(server: str, everything: bool, as_json: bool, prometheus: bool) -> None:
    """Show the server's state, its clients and any problems."""
    from wavesim_sdk import metrics, status_text
    from wavesim_sdk.commander import Commander

    if prometheus:
        unused("with --prometheus", "as_json", "everything")
    if as_json:
        unused("with --json, which prints every value", "everything")
    with Commander(server) as commander:
        data = commander.send("status").data
    if prometheus:
        echo(metrics.prometheus_text(data), nl=False)
        return
    if as_json:
        echo(json.dumps(data, indent=2))
        return
    for line in status_text.summary(data):
        echo(line)
    if everything:
        echo("\n" + "\n".join(status_text.all_values(data)))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--replace", is_flag=True, help="Also retire the earlier keys of NAMES; sessions that use them continue.")
@click.option("--revoke", is_flag=True, help="Remove the keys of NAMES instead; sessions that use them end.")
def keys(file: Path, names: tuple[str, ...], replace: bool, revoke: bool) -> None:
    """Add, replace or revoke client keys in a key file. The command creates FILE if it is missing.

    The command adds one new key for each of NAMES; the default `*` means any client that does not have its own key. The server
    reads the file named by <network keys="FILE">. Copy each client's line to a separate file and set WAVESIM_KEYS to that
    file for the client. Keep the `@server` line on the server.

    A running server uses the changed file after `wavesim reload-keys`.
    """
    from wavesim_sdk.extras import check_installed
    from wavesim_sdk.wire import key_file

    if revoke:
        unused("with --revoke", "replace")
        if not names:
            raise click.UsageError("--revoke requires NAMES")
        echo(f"{file}: revoked keys: {key_file.revoke_keys(file, names)}")
        return
    check_installed("cryptography")
    from wavesim_sdk.wire import seal

    key_file.add_keys(file, names or (key_file.ANY_CLIENT,), seal.public_key, replace)
    echo(f"{file}: added keys: {len(names or '*')}; only the owner of the file can read it")


@click.command("reload-keys")
@server_option
def reload_keys(server: str) -> None:
    """Make a running server read its key file again.

    Added keys are valid at once. The server ends the sessions of revoked keys; all other sessions continue. Change the
    file with `wavesim keys`. If the file is invalid, the earlier keys stay valid.
    """
    from wavesim_sdk.cli_commands import send

    send(server, "reload-keys")


@click.command()
@click.argument("name")
@click.option(
    "--queue",
    required=True,
    help="POSIX message queue that receives the messages, such as /auv.in; created if missing.",
)
@click.option(
    "--signal", "signal_name", default="", help="Signal to send with each message, such as USR1; default: none."
)
@click.option("--pid", type=int, default=0, help="ID of the process that receives the signal set with --signal.")
@address_options
@click.option(
    "--model",
    default="",
    help="Model for a body that is not in the configuration. The configuration must then set <network newcomers=...>.",
)
@click.option(
    "--lockstep",
    type=Quantity("time"),
    default=0.0,
    help="Lockstep period in s; 0 (default) = the server does not wait for this client.",
)
def mailbox(
    name: str, queue: str, signal_name: str, pid: int, server: tuple[str, int], model: str, lockstep: float
) -> None:
    """Exchange messages through a POSIX queue. The command joins as NAME and writes each message to the queue, where a
    program in any language can read it.
    """
    from wavesim_sdk.broker import Broker
    from wavesim_sdk.mailbox import Mailbox

    if not signal_name:
        unused("without --signal", "pid")
    with Mailbox(queue, signal_name, pid) as box, Broker(name, server, model=model, lockstep=lockstep) as broker:
        box.run(broker)


def whole(log: Log) -> None:
    """Raise a LogError if a log is incomplete. Print the notes about a converted log from another program. Call this
    function last, after the readable part of the log has been output.
    """
    if log.notes:
        echo(f"{log.path.name} was recorded by another program:", err=True)
    for note in log.notes:
        echo(f"  {note}", err=True)
    if log.damage_notice:
        raise LogError(log.damage_notice)


def commands() -> list[click.Command]:
    """Return the subcommands that the SDK adds to ``wavesim``."""
    from wavesim_sdk.cli_commands import commands as server_commands
    from wavesim_sdk.cli_fences import fence
    from wavesim_sdk.cli_janus import janus

    return [*server_commands(), fence, janus, status, keys, reload_keys, mailbox]
