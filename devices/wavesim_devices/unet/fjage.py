"""Container of fjåge agents, as a gateway sees it: a TCP port on which each line is one JSON object.

A request ``{"id": ..., "action": "agents"}`` gets an answer with the same ``id``. A message
``{"action": "send", "message": {"clazz": ..., "data": {...}}}`` goes to the agent, gateway or topic that ``recipient``
names. The identifier of an agent is its name. The identifier of a topic is ``#name``, and that of an agent's own topic
is ``#name__ntf``. A gateway receives the messages for the identifiers that it has listed with ``wantsMessagesFor``.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import LONG_LINE, LineSplitter

ALIVE = b'{"alive": true}\n'
MESSAGE = "org.arl.fjage.Message"
MAX_WATCHED = 256  #: maximum number of identifiers that a gateway may list


@dataclass(frozen=True)
class AgentMessage:
    """Message between agents: its class, its own fields, and the fields that all messages have."""

    clazz: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    perf: str = "INFORM"
    sender: str = ""
    recipient: str = ""
    message_id: str = ""
    in_reply_to: str | None = None

    @classmethod
    def parse(cls, content: Any) -> AgentMessage | None:
        """Return the message of a ``send`` action, or None if it is invalid."""
        if not isinstance(content, dict) or not isinstance(content.get("data"), dict):
            return None
        data, clazz = content["data"], content.get("clazz")
        common = [data.get(k) for k in ("perf", "sender", "recipient", "msgID")]
        if not isinstance(clazz, str) or not all(isinstance(c, str) for c in common):
            return None
        return cls(clazz, data, *common)

    def content(self, sent_at: int) -> dict[str, Any]:
        """Return the message in its JSON form. ``sent_at`` is the simulation time in ms."""
        data = {"msgID": self.message_id, "perf": self.perf, "sender": self.sender, "recipient": self.recipient}
        reply = {} if self.in_reply_to is None else {"inReplyTo": self.in_reply_to}
        return {"clazz": self.clazz, "data": {**data, **reply, "sentAt": sent_at, **self.fields}}


def to_json_bytes(data: bytes) -> dict[str, str]:
    """Return bytes in the form in which fjåge sends them."""
    return {"clazz": "[B", "data": base64.b64encode(data).decode()}


def from_json_bytes(value: Any) -> bytes | None:
    """Return the bytes in a value that is a list of signed or unsigned numbers, or a base64 object. Return None if the
    value is neither.
    """
    try:
        if isinstance(value, dict) and value.get("clazz") == "[B":
            return base64.b64decode(value["data"], validate=True)
        if isinstance(value, list) and all(type(v) is int and -128 <= v <= 255 for v in value):
            return bytes(v & 0xFF for v in value)
    except (KeyError, TypeError, ValueError):
        pass
    return None


class Agent(Protocol):
    """Agent in a container."""

    name: str
    services: tuple[str, ...]

    def handle(self, message: AgentMessage) -> None:
        """Process a message to the agent."""


class AgentContainer:
    """Agents of a modem, and the gateways that are connected to it."""

    def __init__(self, agents: Mapping[str, Agent], sent_at: Callable[[], int], longest_line: int = LONG_LINE) -> None:
        self.agents, self.sent_at, self.longest_line = agents, sent_at, longest_line
        self.gateways: list[GatewayConnection] = []
        self.malformed = 0  #: number of lines that were not valid requests or messages
        self._count = 0

    def post(self, message: AgentMessage, source: GatewayConnection | None = None) -> None:
        """Deliver a message to the agent that is its recipient. If there is no such agent, deliver it to all gateways
        that have listed the recipient, except ``source``, the gateway that sent the message.
        """
        agent = self.agents.get(message.recipient)
        if agent is not None:
            agent.handle(message)
            return
        if not message.message_id:
            self._count += 1
            message = replace(message, message_id=f"{message.sender}-{self._count}")
        content = message.content(self.sent_at())
        for gateway in self.gateways:
            if gateway is not source and message.recipient in gateway.wanted:
                gateway.write({"action": "send", "relay": True, "message": content})

    def reply(self, request: AgentMessage, clazz: str = MESSAGE, perf: str = "INFORM", /, **fields: Any) -> None:
        """Send the answer to a request."""
        self.post(AgentMessage(clazz, fields, perf, request.recipient, request.sender, in_reply_to=request.message_id))

    def agree(self, request: AgentMessage) -> None:
        """Inform the sender of a request that the result will follow."""
        self.reply(request, MESSAGE, "AGREE")


#: function that calls another function after the time that a modem needs to read a line
Later = Callable[[Callable[[], None]], None]


def _at_once(call: Callable[[], None]) -> None:
    call()


class GatewayConnection:
    """Connection to a gateway, which is the client side of fjåge."""

    def __init__(self, container: AgentContainer, send: Bytes, later: Later = _at_once) -> None:
        self.container, self._send, self._later = container, send, later
        self._arrived: deque[str] = deque()
        self.wanted: frozenset[str] = frozenset()
        self._lines = LineSplitter(container.longest_line, "utf-8")
        self._asked_alive = True  # so that two sides that answer each other do not do so for ever
        container.gateways.append(self)
        send(ALIVE)

    def write(self, content: dict[str, Any]) -> None:
        """Send a JSON object."""
        self._send(json.dumps(content, separators=(",", ":")).encode() + b"\n")

    def receive(self, data: bytes) -> None:
        """Process bytes received from the gateway."""
        dropped = self._lines.dropped
        for line in self._lines.feed(data):
            self._arrived.append(line)
            self._later(self._handle_next)
        self.container.malformed += self._lines.dropped - dropped

    def _handle_next(self) -> None:
        try:
            content = json.loads(self._arrived.popleft())
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or not self._handle(content):
            self.container.malformed += 1

    def close(self) -> None:
        """Remove the gateway after it has closed the connection."""
        self.container.gateways.remove(self)

    def _handle(self, content: dict[str, Any]) -> bool:
        """Process a JSON object, and return whether it is valid."""
        if "alive" in content:
            if content["alive"] is False:
                self._send(b"")
            elif self._asked_alive:
                self._asked_alive = False
            else:
                self._asked_alive = True
                self._send(ALIVE)
            return True
        action = content.get("action")
        if action == "send":
            message = AgentMessage.parse(content.get("message"))
            if message is not None:
                self.container.post(message, self)
            return message is not None
        if action == "wantsMessagesFor":
            wanted = content.get("agentIDs")
            if not isinstance(wanted, list) or len(wanted) > MAX_WATCHED or not all(isinstance(w, str) for w in wanted):
                return False
            self.wanted = frozenset(wanted)
            return True
        if "inResponseTo" in content:  # the answer to a request; a container asks its gateways for nothing
            return True
        answer = self._answer(action, content)
        if answer is None:
            return False
        self.write({"id": content.get("id"), "inResponseTo": action, **answer})
        return True

    def _answer(self, action: Any, content: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request about the agents, or None if the request is invalid."""
        agents, service = self.container.agents, content.get("service")
        providers = [name for name, agent in agents.items() if service in agent.services]
        match action:
            case "agents":
                return {"agentIDs": list(agents)}
            case "containsAgent":
                return {"answer": content.get("agentID") in list(agents)}
            case "services":
                return {"services": sorted({s for agent in agents.values() for s in agent.services})}
            case "agentForService":
                return {"agentID": providers[0]} if providers else {}
            case "agentsForService":
                return {"agentIDs": providers}
        return None
