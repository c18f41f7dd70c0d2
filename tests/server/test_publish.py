"""The newest records in shared memory: a reader that keeps up sees all, one that does not knows how many it missed."""

from __future__ import annotations

import os

import numpy as np
import pytest

from wavesim_sdk.area import Area
from wavesim_sdk.tables import NOTICE
from wavesim_server.network.publish import Newest


@pytest.fixture
def area() -> object:
    name = f"/wavesim-test-publish-{os.getpid()}"
    made = Area.create(name, [(NOTICE, 8)])
    yield made
    made.unlink()


def test_the_newest_of_many(area: Area) -> None:
    newest = Newest(area[NOTICE.name])
    draw = np.random.default_rng(3)
    written = seen = missed = 0
    taken: list[int] = []
    while written < 500:
        count = int(draw.integers(0, 12))
        rows = np.zeros(count, NOTICE.dtype)
        rows["time_ns"] = np.arange(written, written + count)
        newest.add(rows)
        written += count
        if draw.random() < 0.5:
            newest.publish()
            total, ring = area[NOTICE.name].snapshot()
            assert total == written
            first = max(seen, total - 8)
            missed += first - seen
            taken += ring[np.arange(first, total) % 8]["time_ns"].tolist()
            seen = total
    assert len(taken) + missed == seen
    assert taken == sorted(set(taken)), "each once, in order"
