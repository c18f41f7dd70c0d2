"""Comparisons in a campaign file: hostile expressions are refused in one line and cost nothing."""

from __future__ import annotations

import tracemalloc

import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_studies.campaign.expressions import LONGEST, Expression


@pytest.mark.parametrize(
    "text",
    [
        "not " * 2000 + "a",
        "(" * 500 + "a" + ")" * 500,
        "-" * 5000 + "a",
        "a+" * 5000 + "a",
        "9" * 5000 + "*1.0 > a",
        "a" * (LONGEST + 1),
    ],
)
def test_too_long_or_too_deep(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Expression(text, ["a"], "c.xml:3")
    assert str(refused.value).startswith("c.xml:3: ") and len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "'x' * 9999999999 > a",
        "'x' * 2147483647 == 'x'",
        "9" * 900 + " * 1.0 > a",
        "a / 0 > 1",
        "'x' + 'y' == 'xy'",
        "'x' > a",
    ],
)
def test_what_cannot_be_computed_does_not_hold(text: str) -> None:
    """And takes no memory."""
    expression = Expression(text, ["a"])
    tracemalloc.start()
    try:
        assert expression({"a": 1.0}) is False
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_texts_and_numbers_are_compared() -> None:
    assert Expression("kind == 'lbl' and 0 < 2 * rms <= 1", ["kind", "rms"])({"kind": "lbl", "rms": 0.5})
    assert Expression("not " * 200 + "a == 1", ["a"])({"a": 1})
