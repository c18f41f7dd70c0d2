"""Replay of measured channels in the samples of a hydrophone, against closed forms and a direct evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulators import hydrophone_twin as twin
from tests.emulators.channel_files import write_channel
from tests.emulators.hydrophone_twin import C, Emission, at_rest, circle, straight
from wavesim_emulators.hydrophone.replay import ReplayChannel
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, SeaSettings
from wavesim_emulators.hydrophone.synthesis import Synthesiser
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server import Lab
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.measured_channels import read_channel

pytest.importorskip("h5py", reason="needs h5py: make")

FS_DELAY, FS_TIME, FC, LONG = 8e3, 20.0, 12e3, 3.0
TAPS = 40
FIRST, SECOND = 10, 25  #: delays of the two taps
FS = 48e3


def gains(t: Floats) -> tuple[Any, Any]:
    """Gains of both taps, which change slowly."""
    return 0.8 * np.exp(0.4j * t) * (1.0 + 0.2 * np.sin(2.0 * t)), 0.5 * np.exp(1j - 0.7j * t)


def two_taps(path: Path, **fields: Any) -> Path:
    t = np.arange(round(LONG * FS_TIME) + 1) / FS_TIME
    h = np.zeros((len(t), 1, TAPS), complex)
    h[:, 0, FIRST], h[:, 0, SECOND] = gains(t)
    return write_channel(path, h, FS_DELAY, FS_TIME, FC, **fields)


def heard(e: Emission, channel: ReplayChannel, key: int = 5, **settings: float) -> Synthesiser:
    made = Synthesiser(HydrophoneSettings(len(e.elements), FS, **settings), SeaSettings(key))
    made.add_waveforms(e.waveform())
    made.replay(e.signal, channel)
    made.add_fronts(e.fronts())
    return made


def expected(
    t: Floats, start: float, wave: Callable[[Floats], Any], phi: Callable[[Floats], Floats], drifts: bool
) -> Floats:
    """Received sound at times since the first arrival; the definition of the format, with closed forms for all signals."""
    t = t + FIRST / FS_DELAY
    late = t + (phi(start + t) / (2.0 * np.pi * FC) if drifts else 0.0)
    g = gains(start + late)
    base = np.exp(1j * phi(start + late)) * sum(
        a * wave(late - k / FS_DELAY) * np.exp(-2j * np.pi * FC * (late - k / FS_DELAY))
        for a, k in zip(g, (FIRST, SECOND), strict=True)
    )
    return np.asarray((base * np.exp(2j * np.pi * FC * t)).real)


def difference(found: Floats, wanted: Floats) -> float:
    """Difference in dB relative to what is wanted."""
    return float(10.0 * np.log10(((found - wanted) ** 2).sum() / (wanted**2).sum()))


@pytest.mark.parametrize("field", ["", "theta_hat", "phi_hat"])
def test_two_drifting_taps(tmp_path: Path, field: str) -> None:
    n = np.arange(round(LONG * FS_DELAY) + 1) / FS_DELAY
    start, slope = 0.75, 2.0 * np.pi * FC * 1e-3  # 1.5 m/s

    def phase(t: Floats) -> Floats:
        return np.asarray(slope * t + 0.3 * np.sin(3.0 * t)) if field else 0.0 * t

    path = two_taps(tmp_path / "two.mat", **({field: phase(n)[:, np.newaxis]} if field else {}))
    channel = ReplayChannel(read_channel(path), start, True)
    e = Emission(at_rest(0, 0, 50), at_rest(150, 0, 50), duration=0.2, frequency=12.5e3, band=2000.0, level=180.0)
    s = heard(e, channel)
    first, count = round(0.1 * FS) - 500, round(0.25 * FS)
    found = s.pressure(first, count).pressure[0]
    t = np.arange(first, first + count) / FS - 150.0 / C
    wave = twin.sweep(0.2, 12.5e3, 2000.0)
    from_start = (lambda x: phase(x) - phase(np.array(start))) if field == "phi_hat" else phase
    wanted = 1e9 * expected(t, start, wave, from_start, field == "phi_hat")
    assert difference(found, wanted) < -70.0
    assert (s.replayed, s.refused) == (1, 0)


def one_tap(path: Path, gains: Any = (1.0,), **fields: Any) -> Path:
    """Receivers with one constant tap each, with these gains."""
    h = np.zeros((61, len(gains), TAPS), complex)
    h[:, :, FIRST] = gains
    return write_channel(path, h, FS_DELAY, FS_TIME, FC, **fields)


def test_a_channel_with_one_tap_is_the_first_path_of_the_medium(tmp_path: Path) -> None:
    """Both ends move and the hydrophone turns: the medium gives the times, the level and the Doppler shift, and no echo is
    left. Blocks of any size, and fronts that come just in time and in any order, give the same bits.
    """
    channel = ReplayChannel(read_channel(one_tap(tmp_path / "one.mat")), None, False)
    e = Emission(
        circle((0, 0, 20), 2.0, 1.0),
        straight((60, 5, 30), (-3, 1, 0), turn=1.0),
        [(0.0, 0.0, 0.0), (0.4, 0.0, 0.1)],
        [twin.Path(), twin.Path(surface=True)],
        duration=0.3,
        frequency=12.5e3,
        band=2000.0,
        start=0.1,
    )
    medium = Synthesiser(HydrophoneSettings(2, FS), SeaSettings())
    medium.add_waveforms(e.waveform())
    medium.add_fronts(dataclasses.replace(e, paths=[twin.Path()]).fronts())
    first, count = round(0.1 * FS), round(0.4 * FS)
    wanted, whole = medium.pressure(first, count).pressure, heard(e, channel).pressure(first, count).pressure
    assert difference(whole, wanted) < -60.0
    late = Synthesiser(HydrophoneSettings(2, FS), SeaSettings(5))
    late.add_waveforms(e.waveform())
    late.replay(e.signal, channel)
    waiting, parts, at = e.fronts(), [], first
    while at < first + count:
        known = waiting["arrival"] <= late.time_of(at + 960) + late.lookahead
        late.add_fronts(waiting[known][::-1])
        waiting = waiting[~known]
        parts.append(late.pressure(at, 960).pressure)
        at += 960
    assert np.array_equal(np.hstack(parts), whole)


def test_doppler_of_a_linear_phase(tmp_path: Path) -> None:
    speed = 1e-3
    phi = 2.0 * np.pi * FC * speed * np.arange(round(LONG * FS_DELAY) + 1) / FS_DELAY
    channel = ReplayChannel(read_channel(one_tap(tmp_path / "one.mat", phi_hat=phi[:, np.newaxis])), 0.5, True)
    e = Emission(at_rest(0, 0, 50), at_rest(150, 0, 50), duration=1.2, frequency=12.5e3)
    p = heard(e, channel).pressure(round(0.2 * FS), round(FS)).pressure[0]
    t = np.arange(len(p)) / FS
    base = (p * np.exp(-2j * np.pi * 12.5e3 * t)).reshape(-1, 480).mean(axis=1)
    slope = np.polyfit(t.reshape(-1, 480).mean(axis=1), np.unwrap(np.angle(base)), 1)[0] / (2.0 * np.pi)
    assert (12.5e3 + slope) / 12.5e3 == pytest.approx(1.0 + speed, abs=1e-5)


def test_the_level_is_that_of_the_medium_or_of_the_file(tmp_path: Path) -> None:
    e = Emission(at_rest(0, 0, 50), at_rest(150, 0, 50), duration=1.2, frequency=12.5e3, level=180.0)
    path = one_tap(tmp_path / "one.mat", [0.01])
    for is_absolute, wanted in ((False, 180.0 - 20.0 * np.log10(150.0)), (True, 180.0 - 40.0)):
        p = heard(e, ReplayChannel(read_channel(path), 0.0, is_absolute)).pressure(round(0.2 * FS), round(FS)).pressure
        assert 10.0 * np.log10(np.mean(p**2)) == pytest.approx(wanted, abs=0.01)
    # the mean power of all taps over the file counts
    shaped = ReplayChannel(read_channel(two_taps(tmp_path / "two.mat")), 0.0, False)
    n = np.arange(round(LONG * FS_TIME) + 1) / FS_TIME
    power = sum(np.mean(abs(g) ** 2) for g in gains(n))
    found = heard(e, shaped).pressure(9000, 30000).pressure[0]
    t = np.arange(9000, 39000) / FS - 150.0 / C
    still = expected(t, 0.0, twin.tone(1.2, 12.5e3), lambda x: 0.0 * x, False)
    assert difference(found, 1e9 / 150.0 / np.sqrt(power) * still) < -60.0


def test_the_receivers_of_an_array(tmp_path: Path) -> None:
    """One receiver of the file for each element: the file contains the delays between them, here none."""
    channel = read_channel(one_tap(tmp_path / "array.mat", [1.0, 5.0, 0.5j]), (3.0, 1.0))
    e = Emission(
        at_rest(0, 0, 50), at_rest(150, 0, 50), [(0, 0, 0), (1.0, 0, 0)], duration=0.2, frequency=12.5e3, band=2e3
    )
    a, b = heard(e, ReplayChannel(channel, 0.0, True)).pressure(round(0.1 * FS), round(0.2 * FS)).pressure
    assert a @ a == pytest.approx(0.25 * (b @ b), rel=1e-4)
    turned = a[:-1] @ b[:-1] / np.sqrt((a @ a) * (b @ b))
    assert abs(turned) < 0.02, "a quarter of a turn apart, at the same times"


def test_a_signal_that_does_not_fit_takes_the_paths_of_the_medium(tmp_path: Path) -> None:
    channel = ReplayChannel(read_channel(one_tap(tmp_path / "one.mat")), None, False)
    for more in ({"frequency": 16.5e3}, {"frequency": 12e3, "duration": 4.0}):
        e = Emission(at_rest(0, 0, 50), at_rest(150, 0, 50), **more)
        s = heard(e, channel)
        plain = Synthesiser(s.settings, s.sea)
        plain.add_waveforms(e.waveform())
        plain.add_fronts(e.fronts())
        assert np.array_equal(s.pressure(4000, 4000).pressure, plain.pressure(4000, 4000).pressure)
        assert (s.replayed, s.refused) == (0, 1)


def test_the_start_is_drawn_for_each_signal(tmp_path: Path) -> None:
    channel = ReplayChannel(read_channel(two_taps(tmp_path / "two.mat")), None, False)
    row = Emission(at_rest(0, 0, 50), at_rest(150, 0, 50), duration=0.5).waveform()[0]
    starts = []
    for signal in range(400):
        row["signal"] = signal
        starts.append(channel.start_sample(row, 7))
    room = (LONG - 0.5 - TAPS / FS_DELAY) * FS_DELAY
    assert min(starts) < 0.02 * room and 0.98 * room < max(starts) <= room
    assert channel.start_sample(row, 7) == starts[-1] != channel.start_sample(row, 8)
    assert ReplayChannel(channel.channel, 1.5, False).start_sample(row, 7) == 1.5 * FS_DELAY


SEA = """<time step="10 ms"/><world><bed depth="200 m"/></world>
<acoustics sound_speed="1500 m/s" absorption="0 dB/m" ambient_noise="70 dB">{replay}</acoustics>
<fleet><vehicle name="rov" model="bluerov2-heavy" position="0 0 5 m"><transducer listen_low="10 kHz" listen_high="14 kHz"/>
<sensors><hydrophone name="ears" sampling="48 kHz" rate="20 Hz" gain="40 dB" ambient="no"/></sensors></vehicle>
<buoy name="pinger" model="buoy" position="30 0 5 m"><transducer source_level="160 dB" pulse="4 ms" recharge="100 ms">
<pinger frequency="12 kHz" period="0.3 s" offset="0.1 s"/></transducer>
<mooring anchor="30 0 200 m" length="194.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy></fleet>"""


def test_a_lab_hears_the_measured_channel(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """The echo is that of the file, and receptions of transducers are those of the medium. The values in the log say that
    the signal was replayed.
    """
    h = np.zeros((61, 1, 200), complex)
    h[:, 0, [20, 100]] = 1.0, 0.5  # an echo after 10 ms
    write_channel(tmp_path / "echo.mat", h, FS_DELAY, FS_TIME, FC)

    def run(replay: str) -> tuple[Floats, list[float], list[Any]]:
        lab = Lab(config(SEA.format(replay=replay)), imaging=True)
        replayed = []
        for _ in range(22):
            lab.advance(1)
            if "ears" in lab.sensors("rov"):
                replayed.append(float(lab.sensors("rov").ears.replayed))
        return np.hstack([f.pressures for f in lab.take_frames()])[0], replayed, lab.heard()

    plain, no_replays, receptions = run("")
    sound, replayed, same = run('<replay from="pinger" to="rov" file="echo.mat"/>')
    assert same == receptions and len(receptions) > 0
    assert set(no_replays) == {0.0} and max(replayed) == 1.0
    pulse = slice(round(0.118 * FS), round(0.126 * FS))
    echo = slice(pulse.start + round(0.01 * FS), pulse.stop + round(0.01 * FS))
    scale = 1.0 / np.sqrt(1.0 + 0.25)
    # the band of the file does not contain all of the edges of a pulse
    assert difference(sound[pulse], scale * plain[pulse]) < -30.0
    assert difference(sound[echo], 0.5 * scale * plain[pulse]) < -30.0
    assert not plain[echo].any()
    with pytest.raises(ConfigError, match="cannot carry the pings of 'pinger'"):
        run('<replay from="pinger" to="rov" file="echo.mat" start="3 s"/>')
