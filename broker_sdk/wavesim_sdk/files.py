"""Every file that a configuration names, read once, so that a fault in one is told before a run begins."""

from __future__ import annotations

from wavesim_sdk.config.load import Loaded
from wavesim_sdk.ocean import mesh, sound
from wavesim_sdk.ocean.bed import triangles
from wavesim_sdk.ocean.water import Water


def check(loaded: Loaded) -> None:
    """ConfigError with file and line for the first file that cannot be used."""
    triangles(loaded)
    mesh.triangles(loaded)
    water = Water(loaded)
    if loaded.config.acoustics.profile == "file":
        sound.profile(loaded, water, 100.0)
    if loaded.config.network.keys:
        from wavesim_sdk.wire import seal

        seal.read_keys(loaded.data_file(loaded.config.network.keys))
