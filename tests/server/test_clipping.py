"""Commands beyond the range of an actuator: clipped, counted, and reported occasionally to pilot, log and table."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import wavesim
from wavesim_sdk.actuators import CLIPPED
from wavesim_sdk.log import read
from wavesim_server import Lab, cli
from wavesim_world.actuators import actuators_of
from wavesim_world.config import library

TWO = '<wavesim><fleet><vehicle name="a" model="lauv" position="0 0 9 m"/><vehicle name="b" model="lauv" position="9 0 9 m"/></fleet></wavesim>'


def test_a_command_in_range_is_no_news() -> None:
    lab = Lab(TWO)
    limits = {a.name: (a.minimum, a.maximum) for a in actuators_of(library()["lauv"])}
    for end in (0, 1):
        lab.commands({"a": {name: both[end] for name, both in limits.items()}})
        # limits as somebody computes them, from degrees and back
        lab.commands({"a": {name: both[end] * (1.0 + 1e-12) for name, both in limits.items()}})
    assert lab.fleet.clipped(lab.row("a")) == {} and lab.fleet.take_clipped() == []


def test_commands_beyond_the_range_are_counted_and_reported_at_powers_of_ten() -> None:
    lab = Lab(TWO)
    a, top = lab.row("a"), actuators_of(library()["lauv"])[1]
    notices = []
    for k in range(1, 1001):
        lab.commands({"a": {"rudder-top": 30.0}, "b": {"rudder-top": 0.1}})
        notices += [(k, row, text) for row, text in lab.fleet.take_clipped()]
    first = (
        f"{CLIPPED}rudder-top accepts {top.minimum:.6g} to {top.maximum:.6g} rad; 30 was limited to {top.maximum:.6g}"
    )
    assert notices == [
        (1, a, first),
        (10, a, f"{first}, for the 10th time"),
        (100, a, f"{first}, for the 100th time"),
        (1000, a, f"{first}, for the 1000th time"),
    ]
    assert lab.fleet.clipped(a) == {"rudder-top": 1000} and lab.fleet.clipped(lab.row("b")) == {}
    lab.commands({"a": {"rudder-top": -30.0, "propeller": 1e9}})
    assert lab.fleet.clipped(a)["propeller"] == 1 and "1e+09 was limited to" in lab.fleet.take_clipped()[0][1]
    lab.run(1.0)
    assert lab.actuation()["actual"][a][1] == pytest.approx(top.minimum, rel=1e-3), "it is clipped as ever"


def test_who_leaves_takes_its_count_along() -> None:
    lab = Lab(TWO)
    a = lab.row("a")
    lab.commands({"a": {"rudder-top": 30.0}})
    lab.leave(a)
    assert lab.fleet.take_clipped() == []
    assert lab.enter("a") == a and lab.fleet.clipped(a) == {}


def test_the_pilot_the_log_and_the_table_get_the_notice(tmp_path: Path) -> None:
    """A whole trial, of a program that takes degrees for radians."""
    (tmp_path / "degrees.py").write_text(
        "import argparse\nfrom wavesim_sdk.broker import Broker\n"
        "p = argparse.ArgumentParser()\n"
        "for n in ('--config', '--vehicle', '--port'): p.add_argument(n)\n"
        "o = p.parse_args()\n"
        "with Broker(o.vehicle, ('127.0.0.1', int(o.port)), lockstep=0.1) as b:\n"
        "    for step in b.steps():\n"
        "        for n in step.notices: print('notice', n.text, flush=True)\n"
        "        b.answer({'rudder-top': 20.0 if o.vehicle == 'a' else 0.1})\n"
    )
    bodies = "".join(
        f'<vehicle name="{n}" model="lauv" position="{k} 0 9 m" client="required"><program run="degrees.py"/>'
        f"<sensors><gps/>{'<ctd/>' if n == 'a' else ''}</sensors></vehicle>"
        for n, k in (("a", 0), ("b", 20))
    )
    (tmp_path / "config.xml").write_text(
        f'<wavesim name="clip-{tmp_path.name[-12:]}"><time step="20 ms" duration="2 s"/><fleet>{bodies}</fleet></wavesim>'
    )
    done = wavesim("trial", tmp_path / "config.xml", "--out", tmp_path / "runs", "--port", "0", "--no-plots", "--quiet")
    assert done.returncode == 0, done.stderr
    log = next((tmp_path / "runs").glob("*/run.mcap"))
    notices = [m for _, m in read(log).json["/notices"]]
    assert {m["body"] for m in notices} == {"a"} and [m["text"].partition(", for the ")[2] for m in notices] == [
        "",
        "10th time",
    ]
    assert notices[0]["text"] in (log.parent / "program-a.txt").read_text(), "its pilot received the notice"
    lines = done.stdout.splitlines()
    assert [x for x in lines if "clipped: rudder-top accepts" in x and x.startswith("a ") and "10th time" in x], (
        done.stdout
    )
    assert [x.split() for x in lines if "without sensor values" in x] == [
        [n, *["fraction", "of", "time", "without", "sensor", "values:", "gps", "100", "%"]] for n in "ab"
    ]
    again = CliRunner().invoke(cli.log, ["report", str(log)])
    assert "clipped: rudder-top" in again.output and "gps 100 %" in again.output
