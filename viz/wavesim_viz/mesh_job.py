"""The command ``wavesim vehicles from-mesh`` as a job of the configurator: started, watched and cancelled by the page."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wavesim_sdk.log_validation import is_number
from wavesim_viz.page_protocol import MeshJobState
from wavesim_viz.uploads import stem_of
from wavesim_viz.xml_trees import RequestFailed

COMMAND = (sys.executable, "-m", "wavesim_sdk", "vehicles", "from-mesh")
CHOICES = {
    "type": ("underwater", "surface"),
    "unit": ("m", "cm", "mm", "inch"),
    "up": ("x", "-x", "y", "-y", "z", "-z"),
    "forward": ("x", "-x", "y", "-y", "z", "-z"),
    "origin": ("middle", "file", "buoyancy"),
}
LISTS = {"hull_parts": "--hull-part", "thruster_parts": "--thruster-part", "fin_parts": "--fin-part"}
MOST_PARTS = 200
IDLE: MeshJobState = {
    "state": "none",
    "name": "",
    "step": "",
    "share": 0.0,
    "text": "",
    "error": "",
    "files": [],
    "notes": [],
}


def mesh_arguments(body: Any) -> list[str]:
    """Return the options of the command for a request from the page. Raise RequestFailed if a value is invalid."""
    mass, speed = body.get("mass"), body.get("speed")
    if not (is_number(mass) and 0.0 < mass <= 1e9):
        raise RequestFailed("enter the mass of the vehicle in kg")
    if not (is_number(speed) and 0.05 <= speed <= 30.0):
        raise RequestFailed("enter a design speed between 0.05 and 30 m/s")
    found = ["--json", f"--mass={mass:.9g}", f"--speed={speed:.9g}"]
    for key, allowed in CHOICES.items():
        if body.get(key) not in allowed:
            raise RequestFailed(f"'{key}' in the request must be one of {', '.join(allowed)}")
        found.append(f"--{key}={body[key]}")
    for key, option in LISTS.items():
        names = body.get(key, [])
        if not (isinstance(names, list) and len(names) <= MOST_PARTS and all(isinstance(n, str) for n in names)):
            raise RequestFailed(f"'{key}' in the request must list names of parts")
        found += [f"{option}={name}" for name in names]
    return found


def free_name(folder: Path, file: str) -> str:
    """Return a name for a model from a file of which the folder contains no models file yet."""
    stem = stem_of(file)[:24]
    names = (stem if k == 1 else f"{stem}-{k}" for k in range(1, 1000))
    return next(n for n in names if not (folder / f"{n}.xml").exists())


class MeshJob:
    """At most one run of the command at a time. Its methods may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._state: MeshJobState = {**IDLE}

    def start(self, file: str, data: bytes, arguments: Sequence[str]) -> MeshJobState:
        """Start the command for the content of a hull file. The model is written to the working folder."""
        with self._lock:
            if self._state["state"] == "running":
                raise RequestFailed("another model is being computed; wait for it or cancel it")
            name = free_name(self._folder, file)
            self._state = {**IDLE, "state": "running", "name": name, "step": "starting"}
        threading.Thread(target=self._run, args=(name, file, data, list(arguments)), daemon=True).start()
        return self.state()

    def state(self) -> MeshJobState:
        with self._lock:
            return {**self._state}

    def cancel(self) -> MeshJobState:
        """End the command and the processes that it has started."""
        with self._lock:
            if self._state["state"] == "running":
                self._state["state"] = "cancelled"
                if self._process is not None:
                    _end(self._process)
            return {**self._state}

    def _run(self, name: str, file: str, data: bytes, arguments: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"{name}{Path(file).suffix.lower()}"
            source.write_bytes(data)
            # after the file name, so that no name of a part can be taken for an option
            command = [*COMMAND, f"--name={name}", f"--out={name}.xml", *arguments, str(source)]
            try:
                with self._lock:
                    if self._state["state"] != "running":
                        return
                    self._process = process = subprocess.Popen(
                        command,
                        cwd=self._folder,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        text=True,
                        start_new_session=True,
                    )
            except OSError as error:
                self._end_with("failed", error=f"the command cannot be started: {error}")
                return
            out: list[str] = []
            reader = threading.Thread(target=lambda: out.append(process.stdout.read() if process.stdout else ""))
            reader.start()
            last = self._watch(process)
            reader.join()
            code = process.wait()
        if code:
            reason = last.removeprefix("wavesim: ").removeprefix("Error: ")
            self._end_with("failed", error=reason or "the command failed without a message")
            return
        try:
            found = json.loads(out[0])
            self._end_with("done", files=[Path(f).name for f in found["files"]], notes=[str(n) for n in found["notes"]])
        except (ValueError, KeyError, TypeError):
            self._end_with("failed", error="the command ended without a result")

    def _watch(self, process: subprocess.Popen[str]) -> str:
        """Follow the progress lines until the command ends, and return its last other line."""
        last = ""
        for line in process.stderr or ():
            try:
                shown = json.loads(line)
                share = (shown["step"] - 1 + (1.0 if "seconds" in shown else shown["fraction"])) / shown["steps"]
                step, text = str(shown["name"]), str(shown.get("text", ""))
            except (ValueError, KeyError, TypeError):
                last = line.strip() or last
                continue
            with self._lock:
                self._state |= {"step": step, "share": min(max(share, 0.0), 1.0), "text": text}
        return last

    def _end_with(self, state: Any, error: str = "", files: Sequence[str] = (), notes: Sequence[str] = ()) -> None:
        with self._lock:
            self._process = None
            if self._state["state"] == "running":
                done: MeshJobState = {**self._state, "state": state, "error": error}
                self._state = {**done, "files": list(files), "notes": list(notes)}


def _end(process: subprocess.Popen[str]) -> None:
    """End the process group of a command and its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
