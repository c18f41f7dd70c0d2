"""Every refusal of the configuration names file, line, the value found and the allowed values."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from wavesim_sdk import units
from wavesim_sdk.errors import ConfigError
from wavesim_world.config import LoadedConfig, export, library, load

BODY = '<fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>'


def test_every_shipped_file_is_well_formed(root: Path) -> None:
    """Also those that need data which the project does not ship, so that no test loads them."""
    files = [p for folder in ("examples", "world", "docs") for p in (root / folder).rglob("*.xml")]
    assert len(files) > 25
    for file in files:
        etree.parse(file)


@pytest.mark.parametrize(
    ("text", "quantity", "value"),
    [
        ("15 ms", "time", 0.015),
        ("2 kn", "speed", 2 * 1852 / 3600),
        ("90 deg", "angle", math.pi / 2),
        ("-1.5e-3 1/m", "inverse length", -1.5e-3),
        ("25 kHz", "frequency", 25e3),
        ("5 dB/km", "attenuation", 0.005),
        ("42.914 mS/cm", "conductivity", 4.2914),
        ("7", "", 7.0),
        ("1500 rpm", "rotation", 25.0),
    ],
)
def test_quantities(text: str, quantity: str, value: float) -> None:
    assert units.parse(text, quantity) == pytest.approx((value,), rel=1e-15)


@pytest.mark.parametrize(
    ("text", "quantity", "message"),
    [
        ("15", "time", "has no unit"),
        ("15 m", "time", "is not a unit of time"),
        ("15 s", "", "pure number"),
        ("abc", "time", "not a number"),
        ("1 2 s", "time", "2 number"),
        ("1e999 s", "time", "not finite"),
    ],
)
def test_bad_quantities(text: str, quantity: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        units.parse(text, quantity)


def test_a_good_file(config: Callable[..., LoadedConfig]) -> None:
    loaded = config('<time step="20 ms"/>' + BODY, name="x")
    assert loaded.config.time.step == 0.02
    assert loaded.config.acoustics.sound_speed == 1500.0
    assert loaded.config.fleet.bodies[0].position == (0.0, 0.0, 5.0)
    assert len(loaded.digest) == 64


@pytest.mark.parametrize(
    ("inner", "message", "line"),
    [
        ('<time stepp="4 ms"/>', "<time> has no key 'stepp'; did you mean 'step'?", 2),
        ("\n<tyme/>", "<wavesim> has no element <tyme>; did you mean 'time'?", 3),
        ('<time step="4"/>', "has no unit; write one of s, ms", 2),
        ('<time step="4 m"/>', "'m' is not a unit of time", 2),
        ('<time step="4 s"/>', "4 s is above the maximum, 0.1 s", 2),
        ('<time pace="quick"/>', "'quick' is not allowed; allowed: realtime, fast", 2),
        ('<shared group="true"/>', "write yes or no", 2),
        ('<network port="99999"/>', "above the maximum", 2),
        ('<world><current north="1000 m/s"/></world>', "1000 m/s is above the maximum, 20 m/s", 2),
        ('<network port="x"/>', "not a whole number", 2),
        ("<time/><time/>", "may occur only once", 2),
        ("hello", "contains text", 1),
        (
            '<fleet><buoy name="b" model="bouy" position="0 0 5 m"/></fleet>',
            "unknown model 'bouy'; did you mean 'buoy'?",
            2,
        ),
        ('<fleet><buoy name="b" model="buoy"/></fleet>', "<buoy> needs the key 'position'", 2),
        ('<fleet><vehicle name="b" model="buoy" position="0 0 5 m"/></fleet>', "write it as <buoy>", 2),
        (
            '<fleet><vehicle name="a" model="lauv" position="0 0 -5 m"/></fleet>',
            "would start 4.45 m above the water",
            2,
        ),
        ('<fleet><buoy name="b c" model="buoy" position="0 0 5 m"/></fleet>', "use 1 to 31 letters", 2),
        (
            BODY.replace("</fleet>", '\n<buoy name="b" model="buoy" position="0 0 5 m"/></fleet>'),
            "duplicate body name 'b'",
            3,
        ),
        ('<network address="10.0.0.1"/>', "not loopback", 0),
        ('<network address="example"/>', "not an IP address", 0),
        ('<world><waves height="10 m"/><bed depth="6 m"/></world>', "cannot exist in 6 m of water", 0),
        ('<world gravity="0 m/s2"><waves height="1 m"/></world>', "waves cannot exist without gravity", 0),
        ('<world gravity="0 m/s2"><waves beaufort="3"/></world>', "waves cannot exist without gravity", 0),
        ('<world gravity="1e-310 m/s2"/>', "use 0 m/s2 or at least 0.001 m/s2", 0),
        ('<world><soundings file="none.ini"/></world>', "file 'none.ini' does not exist", 0),
    ],
)
def test_refusals(config: Callable[..., LoadedConfig], inner: str, message: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        config(inner)
    assert message in str(caught.value)
    assert caught.value.line == line
    assert ".xml" in str(caught.value)


MODEL = """<models><model name="m" type="buoy"><sphere diameter="1 m"/><mass value="1 kg"/>
<inertia xx="1" yy="1" zz="1"/><added-mass diagonal="1 1 1 0 0 0"/><linear-drag diagonal="1 1 1 1 1 1"/>
<quadratic-drag diagonal="1 1 1 1 1 1"/></model></models>"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<mass value="1 kg"/>', '<mass value="-1 kg"/>', "below the minimum"),
        ('<mass value="1 kg"/>', '<mass value="500 g"/>', "its mass is 0.5 kg, but it displaces 537 kg"),
        ('<mass value="1 kg"/>', '<mass value="500 t"/>', "check the units of both"),
        ('<mass value="1 kg"/>', "", "needs the element <mass>"),
        ('xx="1"', 'xx="9"', "impossible <inertia>"),
        ('xx="1" yy="1"', 'xx="0" yy="1"', "not positive definite"),
        ('diagonal="1 1 1 0 0 0"', 'diagonal="-1 1 1 0 0 0"', "negative eigenvalue"),
        ('diagonal="1 1 1 0 0 0"', "", "needs either"),
        ('diagonal="1 1 1 0 0 0"', 'diagonal="1 1 1"', "3 number(s), expected 6"),
        ('<sphere diameter="1 m"/>', "", "exactly one geometry"),
        (
            '<added-mass diagonal="1 1 1 0 0 0"/>',
            f"<added-mass>{'1 0 0 0 0 0 0 1 0 0 0 0 0 0 1 0 0.9 0 ' + '0 ' * 10 + '1 ' + '0 ' * 7}</added-mass>",
            "far from symmetric: element 3,5 is 0.9",
        ),
        ('<inertia xx="1" yy="1" zz="1"/>', '<rigid-body diagonal="1 1 1 0 1 1"/>', "singular or has a negative mass"),
        ("</model>", '<rigid-body diagonal="1 1 1 1 1 1"/></model>', "either <inertia> or <rigid-body>"),
        ("</model>", '<restoring diagonal="1 0 0 0 0 0"/></model>', "only columns 3, 4, 5"),
        ("</model>", '<load mass="1 kg" position="0 0 0 m"/></model>', "<load> needs <restoring>"),
        ("</model>", '<memory source="u" force="X" a="1 1 -1" c="1 1 1"/></model>', "unstable"),
        ('type="buoy"', 'type="buoy" active="u x"', "list the free degrees of freedom"),
        ('type="buoy"', 'type="buoy" coriolis_without="64"', "is not allowed; choose from 15"),
    ],
)
def test_models_are_checked(config: Callable[..., LoadedConfig], old: str, new: str, message: str) -> None:
    config(MODEL)
    with pytest.raises(ConfigError, match=None) as caught:
        config(MODEL.replace(old, new))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<wavesim><time></wavesim>", "not well-formed"),
        ("", "not well-formed"),
        ("<other/>", "expected <wavesim>"),
        (
            '<!DOCTYPE w [<!ENTITY e SYSTEM "file:///etc/passwd">]><wavesim name="&e;"/>',
            "document types and entities are not allowed",
        ),
        ('<!DOCTYPE w [<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;">]><wavesim>&b;</wavesim>', "not allowed"),
        ('<!DOCTYPE wavesim SYSTEM "http://127.0.0.1:1/x.dtd"><wavesim/>', "not allowed"),
    ],
)
def test_unsafe_or_broken_xml(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.xml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(path)


def test_a_missing_and_a_huge_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "none.xml")
    big = tmp_path / "big.xml"
    big.write_bytes(b"<wavesim>" + b" " * 5_000_000 + b"</wavesim>")
    with pytest.raises(ConfigError, match="the maximum is 4194304"):
        load(big)


def test_includes_stay_in_their_folder(tmp_path: Path) -> None:
    (tmp_path / "models.xml").write_text(MODEL)
    (tmp_path / "c.xml").write_text('<wavesim><models><include file="models.xml"/></models></wavesim>')
    assert "m" in load(tmp_path / "c.xml").models
    (tmp_path / "c.xml").write_text('<wavesim><models><include file="../x.xml"/></models></wavesim>')
    with pytest.raises(ConfigError, match="outside"):
        load(tmp_path / "c.xml")
    (tmp_path / "models.xml").write_text('<models><include file="models.xml"/></models>')
    (tmp_path / "c.xml").write_text('<wavesim><models><include file="models.xml"/></models></wavesim>')
    with pytest.raises(ConfigError, match="more than once"):
        load(tmp_path / "c.xml")


def test_the_library_cites_its_sources() -> None:
    assert {"lauv", "remus100", "jolner", "buoy"} <= library().keys()
    for model in library().values():
        assert model.source and model.validated and model.title, model.name


def test_a_configuration_is_read_with_models_of_the_library_where_no_package_offers_more(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no installed package declares models by an entry point."""
    library.cache_clear()
    monkeypatch.setattr(sys.modules["wavesim_world.config.build"], "entry_points", lambda **_: ())
    try:
        assert load(root / "config.xml").models["lauv"].type == "underwater"
    finally:
        library.cache_clear()


def test_the_schema_agrees_with_the_reader(root: Path) -> None:
    schema = etree.XMLSchema(etree.fromstring(export.xsd()))
    for path in [root / "config.xml", *(root / "world/wavesim_world/models").glob("*.xml")]:
        assert schema.validate(etree.parse(str(path))), f"{path}: {schema.error_log}"
    for bad in (
        '<time stepp="4 ms"/>',
        "<tyme/>",
        '<time step="4"/>',
        '<time step="4 m"/>',
        '<time pace="quick"/>',
        '<network port="x"/>',
    ):
        assert not schema.validate(etree.fromstring(f"<wavesim>{bad}</wavesim>")), bad


def test_a_vehicles_computer_reads_it_without_the_simulator(config: Callable[..., LoadedConfig]) -> None:
    """Models of the library are the SDK's: where no other part of ours is installed, a configuration that names one is read."""
    path = config('<fleet><vehicle name="a" model="lauv" position="0 0 5 m"/></fleet>').path
    others = [f"wavesim_{part}" for part in ("server", "emulators", "viz", "bridges", "studies")]
    code = f"import sys; sys.modules.update(dict.fromkeys({others})); from wavesim_world.config import load; print(load({str(path)!r}).model('lauv').name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "lauv\n", done.stderr
