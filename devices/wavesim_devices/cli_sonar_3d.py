"""Command of `wavesim device` for the Water Linked Sonar 3D-15."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wavesim_devices.cli_devices import at_body, device, port_option, sensor_option
from wavesim_devices.cli_traffic import PLACES

if TYPE_CHECKING:
    from wavesim_devices.ports import Accept, OpenPort, Port
    from wavesim_devices.serve import DeviceOptions


@device.command(
    help='Emulate a Water Linked Sonar 3D-15. The device reads a 3D `sonar` of body NAME (`preset="sonar-3d15-low"`), '
    "and its `imu` sensor for ImuBatch messages.\n\n"
    "As on the real instrument, acoustics and UDP output are off until a host switches them on over HTTP. Datagrams go "
    "only to loopback: the multicast group 224.0.0.96 or an address that the host sets.\n\n"
    "The configuration sets the field of view and the rate. A second sonar (`--high-frequency`) enables the mode "
    "`high-frequency`.\n\n"
    "Not modelled: shaded images, NTP (never synchronised), the internal temperature, the automatic speed of sound "
    "(always true; `salinity` has no effect), the web page, and compression of RIP2 packets (they contain Snappy "
    f"literals).\n\nWHERE is {PLACES}, all on loopback."
)
@at_body
@port_option("http", "tcp:8081", can_be_off=False)
@click.option(
    "--multicast-port",
    type=click.IntRange(1, 65535),
    default=4747,
    show_default=True,
    help="UDP port of the multicast group. Use a different port for each additional sonar on this machine.",
)
@click.option(
    "--high-frequency",
    metavar="SENSOR",
    default="",
    help='Name of the 3D `sonar` for the mode `high-frequency` (`preset="sonar-3d15-high"`).',
)
@click.option(
    "--protocol",
    type=click.Choice(["RIP2", "RIP1"]),
    default="RIP2",
    show_default=True,
    help="Version of the Range Image Protocol; instrument releases before 1.6 send RIP1.",
)
@sensor_option
def waterlinked_sonar(
    place: DeviceOptions, http: OpenPort, multicast_port: int, high_frequency: str, protocol: str
) -> None:
    import asyncio

    from wavesim_devices.ports import UdpPort, UdpTarget
    from wavesim_devices.serve import DeviceType, serve_devices
    from wavesim_devices.waterlinked_sonar.device import GROUP, HIGH, LOW, TYPES, Sonar3D15

    target = UdpTarget()

    def make(broker: Any, _: Any, picked: dict[str, str]) -> Sonar3D15:
        names = {LOW: picked["sonar"], HIGH: high_frequency}
        sonars = {mode: name for mode, name in names.items() if name and (mode == HIGH or name != high_frequency)}
        return Sonar3D15(broker, sonars, picked.get("imu", ""), target, (GROUP, multicast_port), protocol)

    def open_udp(accept: Accept) -> Port:
        return UdpPort(accept, multicast_port, target)

    ports: dict[str, OpenPort] = {"http": http, "udp": open_udp}
    asyncio.run(serve_devices(place, (DeviceType("Sonar 3D-15", make, TYPES, "sonar"), ports)))
