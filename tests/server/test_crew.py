"""Sessions of a body by role: which may join, what each receives, which end together, and the rights of each."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tests.server.harbour import Client, Harbour, done, status
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.tables import RECEPTION, SENT
from wavesim_sdk.wire.client import JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.items import (
    Allocate,
    BodyChanged,
    ChannelState,
    Control,
    Fault,
    Fence,
    Notice,
    Observe,
    Ping,
    Pose,
    Push,
    Reception,
    RequestRefused,
    SignalSent,
    Subscribe,
    Weather,
)
from wavesim_sdk.wire.messages import Refusal, Right, Role
from wavesim_server import messages
from wavesim_server.acoustics.medium_arrays import CHANNEL_STATE
from wavesim_server.engine.records import signal_records
from wavesim_server.network.crews import Crews
from wavesim_server.network.engine_queue import EngineQueue
from wavesim_server.network.front import Front
from wavesim_world.config import LoadedConfig

FLEET = """<time step="10 ms" pace="fast"/>
<network newcomers="lockstep" keepalive_period="0.1 s" keepalive_timeout="0.5 s" lockstep_timeout="1 s" observers="1">
<grant to="*" role="pilot" rights="pose fault"/><grant to="referee" rights="weather push control fence" others="yes"/></network>
<fleet><sensors><ahrs rate="10 Hz"/></sensors>
<vehicle name="a" model="lauv" position="0 0 5 m" client="optional"><sensors><ctd rate="5 Hz"/><ctd name="ctd-2" send="no"/></sensors></vehicle>
<vehicle name="b" model="jolner" position="9 0 0 m" client="optional" truth="none" instruments="listen"/>
<buoy name="c" model="buoy" position="0 9 5 m"/></fleet>"""
INSTRUMENT, LISTENER, OBSERVER = int(Role.INSTRUMENT), int(Role.LISTENER), int(Role.OBSERVER)


@pytest.fixture
def harbour(config: Callable[..., LoadedConfig]) -> Harbour:
    return Harbour(config(FLEET))


def refused(harbour: Harbour, name: str, **more: object) -> tuple[int, str]:
    client = harbour.join(name, **more)
    found = client.of(JoinRefused)
    assert len(found) == 1, client.session.phase
    return found[0].code, found[0].text


def heir(harbour: Harbour) -> None:
    """The front crashed: another takes over."""
    harbour.front = Front(
        harbour.loaded, "harbour", 1, harbour.areas, EngineQueue(harbour.commands), harbour.events, rng=random.Random(2)
    )
    harbour.front.take_over(harbour.now)


# ------------------------------------------------------------------------------------------ joining


def test_what_a_client_receives_about_its_body(harbour: Harbour) -> None:
    a = harbour.join("a")
    assert a.session.phase is Phase.JOINED and a.session.welcome is not None
    welcome = a.session.welcome
    assert (welcome.id, welcome.step_ns, welcome.state_period_ns) == (0, 10_000_000, 50_000_000)
    assert welcome.rights == Right.POSE | Right.FAULT
    assert [x.name for x in a.session.body.actuators.values()] == [
        "propeller",
        "rudder-top",
        "rudder-bottom",
        "plane-port",
        "plane-starboard",
    ]
    sensors = [layout.description for layout in a.session.body.layouts.values()]
    assert [(s.number, s.name, s.period_ns) for s in sensors] == [(0, "ahrs", 100_000_000), (1, "ctd", 200_000_000)]
    assert [f.name for f in sensors[1].fields] == ["pressure", "temperature", "conductivity", "salinity"]


def test_a_crew_of_several(harbour: Harbour) -> None:
    pilot, instrument = harbour.join("a"), harbour.join("a", role=INSTRUMENT, sensors=["ctd"])
    listener = harbour.join("a", role=LISTENER)
    assert {c.session.phase for c in (pilot, instrument, listener)} == {Phase.JOINED}
    clients = status(harbour)["clients"]
    assert [(c["name"], c["id"], c["role"]) for c in clients] == [
        ("a", 0, "pilot"),
        ("a", 0, "instrument"),
        ("a", 0, "listener"),
    ]
    harbour.run(0.3)
    assert len(pilot.states) > 3 and len(instrument.states) > 3 and len(listener.states) > 3
    assert [s.description.name for s in instrument.session.body.layouts.values()] == ["ctd"]


@pytest.mark.parametrize(
    ("name", "more", "code", "text"),
    [
        ("a b", {"model": "lauv"}, Refusal.BAD_VALUE, "letters, digits"),
        ("", {}, Refusal.BAD_VALUE, "letters, digits"),
        ("c", {}, Refusal.NAME_IN_USE, "without a pilot"),
        ("new", {}, Refusal.UNKNOWN_NAME, "to add a new body, specify its model"),
        ("new", {"model": "luav"}, Refusal.UNKNOWN_MODEL, "did you mean 'lauv'"),
        ("new", {"role": INSTRUMENT}, Refusal.UNKNOWN_NAME, "unknown body 'new'"),
        ("a", {"lockstep_ns": 10_000_001}, Refusal.BAD_VALUE, "is not a multiple of the time step, 10000000 ns"),
        ("a", {"role": LISTENER, "lockstep_ns": 10_000_000}, Refusal.BAD_VALUE, "pilot"),
        ("a", {"role": 9}, Refusal.BAD_VALUE, "unknown role 9"),
        ("a", {"sensors": ["ctd-3"]}, Refusal.BAD_VALUE, "no sensor 'ctd-3'; did you mean 'ctd'?"),
        ("a", {"sensors": ["ctd-2"]}, Refusal.BAD_VALUE, "no sensor 'ctd-2'"),
        ("a", {"previous": 77}, Refusal.EXPIRED, "no live session"),
    ],
)
def test_refusals(harbour: Harbour, name: str, more: dict[str, object], code: Refusal, text: str) -> None:
    found = refused(harbour, name, **more)
    assert found[0] == code and text in found[1]
    assert status(harbour)["clients_total"] == 0


def test_no_room_for_newcomers_or_observers(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET.replace("<fleet>", '<shared vehicles="4"/><fleet>')))
    harbour.join("new", model="lauv")
    assert refused(harbour, "newer", model="lauv") == (Refusal.FULL, "all 4 rows are in use")
    harbour.join("eye", role=OBSERVER)
    assert refused(harbour, "eye-2", role=OBSERVER)[0] == Refusal.FULL


def test_a_second_pilot_is_refused(harbour: Harbour) -> None:
    harbour.join("a")
    code, text = refused(harbour, "a")
    assert code == Refusal.NAME_IN_USE and "127.0.0.1" not in text, "an address is never disclosed"


# ------------------------------------------------------------------------------------------ coming and going


def test_a_configured_body_comes_and_leaves_with_its_pilot_and_its_crew_waits(harbour: Harbour) -> None:
    listener = harbour.join("a", role=LISTENER)
    harbour.run(0.2)
    assert listener.states == [] and 0 not in harbour.sea.occupants
    pilot = harbour.join("a")
    harbour.run(0.2)
    assert listener.states and 0 in harbour.sea.occupants
    pilot.session.leave()
    harbour.run(0.1)
    assert 0 not in harbour.sea.occupants
    listener.events.clear()
    harbour.run(0.3)
    assert listener.states == [] and listener.session.phase is Phase.JOINED
    harbour.join("a")
    harbour.run(0.2)
    assert listener.states, "without joining anew"


def test_the_crew_of_a_newcomer_ends_with_it(harbour: Harbour) -> None:
    pilot = harbour.join("new", model="lauv")
    listener = harbour.join("new", role=LISTENER)
    harbour.run(0.1)
    assert listener.states
    pilot.session.leave()
    harbour.run(0.1)
    assert [e.text for e in listener.of(SessionClosed)] == ["'new' left the simulation"]
    again = harbour.join("other", model="buoy")
    assert again.session.welcome is not None and again.session.welcome.id == 3, "the row is free"


def test_the_crew_of_a_newcomer_ends_with_it_although_its_pilot_knew_a_front_that_crashed(harbour: Harbour) -> None:
    """Its listener once received the last state of an empty row for ever, and then those of the next body in it."""
    harbour.join("new", model="lauv").cut = True
    heir(harbour)
    listener = harbour.join("new", role=LISTENER)
    harbour.run(0.2)
    assert listener.states
    harbour.run(0.5)
    assert [e.text for e in listener.of(SessionClosed)] == [
        "'new' left the simulation"
    ] and 3 not in harbour.sea.occupants
    assert set(harbour.front.crews.by_token) == set(harbour.front.sessions.by_token) == set()


def test_listeners_of_a_resident_need_no_pilot(harbour: Harbour) -> None:
    listener = harbour.join("c", role=LISTENER)
    harbour.run(0.2)
    assert listener.states


def test_a_silent_client_ends_alone(harbour: Harbour) -> None:
    pilot, instrument = harbour.join("a"), harbour.join("a", role=INSTRUMENT)
    instrument.cut = True
    harbour.run(1.0)
    assert [c["role"] for c in status(harbour)["clients"]] == ["pilot"]
    assert "'a' (instrument) fell silent and was removed" in harbour.said
    instrument.cut, pilot.cut = False, True
    harbour.join("a", role=LISTENER)
    harbour.run(1.0)
    assert done(harbour, "leave") == [(0, 0)] and [c["role"] for c in status(harbour)["clients"]] == ["listener"]


def test_resuming_is_checked_as_a_new_join_is(harbour: Harbour) -> None:
    pilot = harbour.join("a", lockstep_ns=100_000_000)
    token = pilot.session.token
    assert refused(harbour, "a", previous=token, lockstep_ns=5)[0] == Refusal.BAD_VALUE
    assert refused(harbour, "a", previous=token, role=LISTENER)[0] == Refusal.EXPIRED
    assert refused(harbour, "b", previous=token)[0] == Refusal.EXPIRED
    assert harbour.engine.run.lockstep == {0: 10}
    again = harbour.join("a", previous=token, lockstep_ns=20_000_000)
    assert again.session.welcome is not None and again.session.welcome.resumed == 1
    assert harbour.engine.run.lockstep == {0: 2} and done(harbour, "enter") == [(0, 2, "c"), (0, 0, "a")]
    assert status(harbour)["clients_total"] == 1


def test_the_welcome_tells_the_tick_of_its_moment(harbour: Harbour) -> None:
    harbour.join("a")
    harbour.order("step", ticks=30)
    b = harbour.join("b")
    assert b.session.welcome is not None and (b.session.welcome.tick, b.session.welcome.run_state) == (30, 2)
    again = harbour.join("b", previous=b.session.token)
    assert again.session.welcome is not None and again.session.welcome.tick == 30


def test_a_takeover(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET.replace("<network ", '<network takeover="yes" ')))
    first = harbour.join("a")
    second = harbour.join("a")
    assert second.session.welcome is not None and second.session.welcome.resumed == 2
    assert [e.text for e in first.of(SessionClosed)] == ["another client took over"]
    assert done(harbour, "enter") == [(0, 2, "c"), (0, 0, "a")] and done(harbour, "leave") == []
    assert any("took over" in s for s in harbour.said)


# ------------------------------------------------------------------------------------------ hearing


def heard(row: int, **more: object) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Signals: one that a row heard."""
    receptions = np.zeros(1, RECEPTION.dtype)
    receptions["receiver"], receptions["measured"], receptions["azimuth"] = row, np.nan, np.nan
    receptions["elevation"] = np.nan
    return np.zeros(0, SENT.dtype), receptions


def sent(row: int, request: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    signals = np.zeros(1, SENT.dtype)
    signals["source"], signals["request"], signals["id"] = row, request, 5
    return signals, np.zeros(0, RECEPTION.dtype)


def test_receptions_go_to_all_who_want_them_and_answers_to_who_asked(harbour: Harbour) -> None:
    pilot, modem = harbour.join("a"), harbour.join("a", role=INSTRUMENT)
    deaf = harbour.join("a", role=LISTENER, acoustics=0)
    number = modem.session.request(Ping(25e3))
    harbour.run(0.05)
    tag = done(harbour, "ping")[0][2]
    harbour.sea.signals += [heard(0), sent(0, tag), sent(0, 0)]
    for _ in range(3):
        harbour.order("step", ticks=1)
    assert [len(c.of(Reception)) for c in (pilot, modem, deaf)] == [1, 1, 0]
    assert [e.request for e in modem.of(SignalSent)] == [number, 0]
    assert [e.request for e in pilot.of(SignalSent)] == [0], "that of the node itself"
    assert deaf.of(SignalSent) == []


def test_channel_states_go_to_all_who_want_sound(harbour: Harbour) -> None:
    pilot, deaf, other = harbour.join("a"), harbour.join("a", role=LISTENER, acoustics=0), harbour.join("b")
    changes = np.zeros(2, CHANNEL_STATE.dtype)
    changes["busy"], changes["time_ns"], changes["clock_ns"] = (1, 0), (5, 7), (15, 17)
    harbour.sea.channel_states.append(changes)
    for _ in range(2):
        harbour.order("step", ticks=1)
    assert pilot.of(ChannelState) == [ChannelState(15, 1), ChannelState(17, 0)], "times of its own clock"
    assert deaf.of(ChannelState) == other.of(ChannelState) == []


@pytest.mark.parametrize("name", ["guest", "a"])
def test_what_the_former_body_of_a_row_hears_and_receives_is_not_its_successors(harbour: Harbour, name: str) -> None:
    """The engine has not heard yet that the one left; sound, notices, steps and states that it sends until then belong to no client."""
    more = {"model": "lauv"} if name == "guest" else {}
    first = harbour.join(name, lockstep_ns=100_000_000, **more)
    row = first.session.welcome.id
    harbour.order("start")
    harbour.run(0.05)
    harbour.frozen = True
    first.session.leave()
    harbour.run(0.05)
    successor = harbour.join(name, lockstep_ns=100_000_000, **more)
    assert successor.session.welcome.id == row
    engine = harbour.engine
    engine.events.emit(next(signal_records(*sent(row, 0), harbour.sea.identity["generation"])))
    receptions = heard(row)
    engine.events.emit(next(signal_records(*receptions, harbour.sea.identity["generation"])))
    engine.events.emit(messages.NoticeEvent(0, row, name, "look", engine.run.generation(row)))
    engine.events.emit(messages.LockstepDueEvent(harbour.sea.tick, [row], [engine.run.generation(row)]))
    harbour.run(0.05)
    assert [successor.of(kind) for kind in (SignalSent, Reception, Notice)] == [[], [], []] and not successor.states
    harbour.frozen = False
    harbour.run(0.05)
    harbour.sea.signals += [heard(row)]
    harbour.run(2.5)  # it answers no step: each is given up after a second
    assert len(successor.of(Reception)) == 1 and successor.states[0].step
    assert harbour.sea.identity["generation"][row] == harbour.front.generations[row] == 2


def test_a_free_client_receives_no_state_of_the_body_before_it(harbour: Harbour) -> None:
    first = harbour.join("a")
    harbour.run(0.2)
    assert first.states
    harbour.frozen = True
    first.session.leave()
    harbour.run(0.05)
    successor = harbour.join("a")
    harbour.run(0.3)
    assert not successor.states
    harbour.frozen = False
    harbour.run(0.3)
    assert successor.states


def test_after_a_crash_of_the_front_bodies_are_distinguished_from_those_that_it_let_in_unseen(harbour: Harbour) -> None:
    harbour.join("a")
    harbour.join("guest", model="lauv").session.leave()
    harbour.run(0.1)
    row = 3
    for _ in range(2):
        heir(harbour)
    guest = harbour.join("guest", model="lauv")
    again = harbour.join("a")
    harbour.sea.signals += [heard(row), heard(0)]
    for _ in range(2):
        harbour.order("step", ticks=1)
    assert harbour.sea.identity["generation"].tolist()[:4:3] == [1, harbour.front.generations[row]]
    assert len(guest.of(Reception)) == len(again.of(Reception)) == 1 and harbour.front.generations[row] > 1000


def test_who_joins_anew_gets_a_body_of_its_own_although_the_front_that_crashed_had_just_let_it_in(
    harbour: Harbour,
) -> None:
    """Its body was once the one of before, and its steps were those of a body that the front did not know."""
    harbour.frozen = True
    before = harbour.join("a", lockstep_ns=10_000_000)
    before.cut = True
    heir(harbour)  # it sees nobody in the row, and the engine has still to hear of the one
    again = harbour.join("a", lockstep_ns=10_000_000)
    harbour.frozen = False
    assert harbour.order("start")[0]
    harbour.run(0.1)
    assert harbour.sea.identity["generation"][0] == harbour.front.generations[0] > 1000
    assert any(state.step for state in again.states)


@pytest.mark.parametrize("there", [False, True])
def test_a_body_that_only_a_front_that_crashed_knew_of_leaves(harbour: Harbour, there: bool) -> None:
    """``there``: the row was another body's when the other front took over."""
    if there:
        harbour.join("early", model="lauv").session.leave()
        harbour.frozen = True
        harbour.run(0.05)
    harbour.frozen = True
    harbour.join("late", model="lauv").cut = True
    heir(harbour)
    harbour.frozen = False
    harbour.run(0.1)
    assert [o.name for o in harbour.sea.occupants.values()] == ["c"]
    assert set(harbour.front.bodies) == {2}


def test_an_answer_to_a_session_that_is_over_goes_to_nobody(harbour: Harbour) -> None:
    harbour.join("a")
    modem = harbour.join("a", role=INSTRUMENT)
    modem.session.request(Ping(25e3))
    harbour.run(0.05)
    tag = done(harbour, "ping")[0][2]
    modem.session.leave()
    harbour.run(0.05)
    successor = harbour.join("a", role=INSTRUMENT)
    successor.session.request(Ping(25e3))
    harbour.run(0.05)
    assert done(harbour, "ping")[1][2] != tag
    harbour.sea.signals += [sent(0, tag)]
    harbour.order("step", ticks=1)
    assert successor.of(SignalSent) == []


def test_an_answer_to_a_session_of_a_front_that_crashed_goes_to_nobody(harbour: Harbour) -> None:
    """Numbers of sessions began anew with the front: another session got the result of a request that it had not made."""
    old = harbour.join("a")
    tag = harbour.front.crews.request_tag(next(iter(harbour.front.crews.pilots())), old.session.request(Ping(25_000.0)))
    old.cut = True
    heir(harbour)
    new = harbour.join("a")
    harbour.engine.events.emit(messages.SoundRefusedEvent(0, tag, "the transducer was recharging"))
    harbour.run(0.1)
    assert new.states and not new.of(RequestRefused)


def test_the_epochs_of_sessions_come_round_again() -> None:
    crews = Crews()
    crews._epochs[0, 0] = (1 << 15) - 1
    assert crews.request_owner(0, 5 | 3 << 48) == (None, 5)


def test_who_may_not_send(harbour: Harbour) -> None:
    harbour.join("b")
    for role in (INSTRUMENT, LISTENER):  # b's instruments only listen
        client = harbour.join("b", role=role)
        number = client.session.request(Ping(25e3))
        harbour.run(0.05)
        assert client.outcome(number) == (False, "this session may not transmit sound")
    assert done(harbour, "ping") == []


def test_changes_of_other_clients_are_reported_on_request(harbour: Harbour) -> None:
    curious = harbour.join("a", others=1)
    assert [(e.name, e.present) for e in curious.of(BodyChanged)] == [("c", 1), ("a", 1)]
    quiet = harbour.join("b")
    assert [(e.name, e.present) for e in curious.of(BodyChanged)][2:] == [("b", 1)]
    quiet.session.leave()
    harbour.run(0.05)
    assert [(e.name, e.present) for e in curious.of(BodyChanged)][3:] == [("b", 0)]
    assert quiet.of(BodyChanged) == []
    eye = harbour.join("eye", role=OBSERVER)
    assert [e.name for e in eye.of(BodyChanged)] == ["a", "c"]
    harbour.order("start")
    assert [e.name for e in eye.of(BodyChanged)] == ["a", "c"], "each is reported once"
    harbour.join("b").session.leave()
    harbour.run(0.05)
    for who in (eye, curious):
        assert [(e.name, e.present) for e in who.of(BodyChanged)][-2:] == [("b", 1), ("b", 0)]


def test_a_later_request_reports_present_clients_and_those_that_come_and_go(harbour: Harbour) -> None:
    """Once each: a second request repeats nothing, and a cancelled one receives nothing more."""
    client = harbour.join("a")
    heard = [("c", 1), ("a", 1)]
    for _ in range(2):
        client.session.request(Subscribe(others=1))
        harbour.run(0.05)
        assert sorted((e.name, e.present) for e in client.of(BodyChanged)) == sorted(heard)
    other = harbour.join("b")
    other.session.leave()
    harbour.run(0.05)
    heard += [("b", 1), ("b", 0)]
    assert [(e.name, e.present) for e in client.of(BodyChanged)][2:] == heard[2:]
    client.session.request(Subscribe(others=0))
    harbour.run(0.05)
    harbour.join("b")
    assert len(client.of(BodyChanged)) == len(heard)


def test_another_subscription(harbour: Harbour) -> None:
    client = harbour.join("a", sensors=[], state_period_ns=10**9)
    assert client.session.body.layouts == {}
    number = client.session.request(Subscribe(["ctd"], acoustics=0, others=1, state_period_ns=20_000_000))
    harbour.run(0.1)
    assert client.outcome(number) == (True, "")
    assert [x.description.name for x in client.session.body.layouts.values()] == ["ctd"]
    client.events.clear()
    harbour.run(0.2)
    assert 8 <= len(client.states) <= 12
    number = client.session.request(Subscribe(["cdt"]))
    harbour.run(0.05)
    outcome = client.outcome(number)
    assert outcome is not None and not outcome[0] and "did you mean 'ctd'?" in outcome[1]
    eye = harbour.join("eye", role=OBSERVER)
    wrong = eye.session.request(Subscribe())
    asked = client.session.request(Observe(10**8))
    harbour.run(0.05)
    assert eye.outcome(wrong) == (False, "an observer cannot subscribe: it has no body")
    assert client.outcome(asked) == (False, "only an observer may send OBSERVE")


# ------------------------------------------------------------------------------------------ rights


def test_rights_are_those_that_were_granted(harbour: Harbour) -> None:
    pilot, other = harbour.join("a"), harbour.join("b")
    listener = harbour.join("a", role=LISTENER)
    referee = harbour.join("referee", role=OBSERVER)
    asked = [
        (pilot, Pose("", position=(1.0, 2.0, 3.0)), True, "pose 'a'"),
        (pilot, Pose("b", position=(1.0, 2.0, 3.0)), False, "own body only"),
        (pilot, Push("", (1.0, 0.0, 0.0)), False, "not permitted to use 'push'"),
        (pilot, Fault("a", "propeller", "lost"), True, "fault 'lost' in 'propeller' of 'a'"),
        (pilot, Fault("a", "propellor", "lost"), False, "did you mean 'propeller'"),
        (pilot, Fault("a", "ahrs", "bias", 0.1, "heading"), True, "fault 'bias' in 'ahrs' of 'a'"),
        (pilot, Pose(""), False, "at least one of these values is required: position"),
        (pilot, Control("start"), False, "not permitted to use 'start'"),
        (listener, Pose("", position=(1.0, 2.0, 3.0)), False, "not permitted to use 'pose'"),
        (referee, Push("b", (1.0, 0.0, 0.0)), True, "push 'b'"),
        (referee, Push("", (1.0, 0.0, 0.0)), False, "needs the name of a body"),
        (referee, Push("absent", (1.0, 0.0, 0.0)), False, "is not in the simulation"),
        (referee, Weather(wind_speed=8.0), True, "weather"),
        (pilot, Fence("bay", "inside", (0.0, 0.0, 9.0, 0.0, 9.0, 9.0)), False, "not permitted to use 'fence'"),
        (listener, Fence("bay"), False, "not permitted to use 'fence'"),
        (referee, Fence("bay", "inside", (0.0, 0.0, 9.0, 0.0, 9.0, 9.0)), True, "added the fence 'bay' (keep inside)"),
        (referee, Fence("bay", "within", (0.0, 0.0, 9.0, 0.0, 9.0, 9.0)), False, "must be inside or outside"),
        (referee, Fence("bay", "inside", (0.0, 0.0, 9.0, 9.0, 9.0, 0.0, 0.0, 9.0)), False, "crosses itself"),
        (referee, Fence("bya"), False, "no fence is named 'bya'; did you mean 'bay'?"),
        (referee, Allocate("b", (0.0,) * 12), False, "not permitted to use 'allocate'"),
        (referee, Control("speed", -1.0), False, "expected a finite number"),
        (referee, Control("fly"), False, "unknown command 'fly'"),
        (referee, Control("step", 0.5), False, "whole number of ticks"),
        (referee, Control("step", 20.0), True, "running"),
    ]
    for client, request, ok, text in asked:
        try:
            number = client.session.request(request)
        except Exception as error:  # the client's own check
            assert not ok and text in str(error)
            continue
        harbour.run(0.05)
        outcome = client.outcome(number)
        assert outcome is not None and outcome[0] is ok and text in outcome[1], (request, outcome)
    assert harbour.sea.tick == 20
    corners = [[0.0, 0.0], [9.0, 0.0], [9.0, 9.0]]
    assert status(harbour)["fences"] == [{"name": "bay", "keep": "inside", "corners": corners}]
    assert [d[1:] for d in harbour.sea.done if d[1] in ("set_pose", "push", "fail", "set_weather")] == [
        ("set_pose", 0, (1.0, 2.0, 3.0), None, None),
        ("fail", 0, 0, "lost", 0.0),
        ("push", 1, (1.0, 0.0, 0.0), (0.0, 0.0, 0.0), None),
        ("set_weather", 8.0),
    ]
    assert other.of(RequestRefused) == []


def test_a_word_that_is_no_right(config: Callable[..., LoadedConfig]) -> None:
    with pytest.raises(ConfigError, match="unknown right 'psoe'; did you mean 'pose'"):
        config(FLEET.replace('rights="pose fault"', 'rights="psoe"'))


def test_a_pilot_may_end_the_server_if_it_may_control(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(FLEET.replace("pose fault", "control")))
    pilot = harbour.join("a")
    for verb in ("start", "pause", "shutdown"):
        number = pilot.session.request(Control(verb))
        harbour.run(0.05)
        outcome = pilot.outcome(number)
        assert outcome is not None and outcome[0], outcome
    assert harbour.engine.is_over


# ------------------------------------------------------------------------------------------ instruments in lockstep


def steps_of(client: Client) -> list[int]:
    return [state.tick for state in client.states if state.step]


def test_instruments_step_after_the_pilot_has_answered(harbour: Harbour) -> None:
    pilot = harbour.join("a", lockstep_ns=20_000_000)
    fine = harbour.join("a", role=INSTRUMENT, lockstep_ns=10_000_000)
    coarse = harbour.join("a", role=INSTRUMENT, lockstep_ns=40_000_000)
    buoy = harbour.join("c", role=INSTRUMENT, lockstep_ns=20_000_000)
    harbour.order("start")
    harbour.run(0.05)
    assert [steps_of(c) for c in (pilot, fine, coarse, buoy)] == [[0], [], [], []], "the pilot comes first"
    pilot.session.done(0, (1.0, 0.0, 0.0))
    harbour.run(0.05)
    assert [steps_of(c) for c in (fine, coarse, buoy)] == [[0], [0], [0]]
    number = fine.session.request(Ping(30_000.0))
    fine.session.done(0, (9.0, 0.0, 0.0))
    coarse.session.done(0, None)
    harbour.run(0.05)
    assert harbour.sea.tick == 0 and not done(harbour, "ping"), "the engine waits for the buoy's"
    buoy.session.done(0, None)
    harbour.run(0.05)
    assert [(tick, row) for tick, row, _ in done(harbour, "ping")] == [(0, 0)] and fine.outcome(number) is None
    assert done(harbour, "command") == [(0, 0, (1.0, 0.0, 0.0))], "an instrument commands no actuator"
    assert steps_of(fine) == [0, 1] and steps_of(pilot) == [0], "the pilot is not due at this tick"
    fine.session.done(1, None)
    harbour.run(0.05)
    assert (steps_of(pilot), steps_of(fine), steps_of(coarse)) == ([0, 2], [0, 1], [0])


def test_an_instrument_that_leaves_or_is_late_holds_up_nobody(harbour: Harbour) -> None:
    pilot = harbour.join("a", lockstep_ns=10_000_000)
    late = harbour.join("a", role=INSTRUMENT, lockstep_ns=10_000_000)
    harbour.order("start")
    harbour.run(0.05)
    harbour.run(0.9)  # within the pilot's second
    pilot.session.done(0, None)
    harbour.run(0.9)
    assert harbour.sea.tick == 0, "the instrument has a second of its own"
    harbour.run(0.2)
    assert harbour.sea.tick == 1
    pilot.session.done(1, None)
    harbour.run(0.05)
    assert harbour.sea.tick == 2 and steps_of(late) == [0, 1], "it is not waited for until it answers again"
    late.session.done(1, None)
    pilot.session.done(2, None)
    harbour.run(0.05)
    assert harbour.sea.tick == 2 and steps_of(late) == [0, 1, 2]
    late.session.leave()
    harbour.run(0.05)
    assert harbour.sea.tick == 3 and harbour.engine.run.instrument_steps == ()
