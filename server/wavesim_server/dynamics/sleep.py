"""Sleep of bodies at rest, compiled. Such bodies are neither stepped nor checked for contacts until something changes.

A body falls asleep after one second in which three conditions have held: it has touched only the sea bed or obstacles,
in every tick; nothing that drives it has changed; and it has moved evenly and by less than CREEP_TOLERANCE. A body that
begins to tip, or swings through its turning point, moves unevenly. A sleeping body keeps its pose, and its velocity is
zero.

A sleeping body wakes before the tick in which an input changes: a command, a fault, an external force, wind, waves,
density, or the pull of a line. A current must change by more than FLOW_TOLERANCE, because a tide changes it in every
tick. The body also wakes when another body touches it, and when its pose or its coefficients are set. Bodies that touch
other bodies, float, or have lines or a mooring do not sleep.

A sleeping body does not creep. A body that is at rest but awake creeps along a slope or with a current, because in each
tick it falls for half a tick before its contacts hold it. The contacts then move it back only along their normals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.bodies import BodyArrays
from wavesim_server.dynamics.contact_events import LAST_TICK, PARTNERS, ContactEvents
from wavesim_server.dynamics.sizes import LANES, SLOTS

SETTLE_S = 1.0  #: time in s for which a body must be at rest before it falls asleep
CREEP_TOLERANCE = 5e-4  #: a body counts as at rest if no point on it has moved by more than this (in m) during SETTLE_S
#: maximum difference between the displacements in the two halves of SETTLE_S: a fraction of the whole displacement,
#: plus a length in m
EVENNESS_TOLERANCE, HAIR = 0.01, 1e-6
FLOW_TOLERANCE = 1e-3  #: change in the water's velocity (m/s) or acceleration (m/s2) that is ignored
#: columns of ``rest_ticks``, for each body: last tick at rest, first tick of this rest period, last tick in contact
#: with a body
LAST_AT_REST, AT_REST_SINCE, LAST_BODY_CONTACT = 0, 1, 2


class SleepState(NamedTuple):
    """State that is kept from tick to tick for bodies that are asleep or may soon fall asleep."""

    resting_state: Floats  # (rows, B.ROWS): state of a body when it came to rest
    rest_ticks: Ints  # (rows, 3)
    half_displacement: Floats  # (rows,): displacement in the first half of its time, m
    asleep_count: Ints  # (1,): number of sleeping bodies
    settle_ticks: Ints  # (1,): half of the time for which it must be at rest


def make_sleep_state(capacity: int, step: float) -> SleepState:
    """Create the sleep state for a fleet of up to ``capacity`` bodies; ``step`` is the duration of a tick in s."""
    return SleepState(
        np.zeros((capacity, B.ROWS)),
        np.full((capacity, 3), -1, np.int64),
        np.zeros(capacity),
        np.zeros(1, np.int64),
        np.array([max(1, round(0.5 * SETTLE_S / step))], np.int64),
    )


def wake(s: SleepState, row: int) -> None:
    """Wake a body after an external change. It wakes in the next tick, and its time at rest is counted from zero
    again.
    """
    s.resting_state[row] = np.nan


@always_inline
def _is_driven_alike(b: Floats, l: int, kept: Floats) -> bool:
    """Return whether all inputs of a body are unchanged. The water plane is ignored, because bodies near it do not
    sleep.
    """
    alike = True
    for k in range(B.ACTUATOR_COMMAND, B.V_WF_W):
        alike &= b[k * LANES + l] == kept[k]
    for k in range(B.V_WF_W, B.WATER_LEVEL):
        alike &= abs(b[k * LANES + l] - kept[k]) <= FLOW_TOLERANCE
    for k in range(B.ENVIRONMENT_WRENCH, B.HAS_LINES + 1):
        alike &= b[k * LANES + l] == kept[k]
    return alike


@always_inline
def _is_deep(f: BodyArrays, slot: int) -> bool:
    """Return whether a body is so deep that the surface does not affect its buoyancy."""
    b, l, p = f.blocks[slot // LANES], slot % LANES, f.params[f.block_heads[slot // LANES, B.HEAD_MODEL]]
    return b[B.PZ * LANES + l] - b[B.WATER_LEVEL * LANES + l] >= 1.5 * p[P.BOUNDING_RADIUS] + 1.0


@always_inline
def _max_displacement(f: BodyArrays, slot: int, kept: Floats) -> float:
    """Return an upper bound on the displacement of any point of a body."""
    b, l, p = f.blocks[slot // LANES], slot % LANES, f.params[f.block_heads[slot // LANES, B.HEAD_MODEL]]
    way = turn = 0.0
    for k in range(3):
        step = b[(B.PX + k) * LANES + l] - kept[B.PX + k]
        way += step * step
    for k in range(4):
        step = b[(B.QW + k) * LANES + l] - kept[B.QW + k]
        turn += step * step
    return math.sqrt(way) + 2.0 * float(p[P.BOUNDING_RADIUS]) * math.sqrt(turn)


@device_function
def update_rest(f: BodyArrays, s: SleepState, row: int, last: Floats, tick: int) -> None:
    """Record that a body is at rest at the end of this tick; put it to sleep if it has been at rest long enough.

    ``last`` (rows, RIGID_ROWS) contains the states before the contacts acted.
    """
    slot, note, kept = f.slots[row], s.rest_ticks[row], s.resting_state[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    still = note[LAST_AT_REST] == tick - 1 and _is_driven_alike(b, l, kept)
    note[LAST_AT_REST] = tick
    if still:
        way, ticks = _max_displacement(f, slot, kept), tick - note[AT_REST_SINCE]
        still = way < CREEP_TOLERANCE
        if ticks == s.settle_ticks[0]:
            s.half_displacement[row] = way
        elif still and ticks >= 2 * s.settle_ticks[0]:
            still = False  # from here on, if it does not sleep now
            if abs(way - 2.0 * s.half_displacement[row]) <= EVENNESS_TOLERANCE * way + HAIR and _may_sleep(f, slot):
                for k in range(6):  # contacts act on it as before
                    last[row, B.NU + k] -= b[(B.NU + k) * LANES + l]
                    b[(B.NU + k) * LANES + l] = 0.0
                b[B.ASLEEP * LANES + l] = 1.0
                s.asleep_count[0] += 1
    if not still:
        note[AT_REST_SINCE] = tick
        for k in range(B.ROWS):
            kept[k] = b[k * LANES + l]


@always_inline
def _may_sleep(f: BodyArrays, slot: int) -> bool:
    """Return whether a body may sleep: it is deep, it has no lines, mooring or decaying fluid memory, and its actuators
    are at their commanded values.
    """
    b, l = f.blocks[slot // LANES], slot % LANES
    if b[B.HAS_LINES * LANES + l] != 0.0 or b[B.MOORING_STIFFNESS * LANES + l] != 0.0 or not _is_deep(f, slot):
        return False
    for k in range(B.NU + 6, B.ACTUATOR_STATE):  # memory of its own waves
        if b[k * LANES + l] != 0.0:
            return False
    for k in range(SLOTS):
        goal = b[(B.ACTUATOR_COMMAND + k) * LANES + l]
        if not abs(b[(B.ACTUATOR_STATE + k) * LANES + l] - goal) <= 1e-9 * abs(goal):
            return False
    return True


@device_function
def wake_body(f: BodyArrays, s: SleepState, m: ContactEvents, row: int, tick: int) -> None:
    """Wake a body in the pose in which it was at rest. Its contacts count as uninterrupted during its sleep."""
    slot = f.slots[row]
    f.blocks[slot // LANES, B.ASLEEP * LANES + slot % LANES] = 0.0
    s.asleep_count[0] -= 1
    for k in range(PARTNERS):
        if m.last_contacts[row, k, LAST_TICK] == s.rest_ticks[row, LAST_AT_REST]:
            m.last_contacts[row, k, LAST_TICK] = tick
    s.rest_ticks[row, LAST_AT_REST] = -1


@device_function
def wake_changed(f: BodyArrays, s: SleepState, m: ContactEvents, order: Ints, count: int, tick: int) -> None:
    """Wake each body that is near the surface, or for which an input has changed since it fell asleep."""
    for i in range(count):
        slot = f.slots[order[i]]
        b, l = f.blocks[slot // LANES], slot % LANES
        if b[B.ASLEEP * LANES + l] != 0.0 and not (
            _is_driven_alike(b, l, s.resting_state[order[i]]) and _is_deep(f, slot)
        ):
            wake_body(f, s, m, order[i], tick)


@device_function
def restore_sleepers(f: BodyArrays, s: SleepState, order: Ints, count: int) -> int:
    """Restore sleeping bodies after other bodies in their block have been stepped. Returns the number of sleeping
    bodies.
    """
    asleep = 0
    for i in range(count):
        slot = f.slots[order[i]]
        b, l = f.blocks[slot // LANES], slot % LANES
        if b[B.ASLEEP * LANES + l] != 0.0:
            asleep += 1
            for k in range(B.ACTUATOR_COMMAND):
                b[k * LANES + l] = s.resting_state[order[i], k]
    return asleep
