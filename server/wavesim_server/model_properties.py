"""Properties of a model: its source, and figures that are derived from its matrices and from simulated runs."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_server import manoeuvres, sailing
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import hull_mesh, level_flight
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.simulation import Simulation
from wavesim_server.study import empty_sea, track_row
from wavesim_world.config import Model
from wavesim_world.config.aerodynamics import Aerodynamics
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.vehicle import Performance

DENSITY = 1025.0
STEP = 0.01


def derived_properties(model: Model) -> dict[str, Any]:
    """Derive the displacement, natural periods, draft, full speed and turning circle in still sea water.

    `natural_periods_s` contains the periods of small heave, roll and pitch motions. For models with linear restoring,
    they are computed from the matrices. For the roll and pitch of submerged bodies, they are computed from the righting
    moment, and for floating primitives, from a lightly damped free decay. `full_speed_m_s` is the speed over ground
    after ten minutes with all forward thrusters at their limits and the helm amidships. `turning_diameter_m` is the
    diameter of the turning circle with the fins or nozzles hard over, or with only the thrusters on one side running.
    The vehicle is neither trimmed nor controlled (:mod:`wavesim_server.sailing`). `straight_line_stable` states whether
    a push in yaw decays under thrust at three speeds. Models without a helm are tested in the horizontal plane
    (:mod:`wavesim_server.manoeuvres`).

    For an aircraft, the properties are those of straight, level flight in calm air: the range of speeds, the trim at
    60 % of `valid_speed`, and the best glide ratio of its polar.
    """
    shape = shape_of(model)
    found: dict[str, Any] = {"mass_kg": model.mass.value}
    if model.aerodynamics is not None:
        return found | _flight_properties(model, model.aerodynamics)
    if model.restoring is None:
        hull = hull_mesh.hull_of(model)
        volume = model.buoyancy.volume if model.buoyancy else hull.volume if hull else shape.volume
        found["displacement_kg"] = round(DENSITY * volume, 3)
        found["net_buoyancy_N"] = round((DENSITY * volume - model.mass.value) * 9.81, 2)
    if model.type != "underwater" and model.restoring is None:
        found |= _floating_properties(model)
    else:
        found["natural_periods_s"] = _natural_periods(model)
    if sailing.forward_thrusters(model):
        found |= _driven_properties(model)
    if under_way := manoeuvres.trials([model], ("push",)):
        found["straight_line_stable"] = {
            f"at {np.hypot(*trial.before[:2]):.2f} m/s": "yes"
            if trial.residual < manoeuvres.STABLE
            else f"no: a yaw rate of {math.degrees(trial.residual):.1f} deg/s remains after a push"
            for trial in under_way
        }
    return found


def _flight_properties(model: Model, a: Aerodynamics) -> dict[str, Any]:
    """Derive the properties of an aircraft in straight, level flight."""
    sim = empty_sea(1, STEP)
    form = sim.fleet.vehicle_type(model, False)
    found: dict[str, Any] = {
        "stall_speed_m_s": round(level_flight.stall_speed(form), 1),
        "best_glide_ratio": round(0.5 * math.sqrt(math.pi * a.efficiency * a.span * a.span / a.area / a.drag), 1)
        if a.drag
        else None,
    }
    if not model.thruster:
        return found
    trims: dict[float, level_flight.Trim] = {}
    cruise = round(0.6 * model.valid_speed, 1)
    for speed in sorted({cruise, *np.arange(5.0, model.valid_speed + 0.5, 1.0).tolist()}):
        with contextlib.suppress(ValueError):
            trims[speed] = level_flight.find_trim(form, speed)
    if trims:
        found["level_flight_m_s"] = [min(trims), max(trims)]
    if (trim := trims.get(cruise)) is not None:
        commands = {
            actuator.name: round(math.degrees(value), 2) if actuator.unit == "rad" else round(value, 2)
            for actuator, value in zip(form.actuators, trim.commands, strict=True)
        }
        found["trim"] = {"speed_m_s": cruise, "alpha_deg": round(math.degrees(trim.alpha), 2), **commands}
    return found


def _simulate_at_depth(model: Model, depth: float) -> tuple[Simulation, int]:
    sim = empty_sea(1, STEP)
    return sim, sim.enter("model", position=(0.0, 0.0, depth), variant=model)


def _track(sim: Simulation, seconds: float, every: float = 0.05) -> Any:
    rows = []
    for _ in range(round(seconds / every)):
        sim.advance(round(every / STEP))
        rows.append(track_row(sim, sim.state()[0]))
    return np.array(rows)


def _period(values: Any, every: float = 0.05) -> float | None:
    """Return the mean time between upward crossings of the mean value; None if there is no oscillation."""
    v = values - values.mean()
    up = np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0))
    return round(float(np.diff(up).mean() * every), 2) if len(up) > 1 else None


def _natural_periods(model: Model) -> dict[str, float | None]:
    """Return the undamped natural periods that follow from the matrices, each named after its dominant motion."""
    sim, row = _simulate_at_depth(model, 1000.0)
    p = sim.fleet.coefficients(row)
    stiffness = np.zeros((6, 6))
    if model.restoring is not None:
        stiffness[:, 2:5] = p[P.RESTORING : P.RESTORING + 18].reshape(6, 3)
    else:
        stiffness[3, 3] = stiffness[4, 4] = p[P.WEIGHT_MOMENT + 2] - p[P.FULL_BUOYANCY] * p[P.FULL_BUOYANCY_CENTRE + 2]
    values, vectors = np.linalg.eig(p[P.MASS_INVERSE : P.MASS_INVERSE + 36].reshape(6, 6) @ stiffness)
    scale = np.sqrt(np.maximum(np.diag(stiffness), 0.0))
    periods: dict[str, float | None] = {"heave": None, "roll": None, "pitch": None}
    for value, vector in zip(values, vectors.T, strict=True):
        if value.real > 1e-9:
            shares = dict(zip(periods, np.abs(scale * vector)[2:5], strict=True))
            lead = max((k for k, v in periods.items() if v is None), key=lambda k: shares[k])
            periods[lead] = round(2.0 * math.pi / math.sqrt(value.real), 2)
    return periods


def _floating_properties(model: Model) -> dict[str, Any]:
    sim, row = _simulate_at_depth(model, 0.0)
    rest = _track(sim, 120.0)[-1]
    z = float(rest[3])
    hull = hull_mesh.hull_of(model)
    keel = float(hull.triangles[:, :, 2].max()) if hull else shape_of(model).half_size[2]
    found: dict[str, Any] = {"draft_m": round(z + keel, 3)}
    if hull:
        afloat = hull.afloat(model.mass.value, model.mass.centre, DENSITY)
        found["metacentric_height_m"] = {"roll": round(afloat.gm_roll, 3), "pitch": round(afloat.gm_pitch, 3)}
    periods: dict[str, float | None] = {}
    for name, push, column in (("heave", 0, 3), ("roll", B.NU + 3, 4), ("pitch", B.NU + 4, 5)):
        sim, row = _simulate_at_depth(model, z)
        own = sim.fleet.coefficients(row)  # damping reduced so that the period can be measured
        sim.fleet.override_parameters(
            row,
            {
                k: 0.1 * own[k]
                for k in (*range(P.LINEAR_DRAG, P.LINEAR_DRAG + 36), *range(P.QUADRATIC_DRAG, P.QUADRATIC_DRAG + 36))
            },
        )
        b = sim.fleet.body(row)
        b[B.QW : B.QW + 4] = frames.quaternion(*rest[4:7])
        if push:
            b[push] = 0.05
        else:
            b[B.PZ] += 0.01
        periods[name] = _period(_track(sim, 10.0)[:, column])
    return found | {"natural_periods_s": periods}


def _driven_properties(model: Model) -> dict[str, Any]:
    """Simulate the full speed and the turning circle of the unmodified model."""
    runs = {run.manoeuvre: run for run in sailing.run_manoeuvres([model], manoeuvres=("ahead", "starboard"))}
    found: dict[str, Any] = {}
    ahead, turn = runs.get("ahead"), runs.get("starboard")
    if ahead is not None:
        found["full_speed_m_s"] = round(ahead.end_speed, 3) if ahead.is_finite else None
    if turn is not None and turn.is_finite and turn.turning_circle[1] > 1e-3:
        found["turning_diameter_m"] = round(turn.turning_circle[0], 1)
        found["turning_rate_deg_s"] = round(math.degrees(turn.turning_circle[1]), 1)
    if model.type == "surface":
        upright = all(run.is_finite and run.tilts.max() < sailing.MAX_TILT for run in runs.values())
        found["upright"] = "yes" if upright else "no: the vehicle capsizes at full speed or in the turn"
    return found


def published(model: Model) -> dict[str, Any]:
    """Return the published figures of the real vehicle."""
    p = model.performance or Performance(source="")
    found: dict[str, Any] = {"straight_line_stable": p.stable}
    if p.speed:
        found["speed_m_s"] = p.speed
    if p.turn_rate:
        found["turning_rate_deg_s"] = round(math.degrees(p.turn_rate), 1)
    return found | {k: v for k, v in (("source", p.source), ("remark", p.remark)) if v}


def describe(model: Model) -> dict[str, Any]:
    """Return a model as plain data: identity, geometry, actuators, and derived properties."""
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
        "sensors": [i.as_dict for i in (model.sensors.instruments if model.sensors is not None else ())],
        "source": model.source,
        "validated": model.validated,
        "valid_speed_m_s": model.valid_speed or None,
        "valid_sea_m": model.valid_sea or None,
        "published": published(model),
        "derived": derived_properties(model),
    }
