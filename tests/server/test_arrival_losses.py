"""The front end reports arrivals that the emulator of hydrophones has lost."""

from __future__ import annotations

import numpy as np

from tests.physics.courses import HYDROPHONE, world
from tests.server.harbour import Harbour


def test_each_loss_is_reported_once() -> None:
    """All hydrophones count the same losses. A lower count belongs to another run."""
    harbour = Harbour(world("20 ms", 1, hydrophone=HYDROPHONE), speed=1.0)
    assert harbour.order("start")[0]
    table = harbour.areas["vehicles"]["hydrophone"]

    def texts(count: float) -> list[str]:
        rows = np.zeros(table.capacity, table.dtype)
        rows["lost_count"] = count
        table.publish(rows, 1)
        harbour.run(0.15)
        return [text.split(" of sound")[0] for text in harbour.front.data_loss.texts]

    assert [texts(n) for n in (0, 7, 7)] == [[], ["7 arrivals"], ["7 arrivals"]]
    assert texts(10) == ["7 arrivals", "3 arrivals"]
    assert texts(0) == ["7 arrivals", "3 arrivals"]
    assert texts(2)[-1] == "2 arrivals"
