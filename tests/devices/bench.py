"""A virtual device as a process, beside a real server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import Server
from tests.nursery import launch


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that end with the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for p in started:
        p.terminate()
    for p in started:
        p.wait(15)
        if p.stdout is not None:
            p.stdout.close()


def device(processes: list[subprocess.Popen[str]], server: Server, kind: str, *options: str, own: str = "") -> str:
    """Start a virtual device of the boat, which no other program drives; return the places of its ports. ``own`` is the
    file of a device of one's own (kind `run`).
    """
    command = ["device", kind, *([own] if own else []), "boat", "--pilot", "--port", str(server.port), *options]
    processes.append(launch(*command, stdout=subprocess.PIPE))
    assert processes[-1].stdout is not None
    return processes[-1].stdout.readline().partition(" at ")[2].strip()
