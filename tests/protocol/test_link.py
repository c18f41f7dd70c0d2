"""A session over a blocking socket: how long it waits, what it sends and receives meanwhile, how it begins and ends."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wavesim_sdk.errors import BrokerError, Refused, SessionLost
from wavesim_sdk.testing import FakeServer
from wavesim_sdk.wire import link as module
from wavesim_sdk.wire import session
from wavesim_sdk.wire.client import JoinRefused, Phase, SessionClosed
from wavesim_sdk.wire.items import Notice
from wavesim_sdk.wire.link import (
    FAREWELL_S,
    KEYS_VARIABLE,
    SessionLink,
    is_silent,
    local_address,
    make_session,
    no_answer_error,
    raise_if_ended,
)
from wavesim_sdk.wire.messages import MAX_DATAGRAM, Join, Refusal, Welcome
from wavesim_sdk.wire.session import Admission, Session

pytestmark = [pytest.mark.timeout(20)]
SERVER = ("127.0.0.1", 9750)
KEY = bytes(range(32))


class Clock:
    """Time that passes where somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Wire:
    """A socket. Each of ``comes`` is what a call of ``recv`` meets: a datagram, an error, or None = nothing in time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.comes: list[Any] = []
        self.limit: float | None = None  #: its own
        self.limits: list[float] = []  #: each time that it is set
        self.waits: list[float] = []  #: how long each call of recv may wait
        self.sent: list[bytes] = []
        self.fails: dict[bytes, Exception] = {}
        self.server: Any = None
        self.blocks = False
        self.closed = 0

    def connect(self, server: Any) -> None:
        self.server = server

    def setblocking(self, blocks: bool) -> None:
        self.blocks = blocks is True

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_RCVTIMEO)
        seconds, microseconds = struct.unpack("@ll", value)
        self.limit = seconds + microseconds / 1e6
        self.limits.append(self.limit)

    def recv(self, size: int, flags: int) -> bytes:
        assert size > MAX_DATAGRAM, "one that is too large must be seen to be"
        assert flags == socket.MSG_DONTWAIT or (flags == 0 and self.limit), "it would wait for ever"
        self.waits.append(0.0 if flags else self.limit or 0.0)
        found = self.comes.pop(0) if self.comes else None
        if found is None:
            self.clock.now += self.waits[-1] or 1e-6
            raise BlockingIOError
        self.clock.now += 0.001
        if isinstance(found, Exception):
            raise found
        return bytes(found)

    def send(self, data: bytes) -> None:
        if data in self.fails:
            raise self.fails[data]
        self.sent.append(data)

    def close(self) -> None:
        self.closed += 1


class Script:
    """A session that says and hears what the test wants."""

    def __init__(self) -> None:
        self.welcome: Welcome | None = None
        self.phase, self.key, self.last_heard = Phase.HELLO, b"", 100.0
        self.timer: float | None = None
        self.says: list[bytes] = []
        self.hears: dict[bytes, list[Any]] = {}  #: datagram -> events
        self.heard: list[tuple[bytes, float]] = []
        self.asked: list[float] = []  #: when for datagrams
        self.left = 0

    def next_timer(self) -> float | None:
        return self.timer

    def outgoing(self, now: float) -> list[bytes]:
        self.asked.append(now)
        said, self.says = self.says, []
        return said

    def receive(self, data: bytes, now: float) -> list[Any]:
        self.heard.append((data, now))
        events = self.hears.get(data, [])
        self.welcome = next((e for e in events if isinstance(e, Welcome)), self.welcome)
        return events

    def leave(self) -> None:
        self.left += 1
        self.phase = Phase.LEAVING


class Stage:
    """A link of which all else is played."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.script = Clock(), Script()
        self.wire = Wire(self.clock)
        self.opened: list[Any] = []

        def opens(*address: Any) -> Any:
            self.opened.append(address)
            return self.wire

        monkeypatch.setattr(module, "time", self.clock)
        monkeypatch.setattr(module, "open_socket", opens)
        self.link = SessionLink(Join(name="a"), SERVER)
        played: Any = self.script
        self.link.session = played

    def joined(self) -> Stage:
        """The same after a welcome."""
        self.wire.comes, self.script.hears = [b"welcome"], {b"welcome": [welcome()]}
        self.link.connect(1.0)
        self.wire.waits.clear()
        self.wire.limits.clear()
        self.script.heard.clear()
        self.script.asked.clear()
        return self


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def welcome(timeout: float = 3.0) -> Welcome:
    return Welcome(1, 3, 0, 0, 4_000_000, 1500.0, 0, 0, 0, 0, 0.5, timeout, 0, 0, 0)


# -- what it is made of ----------------------------------------------------------------------------------------


def test_a_key_is_the_one_given_or_that_of_its_name_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEYS_VARIABLE, raising=False)
    assert make_session(Join(name="a"), None).key is None
    assert make_session(Join(name="a"), KEY).key == KEY
    file = tmp_path / "keys"
    file.write_text(f"a {'aa' * 32}\n* {'bb' * 32}\n")
    file.chmod(0o600)
    monkeypatch.setenv(KEYS_VARIABLE, str(file))
    assert make_session(Join(name="a"), None).key == b"\xaa" * 32
    assert make_session(Join(name="b"), None).key == b"\xbb" * 32
    assert make_session(Join(name="a"), KEY).key == KEY
    made = SessionLink(Join(name="b"), SERVER, KEY)
    assert made.session.key == KEY and made.session.join.name == "b" and made.server == SERVER


def test_a_join_that_cannot_be_sent_is_refused_here() -> None:
    with pytest.raises(BrokerError, match=r"^invalid join: name: the text has 40 bytes"):
        make_session(Join(name="x" * 40), None)


@pytest.mark.parametrize(
    ("server", "own"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.9.9.9", "127.0.0.1"),
        ("10.0.0.7", "0.0.0.0"),
        ("::1", "::1"),
        ("fd00::7", "::"),
    ],
)
def test_it_listens_no_wider_than_it_must(server: str, own: str) -> None:
    assert local_address(server) == own


def test_a_server_is_named_by_its_address() -> None:
    with pytest.raises(BrokerError, match=r"^'localhost' is not an IP address$"):
        local_address("localhost")


def test_why_a_server_that_should_be_there_is_not() -> None:
    for phase, key, text in (
        (Phase.HELLO, None, "no server answers at 127.0.0.1:9750; is one running there? (wavesim serve CONFIG)"),
        (Phase.JOINED, KEY, "no server answers at 127.0.0.1:9750; is one running there? (wavesim serve CONFIG)"),
        (Phase.JOINING, KEY, "the server at 127.0.0.1:9750 does not answer this join; check that it has this key"),
        (
            Phase.JOINING,
            None,
            "the server at 127.0.0.1:9750 does not answer this join; it may require a key (WAVESIM_KEYS=FILE)",
        ),
    ):
        client_session = make_session(Join(name="a"), key)
        client_session.phase = phase
        assert str(no_answer_error(SERVER, client_session)) == text


def test_an_event_that_ends_the_session_is_an_error() -> None:
    raise_if_ended(Notice(1, "all is well"))
    with pytest.raises(Refused, match=r"^the server refused the join: no room$"):
        raise_if_ended(JoinRefused(Refusal.FULL, "no room"))
    with pytest.raises(SessionLost, match=r"^the server ended the session: enough$"):
        raise_if_ended(SessionClosed("enough"))


@pytest.mark.parametrize(("timeout", "after"), [(3.0, 6.0), (1.0, 2.0), (0.25, 2.0)])
def test_silence_is_twice_the_keep_alive_time_and_two_seconds_at_least(timeout: float, after: float) -> None:
    made = make_session(Join(name="a"), None)
    made.last_heard = 100.0
    assert not is_silent(made, 1000.0), "nobody has promised anything yet"
    made.welcome = welcome(timeout)
    assert not is_silent(made, 100.0 + after) and is_silent(made, 100.001 + after)


# -- waiting ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wait", "limit"),
    [
        (9.0, 0.5),
        (0.5, 0.5),
        (0.49, 0.2),
        (0.19, 0.1),
        (0.1, 0.1),
        (0.07, 0.05),
        (0.03, 0.02),
        (0.015, 0.01),
        (0.009, 0.005),
        (0.004, 0.002),
        (0.0015, 0.001),
        (0.0009, 0.0),
        (0.0, 0.0),
        (-1.0, 0.0),
    ],
)
def test_a_turn_waits_about_as_long_as_it_may(stage: Stage, wait: float, limit: float) -> None:
    stage.joined()
    assert stage.link._receive(stage.wire, wait) == b""  # type: ignore[arg-type]  # the wire plays a socket
    assert stage.wire.waits == [pytest.approx(limit)]


def test_the_time_limit_of_the_socket_is_set_when_it_changes(stage: Stage) -> None:
    wire: Any = stage.wire
    assert wire.limit is None
    for wait in (0.3, 0.25, 0.6, 0.0, 0.6, 0.2, 0.2):
        stage.link._receive(wire, wait)
    assert wire.waits == [0.2, 0.2, 0.5, 0.0, 0.5, 0.2, 0.2] and wire.limits == [0.2, 0.5, 0.2]


def test_a_port_that_nobody_has_is_asked_again_after_a_moment(stage: Stage) -> None:
    stage.joined()
    stage.wire.comes = [ConnectionRefusedError(), b"there"]
    assert stage.link.poll(stage.clock.now + 1.0) == [] and not stage.script.heard
    assert len(stage.clock.slept) == 1 and 0.0 < stage.clock.slept[0] <= 0.1, "it does not spin"
    stage.link.poll(stage.clock.now + 1.0)
    assert [data for data, _ in stage.script.heard] == [b"there"]


@pytest.mark.parametrize(("timer", "wait"), [(None, 0.5), (0.15, 0.1), (7.0, 0.5), (-1.0, 0.0), (0.0, 0.0)])
def test_a_turn_ends_at_its_limit_or_at_the_timer_of_the_session(
    stage: Stage, timer: float | None, wait: float
) -> None:
    stage.joined()
    now = stage.clock.now
    stage.script.timer = None if timer is None else now + timer
    stage.script.says = [b"mine"]
    assert stage.link.poll(now + 0.6) == []
    assert stage.wire.waits == [wait] and stage.script.heard == []
    assert stage.wire.sent == [b"mine"] and stage.script.asked == [now], "what is due goes before it waits"


def test_what_comes_in_a_turn_is_taken_with_its_time(stage: Stage) -> None:
    stage.joined()
    stage.wire.comes = [b"news", b"worse"]
    stage.script.hears = {
        b"news": [Notice(1, "a"), Notice(2, "b")],
        b"worse": [Notice(3, "c"), SessionClosed("enough")],
    }
    begun = stage.clock.now
    assert stage.link.poll(begun + 1.0) == [Notice(1, "a"), Notice(2, "b")]
    assert stage.script.heard == [(b"news", begun + 0.001)]
    with pytest.raises(SessionLost, match="enough"):
        stage.link.poll(stage.clock.now + 1.0)


def test_what_cannot_be_sent_does_not_hold_up_the_rest(stage: Stage) -> None:
    stage.joined()
    stage.wire.fails = {b"a": ConnectionRefusedError(), b"c": BlockingIOError()}
    stage.script.says = [b"a", b"b", b"c", b"d"]
    stage.link.flush(123.0)
    assert stage.wire.sent == [b"b", b"d"] and stage.script.asked == [123.0]


def test_a_server_that_is_silent_for_too_long_is_given_up(stage: Stage) -> None:
    stage.joined()
    stage.script.phase = Phase.JOINED
    stage.clock.now = 106.0
    stage.link.check_alive()
    stage.clock.now = 106.5
    with pytest.raises(SessionLost, match=r"no server answers at 127\.0\.0\.1:9750"):
        stage.link.check_alive()


# -- the beginning -------------------------------------------------------------------------------------------------


def test_what_came_before_the_welcome_and_with_it_is_reported_first(stage: Stage) -> None:
    answer = welcome()
    stage.wire.comes = [b"early", None, b"both", b"later"]
    stage.script.hears = {
        b"early": [Notice(1, "a")],
        b"both": [Notice(2, "b"), answer, Notice(3, "c")],
        b"later": [Notice(4, "d")],
    }
    assert stage.link.connect(5.0) is answer
    assert stage.opened == [("127.0.0.1", 0)] and stage.wire.server == SERVER and stage.wire.blocks
    asked = len(stage.wire.waits)
    assert stage.link.poll(200.0) == [Notice(1, "a"), Notice(2, "b"), Notice(3, "c")]
    assert len(stage.wire.waits) == asked, "without waiting"
    assert stage.link.poll(200.0) == [Notice(4, "d")]


def test_joining_is_given_up_at_its_limit(stage: Stage) -> None:
    stage.script.phase = Phase.JOINING
    with pytest.raises(SessionLost, match=r"127\.0\.0\.1:9750 does not answer this join; it may require a key"):
        stage.link.connect(1.5)
    assert sum(stage.wire.waits[:-2]) <= 1.5 <= stage.clock.now - 100.0 - FAREWELL_S + 0.01
    assert (stage.wire.closed, stage.script.left) == (1, 1)
    with pytest.raises(
        BrokerError, match=r"not connected: call connect\(\) first; a closed connection cannot be used again"
    ):
        stage.link.poll(200.0)


def test_whatever_breaks_a_joining_off_closes_the_socket(stage: Stage) -> None:
    stage.wire.comes = [b"news"]
    stage.script.receive = lambda data, now: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        stage.link.connect(5.0)
    assert (stage.wire.closed, stage.script.left) == (1, 1)


# -- the end -------------------------------------------------------------------------------------------------------


def test_leaving_waits_for_its_confirmation(stage: Stage) -> None:
    stage.joined()
    stage.wire.comes = [None, b"bye"]

    def hears(data: bytes, now: float) -> list[Any]:
        stage.script.phase = Phase.CLOSED
        return []

    stage.script.receive = hears  # type: ignore[method-assign]
    stage.script.timer = stage.clock.now + 0.1
    begun = stage.clock.now
    stage.link.close()
    assert len(stage.wire.waits) == 2 and stage.clock.now < begun + FAREWELL_S
    assert (stage.wire.closed, stage.script.left) == (1, 1)
    stage.link.close()
    assert (stage.wire.closed, stage.script.left) == (1, 1), "once"


def test_leaving_waits_for_a_moment_only(stage: Stage) -> None:
    stage.joined()
    begun = stage.clock.now
    stage.link.close()
    assert FAREWELL_S <= stage.clock.now - begun < FAREWELL_S + 0.1 and stage.wire.closed == 1


@pytest.mark.parametrize("error", [OSError("the network is down"), SessionLost("it ended")])
def test_an_error_while_leaving_is_none(stage: Stage, error: Exception) -> None:
    stage.joined()
    stage.wire.comes = [error]
    stage.link.close()
    assert stage.wire.closed == 1 and len(stage.wire.waits) == 1


def test_without_a_connection_there_is_nothing_to_leave(stage: Stage) -> None:
    stage.link.close()
    assert stage.script.left == 0
    with pytest.raises(BrokerError, match="not connected"):
        stage.link.flush(1.0)


# -- over a real socket ----------------------------------------------------------------------------------------------


def test_a_session_over_loopback() -> None:
    with FakeServer() as server:
        link = SessionLink(Join(name="a"), server.address)
        assert link.connect(5.0).id == 3
        server.event("a", Notice(7, "look"))
        found: list[Any] = []
        limit = time.monotonic() + 60.0
        while not any(isinstance(e, Notice) for e in found) and time.monotonic() < limit:
            found += link.poll(limit)
        assert found[-1] == Notice(7, "look")
        link.check_alive()
        link.close()
        assert [type(h).__name__ for h in server.server_events] == ["Joined", "SessionGone"]


def test_a_turn_waits_in_the_system() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        link = SessionLink(Join(name="a"), mute.getsockname())
        begun = time.monotonic()
        with pytest.raises(SessionLost, match="no server answers"):
            link.connect(0.1)
        assert time.monotonic() - begun >= 0.1
        hello, address = mute.recvfrom(2048)
        assert hello[:4] == b"WVSM" and address[0] == "127.0.0.1"


def test_a_refusal_is_reported_at_once() -> None:
    def refuse(join: Join, old: Session | None) -> Admission:
        raise session.NotAdmitted(Refusal.UNKNOWN_NAME, "there is no such body")

    refusing: Callable[..., Any] = refuse
    with FakeServer(refusing) as server:
        link = SessionLink(Join(name="a"), server.address)
        with pytest.raises(Refused, match="the server refused the join: there is no such body"):
            link.connect(5.0)
        with pytest.raises(BrokerError, match="not connected"):
            link.poll(0.0)
