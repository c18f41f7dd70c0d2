"""Commands in the `wavesim device` group for acoustic modems."""

from __future__ import annotations

from typing import Any

import click

from wavesim_devices.cli_devices import address_option, carrier_option, device_command


@device_command(
    """Emulate a WHOI Micro-Modem. The device uses the transducer of body NAME, which needs a `modem`.

    Emulated: data at rates 0 to 6, acoustic acknowledgements, polls, mini-packets, flexible packets (CCTDP), two-way
    ranges, and narrow-band, digital (REMUS) and generic long-baseline ranging. SRC can only be set to the value of --address.

    Not emulated: sleep and hibernation, parameters of CCCFG other than SRC, CTO, TAT, REV, CST, XST, RXP, RXD,
    TXP and TXF (they are stored, but have no effect), CCPGT bandwidths, the CCPNT flag, base64, and the impulse
    responses of CAUSB2. The device sends CARXP with the first frame of a packet.""",
    address_option(126),
    click.option(
        "--generation",
        type=click.IntRange(1, 2),
        default=2,
        show_default=True,
        help="Generation of the modem: 1 = Micro-Modem (CACST without version and date), 2 = Micro-Modem 2.",
    ),
    carrier_option("25 kHz"),
    modem=True,
)
def micromodem(address: int, generation: int, carrier: float) -> Any:
    from wavesim_devices.micromodem.device import MicroModemDevice, ModemProperties
    from wavesim_devices.serve import DeviceType

    properties = ModemProperties(address, generation, carrier)
    return DeviceType(
        f"Micro-Modem {address}",
        lambda b, send, _: MicroModemDevice(b, send, properties, b.welcome.sound_speed),
        uses_acoustics=True,
    )


@device_command(
    """Emulate a Blueprint SeaTrac X150 (USBL) or X110 beacon. The device uses the transducer of body NAME, which needs
    a `modem` and, for an X150, also a `head`. The device reads `pressure`, `ahrs` and `battery` sensors of the body, if
    there are any.

    Emulated: PING, ECHO, NAV and DAT exchanges with their queues, STATUS, SETTINGS and reboots. The beacon identifier
    in the settings can only be set to the value of --beacon.

    Not emulated: DEX, NAV_STATUS, calibration, XCVR_ANALYSE (the device answers all of these with status 1), and
    firmware updates. These settings are stored, but have no effect: baud rates, network, AHRS, salinity, pressure
    offset, fixed attitude, position filter, response time (the `turn_around` of the transducer applies), and diagnostic
    messages other than XCVR_FIX.""",
    click.option(
        "--beacon",
        type=click.IntRange(1, 15),
        required=True,
        help="Identifier of the beacon, equal to the address of the modem in the configuration.",
    ),
    click.option(
        "--model",
        type=click.Choice(["X150", "X110"], case_sensitive=False),
        default="X150",
        show_default=True,
        help="Model of the beacon.",
    ),
)
def seatrac(beacon: int, model: str) -> Any:
    from wavesim_devices.seatrac.device import TYPES, SeaTracDevice
    from wavesim_devices.serve import DeviceType

    return DeviceType(
        f"SeaTrac {model} {beacon}",
        lambda b, send, picked: SeaTracDevice(b, send, beacon, model, b.welcome.sound_speed, picked),
        TYPES,
        uses_acoustics=True,
    )
