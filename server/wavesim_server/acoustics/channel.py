"""The acoustic channel. It adds and removes transducers, schedules their emissions, and collects records."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wavesim_kernels import randomness
from wavesim_kernels.occupied_band import occupied_band
from wavesim_kernels.radiated_noise import REFERENCE_HZ
from wavesim_sdk import units
from wavesim_sdk.arrays import Floats, Record
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.front_tables import FrontBatch, StoredSound
from wavesim_sdk.names import shorten
from wavesim_sdk.sounds import check_band, checked_sound, level_of_sound
from wavesim_sdk.tables import MAX_SIGNAL_S, RECEPTION, SENT, Outcome, SignalKind
from wavesim_server import array_tables
from wavesim_server.acoustics import (
    front_arrays,
    medium,
    medium_arrays,
    medium_setup,
    modems,
    noise_sources,
    packet_losses,
    sea_history,
)
from wavesim_server.acoustics.hydrophones import SENSOR as HYDROPHONE_SENSOR
from wavesim_server.acoustics.hydrophones import Hydrophones
from wavesim_server.acoustics.sound_store import SoundStore
from wavesim_server.acoustics.types import Records
from wavesim_server.dynamics.fleet import VehicleType
from wavesim_server.row_pool import RowPool, grown_to
from wavesim_world.config import LoadedConfig, TransducerConfig
from wavesim_world.config.acoustics import BeamPattern, Modem, Pinger, RadiatedNoise
from wavesim_world.config.array_tables import element_groups
from wavesim_world.ocean.water import Water
from wavesim_world.pinger_sounds import PingerSound, pinger_sounds

#: attributes of the channel that follow from its other attributes
_DERIVED = frozenset({"table", "_record_counts", "_totals", "_paths_dropped", "_emission_array", "_emission"})
NO_RECORDS = np.zeros(0, SENT.dtype), np.zeros(0, RECEPTION.dtype)
NO_CHANNEL_STATES = np.zeros(0, medium_arrays.CHANNEL_STATE.dtype)
NO_TABLES = front_arrays.NO_TABLE, front_arrays.NO_TABLE
MAX_AHEAD = 3600.0  #: maximum time in s by which a signal can be scheduled in advance


class EmissionRequest(NamedTuple):
    """Fields that the requests for all kinds of signals have in common."""

    level: float | None  #: source level in dB re 1 uPa at 1 m; None means the level of the transducer
    at: int | None  #: time of the emission in ns on the node's own clock; None means now
    number: int  #: number of the request
    now: float  #: current time in s


@dataclass
class ActiveTransducer:
    """A transducer in the water."""

    name: str
    transducer: TransducerConfig
    clock: tuple[float, float]  # offset (s) and drift
    head: int
    payloads: set[int] = field(default_factory=set)  # handles of planned packets and sounds
    sound: int = 0  # number of the sound that its pinger plays
    packets: int = 0  # random numbers drawn for packets by the type of modem
    next_departure: float = -math.inf  # end of the last planned packet, by the node's clock, s


@dataclass(frozen=True)
class PreparedTransducer:
    """Data of a transducer, computed before the transducer is added."""

    #: beam pattern of the transducer; None if the channel already has this pattern
    pattern: Floats | None
    head: tuple[Records, Records] | None  #: records for the hydrophone head and its hydrophones


class AcousticChannel:
    """All transducers, and the sound between them."""

    def __init__(self, loaded: LoadedConfig, water: Water, capacity: int, step: float, seed: int, wind: float) -> None:
        config = loaded.config
        self.acoustics, self.seed, self._wind = config.acoustics, seed, wind
        signals, out = max(64, config.shared.signals), max(4096, 4 * capacity)
        self.hydrophones: Hydrophones | None = None
        self._sounds, self._pinger_sounds = SoundStore(), pinger_sounds(loaded)
        self._set_medium(medium_setup.make_medium(loaded, water, capacity, step, signals, out))
        if count := loaded.sensor_rows.get(HYDROPHONE_SENSOR, 0):
            self.hydrophones = Hydrophones(self.medium, count, element_groups(loaded), step, seed)
        self.nodes: dict[int, ActiveTransducer] = {}
        self._carriers: dict[tuple[float, float], tuple[float, float]] = {}
        self._payloads: dict[int, bytes] = {}
        self._handles = 0
        self._make_emission()
        self._head_pool, self._beam_pool = RowPool(), RowPool()
        self._beam_rows: dict[BeamPattern, int] = {}  # row of the losses of each beam pattern
        self._beam_users: dict[BeamPattern, int] = {}
        self._curve_rows: dict[str, int] = {}  # row of each modem curve
        self._detection_thresholds: Counter[float] = Counter()
        self._sent: list[Record] = []
        self._receptions: list[Record] = []
        self._channel_states: list[Record] = []

    def _set_medium(self, m: medium_arrays.Medium) -> None:
        """Store the arrays of the medium, and the table of their addresses that the kernels receive."""
        self.medium, self.table = m, array_tables.address_table(m)
        counters = np.asarray(m.counters)  # members of a record array are slow to access
        self._record_counts = counters["sent"], counters["receptions"], counters["channel_states"]
        self._totals = [counters[name] for name in ("signals_sent", "heard", "live")]
        self._paths_dropped = counters["paths_dropped"]
        if self.hydrophones is not None:
            self.hydrophones.share_sea(m)

    def _make_emission(self) -> None:
        #: record of the requested emission, and its writable members
        self._emission_array = array_tables.record_argument(medium_arrays.make_record(medium_arrays.EMISSION))
        self._emission = self._emission_array.view(np.recarray)[0]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a snapshot, without addresses and views."""
        return {name: value for name, value in vars(self).items() if name not in _DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set_medium(self.medium)
        self._make_emission()

    def grow(self) -> None:
        """Increase the capacity for signals, emissions and events."""
        self._set_medium(medium_arrays.grow_medium(self.medium))

    def grow_fronts(self) -> None:
        """Increase the capacity for fronts. Call this only if there are hydrophones."""
        assert self.hydrophones is not None
        self.hydrophones.grow()

    @property
    def hydrophone_tables(self) -> tuple[Any, Any]:
        """Tables of the medium of the hydrophones and of their additional arrays, for the kernels."""
        return NO_TABLES if self.hydrophones is None else self.hydrophones.tables

    # -- nodes -------------------------------------------------------------------------------

    def prepare(self, t: TransducerConfig | None) -> PreparedTransducer | None:
        """Prepare the data of a transducer. Raises InvalidArgument for an invalid beam, pinger or head."""
        if t is None:
            return None
        if t.pinger is not None:
            _check_pinger(t.pinger)
        pattern = head = None
        if t.beam is not None and t.beam not in self._beam_rows:
            pattern = medium_setup.beam_pattern(t.beam)
            if not np.isfinite(pattern).all():
                raise InvalidArgument("the transducer's beam pattern is invalid")
        if t.modem is not None:
            modems.check_modem(t.modem)
        if t.head is not None:
            head = medium_setup.head_records(t.head, t.position, t.head.sound_speed or self.acoustics.sound_speed)
        return PreparedTransducer(pattern, head)

    def add(self, row: int, name: str, t: TransducerConfig, fittings: PreparedTransducer, time: float) -> None:
        """Add a transducer, which can receive and send from now on."""
        m, head = self.medium, -1
        if fittings.head is not None:
            head = self._head_pool.acquire()
            if head >= len(m.heads):
                self._set_medium(m._replace(heads=grown_to(m.heads, head + 1), phones=grown_to(m.phones, head + 1)))
            made, phones = fittings.head
            self.medium.heads[head], self.medium.phones[head] = made[0], phones
        beam = self._beam(t.beam, fittings.pattern) if t.beam is not None else -1
        node = self.nodes[row] = ActiveTransducer(name, t, self._clock_of(name, t), head)
        key = randomness.key(self.seed, name, "acoustics")
        curve = self._curve(t.modem) if t.modem is not None else -1
        installed = medium_setup.InstalledTransducer(t, key, node.clock, beam, head, curve)
        medium_setup.set_node(self.medium, self.acoustics, row, installed, time)
        if (sound := self._sound_of_pinger(t)) is not None:
            self._set_pinger_sound(row, node, sound)
        self._set_carrier_conditions(row, t)
        self._count_listener(t, +1)

    def _sound_of_pinger(self, t: TransducerConfig) -> PingerSound | None:
        return None if t.pinger is None else self._pinger_sounds.get(t.pinger.waveform)

    def _set_pinger_sound(self, row: int, node: ActiveTransducer, sound: PingerSound) -> None:
        """Make a pinger play a sound at each ping."""
        n = self.medium.nodes[row]
        number = self._sounds.add(sound.samples, sound.sampling, self._signals_in_use, keep=True)
        n.ping_handle, n.ping_duration = -number, sound.duration
        n.ping_frequency, n.ping_band = 0.5 * (sound.low + sound.high), sound.high - sound.low
        node.sound = number

    def start_pinger(self, row: int, time: float) -> None:
        """Schedule the first ping of a pinger, or all pings if their times are given. Its position must be known."""
        while not medium.plan_first_ping(self.table, row, time):
            self.grow()
        t, (offset, drift) = self.nodes[row].transducer, self.nodes[row].clock
        if t.pinger is None or not t.pinger.rows:
            return
        n = self.medium.nodes[row]
        emission = self._blank_emission(
            SignalKind.PULSE, float(n.ping_frequency), float(n.ping_duration), float(n.ping_band)
        )
        emission.code, emission.source_level, emission.handle = t.code, t.source_level, n.ping_handle
        for shown in t.pinger.rows:
            when = (shown - offset) / (1.0 + drift)
            while when >= time and not medium.request_emission(self.table, row, when, self._emission_array):
                self.grow()

    def listen(self, row: int, on: bool, now: float) -> None:
        """Set whether a transducer receives; see :meth:`wavesim_server.Simulation.listen`."""
        self._node(row)
        node = self.medium.nodes[row]
        if not on:
            node.waking = 0
            if not node.asleep:
                node.asleep, node.asleep_after = 1, self.medium.counters[0].last_id
        elif node.asleep and not node.waking:
            while not medium.plan_waking(self.table, row, now):
                self.grow()

    def add_noise_source(self, row: int, name: str, noise: RadiatedNoise, kind: VehicleType, time: float) -> None:
        """Let a body radiate noise."""
        key = randomness.key(self.seed, name, "radiated noise")
        noise_sources.add_source(self.medium, row, noise, kind, key, time)
        self._set_noise_conditions(row)

    def _set_noise_conditions(self, row: int) -> None:
        conditions = self.carrier_conditions(REFERENCE_HZ, noise_sources.BAND_HZ)
        noise_sources.set_conditions(self.medium, row, *conditions)

    def remove(self, row: int) -> None:
        """Remove a transducer and its scheduled emissions, and end the noise of the body. Its signals in transit
        continue to travel.
        """
        noise_sources.remove_source(self.medium, row)
        node = self.nodes.pop(row, None)
        if node is None:
            return
        medium_setup.drop_node(self.medium, row)
        for handle in node.payloads:
            self._payloads.pop(handle, None)
            self._sounds.drop(-handle)
        self._sounds.drop(node.sound)
        if node.head >= 0:
            self._head_pool.release(node.head)
        if node.transducer.beam is not None:
            self._beam_users[node.transducer.beam] -= 1
        self._count_listener(node.transducer, -1)

    def _beam(self, beam: BeamPattern, pattern: Floats | None) -> int:
        """Return the row of a beam pattern. All transducers with the same pattern share this row."""
        if beam not in self._beam_rows:
            self._forget_beams()
            row = self._beam_pool.acquire()
            if row >= len(self.medium.beams):
                self._set_medium(self.medium._replace(beams=grown_to(self.medium.beams, row + 1)))
            self.medium.beams[row] = pattern
            self._beam_rows[beam] = row
        self._beam_users[beam] = self._beam_users.get(beam, 0) + 1
        return self._beam_rows[beam]

    def _curve(self, modem: Modem) -> int:
        """Return the row of a modem's curve; -1 means that it has none. All modems with the same curve share its row."""
        curve = modems.curve_of(modem)
        if curve is None:
            return -1
        if curve.name not in self._curve_rows:
            row = self._curve_rows[curve.name] = len(self._curve_rows)
            self._set_medium(self.medium._replace(curves=grown_to(self.medium.curves, row + 1)))
            self.medium.curves[row] = packet_losses.curve_row(curve)
        return self._curve_rows[curve.name]

    def _forget_beams(self) -> None:
        """Free the rows of those patterns that are not used by any transducer or signal in transit."""
        signals = self.medium.signals
        live = signals.beam[signals.id > 0]
        if self.hydrophones is not None:
            live = np.concatenate([live, self.hydrophones.live_beams])
        for beam in [b for b, users in self._beam_users.items() if not users and self._beam_rows[b] not in live]:
            self._beam_pool.release(self._beam_rows.pop(beam))
            del self._beam_users[beam]

    def _count_listener(self, t: TransducerConfig, by: int) -> None:
        """Update the lowest SNR at which any receiver detects a signal, after a transducer was added or removed."""
        of_curve = modems.lowest_snr(t.modem) if t.modem is not None else None
        for snr in (t.snr if t.detection == "snr" else None, of_curve):
            if snr is not None:
                self._detection_thresholds[snr] += by
        self.medium.water[0].floor = min(0.0, *(snr for snr, n in self._detection_thresholds.items() if n), math.inf)

    def _clock_of(self, name: str, t: TransducerConfig) -> tuple[float, float]:
        """Return the offset and drift of a node's clock. Both include a random part that depends on the seed."""
        keys = np.array([randomness.key(self.seed, name, "clock")], np.uint64)
        draws = [float(randomness.normal(keys, 0, k)[0]) for k in (0, 1)]
        c = t.clock
        return c.offset + c.offset_deviation * draws[0], c.drift + c.drift_deviation * draws[1]

    # -- ambient noise -----------------------------------------------------------------------

    def carrier_conditions(self, frequency: float, band: float) -> tuple[float, float]:
        """Return (absorption in dB/m, noise in the band in dB) for a signal in the current weather."""
        found = self._carriers.get((frequency, band))
        if found is None:
            if len(self._carriers) > 4096:
                self._carriers.clear()
            found = medium_setup.carrier_conditions(self.acoustics, self._wind, frequency, band)
            self._carriers[frequency, band] = found
        return found

    def _set_carrier_conditions(self, row: int, t: TransducerConfig) -> None:
        """Set the absorption and the noise for the automatic emissions of a node."""
        n = self.medium.nodes[row]
        if t.reply:
            n.reply_absorption, n.reply_noise = self.carrier_conditions(t.reply, t.band)
        if t.modem is not None:
            n.modem_absorption, n.modem_noise = self.carrier_conditions(t.modem.frequency, t.modem.bandwidth)
        if t.pinger is not None:
            n.ping_absorption, n.ping_noise = self.carrier_conditions(float(n.ping_frequency), float(n.ping_band))

    def set_wind(self, wind: float) -> None:
        """Update the sea noise after a change in the mean wind; signals in transit keep their noise."""
        if wind == self._wind:
            return
        self._wind = wind
        self._carriers.clear()
        for row, node in self.nodes.items():
            self._set_carrier_conditions(row, node.transducer)
        for row in noise_sources.active_rows(self.medium):
            self._set_noise_conditions(row)
        for e in medium_setup.planned_emissions(self.medium):
            emission = self.medium.emissions[e]
            emission.absorption, emission.noise = self.carrier_conditions(
                float(emission.frequency), float(emission.band)
            )

    def set_sea(self, time: float, components: Floats, tide: Floats) -> None:
        """Set the sea that reflects sound from ``time`` (s) on, if the surface moves; see
        :func:`sea_history.with_sea`.
        """
        multipath = self.acoustics.multipath
        if multipath is not None and multipath.surface == "moving":
            self._set_medium(sea_history.with_sea(self.medium, time, components, tide))

    # -- requests to nodes -----------------------------------------------------------------------

    def ping(
        self, row: int, frequency: float, code: int | None, duration: float | None, asked: EmissionRequest
    ) -> None:
        """Schedule an acoustic ping; see :meth:`wavesim_server.Simulation.ping`."""
        t = self._node(row).transducer
        frequency = _checked_number("frequency", frequency, "Hz", 1.0, 1e6)
        code = t.code if code is None else _checked_integer("code", code, 65535)
        length, band = t.pulse, t.band
        if duration is not None:
            length = _checked_duration(duration)
            band = t.bandwidth or 2.0 / length
        emission = self._blank_emission(SignalKind.PULSE, frequency, length, band)
        emission.code = code
        self._plan_emission(row, asked)

    def send(self, row: int, payload: bytes, to: int, duration: float | None, asked: EmissionRequest) -> None:
        """Schedule a modem packet; see :meth:`wavesim_server.Simulation.send`."""
        node, modem = self._node(row), self._modem(row)
        length = self._packet(row, SignalKind.DATA, to, payload, duration)
        kind = modems.modem_type_of(modem)
        if kind is not None:
            asked = asked._replace(at=self._departure_time(row, kind, modem, asked))
        self._plan_packet(row, payload, asked)
        if kind is not None and asked.at is not None:
            node.next_departure = asked.at * 1e-9 + length

    def transmit(self, row: int, samples: Any, sampling_rate: Any, scale: str, asked: EmissionRequest) -> None:
        """Schedule a sound; see :meth:`wavesim_server.Simulation.transmit`."""
        node = self._node(row)
        t, (x, sampling) = node.transducer, checked_sound(samples, sampling_rate, scale)
        low, high = occupied_band(x, sampling)
        check_band(high, sampling)
        if low < t.listen_low or high > t.listen_high:
            raise InvalidArgument(
                f"the sound occupies {low:.0f} to {high:.0f} Hz; the transducer's band is {t.listen_low:g} to "
                f"{t.listen_high:g} Hz (listen_low and listen_high)"
            )
        level = t.source_level if asked.level is None else _checked_number("level", asked.level, "dB", 0.0, 260.0)
        if level > t.source_level:
            raise InvalidArgument(
                f"level {level:g} dB is above the transducer's source level, which is {t.source_level:g} dB"
            )
        self._blank_emission(SignalKind.SOUND, 0.5 * (low + high), len(x) / sampling, high - low)
        number = self._sounds.add(x, sampling, self._signals_in_use)
        self._emission.handle = -number
        try:
            self._plan_emission(row, asked._replace(level=level_of_sound(x, level, scale)))
        except ValueError:
            self._sounds.drop(number)
            raise
        node.payloads.add(-number)

    def _signals_in_use(self) -> set[int]:
        """Return the numbers of the signals that hydrophones can still hear."""
        return set() if self.hydrophones is None else self.hydrophones.signals_in_use

    def _packet(self, row: int, kind: SignalKind, to: int, payload: bytes, duration: float | None) -> float:
        """Turn the requested emission into a modem packet, and return the duration of the packet in s."""
        modem = self._modem(row)
        to = _checked_integer("address", to, 2**31)
        if not isinstance(payload, (bytes, bytearray)):
            raise InvalidArgument(f"a payload must be bytes, got {type(payload).__name__}")
        if len(payload) > modem.payload:
            raise InvalidArgument(
                f"the payload has {len(payload)} bytes; the maximum for this modem is {modem.payload}"
            )
        coding = modems.modem_type_of(modem) if payload or kind is SignalKind.DATA else None
        bits = sent = 8.0 * len(payload)
        if coding is not None:
            bits, sent = coding.equivalent_bits(modem, len(payload)), coding.bits(modem, len(payload))
        length = modem.preamble + sent / modem.bit_rate if duration is None else _checked_duration(duration)
        emission = self._blank_emission(kind, modem.frequency, length, modem.bandwidth)
        emission.bits, emission.payload_bytes, emission.handle = bits, len(payload), self._handles + 1
        emission.code, emission.to_address = self._node(row).transducer.code, to
        return length

    def _plan_packet(self, row: int, payload: bytes, asked: EmissionRequest) -> None:
        """Schedule the packet that :meth:`_packet` has made, and keep its payload."""
        self._plan_emission(row, asked)
        self._handles += 1
        self._payloads[self._handles] = bytes(payload)
        self.nodes[row].payloads.add(self._handles)

    def _departure_time(self, row: int, kind: modems.ModemType, modem: Modem, asked: EmissionRequest) -> int:
        """Return the departure time that a modem's medium access assigns to a packet, on the node's own
        clock.
        """
        node, n, at, now = self.nodes[row], self.medium.nodes[row], asked.at, asked.now
        offset, drift = node.clock
        requested = max(
            _checked_integer("time", at, 2**62) * 1e-9 if at is not None else -math.inf, now + offset + drift * now
        )
        busy, k = max(float(n.sending_until), 0.0), int(n.first_hearing)
        while k >= 0:
            busy, k = max(busy, float(self.medium.hearings[k].end)), int(self.medium.hearings[k].next)
        keys = np.array([randomness.key(self.seed, node.name, "modem")], np.uint64)
        draw = float(randomness.uniform(keys, node.packets, 0)[0])
        node.packets += 1
        busy = max(busy + offset + drift * busy, node.next_departure)
        return round(max(kind.departure(modem, requested, busy, draw), requested) * 1e9)

    def range_request(self, row: int, to: int, payload: bytes, duration: float | None, asked: EmissionRequest) -> None:
        """Schedule an acoustic range query; see :meth:`wavesim_server.Simulation.range_request`."""
        self._packet(row, SignalKind.RANGE_REQUEST, to, payload, duration)
        if to == 0:
            raise InvalidArgument("a range request needs the address of one modem")
        self._plan_packet(row, payload, asked)

    def _node(self, row: int) -> ActiveTransducer:
        if row not in self.nodes:
            raise InvalidArgument("it has no transducer")
        return self.nodes[row]

    def _modem(self, row: int) -> Modem:
        modem = self._node(row).transducer.modem
        if modem is None:
            raise InvalidArgument("it has no modem")
        return modem

    def _blank_emission(self, kind: SignalKind, frequency: float, duration: float, band: float) -> Records:
        """Return the record of a requested emission that is not a reply and has no payload."""
        self._emission_array[0] = 0
        emission = self._emission
        emission.kind, emission.frequency, emission.duration, emission.band = (
            int(kind),
            frequency,
            duration,
            band,
        )
        emission.absorption, emission.noise = self.carrier_conditions(frequency, band)
        emission.query_source = -1
        return emission

    def _plan_emission(self, row: int, asked: EmissionRequest) -> None:
        """Plan the requested emission."""
        node, emission = self.nodes[row], self._emission
        level, at, number, now = asked
        emission.source_level = (
            node.transducer.source_level if level is None else _checked_number("level", level, "dB", 0.0, 260.0)
        )
        time, emission.request = now, _checked_integer("request number", number, 2**62)
        if at is not None:
            offset, drift = node.clock
            time = max((_checked_integer("time", at, 2**62) * 1e-9 - offset) / (1.0 + drift), now)
        if time > now + MAX_AHEAD:
            raise InvalidArgument("a signal can be planned at most one hour ahead")
        while not medium.request_emission(self.table, row, time, self._emission_array):
            self.grow()

    # -- results ---------------------------------------------------------------------------------

    def collect(self) -> None:
        """Collect the records that the medium has written during an advance."""
        if self._record_counts[0][0] or self._record_counts[1][0]:
            self._collect_records()
        if self.hydrophones is not None:
            self.hydrophones.collect(self._sounds)
        if self._record_counts[2][0]:
            self._channel_states.append(medium_setup.take_channel_states(self.medium))

    def _collect_records(self) -> None:
        sent, receptions = medium_setup.take_records(self.medium)
        if self._payloads or self._sounds.planned:
            handles = np.asarray(self.medium.sent)["handle"][: len(sent)]
            for k in np.flatnonzero(handles):
                handle, source = int(handles[k]), int(sent[k]["source"])
                sent[k]["payload"] = self._payloads.pop(handle, b"")
                if handle < 0:
                    self._sounds.note_sent(-handle, int(sent[k]["id"]), int(sent[k]["outcome"]) != Outcome.NOT_SENT)
                if source in self.nodes:
                    self.nodes[source].payloads.discard(handle)
        self._sent.append(sent)
        self._receptions.append(receptions)

    def sound_of(self, signal: int) -> StoredSound | None:
        """Return the sound that a signal consists of; None if it is another signal, or can no longer be heard."""
        return self._sounds.sounds.get(self._sounds.signals.get(signal, 0))

    def take_fronts(self, time_ns: int) -> FrontBatch:
        """Return the waveforms, fronts and sounds since the last call; see
        :meth:`wavesim_server.Simulation.take_fronts`. Call this only if there are hydrophones.
        """
        assert self.hydrophones is not None
        batch = self.hydrophones.take(time_ns)
        return batch._replace(sounds=self._sounds.of(batch.waveforms))

    def take_records(self) -> tuple[Record, Record]:
        """Return (sent, receptions) since the last call, in chronological order."""
        if not self._sent:
            return NO_RECORDS
        found = _concatenated(self._sent), _concatenated(self._receptions)
        self._sent.clear()
        self._receptions.clear()
        return found

    def take_channel_states(self) -> Record:
        """Return the changes of the channel at nodes with carrier sense since the last call, in chronological order."""
        if not self._channel_states:
            return NO_CHANNEL_STATES
        found = _concatenated(self._channel_states)
        self._channel_states.clear()
        return found

    def live_signals(self, table: Record, time: float) -> int:
        """Write the signals in transit into rows of the `signals` table; return the number of these signals."""
        n = int(medium.fill_live_signals(self.table, time, array_tables.record_argument(table)))
        table["id"][n:] = 0
        return n

    @property
    def paths_dropped(self) -> int:
        """Number of propagation paths that have been omitted since the start.

        A path is omitted if it is weaker than all paths that are followed, or if it has too many turning points.
        """
        return int(self._paths_dropped[0])

    @property
    def counters(self) -> tuple[int, int, int]:
        """Return the numbers of signals sent and received since the start, and the number of signals in transit."""
        sent, heard, live = self._totals
        return int(sent[0]), int(heard[0]), int(live[0])


def _check_pinger(pinger: Pinger) -> None:
    """Raise ValueError unless a pinger has either a period or times in ascending order."""
    if bool(pinger.rows) == (pinger.period > 0.0):
        raise InvalidArgument("a <pinger> needs either `period` or the times of its pings between its tags")
    if bool(pinger.waveform) == (pinger.frequency > 0.0):
        raise InvalidArgument("a <pinger> needs either `frequency` or `waveform`")
    if pinger.rows and pinger.offset:
        raise InvalidArgument("`offset` of a <pinger> has no effect on given times; remove it")
    if 0.0 < pinger.period < 0.01:
        raise InvalidArgument(f"the pinger's period is {pinger.period:g} s; the least period is 0.01 s")
    if any(later <= earlier for earlier, later in pairwise(pinger.rows)):
        raise InvalidArgument("the times of a <pinger> must be in ascending order")


def _concatenated(parts: list[Record]) -> Record:
    return (
        parts[0] if len(parts) == 1 else np.concatenate(parts)
    )  # one part, in nearly every tick, needs no second copy


def _checked_duration(value: float) -> float:
    return _checked_number("duration", value, "s", 1e-4, MAX_SIGNAL_S)


def _checked_number(what: str, value: Any, unit: str, low: float, high: float) -> float:
    number = units.to_real(value)
    if not low <= number <= high:
        raise InvalidArgument(f"{what} {number:g} {unit} is out of range ({low:g} to {high:g})")
    return number


def _checked_integer(what: str, value: Any, most: int) -> int:
    if not isinstance(value, (int, np.integer)) or not 0 <= value <= most:
        raise InvalidArgument(f"{what} {shorten(value, 20)} is out of range (0 to {most})")
    return int(value)
