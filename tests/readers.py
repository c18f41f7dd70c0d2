"""Independent readers of ROS logs: each reads every message of a file and is compared with our own reader."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.log import read

#: topic, time, message with one attribute per column
Message = tuple[str, int, Any]


def mcap_ros2(path: Path) -> Iterator[Message]:
    """mcap with mcap-ros2-support."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, message, decoded in reader.iter_decoded_messages():
            yield channel.topic, message.log_time, decoded


def rosbags_any(path: Path) -> Iterator[Message]:
    """rosbags with the types that the file declares."""
    from rosbags.highlevel import AnyReader

    with AnyReader([path]) as reader:
        for connection, time_ns, data in reader.messages():
            yield connection.topic, time_ns, reader.deserialize(data, connection.msgtype)


def rosbags_rosbag2(path: Path) -> Iterator[Message]:
    """The same one storey lower, with the types of ROS 2 itself and those of the file."""
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    types = get_typestore(Stores.ROS2_HUMBLE)
    with Reader(path) as reader:
        for connection in reader.connections:
            types.register(get_types_from_msg(connection.msgdef.data, connection.msgtype))
        for connection, time_ns, data in reader.messages():
            yield connection.topic, time_ns, types.deserialize_cdr(data, connection.msgtype)


READERS: tuple[Callable[[Path], Iterator[Message]], ...] = (
    mcap_ros2,
    rosbags_any,
    rosbags_rosbag2,
)


def compare(path: Path, reader: Callable[[Path], Iterator[Message]]) -> int:
    """Compare every column of every message with what our reader found, in the order of each topic's times (which is
    how they read; signals are logged when they are decided, some later than others that came after them); returns how many."""
    ours, seen = read(path), Counter[str]()
    order = {topic: np.argsort(series.time_ns, kind="stable") for topic, series in ours.series.items()}
    for topic, time_ns, message in reader(path):
        k = seen[topic]
        seen[topic] += 1
        if topic in ours.json:
            assert ours.json[topic][k] == (time_ns, json.loads(message.data)), (topic, k)
            continue
        series, place = ours.series[topic], order[topic][k]
        assert series.time_ns[place] == time_ns, (topic, k)
        record = series.records[place]
        for name in series.records.dtype.names or ():
            theirs, own = getattr(message, name.lower()), record[name]
            if own.dtype.kind == "S":
                assert bytes(theirs).rstrip(b"\0") == bytes(own), (topic, k, name)
            else:
                assert np.array_equal(np.ravel(theirs), np.ravel(own), equal_nan=True), (topic, k, name)
    assert seen == {t: len(s.records) for t, s in ours.series.items()} | {t: len(m) for t, m in ours.json.items()}
    return seen.total()
