"""Response amplitude operators from CSV: the same as from MATLAB, mirroring to the other side, and precise refusals."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server.environment import exposure
from wavesim_server.environment.operator_table import AXES, COLUMNS, DRIFT
from wavesim_world.config import Model, library
from wavesim_world.config.exposure import Rao

HEAD = ",".join(COLUMNS)


def model(path: Path, use: str = "force") -> Model:
    return dataclasses.replace(
        library()["supply"], rao=Rao(file=path.name, use=use), place=f"{path.parent / 'x.xml'}:1"
    )


def read(path: Path, use: str = "force") -> exposure.ResponseOperators:
    m = model(path, use)
    assert m.rao is not None
    return exposure.read_operators(m, m.rao)


def write(path: Path, found: exposure.ResponseOperators, headings: int) -> Path:
    """The first headings of operators as a table, lines in any order."""
    step = 360.0 / found.headings
    lines = []
    for k in range(headings):
        for j, w in enumerate(found.frequencies):
            z = found.response[:, j, k]
            cells = [
                k * step,
                w,
                *np.stack([np.abs(z), np.degrees(np.angle(z))], axis=1).ravel(),
                *found.drift[:, j, k],
            ]
            lines.append(",".join(repr(float(c)) for c in cells))
    np.random.default_rng(1).shuffle(lines)
    path.write_text("\n".join([f"# operators\n{HEAD},{','.join(DRIFT)}", *lines]) + "\n")
    return path


@pytest.mark.data
@pytest.mark.parametrize("use", ["force", "motion"])
def test_the_same_as_from_matlab(tmp_path: Path, data_dir: Path, use: str) -> None:
    matlab = read(data_dir / "ships/supply.mat", use)
    table = read(write(tmp_path / "supply.csv", matlab, matlab.headings), use)
    size = np.abs(matlab.response).max(axis=(1, 2), keepdims=True)
    assert np.abs(table.response - matlab.response).max() < 1e-9 * size.max()
    assert np.array_equal(table.frequencies, matlab.frequencies) and np.allclose(table.drift, matlab.drift, rtol=1e-12)
    assert (table.impedance is None) == (use == "force")
    at = np.array([0.4, 0.77])
    assert np.allclose(table.force_at(at), matlab.force_at(at), rtol=1e-9, atol=1e-9 * size.max())


@pytest.mark.data
def test_the_other_side_is_the_mirror_image(tmp_path: Path, data_dir: Path) -> None:
    """Of the supply vessel 0 to 180 deg, against what its table says of 190 to 350 deg: it is symmetric."""
    matlab = read(data_dir / "ships/supply.mat")
    half = read(write(tmp_path / "half.csv", matlab, matlab.headings // 2 + 1))
    assert half.headings == matlab.headings == 36
    for dof, axis in enumerate(AXES):
        size = np.abs(matlab.response[dof]).max()
        assert np.abs(half.response[dof] - matlab.response[dof]).max() < 0.01 * size, axis


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the table is empty"),
        ("heading_deg,frequency\n0,1\n", "missing column surge, surge_phase_deg, sway"),
        (HEAD + ",sped\n", "unexpected column 15: use heading_deg"),
        (HEAD + ",drift_surge\n", "missing column drift_sway, drift_yaw"),
        (HEAD + "\n" + "0," * 13 + "x\n", "line 2: expected 14 numbers"),
        (HEAD + "\n\n" + "0," * 12 + "0\n", "line 3: expected 14 numbers"),
        (
            HEAD + "\n" + ("0," * 13 + "0\n") * 2,
            "the table has 2 lines, but needs one for each combination of 1 headings and 1 frequencies",
        ),
        (HEAD + "\n" + "".join(f"{h},1" + ",0" * 12 + "\n" for h in (0, 90, 200)), "equal steps"),
        (HEAD + "\n0,1,nan" + ",0" * 11 + "\n", "not finite"),
        (None, "cannot read the RAO file"),
    ],
)
def test_refusals(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "x.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read(path)
    assert message in str(error.value) and "x.csv" in str(error.value)
