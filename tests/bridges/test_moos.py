"""MOOS byte by byte, its variables, and vehicles controlled by a stand-in for a MOOS-IvP community."""

from __future__ import annotations

import math
import random
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.bridges import moosdb
from tests.bridges.moosdb import App, Database, helm
from tests.bridges.program import Program
from tests.conftest import Server
from wavesim_bridges import moos_acoustics, moos_codec
from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.moos import MoosActuators, SensorVariables, altitude_of, command, navigation
from wavesim_bridges.moos_codec import MoosMessage, MoosReader, MoosWriter
from wavesim_bridges.servo_outputs import ServoOutput
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.frames import quaternion, rotation
from wavesim_sdk.sensors import sensor_table_of, value_fields
from wavesim_sdk.wire.items import ActuatorDescription, FieldDescription, Reception, SensorDescription
from wavesim_sdk.wire.state import Layout, Sensors, Value
from wavesim_world.config import LoadedConfig

pytestmark = pytest.mark.xdist_group("moos")

# -- bytes -----------------------------------------------------------------------------------------------


def test_a_packet_to_the_byte() -> None:
    """A notification of NAV_X = 1.5 at 2 s by an app `a`."""
    text = (
        "45000000 01000000 00  3c000000 ffffffff 4e 44  01000000 61  00000000  00000000  05000000 4e41565f58"
        "  0000000000000040 000000000000f83f 0000000000000000  00000000"
    )
    data = bytes.fromhex(text.replace(" ", ""))
    assert MoosWriter("a").packet(MoosMessage("N", "NAV_X", 1.5, 2.0)) == data
    assert moos_codec.parse_packet(data) == [MoosMessage("N", "NAV_X", 1.5, 2.0, "a")]
    hello = MoosWriter("me").greeting(0.0)
    assert hello[:32] == moosdb.HELLO and moosdb.unpacked(hello[32:])[0][:3] == ("i", "asynchronous", "me")


def test_every_value_comes_back_however_it_is_cut() -> None:
    messages = [MoosMessage("N", "K", v, 1.0, "me", "b", "c", 3.0) for v in (1.5, math.inf, "text, ü", "", b"\0\xff")]
    data = moos_codec.packed(messages) + moos_codec.packed([]) + moosdb.packet(moosdb.message("N", "X", "y", "z", 4.0))
    for size in (1, 3, 50, 1000):
        reader, found = MoosReader(), []
        for at in range(0, len(data), size):
            found += reader.feed(data[at : at + size])
        assert found == [*messages, MoosMessage("N", "X", "y", 4.0, "z", second=0.0)]


def test_what_is_no_packet() -> None:
    good = moosdb.packet(moosdb.message("N", "X", 1.0))

    def reason(data: bytes) -> str:
        with pytest.raises(MalformedMessage) as caught:
            list(MoosReader().feed(data))
        return str(caught.value)

    def changed(at: int, value: int) -> bytes:
        return good[:at] + struct.pack("<i", value) + good[at + 4 :]

    assert reason(changed(0, 8)) == reason(changed(0, -1)) == reason(changed(0, 1 << 30)) == "length of a packet"
    assert reason(changed(4, 2)) == "number of messages" and reason(good[:8] + b"\1" + good[9:]) == "compressed"
    assert reason(changed(9, 5)) == "length of a message" and reason(changed(19, 1 << 20)) == "truncated" == reason(
        changed(19, -5)
    )
    assert reason(good[:18] + b"?" + good[19:]) == "type of a value"
    assert list(MoosReader().feed(good[:-1])) == [] == list(MoosReader().feed(b""))


def test_any_bytes_are_refused_by_name() -> None:
    dice = random.Random(7)
    good = moosdb.packet(*(moosdb.message("N", "X" * n, v) for n, v in ((1, 1.0), (4, "text"), (9, ""))))
    for _ in range(4000):
        data = bytearray(good)
        for _ in range(dice.randrange(1, 5)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            list(MoosReader().feed(bytes(data)))
        except MalformedMessage as unusable:
            assert str(unusable) in (
                "truncated",
                "length of a packet",
                "length of a message",
                "number of messages",
                "compressed",
                "type of a value",
            )


# -- variables -------------------------------------------------------------------------------------------


def test_navigation() -> None:
    """Heading 350 degrees, nose up, drifting to the east."""
    q = quaternion(0.1, 0.2, math.radians(-10.0))
    flow = np.array([0.0, 0.5, 0.0])
    motion = VehicleMotion(
        1.0, np.array([10.0, -20.0, 3.0]), rotation(q) @ (1.5, 0.0, 0.0) + flow, q, np.zeros(3), np.zeros(3)
    )
    nav = navigation(motion, (1.5, 0.0, 0.0), WorldOrigin(41.0, -8.0), 12.0)
    assert (nav["NAV_X"], nav["NAV_Y"], nav["NAV_Z"], nav["NAV_DEPTH"], nav["NAV_ALTITUDE"]) == (
        -20.0,
        10.0,
        -3.0,
        3.0,
        12.0,
    )
    assert nav["NAV_HEADING"] == pytest.approx(350.0) and nav["NAV_YAW"] == pytest.approx(math.radians(10.0))
    assert nav["NAV_PITCH"] == pytest.approx(0.2) and nav["NAV_SPEED"] == 1.5
    ahead = 1.5 * math.cos(0.2)
    north, east = ahead * math.cos(math.radians(10.0)), -ahead * math.sin(math.radians(10.0)) + 0.5
    assert nav["NAV_SPEED_OVER_GROUND"] == pytest.approx(math.hypot(north, east))
    assert nav["NAV_HEADING_OVER_GROUND"] == pytest.approx(math.degrees(math.atan2(east, north)) % 360.0)
    assert (nav["NAV_LAT"], nav["NAV_LONG"]) == pytest.approx((41.0 + 10.0 / 111042.0, -8.0 - 20.0 / 84137.0), abs=2e-8)
    still = VehicleMotion(0.0, np.zeros(3), np.zeros(3), q, np.zeros(3), np.zeros(3))
    nav = navigation(still, (0.0, 0.0, 0.0), WorldOrigin(41.0, -8.0), None)
    assert nav["NAV_HEADING_OVER_GROUND"] == pytest.approx(350.0) and "NAV_ALTITUDE" not in nav


def actuators(*names: str) -> list[ActuatorDescription]:
    kinds = {"propeller": ("N", -6.0, 12.0), "port": ("rev/s", -50.0, 50.0), "starboard": ("rev/s", -50.0, 50.0)}
    return [ActuatorDescription(k, n, 0, *kinds.get(n, ("rad", -0.4, 0.4))) for k, n in enumerate(names)]


AUV = ("propeller", "rudder-top", "rudder-bottom", "plane-port", "plane-starboard")
T, R, E = "DESIRED_THRUST", "DESIRED_RUDDER", "DESIRED_ELEVATOR"


@pytest.mark.parametrize(
    ("names", "desired", "commands"),
    [
        (AUV, {T: 50.0}, [3.0, 0, 0, 0, 0]),
        (AUV, {T: -50.0, R: 100.0}, [-1.5, -0.4, -0.4, 0, 0]),
        (AUV, {T: 500.0, R: -25.0, E: 10.0}, [12.0, 0.1, 0.1, -math.radians(10.0), -math.radians(10.0)]),
        (AUV, {E: -90.0}, [0, 0, 0, 0.4, 0.4]),
        (AUV, {}, [0, 0, 0, 0, 0]),
        (("propeller", "rudder", "stern-plane"), {R: 50.0, E: 10.0}, [0, 0.2, math.radians(10.0)]),
        (("rudder", "propeller"), {R: 50.0, T: 100.0}, [-0.2, 12.0]),
        (("port", "starboard"), {T: 40.0, R: 20.0}, [30.0, 10.0]),
        (("port", "starboard"), {T: 90.0, R: 50.0}, [50.0, 20.0]),
        (("port", "starboard"), {T: 40.0, "DESIRED_THRUST_L": -50.0}, [-25.0, 0.0]),
    ],
)
def test_what_is_desired(names: tuple[str, ...], desired: dict[str, float], commands: list[float]) -> None:
    assert MoosActuators({}, actuators(*names)).commands(desired) == pytest.approx(commands)


def test_outputs_of_ones_own() -> None:
    moves = MoosActuators({T: [ServoOutput("port"), ServoOutput("starboard", -1.0)]}, actuators("port", "starboard"))
    assert moves.commands({T: 100.0, R: 50.0}) == [50.0, -50.0]
    with pytest.raises(BrokerError, match="no actuator 'prot'; did you mean 'port'"):
        MoosActuators({T: [ServoOutput("prot")]}, actuators("port"))
    with pytest.raises(BrokerError, match=r"no preset fits this vehicle: .*DESIRED_THRUST=engine"):
        MoosActuators({}, actuators("engine"))


def described(number: int, kind: str) -> SensorDescription:
    fields = [FieldDescription(f.name, f.unit, math.prod(f.shape)) for f in value_fields(sensor_table_of(kind))]
    return SensorDescription(number, f"my-{kind}", kind, 100_000_000, fields)


def test_readings() -> None:
    carried = [described(0, "ahrs"), described(1, "echosounder")]
    ahrs = Value(Layout(carried[0]), 5, tuple(0.5 * k for k in range(Layout(carried[0]).count)))
    sounder = Value(Layout(carried[1]), 6, (12.0,) * Layout(carried[1]).count)
    readings = SensorVariables(carried)
    found = readings.new(Sensors({"my-ahrs": ahrs, "my-echosounder": sounder}))
    assert found["MY_AHRS_ROLL"] == ahrs.roll and found["MY_ECHOSOUNDER_RANGE"] == 12.0
    assert found["MY_AHRS_RATES"] == ",".join(f"{r:.9g}" for r in ahrs.rates)
    assert readings.new(Sensors({"my-ahrs": ahrs})) == {}
    assert altitude_of(carried, Sensors({"my-echosounder": sounder})) == 12.0
    assert altitude_of(carried, Sensors({"my-ahrs": ahrs})) is None
    lost = Value(Layout(carried[1]), 7, (math.nan,) * Layout(carried[1]).count)
    assert (
        readings.new(Sensors({"my-echosounder": lost})) == {}
        and altitude_of(carried, Sensors({"my-echosounder": lost})) is None
    )


# -- sound -----------------------------------------------------------------------------------------------


class Transducer:
    """Says what it was asked for."""

    def ping(self, frequency: float) -> Any:
        return "ping", frequency

    def send(self, payload: bytes, to: int = 0) -> Any:
        return "send", payload, to

    def range_to(self, address: int) -> Any:
        return "range", address


NODE = 'src_node=a,dest_node=Bob,var_name=FOO,string_val="x=1,y=2",string_val_quoted=true'


@pytest.mark.parametrize(
    ("variable", "text", "asked"),
    [
        ("BRS_RANGE_REQUEST", "name=a,id=5", ("range", 5)),
        ("BRS_RANGE_REQUEST", "frequency = 25000", ("ping", 25000.0)),
        ("ACOUSTIC_SEND", 'to=7,text="one, two"', ("send", b"one, two", 7)),
        ("ACOUSTIC_SEND", "hex=00ff", ("send", b"\0\xff", 0)),
        ("NODE_MESSAGE_LOCAL", NODE, ("send", NODE.encode(), 0)),
    ],
)
def test_requests(variable: str, text: str, asked: tuple[Any, ...]) -> None:
    assert moos_acoustics.request(variable, text)(Transducer()) == asked


@pytest.mark.parametrize(
    ("variable", "text", "reason"),
    [
        ("BRS_RANGE_REQUEST", "id=x", "invalid number in a request"),
        ("BRS_RANGE_REQUEST", "id=-1", "invalid number in a request"),
        ("BRS_RANGE_REQUEST", "frequency=nan", "invalid number in a request"),
        ("BRS_RANGE_REQUEST", "", "range target missing"),
        ("ACOUSTIC_SEND", "to=5", "nothing to send"),
        ("ACOUSTIC_SEND", "hex=0g", "nothing to send"),
        ("ACOUSTIC_SEND", "text=", "nothing to send"),
        ("ACOUSTIC_SEND", "text=" + "x" * 300, "too long for a packet"),
        ("ACOUSTIC_SEND", "to=500,text=x", "invalid number in a request"),
        ("NODE_MESSAGE_LOCAL", "hello", "invalid node message"),
    ],
)
def test_requests_that_are_none(variable: str, text: str, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        moos_acoustics.request(variable, text)


def test_what_is_heard() -> None:
    answer = Reception(1, 2, 3, 3, 0, 5, 1, 25003.2, 120.0, 14.2, 123.4567, math.radians(90.0), 0.0)
    found = moos_acoustics.reception_variables(answer, "lauv", 17.5)
    assert found["BRS_RANGE_REPORT"] == "vname=lauv,range=123.457,id=5,time=17.500"
    assert moos_acoustics.pairs(found["ACOUSTIC_HEARD"]) == {
        "time": "17.500",
        "kind": "range reply",
        "from": "5",
        "to": "1",
        "code": "0",
        "frequency": "25003.2",
        "level": "120.0",
        "snr": "14.2",
        "range": "123.457",
        "azimuth": "90.00",
        "elevation": "0.00",
    }

    def packet(payload: bytes) -> dict[str, str]:
        return moos_acoustics.reception_variables(
            Reception(1, 2, 0, 1, 0, 5, 0, 25e3, 1.0, 1.0, payload=payload), "bob", 0.0
        )

    assert packet(NODE.encode())["NODE_MESSAGE"] == NODE, "names are compared without regard to case"
    assert "NODE_MESSAGE" not in packet(NODE.replace("Bob", "eve").encode()) and "NODE_MESSAGE" not in packet(b"hello")
    assert packet(b"a,b")["ACOUSTIC_HEARD"].endswith('text="a,b"') and packet(b"\xff")["ACOUSTIC_HEARD"].endswith(
        "hex=ff"
    )
    pulse = moos_acoustics.reception_variables(Reception(1, 2, 3, 0, 0, 0, 0, 27512.0, 1.0, 1.0, 50.0), "bob", 0.0)
    assert ",id=27.5kHz," in pulse["BRS_RANGE_REPORT"]


# -- flown -----------------------------------------------------------------------------------------------

SPEED = 4.0
WORLD = """<time step="25 ms"/><world latitude="41.18 deg" longitude="-8.7 deg"><bed depth="40 m"/>
<current north="0.1 m/s" east="-0.05 m/s"/></world><acoustics/><network takeover="yes" keepalive_timeout="60 s"/><fleet>
<vehicle name="lauv" model="lauv" position="0 0 3 m" attitude="0 0 45 deg" client="optional" watchdog="20 s"><transducer><modem address="1"/></transducer></vehicle>
<vehicle name="boat" model="otter" position="0 30 0 m" client="optional"/></fleet>"""


class Bridge(Program):
    """The command."""

    def __init__(self, server: Server, vehicle: str, database: int) -> None:
        where = ["--port", str(server.port), "--db", f"127.0.0.1:{database}", "--silence", "3"]
        super().__init__("bridge", "moos", "--vehicle", vehicle, *where, "--latitude", "41.18", "--longitude", "-8.7")


@pytest.fixture
def ends() -> Iterator[list[Callable[[], object]]]:
    """What has to be ended, come what may."""
    found: list[Callable[[], object]] = []
    yield found
    for end in reversed(found):
        end()


def until(condition: Callable[[], object], seconds: float = 90.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "timed out"
        time.sleep(0.02)


@pytest.mark.system
def test_a_helm_flies_an_auv_and_a_boat(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], ends: list[Callable[[], object]]
) -> None:
    """Four times as fast as real time, time warp 4. The AUV goes through points at a depth; its helm is killed and comes back, its
    MOOSDB is killed and comes back, its bridge is killed and comes back; values of no use meanwhile. The boat has two thrusters
    and is asked for thrust and rudder; nothing of this disturbs it."""
    server = serve(config(WORLD).path, "--speed", str(SPEED))
    sea, harbour = Database(warp=SPEED), Database(warp=SPEED, community="boat")
    lauv, boat = Bridge(server, "lauv", sea.port), Bridge(server, "boat", harbour.port)
    ends += [sea.die, harbour.die, lauv.kill, boat.kill]
    points = [(10.0, 12.0), (24.0, 8.0), (60.0, 12.0)]
    until(lambda: sea.clients() and harbour.clients())
    server.send("start")
    ferry = helm([(45.0, 8.0), (60.0, 0.0)], None, thrust=60.0)
    ferryman = App(harbour, ferry)
    pilot = helm(points, 4.0, thrust=90.0, radius=5.0)
    first = App(sea, pilot)
    ends += [ferryman.die, first.die]
    truth = SharedState(server.name)
    row = truth.row("lauv")

    def propeller() -> float:
        return float(truth.table("actuation").snapshot()[1]["actual"][row][0])

    # The helm dies: the vehicle stands. What the MOOSDB remembers of it moves nobody.
    until(lambda: len(pilot.left) == 2 and propeller() > 3.0)  # type: ignore[attr-defined]
    first.die()
    until(lambda: abs(propeller()) < 0.1)
    for value in (math.nan, math.inf, "fast"):
        sea.post(T, value)
    sea.post("NAV_X", "here")
    sea.post(T, 100.0, stamp=(time.time() - 60.0) * SPEED)
    sea.post("ACOUSTIC_SEND", "to=x")
    sea.post("ACOUSTIC_SEND", 5.0)
    # A MOOSDB talks nonsense; then it is killed, and another comes at its port.
    reports = sea.counts["NAV_X"]
    sea.raw(b"\xff" * 40)
    until(lambda: not sea.clients())
    until(lambda: sea.clients() == ["wavesim_lauv"] and sea.counts["NAV_X"] > reports + 10)
    assert abs(propeller()) < 0.1
    sea.die()
    until(lambda: not sea.clients())
    again = Database(sea.port, SPEED)
    ends.append(again.die)
    until(lambda: "wavesim_lauv" in again.clients())
    second = App(again, pilot)
    ends.append(second.die)
    until(lambda: propeller() > 3.0)
    again.post("ACOUSTIC_SEND", "text=hello")
    until(lambda: len(pilot.left) == 1)  # type: ignore[attr-defined]
    # The bridge dies in mid-mission.
    before = len(second.track)
    lauv.kill()
    until(lambda: not [c for c in again.clients() if c.startswith("wavesim")])
    later = Bridge(server, "lauv", sea.port)
    ends.append(later.kill)
    until(lambda: not pilot.left and not ferry.left)  # type: ignore[attr-defined]
    server.send("pause")
    for app in (ferryman, first, second):
        assert app.error is None
    assert not sea.errors + again.errors + harbour.errors and not again.refused
    track = np.array(second.track)
    assert track[before:, 0].min() > 15.0, "the new bridge took the vehicle over where it was"
    nearest = np.argmin(np.hypot(*(track[:, :2] - points[-1]).T))
    assert np.hypot(*(track[nearest, :2] - points[-1])) < 5.0
    assert abs(track[nearest, 2] - 4.0) < 0.3, "on the way it keeps its depth"
    place = truth.snapshot().state[row]["p_WB_W"]

    def navigation_is_right() -> bool:
        nav = [again.values[f"NAV_{v}"][0] for v in ("Y", "X", "DEPTH")]
        return nav == pytest.approx(place, abs=0.15)

    until(navigation_is_right)  # it receives the truth
    said = lauv.said
    for text in (
        "to the community 'lauv', time warp 4",
        "no new desired values",
        f"dropped: {T} is not a number\n",
        "dropped: invalid number in a request\n",
        "dropped: ACOUSTIC_SEND is not a string\n",
        "dropped: length of a packet\n",
        "connection to the MOOSDB lost",
        "waiting for a MOOSDB",
    ):
        assert text in said, said
    assert "Traceback" not in said + later.end()
    undisturbed = boat.end()
    assert undisturbed.count("to the community 'boat'") == 1 and "dropped" not in undisturbed, undisturbed


@pytest.mark.system
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--db", "x"), "invalid address 'x'; write HOST:PORT"),
        (("--output", "NAV_X=port"), "invalid output 'NAV_X=port'; write VARIABLE=ACTUATOR"),
        ((), "the world's origin is missing"),
    ],
)
def test_mistakes(options: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(command, ["--vehicle", "lauv", *options])
    assert result.exit_code != 0 and message in str(result.exception)
