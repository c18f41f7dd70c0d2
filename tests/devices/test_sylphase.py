"""The stream of a passive sonar board, read as its receivers read it: big-endian integers without a header."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.server.test_hydrophone_frames import block
from wavesim_devices.sylphase import SylphaseStream
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.imaging_frames import ImagingFrame, sample_type

COUNT = 400


class Waiting:
    """A broker with frames that wait."""

    def __init__(self) -> None:
        self.frames: list[ImagingFrame] = []
        self.subscribed: list[str] = []

    def subscribe_frames(self, name: str) -> None:
        self.subscribed.append(name)

    def take_frames(self) -> list[ImagingFrame]:
        found, self.frames = self.frames, []
        return found


def four(first: int, bits: int = 16, **fields: Any) -> ImagingFrame:
    """Four channels of distinct samples between -full scale and full scale."""
    rng = np.random.default_rng(first)
    top = 2 ** (bits - 1) if bits else 1
    values = rng.integers(-top, top, (4, COUNT)) if bits else rng.uniform(-2.0, 2.0, (4, COUNT))
    samples = values.astype(sample_type(bits))
    record = block(1, bits, first, beams=4, bins=COUNT, bytes=samples.nbytes, **fields).record
    return ImagingFrame(record, samples.tobytes())


@pytest.fixture
def stream() -> tuple[Waiting, SylphaseStream, bytearray]:
    broker, out = Waiting(), bytearray()
    device: Any = SylphaseStream(broker, "ears", out.extend)  # type: ignore[arg-type]
    assert broker.subscribed == ["ears"]
    return broker, device, out


def read(out: bytearray) -> Any:
    """The samples (channels, samples) of a stream."""
    return np.frombuffer(bytes(out), ">i2").reshape(-1, 4).T


@pytest.mark.parametrize("bits", [12, 16, 24, 0])
def test_the_samples_arrive_in_order(stream: tuple[Waiting, Any, bytearray], bits: int) -> None:
    broker, device, out = stream
    sent = [four(k * COUNT, bits) for k in range(3)]
    broker.frames = [sent[0], four(0, bits, name=b"other"), sent[1]]
    device.step(None)
    broker.frames = [sent[2]]
    device.step(None)
    volts = np.hstack([np.asarray(f.voltages) for f in sent])
    assert read(out).shape == (4, 3 * COUNT)
    assert read(out) / 32768.0 * 2.0 == pytest.approx(volts, abs=2.0 / 32768.0)


def test_silence_replaces_missing_samples(stream: tuple[Waiting, Any, bytearray]) -> None:
    """After a return to an earlier time, or after a long gap, the stream just continues."""
    broker, device, out = stream
    broker.frames = [four(0), four(2 * COUNT), four(0), four(10**6)]
    device.step(None)
    found = read(out)
    assert found.shape == (4, 5 * COUNT) and not found[:, COUNT : 2 * COUNT].any()
    for part, first in ((0, 0), (2, 2 * COUNT), (3, 0), (4, 10**6)):
        assert np.array_equal(found[:, part * COUNT : (part + 1) * COUNT], four(first).samples)


def test_another_number_of_elements_is_refused(stream: tuple[Waiting, Any, bytearray]) -> None:
    broker, device, out = stream
    broker.frames = [block(1)]
    with pytest.raises(BrokerError, match="hydrophone 'ears' has 2 elements; this device needs 4"):
        device.step(None)
    assert not out
