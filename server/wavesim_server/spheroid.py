"""Added mass of a spheroid."""

from __future__ import annotations

import math


def spheroid_added_mass(slenderness: float) -> tuple[float, float, float]:
    """Return (k1, k2, k') for a prolate spheroid whose length is ``slenderness`` (> 1) times its diameter.

    k1 and k2 are the added masses along and across the axis, divided by the displaced mass. k' is the added moment of
    inertia about a transverse axis, divided by the moment of inertia of the displaced water.
    """
    b = 1.0 / slenderness
    e = math.sqrt(1.0 - b * b)
    log = math.log((1.0 + e) / (1.0 - e))
    alpha = 2.0 * (1.0 - e * e) / e**3 * (0.5 * log - e)
    beta = 1.0 / (e * e) - (1.0 - e * e) / (2.0 * e**3) * log
    about = e**4 * (beta - alpha) / ((2.0 - e * e) * (2.0 * e * e - (2.0 - e * e) * (beta - alpha)))
    return alpha / (2.0 - alpha), beta / (2.0 - beta), about
