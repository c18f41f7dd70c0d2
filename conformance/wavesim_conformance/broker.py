"""Conformance checker for brokers in any language: a scripted server tests whether a broker follows docs/PROTOCOL.md.

:mod:`wavesim_conformance.server` contains the checker for servers.

    wavesim conformance -- ./my-broker 127.0.0.1 {port} {name}

The checker replaces ``{port}`` and ``{name}`` in the command. The broker must join under that name with a lockstep
period of 100 ms.
"""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgpack

from wavesim_sdk.errors import BrokerError
from wavesim_sdk.testing import STEP_NS, FakeServer, make_step
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.items import RunStateChanged
from wavesim_sdk.wire.messages import HEADER_BYTES, MIN_HELLO, Keepalive, Prove, Role, StateMessage, Type
from wavesim_sdk.wire.schema import schema_of

NAME = "candidate"
WAIT_S = 10.0


@dataclass(frozen=True)
class Finding:
    """Result for one rule: whether the program follows it, and, if not, the observed behaviour."""

    rule: str
    ok: bool
    text: str = ""


class ConformanceChecker:
    """Base class of the checkers; it collects findings and reports each one immediately."""

    def __init__(self, say: Callable[[Finding], None]) -> None:
        self.report = say
        self.findings: list[Finding] = []

    def run(self) -> list[Finding]:
        """Check all rules and return the findings in order; stop at a failure that the other rules depend on."""
        raise NotImplementedError

    def record(self, rule: str, ok: bool, text: str = "") -> bool:
        """Record the result for a rule and return ``ok``. ``text`` states the observed behaviour if the rule is broken."""
        ok = bool(ok)
        finding = Finding(rule, ok, "" if ok else text)
        self.findings.append(finding)
        self.report(finding)
        return ok

    @staticmethod
    def wait_until(condition: Callable[[], bool], seconds: float = WAIT_S) -> bool:
        """Wait for a condition for at most ``seconds``; return whether it became true."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if condition():
                return True
            time.sleep(0.01)
        return condition()


class BrokerChecker(ConformanceChecker):
    """Checker for one broker. The broker runs once, against the scripted server."""

    def __init__(self, command: Sequence[str], say: Callable[[Finding], None] = lambda f: None) -> None:
        super().__init__(say)
        self.command = command

    def run(self) -> list[Finding]:
        """Check all rules and return the findings in order; stop at a failure that the other rules depend on."""
        with FakeServer() as server:
            self.server = server
            self._hellos = 0
            server.drop_datagram = self._lose_first
            command = [part.format(port=server.address[1], name=NAME) for part in self.command]
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env={**os.environ, "WAVESIM_KEYS": ""})
            except OSError as error:
                raise BrokerError(f"cannot start '{command[0]}': {error.strerror}") from None
            try:
                if self._joining():
                    self._keepalive()
                    self._events()
                    self._steps()
                    self._tolerance()
                    self._numbers()
                    self._ending(process)
            except TimeoutError as error:  # raised by the scripted server: the session has ended
                self.record("the broker stays joined until the server ends the session", False, str(error))
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        return self.findings

    # -- helpers -------------------------------------------------------------------------------------------

    def _lose_first(self, data: bytes) -> bool:
        """Drop the first two HELLO datagrams and the first JOIN."""
        if len(data) > 5 and data[5] in (Type.HELLO, Type.JOIN):
            self._hellos += 1
            return self._hellos <= 2 or (data[5] == Type.JOIN and self._hellos == 4)
        return False

    def _datagrams(self, *kinds: Type, since: float = 0.0) -> list[tuple[float, codec.Header, Any]]:
        found = []
        for when, data in list(self.server.raw):
            if when < since:
                continue
            try:
                header = codec.decode_header(data, from_client=True)
                if header.type in kinds:
                    found.append((when, header, codec.decode_payload(data, header)))
            except Dropped:
                continue
        return found

    # -- the rules -----------------------------------------------------------------------------------------

    def _joining(self) -> bool:
        joined = self.wait_until(lambda: any(s.name == NAME for s in list(self.server.sessions.by_token.values())))
        hellos, joins = self._datagrams(Type.HELLO), self._datagrams(Type.JOIN)
        sizes = [len(d) for _, d in list(self.server.raw) if len(d) > 5 and d[5] == Type.HELLO]
        self.record(
            "HELLO has at least 64 bytes",
            bool(sizes) and min(sizes) >= MIN_HELLO,
            f"the shortest HELLO has {min(sizes, default=0)} bytes",
        )
        self.record(
            "HELLO is repeated until it is answered",
            len(hellos) >= 3,
            f"received {len(hellos)} HELLOs; the checker dropped the first two deliberately",
        )
        self.record(
            "JOIN is repeated until it is answered",
            len(joins) >= 2,
            f"received {len(joins)} JOINs; the checker dropped the first one deliberately",
        )
        nonces = {join.nonce for _, _, join in joins}
        self.record("a repeated JOIN has the same nonce", len(nonces) <= 1, f"nonces {nonces}")
        if not self.record("the broker joins under the given name", joined, f"no session of '{NAME}'"):
            return False
        join = self.server.session(NAME).join
        self.record("the broker joins as a pilot", join.role == Role.PILOT, f"role {join.role}")
        lockstep = join.lockstep_ns
        return self.record(
            "the broker requests a lockstep period of 100 ms",
            lockstep == 100_000_000,
            f"the broker requests {lockstep} ns",
        )

    def _keepalive(self) -> None:
        session = self.server.session(NAME)
        ok = self.wait_until(lambda: session.rtt_statistics.replies >= 3, 3.0)
        self.record(
            "the answer to a KEEPALIVE repeats its number",
            ok,
            f"{session.rtt_statistics.replies} correct answers in 3 s",
        )
        self.record(
            "KEEPALIVE is answered within 0.2 s",
            0.0 < session.rtt_statistics.maximum < 0.2,
            f"{session.rtt_statistics.maximum:.3f} s",
        )
        since = time.monotonic()
        header = codec.encode(Keepalive(0), session.token, 2**29)[:HEADER_BYTES]
        for body in ("dc0001cf0000000000000d05", "dd00000001cd0d06", "91d10d07", "92cc0882a16101a162c0"):
            self.server.send_bytes(NAME, header + bytes.fromhex(body))
        wanted = {0xD05, 0xD06, 0xD07, 8}
        found = self.wait_until(
            lambda: wanted <= {reply.number for _, _, reply in self._datagrams(Type.KEEPALIVE_REPLY, since=since)}, 2.0
        )
        self.record(
            "every correct msgpack encoding is accepted", found, "KEEPALIVE in another encoding was not answered"
        )
        self.server.send(NAME, Prove(2**64 - 1))
        proved = self.wait_until(lambda: bool(self._datagrams(Type.PROOF, since=since)), 2.0)
        right = proved and self._datagrams(Type.PROOF, since=since)[0][2].number == 2**64 - 1
        self.record(
            "PROVE is answered with PROOF with the same number", right, "wrong number" if proved else "no answer"
        )

    def _events(self) -> None:
        session = self.server.session(NAME)
        since = time.monotonic()
        for k in range(3):
            self.server.event(NAME, RunStateChanged(1, k))
        self.server.item(NAME, [99, "an event from a future version", [1, 2, 3]])
        self.server.item(NAME, [4, "malformed"])
        self.server.event(NAME, RunStateChanged(1, 3))
        ok = self.wait_until(lambda: session.outbox.next_timer() is None, 2.0)
        self.record(
            "events are acknowledged, including malformed events and those of an unknown kind",
            ok,
            "some events were not acknowledged within 2 s",
        )
        first = [when for when, h, _ in self._datagrams(*Type, since=since) if h.ack >= 1]
        late = first[0] - since if first else float("inf")
        self.record("events are acknowledged within 0.2 s", late < 0.2, f"{late:.3f} s")

    def _steps(self) -> None:
        values: dict[str, list[float | None]] = {
            "ctd": [11.5, None, 4.25, 35.5],
            "sonar": [float(k) for k in range(256)],
        }
        for tick in (25, 50, 75):
            since = time.monotonic()
            self.server.step(NAME, tick, values)
            if not self.record(
                f"STEP {tick} is answered with a DONE for the same tick",
                self._done(tick, since),
                "no answer within 2 s",
            ):
                return
        done = self._datagrams(Type.DONE)[-1]
        since = time.monotonic()
        self.server.step(NAME, 75, values)
        ok = self.wait_until(lambda: bool(self._datagrams(Type.DONE, since=since)), 2.0)
        same = ok and self._datagrams(Type.DONE, since=since)[0][2] == done[2]
        self.record(
            "a repeated STEP is answered with the same DONE", same, "a different DONE" if ok else "no answer within 2 s"
        )
        self._parts()

    def _parts(self) -> None:
        """Check the answer to a STEP whose SENSORS datagrams arrive late."""
        since = time.monotonic()
        session = self.server.session(NAME)
        step, parts = make_step(session, 100, {"sonar": [float(k) for k in range(256)]})
        self.server.send(NAME, replace(step, parts=len(parts), last_event=session.outbox.last))
        early = self.wait_until(lambda: bool(self._datagrams(Type.DONE, since=since)), 0.4)
        self.record(
            "a STEP is answered only after all its parts have arrived", not early, "DONE arrived before the parts"
        )
        for part in reversed(parts):
            self.server.send(NAME, part)
        self.record(
            "the parts of a STEP may arrive in any order", early or self._done(100, since), "no DONE within 2 s"
        )

    def _done(self, tick: int, since: float) -> bool:
        """Return whether a DONE for a tick arrives within two seconds."""
        return self.wait_until(lambda: any(b.tick == tick for _, _, b in self._datagrams(Type.DONE, since=since)), 2.0)

    def _tolerance(self) -> None:
        session, since = self.server.session(NAME), time.monotonic()
        state = StateMessage(100, 100 * STEP_NS, 1, 0, None, (0.0, 0.0), None, ())
        good = codec.encode(state, session.token, 2**30)
        longer = [*schema_of(StateMessage).encode(state), "trailing", [1], {"a": None}]
        self.server.send_bytes(NAME, good[:HEADER_BYTES] + msgpack.packb(longer))
        for bad in (
            b"",
            b"noise",
            good[:-3],
            b"XXXX" + good[4:],
            good[:4] + b"\x07" + good[5:],
            good[:5] + b"\xf7" + good[6:],
            good[:6] + b"\x08\0" + good[8:],
            good[:8] + bytes(8) + good[16:],
            good + b"\0",
            good[:HEADER_BYTES] + b"\xc1",
            good[:HEADER_BYTES] + struct.pack(">BI", 0xDD, 0xFFFFFFFF),
        ):
            self.server.send_bytes(NAME, bad)
        self.server.step(NAME, 125)
        ok = self._done(125, since)
        self.record(
            "trailing elements and invalid bytes are ignored",
            ok,
            "no answer to the STEP that followed the invalid bytes",
        )

    def _numbers(self) -> None:
        session = self.server.session(NAME)
        mine = [(h.sequence, h.ack) for _, h, _ in self._datagrams(*Type) if h.token == session.token]
        sequences = [s for s, _ in mine]
        grows = all(b == a + 1 for a, b in itertools.pairwise(sequences))
        self.record("the sequence number grows by one with each datagram", grows, f"{sequences[:12]} ...")
        acks = [a for _, a in mine]
        self.record("acknowledgements never decrease", acks == sorted(acks), f"{acks}")
        drops = {k: v for k, v in self.server.sessions.drops.items() if k != "token"}
        self.record("no datagram from the broker breaks a receive rule", not drops, f"dropped: {drops}")

    def _ending(self, process: subprocess.Popen[bytes]) -> None:
        self.server.bye(NAME)
        since = time.monotonic() + 0.5
        self.wait_until(lambda: process.poll() is not None, 3.0)
        after = [
            d
            for when, d in list(self.server.raw)
            if when > since and len(d) > 5 and d[5] not in (Type.HELLO, Type.JOIN)
        ]
        self.record("the broker is silent after BYE", not after, f"received {len(after)} datagrams")
