"""An interrupt that arrives within a callback, where Python cannot raise it, still ends the command without a traceback."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import ctypes, signal, sys, threading
from wavesim_sdk import console, cli

@ctypes.CFUNCTYPE(None)
def callback():
    signal.raise_signal(signal.SIGINT)

def command():
    callback()
    try:
        threading.Event().wait(20)
    except KeyboardInterrupt:
        print("interrupted")
        sys.exit(console.INTERRUPTED)

cli.cli, cli.load_commands = command, lambda: None
console.main()
"""


def test_an_interrupt_within_a_callback_is_neither_lost_nor_shown() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "interrupted\n", "")
