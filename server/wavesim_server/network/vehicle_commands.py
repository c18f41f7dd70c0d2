"""Forwarding of vehicle commands to the program that drives the body, and of its answers to the senders."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wavesim_sdk.tables import RunState
from wavesim_sdk.wire import items
from wavesim_sdk.wire.items import CommandResult
from wavesim_sdk.wire.server import ServerSessions
from wavesim_server.network.commands import AnswerCallback
from wavesim_server.network.crews import CrewMember, Crews
from wavesim_server.network.simulation_clock import SimulationClock

#: time in s, on the front end's clock, within which a program must answer; shorter than the default timeouts of all
#: senders
ANSWER_TIMEOUT_S = 4.0
RESULT_TEXTS = {
    CommandResult.ACCEPTED: "accepted",
    CommandResult.REFUSED: "refused",
    CommandResult.NOT_SUPPORTED: "not supported",
}


@dataclass(frozen=True)
class _OpenCommand:
    """Command that a pilot has received but not yet answered."""

    row: int
    action: str
    deadline: float
    answer: AnswerCallback


class VehicleCommands:
    """Commands that the engine has executed and the program has not yet answered."""

    def __init__(
        self,
        sessions: ServerSessions,
        crews: Crews,
        clock: SimulationClock,
        now: Callable[[], float],
        report_notice: Callable[[int, CrewMember, str], None],
    ) -> None:
        self._sessions, self._crews, self._clock, self._now = sessions, crews, clock, now
        self._report_notice = report_notice
        self._open: dict[int, _OpenCommand] = {}
        self._number = 0

    def answer_later(self, command: Any, answer: AnswerCallback) -> AnswerCallback:
        """Return the function that receives the engine's result for a command.

        The result of a vehicle command is the answer from the program; the result of any other command comes from the
        engine.
        """
        if not isinstance(command, items.VehicleCommand):
            return answer
        return lambda ok, text: self._forward(command, answer) if ok else answer(ok, text)

    def _forward(self, command: items.VehicleCommand, answer: AnswerCallback) -> None:
        pilot = self._crews.pilot_of(command.body)
        if pilot is None:
            answer(False, f"command: no program drives '{command.body}'")
            return
        self._number += 1
        deadline = self._now() + ANSWER_TIMEOUT_S
        self._open[self._number] = _OpenCommand(pilot.row, command.action, deadline, answer)
        self._sessions.push(pilot.session, items.CommandReceived(self._number, command.action, command.point))

    def take(self, member: CrewMember | None, answer: items.CommandAnswer) -> None:
        """Process a program's answer by returning it to the sender and publishing it as a notice. Raises ValueError if
        the answer is invalid.
        """
        command = self._open.get(answer.number)
        if (
            member is None
            or command is None
            or command.row != member.row
            or member is not self._crews.pilot(member.row)
        ):
            raise ValueError(f"no vehicle command {answer.number} is waiting for an answer from this session")
        del self._open[answer.number]
        result = CommandResult(answer.result)
        text = RESULT_TEXTS[result] + (f": {answer.text}" if answer.text else "")
        self._report_notice(self._clock.time_ns, member, f"{command.action}: {text}")
        command.answer(result is CommandResult.ACCEPTED, text)

    def discard(self, row: int) -> None:
        """Answer the commands to a body whose pilot has left."""
        self._close(lambda command: command.row == row, "no answer: the program disconnected before answering")

    def poll(self, now: float) -> float:
        """Answer the commands whose time has expired. Return the next deadline, which is infinite if no command is
        waiting.
        """
        if not self._open:
            return math.inf
        running = self._clock.tick_and_state()[1] == RunState.RUNNING
        text = f"no answer within {ANSWER_TIMEOUT_S:g} s" + ("" if running else "; the simulation clock is stopped")
        self._close(lambda command: now >= command.deadline, text)
        return min((command.deadline for command in self._open.values()), default=math.inf)

    def _close(self, applies: Callable[[_OpenCommand], bool], text: str) -> None:
        for number in [number for number, command in self._open.items() if applies(command)]:
            self._open.pop(number).answer(False, text)
