"""Does an emulator in any language keep to docs/SHARED_MEMORY.md? Shared memory without a simulation asks, and looks at what it writes.

    wavesim conformance --sensor ctd -- ./my-ctd {name}

``{name}`` is filled in with the name of the server; the emulator shall be synchronous and serve the bodies alpha, beta and gamma.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import posix_ipc

from wavesim_sdk import frames
from wavesim_sdk.area import BEGUN, DONE, DUE, OWNER, PERIOD, Area, Record, segment_name
from wavesim_sdk.attach import make_semaphores, remove_semaphores, semaphore, simulation_tables
from wavesim_sdk.conformance import Checks, Finding
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.sensors import HEAD, table_of
from wavesim_sdk.tables import (
    CLOCK,
    IDENTITY,
    SENSOR_FAULTS,
    STATE,
    VEHICLE_TABLES,
    WEATHER,
    WORLD,
    BodyType,
    SensorFault,
)

NAMES = ("alpha", "beta", "gamma")
CAPACITY = 8
ANSWER_S = 1.0
JOIN_S = 20.0


class FakeEngine:
    """Shared memory and semaphores of a server with one sensor, and three bodies in it that a test moves."""

    def __init__(self, name: str, sensor: str, step: float = 0.004, seed: int = 7) -> None:
        self.name, self.sensor, self.step_ns, self.tick = name, sensor, round(step * 1e9), 0
        table = table_of(sensor)  # before anything is made that would have to be removed
        self.simulation = Area.create(segment_name(name, "simulation"), simulation_tables(CAPACITY, 16))
        tables = [(t, CAPACITY) for t in (*VEHICLE_TABLES, table)]
        self.vehicles = Area.create(segment_name(name, "vehicles"), tables)
        self.table = self.vehicles[sensor]
        make_semaphores(name, [sensor])
        self._due, self._done = semaphore(name, sensor, "due"), semaphore(name, sensor, "done")
        self.identity = np.zeros(CAPACITY, IDENTITY.dtype)
        self.faults = np.zeros(CAPACITY, SENSOR_FAULTS.dtype)
        world = np.zeros(1, WORLD.dtype)
        world["step_ns"], world["seed"], world["sound_speed"] = self.step_ns, seed, 1500.0
        world["density"], world["gravity"], world["ambient_noise"] = 1025.0, 9.81, 60.0
        for k, body in enumerate(NAMES):
            self.present(k, body)
        self.publish(0)
        self.simulation[WORLD.name].publish(world, 0)

    def present(self, row: int, name: str) -> None:
        """A body enters a row; an empty name: it leaves."""
        who = self.identity[row]
        who["present"], who["type"], who["name"] = bool(name), BodyType.SURFACE, name.encode()
        who["model"], who["generation"] = b"jolner", who["generation"] + bool(name)

    def publish(self, tick: int) -> None:
        """The bodies at a tick: afloat, on curves that are the same every time."""
        self.tick = tick
        t = tick * self.step_ns * 1e-9
        state, clock = np.zeros(CAPACITY, STATE.dtype), np.zeros(1, CLOCK.dtype)
        for k in range(CAPACITY):
            state["p_WB_W"][k] = (10.0 * k + 0.5 * t, 5.0 * math.sin(0.2 * t + k), -0.05)
            state["q_WB"][k] = frames.quaternion(0.05 * math.sin(t), 0.02 * math.cos(t), 0.3 * k + 0.1 * t)
            state["v_WB_B"][k] = state["v_FB_B"][k] = (0.5, 0.0, 0.0)
            state["w_WB_B"][k] = (0.0, 0.0, 0.1)
        clock["tick"], clock["time_ns"], clock["state"], clock["speed"] = tick, tick * self.step_ns, 1, 0.0
        self.vehicles["state"].publish(state, tick)
        self.vehicles["identity"].publish(self.identity, tick)
        self.vehicles["sensor_faults"].publish(self.faults, tick)
        self.simulation[WEATHER.name].publish(np.zeros(1, WEATHER.dtype), tick)
        self.simulation[CLOCK.name].publish(clock, tick)

    def ask(self, tick: int, timeout: float = ANSWER_S) -> float | None:
        """Ask for the values of a tick; seconds until the answer, None if there was none."""
        self.publish(tick)
        with contextlib.suppress(posix_ipc.BusyError):
            while True:
                self._done.acquire(0)
        self.table.header[DUE] = tick
        begun = time.monotonic()
        self._due.release()
        try:
            self._done.acquire(timeout)
        except posix_ipc.BusyError:
            return None
        return time.monotonic() - begun

    def values(self) -> Record:
        return self.table.snapshot()[1]

    def die(self) -> None:
        """As if the server were gone: its process is nobody's."""
        for area in (self.simulation, self.vehicles):
            area.header[5] = 0

    def close(self) -> None:
        for area in (self.simulation, self.vehicles):
            area.unlink()
        remove_semaphores(self.name, [self.sensor])


class EmulatorChecker(Checks):
    """Two runs of an emulator against shared memory without a simulation."""

    def __init__(
        self, command: Sequence[str], sensor: str, step: float, say: Callable[[Finding], None] = lambda f: None
    ) -> None:
        super().__init__(say)
        self.command, self.sensor, self.step = command, sensor, step

    def run(self) -> list[Finding]:
        """All findings, in order; stops at the first that the others need."""
        with self._stage() as (engine, process):
            if not self._claiming(engine, process):
                return self.findings
            first = self._answers(engine)
            if first is not None:
                self._bodies(engine)
                self._faults(engine)
            process.send_signal(signal.SIGTERM)
            gone = self.until(lambda: process.poll() is not None, 5.0)
            self.note("SIGTERM ends it within 5 s", gone, "it runs on")
            self.note("then its table is free again", engine.table.header[OWNER] == 0, "it still holds the claim")
        if first is None:
            return self.findings
        with self._stage() as (engine, process):
            if not self.until(lambda: engine.table.header[PERIOD] > 0, JOIN_S):
                return self.findings
            again = [engine.values() for tick in self._ticks(engine) if engine.ask(tick) is not None]
            same = len(again) == len(first) and all(
                a.tobytes() == b.tobytes() for a, b in zip(first, again, strict=True)
            )
            self.note("the same seed and the same motion give the same values", same, "another run gave others")
            engine.die()
            gone = self.until(lambda: process.poll() is not None, 5.0)
            self.note("it ends by itself within 5 s when the server is gone", gone, "it runs on")
        return self.findings

    @contextlib.contextmanager
    def _stage(self) -> Iterator[tuple[FakeEngine, subprocess.Popen[bytes]]]:
        engine = FakeEngine(f"conformance-{os.getpid()}", self.sensor, self.step)
        try:
            command = [part.format(name=engine.name) for part in self.command]
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            except OSError as error:
                raise BrokerError(f"cannot start '{command[0]}': {error.strerror}") from None
            try:
                yield engine, process
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        finally:
            engine.close()

    def _ticks(self, engine: FakeEngine) -> list[int]:
        period = int(engine.table.header[PERIOD])
        return [period * k for k in range(1, 6)]

    # -- the rules -----------------------------------------------------------------------------------------

    def _claiming(self, engine: FakeEngine, process: subprocess.Popen[bytes]) -> bool:
        claimed = self.until(lambda: engine.table.header[OWNER] != 0 or process.poll() is not None, JOIN_S)
        owner = int(engine.table.header[OWNER])
        if not self.note(
            "it claims its sensor's table with its process", claimed and owner != 0, f"nobody within {JOIN_S:g} s"
        ):
            return False
        asked = self.until(lambda: engine.table.header[PERIOD] > 0, 5.0)
        if not self.note("it asks to be waited for, by its period", asked, "the period in the table's header is 0"):
            return False
        written = int(engine.table.header[DONE])
        time.sleep(0.5)
        return self.note(
            "it writes nothing before it is asked", int(engine.table.header[DONE]) == written, "values came unasked"
        )

    def _answers(self, engine: FakeEngine) -> list[Record] | None:
        found, slowest, before = [], 0.0, engine.values()
        torn = False
        for tick in self._ticks(engine):
            took = engine.ask(tick)
            if took is None:
                self.note(f"a due tick is answered within {ANSWER_S:g} s", False, f"no answer for tick {tick}")
                return None
            slowest = max(slowest, took)
            torn |= int(engine.table.header[BEGUN]) != int(engine.table.header[DONE])
            found.append(engine.values())
        self.note(f"a due tick is answered within {ANSWER_S:g} s", True)
        self.note("the values are there before the answer", not torn and len(found[-1]) > 0, "a write was under way")
        rows, last = list(range(len(NAMES))), found[-1]
        at = (last["tick"][rows] == engine.tick).all() and (last["time_ns"][rows] == engine.tick * engine.step_ns).all()
        self.note(
            "a value carries the tick and the time of its bodies",
            bool(at),
            f"{last['tick'][rows]} at tick {engine.tick}",
        )
        grows = (last["sequence"][rows] - before["sequence"][rows] == len(found)).all()
        self.note(
            "its number grows by one with each value",
            bool(grows),
            f"{last['sequence'][rows]} after {len(found)} values",
        )
        valid = (last["valid"][rows] == 1).all()
        numbers = np.isfinite(self._numbers(last)[rows]).any(axis=1).all()
        self.note(
            "every body has a valid value of at least one number",
            bool(valid and numbers),
            f"valid {last['valid'][rows]}",
        )
        empty = (last["sequence"][len(NAMES) :] == 0).all()
        self.note("rows without a body stay empty", bool(empty), "a value for nobody")
        return found

    @staticmethod
    def _numbers(values: Record) -> Any:
        return values.view(np.float64).reshape(len(values), -1)[:, HEAD:]

    def _next(self, engine: FakeEngine) -> Record:
        engine.ask(engine.tick + int(engine.table.header[PERIOD]))
        return engine.values()

    def _bodies(self, engine: FakeEngine) -> None:
        engine.present(5, "delta")
        entered = self._next(engine)
        self.note("a body that enters has a value at the next tick", entered["sequence"][5] == 1, "it has none")
        engine.present(1, "")
        before, after = self._next(engine), self._next(engine)
        self.note(
            "a body that left gets none",
            before["sequence"][1] == after["sequence"][1] and not after["valid"][1],
            "it has one",
        )

    def _faults(self, engine: FakeEngine) -> None:
        engine.faults["kind"] = SensorFault.LOST
        lost = self._next(engine)
        self.note("the fault 'lost' makes values invalid", not lost["valid"][0], "it is valid")
        engine.faults["kind"] = SensorFault.NONE
        good = self._next(engine)
        engine.faults["kind"] = SensorFault.FROZEN
        frozen = self._next(engine)
        same = np.array_equal(self._numbers(good)[0], self._numbers(frozen)[0], equal_nan=True)
        self.note("'none' ends it", bool(good["valid"][0]), "it is still invalid")
        self.note(
            "'frozen' repeats the last value as if it were new", same and frozen["sequence"][0] == good["sequence"][0] + 1,
            "other values, or none",
        )  # fmt: skip
        engine.faults["kind"] = SensorFault.NONE
