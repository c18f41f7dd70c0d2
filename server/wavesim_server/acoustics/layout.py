"""The memory of the medium: its arrays, what each column means, and how they are filled from a configuration.

Sent signals and receptions are written straight into records of the log's tables: every column of these has 8
bytes, so one record seen as integers and as floats is all that the kernels need.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from wavesim_sdk.algebra import inner, interpolate, norm, pseudo_inverse
from wavesim_sdk.config import Loaded, Transducer
from wavesim_sdk.config.acoustics import Acoustics, Beam, Head
from wavesim_sdk.config.world import World
from wavesim_sdk.elementary import cos, exp, log10, power, sin
from wavesim_sdk.ocean import sound
from wavesim_sdk.ocean.bed import triangles
from wavesim_sdk.ocean.water import Water
from wavesim_sdk.tables import RECEPTION, SENT, Outcome, Table
from wavesim_server import pointers
from wavesim_server.acoustics import rays
from wavesim_server.environment import spectra

Array = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

MAX_SPEED = 50.0  #: bound on the speed of a node, m/s
PHONES = 8
DETECTED = 16  #: signals that a node remembers, to know their echoes
EMITTED = DETECTED + 1  #: beside them: how many it has sent
WHEEL = 4096  #: ticks ahead for which candidates have a place
PATHS = 16  #: paths to one node in a profile

# columns of a node: its electronics
(
    N_ACTIVE, N_LOW, N_HIGH, N_THRESHOLD, N_SNR, N_PULSE, N_BAND, N_CAPTURE, N_TAT, N_RECHARGE, N_DEAF, N_QUERY, N_REPLY,
    N_TOLERANCE, N_LEVEL, N_CODE, N_QUERY_CODE, N_TIMING, N_RESOLUTION, N_LEVEL_NOISE, N_DOPPLER_NOISE, N_DROP, N_OUTLIER,
    N_OUTLIER_TIME, N_SELF, N_SELF_SLOPE, N_OFFSET, N_DRIFT, N_ASSUMED, N_ADDRESS, N_M_FREQ, N_M_BAND, N_PREAMBLE,
    N_BIT_ERROR, N_BEAM, N_HEAD, N_P_PERIOD, N_P_OFFSET, N_P_FREQ, N_R_ALPHA, N_R_NOISE, N_M_ALPHA, N_M_NOISE, N_P_ALPHA,
    N_P_NOISE,
) = range(45)  # fmt: skip
# and its state: its last signal; when it entered
N_TX_START, N_TX_END, N_READY, N_SINCE, N_PINGS, N_ENTRY = range(45, 51)
NODE_COLUMNS = 51
# columns of a place: position, velocity (W), q_WB
PLACE = 10
# columns of an emission to come
E_FREQ, E_LEVEL, E_DURATION, E_BAND, E_ALPHA, E_NOISE, E_BITS, E_TAT, E_QT0 = range(9)
EI_QUERY, EI_QSOURCE, EI_KIND, EI_CODE, EI_TO, EI_REQUEST, EI_BYTES, EI_HANDLE, EI_ENTRY, EI_NEXT = range(10)
PINGER = -1  #: the request number of a node that pings by itself
# columns of a live signal: as an emission, then
S_T0, S_X, S_Y, S_Z, S_VX, S_VY, S_VZ, S_BEAM, S_AXIS, S_RMAX, S_CLOCK = 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 21
SIGNAL_COLUMNS = 22
# and its integers: as an emission's, then
I_ID, I_SOURCE, I_PENDING, I_COUNT, I_FROM = 10, 11, 12, 13, 14
SIGNAL_INTS = 15
RETIRE = -1  #: the node of the entry that ends a signal
# an entry of the wheel: signal, node, path, next, whether it is the first of its pair: its loss is recorded
W_SIGNAL, W_NODE, W_PATH, W_NEXT, W_FIRST = range(5)
# a reception under way, beside its record: next, node, free; floats: end, half of its band, bits
O_NEXT, O_NODE = range(2)
O_END, O_BAND, O_BITS, O_QT0, O_TAT, O_CLOCK, O_TIME, O_COUNT, O_REAL, O_IMAG = range(10)
# heap: sequence of events at one time, and what each is
END, EMISSION, EXACT = range(3)
H_KIND, H_KEY, H_A, H_B = range(4)
# counters
(
    C_HEAP, C_ID, C_SENT, C_HEARD, C_LIVE, C_OUT_SENT, C_OUT_REC, C_FREE_E, C_FREE_W, C_FREE_O, C_FREE_S, C_LEFT_E, C_LEFT_W,
    C_LEFT_O, C_NODES, COUNTERS,
) = range(16)  # fmt: skip
# return codes of an advance
OK, GROW, FLUSH = range(3)
# how sound travels
ISO, GRADIENT, RAYS = range(3)
# the water: columns of `sound`
(
    A_MODE, A_C, A_G, A_CMAX, A_SPREAD, A_FLOOR, A_BOTTOM, A_ORDER, A_SURFACE_LOSS, A_DENSITY, A_RATIO, A_ATTEN,
    A_BLOCK, A_FADED, A_ECHOES, A_SUM, A_ROUGH, A_BUBBLES, A_STEP,
) = range(19)  # fmt: skip
# what the level of a reception is when further paths of its signal arrive within it
SUMS = ("first", "incoherent", "coherent")
COHERENT = SUMS.index("coherent")


def _columns(table: Table) -> dict[str, int]:
    """Which 8 bytes of a record each column begins at."""
    return {name: int(of[1]) // 8 for name, of in (table.dtype.fields or {}).items()}


SENT_COLUMNS, RECEPTION_COLUMNS = _columns(SENT), _columns(RECEPTION)
(X_ID, X_SOURCE, X_QUERY, X_REQUEST, X_OUTCOME, X_KIND, X_CODE, X_FROM, X_TO, X_T0, X_CLOCK, X_BEYOND, X_FREQ, X_LEVEL,
 X_DURATION, X_ORIGIN, X_BYTES, X_HANDLE) = (
    SENT_COLUMNS[n]
    for n in ("id", "source", "query", "request", "outcome", "kind", "code", "from_address", "to_address", "emission_ns",
              "clock_ns", "out_of_reach", "frequency", "source_level", "duration", "origin_W", "payload_bytes", "payload")
)  # fmt: skip
(R_ID, R_SOURCE, R_RECEIVER, R_QUERY, R_QSOURCE, R_OUTCOME, R_KIND, R_CODE, R_FROM, R_TO, R_SURFACE, R_BOTTOM, R_T0,
 R_ARRIVAL, R_REPORTED, R_FREQ, R_DOPPLER, R_LEVEL, R_NOISE, R_DURATION, R_RANGE, R_DISTANCE, R_MEASURED, R_ONE_WAY,
 R_AZIMUTH, R_ELEVATION, R_HEARD_FREQ, R_HEARD_LEVEL, R_POSITION) = (
    RECEPTION_COLUMNS[n]
    for n in ("id", "source", "receiver", "query", "query_source", "outcome", "kind", "code", "from_address", "to_address",
              "surface", "bottom", "emission_ns", "arrival_ns", "reported_ns", "frequency", "doppler", "level", "noise",
              "duration", "range", "distance", "measured", "one_way", "azimuth", "elevation", "heard_frequency",
              "heard_level", "position_W")
)  # fmt: skip
SENT_WIDTH, RECEPTION_WIDTH = SENT.dtype.itemsize // 8, RECEPTION.dtype.itemsize // 8

HEARD, BELOW_THRESHOLD, FADED, OUT_OF_BAND, TRANSMITTING, RECHARGING, RECEIVER_LEFT, NOT_SENT = map(
    int, list(Outcome)[:8]
)
COLLISION, BLOCKED, SHADOW, ECHO, DROPPED, CORRUPT = map(int, list(Outcome)[8:])


class Medium(NamedTuple):
    """All arrays of the medium; one object so that kernels take it whole."""

    nodes: Array  # (capacity, NODE_COLUMNS)
    places: Array  # (2, capacity, PLACE): of the transducers, by the parity of the tick at whose end they hold
    axes: Array  # (capacity, 3): axis of the beam, B
    keys: Any  # (capacity,) uint64: stream of each node
    detected: Ints  # (capacity, DETECTED + 2): signals heard of late, the next place, how many were sent
    beams: Array  # (n, 181): loss by degrees from the axis
    heads: Array  # (n, PHONES, 6): hydrophone B, and its row of the pseudo-inverse
    head_data: Array  # (n, 8): hydrophones, rank, assumed c, noise, resolution, axis
    signals: Array
    signal_ids: Ints
    signal_keys: Any  # (n,) uint64: stream of the sender
    emissions: Array
    emission_ids: Ints
    wheel: Ints  # (WHEEL,): first entry of each tick
    entries: Ints  # (n, 5)
    angles: Array  # (n, 2): launch angle and travel time of an entry's ray, when it was last looked at
    first: Ints  # (capacity,): first reception under way at each node
    under_f: Array  # (n, width): receptions under way, as records
    under_i: Ints  # the same memory
    under: Array  # (n, 10)
    under_ids: Ints  # (n, 2)
    under_keys: Any  # (n,)
    times: Array  # heap
    heap: Ints  # (n, 4)
    counters: Ints
    sound: Array
    profile_z: Array
    profile_c: Array
    fan_angles: Array
    fan_widths: Array
    fan_classes: Ints
    fan_found: Array
    ray: Array
    points: Array  # (256, 3)
    none: Array  # (0, 2)
    sent_f: Array
    sent_i: Ints
    rec_f: Array
    rec_i: Ints


@nb.njit(cache=True, error_model="numpy", forceinline=True)
def _views(t: Any) -> Medium:
    return Medium(
        pointers.floats2(t, 0),  # nodes
        pointers.floats3(t, 1),  # places
        pointers.floats2(t, 2),  # axes
        pointers.words(t, 3),  # keys
        pointers.ints2(t, 4),  # detected
        pointers.floats2(t, 5),  # beams
        pointers.floats3(t, 6),  # heads
        pointers.floats2(t, 7),  # head_data
        pointers.floats2(t, 8),  # signals
        pointers.ints2(t, 9),  # signal_ids
        pointers.words(t, 10),  # signal_keys
        pointers.floats2(t, 11),  # emissions
        pointers.ints2(t, 12),  # emission_ids
        pointers.ints(t, 13),  # wheel
        pointers.ints2(t, 14),  # entries
        pointers.floats2(t, 15),  # angles
        pointers.ints(t, 16),  # first
        pointers.floats2(t, 17),  # under_f
        pointers.ints2(t, 18),  # under_i
        pointers.floats2(t, 19),  # under
        pointers.ints2(t, 20),  # under_ids
        pointers.words(t, 21),  # under_keys
        pointers.floats(t, 22),  # times
        pointers.ints2(t, 23),  # heap
        pointers.ints(t, 24),  # counters
        pointers.floats(t, 25),  # sound
        pointers.floats(t, 26),  # profile_z
        pointers.floats(t, 27),  # profile_c
        pointers.floats(t, 28),  # fan_angles
        pointers.floats2(t, 29),  # fan_widths
        pointers.ints(t, 30),  # fan_classes
        pointers.floats2(t, 31),  # fan_found
        pointers.floats(t, 32),  # ray
        pointers.floats2(t, 33),  # points
        pointers.floats2(t, 34),  # none
        pointers.floats2(t, 35),  # sent_f
        pointers.ints2(t, 36),  # sent_i
        pointers.floats2(t, 37),  # rec_f
        pointers.ints2(t, 38),  # rec_i
    )


#: the medium from the table of its addresses, inside a kernel
views: Any = (lambda m: m) if pointers.PLAIN else _views


def _twins(n: int, width: int) -> tuple[Array, Ints]:
    block = np.zeros((n, width))
    return block, block.view(np.int64)


def _chain(ids: Ints, column: int, start: int) -> None:
    """Chain the rows from ``start`` on as free."""
    ids[start:, column] = np.arange(start + 1, len(ids) + 1)


def create(loaded: Loaded, water: Water, capacity: int, step: float, signals: int = 64, out: int = 4096) -> Medium:
    """An empty medium for the acoustics of a configuration."""
    a, world = loaded.config.acoustics, loaded.config.world
    bottom = deepest(loaded)
    z, c = sound.profile(loaded, water, bottom)
    mode = ISO if a.profile == "constant" else GRADIENT if a.profile == "gradient" else RAYS
    echoes = a.multipath is not None and a.multipath.order > 0
    if mode == GRADIENT and echoes:
        mode = RAYS
    each = echoes or a.sum != "first"  # every path is followed
    many = 1 + (2 * a.multipath.order if a.multipath else 0) if mode == ISO else PATHS if mode == RAYS and each else 1
    entries = capacity * many * 2 + signals
    under_f, under_i = _twins(4 * capacity + 64, RECEPTION_WIDTH)
    sent_f, sent_i = _twins(256, SENT_WIDTH)
    rec_f, rec_i = _twins(max(out, 2 * capacity + 2), RECEPTION_WIDTH)
    m = Medium(
        np.zeros((capacity, NODE_COLUMNS)),
        np.zeros((2, capacity, PLACE)),
        np.zeros((capacity, 3)),
        np.zeros(capacity, np.uint64),
        np.zeros((capacity, DETECTED + 2), np.int64),
        np.zeros((0, 181)),
        np.zeros((0, PHONES, 6)),
        np.zeros((0, 8)),
        np.zeros((signals, SIGNAL_COLUMNS)),
        np.zeros((signals, SIGNAL_INTS), np.int64),
        np.zeros(signals, np.uint64),
        np.zeros((capacity + 64, 9)),
        np.zeros((capacity + 64, EI_NEXT + 1), np.int64),
        np.full(WHEEL, -1, np.int64),
        np.zeros((entries, 5), np.int64),
        np.zeros((entries, 2)),
        np.full(capacity, -1, np.int64),
        under_f,
        under_i,
        np.zeros((len(under_f), O_IMAG + 1)),
        np.zeros((len(under_f), 2), np.int64),
        np.zeros(len(under_f), np.uint64),
        np.zeros(8 * capacity + 1024),
        np.zeros((8 * capacity + 1024, 4), np.int64),
        np.zeros(COUNTERS, np.int64),
        np.zeros(A_STEP + 1),
        z,
        c,
        np.zeros(rays.ANGLES + 8),
        np.zeros((rays.ANGLES + 8, 4)),
        np.zeros(rays.ANGLES + 8, np.int64),
        np.zeros((PATHS, 4)),
        np.zeros(rays.RAY),
        np.zeros((256, 3)),
        np.zeros((0, 2)),
        sent_f,
        sent_i,
        rec_f,
        rec_i,
    )
    for ids, column, left in (
        (m.emission_ids, EI_NEXT, C_LEFT_E),
        (m.entries, W_NEXT, C_LEFT_W),
        (m.under_ids, O_NEXT, C_LEFT_O),
        (m.signal_ids, I_PENDING, -1),
    ):
        _chain(ids, column, 0)
        if left >= 0:
            m.counters[left] = len(ids)
    s = m.sound
    s[A_MODE], s[A_C], s[A_G], s[A_CMAX] = mode, c[0] if mode != ISO else a.sound_speed, a.gradient, c.max()
    s[A_SPREAD], s[A_BOTTOM], s[A_ORDER] = a.spreading, bottom, a.multipath.order if a.multipath else 0
    if a.multipath is not None:
        b = a.multipath
        s[A_SURFACE_LOSS], s[A_DENSITY], s[A_ATTEN] = b.surface_loss, b.bottom_density, b.bottom_attenuation
        s[A_RATIO] = c[-1] / b.bottom_speed
        if b.surface != "flat":
            s[A_ROUGH], s[A_BUBBLES] = roughness(world, b.surface)
    s[A_SUM] = SUMS.index(a.sum)
    o = world.obstacles
    fixed = o.block or o.pier or o.tunnel or o.mesh
    rough = world.soundings is not None or world.bed.bump or world.bed.slope_north or world.bed.slope_east
    s[A_BLOCK] = float(a.blocking and bool(fixed or rough))
    s[A_FADED], s[A_ECHOES], s[A_STEP] = float(loaded.config.log.faded), float(echoes or mode == RAYS), step
    return m


def roughness(world: World, surface: str) -> tuple[float, float]:
    """What :func:`wavesim_server.acoustics.tubes.surface_loss` needs of the sea as it is configured: standard deviation of
    the surface in m, bubbles by the wind (APL-UW 1994)."""
    if surface == "rough":
        return 0.25 * spectra.sea_state(world.waves)[0], 0.0
    wind = world.wind.mean
    return 0.0, 1.26e-3 * power(max(wind, 6.0), 1.57) * exp(min(1.2 * (wind - 6.0), 0.0))


def deepest(loaded: Loaded) -> float:
    """Depth of the flat bottom that echoes and profiles know: of the bed at the origin (the mean of soundings)."""
    t = triangles(loaded)
    return float(t.points[:, 2].mean()) if t is not None else loaded.config.world.bed.depth


_GROWING = (
    "signals", "signal_ids", "signal_keys", "emissions", "emission_ids", "entries", "angles", "under_f", "under",
    "under_ids", "under_keys", "times", "heap",
)  # fmt: skip


def grown(m: Medium) -> Medium:
    """The same medium with twice the room for signals, emissions and events."""
    new: dict[str, Any] = {n: np.concatenate([a := getattr(m, n), np.zeros_like(a)]) for n in _GROWING}
    new["under_i"] = new["under_f"].view(np.int64)
    grown_ = m._replace(**new)
    for name, column, left, free in (
        ("emission_ids", EI_NEXT, C_LEFT_E, C_FREE_E),
        ("entries", W_NEXT, C_LEFT_W, C_FREE_W),
        ("under_ids", O_NEXT, C_LEFT_O, C_FREE_O),
        ("signal_ids", I_PENDING, -1, C_FREE_S),
    ):
        ids, old = new[name], len(getattr(m, name))
        _chain(ids, column, old)
        ids[-1, column] = m.counters[free]  # the old free rows come after the new
        m.counters[free] = old
        if left >= 0:
            m.counters[left] += old
    return grown_


def carriers(a: Acoustics, wind: float, frequency: float, band: float) -> tuple[float, float]:
    """(absorption dB/m, noise in band dB) of a signal."""
    return sound.absorption(a, frequency), sound.noise_in_band(a, wind, frequency, band)


def pattern(beam: Beam) -> Array:
    """Loss in dB by whole degrees from the axis."""
    angle = np.radians(np.arange(181))
    if beam.pattern == "table":
        rows = np.array(beam.rows).reshape(-1, 2)
        loss = interpolate(np.arange(181), rows[:, 0], rows[:, 1])
    elif beam.pattern == "toroid":
        exponent = -0.15 / log10(cos(beam.width / 2))
        loss = -20.0 * exponent * log10(np.maximum(sin(angle), 1e-6))
    else:
        # a disc: 2 J1(x)/x, x = ka sin; -3 dB at x = 1.61634
        x = 1.6163399561 / sin(min(beam.width / 2, math.pi / 2)) * sin(angle)
        loss = -20.0 * log10(np.maximum(np.abs(np.where(x > 1e-6, 2.0 * j1(x) / np.maximum(x, 1e-9), 1.0)), 1e-6))
        loss[91:] = beam.floor
    return np.asarray(np.clip(loss, 0.0, beam.floor if beam.pattern != "table" else np.inf))


def j1(x: Array) -> Array:
    """Bessel's J1 by the mean of cos(a - x sin a) over a circle, which converges like a geometric series."""
    n = 40 + 2 * math.ceil(float(x.max()))
    a = 2.0 * math.pi / n * np.arange(n)
    return np.asarray(cos(a - x[:, None] * sin(a)).mean(axis=1))


def head_rows(head: Head, position: Any, assumed: float) -> tuple[Array, Array]:
    """Rows of ``heads`` and ``head_data``: hydrophones from the transducer, with the least-squares
    solution of t = t0 + s p for s."""
    p = np.array([h.position for h in head.hydrophone])
    rows = np.zeros((PHONES, 6))
    solution, rank, directions = pseudo_inverse(p - p.mean(axis=0))
    rows[: len(p), :3] = p - np.array(position)
    rows[: len(p), 3:] = solution.T
    axis = np.array(head.axis) / norm(head.axis)
    if rank == 2:  # the side to which the axis points, normal to the plane
        normal = directions[2]
        axis = normal * (1.0 if inner(normal, axis) >= 0.0 else -1.0)
    return rows, np.array([len(p), rank, assumed, head.timing_noise, head.timing_resolution, *axis])


def set_node(
    m: Medium, a: Acoustics, row: int, t: Transducer, time: float, key: int, clock: tuple[float, float], beam: int,
    head: int,
) -> None:  # fmt: skip
    """Make a row a node that can hear and send from now on; ``clock`` is its (offset, drift), ``beam`` and ``head`` are
    rows of those tables, -1 for none."""
    n = m.nodes[row]
    m.counters[C_NODES] += 1
    entry = n[N_ENTRY] + 1.0
    n[:] = 0.0
    n[N_ENTRY] = entry
    n[N_ACTIVE], n[N_LOW], n[N_HIGH], n[N_THRESHOLD] = 1.0, t.listen_low, t.listen_high, t.threshold
    n[N_SNR] = t.snr if t.detection == "snr" else math.nan
    n[N_PULSE], n[N_BAND], n[N_CAPTURE], n[N_TAT], n[N_RECHARGE] = t.pulse, t.band, t.capture, t.turn_around, t.recharge
    n[N_DEAF], n[N_QUERY], n[N_REPLY], n[N_TOLERANCE] = float(t.deaf_in_recharge), t.query, t.reply, t.tolerance
    n[N_LEVEL], n[N_CODE], n[N_QUERY_CODE] = t.source_level, t.code, t.query_code
    n[N_TIMING], n[N_RESOLUTION], n[N_LEVEL_NOISE] = t.timing_noise, t.timing_resolution, t.level_noise
    n[N_DOPPLER_NOISE], n[N_DROP], n[N_OUTLIER], n[N_OUTLIER_TIME] = (
        t.doppler_noise,
        t.drop_out,
        t.outlier,
        t.outlier_time,
    )
    n[N_SELF], n[N_SELF_SLOPE] = t.self_noise, t.self_noise_slope
    n[N_OFFSET], n[N_DRIFT], n[N_ASSUMED] = clock[0], clock[1], a.sound_speed
    if t.modem is not None:
        b = t.modem
        n[N_ADDRESS], n[N_M_FREQ], n[N_M_BAND] = b.address, b.frequency, b.bandwidth
        n[N_PREAMBLE], n[N_BIT_ERROR] = b.preamble, b.bit_error
    if t.pinger is not None:
        n[N_P_PERIOD], n[N_P_OFFSET], n[N_P_FREQ] = t.pinger.period, t.pinger.offset, t.pinger.frequency
    n[N_BEAM], n[N_HEAD] = beam, head
    if t.beam is not None:
        m.axes[row] = np.array(t.beam.axis) / norm(t.beam.axis)
    n[N_TX_START] = n[N_TX_END] = n[N_READY] = -math.inf
    n[N_SINCE] = time
    m.keys[row], m.first[row], m.detected[row, :EMITTED] = key, -1, 0


def drop_node(m: Medium, row: int) -> None:
    """The node of a row falls silent and deaf; what it had planned to send is forgotten."""
    m.counters[C_NODES] -= 1
    m.nodes[row, N_ACTIVE] = 0.0
    n = int(m.counters[C_HEAP])
    heap, times = m.heap[:n], m.times[:n]
    mine = (heap[:, H_KIND] == EMISSION) & (heap[:, H_B] == row)
    if not mine.any():
        return
    for e in heap[mine, H_A]:
        m.emission_ids[e, EI_NEXT] = m.counters[C_FREE_E]
        m.counters[C_FREE_E] = e
        m.counters[C_LEFT_E] += 1
    order = np.flatnonzero(~mine)
    order = order[np.lexsort((heap[order, H_KEY], heap[order, H_KIND], times[order]))]  # sorted, it is a heap
    m.counters[C_HEAP] = left = len(order)
    m.times[:left], m.heap[:left] = times[order], heap[order]


def planned(m: Medium) -> Ints:
    """Rows of the emissions to come."""
    heap = m.heap[: int(m.counters[C_HEAP])]
    return heap[heap[:, H_KIND] == EMISSION, H_A]


def take_records(m: Medium) -> tuple[Any, Any]:
    """(sent, receptions) since the last call, as records of the log's tables; empties the buffers."""
    ns, nr = int(m.counters[C_OUT_SENT]), int(m.counters[C_OUT_REC])
    m.counters[C_OUT_SENT] = m.counters[C_OUT_REC] = 0
    return m.sent_f[:ns].copy().view(SENT.dtype)[:, 0], m.rec_f[:nr].copy().view(RECEPTION.dtype)[:, 0]
