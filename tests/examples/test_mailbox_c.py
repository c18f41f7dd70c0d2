"""The C program of examples/mailbox-c is compiled, and receives data from a real mailbox of a real server."""

from __future__ import annotations

import math
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import posix_ipc
import pytest

from tests.conftest import CLI, Server, wavesim
from tests.examples import foreign
from tests.examples.compiled import POSIX, SANITIZED, compiled
from wavesim_sdk.broker import Step
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.mailbox import MESSAGE_BYTES, Mailbox
from wavesim_sdk.mailbox_tables import MAILBOX_STATE, MAILBOX_VALUES
from wavesim_sdk.wire.items import ChannelState, Reception
from wavesim_sdk.wire.messages import Reading, StateMessage
from wavesim_sdk.wire.state import Body, State
from wavesim_world.config import LoadedConfig

CONFIG = """<time step="4 ms" duration="4 s" pace="fast"/><world><bed depth="200 m"/></world>
<fleet><vehicle name="auv" model="lauv" position="1 2 20 m" client="optional"/>
<vehicle name="pinger" model="remus100" position="100 0 20 m" client="optional"/></fleet>"""


@pytest.fixture(scope="module")
def reader(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    source = root / "examples/mailbox-c/reader.c"
    return compiled(source, tmp_path_factory.mktemp("c") / "reader", POSIX, *SANITIZED, "-lrt")


@pytest.mark.system
def test_a_c_program_is_fed(
    reader: str, config: Callable[..., LoadedConfig], serve: Callable[..., Server], queue_name: str
) -> None:
    server = serve(config(CONFIG).path)
    program = subprocess.Popen([reader, queue_name], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    mailbox = pinger = None
    try:
        pid = program.stdout.readline().split()[1]
        where = ["--signal", "USR1", "--pid", pid, "--port", str(server.port), "--lockstep", "0.1"]
        mailbox = subprocess.Popen([*CLI, "mailbox", "auv", "--queue", queue_name, *where])
        script = (
            "import sys\nfrom wavesim_sdk.broker import Broker\n"
            "with Broker('pinger', ('127.0.0.1', int(sys.argv[1])), lockstep=1.0) as b:\n"
            "    for s in b.steps():\n        b.ping(25e3)\n"
        )
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
    assert next(line[2] for line in lines if line[0] == "actuator") == "propeller"
    ticks = [int(s[1]) for s in states]
    assert ticks == sorted(ticks) and ticks[0] == 0 and len(states) >= 5
    assert [float(v) for v in states[0][3:6]] == [1.0, 2.0, 20.0]
    assert len(heard) == 4 and all(h[3] == "25000.0" for h in heard)
    assert float(heard[0][2]) == pytest.approx(99 / 1500, abs=2e-3)
    done = lines[-1]
    assert done[0] == "done" and int(done[6]) >= 1, "it received the signal that it chose"


LONG = (foreign.sensor(0, "ctd", pressure=1, temperature=1), foreign.sensor(1, "sonar", angle=1, range=1400))


def test_a_c_program_knows_names_and_every_value(reader: str, queue_name: str) -> None:
    """Also of a sensor that fits no message: its values come in pieces. The program has the queue's default size."""
    program = subprocess.Popen([reader, queue_name], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    program.stdout.readline()
    body = Body()
    for sensor in LONG:
        body.add_sensor(sensor)
    readings = (Reading(0, 10**9, 0, (11.5, None)), Reading(1, 2 * 10**9, 0, tuple(float(k) for k in range(1401))))
    state = body.build_state(StateMessage(25, 10**9, 1, 0, None, (7.5, 0.25), None, readings), ())
    with Mailbox(queue_name, "USR1", program.pid) as box:
        box.put_body(foreign.ACTUATORS[:2], LONG)
        box.put_step(Step(state))
        box.put(3, struct.pack("<q", 3))
        for _ in range(100):
            if box.flush():
                break
            time.sleep(0.02)
        out, _ = program.communicate(timeout=20)
        assert box.dropped == 0
    assert out.splitlines()[:-1] == [
        "actuator 0 actuator-0 from -5 to 5 1/s",
        "actuator 1 actuator-1 from -5 to 5 1/s",
        "sensor 0 ctd ctd pressure[] temperature[]",
        "sensor 1 sonar sonar angle[] range[]",
        "state 25 1.000 nan nan nan 7.500000",
        "values ctd 1.000 pressure=11.5000 temperature=nan",
        "values sonar 2.000 angle=0.0000 range=1.0000",
        "values sonar 2.000",
        "values sonar 2.000",
    ]


def test_no_message_is_too_large_and_no_value_is_lost(queue_name: str) -> None:
    body = Body()
    sensors = [foreign.sensor(k, f"sensor-{k}", values=count) for k, count in enumerate((1, 440, 2, 1800, 60, 508))]
    for sensor in sensors:
        body.add_sensor(sensor)
    values = {s.number: tuple(s.number + 1e-4 * k for k in range(s.fields[0].count)) for s in sensors}
    readings = tuple(Reading(number, 7, 0, v) for number, v in values.items())
    with Mailbox(queue_name) as box:
        box.put_body((), sensors)
        found: dict[int, list[float]] = {n: [math.nan] * len(v) for n, v in values.items()}
        queue = posix_ipc.MessageQueue(queue_name)
        for _ in sensors:
            queue.receive(0)
        box.put_step(Step(body.build_state(StateMessage(25, 10**9, 1, 0, (0.0,) * 16, (), None, readings), ())))
        messages = []
        while queue.current_messages:
            messages.append(queue.receive(0)[0])
        queue.close()
    assert all(len(m) <= MESSAGE_BYTES for m in messages) and [m[0] for m in messages] == [1] + [6] * (
        len(messages) - 1
    )
    for message, head in ((m, 8 + (MAILBOX_STATE if m[0] == 1 else MAILBOX_VALUES).dtype.itemsize) for m in messages):
        at = head
        while at < len(message):
            number, _, first, count = struct.unpack_from("<4q", message, at)
            found[number][first : first + count] = struct.unpack_from(f"<{count}d", message, at + 32)
            at += 32 + 8 * count
    assert {n: tuple(v) for n, v in found.items()} == values


def step(tick: int, receptions: int = 0) -> Step:
    state = Body().build_state(StateMessage(tick, tick * 4_000_000, 1, 0, (0.0,) * 16, (0.0,) * 5, None, ()), ())
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
        ((("no-slash",)), r"cannot open the queue 'no-slash' \(its name must start with /\)"),
        (("/q", "NOPE", 1), "unknown signal 'NOPE'"),
        (("/q", "USR1", 0), r"specify both its name \(--signal\) and the process"),
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


def test_a_change_of_the_channel_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    box, sent = Mailbox("/unused"), list[tuple[int, bytes]]()
    monkeypatch.setattr(box, "put", lambda kind, record: sent.append((kind, record)))
    monkeypatch.setattr(box, "put_latest", lambda messages: None)
    box.put_step(Step(State(), channel=[ChannelState(5, 1), ChannelState(7, 0)]))
    assert sent == [(7, struct.pack("<qq", 5, 1)), (7, struct.pack("<qq", 7, 0))]
