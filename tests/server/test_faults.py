"""Scheduled faults: when they begin and end, and which ones the configuration refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.fault_schedule import NEVER, FaultChange, FaultSchedule
from wavesim_world.config import LoadedConfig

BODY = '<fleet><vehicle name="v" model="lauv" position="0 0 50 m">{}</vehicle></fleet>'
STEP = 20_000_000


def body(config: Callable[..., LoadedConfig], inner: str) -> LoadedConfig:
    return config('<time step="20 ms"/><world><bed depth="500 m"/></world>' + BODY.format(inner))


def history(schedule: FaultSchedule, ticks: int) -> list[tuple[int, str, str]]:
    """(tick, part, kind) of every change, found by going from one tick at which something changes to the next."""
    found, tick = [], 0
    while tick <= ticks:
        found += [(tick, c.part, c.kind) for c in schedule.changes_at(tick)]
        tick = schedule.next_tick(tick)
    return found


def test_once_and_again(config: Callable[..., LoadedConfig]) -> None:
    loaded = body(
        config,
        '<fault at="10 s" for="2 s" part="propeller" kind="lost"/>'
        '<fault at="1 s" for="100 ms" every="30 s" part="rudder-top" kind="stuck"/>'
        '<fault at="0 s" part="plane-port" kind="reduced" amount="0.5"/>',
    )
    schedule = FaultSchedule(loaded, STEP)
    assert history(schedule, 3100) == [
        (0, "plane-port", "reduced"),
        (50, "rudder-top", "stuck"),
        (55, "rudder-top", "none"),
        (500, "propeller", "lost"),
        (600, "propeller", "none"),
        (1550, "rudder-top", "stuck"),
        (1555, "rudder-top", "none"),
        (3050, "rudder-top", "stuck"),
        (3055, "rudder-top", "none"),
    ]
    assert list(schedule.changes_at(51)) == [] and schedule.next_tick(51) == 55
    once = FaultSchedule(body(config, '<fault at="10 s" for="2 s" part="propeller" kind="lost"/>'), STEP)
    assert once.next_tick(600) == NEVER and list(once.changes_at(600)) == [
        FaultChange("v", "propeller", "none", "", "")
    ]


def test_every_tick_agrees_with_the_jumps(config: Callable[..., LoadedConfig]) -> None:
    loaded = body(
        config,
        '<fault at="130 ms" for="250 ms" every="710 ms" part="propeller" kind="lost"/>'
        '<fault at="300 ms" for="40 ms" every="90 ms" part="propeller" kind="reversed"/>',
    )
    schedule = FaultSchedule(loaded, STEP)
    each = [(tick, c.part, c.kind) for tick in range(400) for c in schedule.changes_at(tick)]
    assert each == history(schedule, 399) and len(each) > 100


def test_what_ends_leaves_the_other_fault_of_a_part(config: Callable[..., LoadedConfig]) -> None:
    schedule = FaultSchedule(
        body(
            config,
            '<fault at="1 s" for="4 s" part="propeller" kind="reduced" amount="0.3"/>'
            '<fault at="2 s" for="1 s" part="propeller" kind="reversed"/>',
        ),
        STEP,
    )
    assert history(schedule, 1000) == [
        (50, "propeller", "reduced"),
        (100, "propeller", "reversed"),
        (150, "propeller", "none"),
        (150, "propeller", "reduced"),
        (250, "propeller", "none"),
    ]
    assert [(c.kind, c.amount) for c in schedule.active_faults("v", 120)] == [("reduced", "0.3"), ("reversed", "")]
    assert list(schedule.active_faults("v", 300)) == [] and list(schedule.active_faults("w", 120)) == []


def test_times_between_ticks_are_rounded_up(config: Callable[..., LoadedConfig]) -> None:
    schedule = FaultSchedule(body(config, '<fault at="1.001 s" for="1 ms" part="propeller" kind="lost"/>'), STEP)
    assert history(schedule, 100) == [(51, "propeller", "lost"), (52, "propeller", "none")]


def test_without_faults(config: Callable[..., LoadedConfig]) -> None:
    schedule = FaultSchedule(body(config, ""), STEP)
    assert schedule.next_tick(0) == NEVER and list(schedule.changes_at(0)) == []


def test_on_a_simulation(config: Callable[..., LoadedConfig]) -> None:
    loaded = body(config, '<fault at="100 ms" for="200 ms" part="propeller" kind="stuck"/>')
    sim = Simulation(loaded)
    row, schedule, seen = sim.enter("v"), FaultSchedule(loaded, STEP), []
    sim.command(row, {"propeller": 5.0})
    for tick in range(40):
        for change in schedule.changes_at(tick):
            sim.fail(row, change.part, change.kind, change.amount)
        sim.advance(1)
        seen.append(float(sim.actuation()["actual"][row][0]))
    assert seen[4:15] == [seen[4]] * 11 and seen[3] < seen[4] and seen[15] > seen[14]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            'at="1 s" part="propellor" kind="lost"',
            r"unknown actuator or sensor 'propellor'; did you mean 'propeller'\?",
        ),
        ('at="1 s" part="propeller" kind="bias"', "'bias' is not an actuator fault"),
        ('at="1 s" part="propeller" kind="none"', "use `for` to end a scheduled fault"),
        ('at="1 s" part="propeller" kind="lost" amount="0.5"', "actuator fault 'lost' does not use `amount`"),
        ('at="1 s" part="propeller" kind="lost" field="x"', "remove `field`"),
        ('at="1 s" part="propeller" kind="reduced"', "'' is not a number"),
        ('at="1 s" part="propeller" kind="reduced" amount="2"', "the remaining fraction must be between 0 and 1"),
        ('at="1 s" part="propeller" kind="frozen" amount="5 m"', "is not a unit of time"),
        ('at="1 s" every="5 s" part="propeller" kind="lost"', "needs `for`, and `for` must be shorter than `every`"),
        (
            'at="1 s" for="5 s" every="5 s" part="propeller" kind="lost"',
            "needs `for`, and `for` must be shorter than `every`",
        ),
        ('at="-1 s" part="propeller" kind="lost"', "below the minimum"),
    ],
)
def test_what_the_configuration_refuses(config: Callable[..., LoadedConfig], fault: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        body(config, f"<fault {fault}/>")
    assert refused.value.line > 0


def test_faults_of_sensors(config: Callable[..., LoadedConfig]) -> None:
    inner = '<sensors><ctd rate="1 Hz"/></sensors><fault at="1 s" part="ctd" kind="{}" amount="{}" field="{}"/>'
    (change,) = FaultSchedule(body(config, inner.format("bias", "0.5 C", "temperature")), STEP).changes_at(50)
    assert change == FaultChange("v", "ctd", "bias", "0.5 C", "temperature")
    for kind, amount, field, message in (
        ("bias", "0.5 m", "temperature", "is not a unit of temperature"),
        ("spikes", "3", "", "spike probability"),
        ("stuck", "", "", "unknown sensor fault 'stuck'"),
    ):
        with pytest.raises(ConfigError, match=message):
            body(config, inner.format(kind, amount, field))


def test_an_actuator_and_a_sensor_of_one_name(config: Callable[..., LoadedConfig]) -> None:
    with pytest.raises(ConfigError, match="both an actuator and a sensor 'propeller'"):
        body(config, '<sensors><ctd name="propeller" rate="1 Hz"/></sensors>')
