"""Brokers and observers over real datagrams, against a test server."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from wavesim_devices.ports import Accept, PtyPort
from wavesim_devices.serve import DeviceOptions, DeviceType, serve_devices
from wavesim_sdk.broker import AsyncBroker, Broker
from wavesim_sdk.errors import BrokerError, InvalidArgument, Refused, SessionEnded, SessionLost, UnknownName
from wavesim_sdk.estimate import Estimate
from wavesim_sdk.observer import Observer
from wavesim_sdk.onboard import StepCollector
from wavesim_sdk.testing import ACTUATORS, SENSORS, FakeServer, admit_all
from wavesim_sdk.wire import items, session
from wavesim_sdk.wire.items import Answer, BodyChanged, Notice, RequestRefused, RunStateChanged, SignalSent
from wavesim_sdk.wire.link import FAREWELL_S
from wavesim_sdk.wire.messages import FLEET_DTYPE, SHUTDOWN, Fleet, Join, Refusal, Role
from wavesim_sdk.wire.session import Admission, Session
from wavesim_sdk.wire.state import State

pytestmark = [pytest.mark.timeout(60)]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


def reply(server: FakeServer, name: str, answer: Any) -> None:
    """Answer the next request of a client from another thread, as soon as it has come."""

    def run() -> None:
        limit = time.monotonic() + 60.0
        while not server.events_of(session.Requested, name) and time.monotonic() < limit:
            time.sleep(0.005)
        server.event(name, answer)

    threading.Thread(target=run, daemon=True).start()


def until(condition: Any, seconds: float = 5.0) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.005)
    return bool(condition())


# ------------------------------------------------------------------------------- names


def test_a_broker_knows_what_its_body_has(server: FakeServer) -> None:
    with Broker("a", server.address) as broker:
        assert broker.actuators == ACTUATORS and broker.sensors == SENSORS
        assert broker.welcome.id == 3 and broker.token == server.session("a").token
    with pytest.raises(BrokerError, match="has not joined"):
        _ = Broker("b", server.address).welcome


def test_commands_by_name_and_by_position(server: FakeServer) -> None:
    with Broker("a", server.address, lockstep=0.1) as broker:
        for tick, command, wanted in (
            (25, {"rudder": 0.25}, (None, 0.25)),
            (50, {"propeller": 8, "rudder": -0.1}, (8.0, -0.1)),
            (75, [8], (8.0,)),
            (100, (None, 0.5), (None, 0.5)),
            (125, {}, (None, None)),
            (150, None, None),
        ):
            server.step("a", tick, {"ctd": [11.5, 15.25, None, 35.5]})
            (step,) = broker.poll(5.0)
            assert step.state.tick == tick and step.time == pytest.approx(tick * 0.004)
            assert step.sensors.ctd.temperature == 15.25 and math.isnan(step.sensors.ctd.conductivity)
            broker.answer(command)  # type: ignore[arg-type]  # an empty mapping, too
            broker.poll(0.0)
            assert until(lambda t=tick: any(d.message.tick == t for d in server.events_of(session.StepDone, "a")))
            assert server.events_of(session.StepDone, "a")[-1].message.command == wanted


@pytest.mark.parametrize(
    ("command", "estimate", "text"),
    [
        ([math.nan], None, "the command of 'propeller' must be a finite number of 1/s, got nan"),
        ({"rudder": math.inf}, None, "the command of 'rudder' must be a finite number of rad, got inf"),
        (
            {"ruder": 0.1},
            None,
            r"'a' has no actuator 'ruder'; did you mean 'rudder'\? \(available: propeller, rudder\)",
        ),
        ([1.0, 2.0, 3.0], None, "too many commands for 'a': it has 2 actuators, got 3 commands"),
        (["fast"], None, "the command of 'propeller' must be a finite number of 1/s, got 'fast'"),
        ([1e300], None, r"invalid answer: command\[0\]: expected a finite number .*, got 1e\+300"),
        (None, [1.0, math.nan, *8 * [None]], r"estimate\[1\] \(east\) must be a finite number of m, got nan"),
        (
            None,
            [1.0],
            r"estimate must be an Estimate, or 10 values \(numbers or None\) in the order of its fields, got .1.0.",
        ),
    ],
)
def test_an_answer_that_cannot_be_is_refused_here_and_the_step_still_waits(
    server: FakeServer, command: Any, estimate: Any, text: str
) -> None:
    with Broker("a", server.address, lockstep=0.1) as broker:
        server.step("a", 25)
        assert broker.poll(5.0)
        with pytest.raises(InvalidArgument, match=text):
            broker.answer(command, estimate)
        broker.answer({"propeller": 1.0})
        broker.poll(0.1)
        assert [d.message.command for d in server.events_of(session.StepDone, "a")] == [(1.0, None)]
        assert server.sessions.drops["fields"] == 0


def test_an_estimate_by_keywords_and_by_position_is_the_same_on_the_wire(server: FakeServer) -> None:
    keywords = Estimate(north=1.0, east=2.0, depth=3.0, sigma_north=0.5, dead_reckoning_east=9.0, innovation=-0.1)
    by_position = [1.0, 2.0, 3.0, 0.5, None, None, None, 9.0, None, -0.1]
    with Broker("a", server.address, lockstep=0.1) as broker:
        for tick, estimate in ((25, keywords), (50, by_position)):
            server.step("a", tick)
            (step,) = broker.poll(5.0)
            assert step.tick == tick
            broker.answer({"propeller": 1.0}, estimate=estimate)
            broker.poll(0.0)
            assert until(lambda t=tick: any(d.message.tick == t for d in server.events_of(session.StepDone, "a")))
            assert server.events_of(session.StepDone, "a")[-1].message.estimate == tuple(by_position)
        with pytest.raises(InvalidArgument, match=r"estimate\.east must be a finite number of m, got 'far'"):
            broker.answer(None, Estimate(east="far"))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="nroth"):
            Estimate(nroth=1.0)  # type: ignore[call-arg]


def test_completion_shows_sensors_and_their_fields(server: FakeServer) -> None:
    with Broker("a", server.address, lockstep=0.1) as broker:
        server.step("a", 25, {"ctd": [11.5, 15.25, None, 35.5]})
        (step,) = broker.poll(5.0)
        assert {"ctd", "keys"} <= set(dir(step.sensors)), "names, beside the methods of a mapping"
        assert {"temperature", "conductivity", "time_ns", "numbers"} <= set(dir(step.sensors.ctd))
        assert all(hasattr(step.sensors.ctd, name) for name in dir(step.sensors.ctd))
        assert not any("-" in name for name in dir(step.sensors)), "names that are no attributes need brackets"


def test_requests_that_cannot_be_sent_are_refused_here(server: FakeServer) -> None:
    """Once a payload larger than a datagram raised from every later call."""
    with Broker("a", server.address) as broker:
        for call, text in (
            (lambda: broker.send(bytes(5000)), "payload must be 0 to 256 bytes, got 5000 bytes"),
            (lambda: broker.ping(math.nan), "frequency must be a finite number of Hz, got nan"),
            (lambda: broker.range_to(-1), "address must be an integer from 0 to 2\\^31-1, got -1"),
            (
                lambda: broker.subscribe(["x" * 40]),
                "each name in sensors must be printable text of at most 31 bytes, got 'x",
            ),
            (lambda: broker.weather(wind=3.0), "the weather has no value named 'wind'"),
            (
                lambda: broker.allocate([[1.0] * 20] * 6),
                "matrix must be a list of at most 72 numbers, got a list of 120",
            ),
        ):
            with pytest.raises(InvalidArgument, match=text):
                call()  # type: ignore[no-untyped-call]
        broker.poll(0.05)
        number = broker.send(b"fits")
        assert number == 1
        broker.poll(0.1)
        assert [r.request for r in server.events_of(session.Requested, "a")] == [items.Send(0, b"fits")]


def test_roles_and_wishes_reach_the_server(server: FakeServer) -> None:
    with Broker(
        "a",
        server.address,
        role="instrument",
        sensors=["ctd"],
        acoustics=False,
        effort=True,
        others=True,
        state_period=0.1,
    ):
        j = server.session("a").join
        assert (j.role, j.sensors, j.acoustics, j.effort, j.others) == (Role.INSTRUMENT, ("ctd",), 0, 1, 1)
        assert j.state_period_ns == 100_000_000
    with pytest.raises(UnknownName, match="unknown role 'listner'; did you mean 'listener'"):
        Broker("a", server.address, role="listner")
    with pytest.raises(InvalidArgument, match="name must be printable text of at most 31 bytes"):
        Broker("x" * 40, server.address)


def test_several_programs_on_one_body(server: FakeServer) -> None:
    with (
        Broker("a", server.address),
        Broker("a", server.address, role="instrument"),
        Broker("a", server.address, role="listener"),
    ):
        assert len(server.sessions.by_token) == 3
        with pytest.raises(Refused, match="'a' is in use by another client"):
            Broker("a", server.address).connect(5.0)
    assert until(lambda: not server.sessions.by_token)


# ------------------------------------------------------------------------------- rights and answers


RIGHTS = [
    (lambda b: b.control("speed", 4), items.Control("speed", 4.0)),
    (lambda b: b.control("pause"), items.Control("pause", None)),
    (lambda b: b.fault("ctd", "bias", 0.5, field="temperature"), items.Fault("", "ctd", "bias", 0.5, "temperature")),
    (lambda b: b.push([1, 2, 3], body="b"), items.Push("b", (1.0, 2.0, 3.0), (0.0, 0.0, 0.0))),
    (lambda b: b.pose(attitude=(0, 0, 1)), items.Pose("", None, (0.0, 0.0, 1.0), None)),
    (lambda b: b.pose((1, 2, 3), velocity=[0] * 6), items.Pose("", (1.0, 2.0, 3.0), None, (0.0,) * 6)),
    (lambda b: b.allocate([[1, 2]] * 6), items.Allocate("", (1.0, 2.0) * 6)),
    (lambda b: b.weather(wave_height=2), items.Weather(wave_height=2.0)),
    (lambda b: b.subscribe(["ctd"], effort=True, state_period=0.5), items.Subscribe(("ctd",), 1, 1, 0, 500_000_000)),
]


@pytest.mark.parametrize(("call", "request_"), RIGHTS, ids=lambda v: type(v).__name__)
def test_requests_of_rights_and_their_answers(server: FakeServer, call: Any, request_: Any) -> None:
    with Broker("a", server.address) as broker:
        number = call(broker)
        reply(server, "a", Answer(number, 1, "as you wish"))
        assert broker.wait(number) == "as you wish"
        assert server.events_of(session.Requested, "a")[0].request == request_
        server.event("a", Answer(77, 0, "why not"))
        with pytest.raises(Refused, match="the server refused request 77: why not"):
            broker.wait(77)
        server.event("a", RequestRefused(78, "you have no right to"))
        with pytest.raises(Refused, match="request 78: you have no right to"):
            broker.wait(78)


def test_waiting_for_an_answer_loses_no_step_and_ends(server: FakeServer) -> None:
    with Broker("a", server.address, lockstep=0.1) as broker:
        server.step("a", 25)
        number = broker.control("start")
        reply(server, "a", Answer(number, 1, ""))
        assert broker.wait(number) == ""
        (step,) = broker.poll(5.0)
        assert step.state.tick == 25 and step.answers in ([], [Answer(number, 1, "")])
        begin = time.monotonic()
        with pytest.raises(SessionLost, match=r"did not answer request 99 within 0\.2 s"):
            broker.wait(99, 0.2)
        assert 0.2 <= time.monotonic() - begin < 1.0


async def test_answers_for_asyncio_programs(server: FakeServer) -> None:
    async with AsyncBroker("a", server.address) as broker:
        number = broker.control("start")
        reply(server, "a", Answer(number, 1, "running"))
        assert await broker.wait(number) == "running"
        server.event("a", RequestRefused(7, "no"))
        with pytest.raises(Refused, match="request 7: no"):
            await broker.wait(7)
        with pytest.raises(SessionLost, match="did not answer request 99"):
            await broker.wait(99, 0.1)


def test_the_memory_of_answers_is_bounded() -> None:
    steps = StepCollector()
    for k in range(1000):
        steps.feed(Answer(k, 1, str(k)))
    assert len(steps.outcomes) == 256 and steps.outcomes.take(999) == "999" and steps.outcomes.take(1) is None
    assert steps.outcomes.take(999) is None, "reported once"


# ------------------------------------------------------------------------------- nothing is lost


EVENTS = [
    SignalSent(1, 2, 3, 25e3, 180.0, 0.01),
    RequestRefused(4, "no"),
    Answer(5, 1, "yes"),
    RunStateChanged(2, 9),
    Notice(10, "look"),
    BodyChanged(6, 1, 1, "b", "lauv"),
    items.Reception(1, 2, 0, 0, 0, 0, 0, 25e3, 130.0, 40.0),
]


def test_a_step_has_what_happened_before_it(server: FakeServer) -> None:
    with Broker("a", server.address, lockstep=0.1) as broker:
        heard: list[Any] = []
        broker.on_reception(heard.append)
        for event in EVENTS:
            server.event("a", event)
        server.step("a", 25)
        (step,) = broker.poll(5.0)
        found = [
            *step.sent,
            *step.refused,
            *step.answers,
            *step.run_states,
            *step.notices,
            *step.others,
            *step.receptions,
        ]
        assert found == EVENTS and heard == EVENTS[-1:]
        server.event("a", EVENTS[4])
        assert until(lambda: broker.poll(0.0) == [] and broker.since.notices == [EVENTS[4]])


async def test_a_slow_asyncio_program_loses_nothing_that_happened(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals and notices of states that were given up once went with them."""
    monkeypatch.setattr("wavesim_sdk.broker.KEPT_STEPS", 3)
    async with AsyncBroker("a", server.address) as broker:
        mine = server.session("a")
        for k in range(10):
            for event in EVENTS:
                server.event("a", event)
            state = _state(25 * (k + 1))
            server._do(
                lambda state=state: (server.sessions.flush(time.monotonic()), server.sessions.send(mine, state))[0]
            )
            await asyncio.sleep(0.05)
        server.event("a", RunStateChanged(3, 99))
        while not broker.ended:
            await asyncio.sleep(0.01)
        steps = [step async for step in broker.steps()]
    assert [s.state.tick for s in steps] == [200, 225, 250], "the latest states count"
    for kind, count in (
        ("sent", 10),
        ("refused", 10),
        ("answers", 10),
        ("notices", 10),
        ("others", 10),
        ("receptions", 10),
    ):
        assert sum(len(getattr(s, kind)) for s in steps) == count, kind
    assert [r.time_ns for s in steps for r in s.run_states] == [9] * 10 and broker.since.run_states == [
        RunStateChanged(3, 99)
    ]


def _state(tick: int) -> Any:
    from wavesim_sdk.wire.messages import StateMessage

    return StateMessage(tick, tick * 4_000_000, 1, 0, None, (0.0, 0.0), None, ())


async def test_a_fault_in_a_listener_reaches_the_program(server: FakeServer) -> None:
    async with AsyncBroker("a", server.address) as broker:

        def fails(_: Any) -> None:
            raise ZeroDivisionError("of the program")

        broker.on_reception(fails)
        server.event("a", EVENTS[-1])
        with pytest.raises(ZeroDivisionError):
            async for _ in broker.steps():
                pass


# ------------------------------------------------------------------------------- limits of waiting


def refuse(join: Join, old: Session | None) -> Admission:
    raise session.NotAdmitted(Refusal.UNKNOWN_NAME, "there is no such body")


def test_being_refused_takes_no_time() -> None:
    with FakeServer(refuse) as server:
        begin = time.monotonic()
        with pytest.raises(Refused, match="the server refused the join: there is no such body"):
            Broker("a", server.address).connect(10.0)
        assert time.monotonic() - begin < 3.0


@pytest.mark.parametrize("turn", range(20))
async def test_being_refused_takes_no_time_for_asyncio_either(turn: int) -> None:
    """Once it hung for ever, now and then."""
    with FakeServer(refuse) as server:
        async with asyncio.timeout(10.0):
            with pytest.raises(Refused, match="there is no such body"):
                await AsyncBroker("a", server.address).connect(5.0)


async def test_a_device_that_is_refused_ends_and_gives_its_port_back() -> None:
    """Once `wavesim device` then hung without a word."""
    opened: list[PtyPort] = []

    def port(accept: Accept) -> PtyPort:
        opened.append(PtyPort(accept))
        return opened[0]

    with FakeServer(refuse) as server:
        async with asyncio.timeout(10.0):
            with pytest.raises(Refused, match="there is no such body"):
                await serve_devices(
                    DeviceOptions("a", server.address), (DeviceType("a device", lambda *_: Mock()), {"port": port})
                )
    with pytest.raises(OSError):
        os.fstat(opened[0]._master)


@pytest.mark.parametrize("listening", [False, True])
async def test_joining_ends_at_its_limit(listening: bool) -> None:
    """Nobody has the port, or whoever has it says nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        address = mute.getsockname()
        if not listening:
            mute.close()
        for connect in (
            lambda: AsyncBroker("a", address).connect(0.3),
            lambda: asyncio.to_thread(Broker("a", address).connect, 0.3),
        ):
            begin = time.monotonic()
            with pytest.raises(SessionLost, match="no server answers at"):
                async with asyncio.timeout(5.0):
                    await connect()
            assert 0.25 <= time.monotonic() - begin < 2.0


def test_leaving_is_confirmed(server: FakeServer) -> None:
    with Broker("a", server.address):
        pass
    assert [type(h).__name__ for h in server.server_events] == ["Joined", "SessionGone"], "when close() returns"
    lost = 0

    def drop(data: bytes) -> bool:
        nonlocal lost
        if len(data) > 5 and data[5] == 20 and lost < 2:
            lost += 1
            return True
        return False

    server.drop_datagram = drop
    server.server_events.clear()
    with Broker("a", server.address):
        pass
    assert lost == 2 and [type(h).__name__ for h in server.server_events] == ["Joined", "SessionGone"]


async def test_leaving_is_confirmed_for_asyncio_too(server: FakeServer) -> None:
    async with AsyncBroker("a", server.address):
        pass
    assert [type(h).__name__ for h in server.server_events] == ["Joined", "SessionGone"]


async def test_leaving_a_server_that_is_gone_takes_a_moment() -> None:
    with FakeServer() as server:
        broker, other = Broker("a", server.address), AsyncBroker("b", server.address)
        broker.connect()
        await other.connect()
    begin = time.monotonic()
    broker.close()
    await other.close()
    assert time.monotonic() - begin < 2 * FAREWELL_S + 0.5
    broker.close()
    await other.close()
    with pytest.raises(BrokerError, match="a closed connection cannot be used again"):
        broker.poll()


def test_the_end_sent_by_the_server_is_reported(server: FakeServer) -> None:
    with Broker("a", server.address) as broker:
        server.bye("a", "enough")
        with pytest.raises(SessionLost, match="the server ended the session: enough"):
            broker.poll(5.0)


async def test_steps_end_when_the_server_shuts_down(server: FakeServer) -> None:
    """A program's own loop of polls gets the exception; an end of this session alone always raises it."""
    with Broker("a", server.address) as broker, Observer("o", server.address) as observer:
        for name in ("a", "o"):
            server.bye(name, SHUTDOWN)
        assert not any(True for _ in broker.steps()) and not any(True for _ in observer.frames())
        assert (broker.is_shut_down, broker.end_reason) == (True, "the server shuts down")
        with pytest.raises(SessionEnded, match="the server ended the session: the server shuts down"):
            broker.raise_if_shut_down()
    with Broker("a", server.address) as broker:
        server.bye("a", SHUTDOWN)
        with pytest.raises(SessionEnded):
            broker.poll(5.0)
    with Broker("a", server.address) as broker:
        server.bye("a", "enough")
        with pytest.raises(SessionEnded, match="enough"):
            list(broker.steps())
        assert (broker.is_shut_down, broker.end_reason) == (False, "enough")
        broker.raise_if_shut_down()
    for reason in (SHUTDOWN, "enough"):
        async with AsyncBroker("a", server.address) as later:
            server.bye("a", reason)
            with contextlib.nullcontext() if reason == SHUTDOWN else pytest.raises(SessionEnded, match="enough"):
                async for _ in later.steps():
                    pass
            assert later.end_reason == reason


def test_the_end_of_a_run_is_not_waited_out(server: FakeServer) -> None:
    with Broker("a", server.address, lockstep=0.1) as broker:
        server.event("a", RunStateChanged(3, 99))
        begun = time.monotonic()
        assert broker.poll(20.0) == [] and broker.ended and time.monotonic() - begun < 10.0
        assert list(broker.steps()) == []
        begun = time.monotonic()
        assert broker.poll(0.3) == [] and time.monotonic() - begun >= 0.3, "from then on it waits as requested"


def test_coming_back_with_the_old_token(server: FakeServer) -> None:
    first = Broker("a", server.address)
    first.connect()
    with Broker("a", server.address, previous=first.token) as broker:
        assert broker.welcome.resumed == 1
        assert [type(h).__name__ for h in server.server_events] == ["Joined", "Resumed"]
        with pytest.raises(SessionLost, match="another session has resumed this session"):
            first.answer([1.0])
            first.poll(5.0)
    with pytest.raises(Refused, match="no live session with that token"):
        Broker("a", server.address, previous=first.token).connect(5.0)


# ------------------------------------------------------------------------------- observers


def test_an_observer_sees_frames_and_signals(server: FakeServer) -> None:
    with Observer("eye", server.address, rate=10.0, bodies=[3, 5], sounds=True) as observer:
        assert until(lambda: bool(server.events_of(session.Requested, "eye")))
        assert server.events_of(session.Requested, "eye")[0].request == items.Observe(
            100_000_000, (3, 5), None, 1e12, 1
        )
        assert server.session("eye").join.role == Role.OBSERVER and observer.link.session.welcome is not None
        seen = items.SignalSeen(5, 3, 0, 1, 25e3, 188.0, (1.0, 2.0, 3.0))
        for event in (BodyChanged(3, 1, 1, "a", "lauv"), seen, RunStateChanged(1, 5)):
            server.event("eye", event)
        for part in range(2):
            server.send("eye", Fleet(25, 7, 1, part, 2, bytes(FLEET_DTYPE.itemsize)))
        frames = observer.poll(5.0) or observer.poll(5.0)
        assert frames[0].tick == 25 and frames[0].is_complete and len(frames[0].bodies) == 2
        assert until(lambda: observer.poll(0.0) == [] and observer.names == {3: "a"})
    with pytest.raises(InvalidArgument, match=r"bodies\[0\] must be an integer from 0"):
        Observer("eye", server.address, bodies=[-1])


def test_an_observer_with_rights_is_a_referee(server: FakeServer) -> None:
    with Observer("referee", server.address) as observer:
        asked = observer.push((50.0, 0.0, 0.0), body="a")
        for part in range(3):
            server.send("referee", Fleet(25 + part, 7, 1, 0, 1, bytes(FLEET_DTYPE.itemsize)))
        reply(server, "referee", Answer(asked, 1, "pushed"))
        assert observer.wait(asked) == "pushed"
        pushed = items.Push("a", (50.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        assert pushed in [e.request for e in server.events_of(session.Requested, "referee")]
        frames: list[int] = []
        assert until(lambda: frames.extend(f.tick for f in observer.poll(0.0)) or frames == [25, 26, 27])
        server.event("referee", RequestRefused(78, "you have no right to"))
        with pytest.raises(Refused, match="request 78: you have no right to"):
            observer.wait(78)
        with pytest.raises(SessionLost, match=r"did not answer request 99 within 0\.1 s"):
            observer.wait(99, 0.1)


def test_everything_of_a_state_has_a_default() -> None:
    state = State()
    assert (state.tick, state.motion, state.effort, state.step, len(state.sensors), len(state.actuation)) == (
        0,
        None,
        None,
        False,
        0,
        0,
    )
    assert admit_all(Join(name="a", role=Role.OBSERVER)).id == -1
