"""Further commands of `wavesim device` for acoustic modems."""

from __future__ import annotations

from typing import Any

import click

from wavesim_devices.cli_devices import multi_port_command
from wavesim_devices.cli_tcp_modems import address_option
from wavesim_sdk.cli_numbers import Quantity


@multi_port_command(
    "Emulate a Popoto modem at its command port. The device uses the transducer of body NAME, which needs a `modem` with "
    "a payload of 256 bytes.\n\n"
    "Data packets at the rates of the ten payload modes, ranging, power, parameters, exclusive access.\n\n"
    "Not emulated: the shell at the serial port, data and audio ports, streaming, recording, range data, precision "
    "ranging, remote commands, parameters other than LocalID, RemoteID, PayloadMode, TxPowerWatts and CarrierTxMode "
    "(each is answered with an error). LocalID can only be --address.",
    {"command": "tcp:17000"},
    address_option(254),
    click.option(
        "--carrier",
        type=Quantity("frequency", low=1.0),
        default="30 kHz",
        show_default=True,
        help="Carrier of the modem, as in the configuration.",
    ),
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
        help="Highest TxPowerWatts in W, at which the source level is that of the configuration.",
    ),
    modem=True,
)
def popoto(**values: Any) -> Any:
    from wavesim_devices.popoto import PopotoModel, PopotoModem
    from wavesim_devices.serve import DeviceType

    model = PopotoModel(**values)
    return DeviceType(f"Popoto modem {model.address}", lambda b, _send, _: PopotoModem(b, model), uses_acoustics=True)
