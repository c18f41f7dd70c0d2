"""An emulator as a process: it claims its table, is told by the engine what is due, and can be replaced at any moment."""

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

LOOK_S = 0.2  #: how often it looks whether the server still lives


class EmulatorProcess:
    """Serves a running server until it ends or a signal comes."""

    def __init__(self, emulator: Emulator, server: str, free_running: bool = False) -> None:
        self.emulator, self.free_running = emulator, free_running
        self._stop = False
        self.simulation = SharedState(server)
        world = self.simulation.world()
        theirs, ours = bytes(world["digest"]).decode(), emulator.loaded.digest
        if theirs not in ("", ours):
            raise AttachError(
                f"the server '{server}' runs another configuration (digest {theirs[:12]}) than {emulator.loaded.path} "
                f"({ours[:12]}); name the file that it runs, as it was when it started"
            )
        self.step_ns = int(world["step_ns"])
        self.claim = SensorTableClaim(self.simulation, emulator.sensor)
        emulator.open(server)
        self.sensor_bank = SensorBank(emulator, int(world["seed"]), self.simulation.values(emulator.sensor))
        self._tables = ("instruments", "weather", *emulator.needs)

    def run(self, ready: Callable[[], None] = lambda: None) -> int:
        """Returns how often values were written; ``ready`` is called when the engine begins to wait for them.

        Synchronous (the default): the engine says when a value is due and, unless time is real, waits for it.  Free: at its
        own pace in wall time, as in the paper.
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
                ):  # the engine gave up on us: ask to be waited for again
                    self.claim.request_synchronous()
        except NotRunning:
            pass
        finally:
            self.claim.release()
        return written

    def _wait(self) -> int | None:
        """Until values may be due: a tick; None after a while without."""
        if not self.free_running:
            return self.claim.wait_due(LOOK_S)
        time.sleep(min(LOOK_S, self.sensor_bank.pause(self.step_ns)))
        return 0 if self.simulation.alive() else None

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop = True
