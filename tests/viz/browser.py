"""A real headless Chromium, and the viewer in its own process."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.nursery import launch
from tests.viz.protocol import Listener

SCREENS = ROOT / "runs" / "screens"
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]


def need(what: str) -> None:
    """Skip with a loud reason; in CI nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def need_package(*names: str) -> None:
    """Skip without some packages of an extra."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            need(f"NO {name.upper()}: make setup")


def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    need("NO BROWSER: install Chromium (apt-get install chromium) to test the viewer's page")
    raise AssertionError


class Viewer:
    """`wavesim viz` in a process."""

    def __init__(self, *arguments: str | Path, command: str = "viz") -> None:
        if not (ROOT / "viz/wavesim_viz/static/index.html").is_file():
            need("NO PAGE: `make web` builds it (it needs Node.js)")
        self.process = launch(command, *arguments, "--port", "0", stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert "http://" in line, line + self.process.stderr.read()
        self.url = "http://" + line.split("http://")[1].split()[0]

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            self.process.kill()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return self.process.wait()


class Page:
    """A page that must stay free of errors and of requests to anybody else."""

    def __init__(self, context: Any, url: str) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.protocol = Listener()
        self.page.on("websocket", self._listen)
        self.page.goto(url)
        # the 3D view is loaded after the first picture; the configurator does not need it
        self.page.wait_for_function("() => window.wavesim && (wavesim.view || location.hash === '#configure')")
        self.origin = url.split("//")[1].split("/")[0]

    def _listen(self, socket: Any) -> None:
        socket.on("framereceived", self.protocol.received)
        socket.on("framesent", self.protocol.sent)

    def wait(self, condition: str, timeout: float = 60.0) -> Any:
        """Until a JavaScript expression is true."""
        return self.page.wait_for_function(f"() => ({condition})", timeout=timeout * 1e3)

    def until(self, condition: Callable[[], bool], timeout: float = 60.0) -> None:
        """Until something outside the page is true, while the page goes on."""
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            self.page.wait_for_timeout(20)

    def see(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def shot(self, name: str) -> Path:
        SCREENS.mkdir(parents=True, exist_ok=True)
        path = SCREENS / f"{name}.png"
        self.page.screenshot(path=path)
        return path

    def clean(self) -> None:
        """No error was reported, no request left for another place, and every message was as the protocol declares it."""
        ours = ("blob:", "data:")
        foreign = [u for u in self.requests if not u.startswith(ours) and u.split("//")[1].split("/")[0] != self.origin]
        # Chromium tells of what its software renderer cannot do fast: that is not ours
        errors = [
            e
            for e in self.errors
            if "GPU stall" not in e and "GL Driver Message" not in e and "swiftshader" not in e.lower()
        ]
        assert not foreign, foreign
        assert not errors, errors
        assert not self.protocol.faults, self.protocol.faults[:10]
