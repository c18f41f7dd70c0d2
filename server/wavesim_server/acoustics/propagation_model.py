"""Sound between two points of a configuration, without a simulation: arrivals, rays, and sections of sound speed.

    from wavesim_server.acoustics import propagation_model
    from wavesim_world.config import load
    loaded = load("config.xml")
    print(propagation_model.arrivals(loaded, (0.0, 0.0, 20.0), (1500.0, 200.0, 60.0)))

A :class:`PropagationModel` keeps the medium of a configuration, so that further queries are fast. For a single query,
call the module's function of the same name. Positions are north, east and depth in m; times are in s since the start.
The results are those of a simulation whose nodes rest at these positions: the same compiled functions compute them. The
beam patterns of transducers are not included. Positions outside the water raise InvalidArgument.

:mod:`wavesim_server.acoustics.loss_planes` computes the transmission loss in a plane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.algebra import interpolate, norm
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, hypot
from wavesim_sdk.errors import InvalidArgument
from wavesim_server import array_tables, seabed
from wavesim_server.acoustics import arrival_search, image_paths, medium_arrays, medium_setup
from wavesim_server.acoustics.arrival_search import FOUND_PATH, PATHS, POINTS, PathResults
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.environment import exposure
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean import sound
from wavesim_world.ocean.bed import sea_bed
from wavesim_world.ocean.sound_warnings import NodePlace, volume_warnings
from wavesim_world.ocean.water import Water

__all__ = [
    "ARRIVAL",
    "PropagationModel",
    "SoundSpeedSection",
    "arrivals",
    "first_free_path",
    "ray_tracks",
    "sound_speed_section",
]

DEFAULT_FREQUENCY = 25e3  #: carrier in Hz if the caller does not give one
SAGITTA = 0.02  #: maximum distance in m between a ray and the straight lines between its points

Position = Sequence[float] | Floats  #: north, east and depth in m

#: columns of a table of arrivals
ARRIVAL = np.dtype(
    [
        ("time", "f8"),  # travel time, s
        ("length", "f8"),  # length along the path, m
        ("loss", "f8"),  # transmission loss, dB: the sum of the next four columns
        ("spreading", "f8"),  # dB
        ("absorption", "f8"),  # dB
        ("surface_loss", "f8"),  # loss of all bounces off the surface, dB
        ("bottom_loss", "f8"),  # loss of all bounces off the bottom, dB
        ("phase", "f8"),  # phase from bounces and caustics for exp(+i w t), rad; travel adds -w time
        ("launch_bearing", "f8"),  # direction of travel at the source, clockwise from north, rad
        ("launch_elevation", "f8"),  # downwards from the horizontal, rad
        ("arrival_bearing", "f8"),  # direction of travel at the receiver, rad
        ("arrival_elevation", "f8"),  # downwards from the horizontal, rad
        ("surface", "i8"),  # bounces off the surface
        ("bottom", "i8"),  # bounces off the bottom
        ("turning_points", "i8"),
        ("caustics", "i8"),
        ("blocked_by", "U40"),  # obstacle or sea bed that blocks the path; empty = free
        ("followed", "?"),  # whether a simulation follows this path (<acoustics paths>, echoes)
        ("straight_line_error", "f8"),  # speed that instruments assume times travel time, minus distance, m
    ]
)


class SoundSpeedSection(NamedTuple):
    """Sound speed (depths, ranges) in m/s on the vertical section between two points. It is NaN outside the water.
    ``ranges`` and ``depths`` are in m; ``bed`` (ranges,) is the depth of the bed. ``positions`` (depths, ranges, 3) are in
    frame W.
    """

    ranges: Floats
    depths: Floats
    speed: Floats
    bed: Floats
    positions: Floats


class PropagationModel:
    """The acoustic medium of a configuration, for questions about the sound between two points.

    The surface is the flat mean surface: ``<multipath surface="moving">`` has an effect only in a simulation.
    """

    def __init__(self, loaded: LoadedConfig) -> None:
        self.loaded, self.acoustics = loaded, loaded.config.acoustics
        self.water = Water(loaded)
        bed, net = seabed.make_bed(loaded)
        self._obstacles = exposure.obstacle_names(loaded)
        self.scene = AcousticScene(exposure.obstacle_shapes(loaded), bed, net, np.zeros(1, np.int64))
        self.medium = medium_setup.make_medium(loaded, self.water, 1, loaded.config.time.step, 1, 1)
        self.medium.water[0].summing = medium_arrays.COHERENT  # phases are always computed
        self.table = array_tables.address_table(self.medium)
        self._bed = sea_bed(loaded)

    # -- the water -----------------------------------------------------------------------------

    def bed_depth(self, north: Floats, east: Floats) -> Floats:
        """Return the depth of the bed in m; NaN outside the soundings."""
        return np.asarray(self._bed(np.asarray(north, float), np.asarray(east, float)), float)

    def sound_speed(self, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return the sound speed in m/s that the medium uses at positions (..., 3)."""
        m, p = self.medium, np.asarray(p_W, float)
        if m.water[0].mode != medium_arrays.VOLUME:
            return interpolate(p[..., 2], m.profile_z, m.profile_c)
        points, speeds = np.ascontiguousarray(p.reshape(-1, 3)), np.empty(p.size // 3)
        arrival_search.fill_speeds(self.table, float(time_s), points, speeds)
        return speeds.reshape(p.shape[:-1])

    def _layer_gradient(self, p_W: Floats) -> Floats:
        """Return the gradient (..., 3) of the sound speed in 1/s at positions (..., 3), in layered water."""
        z, c = self.medium.profile_z, self.medium.profile_c
        p = np.asarray(p_W, float)
        layer = np.clip(np.searchsorted(z, p[..., 2], "right") - 1, 0, len(z) - 2)
        found = np.zeros(p.shape)
        slope = (np.diff(c) / np.diff(z))[layer]
        found[..., 2] = np.where((p[..., 2] >= z[0]) & (p[..., 2] <= z[-1]), slope, 0.0)
        return found

    @property
    def same_in_all_directions(self) -> bool:
        """Whether sound propagates equally in all horizontal directions: in layered water over a level bed, without
        obstacles.
        """
        bed, mode = self.scene.bed, self.medium.water[0].mode
        return mode != medium_arrays.VOLUME and not (
            bed.has_soundings or bed.max_slope > 0.0 or len(self.scene.obstacles)
        )

    def check_position(self, position: Position, name: str) -> Floats:
        """Return a position as an array. Raises InvalidArgument if it is not in the water; the message refers to the
        position as ``name``.
        """
        p = np.asarray(position, float)
        if p.shape != (3,) or not np.isfinite(p).all():
            raise InvalidArgument(f"{name} must have three finite numbers: north, east and depth in m")
        bed = float(self.bed_depth(p[0], p[1]))
        place = f"north {p[0]:g} m, east {p[1]:g} m"
        if math.isnan(bed):
            raise InvalidArgument(f"{name} is outside the soundings ({place})")
        if bed <= 0.0:
            raise InvalidArgument(f"{name} is on land, {-bed:.3g} m above the surface ({place})")
        if p[2] < 0.0:
            raise InvalidArgument(
                f"{name} is {-p[2]:.3g} m above the surface; use a depth from 0 to {bed:.6g} m ({place})"
            )
        if p[2] > bed + image_paths.END_CLEARANCE:
            raise InvalidArgument(
                f"{name} is {p[2] - bed:.3g} m below the bed; use a depth from 0 to {bed:.6g} m ({place})"
            )
        return p

    def notes(self, places: Sequence[NodePlace], time_s: float = 0.0) -> list[str]:
        """Return the limits of the answers for these places and this time of emission, one sentence each."""
        found, multipath = [], self.acoustics.multipath
        if multipath is not None and multipath.surface == "moving" and multipath.order > 0:
            found.append(
                'the paths are those over the flat mean surface: <multipath surface="moving"> has an effect only in a '
                "simulation"
            )
        if self.medium.water[0].mode == medium_arrays.VOLUME and self.water.volume is not None:
            found += volume_warnings(self.water.volume, places, time_s)
        return found

    # -- arrivals ------------------------------------------------------------------------------

    def arrivals(
        self,
        source: Position,
        receiver: Position,
        time_s: float = 0.0,
        frequency: float | None = None,
    ) -> Any:
        """Return all arrivals of a signal that is emitted at ``time_s``, as a structured array of :data:`ARRIVAL` in the
        order of their times. The array is empty in an acoustic shadow.

        ``frequency`` is in Hz (default: 25 kHz); absorption and the losses at the surface depend on it.
        """
        return self.arrivals_and_tracks(source, receiver, time_s, frequency)[0]

    def ray_tracks(
        self,
        source: Position,
        receiver: Position,
        time_s: float = 0.0,
        frequency: float | None = None,
    ) -> list[Floats]:
        """Return the points (n, 4) of each ray of :meth:`arrivals`, in the same order: range, depth, north and east in m.

        The range is the horizontal distance from the source, measured along the line to the receiver. A ray is within 2
        cm of the straight lines between its points.
        """
        return self.arrivals_and_tracks(source, receiver, time_s, frequency)[1]

    def arrivals_and_tracks(
        self,
        source: Position,
        receiver: Position,
        time_s: float = 0.0,
        frequency: float | None = None,
    ) -> tuple[Any, list[Floats]]:
        """Return both :meth:`arrivals` and :meth:`ray_tracks` from one search."""
        found, track, distance = self._search(source, receiver, time_s, frequency)
        ends = np.cumsum(found["points"])
        a, b = np.asarray(source, float), np.asarray(receiver, float)
        far = float(hypot(b[0] - a[0], b[1] - a[1]))
        along = (b[:2] - a[:2]) / far if far > 0.0 else np.array([1.0, 0.0])
        rays = []
        for k in np.argsort(found["time"], kind="stable"):
            points = self._curved(track[ends[k] - found["points"][k] : ends[k]], time_s)
            across = points[:, :2] - a[:2]
            rays.append(np.column_stack([across[:, 0] * along[0] + across[:, 1] * along[1], points[:, [2, 0, 1]]]))
        return self._table(found, distance), rays

    def _curved(self, points: Floats, time_s: float) -> Floats:
        """Return the points (n, 3) of a ray, with additional points inserted on the arcs between them.

        Between two points, the sound speed is linear. The ray is therefore an arc of a circle, whose centre is where
        the extrapolated speed would be zero: at the distance c/g from the middle of the chord, where c is the speed in
        the middle and g is the gradient across the chord.
        """
        mode = self.medium.water[0].mode
        if mode == medium_arrays.VOLUME:
            return points  # their distances are short
        if mode == medium_arrays.GRADIENT:
            points = points[[0, -1]]  # one arc; the points in between are approximate
        chord = np.diff(points, axis=0)
        d = norm(chord)
        keep = d > 0.0
        start, chord, d = points[:-1][keep], chord[keep], d[keep]
        if not len(d):
            return points
        middle, e = start + 0.5 * chord, chord / d[:, None]
        g = self._layer_gradient(middle)
        g = g - (g * e).sum(axis=1)[:, None] * e  # across the chord
        bend = g / self.sound_speed(middle, time_s)[:, None]  # 1 / distance of the centre
        k = norm(bend)
        sagitta = 0.125 * k * d * d
        parts = np.clip(np.ceil(np.sqrt(sagitta / SAGITTA)), 1, 200).astype(int)
        curve = [points[0][None]]
        for i, n in enumerate(parts.tolist()):
            u = np.arange(1, n + 1) / n
            half = u * (1.0 - u) * d[i] * d[i]  # product of the two parts of the chord
            root = np.sqrt(1.0 + k[i] * k[i] * half)
            height = half * k[i] / (1.0 + root)  # of the arc over the chord, from R^2 = D^2 + d^2/4 with k = 1/D
            side = bend[i] / k[i] if k[i] > 0.0 else np.zeros(3)
            curve.append(start[i] + u[:, None] * chord[i] + height[:, None] * side)
        return np.concatenate(curve)

    def prepare_signal(self, source: Floats, time_s: float, frequency: float | None) -> None:
        """Set signal 0 of the medium to a signal of 0 dB without a beam pattern."""
        if not math.isfinite(time_s) or time_s < 0.0:
            raise InvalidArgument(f"invalid time {time_s:g} s: use a number from 0 s")
        f = DEFAULT_FREQUENCY if frequency is None else float(frequency)
        if not 1.0 <= f <= 1e6:
            raise InvalidArgument(f"frequency {f:g} Hz is out of range (1 to 1e+06 Hz)")
        signal = self.medium.signals[0]
        signal.x, signal.y, signal.z = source
        signal.emission, signal.frequency, signal.source_level, signal.beam = time_s, f, 0.0, -1
        signal.absorption = sound.absorption(self.acoustics, f)

    def _search(
        self, source: Position, receiver: Position, time_s: float, frequency: float | None
    ) -> tuple[Any, Floats, float]:
        """Return (paths as FOUND_PATH records, points along them, distance between source and receiver)."""
        a, b = self.check_position(source, "the source"), self.check_position(receiver, "the receiver")
        distance = float(norm(b - a))
        if distance < 1e-3:
            raise InvalidArgument("source and receiver are at the same position; move one of them")
        self.prepare_signal(a, time_s, frequency)
        m = self.medium
        m.nodes[0].beam = -1
        place = m.places[0, 0]
        place.x, place.y, place.z = b
        counts, n, points = np.zeros(3, np.int64), 64, 4096
        while True:
            found = np.zeros(n, FOUND_PATH.dtype)
            results = PathResults(array_tables.record_argument(found), np.zeros((points, 3)), counts)
            arrival_search.find_paths(self.table, self.scene, results)
            if counts[PATHS] <= n and counts[POINTS] <= points:
                return found[: counts[PATHS]], results.track, distance
            n, points = max(n, int(counts[PATHS])), max(points, int(counts[POINTS]))

    def _table(self, found: Any, distance: float) -> Any:
        table = np.zeros(len(found), ARRIVAL)
        for name in set(ARRIVAL.names or ()) & set(found.dtype.names):
            table[name] = found[name]
        table["turning_points"] = found["turns"]
        for end, (x, y, z) in (("launch", ("sx", "sy", "sz")), ("arrival", ("rx", "ry", "rz"))):
            table[f"{end}_bearing"] = atan2(found[y], found[x]) % (2.0 * math.pi)
            table[f"{end}_elevation"] = atan2(found[z], hypot(found[x], found[y]))
        table["blocked_by"] = [self._blocker(k) for k in found["blocker"].tolist()]
        table["straight_line_error"] = self.acoustics.sound_speed * found["time"] - distance
        table = table[np.argsort(found["time"], kind="stable")]
        w = self.medium.water[0]
        if w.order > 0 or self.acoustics.sum != "first":
            strongest = np.argsort(np.where(np.arange(len(table)) == 0, -np.inf, table["loss"]), kind="stable")
            limit = len(table) if w.mode == medium_arrays.ISOVELOCITY else int(w.paths)
            table["followed"][strongest[:limit]] = True
        else:
            table["followed"][:1] = True
        return table

    def _blocker(self, row: int) -> str:
        if row == image_paths.NOT_BLOCKED:
            return ""
        return "sea bed" if row == image_paths.BLOCKED_BY_BED else self._obstacles[row]

    # -- sections ------------------------------------------------------------------------------

    def sound_speed_section(
        self,
        a: Position,
        b: Position,
        time_s: float = 0.0,
        shape: tuple[int, int] = (121, 241),
    ) -> SoundSpeedSection:
        """Return the sound speed on the vertical section from a to b, from the surface to the deepest point of the bed.

        The depths of a and b are ignored. ``shape`` contains the numbers of depths and ranges.
        """
        start, end = np.asarray(a, float)[:2], np.asarray(b, float)[:2]
        u = np.linspace(0.0, 1.0, shape[1])
        line = start + u[:, None] * (end - start)
        bed = self.bed_depth(line[:, 0], line[:, 1])
        if not np.isfinite(bed).any() or np.nanmax(bed) <= 0.0:
            raise InvalidArgument("there is no water between the two points")
        depths = np.linspace(0.0, float(np.nanmax(bed)), shape[0])
        p = np.empty((*shape, 3))
        p[..., :2], p[..., 2] = line, depths[:, None]
        speed = np.where(depths[:, None] <= bed, self.sound_speed(p, time_s), np.nan)
        return SoundSpeedSection(u * float(hypot(*(end - start))), depths, speed, bed, p)


def first_free_path(table: Any) -> int | None:
    """Return the row of the first arrival that is not blocked, or None if all are blocked."""
    free = np.flatnonzero(table["blocked_by"] == "")
    return int(free[0]) if len(free) else None


def arrivals(
    loaded: LoadedConfig,
    source: Position,
    receiver: Position,
    time_s: float = 0.0,
    frequency: float | None = None,
) -> Any:
    """Return all arrivals of one signal; see :meth:`PropagationModel.arrivals`."""
    return PropagationModel(loaded).arrivals(source, receiver, time_s, frequency)


def ray_tracks(
    loaded: LoadedConfig,
    source: Position,
    receiver: Position,
    time_s: float = 0.0,
    frequency: float | None = None,
) -> list[Floats]:
    """Return the points of each ray; see :meth:`PropagationModel.ray_tracks`."""
    return PropagationModel(loaded).ray_tracks(source, receiver, time_s, frequency)


def sound_speed_section(loaded: LoadedConfig, a: Position, b: Position, time_s: float = 0.0) -> SoundSpeedSection:
    """Return the sound speed on a vertical section; see :meth:`PropagationModel.sound_speed_section`."""
    return PropagationModel(loaded).sound_speed_section(a, b, time_s)
