"""Sending of many datagrams with one system call (sendmmsg on Linux), at half the cost of one call for each datagram."""

from __future__ import annotations

import ctypes
import errno
import functools
import socket
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

_HEADER = np.dtype(
    [
        ("name", "u8"),
        ("name_size", "u4"),
        ("", "u4"),
        ("parts", "u8"),
        ("count", "u8"),
        ("control", "u8"),
        ("control_size", "u8"),
        ("flags", "i4"),
        ("", "u4"),
        ("sent", "u4"),
        ("", "u4"),
    ]
)
_PART = np.dtype([("base", "u8"), ("size", "u8")])
ADDRESS_BYTES = 28  #: size in bytes of a socket address, enough for IPv4 and IPv6
MAX_BATCH = 1024  #: maximum number of datagrams in one system call


def _find_call() -> Any:
    """Return the system call, or None on a system that does not have it (macOS, Windows, and 32-bit systems)."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
    except TypeError:  # Windows
        return None
    return getattr(library, "sendmmsg", None) if struct.calcsize("P") == 8 else None


_call = _find_call()


@functools.lru_cache(4096)
def pack_address(address: tuple[str, int]) -> bytes:
    """Return a socket address in the system's format, padded to ADDRESS_BYTES."""
    host, port = address[:2]
    if ":" in host:
        head = struct.pack("=H", socket.AF_INET6) + struct.pack("!HI", port, 0)
        return head + socket.inet_pton(socket.AF_INET6, host) + bytes(4)
    head = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port)
    return (head + socket.inet_pton(socket.AF_INET, host)).ljust(ADDRESS_BYTES, b"\0")


def send_rows(sock: socket.socket, rows: Any, addresses: bytes) -> int:
    """Send each row of ``rows`` (n, size) to its address, and return how many rows the system accepted.

    ``addresses`` is the concatenation of the results of :func:`pack_address`.
    """
    n, size = rows.shape
    if _call is None:
        return _singly(sock, rows, addresses)
    parts = np.zeros(n, _PART)
    parts["base"], parts["size"] = rows.ctypes.data + size * np.arange(n, dtype=np.uint64), size
    return _send(sock, parts, addresses)


def send_datagrams(sock: socket.socket, datagrams: Sequence[bytes], addresses: bytes) -> int:
    """Send datagrams of any size to their addresses, and return how many datagrams the system accepted."""
    if _call is None:
        return _singly(sock, [np.frombuffer(d, np.uint8) for d in datagrams], addresses)
    whole = np.frombuffer(b"".join(datagrams), np.uint8)
    parts = np.zeros(len(datagrams), _PART)
    parts["size"] = [len(d) for d in datagrams]
    parts["base"] = whole.ctypes.data + np.cumsum(parts["size"]) - parts["size"]
    return _send(sock, parts, addresses)


def _send(sock: socket.socket, parts: Any, addresses: bytes) -> int:
    n = len(parts)
    places = np.frombuffer(addresses, np.uint8)
    name_size = 28 if sock.family == socket.AF_INET6 else 16
    heads = np.zeros(n, _HEADER)
    heads["name"] = places.ctypes.data + ADDRESS_BYTES * np.arange(n, dtype=np.uint64)
    heads["name_size"], heads["count"] = name_size, 1
    heads["parts"] = parts.ctypes.data + _PART.itemsize * np.arange(n, dtype=np.uint64)
    done = failed = 0
    while done < n:
        at = ctypes.c_void_p(heads.ctypes.data + _HEADER.itemsize * done)
        took = _call(sock.fileno(), at, min(n - done, MAX_BATCH), socket.MSG_DONTWAIT)
        if took <= 0:
            if took < 0 and ctypes.get_errno() not in (errno.EAGAIN, errno.ENOBUFS):
                done, failed = done + 1, failed + 1  # this one cannot be sent: the client's port is closed
                continue
            break
        done += took
    return done - failed


def _singly(sock: socket.socket, rows: Any, addresses: bytes) -> int:
    took = 0
    for k, row in enumerate(rows):
        raw = addresses[ADDRESS_BYTES * k : ADDRESS_BYTES * (k + 1)]
        family, port = struct.unpack("=H", raw[:2])[0], struct.unpack("!H", raw[2:4])[0]
        host = socket.inet_ntop(family, raw[8:24] if family == socket.AF_INET6 else raw[4:8])
        try:
            sock.sendto(row.tobytes(), (host, port))
            took += 1
        except OSError:
            continue
    return took
