"""Admission of sessions in their roles. One pure function decides whether a session may start, resume, or take over a
body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wavesim_sdk.actuators import Actuator
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import BodyType
from wavesim_sdk.wire.items import ActuatorDescription, SensorDescription
from wavesim_sdk.wire.messages import Join, Refusal, Right, Role
from wavesim_sdk.wire.session import Admission, NotAdmitted
from wavesim_server.instruments import describe_instrument
from wavesim_server.network.crews import SessionGrant
from wavesim_world.actuators import actuators_of
from wavesim_world.config import BodyConfig, LoadedConfig, Model
from wavesim_world.config.sensors import InstrumentConfig

MIN_PERIOD_NS = 1_000_000
#: age in periods above which values are stale, because the emulator has exited, is hanging, or is too slow
MAX_AGE_PERIODS = 5.0
_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


@dataclass(frozen=True)
class JoinResult(Admission):
    """The result of an admitted join. In addition to the data that the client receives, it contains the grant, which
    only the server uses.
    """

    grant: SessionGrant = SessionGrant(-1, "", "", 0, True, False, Right(0), False, 0, (), ())


@dataclass(frozen=True)
class Roster:
    """The bodies that are in the simulation or about to be added, and the number of observers."""

    rows: Mapping[str, int] = field(default_factory=dict)  #: rows of the bodies, by name
    models: Mapping[int, str] = field(default_factory=dict)  #: model names of the bodies, by row
    observers: int = 0


class BodyParts(NamedTuple):
    """The actuators and sensors of a body, to which faults can refer."""

    actuators: tuple[Actuator, ...]
    sensors: tuple[InstrumentConfig, ...]


class AdmissionPolicy:
    """Admits or refuses joins according to the configuration."""

    def __init__(self, loaded: LoadedConfig, step_ns: int) -> None:
        self.loaded, self.config, self.step_ns = loaded, loaded.config, step_ns
        self.reserved_rows = {b.name: row for row, b in enumerate(self.config.fleet.bodies)}
        self._suites: dict[str, tuple[InstrumentConfig, ...]] = {}

    def admit(self, join: Join, roster: Roster) -> JoinResult:
        """Return the data that a client receives. Raises NotAdmitted, stating the reason, if the join is refused."""
        role = Role(join.role)
        if not join.name or (role is not Role.OBSERVER and not _NAME.fullmatch(join.name)):
            raise NotAdmitted(Refusal.BAD_VALUE, "invalid name: use 1 to 31 letters, digits, - and _")
        if role is Role.OBSERVER:
            return self._admit_observer(join, roster)
        row = self.reserved_rows.get(join.name)
        if row is not None:
            body = self.config.fleet.bodies[row]
            return self._join_result(join, role, row, body, self.loaded.model(body.model))
        row = roster.rows.get(join.name)
        if row is not None:
            here = roster.models[row]
            if join.model not in ("", here):
                raise NotAdmitted(
                    Refusal.BAD_VALUE, f"model: '{join.name}' is already in the simulation with the model '{here}'"
                )
            return self._join_result(join, role, row, None, self.loaded.model(here))
        if role is not Role.PILOT:
            raise NotAdmitted(Refusal.UNKNOWN_NAME, f"unknown body '{join.name}'")
        return self._admit_new_body(join, roster)

    def suite(self, name: str, model: str) -> tuple[InstrumentConfig, ...]:
        """Return the sensors of a body."""
        key = name if name in self.reserved_rows else f" {model}"  # names do not begin with a blank
        if key not in self._suites:
            self._suites[key] = self.loaded.suite_by_name(name, model)
        return self._suites[key]

    def parts_of(self, name: str, model: str) -> BodyParts:
        """Return the actuators and sensors of a body. The model of a configured body is found by its ``name``; for any
        other body, ``model`` applies.

        For an unknown body, both lists are empty.
        """
        if name in self.reserved_rows:
            model = self.config.fleet.bodies[self.reserved_rows[name]].model
        return (
            BodyParts(actuators_of(self.loaded.model(model)), self.suite(name, model)) if model else BodyParts((), ())
        )

    def _admit_observer(self, join: Join, roster: Roster) -> JoinResult:
        limit = self.config.network.observers
        if roster.observers >= limit:
            raise NotAdmitted(Refusal.FULL, f"the maximum of {limit} observers has been reached")
        rights, others = self._rights(join)
        grant = SessionGrant(-1, "", "", 0, True, False, rights, others, 0, (), ())
        return JoinResult(-1, self.step_ns, self.config.acoustics.sound_speed, rights=int(rights), grant=grant)

    def _admit_new_body(self, join: Join, roster: Roster) -> JoinResult:
        if self.config.network.newcomers == "none":
            raise NotAdmitted(
                Refusal.UNKNOWN_NAME,
                f"the configuration has no body '{join.name}'{suggest_name(join.name, self.reserved_rows)}; to admit new bodies, set "
                '<network newcomers="free"> (or "lockstep") in the configuration',
            )
        if not join.model:
            raise NotAdmitted(
                Refusal.UNKNOWN_NAME,
                f"the configuration has no body '{join.name}'; to add a new body, specify its model when you join",
            )
        try:
            model = self.loaded.model(join.model)
        except ConfigError as error:
            raise NotAdmitted(Refusal.UNKNOWN_MODEL, error.message) from None
        taken = set(roster.models)
        free = (r for r in range(len(self.reserved_rows), self.config.shared.vehicles) if r not in taken)
        row = next(free, None)
        if row is None:
            raise NotAdmitted(Refusal.FULL, f"all {self.config.shared.vehicles} rows are in use")
        return self._join_result(join, Role.PILOT, row, None, model)

    def _join_result(self, join: Join, role: Role, row: int, body: BodyConfig | None, model: Model) -> JoinResult:
        if role is Role.PILOT and body is not None and body.client == "none":
            raise NotAdmitted(
                Refusal.NAME_IN_USE, f"'{join.name}' is a body without a pilot (client=\"none\" in the configuration)"
            )
        lockstep = self._lockstep(join)
        if lockstep and body is None and self.config.network.newcomers != "lockstep":
            raise NotAdmitted(
                Refusal.BAD_VALUE,
                f"lockstep_ns: '{join.name}' is not in the configuration, so the engine does not wait for it; join without lockstep, or "
                'set <network newcomers="lockstep"> in the configuration',
            )
        rights, others = self._rights(join)
        suite = self.suite(join.name, model.name)
        descriptions = self._sensors(join, suite)
        actuators = _actuators(model)
        period = join.state_period_ns or round(1e9 / self.config.network.state_rate)
        truth = body is None or body.truth == "full"
        may_send = role is Role.PILOT or (role is Role.INSTRUMENT and (body is None or body.instruments == "send"))
        grant = SessionGrant(
            row,
            join.name,
            model.name,
            int(BodyType[model.type.upper()]),
            truth,
            may_send,
            rights,
            others,
            len(actuators),
            suite,
            tuple(map(_max_age_ns, suite)),
            lockstep,
            body is None,
        )
        return JoinResult(
            row,
            self.step_ns,
            self.config.acoustics.sound_speed,
            state_period_ns=0 if lockstep else max(period, MIN_PERIOD_NS),
            sends_truth=truth,
            rights=int(rights),
            actuators=actuators,
            sensors=descriptions,
            grant=grant,
        )

    def _lockstep(self, join: Join) -> int:
        """Return the lockstep period in ticks."""
        if join.lockstep_ns % self.step_ns:
            raise NotAdmitted(
                Refusal.BAD_VALUE,
                f"lockstep_ns {join.lockstep_ns} is not a multiple of the time step, {self.step_ns} ns",
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

    def _sensors(self, join: Join, suite: Sequence[InstrumentConfig]) -> tuple[SensorDescription, ...]:
        """Return the descriptions of the sensors that a join selects."""
        descriptions = self.describe(suite)
        known = [s.name for s in descriptions]
        for name in join.sensors or ():
            if name not in known:
                what = suggest_name(name, known) or "; this body has no sensors"
                raise NotAdmitted(Refusal.BAD_VALUE, f"sensors: '{join.name}' has no sensor '{name}'{what}")
        return tuple(s for s in descriptions if join.sensors is None or s.name in join.sensors)

    def describe(self, suite: Sequence[InstrumentConfig]) -> tuple[SensorDescription, ...]:
        """Return the descriptions of those sensors in a suite that clients may receive, numbered as in the suite."""
        return tuple(describe_instrument(k, i, self.step_ns) for k, i in enumerate(suite) if i.parameters.send)


def _actuators(model: Model) -> tuple[ActuatorDescription, ...]:
    return tuple(
        ActuatorDescription(k, a.name, int(a.kind), a.unit, a.minimum, a.maximum)
        for k, a in enumerate(actuators_of(model))
    )


def _max_age_ns(instrument: InstrumentConfig) -> int:
    return round((MAX_AGE_PERIODS / instrument.parameters.rate + instrument.parameters.latency) * 1e9)
