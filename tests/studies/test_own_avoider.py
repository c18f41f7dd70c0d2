"""Avoiders that users provide: a class, a function, an entry point or a file, in library runs and in trials."""

from __future__ import annotations

import functools
import json
import math
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.guidance import avoiders
from wavesim_sdk.guidance.avoidance import Avoider
from wavesim_sdk.guidance.avoiders import AvoiderFailed, make_avoider
from wavesim_sdk.guidance.targets import Target
from wavesim_server.in_process.notebook import Trial
from wavesim_studies.campaign.plan import CampaignPlan
from wavesim_studies.traffic import encounter_trials
from wavesim_studies.traffic.cli import traffic
from wavesim_studies.traffic.encounter_runs import run_encounter
from wavesim_studies.traffic.encounters import Encounter, VesselStart, imazu
from wavesim_world.config import allow_files

pytestmark = pytest.mark.compiled

U, LENGTH = 3.0, 2.0  # m/s, m: of the otter
SLOW = Encounter(
    "slow",
    VesselStart("own", -200.0, 0.0, 0.0, U),
    (200.0, 0.0),
    (VesselStart("t", -110.0, 0.0, 0.0, 0.6),),
    "a slow vessel ahead",
)


class Weaving:
    """Turns to starboard and back by turns, as long as another vessel is ahead."""

    def __init__(self, length: float, speed: float, every: int = 12) -> None:
        self.calls, self.every = 0, every

    def order(self, place: Any, velocity: Any, wanted: Any, targets: Any, way: Any) -> tuple[float, float]:
        assert len(way) >= 2 and len(targets) == 1 and targets[0].length == LENGTH
        self.calls += 1
        return math.radians(40.0 if self.calls // self.every % 2 else -40.0), wanted[1]


def turns_away(place: Any, velocity: Any, wanted: Any, targets: Any, way: Any) -> Any:
    """A function, once a second: to starboard until it is 25 m off the leg, then ahead."""
    return (math.radians(60.0) if place[1] < 25.0 else 0.0), U


def test_an_avoider_of_ones_own_steers_and_weaving_costs_the_total() -> None:
    """`run_encounter` took none; and the reference avoider, which comes the same way, does better."""
    reference = run_encounter(SLOW)
    assert isinstance(reference.avoider, Avoider) and reference.score.total > 0.9
    named = run_encounter(SLOW, avoider="reference")
    assert (named.tracks["own"].places == reference.tracks["own"].places).all()
    own = run_encounter(SLOW, avoider=turns_away)
    assert own.tracks["own"].places[-1, 1] == pytest.approx(25.0, abs=8.0)
    assert own.score.economy["mission"] == 0.0, "it never returns to the leg, as ordered"
    weaving = run_encounter(SLOW, avoider=functools.partial(Weaving, every=8))
    assert weaving.avoider.calls == len(weaving.tracks["own"].times), "once a second"
    assert weaving.score.turns > 10 and weaving.score.economy["courses"] < 0.4
    assert weaving.score.total <= weaving.score.economy["courses"]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of an avoider, in a folder of its own with a module that it imports."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own_side.py").write_text("DEGREES = 60.0\n")
    (folder / "lookout.py").write_text(
        """from __future__ import annotations
import math
from dataclasses import dataclass
from pathlib import Path
import own_side

@dataclass
class Mine:
    length: float
    speed: float

    def order(self, place, velocity, wanted, targets, way):
        Path("seen.txt").write_text(f"{self.length:g} {self.speed:g} {len(targets)}")
        return math.radians(own_side.DEGREES), self.speed

def none(place, velocity, wanted, targets, way): return None
def fails(place, velocity, wanted, targets, way):
    return 1.0 / targets[0].length * way[7][0]
def text(place, velocity, wanted, targets, way): return "to starboard"
def three(place, velocity, wanted, targets, way): return 1.0, 2.0, 3.0
def nan(place, velocity, wanted, targets, way): return math.nan, 2.0
def astern(place, velocity, wanted, targets, way): return 1.0, -2.0
def few(place, velocity, wanted): return None
def makes_nothing(length, speed): return None
class Without:
    def __init__(self, length, speed): pass
class Short(Without):
    def order(self, place): return None
class Unready(Mine):
    def __init__(self, length, speed): raise RuntimeError("no solver")
class Bare:
    def order(self, place, velocity, wanted, targets, way): return None
instance = Mine(2.0, 3.0)
"""
    )
    (folder / "broken.py").write_text("x = 1\nx.y\n")
    (folder / "grammar.py").write_text("def x(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("own_side", "file_lookout", "lookout"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder / "lookout.py"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "own/lookout.py:fails",
            r"avoider 'own/lookout.py:fails' failed: IndexError: list index out of range \(lookout.py:18\)",
        ),
        ("own/lookout.py:text", "must return None or .course in rad, speed in m/s >= 0., got to starboard"),
        ("own/lookout.py:three", r"got \(1.0, 2.0, 3.0\)"),
        ("own/lookout.py:nan", r"got \(nan, 2.0\)"),
        ("own/lookout.py:astern", r"got \(1.0, -2.0\)"),
        ("own/lookout.py:few", r"must accept \(length, speed\) or \(place, velocity, wanted, targets, way\)"),
        ("own/lookout.py:makes_nothing", r"needs the method order\(place, velocity, wanted, targets, way\)"),
        ("own/lookout.py:Without", r"needs the method order\(place"),
        ("own/lookout.py:Short", r"needs the method order\(place"),
        ("own/lookout.py:Bare", r"must accept \(length, speed\)$"),
        ("own/lookout.py:Unready", r"cannot be created: RuntimeError: no solver \(lookout.py:\d+\)"),
        ("own/lookout.py:instance", "pass its class, not an instance"),
        ("own/lookout.py:Mime", "'own/lookout.py' has no object 'Mime'; did you mean 'Mine'"),
        ("own/mien.py:Mine", "file .*own/mien.py does not exist"),
        (
            "own/lookout.py",
            "unknown avoider 'own/lookout.py': use FILE.py:OBJECT, MODULE:OBJECT or an installed avoider",
        ),
        ("referense", "did you mean 'reference'"),
        ("lookout:Mine", "No module named 'lookout'; for a file, write lookout.py:Mine"),
        (":Mine", "use FILE.py:OBJECT or MODULE:OBJECT"),
        ("own/broken.py:Mine", r"AttributeError: 'int' object has no attribute 'y' \(broken.py:2\)"),
        ("own/grammar.py:Mine", "SyntaxError"),
        (Weaving(LENGTH, U), "must be a class or a function: pass its class, not an instance"),
        (7, "must be a class or a function: got 7"),
    ],
)
def test_a_wrong_avoider_is_one_message_that_names_it(mine: Path, source: Any, said: str) -> None:
    with pytest.raises((ConfigError, AvoiderFailed), match=said) as error:
        made = make_avoider(source, LENGTH, U)
        made.order((0.0, 0.0), (U, 0.0), (0.0, U), [Target(0, (9.0, 0.0), (0.0, 0.0), 2.0)], [(0, 0), (9, 0)])
    assert "\n" not in str(error.value) and str(error.value).count("avoider") >= 1


def test_the_commands_take_a_file_a_module_and_an_installed_one(
    mine: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(traffic, arguments)

    example = f"{root / 'examples/studies/starboard.py'}:Starboard"
    done = run("imazu", "1", "--avoider", example, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["score"] == pytest.approx(0.88, abs=0.1) and found["course_changes"] > 4, "as the page says"
    assert found["pairs"][0]["side"] == 1.0 and found["pairs"][0]["safety"] == 1.0
    with monkeypatch.context() as patch:
        patch.setattr(
            avoiders,
            "entry_points",
            lambda group: EntryPoints(
                [EntryPoint("mine", "lookout:Mine", group)] if group == "wavesim.avoiders" else []
            ),
        )
        done = run("imazu", "1", "--avoider", "mine")
        assert isinstance(done.exception, ConfigError) and "entry point 'mine'" in str(done.exception)
        patch.syspath_prepend(str(mine.parent))
        assert type(make_avoider("mine", 7.0, 2.0).avoider).__name__ == "Mine"
        assert make_avoider("lookout:Mine", 7.0, 2.0).avoider.length == 7.0
    ship = {"initial": {"position": {"north": 0.0, "east": 0.0}, "sog": 6.0, "cog": 0.0}}
    other = {"initial": {"position": {"north": 0.05, "east": 0.0}, "sog": 1.0, "cog": 180.0}}
    Path("s.json").write_text(json.dumps({"ownShip": ship, "targetShips": [other]}))
    done = run("dnv", "s.json", "--avoider", "own/lookout.py:fails")
    assert isinstance(done.exception, WaveSimError) and "own/lookout.py:fails" in str(done.exception)
    assert run("imazu", "1", "--hold", "--avoider", "own/lookout.py:Mine").exit_code == 2
    done = run("trials", "runs", "1", "--avoider", "own/lookout.py:Mime")
    assert isinstance(done.exception, ConfigError) and not Path("runs").exists()


def test_a_trial_has_the_avoider_too_and_a_campaign_watches_its_files(mine: Path, root: Path) -> None:
    """Its file is relative to the configuration, whose program runs in that folder."""
    captain = root / "examples/onboard/captain.py"
    with allow_files(captain.parent):
        case = imazu(1, 3.0, 40.0)
        path = encounter_trials.write(case, Path("runs/deep"), "otter", captain, avoider="own/lookout.py:Mine")
        assert "--avoider ../../own/lookout.py:Mine" in path.read_text()
        with Trial(path, duration=12.0) as trial:
            trial.run(10.0)
            heading = trial.states()["own"]["heading"]
        assert (path.parent / "seen.txt").read_text() == "2 3 1"
        assert heading == pytest.approx(60.0, abs=15.0)
        path = encounter_trials.write(case, Path("runs/deep"), "otter", captain, avoider="own/lookout.py:fails")
        with Trial(path, out="out", duration=12.0) as trial, pytest.raises(WaveSimError):
            trial.run()
        (output,) = Path("out").rglob("program-own.txt")
        said = output.read_text()
        assert "avoider '../../own/lookout.py:fails' failed: IndexError" in said and "Traceback" not in said
        Path("c.xml").write_text(f'<campaign name="c" config="{path}"><run kind="trial" duration="1 s"/></campaign>')
        for name in ("lookout.py", "own_side.py"):
            key = CampaignPlan(Path("c.xml")).rows[0].key
            with (mine.parent / name).open("a") as file:
                file.write("# changed\n")
            assert CampaignPlan(Path("c.xml")).rows[0].key != key, name
