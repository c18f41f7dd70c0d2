"""Scanning heads over the sonar engine: walls of a tank at known ranges and bearings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.devices import test_imagenex, test_micron
from tests.devices.scanning import FakeScan
from tests.emulators import sonar
from tests.sdk.test_sonar_devices import framed
from wavesim_emulators.sonar import imaging
from wavesim_sdk.imaging_frames import ImagingFrame

#: distance of the wall in m, by bearing in degrees
WALLS = {0: 8.0, 90: 6.0, 180: 12.0, -90: 10.0}


def tank(config: Any, preset: str) -> list[ImagingFrame]:
    """One turn of a sonar in a tank, in steps of 9 deg."""
    walls = "".join(
        f'<block position="{(r + 0.5) * math.cos(a):.3f} {(r + 0.5) * math.sin(a):.3f} 5 m" '
        f'size="{1 + 40 * abs(math.sin(a)):.1f} {1 + 40 * abs(math.cos(a)):.1f} 10 m" material="concrete"/>'
        for a, r in ((math.radians(bearing), r) for bearing, r in WALLS.items())
    )
    w = sonar.world(config, f'<bed depth="400 m"/><obstacles>{walls}</obstacles>')
    d = sonar.design(preset, 20.0, 1000, {"step": math.radians(9.0)}, floor=110.0, gain=-30.0)
    head = imaging.ScanningSonar(d, w, 0.0, 1)
    return [framed(d, head.ping(sonar.pose((0.0, 0.0, 5.0)), n), n + 1) for n in range(40)]


class Scan(FakeScan):
    """A single scan of the engine."""

    def __init__(self, frames: list[ImagingFrame]) -> None:
        self.frames = frames

    def take(self) -> list[ImagingFrame]:
        found, self.frames = self.frames, []
        return found


def test_a_micron_sees_the_walls(config: Any) -> None:
    head = test_micron.Head(Scan(tank(config, "micron")))
    head.configure(control=0x2307, step=160, interval=104, motor=1)  # 9 deg; 400 bins of 50 mm
    each, found = 0.5 * 1500.0 * 104 * 640e-9, {}
    for _ in range(40):
        fields, bins = head.ping()
        bearing = (fields[-2] - 3200) * 360.0 / 6400.0
        found[round(bearing) % 360] = (int(np.argmax(list(bins))) + 0.5) * each
        assert max(bins) < 255
    for bearing, wall in WALLS.items():
        assert found[bearing % 360] == pytest.approx(wall, abs=each), bearing
    assert found[45] == pytest.approx(6.0 / math.cos(math.radians(45.0)), abs=0.25)


def test_an_881a_sees_the_walls(config: Any) -> None:
    head = test_imagenex.Head("881A", Scan(tank(config, "imagenex-881a")))
    for bearing, wall in WALLS.items():
        echoes = head.ping(train=60 + bearing // 3, range=20)
        assert 0.3 * (echoes.position - 600) % 360.0 == pytest.approx(bearing % 360)
        assert (max(range(500), key=echoes.samples.__getitem__) + 0.5) * 20.0 / 500 == pytest.approx(wall, abs=0.04)
        assert 0.01 * echoes.profile == pytest.approx(wall, abs=0.1)
