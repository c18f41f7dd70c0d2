"""Measure imaging sonars on one core, and their rays compared with the bare rate of embree, in turn: OPENBLAS_NUM_THREADS=1
python -m benchmarks.sonar
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from embreex.mesh_construction import TriangleMesh
from embreex.rtcore_scene import EmbreeScene
from tests.emulators.sonar import strongest_echoes

from wavesim_emulators.sonar import design as shape
from wavesim_emulators.sonar import imaging, multibeam, scene, sonar_3d
from wavesim_emulators.sonar.camera import CameraView
from wavesim_emulators.sonar.design import SonarDesign
from wavesim_emulators.sonar.sonar_3d_kernels import find_strongest_echoes
from wavesim_world.config import load
from wavesim_world.config.imaging import Optics
from wavesim_world.config.ranging_sensors import CameraConfig
from wavesim_world.ocean import bed
from wavesim_world.sonars import presets

TURNS = 9


def world(folder: Path) -> tuple[scene.SonarScene, Any]:
    """Return rolling ground as 40 000 soundings, with walls and posts."""
    n, e = np.meshgrid(np.arange(-200.0, 200.0, 2.0), np.arange(-200.0, 200.0, 2.0))
    depth = 20.0 + 1.5 * np.sin(n / 13.0) + np.cos(e / 9.0)
    (folder / "bed.txt").write_text(
        "\n".join(f"{a:g} {b:g} {c:.3f}" for a, b, c in zip(n.ravel(), e.ravel(), depth.ravel(), strict=True))
    )
    posts = "".join(f'<pier position="{20 + 5 * i} {3 * i - 9} 15 m" radius="0.4 m" height="20 m"/>' for i in range(6))
    (folder / "c.xml").write_text(
        f'<wavesim><world><soundings file="bed.txt"/><obstacles><block position="45 0 18 m" size="1 30 6 m"/>{posts}</obstacles></world></wavesim>'
    )
    loaded = load(folder / "c.xml")
    return scene.SonarScene(loaded), bed.triangulated_bed(loaded)


def cpu(of: Callable[[], object]) -> float:
    """Return processor time in s."""
    begun = time.process_time()
    of()
    return time.process_time() - begun


def compare_with_numpy(sonar: sonar_3d.Sonar3D, pose: imaging.SonarPose) -> None:
    """Print the time of the search for the strongest echoes, in the kernel and in NumPy, in turn."""
    R = pose.R @ sonar.axes
    hits = sonar.world.cast_fan(pose.p, R, sonar.u, sonar.e, sonar.design.range, 0.0, True)
    rays = sonar._ray_echoes(*hits, pose, R, 1)
    power, ray = np.empty(sonar.pixels.shape), np.empty(sonar.pixels.shape, np.int32)
    pulse = sonar.design.pulse
    ways: dict[str, Callable[[], object]] = {
        "kernel": lambda: find_strongest_echoes(rays, sonar.weights, pulse, power, ray),
        "NumPy": lambda: strongest_echoes(rays, sonar.weights, pulse),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, way in ways.items():
            took[name].append(cpu(way))
    kernel, numpy = (min(took[name]) for name in ways)
    print(f"3D: strongest echoes in {kernel * 1e3:.1f} ms; in NumPy {numpy * 1e3:.0f} ms ({numpy / kernel:.0f} times)")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        w, joined = world(Path(folder))
    pose = imaging.SonarPose(
        np.array([0.0, 0.0, 14.0]), np.eye(3), np.array([1.5, 0.0, 0.0]), np.array([0.0, 0.0, 0.02])
    )
    corners = joined.points[joined.simplices]
    bare = EmbreeScene()
    TriangleMesh(bare, np.ascontiguousarray(corners - pose.p, np.float32))

    def make(name: str, bins: int, **changes: Any) -> SonarDesign:
        p = replace(presets.find_preset(name), **changes)
        return SonarDesign(p, p.range, bins, absorption=0.1)

    forward = imaging.ForwardLookingSonar(make("m750d-low", 500, range=50.0), w, 5.0, 1)
    half = imaging.ForwardLookingSonar(make("m750d-low", 500, range=50.0, beams=256), w, 5.0, 1)
    three = sonar_3d.Sonar3D(make("sonar-3d15-low", 3750), w, 5.0, 1)
    made: dict[str, tuple[Any, float]] = {
        "forward 512 x 500": (forward, 10.0),
        "forward 256 x 500": (half, 10.0),
        "side-scan 2 x 1000": (imaging.SideScanSonar(make("starfish-450", 1000), w, 5.0, 1), 15.0),
        "multibeam 256": (multibeam.MultibeamSonar(make("r2sonic-2024", 2000), w, 5.0, 1), 20.0),
        "its water column": (imaging.ForwardLookingSonar(make("r2sonic-2024-water", 500, range=35.0), w, 5.0, 1), 20.0),
        "3D 256 x 64": (three, 5.0),
        "scanning 1200": (imaging.ScanningSonar(make("ping360", 1200), w, 5.0, 1), 45.0),
    }
    rays = forward.rays
    along = scene.fan_directions(rays.u, rays.e) @ (pose.R @ forward.axes).T
    d = np.ascontiguousarray(along.reshape(-1, 3), np.float32)
    o = np.zeros_like(d)
    R = pose.R @ forward.axes
    spent: dict[str, list[float]] = {name: [] for name in (*made, "cast", "embree")}
    for turn in range(TURNS + 1):
        for name, (sonar, _) in made.items():
            spent[name].append(cpu(lambda: sonar.ping(pose, turn)))
        spent["cast"].append(cpu(lambda: w.cast_fan(pose.p, R, rays.u, rays.e, 51.0)))
        spent["embree"].append(cpu(lambda: bare.run(o, d, output=True)))
    print(f"{'sonar':22} {'ms/frame':>10} {'rate':>6} {'core load':>9}   (median of {TURNS}, processor time)")
    for name, (_, rate) in made.items():
        took = float(np.median(spent[name][1:]))
        print(f"{name:22} {took * 1e3:10.2f} {rate:4.0f}/s {took * rate:9.1%}")
    count = len(d)
    ours, theirs = (count / float(np.median(spent[k][1:])) for k in ("cast", "embree"))
    print(
        f"rays: {ours / 1e6:.2f} M/s with normals, materials, walls; embree alone {theirs / 1e6:.2f} M/s: {ours / theirs:.0%}"
    )
    eye = CameraView(CameraConfig(lamp=3.0), w, Optics(), (), 1)
    took = sorted(cpu(lambda: eye.picture(pose.p, pose.R, 1)) for _ in range(TURNS))[TURNS // 2]
    print(f"camera 320 x 240 with a lamp: {took * 1e3:.0f} ms")
    compare_with_numpy(three, pose)
    print(f"columns {len(rays.u)}, rays {shape.RAYS}, triangles {len(corners)}")


if __name__ == "__main__":
    main()
