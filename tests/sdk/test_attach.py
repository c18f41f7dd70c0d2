"""Attaching: readers cannot write, and the table of a sensor has one writer, also after a writer was killed; access of
a group.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import posix_ipc
import pytest

from wavesim_sdk import attach as module
from wavesim_sdk import tables
from wavesim_sdk.attach import (
    ClaimLock,
    SensorTableClaim,
    SharedState,
    create_semaphores,
    open_semaphore,
    remove_semaphores,
    simulation_tables,
)
from wavesim_sdk.commander import Commander, CommanderQueue
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.shared_memory import (
    DUE,
    OWNER,
    OWNER_START,
    SYNCHRONOUS,
    SharedMemoryArea,
    process_start,
    segment_name,
)
from wavesim_sdk.tables import TICK, Table, integer

SENSOR = Table("gauge", "A sensor of the test.", "emulator", (TICK, integer("level", "", "What it shows.")))
STEP_NS = 4_000_000


class Stage:
    """What a server shares, without its processes."""

    def __init__(self, name: str, group: bool = False) -> None:
        self.name = name
        self.simulation = SharedMemoryArea.create(segment_name(name, "simulation"), simulation_tables(4, 8), group)
        self.vehicles = SharedMemoryArea.create(
            segment_name(name, "vehicles"), [(t, 4) for t in (*tables.VEHICLE_TABLES, SENSOR)], group
        )
        create_semaphores(name, [SENSOR.name], group)
        self.column = self.vehicles[SENSOR.name]
        world = np.zeros(1, tables.WORLD.dtype)
        world["step_ns"] = STEP_NS
        self.simulation["world"].publish(world, 0)

    def close(self) -> None:
        self.simulation.unlink()
        self.vehicles.unlink()
        remove_semaphores(self.name, [SENSOR.name])


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage(f"attach-test-{os.getpid()}")
    yield made
    made.close()


def value(name: str) -> int:
    return int(posix_ipc.Semaphore(name).value)


# -- readers -------------------------------------------------------------------------------------------


def test_a_reader_cannot_write_either_area(stage: Stage) -> None:
    state = SharedState(stage.name)
    for area in (state.simulation, state.vehicles):
        for table in area.tables.values():
            with pytest.raises(TypeError, match="read-only"):
                table.header[SYNCHRONOUS] = 1


def test_a_reader_waits_until_the_engine_has_published(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    world = np.zeros(1, tables.WORLD.dtype)
    stage.simulation["world"].publish(world, 0)
    looks = []

    def sleep(_seconds: float) -> None:
        looks.append(1)
        if len(looks) == 3:
            world["step_ns"] = STEP_NS
            stage.simulation["world"].publish(world, 0)

    monkeypatch.setattr("time.sleep", sleep)
    assert int(SharedState(stage.name).world()["step_ns"]) == STEP_NS and len(looks) == 3
    world["step_ns"] = 0
    stage.simulation["world"].publish(world, 0)
    monkeypatch.setattr(module, "START_LIMIT_S", -1.0)
    with pytest.raises(NotRunning, match=f"'{stage.name}' did not start within -1 s"):
        SharedState(stage.name)


def test_a_server_that_dies_while_it_starts(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.simulation["world"].publish(np.zeros(1, tables.WORLD.dtype), 0)

    def die(_seconds: float) -> None:
        stage.simulation.header[6] += 1

    monkeypatch.setattr("time.sleep", die)
    with pytest.raises(NotRunning, match=f"'{stage.name}' exited during startup"):
        SharedState(stage.name)


def test_alive_is_about_the_very_process(stage: Stage) -> None:
    state = SharedState(stage.name)
    assert state.alive()
    stage.simulation.header[6] += 1
    assert not state.alive()


# -- claims ----------------------------------------------------------------------------------------------


def test_a_claim_enters_its_process_and_nothing_of_the_last_one_stays(stage: Stage) -> None:
    stage.column.header[SYNCHRONOUS], stage.column.header[OWNER], stage.column.header[OWNER_START] = 25, 2**22 + 1, 5
    for what, count in (("due", 2), ("done", 3)):
        for _ in range(count):
            open_semaphore(stage.name, SENSOR.name, what).release()
    column = SensorTableClaim(SharedState(stage.name), SENSOR.name)
    assert stage.column.header[OWNER] == os.getpid()
    assert stage.column.header[OWNER_START] == process_start(os.getpid())
    assert not column.is_synchronous and stage.column.header[SYNCHRONOUS] == 0
    assert column.wait_due(0) is None, "posts of the one before are gone"
    assert open_semaphore(stage.name, SENSOR.name, "done").value == 0


def test_a_live_owner_is_not_pushed_aside(stage: Stage) -> None:
    other = os.getppid()
    stage.column.header[OWNER], stage.column.header[OWNER_START] = other, process_start(other)
    stage.column.header[SYNCHRONOUS] = 25
    with pytest.raises(AttachError, match=f"process {other} already writes the values of the sensor"):
        SensorTableClaim(SharedState(stage.name), SENSOR.name)
    assert stage.column.header[OWNER] == other and stage.column.header[SYNCHRONOUS] == 25
    assert value(f"/wavesim.{stage.name}.claim") == 1
    stage.column.header[OWNER_START] += 1  # its PID belongs to another process now
    SensorTableClaim(SharedState(stage.name), SENSOR.name)
    assert stage.column.header[OWNER] == os.getpid()
    SensorTableClaim(SharedState(stage.name), SENSOR.name)  # its own claim once more


def test_who_claims_holds_the_lock_from_the_look_to_the_entry(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = f"/wavesim.{stage.name}.claim"
    held = []

    def alive(_pid: int, _start: int) -> bool:
        held.append(value(claim))
        return False

    def start(pid: int) -> int:
        held.append(value(claim))
        return process_start(pid)

    state = SharedState(stage.name)
    monkeypatch.setattr(module, "is_process_alive", alive)
    monkeypatch.setattr(module, "process_start", start)
    SensorTableClaim(state, SENSOR.name)
    assert held == [0, 0] and value(claim) == 1


def test_an_unknown_sensor_is_refused(stage: Stage) -> None:
    with pytest.raises(AttachError, match="this run has no sensor of type 'sonar'"):
        SensorTableClaim(SharedState(stage.name), "sonar")


def test_question_values_answer(stage: Stage) -> None:
    column = SensorTableClaim(SharedState(stage.name), SENSOR.name)
    column.request_synchronous()
    assert column.is_synchronous and stage.column.header[SYNCHRONOUS] == 1
    assert column.wait_due(0) is None
    stage.column.header[DUE] = 50
    open_semaphore(stage.name, SENSOR.name, "due").release()
    assert column.wait_due(0) == 50 and column.wait_due(0) is None
    rows = np.zeros(4, SENSOR.dtype)
    rows["level"] = 7
    column.write(rows, 50)
    tick, seen = stage.column.snapshot()
    assert tick == 50 and (seen["level"] == 7).all()
    done = open_semaphore(stage.name, SENSOR.name, "done")
    assert done.value == 0
    column.signal_done()
    assert done.value == 1
    stage.column.header[SYNCHRONOUS] = 0
    assert not column.is_synchronous, "the engine gave it up"


def test_a_signal_ends_the_wait_quietly(stage: Stage) -> None:
    column = SensorTableClaim(SharedState(stage.name), SENSOR.name)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    timer = threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        assert column.wait_due(30.0) is None
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_released_column_is_free_and_the_engine_waits_no_longer(stage: Stage) -> None:
    column = SensorTableClaim(SharedState(stage.name), SENSOR.name)
    column.request_synchronous()
    column.release()
    assert stage.column.header[OWNER] == 0 and stage.column.header[SYNCHRONOUS] == 0
    done = open_semaphore(stage.name, SENSOR.name, "done")
    assert done.value == 1
    column.release()  # again
    assert done.value == 1


def test_only_the_owner_releases_a_column(stage: Stage) -> None:
    column = SensorTableClaim(SharedState(stage.name), SENSOR.name)
    done, other = open_semaphore(stage.name, SENSOR.name, "done"), os.getppid()
    before = done.value
    stage.column.header[OWNER], stage.column.header[SYNCHRONOUS] = other, 30
    column.release()
    assert stage.column.header[OWNER] == other and stage.column.header[SYNCHRONOUS] == 30 and done.value == before


# -- the lock itself ---------------------------------------------------------------------------------------


def test_the_lock_is_given_back_whatever_happens(stage: Stage) -> None:
    name = f"/wavesim.{stage.name}.claim"
    with pytest.raises(ZeroDivisionError), ClaimLock(stage.name):
        assert value(name) == 0
        raise ZeroDivisionError
    assert value(name) == 1


def test_a_dead_holder_loses_it_and_it_is_one_lock_still(stage: Stage) -> None:
    name = f"/wavesim.{stage.name}.claim"
    posix_ipc.Semaphore(name).acquire()  # by a process that died inside
    with ClaimLock(stage.name, timeout=0):
        assert value(name) == 0
    assert value(name) == 1
    posix_ipc.Semaphore(name).acquire()
    with ClaimLock(stage.name, timeout=0):
        posix_ipc.Semaphore(name).release()  # it lived after all
    assert value(name) == 1, "never two at once"


def test_the_lock_waits_for_a_live_holder(stage: Stage) -> None:
    order = []

    def second() -> None:
        with ClaimLock(stage.name, timeout=30.0):
            order.append("second")

    with ClaimLock(stage.name):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_semaphores_that_are_not_there(stage: Stage) -> None:
    with (
        pytest.raises(NotRunning, match="no server named 'absent' is running; "),
        ClaimLock("absent"),
    ):
        pass
    with pytest.raises(NotRunning, match=f"the server '{stage.name}' is shutting down"):
        open_semaphore(stage.name, "gauge", "late")
    with pytest.raises(posix_ipc.ExistentialError):
        create_semaphores(stage.name, [SENSOR.name])
    names = [f"/wavesim.{stage.name}.{n}" for n in ("claim", "gauge.due", "gauge.done")]
    assert remove_semaphores(stage.name, ["gauge", "other"]) == names
    assert remove_semaphores(stage.name, ["gauge", "other"]) == []


# -- the group -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("group", "mode"), [(False, 0o600), (True, 0o660)])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_umask_decides_nothing(group: bool, mode: int, umask: int) -> None:
    before = os.umask(umask)
    try:
        stage = Stage(f"attach-mode-{os.getpid()}", group)
    finally:
        assert os.umask(before) == umask, "the umask is as it was"
    try:
        files = list(Path("/dev/shm").glob(f"*wavesim.{stage.name}.*"))
        assert len(files) == 5
        assert {f.name: f.stat().st_mode & 0o777 for f in files} == {f.name: mode for f in files}
    finally:
        stage.close()


def as_somebody_else(what: Callable[[], None]) -> int:
    """Do it as another user of this group; the exit code: 0 if it went well, 3 for no permission."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            group = os.getgid()
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(65534, 65534, 65534)
            what()
            code = 0
        except AttachError:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("group", "code"), [(True, 0), (False, 3)])
def test_another_user_of_the_group_reads_writes_a_sensor_and_commands(group: bool, code: int) -> None:
    before = os.umask(0o077)
    stage = Stage(f"attach-group-{os.getpid()}", group)
    queue = CommanderQueue(stage.name, group)

    def read() -> None:
        SharedState(stage.name).snapshot()

    def write() -> None:
        column = SensorTableClaim(SharedState(stage.name), SENSOR.name)
        column.write(np.zeros(4, SENSOR.dtype), 5)
        column.signal_done()

    def command() -> None:
        with Commander(stage.name) as commander:
            commander.send("status")

    try:
        assert as_somebody_else(read) == as_somebody_else(write) == code
        if group:
            answered = threading.Thread(target=_answer, args=(queue,))
            answered.start()
            assert as_somebody_else(command) == 0
            answered.join()
            assert stage.column.snapshot()[0] == 5
    finally:
        os.umask(before)
        queue.close()
        stage.close()


def _answer(queue: CommanderQueue) -> None:
    from wavesim_sdk.commander import CommandReply

    while not (commands := list(queue.receive())):
        pass
    queue.reply(commands[0], CommandReply(True, "here"))
