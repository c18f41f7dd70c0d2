"""Noise with a full covariance: sample covariances against the declared ones, with bounds from the Wishart distribution.

Panisim's manual draws the noise of each value from a 3x3 covariance (IMU, GPS, UWB, DVL) and that of an encoder from one
standard deviation; so do these sensors.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from tests.emulators.bench import Bench, Make
from wavesim_emulators import motion, position, vessel
from wavesim_emulators.base import Emulator
from wavesim_sdk.algebra import covariance_factor, matvec
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import quaternion, rotation

#: correlated, of different variances
C = np.array([[4.0, 1.5, -0.5], [1.5, 3.0, 0.8], [-0.5, 0.8, 1.0]])
#: of rank 2: the errors lie in a plane
SINGULAR = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
BODIES, TICKS = 60, 50
CHANCE = 1e-6  #: that a bound fails although the noise is right


def text(c: Any) -> str:
    return " ".join(f"{v:.17g}" for v in np.ravel(c))


def bench(config: Make, of: type[Emulator], attributes: str, model: str = "lauv") -> Bench:
    given = f"<fleet><sensors><{of.sensor} {attributes}/></sensors></fleet>"
    loaded = config(f"<world><bed depth='20 m'/></world><shared vehicles='{BODIES}'/>{given}")
    b = Bench(loaded, of, BODIES, model=model)
    b.state["p_WB_W"][:, 2] = -1.0
    return b


def draws(b: Bench, *fields: str) -> list[Any]:
    """The values of all bodies at all ticks, one array (n, columns) for each field."""
    found: list[list[Any]] = [[] for _ in fields]
    for tick in range(1, TICKS + 1):
        out = b.at(tick)[:BODIES]
        for rows, field in zip(found, fields, strict=True):
            rows.append(out[field].reshape(BODIES, -1).copy())
    return [np.concatenate(rows[1:]) for rows in found]  # without the first, which some sensors do not have


def assert_drawn_from(errors: Any, c: Any) -> None:
    """Whitened, the errors are standard normal numbers: sums of squares and products stay within their bounds."""
    n, values, vectors = len(errors), *np.linalg.eigh(c)
    alive = values > 1e-12 * values.max()
    assert np.abs(errors @ vectors[:, ~alive]).max(initial=0.0) < 1e-6 * math.sqrt(values.max())
    z = errors @ vectors[:, alive] / np.sqrt(values[alive])
    k = z.shape[1]
    low, high = chi2.ppf([CHANCE / 2, 1.0 - CHANCE / 2], n)
    limit = 5.0 / math.sqrt(n)  # of a mean, or of a correlation: 5 standard deviations
    assert np.abs(z.mean(axis=0)).max() < limit
    assert ((z**2).sum(axis=0) > low).all() and ((z**2).sum(axis=0) < high).all()
    products = z.T @ z / n
    assert np.abs(products[~np.eye(k, dtype=bool)]).max(initial=0.0) < limit
    assert chi2.ppf(CHANCE / 2, n * k) < (z**2).sum() < chi2.ppf(1.0 - CHANCE / 2, n * k)


@pytest.mark.parametrize("c", [C, SINGULAR], ids=["full", "singular"])
def test_positions(config: Make, c: Any) -> None:
    """UWB in W, and GPS in north, east and down; also with a time constant, and with a factor of 2."""
    (p,) = draws(
        bench(config, position.UwbEmulator, f'position_covariance="{text(c)}" noise="2" position="0 0 0 m"'), "position"
    )
    assert_drawn_from(p - (0.0, 0.0, -1.0), 4.0 * c)
    b = bench(config, position.GpsEmulator, f'position_covariance="{text(c)}" correlation="0 s"')
    (e,) = draws(b, "error_W")
    assert_drawn_from(e, c)
    assert b.out["hacc"][0] == pytest.approx(math.sqrt(c[0, 0] + c[1, 1]))
    slow = bench(config, position.GpsEmulator, f'position_covariance="{text(c)}" correlation="60 s"')
    slow.at(1)
    first = slow.out["error_W"][:BODIES].copy()
    slow.at(2)
    assert np.abs(slow.out["error_W"][:BODIES] - first).max() < 0.3 * np.abs(first).max(), (
        "slow, from its first value on"
    )


def test_the_speed_of_a_gps(config: Make) -> None:
    b = bench(config, position.GpsEmulator, f'velocity_covariance="{text(0.01 * C)}" correlation="0 s"')
    for row in range(BODIES):
        b.put((0.0, 0.0, -1.0), v=(10.0, 0.0, 0.0), row=row)
    sog, cog = draws(b, "sog", "cog")
    velocity = np.column_stack([sog * np.cos(cog), sog * np.sin(cog)]) - (10.0, 0.0)
    assert_drawn_from(velocity, 0.01 * C[:2, :2])


def test_an_imu(config: Make) -> None:
    """Of each value, at any rate: biases off, the rest is the declared noise."""
    still = " ".join(f'{k}_{w}="0"' for k in ("gyro", "accelerometer") for w in ("walk", "turn_on"))
    both = f'acceleration_covariance="{text(C)}" angular_rate_covariance="{text(0.01 * SINGULAR)}"'
    f, w = draws(bench(config, motion.ImuEmulator, f"{both} {still}"), "force", "rates")
    assert_drawn_from(f - (0.0, 0.0, -9.80665), C)
    assert_drawn_from(w, 0.01 * SINGULAR)
    scalar = bench(config, motion.ImuEmulator, f'acceleration_covariance="{text(C)}" {still} grade="tactical"')
    _, w = draws(scalar, "force", "rates")
    assert w.std() == pytest.approx(4.363e-5 / math.sqrt(0.004), rel=0.05), "what has no covariance keeps its noise"


def test_attitude(config: Make) -> None:
    """Roll, pitch and heading, and the rates about the body's axes."""
    c = 1e-4 * C
    b = bench(config, motion.AhrsEmulator, f'orientation_covariance="{text(c)}" angular_rate_covariance="{text(C)}"')
    for row in range(BODIES):
        b.put((0.0, 0.0, 1.0), (0.1, -0.2, 3.0), row=row)
    roll, pitch, heading, rates = draws(b, "roll", "pitch", "heading", "rates")
    assert_drawn_from(np.column_stack([roll - 0.1, pitch + 0.2, heading - 3.0]), c)
    assert_drawn_from(rates, C)


def test_velocities(config: Make) -> None:
    """A Doppler log in its own frame, over the bottom and through the water, with beams that agree; a speed log in B."""
    c, turn = 1e-4 * C, (0.1, 0.05, 0.4)
    b = bench(
        config,
        motion.DvlEmulator,
        f'bottom_covariance="{text(c)}" water_covariance="{text(4.0 * c)}" attitude="0.1 0.05 0.4 rad"',
    )
    for row in range(BODIES):
        b.put((100.0 * row, 0.0, 10.0), v=(1.5, 0.1, 0.0), row=row)
    bottom, water, beams = draws(b, "bottom", "water", "beams")
    truth = rotation(quaternion(*turn)).T @ [1.5, 0.1, 0.0]
    assert_drawn_from(bottom - truth, c)
    assert_drawn_from(water - truth, 4.0 * c)
    directions = b.emulator.prepare(b.loaded.suite_by_name("b0", "lauv")[0].parameters).directions
    assert beams == pytest.approx(bottom @ directions.T, abs=1e-12), "the beams measure this velocity"
    log = bench(config, motion.SpeedLogEmulator, f'velocity_covariance="{text(c)}"')
    (v,) = draws(log, "v_FB_B")
    assert_drawn_from(v, c)


def test_encoders(config: Make) -> None:
    """White noise by the unit of the actuator; without the keys the exact values."""
    b = bench(config, vessel.EncoderEmulator, 'angle_sigma="1 deg" rotation_sigma="30 rpm"', "remus100-fossen")
    for row in range(BODIES):
        b.drive(10.0, 0.1, -0.2, row=row)
    (a,) = draws(b, "actuator")
    one = math.radians(1.0)
    assert_drawn_from(a[:, :3] - (10.0, 0.1, -0.2), np.diag([0.25, one**2, one**2]))
    assert not a[:, 3:].any()
    thrust = bench(config, vessel.EncoderEmulator, 'force_sigma="0.5 N" noise="2"')
    (a,) = draws(thrust, "actuator")
    assert_drawn_from(a[:, :1], np.array([[1.0]]))
    assert not a[:, 1:].any(), "fins have no noise"
    exact = bench(config, vessel.EncoderEmulator, "")
    exact.drive(3.0)
    assert exact.at(1)["actuator"][0, 0] == 3.0


def test_a_multiple_of_the_identity_is_one_sigma(config: Make) -> None:
    """The same numbers are drawn, so that a covariance and a standard deviation differ by rounding only."""
    one = bench(config, position.UwbEmulator, 'sigma="0.5 m"')
    same = bench(config, position.UwbEmulator, f'position_covariance="{text(0.25 * np.eye(3))}"')
    assert one.at(1)["position"] == pytest.approx(same.at(1)["position"], rel=1e-15)


def test_the_factor_of_a_covariance() -> None:
    """L L^T is the matrix, also if it has zero eigenvalues or rounding errors; lower triangular."""
    dice = np.random.default_rng(2)
    for rank in (1, 2, 3):
        for _ in range(50):
            half = dice.normal(size=(3, rank)) * 10.0 ** dice.uniform(-4, 4)
            c = half @ half.T
            L = covariance_factor(c.max() * np.round(c / c.max(), 8))
            assert pytest.approx(c, abs=3e-6 * c.max()) == L @ L.T and not np.triu(L, 1).any()
    assert pytest.approx(np.linalg.cholesky(C)) == matvec(covariance_factor(C), np.eye(3)).T
    assert not covariance_factor(np.zeros((3, 3))).any()


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        (
            'uwb position_covariance="1 2 0 2 1 0 0 0 1"',
            "'uwb': `position_covariance` is not positive semi-definite: its smallest eigenvalue is -1",
        ),
        (
            'gps velocity_covariance="-1 0 0 0 1 0 0 0 1"',
            "is not positive semi-definite: its smallest eigenvalue is -1",
        ),
        (
            'imu acceleration_covariance="1 0.1 0 0.2 1 0 0 0 1"',
            "'imu': `acceleration_covariance` is not symmetric: elements (1, 2) and (2, 1) differ",
        ),
        ('dvl bottom_covariance="1 0 0 0 1 0"', "has 6 number(s), expected 9"),
        ('encoder angle_sigma="-1 deg"', "below the minimum"),
    ],
)
def test_mistakes(config: Make, sensor: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        config(f"<world/><fleet><sensors><{sensor}/></sensors></fleet>")
