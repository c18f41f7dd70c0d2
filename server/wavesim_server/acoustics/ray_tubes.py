"""Sound level along a ray, from the width of its ray tube, and losses and phases at a rough surface and at the
bottom; compiled.

The rays from a point source between the launch angles a and a + da carry the same power everywhere. Let x be the range
of a ray at the receiver's depth, and p its Snell invariant. Let s_source and s_receiver be the sines of its angles to
the horizontal at both ends, and c_source and c_receiver the sound speeds there. The spreading loss is then given by
this formula:

    |pressure at 1 m / pressure|^2 = x s_source s_receiver |dx/dp| / (p c_source c_receiver)

Where the sound speed is constant, this is the square of the path length (Jensen, Kuperman, Porter and Schmidt 2011,
sec. 3.3.5.2). Over a part of a layer from sound speed ca to sound speed cb, at which the sines are sa and sb, the
derivative has this closed form:

    dx/dp = dz (ca + cb) / (sa sb (sa + sb)),   -1/(|g| p^2 sa) for a part that begins or ends at a turning point

The second form is the finite part of the derivative, because the turning point moves with p. At a caustic, where
neighbouring rays cross, the formula diverges. Therefore, the width of a tube is limited to at least a tenth of its
width in water of uniform sound speed, which limits the gain to `MAX_FOCUSING_DB`. Each caustic that the ray has passed
advances its phase by 90 degrees. Pressures vary as ``exp(+i w t)``, so a travel time tau multiplies them by ``exp(-i w
tau)``.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import device_function
from wavesim_server.acoustics import rays
from wavesim_server.acoustics.types import Record
from wavesim_server.elementary import log10, power

MAX_FOCUSING_DB = 20.0  #: maximum gain of a ray's level, relative to a spreading loss of 20 log10 of its length
MAX_SURFACE_LOSS_DB = 40.0  #: maximum loss in dB of one bounce off a rough surface
_FLAT = 1e-12


@device_function
def tube_spreading(link: rays.Link, down: bool, reversals: int, ray: Record) -> tuple[float, int]:
    """Return (spreading loss in dB re 1 m, number of caustics passed) of a ray (record RAY, see
    :func:`rays.trace_ray`).
    """
    profile, receiver = link.profile, link.receiver
    z, c = profile.z, profile.c
    p, bottom = ray.invariant, z.shape[0] - 2
    here, ca = link.source, link.at_source.speed
    k = rays.entered_layer(z, link.at_source, down)
    cs, cr = ca, link.at_receiver.speed
    slope, turns, caustics, side = 0.0, 0, 0, 1.0
    turned = False  # whether the part begins at a turning point
    for r in range(reversals + 1):
        while True:
            edge = z[k + 1] if down else z[k]
            reached = r == reversals and ((down and receiver <= edge) or (not down and receiver >= edge))
            target = receiver if reached else edge
            g = (c[k + 1] - c[k]) / (z[k + 1] - z[k])
            cb = c[k] + g * (target - z[k])
            sa = max(rays.sine_from_cosine(p * ca), _FLAT)
            turns_here = not reached and p * cb >= 1.0 and abs(g) > 0.0 and (g > 0.0) == down
            if turns_here:
                cb = 1.0 / p
                target = z[k] + (cb - c[k]) / g
                if not turned:  # otherwise it only grazes its layer
                    slope -= 1.0 / (abs(g) * p * p * sa)
            else:
                sb = max(rays.sine_from_cosine(p * cb), _FLAT)
                if turned:
                    slope -= 1.0 / (abs(g) * p * p * sb)
                else:
                    slope += abs(target - here) * (ca + cb) / (sa * sb * (sa + sb))
            turned = turns_here
            here, ca = target, cb
            now = slope if turns % 2 == 0 else -slope
            if not turns_here and now * side < 0.0:
                caustics += 1
                side = -side
            if reached or turns_here:
                break
            if (down and k == bottom) or (not down and k == 0):
                break
            k += 1 if down else -1
        turns += 1 if turned else 0
        down = not down
    square = ray.x * ray.sin_source * ray.sin_receiver * abs(slope) / (p * cs * cr)
    straight = max(ray.length, 1.0)
    return max(10.0 * log10(max(square, 1.0)), 20.0 * log10(straight) - MAX_FOCUSING_DB), caustics


@device_function
def arc_spreading(x: float, length: float, rise: float, c_source: float, c_receiver: float) -> float:
    """Return the spreading loss in dB of an arc over a range x in one layer. For such an arc, dx/dp = x c / (s_source
    s_receiver cos).
    """
    level = math.sqrt(max(1.0 - rise * rise, 0.0))
    way = x / level * math.sqrt(c_source / c_receiver) if level > 1e-6 else length
    return 20.0 * log10(max(way, 1.0))


@device_function
def surface_loss(sine: float, frequency: float, speed: float, roughness: float, bubbles: float) -> float:
    """Return the loss in dB of one bounce off a rough surface.

    The mirror-like part (Eckart 1953) decreases by the factor exp(-2 (k s sin)^2), for a standard deviation s of the
    surface in m. Bubbles (APL-UW 1994, 10 to 100 kHz) cause a loss of b f^0.85 / sin, with f in kHz.
    """
    rough = 2.0 * math.pi * frequency / speed * roughness * sine
    foam = bubbles * power(1e-3 * frequency, 0.85) / max(sine, 1e-6)
    return min(17.371779276130073 * rough * rough + foam, MAX_SURFACE_LOSS_DB)
