"""``wavesim device``: instruments that real software reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk.cli_commands import address_options

if TYPE_CHECKING:
    from wavesim_sdk.devices.serve import DeviceOptions, Ports


@click.group()
def device() -> None:
    """Virtual devices: a serial port or a socket that answers as the real instrument does."""


def _at_body(function: Any) -> Any:
    """The options of a command whose device belongs to body NAME; the function gets it as its first argument."""

    def run(
        name: str, server: tuple[str, int], pilot: bool, lockstep: float, sensor: tuple[str, ...] = (), **own: Any
    ) -> None:
        from wavesim_sdk.devices.serve import DeviceOptions

        function(DeviceOptions(name, server, pilot or lockstep > 0.0, lockstep, sensor, click.echo), **own)

    run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # those of its own
    run.__name__ = function.__name__
    for option in (
        click.option("--lockstep", default=0.0, help="Lockstep period in s, as its pilot; 0 = free."),
        click.option(
            "--pilot", is_flag=True, help="No other program drives the body: it comes and goes with this one."
        ),
        address_options,
        click.argument("name"),
    ):
        run = option(run)
    return run


_named = click.option(
    "--sensor", multiple=True, help="A sensor to take, by its name; needed where the body has several of a type."
)


def _device(meaning: str, *more: Any, talks: bool = False, modem: bool = False) -> Any:
    """A command that serves a device of body NAME; the function it is made from gives its kind."""

    def make(function: Any) -> click.Command:
        def run(place: DeviceOptions, tcp: int | None, udp: int | None, link: str, **own: Any) -> None:
            import asyncio

            from wavesim_sdk.devices import ports
            from wavesim_sdk.devices.serve import serve_devices

            if sum((tcp is not None, udp is not None, bool(link))) > 1:
                raise click.UsageError("give one of --tcp, --udp and --link")

            def open_port(receive: ports.Bytes) -> ports.Port:
                if udp is not None:
                    return ports.UdpPort(receive, udp) if talks else ports.UdpServerPort(receive, udp)
                return ports.PtyPort(receive, link) if tcp is None else ports.TcpPort(receive, tcp)

            asyncio.run(serve_devices(place, (function(**own), open_port)))

        for option in (
            click.option("--link", default="", help="Make this symbolic link to the pty."),
            click.option(
                "--udp",
                type=click.IntRange(1 if talks else 0, 65535),
                help="Send datagrams to this port on loopback instead of a pty."
                if talks
                else "Serve a UDP port on loopback (0 = any) instead of a pty.",
            ),
            click.option(
                "--tcp", type=click.IntRange(0, 65535), help="Serve a TCP port on loopback (0 = any) instead of a pty."
            ),
            *(() if modem else (_named,)),
            *reversed(more),
        ):
            run = option(run)
        return device.command(function.__name__, help=meaning)(_at_body(run))

    return make


@_device(
    "The nano-modem of body NAME.",
    click.option("--address", type=click.IntRange(1, 255), required=True, help="Its address, as in the configuration."),
    modem=True,
)
def nanomodem(address: int) -> Any:
    from wavesim_sdk.devices.nanomodem import NanoModemDevice
    from wavesim_sdk.devices.serve import DeviceType

    return DeviceType(
        f"nano-modem {address:03d}",
        lambda b, send, _: NanoModemDevice(b, address, b.welcome.sound_speed, send),
        uses_acoustics=True,
    )


@_device("NMEA 0183 sentences of the sensors of body NAME.", talks=True)
def nmea() -> Any:
    from wavesim_sdk.devices.nmea import TYPES, NmeaDevice
    from wavesim_sdk.devices.serve import DeviceType

    return DeviceType("NMEA 0183", lambda _, send, picked: NmeaDevice(send, picked), TYPES)


@_device("A Blue Robotics Ping over a sensor `echosounder` of body NAME.")
def ping1d() -> Any:
    from wavesim_sdk.devices.ping1d import Ping1DDevice
    from wavesim_sdk.devices.serve import DeviceType

    sensor = "echosounder"
    return DeviceType(
        "Ping", lambda b, send, p: Ping1DDevice(send, b.welcome.sound_speed, p[sensor]), (sensor,), sensor
    )


@_device(
    "A Blue Robotics Ping360 over a sensor `scanner` of body NAME, or over a scanning `sonar`.",
    click.option("--frames", is_flag=True, help="Echoes from the frames of a `sonar` of the kind scanning."),
)
def ping360(frames: bool) -> Any:
    from wavesim_sdk.devices.cerulean import SonarFrameSource
    from wavesim_sdk.devices.ping360 import Ping360Device
    from wavesim_sdk.devices.serve import DeviceType

    sensor = "sonar" if frames else "scanner"

    def make(b: Any, send: Any, p: dict[str, str]) -> Ping360Device:
        new = SonarFrameSource(b, p[sensor], "scanning", "a Ping360").take_frames if frames else None
        return Ping360Device(send, b.welcome.sound_speed, p[sensor], new)

    return DeviceType("Ping360", make, (sensor,), sensor)


def _cerulean(title: str, name: str, kind: str) -> Any:
    from wavesim_sdk.devices import cerulean
    from wavesim_sdk.devices.serve import DeviceType

    def make(b: Any, send: Any, p: dict[str, str]) -> Any:
        return getattr(cerulean, name)(send, cerulean.SonarFrameSource(b, p["sonar"], kind, f"an {title}" if title[0] == "O" else f"a {title}").take_frames)  # fmt: skip

    return DeviceType(title, make, ("sonar",), "sonar")


@_device("A Cerulean Omniscan 450 over a side-scan `sonar` of body NAME.")
def omniscan() -> Any:
    return _cerulean("Omniscan 450", "OmniscanDevice", "sidescan")


@_device("A Cerulean Surveyor 240 over a multibeam `sonar` of body NAME.")
def surveyor() -> Any:
    return _cerulean("Surveyor 240", "SurveyorDevice", "bathymetry")


def _sea_bird(model: int) -> Any:
    from wavesim_sdk.devices.seabird import SeaBirdDevice
    from wavesim_sdk.devices.serve import DeviceType

    return DeviceType(
        f"SBE {model}", lambda _, send, picked: SeaBirdDevice(model, send, picked["ctd"]), ("ctd",), "ctd"
    )


@_device("A Sea-Bird SBE 37 (moored CTD) over a sensor `ctd` of body NAME.")
def sbe37() -> Any:
    return _sea_bird(37)


@_device("A Sea-Bird SBE 45 (thermosalinograph) over a sensor `ctd` of body NAME.")
def sbe45() -> Any:
    return _sea_bird(45)


@_device(
    "A Doppler velocity log (PD0, PD4, PD6) over a sensor `dvl` of body NAME.",
    click.option(
        "--format",
        "form",
        type=click.Choice(["PD0", "PD4", "PD6"]),
        default="PD0",
        show_default=True,
        help="At the start.",
    ),
    click.option(
        "--beam-angle", type=click.IntRange(5, 60), default=30, show_default=True, help="Of the sensor, degrees."
    ),
)
def dvl(form: str, beam_angle: int) -> Any:
    from wavesim_sdk.devices.dvl import TYPES, DvlDevice
    from wavesim_sdk.devices.serve import DeviceType

    return DeviceType(
        "DVL", lambda b, send, p: DvlDevice(send, form, b.welcome.sound_speed, beam_angle, p), TYPES, "dvl"
    )


def _where(text: str) -> Ports:
    """`tcp:PORT`, `udp:PORT` or `pty:LINK`: what makes a port there."""
    from wavesim_sdk.devices import ports

    kind, _, at = text.partition(":")
    if kind == "pty" and at:
        return lambda receive: ports.PtyPort(receive, at)
    if kind == "tcp" and at.isdigit() and int(at) <= 65535:
        return lambda receive: ports.TcpPort(receive, int(at))
    if kind == "udp" and at.isdigit() and 0 < int(at) <= 65535:
        return lambda receive: ports.UdpPort(receive, int(at))
    raise click.BadParameter(f"'{text}' is no place; write tcp:PORT (to listen at), udp:PORT (to send to) or pty:LINK")


def _outlet(option: str, title: str) -> Any:
    return click.option(
        option, multiple=True, metavar="WHERE", help=f"{title}; may be given more than once.",
        callback=lambda _context, _option, texts: tuple(map(_where, texts)),
    )  # fmt: skip


@device.command(
    help="All instruments of boat NAME at once: NMEA 0183, NMEA 2000 and Signal K.\n\nWHERE is tcp:PORT (to listen at), udp:PORT "
    "(to send to) or pty:LINK, all on loopback. Without any: NMEA 0183 at tcp:10110 and udp:10110, NMEA 2000 at tcp:1457, Signal K "
    "at tcp:8375."
)
@_at_body
@_outlet("--nmea0183", "Sentences")
@_outlet("--nmea2000", "CAN frames in Yacht Devices' RAW form, a line each")
@_outlet("--signalk", "Deltas, a line of JSON each")
@_named
def boat(
    place: DeviceOptions, nmea0183: tuple[Ports, ...], nmea2000: tuple[Ports, ...], signalk: tuple[Ports, ...]
) -> None:
    import asyncio

    from wavesim_sdk.devices import nmea
    from wavesim_sdk.devices import nmea2000 as n2k
    from wavesim_sdk.devices import signalk as sk
    from wavesim_sdk.devices.serve import DeviceType, serve_devices

    if not (nmea0183 or nmea2000 or signalk):
        nmea0183, nmea2000, signalk = (
            (_where("tcp:10110"), _where("udp:10110")),
            (_where("tcp:1457"),),
            (_where("tcp:8375"),),
        )
    kinds = (
        (DeviceType("NMEA 0183", lambda _, send, picked: nmea.NmeaDevice(send, picked), nmea.TYPES), nmea0183),
        (DeviceType("NMEA 2000", lambda _, send, picked: n2k.Nmea2000Device(send, picked), n2k.TYPES), nmea2000),
        (DeviceType("Signal K", lambda _, send, picked: sk.SignalKDevice(send, picked), sk.TYPES), signalk),
    )
    asyncio.run(serve_devices(place, *((kind, port) for kind, ports in kinds for port in ports)))
