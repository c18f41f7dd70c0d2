"""Bridge that represents a vehicle as a ROS 2 node, which publishes measurements, pose and time, and receives
commands.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_bridges.core import BridgedVehicle, BridgeOptions, MalformedMessage
from wavesim_bridges.ros2 import named_actuators
from wavesim_bridges.ros2 import sensors as sensor_messages
from wavesim_bridges.ros2.commands import CommandTopics
from wavesim_bridges.ros2.discovery_check import check_discovery
from wavesim_bridges.ros2.message_types import Message, MessageTypes
from wavesim_bridges.ros2.mounted_instrument import ARRAY, MessageFactory, MountedInstrument
from wavesim_bridges.ros2.node import DdsNode, TopicWriter, legal
from wavesim_bridges.ros2.topic_layout import TopicLayout
from wavesim_bridges.vehicle_motion import VehicleMotion, motion_of
from wavesim_sdk.actuators import Actuator
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError, WaveSimError
from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_sdk.wire.items import Reception
from wavesim_sdk.wire.state import State, Value
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import InstrumentConfig

BEAT_S = 0.1  #: wall time in s after which a stopped clock is published again
LOOK_S = 0.02  #: interval in s at which to check whether the vehicle has joined
FAREWELL_S = 1.0
TRIGGER, PARAMETERS, TEXT = "std_srvs/srv/Trigger", "rcl_interfaces/srv/SetParameters", "std_msgs/msg/String"
TF, ODOMETRY, CLOCK = "tf2_msgs/msg/TFMessage", "nav_msgs/msg/Odometry", "rosgraph_msgs/msg/Clock"
PARAMS = "ros_gz_interfaces/msg/ParamVec"
VERBS = ("start", "pause", "stop")
KINDS = ("pulse", "data", "range request", "range reply", "sound")


@dataclass(frozen=True)
class Ros2Options:
    """Options of the ROS 2 bridge."""

    layout: str = "wavesim"
    domain: int = 0
    distro: str = "jazzy"
    clock: bool = True
    tf: bool = True
    wall: bool = False  #: whether messages are stamped with wall time instead of simulation time
    lockstep: bool = False  #: whether each simulation step waits for the controller's commands
    silence: float = 1.0


class Ros2Clock:
    """ROS time of all vehicles in a process. It never decreases: when a run is restarted, ROS time continues from the
    end of the previous run.
    """

    def __init__(self, node: DdsNode, publish: bool, wall: bool, gap_ns: int) -> None:
        self._make, self._wall, self._gap = MessageFactory(node.types), wall, gap_ns
        self._message = node.types.new(CLOCK)
        self._writer = node.writer("/clock", CLOCK) if publish and not wall else None
        self._offsets = [0]  #: ROS time in ns at the start of each run
        #: for each vehicle, the index of its run, and the time in that run (ns)
        self._runs: dict[str, tuple[int, int]] = {}
        self._wall_ns = 0
        self.now = 0
        self._published = 0.0

    def step(self, vehicle: str, time_ns: int) -> None:
        """Store the current time of a vehicle's run."""
        run, before = self._runs.get(vehicle, (0, 0))
        if time_ns < before:
            run += 1
            if run == len(self._offsets):
                self._offsets.append(self.now + self._gap - time_ns)
        self._runs[vehicle] = (run, time_ns)
        self._wall_ns = time.time_ns()
        if self._offsets[run] + time_ns > self.now or not self._published:
            self.now = max(self.now, self._offsets[run] + time_ns)
            self._publish()

    def stamp(self, vehicle: str, time_ns: int) -> int:
        """Return the ROS time for a time in the vehicle's run."""
        run, now = self._runs[vehicle]
        return self._wall_ns - (now - time_ns) if self._wall else max(self._offsets[run] + time_ns, 0)

    async def repeat(self) -> None:
        """Publish the unchanged ROS time repeatedly while the simulation is stopped, for nodes that join later."""
        while True:
            await asyncio.sleep(BEAT_S)
            if time.monotonic() - self._published > BEAT_S:
                self._publish()

    def _publish(self) -> None:
        self._published = time.monotonic()
        if self._writer is not None:
            self._writer.write(self._message(self._make.time(self.now)))


class StaticTransforms:
    """Publisher of /tf_static: one message that contains all transforms of a node."""

    def __init__(self, node: DdsNode) -> None:
        self._writer, self._new = node.writer("/tf_static", TF, latched=True), node.types.new(TF)
        self._known: dict[str, Message] = {}  # by child

    def add(self, transforms: Sequence[Message]) -> None:
        """Add transforms to the message."""
        self._known |= {t.child_frame_id: t for t in transforms}
        self._writer.write(self._new(list(self._known.values())))


@dataclass
class SharedNode:
    """Resources shared by the vehicles of a process."""

    node: DdsNode
    clock: Ros2Clock
    statics: StaticTransforms
    tf: TopicWriter


class Ros2Instruments:
    """Messages from a vehicle's instruments; each value is published once."""

    def __init__(
        self,
        shared: SharedNode,
        layout: TopicLayout,
        suite: Sequence[InstrumentConfig],
        actuators: Sequence[Actuator],
        broker: AsyncBroker,
    ) -> None:
        self._clock, self._vehicle = shared.clock, layout.vehicle
        fields = {s.name: tuple((f.name, f.count) for f in s.fields) for s in broker.sensors}
        declared = {i.name: i for i in suite}
        if strange := sorted(fields.keys() - declared.keys()):
            raise BrokerError(
                f"the vehicle has a sensor '{strange[0]}' that is not in --config; use the server's configuration"
            )
        make = MessageFactory(shared.node.types)
        self._all = {
            name: MountedInstrument(
                declared[name], layout.frames(name), make, fields[name], tuple(actuators), layout.axes
            )
            for name in fields
        }
        self._outputs: list[tuple[MountedInstrument, str, TopicWriter, sensor_messages.SensorOutput]] = []
        for s in self._all.values():
            for name, topic, output in layout.outputs(s.instrument.type, s.instrument.name):
                self._outputs.append((s, name, shared.node.writer(topic, output.type), output))
        used = {s.instrument.name for s, *_ in self._outputs}
        shared.statics.add([t for name in sorted(used) for t in sensor_messages.mounting(self._all[name])])
        self._ahrs = next((s for s in self._all.values() if s.instrument.type == "ahrs"), None)
        self._seen: dict[str, int] = {}

    @property
    def framed(self) -> list[str]:
        """Names of the instruments whose frames the layout publishes."""
        return list(dict.fromkeys(s.instrument.name for s, _, _, output in self._outputs if output.from_frame))

    def publish_frame(self, frame: ImagingFrame) -> None:
        """Publish a scan of a lidar, stamped with its end, or a block of a hydrophone, stamped with its first sample."""
        time_ns = int(frame.record["ping_ns" if frame.kind == "hydrophone" else "time_ns"])
        for s, _, writer, output in self._outputs:
            if s.instrument.name == frame.name and output.from_frame is not None and writer.has_readers:
                writer.write(output.from_frame(s, frame, self._clock.stamp(self._vehicle, time_ns)))

    def publish(self, state: State) -> None:
        """Publish the new values from the instruments."""
        for s, name, writer, output in self._outputs:
            if not writer.has_readers:
                continue
            value, before = state.sensors.get(s.instrument.name), self._seen.get(s.instrument.name)
            if value is not None and value.time_ns != before:
                stamp = self._clock.stamp(self._vehicle, value.time_ns)
                message = output.to_message(s, value, stamp)
                if message is not None:
                    if name == "data" and s.instrument.type == "imu":
                        self._orient(s, message, state)
                    writer.write(message)
            elif value is None and name == "fix" and self._due(s, state.time_ns, before):
                writer.write(sensor_messages.no_fix(s, self._clock.stamp(self._vehicle, state.time_ns)))
                self._seen[s.instrument.name] = state.time_ns
        self._seen.update((name, value.time_ns) for name, value in state.sensors.items())

    def _orient(self, s: MountedInstrument, message: Message, state: State) -> None:
        value: Value | None = None if self._ahrs is None else state.sensors.get(self._ahrs.instrument.name)
        if self._ahrs is not None and value is not None and all(map(math.isfinite, value.numbers[:3])):
            sensor_messages.with_attitude(s, message, self._ahrs, value)

    def _due(self, s: MountedInstrument, now: int, before: int | None) -> bool:
        return before is None or not 0 <= now - before < round(1e9 / s.declared.rate)


class Ros2Bridge:
    """Bridge for one vehicle that a ROS 2 controller drives. Without a controller, the bridge sends neutral commands."""

    def __init__(
        self, seat: BridgeOptions, layout: TopicLayout, shared: SharedNode, loaded: LoadedConfig, wishes: Ros2Options
    ) -> None:
        self.vehicle, self.layout, self.shared, self.wishes = BridgedVehicle(seat), layout, shared, wishes
        self._make = MessageFactory(shared.node.types)
        self._frames = self.layout.frames()
        model = next((b.model for b in loaded.config.fleet.bodies if b.name == seat.vehicle), seat.model)
        self._suite = loaded.suite_by_name(seat.vehicle, model)
        self._thrusters = loaded.model(model).thruster
        self._actuators = actuators_of(loaded.model(model))
        self._has: tuple[CommandTopics, Ros2Instruments] | None = None
        self._watched: AsyncBroker | None = None  #: session whose frames are published, by the task ``_watching``
        self._watching: asyncio.Task[None] | None = None
        self._odometry = self._writer(self.layout.odometry, ODOMETRY)
        self._state = self._writer(self.layout.state, ARRAY)
        self._joints = self._writer(self.layout.joints, sensor_messages.JOINTS)
        self._reception_writer = self._writer(self.layout.acoustics("heard"), TEXT)
        self._bearing = self._writer(self.layout.acoustics("range_bearing"), PARAMS)
        if self.layout.map and wishes.tf:
            none, level = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
            shared.statics.add([self._make.transform(0, self.layout.map, self._frames.world, none, level)])
        self._serve()

    def _writer(self, topic: str, type_: str) -> TopicWriter | None:
        return self.shared.node.writer(topic, type_) if topic else None

    async def run(self) -> None:
        """Run until the simulation ends."""
        early = asyncio.create_task(self._early())
        try:
            async for broker, step in self.vehicle.steps():
                commands, instruments = self._on_joined(broker)
                motion = motion_of(step.state)
                self._publish(step, motion, instruments)
                if broker is not self._watched:
                    self._watch_frames(broker, instruments)
                if self.wishes.lockstep:
                    await commands.wait_for_commands()
                broker.answer(commands.current_commands(step.time, motion))
        finally:
            early.cancel()
            if self._watching is not None:
                self._watching.cancel()

    def _watch_frames(self, broker: AsyncBroker, instruments: Ros2Instruments) -> None:
        """Publish the frames of this session's lidars and hydrophones."""
        self._watched = broker
        if self._watching is not None:
            self._watching.cancel()
        names = instruments.framed
        if not names:
            return

        async def watch() -> None:
            try:
                async for frame in broker.frames(*names):
                    instruments.publish_frame(frame)
            except WaveSimError as error:
                self.vehicle.options.report(f"no scans or samples: {error}")

        self._watching = asyncio.create_task(watch())

    async def _early(self) -> None:
        """Create the topics as soon as the vehicle has joined, before the run begins."""
        while self.vehicle.broker is None:
            await asyncio.sleep(LOOK_S)
        self._on_joined(self.vehicle.broker)

    def _on_joined(self, broker: AsyncBroker) -> tuple[CommandTopics, Ros2Instruments]:
        """Create everything that depends on the vehicle's equipment; later calls do nothing."""
        if self._has is None:
            commands = CommandTopics(
                self.shared.node,
                self.layout,
                broker.actuators,
                self.wishes.silence,
                self.vehicle.options.report,
                self._thrusters,
            )
            self._has = commands, Ros2Instruments(self.shared, self.layout, self._suite, self._actuators, broker)
            self.shared.node.advertise_graph()
        return self._has

    def _publish(self, step: Step, motion: VehicleMotion | None, instruments: Ros2Instruments) -> None:
        clock, name = self.shared.clock, self.layout.vehicle
        clock.step(name, step.state.time_ns)  # before all messages with this stamp
        stamp = clock.stamp(name, step.state.time_ns)
        if motion is not None and step.state.motion is not None:
            self._motion(motion, step.state.motion[7:10], stamp)
            if self._state is not None and self._state.has_readers:
                self._state.write(
                    named_actuators.vessel_state(
                        self._make, motion, step.state.motion[7:10], self._actuators, step.state.actuation
                    )
                )
        if self._joints is not None and self._joints.has_readers:
            self._joints.write(sensor_messages.joints(self._make, self._actuators, step.state.actuation, stamp))
        instruments.publish(step.state)
        for reception in step.receptions:
            self._reception_message(reception, stamp)
        for refused in step.refused:
            self.vehicle.options.report(f"the server refused a request: {refused.text}")

    def _motion(self, motion: VehicleMotion, velocity: Sequence[float], stamp: int) -> None:
        """Publish the true motion if the server provides it. ``velocity`` is in the body frame."""
        f, new = self._frames, self.shared.node.types.new
        axes = self.layout.axes
        place, q = axes.world @ motion.position, axes.attitude(motion.attitude)
        if self.wishes.tf and self.shared.tf.has_readers:
            self.shared.tf.write(new(TF)([self._make.transform(stamp, f.world, f.base, place, q)]))
        if self._odometry is not None and self._odometry.has_readers:
            exact = np.zeros(36)
            moving = self._make.twist(axes.body @ np.array(velocity), axes.body @ motion.rates)
            self._odometry.write(
                new(ODOMETRY)(
                    self._make.header(stamp, f.world),
                    f.base,
                    new("geometry_msgs/msg/PoseWithCovariance")(self._make.pose(place, q), exact),
                    new("geometry_msgs/msg/TwistWithCovariance")(moving, exact),
                )
            )

    # -- sound

    def _reception_message(self, r: Reception, stamp: int) -> None:
        new = self.shared.node.types.new
        bearing, up = (None if a is None else -a for a in (r.azimuth, r.elevation))
        if self._reception_writer is not None:
            payload = r.payload or b""
            text = payload.decode("utf-8", "replace")
            entry = {
                "time": r.reception_ns * 1e-9,
                "kind": KINDS[r.kind] if r.kind < len(KINDS) else "other",
                "code": r.code,
                "from": r.from_address,
                "to": r.to_address,
                "frequency": r.frequency,
                "level": r.level,
                "snr": r.snr,
                "range": r.range,
                "bearing": bearing,
                "elevation": up,
                "hex": payload.hex(),
                "text": None if "\ufffd" in text else text,
            }
            self._reception_writer.write(new(TEXT)(json.dumps(entry)))
        if self._bearing is not None and bearing is not None:
            numbers = {"elevation": up or 0.0, "bearing": bearing, "range": math.nan if r.range is None else r.range}
            none = np.zeros(0)
            value, one = new("rcl_interfaces/msg/ParameterValue"), new("rcl_interfaces/msg/Parameter")
            params = [
                one(
                    name,
                    value(
                        3, False, 0, n, "", none.astype(np.uint8), none.astype(bool), none.astype(np.int64), none, []
                    ),
                )
                for name, n in numbers.items()
            ]
            self._bearing.write(new(PARAMS)(self._make.header(stamp, self._frames.base), params))

    def _send(self, message: Message) -> None:
        """Transmit the sound that a message requests, for example `{"to": 3, "text": "..."}` (or "hex"), `{"range_to":
        3}` or `{"ping": 25000}` (Hz).
        """
        broker = self.vehicle.broker
        if broker is None:
            raise MalformedMessage("the server is not connected")
        try:
            request = json.loads(message.data)
            if "range_to" in request:
                broker.range_to(int(request["range_to"]))
            elif "ping" in request:
                broker.ping(float(request["ping"]))
            else:
                data = bytes.fromhex(request["hex"]) if "hex" in request else request["text"].encode()
                broker.send(data, int(request.get("to", 0)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError, WaveSimError) as error:
            raise MalformedMessage(f"the signal cannot be transmitted ({type(error).__name__})") from error

    # -- services

    def _serve(self) -> None:
        node, types = self.shared.node, self.shared.node.types
        for verb in VERBS:

            async def control(_: Message, verb: str = verb) -> Message:
                return types.new(f"{TRIGGER}_Response")(*await self._execute_command([verb]))

            node.service(self.layout.topic(verb), TRIGGER, control)

        async def fault(request: Message) -> Message:
            one = types.new("rcl_interfaces/msg/SetParametersResult")
            results = [
                one(*await self._execute_command(["fault", p.name, *p.value.string_value.split()]))
                for p in request.parameters
            ]
            return types.new(f"{PARAMETERS}_Response")(results)

        node.service(self.layout.topic("fault"), PARAMETERS, fault)
        node.reader(self.layout.topic("control"), TEXT, self._on_command_topic)
        if self.layout.acoustics("send"):
            node.reader(self.layout.acoustics("send"), TEXT, self._send)

    def _on_command_topic(self, message: Message) -> None:
        """Execute a command received on a topic, and print the result. The topic serves clients that cannot call
        WaVeSim's services.
        """

        async def later() -> None:
            done, text = await self._execute_command(message.data.split())
            self.vehicle.options.report(
                f"{message.data!r}: {'done' if done else 'not done'}{f' ({text})' if text else ''}"
            )

        self.shared.node.start_task(later())

    async def _execute_command(self, words: Sequence[str]) -> tuple[bool, str]:
        """Execute `start`, `pause`, `stop`, or `fault PART[.FIELD] KIND [AMOUNT]`. Return whether the command
        succeeded, and the server's text.
        """
        broker = self.vehicle.broker
        if broker is None:
            return False, "the server is not connected"
        try:
            match words:
                case [verb] if verb in VERBS:
                    request = broker.control(verb)
                case ["fault", part, kind, *amount] if len(amount) < 2:
                    name, _, field = self._part(part)
                    request = broker.fault(name, kind, float(*amount), field=field)
                case _:
                    return False, "unknown command: use start, pause, stop, or fault PART[.FIELD] KIND [AMOUNT]"
            return True, await broker.wait(request)
        except (WaveSimError, ValueError) as error:
            return False, str(error)

    def _part(self, part: str) -> tuple[str, str, str]:
        """Split PART[.FIELD] at the dot, and convert the ROS spelling of an actuator or sensor to its name, such as
        rudder_top to rudder-top.
        """
        name, dot, field = part.partition(".")
        known = [*(i.name for i in self._suite), *(a.name for a in self._actuators)]
        return next((k for k in known if k == name), next((k for k in known if legal(k) == name), name)), dot, field


async def run_vehicles(seats: Sequence[BridgeOptions], loaded: LoadedConfig, wishes: Ros2Options) -> None:
    """Run vehicles as one node until the simulation ends."""
    layouts = [TopicLayout.find(wishes.layout, seat.vehicle) for seat in seats]
    first = seats[0]
    drops = BridgedVehicle(first)
    node = DdsNode(
        MessageTypes(wishes.distro, layouts[0].actuator_fields),
        f"wavesim_{legal(first.vehicle)}",
        wishes.domain,
        first.report,
        drops.count_dropped,
    )
    try:
        clock = Ros2Clock(node, wishes.clock, wishes.wall, round(first.period * 1e9))
        shared = SharedNode(node, clock, StaticTransforms(node), node.writer("/tf", TF))
        bridges = [Ros2Bridge(*one, shared, loaded, wishes) for one in zip(seats, layouts, strict=True)]
        beat = asyncio.create_task(clock.repeat())
        doctor = asyncio.create_task(
            check_discovery(node.participant, wishes.domain, lambda: node.met_participant, first.report)
        )
        try:
            async with asyncio.TaskGroup() as group:
                for one in bridges:
                    group.create_task(one.run())
        finally:
            beat.cancel()
            doctor.cancel()
            await node.finish(FAREWELL_S)
    finally:
        node.close()
