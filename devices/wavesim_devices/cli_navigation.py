"""Commands of `wavesim device` for navigation sensors."""

from __future__ import annotations

from typing import Any

import click

from wavesim_devices.cli_devices import multi_port_command


@multi_port_command(
    "Emulate a Water Linked DVL A50 or A125. The device reads a `dvl` sensor of body NAME, and its `ahrs` and `ctd`.\n\n"
    "Not modelled: heating, the gap limit of 10 ms between serial characters, the LED (`dark_mode_enabled` is only "
    "stored), NTP (no server ever answers), levels of the echoes (nominal).",
    {"json": "tcp:16171", "pd6": "tcp:1037", "pd4": "tcp:1038", "http": "tcp:8080", "serial": "off"},
    click.option("--variant", type=click.Choice(["A50", "A125"]), default="A50", show_default=True, help="Variant."),
    click.option(
        "--yaw-drift",
        type=click.FloatRange(-10.0, 10.0),
        default=0.2,
        show_default=True,
        help="Yaw drift of the dead reckoning in deg/min; the data sheet states 0.1 to 0.3 after calibration.",
    ),
)
def waterlinked_dvl(variant: str, yaw_drift: float) -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.waterlinked_dvl.device import TYPES, WaterLinkedDvl
    from wavesim_devices.waterlinked_dvl.settings import VARIANTS

    return DeviceType(
        f"Water Linked DVL {variant}",
        lambda b, _, p: WaterLinkedDvl(VARIANTS[variant], b.welcome.sound_speed, p, yaw_drift / 60.0),
        TYPES,
        "dvl",
    )
