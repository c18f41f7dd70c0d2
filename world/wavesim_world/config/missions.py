"""Reader of the mission files that a configuration names."""

from __future__ import annotations

import dataclasses
import hashlib

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.guidance.mission_files import MissionFile, read_mission
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.model import BodyConfig, MissionConfig, WaypointConfig
from wavesim_world.config.validation import fail_at


def read_missions(loaded: LoadedConfig) -> LoadedConfig:
    """Return the configuration with the waypoints from every mission file. Its digest also covers these files.

    Raises ConfigError for the first invalid file.
    """
    fleet, world = loaded.config.fleet, loaded.config.world
    origin = Origin(world.latitude, world.longitude)
    files: list[tuple[str, MissionFile]] = []

    def with_missions(bodies: tuple[BodyConfig, ...]) -> tuple[BodyConfig, ...]:
        found = []
        for body in bodies:
            if body.mission is not None:
                file = _read(loaded, body, body.mission, origin)
                files.append((body.name, file))
                body = _with_mission(body, body.mission, file)  # the same body
            found.append(body)
        return tuple(found)

    fleet = dataclasses.replace(fleet, vehicle=with_missions(fleet.vehicle), buoy=with_missions(fleet.buoy))
    if not files:
        return loaded
    texts = [loaded.digest, *(found.text for _, found in files)]
    return dataclasses.replace(
        loaded,
        config=dataclasses.replace(loaded.config, fleet=fleet),
        digest=hashlib.sha256("\0".join(texts).encode()).hexdigest(),
        notices=tuple(f"mission of '{name}': {text}" for name, found in files for text in found.notices),
    )


def _read(loaded: LoadedConfig, body: BodyConfig, mission: MissionConfig, origin: Origin) -> MissionFile:
    if body.waypoint:
        fail_at(mission.place, f"'{body.name}' has both <mission> and <waypoint>; remove one of them")
    try:
        return read_mission(loaded.data_file(mission.file), origin, speed=mission.speed or None)
    except ConfigError as error:
        fail_at(mission.place, str(error))


def _with_mission(body: BodyConfig, mission: MissionConfig, found: MissionFile) -> BodyConfig:
    return dataclasses.replace(
        body,
        waypoint=tuple(
            WaypointConfig(north=w.north, east=w.east, depth=w.depth, speed=w.speed) for w in found.waypoints
        ),
        mission=dataclasses.replace(
            mission,
            acceptance=mission.acceptance or found.acceptance or 0.0,
            lookahead=mission.lookahead or found.lookahead or 0.0,
        ),
    )
