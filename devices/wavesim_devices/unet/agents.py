"""Agents with parameters, and the two agents that use no sound: the node agent and the agent for address resolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wavesim_devices.unet.fjage import MESSAGE, AgentContainer, AgentMessage

UNET = "org.arl.unet."
SERVICES = UNET + "Services."
BROADCAST = 0
MAX_PARAMETERS = 64  #: maximum number of parameters that one request may name


@dataclass(frozen=True)
class AgentParameter:
    """Parameter of an agent. ``change`` accepts a new value, or raises ValueError; if it is None, the parameter cannot
    be set.
    """

    value: Callable[[], Any]
    change: Callable[[Any], None] | None = None


def integer(value: Any, low: int, high: int) -> int:
    """Return an integer. Raises ValueError if the value is not an integer within the limits."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError
    return value


def number(value: Any, low: float, high: float) -> float:
    """Return a number. Raises ValueError if the value is not a number within the limits."""
    if type(value) not in (int, float) or not low <= value <= high:
        raise ValueError
    return float(value)


class ParameterAgent:
    """Agent that has parameters. It also answers messages that it does not understand."""

    services: tuple[str, ...] = ()

    def __init__(self, name: str, container: AgentContainer) -> None:
        self.name, self.container = name, container
        self.parameters: dict[int, dict[str, AgentParameter]] = {-1: {}}  # by index; -1 = without an index
        self.requests: Mapping[str, Callable[[AgentMessage], None]] = {}  # handlers by class

    def handle(self, message: AgentMessage) -> None:
        """Process a message to the agent."""
        if message.clazz == "org.arl.fjage.param.ParameterReq":
            self._answer_parameters(message)
        elif message.clazz in self.requests:
            self.requests[message.clazz](message)
        else:
            self.container.reply(message, MESSAGE, "NOT_UNDERSTOOD")

    def refuse(self, message: AgentMessage, reason: str) -> None:
        """Reject a request."""
        self.container.reply(message, UNET + "RefuseRsp", "REFUSE", reason=reason)

    def notify(self, topic: str, clazz: str, **fields: Any) -> None:
        """Publish a message on one of the agent's own topics. The main topic has an empty name."""
        recipient = f"#{self.name}__{topic}__ntf" if topic else f"#{self.name}__ntf"
        self.container.post(AgentMessage(clazz, fields, sender=self.name, recipient=recipient))

    def _answer_parameters(self, message: AgentMessage) -> None:
        index, more = message.fields.get("index", -1), message.fields.get("requests") or []
        known = self.parameters.get(index, {}) if isinstance(index, int) else {}
        first = {"param": message.fields.get("param"), "value": message.fields.get("value")}
        asked = [first, *(m for m in more if isinstance(m, dict))] if isinstance(more, list) else [first]
        if first["param"] is None:
            asked = [{"param": name} for name in known]
        values = {}
        for request in asked[:MAX_PARAMETERS]:
            name = request.get("param")
            parameter = known.get(name.rpartition(".")[2]) if isinstance(name, str) else None
            if parameter is None:
                continue
            self._change(parameter, request.get("value"))
            values[name] = parameter.value()
        names = iter(values)
        head = {} if not values else {"param": (name := next(names)), "value": values.pop(name)}
        self.container.reply(message, "org.arl.fjage.param.ParameterRsp", index=index, values=values, **head)

    def _change(self, parameter: AgentParameter, value: Any) -> None:
        """Set a parameter. The answer always contains the value that is in effect, so that the requester notices if the
        new value was rejected.
        """
        if value is None or parameter.change is None:
            return
        try:
            parameter.change(value)
        except ValueError:
            return


class NodeAgent(ParameterAgent):
    """Agent with the address and the name of the node."""

    services = (SERVICES + "NODE_INFO",)

    def __init__(self, container: AgentContainer, address: int, node_name: str) -> None:
        super().__init__("node", container)
        self.parameters[-1] |= {
            "address": AgentParameter(lambda: address),
            "nodeName": AgentParameter(lambda: node_name),
            "mobility": AgentParameter(lambda: True),
        }


class AddressAgent(ParameterAgent):
    """Agent that resolves node names to addresses."""

    services = (SERVICES + "ADDRESS_RESOLUTION",)

    def __init__(self, container: AgentContainer, addresses: Mapping[str, int]) -> None:
        super().__init__("arp", container)
        self.addresses = addresses
        self.requests = {UNET + "addr.AddressResolutionReq": self._resolve}

    def _resolve(self, message: AgentMessage) -> None:
        name = message.fields.get("name")
        address = self.addresses.get(name) if isinstance(name, str) else None
        self.container.reply(message, UNET + "addr.AddressResolutionRsp", name=name, address=address)
