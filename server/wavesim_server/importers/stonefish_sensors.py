"""Sensors of Stonefish robots as instruments, with their mounting, rate and noise."""

from __future__ import annotations

import re

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.kinematics import rotation_to_euler
from wavesim_server.importers.model_draft import ModelDraft, format_numbers
from wavesim_server.importers.stonefish_scenario import frame, number, vector

#: keys of an <imu> without errors other than white noise
QUIET_IMU = {
    f"{which}_{error}": "0" for which in ("gyro", "accelerometer") for error in ("walk", "turn_on", "instability")
}
MOST_PIXELS = 1024  #: largest width and height of a camera's image
KNOWN = (
    "accelerometer",
    "gyro",
    "imu",
    "dvl",
    "gps",
    "pressure",
    "odometry",
    "compass",
    "multibeam",
    "multibeam1d",
    "camera",
    "depthcamera",
)


class _Sensor:
    """One <sensor> element, and the attributes and children of it that were used."""

    def __init__(self, element: etree._Element, draft: ModelDraft) -> None:
        self.element, self.draft = element, draft
        self.name = re.sub(r"[^A-Za-z0-9_-]+", "-", element.get("name", ""))[:31]
        self.kind = element.get("type", "")
        self._used = {("link", "name"), ("origin", "rpy"), ("origin", "xyz"), ("history", "samples")}

    def get(self, tag: str, key: str, default: float) -> float:
        self._used.add((tag, key))
        found = self.element.find(tag)
        return default if found is None else number(found, key, default)

    def triple(self, tag: str, key: str) -> Floats | None:
        """Return three numbers; one number counts for all axes."""
        self._used.add((tag, key))
        found = self.element.find(tag)
        if found is None or found.get(key) is None:
            return None
        count = len((found.get(key) or "").split())
        return vector(found.get(key), found, 3) if count != 1 else np.full(3, number(found, key))

    def ignore(self, tag: str, key: str) -> None:
        self._used.add((tag, key))

    @property
    def unread(self) -> list[str]:
        return [
            f"{child.tag} {key!s}={value!s}"
            for child in self.element
            for key, value in child.items()
            if (child.tag, key) not in self._used and value not in ("0", "0.0") and not child.tag.startswith("ros")
        ]

    def common(self, turn: Floats | None = None) -> dict[str, str]:
        """Return the name, rate and mounting. ``turn`` is a rotation from the instrument to Stonefish's sensor."""
        place = frame(self.element.find("origin"))
        rotation = place[:3, :3] if turn is None else place[:3, :3] @ turn
        angles = np.degrees(rotation_to_euler(rotation))
        found = {"name": self.name}
        rate = float(self.element.get("rate", "-1"))
        if rate > 0.0:
            found["rate"] = f"{rate:g} Hz"
        else:
            self.draft.notes.append(
                f"sensor '{self.name}': Stonefish updates it in every step; the model uses the default rate"
            )
        return found | {
            "position": format_numbers(*place[:3, 3]) + " m",
            "attitude": format_numbers(*np.round(angles, 6)) + " deg",
        }


def _new(sensors: etree._Element, tag: str, **keys: str) -> None:
    """Add an instrument."""
    etree.SubElement(sensors, tag, keys)


def covariance(sigma: Floats) -> str:
    """Return the 3x3 covariance of independent errors with the standard deviations sigma (3,)."""
    return format_numbers(*np.diag(np.square(sigma)).ravel())


def add(draft: ModelDraft, robot: etree._Element, base: str) -> None:
    """Add <sensors> with the instruments that have a counterpart; list the others."""
    sensors = etree.Element("sensors")
    for element in robot.findall("sensor"):
        sensor = _Sensor(element, draft)
        link = element.find("link")
        if sensor.kind not in KNOWN or (link is not None and link.get("name") != base):
            where = f" on the link '{link.get('name')}'" if link is not None and link.get("name") != base else ""
            draft.unused.append(f"sensor '{sensor.name}' of the type {sensor.kind}{where}")
            continue
        _add(sensors, sensor)
        draft.unused += [f"sensor '{sensor.name}': {item}" for item in sensor.unread]
    if len(sensors):
        draft.elements.append(sensors)


def _add(sensors: etree._Element, s: _Sensor) -> None:
    if s.kind in ("imu", "accelerometer", "gyro"):
        _inertial(sensors, s)
    elif s.kind == "compass":
        sigma = s.get("noise", "heading", 0.0)
        _new(sensors, "ahrs", **s.common(), orientation_covariance=covariance(np.array([0.0, 0.0, sigma])))
    elif s.kind == "dvl":
        specs = s.element.find("specs")
        up = specs is None or specs.get("beam_positive_z", "false") != "true"
        s.ignore("specs", "beam_positive_z")
        sigma, water = s.get("noise", "velocity", 0.0), s.get("noise", "water_velocity", 0.0)
        if up:
            s.draft.notes.append(
                f"sensor '{s.name}': its beams point against Stonefish's z axis; the instrument is turned by 180 deg about x, so "
                "its y and z velocities have the other sign"
            )
        _new(
            sensors,
            "dvl",
            **s.common(np.diag([1.0, -1.0, -1.0]) if up else None),
            angle=f"{s.get('specs', 'beam_angle', 30.0):g} deg",
            minimum=f"{s.get('range', 'altitude_min', 0.0):g} m",
            maximum=f"{s.get('range', 'altitude_max', 1000.0):g} m",
            bottom_covariance=covariance(np.full(3, sigma)),
            water_covariance=covariance(np.full(3, water)),
        )
    elif s.kind == "gps":
        sigma = s.get("noise", "ned_position", 0.0)
        _new(
            sensors,
            "gps",
            **s.common(),
            position_covariance=covariance(np.array([sigma, sigma, 0.0])),
            correlation="0 s",
        )
    elif s.kind == "pressure":
        _new(sensors, "pressure", **s.common())
    elif s.kind == "odometry":
        _new(sensors, "navigation", **s.common())
    elif s.kind in ("multibeam", "multibeam1d"):
        steps = int(s.get("specs", "steps", 64.0)) + 1
        _new(
            sensors,
            "multibeam",
            **s.common(
                np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
            ),  # Stonefish's beams lie in its x-y plane, about x
            beams=str(steps),
            width=f"{s.get('specs', 'fov', 120.0):g} deg",
            maximum=f"{s.get('range', 'distance_max', 150.0):g} m",
            sigma=f"{s.get('noise', 'distance', 0.0):g} m",
        )
    else:
        width, height = s.get("specs", "resolution_x", 320.0), s.get("specs", "resolution_y", 240.0)
        shrink = min(1.0, MOST_PIXELS / max(width, height))
        if shrink < 1.0:
            s.draft.unused.append(
                f"sensor '{s.name}': {width:g} x {height:g} pixels; the camera has at most {MOST_PIXELS} a side"
            )
        _new(
            sensors,
            "camera",
            **s.common(np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])),  # Stonefish's z axis is the line of sight
            width=f"{int(width * shrink)}",
            height=f"{int(height * shrink)}",
            view=f"{s.get('specs', 'horizontal_fov', 60.0):g} deg",
            depth="yes" if s.kind == "depthcamera" else "no",
        )


def _inertial(sensors: etree._Element, s: _Sensor) -> None:
    nothing = np.zeros(3)
    rates, accelerations = s.triple("noise", "angular_velocity"), s.triple("noise", "linear_acceleration")
    angles = s.triple("noise", "angle")
    common = s.common()
    _new(
        sensors,
        "imu",
        **common,
        **QUIET_IMU,
        angular_rate_covariance=covariance(nothing if rates is None else rates),
        acceleration_covariance=covariance(nothing if accelerations is None else accelerations),
    )
    if s.kind == "imu":
        _new(
            sensors,
            "ahrs",
            **(common | {"name": f"{s.name[:22]}-attitude"}),
            orientation_covariance=covariance(nothing if angles is None else angles),
            angular_rate_covariance=covariance(nothing if rates is None else rates),
        )
    if s.kind != "imu":
        s.draft.notes.append(f"sensor '{s.name}': the model has a whole IMU instead of the {s.kind} alone")
