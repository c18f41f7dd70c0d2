"""Conformance checker for servers: a scripted client tests whether a server follows docs/PROTOCOL.md.

    wavesim conformance --at 127.0.0.1:9750 --body lauv

The server must not require keys. The body must be in its configuration and have no pilot during the check. The checker sends
no actuator commands.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgpack

from wavesim_conformance.broker import ConformanceChecker, Finding
from wavesim_sdk.wire import codec
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire.client import RETRY_S
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.items import EVENTS, REQUESTS, CommandAnswer, Subscribe
from wavesim_sdk.wire.messages import HEADER_BYTES, MAX_DATAGRAM, MIN_HELLO, Join, Refusal, Role, Type
from wavesim_sdk.wire.schema import Malformed, schema_of

Address = tuple[str, int]
ANSWER_S = 2.0
QUIET_S = 0.3
NONCE = 2**63 + 5  #: a number that neither a signed 64-bit integer nor a double can represent
HELLO = m.Hello(NONCE, bytes(40))
MALFORMED_BODIES = (
    b"\x91" * 1170,
    (b"\xdc\x04\x80" * 392)[:1170],
    b"\xdd\xff\xff\xff\xff",
    b"\xc1",
    b"\x91\xdb\xff\xff\xff\xff",
    b"",
)


class ClientSocket:
    """UDP socket of a scripted client."""

    def __init__(self, server: Address) -> None:
        self.socket = socket.socket(socket.AF_INET6 if ":" in server[0] else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(server)
        self.sequence = 0

    def send(self, message: Any, token: int = 0, ack: int = 0) -> None:
        """Send a valid message."""
        self.sequence += 1
        self.send_raw(codec.encode(message, token, self.sequence, ack))

    def send_values(self, kind: Type, values: Sequence[Any], token: int = 0, ack: int = 0) -> None:
        """Send a message with arbitrary values."""
        self.sequence += 1
        header = codec._HEADER.pack(m.MAGIC, m.VERSION, kind, 0, token, self.sequence, ack)
        self.send_raw(header + msgpack.packb(list(values)))

    def send_raw(self, data: bytes) -> None:
        """Send arbitrary bytes."""
        with suppress(ConnectionRefusedError):
            self.socket.send(data)

    def receive(self, seconds: float) -> tuple[bytes, codec.Header, Any] | None:
        """Return the next valid datagram, or None after ``seconds``."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0.0:
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(2048)
                header = codec.decode_header(data, from_client=False)
                return data, header, codec.decode_payload(data, header)
            except TimeoutError:
                return None
            except (ConnectionRefusedError, Dropped):
                continue
        return None

    def wait(self, *kinds: type[Any], seconds: float = ANSWER_S) -> tuple[bytes, codec.Header, Any] | None:
        """Return the next message of one of these types, or None after ``seconds``."""
        limit = time.monotonic() + seconds
        while (got := self.receive(limit - time.monotonic())) is not None:
            if isinstance(got[2], kinds):
                return got
        return None

    def request(
        self, message: Any, *kinds: type[Any], token: int = 0, ack: int = 0
    ) -> tuple[bytes, codec.Header, Any] | None:
        """Send a message repeatedly until an answer of one of these types arrives; return the answer, or None after
        ANSWER_S.
        """
        limit = time.monotonic() + ANSWER_S
        while time.monotonic() < limit:
            self.send(message, token, ack)
            if (got := self.wait(*kinds, seconds=RETRY_S)) is not None:
                return got
        return None


class ServerChecker(ConformanceChecker):
    """Checker for a running server."""

    def __init__(self, server: Address, name: str, say: Callable[[Finding], None] = lambda f: None) -> None:
        super().__init__(say)
        self.server, self.name = server, name
        self.token = self.received = 0
        self.events: dict[int, Any] = {}

    def run(self) -> list[Finding]:
        """Check all rules and return the findings in order; stop at a failure that the other rules depend on."""
        self.port, self.other = ClientSocket(self.server), ClientSocket(self.server)
        try:
            if self._hello() and self._refusals() and self._welcome():
                self._described()
                self._second()
                self._requests()
                self._keepalive()
                self._rubbish()
                self._migration()
                self._resume()
                self._leave()
        finally:
            if self.token:
                self.port.send(m.Leave(), self.token)
            self.port.socket.close()
            self.other.socket.close()
        return self.findings

    def _hello(self) -> bool:
        first = ClientSocket(self.server)  # separate, so that a late answer does not reach the following checks
        try:
            if first.request(HELLO, m.Challenge) is None:
                reason = (
                    f"no answer from {self.server[0]}:{self.server[1]} within 2 s; check that a server is running there"
                )
                return self.record("HELLO is answered with CHALLENGE", False, reason)
        finally:
            first.socket.close()
        self.port.send_raw(codec.encode(m.Hello(NONCE, b""), 0, 1).ljust(MIN_HELLO - 1, b"\0"))
        self.record(
            "a HELLO of less than 64 bytes is not answered",
            self.port.receive(QUIET_S) is None,
            "the server answered the short HELLO",
        )
        nonce = msgpack.packb([NONCE, bytes(60)])
        self.port.send_raw(b"WVSM\x01\x01" + bytes(18) + nonce)
        try:
            self.port.socket.settimeout(ANSWER_S)
            old = self.port.socket.recv(2048)
            is_version_1 = old[:6] == b"WVSM\x01\x05" and msgpack.unpackb(old[HEADER_BYTES:])[:2] == [NONCE, 6]
        except (TimeoutError, ConnectionRefusedError, ValueError):
            is_version_1 = False
        self.record(
            "a HELLO in version 1 is refused in the format of version 1",
            is_version_1,
            "the server did not answer with this refusal",
        )
        got = self.port.request(HELLO, m.Challenge)
        if not self.record("HELLO is answered with CHALLENGE", got is not None, "no answer within 2 s") or got is None:
            return False
        data, header, challenge = got
        self.record(
            "CHALLENGE is no longer than the HELLO", len(data) <= len(codec.encode(HELLO)), f"{len(data)} bytes"
        )
        self.record("CHALLENGE returns the nonce", challenge.nonce == NONCE, f"{challenge.nonce}")
        self.record(
            "token and sequence are 0 outside a session", (header.token, header.sequence) == (0, 0), f"{header}"
        )
        self.join = Join(challenge.cookie, NONCE, self.name)
        return True

    def _refused(self, port: ClientSocket, values: Sequence[Any], code: Refusal) -> tuple[bool, str]:
        answer = None
        for _ in range(4):
            port.send_values(Type.JOIN, values)
            if (got := port.wait(m.Refuse, m.Welcome, seconds=ANSWER_S / 4)) is not None:
                answer = got[2]
                break
        return isinstance(answer, m.Refuse) and answer.code == code and answer.nonce == NONCE, f"{answer}"

    def _refusals(self) -> bool:
        plain = list(schema_of(Join).encode(self.join))
        self.record("a cookie is valid for one address only", *self._refused(self.other, plain, Refusal.COOKIE))
        for text, at, value in (
            ("a JOIN with a nested position is refused", 5, [[1.0], 2.0, 3.0]),
            ("a JOIN with a period out of range is refused", 8, 2**64 - 1),
            ("a JOIN with a negative lockstep period is refused", 7, -4_000_000),
            ("a JOIN with an unknown role is refused", 3, 77),
            ("a JOIN whose name has control characters is refused", 2, "a\n"),
        ):
            values = [*plain[:at], value, *plain[at + 1 :]]
            self.record(text, *self._refused(self.port, values, Refusal.BAD_VALUE))
        values = list(schema_of(Join).encode(replace(self.join, previous=12345)))
        self.record(
            "the token of a session that does not exist is refused as expired",
            *self._refused(self.port, values, Refusal.EXPIRED),
        )
        return True

    def _welcome(self) -> bool:
        got = self.port.request(self.join, m.Welcome, m.Refuse)
        if not self.record(
            "JOIN is answered with WELCOME", got is not None and isinstance(got[2], m.Welcome), f"{got and got[2]}"
        ):
            return False
        assert got is not None
        self.welcome, self.token = got[2], got[1].token
        self.record("WELCOME returns the nonce of the JOIN", self.welcome.nonce == NONCE, f"{self.welcome.nonce}")
        self.record("WELCOME has sequence 1", got[1].sequence == 1, f"{got[1].sequence}")
        self.record("WELCOME reports a new session", self.welcome.resumed == 0, f"{self.welcome.resumed}")
        again = self.port.request(self.join, m.Welcome)
        same = again is not None and again[1].token == self.token
        self.record(
            "a repeated JOIN receives the same session", same, f"{again and again[1].token} instead of {self.token}"
        )
        return True

    def _collect(self, seconds: float, until: Callable[[], bool] = lambda: False) -> list[Any]:
        """Receive messages, acknowledge events and answer keep-alives, until ``until`` is true or ``seconds`` have passed."""
        found: list[Any] = []
        limit = time.monotonic() + seconds
        while not until() and (got := self.port.receive(limit - time.monotonic())) is not None:
            _, header, message = got
            if header.token != self.token:
                continue
            found.append(message)
            if isinstance(message, m.Events) and message.first <= self.received + 1:
                for number, item in enumerate(message.items, message.first):
                    self.events.setdefault(number, item)
                self.received = max(self.received, message.first + len(message.items) - 1)
                self.port.send(m.Ack(), self.token, self.received)
            elif isinstance(message, m.Keepalive):
                self.port.send(m.KeepaliveReply(message.number), self.token, self.received)
        return found

    def _described(self) -> None:
        wanted = self.welcome.actuators + self.welcome.sensors
        repeats, limit = 0, time.monotonic() + ANSWER_S
        while repeats < 2 and (got := self.port.wait(m.Events, seconds=limit - time.monotonic())) is not None:
            repeats += got[2].first == 1
        if wanted:
            self.record("events are repeated until they are acknowledged", repeats >= 2, f"received {repeats} in 2 s")
        self._collect(ANSWER_S, lambda: self.received >= wanted)
        kinds = [self.events[k][0] for k in sorted(self.events)][:wanted]
        right = kinds == [9] * self.welcome.actuators + [10] * self.welcome.sensors
        self.record("the first events describe the body; WELCOME states their number", right, f"kinds {kinds}")
        wrong = []
        for number, item in self.events.items():
            try:
                EVENTS.decode(item)
            except Malformed as malformed:
                wrong.append(f"{number}: {malformed}")
        self.record("events match their declarations", not wrong, "; ".join(wrong))
        states = [x for x in self._collect(1.0) if isinstance(x, m.StateMessage)]
        lengths = {len(x.actuation) for x in states}
        self.record(
            "each STATE has as many actuators as WELCOME states",
            lengths <= {self.welcome.actuators},
            f"{lengths}",
        )

    def _second(self) -> None:
        got = self.other.request(HELLO, m.Challenge)
        if got is None:
            return
        join = replace(self.join, cookie=got[2].cookie)
        got = self.other.request(join, m.Refuse, m.Welcome)
        answer = None if got is None else got[2]
        taken = isinstance(answer, m.Welcome)
        self.record("a second pilot is refused", not taken and answer is not None, f"{answer}")
        mine = str(self.port.socket.getsockname()[1])
        self.record(
            "the refusal does not reveal the address of the first pilot",
            mine not in getattr(answer, "text", ""),
            f"{answer}",
        )
        got = self.other.request(replace(join, nonce=NONCE + 1, role=Role.LISTENER), m.Welcome, m.Refuse)
        beside = got is not None and isinstance(got[2], m.Welcome)
        self.record("a listener can join in addition to the pilot", beside, f"{got and got[2]}")
        if beside and got is not None:
            left = self.other.request(m.Leave(), m.Bye, token=got[1].token)
            self.record(
                "a listener can leave separately", left is not None, "the LEAVE of the listener was not answered"
            )

    def _requests(self) -> None:
        good = REQUESTS.encode(Subscribe())
        before = self.received
        for _ in range(2):
            wrong = [["bad"], [8, "", [[1.0]], 0], [99, 1], REQUESTS.encode(CommandAnswer(77, 0, "unexpected"))]
            self.port.send_values(Type.REQUESTS, [1, [good, *wrong, good]], self.token, self.received)
        self._collect(1.5, lambda: len([k for k in self.events if k > before]) >= 6)
        self._collect(QUIET_S)
        refused: dict[int, list[str]] = {}
        for number, item in self.events.items():
            if number > before and item[0] == 3:
                refused.setdefault(item[1], []).append(item[2])
        self.record(
            "the refusals of malformed and unknown requests state the request numbers",
            {2, 3, 4} <= set(refused),
            f"{refused}",
        )
        self.record("an answer to a vehicle command that was never sent is refused", 5 in refused, f"{refused}")
        self.record("each request is refused once", all(len(texts) == 1 for texts in refused.values()), f"{refused}")
        answered = {item[1] for number, item in self.events.items() if number > before and item[0] in (3, 11)}
        self.record(
            "valid requests in a list with invalid ones are answered",
            {1, 6} <= answered,
            f"answers to {sorted(answered)}",
        )
        self.port.send_values(Type.REQUESTS, [9, [good]], self.token, self.received)
        self.port.send_values(Type.KEEPALIVE_REPLY, [0], self.token, self.received)
        acks = [got[1].ack for _ in range(40) if (got := self.port.receive(0.02)) and got[1].token == self.token]
        self.record(
            "requests are acknowledged in order, and no request after a gap is acknowledged",
            set(acks) <= {6} or not acks,
            f"{set(acks)}",
        )

    def _three_periods(self) -> float:
        """Return the duration in s of three keep-alive periods plus a margin, at most 20 s."""
        return min(3.0 * float(self.welcome.keepalive_period) + 0.5, 20.0)

    def _keepalive(self) -> None:
        numbers: list[int] = []
        limit = time.monotonic() + self._three_periods()
        while len(numbers) < 3 and (left := limit - time.monotonic()) > 0.0:
            numbers += [x.number for x in self._collect(min(left, 0.1)) if isinstance(x, m.Keepalive) and x.number]
        self.record("KEEPALIVE arrives in every period", len(numbers) >= 2, f"{len(numbers)} in three periods")
        self.record("each KEEPALIVE has a different number", len(set(numbers)) == len(numbers), f"{numbers}")

    def _rubbish(self) -> None:
        for bomb in MALFORMED_BODIES:
            for kind in (Type.HELLO, Type.JOIN, Type.ACTUATE, Type.REQUESTS, Type.DONE, 99):
                header = codec._HEADER.pack(m.MAGIC, m.VERSION, kind, 0, self.token, 2**31, 0)
                for _ in range(5):
                    self.port.send_raw(header + bomb)
            time.sleep(0.005)  # paced, so that the server's buffer does not overflow
        absurd: list[list[Any]] = [[[[[]]]], [[float("nan")]], [[1e308]], [None], [{}], [[True]], []]
        for values in absurd:
            for kind in (Type.ACTUATE, Type.ESTIMATE, Type.KEEPALIVE_REPLY):
                self.port.send_values(kind, values, self.token, self.received)
            self.port.send_values(Type.DONE, [1, 0, *values, None], self.token, self.received)
        for data in (b"", b"x" * 23, b"x" * (MAX_DATAGRAM + 100), b"WVSM" + bytes(30)):
            self.port.send_raw(data)
        begin = time.monotonic()
        answered = self.other.request(HELLO, m.Challenge) is not None
        self.record("other clients are served after malformed datagrams", answered, "HELLO was not answered")
        self.record(
            "malformed datagrams delay other clients by less than 1 s",
            time.monotonic() - begin < 1.0,
            f"{time.monotonic() - begin:.2f} s",
        )
        ended = any(isinstance(x, m.Bye) for x in self._collect(0.5))
        self.record("malformed datagrams do not end the session", not ended, "the server ended the session")

    def _migration(self) -> None:
        new = ClientSocket(self.server)
        new.sequence = self.port.sequence
        new.send_values(Type.ACK, [None] * 9, self.token, self.received)  # as long as a PROVE
        got = new.wait(m.Prove)
        self.record(
            "a session's datagram from a new address is answered with PROVE",
            got is not None,
            "no PROVE arrived at the new address",
        )
        quiet = not isinstance(got and got[2], m.StateMessage)
        self.record("no STATE is sent to an unproven address", quiet, f"{got and got[2]}")
        if got is not None:
            new.send(m.Proof(got[2].number), self.token, self.received)
            self.port.socket.close()
            self.port = new
            moved = bool(
                [x for x in self._collect(3.0 * self.welcome.keepalive_period + 0.5) if isinstance(x, m.Keepalive)]
            )
            self.record("the session moves to the new address after PROOF", moved, "nothing arrives at the new address")
        else:
            new.socket.close()

    def _resume(self) -> None:
        got = self.port.request(HELLO, m.Challenge)
        if got is None:
            return
        self.join = replace(self.join, cookie=got[2].cookie, nonce=NONCE + 2, previous=self.token)
        got = self.port.request(self.join, m.Welcome, m.Refuse)
        back = got is not None and isinstance(got[2], m.Welcome) and got[2].resumed == 1 and got[1].token != self.token
        self.record("a client that resumes with its token receives a new session", back, f"{got and got[2]}")
        if back and got is not None:
            self.token, self.received, self.events = got[1].token, 0, {}
            self._collect(1.0)

    def _leave(self) -> None:
        for text in ("LEAVE is answered with BYE", "a repeated LEAVE is answered with BYE again"):
            got = self.port.request(m.Leave(), m.Bye, token=self.token, ack=self.received)
            self.record(text, got is not None, "no BYE within 2 s")
        before = self.token
        self.token = 0
        got = self.port.request(HELLO, m.Challenge)
        if got is not None:
            late = replace(self.join, cookie=got[2].cookie, nonce=NONCE + 3, previous=before)
            got = self.port.request(late, m.Refuse, m.Welcome)
            answer = None if got is None else got[2]
            expired = isinstance(answer, m.Refuse) and answer.code == Refusal.EXPIRED
            self.record("a session cannot be resumed after LEAVE", expired, f"{answer}")
