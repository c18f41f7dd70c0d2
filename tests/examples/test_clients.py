"""The clients in C (under sanitizers) and JavaScript read and write what docs/PROTOCOL.md states, one datagram at a
time.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples import foreign
from tests.examples.compiled import POSIX, SANITIZED, compiled, tool
from tests.examples.foreign import COOKIE, NONCE, TOKEN, same
from wavesim_sdk.wire import codec, seal
from wavesim_sdk.wire import items as i
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire.codec import encode
from wavesim_sdk.wire.state_parts import split_readings
from wavesim_sdk.wire.vectors import VECTORS

KEY = bytes(range(32))
JOINED, OVER = 2, 4
Answer = dict[str, Any]


@pytest.fixture(scope="module", params=["c", "js"])
def program(request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What starts a client of a language."""
    if request.param == "js":
        return [tool("node"), str(root / "tests/examples/js/reader.js")]
    source, out = root / "tests/examples/c/reader.c", tmp_path_factory.mktemp("c") / "reader"
    return [compiled(source, out, POSIX, f"-I{root / 'examples/c-broker'}", *SANITIZED)]


class Client:
    """A client that executes commands line by line."""

    def __init__(self, program: list[str]) -> None:
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, line: str) -> Answer:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        found: Answer = json.loads(self.process.stdout.readline())
        return found

    def data(self, data: bytes) -> Answer:
        return self.do(f"data {data.hex()}")

    def hear(self, message: Any, sequence: int, ack: int = 0, sealed: Any = None) -> Answer:
        return self.data(encode(message, TOKEN, sequence, ack, sealed))

    def join(self) -> None:
        """A client that knows its body."""
        self.do(f"start lauv {NONCE} {COOKIE.hex()} -")
        for data in foreign.welcomed():
            answer = self.data(data)
        assert answer["ready"] and answer["dropped"] == 0


@pytest.fixture
def client(program: list[str]) -> Iterator[Client]:
    c = Client(program)
    yield c
    assert c.process.stdin is not None
    c.process.stdin.close()
    assert c.process.wait(60) == 0


def said(data: str, sealed: Any = None) -> Any:
    """The message of a client's datagram."""
    header = codec.decode_header(bytes.fromhex(data), from_client=True)
    return codec.decode_payload(bytes.fromhex(data), header, sealed)


def state_of(message: Any, step: bool = False) -> dict[str, Any]:
    return foreign.by_name(foreign.body().build_state(message, (), step))


# ------------------------------------------------------------------------------------------- the vectors of the page


def expected_events(message: Any, ready: bool) -> list[dict[str, Any]]:
    """The events that a program receives for a message."""
    match message:
        case m.StateMessage() if ready and not message.parts:
            return [{"event": "STATE", **state_of(message)}]
        case m.StepMessage() if ready:
            return [{"event": "STEP", **state_of(message)}]
        case m.Bye(text):
            return [{"event": "BYE", "text": text}]
        case m.Events(_, items):
            return [e for item in items for e in event(i.EVENTS.decode(item))]
    return []


def event(e: Any) -> list[dict[str, Any]]:
    match e:
        case i.Reception():
            whole = [e.reception_ns, e.id, e.query, e.kind, e.code, e.from_address, e.to_address]
            measured = [e.frequency, e.level, e.snr, e.range, e.azimuth, e.elevation]
            payload = None if e.payload is None else e.payload.hex()
            return [{"event": "RECEPTION", "whole": whole, "measured": measured, "payload": payload}]
        case i.SignalSent():
            values = {"request": e.request, "id": e.id, "time_ns": e.emission_ns}
            return [{"event": "SENT", **values, "of_signal": [e.frequency, e.level, e.duration]}]
        case i.RequestRefused():
            return [{"event": "REQUEST_REFUSED", "request": e.request, "text": e.text}]
        case i.Answer():
            return [{"event": "ANSWER", "request": e.request, "value": e.ok, "text": e.text}]
        case i.RunStateChanged():
            return [{"event": "RUN_STATE", "value": e.run_state, "time_ns": e.time_ns}]
        case i.BodyChanged():
            values = {"id": e.id, "value": e.present, "type": e.type, "name": e.name, "model": e.model}
            return [{"event": "BODY", **values}]
        case i.Notice():
            return [{"event": "NOTICE", "time_ns": e.time_ns, "text": e.text}]
    return []  # descriptions of the body, and what only observers get


@pytest.mark.parametrize("place", ["vectors", "alternatives"])
def test_every_vector_of_a_server_is_understood(root: Path, client: Client, place: str) -> None:
    count = 0
    for name, data, meaning in foreign.lines(root, place):
        kind, message = m.Type(meaning["type"]), foreign.message_of(meaning)
        if m.MESSAGES[kind][0]:
            continue
        count += 1
        if m.MESSAGES[kind][1]:
            client.join()
            if kind is m.Type.EVENTS or (kind is m.Type.STEP and message.last_event > 7):
                filler = [i.EVENTS.encode(i.Notice(0, "")) for _ in range(getattr(message, "last_event", 7) - 7)]
                client.hear(m.Events(8, filler), 3)
                if kind is m.Type.EVENTS:  # its numbers begin at 1: a client that has heard nothing yet
                    client.do(f"start lauv {NONCE} {COOKIE.hex()} -")
                    client.data(foreign.welcomed()[0])
        else:
            nonce = message.nonce
            client.do(f"start lauv {nonce} {'-' if kind is m.Type.CHALLENGE else COOKIE.hex()} -")
        if kind is m.Type.STATE and data[16] < 9:
            data = data[:16] + b"\x09" + data[17:]  # behind those of the joining
        answer = client.data(data)
        assert answer["result"] == 0 and answer["dropped"] == 0, name
        expected = expected_events(message, m.MESSAGES[kind][1])
        assert [e["event"] for e in answer["events"]] == [e["event"] for e in expected], name
        for found, wanted in zip(answer["events"], expected, strict=True):
            assert same({k: found[k] for k in wanted}, wanted), name
            if "motion" in found or getattr(message, "motion", None):
                assert same(found["motion"], message.motion)
            if getattr(message, "effort", None):
                assert same(found["effort"], message.effort)
        replies = [said(d) for d in answer["sent"]]
        match message:
            case m.Keepalive(number):
                assert replies == [m.KeepaliveReply(number)]
            case m.Prove(number):
                assert replies == [m.Proof(number)]
            case m.Refuse():
                assert answer["phase"] == OVER and answer["why"].endswith(message.text)
            case m.Welcome():
                assert answer["phase"] == JOINED
            case m.Challenge():
                join = said((answer["sent"] or client.do("flush 0")["sent"])[0])
                assert (join.cookie, join.nonce) == (message.cookie, message.nonce)
    assert count >= 8


def test_a_welcome_is_reported_as_it_is(client: Client) -> None:
    client.do(f"start lauv {NONCE} {COOKIE.hex()} -")
    client.hear(m.Welcome(NONCE, 3, 0, 2, 4_000_000, 1480.5, 2**53 + 1, 1, 0, 100_000_000, 0.5, 5.0, 0, 0, 33), 1)
    assert client.do("flush 0")["welcome"] == [3, 0, 2, 4_000_000, 1480.5, 2**53 + 1, 100_000_000, 33]


def test_what_it_says_is_what_the_page_says(client: Client) -> None:
    """HELLO, JOIN, REQUESTS, DONE, ACTUATE, KEEPALIVE_REPLY, ACK, LEAVE: read by the SDK."""
    client.do(f"start lauv {2**63 - 1} - -")
    (hello,) = client.do("flush 0")["sent"]
    assert said(hello).nonce == 2**63 - 1 and len(hello) // 2 >= m.MIN_HELLO
    (join,) = client.hear(m.Challenge(2**63 - 1, COOKIE), 0)["sent"] or client.do("flush 0")["sent"]
    assert said(join) == m.Join(COOKIE, 2**63 - 1, "lauv", lockstep_ns=100_000_000)
    client.join()
    assert client.do("set actuator-1 0.25")["result"] == 0
    (actuate,) = client.do("answer")["sent"]
    assert same(said(actuate).command[:2], (None, 0.25)) and said(actuate).command[2:] in ((), (None,))
    assert "unknown actuator" in client.do("set nonsense 1")["why"]
    for value in ("inf", "2e9"):
        assert "actuator-0" in client.do(f"set actuator-0 {value}")["why"]
    step = m.StepMessage(250, 10**9, 1, 0, None, (0.0,) * 3, None, (), 7)
    assert client.hear(step, 3)["events"][0]["event"] == "STEP"
    lines = ("ping 25000", "set actuator-2 -1.5", "answer")
    requests, done = (said(d) for line in lines for d in client.do(line)["sent"])
    ((ping, *more),) = ((i[:5], *i[5:]) for i in requests.items)
    assert requests.first == 1 and ping == (1, 25000.0, None, None, None) and more in ([], [None])
    assert done == m.Done(250, 1, (None, None, -1.5), None)
    assert [said(d) for d in client.hear(step, 4)["sent"]] == [done], "a repeated STEP gets the same DONE"
    assert said((client.do("leave")["sent"] or client.do("flush 0")["sent"])[0]) == m.Leave()
    assert client.hear(m.Bye("left"), 5)["phase"] == OVER


def test_it_takes_what_the_sdk_takes(client: Client) -> None:
    """Datagrams of a session that are a little wrong: taken or dropped alike."""
    good = [
        encode(message, TOKEN, 5, 0)
        for *_, message in VECTORS
        if m.MESSAGES[codec.message_type(message)][:2] == (False, True) and not isinstance(message, m.Fleet)
    ]
    client.join()
    taken = 0
    for k, data in enumerate(foreign.broken(good, 4000, 11)):
        if len(data) <= 24:
            continue
        data = data[:16] + (100 + k).to_bytes(4, "little") + data[20:]  # STATEs are taken in order only
        answer = client.data(data)
        try:
            codec.decode_payload(data, codec.decode_header(data, from_client=False))
        except codec.Dropped as dropped:
            wrong = dropped.reason != "body" or not foreign.passed_over(data)
            assert answer["result"] == -1 or not wrong, data.hex()
        else:
            assert answer["result"] == 0, data.hex()
            taken += 1
        if answer["phase"] == OVER:
            client.join()
    assert taken > 400


# ----------------------------------------------------------------------------------------------- states of many parts


def many() -> tuple[m.StateMessage, list[m.SensorsMessage]]:
    """A state of more values than fit a datagram."""
    readings = [
        m.Reading(s.number, 10**9, 0, tuple(float(k) for k in range(count)))
        for s, count in zip(LONG, (4, 600), strict=True)
    ]
    state = m.StateMessage(250, 10**9, 1, 0, (0.0,) * 16, (1.0,), None, ())
    first, parts = split_readings(state, readings)
    return m.StateMessage(250, 10**9, 1, len(parts), (0.0,) * 16, (1.0,), None, tuple(first)), parts


LONG = (foreign.sensor(0, "ctd", values=4), foreign.sensor(1, "sonar", range=600))


@pytest.fixture
def long_client(client: Client) -> Client:
    client.do(f"start lauv {NONCE} {COOKIE.hex()} -")
    client.hear(m.Welcome(NONCE, 3, 0, 0, 4_000_000, 1500.0, 0, 1, 0, 0, 0.5, 5.0, 0, 2, 0), 1)
    assert client.hear(m.Events(1, [i.EVENTS.encode(s) for s in LONG]), 2)["ready"]
    return client


@pytest.mark.parametrize("order", [range(99), range(99, -1, -1)], ids=["in-order", "backwards"])
def test_a_state_of_many_datagrams_comes_once_and_whole(long_client: Client, order: range) -> None:
    state, parts = many()
    assert len(parts) >= 5
    messages = [state, *parts]
    events = []
    for k in sorted(range(len(messages)), key=lambda k: order[k]):
        for _ in range(2):  # each of them twice; of a state the sequence forbids that
            events += long_client.hear(messages[k], 20 if messages[k] is state else 30 + k)["events"]
    (event,) = events
    assert event["event"] == "STATE" and event["complete"] == 1
    assert event["sensors"]["sonar"]["range"] == list(range(600)) and event["sensors"]["ctd"]["values"] == [0, 1, 2, 3]


def test_a_newer_state_ends_the_waiting_for_a_lost_part(long_client: Client) -> None:
    state, parts = many()
    for k, message in enumerate([state, *parts[:-1]]):
        assert long_client.hear(message, 10 + k)["events"] == []
    newer = m.StateMessage(251, 2 * 10**9, 1, 1, None, (1.0,), None, ())
    (event,) = long_client.hear(newer, 30)["events"]
    assert event["tick"] == 250 and event["complete"] == 0
    lost = event["sensors"]["sonar"]["range"].count(None)
    assert lost == len(parts[-1].sensors[0].values) and event["sensors"]["ctd"]["values"] == [0, 1, 2, 3]
    last = m.SensorsMessage(251, 0, (m.Reading(0, 2 * 10**9, 0, (5.0, 6.0, 7.0, 8.0)),))
    (event,) = long_client.hear(last, 31)["events"]
    assert event["tick"] == 251 and event["complete"] == 1 and event["sensors"].keys() == {"ctd"}


def test_a_step_waits_for_all_of_it(long_client: Client) -> None:
    """Its parts, and the events that come before it; a newer state does not end the waiting."""
    state, parts = many()
    step = m.StepMessage(250, 10**9, 1, len(parts), None, (1.0,), None, state.sensors, 3)
    heard = long_client.hear(step, 10)["events"]
    for k, message in enumerate(parts[:-1]):
        heard += long_client.hear(message, 11 + k)["events"]
    assert heard == []
    heard += long_client.hear(step, 20)["events"]  # repeated: the parts that came are kept
    heard += long_client.hear(parts[-1], 21)["events"]
    assert heard == [], "an event is missing"
    events = long_client.hear(m.Events(3, [i.EVENTS.encode(i.Notice(5, "now"))]), 22)["events"]
    assert [e["event"] for e in events] == ["NOTICE", "STEP"]
    assert events[1]["sensors"]["sonar"]["range"] == list(range(600))


# ---------------------------------------------------------------------------------------- numbers, repeats, malformed


def test_events_come_once_and_in_order(client: Client) -> None:
    client.join()
    notices = [i.EVENTS.encode(i.Notice(k, "")) for k in range(1, 10)]

    def heard(first: int, *which: int) -> list[int]:
        return [
            e["time_ns"] for e in client.hear(m.Events(first, [notices[k - 1] for k in which]), 50 + first)["events"]
        ]

    assert heard(8, 1, 2) == [1, 2]
    assert heard(12, 5) == [], "there is a gap"
    assert heard(9, 2, 3, 4) == [3, 4] and heard(8, 1, 2) == []
    (ack,) = client.do("flush 0.05")["sent"]
    assert said(ack) == m.Ack() and codec.decode_header(bytes.fromhex(ack), True).ack == 11


def test_malformed_events_and_those_of_the_future_are_passed_over(client: Client) -> None:
    client.join()
    strange: list[Any] = [[99, 1, [2, [3]]], [4, "running"], [], "no list", [8, 5, "a\nb"], [1, 2**64 - 1]]
    good = i.EVENTS.encode(i.Notice(7, "still here"))
    answer = client.hear(m.Events(8, [*strange, good]), 3)
    assert [e["text"] for e in answer["events"]] == ["still here"] and answer["result"] == 0
    (ack,) = client.do("flush 0.05")["sent"]
    assert codec.decode_header(bytes.fromhex(ack), True).ack == 14


def test_requests_are_repeated_by_the_round_trip(client: Client) -> None:
    """Not acknowledged: again after 0.2 s, then twice as late each time; acknowledged: never again."""
    client.join()
    when, now = [], 0.0
    for line in ("ping 1", *["flush 0.01"] * 300):
        sent = [said(d) for d in client.do(line)["sent"]]
        now += 0.01
        if any(isinstance(s, m.Requests) for s in sent):
            when.append(now)
    gaps = [b - a for a, b in itertools.pairwise(when)]
    assert gaps[:3] == pytest.approx([0.2, 0.4, 0.8], abs=0.03)
    client.hear(m.Keepalive(1), 60, ack=1)
    assert not any(isinstance(said(d), m.Requests) for _ in range(30) for d in client.do("flush 0.1")["sent"])


def test_a_silent_server_receives_a_keepalive(client: Client) -> None:
    client.join()
    sent = [d for _ in range(20) for d in client.do("flush 0.1")["sent"]]
    assert [said(d) for d in sent].count(m.Ack()) == 4, "once in each period of 0.5 s"
    assert all(34 <= len(bytes.fromhex(d)) <= 36 for d in sent[1:]), "as long as a PROVE, so that a server may answer"


def test_what_anybody_can_send_is_no_word_of_the_server(client: Client) -> None:
    """A CHALLENGE or a REFUSE in a session is neither a sign of life nor an acknowledgement; the same of a KEEPALIVE is both."""
    client.join()
    client.do("ping 1")
    kinds = []
    for _ in range(40):
        for message in (m.Challenge(NONCE, COOKIE), m.Refuse(NONCE, 1, "")):
            client.data(encode(message, 0, 0, 1))
        kinds += [type(said(d)) for d in client.do("flush 0.1")["sent"]]
    assert kinds.count(m.Requests) >= 4, "its request is repeated"
    client.hear(m.Keepalive(0), 60, ack=1)
    assert client.do("flush 0")["phase"] == JOINED
    quiet = []
    for _ in range(20):
        client.data(encode(m.Challenge(NONCE, COOKIE), 0, 0, 0))
        quiet += [type(said(d)) for d in client.do("flush 0.1")["sent"] if type(said(d)) is not m.KeepaliveReply]
    assert quiet and set(quiet) == {m.Ack}, "it says that it is there"


def test_leaving_is_repeated_some_times(client: Client) -> None:
    client.join()
    sent = [said(d) for line in ("leave", *["flush 0.05"] * 100) for d in client.do(line)["sent"]]
    assert sent == [m.Leave()] * 6 and client.do("flush 0")["phase"] == OVER


def test_an_old_cookie_begins_again(client: Client) -> None:
    client.do(f"start lauv {NONCE} {COOKIE.hex()} -")
    again = client.hear(m.Refuse(NONCE, m.Refusal.COOKIE, "too old"), 0)["sent"] or client.do("flush 0")["sent"]
    assert isinstance(said(again[0]), m.Hello)


# ---------------------------------------------------------------------------------------------------------------- keys


STATIC = bytes(range(96, 128))  # private key of the server, as in the vectors
PINNED = KEY + seal.public_key(STATIC)
OWN = seal.EphemeralKey(bytes(range(32, 64)))
both_keys = pytest.mark.parametrize(
    ("key", "suffix"), [(KEY, ""), (PINNED, " with the server's public key")], ids=["any server", "one server"]
)


def sealed_facts(root: Path) -> dict[str, str]:
    page = (root / "docs/PROTOCOL.md").read_text().split("<!-- sealed:begin -->")[1].split("<!-- sealed:end -->")[0]
    found = {}
    for line in page.splitlines():
        name, _, value = line.partition(" = " if " = " in line else ":")
        found[name.strip()] = value.strip()
    return found


def server_side(key: bytes, theirs: seal.EphemeralKey | None = None) -> seal.SessionSeal:
    """The server's side of a session with a client whose exchange is OWN."""
    ring = seal.Keyring([seal.KeyHolder("lauv", key)], STATIC)
    return ring.exchange(ring.holders[0], OWN.public, theirs).session_seal(COOKIE, NONCE, TOKEN)


def start_sealed(client: Client, key: bytes, ticket: int = 0) -> None:
    client.do(f"start lauv {NONCE} {COOKIE.hex()} {key.hex()} {OWN._private.private_bytes_raw().hex()} {ticket}")


@both_keys
def test_sealed_vectors(root: Path, client: Client, key: bytes, suffix: str) -> None:
    facts = sealed_facts(root)
    assert facts["ephemeral private key of the client"] == OWN._private.private_bytes_raw().hex()
    assert facts["private key of the server"] == STATIC.hex()
    start_sealed(client, key)
    refused = client.data(bytes.fromhex(facts[f"REFUSE{suffix}"]))
    assert refused["phase"] == OVER and "'lauv' is in use" in refused["why"]
    start_sealed(client, key)
    welcomed = client.data(bytes.fromhex(facts[f"WELCOME{suffix}"]))
    assert welcomed["phase"] == JOINED and welcomed["ticket"] == int(facts[f"ticket of the session{suffix}"])
    answer = client.data(bytes.fromhex(facts[f"KEEPALIVE{suffix}"]))
    server = server_side(key, seal.EphemeralKey(bytes.fromhex(facts["ephemeral private key of the server"])))
    assert [said(d, server) for d in answer["sent"]] == [m.KeepaliveReply(12)]
    assert client.data(bytes.fromhex(facts[f"KEEPALIVE{suffix}"]))["result"] == -1, "it was here before"
    start_sealed(client, key, welcomed["ticket"])
    again = bytes.fromhex(facts[f"JOIN that resumes this session{suffix}"])
    proof = codec.decode_payload(again, codec.decode_header(again, True), seal.HandshakeSeal(key, seal.JOIN))
    (join,) = client.do("flush 0")["sent"]
    assert said(join, seal.HandshakeSeal(key, seal.JOIN)).previous == proof.previous not in (0, welcomed["ticket"])


@both_keys
def test_a_sealed_session(client: Client, key: bytes, suffix: str) -> None:
    """JOIN opens with the key only; nothing in the clear is taken, nor what another key or another server sealed."""
    start_sealed(client, key)
    (join,) = client.do("flush 0")["sent"]
    header = codec.decode_header(bytes.fromhex(join), True)
    assert header.sealed and header.token == seal.key_id(key)
    assert said(join, seal.HandshakeSeal(key, seal.JOIN)).name == "lauv"
    assert seal.public_of_join(bytes.fromhex(join)) == OWN.public
    with pytest.raises(codec.Dropped, match="seal"):
        said(join, seal.HandshakeSeal(bytes(32), seal.JOIN))
    assert client.data(foreign.welcomed()[0])["result"] == -1
    assert client.data(foreign.welcomed(server_side(bytes(32)))[0])["result"] == -1
    static = b"" if key == KEY else bytes(32)
    impostor = seal.ServerExchange(key, OWN.public, static, seal.EphemeralKey()).session_seal(COOKIE, NONCE, TOKEN)
    assert (client.data(foreign.welcomed(impostor)[0])["result"] == -1) == (key != KEY), "it has the key, and no more"
    start_sealed(client, key)
    server = server_side(key)
    good = foreign.welcomed(server)
    for public in (bytes(32), good[0][25:57]):
        assert client.data(good[0][:24] + public + good[0][56:])["result"] == -1, "another public key"
    assert client.data(good[0][:50])["result"] == -1, "cut off"
    for data in good:
        answer = client.data(data)
    assert answer["ready"] and answer["ticket"] == server.ticket
    dropped = answer["dropped"]
    again = client.data(foreign.welcomed(server)[0])
    assert (again["result"], again["dropped"]) == (0, dropped), "a repeated WELCOME is ignored and not an error"
    assert client.hear(m.Keepalive(3), 3)["result"] == -1, "in the clear"
    sent = client.hear(m.Keepalive(3), 4, 0, server)["sent"]
    assert [said(d, server) for d in sent] == [m.KeepaliveReply(3)]
    spoiled = bytearray(encode(m.Bye("spoiled"), TOKEN, 5, 0, server))
    spoiled[30] ^= 1
    assert client.data(bytes(spoiled))["result"] == -1 and client.do("flush 0")["phase"] == JOINED


def test_each_handshake_has_its_own_key_pair(client: Client) -> None:
    """Also after a refused cookie, with which the client begins again."""
    publics = set()
    for _ in range(2):
        client.do(f"start lauv {NONCE} {COOKIE.hex()} {KEY.hex()}")
        (join,) = client.do("flush 0")["sent"]
        (again,) = client.do("flush 0.3")["sent"]
        assert seal.public_of_join(bytes.fromhex(join)) == seal.public_of_join(bytes.fromhex(again))
        publics.add(seal.public_of_join(bytes.fromhex(join)))
        refuse = codec.encode(m.Refuse(NONCE, m.Refusal.COOKIE, "too old"), seal=seal.HandshakeSeal(KEY, seal.REFUSE))
        (hello,) = client.data(refuse)["sent"] or client.do("flush 0.3")["sent"]
        renewed = codec.encode(m.Challenge(said(hello).nonce, COOKIE))
        (join,) = client.data(renewed)["sent"] or client.do("flush 0.3")["sent"]
        publics.add(seal.public_of_join(bytes.fromhex(join)))
    assert len(publics) == 4


def test_a_body_of_too_much_is_refused(client: Client) -> None:
    """C has fixed room, and says so."""
    if not isinstance(client.process.args, list) or len(client.process.args) > 1:
        return
    client.do(f"start lauv {NONCE} {COOKIE.hex()} -")
    client.hear(m.Welcome(NONCE, 3, 0, 0, 4_000_000, 1500.0, 0, 1, 0, 0, 0.5, 5.0, 0, 1, 0), 1)
    big = foreign.sensor(0, "huge", a=4096, b=1)
    answer = client.hear(m.Events(1, [i.EVENTS.encode(big)]), 2)
    assert answer["phase"] == OVER and "define WS_VALUES" in answer["why"] and answer["why"].endswith("huge")
