"""Samples of hydrophones against closed forms and a slow twin."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.emulators import hydrophone_twin as twin
from tests.emulators.hydrophone_twin import C, Emission, Path, at_rest, circle, straight
from wavesim_emulators.hydrophone import waveforms
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, SeaSettings
from wavesim_emulators.hydrophone.synthesis import Synthesiser
from wavesim_emulators.hydrophone.waveforms import nominal_wave
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import WaveSimError
from wavesim_world.ocean.sound import ainslie_mccolm

SILENT = SeaSettings()


def heard(e: Emission, sampling: float = 96e3, sea: SeaSettings = SILENT, **more: float) -> Synthesiser:
    made = Synthesiser(HydrophoneSettings(len(e.elements), sampling, **more), sea)
    made.add_waveforms(e.waveform())
    made.add_fronts(e.fronts())
    return made


def times(s: Synthesiser, first: int, count: int) -> Floats:
    return np.array([s.time_of(k) for k in range(first, first + count)])


def delay_of(x: Floats, wave, sampling: float, near: float) -> float:
    """Delay in s at which the correlation with a wave is largest; a parabola through the best of many delays."""
    t = np.arange(len(x)) / sampling
    delays = near + np.linspace(-1.0, 1.0, 41) / sampling
    fits = np.array([x @ wave(t - d).real for d in delays])
    k = int(fits.argmax())
    a, b, c = fits[k - 1 : k + 2]
    return float(delays[k] + 0.5 * (a - c) / (a - 2.0 * b + c) * (delays[1] - delays[0]))


@pytest.mark.parametrize(
    ("sampling", "low", "high"), [(48e3, 8e3, 18e3), (96e3, 20e3, 30e3), (192e3, 20e3, 30e3), (250e3, 20e3, 30e3)]
)
def test_a_sweep_arrives_within_a_twentieth_of_a_sample(sampling: float, low: float, high: float) -> None:
    for distance in (1500.0, 1500.0 + 0.37 * C / sampling):
        e = Emission(
            at_rest(0.0, 0.0, 50.0),
            at_rest(distance, 0.0, 50.0),
            duration=0.01,
            frequency=0.5 * (low + high),
            band=high - low,
        )
        first = round(sampling) - 100
        p = heard(e, sampling).pressure(first, round(0.015 * sampling)).pressure[0]
        found = first + sampling * delay_of(p, twin.sweep(0.01, e.frequency, e.band), sampling, 100.0 / sampling)
        assert found == pytest.approx(distance / C * sampling, abs=0.05)


@pytest.mark.parametrize(
    ("source", "receiver", "frequency"),
    [
        (at_rest(0, 0, 50), straight((1500, 0, 50), (-2, 0, 0)), 24032.0),
        (straight((0, 0, 50), (2, 0, 0)), at_rest(1500, 0, 50), 24032.0427),
    ],
)
def test_doppler_of_a_tone(source: twin.Motion, receiver: twin.Motion, frequency: float) -> None:
    s = heard(Emission(source, receiver, duration=1.2))
    first = 96000 + 4800
    p = s.pressure(first, 96000).pressure[0]
    t = times(s, first, 96000)
    base = (p * np.exp(-2j * np.pi * 24e3 * t)).reshape(-1, 960).mean(axis=1)
    slope = np.polyfit(t.reshape(-1, 960).mean(axis=1), np.unwrap(np.angle(base)), 1)[0] / (2.0 * np.pi)
    assert 24e3 + slope == pytest.approx(frequency, abs=0.024)


@pytest.mark.parametrize("moving", ["source", "receiver"])
def test_phase_on_a_circle(moving: str) -> None:
    ends = [at_rest(0, 0, 50), at_rest(1500, 0, 50)]
    ends[moving == "receiver"] = circle((1500.0 * (moving == "receiver"), 0, 50), 2.0, 1.0)
    e = Emission(*ends, duration=2.0)
    s = heard(e, 96e3)
    p = s.pressure(98000, 180000).pressure[0]
    t = times(s, 98000, 180000)
    te = t
    for _ in range(8):
        te = t - np.sqrt(((e.receiver.position(t) - e.source.position(te)) ** 2).sum(axis=-1)) / C
    base = (p * np.exp(-2j * np.pi * 24e3 * te)).reshape(-1, 600).mean(axis=1)
    assert abs(np.angle(base)).max() < 0.01


ELEMENTS = ((0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.0, 0.3, 0.1), (-0.2, 0.1, -0.2))


def moving(**options) -> Emission:
    """Signal between two moving ends; the hydrophone turns at 1 rad/s, and the surface reflects."""
    return Emission(
        circle((0.0, 10.0, 30.0), 2.0, 1.0),
        straight((400.0, 50.0, 60.0), (-3.0, 1.0, 0.2), turn=1.0),
        ELEMENTS,
        (Path(), Path(surface=True), Path(phase=0.7)),
        absorption=0.004,
        start=0.0123,
        **options,
    )


@pytest.mark.parametrize("kind", ["tone", "sweep", "steps"])
def test_the_slow_twin(kind: str) -> None:
    e = {
        "tone": lambda: moving(duration=0.25),
        "sweep": lambda: moving(duration=0.25, band=8e3),
        "steps": lambda: moving(duration=0.25, band=4e3, kind=1),
    }[kind]()
    s = heard(e, clock_offset=0.3, clock_drift=2e-5)
    first = s.first_after(0.27)
    p = s.pressure(first, 27000).pressure
    wave = {
        "tone": twin.tone(e.duration, e.frequency),
        "sweep": twin.sweep(e.duration, e.frequency, e.band),
        "steps": twin.steps(e.duration, e.frequency, nominal_wave(e.waveform()[0], s.settings, None).pieces[:, 0]),
    }[kind]
    truth = e.pressure(times(s, first, 27000), wave)
    # amplitudes are linear between fronts, so the error is below -100 dB
    assert np.sqrt(((p - truth) ** 2).mean()) < 1e-5 * np.sqrt((truth**2).mean())


def test_turning_elements_hear_at_the_exact_times() -> None:
    e = moving(duration=0.25)
    e.paths = (Path(),)
    s = heard(e)
    first = s.first_after(0.35)
    p, t = s.pressure(first, 9600).pressure, times(s, first, 9600)
    for row, arm in zip(p, ELEMENTS, strict=True):
        te = t
        r, _ = e.receiver.element(arm, t)
        for _ in range(8):
            te = t - np.sqrt(((r - e.source.position(te)) ** 2).sum(axis=-1)) / C
        base = (row * np.exp(-2j * np.pi * 24e3 * (te - e.start))).reshape(-1, 480) @ np.hanning(480)
        assert abs(np.angle(base)).max() / (2.0 * np.pi * 24e3) < 10e-9


def test_level_in_volts() -> None:
    e = Emission(at_rest(0, 0, 20), at_rest(100, 0, 20), duration=0.5, level=185.0, absorption=0.005)
    made = heard(e, gain=20.0, bits=0).block(9600, 9600)
    assert np.sqrt((made.samples.astype(float) ** 2).mean()) == pytest.approx(0.168, rel=0.0116)  # 0.1 dB
    pulse = Emission(e.source, e.receiver, duration=0.004, level=185.0, absorption=0.005)
    p = heard(pulse, 250e3).pressure(round(100 / C * 250e3) - 50, 1100).pressure[0]
    energy = (p**2).sum() / 250e3
    nominal = 0.004 - 2.0 * 0.05 * 0.004 * 0.2048  # envelope above -20 dB
    assert 10.0 * np.log10(energy / nominal) == pytest.approx(144.5, abs=0.1)


def test_interference_with_the_surface() -> None:
    """Lloyd's mirror at 40 ranges."""
    k = 2.0 * np.pi * 2e3 / C
    for r in np.linspace(20.0, 300.0, 40):
        e = Emission(
            at_rest(0, 0, 5),
            at_rest(r, 0, 12),
            paths=(Path(), Path(surface=True)),
            duration=0.06,
            frequency=2e3,
            band=30.0,
        )
        d1, d2 = math.hypot(r, 7.0), math.hypot(r, 17.0)
        s = heard(e, 24e3)
        p = s.pressure(s.first_after(d2 / C + 0.008), 960).pressure[0]
        truth = e.level + 20.0 * np.log10(abs(np.exp(-1j * k * d1) / d1 - np.exp(-1j * k * d2) / d2))
        scale = 20.0 * np.log10(abs(twin.tone(0.06, 2e3)(np.array([0.03]))[0]) / math.sqrt(2.0))
        assert 10.0 * np.log10((p**2).mean()) - scale == pytest.approx(truth, abs=0.1)


def test_phase_of_bounces_and_caustics() -> None:
    """At the start of a run and after a day, when times have fewer digits."""
    for start in (0.0, 86400.0):
        for phase in (0.0, 0.5 * np.pi, np.pi, -1.1):
            e = Emission(at_rest(0, 0, 20), at_rest(150, 0, 20), paths=(Path(phase=phase),), duration=0.2, start=start)
            s = heard(e)
            first = s.first_after(start + 0.125)
            p, t = s.pressure(first, 9600).pressure[0], times(s, first, 9600)
            found = np.angle((p * np.exp(-2j * np.pi * 24e3 * (t - start - 0.1))).mean() * np.exp(-1j * phase))
            assert abs(np.degrees(found)) < 1.0


def test_samples_are_those_of_the_closed_form() -> None:
    sampling = 96e3
    k = np.arange(24000)
    shape = np.clip(np.minimum(k, 24000 - k) / 960.0, 0.0, 1.0)
    shape = 0.5 - 0.5 * np.cos(np.pi * shape)
    x = 5.0 * shape * np.cos(2.0 * np.pi * 24e3 * k / sampling + 0.3)

    def wave(s: Floats) -> Floats:
        inside = 0.5 - 0.5 * np.cos(np.pi * np.clip(np.minimum(s, 0.25 - s) * sampling / 960.0, 0.0, 1.0))
        return np.asarray(5.0 * inside * np.exp(1j * (2.0 * np.pi * 24e3 * s + 0.3)) / np.sqrt((loud**2).mean()))

    loud = x[np.flatnonzero(abs(x) >= 0.1 * abs(x).max())[0] :]
    loud = loud[: np.flatnonzero(abs(loud) >= 0.1 * abs(x).max())[-1] + 1]
    e = moving(duration=0.25, samples=7, band=2e3)
    s = heard(e)
    s.add_samples(7, x, sampling)
    first = s.first_after(0.27)
    p = s.pressure(first, 27000).pressure
    truth = e.pressure(times(s, first, 27000), wave)
    assert np.sqrt(((p - truth) ** 2).mean()) < 1e-4 * np.sqrt((truth**2).mean())


def test_long_sound_is_filtered_in_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Band, absorption and Hilbert transform are those of the whole sound."""
    x = np.random.default_rng(2).normal(size=30_000)
    spectrum = np.fft.rfft(x)
    spectrum[: 30_000 * 18 // 96] = spectrum[30_000 * 32 // 96 :] = 0.0
    x, row = np.fft.irfft(spectrum), Emission(at_rest(0, 0, 20), at_rest(900, 0, 20)).waveform()[0]
    row["frequency"], row["band"] = 25e3, 14e3
    made = []
    for section in (waveforms.SECTION, 2**13):
        monkeypatch.setattr(waveforms, "SECTION", section)
        monkeypatch.setattr(waveforms, "MARGIN", section // 8)
        wave = waveforms.sampled_wave(x, 96e3, row, HydrophoneSettings(), ainslie_mccolm)
        made.append(np.stack(wave.version(wave.number(2000.0))))
    whole, parts = made
    assert parts.shape == whole.shape == (2, 30_000 + 2 * waveforms.TAPS)
    assert abs(parts - whole).max() < 1e-3 * abs(whole).max(), "with a margin of 1024 samples, a 64th of the usual one"


def test_absorption_is_a_filter() -> None:
    """Levels over 20 to 30 kHz at 2 km, of samples and of a sweep."""
    alpha = ainslie_mccolm(25e3)
    f = np.linspace(20e3, 30e3, 41)
    truth = np.array([-(ainslie_mccolm(x) - alpha) * 2000.0 for x in f])
    e = Emission(at_rest(0, 0, 50), at_rest(2000, 0, 50), duration=0.02, frequency=25e3, band=12e3, absorption=alpha)
    found = []
    for samples in (0, 1):
        e.samples, spectra = samples, []
        for sea in (SeaSettings(), SeaSettings(absorption=ainslie_mccolm)):
            s = heard(e, sea=sea)
            n = np.arange(1920) - 960
            s.add_samples(1, np.sinc(n * 30.0 / 96.0) * np.hanning(1920) * np.cos(np.pi * n * 50.0 / 96.0), 96e3)
            p, t = s.pressure(127800, 2400).pressure[0], np.arange(2400) / 96e3
            spectra.append(np.exp(-2j * np.pi * f[:, np.newaxis] * t) @ p)
        found.append(20.0 * np.log10(abs(spectra[1] / spectra[0])))
    assert found[0] == pytest.approx(truth, abs=0.1)
    assert found[1] == pytest.approx(truth, abs=0.1)


def test_blocks_of_any_size_have_the_same_bits() -> None:
    e = moving(duration=0.25, band=4e3, kind=1)
    other = moving(duration=0.2, signal=2, samples=4)

    def blocks(sizes: list[int]) -> Floats:
        made = heard(e, sea=SeaSettings(key=5, noise=lambda f: 60.0))
        made.add_waveforms(other.waveform())
        made.add_samples(4, np.random.default_rng(1).normal(size=9600), 48e3)
        rows = np.concatenate([other.fronts(), e.fronts()[3:9]])
        made.add_fronts(np.random.default_rng(len(sizes)).permutation(rows))
        first, parts = 24000, []
        for size in sizes:
            parts.append(made.pressure(first, size).pressure)
            first += size
        return np.concatenate(parts, axis=1)

    whole = blocks([49152])
    assert np.array_equal(whole, blocks([4096] * 12))
    assert np.array_equal(whole, blocks([256] * 192))
    assert np.array_equal(whole, blocks([1000] * 49 + [152]))


def test_a_path_that_appears_or_disappears_fades() -> None:
    e = Emission(at_rest(0, 0, 20), at_rest(150, 0, 20), paths=(Path(), Path(phase=1.0)), duration=0.2)
    rows = e.fronts()
    gone = (rows["path"] == 1) & ((rows["number"] < 3) | (rows["number"] > 6))
    alone = Synthesiser(HydrophoneSettings(), SeaSettings())
    alone.add_waveforms(e.waveform())
    alone.add_fronts(rows[(rows["path"] == 1) & ~gone])
    p = alone.pressure(9600, 19200).pressure[0]
    level = np.sqrt((p.reshape(-1, 96) ** 2).mean(axis=1))
    level /= level.max()
    assert not level[:59].any() and not level[131:].any()
    assert level[71:119] == pytest.approx(1.0, abs=1e-3)
    rise = np.sin(0.5 * np.pi * (np.arange(10) + 0.5) / 10.0) ** 2
    assert level[60:70] == pytest.approx(rise, abs=0.02)
    assert level[120:130] == pytest.approx(rise[::-1], abs=0.02)


def test_front_without_a_waveform_is_counted() -> None:
    e = Emission(at_rest(0, 0, 20), at_rest(150, 0, 20))
    s = Synthesiser(HydrophoneSettings(), SeaSettings())
    s.add_fronts(e.fronts())
    assert not s.pressure(9600, 4800).pressure.any()
    assert s.unknown > 0


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.array([1.0, math.nan]), "sample 1 of the sound is not a finite number"),
        (np.zeros(5), "cannot have a level"),
        (np.ones((2, 2)), "their shape is"),
    ],
)
def test_samples_that_are_not_a_waveform(samples: Floats, message: str) -> None:
    with pytest.raises(WaveSimError, match=message):
        Synthesiser(HydrophoneSettings(), SeaSettings()).add_samples(1, samples, 48e3)


def test_fronts_that_miss_an_element_are_forgotten() -> None:
    """The path to an element may not exist, for example over a sloping bed: its time is NaN. Old fronts are forgotten
    all the same, and the other elements lose nothing.
    """
    e = moving(duration=0.25)
    rows = e.fronts()
    rows["times"][:, 2] = rows["rates"][:, 2] = math.nan
    s, whole = Synthesiser(HydrophoneSettings(4), SILENT), heard(e)
    s.add_waveforms(e.waveform())
    s.add_fronts(rows)
    first = s.first_after(0.25)
    for k in range(first, first + 40 * 960, 960):
        p, truth = s.pressure(k, 960).pressure, whole.pressure(k, 960).pressure
        assert np.array_equal(p[[0, 1, 3]], truth[[0, 1, 3]]) and not p[2].any()
    assert len(s._groups[0]._fronts) == 0


def test_a_path_that_misses_the_first_element_fades_at_the_others() -> None:
    e = moving(duration=0.25)
    rows = e.fronts()
    rows = rows[rows["number"] < 6]
    rows["times"][:, 0] = rows["rates"][:, 0] = math.nan
    s = Synthesiser(HydrophoneSettings(4), SILENT)
    s.add_waveforms(e.waveform())
    s.add_fronts(rows)
    p = s.pressure(s.first_after(0.25), 24000).pressure
    assert np.isfinite(p).all() and not p[0].any()
    for k in (1, 2, 3):
        ends = np.nanmax(rows["times"][:, k])
        t = times(s, s.first_after(0.25), 24000)
        assert p[k][(t > ends) & (t < ends + 0.005)].any() and not p[k][t > ends + 0.01].any()


def test_an_element_that_is_closer_hears_more() -> None:
    """Elements 2 m apart, with a source 5 m from the reference point: levels by the distance of each element."""
    places = [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (-2.0, 0.0, 0.0)]
    e = Emission(at_rest(5.0, 0, 10), at_rest(0, 0, 10), places, frequency=5e3)
    for spreading in (20.0, 15.0):
        s = Synthesiser(HydrophoneSettings(3, 48e3), SeaSettings(spreading=spreading))
        s.add_waveforms(e.waveform())
        s.add_fronts(e.fronts())
        x = s.pressure(960, 2400).pressure
        levels = 20.0 * np.log10(abs((x * np.exp(-2j * np.pi * 5e3 * np.arange(2400) / 48e3)).mean(axis=1)))
        expected = -spreading * np.log10(np.array([5.0, 3.0, 7.0]) / 5.0)
        assert levels - levels[0] == pytest.approx(expected, abs=1e-3)
