"""Handling of messages that operators send to DUNE's simulator. The bridge applies them to the vehicle: manual fixes,
leaks, servo faults and long-baseline beacons.

Fixes, leaks and faults become requests to the server. The vehicle needs rights for these requests: `<grant to="lauv"
role="pilot" rights="pose fault"/>`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

from wavesim_bridges import imc
from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.dune_acoustics import DuneAcoustics
from wavesim_bridges.dune_vehicle import ReferencePoint
from wavesim_bridges.imc_codec import ImcMessage
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import WaveSimError
from wavesim_world.config.sensors import LeakConfig

#: compartment of the vehicle for each leak-sensor label in DUNE
LEAKS = {"Leak Sensor - Nose": "bow", "Leak Sensor - Tail": "stern"}
COMPARTMENTS: Sequence[str] = LeakConfig().names
FAULT_LASTS_S = 60.0  #: duration of a servo fault in s, as in DUNE
REPORT_S = 1.0  #: simulation time in s between reports of the leak sensors' states
#: maximum distance in m of an operator's position fix from the origin; the bridge rejects a fix beyond this distance
FARTHEST_M = 1e5
OF_SERVOS, OF_LBL = "Servos", "LBL"  #: DUNE entities whose parameters can be set
Answer = Callable[[ImcMessage], None]
#: function that sends a message; its second argument is the label of the source entity
Send = Callable[[ImcMessage, str], None]


def parse_compartment(text: str) -> tuple[str, str]:
    """Parse an option such as `Leak Sensor - Nose=bow`."""
    label, _, name = text.rpartition("=")
    if not label or name not in COMPARTMENTS:
        raise WaveSimError(
            f"invalid leak sensor '{text}'; write LABEL=COMPARTMENT, where COMPARTMENT is one of {', '.join(COMPARTMENTS)}"
        )
    return label, name


class OperatorCommands:
    """Queue of operators' messages. Messages arrive at any time, and are applied at the vehicle's next step."""

    def __init__(
        self,
        say: Callable[[str], None],
        reference: ReferencePoint,
        servos: Sequence[str],
        leaks: Mapping[str, str],
        sound: DuneAcoustics | None,
        send: Send,
        seed: int,
    ) -> None:
        self._say, self._reference, self.servos, self._leaks = say, reference, servos, leaks
        self._acoustics, self._send, self._rng = sound, send, random.Random(seed)
        self._pending_commands: list[Callable[[AsyncBroker], None]] = []
        self._pending_requests: dict[
            int, tuple[str, Callable[[], None] | None]
        ] = {}  #: for each request number, the purpose of the request, and the action to take if it succeeds
        self._wet: set[str] = set()
        self._generate, self._fault_time, self._fault_at = False, 10.0, math.inf
        self._reported_leaks: tuple[bool, ...] = ()
        self._reported_at, self._now = -math.inf, 0.0

    # -- messages ----------------------------------------------------------------------------------------

    def handle(self, message: ImcMessage, answer: Answer) -> bool:
        """Process a message and return whether it came from an operator. Raise MalformedMessage if it is invalid."""
        match message:
            case imc.GpsFix(type=imc.GpsFix.GFT_MANUAL_INPUT):
                self._fix(message)
            case imc.LeakSimulation(op=op, entities=entities):
                self._leak(bool(op), [e.strip() for e in entities.split(",")] if entities else list(self._leaks))
            case imc.LblConfig():
                self._lbl(message, answer)
            case imc.SetEntityParameters(name=name, params=params):
                self._set(name, {p.name: p.value for p in params if isinstance(p, imc.EntityParameter)})
                answer(imc.EntityParameters(name, self._parameters(name)))
            case _:
                return False
        return True

    def _fix(self, fix: imc.GpsFix) -> None:
        """Move the vehicle to a position on the surface. Later states are relative to this position, as in DUNE's own
        physics.
        """
        if not (abs(fix.lat) <= math.pi / 2 and abs(fix.lon) <= math.pi):
            raise MalformedMessage("invalid position")
        north, east = self._reference.world.metres(math.degrees(fix.lat), math.degrees(fix.lon))
        if math.hypot(north, east) > FARTHEST_M:
            raise MalformedMessage("invalid position")
        heading = fix.cog if math.isfinite(fix.cog) else 0.0

        def put(broker: AsyncBroker) -> None:
            request = broker.pose((north, east, 0.0), (0.0, 0.0, heading), (0.0,) * 6)
            self._pending_requests[request] = "the fix", lambda: self._reference.move(north, east)

        self._pending_commands.append(put)

    def _leak(self, on: bool, labels: Sequence[str]) -> None:
        wet = {self._leaks[label] for label in labels if label in self._leaks}
        if not wet:
            raise MalformedMessage("no such leak sensor")

        def put(broker: AsyncBroker) -> None:
            part = next((s.name for s in broker.sensors if s.type == "leak"), "leak")
            self._wet = self._wet | wet if on else self._wet - wet
            if not on:
                self._pending_requests[broker.fault(part, "none")] = "the request to end a leak", None
            for name in sorted(self._wet):
                self._pending_requests[broker.fault(part, "wet", field=name)] = "the request for a leak", None

        self._pending_commands.append(put)

    def _lbl(self, message: imc.LblConfig, answer: Answer) -> None:
        if self._acoustics is None:
            raise MalformedMessage("neither a modem nor a transponder is configured")
        if message.op == imc.LblConfig.OP_SET_CFG:
            self._acoustics.configure(message.beacons)
        elif message.op == imc.LblConfig.OP_GET_CFG:
            answer(imc.LblConfig(imc.LblConfig.OP_CUR_CFG, self._acoustics.beacons))

    def _set(self, entity: str, values: Mapping[str, str]) -> None:
        for name, text in values.items():
            match entity, name:
                case "Servos", "Generate Faults":
                    self._generate = _parse_bool(text)
                    self._fault_at = self._now + self._fault_time if self._generate else math.inf
                case "Servos", "Fault Time":
                    self._fault_time = _seconds(text)
                    self._fault_at = self._now + self._fault_time if self._generate else math.inf
                case "LBL", "Active" if self._acoustics is not None:
                    self._acoustics.active = _parse_bool(text)
                case "LBL", "Ping Delay" if self._acoustics is not None:
                    self._acoustics.ping_delay = max(_seconds(text), 0.1)
                case _:
                    raise MalformedMessage("no such parameter")

    def _parameters(self, entity: str) -> tuple[imc.EntityParameter, ...]:
        if entity == OF_SERVOS:
            found = {"Generate Faults": _format_bool(self._generate), "Fault Time": f"{self._fault_time:g}"}
        elif entity == OF_LBL and self._acoustics is not None:
            found = {"Active": _format_bool(self._acoustics.active), "Ping Delay": f"{self._acoustics.ping_delay:g}"}
        else:
            raise MalformedMessage("no such parameter")
        return tuple(imc.EntityParameter(*pair) for pair in found.items())

    # -- steps -------------------------------------------------------------------------------------------

    def advance(self, broker: AsyncBroker, step: Step) -> None:
        """Send the collected requests to the server, before the bridge answers the step. The server's replies arrive
        with later steps.
        """
        if step.time < self._now:  # the server was restarted
            self._fault_at -= self._now - step.time
            self._reported_at = -math.inf
            self._pending_requests.clear()
        self._now = step.time
        for done in step.answers:
            what, then = self._pending_requests.pop(done.request, ("", None))
            if not done.ok and what:
                self._say(f"{what} was refused: {done.text}")
            elif then is not None:
                then()
        for refused in step.refused:
            what, _ = self._pending_requests.pop(refused.request, ("", None))
            if what:
                self._say(f"{what} was refused: {refused.text}")
        if step.time >= self._fault_at and self.servos:
            self._fault_at = math.inf
            self._pending_commands.append(self._freeze)
        orders, self._pending_commands = self._pending_commands, []
        for order in orders:
            order(broker)
        self._report(broker, step)

    def _freeze(self, broker: AsyncBroker) -> None:
        name = self._rng.choice(self.servos)
        self._say(f"the servo of '{name}' fails for {FAULT_LASTS_S:g} s")
        self._pending_requests[broker.fault(name, "frozen", FAULT_LASTS_S)] = "the fault", None

    def _report(self, broker: AsyncBroker, step: Step) -> None:
        """Report the leak detector's values as states of DUNE's leak sensors, both when they change and periodically."""
        name = next((s.name for s in broker.sensors if s.type == "leak"), None)
        value = step.sensors.get(name) if name is not None else None
        if value is None:
            return
        wet = tuple(bool(w > 0.5) for w in value.numbers)
        if wet == self._reported_leaks and step.time < self._reported_at + REPORT_S:
            return
        self._reported_leaks, self._reported_at = wet, step.time
        for label, where in self._leaks.items():
            leaks = wet[COMPARTMENTS.index(where)]
            state, text = (
                (imc.EntityState.ESTA_FAILURE, "leak detected") if leaks else (imc.EntityState.ESTA_NORMAL, "active")
            )
            self._send(imc.EntityState(state, 0, text), label)


def _parse_bool(text: str) -> bool:
    return text.strip().lower() in ("true", "1", "yes")


def _format_bool(value: bool) -> str:
    return "true" if value else "false"


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise MalformedMessage("no number")
    return value
