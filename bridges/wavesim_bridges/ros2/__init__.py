"""ROS 2 without ROS: a vehicle as a node, by DDS. See docs/bridges/ros2.md."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import click

from wavesim_bridges.core import BridgeOptions, bridge
from wavesim_sdk.config import load
from wavesim_sdk.errors import WaveSimError

PERIOD_S = 0.01


@bridge("ros2", period=PERIOD_S)
@click.option("--config", required=True, help="The server's configuration: mountings and noise of instruments.")
@click.option("--layout", default="wavesim", show_default=True, help="Names: wavesim, vrx, uuv, or a FILE.toml.")
@click.option("--also", multiple=True, metavar="VEHICLE", help="One more vehicle, in the same process.")
@click.option(
    "--domain", type=click.IntRange(0, 232), envvar="ROS_DOMAIN_ID", default=0, show_default=True, help="ROS_DOMAIN_ID."
)
@click.option("--distro", default="jazzy", show_default=True, help="Of ROS: humble, iron, jazzy, kilted, lyrical.")
@click.option("--clock/--no-clock", default=True, help="Publish /clock; one bridge of a world does.")
@click.option("--tf/--no-tf", default=True, help="Publish the true pose on /tf.")
@click.option("--stamp", type=click.Choice(["sim", "wall"]), default="sim", show_default=True, help="Time of stamps.")
@click.option("--lockstep", is_flag=True, help="Each step waits for the controller's next commands.")
@click.option(
    "--silence", type=click.FloatRange(min=0), default=1.0, show_default=True,
    help="A controller that is silent for so long (s, of wall and of simulation time) is gone; 0: never.",
)  # fmt: skip
def command(seat: BridgeOptions, config: str, also: tuple[str, ...], stamp: str, **wishes: Any) -> None:
    """ROS 2, which need not be installed: sensors, odometry, tf, clock, commands, services."""
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
