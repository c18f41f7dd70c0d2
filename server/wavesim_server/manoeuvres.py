"""Standard manoeuvres: push and release, Dieudonne's spiral, zig-zags and a turning circle, each at three speeds.

    from wavesim_server.manoeuvres import trials
    for trial in trials(library().values()):
        print(trial.model, trial.manoeuvre, trial.share, trial.residual)

The manoeuvres follow IMO MSC/Circ.1053 and ITTC 7.5-04-02-01. All bodies are in one simulation with calm water.
Rudders, planes and nozzles are set in degrees. For twin screws, 35 deg of helm means that the inner screw loses all its
thrust.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server import sailing
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_world.config import Model
from wavesim_world.config.primitives import shape_of

#: fractions of the full shaft speed; they are also approximate fractions of the vehicle's full speed
SPEEDS = 0.35, 0.65, 1.0
STEP, EVERY = 0.02, 0.2  #: time step, and interval between records, in s
RUN_IN, END = 120.0, 480.0  #: time to accelerate before each manoeuvre, and time at which the manoeuvre ends, in s
PUSH = 2.0  #: duration of the push in s
HARD = math.radians(35.0)  #: full helm angle in rad for nozzles and twin screws
#: helm angles of the spiral as fractions of full helm, each held for 40 s
SPIRAL = (1.0, 0.5, 0.2, 0.0, -0.5, -1.0, -0.5, 0.0, 0.5)
MANOEUVRES = ("push", "spiral", "zig-zag 10/10", "zig-zag 20/20", "circle")
STABLE = math.radians(0.1)  #: yaw rate in rad/s remaining after a push, up to which a vehicle counts as stable
TOWED = {"sookshma": 1.28, "sookshma-fitted": 1.28}  #: forward force in N at full speed for models without a thruster


@dataclass(frozen=True)
class ManoeuvreTrial:
    """One manoeuvre with one model."""

    model: str
    manoeuvre: str
    share: float  #: approximate fraction of the full speed
    length: float  #: length of the model in m
    times: Floats
    track: Floats  #: rigid-body rows of the state (times, 13)
    helm: Floats  #: fraction of full helm at each time

    @property
    def before(self) -> Floats:
        """Velocity (u v w p q r) at the start of the manoeuvre."""
        return np.asarray(self.track[self.times < RUN_IN - 1e-9][-1, 7:13])

    @property
    def residual(self) -> float:
        """Mean yaw rate in the last 20 s of the run minus the mean yaw rate in the 20 s before the push, in rad/s."""
        before = self.track[(self.times > RUN_IN - 20.0) & (self.times < RUN_IN), 12].mean()
        return float(abs(self.track[self.times > END - 20.0, 12].mean() - before))

    @property
    def rates(self) -> Floats:
        """Steady yaw rate in rad/s in each step of the spiral."""
        step = (END - RUN_IN) / len(SPIRAL)
        ends = [RUN_IN + step * (k + 1) for k in range(len(SPIRAL))]
        return np.array([self.track[(self.times > e - 5.0) & (self.times < e), 12].mean() for e in ends])

    @property
    def loop(self) -> float:
        """Difference in rad/s between two steady yaw rates with the helm amidships: one after starboard helm, one after
        port helm.

        The difference is 0 for straight-line stable vehicles.
        """
        amidships = [k for k, share in enumerate(SPIRAL) if share == 0.0]
        return float(abs(self.rates[amidships[0]] - self.rates[amidships[1]]))

    @property
    def overshoots(self) -> tuple[float, float]:
        """First and second overshoot angles of a zig-zag in rad; infinite if the vehicle does not turn back."""
        heading = np.unwrap(headings(self.track[:, 3:7]))
        switches = np.flatnonzero(np.diff(np.sign(self.helm)) != 0)
        found = []
        for k, here in enumerate(switches[1:3], 1):
            if k + 1 >= len(switches):
                found.append(math.inf)
                continue
            leg = heading[here : switches[k + 1]]
            extreme = leg.max() if self.helm[here] > 0.0 else leg.min()
            found.append(abs(float(extreme - heading[here])))
        first, second = (*found, math.inf, math.inf)[:2]
        return first, second

    @property
    def circle(self) -> tuple[float, float, float]:
        """Diameter of the steady turn in vehicle lengths, its yaw rate in rad/s, and the remaining fraction of the
        approach speed.
        """
        speed = np.hypot(self.track[:, 7], self.track[:, 8])
        before = speed[(self.times > RUN_IN - 10.0) & (self.times < RUN_IN)].mean()
        late = self.times > END - 60.0
        rate = float(np.abs(self.track[late, 12]).mean())
        diameter = 2.0 * float(speed[late].mean()) / rate if rate > 1e-5 else math.inf
        return diameter / self.length, rate, float(speed[late].mean() / before)


def headings(q: Floats) -> Floats:
    """Return the headings of quaternions (n, 4) in rad."""
    return np.arctan2(2.0 * (q[:, 0] * q[:, 3] + q[:, 1] * q[:, 2]), 1.0 - 2.0 * (q[:, 2] ** 2 + q[:, 3] ** 2))


def ahead(model: Model, share: float) -> dict[str, float]:
    """Return commands to the forward thrusters that give approximately the fraction ``share`` of the full speed."""
    found = {}
    for k in sailing.forward_thrusters(model):
        t = model.thruster[k]
        thrust = t.law == "force" and model.allocation is None
        found[t.name] = t.maximum * (share * share if thrust else share)
    return found


def steer(model: Model, share: float, helm: float) -> dict[str, float]:
    """Return commands for a fraction of full helm (positive to starboard) at a fraction of the full speed."""
    commands = ahead(model, share)
    for name, value in sailing.hard_turn(model, math.copysign(1.0, helm)).items():
        if name in commands:  # the screw on the inner side
            commands[name] *= 1.0 - abs(helm)
        else:
            commands[name] = value * abs(helm)
    return commands


def degrees(model: Model, angle: float) -> float:
    """Return the fraction of full helm that corresponds to an angle in degrees."""
    limits = [f.limit for f in model.fin if abs(f.normal[1]) > 0.5]
    swivels = [min(abs(t.swivel.minimum), HARD) for t in model.thruster if t.swivel is not None]
    return min(1.0, math.radians(angle) / min([*limits, *swivels, HARD]))


def trials(models: Iterable[Model], manoeuvres: Sequence[str] = MANOEUVRES) -> list[ManoeuvreTrial]:
    """Run models through the manoeuvres at each speed. Models without a helm perform only the push, in the horizontal
    plane.
    """
    runs: list[tuple[Model, str, float]] = []
    for model in models:
        if not sailing.forward_thrusters(model) and model.name not in TOWED:
            continue
        steered = bool(sailing.hard_turn(model, 1.0))
        if not steered and model.type == "underwater":
            model = dataclasses.replace(model, active="u v r")
        runs += [(model, m, s) for m in manoeuvres if steered or m == "push" for s in SPEEDS]
    if not runs:
        return []
    sim = empty_sea(len(runs), STEP, '<bed depth="3000 m"/>', [model for model, _, _ in runs])
    rows, helm = [], np.zeros(len(runs))
    for k, (model, _, share) in enumerate(runs):
        depth = equilibrium_depth(model, sim.config.world.density)
        rows.append(sim.enter(f"b{k}", model.name, (0.0, sailing.SPACING * k, depth), variant=model))
        sim.set_pose(rows[k], velocity=[0.8 * share * model.valid_speed, 0.0, 0.0, 0.0, 0.0, 0.0])
        if model.name in TOWED:
            sim.push(rows[k], [TOWED[model.name] * share * share, 0.0, 0.0])
        sailing.order(sim, rows[k], model, ahead(model, share))
    count = round(END / EVERY) + 1
    times, tracks, helms = (
        EVERY * np.arange(count, dtype=np.float64),
        np.zeros((count, len(runs), B.RIGID_ROWS)),
        np.zeros((count, len(runs))),
    )
    begin = np.zeros(len(runs))
    for n in range(count):
        for k, row in enumerate(rows):
            tracks[n, k] = sim.fleet.body(row)[: B.RIGID_ROWS]
        now = headings(tracks[n, :, 3:7])
        if n == round(RUN_IN / EVERY):
            begin = now
        turned = (now - begin + math.pi) % (2.0 * math.pi) - math.pi
        for k, (model, manoeuvre, share) in enumerate(runs):
            wanted = _helm(model, manoeuvre, n * EVERY, float(turned[k]), float(helm[k]))
            if wanted != helm[k]:
                helm[k] = wanted
                sailing.order(sim, rows[k], model, steer(model, share, wanted))
            if manoeuvre == "push" and n in (round(RUN_IN / EVERY), round((RUN_IN + PUSH) / EVERY)):
                inertia = sim.fleet.coefficients(rows[k])[P.TOTAL_INERTIA + 35]
                size = 0.1 * inertia if n == round(RUN_IN / EVERY) else 0.0
                towed = TOWED.get(model.name, 0.0) * share * share
                sim.push(rows[k], [towed, 0.0, 0.0], [0.0, 0.0, size])
        helms[n] = helm
        if n + 1 < count:
            sim.advance(round(EVERY / STEP))
    return [
        ManoeuvreTrial(model.name, manoeuvre, share, shape_of(model).size[0], times, tracks[:, k], helms[:, k])
        for k, (model, manoeuvre, share) in enumerate(runs)
    ]


def _helm(model: Model, manoeuvre: str, time: float, turned: float, now: float) -> float:
    """Return the fraction of full helm to use from now on."""
    if time < RUN_IN - 1e-9 or manoeuvre == "push":
        return 0.0
    if manoeuvre == "circle":
        return 1.0
    if manoeuvre == "spiral":
        return SPIRAL[min(int((time - RUN_IN) / (END - RUN_IN) * len(SPIRAL) + 1e-9), len(SPIRAL) - 1)]
    angle = float(manoeuvre.rpartition("/")[2])
    if now == 0.0:
        return degrees(model, angle)
    return -now if turned * math.copysign(1.0, now) > math.radians(angle) else now
