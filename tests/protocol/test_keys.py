"""Keys: a sender without the right key learns and changes nothing, and a changed or repeated datagram is dropped and
counted.
"""

from __future__ import annotations

import hashlib
import hmac
import random
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.test_sessions import ADDRESS, admit
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.testing import InMemoryLink, sessions_for_tests
from wavesim_sdk.wire import codec, seal, session
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.items import RunStateChanged
from wavesim_sdk.wire.messages import HEADER_BYTES, Actuate, Hello, Join, Type, Welcome
from wavesim_sdk.wire.server import ServerSessions

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def sessions(*holders: seal.KeyHolder, **options: object) -> ServerSessions:
    return sessions_for_tests(admit, keys=seal.Keyring(list(holders)), **options)


def joined(loss: float = 0.0, seed: int = 0) -> InMemoryLink:
    link = InMemoryLink(ClientSession(Join(name="a"), KEY), sessions(seal.KeyHolder("a", KEY)), loss=loss, seed=seed)
    link.run(10.0 if loss else 0.2)
    assert link.client.phase is Phase.JOINED
    return link


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_a_sealed_session_works_like_an_open_one(loss: float) -> None:
    link = joined(loss, 3)
    assert any(isinstance(e, Welcome) for e in link.events)
    for k in range(100):
        link.sessions.push(link.session, RunStateChanged(1, k))
        link.client.actuate([float(k)])
        link.run(0.02)
    link.run(10.0)
    assert [e.time_ns for e in link.events if isinstance(e, RunStateChanged)] == list(range(100))
    commands = [h.message.command[0] for h in link.server_events if isinstance(h, session.Actuated)]
    assert commands == sorted(commands) and len(commands) > 20


def test_what_is_on_the_wire_says_nothing() -> None:
    """No body can be read, and the same command sent twice looks different."""
    link = joined()
    link.client.actuate([12345.678])
    link.client.actuate([12345.678])
    first, second = link.client.outgoing(link.now)
    assert first[6] == 1 and first[HEADER_BYTES:] != second[HEADER_BYTES:]
    plain = codec.encode(Actuate([12345.678]))[HEADER_BYTES:]
    assert plain not in first and plain not in second
    for data in (first, second):
        with pytest.raises(codec.Dropped):
            codec.decode_payload(data, codec.decode_header(data, True))


@pytest.mark.parametrize(("key", "reason"), [(None, "flags"), (OTHER, "key")])
def test_without_the_right_key_nobody_joins(key: bytes | None, reason: str) -> None:
    link = InMemoryLink(ClientSession(Join(name="a"), key), sessions(seal.KeyHolder("a", KEY)))
    link.run(3.0)
    assert link.client.phase is Phase.JOINING and link.server_events == [] and link.sessions.by_token == {}
    assert link.sessions.drops[reason] > 5


def test_a_client_with_a_key_does_not_trust_a_server_without() -> None:
    link = InMemoryLink(ClientSession(Join(name="a"), KEY))
    link.run(2.0)
    assert link.client.phase is Phase.JOINING and link.sessions.by_token == {}


def test_a_key_belongs_to_a_name() -> None:
    ring = (seal.KeyHolder("a", KEY), seal.KeyHolder("*", OTHER))
    link = InMemoryLink(ClientSession(Join(name="b"), KEY), sessions(*ring))
    link.run(1.0)
    assert [e.text for e in link.events if isinstance(e, JoinRefused)] == ["this key belongs to 'a'"]
    link = InMemoryLink(ClientSession(Join(name="b"), OTHER), sessions(*ring))
    link.run(1.0)
    assert link.client.phase is Phase.JOINED


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_flipped_bit_is_dropped_and_counted(data: st.DataObject) -> None:
    link = joined()
    link.client.actuate([9.5])
    whole = bytearray(link.client.outgoing(link.now)[0])
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    before = sum(link.sessions.drops.values())
    assert link.sessions.receive(bytes(whole), ADDRESS, link.now) == []
    assert sum(link.sessions.drops.values()) == before + 1


def test_captures_played_back_do_nothing() -> None:
    """Everything that was sent, again: in order, shuffled, and after the session is over."""
    link = InMemoryLink(ClientSession(Join(name="a"), KEY), sessions(seal.KeyHolder("a", KEY)))
    captured: list[bytes] = []
    send = link.transmit
    link.transmit = lambda to_server, data: (captured.append(data) if to_server else None, send(to_server, data))[1]  # type: ignore[assignment,method-assign]
    link.run(0.3)
    for k in range(40):
        link.client.actuate([float(k)])
        link.run(0.01)
    happened = len(link.server_events)
    for order in (captured, random.Random(1).sample(captured, len(captured))):
        for data in order:
            assert link.sessions.receive(data, ADDRESS, link.now) == []
    assert link.sessions.drops["replay"] >= 40
    link.client.leave()
    link.run(0.1)
    assert link.sessions.by_token == {} and len(link.server_events) == happened + 1
    for data in captured:  # the JOIN among them, whose cookie is still good
        assert link.sessions.receive(data, ADDRESS, link.now) == []
    assert link.sessions.by_token == {}


def test_datagrams_may_overtake_each_other_within_the_window() -> None:
    client = seal.SessionSeal(KEY, bytes(16), 9, is_client=True)
    other = seal.SessionSeal(KEY, bytes(16), 9, is_client=False)
    sealed = {k: client.seal(b"h", b"%d" % k, k) for k in range(1, 200)}
    order = [1, 3, 2, 70, 69, 10, 71, 135, 72, 199]
    assert [other.open(b"h", sealed[k], k) for k in order] == [b"%d" % k for k in order]
    for k in (135, 199, 72, 100):  # here before, or too old to tell
        with pytest.raises(codec.Dropped) as caught:
            other.open(b"h", sealed[k], k)
        assert caught.value.reason == "replay"
    with pytest.raises(codec.Dropped):
        other.open(b"H", sealed[198], 198)
    assert other.open(b"h", sealed[198], 198) == b"198", "a forged one does not burn its number"


def test_each_that_came_late_is_remembered() -> None:
    """A reordered datagram is taken once, at each place of the window; behind it nothing is."""
    client = seal.SessionSeal(KEY, bytes(16), 9, is_client=True)
    other = seal.SessionSeal(KEY, bytes(16), 9, is_client=False)
    sealed = {k: client.seal(b"h", b"%d" % k, k) for k in range(1, 202)}
    assert other.open(b"h", sealed[100], 100) == b"100"
    for k in range(99, 36, -1):
        assert other.open(b"h", sealed[k], k) == b"%d" % k
        with pytest.raises(codec.Dropped, match="replay"):
            other.open(b"h", sealed[k], k)
    with pytest.raises(codec.Dropped, match="replay"):
        other.open(b"h", sealed[36], 36)
    assert other.open(b"h", sealed[101], 101) == b"101"
    for k in (100, 99, 50, 38, 37):
        with pytest.raises(codec.Dropped, match="replay"):
            other.open(b"h", sealed[k], k)
    assert other.open(b"h", sealed[201], 201) == b"201", "a leap forgets what fell behind, and nothing else"
    assert other.open(b"h", sealed[138], 138) == b"138"
    with pytest.raises(codec.Dropped, match="replay"):
        other.open(b"h", sealed[137], 137)


@pytest.mark.parametrize("side", [True, False])
def test_each_direction_and_each_session_has_keys_of_its_own(side: bool) -> None:
    sealed = seal.SessionSeal(KEY, bytes(16), 9, is_client=side).seal(b"h", b"x", 1)
    assert seal.SessionSeal(KEY, bytes(16), 9, is_client=not side).open(b"h", sealed, 1) == b"x"
    for secret, salt, token, same in (
        (KEY, bytes(16), 9, side),
        (OTHER, bytes(16), 9, not side),
        (KEY, b"\1" * 16, 9, not side),
        (KEY, bytes(16), 10, not side),
    ):
        with pytest.raises(codec.Dropped, match="seal"):
            seal.SessionSeal(secret, salt, token, is_client=same).open(b"h", sealed, 1)


# ------------------------------------------------------------------------------- what the page says, written anew


def hkdf(key: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 for 32 bytes."""
    extracted = hmac.digest(salt or bytes(32), key, hashlib.sha256)
    return hmac.digest(extracted, info + b"\1", hashlib.sha256)


COOKIE, NONCE, TOKEN = bytes(range(100, 116)), 2**63 - 12345, 2**62 + 77
STATIC = bytes(range(7, 39))  #: private key of a server
PINNED = KEY + seal.public_key(STATIC)  #: a key that is valid for that server only


def pair(
    key: bytes, holder: str = "a"
) -> tuple[seal.SessionSeal, seal.SessionSeal, seal.EphemeralKey, seal.EphemeralKey]:
    """Both sides of a session, and their key pairs."""
    ours, theirs = seal.EphemeralKey(), seal.EphemeralKey()
    ring = seal.Keyring([seal.KeyHolder(holder, key)], STATIC)
    server = ring.exchange(ring.holders[0], ours.public, theirs).session_seal(COOKIE, NONCE, TOKEN)
    client = seal.ClientExchange(key, ours).session_seal(COOKIE, NONCE, TOKEN, theirs.public)
    return client, server, ours, theirs


@pytest.mark.parametrize("key", [KEY, PINNED], ids=["any server", "one server"])
@pytest.mark.parametrize("side", [b"client", b"server"])
def test_a_session_is_sealed_as_the_page_says(side: bytes, key: bytes) -> None:
    client, server, ours, theirs = pair(key)
    private = X25519PrivateKey.from_private_bytes(ours._private.private_bytes_raw())
    secret = key + private.exchange(X25519PublicKey.from_public_bytes(theirs.public))
    if len(key) == 64:
        secret += private.exchange(X25519PublicKey.from_public_bytes(key[32:]))
    salt = COOKIE + NONCE.to_bytes(8, "little") + ours.public + theirs.public
    aead = ChaCha20Poly1305(hkdf(secret, salt, b"wavesim/2 " + side + TOKEN.to_bytes(8, "little")))
    sealed = aead.encrypt((300).to_bytes(12, "little"), b"body", b"header")
    sender, receiver = (client, server) if side == b"client" else (server, client)
    assert sender.seal(b"header", b"body", 300) == sealed and receiver.open(b"header", sealed, 300) == b"body"
    ticket = hkdf(secret, salt, b"wavesim/2 resume" + TOKEN.to_bytes(8, "little"))[:8]
    assert client.ticket == server.ticket == int.from_bytes(ticket, "little")
    proof = hkdf(ticket, ours.public, b"wavesim/2 previous")[:8]
    assert server.proves(int.from_bytes(proof, "little"), ours.public)
    assert not server.proves(int.from_bytes(proof, "little"), theirs.public) and not server.proves(0, ours.public)


def test_welcome_brings_the_public_key_of_the_server() -> None:
    for key in (KEY, PINNED):
        client, server, _, theirs = pair(key)
        header = codec.encode(Welcome(NONCE, 3, 0, 0, 1, 1.0, 0, 0, 0, 0, 1.0, 1.0, 0, 0, 0))[:HEADER_BYTES]
        sealed = server.seal(header, b"body", 1)
        assert sealed[:32] == theirs.public and len(sealed) == 32 + 4 + 16
        assert client.open(header, sealed, 1) == b"body"


def test_join_and_refuse_are_sealed_as_the_page_says() -> None:
    ring, holder = seal.Keyring([seal.KeyHolder("a", KEY)]), seal.KeyHolder("a", KEY)
    public = seal.EphemeralKey().public
    for ours, label, clear in (
        (ring.join_seal(holder), b"wavesim/2 join", public),
        (ring.refuse_seal(holder), b"wavesim/2 refuse", b""),
    ):
        aead = ChaCha20Poly1305(hkdf(KEY, b"", label))
        nonce = bytes(range(12))
        assert ours.open(b"header", nonce + clear + aead.encrypt(nonce, b"body", b"header" + clear), 0) == b"body"
        sender = seal.HandshakeSeal(KEY, label, public=clear)
        made = sender.seal(b"header", b"body", 0)
        assert aead.decrypt(made[:12], made[12 + len(clear) :], b"header" + clear) == b"body"
        assert made[12 : 12 + len(clear)] == clear
        assert made[:12] != sender.seal(b"header", b"body", 0)[:12], "a nonce is used once"
        changed = bytearray(made)
        changed[13] ^= 1
        with pytest.raises(codec.Dropped, match="seal"):
            ours.open(b"header", bytes(changed), 0)
    fixed = seal.HandshakeSeal(KEY, seal.JOIN, bytes(12), public).seal(b"header", b"body", 0)
    assert fixed[:12] == bytes(12) and ring.join_seal(holder).open(b"header", fixed, 0) == b"body"
    assert seal.public_of_join(bytes(HEADER_BYTES) + fixed) == public


def test_the_number_of_a_key_is_as_the_page_says() -> None:
    digest = hashlib.sha256(b"wavesim/2 key id" + KEY).digest()
    assert seal.key_id(KEY) == int.from_bytes(digest[:8], "little") == 0x222F63FD1BB21789
    assert list(seal.Keyring([seal.KeyHolder("a", KEY)]).by_id) == [seal.key_id(KEY)]


def test_what_cannot_be_opened_is_dropped_under_its_name() -> None:
    """A changed header or body, another key, and what is too short to be sealed."""
    ours, theirs, *_ = pair(KEY)
    greeting = seal.HandshakeSeal(KEY, seal.JOIN, public=seal.EphemeralKey().public)
    sealed, hello = ours.seal(b"h", b"x", 1), greeting.seal(b"h", b"x", 1)
    tries = [
        (theirs, b"H", sealed),
        (theirs, b"h", sealed[:-1] + bytes([sealed[-1] ^ 1])),
        (theirs, b"h", b""),
        (ours, b"h", sealed),
        (greeting, b"H", hello),
        (greeting, b"h", hello[:-1] + bytes([hello[-1] ^ 1])),
        (greeting, b"h", b""),
        (greeting, b"h", hello[:11]),
        (greeting, b"h", hello[:43]),
        (seal.HandshakeSeal(OTHER, seal.JOIN), b"h", hello),
        (seal.HandshakeSeal(KEY, seal.REFUSE), b"h", hello),
    ]
    for sealer, header, data in tries:
        with pytest.raises(codec.Dropped) as caught:
            sealer.open(header, data, 1)
        assert caught.value.reason == "seal"
    assert theirs.open(b"h", sealed, 1) == b"x", "and what was forged took no number"
    with pytest.raises(codec.Dropped) as caught:
        theirs.open(b"h", sealed, 1)
    assert caught.value.reason == "replay"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(list(Type)), st.booleans())
def test_foreign_bytes_to_a_keyed_server(noise: bytes, kind: Type, flag: bool) -> None:
    link = joined()
    head = codec._HEADER.pack(b"WVSM", 2, kind, int(flag), link.client.token, 5, 0)
    happened = link.sessions.receive(head + noise, ADDRESS, link.now)
    assert happened == [] and len(link.sessions.by_token) == 1


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (
            "a " + "00" * 32 + "\n",
            0o644,
            "{}: other users may read this key file; restrict it to its owner (chmod 600)",
        ),
        (
            "a " + "00" * 32 + "\n",
            0o610,
            "{}: other users may read this key file; restrict it to its owner (chmod 600)",
        ),
        ("a 1234\n", 0o600, "{}:1: expected a line `NAME KEY` with a key of 64 hexadecimal digits"),
        ("# only words\n", 0o600, "{}: the key file has no keys; generate some with `wavesim keys`"),
        ("a " + "00" * 32 + "\nb " + "00" * 32, 0o600, "{}:2: duplicate key; each client needs its own"),
        ("\n\na " + "zz" * 32, 0o600, "{}:3: expected a line `NAME KEY` with a key of 64 hexadecimal digits"),
        ("a " + "00" * 32 + " b", 0o600, "{}:1: expected a line `NAME KEY` with a key of 64 hexadecimal digits"),
        (
            "b\u00f6 " + "00" * 31 + "\u00f6",
            0o600,
            "{}:1: expected a line `NAME KEY` with a key of 64 hexadecimal digits",
        ),
        ("alone", 0o600, "{}:1: expected a line `NAME KEY` with a key of 64 hexadecimal digits"),
        (f"b {'11' * 32}", 0o600, "{}: the key file has no key for 'a' and no key for all clients (*)"),
        (None, 0o600, "{}: cannot read the key file: No such file or directory"),
    ],
)
def test_bad_key_files(tmp_path: Path, content: str | None, mode: int, message: str) -> None:
    path = tmp_path / "keys"
    if content is not None:
        path.write_text(content, encoding="utf-8")
        path.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        seal.find_key(path, "a")
    assert str(caught.value) == message.format(path)


def test_a_client_takes_its_own_key_or_the_one_for_all(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# those of the harbour\n\n* {'22' * 32}\na {'11' * 32}  # the first\n\tb\t{'AA' * 32}\n")
    path.chmod(0o600)
    assert [seal.find_key(path, name) for name in "abc"] == [b"\x11" * 32, b"\xaa" * 32, b"\x22" * 32]
    assert [h.name for h in seal.read_keys(path)] == ["*", "a", "b"]


def test_too_many_datagrams_are_dropped_and_the_others_served() -> None:
    everybody = sessions_for_tests(admit, rate=100.0)
    link = InMemoryLink(ClientSession(Join(name="a")), everybody)
    link.run(0.2)
    for k in range(1000):
        link.client.actuate([float(k)])
    for data in link.client.outgoing(link.now):
        everybody.receive(data, ADDRESS, link.now)
    assert 890 <= everybody.drops["rate"] <= 910
    hello = codec.encode(Hello(1, bytes(64)))
    for _ in range(500):
        everybody.receive(hello, ("127.0.0.9", 5), link.now)
    assert len([1 for _, a in everybody.outgoing if a[0] == "127.0.0.9"]) == 100
    link.run(2.0)
    assert len(everybody.by_token) == 1, "the session lives on"


def test_forged_datagrams_cost_a_sealed_session_none_of_its_rate() -> None:
    """Its token and its address are no secret: fifty thousand of them in a second once ended it as silent."""
    everybody = sessions(seal.KeyHolder("a", KEY), rate=100.0)
    link = InMemoryLink(ClientSession(Join(name="a"), KEY), everybody)
    link.run(0.2)
    good = link.client.outgoing(link.now) or [link.client._encode(Actuate([1.0]))]
    forged = bytearray(good[-1].ljust(60, b"\0"))
    for k in range(6 * 5_000):
        forged[16:20] = (1000 + k).to_bytes(4, "little")
        everybody.receive(bytes(forged), ADDRESS, link.now)
        if k % 5_000 == 0:
            link.client.actuate([float(k)])
            link.run(1.0)
    assert everybody.drops["seal"] > 20_000 and everybody.drops["rate"] == 0
    assert len(everybody.by_token) == 1 and link.client.phase is Phase.JOINED
    commands = [h.message.command[0] for h in link.server_events if isinstance(h, session.Actuated)]
    assert commands[-6:] == [5000.0 * k for k in range(6)], "each is heard among the forged ones"


def test_a_name_can_be_taken_over() -> None:
    everybody = sessions_for_tests(admit, takeover=True)
    link = InMemoryLink(ClientSession(Join(name="a")), everybody)
    link.run(0.2)
    first, link.client = link.client, ClientSession(Join(name="a"))
    byes: list[bytes] = []
    carry = link.transmit
    link.transmit = lambda to_server, data: (
        byes.append(data) if data[5] == Type.BYE else None,
        carry(to_server, data),
    )[1]  # type: ignore[assignment,method-assign]
    link.run(0.1)
    assert len(byes) == 1 and everybody.drops == {}, "sent at once"
    assert first.receive(byes[0], link.now) == [SessionClosed("another client took over")]
    link.run(0.1)
    assert link.client.phase is Phase.JOINED and len(everybody.by_token) == 1
    assert first.token != link.client.token
    assert isinstance(link.server_events[-1], session.Resumed)
