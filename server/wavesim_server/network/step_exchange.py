"""Exchange of messages for a lockstep step. It sends STEP to the participants, passes their answers to the engine, and
measures how long the participants take.

Instruments receive STEP when all pilots have answered theirs. By then, the bytes that an on-board program has written
to its devices during its own step have arrived, so that a run with devices is repeatable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from wavesim_sdk.wire.messages import Role
from wavesim_sdk.wire.session import Session, StepDone
from wavesim_server.messages import LockstepDueEvent, ReleaseCommand, SlowEmulator
from wavesim_server.network.crews import CrewMember, Crews
from wavesim_server.network.engine_queue import EngineCommands
from wavesim_server.network.lockstep import Barrier
from wavesim_server.network.run_reports import RunReports
from wavesim_server.network.simulation_clock import SimulationClock
from wavesim_server.waits import SHARE, Waits
from wavesim_world.config.model import NetworkConfig


class SessionEnds(Protocol):
    """Interface for ending sessions."""

    def bye(self, session: Session, text: str, reason: str = "ended") -> None:
        """End a session."""

    def fail_session(self, session: Session | None, error: Exception) -> None:
        """Report an unexpected exception, and end the session that was being served."""


class StepBroadcaster(Protocol):
    """Interface for sending STEP."""

    def send_steps(self, members: list[CrewMember], tick: int, now: float) -> None:
        """Send the STEP for a tick."""


class StepExchange:
    """Lockstep in the front end. ``take_sounds`` returns the acoustic requests that a session has made for this
    step."""

    def __init__(
        self,
        limits: NetworkConfig,
        sessions: SessionEnds,
        crews: Crews,
        sender: StepBroadcaster,
        engine_queue: EngineCommands,
        clock: SimulationClock,
        reports: RunReports,
        take_sounds: Callable[[int], Sequence[tuple[int, bytes]]],
    ) -> None:
        self.barrier = Barrier(limits.lockstep_timeout)
        self.waits = Waits(limits.lockstep_budget)
        self.slow_emulators: set[str] = set()  #: sensor types that the engine reports as slow
        self._instrument_rows: list[int] = []  #: rows whose instruments have not yet received the STEP for this tick
        self._sessions, self._crews, self._sender, self._engine_queue = sessions, crews, sender, engine_queue
        self._clock, self._reports, self._take_sounds = clock, reports, take_sounds

    # -- input -------------------------------------------------------------------------------------

    def begin(self, step: LockstepDueEvent, generations: Any, now: float) -> None:
        """Send a STEP to each participant that is due; ``generations`` contains the generation that is served in each
        row.
        """
        rows = [row for row, life in zip(step.rows, step.generations, strict=True) if life == generations[row]]
        pilots = [m for row in rows if (m := self._crews.pilot(row)) is not None and m.is_due(step.tick)]
        self.barrier.begin(step.tick, [m.session.token for m in pilots], now)
        self._instrument_rows = [row for row in rows if self._crews.instruments_due(row, step.tick)]
        self._send(pilots, now)

    def take(self, done: StepDone, now: float) -> None:
        """Process the answer from a participant."""
        session, tick = done.session, done.message.tick
        spent = tick == self.barrier.tick and self._charge(session, now)
        self.barrier.add_reply(session.token, tick, done)
        if spent:
            self._end_without_budget(session)

    def replace(self, member: CrewMember, former: Session, same_client: bool, now: float) -> None:
        """Continue with the session that has replaced the former session of a participant."""
        token = member.session.token
        if not self.barrier.replace_client(former.token, token, same_client):
            return
        if member.in_lockstep:
            self._send([member], now)
        else:
            self.barrier.remove_client(token)

    def remove(self, session: Session, now: float) -> None:
        """Remove a participant whose session has ended."""
        self._charge(session, now)
        self.barrier.remove_client(session.token)

    def report_emulator(self, event: SlowEmulator) -> None:
        """Report that the simulation has started or stopped waiting for an emulator."""
        (self.slow_emulators.add if event.slow else self.slow_emulators.discard)(event.sensor)
        self._reports.notice(f"emulator {event.sensor}", event.text)

    def cancel(self) -> None:
        """Abandon the current step, because the simulation time has changed."""
        self.barrier.cancel()
        self._instrument_rows = []
        self.waits.accounts.clear()

    def forgive(self, seconds: float) -> None:
        """Extend all time limits by the duration of a stall of the front end."""
        self.barrier.forgive(seconds)
        self.waits.forgive(seconds)

    # -- time --------------------------------------------------------------------------------------

    def end_those_without_budget(self, now: float) -> None:
        """End the sessions of the awaited participants whose budget is used up."""
        assert self.barrier.tick is not None
        time_s, waited = self._clock.time_s(self.barrier.tick), now - self.barrier.since
        for token in sorted(self.barrier.waiting):
            member = self._crews.by_token.get(token)
            if member is not None and waited > self.waits.left(member.session.name, time_s):
                self._end_without_budget(member.session)

    def report_slow(self, now: float) -> None:
        """Report the participants that have become slow, or are no longer slow. The status lists them while they are
        slow.
        """
        for verdict in self.waits.look(now, self._clock.time_ns * 1e-9, self._held()):
            self._reports.notice(verdict.name, verdict.text)

    def release(self, now: float) -> None:
        """Pass the answers to the engine when all of them have arrived or the time limit has expired."""
        if self._instrument_rows and not self.barrier.waiting:
            self._begin_instruments(now)
        tick, late, since = self.barrier.tick, self.barrier.waiting, self.barrier.since
        replies = self.barrier.take_replies(now)
        if replies is None or tick is None:
            return
        self._instrument_rows = []
        for member in filter(None, map(self._crews.by_token.get, sorted(late))):
            text = f"'{member.session.name}' did not answer its step within {self.barrier.time_limit:g} s"
            self._reports.print_line(f"{text}; until this client answers again, the server does not wait for it")
            self._reports.data_loss.record(text)
            if self.waits.charge(member.session.name, now - since, now, self._clock.time_s(tick)):
                self._end_without_budget(member.session)
        answering = (m for m in map(self._crews.by_token.get, replies) if m is not None)
        for member in sorted(answering, key=lambda m: (m.row, m.ordinal)):
            token = member.session.token
            reply = replies[token]
            if member.role is Role.PILOT:
                self._engine_queue.forward(member.row, token, reply.message, reply.payload)
            for number, item in self._take_sounds(token):
                self._engine_queue.request(member.row, number, item)
            if reply.message.estimate is not None and member.role is Role.PILOT:
                try:
                    self._reports.estimate(member, reply.message.estimate, self._clock.time_ns_of(tick))
                except Exception as error:  # the engine waits and must be released in any case
                    self._sessions.fail_session(member.session, error)
        self._engine_queue.send(ReleaseCommand(tick))

    # -- accounts ----------------------------------------------------------------------------------

    def account(self, name: str, now: float) -> dict[str, float]:
        """Return the time for which the simulation has waited for a client, and the client's remaining budget (wall
        time).
        """
        account = self.waits.accounts.get(name)
        waiting = max(now - since, 0.0) if (since := self._held().get(name)) is not None else 0.0
        waited = account.waited_s if account is not None else 0.0
        left = self.waits.left(name, self._clock.time_s(self._clock.tick))
        return {"waited_s": round(waited + waiting, 3), "budget_left_s": round(left - waiting, 3)}

    @property
    def slow_names(self) -> list[str]:
        """Names of the slow participants."""
        return [*self.waits.slow, *(f"emulator {s}" for s in sorted(self.slow_emulators))]

    def _held(self) -> dict[str, float]:
        """Return the lockstep clients for which the engine is waiting, and since when."""
        waiting = (self._crews.by_token.get(token) for token in self.barrier.waiting)
        return {member.session.name: self.barrier.since for member in waiting if member is not None}

    def _charge(self, session: Session, now: float) -> bool:
        """Charge the wait to a client that has answered or is leaving; return whether its budget is used up."""
        barrier = self.barrier
        if barrier.tick is None or session.token not in barrier.waiting:
            return False
        return self.waits.charge(session.name, now - barrier.since, now, self._clock.time_s(barrier.tick))

    def _end_without_budget(self, session: Session) -> None:
        self._sessions.bye(
            session,
            f"this client answered too slowly: its delays beyond {SHARE:g} s per simulated second used up its budget of "
            f"{self.waits.budget_s:g} s (<network lockstep_budget>)",
            "lockstep",
        )

    def _begin_instruments(self, now: float) -> None:
        """Send a STEP to each instrument that is due, after the pilots have answered theirs."""
        assert self.barrier.tick is not None
        rows, self._instrument_rows = self._instrument_rows, []
        members = [m for row in rows for m in self._crews.instruments_due(row, self.barrier.tick)]
        if members:
            self.barrier.extend([m.session.token for m in members], now)
            self._send(members, now)

    def _send(self, members: list[CrewMember], now: float) -> None:
        assert self.barrier.tick is not None
        self._sender.send_steps(members, self.barrier.tick, now)
