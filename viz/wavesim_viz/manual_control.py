"""Manual control: a page drives a body as its pilot, with the protocol that every broker uses.

Dead man's switch: a command is valid for :data:`DEADMAN_S` of wall time. Every actuator returns to neutral when the
user releases the keys, or when the page or its network stalls. If the page closes, its session leaves the body.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

from wavesim_sdk.broker import AsyncBroker
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.server_address import address_of
from wavesim_world.config import Model
from wavesim_world.mixing import Mixer

DEADMAN_S = 0.5  #: wall time in s for which a command from a page is valid
PERIOD_S = 0.05  #: interval in s between two commands to the server
NEUTRAL = (0.0, 0.0, 0.0, 0.0)  #: neutral demands: ahead, to starboard, down, turn


def command(mixer: Mixer, axes: Sequence[float]) -> dict[str, float]:
    """Return commands by actuator for four demands, each from -1 to 1: ahead, to starboard, down, and turn to
    starboard.

    A model without heave dives with its planes. Ballast tanks keep their commands.
    """
    ahead, starboard, down, turn = axes
    demands = {"surge": ahead, "sway": starboard, "heave": down, "yaw": turn}
    if "heave" not in mixer.axes:
        demands["pitch"] = -down
    return mixer(**{axis: demand for axis, demand in demands.items() if axis in mixer.axes})


class ManualControlSession:
    """Session of a page as the pilot of a body. ``notify`` sends (success, text) to the page."""

    def __init__(self, server: str, body: str, model: Model, notify: Callable[[bool, str], None]) -> None:
        self.server, self.body, self.model, self.notify = server, body, model, notify
        self._axes: Sequence[float] = NEUTRAL
        self._until = 0.0  # monotonic time until which they hold
        self._task = asyncio.create_task(self._drive())

    @property
    def is_over(self) -> bool:
        """Return whether the session has ended."""
        return self._task.done()

    def set_axes(self, axes: Sequence[float]) -> None:
        """Set the demands from the page, which are valid for a short time."""
        self._axes, self._until = axes, time.monotonic() + DEADMAN_S

    def leave(self) -> None:
        """Leave the body, with its actuators at neutral."""
        self._task.cancel()

    async def _drive(self) -> None:
        try:
            where = await asyncio.to_thread(address_of, self.server)
            async with AsyncBroker(self.body, where, state_period=PERIOD_S) as broker:
                self.notify(True, f"you are driving {self.body}: hold a key or a shoulder button")
                mixer = Mixer(self.model)
                rest = command(mixer, NEUTRAL)
                try:
                    async for _ in broker.steps():
                        alive = time.monotonic() < self._until
                        broker.answer(command(mixer, self._axes) if alive else rest)
                finally:
                    with contextlib.suppress(WaveSimError):
                        broker.answer(rest)
            self.notify(False, "the run has ended")
        except WaveSimError as error:
            self.notify(False, f"cannot drive {self.body}: {error}")
