"""Compiled emulators give the bits of their readable twins in NumPy, in any attitude, with any mount, noise and fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulators.bench import Bench, Make
from tests.emulators.numpy_twins import TWINS
from wavesim_emulators import bank_kernels
from wavesim_emulators.base import Emulator
from wavesim_sdk.tables import WEATHER

PLAIN = '<bed depth="12 m"/>'
FULL = """<bed depth="20 m" slope_north="0.05" slope_east="-0.02"><bump height="-9 m" north="20 m" east="10 m" alpha="0.03 1/m"
beta="0.04 1/m"/><bump height="5 m" north="-20 m" east="10 m" alpha="0.05 1/m" beta="0.01 1/m"/></bed><obstacles>
<block position="12 0 8 m" size="2 30 20 m" heading="20 deg"/><pier position="-9 6 10 m" radius="2 m" height="20 m"/>
<tunnel position="0 12 8 m" length="20 m" width="6 m" height="5 m" heading="30 deg"/></obstacles>
<temperature surface="17 C" knee_1="3 m" knee_2="8 m" gradient_1="-0.2 C/m" gradient_2="-0.01 C/m">
<spot deviation="1.6" position="3 2 6 m" alpha="0.1 1/m" beta="0.1 1/m" gamma="0.2 1/m"/></temperature>
<conductivity surface="4.3 S/m" knee_1="3 m" knee_2="9 m" gradient_1="0.001 S/m/m" gradient_2="0.0001 S/m/m">
<spot deviation="0.2" position="-3 2 6 m" alpha="0.1 1/m" beta="0.1 1/m" gamma="0.2 1/m"/></conductivity>"""
MOUNTS = ("", 'position="0.4 -0.2 0.1 m"', 'position="0.1 0 -0.3 m" attitude="10 25 -40 deg" noise="3"', 'noise="0"')
BEAMS = {
    "dvl": '<beam azimuth="0 deg" elevation="60 deg" position="0.1 0 0 m"/><beam azimuth="120 deg" elevation="65 deg"/>'
    '<beam azimuth="240 deg" elevation="50 deg"/>',
    "ranger": '<beam azimuth="-20 deg" position="0.2 0.1 0 m"/><beam elevation="30 deg"/><beam azimuth="90 deg"/>',
}


def fleet(config: Make, of: type[Emulator], world: str, bodies: int, attributes: str, beams: str) -> Bench:
    """Bodies whose sensors have the mounts in turn."""
    vehicles = "".join(
        f"<vehicle name='b{k}' model='lauv' position='0 0 5 m'><sensors inherit='no'><{of.sensor} {MOUNTS[k % len(MOUNTS)]} "
        f"{attributes}>{beams}</{of.sensor}></sensors></vehicle>"
        for k in range(bodies)
    )
    law = "pressure_1='1.01 dbar/m' pressure_2='0.00001 dbar/m2'" if world == FULL else ""
    text = f"<world {law}>{world}</world><shared vehicles='{bodies}'/><fleet>{vehicles}</fleet>"
    return Bench(config(text), of, bodies)


def scatter(b: Bench, rng: Any, bodies: int) -> None:
    """Put the bodies close to each other, in any attitude, half of them near the surface; one lies still at the origin."""
    for row in range(bodies):
        p, v, w, u = rng.normal(size=(4, 3))
        b.put(p * (6.0, 6.0, 4.0) + (0.0, 0.0, 3.0), rng.uniform(-3.1, 3.1, 3), v, 0.3 * w, row=row)
        b.state["v_FB_B"][row] = u
    if bodies > 1:
        b.put((0.0, 0.0, 0.0))
    b.weather = np.zeros(1, WEATHER.dtype)
    b.weather["level"] = rng.normal()


@pytest.mark.parametrize("world", [PLAIN, FULL], ids=["plain", "full"])
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.sensor)
def test_values_equal_those_of_the_twin(config: Make, twin: type[Emulator], world: str) -> None:
    of, sensor = twin.__mro__[1], twin.sensor
    attributes = {"dvl": 'beam_drop_out="0.2" maximum="30 m"'}.get(sensor, "")
    for bodies, beams in ((1, ""), (9, ""), (30, BEAMS.get(sensor, ""))):
        benches = [fleet(config, kind, world, bodies, attributes, beams) for kind in (of, twin)]
        rng = np.random.default_rng(bodies)
        for tick in range(8):
            seed = int(rng.integers(1 << 30))
            for b in benches:
                scatter(b, np.random.default_rng(seed), bodies)
                if tick == 4:
                    b.fault(bodies - 1, "noisy", 5.0)
                b.at(tick)
            a, z = (b.out for b in benches)
            for name in a.dtype.names or ():
                assert a[name].tobytes() == z[name].tobytes(), (bodies, tick, name)
    assert (benches[0].out["sequence"] == 8).all()


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.sensor)
def test_all_kernels_of_a_value_are_loaded_in_advance(config: Make, twin: type[Emulator]) -> None:
    """A kernel first needed while time runs would make all participants wait for its compilation."""
    of: Any = twin.__mro__[1]
    of.load_kernels()
    kernels = [kernel for kernel, *_ in (*bank_kernels.KERNELS, *of.kernels)]
    before = [len(getattr(kernel, "overloads", ())) for kernel in kernels]
    b = fleet(config, of, FULL, 5, "", "")
    for tick in range(3):
        scatter(b, np.random.default_rng(tick), 5)
        b.at(tick)
    assert [len(getattr(kernel, "overloads", ())) for kernel in kernels] == before
