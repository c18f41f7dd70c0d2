"""Small sonars over small worlds, without a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from wavesim_emulators.sonar.design import SonarDesign
from wavesim_emulators.sonar.imaging import SonarPose
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_emulators.sonar.sonar_3d_kernels import RayEchoes
from wavesim_sdk.frames import quaternion, rotation
from wavesim_world.sonars import presets

QUIET = {"noise": False, "speckle": False, "volume": -300.0, "surface": False}


def world(config: Any, inner: str) -> SonarScene:
    return SonarScene(config(f"<world>{inner}</world>"))


def design(preset: str, reach: float, bins: int, changes: dict[str, Any] | None = None, **given: Any) -> SonarDesign:
    """A preset with some of its numbers changed, without noise unless it is asked for."""
    p = replace(presets.find_preset(preset), **(changes or {}))
    return SonarDesign(p, reach, bins, **{**QUIET, **given})


def pose(
    p: Any = (0.0, 0.0, 0.0),
    roll: float = 0.0,
    pitch: float = 0.0,
    heading: float = 0.0,
    v: Any = (0, 0, 0),
    w: Any = (0, 0, 0),
) -> SonarPose:
    return SonarPose(
        np.array(p, float), rotation(quaternion(roll, pitch, heading)), np.array(v, float), np.array(w, float)
    )


def dB(x: Any) -> Any:
    return 10.0 * np.log10(x)


def strongest_echoes(rays: RayEchoes, weights: Any, pulse: float) -> tuple[Any, Any]:
    """Power and ray of each beam of a 3D sonar, in NumPy: the twin of find_strongest_echoes."""

    def beams(values: Any) -> Any:
        return sliding_window_view(values, weights.shape)

    r, energy, extent = (beams(a) for a in rays)
    density = (weights * energy / extent).reshape(*r.shape[:2], -1)
    best = density.argmax(axis=2)[..., None]
    number = np.take_along_axis(
        beams(np.arange(rays.range.size).reshape(rays.range.shape)).reshape(density.shape), best, 2
    )
    there = density.max(axis=2) > 0.0
    middle = rays.range.ravel()[number][..., None]
    covered = np.minimum(r + 0.5 * extent, middle + 0.5 * pulse) - np.maximum(r - 0.5 * extent, middle - 0.5 * pulse)
    power = (weights * energy * np.maximum(covered, 0.0) / extent).sum(axis=(2, 3))
    return np.where(there, power, 0.0), np.where(there, number[..., 0], -1)
