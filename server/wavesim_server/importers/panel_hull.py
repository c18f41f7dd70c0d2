"""Reader for the panel hulls of WAMIT and HydRA (.gdf), and computation of their cross-sections."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError

STATIONS = 25  #: number of cross-sections into which a hull is cut
END_GAP = 1e-6  #: distance of the first and last cross-section from the ends of the hull, in hull lengths


def read_gdf(path: Path) -> Floats:
    """Return the triangles of a low-order .gdf file in m, of shape (n, 3, 3). The file's z axis points up and its
    origin is in the water surface. Planes of symmetry (ISX, ISY) are applied. Raises ConfigError if the file is
    invalid.
    """
    try:
        _, *lines = path.read_text(errors="replace").splitlines()
        words = " ".join(lines).split()
        symmetric = int(float(lines[1].split()[0])), int(float(lines[1].split()[1]))
        count = int(lines[2].split()[0])
        # the words after ULEN GRAV, ISX ISY and NPAN may be comments
        numbers = np.array(" ".join(lines[3:]).split()[: 12 * count], float)
        if len(words) < 5 or count < 1 or len(numbers) != 12 * count or not np.isfinite(numbers).all():
            raise ValueError(f"expected {count} panels of four corners, got {len(numbers) // 12}")
    except (OSError, ValueError, IndexError) as error:
        raise ConfigError(f"not a panel hull (.gdf) of low order: {error}", str(path)) from None
    corners = numbers.reshape(count, 4, 3)
    triangles = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
    for axis, mirrored in enumerate(symmetric):
        if mirrored:
            other = triangles.copy()
            other[:, :, axis] *= -1.0
            triangles = np.concatenate([triangles, other])
    return triangles


def cross_sections(triangles: Floats, submerged: bool) -> Floats:
    """Return rows (x, beam, draft) in m of a hull with its z axis up. For a floating hull, beam and draft are those of
    the part below z = 0. For a submerged hull, they are the beam and height of the whole cross-section. Raises
    ValueError if no part is in the water.
    """
    first, last = triangles[:, :, 0].min(), triangles[:, :, 0].max()
    gap = END_GAP * (last - first)
    rows = []
    for x in np.linspace(first + gap, last - gap, STATIONS):
        y, z = _cut(triangles, x)
        if not submerged:
            y, z = _below_water(y, z)
        size = (np.ptp(y), np.ptp(z) if submerged else -z.min()) if y.size else (0.0, 0.0)
        rows.append((float(x), *map(float, size)))
    found = np.array(rows)
    if last <= first or not found[:, 1:].any():
        raise ValueError("no part of the hull is below z = 0")
    return found


def _cut(triangles: Floats, x: float) -> tuple[Floats, Floats]:
    """Return y and z of the segments in which the plane at x cuts the triangles, of shape (segments, 2)."""
    ends = []
    for a, b in ((0, 1), (1, 2), (2, 0)):
        p, q = triangles[:, a], triangles[:, b]
        crosses = (p[:, 0] < x) != (q[:, 0] < x)
        share = np.divide(x - p[:, 0], q[:, 0] - p[:, 0], out=np.full(len(p), np.nan), where=crosses)
        ends.append(p[:, 1:] + share[:, None] * (q[:, 1:] - p[:, 1:]))
    points = np.stack(ends, axis=1)  # of each triangle, two edges cross the plane or none
    cut = (~np.isnan(points[:, :, 0])).sum(1) == 2
    pairs = points[cut][~np.isnan(points[cut][:, :, 0])].reshape(-1, 2, 2)
    return pairs[:, :, 0], pairs[:, :, 1]


def _below_water(y: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Return the parts of segments below z = 0, as y and z of their ends."""
    wet = z.min(1, initial=np.inf) <= 0.0
    y, z = y[wet].copy(), z[wet].copy()
    for k in (0, 1):
        out = z[:, k] > 0.0
        share = z[out, 1 - k] / (z[out, 1 - k] - z[out, k])
        y[out, k] = y[out, 1 - k] + share * (y[out, k] - y[out, 1 - k])
        z[out, k] = 0.0
    return y, z
