"""Limits that only large fleets and long names reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.server.harbour import Harbour, status
from wavesim_sdk.tables import IDENTITY
from wavesim_sdk.wire.items import BodyChanged, Notice
from wavesim_sdk.wire.messages import TEXT_BYTES, Role
from wavesim_server import messages
from wavesim_world.config import LoadedConfig

MANY = 5000  #: more than events may wait for a client's acknowledgement
FLEET = '<time step="10 ms" pace="fast"/><fleet><vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/></fleet>'


def test_an_observer_receives_more_bodies_than_events_may_wait(config: Callable[..., LoadedConfig]) -> None:
    """It could not join at all: the roll call ended its session."""
    harbour = Harbour(config(f'<shared vehicles="{MANY + 9}"/>{FLEET}'))
    identity = harbour.areas["vehicles"]["identity"]
    rows = identity.latest.copy()
    assert rows.dtype == IDENTITY.dtype
    rows["present"][1 : MANY + 1], rows["model"][1 : MANY + 1] = 1, b"buoy"
    rows["name"][1 : MANY + 1] = [f"b{k}".encode() for k in range(MANY)]
    identity.publish(rows, 0)
    eye = harbour.join("eye", 0.0, role=int(Role.OBSERVER))
    while not eye.of(BodyChanged):  # the call has begun
        harbour.run(0.001)
    assert len(eye.of(BodyChanged)) < MANY / 2
    harbour.front.observers.announce_body(
        BodyChanged(MANY, 0, 2, f"b{MANY - 1}", "buoy")
    )  # it leaves before it is called
    rows["present"][MANY] = 0
    identity.publish(rows, 0)
    harbour.run(0.8)
    changes = [(e.id, e.present) for e in eye.of(BodyChanged)]
    assert changes.count((MANY, 0)) == 1 and (MANY, 1) not in changes
    assert sorted(row for row, present in changes if present) == list(range(1, MANY))
    assert not harbour.front.observers.has_roll_calls and len(status(harbour)["observers"]) == 1


def test_a_roll_call_ends_with_its_session(config: Callable[..., LoadedConfig]) -> None:
    harbour = Harbour(config(f'<shared vehicles="{MANY}"/>{FLEET}'))
    identity = harbour.areas["vehicles"]["identity"]
    rows = identity.latest.copy()
    rows["present"], rows["model"], rows["name"] = 1, b"buoy", b"b"
    identity.publish(rows, 0)
    eye = harbour.join("eye", role=int(Role.OBSERVER))
    eye.session.leave()
    harbour.run(0.05)
    assert not harbour.front.observers.has_roll_calls and status(harbour)["observers"] == []


@pytest.mark.parametrize("letter", ["x", "\u6c34"])
def test_a_notice_of_any_length_is_shortened(config: Callable[..., LoadedConfig], letter: str) -> None:
    """A fence may have a name of three thousand letters: who crossed it lost its session."""
    harbour = Harbour(config(FLEET))
    client = harbour.join("a")
    harbour.engine.events.emit(
        messages.NoticeEvent(0, 0, "a", f"left the fence '{letter * 3000}'", harbour.engine.run.generation(0))
    )
    harbour.run(0.05)
    (notice,) = client.of(Notice)
    assert notice.text.startswith("left the fence") and TEXT_BYTES - 3 < len(notice.text.encode()) <= TEXT_BYTES
    assert status(harbour)["drops"].get("internal", 0) == 0
