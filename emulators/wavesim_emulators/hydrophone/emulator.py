"""Emulator of hydrophones: it collects the fronts that the engine computes, and writes the samples as blocks.

A block is made as soon as all fronts that it needs are known, which is a little more than the interval between two
fronts after its last sample. The first block of a hydrophone ends there, and may be shorter than the others; each
further block has the length that the configuration states and begins where the last one ended. The number of its first
sample is in the table of values, so that a process that takes over continues without a gap. Samples are a function of
the fronts and of their numbers; they do not depend on the process.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from wavesim_emulators.base import Batch
from wavesim_emulators.hydrophone.replay import ReplayChannel
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, SampleBlock, SeaSettings, Spectrum
from wavesim_emulators.hydrophone.synthesis import Synthesiser, can_be_heard, load_kernels
from wavesim_emulators.sonar.frame_emulator import FrameEmulator, euler_of
from wavesim_kernels import randomness
from wavesim_sdk import imaging_frames as frames
from wavesim_sdk.arrays import Array, Record
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.elementary import log10
from wavesim_sdk.errors import AttachError
from wavesim_sdk.front_rings import WAVEFORMS
from wavesim_sdk.front_tables import FRONT_INTERVAL_S, RADIATED_NOISE, FrontBatch, StoredSound
from wavesim_sdk.tables import SensorFault
from wavesim_world.config import LoadedConfig
from wavesim_world.config import replay_checks as replays
from wavesim_world.config.hydrophone import HydrophoneArrayConfig as Declared
from wavesim_world.ocean import measured_channels, sound

SLACK = 2  #: samples by which the first block ends earlier than it might, so that rounding delays none of the others
MAX_BLOCKS = 64  #: maximum number of blocks that a process makes up for at once
UNPLACED_FRONTS = 65_536  #: maximum number of fronts that are kept for a hydrophone before its first block


class HydrophoneReceiver(NamedTuple):
    """A hydrophone in use: what identifies it, its synthesiser, and the constant part of its record."""

    identity: tuple[int, int]  #: generation of the instrument, and key of its random numbers
    synthesiser: Synthesiser
    record: Any
    channels: dict[str, ReplayChannel]  #: measured channels to this hydrophone, by the body that transmits


class HydrophoneEmulator(FrameEmulator):
    """Emulator that synthesises the samples of all hydrophones."""

    sensor = "hydrophone"
    needs_fronts = True
    needs_all_bodies = False

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self._take: Callable[[], FrontBatch] | None = None
        self._receivers: dict[int, HydrophoneReceiver] = {}  # by row of the table
        self._rows = loaded.sensor_rows.get(self.sensor, 1)
        #: fronts of hydrophones that have no block yet, with the numbers of their groups of elements, by row and generation
        self._unplaced: dict[tuple[int, int], list[tuple[int, Record]]] = {}
        self._generations: dict[int, int] = {}  # generation of the hydrophone in each row
        self._waveforms: OrderedDict[int, Record] = OrderedDict()  # the newest waveforms, by signal
        self._sounds: dict[int, StoredSound] = {}  # sounds to which these waveforms refer, by number
        #: the values of each hydrophone and the tick at which they were measured, for a second call at this tick
        self._measured: dict[int, tuple[int, Any]] = {}
        self._sources: dict[int, str] = {}  # name of the body that transmits each signal, if it has a measured channel
        self._channels = replay_channels(loaded)
        self._replaying = {r.source for r in loaded.config.acoustics.replay}
        self.lost = 0  #: number of records that were lost before they were used
        self._counted: dict[int, int] = {}  # number of lost records that the table of each hydrophone already counts

    def connect(self, take: Callable[[], FrontBatch]) -> None:
        self._take = take

    @classmethod
    def load_kernels(cls) -> None:
        super().load_kernels()
        load_kernels()

    def warm_up(self) -> None:
        load_kernels()

    def begin(self, view: FleetSnapshot, weather: Any) -> None:
        if self._take is None:
            raise AttachError("call connect() with the source of the fronts before the first tick")
        batch = self._take()
        if batch.is_restarted:
            self._receivers.clear()
            self._unplaced.clear()
            self._generations.clear()
            self._waveforms.clear()
            self._sources.clear()
            self._sounds.clear()
            self._measured.clear()
        self._forget_replaced(view)
        self.lost += batch.lost
        self._take_waveforms(view, batch)
        for receiver, generation in np.unique(batch.fronts[["receiver", "generation"]]).tolist():
            is_own = (batch.fronts["receiver"] == receiver) & (batch.fronts["generation"] == generation)
            self._add_fronts(receiver, generation, batch.fronts[is_own])

    def _add_fronts(self, receiver: int, generation: int, fronts: Record) -> None:
        """Add the fronts of a group of elements of a hydrophone, unless another hydrophone now uses its row."""
        group, place = divmod(receiver, self._rows)
        known = self._receivers.get(place)
        if known is not None and known.identity[0] == generation:
            known.synthesiser.add_fronts(fronts, group)
        elif generation >= self._generations.get(place, 0):
            kept = self._unplaced.setdefault((place, generation), [])
            kept.append((group, fronts))
            while sum(len(records) for _, records in kept) > UNPLACED_FRONTS:
                self.lost += len(kept.pop(0)[1])

    def _take_waveforms(self, view: FleetSnapshot, batch: FrontBatch) -> None:
        """Keep the new waveforms and sounds, and give them to the hydrophones."""
        if not len(batch.waveforms):
            return
        for record in batch.waveforms:
            self._waveforms[int(record["signal"])] = record
            if self._replaying and record["kind"] != RADIATED_NOISE:
                source = bytes(view.identity["name"][int(record["source"])]).decode()
                if source in self._replaying:
                    self._sources[int(record["signal"])] = source
        while len(self._waveforms) > WAVEFORMS:
            self._sources.pop(self._waveforms.popitem(last=False)[0], None)
        if batch.sounds or self._sounds:
            self._sounds |= {played.number: played for played in batch.sounds}
            now = 1e-9 * batch.time_ns
            heard = {int(r["samples"]) for r in self._waveforms.values() if can_be_heard(r, now)}
            self._sounds = {n: played for n, played in self._sounds.items() if n in heard}
        for receiver in self._receivers.values():
            self._add_waveforms(receiver, batch.waveforms, batch.sounds)

    def _add_waveforms(self, receiver: HydrophoneReceiver, records: Record, sounds: Iterable[StoredSound]) -> None:
        """Add sounds and waveforms to a hydrophone, and the measured channels through which it hears them."""
        for played in sounds:
            receiver.synthesiser.add_samples(played.number, played.samples, played.sampling)
        receiver.synthesiser.add_waveforms(records)
        for signal in records["signal"].tolist() if receiver.channels else ():
            if (channel := receiver.channels.get(self._sources.get(signal, ""))) is not None:
                receiver.synthesiser.replay(signal, channel)

    def _forget_replaced(self, view: FleetSnapshot) -> None:
        """Forget the hydrophones whose row another one now uses."""
        entries = view.tables["instruments"]
        mine = entries[(entries["body"] >= 0) & (entries["type"] == self.sensor.encode())]
        for place, generation in zip(mine["place"].tolist(), mine["generation"].tolist(), strict=True):
            if self._generations.setdefault(place, generation) != generation:
                self._generations[place] = generation
                self._counted[place] = self.lost
                for known in (self._receivers, self._measured):
                    known.pop(place, None)
                for key in [k for k in self._unplaced if k[0] == place and k[1] < generation]:
                    del self._unplaced[key]

    def measure(self, now: Batch, out: Record) -> None:
        keys, mounted, c = now.noise.streams("frames"), now.mounted, now.parameters
        R_WS = np.broadcast_to(mounted.R_WS, (len(now), 3, 3))
        for i, place in enumerate(now.table_rows.tolist()):
            if self._measured.get(place, (-1,))[0] == now.tick and not self.is_instant:
                out[i] = self._measured[place][1]  # each block is written once, also with a fault
                continue
            receiver = self._receiver(now, i, place, int(out["generation"][i]), int(keys[i]))
            hears, record = receiver.synthesiser, receiver.record
            first, end = int(out["next"][i]), self._available(hears, now.time)
            if out["frame"][i] == 0:
                start = hears.first_after(0.0)  # the clock may show any time when the run starts
                end -= SLACK
                first = max(start, self._available(hears, now.time - self._period_s(now)) - SLACK)
                if self.is_instant:
                    first = max(start, end - c.block_samples)
            elif end - first > MAX_BLOCKS * c.block_samples:
                first = end - MAX_BLOCKS * c.block_samples
            record["time_ns"], record["p_WS_W"] = now.time_ns, mounted.p_WS_W[i]
            record["v_WS_W"], record["euler"] = mounted.v_WS_W[i], euler_of(R_WS[i])
            louder = float(now.fault_amount[i]) if now.fault[i] == SensorFault.NOISY else 1.0
            count = min(end - first, c.block_samples) if out["frame"][i] == 0 else c.block_samples
            while 0 < count <= end - first:
                block = hears.block(first, count, louder)
                samples, clipped = block.samples, int(np.sum(block.clipped))
                if now.depth[i] <= 0.0:
                    samples, clipped = np.zeros_like(samples), 0
                record["ping_ns"] = round(first * 1e9 / c.sampling)
                record["bins"], record["saturated"] = count, clipped
                out["frame"][i] = self.write(place, record, samples.tobytes())
                out["channels"][i], out["samples"][i] = len(samples), count
                out["level"][i], out["clipped"][i] = level(samples, block), record["saturated"]
                out["replayed"][i], out["refused"][i] = hears.replayed, hears.refused
                first, count = first + count, c.block_samples
            out["next"][i] = first
            out["lost_count"][i] += self.lost - self._counted.get(place, 0)
            out["lost"][i] = out["lost_count"][i]
            self._counted[place] = self.lost
            if out["frame"][i] == 0:
                out["valid"][i] = 0
            self._measured[place] = now.tick, out[i].copy()

    def _period_s(self, now: Batch) -> float:
        return now.period * self.loaded.config.time.step

    def _available(self, hears: Synthesiser, time: float) -> int:
        """Return the number of the first sample that cannot be made yet at a simulation time."""
        return hears.first_after(time - hears.lookahead)

    def _receiver(self, now: Batch, i: int, place: int, generation: int, key: int) -> HydrophoneReceiver:
        known = self._receivers.get(place)
        if known is not None and known.identity[0] == generation:
            if known.identity[1] != key:  # another seed of a frame at any time
                known.synthesiser.restart_noise(key)
                known = self._receivers[place] = known._replace(identity=(generation, key))
        else:
            c = now.parameters
            noise = float(now.noise.scale[i])
            body, name = self.names_of(now, i, place)
            entity = f"{body.decode()}.{name.decode()}"
            synthesiser = Synthesiser(
                settings_of(
                    c, self.loaded.config.time.step, randomness.key(self.loaded.config.seed, entity, "channels")
                ),
                sea_settings(self.loaded, c, key, noise),
            )
            if self.is_instant:
                synthesiser.overlap = 1.01 * c.block_samples / c.sampling  # with the drift of the clock
            known = self._receivers[place] = HydrophoneReceiver(
                (generation, key),
                synthesiser,
                describe(c, body, name, generation),
                self._channels.get((body.decode(), name.decode()), {}),
            )
            if self._waveforms:
                self._add_waveforms(known, np.stack(list(self._waveforms.values())), self._sounds.values())
            for group, fronts in self._unplaced.pop((place, generation), ()):
                synthesiser.add_fronts(fronts, group)
        return known


def replay_channels(loaded: LoadedConfig) -> dict[tuple[str, str], dict[str, ReplayChannel]]:
    """Return the measured channels as {(body, hydrophone): {transmitting body: channel}}.

    Raises ConfigError if a file is invalid or cannot carry the signals that the configuration declares.
    """
    found: dict[tuple[str, str], dict[str, ReplayChannel]] = {}
    for replay in loaded.config.acoustics.replay:
        channel = measured_channels.read_replay(loaded, replay)
        made = ReplayChannel(channel, measured_channels.start_of(replay), replay.level == "file")
        for instrument in replays.hydrophones(loaded, replay):
            listener = replay.receiver.partition(".")[0], instrument.name
            found.setdefault(listener, {})[replay.source] = made
    return found


def settings_of(c: Declared, step: float, key: int = 0) -> HydrophoneSettings:
    """Return the settings of a configured hydrophone for the synthesis; ``step`` is the time step in s, and ``key`` the
    key of the random errors of its channels.
    """
    channels = np.arange(len(c.element_positions))
    errors = [np.clip(randomness.normal(np.array(key, np.uint64), channels, k), -4.0, 4.0) for k in (0, 1)]
    return HydrophoneSettings(
        elements=len(c.element_positions),
        sampling=c.sampling,
        sensitivity=c.sensitivity,
        gain=c.gain,
        low=c.low,
        high=c.band[1],
        bits=c.bits,
        full_scale=c.full_scale,
        clock_offset=c.clock_offset,
        clock_drift=c.clock_drift,
        gains=tuple((c.gain_deviation * errors[0]).tolist()) if c.gain_deviation else (),
        delays=tuple((c.delay_deviation * errors[1]).tolist()) if c.delay_deviation else (),
        interval=max(step, FRONT_INTERVAL_S),
    )


def sea_settings(loaded: LoadedConfig, c: Declared, key: int, factor: float) -> SeaSettings:
    """Return the properties of the sea for a configured hydrophone; ``factor`` is its noise factor."""
    a = loaded.config.acoustics
    noise = noise_spectrum(loaded, c, factor)
    made = SeaSettings(key, noise, absorption_spectrum(loaded), spreading=a.spreading or 20.0)
    if noise is None:
        return made
    if a.shrimp > 0.0:
        level = a.shrimp + 20.0 * float(log10(factor))
        made = made._replace(shrimp=lambda f: sound.shrimp_noise(f, level), shrimp_alpha=a.shrimp_alpha)
    if c.coherent:
        p = np.array(c.element_positions)
        d = p[:, np.newaxis] - p
        made = made._replace(spacing=np.sqrt((d * d).sum(axis=-1)) / a.sound_speed)
    return made


def noise_spectrum(loaded: LoadedConfig, c: Declared, factor: float) -> Spectrum | None:
    """Return the spectrum level of the ambient noise in dB re 1 uPa^2/Hz as a function of the frequency in Hz, or None.

    With the constant noise model, the noise is white, and its level in the band of the hydrophone is the configured
    level. ``factor`` is the noise factor of the instrument.
    """
    a = loaded.config.acoustics
    if not c.ambient or factor <= 0.0:
        return None
    more = 20.0 * float(log10(factor))
    if a.noise_model == "constant":
        white = a.ambient_noise - 10.0 * float(log10(c.band[1] - c.low)) + more
        return lambda frequency: white
    wind = loaded.config.world.wind.mean
    return lambda frequency: sound.ambient_noise(frequency, a.shipping, wind, a.rain) + more


def absorption_spectrum(loaded: LoadedConfig) -> Spectrum | None:
    """Return the absorption in dB/m as a function of the frequency in Hz; None if it is the same at all frequencies."""
    a = loaded.config.acoustics
    return None if a.absorption_model == "constant" else lambda frequency: sound.absorption(a, frequency)


def level(samples: Array, block: SampleBlock) -> float:
    """Return the rms level of the samples of all channels in dB re 1 uPa; NaN for silence."""
    pressure = samples.astype(np.float64) * block.pressure
    power = float(np.mean(pressure * pressure))
    return 10.0 * float(log10(power)) if power > 0.0 else math.nan


def describe(c: Declared, body: bytes, name: bytes, generation: int) -> Any:
    """Return a frame record with all fields that stay the same from block to block."""
    low, high = c.band
    return frames.frame_record(
        generation=generation,
        body=body,
        name=name,
        preset=b"hydrophone",
        kind=frames.FRAME_KINDS.index("hydrophone"),
        beams=len(c.element_positions),
        sample_bytes=np.dtype(frames.sample_type(c.bits)).itemsize,
        frequency=c.sampling,
        bandwidth=high - low,
        gain=c.gain,
        tvg=c.bits,
        floor=c.sensitivity,
        span=c.full_scale,
        altitude=math.nan,
    )
