"""The engine as a library: bodies, water and sound advance together, with no network and no files.

from wavesim_server import Simulation
sim = Simulation.from_config("config.xml")
row = sim.enter("lauv")
sim.command(row, [10.0])
sim.advance(250)
print(sim.state()["p_WB_W"][row])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames, randomness
from wavesim_sdk.actuators import Actuator, arranged, position_of
from wavesim_sdk.config import Body, Loaded, Model, Transducer, load
from wavesim_sdk.config.acoustics import Modem
from wavesim_sdk.config.model import Mooring
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.ocean.water import Water, tide
from wavesim_sdk.tables import ACTUATION, GEOMETRY, IDENTITY, RECEPTION, SENT, SIGNALS, STATE, BodyType, SignalKind
from wavesim_server import pointers, tick
from wavesim_server.acoustics import layout, medium
from wavesim_server.dynamics import contact
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.contact import Bodies
from wavesim_server.dynamics.fleet import Fleet, shape_of
from wavesim_server.environment import exposure, kernels, weather

Array = np.ndarray[Any, np.dtype[np.float64]]
Record = np.ndarray[Any, np.dtype[np.void]]


@dataclass
class Occupant:
    """Who is in a row."""

    name: str
    model: Model
    transducer: Transducer | None
    actuators: tuple[Actuator, ...]
    clock: tuple[float, float] = (0.0, 0.0)  # offset and drift of the transducer's


class Simulation:
    """All bodies, the sea and the sound, advanced tick by tick."""

    def __init__(self, loaded: Loaded, seed: int | None = None) -> None:
        config = loaded.config
        self.loaded, self.config = loaded, config
        self.seed = config.seed if seed is None else seed
        self.step_ns = round(config.time.step * 1e9)
        self.tick = 0
        self.capacity = capacity = config.shared.vehicles
        self.fleet = Fleet(capacity, self.step_ns * 1e-9, config.world, config.time.integrator)
        self.water = Water(loaded)
        bed, net = kernels.bed_of(loaded)
        self._sea = tick.Sea(bed, net, kernels.flow_of(loaded, self.water), np.zeros(capacity, np.int64))
        self._work = tick.Work(
            np.zeros(capacity, np.int64),
            np.zeros((capacity, 3)),
            np.zeros((capacity, r.RIGID_ROWS)),
            np.zeros(capacity, np.int64),
            np.zeros(3, np.int64),
        )
        self._touch = contact.touch(capacity, exposure.obstacles(loaded))
        self.weather = weather.weather_of(config, capacity, self.seed)
        weather.advance(self.weather, 0, 0.0, 0.0)  # wind and level at the start
        self._raos: dict[str, int] = {}
        self._hold(
            layout.create(
                loaded,
                self.water,
                capacity,
                self.step_ns * 1e-9,
                max(64, config.shared.signals),
                max(4096, 4 * capacity),
            )
        )
        self._scene = medium.Scene(self._touch.fixed, bed, net, np.zeros(1, np.int64))
        self._wind = self.weather.wind[0]
        self._carriers: dict[tuple[float, float], tuple[float, float]] = {}
        self._payloads: dict[int, bytes] = {}
        self._handles = 0
        self.occupants: dict[int, Occupant] = {}
        self._reserved = {b.name: (row, b) for row, b in enumerate(config.fleet.bodies)}
        self.identity = np.zeros(capacity, IDENTITY.dtype)
        self.geometry = np.zeros(capacity, GEOMETRY.dtype)
        self._sent: list[Record] = []
        self._receptions: list[Record] = []

    @classmethod
    def from_config(cls, path: str | Path, seed: int | None = None) -> Simulation:
        """A simulation of a configuration file, with every body that needs no client already in."""
        simulation = cls(load(path), seed)
        simulation.enter_residents()
        return simulation

    @property
    def time_ns(self) -> int:
        """Simulation time."""
        return self.tick * self.step_ns

    # -- bodies ------------------------------------------------------------------------------

    def enter_residents(self) -> None:
        """Let in every body of the configuration that has no client."""
        for name, (_, body) in self._reserved.items():
            if body.client == "none":
                self.enter(name)

    def row_for(self, name: str) -> int | None:
        """The row that a body of this name would get; None when the simulation is full."""
        if name in self._reserved:
            return self._reserved[name][0]
        free = (row for row in range(len(self._reserved), self.capacity) if row not in self.occupants)
        return next(free, None)

    def enter(
        self,
        name: str,
        model: str = "",
        position: Sequence[float] = (0.0, 0.0, 0.0),
        attitude: Sequence[float] = (0.0, 0.0, 0.0),
        row: int | None = None,
        variant: Model | None = None,
    ) -> int:
        """Let a body in: one of the configuration by its name, or a new one of a model. Returns its row.

        ``variant`` is a model object instead of a name, one of many in a study (see :mod:`wavesim_server.study`).
        """
        row = self.row_for(name) if row is None else row
        if row is None:
            raise ValueError(f"all {self.capacity} rows are taken")
        if row in self.occupants:
            raise ValueError(f"'{name}' is in the simulation already")
        mooring: Mooring | None = None
        if name in self._reserved:
            body: Body = self._reserved[name][1]
            kind = self.loaded.model(body.model)
            position, attitude, mooring = body.position, body.attitude, body.mooring
            transducer = self.loaded.transducer(body)
        else:
            kind = variant or self.loaded.model(model)
            transducer = kind.transducer
        self.fleet.add(row, kind, tuple(position), tuple(attitude), mooring, variant is not None)
        self.occupants[row] = occupant = Occupant(name, kind, transducer, self.fleet.actuators(row))
        self._expose(row, name, kind)
        self._reindex()
        self._feel()
        self._work.faults[row] = 0
        self._work.last[row] = self.fleet.body(row)[: r.RIGID_ROWS]
        generation = int(self.identity[row]["generation"]) + 1
        self.identity[row] = (1, BodyType[kind.type.upper()], name.encode(), kind.name.encode(), generation)
        lever = transducer.position if transducer else (np.nan,) * 3
        self.geometry[row] = (shape_of(kind).size, kind.mass.value, lever)
        self._work.lever[row] = transducer.position if transducer else 0.0
        if transducer is not None:
            occupant.clock = self._clock(name, transducer)
            time, key = self.time_ns * 1e-9, randomness.key(self.seed, name, "acoustics")
            self._hold(
                layout.set_node(
                    self.medium, self.config.acoustics, self._wind, row, transducer, time, key, occupant.clock
                )
            )
            self._place(row)
            while not medium.ping_by_itself(self._sound, row, time):
                self._grow()
        return row

    def _hold(self, m: layout.Medium) -> None:
        """Keep the arrays of the medium, and the table of their addresses for the kernels."""
        self.medium, self._sound = m, pointers.table(m)

    def _grow(self) -> None:
        self._hold(layout.grown(self.medium))

    def _clock(self, name: str, t: Transducer) -> tuple[float, float]:
        """Offset and drift of a node's clock, with their seeded parts."""
        keys = np.array([randomness.key(self.seed, name, "clock")], np.uint64)
        draws = [float(randomness.normal(keys, 0, k)[0]) for k in (0, 1)]
        c = t.clock
        return c.offset + c.offset_deviation * draws[0], c.drift + c.drift_deviation * draws[1]

    def _place(self, row: int) -> None:
        """A transducer is here now, and was: after a jump no path leads through the water in between."""
        tick.transducers(self._bodies(), self._work, self._sound, self.tick)
        self.medium.places[(self.tick + 1) & 1, row] = self.medium.places[self.tick & 1, row]

    def leave(self, row: int) -> None:
        """Take a body out; its transducer falls silent, signals under way live on."""
        self.occupants.pop(row, None)
        self.fleet.remove(row)
        layout.drop_node(self.medium, row)
        self.identity[row]["present"] = 0
        self.weather.exposure[row] = 0.0
        self._reindex()

    def _reindex(self) -> None:
        rows = sorted(self.occupants)
        self._work.order[: len(rows)] = rows
        self._work.counters[0] = len(rows)
        self._touch.counters[contact.N_STALE] = 1

    def _expose(self, row: int, name: str, model: Model) -> None:
        """What wind and waves need to know of a new body."""
        hs, _ = weather.sea_state(self.config.world.waves)
        self.weather.exposure[row] = exposure.exposure(model, self.config.world, shape_of(model).reach, hs)
        self.weather.streams[row] = randomness.key(self.seed, name, "waves")
        self.weather.filters[row] = 0.0
        if model.rao is not None and len(self.weather.sea):
            if model.name not in self._raos:
                table = exposure.rao_table(model, model.rao, self.weather.sea)
                held = self.weather.rao
                if self._raos and held.shape[1:] != table.shape:
                    raise ConfigError(
                        f"the RAO tables of '{model.name}' have other headings than those of other models"
                    )
                held = np.concatenate([held, table[None]]) if self._raos else table[None]
                self.weather = self.weather._replace(rao=np.ascontiguousarray(held))
                self._raos[model.name] = len(held) - 1
            self.weather.exposure[row, weather.E_RAO] = self._raos[model.name]

    def _bodies(self) -> Bodies:
        return Bodies(self.fleet.blocks, self.fleet.slots, self.fleet.heads, self.fleet.params)

    def _feel(self) -> None:
        """Let the environment of this moment act, so that what is published of a new body is true."""
        n, time = int(self._work.counters[0]), self.time_ns * 1e-9
        kept = self.weather._replace(filters=self.weather.filters.copy(), state=self.weather.state.copy())
        f = self.fleet
        weather.act(kept, self._sea.flow, f.blocks, f.slots, self._work.order, n, self.tick, time, f.step)

    @property
    def rows(self) -> list[int]:
        """Rows with a body."""
        return sorted(self.occupants)

    # -- what clients do ---------------------------------------------------------------------

    def actuators(self, row: int) -> tuple[Actuator, ...]:
        """The actuators of a body, in the order of its model: that of commands and tables."""
        return self._occupant(row).actuators

    def command(self, row: int, values: Sequence[float | None] | Mapping[Any, float]) -> None:
        """Actuator commands by position or by name; None keeps the earlier one. ValueError for anything else, and then
        none of them is taken."""
        occupant = self._occupant(row)
        self.fleet.command(row, arranged(occupant.actuators, values))

    def fail(self, row: int, actuator: int | str, fault: str, amount: float = 0.0) -> None:
        """A fault of an actuator (name or position): ``stuck``, ``frozen`` for ``amount`` s, ``lost``, ``reduced`` to the
        share ``amount``, ``reversed``, or ``none`` to repair it."""
        occupant = self._occupant(row)
        try:
            position = position_of(occupant.actuators, actuator)
        except ValueError as error:
            raise ValueError(f"'{occupant.name}': {error}") from None
        self.fleet.fail(row, position, fault, self.time_ns * 1e-9 + amount if fault == "frozen" else amount)

    def _occupant(self, row: int) -> Occupant:
        try:
            return self.occupants[row]
        except (KeyError, TypeError):
            raise ValueError(f"there is no body in row {str(row)[:20]}") from None

    def allocate(self, row: int, matrix: Array) -> None:
        """Set the thruster allocation matrix (6, thrusters) of one body: force and torque per unit thrust."""
        self.fleet.allocate(row, matrix)

    def push(self, row: int, force: Sequence[float], torque: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        """Apply an external force (N) and torque (N m) in B, at the origin, until it is changed."""
        values = [*force, *torque]
        if len(values) != 6 or not np.isfinite(values).all():
            raise ValueError("a push needs three finite forces and three finite torques")
        self.fleet.body(row)[r.EXT : r.EXT + 6] = values

    def set_pose(
        self,
        row: int,
        position: Sequence[float] | None = None,
        attitude: Sequence[float] | None = None,
        velocity: Sequence[float] | None = None,
    ) -> None:
        """Put a body somewhere: position W (m), roll, pitch, yaw (rad), velocity u v w p q r (m/s, rad/s)."""
        b = self.fleet.body(row)
        if position is not None:
            b[r.PX : r.PX + 3] = position
        if attitude is not None:
            b[r.QW : r.QW + 4] = frames.quaternion(attitude[0], attitude[1], attitude[2])
        if velocity is not None:
            b[r.U : r.U + 6] = velocity
        b[r.CLEARANCE] = 0.0
        self._touch.counters[contact.N_STALE] = 1
        self._place(row)

    # -- sound -------------------------------------------------------------------------------

    def ping(
        self, row: int, frequency: float, level: float | None = None, at: int | None = None, code: int | None = None,
        *, number: int = 0,
    ) -> None:  # fmt: skip
        """Send a pulse at the start of the next tick, or ``at`` a time of the node's own clock (ns).

        ValueError if the node cannot send such a one.
        """
        t = self._transducer(row)
        if not 1.0 <= frequency <= 1e6:
            raise ValueError(f"frequency {frequency:g} Hz is out of range (1 Hz to 1 MHz)")
        code = t.code if code is None else code
        if not 0 <= code <= 65535:
            raise ValueError(f"code {code} is unknown; codes are 0 to 65535")
        self._request(row, t, SignalKind.PULSE, frequency, level, at, t.pulse, t.band, code=code, number=number)

    def send(
        self,
        row: int,
        payload: bytes,
        to: int = 0,
        level: float | None = None,
        at: int | None = None,
        *,
        number: int = 0,
    ) -> None:
        """Send a packet to a modem address (0 = all). ValueError if the node cannot."""
        t = self._transducer(row)
        modem = self._modem(row, to)
        if len(payload) > modem.payload:
            raise ValueError(f"the payload has {len(payload)} bytes; this modem sends at most {modem.payload}")
        bits = 8.0 * len(payload)
        self._handles += 1
        self._payloads[self._handles] = payload
        self._request(
            row, t, SignalKind.DATA, modem.frequency, level, at, modem.preamble + bits / modem.bit_rate, modem.bandwidth,
            bits, t.code, to, number, len(payload), self._handles,
        )  # fmt: skip

    def range_request(
        self, row: int, to: int, level: float | None = None, at: int | None = None, *, number: int = 0
    ) -> None:
        """Ask the modem of an address to answer, for its range. ValueError if the node cannot."""
        t = self._transducer(row)
        modem = self._modem(row, to)
        if to == 0:
            raise ValueError("a range request needs the address of one modem")
        self._request(
            row, t, SignalKind.RANGE_REQUEST, modem.frequency, level, at, modem.preamble, modem.bandwidth,
            code=t.code, to=to, number=number,
        )  # fmt: skip

    def _transducer(self, row: int) -> Transducer:
        occupant = self.occupants[row]
        if occupant.transducer is None:
            raise ValueError(f"'{occupant.name}' has no transducer")
        return occupant.transducer

    def _modem(self, row: int, to: int) -> Modem:
        modem = self._transducer(row).modem
        if modem is None:
            raise ValueError(f"'{self.occupants[row].name}' has no modem")
        if not 0 <= to <= 2**31:
            raise ValueError(f"address {to} is out of range (0 to 2^31)")
        return modem

    def _request(
        self, row: int, t: Transducer, kind: SignalKind, frequency: float, level: float | None, at: int | None,
        duration: float, band: float, bits: float = 0.0, code: int = 0, to: int = 0, number: int = 0, size: int = 0,
        handle: int = 0,
    ) -> None:  # fmt: skip
        strength = t.source_level if level is None else float(level)
        if not 0.0 <= strength <= 260.0:
            raise ValueError(f"level {strength:g} dB is out of range (0 to 260)")
        now = self.time_ns * 1e-9
        offset, drift = self.occupants[row].clock
        time = now if at is None else max((at * 1e-9 - offset) / (1.0 + drift), now)
        if time > now + 3600.0:
            raise ValueError("a signal can be planned an hour ahead at most")
        if (frequency, band) not in self._carriers:
            if len(self._carriers) > 4096:
                self._carriers.clear()
            self._carriers[frequency, band] = layout.carriers(self.config.acoustics, self._wind, frequency, band)
        alpha, noise = self._carriers[frequency, band]
        while not medium.request(
            self._sound, row, time, int(kind), float(frequency), strength, duration, band, alpha, noise, bits, code, to,
            number, size, handle,
        ):  # fmt: skip
            self._grow()

    # -- time --------------------------------------------------------------------------------

    def advance(self, ticks: int = 1) -> None:
        """Advance by whole ticks. Signals are collected; see :meth:`take_signals`."""
        last, half = self.tick + ticks, False
        while self.tick < last or half:
            f = self.fleet
            self.tick, code, half = tick.ticks(
                self._bodies(),
                tick.Machine(
                    f.turn, f.kinds, f.tables, f.work, f.holds, f.held, f.wanted, f.meters, f.rings, f.feedback
                ),
                f.integrator,
                self._touch,
                self.weather,
                self._sea,
                self._work,
                self._sound,
                self._scene,
                self.step_ns,
                self.tick,
                last,
                half,
            )
            if code == layout.GROW:
                self._grow()
            self._collect()

    def _collect(self) -> None:
        counters = self.medium.counters
        if not (counters[layout.C_OUT_SENT] or counters[layout.C_OUT_REC]):
            return
        sent, receptions = layout.take_records(self.medium)
        if self._payloads:
            handles = self.medium.sent_i[: len(sent), layout.X_HANDLE]
            for k in np.flatnonzero(handles):
                sent[k]["payload"] = self._payloads.pop(int(handles[k]), b"")
        self._sent.append(sent)
        self._receptions.append(receptions)

    # -- what others see ---------------------------------------------------------------------

    def take_signals(self) -> tuple[Record, Record]:
        """(sent, receptions) since the last call, in order of time."""
        sent = np.concatenate(self._sent) if self._sent else np.zeros(0, SENT.dtype)
        receptions = np.concatenate(self._receptions) if self._receptions else np.zeros(0, RECEPTION.dtype)
        self._sent.clear()
        self._receptions.clear()
        return sent, receptions

    def publish(self, state: Record, actuation: Record) -> None:
        """Fill tables of capacity rows in place."""
        tick.publish(
            self._bodies(),
            self._work.order,
            int(self._work.counters[0]),
            self.fleet.feedback,
            self.fleet.places,
            self.fleet.counts,
            state.view(np.float64).reshape(self.capacity, -1),
            actuation.view(np.float64).reshape(self.capacity, -1),
        )

    def state(self) -> Record:
        """A copy of the state of all rows."""
        state, actuation = np.zeros(self.capacity, STATE.dtype), np.zeros(self.capacity, ACTUATION.dtype)
        self.publish(state, actuation)
        return state

    def actuation(self) -> Record:
        """A copy of the actuation of all rows."""
        state, actuation = np.zeros(self.capacity, STATE.dtype), np.zeros(self.capacity, ACTUATION.dtype)
        self.publish(state, actuation)
        return actuation

    def live_signals(self, table: Record) -> int:
        """Fill rows of the signals table with the live signals; returns how many."""
        floats, ids = np.zeros((len(table), 7)), np.zeros((len(table), 3), np.int64)
        n = int(medium.live_table(self._sound, self.time_ns * 1e-9, floats, ids))
        table["id"][n:] = 0
        table["id"][:n], table["source"][:n], table["emission_ns"][:n] = ids[:n].T
        for k, name in enumerate(("frequency", "source_level", "level", "radius")):
            table[name][:n] = floats[:n, k]
        table["origin_W"][:n] = floats[:n, 4:7]
        return n

    def new_signals_table(self) -> Record:
        return np.zeros(self.config.shared.signals, SIGNALS.dtype)

    def current(self) -> Array:
        """The uniform part of the flow now, drift included."""
        drift = self.weather.state[[weather.W_NORTH, weather.W_EAST]]
        return np.asarray(tide(self.config.world.current, self.time_ns * 1e-9) + np.array([*drift, 0.0]))

    @property
    def faults(self) -> list[str]:
        """Names of bodies that were frozen because their state was no longer finite."""
        return [self.occupants[row].name for row in np.flatnonzero(self._work.faults).tolist() if row in self.occupants]

    @property
    def contacts(self) -> int:
        """Contacts resolved since the start."""
        return int(self._work.counters[1])

    @property
    def counters(self) -> tuple[int, int, int]:
        """(signals sent, receptions heard, signals live)."""
        c = self.medium.counters
        return int(c[layout.C_SENT]), int(c[layout.C_HEARD]), int(c[layout.C_LIVE])
