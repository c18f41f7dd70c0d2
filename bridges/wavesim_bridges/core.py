"""What all bridges share: a seat in a vehicle, step by step, come what may to the stack or to the server."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from wavesim_bridges.motion import Motion, motion_of
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError, SessionLost, WaveSimError

AGAIN_S = 1.0  #: between two attempts to find a server that was lost
SILENT_S = 1.0  #: of wall time, after which a stack counts as gone and the vehicle is told to stand


@dataclass(frozen=True)
class Seat:
    """Which vehicle, where, how often. ``say`` prints a line for people."""

    vehicle: str
    server: tuple[str, int]
    period: float  #: of lockstep, s of simulation time
    model: str = ""  #: for a vehicle that the configuration does not name
    say: Callable[[str], None] = print


def bridge(name: str, period: float) -> Callable[[Callable[..., None]], click.Command]:
    """A command `wavesim bridge NAME`: the function gets the seat, and the options of its own."""
    options = (
        click.option("--vehicle", required=True, help="Name of the vehicle."),
        click.option("--host", default="127.0.0.1", show_default=True, help="Server's address."),
        click.option("--port", default=9750, show_default=True, help="Server's port."),
        click.option("--model", default="", help="Model, for a vehicle that the configuration does not name."),
        click.option(
            "--period", default=period, show_default=True, help="Lockstep period in s, a multiple of the server's step."
        ),
    )

    def make(function: Callable[..., None]) -> click.Command:
        def run(vehicle: str, host: str, port: int, model: str, period: float, **own: Any) -> None:
            function(
                Seat(vehicle, (host, port), period, model, lambda text: click.echo(f"{name}: {text}", err=True)), **own
            )

        run.__doc__ = function.__doc__
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # those of its own
        for option in reversed(options):
            run = option(run)
        return click.command(name)(run)

    return make


class Vehicle:
    """The vehicle of a bridge: its pilot, in lockstep, for as long as there is a run.

    A server that goes away is waited for; while the bridge itself is away the vehicle leaves, as with any pilot that dies.
    """

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.broker: AsyncBroker | None = None
        self.drops: Counter[str] = Counter()  #: what came from the stack and could not be used, by reason

    async def steps(self) -> AsyncIterator[tuple[AsyncBroker, Step]]:
        """Every step until the run has ended; each waits for ``broker.answer``."""
        seat, token, known = self.seat, 0, False
        while True:
            broker = AsyncBroker(
                seat.vehicle, seat.server, model=seat.model, lockstep=seat.period, effort=True, previous=token
            )
            try:
                async with broker:
                    self.broker, token, known = broker, broker.token, True
                    seat.say(f"'{seat.vehicle}' joined, asked every {1e3 * seat.period:g} ms")
                    async for step in broker.steps():
                        yield broker, step
                    return
            except SessionLost as lost:
                if not known:
                    raise  # it never was there: the user's mistake
                seat.say(f"{lost}; trying again")
                token = 0
                await asyncio.sleep(AGAIN_S)
            finally:
                self.broker = None

    def drop(self, reason: str) -> None:
        """Something from the stack was of no use: counted, and told the first time."""
        self.drops[reason] += 1
        if self.drops[reason] == 1:
            self.seat.say(f"a datagram of the stack was dropped: {reason}")


def together(bridges: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Several bridges in one process, which costs a fraction of as many processes. The first that fails ends all."""

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for one in bridges:
                group.create_task(one)

    try:
        asyncio.run(run())
    except* WaveSimError as errors:
        raise errors.exceptions[0] from None


def taken(kind: str, port: int, error: OSError) -> BrokerError:
    """A port (``kind``: UDP or TCP) cannot be had."""
    return BrokerError(f"cannot listen at {kind} port {port}: {error.strerror or error}; is it another bridge's?")


def truth(step: Step, who: str) -> Motion:
    """How the vehicle moves; BrokerError where the server does not say, which ``who`` cannot do without."""
    motion = motion_of(step.state)
    if motion is None:
        raise BrokerError(f"the server hides the truth from this vehicle, and {who} needs it")
    return motion


def distances(step: Step, sensors: Sequence[str]) -> list[float]:
    """The first number of each of these sensors in m; -1 where there is no echo."""
    found = []
    for name in sensors:
        value = step.sensors.get(name)
        distance = math.nan if value is None else float(value.numbers[0])
        found.append(distance if math.isfinite(distance) else -1.0)
    return found


class Latest:
    """Hands frames from a socket to a loop that waits for them: what is not taken in time is overtaken."""

    def __init__(self) -> None:
        self._frame: bytes | None = None
        self._came = asyncio.Event()

    def put(self, frame: bytes) -> None:
        """A new one."""
        self._frame = frame
        self._came.set()

    async def take(self, seconds: float) -> bytes | None:
        """The next one; None when none comes in time."""
        if self._frame is None:
            self._came.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._came.wait()
        frame, self._frame = self._frame, None
        return frame
