"""Commands in the `wavesim device` group for scanning sonars."""

from __future__ import annotations

from typing import Any

import click

from wavesim_devices.cli_devices import device_command


@device_command(
    "Emulate a Tritech Micron scanning sonar (DST). The device reads a scanning `sonar` sensor of body NAME.\n\n"
    "The host sets the scan, range, bins, gain, levels and motor speed. The device reports the newest echoes that the "
    "sonar received from the direction of the head; bins beyond the range of the sonar are empty.\n\n"
    "Not modelled: frequency, pulse length and slopes (the real head ignores them as well), lockout, heading offset, "
    "replies in several packets, user data (all zero), baud rate, and messages for tests and programming."
)
def micron() -> Any:
    from wavesim_devices.cerulean import SonarFrameSource
    from wavesim_devices.micron.device import MicronDevice
    from wavesim_devices.serve import DeviceType

    return DeviceType(
        "Micron",
        lambda b, send, p: MicronDevice(
            send, b.welcome.sound_speed, SonarFrameSource(b, p["sonar"], "scanning", "a Micron").take_frames
        ),
        ("sonar",),
        "sonar",
    )


@device_command(
    "Emulate an Imagenex sonar 881A or 852. The device reads a scanning `sonar` sensor of body NAME. The 881A is an "
    "imaging sonar; the 852 is a scanning head or an echo sounder.\n\n"
    "The host sets the scan, range, points, gain, absorption, profile and delay. The device reports the newest echoes "
    "that the sonar received from the direction of the head; points beyond the range of the sonar are empty. The device "
    "does not accept invalid settings, master mode, or 4 or 16 data bits.\n\n"
    "Not modelled: frequency and pulse length (those of the sonar apply), external trigger, baud rate.",
    click.option(
        "--model",
        type=click.Choice(["881A", "852", "852-sounder"]),
        default="881A",
        show_default=True,
        help="Model of the head.",
    ),
)
def imagenex(model: str) -> Any:
    from wavesim_devices.cerulean import SonarFrameSource
    from wavesim_devices.imagenex import MODELS, ImagenexDevice
    from wavesim_devices.serve import DeviceType

    title = MODELS[model].title
    return DeviceType(
        title,
        lambda b, send, p: ImagenexDevice(
            MODELS[model],
            send,
            b.welcome.sound_speed,
            SonarFrameSource(b, p["sonar"], "scanning", f"an {title}").take_frames,
        ),
        ("sonar",),
        "sonar",
    )
