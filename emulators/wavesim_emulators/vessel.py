"""Sensors that measure the vessel itself: apparent wind, actuators, leaks and battery."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from wavesim_emulators.base import Batch, Emulator
from wavesim_sdk import frames
from wavesim_sdk.actuators import MAX_ACTUATORS, MAX_THRUSTERS
from wavesim_sdk.arrays import Floats, Record
from wavesim_sdk.elementary import atan2, cos, hypot, sin
from wavesim_sdk.sensors import LEAK_COMPARTMENTS
from wavesim_sdk.tables import SensorFault
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.wind import wind_profile

VOLTAGE_SIGMA, CURRENT_SIGMA = 0.01, 0.05


class AnemometerEmulator(Emulator):
    """Emulator of an anemometer. The apparent wind is the instantaneous wind (mean, slowly varying component and gusts)
    at the height of the sensor, minus the velocity of the sensor.
    """

    sensor = "anemometer"
    needs_all_bodies = False

    def measure(self, now: Batch, out: Record) -> None:
        m, wind, p = now.mounted, now.weather, now.parameters
        heading = frames.euler(now.state["q_WB"])[:, 2]
        height = -now.depth
        speed = wind["wind_speed"] * wind_profile(self.loaded.config.world.wind.drag, height)
        away = wind["wind_direction"] + math.pi
        apparent = np.stack([speed * cos(away), speed * sin(away)], axis=1) - m.v_WS_W[:, :2]
        angle = atan2(apparent[:, 1], apparent[:, 0]) + math.pi - heading
        angle = angle + p.angle_sigma * now.noise(1)
        out["speed"] = np.maximum(hypot(*apparent.T) + p.speed_sigma * now.noise(0), 0.0)
        out["angle"] = np.mod(angle, 2.0 * math.pi)
        out["valid"] = height > 0.0


class ThrusterDrive(NamedTuple):
    """Two masks for the thrusters of a model. An element of ``shaft`` is 1 if the thruster has a shaft, and an element
    of ``force`` is 1 if the thruster is commanded by force; otherwise, the element is 0.
    """

    shaft: Floats
    force: Floats


class ActuatorEmulator(Emulator):
    """Base class of sensors that use the state of the actuators."""

    needs_all_bodies = False
    needs = ("actuation",)

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.drive_of_model = functools.cache(self._drive)

    def _drive(self, model: bytes) -> ThrusterDrive:
        thrusters = self.loaded.model(model.decode()).thruster
        shaft = [float(t.law == "shaft") for t in thrusters]
        rest = [0.0] * (MAX_THRUSTERS - len(thrusters))
        return ThrusterDrive(np.array(shaft + rest), np.array([1.0 - s for s in shaft] + rest))

    def actual(self, now: Batch) -> Floats:
        """Return the actual actuator values of the bodies."""
        return np.asarray(now.view.tables["actuation"]["actual"][now.rows])

    def drives(self, now: Batch) -> tuple[Floats, Floats]:
        """Return the (shaft, force) masks (n, thrusters) for the thrusters of the bodies' models."""
        models = now.view.identity["model"][now.rows].tolist()
        kinds = list(dict.fromkeys(models))
        at = [kinds.index(m) for m in models] if len(kinds) > 1 else np.zeros(len(models), np.int64)
        return np.array([self.drive_of_model(k).shaft for k in kinds])[at], np.array(
            [self.drive_of_model(k).force for k in kinds]
        )[at]


class EncoderEmulator(ActuatorEmulator):
    """Emulator of encoders: the actual value of every actuator, as its encoder measures it, with white noise."""

    sensor = "encoder"

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.units_of_model = functools.cache(self._units)

    def _units(self, model: bytes) -> tuple[str, ...]:
        """Return the unit of each column of the actual values; an empty string if a column has no actuator."""
        found = [a.actual_unit for a in actuators_of(self.loaded.model(model.decode()))]
        return tuple(found + [""] * (MAX_ACTUATORS - len(found)))

    def measure(self, now: Batch, out: Record) -> None:
        sigmas = now.parameters.sigmas
        out["actuator"] = self.actual(now)
        if not any(sigmas.values()):
            return
        models = now.view.identity["model"][now.rows].tolist()
        sigma = np.array([[sigmas.get(unit, 0.0) for unit in self.units_of_model(model)] for model in models])
        out["actuator"] += sigma * now.noise.normals(MAX_ACTUATORS)


class RpmEmulator(ActuatorEmulator):
    """Emulator of propeller speed sensors: speeds from the pulses counted since the previous value, for thrusters with
    a shaft model.
    """

    sensor = "rpm"

    def measure(self, now: Batch, out: Record) -> None:
        speed = self.actual(now)[:, :MAX_THRUSTERS]
        if pulses := now.parameters.pulses:
            counted = pulses * now.period * self.loaded.config.time.step
            speed = np.floor(np.abs(speed) * counted + now.noise.uniform()[:, None]) / counted * np.sign(speed)
        out["rpm"] = np.where(self.drives(now)[0] == 1.0, 60.0 * speed, np.nan)


class LeakEmulator(Emulator):
    """Emulator of leak detectors. A compartment is dry until a fault of type `wet` is injected for it."""

    sensor = "leak"
    needs_all_bodies = False

    def measure(self, now: Batch, out: Record) -> None:
        wet = np.where(now.fault == SensorFault.WET, now.fault_amount, 0.0).astype(np.int64)
        out["wet"] = wet[:, None] >> np.arange(LEAK_COMPARTMENTS) & 1


class BatteryEmulator(ActuatorEmulator):
    """Emulator of a battery: charge, current and voltage. It has a linear open-circuit voltage and an internal
    resistance. The noise is 10 mV and 50 mA.

    Power is the hotel load plus the power of each thruster: c1 T^1.5 for a thrust T, or c2 n^3 for a shaft speed n,
    depending on the model of the thruster. An ideal propeller at zero speed needs T^1.5 / sqrt(2 rho A), and a shaft
    needs 2 pi rho D^5 KQ n^3. Both formulas neglect the inflow.
    """

    sensor = "battery"

    def measure(self, now: Batch, out: Record) -> None:
        p = now.parameters
        value = np.abs(self.actual(now)[:, :MAX_THRUSTERS])
        shaft, force = self.drives(now)
        power = p.hotel + (
            p.per_thrust * force * value * np.sqrt(value) + p.per_shaft * shaft * value * value * value
        ).sum(axis=1)
        out["used"] += power * now.since / 3600.0
        charge = np.clip(1.0 - out["used"] / p.capacity, 0.0, 1.0)
        open_circuit = p.empty + (p.voltage - p.empty) * charge
        current = power / open_circuit
        out["charge"] = charge
        out["current"] = current + CURRENT_SIGMA * now.noise(1)
        out["voltage"] = open_circuit - p.resistance * current + VOLTAGE_SIGMA * now.noise(0)
