"""Fences: the rules for their polygons, the point-in-polygon test, and their rows in shared memory.

A fence is a :class:`~wavesim_sdk.wire.items.Fence`, whose ``corners`` contain the north and east coordinates (m, in W)
of each corner in turn.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

import numpy as np

from wavesim_sdk.arrays import Floats, Mask, Record
from wavesim_sdk.tables import FENCE_CORNERS, FENCES
from wavesim_sdk.wire.items import Fence
from wavesim_sdk.wire.messages import NAME_BYTES

__all__ = [
    "FENCE_SIDES",
    "check_corner_total",
    "check_fence",
    "corner_points",
    "crossing_side",
    "crossing_text",
    "fence_rows",
    "fences_in_rows",
    "is_inside",
    "violates",
]

FENCE_SIDES = ("inside", "outside")  #: values of ``keep``; shared memory contains the index of the value
MIN_CORNERS = 3
MIN_AREA = 0.01  #: minimum area of a fence in m2
_CROSSING = re.compile(r"(left|entered) the fence '.*' \(keep (inside|outside)\)", re.DOTALL)


def corner_points(fence: Fence) -> Floats:
    """Return the north and east coordinates of the corners of a fence, as an array (n, 2)."""
    return np.array(fence.corners, float).reshape(-1, 2)


def is_inside(corners: Floats, p: Floats) -> Mask:
    """Return a mask (n,) of the points (n, 2) that are inside the polygon (m, 2). A point is inside if the number of
    edges to its east is odd.
    """
    a, b = corners, np.roll(corners, -1, axis=0)
    north, east = p[:, 0, None], p[:, 1, None]
    spans = (a[:, 0] > north) != (b[:, 0] > north)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = a[:, 1] + (north - a[:, 0]) / (b[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1])
    found: Mask = (np.sum(spans & (east < crossing), axis=1) % 2).astype(bool)
    return found


def violates(keep: str, corners: Floats, p: Floats) -> Mask:
    """Return a mask (n,) of the points (n, 2) that are on the wrong side of a fence with these corners (m, 2)."""
    wrong: Mask = is_inside(corners, p) != (keep == "inside")
    return wrong


def check_fence(fence: Fence) -> None:
    """Raise ValueError with the reason if a fence has an invalid name, side or polygon."""
    if not fence.name.strip() or not fence.name.isprintable() or len(fence.name.encode()) > NAME_BYTES:
        raise ValueError(f"invalid fence name '{fence.name[:40]}': use 1 to {NAME_BYTES} bytes")
    name = f"fence '{fence.name}'"
    if fence.keep not in FENCE_SIDES:
        raise ValueError(f"{name}: `keep` must be {' or '.join(FENCE_SIDES)}, got '{fence.keep[:40]}'")
    if len(fence.corners) % 2:
        raise ValueError(f"{name}: expected two numbers per corner (north, east), got {len(fence.corners)} numbers")
    corners = corner_points(fence)
    if len(corners) < MIN_CORNERS:
        raise ValueError(f"{name} needs at least {MIN_CORNERS} corners, got {len(corners)}")
    if (crossing := _crossing_sides(corners)) is not None:
        raise ValueError(
            f"{name} crosses itself: the sides that begin at corners {crossing[0] + 1} and {crossing[1] + 1} cross; "
            "list the corners in order around the area"
        )
    n, e = corners.T
    if abs(float(np.sum(n * np.roll(e, -1) - e * np.roll(n, -1)))) < 2.0 * MIN_AREA:
        raise ValueError(f"{name} encloses no area")


def check_corner_total(fences: Iterable[Fence]) -> None:
    """Raise ValueError if the fences of a server have too many corners in total."""
    if (total := sum(len(f.corners) // 2 for f in fences)) > FENCE_CORNERS:
        raise ValueError(
            f"too many corners: the fences would have {total} in total, and the maximum is {FENCE_CORNERS}; remove a "
            "fence, or use fewer corners"
        )


def crossing_text(fence: Fence, is_wrong: bool) -> str:
    """Return the notice for a body that has crossed a fence; ``is_wrong`` is True if the body is now on the wrong side."""
    side = "left" if is_wrong == (fence.keep == "inside") else "entered"
    return f"{side} the fence '{fence.name}' (keep {fence.keep})"


def crossing_side(text: str) -> bool | None:
    """Return whether the body of this notice crossed a fence to the wrong side (True) or back (False). None means that
    the notice reports no crossing.
    """
    found = _CROSSING.fullmatch(text)
    return (found[1] == "left") == (found[2] == "inside") if found is not None else None


def _crossing_sides(corners: Floats) -> tuple[int, int] | None:
    """Return the first two sides of a polygon that cross each other; side k begins at corner k. Sides that only touch
    do not cross.
    """
    a = corners
    along = np.roll(a, -1, axis=0) - a
    # position of the beginning and the end of side j relative to the line through side i: left (+), right (-), on it (0)
    start = a[None, :, :] - a[:, None, :]
    side = np.sign(along[:, None, 0] * start[:, :, 1] - along[:, None, 1] * start[:, :, 0])
    apart = side * np.roll(side, -1, axis=1) < 0
    found = np.argwhere(apart & apart.T)
    return (int(found[0][0]), int(found[0][1])) if len(found) else None


def fence_rows(fences: Iterable[Fence]) -> Record:
    """Return the fences as rows of the `fences` table, with one row for each corner."""
    rows = np.zeros(FENCE_CORNERS, FENCES.dtype)
    found = [
        (f.name.encode(), FENCE_SIDES.index(f.keep), north, east) for f in fences for north, east in corner_points(f)
    ]
    rows[: len(found)] = found
    return rows


def fences_in_rows(rows: Record) -> Iterator[Fence]:
    """Yield the fences in the rows of the `fences` table."""
    there = rows[rows["name"] != b""]
    for (name, keep), corners in itertools.groupby(there, key=lambda r: (bytes(r["name"]), int(r["keep"]))):
        points = tuple(float(v) for r in corners for v in (r["north"], r["east"]))
        yield Fence(name.decode(), FENCE_SIDES[keep], points)
