"""Conformance checker for a virtual device that is already running and joined to any server; only its ports are known.

    wavesim conformance --device --at tcp:4001 --send 'P\\r\\n'

The rules for its ports are those of :mod:`wavesim_conformance.device`. The device is alive as long as it sends something to
each new host, automatically or as the answer to a valid command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from wavesim_conformance.broker import ConformanceChecker, Finding
from wavesim_conformance.device import ANSWER_S, PortChecker, open_host

#: time in s after which a command is sent again: the device may have read a command that follows noise as part of the
#: noise
RETRY_S = 0.2


def place_of(where: str) -> str:
    """Return the location of a port in the form in which a device prints it. Raises ValueError if the text is invalid."""
    kind, _, at = where.partition(":")
    if kind == "pty" and at:
        return at if "/" in at else f"./{at}"
    if kind in ("tcp", "udp", "udp-server") and at.isdecimal() and 0 < int(at) <= 65535:
        return f"{'' if kind == 'tcp' else 'udp '}127.0.0.1:{at}"
    raise ValueError(f"invalid port location '{where}': use tcp:PORT, udp-server:PORT, udp:PORT or pty:LINK")


class RunningDeviceChecker(ConformanceChecker):
    """Checker for the ports of a running device. ``samples`` are valid commands, one of which the device answers."""

    def __init__(
        self, places: Sequence[str], samples: Sequence[bytes] = (), say: Callable[[Finding], None] = lambda f: None
    ) -> None:
        super().__init__(say)
        self.places, self.samples = places, samples

    def run(self) -> list[Finding]:
        for place in self.places:
            rule = f"{place}: the device sends something to a host, automatically or as an answer"
            if not self.record(
                rule, self.answers(place), "the device sent no bytes; use --send with a command that the device answers"
            ):
                return self.findings
        self.findings += PortChecker(self.places, self._is_alive, self.samples, self.report).run()
        return self.findings

    def _is_alive(self) -> bool:
        return all(map(self.answers, self.places))

    def answers(self, place: str) -> bool:
        """Return whether the device sends something to a new host on one of its ports."""
        limit = time.monotonic() + ANSWER_S
        while time.monotonic() < limit:
            try:
                host = open_host(place, reads=False)
            except OSError:
                return False
            try:
                while host.is_open() and time.monotonic() < limit:
                    for sample in self.samples:
                        host.send(sample)
                    if host.receive(RETRY_S):
                        return True
            except OSError:
                # the device has closed the connection, for example after a command for another port
                time.sleep(RETRY_S)
            finally:
                host.close()
        return False
