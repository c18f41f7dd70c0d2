"""Temperature and salinity from files in DUNE's format (`x y z d` about an origin, one file per quantity and time)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server.lab import Lab
from wavesim_world import data_files
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.sample_files import read_sample_file
from wavesim_world.ocean.volume import EARTH_RADIUS
from wavesim_world.ocean.water import Water

Make = Callable[..., LoadedConfig]

HEAD = """############################
# Some licence text = {quantity} #
############################

[{quantity}]

Latitude (degrees)  = {latitude}
Longitude (degrees) = {longitude}

Data =     {data}
"""
#: samples 1, 2 and 4 m from the point (5, 0, 10), and two that are farther than 10 m
PLACES = ["5 0 11", "7 0 10", "5.0 -4.000000 10.0", "5 0 21", "200 0 10"]
AT = np.array([5.0, 0.0, 10.0])


def write(path: Path, quantity: str, values: list[float], origin: tuple[float, float] = (41.16, -8.69)) -> None:
    data = ",\n           ".join(f"{place} {value:.3f}" for place, value in zip(PLACES, values, strict=True))
    path.write_text(HEAD.format(quantity=quantity, latitude=origin[0], longitude=origin[1], data=data))


SAMPLES = """<samples latitude="41.16 deg" longitude="-8.69 deg" radius="10 m" power="{power}">
<temperature file="t0.ini"/><temperature file="t1.ini" time="10 min"/><temperature file="t2.ini" time="1 h"/>
<salinity file="s0.ini" time="60 s"/></samples>"""


def water_world(folder: Path, power: float = 1.0) -> str:
    write(folder / "t0.ini", "Temperature", [10.0, 12.0, 16.0, 40.0, 40.0])
    write(folder / "t1.ini", "Temperature", [12.0, 14.0, 14.0, 1.0, 1.0])
    write(folder / "t2.ini", "Temperature", [20.0] * 5)
    write(folder / "s0.ini", "Salinity", [35.0, 34.0, 30.0, 2.0, 2.0])
    return f'<world><bed depth="60 m"/>{SAMPLES.format(power=power)}</world>'


def test_inverse_distances_and_times_by_hand(config: Make, tmp_path: Path) -> None:
    """Weights 1, 1/2 and 1/4: (10 + 6 + 4)/1.75 = 80/7 C at 0 s, (12 + 7 + 3.5)/1.75 = 90/7 C at 600 s, 20 C at 3600 s;
    salinity (35 + 17 + 7.5)/1.75 = 34."""
    sea = Water(config(water_world(tmp_path)))
    for time, temperature in (
        (-5.0, 80 / 7),
        (0.0, 80 / 7),
        (150.0, 82.5 / 7),  # a quarter of the way
        (300.0, 85 / 7),
        (600.0, 90 / 7),
        (2100.0, 115 / 7),  # half of the way to 140/7
        (3600.0, 20.0),
        (1e6, 20.0),
    ):
        assert sea.temperature(AT, time) == pytest.approx(temperature, abs=1e-12), time
        assert sea.salinity(AT, time) == pytest.approx(34.0, abs=1e-9), "one file: the same at all times"
    assert sea.temperature(np.array([[5.0, 0.0, 11.0], [7.0, 0.0, 10.0]])) == pytest.approx([10.0, 12.0]), "exact there"
    assert sea.temperature(np.array([190.1, 0.0, 10.0])) == pytest.approx(40.0)
    assert sea.temperature(np.array([100.0, 0.0, 10.0])) == pytest.approx(12.0), "beyond the radius of all: the nearest"


def test_the_exponent_of_the_weights(config: Make, tmp_path: Path) -> None:
    """With the power 2, the weights are 1, 1/4 and 1/16."""
    sea = Water(config(water_world(tmp_path, power=2.0)))
    assert sea.temperature(AT, 0.0) == pytest.approx((10.0 + 3.0 + 1.0) / (21 / 16), abs=1e-12)


def test_each_file_has_its_own_origin(config: Make, tmp_path: Path) -> None:
    """A file about a point 0.001 deg to the north and west has its samples 111.195 m to the north and 83.719 m to the
    west, in the water of the world."""
    loaded = config(water_world(tmp_path))
    write(tmp_path / "t1.ini", "Temperature", [12.0, 14.0, 14.0, 1.0, 1.0], (41.161, -8.691))
    degree = math.pi / 180.0 * EARTH_RADIUS
    north, west = 0.001 * degree, 0.001 * degree * math.cos(math.radians(41.16))
    assert (north, west) == pytest.approx((111.195, 83.719), abs=0.01)
    sea = Water(loaded)
    assert sea.temperature(AT + (north, -west, 0.0), 600.0) == pytest.approx(90 / 7, abs=1e-6)
    assert sea.temperature(AT, 0.0) == pytest.approx(80 / 7, abs=1e-12)


def test_a_ctd_measures_the_samples(config: Make, tmp_path: Path) -> None:
    """The emulator returns temperature and salinity of the files, and the conductivity that belongs to them."""
    fleet = '<fleet><vehicle name="v" model="vita1" position="5 0 10 m"><sensors><ctd rate="1 Hz" noise="0"/></sensors></vehicle></fleet>'
    lab = Lab(config(water_world(tmp_path) + fleet))
    seen = []
    for _ in range(3):
        lab.set_pose(0, AT, velocity=(0.0,) * 6)
        lab.advance(0 if not seen else round(1e9) // lab.step_ns)
        ctd = lab.sensors("v").ctd
        at = lab.state()["p_WB_W"][0]
        sea = Water(lab.loaded)
        assert ctd.temperature == pytest.approx(float(sea.temperature(at, lab.time_s)), abs=1e-9)
        assert ctd.salinity == pytest.approx(float(sea.salinity(at, lab.time_s)), abs=1e-6)
        seen.append(ctd.temperature)
    assert seen[0] == pytest.approx(80 / 7, abs=1e-6)


def test_a_file_on_one_line_and_with_gaps(tmp_path: Path) -> None:
    path = tmp_path / "t.ini"
    path.write_text("Latitude (degrees) = 1.5\nLongitude (degrees) = -2\nData = 0 0 0 10.5, 1 2 3 nan, 4 5 6 7e0,\n")
    origin, samples = read_sample_file(path, "temperature")
    assert origin == (1.5, -2.0) and samples.tolist() == [[0.0, 0.0, 0.0, 10.5], [4.0, 5.0, 6.0, 7.0]]


def test_the_example_of_the_page(root: Path, tmp_path: Path) -> None:
    page = (root / "docs/ocean.md").read_text()
    (tmp_path / "t.ini").write_text(page.partition("```text\n")[2].partition("```")[0])
    origin, samples = read_sample_file(tmp_path / "t.ini", "temperature")
    assert origin == (41.1848, -8.7044)
    assert samples.tolist() == [[0.0, 0.0, 0.0, 16.2], [0.0, 0.0, 5.0, 14.9], [25.5, -12.0, 0.0, 16.4]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "Latitude (degrees)  = 41.16\n",
            "",
            "the temperature file has no origin: add a line `Latitude (degrees) = ...`",
        ),
        ("Longitude (degrees) = -8.69\n", "", "has no origin: add a line `Longitude (degrees) = ...`"),
        ("= 41.16", "= 41,16", ":7: the latitude is '41,16'; use -90 to 90 degrees"),
        ("= 41.16", "= 4116", ":7: the latitude is '4116'; use -90 to 90 degrees"),
        ("[Temperature]", "[Salinity]", ":5: the section of the temperature file is [Salinity]; use [Temperature]"),
        ("7 0 10 12.000", "7 0 10", ":11: invalid sample: use four numbers, x y z d, and a comma between samples"),
        ("7 0 10 12.000", "7 0 10 twelve", ":11: invalid sample: use four numbers"),
        ("7 0 10 12.000", "7 0 10 285", ":11: the temperature is 285; use -5 to 45"),
        ("7 0 10 12.000", "7 0 40000 12", ":11: z is 40000; use -100 to 12000"),
        ("7 0 10 12.000", "nan 0 10 12", ":11: x is nan; use -1e+06 to 1e+06"),
        ("7 0 10 12.000", "5 0 11 12", ":11: duplicate line: its point equals that of line 10"),
        ("Data =", "Values =", ":10: unknown name 'Values': use Latitude, Longitude and Data"),
        (None, "", "the temperature file has no origin"),
        (None, "Latitude (degrees) = 1\nLongitude (degrees) = 2\nData =\n", "the temperature file has no samples"),
    ],
)
def test_bad_files(tmp_path: Path, config: Make, old: str | None, new: str, message: str) -> None:
    loaded = config(water_world(tmp_path))
    text = (tmp_path / "t0.ini").read_text()
    assert old is None or old in text
    (tmp_path / "t0.ini").write_text(new if old is None else text.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        data_files.check(loaded)
    assert message in str(caught.value) and "t0.ini" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            ' time="10 min"',
            ' time="2 h"',
            ":3: the times of the <temperature> files must be in ascending order, but 3600 s follows 7200 s",
        ),
        (' time="10 min"', "", "the times of the <temperature> files must be in ascending order, but 0 s follows 0 s"),
        ("<salinity[^>]*>", "", "<samples> needs a <salinity>"),
        ("<temperature[^>]*>", "", "<samples> needs a <temperature>"),
        ('power="1.0">', 'power="1.0" file="s.csv">', "<samples> has both a `file` and the files of single quantities"),
        ('file="t2.ini"', 'file="t9.ini"', "file 't9.ini' does not exist"),
        (None, '<samples latitude="1 deg" longitude="2 deg"/>', "needs a `file`, or a <temperature> and a <salinity>"),
    ],
    ids=["order", "equal", "salinity", "temperature", "both", "absent", "none"],
)
def test_bad_elements(tmp_path: Path, config: Make, old: str | None, new: str, message: str) -> None:
    text = water_world(tmp_path)
    changed = f"<world>{new}</world>" if old is None else re.sub(old, new, text)
    assert changed != text
    with pytest.raises(ConfigError) as caught:
        config(changed)
    assert message in str(caught.value)
