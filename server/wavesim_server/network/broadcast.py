"""Datagrams to many sessions: STATE and STEP for clients, and FLEET for observers. A failure affects only the session
that caused it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wavesim_sdk.arrays import Record
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.wire.messages import HEADER_BYTES, Fleet, Type
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import PendingStep, Session
from wavesim_server.network.crews import CrewMember, Crews
from wavesim_server.network.local_states import LocalStates
from wavesim_server.network.observers import Observers
from wavesim_server.network.state_datagrams import StateWriter, TableSnapshots, finish_datagrams

Address = tuple[str, int]
BATCHING_S = 0.005  #: maximum time between two batches of states


@dataclass(frozen=True)
class DatagramRows:
    """Datagrams of the same length, one for each row, and the sessions that receive them."""

    matrix: Any
    sessions: list[Session]

    def __iter__(self) -> Iterator[tuple[bytes, Address]]:
        return ((row.tobytes(), s.address) for row, s in zip(self.matrix, self.sessions, strict=True))


class StateBroadcaster:
    """Writes datagrams into :attr:`outgoing`, in the order of their sequence numbers.

    ``bodies`` contains the bodies in the simulation by row, and ``lives`` contains their generations.
    """

    def __init__(
        self,
        vehicles: SharedMemoryArea,
        step_ns: int,
        sessions: ServerSessions,
        crews: Crews,
        observers: Observers,
        bodies: Mapping[int, object],
        tick_and_state: Callable[[], tuple[int, int]],
        lives: Any,
    ) -> None:
        self.vehicles, self.step_ns = vehicles, step_ns
        self.sessions, self.crews, self.observers = sessions, crews, observers
        self.outgoing: list[list[tuple[bytes, Address]] | DatagramRows] = []
        self.writer = StateWriter(vehicles, step_ns)
        self._local_states = LocalStates(vehicles, step_ns, self.writer.instruments)
        self._bodies, self._tick_and_state, self._generations = bodies, tick_and_state, lives

    def identity(self) -> Record:
        """Return the `identity` table."""
        return self.vehicles["identity"].snapshot()[1]

    def collect_session_datagrams(self) -> None:
        """Move the datagrams that the sessions have produced to :attr:`outgoing`."""
        if self.sessions.outgoing:
            self.outgoing.append(self.sessions.outgoing)
            self.sessions.outgoing = []

    def send_steps(self, members: list[CrewMember], tick: int, now: float) -> None:
        """Send a STEP message to each of the given lockstep clients."""
        run_state = self._tick_and_state()[1]
        remote = self._hand_to_local(members, tick, run_state, is_step=True)
        if remote:
            for m in remote:
                self.sessions.flush_events(m.session, now)
            self._write(remote, self.writer.view(tick, run_state), Type.STEP, now)

    def poll(self, now: float) -> float:
        """Send the STATE and FLEET messages that are due; return the time at which to call this method again."""
        due = [m for m in self.crews.unpaced if now >= m.next_state]
        if due:
            self._send_states(due, now)
        watching = self.observers.due(now)
        if watching:
            self._send_fleets(watching)
        later = self.observers.next_timer()
        if self.crews.unpaced:
            later = min(later, now + min(max(0.25 * self.crews.shortest_period, 0.001), BATCHING_S))
        return later

    def _send_states(self, due: list[CrewMember], now: float) -> None:
        if not all(m.is_aboard for m in due):
            self._mark_aboard([m for m in due if not m.is_aboard])
        for m in due:
            behind = now - m.next_state
            m.next_state = now + m.period - (behind if behind < m.period else 0.0)
        tick, run_state = self._tick_and_state()
        remote = self._hand_to_local([m for m in due if m.is_aboard], tick, run_state, is_step=False)
        if remote:
            self._write(remote, self.writer.view(tick, run_state), Type.STATE, now)

    def _mark_aboard(self, members: list[CrewMember]) -> None:
        """Mark the bodies that the engine has added. Before they are marked, their rows do not contain data to send."""
        identity = self.identity()
        for m in members:
            who = identity[m.row]
            there = m.row in self._bodies and bool(who["present"])
            m.is_aboard = there and who["generation"] == self._generations[m.row]

    def _send_fleets(self, watching: list[Any]) -> None:
        state, identity = self.vehicles["state"].snapshot()[1], self.identity()
        tick, run_state = self._tick_and_state()
        for watch in watching:
            for part, parts, records in self.observers.fleet_parts(watch, identity, state):
                self.sessions.send(watch.session, Fleet(tick, tick * self.step_ns, run_state, part, parts, records))

    def _write(self, members: list[CrewMember], view: TableSnapshots, kind: Type, now: float) -> None:
        """Write the states of the given sessions in as few calls as possible.

        If a call fails, write the states one by one, so that only one session fails.
        """
        self.collect_session_datagrams()
        try:
            self._write_some(members, view, kind, now)
        except Exception as error:
            if len(members) == 1:
                self.sessions.fail_session(members[0].session, error)
                return
            for m in members:
                if not m.session.is_over:
                    self._write([m], view, kind, now)

    def _hand_to_local(self, members: list[CrewMember], tick: int, run_state: int, is_step: bool) -> list[CrewMember]:
        """Pass the states to the clients in this process; return the members whose clients are elsewhere."""
        remote = []
        for m in members:
            session = m.session
            if (client := session.client) is None:
                remote.append(m)
                continue
            try:
                if is_step:
                    session.pending_step, session.pending_done = PendingStep(tick), None
                client.take_state(self._local_states.make(m, client.body, tick, run_state, is_step))
            except Exception as error:
                self.sessions.fail_session(session, error)
        return remote

    def _write_some(self, members: list[CrewMember], view: TableSnapshots, kind: Type, now: float) -> None:
        for some, payloads in self.writer.write(members, view, kind):
            sessions = [m.session for m in some]
            if isinstance(payloads[0][1], bytes):
                if kind is Type.STEP:
                    self.sessions.track_step(sessions[0], view.tick, payloads, now)
                self.sessions.send_payloads(sessions[0], payloads)
                continue
            if kind is Type.STEP:
                for k, s in enumerate(sessions):
                    plain = [(t, matrix[k, HEADER_BYTES:].tobytes()) for t, matrix in payloads]
                    self.sessions.track_step(s, view.tick, plain, now)
            for type_, matrix in payloads:
                done = finish_datagrams(sessions, type_, matrix)
                if len(done) == 1:
                    self.outgoing.append(DatagramRows(done[0], sessions))
                else:
                    self.outgoing += [DatagramRows(row, [s]) for row, s in zip(done, sessions, strict=True)]
        self.collect_session_datagrams()
