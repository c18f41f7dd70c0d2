"""Actuator commands from controllers, and the time for which they are valid."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence

from wavesim_bridges.core import STACK_TIMEOUT_S, MalformedMessage
from wavesim_bridges.pilot import Setpoint
from wavesim_bridges.ros2 import body_commands
from wavesim_bridges.ros2.message_types import ACTUATOR, Message
from wavesim_bridges.ros2.mounted_instrument import ARRAY
from wavesim_bridges.ros2.node import DdsNode
from wavesim_bridges.ros2.topic_layout import ALL, NAMED, CommandTopic, TopicLayout
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_world.config.actuators import Thruster

#: fraction of the actuators' limits, and time in s; commands that stay below this fraction for this time probably have
#: the wrong unit
SUSPICIOUS_SHARE, LONG_S = 0.01, 10.0


class CommandTopics:
    """Last command on each topic. A controller is considered lost when, on both the wall clock and the simulation
    clock, more than ``silence`` s have passed without a command. If ``silence`` is 0, a controller is never considered
    lost.
    """

    def __init__(
        self,
        node: DdsNode,
        layout: TopicLayout,
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
        self._heard = 0.0  #: wall time of the last command in s
        self._heard_at = 0.0  #: simulation time of the last command in s
        self._used: set[str] = set()  #: command topics that the active controller has used
        self._fresh: set[str] = set()  #: command topics on which a message has arrived since the last step
        self._came = asyncio.Event()
        self._greatest, self._since, self._warned = 0.0, math.inf, False
        for c in commanded:
            node.reader(c.topic, c.type, self._one(c))
        if topic := layout.command(ALL):
            self.neutral = [self._rest(a) for a in actuators]
            self._values = list(self.neutral)
            node.reader(topic, ARRAY, self._all(topic))
        if named := layout.named_commands(actuators):
            self.neutral = [self._rest(a) for a in actuators]
            self._values = list(self.neutral)
            topic = layout.command(NAMED)
            node.reader(topic, ACTUATOR, lambda message: self._store(topic, named.values(message)))
        self._wish: Setpoint | None = None  #: velocity command that the built-in pilot maintains
        self._pilot, self._piloted = body_commands.built_in_pilot(actuators), math.nan
        shared = body_commands.WrenchAllocator.for_thrusters(thrusters, actuators)
        if (topic := layout.command("wrench")) and shared is not None:
            node.reader(topic, body_commands.WRENCH, self._on_wrench(topic, shared))
        if (topic := layout.command("twist")) and self._pilot is not None:
            node.reader(topic, body_commands.TWIST, self._on_twist(topic))

    def current_commands(self, now: float, motion: VehicleMotion | None = None) -> list[float | None]:
        """Return the commands at a simulation time, in the order of the actuators. ``motion`` is the true motion."""
        if self._fresh or now < self._heard_at:
            self._heard_at = now
        late = min(time.monotonic() - self._heard, now - self._heard_at)
        if self._used and self.silence and late > self.silence:
            self._drop_silent()
        self._fresh.clear()
        if self._wish is not None and self._pilot is not None and motion is not None:
            seconds = now - self._piloted
            self._values = self._pilot.commands(self._wish, motion, seconds if 0.0 < seconds < LONG_S else 0.0)
            self._piloted = now
        elif self._used:
            self._warn_small_commands(now)
        return list(self._values)

    async def wait_for_commands(self) -> None:
        """Wait until a message has arrived on every topic of the controller since the last step, or until the
        controller stops sending. Without a controller, do not wait.
        """
        limit = time.monotonic() + (self.silence or STACK_TIMEOUT_S)
        while self._used - self._fresh:
            self._came.clear()
            try:
                async with asyncio.timeout(limit - time.monotonic()):
                    await self._came.wait()
            except TimeoutError:
                self._drop_silent()

    def _drop_silent(self) -> None:
        self._say("no commands from the controller; the vehicle continues with neutral outputs")
        self._used.clear()
        self._wish = None
        self._values = list(self.neutral)

    def _one(self, c: CommandTopic) -> Callable[[Message], None]:
        def take(message: Message) -> None:
            if not math.isfinite(message.data):
                raise MalformedMessage("no number")
            self._store(c.topic, {c.actuator.number: c.value(message.data)})

        return take

    def _all(self, topic: str) -> Callable[[Message], None]:
        def take(message: Message) -> None:
            if len(message.data) != len(self.actuators):
                raise MalformedMessage(f"{len(message.data)} numbers for {len(self.actuators)} actuators")
            if not all(map(math.isfinite, message.data)):
                raise MalformedMessage("no number")
            limited = [
                min(max(float(u), a.minimum), a.maximum) for u, a in zip(message.data, self.actuators, strict=True)
            ]
            self._store(topic, dict(enumerate(limited)))

        return take

    def _on_wrench(self, topic: str, shared: body_commands.WrenchAllocator) -> Callable[[Message], None]:
        return lambda message: self._store(topic, shared.thrusts(message))

    def _on_twist(self, topic: str) -> Callable[[Message], None]:
        def take(message: Message) -> None:
            wish = body_commands.twist_setpoint(message)
            if self._wish is None and self._pilot is not None:
                self._pilot.rest()
            self._store(topic, {})
            self._wish = wish

        return take

    def _store(self, topic: str, values: dict[int, float]) -> None:
        self._wish = None
        for number, value in values.items():
            self._values[number] = value
        self._heard = time.monotonic()
        self._used.add(topic)
        self._fresh.add(topic)
        self._came.set()

    def _rest(self, a: ActuatorDescription) -> float:
        return min(max(0.0, a.minimum), a.maximum)

    def _warn_small_commands(self, now: float) -> None:
        """Warn once if the commands stay so small that their unit is probably wrong."""
        shares = [
            abs(v) / max(abs(a.minimum), abs(a.maximum), 1e-9)
            for v, a in zip(self._values, self.actuators, strict=True)
            if v
        ]
        self._greatest = max([self._greatest, *shares])
        self._since = min(self._since, now)
        if not self._warned and now - self._since >= LONG_S and 0.0 < self._greatest < SUSPICIOUS_SHARE:
            self._warned = True
            self._say(
                f"commands stay below {100 * SUSPICIOUS_SHARE:g} % of the actuators' limits; check that they are in the actuators' units ({self._units()})"
            )

    def _units(self) -> str:
        return ", ".join(dict.fromkeys(a.unit or "fraction of the range" for a in self.actuators))
