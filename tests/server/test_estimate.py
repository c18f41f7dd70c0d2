"""Models estimated from dimensions: factors of spheroids as published, and coefficients close to published values of a
real hull.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import wavesim
from wavesim_sdk.errors import ConfigError
from wavesim_server.model_estimate import friction_coefficient, models_file
from wavesim_server.spheroid import spheroid_added_mass
from wavesim_server.study import TRACK, batch
from wavesim_world.config import library, matrix
from wavesim_world.config.build import read_models


@pytest.mark.parametrize(
    ("slenderness", "factors"),
    [
        (1.5, (0.305, 0.621, 0.094)),
        (2.0, (0.209, 0.702, 0.240)),
        (2.99, (0.122, 0.803, 0.465)),
        (3.99, (0.082, 0.860, 0.608)),
        (4.99, (0.059, 0.895, 0.701)),
        (6.97, (0.036, 0.933, 0.805)),
        (9.97, (0.021, 0.960, 0.883)),
    ],
)
def test_the_factors_are_those_of_lambs_table(slenderness: float, factors: tuple[float, ...]) -> None:
    assert spheroid_added_mass(slenderness) == pytest.approx(factors, abs=3e-3)


def test_friction_is_that_of_the_ittc_line() -> None:
    """At a Reynolds number of 10^7: 0.003 for a flat plate; a long thin body has little more."""
    assert friction_coefficient(10.0, 0.01, 1.19) == pytest.approx(0.003, rel=1e-3)
    assert friction_coefficient(1.0, 0.2, 1.5) > 1.15 * friction_coefficient(1.0, 0.01, 1.5)


@pytest.fixture
def remus(tmp_path: Path) -> Path:
    """The size of a hull whose coefficients are published."""
    path = tmp_path / "r.xml"
    path.write_text(models_file("r", 1.33, 0.191, 30.48, speed=1.54))
    return path


def test_it_is_near_what_others_found_for_such_a_hull(remus: Path) -> None:
    """REMUS 100 (Prestero 2001), whose added mass and drag across include its fins."""
    mine, theirs = read_models(remus)["r"], library()["remus100"]
    for name, k, within in (
        ("added_mass", 0, 0.3),
        ("added_mass", 1, 0.3),
        ("added_mass", 5, 0.3),
        ("quadratic_drag", 1, 0.15),
        ("quadratic_drag", 5, 0.15),
    ):
        a, b = (matrix(getattr(m, name))[k, k] for m in (mine, theirs))
        assert a == pytest.approx(b, rel=within), (name, k)
    assert 0.3 < matrix(mine.quadratic_drag)[0, 0] / matrix(theirs.quadratic_drag)[0, 0] < 1.5, (
        "without sails and masts"
    )


def test_it_flies(remus: Path) -> None:
    """Half of the thrust holds the speed that was asked for; nothing of it runs away, in turns either."""
    model = read_models(remus)["r"]
    half = 0.5 * model.thruster[0].maximum
    ahead, turning = (
        batch([model], {"propeller": half, "rudder-top": a, "rudder-bottom": a}, 120.0)[0] for a in (0.0, 0.15)
    )
    assert ahead[-1, TRACK.index("u")] == pytest.approx(1.54, rel=0.03)
    assert np.isfinite(turning).all() and abs(turning[-1, TRACK.index("r")]) > 0.02
    assert np.abs(turning[:, TRACK.index("pitch")]).max() < 0.6


@pytest.mark.parametrize(
    ("length", "diameter", "mass", "speed", "message"),
    [
        (1.0, 0.9, None, 1.5, "2 to 20 diameters"),
        (1.0, 0.0, None, 1.5, "2 to 20 diameters"),
        (1.5, 0.2, 4.0, 1.5, "displaces 48.3 kg"),
        (1.5, 0.2, None, 0.0, "0.1 to 20 m/s"),
    ],
)
def test_what_is_no_torpedo_is_refused(
    length: float, diameter: float, mass: float | None, speed: float, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        models_file("x", length, diameter, mass, speed)


def test_the_command(tmp_path: Path) -> None:
    done = wavesim(
        "vehicles", "estimate", "mine", "--length", "2", "--diameter", "0.25", "--out", tmp_path / "mine.xml"
    )
    assert done.returncode == 0 and "wrote" in done.stdout, done.stderr
    assert read_models(tmp_path / "mine.xml")["mine"].validated == "Not validated: every coefficient is an estimate."
