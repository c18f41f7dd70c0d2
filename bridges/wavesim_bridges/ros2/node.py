"""ROS 2 node without ROS: topics and services over Cyclone DDS, on the loopback interface only."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import numpy as np
from cyclonedds.core import DDSException, Entity, Listener
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.ros2.message_types import Message, MessageTypes
from wavesim_sdk.errors import BrokerError

DEPTH = 10  #: number of DDS samples that are kept for slow readers
MOST_READ = 64  #: maximum number of DDS samples that are read in one call
MOST_PARTICIPANTS = 32
#: interval between announcements in s, and therefore the maximum time until a peer that starts later discovers the node
ANNOUNCED_S = 1
#: maximum time in s to wait until the caller of a service can receive the answer, and polling interval in s
CALLER_S, LOOK_S = 1.0, 0.01
#: QoS of writers: RELIABLE, which also matches readers that request BEST_EFFORT; writers never block
_OFFERED = (
    Policy.Reliability.Reliable(duration(milliseconds=0)),
    Policy.History.KeepLast(DEPTH),
    Policy.WriterDataLifecycle(autodispose=False),
)
_LATCHED = (
    Policy.Reliability.Reliable(duration(milliseconds=0)),
    Policy.History.KeepLast(1),
    Policy.Durability.TransientLocal,
    Policy.DurabilityService(0, Policy.History.KeepLast(1), -1, -1, -1),
    Policy.WriterDataLifecycle(autodispose=False),
)
_TAKEN = (Policy.Reliability.BestEffort, Policy.History.KeepLast(DEPTH))  # matches every writer
_CALLED = (Policy.Reliability.Reliable(duration(milliseconds=0)), Policy.History.KeepLast(DEPTH))
_POLICIES = {
    2: "durability",
    4: "deadline",
    8: "liveliness",
    11: "reliability",
    13: "history",
    23: "data representation",
}
# Fast DDS 3 announces types that Cyclone cannot parse: those of its vendor (1.15) are ignored.
_CONFIG = f"""<CycloneDDS><Domain><General><Interfaces><NetworkInterface address="127.0.0.1"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General><Discovery><SPDPInterval>{ANNOUNCED_S} s</SPDPInterval><ParticipantIndex>auto</ParticipantIndex>
<MaxAutoParticipantIndex>{MOST_PARTICIPANTS}</MaxAutoParticipantIndex><Peers><Peer address="127.0.0.1"/></Peers></Discovery>
<Compatibility><IgnoreTypeInformation>1.15</IgnoreTypeInformation></Compatibility></Domain></CycloneDDS>"""


def legal(name: str) -> str:
    """Convert a name to the form that ROS allows in topics: letters, digits and _, not starting with a digit."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{found}" if found[:1].isdigit() else found


class TopicWriter:
    """Publisher on a topic. ``readers`` is the number of readers. Without readers, the publisher sends nothing."""

    def __init__(
        self, node: DdsNode, topic: str, type_: str, qos: Qos, latched: bool = False, inside: str = "rt"
    ) -> None:
        self.topic, self.readers, self.sent = topic, 0, 0
        self._node, self._latched = node, latched
        struct = node.types.struct(type_)
        self._sample: Any = struct.__new__(struct)
        self.entity = node.entity(DataWriter, inside + topic, type_, qos, _EntityListener(node, topic, self))

    @property
    def has_readers(self) -> bool:
        """Return whether a message would reach a reader, now or later."""
        return self._latched or self.readers > 0

    def write(self, message: Message) -> None:
        """Publish a message."""
        if self.has_readers:
            self.write_bytes(self._node.types.packed(message))

    def write_bytes(self, data: bytes) -> None:
        """Publish a serialised message."""
        self._sample.data = data
        try:
            self.entity.write(self._sample)
            self.sent += 1
        except DDSException:
            self._node.drop(f"{self.topic}: the readers of this topic are too slow")


class DdsNode:
    """Node with topics and services. ``say`` prints a line for the user, and ``drop`` counts an unusable message."""

    def __init__(
        self, types: MessageTypes, name: str, domain: int, say: Callable[[str], None], drop: Callable[[str], None]
    ) -> None:
        self.types, self.name, self.say, self.drop = types, name, say, drop
        self.message_counts: Counter[str] = Counter()  #: number of messages received on each topic
        self.met_participant = False  #: whether a peer reads or writes one of this node's topics
        self._loop = asyncio.get_running_loop()
        self._entities: list[Any] = []
        self._writers: list[TopicWriter] = []
        self._readers: list[DataReader[Any]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        try:
            self._domain = Domain(domain, _CONFIG)
            self.participant = DomainParticipant(domain, qos=Qos(Policy.Userdata(b"enclave=/;")))
        except DDSException as error:
            raise BrokerError(
                f"cannot join DDS domain {domain}: {error}; is it full ({MOST_PARTICIPANTS} participants)?"
            ) from None
        graph = "rmw_dds_common/msg/ParticipantEntitiesInfo"
        self._graph = TopicWriter(self, "ros_discovery_info", graph, Qos(*_LATCHED), latched=True, inside="")

    def writer(self, topic: str, type_: str, latched: bool = False) -> TopicWriter:
        """Create a publisher. If it is ``latched``, subscribers that join later receive the last message."""
        qos = _LATCHED if latched else _OFFERED
        self._writers.append(TopicWriter(self, topic, type_, self._qos(qos, type_), latched))
        return self._writers[-1]

    def reader(self, topic: str, type_: str, take: Callable[[Message], None]) -> None:
        """Create a subscriber that calls a function with every valid message on a topic."""

        def taken(data: bytes) -> None:
            message = self.types.read(data, type_)
            if not self.message_counts[topic]:
                self.say(f"received the first message on {topic}")
            self.message_counts[topic] += 1
            take(message)

        self._read(f"rt{topic}", topic, type_, self._qos(_TAKEN, type_), taken)

    def service(self, name: str, type_: str, answer: Callable[[Message], Awaitable[Message]]) -> None:
        """Create a service. Calls are answered in the format that rmw_cyclonedds uses."""
        request_type, response_type = f"{type_}_Request", f"{type_}_Response"
        reply = TopicWriter(
            self, f"{name}Reply", response_type, self._qos(_OFFERED, response_type), latched=True, inside="rr"
        )
        self._writers.append(reply)

        def taken(data: bytes) -> None:
            call, request = self.types.read_call(data, request_type)

            async def later() -> None:
                data = self.types.packed_call(call, await answer(request))
                limit = time.monotonic() + CALLER_S
                # the call may arrive before its sender is discovered
                while reply.readers < callers.count and time.monotonic() < limit:
                    await asyncio.sleep(LOOK_S)
                reply.write_bytes(data)

            self.start_task(later())

        callers = self._read(f"rq{name}Request", name, request_type, self._qos(_CALLED, request_type), taken)

    def advertise_graph(self) -> None:
        """Announce the node's topics and services to ROS, once all of them exist."""
        new = self.types.new
        size = self.types.length("rmw_dds_common/msg/Gid")

        def gid(entity: Entity) -> Message:
            return new("rmw_dds_common/msg/Gid")(np.frombuffer(entity.get_guid().bytes.ljust(size, b"\0"), np.uint8))

        node = new("rmw_dds_common/msg/NodeEntitiesInfo")(
            "/", self.name, [gid(r) for r in self._readers], [gid(w.entity) for w in self._writers]
        )
        self._graph.write(new("rmw_dds_common/msg/ParticipantEntitiesInfo")(gid(self.participant), [node]))

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a background task."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """Wait for the background tasks."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def close(self) -> None:
        """Leave the DDS domain. Later calls do nothing."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        self._writers.clear()
        self._readers.clear()
        self._entities.clear()
        del self._graph, self.participant, self._domain

    # -- DDS

    def entity(self, kind: Any, topic: str, type_: str, qos: Qos, watch: Listener) -> Any:
        """Create a DDS writer or reader."""
        try:
            made = kind(
                self.participant, Topic(self.participant, topic, self.types.struct(type_)), qos=qos, listener=watch
            )
        except DDSException as error:
            raise BrokerError(f"cannot use the topic '{topic}': {error}") from None
        self._entities.append((made, watch))
        return made

    def _qos(self, policies: tuple[Any, ...], type_: str) -> Qos:
        return Qos(*policies, Policy.Userdata(f"typehash={self.types.hash(type_)};".encode()))

    def _read(self, inside: str, topic: str, type_: str, qos: Qos, taken: Callable[[bytes], None]) -> _EntityListener:
        def turn() -> None:
            while not self._closed:
                samples = reader.take(MOST_READ)
                for sample in samples:
                    if sample.sample_info.valid_data:  # otherwise a writer left
                        try:
                            taken(sample.data)
                        except MalformedMessage as unusable:
                            self.drop(f"{topic}: {unusable}")
                if len(samples) < MOST_READ:
                    return

        watch = _EntityListener(self, topic, turn=turn)
        reader: DataReader[Any] = self.entity(DataReader, inside, type_, qos, watch)
        self._readers.append(reader)
        self.call_in_loop(turn)
        return watch

    def call_in_loop(self, call: Callable[[], None]) -> None:
        """Pass a call from DDS's threads to the event loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            if not self._closed:
                self._loop.call_soon_threadsafe(call)


class _EntityListener(Listener):
    """Listener for events of a writer or a reader, called in DDS's threads. ``count`` is the number of writers on a
    reader's topic.
    """

    def __init__(
        self, node: DdsNode, topic: str, writer: TopicWriter | None = None, turn: Callable[[], None] | None = None
    ) -> None:
        self._node, self._topic, self._writer, self._on_data = node, topic, writer, turn
        self.count = 0
        super().__init__()  # type: ignore[no-untyped-call]  # Cyclone's has no annotation

    def on_data_available(self, reader: Any) -> None:
        """Handle the messages that are waiting."""
        if self._on_data is not None:
            self._node.call_in_loop(self._on_data)

    def on_publication_matched(self, writer: Any, status: Any) -> None:
        """Handle a reader that has appeared or left."""
        self._node.met_participant = True
        if self._writer is not None:
            self._writer.readers = status.current_count

    def on_subscription_matched(self, reader: Any, status: Any) -> None:
        """Handle a writer that has appeared or left."""
        self._node.met_participant = True
        count = self.count = status.current_count
        self._node.call_in_loop(
            lambda: self._node.say(f"{self._topic} has {count} publisher{'' if count == 1 else 's'}")
        )

    def on_offered_incompatible_qos(self, writer: Any, status: Any) -> None:
        """Report a subscriber that requests a stricter QoS policy than is offered."""
        self._refused("a subscriber requests a stricter QoS policy than is offered", status.last_policy_id)

    def on_requested_incompatible_qos(self, reader: Any, status: Any) -> None:
        """Report a publisher that offers a weaker QoS policy than is requested."""
        self._refused("a publisher offers a weaker QoS policy than is required", status.last_policy_id)

    def _refused(self, text: str, policy: int) -> None:
        what = _POLICIES.get(policy, f"policy {policy}")
        self._node.call_in_loop(
            lambda: self._node.say(f"{self._topic}: {text} ({what}), so publisher and subscriber cannot communicate")
        )
