"""The world of :mod:`benchmarks.operator_session`: a server with the demonstration, emulators, on-board programs and viewers."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parent.parent
CLI = [sys.executable, "-m", "wavesim_sdk"]
SONARS = """<sensors>
        <ctd rate="10 Hz"/>
        <echosounder rate="5 Hz" maximum="120 m"/>
        <ahrs rate="10 Hz"/>
        <speedlog rate="10 Hz"/>
        <sonar name="side" preset="starfish-450" range="50 m" rate="2 Hz"/>
        <sonar name="bed" preset="norbit-wbms" range="60 m" rate="1 Hz" beams="64"/>
      </sensors>"""
FENCE = """<fence name="area"><corner north="-320 m" east="-320 m"/><corner north="320 m" east="-320 m"/>
      <corner north="320 m" east="320 m"/><corner north="-320 m" east="320 m"/></fence>"""
PROGRAMS = {"lauv": "auv", "remus": "auv", "jolner": "usv"}


def configuration() -> str:
    """The demonstration without an end, with sonars, a fence, and pilots that give way to an operator."""
    text = (ROOT / "config.xml").read_text()
    text = re.sub(r' duration="15 min" pace="fast"', ' pace="realtime"', text)
    text = text.replace('keepalive_timeout="5 s"', 'keepalive_timeout="20 s" takeover="return"')
    text = text.replace(
        '<program run="examples/onboard/auv.py"', f'{SONARS}\n<program run="examples/onboard/auv.py"', 1
    )
    assert SONARS in text and "takeover" in text and 'pace="realtime"' in text
    return text.replace("</fleet>", f"{FENCE}\n  </fleet>")


class World:
    """Processes of a simulation in real time, and a viewer that may control it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, f"operator{time.time_ns() % 10**6}"
        self._ends: list[subprocess.Popen[Any]] = []
        (folder / "config.xml").write_text(configuration())
        shutil.copytree(ROOT / "examples", folder / "examples")

    def __enter__(self) -> Self:
        server = self._start(
            *CLI, "serve", "config.xml", "-s", self.name, "--port", "0", "--log", "run.mcap", "--start", wait="on UDP"
        )
        port = re.search(r"UDP\D*(?:[\d.]+:)?(\d+)", server)
        assert port is not None, server
        self.emulate_rest = self._start(
            *CLI, "emulate", "ahrs", "echosounder", "speedlog", "sonar", "config.xml", "-s", self.name
        )
        self.start_ctd()
        for body, program in PROGRAMS.items():
            command = [sys.executable, f"examples/onboard/{program}.py", "--config", "config.xml"]
            self._start(*command, "--vehicle", body, "--port", port[1])
        self.url = self.view("-s", self.name, "--control", "--rate", "5")
        return self

    def _start(self, *command: str, wait: str = "") -> str:
        """Start a process; return the first line of its errors that contains a text."""
        with (self.folder / f"{len(self._ends)}.txt").open("w") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, stdout=output, stderr=subprocess.PIPE if wait else output, text=True
            )
        self._ends.append(process)
        if not wait:
            return ""
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if wait in line:
                return line
        raise RuntimeError(f"{' '.join(command)} ended: {''.join(lines)}")

    def view(self, *arguments: str) -> str:
        """Start a viewer and return its address."""
        line = self._start(*CLI, "viz", *arguments, "--port", "0", wait="http://")
        return "http://" + line.split("http://")[1].split()[0]

    def start_ctd(self) -> None:
        """Start the emulator that the operator kills."""
        self._start(*CLI, "emulate", "ctd", "config.xml", "-s", self.name)
        self.ctd = self._ends[-1]

    def kill_ctd(self) -> None:
        self.ctd.kill()
        self.ctd.wait()

    def end_last(self) -> None:
        """End the process that was started last."""
        self._end(self._ends.pop())

    @staticmethod
    def _end(process: subprocess.Popen[Any]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stderr is not None:
            process.stderr.close()

    def __exit__(self, *_: object) -> None:
        while self._ends:
            self.end_last()
