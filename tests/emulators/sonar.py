"""Small sonars over small worlds, without a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wavesim_emulators.sonar.design import SonarDesign
from wavesim_emulators.sonar.imaging import SonarPose
from wavesim_emulators.sonar.scene import SonarScene
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
