"""Commands in the `wavesim device` group for modems with TCP ports."""

from __future__ import annotations

from typing import Any

import click

from wavesim_devices.cli_devices import address_option, multi_port_command
from wavesim_sdk.cli_numbers import Quantity

source_level_option = click.option(
    "--source-level",
    type=Quantity("level"),
    default=188.0,
    show_default=True,
    help="Source level at full power in dB, as in the configuration.",
)


def _nodes(_context: Any, _option: Any, texts: tuple[str, ...]) -> dict[str, int]:
    addresses = {}
    for text in texts:
        name, _, address = text.partition("=")
        if not name or not address.isdecimal() or not 0 < int(address) < 2**31:
            raise click.BadParameter(f"invalid node '{text}': use NAME=ADDRESS, such as buoy=31")
        addresses[name] = int(address)
    return addresses


@multi_port_command(
    "Emulate a UnetStack modem for UnetSocket clients.\n\n"
    "The agents are node, phy, uwlink, transport, router, ranging and arp. transport and router serve a single hop. With "
    "--baseband, phy also transmits signals and records them with a `hydrophone`. Not emulated: routes, fragments, "
    "preambles of baseband signals, remote access, scheduler, priority and robustness of datagrams, and notifications "
    "about lost frames. The address cannot be changed.",
    {"fjage": "tcp:1100"},
    address_option(2**31 - 1),
    click.option(
        "--payload",
        type=click.IntRange(4, 256),
        default=64,
        show_default=True,
        help="Maximum payload of a packet in bytes, as in the configuration.",
    ),
    source_level_option,
    click.option(
        "--node", multiple=True, metavar="NAME=ADDRESS", callback=_nodes, help="Address of another node. Repeatable."
    ),
    click.option(
        "--baseband", is_flag=True, help="Offer the baseband service, which needs a `hydrophone` on body NAME."
    ),
    click.option(
        "--carrier",
        type=Quantity("frequency", low=1.0),
        default="25 kHz",
        show_default=True,
        help="Initial carrier frequency of the baseband service.",
    ),
)
def unet(address: int, payload: int, source_level: float, node: dict[str, int], baseband: bool, carrier: float) -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.unet.device import BasebandOptions, UnetDevice

    sensor = "hydrophone"

    def make(broker: Any, _: Any, picked: dict[str, str]) -> UnetDevice:
        options = BasebandOptions(picked[sensor], carrier) if baseband else None
        return UnetDevice(broker, address, payload, source_level, node, baseband=options)

    return DeviceType(
        f"UnetStack modem {address}",
        make,
        (sensor,) if baseband else (),
        sensor if baseband else "",
        uses_acoustics=True,
    )


def modem_options(payload: int) -> tuple[Any, ...]:
    """Return the options that describe a modem and must agree with the configuration. ``payload`` is the default
    maximum payload in bytes.
    """
    return (
        click.option(
            "--payload",
            type=click.IntRange(16, 256),
            default=payload,
            show_default=True,
            help="Maximum payload of a packet in bytes, as in the configuration.",
        ),
        click.option(
            "--bit-rate",
            type=Quantity(low=0.1),
            default=640.0,
            show_default=True,
            help="Bit rate in bit/s, as in the configuration.",
        ),
        click.option(
            "--preamble",
            type=Quantity("time"),
            default=0.03,
            show_default=True,
            help="Duration of the preamble in s, as in the configuration.",
        ),
        click.option(
            "--frequency",
            type=Quantity("frequency"),
            default=25e3,
            show_default=True,
            help="Carrier frequency in Hz, as in the configuration.",
        ),
        source_level_option,
    )


@multi_port_command(
    "Emulate an EvoLogics S2C modem or USBL, in NET mode.\n\n"
    "Supported: instant messages (ack, noack, force, at a given time), piggyback messages, bursts, travel times and USBL "
    "notices. The settings !L, !RC, !RI, !RP, !CA, @ZU and @ZX take effect. !G, !RT, !ZI, !AM and !C are accepted "
    "without effect. Not emulated: AT (data) mode, link set-up before a burst, noise recording, failed receptions. "
    "The address cannot be changed. RSSI and integrity are computed from the received level and the signal-to-noise "
    "ratio by assumed formulas.",
    {"net": "tcp:9200"},
    address_option(254),
    *modem_options(128),
    click.option(
        "--usbl",
        is_flag=True,
        help="Send USBL notices. The transducer needs a USBL head, and the body needs an `ahrs` sensor as its compass.",
    ),
    click.option(
        "--multiline",
        type=click.Choice(["vendor", "dune"]),
        default="vendor",
        show_default=True,
        help="Format of the answers to ?P, ?S and &V: several lines that end with an empty line, or a single line.",
    ),
)
def s2c(usbl: bool, multiline: str, **values: Any) -> Any:
    from wavesim_devices.s2c.device import S2cDevice, S2cModel
    from wavesim_devices.serve import DeviceType

    model = S2cModel(multiline=multiline == "vendor", **values)
    return DeviceType(
        f"S2C modem {model.address}",
        lambda b, _send, picked: S2cDevice(b, model, picked.get("ahrs", "")),
        ("ahrs",) if usbl else (),
        "ahrs" if usbl else "",
        uses_acoustics=True,
    )
