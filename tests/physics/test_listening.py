"""Transducers that receive only when asked, and the limit of the range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.physics.sea import ANSWERS, PLAIN, heard, node, outcomes, run, sea
from wavesim_sdk.tables import Outcome
from wavesim_server.acoustics import medium_arrays
from wavesim_world.config import LoadedConfig

ASKED = PLAIN + ' listening="asked"'
ECHOES = '<multipath order="2"/>'
#: attributes and elements of <acoustics>: straight paths, one arc, image sources, eigenrays
WATERS = [
    pytest.param("", "", id="straight"),
    pytest.param('profile="gradient" gradient="0.02"', "", id="arc"),
    pytest.param("", ECHOES, id="images"),
    pytest.param('profile="gradient" gradient="0.02"', ECHOES, id="rays"),
]


def test_a_sleeping_transducer_neither_receives_nor_answers(config: Callable[..., LoadedConfig]) -> None:
    sim = sea(config, "20 ms", PLAIN, ANSWERS.format(tat=50) + ' listening="asked"')
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 1000.0)
    sim.ping(a, 25e3)
    sim.advance(5)
    assert sim.channel.medium.chunks.count.sum() == 1, "only the end of the signal is scheduled"
    sent, receptions = run(sim, 2.0)
    assert len(sent) == 1 and sent["out_of_reach"][0] == 0 and len(receptions) == 0
    sim.listen(b)
    sim.ping(a, 25e3)
    sent, receptions = run(sim, 2.0)
    assert len(sent) == 2 and len(heard(receptions, a)) == len(heard(receptions, b)) == 1


@pytest.mark.parametrize(("extra", "inner"), WATERS)
def test_a_woken_transducer_receives_what_has_not_passed_it(
    config: Callable[..., LoadedConfig], extra: str, inner: str
) -> None:
    """The signal of a has passed when b wakes, that of c has not. It has the values of a run in which b never slept."""
    found = []
    for transducer in (PLAIN, ASKED):
        sim = sea(config, "20 ms", PLAIN, transducer, extra=extra, inner=inner, world='<bed depth="200 m"/>')
        a, b = node(sim, "a", 0, 0.0, z=50.0), node(sim, "b", 1, 300.0, 1.5, z=80.0)
        c = node(sim, "c", 0, 1800.0, z=60.0)
        sim.ping(a, 20e3)
        sim.ping(c, 30e3)
        run(sim, 0.6)
        sim.listen(b)
        _, receptions = run(sim, 1.5)
        found.append(receptions[receptions["receiver"] == b])
        assert set(found[-1]["source"]) == {c}
    always, asked = found
    assert len(always) == len(asked) and (Outcome.HEARD in always["outcome"])
    for name in ("arrival_ns", "outcome", "surface", "bottom"):
        assert (always[name] == asked[name]).all(), name
    np.testing.assert_allclose(asked["level"], always["level"], atol=1e-9)
    np.testing.assert_allclose(asked["doppler"], always["doppler"], atol=1e-9)


def test_signals_received_once_after_sleep_and_waking(config: Callable[..., LoadedConfig]) -> None:
    sim = sea(config, "20 ms", PLAIN, ASKED)
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 1500.0)
    sim.listen(b)
    sim.ping(a, 20e3)  # sent while b is awake
    run(sim, 0.2)
    sim.listen(b, False)
    sim.ping(a, 22e3)  # while it sleeps
    run(sim, 0.2)
    sim.listen(b)
    sim.listen(b, False)  # before the next tick: it stays asleep
    sim.listen(b)
    sim.listen(b)
    _, receptions = run(sim, 2.0)
    assert heard(receptions, b)["frequency"].tolist() == [20e3, 22e3]
    sim.listen(b, False)
    sim.ping(a, 20e3)
    _, receptions = run(sim, 2.0)
    assert len(receptions) == 0
    with pytest.raises(ValueError, match="no body in row 77"):
        sim.listen(77)


def test_a_path_beyond_the_maximum_range_fades(config: Callable[..., LoadedConfig]) -> None:
    sim = sea(config, "20 ms", PLAIN, extra='max_range="1000 m"')
    a = node(sim, "a", 0, 0.0)
    near, far, beyond = node(sim, "n", 0, 999.9), node(sim, "f", 0, 1000.1), node(sim, "b", 0, 3000.0)
    sim.ping(a, 25e3)
    sent, receptions = run(sim, 3.0)
    assert outcomes(receptions, near) == [Outcome.HEARD]
    assert outcomes(receptions, far) == outcomes(receptions, beyond) == [Outcome.FADED]
    assert sent["out_of_reach"][0] == 1 and sim.channel.counters[2] == 0


def test_only_arrays_without_room_grow(config: Callable[..., LoadedConfig]) -> None:
    m = sea(config, "20 ms", PLAIN).channel.medium
    m.counters[0].left_chunks = 0
    bigger = medium_arrays.grow_medium(m)
    grown = [name for name in m._fields if len(getattr(bigger, name)) > len(getattr(m, name))]
    assert grown == ["chunks", "waiting"], "the rays of candidates exist only under a profile"
