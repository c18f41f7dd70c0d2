"""Trial in one process: the on-board programs run in the process that contains the engine and the emulators."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pdb
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

from wavesim_sdk.tables import RunState
from wavesim_sdk.wire.local import set_local_server
from wavesim_server.in_process.host import HostedProgram, ProgramHost
from wavesim_server.in_process.program_context import ProgramContext, SharedRandomState
from wavesim_server.in_process.program_imports import may_share_thread
from wavesim_server.in_process.server import InProcessServer, NetworkPort
from wavesim_server.serve import bind_udp_socket, shared_objects
from wavesim_server.trial import EXIT_GRACE_S, JOIN_TIMEOUT_S, ParticipantFailed, Trial, progress_bar

__all__ = ["InProcessTrial", "outside_participants"]


def outside_participants(trial: Trial) -> list[str]:
    """Return those participants of a trial that cannot run in one process, with the reason for each."""
    found = []
    for body in trial.loaded.config.fleet.bodies:
        if body.program is not None and body.program.bridge:
            found.append(f"{body.name} (bridge {body.program.bridge})")
        elif body.program is not None and body.program.own_process:
            found.append(f"{body.name} (<program own_process>)")
        elif body.program is None and body.client == "required":
            found.append(f"{body.name} (its program joins from outside)")
        found += [f"{body.name} (device {d.label})" for d in body.device]
    return found


class InProcessTrial(Trial):
    """One run of a configuration in this process.

    Participants that cannot run here (see :func:`outside_participants`) run in separate processes and take part over
    the network. ``debug`` opens the debugger in a program that raises an exception.
    """

    debug = False

    def _simulate(self) -> float:
        with self.opened():
            return self.run_to_end()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Start all participants of the trial, and end them afterwards."""
        self._prepare_folder()
        terminal, outside = sys.stderr, outside_participants(self)

        def print_line(text: str) -> None:
            if not self.quiet:
                print(f"wavesim: {text}", file=terminal, flush=True)

        with contextlib.ExitStack() as stack:
            network = None
            if outside:
                sock = stack.enter_context(bind_udp_socket(self.loaded, self.options.port))
                self.options = dataclasses.replace(self.options, port=sock.getsockname()[1])
                network = NetworkPort(sock)
                self._print(f"participants outside this process: {', '.join(outside)}")
            stack.enter_context(shared_objects(self.loaded, self.name))
            stack.enter_context(_in_folder(self.loaded.path.parent))
            stack.enter_context(_ignored_signal_handlers())
            self.server = InProcessServer(self.loaded, self.options, print_line, network)
            self.host = ProgramHost(self.server, self.name, ("127.0.0.1", self.options.port))
            self.host.on_error = self._on_error
            self._hang = ResponseCheck(self.host, self.loaded.config.network.lockstep_timeout)
            set_local_server(self.host)
            stack.callback(set_local_server, None)
            stack.callback(self._end_programs)
            random_state = SharedRandomState()
            for body in self.loaded.config.fleet.bodies:
                if body.program is None:
                    continue
                label = f"program-{body.name}"
                command = self._command(body.name, body.program, str(self.options.port))
                if body.program.bridge or body.program.own_process:
                    self._start(label, command)
                else:
                    self._add_program(label, command, random_state, stack)
            self._await_programs()
            self.started = time.monotonic()
            self.server.control("start")
            yield

    def _end_programs(self) -> None:
        left = self.host.stop()
        self.server.finish()
        self._end_participants()
        for program in self.host.programs:
            if program.exit_code and not self.failure:  # which has interrupted the others
                self.lost.setdefault(program.label, program.exit_code)
        if left:
            self._print(f"did not end: {', '.join(left)}")

    def _add_program(
        self, label: str, command: list[str], random_state: SharedRandomState, stack: contextlib.ExitStack
    ) -> None:
        """Add a program; ``command`` contains its file and its arguments."""
        output: TextIO | None = None
        if not self.debug:
            output = stack.enter_context((self.folder / f"{label}.txt").open("w", buffering=1))
        file = Path(command[0])
        context = ProgramContext(file, command[1:], output, random_state)
        traced = self.debug or sys.gettrace() or sys.getprofile() or threading.gettrace() or threading.getprofile()
        self.host.add(label, _runner(file, context), context, shares_thread=not traced and may_share_thread(file))

    def _exit_codes(self) -> dict[str, int]:
        inside = {p.label: p.exit_code for p in self.host.programs if p.exit_code is not None}
        return super()._exit_codes() | inside

    def _await_programs(self) -> None:
        """Let the programs join the server."""
        server, host = self.server, self.host
        joined_by = time.monotonic() + JOIN_TIMEOUT_S

        def look() -> None:
            self._check_running()
            status = server.status()
            missing = self._missing_devices(status, self.options.port)
            if time.monotonic() > joined_by:
                raise self._not_joined([*status["missing"], *missing])

        def have_joined() -> bool:
            if not all(p.has_begun for p in host.programs) or host.running is not None:
                return False
            status = server.status()
            return not status["missing"] and not self._devices.missing(status)

        host.drive(have_joined, look)
        self._print(f"{len(self.loaded.sensor_rows)} emulators and {len(host.programs)} programs run in this process")

    def run_to_end(self) -> float:
        """Run to the end of the trial; return the wall time of the run in s."""
        server, host = self.server, self.host
        with progress_bar(f"trial {self.name}", self.duration, self.quiet or self.debug) as bar:

            def look() -> None:
                time_s = server.simulation.time_ns * 1e-9
                self._show_progress(bar, time_s, time_s / max(time.monotonic() - self.started, 1e-3))
                self._look()

            host.drive(self._is_over, look)
            look()
            bar.refresh()
        wall = time.monotonic() - self.started
        ended_by = time.monotonic() + (0.0 if self.failure else EXIT_GRACE_S)
        host.drive(
            lambda: all(p.exit_code is not None for p in host.programs) or time.monotonic() >= ended_by,
            lambda: None,
        )
        self._record_losses(dict(server.status()))
        return wall

    def run_until(self, time_s: float) -> None:
        """Run until the given simulation time, or to the end of the trial if that comes earlier."""
        engine = self.server.engine
        engine.hold_tick = round(time_s * 1e9) // self.server.simulation.step_ns
        self.host.drive(lambda: self.server.is_held or self._is_over(), self._look)
        engine.hold_tick = None

    def _is_over(self) -> bool:
        """Return whether the run has ended or a program has failed, in this process or outside it."""
        if self.server.run_state is RunState.ENDED or self.failure:
            return True
        if self.keep_going or not any(p.exit_code for p in self.host.programs):
            return False
        self._look()  # at once: in one process, a failure ends the trial at the same tick in each run
        return bool(self.failure)

    def _look(self) -> None:
        """Check that no program hangs, and report the participants that have ended."""
        time_s = self.server.simulation.time_ns * 1e-9
        self._hang.look(time_s)
        if self.server.run_state is not RunState.ENDED:
            self._report_ended(self._exit_codes(), time_s)

    def _on_error(self, program: HostedProgram, error: BaseException) -> None:
        """Open the debugger at the point where a program raised an exception. Simulation time stops while the debugger
        is open.
        """
        if not self.debug or self.host.is_over:
            return
        time_s = self.server.simulation.time_ns * 1e-9
        sys.stdout.write(f"{program.label} raised {type(error).__name__} at {time_s:.3f} s; the simulation waits\n")
        self._hang.is_active = False
        pdb.post_mortem(error.__traceback__)


class ResponseCheck:
    """Finds a program that does not answer a step within the time limit."""

    def __init__(self, host: ProgramHost, time_limit: float) -> None:
        self._host, self._time_limit = host, time_limit
        self._calls, self._since = -1, 0.0
        self.is_active = True

    def look(self, time_s: float) -> None:
        """Raise ParticipantFailed if the running program has run for too long without answering."""
        program, now = self._host.running, time.monotonic()
        if program is None or self._host.calls != self._calls:
            self._calls, self._since = self._host.calls, now
        elif self.is_active and now - self._since > self._time_limit:
            raise ParticipantFailed(
                f"{program.label} did not answer its step within {self._time_limit:g} s (<network lockstep_timeout>) at "
                f"{time_s:.3f} s of simulation time; the program is at {_position(program)}"
            )


def _position(program: HostedProgram) -> str:
    """Return the file and line that a program is currently executing: preferably a line in its own folder, otherwise a
    line in a library.
    """
    frame = sys._current_frames().get(program.thread.ident or 0) if program.thread is not None else None
    if frame is None:
        return "an unknown location"
    places = traceback.extract_stack(frame)
    own = [p for p in places if Path(p.filename).is_relative_to(program.context.folder)]
    place = (own or places)[-1]
    return f"{place.filename}:{place.lineno} ({place.name})"


def _runner(file: Path, context: ProgramContext) -> Callable[[], int]:
    """Return a function that runs a program in the same way as `python FILE`."""

    def run() -> int:
        code: CodeType = compile(file.read_bytes(), str(file), "exec")
        exec(code, context.main.__dict__)
        return 0

    return run


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Change the working directory to the folder of the programs."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _ignored_signal_handlers() -> Iterator[None]:
    """Ignore the signal handlers that programs set, because only the main thread can have such handlers and because the
    trial itself ends the programs.
    """
    real = signal.signal

    def set_handler(number: int, handler: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return real(number, handler)
        return signal.getsignal(number)

    signal.signal = set_handler  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = real
