"""The modems in software of examples/onboard: through synthetic channels, and in the trial in which two vehicles exchange
messages by sound alone.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.conftest import run_trial
from wavesim_sdk.log import read
from wavesim_sdk.tables import SENT, SignalKind

ON_BOARD = Path(__file__).parents[2] / "examples" / "onboard"
RATE = 96_000
PATHS = {"one": ((0.0, 1.0),), "three": ((0.0, 1.0), (3e-3, -0.7), (7e-3, 0.5))}


@pytest.fixture
def soundmodem(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ON_BOARD))
    import soundmodem

    return soundmodem


def _heard(sent: np.ndarray, speed: float, paths: tuple[tuple[float, float], ...], snr: float) -> np.ndarray:
    """The samples after a channel, with noise over the whole band; ``snr`` (dB) is that of the first path in 8 kHz."""
    spectrum = np.fft.rfft(np.concatenate([sent, np.zeros(4096)]))
    fine = np.fft.irfft(spectrum, 16 * (len(sent) + 4096)) * 16
    t = np.arange(round(len(sent) / (1 + speed / 1500)) + 80_000)
    sound = np.zeros(len(t))
    for delay, amplitude in paths:
        at = (t - 20_000 - delay * RATE) * (1 + speed / 1500) * 16
        sound += amplitude * np.interp(at, np.arange(len(fine)), fine, left=0, right=0)
    power = np.mean(sent[-4000:-1000] ** 2)
    noise = math.sqrt(power * RATE / 2 / 8000 / 10 ** (snr / 10))
    return np.asarray(sound + noise * np.random.default_rng(round(10 * speed) + 100).standard_normal(len(t)))


def _received(modem: object, sound: np.ndarray, first: int = 0) -> list:
    found = []
    for start in range(0, len(sound), 9600):
        found += modem.push(sound[start : start + 9600], first + start)  # type: ignore[attr-defined]
    return found + modem.push(np.zeros(4 * RATE), first + len(sound))  # type: ignore[attr-defined]


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("speed", [0.0, 2.0, -4.5])
def test_ofdm_survives_echoes_noise_and_motion(soundmodem: ModuleType, paths: str, speed: float) -> None:
    modem = soundmodem.Ofdm()
    payload = b"the depth is 17.3 m and I turn north"
    sound = _heard(modem.samples(payload, 3, 7), speed, PATHS[paths], 10.0)
    (packet,) = _received(modem, sound, 1000)
    assert (packet.sender, packet.to, packet.payload) == (3, 7, payload)
    assert packet.speed == pytest.approx(speed, abs=0.15)
    assert packet.time == pytest.approx(21_000 / RATE, abs=0.5e-3)


def test_ofdm_payloads_of_all_lengths(soundmodem: ModuleType) -> None:
    ofdm = soundmodem.ofdm_modem
    parts, payloads = [np.zeros(1000)], [bytes(range(n)) for n in (0, 1, 18, 64)]
    for number, payload in enumerate(payloads):
        parts += [ofdm.packet(payload, sender=1, to=2, number=number), np.zeros(9600)]
    receiver = ofdm.OfdmReceiver()
    found = receiver.push(np.concatenate(parts)) + receiver.finish()
    assert [(h.number, h.payload) for h in found] == list(enumerate(payloads))
    with pytest.raises(ValueError, match="at most 64 bytes"):
        ofdm.packet(bytes(65), sender=1, to=2)


def test_noise_alone_damage_and_a_gap(soundmodem: ModuleType) -> None:
    ofdm = soundmodem.ofdm_modem
    rng = np.random.default_rng(2)
    assert ofdm.OfdmReceiver().push(rng.standard_normal(20 * RATE)) == []
    sent = ofdm.packet(b"sixteen bytes ok", sender=1, to=2)
    damaged = sent.copy()
    damaged[-2 * (ofdm.SIZE + ofdm.PREFIX) :] = rng.standard_normal(2 * (ofdm.SIZE + ofdm.PREFIX))
    receiver = ofdm.OfdmReceiver()
    (heard,) = receiver.push(np.concatenate([np.zeros(1000), damaged, np.zeros(ofdm.WINDOW)]))
    assert heard.payload is None, "the header is right, and the check sum of the payload is wrong"
    receiver = ofdm.OfdmReceiver()
    receiver.push(sent[:15_000], 0)
    assert receiver.push(np.concatenate([sent[16_000:], np.zeros(ofdm.WINDOW)]), 16_000) == []


def test_janus_packets_have_an_address_and_a_check_sum(soundmodem: ModuleType) -> None:
    modem = soundmodem.Janus()
    sent = modem.samples(b"\x01hello", 200, 7)
    lead = np.zeros(30_000)
    (packet,) = _received(modem, np.concatenate([lead, sent]), 5000)
    assert (packet.sender, packet.to, packet.payload) == (200, 7, b"\x01hello")
    assert packet.time == pytest.approx((35_000 / RATE) + 5 / 160, abs=1e-3)
    wrong = sent.copy()
    wrong[-RATE:] = 0.0
    assert _received(soundmodem.Janus(), np.concatenate([lead, wrong])) == [], "the cargo is damaged"


@pytest.mark.long
@pytest.mark.system
@pytest.mark.xdist_group("trials")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("modem", ["ofdm", "janus"])
def test_two_vehicles_talk_by_sound_alone(root: Path, tmp_path: Path, modem: str) -> None:
    name = f"sound{modem}{os.getpid()}"
    text = (root / "examples/trials/sound-modem.xml").read_text()
    text = text.replace("../onboard/soundmodem.py", str(ON_BOARD / "soundmodem.py"))
    if modem == "janus":
        text = text.replace("--address", "--modem janus --address").replace("--period 4", "--period 11")
    config = tmp_path / "config.xml"
    config.write_text(text)
    done = run_trial(config, tmp_path, name, "--files", str(root / "examples"), timeout=280)
    assert done.returncode == 0, done.stderr
    out = done.stdout + done.stderr
    for path in (tmp_path / name).glob("*.txt"):
        out += path.read_text()
    sent, answered, _ = map(int, re.search(r"alpha: (\d+) sent, (\d+) answered, (\d+) heard", out).groups())  # type: ignore[union-attr]
    assert answered >= sent - 1 >= 1, "the last message may be too late for an answer"
    speeds = [float(s) for s in re.findall(r"message \d+ at \S+ s, (\S+) m/s", out)]
    assert all(0.2 < speed < 2.0 for speed in speeds), "alpha approaches"
    log = read(tmp_path / name / "run.mcap")
    assert set(log.get("/acoustics/sent", SENT).records["kind"]) == {int(SignalKind.SOUND)}, "nothing else is sent"
