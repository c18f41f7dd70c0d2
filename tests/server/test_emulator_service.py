"""The server's side of an emulator on another machine: what it sends, and which values it refuses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from wavesim_conformance.emulator import MOUNTED_INSTRUMENTS, FakeEngine
from wavesim_sdk.arrays import Record, as_words
from wavesim_sdk.arrival_batches import ArrivalCollector
from wavesim_sdk.attach import SharedState
from wavesim_sdk.emulator_service import EmulatorService
from wavesim_sdk.front_rings import SEGMENT, FrontRings
from wavesim_sdk.front_tables import FRONT, WAVEFORM, FrontBatch
from wavesim_sdk.shared_memory import DONE, OWNER
from wavesim_sdk.wire.emulator_items import (
    ArrivalPart,
    Arrivals,
    Attach,
    Due,
    FramePart,
    Rows,
    Serve,
    TableDescription,
    Values,
    Written,
)

PLACE = MOUNTED_INSTRUMENTS[0][2]


class Bench:
    """A service and a copy of the tables that its emulator has."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine, self.tables, self.names = engine, dict[str, Any](), dict[int, str]()
        self.sent: list[Any] = []
        self.room = 10**6  #: number of events that the session can take
        self.service = EmulatorService(
            SharedState(engine.name), engine.sensor, self.take, lambda due: None, room=lambda: self.room
        )

    def take(self, event: Any) -> None:
        self.sent.append(event)
        self.room -= 1
        match event:
            case TableDescription(number, name, rows, size):
                self.names[number], self.tables[name] = name, bytearray(rows * size)
            case Rows(table, offset, data):
                self.tables[self.names[table]][offset : offset + len(data)] = data

    def ask(self, tick: int) -> list[Any]:
        """Publish a tick and let it be due; return the events."""
        self.engine.publish(tick)
        self.sent.clear()
        self.service.on_due(tick)
        assert isinstance(self.sent[-1], Due)
        return [*self.sent]

    def rows(self, name: str) -> Record:
        return np.frombuffer(bytes(self.tables[name]), self.engine.vehicles[name].dtype)

    def write(self, rows: Record, tick: int) -> None:
        data = as_words(rows).tobytes()
        for at in range(0, len(data), 1000):
            self.service.handle(Values(at, data[at : at + 1000]))
        self.service.handle(Written(tick, 1))


@pytest.fixture
def bench() -> Iterator[Bench]:
    engine = FakeEngine(f"service-test-{os.getpid()}", "ctd")
    made = Bench(engine)
    try:
        yield made
    finally:
        made.service.release()
        assert engine.table.header[OWNER] == 0
        engine.close()


def test_only_rows_that_are_needed_and_have_changed(bench: Bench) -> None:
    """Bodies alpha and beta carry the sensor, gamma does not."""
    bench.service.handle(Attach(("weather",), 0))
    bench.service.handle(Serve(1))
    bench.ask(25)
    state = bench.engine.vehicles["state"].snapshot()[1]
    assert (bench.rows("state")[:2] == state[:2]).all() and not bench.tables["state"][2 * state.itemsize :].strip(b"\0")
    assert bench.rows("identity")["name"].tolist()[:3] == [b"alpha", b"beta", b""]
    assert (bench.rows("instruments")["name"][:3] == [b"first", b"second", b"first"]).all()
    bench.service.handle(Written(25, 0))
    again = bench.ask(50)
    changed = {bench.names[e.table] for e in again if isinstance(e, Rows)}
    assert changed == {"state"}
    assert (bench.rows("state")[:2] == bench.engine.vehicles["state"].snapshot()[1][:2]).all()
    bench.service.handle(Written(50, 0))
    bench.engine.set_body(6, "delta")
    bench.engine.mount_instrument(len(MOUNTED_INSTRUMENTS), 6, "first", 1)
    *_, due = bench.ask(75)
    assert bench.rows("identity")["name"][6] == b"delta" and due.version > again[-1].version


def test_all_bodies_on_request(bench: Bench) -> None:
    bench.service.handle(Attach((), 1))
    bench.service.handle(Serve(1))
    bench.ask(25)
    assert bench.rows("identity")["name"].tolist()[:3] == [b"alpha", b"beta", b"gamma"]
    assert (bench.rows("state") == bench.engine.vehicles["state"].snapshot()[1]).all()


def test_arrivals_wait_until_the_session_has_room(bench: Bench) -> None:
    """A batch of random records is longer than the session can take at once; DUE follows its last part."""
    rings = FrontRings.create(bench.engine.name, 1)
    try:
        bench.service.handle(Attach(("waveform", "front"), 0))
        described = {e.name: e for e in bench.sent if isinstance(e, TableDescription)}
        assert described["front"].rows == 0 and described["front"].row_bytes == FRONT.dtype.itemsize
        bench.service.handle(Serve(1))
        rng = np.random.default_rng(1)
        fronts = np.frombuffer(rng.bytes(3000 * FRONT.dtype.itemsize), FRONT.dtype)
        rings.write(FrontBatch(np.zeros(1, WAVEFORM.dtype), fronts, 5, True))
        bench.engine.publish(25)
        bench.sent.clear()
        bench.room = 100
        bench.service.on_due(25)
        assert bench.room == 0 and not any(isinstance(e, Due) for e in bench.sent)
        turns = 1
        bench.room = 100
        while bench.service.continue_sending():
            assert bench.room == 0
            bench.room, turns = 100, turns + 1
        assert turns > 5 and isinstance(bench.sent[-1], Due)
        collector = ArrivalCollector()
        for event in bench.sent:
            if isinstance(event, Arrivals | ArrivalPart):
                collector.feed(event)
        got = collector.take(5)
        assert got.fronts.tobytes() == fronts.tobytes() and got.is_restarted and len(got.waveforms) == 1
        bench.service.handle(Written(25, 0))
        bench.room = 100
        assert not any(isinstance(e, Arrivals | ArrivalPart) for e in bench.ask(50)), "nothing is new"
    finally:
        SEGMENT.remove(bench.engine.name)


def test_arrivals_are_refused_without_hydrophones(bench: Bench) -> None:
    with pytest.raises(ValueError, match="hydrophones"):
        bench.service.handle(Attach(("waveform", "front"), 0))


def good(engine: FakeEngine, tick: int) -> Record:
    rows = engine.values()
    places = [place for _, _, place in MOUNTED_INSTRUMENTS]
    rows["valid"][places], rows["tick"][places], rows["time_ns"][places] = 1, tick, tick * engine.step_ns
    rows["generation"][places] = engine.instruments["generation"][: len(places)]
    rows["sequence"][places] += 1
    return rows


def change(column: str, value: float, row: int = PLACE) -> Callable[[Record], None]:
    def act(rows: Record) -> None:
        rows[column][row] = value

    return act


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (change("valid", 2), "`valid` must be 0 or 1"),
        (change("generation", 9), "no instrument with this generation"),
        (change("valid", 1, 7), "the row has no instrument"),
        (change("tick", 51), "`tick` exceeds 50"),
        (change("tick", -1), "`tick` exceeds 50"),
        (change("time_ns", 1), "`time_ns` is not the time of `tick`"),
        (change("sequence", 0), "`sequence` decreases"),
        (change("temperature", np.inf), "infinite; use NaN"),
    ],
)
def test_wrong_values_are_refused_as_a_whole(bench: Bench, wrong: Callable[[Record], None], text: str) -> None:
    bench.service.handle(Attach((), 0))
    bench.service.handle(Serve(1))
    bench.ask(25)
    bench.write(good(bench.engine, 25), 25)
    before = bench.engine.values()
    bench.ask(50)
    rows = good(bench.engine, 50)
    wrong(rows)
    with pytest.raises(ValueError, match=f"invalid values of 'ctd' in row .*{text}"):
        bench.write(rows, 50)
    assert (bench.engine.values() == before).all()
    assert bench.engine._done.value == 2, "the engine does not wait for it"


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (Serve(1), "send ATTACH before SERVE"),
        (Attach(("clients",), 0), "cannot receive the table 'clients'"),
        (Attach(("lines", "sonar"), 0), "this run has no table 'sonar'"),
        (Values(10**9, b"x"), "are outside the table"),
        (Written(3, 1), "names tick 3, which is not due"),
        (FramePart(0, 0, 9, b"x"), "sensor type that has frames"),
    ],
)
def test_requests_that_cannot_be(bench: Bench, request_: Any, text: str) -> None:
    done = bench.engine.table.header[DONE]
    with pytest.raises(ValueError, match=text):
        bench.service.handle(request_)
    assert bench.engine.table.header[DONE] == done


def test_one_exchange_at_a_time(bench: Bench) -> None:
    """A due tick that comes before the answer to the last one is sent after it, with the newest state."""
    bench.service.handle(Attach((), 0))
    bench.service.handle(Serve(1))
    bench.ask(25)
    bench.sent.clear()
    bench.engine.publish(50)
    bench.service.on_due(50)
    bench.engine.publish(60)
    assert not bench.sent
    bench.write(good(bench.engine, 25), 25)
    assert bench.sent[-1] == Due(50, 60, 60 * bench.engine.step_ns, bench.sent[-1].version)
