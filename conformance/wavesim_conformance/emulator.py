"""Conformance checker for emulators in any language: it tests whether an emulator follows docs/SHARED_MEMORY.md.

    wavesim conformance --sensor ctd -- ./my-ctd {name}

The checker provides shared memory without a simulation, requests values and checks what the emulator writes. In the
command, it replaces ``{name}`` with the name of the server. The emulator must be synchronous. With ``--remote``, the
emulator joins over the network at 127.0.0.1, port ``{port}``, which the checker also replaces. Body alpha has the
instruments `first` (a value at every 25th tick) and `second` (a value at every 50th tick). Body beta has `first`, and
gamma has none. Body delta enters later with `first`.
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

from wavesim_conformance.broker import ConformanceChecker, Finding
from wavesim_conformance.emulator_network import EmulatorServer
from wavesim_sdk import frames
from wavesim_sdk.arrays import Record
from wavesim_sdk.attach import create_semaphores, open_semaphore, remove_semaphores, simulation_tables
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.sensors import HEAD_COLUMNS, sensor_table_of, value_count
from wavesim_sdk.shared_memory import BEGUN, DONE, DUE, OWNER, SYNCHRONOUS, SharedMemoryArea, segment_name
from wavesim_sdk.tables import (
    CLOCK,
    IDENTITY,
    INSTRUMENTS,
    STATE,
    VEHICLE_TABLES,
    WEATHER,
    WORLD,
    BodyType,
    SensorFault,
)

NAMES = ("alpha", "beta", "gamma")
CAPACITY = 8
PERIODS = {"first": 25, "second": 50}
#: row of the body, name of the instrument, index of its values; the index deliberately differs from the row
MOUNTED_INSTRUMENTS = ((0, "first", 3), (0, "second", 0), (1, "first", 5))
NEWCOMER = (6, "delta", 1)  #: row of the body, its name, index of the values from its instrument
ANSWER_S = 1.0
JOIN_S = 20.0


class FakeEngine:
    """Shared memory and semaphores of a server with one sensor type and three bodies, without a simulation."""

    def __init__(self, name: str, sensor: str, step: float = 0.004, seed: int = 7) -> None:
        self.name, self.sensor, self.step_ns, self.tick = name, sensor, round(step * 1e9), 0
        table = sensor_table_of(sensor)  # first, because it may raise before there is anything to remove
        self.simulation = SharedMemoryArea.create(segment_name(name, "simulation"), simulation_tables(CAPACITY, 16))
        tables = [(t, CAPACITY) for t in (*VEHICLE_TABLES, table)]
        self.count = value_count(table)
        self.vehicles = SharedMemoryArea.create(segment_name(name, "vehicles"), tables)
        self.table = self.vehicles[sensor]
        create_semaphores(name, [sensor])
        self._due, self._done = open_semaphore(name, sensor, "due"), open_semaphore(name, sensor, "done")
        self.identity = np.zeros(CAPACITY, IDENTITY.dtype)
        self.instruments = np.zeros(CAPACITY, INSTRUMENTS.dtype)
        self.instruments["body"] = -1
        world = np.zeros(1, WORLD.dtype)
        world["step_ns"], world["seed"], world["sound_speed"] = self.step_ns, seed, 1500.0
        world["density"], world["gravity"], world["ambient_noise"] = 1025.0, 9.81, 60.0
        for k, body in enumerate(NAMES):
            self.set_body(k, body)
        for k, (row, instrument, place) in enumerate(MOUNTED_INSTRUMENTS):
            self.mount_instrument(k, row, instrument, place)
        self.publish(0)
        self.simulation[WORLD.name].publish(world, 0)

    def set_body(self, row: int, name: str) -> None:
        """Put a body into a row; an empty name removes the body."""
        who = self.identity[row]
        who["present"], who["type"], who["name"] = bool(name), BodyType.SURFACE, name.encode()
        who["model"], who["generation"] = b"jolner", who["generation"] + bool(name)
        if not name:
            self.instruments["body"][self.instruments["body"] == row] = -1

    def mount_instrument(self, k: int, row: int, instrument: str, place: int) -> None:
        """Mount an instrument on a body, in row ``k`` of the ``instruments`` table."""
        entry = self.instruments[k]
        entry["body"], entry["number"] = row, int((self.instruments["body"] == row).sum() - (entry["body"] == row))
        entry["type"], entry["name"], entry["place"] = self.sensor.encode(), instrument.encode(), place
        entry["period"], entry["generation"] = PERIODS[instrument], entry["generation"] + 1

    def set_fault(self, kind: SensorFault, first: int = 0, count: int | None = None, amount: float = 0.0) -> None:
        """Set the same fault for every instrument. If ``count`` is set, the fault affects only that many numbers of a
        value.
        """
        i = self.instruments
        i["fault"], i["fault_first"], i["fault_amount"] = kind, first, amount
        i["fault_count"] = self.count if count is None else count

    def publish(self, tick: int) -> None:
        """Publish the bodies at a tick. They float and move along curves that are the same in every run."""
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
        self.vehicles[INSTRUMENTS.name].publish(self.instruments, tick)
        self.simulation[WEATHER.name].publish(np.zeros(1, WEATHER.dtype), tick)
        self.simulation[CLOCK.name].publish(clock, tick)

    def request_values(self, tick: int, timeout: float = ANSWER_S) -> float | None:
        """Request the values for a tick. Return the time in s until the answer arrives, or None after ``timeout``
        seconds.
        """
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

    def simulate_server_death(self) -> None:
        """Set the PID of the server to 0, as if the server had exited."""
        for area in (self.simulation, self.vehicles):
            area.header[5] = 0

    def close(self) -> None:
        for area in (self.simulation, self.vehicles):
            area.unlink()
        remove_semaphores(self.name, [self.sensor])


class EmulatorChecker(ConformanceChecker):
    """Checker for one emulator. The emulator runs twice, with shared memory but without a simulation."""

    def __init__(
        self,
        command: Sequence[str],
        sensor: str,
        step: float,
        say: Callable[[Finding], None] = lambda f: None,
        remote: bool = False,
    ) -> None:
        super().__init__(say)
        self.command, self.sensor, self.step, self.remote = command, sensor, step, remote
        self._server: EmulatorServer | None = None

    def run(self) -> list[Finding]:
        """Check all rules and return the findings in order; stop at a failure that the other rules depend on."""
        with self._stage() as (engine, process):
            if not self._claiming(engine, process):
                return self.findings
            first = self._answers(engine)
            if first is not None:
                self._bodies(engine)
                self._faults(engine)
            process.send_signal(signal.SIGTERM)
            gone = self.wait_until(lambda: process.poll() is not None, 5.0)
            self.record("SIGTERM ends the emulator within 5 s", gone, "the emulator keeps running")
            self.record(
                "SIGTERM releases its table", engine.table.header[OWNER] == 0, "the emulator still holds the claim"
            )
        if first is None:
            return self.findings
        with self._stage() as (engine, process):
            if not self.wait_until(lambda: engine.table.header[SYNCHRONOUS] > 0, JOIN_S):
                return self.findings
            again = [engine.values() for tick in self._ticks() if engine.request_values(tick) is not None]
            same = len(again) == len(first) and all(
                a.tobytes() == b.tobytes() for a, b in zip(first, again, strict=True)
            )
            self.record(
                "the same seed and the same motion produce the same values",
                same,
                "a second run produced different values",
            )
            if self._server is not None:
                self._server.end()
            else:
                engine.simulate_server_death()
            gone = self.wait_until(lambda: process.poll() is not None, 5.0)
            self.record("the emulator exits within 5 s after the server has exited", gone, "the emulator keeps running")
        return self.findings

    @contextlib.contextmanager
    def _stage(self) -> Iterator[tuple[FakeEngine, subprocess.Popen[bytes]]]:
        engine = FakeEngine(f"conformance-{os.getpid()}", self.sensor, self.step)
        with contextlib.ExitStack() as stack:
            stack.callback(engine.close)
            if self.remote:
                self._server = stack.enter_context(EmulatorServer(engine.name, self.sensor))
            port = self._server.port if self._server is not None else 0
            command = [part.format(name=engine.name, port=port) for part in self.command]
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

    def _ticks(self) -> list[int]:
        return [PERIODS["first"] * k for k in range(1, 7)]

    # -- the rules -----------------------------------------------------------------------------------------

    def _claiming(self, engine: FakeEngine, process: subprocess.Popen[bytes]) -> bool:
        claimed = self.wait_until(lambda: engine.table.header[OWNER] != 0 or process.poll() is not None, JOIN_S)
        owner = int(engine.table.header[OWNER])
        if not self.record(
            "the emulator claims its sensor's table with its PID",
            claimed and owner != 0,
            f"no claim within {JOIN_S:g} s",
        ):
            return False
        asked = self.wait_until(lambda: engine.table.header[SYNCHRONOUS] > 0, 5.0)
        if not self.record(
            "the emulator requests synchronous operation", asked, "the `synchronous` word in the table's header is 0"
        ):
            return False
        written = int(engine.table.header[DONE])
        time.sleep(0.5)
        return self.record(
            "the emulator writes nothing before values are requested",
            int(engine.table.header[DONE]) == written,
            "the emulator wrote values before they were requested",
        )

    def _answers(self, engine: FakeEngine) -> list[Record] | None:
        found, slowest, before = [], 0.0, engine.values()
        torn = False
        for tick in self._ticks():
            took = engine.request_values(tick)
            if took is None:
                self.record(f"a due tick is answered within {ANSWER_S:g} s", False, f"no answer for tick {tick}")
                return None
            slowest = max(slowest, took)
            torn |= int(engine.table.header[BEGUN]) != int(engine.table.header[DONE])
            found.append(engine.values())
        self.record(f"a due tick is answered within {ANSWER_S:g} s", True)
        self.record(
            "the values are complete before the emulator answers",
            not torn and len(found[-1]) > 0,
            "the emulator was still writing the values",
        )
        places, last = [place for _, _, place in MOUNTED_INSTRUMENTS], found[-1]
        at = (last["tick"][places] == engine.tick).all()
        at &= (last["time_ns"][places] == engine.tick * engine.step_ns).all()
        self.record(
            "a value carries the tick and the time of the bodies from which it was computed",
            bool(at),
            f"{last['tick'][places]} at tick {engine.tick}",
        )
        grows = (last["sequence"] - before["sequence"])[places]
        wanted = [sum(tick % PERIODS[name] == 0 for tick in self._ticks()) for _, name, _ in MOUNTED_INSTRUMENTS]
        self.record(
            "each instrument produces a value at each multiple of its period, with the next sequence number",
            grows.tolist() == wanted,
            f"{grows} values; {wanted} were due",
        )
        valid = (last["valid"][places] == 1).all()
        finite = np.isfinite(self._numbers(last)[places]).any(axis=1).all()
        self.record(
            "every instrument has a valid value with at least one finite component",
            bool(valid and finite),
            f"valid {last['valid'][places]}",
        )
        mine = (last["generation"][places] == engine.instruments["generation"][: len(MOUNTED_INSTRUMENTS)]).all()
        self.record("a value carries the generation of its instrument", bool(mine), f"{last['generation'][places]}")
        others = [k for k in range(CAPACITY) if k not in places]
        self.record(
            "rows without an instrument stay empty",
            not last["sequence"][others].any(),
            "a row without an instrument contains a value",
        )
        return found

    def _numbers(self, values: Record) -> Any:
        return values.view(np.float64).reshape(len(values), -1)[
            :, HEAD_COLUMNS : HEAD_COLUMNS + value_count(sensor_table_of(self.sensor))
        ]

    @staticmethod
    def _next(engine: FakeEngine) -> Record:
        """Advance to the next tick at which all instruments are due, and return their values."""
        longest = max(PERIODS.values())
        engine.request_values((engine.tick // longest + 1) * longest)
        return engine.values()

    def _bodies(self, engine: FakeEngine) -> None:
        row, name, place = NEWCOMER
        engine.set_body(row, name)
        engine.mount_instrument(len(MOUNTED_INSTRUMENTS), row, "first", place)
        entered = self._next(engine)
        self.record(
            "a newly added body receives its value when the value is due",
            entered["sequence"][place] == 1,
            "no value was written",
        )
        gone = MOUNTED_INSTRUMENTS[2][2]
        engine.set_body(1, "")
        before, after = self._next(engine), self._next(engine)
        self.record(
            "no value is written for a body that has left the simulation",
            before["sequence"][gone] == after["sequence"][gone] and not after["valid"][gone],
            "a value was written",
        )

    def _faults(self, engine: FakeEngine) -> None:
        one = MOUNTED_INSTRUMENTS[0][2]
        engine.set_fault(SensorFault.LOST)
        lost = self._next(engine)
        self.record("the fault 'lost' makes values invalid", not lost["valid"][one], "the value is valid")
        engine.set_fault(SensorFault.NONE)
        good = self._next(engine)
        engine.set_fault(SensorFault.FROZEN)
        frozen = self._next(engine)
        same = np.array_equal(self._numbers(good)[one], self._numbers(frozen)[one], equal_nan=True)
        self.record("the fault 'none' clears a fault", bool(good["valid"][one]), "the value is still invalid")
        self.record(
            "the fault 'frozen' repeats the last value as a new one",
            same and frozen["sequence"][one] > good["sequence"][one],
            "the values differ, or no new value was written",
        )
        engine.set_fault(SensorFault.NONE)
        self._next(engine)
        engine.set_fault(SensorFault.BIAS, 0, 1, 1e6)
        biased = self._numbers(self._next(engine))[one]
        hit = abs(biased[0]) > 9e5 or not np.isfinite(biased[0])
        self.record(
            "a fault affects only the components that it names",
            bool(hit and not (np.abs(biased[1:]) > 9e5).any()),
            f"{biased[:4]}",
        )
        engine.set_fault(SensorFault.NONE)
