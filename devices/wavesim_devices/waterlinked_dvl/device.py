"""Virtual Water Linked DVL with its ports."""

from __future__ import annotations

from typing import Any

from wavesim_devices.http import NOT_FOUND, HttpAnswer, HttpConnection
from wavesim_devices.ports import Bytes, Connection
from wavesim_devices.waterlinked_dvl.hosts import HostConnection, JsonConnection, PdConnection, SerialConnection
from wavesim_devices.waterlinked_dvl.instrument import DvlInstrument


class WaterLinkedDvl(DvlInstrument):
    """Virtual Water Linked DVL. Measurements go to all hosts; replies go only to the host that sent the command."""

    def connect(self, port: str, send: Bytes) -> Connection:
        """Create the connection to a host on the `json`, `serial`, `pd4`, `pd6` or `http` port."""
        if port == "http":
            return HttpConnection(self._handle_http, send)
        host: HostConnection
        if port == "json":
            host = JsonConnection(self, send)
        elif port == "serial":
            host = SerialConnection(self, send)
        else:
            host = PdConnection(self, send, port)
        self.hosts.append(host)
        return host

    def _handle_http(self, method: str, path: str, content: Any) -> HttpAnswer:
        if method != "GET":
            return NOT_FOUND
        if path.rstrip("/") == "/api/v1/about":
            return HttpAnswer(200, self.about())
        if path.rstrip("/") == "/api/v1/about/status":
            return HttpAnswer(200, {"temperature": round(self.temperature, 2)})
        return NOT_FOUND
