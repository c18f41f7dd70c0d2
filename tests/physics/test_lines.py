"""Lines against closed forms (catenary, taut string), and steady shapes in a current against an ordinary differential
equation.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

from wavesim_sdk.errors import ConfigError
from wavesim_server.dynamics import lines as w
from wavesim_server.simulation import Simulation
from wavesim_world.config import load_text

RHO, G = 1025.0, 9.81
Floats = Any

#: heavy enough that no line moves it, without drag; and a float of 20 kg in 40 l
MODELS = """<models>
  <model name="tug" type="underwater" active="p"><sphere diameter="2 m"/><mass value="4 t"/>
    <inertia xx="1000" yy="1000" zz="1000"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/></model>
  <model name="float" type="underwater"><sphere diameter="0.4243 m"/><mass value="20 kg"/><buoyancy volume="40 l"/>
    <inertia xx="0.4" yy="0.4" zz="0.4"/><added-mass diagonal="20 20 20 0 0 0"/><quadratic-drag diagonal="35 35 35 1 1 1"/></model>
  <model name="heavy" type="underwater"><sphere diameter="0.2 m"/><mass value="8 kg"/><inertia xx="0.03" yy="0.03" zz="0.03"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/></model>
</models>"""


def world(lines: str, bodies: str = "", world: str = "<bed depth='100 m'/>", step: str = "4 ms") -> Simulation:
    sim = Simulation(
        load_text(
            f"<wavesim><time step='{step}'/><world>{world}</world>{MODELS}<fleet>{bodies}{lines}</fleet></wavesim>"
        )
    )
    sim.enter_residents()
    return sim


def nodes(sim: Simulation, line: int = 0) -> Floats:
    record = sim.results.lines()[line]
    return record["nodes_W"].reshape(-1, 3)[: record["nodes"]]


def catenary(length: float, span: float, height: float, weight: float, stiffness: float) -> tuple[Floats, float, float]:
    """Elastic catenary from the lower end at the origin (Irvine 1981, ch. 1): points at equal unstretched steps, as a function
    of s, and the tensions at the lower and the upper end. ``weight``: in water, per length."""

    def at(s: Floats, h: float, v: float) -> Floats:
        low = v - weight * length  # vertical part of the tension at the lower end
        x = h * s / stiffness + h / weight * (np.arcsinh((low + weight * s) / h) - np.arcsinh(low / h))
        z = (low * s + 0.5 * weight * s * s) / stiffness + h / weight * (
            np.sqrt(1 + ((low + weight * s) / h) ** 2) - np.sqrt(1 + (low / h) ** 2)
        )
        return np.stack([x, z], axis=-1)

    h, v = fsolve(lambda q: at(length, *q) - (span, height), (0.5 * weight * length, 0.8 * weight * length), xtol=1e-13)
    return (lambda s: at(s, h, v)), math.hypot(h, v - weight * length), math.hypot(h, v)


def line(**keys: str) -> str:
    """A line of 10 mm, 0.3 kg/m, with its ends."""
    ends = keys.pop("ends")
    have = {
        "name": "l",
        "length": "30 m",
        "diameter": "10 mm",
        "mass": "0.3 kg/m",
        "stiffness": "50 kN",
        "segments": "40",
    } | keys
    return f"<line {' '.join(f'{k}={chr(34)}{v}{chr(34)}' for k, v in have.items())}>{ends}</line>"


def end(position: str, body: str = "") -> str:
    return f"<end position='{position}'{f' body={chr(34)}{body}{chr(34)}' if body else ''}/>"


@pytest.mark.compiled
def test_a_line_between_two_anchors_hangs_as_the_elastic_catenary() -> None:
    """Fails with the weight at the wrong nodes, buoyancy left out, or a wrong strain."""
    sim = world(line(ends=end("0 0 40 m") + end("20 0 25 m")))
    sim.advance(15000)
    weight = (0.3 - RHO * math.pi / 4 * 0.01**2) * G
    shape, low, high = catenary(30.0, 20.0, 15.0, weight, 50e3)
    true = shape(np.linspace(0.0, 30.0, 41))
    found = nodes(sim)
    assert np.abs(found[:, 0] - true[:, 0]).max() < 1e-3 * 30.0
    assert np.abs(40.0 - found[:, 2] - true[:, 1]).max() < 1e-3 * 30.0
    assert np.abs(found[:, 1]).max() < 1e-9
    # a half segment's weight lies between an end and the middle of the segment whose tension is published
    tension = sim.results.lines()[0]["tension"]
    along = weight * 30.0 / 80 * 0.9
    assert tension[1] == pytest.approx(high - along, rel=1.5e-3) and tension[0] == pytest.approx(low, abs=along)


@pytest.mark.compiled
def test_on_the_bed_lies_what_is_too_long() -> None:
    """Without friction the tension along the bed is that at the touch-down: the closed form of a line partly at rest."""
    sim = world(
        line(ends=end("0 0 20 m") + end("40 0 0 m"), length="50 m", friction="0", segments="60"),
        world="<bed depth='20 m'/>",
    )
    sim.advance(20000)
    weight = (0.3 - RHO * math.pi / 4 * 0.01**2) * G

    def hanging(h: float) -> tuple[float, float]:  # (span, height) with s hanging
        s = free(h)
        return h / weight * math.asinh(weight * s / h) + 50.0 - s + h * 50.0 / 50e3, 0.0

    def free(h: float) -> float:  # from the height of an (all but inelastic) hanging part
        return math.sqrt((20.0 + h / weight) ** 2 - (h / weight) ** 2)

    h = fsolve(lambda q: hanging(q[0])[0] - 40.0, [5.0])[0]
    record, found = sim.results.lines()[0], nodes(sim)
    assert found[:, 2].max() == pytest.approx(20.0, abs=1e-6)
    assert record["tension"][0] == pytest.approx(h, rel=0.02)
    assert record["on_bed"] == pytest.approx(50.0 - free(h), abs=1.0)


@pytest.mark.compiled
def test_a_taut_string_swings_at_its_frequencies() -> None:
    """In air, between anchors: k/(2 L) sqrt(T/m). Fails with added mass or drag in air, or a wrong mass."""
    taut = line(
        ends=end("0 0 -1 m") + end("10.1 0 -1 m"), length="10 m", mass="0.2 kg/m", stiffness="100 kN", damping="0.02"
    )
    sim = world(taut, step="1 ms")
    n, tension = 40, 1e3
    s = np.linspace(0.0, 1.0, n + 1)
    for k in (1, 2, 3):
        sim.line_system.arrays.nodes[: n + 1, w.N_V + 1] += 0.05 * np.sin(k * math.pi * s)
    times = np.arange(4000) * 1e-3
    sideways = np.empty((len(times), n + 1))
    for i in range(len(times)):
        sideways[i] = nodes(sim)[:, 1]
        sim.advance(1)
    for k in (1, 2, 3):
        swing = sideways @ np.sin(k * math.pi * s)
        up = np.flatnonzero((swing[:-1] < 0) & (swing[1:] >= 0))
        at = up + swing[up] / (swing[up] - swing[up + 1])
        found = (len(at) - 1) / ((at[-1] - at[0]) * 1e-3)
        # the mass per stretched length times the length is what there is
        true = k / 2 * math.sqrt(tension / (0.2 * 10.0 * 10.1))
        assert found == pytest.approx(true, rel=3e-3), k


def steady(start: tuple[float, float], keys: dict[str, float], speed: float) -> Floats:
    """Where a line ends that begins at the origin with a pull (north, down) on it, in a current to the north: steady state of the
    same loads as an ordinary differential equation, with EA as it is. Returns (north, down) of the end."""
    d, m, ea, length = (keys[k] for k in ("d", "m", "ea", "length"))
    net = (m - RHO * math.pi / 4 * d * d) * G

    def slope(s: float, y: Floats) -> Floats:
        t = y[2:]
        size = math.hypot(*t)
        along = t / size
        u = np.array([speed, 0.0])
        u_t = u @ along
        u_n = u - u_t * along
        drag = 0.5 * RHO * (1.2 * d * math.hypot(*u_n) * u_n + 0.01 * math.pi * d * abs(u_t) * u_t * along)
        return np.concatenate([along * (1 + size / ea), -drag - (0.0, net)])

    return solve_ivp(slope, (0.0, length), [0.0, 0.0, *start], rtol=1e-9, atol=1e-9).y[:2, -1]


@pytest.mark.compiled
def test_a_float_on_a_thin_line_is_carried_off_by_the_lines_drag() -> None:
    """75 m of 8 mm under a float that lifts 397 N, in 0.8 m/s: 24 m out and 4.3 m down. Fails without the drag of the line, which
    is five times what the float's would do."""
    rope = {"length": "75 m", "diameter": "8 mm", "mass": "0.04 kg/m", "stiffness": "60 kN", "segments": "30"}
    where = "<bed depth='90 m'/><current north='0.8 m/s'/>"
    buoyant = MODELS.replace('volume="40 l"', 'volume="59 l"')
    text = line(ends=end("0 0 0 m", "f") + end("0 0 90 m"), **rope)
    body = "<vehicle name='f' model='float' position='24 0 19.3 m'/>"
    sim = Simulation(load_text(f"<wavesim><world>{where}</world>{buoyant}<fleet>{body}{text}</fleet></wavesim>"))
    sim.enter_residents()
    sim.advance(50000)
    found = sim.state()["p_WB_W"][0]
    lift, drag = RHO * 0.059 * G - 20.0 * G, 35 * 0.8**2
    way = steady((-drag, lift), {"d": 0.008, "m": 0.04, "ea": 60e3, "length": 75.0}, 0.8)
    assert -way[0] == pytest.approx(24.0, abs=0.3) and 75.0 - way[1] == pytest.approx(4.3, abs=0.2)
    assert found[0] == pytest.approx(-way[0], rel=5e-3)
    assert 90.0 - found[2] == pytest.approx(way[1], rel=2e-3)
    bare = 75.0 * drag / math.hypot(drag, lift)  # a line without drag would be straight
    assert found[0] > 5.0 * bare
    assert np.abs(sim.state()["v_WB_B"][0]).max() < 1e-3


@pytest.mark.compiled
@pytest.mark.parametrize("speed", [1.0, 2.0, 3.0])
def test_the_depth_of_a_towed_body_follows_from_the_speed(speed: float) -> None:
    """A weight of 40 kg on 50 m: fails with drag along and across mixed up, or of a velocity over ground."""
    weight = MODELS.replace('volume="40 l"', 'volume="5 l"').replace('value="20 kg"', 'value="45 kg"')
    assert weight != MODELS
    rope = line(
        ends=end("0 0 0 m", "t") + end("0 0 0 m", "f"),
        length="50 m",
        diameter="8 mm",
        mass="0.2 kg/m",
        stiffness="200 kN",
        segments="30",
    )
    net = 45.0 * G - RHO * 0.005 * G
    way = steady((35 * speed**2, -net), {"d": 0.008, "m": 0.2, "ea": 200e3, "length": 50.0}, -speed)
    bodies = (
        f"<vehicle name='t' model='tug' position='0 0 3 m' velocity='{speed} 0 0 m/s'/>"
        f"<vehicle name='f' model='float' position='{-way[0] - 1:.0f} 0 {3 - way[1]:.0f} m' velocity='{speed} 0 0 m/s'/>"
    )
    sim = Simulation(
        load_text(f"<wavesim><world><bed depth='200 m'/></world>{weight}<fleet>{bodies}{rope}</fleet></wavesim>")
    )
    sim.enter_residents()
    sim.advance(15000)
    state = sim.state()
    assert state["v_WB_B"][0, 0] == speed
    depth = state["p_WB_W"][1, 2] - state["p_WB_W"][0, 2]
    assert depth == pytest.approx(-way[1], rel=5e-3), speed


#: MoorDyn 2.7.2 (wheel `moordyn`), 64 segments of 0.5 ms steps, of the OC4 DeepCwind line with Cd 1.2 and 0.01, Ca 1 and 0, no friction: tension at
#: the fairlead in kN at rest, and at these times when it goes 0.25 m/s away and 0.25 m/s up from then on
MOORDYN_AT_REST = 1101.8
MOORDYN = {4.0: 1249.6, 8.0: 1250.2, 12.0: 1317.2, 16.0: 1420.8, 20.0: 1511.8}


@pytest.mark.compiled
def test_a_fairlead_that_moves_pulls_as_in_moordyn() -> None:
    """The line of OC4 (835 m of chain, partly on the bed). Fails with the wrong added mass, damping, or dynamics of the bed."""
    chain = line(
        ends=end("-837.6 0 200 m") + end("0 0 0 m", "t"),
        length="835.35 m",
        diameter="76.6 mm",
        mass="113.35 kg/m",
        stiffness="753600 kN",
        segments="64",
        friction="0",
    )
    body = "<vehicle name='t' model='tug' position='-40.868 0 14 m'/>"
    sim = world(chain, body, "<bed depth='200 m'/>", "20 ms")
    sim.advance(25000)
    assert 1e-3 * sim.results.lines()[0]["tension"][1] == pytest.approx(MOORDYN_AT_REST, rel=2e-3)
    sim.set_pose(0, velocity=(0.25, 0.0, -0.25, 0.0, 0.0, 0.0))
    for k in range(1, 6):
        sim.advance(200)
        assert 1e-3 * sim.results.lines()[0]["tension"][1] == pytest.approx(MOORDYN[4.0 * k], rel=0.015), 4 * k


@pytest.mark.compiled
def test_a_heavy_body_hangs_at_rest_and_its_line_carries_it() -> None:
    """A stiff line on a light body: the tension is the weight, nothing moves, and the forces of the body add up to none."""
    rope = line(
        ends=end("0 0 10 m") + end("0 0 -0.1 m", "f"),
        length="20 m",
        stiffness="2000 kN",
        mass="0.3 kg/m",
        segments="10",
    )
    heavy = "<vehicle name='f' model='heavy' position='0 0 30.2 m'/>"
    sim = world(rope, heavy)
    sim.advance(20000)
    net = (8.0 - RHO * math.pi / 6 * 0.2**3) * G
    line_row = sim.results.lines()[0]
    weight = (0.3 - RHO * math.pi / 4 * 0.01**2) * G * 20.0
    assert line_row["tension"][1] == pytest.approx(net + weight / 20, rel=2e-3)
    effort = sim.results.effort()[0]
    assert np.abs(sim.state()["v_WB_B"][0]).max() < 1e-3
    assert effort["contact"][2] == pytest.approx(-net, rel=5e-3)
    assert abs(effort["total"][2]) < 0.5


def test_a_line_pulls_both_its_bodies_alike() -> None:
    """Momentum is kept: two bodies and the line between them, no water. Fails with a force at one end only."""
    models = "<models><model name='b' type='underwater'><sphere diameter='0.4 m'/><mass value='10 kg'/><inertia xx='0.4' yy='0.4' zz='0.4'/><added-mass diagonal='0 0 0 0 0 0'/><linear-drag diagonal='0 0 0 0 0 0'/></model></models>"
    rope = line(
        ends=end("0 0 0 m", "a") + end("0 0 0 m", "b"),
        length="5 m",
        mass="0.001 kg/m",
        diameter="0.1 mm",
        stiffness="2 kN",
        segments="4",
        drag="0",
        drag_along="0",
    )
    bodies = "<vehicle name='a' model='b' position='0 0 20 m' velocity='-1 0 0 m/s'/><vehicle name='b' model='b' position='4 0 20 m' velocity='1 0 0 m/s'/>"
    sim = Simulation(
        load_text(
            f"<wavesim><world gravity='0 m/s2'><bed depth='100 m'/></world>{models}<fleet>{bodies}{rope}</fleet></wavesim>"
        )
    )
    sim.enter_residents()
    speeds = []
    for _ in range(30):
        sim.advance(25)
        speeds.append(sim.state()["v_WB_B"][:2, 0])
    u = np.array(speeds)
    assert np.abs(u.sum(axis=1)).max() < 1e-3  # the line has 5 g
    assert u[-1, 0] > 0.2, "they are thrown back"


def test_a_line_breaks_at_its_load_and_both_parts_fall() -> None:
    """36 N hang on a line that bears 30 N: it stretches, breaks, is reported once, and nothing is held any more."""
    rope = line(
        ends=end("0 0 10 m") + end("0 0 -0.1 m", "f"), length="20 m", breaking="30 N", segments="10", mass="0.09 kg/m"
    )
    sim = world(rope, "<vehicle name='f' model='heavy' position='0 0 30.1 m'/>")
    sim.advance(500)
    (time_ns, name, row, load), *more = sim.line_system.take_breaks()
    assert (name, row, more) == ("l", 0, []) and 30.0 < load < 36.0 and 0 < time_ns < 2e9
    assert sim.line_system.take_breaks() == []
    sim.advance(500)
    record = sim.results.lines()[0]
    assert 0 <= record["broken"] < 10
    assert sim.state()["p_WB_W"][0, 2] > 35.0, "nothing holds it any more"


def test_lines_do_not_depend_on_how_time_is_advanced_nor_on_others() -> None:
    """To the bit. Fails when a line takes substeps of others', or keeps something between calls."""
    rope = line(ends=end("0 0 0.2 m", "f") + end("0 0 60 m"), length="50 m", segments="8")
    other = line(ends=end("90 0 40 m") + end("100 0 40 m"), name="m", length="12 m", segments="5", stiffness="5000 kN")
    body = "<vehicle name='f' model='float' position='0 0 13 m'/>"
    one, many = world(rope, body), world(rope + other, body)
    one.advance(500)
    for _k in range(50):
        many.advance(10)
    assert nodes(one).tobytes() == nodes(many).tobytes()
    assert one.state()[:1].tobytes() == many.state()[:1].tobytes()


def test_a_line_goes_and_comes_with_its_body() -> None:
    bodies = "<vehicle name='f' model='float' position='0 0 13 m' client='optional'/>"
    sim = world(line(ends=end("0 0 0.2 m", "f") + end("0 0 60 m"), length="50 m"), bodies)
    assert sim.results.lines()[0]["present"] == 0
    row = sim.enter("f")
    sim.advance(10)
    assert sim.results.lines()[0]["present"] == 1 and sim.results.lines()[0]["first_body"] == row
    with pytest.raises(ValueError, match=r"line 'l' is 50 m long, but its ends would be 1[0-9.]+ m apart"):
        sim.set_pose(row, position=(100.0, 0.0, 20.0))
    sim.set_pose(row, position=(20.0, 0.0, 20.0))
    assert np.allclose(nodes(sim)[0], (20.0, 0.0, 20.2), atol=1e-2)
    sim.leave(row)
    sim.advance(10)
    assert sim.results.lines()[0]["present"] == 0 and not nodes(sim).any()


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"ends": end("0 0 1 m", "absent") + end("0 0 60 m")}, "line 'l' is attached to the unknown body 'absent'"),
        ({"ends": end("0 0 1 m", "f")}, "line 'l' has 1 ends; write two <end>"),
        ({"ends": end("0 0 1 m", "f") + end("1 0 0 m", "f")}, "both ends of line 'l' are attached to 'f'"),
        (
            {"ends": end("0 0 0 m", "f") + end("0 0 60 m"), "length": "20 m"},
            "line 'l' is 20 m long, but its ends start 47 m apart",
        ),
        ({"ends": end("0 0 0 m", "f") + end("0 0 60 m"), "length": "0 m"}, "0 m is below the minimum, 0.01 m"),
        (
            {"ends": end("0 0 0 m", "f") + end("0 0 60 m"), "length": "50 m", "stiffness": "1e9 N", "substeps": "7"},
            r"with substeps=.7. the integration is unstable; the line needs \d+ substeps in a tick of 4 ms",
        ),
        (
            {"ends": end("0 0 0 m", "f") + end("0 0 60 m"), "length": "50 m", "stiffness": "1e10 N", "mass": "1 g/m"},
            r"its stiffness needs \d+ substeps in a tick of 4 ms; the maximum is 1000",
        ),
    ],
    ids=["unknown-body", "one-end", "same-body", "too-short", "zero", "substeps", "too-stiff"],
)
def test_what_cannot_be_is_refused(keys: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as found:
        world(line(**keys), "<vehicle name='f' model='float' position='0 0 13 m'/>")
    assert found.value.line


@pytest.mark.compiled
def test_the_trial_of_moored_bodies(root: Path) -> None:
    """Half a minute: nothing sinks, breaks or freezes; the buoy is pulled off, the profile is that of the layers."""
    sim = Simulation.from_config(root / "examples/trials/moored.xml")
    sim.advance(7500)
    assert not sim.frozen_bodies and sim.line_system.take_breaks() == []
    place = {sim.occupants[row].name: sim.state()["p_WB_W"][row] for row in sim.rows}
    assert abs(place["boat"][2]) < 0.2 and 5.0 < place["buoy"][0] < 15.0 and 15.0 < place["float"][2] < 40.0
    rode, tether, mooring = sim.results.lines()
    assert [bytes(line["name"]).decode() for line in (rode, tether, mooring)] == ["rode", "tether", "mooring"]
    assert 200.0 < mooring["tension"][0] < 400.0 and rode["on_bed"] < 30.0
