"""The tick, compiled: environment, dynamics, contacts and sound of all bodies in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb

from wavesim_server.acoustics import layout, medium
from wavesim_server.dynamics import contact, fleet, kernel
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.contact import Bodies, Touch
from wavesim_server.environment import weather


class Sea(NamedTuple):
    """What the tick needs of the environment."""

    bed: Any
    net: Any
    flow: Any
    cursor: Any


class Machine(NamedTuple):
    """What the tick needs of the fleet, see :class:`~wavesim_server.dynamics.fleet.Fleet`."""

    turn: Any
    kinds: Any
    tables: Any
    work: Any
    holds: Any
    held: Any
    wanted: Any
    meters: Any
    rings: Any
    feedback: Any


class Work(NamedTuple):
    """Scratch of the tick: rows present, transducers on the bodies, last finite states."""

    order: Any
    lever: Any
    last: Any
    faults: Any
    counters: Any  # bodies, contacts, new faults


@nb.njit(cache=True, error_model="numpy")
def transducers(f: Bodies, work: Work, sound: Any, tick: int) -> None:
    """Places of all transducers at the end of a tick: position and velocity in W, attitude."""
    m = layout.views(sound)
    after = m.places[tick & 1]
    for k in range(work.counters[0]):
        row = work.order[k]
        if m.nodes[row, layout.N_ACTIVE] == 0.0:
            continue
        b, l = f.blocks[f.slots[row] // r.LANES], f.slots[row] % r.LANES
        w, x, y, z = b[r.QW * r.LANES + l], b[r.QX * r.LANES + l], b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
        tx, ty, tz = work.lever[row, 0], work.lever[row, 1], work.lever[row, 2]
        p, q, o = b[r.P * r.LANES + l], b[r.Q * r.LANES + l], b[r.R * r.LANES + l]
        u = b[r.U * r.LANES + l] + q * tz - o * ty
        v = b[r.V * r.LANES + l] + o * tx - p * tz
        s = b[r.W * r.LANES + l] + p * ty - q * tx
        xx, xy, xz = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)
        yx, yy, yz = 2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)
        zx, zy, zz = 2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)
        a = after[row]
        a[0] = b[r.PX * r.LANES + l] + xx * tx + xy * ty + xz * tz
        a[1] = b[r.PY * r.LANES + l] + yx * tx + yy * ty + yz * tz
        a[2] = b[r.PZ * r.LANES + l] + zx * tx + zy * ty + zz * tz
        a[3], a[4], a[5] = xx * u + xy * v + xz * s, yx * u + yy * v + yz * s, zx * u + zy * v + zz * s
        a[6], a[7], a[8], a[9] = w, x, y, z


@nb.njit(cache=True, error_model="numpy", forceinline=True)
def move(
    f: Bodies,
    machine: Machine,
    integrator: int,
    touch: Touch,
    air: weather.Weather,
    sea: Sea,
    work: Work,
    sound: Any,
    step_ns: int,
    tick: int,
) -> None:
    """The motion of all bodies from ``tick`` to the next, and where that brings their transducers."""
    h, start, n = step_ns * 1e-9, tick * step_ns * 1e-9, work.counters[0]
    weather.advance(air, tick, start, h)
    weather.act(air, sea.flow, f.blocks, f.slots, work.order, n, tick, start, h)
    if machine.held[0]:
        fleet.release(f.blocks, f.slots, machine.holds, machine.wanted, machine.held, start)
    kernel.step_all(
        f.blocks, f.heads, machine.turn, f.params, machine.kinds, machine.tables, machine.work, h, integrator
    )
    new, fastest = contact.survey(f, work.order, n, work.last, work.faults)
    work.counters[2] += new
    work.counters[1] += contact.resolve(f, work.order, n, touch, fastest, h, sea.bed, sea.net, sea.cursor, tick + 1)
    if machine.meters.shape[0]:
        fleet.average(f.blocks, f.slots, machine.meters, machine.rings, machine.feedback)
    transducers(f, work, sound, tick + 1)


@nb.njit(cache=True, error_model="numpy", nogil=True)
def ticks(
    f: Bodies,
    machine: Machine,
    integrator: int,
    touch: Touch,
    air: weather.Weather,
    sea: Sea,
    work: Work,
    sound: Any,
    scene: medium.Scene,
    step_ns: int,
    tick: int,
    last_tick: int,
    half: bool,
) -> tuple[int, int, bool]:
    """Ticks from ``tick`` to ``last_tick``. Returns (tick reached, code, whether a tick is half done).

    A tick is half done when its sound still needs room: the caller makes it and calls again.
    """
    capacity = f.slots.shape[0]
    while tick < last_tick or half:
        if not half:
            move(f, machine, integrator, touch, air, sea, work, sound, step_ns, tick)
            tick += 1
        code = medium.advance(sound, scene, tick, (tick - 1) * step_ns * 1e-9, tick * step_ns * 1e-9, capacity)
        half = code != layout.OK
        if half:
            return tick, code, True
    return tick, layout.OK, False


@nb.njit(cache=True, error_model="numpy")
def publish(
    f: Bodies, order: Any, count: int, feedback: Any, places: Any, counts: Any, state: Any, actuation: Any
) -> None:
    """Fill the flat views (capacity, 16) and (capacity, 3 SLOTS) of the state and actuation tables.

    Actuators come in the order of the model: the k-th of a row has the slot ``places[row, k]``, k < ``counts[row]``.
    """
    for k in range(count):
        row = order[k]
        b, l = f.blocks[f.slots[row] // r.LANES], f.slots[row] % r.LANES
        for i in range(13):
            state[row, i] = b[i * r.LANES + l]
        w, x, y, z = b[r.QW * r.LANES + l], b[r.QX * r.LANES + l], b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
        cx, cy, cz = b[r.CURRENT * r.LANES + l], b[(r.CURRENT + 1) * r.LANES + l], b[(r.CURRENT + 2) * r.LANES + l]
        state[row, 13] = b[r.U * r.LANES + l] - (
            (1.0 - 2.0 * (y * y + z * z)) * cx + 2.0 * (x * y + z * w) * cy + 2.0 * (x * z - y * w) * cz
        )
        state[row, 14] = b[r.V * r.LANES + l] - (
            2.0 * (x * y - z * w) * cx + (1.0 - 2.0 * (x * x + z * z)) * cy + 2.0 * (y * z + x * w) * cz
        )
        state[row, 15] = b[r.W * r.LANES + l] - (
            2.0 * (x * z + y * w) * cx + 2.0 * (y * z - x * w) * cy + (1.0 - 2.0 * (x * x + y * y)) * cz
        )
        for i in range(counts[row]):
            slot = places[row, i]
            actuation[row, i] = b[(r.A_CMD + slot) * r.LANES + l]
            actuation[row, r.SLOTS + i] = b[(r.A_NOW + slot) * r.LANES + l]
            actuation[row, 2 * r.SLOTS + i] = feedback[row, slot]
        for i in range(counts[row], r.SLOTS):  # of a body that was in the row before
            actuation[row, i] = actuation[row, r.SLOTS + i] = actuation[row, 2 * r.SLOTS + i] = 0.0
