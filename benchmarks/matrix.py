"""Send SIGKILL, and SIGSTOP for a while, to each kind of process of a trial in each phase; check reports and leftovers.

A row is one real trial: supervisor, engine, front, one emulator, one on-board program in lockstep, and a viewer.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wavesim_sdk.attach import SharedState
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.tables import RunState
from wavesim_server.resources import remove_leftovers

CLI = [sys.executable, "-m", "wavesim_sdk"]
KINDS = ("supervisor", "engine", "front", "emulator", "program", "viewer")
PHASES = ("start", "stand", "run", "end")  #: trial started; all ready, clock stopped; clock running; simulation ended
SIGNALS = (signal.SIGKILL, signal.SIGSTOP)
STOPPED_S = 2.5  #: time between SIGSTOP and SIGCONT, which is longer than the limits of the configuration
RUN_S = 2.0
LIMIT_S = 120.0
CONFIG = """<wavesim><time step="10 ms"/><network keepalive_period="200 ms" keepalive_timeout="1.5 s" lockstep_timeout="1 s"/>
<world><bed depth="200 m"/></world><fleet><sensors><ctd rate="10 Hz"/></sensors>
<vehicle name="v" model="lauv" position="0 0 20 m" client="required"><program run="program.py" period="0.1 s"/></vehicle></fleet></wavesim>"""
PROGRAM = """
import pathlib, sys, time
from wavesim_sdk.broker import Broker
while not pathlib.Path(__file__).with_name("go").exists():
    time.sleep(0.02)
with Broker("v", ("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer([5.0])
"""
_PLACES = {
    "engine": "wavesim-engine",
    "front": "wavesim-front",
    "emulator": "emulator-",
    "program": "program.py",
}


@dataclass(frozen=True)
class Row:
    """The result of one signal."""

    kind: str
    phase: str
    signal: signal.Signals
    code: int  #: exit code of the trial
    said: str  #: last line of output of the trial
    left: tuple[str, ...]  #: shared objects that still existed afterwards
    alive: tuple[str, ...]  #: processes that still existed ten seconds later

    @property
    def wanted(self) -> tuple[int, str]:
        """Return the expected exit code of the trial and a part of its output."""
        return expected(self.kind, self.phase, self.signal)

    @property
    def green(self) -> bool:
        """Return whether the result is as expected. Only a killed process may leave objects, which the next start of
        the name removes.
        """
        code, text = self.wanted
        killed = self.kind == "supervisor" and self.signal is signal.SIGKILL
        return self.code == code and text in self.said and not self.alive and (killed or not self.left)


def expected(kind: str, phase: str, what: signal.Signals) -> tuple[int, str]:
    """Return the expected exit code of the trial and a part of its output."""
    if what is signal.SIGKILL:
        if kind == "supervisor":
            return -signal.SIGKILL, ""
        if kind in ("engine", "front"):
            return 9, f"the {kind} process was killed by signal 9"
        if kind in ("emulator", "program") and phase != "end":
            name = "emulator-ctd" if kind == "emulator" else "program-v"
            lost = phase == "run" and kind == "emulator"  # the trial continues without an emulator
            return (12, f"{name} ended early (code -9)") if lost else (10, f"{name} exited with code -9")
    elif phase == "run" and kind == "emulator":
        return 12, "emulator answers exceeded the time limit"
    elif phase == "run" and kind == "program":
        return 12, "'v' did not answer its step within 1 s"
    return 0, ""


def _descendants(pid: int) -> dict[int, str]:
    """Return the children of a process: PID -> name; see :func:`_what`."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found[int(entry.name)] = _what(int(entry.name))
    return found


def _what(pid: int) -> str:
    """Return the name of a part of a server, or the command line of another process."""
    name = Path(f"/proc/{pid}/comm").read_text().strip()
    line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return name if line and name.startswith(("wavesim-", "emulator-")) else line


def _until(condition: Callable[[], bool], over: Callable[[], bool] = lambda: False) -> None:
    limit = time.monotonic() + LIMIT_S
    while not condition() and not over():
        if time.monotonic() > limit:
            raise TimeoutError("the trial does not reach the phase")
        time.sleep(0.01)


class Stage:
    """One trial, with a viewer."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        (folder / "c.xml").write_text(CONFIG)
        (folder / "program.py").write_text(PROGRAM)
        arguments = ["--out", str(folder), "--name", name, "--port", "0", "--quiet", "--realtime", "--no-plots"]
        self.trial = subprocess.Popen(
            [*CLI, "trial", str(folder / "c.xml"), *arguments, "--duration", str(RUN_S)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.viewer: subprocess.Popen[bytes] | None = None
        self._state: SharedState | None = None

    def pid(self, kind: str) -> int:
        """Return the PID of a process by name; 0 if there is none."""
        if kind == "supervisor":
            return self.trial.pid
        if kind == "viewer":
            return self.viewer.pid if self.viewer is not None else 0
        return next((p for p, line in _descendants(self.trial.pid).items() if _PLACES[kind] in line), 0)

    def run_state(self) -> RunState | None:
        """Return whether the clock runs; None if there is no server."""
        with contextlib.suppress(WaveSimError):
            self._state = self._state or SharedState(self.name)
            return self._state.run_state()
        return None

    def stands(self) -> bool:
        """Return whether all processes are ready except the program, which waits."""
        with contextlib.suppress(WaveSimError):
            if self.run_state() is not None and self.pid("program"):
                with Commander(self.name) as commander:
                    return commander.send("status").ok
        return False

    def see(self) -> None:
        """Start the viewer."""
        self.viewer = subprocess.Popen(
            [*CLI, "viz", "-s", self.name, "--port", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def reach(self, phase: str, kind: str) -> None:
        """Wait until the trial is in a phase and the process exists."""

        def over() -> bool:
            return self.trial.poll() is not None

        if phase != "start":
            _until(self.stands, over)
        if kind == "viewer":
            _until(self.stands, over)
            self.see()
        _until(lambda: self.pid("engine" if kind == "supervisor" else kind) > 0, over)
        if phase in ("run", "end"):
            (self.folder / "go").touch()
            _until(lambda: self.run_state() is RunState.RUNNING, over)
            time.sleep(0.3)  # in the midst of it
        if phase == "end":  # the trial looks at the clock now and then: it must not see the end before the signal
            self.trial.send_signal(signal.SIGSTOP)
            _until(lambda: self.run_state() is RunState.ENDED)

    def close(self) -> None:
        """End all remaining processes of the trial."""
        for process in (self.trial, self.viewer):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


@contextlib.contextmanager
def _staged() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), f"matrix{os.getpid()}-{time.monotonic_ns() % 1_000_000}")
        try:
            yield stage
        finally:
            stage.close()
            remove_leftovers(stage.name)


def row(kind: str, phase: str, what: signal.Signals) -> Row:
    """Run one trial and send one signal."""
    with _staged() as stage:
        stage.reach(phase, kind)
        family = {stage.trial.pid: "trial", **_descendants(stage.trial.pid)}
        victim = stage.pid(kind)
        if victim <= 0:
            raise RuntimeError(f"no process {kind}; output of the trial: {stage.trial.communicate(timeout=LIMIT_S)[1]}")
        os.kill(victim, what)
        if phase == "end" and not (kind == "supervisor" and what is signal.SIGSTOP):
            stage.trial.send_signal(signal.SIGCONT)
        (stage.folder / "go").touch()
        if what is signal.SIGSTOP:
            time.sleep(STOPPED_S)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGCONT)
        _, said = stage.trial.communicate(timeout=LIMIT_S)
        limit = time.monotonic() + 10.0
        while (alive := _alive(family)) and time.monotonic() < limit:
            time.sleep(0.1)
        left = tuple(remove_leftovers(stage.name))
        for pid in alive:  # ours: their parent was the trial
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        lines = said.strip().splitlines()
        return Row(kind, phase, what, stage.trial.returncode, lines[-1] if lines else "", left, tuple(alive.values()))


def _alive(family: dict[int, str]) -> dict[int, str]:
    """Return those of some processes that still run and are the same as before."""
    found = {}
    for pid, line in family.items():
        with contextlib.suppress(OSError):
            now = _what(pid)
            if now and (
                now == line or line == "trial" or now.startswith(("wavesim-", "emulator-"))
            ):  # a fork takes its name a little later
                found[pid] = line
    return found


def table(kinds: tuple[str, ...] = KINDS) -> int:
    """Print all rows. Return the number of unexpected results."""
    bad = 0
    print(
        "| process | phase | signal | exit code | the last line that the user reads | what stays behind |\n|---|---|---|---|---|---|"
    )
    for kind in kinds:
        for phase in PHASES:
            for what in SIGNALS:
                r = row(kind, phase, what)
                bad += not r.green
                left = f"{len(r.left)} shared objects, until the next start" if r.left else "nothing"
                left += f"; PROCESSES {r.alive}" if r.alive else ""
                mark = "" if r.green else f" **RED, wanted {r.wanted}**"
                print(f"| {kind} | {phase} | {what.name} | {r.code}{mark} | {r.said[:160]} | {left} |", flush=True)
    print(f"\n{bad or 'no'} row{'' if bad == 1 else 's'} of {len(kinds) * 8} not as expected")
    return bad
