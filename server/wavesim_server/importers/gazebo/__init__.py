"""Readers for vehicles of Gazebo and its relatives: SDF, URDF and xacro, with the plugins of gz-sim, LRAUV, VRX and UUV
Simulator.

:func:`read` returns a draft of one rigid body. Links, joints and sensors keep their names in the notes; the axes are
converted from forward-left-up to forward-starboard-down.
"""

from __future__ import annotations

from wavesim_server.importers.gazebo.vehicle import read as read

SUFFIXES = (".sdf", ".urdf", ".xacro", ".world")
