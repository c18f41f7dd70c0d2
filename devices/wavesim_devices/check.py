"""Checks of the <device> elements of a configuration, for `wavesim check`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from wavesim_sdk.names import suggest_name
from wavesim_world.config.validation import fail_at

if TYPE_CHECKING:
    from wavesim_world.config import LoadedConfig
    from wavesim_world.config.model import DeviceConfig

#: options that the trial itself sets; a <device> element must not contain them
STARTING_OPTIONS = ("pilot", "lockstep", "server", "host", "port")

#: devices that must join as the pilot; a trial cannot start them, because it starts all devices as instruments
DRIVING = ("lauv-actuators",)

WITHOUT_NAME = ("run", "replay")  #: subcommands that do not name a device


def check_devices(loaded: LoadedConfig) -> None:
    """Raise ConfigError for a device that is unknown or has invalid options."""
    for body in loaded.config.fleet.bodies:
        for device in body.device:
            try:
                _check(body.name, device, loaded)
            except ValueError as error:
                fail_at(device.place, f"'{body.name}': device '{device.label}': {error}")


def _check(body: str, device: DeviceConfig, loaded: LoadedConfig) -> None:
    from wavesim_devices.cli import commands

    (group,) = (c for c in commands() if isinstance(c, click.Group))
    devices = {name: c for name, c in group.commands.items() if name not in WITHOUT_NAME}
    if device.run and not (file := loaded.data_file(device.run)).is_file():
        raise ValueError(f"there is no file {file}")
    command = group.commands["run"] if device.run else devices.get(device.name)
    if command is None:
        raise ValueError(f"unknown device{suggest_name(device.name, devices)}")
    if device.name in DRIVING:
        raise ValueError(
            f"this device drives the body: start it with `wavesim device {device.name} {body} --pilot` instead"
        )
    context = click.Context(command, info_name=device.name)
    try:
        with context:
            command.parse_args(context, [*([device.run] if device.run else []), body, *shlex.split(device.options)])
    except click.exceptions.Exit:
        raise ValueError("remove --help from `options`") from None
    except click.ClickException as error:
        raise ValueError(error.format_message()) from None
    for name in STARTING_OPTIONS:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            more = "; set `period` instead" if name == "lockstep" else ""
            raise ValueError(f"remove --{name} from `options`: the trial sets it{more}")
