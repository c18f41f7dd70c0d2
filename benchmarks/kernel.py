"""Measure the cost of the dynamics kernel per vehicle and step against fleet size.

It compares the core model with the floor of the machine's multiply-adds, a fleet of one model with a batched NumPy
twin, and the whole library mixed.

python benchmarks/kernel.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the floor is that of one core

import platform
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_kernels.compiler import kernel
from wavesim_server import Simulation, tick
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import integrators
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.sizes import SLOT_FIN, SLOTS
from wavesim_world.config import library, load

SIZES = (1, 10, 100, 1000, 10_000)
#: multiplications and additions of one RK4 step of the core model, counted in kernel.py: per stage 87 kinematics,
#: 12 force rows, 350 drag, momentum, Coriolis, weight and accelerations; 26 and 26 for each stage's sums; 15 at the end
CORE_FLOPS = 4 * (87 + 12 + 350 + 26 + 26) + 15

CORE = """<models><model name="core" type="underwater"><cylinder length="2 m" radius="0.2 m"/><mass value="250 kg" centre="0.1 0.02 0.03 m"/>
<inertia xx="5" yy="80" zz="81" xz="0.5"/><buoyancy volume="0.2439 m3" centre="0.1 0 -0.1 m"/>
<added-mass>12 1 2 0 1 0.5 1 240 3 -2 1 6 2 3 238 1 -5 2 0 -2 1 3 0 0.2 1 1 -5 0 70 1 0.5 6 2 0.2 1 71</added-mass>
<linear-drag>8 1 1 0 0 0 1 9 1 0 0 1 1 1 9 0 1 0 0 0 0 3 0 0 0 0 1 0 5 0 0 1 0 0 0 5</linear-drag>
<quadratic-drag>8 1 1 0 0 0 1 9 1 0 0 1 1 1 9 0 1 0 0 0 0 3 0 0 0 0 1 0 5 0 0 1 0 0 0 5</quadratic-drag></model></models>"""


@kernel
def step_all(table: Any, blocks: Any, h: float) -> None:
    """Return a kernel that computes only the motion of some blocks, as the tick does it."""
    w = tick.unpack_tick_state(table)
    integrators.step_all(w.bodies, w.fleet.models, blocks, w.fleet.block_scratch, h, w.integrator)


def fleet(n: int, names: Sequence[str], extra: str = "") -> Simulation:
    """Return n vehicles on a wide grid with the models in turn, AUVs deep and under way, others afloat."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.xml"
        path.write_text(
            f'<wavesim><shared vehicles="{n}"/><world><current north="0.2 m/s"/><bed depth="9000 m"/></world>{extra}</wavesim>'
        )
        sim = Simulation(load(path))
    for k in range(n):
        name = names[k % len(names)]
        deep = sim.loaded.model(name).type == "underwater"
        place = (200.0 * (k % 100), 200.0 * (k // 100), 500.0 if deep else 0.0)
        row = sim.enter(f"v{k}", name, place, (0.0, 0.0, 0.1 * k))
        sim.command(row, [{0: 0.5, 1: 0.05}.get(a.kind) for a in sim.occupants[row].actuators])
    return sim


def step(sim: Simulation, blocks: np.ndarray | None = None) -> Callable[[], None]:
    """Return a function that makes one short step of the kernel, or one step for each of these blocks. The work is the
    same as in a run, but no vehicle moves far.
    """
    whole, table = sim.tick_executor.state()
    chosen = whole.fleet.sequence if blocks is None else blocks
    return lambda: step_all(table, chosen, 1e-6)


class NumpyTwin:
    """Compute the equations of the LAUV over arrays of all vehicles (n, ...), as a first NumPy version would do it."""

    def __init__(self, sim: Simulation, n: int) -> None:
        b = np.stack([sim.fleet.body(k) for k in range(n)])
        p = np.stack([sim.fleet.coefficients(k) for k in range(n)])
        m = lambda row: p[:, row : row + 36].reshape(n, 6, 6).copy()  # noqa: E731  # a formula of one line, named as in the book
        self.x = b[:, : B.RIGID_ROWS].copy()
        self.M, self.Minv, self.DL, self.DQ, self.L = (
            m(P.MASS),
            m(P.MASS_INVERSE),
            m(P.LINEAR_DRAG),
            m(P.QUADRATIC_DRAG),
            m(P.BODY_LIFT),
        )
        self.W, self.B = p[:, P.WEIGHT, None], p[:, P.FULL_BUOYANCY, None]
        self.wg, self.rb = (
            p[:, P.WEIGHT_MOMENT : P.WEIGHT_MOMENT + 3].copy(),
            p[:, P.FULL_BUOYANCY_CENTRE : P.FULL_BUOYANCY_CENTRE + 3].copy(),
        )
        self.H = p[:, P.THRUSTER_WRENCH : P.THRUSTER_WRENCH + 6].reshape(n, 1, 6).copy()
        self.FH = p[:, P.FIN_WRENCH : P.FIN_WRENCH + 24].reshape(n, 4, 6).copy()
        self.FK, self.FW = p[:, P.FIN_LIFT : P.FIN_LIFT + 4].copy(), p[:, P.FIN_INFLOW : P.FIN_INFLOW + 4].copy()
        self.FY, self.FZ = (
            p[:, P.FIN_PLACE_Y : P.FIN_PLACE_Y + 4].copy(),
            p[:, P.FIN_PLACE_Z : P.FIN_PLACE_Z + 4].copy(),
        )
        of = lambda a, row: a[:, [row, *range(row + SLOT_FIN, row + SLOT_FIN + 4)]]  # noqa: E731  # propeller and fins
        self.cmd, self.a = of(b, B.ACTUATOR_COMMAND), of(b, B.ACTUATOR_STATE)
        # times 1 and 1/2 of the step
        self.gain = [of(p, P.ACTUATOR_GAIN + SLOTS * k) for k in (0, 1)]
        self.rate = of(p, P.ACTUATOR_RATE)
        self.current = np.array([0.2, 0.0, 0.0])

    def derivative(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        q, v, w = x[:, 3:7], x[:, 7:10], x[:, 10:13]
        s, u = q[:, :1], q[:, 1:]

        def turn(p: np.ndarray, sign: float) -> np.ndarray:
            t = 2 * np.cross(u, p) * sign
            return p + s * t + sign * np.cross(u, t)

        vc = turn(np.broadcast_to(self.current, v.shape), -1.0)
        nur = np.concatenate([v - vc, w], 1)
        mul = lambda M, y: np.einsum("nij,nj->ni", M, y)  # noqa: E731  # a formula of one line, named as in the book
        tau = np.einsum("nki,nk->ni", self.H, a[:, :1])
        along = nur[:, :1] + w[:, 1:2] * self.FZ - w[:, 2:3] * self.FY
        wn = np.einsum("nki,ni->nk", self.FH, nur)
        tau += np.einsum("nki,nk->ni", self.FH, self.FK * np.abs(along) * (along * a[:, 1:] - self.FW * wn))
        tau -= mul(self.DL + np.abs(nur[:, 0, None, None]) * self.L, nur) + mul(self.DQ, np.abs(nur) * nur)
        h = mul(self.M, nur)
        tau[:, :3] -= np.cross(w, h[:, :3])
        tau[:, 3:] -= np.cross(w, h[:, 3:]) + np.cross(nur[:, :3], h[:, :3])
        down = turn(np.broadcast_to([0.0, 0.0, 1.0], v.shape), -1.0)
        tau[:, :3] += (self.W - self.B) * down
        tau[:, 3:] += np.cross(self.wg - self.B * self.rb, down)
        dq = 0.5 * np.concatenate([-np.sum(u * w, 1, keepdims=True), s * w + np.cross(u, w)], 1)
        dnu = mul(self.Minv, tau)
        dnu[:, :3] += np.cross(vc, w)
        return np.concatenate([turn(v, 1.0), dq, dnu], 1)

    def step(self, h: float) -> None:
        a0 = self.a
        a1, ah = (
            a0 + np.clip((self.cmd - a0) * g, -self.rate * part, self.rate * part)
            for g, part in zip(self.gain, (1.0, 0.5), strict=True)
        )
        self.a = a1
        x = self.x
        k1 = self.derivative(x, a0)
        k2 = self.derivative(x + h / 2 * k1, ah)
        k3 = self.derivative(x + h / 2 * k2, ah)
        k4 = self.derivative(x + h * k3, self.a)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        x[:, 3:7] /= np.linalg.norm(x[:, 3:7], axis=1, keepdims=True)
        self.x = x


def best(run: Callable[[], object], repeats: int) -> float:
    """Return the minimum time of seven series, in s per run."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        times.append((time.perf_counter() - start) / repeats)
    return min(times)


def peak() -> float:
    """Return the multiply-adds of one core: flop/s of a 512 x 512 matrix product in float64."""
    a = np.random.default_rng(1).random((512, 512))
    out = np.empty_like(a)
    return 2 * 512**3 / best(lambda: np.dot(a, a, out=out), 20)


def per_vehicle(sim: Simulation, n: int) -> float:
    """Return the kernel time per vehicle and step in ns."""
    return best(step(sim), max(3, 60_000 // max(n, 8))) / n * 1e9


def of_one_vehicle() -> tuple[float, float]:
    """Return the time in ns of a call of the kernel from Python without work, and of a step within a call of a thousand
    steps.
    """
    sim = fleet(1, ["lauv"])
    none, many = (np.zeros(n, sim.fleet.sequence.dtype) for n in (0, 1000))
    return best(step(sim, none), 20_000) * 1e9, best(step(sim, many), 40) / 1000 * 1e9


def by_threads(count: int, n: int, names: Sequence[str], rounds: int = 9) -> list[tuple[float, float]]:
    """Return the wall time in ns per vehicle and tick with one thread and with this many, measured in turn."""
    fleets = fleet(n, names), fleet(n, names)
    fleets[1].tick_executor.threads.count, fleets[1].tick_executor.threads.min_bodies = count, 0
    found = []
    for k in range(rounds + 1):  # the first compiles
        times = []
        for sim in fleets:
            start = time.monotonic()
            sim.advance(20)
            times.append((time.monotonic() - start) / 20 / n * 1e9)
        if k:
            found.append((times[0], times[1]))
    return found


def main() -> None:
    print(f"# {platform.processor() or platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    names = sorted(library())
    print(f"# mixed: {', '.join(names)}")
    print(
        "| vehicles | core, ns | x floor | LAUV, ns | NumPy twin, ns | ratio | mixed, ns | x NumPy twin | whole tick, ns | twin agrees to |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for n in SIZES:
        core = fleet(n, ["core"], CORE)
        own = per_vehicle(core, n)
        floor = CORE_FLOPS / peak() * 1e9
        sim = fleet(n, ["lauv"])
        twin = NumpyTwin(sim, n)
        sim.advance(5)
        for _ in range(5):
            twin.step(sim.step_ns * 1e-9)
        state = np.stack([sim.fleet.body(k)[: B.RIGID_ROWS] for k in range(n)])
        agreement = float(np.abs(state - twin.x).max())
        ours = per_vehicle(sim, n)
        theirs = best(lambda: twin.step(1e-6), max(2, 2000 // n)) / n * 1e9
        ticks = best(lambda: sim.advance(10), max(2, 20_000 // n)) / 10 / n * 1e9
        once = step(sim)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        once()
        leaked = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert leaked < 2000, f"the tick allocates {leaked} bytes"
        mixed = per_vehicle(fleet(n, names), n)
        print(
            f"| {n} | {own:.0f} | {own / floor:.1f} | {ours:.0f} | {theirs:.0f} | {theirs / ours:.0f} | {mixed:.0f} | "
            f"{theirs / mixed:.0f} | {ticks:.0f} | {agreement:.0e} |"
        )
        sys.stdout.flush()
    for which, models in (("LAUV", ["lauv"]), ("mixed", names)):
        for n in (2000, 5000, 10_000):
            pairs = np.array(by_threads(2, n, models))
            one, two = pairs.min(axis=0)
            ratio = np.median(pairs[:, 0] / pairs[:, 1])
            print(
                f"# two threads, {n} {which}: {one:.0f} -> {two:.0f} ns a tick, {one / two:.2f} x; median {ratio:.2f} x"
            )
    call, within = of_one_vehicle()
    print(f"# one LAUV: {call:.0f} ns for a call of the kernel from Python, {within:.0f} ns for a step")
    costs: dict[str, float] = {name: per_vehicle(fleet(96, [name]), 96) for name in names}
    print(
        "# by model, 96 vehicles, ns: "
        + ", ".join(f"{k} {v:.0f}" for k, v in sorted(costs.items(), key=lambda i: i[1]))
    )


if __name__ == "__main__":
    main()
