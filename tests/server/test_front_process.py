"""The process of the front: a sender without pause does not keep other input from being processed."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.server.harbour import Harbour
from wavesim_sdk.commander import Commander, CommanderQueue
from wavesim_sdk.wire.udp import open_socket
from wavesim_server import messages
from wavesim_server.network.lockstep import Barrier
from wavesim_server.network.process import FrontProcess
from wavesim_server.ring import Ring
from wavesim_world.config import LoadedConfig

FLEET = '<fleet><vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/></fleet>'


async def test_an_engine_that_never_stops_telling_leaves_the_commander_its_turn(
    config: Callable[..., LoadedConfig], name: str
) -> None:
    """With a log that the front could just not keep up with, no command was answered any more."""
    harbour = Harbour(config(FLEET))
    records, takes = itertools.count(), 0
    record = messages.encode(messages.RunStateEvent(1, 5))
    queue, bell = CommanderQueue(name), os.eventfd(1, os.EFD_NONBLOCK)

    def endless() -> Iterator[Any]:
        nonlocal takes
        takes += 1
        while True:
            next(records)
            os.eventfd_write(bell, 1)  # as the engine does
            yield record

    front = harbour.front
    front.events = SimpleNamespace(pop_all=endless)  # type: ignore[assignment]  # as fast as it is taken
    process = FrontProcess(front, queue, bell, os.getppid())
    served = asyncio.create_task(process.run(open_socket("127.0.0.1", 0)))
    try:
        async with asyncio.timeout(30):
            with Commander(name) as commander:
                for _ in range(3):
                    assert (await asyncio.to_thread(commander.send, "status")).ok
        assert next(records) > 3
        for _ in range(20):  # nor does it take longer and longer until it is theirs
            before = takes
            await asyncio.sleep(0)
            assert takes - before <= 1
    finally:
        front.events = SimpleNamespace(pop_all=lambda: iter(()))  # type: ignore[assignment]
        process._ended.set()
        await served
        os.close(bell)


async def test_the_log_of_a_step_waits_until_the_step_has_been_answered() -> None:
    """Programs want the processors then, and the engine waits for them; but nobody waits for long."""
    ring, taken = Ring.create_private(4096), list[str]()
    front: Any = SimpleNamespace(
        events=ring, barrier=Barrier(1.0), outgoing=[], replies=[], set_time=lambda now: None, hand_over=lambda: None
    )

    def event(kind: int, payload: bytes, now: float) -> None:
        taken.append(payload.decode())
        if payload == b"step":
            front.barrier.begin(5, [1], now)

    front.event = event
    process: Any = FrontProcess(front, None, -1, 0)  # type: ignore[arg-type]  # it takes no commands
    process.udp = SimpleNamespace()
    for what in (b"signal", b"step", b"log", b"log"):
        ring.push(1, what)
    process._on_events()
    assert taken == ["signal", "step"]
    front.barrier.add_reply(1, 5, mock.Mock())
    assert front.barrier.take_replies(0.0)
    process._hand_over(0.0)
    await asyncio.sleep(0)
    assert taken == ["signal", "step", "log", "log"]

    for what in (b"step", b"log"):
        ring.push(1, what)
    process._on_events()
    assert taken[4:] == ["step"]
    async with asyncio.timeout(10):
        while len(taken) < 6:
            await asyncio.sleep(0)
    assert front.barrier.tick == 5, "nobody has answered"
