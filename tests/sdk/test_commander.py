"""The queue of the commander: answers of any size, readers that are slow or killed, and queues of killed clients."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import posix_ipc
import pytest

from wavesim_sdk import commander as module
from wavesim_sdk import reply_queue
from wavesim_sdk.commander import COMMAND_BYTES, Commander, CommanderQueue, CommandReply, parse_command, queue_name
from wavesim_sdk.errors import CommanderError, NotRunning
from wavesim_sdk.reply_queue import (
    HEAD_BYTES,
    PATIENCE_S,
    PIECE_BYTES,
    ROOM_BYTES,
    WAITING,
    ReplyAssembler,
    ReplyOutbox,
    split_reply,
)

NAME = f"commander-test-{os.getpid()}"
SHARE = PIECE_BYTES - HEAD_BYTES


@pytest.fixture
def server() -> Iterator[CommanderQueue]:
    queue = CommanderQueue(NAME)
    yield queue
    queue.close()
    assert reply_queue.remove_stale_queues(NAME) == [] and list(Path("/dev/shm").glob(f"wavesim.{NAME}.*")) == []


@contextlib.contextmanager
def answering(server: CommanderQueue, *answers: Callable[[dict[str, Any]], CommandReply]) -> Iterator[None]:
    """A front in a thread that gives these answers, one after the other."""

    def run() -> None:
        left, now = list(answers), 0.0
        while not ended.is_set():
            for command in server.receive():
                server.reply(command, left.pop(0)(command))
            server.poll(now)
            now += 1e-6

    ended = threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# -- pieces ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, SHARE - 1, SHARE, SHARE + 1, 2 * SHARE, 100_000])
@pytest.mark.parametrize("number", [0, 2**63 - 1])
def test_a_text_of_any_size_is_joined_again(size: int, number: int) -> None:
    text = os.urandom(size)
    messages = split_reply(number, text)
    assert len(messages) == max(1, -(-size // SHARE))
    assert all(len(m) <= PIECE_BYTES for m in messages)
    joiner = ReplyAssembler(number)
    *before, last = [joiner.add(m) for m in messages]
    assert before == [None] * len(before) and last == text


def test_the_head_has_room_for_the_greatest_numbers() -> None:
    parts = ROOM_BYTES // SHARE + 1
    assert len(f"{2**63 - 1} {parts - 1} {parts}\n") <= HEAD_BYTES


def test_pieces_of_other_answers_are_left_out() -> None:
    mine, late = split_reply(7, bytes(3 * SHARE)), split_reply(17, b"x" * 3 * SHARE)
    joiner = ReplyAssembler(7)
    assert [joiner.add(m) for m in (late[0], mine[0], late[1], mine[1], mine[1], mine[0], late[2])] == [None] * 7
    assert joiner.add(mine[2]) == bytes(3 * SHARE)


# -- question and answer -------------------------------------------------------------------------------


def test_an_answer_of_a_megabyte_comes_whole(server: CommanderQueue) -> None:
    data = {"missing": [f"vehicle-{k}" for k in range(60_000)]}
    with Commander(NAME) as client, answering(server, lambda c: CommandReply(True, c["verb"], data)):
        assert client.send("status") == CommandReply(True, "status", data)
    assert server.undelivered_count == 0


def test_arguments_and_refusals_arrive(server: CommanderQueue) -> None:
    with (
        Commander(NAME) as client,
        answering(server, lambda c: CommandReply(False, json.dumps(c["matrix"])), lambda c: CommandReply(True, "")),
    ):
        matrix = [[0.1234567890123456] * 12] * 6
        assert client.send("allocate", matrix=matrix) == CommandReply(False, json.dumps(matrix))
        assert client.send("status") == CommandReply(True, "", {})


def test_an_answer_that_came_too_late_is_not_taken_for_the_next(server: CommanderQueue) -> None:
    with Commander(NAME) as client:
        with pytest.raises(CommanderError, match=f"'{NAME}' did not answer 'stop' within 0 s"):
            client.send("stop", timeout=0)
        with answering(
            server, lambda c: CommandReply(True, c["verb"] * 10_000), lambda c: CommandReply(True, c["verb"])
        ):
            assert client.send("start").text == "start"


def test_a_signal_does_not_end_the_waiting(server: CommanderQueue) -> None:
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))

    def answer(command: dict[str, Any]) -> CommandReply:
        os.kill(os.getpid(), signal.SIGUSR1)
        return CommandReply(True, "yes")

    try:
        with Commander(NAME) as client, answering(server, answer):
            assert client.send("start").text == "yes" and seen
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_what_cannot_be_sent_says_why(server: CommanderQueue) -> None:
    with Commander(NAME) as client:
        with pytest.raises(CommanderError, match=f"bytes; the maximum is {COMMAND_BYTES}$"):
            client.send("start", text="x" * COMMAND_BYTES)
        for _ in range(module.QUEUE_LENGTH):
            with pytest.raises(CommanderError, match="did not answer"):
                client.send("start", timeout=0)
        with pytest.raises(CommanderError, match="is not accepting commands"):
            client.send("start", timeout=0)
    with pytest.raises(NotRunning, match="no server named 'absent' is running"):
        Commander("absent")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[" * 3000,
        b"[]",
        b"1",
        b'"start"',
        b'{"verb": 1, "id": 1}',
        b'{"verb": "start"}',
        b'{"id": 1}',
        b'{"verb": "start", "id": "1"}',
        b'{"verb": "start", "id": true}',
        b'{"verb": "start", "id": -1}',
        b'{"verb": "start", "id": 9223372036854775808}',
        b'{"verb": "start", "id": 1.0}',
    ],
)
def test_what_is_no_command_is_counted(server: CommanderQueue, data: bytes) -> None:
    queue = posix_ipc.MessageQueue(queue_name(NAME))
    good = b'{"verb": "start", "id": 9223372036854775807}'
    assert parse_command(data) is None and parse_command(good) == json.loads(good)
    for message in (good, data, good):
        queue.send(message)
    assert list(server.receive()) == [json.loads(good)] * 2
    assert server.malformed_count == 1
    queue.close()


@pytest.mark.parametrize(
    "name",
    [
        None,
        1,
        "",
        "/other",
        queue_name("SERVER").replace("SERVER", "{}"),
        *(f"/wavesim.{{}}.reply.{end}" for end in ("no", "\0", "a\n", "", "x" * 300)),
    ],
)
def test_an_answer_goes_to_queues_for_replies_alone(server: CommanderQueue, name: object) -> None:
    name = name.format(NAME) if isinstance(name, str) else name
    server.reply({"verb": "start", "id": 1, "reply": name}, CommandReply(True, ""))
    server.reply({"verb": "start", "id": 1}, CommandReply(True, ""))
    assert list(server.receive()) == [] and server.malformed_count == 0 and server.undelivered_count == 0


# -- readers that are slow or dead -----------------------------------------------------------------------


class Asker:
    """A queue for replies of which somebody else may be slow to read."""

    def __init__(self, name: str, size: int = PIECE_BYTES) -> None:
        self.name = f"/wavesim.{NAME}.reply.{name}"
        self.queue = posix_ipc.MessageQueue(self.name, posix_ipc.O_CREX, max_messages=2, max_message_size=size)

    def take(self) -> list[bytes]:
        found = []
        with contextlib.suppress(posix_ipc.BusyError):
            while True:
                found.append(self.queue.receive(0)[0])
        return found

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self.queue.close()
        posix_ipc.unlink_message_queue(self.name)


def test_a_slow_reader_gets_all_of_it_in_its_own_time() -> None:
    outbox, text = ReplyOutbox(), os.urandom(10 * SHARE)
    with Asker("slow") as asker:
        assert outbox.send(asker.name, 1, text)
        got, now = asker.take(), 100.0
        assert len(got) == 2
        while len(got) < 10:
            now += 0.9 * PATIENCE_S  # each time something is taken the patience begins again
            outbox.poll(now)
            got += asker.take()
        joiner = ReplyAssembler(1)
        assert [joiner.add(m) for m in got][-1] == text
        outbox.poll(now + 1000.0)
        assert asker.take() == [] and outbox.abandoned_count == 0


def test_a_reader_that_takes_nothing_is_given_up_and_makes_room() -> None:
    outbox = ReplyOutbox()
    with Asker("dead") as asker:
        for k in range(WAITING):
            assert outbox.send(asker.name, k, bytes(3 * SHARE))
        assert not outbox.send(asker.name, WAITING, b"")
        for now in (10.0, 10.0 + 0.99 * PATIENCE_S):
            outbox.poll(now)
            assert outbox.abandoned_count == 0 and not outbox.send(asker.name, WAITING, b"")
        outbox.poll(10.0 + PATIENCE_S)
        assert outbox.abandoned_count == WAITING
        assert len(asker.take()) == 2, "what it had room for"
        assert outbox.send(asker.name, WAITING, b"") and len(asker.take()) == 1


def test_all_that_wait_have_a_bound_in_bytes() -> None:
    outbox = ReplyOutbox()
    half = bytes(ROOM_BYTES // 2)
    with Asker("large") as asker:
        assert not outbox.send(asker.name, 1, half + half + b"x")
        assert asker.take() == []
        assert outbox.send(asker.name, 1, half)
        assert outbox.send(asker.name, 2, half)
        assert not outbox.send(asker.name, 3, b"x")
        outbox.close()
        assert outbox.send(asker.name, 4, half)
        outbox.close()


def test_an_answer_without_room_is_refused_in_few_words(server: CommanderQueue) -> None:
    with Asker("huge") as asker:
        command = {"verb": "status", "id": 5, "reply": asker.name}
        server.reply(command, CommandReply(True, "x" * (ROOM_BYTES + 1)))
        joined = ReplyAssembler(5).add(asker.take()[0])
        no_room = {
            "id": 5,
            "ok": False,
            "text": "the server cannot send this reply, because too many earlier replies are undelivered",
            "data": {},
        }
        assert joined is not None and json.loads(joined) == no_room
        assert server.undelivered_count == 0
        for _ in range(WAITING + 1):
            server.reply(command, CommandReply(True, "x" * 3 * SHARE))
        assert server.undelivered_count == 1


def test_the_server_gives_up_an_asker_that_takes_nothing(server: CommanderQueue) -> None:
    with Asker("gone") as asker:
        server.reply({"verb": "status", "id": 5, "reply": asker.name}, CommandReply(True, "x" * 3 * SHARE))
        for now in (10.0, 10.0 + 0.99 * PATIENCE_S):
            server.poll(now)
        assert server.undelivered_count == 0
        server.poll(10.0 + PATIENCE_S)
        assert server.undelivered_count == 1


def test_a_queue_for_small_messages_is_given_up() -> None:
    outbox = ReplyOutbox()
    with Asker("small", 100) as asker:
        assert outbox.send(asker.name, 1, bytes(500))
        assert outbox.abandoned_count == 1
        outbox.poll(1.0)
        assert outbox.abandoned_count == 1 and asker.take() == []


def test_waiting_answers_cost_no_descriptors_when_they_are_done(server: CommanderQueue) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Asker("fds") as asker:
        for _ in range(10):
            server.reply({"verb": "status", "id": 5, "reply": asker.name}, CommandReply(True, "x" * 3 * SHARE))
            asker.take()
        for k in range(30):
            server.poll(float(k))
            asker.take()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# -- what killed clients leave ---------------------------------------------------------------------------


CLIENTS = """
import os, signal, sys
from wavesim_sdk.commander import Commander
for _ in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        try:
            Commander(sys.argv[1])
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
"""


def killed_clients(count: int) -> None:
    """Processes that make a commander each and are killed with it."""
    subprocess.run([sys.executable, "-c", CLIENTS, NAME, str(count)], check=True)


def left() -> list[Path]:
    return list(Path("/dev/shm").glob(f"wavesim.{NAME}.reply.*"))


def test_three_hundred_killed_clients_leave_room_for_the_next(server: CommanderQueue) -> None:
    killed_clients(300)
    with Commander(NAME) as client, answering(server, lambda c: CommandReply(True, "here")):
        assert client.send("status").text == "here"
        assert len(left()) == 1, "its own"
    killed_clients(1)
    (dead,) = left()
    reply_queue.remove_stale_queues(NAME)
    assert left() == []
    with pytest.raises(posix_ipc.ExistentialError):
        posix_ipc.MessageQueue(f"/{dead.name}")


def test_where_there_is_no_room_the_dead_of_other_servers_make_it(
    server: CommanderQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[object] = []
    swept: list[str] = []
    make = reply_queue.ReplyQueue._make

    def refused_once(queue: reply_queue.ReplyQueue) -> posix_ipc.MessageQueue:
        tries.append(queue)
        if len(tries) == 1:
            raise OSError(24, "Too many open files")
        return make(queue)

    monkeypatch.setattr(reply_queue.ReplyQueue, "_make", refused_once)
    monkeypatch.setattr(reply_queue, "remove_stale_queues", lambda name="*": swept.append(name))
    Commander(NAME).close()
    assert len(tries) == 2 and swept == [NAME, "*"]


def test_the_server_sweeps_at_its_first_turn_and_now_and_then(server: CommanderQueue) -> None:
    killed_clients(1)
    server.poll(50.0)
    assert left() == []
    killed_clients(1)
    server.poll(50.0 + 0.9 * module.SWEEP_S)
    assert len(left()) == 1
    server.poll(50.0 + module.SWEEP_S)
    assert left() == []


def test_a_sweep_touches_nobody_alive_and_nothing_else(server: CommanderQueue) -> None:
    other = posix_ipc.SharedMemory(f"/wavesim.{NAME}.reply.1.2.simulation", posix_ipc.O_CREX)
    other.close_fd()
    with Commander(NAME) as client:
        name = client._reply.name
        assert reply_queue.remove_stale_queues(NAME) == []
        assert {p.name for p in left()} == {name[1:], other.name[1:]}
        posix_ipc.MessageQueue(name).close()
    other.unlink()
    _, _, pid, start, number = name.rsplit(".", 4)
    assert int(pid) == os.getpid() and int(start) > 0 and int(number) > 0
    used_again = posix_ipc.SharedMemory(f"/wavesim.{NAME}.reply.{pid}.{int(start) + 1}.1", posix_ipc.O_CREX)
    used_again.close_fd()
    assert reply_queue.remove_stale_queues(NAME) == [used_again.name], "the PID lives, but it is another process"


def test_no_room_for_a_queue_is_one_clear_line(server: CommanderQueue) -> None:
    before = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, before[1]))
    try:
        with pytest.raises(CommanderError, match="queue for replies \\(see ulimit -q\\)"):
            Commander(NAME)
        assert left() == []
        with pytest.raises(CommanderError, match="commander queue \\(see ulimit -q, /dev/mqueue\\)"):
            CommanderQueue(NAME + "x")
    finally:
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, before)


# -- who may ---------------------------------------------------------------------------------------------


def mode(queue: posix_ipc.MessageQueue) -> int:
    return os.fstat(queue.mqd).st_mode & 0o777


@pytest.mark.parametrize("group", [False, True])
def test_the_umask_takes_nothing_from_the_group(group: bool) -> None:
    before = os.umask(0o077)
    server = None
    try:
        server = CommanderQueue(NAME, group)
        with Commander(NAME) as client:
            assert (
                mode(server._queue) == mode(client._queue) == mode(client._reply._queue) == (0o620 if group else 0o600)
            )
            if group:
                assert os.fstat(client._reply._queue.mqd).st_gid == os.fstat(server._queue.mqd).st_gid
    finally:
        os.umask(before)
        if server is not None:
            server.close()


def test_closing_removes_both_queues() -> None:
    server = CommanderQueue(NAME)
    assert isinstance(server.fd, int) and os.fstat(server.fd)
    client = Commander(NAME)
    reply = client._reply.name
    client.close()
    server.close()
    for name in (reply, queue_name(NAME)):
        with pytest.raises(posix_ipc.ExistentialError):
            posix_ipc.MessageQueue(name)
    assert left() == []
