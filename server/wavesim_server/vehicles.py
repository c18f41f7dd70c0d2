"""What a model is like: its source, and properties derived by letting it float and run."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.config import Model, load
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.kind import shape_of
from wavesim_server.simulation import Simulation

DENSITY, GRAVITY = 1025.0, 9.81
_SEA = f'<wavesim><time step="10 ms"/><world density="{DENSITY} kg/m3" gravity="{GRAVITY} m/s2"><bed depth="9000 m"/></world></wavesim>'


def derived(model: Model) -> dict[str, Any]:
    """Displacement, trim, and what the model does when it is left alone or driven at full thrust.

    Found with the engine itself, in still sea water: `draft_m` and `roll_period_s`, `heave_period_s` of floating
    bodies, `full_speed_m_s` on a straight course at full thrust of all thrusters that push forward, and
    `turning_diameter_m` with all fins that turn at their limits (or the thrusters of one side only).
    """
    volume = model.buoyancy.volume if model.buoyancy else shape_of(model).volume
    found: dict[str, Any] = {
        "mass_kg": model.mass.value,
        "displacement_kg": round(DENSITY * volume, 3),
        "net_buoyancy_N": round((DENSITY * volume - model.mass.value) * GRAVITY, 2),
    }
    if model.type == "surface":
        found |= _floating(model)
    forward = [k for k, t in enumerate(model.thruster) if t.direction[0] > 0.5 * math.hypot(*t.direction)]
    if forward:
        found |= _driven(model, forward)
    return found


def _sea(model: Model, depth: float) -> tuple[Simulation, int]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sea.xml"
        path.write_text(_SEA)
        loaded = load(path)
    sim = Simulation(dataclasses.replace(loaded, models={model.name: model}))
    return sim, sim.enter("model", model.name, (0.0, 0.0, depth))


def _track(sim: Simulation, seconds: float, every: float = 0.05) -> Any:
    ticks = round(every * 1e9 / sim.step_ns)
    states = []
    for _ in range(round(seconds / every)):
        sim.advance(ticks)
        states.append(sim.state()[0])
    return np.array(states)


def _period(values: Any, every: float = 0.05) -> float | None:
    """Mean time between upward crossings of the mean; None without oscillation."""
    v = values - values.mean()
    up = np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0))
    return round(float(np.diff(up).mean() * every), 2) if len(up) > 1 else None


def _floating(model: Model) -> dict[str, Any]:
    sim, row = _sea(model, 0.0)
    rest = _track(sim, 120.0)[-1]
    z = float(rest["p_WB_W"][2])
    found: dict[str, Any] = {"draft_m": round(z + shape_of(model).half[2], 3)}
    for name, push in (("heave_period_s", 0), ("roll_period_s", 1)):
        sim, row = _sea(model, z)
        own = sim.fleet.coefficients(row)  # lightly damped, to see the period
        sim.fleet.change(row, {k: 0.1 * own[k] for k in (*range(r.DL, r.DL + 36), *range(r.DQ, r.DQ + 36))})
        b = sim.fleet.body(row)
        b[r.QW : r.QW + 4] = rest["q_WB"]
        if push:
            b[r.U + 3] = 0.05
        else:
            b[r.PZ] += 0.01
        track = _track(sim, 10.0)
        values = frames.euler(track["q_WB"])[:, 0] if push else track["p_WB_W"][:, 2]
        found[name] = _period(values)
    return found


def _driven(model: Model, forward: list[int]) -> dict[str, Any]:
    depth = 0.0 if model.type == "surface" else 1000.0
    commands: list[float | None] = [None] * r.SLOTS
    for k in forward:
        commands[k] = model.thruster[k].maximum
    found: dict[str, Any] = {}
    for name in ("full_speed_m_s", "turning_diameter_m"):
        sim, row = _sea(model, depth)
        if depth:  # neutral, so that it keeps its depth
            sim.fleet.change(row, {r.FULL_B: sim.fleet.coefficients(row)[r.WEIGHT]})
        if name == "full_speed_m_s":  # held on a straight course: some models do not keep one by themselves
            for axis in (1, 3, 5):
                sim.fleet.change(row, {r.MINV + 6 * axis + k: 0.0 for k in range(6)})
        if name == "turning_diameter_m":
            rudders = [k for k, f in enumerate(model.fin) if abs(f.normal[1]) > 0.5]
            sides = [k for k in forward if model.thruster[k].position[1] > 0.0]
            if not rudders and not sides:
                continue
            for k in rudders:
                commands[r.THRUSTERS + k] = -math.copysign(
                    model.fin[k].limit, model.fin[k].normal[1] * -model.fin[k].position[0]
                )
            if not rudders:
                for k in sides:
                    commands[k] = 0.0
        sim.command(row, commands)
        track = _track(sim, 120.0)
        if name == "full_speed_m_s":
            found[name] = round(float(np.linalg.norm(track["v_FB_B"][-1])), 3)
        else:
            last = track["p_WB_W"][-1200:, :2]
            found[name] = round(float(np.ptp(last, axis=0).mean()), 1)
    return found


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
        "transducer": model.transducer is not None,
        "source": model.source,
        "validated": model.validated,
        "derived": derived(model),
    }
