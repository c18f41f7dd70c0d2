"""Sound in sea water: published numbers, and independent code for comparison."""

from __future__ import annotations

import json
import math
import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import gsw
import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean import sound
from wavesim_world.ocean.water import Water

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import seawater


@pytest.mark.parametrize(
    ("f", "fg", "am"), [(10, 0.9851, 1.0100), (25, 5.0208, 5.1310), (50, 15.415, 15.733), (100, 33.653, 34.365)]
)
def test_absorption_in_published_water(f: float, fg: float, am: float) -> None:
    assert sound.francois_garrison(f * 1e3, 10.0, 35.0, 0.0, 8.1) * 1e3 == pytest.approx(fg, rel=5e-5)
    assert sound.ainslie_mccolm(f * 1e3, 10.0, 35.0, 0.0, 8.1) * 1e3 == pytest.approx(am, rel=5e-5)


def test_thorp_noise_and_speeds() -> None:
    assert sound.thorp(25e3) * 1e3 == pytest.approx(5.8954, abs=5e-5)
    assert sound.thorp_extended(25e3) * 1e3 == pytest.approx(6.1048, abs=5e-5)
    for f, s, w, level in ((1e3, 0.5, 0.0, 45.373), (10e3, 0.5, 5.0, 46.090), (25e3, 0.5, 5.0, 38.548)):
        assert sound.ambient_noise(f, s, w) == pytest.approx(level, abs=5e-4)
    assert sound.mackenzie(25.0, 35.0, 1000.0) == pytest.approx(1550.744, abs=5e-4)  # type: ignore[arg-type]
    assert sound.munk(np.array([0.0, 1300.0, 2600.0, 5000.0])) == pytest.approx(
        [1548.521, 1500.0, 1512.551, 1551.911], abs=5e-4
    )
    assert sound.chen_millero(np.array(40.0), np.array(40.0), np.array(10000.0)) == pytest.approx(1731.995, abs=1e-3)


def test_speeds_against_seawater_and_gsw() -> None:
    """Chen and Millero to rounding against `seawater`; Del Grosso against TEOS-10, which was fitted to his data."""
    t, s, p = (a.ravel() for a in np.meshgrid([0.0, 10.0, 20.0, 30.0], [5.0, 35.0, 40.0], [0.0, 500.0, 4000.0]))
    assert sound.chen_millero(1.00024 * t, s, p) == pytest.approx(seawater.svel(s, t, p), abs=1e-9)
    # (T, p) that occur in the oceans
    for t1, p1 in ((2.0, 4000.0), (3.0, 2000.0), (5.0, 1000.0), (10.0, 500.0), (15.0, 200.0), (20.0, 50.0)):
        absolute = gsw.SA_from_SP(35.0, p1, 0.0, 45.0)
        teos = gsw.sound_speed(absolute, gsw.CT_from_t(absolute, t1, p1), p1)
        found = float(sound.del_grosso(np.array(t1), np.array(35.0), np.array(p1)))
        assert found == pytest.approx(teos, abs=0.1)
        z = -gsw.z_from_p(p1, 45.0)
        for other, limit in ((sound.mackenzie, 0.4), (sound.leroy, 0.6), (sound.medwin, 0.4 if z < 1000 else 4.0)):
            assert float(other(np.array(t1), np.array(35.0), np.array(z))) == pytest.approx(teos, abs=limit)


def test_absorption_and_speed_against_arlpy(root: Path) -> None:
    """In an environment of its own, for it needs older libraries."""
    python = root / ".venv-oracles" / "bin" / "python"
    if not python.exists():
        message = "arlpy's environment is absent (make setup makes it): its oracle is not asked"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    code = """
import json, arlpy.uwa as u
water = [(10, 35, 0, 8.1), (4, 34, 1000, 7.9), (22, 38, 50, 8.0)]
fs = [1e3, 10e3, 25e3, 60e3, 200e3]
print(json.dumps([[[float(u.absorption(f, 1000, t, s, z, ph)) for f in fs], float(u.soundspeed(t, s, z))] for t, s, z, ph in water]))
"""
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    water = [(10.0, 35.0, 0.0, 8.1), (4.0, 34.0, 1000.0, 7.9), (22.0, 38.0, 50.0, 8.0)]
    for (t, s, z, ph), (losses, speed) in zip(water, json.loads(done.stdout), strict=True):
        for f, loss in zip((1e3, 10e3, 25e3, 60e3, 200e3), losses, strict=True):
            assert sound.francois_garrison(f, t, s, z, ph) * 1e3 == pytest.approx(-20 * math.log10(loss), rel=2e-3)
        assert float(sound.mackenzie(np.array(t), np.array(s), np.array(z))) == pytest.approx(speed, abs=1e-6)


def test_the_profile_of_the_configured_water(config: Callable[..., LoadedConfig]) -> None:
    world = '<world latitude="40 deg"><bed depth="80 m"/><temperature surface="18 C" knee_1="10 m" knee_2="30 m" gradient_1="-0.3 C/m"/></world>'
    for formula, other in (
        ("chen-millero", None),
        ("del-grosso", 0.6),
        ("mackenzie", 0.6),
        ("medwin", 0.9),
        ("leroy", 0.6),
    ):
        loaded = config(f'{world}<acoustics profile="water" formula="{formula}"/>')
        z, c = sound.sound_speed_profile(loaded, Water(loaded), 80.0)
        if other is None:
            reference = c
            assert (z[0], z[-1], len(z)) == (0.0, 80.0, 65)
            assert 8.0 < c[0] - c[40] < 18.0, (
                "6 degrees less are 18 m/s, but the same conductivity then means more salt"
            )
        else:
            assert np.abs(c - reference).max() < other


def test_a_profile_from_a_file(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_text("# depth speed\n0 1500\n10, 1510 # knee\n\n50 1490\n")
    loaded = config('<acoustics profile="file" file="p.txt"/>')
    z, c = sound.sound_speed_profile(loaded, Water(loaded), 30.0)
    assert z.tolist() == [0, 10, 30] and c.tolist() == [1500, 1510, 1500]
    for text, message in (
        ("0 1500\n0 1510\n", "2.*is not greater than the previous depth"),
        ("0 x\n", "1.*use `depth speed`"),
        ("", "no rows"),
        ("0 5\n", "out of range"),
        ("0 1500\nnan 1500\n", "2.*out of range"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            sound.read_profile(path)
    for inner in (
        '<acoustics profile="file"/>',
        '<acoustics file="p.txt"/>',
        '<acoustics profile="file" file="q.txt"/>',
    ):
        with pytest.raises(ConfigError):
            config(inner)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("<head><hydrophone position='0 0 0 m'/></head>", "hydrophones, but needs 3 to 8"),
        ("<head>" + "".join(f"<hydrophone position='{k} 0 0 m'/>" for k in range(3)) + "</head>", "one line"),
        ("<beam pattern='table'/>", "together, or neither"),
        ("<beam pattern='table'>0 0 0 3</beam>", "ascending"),
        ("<beam axis='0 0 0'/>", "zero vector"),
        ("<modem frequency='50 kHz'/>", "receiving band"),
    ],
)
def test_instruments_that_cannot_be(config: Callable[..., LoadedConfig], inside: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(
            f'<fleet><vehicle name="a" model="lauv" position="0 0 1 m"><transducer>{inside}</transducer></vehicle></fleet>'
        )


def test_two_modems_cannot_share_an_address(config: Callable[..., LoadedConfig]) -> None:
    bodies = "".join(
        f'<vehicle name="{n}" model="lauv" position="0 0 1 m"><transducer><modem address="7"/></transducer></vehicle>'
        for n in "ab"
    )
    with pytest.raises(ConfigError, match="'b' and 'a' have the same modem address 7"):
        config(f"<fleet>{bodies}</fleet>")
    other_make = bodies.replace("address", 'modulation="other" address', 1)
    config(f"<fleet>{other_make}</fleet>")
