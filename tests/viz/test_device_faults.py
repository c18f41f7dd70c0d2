"""Faults of a device from the page: the crew of a body names its devices, and a device obeys until it is repaired."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.conftest import Server
from tests.devices.bench import device as start_device
from tests.nursery import launch
from tests.viz.browser import Page
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(180)]

BOAT = """<fleet><vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="optional">
<sensors><ahrs rate="10 Hz"/></sensors></vehicle></fleet>"""


def test_a_device_is_silent_until_the_page_repairs_it(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    view: Any,
    open_page: Callable[[str], Page],
    name: str,
) -> None:
    path = config(BOAT).path
    server = serve(path)
    emulator = launch("emulate", "ahrs", path, "-s", name)
    processes: list[subprocess.Popen[str]] = []
    try:
        host_name, _, port = start_device(processes, server, "nmea", "--tcp", "0").rpartition(":")
        page = open_page(view("--server", name, "--control").url)
        server.send("start")
        page.page.locator("#fleet tr[data-row='0']").click()
        crew = page.page.locator("#crew")
        expect(crew.locator("tbody tr")).to_contain_text(["nmea"])
        with socket.create_connection((host_name, int(port)), 20) as host:
            host.settimeout(20)
            assert b"HDT" in read_until(host, b"HDT")

            for kind, shown in (("silent", "silent"), ("repair", "")):
                crew.locator("button[aria-label='Inject a fault into device:nmea']").click()
                crew.locator("select[aria-label=Fault]").select_option(label=kind)
                crew.get_by_role("button", name="set").click()
                expect(crew.locator("tbody .warm")).to_have_text(shown)
                if shown:
                    page.shot("device-fault")
                    said_nothing_for(host, server, 2.0)
            assert b"HDT" in read_until(host, b"HDT")
        page.clean()
    finally:
        for process in (*processes, emulator):
            process.terminate()
            process.wait(20)


def read_until(host: socket.socket, text: bytes) -> bytes:
    data = b""
    while text not in data:
        more = host.recv(4096)
        assert more, "the device closed the connection"
        data += more
    return data


def said_nothing_for(host: socket.socket, server: Server, seconds: float) -> None:
    """No byte in so many simulated seconds, apart from those that were on their way when the fault began."""

    def now() -> float:
        return float(str(server.status()["time_ns"])) * 1e-9

    host.settimeout(0.2)
    begin, last = now(), 0.0
    while now() < begin + seconds:
        try:
            if host.recv(4096):
                last = now()
        except TimeoutError:
            pass
    host.settimeout(20)
    assert last < begin + 1.0, "a silent device sent something"
