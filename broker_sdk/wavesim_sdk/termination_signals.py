"""Signals that ask a program to end: Ctrl-C, kill, or a closed terminal."""

import signal


def termination_signals() -> tuple[signal.Signals, ...]:
    """Return the termination signals that this program handles. SIGHUP stays ignored if ``nohup`` started the program."""
    deaf = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if deaf else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
