"""Signals that ask a program to end: Ctrl-C, kill, a closed terminal."""

import signal


def termination_signals() -> tuple[signal.Signals, ...]:
    """Those that a program hears: a closed terminal is nothing to one that was started by ``nohup``."""
    deaf = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) if deaf else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
