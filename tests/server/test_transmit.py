"""A program plays its own samples: hydrophones hear them, and to all others they are a signal like any other."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk import front_rings
from wavesim_sdk.errors import ConfigError, InvalidArgument, LogError
from wavesim_sdk.front_rings import FrontReader, FrontRings
from wavesim_sdk.front_tables import FRONT, WAVEFORM, FrontBatch, StoredSound
from wavesim_sdk.sounds import checked_sound, level_of_sound, logged_sound, mean_square, sound_parts
from wavesim_sdk.tables import Outcome, SignalKind
from wavesim_sdk.wav_files import write_wav
from wavesim_sdk.wire.items import SoundPart
from wavesim_server import Lab
from wavesim_server.acoustics import sound_store
from wavesim_server.engine.sound_uploads import SoundUploads
from wavesim_world import data_files
from wavesim_world.config import load_text
from wavesim_world.pinger_sounds import read_sound

RATE, SPEED = 96e3, 1500.0
WORLD = """<wavesim><time step="10 ms"/><world><bed depth="400 m"/></world>
<acoustics sound_speed="1500 m/s" absorption="0 dB/m" ambient_noise="20 dB"/><fleet>
<buoy name="player" model="buoy" position="0 0 0 m"><transducer position="0 0 20 m" listen_low="10 kHz" listen_high="35 kHz" source_level="190 dB" recharge="0.1 s"/></buoy>
<buoy name="other" model="buoy" position="0 450 0 m"><transducer position="0 0 20 m" listen_low="10 kHz" listen_high="35 kHz" source_level="190 dB"/></buoy>
<buoy name="ear" model="buoy" position="1500 0 0 m"><transducer position="0 0 20 m" listen_low="10 kHz" listen_high="35 kHz"/><sensors>
<hydrophone name="ears" sampling="96 kHz" rate="10 Hz" bits="0" ambient="no" position="0 0 20 m"/></sensors></buoy>
</fleet></wavesim>"""


def sweep(low: float = 20e3, high: float = 30e3, duration: float = 0.01, rate: float = RATE) -> np.ndarray:
    """A rising sweep with edges of a tenth of its length."""
    t = np.arange(round(duration * rate)) / rate
    edge = np.clip(np.minimum(t, duration - t) / (0.1 * duration), 0.0, 1.0)
    phase = 2.0 * np.pi * (low * t + 0.5 * (high - low) / duration * t * t)
    return np.asarray(np.sin(0.5 * np.pi * edge) ** 2 * np.sin(phase), np.float32)


def heard(lab: Lab) -> np.ndarray:
    """The pressure of all blocks, from sample 0 on."""
    return np.concatenate([f.pressures[0] for f in lab.take_frames()])


def test_hydrophone_hears_the_samples_at_the_right_time_and_level() -> None:
    lab, x = Lab(WORLD, imaging=True), sweep()
    lab.transmit("player", x, RATE, 180.0, at=100_000_000)
    lab.run(1.3)
    p = heard(lab)
    match = np.abs(np.correlate(p, x, "valid"))
    k = int(match.argmax())
    a, b, c = match[k - 1 : k + 2]
    (sent,), receptions = lab.take_signals()
    straight = float(receptions[receptions["receiver"] == lab.row("ear")]["distance"][0])
    assert k + 0.5 * (a - c) / (a - 2.0 * b + c) == pytest.approx((0.1 + straight / SPEED) * RATE, abs=0.05)
    loud = p[k + 96 : k + 864]
    level = 10.0 * math.log10(float(np.mean(loud**2)) / float(np.mean(x[96:864] ** 2)) * mean_square(x))
    assert level == pytest.approx(180.0 - 20.0 * math.log10(straight), abs=0.05)
    assert not p[: k - 40].any()
    assert (sent["kind"], sent["code"], sent["from_address"]) == (SignalKind.SOUND, 0, 0)
    assert sent["duration"] == pytest.approx(0.01) and sent["emission_ns"] == 100_000_000
    assert sent["frequency"] == pytest.approx(25e3, abs=200.0) and sent["source_level"] == 180.0
    assert (receptions["outcome"] == Outcome.FOREIGN).all() and len(receptions) == 2


def test_sound_interferes_and_occupies_its_transducer() -> None:
    """The ping of another node is lost where it meets the sound, and at the transducer that plays."""
    outcomes = []
    for plays in (False, True):
        lab = Lab(WORLD)
        if plays:
            lab.transmit("player", sweep(duration=0.8), RATE, 190.0)
        lab.ping(lab.row("other"), 25e3, at=50_000_000)
        if plays:  # still playing, and then recharging
            lab.transmit("player", sweep(), RATE, 180.0, at=850_000_000)
        lab.run(1.5)
        sent, r = lab.take_signals()
        pings = r[r["kind"] == SignalKind.PULSE]
        outcomes.append([int(pings[pings["receiver"] == lab.row(n)]["outcome"][0]) for n in ("player", "ear")])
    assert outcomes[0] == [Outcome.HEARD, Outcome.HEARD]
    assert outcomes[1] == [Outcome.TRANSMITTING, Outcome.COLLISION]
    assert sent["outcome"].tolist() == [Outcome.HEARD, Outcome.HEARD, Outcome.NOT_SENT]
    assert not lab.channel._sounds.planned


BAD: list[tuple[dict[str, Any], str]] = [
    ({"samples": [0.1, math.nan] * 100}, "sample 1 of the sound is not a finite number"),
    ({"samples": np.ones(100) * 1e300}, "sample 0 of the sound is not a finite number"),
    ({"samples": []}, "the sound is empty"),
    ({"samples": np.zeros(100)}, "all samples of the sound are 0"),
    ({"samples": np.ones((2, 100))}, r"one channel, a sequence of numbers; their shape is \(2, 100\)"),
    ({"samples": ["a"]}, "must be real numbers"),
    ({"samples": np.ones(100) * 1j}, "must be real numbers"),
    ({"samples": np.ones(480_001), "sampling_rate": 8e3}, r"lasts 60\.000 s; the maximum is 60 s"),
    ({"samples": np.ones(2**23 + 1), "sampling_rate": 250e3}, "the maximum is 8388608, which is 33.6 s"),
    ({"samples": np.ones(5)}, "the minimum is 0.1 ms"),
    ({"sampling_rate": 10.0}, "sampling_rate 10 Hz is out of range"),
    ({"sampling_rate": math.nan}, "sampling_rate must be a finite number"),
    ({"sampling_rate": 62e3, "samples": sweep(20e3, 30e3, rate=62e3)}, r"use a sampling rate of at least 7\d{4} Hz"),
    ({"samples": sweep(5e3, 15e3)}, r"occupies 5\d\d\d to 14\d\d\d Hz; the transducer's band is 10000 to 35000 Hz"),
    ({"level": 191.0}, "level 191 dB is above the transducer's source level, which is 190 dB"),
    ({"scale": "loud"}, "scale must be 'rms' or 'peak'"),
    ({"scale": "peak", "samples": 2.0 * sweep()}, r"between -1 and 1; sample \d+ is"),
    ({"at": 4_000_000_000_000}, "at most one hour ahead"),
    ({"body": "nobody"}, "unknown body 'nobody'"),
]


@pytest.fixture(scope="module")
def quiet() -> Lab:
    return Lab(WORLD)


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_refusals(quiet: Lab, wrong: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {"body": "player", "samples": sweep(), "sampling_rate": RATE, "level": 180.0}
    with pytest.raises(InvalidArgument, match=f"(?i){message}"):
        quiet.transmit(**right | wrong)
    assert not quiet.channel._sounds.sounds, "a refused sound takes no room"


def test_body_without_a_transducer_is_refused() -> None:
    lab = Lab('<wavesim><fleet><vehicle name="uav" model="aerosonde" position="0 0 -100 m"/></fleet></wavesim>')
    with pytest.raises(InvalidArgument, match="'uav' has no transducer"):
        lab.transmit("uav", sweep(), RATE)


def test_full_store_refuses_until_the_oldest_sound_has_been_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_store, "MAX_SAMPLES", 2000)
    lab = Lab(WORLD, imaging=True)
    lab.transmit("player", sweep(), RATE, 180.0)
    lab.transmit("other", sweep(), RATE, 180.0)
    with pytest.raises(ValueError, match="no room for a sound of 960 samples: 2 sounds with 1920 samples are planned"):
        lab.transmit("player", sweep(), RATE, 180.0, at=500_000_000)
    lab.run(1.5)
    with pytest.raises(ValueError, match="no room"):
        lab.transmit("player", sweep(), RATE, 180.0)
    lab.run(3.0)
    lab.ping(lab.row("other"), 25e3)  # its fronts are newer than those of the sounds by more than two seconds
    lab.run(1.5)
    lab.transmit("player", sweep(), RATE, 180.0)
    assert [s.offset for s in lab.channel._sounds.sounds.values()] == [0]


def test_return_to_a_snapshot_repeats_the_samples() -> None:
    lab = Lab(WORLD, imaging=True)
    lab.transmit("player", sweep(duration=0.4), RATE, 180.0)
    lab.transmit("player", sweep(24e3, 26e3, 0.1), RATE, 185.0, at=700_000_000)
    lab.run(0.2)
    before = lab.snapshot()
    lab.take_frames()
    lab.run(1.8)
    first = heard(lab)
    lab.restore(before)
    lab.run(1.8)
    again = heard(lab)
    assert np.count_nonzero(first) > 40_000 and again.tobytes() == first.tobytes()


def test_peak_scale_keeps_the_loudness_of_the_samples() -> None:
    tone = np.sin(2.0 * np.pi * 0.25 * np.arange(4000) + 0.4)
    padded = np.concatenate([np.zeros(500), tone, np.zeros(3000)]).astype(np.float32)
    assert mean_square(padded) == pytest.approx(0.5, abs=1e-3), "silence around a sound is not a part of it"
    assert level_of_sound(padded, 180.0, "rms") == 180.0
    assert level_of_sound(padded, 180.0, "peak") == pytest.approx(180.0, abs=0.01)
    assert level_of_sound(0.1 * padded, 180.0, "peak") == pytest.approx(160.0, abs=0.01)


def test_pinger_plays_a_file(tmp_path: Path) -> None:
    x = sweep(8e3, 12e3, 0.02, 48e3)
    write_wav(tmp_path / "call.wav", 0.5 * x, 48_000, 24)
    text = WORLD.replace("/></buoy>\n<buoy name=\"other\"", '><pinger waveform="call.wav" period="0.5 s" offset="0.1 s"/></transducer></buoy>\n<buoy name="other"', 1)  # fmt: skip
    lab = Lab(text, folder=tmp_path, imaging=True)
    lab.run(2.0)
    p = heard(lab)
    sent, receptions = lab.take_signals()
    assert sent["kind"].tolist() == [SignalKind.PULSE] * 4
    assert sent["frequency"] == pytest.approx(10e3, abs=100.0) and sent["duration"] == pytest.approx(0.02)
    fine = np.zeros(2 * len(x))
    fine[::2] = x
    spectrum = np.fft.rfft(fine)
    spectrum[len(x) // 2 + 1 :] = 0.0  # the same sound at 96 kHz
    match = np.abs(np.correlate(p, np.fft.irfft(spectrum), "valid"))
    at = 0.001 * float(np.mean(receptions[receptions["receiver"] == lab.row("ear")]["distance"])) / 1.5
    for ping in (0.1, 0.6):
        first = round((ping + at) * RATE) - 1000
        assert first + int(match[first : first + 2000].argmax()) == pytest.approx((ping + at) * RATE, abs=3.0)


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (sweep(8e3, 22e3, 0.02, 48e3), 48_000, "use a sampling rate of at least"),
        (np.zeros(100), 48_000, "all samples of the sound are 0"),
        (np.ones((100, 2)), 48_000, "the file has 2 channels; the sound of a pinger has one"),
        (np.ones(61 * 8000), 8000, "lasts 61 s; the maximum is 60 s"),
    ],
)
def test_invalid_files_of_pingers(tmp_path: Path, samples: np.ndarray, rate: int, message: str) -> None:
    write_wav(tmp_path / "bad.wav", samples, rate)
    with pytest.raises(ConfigError, match=f"(?i){message}") as raised:
        read_sound(tmp_path / "bad.wav")
    assert raised.value.file == str(tmp_path / "bad.wav")


@pytest.mark.parametrize(
    ("pinger", "message"),
    [
        ('<pinger period="1 s"/>', "needs either `frequency` or `waveform`"),
        ('<pinger period="1 s" frequency="10 kHz" waveform="a.wav"/>', "needs either `frequency` or `waveform`"),
        ('<pinger period="1 s" waveform="missing.wav"/>', "cannot read the sound of a pinger: No such file"),
        ('<pinger period="1 s" waveform="../a.wav"/>', "is outside the folder of the configuration"),
    ],
)
def test_invalid_pingers(tmp_path: Path, pinger: str, message: str) -> None:
    text = f'<wavesim><fleet><buoy name="b" model="buoy" position="0 0 0 m"><transducer>{pinger}</transducer></buoy></fleet></wavesim>'
    with pytest.raises(ConfigError, match=message):
        data_files.check(load_text(text, tmp_path))


# ------------------------------------------------------------------ on the way


def test_parts_become_a_sound_again() -> None:
    uploads, x = SoundUploads(), checked_sound(np.random.default_rng(3).normal(size=1000), 48e3)[0]
    session, other = 7 << 32, 8 << 32
    parts = list(sound_parts(4, x))
    assert len(parts) == 4
    for k, part in enumerate(parts):
        uploads.add(3, session + k, part)
        uploads.add(3, session + k, SoundPart(5, part.first, part.count, part.data))  # two at a time
        if k < 2:
            uploads.add(3, other + k, part)
    for sound in (4, 5):
        assert uploads.take(3, session + 9, sound).tobytes() == x.tobytes()
    with pytest.raises(ValueError, match="sound 4 has no samples: send SOUND_PART before TRANSMIT"):
        uploads.take(3, session + 10, 4)
    with pytest.raises(ValueError, match="the sound is incomplete: 560 of 1000 samples"):
        uploads.take(3, other + 9, 4)
    uploads.add(3, session, parts[1])  # without the first one
    uploads.add(3, other, SoundPart(5, 0, 3, bytes(16)))  # more than it says
    uploads.add(3, other, SoundPart(5, 0, 3, bytes(5)))
    for tag in (session, other):
        with pytest.raises(ValueError, match=r"sound 5 has no samples|incomplete: 0 of 3"):
            uploads.take(3, tag, 5)
    uploads.add(4, session, parts[0])
    uploads.remove_body(4)
    assert not uploads._sounds and not uploads._bytes


@pytest.fixture
def rings() -> Any:
    name = f"sounds-{os.getpid()}"
    yield FrontRings.create(name, 1)
    front_rings.SEGMENT.remove(name)


def played(number: int, slot: int, offset: int, count: int) -> FrontBatch:
    """A batch with one sound and a waveform that refers to it."""
    waveform = np.zeros(1, WAVEFORM.dtype)
    waveform["signal"], waveform["samples"] = 10 * number, number
    sound = StoredSound(number, slot, offset, 48e3, np.full(count, float(number), np.float32))
    return FrontBatch(waveform, np.zeros(0, FRONT.dtype), 0, sounds=(sound,))


def test_sounds_in_shared_memory(rings: FrontRings) -> None:
    reader, late = FrontReader(rings), FrontReader(rings)
    reader.take()
    rings.write(played(1, 0, 0, 100))
    rings.write(played(2, 1, 100, 50))
    one, two = reader.take().sounds
    assert (one.number, one.sampling, one.samples.tolist()) == (1, 48e3, [1.0] * 100)
    assert (two.number, two.samples.tolist()) == (2, [2.0] * 50)
    rings.write(played(3, 2, 50, 60))  # takes the place of both, which can no longer be heard
    assert [s.number for s in reader.take().sounds] == [3]
    assert [s.number for s in late.take().sounds] == [3] and late.lost == 0, (
        "the first batch loses nothing by definition"
    )
    slow = FrontReader(rings)
    slow.take()
    rings.write(played(4, 0, 200, 10))
    rings.write(played(5, 0, 200, 10))
    assert [s.number for s in slow.take().sounds] == [5] and slow.lost == 1


def test_logged_sound() -> None:
    with pytest.raises(LogError, match="does not contain a sound"):
        logged_sound({"samples": "?", "sampling_rate": 1.0})
