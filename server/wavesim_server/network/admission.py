"""Who may join as what: one pure decision, the same for a new session, one that resumes and one that takes over."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wavesim_sdk.actuators import actuators_of
from wavesim_sdk.config import Body, Loaded, Model
from wavesim_sdk.config.sensors import Instrument
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.sensors import HEAD
from wavesim_sdk.tables import BodyType
from wavesim_sdk.wire.items import ActuatorDescription, FieldDescription, SensorDescription
from wavesim_sdk.wire.messages import Join, Refusal, Right, Role
from wavesim_sdk.wire.session import Admission, Refused
from wavesim_server.network.crew import Berth

FAR = 1e6  #: m and rad: greatest coordinate of a newcomer's start
LEAST_PERIOD_NS = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


@dataclass(frozen=True)
class Situation:
    """Who is there."""

    present: Mapping[str, int] = field(default_factory=dict)  #: name -> row of bodies that are in the simulation
    models: Mapping[int, str] = field(default_factory=dict)  #: row -> model of those
    taken: frozenset[int] = frozenset()  #: rows that a newcomer cannot have
    observers: int = 0
    engaged: Mapping[str, int] = field(default_factory=dict)  #: name -> row of bodies whose pilot has joined


class Gate:
    """Decides by the configuration."""

    def __init__(self, loaded: Loaded, step_ns: int) -> None:
        self.loaded, self.config, self.step_ns = loaded, loaded.config, step_ns
        self.reserved = {b.name: row for row, b in enumerate(self.config.fleet.bodies)}
        self._told: dict[str, tuple[tuple[ActuatorDescription, ...], tuple[SensorDescription, ...]]] = {}

    def admit(self, join: Join, situation: Situation) -> tuple[Admission, Berth]:
        """What a client gets; Refused with the reason."""
        if join.role > Role.OBSERVER:
            raise Refused(Refusal.ROLE, f"there is no role {join.role}")
        role = Role(join.role)
        if not join.name or (role is not Role.OBSERVER and not _NAME.fullmatch(join.name)):
            raise Refused(Refusal.BAD_VALUE, "a name has 1 to 31 letters, digits, - and _")
        if role is Role.OBSERVER:
            return self._observer(join, situation)
        row = self.reserved.get(join.name)
        if row is not None:
            body = self.config.fleet.bodies[row]
            return self._seat(join, role, row, body, self.loaded.model(body.model))
        if role is Role.PILOT:
            return self._newcomer(join, situation)
        row = situation.engaged.get(join.name, situation.present.get(join.name))
        if row is None:
            raise Refused(Refusal.UNKNOWN_NAME, f"there is no body '{join.name}' that one could be on board of")
        return self._seat(join, role, row, None, self._model(situation.models.get(row, join.model)))

    def _model(self, name: str) -> Model:
        try:
            return self.loaded.model(name)
        except ConfigError as error:
            raise Refused(Refusal.UNKNOWN_MODEL, error.message) from None

    def _observer(self, join: Join, situation: Situation) -> tuple[Admission, Berth]:
        limit = self.config.network.observers
        if situation.observers >= limit:
            raise Refused(Refusal.FULL, f"there are {limit} observers already, as many as may be")
        rights, others = self._rights(join)
        berth = Berth(-1, "", 0, True, False, rights, others, 0, ())
        return Admission(-1, self.step_ns, self.config.acoustics.sound_speed, rights=int(rights)), berth

    def _newcomer(self, join: Join, situation: Situation) -> tuple[Admission, Berth]:
        if not join.model:
            raise Refused(
                Refusal.UNKNOWN_NAME,
                f"the configuration has no body '{join.name}', and no model was named for a new one",
            )
        model = self._model(join.model)
        row = situation.present.get(join.name, situation.engaged.get(join.name))
        if row is None:
            free = (r for r in range(len(self.reserved), self.config.shared.vehicles) if r not in situation.taken)
            row = next(free, None)
        if row is None:
            raise Refused(Refusal.FULL, f"all {self.config.shared.vehicles} rows are taken")
        return self._seat(join, Role.PILOT, row, None, model)

    def _seat(
        self, join: Join, role: Role, row: int, body: Body | None, model: Model
    ) -> tuple[Admission, Berth]:  # fmt: skip
        if role is Role.PILOT and body is not None and body.client == "none":
            raise Refused(
                Refusal.NAME_IN_USE,
                f"'{join.name}' is a body without a pilot (client=\"none\" in the configuration)",
            )
        lockstep = self._lockstep(join, role)
        rights, others = self._rights(join)
        actuators, sensors = self._descriptions(join.name, body, model)
        if (
            unknown := next((n for n in join.sensors or () if n not in (s.name for s in sensors)), None)
        ) is not None:  # fmt: skip
            known = ", ".join(s.name for s in sensors) or "none"
            raise Refused(Refusal.BAD_VALUE, f"'{join.name}' has no sensor '{unknown[:31]}'; it has {known}")
        period = join.state_period_ns or round(1e9 / self.config.network.state_rate)
        admission = Admission(
            row,
            self.step_ns,
            self.config.acoustics.sound_speed,
            state_period_ns=0 if lockstep else max(period, LEAST_PERIOD_NS),
            truth=body is None or body.truth == "full",
            rights=int(rights),
            actuators=actuators,
            sensors=sensors,
        )
        may_send = role is Role.PILOT or (
            role is Role.INSTRUMENT and (body is None or body.instruments == "send")
        )
        berth = Berth(
            row, join.name, int(BodyType[model.type.upper()]), admission.truth, may_send, rights, others, len(actuators),
            tuple(s.name for s in sensors), lockstep,
        )  # fmt: skip
        return admission, berth

    def _lockstep(self, join: Join, role: Role) -> int:
        """The lockstep period in ticks."""
        if join.lockstep_ns and role is not Role.PILOT:
            raise Refused(Refusal.BAD_VALUE, "only the pilot is asked in lockstep")
        if join.lockstep_ns % self.step_ns:
            raise Refused(
                Refusal.BAD_VALUE, f"lockstep_ns {join.lockstep_ns} is no multiple of the time step, {self.step_ns} ns"
            )
        return join.lockstep_ns // self.step_ns

    def _rights(self, join: Join) -> tuple[Right, bool]:
        rights, others = Right(0), False
        role = Role(join.role).name.lower()
        for grant in self.config.network.grant:
            if grant.to in ("*", join.name) and grant.role in ("any", role):
                for word in grant.rights.split():
                    rights |= Right[word.upper()]
                others = others or grant.others
        return rights, others

    # -- what a body has ---------------------------------------------------------------------------

    def _descriptions(
        self, name: str, body: Body | None, model: Model
    ) -> tuple[tuple[ActuatorDescription, ...], tuple[SensorDescription, ...]]:
        key = name if body is not None else f" {model.name}"  # no name begins with a blank
        if key not in self._told:
            suite = self.loaded.suite_of(model) if body is None else self.loaded.suite(body)
            self._told[key] = _actuators(model), _sensors(suite, self.step_ns)
        return self._told[key]


def _actuators(model: Model) -> tuple[ActuatorDescription, ...]:
    return tuple(
        ActuatorDescription(k, a.name, int(a.kind), a.unit, a.minimum, a.maximum)
        for k, a in enumerate(actuators_of(model))
    )


def _sensors(suite: Sequence[Instrument], step_ns: int) -> tuple[SensorDescription, ...]:
    """Those of a suite that are sent to clients."""
    return tuple(
        SensorDescription(k, i.name, i.type, i.period(step_ns * 1e-9) * step_ns, _fields(i))
        for k, i in enumerate(i for i in suite if i.parameters.send)
    )


def _fields(instrument: Instrument) -> tuple[FieldDescription, ...]:
    told = instrument.table.told.fields[HEAD:]
    return tuple(FieldDescription(f.name, f.unit, f.shape[0] if f.shape else 1) for f in told)
