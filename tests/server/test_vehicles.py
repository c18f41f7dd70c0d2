"""Derived properties of the library's models against what is known of them."""

from __future__ import annotations

import json

import pytest

from tests.conftest import wavesim
from wavesim_sdk.config import library
from wavesim_server.vehicles import derived


def test_lauv() -> None:
    found = derived(library()["lauv"])
    # 2.4 u + 2.4 u^2 = 12 N
    assert found["full_speed_m_s"] == pytest.approx((-2.4 + (2.4**2 + 4 * 2.4 * 12) ** 0.5) / 4.8, abs=2e-3)
    assert found["displacement_kg"] == pytest.approx(1025 * 0.01762, abs=1e-3)
    assert 2.0 < found["turning_diameter_m"] < 15.0


def test_jolner_floats_at_its_draft() -> None:
    found = derived(library()["jolner"])
    assert found["draft_m"] == pytest.approx(114.1 / (1025 * 1.65 * 0.695), abs=2e-3)
    # heave: (m + a33) and rho g A_wp
    assert found["heave_period_s"] == pytest.approx(
        6.2832 * ((114.1 + 312.72) / (1025 * 9.81 * 1.65 * 0.695)) ** 0.5, rel=0.07
    )


def test_the_command() -> None:
    listed = json.loads(wavesim("vehicles", "--json").stdout)
    assert {m["name"] for m in listed} == set(library())
    shown = json.loads(wavesim("vehicles", "buoy", "--json").stdout)
    assert shown["derived"]["net_buoyancy_N"] == pytest.approx(265.7, abs=0.1)
    wrong = wavesim("vehicles", "remus")
    assert wrong.returncode == 2 and "did you mean 'remus100'" in wrong.stderr
