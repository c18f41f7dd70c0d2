"""Learned dead reckoning at small size: missions are made, split as a whole, used for training, and tested on unseen
missions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("duckdb")

from wavesim_sdk.errors import LogError
from wavesim_studies.navigation import cli, dataset, learned_dead_reckoning, training_missions

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("navigation")]


def made(found: Path, duration: float) -> Path:
    """Seven missions, two of them not to be seen; s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_missions, "CURRENT", 0.03)  # which nobody can know, and such missions are short
        names = [name for name, _ in training_missions.make_dataset(found, 7, duration)]
    index = json.loads((found / "dataset.json").read_text())
    for k, name in enumerate(names):
        index["missions"][name]["part"] = "test" if k > 4 else "validation" if k == 4 else "train"
    (found / "dataset.json").write_text(json.dumps(index))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("missions"), 25.0)


@pytest.mark.long
def test_it_is_better_than_the_filter_and_lives_by_its_labels(tmp_path: Path) -> None:
    found = learned_dead_reckoning.learn(made(tmp_path, 120.0), epochs=200)
    assert found["missions"] == {"train": 4, "validation": 1, "test": 2}
    s = found["summary"]
    assert s["learned"]["of_filter"] < 0.7, "30 % better (median) on missions that it has not seen"
    assert s["learned"]["velocity"] < 0.4 * s["shuffled"]["velocity"], "with shuffled labels there is nothing to learn"
    assert s["learned"]["velocity"] < 0.5 * s["constant"]["velocity"] and s["doppler"]["rms"] < s["learned"]["rms"]


def test_truth_reaches_no_input(folder: Path) -> None:
    """Whatever stands in the truth of a mission, the network sees the same."""
    name, entry = next(iter(dataset.missions(folder).items()))
    usual = learned_dead_reckoning.mission(folder, name, entry)
    real = dataset.table

    def wrong(where: Path, mission: str, sort: str, topic: str) -> Any:
        columns = real(where, mission, sort, topic)
        return {k: v if k == "time_ns" or sort == "seen" else v + 1.0 for k, v in columns.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "table", wrong)
        changed = learned_dead_reckoning.mission(folder, name, entry)
    assert (
        (changed.inputs == usual.inputs).all()
        and (changed.R_WB == usual.R_WB).all()
        and (changed.place != usual.place).all()
    )


def test_the_command_writes_a_network_that_can_be_read(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.npz"
    done = CliRunner().invoke(cli.nav, ["learn", str(folder), "--epochs", "2", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "unseen missions" in done.output and "of the filter" in done.output
    name, entry = next(iter(dataset.missions(folder).items()))
    m = learned_dead_reckoning.mission(folder, name, entry)
    assert learned_dead_reckoning.DeadReckoningNetwork.load(out).velocity(m).shape == m.velocity.shape


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    for index in (
        None,
        [],
        {"missions": []},
        {"missions": {"x": {}}},
        {"missions": {"x": {"part": "train", "bodies": {}}}},
    ):
        if index is not None:
            (tmp_path / "dataset.json").write_text(json.dumps(index))
        with pytest.raises(LogError, match=r"is not a dataset.*--dataset"):
            learned_dead_reckoning.learn(tmp_path)
    index = json.loads((folder / "dataset.json").read_text())
    for entry in index["missions"].values():
        entry["part"] = "train"
    for name in index["missions"]:
        (tmp_path / name).symlink_to(folder / name)
    (tmp_path / "dataset.json").write_text(json.dumps(index))
    with pytest.raises(LogError, match="7 training missions and 0 test missions"):
        learned_dead_reckoning.learn(tmp_path)
