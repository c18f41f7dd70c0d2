"""The engine's process. It adds a clock, waiting, shared memory and rings to the core."""

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
from wavesim_sdk.wire.value_types import sanitise_text
from wavesim_server import compiling
from wavesim_server.engine.core import FULL_QUEUE_RETRY_S, Engine
from wavesim_server.engine.emulators import SemaphoreSignal, SynchronousEmulators
from wavesim_server.engine.event_queue import EventQueue
from wavesim_server.engine.pace import TickPacer
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.messages import EXIT_FAILED
from wavesim_server.priority import RealTimePriority
from wavesim_server.resources import attach_areas, attach_front_rings, exit_without_resource, ring_names
from wavesim_server.ring import Ring
from wavesim_server.simulation import Simulation

if TYPE_CHECKING:
    from wavesim_server.serve import ProcessArguments

IDLE_S = 0.1  #: maximum time between two checks of whether the supervisor is running
FLUSH_S = 5.0  #: maximum time for delivering the last events when the front end is behind
TRACEBACK_FRAMES = 3  #: number of stack frames, innermost last, in the message about a failed tick


def attach_engine(simulation: Simulation, name: str, events_fd: int, log: bool) -> Engine:
    """Create an engine that uses the shared memory and the rings of a server."""
    areas = attach_areas(name)
    commands, events = ring_names(name)
    instruments = InstrumentRegistry(simulation.loaded.sensor_rows, simulation.step_ns)
    bells = {
        s: SemaphoreSignal(open_semaphore(name, s, "due"), open_semaphore(name, s, "done")) for s in instruments.types
    }
    network = simulation.config.network
    emulators = SynchronousEmulators(
        areas["vehicles"], bells, instruments, network.lockstep_timeout, network.lockstep_budget
    )
    pacer = TickPacer.from_config(simulation.config.time)
    queue = EventQueue(Ring.attach(events), pacer, lambda: os.eventfd_write(events_fd, 1))
    engine = Engine(simulation, areas, Ring.attach(commands), queue, emulators, pacer, log=log)
    engine.front_rings = attach_front_rings(simulation.loaded, name)
    return engine


def run(engine: Engine, commands_fd: int, supervisor: int) -> int:
    """Run until a shutdown command arrives or the supervisor (given by its process ID) exits; return the exit code.

    Errors in sessions and commands never reach this function (see :mod:`wavesim_server.engine.command_executor`). After
    a failed tick, the simulation cannot continue. The run then ends with a one-line message, and the log contains
    everything before that tick.
    """
    try:
        _run_loop(engine, commands_fd, supervisor)
        code = 0
    except Exception as error:
        sys.stderr.write(f"wavesim: {_failure_text(engine, error)}\n")
        code = EXIT_FAILED
    limit = time.monotonic() + FLUSH_S
    while not engine.flush() and os.getppid() == supervisor and time.monotonic() < limit:
        time.sleep(FULL_QUEUE_RETRY_S)
    return code


def _failure_text(engine: Engine, error: Exception) -> str:
    """Return the message about a failed tick."""
    frames = traceback.extract_tb(error.__traceback__)[-TRACEBACK_FRAMES:]
    places = " > ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames)
    return (
        f"the engine failed at {engine.sim.time_ns * 1e-9:.3f} s of simulation time; the run ends: "
        f"{type(error).__name__}: {sanitise_text(str(error), 200)} ({places}); this is a bug in the simulator: please report it "
        "with this line and the configuration"
    )


def _run_loop(engine: Engine, commands_fd: int, supervisor: int) -> None:
    priority, slips = RealTimePriority(), 0
    engine.begin(time.monotonic())
    while not engine.is_over and os.getppid() == supervisor:
        due = engine.poll(time.monotonic())
        priority.set_realtime(engine.run.is_real_time)
        if engine.pacer.slips > slips:
            slips = engine.pacer.slips
            priority.count_slip()
        wait = min(due - time.monotonic(), IDLE_S)
        if wait <= 0.0:
            continue
        if engine.emulators.pending:
            engine.emulators.wait(wait)
        elif (
            engine.run.is_real_time and not engine.run.awaits_release
        ):  # exact; no command takes effect before the next tick anyway
            time.sleep(wait)
        elif select.select([commands_fd], [], [], wait)[0]:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(commands_fd)


def main(part: ProcessArguments) -> None:
    """Run the engine of a server from its first tick to its last."""
    options = part.options
    try:
        simulation = Simulation(part.loaded, options.seed, options.threads)
        engine = attach_engine(simulation, options.name, part.events_fd, bool(options.log))
    except WaveSimError as error:  # also if the supervisor has ended in the meantime
        sys.stderr.write(f"wavesim: {error}\n")
        sys.exit(error.exit_code)
    except (OSError, posix_ipc.Error) as error:
        exit_without_resource("engine", error)
    engine.override_time(options.speed, options.duration)
    compiling.exercise_all(options.threads)
    if simulation.channel.hydrophones is not None:
        compiling.exercise_hydrophones()
    os.eventfd_write(part.events_fd, 1)
    sys.exit(run(engine, part.commands_fd, part.supervisor_pid))
