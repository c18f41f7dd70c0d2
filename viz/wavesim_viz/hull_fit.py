"""Hulls from files: reading, placement in body axes, mass properties, and a first model.

The page holds no mesh data of its own: it sends the key of the hull with the user's choices, and this module
answers with properties and with the files (mesh for <hull>, glTF file to draw) that the model names.
"""

from __future__ import annotations

import base64
import math
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Array
from wavesim_sdk.log_validation import is_number
from wavesim_viz.command_runner import run_wavesim
from wavesim_viz.page_protocol import FloatingHull, HullFile, HullProperties, XmlTree
from wavesim_viz.uploads import FileStore, stem_of
from wavesim_viz.xml_trees import RequestFailed, parse, to_tree
from wavesim_world import hull_geometry as geometry
from wavesim_world import hull_surface as surfaces
from wavesim_world.hull import Hull
from wavesim_world.hull_reader import FORMATS, HullPart, InvalidHull, read_in_process

MOST_HULLS = 4  #: maximum number of hulls that are kept; the oldest are dropped
MOST_FACES = 1280  #: maximum number of triangles of <hull>; the server has the same limit
DENSITY = 1025.0
#: ratio of weight to buoyancy of a submerged hull: a reserve of half a percent, as in `wavesim vehicles estimate`
RESERVE = 0.995
TYPES = ("underwater", "surface", "buoy")


class LoadedHull(NamedTuple):
    """Hull file: its name, its type and its parts, in the axes of the file."""

    file: str
    kind: str
    parts: list[HullPart]


class HullStore:
    """Hulls that the page has opened, and the requests about them."""

    def __init__(self, uploads: FileStore, results: FileStore) -> None:
        self._uploads, self._results = uploads, results
        self._hulls: OrderedDict[str, LoadedHull] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, file: str, data: bytes) -> HullFile:
        """Read a hull file in a separate process, and describe its parts."""
        kind = file.rpartition(".")[2].lower()
        if kind not in FORMATS:
            raise RequestFailed(f"unknown type of hull file '.{kind}': use {', '.join(FORMATS)}")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / f"hull.{kind}").write_bytes(data)
            try:
                hull = LoadedHull(file, kind, read_in_process(folder / f"hull.{kind}"))
            except InvalidHull as error:
                raise RequestFailed(f"{file}: {error}") from None
        key = self._uploads.add(f"hull of {file}", data[:64])
        with self._lock:
            self._hulls[key] = hull
            while len(self._hulls) > MOST_HULLS:
                self._hulls.popitem(last=False)
        size = np.ptp(surfaces.corners_of(hull.parts), axis=0)
        up, forward = geometry.guess_axes(kind, size)
        return {
            "hull": key,
            "file": file,
            "size": [float(v) for v in size],
            "unit": geometry.guess_unit(kind, size),
            "up": up,
            "forward": forward,
            "known": kind in geometry.Y_UP_METRES,
            "parts": [
                {
                    "name": p.name,
                    "colour": "#" + "".join(f"{round(255 * c):02x}" for c in p.colour),
                    "triangles": len(p.triangles),
                    "vertices": base64.b64encode(p.vertices.astype("<f4").tobytes()).decode(),
                    "corners": base64.b64encode(p.triangles.astype("<u4").tobytes()).decode(),
                }
                for p in hull.parts
            ],
        }

    def _hull(self, body: Any) -> LoadedHull:
        with self._lock:
            hull = self._hulls.get(str(body.get("hull", "")))
        if hull is None:
            raise RequestFailed("the viewer no longer has this hull; open the file again")
        return hull

    def fit(self, body: Any) -> HullProperties:
        """Place a hull in body axes, and return its properties and the files that a model can name."""
        hull = self._hull(body)
        placement = _placement(hull, body)
        solid, drawn = (_numbers(body, key, len(hull.parts)) for key in ("solid", "drawn"))
        if not solid:
            raise RequestFailed("no part forms the hull: give at least one part the role 'hull'")
        triangles = [placement.place(p.vertices)[p.triangles] for p in hull.parts]
        surface, notes = surfaces.join_parts([hull.parts[k].name for k in solid], [triangles[k] for k in solid])
        closed = not len(geometry.open_edges(surface))
        if body.get("shape") == "convex" or not closed:
            surface = _convex(surface)
        mass = geometry.mass_properties(surface)
        mesh = geometry.simplify(surface, MOST_FACES)
        if len(mesh) < len(surface):
            notes.append(
                f"the mesh was simplified from {len(surface)} to {len(mesh)} triangles; its volume and the centre of its "
                f"volume are the same, its area differs by {100 * (geometry.area(mesh) / geometry.area(surface) - 1):+.1f} %"
            )
        if (at := geometry.crossing(mesh)) is not None:
            notes.append(
                f"the surface intersects itself near {surfaces.place_text(at)} m: a volume inside two parts is counted twice; hide "
                "one of them or join them in the CAD program"
            )
        shift = _vector(body, "shift") + (mass.centre if body.get("origin") == "buoyancy" else 0.0)
        placement = placement._replace(offset=placement.offset - shift)
        mesh, centre = mesh - shift, mass.centre - shift
        stem = stem_of(hull.file)
        file, appearance = f"{stem}-hull.stl", f"{stem}.glb"
        self._results.add(file, geometry.to_stl(mesh), file)
        kept = [p._replace(vertices=placement.place(p.vertices)) for k, p in enumerate(hull.parts) if k in drawn]
        if kept:
            self._results.add(appearance, geometry.to_glb(kept), appearance)
        return {
            "file": file,
            "appearance": appearance if kept else "",
            "rotation": [float(v) for v in placement.rotation.ravel()],
            "scale": placement.scale,
            "offset": [float(v) for v in placement.offset],
            "size": [float(v) for v in np.ptp(mesh.reshape(-1, 3), axis=0)],
            "closed": closed,
            "triangles": len(mesh),
            "volume": mass.volume,
            "area": geometry.area(surface),
            "centre": [float(v) for v in centre],
            "gyration": [math.sqrt(max(float(v), 0.0) / mass.volume) for v in np.diag(mass.inertia)],
            "afloat": _afloat(mesh, body, centre),
            "parts": [_part(p.name, t - shift) for p, t in zip(hull.parts, triangles, strict=True)],
            "notes": notes,
        }

    def model(self, body: Any) -> XmlTree:
        """Return a first model of a hull, with estimated coefficients."""
        kind = body.get("type")
        if kind not in TYPES:
            raise RequestFailed(f"unknown type of body: use {', '.join(TYPES)}")
        fit = self.fit(body)
        length, breadth, height = (max(v, 1e-3) for v in fit["size"])
        name = stem_of(str(body.get("name") or self._hull(body).file))[:31]
        arguments = ["vehicles", "estimate", "--length", f"{length:.6g}", "--diameter"]
        arguments += [f"{min(math.sqrt(breadth * height), length):.6g}", "--", name]
        with tempfile.TemporaryDirectory() as folder:
            xml = run_wavesim(arguments, Path(folder))
        (model,) = parse(xml.encode()).iter("model")
        return to_tree(_first_model(model, fit, str(kind), self._hull(body).file))


def _numbers(body: Any, key: str, most: int) -> list[int]:
    """Return the part numbers in a request."""
    given = body.get(key)
    if not isinstance(given, list) or not all(type(k) is int and 0 <= k < most for k in given):
        raise RequestFailed(f"'{key}' in the request must list part numbers")
    return sorted(set(given))


def _vector(body: Any, key: str) -> Array:
    given = body.get(key, [0.0, 0.0, 0.0])
    if not (isinstance(given, list) and len(given) == 3 and all(is_number(v) and abs(v) <= 1e3 for v in given)):
        raise RequestFailed(f"'{key}' in the request must be three numbers of at most 1000 m")
    return np.array(given, float)


def _placement(hull: LoadedHull, body: Any) -> surfaces.HullPose:
    unit, up, forward, origin = (str(body.get(k, "")) for k in ("unit", "up", "forward", "origin"))
    try:
        return surfaces.hull_pose(hull.parts, unit, up, forward, origin)
    except InvalidHull as error:
        raise RequestFailed(str(error)) from None


def _convex(surface: Array) -> Array:
    try:
        return surfaces.convex_surface(surface)
    except InvalidHull as error:
        raise RequestFailed(str(error)) from None


def _afloat(mesh: Array, body: Any, centre: Array) -> FloatingHull | None:
    """Return the upright floating state for the mass in the request; None if the hull sinks or no mass is given."""
    mass, at = body.get("mass"), body.get("mass_centre")
    if not is_number(mass) or mass <= 0.0:
        return None
    if not (isinstance(at, list) and len(at) == 3 and all(map(is_number, at))):
        at = list(centre)
    try:
        hull = Hull(mesh)
        if mass >= DENSITY * hull.volume:
            return None
        found = hull.afloat(mass, at, DENSITY)
    except ValueError:  # an unusual surface: the check of the model reports it
        return None
    return {
        "waterline": found.waterline,
        "draft": found.draft,
        "wetted": hull.wetted_area((0.0, 0.0, 1.0), found.waterline),
        "centre": [float(v) for v in found.centre],
        "gm_roll": found.gm_roll,
        "gm_pitch": found.gm_pitch,
    }


def _part(name: str, triangles: Array) -> Any:
    frame = geometry.part_frame(triangles)
    return {
        "name": name,
        "centre": [float(v) for v in frame.centre],
        "size": [float(v) for v in frame.size],
        "axis": [float(v) for v in frame.axis],
        "normal": [float(v) for v in frame.normal],
        "area": geometry.area(triangles),
    }


def _first_model(model: Any, fit: HullProperties, kind: str, file: str) -> Any:
    """Adapt the estimated model of a torpedo to the shape, mass and buoyancy of a hull."""
    length, breadth, height = fit["size"]
    mass, centre = RESERVE * DENSITY * fit["volume"], np.array(fit["centre"])
    share = 1.0
    if kind != "underwater":  # half of its height is under water
        share, mass = 0.5, 0.5 * DENSITY * fit["volume"]
    for tag in ("cylinder", "buoyancy", *(() if kind == "underwater" else ("fin",))):
        for old in model.findall(tag):
            model.remove(old)
    if kind == "buoy":
        for old in model.findall("thruster"):
            model.remove(old)
    shape = etree.Element("box", length=f"{length:.4g} m", width=f"{breadth:.4g} m", height=f"{height:.4g} m")
    model.insert(0, shape)
    centre = centre + np.array([0.0, 0.0, 0.05 if kind == "underwater" else 0.1]) * height
    model.find("mass").set("value", f"{mass:.6g} kg")
    model.find("mass").set("centre", " ".join(f"{v + 0.0:.4f}" for v in centre) + " m")
    inertia = mass * np.array(fit["gyration"]) ** 2
    for key, value in zip(("xx", "yy", "zz"), inertia, strict=True):
        model.find("inertia").set(key, f"{value:.4g}")
    for tag in ("added-mass", "quadratic-drag"):
        element = model.find(tag)
        element.set("diagonal", " ".join(f"{share * float(v):.4g}" for v in element.get("diagonal").split()))
    hull = etree.Element("hull", file=fit["file"])
    model.insert(list(model).index(model.find("inertia")) + 1, hull)
    for note in model.xpath("comment()"):
        model.remove(note)
    model.set("type", kind)
    if kind != "underwater":
        model.set("coriolis_added", "plane")
        # an estimate of the waves that heave, roll and pitch radiate: a tenth of the critical damping
        drag = etree.Element("linear-drag", diagonal=_wave_damping(mass, fit))
        model.insert(list(model).index(model.find("quadratic-drag")), drag)
    if fit["appearance"]:
        model.set("appearance", fit["appearance"])
    model.set("title", f"{kind}, hull from {file}: {length:.3g} m, {mass:.3g} kg")
    model.set("source", f"hull from {file}; coefficients estimated by `wavesim vehicles estimate`")
    return model


def _wave_damping(mass: float, fit: HullProperties) -> str:
    """Return the diagonal of a linear drag matrix for a hull at the surface, from its box."""
    length, breadth, _ = fit["size"]
    stiffness = DENSITY * 9.81 * length * breadth * 0.7
    heave = 0.2 * math.sqrt(stiffness * 2.0 * mass)
    roll, pitch = (
        0.2 * math.sqrt(stiffness * w * w / 12.0 * 2.0 * mass * g * g)
        for w, g in zip((breadth, length), fit["gyration"], strict=False)
    )
    return f"0 0 {heave:.4g} {roll:.4g} {pitch:.4g} 0"
