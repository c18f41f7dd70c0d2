"""Draw docs/images/sonar-looks.png: a wreck, a pipeline and rocks, in a forward-looking and in a side-scan sonar."""

from __future__ import annotations

import io
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from wavesim_emulators.sonar.design import SonarDesign
from wavesim_emulators.sonar.imaging import ForwardLookingSonar, SideScanSonar, SonarPose
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_sdk.frames import quaternion, rotation
from wavesim_world.config import load
from wavesim_world.sonars import presets

OUT = Path(__file__).parent / "images" / "sonar-looks.png"
WORLD = """<wavesim><world><bed depth="12 m"/>
<ground material="medium-sand">
  <region material="rock" position="27 10 m" size="13 8 m" heading="30 deg" round="yes"/>
  <region material="gravel" position="13 -9 m" size="11 9 m" round="yes"/>
  <region material="sandy-mud" position="33 -14 m" size="14 14 m" heading="-20 deg"/>
</ground>
<obstacles>
  <block position="24 -2 11.2 m" size="12 2.6 1.6 m" heading="35 deg" material="steel"/>
  <block position="25 -1.3 9.8 m" size="2.6 1.6 1.4 m" heading="35 deg" material="steel"/>
  <pier position="21.5 -3.7 9.4 m" radius="0.08 m" height="3 m" material="steel"/>
  <block position="14 0 11.7 m" size="90 0.6 0.6 m" heading="75 deg" material="concrete"/>
  {rocks}
</obstacles></world></wavesim>"""


def scene() -> SonarScene:
    rng, rocks = np.random.default_rng(2), []
    for _ in range(16):
        north, east, size = 27.0 + rng.normal(0.0, 2.5), 10.0 + rng.normal(0.0, 2.0), rng.uniform(0.4, 1.2)
        rocks.append(
            f'<block position="{north} {east} {12 - size / 3} m" size="{size} {0.7 * size} {size} m" '
            f'heading="{rng.uniform(0, 90)} deg" material="rock"/>'
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.xml"
        path.write_text(WORLD.format(rocks="\n  ".join(rocks)))
        return SonarScene(load(path))


def pose(north: float, east: float, down: float, heading: float, v: tuple[float, float, float]) -> SonarPose:
    return SonarPose(np.array([north, east, down]), rotation(quaternion(0.0, 0.0, heading)), np.array(v), np.zeros(3))


def main() -> None:
    world, wind = scene(), 4.0
    forward = SonarDesign(
        replace(presets.find_preset("m750d-low"), range=40.0), 40.0, 800, absorption=0.22, floor=110.0
    )
    sonar = ForwardLookingSonar(forward, world, wind, 1)
    image = sonar.ping(pose(0.0, 0.0, 7.0, 0.0, (1.0, 0.0, 0.0)), 1).levels
    side = SonarDesign(presets.find_preset("starfish-450"), 40.0, 800, absorption=0.11, floor=110.0)
    scan = SideScanSonar(side, world, wind, 1)
    lines = [
        scan.ping(pose(-2.0, -25.0 + 0.1 * n, 6.0, math.pi / 2, (0.0, 1.0, 0.0)), n).levels[0][::-1] for n in range(500)
    ]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), facecolor="black", layout="constrained", width_ratios=(1.6, 1))
    step = sonar.angles[1] - sonar.angles[0]
    edges = np.append(sonar.angles, sonar.angles[-1] + step) - 0.5 * step
    angles, r = np.meshgrid(edges, np.linspace(0.0, forward.range, forward.bins + 1), indexing="ij")
    axes[0].pcolormesh(r * np.sin(angles), r * np.cos(angles), image, cmap="copper", vmin=0, vmax=235)
    axes[0].set_aspect("equal")
    axes[1].imshow(np.array(lines).T, cmap="copper", vmin=0, vmax=235, aspect="auto")
    for one in axes:
        one.axis("off")
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=80)
    with Image.open(drawn) as picture:
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(OUT, optimize=True)


if __name__ == "__main__":
    main()
