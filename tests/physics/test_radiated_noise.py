"""Noise of bodies: in the samples of hydrophones against closed forms, and in the events of the medium."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.physics.courses import Course, Courses
from wavesim_emulators.hydrophone.radiated_waves import RadiatedWaves
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, PressureBlock, SeaSettings, Spectrum
from wavesim_emulators.hydrophone.synthesis import Synthesiser
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.front_tables import RADIATED_NOISE, WAVEFORM
from wavesim_server.dynamics import block_rows as B
from wavesim_world.config import load_text
from wavesim_world.ocean.sound import ainslie_mccolm, ambient_noise

C, SAMPLING, SHAFT = 1500.0, 32e3, 10.0
WORLD = """<wavesim><time step="{step}"/><shared vehicles="4"/><world><wind speed="5 m/s"/><bed depth="60 m"/></world>
<acoustics sound_speed="1500 m/s" noise_model="wenz"/><fleet>
<vehicle name="ship" model="remus100-fossen" position="0 0 20 m"><radiated-noise {noise}/>
<transducer source_level="190 dB"/></vehicle>
<vehicle name="listener" model="lauv" position="100 0 20 m"><transducer threshold="0 dB"/>
<sensors><hydrophone sampling="32 kHz" ambient="no"/></sensors></vehicle></fleet></wavesim>"""
REST = {"ship": Course((0.0, 0.0, 20.0)), "listener": Course((100.0, 0.0, 20.0))}
CLOSING = {"ship": Course((0.0, 0.0, 20.0), (3.0, 0.0, 0.0)), "listener": Course((100.0, 0.0, 20.0))}


def spectrum(f: Floats) -> Floats:
    """Level relative to that at 1 kHz: flat below 100 Hz, 20 dB per decade above."""
    return np.asarray(10.0 * np.log10((1e6 + 1e4) / (f * f + 1e4)))


def run(noise: str, courses: dict[str, Course], seconds: float, step: str = "20 ms") -> Courses:
    lab = Courses(load_text(WORLD.format(step=step, noise=noise)), courses)
    lab.sim.fleet.body(0)[B.ACTUATOR_STATE] = SHAFT
    lab.advance(seconds)
    return lab


def heard(batch: Any, settings: HydrophoneSettings, first: int, counts: list[int]) -> list[PressureBlock]:
    s = Synthesiser(settings, SeaSettings())
    s.add_waveforms(batch.waveforms)
    s.add_fronts(batch.fronts)
    blocks = []
    for count in counts:
        blocks.append(s.pressure(first, count))
        first += count
    return blocks


def densities(x: Floats) -> tuple[Floats, Floats]:
    """Return frequencies and power densities in uPa^2/Hz, the mean of Hann windows of 0.25 s."""
    n = round(SAMPLING / 4)
    window = np.hanning(n)
    parts = np.lib.stride_tricks.sliding_window_view(x, n)[:: n // 2] * window
    power = (abs(np.fft.rfft(parts)) ** 2).mean(axis=0) * 2.0 / SAMPLING / (window**2).sum()
    return np.fft.rfftfreq(n, 1.0 / SAMPLING), power


def test_broadband_noise_in_samples_and_events() -> None:
    """At 100 m, third-octave levels in the samples within 0.5 dB of the closed form. The noise of an event contains the
    same spectrum level: within 0.01 dB of the closed form, and within 0.3 dB of the samples.
    """
    lab = run('level="120 dB"', REST, 8.2)
    batch = lab.sim.take_fronts()
    assert set(batch.waveforms["kind"]) == {RADIATED_NOISE} and len(batch.waveforms) == 17
    (block,) = heard(batch, HydrophoneSettings(1, SAMPLING), 3200, [round(8.0 * SAMPLING)])
    f, power = densities(block.pressure[0])
    lost = 40.0 + 0.5
    for centre in 1000.0 * 2.0 ** (np.arange(-6, 11) / 3.0):
        inside = (f >= centre * 2.0 ** (-1 / 6)) & (f < centre * 2.0 ** (1 / 6))
        truth = np.mean(10.0 ** (0.1 * (120.0 - lost + spectrum(f[inside]))))
        assert 10.0 * np.log10(power[inside].mean() / truth) == pytest.approx(0.0, abs=0.5), centre
    lab.sim.ping(0, 20e3)
    lab.advance(0.3)
    _, events = lab.sim.take_signals()
    (noise,) = {float(e["noise"]) for e in events}
    band = 10.0 * np.log10(2.0 / 0.01)
    parts = ambient_noise(20e3, 0.5, 5.0) + band, 120.0 - lost + float(spectrum(np.array(20e3))) + band
    assert noise == pytest.approx(10.0 * np.log10(sum(10.0 ** (0.1 * p) for p in parts)), abs=0.01)


def test_tones_of_a_propeller_and_a_machine_with_doppler() -> None:
    """A ship that closes at 3 m/s: 3 blades at 10 1/s, and a machine at 333 Hz. Frequencies, levels, harmonics."""
    noise = 'level="60 dB" slope="2" blades="3" blade_level="130 dB" machine="333 Hz" machine_level="125 dB"'
    batch = run(noise, CLOSING, 4.3).sim.take_fronts()
    (block,) = heard(batch, HydrophoneSettings(1, SAMPLING, low=0.0), 3200, [round(4.0 * SAMPLING)])
    x, t = block.pressure[0], np.arange(round(4.0 * SAMPLING)) / SAMPLING
    window = np.hanning(len(t))
    distance = 100.0 - 3.0 * (2.1 * C - 100.0) / (C - 3.0)  # of the sound that arrives in the middle, at 2.1 s
    for f, level in ((30.0, 130.0), (60.0, 124.0), (333.0, 125.0), (999.0, 125.0 - 20.0 * np.log10(3.0))):
        shifted = f / (1.0 - 3.0 / C)

        def power(g: float) -> float:
            return float(abs((x * window * np.exp(-2j * np.pi * g * t)).sum()))

        around = [power(shifted + d) for d in (-0.05, 0.0, 0.05)]
        offset = 0.025 * (around[0] - around[2]) / (around[0] - 2.0 * around[1] + around[2])
        assert abs(offset) < 0.003, f
        amplitude = np.sqrt(2.0) * around[1] / window.sum()
        expected = level + 6.0 - 20.0 * np.log10(distance) - 0.005 * distance
        assert 20.0 * np.log10(amplitude) == pytest.approx(expected, abs=0.15), f


def test_segments_join_without_an_edge() -> None:
    """A machine alone, compared with the closed form over seven joints: the error is below -60 dB everywhere."""
    batch = run('level="0 dB" machine="500 Hz" machine_level="130 dB"', CLOSING, 4.3).sim.take_fronts()
    (block,) = heard(batch, HydrophoneSettings(1, SAMPLING, low=0.0), 3200, [round(4.0 * SAMPLING)])
    t = (3200 + np.arange(round(4.0 * SAMPLING))) / SAMPLING
    te = (C * t - 100.0) / (C - 3.0)
    distance = 100.0 - 3.0 * te
    harmonics = sum(np.sin(2.0 * np.pi * 500.0 * h * te) / h for h in range(1, 26))
    expected = np.sqrt(2.0) * 10.0 ** (6.5 - 0.05 * 0.005 * distance) / distance * harmonics
    assert abs(block.pressure[0] - expected).max() < 1e-3 * abs(expected).max()


@pytest.mark.parametrize("absorption", [None, lambda f: 1e-3 * float(ainslie_mccolm(f, 10.0, 35.0, 20.0, 8.0))])
def test_neighbouring_segments_contain_the_same_samples(absorption: Spectrum | None) -> None:
    noise = RadiatedWaves(HydrophoneSettings(1, SAMPLING, low=100.0), absorption)
    row = np.zeros(2, WAVEFORM.dtype)
    row["kind"], row["frequency"], row["band"], row["source_level"], row["code"] = RADIATED_NOISE, 1e3, 1.0, 100.0, 77
    row["emission"] = 1.0, 1.5
    waves = [noise.wave(r) for r in row]
    versions = [w.version(w.number(500.0)) for w in waves]
    for first, second, share in zip(*versions, (1e-6 if absorption is None else 1e-3, 1e-2), strict=True):
        # both ends are 32 samples longer than the segment; the Hilbert transform of low frequencies reaches far
        assert first[-64:] == pytest.approx(second[:64], abs=share * first.std())


def test_block_sizes_and_ticks_change_nothing() -> None:
    noise = 'level="120 dB" blades="3" blade_level="130 dB"'
    batch, count = run(noise, CLOSING, 0.9).sim.take_fronts(), round(0.7 * SAMPLING)
    settings = HydrophoneSettings(2, SAMPLING)
    batch.fronts["times"][:, 1], batch.fronts["rates"][:, 1] = batch.fronts["times"][:, 0], batch.fronts["rates"][:, 0]
    (whole,) = heard(batch, settings, 3200, [count])
    parts = heard(batch, settings, 3200, [256] * (count // 256))
    assert np.array_equal(np.concatenate([p.pressure for p in parts], axis=1), whole.pressure[:, : count // 256 * 256])
    assert np.array_equal(whole.pressure[0], whole.pressure[1]) and whole.pressure.any()
    (fine,) = heard(run(noise, CLOSING, 0.9, "4 ms").sim.take_fronts(), HydrophoneSettings(1, SAMPLING), 3200, [count])
    assert fine.pressure[0] == pytest.approx(whole.pressure[0], abs=1e-6 * whole.pressure.std())


def test_a_body_that_leaves_falls_silent_and_a_snapshot_continues() -> None:
    """The body leaves at 0.7 s: its second segment ends at 1 s, and no third one begins."""
    lab = run('level="120 dB" blades="3" blade_level="130 dB"', CLOSING, 0.6)
    before = lab.sim.snapshot()

    def rest() -> Any:
        lab.advance(0.1)
        lab.sim.leave(0)
        lab.advance(0.5)
        return lab.sim.take_fronts()

    lab.sim.take_fronts()
    rest()
    lab.sim.restore(before)
    again = rest()
    assert again.waveforms["emission"].tolist() == [0.0, 0.5]
    assert again.fronts["emission"].max() == pytest.approx(1.0)
    last = again.fronts[again.fronts["number"] == 25]
    assert last["last"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ('level="100 dB" blades="3"', "needs both `blades` and `blade_level`"),
        ('level="100 dB" machine="50 Hz"', "needs both `machine` and `machine_level`"),
        ('level="100 dB" propeller="propeller"', "so it needs `blades`"),
        ('level="100 dB" blades="3" blade_level="130 dB" propeller="propellor"', "did you mean 'propeller'"),
        ("", "level"),
    ],
)
def test_mistakes_are_refused(noise: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_text(WORLD.format(step="20 ms", noise=noise))
    with pytest.raises(ConfigError, match="has law=shaft"):
        text = WORLD.format(step="20 ms", noise='level="90 dB" blades="3" blade_level="99 dB"')
        load_text(text.replace("remus100-fossen", "lauv"))
