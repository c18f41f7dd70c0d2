"""Further commands in the `wavesim device` group for acoustic modems."""

from __future__ import annotations

from typing import Any

import click

from wavesim_devices.cli_devices import address_option, carrier_option, device_command, multi_port_command
from wavesim_sdk.cli_numbers import Quantity


@multi_port_command(
    "Emulate a Popoto modem on its command port. The device uses the transducer of body NAME, which needs a `modem` "
    "with a payload of 256 bytes.\n\n"
    "Emulated: data packets at the rates of the ten payload modes, ranging, power, parameters and exclusive "
    "access.\n\n"
    "Not emulated: the shell on the serial port, data and audio ports, streaming, recording, range data, precision "
    "ranging, remote commands, and parameters other than LocalID, RemoteID, PayloadMode, TxPowerWatts and "
    "CarrierTxMode (the device answers each of these with an error). LocalID can only be set to the value of "
    "--address.",
    {"command": "tcp:17000"},
    address_option(254),
    carrier_option("30 kHz"),
    click.option(
        "--source-level",
        type=Quantity("level"),
        default="180 dB",
        show_default=True,
        help="Source level at full power, as in the configuration.",
    ),
    click.option(
        "--full-power",
        type=Quantity(low=0.1, high=1000.0),
        default=10.0,
        show_default=True,
        help="Maximum TxPowerWatts in W, at which the source level equals that in the configuration.",
    ),
    modem=True,
)
def popoto(**values: Any) -> Any:
    from wavesim_devices.popoto import PopotoModel, PopotoModem
    from wavesim_devices.serve import DeviceType

    model = PopotoModel(**values)
    return DeviceType(f"Popoto modem {model.address}", lambda b, _send, _: PopotoModem(b, model), uses_acoustics=True)


@device_command(
    """Emulate a Water Linked M64 modem. The device uses the transducer of body NAME, which needs a `modem` with a
    payload of 8 bytes and `recharge="0 s"`.

    Two modems on one channel form a link: role a sends a packet every second, and role b answers it. Each packet has 8
    bytes.

    Not emulated: channel changes (the device refuses any channel other than --channel), bit errors (reported as
    0.0, because the medium loses whole packets), the baud rate, and the synchronisation packet of zeros.""",
    click.option(
        "--role",
        type=click.Choice(["a", "b"]),
        default="b",
        show_default=True,
        help="Initial role of the modem; a host can change it.",
    ),
    click.option(
        "--channel",
        type=click.IntRange(1, 7),
        default=4,
        show_default=True,
        help="Number of the channel in the band of the transducer.",
    ),
    modem=True,
)
def m64(role: str, channel: int) -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.waterlinked_m64 import M64Modem

    return DeviceType(
        f"M64 modem (role {role})", lambda b, send, _: M64Modem(b, send, role, channel), uses_acoustics=True
    )


@device_command(
    """Emulate a Teledyne Benthos ATM-900 modem. The device uses the transducer of body NAME, which needs a `modem` with a
    payload of 256 bytes and `recharge="0 s"`.

    Emulated: command mode and online mode, packets of up to 4096 bytes at rate codes 2 to 13, and ranges.
    LocalAddr can only be set to the value of --address.

    Not emulated: low power and wake-up tones, acknowledgements and repetitions (DataRetry is 0), bad data, the
    multipath delay, gain and channel errors of received packets (reported as 0), output other than hexadecimal, and the
    clock. P1Prompt, Verbose, WakeTones, ShowBadData and OpMode are stored, but have no effect.""",
    address_option(254),
    carrier_option("11.5 kHz"),
    modem=True,
)
def benthos(address: int, carrier: float) -> Any:
    from wavesim_devices.benthos import BenthosModem
    from wavesim_devices.serve import DeviceType

    return DeviceType(
        f"Benthos modem {address}", lambda b, send, _: BenthosModem(b, send, address, carrier), uses_acoustics=True
    )
