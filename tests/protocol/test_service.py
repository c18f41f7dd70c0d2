"""Services of the server for a session, which cannot harm another session."""

from __future__ import annotations

import math
import random
from typing import Any

import msgpack
import pytest

from tests.protocol.test_sessions import ADDRESS, heard, link_of
from wavesim_sdk.testing import InMemoryLink, admit_all, make_step, sessions_for_tests
from wavesim_sdk.wire import codec, recently_ended, seal, session
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.items import Control, Notice, Observe, Ping, RequestRefused, RunStateChanged
from wavesim_sdk.wire.messages import HEADER_BYTES, MAX_DATAGRAM, Join, Type
from wavesim_sdk.wire.reliable import MAX_PENDING
from wavesim_sdk.wire.server import MAX_SEQUENCE, ServerSessions
from wavesim_sdk.wire.session import Session

U64 = 2**64 - 1
KEY = bytes(range(32))


def joined(name: str = "a", sessions: ServerSessions | None = None, port: int = 4000, **wanted: Any) -> InMemoryLink:
    link = InMemoryLink(
        ClientSession(Join(name=name, **wanted)), sessions or sessions_for_tests(), address=("127.0.0.1", port)
    )
    link.run(0.3)
    assert link.client.phase is Phase.JOINED
    return link


def of(link: InMemoryLink) -> Session:
    return link.sessions.by_token[link.client.token]


def raw(link: InMemoryLink, kind: Type, *values: Any, sequence: int = 1000, ack: int = 0) -> list[session.Happening]:
    """A datagram of any values in this session."""
    header = codec._HEADER.pack(b"WVSM", 2, kind, 0, link.client.token, sequence, ack)
    return link.sessions.receive(header + msgpack.packb(list(values)), link.address, link.now)


def sent_to(link: InMemoryLink) -> list[Any]:
    """What the server has for this client now, and forgets it."""
    found = []
    for data, address in link.sessions.outgoing:
        if address == link.address:
            found.append(codec.decode_payload(data, codec.decode_header(data, False)))
    link.sessions.outgoing.clear()
    return found


def kinds(happenings: list[session.Happening]) -> list[str]:
    return [type(h).__name__ for h in happenings]


# ------------------------------------------------------------------------------- requests that are not as declared

NESTED: Any = None
for _ in range(60):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ([], "malformed: expected a list whose first element is a number"),
        (5, "malformed: expected a list whose first element is a number"),
        (None, "malformed: expected a list whose first element is a number"),
        (["1"], "malformed: expected a list whose first element is a number"),
        ([True], "malformed: expected a list whose first element is a number"),
        ([1], "malformed: expected 4 items, got a list of 0"),
        (
            [1, NESTED, None, None, 220],
            "malformed: frequency: expected a finite number from 0 to 1e+09, got a list of 1",
        ),
        (
            [1, "x", None, None, None],
            "malformed: frequency: expected a finite number from 0 to 1e+09, got 1 characters",
        ),
        ([1, math.nan, None, None, None], "malformed: frequency: expected a finite number from 0 to 1e+09, got nan"),
        (
            [1, 25e3, None, U64, None],
            "malformed: at_ns: expected an integer from -2^62 to 2^62, got 18446744073709551615",
        ),
        ([2, 3, b"x" * 257, None, None], "malformed: payload: expected 0 to 256 bytes, got 257 bytes"),
        (
            [4, U64, None, None, 1.0, 0],
            "malformed: period_ns: expected an integer from 0 to 2^62, got 18446744073709551615",
        ),
        (
            [4, 1, [U64], None, 1.0, 0],
            "malformed: bodies[0]: expected an integer from 0 to 2^31-1, got 18446744073709551615",
        ),
        ([4, 1, [[1]], None, 1.0, 0], "malformed: bodies[0]: expected an integer from 0 to 2^31-1, got a list of 1"),
        (
            [4, 1, None, [[1.0], 2.0, 3.0], 1.0, 0],
            "malformed: center[0]: expected a finite number from -1e+12 to 1e+12, got a list of 1",
        ),
        ([4, -1, None, None, 1.0, 0], "malformed: period_ns: expected an integer from 0 to 2^62, got -1"),
        ([6, "start\n", None], "malformed: verb: the text has control characters"),
        (
            [7, "", "port", "lost", math.inf, ""],
            "malformed: amount: expected a finite number from -1e+09 to 1e+09, got inf",
        ),
        ([8, "", [1.0], [0.0] * 3], "malformed: force: expected a list of 3 numbers, got a list of 1"),
        (
            [10, "", [[1.0] * 3] * 6],
            "malformed: matrix[0]: expected a finite number from -1e+09 to 1e+09, got a list of 3",
        ),
        ([99, "of the future"], "unknown kind of request: 99"),
        ([0], "unknown kind of request: 0"),
        ([-1], "unknown kind of request: -1"),
        ([2**63], "unknown kind of request: 9223372036854775808"),
    ],
)
def test_one_bad_request_is_refused_and_the_next_is_served(item: Any, text: str) -> None:
    """Some of these once ended the server, others stalled the channel without a word."""
    link = joined()
    good = [1, 25000.0, None, None, None]
    happened = raw(link, Type.REQUESTS, 1, [good, item, good])
    assert [(h.number, h.request) for h in happened if isinstance(h, session.Requested)] == [
        (1, Ping(25e3)),
        (3, Ping(25e3)),
    ]
    link.run(0.1)
    refused = [e for e in link.events if isinstance(e, RequestRefused)]
    assert [r.request for r in refused] == [2] and refused[0].text.startswith(text)
    assert of(link).inbox.received == 3 and link.sessions.drops["item"] == text.startswith("malformed")


def test_a_malformed_datagram_is_reported_to_its_sender_once_a_second() -> None:
    """A lockstep client whose answer had a NaN once stood still without a reason."""
    clock = [250, 1]
    link = joined(sessions=sessions_for_tests(clock=lambda: (clock[0], clock[1])))
    for k in range(5):
        raw(link, Type.DONE, 1, 0, [math.nan], None, sequence=1000 + k)
    raw(link, Type.REQUESTS, 1, 17)
    link.run(0.9)
    notices = [e for e in link.events if isinstance(e, Notice)]
    assert notices == [
        Notice(
            1_000_000_000, "a datagram was dropped: command[0]: expected a finite number from -1e+09 to 1e+09, got nan"
        )
    ]
    link.run(0.2)
    raw(link, Type.REQUESTS, 1, 17)
    link.run(0.1)
    assert [e.text for e in link.events if isinstance(e, Notice)][1:] == [
        "a datagram was dropped: items: expected a list of at most 256 elements, got 17"
    ]
    assert link.sessions.drops["fields"] == 7


def test_requests_of_a_session_come_with_their_numbers_and_types() -> None:
    link = joined()
    numbers = [link.client.request(r) for r in (Control("speed", 4.0), Observe(1), Ping(1.0))]
    link.run(0.1)
    found = [(h.number, h.request) for h in link.server_events if isinstance(h, session.Requested)]
    assert numbers == [1, 2, 3] and found == [(1, Control("speed", 4.0)), (2, Observe(1)), (3, Ping(1.0))]


# ------------------------------------------------------------------------------- faults stay in their session


def broken() -> tuple[InMemoryLink, InMemoryLink, list[Exception]]:
    errors: list[Exception] = []
    sessions = sessions_for_tests(on_error=errors.append)
    return joined("a", sessions, 4000), joined("b", sessions, 4001), errors


def test_a_client_that_acknowledges_nothing_is_ended_alone() -> None:
    a, b, _ = broken()
    mine = of(a)
    for k in range(MAX_PENDING + 5):
        a.sessions.push(mine, heard(k))
    a.sessions.refuse(mine, 1, "and the like does no harm any more")
    assert mine.is_over and a.sessions.by_token == {b.client.token: of(b)}
    assert a.sessions.poll(a.now) == [session.SessionGone(mine, "unacknowledged")]
    byes = [x for x in sent_to(a) if isinstance(x, m.Bye)]
    assert byes == [m.Bye("the client acknowledged none of the last 4096 events")]


def test_refusals_without_end_end_that_session_alone() -> None:
    """4097 refused requests without an acknowledgement once ended the server."""
    a, b, _ = broken()
    mine = of(a)
    for k in range(20):
        raw(a, Type.REQUESTS, 1 + 250 * k, [[99]] * 250, sequence=1000 + k)
    assert mine.is_over and list(a.sessions.by_token) == [b.client.token]


@pytest.mark.parametrize("what", ["event", "message", "large", "seal", "question", "tick"])
def test_a_fault_of_ours_ends_the_session_that_met_it(what: str) -> None:
    a, b, errors = broken()
    mine = of(a)
    if what == "event":
        a.sessions.push(mine, object())  # type: ignore[arg-type]  # a fault on purpose
    elif what == "message":
        a.sessions.send(mine, object())
    elif what == "large":
        a.sessions.send(mine, m.Fleet(1, 1, 1, 0, 1, bytes(1200)))
    elif what == "seal":
        mine.seal = object()  # type: ignore[assignment]  # as above
        a.sessions.send(mine, m.Keepalive(1))
    elif what == "question":
        mine.seal = object()  # type: ignore[assignment]  # as above
        a.sessions.step(mine, *make_step(mine, 25, {}), a.now)
    else:
        mine.keepalive_at = "soon"  # type: ignore[assignment]  # as above
    happened = a.sessions.poll(a.now)
    assert happened == [session.SessionGone(mine, "internal")]
    assert len(errors) == (2 if what in ("seal", "question") else 1), (
        "where nothing can be sealed, nor can the farewell"
    )
    assert all(isinstance(e, Exception) for e in errors) and a.sessions.drops == {"internal": len(errors)}
    assert a.sessions.by_token == {b.client.token: of(b)} and mine.is_over
    for again in (
        lambda: a.sessions.send(mine, m.Keepalive(1)),
        lambda: a.sessions.push(mine, heard(1)),
        lambda: a.sessions.bye(mine, "again"),
        lambda: a.sessions.flush_events(mine, a.now),
    ):
        again()
    assert a.sessions.poll(a.now) == [], "an end is reported once, and nothing is done with it any more"
    b.run(0.2)
    assert b.client.phase is Phase.JOINED


def test_a_fault_while_a_datagram_is_taken_ends_its_session_and_loses_no_other_news() -> None:
    a, b, errors = broken()
    a.sessions.bye(of(b), "enough")
    mine = of(a)
    mine.inbox = None  # type: ignore[assignment]  # a fault on purpose
    happened = raw(a, Type.REQUESTS, 1, [[1, 1.0, None, None, None]])
    assert kinds(happened) == ["SessionGone", "SessionGone"] and [h.reason for h in happened] == ["ended", "internal"]  # type: ignore[union-attr]
    assert len(errors) >= 1 and a.sessions.by_token == {}


def test_a_fault_before_a_session_is_counted() -> None:
    errors: list[Exception] = []
    sessions = sessions_for_tests(on_error=errors.append)
    sessions._address_validator = None  # type: ignore[assignment]  # a fault on purpose
    assert sessions.receive(codec.encode(m.Hello(1, bytes(40))), ADDRESS, 0.0) == []
    assert sessions.drops == {"internal": 1} and len(errors) == 1


def test_any_datagram_of_a_member_does_no_more_than_its_own_session() -> None:
    """Well-formed headers, bodies of all kinds, for a while."""
    a, b, errors = broken()
    dice = random.Random(1)
    pool: list[Any] = [
        None,
        True,
        -1,
        0,
        1,
        U64,
        math.nan,
        1e308,
        "x" * 300,
        b"y" * 300,
        [],
        [[[]]],
        [1.0] * 40,
        {},
        2**62,
    ]
    for k in range(4000):
        if a.client.token not in a.sessions.by_token:
            a = joined("a", a.sessions, 4000)
        kind = dice.choice([t for t, (client, _, _) in m.MESSAGES.items() if client])
        raw(a, kind, *dice.choices(pool, k=dice.randrange(15)), sequence=dice.randrange(2**31), ack=dice.randrange(100))
        a.sessions.outgoing.clear()
        if k % 100 == 0:
            a.now += 0.04
            a.sessions.poll(a.now)
    assert errors == [] and "internal" not in a.sessions.drops
    b.now = a.now
    b.run(0.1)
    assert b.client.phase is Phase.JOINED


# ------------------------------------------------------------------------------- ends


def test_a_lost_bye_is_said_again_and_a_lost_leave_repeated() -> None:
    link = joined()
    mine = of(link)
    link.client.leave()
    lost = link.client.outgoing(link.now)
    assert len(lost) == 1, "the first LEAVE is lost"
    while not link.server_events[1:]:
        for data in link.client.outgoing(link.now):
            link.server_events += link.sessions.receive(data, ADDRESS, link.now)
        link.now += 0.005
    assert link.server_events[1:] == [session.SessionGone(mine, "left")]
    assert sent_to(link)[-1] == m.Bye("left"), "and so is the answer"
    link.run(0.5)
    assert link.client.phase is Phase.CLOSED and link.server_events[2:] == []
    assert not any(isinstance(e, SessionClosed) for e in link.events), "whoever leaves needs no news of it"


def test_a_bye_is_said_a_few_times() -> None:
    link = joined()
    link.sessions.bye(of(link), "enough")
    said = 0
    for _ in range(300):
        said += sum(x == m.Bye("enough") for x in sent_to(link))
        link.now += 0.01
        link.sessions.poll(link.now)
    assert said == recently_ended.MAX_BYES == 3


def test_a_client_that_speaks_after_its_end_gets_bye_for_a_while_and_not_too_often() -> None:
    link = joined()
    token = link.client.token
    link.client.leave()
    link.run(0.2)
    over = codec.encode(m.Ack(), token, 500)
    link.sessions.outgoing.clear()
    start = link.now
    for _ in range(100):
        link.sessions.receive(over, ADDRESS, link.now)
        link.now += 0.01
    assert 9 <= len(sent_to(link)) <= 11, "ten times a second"
    link.sessions.receive(over, ("127.0.0.1", 9), link.now)
    assert link.sessions.outgoing == [], "to its address only"
    link.sessions.poll(start + recently_ended.KEPT_S - 0.3)
    link.sessions.receive(over, ADDRESS, start + recently_ended.KEPT_S - 0.3)
    assert sent_to(link) == [m.Bye("left")]
    link.sessions.poll(start + recently_ended.KEPT_S)
    link.sessions.receive(over, ADDRESS, start + recently_ended.KEPT_S)
    assert link.sessions.outgoing == [] and len(link.sessions._recently_ended) == 0


def test_the_memory_of_ended_sessions_is_bounded() -> None:
    mine, over = of(joined()), recently_ended.RecentlyEnded()
    for token in range(recently_ended.MAX_SESSIONS + 10):
        over.add(Session(token, ADDRESS, mine.join, mine.admission, 0.0), "x", 0.0, unasked=False)
    assert len(over) == recently_ended.MAX_SESSIONS and 9 not in over and 10 in over


@pytest.mark.parametrize("side", ["server", "client"])
def test_a_session_ends_before_its_sequence_numbers_are_used_up(side: str) -> None:
    """A nonce of the seal is never used twice."""
    link = joined()
    mine = of(link)
    if side == "server":
        mine.sequence = MAX_SEQUENCE - 2
        link.sessions.send(mine, m.Keepalive(0))
        link.sessions.send(mine, m.Keepalive(0))
        assert link.sessions.poll(link.now) == [] and mine.sequence == MAX_SEQUENCE
        link.sessions.send(mine, m.Keepalive(0))
        happened = link.sessions.poll(link.now)
    else:
        assert raw(link, Type.ACK, sequence=MAX_SEQUENCE) == []
        happened = raw(link, Type.ACK, sequence=MAX_SEQUENCE + 1)
    assert happened == [session.SessionGone(mine, "sequence")]
    assert "has used up its sequence numbers" in sent_to(link)[-1].text
    assert 2**32 - MAX_SEQUENCE >= 2**20, "with room for what is on its way"


def test_when_the_end_is_said_again() -> None:
    """At once, after 0.2 s and 0.4 s after that; asked for it, at once and then ten times a second."""
    mine, over = of(joined()), recently_ended.RecentlyEnded()
    over.add(mine, "enough", 100.0, unasked=True)
    quiet = Session(5, ADDRESS, mine.join, mine.admission, 0.0)
    over.add(quiet, "left", 100.0, unasked=False)
    assert list(over.take_due(100.19)) == []
    assert (
        list(over.take_due(100.0 + recently_ended.AGAIN_S)) == [(mine, "enough")] and list(over.take_due(100.59)) == []
    )
    assert list(over.take_due(100.2 + 2 * recently_ended.AGAIN_S)) == [(mine, "enough")]
    assert [list(over.take_due(101.0 + k)) for k in range(9)] == [[]] * 9 and len(over) == 2
    for token, session_, text in ((mine.token, mine, "enough"), (5, quiet, "left")):
        fresh = recently_ended.RecentlyEnded()
        fresh.add(session_, text, 100.0, unasked=True)
        asked = [
            fresh.find_for(token, ADDRESS, now) for now in (100.0, 100.09, 100.0 + recently_ended.ANSWER_S, 100.15)
        ]
        assert asked == [(session_, text), None, (session_, text), None]
    assert list(over.take_due(100.0 + recently_ended.KEPT_S)) == [] and len(over) == 0 and mine.token not in over


def test_how_a_session_begins() -> None:
    """New, under no key, unlimited, with nothing to acknowledge and no datagram behind it."""
    mine = Session(5, ADDRESS, Join(name="a", role=m.Role.LISTENER), admit_all(Join(name="a")), 7.0)
    assert (mine.resumed, mine.key_holder, mine.is_over, mine.ack_at) == (m.Resumption.NEW, None, False, None)
    assert (mine.name, mine.role, mine.nonce, mine.last_heard) == ("a", m.Role.LISTENER, mine.join.nonce, 7.0)
    assert all(mine.rate_limiter.consume(7.0) for _ in range(10_000))
    sessions = sessions_for_tests()
    link = joined(sessions=sessions)
    assert of(link).sequence == of(link).datagrams_out
    first = InMemoryLink(ClientSession(Join(name="b")), sessions, address=("127.0.0.1", 4009))
    seen: list[bytes] = []
    first.transmit = lambda to_server, data, carry=first.transmit: (
        to_server or seen.append(data),
        carry(to_server, data),
    )[1]  # type: ignore[method-assign,misc]
    first.run(0.1)
    numbers = [codec.decode_header(data, False).sequence for data in seen if data[5] != Type.CHALLENGE]
    assert numbers[0] == 1 and numbers == list(range(1, len(numbers) + 1))


def test_a_refusal_says_itself() -> None:
    refused = session.NotAdmitted(m.Refusal.FULL, "there is no room")
    assert str(refused) == refused.text == "there is no room" and refused.code is m.Refusal.FULL


# ------------------------------------------------------------------------------- keep-alive


def test_round_trips_are_summed_up() -> None:
    trip = session.RttStatistics()
    seen = []
    for seconds in (0.2, 0.3, 0.1, 0.6):
        trip.add_sample(seconds)
        seen.append((trip.last, round(trip.mean, 9), trip.minimum, trip.maximum))
    assert seen == [(0.2, 0.2, 0.2, 0.2), (0.3, 0.25, 0.2, 0.3), (0.1, 0.2, 0.1, 0.3), (0.6, 0.3, 0.1, 0.6)]
    assert trip.replies == 4


def test_a_silent_client_is_removed_after_the_timeout_and_not_before() -> None:
    link = joined()
    mine = of(link)
    last = mine.last_heard
    assert link.sessions.poll(last + 5.0) == []
    assert link.sessions.poll(last + 5.001) == [session.SessionGone(mine, "silent")]
    assert sent_to(link)[-1] == m.Bye("no activity within the keep-alive timeout")


def test_every_period_a_number_is_asked_and_its_round_trip_measured() -> None:
    link = joined()
    mine = of(link)
    sent_to(link)
    asked = []
    for _ in range(100):
        link.now += 0.04
        link.sessions.poll(link.now)
        asked += [x.number for x in sent_to(link) if isinstance(x, m.Keepalive)]
        mine.last_heard = link.now
    assert len(asked) == pytest.approx(4.0 / 0.5, abs=1) and asked == list(range(asked[0], asked[0] + len(asked)))
    replies = mine.rtt_statistics.replies
    for number, late in ((asked[0], 0.25), (asked[0], 0.5), (9999, 0.5), (asked[1], 0.5)):
        mine.keepalive_sent = dict.fromkeys(mine.keepalive_sent, link.now - late)
        raw(link, Type.KEEPALIVE_REPLY, number)
    assert mine.rtt_statistics.replies == replies + 2, "each number once, and only those that were asked"
    assert (mine.rtt_statistics.last, mine.rtt_statistics.maximum) == (pytest.approx(0.5), pytest.approx(0.5))
    for _ in range(100):
        link.now += 0.51
        link.sessions.poll(link.now)
        mine.last_heard = link.now
    assert len(mine.keepalive_sent) <= 65


def test_more_requests_do_not_put_their_acknowledgement_off() -> None:
    link = joined()
    sent_to(link)
    ping = [1, 1.0, None, None, None]
    for k in range(3):
        raw(link, Type.REQUESTS, 1 + k, [ping], sequence=1000 + k)
        link.now += 0.009
        if k < 2:
            link.sessions.poll(link.now)
            assert sent_to(link) == []
    link.sessions.poll(link.now)
    assert sent_to(link) == [m.Keepalive(0)], "20 ms after the first"


def test_requests_are_acknowledged_soon_even_if_there_is_nothing_to_say() -> None:
    link = joined()
    sent_to(link)
    raw(link, Type.REQUESTS, 1, [[1, 1.0, None, None, None]])
    link.sessions.poll(link.now + 0.05)
    data = link.sessions.outgoing[-1][0]
    assert codec.decode_header(data, False).ack == 1 and sent_to(link)[-1] == m.Keepalive(0)
    link.sessions.poll(link.now + 0.1)
    assert sent_to(link) == [], "once"


# ------------------------------------------------------------------------------- lockstep


def test_a_step_is_repeated_with_its_parts_by_the_round_trip_and_ever_later() -> None:
    link = joined(lockstep_ns=100_000_000)
    mine = of(link)
    for _ in range(50):
        mine.rtt_estimator.add_sample(0.05)
    sent_to(link)
    step, parts = make_step(mine, 25, {"sonar": [1.0] * 256})
    assert len(parts) == 2
    link.sessions.step(mine, step, parts, link.now)
    times, start = [], link.now
    assert [type(x).__name__ for x in sent_to(link)] == ["StepMessage", "SensorsMessage", "SensorsMessage"]
    for _ in range(200):
        link.now += 0.005
        mine.last_heard = link.now
        link.sessions.poll(link.now)
        got = sent_to(link)
        if any(isinstance(x, m.StepMessage) for x in got):
            times.append(link.now - start)
            assert sum(isinstance(x, m.SensorsMessage) for x in got) == 2
    assert times == pytest.approx([0.05, 0.15, 0.35, 0.75], abs=0.02)
    raw(link, Type.DONE, 25, 0, None, None)
    assert mine.pending_step is None
    link.sessions.poll(link.now + 5.0)
    assert not any(isinstance(x, m.StepMessage) for x in sent_to(link))


def test_an_answer_counts_for_its_own_step_and_after_its_requests() -> None:
    link = joined(lockstep_ns=100_000_000)
    mine = of(link)
    for tick in (25, 50):
        step, parts = make_step(mine, tick, {})
        link.sessions.step(mine, step, parts, link.now)
    late = [session.StepDone(mine, m.Done(25, 0, None, None))]
    assert raw(link, Type.DONE, 25, 0, [1.0], list(range(10))) == late, "of a step before: it answers, and no more"
    assert raw(link, Type.DONE, 25, 0, [1.0], None) == [], "the same again"
    assert raw(link, Type.DONE, 75, 0, [1.0], None) == [], "of a step that was not asked"
    assert raw(link, Type.DONE, 50, 1, [1.0], None) == [], "its request has not come"
    happened = raw(link, Type.REQUESTS, 1, [[1, 1.0, None, None, None]])
    assert kinds(happened) == ["Requested", "StepDone"]
    assert happened[1] == session.StepDone(mine, m.Done(50, 1, (1.0,), None))
    assert raw(link, Type.DONE, 50, 1, [1.0], None) == [], "once"


def test_a_step_says_how_many_events_come_before_it_and_sends_them_first() -> None:
    link = joined(lockstep_ns=100_000_000)
    mine = of(link)
    sent_to(link)
    link.sessions.push(mine, heard(1))
    step, parts = make_step(mine, 25, {})
    link.sessions.step(mine, step, parts, link.now)
    got = sent_to(link)
    assert kinds(got) == ["Events", "StepMessage"] and got[1].last_event == mine.outbox.last == 5


@pytest.mark.parametrize("seed", range(3))
def test_a_lossy_link_costs_little_time(seed: int) -> None:
    """20 s in steps of 100 ms over a link with 30 % loss once took 140 s: each loss cost 200 ms."""
    link = InMemoryLink(ClientSession(Join(name="a", lockstep_ns=100_000_000)), loss=0.3, seed=seed, delay=0.002)
    link.run(5.0)
    for _ in range(20):
        link.run(0.2)  # some round trips to measure
    start = link.now
    for k in range(1, 201):
        step, parts = make_step(of(link), 25 * k, {"ctd": [1.0] * 4})
        link.sessions.step(of(link), step, parts, link.now)
        answered = False
        while of(link).pending_step is not None:
            if not answered and link.events and getattr(link.events[-1], "tick", 0) == 25 * k:
                link.client.done(25 * k, [1.0])
                answered = True
            link.run(0.005)
            assert link.now - start < 60.0
    assert link.now - start < 20.0


def test_a_step_arrives_as_it_was_given() -> None:
    link = joined(lockstep_ns=100_000_000)
    mine = of(link)
    sent_to(link)
    motion, effort = tuple(float(k) for k in range(16)), tuple(float(k) for k in range(48))
    given = m.StepMessage(25, 100_000_000, 1, 0, motion, (1.0, 0.25), effort, (), 0)
    link.sessions.step(mine, given, [], link.now)
    assert sent_to(link) == [m.StepMessage(25, 100_000_000, 1, 0, motion, (1.0, 0.25), effort, (), mine.outbox.last)]


def test_who_is_gone_is_asked_nothing() -> None:
    link = joined(lockstep_ns=100_000_000)
    mine = of(link)
    link.sessions.bye(mine, "enough")
    sent_to(link)
    link.sessions.step(mine, *make_step(mine, 25, {}), link.now)
    assert sent_to(link) == []


def test_what_is_due_is_done_at_its_time_and_not_before() -> None:
    link = joined(lockstep_ns=100_000_000)
    mine = of(link)
    sent_to(link)
    step, _ = make_step(mine, 25, {})
    link.sessions.track_step(mine, 25, [codec.encode_payload(step)], 200.0)
    assert mine.pending_step is not None
    mine.keepalive_at, mine.ack_at, mine.pending_step.repeat_at = 201.0, 202.0, 203.0
    said = []
    for now in (200.99, 201.0, 201.49, 201.5, 202.99, 203.0):
        mine.last_heard = now
        if now == 201.49:
            mine.ack_at, mine.keepalive_at = 201.5, 300.0
        link.sessions.poll(now)
        said.append([type(x).__name__ for x in sent_to(link)])
    assert said == [[], ["Keepalive"], [], ["Keepalive"], [], ["StepMessage"]]


# ------------------------------------------------------------------------------- another address


@pytest.mark.parametrize("key", [None, KEY])
def test_a_session_follows_its_client_to_another_address_after_proof(key: bytes | None) -> None:
    keys = seal.Keyring([seal.KeyHolder("a", KEY)]) if key else None
    link = InMemoryLink(ClientSession(Join(name="a"), key), sessions_for_tests(keys=keys))
    link.run(0.2)
    mine, elsewhere = of(link), ("127.0.0.1", 4999)
    link.client.actuate([1.0])
    for data in link.client.outgoing(link.now):
        assert link.sessions.receive(data, elsewhere, link.now) == [], "nothing of it counts yet"
    assert link.sessions.drops["address"] == 1 and mine.address == ADDRESS
    prove = [data for data, to in link.sessions.outgoing if to == elsewhere]
    link.sessions.outgoing.clear()
    assert len(prove) == 1
    link.client.receive(prove[0], link.now)
    proof = link.client.outgoing(link.now)
    assert len(proof) == 1
    assert link.sessions.receive(proof[0], ("127.0.0.1", 4998), link.now) == [], "from there, and nowhere else"
    assert link.sessions.receive(proof[0], elsewhere, link.now) == [session.AddressMigrated(mine, ADDRESS)]
    link.address = elsewhere
    link.sessions.outgoing.clear()
    link.server_events.clear()
    link.client.actuate([2.0])
    link.run(0.2)
    assert link.server_events == [session.Actuated(mine, m.Actuate((2.0,)))] and of(link) is mine
    link.client.leave()
    link.run(0.2)
    assert link.client.phase is Phase.CLOSED and link.sessions._by_join == {}


def test_a_guess_moves_nothing() -> None:
    link = joined()
    mine = of(link)
    elsewhere = ("127.0.0.1", 4999)
    for number in (0, 1, U64):
        assert link.sessions.receive(codec.encode(m.Proof(number), mine.token, 900), elsewhere, link.now) == []
    assert mine.address == ADDRESS and link.sessions.drops["address"] == 3
    assert raw(link, Type.PROOF, 5) == [], "from its own address it means nothing"


def proof_from(link: InMemoryLink, address: tuple[str, int]) -> bytes:
    """The client speaks from an address; its answer to the server's question there."""
    link.client.actuate([1.0])
    for data in link.client.outgoing(link.now):
        link.sessions.receive(data, address, link.now)
    (prove,) = [data for data, to in link.sessions.outgoing if to == address]
    link.sessions.outgoing.clear()
    link.client.receive(prove, link.now)
    (proof,) = link.client.outgoing(link.now)
    return proof


@pytest.mark.parametrize("last", [ADDRESS, ("127.0.0.1", 4998)])
def test_a_proof_that_is_overtaken_takes_no_session_back(last: tuple[str, int]) -> None:
    """The client went on, or back, before its proof came: it is not there any more."""
    link = joined()
    mine, first = of(link), ("127.0.0.1", 4999)
    late = proof_from(link, first)
    if last != ADDRESS:
        assert kinds(link.sessions.receive(proof_from(link, last), last, link.now)) == ["AddressMigrated"]
    else:
        link.client.actuate([2.0])
        for data in link.client.outgoing(link.now):
            assert kinds(link.sessions.receive(data, last, link.now)) == ["Actuated"]
    old = link.sessions.drops["old"]
    assert link.sessions.receive(late, first, link.now) == [] and link.sessions.drops["old"] == old + 1
    assert mine.address == last
    assert kinds(link.sessions.receive(proof_from(link, first), first, link.now)) == ["AddressMigrated"], (
        "a new one does"
    )


def test_a_client_that_only_listens_follows_too() -> None:
    """Nothing reaches it at its old address, so it says that it is there."""
    link = joined()
    mine = of(link)
    link.address = ("127.0.0.1", 4999)
    link.run(4.0)
    assert mine.address == link.address and link.client.phase is Phase.JOINED and not mine.is_over
    link.sessions.push(mine, RunStateChanged(2, 7))
    link.run(0.3)
    assert link.events[-1] == RunStateChanged(2, 7)


# ------------------------------------------------------------------------------- sizes


def test_no_datagram_is_larger_than_allowed_nor_made_for_nothing() -> None:
    link = joined()
    for _ in range(300):
        link.sessions.push(of(link), Notice(1, "x" * 400))
    link.sessions.flush(link.now)
    sizes = [len(d) for d, _ in link.sessions.outgoing]
    assert max(sizes) <= MAX_DATAGRAM - 16 and min(sizes) > HEADER_BYTES
    count = len(sizes)
    link.sessions.flush(link.now)
    assert len(link.sessions.outgoing) == count


def test_the_wishes_of_a_join_reach_the_admission() -> None:
    asked: list[Join] = []

    def admit(join: Join, old: Session | None) -> session.Admission:
        asked.append(join)
        return admit_all(join, old)

    link = link_of(
        Join(name="a", role=m.Role.INSTRUMENT, sensors=("gps", "dvl-down"), acoustics=0, effort=1, others=1, model="x"),
        sessions_for_tests(admit),
    )
    link.run(0.1)
    j = asked[0]
    assert (j.sensors, j.acoustics, j.effort, j.others, j.role, j.model) == (("gps", "dvl-down"), 0, 1, 1, 1, "x")


def test_texts_of_ours_are_made_to_fit() -> None:
    long = "x\n" * 500

    def admit(join: Join, old: Session | None) -> session.Admission:
        if join.name == "b":
            raise session.NotAdmitted(m.Refusal.FULL, long)
        return admit_all(join, old)

    sessions = sessions_for_tests(admit)
    a = joined("a", sessions)
    refused = InMemoryLink(ClientSession(Join(name="b")), sessions, address=("127.0.0.1", 4001))
    refused.run(0.2)
    assert refused.events == [JoinRefused(m.Refusal.FULL, "x " * 200)]
    a.sessions.refuse(of(a), 5, long)
    a.run(0.1)
    a.sessions.bye(of(a), long)
    a.run(0.1)
    assert a.events[-2:] == [RequestRefused(5, "x " * 200), SessionClosed("x " * 200)]


@pytest.mark.parametrize("kind", ["elsewhere", "unknown token", "version 1"])
def test_each_host_speaks_from_outside_of_sessions_no_faster_than_allowed(kind: str) -> None:
    """Whatever it sends, by however many ports; others are not the worse for it."""
    link = joined(sessions=sessions_for_tests(rate=100.0))
    data = {
        "elsewhere": codec.encode(m.Actuate((1.0,)), link.client.token, 900),
        "unknown token": codec.encode(m.Leave(), 12345, 1),
        "version 1": b"WVSM" + bytes((1, 1)) + bytes(18) + msgpack.packb([1, bytes(60)]),
    }[kind]
    reason = {"elsewhere": "address", "unknown token": "token", "version 1": "version"}[kind]
    for k in range(150):
        link.sessions.receive(data, ("10.9.0.1", 1000 + k), 200.0)
    again = 150 if kind == "version 1" else 100  # which is what it is, too
    assert link.sessions.drops == {reason: again, "strangers": 50}
    for k in range(70):
        link.sessions.receive(data, ("10.9.0.2", 1000 + k), 200.0)
        link.sessions.receive(data, ("10.9.0.1", 1000 + k), 200.5)
    more = 140 if kind == "version 1" else 120
    assert link.sessions.drops == {reason: again + more, "strangers": 70}


def test_each_host_says_hello_and_joins_no_faster_than_allowed() -> None:
    """By however many ports; a JOIN counts for five."""
    for data, most in ((codec.encode(m.Hello(1, bytes(40))), 100), (codec.encode(Join(bytes(16), 1, "a")), 20)):
        sessions = sessions_for_tests(rate=100.0)
        for k in range(150):
            sessions.receive(data, ("10.9.0.1", 1000 + k), 200.0)
        assert len(sessions.outgoing) == most and sessions.drops == {"strangers": 150 - most}
        for k in range(15):
            sessions.receive(data, ("10.9.0.2", 1000 + k), 200.0)
        assert len(sessions.outgoing) == most + 15


def test_a_hello_of_just_the_size_is_answered() -> None:
    sessions = sessions_for_tests()
    for size in (m.MIN_HELLO - 1, m.MIN_HELLO):
        hello = codec.encode(m.Hello(1, bytes(size - HEADER_BYTES - 4)))
        assert len(hello) == size
        sessions.receive(hello, ADDRESS, 0.0)
        assert len(sessions.outgoing) == (size == m.MIN_HELLO) and sessions.drops == {"size": 1}


def test_a_token_is_that_of_one_session_and_of_none_that_was_just_there() -> None:
    class Dice(random.Random):
        tokens = (5, 5, 5, 7, 5, 7, 9, 11)

        def getrandbits(self, k: int, /) -> int:
            if k != 63:
                return super().getrandbits(k)
            token, *self.tokens = self.tokens  # type: ignore[assignment]  # one after the other
            return token

    sessions = sessions_for_tests(rng=Dice(1))
    a, b = joined("a", sessions, 4000), joined("b", sessions, 4001)
    assert (a.client.token, b.client.token) == (5, 7)
    a.client.leave()
    a.run(0.1)
    assert joined("c", sessions, 4002).client.token == 9


def test_a_join_of_just_the_size_gets_wrong_cookie() -> None:
    """As long as a HELLO must be: the answer is no longer than what was sent."""
    sessions = sessions_for_tests()
    head = codec.encode(Join(name="a"))[:HEADER_BYTES]
    for size, answers in ((m.MIN_HELLO - 1, 0), (m.MIN_HELLO, 1)):
        body = msgpack.packb([bytes(16), 5, ""])[:-1]
        body += bytes((0xA0 + size - HEADER_BYTES - len(body) - 1,))
        data = (head + body).ljust(size, b"x")
        sessions.receive(data, ADDRESS, 0.0)
        assert len(sessions.outgoing) == answers and sessions.drops["size"] == 1
        assert all(len(out) <= len(data) for out, _ in sessions.outgoing)


def test_as_many_sessions_as_may_be() -> None:
    sessions = sessions_for_tests(max_sessions=2)
    a, b = joined("a", sessions, 4000), joined("b", sessions, 4001)
    c = InMemoryLink(ClientSession(Join(name="c")), sessions, address=("127.0.0.1", 4002))
    c.run(0.2)
    assert c.events == [JoinRefused(m.Refusal.FULL, "the server already has its maximum of 2 sessions")]
    a.client = ClientSession(Join(name="a", previous=a.client.token))
    a.run(0.2)
    assert a.client.phase is Phase.JOINED, "coming back takes no more room"
    b.client.leave()
    b.run(0.2)
    c.client = ClientSession(Join(name="c"))
    c.run(0.2)
    assert c.client.phase is Phase.JOINED


def test_datagrams_are_counted() -> None:
    link = joined()
    mine = of(link)
    received, said = mine.datagrams_in, mine.datagrams_out
    raw(link, Type.ACTUATE, [1.0])
    raw(link, Type.ACTUATE, ["x"], sequence=1001)
    raw(link, Type.ACTUATE, [1.0])
    link.sessions.send(mine, m.Keepalive(0))
    assert (mine.datagrams_in, mine.datagrams_out) == (received + 1, said + 1)
    assert mine.sequence == mine.datagrams_out


def test_events_are_reported_with_their_session() -> None:
    link = joined(lockstep_ns=100_000_000)
    mine = of(link)
    link.sessions.step(mine, *make_step(mine, 25, {}), link.now)
    values = tuple(float(k) for k in range(10))
    assert raw(link, Type.ACTUATE, [1.0], sequence=1) == [session.Actuated(mine, m.Actuate((1.0,)))], (
        "from the first number on"
    )
    assert raw(link, Type.ESTIMATE, list(values)) == [session.Estimated(mine, m.Estimate(values))]
    assert raw(link, Type.REQUESTS, 1, [[1, 1.0, None, None, None]]) == [session.Requested(mine, 1, Ping(1.0))]
    assert raw(link, Type.DONE, 25, 1, [2.0], list(values)) == [session.StepDone(mine, m.Done(25, 1, (2.0,), values))]


def test_what_is_latest_wins_for_itself_only() -> None:
    link = joined()
    assert kinds(raw(link, Type.ACTUATE, [1.0], sequence=1000)) == ["Actuated"]
    assert kinds(raw(link, Type.ESTIMATE, [1.0] * 10, sequence=999)) == ["Estimated"], "of its own type"
    assert raw(link, Type.ACTUATE, [1.0], sequence=999) == [] and link.sessions.drops["old"] == 1
    assert kinds(raw(link, Type.ACTUATE, [2.0], sequence=1001)) == ["Actuated"]
    assert kinds(raw(link, Type.REQUESTS, 1, [[1, 1.0, None, None, None]], sequence=1)) == ["Requested"]


def test_a_member_may_send_so_much_and_no_more() -> None:
    link = joined(sessions=sessions_for_tests(rate=50.0))
    link.now += 10.0
    of(link).last_heard = link.now
    taken = [raw(link, Type.ACTUATE, [1.0], sequence=2000 + k) for k in range(80)]
    assert sum(map(len, taken)) == 50 and link.sessions.drops["rate"] == 30
    link.now += 0.5
    assert sum(len(raw(link, Type.ACTUATE, [1.0], sequence=3000 + k)) for k in range(80)) == 25


def test_acknowledgements_open_the_window_at_once() -> None:
    """What waits behind it is not held until the next tick."""
    link = joined()
    mine = of(link)
    for _ in range(200):
        link.sessions.push(mine, Notice(1, "x" * 400))
    link.sessions.flush(link.now)
    first = len(sent_to(link))
    raw(link, Type.ACK, ack=mine.outbox._sent)
    assert 0 < len(sent_to(link)) <= first


def test_the_clock_may_jump_back() -> None:
    """Time that a caller hands in goes on from the greatest that was."""
    link = joined()
    mine = of(link)
    link.sessions.poll(link.now + 1.0)
    link.sessions.receive(b"", ADDRESS, 0.0)
    link.sessions.bye(mine, "enough")
    sent_to(link)
    link.sessions.poll(link.now + 1.0)
    assert sent_to(link) == [], "a BYE of that moment is not repeated yet"
    link.sessions.poll(link.now + 1.3)
    assert sent_to(link) == [m.Bye("enough")]


@pytest.mark.parametrize("item", [b"\x92\x06\xa1\xff", b"\x92\x01\x81\x01\x02", b"\x92\x01\x81\x91\x01\x02"])
def test_bytes_that_are_no_text_or_an_odd_map_spoil_their_own_request_only(item: bytes) -> None:
    """The whole list was once dropped, and so repeated for ever."""
    link = joined()
    good = msgpack.packb([1, 25000.0, None, None, None])
    header = codec._HEADER.pack(b"WVSM", 2, Type.REQUESTS, 0, link.client.token, 1000, 0)
    happened = link.sessions.receive(header + b"\x92\x01\x93" + good + item + good, link.address, link.now)
    assert [h.number for h in happened if isinstance(h, session.Requested)] == [1, 3]
    link.run(0.1)
    assert [e.request for e in link.events if isinstance(e, RequestRefused)] == [2]


def test_a_body_that_cannot_be_read_is_reported_too() -> None:
    link = joined()
    header = codec._HEADER.pack(b"WVSM", 2, Type.REQUESTS, 0, link.client.token, 1000, 0)
    link.sessions.receive(header + b"\x92\x01", link.address, link.now)
    link.run(0.1)
    assert [e.text for e in link.events if isinstance(e, Notice)] == [
        "a datagram was dropped: the payload is not a msgpack array"
    ]


def test_a_client_whose_welcome_is_lost_is_not_locked_out() -> None:
    """Its repeated JOINs are signs of life until something else comes."""
    link = InMemoryLink(ClientSession(Join(name="a")), sessions_for_tests())
    for data in link.client.outgoing(link.now):
        link.sessions.receive(data, link.address, link.now)
    link.client.receive(link.sessions.outgoing.pop()[0], link.now)
    for _ in range(30):  # 7.5 s: longer than a silent client is kept
        for data in link.client.outgoing(link.now):
            link.sessions.receive(data, link.address, link.now)
        link.sessions.outgoing.clear()
        assert link.sessions.poll(link.now) == [], "and its session stays the same"
        link.now += 0.25
    link.run(0.5)
    assert link.client.phase is Phase.JOINED and link.client.welcome is not None


def test_a_join_that_is_played_again_keeps_no_session_alive() -> None:
    link = InMemoryLink(ClientSession(Join(name="a")), sessions_for_tests())
    captured: list[bytes] = []
    carry = link.transmit
    link.transmit = lambda to_server, data: (captured.append(data) if to_server else None, carry(to_server, data))[1]  # type: ignore[assignment,method-assign]
    link.run(0.3)
    join, mine = next(d for d in captured if d[5] == Type.JOIN), of(link)
    last, happened = mine.last_heard, []
    for k in range(60):
        link.sessions.receive(join, ADDRESS, last + 0.1 * k)
        happened += link.sessions.poll(last + 0.1 * k)
    assert happened == [session.SessionGone(mine, "silent")]
    link.sessions.outgoing.clear()
    for _ in range(2):
        link.sessions.receive(join, ADDRESS, last + 6.0)
    refused = sent_to(link)
    assert [type(r).__name__ for r in refused] == ["Refuse"] * 2 and refused[0].code == m.Refusal.COOKIE
    assert link.sessions.drops["replay"] >= 2 and link.sessions.by_token == {}
