"""Frames of imaging sonars over the network: sent in pieces at a bounded rate, lost or complete, never torn."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap_ros2.reader import read_ros2_messages

from tests.server.harbour import Client, Harbour
from wavesim_sdk.broker import AsyncBroker
from wavesim_sdk.errors import Refused
from wavesim_sdk.frame_rings import FrameRings, remove_rings
from wavesim_sdk.imaging_frames import RECORD, SOUNDING_COLUMNS, ImagingFrame
from wavesim_sdk.log import frames as read_frames
from wavesim_sdk.log import read
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import CLOCK, RunState
from wavesim_sdk.testing import FakeServer
from wavesim_sdk.wire.codec import encode_payload
from wavesim_sdk.wire.frame_pieces import FrameAssembler, WholeFrame, split_frame
from wavesim_sdk.wire.items import Answer, Frames
from wavesim_sdk.wire.messages import HEADER_BYTES, MAX_DATAGRAM, PIECE_BYTES, SEAL_BYTES, Piece, Role
from wavesim_sdk.wire.session import Requested
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.network.engine_queue import LocalEngineQueue
from wavesim_server.network.front import Front
from wavesim_server.resources import area_tables
from wavesim_world.config import LoadedConfig

OBSERVER, LISTENER = int(Role.OBSERVER), int(Role.LISTENER)
BYTES = 10_000  #: of a payload
FLEET = """<time pace="fast"/><network frame_rate="1 MB"/><fleet>
<vehicle name="a" model="lauv" position="0 0 5 m" client="optional"><sensors>
<sonar name="ahead" preset="p900-45"/><sonar name="side" preset="starfish-450"/>
<camera name="eye" width="32" height="24" depth="yes"/></sensors></vehicle>
<vehicle name="b" model="lauv" position="9 0 5 m" client="optional" truth="none"><sensors><sonar name="bed" preset="norbit-wbms"/></sensors></vehicle></fleet>"""


def record(**fields: Any) -> Any:
    made = np.zeros((), RECORD)
    for field, value in {"generation": 1, "beams": 10, "bins": BYTES // 10, "sample_bytes": 1, **fields}.items():
        made[field] = value
    return made


def whole(number: int, **fields: Any) -> ImagingFrame:
    payload = random.Random(number).randbytes(BYTES)
    return ImagingFrame(record(number=number, bytes=BYTES, **fields), payload)


@pytest.fixture
def harbour(config: Callable[..., LoadedConfig], name: str) -> Iterator[Harbour]:
    harbour = Harbour(config(FLEET))
    FrameRings.create(name, 8, RECORD.itemsize + BYTES)
    harbour.front.frame_streamer._rings = FrameRings.attach(name, writable=True)
    yield harbour
    remove_rings(name)


def ask(harbour: Harbour, client: Client, *names: str, period: float = 0.0) -> tuple[bool, str]:
    number = client.session.request(Frames(names or None, round(period * 1e9)))
    harbour.run(0.02)
    said = client.outcome(number)
    assert said is not None
    return said


def place(harbour: Harbour, row: int, number: int) -> int:
    instruments = harbour.front.broadcast.writer.instruments
    assert instruments is not None
    found = instruments.locate(row, number)
    assert found is not None
    return found[0]


def write(harbour: Harbour, ring: int, frame: ImagingFrame) -> None:
    rings = harbour.front.frame_streamer._rings
    assert rings is not None
    rings.write(ring, frame.record.copy(), frame.payload)


def got(client: Client) -> list[ImagingFrame]:
    return [ImagingFrame.from_bytes(w.data) for w in client.of(WholeFrame)]


def test_a_crew_gets_what_it_requests_and_a_refusal_without_permission(harbour: Harbour) -> None:
    pilot = harbour.join("a")
    assert ask(harbour, pilot, "aft") == (
        False,
        "'a' has no sonar, camera, lidar or hydrophone named 'aft'; available: ahead, side, eye",
    )
    observer = harbour.join("eye", role=OBSERVER)
    assert ask(harbour, observer) == (False, "an observer cannot receive frames: it has no body")
    ahead, side = place(harbour, 0, 0), place(harbour, 0, 1)
    write(harbour, ahead, whole(1))
    assert ask(harbour, pilot) == (True, "")
    harbour.run(0.1)
    assert got(pilot) == [], "the first is the next one, not one that was there"
    write(harbour, ahead, whole(2))
    write(harbour, side, whole(1, range=7.0))
    harbour.run(0.1)
    assert [int(f.record["number"]) for f in got(pilot)] == [2, 1]
    assert [f.payload for f in got(pilot)] == [whole(2).payload, whole(1).payload]
    assert ask(harbour, pilot, "side") == (True, "")
    write(harbour, ahead, whole(3))
    write(harbour, side, whole(2, range=7.0))
    harbour.run(0.1)
    assert [float(f.record["range"]) for f in got(pilot)] == [0.0, 7.0, 7.0]
    rings = harbour.front.frame_streamer._rings
    assert rings is not None and ask(harbour, pilot, "eye") == (True, "")
    write(harbour, rings.ring_index("camera", place(harbour, 0, 2)), whole(1, kind=4, range=3.0))
    harbour.run(0.1)
    assert (got(pilot)[-1].kind, got(pilot)[-1].payload) == ("camera", whole(1).payload)
    ask(harbour, pilot, "side")
    off = pilot.session.request(Frames((), 0))
    harbour.run(0.02)
    assert pilot.outcome(off) == (True, "")
    write(harbour, side, whole(3, range=7.0))
    harbour.run(0.1)
    assert len(got(pilot)) == 4
    assert pilot.session.frames.lost_frames == 0


def test_rates(harbour: Harbour) -> None:
    """1 MB/s for all, and a period of its own: the rest is left out, the newest is sent."""
    pilot, listener = harbour.join("a"), harbour.join("a", role=LISTENER)
    ask(harbour, pilot, "ahead")
    ask(harbour, listener, "ahead", period=0.2)
    ring, before = place(harbour, 0, 0), harbour.now
    for n in range(1, 501):
        write(harbour, ring, whole(n))
        harbour.run(0.002)
    seconds = harbour.now - before
    numbers = [int(f.record["number"]) for f in got(pilot)]
    assert 0.8e6 < len(numbers) * BYTES / seconds <= 1.0e6
    assert numbers == sorted(set(numbers)) and numbers[-1] > 480
    assert len(got(listener)) == 5
    assert pilot.session.frames.lost_frames == 0, "what is left out is not lost"
    assert all(f.payload == whole(int(f.record["number"])).payload for f in got(pilot))


def test_a_session_that_is_over_and_one_whose_client_is_dead_cost_nothing(harbour: Harbour) -> None:
    pilot = harbour.join("a")
    ask(harbour, pilot)
    pilot.session.leave()
    harbour.run(0.1)
    assert harbour.front.frame_streamer.by_token == {}
    assert harbour.front.frame_streamer.poll(harbour.now) > 1e9


def test_the_truth_is_hidden_from_whom_it_is_hidden(harbour: Harbour) -> None:
    pilot = harbour.join("b")
    ask(harbour, pilot)
    values = np.arange(4.0 * len(SOUNDING_COLUMNS)).reshape(4, -1)
    sounded = record(kind=2, beams=4, bins=len(SOUNDING_COLUMNS), sample_bytes=8, p_WS_W=(1, 2, 3), altitude=4.0)
    write(harbour, place(harbour, 1, 0), ImagingFrame(sounded, values.tobytes()))
    harbour.run(0.1)
    (frame,) = got(pilot)
    true = SOUNDING_COLUMNS.index("north")
    assert (frame.samples[:, :true] == values[:, :true]).all()
    assert np.isnan(frame.samples[:, true:]).all()
    assert np.isnan(frame.record["p_WS_W"]).all() and np.isnan(frame.record["euler"]).all()
    labelled = ImagingFrame(record(labels=1, bytes=5 * BYTES), bytes(5 * BYTES)).without_truth()
    assert labelled.labels is None
    assert ImagingFrame.from_bytes(labelled.data).samples.shape == (10, BYTES // 10)


def test_pieces_in_any_order_twice_or_not_at_all() -> None:
    """Whatever a network does, a frame is whole or lost, and the lost ones are counted."""
    dice = random.Random(3)
    sent = [random.Random(n).randbytes(dice.randrange(1, 9 * PIECE_BYTES)) for n in range(1, 301)]
    wire = [(n + dice.uniform(0.0, 1.5), piece) for n, data in enumerate(sent, 1) for piece in split_frame(4, n, data)]
    wire += [wire[dice.randrange(len(wire))] for _ in range(len(wire) // 10)]
    assembly, found = FrameAssembler(), []
    for _, piece in sorted(wire, key=lambda w: w[0]):
        if dice.random() > 0.02 and (made := assembly.add(piece)) is not None:
            found.append(made)
    assert [f.number for f in found] == sorted({f.number for f in found}), "each once, in order"
    assert all(f.data == sent[f.number - 1] for f in found)
    assert 50 < len(found) < 280
    assert assembly.lost_frames == found[-1].number - len(found)


def test_nonsense_in_pieces_and_frames() -> None:
    assembly = FrameAssembler()
    assert assembly.add(Piece(0, 1, 5, 2, b"x")) is None
    assert assembly.add(Piece(0, 1, 0, 3, b"x")) is None, "another number of parts than said first"
    assert assembly.add(Piece(0, 1, 0, 2, b"x")) is None
    assert assembly.add(Piece(0, 1, 1, 2, b"y")) == WholeFrame(0, 1, b"xy")
    assert assembly.add(Piece(0, 1, 1, 2, b"y")) is None
    good = whole(1)
    assert ImagingFrame.from_bytes(good.data).payload == good.payload
    for bad in (good.data[:-1], good.data + b"x", good.data[:100], b""):
        with pytest.raises(ValueError, match="record"):
            ImagingFrame.from_bytes(bad)
    for field, value in (("beams", -1), ("sample_bytes", 3), ("kind", 9), ("bins", 2**62)):
        torn = good.record.copy()
        torn[field] = value
        with pytest.raises(ValueError, match="record"):
            ImagingFrame.from_bytes(torn.tobytes() + good.payload)
    largest = encode_payload(Piece(2**31 - 1, 2**62, 8191, 8192, bytes(PIECE_BYTES)))[1]
    assert HEADER_BYTES + len(largest) + SEAL_BYTES <= MAX_DATAGRAM


@pytest.mark.timeout(60)
def test_an_asyncio_program_iterates_over_frames() -> None:
    async def program(server: FakeServer) -> tuple[list[int], int]:
        async with AsyncBroker("a", server.address) as broker:
            seen: list[int] = []
            async for frame in broker.frames("sonar", period=0.1):
                seen.append(int(frame.record["number"]))
                if len(seen) == 3:
                    break
            server.answer = lambda r: items_refusal(r)
            with pytest.raises(Refused, match="no sonar 'aft'"):
                await anext(broker.frames("aft"))
            return seen, broker.frames_lost

    def items_refusal(r: Requested) -> Any:
        from wavesim_sdk.wire.items import RequestRefused

        return RequestRefused(r.number, "'a' has no sonar 'aft'")

    with FakeServer() as server:
        requests: list[Any] = []

        def answer(r: Requested) -> Answer:
            requests.append(r.request)
            for n, frame in ((1, 1), (2, 2), (4, 4)):  # the third was lost
                for piece in split_frame(1, n, whole(frame).data):
                    server.sessions.send(r.session, piece)
            return Answer(r.number, 1, "")

        server.answer = answer
        seen, lost = asyncio.run(program(server))
    assert (seen, lost) == ([1, 2, 4], 1)
    assert requests[0] == Frames(("sonar",), 100_000_000)
    assert Frames((), 0) in requests or any(r.request == Frames((), 0) for r in server.events_of(Requested, "a"))


@pytest.fixture
def logged(config: Callable[..., LoadedConfig], name: str, tmp_path: Path) -> Iterator[tuple[Front, FrameRings, Path]]:
    """A front with a log, and the rings that it logs."""
    loaded = config(FLEET.replace('<sonar name="side"', '<sonar name="side" log="3"'))
    areas = {area: SharedMemoryArea.create_private(tables) for area, tables in area_tables(loaded).items()}
    FrameRings.create(name, 8, RECORD.itemsize + BYTES)
    log = LogWriter(tmp_path / "a.mcap", loaded, 1)
    front = Front(loaded, name, 1, areas, LocalEngineQueue(), log=log)
    front.poll(0.0)
    yield front, FrameRings.attach(name, writable=True), tmp_path / "a.mcap"
    remove_rings(name)


def test_frames_stand_in_the_log_and_none_is_lost_while_time_can_wait(logged: Any) -> None:
    front, rings, path = logged
    names = {0: b"ahead", 1: b"side"}
    waited = threading.Thread(
        target=lambda: [
            rings.write(ring, record(body=b"a", name=names[ring], time_ns=n), whole(n).payload, patience=20.0)
            for n in range(1, 31)
            for ring in (0, 1)
        ]
    )
    waited.start()
    now = 0.0
    while waited.is_alive() or rings.done[1] < 30:
        now += 0.005
        front.poll(now)
    front.finish(now)
    every = list(read_frames(path, "a", "ahead"))
    assert [int(f.record["number"]) for f in every] == list(range(1, 31))
    assert all(f.payload == whole(k).payload for k, f in enumerate(every, 1))
    assert [int(f.record["number"]) for f in read_frames(path, "a", "side")] == list(range(1, 31, 3))
    assert front.data_loss.texts == []
    log = read(path)
    assert log.series["/sonar/a/ahead"].records["number"].tolist() == list(range(1, 31)), "without their payloads"
    with path.open("rb") as file:
        messages = [m.ros_msg for m in read_ros2_messages(file, topics=["/sonar/a/ahead"])]
    assert bytes(messages[4].data) == whole(5).payload
    assert (messages[4].number, messages[4].beams) == (5, 10)


def test_in_real_time_frames_that_come_too_fast_are_counted(logged: Any) -> None:
    front, rings, path = logged
    front.areas["simulation"]["clock"].publish(running(), 0)
    for n in range(1, 11):
        rings.write(0, record(body=b"a", name=b"ahead", time_ns=n), whole(n).payload)
    front.poll(1.0)
    front.finish(1.0)
    assert [int(f.record["number"]) for f in read_frames(path)] == [7, 8, 9, 10]
    assert front.data_loss.texts == ["6 frames of 'a' ahead arrived too fast for the log, at 0.0 s"]


def running() -> Any:
    clock = np.zeros(1, CLOCK.dtype)
    clock["state"] = RunState.RUNNING
    return clock
