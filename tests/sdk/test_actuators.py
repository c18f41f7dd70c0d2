"""Actuators by name: their order, their limits, and valid commands."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.actuators import (
    FIRST_SLOT,
    MAX_ACTUATORS,
    MAX_BALLASTS,
    MAX_FINS,
    MAX_SWIVELS,
    MAX_THRUSTERS,
    Actuator,
    ActuatorKind,
    actuator_index,
    order_command,
    parse_command,
)
from wavesim_sdk.errors import ConfigError
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig, library

LAUV, ODIN = actuators_of(library()["lauv"]), actuators_of(library()["odin"])
BOAT = """<models><model name="m" type="surface"><box length="2 m" width="1 m" height="0.5 m"/><mass value="100 kg"/>
<inertia xx="5" yy="80" zz="81"/><added-mass diagonal="1 1 1 1 1 1"/><linear-drag diagonal="8 9 10 3 4 5"/>{}</model></models>"""
THRUSTER = '<thruster name="{}" position="-1 0 0 m" direction="1 0 0" law="force" minimum="-9" maximum="9" lag="0 s"{}'
FIN = '<fin name="{}" area="0.01 m2" lift_slope="3" limit="30 deg"/>'
TANK = '<ballast name="{}" position="0 0 0 m" minimum="0 kg" maximum="1 kg"/>'


def test_the_order_of_a_model() -> None:
    assert [a.name for a in LAUV] == ["propeller", "rudder-top", "rudder-bottom", "plane-port", "plane-starboard"]
    assert [a.name for a in ODIN] == [
        "port",
        "starboard",
        "port-angle",
        "starboard-angle",
        "port-deflector",
        "starboard-deflector",
    ]
    assert actuators_of(library()["buoy"]) == ()


def test_kinds_units_and_limits() -> None:
    propeller, rudder = LAUV[:2]
    assert propeller == Actuator("propeller", ActuatorKind.THRUSTER, "N", -6.0, 12.0, 0, "N")
    assert (rudder.kind, rudder.unit, rudder.maximum) == (ActuatorKind.FIN, "rad", pytest.approx(math.radians(25)))
    assert (ODIN[0].unit, ODIN[0].actual_unit) == ("", "1/s"), "a motor law maps a share to shaft speed"
    assert [a.rest_value for a in ODIN] == [0.0] * 4 + [1.0] * 2


def test_a_position_by_name_or_number() -> None:
    assert actuator_index(LAUV, "plane-port") == actuator_index(LAUV, 3) == actuator_index(LAUV, "3") == 3
    assert actuator_index(LAUV, np.int64(2)) == 2
    with pytest.raises(ValueError, match=r"unknown actuator 'ruder-top'; did you mean 'rudder-top'\?"):
        actuator_index(LAUV, "ruder-top")
    with pytest.raises(ValueError, match="unknown actuator 5; use 0 to 4"):
        actuator_index(LAUV, 5)
    with pytest.raises(ValueError, match="the body has no actuators"):
        actuator_index((), 0)


@pytest.mark.parametrize("garbage", [-1, 10**30, True, 1.0, None, "", "x" * 10_000, "٣", [], {}, b"0", math.nan])
def test_a_position_from_garbage_is_a_value_error(garbage: Any) -> None:
    with pytest.raises(ValueError) as refused:
        actuator_index(LAUV, garbage)
    assert len(str(refused.value)) < 300


def test_a_command_by_name_or_position() -> None:
    assert order_command(LAUV, {"rudder-top": 0.1, 0: 8}) == [8.0, 0.1, None, None, None]
    assert order_command(LAUV, [8.0, None, np.float64(0.1)]) == [8.0, None, 0.1]
    assert order_command(LAUV, np.array([1.0, 2.0])) == [1.0, 2.0]


@pytest.mark.parametrize(
    "garbage",
    [
        [[[]]],
        [math.nan],
        [math.inf],
        [10**400],
        ["8"],
        [True],
        [b""],
        [{}],
        [1j],
        [1.0] * 6,
        "8",
        b"8",
        8.0,
        None,
        {"propellor": 1.0},
        {"propeller": [1.0]},
        {9: 1.0},
        {None: 1.0},
        iter([1.0]),
        {1.0, 2.0, object()},
    ],
)
def test_a_command_from_garbage_is_a_value_error(garbage: Any) -> None:
    with pytest.raises(ValueError):
        order_command(LAUV, garbage)


def test_a_command_as_it_is_written() -> None:
    assert parse_command(LAUV, "8 0.1") == [8.0, 0.1]
    assert parse_command(LAUV, "rudder-top=0.1 propeller=-2") == [-2.0, 0.1, None, None, None]
    assert parse_command(LAUV, "") == []
    for wrong, why in (
        ("8 propeller=1", "mixes"),
        ("fast", "is not a valid command"),
        ("fan=1", "unknown actuator"),
        ("nan", "is not a valid command"),
    ):
        with pytest.raises(ValueError, match=why):
            parse_command(LAUV, wrong)


def test_slots_have_room_for_all_and_follow_one_another() -> None:
    *own, other = ActuatorKind
    ends = [
        FIRST_SLOT[k] + n
        for k, n in zip(own, (MAX_THRUSTERS, MAX_FINS, MAX_SWIVELS, MAX_SWIVELS, MAX_BALLASTS), strict=True)
    ]
    assert ends == [*(FIRST_SLOT[k] for k in own[1:]), MAX_ACTUATORS]
    assert FIRST_SLOT[other] == FIRST_SLOT[ActuatorKind.BALLAST], "they follow the tanks of their model"
    assert MAX_THRUSTERS >= 12 and MAX_FINS >= 8


def model(config: Callable[..., LoadedConfig], inner: str) -> LoadedConfig:
    return config(BOAT.format(inner))


@pytest.mark.parametrize(
    ("element", "most", "what"),
    [(THRUSTER + "/>", MAX_THRUSTERS, "thrusters"), (FIN, MAX_FINS, "fins"), (TANK, MAX_BALLASTS, "ballast tanks")],
)
def test_one_more_than_there_is_room_for(
    config: Callable[..., LoadedConfig], element: str, most: int, what: str
) -> None:
    names = [f"a{k}" for k in range(most + 1)]
    parts = [element.format(n, "") for n in names]
    assert len(actuators_of(model(config, "".join(parts[:-1])).models["m"])) == most
    with pytest.raises(ConfigError, match=f"{most + 1} {what}; the maximum is {most}"):
        model(config, "".join(parts))


@pytest.mark.parametrize("turns", ["<swivel/>", "<deflector/>"])
def test_only_the_first_thrusters_turn(config: Callable[..., LoadedConfig], turns: str) -> None:
    parts = [
        THRUSTER.format(f"t{k}", "/>" if k < MAX_SWIVELS else f">{turns}</thruster>") for k in range(MAX_SWIVELS + 1)
    ]
    with pytest.raises(ConfigError, match=f"only the first {MAX_SWIVELS} thrusters can have a swivel"):
        model(config, "".join(parts))


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (THRUSTER.format("a", "/>") + FIN.format("a"), "duplicate actuator name 'a'"),
        (THRUSTER.format("a", "><swivel/></thruster>") + FIN.format("a-angle"), "duplicate actuator name 'a-angle'"),
        (FIN.format("7"), "invalid actuator name '7': use 1 to 31 letters, digits, - and _, but not digits alone"),
        (FIN.format("a b"), "invalid actuator name 'a b'"),
        (FIN.format("f" * 32), "use 1 to 31 letters"),
    ],
)
def test_names_of_actuators(config: Callable[..., LoadedConfig], inner: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        model(config, inner)


def test_all_actuators_of_a_model_have_different_slots() -> None:
    for m in library().values():
        slots = [a.slot for a in actuators_of(m)]
        assert len(set(slots)) == len(slots) and max(slots, default=0) < MAX_ACTUATORS
    full = dataclasses.replace(library()["odin"], fin=library()["lauv"].fin)
    assert [a.slot for a in actuators_of(full)] == sorted(a.slot for a in actuators_of(full))
