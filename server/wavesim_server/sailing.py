"""Runs of every model at sea: full ahead, hard turns, full astern, zig-zag, a push, and beam waves. All runs take place
side by side in one simulation.

from wavesim_server.sailing import run_manoeuvres
for run in run_manoeuvres(library().values()):
    print(run.model, run.manoeuvre, run.end_speed, run.tilts.max())
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.simulation import Simulation
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_world.config import Model
from wavesim_world.config.primitives import shape_of
from wavesim_world.recorded_data import actuator_position

AHEAD = ("ahead", "port", "starboard", "zig-zag")
POWERED = (*AHEAD, "astern")
#: manoeuvres in beam waves of the sea state that the model declares: adrift, and full ahead
IN_WAVES = ("waves", "seaway")
MANOEUVRES = (*POWERED, "push", *IN_WAVES)
SPACING = 8000.0  #: distance between bodies in m; it is greater than the distance that any of them travels
SEA = 1.0, 0.8881  #: height (m) and peak frequency (rad/s) of a reference sea; other seas have the same steepness
STEP, EVERY = 0.02, 1.0  #: time step, and interval between records, in s
MAX_TILT = math.radians(60.0)  #: maximum tilt of a vehicle or buoy at the surface
#: heading in rad at which the helm is reversed, and duration of the push in s
ZIG_ZAG_ANGLE, PUSH = math.radians(20.0), 2.0


@dataclass(frozen=True)
class ManoeuvreRun:
    """The result of one model in one manoeuvre."""

    model: str
    manoeuvre: str
    track: Floats  # (times, 13): the rigid-body rows of the state, one per second
    is_finite: bool

    @property
    def speeds(self) -> Floats:
        """Speed over ground in m/s."""
        return np.asarray(np.linalg.norm(self.track[:, 7:10], axis=1))

    @property
    def tilts(self) -> Floats:
        """Angle in rad between the body's z axis and the downward vertical."""
        q = self.track[:, 3:7]
        return np.asarray(np.arccos(np.clip(1.0 - 2.0 * (q[:, 1] ** 2 + q[:, 2] ** 2), -1.0, 1.0)))

    @property
    def end_speed(self) -> float:
        """Mean speed in m/s over the last quarter of the run."""
        return float(self.speeds[-len(self.track) // 4 :].mean())

    @property
    def turning_circle(self) -> tuple[float, float]:
        """Turning diameter in m and turning rate in rad/s over the last quarter of the run."""
        end = self.track[-len(self.track) // 4 :]
        rate = float(np.abs(end[:, 12]).mean())
        return (2.0 * float(np.hypot(end[:, 7], end[:, 8]).mean()) / rate if rate > 1e-4 else math.inf), rate


def forward_share(model: Model, k: int) -> float:
    """Return the fraction of a thruster's force that acts forward."""
    if model.allocation is not None:
        column = np.array(model.allocation.rows).reshape(6, -1)[:3, k]
    else:
        column = np.array(model.thruster[k].direction)
    return float(column[0] / max(np.linalg.norm(column), 1e-12))


def forward_thrusters(model: Model) -> list[int]:
    """Return the indices of the thrusters that push the vehicle forward through the water."""
    if model.type == "aircraft":
        return []
    return [k for k in range(len(model.thruster)) if forward_share(model, k) > 0.3]


def full_ahead(model: Model) -> dict[str, float]:
    """Return commands for full ahead."""
    return {model.thruster[k].name: model.thruster[k].maximum for k in forward_thrusters(model)}


def hard_turn(model: Model, side: float) -> dict[str, float]:
    """Return commands that turn hard to starboard (+1) or port (-1) at full ahead; empty if the model cannot turn."""
    commands: dict[str, float] = {}
    ahead = forward_thrusters(model)
    for f in model.fin:
        if abs(f.normal[1]) > 0.5:
            # side to which a positive angle turns the bow: by its own moment, or by a force along its normal
            aft = f.position[0] < 0.0 or f.law != "linear"
            turn = f.per_angle[5] if f.law == "coefficients" else -f.normal[1] if aft else f.normal[1]
            commands[f.name] = side * math.copysign(f.limit, turn)
    for k in ahead:
        swivel = model.thruster[k].swivel
        if swivel is not None:
            commands[f"{model.thruster[k].name}-angle"] = -side * min(abs(swivel.minimum), math.radians(35.0))
    if not commands:
        for k in ahead:
            # twin screws; vectored thrusters could turn on the spot
            if forward_share(model, k) > 0.99 and side * model.thruster[k].position[1] > 0.0:
                commands[model.thruster[k].name] = 0.0
    return commands


def full_astern(model: Model) -> dict[str, float]:
    """Return commands for full astern, with thrusters at their minimum and jet deflectors down."""
    commands: dict[str, float] = {}
    for k in forward_thrusters(model):
        t = model.thruster[k]
        commands[t.name] = t.maximum if t.deflector is not None else t.minimum
        if t.deflector is not None:
            commands[f"{t.name}-deflector"] = t.deflector.minimum
        elif t.swivel is not None and t.minimum >= 0.0:
            commands[t.name], commands[f"{t.name}-angle"] = t.maximum, t.swivel.maximum
    return commands


def is_surface_model(model: Model) -> bool:
    """Return whether a model floats at the surface."""
    return model.type in ("surface", "buoy")


def run_manoeuvres(
    models: Iterable[Model], seconds: float = 600.0, manoeuvres: Sequence[str] = MANOEUVRES
) -> list[ManoeuvreRun]:
    """Run the models of vessels through manoeuvres in calm water and in each sea state that the models declare
    (`valid_sea`).
    """
    vessels = [m for m in models if m.type != "aircraft"]
    pairs = [(m, name) for m in vessels for name in manoeuvres if _can_perform(m, name)]
    calm = [pair for pair in pairs if pair[1] not in IN_WAVES]
    runs = _run_in_world(calm, seconds, '<bed depth="3000 m"/>') if calm else []
    rough = sorted((p for p in pairs if p[1] in IN_WAVES), key=lambda p: p[0].valid_sea)
    for height, group in itertools.groupby(rough, key=lambda p: p[0].valid_sea):
        peak = SEA[1] * math.sqrt(SEA[0] / height)
        world = (
            f'<waves height="{height} m" peak="{peak} rad/s" direction="90 deg" components="30"/><bed depth="3000 m"/>'
        )
        runs += _run_in_world(list(group), seconds, world)
    return runs


def _can_perform(model: Model, manoeuvre: str) -> bool:
    """Return whether a model can perform a manoeuvre."""
    if manoeuvre in IN_WAVES and not model.valid_sea:
        return False
    if manoeuvre in ("port", "starboard", "zig-zag"):
        return bool(forward_thrusters(model) and hard_turn(model, 1.0))
    return manoeuvre in ("push", "waves") or bool(forward_thrusters(model))


def _run_in_world(pairs: list[tuple[Model, str]], seconds: float, world: str) -> list[ManoeuvreRun]:
    sim = empty_sea(len(pairs), STEP, world, [model for model, _ in pairs])
    rows, helms = [], []
    for k, (model, manoeuvre) in enumerate(pairs):
        depth = equilibrium_depth(model, sim.config.world.density)
        if manoeuvre in IN_WAVES and not is_surface_model(model):
            depth = 3.0 * max(shape_of(model).size)
        rows.append(sim.enter(f"b{k}", model.name, (0.0, SPACING * k, depth)))
        commands = (
            full_astern(model)
            if manoeuvre == "astern"
            else full_ahead(model)
            if manoeuvre in (*AHEAD, "seaway")
            else {}
        )
        side = {"port": -1.0, "starboard": 1.0, "zig-zag": 1.0}.get(manoeuvre, 0.0)
        helms.append(side)
        order(sim, rows[k], model, commands | (hard_turn(model, side) if side else {}))
    tracks = np.zeros((round(seconds / EVERY) + 1, len(rows), B.RIGID_ROWS))
    for n in range(len(tracks)):
        tracks[n] = [sim.fleet.body(row)[: B.RIGID_ROWS] for row in rows]
        for k, (model, manoeuvre) in enumerate(pairs):
            if manoeuvre == "zig-zag":
                heading = frames.euler(tracks[n, k, 3:7])[2]
                if heading * helms[k] > ZIG_ZAG_ANGLE:
                    helms[k] = -helms[k]
                    order(sim, rows[k], model, full_ahead(model) | hard_turn(model, helms[k]))
            elif manoeuvre == "push" and n in (0, round(PUSH / EVERY)):
                _apply_push(sim, rows[k], n == 0)
        if n + 1 < len(tracks):
            sim.advance(round(EVERY / STEP))
    finite = [bool(np.isfinite(tracks[:, k]).all()) and f"b{k}" not in sim.frozen_bodies for k in range(len(pairs))]
    return [ManoeuvreRun(m.name, name, tracks[:, k], finite[k]) for k, (m, name) in enumerate(pairs)]


def order(sim: Simulation, row: int, model: Model, commands: dict[str, float]) -> None:
    """Send actuator commands by name, if there are any commands."""
    if commands:
        sim.command(row, {actuator_position(model, name): value for name, value in commands.items()})


def _apply_push(sim: Simulation, row: int, begins: bool) -> None:
    """Start or end a push that causes accelerations of 0.1 m/s2 in sway and 0.1 rad/s2 in roll and yaw."""
    inertia = sim.fleet.coefficients(row)[P.TOTAL_INERTIA : P.TOTAL_INERTIA + 36].reshape(6, 6).diagonal()
    size = 0.1 if begins else 0.0
    sim.push(row, [0.0, size * inertia[1], 0.0], [size * inertia[3], 0.0, size * inertia[5]])
