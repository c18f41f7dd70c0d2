"""Command of `wavesim device` for a passive sonar board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavesim_devices.cli_devices import at_body, device, port_option, sensor_option
from wavesim_devices.cli_traffic import PLACES

if TYPE_CHECKING:
    from wavesim_devices.ports import OpenPort
    from wavesim_devices.serve import DeviceOptions


@device.command(
    help="Emulate a Sylphase passive sonar board. The device streams the samples of a `hydrophone` of body NAME that has "
    "four elements.\n\n"
    "The stream has no header: groups of four signed 16-bit integers, big-endian, one for each element. The sampling rate "
    "is that of the hydrophone (1.2 MHz on the real board). Silence replaces samples that are lost on the way.\n\n"
    f"WHERE is {PLACES}, all on loopback."
)
@at_body
@port_option("stream", "tcp:10001", can_be_off=False)
@sensor_option
def sylphase(place: DeviceOptions, stream: OpenPort) -> None:
    import asyncio

    from wavesim_devices.serve import DeviceType, serve_devices
    from wavesim_devices.sylphase import SylphaseStream

    kind = DeviceType(
        "Sylphase board",
        lambda broker, send, picked: SylphaseStream(broker, picked["hydrophone"], send),
        ("hydrophone",),
        "hydrophone",
    )
    asyncio.run(serve_devices(place, (kind, {"stream": stream})))
