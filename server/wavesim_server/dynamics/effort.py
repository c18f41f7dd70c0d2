"""Forces and accelerations of single bodies, part by part, for those who ask; compiled, and no part of the step.

The parts are those of the equation of motion in :mod:`wavesim_server.dynamics.kernel`, evaluated at the state and the
actuators of now.  With M = M_RB + M_A they satisfy, in the degrees of freedom that move,

    M nu' = restoring + drag + actuators + environment + external + contact,

where ``restoring`` is weight and buoyancy in the water's own frame, which accelerates in waves, ``drag`` holds -C(nu_r) nu_r
and M v_c', the inertia in a current that turns in B and accelerates, and ``contact`` the mooring
and the impulses of contacts averaged over the last tick.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from wavesim_server.dynamics import kernel, terms
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.contact import Bodies
from wavesim_server.dynamics.lanes import at, cell, put, vector

_njit = nb.njit(cache=True, error_model="numpy")
_inline = nb.njit(cache=True, error_model="numpy", forceinline=True)

#: columns of a row of the table `effort`
ACCELERATION, TOTAL, RESTORING, DRAG, ACTUATORS, ENVIRONMENT, EXTERNAL, CONTACT, EFFORT = range(0, 54, 6)
# parts that are computed on all lanes of a block at once
_ACTUATORS, _HULL, _RESTORING, _MOORING, _LANE_PARTS = range(0, 30, 6)


def scratch() -> Any:
    """Room for the parts of a block."""
    return np.zeros(_LANE_PARTS * r.LANES)


@_inline
def _clear(w: Any) -> None:
    for i in range(6):
        put(w, r.F + i, vector(0.0))


@_inline
def _take(w: Any, parts: Any, part: int) -> None:
    """The force rows are a part; they begin anew."""
    for i in range(6):
        put(parts, part + i, at(w, r.F + i))
    _clear(w)


@_njit
def _block(b: Any, p: Any, w: Any, kind: Any, tables: Any, moored: bool, parts: Any) -> None:
    """The parts of all bodies of a block; rotation, velocities and buoyancy stay in the work."""
    flags, k = kind[r.KIND_FLAGS], r.K
    for i in range(kind[r.KIND_STATES]):
        put(w, r.X + i, at(b, i))
    for i in range(r.SLOTS):
        put(w, r.AN + i, at(b, r.A_NOW + i))
    kernel.kinematics(b, p, w, k)
    _clear(w)
    if flags & (r.HAS_LAW | r.HAS_TERMS):
        terms.basis(w, kind[r.KIND_FINS])
    kernel.actuators(b, p, w, kind, tables)
    _take(w, parts, _ACTUATORS)
    kernel.hull(p, w, kind, 0)
    _take(w, parts, _HULL)
    if flags & r.HAS_G:
        terms.restoring(b, p, w)
    if flags & r.HAS_BALLAST:
        terms.ballast(p, w)
    if flags & r.HAS_G == 0 and kernel.is_afloat(b, p):
        kernel.floating(b, p, w)
    else:
        kernel.submerged(p, w)
    _take(w, parts, _RESTORING)
    if moored:
        kernel.mooring(b, w, k)
    _take(w, parts, _MOORING)


@_njit
def _one(b: Any, p: Any, w: Any, l: int, parts: Any, jump: Any, h: float, o: Any) -> None:
    """The row of one body; ``jump`` is what contacts changed of its velocity in the last tick."""
    nu, momentum, turn = np.empty(6), np.zeros(6), np.zeros(6)
    for i in range(6):
        nu[i] = cell(w, r.NUR + i, l)
    # weight and buoyancy
    buoyancy = cell(w, r.FB, l)
    net = p[r.WEIGHT] - buoyancy
    down = np.array([cell(w, r.DOWN, l), cell(w, r.DOWN + 1, l), cell(w, r.DOWN + 2, l)])
    lever = np.array([p[r.WG + i] - buoyancy * cell(w, r.CB + i, l) for i in range(3)])
    for i in range(6):
        o[RESTORING + i] = cell(parts, _RESTORING + i, l)
        o[ACTUATORS + i] = cell(parts, _ACTUATORS + i, l)
        o[ENVIRONMENT + i] = cell(b, r.ENV + i, l)
        o[EXTERNAL + i] = cell(b, r.EXT + i, l)
        o[CONTACT + i] = cell(parts, _MOORING + i, l)
        o[DRAG + i] = cell(parts, _HULL + i, l)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        o[RESTORING + i] += net * down[i]
        o[RESTORING + 3 + i] += lever[j] * down[k] - lever[k] * down[j]
    # drag, and -C(nu_r) nu_r by the momentum M nu_r
    for i in range(6):
        for k in range(6):
            speed = cell(w, r.HEAVE, l) if k == 2 else nu[k]
            o[DRAG + i] -= (p[r.DL + 6 * i + k] + p[r.DQ + 6 * i + k] * abs(speed)) * speed
            momentum[i] += p[r.M + 6 * i + k] * nu[k]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        o[DRAG + i] -= nu[3 + j] * momentum[k] - nu[3 + k] * momentum[j]
        o[DRAG + 3 + i] -= nu[3 + j] * momentum[3 + k] - nu[3 + k] * momentum[3 + j]
        o[DRAG + 3 + i] -= nu[j] * momentum[k] - nu[k] * momentum[j]
        turn[i] = cell(w, r.WATER + j, l) * nu[3 + k] - cell(w, r.WATER + k, l) * nu[3 + j] + cell(w, r.PULL + i, l)
        turn[i] *= p[r.FREE + i]
    # accelerations by these, then what makes the equation one of nu'
    for i in range(6):
        o[ACCELERATION + i] = turn[i] + jump[i] / h
        for k in range(6):
            load = (
                o[RESTORING + k]
                + o[DRAG + k]
                + o[ACTUATORS + k]
                + o[ENVIRONMENT + k]
                + o[EXTERNAL + k]
                + o[CONTACT + k]
            )
            o[ACCELERATION + i] += p[r.MINV + 6 * i + k] * load
    for i in range(6):
        for k in range(6):
            if p[r.MINV + 7 * i] != 0.0 and p[r.MINV + 7 * k] != 0.0:
                o[DRAG + i] += p[r.INERTIA + 6 * i + k] * turn[k]
                o[CONTACT + i] += p[r.INERTIA + 6 * i + k] * jump[k] / h
    for i in range(6):
        o[TOTAL + i] = (
            o[RESTORING + i] + o[DRAG + i] + o[ACTUATORS + i] + o[ENVIRONMENT + i] + o[EXTERNAL + i] + o[CONTACT + i]
        )


@_njit
def efforts(
    f: Bodies, kinds: Any, tables: Any, work: Any, parts: Any, rows: Any, last: Any, faults: Any, h: float, out: Any
) -> None:
    """Fill rows of the flat view (capacity, EFFORT) of the table. ``last`` holds each state before its last contacts;
    rows in the order of their seats are quickest."""
    jump = np.zeros(6)
    before = -1
    for i in range(rows.shape[0]):
        row = rows[i]
        block, l = f.slots[row] // r.LANES, f.slots[row] % r.LANES
        b, k = f.blocks[block], f.heads[block, r.BLOCK_KIND]
        p = f.params[k]
        if faults[row]:  # its state was no longer finite: it is held
            for c in range(EFFORT):
                out[row, c] = 0.0
            continue
        if block != before:
            _block(b, p, work, kinds[k], tables, f.heads[block, r.BLOCK_MOORED] != 0, parts)
            before = block
        for c in range(6):
            jump[c] = cell(b, r.U + c, l) - last[row, r.U + c]
        _one(b, p, work, l, parts, jump, h, out[row])
