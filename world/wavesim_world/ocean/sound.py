"""Sound in sea water as pure functions: speed, absorption, ambient noise, and the sound-speed profile of a
configuration.

Temperature is in C, depth in m, frequency in Hz, and levels are in dB re 1 uPa; salinity is practical salinity. Each
function names its source. Formulas for the same quantity give different results (sound speeds differ by 0.5 to 0.8
m/s), so each run logs the formula that it used.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wavesim_sdk.algebra import interpolate
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import exp, log10, power
from wavesim_sdk.errors import ConfigError
from wavesim_world.config.acoustics import Acoustics
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.ocean import seawater
from wavesim_world.ocean.bed import profile_depth
from wavesim_world.ocean.volume import VolumeGrid
from wavesim_world.ocean.water import Water

# ------------------------------------------------------------------ speed


def chen_millero(temperature: Floats, salinity: Floats, pressure: Floats) -> Floats:
    """Return sound speed according to Chen & Millero (1977) as in UNESCO 44. T68 is in C, gauge pressure in dbar."""
    t, s = np.asarray(temperature, float), np.asarray(salinity, float)
    p = np.asarray(pressure, float) / 10.0
    w0 = 1402.388 + t * (5.03711 + t * (-5.80852e-2 + t * (3.3420e-4 + t * (-1.47800e-6 + t * 3.1464e-9))))
    w1 = 0.153563 + t * (6.8982e-4 + t * (-8.1788e-6 + t * (1.3621e-7 - t * 6.1185e-10)))
    w2 = 3.1260e-5 + t * (-1.7107e-6 + t * (2.5974e-8 + t * (-2.5335e-10 + t * 1.0405e-12)))
    w3 = -9.7729e-9 + t * (3.8504e-10 - t * 2.3643e-12)
    a0 = 1.389 + t * (-1.262e-2 + t * (7.164e-5 + t * (2.006e-6 - t * 3.21e-8)))
    a1 = 9.4742e-5 + t * (-1.2580e-5 + t * (-6.4885e-8 + t * (1.0507e-8 - t * 2.0122e-10)))
    a2 = -3.9064e-7 + t * (9.1041e-9 + t * (-1.6002e-10 + t * 7.988e-12))
    a3 = 1.100e-10 + t * (6.649e-12 - t * 3.389e-13)
    b = -1.922e-2 - 4.42e-5 * t + (7.3637e-5 + 1.7945e-7 * t) * p
    d = 1.727e-3 - 7.9836e-6 * p
    pure = w0 + p * (w1 + p * (w2 + p * w3))
    return np.asarray(pure + (a0 + p * (a1 + p * (a2 + p * a3))) * s + b * s * np.sqrt(s) + d * s * s)


def del_grosso(temperature: Floats, salinity: Floats, pressure: Floats) -> Floats:
    """Return sound speed according to Del Grosso (1974) with the ITS-90 coefficients of Wong & Zhu (1995). T90 is in C,
    gauge pressure in dbar.
    """
    t, s = np.asarray(temperature, float), np.asarray(salinity, float)
    p = np.asarray(pressure, float) * 0.1019716212978  # kg/cm2
    ct = t * (5.012285 + t * (-5.51184e-2 + t * 2.21649e-4))
    cs = s * (1.329530 + s * 1.288598e-4)
    cp = p * (0.1560592 + p * (2.449993e-5 - p * 8.833959e-9))
    mixed = (
        -1.275936e-2 * t * s
        + 6.353509e-3 * t * p
        + 2.656174e-8 * t * t * p * p
        - 1.593895e-6 * t * p * p
        + 5.222483e-10 * t * p * p * p
        - 4.383615e-7 * t * t * t * p
        - 1.616745e-9 * s * s * p * p
        + 9.688441e-5 * t * t * s
        + 4.857614e-6 * t * s * s * p
        - 3.406824e-4 * t * s * p
    )
    return np.asarray(1402.392 + ct + cs + cp + mixed)


def mackenzie(temperature: Floats, salinity: Floats, depth: Floats) -> Floats:
    """Return sound speed according to Mackenzie (1981), valid for 2 to 30 C, salinity 25 to 40, depth 0 to 8000 m."""
    t, s, z = (np.asarray(v, float) for v in (temperature, salinity, depth))
    c = 1448.96 + t * (4.591 + t * (-5.304e-2 + t * 2.374e-4)) + 1.340 * (s - 35.0) + z * (1.630e-2 + z * 1.675e-7)
    return np.asarray(c - 1.025e-2 * t * (s - 35.0) - 7.139e-13 * t * (z * z * z))


def medwin(temperature: Floats, salinity: Floats, depth: Floats) -> Floats:
    """Return sound speed according to Medwin (1975), valid for 0 to 35 C, salinity 0 to 45, depth 0 to 1000 m."""
    t, s, z = (np.asarray(v, float) for v in (temperature, salinity, depth))
    c = 1449.2 + t * (4.6 + t * (-0.055 + t * 0.00029)) + (1.34 - 0.010 * t) * (s - 35.0) + 0.016 * z
    return np.asarray(c)


def leroy(temperature: Floats, salinity: Floats, depth: Floats, latitude_deg: float = 45.0) -> Floats:
    """Return sound speed according to Leroy, Robinson & Goldsmith (2008), valid for all oceans."""
    t, s, z = (np.asarray(v, float) for v in (temperature, salinity, depth))
    c = 1402.5 + 5.0 * t - 5.44e-2 * (t * t) + 2.1e-4 * (t * t * t) + 1.33 * s - 1.23e-2 * s * t + 8.7e-5 * s * (t * t)
    c = c + 1.56e-2 * z + 2.55e-7 * (z * z) - 7.3e-12 * (z * z * z) + 1.2e-6 * z * (latitude_deg - 45.0)
    return np.asarray(c - 9.5e-13 * t * (z * z * z) + 3e-7 * (t * t) * z + 1.43e-5 * s * z)


def munk(depth: Floats, speed: float = 1500.0, eps: float = 0.00737, axis: float = 1300.0) -> Floats:
    """Return the canonical sound-speed profile of Munk (1974)."""
    e = 2.0 * (np.asarray(depth, float) - axis) / axis
    return np.asarray(speed * (1.0 + eps * (e - 1.0 + exp(-e))))


# ------------------------------------------------------------------ absorption, dB/m


def thorp(frequency: float) -> float:
    """Return absorption in dB/m according to Thorp (1967)."""
    f2 = frequency * 1e-3 * frequency * 1e-3
    return 1.0936e-3 * (0.1 * f2 / (1.0 + f2) + 40.0 * f2 / (4100.0 + f2))


def thorp_extended(frequency: float) -> float:
    """Return absorption according to Thorp's formula with additional terms for pure water and low frequencies; valid
    from 400 Hz.
    """
    f2 = frequency * 1e-3 * frequency * 1e-3
    return 1e-3 * (0.11 * f2 / (1.0 + f2) + 44.0 * f2 / (4100.0 + f2) + 2.75e-4 * f2 + 0.003)


def francois_garrison(
    frequency: float, temperature: float = 10.0, salinity: float = 35.0, depth: float = 0.0, ph: float = 8.0
) -> float:
    """Return absorption according to Francois & Garrison (1982)."""
    f2 = frequency * 1e-3 * frequency * 1e-3
    t, s, d = temperature, salinity, depth
    c = 1412.0 + 3.21 * t + 1.19 * s + 0.0167 * d
    kelvin = t + 273.0
    f1 = 2.8 * math.sqrt(s / 35.0) * power(10.0, 4.0 - 1245.0 / kelvin)
    boric = 8.86 / c * power(10.0, 0.78 * ph - 5.0) * f1 * f2 / (f1 * f1 + f2)
    fm = 8.17 * power(10.0, 8.0 - 1990.0 / kelvin) / (1.0 + 0.0018 * (s - 35.0))
    p2 = 1.0 - 1.37e-4 * d + 6.2e-9 * d * d
    magnesium = 21.44 * s / c * (1.0 + 0.025 * t) * p2 * fm * f2 / (fm * fm + f2)
    if t <= 20.0:
        a3 = 4.937e-4 + t * (-2.59e-5 + t * (9.11e-7 - t * 1.5e-8))
    else:
        a3 = 3.964e-4 + t * (-1.146e-5 + t * (1.45e-7 - t * 6.5e-10))
    return float(1e-3 * (boric + magnesium + a3 * (1.0 - 3.83e-5 * d + 4.9e-10 * d * d) * f2))


def ainslie_mccolm(
    frequency: float, temperature: float = 10.0, salinity: float = 35.0, depth: float = 0.0, ph: float = 8.0
) -> float:
    """Return absorption according to Ainslie & McColm (1998)."""
    f2 = frequency * 1e-3 * frequency * 1e-3
    t, z = temperature, depth * 1e-3
    f1 = 0.78 * math.sqrt(salinity / 35.0) * exp(t / 26.0)
    fm = 42.0 * exp(t / 17.0)
    boric = 0.106 * f1 * f2 / (f2 + f1 * f1) * exp((ph - 8.0) / 0.56)
    magnesium = 0.52 * (1.0 + t / 43.0) * (salinity / 35.0) * fm * f2 / (f2 + fm * fm) * exp(-z / 6.0)
    return float(1e-3 * (boric + magnesium + 0.00049 * f2 * exp(-(t / 27.0 + z / 17.0))))


def absorption(a: Acoustics, frequency: float) -> float:
    """Return absorption in dB/m from the configured model."""
    water = (a.temperature, a.salinity, a.depth, a.ph)
    match a.absorption_model:
        case "thorp":
            return thorp(frequency)
        case "thorp-extended":
            return thorp_extended(frequency)
        case "francois-garrison":
            return francois_garrison(frequency, *water)
        case "ainslie-mccolm":
            return ainslie_mccolm(frequency, *water)
    return a.absorption


# ------------------------------------------------------------------ noise


def ambient_noise(frequency: float, shipping: float, wind: float, rain: float = 0.0) -> float:
    """Return the spectrum level of Wenz noise in Coates' form, dB re 1 uPa^2/Hz: turbulence, shipping, wind (m/s) and
    thermal noise, and the noise of rain (mm/h).
    """
    f = frequency * 1e-3
    log = log10(f)
    parts = (
        17.0 - 30.0 * log,
        40.0 + 20.0 * (shipping - 0.5) + 26.0 * log - 60.0 * log10(f + 0.03),
        50.0 + 7.5 * math.sqrt(wind) + 20.0 * log - 40.0 * log10(f + 0.4),
        -15.0 + 20.0 * log,
        *((rain_noise(frequency, rain),) if rain > 0.0 else ()),
    )
    return float(10.0 * log10(sum(power(10.0, p / 10.0) for p in parts)))


def rain_noise(frequency: float, rain: float) -> float:
    """Return the spectrum level of the noise of rain (mm/h), dB re 1 uPa^2/Hz.

    The level at 5 kHz is 42.4 dB + 15.4 log10(rain), as in the rain gauges of Ma & Nystuen (2005). The shape is a rough
    one: flat from 500 Hz to 15 kHz, falling by 20 dB per decade on both sides. Drop sizes and wind change the spectrum
    by several dB.
    """
    outside = min(frequency / 500.0, 1.0) * min(15e3 / frequency, 1.0)
    return float(42.4 + 15.4 * log10(rain) + 20.0 * log10(outside))


def shrimp_noise(frequency: float, level: float) -> float:
    """Return the spectrum level of the noise of snapping shrimp, dB re 1 uPa^2/Hz. It has the given level above 2 kHz,
    and decreases by 40 dB per decade below.
    """
    return level + 40.0 * float(log10(min(frequency / 2e3, 1.0)))


def noise_in_band(a: Acoustics, wind: float, frequency: float, bandwidth: float) -> float:
    """Return the ambient noise in a band from the configured model, dB re 1 uPa."""
    width = float(10.0 * log10(max(bandwidth, 1.0)))
    noise = a.ambient_noise
    if a.noise_model != "constant":
        noise = ambient_noise(frequency, a.shipping, wind, a.rain) + width
    if a.shrimp > 0.0:
        loud = shrimp_noise(frequency, a.shrimp) + width
        noise = float(10.0 * log10(power(10.0, 0.1 * noise) + power(10.0, 0.1 * loud)))
    return noise


# ------------------------------------------------------------------ the profile


def read_profile(path: Path) -> tuple[Floats, Floats]:
    """Read depths (ascending, m) and sound speeds (m/s) from rows `depth speed`. A # starts a comment."""
    depths: list[float] = []
    speeds: list[float] = []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read the sound speed profile: {error.strerror}", str(path)) from None
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            z, c = (float(w) for w in words)
        except ValueError:
            raise ConfigError(
                "invalid row of the sound speed profile: use `depth speed`, in m and m/s",
                str(path),
                number,
            ) from None
        if not (math.isfinite(z) and 100.0 <= c <= 3000.0):
            raise ConfigError(f"sound speed {c:g} m/s at {z:g} m is out of range (100 to 3000 m/s)", str(path), number)
        if depths and z <= depths[-1]:
            raise ConfigError(
                f"depth {z:g} m is not greater than the previous depth; list the depths in ascending order",
                str(path),
                number,
            )
        depths.append(z)
        speeds.append(c)
    if not depths:
        raise ConfigError("the sound speed profile has no rows", str(path))
    return np.array(depths), np.array(speeds)


def sound_speed_profile(loaded: LoadedConfig, water: Water, bottom: float, levels: int = 65) -> tuple[Floats, Floats]:
    """Return depths and sound speeds of the configured profile from the surface to ``bottom``. The profile is linear
    between these depths.
    """
    a = loaded.config.acoustics
    if a.profile == "constant":
        return np.array([0.0, bottom]), np.full(2, a.sound_speed)
    if a.profile == "gradient":
        return np.array([0.0, bottom]), a.sound_speed + a.gradient * np.array([0.0, bottom])
    if a.profile == "file":
        depths, speeds = read_profile(loaded.data_file(a.file))
        inside = depths[(depths > 0.0) & (depths < bottom)]
        z = np.concatenate([[0.0], inside, [bottom]])
        return z, interpolate(z, depths, speeds)
    z = np.linspace(0.0, bottom, levels)
    p_W = np.stack([np.zeros(levels), np.zeros(levels), z], axis=-1)
    gauge = water.pressure(p_W) - loaded.config.world.pressure_0
    t = water.temperature(p_W)
    return z, _by_formula(loaded, t, seawater.salinity(water.conductivity(p_W), t, gauge), z, gauge)


def _by_formula(loaded: LoadedConfig, t: Floats, s: Floats, z: Floats, gauge: Floats) -> Floats:
    """Return the sound speed according to the configured formula. ``z`` is the depth in m and ``gauge`` the pressure in
    dbar.
    """
    formula = loaded.config.acoustics.formula
    if formula == "chen-millero":
        return chen_millero(t, s, gauge)
    if formula == "del-grosso":
        return del_grosso(t / 1.00024, s, gauge)
    if formula == "leroy":
        return leroy(t, s, z, math.degrees(loaded.config.world.latitude))
    return (mackenzie if formula == "mackenzie" else medwin)(t, s, z)


# ------------------------------------------------------------------ the volume

SPEED_TOLERANCE = 0.01  #: largest error in m/s of the sound speed between the levels of a volume
MAX_VOLUME_BYTES = 200 * 2**20
_THINNEST_M = 1e-3  #: a level closer than this to the surface or the bed is left out


@dataclass(frozen=True)
class SoundSpeedVolume:
    """Sound speed on a grid. It is linear in each tetrahedron of the grid, and linear between two times.

    Each cell is divided into six tetrahedra by the order of the local coordinates (Kuhn 1960), so that the sound speed
    is continuous. ``c`` has the shape (times, levels, north, east), in m/s. ``depths`` ascend from 0 m to the deepest
    bed, and ``times`` ascend in s. ``origin`` and ``spacing`` are (north, east) in m. Beyond the grid, the values at
    its edge apply.
    """

    c: Floats
    depths: Floats
    times: Floats
    origin: tuple[float, float]
    spacing: tuple[float, float]

    def at(self, time_s: float) -> Floats:
        """Return the sound speed (levels, north, east) at a given time."""
        n = min(max(int(np.searchsorted(self.times, time_s, side="right")) - 1, 0), max(len(self.times) - 2, 0))
        if len(self.times) == 1:
            return np.asarray(self.c[0])
        share = min(max((time_s - self.times[n]) / (self.times[n + 1] - self.times[n]), 0.0), 1.0)
        return np.asarray(self.c[n] * (1.0 - share) + self.c[n + 1] * share)

    def __call__(self, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return the sound speed in m/s at positions (..., 3) in frame W."""
        p, c = np.asarray(p_W, float), self.at(time_s)
        north = np.clip((p[..., 0] - self.origin[0]) / self.spacing[0], 0.0, c.shape[1] - 1.0)
        east = np.clip((p[..., 1] - self.origin[1]) / self.spacing[1], 0.0, c.shape[2] - 1.0)
        i = np.minimum(north.astype(int), c.shape[1] - 2)
        j = np.minimum(east.astype(int), c.shape[2] - 2)
        k = np.clip(np.searchsorted(self.depths, p[..., 2], side="right") - 1, 0, len(self.depths) - 2)
        thickness = self.depths[k + 1] - self.depths[k]
        down = np.clip((p[..., 2] - self.depths[k]) / thickness, 0.0, 1.0)
        local = np.stack([down, north - i, east - j])
        corner = np.stack([k, i, j])
        found = c[tuple(corner)]
        for axis in np.argsort(-local, axis=0, kind="stable"):  # from corner to corner, along the largest first
            before = c[tuple(corner)]
            corner = corner + (np.arange(3).reshape(3, *(1,) * axis.ndim) == axis)
            share = np.take_along_axis(local, axis[None], axis=0)[0]
            found = found + share * (c[tuple(corner)] - before)
        return np.asarray(found)


def sound_speed_volume(loaded: LoadedConfig, water: Water) -> SoundSpeedVolume | None:
    """Return the sound speed of profile="volume" from the surface to the deepest bed; None for another profile.

    Raises ConfigError if the grid is too large.
    """
    if loaded.config.acoustics.profile != "volume" or water.volume is None:
        return None
    return sound_speed_on_grid(loaded, water, water.volume)


def sound_speed_on_grid(loaded: LoadedConfig, water: Water, grid: VolumeGrid) -> SoundSpeedVolume:
    """Return the sound speed in a gridded volume, from the surface to the deepest bed.

    The formula applies to the temperature and salinity of the volume. If the volume has the column
    ``speed_of_sound_in_sea_water_meter_per_sec``, that column replaces the formula. The levels are those of the volume,
    and as many in between as linear interpolation of the formula needs. Raises ConfigError if the grid is too large.
    """
    parts = loaded.config.acoustics.refinement
    first = max(int(np.searchsorted(grid.times, 0.0, side="right")) - 1, 0)  # earlier times are not needed
    depths = _volume_levels(loaded, water, grid, range(first, len(grid.times)))
    shape = (len(grid.times) - first, len(depths), *((n - 1) * parts + 1 for n in grid.values.shape[3:]))
    size = 8 * math.prod(shape)
    if size > MAX_VOLUME_BYTES:
        raise ConfigError(
            f'profile="volume" needs {size / 2**20:.0f} MiB of sound speeds, but the limit is {MAX_VOLUME_BYTES >> 20} MiB: '
            f"{shape[0]} times, {shape[1]} levels, and {shape[2]} x {shape[3]} points; reduce `refinement` of "
            "<acoustics>, or remove times, depths or parts of the area from the file of the <volume>",
            str(loaded.path),
        )
    c = np.empty(shape)
    for n in range(shape[0]):
        for k, z in enumerate(depths):
            c[n, k] = _volume_speed(loaded, water, grid, first + n, float(z), parts)
    spacing = grid.spacing[0] / parts, grid.spacing[1] / parts
    return SoundSpeedVolume(c, depths, grid.times[first:], grid.origin, spacing)


def _volume_levels(loaded: LoadedConfig, water: Water, grid: VolumeGrid, times: range) -> Floats:
    """Return the depths of the levels. Between two depths of the volume, the number of levels follows from the error of
    linear interpolation. Division into n parts reduces this error by the factor n squared.
    """
    bottom = profile_depth(loaded)
    inside = grid.depths[(grid.depths > _THINNEST_M) & (grid.depths < bottom - _THINNEST_M)]
    knots = [0.0, *inside.tolist(), bottom]
    levels = [0.0]
    for above, below in itertools.pairwise(knots):
        worst = 0.0
        for n in times if grid.sound_speed is None else ():
            high, low = (_volume_speed(loaded, water, grid, n, z, 1) for z in (above, below))
            for share in (0.25, 0.5, 0.75):
                between = _volume_speed(loaded, water, grid, n, above + share * (below - above), 1)
                straight = high + share * (low - high)
                worst = max(worst, float(np.abs(between - straight).max()))
        parts = max(math.ceil(math.sqrt(worst / SPEED_TOLERANCE)), 1)
        levels += [above + (below - above) * k / parts for k in range(1, parts)] + [below]
    return np.array(levels)


def _volume_speed(loaded: LoadedConfig, water: Water, grid: VolumeGrid, n: int, z: float, parts: int) -> Floats:
    """Return the sound speed (north, east) at one time and depth, with each cell of the grid divided into parts."""
    k = min(max(int(np.searchsorted(grid.depths, z, side="right")) - 1, 0), len(grid.depths) - 2)
    share = min(max((z - grid.depths[k]) / (grid.depths[k + 1] - grid.depths[k]), 0.0), 1.0)

    def level(quantity: int) -> Floats:
        values = grid.values[n, quantity]
        return _refined(values[k] * (1.0 - share) + values[k + 1] * share, parts)

    if grid.sound_speed is not None:
        return level(grid.sound_speed)
    depth = np.array(z)
    gauge = water.pressure(np.array([0.0, 0.0, z])) - loaded.config.world.pressure_0
    return _by_formula(loaded, level(0), level(1), depth, gauge)


def _refined(values: Floats, parts: int) -> Floats:
    """Return values (north, east) with each cell divided into parts in both directions, by linear interpolation."""
    for _ in range(2):
        at = np.arange((len(values) - 1) * parts + 1)
        i = np.minimum(at // parts, len(values) - 2)
        share = ((at - i * parts) / parts)[:, None]
        values = (values[i] * (1.0 - share) + values[i + 1] * share).T
    return values
