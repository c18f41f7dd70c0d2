"""Studies without a server: simulation of many variants of a model together, or of a model with recorded commands.

from wavesim_server.study import batch, varied
models = [varied("remus100", mass=m) for m in (29.0, 30.0, 31.0)]
tracks = batch(models, {"propeller": 8.0, "rudder-top": 0.1}, seconds=60.0)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import hull_mesh, hydrostatics
from wavesim_server.simulation import Simulation
from wavesim_world.config import Model, library, load_text
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.validation import check_model, matrix
from wavesim_world.config.vehicle import Matrix6
from wavesim_world.recorded_data import actuator_position

__all__ = ["batch", "compare", "empty_sea", "equilibrium_depth", "replay", "track_row", "varied"]

#: columns of a track
TRACK = ("time", "north", "east", "down", "roll", "pitch", "yaw", "u", "v", "w", "p", "q", "r")
_MATRICES = ("added_mass", "linear_drag", "quadratic_drag", "lift")


def varied(model: str | Model, **changes: Any) -> Model:
    """Return a copy of a model with some values changed.

    ``mass`` is in kg and ``volume`` in m3; ``added_mass``, ``linear_drag``, ``quadratic_drag`` and ``lift`` are factors
    or 6x6 arrays; for any other attribute of the model, pass its new value.
    """
    base = library()[model] if isinstance(model, str) else model
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "mass":
            values["mass"] = dataclasses.replace(base.mass, value=float(value))
        elif name == "volume" and base.buoyancy is not None:
            values["buoyancy"] = dataclasses.replace(base.buoyancy, volume=float(value))
        elif name in _MATRICES:
            m = np.asarray(value, float)
            m = matrix(getattr(base, name)) * m if m.ndim == 0 else m
            values[name] = Matrix6(rows=tuple(m.ravel()))
        else:
            values[name] = value
    return dataclasses.replace(base, **values)


def empty_sea(vehicles: int, step: float, world: str = "", models: Sequence[Model] = ()) -> Simulation:
    """Create a simulation with deep still water.

    ``world`` is the XML element <world>, or only its content; the default is a bed at a depth of 11000 m. ``models`` are
    available in the simulation by name.
    """
    inner = world.strip() or '<bed depth="11000 m"/>'
    element = inner if inner.startswith("<world") else f"<world>{inner}</world>"
    loaded = load_text(f'<wavesim><time step="{step:.9g} s"/><shared vehicles="{vehicles}"/>{element}</wavesim>')
    return Simulation(dataclasses.replace(loaded, models=loaded.models | {m.name: m for m in models}))


def track_row(sim: Simulation, state: Any) -> Floats:
    """Return one row of a track (see ``TRACK``) from a row of the `state` table."""
    return np.array(
        [sim.time_ns * 1e-9, *state["p_WB_W"], *frames.euler(state["q_WB"]), *state["v_WB_B"], *state["w_WB_B"]]
    )


def equilibrium_depth(model: Model, density: float) -> float:
    """Return the depth in m of the origin of a body that rests upright in still water.

    For hulls with linear restoring, the depth is the one that the model states in <restoring>. For other underwater
    vehicles, it is 1000 m, and for aircraft -1000 m. Other bodies float if they are lighter than water; for heavier
    bodies, the depth is 0.
    """
    if model.restoring is not None:
        return model.restoring.z
    if model.type in ("underwater", "aircraft"):
        return 1000.0 if model.type == "underwater" else -1000.0
    shape = shape_of(model)
    if (hull := hull_mesh.hull_of(model)) is not None:
        wanted = model.mass.value / density
        return -hull.level((0.0, 0.0, 1.0), wanted) if wanted < hull.volume else 0.0
    volume = model.buoyancy.volume if model.buoyancy else shape.volume
    share = model.mass.value / (density * volume)
    if share >= 1.0:
        return 0.0
    above, below = -shape.bounding_radius, shape.bounding_radius  # of the origin: body out of the water, body submerged
    for _ in range(60):
        middle = 0.5 * (above + below)
        plane = hydrostatics.WaterPlane(0.0, 0.0, 1.0, -middle)
        wet, *_ = hydrostatics.submerged_share(shape.code, *shape.half_size, shape.bounding_radius, plane)
        above, below = (above, middle) if wet > share else (middle, below)
    return 0.5 * (above + below)


def batch(
    models: Sequence[Model],
    commands: Mapping[str, float],
    seconds: float,
    depth: float | None = None,
    step: float = 0.01,
    every: float = 1.0,
    velocity: Sequence[float] | None = None,
    world: str = "",
) -> Floats:
    """Simulate variants side by side, from rest (or from ``velocity``), with constant commands (SI value by actuator
    name).

    Each variant is computed in its own block. Variants do not touch each other, because each starts 1 km from the next.
    All start at ``depth`` (m); by default, underwater vehicles start at 1000 m, aircraft start at a height of 1000 m,
    and other vehicles start afloat. Returns tracks of shape (models, times, len(TRACK)) that start at time 0. The
    values are NaN from the time at which a state diverged.
    """
    sim = empty_sea(len(models), step, world)
    for k, model in enumerate(models):
        check_model(model)
        down = equilibrium_depth(model, sim.config.world.density) if depth is None else depth
        row = sim.enter(f"v{k}", position=(1000.0 * k, 0.0, down), variant=model)
        sim.set_pose(row, velocity=velocity)
        sim.command(row, {actuator_position(model, name): value for name, value in commands.items()})
    ticks = max(1, round(every / step))
    rows = [[track_row(sim, s) for s in sim.state()]]
    while sim.time_ns < seconds * 1e9 - 1:
        sim.advance(ticks)
        rows.append([track_row(sim, s) for s in sim.state()])
        for name in sim.frozen_bodies:
            rows[-1][int(name[1:])][1:] = np.nan
    tracks = np.array(rows).transpose(1, 0, 2)
    tracks[:, :, 1] -= 1000.0 * np.arange(len(models))[:, None]
    return tracks


# ------------------------------------------------------------------ recorded commands


def replay(
    model: Model,
    times: Floats,
    commands: Mapping[int, Floats],
    step: float,
    position: Sequence[float] = (0.0, 0.0, 0.0),
    yaw: float = 0.0,
    velocity: Sequence[float] | None = None,
    push: Sequence[float] | None = None,
    every: float = 0.1,
    world: str = "",
) -> Floats:
    """Drive a model with recorded commands (values at ``times``, by actuator position). Each command is held until the
    next.

    Returns the track of the model.
    """
    sim = empty_sea(1, step, world)
    row = sim.enter("v", position=tuple(position), attitude=(0.0, 0.0, yaw), variant=model)
    sim.set_pose(row, velocity=velocity)
    if push is not None:
        sim.push(row, push[:3], push[3:])
    track, next_row = [], 0.0
    order = np.argsort(times, kind="stable")
    for k, at in enumerate(order):
        sim.command(row, {which: float(series[at]) for which, series in commands.items()})
        until = times[order[k + 1]] if k + 1 < len(order) else times[at]
        while sim.time_ns * 1e-9 < until - 0.5 * step:
            if sim.time_ns * 1e-9 >= next_row - 1e-9:
                track.append(track_row(sim, sim.state()[row]))
                next_row += every
            sim.advance(1)
    track.append(track_row(sim, sim.state()[row]))
    return np.array(track)


def compare(track: Floats, times: Floats, north: Floats, east: Floats) -> dict[str, float]:
    """Compare a track with a measured one. Returns the horizontal distances in m at the measured times."""
    d = np.hypot(np.interp(times, track[:, 0], track[:, 1]) - north, np.interp(times, track[:, 0], track[:, 2]) - east)
    length = float(np.hypot(np.diff(north), np.diff(east)).sum())
    return {
        "points": len(times),
        "length_m": round(length, 3),
        "rms_m": round(float(np.sqrt(np.mean(d * d))), 3),
        "greatest_m": round(float(d.max()), 3),
        "last_m": round(float(d[-1]), 3),
    }
