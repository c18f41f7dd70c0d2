"""Compiled tick: one call computes the environment, dynamics, contacts and sound of all bodies."""

from __future__ import annotations

from typing import NamedTuple

from wavesim_kernels.compiler import always_inline, device_function, kernel
from wavesim_sdk import tables
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server import array_tables, indirect_calls
from wavesim_server.acoustics import front_arrays, fronts, medium, medium_arrays
from wavesim_server.acoustics.transducer_motion import TickInterval
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import bodies, contact, fleet, integrators, lines, rotation, sleep
from wavesim_server.dynamics.bodies import BodyArrays, ModelArrays, TickScratch
from wavesim_server.dynamics.contact_memory import ContactMemory
from wavesim_server.dynamics.sizes import LANES, SLOTS
from wavesim_server.dynamics.types import Packed
from wavesim_server.environment import weather
from wavesim_server.environment.flow import FlowField
from wavesim_server.seabed import SeaBed


class Environment(NamedTuple):
    """Arrays of the environment that the tick uses."""

    sea_bed: SeaBed
    flow: FlowField


class FleetArrays(NamedTuple):
    """Arrays of the fleet that the tick uses; see :class:`~wavesim_server.dynamics.fleet.FleetDynamics`."""

    models: ModelArrays
    sequence: Ints
    block_scratch: Floats
    actuator_holds: Floats
    hold_count: Ints
    setpoints: Floats
    speed_averages: Ints
    average_windows: Floats
    feedback: Floats


class TickState(NamedTuple):
    """All arrays that a tick works on."""

    bodies: BodyArrays
    fleet: FleetArrays
    integrator: int
    contacts: ContactMemory
    weather: weather.WeatherArrays
    environment: Environment
    lines: lines.LineArrays
    scratch: TickScratch
    medium_table: Ints
    scene: medium.AcousticScene
    #: tables of the hydrophones' medium and of their additional arrays; empty if there are no hydrophones
    listening_table: Ints
    front_table: Ints


#: rows of a block, each with the column of the `state` table in which it is published
_PUBLISHED_ROWS = B.TABLE.published_rows(tables.STATE)
_VELOCITY_THROUGH_WATER = tables.STATE.first_columns["v_FB_B"]
_COMMAND, _ACTUAL, _FEEDBACK = (tables.ACTUATION.first_columns[name] for name in ("command", "actual", "feedback"))

unpack_tick_state = array_tables.make_unpacker(TickState)


@device_function
def update_transducers(f: BodyArrays, scratch: TickScratch, medium_table: Ints, tick: int) -> None:
    """Update all transducers at the end of a tick: their positions and velocities in W, and their attitudes. Update the
    noise sources of the bodies as well.
    """
    m = medium_arrays.unpack_medium(medium_table)
    for k in range(scratch.counters[0]):
        row = scratch.order[k]
        if m.noise_sources.shape[0] > 0 and m.noise_sources[row].active != 0:
            _update_noise_source(f, m, row, tick)
        if m.nodes[row].active == 0:
            continue
        b, l = f.blocks[f.slots[row] // LANES], f.slots[row] % LANES
        place = m.places[tick & 1, row]
        place.qw, place.qx = b[B.QW * LANES + l], b[B.QX * LANES + l]
        place.qy, place.qz = b[B.QY * LANES + l], b[B.QZ * LANES + l]
        place.x, place.y, place.z, place.vx, place.vy, place.vz = _point_motion(
            f,
            row,
            scratch.transducer_levers[row, 0],
            scratch.transducer_levers[row, 1],
            scratch.transducer_levers[row, 2],
        )


@device_function
def _update_noise_source(f: BodyArrays, m: medium_arrays.Medium, row: int, tick: int) -> None:
    """Update the position, velocity and blade rate of a noise source at the end of a tick."""
    b, l = f.blocks[f.slots[row] // LANES], f.slots[row] % LANES
    source, place = m.noise_sources[row], m.noise_places[tick & 1, row]
    place.x, place.y, place.z, place.vx, place.vy, place.vz = _point_motion(f, row, source.x, source.y, source.z)
    if source.shaft >= 0:
        source.rate = source.blades * abs(b[(B.ACTUATOR_STATE + source.shaft) * LANES + l])


@always_inline
def _point_motion(
    f: BodyArrays, row: int, tx: float, ty: float, tz: float
) -> tuple[float, float, float, float, float, float]:
    """Return the position and velocity in W of a point at (tx, ty, tz) on a body, in B."""
    b, l = f.blocks[f.slots[row] // LANES], f.slots[row] % LANES
    xx, xy, xz, yx, yy, yz, zx, zy, zz = rotation.matrix(
        b[B.QW * LANES + l], b[B.QX * LANES + l], b[B.QY * LANES + l], b[B.QZ * LANES + l]
    )
    p, q, o = b[(B.NU + 3) * LANES + l], b[(B.NU + 4) * LANES + l], b[(B.NU + 5) * LANES + l]
    u = b[B.NU * LANES + l] + q * tz - o * ty
    v = b[(B.NU + 1) * LANES + l] + o * tx - p * tz
    w = b[(B.NU + 2) * LANES + l] + p * ty - q * tx
    return (
        b[B.PX * LANES + l] + xx * tx + xy * ty + xz * tz,
        b[B.PY * LANES + l] + yx * tx + yy * ty + yz * tz,
        b[B.PZ * LANES + l] + zx * tx + zy * ty + zz * tz,
        xx * u + xy * v + xz * w,
        yx * u + yy * v + yz * w,
        zx * u + zy * v + zz * w,
    )


@device_function
def update_hydrophones(f: BodyArrays, listening_table: Ints, front_table: Ints, tick: int) -> None:
    """Update all hydrophones and their elements at the end of a tick: their positions and velocities in W."""
    m, fronts_ = medium_arrays.unpack_medium(listening_table), front_arrays.unpack_fronts(front_table)
    first_row = fronts_.counters[0].rows
    for k in range(fronts_.hydrophones.shape[0]):
        if m.nodes[first_row + k].active == 0:
            continue
        hydrophone, place = fronts_.hydrophones[k], m.places[tick & 1, first_row + k]
        row = hydrophone.body
        place.x, place.y, place.z, place.vx, place.vy, place.vz = _point_motion(
            f, row, hydrophone.x, hydrophone.y, hydrophone.z
        )
        first = k * (fronts_.elements.shape[0] // fronts_.hydrophones.shape[0])
        for i in range(first, first + hydrophone.elements):
            lever, end = fronts_.elements[i], fronts_.element_places[tick & 1, i]
            end.x, end.y, end.z, end.vx, end.vy, end.vz = _point_motion(f, row, lever.x, lever.y, lever.z)


@always_inline
def advance_motion(state: TickState, step_ns: int, tick: int) -> None:
    """Advance the motion of all bodies from ``tick`` to the next tick, and update their transducers."""
    f, fleet_arrays, integrator, contacts, weather_arrays, environment, line_arrays, scratch, medium_table, _, _, _ = (
        state
    )
    sea_bed = environment.sea_bed
    h, start, n = step_ns * 1e-9, tick * step_ns * 1e-9, scratch.counters[0]
    weather.advance_weather(weather_arrays, tick, start, h)
    weather.apply_to_bodies(weather_arrays, environment.flow, f, scratch.order, n, tick, start, h)
    if fleet_arrays.hold_count[0]:
        fleet.release_holds(
            f.blocks, f.slots, fleet_arrays.actuator_holds, fleet_arrays.setpoints, fleet_arrays.hold_count, start
        )
    has_lines = line_arrays.groups.shape[0] > 0
    if has_lines:
        weather.apply_to_nodes(weather_arrays, environment.flow, line_arrays.nodes, start)
        lines.update_bed_depths(line_arrays, sea_bed.parameters, sea_bed.mesh)
        lines.store_before(f, line_arrays)
    if contacts.sleep.asleep_count[0]:
        sleep.wake_changed(f, contacts.sleep, contacts.events, scratch.order, n, tick)
    integrators.step_all(f, fleet_arrays.models, fleet_arrays.sequence, fleet_arrays.block_scratch, h, integrator)
    if has_lines:
        lines.advance(f, line_arrays, h, tick + 1)
    contacts.sleep.asleep_count[0] = (
        sleep.restore_sleepers(f, contacts.sleep, scratch.order, n) if contacts.sleep.asleep_count[0] else 0
    )
    new, fastest = bodies.hold_diverged(f, scratch.order, n, scratch.last_finite, scratch.faults)
    scratch.counters[2] += new
    scratch.counters[1] += contact.resolve_contacts(f, scratch, contacts, fastest, h, sea_bed, tick + 1)
    if fleet_arrays.speed_averages.shape[0]:
        fleet.average_shaft_speeds(
            f.blocks, f.slots, fleet_arrays.speed_averages, fleet_arrays.average_windows, fleet_arrays.feedback
        )
    update_transducers(f, scratch, medium_table, tick + 1)


@kernel(nogil=True)
def advance_acoustics(table: Packed, tick: int, start: float, end: float) -> int:
    """Advance the sound of a tick from ``start`` to ``end`` in s with :func:`wavesim_server.acoustics.medium.advance`."""
    state = unpack_tick_state(table)
    return medium.advance(state.medium_table, state.scene, tick, start, end, state.bodies.slots.shape[0])


@kernel(nogil=True)
def advance_hydrophones(table: Packed, tick: int, start: float, end: float) -> int:
    """Advance the fronts of a tick from ``start`` to ``end`` in s, after :func:`advance_acoustics` has completed the
    tick; see :func:`wavesim_server.acoustics.fronts.advance`.
    """
    state = unpack_tick_state(table)
    update_hydrophones(state.bodies, state.listening_table, state.front_table, tick)
    interval = TickInterval(tick, start, end)
    return fronts.advance(state.medium_table, state.listening_table, state.front_table, state.scene, interval)


@kernel(nogil=True)
def run_ticks(
    table: Packed,
    acoustics_address: int,
    hydrophones_address: int,
    step_ns: int,
    tick: int,
    last_tick: int,
    is_half_done: bool,
) -> tuple[int, int, bool]:
    """Run ticks from ``tick`` to ``last_tick`` with the table of a :class:`TickState`. The addresses are those of
    :func:`advance_acoustics` and of :func:`advance_hydrophones`; 0 = there are no hydrophones.

    Returns the tick reached, the code of the acoustics kernel, and whether a tick is half done. A tick is half done if
    its sound needs more room; in that case, the caller enlarges the arrays and calls the function again.
    """
    state = unpack_tick_state(table)
    while tick < last_tick or is_half_done:
        if not is_half_done:
            advance_motion(state, step_ns, tick)
            tick += 1
        start, end = (tick - 1) * step_ns * 1e-9, tick * step_ns * 1e-9
        code = indirect_calls.call_kernel(acoustics_address, table, tick, start, end)
        if hydrophones_address != 0 and code == medium_arrays.OK:
            code = indirect_calls.call_kernel(hydrophones_address, table, tick, start, end)
        is_half_done = code != medium_arrays.OK
        if is_half_done:
            return tick, code, True
    return tick, medium_arrays.OK, False


@always_inline
def publish_state(f: BodyArrays, row: int, state: Floats) -> None:
    """Fill a row of the `state` table, given as a flat view of shape (capacity, values per row)."""
    b, l = f.blocks[f.slots[row] // LANES], f.slots[row] % LANES
    for i in range(_PUBLISHED_ROWS.shape[0]):
        state[row, _PUBLISHED_ROWS[i, 1]] = b[_PUBLISHED_ROWS[i, 0] * LANES + l]
    xx, xy, xz, yx, yy, yz, zx, zy, zz = rotation.matrix(
        b[B.QW * LANES + l], b[B.QX * LANES + l], b[B.QY * LANES + l], b[B.QZ * LANES + l]
    )
    cx, cy, cz = b[B.V_WF_W * LANES + l], b[(B.V_WF_W + 1) * LANES + l], b[(B.V_WF_W + 2) * LANES + l]
    state[row, _VELOCITY_THROUGH_WATER] = b[B.NU * LANES + l] - (xx * cx + yx * cy + zx * cz)
    state[row, _VELOCITY_THROUGH_WATER + 1] = b[(B.NU + 1) * LANES + l] - (xy * cx + yy * cy + zy * cz)
    state[row, _VELOCITY_THROUGH_WATER + 2] = b[(B.NU + 2) * LANES + l] - (xz * cx + yz * cy + zz * cz)


@always_inline
def publish_actuation(f: BodyArrays, row: int, feedback: Floats, places: Ints, counts: Ints, actuation: Floats) -> None:
    """Fill a row of the `actuation` table, given as a flat view of shape (capacity, values per row).

    Actuators are in the order of the model: the k-th actuator in a row has the slot ``places[row, k]``, for k <
    ``counts[row]``.
    """
    b, l = f.blocks[f.slots[row] // LANES], f.slots[row] % LANES
    for i in range(counts[row]):
        slot = places[row, i]
        actuation[row, _COMMAND + i] = b[(B.ACTUATOR_COMMAND + slot) * LANES + l]
        actuation[row, _ACTUAL + i] = b[(B.ACTUATOR_STATE + slot) * LANES + l]
        actuation[row, _FEEDBACK + i] = feedback[row, slot]
    for i in range(counts[row], SLOTS):  # of a body that was in the row before
        actuation[row, _COMMAND + i] = actuation[row, _ACTUAL + i] = actuation[row, _FEEDBACK + i] = 0.0
