"""The instruments of a body: those of the fleet, of its model, and its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.sensors import find_columns, sensor_table, sensor_table_of
from wavesim_sdk.tables import integer, value
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]

MODEL = """<models><model name="sub" type="underwater"><cylinder length="2 m" radius="0.1 m"/><mass value="60 kg"/>
<inertia xx="0.3" yy="20" zz="20"/><added-mass diagonal="1 60 60 0.1 20 20"/><linear-drag diagonal="5 50 50 1 20 20"/>
<sensors{model_attributes}>{model}</sensors></model></models>"""
FLEET = """<fleet><sensors>{fleet}</sensors><vehicle name="a" model="sub" position="0 0 5 m"><sensors{attributes}>{own}</sensors></vehicle>
<buoy name="b" model="buoy" position="0 0 0 m"/></fleet>"""


def suite(config: Make, name: str = "a", **parts: str) -> list[str]:
    empty = {"fleet": "", "model": "", "own": "", "attributes": "", "model_attributes": ""}
    loaded = config((MODEL + FLEET).format(**empty | parts))
    body = next(b for b in loaded.config.fleet.bodies if b.name == name)
    return [f"{i.name}:{i.type}@{i.parameters.rate:g}" for i in loaded.suite(body)]


def test_the_fleets_the_models_and_its_own_in_document_order(config: Make) -> None:
    found = suite(
        config,
        fleet='<gps rate="1 Hz"/><ahrs rate="1 Hz"/>',
        model='<dvl name="down" rate="2 Hz"/><ctd rate="2 Hz"/><dvl name="up" rate="2 Hz"/>',
        own='<sound-velocity rate="3 Hz"/><ahrs rate="3 Hz"/><dvl name="up" rate="3 Hz"/><gps name="mast" rate="3 Hz"/>',
    )
    assert found == [
        "gps:gps@1",
        "ahrs:ahrs@3",
        "down:dvl@2",
        "ctd:ctd@2",
        "up:dvl@3",
        "sound_velocity:sound_velocity@3",
        "mast:gps@3",
    ]


def test_a_name_may_take_another_type(config: Make) -> None:
    assert suite(config, model='<ctd name="probe"/>', own='<temperature name="probe"/>') == ["probe:temperature@10"]


def test_what_is_not_inherited(config: Make) -> None:
    parts = {"fleet": "<gps/>", "model": "<ctd/>", "own": "<dvl/>"}
    assert suite(config, **parts, attributes=' inherit="no"') == ["dvl:dvl@7"]
    assert suite(config, **parts, model_attributes=' inherit="no"') == ["ctd:ctd@10", "dvl:dvl@7"]
    assert suite(config, "b", **parts) == [], "what the fleet gives is for vehicles"


def test_a_body_that_joins_by_a_model(config: Make) -> None:
    loaded = config(
        (MODEL + FLEET).format(fleet="<gps/>", model="<ctd/>", own="<dvl/>", attributes="", model_attributes="")
    )
    assert [i.name for i in loaded.suite_of_model("sub")] == ["gps", "ctd"]
    assert [i.name for i in loaded.suite_of_model("lauv")] == ["gps"] and loaded.suite_of_model("buoy") == ()
    assert loaded.suite_by_name("a", "lauv") == loaded.suite(loaded.config.fleet.bodies[0])
    assert loaded.suite_by_name("newcomer", "sub") == loaded.suite_of_model("sub")


def test_instruments_that_differ_in_name_and_mounting_only_are_of_a_kind(config: Make) -> None:
    loaded = config(
        '<fleet><vehicle name="a" model="lauv" position="0 0 5 m"><sensors><dvl name="x" position="1 0 0 m"/>\n'
        '<dvl name="y" attitude="180 0 0 deg" noise="0"/><dvl name="z" maximum="50 m"/></sensors></vehicle></fleet>'
    )
    x, y, z = loaded.suite(loaded.config.fleet.bodies[0])
    assert x.batch_key == y.batch_key != z.batch_key and hash(x.batch_key) == hash(y.batch_key)
    assert x.period(0.004) == 36 and x.period(1.0) == 1


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"own": "<ctd/>\n<ctd/>"}, "'a': two sensors are named 'ctd'; give each a unique name"),
        ({"model": '<ctd name="x"/><dvl name="x"/>'}, "model 'sub': two sensors are named 'x'"),
        ({"own": '<ctd name="a b"/>'}, "invalid sensor name 'a b': use 1 to 31 letters"),
        ({"own": '<sensor type="thermal"/>'}, "'a': unknown sensor type 'thermal'; use one of adcp, ahrs,"),
        ({"own": "<sensor/>"}, "needs the key 'type'"),
        ({"fleet": "<scalar/>"}, "the fleet has a sensor <scalar>, but the world declares no <scalar>"),
        ({"own": '<leak compartments="bow bow"/>'}, "'a': 'leak': `compartments` must contain 1 to 4 different names"),
        (
            {"own": '<dvl><beam azimuth="0 deg"/><beam azimuth="90 deg"/><beam azimuth="180 deg"/></dvl>'},
            "are not all in one plane",
        ),
        ({"own": "<dvl>" + '<beam elevation="60 deg"/>' * 5 + "</dvl>"}, "5 beams; the maximum is 4"),
        ({"own": "<ranger>" + "<beam/>" * 9 + "</ranger>"}, "9 beams; the maximum is 8"),
        ({"own": '<echosounder minimum="5 m" maximum="5 m"/>'}, "`maximum` must be greater than `minimum`"),
    ],
)
def test_suites_that_cannot_be(config: Make, parts: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace("(", r"\(")) as refused:
        suite(config, **parts)
    assert refused.value.line


def test_the_fleet_inherits_from_nobody(config: Make) -> None:
    with pytest.raises(ConfigError, match="of the fleet cannot inherit"):
        config('<fleet><sensors inherit="no"/></fleet>')


def test_columns_of_a_field() -> None:
    table = sensor_table_of("dvl")
    assert find_columns(table, "bottom") == (0, 3, "m/s") and find_columns(table, "water") == (3, 3, "m/s")
    assert find_columns(table, "ranges.3") == (13, 1, "m") and find_columns(table, "locked") == (15, 1, "")
    for wrong in ("tick", "valid", "ranges.4", "ranges.", "ranges.-1", "altitude.1", ""):
        with pytest.raises(ValueError, match=r"has no field|invalid field"):
            find_columns(table, wrong)


def test_hidden_columns_stand_last_and_are_not_sent() -> None:
    table = sensor_table("x", "", (value("a", "m", "", 2),), (value("bias", "m", ""),))
    assert table.visible.dtype.names == ("tick", "time_ns", "valid", "sequence", "a")
    assert table.dtype.names[-1] == "bias" and table.dtype.itemsize > table.visible.dtype.itemsize  # type: ignore[index]
    assert all(table.dtype.fields[n] == table.visible.dtype.fields[n] for n in table.visible.dtype.names)  # type: ignore[index,union-attr]
    with pytest.raises(ValueError, match="value 'a' must have type f8"):
        sensor_table("x", "", (integer("a", "", ""),))
