"""The ring between engine and front: order, wrap-around, fullness."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import posix_ipc
import pytest

from wavesim_server.ring import Ring

NAME = f"/wavesim.ring-test-{os.getpid()}"


@pytest.fixture
def ring() -> Iterator[Ring]:
    yield Ring(NAME, 4096)
    posix_ipc.unlink_shared_memory(NAME)


def test_order_and_wrap_around(ring: Ring) -> None:
    reader = Ring(NAME)
    rng = random.Random(1)
    sent, got = [], []
    for k in range(5000):
        record = (k % 7, rng.randbytes(rng.randrange(300)))
        while not ring.push(*record):
            got += list(reader.pop_all())
        sent.append(record)
    got += list(reader.pop_all())
    assert got == sent


def test_a_full_ring_says_so(ring: Ring) -> None:
    count = 0
    while ring.push(1, bytes(100)):
        count += 1
    assert count == 4096 // 112
    ring.drop()
    assert ring.dropped == 1
    assert len(list(Ring(NAME).pop_all())) == count
    with pytest.raises(ValueError, match="cannot fit"):
        ring.push(1, bytes(5000))
