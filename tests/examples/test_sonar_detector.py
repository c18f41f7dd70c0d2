"""A detector that learns from exported files alone: the masks are right."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from wavesim_server.frame_datasets import make_dataset


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_detector_finds_objects_in_scenes_that_it_has_not_seen(root: Path, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("sonar_detector", root / "examples/studies/sonar_detector.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert sum(make_dataset(example.scene, tmp_path, 300).values()) == 300
    scores = example.train_and_score(tmp_path)
    assert scores["accuracy"] > 0.75 and scores["accuracy (shuffled)"] < 0.35, scores
    assert min(scores["precision"], scores["recall"]) > 0.65, scores
    assert scores["recall (shuffled)"] < 0.1, scores
