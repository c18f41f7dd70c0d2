"""Static scene for the page: sea bed, obstacles, models and missions as plain data."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.log import Log
from wavesim_viz.page_content import BedGrid, HullKind, HullShape, ModelInfo, PlannedBody, Scene
from wavesim_viz.page_protocol import DetailsMessage, SceneMessage
from wavesim_world.config import LoadedConfig, Model, library
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.standalone_xml import load_standalone
from wavesim_world.ocean import mesh
from wavesim_world.ocean.bed import bed_around_fleet
from wavesim_world.ocean.scene import obstacle_boxes

BED_POINTS, BED_SHARE = 97, 0.5


def shape(model: Model) -> HullShape:
    """Return the primitive shape of a model, and its size (length, width, height) in m."""
    found = shape_of(model)
    return {"kind": cast("HullKind", found.kind), "size": found.size}


def model_info(model: Model) -> ModelInfo:
    """Describe how to draw a model."""
    return {
        "name": model.name,
        "type": model.type,
        "title": model.title,
        "source": model.source,
        "validated": model.validated,
        "shape": shape(model),
        "appearance": model.appearance,
        "draw_parts": model.draw_parts,
        "mass": model.mass.value,
        "thrusters": [
            {
                "name": t.name,
                "position": t.position,
                "direction": t.direction,
                "swivel": t.swivel is not None,
                "deflector": t.deflector is not None,
            }
            for t in (model.thruster if model.allocation is None else ())
        ],
        "fins": [
            {"name": f.name, "position": f.position, "normal": f.normal, "chord": f.chord, "area": f.area}
            for f in model.fin
        ],
        "tanks": [{"name": b.name, "position": b.position} for b in model.ballast],
        "transducer": model.transducer.position if model.transducer is not None else None,
    }


def _planned_body(body: Any, buoy: bool) -> PlannedBody:
    transducer = body.transducer
    planned: PlannedBody = {
        "name": body.name,
        "model": body.model,
        "position": body.position,
        "attitude": body.attitude,
        "client": body.client,
        "buoy": buoy,
        "waypoints": [(w.north, w.east, w.depth, w.speed) for w in body.waypoint],
        "anchor": body.mooring.anchor if body.mooring is not None else None,
        "transducer": transducer.position if transducer is not None else None,
    }
    if transducer is not None and transducer.modem is not None:
        planned["address"] = transducer.modem.address
    return planned


def describe(loaded: LoadedConfig) -> Scene:
    """Build the scene of a configuration."""
    world, fleet = loaded.config.world, loaded.config.fleet
    triangles = mesh.all_triangles(loaded)
    return {
        "name": loaded.config.name,
        "file": str(loaded.path),
        "origin": (math.degrees(world.latitude), math.degrees(world.longitude)),
        "sound": {"speed": loaded.config.acoustics.sound_speed, "noise": loaded.config.acoustics.ambient_noise},
        "bed": cast("BedGrid", bed_around_fleet(loaded, BED_POINTS, BED_SHARE)),
        "boxes": obstacle_boxes(world.obstacles).round(4).tolist(),
        "piers": [[*p.position, p.radius, p.height] for p in world.obstacles.pier],
        "triangles": np.asarray(triangles, np.float32).round(3).ravel().tolist(),
        "waves": world.waves.height if world.waves.beaufort < 0 else None,
        "bodies": [_planned_body(b, b in fleet.buoy) for b in fleet.bodies],
        "models": {name: model_info(m) for name, m in {**library(), **loaded.models}.items()},
        "takeover": loaded.config.network.takeover,
    }


def empty(name: str) -> Scene:
    """Build the scene of a server whose configuration is not on this machine. The scene contains models from the
    library, but no sea bed.
    """
    return {
        "name": name,
        "file": "",
        "origin": None,
        "sound": {"speed": 1500.0, "noise": 60.0},
        "bed": None,
        "boxes": [],
        "piers": [],
        "triangles": [],
        "waves": None,
        "bodies": [],
        "models": {n: model_info(m) for n, m in library().items()},
    }


def of_log(log: Log) -> tuple[Scene, LoadedConfig | None]:
    """Build the scene of a log from its configuration (without the files to which it refers) and from the sea bed that
    these files defined.
    """
    loaded: LoadedConfig | None = None
    try:
        loaded, surveyed = load_standalone(log.metadata.get("configuration", ""))
        scene = describe(loaded)
    except (ConfigError, OSError):
        scene, surveyed = empty(log.metadata.get("server", "log")), True
    scene["file"] = str(log.path)
    if surveyed:
        scene["bed"] = cast("BedGrid | None", next((m for _, m in log.json.get("/world/bed", [])), None))
    return scene, loaded


def scene_messages(scene: Scene) -> tuple[SceneMessage, DetailsMessage]:
    """For pages on slow connections, split a scene into the part that the first picture needs, and the details."""
    used = {b["model"] for b in scene["bodies"]}
    first: Scene = {**scene, "bed": None, "models": {n: m for n, m in scene["models"].items() if n in used}}
    return (
        {"type": "scene", "scene": first},
        {"type": "details", "bed": scene["bed"], "models": scene["models"]},
    )
