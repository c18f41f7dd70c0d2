"""A broker plays a sound over the network: a hydrophone at 1500 m hears it, and a server, a trial in one process and a Lab
give the same bytes. The log contains the samples.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Server
from tests.e2e.test_sensors import processes
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.log import frames, read
from wavesim_sdk.shared_memory import SYNCHRONOUS
from wavesim_sdk.sounds import logged_sound
from wavesim_server import Lab
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("hydrophones"), pytest.mark.timeout(240)]

RATE, TICKS, PLAYED = 96_000, 150, 100_000_000
WORLD = """<time step="10 ms" pace="fast" duration="1.5 s"/><log state_rate="10 Hz"/><network lockstep_timeout="60 s" keepalive_timeout="60 s"/>
<world><bed depth="400 m"/></world><acoustics sound_speed="1500 m/s" absorption="0 dB/m" ambient_noise="60 dB"/>
<fleet><vehicle name="rov" model="bluerov2-heavy" position="0 0 20 m" client="{client}">{program}
<transducer listen_low="15 kHz" listen_high="35 kHz" source_level="190 dB" recharge="0.05 s"/></vehicle>
<buoy name="ear" model="buoy" position="1500 0 0 m"><sensors>
<hydrophone name="ears" sampling="96 kHz" rate="20 Hz" gain="40 dB" log="1" position="0 0 20 m"/></sensors></buoy></fleet>"""
#: the on-board program, also as the text of the program of the trial
PROGRAM = """
import numpy as np
from wavesim_sdk.broker import Broker

def sound():
    t = np.arange(19200) / 96e3
    return np.sin(np.pi * t / 0.2) ** 2 * np.sin(2 * np.pi * (20e3 * t + 25e3 * t * t))

def play(broker):
    return broker.transmit(sound(), 96e3, 185.0, at=100_000_000)

if __name__ == "__main__":
    import sys
    with Broker("rov", lockstep=0.05) as broker:
        for k, step in enumerate(broker.steps()):
            if k == 0:
                play(broker)
            broker.answer({})
"""


def program() -> dict[str, Callable[..., np.ndarray]]:
    names: dict[str, Callable[..., np.ndarray]] = {"__name__": "player"}  # type: ignore[dict-item]
    exec(PROGRAM, names)
    return names


@pytest.fixture
def expected(config: Callable[..., LoadedConfig]) -> list[bytes]:
    lab = Lab(config(WORLD.format(client="none", program="")), imaging=True)
    lab.transmit("rov", program()["sound"](), RATE, 185.0, at=PLAYED)
    lab.advance(TICKS)
    found = lab.take_frames()
    pressure, x = np.concatenate([f.pressures[0] for f in found]), program()["sound"]()
    first = round(1.1 * RATE) - 500
    match = np.abs(np.correlate(pressure[first : first + len(x) + 1000], x, "valid"))
    k = int(match.argmax())
    a, b, c = match[k - 1 : k + 2]
    (signal,), _ = lab.take_signals()
    distance = float(np.linalg.norm(lab.state()["p_WB_W"][lab.row("ear")] + (0, 0, 20) - signal["origin_W"]))
    at = first + k + 0.5 * (a - c) / (a - 2.0 * b + c)
    assert at == pytest.approx((0.1 + distance / 1500.0) * RATE, abs=0.6), "the buoy moves by millimetres meanwhile"
    return [f.data for f in found]


def check(log: Path, expected: list[bytes]) -> None:
    """The log contains the same blocks as the Lab, and the sound."""
    logged = [f.data for f in frames(log, "ear", "ears")]
    assert len(logged) >= len(expected) - 1 > 20
    assert logged == expected[: len(logged)]
    found = read(log)
    ((time_ns, message),) = found.json["/acoustics/sound"]
    samples, rate = logged_sound(message)
    assert (time_ns, message["body"], message["signal"], rate) == (PLAYED, "rov", 1, RATE)
    assert samples.tobytes() == program()["sound"]().astype("<f4").tobytes()
    assert found.table("/acoustics/sent")["kind"].tolist() == ["sound"]


@pytest.mark.parametrize("emulator", ["local", "remote"])
def test_over_the_network(
    emulator: str,
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
    expected: list[bytes],
) -> None:
    loaded = config(WORLD.format(client="optional", program=""))
    server = serve(loaded.path, "--log", str(tmp_path / "run.mcap"))
    header = SharedState(server.name).vehicles["hydrophone"].header
    where = server.name if emulator == "local" else f"127.0.0.1:{server.port}"
    processes.append(launch("emulate", "hydrophone", loaded.path, "-s", where))
    limit = time.monotonic() + 100.0
    while not header[SYNCHRONOUS]:
        assert processes[-1].poll() is None and time.monotonic() < limit
        time.sleep(0.02)
    sent, refused = [], []
    with Broker("rov", ("127.0.0.1", server.port), lockstep=0.05) as broker:
        server.send("start")
        for k, step in enumerate(broker.steps()):
            if k == 0:
                numbers = [program()["play"](broker), broker.transmit(program()["sound"](), RATE, 195.0)]
                numbers.append(broker.transmit(np.sin(0.5 * np.arange(5000)), RATE, 180.0))
            sent += step.sent
            refused += step.refused
            broker.answer({})
    server.send("shutdown")
    assert server.process.wait(60) == 0
    assert [(s.request, s.emission_ns) for s in sent] == [(numbers[0], PLAYED)]
    by_number = {r.request: r.text for r in refused}
    assert by_number[numbers[1]] == "level 195 dB is above the transducer's source level, which is 190 dB"
    assert "the transducer's band is 15000 to 35000 Hz" in by_number[numbers[2]]
    check(tmp_path / "run.mcap", expected)


def test_in_one_process(config: Callable[..., LoadedConfig], tmp_path: Path, expected: list[bytes]) -> None:
    (tmp_path / "player.py").write_text(PROGRAM)
    text = WORLD.format(client="required", program='<program run="player.py"/>')
    trial = InProcessTrial(config(text.replace("<log ", '<log file="run.mcap" ')), tmp_path / "out", quiet=True)
    trial.run(plots=False)
    trial.check()
    check(trial.log, expected)
