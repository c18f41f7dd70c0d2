"""The files behind the results of a campaign: a change of any file repeats its runs, for every type of run and import."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.studies.conftest import BASE
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.campaign import runner
from wavesim_studies.campaign.cli import campaign
from wavesim_studies.campaign.plan import CampaignPlan
from wavesim_studies.campaign.run import execute_run

TRIAL = BASE.replace(
    'position="0 30 10 m"/>',
    'position="0 30 10 m" client="optional"><program run="boat/program.py" options="--table=tides.csv"/></vehicle>',
)
FUNCTION = '<run kind="function" program="mine.py:run"/><factor name="a" values="1 | 2"/><metric name="y"/>'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program beside its modules, another in a folder of its own, a library in PYTHONPATH, and data."""
    (tmp_path / "library" / "elsewhere").mkdir(parents=True)
    (tmp_path / "work" / "boat").mkdir(parents=True)
    (tmp_path / "work" / "controllers").mkdir()
    here = tmp_path / "work"
    (here / "pilot.py").write_text("SIGMA = 0.8\n")
    (here / "late.py").write_text("OFFSET = 0.0\n")
    (here / "controllers" / "pid.py").write_text("GAIN = 1.0\n")
    (tmp_path / "library" / "elsewhere" / "__init__.py").write_text("")
    (tmp_path / "library" / "elsewhere" / "filters.py").write_text("ORDER = 2\n")
    (tmp_path / "library" / "single.py").write_text("import elsewhere.filters\n")
    (here / "mine.py").write_text(
        "import importlib\nimport pilot\n"
        "def run(factors, seed):\n    import late, single\n    gain = importlib.import_module('controllers.' + 'pid').GAIN\n"
        "    return {'y': factors['a'] * pilot.SIGMA * gain + late.OFFSET}\n"
        "def fly(lab, seconds):\n    lab.run(seconds, 0.5)\n    return {'energy': pilot.SIGMA}\n"
    )
    (here / "judge.py").write_text("import measures\ndef deep(result):\n    return measures.deep(result)\n")
    (here / "measures.py").write_text("def deep(result):\n    return float(result.tracks['a'][1]['p_WB_W'][-1, 2])\n")
    (here / "boat" / "program.py").write_text("from helm import steer\nimport single\n")
    (here / "boat" / "helm.py").write_text("def steer(): ...\n")
    (here / "bed.txt").write_text("0 0 40\n100 0 40\n0 100 40\n")
    (here / "other-bed.txt").write_text("0 0 50\n100 0 50\n0 100 50\n")
    (here / "tides.csv").write_text("0 1\n")
    (here / "own.xml").write_text(
        '<models><model name="ball" type="buoy"><sphere diameter="0.5 m"/><mass value="40 kg"/>'
        '<inertia xx="1" yy="1" zz="1"/><added-mass diagonal="33.54 33.54 33.54 0 0 0"/><linear-drag diagonal="5 5 5 1 1 1"/></model></models>'
    )
    head = '<world><bed depth="40 m"/><soundings file="bed.txt"/>'
    for name, text in (("base.xml", BASE), ("trial.xml", TRIAL)):
        (here / name).write_text(
            text.replace("<world>", head).replace("</fleet>", '</fleet><models><include file="own.xml"/></models>')
        )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "library"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    for name in ("pilot", "late", "single", "controllers", "measures", "elsewhere"):
        for found in [m for m in sys.modules if m.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, found)
    return here


def plan(folder: Path, inner: str, config: str = "") -> CampaignPlan:
    (folder / "c.xml").write_text(f'<campaign name="c" config="{config}">{inner}</campaign>')
    return CampaignPlan(folder / "c.xml", folder / "runs")


LAB = '<run kind="lab" program="mine.py:fly" duration="1 s"/><metric name="m" of="judge.py:deep"/>'
BEDS = '<factor name="bed" values="bed.txt | other-bed.txt"><key path="world/soundings/file"/></factor>'


@pytest.mark.parametrize(
    ("inner", "config", "changed"),
    [
        pytest.param(FUNCTION, "", "mine.py", id="the program"),
        pytest.param(FUNCTION, "", "pilot.py", id="what it imports"),
        pytest.param(FUNCTION, "", "late.py", id="what it imports while it runs"),
        pytest.param(FUNCTION, "", "controllers/pid.py", id="by a name that it computes"),
        pytest.param(FUNCTION, "", "../library/single.py", id="from PYTHONPATH"),
        pytest.param(FUNCTION, "", "../library/elsewhere/filters.py", id="what that imports"),
        pytest.param(LAB, "base.xml", "pilot.py", id="lab: what the program imports"),
        pytest.param(LAB, "base.xml", "measures.py", id="lab: what a metric imports"),
        pytest.param(LAB, "base.xml", "bed.txt", id="lab: data of the configuration"),
        pytest.param(LAB, "base.xml", "own.xml", id="lab: models of the configuration"),
        pytest.param(LAB + BEDS, "base.xml", "other-bed.txt", id="lab: data that a factor names"),
        pytest.param(
            '<run kind="trial" duration="1 s"/>', "trial.xml", "boat/helm.py", id="trial: what a program imports"
        ),
        pytest.param(
            '<run kind="trial" duration="1 s"/>',
            "trial.xml",
            "../library/elsewhere/filters.py",
            id="trial: from PYTHONPATH",
        ),
        pytest.param('<run kind="trial" duration="1 s"/>', "trial.xml", "tides.csv", id="trial: a file of its options"),
    ],
)
def test_a_change_of_any_file_that_a_run_comes_from_makes_it_anew(
    folder: Path, inner: str, config: str, changed: str
) -> None:
    first = {r.key for r in plan(folder, inner, config).rows}
    assert {r.key for r in plan(folder, inner, config).rows} == first, "the same files are the same runs"
    path, later = folder / changed, ""
    with path.open("a") as file:
        file.write({".xml": "<!-- changed -->", ".txt": "100 100 41\n"}.get(path.suffix, "# changed\n"))
    p = plan(folder, inner, config)
    assert not first & {r.key for r in p.rows}
    later = " ".join(p.files)
    assert path.name in later, "and it has a name"


def test_what_lies_elsewhere_changes_nothing(folder: Path) -> None:
    """Results, environments, hidden folders, caches: they are no modules of the program."""
    first = {r.key for r in plan(folder, FUNCTION).rows}
    for name in (
        "runs/c/x.py",
        ".venv/x.py",
        "venv/pyvenv.cfg",
        "venv/lib/x.py",
        "__pycache__/x.py",
        "notes.txt",
        "../library/unused.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x = 1\n")
    assert {r.key for r in plan(folder, FUNCTION).rows} == first


def test_keys_are_the_same_in_every_process_and_place(folder: Path, tmp_path: Path) -> None:
    """With several files, whatever the order in which Python keeps names, and wherever the folder lies."""
    inner = LAB + '<metric name="n" of="measures.py:deep"/>'
    expected = [r.key for r in plan(folder, inner, "base.xml").rows]
    moved = tmp_path / "moved" / "there"
    shutil.copytree(folder, moved)
    program = f"from pathlib import Path; from wavesim_studies.campaign.plan import CampaignPlan; print(CampaignPlan(Path({str(moved / 'c.xml')!r})).rows[0].key)"
    for seed in "123":
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == expected


def test_a_gate_does_not_pass_a_program_that_was_never_run_and_repeat_names_what_changed(folder: Path) -> None:
    inner = FUNCTION.replace('values="1 | 2"', 'low="1" high="2" levels="8"').replace('"y"', '"y" better="higher"')
    p = plan(folder, inner)
    assert runner.run(p, workers=1, quiet=True) == {"ok": 8}
    shutil.copytree(p.folder, folder / "earlier")
    gate = ["gate", str(p.path), str(folder / "earlier")]

    def asked(*words: str) -> Result:
        return CliRunner().invoke(campaign, [*words, "--out", str(folder / "runs")])

    def refused(*words: str) -> tuple[int, str]:
        error = asked(*words).exception
        assert isinstance(error, WaveSimError)
        return error.exit_code, str(error)

    assert asked(*gate).exit_code == 0
    (folder / "pilot.py").write_text("SIGMA = 0.05\n")
    sys.modules.pop("pilot")  # as in a new process
    said = "8 of 8 rows were computed with other versions of the files (pilot.py (changed)); `run` repeats them"
    assert said in asked("status", str(p.path)).stderr
    progress = json.loads(asked("status", str(p.path), "--json").stdout)
    assert (progress["done"], progress["stale"]) == (8, 8)
    assert refused(*gate) == (15, said)
    code, text = refused("repeat", str(p.path), "3")
    assert code == 16 and text.endswith("; since then: pilot.py (changed)"), text
    p = plan(folder, inner)
    assert runner.run(p, workers=1, quiet=True) == {"ok": 8}
    assert refused(*gate) == (14, "worse than allowed: y"), "now it has run"


def test_a_gate_does_not_pass_what_is_not_finished(folder: Path) -> None:
    p = plan(folder, FUNCTION)
    runner.run(p, workers=1, quiet=True)
    shutil.copytree(p.folder, folder / "earlier")
    more = plan(folder, FUNCTION.replace("1 | 2", "1 | 2 | 3"))
    done = CliRunner().invoke(
        campaign, ["gate", str(more.path), str(folder / "earlier"), "--out", str(folder / "runs")]
    )
    assert getattr(done.exception, "exit_code", 0) == 15 and "only 2 of 3 runs are finished" in str(done.exception)


def test_a_module_from_where_nobody_looks_fails_the_run(folder: Path, tmp_path: Path) -> None:
    """Its change would go unnoticed."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "unwatched.py").write_text("VALUE = 1.0\n")
    (folder / "mine.py").write_text(
        f"import sys\ndef run(factors, seed):\n    sys.path.append({str(tmp_path / 'hidden')!r})\n    import unwatched\n"
        "    return {'y': unwatched.VALUE}\n"
    )
    p = plan(folder, FUNCTION)
    try:
        done = execute_run(p, p.rows[0])
    finally:
        sys.modules.pop("unwatched", None)
        sys.path.remove(str(tmp_path / "hidden"))
    assert done["status"] == "invalid" and "unwatched.py" in done["reason"] and "PYTHONPATH" in done["reason"]
    # at the top of the file it is seen before the first run
    (folder / "mine.py").write_text(
        f"import sys\nsys.path.append({str(tmp_path / 'hidden')!r})\nimport unwatched\n"
        "def run(factors, seed):\n    return {'y': unwatched.VALUE}\n"
    )
    try:
        p = plan(folder, FUNCTION)
        assert "module unwatched.py" in p.files and execute_run(p, p.rows[0])["status"] == "ok"
    finally:
        sys.modules.pop("unwatched", None)
        sys.path.remove(str(tmp_path / "hidden"))


def test_a_file_that_changes_while_a_run_takes_place_is_no_result_of_the_old_one(folder: Path) -> None:
    p = plan(folder, LAB, "base.xml")
    assert execute_run(p, p.rows[0])["status"] == "ok"
    (folder / "late.py").write_text("OFFSET = 5.0\n")
    done = execute_run(p, p.rows[0])
    assert done["status"] == "invalid" and "late.py (changed)" in done["reason"]


def test_programs_of_two_folders_have_their_own_modules(folder: Path) -> None:
    """Of one name: each imports its own."""
    (folder / "other").mkdir()
    (folder / "other" / "pilot.py").write_text("SIGMA = 7.0\n")
    (folder / "other" / "value.py").write_text("import pilot\ndef of(result):\n    return pilot.SIGMA\n")
    p = plan(folder, LAB + '<metric name="n" of="other/value.py:of"/><metric name="energy"/>', "base.xml")
    assert execute_run(p, p.rows[0])["metrics"] | {"m": 0} == {"m": 0, "n": 7.0, "energy": 0.8}


@pytest.mark.parametrize("name", ["status", "seed", "hash"])
@pytest.mark.parametrize("what", ['<factor name="{}" values="1"/><metric name="y"/>', '<metric name="{}"/>'])
def test_no_factor_or_metric_has_the_name_of_a_column(folder: Path, name: str, what: str) -> None:
    inner = '<run kind="function" program="mine.py:run"/>' + what.format(name)
    with pytest.raises(ConfigError, match="column of this name"):
        plan(folder, inner)
