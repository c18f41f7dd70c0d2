"""Command group ``wavesim bridge``, which lets existing on-board software drive a vehicle."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import click

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name

if TYPE_CHECKING:
    from wavesim_world.config import LoadedConfig


class _Bridges(click.Group):
    """Commands in the `wavesim bridge` group: one command for each entry point in the `wavesim.bridges` group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(e.name for e in entry_points(group="wavesim.bridges"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        found = entry_points(group="wavesim.bridges", name=name)
        return next(iter(found)).load() if found else None


@click.group("bridge", cls=_Bridges)
def bridge() -> None:
    """Let existing on-board software control a vehicle."""


def check_bridge_names(loaded: LoadedConfig) -> None:
    """Raise ConfigError if a program names an unknown bridge."""
    known = sorted(e.name for e in entry_points(group="wavesim.bridges"))
    for body in loaded.config.fleet.bodies:
        name = body.program.bridge if body.program is not None else ""
        if name and name not in known:
            raise ConfigError(f"'{body.name}': unknown bridge '{name}'{suggest_name(name, known)}", str(loaded.path))


def commands() -> list[click.Command]:
    return [bridge]
