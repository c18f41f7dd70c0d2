"""The acoustic channel as an object: transducers come and go, are told what to send, and its records are collected."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk import randomness, units
from wavesim_sdk.config import LoadedConfig, TransducerConfig
from wavesim_sdk.config.acoustics import BeamPattern, Modem
from wavesim_sdk.names import shorten
from wavesim_sdk.ocean.water import Water
from wavesim_sdk.tables import RECEPTION, SENT, SignalKind
from wavesim_server import pointers
from wavesim_server.acoustics import fitting, medium, memory, modems
from wavesim_server.acoustics.types import Array, Records
from wavesim_server.pool import Pool, roomy

Table = np.ndarray[Any, np.dtype[np.void]]  #: records of the log
MAX_AHEAD = 3600.0  #: s, that a signal may be planned


@dataclass
class Node:
    """A transducer in the water."""

    name: str
    transducer: TransducerConfig
    clock: tuple[float, float]  # offset (s) and drift
    head: int
    payloads: set[int] = field(default_factory=set)  # of packets to come
    packets: int = 0  # drawn for, by its type of modem
    planned: float = -math.inf  # end of the last of them, by its clock, s


@dataclass(frozen=True)
class Fittings:
    """What a transducer brings along, computed before it enters."""

    pattern: Array | None  #: of its beam, if that is a new one
    head: tuple[Records, Records] | None  #: and its hydrophones


class Channel:
    """All transducers, and the sound between them."""

    def __init__(self, loaded: LoadedConfig, water: Water, capacity: int, step: float, seed: int, wind: float) -> None:
        config = loaded.config
        self.acoustics, self.seed, self._wind = config.acoustics, seed, wind
        signals, out = max(64, config.shared.signals), max(4096, 4 * capacity)
        self._keep(fitting.create(loaded, water, capacity, step, signals, out))
        self.nodes: dict[int, Node] = {}
        self._carriers: dict[tuple[float, float], tuple[float, float]] = {}
        self._payloads: dict[int, bytes] = {}
        self._handles = 0
        self._wanted = pointers.records(memory.record(memory.EMISSION))  #: the emission that is asked for,
        self._form = self._wanted.view(np.recarray)[0]  #: and its members, to be filled in
        self._heads, self._rows_of_beams = Pool(), Pool()
        self._beams: dict[BeamPattern, int] = {}  # row of the loss of each beam pattern
        self._beam_users: dict[BeamPattern, int] = {}
        self._ears: Counter[float] = Counter()
        self._sent: list[Table] = []
        self._receptions: list[Table] = []

    def _keep(self, m: memory.Medium) -> None:
        """Keep the arrays of the medium, and the table of their addresses for the kernels."""
        self.medium, self.table = m, pointers.table(m)
        counters = np.asarray(m.counters)  # members of a record array are slow to ask for
        self._waiting = counters["sent"], counters["receptions"]

    def grow(self) -> None:
        """More room for signals, emissions and events."""
        self._keep(memory.grown(self.medium))

    # -- nodes -------------------------------------------------------------------------------

    def fittings(self, t: TransducerConfig | None) -> Fittings | None:
        """What a transducer will need; ValueError if its beam or head cannot be."""
        if t is None:
            return None
        pattern = head = None
        if t.beam is not None and t.beam not in self._beams:
            pattern = fitting.pattern(t.beam)
            if not np.isfinite(pattern).all():
                raise ValueError("its transducer's beam has no such pattern")
        if t.modem is not None:
            modems.type_of(t.modem)
        if t.head is not None:
            head = fitting.head_rows(t.head, t.position, t.head.sound_speed or self.acoustics.sound_speed)
        return Fittings(pattern, head)

    def add(self, row: int, name: str, t: TransducerConfig, fittings: Fittings, time: float) -> None:
        """A transducer can hear and send from now on."""
        m, head = self.medium, -1
        if fittings.head is not None:
            head = self._heads.take()
            if head >= len(m.heads):
                self._keep(m._replace(heads=roomy(m.heads, head + 1), phones=roomy(m.phones, head + 1)))
            made, phones = fittings.head
            self.medium.heads[head], self.medium.phones[head] = made[0], phones
        beam = self._beam(t.beam, fittings.pattern) if t.beam is not None else -1
        node = self.nodes[row] = Node(name, t, self._clock(name, t), head)
        key = randomness.key(self.seed, name, "acoustics")
        fitting.set_node(self.medium, self.acoustics, row, t, time, key, node.clock, beam, head)
        self._tune(row, t)
        self._listen(t, +1)

    def start(self, row: int, time: float) -> None:
        """A pinger plans its first ping; its place must be known."""
        while not medium.ping_by_itself(self.table, row, time):
            self.grow()

    def drop(self, row: int) -> None:
        """A transducer is gone: silent and deaf, and what it had planned with it. Its signals under way live on."""
        node = self.nodes.pop(row, None)
        if node is None:
            return
        fitting.drop_node(self.medium, row)
        for handle in node.payloads:
            self._payloads.pop(handle, None)
        if node.head >= 0:
            self._heads.give(node.head)
        if node.transducer.beam is not None:
            self._beam_users[node.transducer.beam] -= 1
        self._listen(node.transducer, -1)

    def _beam(self, beam: BeamPattern, pattern: Array | None) -> int:
        """The row of a beam's pattern, shared by all that have it."""
        if beam not in self._beams:
            self._forget_beams()
            row = self._rows_of_beams.take()
            if row >= len(self.medium.beams):
                self._keep(self.medium._replace(beams=roomy(self.medium.beams, row + 1)))
            self.medium.beams[row] = pattern
            self._beams[beam] = row
        self._beam_users[beam] = self._beam_users.get(beam, 0) + 1
        return self._beams[beam]

    def _forget_beams(self) -> None:
        """Free the rows of patterns that no transducer has and no signal under way left by."""
        signals = self.medium.signals
        live = signals.beam[signals.id > 0]
        for beam in [b for b, users in self._beam_users.items() if not users and self._beams[b] not in live]:
            self._rows_of_beams.give(self._beams.pop(beam))
            del self._beam_users[beam]

    def _listen(self, t: TransducerConfig, by: int) -> None:
        """How far below the noise the best ears here still hear, with one pair more or less."""
        if t.detection == "snr":
            self._ears[t.snr] += by
            self.medium.water[0].floor = min(0.0, *(snr for snr, n in self._ears.items() if n), math.inf)

    def _clock(self, name: str, t: TransducerConfig) -> tuple[float, float]:
        """Offset and drift of a node's clock, with their seeded parts."""
        keys = np.array([randomness.key(self.seed, name, "clock")], np.uint64)
        draws = [float(randomness.normal(keys, 0, k)[0]) for k in (0, 1)]
        c = t.clock
        return c.offset + c.offset_deviation * draws[0], c.drift + c.drift_deviation * draws[1]

    # -- ambient noise -----------------------------------------------------------------------

    def carrier(self, frequency: float, band: float) -> tuple[float, float]:
        """(absorption dB/m, noise in band dB) of a signal in this weather."""
        found = self._carriers.get((frequency, band))
        if found is None:
            if len(self._carriers) > 4096:
                self._carriers.clear()
            found = fitting.carriers(self.acoustics, self._wind, frequency, band)
            self._carriers[frequency, band] = found
        return found

    def _tune(self, row: int, t: TransducerConfig) -> None:
        """Absorption and noise of what a node sends by itself."""
        n = self.medium.nodes[row]
        if t.reply:
            n.reply_absorption, n.reply_noise = self.carrier(t.reply, t.effective_bandwidth)
        if t.modem is not None:
            n.modem_absorption, n.modem_noise = self.carrier(t.modem.frequency, t.modem.bandwidth)
        if t.pinger is not None:
            n.ping_absorption, n.ping_noise = self.carrier(t.pinger.frequency, t.effective_bandwidth)

    def set_wind(self, wind: float) -> None:
        """The mean wind has changed, and with it the noise of the sea; signals under way keep theirs."""
        if wind == self._wind:
            return
        self._wind = wind
        self._carriers.clear()
        for row, node in self.nodes.items():
            self._tune(row, node.transducer)
        for e in fitting.planned(self.medium):
            emission = self.medium.emissions[e]
            emission.absorption, emission.noise = self.carrier(
                float(emission.frequency), float(emission.effective_bandwidth)
            )

    # -- what nodes are told -------------------------------------------------------------------

    def ping(
        self, row: int, frequency: float, level: float | None, at: int | None, code: int | None, number: int, now: float
    ) -> None:
        """See :meth:`wavesim_server.Simulation.ping`."""
        t = self._node(row).transducer
        frequency = _number("frequency", frequency, "Hz", 1.0, 1e6)
        code = t.code if code is None else _integer("code", code, 65535)
        wanted = self._blank(SignalKind.PULSE, frequency, t.pulse, t.effective_bandwidth)
        wanted.code = code
        self._request(row, level, at, number, now)

    def send(
        self, row: int, payload: bytes, to: int, level: float | None, at: int | None, number: int, now: float
    ) -> None:
        """See :meth:`wavesim_server.Simulation.send`."""
        node, modem = self._node(row), self._modem(row)
        to = _integer("address", to, 2**31)
        if not isinstance(payload, (bytes, bytearray)):
            raise ValueError(f"a payload is bytes, not {type(payload).__name__}")
        if len(payload) > modem.payload:
            raise ValueError(f"the payload has {len(payload)} bytes; this modem sends at most {modem.payload}")
        handle, kind = self._handles + 1, modems.type_of(modem)
        bits = sent = 8.0 * len(payload)
        if kind is not None:
            bits, sent = kind.equivalent_bits(modem, len(payload)), kind.bits(modem, len(payload))
        duration = modem.preamble + sent / modem.bit_rate
        if kind is not None:
            at = self._departure(row, kind, modem, at, now)
        wanted = self._blank(SignalKind.DATA, modem.frequency, duration, modem.bandwidth)
        wanted.bits, wanted.payload_bytes, wanted.handle = bits, len(payload), handle
        wanted.code, wanted.to_address = node.transducer.code, to
        self._request(row, level, at, number, now)
        if kind is not None and at is not None:
            node.planned = at * 1e-9 + duration
        self._handles = handle
        self._payloads[handle] = bytes(payload)
        node.payloads.add(handle)

    def _departure(self, row: int, kind: modems.ModemType, modem: Modem, at: int | None, now: float) -> int:
        """When a packet leaves by the medium access of its modem, as a time of the node's own clock."""
        node, n = self.nodes[row], self.medium.nodes[row]
        offset, drift = node.clock
        asked = max(_integer("time", at, 2**62) * 1e-9 if at is not None else -math.inf, now + offset + drift * now)
        busy, k = max(float(n.sending_until), 0.0), int(n.first_hearing)
        while k >= 0:
            busy, k = max(busy, float(self.medium.hearings[k].end)), int(self.medium.hearings[k].next)
        keys = np.array([randomness.key(self.seed, node.name, "modem")], np.uint64)
        draw = float(randomness.uniform(keys, node.packets, 0)[0])
        node.packets += 1
        busy = max(busy + offset + drift * busy, node.planned)
        return round(max(kind.departure(modem, asked, busy, draw), asked) * 1e9)

    def range_request(self, row: int, to: int, level: float | None, at: int | None, number: int, now: float) -> None:
        """See :meth:`wavesim_server.Simulation.range_request`."""
        code, modem = self._node(row).transducer.code, self._modem(row)
        to = _integer("address", to, 2**31)
        if to == 0:
            raise ValueError("a range request needs the address of one modem")
        wanted = self._blank(SignalKind.RANGE_REQUEST, modem.frequency, modem.preamble, modem.bandwidth)
        wanted.code, wanted.to_address = code, to
        self._request(row, level, at, number, now)

    def _node(self, row: int) -> Node:
        if row not in self.nodes:
            raise ValueError("it has no transducer")
        return self.nodes[row]

    def _modem(self, row: int) -> Modem:
        modem = self._node(row).transducer.modem
        if modem is None:
            raise ValueError("it has no modem")
        return modem

    def _blank(self, kind: SignalKind, frequency: float, duration: float, band: float) -> Records:
        """The form for an emission that is asked for, which answers nothing and carries nothing."""
        self._wanted[0] = 0
        wanted = self._form
        wanted.kind, wanted.frequency, wanted.duration, wanted.effective_bandwidth = (
            int(kind),
            frequency,
            duration,
            band,
        )
        wanted.absorption, wanted.noise = self.carrier(frequency, band)
        wanted.query_source = -1
        return wanted

    def _request(self, row: int, level: float | None, at: int | None, number: int, now: float) -> None:
        """Plan the emission that has been filled in; ``at`` is a time of the node's own clock."""
        node, wanted = self.nodes[row], self._form
        wanted.source_level = (
            node.transducer.source_level if level is None else _number("level", level, "dB", 0.0, 260.0)
        )
        time, wanted.request = now, _integer("request number", number, 2**62)
        if at is not None:
            offset, drift = node.clock
            time = max((_integer("time", at, 2**62) * 1e-9 - offset) / (1.0 + drift), now)
        if time > now + MAX_AHEAD:
            raise ValueError("a signal can be planned an hour ahead at most")
        while not medium.request(self.table, row, time, self._wanted):
            self.grow()

    # -- what came of it -----------------------------------------------------------------------

    def collect(self) -> None:
        """Take the records of an advance out of the medium."""
        if not (self._waiting[0][0] or self._waiting[1][0]):
            return
        sent, receptions = fitting.take_records(self.medium)
        if self._payloads:
            handles = np.asarray(self.medium.sent)["handle"][: len(sent)]
            for k in np.flatnonzero(handles):
                handle, source = int(handles[k]), int(sent[k]["source"])
                sent[k]["payload"] = self._payloads.pop(handle, b"")
                if source in self.nodes:
                    self.nodes[source].payloads.discard(handle)
        self._sent.append(sent)
        self._receptions.append(receptions)

    def take(self) -> tuple[Table, Table]:
        """(sent, receptions) since the last call, in order of time."""
        sent, receptions = _joined(self._sent, SENT.dtype), _joined(self._receptions, RECEPTION.dtype)
        self._sent.clear()
        self._receptions.clear()
        return sent, receptions

    def live_signals(self, table: Table, time: float) -> int:
        """Fill rows of the signals table with the live signals; returns how many."""
        n = int(medium.live_table(self.table, time, pointers.records(table)))
        table["id"][n:] = 0
        return n

    @property
    def counters(self) -> tuple[int, int, int]:
        """(signals sent, receptions heard, signals live)."""
        c = self.medium.counters[0]
        return int(c.signals_sent), int(c.heard), int(c.live)


def _joined(parts: list[Table], kind: np.dtype[np.void]) -> Table:
    if len(parts) == 1:  # as in nearly every tick: no second copy
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _number(what: str, value: Any, unit: str, low: float, high: float) -> float:
    number = units.to_real(value)
    if not low <= number <= high:
        raise ValueError(f"{what} {number:g} {unit} is out of range ({low:g} to {high:g})")
    return number


def _integer(what: str, value: Any, most: int) -> int:
    if not isinstance(value, (int, np.integer)) or not 0 <= value <= most:
        raise ValueError(f"{what} {shorten(value, 20)} is out of range (0 to {most})")
    return int(value)
