"""One step of all copies, compiled: commands with their delay, dynamics, reward, end, reset, noise, observation.

The dynamics is the engine's own, by blocks of eight bodies; without sound, contact and weather, for none of these tasks has them.
A copy's random numbers are hashes of its own key: no copy sees another, and how many there are changes nothing.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

from wavesim_sdk.compiled import normal, uniform
from wavesim_sdk.parts import kernel, part
from wavesim_server.dynamics import integrators
from wavesim_server.dynamics import rows as r

_kernel = kernel(Path(__file__).parent, Path(integrators.__file__).parent)
NEXT_STEP, SAME_STEP, DISABLED = range(3)
DEPTH = 20.0  #: m, of the middle of all tasks: far from surface and bed
DELAYS = 4  #: commands that are kept
#: columns of a copy: steps and episodes so far, bias of position (3) and heading, delay in steps, net weight (N), sums of what is judged
STEP, EPISODE, BIAS, TURN, DELAY, NET, SUM_D, SUM_H, JUDGED, PHASE, ENDED = 0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12
COPY = 13
BASE = 20  #: numbers of an observation before the last command
BOUND = 10.0  #: of every number of an observation
FAR = 6.0  #: m: further away an episode ends
PARTS = 3  #: of a reward: place, upright and still, effort


class Fleet(NamedTuple):
    """The bodies, see :class:`wavesim_server.dynamics.fleet.Fleet`."""

    blocks: Any
    heads: Any
    params: Any
    kinds: Any
    tables: Any
    work: Any


class Copies(NamedTuple):
    """What each copy remembers: numbers, key, last commands (n, DELAYS, thrusters); and room for the states of a block."""

    numbers: Any
    keys: Any
    commands: Any
    held: Any


class Out(NamedTuple):
    """What a step fills in; ``last`` is the observation before a reset, ``told`` distance, heading error, success."""

    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    last: Any
    told: Any
    parts: Any


class Rules(NamedTuple):
    """Numbers of the task and of the noise."""

    task: int
    steps: int
    judged: int  # steps at the end
    dt: float
    substeps: int
    size: float
    omega: float
    near: float
    turned: float
    noise: float  # factor of all noise
    vary: float  # how far episodes differ: 1 as documented
    most: float  # thrust of an action of 1, N
    mode: int


@part
def _goal(rules: Rules, time: float, phase: float) -> tuple[float, float, float, float, float, float, float]:
    """Place, velocity and heading that are wanted."""
    a, s, w = phase + rules.omega * time, rules.size, rules.omega
    if rules.task == 0:
        return 0.0, 0.0, DEPTH, 0.0, 0.0, 0.0, 0.0
    if rules.task == 3:
        return (
            s * math.sin(a),
            0.5 * s * math.sin(2.0 * a),
            DEPTH,
            s * w * math.cos(a),
            s * w * math.cos(2.0 * a),
            0.0,
            0.0,
        )
    down = 0.05 if rules.task == 2 else 0.0
    return s * math.cos(a), s * math.sin(a), DEPTH + down * time, -s * w * math.sin(a), s * w * math.cos(a), down, 0.0


@part
def _place(b: Any, l: int, row: int, value: float) -> None:
    b[row * r.LANES + l] = value


@part
def reset(b: Any, l: int, c: Any, key: Any, commands: Any, rules: Rules, thrusters: int) -> None:
    """A new episode of one copy."""
    c[EPISODE] += 1.0
    e = int(c[EPISODE]) << 20  # its numbers are counted from here
    for row in range(r.MU):
        _place(b, l, row, 0.0)
    c[PHASE] = 2.0 * math.pi * uniform(key, e, 0) if rules.task else 0.0
    x, y, z, _, _, _, _ = _goal(rules, 0.0, c[PHASE])
    wide = 2.5 if rules.task == 0 else 0.5
    _place(b, l, r.PX, x + wide * (2.0 * uniform(key, e, 1) - 1.0))
    _place(b, l, r.PY, y + wide * (2.0 * uniform(key, e, 2) - 1.0))
    _place(b, l, r.PZ, z + 0.5 * (2.0 * uniform(key, e, 3) - 1.0))
    roll, pitch = 0.3 * (uniform(key, e, 4) - 0.5), 0.3 * (uniform(key, e, 5) - 0.5)
    yaw = 2.0 * math.pi * uniform(key, e, 6) - math.pi
    cr, sr, cp, sp = math.cos(0.5 * roll), math.sin(0.5 * roll), math.cos(0.5 * pitch), math.sin(0.5 * pitch)
    cy, sy = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
    _place(b, l, r.QW, cr * cp * cy + sr * sp * sy)
    _place(b, l, r.QX, sr * cp * cy - cr * sp * sy)
    _place(b, l, r.QY, cr * sp * cy + sr * cp * sy)
    _place(b, l, r.QZ, cr * cp * sy - sr * sp * cy)
    for k in range(r.SLOTS):
        _place(b, l, r.A_NOW + k, 0.0)
        _place(b, l, r.A_CMD + k, 0.0)
    common = 1.0 - 0.2 * rules.vary * uniform(key, e, 7)  # voltage
    for k in range(thrusters):
        _place(b, l, r.A_EFFECT + k, common * (1.0 + 0.2 * rules.vary * (2.0 * uniform(key, e, 16 + k) - 1.0)))
    speed, whence = 0.5 * rules.vary * uniform(key, e, 8), 2.0 * math.pi * uniform(key, e, 9)
    _place(b, l, r.CURRENT, speed * math.cos(whence))
    _place(b, l, r.CURRENT + 1, speed * math.sin(whence))
    _place(b, l, r.CURRENT + 2, 0.0)
    c[NET] = 2.0 * rules.vary * (2.0 * uniform(key, e, 10) - 1.0)  # 2 % of the weight of a body of 10 kg
    c[DELAY] = float(int(DELAYS * uniform(key, e, 11))) if rules.vary > 0.0 else 0.0
    for k in range(3):
        c[BIAS + k] = 0.02 * rules.noise * normal(key, e, 32 + k)
    c[TURN] = 0.0175 * rules.noise * normal(key, e, 36)
    c[STEP] = c[SUM_D] = c[SUM_H] = c[JUDGED] = c[ENDED] = 0.0
    commands[:] = 0.0


@part
def observe(
    b: Any, l: int, c: Any, key: Any, command: Any, rules: Rules, out: Any
) -> tuple[float, float, float, float, float]:
    """The observation of one copy, with noise; (distance, heading error, upright, rate, ahead) are the true ones."""
    time = c[STEP] * rules.dt
    gx, gy, gz, vx, vy, vz, gh = _goal(rules, time, c[PHASE])
    w, x, y, z = b[r.QW * r.LANES + l], b[r.QX * r.LANES + l], b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
    dx, dy, dz = gx - b[r.PX * r.LANES + l], gy - b[r.PY * r.LANES + l], gz - b[r.PZ * r.LANES + l]
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    turn = gh - yaw
    turn -= 2.0 * math.pi * math.floor((turn + math.pi) / (2.0 * math.pi))
    e, n = (int(c[EPISODE]) << 20) + int(c[STEP]) + 1, rules.noise
    # in body axes, as its own instruments would have it
    r11, r12, r13 = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)
    r21, r22, r23 = 2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)
    r31, r32, r33 = 2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)
    mx = dx + c[BIAS] + (0.05 * n * normal(key, e, 0) if n > 0.0 else 0.0)
    my = dy + c[BIAS + 1] + (0.05 * n * normal(key, e, 1) if n > 0.0 else 0.0)
    mz = dz + c[BIAS + 2] + (0.02 * n * normal(key, e, 2) if n > 0.0 else 0.0)
    th = turn + c[TURN] + (0.0087 * n * normal(key, e, 3) if n > 0.0 else 0.0)
    out[0] = r11 * mx + r21 * my + r31 * mz
    out[1] = r12 * mx + r22 * my + r32 * mz
    out[2] = r13 * mx + r23 * my + r33 * mz
    out[3], out[4] = math.sin(th), math.cos(th)
    out[5], out[6], out[7] = r31, r32, r33
    for k in range(3):
        out[8 + k] = b[(r.NU + k) * r.LANES + l] + (0.01 * n * normal(key, e, 4 + k) if n > 0.0 else 0.0)
        out[11 + k] = b[(r.NU + 3 + k) * r.LANES + l] + (0.002 * n * normal(key, e, 7 + k) if n > 0.0 else 0.0)
    out[14] = r11 * vx + r21 * vy + r31 * vz
    out[15] = r12 * vx + r22 * vy + r32 * vz
    out[16] = r13 * vx + r23 * vy + r33 * vz
    out[17], out[18] = math.sin(yaw), math.cos(yaw)
    out[19] = c[STEP] / rules.steps
    for k in range(command.shape[0]):
        out[BASE + k] = command[k]
    for k in range(out.shape[0]):
        out[k] = min(max(out[k], -BOUND), BOUND)
    distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    p, q, o = b[(r.NU + 3) * r.LANES + l], b[(r.NU + 4) * r.LANES + l], b[(r.NU + 5) * r.LANES + l]
    return distance, abs(turn), r33, math.sqrt(p * p + q * q + o * o), math.cos(turn)


@_kernel
def step(f: Fleet, copies: Copies, actions: Any, rules: Rules, out: Out, thrusters: int) -> None:
    """One step of all copies. ``actions`` (n, thrusters) in -1..1."""
    n, h = actions.shape[0], rules.dt / rules.substeps
    for block in range((n + r.LANES - 1) // r.LANES):
        b, kind = f.blocks[block], f.heads[block, r.BLOCK_KIND]
        first = block * r.LANES
        last = min(n, first + r.LANES)
        for i in range(first, last):
            l, c = i - first, copies.numbers[i]
            if c[ENDED] != 0.0 and rules.mode == NEXT_STEP:
                reset(b, l, c, copies.keys[i], copies.commands[i], rules, thrusters)
                c[ENDED] = 2.0  # its action is not taken
                continue
            at, delay = int(c[STEP]) % DELAYS, int(c[DELAY])
            told = (at - delay + DELAYS) % DELAYS
            for k in range(thrusters):
                a = min(max(actions[i, k], -1.0), 1.0)
                copies.commands[i, at, k] = a if a == a else 0.0
                b[(r.A_CMD + k) * r.LANES + l] = rules.most * copies.commands[i, told, k]
            w, x, y, z = b[r.QW * r.LANES + l], b[r.QX * r.LANES + l], b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
            b[r.EXT * r.LANES + l] = c[NET] * 2.0 * (x * z - y * w)
            b[(r.EXT + 1) * r.LANES + l] = c[NET] * 2.0 * (y * z + x * w)
            b[(r.EXT + 2) * r.LANES + l] = c[NET] * (1.0 - 2.0 * (x * x + y * y))
        # a copy that is being reset is computed along with its block, and put back
        for i in range(first, last):
            if copies.numbers[i, ENDED] != 0.0:
                for row in range(r.MU):
                    copies.held[i - first, row] = b[row * r.LANES + i - first]
        for _ in range(rules.substeps):
            integrators.step_block(b, f.params[kind], f.work, f.kinds[kind], f.tables, h, integrators.RK4, False)
        for i in range(first, last):
            l, c = i - first, copies.numbers[i]
            if c[ENDED] != 0.0:  # reset, or waiting for one
                for row in range(r.MU):
                    b[row * r.LANES + l] = copies.held[l, row]
                for k in range(thrusters):
                    b[(r.A_NOW + k) * r.LANES + l] = 0.0
                out.reward[i], out.terminated[i], out.truncated[i] = 0.0, False, False
                if c[ENDED] == 2.0:
                    c[ENDED] = 0.0
                observe(b, l, c, copies.keys[i], copies.commands[i, 0], rules, out.observation[i])
                continue
            _judge(b, l, i, copies, rules, out, thrusters)


@part
def _judge(b: Any, l: int, i: int, copies: Copies, rules: Rules, out: Out, thrusters: int) -> None:
    """Reward, end, and what comes after it, of one copy."""
    c, at = copies.numbers[i], int(copies.numbers[i, STEP]) % DELAYS
    c[STEP] += 1.0
    command = copies.commands[i, at]
    distance, turn, upright, rate, ahead = observe(b, l, c, copies.keys[i], command, rules, out.observation[i])
    sane = math.isfinite(distance + rate + turn)
    effort = 0.0
    for k in range(thrusters):
        effort += command[k] * command[k]
    aim = 2.0 - 2.0 * ahead if rules.task == 0 else 0.0
    place = 0.5 / (1.0 + 1.44 * (distance * distance + aim))
    out.parts[i, 0] = place
    out.parts[i, 1] = place * (0.5 * (1.0 + upright) + 1.0 / (1.0 + rate * rate))
    out.parts[i, 2] = 0.1 * math.exp(-effort)
    total = out.parts[i, 0] + out.parts[i, 1] + out.parts[i, 2]
    out.reward[i] = total if sane else 0.0
    out.terminated[i] = not sane or distance > FAR
    out.truncated[i] = not out.terminated[i] and c[STEP] >= rules.steps
    if c[STEP] > rules.steps - rules.judged:
        c[SUM_D] += distance
        c[SUM_H] += turn
        c[JUDGED] += 1.0
    out.told[i, 0], out.told[i, 1], out.told[i, 2] = distance, turn, 0.0
    if out.terminated[i] or out.truncated[i]:
        good = out.truncated[i] and c[SUM_D] < rules.near * c[JUDGED] and c[SUM_H] < rules.turned * c[JUDGED]
        out.told[i, 2] = 1.0 if good else 0.0
        if not sane:
            out.observation[i, :] = 0.0
        out.last[i, :] = out.observation[i]
        if rules.mode == SAME_STEP:
            reset(b, l, c, copies.keys[i], copies.commands[i], rules, thrusters)
            observe(b, l, c, copies.keys[i], copies.commands[i, 0], rules, out.observation[i])
        else:
            c[ENDED] = 1.0


@_kernel
def begin(f: Fleet, copies: Copies, chosen: Any, rules: Rules, out: Out, thrusters: int) -> None:
    """A new episode of the chosen copies."""
    for i in range(chosen.shape[0]):
        if chosen[i]:
            b, l = f.blocks[i // r.LANES], i % r.LANES
            reset(b, l, copies.numbers[i], copies.keys[i], copies.commands[i], rules, thrusters)
            observe(b, l, copies.numbers[i], copies.keys[i], copies.commands[i, 0], rules, out.observation[i])
