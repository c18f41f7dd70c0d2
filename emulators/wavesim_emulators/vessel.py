"""The vessel itself: apparent wind, actuators, leaks, battery."""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.base import Emulator, Floats, Noise, Rows
from wavesim_sdk import frames
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded

VOLTAGE_SIGMA, CURRENT_SIGMA = 0.01, 0.05


class Anemometer(Emulator):
    """Apparent wind: the mean wind of the configuration less the sensor's own velocity. Gusts are not in it."""

    sensor = "anemometer"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        wind = loaded.config.world.wind
        self.wind = -wind.speed * np.array([math.cos(wind.direction), math.sin(wind.direction)])

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        m = self.mounted(view, rows)
        heading = frames.euler(view.state["q_WB"][rows])[:, 2]
        apparent = self.wind - m.v_WS_W[:, :2]
        to = np.arctan2(apparent[:, 1], apparent[:, 0])
        angle = to + math.pi - heading + self.parameters.angle_sigma * noise(1)
        out["speed"][rows] = np.maximum(np.hypot(*apparent.T) + self.parameters.speed_sigma * noise(0), 0.0)
        out["angle"][rows] = np.mod(angle, 2.0 * math.pi)
        out["valid"][rows] = m.p_WS_W[:, 2] < 0.0


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


class Leak(Emulator):
    """Dry, until a fault `bias` of 1 says otherwise."""

    sensor = "leak"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        out["wet"][rows] = 0.0


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
