"""Code shared by all bridges: servers that start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import pytest

from wavesim_bridges.core import RECONNECT_S, BridgedVehicle, BridgeOptions
from wavesim_sdk.errors import BrokerError, Refused, SessionEnded, SessionLost
from wavesim_sdk.testing import FakeServer


@asynccontextmanager
async def flown(vehicle: BridgedVehicle) -> AsyncIterator[asyncio.Task[None]]:
    """A bridge that answers whatever it is asked."""

    async def fly() -> None:
        async for broker, _ in vehicle.steps():
            broker.answer([0.0] * len(broker.actuators))

    task = asyncio.create_task(fly())
    yield task
    task.cancel()
    await asyncio.wait([task])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20.0):
        while not condition():
            await asyncio.sleep(0.01)


def a_seat(server: FakeServer, said: list[str], wait: float | None) -> BridgedVehicle:
    return BridgedVehicle(BridgeOptions("boat", server.address, 0.02, "otter", said.append, wait))


def test_a_session_that_is_over_while_the_server_goes_on_begins_anew() -> None:
    """After a machine that stood still, say: the server gave the bridge up, and takes it again."""
    said: list[str] = []

    async def run() -> None:
        with FakeServer() as server:
            vehicle = a_seat(server, said, None)
            async with flown(vehicle):
                for _ in range(2):
                    await until(lambda: vehicle.broker is not None)
                    server.bye("boat", "no activity within the keep-alive timeout")
                    await until(lambda: vehicle.broker is None)
                await until(lambda: vehicle.broker is not None)

    asyncio.run(run())
    joined, over = (
        "'boat' joined, one step every 20 ms",
        "no activity within the keep-alive timeout; waiting up to 5 s for a server",
    )
    assert [s.removeprefix("the server ended the session: ") for s in said] == [joined, over, joined, over, joined]


@pytest.mark.parametrize("goodbye", [True, False])
def test_a_server_that_has_gone_ends_the_bridge_in_its_words(goodbye: bool) -> None:
    said: list[str] = []

    async def run() -> None:
        with ExitStack() as there:
            server = there.enter_context(FakeServer())
            server.sessions._timeout = 1.0
            vehicle = a_seat(server, said, 0.2)
            async with flown(vehicle) as task:
                await until(lambda: vehicle.broker is not None)
                if goodbye:
                    server.bye("boat", "the server shuts down")
                there.close()
                why = "the server shuts down" if goodbye else "no server answers"
                with pytest.raises(SessionLost, match=why) as lost:
                    await asyncio.wait_for(task, 20.0)
                assert isinstance(lost.value, SessionEnded) is goodbye

    asyncio.run(run())
    assert len(said) == 2 and said[1].endswith("; waiting up to 0.2 s for a server")


def test_a_server_that_is_not_there_is_waited_for_as_long_as_is_wished() -> None:
    async def run() -> float:
        with FakeServer() as gone:
            vehicle = a_seat(gone, [], 0.0)
        began = asyncio.get_running_loop().time()
        async with flown(vehicle) as task:
            with pytest.raises(SessionLost, match="no server answers"):
                await asyncio.wait_for(task, 20.0)
        return asyncio.get_running_loop().time() - began

    assert RECONNECT_S <= asyncio.run(run()) < 8.0, "one attempt; without the option ten seconds"


def test_a_refusal_at_the_start_is_a_mistake() -> None:
    def no(*_: object) -> None:
        raise Refused("there is no body 'boat'")

    async def run() -> None:
        with FakeServer(no) as server:  # type: ignore[arg-type]
            async with flown(a_seat(server, [], 60.0)) as task:
                with pytest.raises(BrokerError, match="refused"):
                    await asyncio.wait_for(task, 20.0)

    asyncio.run(run())
