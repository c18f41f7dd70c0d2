"""Entry point of the ``wavesim`` command. Until its modules are loaded, an interrupt ends the process immediately.

This module imports only small modules of the standard library, because an interrupt before its handler is installed
would print a traceback.
"""

import contextlib
import os
import signal
import sys

INTERRUPTED = 130  #: exit code of the process after Ctrl-C


def _leave(_signal: int, _frame: object) -> None:
    os.write(2, b"wavesim: interrupted\n")
    os._exit(INTERRUPTED)


def main() -> None:
    """Run the ``wavesim`` command."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # if SIGINT is ignored, it stays ignored
        signal.signal(signal.SIGINT, _leave)
    try:
        from wavesim_sdk.cli import cli, load_commands
    except ModuleNotFoundError as error:
        if error.name not in ("click", "posix_ipc", "fcntl"):
            raise
        os.write(2, b"wavesim: the command line needs the extras: pip install 'wavesim-sdk[cli,local]'\n")
        os._exit(19)

    load_commands()
    signal.signal(signal.SIGINT, usual)
    try:
        cli()
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        # Python ends with the signal instead of this code if the interrupt arrived inside exec(), for example in an import
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(INTERRUPTED)
