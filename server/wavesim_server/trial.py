"""Trial with server, emulators and on-board programs in separate processes, followed by the table and the plots of the
trial.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from wavesim_sdk import forked_process, termination_signals
from wavesim_sdk.attach import SharedState
from wavesim_sdk.cli import cli
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import CommanderError, ConfigError, LogError, WaveSimError
from wavesim_sdk.log import Log, read
from wavesim_sdk.shared_memory import SYNCHRONOUS
from wavesim_sdk.tables import RunState
from wavesim_server import program_output
from wavesim_server.address_layout import same_address_layout
from wavesim_server.instruments import installed_emulators
from wavesim_server.logbook import report
from wavesim_server.resources import NameLock
from wavesim_server.serve import ServerOptions, Supervisor, bind_udp_socket, shared_objects
from wavesim_server.trial_devices import TrialDevices
from wavesim_world.config import LoadedConfig
from wavesim_world.config.model import Program

JOIN_TIMEOUT_S = 300.0  #: time limit for joining; programs may compile kernels before they join
EMULATOR_PREFIX = "emulator-"  #: prefix of the labels of emulators
EXIT_GRACE_S = 0.3  #: time limit within which programs must end on their own
#: counters in the `clock` table; all of them are 0 if no data were lost
LOSS_COUNTERS = ("events_dropped", "sensors_late")


class TrialDataLost(WaveSimError):
    """Raised if some data of a trial were lost."""

    exit_code = 12


class Diverged(WaveSimError):
    """Raised if a body was frozen during a trial because its state diverged (NaN or infinity), so that the results for
    this body are meaningless.
    """

    exit_code = 13


class ParticipantFailed(WaveSimError):
    """Raised if a participant did not start, or if a program failed and thus ended the trial."""

    exit_code = 10


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def progress_bar(name: str, duration: float, quiet: bool) -> Any:
    """Return a progress bar for the simulated seconds. On a terminal, it is animated; in a file, it prints a line from
    time to time.
    """
    tqdm.monitor_interval = 0  # no monitor thread: the process forks again when the front crashes
    terminal, digits = sys.stderr.isatty(), 0 if duration >= 10.0 else 1
    return tqdm(
        total=duration,
        disable=quiet,
        desc=name,
        mininterval=0.1 if terminal else 10.0,
        ascii=None if terminal else " -",
        bar_format=f"{{desc}}: {{percentage:3.0f}}%|{{bar:30}}| {{n:.{digits}f}}/{{total:.{digits}f}} s simulated{{postfix}}",
    )


class Trial:
    """One run of a configuration with all its participants.

    If a program exits with an error, the trial ends; with ``keep_going``, it continues without the program.
    """

    keep_going = False

    def __init__(
        self,
        loaded: LoadedConfig,
        out: Path,
        *,
        realtime: bool = False,
        duration: float | None = None,
        name: str | None = None,
        port: int | None = None,
        seed: int | None = None,
        quiet: bool = False,
    ) -> None:
        config = loaded.config
        self.loaded, self.quiet = loaded, quiet
        self.duration = duration or config.time.duration
        if not self.duration:
            raise ConfigError("a trial needs a duration: set <time duration=...> or --duration", str(loaded.path))
        self.name = name or config.name
        self.folder = (out / self.name).absolute()
        self.log = self.folder / "run.mcap"
        self.seed = config.seed if seed is None else seed
        speed = 1.0 if realtime else None
        port = config.network.port if port is None else port
        self.options = ServerOptions(self.name, self.seed, port, str(self.log), speed, self.duration)
        self.processes: dict[str, subprocess.Popen[bytes] | forked_process.ForkedProcess] = {}
        self.lost: dict[str, int] = {}  # exit code of each participant that ended before the run
        self.damage: list[str] = []  #: data losses of the run
        self.recorded: Log | None = None  #: content of the log, for the table
        self.frozen: list[str] = []  #: bodies whose state diverged, each with the time at which it diverged
        self._former_log_time = 0  # of the previous run
        self._devices = TrialDevices(loaded)
        self.failure = ""  #: description of how a program ended the run; empty if none did

    def run(self, plots: bool = True) -> str:
        """Run the trial and return its table as text. The table includes the losses, which are also available in
        :attr:`damage`.
        """
        lock = NameLock(self.name)
        handlers = {s: signal.signal(s, _interrupt) for s in termination_signals.termination_signals()}
        try:
            wall = self._simulate()
        except KeyboardInterrupt:
            if self._log_time() not in (0, self._former_log_time):
                print(f"trial {self.name} was interrupted; the log up to that point is {self.log}", file=sys.stderr)
            raise
        finally:
            for s, handler in handlers.items():
                signal.signal(s, handler)
            lock.release()
        return self._finish(plots, wall)

    def _simulate(self) -> float:
        """Run all participants to the end; return the wall time of the run in s."""
        sock = bind_udp_socket(self.loaded, self.options.port)
        self._prepare_folder()
        with shared_objects(self.loaded, self.name), same_address_layout():
            server = Supervisor(self.loaded, self.options, sock)
            try:
                self._print("starting server")
                self._load_emulators()
                server.wait_ready(self.name)
                return self._run_participants(server)
            finally:
                self._end_participants()
                server.terminate()

    def _log_time(self) -> int:
        """Return the time in ns at which the log last changed; 0 if there is no log."""
        return self.log.stat().st_mtime_ns if self.log.exists() else 0

    def _prepare_folder(self) -> None:
        self._former_log_time = self._log_time()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WaveSimError(f"cannot write to {self.folder}: {error.strerror}") from None
        for old in (*self.folder.glob("*.png"), *self.folder.glob("run.*.mcap")):  # of the previous run
            old.unlink()

    def _print(self, text: str) -> None:
        if not self.quiet:
            print(f"trial {self.name}: {text}", file=sys.stderr, flush=True)

    # -- participants ----------------------------------------------------------------------------

    def _load_emulators(self) -> None:
        """Load the emulators and their kernels once for all emulator processes while the server is starting."""
        for sensor, entry in installed_emulators().items():
            if sensor in self.loaded.sensor_rows:
                with contextlib.suppress(ImportError):  # the emulator reports it in its own output
                    entry.load().load_kernels()

    def _start(self, label: str, arguments: list[str]) -> None:
        with (self.folder / f"{label}.txt").open("wb") as out:
            self.processes[label] = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.loaded.path.parent,
                start_new_session=True,  # Ctrl-C reaches only the trial, which stops them in order
            )

    def _start_emulator(self, sensor: str) -> None:
        """Start an emulator in the same way as `wavesim emulate`."""

        def run() -> None:
            os.chdir(self.loaded.path.parent)
            cli(["emulate", sensor, str(self.loaded.path), "--server", self.name])

        label = f"{EMULATOR_PREFIX}{sensor}"
        with (self.folder / f"{label}.txt").open("wb") as out:
            self.processes[label] = forked_process.fork_process(label, run, output=out.fileno())

    def _command(self, name: str, program: Program, port: str) -> list[str]:
        here = ["--vehicle", name, "--port", port]
        if not program.bridge:
            run = [str(self.loaded.data_file(program.run)), "--config", str(self.loaded.path), *here]
            return [*run, *shlex.split(program.options)]
        period = ["--period", f"{program.period:.9g}"]
        return ["-m", "wavesim_sdk", "bridge", program.bridge, *here, *period, *shlex.split(program.options)]

    def _run_participants(self, server: Supervisor) -> float:
        reader = SharedState(self.name)
        emulators = tuple(self.loaded.sensor_rows)
        for s in emulators:
            self._start_emulator(s)
        for b in self.loaded.config.fleet.bodies:
            if b.program is not None:
                self._start(f"program-{b.name}", self._command(b.name, b.program, str(server.port)))
        with Commander(self.name) as commander:
            try:
                self._await_all(server, reader, commander, emulators)
                self._print(f"{len(emulators)} emulators and {len(self.processes) - len(emulators)} programs take part")
                commander.send("start")
            except CommanderError:
                server.check()  # a front that has ended is the cause of its silence
                raise
            started = time.monotonic()
            self._follow_run(server, reader)
            wall = time.monotonic() - started
            try:
                self._record_losses(commander.send("status").data)
                commander.send("shutdown")
            except CommanderError as error:  # server.finish reports a front that has ended
                self._print(str(error))
        server.finish()
        return wall

    def _await_all(
        self, server: Supervisor, reader: SharedState, commander: Commander, emulators: tuple[str, ...]
    ) -> None:
        limit = time.monotonic() + JOIN_TIMEOUT_S
        while True:
            server.check()
            # emulators that the engine does not yet wait for
            missing = [s for s in emulators if reader.vehicles[s].header[SYNCHRONOUS] == 0]
            status = commander.send("status").data
            missing += [*status["missing"], *self._missing_devices(status, server.port)]
            if not missing:
                return
            self._check_running()
            if time.monotonic() > limit:
                raise self._not_joined(missing)
            time.sleep(0.02)

    def _missing_devices(self, status: Mapping[str, Any], port: int) -> list[str]:
        """Start the devices that are due; return those devices that have not joined."""
        for device in self._devices.take_due(status):
            self._start(device.label, device.arguments(self.loaded, port))
        return self._devices.missing(status)

    def _not_joined(self, missing: Iterable[str]) -> ParticipantFailed:
        return ParticipantFailed(
            f"participants did not join within {JOIN_TIMEOUT_S:g} s: {', '.join(missing)}; see {self.folder}/*.txt"
        )

    def _exit_codes(self) -> dict[str, int]:
        """Return the exit codes of the participants that have exited."""
        return {label: code for label, p in self.processes.items() if (code := p.poll()) is not None}

    def _check_running(self) -> None:
        """Raise ParticipantFailed if a participant has exited."""
        for label, code in self._exit_codes().items():
            raise ParticipantFailed(self._describe_end(label, code, "before the trial started"))

    def _report_ended(self, codes: dict[str, int], time_s: float) -> bool:
        """Report the participants that have exited since the last call. Return whether one of them ends the trial.

        ``codes`` contains the exit codes of the participants that have exited, and ``time_s`` is the simulation time.
        """
        for label, code in codes.items():
            if label in self.lost:
                continue
            self.lost[label] = code
            if code and not self.keep_going and not label.startswith(EMULATOR_PREFIX):
                self.failure = self._describe_end(label, code, f"after {time_s:.3f} s and ended the trial")
                self.failure += "; --keep-going continues without the program"
                return True
            self._print(f"{label} ended early (code {code}); the trial continues without it")
        return False

    def _show_progress(self, bar: Any, time_s: float, factor: float) -> None:
        bar.set_postfix_str(f"{factor:.1f} x real time", refresh=False)
        # set directly: a sum of steps would exceed the end by rounding, and the bar would warn
        bar.n = min(time_s, self.duration)
        bar.update(0)

    def _describe_end(self, label: str, code: int, when: str) -> str:
        """Return a description of how a participant exited: the line of its own code at which it exited, its last
        output, and the file that contains all of its output.
        """
        lines, own, output = self._output_of(label)
        where = f"{own}: " if own else ""
        end = f"{label} exited with code {code} {when}: {where}{program_output.final_words(lines)}"
        return f"{end}; all output: {output}" if lines else end

    def _output_of(self, label: str) -> tuple[list[str], str, Path]:
        """Return the last lines that a participant printed, the line of its own code in a traceback, and its output
        file.

        If the participant printed to the terminal, there are no lines.
        """
        path = self.folder / f"{label}.txt"
        lines = program_output.read_last_lines(path)
        bodies = {f"program-{b.name}": b.program for b in self.loaded.config.fleet.bodies}
        program = bodies.get(label)
        if program is None or program.bridge:
            return lines, "", path
        return lines, program_output.own_line(lines, self.loaded.data_file(program.run).parent), path

    def _last_words(self, label: str) -> list[str]:
        """Return the lines of the table that describe the end of a participant."""
        lines, own, path = self._output_of(label)
        last = [line[: program_output.LINE_LENGTH] for line in lines[-program_output.LAST_LINES :]]
        if own:
            last = [own, *(line for line in last if not line.startswith(" "))]  # without the frames of libraries
        return [*last, *([f"all output: {path}"] if lines else [])]

    def _follow_run(self, server: Supervisor, reader: SharedState) -> None:
        with progress_bar(f"trial {self.name}", self.duration, self.quiet) as bar:
            while True:
                codes = self._exit_codes()  # before the clock is read: programs may end at the end of the run
                clock = reader.clock()
                self._show_progress(bar, float(clock["time_ns"]) * 1e-9, float(clock["realtime_factor"]))
                if clock["state"] == RunState.ENDED:
                    bar.refresh()
                    return
                if server.check() is not None:
                    raise ParticipantFailed("the server exited before the trial ended")
                if self._report_ended(codes, float(clock["time_ns"]) * 1e-9):
                    return
                time.sleep(0.05)

    def _record_losses(self, status: dict[str, Any]) -> None:
        """Record the losses that the server's status reports at the end of the run."""
        self.damage = [
            *(f"{status[what]} {report.TROUBLE_TEXTS[what]}" for what in LOSS_COUNTERS if status[what]),
            *status["damage"],
        ]

    def _end_participants(self) -> None:
        """Stop the emulators, because they run until they are terminated.

        The server reports the end of the run to the programs, which then have a short time to exit.
        """
        stopped = {
            label for label, p in self.processes.items() if label.startswith(EMULATOR_PREFIX) and p.poll() is None
        }
        for label in stopped:
            self.processes[label].terminate()
        moment = time.monotonic() + EXIT_GRACE_S
        for label, process in self.processes.items():
            if label in stopped:
                continue
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, moment - time.monotonic()))
            if process.poll() is None:
                process.terminate()
            elif process.returncode and not self.failure:  # which has interrupted the others
                self.lost.setdefault(label, process.returncode)
        limit = time.monotonic() + 5.0
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, limit - time.monotonic()))
            if process.poll() is None:
                process.kill()
                process.wait()

    # -- results ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise ParticipantFailed if a program ended the run, and Diverged or TrialDataLost if the results cannot be
        trusted.
        """
        if self.failure:
            raise ParticipantFailed(self.failure)
        if self.frozen:
            raise Diverged(
                f"the state diverged (NaN or infinity): {', '.join(self.frozen)}; the table's figures for these bodies are meaningless"
            )
        if self.damage:
            raise TrialDataLost(f"the trial is incomplete: {'; '.join(self.damage)}")

    def _finish(self, plots: bool, wall: float) -> str:
        drawing = self._start_plotting() if plots and not self.failure else None  # in parallel with the table
        try:
            text = self.write_table(wall)
            pictures = self._plot_lines(drawing) if drawing else []
        finally:
            if drawing is not None and drawing.poll() is None:
                drawing.terminate()
                drawing.communicate()
        again = f"replay    wavesim viz {self.log}"
        return "\n".join([text, "", f"log       {self.log}", *pictures, again])

    def _start_plotting(self) -> subprocess.Popen[str]:
        """Start a process that draws the plots of the run."""
        self._print("drawing pictures")
        return subprocess.Popen(
            [sys.executable, "-m", "wavesim_sdk", "plot", str(self.log)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _plot_lines(self, drawing: subprocess.Popen[str]) -> list[str]:
        """Wait until the plots are drawn, and return a line for each of them. If drawing failed, the last line states
        the reason.
        """
        out, error = drawing.communicate()
        lines = [f"picture   {path}" for path in out.splitlines()]
        if drawing.returncode:
            lines.append(
                f"the plots could not be drawn: {(error.strip().splitlines() or ['the plot command printed no message'])[-1]}"
            )
        return lines

    def write_table(self, wall: float) -> str:
        """Write the table of the run to its folder and return it as text."""
        # a program may end early with code 0
        failed = {label: code for label, code in self.lost.items() if code or label.startswith(EMULATOR_PREFIX)}
        last_words = {label: self._last_words(label) for label in failed}
        self.damage = [*(f"{label} ended early (code {code})" for label, code in failed.items()), *self.damage]
        try:
            self.recorded = read(self.log)
            table = report.trial_table(self.recorded)
        except LogError as error:
            raise TrialDataLost("; ".join([str(error), *self.damage])) from None
        if not table["complete"]:
            self.damage.append(f"the log {self.log} is incomplete: it ends at {table['duration_s']:.1f} s")
        table["ended_early"], table["last_words"], table["damage"] = self.lost, last_words, self.damage
        self.frozen = [f"{v['name']} at {v['frozen_at_s']:.3f} s" for v in table["vehicles"] if "frozen_at_s" in v]
        table["wall_s"], table["realtime_factor"] = round(wall, 2), round(table["duration_s"] / wall, 1)
        text = report.table_text(table)
        try:
            (self.folder / "table.txt").write_text(text + "\n")
            (self.folder / "table.json").write_text(report.table_json(table) + "\n")
        except OSError as error:  # the caller still prints the table
            self.damage.append(f"cannot write the table to {self.folder}: {error.strerror}")
        return text
