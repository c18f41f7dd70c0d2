"""Checks of the instruments that the bodies of a fleet carry."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk.algebra import covariance_factor
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.front_tables import FRONT_ELEMENTS, MAX_ELEMENTS
from wavesim_sdk.sensors import DVL_BEAMS, LEAK_COMPARTMENTS, MULTIBEAM_BEAMS, RANGER_BEAMS, sensor_table_of
from wavesim_world.config import imaging_checks as scenes
from wavesim_world.config.adcp import AdcpConfig
from wavesim_world.config.hydrophone import (
    BITS,
    MAX_BAND_SHARE,
    MAX_ELEMENT_DISTANCE,
    MAX_TOTAL_RATE,
    HydrophoneArrayConfig,
)
from wavesim_world.config.lidar import LidarConfig
from wavesim_world.config.model import Config
from wavesim_world.config.ranging_sensors import CameraConfig, MultibeamConfig, RangerConfig, SonarConfig
from wavesim_world.config.schema import keys
from wavesim_world.config.sensors import DvlConfig, LeakConfig, SensorConfig, SensorsConfig
from wavesim_world.config.validation import fail_at
from wavesim_world.config.vehicle import Model

if TYPE_CHECKING:
    from wavesim_world.config.loaded import LoadedConfig

AERIALS = ("gps", "uwb", "anemometer", "radar", "ais")  #: sensor types that work only above the water
_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


def check(config: Config, models: Mapping[str, Model]) -> None:
    """Raise ConfigError for the first invalid instrument."""
    for owner, sensors in _declared(config, models):
        seen: set[str] = set()
        for type_, sensor in sensors.declared:
            name = sensor.name or type_
            try:
                sensor_table_of(type_)
            except ConfigError as error:
                fail_at(sensor.place, f"{owner}: {error.message}")
            if not _NAME.fullmatch(name):
                fail_at(sensor.place, f"{owner}: invalid sensor name '{name}': use 1 to 31 letters, digits, - and _")
            if name in seen:
                fail_at(sensor.place, f"{owner}: two sensors are named '{name}'; give each a unique name")
            seen.add(name)
            if type_ == "scalar" and not config.world.scalar:
                fail_at(
                    sensor.place,
                    f"{owner} has a sensor <scalar>, but the world declares no <scalar>; add one or remove the sensor",
                )
            _one(sensor, f"{owner}: '{name}'")
            if isinstance(sensor, SonarConfig):
                scenes.check_sonar(sensor, config.acoustics.sound_speed, f"{owner}: '{name}'")
            elif isinstance(sensor, CameraConfig):
                scenes.check_camera(sensor, f"{owner}: '{name}'")
            elif isinstance(sensor, LidarConfig):
                scenes.check_lidar(sensor, f"{owner}: '{name}'")
            elif isinstance(sensor, HydrophoneArrayConfig):
                _check_hydrophone(sensor, config.time.step, f"{owner}: '{name}'")
    scenes.check(config.world)
    everybody = config.fleet.sensors
    if everybody is not None and not everybody.inherit:
        fail_at(everybody.place, "<sensors> of the fleet cannot inherit instruments; remove `inherit`")


def drowned(loaded: LoadedConfig) -> list[str]:
    """Return a warning for each instrument that works only above the water but is mounted on a floating body at or
    below its waterline.
    """
    found = []
    for body in loaded.config.fleet.bodies:
        if loaded.model(body.model).type in ("underwater", "aircraft"):
            continue
        for instrument in loaded.suite(body):
            z = float(instrument.parameters.position[2])
            if instrument.type in AERIALS and z >= 0.0:
                found.append(
                    f"'{body.name}': '{instrument.name}' is at z = {z:g} m, at or below the waterline (z points down): it has no value "
                    "while it is under water; remove `position`, or give it a negative z"
                )
    return found


def _declared(config: Config, models: Mapping[str, Model]) -> Iterator[tuple[str, SensorsConfig]]:
    """Yield every <sensors> element with the name of its owner: the fleet, a model or a body."""
    if config.fleet.sensors is not None:
        yield "the fleet", config.fleet.sensors
    for model in models.values():
        if model.sensors is not None:
            yield f"model '{model.name}'", model.sensors
    for body in config.fleet.bodies:
        if body.sensors is not None:
            yield f"'{body.name}'", body.sensors


def _one(sensor: SensorConfig, who: str) -> None:
    """Check the configuration of one sensor, independently of the others."""
    declared: Any = sensor
    low, high = getattr(sensor, "minimum", 0.0), getattr(sensor, "maximum", np.inf)
    if high <= low:
        fail_at(sensor.place, f"{who}: `maximum` must be greater than `minimum`")
    for name, declaration in keys(type(sensor)):
        if name.endswith("_covariance") and getattr(sensor, name):
            try:
                covariance_factor(np.reshape(getattr(sensor, name), (3, 3)))
            except ValueError as error:
                fail_at(sensor.place, f"{who}: `{declaration.name}` {error}")
    limits = {RangerConfig: RANGER_BEAMS, MultibeamConfig: MULTIBEAM_BEAMS, DvlConfig: DVL_BEAMS}
    most = limits.get(type(sensor))
    if most is not None and len(declared.beam) > most:
        fail_at(sensor.place, f"{who}: it has {len(declared.beam)} beams; the maximum is {most}")
    if isinstance(sensor, DvlConfig) and sensor.beam:
        along = np.array([b.direction for b in sensor.beam])
        if np.linalg.matrix_rank(along, tol=1e-3) < 3:
            fail_at(sensor.place, f"{who}: it needs three or four beams that are not all in one plane")
    if isinstance(sensor, AdcpConfig) and (p := sensor.resolved).range < p.blank + 1.5 * p.cell:
        fail_at(
            sensor.place,
            f"{who}: its range of {p.range:g} m ends before its first cell, at {p.blank + 1.5 * p.cell:g} m; "
            "increase `range`, or reduce `blank` or `cell`",
        )
    if isinstance(sensor, LeakConfig) and not 1 <= len(set(sensor.names)) == len(sensor.names) <= LEAK_COMPARTMENTS:
        fail_at(sensor.place, f"{who}: `compartments` must contain 1 to {LEAK_COMPARTMENTS} different names")


def _check_hydrophone(h: HydrophoneArrayConfig, step: float, who: str) -> None:
    """Check a hydrophone; ``step`` is the time step in s, and ``who`` names the instrument in the message."""
    low, high = h.band
    if high > MAX_BAND_SHARE * h.sampling * (1.0 + 1e-9):
        fail_at(
            h.place,
            f"{who}: `high` {high:g} Hz is above {MAX_BAND_SHARE:.2f} times the sampling rate; use a `sampling` of at least {high / MAX_BAND_SHARE:g} Hz",
        )
    if low >= high:
        fail_at(h.place, f"{who}: `low` {low:g} Hz must be below the upper edge of the band, {high:g} Hz")
    samples, ticks = h.sampling / h.rate, 1.0 / (h.rate * step)
    if abs(samples - round(samples)) > 1e-9 * samples or round(samples) < 1:
        fail_at(
            h.place,
            f"{who}: a block of 1/{h.rate:g} s contains {samples:.6g} samples; choose `rate` so that {h.sampling:g} Hz divided by it is a whole number",
        )
    if abs(ticks - round(ticks)) > 1e-6 * ticks or round(ticks) < 1:
        fail_at(
            h.place,
            f"{who}: a block of 1/{h.rate:g} s contains {ticks:.6g} time steps of {step:g} s; choose `rate` so that the number is whole",
        )
    for name, value in (("latency", h.latency), ("drop_out", h.drop_out)):
        if value:
            fail_at(h.place, f"{who}: `{name}` has no effect on the blocks of a hydrophone; remove it")
    if h.bits not in BITS:
        fail_at(h.place, f"{who}: `bits` must be 0, 12, 16 or 24")
    if len(h.element) > MAX_ELEMENTS:
        fail_at(h.place, f"{who}: it has {len(h.element)} elements; the maximum is {MAX_ELEMENTS}")
    if h.coherent and len(h.element) > FRONT_ELEMENTS:
        fail_at(
            h.place,
            f"{who}: `coherent` needs at most {FRONT_ELEMENTS} elements, but there are {len(h.element)}; remove it",
        )
    if len(h.element) * h.sampling > MAX_TOTAL_RATE:
        fail_at(
            h.place,
            f"{who}: {len(h.element)} channels with a sampling rate of {h.sampling:g} Hz are more than {MAX_TOTAL_RATE:g} "
            f"samples per second; use a `sampling` of at most {MAX_TOTAL_RATE / len(h.element):g} Hz, or fewer elements",
        )
    for number, position in enumerate(h.element_positions, 1):
        distance = math.sqrt(sum(x * x for x in position))
        if distance > MAX_ELEMENT_DISTANCE:
            fail_at(
                h.place,
                f"{who}: element {number} is {distance:.4g} m from the hydrophone; the maximum is {MAX_ELEMENT_DISTANCE:g} m",
            )
