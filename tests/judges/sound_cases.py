"""Environments in which BELLHOP judges the paths of WaVeSim, as numbers.

The published environments are those of the Acoustics Toolbox (M. Porter; github.com/oalib-acoustics/Acoustics-Toolbox,
commit 4751085, tests/NAME). They are restated here: sections from the surface (depth 0) to the bed. Receivers are few,
and frequencies are those of short pulses, because rays do not depend on the frequency. EXCLUDED says why other cases
are not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.judges.sound import Case
from wavesim_sdk.arrays import Floats
from wavesim_world.ocean.sound import munk

FLAT = '<bed depth="{} m"/>'
MUNK_DEPTHS = (0.0, 200.0, 250.0, *(float(z) for z in range(400, 5001, 200)))
MUNK_SPEEDS = (
    1548.52, 1530.29, 1526.69, 1517.78, 1509.49, 1504.30, 1501.38, 1500.14, 1500.12, 1501.02, 1502.57, 1504.62, 1507.02,
    1509.69, 1512.55, 1515.56, 1518.67, 1521.85, 1525.10, 1528.38, 1531.70, 1535.04, 1538.39, 1541.76, 1545.14, 1548.52,
    1551.91,
)  # fmt: skip
SEAMOUNT_DEPTHS = (
    0.0, 38.0, 50.0, 70.0, 100.0, 140.0, 160.0, 170.0, 200.0, 215.0, 250.0, 300.0, 370.0, 450.0, 500.0, 700.0, 900.0,
    1000.0, 1250.0, 1500.0, 2000.0, 2500.0, 3000.0,
)  # fmt: skip
SEAMOUNT_SPEEDS = (
    1476.7, 1476.7, 1472.6, 1468.8, 1467.2, 1471.6, 1473.6, 1473.6, 1472.7, 1472.2, 1471.6, 1471.6, 1472.0, 1472.7,
    1473.1, 1474.9, 1477.0, 1478.1, 1480.7, 1483.8, 1490.5, 1498.3, 1506.5,
)  # fmt: skip
GULF_DEPTHS = (0.0, 200.0, 700.0, 800.0, 1200.0, 1500.0, 2000.0, 3000.0, 4000.0, 5000.0)
GULF_RANGES = tuple(12500.0 * k for k in range(5))
GULF_SPEEDS = (
    (1536.0,) * 5,
    (1506.0, 1508.75, 1511.5, 1514.25, 1517.0),
    (1503.0, 1503.0, 1503.0, 1502.75, 1502.5),
    (1508.0, 1507.0, 1506.0, 1505.0, 1504.0),
    (1508.0, 1506.6, 1505.0, 1503.75, 1502.5),
    (1497.0,) * 5,
    (1500.0,) * 5,
    (1512.0,) * 5,
    (1528.0,) * 5,
    (1545.0,) * 5,
)
#: the Munk profile lies on its side: the speed changes with the range from -1 to 4 km
ROTATED_RANGES = tuple(50.0 * k - 1000.0 for k in range(101))
ROTATED_SPEEDS = tuple(np.interp(np.array(ROTATED_RANGES) + 1000.0, MUNK_DEPTHS, MUNK_SPEEDS).tolist())
SAND = (1700.0, 1.8, 0.5)

SEAMOUNT_BED = ((0.0, 3000.0), (10e3, 3000.0), (20e3, 500.0), (30e3, 3000.0), (100e3, 3000.0))
PUBLISHED = (
    Case(
        "Munk/MunkB_Inc",
        1000.0,
        ((12e3, 300.0), (20e3, 800.0), (24e3, 3500.0), (31e3, 1500.0), (38e3, 2500.0), (44e3, 1000.0)),
        MUNK_DEPTHS,
        MUNK_SPEEDS,
        (FLAT.format(5000), ()),
        (1600.0, 1.8, 0.8),
        20.3,
        step=40.0,
        coherent=50.0,
    ),
    Case(
        "Munk/MunkB_Arr",
        4700.0,
        tuple((x, 4700.0) for x in (750.0, 3000.0, 5250.0, 7500.0, 9750.0, 12000.0, 15000.0)),
        MUNK_DEPTHS,
        MUNK_SPEEDS,
        (FLAT.format(5000), ()),
        (1600.0, 1.8, 0.8),
        80.0,
        step=20.0,
        coherent=50.0,
    ),
    Case(
        "calib/calibB",
        50.0,
        tuple((250.0 * k, z) for k, z in enumerate((5.0, 20.0, 35.0, 50.0, 65.0, 80.0, 95.0), 1)),
        (0.0, 100.0),
        (1500.0, 1500.0),
        (FLAT.format(100), ()),
        (1590.0, 1.2, 0.5),
        89.0,
        coherent=250.0,
        constant=True,
    ),
    Case(
        "calib/calibBgrad",
        50.0,
        tuple((250.0 * k, z) for k, z in enumerate((5.0, 20.0, 35.0, 50.0, 65.0, 80.0, 95.0), 1)),
        (0.0, 100.0),
        (1500.0, 1480.0),
        (FLAT.format(100), ()),
        (1590.0, 1.2, 0.5),
        89.0,
        step=5.0,
        coherent=250.0,
    ),
    Case(
        "SBCX/sbcx_Arr_asc",
        30.0,
        (
            (400.0, 20.0),
            (900.0, 100.0),
            (1500.0, 60.0),
            (2200.0, 150.0),
            (3000.0, 30.0),
            (4000.0, 200.0),
            (5000.0, 90.0),
        ),
        (0.0, 25.0, 75.0, 216.0),
        (1500.3, 1500.2, 1493.8, 1487.36),
        (FLAT.format(216), ()),
        (1607.0, 1.95, 0.37),
        11.0,
        step=5.0,
        coherent=200.0,
    ),
    Case(
        "arctic/arcticB",
        100.0,
        ((5e3, 300.0), (10e3, 800.0), (16e3, 2000.0), (22e3, 100.0), (30e3, 1200.0), (40e3, 500.0)),
        (0.0, 200.0, 300.0, 1000.0, 2000.0, 2500.0, 3750.0),
        (1436.0, 1458.4, 1460.5, 1466.7, 1479.6, 1487.9, 1510.4),
        (FLAT.format(3750), ()),
        (1510.4, 1.0, 0.5),
        16.7,
        step=20.0,
    ),
    Case(
        "sduct/sductB",
        25.0,
        ((4e3, 100.0), (7e3, 200.0), (11e3, 60.0), (15e3, 1000.0), (20e3, 2000.0), (26e3, 3000.0)),
        (
            0.0,
            250.0,
            300.0,
            375.0,
            425.0,
            500.0,
            600.0,
            700.0,
            810.0,
            900.0,
            1000.0,
            1100.0,
            1180.0,
            1340.0,
            1600.0,
            1800.0,
            2500.0,
            3000.0,
            4000.0,
        ),
        (
            1497.0,
            1502.0,
            1485.0,
            1478.0,
            1477.0,
            1476.0,
            1476.5,
            1477.0,
            1478.0,
            1479.0,
            1480.0,
            1481.0,
            1482.0,
            1484.0,
            1487.0,
            1490.0,
            1498.7,
            1506.8,
            1523.9,
        ),
        (FLAT.format(4000), ()),
        (1523.9, 1.0, 0.5),
        10.0,
        step=20.0,
    ),
    Case(
        "VolAtt/free_ThorpB",
        7500.0,
        ((1e3, 5500.0), (3e3, 6000.0), (5e3, 7000.0), (7e3, 8000.0), (10e3, 9000.0)),
        (0.0, 10000.0),
        (1500.0, 1500.0),
        (FLAT.format(10000), ()),
        (1500.0, 1.0, 0.0),
        89.0,
        thorp=True,
        surface=False,
        constant=True,
    ),
    Case(
        "terrain/lower_half_arr",
        3000.0,
        ((1e3, 500.0), (3e3, 2000.0), (5e3, 3000.0), (7e3, 4000.0), (10e3, 4500.0)),
        (0.0, 5000.0),
        (1500.0, 1500.0),
        (FLAT.format(5000), ()),
        (1750.0, 1.0, 0.0),
        80.0,
        surface=False,
        constant=True,
    ),
    Case(
        "Dickins/DickinsB",
        18.0,
        ((4e3, 300.0), (9e3, 1500.0), (13e3, 1200.0), (18e3, 200.0), (22e3, 400.0), (26e3, 1500.0)),
        SEAMOUNT_DEPTHS,
        SEAMOUNT_SPEEDS,
        ("", SEAMOUNT_BED),
        (1550.0, 1.5, 0.5),
        45.0,
        (0.0, 30e3),
        step=20.0,
    ),
    Case(
        "wedge/wedgeB",
        100.0,
        ((400.0, 30.0), (800.0, 120.0), (1300.0, 60.0), (1800.0, 90.0), (2400.0, 20.0), (3000.0, 40.0)),
        (0.0, 200.0),
        (1500.0, 1500.0),
        ("", ((0.0, 200.0), (4e3, 0.0))),
        (1700.0, 1.5, 0.5),
        89.0,
        coherent=25.0,
        constant=True,
    ),
    Case(
        "block/blockB_geo",
        500.0,
        (
            (600.0, 200.0),
            (1200.0, 200.0),
            (1800.0, 900.0),
            (2250.0, 300.0),
            (2900.0, 400.0),
            (3500.0, 800.0),
            (4500.0, 600.0),
        ),
        (0.0, 1000.0),
        (1500.0, 1500.0),
        ("", ((0.0, 1000.0), (2000.0, 1000.0), (2000.1, 500.0), (2500.0, 500.0), (2500.1, 1000.0), (10e3, 1000.0))),
        (2000.0, 2.0, 0.5),
        20.0,
        (0.0, 10e3),
        coherent=100.0,
    ),
    *(
        Case(
            name,
            300.0,
            receivers,
            GULF_DEPTHS,
            GULF_SPEEDS,
            (FLAT.format(5000), ()),
            bottom,
            14.0,
            GULF_RANGES,
            parts=16,
            step=25.0,
        )
        for name, bottom, receivers in (
            (
                "Gulf/GulfB_rd_geo",
                (1545.0, 1.0, 0.5),
                ((10e3, 400.0), (18e3, 1000.0), (26e3, 250.0), (33e3, 2000.0), (41e3, 800.0)),
            ),
            (
                "Gulf/Gulf_ray_rd",
                (1800.0, 2.0, 0.1),
                ((6e3, 600.0), (13e3, 1400.0), (22e3, 2600.0), (30e3, 4000.0), (38e3, 4800.0)),
            ),
        )
    ),
    *(
        Case(
            name,
            99900.0,
            receivers,
            (0.0, 100e3),
            (ROTATED_SPEEDS, ROTATED_SPEEDS),
            (FLAT.format(100000), ()),
            (1600.0, 1.0, 0.0),
            14.0,
            ROTATED_RANGES,
            middle=-90.0,
            box=3900.0,
            beams=1500,
            step=100.0,
            surface=False,
        )
        for name, receivers in (
            ("Munk/MunkB_ray_rot", ((200.0, 89e3), (700.0, 80e3), (1000.0, 75e3))),
            ("Munk/MunkB_geo_rot", ((100.0, 70e3), (500.0, 60e3), (900.0, 50e3))),
        )
    ),
)


def _section(depths: tuple[float, ...], ranges: tuple[float, ...], speed: Callable[[Floats, Floats], Floats]) -> Floats:
    """The sound speed (depths, ranges) of a section, from a function of depth and range."""
    return speed(np.array(depths)[:, None], np.array(ranges)[None, :])


def _steps(end: float, count: int) -> tuple[float, ...]:
    return tuple(end * k / count for k in range(count + 1))


def _front(z: Floats, x: Floats, middle: float) -> Floats:
    """A front: the water beyond it is 6 C warmer near the surface, over 2 km (about 3.5 m/s per C)."""
    return 1482.0 + 0.017 * z + 21.0 * np.exp(-((z / 60.0) ** 2)) * 0.5 * (1.0 + np.tanh((x - middle) / 500.0))


def _eddy(z: Floats, x: Floats) -> Floats:
    """A warm eddy of 24 km across, 12 m/s faster in its core at 600 m, in the water of a Munk profile."""
    depth = 2.0 * (z - 1300.0) / 1300.0
    munk = 1500.0 * (1.0 + 0.00737 * (depth - 1.0 + np.exp(-depth)))
    return munk + 12.0 * np.exp(-(((x - 18e3) / 8e3) ** 2) - ((z - 600.0) / 350.0) ** 2)


def _internal_wave(z: Floats, x: Floats) -> Floats:
    """A thermocline at 20 m that an internal wave of 2 km length moves up and down by 10 m."""
    middle = 20.0 + 10.0 * np.sin(2.0 * math.pi * x / 2000.0)
    return 1506.0 - 12.0 * 0.5 * (1.0 + np.tanh((z - middle) / 8.0)) + 0.016 * z


def _plume(z: Floats, x: Floats) -> Floats:
    """A lens of fresh water of a river, 5 m thick, that ends at about 1.2 km."""
    return 1500.0 + 0.016 * z - 35.0 * 0.25 * (1.0 - np.tanh((z - 5.0) / 2.0)) * (1.0 - np.tanh((x - 1200.0) / 200.0))


SUMMER_DEPTHS = (0.0, 15.0, 25.0, 40.0, 120.0)
SUMMER_SPEEDS = (1520.0, 1519.0, 1508.0, 1500.0, 1501.0)
RIDGE_X = np.arange(0.0, 1500.5, 5.0)
RIDGE_Z = 70.0 + 0.01 * RIDGE_X - 9.0 * np.exp(-((0.006 * (RIDGE_X - 500.0)) ** 2))
OURS = (
    Case(
        "slope",
        20.0,
        tuple((150.0 + 250.0 * k, z) for k, z in enumerate((10.0, 40.0, 60.0, 30.0, 50.0, 70.0))),
        (0.0, 150.0),
        (1500.0, 1500.0),
        ('<bed depth="60 m" slope_north="0.03"/>', ((0.0, 60.0), (3000.0, 150.0))),
        SAND,
        80.0,
        coherent=400.0,
        constant=True,
    ),
    Case(
        "thermocline over a ridge",
        12.0,
        ((200.0, 30.0), (350.0, 50.0), (500.0, 40.0), (650.0, 20.0), (800.0, 60.0), (1000.0, 45.0)),
        SUMMER_DEPTHS,
        SUMMER_SPEEDS,
        (
            '<bed depth="70 m" slope_north="0.01"><bump height="-9 m" north="500 m" east="0 m" alpha="0.006 1/m" '
            'beta="1e-9 1/m"/></bed>',
            tuple(zip(RIDGE_X.tolist(), RIDGE_Z.tolist(), strict=True)),
        ),
        SAND,
        60.0,
        step=1.0,
        curved=True,
    ),
    Case(
        "Munk at 40 km",
        1000.0,
        tuple((39e3 + 500.0 * k, z) for k, z in enumerate((700.0, 850.0, 950.0, 1100.0))),
        _steps(5000.0, 80),
        tuple(float(c) for c in munk(np.linspace(0.0, 5000.0, 81))),
        (FLAT.format(5000), ()),
        SAND,
        20.0,
        step=40.0,
        coherent=100.0,
    ),
    Case(
        "front",
        30.0,
        ((800.0, 60.0), (1700.0, 20.0), (2500.0, 100.0), (3200.0, 40.0), (4200.0, 120.0), (5000.0, 15.0)),
        (FRONT_DEPTHS := _steps(150.0, 60)),
        _section(FRONT_DEPTHS, FRONT_RANGES := _steps(6e3, 120), lambda z, x: _front(z, x, 2500.0)),
        (FLAT.format(150), ()),
        SAND,
        45.0,
        FRONT_RANGES,
        parts=2,
        step=5.0,
        coherent=100.0,
    ),
    Case(
        "eddy",
        800.0,
        ((8e3, 500.0), (14e3, 1200.0), (20e3, 300.0), (26e3, 900.0), (33e3, 2000.0)),
        (EDDY_DEPTHS := _steps(4000.0, 160)),
        _section(EDDY_DEPTHS, EDDY_RANGES := _steps(40e3, 160), _eddy),
        (FLAT.format(4000), ()),
        SAND,
        20.0,
        EDDY_RANGES,
        parts=2,
        step=50.0,
    ),
    Case(
        "internal wave",
        30.0,
        ((600.0, 50.0), (1300.0, 15.0), (2000.0, 60.0)),
        (WAVE_DEPTHS := _steps(80.0, 80)),
        _section(WAVE_DEPTHS, WAVE_RANGES := _steps(3e3, 120), _internal_wave),
        (FLAT.format(80), ()),
        SAND,
        45.0,
        WAVE_RANGES,
        parts=3,
        step=4.0,
        beams=3000,
        coherent=200.0,
    ),
    Case(
        "river plume",
        10.0,
        ((300.0, 20.0), (700.0, 3.0), (1200.0, 30.0), (1700.0, 12.0)),
        (PLUME_DEPTHS := _steps(40.0, 80)),
        _section(PLUME_DEPTHS, PLUME_RANGES := _steps(2.5e3, 100), _plume),
        (FLAT.format(40), ()),
        SAND,
        60.0,
        PLUME_RANGES,
        parts=3,
        step=4.0,
        beams=3000,
    ),
    Case(
        "front over a shelf break",
        30.0,
        ((1000.0, 60.0), (2000.0, 20.0), (3000.0, 150.0), (4000.0, 80.0), (5000.0, 250.0)),
        (SHELF_DEPTHS := _steps(400.0, 160)),
        _section(SHELF_DEPTHS, SHELF_RANGES := _steps(6e3, 120), lambda z, x: _front(z, x, 3000.0)),
        ("", ((0.0, 110.0), (2000.0, 120.0), (6000.0, 400.0))),
        SAND,
        45.0,
        SHELF_RANGES,
        parts=2,
        step=5.0,
    ),
)

#: published cases that are not used, and why
EXCLUDED = {
    "Ellipse/Ellipse, ParaBot/ParaBotTLGeom": "the surface is curved; WaVeSim's mean surface is level",
    "step/step": "the search along the wall (slope 15) takes WaVeSim minutes; block/blockB_geo has walls too",
    "PekerisRD/PekerisRDB": "the bottom's speed changes with the range; WaVeSim has one bottom",
    "calib/calibBarr": "the bottom is a vacuum; WaVeSim's bottom is a fluid, at least as dense as the water",
    "MunkRot/MunkRot": "the same water as Munk/MunkB_geo_rot",
    "arctic/arcticB_gb, Munk/MunkB_gb and the like": "the same environment with Gaussian beams",
    "head, Noise, TabRefCoef, TLslices": "elastic layers, noise or tables of reflection",
}
#: Level beds and few launch angles, so that rays with six bounces pass the last line; the bottom's loss is taken out.
ENERGY = (
    Case(
        "front, rigid",
        40.0,
        tuple((x, 150.0 * (k + 0.5) / 40) for x in (1200.0, 2000.0, 2800.0) for k in range(40)),
        (COARSE_DEPTHS := _steps(150.0, 30)),
        _section(COARSE_DEPTHS, COARSE_RANGES := _steps(6e3, 60), lambda z, x: _front(z, x, 1800.0)),
        (FLAT.format(150), ()),
        (6000.0, 1.8, 0.0),
        10.0,
        COARSE_RANGES,
    ),
)
GRID = tuple((x, z) for x in np.linspace(600.0, 1000.0, 41).tolist() for z in (15.0, 35.0, 55.0, 75.0))
#: shallow water, in which the paths with up to six bounces carry nearly all of the sound at these ranges
KRAKEN = (
    Case(
        "Pekeris at 400 Hz",
        36.0,
        GRID,
        (0.0, 100.0),
        (1500.0, 1500.0),
        (FLAT.format(100), ()),
        SAND,
        89.0,
        coherent=400.0,
        constant=True,
    ),
    Case(
        "gradient at 400 Hz",
        36.0,
        GRID,
        (0.0, 100.0),
        (1500.0, 1480.0),
        (FLAT.format(100), ()),
        SAND,
        89.0,
        coherent=400.0,
    ),
)
_ALL = {case.name: case for case in (*PUBLISHED, *OURS)}
#: receivers at which WaVeSim lacks a path that BELLHOP has, and how
_MISSED = (
    ("Dickins/DickinsB", (13e3, 1000.0), "the fan misses a ray 16 dB below the strongest, launched at -28.89 deg"),
    ("block/blockB_geo", (1200.0, 700.0), "two echoes from the wall behind the receiver are not found"),
    ("internal wave", (2600.0, 35.0), "of three paths within 0.06 deg and 0.3 us, one is found"),
)
MISSED = tuple(
    replace(_ALL[name], name=f"{name}, missed", receivers=(place,), box=1.02 * max(x for x, _ in _ALL[name].receivers))
    for name, place, _ in _MISSED
)
UNRESOLVED = {f"{name}, missed": reason for name, _, reason in _MISSED}
