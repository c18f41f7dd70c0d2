"""A vehicle's computer installs the SDK without extras: pure Python, numpy, msgpack and asyncio-dgram, on any system."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server

#: modules of the SDK for programs on the machine of the server (extras `local` and `cli`), and for keys (`keys`)
LOCAL = {
    "attach",
    "body_force",
    "cli",
    "cli_commands",
    "cli_fences",
    "cli_janus",
    "cli_numbers",
    "commander",
    "emulator_attachment",
    "emulator_service",
    "frame_rings",
    "front_rings",
    "gamepad",
    "mailbox",
    "reply_queue",
    "shared_memory",
    "terminal_text",
    "wire.seal",
}

ALONE = '''
import asyncio, ctypes, importlib.abc, os, pathlib, signal, socket, subprocess, sys, tempfile  # what starts Python itself

ABSENT = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "readline", "_posixshmem"}
ALLOWED = {"numpy", "msgpack", "asyncio_dgram", "wavesim_sdk"}

class Elsewhere(importlib.abc.MetaPathFinder):
    """Another operating system, on which nothing is installed but what the SDK needs."""

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ABSENT or (top not in sys.stdlib_module_names and top not in ALLOWED):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [n for n in sys.modules if n.partition(".")[0] in ABSENT]:
    del sys.modules[name]
sys.meta_path.insert(0, Elsewhere())
for place, names in ((socket, ["MSG_DONTWAIT", "AF_UNIX"]), (os, ["fork", "register_at_fork", "O_NOFOLLOW", "sched_getaffinity"]),
                     (signal, ["SIGHUP", "pthread_sigmask", "SIGUSR1"])):
    for name in names:
        delattr(place, name)
library = ctypes.CDLL
def no_library(name, *a, **k):
    if name is None:
        raise TypeError("as on Windows")
    return library(name, *a, **k)
ctypes.CDLL = no_library
def no_files(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/dev/shm", "/proc", "/dev/mqueue")):
        raise FileNotFoundError(arguments[0])
sys.addaudithook(no_files)
sys.platform = "win32"
'''


def run_alone(code: str, *arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ALONE + code, *arguments], capture_output=True, text=True, timeout=timeout, check=False
    )


def test_the_sdk_without_extras_needs_three_packages(root: Path) -> None:
    declared = tomllib.loads((root / "broker_sdk/pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.split(r"[^\w-]", d)[0] for d in declared} == {"numpy", "msgpack", "asyncio-dgram"}


def test_every_other_module_can_be_imported_on_another_system() -> None:
    """Those of LOCAL cannot: a module that is freed of its needs leaves the list."""
    done = run_alone(
        """
import importlib, pkgutil, wavesim_sdk
for module in pkgutil.walk_packages(wavesim_sdk.__path__, "wavesim_sdk."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except Exception as error:
        print(module.name.removeprefix("wavesim_sdk."), "-", type(error).__name__, error)
"""
    )
    assert done.stderr == ""
    failed = dict(line.split(" - ") for line in done.stdout.splitlines())
    assert set(failed) == LOCAL, failed


@pytest.mark.system
def test_the_broker_of_the_readme_flies_from_another_system(
    root: Path, serve: Callable[..., Server], name: str
) -> None:
    (program,) = re.findall(r"```python title=\"hello.py\"\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    server = serve(root / "config.xml", "--log", "", "--speed", "10")
    server.send("start")
    program = program.replace('"demo"', repr(f"127.0.0.1:{server.port}")).replace(
        "        if step.state.motion and",
        "        if step.time > globals().setdefault('joined', step.time) + 20.0:\n            break\n        if step.state.motion and",
    )
    done = run_alone(program)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    last = done.stdout.splitlines()[-1].split()
    assert float(last[0]) > 19.0 and float(last[-2]) > 0.5, "20 s, and the boat moves"
    server.wait(lambda s: s["clients_total"] == 0)


def test_a_missing_extra_is_named() -> None:
    done = run_alone("from wavesim_sdk.console import main; main()")
    assert done.returncode == 19 and done.stderr == (
        "wavesim: the command line needs the extras: pip install 'wavesim-sdk[cli,local]'\n"
    )
    done = run_alone("from wavesim_sdk.broker import Broker; Broker('auv', 'demo').connect(0.1)")
    assert (
        "ConfigError: server 'demo': a server can be found by its name only on its own machine, and only with 'posix_ipc'"
        in done.stderr
    )
    assert "wavesim-sdk[local]" in done.stderr and "use HOST:PORT" in done.stderr
