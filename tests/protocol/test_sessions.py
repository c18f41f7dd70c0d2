"""Client and server sessions joined in memory, with loss, duplication, reordering and foreign datagrams."""

from __future__ import annotations

import math

import pytest

from wavesim_sdk.testing import ACTUATORS, SENSORS, InMemoryLink, admit_all, make_step, sessions_for_tests
from wavesim_sdk.wire import codec, session
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.items import Ping, Reception
from wavesim_sdk.wire.messages import Actuate, Hello, Join, Leave, Refusal, Role, Type, Welcome
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Admission, Session
from wavesim_sdk.wire.state import State

ADDRESS = ("127.0.0.1", 4000)


def admit(join: Join, old: Session | None = None) -> Admission:
    if join.name == "absent":
        raise session.NotAdmitted(Refusal.UNKNOWN_NAME, "there is no 'absent'")
    return admit_all(join, old)


def link_of(join: Join, sessions: ServerSessions | None = None, loss: float = 0.0, seed: int = 0) -> InMemoryLink:
    """A pair whose server refuses a nobody."""
    return InMemoryLink(ClientSession(join), sessions or sessions_for_tests(admit), loss, seed)


def heard(k: int) -> Reception:
    return Reception(k, k + 1, 0, 0, 0, 0, 0, 25e3, 130.0, 40.0)


def test_join_and_leave() -> None:
    link = link_of(Join(name="a"))
    link.run(0.1)
    assert isinstance(link.events[0], Welcome) and link.events[0].id == 3
    assert isinstance(link.server_events[0], session.Joined)
    assert list(link.client.body.actuators.values()) == list(ACTUATORS)
    assert [layout.description for layout in link.client.body.layouts.values()] == list(SENSORS)
    link.client.leave()
    assert link.client.phase is Phase.LEAVING
    link.run(0.1)
    assert link.client.phase is Phase.CLOSED and link.sessions.by_token == {}
    assert link.server_events[-1] == session.SessionGone(link.server_events[0].session, "left")


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_events_and_requests_come_once_and_in_order(loss: float, seed: int) -> None:
    link = link_of(Join(name="a"), loss=loss, seed=seed)
    link.run(10.0)
    assert link.client.phase is Phase.JOINED
    for k in range(300):
        link.sessions.push(link.session, heard(k))
        link.client.request(Ping(25e3 + k))
        if k % 10 == 0:
            link.run(0.02)
    link.run(10.0)
    assert [e.reception_ns for e in link.events if isinstance(e, Reception)] == list(range(300))
    requests = [h.request for h in link.server_events if isinstance(h, session.Requested)]
    assert [r.frequency for r in requests if isinstance(r, Ping)] == [25e3 + k for k in range(300)]
    assert link.session.rtt_statistics.replies > 0


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_lockstep_over_a_lossy_link(loss: float) -> None:
    link = link_of(Join(name="a", lockstep_ns=100_000_000), loss=loss, seed=5)
    link.run(10.0)
    for tick in range(0, 100, 25):
        link.sessions.push(link.session, heard(tick))
        before = len(link.events)
        link.sessions.step(link.session, *make_step(link.session, tick, {"sonar": [1.0] * 256}), link.now)
        for _ in range(400):
            link.run(0.02)
            new = link.events[before:]
            if new and isinstance(new[-1], State) and new[-1].tick == tick:
                break
        kinds = [type(e).__name__ for e in link.events[before:]]
        assert kinds == ["Reception", "State"], "the step comes after its events"
        state = link.events[-1]
        assert isinstance(state, State) and state.sensors.sonar.range == (1.0,) * 256, "and is whole"
        link.client.request(Ping(25e3))
        link.client.done(tick, [1.0], None)
        for _ in range(400):
            if any(isinstance(h, session.StepDone) and h.message.tick == tick for h in link.server_events):
                break
            link.run(0.02)
        answers = [type(h).__name__ for h in link.server_events if isinstance(h, session.Requested | session.StepDone)]
        assert answers[-2:] == ["Requested", "StepDone"], "the answer comes after its requests"
        link.server_events = []


def test_silence_removes_and_the_name_is_free_again() -> None:
    link = link_of(Join(name="a"))
    link.run(0.1)
    link.loss = 1.0
    link.run(6.0)
    assert [type(h).__name__ for h in link.server_events] == ["Joined", "SessionGone"]
    assert link.server_events[-1].reason == "silent"  # type: ignore[union-attr]  # it is Gone
    link.loss = 0.0
    link.client = ClientSession(Join(name="a"))
    link.run(0.2)
    assert isinstance(link.events[-1], Welcome)


def test_a_second_pilot_is_refused_and_learns_nothing_of_the_first() -> None:
    link = link_of(Join(name="a"))
    link.run(0.1)
    link.client = ClientSession(Join(name="a"))
    link.run(0.2)
    refused = link.events[-1]
    assert isinstance(refused, JoinRefused) and refused.code == Refusal.NAME_IN_USE
    assert "127" not in refused.text and "4000" not in refused.text
    assert len(link.sessions.by_token) == 1


def test_a_body_has_one_pilot_and_any_number_of_others() -> None:
    sessions = sessions_for_tests()
    crew = []
    for port, role in enumerate((Role.PILOT, *[Role.INSTRUMENT] * 3, *[Role.LISTENER] * 2, Role.OBSERVER)):
        link = InMemoryLink(ClientSession(Join(name="a", role=role)), sessions, address=("127.0.0.1", 5000 + port))
        link.run(0.1)
        assert link.client.phase is Phase.JOINED, role
        crew.append(link)
    assert len(sessions.by_token) == 7
    crew[0].client.leave()
    crew[0].run(0.1)
    assert len(sessions.by_token) == 6, "each leaves alone"
    crew[2].client = ClientSession(Join(name="a", role=Role.INSTRUMENT, previous=crew[2].client.token))
    crew[2].run(0.1)
    assert len(sessions.by_token) == 6 and isinstance(crew[2].server_events[-1], session.Resumed), (
        "and comes back alone"
    )


def test_the_admission_may_refuse() -> None:
    link = link_of(Join(name="absent"))
    link.run(0.2)
    assert link.events == [JoinRefused(Refusal.UNKNOWN_NAME, "there is no 'absent'")]


def test_bye() -> None:
    link = link_of(Join(name="a"))
    link.run(0.1)
    gone = link.session
    link.sessions.bye(gone, "enough")
    link.run(0.1)
    assert link.events[-1] == SessionClosed("enough") and link.client.phase is Phase.CLOSED
    assert link.server_events[-1] == session.SessionGone(gone, "ended")


def test_a_client_whose_session_ended_before_it_heard_of_it_gets_another() -> None:
    """Its JOIN was taken and all that came back was lost; once it was locked out for as long as that join was remembered."""
    link = link_of(Join(name="a"))
    deaf = lambda to_server, data: carry(to_server, data) if to_server or data[5] == Type.CHALLENGE else None  # noqa: E731
    carry, link.transmit = link.transmit, deaf  # type: ignore[method-assign]
    link.run(0.1)
    first = link.session
    link.sessions.bye(first, "another client took over")
    link.run(0.3)
    assert link.client.phase is Phase.JOINING and link.sessions.by_token == {}
    link.transmit = carry  # type: ignore[method-assign]
    link.run(0.6)
    assert link.client.phase is Phase.JOINED and link.session is not first and link.sessions.drops["replay"] >= 1


def test_foreign_datagrams_change_nothing() -> None:
    link = link_of(Join(name="a"))
    link.run(0.1)
    token = link.session.token
    stolen = codec.encode(Actuate([1.0]), token, 10**6, 0)
    assert link.sessions.receive(stolen, ("127.0.0.2", 4000), link.now) == []
    assert link.sessions.receive(codec.encode(Leave(), 12345, 1, 0), ADDRESS, link.now) == []
    assert link.sessions.drops == {"address": 1, "token": 1}
    first = codec.encode(Actuate([2.0]), token, 50, 0)
    assert len(link.sessions.receive(first, ADDRESS, link.now)) == 1
    assert link.sessions.receive(first, ADDRESS, link.now) == [], "a replayed datagram is old"
    assert link.sessions.drops["old"] == 1


def test_nothing_is_stored_or_amplified_before_the_cookie() -> None:
    sessions = sessions_for_tests(admit)
    for port in range(2000):
        client = ClientSession(Join(name="a"))
        for data in client.outgoing(1.0):
            assert sessions.receive(data, ("127.0.0.1", port), 1.0) == []
            assert len(sessions.outgoing[-1][0]) <= len(data)
    assert sessions.by_token == {} and sessions._by_join == {}
    short = codec.encode(Hello(1, b""))
    count = len(sessions.outgoing)
    assert sessions.receive(short, ADDRESS, 1.0) == [] and len(sessions.outgoing) == count
    forged = codec.encode(Join(bytes(16), 1, "a"))
    sessions.receive(forged, ADDRESS, 1.0)
    assert sessions.by_token == {} and len(sessions.outgoing[-1][0]) <= len(forged)


def test_states_come_by_name() -> None:
    link = link_of(Join(name="a"))
    link.run(0.1)
    step, parts = make_step(link.session, 250, {"ctd": [11.5, None, 4.25, 35.5]})
    link.sessions.step(link.session, step, parts, link.now)
    link.run(0.1)
    state = link.events[-1]
    assert isinstance(state, State)
    assert state.sensors.ctd.pressure == 11.5 and math.isnan(state.sensors["ctd"].temperature)
    assert state.sensors.ctd.time_ns == 1_000_000_000 and state.actuation["rudder"] == state.actuation[1] == 0.0
    assert list(state.sensors) == ["ctd"] and state.sensors.get("sonar") is None
    with pytest.raises(AttributeError, match=r"no valid value for sensor 'sonar' \(available: ctd\)"):
        _ = state.sensors.sonar
    with pytest.raises(KeyError, match="did you mean 'ctd'"):
        _ = state.sensors["cdt"]
    with pytest.raises(AttributeError, match="'ctd' has no field 'temprature'; did you mean 'temperature'"):
        _ = state.sensors.ctd.temprature
    with pytest.raises(KeyError, match="the body has no actuator 'ruder'; did you mean 'rudder'"):
        _ = state.actuation["ruder"]
