"""The declaration of the sea: water, bed, flow, wind, waves, tide, obstacles.

Part of the configuration model; units in the file are the user's choice, the values here are SI and radians.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavesim_sdk.config.imaging import Board, GroundConfig, MaterialConfig, Optics, TargetConfig
from wavesim_sdk.config.schema import Vector, child, children, choice, flag, key, key_or_word, place, text
from wavesim_sdk.elementary import cos, hypot

#: mean wind by Beaufort number: middle of the class, m/s
BEAUFORT = (0.15, 0.9, 2.5, 4.5, 6.7, 9.4, 12.3, 15.5, 19.0, 22.6, 26.5, 30.6, 34.0)

#: m/s to either side that each part of a flow may have: more than any stream of the sea
MAX_CURRENT = 20.0


@dataclass(frozen=True)
class Drift:
    """A slowly varying flow: its speed and direction are first-order Gauss-Markov processes within limits."""

    speed: float = key("Mean speed.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    speed_deviation: float = key("Standard deviation without limits.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    speed_minimum: float = key("Least speed.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    speed_maximum: float = key("Greatest speed.", "speed", 10.0, low=0.0, high=MAX_CURRENT)
    direction: float = key("Mean direction to which it flows.", "angle", 0.0)
    direction_deviation: float = key("Standard deviation without limits.", "angle", 0.0, low=0.0)
    direction_range: float = key("Greatest deviation to either side.", "angle", 3.141592653589793, low=0.0)
    time_constant: float = key("Time constant of both processes.", "time", 600.0, low=0.1)


@dataclass(frozen=True)
class Layer:
    """The flow at a depth; linear between layers, constant above the first and below the last."""

    depth: float = key("Depth.", "length", low=0.0)
    north: float = key("Flow to the north.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)
    east: float = key("Flow to the east.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)


@dataclass(frozen=True)
class Current:
    """Water flow: mean + amplitude cos(2 pi t / period + phase) along a direction, the same everywhere; to this
    are added the drift, the layers and the flow of a <volume>, where there are such."""

    north: float = key("Mean flow to the north.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)
    east: float = key("Mean flow to the east.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)
    tide_amplitude: float = key("Amplitude of the tidal stream.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    tide_direction: float = key("Direction to which the stream flows at phase 0.", "angle", 0.0)
    tide_period: float = key("Period of the tidal stream.", "time", 44714.16, low=1.0)
    tide_phase: float = key("Phase at the start.", "angle", 0.0)
    drift: Drift | None = child(Drift, "A slowly varying part.")
    layer: tuple[Layer, ...] = children(Layer, "Flow by depth, from the top.")

    @property
    def max_speed(self) -> float:
        """Speed that this flow hardly ever exceeds, m/s: its drift by three standard deviations."""
        d = self.drift
        drift = min(d.speed + 3.0 * d.speed_deviation, d.speed_maximum) if d is not None else 0.0
        layers = max((float(hypot(k.north, k.east)) for k in self.layer), default=0.0)
        return float(hypot(self.north, self.east)) + self.tide_amplitude + drift + layers


@dataclass(frozen=True)
class Tide:
    """Level of the water: amplitude cos(2 pi t / period + phase) above the mean."""

    amplitude: float = key("Amplitude.", "length", 0.0, low=0.0)
    period: float = key("Period.", "time", 44714.16, low=1.0)
    phase: float = key("Phase at the start.", "angle", 0.0)

    def level(self, time_s: float) -> float:
        """Metres above the mean."""
        return self.amplitude * float(cos(2.0 * math.pi * time_s / self.period + self.phase))


@dataclass(frozen=True)
class Wind:
    """Wind: mean by height (logarithmic, from the surface drag coefficient), a slow Gauss-Markov part, and gusts by
    the Harris spectrum 4 k L U10 / (2 + (f L / U10)^2)^(5/6). The same everywhere in the horizontal."""

    speed: float = key("U10: mean speed at 10 m.", "speed", 0.0, low=0.0, high=100.0)
    direction: float = key("Direction from which it blows.", "angle", 0.0)
    beaufort: int = key("Beaufort number instead of `speed`; -1 = none.", default=-1, low=-1, high=12, integer=True)
    drag: float = key("k: surface drag coefficient.", default=0.003, low=1e-4, high=0.05)
    slow_deviation: float = key("Standard deviation of the slow part of U10.", "speed", 0.0, low=0.0)
    slow_time: float = key("Time constant of the slow part.", "time", 300.0, low=0.1)
    minimum: float = key("Least U10 of mean and slow part.", "speed", 0.0, low=0.0)
    maximum: float = key("Greatest U10 of mean and slow part.", "speed", 100.0, low=0.0)
    gusts: int = key("Number of gust components; 0 = no gusts.", default=0, low=0, high=500, integer=True)
    gust_length: float = key("L.", "length", 1800.0, low=1.0)
    air_density: float = key("Density of the air.", "density", 1.25, low=0.1)

    @property
    def mean(self) -> float:
        """U10 in m/s."""
        return BEAUFORT[self.beaufort] if self.beaufort >= 0 else self.speed


@dataclass(frozen=True)
class Waves:
    """Waves as a sum of components with random phases, w^2 = g k tanh(k h); under them the water moves by Airy's theory.

    ittc: S(w) = A/w^5 exp(-B/w^4), A = 0.3125 Hs^2 wp^4, B = 1.25 wp^4 (Bretschneider, ISSC). jonswap: the same times
    gamma^exp(-((w/wp - 1)/s)^2/2), normalised to the same Hs. Frequencies are spaced by equal energy."""

    height: float = key("Hs: significant wave height.", "length", 0.0, low=0.0, high=30.0)
    peak: float = key("wp: peak frequency.", "angular rate", 0.6, low=0.05, high=20.0)
    direction: float = key("Direction to which they travel.", "angle", 0.0)
    beaufort: int = key(
        "Beaufort number instead of `height` and `peak`; -1 = none.", default=-1, low=-1, high=12, integer=True
    )
    spectrum: str = choice("Shape of the spectrum.", ("ittc", "jonswap"), "ittc")
    gamma: float = key("Peak enhancement (jonswap).", default=3.3, low=1.0, high=10.0)
    spreading: float = key(
        "s of cos^2s((b - b0)/2) around the direction; 0 = long-crested.", default=0.0, low=0.0, high=200.0
    )
    components: int = key("Number of components.", default=60, low=1, high=1000, integer=True)
    depth: float = key(
        "h: depth of the water that they travel in, the same everywhere; 0 m = that of the bed: under the origin, or the "
        "mean of its soundings.",
        "length",
        0.0,
        low=0.0,
    )


@dataclass(frozen=True)
class Block:
    """An obstacle: an upright box that may be turned about the vertical; walls, quays, blocks."""

    position: Vector = key("Its centre (north, east, down).", "length", count=3)
    size: Vector = key("Length (along its heading), width, height.", "length", count=3, low=1e-3)
    heading: float = key("Direction of its length.", "angle", 0.0)
    material: str = text("What it is made of, for imaging sonars.", "concrete")
    place: str = place()


@dataclass(frozen=True)
class Pier:
    """An obstacle: an upright round post."""

    position: Vector = key("Its centre (north, east, down).", "length", count=3)
    radius: float = key("Radius.", "length", low=1e-3)
    height: float = key("Height.", "length", low=1e-3)
    material: str = text("What it is made of, for imaging sonars.", "concrete")
    place: str = place()


@dataclass(frozen=True)
class Tunnel:
    """A straight level tunnel: four walls around a clear width and height."""

    position: Vector = key("Centre of the clear space (north, east, down).", "length", count=3)
    length: float = key("Length along its heading.", "length", low=1e-2)
    width: float = key("Clear width.", "length", low=1e-2)
    height: float = key("Clear height.", "length", low=1e-2)
    thickness: float = key("Of the walls.", "length", 0.5, low=1e-3)
    heading: float = key("Direction of its length.", "angle", 0.0)
    material: str = text("What it is made of, for imaging sonars.", "concrete")
    place: str = place()


@dataclass(frozen=True)
class Mesh:
    """An obstacle from a file of triangles (STL, PLY, OBJ, OFF, GLB): a wreck, a rock, a pontoon. Its axes are north, east,
    down after turning by `attitude`: a model with z up takes attitude="180 0 0 deg"."""

    file: str = text("The file, relative to the configuration file.")
    position: Vector = key("Where the file's origin lies (north, east, down).", "length", count=3)
    attitude: Vector = key("Roll, pitch, yaw.", "angle", (0.0, 0.0, 0.0), count=3)
    scale: float = key("Metres per unit of the file.", default=1.0, low=1e-6, high=1e6)
    material: str = text("What it is made of, for imaging sonars.", "steel")
    place: str = place()


@dataclass(frozen=True)
class Obstacles:
    """Fixed bodies that vehicles touch, beams see and sound does not pass."""

    block: tuple[Block, ...] = children(Block, "A box.")
    pier: tuple[Pier, ...] = children(Pier, "A post.")
    tunnel: tuple[Tunnel, ...] = children(Tunnel, "A tunnel.")
    mesh: tuple[Mesh, ...] = children(Mesh, "A body of triangles from a file.")


@dataclass(frozen=True)
class Bump:
    """A hill (negative: a hole is positive in depth) h exp(-(a^2 dx^2 + b^2 dy^2)) added to the depth."""

    height: float = key("h: added to the depth, so a hill is negative.", "length")
    north: float = key("Centre.", "length")
    east: float = key("Centre.", "length")
    alpha: float = key("a: higher is narrower, along north.", "inverse length", low=0.0)
    beta: float = key("b: higher is narrower, along east.", "inverse length", low=0.0)


@dataclass(frozen=True)
class BedConfig:
    """Analytic sea bed: D0 + D1 x + D2 y + bumps."""

    depth: float = key("D0: depth at the origin.", "length", 100.0, low=0.0)
    slope_north: float = key("D1: metres of depth per metre north.", default=0.0)
    slope_east: float = key("D2: metres of depth per metre east.", default=0.0)
    bump: tuple[Bump, ...] = children(Bump, "Hills and holes.")


@dataclass(frozen=True)
class Soundings:
    """Sea bed from a file: soundings `north east depth` in metres, a line each (alone, or as DUNE writes them after `Data =`),
    or a regular grid (ESRI ASCII, its y to the north). Linear between points (Delaunay triangles), level with the
    nearest point around the survey."""

    file: str = text("The file, relative to the configuration file.")
    north: float = key("Where the file's origin lies in this world.", "length", 0.0)
    east: float = key("Where the file's origin lies in this world.", "length", 0.0)
    heights: bool = flag("The file has heights above the water (negative under it) instead of depths.", False)


@dataclass(frozen=True)
class Spot:
    """A deviation D exp(-(a^2 dx^2 + b^2 dy^2 + g^2 dz^2)) around a point."""

    deviation: float = key("D, in the unit of the field (C or S/m).")
    position: Vector = key("Centre (north, east, down).", "length", count=3)
    alpha: float = key("a: higher is narrower, along north.", "inverse length", low=0.0)
    beta: float = key("b: higher is narrower, along east.", "inverse length", low=0.0)
    gamma: float = key("g: higher is narrower, along depth.", "inverse length", low=0.0)


@dataclass(frozen=True)
class TemperatureConfig:
    """Temperature profile: constant to knee_1, one gradient to knee_2, another below; plus spots."""

    surface: float = key("Temperature at the surface.", "temperature", 15.0, low=-2.0, high=40.0)
    knee_1: float = key("Depth of the first knee.", "length", 10.0, low=0.0)
    knee_2: float = key("Depth of the second knee.", "length", 50.0, low=0.0)
    gradient_1: float = key("Change per metre between the knees.", "temperature gradient", -0.05)
    gradient_2: float = key("Change per metre below the second knee.", "temperature gradient", -0.005)
    spot: tuple[Spot, ...] = children(Spot, "Local deviations.")


@dataclass(frozen=True)
class ConductivityConfig:
    """Conductivity profile: the same shape with gradients of the other sign."""

    surface: float = key("Conductivity at the surface.", "conductivity", 4.2, low=0.0, high=10.0)
    knee_1: float = key("Depth of the first knee.", "length", 10.0, low=0.0)
    knee_2: float = key("Depth of the second knee.", "length", 50.0, low=0.0)
    gradient_1: float = key("Change per metre between the knees.", "conductivity gradient", 0.001)
    gradient_2: float = key("Change per metre below the second knee.", "conductivity gradient", 0.0001)
    spot: tuple[Spot, ...] = children(Spot, "Local deviations.")


@dataclass(frozen=True)
class Volume:
    """A gridded volume (CSV with latitude, longitude, depth, temperature, salinity, eastward and
    northward velocity, and a time column if it varies). It replaces the temperature and conductivity profiles and adds its current."""

    file: str = text("The file, relative to the configuration file.")
    latitude: float = key("Latitude of the point of the file that lies at the origin.", "angle")
    longitude: float = key("Longitude of that point.", "angle")


@dataclass(frozen=True)
class Samples:
    """Temperature and salinity measured at points in space and time (CSV with the columns of a volume, but without
    flow and in any places). Between points inverse-distance weights within a radius, linear between times; before the
    first and after the last, theirs; with no point within the radius, the nearest one. They replace the profiles."""

    file: str = text("The file, relative to the configuration file.")
    latitude: float = key("Latitude of the point that lies at the origin.", "angle")
    longitude: float = key("Longitude of that point.", "angle")
    radius: float = key("Points farther away than this have no weight.", "length", 500.0, low=1e-3)
    power: float = key("Weight = 1 / distance^power.", default=2.0, low=0.5, high=8.0)


@dataclass(frozen=True)
class Gaussian:
    """A cloud: peak exp(-(north'^2 / (2 sn^2) + east'^2 / (2 se^2))) around a point, the same at all depths."""

    peak: float = key("Value in the middle.")
    north: float = key("Middle.", "length")
    east: float = key("Middle.", "length")
    sigma_north: float = key("sn.", "length", low=1e-3)
    sigma_east: float = key("se.", "length", low=1e-3)


@dataclass(frozen=True)
class ScalarConfig:
    """Any other quantity of the water, for the sensor `scalar`: a sum of clouds, or a column of the <volume>."""

    name: str = text("Its name.")
    column: str = text("Column of the volume's file.", "")
    above: float = key("There is none (-1) above this depth.", "length", 0.0)
    gaussian: tuple[Gaussian, ...] = children(Gaussian, "A cloud.")
    place: str = place()


@dataclass(frozen=True)
class MagneticField:
    """The earth's magnetic field, the same everywhere: by the World Magnetic Model at the origin, or as given."""

    year: float = key("Year of the World Magnetic Model (WMM2025).", default=2026.0, low=2025.0, high=2030.0)
    field: Vector = key(
        "North, east, down, in place of the model's.", "magnetic field", (0.0, 0.0, 0.0), count=3, low=-1e-3, high=1e-3
    )


DENSITY = 1025.0  #: kg/m3, where nothing else is said


@dataclass(frozen=True)
class World:
    """Sea water, sea bed and flow."""

    density_setting: float | str = key_or_word(
        "water",
        "Density of the water. `water`: for buoyancy that of the water at each place, by its temperature, conductivity and "
        "pressure (EOS-80), as a CTD there would have it; for all else 1025 kg/m3.",
        "density",
        DENSITY,
        low=1.0,
        name="density",
    )
    gravity: float = key("Acceleration of gravity.", "acceleration", 9.81, low=0.0)
    latitude: float = key("Of the origin of the world.", "angle", 0.0)
    longitude: float = key("Of the origin of the world.", "angle", 0.0)
    pressure_0: float = key("P0: pressure at the surface.", "pressure", 10.1325)
    pressure_1: float = key(
        "P1: with it, pressure is P0 + P1 z + P2 z2; 0: that of a standard ocean at `latitude` (UNESCO 44).",
        "pressure gradient",
        0.0,
        low=0.0,
    )
    pressure_2: float = key("P2: pressure per depth squared.", "pressure curvature", 0.0)
    current: Current = child(Current, "Water flow.")
    tide: Tide = child(Tide, "Level of the water.")
    wind: Wind = child(Wind, "Wind.")
    waves: Waves = child(Waves, "Waves.")
    obstacles: Obstacles = child(Obstacles, "Walls, piers, tunnels.")
    bed: BedConfig = child(BedConfig, "Analytic sea bed.")
    soundings: Soundings | None = child(Soundings, "Sea bed from soundings, instead of <bed>.")
    temperature: TemperatureConfig = child(TemperatureConfig, "Temperature profile.")
    conductivity: ConductivityConfig = child(ConductivityConfig, "Conductivity profile.")
    volume: Volume | None = child(Volume, "Gridded water, instead of the profiles.")
    samples: Samples | None = child(Samples, "Water measured at points, instead of the profiles.")
    scalar: tuple[ScalarConfig, ...] = children(ScalarConfig, "Another quantity of the water; up to four.")
    ground: GroundConfig = child(GroundConfig, "What the bed is made of, for imaging sonars.")
    material: tuple[MaterialConfig, ...] = children(
        MaterialConfig, "A material of your own, for imaging sonars and cameras."
    )
    target: tuple[TargetConfig, ...] = children(TargetConfig, "A small target for imaging sonars.")
    board: tuple[Board, ...] = children(Board, "A flat board with a pattern, for cameras.")
    magnetic: MagneticField = child(MagneticField, "The earth's magnetic field.")
    optics: Optics = child(Optics, "Light and water for cameras.")

    @property
    def density(self) -> float:
        """One for all of the water, kg/m3."""
        return DENSITY if isinstance(self.density_setting, str) else self.density_setting

    @property
    def is_stratified(self) -> bool:
        """Whether buoyancy is by the water of each place."""
        return isinstance(self.density_setting, str)
