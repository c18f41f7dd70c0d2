"""Age of information and energy by outcome in the network report, compared with closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.tables import RECEPTION, SENT, Outcome
from wavesim_server.logbook.information_age import information_ages
from wavesim_server.logbook.network_report import network_table, report_text

PERIOD, TRAVEL, LENGTH = 4.0, 1.25, 0.5  # s


def periodic(lost: np.ndarray, source: int = 0, receiver: int = 1) -> tuple[Any, Any]:
    """Records of packets that leave every PERIOD, of which some are lost in a collision."""
    n = len(lost)
    sent, at = np.zeros(n, SENT.dtype), np.zeros(n, RECEPTION.dtype)
    for records in (sent, at):
        records["id"], records["source"], records["kind"] = np.arange(n) + 1000 * source + 1, source, 1
        records["from_address"], records["to_address"], records["duration"] = source + 1, receiver + 1, LENGTH
        records["emission_ns"] = np.round(np.arange(n) * PERIOD * 1e9).astype(int)
    at["receiver"], at["arrival_ns"] = receiver, at["emission_ns"] + round(TRAVEL * 1e9)
    at["outcome"] = np.where(lost, Outcome.COLLISION, Outcome.HEARD)
    sent["source_level"], sent["payload_bytes"] = 180.0, 8
    return sent, at


def test_periodic_traffic_has_the_age_of_the_closed_form() -> None:
    """Delay + T/2 over time and delay + T at the peaks; if every second packet is lost, with twice the period."""
    for lost, period in ((np.zeros(40, bool), PERIOD), (np.arange(41) % 2 == 1, 2.0 * PERIOD)):
        sent, at = periodic(lost)
        (age,) = network_table(sent, at, 160.0, {1: 2})["pairs"]
        delay = TRAVEL + LENGTH
        assert (age["source"], age["receiver"], age["updates"]) == (0, 1, (~lost).sum())
        assert age["mean"] == pytest.approx(delay + 0.5 * period)
        assert (age["peak"], age["highest"]) == pytest.approx((delay + period, delay + period))


def test_independent_losses_have_the_age_of_the_closed_form() -> None:
    """Intervals with a geometric distribution: delay + E(X^2) / (2 E(X)) over time, and delay + E(X) at the peaks."""
    p = 0.4
    _, at = periodic(np.random.default_rng(3).random(40_000) < p)
    good = at[at["outcome"] == 0]
    (age,) = information_ages(good, float(good["arrival_ns"].max()) * 1e-9 + LENGTH)
    assert age["mean"] == pytest.approx(TRAVEL + LENGTH + 0.5 * PERIOD * (1.0 + p) / (1.0 - p), rel=0.01)
    assert age["peak"] == pytest.approx(TRAVEL + LENGTH + PERIOD / (1.0 - p), rel=0.01)


def test_older_packets_change_nothing_and_the_age_grows_until_the_end() -> None:
    """By hand: packets of 0 s and 4 s arrive at 1.75 s and 5.75 s; one of 2 s arrives at 8 s; the end is at 9.75 s."""
    _, at = periodic(np.zeros(3, bool))
    at["emission_ns"][2], at["arrival_ns"][2] = 2_000_000_000, 7_500_000_000
    (age,) = information_ages(at[[2, 0, 1]], 9.75)
    assert (age["updates"], age["peak"], age["highest"]) == (2, pytest.approx(5.75), pytest.approx(5.75))
    assert age["mean"] == pytest.approx((0.5 * (5.75**2 - 1.75**2) + 0.5 * (5.75**2 - 1.75**2)) / 8.0)
    assert information_ages(at[:0], 1.0) == []
    (single,) = information_ages(at[:1], 0.0)
    assert single["mean"] == pytest.approx(1.75) and math.isnan(single["peak"])


def test_each_packet_divides_its_energy_among_its_destinations() -> None:
    """Two packets to one node, one of them lost; one to all, heard by one of two; one without any record."""
    sent, at = periodic(np.array([False, True, False, False, False]))
    at = at[:4]
    sent["to_address"][2:4] = at["to_address"][2:4] = 0
    sent["id"][3] = at["id"][3] = 3
    at["receiver"][3], at["outcome"][3] = 2, Outcome.FADED
    sent = sent[[0, 1, 2, 4]]
    table = network_table(sent, at, 20.0, {1: 2, 2: 3})
    one = table["energy_j"] / 4.0
    assert one == pytest.approx(4.0 * math.pi * 1e6 / (1025.0 * 1500.0) * LENGTH)
    expected = {"collision": one, "delivered": 1.5 * one, "faded": 0.5 * one, "no_record": one}
    assert table["energy_by_outcome_j"] == pytest.approx(expected)
    text = report_text(table)
    assert "energy for    25.0 % collision, 37.5 % delivered, 12.5 % faded, 25.0 % no record" in text
    assert "age           " in text
