"""Manual control: a page drives a body as its pilot, with the protocol that every broker uses, or applies a force to
it.

Dead man's switch: a command is valid for :data:`DEADMAN_S` of wall time. Every actuator returns to neutral, and the
force ends, when the user releases the keys, or when the page or its network stalls. If the page closes, its session
leaves the body.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from wavesim_sdk.body_force import BodyForce
from wavesim_sdk.broker import AsyncBroker
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.server_address import address_of
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model
from wavesim_world.manual_axes import NEUTRAL, actuator_commands, allocated_commands
from wavesim_world.mixing import Mixer

DEADMAN_S = 0.5  #: wall time in s for which a command from a page is valid
PERIOD_S = 0.05  #: interval in s between two commands to the server

Notify = Callable[[bool, str], None]


class ManualControlSession(ABC):
    """Session in which a page controls a body. ``notify`` sends (success, text) to the page."""

    def __init__(self, server: str, body: str, mapping: str, notify: Notify) -> None:
        self.server, self.body, self.mapping, self.notify = server, body, mapping, notify
        self._axes: Sequence[float] = ()
        self._until = 0.0  # monotonic time until which they hold
        self._task = asyncio.create_task(self._run())

    @property
    def is_over(self) -> bool:
        """Return whether the session has ended."""
        return self._task.done()

    def set_axes(self, axes: Sequence[float]) -> None:
        """Set the demands from the page, which are valid for a short time."""
        self._axes, self._until = axes, time.monotonic() + DEADMAN_S

    def leave(self) -> None:
        """Leave the body, with its actuators at neutral and without a force."""
        self._task.cancel()

    @property
    def _demands(self) -> Sequence[float] | None:
        """The demands from the page; None if they have expired."""
        return self._axes if time.monotonic() < self._until else None

    async def _run(self) -> None:
        try:
            await self._drive()
            self.notify(False, "the run has ended")
        except WaveSimError as error:
            self.notify(False, f"cannot drive {self.body}: {error}")

    @abstractmethod
    async def _drive(self) -> None:
        """Drive the body until the run ends."""


class PilotSession(ManualControlSession):
    """Session of a page as the pilot of a body. The mixer allocates the demands of the page, or the page commands each
    actuator directly.
    """

    def __init__(self, server: str, body: str, mapping: str, notify: Notify, model: Model) -> None:
        self.model, self._mixer = model, Mixer(model)
        self._names = [a.name for a in actuators_of(model)]
        self._rest = allocated_commands(self._mixer, NEUTRAL)
        super().__init__(server, body, mapping, notify)

    def _commands(self) -> dict[str, float]:
        demands = self._demands
        if demands is None:
            return self._rest
        if self.mapping == "actuators":
            return actuator_commands(self.model, self._rest, dict(zip(self._names, demands, strict=False)))
        return allocated_commands(self._mixer, demands)

    async def _drive(self) -> None:
        where = await asyncio.to_thread(address_of, self.server)
        async with AsyncBroker(self.body, where, state_period=PERIOD_S) as broker:
            self.notify(True, f"you are driving {self.body}: hold a key or a shoulder button")
            try:
                async for _ in broker.steps():
                    broker.answer(self._commands())
            finally:
                with contextlib.suppress(WaveSimError):
                    broker.answer(self._rest)


class ForceSession(ManualControlSession):
    """Session in which a page applies a force (surge, sway, heave in N) and a yaw moment (N m) to the hull of a body.
    The body need not accept a pilot, and its pilot continues to drive.
    """

    async def _drive(self) -> None:
        force = await asyncio.to_thread(BodyForce, self.server, self.body)
        self.notify(True, f"you are applying a force to {self.body}: hold a key or a shoulder button")
        try:
            while True:
                surge, sway, heave, yaw = self._demands or NEUTRAL
                await asyncio.to_thread(force.apply, (surge, sway, heave), (0.0, 0.0, yaw))
                await asyncio.sleep(PERIOD_S)
        finally:
            await asyncio.shield(asyncio.to_thread(force.close))
