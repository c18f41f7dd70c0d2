"""Common base of all bridges. It controls a vehicle step by step, and tolerates the loss of the on-board software or of
the server.
"""

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
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import BrokerError, Refused, SessionEnded, SessionLost, WaveSimError
from wavesim_sdk.terminal_text import echo

RECONNECT_S = 1.0  #: interval in s between attempts to find a lost server
#: maximum wall times in s to wait for a server: at the start, after a loss of contact, and after it has ended the
#: session
START_WAIT_S, LOST_WAIT_S, ENDED_WAIT_S = JOIN_TIMEOUT_S, 60.0, 5.0
#: wall time in s without data from the on-board software after which the vehicle receives neutral commands
STACK_TIMEOUT_S = 1.0
Frame = TypeVar("Frame")


class MalformedMessage(Exception):
    """Raised when a message from the on-board software violates its protocol. The text states the reason."""


@dataclass(frozen=True)
class BridgeOptions:
    """Vehicle, server address and period of a bridge. ``report`` prints a line for the user."""

    vehicle: str
    server: tuple[str, int]
    period: float  #: lockstep period in s of simulation time
    model: str = ""  #: model to use if the server's configuration does not contain the vehicle
    report: Callable[[str], None] = print
    server_wait_s: float | None = (
        #: time in s to wait for an unreachable server; None selects ``START_WAIT_S``, ``LOST_WAIT_S`` or
        #: ``ENDED_WAIT_S``
        None
    )


def bridge(name: str, period: float) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command `wavesim bridge NAME`. The decorated function receives the common options and its own
    options.
    """
    options = (
        click.option("--vehicle", required=True, help="Name of the vehicle."),
        address_options,
        click.option(
            "--model",
            default="",
            help='Model to use if the configuration does not contain the vehicle; needs <network newcomers="lockstep">.',
        ),
        click.option(
            "--period",
            type=Quantity("time"),
            default=period,
            show_default=True,
            help="Lockstep period in s; a multiple of the server's time step.",
        ),
        click.option(
            "--wait",
            type=Quantity("time", low=0.0, infinite=True),
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
                echo(f"{name}: {text}", err=True)

            function(BridgeOptions(vehicle, server, period, model, say, wait), **own)

        run.__doc__ = function.__doc__
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # those of its own
        for option in reversed(options):
            run = option(run)
        return click.command(name)(run)

    return make


class BridgedVehicle:
    """Vehicle that a bridge controls as its pilot, in lockstep, as long as the simulation runs.

    If the server stops responding, the bridge waits for it to be restarted. If the server ends the session, the bridge
    tries to join again. If the server had merely lost contact with the bridge, it accepts the new attempt immediately.
    If the server does not answer this attempt, it has shut down, and the bridge exits too. While the bridge is
    disconnected, the server removes the vehicle, as it does whenever it loses a pilot. ``joined`` is called as soon as
    the server has sent the vehicle's equipment, before the first step.
    """

    def __init__(self, options: BridgeOptions, joined: Callable[[AsyncBroker], None] = lambda _: None) -> None:
        self.options, self._on_joined = options, joined
        self.broker: AsyncBroker | None = None
        self.drops: Counter[str] = Counter()  #: number of unusable messages from the on-board software, by reason

    async def steps(self) -> AsyncIterator[tuple[AsyncBroker, Step]]:
        """Yield every step until the run ends; each step waits for ``broker.answer``. Raise BrokerError if the server
        does not return.
        """
        seat, known, clock = self.options, False, asyncio.get_running_loop().time
        why: BrokerError | None = None  # no server found
        until = clock() + (START_WAIT_S if seat.server_wait_s is None else seat.server_wait_s)
        while True:
            broker = AsyncBroker(seat.vehicle, seat.server, model=seat.model, lockstep=seat.period, effort=True)
            try:
                await broker.connect(min(max(until - clock(), RECONNECT_S), JOIN_TIMEOUT_S))
                self.broker, known, why = broker, True, None
                self._on_joined(broker)
                seat.report(f"'{seat.vehicle}' joined, one step every {1e3 * seat.period:g} ms")
                async for step in broker.steps():
                    yield broker, step
                broker.raise_if_shut_down()  # another server may follow
                return
            except (Refused, SessionLost) as lost:
                if broker.ended:
                    return
                if known and why is None:
                    why, seconds = lost, self._patience(lost)
                    until = clock() + seconds
                    seat.report(f"{lost}; waiting up to {seconds:g} s for a server")
                elif clock() >= until or (isinstance(lost, Refused) and not known):
                    raise why or lost from None
            finally:
                self.broker = None
                await broker.close()
            await asyncio.sleep(RECONNECT_S)

    def _patience(self, lost: BrokerError) -> float:
        """Return the maximum time in s to wait for a server that was connected before."""
        over = ENDED_WAIT_S if isinstance(lost, SessionEnded) else LOST_WAIT_S
        return over if self.options.server_wait_s is None else self.options.server_wait_s

    def count_dropped(self, reason: str) -> None:
        """Count an unusable message from the on-board software by its reason, and report the first message for each
        reason.
        """
        self.drops[reason] += 1
        if self.drops[reason] == 1:
            self.options.report(f"a datagram from the on-board software was dropped: {reason}")


def run_together(bridges: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run several bridges in one process, at a fraction of the cost of separate processes. If one bridge fails, all of
    them end.
    """

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for one in bridges:
                group.create_task(one)

    try:
        asyncio.run(run())
    except* WaveSimError as errors:
        raise errors.exceptions[0] from None


def port_unavailable(kind: str, port: int, error: OSError) -> BrokerError:
    """Return the error for a port that cannot be opened. ``kind`` is UDP or TCP."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return BrokerError(f"cannot listen on {kind} port {port}: {reason}; is another bridge using it?")


def last(first: int, apart: int, instance: int) -> None:
    """Raise BrokerError if the last vehicle of a bridge would need a port number that does not exist."""
    if (port := first + apart * instance) > 65535:
        raise BrokerError(f"instance {instance} would need port {port}; the highest port is 65535")


def true_motion(step: Step, who: str) -> VehicleMotion:
    """Return the vehicle's true motion. Raise BrokerError if the server does not provide the motion; in the message,
    ``who`` names the component that needs it.
    """
    motion = motion_of(step.state)
    if motion is None:
        raise BrokerError(f"the server does not send this vehicle its true state, which {who} needs")
    return motion


def distances(step: Step, sensors: Sequence[str]) -> list[float]:
    """Return the distance in m measured by each of the given sensors, or -1 for a sensor without an echo. The distance
    is the first number in a sensor's value.
    """
    found = []
    for name in sensors:
        value = step.sensors.get(name)
        distance = math.nan if value is None else float(value.numbers[0])
        found.append(distance if math.isfinite(distance) else -1.0)
    return found


class LatestValue(Generic[Frame]):
    """Single-frame buffer between a socket and a waiting loop. A newer frame replaces an unread one."""

    def __init__(self) -> None:
        self._frame: Frame | None = None
        self._came = asyncio.Event()

    def put(self, frame: Frame) -> None:
        """Store a new frame in the buffer."""
        self._frame = frame
        self._came.set()

    async def take(self, seconds: float) -> Frame | None:
        """Wait for the next frame. Return None after the time-out."""
        if self._frame is None:
            self._came.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._came.wait()
        frame, self._frame = self._frame, None
        return frame
