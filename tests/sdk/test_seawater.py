"""Sea water against the check values of UNESCO 44 (Fofonoff & Millard 1983), and another implementation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from wavesim_world.ocean import seawater as sw

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import seawater


def at(*values: float) -> tuple[np.ndarray, ...]:
    return tuple(np.array(v) for v in values)


def test_check_values_of_the_report() -> None:
    for ratio, t, p, s in ((1.0, 15.0, 0.0, 35.0), (1.2, 20.0, 2000.0, 37.245628), (0.65, 5.0, 1500.0, 27.995347)):
        assert sw.salinity(*at(ratio * sw.C_35_15_0, t, p)) == pytest.approx(s, abs=1e-6)
    assert sw.conductivity(*at(40.0, 40.0, 10000.0)) / sw.C_35_15_0 == pytest.approx(1.888091, abs=5e-7)
    for t, p, ratio in ((10.0, 0.0, 0.654990), (0.0, 1000.0, 0.506244), (10.0, 1000.0, 0.662975)):
        assert sw.conductivity(*at(25.0, t, p)) / sw.C_35_15_0 == pytest.approx(ratio, abs=1e-6)
    assert sw.density(*at(40.0, 40.0, 10000.0)) - 1000.0 == pytest.approx(59.82037, abs=1e-5)
    for t, p, rho in ((5, 0, 1027.67547), (25, 0, 1023.34306), (5, 10000, 1069.48914), (25, 10000, 1062.53817)):
        assert sw.density(*at(35.0, t, p)) == pytest.approx(rho, abs=1e-5)
    assert sw.depth(np.array(10000.0), np.radians(30.0)) == pytest.approx(9712.653, abs=1e-3)
    for latitude, z in ((0, 496.65), (30, 496.00), (45, 495.34), (90, 494.03)):
        assert sw.depth(np.array(500.0), np.radians(latitude)) == pytest.approx(z, abs=0.005)
    assert sw.freezing_point(*at(40.0, 500.0)) == pytest.approx(-2.588567, abs=1e-6)
    assert sw.conductivity(*at(35.0, 15.0, 0.0)) * 10 == pytest.approx(42.914, abs=1e-5)
    assert sw.conductivity(*at(35.0, 10.0, 1000.0)) * 10 == pytest.approx(38.52725, abs=1e-5)


def test_against_another_implementation() -> None:
    s, t, p = (a.ravel() for a in np.meshgrid(np.linspace(2, 42, 9), np.linspace(-2, 35, 8), np.linspace(0, 10000, 5)))
    assert sw.density(s, 1.00024 * t, p) == pytest.approx(seawater.dens(s, t, p), rel=1e-12)
    assert sw.freezing_point(s, p) / 1.00024 == pytest.approx(seawater.fp(s, p), abs=1e-12)
    assert sw.depth(p, np.radians(41.0)) == pytest.approx(seawater.dpth(p, 41.0), rel=1e-12)


def test_conductivity_and_salinity_are_inverse_to_1e_9() -> None:
    s, t, p = (a.ravel() for a in np.meshgrid(np.linspace(2, 42, 9), np.linspace(-2, 35, 8), np.linspace(0, 10000, 5)))
    assert sw.salinity(sw.conductivity(s, t, p), t, p) == pytest.approx(s, abs=1e-9)
