"""Waveforms and fronts on their way to an emulator on another machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wavesim_sdk import arrival_batches
from wavesim_sdk.arrival_batches import ArrivalCollector, split_batch
from wavesim_sdk.front_tables import FRONT, WAVEFORM, FrontBatch
from wavesim_sdk.wire.emulator_items import ArrivalPart, Arrivals
from wavesim_sdk.wire.items import EVENTS
from wavesim_sdk.wire.reliable import MAX_PENDING


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


def test_nothing_is_sent_if_nothing_is_new() -> None:
    assert list(split_batch(batch(0, 0))) == []
    got = carried([])
    assert len(got.waveforms) == len(got.fronts) == got.lost == 0 and not got.is_restarted


def test_a_batch_fits_into_the_events_that_may_wait() -> None:
    """The oldest records are omitted and counted, except in the first batch of a reader."""
    most = batch(arrival_batches.MAX_FRONTS + 3, arrival_batches.MAX_WAVEFORMS + 2, lost=1)
    events = list(split_batch(most))
    assert len(events) < MAX_PENDING - 500, "the rows of tables need room, too"
    got = carried(events)
    assert got.lost == 1 + 5 and got.fronts.tobytes() == most.fronts[3:].tobytes()
    assert next(iter(split_batch(most._replace(is_restarted=True, lost=0)))).lost == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([Arrivals(0, 0, 0, 1), ArrivalPart(b"?" * 9)], "cannot be decompressed"),
        ([Arrivals(0, 0, 0, 2), *list(split_batch(batch(1, 0)))[1:]], r"announced \d+ bytes of arrivals, but sent \d+"),
        ([Arrivals(0, 0, 0, 1)], "announced .* but sent 0 bytes"),
        ([Arrivals(0, 0, 0, 1), *list(split_batch(batch(900, 0)))[1:]], "announced .* but sent"),
    ],
)
def test_wrong_bytes_give_one_message(events: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        carried(events)
