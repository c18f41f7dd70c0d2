"""The ``wavesim conformance`` command, which checks a broker, an emulator, a server or a device."""

from __future__ import annotations

import json

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.cli_commands import unused
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.terminal_text import echo


@click.command(context_settings={"allow_interspersed_args": False})  # options after COMMAND belong to it
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--sensor", help="Sensor type of the emulator that COMMAND starts; without it, COMMAND starts a broker.")
@click.option("--device", is_flag=True, help="COMMAND starts a virtual device (`wavesim device`).")
@click.option(
    "--send",
    "samples",
    multiple=True,
    help="With --device: a valid command of its protocol, with escapes such as \\r\\n or \\x01. Repeatable.",
)
@click.option(
    "--at",
    "places",
    metavar="PLACE",
    multiple=True,
    help="Address HOST:PORT of a running server to check, or, with --device, a port of a running device: tcp:PORT, "
    "udp-server:PORT, udp:PORT or pty:LINK (repeatable). Do not specify a COMMAND.",
)
@click.option(
    "--body",
    default="",
    help="With --at: name of a body on that server. No client may drive this body during the check.",
)
@click.option(
    "--step",
    type=Quantity("time", low=1e-4, high=0.1),
    default=0.004,
    show_default=True,
    help="With --sensor: time step in s.",
)
@click.option(
    "--remote", is_flag=True, help="With --sensor: let the emulator join over the network, at 127.0.0.1:{port}."
)
@json_option
def conformance(
    command: tuple[str, ...],
    sensor: str | None,
    device: bool,
    samples: tuple[str, ...],
    places: tuple[str, ...],
    body: str,
    step: float,
    remote: bool,
    as_json: bool,
) -> None:
    """Check a broker, emulator, server or device.

    The program may be written in any language. The check shows whether it conforms to the specification.

    A broker or server must follow docs/PROTOCOL.md, and an emulator docs/SHARED_MEMORY.md. COMMAND starts the
    broker or emulator; the checker replaces {port} and {name} in COMMAND. A broker must join at 127.0.0.1 under that
    name with a lockstep period of 100 ms. An emulator must serve the server of that name in lockstep, or with --remote
    join in the `emulator` role. A server (--at, --body) must already be running, without keys. A device (--device)
    joins with a lockstep period of 100 ms; the checker sends invalid bytes to its ports, and acts as a host that never
    reads. A device that is already running, on any server, is checked through its ports (--device --at): it must send
    something to each host, automatically or in answer to a command from --send. The exit code is 5 if a rule is broken.
    """
    from wavesim_conformance.broker import BrokerChecker, ConformanceChecker, Finding
    from wavesim_conformance.device import DeviceChecker
    from wavesim_conformance.emulator import EmulatorChecker
    from wavesim_conformance.running_device import RunningDeviceChecker
    from wavesim_conformance.server import ServerChecker
    from wavesim_sdk.errors import BrokerError

    def say(finding: Finding) -> None:
        if not as_json:
            echo(f"{'ok  ' if finding.ok else 'FAIL'} {finding.rule}" + (f": {finding.text}" if finding.text else ""))

    _refuse_unused(device, bool(places), bool(sensor))
    checker: ConformanceChecker
    if device and places:
        if command:
            raise click.UsageError("to check a device that is already running, use --device --at PLACE without COMMAND")
        checker = RunningDeviceChecker(list(map(_place, places)), list(map(_bytes, samples)), say)
    elif places:
        host, _, port = places[0].rpartition(":")
        if command or not port.isdecimal() or not host or not body or len(places) > 1:
            raise click.UsageError("to check a server, use --at HOST:PORT --body NAME without COMMAND")
        checker = ServerChecker((host.strip("[]"), int(port)), body, say)
    elif not command:
        raise click.UsageError("COMMAND is missing: specify the command that starts the broker, emulator or device")
    elif device:
        checker = DeviceChecker(command, list(map(_bytes, samples)), say)
    else:
        checker = EmulatorChecker(command, sensor, step, say, remote) if sensor else BrokerChecker(command, say)
    findings = checker.run()
    if as_json:
        echo(json.dumps([vars(f) for f in findings], indent=2))
    broken = sum(not f.ok for f in findings)
    if broken:
        raise BrokerError(f"{broken} of {len(findings)} rules broken")


def _refuse_unused(device: bool, has_place: bool, has_sensor: bool) -> None:
    """Raise a UsageError if an option is given that has no effect on this check."""
    if device:
        unused("with --device", "sensor", "step", "remote", "body")
    elif has_place:
        unused("with --at, which checks a server", "sensor", "step", "remote")
    elif not has_sensor:
        unused("without --sensor", "step", "remote")
    if not has_place:
        unused("without --at", "body")
    if not device:
        unused("without --device", "samples")


def _place(where: str) -> str:
    """Return the location of a port in the form in which a device prints it."""
    from wavesim_conformance.running_device import place_of

    try:
        return place_of(where)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--at") from None


def _bytes(text: str) -> bytes:
    """Return the bytes of a string in which escape sequences are written as in Python."""
    try:
        data = text.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1")
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise click.BadParameter(f"invalid escape in '{text}'", param_hint="--send") from None
    if not data:
        raise click.BadParameter("the command is empty", param_hint="--send")
    return data


def commands() -> list[click.Command]:
    """Return the subcommands that this package adds to ``wavesim``."""
    return [conformance]
