"""Survey results computed from the frames in a log: the mosaic of a side-scan sonar, the depths of a multibeam
echosounder compared with the true bed, and the detected and missed targets.

Frames are placed at their true poses, so that differences from the truth come from the sonar alone. Slant range is
converted to ground range over a level bed at the altitude of the ping.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wavesim_sdk.extras import check_installed

for _package in ("matplotlib", "PIL", "scipy"):
    check_installed(_package)
import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, TiffImagePlugin, TiffTags
from scipy.stats import binned_statistic_2d

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.imaging_frames import FRAME_KINDS, SOUNDING_COLUMNS, ImagingFrame
from wavesim_sdk.log import frames, read, usable
from wavesim_viz.mosaic_tiles import place_sidescan
from wavesim_viz.scene import of_log
from wavesim_world.config.imaging import TargetConfig

#: level in dB above the median of the surroundings at which a target is detected; speckle rarely exceeds it
SEEN_DB = 12.0
SURROUNDING_BINS = 40  #: number of samples on either side of a target that count as its surroundings
SHARES = (0.5, 99.5)  #: percentiles of the levels: the first is drawn black, the second white

FIELDS = ("north", "east", "angle", "value")
MOST_CELLS = 10**8  #: maximum number of cells in a grid


@dataclass(frozen=True)
class MosaicGrid:
    """Means in square cells, indexed by (north, east) from the south-west corner. NaN means no data."""

    values: Floats
    south: float
    west: float
    cell: float

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Return the limits of the grid in m: west, east, south and north."""
        n, e = self.values.shape
        return self.west, self.west + e * self.cell, self.south, self.south + n * self.cell


def grid_points(north: Floats, east: Floats, values: Floats, cell: float, like: MosaicGrid | None = None) -> MosaicGrid:
    """Return a grid with the mean value of the points in each cell. Use the cells of another grid if one is given."""
    if like is None:
        south, west = (math.floor(float(x.min()) / cell) * cell for x in (north, east))
        shape = tuple(int((float(x.max()) - low) / cell) + 1 for x, low in ((north, south), (east, west)))
        if shape[0] * shape[1] > MOST_CELLS:
            raise LogError(f"an image of {shape[0]} x {shape[1]} cells is too large; set larger cells with --cell")
    else:
        south, west, cell, shape = like.south, like.west, like.cell, like.values.shape
    edges = [low + cell * np.arange(n + 1) for low, n in zip((south, west), shape, strict=True)]
    mean, *_ = binned_statistic_2d(north, east, values, "mean", edges)
    return MosaicGrid(mean, south, west, cell)


def sidescan_lines(path: Path, body: str, name: str) -> Iterator[tuple[ImagingFrame, Floats]]:
    """Yield the frames from a side-scan sonar whose altitude is known, each with its levels (2, bins)."""
    for frame in frames(path, body, name):
        if math.isfinite(float(frame.record["altitude"])):
            yield frame, np.asarray(frame.levels, float)


def mosaic(path: Path, body: str, name: str, cell: float) -> MosaicGrid:
    """Place the levels of a side-scan sonar on the ground, in dB above the median of all samples at the same angle.
    This removes the dependence on the angle. Where lines overlap, their powers are averaged.
    """
    placed = [p for p in map(place_sidescan, frames(path, body, name)) if p is not None]
    if not placed:
        raise LogError(
            f"{path} has no frames from the sonar '{name}' of '{body}' that have a known altitude and reach the bed"
        )
    north, east, angle, level = (np.concatenate([getattr(p, f) for p in placed]) for f in FIELDS)
    usual = np.array([np.median(level[angle == a]) if (angle == a).any() else 0.0 for a in range(91)])
    made = grid_points(north, east, 10.0 ** (0.1 * (level - usual[angle])), cell)
    return MosaicGrid(10.0 * np.log10(made.values), made.south, made.west, made.cell)


def depths(path: Path, body: str, name: str, cell: float) -> tuple[MosaicGrid, MosaicGrid]:
    """Return two grids with the same cells: one of the measured depths, and one of the true depths at the same points."""
    points = []
    for frame in frames(path, body, name):
        s = dict(zip(SOUNDING_COLUMNS, frame.samples.T, strict=True))
        good = s["detection"] > 0.0
        sounded = frame.points[good].T
        points.append(np.stack([*sounded, *(s[k][good] for k in ("north", "east", "down"))]))
    if not points:
        raise LogError(f"{path} has no soundings from sonar '{name}' on '{body}'")
    north, east, down, true_north, true_east, true_down = np.concatenate(points, axis=1)
    measured = grid_points(north, east, down, cell)
    return measured, grid_points(true_north, true_east, true_down, cell, measured)


def targets(path: Path, body: str, name: str, wanted: tuple[TargetConfig, ...]) -> dict[str, tuple[float, float]]:
    """Return, for each target, its largest level above the surroundings in dB, and the slant range in m at which this
    level occurred. A target that was never within the beam has no entry.
    """
    found: dict[str, tuple[float, float]] = {}
    for frame, levels in sidescan_lines(path, body, name):
        r = frame.record
        c, s = math.cos(float(r["euler"][2])), math.sin(float(r["euler"][2]))
        for target in wanted:
            d = np.array(target.position) - r["p_WS_W"]
            slant = float(np.linalg.norm(d))
            ahead, starboard = c * d[0] + s * d[1], -s * d[0] + c * d[1]
            if slant >= r["range"] or abs(ahead) > max(slant * float(r["beam_width"]), 0.5):
                continue
            line = levels[1 if starboard > 0.0 else 0]
            k = int(slant / float(r["range"]) * len(line))
            near = line[max(k - 2, 0) : k + 3]
            around = np.concatenate(
                [line[max(k - SURROUNDING_BINS, 0) : max(k - 5, 0)], line[k + 6 : k + SURROUNDING_BINS]]
            )
            over = float(near.max() - np.median(around)) if len(around) else 0.0
            if target.name not in found or over > found[target.name][0]:
                found[target.name] = over, slant
    return found


def draw(path: Path, folder: Path, cell: float, geotiff: bool = False) -> Iterator[str]:
    """Draw all plots for which the log has data. Yield lines of text: the file names of the plots, the depth
    statistics, and the table of targets. With ``geotiff``, also write the grids as GeoTIFF.
    """
    with usable(path):
        yield from _draw(path, folder, cell, geotiff)


def _draw(path: Path, folder: Path, cell: float, geotiff: bool) -> Iterator[str]:
    log = read(path)
    _, loaded = of_log(log)
    origin = (loaded.config.world.latitude, loaded.config.world.longitude) if loaded is not None else (0.0, 0.0)
    if geotiff and not any(origin):
        raise LogError(f"{path} has no geographic position: a GeoTIFF needs the latitude and longitude of its <world>")
    folder.mkdir(parents=True, exist_ok=True)
    any_ = False
    for topic, series in sorted(log.series.items()):
        if not topic.startswith("/sonar/") or not len(series.records):
            continue
        body, name = topic.split("/")[2:4]
        kind = FRAME_KINDS[int(series.records["kind"][0])]
        if kind == "sidescan":
            made = mosaic(path, body, name, cell)
            low, high = np.nanpercentile(made.values, SHARES)
            yield _picture(
                made,
                folder / f"mosaic-{body}-{name}.png",
                "copper",
                low,
                high,
                f"{body} {name}: dB above the median at the same angle",
            )
            if geotiff:
                yield geo(made, folder / f"mosaic-{body}-{name}.tif", origin)
            if loaded is not None and loaded.config.world.target:
                yield from _table(targets(path, body, name, loaded.config.world.target), loaded.config.world.target)
        elif kind == "bathymetry":
            measured, true = depths(path, body, name, max(cell, 0.5))
            low, high = np.nanpercentile(measured.values, (0.5, 99.5))
            yield _picture(
                measured, folder / f"depth-{body}-{name}.png", "viridis_r", low, high, f"{body} {name}: depth, m"
            )
            if geotiff:
                yield geo(measured, folder / f"depth-{body}-{name}.tif", origin)
            wrong = (measured.values - true.values)[np.isfinite(measured.values) & np.isfinite(true.values)]
            rms, depth = math.sqrt(float(np.mean(wrong**2))), float(np.nanmean(true.values))
            yield f"depth minus true bed: {len(wrong)} cells of {measured.cell:g} m, median {np.median(wrong):+.3f} m, rms {rms:.3f} m ({100 * rms / depth:.2f} % of depth)"
        any_ = any_ or kind in ("sidescan", "bathymetry")
    if not any_:
        raise LogError(f"{path} has no frames from a side-scan sonar or a multibeam echosounder")


def _table(found: dict[str, tuple[float, float]], wanted: tuple[TargetConfig, ...]) -> Iterator[str]:
    yield f"{'target':16} {'shape':10} {'over bed':>8} {'range':>7}"
    for t in wanted:
        over, slant = found.get(t.name, (-math.inf, math.nan))
        result = (
            f"{over:5.1f} dB {slant:5.1f} m  {'seen' if over >= SEEN_DB else 'missed'}"
            if t.name in found
            else "never in the beam"
        )
        yield f"{t.name:16} {t.shape:10} {result}"


#: keys of GeoTIFF 1.1: first the keys with one number each, then the keys whose values are in another tag
_KEYS = (
    (1024, 1),
    (1025, 1),
    (2048, 4326),
    (3072, 32767),
    (3074, 32767),
    (3075, 1),
    (3076, 9001),
)
#: keys for longitude and latitude of the origin, its coordinates, and the scale at the origin
_DOUBLES = (3080, 3081, 3082, 3083, 3092)


def geo(made: MosaicGrid, out: Path, origin: tuple[float, float]) -> str:
    """Write a grid as GeoTIFF, with NaN where data are missing; return the file name. ``origin`` is the latitude and
    longitude (rad) of the point at north 0, east 0. The projection is a transverse Mercator at the origin; within a few
    kilometres of the origin, its metres equal those of the tangent plane.
    """
    doubles = (math.degrees(origin[1]), math.degrees(origin[0]), 0.0, 0.0, 1.0)
    keys = [(key, 0, 1, value) for key, value in _KEYS] + [(key, 34736, 1, k) for k, key in enumerate(_DOUBLES)]
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    for tag, type_, values in (
        (33550, TiffTags.DOUBLE, (made.cell, made.cell, 0.0)),
        (33922, TiffTags.DOUBLE, (0.0, 0.0, 0.0, made.west, made.south + made.values.shape[0] * made.cell, 0.0)),
        (34735, TiffTags.SHORT, (1, 1, 1, len(keys), *(n for key in sorted(keys) for n in key))),
        (34736, TiffTags.DOUBLE, doubles),
        (42113, TiffTags.ASCII, "nan"),
    ):
        tags.tagtype[tag] = type_
        tags[tag] = values
    Image.fromarray(made.values[::-1].astype(np.float32)).save(out, compression="tiff_deflate", tiffinfo=tags)
    return str(out)


def _picture(made: MosaicGrid, out: Path, colours: str, low: float, high: float, title: str) -> str:
    figure, axes = plt.subplots(figsize=(9, 9), dpi=130)
    shown = axes.imshow(
        made.values, origin="lower", extent=made.extent, cmap=colours, vmin=low, vmax=high, interpolation="nearest"
    )
    axes.set(title=title, xlabel="east, m", ylabel="north, m", facecolor="#10161c")
    figure.colorbar(shown, ax=axes, shrink=0.7)
    figure.savefig(out, bbox_inches="tight", facecolor="white")
    plt.close(figure)
    return str(out)
