"""Keys that change while clients run, keys of one server, and holders of one key for all names: who can act for whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol.test_sessions import admit
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.testing import InMemoryLink, sessions_for_tests
from wavesim_sdk.wire import codec, key_file, seal
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.items import RunStateChanged
from wavesim_sdk.wire.messages import HEADER_BYTES, Challenge, Join, Refusal, Type
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Actuated, Resumed, Session, SessionGone

KEY, OTHER, NEW = bytes(range(32)), bytes(range(1, 33)), bytes(range(2, 34))
STATIC, FOREIGN = bytes(range(7, 39)), bytes(range(8, 40))  # private keys of two servers
PINNED = KEY + seal.public_key(STATIC)


def ring(*holders: tuple[str, bytes] | tuple[str, bytes, bool], server: bytes = STATIC) -> seal.Keyring:
    return seal.Keyring([seal.KeyHolder(*h) for h in holders], server)


def link_of(
    key: bytes, keys: seal.Keyring, join: Join | None = None, sessions: ServerSessions | None = None
) -> InMemoryLink:
    link = InMemoryLink(
        ClientSession(join or Join(name="a"), key),
        sessions if sessions is not None else sessions_for_tests(admit, keys=keys),
    )
    link.run(0.3)
    return link


def refusals(link: InMemoryLink) -> list[tuple[int, str]]:
    return [(e.code, e.text) for e in link.events if isinstance(e, JoinRefused)]


# -- other keys, while clients run ---------------------------------------------------------------------------------


def test_a_replaced_key_interrupts_nobody_and_joins_no_more() -> None:
    """The session continues, loses nothing, and is resumed with the new key."""
    link = link_of(KEY, ring(("a", KEY)))
    session = link.session
    for k in range(10):
        link.sessions.push(session, RunStateChanged(1, k))
        if k == 5:
            assert link.sessions.replace_keys(ring(("a", KEY, True), ("a", NEW))) == []
        link.client.actuate([float(k)])
        link.run(0.02)
    link.run(0.5)
    assert [e.time_ns for e in link.events if isinstance(e, RunStateChanged)] == list(range(10))
    commands = [h.message.command[0] for h in link.server_events if isinstance(h, Actuated)]
    assert commands == list(range(10)) and not session.is_over
    ticket = link.client.ticket
    link.client = ClientSession(Join(name="a", previous=ticket), KEY)
    link.run(0.3)
    assert refusals(link) == [(Refusal.KEY, "this key was replaced; join with the new key")] and not session.is_over
    link.client = ClientSession(Join(name="a", previous=ticket), NEW)
    link.run(0.3)
    assert link.client.phase is Phase.JOINED and isinstance(link.server_events[-1], Resumed)
    assert link.sessions.replace_keys(ring(("a", NEW))) == [], "no session uses the earlier key"


def test_a_name_that_gets_its_own_key_resumes_its_session_with_it() -> None:
    """It had joined with the key for all names."""
    link = link_of(OTHER, ring(("*", OTHER)))
    first, ticket = link.session, link.client.ticket
    assert link.sessions.replace_keys(ring(("*", OTHER), ("a", KEY))) == [] and not first.is_over
    for key, phase in ((OTHER, Phase.CLOSED), (KEY, Phase.JOINED)):
        link.client = ClientSession(Join(name="a", previous=ticket), key)
        link.run(0.3)
        assert link.client.phase is phase
    assert first.is_over and link.session.resumed


def test_each_handshake_has_its_own_key_pair() -> None:
    """A repeated JOIN has the same one; after a refused cookie the client begins again with another."""
    link = InMemoryLink(ClientSession(Join(name="a"), KEY), sessions_for_tests(admit, keys=ring(("a", KEY))))
    joins: list[bytes] = []
    send = link.transmit

    def spoil(to_server: bool, data: bytes) -> None:
        if to_server and data[5] == Type.JOIN:
            joins.append(data)
            if len(joins) == 2:
                link.sessions._address_validator._secret = bytes(32)  # as after a restart of the server
            if len(joins) < 2:
                return
        send(to_server, data)

    link.transmit = spoil  # type: ignore[method-assign]
    link.run(2.0)
    publics = [seal.public_of_join(data) for data in joins]
    assert len(joins) == 3 and publics[0] == publics[1] != publics[2] and link.client.phase is Phase.JOINED


def test_a_revoked_client_is_ended_and_does_not_come_back() -> None:
    keys = ring(("a", KEY), ("b", OTHER))
    link = link_of(KEY, keys)
    other = InMemoryLink(ClientSession(Join(name="b"), OTHER), link.sessions, address=("127.0.0.1", 4711))
    other.run(0.3)
    (ended,) = link.sessions.replace_keys(ring(("b", OTHER)))
    assert ended.name == "a" and link.sessions.take_ended() == [SessionGone(ended, "revoked")]
    link.run(0.3)
    assert [e.text for e in link.events if isinstance(e, SessionClosed)] == ["the key of this session was revoked"]
    link.client = ClientSession(Join(name="a", previous=link.client.ticket), KEY)
    link.run(1.0)
    assert link.client.phase is Phase.JOINING and link.sessions.drops["key"] >= 3
    assert [s.name for s in link.sessions.by_token.values()] == ["b"], "the other one continues"


def test_a_key_that_was_given_to_another_name_ends_the_session_of_the_first() -> None:
    link = link_of(KEY, ring(("a", KEY)))
    assert [s.name for s in link.sessions.replace_keys(ring(("b", KEY)))] == ["a"]


def test_a_welcome_that_was_lost_is_repeated_after_the_key_was_replaced() -> None:
    """Its session exists, so its client gets to know that."""
    link = InMemoryLink(ClientSession(Join(name="a"), KEY), sessions_for_tests(admit, keys=ring(("a", KEY))))
    send = link.transmit
    lost: list[bytes] = []

    def first_lost(to_server: bool, data: bytes) -> None:
        if not to_server and data[5] == Type.WELCOME and not lost:
            lost.append(data)
            link.sessions.replace_keys(ring(("a", KEY, True), ("a", NEW)))
            return
        send(to_server, data)

    link.transmit = first_lost  # type: ignore[method-assign]
    link.run(1.0)
    assert lost and link.client.phase is Phase.JOINED and len(link.sessions.by_token) == 1


# -- a key of one server ---------------------------------------------------------------------------------------------


def test_a_key_of_another_server_opens_nothing() -> None:
    """Both servers have the same pre-shared key; the client was made for the first one."""
    assert link_of(PINNED, ring(("a", PINNED))).client.phase is Phase.JOINED
    elsewhere = ring(("a", KEY + seal.public_key(FOREIGN)), server=FOREIGN)
    link = link_of(PINNED, elsewhere)
    link.run(1.0)
    assert link.client.phase is Phase.JOINING and link.sessions.by_token == {} and link.sessions.drops["key"] >= 3


@pytest.mark.parametrize("private", [FOREIGN, b""], ids=["another key", "no key"])
def test_who_holds_the_shared_key_cannot_play_the_server(private: bytes) -> None:
    """The impostor knows the whole line of the client, and answers for the key ID of the real server."""

    class Impostor(seal.Keyring):
        def exchange(
            self, holder: seal.KeyHolder, client_public: bytes, ephemeral: seal.EphemeralKey | None = None
        ) -> seal.ServerExchange:
            ephemeral = ephemeral or seal.EphemeralKey()
            static = seal.EphemeralKey(private).agree(client_public) if private else b""
            return seal.ServerExchange(holder.key, client_public, static, ephemeral)

    link = link_of(PINNED, Impostor([seal.KeyHolder("a", PINNED)]))
    link.run(1.0)
    assert link.sessions.by_token, "it opens the JOIN"
    assert link.client.phase is Phase.JOINING and link.client.drops["seal"] >= 1, "but nothing more"
    assert not any(isinstance(e, RunStateChanged) for e in link.events)


def test_who_holds_the_shared_key_reads_no_other_session() -> None:
    """Every datagram is recorded and the key becomes known: JOIN opens, the session does not (forward secrecy)."""
    for key in (KEY, PINNED):
        link = InMemoryLink(ClientSession(Join(name="a"), key), sessions_for_tests(admit, keys=ring(("*", key))))
        recorded: list[tuple[bool, bytes]] = []
        send = link.transmit

        def record(to_server: bool, data: bytes, send=send, recorded=recorded) -> None:  # type: ignore[no-untyped-def]
            recorded.append((to_server, data))
            send(to_server, data)

        link.transmit = record  # type: ignore[method-assign]
        link.run(0.3)
        link.client.actuate([12345.678])
        link.run(0.1)
        of_type = {Type(data[5]): data for _, data in recorded}
        join = of_type[Type.JOIN]
        header = codec.decode_header(join, True)
        opened = codec.decode_payload(join, header, seal.HandshakeSeal(key, seal.JOIN))
        assert opened.name == "a"
        public = (seal.public_of_join(join), of_type[Type.WELCOME][HEADER_BYTES:][: seal.PUBLIC_BYTES])
        salt = opened.cookie + opened.nonce.to_bytes(8, "little") + b"".join(public)
        for secret in (
            key,
            key + bytes(32),
            key + public[0],
            key + public[1],
            key + seal.EphemeralKey().agree(public[1]),
        ):
            for to_server, data in recorded:
                if data[6] and data[5] != Type.JOIN:
                    thief = seal.SessionSeal(secret, salt, link.client.token, is_client=not to_server)
                    head = codec.decode_header(data, to_server)
                    with pytest.raises(codec.Dropped, match="seal"):
                        codec.open_payload(data, head, thief)
        owner = link.session.seal
        assert owner is not None and len(recorded) > 6
        assert link.client._exchange is None, "the private key is gone from the client"
        assert not any(
            "X25519" in type(v).__name__ or (isinstance(v, bytes) and len(v) == 32 and v != owner._public)
            for v in vars(owner).values()
        )


def test_the_same_cookie_nonce_and_token_give_other_keys_in_each_run() -> None:
    """A server that is started again with the same random numbers, and a client too."""

    def welcome() -> bytes:
        client = ClientSession(Join(name="a"), KEY)
        client._nonce = 7
        link = InMemoryLink(client, sessions_for_tests(admit, keys=ring(("a", KEY))))
        sent: list[bytes] = []
        send = link.transmit
        link.transmit = lambda to_server, data: (sent.append(data), send(to_server, data))[1]  # type: ignore[assignment,method-assign]
        link.run(0.3)
        return next(d for d in sent if d[5] == Type.WELCOME)

    first, second = welcome(), welcome()
    assert first[:HEADER_BYTES] == second[:HEADER_BYTES] and first[-40:] != second[-40:]


@pytest.mark.parametrize("public", [bytes(32), b"\1" + bytes(31)])
def test_a_public_key_that_gives_everybody_the_same_secret_is_dropped(public: bytes) -> None:
    sessions = sessions_for_tests(admit, keys=ring(("a", KEY), ("b", OTHER + PINNED[32:])))
    link = InMemoryLink(ClientSession(Join(name="a"), KEY), sessions)
    for data in link.client.outgoing(0.0):
        sessions.receive(data, ("h", 1), 0.0)
    cookie = codec.decode_payload(d := sessions.outgoing.pop()[0], codec.decode_header(d, False))
    assert isinstance(cookie, Challenge)
    for key, name in ((KEY, "a"), (OTHER + PINNED[32:], "b")):
        closer = seal.HandshakeSeal(key, seal.JOIN, public=public)
        data = codec.encode(Join(cookie.cookie, 5, name), seal.key_id(key), 2, 0, closer)
        assert sessions.receive(data, ("h", 1), 0.0) == []
    assert sessions.drops == {"seal": 2} and sessions.by_token == {} and sessions.outgoing == []
    with pytest.raises(codec.Dropped, match="seal"):
        seal.ClientExchange(KEY).session_seal(bytes(16), 1, 2, public)


# -- holders of one key for all names --------------------------------------------------------------------------------


def test_a_key_for_all_names_is_not_valid_for_a_name_with_its_own() -> None:
    keys = ring(("referee", KEY), ("old", NEW, True), ("*", OTHER))
    for name in ("referee", "old"):
        text = f"'{name}' has its own key; a key for all names is not valid for it"
        assert refusals(link_of(OTHER, keys, Join(name=name))) == [(Refusal.KEY, text)]
    assert link_of(OTHER, keys).client.phase is Phase.JOINED


def test_holders_of_one_key_do_not_resume_each_others_sessions() -> None:
    """One of them sees the token, opens the JOIN, and copies what resumed a session."""
    keys = ring(("*", PINNED))
    link = link_of(PINNED, keys)
    first: Session = link.session
    thief = ("127.0.0.1", 4712)

    def tries(previous: int) -> None:
        other = InMemoryLink(ClientSession(Join(name="a", previous=previous), PINNED), link.sessions, address=thief)
        other.run(0.3)
        assert [code for code, _ in refusals(other)] == [Refusal.EXPIRED]

    tries(link.client.token)
    joins: list[bytes] = []
    ticket = link.client.ticket
    link.client = ClientSession(Join(name="a", previous=ticket), PINNED)
    send = link.transmit

    def held(to_server: bool, data: bytes) -> None:
        if to_server and data[5] == Type.JOIN:
            joins.append(data)
        else:
            send(to_server, data)

    link.transmit = held  # type: ignore[method-assign]
    link.run(0.3)
    proof = codec.decode_payload(joins[0], codec.decode_header(joins[0], True), seal.HandshakeSeal(PINNED, seal.JOIN))
    assert proof.previous not in (0, ticket, first.token)
    tries(proof.previous)
    assert not first.is_over
    link.transmit = send  # type: ignore[method-assign]
    link.run(0.5)
    assert link.client.phase is Phase.JOINED and first.is_over and link.session.resumed


# -- key files -------------------------------------------------------------------------------------------------------


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_new_file_has_a_server_and_keys_for_it(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    key_file.add_keys(path, ["a", "*"], seal.public_key)
    found = key_file.read_key_file(path)
    public = seal.public_key(found.server_private)
    assert [(h.name, h.key[32:], h.is_retired) for h in found.holders] == [("a", public, False), ("*", public, False)]
    assert path.stat().st_mode & 0o777 == 0o600 and len({h.key for h in found.holders}) == 2
    assert seal.find_key(path, "a") == found.holders[0].key and seal.find_key(path, "b") == found.holders[1].key
    key_file.add_keys(path, ["b"], seal.public_key)
    again = key_file.read_key_file(path)
    assert again.server_private == found.server_private and again.holders[:2] == found.holders


def test_keys_are_replaced_and_revoked_and_the_rest_stays(tmp_path: Path) -> None:
    before = (
        f"# ours, ä\n@server {STATIC.hex()}\na {KEY.hex()}  # first\nb {OTHER.hex()} {seal.public_key(STATIC).hex()}\n"
    )
    path = tmp_path / "keys"
    path.write_bytes(before.encode("latin-1"))
    path.chmod(0o600)
    key_file.add_keys(path, ["a"], seal.public_key, replace=True)
    lines = path.read_bytes().decode("latin-1").splitlines()
    assert lines[:2] == before.splitlines()[:2] and lines[3] == before.splitlines()[3]
    assert lines[2] == f"a {KEY.hex()} retired" and lines[4].startswith("a ") and len(lines) == 5
    held = {(h.name, h.is_retired): h.key for h in seal.read_keyring(path).holders}
    assert held.keys() == {("a", True), ("a", False), ("b", False)}
    assert seal.find_key(path, "a") == held["a", False] != KEY
    key_file.add_keys(path, ["a"], seal.public_key, replace=True)
    assert [h.is_retired for h in seal.read_keys(path) if h.name == "a"] == [True, True, False]
    assert key_file.revoke_keys(path, ["a"]) == 3
    assert path.read_bytes().decode("latin-1").splitlines() == [*before.splitlines()[:2], before.splitlines()[3]]
    assert path.stat().st_mode & 0o777 == 0o600 and [p.name for p in tmp_path.iterdir()] == ["keys"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"a {KEY.hex()} {seal.public_key(FOREIGN).hex()}\n@server {STATIC.hex()}", "{}: the key of 'a' belongs to a different server: the `@server` line of this key file has a different key, or is missing"),
        (f"a {PINNED[:32].hex()} {PINNED[32:].hex()}", "{}: the key of 'a' belongs to a different server: the `@server` line of this key file has a different key, or is missing"),
        (f"@server {STATIC.hex()}\n@server {STATIC.hex()}", "{}:2: expected one line `@server KEY` with a private key"),
        (f"@server {STATIC.hex()} {STATIC.hex()}", "{}:1: expected one line `@server KEY` with a private key"),
        (f"@server {STATIC.hex()} retired", "{}:1: expected one line `@server KEY` with a private key"),
        (f"@server {STATIC.hex()}", "{}: the key file has no keys; generate some with `wavesim keys`"),
        (f"a {KEY.hex()} {PINNED[32:].hex()} {KEY.hex()}", "{}:1: expected a line `NAME KEY` with a key of 64 hexadecimal digits"),
        (f"a {KEY.hex()} retired {KEY.hex()}", "{}:1: expected a line `NAME KEY` with a key of 64 hexadecimal digits"),
        ("a retired", "{}:1: expected a line `NAME KEY` with a key of 64 hexadecimal digits"),
        (f"a {KEY.hex()}\nb {KEY.hex()} {PINNED[32:].hex()}\n@server {STATIC.hex()}", "{}:2: duplicate key; each client needs its own"),
    ],
)  # fmt: skip
def test_bad_files_of_a_server(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "keys", text)
    with pytest.raises(ConfigError) as caught:
        seal.read_keyring(path)
    assert str(caught.value) == message.format(path)


def test_a_retired_key_is_not_found(tmp_path: Path) -> None:
    path = written(tmp_path / "keys", f"a {KEY.hex()} retired\n* {OTHER.hex()}\na {NEW.hex()}\n")
    assert seal.find_key(path, "a") == NEW
    path = written(tmp_path / "keys", f"a {KEY.hex()} retired\n")
    with pytest.raises(ConfigError, match="no key for 'a'"):
        seal.find_key(path, "a")


def test_changes_that_are_refused_leave_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "keys", f"a {KEY.hex()}\n")
    before = path.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(path)
    for change, message in (
        (lambda: key_file.add_keys(path, ["b"], seal.public_key, replace=True), "no key for 'b'"),
        (lambda: key_file.revoke_keys(path, ["a", "b"]), "no key for 'b'"),
        (lambda: key_file.add_keys(path, ["a b"], seal.public_key), "invalid name 'a b'"),
        (lambda: key_file.add_keys(path, ["@server"], seal.public_key), "invalid name '@server'"),
        (lambda: key_file.add_keys(path, ["a#"], seal.public_key), "invalid name 'a#'"),
        (lambda: key_file.add_keys(link, ["b"], seal.public_key), "symbolic link"),
        (lambda: key_file.revoke_keys(tmp_path / "absent", ["a"]), "cannot read the key file"),
        (lambda: key_file.add_keys(tmp_path / "no" / "folder", ["a"], seal.public_key), "cannot write the key file"),
    ):
        with pytest.raises(ConfigError, match=message):
            change()
    assert (
        path.read_bytes() == before
        and link.is_symlink()
        and sorted(p.name for p in tmp_path.iterdir()) == ["keys", "link"]
    )
