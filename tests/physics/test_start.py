"""The start of a body: with a velocity, or with a surge speed that its thrusters hold from the first tick on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wavesim_sdk import frames
from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.dynamics import surge_trim
from wavesim_world.config import LoadedConfig, library

WORLD = '<world><current north="0.3 m/s" east="-0.2 m/s"/><bed depth="9000 m"/></world>'


def fleet(model: str, attributes: str, depth: float = 500.0) -> str:
    return (
        f'<time step="20 ms"/>{WORLD}<fleet><vehicle name="v" model="{model}" position="0 0 {depth} m" '
        f'attitude="0 0 40 deg" {attributes}/></fleet>'
    )


def test_a_velocity(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(fleet("lauv", 'velocity="1 0.1 -0.2 m/s" angular_velocity="1 2 3 deg/s"')))
    row = sim.enter("v")
    state = sim.state()[row]
    assert state["v_WB_B"].tolist() == [1.0, 0.1, -0.2], "over ground"
    assert np.allclose(np.degrees(state["w_WB_B"]), [1, 2, 3])


def surge_models() -> list[str]:
    """Models with a thruster that pushes ahead."""
    return [
        n
        for n, m in sorted(library().items())
        if m.thruster
        and m.type != "aircraft"  # tests/physics/test_aircraft.py
        and (m.allocation is not None or any(t.direction[0] > 0.3 for t in m.thruster))
    ]


@pytest.mark.parametrize("model", surge_models())
def test_the_speed_is_an_equilibrium(config: Callable[..., LoadedConfig], model: str) -> None:
    afloat, speed = (
        library()[model].type == "surface",
        3.0 if model.startswith("odin") else 0.8,
    )  # its jets idle with 800 N
    sim = Simulation(config(fleet(model, f'speed="{speed} m/s"', 0.0 if afloat else 500.0)))
    row = sim.enter("v")
    state, found = sim.state()[row], sim.results.effort()[row]
    assert np.allclose(state["v_FB_B"], [speed, 0.0, 0.0], atol=1e-12), "through the water"
    rotation = frames.rotation(state["q_WB"])
    assert np.allclose(rotation @ state["v_WB_B"] - rotation @ [speed, 0, 0], [0.3, -0.2, 0.0], atol=1e-12)
    drag = abs(float(found["drag"][0]))
    assert drag > 0.1
    assert abs(found["actuators"][0] + found["drag"][0]) < 1e-6 * drag, "thrust is drag"
    others = found["restoring"][0] + found["environment"][0]
    assert abs(found["total"][0] - others) < 1e-6 * drag, "nothing else pushes along the hull"
    table = sim.actuation()[row]
    assert np.array_equal(table["command"], table["actual"]), "the actuators are there already"


def test_it_goes_on_at_that_speed(config: Callable[..., LoadedConfig]) -> None:
    """Kept to surge, so that nothing but thrust and drag acts on it."""
    import dataclasses

    loaded = config(fleet("remus100", 'speed="1.54 m/s"'))
    model = dataclasses.replace(loaded.models["remus100"], active="u")
    sim = Simulation(dataclasses.replace(loaded, models={"remus100": model}))
    row = sim.enter("v")
    sim.advance(3000)
    assert sim.state()["v_FB_B"][row][0] == pytest.approx(1.54, rel=1e-9)
    assert sim.actuation()["command"][row][0] == pytest.approx(3.86, rel=5e-3), "Prestero: 3.86 N at 1.54 m/s"
    sim.command(row, {"propeller": 0.0})
    sim.advance(500)
    assert sim.state()["v_FB_B"][row][0] < 1.2, "and it takes commands as ever"


def test_astern(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(fleet("bluerov2", 'speed="-0.5 m/s"')))
    row = sim.enter("v")
    found = sim.results.effort()[row]
    assert found["drag"][0] > 0.0 and found["actuators"][0] == pytest.approx(-found["drag"][0], rel=1e-6)
    assert np.abs(found["actuators"][[1, 5]]).max() < 1e-6 * found["drag"][0], "neither sideways nor round"


@pytest.mark.parametrize(
    ("model", "speed", "message"),
    [
        (
            "lauv",
            "5 m/s",
            r"cannot maintain 5 m/s: 'propeller' needs a thrust of 72 N, but its range at that speed is -6 to 12 N",
        ),
        ("sookshma", "1 m/s", "cannot maintain a speed: it has no forward thruster"),
    ],
)
def test_what_cannot_be_held_is_refused(
    config: Callable[..., LoadedConfig], model: str, speed: str, message: str
) -> None:
    loaded = config(fleet(model, f'speed="{speed}" client="optional"', 0.0))
    with pytest.raises(ConfigError, match=message):
        Simulation(loaded)


def test_one_screw_beside_the_middle_cannot_hold_a_course(config: Callable[..., LoadedConfig]) -> None:
    text = """<models><model name="m" type="surface"><box length="2 m" width="1 m" height="0.5 m"/><mass value="100 kg"/>
    <inertia xx="5" yy="80" zz="81"/><added-mass diagonal="1 1 1 1 1 1"/><linear-drag diagonal="80 90 100 30 40 50"/>
    <thruster name="t" position="-1 0.4 0 m" direction="1 0 0" law="force" minimum="-900" maximum="900" lag="0.3 s"/></model></models>"""
    loaded = config(fleet("m", 'speed="1 m/s" client="optional"', 0.0) + text)
    with pytest.raises(ConfigError, match="cannot maintain a straight course at 1 m/s"):
        Simulation(loaded)


def test_two_screws_of_unequal_lever_share_the_thrust(config: Callable[..., LoadedConfig]) -> None:
    text = """<models><model name="m" type="surface"><box length="2 m" width="1 m" height="0.5 m"/><mass value="100 kg"/>
    <inertia xx="5" yy="80" zz="81"/><added-mass diagonal="1 1 1 1 1 1"/><linear-drag diagonal="80 90 100 30 40 50"/>
    <thruster name="a" position="-1 0.4 0 m" direction="1 0 0" law="shaft" minimum="-90" maximum="90" lag="0.3 s"
     coefficients="0 1 -0.5" dead_band="0.5"/>
    <thruster name="b" position="-1 -0.2 0 m" direction="1 0 0" law="shaft" minimum="-1" maximum="1" lag="0.3 s"
     coefficients="0 1 0" motor="1 50"/></model></models>"""
    sim = Simulation(config(fleet("m", 'speed="1 m/s"', 0.0) + text))
    row = sim.enter("v")
    found = sim.results.effort()[row]
    assert found["actuators"][0] == pytest.approx(80.0, rel=1e-9)
    assert abs(found["actuators"][5]) < 1e-6
    a, b = sim.actuation()["actual"][row][:2]
    assert a * a - 0.5 * a == pytest.approx(80.0 / 3.0, rel=1e-9) and b * b == pytest.approx(160.0 / 3.0, rel=1e-9)


def test_a_velocity_and_a_speed(config: Callable[..., LoadedConfig]) -> None:
    with pytest.raises(ConfigError, match="`speed` defines the complete initial motion"):
        config(fleet("lauv", 'speed="1 m/s" velocity="1 0 0 m/s"'))


def test_no_speed_needs_no_command(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(fleet("lauv", "")))
    assert surge_trim.trim_commands(sim.fleet.vehicle_type(library()["lauv"]), 0.0) == []
