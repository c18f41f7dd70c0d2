"""The engine's process: clock, sleep, shared memory and rings around the core."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import sys
import time
from pathlib import Path

from wavesim_sdk.area import Area, segment_name
from wavesim_sdk.attach import semaphore
from wavesim_sdk.config import load
from wavesim_sdk.errors import WaveSimError
from wavesim_server.engine.core import FULL_S, Engine
from wavesim_server.engine.emulators import Emulators, Semaphores
from wavesim_server.instruments import Instruments
from wavesim_server.priority import Priority
from wavesim_server.resources import ring_names
from wavesim_server.ring import Ring
from wavesim_server.simulation import Simulation

IDLE_S = 0.1  #: at most between two looks at the parent process
FLUSH_S = 5.0  #: for the last events, when the front is behind


def attached(simulation: Simulation, name: str, events_fd: int, log: bool) -> Engine:
    """An engine on the shared memory and the rings of a server."""
    areas = {a: Area.attach(segment_name(name, a), writable=True) for a in ("simulation", "vehicles")}
    commands, events = ring_names(name)
    instruments = Instruments(simulation.loaded.sensor_rows, simulation.step_ns)
    bells = {s: Semaphores(semaphore(name, s, "due"), semaphore(name, s, "done")) for s in instruments.types}
    emulators = Emulators(areas["vehicles"], bells, instruments, simulation.config.network.lockstep_timeout)
    return Engine(
        simulation,
        areas,
        Ring.attach(commands),
        Ring.attach(events),
        emulators,
        log=log,
        wake=lambda: os.eventfd_write(events_fd, 1),
    )


def run(engine: Engine, commands_fd: int) -> None:
    """Until a shutdown command, or the death of the parent process."""
    parent, priority, slips = os.getppid(), Priority(), 0
    engine.begin(time.monotonic())
    while not engine.over and os.getppid() == parent:
        due = engine.turn(time.monotonic())
        priority.set(engine.in_real_time)
        if engine.pace.slips > slips:
            slips = engine.pace.slips
            priority.slipped()
        wait = min(due - time.monotonic(), IDLE_S)
        if wait <= 0.0:
            continue
        if engine.emulators.awaited:
            engine.emulators.sleep(wait)
        elif engine.in_real_time:  # exact, and no command acts before the next tick anyway
            time.sleep(wait)
        elif select.select([commands_fd], [], [], wait)[0]:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(commands_fd)
    limit = time.monotonic() + FLUSH_S
    while not engine.flush() and os.getppid() == parent and time.monotonic() < limit:
        time.sleep(FULL_S)


def compile_kernels(simulation: Simulation) -> None:
    """Load (or, the first time, compile) every kernel before the first tick is due."""
    twin = Simulation(simulation.loaded, simulation.seed)
    twin.enter_residents()
    twin.advance(1)
    twin.take_signals()
    twin.state()
    twin.live_signals(twin.new_signals_table())


def main() -> None:
    """Entry point of the process; arguments come from the supervisor."""
    parser = argparse.ArgumentParser()
    for name in ("--config", "--name", "--seed", "--commands-fd", "--events-fd", "--pace", "--duration", "--log"):
        parser.add_argument(name)
    a = parser.parse_args()
    try:
        simulation = Simulation(load(Path(a.config)), int(a.seed))
    except WaveSimError as error:
        sys.stderr.write(f"wavesim: {error}\n")
        sys.exit(error.exit_code)
    engine = attached(simulation, a.name, int(a.events_fd), bool(a.log))
    if a.pace:
        engine.pace.speed = float(a.pace)
    if a.duration:
        engine.end_tick = round(float(a.duration) * 1e9 / simulation.step_ns)
    compile_kernels(simulation)
    os.eventfd_write(int(a.events_fd), 1)
    run(engine, int(a.commands_fd))
    sys.exit(0)


if __name__ == "__main__":
    main()
