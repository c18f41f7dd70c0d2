"""Addresses: a datagram from an unvalidated address changes nothing, gets no more bytes than it has, and can start a
validation.
"""

from __future__ import annotations

import math

import pytest

from wavesim_sdk.testing import InMemoryLink, sessions_for_tests
from wavesim_sdk.wire import codec, seal, session
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire.client import ClientSession, Phase
from wavesim_sdk.wire.items import Ping, RunStateChanged
from wavesim_sdk.wire.messages import Join, Type
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Session

Address = tuple[str, int]
KEY = bytes(range(32))
HOME, THIEF, MOVED = ("127.0.0.1", 4000), ("10.9.9.9", 666), ("127.0.0.1", 4999)
both = pytest.mark.parametrize("key", [None, KEY], ids=["open", "sealed"])


def sessions(key: bytes | None = KEY) -> ServerSessions:
    return sessions_for_tests(keys=seal.Keyring([seal.KeyHolder("a", key)]) if key else None)


class Path(InMemoryLink):
    """A client whose every datagram somebody copies and delivers from elsewhere, before the original or after it."""

    first = True  #: the copies win the race
    copying = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.copied: list[bytes] = []
        self.received: dict[Address, int] = {}
        self.answered: dict[Address, int] = {}
        self.to_thief: list[bytes] = []

    def transmit(self, to_server: bool, data: bytes) -> None:
        if not to_server or not self.copying:
            return super().transmit(to_server, data)
        self.copied.append(data)
        for copy in (self.first, not self.first):
            if copy:
                self.deliver(data, THIEF)
            else:
                super().transmit(True, data)
        return None

    def deliver(self, data: bytes, source: Address) -> list[session.Happening]:
        """A datagram arrives from any address; what is said there is counted."""
        self.received[source] = self.received.get(source, 0) + len(data)
        before = len(self.sessions.outgoing)
        happened = self.sessions.receive(data, source, self.now)
        for answer, to in self.sessions.outgoing[before:]:
            if to == source:
                self.answered[to] = self.answered.get(to, 0) + len(answer)
                if to == THIEF:
                    self.to_thief.append(answer)
        self.server_events += happened
        return happened


def joined(key: bytes | None = KEY, kind: type[InMemoryLink] = Path) -> InMemoryLink:
    link = kind(ClientSession(Join(name="a"), key), sessions(key))
    link.copying = False  # type: ignore[attr-defined]
    link.run(0.2)
    link.copying = True  # type: ignore[attr-defined]
    assert link.client.phase is Phase.JOINED
    return link


def mine(link: InMemoryLink) -> Session:
    (only,) = link.sessions.by_token.values()
    return only


def commands(link: InMemoryLink) -> list[float]:
    return [
        h.message.command[0]
        for h in link.server_events
        if isinstance(h, session.Actuated) and h.message.command[0] is not None
    ]


@both
@pytest.mark.parametrize("first", [True, False])
def test_a_copy_from_elsewhere_costs_the_session_nothing(key: bytes | None, first: bool) -> None:
    """Whoever copied each datagram and delivered it first moved the replay window: the original was a replay, and the session
    ended as silent after the keep-alive time."""
    link = joined(key)
    assert isinstance(link, Path)
    link.first = first
    for k in range(40):
        link.client.actuate([float(k)])
        link.run(0.25)
    assert mine(link).address == HOME and link.client.phase is Phase.JOINED
    assert commands(link) == [float(k) for k in range(40)], "each acts, once"
    assert link.sessions.drops["address"] == len(link.copied) >= 60 and link.sessions.drops["replay"] == 0
    link.sessions.push(mine(link), RunStateChanged(2, 7))
    link.run(0.3)
    assert link.events[-1] == RunStateChanged(2, 7)


def test_a_client_moves_although_somebody_copies_all_that_it_says() -> None:
    """Its proof belongs to its address; the copy of it proves nothing."""
    link = joined()
    assert isinstance(link, Path)
    link.address = MOVED
    link.run(3.0)
    assert mine(link).address == MOVED and link.client.phase is Phase.JOINED
    moves = [h for h in link.server_events if isinstance(h, session.AddressMigrated)]
    assert moves == [session.AddressMigrated(mine(link), HOME)] and len(link.copied) > 5


def test_a_session_that_a_relay_took_along_comes_back() -> None:
    """Who copies, passes PROVE on to the client and copies the proof, too, is believed once: RFC 9000, 9.3.3. The client is asked where
    it speaks, and has its session again, although each of its datagrams came from elsewhere first."""
    link = joined()
    assert isinstance(link, Path)
    link.client.actuate([1.0])
    link.run(0.1)
    link.events += link.client.receive(link.to_thief[-1], link.now)
    link.run(0.02)
    assert session.AddressMigrated(mine(link), HOME) in link.server_events, "taken along"
    link.run(1.5)
    assert mine(link).address == HOME and session.AddressMigrated(mine(link), THIEF) in link.server_events
    link.client.actuate([3.0])
    link.run(6.0)
    assert mine(link).address == HOME and link.client.phase is Phase.JOINED and commands(link)[-1] == 3.0


def test_a_proof_counts_once() -> None:
    """A copy of a proof that moved the session is a replay, whatever it came by."""
    link = joined(KEY, InMemoryLink)
    link.client.actuate([1.0])
    (said,) = link.client.outgoing(link.now)
    link.sessions.receive(said, MOVED, link.now)
    (prove,) = [data for data, to in link.sessions.outgoing if to == MOVED]
    link.client.receive(prove, link.now)
    (proof,) = link.client.outgoing(link.now)
    assert link.sessions.receive(proof, THIEF, link.now) == [], "not from there"
    assert link.sessions.receive(proof, MOVED, link.now) == [session.AddressMigrated(mine(link), HOME)], (
        "which cost it nothing"
    )
    assert link.sessions.receive(proof, MOVED, link.now) == [] and link.sessions.drops["replay"] == 1
    link.client.actuate([2.0])
    (later,) = link.client.outgoing(link.now)
    assert [type(h) for h in link.sessions.receive(later, MOVED, link.now)] == [session.Actuated]
    assert link.sessions.receive(proof, HOME, link.now) == [] and mine(link).address == MOVED
    assert link.sessions.receive(said, MOVED, link.now) == [] and link.sessions.drops["old"] == 1
    assert commands(link) == [] and link.sessions.drops["replay"] == 1, (
        "what came from elsewhere at first was not recorded"
    )


@both
def test_a_malformed_datagram_from_elsewhere_tells_the_client_nothing(key: bytes | None) -> None:
    """A NOTICE reports its own address: the copy of it, or one by somebody who knows the token, is no error."""
    link = joined(key, InMemoryLink)
    for k, source in enumerate((THIEF, MOVED, HOME)):
        bad = codec.encode_datagram(
            Type.ACTUATE, b"\x91\xa1x", mine(link).token, 900 + k, 0, mine(link).seal and link.client._seal
        )
        link.sessions.receive(bad, source, link.now)
        assert link.sessions.drops["fields"] == k + 1
        assert len(mine(link).outbox) == (1 if source == HOME else 0)


# ------------------------------------------------------------------------------- amplification


@both
def test_an_unproven_address_gets_no_more_bytes_than_it_sends(key: bytes | None) -> None:
    """A PROVE is longer than an ACK: whoever knew a token (it is in the clear) made a server send 1.36 times what he sent."""
    link = joined(key)
    assert isinstance(link, Path)
    for k in range(60):
        for message in (m.Ack(), m.KeepaliveReply(k), m.Actuate([1.0, 0.5]), m.Estimate([1.0] * 10)):
            link.deliver(link.client._encode(message), THIEF)
            assert link.answered.get(THIEF, 0) <= link.received[THIEF]
    assert link.answered[THIEF] > 0.4 * link.received[THIEF], "and it is asked to prove itself"
    assert len(link.to_thief) > 100


@both
def test_a_bare_acknowledgement_is_answered_when_enough_of_them_came(key: bytes | None) -> None:
    """Clients that do not make theirs longer are asked a little later."""
    link = joined(key)
    assert isinstance(link, Path)
    asked = []
    for _ in range(6):
        link.deliver(link.client._encode(m.Ack()), MOVED)
        asked.append(link.answered.get(MOVED, 0) > 0)
    assert asked.index(True) == 1
    assert link.answered[MOVED] <= link.received[MOVED]


@both
def test_what_a_client_says_that_hears_nothing_is_answered_at_once(key: bytes | None) -> None:
    link = joined(key, InMemoryLink)
    link.sessions.outgoing.clear()
    link.now = link.client.last_heard + 10.0
    (ack,) = link.client.outgoing(link.now)
    assert codec.decode_header(ack, from_client=True).type is Type.ACK
    link.sessions.receive(ack, MOVED, link.now)
    ((prove, to),) = link.sessions.outgoing
    assert to == MOVED and len(prove) == len(ack) == 34 + (16 if key else 0)


def test_no_stranger_gets_more_than_it_sends() -> None:
    """HELLOs and JOINs of all sizes, of holders of a key and of others, of version 1."""
    for key in (None, KEY):
        link = Path(ClientSession(Join(name="a"), key), sessions(key))
        hellos = [codec.encode(m.Hello(2**63, bytes(n))) for n in (*range(60), 600)]
        old = [h[:4] + b"\1" + h[5:] for h in hellos]
        cookie = bytes(16)
        joins = [Join(cookie, 2**63, name) for name in ("", "a", "a" * 31)]
        bare = codec._pack([cookie, 1])
        closer = seal.HandshakeSeal(KEY, seal.JOIN, public=seal.EphemeralKey().public) if key else None
        identity = seal.key_id(KEY) if key else 0
        short = [
            codec.encode_datagram(Type.JOIN, codec._pack([bytes(n), 1]), identity, 1, 0, closer) for n in range(16, 60)
        ]
        asked = [*hellos, *old, *[codec.encode(j, identity, 1, 0, closer) for j in joins], *short, bare]
        for data in asked:
            before = len(link.sessions.outgoing)
            link.sessions.receive(data, THIEF, 100.0)
            said = sum(len(d) for d, _ in link.sessions.outgoing[before:])
            assert said <= len(data), f"{len(data)} bytes were answered by {said}"
        assert len(link.sessions.outgoing) > 20


# ------------------------------------------------------------------------------- signs of life


def forged(link: InMemoryLink, how: str) -> tuple[bytes, Address]:
    """A datagram in the name of a session, by somebody without its key."""
    token, sequence = mine(link).token, mine(link).newest_sequence + 10
    plain = codec.encode(m.Ack(), token, sequence)
    sealed = codec.encode_datagram(
        Type.ACK,
        codec.encode_payload(m.Ack())[1],
        token,
        sequence,
        0,
        seal.SessionSeal(bytes(32), bytes(16), token, True),
    )
    changed = bytearray(captured(link))
    changed[16:20] = sequence.to_bytes(4, "little")
    return {
        "unsealed": (plain, HOME),
        "another key": (sealed, HOME),
        "another number": (bytes(changed), HOME),
        "a replay": (captured(link), HOME),
        "a copy from elsewhere": (captured(link), THIEF),
        "a capture from elsewhere, not delivered yet": (held(link), THIEF),
    }[how]


def captured(link: InMemoryLink) -> bytes:
    """Something that the client said, and that arrived."""
    if not hasattr(link, "_captured"):
        link._captured = link.client._encode(m.KeepaliveReply(1))  # type: ignore[attr-defined]
        link.sessions.receive(link._captured, HOME, link.now)  # type: ignore[attr-defined]
    return link._captured  # type: ignore[attr-defined,no-any-return]


def held(link: InMemoryLink) -> bytes:
    """Something that the client said last, and that was held back."""
    if not hasattr(link, "_held"):
        link._held = link.client._encode(m.Ack())  # type: ignore[attr-defined]
    return link._held  # type: ignore[attr-defined,no-any-return]


HOW = (
    "unsealed",
    "another key",
    "another number",
    "a replay",
    "a copy from elsewhere",
    "a capture from elsewhere, not delivered yet",
)


@pytest.mark.parametrize("how", HOW)
def test_a_silent_client_is_removed_whatever_others_say_in_its_name(how: str) -> None:
    link = joined(KEY, InMemoryLink)
    captured(link)
    dead, last = mine(link), mine(link).last_heard
    end = math.inf
    for k in range(120):
        now = last + 0.05 * (k + 1)
        link.sessions.receive(*forged(link, how), now)
        gone = link.sessions.poll(now)
        if gone:
            assert gone == [session.SessionGone(dead, "silent")]
            end = now
            break
    assert last + 5.0 < end < last + 5.2, "its keep-alive time goes by the last that it said itself"


def test_a_datagram_that_is_not_accepted_is_no_sign_of_life() -> None:
    """Without keys too: one of its own address that is malformed, or old."""
    link = joined(None, InMemoryLink)
    only, last = mine(link), mine(link).last_heard
    link.client.actuate([1.0])
    (good,) = link.client.outgoing(link.now)
    link.sessions.receive(good, HOME, link.now)
    last = only.last_heard
    bad = good[:24] + b"\xc1"
    for k in range(50):
        for data in (bad, good, good[:23]):
            link.sessions.receive(data, HOME, last + 0.1 * k)
    assert only.last_heard == last and link.sessions.drops["body"] == link.sessions.drops["old"] == 50
    assert [type(h) for h in link.sessions.poll(last + 5.01)] == [session.SessionGone]


@both
def test_what_anybody_can_send_tells_a_client_nothing_of_its_server(key: bytes | None) -> None:
    """A CHALLENGE or a REFUSE needs no token and no key: in a session it is neither a sign of life nor an acknowledgement."""
    link = joined(key, InMemoryLink)
    number = link.client.request(Ping(25_000.0))
    link.client.outgoing(link.now)
    heard = link.client.last_heard
    nonce = link.client._nonce
    for kind in (m.Challenge(nonce, bytes(16)), m.Refuse(nonce, 1, ""), m.Challenge(7, bytes(16))):
        for k in range(20):
            assert link.client.receive(codec.encode(kind, 0, 0, number), heard + k) == []
    assert link.client.last_heard == heard and len(link.client._outbox) == 1 and link.client.phase is Phase.JOINED
