"""Every exception that the SDK raises on purpose.

WaveSimError
 |- ConfigError          the configuration says something that cannot be used
 |- AttachError          shared memory cannot be attached (absent, other layout, damaged)
 |   `- NotRunning       there is no server of that name
 |- CommanderError       the commander queue is absent, full, or refused the command
 |- BrokerError          the session with the server failed
 |   |- Refused          the server said no, with its reason
 |   `- SessionLost      the server stopped answering
 |       `- SessionEnded the server ended the session, and said why
 `- LogError             a log file cannot be read
"""

from __future__ import annotations


class WaveSimError(Exception):
    """Base of all documented errors; the message is meant for the user."""

    exit_code = 1


class ConfigError(WaveSimError):
    """A configuration error, with the place where it was found."""

    exit_code = 2

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        self.message, self.file, self.line = message, file, line
        place = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        super().__init__(place + message)


class AttachError(WaveSimError):
    """Shared memory cannot be attached."""

    exit_code = 3


class NotRunning(AttachError):
    """There is no server of that name."""


class CommanderError(WaveSimError):
    """The commander queue refused, or did not answer."""

    exit_code = 4


class BrokerError(WaveSimError):
    """The session with the server failed."""

    exit_code = 5


class Refused(BrokerError):
    """The server refused the session or a request, and said why."""


class SessionLost(BrokerError):
    """The server ended the session or stopped answering."""


class SessionEnded(SessionLost):
    """The server ended the session, and said why."""


class LogError(WaveSimError):
    """A log file cannot be read."""

    exit_code = 6
