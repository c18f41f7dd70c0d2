"""Bugs that are planted into the server in memory, to measure what the seeded worlds find.

python -m benchmarks.world --planted [NAME ...] --seeds 300     run seeds with each bug until a world reports it

Each bug replaces parts of the source of functions, compiles them and puts them in place of the originals. No file is
changed. A part that does not occur in the source exactly once is an error, so a bug cannot become ineffective without
being noticed when the code changes.
"""

from __future__ import annotations

import contextlib
import inspect
import multiprocessing
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from benchmarks.world.report import Report
from benchmarks.world.runner import run
from wavesim_sdk.wire import codec, joining, reliable
from wavesim_sdk.wire.address_validation import AddressValidator
from wavesim_sdk.wire.recently_ended import RecentlyEnded
from wavesim_sdk.wire.seal import SessionSeal
from wavesim_sdk.wire.server import ServerSessions
from wavesim_server.engine.command_executor import CommandExecutor
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.network import admission, requests
from wavesim_server.network.commands import PendingCommands
from wavesim_server.network.crews import Crews
from wavesim_server.network.event_dispatcher import EngineEventDispatcher
from wavesim_server.network.front import Front
from wavesim_server.network.lockstep import Barrier
from wavesim_server.ring import Ring
from wavesim_server.watchdog import Watchdog


class NotApplied(Exception):
    """A planted bug does not match the code."""


@dataclass(frozen=True)
class Edit:
    """A change in one function of a class or module: each part of its source is replaced by another."""

    owner: Any
    name: str
    parts: tuple[tuple[str, str], ...]

    def changed(self) -> Any:
        """Return the changed function."""
        place = f"{getattr(self.owner, '__qualname__', self.owner.__name__)}.{self.name}"
        try:
            original = inspect.getattr_static(self.owner, self.name)
        except AttributeError:
            raise NotApplied(f"there is no {place}") from None
        is_static = isinstance(original, staticmethod)
        function = inspect.unwrap(original.__func__ if is_static else original)
        if not inspect.isfunction(function) or function.__closure__:
            raise NotApplied(f"{place} is not a function that can be compiled again")
        source = textwrap.dedent(inspect.getsource(function))
        for old, new in self.parts:
            if source.count(old) != 1:
                raise NotApplied(f"{place} contains {source.count(old)} times: {old}")
            source = source.replace(old, new)
        found: dict[str, Any] = {}
        flags = annotations.compiler_flag
        exec(compile(source, f"<planted {place}>", "exec", flags, dont_inherit=True), function.__globals__, found)
        made = found[self.name]
        return staticmethod(made) if is_static else made


@dataclass(frozen=True)
class Constant:
    """Another value of a constant of a module."""

    owner: Any
    name: str
    old: Any
    new: Any

    def changed(self) -> Any:
        """Return the new value."""
        if (there := getattr(self.owner, self.name, None)) != self.old:
            raise NotApplied(f"{self.owner.__name__}.{self.name} is {there}, not {self.old}")
        return self.new


@dataclass(frozen=True)
class Planted:
    """A bug: what it does in one sentence, and the changes."""

    what: str
    changes: tuple[Edit | Constant, ...]

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the bug. Raises NotApplied if it does not match the code."""
        with contextlib.ExitStack() as stack:
            for change in self.changes:
                stack.enter_context(mock.patch.object(change.owner, change.name, change.changed()))
            yield


def _bug(what: str, owner: Any, name: str, *parts: tuple[str, str]) -> Planted:
    return Planted(what, (Edit(owner, name, parts),))


PLANTED: dict[str, Planted] = {
    "ack off by one": _bug(
        "An acknowledgement also removes the next item, which the peer may not have received.",
        reliable.Outbox,
        "acknowledge",
        ("self._pending[0][0] <= number:\n        self._pending", "self._pending[0][0] <= number + 1:\n        self._pending"),
    ),
    "gap of one": _bug(
        "The receiver accepts items although the one before them is missing.",
        reliable.Inbox,
        "accept",
        ("first > self.received + 1", "first > self.received + 2"),
    ),
    "barrier never released": _bug(
        "The engine waits for a lockstep client without a time limit.",
        Barrier,
        "take_replies",
        ("(self.waiting and now < self.deadline)", "self.waiting"),
    ),
    "keep-alive at a quarter": _bug(
        "A client counts as silent after a quarter of the keep-alive timeout.",
        ServerSessions,
        "_tick",
        ("> self._timeout", "> 0.25 * self._timeout"),
    ),
    "log record skipped": _bug(
        "The log omits the records of each seventh tick.",
        LogWriter,
        "records",
        ("self._write_guarded(", "time_ns // 100_000_000 % 7 and self._write_guarded("),
    ),
    "done although full": _bug(
        "A ring without room reports a record as written.", Ring, "_append", ("return False", "return True")
    ),
    "ring wrap of one byte": _bug(
        "The last byte of a record that wraps around the end of the ring is not written.",
        Ring,
        "_write",
        ("_BASE + len(data) - first] = data[first:]", "_BASE + len(data) - first - 1] = data[first:-1]"),
    ),
    "watchdog not reset": _bug(
        "A command does not restart the watchdog of a body.",
        Watchdog,
        "note_command",
        ("if row in self._names:", "if row in self._names and row not in self._due:"),
    ),
    "body stays": _bug(
        "The body of a pilot that fell silent stays in the simulation.",
        Front,
        "_on_session_gone",
        ("self._remove_body(", 'reason == "left" and self._remove_body('),
    ),
    "unknown request unanswered": _bug(
        "A request of an unknown kind is not answered.",
        ServerSessions,
        "_request",
        ('self.refuse(session, number, f"unknown kind', 'str(f"unknown kind'),
    ),
    "events lost on resume": _bug(
        "A resumed session does not receive the events that the earlier one had not acknowledged.",
        ServerSessions,
        "_open_session",
        ("self._carry_over(previous, session)", "pass"),
    ),
    "last event lost on resume": _bug(
        "A resumed session does not receive the last event that the earlier one had not acknowledged.",
        ServerSessions,
        "_carry_over",
        ("old.outbox.unacknowledged():", "old.outbox.unacknowledged()[:-1]:"),
    ),
    "downgrade": _bug(
        "A session with keys also accepts datagrams without a seal.",
        codec,
        "open_payload",
        ("if header.sealed != (seal is not None):", "if header.sealed and seal is None:"),
        ("if seal is None:\n        return", "if not header.sealed:\n        return"),
    ),
    "replay in the window": _bug(
        "A sealed datagram is accepted again while its number is in the replay window.",
        SessionSeal,
        "is_new",
        ("self._seen >> -ahead & 1", "False"),
    ),
    "replay behind the window": _bug(
        "A sealed datagram is accepted again when its number is too old for the replay window.",
        SessionSeal,
        "is_new",
        ("ahead <= -WINDOW or ", ""),
    ),
    "receptions of a former body": _bug(
        "A client receives what the former body of its row has heard.",
        EngineEventDispatcher,
        "_signals",
        (
            'receivers = self.generations[receptions["receiver"]] == np.frombuffer(event.receivers, np.int64)',
            "receivers = np.ones(len(receptions), bool)",
        ),
    ),
    "notices of a former body": _bug(
        "A client receives notices about the former body of its row.",
        EngineEventDispatcher,
        "_notice",
        (" if n.generation == self.generations[n.row] else ()", ""),
    ),
    "spent joins": _bug(
        "A copy of a JOIN starts its session again after that session has ended.",
        AddressValidator,
        "is_replayed_join",
        ("return (address, nonce) in self._used_joins", "return False"),
    ),
    "cookie without a port": _bug(
        "A cookie is valid for all ports of a host.",
        AddressValidator,
        "_mac",
        ("{address[1]}", "{'' if what == 'cookie' else address[1]}"),
    ),
    "proof of any address": _bug(
        "The proof of one address moves a session to any address.",
        AddressValidator,
        "_number",
        ('f"prove {token}", address', 'f"prove {token}", ("", 0)'),
    ),
    "resumed by another role": _bug(
        "A client of another role continues a session.",
        joining,
        "resolve_join",
        ("(previous.name, previous.join.role) != (join.name, join.role)", "previous.name != join.name"),
    ),
    "resumed by another key": Planted(
        "The holder of another key continues a session, because the token in the headers is its ticket.",
        (
            Edit(joining, "check_key", (("holder.name == ANY_CLIENT and has_own_key(name)", "False"),)),
            Edit(SessionSeal, "__init__", (('int.from_bytes(derive(b"resume")[:8], "little")', "token"),)),
        ),
    ),
    "revoked session continues": _bug(
        "A session whose key was revoked goes on.",
        ServerSessions,
        "replace_keys",
        ("for session in revoked:", "for session in []:"),
    ),
    "revoked key joins": _bug(
        "The server ends the sessions of revoked keys, but still accepts these keys.",
        ServerSessions,
        "replace_keys",
        ("self.keys = keys", "pass"),
    ),
    "replaced key joins": _bug(
        "A key that was replaced can still open sessions.",
        joining,
        "check_key",
        ("holder.is_retired", "False"),
    ),
    "epoch ignored": _bug(
        "The answer to a session that has ended goes to the session that took its place in the crew.",
        Crews,
        "request_owner",
        ("member.epoch == epoch", "True"),
    ),
    "right to others ignored": _bug(
        "A session commands the bodies of others without the right to do so.",
        requests,
        "permit_command",
        ('body not in ("", own) and not berth.watches_others', "False"),
    ),
    "STEP repeated once": _bug(
        "A STEP that is not answered is repeated only once.",
        ServerSessions,
        "_tick",
        ("now >= question.repeat_at", "now >= question.repeat_at and question.repeats < 1"),
    ),
    "late DONE takes effect": Planted(
        "The late answer to an earlier step takes effect in the present step.",
        (
            Edit(
                ServerSessions, "_handle", (("StepDone(session, Done(tick, 0, None, None))", "StepDone(session, message, payload)"),)
            ),
            Edit(Barrier, "add_reply", (("if tick == self.tick:", "if True:"),)),
            Edit(CommandExecutor, "_done", ((" or done.tick != self.sim.tick", ""),)),
        ),
    ),
    "stale values": Planted(
        "Clients receive the values of an emulator that has stopped for a hundred times longer.",
        (Constant(admission, "MAX_AGE_PERIODS", 5.0, 500.0),),
    ),
    "lockstep sounds dropped": _bug(
        "The sounds that a lockstep client requests are never emitted.",
        requests.RequestHandler,
        "take_sounds",
        ("return self.pending_sounds.pop(token, ())", "return self.pending_sounds.pop(token, ())[:0]"),
    ),
    "BYE sent once": _bug(
        "A BYE is not repeated.", RecentlyEnded, "add", ("1 if unasked else MAX_BYES", "MAX_BYES")
    ),
    "refusals reported as success": _bug(
        "A command that the engine refused is reported as done.",
        PendingCommands,
        "complete",
        ("bool(event.ok)", "True"),
    ),
    "HELLO of any size": _bug(
        "A HELLO that is smaller than its answer is answered.",
        ServerSessions,
        "_before_session",
        ("len(data) < MIN_HELLO", "False"),
    ),
    "bucket never fills": _bug(
        "A host that has used up its rate limit is never answered again.",
        AddressValidator,
        "count_datagram",
        ("if not bucket.consume(", "bucket.updated_at = now\n    if not bucket.consume("),
    ),
    "dropped datagram counts": _bug(
        "A forged datagram, which is dropped, counts as a sign of life of the client.",
        ServerSessions,
        "_receive_in_session",
        ("if session.address != address:", "session.last_heard = now\n    if session.address != address:"),
    ),
}  # fmt: skip

#: a seed of the first three hundred that finds each bug; of those in BY_WORLD the world, of the others the siege
FOUND_AT: dict[str, int] = {
    "ack off by one": 0,
    "gap of one": 0,
    "barrier never released": 0,
    "keep-alive at a quarter": 0,
    "log record skipped": 0,
    "done although full": 15,
    "ring wrap of one byte": 8,
    "watchdog not reset": 0,
    "body stays": 0,
    "unknown request unanswered": 0,
    "events lost on resume": 1,
    "last event lost on resume": 1,
    "downgrade": 2,
    "replay in the window": 2,
    "replay behind the window": 2,
    "receptions of a former body": 8,
    "notices of a former body": 0,
    "spent joins": 0,
    "cookie without a port": 0,
    "proof of any address": 0,
    "resumed by another role": 4,
    "resumed by another key": 2,
    "revoked session continues": 9,
    "revoked key joins": 9,
    "replaced key joins": 20,
    "epoch ignored": 0,
    "right to others ignored": 0,
    "STEP repeated once": 6,
    "late DONE takes effect": 5,
    "stale values": 7,
    "lockstep sounds dropped": 0,
    "BYE sent once": 0,
    "refusals reported as success": 0,
    "HELLO of any size": 2,
    "bucket never fills": 1,
    "dropped datagram counts": 0,
}
BY_WORLD = (
    "barrier never released",
    "done although full",
    "revoked session continues",
    "revoked key joins",
    "replaced key joins",
)


def first_report(name: str, seeds: Sequence[int]) -> Report | None:
    """Return the first report of a bug by these seeds, or None if no seed finds it."""
    planted = PLANTED[name]
    with planted.applied():
        return next((report for seed in seeds if (report := run(seed)).broken), None)


def _searched(task: tuple[str, range]) -> tuple[str, Report | None]:
    return task[0], first_report(*task)


def search(names: Sequence[str], seeds: range, workers: int) -> int:
    """Print a table of the bugs and the seeds that find them. Return 1 if a bug is not found."""
    unknown = [n for n in names if n not in PLANTED]
    if unknown:
        raise SystemExit(f"no planted bug named {', '.join(unknown)}; there are: {', '.join(PLANTED)}")
    for name in names or PLANTED:
        with PLANTED[name].applied():
            pass  # an error here, before hours of search
    tasks = [(name, seeds) for name in names or PLANTED]
    begun, found = time.monotonic(), 0
    print(f"{'bug':<30} found at seed")
    with contextlib.ExitStack() as stack:
        if workers < 2:
            results: Iterator[tuple[str, Report | None]] = map(_searched, tasks)
        else:
            pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(workers))
            results = pool.imap(_searched, tasks)
        for name, report in results:
            found += report is not None
            text = f"not found in {len(seeds)}" if report is None else f"{report.seed:<6} {report.broken:.100}"
            print(f"{name:<30} {text}", flush=True)
    print(f"{found} of {len(tasks)} found in {time.monotonic() - begun:.0f} s")
    return int(found < len(tasks))
