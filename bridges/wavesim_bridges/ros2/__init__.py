"""Bridge to ROS 2 that needs no ROS installation: a vehicle becomes a ROS 2 node over DDS. See docs/bridges/ros2.md."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import click

from wavesim_bridges.core import BridgeOptions, bridge
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import WaveSimError
from wavesim_world.config import load

PERIOD_S = 0.01


@bridge("ros2", period=PERIOD_S)
@click.option(
    "--config",
    required=True,
    help="The server's configuration file, in which the mounts and noise of the sensors are defined.",
)
@click.option(
    "--layout",
    default="wavesim",
    show_default=True,
    help="Layout of the topic names: wavesim, vrx, uuv or your own FILE.toml.",
)
@click.option("--also", multiple=True, metavar="VEHICLE", help="Additional vehicle in the same process. Repeatable.")
@click.option(
    "--domain",
    type=click.IntRange(0, 232),
    envvar="ROS_DOMAIN_ID",
    default=0,
    show_default=True,
    help="DDS domain ID (ROS_DOMAIN_ID).",
)
@click.option(
    "--distro", default="jazzy", show_default=True, help="ROS distribution: humble, iron, jazzy, kilted, lyrical."
)
@click.option(
    "--clock/--no-clock", default=True, help="Publish /clock; only one bridge per server may do so. Default: on."
)
@click.option("--tf/--no-tf", default=True, help="Publish the true pose on /tf. Default: on.")
@click.option(
    "--stamp",
    type=click.Choice(["sim", "wall"]),
    default="sim",
    show_default=True,
    help="Clock for the time stamps of messages: simulation or wall-clock time.",
)
@click.option("--lockstep", is_flag=True, help="At each step, wait for the controller's next commands.")
@click.option(
    "--silence",
    type=Quantity("time", low=0.0),
    default=1.0,
    show_default=True,
    help="Time in s without commands, in both wall time and simulation time, after which a controller is considered lost; 0 = never.",
)
def command(seat: BridgeOptions, config: str, also: tuple[str, ...], stamp: str, **wishes: Any) -> None:
    """Bridge a vehicle to ROS 2, which need not be installed. The bridge covers sensors, odometry, tf, clock, commands
    and services.
    """
    try:
        from wavesim_bridges.ros2.bridge import Ros2Options, run_vehicles
        from wavesim_bridges.ros2.message_types import DISTROS
    except ModuleNotFoundError as error:
        raise WaveSimError(f"'{error.name}' is not installed: pip install 'wavesim-bridges[ros2]'") from None
    if wishes["distro"] not in DISTROS:
        raise WaveSimError(f"unknown ROS 2 distribution '{wishes['distro']}'; available: {', '.join(DISTROS)}")
    seats = [replace(seat, vehicle=name) for name in (seat.vehicle, *also)]
    try:
        asyncio.run(run_vehicles(seats, load(config), Ros2Options(wall=stamp == "wall", **wishes)))
    except* WaveSimError as errors:
        raise errors.exceptions[0] from None
