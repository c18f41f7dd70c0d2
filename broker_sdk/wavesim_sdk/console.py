"""Where the command ``wavesim`` begins: until its modules are loaded there is nothing to clean up, and an interrupt ends it at once.

Only the standard library's lightest modules are imported here: whatever is imported before the handler stands can be interrupted
with a traceback.
"""

import os
import signal


def _leave(_signal: int, _frame: object) -> None:
    os.write(2, b"wavesim: interrupted\n")
    os._exit(130)


def main() -> None:
    """Entry point of the command."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # whoever ignores it goes on doing so
        signal.signal(signal.SIGINT, _leave)
    from wavesim_sdk.cli import cli, load_commands

    load_commands()
    signal.signal(signal.SIGINT, usual)
    cli()
