"""The engine's process: clock, sleep, shared memory and rings around the core."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import posix_ipc

from wavesim_sdk.attach import open_semaphore
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.shared_memory import SharedMemoryArea, segment_name
from wavesim_sdk.wire.value_types import sanitise_text
from wavesim_server import compiling
from wavesim_server.engine.core import FULL_S, Engine
from wavesim_server.engine.emulators import Emulators, Semaphores
from wavesim_server.instruments import Instruments
from wavesim_server.messages import FAILED
from wavesim_server.priority import Priority
from wavesim_server.resources import refused, ring_names
from wavesim_server.ring import Ring
from wavesim_server.simulation import Simulation

if TYPE_CHECKING:
    from wavesim_server.serve import Part

IDLE_S = 0.1  #: at most between two looks at the supervisor
FLUSH_S = 5.0  #: for the last events, when the front is behind
PLACES = 3  #: of the program, innermost last, in the line about a tick that failed


def attached(simulation: Simulation, name: str, events_fd: int, log: bool) -> Engine:
    """An engine on the shared memory and the rings of a server."""
    areas = {a: SharedMemoryArea.attach(segment_name(name, a), writable=True) for a in ("simulation", "vehicles")}
    commands, events = ring_names(name)
    instruments = Instruments(simulation.loaded.sensor_rows, simulation.step_ns)
    bells = {s: Semaphores(open_semaphore(name, s, "due"), open_semaphore(name, s, "done")) for s in instruments.types}
    network = simulation.config.network
    emulators = Emulators(areas["vehicles"], bells, instruments, network.lockstep_timeout, network.lockstep_budget)
    return Engine(
        simulation,
        areas,
        Ring.attach(commands),
        Ring.attach(events),
        emulators,
        log=log,
        wake=lambda: os.eventfd_write(events_fd, 1),
    )


def run(engine: Engine, commands_fd: int, supervisor: int) -> int:
    """Until a shutdown command, or the death of the supervisor (its process id), also during a long start; returns the exit code.

    What a session or a command does wrong never gets here (see :mod:`wavesim_server.engine.orders`). A tick that fails has no
    other tick to go on from: then the run ends with one line, and the log has all that happened before.
    """
    try:
        _turns(engine, commands_fd, supervisor)
        code = 0
    except Exception as error:
        sys.stderr.write(f"wavesim: {_failure(engine, error)}\n")
        code = FAILED
    limit = time.monotonic() + FLUSH_S
    while not engine.flush() and os.getppid() == supervisor and time.monotonic() < limit:
        time.sleep(FULL_S)
    return code


def _failure(engine: Engine, error: Exception) -> str:
    """What is said of a tick that failed."""
    frames = traceback.extract_tb(error.__traceback__)[-PLACES:]
    places = " > ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames)
    return (
        f"the engine failed at {engine.sim.time_ns * 1e-9:.3f} s of simulation time and the run ends: "
        f"{type(error).__name__}: {sanitise_text(str(error), 200)} ({places}); this is a fault of the simulator: please report it "
        "with this line and the configuration"
    )


def _turns(engine: Engine, commands_fd: int, supervisor: int) -> None:
    priority, slips = Priority(), 0
    engine.begin(time.monotonic())
    while not engine.over and os.getppid() == supervisor:
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
        elif engine.in_real_time and not engine.waiting:  # exact, and no command acts before the next tick anyway
            time.sleep(wait)
        elif select.select([commands_fd], [], [], wait)[0]:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(commands_fd)


def main(part: Part) -> None:
    """The engine of a server, from its first tick to its last."""
    options = part.options
    try:
        simulation = Simulation(part.loaded, options.seed, options.threads)
        engine = attached(simulation, options.name, part.events, bool(options.log))
    except WaveSimError as error:  # also where the supervisor died meanwhile
        sys.stderr.write(f"wavesim: {error}\n")
        sys.exit(error.exit_code)
    except (OSError, posix_ipc.Error) as error:
        refused("engine", error)
    if options.speed is not None:
        engine.pace.speed = options.speed
    if options.duration is not None:
        engine.end_tick = round(options.duration * 1e9 / simulation.step_ns)
    compiling.exercise(options.threads)
    os.eventfd_write(part.events, 1)
    sys.exit(run(engine, part.commands, part.supervisor))
