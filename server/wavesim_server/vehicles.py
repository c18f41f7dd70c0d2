"""What a model is like: its source, and properties derived from its matrices and by letting it float and run."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.config import Model
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.kind import shape_of
from wavesim_server.simulation import Simulation
from wavesim_server.study import empty_sea, track_row

DENSITY = 1025.0
STEP = 0.01


def derived(model: Model) -> dict[str, Any]:
    """Displacement, natural periods, draft, full speed and turning circle, in still sea water.

    `natural_periods_s` are those of small heave, roll and pitch (of the matrices of models with linear restoring; seen
    in a lightly damped free decay of floating primitives; roll and pitch by the righting moment of submerged bodies).
    `full_speed_m_s` is reached on a straight course with all thrusters that push forward at their limits;
    `turning_diameter_m` with the fins, nozzles or one side's thrusters hard over. Bodies that are not neutral are
    trimmed for both, and surface vehicles are held level.
    """
    shape = shape_of(model)
    found: dict[str, Any] = {"mass_kg": model.mass.value}
    if model.restoring is None:
        volume = model.buoyancy.volume if model.buoyancy else shape.volume
        found["displacement_kg"] = round(DENSITY * volume, 3)
        found["net_buoyancy_N"] = round((DENSITY * volume - model.mass.value) * 9.81, 2)
    if model.type != "underwater" and model.restoring is None:
        found |= _floating(model)
    else:
        found["natural_periods_s"] = _periods(model)
    forward = [k for k in range(len(model.thruster)) if _along(model, k) > 0.3]
    if forward:
        found |= _driven(model, forward)
    return found


def _along(model: Model, k: int) -> float:
    """Share of a thruster's force that acts forward."""
    if model.allocation is not None:
        column = np.array(model.allocation.rows).reshape(6, -1)[:3, k]
    else:
        column = np.array(model.thruster[k].direction)
    return float(column[0] / max(np.linalg.norm(column), 1e-12))


def _sea(model: Model, depth: float) -> tuple[Simulation, int]:
    sim = empty_sea(1, STEP)
    return sim, sim.enter("model", position=(0.0, 0.0, depth), variant=model)


def _track(sim: Simulation, seconds: float, every: float = 0.05) -> Any:
    rows = []
    for _ in range(round(seconds / every)):
        sim.advance(round(every / STEP))
        rows.append(track_row(sim, sim.state()[0]))
    return np.array(rows)


def _period(values: Any, every: float = 0.05) -> float | None:
    """Mean time between upward crossings of the mean; None without oscillation."""
    v = values - values.mean()
    up = np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0))
    return round(float(np.diff(up).mean() * every), 2) if len(up) > 1 else None


def _periods(model: Model) -> dict[str, float | None]:
    """Undamped natural periods of the matrices, each named by the motion that leads."""
    sim, row = _sea(model, 1000.0)
    p = sim.fleet.coefficients(row)
    stiffness = np.zeros((6, 6))
    if model.restoring is not None:
        stiffness[:, 2:5] = p[r.G : r.G + 18].reshape(6, 3)
    else:
        stiffness[3, 3] = stiffness[4, 4] = p[r.WG + 2] - p[r.FULL_B] * p[r.RB + 2]
    values, vectors = np.linalg.eig(p[r.MINV : r.MINV + 36].reshape(6, 6) @ stiffness)
    scale = np.sqrt(np.maximum(np.diag(stiffness), 0.0))
    periods: dict[str, float | None] = {"heave": None, "roll": None, "pitch": None}
    for value, vector in zip(values, vectors.T, strict=True):
        if value.real > 1e-9:
            shares = dict(zip(periods, np.abs(scale * vector)[2:5], strict=True))
            lead = max((k for k, v in periods.items() if v is None), key=lambda k: shares[k])
            periods[lead] = round(2.0 * math.pi / math.sqrt(value.real), 2)
    return periods


def _floating(model: Model) -> dict[str, Any]:
    sim, row = _sea(model, 0.0)
    rest = _track(sim, 120.0)[-1]
    z = float(rest[3])
    found: dict[str, Any] = {"draft_m": round(z + shape_of(model).half[2], 3)}
    periods: dict[str, float | None] = {}
    for name, push, column in (("heave", 0, 3), ("roll", r.U + 3, 4), ("pitch", r.U + 4, 5)):
        sim, row = _sea(model, z)
        own = sim.fleet.coefficients(row)  # lightly damped, to see the period
        sim.fleet.change(row, {k: 0.1 * own[k] for k in (*range(r.DL, r.DL + 36), *range(r.DQ, r.DQ + 36))})
        b = sim.fleet.body(row)
        b[r.QW : r.QW + 4] = frames.quaternion(*rest[4:7])
        if push:
            b[push] = 0.05
        else:
            b[r.PZ] += 0.01
        periods[name] = _period(_track(sim, 10.0)[:, column])
    return found | {"natural_periods_s": periods}


def _driven(model: Model, forward: list[int]) -> dict[str, Any]:
    afloat = model.type == "surface"
    commands = {model.thruster[k].name: model.thruster[k].maximum for k in forward}
    straight = dataclasses.replace(model, active="u" if afloat else "u w q")
    found: dict[str, Any] = {}
    sim, row = _ready(straight, afloat)
    sim.command(row, commands)
    found["full_speed_m_s"] = round(float(np.linalg.norm(_track(sim, _settling(model))[-1, 7:10])), 3)
    if not _turn(model, forward, commands):
        return found
    sim, row = _ready(dataclasses.replace(model, active="u v r") if afloat else model, afloat)
    sim.command(row, commands)
    track = _track(sim, 2.0 * _settling(model), 0.2)
    half = track[len(track) // 2 :]
    if abs(half[-1, 6] - half[0, 6]) > 1e-3 and np.abs(half[:, 12]).mean() > 1e-3:
        rate = float(np.abs(half[:, 12]).mean())
        found["turning_diameter_m"] = round(2.0 * float(np.hypot(half[:, 7], half[:, 8]).mean()) / rate, 1)
        found["turning_rate_deg_s"] = round(math.degrees(rate), 1)
    return found


def _settling(model: Model) -> float:
    """Time in s for a vehicle of this size to settle on its speed."""
    return float(min(60.0 * max(shape_of(model).size[0], 1.0) ** 0.5 + 60.0, 700.0))


def _ready(model: Model, afloat: bool) -> tuple[Simulation, int]:
    z = model.restoring.z if model.restoring is not None else 0.0
    sim, row = _sea(model, z if afloat else 1000.0)
    if not afloat:  # neutral, so that it keeps its depth
        sim.fleet.change(row, {r.FULL_B: sim.fleet.coefficients(row)[r.WEIGHT]})
    return sim, row


def _turn(model: Model, forward: list[int], commands: dict[str, float]) -> bool:
    """Put everything that turns hard over to starboard; False if there is nothing."""
    turns = False
    for f in model.fin:
        if abs(f.normal[1]) > 0.5:
            # the side to which positive force at its place turns the bow
            aft = f.position[0] < 0.0 or f.law != "linear"
            commands[f.name] = -math.copysign(f.limit, f.normal[1]) if aft else f.limit
            turns = True
    for k in forward:
        swivel = model.thruster[k].swivel
        if swivel is not None:
            commands[f"{model.thruster[k].name}-angle"] = -min(abs(swivel.minimum), math.radians(35.0))
            turns = True
    if not turns:
        for k in forward:
            # twin screws; vectored thrusters turn on the spot
            if _along(model, k) > 0.99 and model.thruster[k].position[1] > 0.0:
                commands[model.thruster[k].name] = 0.0
                turns = True
    return turns


def describe(model: Model) -> dict[str, Any]:
    """A model as plain data: identity, geometry, actuators, derived properties."""
    size = shape_of(model).size
    return {
        "name": model.name,
        "title": model.title,
        "type": model.type,
        "size_m": [round(s, 4) for s in size],
        "thrusters": [t.name for t in model.thruster],
        "fins": [f.name for f in model.fin],
        "ballast": [b.name for b in model.ballast],
        "transducer": model.transducer is not None,
        "sensors": [i.plain for i in (model.sensors.instruments if model.sensors is not None else ())],
        "source": model.source,
        "validated": model.validated,
        "derived": derived(model),
    }
