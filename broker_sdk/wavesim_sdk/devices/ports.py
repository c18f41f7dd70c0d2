"""Where a virtual device is reached: a pseudo-terminal, or a TCP port on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tty
from collections.abc import Callable
from pathlib import Path

from wavesim_sdk.errors import WaveSimError

Bytes = Callable[[bytes], None]
BACKLOG_BYTES = 65536


class PtyPort:
    """A pseudo-terminal; programs open its path (or a symbolic link to it) as a serial port."""

    def __init__(self, receive: Bytes, link: str = "") -> None:
        self._receive, self.dropped = receive, 0
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)  # held open, so that clients may come and go
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self._link = Path(link) if link else None
        if self._link is not None:
            if self._link.is_symlink():
                self._link.unlink()
            try:
                self._link.symlink_to(self.path)
            except OSError as error:
                raise WaveSimError(f"cannot make the link {link}: {error.strerror}") from None
            self.path = link

    async def open(self) -> None:
        """Start reading."""
        asyncio.get_running_loop().add_reader(self._master, self._ready)

    def _ready(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            self._receive(os.read(self._master, 4096))

    def send(self, data: bytes) -> None:
        """Bytes to the client; dropped and counted when nobody reads them."""
        try:
            self.dropped += len(data) - os.write(self._master, data)
        except BlockingIOError:
            self.dropped += len(data)

    async def close(self) -> None:
        """Close it and remove the link."""
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        os.close(self._slave)
        if self._link is not None and self._link.is_symlink():
            self._link.unlink()


class TcpPort:
    """A TCP server on loopback; all its clients are heard, and each hears everything."""

    def __init__(self, receive: Bytes, port: int) -> None:
        self._receive, self._port, self.dropped = receive, port, 0
        self._writers: set[asyncio.StreamWriter] = set()
        self.path = ""

    async def open(self) -> None:
        """Listen."""
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        except OSError as error:
            raise WaveSimError(f"cannot listen at 127.0.0.1:{self._port}: {error.strerror}") from None
        self.path = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(4096):
                self._receive(data)
        self._writers.discard(writer)
        writer.close()

    def send(self, data: bytes) -> None:
        """Bytes to every client; a client that does not read loses them."""
        for writer in self._writers:
            if writer.transport.get_write_buffer_size() > BACKLOG_BYTES:
                self.dropped += len(data)
            else:
                writer.write(data)

    async def close(self) -> None:
        """Close it."""
        self._server.close()
        for writer in list(self._writers):
            writer.close()


Port = PtyPort | TcpPort
