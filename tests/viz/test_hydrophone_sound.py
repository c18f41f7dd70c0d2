"""Sound of a hydrophone on the page: packed for it, its spectrogram, and playback."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.sea import READY, Opener, colours
from tests.viz.test_sonar_pictures import WINDOW
from wavesim_emulators.hydrophone.emulator import describe
from wavesim_sdk.imaging_frames import ImagingFrame, sample_type
from wavesim_sdk.tables import STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz.image_streams import picture
from wavesim_world.config import LoadedConfig
from wavesim_world.config.hydrophone import HydrophoneArrayConfig, HydrophoneElement

RATE, COUNT, TONE, OTHER_TONE, LEVEL = 48_000.0, 4800, 12e3, 18e3, 130.0
WORLD = """<fleet><vehicle name="rov" model="bluerov2-heavy" position="0 0 5 m"><sensors>
<hydrophone name="ears" sampling="48 kHz" log="1"><element position="0 0 0 m"/><element position="0 0.1 0 m"/></hydrophone>
</sensors></vehicle></fleet>"""


def block(number: int, bits: int = 16, channels: int = 1) -> ImagingFrame:
    """Noise, and 20 ms of a tone of 130 dB in every block; the second channel has the tone at 18 kHz, 20 dB weaker."""
    two = tuple(HydrophoneElement(position=(0.0, 0.1 * k, 0.0)) for k in range(channels))
    record = describe(HydrophoneArrayConfig(sampling=RATE, bits=bits, element=two), b"rov", b"ears", 1)
    first = (number - 1) * COUNT
    k = np.arange(first, first + COUNT)
    volts = 1e-5 * np.random.default_rng(number).normal(size=COUNT)
    amplitude = np.sqrt(2.0) * 10.0 ** (0.05 * (LEVEL - 180.0))
    samples = np.zeros((channels, COUNT), sample_type(bits))
    for channel in range(channels):
        size, tone = (amplitude, TONE) if channel == 0 else (0.1 * amplitude, OTHER_TONE)
        heard = volts + np.where(k % COUNT < 960, size * np.sin(2.0 * np.pi * tone * k / RATE), 0.0)
        scaled = heard * ((1 << (bits - 1)) if bits else 1.0)
        samples[channel] = np.rint(scaled) if bits else scaled
    record["number"], record["bins"], record["bytes"] = number, COUNT, samples.nbytes
    record["ping_ns"], record["time_ns"] = round(first * 1e9 / RATE), number * 100_000_000 + 30_000_000
    return ImagingFrame(record, samples.tobytes())


@pytest.mark.parametrize("bits", [0, 12, 16, 24])
@pytest.mark.parametrize("channel", [0, 1])
def test_one_channel_is_packed_in_16_bits(bits: int, channel: int) -> None:
    frame = block(3, bits, channels=2)
    packed = picture(4, frame, 1, channel)
    (length,) = struct.unpack_from("<I", packed, 4)
    head, sound = json.loads(packed[8 : 8 + length]), np.frombuffer(packed[8 + length :], "<i2")
    assert (head["kind"], head["beams"], head["bins"], head["frequency"]) == ("hydrophone", 1, COUNT, RATE)
    assert head["time"] == pytest.approx(0.3), "the end of the block on the hydrophone's clock"
    assert (head["channel"], head["channels"]) == (channel, 2)
    assert sound / 32768 == pytest.approx(np.asarray(frame.voltages)[channel], abs=1.01 / 65536)


@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(200)
def test_a_spectrogram_of_a_log(
    config: Callable[..., LoadedConfig], view: Any, open_page: Opener, tmp_path: Path
) -> None:
    """The tone is at 12 kHz with its level, and it is there for 20 ms of every block; the sound can be played."""
    loaded = config(WORLD)
    log = LogWriter(tmp_path / "run.mcap", loaded, 1)
    state = np.zeros(1, STATE.dtype)
    state["q_WB"][:, 0] = 1.0
    log.body(0, 0, "rov", "bluerov2-heavy", "underwater", True)
    for n in range(1, 221):
        log.record("/state/rov", STATE, n * 100_000_000, state.tobytes())
        log.frame(block(n, channels=2))
    log.close()
    page = open_page(view(tmp_path / "run.mcap").url)
    page.wait(f"{READY} === 1")
    page.see("wavesim.link.control('pause')")
    page.see("wavesim.sonars.toggle(0, 'rov', 'ears')")
    page.see("wavesim.link.control('seek', 1e9)")
    painter = f"{WINDOW.format('ears')}.painter"
    page.wait(f"{painter} && {painter}.count > 400", 60.0)
    rows, columns = 256, np.array(page.see(f"[...{painter}.columns.subarray(0, {painter}.count * 256)]"))
    image = columns.reshape(-1, rows) / 1.5
    loud = image.max(axis=1) > 90.0
    assert 0.15 < loud.mean() < 0.3, "20 ms and the length of a spectrum, of 100 ms"
    strongest = image[image.max(axis=1) > image.max() - 1.0]
    assert (np.argmax(strongest, axis=1) * RATE / 512 == TONE).all()
    steady = LEVEL - 10.0 * np.log10(1.5 * RATE / 512)  # of a tone through a Hann window
    assert image.max() == pytest.approx(steady, abs=1.0)
    assert colours(page, ".window.sonars[data-sonar='ears'] canvas") > 40
    page.shot("hydrophone")
    window = ".window.sonars[data-sonar='ears']"
    page.page.click(f"{window} button.axes")
    # more points of a spectrum: the tone is in its place of the longer spectrum
    page.page.select_option(f"{window} select.points", "2048")
    page.wait(f"{painter}.rows === 1024 && {painter}.count > 100")
    longer = np.array(page.see(f"[...{painter}.columns.subarray(0, {painter}.count * 1024)]")).reshape(-1, 1024)
    assert np.argmax(longer.max(axis=0)) * RATE / 2048 == TONE
    # a longer time: what the viewer keeps of the log fills it
    page.page.select_option(f"{window} select.points", "512")
    page.page.select_option(f"{window} select.span", "20")
    page.see("wavesim.link.control('seek', 1)")
    page.wait(f"{painter}.count < 200")  # the viewer has read the log at this time
    page.see("wavesim.link.control('seek', 1e9)")
    page.wait(f"{painter}.count > 1600", 60.0)
    assert page.see(f"{painter}.merged") == 2, "3750 spectra are averaged in pairs"
    # the other channel
    page.page.select_option(f"{window} select.channel", "1")
    page.wait(f"{painter}.count > 1600", 60.0)
    other = np.array(page.see(f"[...{painter}.columns.subarray(0, {painter}.count * 256)]")).reshape(-1, 256) / 1.5
    assert np.argmax(other.max(axis=0)) * RATE / 512 == OTHER_TONE
    assert other.max() == pytest.approx(steady - 20.0, abs=1.0)
    # the frequency axis: what is at a height changes with its limits and its scale
    below = f"(() => {{ const p = {painter}; return p.describeSample(p.size[0] - 2, p.size[1] / 2) }})()"
    assert page.see(below).startswith("12.00 kHz")
    page.page.fill(f"{window} input.low", "16")
    page.page.fill(f"{window} input.high", "20")
    page.page.keyboard.press("Tab")
    page.wait(f"{below}.startsWith('18.00 kHz')")
    page.shot("hydrophone-band")
    fits = f"(() => {{ const b = document.querySelector({window!r}); return b.scrollLeft === 0 && b.scrollWidth <= b.clientWidth }})()"
    assert page.see(fits), "the controls stay inside of the window"
    page.page.fill(f"{window} input.low", "")
    page.page.fill(f"{window} input.high", "")
    page.page.click(f"{window} button.log")
    page.wait(f"{below}.startsWith('{24 / 32**0.5:.2f} kHz')")
    page.shot("hydrophone-logarithmic")
    page.page.click(".window.sonars[data-sonar='ears'] button.listen")
    page.wait(f"{painter}.playing !== null")
    page.page.click(".window.sonars[data-sonar='ears'] button.listen")
    page.wait(f"{painter}.playing === null")
    page.clean()
