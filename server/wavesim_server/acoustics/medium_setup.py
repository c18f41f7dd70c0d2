"""Setup of the medium from a configuration, with its water, its nodes and their equipment."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.algebra import dot, interpolate, norm, pseudo_inverse
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.elementary import cos, exp, log10, power, sin
from wavesim_sdk.tables import RECEPTION, SENT
from wavesim_server.acoustics import medium_arrays, modems
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.types import Records
from wavesim_world.config import LoadedConfig, TransducerConfig
from wavesim_world.config.acoustics import Acoustics, BeamPattern, UsblHead
from wavesim_world.config.world import World
from wavesim_world.ocean import sound
from wavesim_world.ocean.bed import is_uneven, profile_depth, triangulated_bed
from wavesim_world.ocean.surface import sea_state
from wavesim_world.ocean.water import Water


def make_medium(
    loaded: LoadedConfig, water: Water, capacity: int, step: float, signals: int = 64, out: int = 4096
) -> Medium:
    """Create an empty medium from the acoustics of a configuration."""
    a, world = loaded.config.acoustics, loaded.config.world
    bottom = flat_bottom_depth(loaded)
    volume = sound.sound_speed_volume(loaded, water)
    mode = (
        medium_arrays.VOLUME
        if volume is not None
        else medium_arrays.ISOVELOCITY
        if a.profile == "constant"
        else medium_arrays.GRADIENT
        if a.profile == "gradient"
        else medium_arrays.RAYS
    )
    echoes = a.multipath is not None and a.multipath.order > 0
    if mode == medium_arrays.GRADIENT and echoes:
        mode = medium_arrays.RAYS
    rough = is_uneven(world)
    uneven = rough and (mode == medium_arrays.ISOVELOCITY or (mode == medium_arrays.RAYS and echoes))
    if volume is not None:
        z, c = volume.depths, volume.c.mean(axis=(0, 2, 3))
    else:
        z, c = sound.sound_speed_profile(
            loaded, water, profile_depth(loaded) if uneven and mode == medium_arrays.RAYS else bottom
        )
    each = echoes or a.sum != "first"  # every path is followed
    many = 1
    if mode == medium_arrays.ISOVELOCITY and a.multipath:
        many += 2 * a.multipath.order
    elif mode in (medium_arrays.RAYS, medium_arrays.VOLUME) and each:
        many = a.paths
    chunks, arriving = capacity * many * 2 + signals, 4 * capacity + 64
    rays = mode != medium_arrays.ISOVELOCITY
    m = medium_arrays.allocate_medium(
        nodes=capacity,
        signals=signals,
        emissions=capacity + 64,
        chunks=chunks,
        waiting=chunks * medium_arrays.CHUNK_SIZE,
        waiting_rays=chunks * medium_arrays.CHUNK_SIZE if rays else 0,
        candidates=arriving,
        kept_rays=arriving if rays else 0,
        hearings=4 * capacity + 64,
        events=8 * capacity + 1024,
        profile=len(z),
        pairs=pair_rows(capacity) if volume is not None else 0,
        field_times=len(volume.times) if volume is not None else 0,
        field_points=volume.c[0].size if volume is not None else 0,
        sent=256,
        noise_sources=capacity if any(b.radiated_noise for b in loaded.config.fleet.bodies) else 0,
        receptions=max(out, 2 * capacity + 2),
    )
    m.profile_z[:], m.profile_c[:] = z, c
    w = m.water[0]
    w.mode, w.speed, w.gradient, w.fastest = (
        mode,
        c[0] if mode != medium_arrays.ISOVELOCITY else a.sound_speed,
        a.gradient,
        c.max(),
    )
    if volume is not None:
        fill_sound_field(m, volume)
    w.spreading, w.bottom, w.order = a.spreading, bottom, a.multipath.order if a.multipath else 0
    w.max_range = a.max_range or math.inf
    w.paths, w.paths_per_node = a.paths, many
    if a.multipath is not None:
        b = a.multipath
        w.surface_loss, w.density_ratio, w.attenuation = b.surface_loss, b.bottom_density, b.bottom_attenuation
        at_bottom = interpolate(np.array([bottom]), z, c)[0] if uneven else c[-1]
        w.speed_ratio = (1.0 if volume is not None else at_bottom) / b.bottom_speed
        if b.surface in ("rough", "bubbles"):
            w.roughness, w.bubbles = surface_roughness(world, b.surface)
    w.summing = medium_arrays.PATH_SUMS.index(a.sum)
    o = world.obstacles
    fixed = o.block or o.pier or o.tunnel or o.mesh
    w.uneven = uneven
    w.blocking = a.blocking and bool(fixed or rough)
    w.faded, w.echoes, w.step = loaded.config.log.faded, echoes or mode >= medium_arrays.RAYS, step
    return m


def fill_sound_field(m: Medium, volume: sound.SoundSpeedVolume) -> None:
    """Copy the sound speeds of a volume into the sound field of a medium, in which the levels of each column are
    contiguous.
    """
    w = m.water[0]
    m.field_c[:] = volume.c.transpose(0, 2, 3, 1).reshape(len(volume.times), -1)
    m.field_times[:] = volume.times
    w.field_north, w.field_east = volume.origin
    w.field_step_north, w.field_step_east = volume.spacing
    w.field_columns_north, w.field_columns_east = volume.c.shape[2:]
    w.fastest = volume.c.max()


MAX_PAIR_ROWS = 131_072  #: maximum number of pairs of nodes whose rays are remembered


def pair_rows(nodes: int) -> int:
    """Return the number of rows for pairs of nodes: enough for all pairs, up to a maximum."""
    rows = 64
    while rows < min(nodes * nodes, MAX_PAIR_ROWS):
        rows *= 2
    return min(rows, MAX_PAIR_ROWS)


def surface_roughness(world: World, surface: str) -> tuple[float, float]:
    """Return (standard deviation of the surface in m, bubble loss) for the configured sea and wind (APL-UW 1994).

    Both values are arguments of :func:`wavesim_server.acoustics.ray_tubes.surface_loss`.
    """
    if surface == "rough":
        return 0.25 * sea_state(world.waves)[0], 0.0
    wind = world.wind.mean
    return 0.0, 1.26e-3 * power(max(wind, 6.0), 1.57) * exp(min(1.2 * (wind - 6.0), 0.0))


def flat_bottom_depth(loaded: LoadedConfig) -> float:
    """Return the depth of the flat bottom that echoes and profiles assume: the bed's depth at the origin, or the mean
    depth of the soundings.
    """
    t = triangulated_bed(loaded)
    return float(t.points[:, 2].mean()) if t is not None else loaded.config.world.bed.depth


def carrier_conditions(a: Acoustics, wind: float, frequency: float, band: float) -> tuple[float, float]:
    """Return (absorption in dB/m, noise in the band in dB) for a signal."""
    return sound.absorption(a, frequency), sound.noise_in_band(a, wind, frequency, band)


def beam_pattern(beam: BeamPattern) -> Floats:
    """Return the loss in dB of a beam pattern at each whole degree from its axis."""
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
        loss = -20.0 * log10(
            np.maximum(np.abs(np.where(x > 1e-6, 2.0 * bessel_j1(x) / np.maximum(x, 1e-9), 1.0)), 1e-6)
        )
        loss[91:] = beam.floor
    return np.asarray(np.clip(loss, 0.0, beam.floor if beam.pattern != "table" else np.inf))


def bessel_j1(x: Floats) -> Floats:
    """Return the Bessel function J1, computed as the mean of cos(a - x sin a) over a circle; this mean converges like a
    geometric series.
    """
    n = 40 + 2 * math.ceil(float(x.max()))
    a = 2.0 * math.pi / n * np.arange(n)
    return np.asarray(cos(a - x[:, None] * sin(a)).mean(axis=1))


def head_records(head: UsblHead, position: Sequence[float], assumed: float) -> tuple[Records, Records]:
    """Return the records for a hydrophone head and for its hydrophones.

    The records contain the positions p of the hydrophones relative to the transducer, and the least-squares
    solution for the slowness s of a plane wave, t = t0 + s p.
    """
    p = np.array([h.position for h in head.hydrophone])
    phones = np.zeros(medium_arrays.MAX_HYDROPHONES, medium_arrays.PHONE.dtype).view(np.recarray)
    solution, rank, directions = pseudo_inverse(p - p.mean(axis=0))
    n = len(p)
    phones.x[:n], phones.y[:n], phones.z[:n] = (p - np.array(position)).T
    phones.slowness_x[:n], phones.slowness_y[:n], phones.slowness_z[:n] = solution
    axis = np.array(head.axis) / norm(head.axis)
    if rank == 2:  # the side that the axis points to, normal to the plane
        normal = directions[2]
        axis = normal * (1.0 if dot(normal, axis) >= 0.0 else -1.0)
    made = medium_arrays.make_record(medium_arrays.HEAD)
    h = made[0]
    h.phones, h.rank, h.sound_speed = n, rank, assumed
    h.timing_noise, h.timing_resolution = head.timing_noise, head.timing_resolution
    h.axis_x, h.axis_y, h.axis_z = axis
    return made, phones


#: fields that a node copies from the fields of the same name in a transducer's configuration
_COPIED_FIELDS = (
    "listen_low", "listen_high", "threshold", "pulse", "band", "capture", "turn_around", "recharge", "deaf_in_recharge",
    "query", "reply", "tolerance", "source_level", "code", "query_code", "timing_noise", "timing_resolution",
    "level_noise", "doppler_noise", "drop_out", "outlier", "outlier_time", "self_noise", "self_noise_slope", "fluctuation",
    "carrier_sense",
)  # fmt: skip


class InstalledTransducer(NamedTuple):
    """A transducer with the values that it has in this run: the key of its random numbers, the offset (s) and drift of
    its clock, and the rows of its beam pattern, its hydrophone head and the curve of its modem (-1 = none).
    """

    transducer: TransducerConfig
    key: int
    clock: tuple[float, float]
    beam: int = -1
    head: int = -1
    curve: int = -1


def set_node(m: Medium, a: Acoustics, row: int, installed: InstalledTransducer, time: float) -> None:
    """Turn a row into a node, which can receive and send from now on."""
    t = installed.transducer
    m.counters[0].nodes += 1
    n = m.nodes[row]
    entry, emitted = n.entry + 1, n.emitted  # counters that continue from one transducer of a row to the next
    m.nodes[row] = 0
    n.active, n.entry, n.emitted, n.since, n.key = 1, entry, emitted, time, installed.key
    for name in _COPIED_FIELDS:
        n[name] = getattr(t, name)
    n.snr = t.snr if t.detection == "snr" else math.nan
    n.clock_offset, n.clock_drift = installed.clock
    n.sound_speed = a.sound_speed
    if t.modem is not None:
        b = t.modem
        n.address, n.modem_frequency, n.modem_band = b.address, b.frequency, b.bandwidth
        n.preamble, n.bit_error = b.preamble, b.bit_error
        n.modulation = zlib.crc32(b.modulation.encode())  # 0 for none
        n.bit_rate, n.curve = b.bit_rate, installed.curve + 1
        if (limit := modems.lowest_snr(b)) is not None:
            n.curve_snr = limit
    if t.pinger is not None:
        n.ping_period, n.ping_offset, n.ping_frequency = t.pinger.period, t.pinger.offset, t.pinger.frequency
        n.ping_duration, n.ping_band = t.pulse, t.band
    n.beam, n.head = installed.beam, installed.head
    if t.beam is not None:
        n.axis_x, n.axis_y, n.axis_z = np.array(t.beam.axis) / norm(t.beam.axis)
    n.sending_from = n.sending_until = n.ready = -math.inf
    n.first_hearing = -1
    n.asleep, n.asleep_after = t.listening == "asked", m.counters[0].last_id
    m.detected[row] = 0


def drop_node(m: Medium, row: int) -> None:
    """Remove the node of the given row, and the scheduled emissions of the node. Call this only between two ticks, when all events are in
    the wheel.
    """
    c = m.counters[0]
    c.nodes -= 1
    m.nodes[row].active = 0
    mine = (m.events.kind == medium_arrays.EMIT) & (m.events.node == row)
    for k in np.flatnonzero(mine).tolist():
        event = m.events[k]
        emission = int(event.subject)
        m.emissions[emission].next = c.free_emission
        c.free_emission = emission
        c.left_emissions += 1
        if event.next >= 0:
            m.events[event.next].previous = event.previous
        if event.previous >= 0:
            m.events[event.previous].next = event.next
        else:
            m.event_wheel[event.slot] = event.next
        event.kind, event.next = medium_arrays.NO_EVENT, c.free_event
        c.free_event = k
        c.left_events += 1


def planned_emissions(m: Medium) -> Ints:
    """Return the rows of the scheduled emissions."""
    rows: Ints = m.events.subject[m.events.kind == medium_arrays.EMIT]
    return rows


def take_channel_states(m: Medium) -> Any:
    """Return the changes of the channel at nodes with carrier sense since the last call, and empty their buffer."""
    c = np.asarray(m.counters)[0]
    changes = np.asarray(m.channel_states)[: c["channel_states"]].copy()
    c["channel_states"] = 0
    return changes


def take_records(m: Medium) -> tuple[Any, Any]:
    """Return (sent, receptions) since the last call, as records of the log's tables, and empty the buffers."""
    c = np.asarray(m.counters)[0]
    sent, receptions = np.asarray(m.sent)[: c["sent"]], np.asarray(m.receptions)[: c["receptions"]]
    c["sent"] = c["receptions"] = 0
    # NumPy copies bytes many times faster than records
    return sent.view(np.uint8).copy().view(SENT.dtype), receptions.view(np.uint8).copy().view(RECEPTION.dtype)
