"""The <replay> element and the files of measured channels: what they mean, and one message for each mistake."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulators.channel_files import write_channel
from tests.examples.pages import page_blocks
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import MissingPackage
from wavesim_world import data_files
from wavesim_world.config import LoadedConfig, load_text
from wavesim_world.ocean.measured_channels import read_channel

pytest.importorskip("h5py", reason="needs h5py: make")

SEA = """<wavesim><acoustics><replay {keys}/>{more}</acoustics><fleet>
<vehicle name="auv" model="lauv" position="0 0 5 m"><sensors><hydrophone name="ears"><element position="0 0 0 m"/><element position="1 0 0 m"/></hydrophone></sensors></vehicle>
<buoy name="pinger" model="buoy" position="30 0 5 m"><transducer pulse="{pulse}"><pinger frequency="12 kHz" period="1 s"/></transducer></buoy>
<vehicle name="silent" model="boat" position="60 0 0 m"/></fleet></wavesim>"""
KEYS = 'from="pinger" to="auv" file="c.mat"'


def loaded(folder: Path, keys: str = KEYS, more: str = "", pulse: str = "10 ms") -> LoadedConfig:
    found = load_text(SEA.format(keys=keys, more=more, pulse=pulse), folder)
    data_files.check(found)
    return found


def channel_file(folder: Path, **changes: Any) -> Path:
    h = np.zeros((41, 2, 16), complex)
    h[:, :, 4] = 1.0
    return write_channel(
        folder / "c.mat", **{"response": h, "delay_rate": 8e3, "time_rate": 20.0, "carrier": 12e3} | changes
    )


def test_a_replay(tmp_path: Path) -> None:
    channel_file(tmp_path)
    (r,) = loaded(
        tmp_path, f'{KEYS.replace("auv", "auv.ears")} start="0.5 s" level="file" receivers="2 1"'
    ).config.acoustics.replay
    assert (r.source, r.receiver, r.start, r.level, r.receivers) == ("pinger", "auv.ears", 0.5, "file", (2.0, 1.0))
    (r,) = loaded(tmp_path).config.acoustics.replay
    assert (r.start, r.level, r.receivers) == ("drawn", "medium", (1.0,))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('from="pingr" to="auv" file="c.mat"', "there is no body 'pingr'; did you mean 'pinger'"),
        ('from="pinger" to="avu.ears" file="c.mat"', "there is no body 'avu'"),
        ('from="pinger" to="auv.eyes" file="c.mat"', "there is no hydrophone 'auv.eyes'"),
        ('from="pinger" to="silent" file="c.mat"', "there is no hydrophone 'silent'"),
        ('from="silent" to="auv" file="c.mat"', "'silent' has no transducer, so it transmits nothing"),
        ('from="auv" to="auv" file="c.mat"', "'auv' cannot hear itself"),
        ('from="pinger" to="auv" file="d.mat"', "file 'd.mat' does not exist"),
        (f'{KEYS} receivers="1 2 3"', "`receivers` has 3 numbers, but the hydrophone 'ears' has 2 elements"),
        (f'{KEYS} receivers="1.5"', "must be 1 to 8 whole numbers"),
        (f'{KEYS} receivers="1 3"', "there is no receiver 3; the file has 2, numbered from 1"),
        (f'{KEYS} start="-1 s"', "below the minimum"),
        (
            f'{KEYS} start="1.99 s"',
            "a signal of 0.01 s that starts at 1.99 s, with its echoes of 0.002 s, is longer than",
        ),
    ],
)
def test_a_mistake_in_the_configuration_gives_one_message(tmp_path: Path, keys: str, message: str) -> None:
    channel_file(tmp_path)
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, keys)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_two_replays_of_a_pair(tmp_path: Path) -> None:
    channel_file(tmp_path)
    with pytest.raises(ConfigError, match=r"two replays lead from 'pinger' to 'auv\.ears'"):
        loaded(tmp_path, more=f"<replay {KEYS.replace('auv', 'auv.ears')}/>")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"carrier": 20e3}, "11900 to 12100 Hz, is not within that of the measured channel, 16000 to 24000 Hz"),
        ({"carrier": 3e3}, "the band extends below 0 Hz"),
        ({"response": np.ones((3, 1, 4))}, "has 3 impulse responses; the minimum is 4"),
        ({"response": np.zeros((9, 1, 4))}, "all values of `h_hat` are 0"),
        ({"response": np.full((9, 1, 4), np.nan)}, "`h_hat` has a value that is not finite"),
        ({"time_rate": 0.0}, "`params.fs_time` is 0 Hz; it must be positive"),
        ({"phi_hat": np.zeros((100, 2))}, "`phi_hat` is shorter than the impulse responses"),
        ({"theta_hat": np.zeros((16000, 1))}, "for 2 receivers"),
        ({"f_resamp": 2.0}, "`f_resamp` is 2; it must be within 0.1 of 1"),
        ({"version": 0.9}, "the version of the measured channel is below 1.0"),
    ],
)
def test_a_file_that_cannot_be_used_gives_one_message(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    channel_file(tmp_path, **changes)
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import h5py

    path = channel_file(tmp_path)
    with h5py.File(path, "a") as file:
        del file["params/fc"]
    with pytest.raises(ConfigError, match=r"the measured channel has no `params\.fc`"):
        read_channel(path)
    path.write_bytes(b"MATLAB 5.0 MAT-file" + bytes(600))
    with pytest.raises(ConfigError, match=r"not an HDF5 file; save it in MATLAB with `-v7.3`"):
        read_channel(path)
    whole = channel_file(tmp_path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match="cannot read the measured channel"):
        read_channel(path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"pip install 'wavesim\[channels\]'"):
        read_channel(path)


def test_the_first_arrival(tmp_path: Path) -> None:
    """The first peak within 10 dB of the highest one; a weaker precursor is not an arrival."""
    h = np.zeros((9, 1, 16), complex)
    h[:, 0, [2, 5, 6, 9]] = 0.2, 0.5, 0.4, 1.0
    channel = read_channel(channel_file(tmp_path, response=h))
    assert channel.first_arrival == 5
    assert channel.mean_power == pytest.approx(0.04 + 0.25 + 0.16 + 1.0)
    assert (channel.duration, channel.spread) == (0.4, 0.002)


def test_the_program_of_the_page(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = [b for b in page_blocks(root, "docs/hydrophones.md") if b.text.startswith("import h5py")]
    monkeypatch.chdir(tmp_path)
    exec(compile(program.text, "hydrophones.md", "exec"), {})
    channel = read_channel(tmp_path / "echo.mat")
    assert channel.first_arrival == 20 and channel.mean_power == pytest.approx(1.25)
    assert not channel.refusal(30e3, 200.0, 0.01, None) and channel.duration == pytest.approx(29.95)
