"""The <hydrophone> element: what it means, and one message for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_world.config import load_text

BODY = (
    '<wavesim><time step="10 ms"/><fleet><vehicle name="a" model="lauv" position="0 0 5 m"><sensors>'
    "<hydrophone {keys}>{elements}</hydrophone></sensors></vehicle></fleet></wavesim>"
)


def hydrophone(keys: str = "", elements: str = "") -> Any:
    loaded = load_text(BODY.format(keys=keys, elements=elements))
    return loaded.suite(loaded.config.fleet.bodies[0])[-1].parameters


def test_defaults() -> None:
    h = hydrophone()
    assert h.element_positions == ((0.0, 0.0, 0.0),)
    assert h.band == (10.0, pytest.approx(38_400.0)) and h.block_samples == 9600


def test_an_array() -> None:
    h = hydrophone(
        'sampling="250 kHz" rate="20 Hz" high="100 kHz"',
        '<element position="0 22.86 0 mm"/><element position="1 0 0 cm"/>',
    )
    assert h.element_positions == ((0.0, pytest.approx(0.02286), 0.0), (0.01, 0.0, 0.0))
    assert h.block_samples == 12_500


@pytest.mark.parametrize(
    ("keys", "elements", "message"),
    [
        ('sampling="96"', "", "'96' has no unit; write one of Hz, kHz"),
        ('sampling="96 m"', "", "'m' is not a unit of frequency"),
        ('sampling="300 kHz"', "", "above the maximum, 250000 Hz"),
        ('high="39 kHz"', "", "above 0.40 times the sampling rate; use a `sampling` of at least 97500 Hz"),
        ('low="40 kHz"', "", "`low` 40000 Hz must be below the upper edge of the band, 38400 Hz"),
        ('low="2 kHz" high="2 kHz"', "", "must be below the upper edge of the band, 2000 Hz"),
        ('sampling="96.001 kHz"', "", "a block of 1/10 s contains 9600.1 samples"),
        ('rate="30 Hz"', "", "a block of 1/30 s contains 3.33333 time steps of 0.01 s"),
        ('rate="200 Hz"', "", "a block of 1/200 s contains 0.5 time steps"),
        ('latency="10 ms"', "", "`latency` has no effect on the blocks of a hydrophone; remove it"),
        ('drop_out="0.1"', "", "`drop_out` has no effect on the blocks of a hydrophone; remove it"),
        ('clock_offset="-1000001 s"', "", "below the minimum, -1e+06 s"),
        ('bits="8"', "", "`bits` must be 0, 12, 16 or 24"),
        ("", '<element position="0 0 0 m"/>' * 65, "it has 65 elements; the maximum is 64"),
        ("", '<element position="0 0 0 m"/><element position="3 4 1 m"/>', "element 2 is 5.099 m from the hydrophone"),
        ("", '<element position="0 0"/>', "has no unit"),
        ("", "<phone/>", "<hydrophone> has no element <phone>"),
    ],
)
def test_a_mistake_gives_one_message(keys: str, elements: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        hydrophone(keys, elements)
    assert message in str(error.value) and "\n" not in str(error.value)
