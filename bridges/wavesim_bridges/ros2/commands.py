"""What controllers ask of actuators, and how long that counts."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence

from wavesim_bridges.core import SILENT_S
from wavesim_bridges.motion import Motion
from wavesim_bridges.pilot import Wish
from wavesim_bridges.ros2 import body
from wavesim_bridges.ros2.layout import ALL, Command, Layout
from wavesim_bridges.ros2.node import Node
from wavesim_bridges.ros2.sensors import ARRAY
from wavesim_bridges.ros2.types import Message, Unusable
from wavesim_sdk.config.vehicle import Thruster
from wavesim_sdk.wire.items import ActuatorDescription

SMALL, LONG_S = 0.01, 10.0  #: commands below this share of the limit for so long are an error of units, most likely


class Commands:
    """The last command of each topic. ``silence``: s of wall time and of simulation time after which a controller that says
    nothing counts as gone; 0: never."""

    def __init__(
        self,
        node: Node,
        layout: Layout,
        actuators: Sequence[ActuatorDescription],
        silence: float,
        say: Callable[[str], None],
        thrusters: Sequence[Thruster] = (),
    ) -> None:
        self.actuators, self.silence, self._say = actuators, silence, say
        commanded = layout.commands(actuators)
        self.neutral: list[float | None] = [None] * len(actuators)
        for c in commanded:
            self.neutral[c.actuator.number] = self._rest(c.actuator)
        self._values = list(self.neutral)
        self._heard = 0.0  #: wall time of the last command
        self._heard_at = 0.0  #: the same of the simulation
        self._used: set[str] = set()  #: topics of the controller that flies
        self._fresh: set[str] = set()  #: those that spoke since the last step
        self._came = asyncio.Event()
        self._greatest, self._since, self._warned = 0.0, math.inf, False
        for c in commanded:
            node.reader(c.topic, c.type, self._one(c))
        if topic := layout.command(ALL):
            self.neutral = [self._rest(a) for a in actuators]
            self._values = list(self.neutral)
            node.reader(topic, ARRAY, self._all(topic))
        self._wish: Wish | None = None  #: a velocity that is kept
        self._pilot, self._piloted = body.pilot_of(actuators), math.nan
        shared = body.Shared.of(thrusters, actuators)
        if (topic := layout.command("wrench")) and shared is not None:
            node.reader(topic, body.WRENCH, self._pushed(topic, shared))
        if (topic := layout.command("twist")) and self._pilot is not None:
            node.reader(topic, body.TWIST, self._sent(topic))

    def asked(self, now: float, motion: Motion | None = None) -> list[float | None]:
        """Commands by position, at a time of the simulation; ``motion`` is the true one."""
        if self._fresh or now < self._heard_at:
            self._heard_at = now
        late = min(time.monotonic() - self._heard, now - self._heard_at)
        if self._used and self.silence and late > self.silence:
            self._gone()
        self._fresh.clear()
        if self._wish is not None and self._pilot is not None and motion is not None:
            seconds = now - self._piloted
            self._values = self._pilot.commands(self._wish, motion, seconds if 0.0 < seconds < LONG_S else 0.0)
            self._piloted = now
        elif self._used:
            self._judge(now)
        return list(self._values)

    async def wait(self) -> None:
        """Until every topic of the controller has spoken since the last step, or it is silent. Without one: not at all."""
        limit = time.monotonic() + (self.silence or SILENT_S)
        while self._used - self._fresh:
            self._came.clear()
            try:
                async with asyncio.timeout(limit - time.monotonic()):
                    await self._came.wait()
            except TimeoutError:
                self._gone()

    def _gone(self) -> None:
        self._say("the controller is silent; the vehicle goes on at neutral outputs")
        self._used.clear()
        self._wish = None
        self._values = list(self.neutral)

    def _one(self, c: Command) -> Callable[[Message], None]:
        def take(message: Message) -> None:
            if not math.isfinite(message.data):
                raise Unusable("no number")
            self._take(c.topic, {c.actuator.number: c.value(message.data)})

        return take

    def _all(self, topic: str) -> Callable[[Message], None]:
        def take(message: Message) -> None:
            if len(message.data) != len(self.actuators):
                raise Unusable(f"{len(message.data)} numbers for {len(self.actuators)} actuators")
            if not all(map(math.isfinite, message.data)):
                raise Unusable("no number")
            limited = [
                min(max(float(u), a.minimum), a.maximum) for u, a in zip(message.data, self.actuators, strict=True)
            ]
            self._take(topic, dict(enumerate(limited)))

        return take

    def _pushed(self, topic: str, shared: body.Shared) -> Callable[[Message], None]:
        return lambda message: self._take(topic, shared.thrusts(message))

    def _sent(self, topic: str) -> Callable[[Message], None]:
        def take(message: Message) -> None:
            wish = body.wish(message)
            if self._wish is None and self._pilot is not None:
                self._pilot.rest()
            self._take(topic, {})
            self._wish = wish

        return take

    def _take(self, topic: str, values: dict[int, float]) -> None:
        self._wish = None
        for number, value in values.items():
            self._values[number] = value
        self._heard = time.monotonic()
        self._used.add(topic)
        self._fresh.add(topic)
        self._came.set()

    def _rest(self, a: ActuatorDescription) -> float:
        return min(max(0.0, a.minimum), a.maximum)

    def _judge(self, now: float) -> None:
        """Tell once that commands are so small that another unit is meant."""
        shares = [
            abs(v) / max(abs(a.minimum), abs(a.maximum), 1e-9)
            for v, a in zip(self._values, self.actuators, strict=True)
            if v
        ]
        self._greatest = max([self._greatest, *shares])
        self._since = min(self._since, now)
        if not self._warned and now - self._since >= LONG_S and 0.0 < self._greatest < SMALL:
            self._warned = True
            self._say(
                f"commands stay below {100 * SMALL:g} % of the actuators' limits: are they in their units ({self._units()})?"
            )

    def _units(self) -> str:
        return ", ".join(dict.fromkeys(a.unit or "a share" for a in self.actuators))
