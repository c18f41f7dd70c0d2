"""Generic commands: on every shipped model, each does what its name says, and hardly anything else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wavesim_sdk.actuators import ActuatorKind
from wavesim_sdk.errors import InvalidArgument, UnknownName
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model, library
from wavesim_world.mixing import AXES, Mixer

SECONDS = 0.3  #: before the hull itself turns or dives
MIXERS = {name: Mixer(model) for name, model in library().items()}


def speed_of(model: Model) -> float:
    """A speed at which fins and nozzles act, m/s."""
    return 0.25 * max(1.0, model.valid_speed) if model.fin else 0.0


def motions(demands: list[tuple[str, dict[str, float]]]) -> list[np.ndarray]:
    """What each demand changes in u v w p q r at once, against the same model without it."""
    step = 0.02
    sim = empty_sea(2 * len(demands), step, '<bed depth="11000 m"/>')
    rows = []
    for k, (name, demand) in enumerate(demands):
        model, pair = library()[name], []
        for j, wanted in enumerate(
            (demand, {key: v for key, v in demand.items() if key == "surge" and len(demand) > 1})
        ):
            down = equilibrium_depth(model, sim.config.world.density)
            row = sim.enter(f"v{2 * k + j}", position=(0.0, 3000.0 * (2 * k + j), down), variant=model)
            sim.set_pose(row, velocity=(speed_of(model), 0.0, 0.0, 0.0, 0.0, 0.0))
            sim.command(row, MIXERS[name](**wanted))
            sim.fleet.settle_actuators(row)
            pair.append(row)
        rows.append(pair)
    sim.advance(round(SECONDS / step))
    state = sim.state()
    nu = np.hstack([state["v_WB_B"], state["w_WB_B"]])
    return [nu[a] - nu[b] for a, b in rows]


def demand_of(mixer: Mixer, axis: str, share: float) -> dict[str, float]:
    """Steering that needs thrust (nozzles, azimuth drives) is asked for under way."""
    steers = axis == "yaw" and mixer.model.thruster and any(t.swivel for t in mixer.model.thruster)
    return {axis: share, **({"surge": 0.5} if steers else {})}


@pytest.mark.parametrize("name", [n for n, m in MIXERS.items() if m.axes])
def test_each_axis_of_every_model_acts_as_it_is_called(name: str) -> None:
    mixer = MIXERS[name]
    asked = [(name, demand_of(mixer, axis, share)) for axis in mixer.axes for share in (0.8, -0.8)]
    found = motions(asked)
    brakes = mixer.model.type != "aircraft"  # the propeller of an aircraft does not
    effect = {
        axis: min(abs(found[2 * k + j][AXES.index(axis)]) for j in ((0, 1) if brakes or axis != "surge" else (0,)))
        for k, axis in enumerate(mixer.axes)
    }
    for k, axis in enumerate(mixer.axes):
        for j, sign in enumerate((1.0, -1.0)):
            change = found[2 * k + j]
            if axis == "surge" and sign < 0.0 and not brakes:
                continue
            assert sign * change[AXES.index(axis)] > 1e-4, f"{name}: {sign:+g} {axis} changes u v w p q r by {change}"
            if axis == "surge" and mixer.model.fin:
                continue  # the speed changes the lift, and with it the trim
            for other in set(mixer.axes) - {axis}:
                aside = abs(change[AXES.index(other)]) / effect[other]
                assert aside < 0.35, f"{name}: {axis} moves {other} by {aside:.0%} of its own effect"


def test_every_driven_model_has_a_mixer() -> None:
    for name, mixer in MIXERS.items():
        model = mixer.model
        assert bool(mixer.keywords) == bool(model.thruster or model.fin), name
        assert set(mixer()) == {a.name for a in actuators_of(model) if a.kind is not ActuatorKind.BALLAST}, name
        assert "surge" in mixer.axes or not model.thruster, name
    assert MIXERS["lauv"].keywords == ("surge", "pitch", "yaw", "rudder", "planes")
    assert MIXERS["bluerov2"].axes == ("surge", "sway", "heave", "roll", "yaw")


def test_angles_limits_and_shares() -> None:
    mix = MIXERS["lauv"]
    assert mix(surge=1.0, rudder=0.1, planes=0.05) == {
        "propeller": 12.0,
        "rudder-top": -0.1,
        "rudder-bottom": -0.1,
        "plane-port": 0.05,
        "plane-starboard": 0.05,
    }
    assert mix(surge=-5.0)["propeller"] == -6.0 and mix(rudder=9.0)["rudder-top"] == -math.radians(25.0)
    half, full = MIXERS["otter"](surge=0.5), MIXERS["otter"](surge=1.0)
    assert half["port"] == pytest.approx(full["port"] / math.sqrt(2.0)), "half the thrust, by the law of the propeller"
    both = MIXERS["bluerov2"](surge=1.0, yaw=1.0)
    assert max(map(abs, both.values())) == pytest.approx(40.0), "the sum is scaled to the limits"


def test_what_a_model_cannot_do_is_refused() -> None:
    with pytest.raises(UnknownName, match="'lauv' has no sway; allowed: surge, pitch, yaw, rudder, planes"):
        MIXERS["lauv"](sway=0.1)
    with pytest.raises(UnknownName, match="'lauv' has no ruder; did you mean 'rudder'"):
        MIXERS["lauv"](ruder=0.1)
    with pytest.raises(UnknownName, match="'buoy' has no surge; it has no actuators"):
        MIXERS["buoy"](surge=0.1)
    with pytest.raises(UnknownName, match="unknown model 'lauw'; did you mean 'lauv'"):
        Mixer("lauw")
    with pytest.raises(InvalidArgument, match="surge must be a finite number, got nan"):
        MIXERS["lauv"](surge=math.nan)
