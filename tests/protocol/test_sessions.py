"""Client and server sessions joined in memory, with loss, duplication, reordering and foreign datagrams."""

from __future__ import annotations

import pytest

from wavesim_sdk.testing import Pair
from wavesim_sdk.wire import codec, server
from wavesim_sdk.wire.client import (
    ClientSession,
    Ended,
    Join,
    JoinRefused,
    Phase,
    Reception,
    State,
    Welcome,
)
from wavesim_sdk.wire.messages import Event, Refusal, Request, Type
from wavesim_sdk.wire.server import Admission, ServerSessions

ADDRESS = ("127.0.0.1", 4000)
STATE = [0, 0, 1, None, [0.0] * 24, {}]


def admit(join: Join) -> Admission:
    if join.name == "nobody":
        raise server.Refused(Refusal.UNKNOWN_NAME, "there is no 'nobody'")
    return Admission(3, True, [3, 4_000_000, 1500.0, 0, 0, 50_000_000, 5.0], 0.05)


def Link(
    client: ClientSession, sessions: ServerSessions | None = None, loss: float = 0.0, seed: int = 0
) -> Pair:  # it makes one
    """A pair whose server refuses a nobody."""
    return Pair(client, sessions or ServerSessions(admit, 0.5, 5.0), loss, seed)


def test_join_and_leave() -> None:
    link = Link(ClientSession(Join("a")))
    link.run(0.1)
    assert isinstance(link.events[0], Welcome) and link.events[0].id == 3
    assert isinstance(link.happenings[0], server.Joined)
    link.client.leave()
    for data in [*link.client.outgoing(link.now)]:
        link.happenings += link.sessions.receive(data, ADDRESS, link.now)
    link.run(0.1)
    assert link.sessions.by_token == {}


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_events_and_requests_come_once_and_in_order(loss: float, seed: int) -> None:
    link = Link(ClientSession(Join("a")), loss=loss, seed=seed)
    link.run(10.0)
    assert link.client.phase is Phase.JOINED
    for k in range(300):
        link.session.outbox.push(
            codec.event(Event.RECEPTION, k, k + 1, 0, 0, 0, 0, 0, 25e3, 130.0, 40.0, None, None, None, None)
        )
        link.client.request(codec.request(Request.PING, 25e3 + k, None, None, None))
        if k % 10 == 0:
            link.run(0.02)
    link.run(10.0)
    assert [e.reception_ns for e in link.events if isinstance(e, Reception)] == list(range(300))
    assert [h.item[1] for h in link.happenings if isinstance(h, server.Requested)] == [25e3 + k for k in range(300)]
    assert link.session.rtt.replies > 0


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_lockstep_over_a_lossy_link(loss: float) -> None:
    link = Link(ClientSession(Join("a", lockstep_ns=100_000_000)), loss=loss, seed=5)
    link.run(10.0)
    for tick in range(0, 100, 25):
        link.session.outbox.push(
            codec.event(Event.RECEPTION, tick, 1, 0, 0, 0, 0, 0, 25e3, 130.0, 40.0, None, None, None, None)
        )
        before = len(link.events)
        link.sessions.step(link.session, [tick, *STATE[1:]], link.now)
        for _ in range(400):
            link.run(0.02)
            new = link.events[before:]
            if new and isinstance(new[-1], State) and new[-1].tick == tick:
                break
        assert [type(e).__name__ for e in link.events[before:]] == ["Reception", "State"], (
            "the step comes after its events"
        )
        link.client.request(codec.request(Request.PING, 25e3, None, None, None))
        link.client.done(tick, [1.0], None)
        for _ in range(400):
            if any(isinstance(h, server.StepDone) and h.tick == tick for h in link.happenings):
                break
            link.run(0.02)
        kinds = [type(h).__name__ for h in link.happenings if isinstance(h, server.Requested | server.StepDone)]
        assert kinds[-2:] == ["Requested", "StepDone"], "the answer comes after its requests"
        link.happenings = []


def test_silence_removes_and_the_name_is_free_again() -> None:
    link = Link(ClientSession(Join("a")))
    link.run(0.1)
    link.loss = 1.0
    link.run(6.0)
    assert [type(h).__name__ for h in link.happenings] == ["Joined", "Gone"]
    link.loss = 0.0
    link.client = ClientSession(Join("a"))
    link.run(0.2)
    assert isinstance(link.events[-1], Welcome)


def test_a_second_join_is_refused_and_a_resume_takes_over() -> None:
    link = Link(ClientSession(Join("a")))
    link.run(0.1)
    token = link.client.token
    link.client = ClientSession(Join("a"))
    link.run(0.2)
    assert isinstance(link.events[-1], JoinRefused) and link.events[-1].code == Refusal.NAME_IN_USE
    link.client = ClientSession(Join("a", previous=token))
    link.run(0.2)
    assert isinstance(link.events[-1], Welcome)
    assert isinstance(link.happenings[-1], server.Resumed)
    assert len(link.sessions.by_token) == 1


def test_the_admission_may_refuse() -> None:
    link = Link(ClientSession(Join("nobody")))
    link.run(0.2)
    assert link.events == [JoinRefused(Refusal.UNKNOWN_NAME, "there is no 'nobody'")]


def test_bye() -> None:
    link = Link(ClientSession(Join("a")))
    link.run(0.1)
    link.sessions.bye(link.session, "enough")
    link.run(0.1)
    assert link.events[-1] == Ended("enough") and link.client.phase is Phase.CLOSED


def test_foreign_datagrams_change_nothing() -> None:
    link = Link(ClientSession(Join("a")))
    link.run(0.1)
    session = link.session
    stolen = codec.encode(Type.ACTUATE, [[1.0]], session.token, 10**6, 0)
    assert link.sessions.receive(stolen, ("127.0.0.2", 4000), link.now) == []
    assert link.sessions.receive(codec.encode(Type.LEAVE, [], 12345, 1, 0), ADDRESS, link.now) == []
    assert link.sessions.drops == {"address": 1, "token": 1}
    first = codec.encode(Type.ACTUATE, [[2.0]], session.token, 50, 0)
    assert len(link.sessions.receive(first, ADDRESS, link.now)) == 1
    assert link.sessions.receive(first, ADDRESS, link.now) == [], "a replayed datagram is old"
    assert link.sessions.drops["old"] == 1


def test_nothing_is_stored_or_amplified_before_the_cookie() -> None:
    sessions = ServerSessions(admit, 0.5, 5.0)
    for port in range(2000):
        client = ClientSession(Join("a"))
        for data in client.outgoing(1.0):
            assert sessions.receive(data, ("127.0.0.1", port), 1.0) == []
            assert len(sessions.outgoing[-1][0]) <= len(data)
    assert sessions.by_token == {} and sessions._by_join == {}
    short = codec.encode(Type.HELLO, [1, b""])
    count = len(sessions.outgoing)
    assert sessions.receive(short, ADDRESS, 1.0) == [] and len(sessions.outgoing) == count
    forged = codec.encode(Type.JOIN, [bytes(16), 1, "a", "", [0.0] * 3, [0.0] * 3, 0, 0, 0])
    sessions.receive(forged, ADDRESS, 1.0)
    assert sessions.by_token == {}
