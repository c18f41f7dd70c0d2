"""Blocks of a hydrophone after the emulator: their record, brokers that must not miss any, sound files, and the relay
of fronts inside one process.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io.wavfile

from tests.server.harbour import Harbour
from tests.server.test_frames import ask, got, place
from wavesim_devices import sound_files
from wavesim_devices.sonar_formats import record as recorder
from wavesim_devices.sound_files import RefusedFrame, SoundFile
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.errors import UnknownPart, WaveSimError
from wavesim_sdk.frame_rings import FrameReader, FrameRings, remove_rings
from wavesim_sdk.front_tables import FRONT, WAVEFORM, FrontBatch
from wavesim_sdk.imaging_frames import FRAME_KINDS, RECORD, ImagingFrame, sample_type
from wavesim_server.front_relay import FrontRelay
from wavesim_server.logbook.sonar_rosbag import write_sonar_messages
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import LoadedConfig
from wavesim_world.sonars.frame_sizes import create_rings, payload_bytes

RATE, COUNT = 8000.0, 800
FLEET = """<time pace="fast"/><fleet><vehicle name="a" model="lauv" position="0 0 5 m" client="optional"><sensors>
<hydrophone name="ears" sampling="8 kHz" bits="{bits}" log="2"><element position="0 0 0 m"/><element position="0 0.1 0 m"/></hydrophone>
<sonar name="ahead" preset="p900-45"/><camera name="eye" width="32" height="24"/></sensors></vehicle></fleet>"""


def block(number: int, bits: int = 16, first: int | None = None, **fields: Any) -> ImagingFrame:
    """Two channels; the samples count up, so that a swap or a gap would be seen."""
    first = (number - 1) * COUNT if first is None else first
    values = (np.arange(2 * COUNT).reshape(2, COUNT) + first) % (2000 if bits == 12 else 2**30)
    samples = values.astype(sample_type(bits)) if bits else (values * 1e-6).astype("<f4")
    record = np.zeros((), RECORD)
    given = {
        "number": number, "generation": 1, "body": b"a", "name": b"ears", "kind": FRAME_KINDS.index("hydrophone"), "beams": 2, "bins": COUNT,
        "sample_bytes": samples.itemsize, "bytes": samples.nbytes, "frequency": RATE, "tvg": bits, "span": 2.0, "floor": -180.0, "gain": 20.0,
        "ping_ns": round(first * 1e9 / RATE), "time_ns": round((first + COUNT) * 1e9 / RATE) + 21_000_000,
    }  # fmt: skip
    for field, value in (given | fields).items():
        record[field] = value
    return ImagingFrame(record, samples.tobytes())


def test_the_scale_and_the_numbers_of_samples() -> None:
    """16 bits of 2 V: one unit is 2/32768 V; with -180 dB and 20 dB of gain, 1 V is 10^8 uPa."""
    frame = ImagingFrame.from_bytes(block(3).data)
    assert (frame.kind, frame.sampling_rate, frame.first_sample) == ("hydrophone", RATE, 2 * COUNT)
    assert frame.samples.dtype == np.int16 and frame.samples[1, 2] == 2 * COUNT + COUNT + 2
    assert frame.voltages[0, 0] == pytest.approx(1600 * 2.0 / 32768, rel=1e-12)
    assert frame.pressures[0, 0] == pytest.approx(frame.voltages[0, 0] * 1e8, rel=1e-12)
    assert block(1, 24).voltages[0, 1] == pytest.approx(2.0 / (1 << 23), rel=1e-12)
    assert block(2, 0).voltages[0, 0] == np.float32(800e-6)
    late = block(1, first=250_000 * 86_400 * 365, frequency=250e3, ping_ns=86_400 * 365 * 10**9)
    assert late.first_sample == 250_000 * 86_400 * 365, "after a year"
    for wrong in ({"tvg": 13}, {"tvg": 24}, {"tvg": np.nan}, {"frequency": 0.0}, {"frequency": np.nan}):
        with pytest.raises(ValueError, match="record is invalid"):
            ImagingFrame.from_bytes(block(1, **wrong).data)
    hidden = block(1, p_WS_W=(1.0, 2.0, 3.0)).without_truth()
    assert np.isnan(hidden.record["p_WS_W"]).all() and hidden.payload == block(1).payload


def test_rings_hold_a_block_and_are_found(config: Callable[..., LoadedConfig], name: str) -> None:
    loaded = config(FLEET.format(bits=24))
    (ears,) = (i.parameters for i in loaded.suite(loaded.config.fleet.bodies[0]) if i.type == "hydrophone")
    assert payload_bytes(ears) == 2 * COUNT * 4
    create_rings(loaded, name)
    try:
        rings = FrameRings.attach(name, writable=True)
        assert [rings.ring_index(t, 0) for t in ("sonar", "hydrophone", "camera")] == [0, 1, 2]
        reader = FrameReader(rings, rings.ring_index("hydrophone", 0))
        for n in (1, 2):
            rings.write(reader.ring, block(n, 24).record.copy(), block(n, 24).payload)
        assert [f.payload for f in iter(reader.next, None)] == [block(n, 24).payload for n in (1, 2)]
    finally:
        remove_rings(name)


@pytest.fixture
def harbour(config: Callable[..., LoadedConfig], name: str) -> Iterator[Harbour]:
    harbour = Harbour(config(FLEET.format(bits=16)))
    FrameRings.create(name, 3, RECORD.itemsize + 20_000, first=(1, 1))
    harbour.front.frame_streamer._rings = FrameRings.attach(name, writable=True)
    yield harbour
    remove_rings(name)


def test_a_broker_gets_every_block_but_only_the_newest_image(harbour: Harbour) -> None:
    """Two blocks at once, as after a pause of the emulator: both are sent, in order. Of two images, one is."""
    pilot = harbour.join("a")
    assert ask(harbour, pilot, "ears", "ahead") == (True, "")
    rings = harbour.front.frame_streamer._rings
    assert rings is not None
    ears = rings.ring_index("hydrophone", place(harbour, 0, 0))
    image = np.zeros((), RECORD)
    image["generation"], image["beams"], image["bins"], image["sample_bytes"] = 1, 2, 50, 1
    for n in range(1, 11, 2):
        for k in (n, n + 1):
            rings.write(ears, block(k).record.copy(), block(k).payload)
            rings.write(place(harbour, 0, 1), image.copy(), random.Random(k).randbytes(100))
        harbour.run(0.05)
    sound = [f for f in got(pilot) if f.kind == "hydrophone"]
    assert [f.first_sample for f in sound] == [k * COUNT for k in range(10)]
    assert all(f.payload == block(k).payload for k, f in enumerate(sound, 1))
    assert [int(f.record["number"]) for f in got(pilot) if f.kind != "hydrophone"] == [2, 4, 6, 8, 10]


def write_all(path: Path, blocks: list[ImagingFrame]) -> SoundFile:
    out = SoundFile(path)
    for b in blocks:
        out.add(b)
    out.close()
    return out


@pytest.mark.parametrize("bits", [12, 16, 24, 0])
def test_wave_files_are_read_by_scipy(tmp_path: Path, bits: int) -> None:
    """The second of four blocks is missing: silence stands in its place, and the JSON file says so."""
    blocks = [block(n, bits) for n in (1, 3, 4)]
    out = write_all(tmp_path / "a.wav", blocks)
    rate, data = scipy.io.wavfile.read(tmp_path / "a.wav")
    assert rate == RATE and data.shape == (4 * COUNT, 2) and out.missing == COUNT
    scaled = data.T / {12: 2.0**15, 16: 2.0**15, 24: 2.0**31, 0: 1.0}[bits] * 2.0  # scipy shifts 24 bits to 32
    for n, b in zip((0, 2, 3), blocks, strict=True):
        assert scaled[:, n * COUNT : (n + 1) * COUNT] == pytest.approx(np.asarray(b.voltages), rel=1e-6)
    assert not data[COUNT : 2 * COUNT].any()
    about = json.loads((tmp_path / "a.wav.json").read_text())
    assert (about["body"], about["hydrophone"], about["sampling"], about["first_sample"]) == ("a", "ears", RATE, 0)
    assert about["gaps"] == [[COUNT, COUNT]] and about["samples_per_channel"] == 4 * COUNT
    assert about["full_scale_uPa"] == pytest.approx(2e8)


def test_flac_files_contain_integer_samples_only(tmp_path: Path) -> None:
    write_all(tmp_path / "a.flac", [block(n, 12) for n in (1, 3)])
    assert (tmp_path / "a.flac").read_bytes()[:4] == b"fLaC"
    assert json.loads((tmp_path / "a.flac.json").read_text())["gaps"] == [[COUNT, COUNT]]
    with pytest.raises(RefusedFrame, match=r'has bits="0"; record \.wav or \.npz'):
        write_all(tmp_path / "b.flac", [block(1, 0)])
    with pytest.raises(RefusedFrame, match="whole sampling rate"):
        write_all(tmp_path / "c.flac", [block(1, frequency=8000.5)])


def test_a_wave_file_of_more_than_4_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a smaller limit: the sizes are then in the chunk that scipy reads."""
    monkeypatch.setattr(sound_files, "LARGEST", 5000)
    write_all(tmp_path / "a.wav", [block(n) for n in (1, 2)])
    assert (tmp_path / "a.wav").read_bytes()[:4] == b"RF64"
    _, data = scipy.io.wavfile.read(tmp_path / "a.wav")
    assert (data.T[:, :COUNT] == block(1).samples).all() and (data.T[:, COUNT:] == block(2).samples).all()


def test_numpy_files_and_unfit_frames(tmp_path: Path) -> None:
    write_all(tmp_path / "a.npz", [block(n, 24) for n in (5, 6)])
    with np.load(tmp_path / "a.npz") as found:
        assert found["samples"].shape == (2, 2 * COUNT) and found["samples"].dtype == np.int32
        assert found["t0_ns"] == 4 * 10**8 and found["sampling"] == RATE
        assert found["samples"] * found["uPa_per_unit"] == pytest.approx(
            np.hstack([block(n, 24).pressures for n in (5, 6)])
        )
    with pytest.raises(
        RefusedFrame, match=r"unknown type of sound file '.mp3': the name must end in .wav or .flac or .npz"
    ):
        SoundFile(tmp_path / "a.mp3")
    out = SoundFile(tmp_path / "b.wav")
    image = np.zeros((), RECORD)
    image["beams"] = image["bins"] = image["sample_bytes"] = image["bytes"] = 1
    with pytest.raises(RefusedFrame, match=r"needs a hydrophone; .* gives frames of type 'forward'"):
        out.add(ImagingFrame(image, b"x"))
    out.add(block(4))
    with pytest.raises(RefusedFrame, match="sample 800 follows sample 3199: the simulation was reset or rewound"):
        out.add(block(2))
    with pytest.raises(RefusedFrame, match="100 s of samples are missing"):
        out.add(block(1005))
    for other in ({"body": b"b"}, {"beams": 1, "bins": 2 * COUNT}, {"frequency": 2 * RATE}, {"span": 1.0}):
        with pytest.raises(RefusedFrame, match=r"the blocks now come from another hydrophone, 'ears' on '[ab]'"):
            out.add(block(5, **other))
    out.add(block(5, generation=2))
    with pytest.raises(RefusedFrame, match="needs a whole sampling rate"):
        SoundFile(tmp_path / "c.wav").add(block(1, frequency=8000.5))
    assert not (tmp_path / "c.wav").exists()


def test_the_log_of_a_clock_that_is_late(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """The numbers and times of the first samples are negative."""
    writer = LogWriter(tmp_path / "run.mcap", config(FLEET.format(bits=16)), 1)
    for n, first in ((1, -2 * COUNT), (2, -COUNT), (3, 0)):
        writer.frame(block(n, first=first, time_ns=n * 10**8))
    writer.close()
    assert recorder.record_log(tmp_path / "run.mcap", "a", "ears", tmp_path / "a.wav") == 3
    about = json.loads((tmp_path / "a.wav.json").read_text())
    assert (about["first_sample"], about["t0_ns"], about["gaps"]) == (-2 * COUNT, -2 * 10**8, [])


def test_sound_from_a_log(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    loaded = config(FLEET.format(bits=16))
    writer = LogWriter(tmp_path / "run.mcap", loaded, 1)
    for n in range(1, 4):
        writer.frame(block(n))
    writer.close()
    log = tmp_path / "run.mcap"
    assert recorder.record_log(log, "a", "ears", tmp_path / "a.wav") == 3
    _, data = scipy.io.wavfile.read(tmp_path / "a.wav")
    assert (data.T[:, COUNT : 2 * COUNT] == block(2).samples).all()
    assert recorder.record_log(log, "a", "ears", tmp_path / "b.npz", frames=1) == 1
    with pytest.raises(
        WaveSimError, match=r"a log gives sound files, whose names end in .wav or .flac or .npz, not '.xtf'"
    ):
        recorder.record_log(log, "a", "ears", tmp_path / "a.xtf")
    with pytest.raises(WaveSimError, match=r"unknown type of recording '.mp3'"):
        recorder.record("nobody", "a", "ears", tmp_path / "a.mp3")
    with pytest.raises(WaveSimError, match=r"the folder .*nowhere does not exist"):
        recorder.record_log(log, "a", "ears", tmp_path / "nowhere" / "a.npz")
    with pytest.raises(WaveSimError, match=r"the folder .*nowhere does not exist"):
        recorder.record("nobody", "a", "ears", tmp_path / "nowhere" / "a.npz")
    with pytest.raises(WaveSimError, match=r"'a' has no instrument 'nose'; allowed: ears$"):
        recorder.record_log(log, "a", "nose", tmp_path / "d.wav")
    assert UnknownPart.exit_code == 18


@pytest.mark.parametrize("bits", [16, 24, 0])
def test_samples_as_ros_messages_are_read_by_two_readers(
    config: Callable[..., LoadedConfig], tmp_path: Path, bits: int
) -> None:
    from mcap_ros2.reader import read_ros2_messages
    from rosbags.highlevel import AnyReader

    writer = LogWriter(tmp_path / "run.mcap", config(FLEET.format(bits=bits)), 1)
    for n in range(1, 4):
        writer.frame(block(n, bits))
    writer.close()
    bag = tmp_path / "bag.mcap"
    assert write_sonar_messages(tmp_path / "run.mcap", bag) == 3
    with bag.open("rb") as file:
        found = [(m.channel.topic, m.ros_msg) for m in read_ros2_messages(file)]
    with AnyReader([bag]) as reader:
        found += [(c.topic, reader.deserialize(raw, c.msgtype)) for c, _, raw in reader.messages()]
    for k, (topic, m) in enumerate(found):
        b = block(k % 3 + 1, bits)
        assert (topic, m.header.frame_id) == ("/a/ears", "a/ears")
        since = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec - round(EPOCH.timestamp()) * 10**9
        assert since == b.record["ping_ns"] and m.sample0 == b.first_sample
        assert (m.sample_rate, m.samples_per_beam, m.image.beam_count) == (RATE, COUNT, 2)
        assert m.image.dtype == {16: 3, 24: 5, 0: 8}[bits] and len(m.tx_delays) == len(m.rx_angles) == 2
        samples = np.frombuffer(bytes(m.image.data), b.samples.dtype).reshape(COUNT, 2).T
        assert np.array_equal(samples, b.samples)


def test_the_relay_gives_each_reader_everything_once() -> None:
    """A reader that starts late hears what is kept; after a change of the time, all start again."""

    def batch(first: int, count: int, restarted: bool = False) -> FrontBatch:
        fronts, waveforms = np.zeros(count, FRONT.dtype), np.zeros(1, WAVEFORM.dtype)
        fronts["number"], waveforms["signal"] = np.arange(first, first + count), first
        return FrontBatch(waveforms, fronts, first, restarted)

    source = [batch(0, 3, True)]
    empty = batch(0, 0)
    relay = FrontRelay(lambda: source.pop(0) if source else empty._replace(waveforms=empty.waveforms[:0]), 1)
    one = relay.reader()
    found = one()
    assert found.is_restarted and found.fronts["number"].tolist() == [0, 1, 2] and found.waveforms["signal"] == [0]
    source.append(batch(3, 2))
    two = relay.reader()
    late = two()
    assert late.is_restarted and late.fronts["number"].tolist() == [0, 1, 2, 3, 4]
    assert late.waveforms["signal"].tolist() == [0, 3]
    again = one()
    assert not again.is_restarted and again.fronts["number"].tolist() == [3, 4]
    assert len(one().fronts) == len(two().fronts) == 0
    source.append(batch(7, 1, True))
    assert (two().is_restarted, one().is_restarted) == (True, True)
    relay._capacity = 4
    for k in range(3):
        source.append(batch(10 + 2 * k, 2))
        two()
    assert one().fronts["number"].tolist() == [12, 13, 14, 15], "more is not kept"


def test_the_relay_does_not_keep_all_signals_that_nobody_hears() -> None:
    numbers = itertools.count(1)

    def emit() -> FrontBatch:
        waveforms = np.zeros(10, WAVEFORM.dtype)
        waveforms["signal"] = [next(numbers) for _ in range(10)]
        return FrontBatch(waveforms, np.zeros(0, FRONT.dtype), 0)

    relay = FrontRelay(emit, 1)
    take = relay.reader()
    for _ in range(1000):
        take()
    late = relay.reader()().waveforms["signal"]
    assert late.tolist() == list(range(10_010 - len(late) + 1, 10_011))
    assert 4000 < len(late) <= 4096
