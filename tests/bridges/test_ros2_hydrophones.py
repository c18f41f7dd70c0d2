"""Samples of a hydrophone in ROS 2, decoded by a stand-in's codec."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.bridges import ros2
from tests.bridges.ros2 import Node, until
from tests.bridges.test_ros2_flights import Bridge
from tests.bridges.test_ros2_sensors import mounted
from tests.conftest import Server
from tests.nursery import launch
from tests.server.test_hydrophone_frames import COUNT, RATE, block
from wavesim_bridges.ros2.hydrophones import raw_samples, stamped_samples
from wavesim_bridges.ros2.message_types import MessageTypes
from wavesim_world.config import LoadedConfig

WORLD = """<time step="20 ms"/><world><bed depth="30 m"/></world><acoustics noise_model="wenz"/>
<fleet><vehicle name="rov" model="lauv" position="0 0 5 m" client="optional"><sensors>
<hydrophone name="ears" sampling="8 kHz" rate="5 Hz" gain="60 dB"><element position="0 0 0 m"/><element position="1 0 0 m"/></hydrophone>
</sensors></vehicle></fleet>"""


@pytest.fixture
def domain() -> Iterator[int]:
    yield from ros2.domains()


@pytest.mark.parametrize("bits", [12, 16, 24, 0])
def test_both_messages_contain_the_samples(bits: int) -> None:
    types, frame = MessageTypes("jazzy"), block(3, bits)
    s = mounted(types, "hydrophone")
    data = types.packed(raw_samples(s, frame, 200_000_000))
    raw = ros2.RawSonarImage.deserialize(data)
    assert data == raw.serialize() and (raw.header.frame_id, raw.header.stamp.ns) == ("v/s_link", 200_000_000)
    assert (raw.sample_rate, raw.sample0, raw.samples_per_beam, raw.image.beam_count) == (RATE, 2 * COUNT, COUNT, 2)
    assert raw.array.tobytes() == frame.samples.tobytes() and not raw.image.is_bigendian
    data = types.packed(stamped_samples(s, frame, 200_000_000))
    stamped = ros2.HydrophoneSamplesStamped.deserialize(data)
    assert data == stamped.serialize() and stamped.header == raw.header
    found = stamped.hydrophone_samples
    assert (found.channels, found.samples, found.sample_rate) == (2, COUNT, RATE)
    volts = np.reshape(found.data, (COUNT, 2)).T / 32768.0 * float(frame.record["span"])
    assert volts == pytest.approx(np.asarray(frame.voltages), abs=2.0 / 32768.0)


def test_numbers_of_samples_go_round() -> None:
    frame = block(1, first=2**32 + 5)
    message = raw_samples(mounted(MessageTypes("humble"), "hydrophone"), frame, 0)
    assert (
        message.sample0 == 5
        and raw_samples(mounted(MessageTypes("humble"), "hydrophone"), block(1, first=-COUNT), 0).sample0
        == 2**32 - COUNT
    )


def test_voltages_beyond_16_bits_are_limited() -> None:
    """Full scale is 32768, but 32767 is the largest number."""
    frame = block(1, 0)
    full = np.full((2, COUNT), 2.0, "<f4")
    loud = type(frame)(frame.record, full.tobytes())
    found = stamped_samples(mounted(MessageTypes("jazzy"), "hydrophone"), loud, 0).hydrophone_samples.data
    assert (found == 32767).all()


@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_hydrophone_publishes_its_samples(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], domain: int
) -> None:
    path = config(WORLD).path
    server = serve(path, "--speed", "1")
    emulator = launch("emulate", "hydrophone", path, "-s", server.name, stderr=subprocess.DEVNULL)
    node, bridge = Node(domain), Bridge(server, path, domain, "rov", "--period", "0.02")
    try:
        bridge.wait("joined, one step every 20 ms")
        raw = node.latest("/rov/ears/raw", ros2.RawSonarImage)
        samples = node.latest("/rov/ears/samples", ros2.HydrophoneSamplesStamped)
        server.send("start")
        until(lambda: len(raw) >= 3 and len(samples) >= 3)
    finally:
        node.close()
        bridge.kill()
        emulator.terminate()
        emulator.wait(60)
    assert not node.errors
    one = raw[-1]
    assert one.header.frame_id == "rov/ears_link" and one.array.shape == (2, one.samples_per_beam) and one.array.any()
    both = {m.header.stamp.ns: m for m in samples}
    same = [m for m in raw if m.header.stamp.ns in both]
    assert same and all(
        m.array.T.ravel().tolist() == list(both[m.header.stamp.ns].hydrophone_samples.data) for m in same
    )
