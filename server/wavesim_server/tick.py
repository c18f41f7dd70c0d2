"""The tick, compiled: environment, dynamics, contacts and sound of all bodies in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

from wavesim_kernels.compiler import always_inline, device_function, kernel
from wavesim_server import array_tables, indirect_calls
from wavesim_server.acoustics import medium, medium_arrays
from wavesim_server.dynamics import bodies, contact, fleet, integrators, lines, rotation, sleep
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.bodies import BodyArrays
from wavesim_server.dynamics.contact_memory import ContactMemory
from wavesim_server.dynamics.types import Floats, Ints
from wavesim_server.environment import weather
from wavesim_server.environment.flow import FlowField
from wavesim_server.seabed import BedParameters, SoundingsMesh


class Environment(NamedTuple):
    """Arrays of the environment for the tick."""

    bed: BedParameters
    soundings_mesh: SoundingsMesh
    flow: FlowField
    cursor: Ints


class FleetArrays(NamedTuple):
    """Arrays of the fleet for the tick; see :class:`~wavesim_server.dynamics.fleet.FleetDynamics`."""

    sequence: Ints
    model_ints: Ints
    tables: Floats
    block_scratch: Floats
    actuator_holds: Floats
    hold_count: Ints
    setpoints: Floats
    speed_averages: Ints
    average_windows: Floats
    feedback: Floats


class TickScratch(NamedTuple):
    """Scratch of the tick: occupied rows, transducers on the bodies, last finite states."""

    order: Ints
    transducer_levers: Floats
    last_finite: Floats
    faults: Ints
    counters: Ints  # number of bodies, contacts, new faults


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


unpack_tick_state = array_tables.make_unpacker(TickState)


@device_function
def update_transducers(f: BodyArrays, scratch: TickScratch, medium_table: Any, tick: int) -> None:
    """Update all transducers at the end of a tick: position and velocity in W, attitude."""
    m = medium_arrays.unpack_medium(medium_table)
    for k in range(scratch.counters[0]):
        row = scratch.order[k]
        if m.nodes[row].active == 0:
            continue
        b, l = f.blocks[f.slots[row] // r.LANES], f.slots[row] % r.LANES
        place = m.places[tick & 1, row]
        place.qw, place.qx = b[r.QW * r.LANES + l], b[r.QX * r.LANES + l]
        place.qy, place.qz = b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
        xx, xy, xz, yx, yy, yz, zx, zy, zz = rotation.matrix(place.qw, place.qx, place.qy, place.qz)
        tx, ty, tz = (
            scratch.transducer_levers[row, 0],
            scratch.transducer_levers[row, 1],
            scratch.transducer_levers[row, 2],
        )
        p, q, o = b[(r.NU + 3) * r.LANES + l], b[(r.NU + 4) * r.LANES + l], b[(r.NU + 5) * r.LANES + l]
        u = b[r.NU * r.LANES + l] + q * tz - o * ty
        v = b[(r.NU + 1) * r.LANES + l] + o * tx - p * tz
        w = b[(r.NU + 2) * r.LANES + l] + p * ty - q * tx
        place.x = b[r.PX * r.LANES + l] + xx * tx + xy * ty + xz * tz
        place.y = b[r.PY * r.LANES + l] + yx * tx + yy * ty + yz * tz
        place.z = b[r.PZ * r.LANES + l] + zx * tx + zy * ty + zz * tz
        place.vx, place.vy, place.vz = xx * u + xy * v + xz * w, yx * u + yy * v + yz * w, zx * u + zy * v + zz * w


@always_inline
def advance_motion(
    f: BodyArrays,
    fleet_arrays: FleetArrays,
    integrator: int,
    contacts: ContactMemory,
    weather_arrays: weather.WeatherArrays,
    environment: Environment,
    line_arrays: lines.LineArrays,
    scratch: TickScratch,
    medium_table: Any,
    step_ns: int,
    tick: int,
) -> None:
    """Advance the motion of all bodies from ``tick`` to the next, and update their transducers."""
    h, start, n = step_ns * 1e-9, tick * step_ns * 1e-9, scratch.counters[0]
    weather.advance_weather(weather_arrays, tick, start, h)
    weather.apply_to_bodies(weather_arrays, environment.flow, f.blocks, f.slots, scratch.order, n, tick, start, h)
    if fleet_arrays.hold_count[0]:
        fleet.release_holds(
            f.blocks, f.slots, fleet_arrays.actuator_holds, fleet_arrays.setpoints, fleet_arrays.hold_count, start
        )
    has_lines = line_arrays.groups.shape[0] > 0
    if has_lines:
        weather.apply_to_nodes(weather_arrays, environment.flow, line_arrays.nodes, start)
        lines.update_bed_depths(line_arrays, environment.bed, environment.soundings_mesh)
        lines.store_before(f, line_arrays)
    if contacts.sleep.asleep_count[0]:
        sleep.wake_changed(f, contacts.sleep, contacts.events, scratch.order, n, tick)
    integrators.step_all(
        f.blocks,
        f.block_heads,
        fleet_arrays.sequence,
        f.params,
        fleet_arrays.model_ints,
        fleet_arrays.tables,
        fleet_arrays.block_scratch,
        h,
        integrator,
    )
    if has_lines:
        lines.advance(f, line_arrays, h, tick + 1)
    contacts.sleep.asleep_count[0] = (
        sleep.restore_sleepers(f, contacts.sleep, scratch.order, n) if contacts.sleep.asleep_count[0] else 0
    )
    new, fastest = bodies.hold_diverged(f, scratch.order, n, scratch.last_finite, scratch.faults)
    scratch.counters[2] += new
    scratch.counters[1] += contact.resolve_contacts(
        f,
        scratch.order,
        n,
        contacts,
        scratch.last_finite,
        fastest,
        h,
        environment.bed,
        environment.soundings_mesh,
        environment.cursor,
        tick + 1,
    )
    if fleet_arrays.speed_averages.shape[0]:
        fleet.average_shaft_speeds(
            f.blocks, f.slots, fleet_arrays.speed_averages, fleet_arrays.average_windows, fleet_arrays.feedback
        )
    update_transducers(f, scratch, medium_table, tick + 1)


@kernel(nogil=True)
def advance_acoustics(table: Any, tick: int, start: float, end: float) -> int:
    """Advance the sound of a tick from ``start`` to ``end``, s: :func:`wavesim_server.acoustics.medium.advance`."""
    state = unpack_tick_state(table)
    return medium.advance(state.medium_table, state.scene, tick, start, end, state.bodies.slots.shape[0])


@kernel(nogil=True)
def run_ticks(
    table: Any, acoustics_address: int, step_ns: int, tick: int, last_tick: int, is_half_done: bool
) -> tuple[int, int, bool]:
    """Run ticks from ``tick`` to ``last_tick`` with the table of :class:`TickState`. ``acoustics_address`` is the
    address of :func:`advance_acoustics`.

    Returns (tick reached, code, whether a tick is half done). A tick is half done when its sound needs more room: the
    caller then enlarges the arrays and calls again.
    """
    f, fleet_arrays, integrator, contacts, weather_arrays, environment, line_arrays, scratch, medium_table, _ = (
        unpack_tick_state(table)
    )
    while tick < last_tick or is_half_done:
        if not is_half_done:
            advance_motion(
                f,
                fleet_arrays,
                integrator,
                contacts,
                weather_arrays,
                environment,
                line_arrays,
                scratch,
                medium_table,
                step_ns,
                tick,
            )
            tick += 1
        code = indirect_calls.call_kernel(
            acoustics_address, table, tick, (tick - 1) * step_ns * 1e-9, tick * step_ns * 1e-9
        )
        is_half_done = code != medium_arrays.OK
        if is_half_done:
            return tick, code, True
    return tick, medium_arrays.OK, False


@kernel
def publish(
    f: BodyArrays,
    order: Ints,
    count: int,
    feedback: Floats,
    places: Ints,
    counts: Ints,
    state: Floats,
    actuation: Floats,
) -> None:
    """Fill the flat views (capacity, 16) and (capacity, 3 SLOTS) of the state and actuation tables.

    Actuators are in the order of the model: the k-th of a row has the slot ``places[row, k]``, k < ``counts[row]``.
    """
    for k in range(count):
        row = order[k]
        b, l = f.blocks[f.slots[row] // r.LANES], f.slots[row] % r.LANES
        for i in range(13):
            state[row, i] = b[i * r.LANES + l]
        xx, xy, xz, yx, yy, yz, zx, zy, zz = rotation.matrix(
            b[r.QW * r.LANES + l], b[r.QX * r.LANES + l], b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
        )
        cx, cy, cz = b[r.V_WF_W * r.LANES + l], b[(r.V_WF_W + 1) * r.LANES + l], b[(r.V_WF_W + 2) * r.LANES + l]
        state[row, 13] = b[r.NU * r.LANES + l] - (xx * cx + yx * cy + zx * cz)
        state[row, 14] = b[(r.NU + 1) * r.LANES + l] - (xy * cx + yy * cy + zy * cz)
        state[row, 15] = b[(r.NU + 2) * r.LANES + l] - (xz * cx + yz * cy + zz * cz)
        for i in range(counts[row]):
            slot = places[row, i]
            actuation[row, i] = b[(r.ACTUATOR_COMMAND + slot) * r.LANES + l]
            actuation[row, r.SLOTS + i] = b[(r.ACTUATOR_STATE + slot) * r.LANES + l]
            actuation[row, 2 * r.SLOTS + i] = feedback[row, slot]
        for i in range(counts[row], r.SLOTS):  # of a body that was in the row before
            actuation[row, i] = actuation[row, r.SLOTS + i] = actuation[row, 2 * r.SLOTS + i] = 0.0
