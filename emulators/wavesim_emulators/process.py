"""Process of an emulator: it claims its table, receives due ticks from the engine, and can be replaced at any time."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

from wavesim_emulators.base import Emulator
from wavesim_emulators.sensor_bank import SensorBank
from wavesim_sdk import termination_signals
from wavesim_sdk.attach import SensorTableClaim, SharedState
from wavesim_sdk.errors import AttachError, NotRunning

LOOK_S = 0.2  #: interval in s between checks that the server is alive


class EmulatorProcess:
    """Serve a running server until it ends or a signal arrives."""

    def __init__(self, emulator: Emulator, server: str, free_running: bool = False) -> None:
        self.emulator, self.free_running = emulator, free_running
        self._stop = False
        self.simulation = SharedState(server)
        world = self.simulation.world()
        theirs, ours = bytes(world["digest"]).decode(), emulator.loaded.digest
        if theirs not in ("", ours):
            raise AttachError(
                f"the server '{server}' runs a different configuration (digest {theirs[:12]}) than "
                f"{emulator.loaded.path} ({ours[:12]}); use the file that the server loaded, unchanged since its "
                "start"
            )
        self.step_ns = int(world["step_ns"])
        self.claim = SensorTableClaim(self.simulation, emulator.sensor)
        emulator.load_kernels()
        emulator.open(server)
        self.sensor_bank = SensorBank(emulator, int(world["seed"]), self.simulation.values(emulator.sensor))
        self._tables = ("instruments", "weather", *emulator.needs)

    def run(self, ready: Callable[[], None] = lambda: None) -> int:
        """Run the emulator. Return the number of writes. ``ready`` is called when the engine starts to wait for values.

        In the default, synchronous mode, the engine reports when a value is due and waits for it, unless the engine
        runs in real time. A free emulator runs at its own pace in wall-clock time, as in the paper.
        """
        for s in termination_signals.termination_signals():
            signal.signal(s, self._on_signal)
        written = 0
        try:
            if not self.free_running:
                self.claim.request_synchronous()
            ready()
            while not self._stop:
                due = self._wait()
                if due is not None:
                    view = self.simulation.snapshot(*self._tables)
                    if self.sensor_bank.compute(view, view.tick if self.free_running else due):
                        self.claim.write(self.sensor_bank.table, view.tick)
                    written += 1
                    if not self.free_running:
                        self.claim.signal_done()
                elif not self.simulation.alive():
                    break
                elif (
                    not self.free_running and not self.claim.is_synchronous
                ):  # the engine stopped waiting for this emulator: ask it to wait again
                    self.claim.request_synchronous()
        except NotRunning:
            pass
        finally:
            self.claim.release()
        return written

    def _wait(self) -> int | None:
        """Wait until values may be due. Return a tick, or None after a time-out."""
        if not self.free_running:
            return self.claim.wait_due(LOOK_S)
        time.sleep(min(LOOK_S, self.sensor_bank.pause(self.step_ns)))
        return 0 if self.simulation.alive() else None

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop = True
