"""Memory of contacts: pairs of bodies that can meet, contacts in the tick, and recent contacts of bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics.contact_events import ContactEvents, make_contact_events
from wavesim_server.dynamics.shapes import GEOMETRY
from wavesim_server.dynamics.sleep import SleepState, make_sleep_state

#: columns of the array of contacts:
# row a, row b (BED; -2 - k = fixed geometry k), point (3), normal from a to b (3), gap, impulse, friction impulse on b
# (3), approach speed, inverse mass of a and of b along the normal
C_A, C_B, C_POINT, C_NORMAL, C_GAP, C_IMPULSE, C_FRICTION, C_SPEED, C_INVERSE, CONTACT = (
    0,
    1,
    2,
    5,
    8,
    9,
    10,
    13,
    14,
    16,
)
#: columns of a contact for each of its two bodies:
# R_WB in row-major order (9); arm of the contact point, B (3); Jacobian along the normal (6); change in the body's
# velocity due to an impulse along the normal (6)
L_ROTATION, L_ARM, L_NORMAL, L_RESPONSE, LEVER = 0, 9, 12, 18, 24
#: columns for a contact direction: the Jacobian, and the change in velocity due to a unit impulse
D_JACOBIAN, D_RESPONSE, DIRECTION = 0, 6, 12
#: indices of the counters of pairs and contacts
N_PAIRS, N_CONTACTS, N_LOST, N_STALE = range(4)
#: rows of the scratch array from row 16 on; the distance computation uses the rows before them
ON_A, ON_B, POINT, SCRATCH = range(16, 20)
OVERLAP_TOLERANCE = 1e-4  #: overlap of touching bodies, in m, that is left uncorrected


class ContactMemory(NamedTuple):
    """Arrays of the contact kernels: obstacles (n, GEOMETRY), pairs, contacts in the tick, and scratch space."""

    obstacles: Floats
    pairs: Ints  # (n, 2): row, row; or row, -1 - obstacle
    contacts: Floats  # (n, CONTACT)
    scratch: Floats  # (SCRATCH, 3)
    levers: Floats  # (n, 2, LEVER), for the contacts of the tick
    directions: Floats  # (2, DIRECTION), scratch
    shapes: Floats  # (2, GEOMETRY)
    moved_since_listing: Floats  # (1,): distance moved since the pairs were listed
    counters: Ints
    events: ContactEvents
    sleep: SleepState


def make_contact_memory(capacity: int, fixed: Floats, owners: Sequence[int], step: float) -> ContactMemory:
    """Create the contact memory for a fleet of up to ``capacity`` bodies.

    ``fixed`` contains the fixed geometries, and ``owners`` the number of the obstacle to which each of them belongs.
    """
    pairs = capacity * capacity if capacity <= 512 else 128 * capacity
    contacts = max(256, 16 * capacity)
    return ContactMemory(
        fixed,
        np.zeros((pairs, 2), np.int64),
        np.zeros((contacts, CONTACT)),
        np.zeros((SCRATCH, 3)),
        np.zeros((contacts, 2, LEVER)),
        np.zeros((2, DIRECTION)),
        np.zeros((2, GEOMETRY)),
        np.array([math.inf]),
        np.zeros(4, np.int64),
        make_contact_events(capacity, owners, step),
        make_sleep_state(capacity, step),
    )
