"""A fork begins like a new program: it has only the imports of its parent."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = """
import atexit, os, signal, subprocess, sys, time
from wavesim_sdk import forked_process
"""


def parent(code: str) -> str:
    """What a program without threads prints that forks."""
    run = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize(
    ("does", "code"),
    [
        ("None", 0),
        ("sys.exit(7)", 7),
        ("sys.exit('no')", 1),
        ("1 / 0", 1),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("signal.raise_signal(signal.SIGINT)", 130),
    ],
)
def test_the_end_of_a_fork_is_reported_like_that_of_a_program(does: str, code: int) -> None:
    said = parent(f"""
    def run():
        {does}
    child = forked_process.fork_process("child", run)
    print(child.wait(30), child.poll())
    """)
    assert said.split() == [str(code)] * 2


def test_a_fork_holds_nothing_of_its_parent() -> None:
    """Neither descriptors (a lock's, another's socket), nor handlers of signals, nor its session, nor what it prints or leaves for its end."""
    said = parent("""
    lock, mine = os.open("/dev/null", os.O_RDONLY), os.open("/dev/zero", os.O_RDONLY)
    signal.signal(signal.SIGTERM, lambda *_: None)
    atexit.register(print, "the parent's end")
    def run():
        there = sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))
        print("zero" if "/dev/zero" in there else "", os.readlink("/proc/self/fd/0"), there.count("/dev/null"))
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        print(os.getsid(0) == os.getpid(), open("/proc/self/comm").read().strip(), signal.pthread_sigmask(signal.SIG_BLOCK, []))
    sys.stdout.write("once\\n")
    assert forked_process.fork_process("a-name-too-long-for-linux", run, [mine]).wait(30) == 0
    """)
    assert said.splitlines() == [
        "once",
        "zero /dev/null 1",
        "True True",
        "True a-name-too-long set()",
        "the parent's end",
    ]


def test_its_output_may_go_elsewhere(tmp_path: Path) -> None:
    said = parent(f"""
    with open({str(tmp_path / "out")!r}, "wb") as out:
        def run():
            print("a line")
            sys.stderr.write("an error\\n")
        assert forked_process.fork_process("child", run, output=out.fileno()).wait(30) == 0
    """)
    assert said == ""
    assert sorted((tmp_path / "out").read_text().splitlines()) == ["a line", "an error"]


def test_who_waits_for_a_fork_waits_no_longer_than_asked_for() -> None:
    said = parent("""
    child = forked_process.fork_process("child", lambda: time.sleep(100))
    try:
        child.wait(0.01)
    except subprocess.TimeoutExpired:
        print("still there", child.poll())
    child.terminate()
    print(child.wait(30))
    child.kill()  # nobody any more: nothing is sent
    """)
    assert said.splitlines() == ["still there None", str(-signal.SIGTERM)]


def test_the_parts_of_a_server_import_only_what_is_new_to_them() -> None:
    """A server's parts are forks; the engine alone brings the kernels' compiler, and nobody else pays for it."""
    said = parent("""
    import wavesim_server.serve
    before = set(sys.modules)
    def new(module):
        import importlib
        importlib.import_module(module)
        print(len(set(sys.modules) - before) < 65, "numba" in sys.modules)
    forked_process.fork_process("front", lambda: new("wavesim_server.network.process")).wait()
    forked_process.fork_process("engine", lambda: new("wavesim_server.engine.process")).wait()
    """)
    assert said.splitlines() == ["True False", "False True"]
