"""A tick by several threads, for large fleets: what bodies do by themselves is shared out, the rest is done by one.

In the water, through a step of the equation of motion and in the look at its state a body is alone; so are transducers.
Contacts, lines, sleep, weather and sound are between bodies, and remain one after the other.  Each thread works on
blocks of its own, with a scratch of its own, by the same functions as the tick of one thread, and what they find is put
together by sums of integers and a maximum: states are the same to the bit, however many threads there are.

A thread takes a few blocks at a time through all that is to be done with them, while they are in its cache.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.kernel_compiler import kernel
from wavesim_server import pointers
from wavesim_server.acoustics import memory
from wavesim_server.dynamics import bodies, contact, fleet, integrators, lines, sleep
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.bodies import Bodies
from wavesim_server.dynamics.types import Floats, Ints
from wavesim_server.environment import weather
from wavesim_server.pool import aligned
from wavesim_server.tick import Whole, Work, hear, transducers, whole

LEAST = 2500  #: bodies of a thread, from which on it is worth its while
TOGETHER = 16  #: blocks that a thread takes at a time
#: what threads do apart, and one does between them
WATER, STEP, SURVEY, PLACES = 1, 2, 4, 8
BEGIN, READY, TIE, CONTACTS = 1, 2, 4, 8


class Share(NamedTuple):
    """What one thread works on."""

    work: Work  # of the bodies in its blocks, block by block
    scratch: Floats  # (WORK,)
    blocks: Ints
    ends: Ints  # (n, 2): of the blocks taken at a time, and of their bodies
    fastest: Floats  # (1,): greatest speed of these


share_of = pointers.unpacked(Share)


@kernel(nogil=True)
def apart(table: Any, own: Any, step_ns: int, tick: int, what: int) -> None:
    """What the bodies of one thread do by themselves from ``tick`` to the next, by the tables of all and of its share."""
    f, machine, integrator, _, air, sea, _, _, sound, _ = whole(table)
    share = share_of(own)
    h, start = step_ns * 1e-9, tick * step_ns * 1e-9
    block = body = 0
    share.fastest[0] = 0.0
    for i in range(share.ends.shape[0]):
        rows = share.work.order[body : share.ends[i, 1]]
        if what & WATER:
            weather.act(air, sea.flow, f.blocks, f.slots, rows, rows.shape[0], tick, start, h)
        if what & STEP:
            integrators.step_all(
                f.blocks, f.heads, share.blocks[block : share.ends[i, 0]], f.params, machine.kinds, machine.tables,
                share.scratch, h, integrator,
            )  # fmt: skip
        if what & SURVEY:
            new, fastest = bodies.survey(f, rows, rows.shape[0], share.work.last, share.work.faults)
            share.work.counters[2] += new
            share.fastest[0] = max(share.fastest[0], fastest)
        block, body = share.ends[i, 0], share.ends[i, 1]
    if what & PLACES:
        transducers(f, share.work, sound, tick + 1)


@kernel(nogil=True)
def between(table: Any, step_ns: int, tick: int, fastest: float, what: int) -> None:
    """What is between bodies, in the order of :func:`wavesim_server.tick.move`."""
    f, machine, _, touch, air, sea, rig, work, _, _ = whole(table)
    h, start, n = step_ns * 1e-9, tick * step_ns * 1e-9, work.counters[0]
    tied, asleep = rig.groups.shape[0] > 0, touch.sleep.asleep[0] > 0
    if what & BEGIN:
        weather.advance(air, tick, start, h)
        if machine.held[0]:
            fleet.release(f.blocks, f.slots, machine.holds, machine.wanted, machine.held, start)
    if what & READY:
        if tied:
            weather.at_nodes(air, sea.flow, rig.nodes, start)
            lines.beds(rig, sea.bed, sea.net)
            lines.begin(f, rig)
        if asleep:
            sleep.wake_changed(f, touch.sleep, touch.meetings, work.order, n, tick)
    if what & TIE:
        if tied:
            lines.advance(f, rig, h, tick + 1)
        touch.sleep.asleep[0] = sleep.keep(f, touch.sleep, work.order, n) if touch.sleep.asleep[0] else 0
    if what & CONTACTS:
        work.counters[1] += contact.resolve(
            f, work.order, n, touch, work.last, fastest, h, sea.bed, sea.net, sea.cursor, tick + 1
        )
        if machine.meters.shape[0]:
            fleet.average(f.blocks, f.slots, machine.meters, machine.rings, machine.feedback)


class Threads:
    """So many threads for the ticks of a simulation."""

    def __init__(self, count: int) -> None:
        self.count, self.least = count, LEAST
        self._pool: ThreadPoolExecutor | None = None
        self._sequence: Ints | None = None  # that the shares are of
        self._shares: list[Share] = []
        self._tables: list[Any] = []  # of them

    def pay(self, bodies: int) -> bool:
        """Whether they are faster than one, with so many bodies."""
        return self.count > 1 and bodies >= self.least * self.count

    def ticks(
        self, of: Whole, table: Any, step_ns: int, tick: int, last_tick: int, half: bool
    ) -> tuple[int, int, bool]:
        """What :func:`wavesim_server.tick.ticks` does, for the tuple of all and its table."""
        if of.machine.sequence is not self._sequence:
            self._sequence, self._shares = of.machine.sequence, shares(of.f, of.machine.sequence, of.work, self.count)
            self._tables = [pointers.packed(share) for share in self._shares]
        while tick < last_tick or half:
            if not half:
                between(table, step_ns, tick, 0.0, BEGIN)
                if of.rig.groups.shape[0] or of.touch.sleep.asleep[0]:
                    self._all(table, step_ns, tick, WATER)
                    between(table, step_ns, tick, 0.0, READY)
                    self._all(table, step_ns, tick, STEP)
                    between(table, step_ns, tick, 0.0, TIE)
                    self._all(table, step_ns, tick, SURVEY)
                else:
                    self._all(table, step_ns, tick, WATER | STEP | SURVEY)
                for share in self._shares:
                    of.work.counters[2] += share.work.counters[2]
                    share.work.counters[2] = 0
                between(table, step_ns, tick, max(float(share.fastest[0]) for share in self._shares), CONTACTS)
                self._all(table, step_ns, tick, PLACES)
                tick += 1
            start, end = (tick - 1) * step_ns * 1e-9, tick * step_ns * 1e-9
            code = hear(table, tick, start, end)
            half = code != memory.OK
            if half:
                return tick, code, True
        return tick, memory.OK, False

    def _all(self, table: Any, step_ns: int, tick: int, what: int) -> None:
        """Every share, the first of them by whoever asks."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count - 1, "wavesim-tick")
        first, *others = self._tables
        begun = [self._pool.submit(lambda own: apart(table, own, step_ns, tick, what), own) for own in others]
        try:
            apart(table, first, step_ns, tick, what)
        finally:  # whoever interrupts this goes on when nobody works on the bodies any more
            for other in begun:
                other.result()


def shares(f: Bodies, sequence: Ints, work: Work, count: int) -> list[Share]:
    """The blocks for each thread, a few of every kind, and the bodies in them."""
    rows = work.order[: work.counters[0]]
    place = np.full(len(f.heads), -1)
    place[sequence] = np.arange(len(sequence))
    seats = f.slots[rows]
    at = place[seats // r.LANES]
    sort = np.lexsort((seats, at))
    rows, at = rows[sort], at[sort]
    found = []
    for k in range(count):
        parts = [
            np.arange(i, min(i + TOGETHER, len(sequence))) for i in range(k * TOGETHER, len(sequence), count * TOGETHER)
        ]
        own = [rows[np.searchsorted(at, part[0]) : np.searchsorted(at, part[-1], "right")] for part in parts]
        blocks, bodies_ = _together(parts), _together(own)
        ends = np.cumsum(
            [[len(part), len(row)] for part, row in zip(parts, own, strict=True)] or np.zeros((0, 2)), axis=0
        )
        found.append(
            Share(
                work._replace(order=bodies_, counters=np.array([len(bodies_), 0, 0])),
                aligned(r.WORK),
                sequence[blocks],
                ends.astype(np.int64).reshape(-1, 2),
                np.zeros(1),
            )
        )
    return found


def _together(parts: list[Any]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])
