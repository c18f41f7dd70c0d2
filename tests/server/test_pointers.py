"""Arrays passed to kernels by address: a kernel sees the present content of the tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from wavesim_kernels.compiler import kernel
from wavesim_server import Simulation, array_tables, row_pool
from wavesim_world.config import LoadedConfig


class Inner(NamedTuple):
    grid: np.ndarray
    steep: float
    deep: bool


class Outer(NamedTuple):
    rows: np.ndarray
    inner: Inner
    number: int
    keys: np.ndarray


outer: Any = array_tables.make_unpacker(Outer)


@kernel
def kernel_sum(table: Any, out: Any) -> int:
    """Every member, and one element written."""
    o = outer(table)
    out[0], out[1], out[2] = o.rows[1, 2], o.inner.steep, 1.0 if o.inner.deep else 0.0
    out[3], out[4] = o.inner.grid[1, 0, 2, 1, 3], o.inner.grid.shape[4]
    o.rows[0, 0] = 7.0
    return int(o.number + o.keys.shape[0])


@pytest.mark.parametrize("deep", [False, True])
def test_a_kernel_finds_what_the_tuple_has(deep: bool) -> None:
    """Fails with a wrong place, order of lengths or stride of any member."""
    grid = np.arange(2 * 1 * 3 * 2 * 4, dtype=float).reshape(2, 1, 3, 2, 4)
    rows, keys = np.arange(6.0).reshape(2, 3), np.zeros(5, np.uint64)
    value = Outer(rows, Inner(grid, 0.25, deep), 40, keys)
    out = np.zeros(5)
    assert kernel_sum(array_tables.pack(value), out) == 45
    assert out.tolist() == [5.0, 0.25, float(deep), grid[1, 0, 2, 1, 3], 4.0] and rows[0, 0] == 7.0


def test_what_is_not_contiguous_is_refused() -> None:
    value = Outer(np.zeros((4, 4))[:, 1:], Inner(np.zeros((1,) * 5), 0.0, False), 1, np.zeros(1, np.uint64))
    if not array_tables.JIT_DISABLED:
        with pytest.raises(ValueError, match="contiguous"):
            array_tables.pack(value)


def test_a_simulation_sees_every_array_that_is_replaced(config: Callable[..., LoadedConfig]) -> None:
    """Against one whose table is made anew for each tick. Fails when what a table was made of leaves out an array."""
    loaded = config(
        '<shared vehicles="40" signals="2"/><world><bed depth="60 m"/></world>'
        '<fleet><vehicle name="a" model="lauv" position="0 0 9 m"/><vehicle name="b" model="lauv" position="0 9 9 m"/>'
        '<line name="l" length="9 m" diameter="8 mm" mass="50 g/m" stiffness="9 kN" segments="3"><end body="a"/><end body="b"/></line>'
        "</fleet>"
    )

    def play(sim: Simulation, tick: Callable[[], None]) -> bytes:
        sim.enter_residents()
        for k, model in enumerate(("remus100-fossen", "jolner", "buoy", "otter", "supply", "lauv") * 3):
            deep = loaded.model(model).type == "underwater"
            row = sim.enter(f"v{k}", model, (0.0, 200.0 + 100.0 * k, 20.0 if deep else 0.0))
            if k % 4 == 0:
                sim.fleet.override_parameters(row, {})  # a kind of its own
            tick()
            if sim.fleet.actuators(row):
                sim.command(row, [1.0])
                sim.fail(row, 0, "frozen", 10.0)  # more of them than there is room for at first
            sim.ping(0, 25e3)
            if k == 5:
                sim.set_weather(wave_height=1.0, wind_speed=9.0)
            if k % 5 == 4:
                sim.leave(row)
            tick()
        return sim.state().tobytes() + sim.results.lines().tobytes() + sim.take_signals()[0].tobytes()

    kept, fresh = Simulation(loaded), Simulation(loaded)

    def anew() -> None:
        fresh.tick_executor._sources = (None,)
        fresh.advance()

    assert play(kept, kept.advance) == play(fresh, anew)


def test_blocks_and_scratch_begin_with_a_cache_line(config: Callable[..., LoadedConfig]) -> None:
    """Also after the blocks have grown. Fails with NumPy's own arrays, which begin so once in four times at most."""
    sim = Simulation(config('<shared vehicles="300" signals="2"/><world><bed depth="60 m"/></world>'))
    for k in range(300):
        sim.enter(f"v{k}", "lauv", (0.0, 10.0 * k, 20.0))
        first = [a.__array_interface__["data"][0] % row_pool.CACHE_LINE for a in (sim.fleet.blocks, sim.fleet.work)]
        assert first == [0, 0] and sim.fleet.blocks.strides[0] % row_pool.CACHE_LINE == 0
    records = row_pool.aligned_zeros((3, 2), np.dtype([("a", "f8"), ("b", "i4")]))
    assert records.shape == (3, 2) and not records["a"].any() and row_pool.aligned_zeros((0, 5)).shape == (0, 5)
