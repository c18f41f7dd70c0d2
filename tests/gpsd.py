"""gpsd as an independent check of the output of our instruments."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time

import pytest


def find_gpsd() -> str:
    """Where it is. Loud where it is not, a failure in CI."""
    found = shutil.which("gpsd") or shutil.which("gpsd", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        message = "gpsd is not installed: it cannot judge our NMEA (apt-get install gpsd)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def start(device: str) -> tuple[subprocess.Popen[str], int]:
    """(process, port for its clients) of a gpsd with one device (`tcp://HOST:PORT`)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return subprocess.Popen([find_gpsd(), "-N", "-n", "-S", str(port), device], text=True), port


def connect(port: int, limit: float = 20.0) -> socket.socket:
    """A client of it, as soon as it listens."""
    end = time.monotonic() + limit
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=limit)
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.05)
