"""Properties of sea water according to UNESCO 44 (Fofonoff & Millard 1983) and the Practical Salinity Scale 1978.

Pressure is gauge pressure in dbar, temperature IPTS-68 in C. The formulas are valid for 2 <= S <= 42 and -2 <= T <= 35
and are tested against the tables of the report.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import sin

Number = TypeVar("Number", float, Floats)

C_35_15_0 = 4.2914  #: conductivity of standard sea water, S/m (UNESCO 44: 42.914 mS/cm)


def _rt35(t: Floats) -> Floats:
    return np.asarray(0.6766097 + t * (2.00564e-2 + t * (1.104259e-4 + t * (-6.9698e-7 + t * 1.0031e-9))))


def _sal(sqrt_rt: Floats, dt: Floats) -> Floats:
    x = sqrt_rt
    a = 0.0080 + x * (-0.1692 + x * (25.3851 + x * (14.0941 + x * (-7.0261 + x * 2.7081))))
    b = 0.0005 + x * (-0.0056 + x * (-0.0066 + x * (-0.0375 + x * (0.0636 - x * 0.0144))))
    return np.asarray(a + dt / (1.0 + 0.0162 * dt) * b)


def _dsal(x: Floats, dt: Floats) -> Floats:
    a = -0.1692 + x * (50.7702 + x * (42.2823 + x * (-28.1044 + x * 13.5405)))
    b = -0.0056 + x * (-0.0132 + x * (-0.1125 + x * (0.2544 - x * 0.0720)))
    return np.asarray(a + dt / (1.0 + 0.0162 * dt) * b)


def _pressure_terms(t: Floats, p: Floats) -> tuple[Floats, Floats, Floats]:
    a = 0.4215 - 3.107e-3 * t
    b = 1.0 + t * (3.426e-2 + t * 4.464e-4)
    c = p * (2.070e-5 + p * (-6.370e-10 + p * 3.989e-15))
    return a, b, c


def salinity(conductivity: Floats, temperature: Floats, pressure: Floats) -> Floats:
    """Return practical salinity from conductivity (S/m), temperature (C) and gauge pressure (dbar)."""
    r = np.asarray(conductivity) / C_35_15_0
    t = np.asarray(temperature, float)
    a, b, c = _pressure_terms(t, np.asarray(pressure, float))
    rt = r / (_rt35(t) * (1.0 + c / (b + a * r)))
    return np.where(r <= 5e-4, 0.0, _sal(np.sqrt(np.abs(rt)), t - 15.0))


def conductivity(salinity_: Floats, temperature: Floats, pressure: Floats) -> Floats:
    """Return conductivity (S/m): the inverse of :func:`salinity`, by Newton's method to 1e-12."""
    s = np.asarray(salinity_, float)
    t = np.asarray(temperature, float)
    x = np.sqrt(np.maximum(s, 0.02) / 35.0)
    for _ in range(25):
        step = (_sal(x, t - 15.0) - s) / _dsal(x, t - 15.0)
        x = x - step
        if np.all(np.abs(step) < 1e-14):
            break
    a, b, c = _pressure_terms(t, np.asarray(pressure, float))
    # R / (rt35 (1 + c / (b + a R))) = Rt is a quadratic equation in R.
    rtt = _rt35(t) * x * x
    half = 0.5 * (b - a * rtt)
    disc = np.sqrt(half * half + a * rtt * (b + c))
    return np.asarray((disc - half) / a * C_35_15_0)


def density(salinity_: Floats, temperature: Floats, pressure: Floats) -> Floats:
    """Return density (kg/m3) from the International Equation of State 1980; the gauge pressure is in dbar."""
    s, t = np.asarray(salinity_, float), np.asarray(temperature, float)
    p, root = np.asarray(pressure, float) / 10.0, np.sqrt(s)
    pure = 999.842594 + t * (
        6.793952e-2 + t * (-9.095290e-3 + t * (1.001685e-4 + t * (-1.120083e-6 + t * 6.536332e-9)))
    )
    a = 8.24493e-1 + t * (-4.0899e-3 + t * (7.6438e-5 + t * (-8.2467e-7 + t * 5.3875e-9)))
    b = -5.72466e-3 + t * (1.0227e-4 - t * 1.6546e-6)
    surface = pure + s * (a + root * b + s * 4.8314e-4)
    k = 19652.21 + t * (148.4206 + t * (-2.327105 + t * (1.360477e-2 - t * 5.155288e-5)))
    k = k + s * (54.6746 + t * (-0.603459 + t * (1.09987e-2 - t * 6.1670e-5)))
    k = k + s * root * (7.944e-2 + t * (1.6483e-2 - t * 5.3009e-4))
    first = 3.239908 + t * (1.43713e-3 + t * (1.16092e-4 - t * 5.77905e-7))
    first = first + s * (2.2838e-3 + t * (-1.0981e-5 - t * 1.6078e-6)) + s * root * 1.91075e-4
    second = 8.50935e-5 + t * (-6.12293e-6 + t * 5.2787e-8)
    second = second + s * (-9.9348e-7 + t * (2.0816e-8 + t * 9.1697e-10))
    return np.asarray(surface / (1.0 - p / (k + p * (first + p * second))))


@functools.lru_cache
def _sine_squared(latitude: float) -> float:
    """Return sin^2 of the latitude, cached because the latitude is constant during a run."""
    return float(sin(latitude) * sin(latitude))


def depth(pressure: Number, latitude: float) -> Number:
    """Return the depth in m in a standard ocean (salinity 35, 0 C), by Saunders & Fofonoff. Pressure is gauge pressure
    in dbar; latitude is in rad.
    """
    p: Any = pressure if isinstance(pressure, float) else np.asarray(pressure, float)
    x = _sine_squared(latitude)
    gravity = 9.780318 * (1.0 + (5.2788e-3 + 2.36e-5 * x) * x) + 1.092e-6 * p
    found: Any = p * (9.72659 + p * (-2.2512e-5 + p * (2.279e-10 - p * 1.82e-15))) / gravity
    return found if isinstance(found, float) else np.asarray(found)  # type: ignore[return-value]  # a float gives a float


def pressure(depth_: Floats, latitude: float) -> Floats:
    """Return gauge pressure in dbar at a depth in m: the inverse of :func:`depth`, by Newton's method to 1e-8 dbar."""
    z = np.asarray(depth_, float)
    p = 1.01 * z
    for _ in range(4):
        p = p - (depth(p, latitude) - z) * (1.005 + 4.6e-6 * p)  # dp/dz to 1e-3
    return np.asarray(p)


def freezing_point(salinity_: Floats, pressure: Floats) -> Floats:
    """Return the freezing point in C (Millero 1978); the gauge pressure is in dbar."""
    s = np.asarray(salinity_, float)
    return np.asarray(
        s * (-0.0575 + 1.710523e-3 * np.sqrt(s) - 2.154996e-4 * s) - 7.53e-4 * np.asarray(pressure, float)
    )
