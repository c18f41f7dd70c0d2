"""Rows, periods and faults of the instruments of a fleet, without shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wavesim_sdk.tables import SensorFault
from wavesim_server.instruments import DueTicks, InstrumentRegistry
from wavesim_server.watchdog import NEVER
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
STEP_NS = 4_000_000
FLEET = """<shared vehicles="5"/>
<fleet><sensors><gps rate="5 Hz"/><ahrs rate="10 Hz"/></sensors>
<vehicle name="bare" model="otter" position="0 0 0 m"><sensors inherit="no"/></vehicle>
<vehicle name="two" model="lauv" position="0 0 5 m"><sensors><dvl name="dvl-down"/><ctd rate="2 Hz"/><dvl name="dvl-up" attitude="180 0 0 deg" rate="2 Hz"/>
<ahrs rate="50 Hz"/></sensors></vehicle>
<buoy name="float" model="buoy" position="0 20 0 m"><sensors><leak compartments="bow stern"/></sensors></buoy></fleet>"""


@pytest.fixture
def loaded(config: Make) -> LoadedConfig:
    return config(FLEET)


def made(loaded: LoadedConfig) -> InstrumentRegistry:
    """With every body of the configuration in its row."""
    found = InstrumentRegistry(loaded.sensor_rows, STEP_NS)
    for row, body in enumerate(loaded.config.fleet.bodies):
        found.enter(row, loaded.suite(body))
    return found


def test_room_for_everybody_and_for_newcomers(loaded: LoadedConfig) -> None:
    # two of the five rows are free; a newcomer carries what the fleet gives
    assert loaded.sensor_rows == {"ahrs": 3, "ctd": 1, "dvl": 2, "gps": 3, "leak": 1}


def test_a_row_for_each_instrument(loaded: LoadedConfig) -> None:
    rows = made(loaded).rows
    mine = rows[rows["body"] == 1]
    assert mine["name"].tolist() == [b"gps", b"ahrs", b"dvl-down", b"ctd", b"dvl-up"], (
        "the fleet's first, replaced in place"
    )
    assert mine["number"].tolist() == [0, 1, 2, 3, 4] and mine["place"].tolist() == [0, 0, 0, 0, 1]
    assert mine["period"].tolist() == [50, 5, 36, 125, 125]
    assert (rows["body"] == 0).sum() == 0 and (rows["body"] == -1).sum() == len(rows) - 6
    assert rows[rows["body"] == 2]["type"].tolist() == [b"leak"], "no GPS of the fleet on a buoy"


def test_rows_are_used_again_under_another_generation(loaded: LoadedConfig) -> None:
    i = made(loaded)
    before = i.rows[i.rows["body"] == 1].copy()
    i.set_fault(1, "ctd", "lost")
    i.leave(1)
    assert (i.rows["body"] == 1).sum() == 0 and i.periods("dvl") == () and i.periods("leak") == (25,)
    i.enter(3, loaded.suite_of_model("lauv"))
    i.enter(1, loaded.suite(loaded.config.fleet.bodies[1]))
    after = i.rows[i.rows["body"] == 1]
    assert not after["fault"].any(), "a fault stays with the body that had it"
    at = {(r["type"], r["place"]): r["generation"] for r in before}
    again = [r["generation"] for r in (*after, *i.rows[i.rows["body"] == 3]) if (r["type"], r["place"]) in at]
    assert again == [2] * 5
    i.leave(1)
    i.leave(1)
    assert i.installed(1) == ()


def test_the_places_of_instruments_that_are_gone_are_nobodys(loaded: LoadedConfig) -> None:
    i = made(loaded)
    places, generations, whose = i.occupied("gps")
    assert places.tolist() == [0] and generations.tolist() == [1] and whose.tolist() == [[1, 0]]
    i.leave(1)
    assert [found.tolist() for found in i.occupied("gps")] == [[], [], []]


def test_no_room_changes_nothing(loaded: LoadedConfig) -> None:
    i = made(loaded)
    before = i.rows.copy()
    suite = loaded.suite(loaded.config.fleet.bodies[1])
    with pytest.raises(
        ValueError, match=r"no room for 1 more sensors of type 'ctd'|no room for 2 more sensors of type 'dvl'"
    ):
        i.enter(3, suite)
    assert (i.rows == before).all() and i.installed(3) == ()
    i.enter(3, ())
    with pytest.raises(ValueError, match="already has its instruments"):
        i.enter(3, ())


def test_when_a_type_is_due(loaded: LoadedConfig) -> None:
    i = made(loaded)
    assert sorted(i.periods("dvl")) == [36, 125]
    ticks = DueTicks(i, ["dvl"])
    assert ticks.take(0) == ["dvl"] and ticks.next_tick(0) == 36
    due = [t for t in range(1, 253) if ticks.take(t)]
    assert due == sorted({*range(36, 253, 36), *range(125, 253, 125)})
    tick, found = 0, []
    while (tick := i.next_due("dvl", tick) or 0) < 253:
        found.append(tick)
    assert found == due
    i.leave(1)
    assert i.next_due("dvl", 252) is None
    assert ticks.take(288) == [] and ticks.next_tick(288) == NEVER and ticks.after(288) == {}
    i.enter(1, loaded.suite(loaded.config.fleet.bodies[1]))
    assert ticks.after(288) == {"dvl": i.next_due("dvl", 288)}, "of a body that has entered"
    assert ticks.take(2 * 36 * 125) == ["dvl"], "also after ticks at which nobody looked"


def test_a_value_that_comes_late_is_asked_for_when_it_comes_out(config: Make) -> None:
    """Measured at each 125th tick, out 50 ms later: the emulator is asked at both."""
    loaded = config(
        '<fleet><vehicle name="a" model="lauv" position="0 0 5 m"><sensors><ctd rate="2 Hz" latency="50 ms"/></sensors></vehicle></fleet>'
    )
    i = made(loaded)
    assert i.periods("ctd") == (125,)
    due = [t for t in range(1, 400) if DueTicks(i).take(t)]
    assert due == [13, 125, 138, 250, 263, 375, 388]
    tick, found = 0, []
    while (tick := i.next_due("ctd", tick) or 0) < 400:
        found.append(tick)
    assert found == due


def test_faults_of_fields(loaded: LoadedConfig) -> None:
    i = made(loaded)

    def of(body: int, name: str) -> tuple[int, int, int, float]:
        r = i.rows[(i.rows["body"] == body) & (i.rows["name"] == name.encode())][0]
        return int(r["fault"]), int(r["fault_first"]), int(r["fault_count"]), float(r["fault_amount"])

    i.is_changed = False
    i.set_fault(1, "ahrs", "bias", "5 deg", "heading")
    assert i.is_changed and of(1, "ahrs") == (SensorFault.BIAS, 2, 1, pytest.approx(np.radians(5.0)))
    i.set_fault(1, "ahrs", "bias", 0.1, "rates")
    assert of(1, "ahrs") == (SensorFault.BIAS, 3, 3, 0.1)
    i.set_fault(1, "ahrs", "bias", "-2 deg/s", "rates.2")
    assert of(1, "ahrs") == (SensorFault.BIAS, 5, 1, pytest.approx(np.radians(-2.0)))
    i.set_fault(1, "ctd", "lost")
    assert of(1, "ctd") == (SensorFault.LOST, 0, 4, 0.0)
    i.set_fault(2, "leak", "wet", "bow")
    i.set_fault(2, "leak", "wet", "stern")
    assert of(2, "leak")[3] == 3.0, "one compartment more"
    i.set_fault(2, "leak", "none")
    i.set_fault(2, "leak", "wet", "bow")
    assert of(2, "leak")[3] == 1.0


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (("ahrs", "bias", "5 deg"), "have different units; name one of them: roll, pitch, heading, rates"),
        (("ahrs", "bias", "5", "heading"), "'5' has no unit; write one of deg, rad"),
        (("ahrs", "bias", "5 m", "heading"), "'m' is not a unit of angle"),
        (("ahrs", "bias", "5 deg", "yaw"), "has no field 'yaw'; use one of roll, pitch, heading, rates"),
        (("ahrs", "bias", "5 deg/s", "rates.3"), r"rates\.0 to rates\.2"),
        (("ahrs", "bias", float("nan"), "heading"), "not finite"),
        (("gps", "spikes", 2.0), "spike probability must be between 0 and 1"),
        (("gps", "noisy", -1.0), "noise factor must be at least 0"),
        (("gps", "loss"), "unknown sensor fault 'loss'; did you mean 'lost'"),
        (("gps", "unlocked"), "applies only to the sensor type 'dvl'"),
        (("dvl-up", "unlocked", 0.0, "bottom"), "whole instrument"),
        (("gsp", "lost"), "no sensor named 'gsp'; did you mean 'gps'"),
    ],
)
def test_faults_that_cannot_be(loaded: LoadedConfig, fault: tuple[str, ...], text: str) -> None:
    i = made(loaded)
    before = i.rows.copy()
    with pytest.raises(ValueError, match=text):
        i.set_fault(1, *fault)
    assert (i.rows == before).all()


def test_a_body_without_instruments(loaded: LoadedConfig) -> None:
    with pytest.raises(ValueError, match="no sensor named 'gps'; this body has no sensors"):
        made(loaded).set_fault(0, "gps", "lost")
