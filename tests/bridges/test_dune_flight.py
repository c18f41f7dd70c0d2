"""An aircraft that DUNE flies over IMC: by demands of its guidance, by servos, and what happens when DUNE falls silent."""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

from tests.bridges.dune import Asked, Bridge, Dune, State, opened, until
from tests.conftest import Server
from tests.nursery import launch
from wavesim_bridges import dune_flight, imc
from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.dune_vehicle import THRUSTERS, ImcActuators, ReferencePoint, estimated_state
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.imc_codec import ImcMessage
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.attach import SharedState
from wavesim_sdk.frames import euler, quaternion, rotation
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig, library

pytestmark = pytest.mark.xdist_group("dune")
ACTUATORS = [
    ActuatorDescription(k, a.name, int(a.kind), a.unit, a.minimum, a.maximum)
    for k, a in enumerate(actuators_of(library()["aerosonde"]))
]


def motion(height: float = 100.0, roll: float = 0.0, speed: float = 25.0) -> VehicleMotion:
    return VehicleMotion(
        0.0,
        np.array([0.0, 0.0, -height]),
        np.array([speed, 0.0, 0.0]),
        quaternion(roll, 0.05, 0.0),
        np.zeros(3),
        np.zeros(3),
    )


def test_demands_of_the_guidance() -> None:
    """Heading or roll, height and speed move the right surfaces to the right side; actuators end it; nonsense is dropped."""
    flight = dune_flight.DuneFlight(ACTUATORS)
    names = [a.name for a in ACTUATORS]

    def asked(*messages: ImcMessage, at: VehicleMotion | None = None, speed: float = 25.0) -> dict[str, float]:
        assert all(flight.handle(m) for m in messages)
        found = dict(zip(names, flight.commands(at or motion(), speed), strict=True))
        return {name: float(value) for name, value in found.items() if value is not None}

    level = asked(imc.DesiredHeading(0.0), imc.DesiredZ(100.0, 3), imc.DesiredSpeed(25.0, 0))
    assert set(level) == set(names) and abs(level["aileron"]) < 0.01
    assert asked(imc.DesiredHeading(0.5))["aileron"] > 0.1 > -0.1 > asked(imc.DesiredHeading(-0.5))["aileron"]
    assert asked(imc.DesiredRoll(0.4))["aileron"] > 0.1
    assert asked(imc.DesiredHeading(0.0), imc.DesiredZ(150.0, 3))["elevator"] < level["elevator"], "nose up"
    assert asked(imc.DesiredZ(-150.0, 1))["elevator"] < level["elevator"], "a depth of -150 m is a height of 150 m"
    assert asked(imc.DesiredZ(100.0, 2), imc.DesiredSpeed(30.0, 0))["propeller"] > level["propeller"] + 5.0
    assert not flight.handle(imc.SetServoPosition(0, 0.1))
    for bad in (
        imc.DesiredZ(5.0, 0),
        imc.DesiredSpeed(50.0, 2),
        imc.DesiredHeading(math.nan),
        imc.DesiredRoll(math.inf),
    ):
        with pytest.raises(MalformedMessage):
            flight.handle(bad)


def test_servos_of_an_aircraft() -> None:
    moves = ImcActuators(THRUSTERS, dune_flight.SERVOS, ACTUATORS)
    assert dune_flight.is_aircraft(ACTUATORS) and not dune_flight.is_aircraft(ACTUATORS[:2])
    assert moves.command(imc.SetServoPosition(0, -0.2)) == (1, -0.2)
    assert moves.command(imc.SetServoPosition(2, 9.0)) == (3, ACTUATORS[3].maximum)
    assert moves.command(imc.SetThrusterActuation(0, 0.5)) == (0, 60.0)
    assert moves.command(imc.SetThrusterActuation(0, -1.0)) == (0, 0.0)


def test_the_altitude_of_an_aircraft() -> None:
    reference = ReferencePoint(WorldOrigin(0.0, 0.0))
    flying, swimming = (estimated_state(motion(80.0), reference, flies) for flies in (True, False))
    assert (flying.alt, flying.depth, flying.z) == (80.0, 0.0, -80.0) and swimming.alt == -1.0


WORLD = """<time step="4 ms"/><world latitude="41.18 deg" longitude="-8.7 deg"><bed depth="40 m"/>
<wind speed="4 m/s" direction="90 deg"/></world><fleet>
<vehicle name="uav" model="aerosonde" position="0 0 -100 m" speed="25 m/s" client="optional">
<sensors><anemometer rate="25 Hz"/></sensors></vehicle></fleet>"""


@pytest.mark.system
def test_an_aircraft_flown_by_dune(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    """It circles until DUNE demands a heading, a height and a speed; then it flies there. When DUNE is killed, it circles on.
    DUNE receives the airspeed; Neptus sees a UAV at its altitude."""
    path = config(WORLD).path
    server = serve(path, "--speed", "4")
    demands = (
        (400, struct.pack("<d", 1.0)),
        (401, struct.pack("<fB", 130.0, 3)),
        (402, struct.pack("<dB", 27.0, 0)),
    )
    dune = Dune(0)
    with contextlib.ExitStack() as at_end:
        neptus = at_end.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        neptus.bind(("127.0.0.1", 0))
        neptus.settimeout(20.0)
        emulators = launch("emulate", "all", path, "-s", server.name, stderr=subprocess.DEVNULL)
        at_end.callback(emulators.wait, 20)
        at_end.callback(emulators.terminate)
        at_end.enter_context(dune)
        announce = "--announce", str(neptus.getsockname()[1])
        bridge = at_end.enter_context(Bridge(server, "uav", dune.port, "--origin", "41.18,-8.7", *announce))
        dune.bridge = ("127.0.0.1", bridge.port)
        server.send("start")
        truth = SharedState(server.name)

        def state() -> tuple[float, float, float]:
            """Roll, course over ground and height."""
            s = truth.snapshot().state[truth.row("uav")]
            v = rotation(s["q_WB"]) @ s["v_WB_B"]
            return float(euler(s["q_WB"])[0]), math.atan2(v[1], v[0]), -float(s["p_WB_W"][2])

        until(lambda: math.radians(12.0) < state()[0] < math.radians(28.0))
        dune.ask = lambda thrust, fins: None  # type: ignore[method-assign]  # it commands no actuator

        def demand(_: State) -> Asked:
            for number, payload in demands:
                dune.say(number, payload)
            return 0.0, []

        dune.pilot = demand
        dune.say(*demands[0])
        dune.start()
        until(lambda: abs(state()[1] - 1.0) < 0.05 and abs(state()[2] - 130.0) < 2.0, 90.0)
        until(lambda: abs(struct.unpack("<d", dune.received[352][-1])[0] - 27.0) < 1.5)
        assert dune.error is None and dune.received[353]
        seen: dict[int, bytes] = {}
        while 350 not in seen or not seen.get(151, b"").startswith(b"\x03\0uav\x04"):  # a UAV, once it has joined
            number, _, payload = opened(neptus.recv(4096))
            seen[number] = payload
        assert struct.unpack("<dd18f", seen[350])[-1] > 70.0, "its altitude"
        dune.die()
        bridge.wait("the aircraft circles")
        until(lambda: math.radians(12.0) < state()[0] < math.radians(28.0))
        assert 120.0 < state()[2] < 140.0
