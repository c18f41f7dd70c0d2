"""The command ``wavesim``. Each installed package adds its commands by an entry point."""

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
    """A group that shows the daily commands first and turns our errors into one line."""

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
        except OSError as error:  # no more descriptors, a file system that may only be read, ...
            place = f" ({error.filename})" if error.filename else ""
            click.echo(f"wavesim: the system refuses what this needs: {error.strerror or error}{place}", err=True)
            ctx.exit(WaveSimError.exit_code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="wavesim")
def cli() -> None:
    """WaVeSim: a simulation server for marine vehicles and acoustic navigation.

    \b
    wavesim trial config.xml      run a whole trial: server, emulators, programs, report
    wavesim serve config.xml      run a server; brokers and emulators join by themselves
    wavesim status                ask a running server how it is

    Shell completion: eval "$(_WAVESIM_COMPLETE=bash_source wavesim)"
    """


def load_commands() -> None:
    """The commands of every package that is installed."""
    for entry in entry_points(group="wavesim.commands"):
        try:
            offered = entry.load()()
        except ImportError as error:  # one broken package must not take the others along
            click.echo(f"wavesim: the commands of '{entry.value}' cannot be loaded: {error}", err=True)
            continue
        for command in offered:
            cli.add_command(command)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


@click.command()
@server_option
@json_option
@click.option("--prometheus", is_flag=True, help="Print the text format of Prometheus, for its textfile collector.")
def status(server: str, as_json: bool, prometheus: bool) -> None:
    """Everything the server knows of itself."""
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
            + (", waited for" if c["waited_for"] else "")
            + (
                f", time waited {c['waited_s']:.1f} s for it, budget left {c['budget_left_s']:.1f} s"
                if c["lockstep_s"]
                else ""
            )
        )


@click.command()
@click.argument("config", type=click.Path(path_type=Path), default="config.xml")
@click.option("--schema", is_flag=True, help="Print the XML schema instead, for an editor.")
@json_option
def check(config: Path, schema: bool, as_json: bool) -> None:
    """Read a configuration and say what is wrong with it, or what it holds."""
    from wavesim_sdk import data_files
    from wavesim_sdk.config import export, instrument_checks, load

    if schema:
        unused("with --schema", "config", "as_json")
        click.echo(export.xsd().decode(), nl=False)
        return
    loaded = load(config)
    data_files.check(loaded)
    for entry in entry_points(group="wavesim.checks"):  # what installed packages would refuse to run
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
    click.echo(f"{config} is good: server '{loaded.config.name}', {len(bodies)} bodies, digest {loaded.digest[:12]}")
    for b in bodies:
        carried = ", ".join(map(str, loaded.suite(b))) or "none"
        click.echo(f"  {b.name:16} {b.model:12} client {b.client:9} sensors: {carried}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
def keys(file: Path, names: tuple[str, ...]) -> None:
    """Add a new key for each of NAMES (`*` = any client; the default) to a key FILE, made if absent.

    The server reads the file by <network keys="FILE">; give each client its own line in a file of its own, and
    WAVESIM_KEYS=THAT-FILE.
    """
    import secrets

    from wavesim_sdk.errors import ConfigError

    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "a") as out:
            if os.fstat(descriptor).st_mode & 0o077:
                raise ConfigError("others may read this key file; make it yours alone (chmod 600)", str(file))
            for name in names or ("*",):
                out.write(f"{name} {secrets.token_hex(32)}\n")
    except OSError as error:
        raise ConfigError(f"cannot write the key file: {error.strerror}", str(file)) from None
    click.echo(f"{file}: {len(names or '*')} new, readable by you alone")


@click.command()
@click.argument("name")
@click.option("--queue", required=True, help="POSIX message queue to fill, such as /auv.in; made if absent.")
@click.option("--signal", "signal_name", default="", help="Signal to send at each message, such as USR1.")
@click.option("--pid", type=int, default=0, help="Process that gets the signal.")
@address_options
@click.option(
    "--model",
    default="",
    help="Model, for a body that the configuration does not name (it must say <network newcomers=...>).",
)
@click.option("--lockstep", default=0.0, help="Lockstep period in s; 0 = free.")
def mailbox(
    name: str, queue: str, signal_name: str, pid: int, server: tuple[str, int], model: str, lockstep: float
) -> None:
    """Join as NAME and drop every message into a POSIX queue, for programs in any language."""
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
@click.option("--frames", default=0, help="Stop after so many; 0 = when the run ends.")
def record(body: str, sonar: str, file: Path, server: str, frames: int) -> None:
    """Write the frames of a SONAR of a BODY into a FILE for survey software: .xtf for a side-scan, .kmall for a multibeam echosounder."""
    from wavesim_sdk.sonars import record as recorder

    written, lost = recorder.record(server, body, sonar, file, frames)
    click.echo(f"{file}: {written} frames, {lost} came too fast", err=True)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--sensor", help="COMMAND starts an emulator of this sensor, not a broker.")
@click.option("--at", "server", metavar="HOST:PORT", help="Ask a server that runs there; there is no COMMAND.")
@click.option("--body", default="", help="The server's body that nobody drives meanwhile.")
@click.option(
    "--step", type=click.FloatRange(1e-4, 0.1), default=0.004, show_default=True, help="Tick for an emulator, s."
)
@json_option
def conformance(
    command: tuple[str, ...], sensor: str | None, server: str | None, body: str, step: float, as_json: bool
) -> None:
    """Check a broker or a server, in any language, against docs/PROTOCOL.md, or an emulator against docs/SHARED_MEMORY.md.

    COMMAND starts it; {port} and {name} in it are filled in. A broker shall join at 127.0.0.1 under that name with a lockstep
    period of 100 ms; an emulator shall serve the server of that name, synchronously. A server (--at, --body) runs already, and
    wants no keys. Exit code 5 if it breaks a rule.
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
        unused("with --at: a server is checked", "sensor", "step")
    elif not sensor:
        unused("without --sensor: an emulator's tick", "step")
    if server is None:
        unused("without --at", "body")
    checker: ConformanceChecker
    if server is not None:
        host, _, port = server.rpartition(":")
        if command or not port.isdecimal() or not host or not body:
            raise click.UsageError("a server is checked by --at HOST:PORT --body NAME, without COMMAND")
        checker = ServerChecker((host.strip("[]"), int(port)), body, say)
    elif not command:
        raise click.UsageError("COMMAND is missing: what starts the broker or the emulator")
    else:
        checker = EmulatorChecker(command, sensor, step, say) if sensor else BrokerChecker(command, say)
    findings = checker.run()
    if as_json:
        click.echo(json.dumps([vars(f) for f in findings], indent=2))
    broken = sum(not f.ok for f in findings)
    if broken:
        raise BrokerError(f"{broken} of {len(findings)} rules are broken")


def unused(why: str, *names: str) -> None:
    """UsageError for the first of these parameters that stands on the command line, where it would be taken and have no effect;
    ``why`` is such as ``without --mosaic``."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[0]} has no effect {why}")


def whole(log: Log) -> None:
    """LogError of a log that is not whole, after all that could be done with it was done: what is missing may be what mattered."""
    if log.damage_notice:
        raise LogError(log.damage_notice)


def commands() -> list[click.Command]:
    """The SDK's own commands."""
    from wavesim_sdk.cli_commands import commands as server_commands
    from wavesim_sdk.cli_devices import device

    return [*server_commands(), status, check, keys, conformance, mailbox, device, record]


main = console.main

if __name__ == "__main__":
    main()
