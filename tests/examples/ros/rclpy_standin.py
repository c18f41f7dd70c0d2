"""The part of rclpy that docs/tutorials/ros.md needs, over Cyclone DDS. The tests have no ROS installation.

``install(folder)`` writes the packages that a node imports; each takes its names from here.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bridges import ros2

PACKAGES = {
    "rclpy/__init__.py": "from tests.examples.ros.rclpy_standin import init, shutdown, spin\n",
    "rclpy/node.py": "from tests.examples.ros.rclpy_standin import Node\n",
    "nav_msgs/msg.py": "from tests.bridges.ros2 import Odometry\n",
    "sensor_msgs/msg.py": "from tests.bridges.ros2 import FluidPressure, Imu\n",
    "geometry_msgs/msg.py": "from tests.examples.ros.rclpy_standin import Twist\n",
}


def install(folder: Path) -> None:
    """Write the packages into a folder of Python's path."""
    for name, text in PACKAGES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)


def Twist() -> ros2.Twist:
    """A message of zeros, as the constructors of ROS make it."""
    return ros2.Twist(ros2.Vector3(0.0, 0.0, 0.0), ros2.Vector3(0.0, 0.0, 0.0))


class Publisher:
    def __init__(self, writer: Any) -> None:
        self.publish = writer.write


class Node:
    """A node whose callbacks run in ``spin``, one after the other."""

    def __init__(self, name: str) -> None:
        self._node = ros2.Node(int(os.environ.get("ROS_DOMAIN_ID", "0")))
        self.waiting: queue.Queue[tuple[Callable[[Any], None], Any]] = queue.Queue()

    def create_subscription(self, kind: type, topic: str, callback: Callable[[Any], None], depth: int) -> object:
        return self._node.read(topic, kind, lambda message: self.waiting.put((callback, message)))

    def create_publisher(self, kind: Any, topic: str, depth: int) -> Publisher:
        return Publisher(self._node.writer(topic, ros2.Twist if kind is Twist else kind))


def init() -> None:
    """Nothing to prepare."""


def shutdown() -> None:
    """Nothing to clean up: the process ends."""


def spin(node: Node) -> None:
    while True:
        callback, message = node.waiting.get(timeout=120.0)
        callback(message)
