"""Hydrophones whose elements come from a table, also with more than eight of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.front_tables import FRONT
from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_server import Lab
from wavesim_world.config import LoadedConfig
from wavesim_world.config.standalone_xml import load_standalone

COUNT, SPACING, RATE, SPEED = 32, 0.3, 16e3, 1500.0
ALONG = -(np.arange(COUNT) - 0.5 * (COUNT - 1)) * SPACING  #: position of each element on the axis of the array, in m
TONE, SOURCE = 2400.0, (600.0, 800.0, 30.0)
ROWS = "".join(f"{x:.4f},0,0\n" for x in ALONG)
WORLD = f"""<time step="20 ms"/><world><bed depth="200 m"/></world>
<acoustics sound_speed="{SPEED} m/s" noise_model="wenz" max_range="5 km"/>
<fleet><vehicle name="fish" model="remus100-fossen" position="0 0 30 m" speed="1.5 m/s" client="none"><sensors>
<hydrophone name="tail" sampling="16 kHz" low="500 Hz" high="4 kHz" gain="20 dB" ambient="no" bits="0" {{tail}}
<hydrophone name="line" low="500 Hz" high="4 kHz" gain="20 dB" {{line}}/></sensors></vehicle>
<buoy name="source" model="buoy" position="600 800 30 m"><transducer source_level="160 dB" pulse="0.2 s">
<pinger frequency="2.4 kHz" period="1 s"/></transducer></buoy></fleet>"""
LINE, TAIL = 'sampling="16 kHz" elements="array.csv"', "/>"


@pytest.fixture
def world(config: Callable[..., LoadedConfig], tmp_path: Path) -> Callable[..., LoadedConfig]:
    """Return a function that loads the world with a table of elements."""

    def load(table: str = "x,y,z\n" + ROWS, line: str = LINE, tail: str = TAIL) -> LoadedConfig:
        (tmp_path / "array.csv").write_text(table)
        return config(WORLD.format(line=line, tail=tail))

    return load


def sound(frames: list[ImagingFrame], name: str) -> np.ndarray:
    return np.concatenate([f.pressures for f in frames if f.name == name], axis=1)


def test_a_towed_line_array_measures_the_bearing(world: Callable[..., LoadedConfig]) -> None:
    """Beamforming by delay and sum in the band of the tone, with ambient noise, while the array moves at 1.5 m/s."""
    lab = Lab(world(), imaging=True)
    lab.advance(150)
    x = sound(lab.take_frames(), "line")
    assert x.shape[0] == COUNT
    spectra, f = np.fft.rfft(x, axis=1), np.fft.rfftfreq(x.shape[1], 1.0 / RATE)
    near = abs(f - TONE) < 50.0
    angles = np.radians(np.arange(0.0, 180.0, 0.1))
    advances = np.cos(angles)[:, np.newaxis] * ALONG / SPEED  # of the arrival at each element
    steering = np.exp(-2j * np.pi * advances[:, :, np.newaxis] * f[near])
    power = (np.abs((steering * spectra[:, near]).sum(axis=1)) ** 2).sum(axis=1)
    bearing = math.degrees(angles[power.argmax()])
    travelled = 1.5 * 1.5  # m, at half of the time
    assert bearing == pytest.approx(math.degrees(math.atan2(SOURCE[1], SOURCE[0] - travelled)), abs=0.3)


def test_each_group_of_eight_gives_the_samples_of_a_smaller_hydrophone(world: Callable[..., LoadedConfig]) -> None:
    """The last four of 32 elements, in the fourth group, and a hydrophone with only these four elements."""
    tail = "><element position='" + "'/><element position='".join(f"{x:.4f} 0 0 m" for x in ALONG[-4:])
    line = f'ambient="no" bits="0" {LINE}'
    loaded = world(line=line, tail=tail + "'/></hydrophone>")
    lab = Lab(loaded, imaging=True)
    snapshots, found = [lab.snapshot()], []
    for _ in range(2):
        lab.restore(snapshots[0])
        lab.advance(110)
        frames = lab.take_frames()
        whole = np.concatenate([f.voltages for f in frames if f.name == "line"], axis=1)
        part = np.concatenate([f.voltages for f in frames if f.name == "tail"], axis=1)
        found.append(whole)
        assert part.any() and np.array_equal(whole[-4:], part)
    assert np.array_equal(*found), "also after a return to a snapshot"
    assert len(np.unique(found[0], axis=0)) == COUNT, "each element has its own samples"


def test_a_table_replaces_elements_and_counts_in_the_digest(world: Callable[..., LoadedConfig]) -> None:
    small = world("z, x ,y\n3,1,2\n\n-3,0,0\n")
    line = next(i for i in small.suite(small.config.fleet.bodies[0]) if i.name == "line").parameters
    assert line.element_positions == ((1.0, 2.0, 3.0), (0.0, 0.0, -3.0))  # type: ignore[attr-defined]
    other = world("x,y,z\n1,2,3\n0,0,-2\n")
    assert small.text == other.text and small.digest != other.digest
    alone, _ = load_standalone(small.text)  # a log does not contain the table
    assert len(alone.suite(alone.config.fleet.bodies[0])) == len(small.suite(small.config.fleet.bodies[0]))


def test_small_hydrophones_need_no_more_memory(world: Callable[..., LoadedConfig]) -> None:
    fronts = Lab(world("x,y,z\n0,0,0\n")).channel.hydrophones.fronts
    assert len(fronts.elements) == 2 * 8 and FRONT.dtype.itemsize == 232


@pytest.mark.parametrize(
    ("table", "line", "message"),
    [
        ("a,b,c\n1,2,3\n", LINE, "the first line of a table of elements must be x,y,z"),
        ("", LINE, "the first line of a table of elements must be x,y,z"),
        ("x,y,z\n", LINE, "the table contains no elements"),
        ("x,y,z\n1,2\n", LINE, "a position must consist of three numbers"),
        ("x,y,z\n1,2,nan\n", LINE, "a position must consist of three numbers"),
        ("x,y,z\n1,2,north\n", LINE, "a position must consist of three numbers"),
        ("x,y,z\n9,0,0\n", LINE, "element 1 is 9 m from the hydrophone"),
        ("x,y,z\n" + "0,0,0\n" * 65, LINE, "it has 65 elements; the maximum is 64"),
        ("x,y,z\n" + "0,0,0\n" * 64, 'elements="array.csv"', "use a `sampling` of at most 31250 Hz"),
        ("x,y,z\n" + ROWS, f'coherent="yes" {LINE}', "`coherent` needs at most 8 elements, but there are 32"),
        ("x,y,z\n0,0,0\n", 'elements="none.csv"', "cannot read the table of elements: No such file"),
        ("x,y,z\n0,0,0\n", 'elements="../other/array.csv"', "is outside the folder of the configuration"),
    ],
)
def test_wrong_tables_are_refused(world: Callable[..., LoadedConfig], table: str, line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        world(table, line)


def test_a_table_and_elements_together_are_refused(config: Callable[..., LoadedConfig]) -> None:
    both = TAIL.replace("/>", ' elements="array.csv"><element position="0 0 0 m"/></hydrophone>')
    with pytest.raises(ConfigError, match="both `elements` and <element>"):
        config(WORLD.format(line="", tail=both))
