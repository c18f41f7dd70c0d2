"""The tick, compiled: environment, dynamics, contacts and sound of all bodies in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

from wavesim_sdk.kernel_compiler import always_inline, device_function, kernel
from wavesim_server import calls, pointers
from wavesim_server.acoustics import medium, memory
from wavesim_server.dynamics import bodies, contact, fleet, integrators, lines, rotation, sleep
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.bodies import Bodies
from wavesim_server.dynamics.touch import Touch
from wavesim_server.dynamics.types import Floats, Ints
from wavesim_server.environment import weather
from wavesim_server.environment.flow import Flow
from wavesim_server.seabed import Bed, Net


class Sea(NamedTuple):
    """What the tick needs of the environment."""

    bed: Bed
    net: Net
    flow: Flow
    cursor: Ints


class Machine(NamedTuple):
    """What the tick needs of the fleet, see :class:`~wavesim_server.dynamics.fleet.Fleet`."""

    sequence: Ints
    kinds: Ints
    tables: Floats
    work: Floats
    holds: Floats
    held: Ints
    wanted: Floats
    meters: Ints
    rings: Floats
    feedback: Floats


class Work(NamedTuple):
    """Scratch of the tick: rows present, transducers on the bodies, last finite states."""

    order: Ints
    lever: Floats
    last: Floats
    faults: Ints
    counters: Ints  # bodies, contacts, new faults


class Whole(NamedTuple):
    """All that a tick works on."""

    f: Bodies
    machine: Machine
    integrator: int
    touch: Touch
    air: weather.Weather
    sea: Sea
    rig: lines.Rig
    work: Work
    sound: Ints
    scene: medium.Scene


whole = pointers.unpacked(Whole)


@device_function
def transducers(f: Bodies, work: Work, sound: Any, tick: int) -> None:
    """Places of all transducers at the end of a tick: position and velocity in W, attitude."""
    m = memory.views(sound)
    for k in range(work.counters[0]):
        row = work.order[k]
        if m.nodes[row].active == 0:
            continue
        b, l = f.blocks[f.slots[row] // r.LANES], f.slots[row] % r.LANES
        place = m.places[tick & 1, row]
        place.qw, place.qx = b[r.QW * r.LANES + l], b[r.QX * r.LANES + l]
        place.qy, place.qz = b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
        xx, xy, xz, yx, yy, yz, zx, zy, zz = rotation.matrix(place.qw, place.qx, place.qy, place.qz)
        tx, ty, tz = work.lever[row, 0], work.lever[row, 1], work.lever[row, 2]
        p, q, o = b[(r.NU + 3) * r.LANES + l], b[(r.NU + 4) * r.LANES + l], b[(r.NU + 5) * r.LANES + l]
        u = b[r.NU * r.LANES + l] + q * tz - o * ty
        v = b[(r.NU + 1) * r.LANES + l] + o * tx - p * tz
        w = b[(r.NU + 2) * r.LANES + l] + p * ty - q * tx
        place.x = b[r.PX * r.LANES + l] + xx * tx + xy * ty + xz * tz
        place.y = b[r.PY * r.LANES + l] + yx * tx + yy * ty + yz * tz
        place.z = b[r.PZ * r.LANES + l] + zx * tx + zy * ty + zz * tz
        place.vx, place.vy, place.vz = xx * u + xy * v + xz * w, yx * u + yy * v + yz * w, zx * u + zy * v + zz * w


@always_inline
def move(
    f: Bodies,
    machine: Machine,
    integrator: int,
    touch: Touch,
    air: weather.Weather,
    sea: Sea,
    rig: lines.Rig,
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
    tied = rig.groups.shape[0] > 0
    if tied:
        weather.at_nodes(air, sea.flow, rig.nodes, start)
        lines.beds(rig, sea.bed, sea.net)
        lines.begin(f, rig)
    if touch.sleep.asleep[0]:
        sleep.wake_changed(f, touch.sleep, touch.meetings, work.order, n, tick)
    integrators.step_all(
        f.blocks, f.heads, machine.sequence, f.params, machine.kinds, machine.tables, machine.work, h, integrator
    )
    if tied:
        lines.advance(f, rig, h, tick + 1)
    touch.sleep.asleep[0] = sleep.keep(f, touch.sleep, work.order, n) if touch.sleep.asleep[0] else 0
    new, fastest = bodies.survey(f, work.order, n, work.last, work.faults)
    work.counters[2] += new
    work.counters[1] += contact.resolve(
        f, work.order, n, touch, work.last, fastest, h, sea.bed, sea.net, sea.cursor, tick + 1
    )
    if machine.meters.shape[0]:
        fleet.average(f.blocks, f.slots, machine.meters, machine.rings, machine.feedback)
    transducers(f, work, sound, tick + 1)


@kernel(nogil=True)
def hear(table: Any, tick: int, start: float, end: float) -> int:
    """The sound of a tick that lasts from ``start`` to ``end``, s: :func:`wavesim_server.acoustics.medium.advance`."""
    w = whole(table)
    return medium.advance(w.sound, w.scene, tick, start, end, w.f.slots.shape[0])


@kernel(nogil=True)
def ticks(table: Any, hearing: int, step_ns: int, tick: int, last_tick: int, half: bool) -> tuple[int, int, bool]:
    """Ticks from ``tick`` to ``last_tick`` of the table of :class:`Whole`; ``hearing``: address of :func:`hear`. Returns (tick
    reached, code, whether a tick is half done).

    A tick is half done when its sound still needs room: the caller makes it and calls again.
    """
    f, machine, integrator, touch, air, sea, rig, work, sound, _ = whole(table)
    while tick < last_tick or half:
        if not half:
            move(f, machine, integrator, touch, air, sea, rig, work, sound, step_ns, tick)
            tick += 1
        code = calls.call(hearing, table, tick, (tick - 1) * step_ns * 1e-9, tick * step_ns * 1e-9)
        half = code != memory.OK
        if half:
            return tick, code, True
    return tick, memory.OK, False


@kernel
def publish(
    f: Bodies, order: Ints, count: int, feedback: Floats, places: Ints, counts: Ints, state: Floats, actuation: Floats
) -> None:
    """Fill the flat views (capacity, 16) and (capacity, 3 SLOTS) of the state and actuation tables.

    Actuators come in the order of the model: the k-th of a row has the slot ``places[row, k]``, k < ``counts[row]``.
    """
    for k in range(count):
        row = order[k]
        b, l = f.blocks[f.slots[row] // r.LANES], f.slots[row] % r.LANES
        for i in range(13):
            state[row, i] = b[i * r.LANES + l]
        xx, xy, xz, yx, yy, yz, zx, zy, zz = rotation.matrix(
            b[r.QW * r.LANES + l], b[r.QX * r.LANES + l], b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
        )
        cx, cy, cz = b[r.CURRENT * r.LANES + l], b[(r.CURRENT + 1) * r.LANES + l], b[(r.CURRENT + 2) * r.LANES + l]
        state[row, 13] = b[r.NU * r.LANES + l] - (xx * cx + yx * cy + zx * cz)
        state[row, 14] = b[(r.NU + 1) * r.LANES + l] - (xy * cx + yy * cy + zy * cz)
        state[row, 15] = b[(r.NU + 2) * r.LANES + l] - (xz * cx + yz * cy + zz * cz)
        for i in range(counts[row]):
            slot = places[row, i]
            actuation[row, i] = b[(r.A_CMD + slot) * r.LANES + l]
            actuation[row, r.SLOTS + i] = b[(r.A_NOW + slot) * r.LANES + l]
            actuation[row, 2 * r.SLOTS + i] = feedback[row, slot]
        for i in range(counts[row], r.SLOTS):  # of a body that was in the row before
            actuation[row, i] = actuation[row, r.SLOTS + i] = actuation[row, 2 * r.SLOTS + i] = 0.0
