"""States of many sessions, written as rows of a matrix or one by one: a client reads the content of the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.sensors import sensor_table_of, value_fields
from wavesim_sdk.shared_memory import BEGUN, DONE, SharedMemoryArea, TableView
from wavesim_sdk.tables import INSTRUMENTS, VEHICLE_TABLES
from wavesim_sdk.wire import codec, seal
from wavesim_sdk.wire.items import FieldDescription, SensorDescription
from wavesim_sdk.wire.messages import (
    HEADER_BYTES,
    MAX_DATAGRAM,
    Join,
    Reading,
    Right,
    SensorsMessage,
    StateContents,
    Type,
)
from wavesim_sdk.wire.session import Admission, Session
from wavesim_sdk.wire.state import Body
from wavesim_server.network.crews import CrewMember, SessionGrant
from wavesim_server.network.local_states import LocalStates
from wavesim_server.network.state_datagrams import (
    MAX_BODY_BYTES,
    MAX_FUTURE_NS,
    MAX_WRITTEN_SINGLY,
    SNAPSHOT_TRIES,
    StateWriter,
    cached_template,
    finish_datagrams,
)

ROWS = 12
STEP_NS = 4_000_000
TICK = 500
NOW_NS = TICK * STEP_NS
FRESH_NS = 300_000_000
KINDS = [Type.STATE, Type.STEP]
MANY = MAX_WRITTEN_SINGLY + 3
SUITE = ("ctd", "multibeam", "temperature")  #: a multibeam is larger than a datagram
ROOM_FOR = 40  #: instruments of a body
KEY, COOKIE = bytes(range(32)), bytes(16)


class Fleet:
    """Tables as the engine and the emulators leave them, members of crews, and what should be sent to them."""

    def __init__(self, suite: Sequence[str] = SUITE, seed: int = 5) -> None:
        self.suite, self.draw = suite, np.random.default_rng(seed)
        tables = [(t, ROWS) for t in VEHICLE_TABLES if t is not INSTRUMENTS]
        self.area = SharedMemoryArea.create_private(
            [*tables, (INSTRUMENTS, ROWS * ROOM_FOR), *((sensor_table_of(t), ROWS) for t in set(suite))]
        )
        self.generation = 1
        for name in ("state", "actuation", "effort"):
            records = np.zeros(ROWS, self.area[name].dtype)
            records.view(np.float64)[:] = self.draw.normal(size=records.view(np.float64).shape)
            self.area[name].publish(records, TICK)
        self.values: dict[str, Any] = {}
        for t in suite:
            records = np.zeros(ROWS, self.area[t].dtype)
            for f in value_fields(sensor_table_of(t)):
                records[f.name] = self.draw.normal(size=records[f.name].shape)
            records["valid"], records["generation"], records["time_ns"] = 1, 1, NOW_NS - 1000 * np.arange(ROWS)
            self.values[t] = records
        self.place = {(row, number): ROWS - 1 - row for row in range(ROWS) for number in range(len(suite))}
        self.publish()
        self.writer = StateWriter(self.area, STEP_NS)
        self.local_states = LocalStates(self.area, STEP_NS, self.writer.instruments)
        self.body = Body()
        for k, t in enumerate(suite):
            fields = tuple(
                FieldDescription(f.name, f.unit, math.prod(f.shape)) for f in value_fields(sensor_table_of(t))
            )
            self.body.add_sensor(SensorDescription(k, f"{t}-{k}", t, 0, fields))
        self._local_rows: dict[int, Any] = {}

    def publish(self) -> None:
        """Hand values and places over to their readers."""
        for t, records in self.values.items():
            self.area[t].publish(records, TICK)
        rows = np.zeros(ROWS * ROOM_FOR, INSTRUMENTS.dtype)
        rows["body"] = -1
        for k, ((row, number), place) in enumerate(self.place.items()):
            rows[k]["body"], rows[k]["number"], rows[k]["place"] = row, number, place
            rows[k]["generation"] = self.generation
        self.area["instruments"].publish(rows, TICK)

    def of(self, row: int, type_: str) -> Any:
        """The record of a sensor of a body."""
        return self.values[type_][self.place[row, self.suite.index(type_)]]

    def member(
        self,
        row: int,
        *,
        truth: bool = True,
        actuators: int = 3,
        effort: bool = False,
        keyed: bool = False,
        chosen: Sequence[int] | None = None,
    ) -> CrewMember:
        lock = seal.SessionSeal(KEY, COOKIE, 1000 + row, is_client=False) if keyed else None
        session = Session(
            1000 + row, ("10.0.0.7", 4000 + row), Join(name=f"auv-{row}"), Admission(row, STEP_NS, 1500.0), 0.0, lock
        )
        suite: Any = tuple(SimpleNamespace(name=t, type=t, parameters=SimpleNamespace(send=True)) for t in self.suite)
        fresh = tuple(FRESH_NS + k for k in range(len(suite)))
        berth = SessionGrant(row, f"auv-{row}", "lauv", 1, truth, True, Right(0), False, actuators, suite, fresh)
        everything = tuple(range(len(suite)))
        return CrewMember(session, berth, 0.1, everything if chosen is None else tuple(chosen), wants_effort=effort)

    def members(self, count: int, **like: Any) -> list[CrewMember]:
        return [self.member(row, **like) for row in range(count)]

    def expected(self, m: CrewMember) -> tuple[Any, ...]:
        """Read slowly from the tables."""
        row = m.row
        state = self.area["state"].latest[row]
        parts = ("p_WB_W", "q_WB", "v_WB_B", "w_WB_B", "v_FB_B")
        motion = tuple(float(v) for p in parts for v in state[p]) if m.grant.sends_truth else None
        actual = tuple(self.area["actuation"].latest[row]["actual"][: m.grant.actuator_count].tolist())
        effort = None
        if m.wants_effort:
            record = self.area["effort"].latest[row]
            effort = tuple(0.0 if math.isnan(v) else float(v) for name in record.dtype.names for v in record[name])
        sensor_values = {}
        for k in m.sensor_numbers:
            place, record = self.place.get((row, k)), None
            if place is not None:
                record = self.values[self.suite[k]][place]
            if record is None or record["valid"] != 1 or record["generation"] != self.generation:
                continue
            time = int(record["time_ns"])
            if 0 <= time <= NOW_NS + MAX_FUTURE_NS and NOW_NS - time <= m.grant.max_age_ns[k]:
                plain = [
                    float(v) for f in value_fields(sensor_table_of(self.suite[k])) for v in np.ravel(record[f.name])
                ]
                sensor_values[k] = time, [v if math.isfinite(v) else None for v in plain]
        return TICK, NOW_NS, 1, motion, actual, effort, sensor_values

    def read(self, members: Sequence[CrewMember], kind: Type) -> tuple[dict[int, tuple[Any, ...]], list[int]]:
        """(row -> what a client reads, how many sessions were written at a time)."""
        found: dict[int, tuple[Any, ...]] = {}
        sizes = []
        for some, bodies in self.writer.write(members, self.writer.view(TICK, 1), kind):
            sizes.append(len(some))
            for k, m in enumerate(some):
                assert m.row not in found, "each once"
                found[m.row] = self._client(m, kind, [self._message(t, b, k) for t, b in bodies])
        return found, sizes

    @staticmethod
    def _message(type_: Type, body: Any, k: int) -> Any:
        plain = body if isinstance(body, bytes) else body[k, HEADER_BYTES:].tobytes()
        assert len(plain) <= MAX_BODY_BYTES, "with a seal it would not fit"
        data = codec.encode_datagram(type_, plain, 1, 1)
        return codec.decode_payload(data, codec.decode_header(data, from_client=False))

    @staticmethod
    def _client(m: CrewMember, kind: Type, messages: list[Any]) -> tuple[Any, ...]:
        first, *more = messages
        assert isinstance(first, StateContents) and first.parts == len(more)
        readings: list[Reading] = list(first.sensors)
        for k, part in enumerate(more):
            assert isinstance(part, SensorsMessage) and (part.tick, part.part) == (first.tick, k)
            readings += part.sensors
        sensor_values: dict[int, tuple[int, list[float | None]]] = {}
        for r in readings:
            values = sensor_values.setdefault(r.number, (r.time_ns, []))[1]
            assert r.first == len(values) and r.time_ns == sensor_values[r.number][0], "piece by piece"
            values += r.values
        if kind is Type.STEP:
            assert first.last_event == m.session.outbox.last  # type: ignore[attr-defined]  # it is a StepMessage
        motion, effort = (None if v is None else tuple(v) for v in (first.motion, first.effort))
        return first.tick, first.time_ns, first.run_state, motion, tuple(first.actuation), effort, sensor_values

    def read_local(self, m: CrewMember, kind: Type) -> tuple[Any, ...]:
        """What a client in the server's process reads."""
        before = m.state_layout
        m.state_layout = None if before is None else self._local_rows.get(m.row)
        state = self.local_states.make(m, self.body, TICK, 1, kind is Type.STEP)
        self._local_rows[m.row], m.state_layout = m.state_layout, before
        assert state.step == (kind is Type.STEP)
        sensor_values = {}
        for number, layout in self.body.layouts.items():
            if layout.name in state.sensors:
                value = state.sensors[layout.name]
                sensor_values[number] = value.time_ns, [None if math.isnan(v) else v for v in value.numbers]
        effort = None if state.effort is None else tuple(v for part in vars(state.effort).values() for v in part)
        return state.tick, state.time_ns, state.run_state, state.motion, tuple(state.actuation), effort, sensor_values

    def check(self, members: Sequence[CrewMember], kind: Type = Type.STATE) -> list[int]:
        """All read what they should, also in the server's process; how many were written at a time."""
        assert [self.read_local(m, kind) for m in members] == [self.expected(m) for m in members]
        found, sizes = self.read(members, kind)
        assert found == {m.row: self.expected(m) for m in members}
        return sizes


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.fixture(autouse=True)
def _anew() -> None:
    """No form that another test has made is used again."""
    cached_template.cache_clear()


# -- what a session hears ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, MAX_WRITTEN_SINGLY, MAX_WRITTEN_SINGLY + 1, ROWS])
@pytest.mark.parametrize(
    "like",
    [
        {},
        {"truth": False},
        {"effort": True},
        {"actuators": 0},
        {"actuators": 24, "effort": True, "truth": False},
        {"chosen": ()},
        {"chosen": (2,)},
        {"chosen": (1, 2), "effort": True},
    ],
)
def test_each_reads_what_the_tables_hold(fleet: Fleet, kind: Type, count: int, like: dict[str, Any]) -> None:
    members = fleet.members(count, **like)
    for k, m in enumerate(members):
        for _ in range(300 * k):
            m.session.outbox.push([1])
    sizes = fleet.check(members, kind)
    assert sizes == ([1] * count if count <= MAX_WRITTEN_SINGLY else [count])


@pytest.mark.parametrize("kind", KINDS)
def test_sessions_that_hear_different_things_are_written_apart(fleet: Fleet, kind: Type) -> None:
    alike = [fleet.member(row) for row in range(MANY)]
    blind = [fleet.member(MANY + k, truth=False) for k in range(2)]
    assert fleet.check([blind[0], *alike, blind[1]], kind) == [1, 1, MANY]


def test_who_chooses_other_sensors_hears_of_those(fleet: Fleet) -> None:
    members = fleet.members(MANY)
    fleet.check(members)
    for m in members[:2]:
        assert m.select_sensors(["temperature"]) == ""
    assert sorted(fleet.check(members)) == sorted([1, 1, MANY - 2])


def test_a_view_is_of_one_moment(fleet: Fleet) -> None:
    view = fleet.writer.view(TICK, 1)
    first = [view.flat("state").copy(), view.values("ctd").copy()]
    for name in ("state", "ctd"):
        fleet.area[name].publish(np.zeros(ROWS, fleet.area[name].dtype), TICK + 1)
    assert [view.flat("state").tolist(), view.values("ctd").tolist()] == [a.tolist() for a in first]
    later = fleet.writer.view(TICK + 1, 2)
    assert not later.flat("state").any() and not later.values("ctd").any()
    assert (later.tick, later.time_ns, later.run_state) == (TICK + 1, NOW_NS + STEP_NS, 2)


def test_a_force_that_nobody_computed_is_none(fleet: Fleet) -> None:
    records = fleet.area["effort"].latest.copy()
    records["drag"][1] = math.nan
    fleet.area["effort"].publish(records, TICK)
    for count in (2, MANY):
        fleet.check(fleet.members(count, effort=True))


# -- sensors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, MANY])
@pytest.mark.parametrize(
    ("column", "value", "is_sent"),
    [
        ("valid", 0, False),
        ("valid", 2, False),
        ("generation", 2, False),
        ("generation", 0, False),
        ("time_ns", -1, False),
        ("time_ns", -(2**63), False),
        ("time_ns", 2**63 - 1, False),
        ("time_ns", NOW_NS + MAX_FUTURE_NS, True),
        ("time_ns", NOW_NS + MAX_FUTURE_NS + 1, False),
        ("time_ns", NOW_NS - FRESH_NS, True),
        ("time_ns", NOW_NS - FRESH_NS - 1, False),
    ],
)
def test_a_value_is_sent_while_it_is_one(fleet: Fleet, count: int, column: str, value: int, is_sent: bool) -> None:
    for row in (0, 1):
        fleet.of(row, "ctd")[column] = value
    fleet.publish()
    members = fleet.members(count)
    sizes = fleet.check(members)
    assert sizes == ([1, 1] if count == 2 else [MANY] if is_sent else [2, MANY - 2])
    assert all((0 in fleet.expected(m)[-1]) == is_sent for m in members[:2])
    assert all(1 in fleet.expected(m)[-1] for m in members)


@pytest.mark.parametrize("count", [2, MANY])
def test_the_first_value_of_all_is_sent(fleet: Fleet, count: int) -> None:
    for record in fleet.values.values():
        record["time_ns"] = 0
    fleet.publish()
    members = fleet.members(count)
    for m in members:
        m.grant = SessionGrant(**{**vars(m.grant), "max_age_ns": (NOW_NS, NOW_NS - 1, NOW_NS)})
    fleet.check(members)
    assert [sorted(fleet.expected(m)[-1]) for m in members] == [[0, 2]] * count


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [2, MANY])
@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -math.inf])
def test_a_number_that_there_is_not_is_nil(fleet: Fleet, kind: Type, count: int, nonsense: float) -> None:
    fleet.of(0, "ctd")["temperature"] = nonsense
    fleet.of(1, "multibeam")["range"][200:] = nonsense
    fleet.publish()
    members = fleet.members(count)
    members[1].session.outbox.push([1])
    assert fleet.check(members, kind) == ([1, 1] if count == 2 else [1, 1, MANY - 2])
    assert fleet.expected(members[0])[-1][0][1].count(None) == 1
    assert fleet.expected(members[1])[-1][1][1].count(None) == 56


def test_nonsense_that_is_not_sent_costs_no_more(fleet: Fleet) -> None:
    """Sessions are written together unless there is a gap in what they hear."""
    for row in range(ROWS):
        fleet.of(row, "ctd")["valid"], fleet.of(row, "ctd")["temperature"] = 0, math.nan
    fleet.publish()
    assert fleet.check(fleet.members(MANY)) == [MANY]


@pytest.mark.parametrize("count", [1, MANY])
def test_a_body_that_carries_nothing_yet_has_no_values(count: int) -> None:
    """Its row is of nobody: what stands in the first row of a table is another's."""
    fleet = Fleet(("ctd",))
    fleet.place = {(5, 0): 0}
    fleet.values["ctd"]["generation"] = fleet.generation = 0
    fleet.publish()
    fleet.check(fleet.members(count))


@pytest.mark.parametrize("count", [1, MANY])
def test_a_table_of_one_row_is_enough_for_who_has_nothing_in_it(count: int) -> None:
    area = SharedMemoryArea.create_private([*((t, ROWS) for t in VEHICLE_TABLES), (sensor_table_of("ctd"), 1)])
    fleet = Fleet(("ctd",))
    writer = StateWriter(area, STEP_NS)
    nobodys = area["instruments"].latest.copy()
    nobodys["body"] = -1
    area["instruments"].publish(nobodys, TICK)
    for some, bodies in writer.write(fleet.members(count), writer.view(TICK, 1), Type.STATE):
        assert all(not fleet._message(*bodies[0], k).sensors for k in range(len(some)))


@pytest.mark.parametrize("count", [2, MANY])
def test_places_are_read_again_when_the_engine_has_changed_them(fleet: Fleet, count: int) -> None:
    members = fleet.members(count)
    fleet.check(members)
    fleet.place = {(row, number): row for row in range(ROWS) for number in range(3)}
    fleet.generation = 2
    for records in fleet.values.values():
        records["generation"] = 2
    fleet.publish()
    fleet.check(members)
    del fleet.place[0, 0]
    fleet.publish()
    fleet.check(members)
    assert 0 not in fleet.expected(members[0])[-1]


@pytest.mark.parametrize("count", [2, MANY])
def test_a_table_of_which_no_whole_copy_can_be_had_costs_its_values_only(
    fleet: Fleet, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fleet.area["ctd"]
    table.header[BEGUN] = table.header[DONE] + 2  # as if somebody wrote all the time
    tried: list[int] = []
    real = TableView.snapshot

    def counted(self: TableView, tries: int = 1_000_000) -> Any:
        if self is table:
            tried.append(tries)
        return real(self, min(tries, 100))

    monkeypatch.setattr(TableView, "snapshot", counted)
    found, _ = fleet.read(fleet.members(count), Type.STATE)
    assert all(sorted(f[-1]) == [1, 2] for f in found.values())
    assert tried == [SNAPSHOT_TRIES] and SNAPSHOT_TRIES <= 100, "once for all of them, and it does not take long"


def test_a_server_without_instruments_tells_the_rest() -> None:
    full = Fleet(())
    area = SharedMemoryArea.create_private([(t, ROWS) for t in VEHICLE_TABLES if t is not INSTRUMENTS])
    for name in ("state", "actuation", "effort"):
        area[name].publish(full.area[name].latest, TICK)
    full.writer = StateWriter(area, STEP_NS)
    assert full.check(full.members(MANY)) == [MANY] and full.check(full.members(1)) == [1]


def test_what_is_larger_than_a_datagram_goes_in_pieces_that_use_their_room(fleet: Fleet) -> None:
    ((_, bodies),) = fleet.writer.write(fleet.members(MANY), fleet.writer.view(TICK, 1), Type.STATE)
    assert [t for t, _ in bodies] == [Type.STATE, Type.SENSORS, Type.SENSORS, Type.SENSORS]
    assert MAX_BODY_BYTES - 9 < max(matrix.shape[1] - HEADER_BYTES for _, matrix in bodies) <= MAX_BODY_BYTES, (
        "not even one number more"
    )


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize(("kind", "datagrams"), [(Type.STATE, 1), (Type.STEP, 2)])
def test_what_just_fits_into_a_state_does_not_fit_into_a_step(count: int, kind: Type, datagrams: int) -> None:
    """Which is five bytes longer: forty thermometers beside one actuator fill a datagram to its last byte."""
    fleet = Fleet(("temperature",) * ROOM_FOR)
    members = fleet.members(count, truth=False, actuators=1)
    fleet.check(members, kind)
    ((_, bodies),) = fleet.writer.write(members, fleet.writer.view(TICK, 1), kind)
    assert len(bodies) == datagrams


# -- headers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_headers_and_seals(fleet: Fleet, kind: Type, keyed: bool, count: int) -> None:
    members = fleet.members(MANY, keyed=keyed)
    sessions = [m.session for m in members[:count]]
    for k, s in enumerate(sessions):
        s.sequence, s.datagrams_out, s.ack_at = 70_000 * k, 10 * k, 5.0
        s.inbox.accept(1, [[1]] * 300 * k)
    ((_, bodies),) = fleet.writer.write(members, fleet.writer.view(TICK, 1), kind)
    for turn, (type_, matrix) in enumerate(bodies, 1):
        plain = matrix[:count, HEADER_BYTES:].copy()
        done = finish_datagrams(sessions, type_, matrix[:count])
        assert [len(d) for d in done] == ([1] * count if keyed else [count])
        for k, (s, row) in enumerate(zip(sessions, [row for d in done for row in d], strict=True)):
            data = row.tobytes()
            assert len(data) <= MAX_DATAGRAM
            header = codec.decode_header(data, from_client=False)
            assert header == codec.Header(type_, 1000 + k, 70_000 * k + turn, 300 * k, keyed)
            mine = seal.SessionSeal(KEY, COOKIE, s.token, is_client=True) if keyed else None
            assert codec.open_payload(data, header, mine) == plain[k].tobytes()
            assert (s.sequence, s.datagrams_out, s.ack_at) == (70_000 * k + turn, 10 * k + turn, None)
