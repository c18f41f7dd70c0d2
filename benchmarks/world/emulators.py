"""Emulators that write values which identify their source. They also crash, freeze and write garbage."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk.sensors import HEAD_COLUMNS
from wavesim_sdk.shared_memory import DUE, OWNER, OWNER_START, SYNCHRONOUS, SharedMemoryArea
from wavesim_server.network.state_datagrams import value_count_of

if TYPE_CHECKING:
    from benchmarks.world.world import World

FREE_PID = 2**22 + 7  #: PID that no process has
SELF = (2**22 + 1, 1)


def value(body: int, number: int, tick: int, count: int) -> Any:
    """Return the numbers of a sensor of a body at a tick: exact in binary, and different for each body."""
    return body * 1e9 + number * 1e7 + float(tick) + np.arange(count) / 1024.0


class Bell:
    """The signalling between the engine and an emulator, without semaphores."""

    def __init__(self) -> None:
        self.emulator: Emulator | None = None
        self.done = False

    def ask(self) -> None:
        """Signal the emulator, and discard answers to earlier signals."""
        self.done = False
        if self.emulator is not None:
            self.emulator.asked()

    def wait_answer(self, timeout: float = 0.0) -> bool:
        """Return whether the emulator has answered."""
        done, self.done = self.done, False
        return done


class Emulator:
    """An emulator of all instruments of one type."""

    def __init__(self, world: World, sensor: str, r: random.Random, bell: Bell, vehicles: SharedMemoryArea) -> None:
        self.world, self.sensor, self.random, self._bell, self._vehicles = world, sensor, r, bell, vehicles
        self.table = vehicles[sensor]
        self.delay = r.choice((0.001, 0.001, 0.01, 0.2))
        self.free = r.random() < 0.15  #: whether it runs at its own pace
        self.state = "well"
        self.dirty = False  #: whether it has written garbage, so that its values are not checked
        bell.emulator = self

    def start(self, now: float) -> None:
        """Start the process, which claims its table."""
        self.state = "well"
        self.table.header[OWNER], self.table.header[OWNER_START] = SELF
        self.table.header[SYNCHRONOUS] = 0 if self.free else 1
        if self.free:
            self.world.clock.at(now + 0.1, self._by_itself)

    def asked(self) -> None:
        """Schedule the answer to a value that is due."""
        tick = int(self.table.header[DUE])
        if self.state == "well":
            self.world.clock.at(self.world.clock.now + self.delay, lambda now: self._answer(tick))

    def _by_itself(self, now: float) -> None:
        if self.free and self.state == "well":
            self._write(int(self._vehicles["state"].snapshot()[0]))
            self.world.clock.at(now + 0.1, self._by_itself)

    def _answer(self, tick: int) -> None:
        if self.state == "well":
            self._write(tick)
            self._bell.done = True
            self.world.server.wake_engine()

    def _write(self, tick: int) -> None:
        instruments = self._vehicles["instruments"].snapshot()[1]
        identity = self._vehicles["identity"].snapshot()[1]
        rows = self.table.snapshot()[1]
        numbers = rows.view(np.float64).reshape(len(rows), -1)
        count = value_count_of(self.sensor)
        mine = (instruments["type"] == self.sensor.encode()) & (instruments["body"] >= 0)
        for i in instruments[mine]:
            place, body = int(i["place"]), int(i["body"])
            if not self.free and (tick % max(int(i["period"]), 1) or not identity[body]["present"]):
                continue
            who = self.world.index(bytes(identity[body]["name"]).decode())
            numbers[place, HEAD_COLUMNS : HEAD_COLUMNS + count] = value(who, int(i["number"]), tick, count)
            row = rows[place]
            row["tick"], row["time_ns"], row["valid"] = tick, tick * self.world.step_ns, 1
            row["generation"] = i["generation"]
            row["sequence"] += 1
        self.table.publish(rows, tick)

    # -- what goes wrong -------------------------------------------------------------------------------

    def misbehave(self, now: float) -> None:
        """Cause a random failure of a process."""
        how = self.random.choice(("die", "freeze", "garbage", "start", "header"))
        self.world.note(f"emulator {how}", self.sensor)
        if how == "die":
            self.state = "dead"
            self.table.header[OWNER] = FREE_PID
        elif how == "freeze":
            self.state = "frozen"
        elif how == "garbage":
            self.dirty = True
            garbage = self.random.randbytes(self.table.capacity * self.table.dtype.itemsize)
            self.table.publish(np.frombuffer(garbage, self.table.dtype), self.random.choice((0, -1, 2**62)))
        elif how == "header":
            self.table.header[SYNCHRONOUS] = self.random.choice((0, 1, -1, 7, 2**62))
            self.table.header[DUE] = self.random.choice((0, -1, 2**62))
        elif self.state != "well":
            self.start(now)

    def mend(self, now: float) -> None:
        """Restart the process after a failure."""
        self.free = False
        self.start(now)
