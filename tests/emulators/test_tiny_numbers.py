"""Every instrument of a body whose pose and motion are tiny or at their limits: values are finite, and near zero they
equal those at zero.
"""

from __future__ import annotations

import itertools
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest

from tests.emulators.bench import Bench, Make

WORLD = (
    "<world><current north='0.1 m/s'/><bed depth='60 m' slope_north='0.01'/><wind speed='3 m/s'/>"
    "<scalar name='dye' above='3 m'><gaussian peak='4' north='5 m' east='0 m' sigma_north='10 m' sigma_east='10 m'/></scalar>"
    "<obstacles><block position='30 0 30 m' size='4 9 60 m'/></obstacles></world>"
)
IMAGING = ("sonar", "camera", "lidar", "hydrophone")  # their pictures are judged elsewhere
SENSORS = sorted(e.name for e in entry_points(group="wavesim.emulators") if e.name not in IMAGING)
KEYS = {"ais": "mmsi='211000001'"}
TINY = (5e-324, -1e-310, 5e-309, -2.3e-308, 1e-300, -1e-160, 1e-80)


def values(b: Bench, depth: float, size: float, at: int) -> dict[str, np.ndarray]:
    """What an instrument shows at rest and in the next tick, with ``size`` for each number that is zero at rest."""
    b.put((size, -size, depth), (size, -size, size), (size, -size, size), (-size, size, size))
    b.drive(size, -size)
    b.at(at)
    out = b.at(at + 1)[0]
    return {name: np.atleast_1d(out[name]).copy() for name in out.dtype.names if out.dtype[name].base.kind == "f"}


@pytest.mark.parametrize("sensor", SENSORS)
@pytest.mark.parametrize("depth", [-3.0, 0.5, 20.0])
def test_every_instrument(config: Make, sensor: str, depth: float) -> None:
    (found,) = [e for e in entry_points(group="wavesim.emulators") if e.name == sensor]
    of: Any = found.load()
    element = sensor.replace("_", "-")
    loaded = config(
        f"{WORLD}<shared vehicles='4'/><fleet><sensors><{element} {KEYS.get(sensor, '')}/></sensors></fleet>"
    )
    bench = lambda: Bench(loaded, of)  # noqa: E731  # each with the same noise
    with np.errstate(all="raise", under="ignore"):
        at_rest = values(bench(), depth, 0.0, 0)
        for size in TINY:
            for name, shown in values(bench(), depth, size, 0).items():
                where = (sensor, name, size)
                assert np.array_equal(np.isfinite(shown), np.isfinite(at_rest[name])), where
                off = np.abs(shown - at_rest[name])[np.isfinite(shown)]
                if name != "cog":  # which has no direction at rest
                    assert (np.minimum(off, np.abs(off - 2.0 * np.pi)) < 1e-6).all(), where
        b = bench()
        for k, (size, far) in enumerate(itertools.product((1e3, -1e3), (1e7, -1e7))):
            b.put((far, far, depth), (0.1, -0.2, 3.0), (size, size, -size), (0.1 * size, 0.0, -0.1 * size))
            b.at(k)
