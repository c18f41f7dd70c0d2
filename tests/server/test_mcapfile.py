"""Our writer of MCAP files and that of the package mcap write the same bytes."""

from __future__ import annotations

import io
from unittest import mock

import numpy as np
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType, Writer

from wavesim_server.logbook import mcap_file
from wavesim_server.logbook.mcap_file import McapFile, MessageBlock

CHANNELS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 900)), max_size=12)  # channel and size of each message
MESSAGES = st.lists(st.tuples(CHANNELS, st.integers(0, 10**9), st.booleans(), st.integers(1, 2)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(groups=MESSAGES)
def test_the_file_is_that_of_the_package(groups: list[tuple[list[tuple[int, int]], int, bool, int]]) -> None:
    """Blocks of messages, all at one time or each at its own, some written twice."""
    with mock.patch.object(zstandard, "compress", zstandard.ZstdCompressor(mcap_file.LEVEL).compress):
        compare(groups)


def compare(groups: list[tuple[list[tuple[int, int]], int, bool, int]]) -> None:
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
    for k, (messages, time_ns, together, repeats) in enumerate(groups):
        block = MessageBlock([c for c, _ in messages], [size for _, size in messages], b"LEAD") if messages else None
        for _ in range(repeats if block else 0):
            data = [dice.bytes(size) for _, size in messages]
            times = np.full(len(data), time_ns) if together else time_ns + dice.integers(0, 1000, len(data))
            a.messages(block, time_ns if together else times, b"".join(data))
            for i, (c, _) in enumerate(messages):
                numbers[c] += 1
                b.add_message(c, int(times[i]), b"LEAD" + data[i], int(times[i]), numbers[c])
        a.message(1, time_ns, b"said before", numbered=False)
        b.add_message(1, time_ns, b"said before", time_ns, 0)
        if k % 3 == 2:
            a.end_chunk()
            b.flush()
    a.finish()
    b.finish()
    assert ours.getvalue() == theirs.getvalue()
