"""Kernels of water sensors. :mod:`wavesim_world.ocean` contains a more readable version of each formula."""

from __future__ import annotations

import math

from wavesim_emulators.bank_kernels import (
    DEPTH,
    FALSE,
    NUMBERS,
    PLACE,
    TRUE,
    VALID,
    VECTOR,
    Kernels,
    maximum,
    minimum,
)
from wavesim_kernels import compiled_elementary  # noqa: F401  # registers the elementary functions with Numba
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import exp
from wavesim_sdk.sensors import SENSORS
from wavesim_world.instruments import CONDUCTIVITY_SIGMA, PRESSURE_SIGMA, TEMPERATURE_SIGMA
from wavesim_world.ocean.seawater import C_35_15_0

#: columns of the conditions around a sensor: absolute pressure in dbar, temperature in C, conductivity in S/m
PRESSURE, TEMPERATURE, CONDUCTIVITY, CONDITIONS = 0, 1, 2, 3
#: columns of a profile: value at the surface, first knee, distance between the knees, gradients, second knee
SURFACE, KNEE_1, BETWEEN, GRADIENT_1, GRADIENT_2, KNEE_2 = range(6)
_ctd = SENSORS["ctd"].first_columns
_PRESSURE, _TEMPERATURE = _ctd["pressure"], _ctd["temperature"]
_CONDUCTIVITY, _SALINITY = _ctd["conductivity"], _ctd["salinity"]


@device_function
def pressure_at(z: float, law: Floats) -> float:
    """Return absolute pressure in dbar at a depth in m. ``law`` contains P0, P1, P2 and the square of the sine of the
    latitude.
    """
    if law[1] != 0.0:
        return float(law[0] + z * (law[1] + z * law[2]))
    x, p = law[3], 1.01 * z
    for _ in range(4):
        gravity = 9.780318 * (1.0 + (5.2788e-3 + 2.36e-5 * x) * x) + 1.092e-6 * p
        depth = p * (9.72659 + p * (-2.2512e-5 + p * (2.279e-10 - p * 1.82e-15))) / gravity
        p = p - (depth - z) * (1.005 + 4.6e-6 * p)
    return float(law[0] + p)


@device_function
def field_at(pose: Floats, profile: Floats, spots: Floats) -> float:
    """Return temperature or conductivity at a sensor: a profile with two knees, and Gaussian patches (n, 7)."""
    z = pose[DEPTH]
    first = minimum(maximum(z - profile[KNEE_1], 0.0), profile[BETWEEN])
    below = maximum(z - profile[KNEE_2], 0.0)
    found = profile[SURFACE] + profile[GRADIENT_1] * first + profile[GRADIENT_2] * below
    total = 0.0
    for k in range(len(spots)):
        s = spots[k]
        x, y, w = (pose[PLACE] - s[1]) * s[4], (pose[PLACE + 1] - s[2]) * s[5], (z - s[3]) * s[6]
        total += s[0] * exp(-(x * x + y * y + w * w))
    return float(found + total)


@kernel
def fill_conditions(
    poses: Floats, law: Floats, profiles: Floats, warm_spots: Floats, salt_spots: Floats, out: Floats
) -> None:
    """Fill in the conditions of the water around sensors (n, CONDITIONS). ``profiles`` are the profiles of temperature
    and conductivity.
    """
    for i in range(len(poses)):
        out[i, PRESSURE] = pressure_at(poses[i, DEPTH], law)
        out[i, TEMPERATURE] = field_at(poses[i], profiles[0], warm_spots)
        out[i, CONDUCTIVITY] = field_at(poses[i], profiles[1], salt_spots)


@device_function
def salinity(conductivity: float, t: float, p: float) -> float:
    """Return practical salinity from conductivity (S/m), temperature (C) and gauge pressure (dbar)."""
    r = conductivity / C_35_15_0
    a = 0.4215 - 3.107e-3 * t
    b = 1.0 + t * (3.426e-2 + t * 4.464e-4)
    c = p * (2.070e-5 + p * (-6.370e-10 + p * 3.989e-15))
    rt35 = 0.6766097 + t * (2.00564e-2 + t * (1.104259e-4 + t * (-6.9698e-7 + t * 1.0031e-9)))
    rt = r / (rt35 * (1.0 + c / (b + a * r)))
    x, dt = math.sqrt(abs(rt)), t - 15.0
    d = 0.0080 + x * (-0.1692 + x * (25.3851 + x * (14.0941 + x * (-7.0261 + x * 2.7081))))
    e = 0.0005 + x * (-0.0056 + x * (-0.0066 + x * (-0.0375 + x * (0.0636 - x * 0.0144))))
    return 0.0 if r <= 5e-4 else d + dt / (1.0 + 0.0162 * dt) * e


@kernel
def fill_ctd(poses: Floats, conditions: Floats, noise: Floats, surface_pressure: float, out: Floats) -> None:
    """Fill in the values of CTDs from the surrounding water and standard normal random numbers (n, 3)."""
    for i in range(len(poses)):
        p = conditions[i, PRESSURE] + PRESSURE_SIGMA * noise[i, 0]
        t = conditions[i, TEMPERATURE] + TEMPERATURE_SIGMA * noise[i, 1]
        c = conditions[i, CONDUCTIVITY] + CONDUCTIVITY_SIGMA * noise[i, 2]
        out[i, _PRESSURE], out[i, _TEMPERATURE], out[i, _CONDUCTIVITY] = p, t, c
        out[i, _SALINITY] = salinity(c, t, maximum(p - surface_pressure, 0.0))
        out[i, VALID] = TRUE if poses[i, DEPTH] >= 0.0 else FALSE


CONDITIONS_KERNELS: Kernels = ((fill_conditions, NUMBERS, VECTOR, NUMBERS, NUMBERS, NUMBERS, NUMBERS),)
CTD_KERNELS: Kernels = (*CONDITIONS_KERNELS, (fill_ctd, NUMBERS, NUMBERS, NUMBERS, 0.0, NUMBERS))
