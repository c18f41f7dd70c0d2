"""Faults that a session, a command, an event or a table causes in engine or front affect only that session."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest

from tests.server.harbour import Client, Harbour, done, status
from wavesim_sdk import commands
from wavesim_sdk.shared_memory import BEGUN, DONE, OWNER, SYNCHRONOUS
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.client import JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.items import Control, Observe, Ping, RunStateChanged
from wavesim_sdk.wire.messages import MAX_SENSORS, Join, Role, Type
from wavesim_server import messages
from wavesim_server.engine import process
from wavesim_world.config import LoadedConfig

FLEET = """<time step="10 ms" pace="fast"/>
<network newcomers="free" keepalive_period="0.1 s" keepalive_timeout="0.5 s" lockstep_timeout="0.2 s"><grant to="*" rights="fault push pose control"/></network>
<fleet><sensors><ahrs rate="10 Hz"/></sensors>
<vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/><vehicle name="b" model="lauv" position="9 0 5 m" client="optional"/>
</fleet>"""


@pytest.fixture
def harbour(config: Callable[..., LoadedConfig]) -> Harbour:
    return Harbour(config(FLEET))


def raw(client: Client, kind: Type, body: Any) -> bytes:
    """A datagram of a client's session with any body."""
    session = client.session
    session._sequence += 1
    return codec.encode_datagram(kind, msgpack.packb(body), session.token, session._sequence, 0)


NESTED: list[Any] = [[[]]]
ABSURD = [
    (Type.ACTUATE, [NESTED]),
    (Type.ACTUATE, [[[1.0]]]),
    (Type.ACTUATE, [[float("nan")]]),
    (Type.ACTUATE, [[2**64 - 1]]),
    (Type.DONE, [0, 0, NESTED, None]),
    (Type.DONE, [0, 0, None, NESTED]),
    (Type.DONE, [2**64 - 1, 0, None, None]),
    (Type.ESTIMATE, [NESTED]),
    (Type.ESTIMATE, [[[1.0], *[0.0] * 9]]),
    (Type.REQUESTS, [1, NESTED]),
    (Type.REQUESTS, [1, [[4, 2**64 - 1, None, None, 0.0, 0]]]),
    (Type.REQUESTS, [1, [[1, -1e308]]]),
    (Type.REQUESTS, [1, [[99, {"a": 1}]]]),
    (Type.KEEPALIVE_REPLY, [-1]),
    (Type.PROOF, [None]),
    (Type.LEAVE, {}),
]


@pytest.mark.parametrize(("kind", "body"), ABSURD)
def test_absurd_values_end_nothing(harbour: Harbour, kind: Type, body: Any) -> None:
    client, other = harbour.join("a", lockstep_ns=100_000_000), harbour.join("b")
    harbour.order("start")
    harbour.front.receive(raw(client, kind, body), client.address, harbour.now)
    harbour.run(0.5)
    assert other.session.phase is Phase.JOINED and other.states[-1].tick > 0
    assert status(harbour)["drops"].get("internal", 0) == 0
    assert harbour.engine.publication.counts.events_dropped == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("position", [[0], 0.0, 0.0]),
        ("position", [1e300, 0.0, 0.0]),
        ("attitude", [None, 0.0, 0.0]),
        ("state_period_ns", 2**64 - 1),
        ("state_period_ns", -1),
        ("lockstep_ns", 2**63),
        ("lockstep_ns", -10_000_000),
        ("lockstep_ns", 0.5),
        ("name", "x" * 10_000),
        ("name", "a\x00b"),
        ("sensors", [[[]]]),
        ("role", 2**40),
    ],
)
def test_absurd_joins_are_refused(harbour: Harbour, field: str, value: Any) -> None:
    client = harbour.join("b")
    client.session.leave()
    harbour.run(0.1)
    address = ("10.0.0.7", 99)
    session = harbour.clients[0].session
    cookie = harbour.front.sessions._address_validator.make_cookie(address, harbour.now)
    names = ("cookie", "nonce", "name", "role", "model", "position", "attitude", "lockstep_ns", "state_period_ns")
    body: dict[str, Any] = dict(zip(names, (cookie, 7, "new", 0, "lauv", [0.0] * 3, [0.0] * 3, 0, 0), strict=True))
    body |= {"previous": 0, "sensors": None, "acoustics": 0, "effort": 0, "others": 0, field: value}
    plain = msgpack.packb(list(body.values()))
    if len(plain) < 1100:
        harbour.front.receive(codec.encode_datagram(Type.JOIN, plain), address, harbour.now)
    harbour.run(0.1)
    assert status(harbour)["clients_total"] == 0 and status(harbour)["drops"].get("internal", 0) == 0
    assert harbour.join("b").session.phase is Phase.JOINED
    assert session.phase is Phase.CLOSED


def test_an_absurd_resume_is_refused(harbour: Harbour) -> None:
    client = harbour.join("a", lockstep_ns=100_000_000)
    harbour.order("start")
    for wrong in (1, 10_000_001, 2**62):
        again = harbour.join("a", previous=client.session.token, lockstep_ns=wrong)
        assert again.of(JoinRefused)
    assert harbour.engine.run.lockstep == {0: 10}


def test_a_body_that_cannot_enter_costs_its_pilot_only(harbour: Harbour) -> None:
    other = harbour.join("a")
    client = harbour.join("unstable", model="buoy")
    harbour.run(0.05)
    assert [e.text for e in client.of(SessionClosed)] == [
        "'unstable' cannot enter: its model is not stable at this time step"
    ]
    assert other.session.phase is Phase.JOINED and status(harbour)["drops"].get("internal", 0) == 0
    assert 2 not in harbour.engine.instruments._suites, "its instruments went with it"
    assert harbour.join("stable", model="buoy").session.phase is Phase.JOINED


def test_an_error_of_the_engine_costs_the_session_that_met_it(
    harbour: Harbour, capsys: pytest.CaptureFixture[str]
) -> None:
    client, other = harbour.join("a"), harbour.join("b")
    harbour.sea.breaks.add("command")
    client.session.actuate([1.0])
    harbour.run(0.05)
    assert [e.text for e in client.of(SessionClosed)] == ["the server failed while executing Actuate"]
    assert status(harbour)["drops"]["internal"] == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert other.session.phase is Phase.JOINED
    assert done(harbour, "leave") == [(0, 0)], "its body left with it"


def test_an_error_of_the_engine_at_a_step_costs_one_of_its_clients(harbour: Harbour) -> None:
    client, other = harbour.join("a", lockstep_ns=100_000_000), harbour.join("b", lockstep_ns=100_000_000)
    harbour.order("start")
    harbour.sea.breaks.add("command")
    client.session.done(0, [1.0])
    number = other.session.request(Ping(25e3))
    other.session.done(0, None)
    harbour.run(0.1)
    assert client.of(SessionClosed) and other.session.phase is Phase.JOINED
    assert [d[2] & 0xFFFFFFFF for d in done(harbour, "ping")] == [number], "what the other asked for is done"
    assert harbour.sea.tick == 10, "the step is released"


def test_an_error_of_the_engine_at_a_request_or_a_command_is_a_refusal(harbour: Harbour) -> None:
    client = harbour.join("a")
    harbour.sea.breaks |= {"ping", "push"}
    number = client.session.request(Ping(25e3))
    ok, text = harbour.order("push", body="a", force=[1.0, 0.0, 0.0])
    assert not ok and "failed" in text
    harbour.run(0.05)
    assert client.outcome(number) == (False, "the server failed while executing Sound")
    assert client.session.phase is Phase.JOINED and harbour.order("start")[0]


def test_a_record_that_the_engine_cannot_read_costs_nobody_else(
    harbour: Harbour, capsys: pytest.CaptureFixture[str]
) -> None:
    client, other = harbour.join("a", lockstep_ns=100_000_000), harbour.join("b")
    harbour.order("start")
    assert harbour.engine.run.awaits_release
    harbour.commands.push(99, b"")
    harbour.commands.push(3, b"\xc1")
    harbour.commands.push(2, msgpack.packb([[0]]))  # a release that is none: time goes on
    harbour.run(0.05)
    assert harbour.sea.tick == 10 and not done(harbour, "command")
    assert capsys.readouterr().err.count("Traceback") == 3
    client.session.done(100_000_000 // harbour.sea.step_ns, [1.0])
    harbour.run(0.05)
    assert harbour.sea.tick == 20 and done(harbour, "command") == [(10, 0, (1.0,))]
    assert {client.session.phase, other.session.phase} == {Phase.JOINED}


def test_a_fault_of_the_configuration_that_fails_ends_nothing(
    config: Callable[..., LoadedConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    faults = '<fault part="propeller" kind="lost" at="0.1 s"/></vehicle>'
    harbour = Harbour(config(FLEET.replace('client="optional"/><vehicle', f'client="optional">{faults}<vehicle')))
    client = harbour.join("a")
    harbour.sea.breaks.add("fail")
    harbour.order("step", ticks=20)
    harbour.run(0.1)
    assert harbour.sea.tick == 20 and client.session.phase is Phase.JOINED
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_refusal_that_names_a_large_fleet_comes_short(config: Callable[..., LoadedConfig]) -> None:
    fleet = "".join(f'<vehicle name="vehicle-{k:03}" model="lauv" position="0 {9 * k} 5 m"/>' for k in range(500))
    harbour = Harbour(config(f'<shared vehicles="500"/><fleet>{fleet}</fleet>'))
    ok, text = harbour.order("push", body="absent", force=[1.0, 0.0, 0.0])
    assert not ok and text.endswith("vehicle-019 and 480 more") and len(text) < 400


def test_what_the_engine_says_arrives_whatever_it_quotes(harbour: Harbour) -> None:
    """An answer that could not be read would leave its asker without one."""
    client = harbour.join("a")
    for text in ("two\nlines\x00", "\ud800", "x" * 10_000):
        said = messages.SessionFailedEvent(0, client.session.token, text, 0)
        assert messages.decode_event(*messages.encode(said)).text.encode()[:4000]  # type: ignore[union-attr]
    harbour.engine.events.emit(messages.SessionFailedEvent(0, client.session.token, "two\nlines", 0))
    harbour.run(0.05)
    assert [e.text for e in client.of(SessionClosed)] == ["two lines"]


def test_a_tick_that_fails_ends_the_run_with_one_line(
    harbour: Harbour, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(ticks: int) -> None:
        raise ZeroDivisionError("here\nand there")

    monkeypatch.setattr(harbour.sea, "advance", broken)
    harbour.commands.push(*messages.forward(Type.REQUESTS, -1, 1, commands.encode(Control("start", None))))
    assert process.run(harbour.engine, -1, os.getppid()) == messages.EXIT_FAILED == 70
    said = capsys.readouterr().err
    assert said.startswith(
        "wavesim: the engine failed at 0.000 s of simulation time; the run ends: ZeroDivisionError: here"
    )
    assert said.count("\n") == 1 and "Traceback" not in said and "test_containment.py:" in said
    kinds = [type(messages.decode_event(*r)) for r in harbour.events.pop_all()]
    assert messages.ExecutedEvent in kinds and messages.RunStateEvent in kinds, "what happened before is handed on"


def test_an_error_of_the_front_costs_the_session_that_met_it(harbour: Harbour, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = harbour.join("a"), harbour.join("b")

    def broken(*_: object) -> None:
        raise ZeroDivisionError("here")

    monkeypatch.setattr(harbour.front.request_handler, "_sound", broken)
    client.session.request(Ping(25e3))
    harbour.run(0.1)
    assert len(client.of(SessionClosed)) == 1 and other.session.phase is Phase.JOINED
    assert (
        status(harbour)["drops"]["internal"] == 1
        and "'a' (pilot) was disconnected: the server failed" in harbour.said[-1]
    )
    assert sum("ZeroDivisionError" in s for s in harbour.said) == 1


def test_an_error_at_a_state_costs_that_session(harbour: Harbour, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = harbour.join("a"), harbour.join("b")
    real = harbour.front.broadcast.writer._shape

    def broken(member: Any) -> Any:
        if member.session.name == "a":
            raise ZeroDivisionError("here")
        return real(member)

    monkeypatch.setattr(harbour.front.broadcast.writer, "_shape", broken)
    for member in harbour.front.crews.by_token.values():
        member.state_layout = None
    other.events.clear()
    harbour.run(0.2)
    assert client.of(SessionClosed) and other.states and other.session.phase is Phase.JOINED


def test_an_error_at_an_event_or_a_command_is_counted_and_the_next_one_taken(
    harbour: Harbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = harbour.join("a")
    harbour.front.event(99, b"", harbour.now)
    harbour.front.event(4, b"\xc1", harbour.now)
    harbour.front.event(*messages.encode(messages.RunStateEvent(1, 5)), harbour.now)
    assert status(harbour)["drops"]["internal"] == 2
    harbour.run(0.05)
    assert [e.run_state for e in client.of(RunStateChanged)] == [1]

    def broken(*_: object) -> None:
        raise ZeroDivisionError("here")

    monkeypatch.setattr(harbour.front, "_parts_of", broken)
    assert harbour.order("fault", body="a", part="ahrs", kind="bias", amount="3 deg") == (
        False,
        "the server failed while executing this command; see the server's standard error",
    )
    assert harbour.order("start")[0]


def test_commands_that_cannot_reach_the_engine_wait_for_nothing(harbour: Harbour) -> None:
    """Three hundred of them: what waits has room for 256."""
    harbour.join("a")
    for k in range(300):
        for bad in ({"part": "\ud800"}, {"part": 10**30}, {"amount": 1e300}, {"amount": "1e300"}):
            message = {"verb": "fault", "id": k, "body": "a", "part": "rudder-top", "kind": "stuck", **bad}
            harbour.front.command(message, harbour.now)
    assert not any(ok for ok, _ in harbour.replies.values()) and not harbour.front.pending_commands._pending
    harbour.run(0.05)
    assert not harbour.front.pending_commands._pending
    assert harbour.order("start")[0]


def test_a_command_that_fails_on_its_way_waits_for_no_answer() -> None:
    def report(*_: object) -> None:
        raise OverflowError("in a test")

    from wavesim_sdk.wire.items import Control
    from wavesim_server.network.commands import PendingCommands

    under_way = PendingCommands(report)
    with pytest.raises(OverflowError):
        under_way.submit(Control("start"), "", lambda ok, text: None)
    assert not under_way._pending


def test_so_many_commands_are_under_way_and_no_more() -> None:
    from wavesim_sdk import commands
    from wavesim_sdk.wire.items import Control
    from wavesim_server.network.commands import MAX_PENDING, PendingCommands

    under_way, results = PendingCommands(lambda *_: None), list[str]()
    for _ in range(MAX_PENDING):
        under_way.submit(Control("start"), "", lambda ok, text: results.append(text))
    with pytest.raises(ValueError, match=r"^too many pending commands; the maximum is 256$"):
        under_way.submit(Control("start"), "", lambda ok, text: None)
    under_way.complete(messages.ExecutedEvent(1, 1, "done", 0, commands.encode(Control("start"))))
    under_way.submit(Control("start"), "", lambda ok, text: None)
    assert results == ["done"]


@pytest.mark.parametrize("speed", [1e-300, 1e-9, 0.0009, 1001.0, -1.0, float("nan"), float("inf")])
def test_no_speed_at_which_the_engine_would_be_deaf(harbour: Harbour, speed: float) -> None:
    ok, text = harbour.order("speed", factor=speed)
    assert not ok and ("speed must be 0" in text or "expected a finite number" in text)
    assert harbour.order("speed", factor=0.001)[0] and harbour.order("start")[0] and harbour.order("pause")[0]


@pytest.mark.parametrize("verb", ["fly", "", "fault", "step", "speed", "allocate", "pose", "weather"])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"body": 3, "part": []},
        {"ticks": 1e300, "factor": -1},
        {"matrix": [[[]]], "force": None},
        {"factor": 1e-300},
        {"factor": float("nan"), "ticks": True},
        {"body": "a", "part": "\ud800", "kind": "lost"},
        {"body": "a" * 4000},
    ],
)
def test_absurd_commands_are_refused(harbour: Harbour, verb: str, arguments: dict[str, Any]) -> None:
    ok, text = harbour.order(verb, **arguments)
    assert not ok and text and status(harbour)["drops"].get("internal", 0) == 0


def test_unacknowledged_refusals_end_the_session_not_the_front(harbour: Harbour) -> None:
    client, other = harbour.join("a"), harbour.join("b")
    number = 0
    for _ in range(100):
        items = [[1, 1.0]] * 60  # no whole PING
        harbour.front.receive(raw(client, Type.REQUESTS, [number + 1, items]), client.address, harbour.now)
        number += 60
    harbour.run(0.1)
    assert [e.text for e in client.of(SessionClosed)] == ["the client acknowledged none of the last 4096 events"]
    assert other.session.phase is Phase.JOINED and status(harbour)["drops"].get("internal", 0) == 0


def test_garbage_in_the_tables_of_emulators(harbour: Harbour) -> None:
    client = harbour.join("a")
    harbour.order("start")
    table = harbour.areas["vehicles"]["ahrs"]
    draw = np.random.default_rng(1)
    for word in (0, -1, 2**63 - 1, -(2**63), 1, 2):
        for k in (SYNCHRONOUS, OWNER, DONE, BEGUN):
            table.header[k] = word
        harbour.run(0.02)
    for _ in range(200):
        flat = table.buffers[0].view(np.int64), table.buffers[1].view(np.int64)
        for words in flat:
            words[:] = draw.integers(-(2**63), 2**63 - 1, words.shape, np.int64, endpoint=True)
            if draw.random() < 0.8:  # as if it were valid, of any time
                table.buffers[0]["valid"] = table.buffers[1]["valid"] = 1
                table.buffers[0]["generation"] = table.buffers[1]["generation"] = 1
        table.header[DONE], table.header[BEGUN] = 3, draw.choice([3, 4, 9])
        harbour.run(0.004)
    assert client.session.phase is Phase.JOINED and harbour.state == 1
    assert client.session.drops == {} and client.states[-1].tick > 0
    assert status(harbour)["drops"].get("internal", 0) == 0


def test_a_value_from_another_time_is_no_value(harbour: Harbour) -> None:
    client = harbour.join("a")
    table = harbour.areas["vehicles"]["ahrs"]
    harbour.order("step", ticks=100)

    def is_sent(**values: int) -> bool:
        record = np.zeros(table.capacity, table.dtype)
        record["valid"], record["generation"], record["time_ns"] = 1, 1, 990_000_000
        for name, value in values.items():
            record[name] = value
        table.publish(record, 0)
        harbour.run(0.1)
        return "ahrs" in client.states[-1].sensors

    assert is_sent()
    assert not is_sent(valid=0) and not is_sent(generation=2) and not is_sent(time_ns=-5)
    assert not is_sent(time_ns=400_000_000), "older than five periods"
    assert is_sent(time_ns=500_000_000)
    assert not is_sent(time_ns=3_000_000_000), "of the far future"


def test_nothing_that_a_client_may_say_is_too_large_for_the_engine(harbour: Harbour) -> None:
    """The bounds of the records between front and engine hold what the wire's bounds let through."""
    join = Join(name="n" * 31, model="m" * 31, position=(1e6,) * 3, attitude=(1e6,) * 3, lockstep_ns=2**62)
    enter = messages.EnterCommand(
        2**31 - 1, 2**63 - 1, join.name, join.model, join.position, join.attitude, 2**62, 2**62
    )
    assert messages.decode_command(*messages.encode(enter)) == enter
    observer = harbour.join("eye", role=int(Role.OBSERVER))
    number = observer.session.request(Observe(2**62, list(range(200)), (1e12,) * 3, 1e12, 1))
    harbour.run(0.1)
    assert observer.outcome(number) == (True, "")
    assert MAX_SENSORS < 65, "the writer of states has a bit for each"
