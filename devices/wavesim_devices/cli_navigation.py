"""Commands in the `wavesim device` group for navigation sensors."""

from __future__ import annotations

import math
from typing import Any

import click

from wavesim_devices.cli_devices import device_command, multi_port_command
from wavesim_sdk.cli_numbers import Quantity


@multi_port_command(
    "Emulate a Water Linked DVL A50 or A125. The device reads the `dvl`, `ahrs` and `ctd` sensors of body NAME.\n\n"
    "Not modelled: heating, the gap limit of 10 ms between serial characters, the LED (`dark_mode_enabled` is only "
    "stored), NTP (no server ever answers), and the levels of the echoes (nominal values).",
    {"json": "tcp:16171", "pd6": "tcp:1037", "pd4": "tcp:1038", "http": "tcp:8080", "serial": "off"},
    click.option(
        "--variant", type=click.Choice(["A50", "A125"]), default="A50", show_default=True, help="Variant of the DVL."
    ),
    click.option(
        "--yaw-drift",
        type=Quantity("angular rate", "deg/min", low=-10.0, high=10.0),
        default=0.2,
        show_default=True,
        help="Yaw drift of the dead reckoning in deg/min; the data sheet states 0.1 to 0.3 after calibration.",
    ),
)
def waterlinked_dvl(variant: str, yaw_drift: float) -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.waterlinked_dvl.device import WaterLinkedDvl
    from wavesim_devices.waterlinked_dvl.instrument import TYPES
    from wavesim_devices.waterlinked_dvl.settings import VARIANTS

    return DeviceType(
        f"Water Linked DVL {variant}",
        lambda b, _, p: WaterLinkedDvl(VARIANTS[variant], b.welcome.sound_speed, p, yaw_drift / 60.0),
        TYPES,
        "dvl",
    )


@device_command(
    "Emulate a u-blox M8 receiver (UBX 18 and NMEA). The device reads a `gps` sensor of body NAME.\n\n"
    "Like the real receiver, the device initially sends NMEA once per second; a host enables UBX messages with "
    "CFG-MSG.\n\n"
    "Not modelled: the positions of satellites (NAV-SAT has nominal values), the vertical velocity, the baud rate, "
    "the dynamic model, CFG-VALSET, sentences other than PUBX,00 and PUBX,40, and corrections.",
    click.option(
        "--message",
        "messages",
        multiple=True,
        help="UBX message to send from the start, such as NAV-PVT. Repeatable.",
    ),
    click.option(
        "--reacquisition",
        type=Quantity("time"),
        default=2.0,
        show_default=True,
        help="Time in s from surfacing to the first fix.",
    ),
)
def ublox(messages: tuple[str, ...], reacquisition: float) -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.ublox import MESSAGES, UbloxReceiver

    for name in messages:
        if name not in MESSAGES:
            raise click.BadParameter(f"unknown message '{name}': use one of {', '.join(MESSAGES)}")
    return DeviceType(
        "u-blox receiver", lambda _, send, p: UbloxReceiver(send, p["gps"], reacquisition, messages), ("gps",), "gps"
    )


@device_command(
    "Emulate a Keller 33X pressure transmitter (Keller bus). The device reads a `pressure` sensor of body NAME, and its "
    "`temperature` or `ctd` sensor.\n\n"
    "Not modelled: functions other than 48, 69, 73, 74 and 95 (exception 1), channels other than P1, T and TOB1 "
    "(exception 2), the baud rate, and the gaps between bytes.",
    click.option(
        "--address",
        type=click.IntRange(1, 249),
        default=1,
        show_default=True,
        help="Address of the device. The device also always answers to address 250.",
    ),
    click.option(
        "--variant",
        type=click.Choice(["PA", "PAA"]),
        default="PA",
        show_default=True,
        help="Pressure relative to 1 bar (PA) or absolute pressure (PAA).",
    ),
    click.option("--echo", is_flag=True, help="Echo each received byte to the host, as a two-wire RS-485 line does."),
)
def keller(address: int, variant: str, echo: bool) -> Any:
    from wavesim_devices.keller import TYPES, KellerTransmitter
    from wavesim_devices.serve import DeviceType

    return DeviceType(
        "Keller 33X",
        lambda _, send, p: KellerTransmitter(send, p, address, variant, echoes=echo),
        TYPES,
        "pressure",
    )


@device_command(
    "Emulate a MicroStrain 3DM-GX3-25 AHRS.\n\nThe device speaks the single-byte protocol. It reads the `ahrs` and `imu` sensors of body "
    "NAME, and its `magnetometer`.\n\n"
    "Not modelled: raw data, delta angles, temperatures, gyro bias capture, sampling settings and the baud rate (these "
    "commands are not answered); the calibration in the EEPROM is only stored.",
    click.option(
        "--declination",
        type=Quantity("angle", "deg", low=-180.0, high=180.0),
        default=0.0,
        show_default=True,
        help="Magnetic declination in deg: the device reports the true heading minus this angle.",
    ),
)
def microstrain(declination: float) -> Any:
    from wavesim_devices.microstrain import TYPES, Microstrain
    from wavesim_devices.serve import DeviceType
    from wavesim_sdk.errors import BrokerError

    def make(_: Any, send: Any, p: dict[str, str]) -> Microstrain:
        if "imu" not in p:
            raise BrokerError("the body has no sensor of type 'imu', which this device requires")
        return Microstrain(send, p, math.radians(declination))

    return DeviceType("3DM-GX3-25", make, TYPES, "ahrs")


@device_command(
    "Emulate a Valeport miniSVS sound velocity sensor. The device reads a `sound-velocity` sensor of body NAME.\n\n"
    "Not modelled: settings (`#` and three digits), other output formats, and the baud rate.",
)
def minisvs() -> Any:
    from wavesim_devices.minisvs import TYPES, MiniSvs
    from wavesim_devices.serve import DeviceType

    return DeviceType("miniSVS", lambda _, send, p: MiniSvs(send, p["sound_velocity"]), TYPES, "sound_velocity")


@multi_port_command(
    "Emulate the motor and servo controllers of a LAUV.\n\nThe controllers are BROOM and SCRTv4 (LUCL protocol). The device "
    "commands the propeller and the four fins of body NAME, so it needs --pilot.\n\n"
    "Not modelled: current control, calibration and power of the servos, the boot loader (the device answers each of "
    "these with an error), and the baud rate. Voltages, temperatures and the currents of the servos are nominal.",
    {"motor": "pty:", "servos": "pty:"},
    click.option(
        "--full-speed",
        type=Quantity("rotation", "rpm", low=1.0),
        default=1500.0,
        show_default=True,
        help="Propeller speed in rpm at which the force reaches its limit; the force grows with the square of the speed.",
    ),
    click.option(
        "--inverted/--not-inverted",
        default=True,
        show_default=True,
        help="Whether a negative motor speed drives the vehicle ahead, as on a LAUV.",
    ),
)
def lauv_actuators(full_speed: float, inverted: bool) -> Any:
    from wavesim_devices.lauv_actuators import LauvActuators
    from wavesim_devices.serve import DeviceType

    return DeviceType("LAUV actuators", lambda b, _, __: LauvActuators(b, full_speed, inverted=inverted))


@device_command(
    "Emulate a VectorNav VN-100, VN-200 or VN-300. The device reads the `ahrs` and `imu` sensors of body NAME, and "
    "its `magnetometer`, `gps`, `ctd` and `pressure` sensors.\n\n"
    "Not modelled: tare (refused), gyro bias and disturbance commands (acknowledged without effect), the baud rate, "
    "ECEF fields (zero), and the INS filter (position and velocity are those of the `gps` sensor).",
    click.option(
        "--model",
        type=click.Choice(["VN-100", "VN-200", "VN-300"]),
        default="VN-100",
        show_default=True,
        help="Model of the sensor.",
    ),
)
def vectornav(model: str) -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.vectornav.device import TYPES, VectorNav
    from wavesim_sdk.errors import BrokerError

    def make(_: Any, send: Any, p: dict[str, str]) -> VectorNav:
        if "imu" not in p:
            raise BrokerError("the body has no sensor of type 'imu', which this device requires")
        return VectorNav(send, model, p)

    return DeviceType(f"VectorNav {model}", make, TYPES, "ahrs")


@multi_port_command(
    "Emulate a Nortek Nucleus 1000. The device reads the `dvl` sensor of body NAME, which must have three beams, and "
    "its `ahrs`, `imu`, `magnetometer`, `ctd` and `pressure` sensors.\n\n"
    "Not modelled: field calibration, current profiles and spectra, power levels and instrument rotations (the "
    "device refuses each of these), figures of merit (nominal values), and the inertial filter (the position in the "
    "INS packet is dead-reckoned from bottom track). The password is `nortek`.",
    {"command": "tcp:9000", "stream": "tcp:9002", "serial": "off"},
)
def nucleus() -> Any:
    from wavesim_devices.nucleus.device import TYPES, Nucleus
    from wavesim_devices.serve import DeviceType

    return DeviceType("Nucleus 1000", lambda b, _, p: Nucleus(b.welcome.sound_speed, p), TYPES, "dvl")


@device_command(
    "Emulate an Xsens MTi-G-710 (MTData2 or legacy MTData). The device reads the `ahrs` and `imu` sensors of body NAME, and its "
    "`magnetometer`, `gps`, `ctd` and `pressure` sensors. The housing is mounted upright: x forward, y to port, z "
    "up.\n\n"
    "Not modelled: fixed-point formats, rotation matrices, raw and analogue data, and further outputs (the device "
    "refuses each of these), synchronisation (accepted without effect), the baud rate, and option flags (only stored).",
)
def xsens() -> Any:
    from wavesim_devices.serve import DeviceType
    from wavesim_devices.xsens import TYPES, XsensMti
    from wavesim_sdk.errors import BrokerError

    def make(_: Any, send: Any, p: dict[str, str]) -> XsensMti:
        if "imu" not in p:
            raise BrokerError("the body has no sensor of type 'imu', which this device requires")
        return XsensMti(send, p)

    return DeviceType("Xsens MTi", make, TYPES, "ahrs")
