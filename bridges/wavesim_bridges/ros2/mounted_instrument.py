"""Instruments mounted on a vehicle, with the frames, axes and constructors of their messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_bridges.ros2.axes import ENU, Axes
from wavesim_bridges.ros2.message_types import Message, MessageTypes
from wavesim_sdk.actuators import Actuator
from wavesim_sdk.arrays import Floats
from wavesim_sdk.frames import quaternion
from wavesim_world.config.sensors import InstrumentConfig, SensorConfig

ARRAY = "std_msgs/msg/Float64MultiArray"


@dataclass(frozen=True)
class FrameNames:
    """Names of frames. ``world``, ``base`` and ``link`` have the axes of the layout (ENU and FLU, or NED and FRD);
    ``face`` has the same origin as ``link`` but the instrument's own axes, FRD; ``beam`` has its x axis along a single
    beam.
    """

    world: str
    base: str
    link: str
    face: str
    beam: str


class MessageFactory:
    """Constructors of the message types that other messages contain."""

    def __init__(self, types: MessageTypes) -> None:
        self.types = types
        self._header, self._time = types.new("std_msgs/msg/Header"), types.new("builtin_interfaces/msg/Time")
        self._vector, self._point = types.new("geometry_msgs/msg/Vector3"), types.new("geometry_msgs/msg/Point")
        self._quaternion = types.new("geometry_msgs/msg/Quaternion")

    def time(self, stamp: int) -> Message:
        """Return a Time message for a stamp in ns since the epoch."""
        return self._time(*divmod(stamp, 1_000_000_000))

    def header(self, stamp: int, frame: str) -> Message:
        return self._header(self.time(stamp), frame)

    def vector(self, v: Sequence[float] | Floats) -> Message:
        return self._vector(float(v[0]), float(v[1]), float(v[2]))

    def point(self, v: Sequence[float] | Floats) -> Message:
        return self._point(float(v[0]), float(v[1]), float(v[2]))

    def quaternion(self, q: Floats) -> Message:
        """Return a Quaternion message from the components w, x, y, z."""
        w, x, y, z = map(float, q)
        return self._quaternion(x, y, z, w)

    def pose(self, place: Sequence[float] | Floats, q: Floats) -> Message:
        return self.types.new("geometry_msgs/msg/Pose")(self.point(place), self.quaternion(q))

    def twist(self, linear: Sequence[float] | Floats, angular: Sequence[float] | Floats) -> Message:
        return self.types.new("geometry_msgs/msg/Twist")(self.vector(linear), self.vector(angular))

    def transform(self, stamp: int, parent: str, child: str, place: Sequence[float] | Floats, q: Floats) -> Message:
        body = self.types.new("geometry_msgs/msg/Transform")(self.vector(place), self.quaternion(q))
        return self.types.new("geometry_msgs/msg/TransformStamped")(self.header(stamp, parent), child, body)

    def numbers(self, values: Sequence[float], labels: Sequence[tuple[str, int]]) -> Message:
        """Return a Float64MultiArray with a label and a size for each field."""
        dimension, layout = (
            self.types.new("std_msgs/msg/MultiArrayDimension"),
            self.types.new("std_msgs/msg/MultiArrayLayout"),
        )
        return self.types.new(ARRAY)(layout([dimension(name, n, n) for name, n in labels], 0), np.array(values, float))


@dataclass(frozen=True)
class MountedInstrument:
    """Instrument of a vehicle, with its frames and the factory for its messages."""

    instrument: InstrumentConfig
    frames: FrameNames
    factory: MessageFactory
    fields: tuple[tuple[str, int], ...] = ()  #: names of the fields of a value, with the length of each field
    actuators: tuple[Actuator, ...] = ()  #: actuators of the body that carries the instrument
    axes: Axes = ENU  #: axes of the messages

    @property
    def declared(self) -> SensorConfig:
        return self.instrument.parameters

    @property
    def q_BS(self) -> Floats:
        """Attitude of the instrument relative to the body, as a rotation between their FRD frames."""
        return quaternion(*self.declared.attitude)

    def variance(self, sigma: float) -> float:
        """Return the variance of a value. ``sigma`` is the standard deviation of the value's noise if the configuration
        contains ``noise="1"``.
        """
        return (self.declared.noise * sigma) ** 2

    def covariance(self, declared: Sequence[float], *sigmas: float) -> Floats:
        """Return the covariance (3, 3) of a value. If the configuration declares one, it is ``declared`` (nine
        numbers). Otherwise, the errors of the axes are independent, and ``sigmas`` is one standard deviation for all
        axes, or one for each axis.
        """
        found = np.reshape(declared, (3, 3)) if declared else np.diag(np.square(np.broadcast_to(sigmas, 3)))
        return np.asarray(self.declared.noise**2 * found)

    def new(self, name: str, *values: Any) -> Message:
        return self.factory.types.new(name)(*values)
