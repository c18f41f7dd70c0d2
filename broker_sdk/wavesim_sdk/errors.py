"""The documented exceptions of the SDK.

The classes form this hierarchy::

    WaveSimError
     |- InvalidArgument      an argument of a call is invalid (also a ValueError)
     |   `- UnknownName      a name does not exist (also a KeyError and an AttributeError)
     |- ConfigError          the configuration or an option is invalid
     |- AttachError          shared memory cannot be attached (absent, other layout, damaged)
     |   |- NotRunning       no server with that name runs
     |   `- UnknownPart      the server or the configuration has no such body, sensor or emulator
     |- CommanderError       the commander queue is absent, full, or refused the command
     |- BrokerError          the session with the server failed
     |   |- Refused          the server refused the session or a request, with its reason
     |   `- SessionLost      the server stopped answering
     |       `- SessionEnded the server ended the session, with its reason
     `- LogError             a log file cannot be read
"""

from __future__ import annotations

__all__ = [
    "AttachError",
    "BrokerError",
    "CommanderError",
    "ConfigError",
    "InvalidArgument",
    "LogError",
    "NotRunning",
    "Refused",
    "SessionEnded",
    "SessionLost",
    "UnknownName",
    "WaveSimError",
]


class WaveSimError(Exception):
    """Base class of all documented errors. Their messages are written for the user."""

    exit_code = 1


class InvalidArgument(WaveSimError, ValueError):
    """An argument of a call is invalid; the call had no effect. The message names the argument."""

    exit_code = 2


class UnknownName(InvalidArgument, KeyError, AttributeError):
    """A body, actuator, sensor, field or other item with this name does not exist; the message suggests or lists the
    valid names.

    This error is both a KeyError and an AttributeError, because names are used as keys and as attributes.
    """

    def __str__(self) -> str:  # a KeyError would print its message in quotes
        return str(self.args[0]) if self.args else ""


class ConfigError(WaveSimError):
    """The configuration or an option is invalid; the message begins with the file and line, if known."""

    exit_code = 2

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        self.message, self.file, self.line = message, file, line
        place = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        super().__init__(place + message)


class AttachError(WaveSimError):
    """Shared memory cannot be attached."""

    exit_code = 3


class NotRunning(AttachError):
    """No server with that name is running."""


class UnknownPart(AttachError):
    """The server or the configuration does not have this body, sensor or emulator."""

    exit_code = 18


class CommanderError(WaveSimError):
    """The commander queue does not exist or is full, the server refused the command, or the server did not answer."""

    exit_code = 4


class BrokerError(WaveSimError):
    """The session with the server failed."""

    exit_code = 5


class Refused(BrokerError):
    """The server refused the session or a request; the message gives its reason."""


class SessionLost(BrokerError):
    """The server ended the session or stopped answering."""


class SessionEnded(SessionLost):
    """The server ended the session; the message gives its reason."""


class LogError(WaveSimError):
    """A log file cannot be read."""

    exit_code = 6
