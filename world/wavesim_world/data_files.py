"""Check of every data file that a configuration names, so that errors are reported before a run starts."""

from __future__ import annotations

from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.ocean import measured_channels, mesh, sound
from wavesim_world.ocean.bed import triangulated_bed
from wavesim_world.ocean.water import Water
from wavesim_world.pinger_sounds import pinger_sounds


def check(loaded: LoadedConfig) -> None:
    """Read every file once. Raises ConfigError with file and line for the first invalid one."""
    triangulated_bed(loaded)
    mesh.all_triangles(loaded)
    pinger_sounds(loaded)
    water = Water(loaded)
    if loaded.config.acoustics.profile == "file":
        sound.sound_speed_profile(loaded, water, 100.0)
    elif loaded.config.acoustics.profile == "volume":
        sound.sound_speed_volume(loaded, water)
    measured_channels.check(loaded)
    if loaded.config.network.keys:
        from wavesim_sdk.wire import seal

        seal.read_keyring(loaded.data_file(loaded.config.network.keys))
