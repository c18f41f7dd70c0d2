"""The baseband service of the UnetStack modem: conversion against closed forms, requests, recordings and blocks."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.modems import SoundBroker
from tests.devices.test_unet import JUNK, UNET, Peer
from wavesim_devices.unet.conversion import margin, to_baseband, to_passband
from wavesim_devices.unet.device import BasebandOptions, UnetDevice

RATE, CARRIER = 96000, 24e3
TX, RECORD = UNET + "bb.TxBasebandSignalReq", UNET + "bb.RecordBasebandSignalReq"


class Bench:
    """A modem with the baseband service at a broker without a server, and a gateway that watches `phy`."""

    def __init__(self) -> None:
        self.broker = SoundBroker(1, 16, RATE)
        self.device = UnetDevice(
            self.broker,
            3,
            64,
            188.0,
            {},
            baseband=BasebandOptions("ears", CARRIER),  # type: ignore[arg-type]
        )
        self.peer = Peer(self.device, "g", "#phy__ntf")
        self.heard = 0

    def step(self, seconds: float, **events: Any) -> None:
        self.device.step(self.broker.step(seconds, **events))

    def hear(self, count: int, frequency: float = CARRIER) -> None:
        """Let the next samples arrive: a sine of amplitude 0.25 with the phase of a cosine at 0 s."""
        k = np.arange(self.heard, self.heard + count)
        self.broker.hear(self.heard, np.round(8192 * np.cos(2 * np.pi * frequency / RATE * k))[None, :])
        self.heard += count

    def parameter(self, name: str, value: Any = None) -> Any:
        self.peer.tell("phy", "org.arl.fjage.param.ParameterReq", param=name, value=value)
        return self.peer.take()[-1][1]["value"]


def floats(data: dict[str, Any]) -> Any:
    assert data["signal"]["clazz"] == "[F"
    return np.frombuffer(base64.b64decode(data["signal"]["data"]), "<f4")


@pytest.mark.parametrize(("rate", "factor", "carrier", "offset"), [(12e3, 8, 25e3, 3e3), (24e3, 5, 30e3, -8e3)])
def test_a_tone_becomes_a_tone_and_again_a_tone(rate: float, factor: int, carrier: float, offset: float) -> None:
    """x = exp(2 pi i f t) is cos(2 pi (fc + f) t) in the passband, and comes back; edges of 32 samples are left out."""
    t = np.arange(600) / rate
    tone = np.exp(2j * np.pi * offset * t)
    passband = to_passband(tone, rate, carrier, factor)
    fine = np.arange(600 * factor) / (rate * factor)
    inner = slice(32 * factor, -32 * factor)
    assert passband[inner] == pytest.approx(np.cos(2 * np.pi * (carrier + offset) * fine)[inner], abs=1e-4)
    back = to_baseband(passband, rate * factor, carrier, factor)
    assert len(back) == 600 - 64 and margin(factor) == 32 * factor
    # the phase is counted from the first sample that comes back, which belongs to sample 32 of the tone
    shift = np.exp(2j * np.pi * carrier * 32 / rate)
    assert back[32:-32] == pytest.approx(tone[64:-64] * shift, abs=2e-4)


def test_what_lies_outside_the_band_is_removed() -> None:
    k = np.arange(20_000)
    for frequency, level in ((24e3 + 7e3, -60.0), (24e3 + 12e3, -80.0), (2e3, -80.0)):
        out = to_baseband(np.cos(2 * np.pi * frequency / 96e3 * k), 96e3, 24e3, 8)
        assert 20 * np.log10(np.abs(out).max()) < level


def test_parameters() -> None:
    bench = Bench()
    bench.peer.line({"id": "1", "action": "agentForService", "service": UNET + "Services.BASEBAND"})
    assert bench.peer.take()[0]["agentID"] == "phy"
    for name, first, good, bad in (
        ("carrierFrequency", CARRIER, 30e3, 0.0),
        ("basebandRate", 12e3, 24e3, "x"),
        ("signalPowerLevel", 0.0, -20.0, 1.0),
        ("pbsblk", 65536, 100, 0),
        ("org.arl.unet.bb.BasebandParam.maxPreambleID", 0, 0, 1),
    ):
        assert bench.parameter(name) == first
        assert bench.parameter(name, good) == good == bench.parameter(name, bad)
    assert bench.parameter("maxSignalLength") == 480_000
    plain = UnetDevice(SoundBroker(), 3, 64, 188.0, {})  # type: ignore[arg-type]
    peer = Peer(plain, "g")
    peer.tell("phy", TX, signal=[1, 0])
    assert [d["perf"] for _, d in peer.take()] == ["NOT_UNDERSTOOD"], "only with --baseband"


def test_a_baseband_signal_is_transmitted() -> None:
    """A carrier of 100 ms. The band ends at 24 + 6 kHz; 7 x 12 kHz is the first rate of which this is less than 0.4."""
    bench = Bench()
    bench.step(1.0)
    bench.parameter("signalPowerLevel", -8)
    bench.peer.tell("phy", TX, signal=[1, 0] * 1200, txTime=1_500_000)
    ((scale, samples, rate, level, at),) = bench.broker.requests
    assert (scale, rate, at, len(samples)) == ("rms", 84e3, 1_500_000_000, 8400)
    assert level == pytest.approx(180.0, abs=0.02)
    k, volume = np.arange(8400), np.sqrt(2 * np.mean(samples.astype(float) ** 2))
    expected = np.cos(2 * np.pi * 24e3 / 84e3 * k)
    assert samples[600:-600] / volume == pytest.approx(expected[600:-600], abs=5e-3), "the edges ripple"
    bench.step(1.5, sent={1: 0.1})
    bench.step(1.61)
    agreed, left = bench.peer.take()
    assert agreed[1]["perf"] == "AGREE" and left[0] == "TxFrameNtf"
    assert (left[1]["txTime"], left[1]["inReplyTo"]) == (1_500_000, "m1")


def test_a_passband_signal_in_base64_is_transmitted_as_it_is() -> None:
    """Twice the signal is limited to the level of `phy`; with less power, it is 6 dB louder."""
    bench = Bench()
    bench.step(1.0)
    signal = np.sin(np.arange(960)).astype("<f4")
    data = {"clazz": "[F", "data": base64.b64encode(signal.tobytes()).decode()}
    bench.peer.tell("phy", TX, signal=data, fc=0, fs=192000)
    for k, power in enumerate((0, -20)):
        bench.step(1.1 + k, sent={1 + k: 0.005})
        bench.step(1.2 + k)
        bench.parameter("signalPowerLevel", power)
        bench.peer.tell("phy", TX, signal=(2 * signal).tolist(), fc=0)
    (_, first, rate, level, _), (_, second, default, limited, _), (_, _, _, louder, _) = bench.broker.requests
    assert (rate, default) == (192000, 96000) and (first == signal).all() and np.abs(second).max() == 1.0
    assert (level, limited, louder) == pytest.approx((188.0, 188.0, 168.0 + 6.02), abs=0.01)
    bench.peer.take()
    bench.step(2.5, refused={3: "the sound occupies another band"})
    ((said, data),) = bench.peer.take()
    assert said == "FailureNtf" and "band" in data["reason"]


def test_a_recording_now_and_one_in_the_past() -> None:
    """0.25 cos(2 pi 24.5 kHz t): at a carrier of 24 kHz, the baseband turns at 500 Hz with the magnitude 0.25."""
    bench = Bench()
    bench.hear(9600, 24.5e3)
    bench.step(0.1)
    bench.peer.tell("phy", RECORD, recLen=600)
    bench.peer.tell("phy", RECORD, recLen=300, recTime=50_000)
    (now, _), (past, _), (found, early) = bench.peer.take()
    assert (now, past, found) == ("Message", "Message", "RxBasebandSignalNtf")
    assert (early["rxTime"], early["fc"], early["fs"], early["channels"]) == (50_000, CARRIER, 12e3, 1)
    bench.hear(4800, 24.5e3)
    bench.step(0.15)
    assert bench.peer.take() == [], "its last samples are not there yet"
    bench.hear(4800, 24.5e3)
    bench.step(0.2)
    ((_, late),) = bench.peer.take()
    assert late["rxTime"] == 100_000
    for data, count, start in ((early, 300, 0.05), (late, 600, 0.1)):
        x = floats(data)
        z = x[::2] + 1j * x[1::2]
        expected = 0.25 * np.exp(2j * np.pi * (500 * np.arange(count) / 12e3 + 24.5e3 * start))
        assert len(z) == count and z == pytest.approx(expected, abs=1e-4)


def test_a_gap_makes_a_recording_fail() -> None:
    bench = Bench()
    bench.hear(9600)
    bench.step(0.1)
    bench.peer.tell("phy", RECORD, recLen=1200)
    bench.heard += 500
    bench.hear(20_000)
    bench.step(0.3)
    assert [(c, d.get("reason")) for c, d in bench.peer.take()] == [
        ("Message", None),
        ("FailureNtf", "samples are missing"),
    ]


def test_passband_blocks() -> None:
    bench = Bench()
    bench.hear(9600)
    bench.step(0.1)
    bench.parameter("pbsblk", 1000)
    bench.parameter("pbscnt", 2)
    bench.hear(5000)
    bench.step(0.2)
    blocks = bench.peer.take()
    assert [(c, d["rxTime"], d["fc"], d["fs"]) for c, d in blocks] == [
        ("RxBasebandSignalNtf", 100_000, 0.0, RATE),
        ("RxBasebandSignalNtf", round(10_600e6 / RATE), 0.0, RATE),
    ]
    assert floats(blocks[1][1]) == pytest.approx(0.25 * np.cos(2 * np.pi * 0.25 * np.arange(10_600, 11_600)), abs=1e-4)
    assert bench.parameter("pbscnt") == 0


@pytest.mark.parametrize(
    ("clazz", "fields", "text"),
    [
        (TX, {"signal": [1, 0], "preamble": 3}, "preambles"),
        (TX, {"signal": [1, 0], "channels": 2}, "one channel"),
        (TX, {"signal": "abc"}, "list of numbers"),
        (TX, {"signal": [1, 0, 1]}, "imaginary part"),
        (TX, {}, "list of numbers"),
        (TX, {"signal": []}, "empty"),
        (TX, {"signal": [0, 0] * 100}, "are 0"),
        (TX, {"signal": [1, float("nan")] * 100}, "list of numbers"),
        (TX, {"signal": [1, 10**400] * 100}, "list of numbers"),
        (TX, {"signal": {"clazz": "[F", "data": "AADAfw=="}, "fc": 0}, "finite"),
        (TX, {"signal": {"clazz": "[F", "data": "AADAfw==" * 20}, "fc": 0}, "padding"),
        (TX, {"signal": {"clazz": "[F", "data": "AADA"}}, "buffer size"),
        (TX, {"signal": [1, 0] * 100, "fc": -5}, "fc"),
        (TX, {"signal": [1, 0] * 100, "fc": 2e5, "fs": 1e5}, "too high"),
        (TX, {"signal": [1, 0] * 100, "txTime": "now"}, "txTime"),
        (RECORD, {"recLen": -1}, "recLen"),
        (RECORD, {"recLen": 10**7}, "recLen"),
        (RECORD, {"recLen": 10, "recTime": [1]}, "recTime"),
    ],
)
def test_requests_that_cannot_be_met(clazz: str, fields: dict[str, Any], text: str) -> None:
    bench = Bench()
    bench.hear(960)
    bench.step(0.1)
    bench.peer.tell("phy", clazz, **fields)
    ((said, data),) = bench.peer.take()
    assert (said, data["perf"]) == ("RefuseRsp", "REFUSE") and text in data["reason"]
    assert bench.broker.requests == []


def test_recordings_that_the_hydrophone_cannot_make() -> None:
    bench = Bench()
    bench.step(0.1)

    def reason() -> str:
        bench.peer.tell("phy", RECORD, recLen=10)
        ((_, data),) = bench.peer.take()
        return str(data["reason"])

    assert "not sent any samples yet" in reason()
    bench.hear(960)
    bench.step(0.2)
    bench.parameter("basebandRate", 7e3)
    assert "divided by a whole number" in reason()
    bench.parameter("basebandRate", 48e3)
    bench.parameter("carrierFrequency", 30e3)
    assert "half the sampling rate" in reason()
    bench.parameter("carrierFrequency", 20e3)
    for _ in range(16):
        bench.peer.tell("phy", RECORD, recLen=10, recTime=10**9)
    assert [d["perf"] for _, d in bench.peer.take()] == ["AGREE"] * 16
    assert "too many" in reason()


@given(
    st.sampled_from([TX, RECORD]),
    st.dictionaries(
        st.sampled_from(["signal", "fc", "fs", "preamble", "channels", "txTime", "recTime", "recLen"]),
        JUNK | st.integers(-2, 3) | st.lists(st.floats(), max_size=4),
        max_size=5,
    ),
)
def test_fields_of_any_type_are_answered(clazz: str, fields: dict[str, Any]) -> None:
    bench = Bench()
    bench.hear(960)
    bench.step(0.1)
    bench.peer.tell("phy", clazz, **fields)
    assert bench.peer.take()
