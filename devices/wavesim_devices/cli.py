"""``wavesim device`` serves virtual instruments that existing software can read; ``wavesim record`` writes sonar survey
files and sound files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_devices.cli_devices import address_option, at_body, device, device_command, outlet_option, sensor_option
from wavesim_devices.cli_traffic import PLACES, where
from wavesim_sdk.cli_commands import server_option, unused
from wavesim_sdk.terminal_text import echo

if TYPE_CHECKING:
    from wavesim_devices.ports import OpenPort
    from wavesim_devices.serve import DeviceOptions


@device_command(
    "Serve the nano-modem of body NAME.",
    address_option(255),
    modem=True,
)
def nanomodem(address: int) -> Any:
    from wavesim_devices.nanomodem import NanoModemDevice
    from wavesim_devices.serve import DeviceType

    return DeviceType(
        f"nano-modem {address:03d}",
        lambda b, send, _: NanoModemDevice(b, address, b.welcome.sound_speed, send),
        uses_acoustics=True,
    )


def _talker(_context: click.Context, _option: click.Parameter, text: str) -> str:
    if len(text) != 2 or not (text.isascii() and text.isalnum() and text == text.upper()) or text == "GP":
        raise click.BadParameter(
            f"invalid talker '{text}': use two capital letters other than GP, such as II, HE or SD"
        )
    return text


talker_option = click.option(
    "--talker",
    default="II",
    show_default=True,
    callback=_talker,
    help="Talker ID of the NMEA 0183 sentences, except those of the satellite receiver (GP) and of AIS.",
)
clock_option = click.option(
    "--clock",
    type=click.Choice(["simulation", "wall"]),
    default="simulation",
    show_default=True,
    help="Clock for all times that are sent: the simulation clock, which starts on 1 January 2026, or the clock of "
    "this machine.",
)


@device_command("Send NMEA 0183 sentences for the sensors of body NAME.", talker_option, clock_option, talks=True)
def nmea(talker: str, clock: str) -> Any:
    from wavesim_devices.nmea import CLOCKS, TYPES, NmeaDevice
    from wavesim_devices.serve import DeviceType

    return DeviceType("NMEA 0183", lambda _, send, picked: NmeaDevice(send, picked, talker, CLOCKS[clock]), TYPES)


@device_command("Emulate a Blue Robotics Ping sonar. The device reads an `echosounder` sensor of body NAME.")
def ping1d() -> Any:
    from wavesim_devices.ping1d import Ping1DDevice
    from wavesim_devices.serve import DeviceType

    sensor = "echosounder"
    return DeviceType(
        "Ping", lambda b, send, p: Ping1DDevice(send, b.welcome.sound_speed, p[sensor]), (sensor,), sensor
    )


@device_command(
    "Emulate a Blue Robotics Ping360 scanning sonar. The device reads a `scanner` sensor of body NAME or, with "
    "--frames, a scanning `sonar` sensor.",
    click.option(
        "--frames",
        is_flag=True,
        help="Take the echoes from the frames of a scanning `sonar` instead of from a `scanner`.",
    ),
)
def ping360(frames: bool) -> Any:
    from wavesim_devices.cerulean import SonarFrameSource
    from wavesim_devices.ping360 import Ping360Device
    from wavesim_devices.serve import DeviceType

    sensor = "sonar" if frames else "scanner"

    def make(b: Any, send: Any, p: dict[str, str]) -> Ping360Device:
        new = SonarFrameSource(b, p[sensor], "scanning", "a Ping360").take_frames if frames else None
        return Ping360Device(send, b.welcome.sound_speed, p[sensor], new)

    return DeviceType("Ping360", make, (sensor,), sensor)


def _cerulean(title: str, name: str, kind: str) -> Any:
    from wavesim_devices import cerulean
    from wavesim_devices.serve import DeviceType

    def make(b: Any, send: Any, p: dict[str, str]) -> Any:
        return getattr(cerulean, name)(
            send,
            cerulean.SonarFrameSource(
                b, p["sonar"], kind, f"an {title}" if title[0] == "O" else f"a {title}"
            ).take_frames,
        )

    return DeviceType(title, make, ("sonar",), "sonar")


@device_command("Emulate a Cerulean Omniscan 450. The device reads a side-scan `sonar` sensor of body NAME.")
def omniscan() -> Any:
    return _cerulean("Omniscan 450", "OmniscanDevice", "sidescan")


@device_command("Emulate a Cerulean Surveyor 240. The device reads a multibeam `sonar` sensor of body NAME.")
def surveyor() -> Any:
    return _cerulean("Surveyor 240", "SurveyorDevice", "bathymetry")


def _sea_bird(model: int) -> Any:
    from wavesim_devices.seabird import SeaBirdDevice
    from wavesim_devices.serve import DeviceType

    return DeviceType(
        f"SBE {model}", lambda _, send, picked: SeaBirdDevice(model, send, picked["ctd"]), ("ctd",), "ctd"
    )


@device_command("Emulate a Sea-Bird SBE 37, a moored CTD. The device reads a `ctd` sensor of body NAME.")
def sbe37() -> Any:
    return _sea_bird(37)


@device_command("Emulate a Sea-Bird SBE 45 thermosalinograph. The device reads a `ctd` sensor of body NAME.")
def sbe45() -> Any:
    return _sea_bird(45)


@device_command(
    "Emulate a Doppler velocity log (PD0, PD4 or PD6). The device reads a `dvl` sensor of body NAME.",
    click.option(
        "--format",
        "form",
        type=click.Choice(["PD0", "PD4", "PD6"]),
        default="PD0",
        show_default=True,
        help="Initial output format.",
    ),
    click.option(
        "--beam-angle",
        type=click.IntRange(5, 60),
        default=30,
        show_default=True,
        help="Beam angle of the sensor in degrees.",
    ),
)
def dvl(form: str, beam_angle: int) -> Any:
    from wavesim_devices.dvl import TYPES, DvlDevice
    from wavesim_devices.serve import DeviceType

    return DeviceType(
        "DVL", lambda b, send, p: DvlDevice(send, form, b.welcome.sound_speed, beam_angle, p), TYPES, "dvl"
    )


@device.command(
    help=f"Serve NMEA 0183, NMEA 2000 and Signal K for boat NAME.\n\nWHERE is {PLACES}, all on loopback. "
    "Default: NMEA 0183 on tcp:10111 and udp:10110, NMEA 2000 on tcp:1457, Signal K on tcp:8376."
    " These defaults leave tcp:10110 and tcp:8375 to a Signal K server on the same machine."
)
@at_body
@outlet_option("--nmea0183", "Output for NMEA 0183 sentences")
@outlet_option("--nmea2000", "Output for CAN frames in Yacht Devices RAW format, one per line")
@outlet_option("--signalk", "Output for Signal K deltas in JSON, one per line")
@talker_option
@clock_option
@sensor_option
def boat(
    place: DeviceOptions,
    nmea0183: tuple[OpenPort, ...],
    nmea2000: tuple[OpenPort, ...],
    signalk: tuple[OpenPort, ...],
    talker: str,
    clock: str,
) -> None:
    import asyncio

    from wavesim_devices import nmea
    from wavesim_devices import nmea2000 as n2k
    from wavesim_devices import signalk as sk
    from wavesim_devices.serve import DeviceType, serve_devices

    if not (nmea0183 or nmea2000 or signalk):
        nmea0183, nmea2000, signalk = (
            (where("tcp:10111"), where("udp:10110")),
            (where("tcp:1457"),),
            (where("tcp:8376"),),
        )
    now = nmea.CLOCKS[clock]
    kinds = (
        (DeviceType("NMEA 0183", lambda _, send, p: nmea.NmeaDevice(send, p, talker, now), nmea.TYPES), nmea0183),
        (DeviceType("NMEA 2000", lambda _, send, p: n2k.Nmea2000Device(send, p, now), n2k.TYPES), nmea2000),
        (DeviceType("Signal K", lambda _, send, p: sk.SignalKDevice(send, p, now), sk.TYPES), signalk),
    )
    outlets = [(kind, port) for kind, ports in kinds for port in ports]
    asyncio.run(serve_devices(place, *((kind, {f"port{n}": port}) for n, (kind, port) in enumerate(outlets, start=1))))


@click.command()
@click.argument("body")
@click.argument("instrument")
@click.argument("file", type=click.Path(path_type=Path))
@server_option
@click.option(
    "--frames", default=0, help="Number of frames after which to stop; 0 (default) = record until the run ends."
)
@click.option(
    "--log",
    type=click.Path(path_type=Path),
    help="Read the blocks of a hydrophone from this log instead of a server.",
)
def record(body: str, instrument: str, file: Path, server: str, frames: int, log: Path | None) -> None:
    """Write frames to a survey file or a sound file.

    FILE receives the frames from INSTRUMENT on BODY. The name of FILE must end in .xtf for a side-scan sonar, in .kmall
    for a multibeam echosounder, and in .wav, .flac or .npz for a hydrophone. A JSON file beside a sound file contains its
    sampling rate, its scale and the time of its first sample.
    """
    from wavesim_devices.sonar_formats import record as recorder

    if frames < 0:
        raise click.UsageError(f"--frames must be at least 0, got {frames}")
    if log is not None:
        unused("with --log", "server")
        written = recorder.record_log(log, body, instrument, file, frames)
        echo(f"{file}: {written} blocks written", err=True)
        return
    written, lost = recorder.record(server, body, instrument, file, frames)
    echo(f"{file}: {written} frames written, {lost} lost because they arrived too fast", err=True)


def commands() -> list[click.Command]:
    """Return the commands in this package."""
    return [device, record]


from wavesim_devices import cli_further_modems as cli_further_modems  # noqa: E402
from wavesim_devices import cli_modems as cli_modems  # noqa: E402  # the modules register their commands
from wavesim_devices import cli_navigation as cli_navigation  # noqa: E402
from wavesim_devices import cli_own as cli_own  # noqa: E402
from wavesim_devices import cli_passive_sonar as cli_passive_sonar  # noqa: E402
from wavesim_devices import cli_positioning as cli_positioning  # noqa: E402
from wavesim_devices import cli_scanning_sonars as cli_scanning_sonars  # noqa: E402
from wavesim_devices import cli_sonar_3d as cli_sonar_3d  # noqa: E402
from wavesim_devices import cli_sound as cli_sound  # noqa: E402
from wavesim_devices import cli_tcp_modems as cli_tcp_modems  # noqa: E402
