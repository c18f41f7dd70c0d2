"""Traffic between a device and its hosts: a file that records it, and a readable printout.

The file consists of JSON lines. The first line describes the device: ``format``, ``device``, ``body``, and ``ports``, a
mapping from the name of each port to its location. Each further line is an event with the simulation ``time`` in s, the
``port``, the ``host`` (its number on the port, from 1) and ``what`` happened, from the device's point of view:
``opened``, ``received``, ``sent`` or ``closed``. The bytes of ``received`` and ``sent`` follow as ``text`` if they are
printable ASCII, otherwise as ``hex``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from wavesim_sdk.errors import WaveSimError

FORMAT = "wavesim device traffic 1"
OPENED, RECEIVED, SENT, CLOSED = "opened", "received", "sent", "closed"
SHOWN_BYTES = 160
_TEXT = frozenset(b"\r\n\t") | frozenset(range(0x20, 0x7F))


@dataclass(frozen=True)
class TrafficEvent:
    """Event on a port of a device."""

    time: float  #: simulation time of the event in s
    port: str
    host: int  #: number of the host on this port, from 1
    what: str  #: kind of the event: opened, received, sent or closed
    data: bytes = b""

    def to_json(self) -> str:
        """Return the event as a line of the file."""
        line: dict[str, Any] = {"time": round(self.time, 9), "port": self.port, "host": self.host, "what": self.what}
        if self.data:
            line |= {"text": self.data.decode("ascii")} if _TEXT.issuperset(self.data) else {"hex": self.data.hex()}
        return json.dumps(line)

    @classmethod
    def from_json(cls, text: str) -> TrafficEvent:
        """Read an event from a line of the file. Raises ValueError if the line is invalid."""
        try:
            line = json.loads(text)
            data = bytes.fromhex(line["hex"]) if "hex" in line else str(line.get("text", "")).encode("ascii")
            event = cls(float(line["time"]), str(line["port"]), int(line["host"]), str(line["what"]), data)
        except (ValueError, TypeError, LookupError, AttributeError):
            raise ValueError("not an event") from None
        if event.what not in (OPENED, RECEIVED, SENT, CLOSED):
            raise ValueError(f"unknown event '{event.what}'")
        return event

    def __str__(self) -> str:
        return f"{self.time:10.3f}  {self.port} {self.host} {self.what:8}  {shown(self.data)}".rstrip()


def shown(data: bytes) -> str:
    """Return bytes in readable form: text with escapes, or hexadecimal."""
    more = f" ... ({len(data)} B)" if len(data) > SHOWN_BYTES else ""
    part = data[:SHOWN_BYTES]
    return (repr(part)[2:-1] if _TEXT.issuperset(part) else part.hex(" ")) + more


@dataclass(frozen=True)
class Recording:
    """Traffic of a device, read from a file."""

    device: str
    ports: Mapping[str, str]  #: location of each port, as in ``--at``
    events: tuple[TrafficEvent, ...]


def read_recording(path: Path) -> Recording:
    """Read a traffic file. Raises WaveSimError if the file cannot be read or, stating the line number, if a line is
    invalid.
    """
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WaveSimError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    try:
        head = json.loads(lines[0])
        if head["format"] != FORMAT:
            raise ValueError
        device, ports = str(head["device"]), {str(k): str(v) for k, v in head["ports"].items()}
    except (ValueError, TypeError, LookupError, AttributeError):
        raise WaveSimError(f"{path}:1: not a recording made with `wavesim device --record`") from None
    events = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            event = TrafficEvent.from_json(line)
            if event.port not in ports:
                raise ValueError(f"unknown port '{event.port}'")
        except ValueError as error:
            if number == len(lines):
                break  # the device was killed while it wrote its last line
            raise WaveSimError(f"{path}:{number}: {error}") from None
        events.append(event)
    return Recording(device, ports, tuple(events))


class TrafficReporter:
    """Observer of the traffic: it passes each event to the file and to the printout. ``time`` is the simulation time."""

    def __init__(self, record: Path | None = None, printout: Callable[[str], None] | None = None) -> None:
        self.time, self.record, self.printout = 0.0, record, printout
        self._file: TextIO | None = None

    def begin(self, device: str, body: str, ports: Mapping[str, str]) -> None:
        """Create the traffic file."""
        if self.record is None:
            return
        head = {"format": FORMAT, "device": device, "body": body, "ports": dict(ports)}
        try:
            self._file = self.record.open("w", encoding="ascii", buffering=1)
            self._file.write(json.dumps(head) + "\n")
        except OSError as error:
            raise WaveSimError(f"cannot write {self.record}: {error.strerror}") from None

    def note(self, port: str, host: int, what: str, data: bytes = b"") -> None:
        """Write an event with the current simulation time to the file and to the printout."""
        if self._file is None and self.printout is None:
            return
        event = TrafficEvent(self.time, port, host, what, data)
        if self._file is not None:
            self._file.write(event.to_json() + "\n")
        if self.printout is not None:
            self.printout(str(event))

    def close(self) -> None:
        """Close the traffic file."""
        if self._file is not None:
            self._file.close()
            self._file = None
