"""Noise, converter and detection of hydrophones against formulas and textbook processing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.emulators import hydrophone_twin as twin
from tests.emulators.hydrophone_twin import C, Emission, Path, at_rest
from wavesim_emulators.hydrophone.converter import convert
from wavesim_emulators.hydrophone.emulator import settings_of
from wavesim_emulators.hydrophone.noise import fill_stable, stable_rms
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, SeaSettings
from wavesim_emulators.hydrophone.synthesis import Synthesiser
from wavesim_sdk.arrays import Floats
from wavesim_world.config.acoustics import Acoustics
from wavesim_world.config.hydrophone import HydrophoneArrayConfig, HydrophoneElement
from wavesim_world.ocean.sound import ambient_noise, noise_in_band, rain_noise, shrimp_noise


def wenz(f: float) -> float:
    return ambient_noise(f, 0.5, 8.0)


def test_third_octaves_of_wenz_noise() -> None:
    """Levels in third octaves from 250 Hz to 16 kHz, within 0.5 dB in 20 s."""
    settings = HydrophoneSettings(2, 48e3)
    s = Synthesiser(settings, SeaSettings(key=11, noise=wenz))
    x = s.pressure(0, 960000).pressure
    f, power = np.fft.rfftfreq(x.shape[1], 1.0 / 48e3), abs(np.fft.rfft(x)) ** 2 / x.shape[1] / 24e3
    for centre in 1000.0 * 2.0 ** (np.arange(-6, 13) / 3.0):
        low, high = centre * 2.0 ** (-1 / 6), centre * 2.0 ** (1 / 6)
        inside = (f >= low) & (f < high)
        truth = 10.0 * np.log10(np.mean([10.0 ** (0.1 * wenz(y)) for y in np.linspace(low, high, 50)]))
        for channel in power:
            assert 10.0 * np.log10(channel[inside].mean()) == pytest.approx(truth, abs=0.5), centre
    assert abs(np.corrcoef(x)[0, 1]) < 0.03
    z = np.diff(x[0])  # white enough to judge its distribution
    assert (z**4).mean() / (z**2).mean() ** 2 == pytest.approx(3.0, abs=0.05)


def test_noise_depends_on_the_key_only() -> None:
    def noise(key: int, elements: int) -> Floats:
        s = Synthesiser(HydrophoneSettings(elements, 48e3), SeaSettings(key=key, noise=wenz))
        return s.pressure(7, 5000).pressure

    assert np.array_equal(noise(3, 2), noise(3, 4)[:2])
    slow = Synthesiser(HydrophoneSettings(1, 48e3, clock_offset=-1.0), SeaSettings(key=3, noise=wenz))
    assert slow.first_after(0.0) == -48000, "its clock shows a time before 0"
    early = slow.pressure(-10, 5017).pressure
    assert early.all() and np.array_equal(early[:, 17:], noise(3, 1))
    assert abs(np.corrcoef(noise(3, 1)[0], noise(4, 1)[0])[0, 1]) < 0.1


def test_nothing_above_the_band_is_sampled() -> None:
    s = Synthesiser(HydrophoneSettings(1, 48e3, low=100.0, high=5e3), SeaSettings(noise=lambda f: 80.0))
    spectrum = abs(np.fft.rfft(s.pressure(0, 480000).pressure[0] * np.hanning(480000))) ** 2
    f = np.fft.rfftfreq(480000, 1.0 / 48e3)
    inside = spectrum[(f > 1e3) & (f < 5e3)].mean()
    assert spectrum[f > 6400.0].mean() < 1e-6 * inside
    e = Emission(at_rest(0, 0, 20), at_rest(150, 0, 20), frequency=30e3)
    s = Synthesiser(HydrophoneSettings(1, 48e3), SeaSettings())
    s.add_waveforms(e.waveform())
    s.add_fronts(e.fronts())
    assert not s.pressure(4800, 9600).pressure.any()


@pytest.mark.parametrize(("bits", "snr"), [(12, 74.0), (16, 98.1), (24, 146.3)])
def test_rounding_noise_of_a_full_sine(bits: int, snr: float) -> None:
    settings = HydrophoneSettings(1, 96e3, bits=bits, sensitivity=0.0)
    x = (1.0 - 2.0 ** (1 - bits)) * np.sin(2.0 * np.pi * 0.1234567 * np.arange(200000))[np.newaxis]
    codes, clipped = convert(x, settings)
    error = codes / 2.0 ** (bits - 1) - x
    assert 10.0 * np.log10((x**2).mean() / (error**2).mean()) == pytest.approx(snr, abs=0.5)
    assert codes.dtype == (np.int16 if bits <= 16 else np.int32)
    assert not clipped.any()


def test_clipping_is_counted() -> None:
    settings = HydrophoneSettings(2, 96e3, bits=16, sensitivity=-120.0, gain=0.0, full_scale=2.0)
    x = np.array([[2.1e6, -2.1e6, 1.0e6, 0.0], [0.0, 0.0, 0.0, 3e6]])
    codes, clipped = convert(x, settings)
    assert codes.tolist() == [[32767, -32768, 16384, 0], [0, 0, 0, 32767]]
    assert clipped.tolist() == [2, 1]
    volts, clipped = convert(x, settings._replace(bits=0))
    assert volts[0] == pytest.approx([2.0, -2.0, 1.0, 0.0])
    assert clipped.tolist() == [2, 1]


def test_gain_of_a_matched_filter() -> None:
    """The ratio of peak power to noise power at the output of a matched filter is 2 E / N0."""
    level, spectrum = 100.0, 55.0
    e = Emission(
        at_rest(0, 0, 20),
        at_rest(150, 0, 20),
        duration=0.05,
        frequency=25e3,
        band=10e3,
        level=level + 20.0 * math.log10(150.0),
    )
    sea = SeaSettings(key=2, noise=lambda f: spectrum)
    clean, noisy = Synthesiser(HydrophoneSettings(), SeaSettings()), Synthesiser(HydrophoneSettings(), sea)
    clean.add_waveforms(e.waveform())
    clean.add_fronts(e.fronts())
    replica = twin.sweep(0.05, 25e3, 10e3)(np.arange(4800) / 96e3).real
    replica /= np.sqrt((replica**2).sum())
    peak = np.correlate(clean.pressure(9500, 5000).pressure[0], replica, "valid").max()
    noise = np.fft.irfft(np.fft.rfft(noisy.pressure(0, 192000).pressure[0]) * np.conj(np.fft.rfft(replica, 192000)))
    energy = 10.0 ** (0.1 * level) * 0.05 * (1.0 - 2.0 * 0.2048 * 4e-4 / 0.05)
    expected = 10.0 * np.log10(2.0 * energy / 10.0 ** (0.1 * spectrum))
    assert 10.0 * np.log10(peak**2 / (noise**2).mean()) == pytest.approx(expected, abs=0.2)


def direction(x: Floats, sampling: float, frequency: float, side: float) -> Floats:
    """Direction of a ping from three elements at the distance ``side`` along the axes, and one at the origin.

    The method is that of a textbook: band-pass filter, first arrival, phase differences. Where the distance exceeds half
    a wavelength, the number of turns is the one for which the length of the direction is closest to 1.
    """
    f = np.fft.rfftfreq(x.shape[1], 1.0 / sampling)
    spectrum = np.where(abs(f - frequency) < 1e3, np.fft.rfft(x), 0.0)
    analytic = np.fft.ifft(2.0 * spectrum, x.shape[1])
    size = abs(analytic).mean(axis=0)
    start = int(np.argmax(size > 0.5 * size.max()))
    part = analytic[:, start : start + round(2e-3 * sampling)]
    turns = np.angle((part[1:] * np.conj(part[:1])).sum(axis=1)) / (2.0 * np.pi)
    more = np.stack(np.meshgrid(*3 * [[-1, 0, 1]]), axis=-1).reshape(-1, 3)
    all_n = (turns + more) * C / frequency / side
    return np.asarray(all_n[abs((all_n**2).sum(axis=1) - 1.0).argmin()])


def test_bearing_of_a_pinger_by_a_textbook_method() -> None:
    """Elements 22.86 mm apart, 25 to 40 kHz, 5 to 50 m, 20 dB in 2 kHz, 250 kS/s, with the echo from the surface: the
    median error is below 1 degree.
    """
    side = 0.02286
    places = [(0.0, 0.0, 0.0), (side, 0.0, 0.0), (0.0, side, 0.0), (0.0, 0.0, side)]
    random = np.random.default_rng(4)
    errors = []
    for k in range(40):
        frequency, distance, angle = (random.uniform(*r) for r in ((25e3, 40e3), (5.0, 50.0), (-np.pi, np.pi)))
        source = at_rest(distance * np.cos(angle), distance * np.sin(angle), 10.0)
        e = Emission(
            source, at_rest(0, 0, 10), places, [Path(), Path(surface=True)], duration=4e-3, frequency=frequency
        )
        white = e.received(np.array(distance)) - 20.0 - 10.0 * np.log10(2e3)
        settings = HydrophoneSettings(4, 250e3, gain=-20.0, bits=16, sensitivity=-180.0)
        s = Synthesiser(settings, SeaSettings(key=k, noise=lambda f, level=float(white): level))
        s.add_waveforms(e.waveform())
        s.add_fronts(e.fronts())
        n = direction(s.block(s.first_after(distance / C - 2e-3), 2048).samples, 250e3, frequency, side)
        error = np.angle(np.exp(1j * (np.arctan2(n[1], n[0]) - angle)))
        errors.append(abs(np.degrees(error)))
    assert np.median(errors) < 1.0


def third_octave_errors(x: Floats, sampling: float, truth: Callable[[float], float], first: int, last: int) -> Floats:
    """Return the mean power in third octaves, relative to a spectrum level, in dB."""
    f, power = np.fft.rfftfreq(len(x), 1.0 / sampling), abs(np.fft.rfft(x)) ** 2 / len(x) / (0.5 * sampling)
    found = []
    for centre in 1000.0 * 2.0 ** (np.arange(first, last) / 3.0):
        inside = (f >= centre * 2.0 ** (-1 / 6)) & (f < centre * 2.0 ** (1 / 6))
        expected = np.mean([10.0 ** (0.1 * truth(y)) for y in np.linspace(*f[inside][[0, -1]], 50)])
        found.append(10.0 * np.log10(power[inside].mean() / expected))
    return np.array(found)


def test_rain_and_shrimp() -> None:
    """Rain adds to the Wenz noise as a power. Shrimp are impulsive; in both cases, the third-octave levels in the samples
    are within 0.5 dB of the levels that the events of the medium use.
    """
    assert rain_noise(5e3, 10.0) == pytest.approx(57.8) and rain_noise(5e3, 100.0) == pytest.approx(73.2)
    both = 10.0 * np.log10(10.0 ** (0.1 * ambient_noise(5e3, 0.5, 8.0)) + 10.0**7.32)
    assert ambient_noise(5e3, 0.5, 8.0, 100.0) == pytest.approx(both)
    assert shrimp_noise(1e3, 60.0) == pytest.approx(60.0 - 40.0 * np.log10(2.0)) and shrimp_noise(9e3, 60.0) == 60.0
    sea = SeaSettings(
        key=12,
        noise=lambda f: ambient_noise(f, 0.5, 8.0, 50.0),
        shrimp=lambda f: shrimp_noise(f, 65.0),
        shrimp_alpha=1.6,
    )
    settings = HydrophoneSettings(1, 48e3)
    for part, truth in ((sea._replace(shrimp=None), sea.noise), (sea._replace(noise=None), sea.shrimp)):
        x = Synthesiser(settings, part).pressure(0, 480000).pressure[0]
        assert truth is not None and abs(third_octave_errors(x, 48e3, truth, -3, 13)).max() < 0.5
        impulsive = (x**4).mean() / (x**2).mean() ** 2
        assert (impulsive > 20.0) if part.noise is None else (impulsive < 3.2)
    both_x = Synthesiser(settings, sea).pressure(5, 3000).pressure
    parts = [Synthesiser(settings, sea).pressure(5 + k, 500).pressure for k in range(0, 3000, 500)]
    assert np.array_equal(np.concatenate(parts, axis=1), both_x)
    a = Acoustics(noise_model="wenz", rain=50.0, shrimp=65.0)
    in_band = 10.0 ** (0.1 * ambient_noise(20e3, 0.5, 8.0, 50.0)) + 10.0**6.5
    assert noise_in_band(a, 8.0, 20e3, 4e3) == pytest.approx(10.0 * np.log10(4e3 * in_band))
    assert noise_in_band(Acoustics(shrimp=65.0), 8.0, 20e3, 4e3) == pytest.approx(
        10.0 * np.log10(1e6 + 4e3 * 10.0**6.5)
    )


def test_alpha_stable_numbers() -> None:
    """Shares beyond 1, 3 and 10 scales, against the integral of the characteristic function; and the rms value."""
    x = np.zeros(400_000)
    fill_stable(np.uint64(5), 0, 0, 1.6, x)
    u = np.linspace(1e-9, 12.0, 200_001)
    for limit in (1.0, 3.0, 10.0):
        inside = np.trapezoid(np.exp(-(u**1.6)) * np.sin(u * limit) / u, u) * 2.0 / np.pi
        assert (abs(x) > limit).mean() == pytest.approx(1.0 - inside, abs=0.003)
    assert abs(x).max() == 100.0 and np.sqrt((x**2).mean()) == pytest.approx(stable_rms(1.6), rel=0.05)


def test_coherence_of_isotropic_noise() -> None:
    """Four elements, 3 cm to 0.5 m apart: within 0.03 of sin(kd)/(kd), and the levels stay the same."""
    places = np.array([0.0, 0.03, 0.1, 0.5])
    delays = abs(places[:, np.newaxis] - places) / C
    s = Synthesiser(HydrophoneSettings(4, 48e3), SeaSettings(key=9, noise=wenz, spacing=delays))
    x = s.pressure(0, 960_000).pressure
    window = np.hanning(2048)
    parts = np.fft.rfft(np.lib.stride_tricks.sliding_window_view(x, 2048, axis=1)[:, ::1024] * window)
    f = np.fft.rfftfreq(2048, 1.0 / 48e3)
    power = (abs(parts) ** 2).mean(axis=1)
    for i in range(4):
        assert abs(third_octave_errors(x[i], 48e3, wenz, -6, 13)).max() < 0.5
        for j in range(i):
            measured = (parts[i] * parts[j].conj()).mean(axis=0) / np.sqrt(power[i] * power[j])
            truth = np.sinc(2.0 * f * delays[i, j])
            smooth = np.convolve(measured - truth, np.ones(48) / 48.0, "valid")[: len(f) * 3 // 4]
            assert abs(smooth).max() < 0.03, (i, j)
    again = Synthesiser(s.settings, s.sea)
    assert np.array_equal(np.concatenate([again.pressure(100 * k, 100).pressure for k in range(9)], axis=1), x[:, :900])


def test_errors_of_the_channels() -> None:
    """A gain of 3 dB and a delay of 20 us, on one of two channels."""
    e = Emission(at_rest(0, 0, 20), at_rest(150, 0, 20), [(0.0, 0.0, 0.0)] * 2, duration=0.1, frequency=5e3)
    s = Synthesiser(HydrophoneSettings(2, 48e3, bits=0, gain=20.0, gains=(0.0, 3.0), delays=(0.0, 2e-5)), SeaSettings())
    s.add_waveforms(e.waveform())
    s.add_fronts(e.fronts())
    x = s.block(5760, 1920).samples.astype(float)
    z = (x * np.exp(-2j * np.pi * 5e3 * np.arange(1920) / 48e3)).mean(axis=1)
    assert 20.0 * np.log10(abs(z[1] / z[0])) == pytest.approx(3.0, abs=1e-3)
    assert np.angle(z[0] / z[1]) == pytest.approx(2.0 * np.pi * 5e3 * 2e-5, abs=1e-4)
    (c,) = (
        HydrophoneArrayConfig(
            gain_deviation=1.0, delay_deviation=1e-5, element=(HydrophoneElement(position=(0.0,) * 3),) * 8
        ),
    )
    one, other = settings_of(c, 0.004, 5), settings_of(c, 0.004, 6)
    assert len(set(one.gains)) == 8 and one == settings_of(c, 0.004, 5) and one != other
    assert 0.3 < np.std(one.gains) < 2.0 and 3e-6 < np.std(one.delays) < 2e-5
    assert settings_of(HydrophoneArrayConfig(), 0.004).gains == ()
