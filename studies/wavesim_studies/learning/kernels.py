"""One compiled step of all copies: commands with delay, dynamics, reward, termination, reset, noise, observation.

The kernels use the dynamics of the engine, in blocks of bodies. They omit sound, contact and weather, which these tasks
do not use. The code of the tasks works on the same lanes, with a row of numbers for each quantity; see
:mod:`wavesim_server.dynamics.lanes`. Only a reset, once per episode, runs lane by lane. The random numbers of a copy
are hashes of its own key, so they do not depend on the other copies or on their number.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wavesim_kernels.compiled_elementary import normal, uniform
from wavesim_kernels.compiler import always_inline, device_function, kernel
from wavesim_sdk.arrays import Floats, Ints, Keys, Mask
from wavesim_server import array_tables
from wavesim_server.array_tables import prefetch
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import integrators, rotation
from wavesim_server.dynamics.lanes import load, maximum, minimum, select, sqrt, store
from wavesim_server.dynamics.sizes import LANES, SLOTS, THRUSTERS
from wavesim_server.dynamics.types import Lanes, Packed
from wavesim_server.elementary import atan2, exp, log, sin_cos

Singles = npt.NDArray[np.float32]
L = LANES
NEXT_STEP, SAME_STEP, DISABLED = range(3)
DEPTH = 20.0  #: depth in m at which all tasks are centred, far from the surface and the bed
DELAYS = 4  #: number of stored commands; the newest command is first
#: rows in a block of copies: steps, episodes, bias of position (3) and heading, delay, net weight (N), success sums
STEP, EPISODE, BIAS, TURN, DELAY, NET, SUM_D, SUM_H, JUDGED, PHASE, ENDED = 0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12
COPY = 13
BASE = 20  #: number of values in an observation, not counting the last command
BOUND = 10.0  #: limit of the magnitude of every value in an observation
FAR = 6.0  #: distance in m at which an episode ends
PARTS = 3  #: number of terms in a reward: for position, for being upright and still, and for low effort
NORMALS = 10  #: number of random values per observation: position (3), heading, velocity (3), rates (3)
#: rows of temporary values in a block: observation, its noise, actions, and inputs of reward and success
OBSERVATION = 0
DRAW = OBSERVATION + BASE + THRUSTERS
ACTION = DRAW + NORMALS
DISTANCE, TURNED, UPRIGHT, SPIN, AHEAD, PART, REWARD, OUT_OF_BOUNDS, TIME_IS_UP, IS_SUCCESS = (
    ACTION + THRUSTERS + k for k in (0, 1, 2, 3, 4, 5, 8, 9, 10, 11)
)
WORK = IS_SUCCESS + 1
_NEAREST = 6755399441055744.0  # 1.5 2^52: adding and subtracting it rounds to an integer
CACHE_LINE_NUMBERS = 8  #: number of float64 numbers in a cache line of 64 bytes
_HALF = 2.0**26  # splits the bits of a uniform number into halves


class FleetView(NamedTuple):
    """Views of the bodies; see :class:`wavesim_server.dynamics.fleet.FleetDynamics`."""

    blocks: Floats
    heads: Ints
    params: Floats
    kinds: Ints
    tables: Floats
    work: Floats


class CopyState(NamedTuple):
    """State of the copies: their values (blocks, COPY L), their keys (blocks L), and their last commands (blocks,
    DELAYS x thrusters x L).

    It also contains buffers for the states of a block (L, MU) and for temporary values (WORK L).
    """

    numbers: Floats
    keys: Keys
    commands: Floats
    held_states: Floats
    work: Floats


class StepOutput(NamedTuple):
    """Outputs of a step. ``last`` is the observation before a reset. ``episode_info`` contains distance, heading error
    and success.
    """

    observation: Singles
    reward: Floats
    terminated: Mask
    truncated: Mask
    last: Singles
    episode_info: Floats
    parts: Floats


class TaskRules(NamedTuple):
    """Constants of the task and of the noise."""

    task: int
    steps: int
    judged_steps: int  # steps at the end that are judged
    dt: float
    substeps: int
    size: float
    omega: float
    near: float
    turned: float
    noise: float  # factor of all noise
    variation: float  # scale of the differences between episodes: 1 as documented
    max_command: float  # thrust in N of an action of 1
    mode: int


class StepState(NamedTuple):
    """All arrays and numbers that a thread works on. Threads share the arrays, except the buffers for one block."""

    fleet: FleetView
    copies: CopyState
    rules: TaskRules
    outputs: StepOutput


unpack_step_state = array_tables.make_unpacker(StepState)


@device_function
def _reference_pose(rules: TaskRules, time: Any, phase: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return the reference position and velocity of a task, for one copy or for a block of copies. The reference
    heading is north."""
    a, s, w = phase + rules.omega * time, rules.size, rules.omega
    none = 0.0 * a
    if rules.task == 0:
        return none, none, none + DEPTH, none, none, none
    sine, cosine = sin_cos(a)
    if rules.task == 3:
        return (
            s * sine,
            s * sine * cosine,
            none + DEPTH,
            s * w * cosine,
            s * w * (cosine * cosine - sine * sine),
            none,
        )
    down = 0.05 if rules.task == 2 else 0.0
    return s * cosine, s * sine, DEPTH + down * time, -(s * w) * sine, s * w * cosine, none + down


@device_function
def reset(b: Floats, l: int, c: Floats, key: np.uint64, past: Floats, rules: TaskRules, thrusters: int) -> None:
    """Start a new episode of one copy."""
    c[EPISODE * L + l] += 1.0
    e = int(c[EPISODE * L + l]) << 20  # offset of the random numbers of this episode
    for row in range(B.MEMORY_STATE):
        b[row * L + l] = 0.0
    c[PHASE * L + l] = 2.0 * math.pi * uniform(key, e, 0) if rules.task else 0.0
    x, y, z, _, _, _ = _reference_pose(rules, 0.0, c[PHASE * L + l])
    wide = 2.5 if rules.task == 0 else 0.5
    b[B.PX * L + l] = x + wide * (2.0 * uniform(key, e, 1) - 1.0)
    b[B.PY * L + l] = y + wide * (2.0 * uniform(key, e, 2) - 1.0)
    b[B.PZ * L + l] = z + 0.5 * (2.0 * uniform(key, e, 3) - 1.0)
    sr, cr = sin_cos(0.15 * (uniform(key, e, 4) - 0.5))  # half of the angles
    sp, cp = sin_cos(0.15 * (uniform(key, e, 5) - 0.5))
    sy, cy = sin_cos(math.pi * uniform(key, e, 6) - 0.5 * math.pi)
    b[B.QW * L + l] = cr * cp * cy + sr * sp * sy
    b[B.QX * L + l] = sr * cp * cy - cr * sp * sy
    b[B.QY * L + l] = cr * sp * cy + sr * cp * sy
    b[B.QZ * L + l] = cr * cp * sy - sr * sp * cy
    for k in range(SLOTS):
        b[(B.ACTUATOR_STATE + k) * L + l] = 0.0
        b[(B.ACTUATOR_COMMAND + k) * L + l] = 0.0
    common = 1.0 - 0.2 * rules.variation * uniform(key, e, 7)  # common factor: voltage
    for k in range(thrusters):
        b[(B.ACTUATOR_EFFECT + k) * L + l] = common * (
            1.0 + 0.2 * rules.variation * (2.0 * uniform(key, e, 16 + k) - 1.0)
        )
    north, east = sin_cos(2.0 * math.pi * uniform(key, e, 9))
    speed = 0.5 * rules.variation * uniform(key, e, 8)
    b[B.V_WF_W * L + l], b[(B.V_WF_W + 1) * L + l], b[(B.V_WF_W + 2) * L + l] = speed * north, speed * east, 0.0
    c[NET * L + l] = 2.0 * rules.variation * (2.0 * uniform(key, e, 10) - 1.0)  # 2 % of the weight of a body of 10 kg
    c[DELAY * L + l] = float(int(DELAYS * uniform(key, e, 11))) if rules.variation > 0.0 else 0.0
    for k in range(3):
        c[(BIAS + k) * L + l] = 0.02 * rules.noise * normal(key, e, 32 + k)
    c[TURN * L + l] = 0.0175 * rules.noise * normal(key, e, 36)
    for row in (STEP, SUM_D, SUM_H, JUDGED, ENDED):
        c[row * L + l] = 0.0
    _clear_commands(past, l, thrusters)


@device_function
def _clear_commands(past: Floats, l: int, thrusters: int) -> None:
    """Clear the stored commands of one copy."""
    for row in range(DELAYS * thrusters):
        past[row * L + l] = 0.0


@always_inline
def normal_pair(uniforms: Lanes) -> tuple[Lanes, Lanes]:
    """Return two normally distributed numbers for each lane (Box-Muller). The method needs two uniform numbers: the
    high and the low half of the given one.
    """
    u = uniforms * _HALF
    high = (u + _NEAREST) - _NEAREST
    radius = sqrt(-2.0 * log((high + 0.5) * (1.0 / (_HALF + 1.0))))
    sine, cosine = sin_cos(2.0 * math.pi * (u - high))
    return radius * cosine, radius * sine


@device_function
def _noise(c: Floats, keys: Keys, first: int, w: Floats) -> None:
    """Draw normally distributed numbers for each lane. Each hash yields two of them."""
    for l in range(L):
        e = (int(c[EPISODE * L + l]) << 20) + int(c[STEP * L + l]) + 1
        for k in range(NORMALS // 2):
            w[(DRAW + k) * L + l] = uniform(keys[first + l], e, k)
    for k in range(NORMALS // 2 - 1, -1, -1):  # the last first: each row makes two
        one, other = normal_pair(load(w, DRAW + k))
        store(w, DRAW + 2 * k, one)
        store(w, DRAW + 2 * k + 1, other)


@device_function
def _store_observation(w: Floats, row: int, value: Lanes) -> None:
    store(w, OBSERVATION + row, minimum(maximum(value, -BOUND), BOUND))


@device_function
def observe(
    b: Floats, c: Floats, keys: Keys, first: int, past: Floats, rules: TaskRules, w: Floats, thrusters: int
) -> None:
    """Compute the observations for a block, with noise. The inputs of the reward are true values without noise."""
    gx, gy, gz, vx, vy, vz = _reference_pose(rules, load(c, STEP) * rules.dt, load(c, PHASE))
    n = rules.noise
    if n > 0.0:
        _noise(c, keys, first, w)
    else:
        for k in range(NORMALS):
            store(w, DRAW + k, 0.0)
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation.matrix(
        load(b, B.QW), load(b, B.QX), load(b, B.QY), load(b, B.QZ)
    )
    dx, dy, dz = gx - load(b, B.PX), gy - load(b, B.PY), gz - load(b, B.PZ)
    turn = -atan2(r21, r11)
    # in body axes, as measured by on-board instruments
    mx = dx + load(c, BIAS) + 0.05 * n * load(w, DRAW)
    my = dy + load(c, BIAS + 1) + 0.05 * n * load(w, DRAW + 1)
    mz = dz + load(c, BIAS + 2) + 0.02 * n * load(w, DRAW + 2)
    sine, cosine = sin_cos(turn + load(c, TURN) + 0.0087 * n * load(w, DRAW + 3))
    _store_observation(w, 0, r11 * mx + r21 * my + r31 * mz)
    _store_observation(w, 1, r12 * mx + r22 * my + r32 * mz)
    _store_observation(w, 2, r13 * mx + r23 * my + r33 * mz)
    _store_observation(w, 3, sine)
    _store_observation(w, 4, cosine)
    _store_observation(w, 5, r31)
    _store_observation(w, 6, r32)
    _store_observation(w, 7, r33)
    for k in range(3):
        _store_observation(w, 8 + k, load(b, B.NU + k) + 0.01 * n * load(w, DRAW + 4 + k))
        _store_observation(w, 11 + k, load(b, B.NU + 3 + k) + 0.002 * n * load(w, DRAW + 7 + k))
    _store_observation(w, 14, r11 * vx + r21 * vy + r31 * vz)
    _store_observation(w, 15, r12 * vx + r22 * vy + r32 * vz)
    _store_observation(w, 16, r13 * vx + r23 * vy + r33 * vz)
    level = 1.0 / maximum(sqrt(r11 * r11 + r21 * r21), 1e-12)
    _store_observation(w, 17, r21 * level)
    _store_observation(w, 18, r11 * level)
    _store_observation(w, 19, load(c, STEP) / float(rules.steps))
    for k in range(thrusters):
        _store_observation(w, BASE + k, load(past, k))
    p, q, o = load(b, B.NU + 3), load(b, B.NU + 4), load(b, B.NU + 5)
    store(w, DISTANCE, sqrt(dx * dx + dy * dy + dz * dz))
    store(w, TURNED, abs(turn))
    store(w, UPRIGHT, r33)
    store(w, SPIN, p * p + q * q + o * o)
    store(w, AHEAD, r11 * level)


@device_function
def _apply_delay(b: Floats, c: Floats, past: Floats, w: Floats, rules: TaskRules, thrusters: int) -> None:
    """Convert actions to commands, apply the delay of each copy, and compute the force of net weight or buoyancy in
    B.
    """
    late = load(c, DELAY)
    for k in range(thrusters):
        a = minimum(maximum(load(w, ACTION + k), -1.0), 1.0)
        a = select(a <= 1.0, a, 0.0)  # replace NaN by 0
        one, two, three = load(past, k), load(past, thrusters + k), load(past, 2 * thrusters + k)
        delayed = select(late < 0.5, a, select(late < 1.5, one, select(late < 2.5, two, three)))
        store(past, 3 * thrusters + k, three)
        store(past, 2 * thrusters + k, two)
        store(past, thrusters + k, one)
        store(past, k, a)
        store(b, B.ACTUATOR_COMMAND + k, rules.max_command * delayed)
    q0, x, y, z = load(b, B.QW), load(b, B.QX), load(b, B.QY), load(b, B.QZ)
    net = load(c, NET)
    store(b, B.EXTERNAL_WRENCH, net * (2.0 * (x * z - y * q0)))
    store(b, B.EXTERNAL_WRENCH + 1, net * (2.0 * (y * z + x * q0)))
    store(b, B.EXTERNAL_WRENCH + 2, net * (1.0 - 2.0 * (x * x + y * y)))


@device_function
def _reward_and_termination(c: Floats, past: Floats, w: Floats, rules: TaskRules, thrusters: int) -> None:
    """Compute the rewards and the termination for a block."""
    going = load(c, ENDED) < 0.5
    distance, turned, spin = load(w, DISTANCE), load(w, TURNED), load(w, SPIN)
    effort = load(past, 0) * load(past, 0)
    for k in range(1, thrusters):
        effort = effort + load(past, k) * load(past, k)
    aim = 2.0 - 2.0 * load(w, AHEAD) if rules.task == 0 else 0.0 * effort
    place = 0.5 / (1.0 + 1.44 * (distance * distance + aim))
    still = place * (0.5 * (1.0 + load(w, UPRIGHT)) + 1.0 / (1.0 + spin))
    ease = 0.1 * exp(-effort)
    sane = abs(distance + spin + turned) < math.inf
    store(w, PART, place)
    store(w, PART + 1, still)
    store(w, PART + 2, ease)
    store(w, REWARD, select(going, select(sane, place + still + ease, 0.0), 0.0))
    gone = select(going, select(sane, select(distance > FAR, 1.0, 0.0), 1.0), 0.0)
    step = load(c, STEP)
    late = select(going, select(step >= float(rules.steps), 1.0 - gone, 0.0), 0.0)
    counted = step > float(rules.steps - rules.judged_steps)
    total = load(c, SUM_D) + select(counted, distance, 0.0)
    turns = load(c, SUM_H) + select(counted, turned, 0.0)
    judged = load(c, JUDGED) + select(counted, 1.0, 0.0)
    store(c, SUM_D, total)
    store(c, SUM_H, turns)
    store(c, JUDGED, judged)
    store(w, OUT_OF_BOUNDS, gone)
    store(w, TIME_IS_UP, late)
    store(w, IS_SUCCESS, select(total < rules.near * judged, select(turns < rules.turned * judged, late, 0.0), 0.0))


@device_function
def _show(w: Floats, l: int, seen: Singles) -> None:
    """Write the observation of one copy to ``seen``, from the array of its block, in which the lanes are interleaved."""
    for k in range(seen.shape[0]):
        seen[k] = w[(OBSERVATION + k) * L + l]


@device_function
def _hold_waiting(f: FleetView, copies: CopyState, block: int, size: int, rules: TaskRules, thrusters: int) -> None:
    """Save the states of copies that are waiting for a reset. If a reset is due, execute it first.

    The copies are advanced with their block, and :func:`_restore_held` then restores the saved states.
    """
    b, c, past, held = f.blocks[block], copies.numbers[block], copies.commands[block], copies.held_states
    for l in range(size):
        if c[ENDED * L + l] != 0.0:
            if rules.mode == NEXT_STEP:
                reset(b, l, c, copies.keys[block * L + l], past, rules, thrusters)
                c[ENDED * L + l] = 2.0
            _clear_commands(past, l, thrusters)  # its action is ignored
            for row in range(B.MEMORY_STATE):
                held[l, row] = b[row * L + l]


@device_function
def _restore_held(b: Floats, c: Floats, held: Floats, size: int, thrusters: int) -> None:
    """Restore the states that :func:`_hold_waiting` saved."""
    for l in range(size):
        if c[ENDED * L + l] != 0.0:
            for row in range(B.MEMORY_STATE):
                b[row * L + l] = held[l, row]
            for k in range(thrusters):
                b[(B.ACTUATOR_STATE + k) * L + l] = 0.0


@device_function
def _write_outputs(c: Floats, w: Floats, first: int, size: int, out: StepOutput) -> bool:
    """Write the outputs of a step for each copy of a block; return whether any episode has ended."""
    ended = False
    for l in range(size):
        i = first + l
        _show(w, l, out.observation[i])
        out.reward[i] = w[REWARD * L + l]
        out.terminated[i], out.truncated[i] = w[OUT_OF_BOUNDS * L + l] != 0.0, w[TIME_IS_UP * L + l] != 0.0
        for k in range(PARTS):
            out.parts[i, k] = w[(PART + k) * L + l]
        out.episode_info[i, 0], out.episode_info[i, 1], out.episode_info[i, 2] = (
            w[DISTANCE * L + l],
            w[TURNED * L + l],
            w[IS_SUCCESS * L + l],
        )
        ended |= w[OUT_OF_BOUNDS * L + l] + w[TIME_IS_UP * L + l] != 0.0
        if c[ENDED * L + l] == 2.0:  # its new episode has begun
            c[ENDED * L + l] = 0.0
    return ended


@device_function
def _reset_ended(
    f: FleetView, copies: CopyState, block: int, size: int, rules: TaskRules, out: StepOutput, thrusters: int
) -> None:
    """For each copy in a block whose episode has ended, store the last observation. Then reset the copy (SAME_STEP), or
    mark it for a later reset.
    """
    b, c, past, first = f.blocks[block], copies.numbers[block], copies.commands[block], block * L
    for l in range(size):
        i = first + l
        if not (out.terminated[i] or out.truncated[i]):
            continue
        for k in range(out.last.shape[1]):
            if not math.isfinite(out.observation[i, k]):  # the state diverged (NaN or infinity)
                out.observation[i, k] = 0.0
            out.last[i, k] = out.observation[i, k]
        if rules.mode == SAME_STEP:
            reset(b, l, c, copies.keys[i], past, rules, thrusters)
        else:
            c[ENDED * L + l] = 1.0
    if rules.mode == SAME_STEP:
        observe(b, c, copies.keys, first, past, rules, copies.work, thrusters)
        for l in range(size):
            if out.terminated[first + l] or out.truncated[first + l]:
                _show(copies.work, l, out.observation[first + l])


@always_inline
def _prefetch_copies(f: FleetView, copies: CopyState, block: int) -> None:
    """Prefetch the arrays of a block while another block is being advanced."""
    integrators.prefetch_block(f.blocks[block])
    for line in range(0, copies.numbers.shape[1], CACHE_LINE_NUMBERS):
        prefetch(copies.numbers[block], line)
    for line in range(0, copies.commands.shape[1], CACHE_LINE_NUMBERS):
        prefetch(copies.commands[block], line)


@kernel(nogil=True)
def step(table: Packed, actions: Singles, thrusters: int, first_block: int, end_block: int) -> None:
    """Advance the copies in the blocks from ``first_block`` to ``end_block`` - 1 by one step. ``table`` is a packed
    :class:`StepState`; ``actions`` (n, thrusters) are from -1 to 1.
    """
    f, copies, rules, out = unpack_step_state(table)
    n, h, w = actions.shape[0], rules.dt / rules.substeps, copies.work
    for block in range(first_block, end_block):
        if block + 1 < end_block:
            _prefetch_copies(f, copies, block + 1)
        b, kind = f.blocks[block], f.heads[block, B.HEAD_MODEL]
        c, past, first = copies.numbers[block], copies.commands[block], block * L
        size, waiting = min(n - first, L), False
        for l in range(size):
            for k in range(thrusters):
                w[(ACTION + k) * L + l] = actions[first + l, k]
            waiting |= c[ENDED * L + l] != 0.0
        _apply_delay(b, c, past, w, rules, thrusters)
        if waiting:
            _hold_waiting(f, copies, block, size, rules, thrusters)
        for _ in range(rules.substeps):
            integrators.step_block(b, f.params[kind], f.work, f.kinds[kind], f.tables, h, integrators.RK4, False)
        store(c, STEP, load(c, STEP) + select(load(c, ENDED) < 0.5, 1.0, 0.0))
        if waiting:
            _restore_held(b, c, copies.held_states, size, thrusters)
        observe(b, c, copies.keys, first, past, rules, w, thrusters)
        _reward_and_termination(c, past, w, rules, thrusters)
        if _write_outputs(c, w, first, size, out):
            _reset_ended(f, copies, block, size, rules, out, thrusters)


@kernel
def reset_selected(table: Packed, chosen: Mask, thrusters: int) -> None:
    """Start a new episode of the selected copies."""
    f, copies, rules, out = unpack_step_state(table)
    n = chosen.shape[0]
    for block in range((n + L - 1) // L):
        b, c, past, first = f.blocks[block], copies.numbers[block], copies.commands[block], block * L
        size, some = min(n - first, L), False
        for l in range(size):
            if chosen[first + l]:
                reset(b, l, c, copies.keys[first + l], past, rules, thrusters)
                some = True
        if some:
            observe(b, c, copies.keys, first, past, rules, copies.work, thrusters)
            for l in range(size):
                if chosen[first + l]:
                    _show(copies.work, l, out.observation[first + l])
