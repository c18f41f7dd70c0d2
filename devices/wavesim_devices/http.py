"""HTTP/1.1 port of a device. It calls a handler for each request, and the handler returns a JSON answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import h11

from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import LONG_LINE


@dataclass(frozen=True)
class HttpAnswer:
    """Answer to a request. ``content`` is sent as JSON; None means that there is no content."""

    status: int = 200
    content: Any = None


NOT_FOUND = HttpAnswer(404, {"error": "not found"})
#: handler of requests; its arguments are the method, the path without the query, and the content (None if it is empty)
Handler = Callable[[str, str, Any], HttpAnswer]


class HttpConnection:
    """Connection to one HTTP client. A request that is invalid or too long is counted and answered with an error, and
    the connection is closed.
    """

    def __init__(self, handler: Handler, send: Bytes) -> None:
        self.handler, self.send, self.errors = handler, send, 0
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=LONG_LINE)
        self._request: h11.Request | None = None
        self._content = bytearray()

    def receive(self, data: bytes) -> None:
        """Process bytes received from the client."""
        if self._http.their_state is h11.ERROR or self._http.our_state in (h11.ERROR, h11.CLOSED, h11.MUST_CLOSE):
            return
        self._http.receive_data(data)
        try:
            self._process()
        except h11.RemoteProtocolError as error:
            self.errors += 1
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self._answer(HttpAnswer(error.error_status_hint, {"error": str(error)}))

    def _process(self) -> None:
        while (event := self._http.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Request):
                self._request = event
                self._content.clear()
                if self._http.they_are_waiting_for_100_continue:
                    self.send(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            elif isinstance(event, h11.Data):
                self._content += event.data
                if len(self._content) > LONG_LINE:
                    raise h11.RemoteProtocolError("the content is too long", error_status_hint=413)
            elif isinstance(event, h11.EndOfMessage) and self._request is not None:
                self._answer(self._handle(self._request))
            elif isinstance(event, h11.ConnectionClosed):
                return

    def _handle(self, request: h11.Request) -> HttpAnswer:
        try:
            content = json.loads(self._content) if self._content else None
        except (ValueError, RecursionError):
            self.errors += 1
            return HttpAnswer(400, {"error": "the content is not JSON"})
        return self.handler(request.method.decode(), request.target.decode().partition("?")[0], content)

    def _answer(self, answer: HttpAnswer) -> None:
        body = b"" if answer.content is None else json.dumps(answer.content).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        parts = [h11.Response(status_code=answer.status, headers=headers), h11.Data(data=body), h11.EndOfMessage()]
        self.send(b"".join(self._http.send(part) or b"" for part in parts))
        if self._http.our_state is h11.MUST_CLOSE:
            self.send(b"")
        elif self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()

    def close(self) -> None:
        """Do nothing when the client closes the connection."""
