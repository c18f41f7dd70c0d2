"""A reader of the rings receives every front in order and without gaps; a slow reader learns how many it lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from wavesim_sdk import front_rings
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.front_rings import FrontBatch, FrontReader, FrontRings
from wavesim_sdk.front_tables import FRONT, WAVEFORM


def batch(first: int, count: int, waveforms: int = 0, *, time_ns: int = 0, is_restarted: bool = False) -> FrontBatch:
    """Return fronts that are numbered from ``first`` on, after waveforms with the same first number."""
    fronts, signals = np.zeros(count, FRONT.dtype), np.zeros(waveforms, WAVEFORM.dtype)
    fronts["signal"], signals["signal"] = first + np.arange(count), first + np.arange(waveforms)
    fronts["times"] = fronts["signal"][:, None]
    return FrontBatch(signals, fronts, time_ns, is_restarted)


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> Iterator[FrontRings]:
    monkeypatch.setattr(front_rings, "FRONTS_PER_HYDROPHONE", 64)
    monkeypatch.setattr(front_rings, "WAVEFORMS", 16)
    name = f"fronts-{os.getpid()}"
    yield FrontRings.create(name, 1)
    assert front_rings.SEGMENT.remove(name) == [f"/wavesim.{name}.fronts"]
    assert front_rings.SEGMENT.remove(name) == []


def test_readers_receive_all_records_in_order(rings: FrontRings) -> None:
    early = FrontReader.open(f"fronts-{os.getpid()}")
    first = early.take()
    assert first.is_restarted and len(first.fronts) == len(first.waveforms) == 0
    rng, written, got = np.random.default_rng(1), 0, []
    for k in range(200):  # around the ring many times
        count = int(rng.integers(0, 30))
        rings.write(batch(written, count, time_ns=k))
        written += count
        if k % 2:
            new = early.take()
            assert (new.time_ns, new.lost, new.is_restarted) == (k, 0, False)
            assert (new.fronts["times"] == new.fronts["signal"][:, None]).all()
            got += new.fronts["signal"].tolist()
    assert got == list(range(written)) and early.lost == 0
    late = FrontReader(rings).take()
    assert late.fronts["signal"].tolist() == list(range(written - 64, written)), "all that the ring still holds"
    assert late.lost == 0


def test_a_slow_reader_learns_how_many_records_it_lost(rings: FrontRings) -> None:
    reader = FrontReader(rings)
    reader.take()
    rings.write(batch(0, 50, 4))
    assert len(reader.take().fronts) == 50
    rings.write(batch(50, 1000, 20))  # more than the rings hold
    new = reader.take()
    assert new.fronts["signal"].tolist() == list(range(986, 1050))
    assert new.waveforms["signal"].tolist() == list(range(54, 70))
    assert new.lost == reader.lost == 1000 - 64 + 20 - 16
    assert reader.take().lost == 0


def test_a_record_that_is_being_overwritten_is_lost(rings: FrontRings) -> None:
    reader = FrontReader(rings)
    rings.write(batch(0, 64))
    rings.header[front_rings.FRONTS_BEGUN] += 10  # the writer has begun to write ten more
    new = reader.take()
    assert new.fronts["signal"].tolist() == list(range(10, 64))


def test_after_a_change_of_time_readers_begin_again(rings: FrontRings) -> None:
    reader = FrontReader(rings)
    rings.write(batch(0, 10, 2, is_restarted=True))
    assert reader.take().is_restarted
    rings.write(batch(10, 5))
    rings.write(batch(4, 6, 1, is_restarted=True))
    rings.write(batch(20, 1))
    for one in (reader, FrontReader(rings)):
        new = one.take()
        assert new.is_restarted and new.lost == 0
        assert new.fronts["signal"].tolist() == [4, 5, 6, 7, 8, 9, 20]
        assert new.waveforms["signal"].tolist() == [4]
        assert not one.take().is_restarted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({front_rings.FRONT_CAPACITY: 10**6}, "is damaged: its rings do not fit"),
        ({1: 99}, "was created by another release"),
        ({5: 2**22 + 1}, "no server named"),
    ],
)
def test_a_foreign_segment_gives_one_message(rings: FrontRings, change: dict[int, Any], message: str) -> None:
    for index, number in change.items():
        rings.header[index] = number
    with pytest.raises((AttachError, NotRunning), match=message):
        FrontRings.attach(f"fronts-{os.getpid()}")
