"""Devices that work only above the water are placed there by default, and a warning is given if the configuration puts
them under water.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.conftest import wavesim
from wavesim_server import Lab
from wavesim_world.config import LoadedConfig, instrument_checks, library
from wavesim_world.config.primitives import shape_of

BARE = "<sensors><gps rate='2 Hz'/><uwb rate='2 Hz'/><anemometer rate='2 Hz'/></sensors>"
SEA = '<time step="20 ms"/><world><waves height="{} m" peak="90 deg/s"/></world>'


@pytest.mark.parametrize("height", [0.2, 1.0])
def test_a_bare_receiver_on_a_surface_vessel_has_a_fix_in_waves(height: float) -> None:
    """Small and large boats and buoys. With the antenna in the origin of the body, four fifths of the fixes were lost."""
    models = {"otter": "vehicle", "sookshma": "vehicle", "jolner": "vehicle", "odin": "vehicle", "buoy": "buoy"}
    bodies = "".join(
        f'<{tag} name="{m}" model="{m}" position="{60 * k} 0 0 m">{BARE}</{tag}>'
        for k, (m, tag) in enumerate(models.items())
    )
    lab = Lab(f"<wavesim>{SEA.format(height)}<fleet>{bodies}</fleet></wavesim>")
    lost = dict.fromkeys(models, 0)
    for _ in range(120):
        lab.run(0.5)
        for name in models:
            lost[name] += len({"gps", "uwb", "anemometer"} - set(lab.sensors(name)))
    assert lost == dict.fromkeys(models, 0), "of 360 values each"


def test_an_underwater_vehicle_has_a_fix_at_the_surface_alone() -> None:
    bodies = "".join(
        f'<vehicle name="{n}" model="lauv" position="{k} 0 {z} m">{BARE}</vehicle>'
        for n, k, z in (("up", 0, 0.05), ("down", 50, 3.0))
    )
    lab = Lab(f"<wavesim><time step='20 ms'/><fleet>{bodies}</fleet></wavesim>")
    found = {"up": 0, "down": 0}
    for _ in range(60):
        lab.run(0.5)
        for name in found:
            found[name] += "gps" in lab.sensors(name)
    assert found == {"up": 60, "down": 0}


@pytest.mark.parametrize("name", sorted(library()))
def test_the_mast_stands_upon_the_hull_of_every_model(name: str, config: Callable[..., LoadedConfig]) -> None:
    model = library()[name]
    tag = "buoy" if model.type == "buoy" else "vehicle"
    loaded = config(
        f'<fleet><{tag} name="a" model="{name}" position="0 0 0 m"><sensors><gps/></sensors></{tag}></fleet>'
    )
    x, y, z = loaded.suite(loaded.config.fleet.bodies[0])[-1].parameters.position
    assert (x, y) == (0.0, 0.0) and -z == pytest.approx(
        shape_of(model).half_size[2] + {"surface": 1.0, "buoy": 0.5, "underwater": 0.25, "aircraft": 0.0}[model.type]
    )
    assert instrument_checks.drowned(loaded) == []


def test_check_says_which_antenna_is_in_the_water(config: Callable[..., LoadedConfig]) -> None:
    """Of surface vessels; an underwater vehicle's is there most of the time. It is reported, and is not an error."""
    loaded = config(
        '<fleet><vehicle name="boat" model="otter" position="0 0 0 m"><sensors><gps position="0 0 0 m"/><ais mmsi="211000001" position="0 0 0.1 m"/>'
        '<radar/><anemometer position="0 0 -1 m"/><ctd/></sensors></vehicle>'
        '<vehicle name="auv" model="lauv" position="9 0 5 m"><sensors><gps position="0 0 0 m"/></sensors></vehicle></fleet>'
    )
    said = instrument_checks.drowned(loaded)
    assert [x.partition(" is at ")[0] for x in said] == ["'boat': 'gps'", "'boat': 'ais'"] and "waterline" in said[0]
    done = wavesim("check", loaded.path, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["warnings"] == said
    assert [x in done.stderr for x in said] == [True, True]


def test_a_place_is_a_mast_or_numbers(config: Callable[..., LoadedConfig]) -> None:
    text = '<fleet><vehicle name="a" model="otter" position="0 0 0 m"><sensors><gps position="{}"/></sensors></vehicle></fleet>'
    for said in ("mast", "0 0 -1.195 m"):
        loaded = config(text.format(said))
        assert loaded.suite(loaded.config.fleet.vehicle[0])[0].parameters.position == pytest.approx((0.0, 0.0, -1.195))
    with pytest.raises(Exception, match="position"):
        config(text.format("masthead"))
