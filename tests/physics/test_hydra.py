"""HydRA's result file: axes, damping, and what is reported of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics import hemisphere as h
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import read
from wavesim_world.config import Model
from wavesim_world.config.build import read_models

SETTINGS = {"size": "10 10 10", "linear-drag": "0 0 0 0 0 0"}


def results(**changes: Any) -> dict[str, Any]:
    """A hemisphere in HydRA's axes (z up), with a centre of mass 0.5 m below the origin and 0.2 m forward."""
    added, damping = np.zeros((2, len(h.FREQUENCIES) + 2, 6, 6))
    infinite = np.diag([2e5, 2e5, h.INFINITE * h.MASS, 1e5, 1e5, 1e4])
    infinite[1, 3] = infinite[3, 1] = 3e4  # a sway force at a depth z turns about x: A24 = -z A22, here with z < 0
    added[0], added[2:, 2, 2], damping[2:, 2, 2] = infinite, h.ADDED, h.DAMPING
    x, z = 0.2, -0.5
    rigid = np.diag([h.MASS] * 3 + [4e6] * 3)
    rigid[0, 4] = rigid[4, 0] = h.MASS * z
    rigid[1, 3] = rigid[3, 1] = -h.MASS * z
    rigid[1, 5] = rigid[5, 1] = h.MASS * x
    rigid[2, 4] = rigid[4, 2] = -h.MASS * x
    stiff = np.diag([0.0, 0, h.STIFFNESS, h.GRAVITY, h.GRAVITY, 0])
    return {
        "w": [-1.0, 0.0, *h.FREQUENCIES],
        "A_inf": infinite.tolist(),
        "AM": added[..., None, None].tolist(),
        "BD": damping[..., None, None].tolist(),
        "M": rigid.tolist(),
        "C": stiff.tolist(),
    } | changes


def imported(folder: Path, data: Any) -> tuple[Model, list[str]]:
    path = folder / "bowl_hydra.json"
    path.write_text(json.dumps(data))
    found = read(path, None, SETTINGS, None)
    (folder / "models.xml").write_text(found.xml)
    (model,) = read_models(folder / "models.xml").values()
    return model, found.notes


def test_its_axes_are_turned_and_its_damping_becomes_a_memory(tmp_path: Path) -> None:
    model, notes = imported(tmp_path, results())
    assert model.mass.value == pytest.approx(h.MASS)
    assert model.mass.centre == pytest.approx((0.2, 0.0, 0.5)), "below the origin is positive"
    added = np.array(model.added_mass.rows).reshape(6, 6)
    assert added[1, 3] == added[3, 1] == pytest.approx(-3e4)
    assert added[2, 2] == pytest.approx(h.INFINITE * h.MASS)
    assert model.restoring is not None and model.restoring.rows == pytest.approx(np.ravel(results()["C"]))
    assert model.radiation is not None and len(model.radiation.oscillator) > 1
    assert any("and radiation damping, but not waves" in n for n in notes)
    assert any(n.startswith("radiation heave-heave: damping error") for n in notes)


def test_without_enough_damping_the_rest_is_taken(tmp_path: Path) -> None:
    short = {"w": [-1.0, 0.0], **{k: results()[k][:2] for k in ("AM", "BD")}}
    model, notes = imported(tmp_path, results(**short))
    assert model.radiation is None and any(n.endswith("but not damping and waves") for n in notes)
    few = {"w": results()["w"][:6], **{k: results()[k][:6] for k in ("AM", "BD")}}
    model, notes = imported(tmp_path, results(**few))
    assert model.radiation is None and any("not damping and waves, because the table has 4" in n for n in notes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "not a valid HydRA result file"),
        ({"w": [1.0]}, "missing key 'A_inf': this is not a HydRA result file"),
        (results(A_inf=[1.0]), "not a valid HydRA result file"),
        (results(C=[[float("nan")] * 6] * 6), "some values are not finite"),
        (results(AM=[[1.0]]), "not a valid HydRA result file"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        imported(tmp_path, data)
