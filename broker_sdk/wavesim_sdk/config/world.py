"""Declare the sea: water, bed, flow, wind, waves, tide, obstacles.

Part of the configuration model. The file may use any unit of a quantity; the values here are SI and radians.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavesim_sdk.config.imaging import Board, GroundConfig, MaterialConfig, Optics, TargetConfig
from wavesim_sdk.config.schema import Vector, child, children, choice, flag, key, key_or_word, place, text
from wavesim_sdk.elementary import cos, hypot

#: mean wind by Beaufort number: centre of the class, m/s
BEAUFORT = (0.15, 0.9, 2.5, 4.5, 6.7, 9.4, 12.3, 15.5, 19.0, 22.6, 26.5, 30.6, 34.0)

#: maximum speed of each part of a flow in either direction, m/s; higher than any current in the sea
MAX_CURRENT = 20.0


@dataclass(frozen=True)
class Drift:
    """Slowly varying flow whose speed and direction are first-order Gauss-Markov processes within limits."""

    speed: float = key("Mean speed.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    speed_deviation: float = key(
        "Standard deviation of the speed, before limiting.", "speed", 0.0, low=0.0, high=MAX_CURRENT
    )
    speed_minimum: float = key("Minimum speed.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    speed_maximum: float = key("Maximum speed.", "speed", 10.0, low=0.0, high=MAX_CURRENT)
    direction: float = key("Mean direction towards which the water flows.", "angle", 0.0)
    direction_deviation: float = key("Standard deviation of the direction, before limiting.", "angle", 0.0, low=0.0)
    direction_range: float = key(
        "Maximum deviation of the direction to either side.", "angle", 3.141592653589793, low=0.0
    )
    time_constant: float = key("Time constant of both processes.", "time", 600.0, low=0.1)


@dataclass(frozen=True)
class Layer:
    """Flow at one depth. It is linear between layers and constant above the first and below the last."""

    depth: float = key("Depth.", "length", low=0.0)
    north: float = key("Flow to the north.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)
    east: float = key("Flow to the east.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)


@dataclass(frozen=True)
class Current:
    """Water flow, the same everywhere: mean + amplitude cos(2 pi t / period + phase) along a direction.

    The drift, the layers and the flow of a <volume> are added to it, where given.
    """

    north: float = key("Mean flow to the north.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)
    east: float = key("Mean flow to the east.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)
    tide_amplitude: float = key("Amplitude of the tidal stream.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    tide_direction: float = key("Direction towards which the tidal stream flows at phase 0.", "angle", 0.0)
    tide_period: float = key("Period of the tidal stream.", "time", 44714.16, low=1.0)
    tide_phase: float = key("Phase of the tidal stream at the start.", "angle", 0.0)
    drift: Drift | None = child(Drift, "Slowly varying part of the flow.")
    layer: tuple[Layer, ...] = children(Layer, "Flow at one depth; list the layers from the top.")

    @property
    def max_speed(self) -> float:
        """Speed in m/s that this flow rarely exceeds. It includes three standard deviations of the drift."""
        d = self.drift
        drift = min(d.speed + 3.0 * d.speed_deviation, d.speed_maximum) if d is not None else 0.0
        layers = max((float(hypot(k.north, k.east)) for k in self.layer), default=0.0)
        return float(hypot(self.north, self.east)) + self.tide_amplitude + drift + layers


@dataclass(frozen=True)
class Tide:
    """Water level: amplitude cos(2 pi t / period + phase) above the mean."""

    amplitude: float = key("Amplitude of the water level.", "length", 0.0, low=0.0)
    period: float = key("Period of the tide.", "time", 44714.16, low=1.0)
    phase: float = key("Phase at the start.", "angle", 0.0)

    def level(self, time_s: float) -> float:
        """Return the water level in metres above the mean."""
        return self.amplitude * float(cos(2.0 * math.pi * time_s / self.period + self.phase))


@dataclass(frozen=True)
class Wind:
    """Wind, the same everywhere in the horizontal: a mean, a slow Gauss-Markov part, and gusts.

    The mean depends on height by a logarithmic law from the surface drag coefficient. Gusts follow the Harris
    spectrum 4 k L U10 / (2 + (f L / U10)^2)^(5/6).
    """

    speed: float = key("Mean speed U10 at a height of 10 m.", "speed", 0.0, low=0.0, high=100.0)
    direction: float = key("Direction from which the wind blows.", "angle", 0.0)
    beaufort: int = key(
        "Beaufort number, instead of `speed`; -1 = not used.", default=-1, low=-1, high=12, integer=True
    )
    drag: float = key("Surface drag coefficient k.", default=0.003, low=1e-4, high=0.05)
    slow_deviation: float = key("Standard deviation of the slow part of U10.", "speed", 0.0, low=0.0)
    slow_time: float = key("Time constant of the slow part.", "time", 300.0, low=0.1)
    minimum: float = key("Minimum of the mean and slow parts of U10 together.", "speed", 0.0, low=0.0)
    maximum: float = key("Maximum of the mean and slow parts of U10 together.", "speed", 100.0, low=0.0)
    gusts: int = key("Number of gust components; 0 = no gusts.", default=0, low=0, high=500, integer=True)
    gust_length: float = key("Length scale L of the gusts.", "length", 1800.0, low=1.0)
    air_density: float = key("Density of the air.", "density", 1.25, low=0.1)

    @property
    def mean(self) -> float:
        """Mean wind speed U10 in m/s."""
        return BEAUFORT[self.beaufort] if self.beaufort >= 0 else self.speed


@dataclass(frozen=True)
class Waves:
    """Waves as a sum of components with random phases, w^2 = g k tanh(k h). The water below them moves by Airy's
    theory.

    ittc: S(w) = A/w^5 exp(-B/w^4), A = 0.3125 Hs^2 wp^4, B = 1.25 wp^4 (Bretschneider, ISSC). jonswap: the same times
    gamma^exp(-((w/wp - 1)/s)^2/2), normalised to the same Hs. The frequencies divide the spectrum into parts of equal
    energy.
    """

    height: float = key("Significant wave height Hs.", "length", 0.0, low=0.0, high=30.0)
    peak: float = key("Peak frequency wp.", "angular rate", 0.6, low=0.05, high=20.0)
    direction: float = key("Direction towards which the waves travel.", "angle", 0.0)
    beaufort: int = key(
        "Beaufort number, instead of `height` and `peak`; -1 = not used.", default=-1, low=-1, high=12, integer=True
    )
    spectrum: str = choice("Shape of the spectrum.", ("ittc", "jonswap"), "ittc")
    gamma: float = key("Peak enhancement factor (jonswap).", default=3.3, low=1.0, high=10.0)
    spreading: float = key(
        "Exponent s of the directional spreading cos^2s((b - b0)/2); 0 = long-crested waves.",
        default=0.0,
        low=0.0,
        high=200.0,
    )
    components: int = key("Number of wave components.", default=60, low=1, high=1000, integer=True)
    depth: float = key(
        "Water depth h for the wave motion, the same everywhere. 0 m = that of the bed: the depth at the origin, or "
        "the mean of the soundings.",
        "length",
        0.0,
        low=0.0,
    )


@dataclass(frozen=True)
class Block:
    """Box-shaped obstacle such as a wall, a quay or a block. It is upright and may be turned about the vertical."""

    position: Vector = key("Position of the centre (north, east, down).", "length", count=3)
    size: Vector = key("Length (along the heading), width, height.", "length", count=3, low=1e-3)
    heading: float = key("Direction of the length.", "angle", 0.0)
    material: str = text("Material, for imaging sonars.", "concrete")
    place: str = place()


@dataclass(frozen=True)
class Pier:
    """Cylindrical obstacle: an upright round post."""

    position: Vector = key("Position of the centre (north, east, down).", "length", count=3)
    radius: float = key("Radius.", "length", low=1e-3)
    height: float = key("Height.", "length", low=1e-3)
    material: str = text("Material, for imaging sonars.", "concrete")
    place: str = place()


@dataclass(frozen=True)
class Tunnel:
    """Straight horizontal tunnel: four walls around a clear width and height."""

    position: Vector = key("Centre of the clear space (north, east, down).", "length", count=3)
    length: float = key("Length along the heading.", "length", low=1e-2)
    width: float = key("Clear width.", "length", low=1e-2)
    height: float = key("Clear height.", "length", low=1e-2)
    thickness: float = key("Thickness of the walls.", "length", 0.5, low=1e-3)
    heading: float = key("Direction of the length.", "angle", 0.0)
    material: str = text("Material, for imaging sonars.", "concrete")
    place: str = place()


@dataclass(frozen=True)
class Mesh:
    """Obstacle from a file of triangles (STL, PLY, OBJ, OFF, GLB), such as a wreck, a rock or a pontoon.

    `attitude` turns the axes of the file to north, east, down. A model with z up needs attitude="180 0 0 deg".
    """

    file: str = text("Path of the file, relative to the configuration file.")
    position: Vector = key("Position of the file's origin (north, east, down).", "length", count=3)
    attitude: Vector = key("Roll, pitch, yaw of the mesh.", "angle", (0.0, 0.0, 0.0), count=3)
    scale: float = key("Metres per unit of length in the file.", default=1.0, low=1e-6, high=1e6)
    material: str = text("Material, for imaging sonars.", "steel")
    place: str = place()


@dataclass(frozen=True)
class Obstacles:
    """Fixed obstacles. Vehicles collide with them, beams detect them, and they block sound."""

    block: tuple[Block, ...] = children(Block, "A box-shaped obstacle.")
    pier: tuple[Pier, ...] = children(Pier, "A round post.")
    tunnel: tuple[Tunnel, ...] = children(Tunnel, "A tunnel.")
    mesh: tuple[Mesh, ...] = children(Mesh, "An obstacle of triangles from a file.")


@dataclass(frozen=True)
class Bump:
    """Hill or hole in the bed: h exp(-(a^2 dx^2 + b^2 dy^2)) is added to the depth."""

    height: float = key("Change h of the depth: negative for a hill, positive for a hole.", "length")
    north: float = key("North coordinate of the centre.", "length")
    east: float = key("East coordinate of the centre.", "length")
    alpha: float = key("Inverse width a along north; a larger value gives a narrower bump.", "inverse length", low=0.0)
    beta: float = key("Inverse width b along east; a larger value gives a narrower bump.", "inverse length", low=0.0)


@dataclass(frozen=True)
class BedConfig:
    """Analytic sea bed with the depth D0 + D1 x + D2 y + bumps."""

    depth: float = key("Depth D0 at the origin.", "length", 100.0, low=0.0)
    slope_north: float = key("Slope D1: metres of depth per metre north.", default=0.0)
    slope_east: float = key("Slope D2: metres of depth per metre east.", default=0.0)
    bump: tuple[Bump, ...] = children(Bump, "A hill or a hole.")


@dataclass(frozen=True)
class Soundings:
    """Sea bed from a file: soundings, or a regular grid (ESRI ASCII with its y axis to the north).

    Soundings are lines `north east depth` in metres, alone or after `Data =` as DUNE writes them. The bed is linear
    between points (Delaunay triangles). Outside the survey it has the depth of the nearest point.
    """

    file: str = text("Path of the file, relative to the configuration file.")
    north: float = key("North coordinate of the file's origin in this world.", "length", 0.0)
    east: float = key("East coordinate of the file's origin in this world.", "length", 0.0)
    heights: bool = flag("Whether the file holds heights above the water (negative below it) instead of depths.", False)


@dataclass(frozen=True)
class Spot:
    """Local deviation D exp(-(a^2 dx^2 + b^2 dy^2 + g^2 dz^2)) around a point."""

    deviation: float = key("Deviation D, in the unit of the field (C or S/m).")
    position: Vector = key("Position of the centre (north, east, down).", "length", count=3)
    alpha: float = key("Inverse width a along north; a larger value gives a narrower spot.", "inverse length", low=0.0)
    beta: float = key("Inverse width b along east; a larger value gives a narrower spot.", "inverse length", low=0.0)
    gamma: float = key("Inverse width g along depth; a larger value gives a narrower spot.", "inverse length", low=0.0)


@dataclass(frozen=True)
class TemperatureConfig:
    """Temperature profile: constant down to knee_1, one gradient down to knee_2, another below it, plus local
    deviations.
    """

    surface: float = key("Temperature at the surface.", "temperature", 15.0, low=-2.0, high=40.0)
    knee_1: float = key("Depth of the first knee.", "length", 10.0, low=0.0)
    knee_2: float = key("Depth of the second knee.", "length", 50.0, low=0.0)
    gradient_1: float = key("Change per metre between the knees.", "temperature gradient", -0.05)
    gradient_2: float = key("Change per metre below the second knee.", "temperature gradient", -0.005)
    spot: tuple[Spot, ...] = children(Spot, "A local deviation.")


@dataclass(frozen=True)
class ConductivityConfig:
    """Conductivity profile of the same shape as the temperature profile, with gradients of the opposite sign."""

    surface: float = key("Conductivity at the surface.", "conductivity", 4.2, low=0.0, high=10.0)
    knee_1: float = key("Depth of the first knee.", "length", 10.0, low=0.0)
    knee_2: float = key("Depth of the second knee.", "length", 50.0, low=0.0)
    gradient_1: float = key("Change per metre between the knees.", "conductivity gradient", 0.001)
    gradient_2: float = key("Change per metre below the second knee.", "conductivity gradient", 0.0001)
    spot: tuple[Spot, ...] = children(Spot, "A local deviation.")


@dataclass(frozen=True)
class Volume:
    """Gridded water properties from a CSV file. They replace the temperature and conductivity profiles, and their
    current is added.

    The columns are latitude, longitude, depth, temperature, salinity, eastward and northward velocity, and a time
    column if the field varies.
    """

    file: str = text("Path of the file, relative to the configuration file.")
    latitude: float = key("Latitude of the point of the file that is placed at the origin.", "angle")
    longitude: float = key("Longitude of the point of the file that is placed at the origin.", "angle")


@dataclass(frozen=True)
class Samples:
    """Temperature and salinity measured at points in space and time, from a CSV file. They replace the profiles.

    The file has the columns of a volume without the flow; its points may lie anywhere. Values are weighted by inverse
    distance within a radius, or taken from the nearest point if there is none within it. They are linear between
    times, and constant before the first and after the last.
    """

    file: str = text("Path of the file, relative to the configuration file.")
    latitude: float = key("Latitude of the point that is placed at the origin.", "angle")
    longitude: float = key("Longitude of the point that is placed at the origin.", "angle")
    radius: float = key("Radius of influence. Points farther away have no weight.", "length", 500.0, low=1e-3)
    power: float = key("Exponent of the weights: weight = 1 / distance^power.", default=2.0, low=0.5, high=8.0)


@dataclass(frozen=True)
class Gaussian:
    """Cloud with the value peak exp(-(north'^2 / (2 sn^2) + east'^2 / (2 se^2))) around a point, the same at all
    depths.
    """

    peak: float = key("Value at the centre.")
    north: float = key("North coordinate of the centre.", "length")
    east: float = key("East coordinate of the centre.", "length")
    sigma_north: float = key("Standard deviation sn along north.", "length", low=1e-3)
    sigma_east: float = key("Standard deviation se along east.", "length", low=1e-3)


@dataclass(frozen=True)
class ScalarConfig:
    """Another quantity of the water for the sensor `scalar`: a sum of clouds, or a column of the <volume>."""

    name: str = text("Name of the quantity.")
    column: str = text("Column of the file of the <volume>.", "")
    above: float = key("Depth above which the quantity is absent (value -1).", "length", 0.0)
    gaussian: tuple[Gaussian, ...] = children(Gaussian, "A cloud.")
    place: str = place()


@dataclass(frozen=True)
class MagneticField:
    """Magnetic field of the earth, the same everywhere: from the World Magnetic Model at the origin, or as given."""

    year: float = key(
        "Year at which the World Magnetic Model (WMM2025) is evaluated.", default=2026.0, low=2025.0, high=2030.0
    )
    field: Vector = key(
        "North, east and down components. They replace those of the World Magnetic Model.",
        "magnetic field",
        (0.0, 0.0, 0.0),
        count=3,
        low=-1e-3,
        high=1e-3,
    )


DENSITY = 1025.0  #: default density of the water, kg/m3


@dataclass(frozen=True)
class World:
    """Sea water, sea bed and flow."""

    density_setting: float | str = key_or_word(
        "water",
        "Density of the water. `water`: buoyancy uses the local density from temperature, conductivity and pressure "
        "(EOS-80), as a CTD at that position would give it; everything else uses 1025 kg/m3.",
        "density",
        DENSITY,
        low=1.0,
        name="density",
    )
    gravity: float = key("Acceleration of gravity.", "acceleration", 9.81, low=0.0)
    latitude: float = key("Latitude of the origin of the world.", "angle", 0.0)
    longitude: float = key("Longitude of the origin of the world.", "angle", 0.0)
    pressure_0: float = key("Pressure P0 at the surface.", "pressure", 10.1325)
    pressure_1: float = key(
        "Pressure per depth, P1. If it is not 0, the pressure is P0 + P1 z + P2 z2. If it is 0, the pressure is "
        "that of a standard ocean at `latitude` (UNESCO 44).",
        "pressure gradient",
        0.0,
        low=0.0,
    )
    pressure_2: float = key("Pressure per depth squared, P2.", "pressure curvature", 0.0)
    current: Current = child(Current, "Water flow.")
    tide: Tide = child(Tide, "Water level.")
    wind: Wind = child(Wind, "Wind.")
    waves: Waves = child(Waves, "Waves.")
    obstacles: Obstacles = child(Obstacles, "Walls, piers, tunnels, meshes.")
    bed: BedConfig = child(BedConfig, "Analytic sea bed.")
    soundings: Soundings | None = child(Soundings, "Sea bed from soundings. It replaces <bed>.")
    temperature: TemperatureConfig = child(TemperatureConfig, "Temperature profile.")
    conductivity: ConductivityConfig = child(ConductivityConfig, "Conductivity profile.")
    volume: Volume | None = child(Volume, "Gridded water. It replaces the profiles.")
    samples: Samples | None = child(Samples, "Water measured at points. It replaces the profiles.")
    scalar: tuple[ScalarConfig, ...] = children(ScalarConfig, "Another quantity of the water; at most four.")
    ground: GroundConfig = child(GroundConfig, "Material of the bed, for imaging sonars.")
    material: tuple[MaterialConfig, ...] = children(
        MaterialConfig, "A material of your own, for imaging sonars and cameras."
    )
    target: tuple[TargetConfig, ...] = children(TargetConfig, "A small target, for imaging sonars.")
    board: tuple[Board, ...] = children(Board, "A flat board with a pattern, for cameras.")
    magnetic: MagneticField = child(MagneticField, "Magnetic field of the earth.")
    optics: Optics = child(Optics, "Light and water for cameras.")

    @property
    def density(self) -> float:
        """Uniform density of the water, kg/m3."""
        return DENSITY if isinstance(self.density_setting, str) else self.density_setting

    @property
    def is_stratified(self) -> bool:
        """Whether buoyancy uses the local density of the water."""
        return isinstance(self.density_setting, str)
