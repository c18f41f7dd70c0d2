"""ROS 2: bytes against another codec, hashes, layouts, and a clock that never goes back."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cyclonedds.idl import make_idl_struct
from cyclonedds.idl import types as idl

from tests.bridges import ros2
from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.ros2 import body_commands, command, commands, discovery_check
from wavesim_bridges.ros2.bridge import Ros2Clock
from wavesim_bridges.ros2.message_types import ADDED, DISTROS, SERVICES, MessageTypes, dds_name
from wavesim_bridges.ros2.mounted_instrument import FrameNames
from wavesim_bridges.ros2.node import DdsNode, legal
from wavesim_bridges.ros2.sensors import NUMBERS, OUTPUTS
from wavesim_bridges.ros2.topic_layout import TopicLayout, presets
from wavesim_sdk.actuators import ActuatorKind
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_world.actuators import actuators_of
from wavesim_world.config import load
from wavesim_world.config.build import library

USED = sorted(
    {o.type for outputs in OUTPUTS.values() for o in outputs.values()}
    | {
        NUMBERS.type,
        *ADDED,
        "nav_msgs/msg/Odometry",
        "tf2_msgs/msg/TFMessage",
        "rosgraph_msgs/msg/Clock",
        "std_msgs/msg/String",
    }
    | {"rmw_dds_common/msg/ParticipantEntitiesInfo"}
    | {f"{name}_{part}" for name in SERVICES for part in ("Request", "Response")}
)


@pytest.fixture(scope="module")
def types() -> MessageTypes:
    return MessageTypes("jazzy")


# -- bytes -----------------------------------------------------------------------------------------------

SPANS = {
    "int8": 7,
    "uint8": 8,
    "byte": 8,
    "char": 8,
    "int16": 15,
    "uint16": 16,
    "int32": 31,
    "uint32": 32,
    "int64": 63,
    "uint64": 64,
}


def anything(types: MessageTypes, dice: random.Random, kind: Any, what: Any, plain: dict[str, type]) -> tuple[Any, Any]:
    """A random value of a field, for rosbags and for Cyclone's codec."""
    if kind == 2:  # of another type
        made = {f: anything(types, dice, *described, plain) for f, described in types.store.fielddefs[what][1]}
        return types.new(what)(*(a for a, _ in made.values())), plain_type(types, what, plain)(
            **{f: b for f, (_, b) in made.items()}
        )
    if kind == 1:
        name = what[0]
        if name in SPANS:
            signed = name.startswith("int")
            value: Any = dice.randrange(-(2 ** SPANS[name]) if signed else 0, 2 ** SPANS[name])
        elif name == "bool":
            value = dice.random() < 0.5
        elif name == "string":
            value = "".join(dice.choice("abc/_ é°") for _ in range(dice.randrange(12)))
        else:
            value = float(np.float32(dice.gauss(0.0, 100.0))) if name == "float32" else dice.gauss(0.0, 100.0)
        return value, value
    count = what[1] if kind == 3 else dice.randrange(5)
    both = [anything(types, dice, *what[0], plain) for _ in range(count)]
    ours, theirs = [a for a, _ in both], [b for _, b in both]
    if what[0][0] == 1 and what[0][1][0] != "string":
        ours = np.array(ours, {"byte": np.uint8, "char": np.uint8, "bool": np.bool_}.get(what[0][1][0], what[0][1][0]))  # type: ignore[assignment]
    return ours, theirs


def plain_type(types: MessageTypes, name: str, known: dict[str, type]) -> type:
    """The type with Cyclone's own codec."""
    if name not in known:
        ours = types.struct(name)
        fields = {f: plain_field(types, *described, known) for f, described in types.store.fielddefs[name][1]}
        assert list(ours.__annotations__)[-len(fields) :] == list(fields)
        known[name] = make_idl_struct(name.replace("/", "_"), dds_name(name) + "plain", fields)
    return known[name]


def plain_field(types: MessageTypes, kind: Any, what: Any, known: dict[str, type]) -> Any:
    if kind == 2:
        return plain_type(types, what, known)
    if kind == 1:
        other = {"bool": bool, "string": str, "byte": ros2.uint8, "char": ros2.uint8}
        return other.get(what[0]) or getattr(idl, what[0])
    of = plain_field(types, *what[0], known)
    return ros2.array[of, what[1]] if kind == 3 else ros2.sequence[of]  # type: ignore[misc]


@pytest.mark.parametrize("name", USED)
def test_bytes_are_those_of_another_codec(types: MessageTypes, name: str) -> None:
    """Random messages, there and back."""
    dice, known = random.Random(name), dict[str, type]()
    for _ in range(40):
        ours, theirs = anything(types, dice, 2, name, known)
        data = types.packed(ours)
        assert data == theirs.serialize()
        again = types.read(data, name)
        assert types.packed(again) == data and type(again) is type(ours)


def test_declared_by_hand_it_is_the_same(types: MessageTypes) -> None:
    """The stand-in's messages: declared from their definitions, not from the bridge's."""
    found = 0
    for kind in vars(ros2).values():
        if isinstance(kind, type) and issubclass(kind, ros2.IdlStruct) and kind is not ros2.IdlStruct:
            package, word, _, short = ros2.dds(kind).split("::")
            name = f"{package}/{word}/{short.removesuffix('_')}"
            assert ros2.dds(kind) == dds_name(name).replace(".", "::")
            ours, fields = types.struct(name), kind.__dataclass_fields__  # type: ignore[attr-defined]
            assert list(ours.__annotations__)[-len(fields) :] == list(fields), name
            found += 1
    assert found > 30


def test_hashes() -> None:
    """Those that ROS's own packages announce."""
    known = {
        "sensor_msgs/msg/Imu": "7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b",
        "marine_acoustic_msgs/msg/Dvl": "77604ba1b113d1a3",
        "marine_acoustic_msgs/msg/SonarRanges": "f440f02f1adc9535",
    }
    all_types = {distro: MessageTypes(distro) for distro in DISTROS}
    for t in all_types.values():
        for name, start in known.items():
            assert t.hash(name).startswith(f"RIHS01_{start}")
    for name in USED:
        hashes = {d: t.hash(name) for d, t in all_types.items()}
        if name == "sensor_msgs/msg/Range":
            assert hashes.pop("humble") not in hashes.values()
        if name != "rmw_dds_common/msg/ParticipantEntitiesInfo":
            assert len(set(hashes.values())) == 1, name
    assert (
        all_types["humble"].length("rmw_dds_common/msg/Gid") == 24
        and all_types["jazzy"].length("rmw_dds_common/msg/Gid") == 16
    )


def test_a_call_stands_before_its_fields(types: MessageTypes) -> None:
    request = types.new("std_srvs/srv/Trigger_Request")(0)
    data = types.packed_call((7, -2), request)
    assert data == ros2.TriggerRequest(7, -2).serialize() and types.read_call(data, "std_srvs/srv/Trigger_Request")[
        0
    ] == (7, -2)
    reply = types.new("std_srvs/srv/Trigger_Response")(True, "done")
    assert types.packed_call((2**64 - 1, 1), reply) == ros2.TriggerResponse(2**64 - 1, 1, True, "done").serialize()


def test_any_bytes_are_refused_by_name(types: MessageTypes) -> None:
    dice = random.Random(9)
    good = [ros2.Float64MultiArray(ros2.MultiArrayLayout([ros2.Dimension("a", 2, 2)]), [1.0, 2.0]).serialize()]
    good.append(ros2.SetParametersRequest(1, 2, [ros2.Parameter("a", ros2.ParameterValue())]).serialize())
    kinds = [
        "std_msgs/msg/Float64MultiArray",
        "std_msgs/msg/String",
        "std_msgs/msg/Float64",
        "rcl_interfaces/srv/SetParameters_Request",
    ]
    for _ in range(3000):
        data = bytearray(dice.choice(good)[: dice.randrange(200)])
        for _ in range(dice.randrange(4)):
            if data:
                data[dice.randrange(len(data))] = dice.randrange(256)
        name = dice.choice(kinds)
        try:
            types.read_call(bytes(data), name) if "/srv/" in name else types.read(bytes(data), name)
        except MalformedMessage as unusable:
            assert str(unusable) == "not a message of this type"


# -- layouts ---------------------------------------------------------------------------------------------


def load_model(model: str) -> Any:
    return library()[model]


def described(model: str) -> list[ActuatorDescription]:
    return [
        ActuatorDescription(k, a.name, int(a.kind), a.unit, a.minimum, a.maximum)
        for k, a in enumerate(actuators_of(library()[model]))
    ]


def test_presets() -> None:
    assert presets() == ["panisim", "uuv", "vrx", "wavesim"]
    ours = TopicLayout.find("wavesim", "my-auv")
    assert [c.topic for c in ours.commands(described("lauv"))][:2] == [
        "/my_auv/propeller/cmd",
        "/my_auv/rudder_top/cmd",
    ]
    assert ours.command("all") == "/my_auv/actuators/cmd" and ours.odometry == "/my_auv/odom"
    assert ours.frames("dvl-down") == FrameNames(
        "odom", "my_auv/base_link", "my_auv/dvl_down_link", "my_auv/dvl_down_frd", "my_auv/dvl_down_beam"
    )
    assert {t for _, t, _ in ours.outputs("dvl", "dvl-down")} >= {"/my_auv/dvl_down", "/my_auv/dvl_down/twist"}
    assert ours.outputs("leak", "leak")[0][1:] == ("/my_auv/leak", NUMBERS)
    for type_, outputs in OUTPUTS.items():
        assert {name for name, *_ in ours.outputs(type_, "x")} <= set(outputs)
    vrx = {c.topic: c for c in TopicLayout.find("vrx", "wamv").commands(described("wam-v"))}
    assert set(vrx) == {f"/wamv/thrusters/{side}/{what}" for side in ("left", "right") for what in ("thrust", "pos")}
    assert (
        vrx["/wamv/thrusters/left/thrust"].actuator.name == "port"
        and vrx["/wamv/thrusters/left/thrust"].value(9e9) == 2353.0
    )
    assert vrx["/wamv/thrusters/right/pos"].value(0.3) == -0.3, "about the vertical upwards"
    uuv = {c.topic: c for c in TopicLayout.find("uuv", "auv").commands(described("lauv"))}
    assert set(uuv) == {"/auv/thrusters/id_0/input", *(f"/auv/fins/id_{k}/input" for k in range(4))}
    assert uuv["/auv/thrusters/id_0/input"].value(100.0) == pytest.approx(3.1)
    assert uuv["/auv/thrusters/id_0/input"].value(-100.0) == pytest.approx(-3.1) and legal("1-a b") == "_1_a_b"
    shaft = TopicLayout.find("uuv", "auv").commands(described("remus100-fossen"))[0]
    assert shaft.value(2.0 * math.pi) == pytest.approx(1.0)
    assert {ActuatorKind(c.actuator.kind).name for c in uuv.values()} == {"THRUSTER", "FIN"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("odometri = 'x'", "unknown key 'odometri'; did you mean 'odometry'"),
        ("odometry = 3", "'odometry' must be a string in quotes"),
        ("x = ", "Invalid value"),
        ("[sensors]\nimuu = {}", r"\[sensors\] has no key 'imuu'; did you mean 'imu'"),
        ("[sensors]\nimu = 'x'", r"\[sensors\] 'imu' must be an inline table {"),
        ("[sensors]\nimu = { daat = 'x' }", "imu: unknown name 'daat'; did you mean 'data'"),
        (
            "[sensors]\nimu = { data = '{robot}/x' }",
            "allowed placeholders are {vehicle}, {sensor}, {actuator} and {number}",
        ),
        ("[commands]\nfin = { type = 'std_msgs/msg/Float64' }", "fin: topic missing"),
        ("[commands]\nfin = { topic = 'x', type = 'std_msgs/msg/Bool' }", "fin: type must be std_msgs"),
        ("[commands]\nfin = { topic = 'x', sign = 2 }", "fin: sign must be 1 or -1"),
        ("[commands]\nfin = { topic = 'x', unit = 'rpm' }", "fin: unit must be"),
        ("[commands]\nfin = { topic = 'x', rotor_constant = 'a' }", "fin: rotor_constant must be a number"),
        ("frames = 3", "'frames' must be a table"),
    ],
)
def test_layouts_that_are_none(text: str, message: str) -> None:
    with pytest.raises(WaveSimError, match=message):
        TopicLayout(text, "mine.toml", "auv")


def test_thrusts_need_thrusters_that_take_them() -> None:
    with pytest.raises(
        WaveSimError, match=r"vrx.toml: 'port' is commanded in 1/s, but this layout's thrusters expect N"
    ):
        TopicLayout.find("vrx", "boat").commands(described("otter"))
    slow = TopicLayout("[commands]\nthruster = { topic = 'x', unit = 'rad/s' }", "mine.toml", "auv")
    with pytest.raises(WaveSimError, match="this layout uses rad/s: add a rotor_constant above 0"):
        slow.commands(described("lauv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--layout", "vrxx"), "unknown layout 'vrxx'; did you mean 'vrx'"),
        (("--layout", "none.toml"), "cannot read the layout none.toml"),
        (("--distro", "foxy"), "unknown ROS 2 distribution 'foxy'; available: humble, "),
    ],
)
def test_mistakes(config: Callable[..., Any], domain: int, options: tuple[str, ...], message: str) -> None:
    path = str(config('<world/><fleet><vehicle name="auv" model="lauv" position="0 0 1 m"/></fleet>').path)
    with pytest.raises(WaveSimError, match=message):
        command.main(["--vehicle", "auv", "--config", path, "--domain", str(domain), *options], standalone_mode=False)


#: somebody in a domain until its input ends
GUEST = "import sys; from tests.bridges import ros2; node = ros2.Node(int(sys.argv[1])); sys.stdin.read()"

# -- time ------------------------------------------------------------------------------------------------


@pytest.fixture
def domain() -> Iterator[int]:
    yield from ros2.domains()


async def test_the_clock_never_falls(types: MessageTypes, domain: int) -> None:
    """Two vehicles; the run begins anew, and first one of them sees it."""
    node = DdsNode(types, "wavesim", domain, lambda text: None, lambda reason: None)
    ear = ros2.Node(domain, beside=True)
    heard = ear.latest("/clock", ros2.Clock)
    clock = Ros2Clock(node, True, False, 10_000_000)
    writer = clock._writer
    assert writer is not None
    ros2.until(lambda: writer.readers)
    steps = [
        ("a", 10),
        ("b", 10),
        ("a", 20),
        ("b", 20),
        ("a", 30),
        ("a", 10),
        ("b", 30),
        ("b", 10),
        ("a", 20),
        ("b", 20),
    ]
    stamps = []
    for vehicle, ms in steps:
        clock.step(vehicle, ms * 1_000_000)
        stamps.append(clock.stamp(vehicle, ms * 1_000_000) // 1_000_000)
    assert stamps == [10, 10, 20, 20, 30, 40, 30, 40, 50, 50]
    assert clock.stamp("a", 15_000_000) == 45_000_000, "a value from before the last step"
    ros2.until(lambda: len(heard) == 5)
    assert [c.clock.ns // 1_000_000 for c in heard] == [10, 20, 30, 40, 50]
    wall = Ros2Clock(node, True, True, 10_000_000)
    wall.step("a", 20_000_000)
    assert wall._writer is None and wall.stamp("a", 20_000_000) - wall.stamp("a", 15_000_000) == 5_000_000
    ear.close()
    node.close()


async def test_an_answer_waits_for_whoever_called(types: MessageTypes, domain: int) -> None:
    """Discovery may find the reader of a caller after its call: the answer is not lost."""
    node = DdsNode(types, "wavesim", domain, lambda text: None, lambda reason: None)
    caller = ros2.Node(domain, beside=True)

    async def answer(_: Any) -> Any:
        return types.new("std_srvs/srv/Trigger_Response")(True, "done")

    node.service("/start", "std_srvs/srv/Trigger", answer)
    asked = caller.writer("/startRequest", ros2.TriggerRequest, inside="rq")
    ros2.until(lambda: asked.get_matched_subscriptions())
    asked.write(ros2.TriggerRequest(7, 1))
    await asyncio.sleep(0.2)  # it is answered, as far as it goes
    answers = list[Any]()
    caller.read("/startReply", ros2.TriggerResponse, answers.append, inside="rr")
    limit = time.monotonic() + 60.0
    while not answers and time.monotonic() < limit:
        await asyncio.sleep(0.01)
    assert [(t.caller, t.call, t.message) for t in answers] == [(7, 1, "done")]
    caller.close()
    node.close()


async def test_a_node_without_peers_reports_why(
    types: MessageTypes, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody in its domain, but in another; somebody who uses none of its topics; somebody who does: nothing to tell."""
    monkeypatch.setattr(discovery_check, "QUIET_S", 0.0)
    said: list[str] = []
    node = DdsNode(types, "wavesim", domain, said.append, lambda reason: None)

    async def looked() -> str:
        said.clear()
        await discovery_check.check_discovery(node.participant, domain, lambda: node.met_participant, said.append)
        return "".join(said)

    for elsewhere in itertools.islice(ros2.domains(), 1):
        stranger = ros2.Node(elsewhere)
        words = await looked()
        assert f"no other participant in DDS domain {domain} " in words and f"ROS_DOMAIN_ID={domain}" in words
        assert re.search(rf"There may be participants in DDS domain [\d or]*\b{elsewhere}\b", words), words
        stranger.close()
    guest = subprocess.Popen(
        [sys.executable, "-c", GUEST, str(domain)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 60.0
    while "1 other participant is" not in (words := await looked()):
        assert time.monotonic() < limit, words
        await asyncio.sleep(0.05)
    guest.communicate(timeout=20)
    node.writer("/x", "std_msgs/msg/Float64")
    ear = ros2.Node(domain, beside=True)
    ear.latest("/x", ros2.Float64)
    ros2.until(lambda: node.met_participant)
    assert await looked() == ""
    ear.close()
    node.close()


def test_the_example_of_the_page(root: Any) -> None:
    """docs/bridges/ros2.md names a world that there is."""
    page = (root / "docs" / "bridges" / "ros2.md").read_text()
    assert "examples/trials/ros2.xml" in page and load(root / "examples" / "trials" / "ros2.xml").config.fleet.bodies


# -- commands --------------------------------------------------------------------------------------------


class Ears:
    """Takes the place of a node: what would be called is called by the test."""

    def __init__(self) -> None:
        self.take: dict[str, Callable[[Any], None]] = {}

    def reader(self, topic: str, type_: str, take: Callable[[Any], None]) -> None:
        self.take[topic] = take


def test_a_wrench_is_shared_by_the_thrusters() -> None:
    """Forward, left, up: what the thrusters make by their places and directions is what was asked, up to their limits."""
    new = MessageTypes("jazzy").new

    def wrench(*numbers: float) -> Any:
        vectors = (new("geometry_msgs/msg/Vector3")(*numbers[k : k + 3]) for k in (0, 3))
        return new("geometry_msgs/msg/Wrench")(*vectors)

    for name, asked in (("bluerov2", (30.0, -12.0, 8.0, 0.0, 0.0, 2.0)), ("vita1", (10.0, 5.0, -9.0, 1.0, -1.5, 2.0))):
        thrusters = load_model(name).thruster
        shared = body_commands.WrenchAllocator.for_thrusters(thrusters, described(name))
        assert shared is not None
        for factor in (1.0, 1e3):
            given = shared.thrusts(wrench(*(factor * x for x in asked)))
            made = np.zeros(6)
            for k, t in enumerate(thrusters):
                force = given[k] * np.array(t.direction) / np.linalg.norm(t.direction)
                made += [*force, *np.cross(t.position, force)]
            made *= (1, -1, -1, 1, -1, -1)
            if factor > 1.0:
                assert max(abs(u) / described(name)[k].maximum for k, u in given.items()) == pytest.approx(
                    1.0, abs=0.35
                )
                made *= np.linalg.norm(asked) / np.linalg.norm(made)
            keep = [k for k in range(6) if name == "vita1" or k not in (3, 4)]  # six thrusters do not pitch
            assert made[keep] == pytest.approx(np.array(asked)[keep], abs=0.05 * np.abs(asked).max())
        with pytest.raises(MalformedMessage, match="no number"):
            shared.thrusts(wrench(0.0, math.nan, 0.0, 0.0, 0.0, 0.0))
    for name in ("lauv", "wam-v", "otter"):  # one thruster, engines that swivel, shafts
        assert body_commands.WrenchAllocator.for_thrusters(load_model(name).thruster, described(name)) is None


async def test_commands_count_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller is gone when it is silent by both clocks; each gets a report about commands in another unit."""
    wall = [100.0]
    monkeypatch.setattr(commands.time, "monotonic", lambda: wall[0])
    ears, said = Ears(), list[str]()
    c = commands.CommandTopics(ears, TopicLayout.find("wavesim", "auv"), described("lauv"), 1.0, said.append)  # type: ignore[arg-type]
    assert c.current_commands(0.0) == [0.0] * 5 == c.neutral
    ears.take["/auv/propeller/cmd"](ros2.Float64(0.01))
    ears.take["/auv/plane_port/cmd"](ros2.Float64(0.001))
    assert c.current_commands(0.1) == [0.01, 0.0, 0.0, 0.001, 0.0]
    wall[0] += 5.0
    assert c.current_commands(0.2)[0] == 0.01, "the simulation is slow"
    assert c.current_commands(1.5) == [0.0] * 5 and said == [
        "no commands from the controller; the vehicle continues with neutral outputs"
    ]
    for k in range(120):
        wall[0] += 0.1
        ears.take["/auv/propeller/cmd"](ros2.Float64(0.01))
        c.current_commands(2.0 + 0.1 * k)
    assert len(said) == 2 and said[1].endswith("limits; check that they are in the actuators' units (N, rad)")
    ears.take["/auv/actuators/cmd"](ros2.Float64MultiArray(ros2.MultiArrayLayout(), [99.0, 9.0, -9.0, 0.1, 0.2]))
    limited = c.current_commands(15.0)
    assert (
        limited[0] == 12.0
        and limited[1] == -limited[2] == pytest.approx(math.radians(25.0))
        and limited[3:] == [0.1, 0.2]
    )  # type: ignore[operator]
    assert c.current_commands(1.0) == limited, "a run that begins anew"
    for bad, why in (([1.0] * 4, "4 numbers for 5 actuators"), ([math.inf] * 5, "no number")):
        with pytest.raises(MalformedMessage, match=why):
            ears.take["/auv/actuators/cmd"](ros2.Float64MultiArray(ros2.MultiArrayLayout(), bad))
    with pytest.raises(MalformedMessage, match="no number"):
        ears.take["/auv/propeller/cmd"](ros2.Float64(math.nan))
    assert c.current_commands(1.1) == limited


async def test_a_step_waits_for_all_that_the_controller_uses() -> None:
    ears, said = Ears(), list[str]()
    c = commands.CommandTopics(ears, TopicLayout.find("wavesim", "auv"), described("lauv"), 0.2, said.append)  # type: ignore[arg-type]
    await c.wait_for_commands()  # nobody flies: nobody is waited for
    loop, order = asyncio.get_running_loop(), list[str]()
    for topic in ("/auv/propeller/cmd", "/auv/rudder_top/cmd"):
        ears.take[topic](ros2.Float64(0.1))
    c.current_commands(0.0)
    loop.call_later(0.01, lambda: (order.append("first"), ears.take["/auv/propeller/cmd"](ros2.Float64(0.2))))
    loop.call_later(0.02, lambda: (order.append("second"), ears.take["/auv/rudder_top/cmd"](ros2.Float64(0.2))))
    await c.wait_for_commands()
    assert order == ["first", "second"] and c.current_commands(0.1)[:2] == [0.2, 0.2] and not said
    await c.wait_for_commands()
    assert (
        said == ["no commands from the controller; the vehicle continues with neutral outputs"]
        and c.current_commands(0.2) == c.neutral
    )
