"""Invariants: after each step, at rest, and after all have left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgpack
import numpy as np

from benchmarks.world.ledger import Book
from benchmarks.world.report import Broken
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire import reliable
from wavesim_sdk.wire.client import Phase
from wavesim_sdk.wire.items import Request
from wavesim_sdk.wire.messages import Role
from wavesim_server.network.front import Front

if TYPE_CHECKING:
    from benchmarks.world.clients import Client
    from benchmarks.world.world import World

GRACE_S = (
    0.25  #: tolerance of time limits, because the shells poll at intervals and the queues between them may be full
)
FORGOTTEN_S = 1.0  #: time after which a client has noticed that a restarted server does not know it
EVERY = 8  #: number of steps between two of the more expensive checks
MOST_BACKLOG = 20_000
#: containers that may be larger after a run than before: start of the place -> allowed increase
ALLOWED: dict[str, int] = {
    "front.sessions.keys": 20,  # retired keys, which the owner of the key file keeps
    "front.sessions.drops": 20,  # names of reasons
    "front.steps.waits.accounts": 1024,  # of names, how long each was waited for
    "front.steps.slow_emulators": 64,  # sensor types
    "engine.emulators.waits.accounts": 64,  # of each type
    "front.sessions._address_validator._hosts": 4096,  # a rate for each address
    "front.sessions._address_validator._used_joins": 4096,  # joins of the last 20 s, until the next session ends
    "front.admission_policy._suites": 20,  # suites of models
    "front.crews._epochs": 64,  # of each place in a crew that was taken once
    "front.broadcast.writer.instruments._places": 200,  # of instruments
    "front.event_dispatcher.payloads._kept": 4096,  # payloads of ten minutes
    "front.request_handler.acoustic_quota.refused": 64,  # names of clients
    "front.data_loss._texts": 101,  # descriptions of lost data
    "engine.emulators.instruments._owners_by_type": 500,  # of each type, until somebody comes or goes
    "engine._logged_sequences.": 500,  # bodies and instruments, until the log is next due
    "engine.emulators._unanswered": 64,  # of each type
    "engine.emulators._due.": 64,  # of each type
    "engine.emulators.pending": 64,  # types of emulators that have not answered
    "engine.sim.channel._carriers": 4096,  # losses of frequencies
    "engine.sim.weather_model.": 10_000,  # waves that were set
    "engine.sim.fleet.": 100_000,  # of models; the test of rejoining is stricter
    "engine.sim.channel.": 100_000,
}


def hold(world: World) -> None:
    """Check the invariants after each step."""
    server = world.server
    engine, front = server.engine, server.front
    if engine.command_executor._traced:
        raise Broken(f"internal: the engine failed: {_last_line(engine.command_executor._traced)}")
    if front is not None and front.sessions.drops["internal"]:
        raise Broken(f"internal: the front failed: {_last_line(front._traced)}")
    _limits(world)
    if front is not None:
        for token in world.answers.keys() - front.barrier.dismissed:
            del world.answers[token]
    if world.clock.steps % EVERY == 0 and front is not None:
        _bounds(front, world)
        _crew(front)
        if server.quiet:
            world.quiet_at = world.clock.now
            _bodies(world, front)


def _last_line(traces: set[str]) -> str:
    return " and ".join(sorted(t.strip().splitlines()[-1] for t in traces)) or "without a word"


def _limits(world: World) -> None:
    """Check that no participant waits longer than the time limit while there is an engine."""
    witness, server, now = world.witness, world.server, world.clock.now
    if server.engine.is_over or now < server.stood:
        return
    limit = world.scene.loaded.config.network.lockstep_timeout + GRACE_S
    waits, asks = witness.waits, witness.asks
    if (
        waits is not None
        and server.front is not None
        and now - max(waits.since, server.front_since, server.stood) > limit
    ):
        raise Broken(
            f"a barrier waits too long: since {now - waits.since:.2f} s at tick {waits.tick}: {server.front.barrier}"
        )
    if asks is not None and now - max(asks.since, server.stood) > limit:
        awaited = server.engine.emulators.pending
        raise Broken(f"emulators are awaited too long: since {now - asks.since:.2f} s at tick {asks.tick}: {awaited}")


def _bounds(front: Front, world: World) -> None:
    """Check the bounds of queues and tables."""
    sessions, engine = front.sessions, world.server.engine
    network = world.scene.loaded.config.network
    lengths = {
        "sessions": (len(sessions.by_token), network.sessions),
        "observers": (len(front.observers.by_token), network.observers),
        "commands that wait for the engine": (world.server.engine_queue.waiting_count, MOST_BACKLOG),
        "events that wait for the front": (world.server.engine_events.waiting_count, MOST_BACKLOG),
        "lockstep periods": (len(engine.run.lockstep), engine.sim.capacity),
    }
    for session in sessions.by_token.values():
        lengths[f"events of {session.name}"] = (len(session.outbox), reliable.MAX_PENDING)
        lengths[f"keep-alives of {session.name}"] = (len(session.keepalive_sent), 65)
    for what, (length, most) in lengths.items():
        if length > most:
            raise Broken(f"memory is not bounded: {what}: {length} of {most}")


def _crew(front: Front) -> None:
    """Check that the front knows every session by its role, and no others."""
    crew = front.crews.by_token.keys() | front.observers.by_token.keys()
    if crew != front.sessions.by_token.keys():
        raise Broken(f"crew and sessions differ: crew {sorted(crew)}, sessions {sorted(front.sessions.by_token)}")
    waiting = (
        front.barrier.waiting
        | front.barrier.dismissed
        | front.barrier.replies.keys()
        | front.request_handler.pending_sounds.keys()
    )
    if not waiting <= crew:
        raise Broken(f"somebody who left is remembered: {sorted(waiting - crew)}")


def _bodies(world: World, front: Front) -> None:
    """Check that occupants, identity and crew agree."""
    server = world.server
    identity = server.areas["vehicles"]["identity"].latest
    shown = {int(row): bytes(identity["name"][row]).decode() for row in np.flatnonzero(identity["present"])}
    there = {row: o.name for row, o in server.engine.sim.occupants.items()}
    known = {row: name for row, (name, _) in front.bodies.items()}
    if not shown == there == known:
        raise Broken(f"bodies differ: in the simulation {there}, in shared memory {shown}, for the front {known}")
    residents = {b.name for b in server.loaded.config.fleet.bodies if b.client == "none"}
    for row, name in known.items():
        pilot = front.crews.pilot(row)
        if name not in residents and row not in front.orphans and (pilot is None or pilot.grant.body != name):
            raise Broken(f"a body without a client: '{name}' in row {row} has the pilot {pilot}")
    for member in front.crews.by_token.values():
        if member.role is Role.PILOT and known.get(member.row) != member.grant.body:
            raise Broken(
                f"a pilot without a body: {member.grant.body} in row {member.row}, where {known.get(member.row)} is"
            )


def said(world: World) -> dict[int, tuple[int, int]]:
    """Return how many events and requests were sent to each session so far."""
    return {token: (len(b.events.said), len(b.requests.said)) for token, b in world.books.items()}


def at_rest(world: World, before: dict[int, tuple[int, int]]) -> None:
    """After the calm phase, check that every live client is served, and that nothing that was sent ``before`` is
    outstanding.
    """
    server = world.server
    front, engine = server.front, server.engine
    assert front is not None
    if not server.quiet and world.clock.now - world.quiet_at > 0.5 and not engine.is_over:
        raise Broken(
            f"no rest: {server.engine_queue.waiting_count} commands and {server.engine_events.waiting_count} events wait"
        )
    running = engine.run.state is RunState.RUNNING and not engine.is_over
    for client in world.clients:
        if client.gone or not client.honest:
            continue
        session = client.session
        if session is None or client.welcome is None:
            asks = session is not None and session.phase in (Phase.HELLO, Phase.JOINING)
            if asks and world.clock.now - client.joined_at > 1.2:
                raise Broken(f"not admitted: {client.name} asks since {world.clock.now - client.joined_at:.2f} s")
            continue
        book = world.books.get(session.token)
        if book is None or book.server is None or front.sessions.by_token.get(session.token) is not book.server:
            if client.live and world.clock.now - session.last_heard > FORGOTTEN_S:
                raise Broken(f"forgotten: {client.name} believes in its session, the server does not know it")
            continue
        events, requests = before.get(session.token, (0, 0))
        confirmed = book.server.outbox.last - len(book.server.outbox)
        if min(confirmed, book.events.heard) < events:
            raise Broken(
                f"events are owed: {client.name} heard {book.events.heard}, confirmed {confirmed} of {events} sent before"
            )
        if book.requests.heard < requests:
            raise Broken(f"requests are owed: the server heard {book.requests.heard} of {requests} of {client.name}")
        answered = world.clock.now - world.answers.get(session.token, world.clock.now)
        if answered > GRACE_S:
            raise Broken(f"left out: {client.name} answers since {answered:.2f} s and is not waited for")
        _served(world, client, running)
        _answered(world, client, book)


def _answered(world: World, client: Client, book: Book) -> None:
    """Check that the server answered every request. Sound waits for the next step of a lockstep client, and samples have no
    answer.
    """
    if world.server.engine.is_over:
        return
    for number in book.unanswered:
        item = msgpack.unpackb(book.requests.said[number - 1], strict_map_key=False, unicode_errors="surrogateescape")
        sound = (Request.PING, Request.SEND, Request.RANGE, Request.TRANSMIT, Request.SOUND_PART)
        if not isinstance(item, list) or not item or item[0] not in sound:
            raise Broken(f"no answer: {client.name} asked {item!r:.200} as number {number}, and received no answer")


def _served(world: World, client: Client, running: bool) -> None:
    """Check that a live client receives its body: states by wall time, or steps while the clock runs."""
    assert client.welcome is not None
    if client.role is Role.OBSERVER or world.server.engine.is_over:  # its bodies come and go no more
        return
    silence = world.clock.now - max(client.state_at, client.joined_at)
    if client.welcome.lockstep_ns:
        ticks, speed = client.welcome.lockstep_ns // world.step_ns, world.server.engine.pacer.speed
        slow = 1e-9 * client.welcome.lockstep_ns / speed if speed > 0.0 else 0.0  # somebody may have set a slow pace
        if running and silence > 1.0 + slow + ticks * (0.2 + world.scene.loaded.config.network.lockstep_timeout):
            raise Broken(f"no steps: {client.name} was not asked for {silence:.2f} s")
        return
    identity = world.server.areas["vehicles"]["identity"].latest[client.welcome.id]
    if not identity["present"] or bytes(identity["name"]).decode() != client.body:
        return
    silence = min(silence, world.clock.now - world.witness.came(client.welcome.id))  # it may have waited for its body
    if silence > 2.0 * client.period + 0.3:
        raise Broken(f"no states: {client.name} received none for {silence:.2f} s")


def no_client_left(world: World) -> None:
    """After all clients have left, check that only resident bodies remain."""
    front, engine = world.server.front, world.server.engine
    assert front is not None
    if front.sessions.by_token:
        raise Broken(f"somebody stayed: {sorted(s.name for s in front.sessions.by_token.values())}")
    if not engine.is_over:
        residents = {b.name for b in world.scene.loaded.config.fleet.bodies if b.client == "none"}
        there = {o.name for o in engine.sim.occupants.values()}
        if there != residents:
            raise Broken(f"bodies stayed: {sorted(there ^ residents)}")
        if world.commander.waiting:
            raise Broken(f"no reply: {world.commander.waiting}")


def nothing_left(world: World, before: dict[str, int]) -> None:
    """Later, check that no container is larger than at the beginning."""
    over = world.server.engine.is_over
    for place, size in world.server.sizes().items():
        if over and place.startswith(("front.pending_commands", "front.engine_queue.", "engine.")):
            continue  # nobody is there to take a command, to answer, nor to let go
        if size > before.get(place, 0) + next((n for p, n in ALLOWED.items() if place.startswith(p)), 0):
            raise Broken(f"memory is not given back: {place} holds {size}, {before.get(place, 0)} before")
