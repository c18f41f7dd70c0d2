"""Axes of ROS messages: ENU and forward-left-up as in REP 103, or NED and forward-right-down as in WaVeSim itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.axes import attitude_enu

_TURNED = math.sqrt(0.5)


@dataclass(frozen=True)
class Axes:
    """Axes of a layout. ``world`` and ``body`` convert vectors from NED and FRD to these axes, and back."""

    name: str
    world: Floats
    body: Floats

    @property
    def is_ned(self) -> bool:
        return self.name == "ned"

    def attitude(self, q_WB: Floats) -> Floats:
        """Convert the quaternion of an attitude (FRD to NED) to the axes of the layout."""
        return np.asarray(q_WB, float) if self.is_ned else attitude_enu(q_WB)

    def mount(self, q_BS: Floats) -> Floats:
        """Convert a rotation between two FRD frames to a rotation between the same frames with the body axes of the
        layout.
        """
        w, x, y, z = q_BS
        return np.array([w, x, y, z] if self.is_ned else [w, x, -y, -z])

    def world_covariance(self, covariance: Floats) -> Floats:
        """Convert a covariance (3, 3) in NED to the world axes of the layout."""
        return np.asarray(self.world @ covariance @ self.world.T)

    def body_covariance(self, covariance: Floats) -> Floats:
        """Convert a covariance (3, 3) in FRD to the body axes of the layout."""
        return np.asarray(self.body @ covariance @ self.body.T)

    @property
    def face(self) -> Floats:
        """Rotation from a link to the instrument's own axes, FRD."""
        return np.array([1.0, 0.0, 0.0, 0.0] if self.is_ned else [0.0, 1.0, 0.0, 0.0])

    @property
    def beam(self) -> Floats:
        """Rotation from a link to a frame whose x axis is the z axis of the instrument."""
        return np.array([_TURNED, 0.0, -_TURNED if self.is_ned else _TURNED, 0.0])


ENU = Axes("enu", np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]), np.diag([1.0, -1.0, -1.0]))
NED = Axes("ned", np.eye(3), np.eye(3))
AXES = {axes.name: axes for axes in (ENU, NED)}
