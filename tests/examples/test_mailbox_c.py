"""The C program of examples/mailbox-c is compiled and fed by a real mailbox from a real server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import posix_ipc
import pytest

from tests.conftest import CLI, Server, wavesim
from wavesim_sdk.broker import Step
from wavesim_sdk.config import Loaded
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.mailbox import Mailbox
from wavesim_sdk.wire.client import Reception, State

CONFIG = """<time step="4 ms" duration="4 s" pace="fast"/><world><bed depth="200 m"/></world>
<fleet><vehicle name="auv" model="lauv" position="1 2 20 m" client="optional"/>
<vehicle name="pinger" model="remus100" position="100 0 20 m" client="optional"/></fleet>"""


@pytest.mark.system
def test_a_c_program_is_fed(
    root: Path, tmp_path: Path, config: Callable[..., Loaded], serve: Callable[..., Server], queue_name: str
) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    reader = tmp_path / "reader"
    built = subprocess.run(
        [
            compiler,
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            str(reader),
            str(root / "examples/mailbox-c/reader.c"),
            "-lrt",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    server = serve(config(CONFIG).path)
    program = subprocess.Popen([str(reader), queue_name], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    mailbox = pinger = None
    try:
        pid = program.stdout.readline().split()[1]
        mailbox = subprocess.Popen(
            [
                *CLI,
                "mailbox",
                "auv",
                "--queue",
                queue_name,
                "--signal",
                "USR1",
                "--pid",
                pid,
                "--port",
                str(server.port),
                "--lockstep",
                "0.1",
            ]
        )
        script = "import sys\nfrom wavesim_sdk.broker import Broker\nwith Broker('pinger', ('127.0.0.1', int(sys.argv[1])), lockstep=1.0) as b:\n    for s in b.steps():\n        b.ping(25e3)\n"
        pinger = subprocess.Popen([CLI[0], "-c", script, str(server.port)])
        server.wait(lambda s: s["clients_total"] == 2)
        server.send("start")
        out, _ = program.communicate(timeout=60)
    finally:
        for process in (program, mailbox, pinger):
            if process is not None:
                process.kill()
                process.wait()
    lines = [line.split() for line in out.splitlines()]
    states = [line for line in lines if line[0] == "state"]
    heard = [line for line in lines if line[0] == "heard"]
    ticks = [int(s[1]) for s in states]
    assert ticks == sorted(ticks) and ticks[0] == 0 and len(states) >= 5
    assert [float(v) for v in states[0][3:6]] == [1.0, 2.0, 20.0]
    assert len(heard) == 4 and all(h[3] == "25000.0" for h in heard)
    assert float(heard[0][2]) == pytest.approx(99 / 1500, abs=2e-3)
    done = lines[-1]
    assert done[0] == "done" and int(done[6]) >= 1, "it was told by the signal that it chose"


def step(tick: int, receptions: int = 0) -> Step:
    state = State(tick, tick * 4_000_000, 1, [0.0] * 16, [0.0] * 12, {})
    return Step(state, [Reception(k, k + 1, 0, 0, 0, 0, 0, 25e3, 130.0, 40.0) for k in range(receptions)])


def test_a_slow_reader_loses_states_before_receptions(queue_name: str) -> None:
    with Mailbox(queue_name) as box:
        for tick in range(50):
            box.put_step(step(tick, receptions=1 if tick % 10 == 0 else 0))
        queue = posix_ipc.MessageQueue(queue_name)
        kinds = []
        while queue.current_messages:
            kinds.append(queue.receive(0)[0][0])
            box.flush()
        queue.close()
        assert kinds.count(2) == 5
        assert kinds.count(1) + box.dropped == 50 and box.dropped > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("no-slash",)), "cannot open the queue"),
        (("/q", "NOPE", 1), "there is no signal"),
        (("/q", "USR1", 0), "needs both"),
    ],
)
def test_mistakes(arguments: tuple[str, str, int], message: str) -> None:
    with pytest.raises(WaveSimError, match=message), Mailbox(*arguments):
        pass


def test_the_command_without_a_server(queue_name: str) -> None:
    done = wavesim("mailbox", "auv", "--queue", queue_name, "--port", "1")
    assert done.returncode == 5 and "no server answers" in done.stderr
    with pytest.raises(posix_ipc.ExistentialError):
        posix_ipc.MessageQueue(queue_name)
