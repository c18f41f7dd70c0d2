"""The simulation as an object: every input is executed or refused, and nothing of a removed body remains."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.arrays import as_numbers
from wavesim_sdk.errors import ConfigError, UnknownName
from wavesim_sdk.tables import SIGNALS
from wavesim_server import Lab, Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import contact_memory
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.result_tables import NO_WEATHER
from wavesim_server.study import varied
from wavesim_world.config import LoadedConfig, library

DEEP = '<world><bed depth="500 m"/></world>'
FEEDBACK = """<models><model name="m" type="surface"><box length="2 m" width="1 m" height="0.5 m"/><mass value="100 kg"/>
<inertia xx="5" yy="80" zz="81"/><added-mass diagonal="1 1 1 1 1 1"/><linear-drag diagonal="80 90 100 30 40 50"/>
<thruster name="t" position="-1 0 0 m" direction="1 0 0" law="shaft" minimum="-9" maximum="9" lag="0.3 s" coefficients="0 1 0"
 feedback="{}"/></model></models>"""
HEARING = """<models><model name="{name}" type="underwater"><sphere diameter="0.5 m"/><mass value="70 kg"/><inertia xx="1" yy="1" zz="1"/>
<added-mass diagonal="1 1 1 1 1 1"/><linear-drag diagonal="8 9 10 3 4 5"/>
<thruster name="t" position="-1 0 0 m" direction="1 0 0" law="force" minimum="-9" maximum="9" lag="0.3 s" feedback="1 s"/>
<fin name="f" law="aerofoil" area="0.01 m2" limit="30 deg"><aerofoil>-180 0 0.1 -10 -0.9 0.03 0 0 0.01 10 0.9 0.03 180 0 0.1</aerofoil></fin>
<transducer listen_low="10 kHz" listen_high="40 kHz" threshold="60 dB" source_level="180 dB" pulse="10 ms" recharge="0 s">
<beam pattern="piston" width="{width} deg"/><modem address="0" frequency="25 kHz" bandwidth="1 kHz" bit_rate="100" preamble="10 ms" payload="32"/>
<pinger frequency="26 kHz" period="2 s"/><head>
<hydrophone position="0.1 0 0 m"/><hydrophone position="0 0.1 0 m"/><hydrophone position="-0.1 0 0 m"/></head></transducer></model></models>"""


def arrays(sim: Simulation) -> dict[str, int]:
    """Bytes of every array that the simulation keeps."""
    found = {}
    for name, owner in (
        ("fleet", sim.fleet),
        ("climate", sim.weather_model),
        ("weather", sim.weather_model.weather),
        ("medium", sim.channel.medium),
    ):
        values = owner._asdict() if hasattr(owner, "_asdict") else vars(owner)
        found |= {f"{name}.{k}": v.nbytes for k, v in values.items() if isinstance(v, np.ndarray)}
        found |= {f"{name}.{k}": len(v) for k, v in values.items() if isinstance(v, (dict, list, set))}
    channel = sim.channel
    found |= {k: len(v) for k, v in vars(channel).items() if isinstance(v, (dict, list, set))}
    found |= {
        f"pool {k}": len(v._free) + v.size
        for k, v in (vars(channel) | vars(sim.fleet)).items()
        if hasattr(v, "acquire") and hasattr(v, "_free")
    }
    found["events"] = len(channel.medium.events) - int(channel.medium.counters[0].left_events)
    return found


def test_memory_is_flat_over_thousands_of_joins(config: Callable[..., LoadedConfig]) -> None:
    """Bodies with modems, heads, beams, pingers, planned packets, allocations of their own, variants of a study."""
    loaded = config(f'<shared vehicles="12" signals="16"/>{DEEP}' + HEARING.format(name="a", width=40))
    other = config(f"{DEEP}" + HEARING.format(name="b", width=50)).models["b"]
    sim = Simulation(loaded)
    stays = sim.enter("stays", "a", (0.0, 0.0, 50.0))
    sizes = None
    for k in range(3_000):
        variant = varied(other, mass=60.0 + k % 7) if k % 2 else None
        row = sim.enter(f"n{k % 5}", "a", (20.0, 0.0, 50.0), variant=variant)
        sim.command(row, [5.0])
        sim.send(row, b"hello", at=3_600_000_000_000)
        if k % 3 == 0:
            sim.allocate(row, np.ones((6, 1)))
            sim.fail(row, "t", "stuck")
        if k % 50 == 0:
            sim.advance(1)
            sim.take_signals()
        sim.leave(row)
        if k == 500:
            sizes = arrays(sim)
    assert arrays(sim) == sizes
    assert sim.rows == [stays]


def test_a_name_is_in_once(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(
        config(f'{DEEP}<fleet><vehicle name="v" model="lauv" position="0 0 20 m" client="optional"/></fleet>')
    )
    row = sim.enter("other", "lauv", (30.0, 0.0, 20.0))
    with pytest.raises(ValueError, match="a body named 'other' is already in the simulation"):
        sim.enter("other", "lauv", (60.0, 0.0, 20.0))
    assert sim.enter("v") == 0 == sim.row_of("v")
    with pytest.raises(ValueError, match="a body named 'v' is already in the simulation"):
        sim.enter("v")
    assert sim.rows == [0, row]
    sim.leave(0)
    assert sim.row_of("v") is None and sim.enter("v") == 0


def test_a_row_is_kept_for_its_body(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(
        config(f'{DEEP}<fleet><vehicle name="v" model="lauv" position="0 0 20 m" client="optional"/></fleet>')
    )
    for name, row, message in (
        ("x", 0, "is reserved for another body"),
        ("v", 1, "is reserved for another body"),
        ("x", -1, "invalid row -1: use 0 to"),
        ("x", 64, "invalid row 64: use 0 to"),
        ("x", 1.5, "invalid row"),
        ("", None, "invalid name"),
        ("x" * 33, None, "invalid name"),
        (None, None, "invalid name"),
    ):
        with pytest.raises(ValueError, match=message):
            sim.enter(name, "lauv", (0.0, 0.0, 9.0), row=row)  # type: ignore[arg-type]  # garbage on purpose
    assert sim.rows == []


def test_rows_are_given_out_from_the_lowest(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(f'<shared vehicles="4"/>{DEEP}'))
    assert [sim.enter(f"n{k}", "lauv", (50.0 * k, 0.0, 20.0)) for k in range(3)] == [0, 1, 2]
    assert sim.enter("far", "lauv", (900.0, 0.0, 20.0), row=3) == 3
    assert sim._occupants.row_for("more") is None
    with pytest.raises(ValueError, match="all 4 rows are in use"):
        sim.enter("more", "lauv")
    sim.leave(2)
    sim.leave(0)
    assert [sim.enter(f"m{k}", "lauv", (50.0 * k, 50.0, 20.0)) for k in range(2)] == [0, 2]


UNSTABLE = """<models><model name="{}" type="surface"><box length="2 m" width="1 m" height="0.5 m"/><mass value="10 kg"/>
<inertia xx="5" yy="80" zz="81"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="5000 9 10 3 4 5"/></model></models>"""


def image(sim: Simulation) -> tuple[Any, ...]:
    """All that an entering body could have changed."""
    return (
        sim.rows,
        sim.fleet.blocks.tobytes(),
        sim.fleet.model_ints.tobytes(),
        sim.fleet.params.tobytes(),
        sim.identity.tobytes(),
        sim.weather_model.weather.exposure.tobytes(),
        sim.channel.medium.nodes.tobytes(),
        sim.channel.medium.counters.tobytes(),
        arrays(sim),
    )


def test_a_step_that_is_too_long_in_the_flow_is_refused_with_one_that_will_do(
    config: Callable[..., LoadedConfig],
) -> None:
    """The LAUV bears steps of 100 ms up to 2 m/s; in 10 m/s its state diverged, as its drag grows with the flow."""

    def stream(step: float, flow: str) -> Simulation:
        sim = Simulation(config(f'<time step="{step} ms"/><world><current {flow}/><bed depth="100 m"/></world>'))
        sim.enter("v", "lauv", (0.0, 0.0, 50.0))
        return sim

    stream(100, 'north="2 m/s"')
    for flow in ('north="6 m/s" east="-8 m/s"', 'tide_amplitude="10 m/s"'):
        with pytest.raises(
            ConfigError, match=r"with a time step of 100 ms in a flow of 10 m/s: .* at most (\d+)"
        ) as refusal:
            stream(100, flow)
    sim = stream(float(str(refusal.value).split("at most ")[1].split()[0]), 'east="10 m/s"')
    while sim.time_ns < 10e9:
        sim.advance(50)
    assert np.linalg.norm(sim.fleet.body(0)[B.NU : B.NU + 3]) == pytest.approx(10.0, rel=0.05)


def test_a_current_on_the_way_is_held_against_the_step_as_one_of_the_configuration(
    config: Callable[..., LoadedConfig],
) -> None:
    """With a body afloat it is refused; with none it is taken, and the body is refused that comes into it."""
    sim = Simulation(config('<time step="100 ms"/><world><bed depth="100 m"/></world>'))
    row = sim.enter("v", "lauv", (0.0, 0.0, 50.0))
    sim.set_weather(current_north=2.0)
    with pytest.raises(ValueError, match=r"'lauv' is unstable with a time step of 100 ms in a flow of 10 m/s"):
        sim.set_weather(current_north=6.0, current_east=-8.0, wind_speed=9.0)
    with pytest.raises(ValueError, match=r"'lauv' is unstable with a time step of 100 ms in a flow of 10 m/s"):
        sim.set_weather(current_north=0.0, current_down=-10.0)
    assert (sim.weather_model.current.north, sim.weather_model.current.east, sim.weather_model.current.down) == (
        2,
        0,
        0,
    )
    assert sim.weather_model.wind.speed == 0.0
    sim.leave(row)
    sim.set_weather(current_north=6.0, current_east=-8.0)
    with pytest.raises(ConfigError, match=r"'lauv' is unstable with a time step of 100 ms in a flow of 10 m/s"):
        sim.enter("v", "lauv", (0.0, 0.0, 50.0))
    sim.set_weather(current_north=0.0, current_east=0.0)
    sim.enter("v", "lauv", (0.0, 0.0, 50.0))


def test_a_model_that_this_step_makes_unstable_is_refused_and_changes_nothing(
    config: Callable[..., LoadedConfig],
) -> None:
    """A model that the configuration does not name is looked at when somebody enters with it."""
    bad = config(f'<time step="0.1 ms"/>{DEEP}' + UNSTABLE.format("bad")).models["bad"]
    sim = Simulation(config(f'<time step="100 ms"/>{DEEP}'))
    sim.loaded.models["bad"] = bad  # as one of the library
    sim.enter("good", "lauv", (0.0, 0.0, 20.0))
    sim.advance(5)
    before = image(sim)
    with pytest.raises(ConfigError, match="'bad' is unstable with a time step of 100 ms"):
        sim.enter("v", "bad")
    with pytest.raises(UnknownName, match="unknown model 'lauw'"):
        sim.enter("v", "lauw")
    for position in ([math.nan, 0, 0], [1e9, 0, 0], [0, 0], [[0], [0], [0]], "abc", None):
        with pytest.raises(ValueError):
            sim.enter("v", "lauv", position)  # type: ignore[arg-type]  # garbage on purpose
    assert image(sim) == before
    assert sim.enter("v", "lauv", (90.0, 0.0, 20.0)) == 1


def test_models_of_the_configuration_are_looked_at_before_anything_runs(config: Callable[..., LoadedConfig]) -> None:
    with pytest.raises(ConfigError, match="unstable"):
        Simulation(config(f'<time step="100 ms"/>{DEEP}' + UNSTABLE.format("bad")))


NESTED: list[Any] = []
for _ in range(3000):
    NESTED = [NESTED]
GARBAGE = [
    None,
    True,
    "abc",
    b"\xff",
    math.nan,
    -math.inf,
    10**400,
    [],
    [[[]]],
    NESTED,
    {},
    {"a": 1},
    {"propeller": [1.0]},
    [math.nan],
    ["1"],
    [10**400],
    [1] * 10_000,
    object(),
    [object()],
    {None: None},
    (1j,),
    [b"x"],
    -1,
    2**64,
    [True] * 6,
]


@pytest.mark.parametrize(
    "call", ["command", "fail", "fail how", "fail size", "push", "allocate", "pose", "row", "weather"]
)
def test_garbage_is_a_value_error(config: Callable[..., LoadedConfig], call: str) -> None:
    sim = Simulation(config(DEEP))
    row = sim.enter("v", "lauv", (0.0, 0.0, 20.0))
    calls: dict[str, Callable[[Any], Any]] = {
        "command": lambda g: sim.command(row, g),
        "fail": lambda g: sim.fail(row, g, "lost"),
        "fail how": lambda g: sim.fail(row, 0, g),
        "fail size": lambda g: sim.fail(row, 0, "reduced", g),
        "push": lambda g: sim.push(row, g),
        "allocate": lambda g: sim.allocate(row, g),
        "pose": lambda g: sim.set_pose(row, [0.0] * 3, [0.0] * 3, [1] if g is None else g),
        "row": lambda g: sim.command(g, [1.0]),
        "weather": lambda g: sim.set_weather(wind_speed=g if g is not None else -1),
    }
    before = image(sim)
    for garbage in GARBAGE:
        if (call, garbage) in (("command", []), ("command", {})):
            continue  # nothing is commanded
        with pytest.raises(ValueError) as refused:
            calls[call](garbage)
        assert len(str(refused.value)) < 400
    assert image(sim) == before
    sim.advance(5)
    assert sim.frozen_bodies == []


def test_nothing_of_a_broken_body_stays_for_the_next_one_in_its_row(config: Callable[..., LoadedConfig]) -> None:
    """Neither that it was frozen, nor its faults, nor its commands."""
    sim = Simulation(config(f'<time step="10 ms"/><shared vehicles="2"/>{DEEP}'))
    sim.enter("other", "lauv", (90.0, 0.0, 20.0))
    row = sim.enter("bad", "lauv", (0.0, 0.0, 20.0))
    sim.command(row, [8.0, 0.2])
    for part, fault in ((0, "reversed"), (1, "stuck"), (2, "lost")):
        sim.fail(row, part, fault)
    sim.advance(5)
    sim.fleet.body(row)[B.NU] = np.nan
    sim.advance(1)
    assert sim.frozen_bodies == ["bad"]
    sim.leave(row)
    assert sim.frozen_bodies == [] and sim.enter("good", "lauv", (0.0, 0.0, 20.0)) == row
    assert sim.frozen_bodies == [] and not sim.actuation()["actual"][row].any()
    fresh = Simulation(sim.loaded)
    fresh.enter("good", "lauv", (0.0, 0.0, 20.0), row=row)
    for s in (sim, fresh):
        s.command(row, [5.0, 0.1, 0.1])
        s.advance(50)
    assert sim.frozen_bodies == [] and sim.state()["v_WB_B"][row][0] > 0.05
    assert np.array_equal(sim.actuation()["actual"][row], fresh.actuation()["actual"][row])
    assert np.array_equal(sim.state()["p_WB_W"][row], fresh.state()["p_WB_W"][row]), "as if nobody had been there"


def test_half_a_command_is_none(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(DEEP))
    row = sim.enter("v", "lauv", (0.0, 0.0, 20.0))
    sim.command(row, [3.0, 0.1])
    with pytest.raises(ValueError):
        sim.command(row, [5.0, 0.2, math.nan])
    assert sim.actuation()["command"][row][:2].tolist() == [3.0, 0.1]
    with pytest.raises(ValueError, match="'v': unknown actuator 'propellor'; did you mean 'propeller'"):
        sim.fail(row, "propellor", "lost")


def test_others_that_come_and_go_do_not_disturb_the_averages(config: Callable[..., LoadedConfig]) -> None:
    """The reported shaft speed of one body is the same whoever else joins and leaves meanwhile."""
    seen: list[list[float]] = []
    for others in (False, True):
        sim = Simulation(config(f'<time step="10 ms"/>{DEEP}' + FEEDBACK.format("0.5 s") + ""))
        first = sim.enter("first", "m", (-50.0, 0.0, 0.0)) if others else -1
        row, found = sim.enter("v", "m"), []
        for k in range(120):
            if others and k == 30:  # the last one takes its place, in the middle of a window
                for other in ("o5", "o15", "o25"):
                    sim.leave(sim.row_of(other) or 0)
                sim.leave(first)
            if others and k % 10 == 5:
                sim.enter(f"o{k}", "m", (50.0 + k, 0.0, 0.0))
            if others and k % 20 == 15 and k > 60:
                sim.leave(sim.row_of(f"o{k - 20}") or 0)
            sim.command(row, [5.0 if k < 60 else -5.0])
            sim.advance(1)
            found.append(float(sim.actuation()["feedback"][row][0]))
        seen.append(found)
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 120


def test_a_longer_window_joins_later(config: Callable[..., LoadedConfig]) -> None:
    """The memory of averages grows while another one is at work in it."""
    text = FEEDBACK.format("0.1 s")
    second = (
        text.replace('name="m"', 'name="long"').replace("0.1 s", "3 s").replace("<models>", "").replace("</models>", "")
    )
    loaded = config(f'<time step="10 ms"/>{DEEP}' + text.replace("</models>", second + "</models>"))
    alone, crowded = Simulation(loaded), Simulation(loaded)
    for sim in (alone, crowded):
        sim.command(sim.enter("v", "m"), [5.0])
        sim.advance(5)
    late = crowded.enter("w", "long", (30.0, 0.0, 0.0))
    crowded.command(late, [9.0])
    for sim in (alone, crowded):
        sim.advance(400)
    assert alone.actuation()["feedback"][0][0] == crowded.actuation()["feedback"][0][0]
    assert crowded.actuation()["feedback"][late][0] == pytest.approx(9.0, rel=0.2)
    crowded.leave(0)
    crowded.advance(1)
    assert crowded.actuation()["feedback"][late][0] == pytest.approx(9.0, rel=0.2), "its ring went with it"


def test_tables_in_the_order_of_the_model(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<world><bed depth="500 m"/></world>'))
    row = sim.enter("boat", "odin")
    assert [a.name for a in sim.fleet.actuators(row)][2] == "port-angle"
    sim.command(row, {"port-angle": 0.2, "starboard-deflector": -1.0, "port": 0.5})
    command = sim.actuation()["command"][row]
    assert command[2] == pytest.approx(0.2) and command[5] == -1.0 and command[4] == 1.0, "a deflector is up at rest"
    assert not command[6:].any()
    sim.leave(row)
    again = sim.enter("sub", "lauv", (0.0, 0.0, 20.0))
    table = sim.actuation()
    sim.command(again, [3.0])
    sim.results.fill(0.0, as_numbers(sim.state()), as_numbers(table), NO_WEATHER)
    assert again == row and table["command"][row].tolist() == [3.0, *[0.0] * 31]


def test_a_reversed_actuator_once_and_again(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(DEEP))
    row = sim.enter("v", "lauv", (0.0, 0.0, 20.0))
    current_command = lambda: float(sim.actuation()["command"][row][0])  # noqa: E731  # read often
    sim.command(row, [4.0])
    sim.fail(row, 0, "reversed")
    sim.fail(row, 0, "reversed")
    assert current_command() == -4.0, "it stays reversed"
    sim.fail(row, 0, "none")
    assert current_command() == 4.0, "repaired, it follows the command it had"


def test_an_actuator_that_has_not_started_stays_so_when_repaired(config: Callable[..., LoadedConfig]) -> None:
    text = FEEDBACK.format("0.5 s").replace('lag="0.3 s"', 'lag="0 s" start="1 s"')
    sim = Simulation(config(f'<time step="10 ms"/>{DEEP}{text}'))
    row = sim.enter("v", "m")
    sim.command(row, [5.0])
    sim.fail(row, 0, "stuck")
    sim.fail(row, 0, "none")
    sim.advance(50)
    assert sim.actuation()["actual"][row][0] == 0.0
    sim.advance(60)
    assert sim.actuation()["actual"][row][0] == 5.0


def test_contacts_that_find_no_room_are_counted(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(f'<shared vehicles="3"/>{DEEP}'))
    for k in range(3):
        sim.enter(f"v{k}", "box-buoy", (3.0 * k, 0.0, 0.0))
        sim.set_pose(k, (0.3 * k, 0.0, 0.0))
    sim.advance(1)
    assert sim.contacts.count > 0 and sim.contacts.dropped == 0
    sim.contacts.memory = sim.contacts.memory._replace(contacts=np.zeros((1, contact_memory.CONTACT)))
    sim.advance(1)
    assert sim.contacts.dropped > 0


@pytest.mark.compiled
def test_filling_a_fleet_costs_the_same_for_each(config: Callable[..., LoadedConfig]) -> None:
    """Four times as many bodies take four times as long, not sixteen."""

    def fill(n: int) -> float:
        sim = Simulation(config(f'<shared vehicles="{n}" signals="4"/><world><bed depth="9000 m"/></world>'))
        best = math.inf
        for name in ("lauv", "jolner"):
            start = time.thread_time()
            for k in range(n // 2):
                sim.enter(
                    f"{name}{k}", name, (40.0 * (k % 100), 40.0 * (k // 100), 500.0 if name == "lauv" else -2000.0)
                )
            best = min(best, time.thread_time() - start)
        return best

    fill(200)
    small, large = (min(fill(n) for _ in range(2)) for n in (1000, 4000))
    assert large < 8.0 * small, f"{small:.3f} s for 1000, {large:.3f} s for 4000"


def test_entering_costs_no_more_in_a_large_simulation(config: Callable[..., LoadedConfig]) -> None:
    """Counted, not timed: arrays of the fleet are replaced ever more rarely."""
    sim = Simulation(config('<shared vehicles="2048" signals="4"/><world><bed depth="9000 m"/></world>'))
    grown = 0
    before = sim.fleet.blocks
    for k in range(1024):
        sim.enter(f"v{k}", "lauv", (40.0 * k, 0.0, 500.0))
        grown += sim.fleet.blocks is not before
        before = sim.fleet.blocks
    blocks = 1024 // LANES
    assert grown <= blocks.bit_length() + 1
    assert len(sim.fleet.sequence) == blocks
    assert sim.fleet.block_heads[:blocks, B.HEAD_BODIES].tolist() == [LANES] * blocks


def test_a_body_enters_at_rest_beside_others_that_move(config: Callable[..., LoadedConfig]) -> None:
    """The kernel moves the empty lanes of a block too; whoever enters one finds nothing of it."""
    states = []
    for waited in (0, 200):
        sim = Simulation(config(DEEP))
        sim.enter("first", "lauv", (0.0, 0.0, 100.0))
        sim.advance(waited)
        row = sim.enter("second", "lauv", (0.0, 50.0, 100.0))
        states.append(sim.fleet.body(row).copy())
    assert np.array_equal(*states) and not states[0][B.NU : B.STATE_ROWS].any()


def test_bodies_that_leave_make_room_in_their_blocks(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<shared vehicles="64"/><world><bed depth="9000 m"/></world>'))
    names = sorted(n for n, m in library().items() if m.type == "underwater")
    rng = np.random.default_rng(3)
    for k in range(400):
        if len(sim.rows) > 40 or (sim.rows and rng.random() < 0.4):
            sim.leave(int(rng.choice(sim.rows)))
        else:
            sim.enter(f"v{k}", names[k % len(names)], (60.0 * k, 0.0, 500.0))
        if k % 11 == 0 and sim.rows:
            row = int(rng.choice(sim.rows))
            sim.allocate(
                row,
                np.eye(6)[:, : len(sim.occupants[row].model.thruster)]
                if len(sim.occupants[row].model.thruster) < 7
                else np.ones((6, 8)),
            )
        heads, f = sim.fleet.block_heads, sim.fleet
        blocks = f.blocks.reshape(-1, B.ROWS, LANES)
        assert heads[:, B.HEAD_BODIES].tolist() == blocks[:, B.PRESENT].sum(axis=1).tolist()
        assert heads[:, B.HEAD_BODIES].sum() == len(sim.rows)
        seats = [int(f.slots[row]) for row in sim.rows]
        assert len(set(seats)) == len(seats)
        assert all(f.body(row)[B.PRESENT] == 1.0 for row in sim.rows)
    sim.advance(2)
    assert sim.frozen_bodies == []


def test_a_body_without_an_attitude_is_frozen_with_its_last_attitude(config: Callable[..., LoadedConfig]) -> None:
    """At this angular rate, the square of the quaternion's norm overflows, and normalisation makes the quaternion zero."""
    top = """<models><model name="top" type="underwater"><sphere diameter="1 m"/><mass value="536.7 kg"/>
      <inertia xx="50" yy="50" zz="50"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/>
    </model></models>"""
    sim = Simulation(config(f'<time step="100 ms" integrator="euler"/>{top}{DEEP}'))
    row = sim.enter("top", "top", (0.0, 0.0, 20.0))
    sim.fleet.body(row)[B.NU + 3] = 1e157
    sim.advance(1)
    assert sim.frozen_bodies == ["top"] and sim.state()["q_WB"][row].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert not sim.state()["w_WB_B"][row].any()


def test_a_mooring_too_stiff_for_the_time_step_is_refused() -> None:
    """It would throw the body to 1e30 m within a second. A mooring just below the limit keeps the body in place."""
    text = """<wavesim><time step="10 ms"/><fleet><buoy name="b" model="buoy" position="0 0 10 m">
      <mooring anchor="0 0 40 m" length="30 m" stiffness="{} N/m" damping="{} N s/m"/></buoy></fleet></wavesim>"""
    for stiffness, damping in ((1e7, 0.0), (10.0, 1e5)):
        with pytest.raises(ConfigError, match="'b': the mooring is unstable with a time step of 10 ms"):
            Lab(text.format(stiffness, damping))
    lab = Lab(text.format(4e6, 1e3))
    lab.run(20.0)
    assert lab.frozen_bodies == [] and 9.5 < lab.states()["b"]["depth"] < 10.2


def test_an_initial_velocity_too_high_for_the_time_step_is_refused() -> None:
    """Quadratic drag would throw the body to infinity in the third step, although the model is stable at rest."""
    text = """<wavesim><time step="{} ms" integrator="dp5"/><fleet><vehicle name="b" model="bluerov2" position="0 0 50 m"
      angular_velocity="-4.5 0.1 5.2 rad/s"/></fleet></wavesim>"""
    with pytest.raises(ConfigError, match="'b': the initial velocity is too high for a time step of 50 ms"):
        Lab(text.format(50))
    lab = Lab(text.format(10))
    lab.run(5.0)
    assert lab.frozen_bodies == [] and lab.states()["b"]["speed"] < 1.0


def test_waves_cannot_start_in_a_world_without_gravity() -> None:
    lab = Lab('<wavesim><world gravity="0 m/s2"/></wavesim>')
    lab.set_weather(wind_speed=3.0)
    with pytest.raises(ValueError, match="waves cannot exist in a world without gravity"):
        lab.set_weather(wave_height=1.0)


WATERS = {
    "profile": """<world><bed depth="18 m"/><temperature surface="19 C" knee_1="4 m" knee_2="9 m" gradient_1="-0.9 C/m" gradient_2="-0.02 C/m"/></world>
<acoustics profile="water" formula="chen-millero" sound_speed="1508 m/s"><multipath order="3" bottom_speed="1650 m/s" bottom_density="1.9"/></acoustics>""",
    "soundings": """<world><soundings file="bed.asc" north="-100 m" east="-100 m"/><waves height="1 m"/><wind speed="8 m/s"/>
<obstacles><block position="30 0 5 m" size="4 9 18 m"/><pier position="-20 0 10 m" radius="1 m" height="20 m"/></obstacles></world>""",
}


@pytest.mark.parametrize("water", WATERS)
@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_may_be_asked_for_stops_the_tick(
    config: Callable[..., LoadedConfig], tmp_path: Path, water: str, seed: int
) -> None:
    """Forces, poses, allocations, weather and signals at the bounds: bodies are thrown out of the world, frozen, put back."""
    grid = "ncols 4\nnrows 4\nxllcorner 0\nyllcorner 0\ncellsize 50\n" + "20 25 30 40\n" * 4
    (tmp_path / "bed.asc").write_text(grid)
    sim = Simulation(config(f'<time step="20 ms"/><shared vehicles="8"/>{WATERS[water]}'), seed)
    dice = random.Random(seed)

    def up_to(most: float, count: int = 3) -> list[float]:
        return [min(max(dice.gauss(0.0, most), -most), most) for _ in range(count)]

    rows = [
        sim.enter(m, m, (0.0, 15.0 * k, 4.0)) for k, m in enumerate(("lauv", "vita1", "jolner", "box-buoy", "supply"))
    ]
    for turn in range(40):
        row = dice.choice(rows)
        orders: list[Callable[[], None]] = [
            lambda row=row: sim.push(row, up_to(10 ** dice.uniform(1, 9)), up_to(1e6)),  # type: ignore[misc]
            lambda row=row: sim.set_pose(row, up_to(10 ** dice.uniform(1, 6)), up_to(1e6), up_to(50.0, 6)),  # type: ignore[misc]
            lambda row=row: sim.command(row, up_to(1e9, len(sim.fleet.actuators(row)))),  # type: ignore[misc]
            lambda row=row: sim.ping(row, 25e3, 190.0, dice.choice((None, 2**41)), 65535),  # type: ignore[misc]
            lambda row=row: sim.allocate(row, up_to(1e9, 6 * len(sim.fleet.actuators(row)))),  # type: ignore[misc]
            lambda: sim.set_weather(current_north=up_to(20.0, 1)[0], wind_speed=dice.uniform(0, 60), wave_height=9.0),
        ]
        with contextlib.suppress(ValueError):
            dice.choice(orders)()
        before = sim.tick
        sim.advance(dice.choice((1, 3, 25)))
        assert sim.tick > before
        sim.take_signals(), sim.channel.live_signals(np.zeros(sim.config.shared.signals, SIGNALS.dtype), sim.time_s)
        assert np.isfinite(sim.state()["p_WB_W"][rows]).all(), turn
        sim.results.effort(), sim.results.surroundings(sim.time_s)
    assert sim.rows == rows
