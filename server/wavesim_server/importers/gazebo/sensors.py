"""Instruments of a vehicle, with their mountings and errors.

An instrument that reports vectors keeps the axes of the sensor in the file, so that its values are the same as there. An
instrument that looks ahead or down has its frame S turned to ahead, starboard and down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.kinematics import rotation_to_euler
from wavesim_server.importers.gazebo.elements import Element, describe
from wavesim_server.importers.gazebo.frames import FORWARD, RigidPose
from wavesim_server.importers.gazebo.robot import Robot
from wavesim_server.importers.model_draft import ModelDraft, format_numbers

Body = Callable[[RigidPose], RigidPose]
LEAST_RATE, MOST_RATE = 0.01, 1000.0
#: turn of a frame whose x axis looks down or along the beams, to a frame S whose z axis does
ALONG = np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
SAME, ACROSS = np.eye(3), FORWARD["x"]


class _Mount:
    """Sensor to convert: its element, the element with its settings, and where it is."""

    def __init__(self, draft: ModelDraft, robot: Robot, element: Element, name: str, pose: RigidPose) -> None:
        self.draft, self.robot, self.use, self.element = draft, robot, robot.use, element
        self.name, self.pose = name, pose

    def add(self, tag: str, turn: Floats, rate: float, **keys: str) -> Element:
        """Add an instrument. ``turn`` is the rotation of its frame S in the frame of the sensor."""
        holder = next((e for e in self.draft.elements if e.tag == "sensors"), None)
        if holder is None:
            holder = self.draft.add("sensors")
        attitude = np.round(np.degrees(rotation_to_euler(self.pose.rotation @ turn)), 6)
        names = {e.get("name") for e in holder}
        name = short = (
            re.sub(r"[^A-Za-z0-9-]", "-", self.name.rpartition("::")[2].rpartition("/")[2])[:28].strip("-") or tag
        )
        count = 2
        while name in names:
            name, count = f"{short[:28]}-{count}", count + 1
        given = {"name": name, "rate": f"{self.rate(rate):g} Hz"}
        given["position"] = format_numbers(*np.round(self.pose.position, 9)) + " m"
        if attitude.any() and tag not in _WITHOUT_AXES:
            given["attitude"] = format_numbers(*attitude) + " deg"
        return etree.SubElement(holder, tag, given | keys)

    def rate(self, rate: float) -> float:
        if rate <= 0.0 or rate > MOST_RATE:
            self.draft.notes.append(f"{describe(self.element)}: rate {rate:g} Hz; the instrument has {MOST_RATE:g} Hz")
            return MOST_RATE
        return max(rate, LEAST_RATE)

    def noise(self, holder: Element | None) -> tuple[float, float, float, float]:
        """Return the standard deviations of the noise and of the bias, and the dynamic bias with its time, of the
        <noise> in an element. A mean that is not zero is reported.
        """
        noise = holder if holder is not None and holder.tag == "noise" else self.use.child(holder, "noise")
        if noise is None or (noise.get("type") or self.use.text(noise, "type", "gaussian")) == "none":
            self.use.mark_all(noise)
            return 0.0, 0.0, 0.0, 0.0
        found = [
            self.use.number(noise, tag, 0.0)
            for tag in ("stddev", "bias_stddev", "dynamic_bias_stddev", "dynamic_bias_correlation_time")
        ]
        for tag in ("mean", "bias_mean"):
            if value := self.use.number(noise, tag, 0.0):
                self.draft.unused.append(f"{describe(noise)} / {tag} = {value:g}: an instrument has no constant error")
        if precision := self.use.number(noise, "precision", 0.0):
            self.draft.unused.append(f"{describe(noise)} / precision = {precision:g}")
        return found[0], found[1], found[2], found[3]

    def axes(self, holder: Element | None, tag: str) -> tuple[float, float, float, float]:
        """Return the noise of three axes, which must be the same: an instrument has one set of errors."""
        group = self.use.child(holder, tag)
        found = [self.noise(self.use.child(group, axis)) for axis in "xyz"]
        if found[1] != found[0] or found[2] != found[0]:
            self.draft.unused.append(
                f"{describe(self.element)} / {tag}: the axes have different noise; that of x is used"
            )
        return found[0]


def add_all(draft: ModelDraft, robot: Robot, body: Body) -> None:
    """Add the instruments of all links, and those that are plugins of Gazebo classic."""
    for link in robot.links.values():
        for sensor in link.sensors:
            mount = _Mount(draft, robot, sensor.element, sensor.name, body(link.pose.then(sensor.pose)))
            convert = _SENSORS.get(sensor.kind)
            robot.use.child(sensor.element, "topic", "gz_frame_id", "ignition_frame_id")
            for tag in ("topic", "gz_frame_id", "ignition_frame_id"):
                robot.use.mark(sensor.element.find(tag))
            if convert is None:
                robot.use.mark_all(sensor.element)
                draft.unused.append(f"{describe(sensor.element)}: the project has no instrument of type {sensor.kind}")
                continue
            rate = robot.use.number(sensor.element, "update_rate", 0.0)
            convert(mount, rate)
            for plugin in sensor.element.findall("plugin"):
                robot.use.mark_all(plugin)
                draft.notes.append(f"{describe(plugin)}: messages, no part of a model")
    for plugin in robot.plugins:
        for pattern, convert in _PLUGINS.items():
            if re.search(pattern, plugin.get("filename", "")):
                tag = "linkName" if plugin.find("linkName") is not None else "link_name"
                holder = robot.find_link(robot.use.text(plugin, tag))
                if holder is not None:
                    robot.use.mark(plugin)
                    for silent in _SILENT:
                        robot.use.mark_all(plugin.find(silent))
                    convert(_Mount(draft, robot, plugin, pattern, body(holder.pose)), _plugin_rate(robot, plugin))


_WITHOUT_AXES = ("gps", "pressure", "salinity", "temperature")
_SILENT = [
    "robot_namespace",
    "robotNamespace",
    "sensor_topic",
    "topic",
    "reference_frame",
    "static_reference_frame",
    "debug",
    "enable_gazebo_messages",
    "enable_local_ned_frame",
    "beam_link_name_0",
    "beam_link_name_1",
    "beam_link_name_2",
    "beam_link_name_3",
    "beam_topic_0",
    "beam_topic_1",
    "beam_topic_2",
    "beam_topic_3",
    "gazebo_topic",
    "frame_id",
    "imu_topic",
]


def _plugin_rate(robot: Robot, plugin: Element) -> float:
    return robot.use.number(plugin, "update_rate", robot.use.number(plugin, "updateRate", 10.0))


def _imu(m: _Mount, rate: float) -> None:
    imu = m.use.child(m.element, "imu")
    legacy = m.use.child(imu, "noise")  # SDF 1.4: one noise for all axes
    if legacy is not None:
        m.use.mark_all(legacy)
        m.draft.unused.append(f"{describe(legacy)}: noise in the form of SDF 1.4")
    for tag in ("orientation_reference_frame", "enable_orientation"):
        m.use.mark_all(imu.find(tag) if imu is not None else None)
    gyro, accelerometer = m.axes(imu, "angular_velocity"), m.axes(imu, "linear_acceleration")
    m.draft.notes.append(
        f"{describe(m.element)}: it also reports its orientation; add an <ahrs> if a program needs that"
    )
    _add_imu(m, rate, gyro, accelerometer)


def _add_imu(m: _Mount, rate: float, gyro: tuple[float, ...], accelerometer: tuple[float, ...]) -> None:
    """Add an IMU. White noise per sample becomes a density: divided by the square root of the rate. A dynamic bias with a
    density s and a time T has the standard deviation s sqrt(T/2), and the model has the same density without the decay.
    """
    keys, root = {}, math.sqrt(m.rate(rate))
    times = []
    for name, (white, turn_on, dynamic, time) in (("gyro", gyro), ("accelerometer", accelerometer)):
        keys[f"{name}_noise"], keys[f"{name}_turn_on"] = f"{white / root:.9g}", f"{turn_on:.9g}"
        keys[f"{name}_walk"] = "0"
        if dynamic:
            keys[f"{name}_walk"] = f"{dynamic:.9g}"
            times.append(time)
    if times and any(times):
        m.draft.notes.append(
            f"{describe(m.element)}: the dynamic bias is a random walk; in the file, it decays with {max(times):g} s"
        )
    m.add("imu", SAME, rate, **keys)


def _magnetometer(m: _Mount, rate: float) -> None:
    group = m.use.child(m.element, "magnetometer")
    found = [m.noise(m.use.child(group, axis)) for axis in "xyz"]
    white, turn_on, dynamic, _ = found[0]
    if found[1] != found[0] or found[2] != found[0]:
        m.draft.unused.append(f"{describe(m.element)}: the axes have different noise; that of x is used")
    if dynamic:
        m.draft.unused.append(f"{describe(m.element)} / dynamic_bias_stddev = {dynamic:g}")
    m.add("magnetometer", SAME, rate, grade="none", sigma=f"{white * 1e6:.9g} uT", offset=f"{turn_on * 1e6:.9g} uT")


def _gps(m: _Mount, rate: float) -> None:
    gps = m.use.child(m.element, "navsat", "gps")
    keys: dict[str, str] = {}
    for tag, names in (("position_sensing", ("hacc", "vacc")), ("velocity_sensing", ("speed_sigma", "speed_sigma"))):
        group = m.use.child(gps, tag)
        for axis, name in zip(("horizontal", "vertical"), names, strict=True):
            white, bias, dynamic, _ = m.noise(m.use.child(group, axis))
            if bias or dynamic:
                m.draft.unused.append(f"{describe(m.element)} / {tag} / {axis}: bias")
            if name in keys and float(keys[name].split()[0]) != white:
                m.draft.unused.append(
                    f"{describe(m.element)} / {tag} / {axis} / stddev = {white:g}: one value for both"
                )
            keys.setdefault(name, f"{white:.9g} {'m/s' if name == 'speed_sigma' else 'm'}")
    m.add("gps", SAME, rate, correlation="0 s", **keys)


def _camera(m: _Mount, rate: float) -> None:
    camera = m.use.child(m.element, "camera")
    image, clip = m.use.child(camera, "image"), m.use.child(camera, "clip")
    width, height = (int(m.use.number(image, t, d)) for t, d in (("width", 320.0), ("height", 240.0)))
    view = m.use.number(camera, "horizontal_fov", 1.047)
    reach = m.use.number(clip, "far", 100.0)
    for holder, tags in ((image, ("format",)), (clip, ("near",)), (camera, ("optical_frame_id", "topic"))):
        for tag in tags:
            m.use.mark(holder.find(tag) if holder is not None else None)
    pose = m.use.pose(camera.find("pose")) if camera is not None and camera.find("pose") is not None else None
    if pose is not None:
        m.pose = RigidPose(m.pose.rotation @ pose.rotation, m.pose.position + m.pose.rotation @ pose.position)
    if (noise := m.noise(camera))[0]:
        m.draft.unused.append(
            f"{describe(m.element)} / noise / stddev = {noise[0]:g}: the noise of a camera depends on light"
        )
    if not (16 <= width <= 1024 and 16 <= height <= 1024):
        m.draft.unused.append(
            f"{describe(m.element)} / image = {width} x {height}: an image has at most 1024 x 1024 pixels"
        )
        scale = 1024 / max(width, height)
        width, height = int(width * scale), int(height * scale)
    if reach > 200.0:
        m.draft.notes.append(f"{describe(m.element)}: the visual range is 200 m; in the file, it is {reach:g} m")
    m.add(
        "camera",
        ACROSS,
        rate,
        width=str(width),
        height=str(height),
        view=f"{math.degrees(view):.9g} deg",
        range=f"{min(reach, 200.0):g} m",
    )


def _lidar(m: _Mount, rate: float) -> None:
    ray = m.use.child(m.element, "lidar", "ray")
    scan, reach = m.use.child(ray, "scan"), m.use.child(ray, "range")
    sides, heights = m.use.child(scan, "horizontal"), m.use.child(scan, "vertical")
    columns, channels = (int(m.use.number(g, "samples", d)) for g, d in ((sides, 640.0), (heights, 1.0)))
    left, right = m.use.number(sides, "max_angle", 0.0), m.use.number(sides, "min_angle", 0.0)
    upper, lower = m.use.number(heights, "max_angle", 0.0), m.use.number(heights, "min_angle", 0.0)
    least, most = m.use.number(reach, "min", 0.1), m.use.number(reach, "max", 100.0)
    for group in (sides, heights, reach):
        m.use.mark(group.find("resolution") if group is not None else None)
    sigma = m.noise(ray)[0]
    if channels == 1 and 2 <= columns <= 256 and abs(left + right) < 1e-6 and 0.01 <= left - right <= 3.1:
        m.draft.notes.append(
            f"{describe(m.element)}: a fan of beams; its values run from one side of the fan to the other"
        )
        m.add(
            "multibeam",
            ALONG,
            rate,
            beams=str(columns),
            width=f"{math.degrees(left - right):.9g} deg",
            maximum=f"{most:g} m",
            sigma=f"{sigma:g} m",
        )
        return
    if channels < 2 or not 2 <= columns <= 4096 or channels > 256 or left <= right:
        m.draft.unused.append(
            f"{describe(m.element)}: {channels} x {columns} beams; a lidar has 2 to 256 channels and 2 to 4096 columns"
        )
        return
    if abs(left + right) > 1e-6:
        m.draft.unused.append(f"{describe(m.element)} / horizontal: the sector is not symmetric about the x axis")
    water = {"extinction": "0 1/m", "minimum_reflectivity": "0"} if m.draft.attributes["type"] == "underwater" else {}
    if water:
        m.draft.notes.append(f"{describe(m.element)}: the water does not absorb its rays, as in Gazebo")
    m.add(
        "lidar",
        ACROSS,
        rate,
        **water,
        channels=str(channels),
        columns=str(columns),
        sector=f"{min(360.0, math.degrees(left - right)):.9g} deg",
        upper=f"{math.degrees(upper):.9g} deg",
        lower=f"{math.degrees(lower):.9g} deg",
        minimum=f"{least:g} m",
        range=f"{min(most, 1000.0):g} m",
        sigma=f"{sigma:g} m",
        sweep="no",
    )


def _dvl(m: _Mount, rate: float) -> None:
    dvl = m.use.child(m.element, "gz-dvl", "ignition-dvl", "dvl")
    arrangement = m.use.child(dvl, "arrangement")
    beams = arrangement.findall("beam") if arrangement is not None else []
    factor = (
        1.0 if arrangement is not None and arrangement.get("degrees", "").lower() in ("1", "true") else 180.0 / math.pi
    )
    turns, tilts = [], []
    for beam in beams:
        m.use.mark(beam)
        turns.append(factor * m.use.number(beam, "rotation", 0.0))
        tilts.append(factor * m.use.number(beam, "tilt", 0.0))
        if aperture := m.use.text(beam, "aperture"):
            m.draft.notes.append(
                f"{describe(m.element)}: the beams are rays; in the file, their aperture is {aperture}"
            )
    quarter = sorted(round(t % 360.0, 3) for t in turns)
    if len(beams) != 4 or max(np.ptp(tilts), np.ptp(np.diff(quarter))) > 1e-3:
        m.use.mark_all(m.element)
        m.draft.unused.append(f"{describe(m.element)}: its beams are not four beams in a Janus arrangement")
        return
    tracking, sigmas = m.use.child(dvl, "tracking"), []
    for tag in ("bottom_mode", "water_mass_mode"):
        mode = m.use.child(tracking, tag)
        sigmas.append(m.noise(mode)[0])
        for silent in ("when", "bins", "boundaries", "water_velocity"):
            m.use.mark_all(mode.find(silent) if mode is not None else None)
    for silent in ("type", "resolution", "reference_frame"):
        if value := m.use.text(dvl, silent):
            m.draft.notes.append(f"{describe(m.element)}: {silent} = {value} has no counterpart")
    reach = m.use.number(dvl, "minimum_range", 0.0), m.use.number(dvl, "maximum_range", 100.0)
    m.draft.notes.append(f"{describe(m.element)}: velocities are in the frame S (ahead, starboard, down)")
    m.add(
        "dvl",
        ACROSS,
        rate,
        angle=f"{tilts[0]:.9g} deg",
        first=f"{quarter[0] % 90.0:.9g} deg",
        minimum=f"{reach[0]:g} m",
        maximum=f"{reach[1]:g} m",
        bottom_sigma=f"{sigmas[0]:.9g} m/s",
        water_sigma=f"{sigmas[1]:.9g} m/s",
    )


def _scalar(tag: str) -> Callable[[_Mount, float], None]:
    def convert(m: _Mount, rate: float) -> None:
        noise = next((n for n in m.element.iter("noise")), None)
        white = m.noise(noise)[0] if noise is not None else 0.0
        for group in m.element:
            m.use.mark(group)
        if white:
            m.draft.unused.append(f"{describe(m.element)} / stddev = {white:g}: a {tag} sensor has its own errors")
        m.add(tag, SAME, rate, **({} if white else {"noise": "0"}))

    return convert


def _uuv_imu(m: _Mount, rate: float) -> None:
    """UUV Simulator multiplies all errors by `noise_amplitude`, whose default is zero."""
    scale = m.use.number(m.element, "noise_amplitude", 0.0)
    m.use.text(m.element, "noise_sigma")
    found = []
    for name, walk in (("gyroscope", "gyroscope_bias_random_walk"), ("accelerometer", "accelerometer_random_walk")):
        time = m.use.number(m.element, f"{name}_bias_correlation_time", 1000.0)
        white = scale * m.use.number(m.element, f"{name}_noise_density", 0.0) * math.sqrt(m.rate(rate))
        m.use.text(m.element, f"{name}_random_walk")
        turn_on = scale * m.use.number(m.element, f"{name}_turn_on_bias_sigma", 0.0)
        found.append((white, turn_on, scale * m.use.number(m.element, walk, 0.0), time))
    if orientation := m.use.text(m.element, "orientation_noise"):
        m.draft.notes.append(
            f"{describe(m.element)}: orientation_noise = {orientation}; add an <ahrs> if a program needs it"
        )
    m.name = "imu"
    _add_imu(m, rate, found[0], found[1])


def _uuv_sigma(m: _Mount) -> float:
    return m.use.number(m.element, "noise_amplitude", 0.0) * m.use.number(m.element, "noise_sigma", 0.0)


def _uuv_dvl(m: _Mount, rate: float) -> None:
    sigma = _uuv_sigma(m)
    m.name = "dvl"
    m.draft.notes.append(f"{describe(m.element)}: it has no limit of range; the instrument keeps its default of 90 m")
    m.draft.notes.append(f"{describe(m.element)}: velocities are in the frame S (z along the beams)")
    keys = {"bottom_covariance": format_numbers(*(np.eye(3) * sigma**2).ravel())} if sigma else {"noise": "0"}
    m.add("dvl", ALONG, rate, **keys)


def _uuv_pressure(m: _Mount, rate: float) -> None:
    if sigma := _uuv_sigma(m):
        m.draft.unused.append(
            f"{describe(m.element)} / noise_sigma = {sigma:g} kPa: a pressure sensor has its own errors"
        )
    for tag in ("saturation", "estimate_depth_on", "standard_pressure", "kPa_per_meter"):
        m.use.text(m.element, tag)
    m.name = "pressure"
    m.draft.notes.append(
        f"{describe(m.element)}: the pressure follows from the water of the world, not from kPa_per_meter"
    )
    m.add("pressure", SAME, rate, **({} if sigma else {"noise": "0"}))


def _uuv_magnetometer(m: _Mount, rate: float) -> None:
    scale, _ = m.use.number(m.element, "noise_amplitude", 0.0), m.use.text(m.element, "noise_sigma")
    xy, z, offset = (
        scale * m.use.number(m.element, t, d) for t, d in (("noise_xy", 1.0), ("noise_z", 1.4), ("turn_on_bias", 2.0))
    )
    if xy != z:
        m.draft.unused.append(f"{describe(m.element)} / noise_z = {z:g} uT: the axes have one noise")
    for tag in ("intensity", "reference_heading", "declination", "inclination"):
        m.use.text(m.element, tag)
    m.name = "magnetometer"
    m.add("magnetometer", SAME, rate, grade="none", sigma=f"{xy:g} uT", offset=f"{offset:g} uT")


_SENSORS: dict[str, Callable[[_Mount, float], None]] = {
    "imu": _imu,
    "magnetometer": _magnetometer,
    "navsat": _gps,
    "gps": _gps,
    "camera": _camera,
    "gpu_lidar": _lidar,
    "lidar": _lidar,
    "ray": _lidar,
    "gpu_ray": _lidar,
    "dvl": _dvl,
    "salinity": _scalar("salinity"),
    "temperature": _scalar("temperature"),
}
_PLUGINS: dict[str, Callable[[_Mount, float], None]] = {
    r"gazebo_ros_imu_plugin": _uuv_imu,
    r"gazebo_ros_dvl_plugin": _uuv_dvl,
    r"subsea_pressure_plugin": _uuv_pressure,
    r"gazebo_ros_magnetometer_plugin": _uuv_magnetometer,
}
