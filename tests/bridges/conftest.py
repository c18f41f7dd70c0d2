"""Fixtures: bridges, each as a command in its own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.bridges.program import Program
from tests.conftest import Server

Fly = Callable[..., Program]  #: kind, server, vehicle, options


@pytest.fixture
def fly() -> Iterator[Fly]:
    """Start bridges, each until it has joined; they are ended after the test."""
    found: list[Program] = []

    def start(kind: str, server: Server, vehicle: str, *options: str) -> Program:
        found.append(Program("bridge", kind, "--vehicle", vehicle, "--port", str(server.port), *options))
        found[-1].wait(f"'{vehicle}' joined")
        return found[-1]

    yield start
    for bridge in found:
        bridge.end()
