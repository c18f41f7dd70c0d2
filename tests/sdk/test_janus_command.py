"""``wavesim janus``: sound to text and back, and one clear message for each kind of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from wavesim_sdk.cli import cli, load_commands
from wavesim_sdk.wav_files import WavFile, write_wav


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load_commands()


def _run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["janus", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_message_returns_with_its_time_and_station() -> None:
    assert (
        "2.063 s at 44100 Hz: packet"
        in _run("encode", "käme 1!", "a.wav", "--station", "7", "--sampling", "44.1kHz").output
    )
    text = _run("decode", "a.wav").output
    assert text.startswith("    0.0313 s  +0.00 m/s  Ec/N0 2") and text.endswith(
        ' class 16 type 0 data 1c0004  "käme 1!"\n'
    )
    (line,) = _run("decode", "a.wav", "--json").output.splitlines()
    values = json.loads(line)
    assert bytes.fromhex(values["cargo"]).rstrip(b"\0").decode() == "käme 1!"
    assert values["start"] == pytest.approx(0.03125, abs=1e-4)


def test_the_test_vector_and_the_fields_of_a_packet_without_cargo() -> None:
    assert "1.163 s at 48000 Hz: packet 3210000000000055, cargo 0 bytes" in _run("encode", "", "a.wav").output
    options = ("--class", "3", "--application", "9", "--data", "3ffffffe1", "--mobile", "--wake-up", "--bits", "24")
    _run("encode", "", "a.wav", *options, "--centre", "28kHz", "--bandwidth", "8320", "--sampling", "96kHz")
    text = _run("decode", "a.wav", "--centre", "28kHz", "--bandwidth", "8320").output
    assert "class 3 type 9 data 3ffffffe1" in text


def test_an_argument_that_is_not_text_keeps_its_bytes() -> None:
    _run("encode", b"\xff\xe4".decode("utf-8", "surrogateescape"), "a.wav")
    assert _run("decode", "a.wav").output.endswith("ffe4\n")


def test_bytes_in_hexadecimal_from_one_channel_of_a_file() -> None:
    _run("encode", "00ff10", "a.wav", "--hex", "--bits", "32")
    with WavFile(Path("a.wav")) as file:
        (samples,) = file.blocks(10**6)
    noise = 0.01 * np.random.default_rng(1).standard_normal(len(samples))
    write_wav(Path("b.wav"), np.stack([noise, 0.5 * samples[:, 0] + noise], axis=1), 48_000)
    assert "00ff1000" in _run("decode", "b.wav", "--channel", "2").output
    assert "no JANUS packet found in 1.663 s of sound" in _run("decode", "b.wav", code=20).output
    assert "has 2 channels, got --channel 3" in _run("decode", "b.wav", "--channel", "3", code=2).output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["encode", "x" * 481, "a.wav"], "the message has 481 bytes, and JANUS cargo of class 16 has at most 480"),
        (["encode", "x", "a.mp3"], "'a.mp3' must end in .wav"),
        (["encode", "0fz", "a.wav", "--hex"], "'0fz' is not hexadecimal"),
        (["encode", "x", "a.wav", "--class", "3"], "--class has no effect with a message"),
        (["encode", "", "a.wav", "--station", "3"], "--station has no effect without a message"),
        (["encode", "", "a.wav", "--data", "400000000"], "data does not fit into 34 bits"),
        (["encode", "x", "a.wav", "--sampling", "8kHz"], "--sampling of 8000 Hz is too low for JANUS around 11520 Hz"),
        (["encode", "x", "a.wav", "--sampling", "300"], "--sampling of 300 Hz is too low"),
        (["decode", "text.wav"], "text.wav: not a WAV file"),
        (
            ["decode", "slow.wav"],
            "slow.wav: the sampling rate of 8000 Hz is too low for JANUS around 11520 Hz: use at least",
        ),
        (["decode", "nan.wav"], "nan.wav: 1 samples are NaN or infinite, the first one at 1.500000 s"),
        (["decode", "none.wav"], "No such file or directory (none.wav)"),
    ],
)
def test_bad_input_gets_one_message(arguments: list[str], text: str) -> None:
    Path("text.wav").write_text("this is text")
    write_wav(Path("slow.wav"), np.zeros(8000), 8000)
    write_wav(Path("nan.wav"), np.zeros(96_000), 48_000, 32)
    data = bytearray(Path("nan.wav").read_bytes())
    data[44 + 4 * 72_000 : 48 + 4 * 72_000] = np.float32(np.nan).tobytes()
    Path("nan.wav").write_bytes(data)
    result = CliRunner().invoke(cli, ["janus", *arguments])
    assert result.exit_code in (1, 2)
    assert text in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert not Path("a.wav").exists()


def test_a_truncated_file_is_decoded_and_reported() -> None:
    _run("encode", "", "a.wav")
    data = Path("a.wav").read_bytes()
    Path("a.wav").write_bytes(data[:-1000])
    output = _run("decode", "a.wav").output
    assert "3210000000000055" in output
    assert "a.wav: the file is truncated: it ends after 1.152 s" in output
