"""A tick with several threads for large fleets. Independent work is divided among the threads; coupled work runs on one
thread.

Computing the water at a body, integrating its motion, checking its state and updating its transducer are independent
of all other bodies. Contacts, lines, sleep, weather and sound couple bodies, so they are computed one after the other.
Each thread works on its own blocks with its own scratch space, and uses the same functions as the tick with one
thread. The results are combined by integer sums and a maximum, so states are bit-identical for any number of threads.

A thread takes a few blocks at a time through all stages, while they are in its cache.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from wavesim_kernels.compiler import kernel
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server import array_tables
from wavesim_server.acoustics import medium_arrays
from wavesim_server.dynamics import bodies, contact, fleet, integrators, lines, sleep
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.bodies import BodyArrays, TickScratch
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.dynamics.types import Packed
from wavesim_server.environment import weather
from wavesim_server.row_pool import aligned_zeros
from wavesim_server.tick import (
    TickState,
    advance_acoustics,
    advance_hydrophones,
    unpack_tick_state,
    update_transducers,
)

MIN_BODIES_PER_THREAD = 2500  #: minimum number of bodies per thread for which threads are worthwhile
BLOCKS_AT_A_TIME = 16  #: number of blocks that a thread processes at a time
#: stages that threads run independently; coupled work is done between these stages
STAGE_WEATHER, STAGE_STEP, STAGE_SURVEY, STAGE_TRANSDUCERS = 1, 2, 4, 8
COUPLED_WEATHER, COUPLED_BEFORE_STEP, COUPLED_LINES, COUPLED_CONTACTS = 1, 2, 4, 8


class ThreadShare(NamedTuple):
    """Work of one thread."""

    work: TickScratch  # for the bodies in its blocks, block by block
    scratch: Floats  # (W.SIZE,)
    blocks: Ints
    ends: Ints  # (n, 2): ends of the groups of blocks taken at a time, and of their bodies
    fastest: Floats  # (1,): maximum speed of its bodies


unpack_share = array_tables.make_unpacker(ThreadShare)


@kernel(nogil=True)
def advance_independent(table: Packed, own: Packed, step_ns: int, tick: int, stages: int) -> None:
    """Run the independent stages for the bodies of one thread, from ``tick`` to the next tick. ``table`` describes all
    arrays, and ``own`` describes the work of this thread.
    """
    f, machine, integrator, _, air, sea, _, _, sound, _, _, _ = unpack_tick_state(table)
    share = unpack_share(own)
    h, start = step_ns * 1e-9, tick * step_ns * 1e-9
    block = body = 0
    share.fastest[0] = 0.0
    for i in range(share.ends.shape[0]):
        rows = share.work.order[body : share.ends[i, 1]]
        if stages & STAGE_WEATHER:
            weather.apply_to_bodies(air, sea.flow, f, rows, rows.shape[0], tick, start, h)
        if stages & STAGE_STEP:
            sequence = share.blocks[block : share.ends[i, 0]]
            integrators.step_all(f, machine.models, sequence, share.scratch, h, integrator)
        if stages & STAGE_SURVEY:
            new, fastest = bodies.hold_diverged(f, rows, rows.shape[0], share.work.last_finite, share.work.faults)
            share.work.counters[2] += new
            share.fastest[0] = max(share.fastest[0], fastest)
        block, body = share.ends[i, 0], share.ends[i, 1]
    if stages & STAGE_TRANSDUCERS:
        update_transducers(f, share.work, sound, tick + 1)


@kernel(nogil=True)
def advance_coupled(table: Packed, step_ns: int, tick: int, fastest: float, stages: int) -> None:
    """Run the coupled stages, in the order of :func:`wavesim_server.tick.advance_motion`."""
    f, machine, _, touch, air, sea, rig, work, _, _, _, _ = unpack_tick_state(table)
    h, start, n = step_ns * 1e-9, tick * step_ns * 1e-9, work.counters[0]
    tied, asleep = rig.groups.shape[0] > 0, touch.sleep.asleep_count[0] > 0
    if stages & COUPLED_WEATHER:
        weather.advance_weather(air, tick, start, h)
        if machine.hold_count[0]:
            fleet.release_holds(f.blocks, f.slots, machine.actuator_holds, machine.setpoints, machine.hold_count, start)
    if stages & COUPLED_BEFORE_STEP:
        if tied:
            weather.apply_to_nodes(air, sea.flow, rig.nodes, start)
            lines.update_bed_depths(rig, sea.sea_bed.parameters, sea.sea_bed.mesh)
            lines.store_before(f, rig)
        if asleep:
            sleep.wake_changed(f, touch.sleep, touch.events, work.order, n, tick)
    if stages & COUPLED_LINES:
        if tied:
            lines.advance(f, rig, h, tick + 1)
        touch.sleep.asleep_count[0] = (
            sleep.restore_sleepers(f, touch.sleep, work.order, n) if touch.sleep.asleep_count[0] else 0
        )
    if stages & COUPLED_CONTACTS:
        work.counters[1] += contact.resolve_contacts(f, work, touch, fastest, h, sea.sea_bed, tick + 1)
        if machine.speed_averages.shape[0]:
            fleet.average_shaft_speeds(
                f.blocks, f.slots, machine.speed_averages, machine.average_windows, machine.feedback
            )


class TickThreads:
    """Threads for the ticks of a simulation."""

    def __init__(self, count: int) -> None:
        self.count, self.min_bodies = count, MIN_BODIES_PER_THREAD
        self._pool: ThreadPoolExecutor | None = None
        self._sequence: Ints | None = None  # sequence of the current shares
        self._shares: list[ThreadShare] = []
        self._tables: list[Any] = []  # tables of the shares

    def is_worthwhile(self, bodies: int) -> bool:
        """Return whether several threads are faster than one for this number of bodies."""
        return self.count > 1 and bodies >= self.min_bodies * self.count

    def run_ticks(
        self, of: TickState, table: Any, step_ns: int, tick: int, last_tick: int, half: bool
    ) -> tuple[int, int, bool]:
        """Run ticks like :func:`wavesim_server.tick.run_ticks`, but with several threads. ``table`` is the packed form
        of the arrays in ``of``.
        """
        if of.fleet.sequence is not self._sequence:
            self._sequence, self._shares = (
                of.fleet.sequence,
                divide_blocks(of.bodies, of.fleet.sequence, of.scratch, self.count),
            )
            self._tables = [array_tables.pack(share) for share in self._shares]
        while tick < last_tick or half:
            if not half:
                advance_coupled(table, step_ns, tick, 0.0, COUPLED_WEATHER)
                if of.lines.groups.shape[0] or of.contacts.sleep.asleep_count[0]:
                    self._run_all_shares(table, step_ns, tick, STAGE_WEATHER)
                    advance_coupled(table, step_ns, tick, 0.0, COUPLED_BEFORE_STEP)
                    self._run_all_shares(table, step_ns, tick, STAGE_STEP)
                    advance_coupled(table, step_ns, tick, 0.0, COUPLED_LINES)
                    self._run_all_shares(table, step_ns, tick, STAGE_SURVEY)
                else:
                    self._run_all_shares(table, step_ns, tick, STAGE_WEATHER | STAGE_STEP | STAGE_SURVEY)
                for share in self._shares:
                    of.scratch.counters[2] += share.work.counters[2]
                    share.work.counters[2] = 0
                advance_coupled(
                    table, step_ns, tick, max(float(share.fastest[0]) for share in self._shares), COUPLED_CONTACTS
                )
                self._run_all_shares(table, step_ns, tick, STAGE_TRANSDUCERS)
                tick += 1
            start, end = (tick - 1) * step_ns * 1e-9, tick * step_ns * 1e-9
            code = advance_acoustics(table, tick, start, end)
            if code == medium_arrays.OK and len(of.front_table):
                code = advance_hydrophones(table, tick, start, end)
            half = code != medium_arrays.OK
            if half:
                return tick, code, True
        return tick, medium_arrays.OK, False

    def _run_all_shares(self, table: Any, step_ns: int, tick: int, stages: int) -> None:
        """Run all threads; the calling thread does the work of the first thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count - 1, "wavesim-tick")
        first, *others = self._tables
        begun = [
            self._pool.submit(lambda own: advance_independent(table, own, step_ns, tick, stages), own) for own in others
        ]
        try:
            advance_independent(table, first, step_ns, tick, stages)
        finally:  # an interrupt takes effect only when no thread works on the bodies any more
            for other in begun:
                other.result()


def divide_blocks(f: BodyArrays, sequence: Ints, work: TickScratch, count: int) -> list[ThreadShare]:
    """Divide the blocks, together with the bodies in them, among the threads, so that each thread receives a few blocks
    of every model.
    """
    rows = work.order[: work.counters[0]]
    place = np.full(len(f.block_heads), -1)
    place[sequence] = np.arange(len(sequence))
    seats = f.slots[rows]
    at = place[seats // LANES]
    sort = np.lexsort((seats, at))
    rows, at = rows[sort], at[sort]
    found = []
    for k in range(count):
        parts = [
            np.arange(i, min(i + BLOCKS_AT_A_TIME, len(sequence)))
            for i in range(k * BLOCKS_AT_A_TIME, len(sequence), count * BLOCKS_AT_A_TIME)
        ]
        own = [rows[np.searchsorted(at, part[0]) : np.searchsorted(at, part[-1], "right")] for part in parts]
        blocks, bodies_ = _concatenate(parts), _concatenate(own)
        ends = np.cumsum(
            [[len(part), len(row)] for part, row in zip(parts, own, strict=True)] or np.zeros((0, 2)), axis=0
        )
        found.append(
            ThreadShare(
                work._replace(order=bodies_, counters=np.array([len(bodies_), 0, 0])),
                aligned_zeros(W.SIZE),
                sequence[blocks],
                ends.astype(np.int64).reshape(-1, 2),
                np.zeros(1),
            )
        )
    return found


def _concatenate(parts: list[Any]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])
