"""Mesh of a hull for the computation of a model: read, placed in body axes, repaired, closed and simplified.

The functions raise InvalidHull with one sentence about the fault and a way out. Every choice that this module makes on
its own, such as the unit of a file without one, is a note for the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.names import suggest_name
from wavesim_studies.from_mesh.remesh import remeshed
from wavesim_world import hull_geometry as geometry
from wavesim_world import hull_surface as surfaces
from wavesim_world.hull_reader import HullPart, InvalidHull, read_in_process

MOST_READ = 3_000_000  #: maximum number of triangles of a file
READ_S = 180.0  #: maximum time in s to read a file
MOST_FINE = 20_000  #: triangles of the mesh from which forces are computed
MOST_HULL = 1280  #: triangles of <hull>
MOST_CROSSING = 5000  #: triangles of the mesh in which intersections are searched
SHAPES = ("mesh", "convex", "parts", "remesh")
#: mass divided by the mass of water in the box around the mesh: outside this range, the unit must be wrong
LEAST_FILLED, MOST_FILLED = 0.003, 3.0
DENSITY = 1025.0
WAYS_OUT = (
    "--fill-holes (flat lids), --shape remesh (closes gaps of a few cells), --shape parts (convex hull of each part) or "
    "--shape convex (one convex hull)"
)


@dataclass(frozen=True)
class MeshOptions:
    """Choices of the user. Empty texts stand for a guess, which is stated.

    ``mass`` in kg is used to detect a wrong unit; 0 = unknown. ``hull_parts`` displace water; without them, all parts
    except ``other_parts`` do.
    """

    unit: str = ""
    up: str = ""
    forward: str = ""
    origin: str = "middle"
    shape: str = "mesh"
    fill_holes: bool = False
    mass: float = 0.0
    hull_parts: tuple[str, ...] = ()
    other_parts: tuple[str, ...] = ()


@dataclass
class PreparedMesh:
    """Closed surface of a hull in body axes, in m.

    ``triangles`` (n, 3, 3) is the surface from which forces are computed, ``hull`` (k, 3, 3) that of <hull>. Volume
    (m3), its centre (m), the area (m2) and the inertia per unit density about that centre (3, 3; m5) are those of the
    mesh before it was simplified. ``drawn`` are all parts of the file. ``parts`` are the triangles of each part.
    """

    triangles: Array
    hull: Array
    volume: float
    centre: Array
    inertia: Array
    area: float
    drawn: list[HullPart]
    parts: dict[str, Array]
    notes: list[str] = field(default_factory=list)

    @property
    def size(self) -> Array:
        """Return the length, width and height (3,) in m of the part that displaces water."""
        return np.asarray(np.ptp(self.hull.reshape(-1, 3), axis=0))

    def rotated(self, r: Array) -> PreparedMesh:
        """Return the mesh in axes that the rotation matrix ``r`` (3, 3) gives."""
        return PreparedMesh(
            self.triangles @ r.T,
            self.hull @ r.T,
            self.volume,
            r @ self.centre,
            r @ self.inertia @ r.T,
            self.area,
            [p._replace(vertices=p.vertices @ r.T) for p in self.drawn],
            {n: t @ r.T for n, t in self.parts.items()},
            self.notes,
        )


class ReadMesh(NamedTuple):
    """Parts of a file, in its axes and unit, and the type of the file."""

    parts: list[HullPart]
    kind: str


def read(path: Path) -> ReadMesh:
    """Read a hull file in a separate process."""
    if not path.is_file():
        raise InvalidHull(f"cannot read {path}: it is not a file")
    return ReadMesh(read_in_process(path, READ_S, MOST_READ), path.suffix.lower().lstrip("."))


def prepare(source: Path | ReadMesh, options: MeshOptions) -> PreparedMesh:
    """Return the mesh of a hull file in body axes, closed and simplified. Raises InvalidHull if this is impossible."""
    parts, kind = read(source) if isinstance(source, Path) else source
    notes: list[str] = []
    pose = _pose(parts, kind, options, notes)
    drawn = [p._replace(vertices=pose.place(p.vertices)) for p in parts]
    placed = {p.name: p.vertices[p.triangles] for p in drawn}
    for name in (*options.hull_parts, *options.other_parts):
        if name not in placed:
            raise InvalidHull(f"the file has no part named '{name}'{suggest_name(name, placed)}")
    names = options.hull_parts or tuple(n for n in placed if n not in options.other_parts)
    if not names:
        raise InvalidHull("no part is left that displaces water: name it with --hull-part")
    surface = _closed_surface({n: placed[n] for n in names}, options, notes)
    mass = geometry.mass_properties(surface)
    if mass.volume <= 0.0:
        raise InvalidHull(f"the surface encloses no volume: use {WAYS_OUT}")
    fine = _simplified(surface, MOST_FINE, notes)
    hull = _simplified(fine, MOST_HULL, notes)
    _check_crossing(surface, fine, options.shape)
    shift = mass.centre if options.origin == "buoyancy" else np.zeros(3)
    return PreparedMesh(
        fine - shift,
        hull - shift,
        mass.volume,
        mass.centre - shift,
        mass.inertia,
        geometry.area(surface),
        [p._replace(vertices=p.vertices - shift) for p in drawn],
        {n: t - shift for n, t in placed.items()},
        notes,
    )


def _pose(parts: Sequence[HullPart], kind: str, options: MeshOptions, notes: list[str]) -> surfaces.HullPose:
    """Return the pose of a mesh. Choices that the user left open are guessed and stated."""
    size = np.ptp(surfaces.corners_of(parts), axis=0)
    unit = options.unit or geometry.guess_unit(kind, size)
    guessed_up, guessed_forward = geometry.guess_axes(kind, size)
    up = options.up or guessed_up
    if options.up and not options.forward:  # the longest axis across the one that the user gave
        flat = [k for k in "xyz" if k != up[-1]]
        guessed_forward = max(flat, key=lambda k: float(size["xyz".index(k)]))
    forward = options.forward or guessed_forward
    _check_unit(unit, size, options, kind)
    pose = surfaces.hull_pose(parts, unit, up, forward, options.origin)
    if not options.unit and kind not in geometry.KNOWN_UNIT:
        length = float(size.max()) * geometry.UNITS[unit]
        notes.append(f"unit guessed: {unit}, which makes the mesh {length:.3g} m long (--unit)")
    if not options.up or not options.forward:
        notes.append(f"axes guessed: {up} is up and {forward} is forward (--up, --forward)")
    return pose


def _check_unit(unit: str, size: Array, options: MeshOptions, kind: str) -> None:
    """Raise InvalidHull if the mass does not fit the size: the unit must be another one."""
    box = float(np.prod(np.maximum(size, 1e-6 * size.max())))
    if options.mass <= 0.0 or box <= 0.0 or unit not in geometry.UNITS:
        return

    def filled(name: str) -> float:
        return options.mass / (DENSITY * box * geometry.UNITS[name] ** 3)

    if LEAST_FILLED <= filled(unit) <= MOST_FILLED:
        return
    fits = [name for name in geometry.UNITS if name != unit and LEAST_FILLED <= filled(name) <= MOST_FILLED]
    long = float(size.max()) * geometry.UNITS[unit]
    stated = "its type" if not options.unit and kind in geometry.KNOWN_UNIT else "--unit" if options.unit else "a guess"
    better = f"use --unit {fits[0]}" if fits else "check --unit and --mass"
    raise InvalidHull(
        f"with the unit {unit} (from {stated}), the mesh is {long:.3g} m long and its box holds "
        f"{DENSITY * box * geometry.UNITS[unit] ** 3:.3g} kg of water, which does not fit a mass of {options.mass:g} kg: "
        f"{better}"
    )


def _closed_surface(parts: dict[str, Array], options: MeshOptions, notes: list[str]) -> Array:
    """Return the closed surface of the parts that displace water."""
    if options.shape == "convex":
        notes.append("the hull is the convex hull of its parts, which is larger than the parts")
        return surfaces.convex_surface(np.concatenate(list(parts.values())))
    if options.shape == "parts":
        notes.append("each part is its convex hull, which is larger than the part")
    names, whole = list(parts), dict[int, Array]()
    for k, (name, t) in enumerate(parts.items()):
        said = f"part '{name}': " if len(parts) > 1 else ""
        found, cleaned = surfaces.clean(t)
        if not len(found):
            notes.append(f"{said}all of its faces are without area; the part is not counted")
            continue
        notes += [said + text for text in cleaned]
        whole[k] = _repaired(found, said, options, notes)
    if not whole:
        raise InvalidHull("the file contains no face with an area")
    notes += surfaces.drop_nested(names, whole)
    surface = np.concatenate(list(whole.values()))
    if options.shape == "remesh" or (options.shape == "parts" and len(whole) > 1):
        surface, spread = remeshed(geometry.simplify(surface, MOST_FINE) if _is_closed(surface) else surface)
        notes.append(
            f"the hull was meshed again: a volume inside several parts counts once; the volume is uncertain by "
            f"{100 * max(spread, 0.005):.1f} %"
        )
    return np.asarray(surface)


def _is_closed(t: Array) -> bool:
    return not len(geometry.open_edges(t))


def _repaired(t: Array, said: str, options: MeshOptions, notes: list[str]) -> Array:
    """Return a part with its faces outwards and its small holes closed."""
    if options.shape == "parts":
        return surfaces.convex_surface(t)
    if not _is_closed(t):
        t, turned = surfaces.consistent(t)
        if turned:
            notes.append(f"{said}{turned} faces pointed to the other side than their neighbours; they were turned")
    if not _is_closed(t):
        t = _filled(t, said, options, notes)
    if _is_closed(t) and geometry.mass_properties(t).volume < 0.0:
        notes.append(f"{said}the surface was inside out; its faces were reversed")
        t = geometry.outward(t)
    return t


def _filled(t: Array, said: str, options: MeshOptions, notes: list[str]) -> Array:
    """Return a surface whose holes are covered, if they are small or the user asks for it."""
    holes = surfaces.holes_of(t)
    size = float(np.ptp(t.reshape(-1, 3), axis=0).max())
    large = [hole for hole in holes if hole.extent > surfaces.SMALL_HOLE * size]
    if large and not options.fill_holes:
        if options.shape == "remesh":
            return t
        at = surfaces.place_text(large[0].rim.mean(axis=0))
        more = f" and {len(large) - 1} more" if len(large) > 1 else ""
        raise InvalidHull(
            f"{said}the surface is open: a hole of {large[0].extent:.3g} m near {at} m{more}; close it in the CAD "
            f"program, or use {WAYS_OUT}"
        )
    found = np.concatenate([t, *map(surfaces.lid, holes)])
    if not _is_closed(found):
        if options.shape == "remesh":
            return t
        at = surfaces.place_text(geometry.open_edges(found)[0])
        raise InvalidHull(f"{said}the surface is open near {at} m and its holes cannot be covered: use {WAYS_OUT}")
    notes.append(f"{said}holes covered with flat lids: {len(holes)}; the largest one is {holes[0].extent:.3g} m wide")
    return found


def _simplified(surface: Array, most: int, notes: list[str]) -> Array:
    """Return a surface with at most ``most`` triangles. The note states the remaining error."""
    if len(surface) <= most:
        return surface
    try:
        found = geometry.simplify(surface, most)
    except ValueError as error:
        raise InvalidHull(f"{error}: use --shape remesh or --shape convex") from None
    before, after = geometry.mass_properties(surface), geometry.mass_properties(found)
    inertia = np.abs(np.diag(after.inertia) / np.diag(before.inertia) - 1.0).max()
    notes.append(
        f"simplified from {len(surface)} to {len(found)} triangles{' for <hull>' if most == MOST_HULL else ''}: same volume "
        f"and centre, area {100 * (geometry.area(found) / geometry.area(surface) - 1):+.1f} %, inertia within "
        f"{100 * inertia:.1f} %"
    )
    return found


def _check_crossing(surface: Array, fine: Array, shape: str) -> None:
    """Raise InvalidHull if a surface intersects itself. A new surface and a convex one do not."""
    if shape in ("remesh", "convex"):
        return
    coarse = geometry.simplify(fine, MOST_CROSSING)
    at = geometry.crossing(coarse)
    if at is not None and len(coarse) < len(surface):  # simplifying can make thin parts intersect: look at the original
        reach = 3.0 * float(np.sqrt(geometry.area(coarse) / len(coarse)))
        near = (np.abs(surface.mean(axis=1) - at) < reach).all(axis=1)
        at = geometry.crossing(surface[near][:MOST_FINE]) if near.any() else None
    if at is not None:
        raise InvalidHull(
            f"the surface intersects itself near {surfaces.place_text(at)} m, so a volume inside two parts would count "
            "twice: use --shape remesh (counts it once), --shape parts (convex hull of each part) or --shape convex; or "
            "name the parts that displace water with --hull-part"
        )
