"""Commands from sessions and from the commander: their permissions, their execution by the engine, and the return of
their results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wavesim_sdk import commands
from wavesim_sdk.actuators import fault_amount
from wavesim_sdk.commands import Command
from wavesim_sdk.device_faults import device_of, line_fault_amount
from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire import items
from wavesim_server.messages import ExecutedEvent
from wavesim_server.network.admission import BodyParts
from wavesim_server.network.crews import Crews, SessionGrant
from wavesim_server.network.key_changes import VERB as RELOAD_KEYS
from wavesim_world.sensor_faults import parse_fault

COMMANDER, CONFIGURATION = "", "configuration"  #: identifiers of those senders that are not sessions
MAX_PENDING = 256  #: maximum number of pending commands
AnswerCallback = Callable[[bool, str], None]


def permit_command(command: Command, berth: SessionGrant) -> Command:
    """Return a session's command with the session's own body filled in. Raises ValueError if the session may not send
    the command.
    """
    right = commands.RIGHTS[type(command)]
    if not berth.rights & right:
        verb = commands.verb_of(command)
        raise ValueError(f"this session is not permitted to use '{verb}'; grant permission with <network><grant>")
    if isinstance(command, items.SnapshotAction) and commands.is_snapshot_file(command.name):
        raise ValueError("snapshot: a session may not name a file; use a name without '/' and '.snapshot'")
    body = commands.target_body(command)
    if body is None:
        return commands.check_plausible(command)
    own = berth.body
    if not body and not own:
        raise ValueError(f"'{commands.verb_of(command)}' needs the name of a body")
    if body not in ("", own) and not berth.watches_others:
        raise ValueError(
            'this session may command its own body only; to allow commands to other bodies, set <grant others="yes">'
        )
    return commands.check_plausible(commands.for_body(command, body or own))


def check_recipient(command: Command, crews: Crews) -> Command:
    """Return the command. Raises ValueError if its recipient (a program or a device) is absent or refuses it."""
    if isinstance(command, items.Mission) and crews.mission_pilot(command.body) is None:
        raise ValueError(f"mission: no program that accepts missions is driving '{command.body}'")
    if isinstance(command, items.VehicleCommand) and crews.pilot_of(command.body) is None:
        raise ValueError(f"command: no program drives '{command.body}'")
    if isinstance(command, items.Fault) and (device := device_of(command.part)):
        known = crews.devices_of(command.body)
        if device not in known:
            what = suggest_name(device, known) or "; no device of this body has joined"
            raise ValueError(f"fault: '{command.body}' has no device '{device}'{what}")
        if command.field:
            raise ValueError(f"fault: '{command.part}' is a device; remove the field, because only sensors have fields")
    return command


def parse_queue_command(message: dict[str, Any], parts_of: Callable[[str], BodyParts]) -> Command:
    """Parse a command from the commander's queue. Raises ValueError, stating the reason, if the command is invalid.

    ``parts_of`` returns the actuators and sensors of a body; it is needed because the magnitude of a fault may contain
    a unit.
    """
    arguments = {k: v for k, v in message.items() if k not in ("verb", "reply", "id")}
    verb = message["verb"]
    if verb not in commands.TIMER_VERBS and verb not in commands.VERBS:
        known = [*commands.TIMER_VERBS, *commands.VERBS, "status", RELOAD_KEYS]
        raise ValueError(f"no command named '{verb[:40]}'{suggest_name(verb[:40], known)}")
    if verb == "fault" and isinstance(amount := arguments.get("amount"), str):
        if arguments.get("kind") == "wet":  # its amount is a compartment, which the field names
            arguments |= {"amount": None, "field": amount}
        else:
            arguments["amount"] = _amount_in_unit(arguments, amount, parts_of)
    return commands.make_command(verb, arguments)


def _amount_in_unit(arguments: dict[str, Any], amount: str, parts_of: Callable[[str], BodyParts]) -> float:
    """Parse the magnitude of a fault, with or without a unit, and return it as a number."""
    try:
        return float(amount)
    except ValueError:
        pass
    body, part, kind = (str(arguments.get(k)) for k in ("body", "part", "kind"))
    if device_of(part):
        return line_fault_amount(kind, amount)
    known = parts_of(body)
    instrument = next((i for i in known.sensors if i.name == part), None)
    actuator = next((a for a in known.actuators if a.name == part), None)
    if instrument is not None:
        return parse_fault(instrument, kind, amount, str(arguments.get("field") or "")).amount
    if actuator is not None:
        return fault_amount(actuator, kind, amount)
    raise ValueError(
        f"fault: '{body}' has no actuator or sensor '{part}', so the magnitude '{amount[:40]}' must be a plain number"
    )


@dataclass(frozen=True)
class _PendingCommand:
    sender: str
    answer: AnswerCallback


class PendingCommands:
    """Commands that the engine has not yet answered."""

    def __init__(self, execute: Callable[[int, bytes], None]) -> None:
        self._execute = execute  # sends a number and a command in the bytes of the wire to the engine
        self._pending: dict[int, _PendingCommand] = {}
        self._number = 0

    def submit(self, command: Command, by: str, answer: AnswerCallback) -> None:
        """Send a command to the engine. Raises ValueError if too many commands are pending."""
        if len(self._pending) >= MAX_PENDING:
            raise ValueError(f"too many pending commands; the maximum is {MAX_PENDING}")
        self._execute(self._number + 1, commands.encode(command))  # if this fails, no answer is awaited
        self._number += 1
        self._pending[self._number] = _PendingCommand(by, answer)

    def complete(self, event: ExecutedEvent) -> tuple[str, Command]:
        """Send the result of a command to its sender; return the sender and the command."""
        waiting = self._pending.pop(event.number, None)
        if waiting is not None:
            waiting.answer(bool(event.ok), event.text)
        by = waiting.sender if waiting is not None else "" if event.number else CONFIGURATION
        return by, commands.decode(event.command)
