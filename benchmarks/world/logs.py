"""Comparison of the log with the events: the engine's records, noted as they are sent, against the contents of the
files.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.world.report import Broken
from wavesim_sdk import commands, log
from wavesim_sdk.errors import LogError
from wavesim_sdk.tables import RECEPTION, SENT, VEHICLE_TABLES, RunState
from wavesim_server import messages
from wavesim_server.logbook.writer import logged_table

if TYPE_CHECKING:
    from benchmarks.world.server import Server

_TABLES = {t.name: t for t in VEHICLE_TABLES}
Said = dict[str, list[Any]]  #: topic -> its contents in order


class ExpectedLog:
    """The records that the engine sent for the log."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._events: list[tuple[Any, dict[int, str]]] = []
        self._names: dict[int, str] = {}
        emit = server.engine.events.emit

        def watched(event: messages.EngineEvent) -> None:
            if isinstance(event, messages.BodyPresenceEvent) and event.is_logged:
                self._names = {**self._names, event.row: event.name}
            self._events.append((event, self._names))
            emit(event)

        server.engine.events.emit = watched  # type: ignore[method-assign]  # to record its events

    def said(self) -> Said:
        """Return all records as the log should contain them."""
        found: Said = defaultdict(list)
        for event, names in self._events:
            for topic, what in _entries(event, names, self._server.loaded):
                found[topic].append(what)
        return found


def _entries(event: messages.EngineEvent, names: dict[int, str], loaded: Any) -> Iterator[tuple[str, Any]]:
    """Yield each topic of an event and what the log stores under it."""
    match event:
        case messages.LogRecordsEvent(_, tables, counts, rows, records):
            whose, at = iter(np.frombuffer(rows, np.int64).reshape(-1, 2).tolist()), 0
            for table, count in zip(tables, counts, strict=True):
                size = logged_table(table).dtype.itemsize
                for row, number in itertools.islice(whose, count):
                    kind = f"/{table}" if table in _TABLES else "/sensor"
                    topic = f"{kind}/{names.get(row, '')}" + ("" if table in _TABLES else f"/{number}")
                    yield topic, records[at : at + size]
                    at += size
        case messages.SignalsEvent(sent, receptions):
            for k in range(0, len(sent), SENT.dtype.itemsize):
                yield "/acoustics/sent", sent[k : k + SENT.dtype.itemsize]
            for k in range(0, len(receptions), RECEPTION.dtype.itemsize):
                yield "/acoustics/reception", receptions[k : k + RECEPTION.dtype.itemsize]
        case messages.RunStateEvent(state, time_ns):
            yield "/run", (time_ns, RunState(state).name.lower())
        case messages.ExecutedEvent(_, ok, _, time_ns, command) if ok:
            yield "/commands", (time_ns, commands.verb_of(commands.decode(command)))
        case messages.NoticeEvent(time_ns, _, name, text):
            yield "/notices", (time_ns, name, text)
        case messages.BodiesFrozenEvent(time_ns, frozen):
            yield "/frozen", (time_ns, *frozen)


def _held(path: Path, suites: Any) -> Said:
    """Return the contents of a file by topic."""
    found: Said = defaultdict(list)
    whole = log.read(path)
    for topic, series in whole.series.items():
        if topic.startswith("/estimate/"):
            continue
        if topic.startswith("/sensor/"):
            _, _, body, name = topic.split("/")
            topic = f"/sensor/{body}/{suites(body, name)}"
        found[topic] = [r.tobytes() for r in series.records]
    plain = whole.json
    found["/run"] = [(t, v["state"]) for t, v in plain.get("/run", [])]
    found["/commands"] = [(t, v["verb"]) for t, v in plain.get("/commands", [])]
    found["/notices"] = [(t, v["body"], v["text"]) for t, v in plain.get("/notices", [])]
    found["/frozen"] = [(t, *v["bodies"]) for t, v in plain.get("/frozen", [])]
    return found


def _within(some: Sequence[Any], whole: Sequence[Any]) -> bool:
    """Return whether some items of a list occur in its order."""
    rest = iter(whole)
    return all(any(s == w for w in rest) for s in some)


def compare(server: Server, expected: ExpectedLog, path: Path, losses: bool) -> None:
    """Check every file of the run. With ``losses``, records may be missing, but there must be no others."""
    said = expected.said()
    bodies = {b.name: [i.name for i in server.loaded.suite(b)] for b in server.loaded.config.fleet.bodies}

    def number(body: str, name: str) -> Any:
        return bodies[body].index(name) if body in bodies else name

    if not losses:
        said = {topic: list(what) for topic, what in said.items()}
    for disk in server.disks:
        data = disk.getvalue()
        if len(data) < 100:
            continue  # no room for its beginning
        path.write_bytes(data)
        try:
            held = _held(path, number)
        except LogError as error:
            if losses:
                continue
            raise Broken(f"an unreadable log: {error}") from None
        for topic in sorted({*held, *said}):
            if topic.startswith("/sensor/") and topic.split("/")[2] not in bodies:
                continue
            some, whole = held.get(topic, []), said.get(topic, [])
            if (some != whole) if not losses else not _within(some, whole):
                raise Broken(
                    f"the log differs: {topic} has {len(some)} entries of {len(whole)} that were expected, or others"
                )
