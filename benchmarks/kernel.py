"""Cost of the dynamics kernel per vehicle and step against fleet size, beside a batched NumPy twin.

python benchmarks/kernel.py
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numba as nb
import numpy as np

from wavesim_sdk.config import load
from wavesim_server import Simulation
from wavesim_server.dynamics import kernel
from wavesim_server.dynamics import rows as r

SIZES = (1, 10, 100, 1000, 10_000)


def fleet(n: int) -> Simulation:
    """n LAUVs on a wide grid, deep, under way."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.xml"
        path.write_text(
            f'<wavesim><shared vehicles="{n}"/><world><current north="0.2 m/s"/><bed depth="9000 m"/></world></wavesim>'
        )
        sim = Simulation(load(path))
    for k in range(n):
        row = sim.enter(f"v{k}", "lauv", (50.0 * (k % 100), 50.0 * (k // 100), 500.0), (0.0, 0.0, 0.1 * k))
        sim.command(row, [8.0, *[None] * 7, 0.05, 0.05, 0.02, 0.02])
    return sim


class NumpyTwin:
    """The same equations over arrays of all vehicles (n, ...): what one would write first."""

    def __init__(self, sim: Simulation, n: int) -> None:
        b = np.stack([sim.fleet.body(k) for k in range(n)])
        m = lambda row: b[:, row : row + 36].reshape(n, 6, 6).copy()  # noqa: E731
        self.x = b[:, : r.STATE_ROWS].copy()
        self.MA, self.Minv, self.DL, self.DQ, self.L = m(r.MA), m(r.MINV), m(r.DL), m(r.DQ), m(r.LIFT)
        self.m, self.W, self.B = b[:, r.MASS, None], b[:, r.WEIGHT, None], b[:, r.FULL_B, None]
        self.rg, self.rb = b[:, r.RG : r.RG + 3].copy(), b[:, r.RB : r.RB + 3].copy()
        self.I = b[:, r.IB : r.IB + 9].reshape(n, 3, 3).copy()
        self.H = b[:, r.T_H : r.T_H + 48].reshape(n, 8, 6).copy()
        self.c = b[:, r.T_C : r.T_C + 24].reshape(n, 3, 8).copy()
        self.FH = b[:, r.F_H : r.F_H + 24].reshape(n, 4, 6).copy()
        self.FK, self.FW = b[:, r.F_K : r.F_K + 4].copy(), b[:, r.F_W : r.F_W + 4].copy()
        self.FY, self.FZ = b[:, r.F_Y : r.F_Y + 4].copy(), b[:, r.F_Z : r.F_Z + 4].copy()
        self.cmd, self.a = b[:, r.A_CMD : r.A_CMD + 12].copy(), b[:, r.A_1 : r.A_1 + 12].copy()
        self.decay, self.rate = b[:, r.A_DECAY : r.A_DECAY + 12].copy(), b[:, r.A_RATE : r.A_RATE + 12].copy()
        self.current = np.array([0.2, 0.0, 0.0])

    def derivative(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        q, v, w = x[:, 3:7], x[:, 7:10], x[:, 10:13]
        s, u = q[:, :1], q[:, 1:]

        def turn(p: np.ndarray, sign: float) -> np.ndarray:
            t = 2 * np.cross(u, p) * sign
            return p + s * t + sign * np.cross(u, t)

        vc = turn(np.broadcast_to(self.current, v.shape), -1.0)
        nur = np.concatenate([v - vc, w], 1)
        mul = lambda M, y: np.einsum("nij,nj->ni", M, y)  # noqa: E731
        n = a[:, :8]
        ua = np.einsum("nki,ni->nk", self.H, nur)
        thrust = self.c[:, 0] * n + np.abs(n) * (self.c[:, 1] * n + self.c[:, 2] * ua)
        tau = np.einsum("nki,nk->ni", self.H, thrust)
        along = nur[:, :1] + w[:, 1:2] * self.FZ - w[:, 2:3] * self.FY
        wn = np.einsum("nki,ni->nk", self.FH, nur)
        tau += np.einsum("nki,nk->ni", self.FH, self.FK * np.abs(along) * (along * a[:, 8:] - self.FW * wn))
        tau -= mul(self.DL + np.abs(nur[:, 0, None, None]) * self.L, nur) + mul(self.DQ, np.abs(nur) * nur)
        h = self.m * (v + np.cross(w, self.rg))
        k = mul(self.I, w) + self.m * np.cross(self.rg, v)
        tau[:, :3] -= np.cross(w, h)
        tau[:, 3:] -= np.cross(w, k) + np.cross(v, h)
        p = mul(self.MA, nur)
        tau[:, :3] -= np.cross(w, p[:, :3])
        tau[:, 3:] -= np.cross(w, p[:, 3:]) + np.cross(nur[:, :3], p[:, :3])
        tau -= mul(self.MA, np.concatenate([np.cross(w, vc), np.zeros_like(w)], 1))
        down = turn(np.broadcast_to([0.0, 0.0, 1.0], v.shape), -1.0)
        tau[:, :3] += (self.W - self.B) * down
        tau[:, 3:] += np.cross(self.W * self.rg - self.B * self.rb, down)
        dq = 0.5 * np.concatenate([-np.sum(u * w, 1, keepdims=True), s * w + np.cross(u, w)], 1)
        return np.concatenate([turn(v, 1.0), dq, mul(self.Minv, tau)], 1)

    def step(self, h: float) -> None:
        a0 = self.a
        ah = a0 + np.clip((self.cmd - a0) * (1 - self.decay), -self.rate, self.rate)
        self.a = ah + np.clip((self.cmd - ah) * (1 - self.decay), -self.rate, self.rate)
        x = self.x
        k1 = self.derivative(x, a0)
        k2 = self.derivative(x + h / 2 * k1, ah)
        k3 = self.derivative(x + h / 2 * k2, ah)
        k4 = self.derivative(x + h * k3, self.a)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        x[:, 3:7] /= np.linalg.norm(x[:, 3:7], axis=1, keepdims=True)
        self.x = x


def best(run: Callable[[], object], repeats: int) -> float:
    """Least time of five series, in s per run."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        times.append((time.perf_counter() - start) / repeats)
    return min(times)


def simd() -> str:
    """Vector instructions in the kernel's machine code: the sign that the lanes are used."""
    fresh = nb.njit(error_model="numpy")(kernel.derivative.py_func)  # cached code cannot be inspected
    fresh.compile((nb.float64[::1],))
    code = next(iter(fresh.inspect_asm().values()))
    wide, narrow = code.count("ymm") + code.count("zmm"), code.count("xmm")
    return f"derivative(): {wide} uses of wide registers, {narrow} of narrow ones"


def main() -> None:
    print(f"# {platform.processor() or platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"# {simd()}")
    print(
        "| vehicles | kernel, ns per vehicle-step | NumPy twin | ratio | whole tick (flow, contacts, sound) | twin agrees to |"
    )
    print("|---|---|---|---|---|---|")
    for n in SIZES:
        sim = fleet(n)
        twin = NumpyTwin(sim, n)
        h = sim.step_ns * 1e-9
        sim.advance(5)
        for _ in range(5):
            twin.step(h)
        state = np.stack([sim.fleet.body(k)[: r.STATE_ROWS] for k in range(n)])
        agreement = float(np.abs(state - twin.x).max())
        # short steps: the work is the same, and nothing flies away
        ours = best(lambda: kernel.step_all(sim.fleet.blocks, sim.fleet.counts, 1e-6), max(3, 200_000 // max(n, 8)))
        theirs = best(lambda: twin.step(1e-6), max(2, 2000 // n))
        tick = best(lambda: sim.advance(10), max(2, 20_000 // n)) / 10
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        kernel.step_all(sim.fleet.blocks, sim.fleet.counts, 1e-6)
        leaked = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert leaked < 2000, f"the tick allocates {leaked} bytes"
        print(
            f"| {n} | {ours / n * 1e9:.0f} | {theirs / n * 1e9:.0f} | {theirs / ours:.0f} | {tick / n * 1e9:.0f} ns | {agreement:.0e} |"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
