"""Our writer of MCAP files and that of the package mcap write the same bytes."""

from __future__ import annotations

import io

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType, Writer

from wavesim_server.logbook.mcap_file import McapFile

MESSAGES = st.lists(
    st.tuples(st.lists(st.integers(1, 4), max_size=12), st.integers(0, 10**9), st.booleans(), st.integers(1, 900)),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(groups=MESSAGES)
def test_the_file_is_that_of_the_package(groups: list[tuple[list[int], int, bool, int]]) -> None:
    """Groups of messages of one size, all at one time or each at its own."""
    ours, theirs = io.BytesIO(), io.BytesIO()
    a, b = McapFile(ours, 10**6), Writer(theirs, 10**6, CompressionType.ZSTD, enable_data_crcs=True)
    a.begin("ros2", "wavesim")
    b.start("ros2", "wavesim")
    a.metadata("wavesim", {"key": "value"})
    b.add_metadata("wavesim", {"key": "value"})
    numbers = [0] * 5
    for k in range(4):
        assert a.schema(f"s{k}", "ros2msg", b"uint8 x") == b.register_schema(f"s{k}", "ros2msg", b"uint8 x")
        assert a.channel(f"/t{k}", "cdr", k + 1) == b.register_channel(f"/t{k}", "cdr", k + 1)
    dice = np.random.default_rng(3)
    for k, (channels, time_ns, together, size) in enumerate(groups):
        data = dice.bytes(size * len(channels))
        times = np.full(len(channels), time_ns) if together else time_ns + dice.integers(0, 1000, len(channels))
        a.messages(channels, time_ns if together else times, b"LEAD", data)
        for i, c in enumerate(channels):
            numbers[c] += 1
            b.add_message(c, int(times[i]), b"LEAD" + data[i * size : (i + 1) * size], int(times[i]), numbers[c])
        a.message(1, time_ns, b"said before", numbered=False)
        b.add_message(1, time_ns, b"said before", time_ns, 0)
        if k % 3 == 2:
            a.end_chunk()
            b.flush()
    a.finish()
    b.finish()
    assert ours.getvalue() == theirs.getvalue()
