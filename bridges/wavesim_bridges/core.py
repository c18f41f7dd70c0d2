"""What all bridges share: a seat in a vehicle, step by step, come what may to the stack or to the server."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import click

from wavesim_bridges.vehicle_motion import VehicleMotion, motion_of
from wavesim_sdk.broker import JOIN_TIMEOUT_S, AsyncBroker, Step
from wavesim_sdk.cli_commands import address_options
from wavesim_sdk.errors import BrokerError, Refused, SessionEnded, SessionLost, WaveSimError

RECONNECT_S = 1.0  #: between two attempts to find a server that was lost
#: of wall time, so long a server is waited for: at the start, after it fell silent, after it said that the session is over
START_WAIT_S, LOST_WAIT_S, ENDED_WAIT_S = JOIN_TIMEOUT_S, 60.0, 5.0
STACK_TIMEOUT_S = 1.0  #: of wall time, after which a stack counts as gone and the vehicle is told to stand
Frame = TypeVar("Frame")


class MalformedMessage(Exception):
    """A message from an on-board stack that does not have the form of its protocol; the text is the reason."""


@dataclass(frozen=True)
class BridgeOptions:
    """Which vehicle, where, how often. ``say`` prints a line for people."""

    vehicle: str
    server: tuple[str, int]
    period: float  #: of lockstep, s of simulation time
    model: str = ""  #: for a vehicle that the configuration does not name
    report: Callable[[str], None] = print
    server_wait_s: float | None = (
        None  #: for a server that is not there, s; None: ``START_WAIT_S``, ``LOST_WAIT_S``, ``ENDED_WAIT_S``
    )


def bridge(name: str, period: float) -> Callable[[Callable[..., None]], click.Command]:
    """A command `wavesim bridge NAME`: the function gets the seat, and the options of its own."""
    options = (
        click.option("--vehicle", required=True, help="Name of the vehicle."),
        address_options,
        click.option(
            "--model",
            default="",
            help='Model of a vehicle that is not in the configuration, which must set <network newcomers="lockstep">.',
        ),
        click.option(
            "--period",
            default=period,
            show_default=True,
            help="Lockstep period in s; a multiple of the server's time step.",
        ),
        click.option(
            "--wait",
            type=click.FloatRange(min=0.0),
            metavar="SECONDS",
            help="Time in s to wait for an unreachable server; `inf` = forever. Default: 10 s at the start, 60 s after contact "
            "is lost, 5 s after the server shuts down.",
        ),
    )

    def make(function: Callable[..., None]) -> click.Command:
        def run(
            vehicle: str, server: tuple[str, int], model: str, period: float, wait: float | None, **own: Any
        ) -> None:
            def say(text: str) -> None:
                click.echo(f"{name}: {text}", err=True)

            function(BridgeOptions(vehicle, server, period, model, say, wait), **own)

        run.__doc__ = function.__doc__
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # those of its own
        for option in reversed(options):
            run = option(run)
        return click.command(name)(run)

    return make


class BridgedVehicle:
    """The vehicle of a bridge: its pilot, in lockstep, for as long as there is a run.

    A server that fell silent is waited for: it may be started anew. One that said that the session is over may only have missed
    us, and takes us again at once; if none answers any more it has shut down, and that is the end of the bridge too. While the
    bridge itself is away the vehicle leaves, as with any pilot that dies. ``joined`` is called as soon as the server has told what
    the vehicle has, which is before its first step.
    """

    def __init__(self, options: BridgeOptions, joined: Callable[[AsyncBroker], None] = lambda _: None) -> None:
        self.options, self._on_joined = options, joined
        self.broker: AsyncBroker | None = None
        self.drops: Counter[str] = Counter()  #: what came from the stack and could not be used, by reason

    async def steps(self) -> AsyncIterator[tuple[AsyncBroker, Step]]:
        """Every step until the run has ended; each waits for ``broker.answer``. BrokerError when there is no server any more."""
        seat, known, clock = self.options, False, asyncio.get_running_loop().time
        why: BrokerError | None = None  # there is no server
        until = clock() + (START_WAIT_S if seat.server_wait_s is None else seat.server_wait_s)
        while True:
            broker = AsyncBroker(seat.vehicle, seat.server, model=seat.model, lockstep=seat.period, effort=True)
            try:
                await broker.connect(min(max(until - clock(), RECONNECT_S), JOIN_TIMEOUT_S))
                self.broker, known, why = broker, True, None
                self._on_joined(broker)
                seat.report(f"'{seat.vehicle}' joined, asked every {1e3 * seat.period:g} ms")
                async for step in broker.steps():
                    yield broker, step
                return
            except (Refused, SessionLost) as lost:
                if broker.ended:
                    return
                if known and why is None:
                    why, seconds = lost, self._patience(lost)
                    until = clock() + seconds
                    seat.report(f"{lost}; waiting for a server, {seconds:g} s at most")
                elif clock() >= until or (isinstance(lost, Refused) and not known):
                    raise why or lost from None
            finally:
                self.broker = None
                await broker.close()
            await asyncio.sleep(RECONNECT_S)

    def _patience(self, lost: BrokerError) -> float:
        """So long a server that was there is waited for."""
        over = ENDED_WAIT_S if isinstance(lost, SessionEnded) else LOST_WAIT_S
        return over if self.options.server_wait_s is None else self.options.server_wait_s

    def count_dropped(self, reason: str) -> None:
        """Something from the stack was of no use: counted, and told the first time."""
        self.drops[reason] += 1
        if self.drops[reason] == 1:
            self.options.report(f"a datagram of the stack was dropped: {reason}")


def run_together(bridges: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Several bridges in one process, which costs a fraction of as many processes. The first that fails ends all."""

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for one in bridges:
                group.create_task(one)

    try:
        asyncio.run(run())
    except* WaveSimError as errors:
        raise errors.exceptions[0] from None


def port_unavailable(kind: str, port: int, error: OSError) -> BrokerError:
    """A port (``kind``: UDP or TCP) cannot be had."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return BrokerError(f"cannot listen at {kind} port {port}: {reason}; is it another bridge's?")


def last(first: int, apart: int, instance: int) -> None:
    """BrokerError where the last vehicle of a bridge would have a port that does not exist."""
    if (port := first + apart * instance) > 65535:
        raise BrokerError(f"instance {instance} would need port {port}; ports end at 65535")


def true_motion(step: Step, who: str) -> VehicleMotion:
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


class LatestValue(Generic[Frame]):
    """Hands frames from a socket to a loop that waits for them: what is not taken in time is overtaken."""

    def __init__(self) -> None:
        self._frame: Frame | None = None
        self._came = asyncio.Event()

    def put(self, frame: Frame) -> None:
        """A new one."""
        self._frame = frame
        self._came.set()

    async def take(self, seconds: float) -> Frame | None:
        """The next one; None when none comes in time."""
        if self._frame is None:
            self._came.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._came.wait()
        frame, self._frame = self._frame, None
        return frame
