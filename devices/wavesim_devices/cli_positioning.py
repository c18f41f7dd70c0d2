"""Commands in the `wavesim device` group for acoustic positioning systems."""

from __future__ import annotations

from typing import Any

import click

from wavesim_devices.cli_devices import device_command, multi_port_command
from wavesim_sdk.cli_numbers import Quantity


@multi_port_command(
    "Emulate the Water Linked Underwater GPS G2 topside. Body NAME is the vessel. Its transducer has a USBL "
    "`head`, which is the antenna, and the vessel may have `gps`, `ahrs` (compass and level), `ctd` and `temperature` "
    "sensors.\n\n"
    "The locator is a body whose transducer has a `pinger`, and the channel as its `code`. The clocks of the vessel "
    "and the locator must agree.\n\n"
    "Not modelled: the depth sensor of a locator. For D1, S1, P1 and U1, the depth follows from the elevation of the "
    "arrival; for A1, the host supplies it. `external/imu`, `imu/calibrate`, `status_report` and `poi` have no "
    "effect. Also not modelled: the web page, the battery, and the distances from the separate receivers (which "
    "follow from the position).",
    {"http": "tcp:8080"},
    click.option(
        "--ping-period",
        type=Quantity("time", low=0.01),
        default="0.25 s",
        show_default=True,
        help="Period of the locator's `pinger`, as in the configuration. It must be longer than the travel time of the "
        "sound.",
    ),
    click.option(
        "--ping-offset",
        type=Quantity("time"),
        default="0 s",
        show_default=True,
        help="Time offset of the locator's pings: the `offset` of its `pinger` in the configuration.",
    ),
    click.option(
        "--antenna-depth",
        type=Quantity("length", low=0.1, high=10.0),
        default="1 m",
        show_default=True,
        help="Initial depth of the antenna; a host can change it.",
    ),
)
def waterlinked_ugps(ping_period: float, ping_offset: float, antenna_depth: float) -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.waterlinked_ugps.device import TYPES, UnderwaterGps

    return DeviceType(
        "Underwater GPS",
        lambda b, _, picked: UnderwaterGps(b, picked, (ping_period, ping_offset), antenna_depth),
        TYPES,
        uses_acoustics=True,
    )


def _beacons(_context: Any, _option: Any, texts: tuple[str, ...]) -> tuple[Any, ...]:
    from wavesim_devices.usbl import UsblBeacon
    from wavesim_sdk import units

    found: list[UsblBeacon] = []
    for text in texts:
        number, _, how = text.partition("=")
        query, _, code = how.partition("/")
        problem = f"invalid beacon '{text}': use NUMBER=ADDRESS or NUMBER=FREQUENCY[/CODE], such as 1=5 or 1=25kHz/102"
        if not number.isdecimal() or not 1 <= int(number) <= 99 or any(b.number == int(number) for b in found):
            raise click.BadParameter(f"{problem}; NUMBER must be between 1 and 99, and different for each beacon")
        if query.isdecimal() and not code and 0 < int(query) < 2**31:
            found.append(UsblBeacon(int(number), int(query)))
            continue
        try:
            (hertz,) = units.parse(query, "frequency")
        except ValueError:
            raise click.BadParameter(problem) from None
        if hertz <= 0.0 or (code and not (code.isdecimal() and int(code) < 65536)):
            raise click.BadParameter(problem)
        found.append(UsblBeacon(int(number), 0, hertz, int(code) if code else None))
    return tuple(found)


def _point(_context: Any, _option: Any, text: str) -> tuple[float, ...]:
    from wavesim_sdk import units

    try:
        return units.parse(text, "length", 3)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@device_command(
    """Emulate a ship's USBL, which reports beacon positions. The device interrogates the beacons in turn
    and sends telegrams with their positions. The transducer of body NAME needs a `head`, and a `modem` if beacons
    have modems. The device reads the `ahrs` sensor of the body, and its `gps` sensor for geographic positions.

    After each reply it sends the chosen telegrams. PSIMSSB and PSONLLD also report a beacon that did not reply (status
    V). The device sends the position of the ship (number 0) before PTSAG.

    Not emulated: polar and UTM coordinates, PSONALL, PTSAY, PTSAZ, PIXSE, PSONUSBL; responders, telemetry and depth
    sensors of beacons; filters (positions are as measured), estimates of the accuracy (reported as 0.0), and heave. The
    device ignores bytes from the host.""",
    click.option(
        "--beacon",
        "beacons",
        multiple=True,
        required=True,
        metavar="NUMBER=HOW",
        callback=_beacons,
        help="Beacon, as NUMBER=ADDRESS (the address of its modem) or NUMBER=FREQUENCY[/CODE] (the query to a "
        "transponder). Repeatable.",
    ),
    click.option(
        "--telegram",
        "telegrams",
        multiple=True,
        type=click.Choice(["PSIMSSB", "PSIMSNS", "PTSAG", "PTSAX", "PTSAH", "PSONLLD"]),
        default=("PSIMSSB",),
        show_default=True,
        help="Telegram to send. Repeatable.",
    ),
    click.option(
        "--period",
        type=Quantity("time", low=0.05),
        default="2 s",
        show_default=True,
        help="Time from one interrogation to the next. It must be longer than the time that a query and its reply "
        "take.",
    ),
    click.option(
        "--orientation",
        type=click.Choice(["H", "E"]),
        default="H",
        show_default=True,
        help="Orientation of the coordinate system in PSIMSSB: H = x to starboard and y forward, E = x east and y north.",
    ),
    click.option(
        "--head-offset",
        default="0 0 0 m",
        show_default=True,
        callback=_point,
        help="Position of the head along the body axes, measured horizontally from the GPS antenna and vertically from "
        "the waterline.",
    ),
    talks=True,
)
def usbl(**options: Any) -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.usbl import TYPES, ShipUsbl, UsblOptions

    chosen = UsblOptions(**options)
    return DeviceType(
        "USBL", lambda b, send, picked: ShipUsbl(b, send, picked, chosen), TYPES, "ahrs", uses_acoustics=True
    )
