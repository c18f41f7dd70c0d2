"""Measure the viewer's server: share of a core per viewer, for fleets of 100 and 1000, one and five viewers, and one
frozen viewer.

python -m benchmarks.viewer [seconds]
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from benchmarks.processes import cpu_s, memory_mb

CLI = [sys.executable, "-m", "wavesim_sdk"]
RATE = 20.0
NAME = "bench-viewer"


@contextlib.contextmanager
def server(vehicles: int, folder: Path) -> Iterator[None]:
    """Publish a fleet that drifts, in real time."""
    side = int(vehicles**0.5) + 1
    bodies = "".join(
        f'<vehicle name="v{k}" model="lauv" position="{10 * (k % side)} {10 * (k // side)} {5 + k % 7} m"/>'
        for k in range(vehicles)
    )
    path = folder / "fleet.xml"
    path.write_text(
        f'<wavesim name="{NAME}"><time step="20 ms"/><shared vehicles="{vehicles}"/>'
        f'<world><current north="0.3 m/s" east="0.2 m/s"/></world><fleet>{bodies}</fleet></wavesim>'
    )
    process = subprocess.Popen(
        [*CLI, "serve", str(path), "--port", "0", "--start"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stderr is not None
    while b"on UDP" not in (line := process.stderr.readline()):
        assert line, "the server did not start"
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@contextlib.contextmanager
def viewer() -> Iterator[tuple[int, int]]:
    """Start `wavesim viz`; return (process, port)."""
    process = subprocess.Popen(
        [*CLI, "viz", "--server", NAME, "--port", "0", "--rate", str(RATE)], stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    try:
        yield process.pid, int(line.split("127.0.0.1:")[1].split("/")[0])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


async def look(port: int, until: float, watch: bool) -> tuple[int, int]:
    """Return the number of frames and bytes that one viewer receives."""
    frames = size = 0
    url = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/ws", origin=url, max_msg_size=0) as ws:
        if watch:
            await ws.send_json({"do": "watch", "row": 0})
        while (left := until - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                message = await ws.receive(left)
                if message.type is aiohttp.WSMsgType.BINARY:
                    frames += 1
                    size += len(message.data)
    return frames, size


def frozen(port: int) -> socket.socket:
    """Connect a viewer that subscribes to all data and reads nothing."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", port))
    host = f"127.0.0.1:{port}"
    s.sendall(
        f"GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    return s


async def measure(pid: int, port: int, viewers: int, seconds: float, stuck: bool) -> str:
    held = frozen(port) if stuck else None
    warm = time.monotonic() + 2.0
    until = warm + seconds
    tasks = [asyncio.create_task(look(port, until, k == 0)) for k in range(viewers)]
    await asyncio.sleep(warm - time.monotonic())
    before, at = cpu_s(pid), time.monotonic()
    await asyncio.sleep(until - time.monotonic())
    share = (cpu_s(pid) - before) / (time.monotonic() - at)
    seen = await asyncio.gather(*tasks)
    if held is not None:
        held.close()
    frames = [f / (seconds + 2.0) for f, _ in seen]
    size = sum(b for _, b in seen) / max(1, sum(f for f, _ in seen))
    return (
        f"{viewers} viewer{'s' if viewers > 1 else ''}{' and a frozen one' if stuck else ''}: {100 * share:.1f} % of a core, "
        f"{100 * share / max(viewers, 1):.1f} % each; {min(frames):.1f} frames/s for the slowest; {size / 1024:.1f} kB a frame; "
        f"{memory_mb(pid):.0f} MB"
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    for vehicles in (100, 1000):
        with tempfile.TemporaryDirectory() as folder, server(vehicles, Path(folder)):
            for viewers, stuck in ((1, False), (5, False), (1, True)):
                with viewer() as (pid, port):
                    print(
                        f"{vehicles:5} vehicles, {asyncio.run(measure(pid, port, viewers, seconds, stuck))}", flush=True
                    )


if __name__ == "__main__":
    main()
