"""`takeover="return"`: a pilot waits while another client drives its body, and drives again afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.server.harbour import Client, Harbour, done
from wavesim_sdk.wire.client import Phase
from wavesim_sdk.wire.items import Notice
from wavesim_world.config import LoadedConfig

FLEET = """<time step="10 ms" pace="fast"/>
<network keepalive_period="0.1 s" keepalive_timeout="0.5 s" lockstep_timeout="1 s" takeover="return"/>
<fleet><vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/></fleet>"""


@pytest.fixture
def harbour(config: Callable[..., LoadedConfig]) -> Harbour:
    return Harbour(config(FLEET))


def drive(harbour: Harbour, client: Client, seconds: float, value: float) -> int:
    """Let time pass while a lockstep client answers; return the number of its answers."""
    answered = 0
    for _ in range(round(seconds / 0.01)):
        harbour.run(0.01)
        for state in client.states:
            if state.step:
                client.session.done(state.tick, [value])
                answered += 1
        client.events[:] = [e for e in client.events if e not in client.states]
    return answered


def commands(harbour: Harbour) -> list[float]:
    return [values[0] for _, row, values in done(harbour, "command")]


@pytest.mark.parametrize("ending", ["leaves", "falls silent"])
def test_a_program_waits_and_drives_again(harbour: Harbour, ending: str) -> None:
    program = harbour.join("a", lockstep_ns=50_000_000)
    harbour.order("start")
    assert drive(harbour, program, 0.3, 3.0) > 2
    operator = harbour.join("a")
    assert operator.session.welcome is not None and operator.session.welcome.resumed == 2
    tick = harbour.sea.tick
    assert drive(harbour, program, 0.1, 99.0) <= 1, "the step that was under way"
    assert drive(harbour, program, 1.0, 99.0) == 0, "it receives no steps"
    assert program.session.phase is Phase.JOINED, "it stays connected for longer than the keep-alive timeout"
    assert harbour.sea.tick > tick, "the simulation does not wait for it"
    program.session.actuate([99.0])
    operator.session.actuate([7.0])
    harbour.run(0.1)
    assert commands(harbour)[-1] == 7.0 and 99.0 not in commands(harbour), "its commands have no effect"
    if ending == "leaves":
        operator.session.leave()
    else:
        operator.cut = True
        harbour.run(0.6)
    assert drive(harbour, program, 0.5, 5.0) > 2
    assert commands(harbour)[-1] == 5.0 and done(harbour, "leave") == [] and len(done(harbour, "enter")) == 1
    assert [n.text for n in program.of(Notice)] == [
        "another client is now driving 'a'; you will drive it again when that client leaves",
        "you drive 'a' again",
    ]
    program.session.leave()
    harbour.run(0.1)
    assert len(done(harbour, "leave")) == 1


def test_a_waiting_program_that_ends_leaves_its_body_to_the_operator(harbour: Harbour) -> None:
    program, operator = harbour.join("a"), harbour.join("a")
    again = harbour.join("a", previous=program.session.token)
    assert again.session.welcome is None, "it cannot return before the operator leaves"
    program.session.leave()
    harbour.run(0.1)
    assert done(harbour, "leave") == [] and operator.session.phase is Phase.JOINED
    operator.session.leave()
    harbour.run(0.1)
    assert len(done(harbour, "leave")) == 1


def test_a_third_client_replaces_the_second_and_the_program_still_waits(harbour: Harbour) -> None:
    program, second = harbour.join("a"), harbour.join("a")
    third = harbour.join("a")
    assert second.session.phase is Phase.CLOSED and third.session.phase is Phase.JOINED
    resumed = harbour.join("a", previous=third.session.token)
    assert resumed.session.welcome is not None and resumed.session.welcome.resumed == 1
    resumed.session.leave()
    harbour.run(0.1)
    assert program.session.phase is Phase.JOINED and done(harbour, "leave") == []
    assert harbour.front.crews.pilot(0).session.token == program.session.token  # type: ignore[union-attr]
