"""Electronic charts (IHO S-57 cells, ``*.000``, with the updates in the same folder). They are read with GDAL, which
the ``charts`` extra installs.

The page receives areas, lines, soundings and marks in latitude and longitude. ``wavesim soundings`` receives the points
of the sea bed in the world frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.geodesy import Origin
from wavesim_viz.page_protocol import ChartContent

#: S-57 object classes that are drawn; for areas and lines, the attribute that states their depth
AREAS = {"DEPARE": "DRVAL1", "DRGARE": "DRVAL1", "LNDARE": ""}
LINES = {"DEPCNT": "VALDCO", "COALNE": "", "SLCONS": ""}
MARKS = (
    "BOYCAR",
    "BOYISD",
    "BOYLAT",
    "BOYSAW",
    "BOYSPP",
    "BCNCAR",
    "BCNISD",
    "BCNLAT",
    "BCNSAW",
    "BCNSPP",
    "LIGHTS",
    "OBSTRN",
    "UWTROC",
    "WRECKS",
)
SOUNDINGS = "SOUNDG"
MOST_NUMBERS = 2_000_000  #: maximum number of coordinates that are drawn
MISSING_GDAL = "electronic charts (S-57) need GDAL: pip install 'wavesim-viz[charts]'"


@dataclass
class ChartCell:
    """Content of a cell. Paths are rows of latitude and longitude in degrees; depths are in m, or NaN if the cell does
    not state them.
    """

    name: str
    #: areas, each with its class, minimum depth and rings
    areas: list[tuple[str, float, list[Floats]]] = field(default_factory=list)
    lines: list[tuple[str, float, Floats]] = field(default_factory=list)  #: lines, each with its class, depth and path
    #: soundings, each with its latitude, longitude and depth
    soundings: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    #: marks, each with its class, name, latitude and longitude
    marks: list[tuple[str, str, float, float]] = field(default_factory=list)

    def to_message(self) -> ChartContent:
        """Return the content of the cell as plain data for the page."""
        return {
            "name": self.name,
            "areas": [
                {"kind": k, "depth": _number(d), "rings": [_flat(r) for r in rings]} for k, d, rings in self.areas
            ],
            "lines": [{"kind": k, "depth": _number(d), "path": _flat(p)} for k, d, p in self.lines],
            "soundings": np.column_stack([self.soundings[:, :2].round(7), self.soundings[:, 2].round(2)])
            .ravel()
            .tolist(),
            "marks": [{"kind": k, "name": n, "at": (lat, lon)} for k, n, lat, lon in self.marks],
        }

    def bed(self, origin: Origin) -> Floats:
        """Return the north, east and depth (m) of the soundings and of the points on depth contours, as an array (n,
        3). ``origin`` is the origin of the world frame.
        """
        lines = [np.column_stack([p, np.full(len(p), d)]) for kind, d, p in self.lines if kind == "DEPCNT"]
        points = np.vstack([self.soundings, *(line for line in lines if np.isfinite(line[:, 2]).all())])
        if not len(points):
            raise ConfigError("the chart has neither soundings nor depth contours", self.name)
        places = np.array([origin.ned(*np.radians(p[:2])) for p in points])
        return np.column_stack([places[:, :2], points[:, 2]])


def read_cell(path: Path) -> ChartCell:
    """Read a cell. Raise ConfigError if the file is not an S-57 cell, or if GDAL is not installed."""
    try:
        import pyogrio
        import shapely
    except ImportError:
        raise ConfigError(MISSING_GDAL, str(path)) from None
    if not path.is_file():
        raise ConfigError("electronic chart not found", str(path))
    try:
        there = {str(name) for name, kind in pyogrio.list_layers(path) if kind is not None}
        cell = ChartCell(path.name)
        for kind, depth_of in AREAS.items():
            for shape, attributes in _features(pyogrio, shapely, path, kind, there):
                for part in _parts(shapely, shape, "Polygon"):
                    rings = [part.exterior, *part.interiors]
                    cell.areas.append((kind, _depth(attributes, depth_of), [_places(shapely, r) for r in rings]))
        for kind, depth_of in LINES.items():
            for shape, attributes in _features(pyogrio, shapely, path, kind, there):
                for part in _parts(shapely, shape, "LineString"):
                    cell.lines.append((kind, _depth(attributes, depth_of), _places(shapely, part)))
        found = [
            shapely.get_coordinates(shape, include_z=True)[:, [1, 0, 2]]
            for shape, _ in _features(pyogrio, shapely, path, SOUNDINGS, there)
        ]
        cell.soundings = np.vstack([cell.soundings, *found])
        for kind in MARKS:
            for shape, attributes in _features(pyogrio, shapely, path, kind, there):
                lat, lon = _places(shapely, shape.representative_point())[0]
                cell.marks.append((kind, str(attributes.get("OBJNAM") or ""), float(lat), float(lon)))
    except pyogrio.errors.DataSourceError as error:
        raise ConfigError(f"not an S-57 cell: {str(error).splitlines()[0][:200]}", str(path)) from None
    numbers = sum(r.size for _, _, rings in cell.areas for r in rings) + sum(p.size for _, _, p in cell.lines)
    if numbers + cell.soundings.size > MOST_NUMBERS:
        raise ConfigError(f"the chart has more than {MOST_NUMBERS} coordinates; use a smaller cell", str(path))
    return cell


def _features(
    pyogrio: Any, shapely: Any, path: Path, layer: str, there: set[str]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Return the shapes of a layer with their attributes."""
    if layer not in there:
        return
    meta, _, shapes, columns = pyogrio.raw.read(path, layer=layer)
    names = [str(f) for f in meta["fields"]]
    for k, shape in enumerate(shapely.from_wkb(shapes)):
        if shape is not None and not shape.is_empty:
            yield shape, {name: column[k] for name, column in zip(names, columns, strict=True)}


def _parts(shapely: Any, shape: Any, kind: str) -> list[Any]:
    return [p for p in shapely.get_parts(shape) if p.geom_type == kind]


def _places(shapely: Any, shape: Any) -> Floats:
    """Return the points of a shape as rows of latitude and longitude."""
    found: Floats = shapely.get_coordinates(shape)[:, ::-1]
    return found


def _depth(attributes: dict[str, Any], name: str) -> float:
    value = attributes.get(name)
    return float(value) if isinstance(value, int | float | np.number) else np.nan


def _flat(path: Floats) -> list[float]:
    found: list[float] = path.round(7).ravel().tolist()
    return found


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
