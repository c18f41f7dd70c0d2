"""Skin friction of a hull in water."""

from __future__ import annotations

import math

DENSITY, VISCOSITY = 1025.0, 1.19e-6  #: density in kg/m3 and kinematic viscosity in m2/s of sea water at 15 C
LEAST_REYNOLDS = 1e4  #: the ITTC line diverges at a Reynolds number of 100


def ittc_line(reynolds: float) -> float:
    """Return the friction coefficient of the ITTC 1957 line, based on the wetted area."""
    return 0.075 / (math.log10(max(reynolds, LEAST_REYNOLDS)) - 2.0) ** 2


def streamlined_form_factor(thickness: float) -> float:
    """Return Hoerner's form factor (Fluid-Dynamic Drag, 1965, 6-28) of a streamlined body of revolution.

    ``thickness`` is the diameter divided by the length. The drag is the friction multiplied by this factor.
    """
    return 1.0 + 1.5 * float(thickness**1.5) + 7.0 * thickness**3
