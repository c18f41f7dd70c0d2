"""Manager of several emulators, each in its own process. It starts them together, restarts those that crash, and stops
them together.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from types import FrameType

from wavesim_sdk import forked_process, termination_signals
from wavesim_sdk.attach import SharedState
from wavesim_sdk.cli import cli
from wavesim_sdk.emulator_attachment import is_remote
from wavesim_sdk.errors import NotRunning, WaveSimError

POLL_S = 0.1
NICE = 5
#: an emulator that exits within EARLY_DEATH_S seconds of each start is restarted at most RESTARTS times in a row
RESTARTS, EARLY_DEATH_S = 5, 5.0
END_S = 5.0


class EmulatorManager:
    """Manager with one supervised process per sensor type."""

    def __init__(self, sensors: list[str], config: str, server: str, free: bool, report: Callable[[str], None]) -> None:
        self.server, self.report = server, report
        self.arguments = [config, "--server", server, *(["--free"] if free else [])]
        self.processes: dict[str, forked_process.ForkedProcess] = {}
        self.early_deaths = dict.fromkeys(sensors, 0)  # consecutive early failures
        self.started_at: dict[str, float] = {}
        self._stop = False

    def _start(self, sensor: str) -> None:
        """Start an emulator with its own command, in its own session. Ctrl-C then reaches only the manager, which stops
        all emulators in an orderly way.
        """
        self.processes[sensor] = forked_process.fork_process(
            f"emulator-{sensor}", lambda: cli(["emulate", sensor, *self.arguments])
        )
        with contextlib.suppress(OSError):  # starting takes a core for a second; the engine's tick has priority
            os.setpriority(os.PRIO_PROCESS, self.processes[sensor].pid, NICE)
        self.started_at[sensor] = time.monotonic()

    def run(self) -> None:
        """Run until the server exits, a signal arrives, or all emulators have exited."""
        simulation = None if is_remote(self.server) else SharedState(self.server)

        def is_running() -> bool:
            return simulation is None or simulation.alive()

        for s in termination_signals.termination_signals():
            signal.signal(s, self._on_signal)
        failed = False
        for sensor in self.early_deaths:
            self._start(sensor)
        self.report(f"{len(self.processes)} emulators: {', '.join(self.processes)}")
        try:
            while not self._stop and self.processes and is_running():
                time.sleep(POLL_S)
                for sensor, process in list(self.processes.items()):
                    if (code := process.poll()) is None or not is_running() or self._stop:
                        continue
                    if simulation is None and code == 0:  # the server on the other machine has ended
                        del self.processes[sensor]
                    else:
                        failed = True
                        self._on_exit(sensor, code)
        except NotRunning:
            pass
        finally:
            self._terminate_all()
        if not self.processes and not self._stop and is_running() and failed:
            raise WaveSimError("all emulators have exited")

    def _on_exit(self, sensor: str, code: int) -> None:
        quick = time.monotonic() - self.started_at[sensor] < EARLY_DEATH_S
        self.early_deaths[sensor] = self.early_deaths[sensor] + 1 if quick else 0
        how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
        if self.early_deaths[sensor] > RESTARTS:
            del self.processes[sensor]
            self.report(
                f"emulator {sensor} {how}; it failed {RESTARTS + 1} times in a row, each time within {EARLY_DEATH_S:g} "
                f"s of its start, and will not be restarted"
            )
            return
        self.report(f"emulator {sensor} {how}; restarted")
        self._start(sensor)

    def _terminate_all(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        limit = time.monotonic() + END_S
        for process in self.processes.values():
            try:
                process.wait(max(0.05, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop = True
