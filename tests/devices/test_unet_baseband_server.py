"""The baseband service with the maker's client, in the sea of a real server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import Server
from tests.devices.modems import devices, sea
from tests.devices.test_uasp_server import processes, start_emulator
from tests.devices.test_unet import received
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("hydrophones"), pytest.mark.timeout(240)]

RATE, CARRIER, SPEED = 12e3, 25e3, 1500.0
MORE = 'listen_low="15 kHz" listen_high="35 kHz" position="0 0 0 m"'
EARS = '<sensors><hydrophone name="ears" gain="20 dB"/></sensors>'


def test_unetpy_plays_and_records(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    """A pseudo-random sequence with 6 kHz over 300 m: the travel time, and what remains of it at 25 kHz."""
    from unetpy import Services, UnetSocket
    from unetpy.messages import RecordBasebandSignalReq, RxBasebandSignalNtf, TxBasebandSignalReq, TxFrameNtf

    node = {"more": MORE, "sensors": EARS}
    loaded = config(
        sea(node, {"x": 300, **node}, acoustics=f'<acoustics sound_speed="{SPEED} m/s" ambient_noise="40 dB"/>')
    )
    server = serve(loaded.path)
    start_emulator(server, loaded, processes)
    commands = [["unet", n, "--address", str(3 + k), "--fjage", "tcp:0", "--baseband"] for k, n in enumerate("ab")]
    with devices(server, *commands) as (a, b):
        server.send("start")
        with UnetSocket("127.0.0.1", a["port"]) as here, UnetSocket("127.0.0.1", b["port"]) as there:
            speaker, listener = (s.agentForService(Services.BASEBAND) for s in (here, there))
            assert speaker.name == "phy" and listener.basebandRate == RATE
            chips = np.repeat(np.random.default_rng(1).choice([-1.0, 1.0], 600), 2)
            received(lambda _: listener.time > 1_000_000 or None)
            begin = speaker.time + 2_000_000

            def ask(agent: Any, request: Any) -> None:
                assert str(agent.request(request, 20_000).perf) == "AGREE"

            ask(speaker, TxBasebandSignalReq(signal=chips.astype(complex), txTime=begin))
            ask(listener, RecordBasebandSignalReq(recTime=begin + 150_000, recLen=2400))
            left = received(lambda ms: here.getGateway().receive(TxFrameNtf, ms))
            heard = received(lambda ms: there.getGateway().receive(RxBasebandSignalNtf, ms))
            there.agent("phy").carrierFrequency = 20e3
            assert there.agent("phy").carrierFrequency == 20e3
    assert left.txTime == begin
    assert (heard.rxTime, heard.fc, heard.fs) == (begin + 150_000, CARRIER, RATE)
    parts = np.array(heard.signal)
    z = parts[::2] + 1j * parts[1::2]
    correlation = np.correlate(z, chips, "valid")
    fine = np.abs(np.fft.ifft(np.fft.fft(correlation, 4096), 4096))
    peak = int(np.argmax(fine))
    travel = 0.15 + peak / RATE
    assert travel == pytest.approx(300.0 / SPEED, abs=0.6 / RATE)
    share = np.abs(correlation[peak]) / np.linalg.norm(z) / np.linalg.norm(chips)
    assert share > 0.8, "a fraction of a sample is lost, and what the filter removed"
