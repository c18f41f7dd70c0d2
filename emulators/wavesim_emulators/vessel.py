"""The vessel itself: apparent wind, actuators, leaks, battery."""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.base import Emulator, Floats, Noise, Rows
from wavesim_sdk import frames
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded
from wavesim_sdk.ocean.wind import profile
from wavesim_sdk.sensors import COMPARTMENTS
from wavesim_sdk.tables import SensorFault

VOLTAGE_SIGMA, CURRENT_SIGMA = 0.01, 0.05


class Anemometer(Emulator):
    """Apparent wind: the wind now (mean, slow part and gusts) at its height, less the sensor's own velocity."""

    sensor = "anemometer"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        m, now = self.mounted(view, rows), self.weather(view.time_ns)
        heading = frames.euler(view.state["q_WB"][rows])[:, 2]
        height = -m.p_WS_W[:, 2] - now["level"]
        speed = now["wind_speed"] * profile(self.loaded.config.world.wind.drag, height)
        away = now["wind_direction"] + math.pi
        apparent = np.stack([speed * math.cos(away), speed * math.sin(away)], axis=1) - m.v_WS_W[:, :2]
        angle = np.arctan2(apparent[:, 1], apparent[:, 0]) + math.pi - heading
        angle = angle + self.parameters.angle_sigma * noise(1)
        out["speed"][rows] = np.maximum(np.hypot(*apparent.T) + self.parameters.speed_sigma * noise(0), 0.0)
        out["angle"][rows] = np.mod(angle, 2.0 * math.pi)
        out["valid"][rows] = height > 0.0


class WithActuators(Emulator):
    """A sensor that knows the actuators."""

    def actual(self, view: Snapshot, rows: Rows) -> Floats:
        """Actual actuation of the rows."""
        assert self.simulation is not None
        return np.asarray(self.simulation.vehicles["actuation"].snapshot()[1]["actual"][rows])


class Encoder(WithActuators):
    """Every actuator's actual value, as its encoder sees it."""

    sensor = "encoder"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        out["actuator"][rows] = self.actual(view, rows)


class Rpm(WithActuators):
    """Propeller speeds, as pulses counted since the last value; of thrusters whose model has a shaft."""

    sensor = "rpm"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self._shafts: dict[bytes, Floats] = {}

    def shafts(self, model: bytes) -> Floats:
        """1 for each of eight thrusters with a shaft, NaN for the others."""
        if model not in self._shafts:
            thrusters = self.loaded.model(model.decode()).thruster
            has = [1.0 if t.law == "shaft" or t.open_water else np.nan for t in thrusters]
            self._shafts[model] = np.array((has + [np.nan] * 8)[:8])
        return self._shafts[model]

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        speed = self.actual(view, rows)[:, :8] * [self.shafts(m) for m in view.identity["model"][rows]]
        if pulses := self.parameters.pulses:
            window = self.period_ticks * self.loaded.config.time.step
            speed = (
                np.floor(np.abs(speed) * pulses * window + noise.chance(0)[:, None])
                / (pulses * window)
                * np.sign(speed)
            )
        out["rpm"][rows] = 60.0 * speed


class Leak(Emulator):
    """Dry, until the fault `wet` names a compartment."""

    sensor = "leak"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        wet = np.where(self.faulty == SensorFault.WET, self.amount, 0.0).astype(np.int64)
        out["wet"][rows] = wet[:, None] >> np.arange(COMPARTMENTS) & 1


class Battery(WithActuators):
    """Charge, current and voltage: a linear open-circuit voltage behind a resistance; noise 10 mV, 50 mA."""

    sensor = "battery"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        n = loaded.config.shared.vehicles
        self.used, self.time = np.zeros(n), np.zeros(n, np.int64)

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p = self.parameters
        self.used[self.new] = 0.0
        self.time[self.new] = view.time_ns
        thrust = np.abs(self.actual(view, rows)[:, :8])
        power = p.hotel + p.per_thrust * (thrust**1.5).sum(axis=1)
        self.used[rows] += power * (view.time_ns - self.time[rows]) * 1e-9 / 3600.0
        self.time[rows] = view.time_ns
        charge = np.clip(1.0 - self.used[rows] / p.capacity, 0.0, 1.0)
        open_circuit = p.empty + (p.voltage - p.empty) * charge
        current = power / open_circuit
        out["charge"][rows] = charge
        out["current"][rows] = current + CURRENT_SIGMA * noise(1)
        out["voltage"][rows] = open_circuit - p.resistance * current + VOLTAGE_SIGMA * noise(0)
