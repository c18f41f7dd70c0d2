"""Declarations of the environment: water, bed, flow, wind, waves, tide, obstacles.

This module is part of the configuration model. A configuration file may use any supported unit; the objects contain SI
values and radians.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavesim_sdk.elementary import cos, hypot
from wavesim_world.config.imaging import Board, GroundConfig, MaterialConfig, Optics, TargetConfig
from wavesim_world.config.schema import Vector, child, children, choice, flag, key, key_or_word, place, text

#: mean wind speed in m/s by Beaufort number: the centre of each class
BEAUFORT = (0.15, 0.9, 2.5, 4.5, 6.7, 9.4, 12.3, 15.5, 19.0, 22.6, 26.5, 30.6, 34.0)

#: maximum configurable speed of each component of a flow in m/s, in either direction; it exceeds all currents in the
#: sea
MAX_CURRENT = 20.0


@dataclass(frozen=True)
class Drift:
    """Slowly varying flow: its speed and direction are first-order Gauss-Markov processes within limits."""

    speed: float = key("Mean speed of the slowly varying flow.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    speed_deviation: float = key(
        "Standard deviation of the speed of the slowly varying flow, before its limits are applied.",
        "speed",
        0.0,
        low=0.0,
        high=MAX_CURRENT,
    )
    speed_minimum: float = key("Minimum speed of the slowly varying flow.", "speed", 0.0, low=0.0, high=MAX_CURRENT)
    speed_maximum: float = key("Maximum speed of the slowly varying flow.", "speed", 10.0, low=0.0, high=MAX_CURRENT)
    direction: float = key("Mean direction towards which the slowly varying flow moves.", "angle", 0.0)
    direction_deviation: float = key(
        "Standard deviation of the direction of the slowly varying flow, before its limit is applied.",
        "angle",
        0.0,
        low=0.0,
    )
    direction_range: float = key(
        "Limit of the direction of the flow: the maximum deviation from the mean direction to either side.",
        "angle",
        3.141592653589793,
        low=0.0,
    )
    time_constant: float = key(
        "Time constant of the variations in the speed and direction of the flow.", "time", 600.0, low=0.1
    )


@dataclass(frozen=True)
class Layer:
    """Flow at one depth. Between layers, the flow is interpolated linearly; above the first layer and below the last
    one, it is constant.
    """

    depth: float = key("Depth of this flow layer.", "length", low=0.0)
    north: float = key(
        "North component of the flow velocity at this depth.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT
    )
    east: float = key(
        "East component of the flow velocity at this depth.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT
    )
    down: float = key(
        "Vertical component of the flow velocity at this depth, positive down; negative in upwelling.",
        "speed",
        0.0,
        low=-MAX_CURRENT,
        high=MAX_CURRENT,
    )


@dataclass(frozen=True)
class Current:
    """Water flow that is the same everywhere: the sum of a mean flow and a tidal stream. The speed of the stream is
    amplitude cos(2 pi t / period + phase) along one direction.

    If a drift, layers, or the flow of a <volume> are configured, they are added to this flow. The drift and the tidal
    stream are horizontal. Real water does not flow through its surface or its bed; <layer>s can make the vertical
    component 0 there.
    """

    north: float = key(
        "North component of the mean current velocity.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT
    )
    east: float = key("East component of the mean current velocity.", "speed", 0.0, low=-MAX_CURRENT, high=MAX_CURRENT)
    down: float = key(
        "Vertical component of the mean current velocity, positive down; negative in upwelling.",
        "speed",
        0.0,
        low=-MAX_CURRENT,
        high=MAX_CURRENT,
    )
    tide_amplitude: float = key(
        "Speed amplitude of the tidal stream; 0 m/s = no tidal stream.", "speed", 0.0, low=0.0, high=MAX_CURRENT
    )
    tide_direction: float = key("Direction towards which the tidal stream flows at phase 0.", "angle", 0.0)
    tide_period: float = key("Period of the tidal stream.", "time", 44714.16, low=1.0)
    tide_phase: float = key("Phase of the tidal stream at simulation time 0.", "angle", 0.0)
    drift: Drift | None = child(Drift, "Slowly varying component of the water flow.")
    layer: tuple[Layer, ...] = children(Layer, "Flow at one depth. List the layers in ascending order of depth.")

    @property
    def max_speed(self) -> float:
        """Speed in m/s that this flow seldom exceeds. It is the sum of the speeds of all flow components. The drift
        contributes its mean plus three standard deviations.
        """
        d = self.drift
        drift = min(d.speed + 3.0 * d.speed_deviation, d.speed_maximum) if d is not None else 0.0
        layers = max((_speed(k) for k in self.layer), default=0.0)
        return _speed(self) + self.tide_amplitude + drift + layers


def _speed(flow: Current | Layer) -> float:
    return float(hypot(hypot(flow.north, flow.east), flow.down))


@dataclass(frozen=True)
class Tide:
    """Height of the water level above its mean: amplitude cos(2 pi t / period + phase)."""

    amplitude: float = key(
        "Amplitude of the tide: half the difference between high and low water.", "length", 0.0, low=0.0
    )
    period: float = key("Period of the tide, from one high water to the next.", "time", 44714.16, low=1.0)
    phase: float = key("Phase of the tide at simulation time 0.", "angle", 0.0)

    def level(self, time_s: float) -> float:
        """Return the height of the water level above its mean, in metres."""
        return self.amplitude * float(cos(2.0 * math.pi * time_s / self.period + self.phase))


@dataclass(frozen=True)
class Wind:
    """Wind as the sum of a mean, a slowly varying component (Gauss-Markov), and gusts. It is the same at all horizontal
    positions.

    The mean wind follows a logarithmic height profile that depends on the surface drag coefficient. Gusts follow the
    Harris spectrum 4 k L U10 / (2 + (f L / U10)^2)^(5/6).
    """

    speed: float = key("Mean wind speed U10 at a height of 10 m.", "speed", 0.0, low=0.0, high=100.0)
    direction: float = key("Direction from which the wind blows.", "angle", 0.0)
    beaufort: int = key(
        "Beaufort number of the mean wind, instead of `speed`; -1 = use `speed`.",
        default=-1,
        low=-1,
        high=12,
        integer=True,
    )
    drag: float = key(
        "Drag coefficient k of the sea surface for the wind profile and the gusts.", default=0.003, low=1e-4, high=0.05
    )
    slow_deviation: float = key(
        "Standard deviation of the slowly varying component of the wind speed U10.", "speed", 0.0, low=0.0
    )
    slow_time: float = key("Time constant of the slowly varying component of the wind speed.", "time", 300.0, low=0.1)
    minimum: float = key(
        "Minimum wind speed U10, excluding gusts: the mean plus the slowly varying component never falls below it.",
        "speed",
        0.0,
        low=0.0,
    )
    maximum: float = key(
        "Maximum wind speed U10, excluding gusts: the mean plus the slowly varying component never exceeds it.",
        "speed",
        100.0,
        low=0.0,
    )
    gusts: int = key(
        "Number of harmonic components that make up the gusts; 0 = no gusts.", default=0, low=0, high=500, integer=True
    )
    gust_length: float = key("Length scale L of the gust spectrum.", "length", 1800.0, low=1.0)
    air_density: float = key("Density of the air, for wind forces.", "density", 1.25, low=0.1)

    @property
    def mean(self) -> float:
        """Mean wind speed U10 in m/s."""
        return BEAUFORT[self.beaufort] if self.beaufort >= 0 else self.speed


@dataclass(frozen=True)
class Waves:
    """Waves as a sum of components that have random phases and follow the dispersion relation w^2 = g k tanh(k h). The
    motion of the water below the waves follows Airy's theory.

    Spectrum ittc (Bretschneider, ISSC): S(w) = A w^-5 exp(-B w^-4), with A = 0.3125 Hs^2 wp^4 and B = 1.25 wp^4.
    Spectrum jonswap: the ittc spectrum times gamma^exp(-((w/wp - 1)/s)^2/2), normalised to the same Hs. The component
    frequencies divide the spectrum into bands of equal energy.
    """

    height: float = key(
        "Significant wave height Hs. Below 1e-9 m, there are no waves.", "length", 0.0, low=0.0, high=30.0
    )
    peak: float = key(
        "Angular frequency wp at the peak of the wave spectrum.", "angular rate", 0.6, low=0.05, high=20.0
    )
    direction: float = key("Direction towards which the waves travel.", "angle", 0.0)
    beaufort: int = key(
        "Beaufort number that determines the sea state, instead of `height` and `peak`; -1 = use `height` and `peak`.",
        default=-1,
        low=-1,
        high=12,
        integer=True,
    )
    spectrum: str = choice("Shape of the wave spectrum: ittc (Bretschneider) or jonswap.", ("ittc", "jonswap"), "ittc")
    gamma: float = key(
        "Peak enhancement factor of the jonswap spectrum. The ittc spectrum does not use it.",
        default=3.3,
        low=1.0,
        high=10.0,
    )
    spreading: float = key(
        "Exponent s of the directional spreading cos^2s((b - b0)/2) of the waves; 0 = long-crested waves.",
        default=0.0,
        low=0.0,
        high=200.0,
    )
    components: int = key(
        "Number of harmonic components in the waves. More components require more computing time.",
        default=60,
        low=1,
        high=1000,
        integer=True,
    )
    depth: float = key(
        "Water depth h for the wave motion, the same everywhere. 0 m = depth of the configured bed. For an "
        "analytic bed, this is the depth at the origin; for soundings, it is their mean.",
        "length",
        0.0,
        low=0.0,
    )


@dataclass(frozen=True)
class Block:
    """Box-shaped obstacle such as a wall, a quay or a block. It stands upright, with any heading."""

    position: Vector = key("Position of the block's centre (north, east, down).", "length", count=3)
    size: Vector = key("Length (along the heading), width and height of the block.", "length", count=3, low=1e-3)
    heading: float = key("Direction of the long axis (length) of the block; 0 deg = north.", "angle", 0.0)
    material: str = text("Name of the block's material, for imaging sonars and cameras.", "concrete")
    category: str = text("Category of the block in data sets for machine learning. Default: `block`.", "")
    place: str = place()


@dataclass(frozen=True)
class Pier:
    """Cylindrical obstacle: an upright round post, such as a pile."""

    position: Vector = key("Position of the post's centre (north, east, down).", "length", count=3)
    radius: float = key("Radius of the post.", "length", low=1e-3)
    height: float = key("Height of the post, from its lower to its upper end.", "length", low=1e-3)
    material: str = text("Name of the post's material, for imaging sonars and cameras.", "concrete")
    category: str = text("Category of the post in data sets for machine learning. Default: `pier`.", "")
    place: str = place()


@dataclass(frozen=True)
class Tunnel:
    """Straight horizontal tunnel: four walls around an inner space of the configured width and height."""

    position: Vector = key(
        "Position of the centre of the space inside the tunnel (north, east, down).", "length", count=3
    )
    length: float = key("Length of the tunnel along its heading.", "length", low=1e-2)
    width: float = key("Inner width of the tunnel, between its walls.", "length", low=1e-2)
    height: float = key("Inner height of the tunnel, between floor and ceiling.", "length", low=1e-2)
    thickness: float = key("Thickness of the walls, floor and ceiling of the tunnel.", "length", 0.5, low=1e-3)
    heading: float = key("Direction of the tunnel axis; 0 deg = north.", "angle", 0.0)
    material: str = text("Name of the tunnel's material, for imaging sonars and cameras.", "concrete")
    category: str = text("Category of the tunnel in data sets for machine learning. Default: `tunnel`.", "")
    place: str = place()


@dataclass(frozen=True)
class Mesh:
    """Obstacle from a triangle mesh file (STL, PLY, OBJ, OFF, GLB), such as a wreck, a rock or a pontoon.

    `attitude` rotates the axes of the file to north, east, down. For a file whose z axis points up, use attitude="180 0
    0 deg".
    """

    file: str = text("Path of the mesh file, relative to the configuration file.")
    position: Vector = key(
        "Position of the origin of the mesh file in the world frame (north, east, down).", "length", count=3
    )
    attitude: Vector = key(
        "Roll, pitch and yaw that rotate the axes of the mesh file to north, east, down.",
        "angle",
        (0.0, 0.0, 0.0),
        count=3,
    )
    scale: float = key(
        "Length in metres of one unit of the mesh file: 0.001 for a file in millimetres.",
        default=1.0,
        low=1e-6,
        high=1e6,
    )
    material: str = text("Name of the mesh's material, for imaging sonars and cameras.", "steel")
    category: str = text(
        "Category of the mesh in data sets for machine learning. Default: the name of the mesh file without its ending.",
        "",
    )
    place: str = place()


@dataclass(frozen=True)
class Obstacles:
    """Fixed obstacles. Vehicles collide with them, beams detect them, and sound does not pass through them."""

    block: tuple[Block, ...] = children(Block, "Box-shaped obstacle.")
    pier: tuple[Pier, ...] = children(Pier, "Upright round post.")
    tunnel: tuple[Tunnel, ...] = children(Tunnel, "Straight horizontal tunnel.")
    mesh: tuple[Mesh, ...] = children(Mesh, "Obstacle from a triangle mesh file.")


@dataclass(frozen=True)
class Bump:
    """Hill or hole in the bed: h exp(-(a^2 dx^2 + b^2 dy^2)) is added to the depth."""

    height: float = key(
        "Change h in depth at the centre of the bump: negative for a hill, positive for a hole.", "length"
    )
    north: float = key("North coordinate of the bump's centre.", "length")
    east: float = key("East coordinate of the bump's centre.", "length")
    alpha: float = key(
        "Inverse width of the bump in the north direction (a in the formula). A larger value gives a narrower bump.",
        "inverse length",
        low=0.0,
    )
    beta: float = key(
        "Inverse width of the bump in the east direction (b in the formula). A larger value gives a narrower bump.",
        "inverse length",
        low=0.0,
    )


@dataclass(frozen=True)
class BedConfig:
    """Analytic sea bed of depth D0 + D1 x + D2 y + bumps, with x north and y east of the origin."""

    depth: float = key("Depth D0 of the sea bed at the origin of the world.", "length", 100.0, low=0.0)
    slope_north: float = key(
        "Slope D1 of the sea bed: increase in depth per metre to the north, in metres.", default=0.0
    )
    slope_east: float = key("Slope D2 of the sea bed: increase in depth per metre to the east, in metres.", default=0.0)
    bump: tuple[Bump, ...] = children(Bump, "Hill or hole in the sea bed.")


@dataclass(frozen=True)
class Soundings:
    """Sea bed from a file: soundings, or a regular grid (ESRI ASCII with the y axis pointing north).

    Soundings are lines `north east depth` in metres. They may follow the text `Data =`, as DUNE writes them. Between
    the points, the bed is interpolated linearly on Delaunay triangles. Outside the survey, the bed has the depth of the
    nearest point.
    """

    file: str = text("Path of the soundings file, relative to the configuration file.")
    north: float = key("North coordinate of the soundings file's origin, in the world frame.", "length", 0.0)
    east: float = key("East coordinate of the soundings file's origin, in the world frame.", "length", 0.0)
    heights: bool = flag(
        "Type of the values in the file. yes: heights relative to the water level, so that the values below it are "
        "negative. no: depths.",
        False,
    )


@dataclass(frozen=True)
class Spot:
    """Local deviation of temperature or conductivity: D exp(-(a^2 dx^2 + b^2 dy^2 + g^2 dz^2)) around a point."""

    deviation: float = key(
        "Deviation D at the centre of the spot, in the unit of the profile: C for temperature, S/m for conductivity."
    )
    position: Vector = key("Position of the spot's centre (north, east, down).", "length", count=3)
    alpha: float = key(
        "Inverse width of the spot in the north direction (a in the formula). A larger value gives a narrower spot.",
        "inverse length",
        low=0.0,
    )
    beta: float = key(
        "Inverse width of the spot in the east direction (b in the formula). A larger value gives a narrower spot.",
        "inverse length",
        low=0.0,
    )
    gamma: float = key(
        "Inverse width of the spot in the vertical direction (g in the formula). A larger value gives a narrower spot.",
        "inverse length",
        low=0.0,
    )


@dataclass(frozen=True)
class TemperatureConfig:
    """Temperature profile. The temperature is constant down to the depth `knee_1`. It has one gradient between the
    depths `knee_1` and `knee_2`, and another one below `knee_2`. Local deviations are added.
    """

    surface: float = key("Water temperature at the surface.", "temperature", 15.0, low=-2.0, high=40.0)
    knee_1: float = key(
        "Depth of the first knee of the temperature profile. Above it, the temperature is constant.",
        "length",
        10.0,
        low=0.0,
    )
    knee_2: float = key("Depth of the second knee of the temperature profile.", "length", 50.0, low=0.0)
    gradient_1: float = key(
        "Change in temperature per metre of depth between the two knees.", "temperature gradient", -0.05
    )
    gradient_2: float = key(
        "Change in temperature per metre of depth below the second knee.", "temperature gradient", -0.005
    )
    spot: tuple[Spot, ...] = children(Spot, "Local deviation of the temperature.")


@dataclass(frozen=True)
class ConductivityConfig:
    """Conductivity profile with the same shape as the temperature profile. By default, its gradients have the opposite
    sign.
    """

    surface: float = key("Conductivity of the water at the surface.", "conductivity", 4.2, low=0.0, high=10.0)
    knee_1: float = key(
        "Depth of the first knee of the conductivity profile. Above it, the conductivity is constant.",
        "length",
        10.0,
        low=0.0,
    )
    knee_2: float = key("Depth of the second knee of the conductivity profile.", "length", 50.0, low=0.0)
    gradient_1: float = key(
        "Change in conductivity per metre of depth between the two knees.", "conductivity gradient", 0.001
    )
    gradient_2: float = key(
        "Change in conductivity per metre of depth below the second knee.", "conductivity gradient", 0.0001
    )
    spot: tuple[Spot, ...] = children(Spot, "Local deviation of the conductivity.")


@dataclass(frozen=True)
class Volume:
    """Gridded water properties from a CSV file. They replace the temperature and conductivity profiles, and their flow
    is added to the current.

    The columns are latitude, longitude, depth, temperature, salinity, eastward and northward velocity, and, if the
    field varies in time, a time column.
    """

    file: str = text("Path of the CSV file with gridded water properties, relative to the configuration file.")
    latitude: float = key("Latitude in the CSV file that corresponds to the origin of the world.", "angle")
    longitude: float = key("Longitude in the CSV file that corresponds to the origin of the world.", "angle")


@dataclass(frozen=True)
class SampleFile:
    """File with the values of one quantity at one time, in DUNE's format.

    The lines `Latitude (degrees) = ...` and `Longitude (degrees) = ...` state the origin of the file. After the text
    `Data =`, each line contains the numbers x, y, z and d, separated by commas. x, y and z are the distances in metres
    north of, east of and below the origin. d is the value: in C for the temperature, in psu for the salinity, or `nan`
    for a missing value.
    """

    file: str = text("Path of the file, relative to the configuration file.")
    time: float = key("Simulation time of the values in the file.", "time", 0.0)
    place: str = place()


@dataclass(frozen=True)
class Samples:
    """Temperature and salinity measured at points in space and time. They replace the temperature and conductivity
    profiles.

    The samples come from one CSV file, or from files in DUNE's format: one <temperature> and one <salinity> for each
    time. The CSV file has the same columns as a <volume> file, except the flow columns. The points may be scattered
    arbitrarily. The value at a position is the mean of the points within a radius, weighted by inverse distance. If
    there is no point within the radius, the nearest point gives the value. Values are interpolated linearly in time,
    and are constant before the first and after the last time.
    """

    latitude: float = key("Latitude in the files that corresponds to the origin of the world.", "angle")
    longitude: float = key("Longitude in the files that corresponds to the origin of the world.", "angle")
    file: str = text("Path of the CSV file with water samples, relative to the configuration file.", "")
    temperature: tuple[SampleFile, ...] = children(
        SampleFile, "Temperature at one time. List the files in ascending order of time."
    )
    salinity: tuple[SampleFile, ...] = children(
        SampleFile, "Salinity at one time. List the files in ascending order of time."
    )
    radius: float = key(
        "Radius of influence of a sample. Samples beyond the radius have no weight. If there is no sample within the "
        "radius, the nearest sample applies.",
        "length",
        500.0,
        low=1e-3,
    )
    power: float = key(
        "Exponent of the weights of the samples: weight = 1 / distance^power. DUNE uses 1.",
        default=2.0,
        low=0.5,
        high=8.0,
    )


@dataclass(frozen=True)
class Gaussian:
    """Gaussian patch of a scalar quantity: peak exp(-(north'^2 / (2 sn^2) + east'^2 / (2 se^2))) around a point, the
    same at all depths.
    """

    peak: float = key("Value of the quantity at the centre of the patch.")
    north: float = key("North coordinate of the patch's centre.", "length")
    east: float = key("East coordinate of the patch's centre.", "length")
    sigma_north: float = key("Standard deviation sn of the patch in the north direction.", "length", low=1e-3)
    sigma_east: float = key("Standard deviation se of the patch in the east direction.", "length", low=1e-3)


@dataclass(frozen=True)
class ScalarConfig:
    """Scalar quantity in the water, measured by the `scalar` sensor. It is given as a sum of Gaussian patches, or as a
    column of the <volume>.
    """

    name: str = text("Name of the scalar quantity.")
    column: str = text(
        "Name of the column in the <volume> file that contains the quantity. Empty: the quantity is the sum of its "
        "Gaussian patches.",
        "",
    )
    above: float = key(
        "At depths shallower than this, the quantity is absent and the sensor reports -1.", "length", 0.0
    )
    gaussian: tuple[Gaussian, ...] = children(
        Gaussian, "One Gaussian patch of the quantity. The values of overlapping patches are added."
    )
    place: str = place()


@dataclass(frozen=True)
class MagneticField:
    """Magnetic field of the earth, the same everywhere. It is computed from the World Magnetic Model at the origin,
    unless `field` is given.
    """

    year: float = key(
        "Year for which the World Magnetic Model (WMM2025) is evaluated.", default=2026.0, low=2025.0, high=2030.0
    )
    field: Vector = key(
        "North, east and down components of the magnetic field. They replace the components from the World Magnetic "
        "Model. 0 0 "
        "0 = not used.",
        "magnetic field",
        (0.0, 0.0, 0.0),
        count=3,
        low=-1e-3,
        high=1e-3,
    )


DENSITY = 1025.0  #: default density of the water, kg/m3


@dataclass(frozen=True)
class World:
    """Environment: sea water, sea bed, flow, wind, waves, obstacles."""

    density_setting: float | str = key_or_word(
        "water",
        "Density of the water. `water`: buoyancy uses the local density, computed from temperature, conductivity "
        "and pressure (EOS-80), as a CTD at that position would measure it; everything else uses 1025 kg/m3.",
        "density",
        DENSITY,
        low=1.0,
        name="density",
    )
    gravity: float = key("Acceleration of gravity.", "acceleration", 9.81, low=0.0)
    latitude: float = key("Latitude of the world's origin.", "angle", 0.0)
    longitude: float = key("Longitude of the world's origin.", "angle", 0.0)
    pressure_0: float = key("Pressure P0 at the water surface.", "pressure", 10.1325)
    pressure_1: float = key(
        "Linear coefficient P1 of the pressure as a function of depth. If P1 is not 0, the pressure at depth z is P0 "
        "+ P1 z + P2 z^2. If P1 is 0, the pressure of a standard ocean at `latitude` (UNESCO 44) is used.",
        "pressure gradient",
        0.0,
        low=0.0,
    )
    pressure_2: float = key(
        "Quadratic coefficient P2 of the pressure as a function of depth. It is used only if `pressure_1` is not 0.",
        "pressure curvature",
        0.0,
    )
    current: Current = child(Current, "Water flow.")
    tide: Tide = child(Tide, "Tide: the water level as a function of time.")
    wind: Wind = child(Wind, "Wind above the water.")
    waves: Waves = child(Waves, "Waves of the sea surface.")
    obstacles: Obstacles = child(Obstacles, "Fixed obstacles: walls, piers, tunnels, meshes.")
    bed: BedConfig = child(BedConfig, "Sea bed as an analytic function.")
    soundings: Soundings | None = child(Soundings, "Sea bed from a file of soundings. It replaces <bed>.")
    temperature: TemperatureConfig = child(TemperatureConfig, "Temperature profile of the water.")
    conductivity: ConductivityConfig = child(ConductivityConfig, "Conductivity profile of the water.")
    volume: Volume | None = child(
        Volume, "Gridded water properties from a file. They replace the temperature and conductivity profiles."
    )
    samples: Samples | None = child(
        Samples,
        "Water properties measured at points, from a file. They replace the temperature and conductivity profiles.",
    )
    scalar: tuple[ScalarConfig, ...] = children(
        ScalarConfig,
        "Additional scalar quantity in the water, measured by the `scalar` sensor. A world may have up to four.",
    )
    ground: GroundConfig = child(GroundConfig, "Materials of the sea bed, for imaging sonars and cameras.")
    material: tuple[MaterialConfig, ...] = children(
        MaterialConfig, "Additional material, for imaging sonars and cameras."
    )
    target: tuple[TargetConfig, ...] = children(TargetConfig, "Small target for imaging sonars.")
    board: tuple[Board, ...] = children(Board, "Flat board with a pattern, for cameras.")
    magnetic: MagneticField = child(MagneticField, "Magnetic field of the earth.")
    optics: Optics = child(Optics, "Light and optical properties of the water, for cameras.")

    @property
    def density(self) -> float:
        """Uniform density of the water, kg/m3."""
        return DENSITY if isinstance(self.density_setting, str) else self.density_setting

    @property
    def is_stratified(self) -> bool:
        """Whether buoyancy uses the local density of the water."""
        return isinstance(self.density_setting, str)
