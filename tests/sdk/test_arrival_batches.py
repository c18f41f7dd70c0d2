"""Waveforms and fronts on their way to an emulator on another machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wavesim_sdk.arrival_batches import ArrivalCollector, split_batch
from wavesim_sdk.front_tables import FRONT, WAVEFORM, FrontBatch, StoredSound
from wavesim_sdk.wire.emulator_items import ArrivalPart, Arrivals
from wavesim_sdk.wire.items import EVENTS


def batch(fronts: int, waveforms: int = 2, **more: Any) -> FrontBatch:
    """Records of random bits, so that nothing is compressed; these contain NaN and infinities."""
    rng = np.random.default_rng(fronts)
    made = [
        np.frombuffer(rng.bytes(n * t.dtype.itemsize), t.dtype) for n, t in ((waveforms, WAVEFORM), (fronts, FRONT))
    ]
    return FrontBatch(*made, **({"time_ns": 5} | more))


def carried(events: list[Any]) -> FrontBatch:
    """The batch that a collector makes of events which pass through their encoding."""
    collector = ArrivalCollector()
    for event in events:
        collector.feed(EVENTS.decode(EVENTS.encode(event)))
    return collector.take(7)


@pytest.mark.parametrize("sent", [batch(1), batch(700, is_restarted=True), batch(0, lost=3), batch(40, 0)])
def test_every_bit_arrives(sent: FrontBatch) -> None:
    got = carried(list(split_batch(sent)))
    assert (got.waveforms.tobytes(), got.fronts.tobytes()) == (sent.waveforms.tobytes(), sent.fronts.tobytes())
    assert (got.time_ns, got.is_restarted, got.lost) == (7, sent.is_restarted, sent.lost)


def test_samples_of_sounds_arrive_in_order() -> None:
    """Each sound keeps its number and its sampling rate."""
    rng = np.random.default_rng(3)
    sounds = tuple(
        StoredSound(n, n, 100 * n, rate, rng.standard_normal(count).astype(np.float32))
        for n, rate, count in ((4, 48e3, 700), (7, 96e3, 1), (9, 250e3, 3000))
    )
    got = carried(list(split_batch(batch(3, sounds=sounds)))).sounds
    assert [(s.number, s.offset, s.sampling) for s in got] == [(s.number, s.offset, s.sampling) for s in sounds]
    assert all(np.array_equal(a.samples, b.samples) for a, b in zip(got, sounds, strict=True))
    events = list(split_batch(batch(3, sounds=sounds)))
    with pytest.raises(ValueError, match="announced 3701 samples of sounds, but sent 1"):
        carried(events[:-1])


def test_nothing_is_sent_if_nothing_is_new() -> None:
    assert list(split_batch(batch(0, 0))) == []
    got = carried([])
    assert len(got.waveforms) == len(got.fronts) == got.lost == 0 and not got.is_restarted


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([Arrivals(0, 0, 0, 1, 0), ArrivalPart(b"?" * 9)], "cannot be decompressed"),
        (
            [Arrivals(0, 0, 0, 2, 0), *list(split_batch(batch(1, 0)))[1:]],
            r"announced \d+ bytes of arrivals, but sent \d+",
        ),
        ([Arrivals(0, 0, 0, 1, 0)], "announced .* but sent 0 bytes"),
        ([Arrivals(0, 0, 0, 1, 0), *list(split_batch(batch(900, 0)))[1:]], "announced .* but sent"),
    ],
)
def test_wrong_bytes_give_one_message(events: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        carried(events)
