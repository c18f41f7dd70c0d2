"""A stand-in for the MAVLink side of an autopilot's navigation filter, by pymavlink."""

from __future__ import annotations

import socket
import time
from typing import Any

from tests.bridges.standin import StandIn


class NavigationFilter(StandIn):
    """It connects with its heartbeat, confirms its origin, and keeps every message."""

    def __init__(self, port: int, dialect: Any) -> None:
        super().__init__()
        self.port, self.dialect = port, dialect
        self.messages: list[Any] = []

    def of(self, kind: str) -> list[Any]:
        return [m for m in self.messages if m.get_type() == kind]

    def fly(self) -> None:
        dialect = self.dialect
        mav = dialect.MAVLink(None, srcSystem=7, srcComponent=1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0.2)
            beat_at = 0.0
            while not self.over.is_set():
                if time.monotonic() >= beat_at:
                    beat_at = time.monotonic() + 0.5
                    sock.sendto(
                        dialect.MAVLink_heartbeat_message(12, 3, 0, 0, 4, 3).pack(mav), ("127.0.0.1", self.port)
                    )
                try:
                    data = sock.recv(2048)
                except TimeoutError:
                    continue
                for m in mav.parse_buffer(data) or ():
                    self.messages.append(m)
                    if m.get_type() == "SET_GPS_GLOBAL_ORIGIN" and len(self.of("SET_GPS_GLOBAL_ORIGIN")) > 1:
                        place = dialect.MAVLink_gps_global_origin_message(m.latitude, m.longitude, m.altitude)
                        sock.sendto(place.pack(mav), ("127.0.0.1", self.port))
