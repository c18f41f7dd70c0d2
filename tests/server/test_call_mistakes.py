"""One exception for each kind of mistake in all classes, in the terms of the caller: never in those of the wire."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from wavesim_sdk.actuators import actuator_index
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import InvalidArgument, UnknownName, WaveSimError
from wavesim_sdk.guidance.control import LineOfSight
from wavesim_sdk.observer import Observer
from wavesim_sdk.wire.items import FieldDescription, SensorDescription
from wavesim_sdk.wire.state import Layout, Sensors, Value
from wavesim_server import Lab

SERVER = ("127.0.0.1", 9)  # nothing is sent there: these calls fail before
CTD = SensorDescription(0, "ctd", "ctd", 10**9, (FieldDescription("temperature", "C", 1),))
SENSORS = Sensors({"ctd": Value(Layout(CTD), 0, (11.5,))})
WIRE = re.compile(r"_ns\b|2\^62|items|join|datagram|nil\b|malformed", re.IGNORECASE)


@pytest.fixture(scope="module")
def lab() -> Lab:
    made = Lab("<wavesim><world><bed depth='100 m'/></world></wavesim>")
    made.enter("lauv", "lauv", (0.0, 0.0, 5.0))
    return made


def broker(**arguments: Any) -> Broker:
    return Broker("lauv", SERVER, **arguments)


UNKNOWN: dict[str, tuple[Callable[[Lab], object], str]] = {
    "body": (lambda lab: lab.states()["lav"], "unknown body 'lav'; did you mean 'lauv'?"),
    "row of a body": (lambda lab: lab.row("lav"), "unknown body 'lav'; did you mean 'lauv'?"),
    "model": (lambda lab: lab.enter("x", "remus10"), "unknown model 'remus10'; did you mean 'remus100'?"),
    "actuator": (lambda lab: lab.commands({"lauv": {"propeler": 1.0}}), "unknown actuator 'propeler'; did you mean"),
    "part that fails": (lambda lab: lab.fail(0, "propeler", "lost"), "'lauv': unknown actuator 'propeler'"),
    "fault": (lambda lab: lab.fail(0, "propeller", "lots"), "'lots' is not an actuator fault; did you mean 'lost'?"),
    "no actuator": (lambda lab: actuator_index((), "x"), "unknown actuator 'x': the body has no actuators"),
    "sensor as an attribute": (lambda lab: SENSORS.cdt, "no valid value for sensor 'cdt'; did you mean 'ctd'?"),
    "sensor as a key": (lambda lab: SENSORS["cdt"], "no valid value for sensor 'cdt'; did you mean 'ctd'?"),
    "field": (lambda lab: SENSORS.ctd.temprature, "'ctd' has no field 'temprature'; did you mean 'temperature'?"),
    "role": (lambda lab: broker(role="captain"), "unknown role 'captain' (available: pilot, instrument, listener)"),
    "actuator of a broker": (lambda lab: broker().command({"propeler": 1.0}), "'lauv' has no actuator 'propeler'"),
    "weather": (lambda lab: broker().weather(wind=1.0), "the weather has no value named 'wind'"),
}
PERIOD = "must be a positive number of seconds, or 0 ("
INVALID: dict[str, tuple[Callable[[Lab], object], str]] = {
    "lockstep below 0": (lambda lab: broker(lockstep=-1), f"lockstep {PERIOD}no lockstep), got -1"),
    "lockstep as text": (lambda lab: broker(lockstep="0.2"), f"lockstep {PERIOD}no lockstep), got '0.2'"),
    "lockstep of NaN": (lambda lab: broker(lockstep=math.nan), f"lockstep {PERIOD}no lockstep), got nan"),
    "state period": (lambda lab: broker(state_period=-0.1), f"state_period {PERIOD}the server's default), got -0.1"),
    "position": (lambda lab: broker(position=(1.0, 2.0)), "position must be 3 finite numbers (m: north, east, down)"),
    "attitude": (lambda lab: broker(attitude="level"), "attitude must be 3 finite numbers (rad: roll, pitch, heading)"),
    "far away": (lambda lab: broker(position=(1e9, 0.0, 0.0)), "position must be within +-1e+06 m"),
    "sensors as text": (lambda lab: broker(sensors="ctd"), 'sensors must be a list of names, such as ["ctd"]'),
    "token": (lambda lab: broker(previous="a"), "previous must be a whole number, got 'a'"),
    "key": (lambda lab: broker(key=b"secret"), "key must be 32 or 64 bytes, got 6 bytes"),
    "name": (lambda lab: Broker("x" * 40, SERVER), "name must be printable text of at most 31 bytes"),
    "server": (lambda lab: Broker("lauv", 9750), 'server must be a name, "HOST:PORT" or (host, port), got 9750'),  # type: ignore[arg-type]
    "frequency": (lambda lab: broker().ping("25 kHz"), "frequency must be a finite number of Hz, got '25 kHz'"),  # type: ignore[arg-type]
    "frequency below 0": (lambda lab: broker().ping(-1.0), "frequency must be a finite number from 0 to 1e+09 (Hz)"),
    "time of a ping": (lambda lab: broker().ping(25e3, at=1.5), "at must be a whole number of ns, got 1.5"),  # type: ignore[arg-type]
    "level": (lambda lab: broker().ping(25e3, "loud"), "level must be a finite number of dB, got 'loud'"),  # type: ignore[arg-type]
    "payload": (lambda lab: broker().send("hello"), "payload must be bytes, got 'hello'; use payload.encode()"),  # type: ignore[arg-type]
    "address": (lambda lab: broker().range_to(-1), "address must be an integer from 0 to"),
    "waypoints": (lambda lab: broker().mission([[1.0, 2.0]]), "waypoints: a mission must have 1 to 4096 waypoints"),
    "force": (lambda lab: broker().push((1.0,)), "force must be 3 finite numbers (N), got (1.0,)"),
    "callback": (lambda lab: broker().on_reception(5), "call must be a function that takes one reception, got 5"),  # type: ignore[arg-type]
    "command": (
        lambda lab: broker().answer("ahead"),
        "command must give values by name or in the order of `actuators`",
    ),  # type: ignore[arg-type]
    "estimate": (
        lambda lab: broker().answer(None, [1.0]),
        "estimate must be an Estimate, or 10 values (numbers or None)",
    ),
    "rate": (lambda lab: Observer("eye", SERVER, rate=-1.0), "rate must be at least 0 frames per second, got -1.0"),
    "center": (lambda lab: Observer("eye", SERVER, center=(0.0,)), "center must be 3 finite numbers"),
    "duration": (lambda lab: lab.run("a minute"), "seconds must be a finite number of s, got 'a minute'"),  # type: ignore[arg-type]
    "ticks": (lambda lab: lab.advance(-1), "invalid number of ticks -1: use 0 or more"),
    "ticks in parts": (lambda lab: lab.advance(0.5), "ticks must be a whole number, got 0.5"),  # type: ignore[arg-type]
    "value of a command": (lambda lab: lab.commands({"lauv": [math.nan]}), "actuator 'propeller': nan is not a valid"),
    "pose": (lambda lab: lab.set_pose(0, (1.0,)), "a position needs 3 numbers, got (1.0,)"),
    "body twice": (lambda lab: lab.enter("lauv", "lauv"), "a body named 'lauv' is already in the simulation"),
    "seed": (lambda lab: Lab(seed=-1), "invalid seed -1: use an integer from 0 to 2**53"),
    "no waypoints": (lambda lab: LineOfSight((), (0.0, 0.0)), "a mission needs at least one waypoint"),
}


@pytest.mark.parametrize("mistake", UNKNOWN)
def test_an_unknown_name_is_one_exception_everywhere(lab: Lab, mistake: str) -> None:
    call, text = UNKNOWN[mistake]
    with pytest.raises(UnknownName) as caught:
        call(lab)
    said = str(caught.value)
    assert text in said and not said.startswith('"') and not WIRE.search(said)
    assert isinstance(caught.value, KeyError) and isinstance(caught.value, InvalidArgument)


@pytest.mark.parametrize("mistake", INVALID)
def test_an_invalid_argument_is_reported_in_the_terms_of_the_caller(lab: Lab, mistake: str) -> None:
    call, text = INVALID[mistake]
    with pytest.raises(InvalidArgument) as caught:
        call(lab)
    said = str(caught.value)
    assert text in said and not WIRE.search(said), said
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, WaveSimError)


def test_a_missing_sensor_is_absent_for_every_way_to_ask() -> None:
    assert SENSORS.get("gps") is None and not hasattr(SENSORS, "gps") and getattr(SENSORS.ctd, "x", 1.0) == 1.0
