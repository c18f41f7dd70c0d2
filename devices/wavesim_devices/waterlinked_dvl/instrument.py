"""Virtual Water Linked DVL: its measurements and their times, and its functions for hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import numpy as np

from wavesim_devices.dvl import Ensemble
from wavesim_devices.seabird import ATMOSPHERE
from wavesim_devices.waterlinked_dvl.dead_reckoning import DeadReckoning, LocalPosition
from wavesim_devices.waterlinked_dvl.measurement import BEAM_ANGLE, Measurement, Meter
from wavesim_devices.waterlinked_dvl.settings import (
    RANGE_MODES,
    WATER_RATE,
    WATER_TRACK,
    DvlSettings,
    Variant,
    changed_settings,
)
from wavesim_sdk.broker import Step
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.wire.state import Value
from wavesim_world.ocean.seawater import depth

TYPES = ("dvl", "ahrs", "ctd")  #: sensor types that the DVL uses
POSITION_PERIOD_NS = 200_000_000  #: interval in ns between dead reckoning reports
MAX_PINGS = 15  #: maximum number of queued pings
CYCLE_NS = 10_000_000_000  #: interval in ns between two searches for a nearer bottom
SEARCH_PINGS = 2  #: number of measurements that are lost during a search for a nearer bottom
CALIBRATION_NS = 10_000_000_000  #: duration of a gyro calibration in ns
#: limits of speed (m/s) and rate (rad/s) below which a vehicle counts as being at rest
REST_SPEED, REST_RATE = 0.05, math.radians(2.0)
PD4_ORDER = (2, 0, 3, 1)  #: transducers in the order of beams 1 to 4 of PD4
VERSION = "2.7.2"
CHIP = "0x57615665"


@dataclass
class Calibration:
    """Gyro calibration that is in progress."""

    end_ns: int
    answer: Callable[[str], None]  #: function that receives the error, or an empty string if the calibration succeeds


class MeasurementHost(Protocol):
    """Host that receives the measurements."""

    def report_velocity(
        self, measured: Measurement, time_of_validity: int, time_of_transmission: int, ensemble: Ensemble
    ) -> None:
        """Send a measurement. Its times are Unix times in us."""

    def report_position(self, position: LocalPosition, unix_s: float) -> None:
        """Send a dead reckoning report."""


class DvlInstrument:
    """Virtual Water Linked DVL without its ports. Measurements go to all hosts."""

    def __init__(self, variant: Variant, sound_speed: float, sensors: Mapping[str, str], yaw_drift: float) -> None:
        self.variant, self.sensors = variant, sensors
        self.settings = DvlSettings(speed_of_sound=sound_speed)
        self.ntp_address = "auto"
        self.hosts: list[MeasurementHost] = []
        self._meter = Meter(variant, sound_speed)
        self._reckoning = DeadReckoning(yaw_drift)
        self._clock_offset_us = 0  # set by a host
        self._now_ns = 0
        self._last_value_ns = self._last_position_ns = -1
        self._last_ping_ns: int | None = None
        self._last_report_ns: int | None = None
        self._mode = 0  # range mode of the next measurement
        self._queue = 0  # pings that hosts triggered
        self._next_cycle_ns = CYCLE_NS
        self._searching = 0  # measurements that the search for a nearer bottom still costs
        self._velocity, self._altitude = (math.nan, math.nan, math.nan), math.nan
        self._calibrations: list[Calibration] = []
        self.temperature = 15.0

    def about(self) -> dict[str, Any]:
        """Return the product name and the version."""
        return {
            "chipid": CHIP,
            "hardware_revision": 4,
            "product_id": 21035,  # of the A50; that of the A125 is not published
            "product_name": f"DVL {self.variant.name}",
            "variant": self.variant.name.lower(),
            "version": f"{VERSION} (WaVeSim)",
            "version_short": VERSION,
            "is_ready": True,
        }

    # -------------------------------------------------------------- commands; each raises a ValueError with the reason

    def configure(self, new: Mapping[str, Any]) -> None:
        """Change all given settings, or none if one is invalid."""
        self.settings = changed_settings(self.settings, new)
        if self._mode not in self.settings.modes and self.settings.modes:
            self._mode = self.settings.modes[0]

    def reset_dead_reckoning(self) -> None:
        """Make the current position and attitude the origin."""
        if "ahrs" not in self.sensors:
            raise ValueError("no attitude: the body has no sensor of type 'ahrs'")
        self._reckoning.reset(self._now_ns)

    def trigger_ping(self) -> None:
        """Queue one measurement."""
        if self.settings.acoustic_enabled:
            raise ValueError("acoustic_enabled must be false to trigger pings")
        if self._queue >= MAX_PINGS:
            raise ValueError(f"the queue is full: {MAX_PINGS} pings")
        self._queue += 1

    def calibrate_gyro(self, answer: Callable[[str], None]) -> None:
        """Calibrate the gyro. This takes 10 s, during which the vehicle must be at rest. ``answer`` receives the error,
        or an empty string if the calibration succeeds.
        """
        self._calibrations.append(Calibration(self._now_ns + CALIBRATION_NS, answer))

    def set_clock(self, unix_us: int) -> None:
        """Set the clock of the DVL."""
        self._clock_offset_us += unix_us - self.unix_us(self._now_ns)

    def unix_us(self, time_ns: int) -> int:
        """Return the time of the DVL's clock at a simulation time, as Unix time in us."""
        return round(EPOCH.timestamp()) * 1_000_000 + time_ns // 1000 + self._clock_offset_us

    @property
    def now_us(self) -> int:
        """Current time of the DVL's clock, as Unix time in us."""
        return self.unix_us(self._now_ns)

    # -------------------------------------------------------------- measurements

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._now_ns = step.state.time_ns
        ahrs, ctd = (step.sensors.get(self.sensors.get(t, "")) for t in ("ahrs", "ctd"))
        if ahrs is not None:
            self._reckoning.turn(ahrs.time_ns, ahrs.roll, ahrs.pitch, ahrs.heading)
        if ctd is not None:
            self.temperature = ctd.temperature
        value = step.sensors.get(self.sensors["dvl"])
        if value is not None and value.time_ns != self._last_value_ns:
            self._last_value_ns = value.time_ns
            if self._pings_at(value.time_ns):
                self._last_ping_ns = value.time_ns
                self._measure(value, ahrs, ctd)
        self._calibrate(ahrs)
        if self._now_ns // POSITION_PERIOD_NS != self._last_position_ns // POSITION_PERIOD_NS:
            self._last_position_ns = self._now_ns
            if (position := self._reckoning.at(self._now_ns)) is not None:
                self._report_position(position)

    def _pings_at(self, time_ns: int) -> bool:
        """Return whether a measurement begins at this time. The call uses up a queued ping (if the acoustics are
        disabled), or a ping of the search for a nearer bottom.
        """
        if not self.settings.acoustic_enabled:
            self._queue, is_queued = max(self._queue - 1, 0), self._queue > 0
            return is_queued
        rate = RANGE_MODES[self._mode].rate if self.settings.modes else WATER_RATE
        if self._last_ping_ns is not None and time_ns - self._last_ping_ns < 1e9 / rate - 1e3:
            return False
        if self.settings.periodic_cycling_enabled and time_ns >= self._next_cycle_ns:
            self._next_cycle_ns, self._searching = time_ns + CYCLE_NS, SEARCH_PINGS
        if self._searching and self._mode > 0 and len(self.settings.modes) > 1:
            self._searching -= 1
            self._last_ping_ns = time_ns
            if not self._searching:
                self._choose_mode(self._altitude)
            return False
        return True

    def _measure(self, value: Value, ahrs: Value | None, ctd: Value | None) -> None:
        interval_ms = 0.0 if self._last_report_ns is None else (value.time_ns - self._last_report_ns) / 1e6
        self._last_report_ns = value.time_ns
        if self.settings.range_mode == WATER_TRACK:
            measured = self._meter.water(value, self.settings, interval_ms)
        else:
            measured = self._meter.bottom(value, self.settings, interval_ms)
            self._altitude = measured.altitude
            mode = RANGE_MODES[self._mode]
            if not mode.lowest <= measured.altitude <= mode.highest:
                self._choose_mode(measured.altitude)
            self._reckoning.move(measured)
            self._velocity = measured.velocity
        at = self.unix_us(value.time_ns)
        ensemble = self._ensemble(measured, ahrs, ctd)
        for host in list(self.hosts):
            host.report_velocity(measured, at, self.now_us, ensemble)

    def _choose_mode(self, altitude: float) -> None:
        """Choose the first range mode that covers the altitude. If no mode covers it, choose the mode after the current
        one.
        """
        allowed = self.settings.modes
        found = [k for k in allowed if RANGE_MODES[k].lowest <= altitude <= RANGE_MODES[k].highest]
        self._mode = found[0] if found else allowed[(self._mode - allowed[0] + 1) % len(allowed)]

    def _report_position(self, position: LocalPosition) -> None:
        unix_s = self.unix_us(position.time_ns) / 1e6
        for host in list(self.hosts):
            host.report_position(position, unix_s)

    def _calibrate(self, ahrs: Value | None) -> None:
        """End each calibration: with an error if the vehicle is moving, or successfully if its duration has passed."""
        moves = math.hypot(*self._velocity) > REST_SPEED or (ahrs is not None and math.hypot(*ahrs.rates) > REST_RATE)
        for c in list(self._calibrations):
            if moves or self._now_ns >= c.end_ns:
                self._calibrations.remove(c)
                c.answer("the vehicle is not at rest" if moves else "")

    def _ensemble(self, m: Measurement, ahrs: Value | None, ctd: Value | None) -> Ensemble:
        vx, vy, vz = m.velocity
        bad = (math.nan, math.nan, math.nan)
        vertical = [b.distance * math.cos(BEAM_ANGLE) for b in m.beams]
        a, b, c, d = (vertical[k] for k in PD4_ORDER)
        time = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.unix_us(m.time_ns))
        e = Ensemble(0, time, (vy, vx, -vz), bad, (a, b, c, d), m.altitude, sound_speed=self.settings.speed_of_sound)
        if m.is_water:
            e = replace(e, bottom=bad, water=e.bottom)
        if ahrs is not None:
            e.roll, e.pitch, e.heading = ahrs.roll, ahrs.pitch, ahrs.heading
        if ctd is not None:
            gauge = np.array(max(ctd.pressure - ATMOSPHERE, 0.0))
            e.depth, e.temperature, e.salinity = float(depth(gauge, 0.7)), ctd.temperature, ctd.salinity
        return e
