"""The supervisor. It creates the shared objects, starts and watches the engine and the front end, and cleans up."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import importlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import posix_ipc

from wavesim_sdk import forked_process, termination_signals
from wavesim_sdk.attach import create_semaphores
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import AttachError, CommanderError, ConfigError, LogError, WaveSimError
from wavesim_sdk.front_rings import FrontRings
from wavesim_sdk.shared_memory import DONE, MEMORY, SharedMemoryArea, segment_name
from wavesim_sdk.wire.udp import open_socket
from wavesim_server.messages import COMMANDS_BYTES, EVENTS_BYTES, EXIT_FAILED, EXIT_NO_RESOURCE
from wavesim_server.resources import NameLock, area_tables, remove_leftovers, ring_names
from wavesim_server.ring import Ring
from wavesim_world.config import LoadedConfig
from wavesim_world.config.array_tables import element_groups
from wavesim_world.sonars import frame_sizes


class PortTaken(WaveSimError):
    """The UDP port is already in use."""

    exit_code = 8


class EngineNotStarted(WaveSimError):
    """The engine rejected the configuration and has reported the reason."""

    exit_code = ConfigError.exit_code


ENGINE_NICE = -10
RESTART_WINDOW_S = 60.0


class ProcessCrashed(WaveSimError):
    """The engine or the front end exited unexpectedly."""

    exit_code = 9


@dataclass(frozen=True)
class ServerOptions:
    """Server options given on the command line."""

    name: str
    seed: int
    port: int
    log: str
    speed: float | None = None
    duration: float | None = None
    threads: int = 1


@dataclass(frozen=True)
class ProcessArguments:
    """Arguments that the supervisor passes to a server process."""

    loaded: LoadedConfig
    options: ServerOptions
    commands_fd: int  #: descriptor that wakes the engine when commands are waiting
    events_fd: int  #: descriptor that wakes the front end when events are waiting
    supervisor_pid: int  #: process ID of the supervisor; the processes exit when the supervisor no longer exists
    socket: int = -1  #: descriptor of the front end's UDP socket
    is_restart: bool = False  #: True for a front end that replaces a crashed one


@contextlib.contextmanager
def shared_objects(loaded: LoadedConfig, name: str) -> Iterator[None]:
    """Create the areas, rings and semaphores of a server, and always remove them at the end."""
    group = loaded.config.shared.group
    try:
        try:
            remove_leftovers(name)
            for area, tables in area_tables(loaded).items():
                SharedMemoryArea.create(segment_name(name, area), tables, group)
            commands, events = ring_names(name)
            Ring.create(commands, COMMANDS_BYTES)
            Ring.create(events, EVENTS_BYTES)
            frame_sizes.create_rings(loaded, name)
            if hydrophones := loaded.sensor_rows.get("hydrophone", 0):
                FrontRings.create(name, hydrophones * element_groups(loaded), group)
            create_semaphores(name, loaded.sensor_rows, group)
        except (OSError, posix_ipc.Error) as error:
            raise WaveSimError(f"cannot create the server's shared memory ({MEMORY}): {error}") from None
        yield
    finally:  # also when Ctrl-C interrupts the creation
        with contextlib.suppress(OSError, posix_ipc.Error):
            remove_leftovers(name)


def bind_udp_socket(loaded: LoadedConfig, port: int) -> socket.socket:
    """Open the server's UDP socket. Raises PortTaken if the address or port cannot be used."""
    address = loaded.config.network.address
    try:
        return open_socket(address, port)
    except OSError as error:
        raise PortTaken(
            f"cannot use UDP {address}:{port}: {error.strerror}; select another port with --port or <network port=...>"
        ) from None


def is_ready(name: str) -> bool:
    """Return whether the engine has published a tick and the front end accepts commands."""
    try:
        with Commander(name) as commander:
            return (
                SharedMemoryArea.attach(segment_name(name, "vehicles"))["identity"].header[DONE] > 0
                and commander.send("status").ok
            )
    except (CommanderError, AttachError):
        return False


def reserve_log_path(log: str) -> str:
    """Create the log file immediately, so that no other server claims its name.

    An existing log is kept; in that case, a number is appended to the name of the new log.
    """
    path = Path(log)
    if not log or (path.exists() and not path.is_file()):  # no log, or a device
        return log
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            place = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
            # also skips a name whose split log has parts
            if not any(place.parent.glob(f"{glob.escape(place.stem)}.*{glob.escape(place.suffix)}")):
                with contextlib.suppress(FileExistsError):
                    place.open("xb").close()
                    return str(place)
    except OSError as error:
        raise LogError(f"cannot write the log {path}: {error.strerror}") from None
    return log


class Supervisor:
    """A running server as seen by the process that started it."""

    def __init__(self, loaded: LoadedConfig, options: ServerOptions, sock: socket.socket) -> None:
        self.options, self.restarts_left = options, loaded.config.network.restarts
        self._crashes: list[float] = []
        self.is_stopping: Callable[[], bool] = lambda: False
        self.port = int(sock.getsockname()[1])
        commands, events = os.eventfd(0, os.EFD_NONBLOCK), os.eventfd(0, os.EFD_NONBLOCK)
        common = ProcessArguments(loaded, options, commands, events, os.getpid())
        self.engine = self._start("wavesim-engine", "wavesim_server.engine.process", common, (commands, events))
        with contextlib.suppress(OSError):  # where permitted, the engine gets priority over other processes
            os.setpriority(os.PRIO_PROCESS, self.engine.pid, ENGINE_NICE)
        self._front = dataclasses.replace(common, socket=sock.fileno())
        self._fds: tuple[int, ...] = (commands, events, sock.fileno())
        self._socket = sock
        self.front = self._start("wavesim-front", "wavesim_server.network.process", self._front, self._fds)
        if not self.restarts_left:
            self._close()

    def _close(self) -> None:
        """Close the descriptors that the processes have inherited."""
        for fd in self._fds[:2]:
            os.close(fd)
        self._fds = ()
        self._socket.close()

    def _restart_front(self, cause: str) -> bool:
        """Restart the front end with a new log file; return False if the front end has crashed too often."""
        now = time.monotonic()
        self._crashes = [t for t in self._crashes if now - t < RESTART_WINDOW_S] + [now]
        if len(self._crashes) > self.restarts_left:
            return False
        again = reserve_log_path(self.options.log)
        print(
            f"wavesim: the front-end process {cause} and is being restarted; its clients must join again"
            + (f"; the log continues in {again}" if again else ""),
            file=sys.stderr,
            flush=True,
        )
        anew = dataclasses.replace(self._front, options=dataclasses.replace(self.options, log=again), is_restart=True)
        self.front = self._start("wavesim-front", "wavesim_server.network.process", anew, self._fds)
        return True

    @staticmethod  # in a session of its own: Ctrl-C reaches only the supervisor, which stops the process in order
    def _start(name: str, module: str, part: ProcessArguments, fds: tuple[int, ...]) -> forked_process.ForkedProcess:
        """Fork a process. The process itself imports the modules that it needs (for example the kernels), so that the
        other processes need not load them.
        """
        return forked_process.fork_process(name, lambda: importlib.import_module(module).main(part), fds)

    def wait_ready(self, name: str, timeout: float = 3600.0) -> bool:
        """Wait until the engine has loaded its kernels and the front end accepts commands.

        Without a usable cache, the engine compiles its kernels first, which can take many minutes on a busy machine.
        Returns False if the user stopped the server before it was ready.
        """
        limit = time.monotonic() + timeout
        while time.monotonic() < limit:
            self.check()
            if self.is_stopping():
                return False
            if is_ready(name):
                return True
            time.sleep(0.02)
        raise ProcessCrashed(f"the server was not ready within {timeout:g} s")

    def start_clock(self, waits: bool, say: Callable[[str], None]) -> None:
        """Start the clock; with ``waits``, first wait until all required clients have joined.

        The wait ends early if the user stops the server, or starts or steps the clock. ``say`` receives one line when the
        wait begins, and one when it ends.
        """
        try:
            with Commander(self.options.name) as commander:
                waited = False
                while waits:
                    status = commander.send("status").data
                    if status["tick"] or status["state"] != "stopped":
                        return  # the user controls the clock
                    if not status["missing"]:
                        break
                    if not waited:
                        names = ", ".join(status["missing"])
                        say(
                            f"waiting until the required clients have joined: {names}; `wavesim start` starts the clock immediately"
                        )
                    waited = True
                    if self.is_stopping() or self.check() is not None:
                        return
                    time.sleep(0.05)
                if waited:
                    say("the clock starts")
                commander.send("start")
        except CommanderError:
            self.check()  # if a process has ended, report that as the cause
            raise

    def check(self) -> int | None:
        """Return None while both processes are running, and 0 after the engine has exited in an orderly way.

        Raises ProcessCrashed or EngineNotStarted in all other cases.
        """
        for name, process in (("engine", self.engine), ("front", self.front)):
            code = process.poll()
            if code is None:
                continue
            if name == "engine" and code == 0:
                return 0
            if code == ConfigError.exit_code:
                raise EngineNotStarted(f"the {name} could not start (see above)")
            if code in (CommanderError.exit_code, LogError.exit_code, EXIT_NO_RESOURCE):
                raise ProcessCrashed(f"the {name} could not start (see above)")
            if code == EXIT_FAILED:
                raise ProcessCrashed(f"the {name} failed (see above); the server stops")
            cause = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
            if name == "front" and self._fds and self.engine.poll() is None and self._restart_front(cause):
                continue
            raise ProcessCrashed(f"the {name} process {cause}; the server stops")
        return None

    def finish(self, timeout: float = 10.0) -> None:
        """After a shutdown command, wait for the engine to exit, then stop the front end once the log is complete.

        Raises ProcessCrashed if a process fails.
        """
        limit = time.monotonic() + timeout
        # A front that ended before the engine never forwarded the command, so report the front, not the engine's
        # timeout.
        while self.engine.poll() is None and self.front.poll() is None and time.monotonic() < limit:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.engine.wait(0.05)
        if self.engine.poll() is None and self.front.poll() is not None:
            raise _crashed("front", self.front.wait())
        for name, process in (("engine", self.engine), ("front", self.front)):
            if name == "front":
                process.terminate()
            try:
                code = process.wait(max(0.0, limit - time.monotonic()) if name == "engine" else timeout)
            except subprocess.TimeoutExpired:
                raise ProcessCrashed(f"the {name} process did not end within {timeout:g} s") from None
            if code:
                raise _crashed(name, code)

    def terminate(self, timeout: float = 10.0) -> None:
        """Stop both processes, the engine first, so that the front end can log the engine's last records."""
        for process in (self.engine, self.front):
            if process.poll() is None:
                process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout)
            if process.poll() is None:
                process.kill()
                process.wait()
        if self._fds:
            self._close()


def _crashed(name: str, code: int) -> ProcessCrashed:
    """Return the error for a process that failed at or before the end of the run.

    If a process failed, the log may lack its last records.
    """
    cause = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
    return ProcessCrashed(f"the {name} process {cause} at the end of the run; the log may lack its last records")


def serve(loaded: LoadedConfig, options: ServerOptions, on_start: Callable[[Supervisor], None] | None = None) -> None:
    """Run a server until it is shut down, receives Ctrl-C or SIGTERM, or loses one of its processes."""
    stop = False

    def ask(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    lock = NameLock(options.name)
    try:
        sock = bind_udp_socket(loaded, options.port)
        options = dataclasses.replace(options, log=reserve_log_path(options.log))
        with shared_objects(loaded, options.name):
            previous = {s: signal.signal(s, ask) for s in termination_signals.termination_signals()}
            server = Supervisor(loaded, options, sock)
            server.is_stopping = lambda: stop
            try:
                if on_start is not None:
                    on_start(server)
                while not stop and server.check() is None:
                    time.sleep(0.05)
            finally:
                server.terminate()
                for s, handler in previous.items():
                    signal.signal(s, handler)
    finally:
        lock.release()


def _configured_log_path(loaded: LoadedConfig) -> str:
    """Return the path of the log that the configuration names.

    The path must be below the working folder or in a folder whose files the configuration may use.
    """
    file = loaded.config.log.file
    if file and not (Path(file).resolve().is_relative_to(Path().resolve()) or loaded.may_use(Path(file))):
        raise ConfigError(
            f'<log file="{file}"> is outside the working folder; set it with --log, or allow access to its folder with --files',
            str(loaded.path),
        )
    return file


def default_options(
    loaded: LoadedConfig,
    name: str | None,
    port: int | None,
    log: str | None,
    seed: int | None,
    speed: float | None,
    threads: int = 1,
    duration: float | None = None,
) -> ServerOptions:
    """Combine the values from the command line with those from the configuration; the command line takes precedence."""
    config = loaded.config
    file = _configured_log_path(loaded) if log is None else log
    return ServerOptions(
        name or config.name,
        config.seed if seed is None else seed,
        config.network.port if port is None else port,
        str(Path(file).absolute()) if file else "",
        speed,
        duration,
        threads,
    )
