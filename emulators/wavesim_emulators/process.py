"""Process of an emulator. It claims its table, is notified by the engine when a tick is due, and can be replaced at any
time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from wavesim_emulators.base import Emulator
from wavesim_emulators.sensor_bank import SensorBank
from wavesim_sdk import termination_signals
from wavesim_sdk.arrival_batches import ARRIVAL_TABLES
from wavesim_sdk.emulator_attachment import EmulatorAttachment, attach_emulator, is_remote
from wavesim_sdk.errors import AttachError, NotRunning

LOOK_S = 0.2  #: interval in s at which to check whether the server is running


class EmulatorProcess:
    """Process that runs an emulator for a running server, on this machine (NAME) or another one (HOST:PORT), until the
    server exits or a signal arrives.
    """

    def __init__(self, emulator: Emulator, server: str, free_running: bool = False) -> None:
        self.emulator, self.free_running = emulator, free_running
        self._stop = False
        if is_remote(server):  # before joining, because a server removes a silent client
            emulator.load_kernels()
            emulator.open_remote(lambda row, record, *payload: self.attachment.write_frame(row, record, *payload))
        tables = ("weather", *emulator.needs, *(ARRIVAL_TABLES if emulator.needs_fronts else ()))
        self.attachment: EmulatorAttachment = attach_emulator(
            server, emulator.sensor, tables, emulator.needs_all_bodies
        )
        if emulator.needs_fronts:
            emulator.connect(self.attachment.take_fronts)
        world = self.attachment.world
        theirs, ours = bytes(world["digest"]).decode(), emulator.loaded.digest
        if theirs not in ("", ours):
            self.attachment.release()
            raise AttachError(
                f"the server '{server}' runs a different configuration (digest {theirs[:12]}) than "
                f"{emulator.loaded.path} ({ours[:12]}); use the file that the server loaded, unchanged since its "
                "start"
            )
        self.step_ns = int(world["step_ns"])
        values = self.attachment.values()
        if not is_remote(server):
            emulator.load_kernels()
            emulator.open(server)
        self.sensor_bank = SensorBank(emulator, int(world["seed"]), values)

    def run(self, ready: Callable[[], None] = lambda: None) -> int:
        """Run the emulator. Return the number of writes. ``ready`` is called when the engine starts to wait for values.

        In the default, synchronous mode, the engine reports when a value is due and waits for it, unless the engine
        runs in real time. A free-running emulator runs at its own pace in wall-clock time.
        """
        for s in termination_signals.termination_signals():
            signal.signal(s, self._on_signal)
        written = 0
        try:
            self.attachment.serve(not self.free_running)
            ready()
            while not self._stop:
                due = self.attachment.wait(LOOK_S, self.sensor_bank.pause(self.step_ns))
                if due is not None:
                    view = self.attachment.snapshot()
                    if (values := self.attachment.take_restored()) is not None:
                        self.sensor_bank.reload(values, self.sensor_bank.seed)
                    if self.sensor_bank.compute(view, view.tick if self.free_running else due):
                        self.attachment.write(self.sensor_bank.table, view.tick)
                    written += 1
                    self.attachment.done()
                elif not self.attachment.alive():
                    break
        except NotRunning:
            pass
        finally:
            self.attachment.release()
        return written

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop = True
