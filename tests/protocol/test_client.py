"""The client session: states in parts are assembled, each step arrives once and complete, and invalid data is not sent."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.test_service import joined, of
from wavesim_sdk.testing import ACTUATORS, SENSORS, InMemoryLink, sessions_for_tests
from wavesim_sdk.wire import codec, seal
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire.client import (
    LEAVE_TRIES,
    RETRY_S,
    SEND_QUEUE_LENGTH,
    ClientSession,
    JoinRefused,
    Phase,
    SessionClosed,
    SessionEvent,
)
from wavesim_sdk.wire.items import EVENTS, Ping, RunStateChanged, Send
from wavesim_sdk.wire.messages import HEADER_BYTES, Join, Reading, Type
from wavesim_sdk.wire.reliable import ACK_DELAY_S, MAX_PENDING, RttEstimator
from wavesim_sdk.wire.schema import Malformed
from wavesim_sdk.wire.state import State
from wavesim_sdk.wire.state_parts import FRESH, ROOM, split_readings

MANY = tuple(float(k) for k in range(256))
CTD = (1.0, 2.0, 3.0, 4.0)
EFFORT = tuple(float(k) for k in range(48))


def deliver(link: InMemoryLink, message: Any, sequence: int = 5000) -> list[Any]:
    """The client takes a message of the server."""
    return list(link.client.receive(codec.encode(message, link.client.token, sequence), link.now))


def state(tick: int, parts: int = 0, readings: tuple[Reading, ...] = (), effort: Any = None) -> m.StateMessage:
    return m.StateMessage(tick, tick * 4_000_000, 1, parts, None, (5.0, 0.25), effort, readings)


def step(tick: int, parts: int = 0, last_event: int = 0, readings: tuple[Reading, ...] = ()) -> m.StepMessage:
    return m.StepMessage(tick, tick * 4_000_000, 1, parts, None, (5.0, 0.25), None, readings, last_event)


THIRDS = ((0, MANY[:100]), (100, MANY[100:200]), (200, MANY[200:]))


def piece(tick: int, part: int, first: int, values: tuple[float, ...], number: int = 1) -> m.SensorsMessage:
    return m.SensorsMessage(tick, part, (Reading(number, tick, first, values),))


def sent(link: InMemoryLink) -> list[Any]:
    """What the client sends now."""
    return [codec.decode_payload(d, codec.decode_header(d, True)) for d in link.client.outgoing(link.now)]


# ------------------------------------------------------------------------------- states


def third(tick: int, k: int) -> m.SensorsMessage:
    return piece(tick, k, *THIRDS[k])


def test_a_state_is_handed_out_when_its_parts_are_there_in_any_order() -> None:
    link = joined()
    assert deliver(link, third(25, 1)) == []
    assert deliver(link, state(25, 3, (Reading(0, 99, 0, CTD),))) == []
    assert deliver(link, third(25, 2)) == [] and deliver(link, third(25, 1)) == [], "the same again is no other"
    (whole,) = deliver(link, third(25, 0))
    assert isinstance(whole, State) and not whole.step
    assert whole.sensors.sonar.range == whole.sensors.sonar.numbers == MANY and whole.sensors.sonar.time_ns == 25
    assert whole.sensors.ctd.numbers == CTD and whole.sensors.ctd.time_ns == 99
    assert deliver(link, third(25, 0)) == [], "once"


def test_a_newer_tick_hands_out_what_there_is_of_the_older() -> None:
    link = joined()
    assert deliver(link, state(25, 3), 5000) == [] and deliver(link, third(25, 1)) == []
    (late,) = deliver(link, state(50, 1), 5001)
    assert late.tick == 25 and math.isnan(late.sensors.sonar.range[99]) and late.sensors.sonar.range[100] == 100.0
    (next_,) = deliver(link, third(50, 0))
    assert next_.tick == 50 and next_.sensors.sonar.range[:100] == MANY[:100]


def test_while_time_stands_still_the_same_tick_comes_again() -> None:
    link = joined()
    for k in range(3):
        assert deliver(link, state(25, 1), 5000 + k) == []
        assert [s.tick for s in deliver(link, third(25, 0))] == [25]
    assert deliver(link, state(25, 1), 5003) == [] and deliver(link, state(25, 1), 5004) == [], "still not whole"
    assert [s.tick for s in deliver(link, third(25, 0))] == [25]
    assert deliver(link, state(24), 4999) == [] and link.client.drops["old"] == 1


def test_what_is_kept_of_parts_is_bounded() -> None:
    link = joined()
    for tick in (*range(1000, 2000), 5, 10**6):
        deliver(link, piece(tick, tick % 7, 0, MANY[:3]))
    deliver(link, piece(10**6, 2**32 - 1, 0, MANY[:3]))
    assert len(link.client._parts._by_tick) <= 2 and all(len(p) <= 7 for p in link.client._parts._by_tick.values())


def test_readings_that_name_nothing_are_ignored() -> None:
    link = joined()
    strange = (
        Reading(9, 1, 0, CTD),
        Reading(0, 1, 3, (1.0, 2.0)),
        Reading(0, 1, 2**31 - 1, (1.0,)),
        Reading(1, 1, 256, ()),
    )
    (got,) = deliver(link, state(25, 0, strange))
    assert "ctd" not in got.sensors
    (got,) = deliver(link, state(26, 0, (Reading(0, 7, 0, (1.0,)), Reading(0, 8, 1, (2.0, None, 4.0)))), 5001)
    assert math.isnan(got.sensors.ctd.pressure), "pieces of two times are no value"
    assert got.sensors.ctd.temperature == 2.0 and math.isnan(got.sensors.ctd.conductivity)


def test_a_state_says_what_was_sent() -> None:
    link = joined()
    motion = tuple(float(k) for k in range(16))
    nonsense = Reading(9, 1, 0, CTD)
    (got,) = deliver(link, m.StateMessage(25, 77, 2, 0, motion, (5.0, 0.25), None, (nonsense, Reading(0, 7, 0, CTD))))
    assert (got.tick, got.time_ns, got.run_state, got.motion, got.step) == (25, 77, 2, motion, False)
    assert got.actuation == (5.0, 0.25) and got.sensors.ctd.numbers == CTD, "what is not known spoils nothing behind it"
    (asked,) = deliver(link, step(26), 5001)
    assert asked.step and asked.time_ns == 26 * 4_000_000


def test_forces_have_names() -> None:
    link = joined()
    (got,) = deliver(link, state(25, 0, (), EFFORT))
    assert got.effort.acceleration == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0) and got.effort.contact == EFFORT[42:]
    assert got.effort.total == EFFORT[6:12] and got.effort.environment == EFFORT[30:36]
    (got,) = deliver(link, state(26), 5001)
    assert got.effort is None and got.motion is None


def exchange_without_events(link: InMemoryLink) -> list[SessionEvent]:
    """Exchange what is due, except for events of the server; what the client reports."""
    for data in link.client.outgoing(link.now):
        link.sessions.receive(data, link.address, link.now)
    received = [e for d, _ in link.sessions.outgoing if d[5] != Type.EVENTS for e in link.client.receive(d, link.now)]
    link.sessions.outgoing.clear()
    return received


def test_before_the_body_is_described_nothing_is_handed_out() -> None:
    link = InMemoryLink(ClientSession(Join(name="a")), sessions_for_tests())
    for _ in range(4):
        assert exchange_without_events(link) == []
    assert link.client.phase is Phase.JOINED and link.client.welcome is None
    assert deliver(link, state(25)) == [] and deliver(link, step(25)) == []
    link.now += 1.0
    link.run(0.1)
    assert link.client.welcome is not None and link.events[0] == link.client.welcome
    assert list(link.client.body.actuators.values()) == list(ACTUATORS)
    assert [layout.description for layout in link.client.body.layouts.values()] == list(SENSORS)


# ------------------------------------------------------------------------------- steps


def test_a_step_waits_for_its_events_and_its_parts() -> None:
    link = joined()
    assert deliver(link, step(25, 3, last_event=5), 6000) == []
    assert [deliver(link, third(25, k)) for k in range(3)] == [[], [], []]
    got = deliver(link, m.Events(5, [(4, 2, 7)]))
    assert got[0] == RunStateChanged(2, 7) and got[1].step and got[1].sensors.sonar.range == MANY
    assert deliver(link, step(25, 3, last_event=5), 6001) == [], "handed out once"
    link.client.done(25, [1.0])
    assert deliver(link, step(50, 3, last_event=5), 6002) == [] and deliver(link, third(50, 0)) == []
    assert deliver(link, step(50, 3, last_event=5), 6003) == [], "a repeated one changes nothing"
    assert deliver(link, third(50, 2)) == []
    (got,) = deliver(link, third(50, 1))
    assert got.tick == 50 and got.sensors.sonar.range == MANY


def test_a_repeated_step_gets_the_same_answer() -> None:
    link = joined()
    sent(link)
    deliver(link, step(25))
    link.client.request(Ping(1.0))
    link.client.done(25, [1.0, None], [None] * 10)
    first = [x for x in sent(link) if isinstance(x, m.Done)]
    link.client.request(Ping(2.0))
    assert deliver(link, step(25)) == []
    assert [x for x in sent(link) if isinstance(x, m.Done)] == first == [m.Done(25, 1, (1.0, None), (None,) * 10)]


def test_a_step_is_handed_out_once_however_often_it_is_asked() -> None:
    link = joined()
    assert [s.tick for s in deliver(link, step(25), 6000)] == [25]
    assert deliver(link, step(25), 6001) == [] and deliver(link, step(25), 6002) == [], "the program is still at it"
    assert [s.tick for s in deliver(link, step(50), 6003)] == [50]
    assert deliver(link, step(25), 6002) == [] and deliver(link, step(50), 6004) == [], (
        "a copy that was long on its way"
    )
    link.client.done(50, [1.0])
    sent(link)
    assert deliver(link, step(25), 6002) == [] and not [x for x in sent(link) if isinstance(x, m.Done)]
    assert [s.tick for s in deliver(link, step(75), 6005)] == [75]


def test_what_was_overtaken_or_doubled_is_dropped_as_old() -> None:
    link = joined()
    assert [s.tick for s in deliver(link, state(24), 1)] == [24], "from the first number on"
    assert [s.tick for s in deliver(link, state(25), 5000)] == [25]
    assert (
        deliver(link, state(25), 5000) == [] and deliver(link, state(26), 4999) == [] and link.client.drops["old"] == 2
    )


# ------------------------------------------------------------------------------- what cannot be sent


@pytest.mark.parametrize("bad", [[math.nan], [math.inf], [1e300], ["1"], [[1.0]], [1.0] * 100, "text"])
def test_a_command_that_cannot_be_sent_is_refused_at_once(bad: Any) -> None:
    """Once it went out, was dropped there, and a lockstep client stood still."""
    link = joined()
    deliver(link, step(25))
    sent(link)
    for call in (
        lambda: link.client.done(25, bad),
        lambda: link.client.actuate(bad),
        lambda: link.client.done(25, None, bad),
        lambda: link.client.estimate(bad),
    ):
        with pytest.raises(Malformed):
            call()
    assert sent(link) == []
    link.client.done(25, [1.0])
    assert sent(link) == [m.Done(25, 0, (1.0,), None)], "and the step can still be answered"


def test_a_request_that_cannot_be_sent_is_refused_at_once() -> None:
    """A payload larger than a datagram once raised from every later call."""
    link = joined()
    with pytest.raises(Malformed, match="payload: expected 0 to 256 bytes, got 2000 bytes"):
        link.client.request(Send(0, bytes(2000)))
    with pytest.raises(Malformed, match=r"frequency: expected a finite number .*, got nan"):
        link.client.request(Ping(math.nan))
    assert link.client.request(Ping(1.0)) == 1
    link.run(0.1)
    assert len(link.server_events) == 2
    for _ in range(MAX_PENDING):
        link.client.request(Ping(1.0))
    with pytest.raises(OverflowError):
        link.client.request(Ping(1.0))


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"name": "x" * 32}, "name: the text has 32 bytes; the maximum is 31"),
        ({"lockstep_ns": -1}, r"lockstep_ns: expected an integer from 0 to 2\^62, got -1"),
        ({"position": (1.0,)}, "position"),
    ],
)
def test_a_join_that_cannot_be_sent_is_refused_at_once(wanted: dict[str, Any], text: str) -> None:
    with pytest.raises(Malformed, match=text):
        ClientSession(Join(**wanted))


def test_commands_that_nobody_fetches_are_not_kept_for_ever() -> None:
    client = ClientSession(Join(name="a"))
    for k in range(3 * SEND_QUEUE_LENGTH):
        client.actuate([float(k)])
    assert len(client._send) == SEND_QUEUE_LENGTH and client._send[-1] == m.Actuate((3.0 * SEND_QUEUE_LENGTH - 1,))


# ------------------------------------------------------------------------------- joining and leaving


def test_hello_and_join_are_repeated_and_the_round_trip_taken_only_if_sent_once() -> None:
    client, sessions = ClientSession(Join(name="a")), sessions_for_tests()
    (hello,) = client.outgoing(0.0)
    assert client.outgoing(RETRY_S - 0.01) == [] and client.next_timer() == RETRY_S
    (again,) = client.outgoing(RETRY_S)
    assert len(hello) == 76 and codec.decode_header(again, True).sequence == 2, "the sequence goes on"
    sessions.receive(again, ("h", 1), 0.3)
    client.receive(sessions.outgoing.pop()[0], 0.3)
    assert client.phase is Phase.JOINING and client._rtt_estimator.smoothed_rtt is None
    (join,) = client.outgoing(0.3)
    sessions.receive(join, ("h", 1), 0.35)
    for data, _ in sessions.outgoing:
        client.receive(data, 0.4)
    assert client.phase is Phase.JOINED and client._rtt_estimator.smoothed_rtt == pytest.approx(0.1)
    assert codec.decode_header(join, True).sequence == 3


def test_the_same_dice_make_the_same_client() -> None:
    first, again, other, any_ = (
        ClientSession(Join(name="a"), rng=random.Random(k) if k else None).outgoing(0.0)[0] for k in (3, 3, 4, 0)
    )
    assert first == again and len({first, other, any_}) == 3


def test_an_old_cookie_is_replaced() -> None:
    link = InMemoryLink(ClientSession(Join(name="a")))
    (hello,) = link.client.outgoing(link.now)
    link.sessions.receive(hello, link.address, link.now - 60.0)
    link.client.receive(link.sessions.outgoing.pop()[0], link.now)
    link.run(0.5)
    assert link.client.phase is Phase.JOINED


def test_after_a_refused_cookie_the_round_trip_is_measured_anew() -> None:
    client, sessions = ClientSession(Join(name="a")), sessions_for_tests()

    def exchange(now: float, later: float) -> None:
        for data in client.outgoing(now):
            sessions.receive(data, ("h", 1), now)
        client.receive(sessions.outgoing.pop()[0], later)

    exchange(0.0, 0.0)
    exchange(60.0, 60.0)
    assert client.phase is Phase.HELLO and client.next_timer() == 60.0, "at once"
    client._rtt_estimator = RttEstimator()
    exchange(60.0, 60.5)
    assert client.phase is Phase.JOINING and client._rtt_estimator.smoothed_rtt == 0.5


def test_a_client_with_a_key_counts_on_and_believes_what_is_sealed_only() -> None:
    key = bytes(range(32))
    sessions = sessions_for_tests(keys=seal.Keyring([seal.KeyHolder("a", key)]))
    client, address = ClientSession(Join(name="a"), key), ("h", 1)
    (hello,) = client.outgoing(0.0)
    sessions.receive(hello, address, 0.0)
    early = codec.encode(m.Welcome(client._nonce, 0, 0, 1, 1, 1.0, 0, 0, 0, 0, 1.0, 1.0, 0, 0, 0), 9, 1, 0, Sealed())
    assert client.receive(early, 0.0) == [] and client.drops == {"seal": 1} and client.phase is Phase.HELLO
    client.receive(sessions.outgoing.pop()[0], 0.0)
    joins = [client.outgoing(t)[0] for t in (0.0, RETRY_S, 2 * RETRY_S)]
    headers = [codec.decode_header(j, True) for j in (hello, *joins)]
    assert [h.sequence for h in headers] == [1, 2, 3, 4] and {h.ack for h in headers} == {0}
    assert {h.token for h in headers[1:]} == {seal.key_id(key)}
    sessions.receive(joins[0], address, 1.0)
    welcome = sessions.outgoing[0][0]
    for data, _ in sessions.outgoing:
        client.receive(data, 1.0)
    assert client.phase is Phase.JOINED and client.drops == {"seal": 1}
    assert client.receive(welcome, 1.0) == [] and client.drops == {"seal": 1, "replay": 1}


class Sealed:
    """What looks like a sealed body."""

    def seal(self, _header: bytes, plain: bytes, _sequence: int) -> bytes:
        return plain

    def open(self, _header: bytes, sealed: bytes, _sequence: int) -> bytes:
        return sealed


@pytest.mark.parametrize("phase", [Phase.HELLO, Phase.JOINING])
def test_a_refusal_is_believed_only_with_the_nonce(phase: Phase) -> None:
    client, sessions = ClientSession(Join(name="a")), sessions_for_tests()
    (hello,) = client.outgoing(0.0)
    nonce = codec.decode_payload(hello, codec.decode_header(hello, True)).nonce
    if phase is Phase.JOINING:
        sessions.receive(hello, ("h", 1), 0.0)
        client.receive(sessions.outgoing.pop()[0], 0.0)
    assert client.receive(codec.encode(m.Refuse(nonce + 1, 6, "no")), 0.0) == []
    assert client.receive(codec.encode(m.Challenge(nonce + 1, bytes(16))), 0.0) == [] and client.phase is phase
    assert client.receive(codec.encode(m.Refuse(nonce, 6, "no")), 0.0) == [JoinRefused(6, "no")]
    assert client.receive(codec.encode(m.Refuse(nonce, 6, "no")), 0.0) == [] and client.phase is Phase.CLOSED
    assert client.outgoing(100.0) == [] and client.next_timer() is None


def test_leave_is_repeated_a_few_times_and_then_given_up() -> None:
    link = joined()
    sent(link)
    link.client.actuate([1.0])
    link.client.leave()
    said, times = sent(link), [link.now]
    assert said == [m.Actuate((1.0,)), m.Leave()]
    while link.client.phase is Phase.LEAVING:
        link.now += 0.001
        if sent(link) == [m.Leave()]:
            times.append(link.now)
    assert len(times) == LEAVE_TRIES == 6 and link.client.phase is Phase.CLOSED
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert gaps == sorted(gaps) and gaps[-1] > 4 * gaps[0]
    assert deliver(link, state(25)) == [] and sent(link) == []


def test_a_leaving_client_receives_nothing_but_the_end() -> None:
    link = joined()
    link.client.leave()
    assert deliver(link, state(25)) == [] and deliver(link, m.Keepalive(3)) == []
    assert deliver(link, m.Bye("left")) == [] and link.client.phase is Phase.CLOSED
    early = ClientSession(Join(name="a"))
    early.leave()
    assert early.phase is Phase.CLOSED and early.outgoing(0.0) == []


def test_who_leaves_says_so_at_once() -> None:
    link = InMemoryLink(ClientSession(Join(name="a")), sessions_for_tests(), now=0.0)
    link.run(0.3)
    sent(link)
    link.client.leave()
    assert link.client.next_timer() == 0.0 and sent(link) == [m.Leave()]


def test_bye_ends_it() -> None:
    link = joined()
    assert deliver(link, m.Bye("enough")) == [SessionClosed("enough")]
    assert deliver(link, m.Bye("enough")) == [] and link.client.outgoing(link.now + 10.0) == []


def test_a_number_is_given_back_and_a_proof_returned() -> None:
    link = joined()
    sent(link)
    deliver(link, m.Keepalive(12))
    deliver(link, m.Prove(2**64 - 1))
    assert sent(link) == [m.KeepaliveReply(12), m.Proof(2**64 - 1)]


def test_events_are_acknowledged_soon_and_with_whatever_is_sent() -> None:
    link = joined()
    sent(link)
    deliver(link, m.Events(5, [(4, 2, 7)]))
    assert sent(link) == []
    timer = link.client.next_timer()
    assert timer is not None and timer - link.now <= 0.05
    link.now = timer
    (ack,) = link.client.outgoing(link.now)
    assert codec.decode_header(ack, True).ack == 5 and codec.decode_header(ack, True).type is Type.ACK
    deliver(link, m.Events(6, [(4, 2, 7)]))
    link.client.actuate([1.0])
    (command,) = link.client.outgoing(link.now)
    assert codec.decode_header(command, True).ack == 6
    link.now += 0.1
    assert sent(link) == [], "that was acknowledged already"


def test_more_events_do_not_put_their_acknowledgement_off() -> None:
    link = joined()
    sent(link)
    start = link.now
    for k in range(3):
        deliver(link, m.Events(5 + k, [(4, 2, 7)]))
        link.now += 0.009
        assert sent(link) == ([] if k < 2 else [m.Ack()]), "20 ms after the first"
    assert link.now - start > 0.02


def test_what_comes_from_outside_of_the_session_acknowledges_nothing() -> None:
    """A CHALLENGE or a REFUSE needs no token: anybody can send one from the server's address."""
    link = joined()
    link.client.request(Ping(1.0))
    sent(link)
    for message in (m.Challenge(link.client._nonce, bytes(16)), m.Refuse(link.client._nonce, 6, "no")):
        assert link.client.receive(codec.encode(message, 0, 7000, 1), link.now) == []
    assert link.client.phase is Phase.JOINED and len(link.client._outbox) == 1
    deliver(link, m.Keepalive(0))
    link.client.receive(codec.encode(m.Keepalive(0), link.client.token, 7001, 1), link.now)
    assert len(link.client._outbox) == 0


def test_the_welcome_waits_for_all_that_it_promises() -> None:
    actuators, sensors = ([EVENTS.encode(d) for d in group] for group in (ACTUATORS, SENSORS))
    for first, then in ((actuators, sensors), (sensors, actuators)):
        link = InMemoryLink(ClientSession(Join(name="a")), sessions_for_tests())
        for _ in range(2):
            exchange_without_events(link)
        assert deliver(link, m.Events(1, first)) == [] and link.client.welcome is None
        assert link.client.next_timer() == pytest.approx(link.now + ACK_DELAY_S)
        sent(link)
        link.now += 1.0
        sent(link)
        assert link.client.next_timer() is None, "nothing is due until somebody speaks"
        (welcome,) = deliver(link, m.Events(3, then))
        assert welcome == link.client.welcome
        assert deliver(link, m.Events(5, [EVENTS.encode(SENSORS[0])])) == [], "once; what is described later is no news"


def test_the_fleet_is_handed_on() -> None:
    fleet = m.Fleet(25, 100_000_000, 1, 0, 1, bytes(60))
    assert deliver(joined(), fleet) == [fleet]


def test_an_estimate_goes_out_as_it_was_given() -> None:
    link = joined()
    sent(link)
    values = (*(float(k) for k in range(9)), None)
    link.client.estimate(values)
    assert sent(link) == [m.Estimate(values)]


def test_malformed_and_future_events_are_passed_over() -> None:
    link = joined()
    items = [(99, "of the future"), (4, "x"), 7, [], (4, 2, 7)]
    assert deliver(link, m.Events(5, items)) == [RunStateChanged(2, 7)]
    assert link.client.drops["item"] == 3 and link.client._inbox.received == 9


def test_a_client_that_hears_nothing_says_that_it_is_there() -> None:
    link = joined()
    sent(link)
    heard, times = link.client.last_heard, []
    assert link.client.next_timer() == pytest.approx(heard + 0.75), "a program that sleeps until then is in time"
    for _ in range(3000):
        link.now += 0.001
        if any(isinstance(x, m.Ack) for x in sent(link)):
            times.append(link.now - heard)
    assert times[0] == pytest.approx(0.75, abs=0.01), "after one and a half periods of the keep-alive"
    assert [b - a for a, b in itertools.pairwise(times)] == pytest.approx([0.5] * (len(times) - 1), abs=0.01)


# ------------------------------------------------------------------------------- foreign bytes


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from([t for t, (client, _, _) in m.MESSAGES.items() if not client]),
    st.binary(max_size=200),
    st.booleans(),
)
def test_nothing_that_a_server_sends_raises(kind: Type, body: bytes, right: bool) -> None:
    link = joined()
    header = codec._HEADER.pack(b"WVSM", 2, kind, 0, link.client.token if right else 5, 9000, 2**31)
    link.client.receive(header + body, link.now)
    link.client.outgoing(link.now)


_value = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        2,
        2**62,
        2**64 - 1,
        math.nan,
        1e308,
        "",
        "ctd",
        b"",
        bytes(16),
        [],
        [[]],
        [[0, 0, 0, [1.0]]],
        [1.0] * 2,
        [None] * 16,
        {},
    ]
)


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from([t for t, (client, _, _) in m.MESSAGES.items() if not client]),
    st.lists(_value, max_size=10),
    st.data(),
)
def test_absurd_values_of_a_server_raise_nothing(kind: Type, values: list[Any], data: st.DataObject) -> None:
    link = joined()
    if kind is Type.EVENTS:
        values = [5, data.draw(st.lists(st.lists(_value, max_size=8), max_size=4))]
    header = codec._HEADER.pack(b"WVSM", 2, kind, 0, link.client.token, 9000, 2**31)
    link.client.receive(header + msgpack.packb(values), link.now)
    link.client.outgoing(link.now)


# ------------------------------------------------------------------------------- states in pieces


def _size(message: Any) -> int:
    return len(codec.encode(message, 2**64 - 1, 2**32 - 1, 2**32 - 1)) + 16


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=12), st.booleans(), st.booleans(), st.integers(0, 32), st.booleans())
def test_a_state_of_any_size_is_divided_and_put_together_again(
    counts: list[int], motion: bool, effort: bool, actuators: int, large: bool
) -> None:
    """By bytes, the seal included: no datagram is too large, and no value is lost."""
    tick = 2**62 if large else 25
    readings = [Reading(k, 2**62 if large else 7, 0, tuple(float(v) for v in range(n))) for k, n in enumerate(counts)]
    whole = m.StepMessage(
        tick,
        tick,
        255,
        len(readings),
        (1.5,) * 16 if motion else None,
        (1.5,) * actuators,
        EFFORT if effort else None,
        (),
        2**32 - 1,
    )
    first, parts = split_readings(whole, readings)
    message = m.StepMessage(
        tick, tick, 255, len(parts), whole.motion, whole.actuation, whole.effort, tuple(first), 2**32 - 1
    )
    assert _size(message) <= 1200 and all(_size(p) <= 1200 for p in parts)
    assert [p.part for p in parts] == list(range(len(parts))) and all(p.tick == tick for p in parts)
    found: dict[int, list[Any]] = {k: [] for k in range(len(readings))}
    for r in (*first, *(r for p in parts for r in p.sensors)):
        assert r.first == len(found[r.number]) and r.time_ns == readings[r.number].time_ns
        found[r.number] += r.values
    assert list(found.values()) == [list(r.values) for r in readings]


def test_only_what_fits_no_datagram_is_cut() -> None:
    whole = state(25)
    room = [Reading(k, 1, 0, (1.0,) * 60) for k in range(4)]
    first, parts = split_readings(whole, room)
    assert [r.number for r in first] == [0] and [[r.number for r in p.sensors] for p in parts] == [[1, 2], [3]]
    first, parts = split_readings(whole, [Reading(0, 1, 0, MANY)])
    pieces = [*first, *(r for p in parts for r in p.sensors)]
    assert len(pieces) == 3 and [r.first for r in pieces] == [0, len(first[0].values), 256 - len(pieces[2].values)]
    assert FRESH < ROOM == 1160


def test_the_sensors_of_a_vessel_fit_with_keys() -> None:
    """A set whose state once packed to more than a sealed datagram, so that none ever arrived."""
    counts = (4, 8, 6, 6, 14, 3, 2, 24, 8, 4, 3, 12)
    readings = [Reading(k, 10**9, 0, (0.1,) * n) for k, n in enumerate(counts)]
    whole = m.StateMessage(10**6, 4 * 10**12, 1, 0, (0.1,) * 16, (0.1,) * 24, None, ())
    first, parts = split_readings(whole, readings)
    assert (
        parts and first and sum(len(r.values) for r in (*first, *(r for p in parts for r in p.sensors))) == sum(counts)
    )


def test_the_client_has_what_the_server_divided() -> None:
    link = joined()
    readings = [Reading(0, 7, 0, CTD), Reading(1, 8, 0, MANY)]
    first, parts = split_readings(state(25), readings)
    assert of(link).admission.sensors == SENSORS
    got: list[Any] = []
    for part in reversed(parts):
        got += deliver(link, part)
    got += deliver(link, state(25, len(parts), tuple(first)))
    assert len(got) == 1 and got[0].sensors.sonar.range == MANY and got[0].sensors.ctd.numbers == CTD


def test_the_header_is_all_that_a_peer_needs_to_be_refused() -> None:
    link = joined()
    good = codec.encode(state(25), link.client.token, 5000)
    for bad, reason in (
        (good[:10], "size"),
        (b"XXXX" + good[4:], "magic"),
        (good[:4] + b"\x01" + good[5:], "version"),
        (good[:5] + b"\x10" + good[6:], "type"),
        (good[:6] + b"\x01\0" + good[8:], "flags"),
        (good[:8] + bytes(8) + good[16:], "token"),
        (good[:HEADER_BYTES] + b"\xc1", "body"),
        (good[:-1], "body"),
    ):
        before = link.client.drops[reason]
        assert link.client.receive(bad, link.now) == [] and link.client.drops[reason] == before + 1


def test_values_compare_and_show_themselves() -> None:
    link = joined()
    one, same = (
        deliver(link, state(25 + k, 0, (Reading(0, 7, 0, (1.0, None, 3.0, 4.0)),)), 5000 + k)[0] for k in range(2)
    )
    other, later = (
        deliver(link, state(27 + k, 0, (Reading(0, 7 + k, 0, (1.0, None, 3.0, 5.0 - k)),)), 5002 + k)[0]
        for k in range(2)
    )
    assert one.sensors.ctd == same.sensors.ctd and one.sensors == same.sensors, "no value equals no value"
    assert one.sensors.ctd != other.sensors.ctd and one.sensors.ctd != later.sensors.ctd and one.sensors.ctd != 5
    assert repr(one.sensors) == (
        "Sensors({'ctd': Value(pressure=1.0, temperature=nan, conductivity=3.0, salinity=4.0, time_ns=7)})"
    )
    assert one.sensors["ctd"]["salinity"] == 4.0 and one.sensors.ctd.numbers[0] == 1.0
    assert "ctd" in one.sensors and "sonar" not in one.sensors and len(one.sensors) == 1
    assert one.actuation == (5.0, 0.25) and one.actuation[:1] == (5.0,) and one.actuation["propeller"] == 5.0
    for thing in (one.sensors, one.sensors.ctd):
        with pytest.raises(AttributeError, match=r"^__array__$"):  # no name of Python's own is taken for a sensor
            _ = thing.__array__
    with pytest.raises(KeyError, match=r"no valid value for sensor 'x' \(available: none\)"):
        deliver(link, state(50), 5009)[0].sensors["x"]
