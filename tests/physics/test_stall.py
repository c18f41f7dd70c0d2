"""Fins beyond their stall: forces by angle of attack, against the linear law below it and a plate at 90 degrees."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics.model_compiler import aerofoil_table
from wavesim_world.config import LoadedConfig, library

AREA, SLOPE, STALL, PLATE, SPEED = 0.01, 3.0, 24.0, 1.2, 1.5
FORCE = 0.5 * 1025.0 * AREA * SPEED**2  # per unit of coefficient
MODEL = """<models><model name="m" type="underwater"><cylinder length="2 m" radius="0.1 m"/><mass value="64.4 kg"/>
<inertia xx="1" yy="20" zz="20"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/><buoyancy volume="0.0628 m3"/>
<fin name="f" position="-0.8 0 0 m" normal="0 1 0" area="0.01 m2" lift_slope="3" limit="30 deg" {stall}/></model></models>"""


def coefficients(
    config: Callable[..., LoadedConfig], stall: str, angles: np.ndarray, rudder: float = 0.0
) -> np.ndarray:
    """Normal-force coefficients of the fin in flows from these angles, deg; the fin at an angle in deg."""
    loaded = config(
        f'<shared vehicles="{len(angles)}"/><world><bed depth="900 m"/></world>' + MODEL.format(stall=stall)
    )
    sim = Simulation(loaded)
    for k, angle in enumerate(np.radians(angles)):
        row = sim.enter(f"v{k}", "m", (20.0 * k, 0.0, 100.0))
        sim.set_pose(row, velocity=[SPEED * math.cos(angle), SPEED * math.sin(angle), 0.0, 0.0, 0.0, 0.0])
        body = sim.fleet.body(row)
        sim.command(row, [math.radians(rudder)])
        slot = next(a.slot for a in sim.fleet.actuators(row))
        body[B.ACTUATOR_STATE + slot] = math.radians(rudder)
    return np.array([sim.results.effort()["actuators"][k][1] / FORCE for k in range(len(angles))])


@pytest.mark.compiled
def test_a_fin_follows_the_linear_law_to_its_stall_and_a_plate_beyond(config: Callable[..., LoadedConfig]) -> None:
    stall = f'stall="{STALL} deg"'
    flow = np.linspace(-180.0, 180.0, 361)
    with_stall, without = (coefficients(config, text, flow) for text in (stall, ""))
    attached = np.abs(np.tan(np.radians(flow))) <= math.radians(STALL)
    assert np.array_equal(with_stall[attached], without[attached]), "the same bits below the stall"
    across = with_stall[np.isin(np.abs(flow), [90.0])]
    assert np.abs(across) == pytest.approx(PLATE, rel=1e-9), "a plate square to the flow"
    assert np.abs(with_stall).max() < 1.35, "no coefficient that no fin reaches"
    at = {a: abs(float(with_stall[flow == a][0])) for a in (40.0, 80.0)}
    assert at[40.0] == pytest.approx(1.05, abs=0.15) and at[80.0] == pytest.approx(1.2, abs=0.03)
    assert abs(float(without[flow == 40.0][0])) > 1.4 and abs(float(without[flow == 80.0][0])) < 0.6, "what it mends"
    assert np.abs(with_stall + with_stall[::-1]).max() < 1e-12, "port as starboard"
    assert np.abs(np.diff(coefficients(config, stall, np.linspace(15.0, 165.0, 1501)))).max() < 0.02, "without a jump"


@pytest.mark.parametrize("rudder", [25.0, -25.0])
def test_a_turned_fin_stalls_by_its_own_angle_of_attack(config: Callable[..., LoadedConfig], rudder: float) -> None:
    """With the flow from the side to which the fin is turned the angle of attack is the difference."""
    stall = f'stall="{STALL} deg"'
    side = math.copysign(1.0, rudder)
    flow = side * np.array([0.0, 15.0, 20.0, -65.0])
    found, linear = (coefficients(config, text, flow, rudder) for text in (stall, ""))
    assert abs(found[0]) < abs(linear[0]), "25 deg ahead is beyond it"
    assert np.array_equal(found[1:3], linear[1:3]), "10 deg and 5 deg are not"
    assert found[3] == pytest.approx(side * PLATE, rel=1e-9), "90 deg of attack"


def test_an_aerofoil_beyond_its_table_is_the_same_plate() -> None:
    rudder = library()["cybership2"].fin[0]
    assert rudder.aerofoil is not None
    table = aerofoil_table(rudder.aerofoil, rudder.plate)
    alpha = np.radians(np.linspace(-180.0, 180.0, table.shape[1]))
    normal = table[0] * np.cos(alpha) + table[1] * np.sin(alpha)
    far = np.abs(alpha) > math.radians(45.0)
    assert np.allclose(normal[far], rudder.plate * np.sin(alpha[far]), atol=1e-12)


@pytest.mark.parametrize("name", [n for n, m in library().items() if m.fin and m.type != "aircraft"])
def test_every_shipped_fin_stalls_or_says_why_it_cannot(name: str) -> None:
    """`coefficients` and `derivatives` are published sets, kept as their authors have them, whose angles end at a limit."""
    published = {"remus100-fossen": 15.0, "sookshma": 35.0, "sookshma-fitted": 35.0}
    for fin in library()[name].fin:
        if fin.law in ("coefficients", "derivatives"):
            assert math.degrees(fin.limit) == pytest.approx(published[name])
        else:
            assert fin.aerofoil is not None or 0.3 < fin.stall < 0.5
            assert fin.plate == PLATE
            assert fin.aerofoil is not None or fin.lift_slope * fin.stall < 1.35, "greatest lift of such fins"


def test_the_command_of_a_stall_is_refused_where_it_does_nothing(config: Callable[..., LoadedConfig]) -> None:
    text = MODEL.format(stall='stall="20 deg"').replace("<fin ", '<fin law="coefficients" per_angle="0 1 0 0 0 0" ')
    with pytest.raises(ConfigError, match="`stall` applies only to law=linear"):
        Simulation(config("<world><bed depth='900 m'/></world>" + text))
