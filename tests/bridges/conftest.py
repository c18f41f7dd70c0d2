"""Bridges, each the command in a process of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import CLI, Server


class Bridge:
    """`wavesim bridge KIND`, once it has joined."""

    def __init__(self, kind: str, server: Server, vehicle: str, *options: str) -> None:
        self.process = subprocess.Popen(
            [*CLI, "bridge", kind, "--vehicle", vehicle, "--port", str(server.port), *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert f"'{vehicle}' joined" in line, line + self.process.stderr.read()

    def end(self) -> str:
        """What it has said since."""
        self.process.terminate()
        return self.process.communicate(timeout=20)[1]


Fly = Callable[..., Bridge]  #: kind, server, vehicle, options


@pytest.fixture
def fly() -> Iterator[Fly]:
    """Start bridges; they are ended after the test."""
    found: list[Bridge] = []

    def start(kind: str, server: Server, vehicle: str, *options: str) -> Bridge:
        found.append(Bridge(kind, server, vehicle, *options))
        return found[-1]

    yield start
    for bridge in found:
        if bridge.process.poll() is None:
            bridge.end()
        if bridge.process.stderr is not None:
            bridge.process.stderr.close()
