"""Both navigation filters of the examples, after a loss of the instruments."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

ON_BOARD = Path(__file__).parents[2] / "examples" / "onboard"
SOUND = 1500.0
PLACES = ((-200.0, -150.0, 8.0), (-200.0, 250.0, 8.0), (260.0, 20.0, 8.0))


@pytest.mark.parametrize(("gap", "most"), [(45.0, 1.0), (0.5, 0.5)])
@pytest.mark.parametrize("filter_", ["small", "reference"])
def test_ranges_correct_the_position_after_a_gap_of_the_instruments(
    filter_: str, gap: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vehicle drifts on without an instrument. The filter then accepts ranges again, and states an honest deviation."""
    monkeypatch.syspath_prepend(str(ON_BOARD))
    from navigator import Beacon, Navigator
    from reference import Reference

    n = (Navigator if filter_ == "small" else Reference)((0.0, 0.0), SOUND, (0.0, 0.0, 0.0))
    beacons = [Beacon(p, 25e3 + 1e3 * k, 0.0) for k, p in enumerate(PLACES)]
    place = [0.0, 0.0, 10.0]

    def rest(since: float, seconds: float) -> None:
        for k in range(1, round(10.0 * seconds) + 1):
            time = since + 0.1 * k
            n.predict(time, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), place[2])
            if k % 20 == 0:
                beacon = beacons[k // 20 % 3]
                n.round_trip(time - 2.0 * math.dist(place, beacon.position) / SOUND, time, beacon)

    rest(0.0, 60.0)
    assert math.dist(n.place, place[:2]) < 0.1
    if isinstance(n, Navigator):
        assert n.accepted == 30
    place[1] += 0.5 * gap  # its drift, which the filter has not seen
    rest(60.0 + gap, 60.0)
    error = math.dist(n.place, place[:2])
    assert error < most and error < 4.0 * math.hypot(*n.sigma)
    if isinstance(n, Navigator):
        assert n.rejected == 0 and n.accepted == 60
