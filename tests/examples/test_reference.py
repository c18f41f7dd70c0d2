"""The reference filter on board: it estimates position, current and clock, with the same numbers on every machine.

Run as a program, this file prints a digest of the filter's estimates in a short dive. It needs its own process, because
the environment decides which code NumPy and the C library use.
"""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.test_trial import OLD_LIBC, OLD_NUMPY
from wavesim_sdk.arrays import Array

pytestmark = [pytest.mark.xdist_group("navigation")]  # they share compiled kernels
ON_BOARD = Path(__file__).parents[2] / "examples" / "onboard"
SOUND = 1500.0
PLACES = ((-200.0, -150.0, 8.0), (-200.0, 250.0, 8.0), (260.0, 20.0, 8.0))
CURRENT = (0.12, -0.07)


def dive(seconds: float, way: str) -> tuple[Any, Array]:
    """(navigator, numbers of each step) of a turn in a current, by exact round trips or one-way times to three beacons in turn, with a
    clock that is 2 ms ahead; its start is given 3 m off."""
    sys.path.insert(0, str(ON_BOARD))
    try:
        from navigator import Beacon
        from reference import Reference
    finally:
        sys.path.remove(str(ON_BOARD))
    beacons = [Beacon(p, 25e3 + 1e3 * k, 0.0) for k, p in enumerate(PLACES)]
    clock = 2e-3 if way == "one way" else 0.0
    n, u, r = (
        Reference((3.0, 0.0), SOUND, (0.5, 0.0, 0.0), doubt=3.0, clock=5e-3 if clock else 0.0, drift=1e-6),
        1.5,
        0.02,
    )

    def place(t: float) -> tuple[float, float, float]:  # of the transducer
        s, c = math.sin(r * t), math.cos(r * t)
        return u / r * s + CURRENT[0] * t + 0.5 * c, u / r * (1.0 - c) + CURRENT[1] * t + 0.5 * s, 10.0

    estimates = []
    for k in range(round(10.0 * seconds)):
        t = 0.1 * k
        n.predict(t, (0.0, 0.0, (r * t + math.pi) % (2.0 * math.pi) - math.pi), (0.0, 0.0, r), (u, 0.0, 0.0), 10.0)
        if k % 20 == 15:
            beacon = beacons[k // 20 % 3]
            if clock:
                heard = t - 0.03
                n.one_way(heard - math.dist(place(heard), beacon.position) / SOUND, heard + clock, beacon)
            else:
                heard, asked = t - 0.03, t - 0.03
                for _ in range(30):
                    asked = (
                        heard
                        - (math.dist(place(heard), beacon.position) + math.dist(place(asked), beacon.position)) / SOUND
                    )
                n.round_trip(asked, heard, beacon)
        estimates.append([*n.place, *n.current, *n.sigma])
    north, east, _ = place(t)
    s, c = math.sin(r * t), math.cos(r * t)
    n.truth = north - 0.5 * c, east - 0.5 * s
    return n, np.array(estimates)


@pytest.mark.parametrize("way", ["round trip", "one way"])
def test_it_finds_place_current_and_clock(way: str) -> None:
    n, estimates = dive(200.0, way)
    assert np.hypot(*np.subtract(estimates[0, :2], (0.0, 0.0))) > 2.0, "it began elsewhere"
    assert np.hypot(*np.subtract(n.place, n.truth)) < 0.3
    assert n.current == pytest.approx(CURRENT, abs=0.02)
    assert abs(n.innovation) < 0.3 and max(n.sigma) < 0.5
    if way == "one way":
        assert n._filter.state.optional_state("clock")[0] / SOUND == pytest.approx(2e-3, abs=2e-4)


def test_its_numbers_are_the_same_everywhere() -> None:
    """NumPy and the C library as on older processors, and the kernels as plain Python."""
    found = set()
    for more in ({}, OLD_NUMPY | OLD_LIBC, {"NUMBA_DISABLE_JIT": "1"}):
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            cwd=ON_BOARD.parents[1],
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1, found


if __name__ == "__main__":
    digest = hashlib.sha256()
    for kind in ("round trip", "one way"):
        digest.update(dive(5.0, kind)[1].tobytes())
    print(digest.hexdigest())
