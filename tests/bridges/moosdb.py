"""A stand-in for a MOOSDB and its apps, written from the description of their protocol, with a helm like that of
MOOS-IvP. The helm holds course, depth and speed by NAV_X and similar variables, and commands thrust, rudder and
elevator.
"""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

HELLO = b"ELKS CAN'T DANCE 2/8/10" + bytes(9)
Mail = tuple[str, str, Any, str, float]  #: type, variable, value, source, time


def message(kind: str, key: str, value: Any, source: str = "", stamp: float = 0.0, community: str = "") -> bytes:
    """One, with the length in front."""
    text = value.encode() if isinstance(value, str) else b""
    number = value if isinstance(value, float) else -1.0
    out = struct.pack("<i", -1) + kind.encode() + (b"S" if isinstance(value, str) else b"D")
    for s in (source.encode(), b"", community.encode(), key.encode()):
        out += struct.pack("<i", len(s)) + s
    out += struct.pack("<3d", stamp, number, 0.0) + struct.pack("<i", len(text)) + text
    return struct.pack("<i", len(out) + 4) + out


def packet(*messages: bytes) -> bytes:
    body = b"".join(messages)
    return struct.pack("<ii", len(body) + 9, len(messages)) + b"\0" + body


def unpacked(data: bytes) -> list[Mail]:
    """What stands in a packet; it has to be right."""
    size, count = struct.unpack_from("<ii", data)
    assert size == len(data) and data[8] == 0
    found: list[Mail] = []
    at = 9
    for _ in range(count):
        (length,) = struct.unpack_from("<i", data, at)
        kind, type_ = chr(data[at + 8]), chr(data[at + 9])
        inside, texts = at + 10, []
        for k in range(5):
            if k == 4:
                stamp, number, _ = struct.unpack_from("<3d", data, inside)
                inside += 24
            (n,) = struct.unpack_from("<i", data, inside)
            texts.append(data[inside + 4 : inside + 4 + n].decode())
            inside += 4 + n
        assert inside == at + length
        found.append((kind, texts[3], number if type_ == "D" else texts[4], texts[0], stamp))
        at = inside
    assert at == size
    return found


def receive(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def read(sock: socket.socket) -> list[Mail]:
    head = receive(sock, 4)
    return unpacked(head + receive(sock, struct.unpack("<i", head)[0] - 4))


class Database:
    """A MOOSDB. It lives until :meth:`die`; ``values`` are the last ones, ``raw`` goes to every client as it is."""

    def __init__(self, port: int = 0, warp: float = 1.0, community: str = "lauv") -> None:
        self.warp, self.community = warp, community
        self.values: dict[str, tuple[Any, str, float]] = {}
        self.counts: dict[str, int] = {}
        self.refused: list[str] = []
        self.errors: list[BaseException] = []
        self._clients: dict[str, socket.socket] = {}
        self._wishes: dict[str, set[str]] = {}
        self._lock = threading.RLock()
        self._listen = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listen.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def clients(self) -> list[str]:
        with self._lock:
            return list(self._clients)

    def die(self) -> None:
        """As by kill -9."""
        with self._lock, contextlib.suppress(OSError):
            self._listen.shutdown(socket.SHUT_RDWR)
        self._listen.close()
        with self._lock:
            for sock in self._clients.values():
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def raw(self, data: bytes) -> None:
        with self._lock:
            for sock in self._clients.values():
                sock.sendall(data)

    def post(self, key: str, value: Any, stamp: float | None = None) -> None:
        """As by an app."""
        self._notify(key, value, "poke", time.time() * self.warp if stamp is None else stamp)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listen.accept()
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        name = ""
        try:
            assert receive(sock, 32) == HELLO
            ((kind, key, who, _, _),) = read(sock)
            assert (kind, key) == ("i", "asynchronous")
            with self._lock:
                if who in self._clients:
                    self.refused.append(who)
                    sock.sendall(packet(message("K", "", f'A client of this name ("{who}") already exists')))
                    return
                name = who
                self._clients[name], self._wishes[name] = sock, set()
                sock.sendall(packet(message("W", "", "asynchronous", community=self.community)))
            while True:
                for fields in read(sock):
                    self._take(name, sock, *fields)
        except (ConnectionError, OSError):
            pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            with self._lock:
                self._clients.pop(name, None)
            sock.close()

    def _take(self, name: str, sock: socket.socket, kind: str, key: str, value: Any, source: str, stamp: float) -> None:
        assert source == name
        with self._lock:
            if kind == "T":
                sock.sendall(packet(message("T", "", time.time() * self.warp, name, stamp)))
            elif kind == "R":
                self._wishes[name].add(key)
                if key in self.values:
                    sock.sendall(packet(message("N", key, *self.values[key])))
            elif kind == "N":
                self._notify(key, value, source, stamp)

    def _notify(self, key: str, value: Any, source: str, stamp: float) -> None:
        with self._lock:
            self.values[key] = value, source, stamp
            self.counts[key] = self.counts.get(key, 0) + 1
            for name, wishes in self._wishes.items():
                if key in wishes and name in self._clients:
                    with contextlib.suppress(OSError):
                        self._clients[name].sendall(packet(message("N", key, value, source, stamp)))


Pilot = Callable[[dict[str, float]], dict[str, float]]


def helm(points: list[tuple[float, float]], depth: float | None, thrust: float = 70.0, radius: float = 6.0) -> Pilot:
    """Through points (x, y), then on; at a depth. Compass and signs as MOOS-IvP has them."""
    left = list(points)
    goal = left[0]

    def fly(nav: dict[str, float]) -> dict[str, float]:
        nonlocal goal
        while left and math.dist((nav["NAV_X"], nav["NAV_Y"]), left[0]) < radius:
            goal = left.pop(0)
        if left:
            goal = left[0]
        course = math.degrees(math.atan2(goal[0] - nav["NAV_X"], goal[1] - nav["NAV_Y"]))
        error = (course - nav["NAV_HEADING"] + 180.0) % 360.0 - 180.0
        assert abs((math.degrees(-nav["NAV_YAW"]) - nav["NAV_HEADING"] + 180.0) % 360.0 - 180.0) < 1e-6
        if not left:
            return {"DESIRED_THRUST": 0.0, "DESIRED_RUDDER": 0.0, "DESIRED_ELEVATOR": 0.0}
        desired = {"DESIRED_THRUST": thrust, "DESIRED_RUDDER": max(-60.0, min(60.0, 1.5 * error))}
        if depth is not None:
            pitch = max(-0.35, min(0.35, 0.2 * (nav["NAV_DEPTH"] - depth)))
            desired["DESIRED_ELEVATOR"] = max(-15.0, min(15.0, 35.0 * (nav["NAV_PITCH"] - pitch)))
        return desired

    fly.left = left  # type: ignore[attr-defined]
    return fly


class App(threading.Thread):
    """An app of the community: it hears NAV_ variables and answers each depth by what a pilot desires."""

    NAV = ("NAV_X", "NAV_Y", "NAV_HEADING", "NAV_YAW", "NAV_PITCH", "NAV_SPEED", "NAV_DEPTH")

    def __init__(self, database: Database, pilot: Pilot, name: str = "helm") -> None:
        super().__init__(daemon=True)
        self.pilot, self.name_, self.warp = pilot, name, database.warp
        self.nav: dict[str, float] = {}
        self.track: list[tuple[float, float, float]] = []
        self.error: BaseException | None = None
        self.sock = socket.create_connection(("127.0.0.1", database.port))
        self.sock.sendall(HELLO + packet(message("i", "asynchronous", name)))
        assert read(self.sock)[0][0] == "W"
        self.sock.sendall(packet(*(message("R", key, 0.0, name) for key in self.NAV)))
        self.start()

    def die(self) -> None:
        """As by kill -9."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.join(10)
        self.sock.close()

    def run(self) -> None:
        try:
            while True:
                for _, key, value, _, stamp in read(self.sock):
                    assert abs(stamp - time.time() * self.warp) < 10.0 * self.warp
                    self.nav[key] = value
                    if key == self.NAV[-1] and len(self.nav) == len(self.NAV):
                        self.track.append((self.nav["NAV_X"], self.nav["NAV_Y"], self.nav["NAV_DEPTH"]))
                        desired = self.pilot(self.nav)
                        now = time.time() * self.warp
                        self.sock.sendall(packet(*(message("N", k, v, self.name_, now) for k, v in desired.items())))
        except (ConnectionError, OSError):
            pass
        except BaseException as error:
            self.error = error
