"""What an operator says to DUNE's simulator acts on the vehicle here: a manual fix, leaks, faults of servos, the long baseline.

Fixes, leaks and faults are requests to the server, which need a right: `<grant to="lauv" role="pilot" rights="pose fault"/>`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

from wavesim_bridges import imc
from wavesim_bridges.dune_sound import Sound
from wavesim_bridges.dune_vehicle import Reference
from wavesim_bridges.imc_codec import Message, Unusable
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.config.sensors import LeakConfig
from wavesim_sdk.errors import WaveSimError

#: compartments by the labels of DUNE's leak sensors
LEAKS = {"Leak Sensor - Nose": "bow", "Leak Sensor - Tail": "stern"}
COMPARTMENTS: Sequence[str] = LeakConfig().names
FAULT_LASTS_S = 60.0  #: as in DUNE
REPORT_S = 1.0  #: of simulation time: leak sensors tell their state so often
FARTHEST_M = 1e5  #: a fix beyond is none
OF_SERVOS, OF_LBL = "Servos", "LBL"  #: entities whose parameters are known
Answer = Callable[[Message], None]
Tell = Callable[[Message, str], None]  #: message, label of the entity that says it


def compartment(text: str) -> tuple[str, str]:
    """`Leak Sensor - Nose=bow`."""
    label, _, name = text.rpartition("=")
    if not label or name not in COMPARTMENTS:
        raise WaveSimError(f"'{text}' is no leak; write LABEL=COMPARTMENT, one of {', '.join(COMPARTMENTS)}")
    return label, name


class Operator:
    """Takes messages as they come, and does what they say when the vehicle is at a step."""

    def __init__(
        self, say: Callable[[str], None], reference: Reference, servos: Sequence[str], leaks: Mapping[str, str],
        sound: Sound | None, tell: Tell, seed: int,
    ) -> None:  # fmt: skip
        self._say, self._reference, self._servos, self._leaks = say, reference, servos, leaks
        self._sound, self._tell, self._dice = sound, tell, random.Random(seed)
        self._orders: list[Callable[[AsyncBroker], None]] = []
        self._asked: dict[int, tuple[str, Callable[[], None] | None]] = {}  #: requests: what for, what to do then
        self._wet: set[str] = set()
        self._generate, self._fault_time, self._fault_at = False, 10.0, math.inf
        self._told: tuple[bool, ...] = ()
        self._told_at, self._now = -math.inf, 0.0

    # -- messages ----------------------------------------------------------------------------------------

    def hear(self, message: Message, answer: Answer) -> bool:
        """Whether it was one of an operator's. Unusable for one that makes no sense."""
        match message:
            case imc.GpsFix(type=imc.MANUAL_INPUT):
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
        """The vehicle is put on the surface there; states count from there, as those of DUNE's own physics do."""
        if not (abs(fix.lat) <= math.pi / 2 and abs(fix.lon) <= math.pi):
            raise Unusable("no place")
        north, east = self._reference.world.metres(math.degrees(fix.lat), math.degrees(fix.lon))
        if math.hypot(north, east) > FARTHEST_M:
            raise Unusable("no place")
        heading = fix.cog if math.isfinite(fix.cog) else 0.0

        def put(broker: AsyncBroker) -> None:
            request = broker.pose((north, east, 0.0), (0.0, 0.0, heading), (0.0,) * 6)
            self._asked[request] = "the fix", lambda: self._reference.move(north, east)

        self._orders.append(put)

    def _leak(self, on: bool, labels: Sequence[str]) -> None:
        wet = {self._leaks[label] for label in labels if label in self._leaks}
        if not wet:
            raise Unusable("no such leak sensor")

        def put(broker: AsyncBroker) -> None:
            part = next((s.name for s in broker.sensors if s.type == "leak"), "leak")
            self._wet = self._wet | wet if on else self._wet - wet
            if not on:
                self._asked[broker.fault(part, "none")] = "the end of a leak", None
            for name in sorted(self._wet):
                self._asked[broker.fault(part, "wet", field=name)] = "the leak", None

        self._orders.append(put)

    def _lbl(self, message: imc.LblConfig, answer: Answer) -> None:
        if self._sound is None:
            raise Unusable("no modem and no transponder")
        if message.op == imc.SET_CFG:
            self._sound.configure(message.beacons)
        elif message.op == imc.GET_CFG:
            answer(imc.LblConfig(imc.CUR_CFG, self._sound.beacons))

    def _set(self, entity: str, values: Mapping[str, str]) -> None:
        for name, text in values.items():
            match entity, name:
                case "Servos", "Generate Faults":
                    self._generate = _yes(text)
                    self._fault_at = self._now + self._fault_time if self._generate else math.inf
                case "Servos", "Fault Time":
                    self._fault_time = _seconds(text)
                    self._fault_at = self._now + self._fault_time if self._generate else math.inf
                case "LBL", "Active" if self._sound is not None:
                    self._sound.active = _yes(text)
                case "LBL", "Ping Delay" if self._sound is not None:
                    self._sound.ping_delay = max(_seconds(text), 0.1)
                case _:
                    raise Unusable("no such parameter")

    def _parameters(self, entity: str) -> tuple[imc.EntityParameter, ...]:
        if entity == OF_SERVOS:
            found = {"Generate Faults": _said(self._generate), "Fault Time": f"{self._fault_time:g}"}
        elif entity == OF_LBL and self._sound is not None:
            found = {"Active": _said(self._sound.active), "Ping Delay": f"{self._sound.ping_delay:g}"}
        else:
            raise Unusable("no such parameter")
        return tuple(imc.EntityParameter(*pair) for pair in found.items())

    # -- steps -------------------------------------------------------------------------------------------

    def step(self, broker: AsyncBroker, step: Step) -> None:
        """What was said is asked of the server, before the step is answered; what it says comes with a later one."""
        if step.time < self._now:  # the server was started anew
            self._fault_at -= self._now - step.time
            self._told_at = -math.inf
            self._asked.clear()
        self._now = step.time
        for done in step.answers:
            what, then = self._asked.pop(done.request, ("", None))
            if not done.ok and what:
                self._say(f"{what} was refused: {done.text}")
            elif then is not None:
                then()
        for refused in step.refused:
            what, _ = self._asked.pop(refused.request, ("", None))
            if what:
                self._say(f"{what} was refused: {refused.text}")
        if step.time >= self._fault_at and self._servos:
            self._fault_at = math.inf
            self._orders.append(self._freeze)
        orders, self._orders = self._orders, []
        for order in orders:
            order(broker)
        self._report(broker, step)

    def _freeze(self, broker: AsyncBroker) -> None:
        name = self._dice.choice(self._servos)
        self._say(f"the servo of '{name}' fails for {FAULT_LASTS_S:g} s")
        self._asked[broker.fault(name, "frozen", FAULT_LASTS_S)] = "the fault", None

    def _report(self, broker: AsyncBroker, step: Step) -> None:
        """What the leak detector measures, as the state of DUNE's leak sensors: at a change, and now and then."""
        name = next((s.name for s in broker.sensors if s.type == "leak"), None)
        value = step.sensors.get(name) if name is not None else None
        if value is None:
            return
        wet = tuple(bool(w > 0.5) for w in value.numbers)
        if wet == self._told and step.time < self._told_at + REPORT_S:
            return
        self._told, self._told_at = wet, step.time
        for label, where in self._leaks.items():
            leaks = wet[COMPARTMENTS.index(where)]
            state, text = (imc.FAILURE, "leak detected") if leaks else (imc.NORMAL, "active")
            self._tell(imc.EntityState(state, 0, text), label)


def _yes(text: str) -> bool:
    return text.strip().lower() in ("true", "1", "yes")


def _said(value: bool) -> str:
    return "true" if value else "false"


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise Unusable("no number")
    return value
