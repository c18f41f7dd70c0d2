"""The command ``wavesim``. Each installed package adds its commands through an entry point."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from wavesim_sdk import __version__, console
from wavesim_sdk.cli_commands import address_options
from wavesim_sdk.cli_commands import server_option as server_option
from wavesim_sdk.errors import LogError, WaveSimError

if TYPE_CHECKING:
    from wavesim_sdk.log import Log

_ORDER = ("serve", "trial", "servers", "start", "stop", "pause", "resume", "step", "speed", "status", "shutdown")


class _Group(click.Group):
    """Command group that lists the most used commands first and reports a WaVeSimError in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.commands, key=lambda c: (_ORDER.index(c) if c in _ORDER else 99, c))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except WaveSimError as error:
            click.echo(f"wavesim: {error}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("wavesim: interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)
        except OSError as error:  # out of file descriptors, read-only file system, ...
            place = f" ({error.filename})" if error.filename else ""
            click.echo(f"wavesim: operating system error: {error.strerror or error}{place}", err=True)
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
            click.echo(f"wavesim: cannot load the commands of '{entry.value}': {error}", err=True)
            continue
        for command in offered:
            cli.add_command(command)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@click.command()
@server_option
@json_option
@click.option("--prometheus", is_flag=True, help="Print Prometheus text format, for the textfile collector.")
def status(server: str, as_json: bool, prometheus: bool) -> None:
    """Show the server's status."""
    from wavesim_sdk import metrics
    from wavesim_sdk.commander import Commander

    if prometheus:
        unused("with --prometheus", "as_json")
    with Commander(server) as commander:
        data = commander.send("status").data
    if prometheus:
        click.echo(metrics.prometheus_text(data), nl=False)
        return
    if as_json:
        click.echo(json.dumps(data, indent=2))
        return
    clients = data.pop("clients")
    for key, value in data.items():
        click.echo(f"{key:18} {value if value != {} and value != [] else '-'}")
    for c in clients:
        click.echo(
            f"client {c['id']:3} {c['name']:16} {c['address']:21} round trip {c['rtt_ms']} ms"
            + (", lockstep waits for it" if c["waited_for"] else "")
            + (
                f", waited {c['waited_s']:.1f} s in total, budget left {c['budget_left_s']:.1f} s"
                if c["lockstep_s"]
                else ""
            )
        )


@click.command()
@click.argument("config", type=click.Path(path_type=Path), default="config.xml")
@click.option("--schema", is_flag=True, help="Print the XML schema for editors instead of reading CONFIG.")
@json_option
def check(config: Path, schema: bool, as_json: bool) -> None:
    """Check a configuration; report its errors or contents."""
    from wavesim_sdk import data_files
    from wavesim_sdk.config import export, instrument_checks, load

    if schema:
        unused("with --schema", "config", "as_json")
        click.echo(export.xsd().decode(), nl=False)
        return
    loaded = load(config)
    data_files.check(loaded)
    for entry in entry_points(
        group="wavesim.checks"
    ):  # checks of installed packages, which refuse what they cannot run
        entry.load()(loaded)
    bodies, warnings = loaded.config.fleet.bodies, instrument_checks.drowned(loaded)
    for text in warnings:
        click.echo(f"wavesim: {config}: {text}", err=True)
    if as_json:
        entries = [
            {"name": b.name, "model": b.model, "client": b.client, "sensors": [i.as_dict for i in loaded.suite(b)]}
            for b in bodies
        ]
        click.echo(
            json.dumps(
                {"name": loaded.config.name, "digest": loaded.digest, "bodies": entries, "warnings": warnings}, indent=2
            )
        )
        return
    click.echo(f"{config} is valid: server '{loaded.config.name}', bodies: {len(bodies)}, digest {loaded.digest[:12]}")
    for b in bodies:
        carried = ", ".join(map(str, loaded.suite(b))) or "none"
        click.echo(f"  {b.name:16} {b.model:12} client {b.client:9} sensors: {carried}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
def keys(file: Path, names: tuple[str, ...]) -> None:
    """Add client keys to a key file. The command creates FILE if it is missing.

    The command adds one new key for each of NAMES; the default `*` means any client. The server reads the file named by
    <network keys="FILE">. Copy each client's line to a separate file and set WAVESIM_KEYS to that file for the client.
    """
    import secrets

    from wavesim_sdk.errors import ConfigError

    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "a") as out:
            if os.fstat(descriptor).st_mode & 0o077:
                raise ConfigError("other users may read this key file; restrict it to its owner (chmod 600)", str(file))
            for name in names or ("*",):
                out.write(f"{name} {secrets.token_hex(32)}\n")
    except OSError as error:
        raise ConfigError(f"cannot write the key file: {error.strerror}", str(file)) from None
    click.echo(f"{file}: added keys: {len(names or '*')}; only its owner can read the file")


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
@click.option("--pid", type=int, default=0, help="ID of the process that receives the signal of --signal.")
@address_options
@click.option(
    "--model",
    default="",
    help="Model of a body that is not in the configuration, which must set <network newcomers=...>.",
)
@click.option(
    "--lockstep", default=0.0, help="Lockstep period in s; 0 (default) = the server does not wait for this client."
)
def mailbox(
    name: str, queue: str, signal_name: str, pid: int, server: tuple[str, int], model: str, lockstep: float
) -> None:
    """Exchange messages through a POSIX queue, in any language. The command joins as NAME and writes each message to the queue."""
    from wavesim_sdk.broker import Broker
    from wavesim_sdk.mailbox import Mailbox

    if not signal_name:
        unused("without --signal", "pid")
    with Mailbox(queue, signal_name, pid) as box, Broker(name, server, model=model, lockstep=lockstep) as broker:
        box.run(broker)


@click.command()
@click.argument("body")
@click.argument("sonar")
@click.argument("file", type=click.Path(path_type=Path))
@server_option
@click.option(
    "--frames", default=0, help="Number of frames after which to stop; 0 (default) = record until the run ends."
)
def record(body: str, sonar: str, file: Path, server: str, frames: int) -> None:
    """Write sonar frames to a file for survey software.

    FILE receives the frames of SONAR on BODY: .xtf for a side-scan sonar, .kmall for a multibeam echosounder.
    """
    from wavesim_sdk.sonars import record as recorder

    written, lost = recorder.record(server, body, sonar, file, frames)
    click.echo(f"{file}: {written} frames written, {lost} lost because they arrived too fast", err=True)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--sensor", help="Sensor type of the emulator that COMMAND starts; without it, COMMAND starts a broker.")
@click.option(
    "--at", "server", metavar="HOST:PORT", help="Address of a running server to check; do not specify a COMMAND."
)
@click.option(
    "--body",
    default="",
    help="With --at: name of a body of that server. No client may drive this body during the check.",
)
@click.option(
    "--step", type=click.FloatRange(1e-4, 0.1), default=0.004, show_default=True, help="With --sensor: time step in s."
)
@json_option
def conformance(
    command: tuple[str, ...], sensor: str | None, server: str | None, body: str, step: float, as_json: bool
) -> None:
    """Check that a broker, emulator or server conforms. It may be written in any language.

    A broker or server must follow docs/PROTOCOL.md, and an emulator docs/SHARED_MEMORY.md. COMMAND starts the
    broker or emulator; the checker fills in its placeholders {port} and {name}. A broker must join at 127.0.0.1 under that
    name with a lockstep period of 100 ms. An emulator must serve the server of that name in lockstep. A server (--at,
    --body) must already be running, without keys. The exit code is 5 if a rule is broken.
    """
    from wavesim_sdk.conformance import BrokerChecker, ConformanceChecker, Finding
    from wavesim_sdk.conformance_emulator import EmulatorChecker
    from wavesim_sdk.conformance_server import ServerChecker
    from wavesim_sdk.errors import BrokerError

    def say(finding: Finding) -> None:
        if not as_json:
            click.echo(
                f"{'ok  ' if finding.ok else 'FAIL'} {finding.rule}" + (f": {finding.text}" if finding.text else "")
            )

    if server is not None:
        unused("with --at, which checks a server", "sensor", "step")
    elif not sensor:
        unused("without --sensor", "step")
    if server is None:
        unused("without --at", "body")
    checker: ConformanceChecker
    if server is not None:
        host, _, port = server.rpartition(":")
        if command or not port.isdecimal() or not host or not body:
            raise click.UsageError("to check a server, use --at HOST:PORT --body NAME without COMMAND")
        checker = ServerChecker((host.strip("[]"), int(port)), body, say)
    elif not command:
        raise click.UsageError("COMMAND is missing: specify the command that starts the broker or the emulator")
    else:
        checker = EmulatorChecker(command, sensor, step, say) if sensor else BrokerChecker(command, say)
    findings = checker.run()
    if as_json:
        click.echo(json.dumps([vars(f) for f in findings], indent=2))
    broken = sum(not f.ok for f in findings)
    if broken:
        raise BrokerError(f"{broken} of {len(findings)} rules broken")


def unused(why: str, *names: str) -> None:
    """Raise a UsageError for the first of these parameters on the command line: it would have no effect.

    ``why`` completes the message, for example ``without --mosaic``.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[0]} has no effect {why}")


def whole(log: Log) -> None:
    """Raise a LogError if a log is incomplete. Call this last, after all output of the part that can be read."""
    if log.damage_notice:
        raise LogError(log.damage_notice)


def commands() -> list[click.Command]:
    """Return the commands of the SDK."""
    from wavesim_sdk.cli_commands import commands as server_commands
    from wavesim_sdk.cli_devices import device

    return [*server_commands(), status, check, keys, conformance, mailbox, device, record]


main = console.main

if __name__ == "__main__":
    main()
