"""Instruments of a model as SDF sensors. Their frames have x forward, y to port and z up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_studies.model_export.axes import flipped, flipped_attitude, numbers
from wavesim_world.config import Model
from wavesim_world.config.lidar import LidarConfig
from wavesim_world.config.magnetometer import MagnetometerConfig
from wavesim_world.config.motion_sensors import ImuConfig
from wavesim_world.config.primitives import mounted
from wavesim_world.config.ranging_sensors import CameraConfig
from wavesim_world.config.sensors import DvlConfig, GpsConfig, InstrumentConfig

PRESSURE_DEPTH_SIGMA = 0.01  #: standard deviation in m of the depth of a pressure sensor; its noise is 0.01 dbar
WALK_S = 3600.0  #: correlation time in s of a bias; for shorter times, the bias is a random walk
NEAREST = 0.05  #: near clipping plane of a camera in m
#: errors of each type that SDF does not have
NOT_IN_SDF = {
    "imu": "scale factor errors, misalignment, quantisation, bias instability, and the random walk beyond an hour",
    "gps": "the correlation of the position error",
    "dvl": "the dropped beams",
    "magnetometer": "hard and soft iron, scale factor errors, misalignment, quantisation and the limit",
    "camera": "the lens distortion, the lamp, the exposure and the light in the water",
    "lidar": "reflectivity, dropped beams and the distortion by the motion during a scan",
    "pressure": "the absolute pressure (the altimeter measures the height)",
}


@dataclass(frozen=True)
class MountedSensor:
    """Frame of an instrument on the body."""

    name: str
    type: str
    position: Floats  #: (3,) in m along forward, port, up
    attitude: tuple[float, float, float]  #: roll, pitch, yaw in rad
    instrument: InstrumentConfig


def mounted_sensors(model: Model) -> list[MountedSensor]:
    """Return the frames of the instruments of a model."""
    found = []
    for instrument in model.sensors.instruments if model.sensors is not None else ():
        s = mounted(instrument, model).parameters
        found.append(
            MountedSensor(
                instrument.name, instrument.type, flipped(s.position), flipped_attitude(s.attitude), instrument
            )
        )
    return found


def add(parent: ET.Element, tag: str, text: Any = None, **attributes: str) -> ET.Element:
    """Add an element to another one and return it."""
    element = ET.SubElement(parent, tag, attributes)
    if text is not None:
        element.text = numbers(text) if isinstance(text, float | np.ndarray) else str(text)
    return element


def sensor_element(sensor: MountedSensor, missing: list[str]) -> ET.Element | None:
    """Return the SDF element of an instrument, or None if Gazebo has no such sensor. Texts about everything that the
    element does not contain are added to ``missing``.
    """
    make = _MAKERS.get(sensor.type)
    if make is None:
        missing.append(f"instrument '{sensor.name}' (type {sensor.type}); the file has its frame {sensor.name}_link")
        return None
    config: Any = sensor.instrument.parameters
    element = ET.Element("sensor", name=sensor.name)
    add(element, "pose", numbers(sensor.position, sensor.attitude))
    add(element, "always_on", "true")
    add(element, "update_rate", float(config.rate))
    make(element, config)
    missing.append(f"of instrument '{sensor.name}': {NOT_IN_SDF[sensor.type]}")
    if config.latency or config.drop_out:
        missing.append(f"of instrument '{sensor.name}': latency and omitted values")
    return element


def _noise(parent: ET.Element, sigma: float, bias: float = 0.0, walk: float = 0.0) -> None:
    noise = add(parent, "noise", type="gaussian")
    add(noise, "mean", 0.0)
    add(noise, "stddev", float(sigma))
    if bias:
        add(noise, "bias_mean", 0.0)
        add(noise, "bias_stddev", float(bias))
    if walk:
        add(noise, "dynamic_bias_stddev", float(walk))
        add(noise, "dynamic_bias_correlation_time", WALK_S)


def _plain_noise(parent: ET.Element, sigma: float) -> None:
    """Add the noise of a camera or lidar, whose type is an element and not an attribute."""
    noise = add(parent, "noise")
    add(noise, "type", "gaussian")
    add(noise, "mean", 0.0)
    add(noise, "stddev", float(sigma))


def _axes(parent: ET.Element, tag: str, sigmas: Floats, bias: float = 0.0, walk: float = 0.0) -> None:
    found = add(parent, tag) if tag else parent
    for axis, sigma in zip("xyz", sigmas, strict=True):
        _noise(add(found, axis), float(sigma), bias, walk)


def _sigmas(covariance: Any, otherwise: float) -> Floats:
    """Return the standard deviation along each axis."""
    return np.sqrt(np.diag(np.reshape(covariance, (3, 3)))) if covariance else np.full(3, otherwise)


def _imu(element: ET.Element, config: ImuConfig) -> None:
    s, root = config.resolved, math.sqrt(config.rate)
    element.set("type", "imu")
    imu = add(element, "imu")
    gyro = s.noise * _sigmas(s.angular_rate_covariance, s.gyro_noise * root)
    _axes(imu, "angular_velocity", gyro, s.noise * s.gyro_turn_on, s.noise * s.gyro_walk)
    force = s.noise * _sigmas(s.acceleration_covariance, s.accelerometer_noise * root)
    _axes(imu, "linear_acceleration", force, s.noise * s.accelerometer_turn_on, s.noise * s.accelerometer_walk)


def _navsat(element: ET.Element, s: GpsConfig) -> None:
    element.set("type", "navsat")
    navsat = add(element, "navsat")
    position = _sigmas(s.position_covariance, 0.0) if s.position_covariance else np.array([s.hacc, s.hacc, s.vacc])
    sigmas = (float(np.max(position[:2])), float(position[2])), (s.speed_sigma, s.speed_sigma)
    for tag, (along, up) in zip(("position_sensing", "velocity_sensing"), sigmas, strict=True):
        sensing = add(navsat, tag)
        _noise(add(sensing, "horizontal"), s.noise * along)
        _noise(add(sensing, "vertical"), s.noise * up)


def _dvl(element: ET.Element, s: DvlConfig) -> None:
    element.set("type", "custom")
    element.set("gz:type", "dvl")
    dvl = add(element, "gz:dvl")
    add(dvl, "type", "piston")
    arrangement = add(dvl, "arrangement", degrees="true")
    if s.beam:
        beams = [(math.degrees(b.azimuth), 90.0 - math.degrees(b.elevation)) for b in s.beam]
    else:
        beams = [(math.degrees(s.first) + 90.0 * k, math.degrees(s.angle)) for k in range(4)]
    for k, (azimuth, tilt) in enumerate(beams):
        beam = add(arrangement, "beam", id=str(k + 1))
        add(beam, "aperture", 2.0)
        add(beam, "rotation", -((azimuth + 180.0) % 360.0 - 180.0))
        add(beam, "tilt", tilt)
    tracking = add(dvl, "tracking")
    mode = add(tracking, "bottom_mode")
    add(mode, "when", "best")
    _noise(mode, s.noise * float(np.max(_sigmas(s.bottom_covariance, s.bottom_sigma))))
    add(mode, "visualize", "false")
    add(dvl, "maximum_range", s.maximum)
    add(dvl, "minimum_range", s.minimum)
    add(dvl, "resolution", 0.01)


def _magnetometer(element: ET.Element, config: MagnetometerConfig) -> None:
    s = config.resolved
    element.set("type", "magnetometer")
    _axes(add(element, "magnetometer"), "", np.full(3, s.noise * s.sigma), s.noise * s.offset)


def _altimeter(element: ET.Element, s: Any) -> None:
    element.set("type", "altimeter")
    _noise(add(add(element, "altimeter"), "vertical_position"), s.noise * PRESSURE_DEPTH_SIGMA)


def _camera(element: ET.Element, s: CameraConfig) -> None:
    element.set("type", "camera")
    camera = add(element, "camera")
    add(camera, "horizontal_fov", s.view)
    image = add(camera, "image")
    add(image, "width", s.width)
    add(image, "height", s.height)
    add(image, "format", "R8G8B8")
    clip = add(camera, "clip")
    add(clip, "near", NEAREST)
    add(clip, "far", s.range)
    # brightest pixel: shot noise of all electrons, and read noise, as a fraction of full scale
    _plain_noise(camera, s.noise * math.sqrt(s.electrons + s.read_noise**2) / s.electrons)


def _lidar(element: ET.Element, config: LidarConfig) -> None:
    s = config.resolved
    element.set("type", "gpu_lidar")
    lidar = add(element, "lidar")
    scan = add(lidar, "scan")
    last = 0.5 * s.sector - (s.sector / s.columns if s.sector > 2.0 * math.pi - 1e-6 else 0.0)
    for tag, samples, low, high in (
        ("horizontal", s.columns, -last, 0.5 * s.sector),
        ("vertical", s.channels, s.lower, s.upper),
    ):
        line = add(scan, tag)
        add(line, "samples", samples)
        add(line, "resolution", 1.0)
        add(line, "min_angle", float(low))
        add(line, "max_angle", float(high))
    reach = add(lidar, "range")
    add(reach, "min", s.minimum)
    add(reach, "max", s.range)
    _plain_noise(lidar, s.noise * s.sigma)


_MAKERS: dict[str, Any] = {
    "imu": _imu,
    "gps": _navsat,
    "dvl": _dvl,
    "magnetometer": _magnetometer,
    "pressure": _altimeter,
    "camera": _camera,
    "lidar": _lidar,
}
