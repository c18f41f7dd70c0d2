"""Command of `wavesim device` for the converters of software modems (UASP2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wavesim_devices.cli_devices import at_body, device, port_option, sensor_option
from wavesim_devices.cli_traffic import PLACES
from wavesim_sdk.cli_numbers import Quantity

if TYPE_CHECKING:
    from wavesim_devices.ports import Accept, OpenPort, Port
    from wavesim_devices.serve import DeviceOptions


@device.command(
    help="Emulate the converters of a software modem (UASP2).\n\n"
    "Software modems (such as UnetStack 5) receive the samples of a `hydrophone` of body NAME, and play their own "
    "samples through its transducer. Commands are JSON lines over TCP. The samples go to the UDP port on loopback "
    "that a client sets with `istart`; a second `istart` moves them.\n\n"
    "Not emulated: `ostop` (a signal is always sent completely), further sampling rates of the hydrophone, several "
    f"output channels.\n\nWHERE is {PLACES}, all on loopback."
)
@at_body
@port_option("command", "tcp:9809", can_be_off=False)
@click.option(
    "--output-level",
    type=Quantity("level"),
    default=185.0,
    show_default=True,
    help="Source level in dB of a sine between -1 and 1.",
)
@click.option(
    "--output-rate",
    type=click.IntRange(8000, 500_000),
    default=96000,
    show_default=True,
    help="Initial sampling rate for transmission in Hz.",
)
@sensor_option
def uasp(place: DeviceOptions, command: OpenPort, output_level: float, output_rate: int) -> None:
    import asyncio

    from wavesim_devices.ports import UdpPort, UdpTarget
    from wavesim_devices.serve import DeviceType, serve_devices
    from wavesim_devices.uasp.device import DATA_PORT, UaspDevice, UaspModel

    target = UdpTarget()
    sensor = "hydrophone"

    def make(broker: Any, _: Any, picked: dict[str, str]) -> UaspDevice:
        return UaspDevice(broker, picked[sensor], target, UaspModel(output_level, output_rate), place.report)

    def open_udp(accept: Accept) -> Port:
        return UdpPort(accept, DATA_PORT, target)

    ports: dict[str, OpenPort] = {"command": command, "data": open_udp}
    asyncio.run(serve_devices(place, (DeviceType("UASP2", make, (sensor,), sensor, uses_acoustics=True), ports)))
