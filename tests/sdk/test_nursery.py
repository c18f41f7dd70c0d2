"""The process from which the tests fork our programs: its mistakes reach the test that asks, and it ends with the tests."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import nursery


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[nursery.Nursery, threading.Thread]]:
    """A nursery in a thread, which forks nothing."""
    monkeypatch.setattr(nursery, "_import", lambda: None)
    monkeypatch.setattr(nursery, "MOST_BYTES", 200)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    seen = object.__new__(nursery.Nursery)
    seen._socket, seen._lock = ours, threading.Lock()
    thread = threading.Thread(target=nursery.main, args=(theirs,))
    thread.start()
    yield seen, thread
    ours.close()
    thread.join(10.0)
    theirs.close()
    assert not thread.is_alive()


def test_an_error_reaches_the_test_and_the_nursery_continues(
    asked: tuple[nursery.Nursery, threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise BlockingIOError("no process is free")

    monkeypatch.setattr(nursery.forked_process, "fork_process", refuse)
    read, write = os.pipe()
    for request, words in (
        ({"run": ["check"], "folder": "/"}, "no process is free"),
        ({"run": ["x" * 300], "folder": "/"}, "more than 200 bytes"),
        ({"run": ["check"], "folder": "/"}, "no process is free"),
    ):
        with pytest.raises(OSError, match=words):
            asked[0].ask(request, write)
    os.close(write)
    assert os.read(read, 1) == b"", "the nursery has closed its descriptors"
    os.close(read)


def test_it_ends_if_nobody_waits_for_the_answer(
    asked: tuple[nursery.Nursery, threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = threading.Event()

    def late(*_: Any) -> int:
        assert left.wait(10.0)
        return 1

    monkeypatch.setattr(nursery, "_answer", late)
    caught: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", caught.append)
    asked[0]._socket.send(b"{}")
    asked[0]._socket.close()
    left.set()
    asked[1].join(10.0)
    assert not asked[1].is_alive() and caught == []


def test_a_program_that_takes_too_long_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    folders: list[Path] = []

    def fork(_words: list[str], folder: Path, out: int, error: int) -> subprocess.Popen[bytes]:
        os.close(out)
        os.close(error)
        folders.append(folder)
        return sleeper

    class Same:
        environment = nursery._environment()

    monkeypatch.setattr(nursery, "_nursery", Same)
    monkeypatch.setattr(nursery, "_fork", fork)
    with pytest.raises(subprocess.TimeoutExpired):
        nursery.run("check", timeout=0.01, cwd=Path())
    assert sleeper.returncode == -9 and folders == [Path()]


def test_the_folder_is_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Any] = []

    class Listening:
        def ask(self, request: Any, *_: int) -> int:
            requests.append(request)
            return 1

    monkeypatch.setattr(nursery, "_nursery", Listening)
    nursery._fork(["check"], Path("tests"), os.dup(1), os.dup(2))
    assert requests == [{"run": ["check"], "folder": str(Path.cwd() / "tests")}]
