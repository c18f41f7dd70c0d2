"""Entry point of the ``wavesim`` command. Until its modules are loaded, an interrupt ends the process immediately.

This module imports only small modules of the standard library, because an interrupt before its handler is installed
would print a traceback.
"""

import _thread
import contextlib
import os
import signal
import sys
import time

INTERRUPTED = 130  #: exit code of the process after Ctrl-C


def _leave(_signal: int, _frame: object) -> None:
    os.write(2, b"wavesim: interrupted\n")
    os._exit(INTERRUPTED)


def _interrupt_later(main_thread: int) -> None:
    time.sleep(0.01)  # not within the callback; if another one is running then, it ends here again
    signal.pthread_kill(main_thread, signal.SIGINT)  # also wakes a thread that is waiting


def _unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Raise an interrupt again if Python ignored it, because it arrived during a callback (for example, a call from a
    kernel).
    """
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt_later, (_thread.get_ident(),))
    else:
        sys.__unraisablehook__(unraisable)


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
    sys.unraisablehook = _unraisable
    try:
        cli()
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        # Python ends with the signal instead of this code if the interrupt arrived inside exec(), for example in an import
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(INTERRUPTED)
