"""Preparation for adding a body. Everything is checked before the simulation changes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics.channel import AcousticChannel, PreparedTransducer
from wavesim_server.argument_checks import MAX_COORDINATE, checked_numbers, checked_velocity
from wavesim_server.dynamics import level_flight, surge_trim
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.fleet import FleetDynamics, VehicleType
from wavesim_server.dynamics.model_compiler import check_initial_velocity, describe_instability
from wavesim_server.environment import exposure
from wavesim_server.environment.weather_model import WeatherModel
from wavesim_server.identity_map import IdentityMap
from wavesim_server.start_clearance import StartClearance
from wavesim_world.config import BodyConfig, LoadedConfig, Model, TransducerConfig
from wavesim_world.config.model import Mooring
from wavesim_world.config.validation import fail_at


@dataclass(frozen=True)
class PreparedEntry:
    """Everything that is needed to add a body, checked in full before the simulation changes."""

    vehicle_type: VehicleType
    transducer: TransducerConfig | None
    position: Floats
    attitude: Floats
    operators: exposure.ResponseOperators | None
    acoustics: PreparedTransducer | None
    body: BodyConfig | None = None  #: entry of the body in the configuration
    commands: list[float | None] | None = None  #: commands that maintain the initial speed of the body
    #: initial velocity of the body relative to the water, or to the air for an aircraft; in B, in m/s
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)


class EntryChecker:
    """Checks bodies against the configuration, the fleet, the weather, the medium and the sea bed."""

    def __init__(
        self,
        loaded: LoadedConfig,
        fleet: FleetDynamics,
        weather_model: WeatherModel,
        channel: AcousticChannel,
        clearance: StartClearance,
    ) -> None:
        self._loaded, self._fleet, self._weather_model, self._channel = loaded, fleet, weather_model, channel
        self._clearance = clearance
        self._trims: IdentityMap[VehicleType, dict[float, list[float | None]]] = IdentityMap()
        self._flights: IdentityMap[VehicleType, dict[float, level_flight.Trim]] = IdentityMap()

    def check_configuration(self) -> None:
        """Raise ConfigError, before the first tick, if a model or a body cannot be simulated."""
        for model in self._loaded.models.values():
            self._fleet.vehicle_type(model)
            self._weather_model.operators(model)
        for body in self._loaded.config.fleet.bodies:
            self.prepare_configured(body)

    def check_common_start(self) -> None:
        """Raise ConfigError if two bodies in the configuration overlap at the start."""
        together = [b for b in self._loaded.config.fleet.bodies if b.client != "optional"]
        pair = self._clearance.overlapping_pair(
            [(self._loaded.model(b.model), b.position, b.attitude) for b in together]
        )
        if pair is not None:
            first, second = (together[k] for k in pair)
            fail_at(second.place, f"'{second.name}' starts inside '{first.name}'")

    def prepare_configured(self, body: BodyConfig) -> PreparedEntry:
        """Check a body in the configuration and prepare to add it. Raises ConfigError if the body cannot be added."""
        model = self._loaded.model(body.model)
        try:
            p, e = (
                checked_numbers("a position", body.position, 3, MAX_COORDINATE),
                checked_numbers("an attitude", body.attitude, 3, MAX_COORDINATE),
            )
            checked_velocity([*body.velocity, *body.angular_velocity])
            entry = self._prepare(model, self._loaded.transducer(body), p, e, True)
            velocity = body.speed or body.velocity[0], *body.velocity[1:], *body.angular_velocity
            check_initial_velocity(
                entry.vehicle_type.compiled.params, self._fleet.step, self._fleet.integrator, velocity
            )
            if body.mooring is not None:
                self._check_mooring(body.mooring, entry.vehicle_type)
            if not body.speed:
                return dataclasses.replace(entry, body=body)
            checked_velocity([body.speed, 0.0, 0.0, 0.0, 0.0, 0.0])
            if model.aerodynamics is not None:
                return self._prepare_flight(entry, body)
            trims = self._trims.setdefault(entry.vehicle_type, {})
            if body.speed not in trims:
                trims[body.speed] = surge_trim.trim_commands(entry.vehicle_type, body.speed)
            surge = (body.speed, 0.0, 0.0)
            return dataclasses.replace(entry, body=body, commands=trims[body.speed], velocity=surge)
        except ValueError as error:
            fail_at(body.place, f"'{body.name}': {error}")

    def _prepare_flight(self, entry: PreparedEntry, body: BodyConfig) -> PreparedEntry:
        """Prepare an aircraft that starts in level flight. Raises ValueError if it cannot maintain its speed."""
        if any(body.attitude[:2]):
            raise ValueError("`speed` sets the roll and pitch of an aircraft; set only the heading in `attitude`")
        flights = self._flights.setdefault(entry.vehicle_type, {})
        if body.speed not in flights:
            flights[body.speed] = level_flight.find_trim(entry.vehicle_type, body.speed)
        trim = flights[body.speed]
        return dataclasses.replace(
            entry,
            body=body,
            attitude=np.array([*trim.attitude, body.attitude[2]]),
            commands=list(trim.commands),
            velocity=trim.velocity,
        )

    def _check_mooring(self, mooring: Mooring, vehicle_type: VehicleType) -> None:
        """Raise ValueError for a mooring on which the body would oscillate or decelerate too fast for the time step."""
        params, step = vehicle_type.compiled.params, self._fleet.step
        inverse = params[P.MASS_INVERSE : P.MASS_INVERSE + 36].reshape(6, 6)[:3, :3]
        mobility = float(
            np.abs(inverse).sum(axis=1).max()
        )  # a bound of the largest eigenvalue, exact without couplings
        square, damping = mooring.stiffness * mobility, 0.5 * mooring.damping * mobility
        fastest = max(math.sqrt(square), damping + math.sqrt(max(damping * damping - square, 0.0)))
        if advice := describe_instability(fastest, step, self._fleet.integrator):
            raise ValueError(
                f"the mooring is unstable with a time step of {1e3 * step:g} ms: its fastest motion changes {advice}, or a "
                "smaller `stiffness` or `damping`"
            )

    def prepare_new(
        self, model: Model, position: Sequence[float], attitude: Sequence[float], shared: bool
    ) -> PreparedEntry:
        """Check a body that is not in the configuration. Raises ValueError or ConfigError if it cannot be added.

        ``shared`` states whether other bodies may have the same model.
        """
        p, e = (
            checked_numbers("a position", position, 3, MAX_COORDINATE),
            checked_numbers("an attitude", attitude, 3, MAX_COORDINATE),
        )
        return self._prepare(model, model.transducer, p, e, shared)

    def _prepare(
        self, model: Model, transducer: TransducerConfig | None, position: Floats, attitude: Floats, shared: bool
    ) -> PreparedEntry:
        vehicle_type, operators = self._fleet.vehicle_type(model, shared), self._weather_model.operators(model)
        self._clearance.check(model, position, attitude)
        return PreparedEntry(vehicle_type, transducer, position, attitude, operators, self._channel.prepare(transducer))
