"""Forward pass of the filter (compiled kernels).

Cloning follows Roumeliotis & Burdick (2002), and covariance intersection follows Julier & Uhlmann (1997).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_studies.navigation.measurement_models import (
    ANGLES,
    BED,
    DIRECTION,
    DROP,
    EXTRA,
    GATE,
    ID,
    KEEP,
    KIND,
    MARK,
    NOISE,
    ONE_WAY,
    ROUND_TRIP,
    SENSOR,
    SHARED,
    M,
    T,
    Z,
    expected_measurement,
    second_order_terms,
)
from wavesim_studies.navigation.strapdown import (
    ACCELEROMETER,
    ACCELEROMETER_Y,
    ACCELEROMETER_Z,
    CLOCK,
    CLONE,
    CURRENT,
    FORCE,
    G_,
    MOORING,
    NOMINAL,
    OFFSET,
    Q_,
    RATES,
    SCALE,
    SKEW,
    SOUND,
    FilterArrays,
    FilterConstants,
    MotionWork,
    corrected_rates,
    cross,
    kernel,
    propagate_covariance,
    propagate_state,
    rotate_quaternion,
    transition,
)

REFUSALS, INFLATION = (
    10,
    4.0,
)  # number of successive rejections that inflate the covariance, and the factor of this inflation
GATES = np.array([0.0, 6.6349, 9.2103, 11.3449, 13.2767])  # chi-square, 0.99
#: mean of min(chi-square, GATES) divided by its degrees of freedom, and weight of a measurement in the adapted noise: at
#: first 1 / (4 + number of measurements), later at least 1 / 100
CLIPPED_MEANS = np.array([0.0, 0.98186, 0.99, 0.99286, 0.99435])
ADAPTATION_FIRST, ADAPTATION_MEMORY = 4.0, 100.0
ADAPTATION_LOW, ADAPTATION_HIGH = 1.0 / 16.0, 16.0  #: limits of the factor of the noise variance
#: number of bisection steps that find the noise at which the NIS of a rejected measurement equals the gate
SOFTENING_STEPS = 20
#: kinds of records on the tape; each record ends with its length and one of these codes
TAPE_PROPAGATE, TAPE_UPDATE, TAPE_CLONE, TAPE_DROP, TAPE_MARK = 1.0, 2.0, 3.0, 4.0, 5.0


class RunOutput(NamedTuple):
    """Outputs of a filter run."""

    outcomes: Floats  #: outcome of each event (E, OUTCOME_WIDTH)
    nodes: Floats  #: state at each MARK event (marks, 28); the ID of the event is the row index
    covariances: Floats  #: covariances (marks, n, N) of the states at the marks; n does not count the clones
    tape: Floats  #: records for the smoother; empty if smoothing is off


class UpdateWork(NamedTuple):
    """Temporary values of a measurement update."""

    rows: Floats  #: H (4), P H^T (4), the gain (4) and the correction; each of them has N numbers
    y: Floats  #: innovation of the measurement
    noise: Floats  #: covariance of the measurement noise
    S: Floats  #: covariance of the innovation
    L: Floats  #: Cholesky factor of the innovation covariance
    white: Floats  #: whitened innovation


@device_function
def _factor(S: Floats, m: int, L: Floats) -> None:
    """Compute the Cholesky factor L of S = L L^T."""
    for i in range(m):
        for j in range(i + 1):
            s = S[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(max(s, 1e-300)) if i == j else s / L[j, j]


@device_function
def _innovation(e: Floats, state: FilterArrays, ix: Ints, w: Floats, image: int, work: UpdateWork) -> bool:
    """Compute the innovation, H, P H^T and the covariance of the measurement noise."""
    n, m, kind = state.sizes[0] + CLONE * state.sizes[1], int(e[M]), int(e[KIND])
    P, rows, y, noise, white = state.P, work.rows, work.y, work.noise, work.white
    if not expected_measurement(e, state, ix, w, image, rows, y):
        return False
    factor = state.adaptation[int(e[SENSOR]), 0]
    for a in range(m):
        for b in range(m):
            noise[a, b] = factor * e[NOISE + 4 * a + b]
    if kind in (
        ROUND_TRIP,
        ONE_WAY,
    ):  # otherwise a filter with a large initial uncertainty would become certain of a wrong position
        second_order_terms(e, state.x, state.clones, state.sizes, image, P, white)
        y[0] += white[0]
        noise[0, 0] += white[1] * white[1]
    for k in range(m):
        y[k] = e[Z + k] - y[k]
        if kind in (ANGLES, DIRECTION):
            y[k] -= 2.0 * math.pi * math.floor(y[k] / (2.0 * math.pi) + 0.5)
        for i in range(n):
            rows[4 + k, i] = 0.0
        for j in range(n):
            h = rows[k, j]
            if h != 0.0:
                for i in range(n):
                    rows[4 + k, i] += h * P[j, i]
    return True


@device_function
def innovation_nis(e: Floats, n: int, omega: float, work: UpdateWork) -> float:
    """Return the normalised innovation squared. An ``omega`` of 1 uses the whole of P. A smaller value applies
    covariance intersection, for measurements that depend on the estimate.
    """
    m, nis = int(e[M]), 0.0
    rows, y, noise, S, L, white = work.rows, work.y, work.noise, work.S, work.L, work.white
    for a in range(m):
        for b in range(m):
            s = 0.0
            for j in range(n):
                s += rows[a, j] * rows[4 + b, j]
            s /= omega
            if e[SHARED] > 0.0:
                known = 0.0
                for i in range(3):
                    for j in range(3):
                        known += rows[a, i] * e[EXTRA + 3 * i + j] * rows[b, j]
                s += known / (1.0 - omega)
            S[a, b] = s + noise[a, b]
    _factor(S, m, L)
    for a in range(m):
        s = y[a]
        for b in range(a):
            s -= L[a, b] * white[b]
        white[a] = s / L[a, a]
        nis += white[a] * white[a]
    return nis


@device_function
def covariance_intersection(e: Floats, n: int, P: Floats, work: UpdateWork) -> float:
    """Return the weight of P that minimises the position variance; 1 means that the measurement does not help."""
    rows, L, white = work.rows, work.L, work.white
    m, best, least = int(e[M]), 1.0, P[0, 0] + P[1, 1] + P[2, 2]
    for step in range(1, 50):
        omega = 0.02 * step
        innovation_nis(e, n, omega, work)
        trace = (P[0, 0] + P[1, 1] + P[2, 2]) / omega
        for i in range(3):
            for a in range(m):
                s = rows[4 + a, i] / omega
                for b in range(a):
                    s -= L[a, b] * white[b]
                white[a] = s / L[a, a]
                trace -= white[a] * white[a]
        if trace < least * (1.0 - 1e-9):
            best, least = omega, trace
    return best


@device_function
def inject_error(x: Floats, ix: Ints, clones: Floats, count: Ints, d: Floats) -> None:
    """Add the error d (n) to the nominal state and the clones."""
    for i in range(6):
        x[i] += d[i]
    rotate_quaternion(x[Q_:G_], d[6], d[7], d[8], 1.0)
    for i in range(6):
        x[G_ + i] += d[9 + i]
    for k, (place, size) in enumerate(
        ((CURRENT, 2), (CLOCK, 2), (SOUND, 1), (SCALE, 1), (SKEW, 3), (OFFSET, 1), (MOORING, 2))
    ):
        if ix[k] >= 0:
            for i in range(size):
                x[place + i] += d[ix[k] + i]
    for k in range(count[1]):
        o = count[0] + CLONE * k
        for i in range(3):
            clones[k, 1 + i] += d[o + i]
        rotate_quaternion(clones[k, 4:8], d[o + 3], d[o + 4], d[o + 5], 1.0)


@device_function
def gate_measurement(e: Floats, state: FilterArrays, ix: Ints, w: Floats, outcome: Floats, work: UpdateWork) -> float:
    """Test the measurement against the gate. If the depth of the bed is given, test a rejected acoustic path again as
    an echo.

    Return the weight of P for the measurement: 0 if it is rejected, negative if it contains no information. ``outcome``
    and ``work`` then belong to the accepted path or, if it is rejected, to the direct path.
    """
    n, m, kind, images = state.sizes[0] + CLONE * state.sizes[1], int(e[M]), int(e[KIND]), 1
    if not math.isnan(e[BED]) and (kind in (ROUND_TRIP, ONE_WAY)):
        images = 9 if kind == ROUND_TRIP else 3  # it may be an echo from the surface or the bed
    gate, omega, accepted = e[GATE] if e[GATE] > 0.0 else GATES[m], 1.0, -1
    for image in range(images):
        if not _innovation(e, state, ix, w, image, work):
            return -1.0
        if image == 0 and e[SHARED] > 0.0:
            omega = covariance_intersection(e, n, state.P, work)
            if omega == 1.0:
                return -1.0
        nis = innovation_nis(e, n, omega, work)
        if nis <= gate:
            accepted = image
            break
    if accepted < 0 and images > 1:
        # the direct path describes a rejected measurement; the last echo that was tested says nothing about the noise
        _innovation(e, state, ix, w, 0, work)
        nis = innovation_nis(e, n, omega, work)
    outcome[0], outcome[1] = 1.0 + accepted, nis
    for k in range(m):
        outcome[2 + k], outcome[6 + k] = work.white[k], work.y[k]
    return omega if accepted >= 0 else 0.0


@device_function
def adapt_noise(e: Floats, nis: float, adaptation: Floats, work: UpdateWork) -> None:
    """Adapt the factor of a sensor's noise variance to the innovation, so that the mean NIS approaches 1 per component.

    The NIS is clipped at the gate, so that an outlier has little effect. Innovations whose covariance consists mostly
    of the state's covariance have little weight, because they say little about the noise. ``work.S`` and ``work.noise``
    must belong to this measurement.
    """
    m, share = int(e[M]), 0.0
    for a in range(m):  # work.noise also contains second-order terms, which are uncertainty of the state
        share += adaptation[0] * e[NOISE + 5 * a] / work.S[a, a] / m
    count = adaptation[1] + 1.0
    excess = min(nis, GATES[m]) / (m * CLIPPED_MEANS[m]) - 1.0
    weight = max(1.0 / (ADAPTATION_FIRST + count), 1.0 / ADAPTATION_MEMORY)
    factor = adaptation[0] * (1.0 + weight * share * excess)
    adaptation[0], adaptation[1] = min(max(factor, ADAPTATION_LOW), ADAPTATION_HIGH), count


@device_function
def _nis_with_more_noise(e: Floats, n: int, more: float, work: UpdateWork) -> float:
    """Return the NIS after the noise covariance has been increased by ``more`` times the assumed noise covariance."""
    m = int(e[M])
    for a in range(m):
        for b in range(m):
            work.noise[a, b] += more * e[NOISE + 4 * a + b]
    return innovation_nis(e, n, 1.0, work)


@device_function
def soften_gate(e: Floats, n: int, adaptation: Floats, outcome: Floats, work: UpdateWork) -> float:
    """Accept a rejected measurement after all if the noise of its sensor is not yet well known, and if noise within the
    limit of the adaptation could explain the innovation. The noise of an accepted measurement is increased until the
    NIS equals the gate. Return 1 if the measurement is accepted, otherwise 0.

    Noise cannot explain an innovation that is large because of the uncertainty of the state: more noise then hardly
    reduces the NIS.
    """
    gate = e[GATE] if e[GATE] > 0.0 else GATES[int(e[M])]
    unknown = ADAPTATION_FIRST / (ADAPTATION_FIRST + adaptation[1])
    low, high = 0.0, (ADAPTATION_HIGH - adaptation[0]) * unknown
    if _nis_with_more_noise(e, n, high, work) > gate:
        return 0.0
    now = high
    for _ in range(SOFTENING_STEPS):  # the NIS falls with the noise
        middle = 0.5 * (low + high)
        if _nis_with_more_noise(e, n, middle - now, work) > gate:
            low = middle
        else:
            high = middle
        now = middle
    _nis_with_more_noise(e, n, high - now, work)
    outcome[0] = 1.0
    return 1.0


@device_function
def inflate_after_refusals(sensor: int, n: int, P: Floats, streak: Ints) -> None:
    """Inflate the covariance after many consecutive rejections, because the filter's state is then probably wrong."""
    streak[sensor] += 1
    if streak[sensor] >= REFUSALS:
        streak[sensor] = 0
        for i in range(n):
            for j in range(n):
                P[i, j] *= INFLATION


@device_function
def _gain(n: int, m: int, work: UpdateWork) -> None:
    """Write the Kalman gain P H^T S^-1 into ``work``."""
    rows, L, white = work.rows, work.L, work.white
    for i in range(n):
        for a in range(m):
            s = rows[4 + a, i]
            for b in range(a):
                s -= L[a, b] * white[b]
            white[a] = s / L[a, a]
        for a in range(m - 1, -1, -1):
            s = white[a]
            for b in range(a + 1, m):
                s -= L[b, a] * rows[8 + b, i]
            rows[8 + a, i] = s / L[a, a]


@device_function
def _joseph(e: Floats, n: int, m: int, omega: float, P: Floats, work: UpdateWork) -> None:
    """Update the covariance: P = (1 - K H) P (1 - K H)^T + K R K^T."""
    rows, noise, white = work.rows, work.noise, work.white
    for i in range(n):
        for a in range(m):
            gain = rows[8 + a, i]
            for j in range(n):
                P[i, j] -= gain * rows[4 + a, j]
    for i in range(n):
        for a in range(m):
            left = 0.0
            for j in range(n):
                left += P[i, j] * rows[a, j]
            for b in range(m):
                r = noise[b, a]
                if e[SHARED] > 0.0:
                    for c in range(3):
                        for d in range(3):
                            r += rows[b, c] * e[EXTRA + 3 * c + d] * rows[a, d] / (1.0 - omega)
                left -= rows[8 + b, i] * r
            white[a] = left
        for a in range(m):
            for j in range(n):
                P[i, j] -= white[a] * rows[8 + a, j]
    for i in range(n):
        for j in range(i):
            P[i, j] = P[j, i] = 0.5 * (P[i, j] + P[j, i])


@device_function
def update(
    e: Floats,
    state: FilterArrays,
    constants: FilterConstants,
    w: Floats,
    outcome: Floats,
    tape: Floats,
    work: UpdateWork,
) -> None:
    """Apply a measurement in Joseph's form if it passes the gate."""
    P, streak, rows, y, ix = state.P, state.streak, work.rows, work.y, constants.ix
    n, m = state.sizes[0] + CLONE * state.sizes[1], int(e[M])
    outcome[0], outcome[1] = -1.0, math.nan
    omega = gate_measurement(e, state, ix, w, outcome, work)
    if omega < 0.0:
        return
    if constants.adaptive and e[SHARED] == 0.0:
        adapt_noise(e, outcome[1], state.adaptation[int(e[SENSOR])], work)
        if omega == 0.0 and math.isnan(e[BED]):
            omega = soften_gate(e, n, state.adaptation[int(e[SENSOR])], outcome, work)
    if omega == 0.0:
        inflate_after_refusals(int(e[SENSOR]), n, P, streak)
        return
    streak[int(e[SENSOR])] = 0
    if omega < 1.0:
        for i in range(n):
            for j in range(n):
                P[i, j] /= omega
            for k in range(m):
                rows[4 + k, i] /= omega
    _gain(n, m, work)
    _joseph(e, n, m, omega, P, work)
    for i in range(n):
        rows[12, i] = 0.0
        for a in range(m):
            rows[12, i] += rows[8 + a, i] * y[a]
    inject_error(state.x, ix, state.clones, state.sizes, rows[12])
    if len(tape):
        _record_update(tape, state.sizes, n, m, work)


# ------------------------------------------------------------------ clones, tape


@device_function
def _record(tape: Floats, count: Ints, end: int, op: float) -> None:
    """Complete a record on the tape. The numbers of the record precede the index ``end``."""
    tape[end], tape[end + 1] = end - count[2], op
    count[2] = end + 2


@device_function
def _record_update(tape: Floats, count: Ints, n: int, m: int, work: UpdateWork) -> None:
    rows, L, y, at = work.rows, work.L, work.y, count[2]
    tape[at], tape[at + 1] = m, n
    at += 2
    for a in range(m):
        for i in range(n):
            tape[at + i], tape[at + n + i] = rows[a, i], rows[8 + a, i]
        at += 2 * n
        for b in range(m):
            tape[at + b] = L[a, b]
        tape[at + m] = y[a]
        at += m + 1
    _record(tape, count, at, TAPE_UPDATE)


@device_function
def drop_clone(k: int, state: FilterArrays, tape: Floats) -> None:
    """Remove the clone with the index k."""
    clones, count, P = state.clones, state.sizes, state.P
    n, o = count[0] + CLONE * count[1], count[0] + CLONE * k
    for i in range(o, n - CLONE):
        for j in range(n):
            P[i, j] = P[i + CLONE, j]
    for j in range(o, n - CLONE):
        for i in range(n):
            P[i, j] = P[i, j + CLONE]
    for c in range(k, count[1] - 1):
        for i in range(8):
            clones[c, i] = clones[c + 1, i]
    count[1] -= 1
    if len(tape):
        tape[count[2]], tape[count[2] + 1] = o, n
        _record(tape, count, count[2] + 2, TAPE_DROP)


@device_function
def clone_pose(number: float, state: FilterArrays, tape: Floats) -> None:
    """Clone the pose. If there is no room for another clone, remove the oldest one."""
    x, clones, count, P = state.x, state.clones, state.sizes, state.P
    if count[1] == len(clones):
        drop_clone(count[1] - len(clones), state, tape)
    o = count[0] + CLONE * count[1]
    for i in range(CLONE):
        source = i if i < 3 else i + 3
        for j in range(o):
            P[o + i, j] = P[source, j]
            P[j, o + i] = P[j, source]
    for i in range(CLONE):
        for j in range(CLONE):
            P[o + i, o + j] = P[i if i < 3 else i + 3, j if j < 3 else j + 3]
    clone = clones[count[1]]
    clone[0] = number
    for i in range(3):
        clone[1 + i] = x[i]
    for i in range(4):
        clone[4 + i] = x[Q_ + i]
    count[1] += 1
    if len(tape):
        tape[count[2]] = o
        _record(tape, count, count[2] + 1, TAPE_CLONE)


# ------------------------------------------------------------------ forward


@device_function
def apply_bookkeeping(e: Floats, state: FilterArrays, output: RunOutput) -> None:
    """Process an event other than a measurement: record the state (MARK), clone the pose (KEEP), remove a clone (DROP)."""
    x, clones, count, P, tape = state.x, state.clones, state.sizes, state.P, output.tape
    if e[KIND] == MARK:
        row, n = int(e[ID]), count[0] + CLONE * count[1]
        for a in range(NOMINAL):
            output.nodes[row, a] = x[a]
        for a in range(count[0]):
            for b in range(n):
                output.covariances[row, a, b] = P[a, b]
        if len(tape):
            tape[count[2]] = row
            _record(tape, count, count[2] + 1, TAPE_MARK)
    elif e[KIND] == KEEP:
        clone_pose(e[ID], state, tape)
    else:
        for c in range(count[1]):
            if clones[c, 0] == e[ID]:
                drop_clone(c, state, tape)
                break


@device_function
def propagate(state: FilterArrays, constants: FilterConstants, dt: float, work: MotionWork, tape: Floats) -> None:
    """Advance the state and its covariance by dt, with the rates and the specific force in ``memory``."""
    x, count, memory = state.x, state.sizes, state.memory
    F, moved, w, f = work.F, work.moved, work.w, work.f
    ix, noise, earth = constants.ix, constants.noise, constants.earth
    corrected_rates(x, memory, earth, w, f)
    if len(tape):
        at = count[2]
        tape[at] = dt
        for i in range(4):
            tape[at + 1 + i] = x[Q_ + i]
        for i in range(3):
            tape[at + 5 + i], tape[at + 8 + i] = w[i], f[i]
        _record(tape, count, count[2] + 11, TAPE_PROPAGATE)
    transition(x[Q_:G_], w, f, dt, earth, F, moved)
    propagate_covariance(state.P, count[0] + CLONE * count[1], dt, F, ix, noise, x[Q_:G_])
    propagate_state(x, w, dt, constants.gravity, earth, ix, noise, moved)
    memory[0] += dt


@kernel
def run(imu: Floats, events: Floats, state: FilterArrays, constants: FilterConstants, output: RunOutput) -> None:
    """Process samples and events in chronological order.

    Each row of ``imu`` (S, 7) contains the end time of a sample, and the mean specific force and mean rates in B since
    the previous sample. Three more columns, if present, replace the noise densities of the specific force during the
    sample. ``events`` has the shape (E, WIDTH).
    """
    x, memory, earth = state.x, state.memory, constants.earth
    density = constants.noise.copy()
    constants = FilterConstants(constants.ix, constants.gravity, earth, density, constants.adaptive)
    w, f, tape = np.zeros(3), np.zeros(3), output.tape
    motion = MotionWork(np.zeros((9, 3, 3)), np.empty((2, 3)), w, f)
    rows, noise, S, L = np.empty((13, state.P.shape[0])), np.empty((4, 4)), np.empty((4, 4)), np.zeros((4, 4))
    work = UpdateWork(rows, np.empty(4), noise, S, L, np.empty(4))
    turned, pushed = np.empty(3), np.empty(3)
    j = 0
    for k in range(len(imu) + 1):
        end = imu[k, 0] if k < len(imu) else memory[0]
        if k < len(imu):
            long = end - memory[1]
            force, rates = imu[k, 1:4], imu[k, 4:7]
            cross(memory[2:5], rates, turned)
            cross(memory[2:5], force, pushed)
            cross(memory[5:8], rates, f)
            for i in range(3):
                memory[RATES + i] = rates[i] + turned[i] / 12.0
                memory[FORCE + i] = force[i] + (pushed[i] + f[i]) / 12.0
                memory[2 + i], memory[5 + i] = rates[i] * long, force[i] * long
            memory[1] = end
            if imu.shape[1] > 7:
                density[ACCELEROMETER] = imu[k, 7]
                density[ACCELEROMETER_Y], density[ACCELEROMETER_Z] = imu[k, 8], imu[k, 9]
        while j < len(events) and events[j, T] <= end + 1e-9:
            e = events[j]
            dt = e[T] - memory[0]
            if dt > 1e-9:
                propagate(state, constants, dt, motion, tape)
            if e[KIND] <= DROP:  # not a measurement
                apply_bookkeeping(e, state, output)
            else:
                corrected_rates(x, memory, earth, w, f)
                update(e, state, constants, w, output.outcomes[j], tape, work)
            j += 1
        dt = end - memory[0]
        if dt > 1e-9:
            propagate(state, constants, dt, motion, tape)
