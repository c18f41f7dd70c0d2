"""One compiled step of all teams: packets, autopilots and navigation filters, motion, sound, observations, rewards.

Motion and sound are computed by the engine's own kernels. A group consists of as many teams as a block has lanes: block
k of a group contains member k of each of its teams, so the autopilots and filters of a group run on all lanes together.
Events that differ between the teams, such as a reception, run team by team. Random numbers are hashes of the team's own
key, so they do not depend on other teams.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_kernels.compiled_elementary import normal, uniform
from wavesim_kernels.compiler import device_function, kernel
from wavesim_kernels.randomness import random_bits
from wavesim_sdk.arrays import Floats, Mask
from wavesim_sdk.tables import Outcome
from wavesim_server import array_tables, indirect_calls
from wavesim_server.acoustics import medium, medium_arrays
from wavesim_server.acoustics.types import Record, Records
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import integrators
from wavesim_server.dynamics.lanes import load, sqrt, store
from wavesim_server.dynamics.types import Packed
from wavesim_server.elementary import atan2, hypot, sin_cos
from wavesim_server.tick import TickState, unpack_tick_state, update_transducers
from wavesim_studies.learning.kernels import NEXT_STEP, SAME_STEP, FleetView, Singles
from wavesim_studies.learning.team_pilot import draw_noise, steer, update_estimate
from wavesim_studies.learning.team_tables import (
    BOUND,
    BYTES,
    CONTROL_S,
    COSINE,
    COURSE,
    COURSE_VALUE,
    DEPTH,
    EFFORT,
    ENDED,
    EPISODE,
    ERROR,
    ESTIMATE,
    FARTHEST_CODE,
    FREE,
    FREE_VALUE,
    HAS_GPS,
    HEADING_ERROR,
    INNOVATION,
    INTERVALS,
    IS_LOST,
    LEVEL_VALUE,
    MEMBER,
    OWN,
    PER_MEMBER,
    PLACE,
    PLACE_SIGMA,
    RATE_EAST,
    RATE_NORTH,
    RING,
    SCALE_ERROR,
    SEND_VALUE,
    SENDING_UNTIL,
    SENT,
    SIGMA,
    SINE,
    SPEED,
    SPEED_VALUE,
    START_VALUE,
    STEP,
    STEP_S,
    V00,
    V01,
    V11,
    V22,
    V33,
    VARIANCE,
    VELOCITY,
    L,
    TeamArrays,
    TeamOutput,
    TeamRules,
    TeamState,
)

_HEARD = int(Outcome.HEARD)
_TURN = 2.0 * math.pi

unpack_team_state = array_tables.make_unpacker(TeamState)


# ------------------------------------------------------------------ start of an episode


@device_function
def _reset(f: FleetView, a: TeamArrays, rules: TeamRules, team: int, state: TickState) -> None:
    """Start a new episode of one team: place its members at equal angles around the centre, and remove all signals from
    its acoustic medium.
    """
    g, l, key, n = a.groups[team // L], team % L, a.keys[team], rules.members
    first = team // L * n
    g[EPISODE * L + l] += 1.0
    g[STEP * L + l] = g[ENDED * L + l] = 0.0
    e = int(g[EPISODE * L + l]) << 20  # offset of the random numbers of this episode
    for i in range(a.start.shape[0]):  # word by word: the assignment of an array would allocate memory
        a.memory[team, i] = a.start[i]
    m = medium_arrays.unpack_medium(state.medium_table)
    turn = _TURN * uniform(key, e, 0)
    north, east = rules.current * normal(key, e, 40), rules.current * normal(key, e, 41)
    for k in range(n):
        b, c, draw = f.blocks[first + k], a.members[first + k], 1 + 3 * k
        for row in range(B.STATE_ROWS):
            b[row * L + l] = 0.0
        for row in range(B.ACTUATOR_STATE, B.ACTUATOR_EFFECT):
            b[row * L + l] = 0.0
        sine, cosine = sin_cos(turn + _TURN * k / n)
        far = 100.0 + 50.0 * uniform(key, e, draw)
        b[B.PX * L + l], b[B.PY * L + l] = far * cosine, far * sine
        b[B.PZ * L + l] = 15.0 + 25.0 * uniform(key, e, draw + 1)
        half, whole = sin_cos(math.pi * (uniform(key, e, draw + 2) - 0.5))
        b[B.QW * L + l], b[B.QZ * L + l] = whole, half
        b[B.NU * L + l] = 1.0
        b[B.V_WF_W * L + l], b[(B.V_WF_W + 1) * L + l], b[(B.V_WF_W + 2) * L + l] = north, east, 0.0
        for row in range(MEMBER):
            c[row * L + l] = 0.0
        c[ESTIMATE * L + l], c[(ESTIMATE + 1) * L + l] = b[B.PX * L + l], b[B.PY * L + l]
        c[V00 * L + l] = c[V11 * L + l] = 1.0
        c[V22 * L + l] = c[V33 * L + l] = rules.current * rules.current
        c[HEADING_ERROR * L + l] = rules.heading_error * normal(key, e, 42 + 4 * k)
        c[SCALE_ERROR * L + l] = rules.scale_error * normal(key, e, 43 + 4 * k)
        c[DEPTH * L + l] = b[B.PZ * L + l]
        node = m.nodes[k]
        node.key = random_bits(key, np.uint64(e), np.uint64(1000 + k))
        node.clock_offset = rules.clock_offset * normal(key, e, 44 + 4 * k)
        node.clock_drift = rules.clock_drift * normal(key, e, 45 + 4 * k)
    update_transducers(state.bodies, state.scratch, state.medium_table, 0)


# ------------------------------------------------------------------ packets, team by team


@device_function
def _value(actions: Singles, i: int, k: int) -> float:
    """Return one value of an action, limited to the range from -1 to 1; 0 for NaN."""
    x = float(actions[i, k])
    return min(max(x, -1.0), 1.0) if x == x else 0.0


@device_function
def _begin_step(
    a: TeamArrays, rules: TeamRules, out: TeamOutput, team: int, actions: Singles, state: TickState, emission: Records
) -> bool:
    """Read the actions of a team and schedule its packets. Return whether the medium had room for them."""
    l, n, room = team % L, rules.members, True
    m = medium_arrays.unpack_medium(state.medium_table)
    m.counters[0].receptions = m.counters[0].sent = 0
    now = a.groups[team // L, STEP * L + l] * STEP_S
    for k in range(n):
        i, c = team * n + k, a.members[team // L * n + k]
        c[COURSE * L + l] = math.pi * _value(actions, i, COURSE_VALUE)
        c[SPEED * L + l] = 0.5 * rules.fastest * (1.0 + _value(actions, i, SPEED_VALUE))
        c[EFFORT * L + l] = c[SENT * L + l] = 0.0
        for j in range(out.observation.shape[1]):
            out.observation[i, j] = 0.0
        out.heard[i] = out.lost[i] = 0
        if _value(actions, i, SEND_VALUE) > 0.0 and c[IS_LOST * L + l] == 0.0:
            c[SENT * L + l] = 1.0
            room &= _send(a, rules, team, k, actions, state, emission, now)
    return room


@device_function
def _send(
    a: TeamArrays,
    rules: TeamRules,
    team: int,
    k: int,
    actions: Singles,
    state: TickState,
    emission: Records,
    now: float,
) -> bool:
    """Schedule a packet that contains the sender's estimated position at the time of emission. Return whether the
    medium had room for it.
    """
    l, i, c = team % L, team * rules.members + k, a.members[team // L * rules.members + k]
    after = max(_value(actions, i, START_VALUE), 0.0) * (STEP_S - rules.packet)
    packet = a.packets[i * RING + int(a.groups[team // L, STEP * L + l]) % RING]
    north = round(10.0 * (c[ESTIMATE * L + l] + c[VELOCITY * L + l] * after))
    east = round(10.0 * (c[(ESTIMATE + 1) * L + l] + c[(VELOCITY + 1) * L + l] * after))
    if not max(abs(north), abs(east)) <= FARTHEST_CODE:
        return True  # too far away to encode its position
    packet[PLACE], packet[PLACE + 1] = 0.1 * north, 0.1 * east
    packet[PLACE + 2] = 0.1 * round(10.0 * c[DEPTH * L + l])
    sigma = math.sqrt(0.5 * (c[V00 * L + l] + c[V11 * L + l]))
    packet[PLACE_SIGMA] = 0.1 * min(round(10.0 * sigma), FARTHEST_CODE)
    packet[HAS_GPS] = 1.0 if k < rules.known else 0.0
    for j in range(BYTES):
        byte = round(127.5 * (1.0 + _value(actions, i, FREE_VALUE + j)))
        packet[FREE + j] = 2.0 * byte / 255.0 - 1.0
    share = 0.5 * (1.0 + _value(actions, i, LEVEL_VALUE))
    emission[0].source_level = rules.lowest_level + share * (rules.highest_level - rules.lowest_level)
    c[SENDING_UNTIL * L + l] = now + after + rules.packet
    return bool(medium.request_emission(state.medium_table, k, now + after, emission))


@device_function
def _receive(a: TeamArrays, rules: TeamRules, out: TeamOutput, team: int, state: TickState) -> None:
    """Pass the packets that a team's members have received in this step to their filters and observations."""
    m = medium_arrays.unpack_medium(state.medium_table)
    now = a.groups[team // L, STEP * L + team % L] * STEP_S
    for row in range(m.counters[0].receptions):
        r = m.receptions[row]
        i = team * rules.members + int(r.receiver)
        if a.members[i // rules.members // L * rules.members + int(r.receiver), IS_LOST * L + team % L] != 0.0:
            continue
        if r.outcome == _HEARD:
            out.heard[i] += 1
            _use_packet(a, rules, out.observation[i], team, r, now)
        else:
            out.lost[i] += 1


@device_function
def _use_packet(a: TeamArrays, rules: TeamRules, observation: Singles, team: int, r: Record, now: float) -> None:
    """Update the filter of a receiver with the range to the sender, and write the packet to the observation."""
    l, n, w, j, source = team % L, rules.members, a.work, int(r.receiver), int(r.source)
    c = a.members[team // L * n + j]
    # a packet leaves at or after the beginning of its step
    packet = a.packets[(team * n + source) * RING + int((r.emission_ns + 1000) * 1e-9 / STEP_S) % RING]
    age, far = now - r.arrival_ns * 1e-9, float(r.one_way)
    drop = packet[PLACE + 2] - c[DEPTH * L + l]
    flat = math.sqrt(max(far * far - drop * drop, 1.0))
    # a sender without GPS may have derived its position from the receiver or from a third member
    if packet[HAS_GPS] > 0.0 and j >= rules.known:
        dn = c[ESTIMATE * L + l] - c[VELOCITY * L + l] * age - packet[PLACE]
        de = c[(ESTIMATE + 1) * L + l] - c[(VELOCITY + 1) * L + l] * age - packet[PLACE + 1]
        distance = max(math.sqrt(dn * dn + de * de), 1.0)
        hn, he, innovation = dn / distance, de / distance, flat - distance
        v00, v01, v11 = c[V00 * L + l], c[V01 * L + l], c[V11 * L + l]
        # second-order term: the circle is curved
        spread = (v00 + v11) * (v00 + v11) / (8.0 * distance * distance)
        sigma = packet[PLACE_SIGMA]
        variance = rules.range_error * rules.range_error + sigma * sigma + spread
        expected = hn * (v00 * hn + v01 * he) + he * (v01 * hn + v11 * he)
        if innovation * innovation < 16.0 * (variance + expected):
            for lane in range(L):
                w[RATE_NORTH * L + lane] = w[RATE_EAST * L + lane] = w[INNOVATION * L + lane] = 0.0
                w[VARIANCE * L + lane] = -1.0
            w[RATE_NORTH * L + l], w[RATE_EAST * L + l] = hn, he
            w[INNOVATION * L + l], w[VARIANCE * L + l] = innovation, variance
            update_estimate(c, load(w, RATE_NORTH), load(w, RATE_EAST), load(w, INNOVATION), load(w, VARIANCE))
    first = OWN + PER_MEMBER * (source if source < j else source - 1)
    _show(observation, first, 1.0)
    _show(observation, first + 1, age / STEP_S)
    _show(observation, first + 2, far / 1000.0)
    _show(observation, first + 3, packet[PLACE] / 1000.0)
    _show(observation, first + 4, packet[PLACE + 1] / 1000.0)
    _show(observation, first + 5, packet[PLACE_SIGMA] / 100.0)
    for k in range(BYTES):
        _show(observation, first + 6 + k, packet[FREE + k])


@device_function
def _show(observation: Singles, k: int, value: float) -> None:
    observation[k] = min(max(value, -BOUND), BOUND)


# ------------------------------------------------------------------ observation, reward and end


@device_function
def _look(b: Floats, c: Floats, w: Floats) -> None:
    """Compute the temporary values from which the observations and rewards of a block are computed."""
    x, y, z, e = load(b, B.QX), load(b, B.QY), load(b, B.QZ), load(b, B.QW)
    heading = atan2(2.0 * (e * z + x * y), 1.0 - 2.0 * (y * y + z * z)) + load(c, HEADING_ERROR)
    sine, cosine = sin_cos(heading)
    store(w, SINE, sine)
    store(w, COSINE, cosine)
    store(w, SIGMA, sqrt(0.5 * (load(c, V00) + load(c, V11))))
    store(w, ERROR, hypot(load(c, ESTIMATE) - load(b, B.PX), load(c, ESTIMATE + 1) - load(b, B.PY)))


@device_function
def _observe_member(a: TeamArrays, rules: TeamRules, out: TeamOutput, team: int, k: int) -> None:
    """Write the values that describe a member itself. Call :func:`_look` first."""
    l, i, c, w = team % L, team * rules.members + k, a.members[team // L * rules.members + k], a.work
    o, steps = out.observation[i], a.groups[team // L, STEP * L + l]
    _show(o, 0, c[ESTIMATE * L + l] / 1000.0)
    _show(o, 1, c[(ESTIMATE + 1) * L + l] / 1000.0)
    _show(o, 2, w[SIGMA * L + l] / 100.0)
    _show(o, 3, w[SINE * L + l])
    _show(o, 4, w[COSINE * L + l])
    _show(o, 5, c[VELOCITY * L + l])
    _show(o, 6, c[(VELOCITY + 1) * L + l])
    _show(o, 7, c[DEPTH * L + l] / 100.0)
    _show(o, 8, steps / rules.steps)
    _show(o, 9, max(c[SENDING_UNTIL * L + l] - steps * STEP_S, 0.0) / STEP_S)
    _show(o, 10, 1.0 if k < rules.known else 0.0)


@device_function
def _judge_member(
    f: FleetView, a: TeamArrays, rules: TeamRules, out: TeamOutput, team: int, k: int, state: TickState
) -> None:
    """Compute reward and termination of a member. A member that is too far away is removed."""
    l, i, row = team % L, team * rules.members + k, team // L * rules.members + k
    b, c, w = f.blocks[row], a.members[row], a.work
    if c[IS_LOST * L + l] != 0.0:
        for j in range(out.observation.shape[1]):
            out.observation[i, j] = 0.0
        out.parts[i, 0] = out.parts[i, 1] = out.parts[i, 2] = out.reward[i] = out.error[i] = out.sigma[i] = 0.0
        out.terminated[i] = out.truncated[i] = out.present[i] = False
        return
    _observe_member(a, rules, out, team, k)
    error = w[ERROR * L + l]
    out.parts[i, 0] = -min(0.01 * error * error, 10.0)
    out.parts[i, 1] = -0.1 * c[EFFORT * L + l]
    out.parts[i, 2] = -0.05 * c[SENT * L + l]
    out.reward[i] = out.parts[i, 0] + out.parts[i, 1] + out.parts[i, 2]
    out.error[i], out.sigma[i] = error, w[SIGMA * L + l]
    x, y, z = b[B.PX * L + l], b[B.PY * L + l], b[B.PZ * L + l]
    gone = not x * x + y * y + z * z < rules.far * rules.far
    out.terminated[i], out.present[i] = gone, True
    out.truncated[i] = not gone and a.groups[team // L, STEP * L + l] >= rules.steps
    if gone:
        c[IS_LOST * L + l] = 1.0
        m = medium_arrays.unpack_medium(state.medium_table)
        m.nodes[k].active = 0
        m.counters[0].nodes -= 1


@device_function
def _start_again(f: FleetView, a: TeamArrays, rules: TeamRules, out: TeamOutput, group: int, tables: Any) -> None:
    """Start new episodes of the chosen teams (lanes) of a group, and write their first observations."""
    n, first, chosen = rules.members, group * L, a.chosen
    for l in range(L):
        if chosen[l]:
            _reset(f, a, rules, first + l, unpack_tick_state(tables[first + l]))
    for k in range(n):
        _look(f.blocks[group * n + k], a.members[group * n + k], a.work)
        for l in range(L):
            if chosen[l]:
                i = (first + l) * n + k
                for j in range(out.observation.shape[1]):
                    out.observation[i, j] = 0.0
                _observe_member(a, rules, out, first + l, k)


@device_function
def _end_step(
    f: FleetView, a: TeamArrays, rules: TeamRules, out: TeamOutput, group: int, size: int, tables: Any
) -> None:
    """Compute the outputs of a group, and start new episodes as the reset mode requires."""
    n, first, g, chosen = rules.members, group * L, a.groups[group], a.chosen
    for l in range(size):
        out.ended[first + l] = False
    for k in range(n):
        _look(f.blocks[group * n + k], a.members[group * n + k], a.work)
        for l in range(size):
            _judge_member(f, a, rules, out, first + l, k, unpack_tick_state(tables[first + l]))
    some = False
    for l in range(L):
        chosen[l] = False
    for l in range(size):
        team = first + l
        left = False
        for k in range(n):
            left |= out.present[team * n + k] and not (out.terminated[team * n + k] or out.truncated[team * n + k])
        if g[ENDED * L + l] != 0.0:
            chosen[l] = rules.mode == NEXT_STEP  # the episode ended in the step before
            if chosen[l]:
                for k in range(n):
                    out.reward[team * n + k] = 0.0
        elif not left:
            out.ended[team] = True
            for k in range(n):
                for j in range(out.last.shape[1]):
                    out.last[team * n + k, j] = out.observation[team * n + k, j]
                a.members[group * n + k, IS_LOST * L + l] = 1.0
            g[ENDED * L + l] = 1.0
            chosen[l] = rules.mode == SAME_STEP
        some |= chosen[l]
    if some:
        _start_again(f, a, rules, out, group, tables)


@kernel(nogil=True)
def step(
    table: Packed, tables: Any, address: int, emission: Records, actions: Singles, first_group: int, end_group: int
) -> int:
    """Advance the teams in the groups from ``first_group`` to ``end_group`` - 1 by one step, with ``actions`` (teams *
    members, ACTIONS) from -1 to 1.

    ``table`` is a packed :class:`TeamState`. ``tables`` (teams, 1), ``address`` and ``emission`` come from
    :class:`wavesim_studies.learning.team_sound.TeamSound`. Returns the number of failures, which is zero unless a
    medium has too little room.
    """
    f, a, pilot, rules, out = unpack_team_state(table)
    n, failures, kind = rules.members, 0, f.heads[0, B.HEAD_MODEL]
    teams = actions.shape[0] // n
    ticks, h = INTERVALS * rules.substeps, CONTROL_S / rules.substeps
    for group in range(first_group, end_group):
        size, g = min(teams - group * L, L), a.groups[group]
        for l in range(size):
            state = unpack_tick_state(tables[group * L + l])
            failures += not _begin_step(a, rules, out, group * L + l, actions, state, emission)
        for interval in range(INTERVALS):
            for k in range(n):
                draw_noise(a, group, k, interval)
                steer(f.blocks[group * n + k], a.members[group * n + k], a.work, k < rules.known, pilot, rules)
            for substep in range(rules.substeps):
                for k in range(n):
                    integrators.step_block(
                        f.blocks[group * n + k],
                        f.params[kind],
                        f.work,
                        f.kinds[kind],
                        f.tables,
                        h,
                        integrators.RK4,
                        False,
                    )
                for l in range(size):
                    number = int(g[STEP * L + l]) * ticks + interval * rules.substeps + substep + 1
                    state = unpack_tick_state(tables[group * L + l])
                    update_transducers(state.bodies, state.scratch, state.medium_table, number)
                    code = indirect_calls.call_kernel(
                        address, tables[group * L + l], number, (number - 1) * h, number * h
                    )
                    failures += code != medium_arrays.OK
        for l in range(size):
            g[STEP * L + l] += 1.0
            _receive(a, rules, out, group * L + l, unpack_tick_state(tables[group * L + l]))
        _end_step(f, a, rules, out, group, size, tables)
    return failures


@kernel
def reset_selected(table: Packed, tables: Any, selected: Mask) -> None:
    """Start new episodes of the selected teams."""
    f, a, _, rules, out = unpack_team_state(table)
    teams, chosen = selected.shape[0], a.chosen
    for group in range((teams + L - 1) // L):
        some = False
        for l in range(L):
            team = group * L + l
            chosen[l] = team < teams and selected[team]
            some |= chosen[l]
        if some:
            _start_again(f, a, rules, out, group, tables)
