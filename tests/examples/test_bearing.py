"""The on-board program that finds a pinger with four hydrophones: its method against a plane wave in closed form, and the
trial of the tutorial.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.conftest import run_trial, wavesim
from wavesim_sdk import frames
from wavesim_sdk.log import read
from wavesim_sdk.tables import STATE

ON_BOARD = Path(__file__).parents[2] / "examples" / "onboard"
RATE, FREQUENCY = 250e3, 30e3


@pytest.fixture
def bearing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ON_BOARD))
    import bearing

    return bearing


def plane_wave(program: ModuleType, u: np.ndarray, begin: float, noise: float, seed: int) -> np.ndarray:
    """Half a second: 4 ms of 30 kHz from the direction u, with amplitude 1; and after 3 ms an echo from above."""
    random = np.random.default_rng(seed)
    t = np.arange(round(0.5 * RATE)) / RATE
    sound = noise * random.normal(size=(len(program.ELEMENTS), len(t)))
    for towards, late in ((u, 0.0), (np.array([u[0], u[1], -0.8]), 3e-3)):
        for channel, place in enumerate(program.ELEMENTS):
            s = t - begin - late + float(towards @ place) / program.SOUND_SPEED
            sound[channel] += np.where((s >= 0.0) & (s < 4e-3), np.sin(2.0 * np.pi * FREQUENCY * s), 0.0)
    return sound


def test_directions_of_plane_waves(bearing: ModuleType) -> None:
    """In all directions, with an echo and with a signal-to-noise ratio of 20 dB in the band of the program; the blocks
    have any length, and the ping may lie on the border of two of them."""
    errors = []
    for k, azimuth in enumerate(np.arange(0.0, 360.0, 24.0)):
        elevation = math.radians(-30.0 + 4.0 * k)
        a = math.radians(azimuth)
        u = np.array([math.cos(a) * math.cos(elevation), math.sin(a) * math.cos(elevation), -math.sin(elevation)])
        begin = 0.199 + 0.002 * k / 15
        sound = plane_wave(bearing, u, begin, 0.2, k)
        finder = bearing.PingerFinder(FREQUENCY)
        found, first = [], 1_000_000
        for part in np.array_split(sound, 5, axis=1):
            found += finder.add(part, first, RATE)
            first += part.shape[1]
        assert len(found) == 1
        assert found[0][0] - 1_000_000 / RATE == pytest.approx(begin, abs=0.5e-3)
        errors.append(math.degrees(math.acos(min(1.0, float(found[0][1] @ u)))))
    assert np.median(errors) < 0.5 and max(errors) < 1.5


def test_a_lost_block_and_silence(bearing: ModuleType) -> None:
    """Two parts that do not belong together are not joined, and noise alone is no ping."""
    u = np.array([1.0, 0.0, 0.0])
    sound = plane_wave(bearing, u, 0.1995, 0.02, 1)
    finder = bearing.PingerFinder(FREQUENCY)
    parts = np.array_split(sound, 5, axis=1)
    assert finder.add(parts[0], 0, RATE) == []
    assert finder.add(parts[2], 50_000, RATE) != [], "the rest of the ping"
    for first in (0, -10_000_000):
        again = [ping for k in (1, 2) for ping in finder.add(parts[k], first + k * 25_000, RATE)]
        assert len(again) == 1, "after a reset, and with a clock that shows a time before 0"
    quiet = bearing.PingerFinder(FREQUENCY)
    noise = np.random.default_rng(2).normal(size=(4, 125_000))
    assert quiet.add(noise, 0, RATE) == []


@pytest.mark.long
@pytest.mark.system
@pytest.mark.xdist_group("trials")
@pytest.mark.timeout(240)
def test_the_trial_of_the_tutorial(root: Path, tmp_path: Path) -> None:
    """Each printed bearing and elevation against the true positions at the time of the ping."""
    name = f"find-pinger{os.getpid()}"
    arguments = ("--files", str(root / "examples"), "--duration", "8")
    done = run_trial(root / "examples/trials/find-pinger.xml", tmp_path, name, *arguments, timeout=200)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / name
    text = (folder / "program-rov.txt").read_text()
    pings = [tuple(map(float, p)) for p in re.findall(r"ping at (\S+) s: bearing (\S+) deg, elevation (\S+) deg", text)]
    assert [round(at) for at, _, _ in pings] == [0, 2, 4, 6]
    log = read(folder / "run.mcap")
    rov, pinger = (log.get(f"/state/{body}", STATE) for body in ("rov", "pinger"))
    for at, azimuth, elevation in pings:
        p, q = (s.records[np.searchsorted(s.time_ns, at * 1e9)] for s in (rov, pinger))
        line = q["p_WB_W"] - p["p_WB_W"] - frames.rotation(p["q_WB"]) @ [0.2, 0.0, 0.1]
        assert azimuth == pytest.approx(math.degrees(math.atan2(line[1], line[0])) % 360.0, abs=1.0)
        assert elevation == pytest.approx(math.degrees(math.asin(-line[2] / np.linalg.norm(line))), abs=1.0)
    sound = tmp_path / "ping.wav"
    recorded = wavesim("record", "rov", "ears", sound, "--log", folder / "run.mcap")
    assert recorded.returncode == 0, recorded.stderr
    assert sound.stat().st_size > 7 * 4 * 2 * RATE and (tmp_path / "ping.wav.json").exists()
