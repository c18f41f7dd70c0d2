"""Sonars as sensors: declaration, refusals, their process, and their frames in rings."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import posix_ipc
import pytest

from tests.conftest import wavesim
from tests.emulators.bench import Bench
from wavesim_conformance.emulator import FakeEngine
from wavesim_emulators.sonar.emulator import SonarEmulator
from wavesim_sdk import frame_rings
from wavesim_sdk import imaging_frames as frames
from wavesim_sdk.errors import AttachError, ConfigError, NotRunning
from wavesim_sdk.shared_memory import segment_name
from wavesim_world.sonars import frame_sizes, presets

SMALL = '<sonar name="first" preset="m750d-low" range="15 m" bins="64" beams="16" rate="10 Hz" position="0 0 2 m"/>'
BED = '<bed depth="8 m"/>'


def suite(*sonars: str, world: str = BED) -> str:
    return f"<world>{world}</world><shared vehicles='8'/><fleet><sensors>{''.join(sonars)}</sensors></fleet>"


@pytest.fixture
def rings(name: str) -> Iterator[str]:
    """Rings of a server's name: two, of small frames."""
    frame_rings.FrameRings.create(name, 2, frames.RECORD.itemsize + 256)
    yield name
    frame_rings.remove_rings(name)


def record(**fields: Any) -> Any:
    made = np.zeros((), frames.RECORD)
    for field, value in {"beams": 4, "bins": 8, "sample_bytes": 1, **fields}.items():
        made[field] = value
    return made


def test_every_preset_is_explained_and_can_be_mounted(config: Any) -> None:
    said = wavesim("sonars").stdout
    for p in presets.PRESETS.values():
        assert p.name in said
        text = presets.describe_preset(p)
        element = text.rpartition("mount it")[2].strip()
        loaded = config(suite(element.replace("<sonar", f'<sonar name="{p.name}"')))
        assert loaded.sensor_rows == {"sonar": 8}
        assert p.source in text
    refused = wavesim("sonars", "p900")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "p900-" in refused.stderr


@pytest.mark.parametrize(
    ("sonar", "world", "text"),
    [
        ('preset="m750"', "", "unknown sonar preset 'm750'; did you mean 'm750d"),
        ('preset="p900-130" range="80 m"', "", "range 80 m is above the maximum of a BlueView P900-130, 60 m"),
        (
            'preset="p900-130" range="60 m" rate="20 Hz"',
            "",
            "rate 20 Hz is too high: over a range of 60 m the maximum is 12.5 pings per second",
        ),
        ('preset="p900-130" beams="1024" bins="8192"', "", "does not fit into its ring"),
        ('preset="p900-130" bits="12"', "", "`bits` must be 8 or 16"),
        ('preset="starfish-450" beams="3"', "", "the number of beams of a sidescan sonar is fixed"),
        ('preset="p900-130"', '<ground material="snad"/>', "unknown material 'snad'"),
        (
            'preset="p900-130"',
            '<obstacles><pier position="1 1 1 m" radius="1 m" height="1 m" material="tin"/></obstacles>',
            "unknown material 'tin'",
        ),
        ('preset="p900-130" range="-1 m"', "", "range"),
        (
            'preset="p900-130" range="0.01 m"',
            "",
            "range 0.01 m is too short: use at least four times the range resolution of a BlueView P900-130, 0.025 m",
        ),
        ('preset="p900-130" range="0 m"', "", "range: 0 m is below the minimum, 0.01 m"),
        ('preset="p900-130" beams="0"', "", "beams: 0 is below the minimum, 1"),
        ('preset="p900-130" rate="0 Hz"', "", "rate: 0 Hz is below the minimum"),
        ('preset="p900-130" sector="200 deg"', "", "sector 200 deg is above the maximum, 170 deg"),
        ('preset="sonar-3d15-low" bins="100"', "", "a 3D sonar has no range samples; remove `bins`"),
        ('preset="sonar-3d15-low" beams="1"', "", "a 3D sonar needs at least 2 columns"),
        ('preset="sonar-3d15-low" sector="171 deg"', "", "sector 171 deg is above the maximum, 170 deg"),
        ('preset="sonar-3d15-high" range="5 m"', "", "above the maximum of a Water Linked Sonar 3D-15, 2.4 MHz, 4 m"),
        ('preset="p900-130" rows="8"', "", "only a 3D sonar has `rows` and `height`"),
        ('preset="p900-130"', '<material name="weed" law="smoth"/>', "did you mean 'smooth'"),
        (
            'preset="p900-130"',
            '<target name="t" position="0 0 1 m" shape="cube" size="1 1 m"/>',
            "'cube' is not allowed",
        ),
        ("", "", "preset"),
    ],
)
def test_what_cannot_be_is_refused_by_one_line(config: Any, sonar: str, world: str, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)) as refused:
        config(suite(f"<sonar {sonar}/>", world=world))
    assert "\n" not in str(refused.value)
    assert re.search(r"config\d+\.xml:\d+", str(refused.value))


@pytest.mark.parametrize(
    "scene", ['<soundings file="none.txt"/>', '<obstacles><mesh file="none.stl" position="0 0 1 m"/></obstacles>']
)
def test_a_scene_that_is_not_there_is_refused_by_one_line(config: Any, scene: str) -> None:
    with pytest.raises(ConfigError, match=r"file 'none\.\w+' does not exist") as refused:
        config(suite('<sonar preset="p900-130"/>', world=scene))
    assert "\n" not in str(refused.value)


def test_a_slow_reader_drops_and_counts(rings: str) -> None:
    out, reader = (
        frame_rings.FrameRings.attach(rings, writable=True),
        frame_rings.FrameReader(frame_rings.FrameRings.attach(rings), 1),
    )
    assert reader.next() is None
    for n in range(1, 10):
        assert out.write(1, record(), bytes([n]) * 32) == n
    seen = []
    while (frame := reader.next()) is not None:
        seen.append(int(frame.record["number"]))
        assert frame.samples.tolist() == [[seen[-1]] * 8] * 4
    assert seen == [7, 8, 9]
    assert reader.dropped == 6
    assert frame_rings.FrameReader(frame_rings.FrameRings.attach(rings), 0).next() is None, (
        "the other instrument has a ring of its own"
    )
    with pytest.raises(AttachError, match="does not fit"):
        out.write(0, record(), bytes(500))


def test_a_writer_that_is_killed_in_a_frame_tears_nothing(rings: str) -> None:
    out, looks = frame_rings.FrameRings.attach(rings, writable=True), frame_rings.FrameRings.attach(rings)
    for n in range(1, 5):
        out.write(0, record(), bytes([n]) * 32)
    out.begun[0] = 5  # it has begun the fifth, over the first
    at = out._slot(0, 5)
    out._memory[at + frames.RECORD.itemsize : at + frames.RECORD.itemsize + 16] = bytes(16)
    assert looks.read(0, 1) is None
    assert looks.read(0, 5) is None
    frame = looks.read(0, 2)
    assert frame is not None
    assert set(frame.payload) == {2}
    assert frame_rings.FrameRings.attach(rings, writable=True).write(0, record(), bytes([5]) * 32) == 5
    assert looks.read(0, 5).payload == bytes([5]) * 32  # type: ignore[union-attr]


def test_a_reader_made_from_the_document_alone(rings: str, root: Path) -> None:
    """Offsets and types as docs/sonars.md tells them to a program in C."""
    text = (root / "docs/sonars.md").read_text()
    columns = {m[2]: (int(m[1]), m[3]) for m in re.finditer(r"^\| (\d+) \| `(\w+)` \| ([^|]+?) \|", text, re.M)}
    behind = int(re.search(r"payload begins at byte (\d+)", text)[1])  # type: ignore[index]
    frame_rings.FrameRings.attach(rings, writable=True).write(
        1, record(range=12.5, p_WS_W=(1, 2, 3), name=b"x"), bytes(range(32))
    )
    memory = Path("/dev/shm" + segment_name(rings, "sonars")).read_bytes()
    assert memory[:8] == b"WAVESONR"
    count, slots, size = struct.unpack_from("<3q", memory, 56)
    assert count == 2
    ring = 4096 + 1 * (64 + slots * size)
    begun, done = struct.unpack_from("<2q", memory, ring)
    assert begun == done == 1
    slot = ring + 64 + (done - 1) % slots * size

    def column(name: str) -> Any:
        at, type_ = columns[name]
        return struct.unpack_from({"i8": "<q", "f8": "<d", "f8 x 3": "<3d", "S32": "<32s"}[type_], memory, slot + at)

    assert column("range") == (12.5,)
    assert column("p_WS_W") == (1.0, 2.0, 3.0)
    assert column("name")[0].rstrip(b"\0") == b"x"
    (length,) = column("bytes")
    assert memory[slot + behind : slot + behind + length] == bytes(range(32))


def test_no_rings_no_server(name: str) -> None:
    with pytest.raises(NotRunning, match=f"no server named '{name}' is running; "):
        frame_rings.FrameRings.attach(name)


@pytest.mark.parametrize(("place", "value"), [(7, 2**60), (7, -1), (8, 0), (8, 2**40), (9, -16), (9, 8)])
def test_rings_whose_sizes_cannot_be_are_refused(rings: str, place: int, value: int) -> None:
    frame_rings.FrameRings.attach(rings, writable=True).header[place] = value
    with pytest.raises(AttachError, match=rf"{segment_name(rings, 'sonars')} is damaged: -?\d+ rings of"):
        frame_rings.FrameRings.attach(rings)


def run(loaded: Any, name: str, ticks: Any, replace_at: int = -1) -> list[bytes]:
    """All frames of the first body's sonar."""
    frame_sizes.create_rings(loaded, name)
    try:
        bench = Bench(loaded, SonarEmulator, period=25)
        bench.emulator.open(name)
        reader, found = frame_rings.FrameReader(frame_rings.FrameRings.attach(name), 0), []
        for tick in ticks:
            if tick == replace_at:
                bench.replace(keep=True)
                bench.emulator.open(name)
            bench.put((0.02 * tick, 0.0, 1.0), (0.0, 0.02, 0.1))
            values = bench.at(tick)
            while (frame := reader.next()) is not None:
                found.append(frame.record.tobytes() + frame.payload)
                assert values["frame"][0] == frame.record["number"]
                assert int(frame.record["time_ns"]) - int(frame.record["ping_ns"]) == 20_000_000
                assert frame.record["body"] == b"b0"
                assert frame.levels.shape == (16, 64)
        assert reader.dropped == 0
        return found
    finally:
        frame_rings.remove_rings(name)


def test_frames_come_out_and_are_the_same_the_second_time(config: Any, name: str) -> None:
    loaded = config(suite(SMALL))
    ticks = range(0, 150, 25)
    first = run(loaded, name, ticks)
    assert len(first) == 5, "the one that would have been sent before the start is missing"
    assert run(loaded, name, ticks) == first
    quiet = config(suite(SMALL.replace("<sonar", '<sonar speckle="no"')))
    assert run(quiet, name, ticks, replace_at=75) == run(quiet, name, ticks), "who takes over goes on"


def test_everything_is_removed_with_the_server(config: Any, name: str) -> None:
    from wavesim_server.resources import remove_leftovers

    frame_sizes.create_rings(config(suite(SMALL)), name)
    assert segment_name(name, "sonars") in remove_leftovers(name)
    with pytest.raises(posix_ipc.ExistentialError):
        posix_ipc.SharedMemory(segment_name(name, "sonars"))


def test_side_scan_as_xtf_is_read_by_pyxtf(config: Any, name: str, tmp_path: Path) -> None:
    """Recorded from the rings of a server; positions, times, attitude and every sample as they were."""
    import pymap3d
    import pyxtf

    from wavesim_devices.sonar_formats import record as recorder

    engine = FakeEngine(name, "sonar")
    frame_rings.FrameRings.create(name, 8, frames.RECORD.itemsize + 512)
    try:
        rings, rng = frame_rings.FrameRings.attach(name, writable=True), np.random.default_rng(1)
        lines = [rng.integers(0, 256, (2, 50), np.uint8) for _ in range(3)]
        for k, line in enumerate(lines):
            fields = {
                "kind": 1,
                "beams": 2,
                "bins": 50,
                "range": 40.0,
                "frequency": 450e3,
                "sound_speed": 1500.0,
                "altitude": 7.5,
            }
            pose = {
                "p_WS_W": (111.0, 0.0, 5.0),
                "euler": (0.01, -0.02, 1.0),
                "ping_ns": 1_250_000_000 + k * 10**8,
            }
            rings.write(3, record(**fields, **pose), line.tobytes())
        written, lost = recorder.record(name, "alpha", "first", tmp_path / "a.xtf", 3)
        assert (written, lost) == (3, 0)
        result = wavesim("record", "alpha", "first", tmp_path / "a.gsf", "-s", name)
        assert (result.returncode, result.stderr.count("\n")) == (1, 1)
        rings.write(0, record(kind=0), bytes(32))
        result = wavesim("record", "alpha", "second", tmp_path / "b.xtf", "-s", name)
        assert "an XTF file needs side-scan frames; this sonar is of type 'forward'" in result.stderr
    finally:
        engine.close()
        frame_rings.remove_rings(name)
    header, packets = pyxtf.xtf_read(str(tmp_path / "a.xtf"))
    pings = packets[pyxtf.XTFHeaderType.sonar]
    newest_first = pyxtf.concatenate_channel(pings, header, channel=1)
    assert (newest_first[::-1] == [line[1] for line in lines]).all()
    assert (pyxtf.concatenate_channel(pings, header, channel=0)[::-1] == [line[0, ::-1] for line in lines]).all()
    first = pings[0]
    assert first.SensorYcoordinate == pytest.approx(pymap3d.ned2geodetic(111.0, 0.0, 5.0, 0.0, 0.0, 0.0)[0], abs=1e-9)
    assert (first.SensorDepth, first.SensorPrimaryAltitude, first.SoundVelocity) == (5.0, 7.5, 750.0)
    assert (first.Second, first.HSeconds, first.PingNumber) == (1, 25, 1)
    assert first.SensorHeading == pytest.approx(np.degrees(1.0))
    chan = first.ping_chan_headers[0]
    assert (chan.SlantRange, chan.NumSamples, chan.Frequency, chan.SecondsPerPing) == (
        40.0,
        50,
        450,
        pytest.approx(0.1),
    )
    assert header.ChanInfo[1].ChannelName.startswith(b"starboard")
    assert first.Year == 2026
    whole = (tmp_path / "a.xtf").read_bytes()
    (tmp_path / "cut.xtf").write_bytes(whole[:-70])
    read = pyxtf.xtf_read(str(tmp_path / "cut.xtf"))[1][pyxtf.XTFHeaderType.sonar]
    assert (read[1].data[1] == lines[1][1]).all(), "a cut tail costs its own ping at most"


@pytest.mark.parametrize(
    ("written", "degrees"), [("", 10.0), ('tilt="preset"', 10.0), ('tilt="-90 deg"', -90.0), ('tilt="0 deg"', 0.0)]
)
def test_a_sonar_has_the_tilt_of_its_preset_unless_the_file_gives_one(
    config: Any, written: str, degrees: float
) -> None:
    """A sonar that looks steeply upwards once had the tilt of its preset instead."""
    fleet = config(suite(f'<sonar name="up" preset="gemini-720is" rate="1 Hz" {written}/>')).config.fleet
    assert math.degrees(frame_sizes.resolve_preset(fleet.sensors.sonar[0]).tilt) == pytest.approx(degrees)
