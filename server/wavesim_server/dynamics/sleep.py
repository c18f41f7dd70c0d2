"""Bodies that lie still sleep: they are neither stepped nor looked at for contacts until something changes. Compiled.

A body sleeps when for a second it has touched the sea bed or obstacles in every tick and nothing else, while nothing that
drives it has changed and it has moved by less than CREEP, and evenly: what begins to tip or swings through its turning
point moves unevenly.  It keeps its pose, and its velocity is zero.  It wakes before the tick in which a number that
drives it is another one: a command, a fault, a push, wind, waves, density, the pull of a line; a current, by more than
DRIFT, for a tide changes it in every tick; when another body comes to touch it; and when it is put somewhere, or given
other coefficients.  Bodies that touch other bodies, float, have lines or a mooring do not sleep.

What is left out is the creep of a body at rest that is awake: it falls for half a tick before its contacts hold it, along a
slope or with a current, and is brought back along their normals only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_sdk.kernel_compiler import always_inline, device_function
from wavesim_server.dynamics.bodies import BodyArrays
from wavesim_server.dynamics.contact_events import LAST_TICK, PARTNERS, ContactEvents
from wavesim_server.dynamics.rows import (
    ACTUATOR_COMMAND,
    ACTUATOR_STATE,
    ASLEEP,
    BLOCK_MODEL,
    BLOCK_ROWS,
    BOUNDING_RADIUS,
    ENVIRONMENT_WRENCH,
    HAS_LINES,
    LANES,
    MOORING,
    NU,
    PX,
    PZ,
    QW,
    SLOTS,
    V_WF_W,
    WATER_LEVEL,
)
from wavesim_server.dynamics.types import Floats, Ints

SETTLE_S = 1.0  #: for so long a body must lie still
CREEP_TOLERANCE = 5e-4  #: and any point of it moves by less than this meanwhile, m
EVENNESS_TOLERANCE, HAIR = 0.01, 1e-6  #: of the way, and m, by which its halves may differ
FLOW_TOLERANCE = 1e-3  #: change of the water's velocity (m/s) or acceleration (m/s2) that does not count
#: of the notes: tick in which a body was last seen to lie, tick since which it has lain as it does, tick in which it last
#: touched another body
LAST_AT_REST, AT_REST_SINCE, LAST_BODY_CONTACT = 0, 1, 2


class SleepState(NamedTuple):
    """Memory of who sleeps, and of who may soon."""

    resting_state: Floats  # (rows, BLOCK_ROWS): a body as it lay down
    rest_ticks: Ints  # (rows, 3)
    half_displacement: Floats  # (rows,): way in the first half of its time, m
    asleep_count: Ints  # (1,): how many
    settle_ticks: Ints  # (1,): half of the time for which it must lie still


def make_sleep_state(capacity: int, step: float) -> SleepState:
    """Memory for a fleet of this size; ``step`` is the tick in s."""
    return SleepState(
        np.zeros((capacity, BLOCK_ROWS)),
        np.full((capacity, 3), -1, np.int64),
        np.zeros(capacity),
        np.zeros(1, np.int64),
        np.array([max(1, round(0.5 * SETTLE_S / step))], np.int64),
    )


def wake(s: SleepState, row: int) -> None:
    """A body was changed by hand: it wakes in the next tick, and has not lain still."""
    s.resting_state[row] = np.nan


@always_inline
def _is_driven_alike(b: Floats, l: int, kept: Floats) -> bool:
    """Whether all that drives a body is as it was. The water plane does not: who is near it does not sleep."""
    alike = True
    for k in range(ACTUATOR_COMMAND, V_WF_W):
        alike &= b[k * LANES + l] == kept[k]
    for k in range(V_WF_W, WATER_LEVEL):
        alike &= abs(b[k * LANES + l] - kept[k]) <= FLOW_TOLERANCE
    for k in range(ENVIRONMENT_WRENCH, HAS_LINES + 1):
        alike &= b[k * LANES + l] == kept[k]
    return alike


@always_inline
def _is_deep(f: BodyArrays, slot: int) -> bool:
    """Whether the surface is far from a body, as far as its buoyancy is concerned."""
    b, l, p = f.blocks[slot // LANES], slot % LANES, f.params[f.block_heads[slot // LANES, BLOCK_MODEL]]
    return b[PZ * LANES + l] - b[WATER_LEVEL * LANES + l] >= 1.5 * p[BOUNDING_RADIUS] + 1.0


@always_inline
def _max_displacement(f: BodyArrays, slot: int, kept: Floats) -> float:
    """How far any point of a body can have moved."""
    b, l, p = f.blocks[slot // LANES], slot % LANES, f.params[f.block_heads[slot // LANES, BLOCK_MODEL]]
    way = turn = 0.0
    for k in range(3):
        step = b[(PX + k) * LANES + l] - kept[PX + k]
        way += step * step
    for k in range(4):
        step = b[(QW + k) * LANES + l] - kept[QW + k]
        turn += step * step
    return math.sqrt(way) + 2.0 * float(p[BOUNDING_RADIUS]) * math.sqrt(turn)


@device_function
def update_rest(f: BodyArrays, s: SleepState, row: int, last: Floats, tick: int) -> None:
    """A body lies at the end of this tick; lay it to sleep if it has done so for long enough. ``last``: (rows, RIGID_ROWS), its
    state before contacts."""
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
                for k in range(6):  # contacts act on it as they did
                    last[row, NU + k] -= b[(NU + k) * LANES + l]
                    b[(NU + k) * LANES + l] = 0.0
                b[ASLEEP * LANES + l] = 1.0
                s.asleep_count[0] += 1
    if not still:
        note[AT_REST_SINCE] = tick
        for k in range(BLOCK_ROWS):
            kept[k] = b[k * LANES + l]


@always_inline
def _may_sleep(f: BodyArrays, slot: int) -> bool:
    """Whether a body is one of those that do: deep, free, its actuators where they are told to be."""
    b, l = f.blocks[slot // LANES], slot % LANES
    if b[HAS_LINES * LANES + l] != 0.0 or b[(MOORING + 4) * LANES + l] != 0.0 or not _is_deep(f, slot):
        return False
    for k in range(NU + 6, ACTUATOR_STATE):  # memory of its own waves
        if b[k * LANES + l] != 0.0:
            return False
    for k in range(SLOTS):
        goal = b[(ACTUATOR_COMMAND + k) * LANES + l]
        if not abs(b[(ACTUATOR_STATE + k) * LANES + l] - goal) <= 1e-9 * abs(goal):
            return False
    return True


@device_function
def wake_body(f: BodyArrays, s: SleepState, m: ContactEvents, row: int, tick: int) -> None:
    """A body goes on from where it lies; what it touched when it fell asleep it has touched all the while."""
    slot = f.slots[row]
    f.blocks[slot // LANES, ASLEEP * LANES + slot % LANES] = 0.0
    s.asleep_count[0] -= 1
    for k in range(PARTNERS):
        if m.last_contacts[row, k, LAST_TICK] == s.rest_ticks[row, LAST_AT_REST]:
            m.last_contacts[row, k, LAST_TICK] = tick
    s.rest_ticks[row, LAST_AT_REST] = -1


@device_function
def wake_changed(f: BodyArrays, s: SleepState, m: ContactEvents, order: Ints, count: int, tick: int) -> None:
    """Wake whom anything drives otherwise in this tick than when it fell asleep, or whom the surface is near."""
    for i in range(count):
        slot = f.slots[order[i]]
        b, l = f.blocks[slot // LANES], slot % LANES
        if b[ASLEEP * LANES + l] != 0.0 and not (
            _is_driven_alike(b, l, s.resting_state[order[i]]) and _is_deep(f, slot)
        ):
            wake_body(f, s, m, order[i], tick)


@device_function
def restore_sleepers(f: BodyArrays, s: SleepState, order: Ints, count: int) -> int:
    """Those that sleep stay what they were, though others of their block have been stepped. Returns how many."""
    asleep = 0
    for i in range(count):
        slot = f.slots[order[i]]
        b, l = f.blocks[slot // LANES], slot % LANES
        if b[ASLEEP * LANES + l] != 0.0:
            asleep += 1
            for k in range(ACTUATOR_COMMAND):
                b[k * LANES + l] = s.resting_state[order[i], k]
    return asleep
