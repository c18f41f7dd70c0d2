"""Commands of the ``wavesim`` program for a running server."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from wavesim_sdk.cli_numbers import NumbersCommand, Quantity
from wavesim_sdk.mission_status import VEHICLE_ACTIONS
from wavesim_sdk.terminal_text import echo
from wavesim_sdk.timer_verbs import TIMER_VERBS

server_option = click.option(
    "--server", "-s", default="wavesim", envvar="WAVESIM_SERVER", show_default=True, help="Name of the server."
)


def address_options(function: Any) -> Any:
    """Add ``--server``, ``--host`` and ``--port`` to a command that joins over the network. The command receives the
    address as ``server``.
    """

    @functools.wraps(function)
    def run(server: str | None, host: str | None, port: int | None, **own: Any) -> Any:
        from wavesim_sdk.server_address import DEFAULT_SERVER, address_of

        here = (host or DEFAULT_SERVER[0]).removeprefix("[").removesuffix("]"), port or DEFAULT_SERVER[1]
        return function(server=here if host or port else address_of(server), **own)

    for option in (
        click.option("--port", type=click.IntRange(1, 65535), help="Port of the server.  [default: 9750]"),
        click.option("--host", help="Address of the server.  [default: 127.0.0.1]"),
        click.option("--server", "-s", envvar="WAVESIM_SERVER", help="Name of a server on this machine, or HOST:PORT."),
    ):
        run = option(run)
    return run


METRES, DEGREES = Quantity("length"), Quantity("angle", "deg")
SPEED, DEGREES_PER_S = Quantity("speed"), Quantity("angular rate", "deg/s")


def send(server: str, verb: str, **arguments: Any) -> None:
    """Send a command through the commander queue and print the answer. Raise CommanderError if it is refused."""
    from wavesim_sdk.commander import Commander
    from wavesim_sdk.errors import CommanderError

    with Commander(server) as commander:
        reply = commander.send(verb, **arguments)
    if not reply.ok:
        raise CommanderError(reply.text)
    echo(reply.text)


def _verb(verb: str, argument: str, meaning: str) -> click.Command:
    """Create the command for one verb that controls the simulation clock."""
    if not argument:

        def run(server: str) -> None:
            send(server, verb)

        return click.command(verb, help=f"{meaning[0].upper()}{meaning[1:]}.")(server_option(run))

    def run_with(server: str, **arguments: Any) -> None:
        send(server, verb, **arguments)

    kind = {"ticks": int, "time": Quantity("time")}.get(argument, Quantity())
    return click.command(verb, cls=NumbersCommand, help=f"{meaning[0].upper()}{meaning[1:]}.")(
        click.argument(argument, type=kind)(server_option(run_with))
    )


@click.command(cls=NumbersCommand)
@click.argument("body")
@click.argument("part")
@click.argument("kind")
@click.argument("amount", default="")
@click.option(
    "--field",
    default="",
    help="Limit the fault to a field such as `heading`, or to one component of a field, such as `rates.2`.  [default: all]",
)
@server_option
def fault(body: str, part: str, kind: str, amount: str, field: str, server: str) -> None:
    """Inject a fault into BODY, or clear it.

    PART is the name of an actuator or a sensor, or `device:` followed by the name of a running device, such as
    device:nmea. The KIND `none` clears the fault.

    \b
    Actuators: stuck, frozen (for AMOUNT s), lost, reduced (to the fraction AMOUNT), reversed.
    Sensors:   lost, frozen, bias (AMOUNT with its unit: "5 deg", "-0.2 m/s"), spikes
               (AMOUNT: probability, 0 to 1), noisy (AMOUNT: noise factor),
               wet (leak detector; AMOUNT: compartment), unlocked (Doppler log).
    Devices:   lost, garbled, doubled (AMOUNT: probability per byte), late (AMOUNT: delay,
               such as 0.5s), silent, stalled, disconnected, restarted (off until the fault `none`).
    """
    send(server, "fault", body=body, part=part, kind=kind, amount=amount.strip() or None, field=field or None)


@click.command(cls=NumbersCommand)
@click.argument("body")
@click.argument("force", nargs=3, type=Quantity("force"))
@click.argument("torque", nargs=-1, type=Quantity("torque"))
@click.option("--duration", type=Quantity("time"), help="Simulation time in s after which the push ends.")
@server_option
def push(body: str, force: tuple[float, ...], torque: tuple[float, ...], duration: float | None, server: str) -> None:
    """Apply a force and a torque to BODY.

    FORCE is X Y Z in N and TORQUE is K M N in N m, both in body axes. A number may have a unit, such as "50 lbf" or
    2kN. The force and torque act until the next push or for --duration; a push of 0 0 0 ends them.
    """
    if len(torque) not in (0, 3):
        raise click.UsageError(f"TORQUE must have three numbers, got {len(torque)}")
    send(server, "push", body=body, force=list(force), torque=list(torque or (0.0, 0.0, 0.0)), duration=duration)


@click.command(cls=NumbersCommand)
@click.argument("body")
@click.option("--position", type=(METRES,) * 3, metavar="NORTH EAST DOWN", help="New position: north, east, down in m.")
@click.option(
    "--attitude",
    type=(DEGREES,) * 3,
    metavar="ROLL PITCH HEADING",
    help="New attitude: roll, pitch, heading in degrees.",
)
@click.option(
    "--velocity",
    type=(*(SPEED,) * 3, *(DEGREES_PER_S,) * 3),
    metavar="U V W P Q R",
    help="New velocity over ground: u v w in m/s and p q r in degrees/s, in body axes.",
)
@server_option
def pose(
    body: str,
    position: tuple[float, ...] | None,
    attitude: tuple[float, ...] | None,
    velocity: tuple[float, ...] | None,
    server: str,
) -> None:
    """Set the position, attitude or velocity of BODY.

    Omitted values stay unchanged.
    """
    turned = None if attitude is None else [math.radians(v) for v in attitude]
    moved = None if velocity is None else [*velocity[:3], *(math.radians(v) for v in velocity[3:])]
    send(server, "pose", body=body, position=position and list(position), attitude=turned, velocity=moved)


@click.command(cls=NumbersCommand)
@click.argument("body")
@click.argument("numbers", nargs=-1, type=Quantity(), required=True)
@server_option
def allocate(body: str, numbers: tuple[float, ...], server: str) -> None:
    """Set the thruster allocation matrix of BODY.

    NUMBERS are six rows (X, Y, Z, K, M, N), each with one value per thruster.
    """
    send(server, "allocate", body=body, matrix=list(numbers))


@click.command(cls=NumbersCommand)
@click.option(
    "--current",
    type=(SPEED,) * 2,
    metavar="NORTH EAST",
    help="Set the north and east components of the mean current in m/s.",
)
@click.option(
    "--current-down",
    type=SPEED,
    metavar="DOWN",
    help="Set the vertical component of the mean current in m/s, positive down.",
)
@click.option(
    "--wind",
    type=(SPEED, DEGREES),
    metavar="SPEED FROM",
    help="Set the mean wind speed in m/s and the direction in degrees from which the wind blows.",
)
@click.option(
    "--waves",
    type=(METRES, Quantity("angular rate", "rad/s"), DEGREES),
    metavar="HEIGHT PEAK TO",
    help="Set the significant wave height in m, the peak frequency in rad/s and the direction of travel in degrees.",
)
@server_option
def weather(
    current: tuple[float, ...] | None,
    current_down: float | None,
    wind: tuple[float, ...] | None,
    waves: tuple[float, ...] | None,
    server: str,
) -> None:
    """Change the current, wind and waves.

    Omitted values stay unchanged. A number may have a unit: `--wind 20kn 270`.
    """
    values: dict[str, float] = {}
    if current is not None:
        values |= {"current_north": current[0], "current_east": current[1]}
    if current_down is not None:
        values["current_down"] = current_down
    if wind is not None:
        values |= {"wind_speed": wind[0], "wind_direction": math.radians(wind[1])}
    if waves is not None:
        values |= {"wave_height": waves[0], "wave_peak": waves[1], "wave_direction": math.radians(waves[2])}
    send(server, "weather", **values)


@click.command(cls=NumbersCommand)
@click.argument("body")
@click.argument("values", metavar="[NUMBERS]...", nargs=-1)
@click.option("--file", "file", type=click.Path(dir_okay=False, path_type=Path), help="Read the waypoints from a file.")
@click.option("--speed", type=SPEED, help="Set the speed in m/s for legs that have no speed in the file.")
@click.option("--dry-run", is_flag=True, help="Print the waypoints of the file instead of sending them.")
@server_option
def mission(
    body: str, values: tuple[str, ...], file: Path | None, speed: float | None, dry_run: bool, server: str
) -> None:
    """Send waypoints to the program that drives BODY.

    The program must accept missions. NUMBERS are the north, east and depth coordinates (m) and the speed (m/s) of each
    waypoint. Alternatively, --file names a QGroundControl plan (.plan), a MAVLink mission as text (.waypoints), a
    Panisim guidance file (.yml) or a table with a header (.csv). Latitudes and longitudes are converted with the origin
    of the server's world.
    """
    from wavesim_sdk.commander import Commander
    from wavesim_sdk.errors import CommanderError

    if (file is None) == (not values):
        raise click.UsageError("specify either the numbers of the waypoints or --file")
    if file is None and (dry_run or speed is not None):
        raise click.UsageError("--speed and --dry-run need --file")
    kinds = (METRES, METRES, METRES, SPEED)
    numbers = [kinds[k % 4].convert(text, None, None) for k, text in enumerate(values)]
    if len(numbers) % 4:
        raise click.UsageError(
            f"expected four numbers per waypoint (north, east, depth, speed), got {len(numbers)} numbers"
        )
    waypoints = [numbers[k : k + 4] for k in range(0, len(numbers), 4)]
    if file is not None:
        waypoints = _waypoints_of(file, speed, server)
        if dry_run:
            for north, east, depth, wanted in waypoints:
                echo(f"{north:.2f} m north  {east:.2f} m east  {depth:.2f} m deep  {wanted:g} m/s")
            return
    with Commander(server) as commander:
        try:
            reply = commander.mission(body, waypoints)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if not reply.ok:
        raise CommanderError(reply.text)
    echo(reply.text)


def _waypoints_of(file: Path, speed: float | None, server: str) -> list[list[float]]:
    """Return the waypoints of a mission file (north, east, depth, speed), and print notices about ignored or converted
    contents.
    """
    from wavesim_sdk.attach import SharedState
    from wavesim_sdk.geodesy import Origin
    from wavesim_sdk.guidance.mission_files import read_mission

    def origin() -> Origin:
        latitude, longitude = SharedState(server).world()["origin"].tolist()
        return Origin(latitude, longitude)

    found = read_mission(file, origin, speed=speed)
    for text in found.notices:
        echo(f"wavesim: {file}: {text}", err=True)
    for name, value in (("acceptance radius", found.acceptance), ("lookahead distance", found.lookahead)):
        if value:
            echo(
                f"wavesim: {file}: the program uses its own {name}; the value in the file, {value:g} m, is ignored",
                err=True,
            )
    return [[w.north, w.east, w.depth, w.speed] for w in found.waypoints]


@click.command(cls=NumbersCommand)
@click.argument("body")
@click.argument("action", type=click.Choice(VEHICLE_ACTIONS))
@click.argument("values", metavar="[NORTH EAST DEPTH [SPEED]]", nargs=-1)
@server_option
def command(body: str, action: str, values: tuple[str, ...], server: str) -> None:
    """Send a command to BODY's program and print the answer.

    ACTION is goto, loiter, return, pause, resume or abort. North, east and depth (m) are needed for goto, and optional for
    loiter. If no speed (m/s) is given, the vehicle chooses its own.
    """
    from wavesim_sdk.commander import Commander
    from wavesim_sdk.errors import CommanderError

    kinds = (METRES, METRES, METRES, SPEED)
    if len(values) not in (0, 3, 4):
        raise click.UsageError(f"expected north, east, depth and optionally a speed, got {len(values)} numbers")
    numbers = [kind.convert(text, None, None) for kind, text in zip(kinds, values, strict=False)]
    with Commander(server) as commander:
        reply = commander.vehicle_command(body, action, [*numbers, 0.0][:4] if numbers else None)
    if not reply.ok:
        raise CommanderError(reply.text)
    echo(reply.text)


@click.group()
def snapshot() -> None:
    """Save and restore the state of a running simulation.

    NAME is the name of a snapshot in the server's memory, or a file that ends in .snapshot.
    """


def _snapshot_command(action: str, help_text: str) -> click.Command:
    def run(name: str, server: str) -> None:
        from wavesim_sdk.commands import is_snapshot_file

        send(server, "snapshot", action=action, name=str(Path(name).resolve()) if is_snapshot_file(name) else name)

    return click.command(action, help=help_text)(click.argument("name")(server_option(run)))


for _action, _help in (
    ("save", "Save the state as snapshot NAME. An existing snapshot with that name is replaced."),
    ("restore", "Restore the snapshot NAME. Clients stay connected."),
    ("remove", "Remove the snapshot NAME from the server's memory."),
):
    snapshot.add_command(_snapshot_command(_action, _help))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def servers(as_json: bool) -> None:
    """List the servers running on this machine."""
    from wavesim_sdk.commander import Commander
    from wavesim_sdk.errors import WaveSimError
    from wavesim_sdk.shared_memory import running_servers

    found: list[dict[str, Any]] = []
    for name, pid in running_servers():
        entry: dict[str, Any] = {"name": name, "process": pid}
        try:
            with Commander(name) as commander:
                status = commander.send("status").data
            entry |= {k: status.get(k) for k in ("address", "state", "clients_total", "configuration")}
            entry["time_s"] = status["time_ns"] * 1e-9
        except WaveSimError as error:  # a server of another user, or one that is ending
            entry["refuses"] = str(error)
        found.append(entry)
    if as_json:
        echo(json.dumps(found, indent=2))
        return
    for e in found:
        if "refuses" in e:
            echo(f"{e['name']:16} process {e['process']}: {e['refuses']}")
            continue
        at = "{}:{}".format(*e["address"]) if e["address"] else "-"
        echo(
            f"{e['name']:16} {at:21} {e['state']:8} {e['time_s']:9.1f} s  {e['clients_total']} clients  {e['configuration']}"
        )
    if not found:
        echo("no server is running on this machine; start one with: wavesim serve CONFIG", err=True)


def unused(why: str, *names: str) -> None:
    """Raise a UsageError if any of these parameters is given on the command line, because it would have no effect.

    ``why`` completes the message, for example with ``without --mosaic``.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[0]} has no effect {why}")


def commands() -> list[click.Command]:
    """Return all commands in this module."""
    verbs = [_verb(verb, argument, meaning) for verb, (argument, meaning) in TIMER_VERBS.items()]
    return [servers, *verbs, fault, push, pose, allocate, weather, mission, command, snapshot]
