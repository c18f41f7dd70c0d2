"""Joining, resuming and taking over: the checks, their order, and the content of the answer."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgpack
import pytest

from tests.protocol.test_sessions import heard, link_of
from wavesim_sdk.testing import InMemoryLink, admit_all, sessions_for_tests
from wavesim_sdk.wire import codec, seal, session
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.items import Answer, Ping, Reception, RequestRefused, RunStateChanged, SignalSent
from wavesim_sdk.wire.messages import (
    HEADER_BYTES,
    Challenge,
    Hello,
    Join,
    Refusal,
    Refuse,
    Resumption,
    Role,
    Type,
    Welcome,
)
from wavesim_sdk.wire.reliable import MAX_PENDING
from wavesim_sdk.wire.schema import schema_of
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Admission, Session

ADDRESS = ("127.0.0.1", 4000)
STEP_NS = 4_000_000
KEY = bytes(range(32))


def answers(sessions: ServerSessions) -> list[Any]:
    """What the server sent, in the clear, and forgets it."""
    found = []
    for data, _ in sessions.outgoing:
        header = codec.decode_header(data, from_client=False)
        found.append(codec.decode_payload(data, header))
    sessions.outgoing.clear()
    return found


def cookie(sessions: ServerSessions, address: tuple[str, int] = ADDRESS, now: float = 0.0) -> bytes:
    sessions.receive(codec.encode(Hello(1, bytes(40))), address, now)
    challenge = answers(sessions)[-1]
    assert isinstance(challenge, Challenge)
    return challenge.cookie


def ask(sessions: ServerSessions, *changed: tuple[int, Any], now: float = 0.0, **wanted: Any) -> Any:
    """The answer to a join, some of whose elements are replaced by anything."""
    join = replace(Join(name="a", nonce=5), cookie=cookie(sessions, now=now), **wanted)
    values = list(schema_of(Join).encode(join))
    for at, value in changed:
        values[at] = value
    data = codec.encode(join)[:HEADER_BYTES] + msgpack.packb(values)
    sessions.receive(data, ADDRESS, now)
    found = answers(sessions)
    return found[0] if found else None


# ------------------------------------------------------------------------------------------------ joining


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (2, "x" * 32, "name: the text has 32 bytes; the maximum is 31"),
        (2, "a\x1b[2J", "name: the text has control characters"),
        (3, 300, "role: expected an integer from 0 to 255, got 300"),
        (3, 9, "role: unknown role 9"),
        (4, 7, "model: expected text, got 7"),
        (5, [[1.0], 2.0, 3.0], r"position[0]: expected a finite number from -1e+06 to 1e+06, got a list of 1"),
        (5, [math.nan] * 3, "position[0]: expected a finite number from -1e+06 to 1e+06, got nan"),
        (5, [1e300] * 3, "position[0]: expected a finite number from -1e+06 to 1e+06, got 1e+300"),
        (6, None, "attitude: expected a list of 3 numbers, got None"),
        (7, -STEP_NS, "lockstep_ns: expected an integer from 0 to 2^62, got -4000000"),
        (7, 0.5, "lockstep_ns: expected an integer from 0 to 2^62, got 0.5"),
        (7, 2**64 - 1, "lockstep_ns: expected an integer from 0 to 2^62, got 18446744073709551615"),
        (8, 2**64 - 1, "state_period_ns: expected an integer from 0 to 2^62, got 18446744073709551615"),
        (9, -1, "previous: expected an integer from 0 to 2^64-1, got -1"),
        (10, ["a"] * 65, "sensors: expected a list of at most 64 elements, got a list of 65"),
        (10, [[]], "sensors[0]: expected text, got a list of 0"),
        (11, 2, "acoustics: expected an integer from 0 to 1, got 2"),
        (13, True, "others: expected an integer from 0 to 1, got True"),
    ],
)
def test_a_join_that_cannot_be_is_refused_with_its_reason(at: int, value: Any, text: str) -> None:
    """Nested positions, huge and negative periods ended the server once, without a session."""
    sessions = sessions_for_tests()
    refuse = ask(sessions, (at, value))
    assert isinstance(refuse, Refuse) and (refuse.nonce, refuse.code) == (5, Refusal.BAD_VALUE)
    assert refuse.text.startswith(text)
    assert sessions.by_token == {} and "internal" not in sessions.drops
    assert isinstance(ask(sessions), Welcome), "and the next one is served"


@pytest.mark.parametrize("cookie_", [b"", bytes(15), 5, None])
def test_without_cookie_and_nonce_nobody_is_answered(cookie_: Any) -> None:
    sessions = sessions_for_tests()
    assert ask(sessions, (0, cookie_)) is None or isinstance(cookie_, bytes)
    assert ask(sessions, (1, -1)) is None and ask(sessions, (1, 2**63 * 1.0)) is None
    assert sessions.by_token == {}
    for nonce in (0, 2**64 - 1):
        assert ask(sessions, (1, nonce), (3, 9)).nonce == nonce, "any number of 64 bits"


@pytest.mark.parametrize("body", [[], [bytes(16)], [None, 5], ["cookie", 5], [bytes(16), None], [bytes(16), True]])
def test_a_join_that_names_nobody_is_dropped_under_its_name(body: list[Any]) -> None:
    sessions = sessions_for_tests()
    sessions.receive(codec.encode(Join(name="a"))[:HEADER_BYTES] + msgpack.packb(body), ADDRESS, 0.0)
    assert sessions.drops == {"fields": 1} and sessions.outgoing == []


def test_a_wrong_or_old_cookie_is_refused_with_no_more_than_was_sent() -> None:
    sessions = sessions_for_tests()
    join = replace(Join(name="a", nonce=5), cookie=cookie(sessions))
    sessions.receive(codec.encode(join), ("127.0.0.1", 4001), 0.0)
    sessions.receive(codec.encode(join), ADDRESS, 20.0)
    refused = answers(sessions)
    assert [r.code for r in refused] == [Refusal.COOKIE] * 2 and sessions.by_token == {}
    short = codec.encode(join)[:HEADER_BYTES] + msgpack.packb([bytes(16), 5])
    sessions.receive(short, ADDRESS, 0.0)
    assert sessions.outgoing == [] and sessions.drops["size"] == 1
    sessions.receive(codec.encode(join), ADDRESS, 19.9)
    assert isinstance(answers(sessions)[0], Welcome)


def test_the_order_of_refusals() -> None:
    """Each line mends what the line before was refused for."""
    ring = seal.Keyring([seal.KeyHolder("a", KEY)])
    full = sessions_for_tests(keys=ring, max_sessions=1)
    link = InMemoryLink(ClientSession(Join(name="a"), KEY), full)
    link.run(0.1)

    def code(**wanted: Any) -> int:
        other = InMemoryLink(ClientSession(Join(**wanted), KEY), full, address=("127.0.0.1", 4001))
        other.run(0.1)
        refused = other.events[-1]
        assert isinstance(refused, JoinRefused)
        return refused.code

    assert code(name="b", role=9, lockstep_ns=1, previous=1) == Refusal.BAD_VALUE
    assert code(name="b", role=2, lockstep_ns=1, previous=1) == Refusal.BAD_VALUE
    assert code(name="b", role=0, previous=1) == Refusal.KEY
    assert code(name="a", role=0, previous=1) == Refusal.EXPIRED
    assert code(name="a", role=0) == Refusal.NAME_IN_USE
    assert code(name="a", role=1) == Refusal.FULL


def test_a_repeated_join_gets_the_same_session_and_the_clock_of_its_moment() -> None:
    clock = [0, 0]
    sessions = sessions_for_tests(clock=lambda: (clock[0], clock[1]))
    first = ask(sessions)
    assert isinstance(first, Welcome) and (first.tick, first.run_state, first.resumed) == (0, 0, Resumption.NEW)
    clock[:] = [250, 1]
    again = ask(sessions)
    assert isinstance(again, Welcome) and (again.tick, again.run_state) == (250, 1)
    assert len(sessions.by_token) == 1


def test_welcome_says_what_was_settled() -> None:
    sessions = sessions_for_tests(keepalive=0.25)
    w = ask(sessions, lockstep_ns=100_000_000)
    assert (w.nonce, w.id, w.role, w.step_ns, w.sound_speed) == (5, 3, Role.PILOT, STEP_NS, 1500.0)
    assert (w.state_period_ns, w.lockstep_ns) == (50_000_000, 100_000_000)
    assert (w.keepalive_period, w.keepalive_timeout, w.actuators, w.sensors, w.rights) == (0.25, 5.0, 2, 2, 0)


def test_only_a_pilot_is_waited_for() -> None:
    refuse = ask(sessions_for_tests(), role=Role.LISTENER, lockstep_ns=STEP_NS)
    assert isinstance(refuse, Refuse) and refuse.code == Refusal.BAD_VALUE and "only a pilot" in refuse.text


def test_an_admission_that_fails_costs_this_join_only() -> None:
    errors: list[Exception] = []

    def admit(join: Join, old: Session | None) -> Admission:
        if join.name == "b":
            raise ZeroDivisionError("a fault of ours")
        return admit_all(join, old)

    sessions = sessions_for_tests(admit, on_error=errors.append)
    refuse = ask(sessions, name="b")
    assert isinstance(refuse, Refuse) and refuse.code == Refusal.INTERNAL and "ours" not in refuse.text
    assert sessions.drops == {"internal": 1} and isinstance(errors[0], ZeroDivisionError)
    assert isinstance(ask(sessions), Welcome)


@pytest.mark.parametrize(("size", "answered"), [(64, True), (63, False)])
def test_version_1_is_refused_in_its_own_format(size: int, answered: bool) -> None:
    sessions = sessions_for_tests()
    nonce = 2**63 - 1
    body = msgpack.packb([nonce, bytes(size - HEADER_BYTES - 12)])
    hello = b"WVSM" + bytes((1, 1)) + bytes(18) + body
    assert len(hello) == size
    sessions.receive(hello, ADDRESS, 0.0)
    assert sessions.drops["version"] == 1 and bool(sessions.outgoing) == answered
    if answered:
        data, to = sessions.outgoing[0]
        assert to == ADDRESS and len(data) <= len(hello) and data[:8] == b"WVSM\x01\x05\0\0" and data[8:24] == bytes(16)
        assert msgpack.unpackb(data[24:]) == [nonce, 6, "server speaks version 2"]


def test_other_datagrams_of_version_1_get_no_answer() -> None:
    sessions = sessions_for_tests(rate=100.0)
    for kind, body in ((3, [1, bytes(60)]), (16, [[1.0] * 20]), (1, ["x", bytes(60)]), (1, []), (1, 5)):
        data = b"WVSM" + bytes((1, kind)) + bytes(18) + msgpack.packb(body)
        sessions.receive(data.ljust(64, b"\xc1") if body in ([], 5) else data, ADDRESS, 0.0)
    assert sessions.outgoing == [] and sessions.drops == {"version": 5}
    hello = b"WVSM" + bytes((1, 1)) + bytes(18) + msgpack.packb([1, bytes(60)])
    for _ in range(200):
        sessions.receive(hello, ADDRESS, 0.0)
    assert 90 < len(sessions.outgoing) <= 100, "as limited as those of this version"


# ------------------------------------------------------------------------------------------------ resuming


def test_resuming_makes_a_new_session_with_the_events_that_were_not_delivered() -> None:
    clock = [0, 0]
    link = link_of(Join(name="a"), sessions_for_tests(clock=lambda: (clock[0], clock[1])))
    link.run(0.1)
    link.sessions.push(link.session, heard(1))
    link.run(0.2)
    old, token = link.session, link.client.token
    events = [heard(2), SignalSent(4, 9, 1, 25e3, 180.0, 0.01), RequestRefused(5, "no"), Answer(6, 1, "done")]
    for event in (*events, RunStateChanged(2, 77)):
        link.sessions.push(old, event)
    clock[:] = [250, 2]
    link.client = ClientSession(Join(name="a", previous=token))
    link.events.clear()
    link.run(0.5)  # EVENTS may come before WELCOME, and then come again
    assert link.events[0] == link.client.welcome
    assert isinstance(link.events[0], Welcome)
    assert (link.events[0].resumed, link.events[0].tick, link.events[0].run_state) == (Resumption.RESUMED, 250, 2)
    assert link.events[1:] == [
        heard(2),
        SignalSent(0, 9, 1, 25e3, 180.0, 0.01),
        RequestRefused(0, "no"),
        Answer(0, 1, "done"),
        RunStateChanged(2, 77),
    ], "in order, once; numbers of requests were those of the old session"
    new = link.session
    assert new is not old and old.is_over and new.token != token and len(link.sessions.by_token) == 1
    assert link.server_events[-1] == session.Resumed(new, old, Resumption.RESUMED)
    assert link.client.request(Ping(25e3)) == 1, "requests are counted anew"
    link.run(0.1)
    assert isinstance(link.server_events[-1], session.Requested) and link.server_events[-1].number == 1


def test_resuming_from_before_the_body_was_described_describes_it_once() -> None:
    link = link_of(Join(name="a"))
    link.loss = 0.0
    data = link.client.outgoing(link.now)[0]
    link.sessions.receive(data, ADDRESS, link.now)
    challenge = link.sessions.outgoing.pop()[0]
    link.client.receive(challenge, link.now)
    for data in link.client.outgoing(link.now):
        link.sessions.receive(data, ADDRESS, link.now)
    token = link.session.token
    link.sessions.outgoing.clear()  # it died before it heard anything
    link.client = ClientSession(Join(name="a", previous=token))
    link.run(0.2)
    assert link.session.outbox.last == 4 and link.client.welcome is not None


def test_what_happened_before_the_body_was_described_is_reported_after_it() -> None:
    link = link_of(Join(name="a"))
    link.run(0.02)
    mine = link.session
    for k in range(3):
        link.sessions.push(mine, heard(k))
    assert len(mine.outbox) == 7, "nothing of it was acknowledged: it died"
    link.client = ClientSession(Join(name="a", previous=mine.token))
    link.events.clear()
    link.in_flight.clear()
    link.run(0.3)
    assert link.events == [link.client.welcome, heard(0), heard(1), heard(2)]


def test_a_session_that_comes_back_with_too_much_is_ended_like_any_other() -> None:
    link = link_of(Join(name="a"))
    link.run(0.1)
    old = link.session
    for k in range(MAX_PENDING - 1):
        link.sessions.push(old, heard(k))
    link.client = ClientSession(Join(name="a", previous=old.token))
    link.run(0.3)
    assert isinstance(link.server_events[-2], session.Resumed)
    assert link.server_events[-1] == session.SessionGone(link.server_events[-2].session, "unacknowledged")
    assert link.sessions.by_token == {} and "internal" not in link.sessions.drops


def test_a_clock_that_fails_costs_this_join_only() -> None:
    fails = [False]

    def clock() -> tuple[int, int]:
        if fails[0]:
            raise RuntimeError("a fault of ours")
        return 0, 0

    sessions = sessions_for_tests(clock=clock)
    fails[0] = True
    refuse = ask(sessions)
    assert isinstance(refuse, Refuse) and refuse.code == Refusal.INTERNAL and sessions.by_token == {}
    fails[0] = False
    assert isinstance(ask(sessions), Welcome)
    fails[0] = True
    token = next(iter(sessions.by_token))
    bad = codec._HEADER.pack(b"WVSM", 2, Type.ACTUATE, 0, token, 5, 0) + msgpack.packb(["x"])
    happened = sessions.receive(bad, ADDRESS, 0.0)
    assert [type(h).__name__ for h in happened] == ["SessionGone"], (
        "telling it failed: its session ends, receive() does not raise"
    )


@pytest.mark.parametrize(
    "join",
    [
        Join(name="a", previous=12345),
        Join(name="b", previous=1),
        Join(name="a", previous=1, role=Role.INSTRUMENT),
    ],
)
def test_a_token_that_names_no_live_session_of_this_body_and_role_is_expired(join: Join) -> None:
    """Once it silently gave a fresh body."""
    link = link_of(Join(name="a"))
    link.run(0.1)
    if join.previous == 1:
        join = replace(join, previous=link.client.token)
    other = InMemoryLink(ClientSession(join), link.sessions, address=("127.0.0.1", 4001))
    other.run(0.2)
    refused = other.events[-1]
    assert isinstance(refused, JoinRefused) and refused.code == Refusal.EXPIRED
    assert len(link.sessions.by_token) == 1
    link.client.leave()
    link.run(0.1)
    link.client = ClientSession(Join(name="a", previous=link.client.token))
    link.run(0.2)
    refused = link.events[-1]
    assert isinstance(refused, JoinRefused) and refused.code == Refusal.EXPIRED


def test_resuming_is_admitted_like_a_new_join() -> None:
    """With another lockstep period, say: once it was not looked at, and could hang the engine."""
    asked: list[tuple[Join, Session | None]] = []

    def admit(join: Join, old: Session | None) -> Admission:
        asked.append((join, old))
        if join.lockstep_ns % STEP_NS:
            raise session.NotAdmitted(Refusal.BAD_VALUE, "no multiple of the step")
        return replace(admit_all(join, old), state_period_ns=join.state_period_ns or 50_000_000)

    link = link_of(Join(name="a"), sessions_for_tests(admit))
    link.run(0.1)
    first, token = link.session, link.client.token
    link.client = ClientSession(Join(name="a", previous=token, lockstep_ns=STEP_NS // 3))
    link.run(0.2)
    assert isinstance(link.events[-1], JoinRefused) and link.session is first and not first.is_over, (
        "the old one lives on"
    )
    link.client = ClientSession(Join(name="a", previous=token, state_period_ns=7))
    link.run(0.2)
    assert link.client.welcome is not None and link.client.welcome.state_period_ns == 7
    assert [old for _, old in asked] == [None, first, first]


def test_the_client_that_was_left_behind_gets_an_answer_when_it_speaks() -> None:
    link = link_of(Join(name="a"))
    link.run(0.1)
    left_behind = link.client
    other = InMemoryLink(
        ClientSession(Join(name="a", previous=left_behind.token)), link.sessions, address=("127.0.0.1", 4001)
    )
    other.run(0.2)
    assert other.client.phase is Phase.JOINED
    link.run(0.2)
    left_behind.actuate([1.0])
    link.run(0.2)
    assert (
        link.events[-1] == SessionClosed("another session has resumed this session")
        and left_behind.phase is Phase.CLOSED
    )
    assert other.client.phase is Phase.JOINED


# ------------------------------------------------------------------------------------------------ taking over


def test_taking_over_is_new_to_the_client_and_ends_the_other() -> None:
    link = link_of(Join(name="a"), sessions_for_tests(takeover=True))
    link.run(0.1)
    link.sessions.push(link.session, heard(1))
    link.run(0.1)
    old = link.session
    for data, _ in link.sessions.outgoing:
        link.client.receive(data, link.now)
    link.sessions.push(old, heard(2))
    other = InMemoryLink(ClientSession(Join(name="a")), link.sessions, address=("127.0.0.1", 4001))
    other.now = link.now
    said: list[bytes] = []
    for _ in range(40):
        other.run(0.005)
        said += [d for d, a in link.sessions.outgoing if a == ADDRESS]
        link.sessions.outgoing.clear()
    assert other.client.welcome is not None and other.client.welcome.resumed == Resumption.TOOK_OVER
    assert not any(isinstance(e, Reception) for e in other.events), "events of the other are not its own"
    assert other.server_events[-1] == session.Resumed(other.session, old, Resumption.TOOK_OVER)
    link.now = other.now
    link.run(0.1)
    assert SessionClosed("another client took over") in link.events and link.client.phase is Phase.CLOSED


def test_instruments_never_take_each_other_over() -> None:
    sessions = sessions_for_tests(takeover=True)
    for port in (1, 2):
        InMemoryLink(ClientSession(Join(name="a", role=Role.INSTRUMENT)), sessions, address=("127.0.0.1", port)).run(
            0.1
        )
    assert len(sessions.by_token) == 2


def test_a_session_is_resumed_only_with_its_own_key() -> None:
    ring = seal.Keyring([seal.KeyHolder("a", KEY), seal.KeyHolder("*", bytes(32))])
    link = InMemoryLink(ClientSession(Join(name="a"), KEY), sessions_for_tests(keys=ring))
    link.run(0.1)
    ticket, token = link.client.ticket, link.client.token
    for previous, key, code in ((ticket, bytes(32), Refusal.KEY), (token, KEY, Refusal.EXPIRED)):
        link.client = ClientSession(Join(name="a", previous=previous), key)
        link.run(0.2)
        assert isinstance(link.events[-1], JoinRefused) and link.events[-1].code == code
    link.client = ClientSession(Join(name="a", previous=ticket), KEY)
    link.run(0.2)
    assert link.client.phase is Phase.JOINED


def test_the_same_dice_give_the_same_secrets() -> None:
    """So that a run on a virtual clock repeats; by default they come from the system."""
    once, again = (link_of(Join(name="a"), sessions_for_tests()) for _ in range(2))
    for link in (once, again):
        link.client = ClientSession(Join(name="a"), rng=sessions_for_tests()._rng)
        link.run(0.3)
    assert once.client.token == again.client.token and once.session.nonce == again.session.nonce
    own = [
        ServerSessions(admit_all, lambda: (0, 0), 0.5, 5.0)._address_validator.make_cookie(ADDRESS, 0.0)
        for _ in range(2)
    ]
    assert own[0] != own[1]


def test_header_only_types_are_distinguished_by_direction() -> None:
    sessions = sessions_for_tests()
    for kind in (Type.CHALLENGE, Type.WELCOME, Type.STATE, Type.PROVE):
        data = bytearray(codec.encode(Hello(1, bytes(40))))
        data[5] = kind
        sessions.receive(bytes(data), ADDRESS, 0.0)
    assert sessions.drops == {"type": 4}
