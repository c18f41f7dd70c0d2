"""The numerical world: random fleets, seas and commands; every run must stay finite and within its energy, or be refused.

python -m benchmarks.world --numerical --seeds 1000 [--from 0]     run a thousand configurations; list those that fail
python -m benchmarks.world --numerical --seed 17                     repeat one of them, and print its configuration file

A configuration that the reader refuses with a ConfigError counts as refused. A body that the engine froze because its
state diverged counts as contained, unless its model is shipped and the sea is plain: then the seed fails.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.world import runner
from benchmarks.world.energy import Body
from benchmarks.world.numerical_scenes import TINY, NumericalScene, draw
from benchmarks.world.report import Broken, Report, Trace
from wavesim_sdk.actuators import ActuatorKind
from wavesim_sdk.errors import ConfigError
from wavesim_server import Lab
from wavesim_server.dynamics import block_rows as B

UNCOMPILED = 20  #: run the first ticks of every N-th seed with compilation off
UNCOMPILED_TICKS = 25
UNIT = 1e-12  #: tolerance of the norm of a quaternion
GROWTH = 1e-6  #: relative growth of the energy that rounding and integration explain
SLOW_TURN = 0.2  #: rotation per step in rad up to which the integrators keep the energy to GROWTH
TIMES_INTENDED = 4.0  #: largest speed of a shipped model in a plain sea, as a multiple of its intended speed
RUNAWAY = 1e4  #: speed in m/s above which a body of a wild scene counts as a runaway


class Judge:
    """Check the bodies of a run after each of its pieces."""

    def __init__(self, lab: Lab, scene: NumericalScene, trace: Trace) -> None:
        self.lab, self.scene, self.trace = lab, scene, trace
        self.bodies = {name: Body.of(lab, name) for name in lab.names}
        self.start = {n: b.motion(lab.fleet.body(b.row)) for n, b in self.bodies.items()}
        self.last = {n: b.energy(lab.fleet.body(b.row)) for n, b in self.bodies.items()}
        self.touched: set[str] = set()
        self.pushed: set[str] = set()
        self.met: set[str] = set()  #: bodies that touched another body
        self.runaways: set[str] = set()
        self.frozen: set[str] = set()
        self.speeds = {n: float(np.linalg.norm(lab.fleet.body(b.row)[B.NU : B.NU + 3])) for n, b in self.bodies.items()}
        self.farthest = dict.fromkeys(self.bodies, 1.0)
        self.deep = dict.fromkeys(self.bodies, False)
        self.sea_stays_calm = scene.kind == "still"

    def check(self) -> None:
        """Check all bodies. Raises Broken at the first violation."""
        lab = self.lab
        state, actuation = lab.state(), lab.actuation()
        self.trace.data(state[lab.rows].tobytes() + actuation[lab.rows].tobytes())
        for _, row, partner, _ in lab.take_meetings():
            name = lab.occupants[row].name
            self.touched |= {name, partner.strip("'")}
            if partner.startswith("'"):
                self.met |= {name, partner.strip("'")}
        frozen = set(lab.frozen_bodies)
        for name in sorted(frozen - self.frozen):
            self._froze(name)
        self.frozen = frozen
        for name, body in self.bodies.items():
            b = lab.fleet.body(body.row)
            if not np.isfinite(b[: B.STATE_ROWS]).all():
                raise Broken(f"not finite: {name} has {b[: B.RIGID_ROWS]}")
            if not all(np.isfinite(actuation[body.row][c]).all() for c in ("command", "actual", "feedback")):
                raise Broken(f"actuators not finite: {name}")
            norm = math.sqrt(sum(float(x) * float(x) for x in b[B.QW : B.QW + 4]))
            if abs(norm - 1.0) > UNIT:
                raise Broken(f"quaternion: {name} has the norm {norm!r}")
            if name not in frozen:
                self._check_bed(name, body, b)
                self._check_energy(name, body, b)
                self._check_speed(name, body, b)

    def _froze(self, name: str) -> None:
        s = self.scene
        why = "mooring or line" if name in s.lined else "altered model" if s.altered[name] else "shipped model"
        if name in self.pushed:
            why += ", pushed"
        elif name in self.touched:
            why += ", in contact"
        self.trace.note(self.lab.time_ns * 1e-9, f"contained: {why}", name, s.models[name].name)
        if s.kind == "plain" or (s.kind == "still" and not s.altered[name]):
            raise Broken(f"frozen in a {s.kind} sea: {name} ({s.models[name].name}, {why})")

    def _check_bed(self, name: str, body: Body, b: np.ndarray) -> None:
        depth, north, east = self.scene.bed
        bed = depth + north * b[B.PX] + east * b[B.PY]
        # one step of motion into the bed is resolved at the end of the step
        speed = float(np.linalg.norm(b[B.NU : B.NU + 3]))
        if (
            b[B.PZ] > bed + 0.05 + 0.1 * body.radius + speed * 1e-3 * self.scene.step_ms
            and body.model.restoring is None
        ):
            # forces beyond the correction of overlaps in a step: a pull of a line, or a body on top; see docs/evidence
            if self.scene.kind == "wild" and (name in self.scene.lined or name in self.met or name in self.pushed):
                self.trace.counts["pressed below the bed"] += 1
                return
            raise Broken(f"below the bed: {name} is at {b[B.PZ]:.3f} m, the bed at {bed:.3f} m")

    def _check_energy(self, name: str, body: Body, b: np.ndarray) -> None:
        """Check that the energy of a passive body in still water does not grow."""
        now, scale = body.energy(b)
        before, old_scale = self.last[name]
        self.last[name] = now, scale
        turn = float(np.linalg.norm(b[B.NU + 3 : B.NU + 6])) * 1e-3 * self.scene.step_ms
        was_deep, self.deep[name] = self.deep[name], b[B.PZ] > 1.5 * body.radius + self.speeds[name] * 2.0
        is_free = name not in self.touched and name not in self.scene.lined
        is_deep = was_deep and self.deep[name]
        if not (self.sea_stays_calm and body.passive and is_free and turn < SLOW_TURN and is_deep):
            return
        self.trace.counts["energy checked"] += 1
        if now > before + GROWTH * max(scale, old_scale) + 1e-30:
            raise Broken(f"energy grows: {name} ({self.scene.models[name].name}) from {before:.9g} to {now:.9g} J")

    def _check_speed(self, name: str, body: Body, b: np.ndarray) -> None:
        """Check the speed against the work that thrust, weight and water could have done."""
        s, t = self.scene, self.lab.time_ns * 1e-9
        speed = float(np.linalg.norm(b[B.NU : B.NU + 3]))
        self.speeds[name] = max(self.speeds[name], speed)
        restoring = body.model.restoring
        if restoring is not None:
            self.farthest[name] = max(self.farthest[name], 2.0 * abs(float(b[B.PZ]) - restoring.z) + s.flow)
        if name in s.lined or name in self.touched or name in self.pushed:
            return
        intended = s.models[name].speed
        if s.kind == "plain" and intended:
            self.trace.counts["speed checked"] += 1
            bound = TIMES_INTENDED * intended + self.start[name] / math.sqrt(body.inertia[0, 0]) + s.flow
            if speed > bound:
                raise Broken(
                    f"too fast: {name} ({s.models[name].name}) moves at {speed:.3g} m/s, the bound is {bound:.3g}"
                )
        if body.brakes and math.isfinite(body.thrust) and not s.windy:
            self.trace.counts["work checked"] += 1
            heaviest = math.sqrt(float(np.linalg.norm(body.inertia, 2)))
            water = heaviest * (2.0 * s.flow + s.flow_rate * t)
            gravity = s.flow_rate / max(self.lab.config.world.gravity, 1e-3)
            bound = self.start[name] + t * body.load(gravity, self.farthest[name]) + water
            if body.motion(b) > 1.001 * bound + 1e-9:
                raise Broken(
                    f"more than the work done: {name} ({s.models[name].name}) {body.motion(b):.4g} of {bound:.4g}"
                )
        if speed > RUNAWAY and name not in self.runaways:
            self.runaways.add(name)
            self.trace.note(t, "runaway", name, s.models[name].name, f"{speed:.3g} m/s")


class Commands:
    """Random commands: limits, rapid reversals, values beyond the limits, subnormals, and idle stretches."""

    KINDS = ("idle", "idle", "limits", "reversal", "tiny", "random", "random", "beyond", "zero")

    def __init__(self, lab: Lab, seed: int, active: bool) -> None:
        self.lab, self.r, self.active = lab, random.Random(f"commands {seed}"), active

    def disturb(self, judge: Judge) -> None:
        """Fail an actuator or push a body, seldom and only in wild scenes."""
        if judge.scene.kind != "wild" or self.r.random() > 0.1:
            return
        name = self.r.choice(self.lab.names)
        row = self.lab.row(name)
        actuators = self.lab.fleet.actuators(row)
        if actuators and self.r.random() < 0.7:
            k = self.r.randrange(len(actuators))
            weak = ("lost", "reduced") if actuators[k].kind <= ActuatorKind.FIN else ()
            fault = self.r.choice(("stuck", "frozen", "reversed", "none", *weak))
            self.lab.fail(row, k, fault, self.r.choice((0.5, 1.0, 1e-310)))
            return
        size = self.r.choice((0.0, 1e-310, 1.0, 1e3, 1e6))
        self.lab.push(
            row, [self.r.uniform(-size, size) for _ in range(3)], [self.r.uniform(-size, size) for _ in range(3)]
        )
        judge.pushed.add(name)  # its energy has another source now

    def issue(self) -> str:
        """Issue the commands of the next piece; return their kind."""
        kind = self.r.choice(self.KINDS) if self.active else "idle"
        if kind == "idle":
            return kind
        for name in self.lab.names:
            row = self.lab.row(name)
            actuators = self.lab.fleet.actuators(row)
            if actuators:
                self.lab.command(row, [self._value(kind, a.minimum, a.maximum) for a in actuators])
        return kind

    def _value(self, kind: str, low: float, high: float) -> float:
        if kind in ("limits", "reversal"):
            return self.r.choice((low, high))
        if kind == "tiny":
            return self.r.choice(TINY)
        if kind == "random":
            return self.r.uniform(low, high)
        return self.r.choice((1e9, -1e9)) if kind == "beyond" else 0.0

    def ticks(self, kind: str, left: int, step: float) -> int:
        """Return the length of the next piece in ticks."""
        seconds = self.r.uniform(0.02, 0.3) if kind == "reversal" else self.r.choice((0.1, 1.0, 2.0, 5.0))
        if not self.active:
            seconds = min(seconds, 2.0)
        return max(1, min(left, round(seconds / step)))


def scenes_folder() -> Path:
    """Return the folder in which the configurations of failed seeds are stored."""
    made = Path(tempfile.gettempdir()) / "wavesim-numerical"
    made.mkdir(exist_ok=True)
    return made


def run(seed: int, ticks: int = 0) -> Report:
    """Run the configuration of a seed; ``ticks`` limits its length."""
    scene, trace = draw(seed), Trace()
    broken = trouble = ""
    lab = None
    try:
        lab = Lab(scene.text)
    except ConfigError as error:
        trace.note(0.0, "refused", error.message)  # without the path, which is temporary
        trace.counts[f"refused ({scene.kind})"] += 1
    except Exception:
        broken, trouble = "the reader raised", traceback.format_exc()
    if lab is not None:
        try:
            _drive(lab, scene, trace, ticks)
        except Broken as violated:
            broken = str(violated)
        except Exception:
            broken, trouble = "the engine raised", traceback.format_exc()
    steps, now = (lab.tick, lab.time_ns * 1e-9) if lab is not None else (0, 0.0)
    if broken:
        path = scenes_folder() / f"seed-{seed}.xml"
        path.write_text(scene.text)
        trouble = f"configuration: {path}\nagain: python -m benchmarks.world --numerical --seed {seed}\n{trouble}"
    if lab is not None and not broken:
        trace.counts[f"finite ({scene.kind})" if not lab.frozen_bodies else f"contained ({scene.kind})"] += 1
    return Report(seed, trace.hash, steps, now, trace.counts, broken, trouble, trace.last)


def _drive(lab: Lab, scene: NumericalScene, trace: Trace, ticks: int) -> None:
    step = lab.step_ns * 1e-9
    end = ticks or round(scene.duration / step)
    commands = Commands(lab, scene.seed, scene.kind != "still")
    lab.advance(0)
    judge = Judge(lab, scene, trace)
    while lab.tick < end:
        kind = commands.issue()
        commands.disturb(judge)
        lab.advance(commands.ticks(kind, end - lab.tick, step))
        trace.note(lab.time_ns * 1e-9, kind)
        judge.check()


def uncompiled(seeds: Sequence[int]) -> dict[int, str]:
    """Return the hashes of the first ticks of seeds with compilation off, computed in another process."""
    code = (
        "import sys; from benchmarks.world.numerics import run, UNCOMPILED_TICKS as n\n"
        "for k in map(int, sys.argv[1:]): r = run(k, n); print(k, r.hash, r.broken.replace(chr(10), ' '))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, seeds)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    return {int(k): " ".join(rest) for k, *rest in found}


def hunt(seeds: range, workers: int, twice: int) -> int:
    """Run many seeds, compare some with compilation off, print the failures, and return an exit code."""
    failed = runner.hunt(seeds, workers, twice, run)
    sample = [seed for seed in seeds if seed % UNCOMPILED == 0]
    different = compare(sample) if sample else []
    print(f"{len(sample) - len(different)} of {len(sample)} equal with compilation off")
    return max(failed, min(len(different), 1))


def compare(seeds: Sequence[int]) -> list[int]:
    """Compare the first ticks of seeds with compilation on and off; print and return the seeds that differ."""
    plain = uncompiled(seeds)
    different = []
    for seed in seeds:
        report = run(seed, UNCOMPILED_TICKS)
        if f"{report.hash} {report.broken}".strip() != plain.get(seed, "").strip():
            different.append(seed)
            print(f"seed {seed}: {report.hash} {report.broken} compiled, {plain.get(seed)} with compilation off")
    return different


def replay(seed: int) -> int:
    """Repeat one seed, and store its configuration."""
    path = scenes_folder() / f"seed-{seed}.xml"
    path.write_text(draw(seed).text)
    report = run(seed)
    print(report)
    print(f"configuration: {path}; {', '.join(f'{k} {n}' for k, n in sorted(report.counts.items()))}")
    return int(bool(report.broken))
