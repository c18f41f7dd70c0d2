"""Warnings about acoustics that are valid but do not do what the configuration suggests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavesim_world.ocean.surface import LEAST_HEIGHT, sea_state

if TYPE_CHECKING:
    from wavesim_world.config.loaded import LoadedConfig


def idle_surface(loaded: LoadedConfig) -> list[str]:
    """Return a warning for each reason why a moving surface has no effect, or an effect that is counted twice."""
    multipath, world = loaded.config.acoustics.multipath, loaded.config.world
    if multipath is None or multipath.surface != "moving":
        return []
    found = []
    if multipath.order == 0:
        found.append('<multipath surface="moving"> has no effect, because order="0" means that there are no echoes')
    if sea_state(world.waves)[0] < LEAST_HEIGHT and world.tide.amplitude == 0.0:
        found.append(
            '<multipath surface="moving"> has no effect, because the sea is flat: add <waves height="..."/> to the world, '
            "unless a command sets the waves during the run"
        )
    if multipath.surface_loss > 0.0:
        found.append(
            '<multipath surface="moving"> scatters sound but keeps its energy, and `surface_loss` then removes a part of '
            "it at each bounce; remove `surface_loss` if it stands for the roughness of the sea"
        )
    return found
