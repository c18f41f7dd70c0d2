"""Contact between bodies, and of bodies with obstacles and the sea bed. Compiled kernels apply the impulses at the
end of a tick.

A contact limits the approach speed so that the gap does not close within one step. A body therefore cannot pass through
a thin wall, however fast it is. Touching bodies do not bounce, and slide with Coulomb friction. Impulses use the
effective mass of a body at the point of contact, including added mass. A few sweeps through the contacts in the tick
determine the impulses. Any small overlap that remains is removed by moving the bodies apart.

Pairs that can meet are listed with a skin around each body. The list is rebuilt when one of the bodies has moved by the width of
the skin.
"""

from __future__ import annotations

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import sleep
from wavesim_server.dynamics.bodies import BodyArrays, TickScratch, is_asleep
from wavesim_server.dynamics.broad_phase import SKIN, list_pairs
from wavesim_server.dynamics.contact_events import BED, record_contact
from wavesim_server.dynamics.contact_memory import (
    C_A,
    C_B,
    C_GAP,
    C_IMPULSE,
    C_SPEED,
    N_PAIRS,
    N_STALE,
    ContactMemory,
)
from wavesim_server.dynamics.impulses import (
    approach_speed,
    correct_overlap,
    friction_impulse,
    normal_impulse,
    prepare_contact,
    rolling_impulse,
)
from wavesim_server.dynamics.narrow_phase import contacts_of_pair, contacts_with_bed, may_touch
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.seabed import SeaBed

ITERATIONS = 24  #: number of sweeps through the contacts in a tick


@device_function
def resolve_contacts(
    f: BodyArrays, scratch: TickScratch, t: ContactMemory, fastest: float, h: float, sea_bed: SeaBed, tick: int
) -> int:
    """Solve all contacts in this tick and return the number of contacts in which the bodies touch.

    ``scratch`` contains the states of the bodies before the contacts; ``fastest`` is the speed of the fastest body.
    """
    order, count = scratch.order, scratch.counters[0]
    t.moved_since_listing[0] += 2.0 * fastest * h
    if t.moved_since_listing[0] > SKIN or t.counters[N_STALE]:
        t.counters[N_STALE] = 0
        list_pairs(f, order, count, t)
    n = 0
    sleepers = t.sleep.asleep_count[0] > 0
    if sleepers:
        _wake_touched(f, t, h, tick)
    for i in range(t.counters[N_PAIRS]):
        a, b = t.pairs[i, 0], t.pairs[i, 1]
        if not (sleepers and (is_asleep(f, a) or (b >= 0 and is_asleep(f, b)))):
            n = contacts_of_pair(f, t, n, a, b, h)
    # A body is checked only when it may have used up its last clearance, if it were as fast as the fastest body. The
    # test is inline because a call costs more than everything else in it (reference counts of NamedTuples change at
    # each call).
    way = fastest * h * (1.0 + sea_bed.parameters.max_slope)
    for i in range(count):
        slot = f.slots[order[i]]
        block, l = f.blocks[slot // LANES], slot % LANES
        if block[B.ASLEEP * LANES + l] != 0.0:
            continue
        block[B.CLEARANCE * LANES + l] -= way
        if not block[B.CLEARANCE * LANES + l] > 0.0:
            n = contacts_with_bed(f, t, n, order[i], h, sea_bed)
    if n == 0:
        return 0
    for i in range(n):
        c, levers = t.contacts[i], t.levers[i]
        prepare_contact(f, c, levers)
        c[C_SPEED] = approach_speed(f, c, levers)
    for _ in range(ITERATIONS):
        for i in range(n):
            c, levers = t.contacts[i], t.levers[i]
            normal_impulse(f, c, levers, max(c[C_GAP], 0.0) / h)
            if c[C_IMPULSE] > 0.0:
                friction_impulse(f, c, levers, t.directions)
    for i in range(n):
        c = t.contacts[i]
        if c[C_IMPULSE] > 0.0 and c[C_B] < 0.0:
            rolling_impulse(f, c, t.levers[i], t.directions[0])
    return _finish_contacts(f, t, n, scratch.last_finite, h, tick)


@always_inline
def _finish_contacts(f: BodyArrays, t: ContactMemory, n: int, last: Floats, h: float, tick: int) -> int:
    """Apply the solved contacts: record events, remove overlaps, and update which bodies are at rest. Returns the
    number of contacts in which the bodies touch.
    """
    touching = 0
    for i in range(n):
        c = t.contacts[i]
        if c[C_IMPULSE] > 0.0 or c[C_GAP] < 0.0:
            touching += 1
            a, b = int(c[C_A]), int(c[C_B])
            record_contact(t.events, a, b if b >= BED else -2 - t.events.owners[-2 - b], tick, c[C_SPEED])
            if b >= 0:
                record_contact(t.events, b, a, tick, c[C_SPEED])
                t.sleep.rest_ticks[a, sleep.LAST_BODY_CONTACT] = t.sleep.rest_ticks[b, sleep.LAST_BODY_CONTACT] = tick
            correct_overlap(f, c, t.levers[i], h)
    for i in range(n):
        c, row = t.contacts[i], int(t.contacts[i, C_A])
        note = t.sleep.rest_ticks[row]
        if (
            (c[C_IMPULSE] > 0.0 or c[C_GAP] < 0.0)
            and note[sleep.LAST_AT_REST] != tick
            and note[sleep.LAST_BODY_CONTACT] != tick
        ):
            sleep.update_rest(f, t.sleep, row, last, tick)
    return touching


@device_function
def _wake_touched(f: BodyArrays, t: ContactMemory, h: float, tick: int) -> None:
    """Wake each body that another body touches in this tick, so that the contacts of the woken body are found as well."""
    for i in range(t.counters[N_PAIRS]):
        a, b = t.pairs[i, 0], t.pairs[i, 1]
        if b >= 0 and is_asleep(f, a) != is_asleep(f, b) and may_touch(f, t, a, b, h):
            sleep.wake_body(f, t.sleep, t.events, a if is_asleep(f, a) else b, tick - 1)
