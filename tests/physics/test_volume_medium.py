"""Sound through a grid of sound speeds: closed forms, the layered rays, reciprocity, a Runge-Kutta twin, and the medium."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import PLAIN, node, run, sea
from wavesim_server import Simulation
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean import sound
from wavesim_world.ocean.sound import SoundSpeedVolume

Speed = Callable[[Any, Any, Any], Any]
Make = Callable[..., LoadedConfig]
QUIET = 'absorption="0 dB/m" spreading="0 "'
SAND = '<multipath order="{order}" bottom_speed="1650 m/s" bottom_density="1.9" bottom_attenuation="0.8 "/>'


def volume(
    speed: Speed, depths: Any, spacing: tuple[float, float], reach: float, times: tuple[float, ...] = (0.0,)
) -> SoundSpeedVolume:
    """Speeds at the points of a grid that covers a square around the origin."""
    axes = [np.arange(-math.ceil(reach / s), math.ceil(reach / s) + 1) * s for s in spacing]
    n, e = axes
    c = [speed(n[None, :, None], e[None, None, :], depths[:, None, None]) + 0.0 * n[None, :, None] * e for _ in times]
    return SoundSpeedVolume(np.array(c), depths, np.array(times), (float(n[0]), float(e[0])), spacing)


def sea_with(
    monkeypatch: pytest.MonkeyPatch,
    config: Make,
    water: SoundSpeedVolume,
    order: int = 0,
    world: str = '<bed depth="100 m"/>',
    tick: str = "20 ms",
) -> Simulation:
    monkeypatch.setattr(sound, "sound_speed_volume", lambda *_: water)
    inner = SAND.format(order=order) if order else ""
    return sea(config, tick, PLAIN, world=world, extra=QUIET, inner=inner)


def test_ticks(config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    depths = np.linspace(0.0, 100.0, 9)
    water = volume(
        lambda n, e, z: 1500.0 - 10.0 * np.tanh((z - 30.0 - 0.01 * n) / 10.0), depths, (300.0, 400.0), 4000.0
    )
    logs = []
    for tick in ("1 ms", "4 ms", "20 ms"):
        sim = sea_with(monkeypatch, config, water, 2, tick=tick)
        a = node(sim, "a", 0, 0.0, 1.5, z=20.0)
        b = node(sim, "b", 0, 1200.0, -2.0, y=500.0, z=50.0)
        sim.ping(a, 25e3)
        sim.ping(b, 25e3)
        _, receptions = run(sim, 2.0)
        logs.append(np.sort(receptions[["arrival_ns", "id", "receiver", "outcome", "surface", "bottom"]]))
    for log in logs[1:]:
        assert (log == logs[0]).all()
