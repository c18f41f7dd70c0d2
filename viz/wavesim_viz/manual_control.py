"""Manual control: a page drives a body as its pilot, with the protocol that every broker uses.

Dead man's rule: a command is valid for :data:`DEADMAN_S` of wall time. Every actuator returns to neutral when the user
releases the keys, or when the page or its network stalls. If the page closes, its session leaves the body.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

from wavesim_sdk.broker import AsyncBroker
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.server_address import address_of
from wavesim_sdk.wire.items import ActuatorDescription

DEADMAN_S = 0.5  #: wall time in s for which a command from a page is valid
PERIOD_S = 0.05  #: interval between two commands to the server, s


def command(shares: Sequence[float | None], actuators: Sequence[ActuatorDescription]) -> list[float | None]:
    """Convert fractions of the actuators' ranges to commands: 1 = maximum, -1 = minimum, 0 = neutral (0, or the nearest
    permitted value), None = unchanged.
    """
    found: list[float | None] = []
    for k, a in enumerate(actuators):
        share = shares[k] if k < len(shares) else 0.0
        rest = min(max(0.0, a.minimum), a.maximum)
        end = a.maximum if (share or 0.0) > 0.0 else a.minimum
        found.append(None if share is None else rest + min(abs(share), 1.0) * (end - rest))
    return found


class ManualControlSession:
    """Session of a page as the pilot of a body. ``notify`` sends (success, text) to the page."""

    def __init__(self, server: str, body: str, notify: Callable[[bool, str], None]) -> None:
        self.server, self.body, self.notify = server, body, notify
        self._shares: Sequence[float | None] = ()
        self._until = 0.0  # monotonic time until which they hold
        self._task = asyncio.create_task(self._drive())

    @property
    def is_over(self) -> bool:
        """Return whether the session has ended."""
        return self._task.done()

    def set_shares(self, shares: Sequence[float | None]) -> None:
        """Set the fractions that the page commands, which are valid for a short time."""
        self._shares, self._until = shares, time.monotonic() + DEADMAN_S

    def leave(self) -> None:
        """Leave the body, with its actuators at neutral."""
        self._task.cancel()

    async def _drive(self) -> None:
        try:
            where = await asyncio.to_thread(address_of, self.server)
            async with AsyncBroker(self.body, where, state_period=PERIOD_S) as broker:
                self.notify(True, f"you are driving {self.body}: hold a key or a shoulder button")
                rest = command([], broker.actuators)
                try:
                    async for _ in broker.steps():
                        alive = time.monotonic() < self._until
                        broker.answer(command(self._shares, broker.actuators) if alive else rest)
                finally:
                    with contextlib.suppress(WaveSimError):
                        broker.answer(rest)
            self.notify(False, "the run has ended")
        except WaveSimError as error:
            self.notify(False, f"cannot drive {self.body}: {error}")
