"""The engine as a library for notebooks: instruments in the process, repeated runs, and output."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError, InvalidArgument, UnknownName
from wavesim_server import Lab, Simulation
from wavesim_server.in_process.notebook import Trial
from wavesim_world.ocean.water import depth_of_pressure

SEA = """<wavesim><shared vehicles="16"/><fleet><sensors><ctd/><ahrs rate="20 Hz" latency="30 ms"/></sensors>
<vehicle name="boat" model="jolner" position="0 50 0 m" client="none"/></fleet></wavesim>"""


@pytest.fixture(scope="module")
def lab() -> Lab:
    """Five AUVs beside a boat, ten seconds on."""
    lab = Lab(SEA, seed=7)
    for k in range(5):
        lab.enter(f"auv{k}", "lauv", (0.0, 20.0 * k, 15.0))
    drive(lab)
    return lab


def drive(lab: Lab) -> None:
    lab.commands({f"auv{k}": {"propeller": 4.0 + k} for k in range(5)})
    lab.ping(lab.row("auv0"), 25e3)
    lab.run(10.0, every=0.5)


def everything(lab: Lab) -> tuple[bytes, str, str, int]:
    values = "".join(repr(lab.sensors(name)) for name in lab.names)
    return lab.state().tobytes(), values, repr(lab.states()), len(lab.tracks)


def test_instruments_tell_what_the_emulators_would(lab: Lab) -> None:
    """Due as their rates say, late as their latencies; the noise is that of the seed."""
    true = lab.states()["auv3"]
    sensors = lab.sensors("auv3")
    assert depth_of_pressure(lab.config.world, sensors.ctd.pressure) == pytest.approx(true["depth"], abs=0.05)
    assert math.degrees(sensors.ahrs.pitch) == pytest.approx(true["pitch"], abs=0.5) and sensors.ahrs.rates[0] != 0.0
    assert sensors.ahrs.time_ns == 9_936_000_000, "every 12 ticks, 30 ms on its way: that of 9.984 s is not there yet"
    assert sensors.ctd.time_ns == 10_000_000_000


def test_all_of_it_repeats_exactly(lab: Lab) -> None:
    """And with another seed the motion is the same in still water, the noise another."""
    heard = lab.heard()
    before = everything(lab)
    lab.reset()
    assert lab.tick == 0 and lab.names == ["boat", *(f"auv{k}" for k in range(5))] and not lab.tracks
    drive(lab)
    assert everything(lab) == before
    assert heard and lab.heard() == heard and heard[0]["source"] == "auv0"
    assert [h["receiver"] for h in heard[:2]] == ["auv1", "auv2"]
    assert heard[0]["time"] == pytest.approx(20.0 / 1500.0, rel=0.01)
    lab.reset(seed=8)
    drive(lab)
    again = everything(lab)
    assert again[0] == before[0] and again[1] != before[1]
    lab.heard()


def test_commands_of_many_are_taken_all_or_none(lab: Lab) -> None:
    before = lab.actuation().tobytes()
    with pytest.raises(ValueError, match="propeler"):
        lab.commands({"auv0": {"propeller": 1.0}, "auv1": {"propeler": 1.0}})
    with pytest.raises(KeyError, match="did you mean 'auv1'"):
        lab.commands({"auv0": {"propeller": 1.0}, "auv1x": {"propeller": 1.0}})
    assert lab.actuation().tobytes() == before


def test_what_cannot_be_is_said_and_not_passed_over(lab: Lab) -> None:
    for run in ((-1.0, 0.0), (math.nan, 0.0), (math.inf, 0.0), (1.0, -1.0), (1.0, math.nan)):
        with pytest.raises(InvalidArgument, match=r"(seconds|every) must be (at least 0|a finite number of) s, got"):
            lab.run(*run)
    for advance in (lab.advance, Lab().advance):
        with pytest.raises(ValueError, match="invalid number of ticks"):
            advance(-1)
    with pytest.raises(ValueError, match=r"record them with run\(seconds, every=0.5\)"):
        Lab().plot()
    with pytest.raises(ValueError, match="use an integer from 0 to"):
        Lab(seed=-1)


def test_what_a_notebook_shows(lab: Lab, tmp_path: Path) -> None:
    assert repr(lab) == "<Lab 'wavesim' at 10.000 s: 6 bodies (boat, auv0, auv1, auv2, auv3, auv4)>"
    states = lab.states()
    assert len(repr(states).splitlines()) == 7 and "<td>auv4</td>" in states._repr_html_()
    assert states["auv4"]["north"] > states["auv0"]["north"] > 1.0, "a higher command goes farther"
    with pytest.raises(KeyError, match="did you mean 'auv1'"):
        states["auv1x"]
    assert [t for t, *_ in lab.tracks] == pytest.approx([0.5 * k for k in range(21)])
    figure = lab.plot()
    figure.savefig(tmp_path / "tracks.png")
    assert len(figure.axes[0].lines) == 6 and np.allclose(
        figure.axes[0].lines[1].get_ydata()[-1], states["auv0"]["north"]
    )
    chart, depths = (axes.get_position() for axes in figure.axes)
    assert chart.height > 0.9 * depths.height and chart.width > 0.9 * depths.width, (
        "no blank bands beside a straight way"
    )


def test_a_text_finds_its_files_in_a_folder(tmp_path: Path) -> None:
    """Also programs, which a Lab does not start; the same text without a folder is refused."""
    (tmp_path / "bed.txt").write_text("0 0 40\n100 0 40\n0 100 40\n")
    (tmp_path / "program.py").write_text("")
    text = (
        '<wavesim><world><bed depth="30 m"/><soundings file="bed.txt"/></world><fleet><vehicle name="a" model="lauv" '
        'position="10 10 5 m" client="optional"><program run="program.py"/></vehicle></fleet></wavesim>'
    )
    (tmp_path / "config.xml").write_text(text)
    lab, same = Lab(text, folder=tmp_path), Lab(tmp_path / "config.xml")
    assert lab.loaded.digest == same.loaded.digest
    assert lab.loaded.data_file("bed.txt").read_text() == same.loaded.data_file("bed.txt").read_text()
    with pytest.raises(ConfigError, match=r"^configuration: file 'bed.txt' does not exist; pass `folder`"):
        Lab(text)
    include = '<wavesim><models><include file="mine.xml"/></models></wavesim>'
    with pytest.raises(ConfigError, match=r"^mine.xml: cannot read the file: .*; pass `folder`"):
        Lab(include)
    with pytest.raises(ConfigError, match=r"^configuration:2: <bed> has no key 'file'; allowed: [a-z_, ]*$"):
        Lab('<wavesim>\n<world><bed file="bed.txt"/></world></wavesim>')
    with pytest.raises(InvalidArgument, match="a Trial needs the path of a configuration file"):
        Trial(text)
    with pytest.raises(InvalidArgument, match=r"a Simulation needs the result of wavesim_world\.config\.load"):
        Simulation(text)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"file '.*' does not exist"):
        Lab(text, folder=tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="given as text"):
        Lab(tmp_path / "config.xml", folder=tmp_path)


def test_a_full_lab_says_where_to_make_room() -> None:
    lab = Lab('<wavesim><shared vehicles="1"/></wavesim>')
    lab.enter("a", "lauv", (0.0, 0.0, 5.0))
    with pytest.raises(ValueError, match='all 1 rows are in use; increase <shared vehicles="N"/>'):
        lab.enter("b", "lauv", (0.0, 9.0, 5.0))


def test_the_first_values_need_no_tick_and_reading_them_changes_nothing() -> None:
    """They were empty until `advance(0)`; a program that reads its instruments first went another way than in a trial."""

    def made() -> Lab:
        return Lab(
            '<wavesim><fleet><sensors><ctd/><ahrs/></sensors><vehicle name="a" model="lauv" position="0 0 5 m"/></fleet></wavesim>'
        )

    lab, unread = made(), made()
    first = lab.sensors("a")
    assert first.ctd.pressure == pytest.approx(15.15, abs=0.1) and first.ahrs.time_ns == 0 and lab.tick == 0
    for each in (lab, unread):
        each.set_pose(each.row("a"), (0.0, 0.0, 30.0))
        each.enter("b", "lauv", (0.0, 50.0, 5.0))
    assert lab.sensors("a").ctd.pressure == pytest.approx(40.3, abs=0.1), "as the pose is now"
    unread.advance(0)
    for seconds in (0.0, 2.5):
        lab.run(seconds)
        unread.run(seconds)
        assert [repr(lab.sensors(n)) for n in "ab"] == [repr(unread.sensors(n)) for n in "ab"]


def test_reading_instruments_leaves_the_frames_alone() -> None:
    """Before the first tick, a reading of the CTD computed all images and discarded those of `advance(0)`."""
    lab = Lab(
        """<wavesim><fleet><vehicle name="a" model="lauv" position="0 0 5 m"><sensors inherit="no"><ctd/>
<camera name="eye" rate="5 Hz" width="32" height="24"/></sensors></vehicle></fleet></wavesim>""",
        imaging=True,
    )
    camera = lab._banks.by_type["camera"]
    computed: list[int] = []
    compute = camera.compute

    def counted(view: Any, tick: int) -> None:
        computed.append(tick)
        compute(view, tick)

    camera.compute = counted
    assert "ctd" in lab.sensors("a") and "eye" not in lab.sensors("a") and not computed
    with pytest.raises(UnknownName):
        lab.sensors("b")
    assert not list(lab.records("a")), "also after an error, the state is that before the first tick"
    lab.advance(0)
    assert computed == [0] and {"ctd", "eye"} <= set(lab.sensors("a"))
    (first,) = lab.take_frames()
    lab.run(0.2)
    (second,) = lab.take_frames()
    assert [int(f.record["number"]) for f in (first, second)] == [1, 2]
