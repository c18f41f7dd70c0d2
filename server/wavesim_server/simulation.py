"""The engine as a library: bodies, water and sound advance together, with no network and no files.

from wavesim_server import Simulation
sim = Simulation.from_config("config.xml")
row = sim.enter("lauv")
sim.command(row, [10.0])
sim.advance(250)
print(sim.state()["p_WB_W"][row])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from wavesim_sdk import frames, randomness
from wavesim_sdk.config import Body, Loaded, Model, Transducer, load
from wavesim_sdk.config.model import Mooring
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.ocean.water import Water, tide
from wavesim_sdk.tables import ACTUATION, GEOMETRY, IDENTITY, RECEPTION, SENT, SIGNALS, STATE, BodyType
from wavesim_server.acoustics import medium
from wavesim_server.dynamics import contact, fleet, kernel
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.contact import Bodies, Touch
from wavesim_server.dynamics.fleet import Fleet, shape_of
from wavesim_server.environment import exposure, kernels, weather

Array = np.ndarray[Any, np.dtype[np.float64]]
Record = np.ndarray[Any, np.dtype[np.void]]


class Sea(NamedTuple):
    """What the tick needs of the environment."""

    bed: Any
    net: Any
    flow: Any
    cursor: Any


class Machine(NamedTuple):
    """What the tick needs of the fleet, see :class:`~wavesim_server.dynamics.fleet.Fleet`."""

    turn: Any
    kinds: Any
    tables: Any
    work: Any
    holds: Any
    held: Any
    wanted: Any
    meters: Any
    rings: Any
    feedback: Any


class Work(NamedTuple):
    """Scratch of the tick: rows present, transducers on the bodies, last finite states."""

    order: Any
    lever: Any
    last: Any
    faults: Any
    counters: Any  # bodies, contacts, new faults


@nb.njit(cache=True, error_model="numpy")
def _transducers(f: Bodies, work: Work, m: medium.Medium) -> None:
    """Positions of all transducers at the end of the tick."""
    for k in range(work.counters[0]):
        row = work.order[k]
        if m.nodes[row, medium.N_ACTIVE] == 0.0:
            continue
        b, l = f.blocks[f.slots[row] // r.LANES], f.slots[row] % r.LANES
        w, x, y, z = b[r.QW * r.LANES + l], b[r.QX * r.LANES + l], b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
        tx, ty, tz = work.lever[row, 0], work.lever[row, 1], work.lever[row, 2]
        for i in range(3):
            m.before[row, i] = m.after[row, i]
        m.after[row, 0] = (
            b[r.PX * r.LANES + l]
            + (1.0 - 2.0 * (y * y + z * z)) * tx
            + 2.0 * (x * y - z * w) * ty
            + 2.0 * (x * z + y * w) * tz
        )
        m.after[row, 1] = (
            b[r.PY * r.LANES + l]
            + 2.0 * (x * y + z * w) * tx
            + (1.0 - 2.0 * (x * x + z * z)) * ty
            + 2.0 * (y * z - x * w) * tz
        )
        m.after[row, 2] = (
            b[r.PZ * r.LANES + l]
            + 2.0 * (x * z - y * w) * tx
            + 2.0 * (y * z + x * w) * ty
            + (1.0 - 2.0 * (x * x + y * y)) * tz
        )


@nb.njit(cache=True, error_model="numpy", nogil=True)
def _ticks(
    f: Bodies,
    machine: Machine,
    integrator: int,
    touch: Touch,
    air: weather.Weather,
    sea: Sea,
    work: Work,
    m: medium.Medium,
    step_ns: int,
    tick: int,
    last_tick: int,
    half: bool,
) -> tuple[int, int, bool]:
    """Ticks from ``tick`` to ``last_tick``. Returns (tick reached, code, whether a tick is half done).

    A tick is half done when its sound still needs room: the caller makes it and calls again.
    """
    h = step_ns * 1e-9
    capacity = m.nodes.shape[0]
    while tick < last_tick or half:
        if not half:
            start = tick * step_ns * 1e-9
            n = work.counters[0]
            weather.advance(air, tick, start, h)
            weather.act(air, sea.flow, f.blocks, f.slots, work.order, n, tick, start, h)
            if machine.held[0]:
                fleet.release(f.blocks, f.slots, machine.holds, machine.wanted, machine.held, start)
            kernel.step_all(
                f.blocks, f.heads, machine.turn, f.params, machine.kinds, machine.tables, machine.work, h, integrator
            )
            new, fastest = contact.survey(f, work.order, n, work.last, work.faults)
            work.counters[2] += new
            work.counters[1] += contact.resolve(f, work.order, n, touch, fastest, h, sea.bed, sea.net, sea.cursor)
            if machine.meters.shape[0]:
                fleet.average(f.blocks, f.slots, machine.meters, machine.rings, machine.feedback)
            _transducers(f, work, m)
            tick += 1
        code = medium.advance(m, (tick - 1) * step_ns * 1e-9, tick * step_ns * 1e-9, capacity)
        half = code != medium.OK
        if half:
            return tick, code, True
    return tick, medium.OK, False


@nb.njit(cache=True, error_model="numpy")
def _publish(f: Bodies, order: Any, count: int, feedback: Any, state: Any, actuation: Any) -> None:
    """Fill the flat views (capacity, 16) and (capacity, 72) of the state and actuation tables."""
    for k in range(count):
        row = order[k]
        b, l = f.blocks[f.slots[row] // r.LANES], f.slots[row] % r.LANES
        for i in range(13):
            state[row, i] = b[i * r.LANES + l]
        w, x, y, z = b[r.QW * r.LANES + l], b[r.QX * r.LANES + l], b[r.QY * r.LANES + l], b[r.QZ * r.LANES + l]
        cx, cy, cz = b[r.CURRENT * r.LANES + l], b[(r.CURRENT + 1) * r.LANES + l], b[(r.CURRENT + 2) * r.LANES + l]
        state[row, 13] = b[r.U * r.LANES + l] - (
            (1.0 - 2.0 * (y * y + z * z)) * cx + 2.0 * (x * y + z * w) * cy + 2.0 * (x * z - y * w) * cz
        )
        state[row, 14] = b[r.V * r.LANES + l] - (
            2.0 * (x * y - z * w) * cx + (1.0 - 2.0 * (x * x + z * z)) * cy + 2.0 * (y * z + x * w) * cz
        )
        state[row, 15] = b[r.W * r.LANES + l] - (
            2.0 * (x * z + y * w) * cx + 2.0 * (y * z - x * w) * cy + (1.0 - 2.0 * (x * x + y * y)) * cz
        )
        for i in range(r.SLOTS):
            actuation[row, i] = b[(r.A_CMD + i) * r.LANES + l]
            actuation[row, r.SLOTS + i] = b[(r.A_NOW + i) * r.LANES + l]
            actuation[row, 2 * r.SLOTS + i] = feedback[row, i]


@dataclass
class Occupant:
    """Who is in a row."""

    name: str
    model: Model
    transducer: Transducer | None
    noise_key: int


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
        self._sea = Sea(bed, net, kernels.flow_of(loaded, self.water), np.zeros(capacity, np.int64))
        self._work = Work(
            np.zeros(capacity, np.int64),
            np.zeros((capacity, 3)),
            np.zeros((capacity, r.RIGID_ROWS)),
            np.zeros(capacity, np.int64),
            np.zeros(3, np.int64),
        )
        self._touch = contact.touch(capacity, exposure.obstacles(config.world.obstacles))
        self.weather = weather.weather_of(config, capacity, self.seed)
        self._raos: dict[str, int] = {}
        self.medium = medium.create(
            capacity, config.acoustics, signals=max(64, config.shared.signals), out=max(4096, 4 * capacity)
        )
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
            transducer = body.transducer or kind.transducer
        else:
            kind = variant or self.loaded.model(model)
            transducer = kind.transducer
        self.fleet.add(row, kind, tuple(position), tuple(attitude), mooring, variant is not None)
        self.occupants[row] = Occupant(name, kind, transducer, randomness.key(self.seed, name, "timing"))
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
            medium.set_node(self.medium, row, transducer, self.time_ns * 1e-9)
            _transducers(self._bodies(), self._work, self.medium)
            self.medium.before[row] = self.medium.after[row]
        return row

    def leave(self, row: int) -> None:
        """Take a body out; its transducer falls silent, signals under way live on."""
        self.occupants.pop(row, None)
        self.fleet.remove(row)
        self.medium.nodes[row, medium.N_ACTIVE] = 0.0
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

    def command(self, row: int, values: list[float | None]) -> None:
        """Actuator commands; None keeps the earlier one. ValueError for what is no number."""
        self.fleet.command(row, values)

    def fail(self, row: int, actuator: int, fault: str, amount: float = 0.0) -> None:
        """A fault of an actuator: ``stuck``, ``frozen`` for ``amount`` s, ``lost``, ``reduced`` to the share
        ``amount``, ``reversed``, or ``none`` to repair it."""
        if not 0 <= actuator < r.SLOTS:
            raise ValueError(f"there is no actuator {actuator}; they are 0 .. {r.SLOTS - 1}")
        self.fleet.fail(row, actuator, fault, self.time_ns * 1e-9 + amount if fault == "frozen" else amount)

    def allocate(self, row: int, matrix: Array) -> None:
        """Set the thruster allocation matrix (6, thrusters) of one body: force and torque per unit thrust."""
        self.fleet.allocate(row, matrix)

    def push(self, row: int, force: Sequence[float], torque: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        """Apply an external force (N) and torque (N m) in B, at the origin, until it is changed."""
        values = [*force, *torque]
        if len(values) != 6 or not np.isfinite(values).all():
            raise ValueError("a push needs three finite forces and three finite torques")
        self.fleet.body(row)[r.EXT : r.EXT + 6] = values

    def set_state(
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

    def ping(self, row: int, frequency: float, level: float | None = None) -> None:
        """Send a signal now, at the start of the next tick."""
        occupant = self.occupants[row]
        if occupant.transducer is None:
            raise ValueError(f"'{occupant.name}' has no transducer")
        strength = occupant.transducer.source_level if level is None else level
        while not medium.request(self.medium, row, self.time_ns * 1e-9, float(frequency), float(strength), 0, -1):
            self.medium = medium.grown(self.medium)

    # -- time --------------------------------------------------------------------------------

    def advance(self, ticks: int = 1) -> None:
        """Advance by whole ticks. Signals are collected; see :meth:`take_signals`."""
        last, half = self.tick + ticks, False
        while self.tick < last or half:
            f = self.fleet
            self.tick, code, half = _ticks(
                self._bodies(),
                Machine(f.turn, f.kinds, f.tables, f.work, f.holds, f.held, f.wanted, f.meters, f.rings, f.feedback),
                f.integrator,
                self._touch,
                self.weather,
                self._sea,
                self._work,
                self.medium,
                self.step_ns,
                self.tick,
                last,
                half,
            )
            if code == medium.GROW:
                self.medium = medium.grown(self.medium)
            self._collect()

    def _collect(self) -> None:
        if not (self.medium.counters[medium.C_OUT_SENT] or self.medium.counters[medium.C_OUT_REC]):
            return
        sent, receptions = medium.take_records(self.medium)
        for k in range(len(receptions)):
            occupant = self.occupants.get(int(receptions[k]["receiver"]))
            if occupant is not None and occupant.transducer is not None and receptions[k]["outcome"] == 0:
                receptions[k]["reported_ns"] = self._reported(receptions[k], occupant, occupant.transducer)
        self._sent.append(sent)
        self._receptions.append(receptions)

    def _reported(self, record: Any, occupant: Occupant, t: Transducer) -> int:
        """The arrival as the instrument reports it: noise, then resolution."""
        time = int(record["arrival_ns"])
        if t.timing_noise:
            draw = randomness.normal(np.array([occupant.noise_key], np.uint64), int(record["id"]))[0]
            time += round(draw * t.timing_noise * 1e9)
        step = round(t.timing_resolution * 1e9)
        return round(time / step) * step if step else time

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
        _publish(
            self._bodies(),
            self._work.order,
            int(self._work.counters[0]),
            self.fleet.feedback,
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
        n = int(medium.live_table(self.medium, self.time_ns * 1e-9, floats, ids))
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
        return [self.occupants[row].name for row in self.rows if self._work.faults[row]]

    @property
    def contacts(self) -> int:
        """Contacts resolved since the start."""
        return int(self._work.counters[1])

    @property
    def counters(self) -> tuple[int, int, int]:
        """(signals sent, receptions heard, signals live)."""
        c = self.medium.counters
        return int(c[medium.C_SENT]), int(c[medium.C_HEARD]), int(c[medium.C_LIVE])
