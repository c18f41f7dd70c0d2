"""The configuration model: every element and key of ``config.xml``, declared once.

Units in the file are the user's choice; the values in these objects are SI and radians.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from wavesim_sdk.config.schema import (
    Vector,
    child,
    children,
    choice,
    content,
    flag,
    key,
    place,
    text,
)

# --------------------------------------------------------------------------- models of bodies


@dataclass(frozen=True)
class Box:
    """The body is a box (surface vehicles); its centre is the body's origin."""

    length: float = key("Along the body x axis.", "length", low=1e-3)
    width: float = key("Along the body y axis.", "length", low=1e-3)
    height: float = key("Along the body z axis.", "length", low=1e-3)


@dataclass(frozen=True)
class Cylinder:
    """The body is a cylinder along its x axis (underwater vehicles)."""

    length: float = key("Along the body x axis.", "length", low=1e-3)
    radius: float = key("Of the circular section.", "length", low=1e-3)


@dataclass(frozen=True)
class Sphere:
    """The body is a sphere (buoys)."""

    diameter: float = key("Of the sphere.", "length", low=1e-3)


@dataclass(frozen=True)
class Mass:
    """Mass and centre of mass."""

    value: float = key("Mass of the body.", "mass", low=1e-6)
    centre: Vector = key(
        "Centre of mass from the body's origin (forward, starboard, down).",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )


@dataclass(frozen=True)
class Inertia:
    """Moments of inertia about the centre of mass, in kg m2."""

    xx: float = key("Roll, kg m2.", low=0.0)
    yy: float = key("Pitch, kg m2.", low=0.0)
    zz: float = key("Yaw, kg m2.", low=0.0)
    xy: float = key("Product of inertia (element 1,2 of the matrix), kg m2.", default=0.0)
    xz: float = key("Product of inertia (element 1,3 of the matrix), kg m2.", default=0.0)
    yz: float = key("Product of inertia (element 2,3 of the matrix), kg m2.", default=0.0)


@dataclass(frozen=True)
class Buoyancy:
    """Displaced volume when fully submerged, and where its centre is."""

    volume: float = key("Displaced volume.", "volume", low=0.0)
    centre: Vector = key(
        "Centre of buoyancy of the submerged body, from its origin.",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )


@dataclass(frozen=True)
class Matrix6:
    """A 6x6 matrix in SI units about the body's origin: 36 numbers by rows, or its diagonal."""

    diagonal: Vector = key("The six diagonal elements, all others zero.", default=(), count=6)
    rows: Vector = content("36 numbers, row by row, instead of `diagonal`.", 36)


@dataclass(frozen=True)
class Thruster:
    """A fixed thruster. Force = c1 n + c2 n abs(n) + c3 abs(n) u_a, n the lagged command, u_a the
    water's speed against the thruster along its direction."""

    name: str = text("Name, used in logs.")
    position: Vector = key("Where the force acts.", "length", count=3)
    direction: Vector = key("Direction of positive thrust (made a unit vector).", count=3)
    law: str = choice(
        "Unit of the command: a force in N, or shaft speed in revolutions per second.",
        ("force", "shaft"),
    )
    minimum: float = key("Least command (N or 1/s).")
    maximum: float = key("Greatest command (N or 1/s).")
    lag: float = key("Time constant of the first-order lag; 0 = none.", "time", low=0.0)
    coefficients: Vector = key("c1, c2, c3 of the law above, SI.", default=(1.0, 0.0, 0.0), count=3)


@dataclass(frozen=True)
class Fin:
    """A lifting surface on a turning shaft. Normal force = 1/2 rho A CL_a abs(u) (u d - w_n), u the
    water speed along x and w_n the speed of the fin along its normal."""

    name: str = text("Name, used in logs.")
    position: Vector = key("Centre of pressure.", "length", count=3)
    normal: Vector = key("Direction of the force at a positive angle (made a unit vector).", count=3)
    area: float = key("Planform area.", "area", low=0.0)
    lift_slope: float = key("Slope of the lift coefficient, 1/rad.", low=0.0)
    limit: float = key("Greatest angle to either side.", "angle", low=0.0, high=1.5707963)
    rate: float = key("Greatest angular rate.", "angular rate", low=0.0)
    lag: float = key("Time constant of the servo.", "time", 0.0, low=0.0)
    inflow: bool = flag("no: leave out w_n, for models whose <lift> holds the fins' share already.", True)


@dataclass(frozen=True)
class Transducer:
    """An acoustic transducer and its electronics (spec: the sonar equation's terms)."""

    position: Vector = key("Where it sits on the body.", "length", (0.0, 0.0, 0.0), count=3)
    listen_low: float = key("Lower edge of the receiving band.", "frequency", 20e3, low=1.0)
    listen_high: float = key("Upper edge of the receiving band.", "frequency", 32e3, low=1.0)
    threshold: float = key("Least received level that is detected, re 1 uPa.", "level", 80.0)
    source_level: float = key("Level of its own signals, re 1 uPa at 1 m.", "level", 188.0)
    pulse: float = key("Length of its signals; it is deaf while it sends.", "time", 0.01, low=0.0)
    turn_around: float = key("Time from the arrival of a query to the start of the reply.", "time", 0.015, low=0.0)
    recharge: float = key("After sending, it cannot send for this long.", "time", 1.0, low=0.0)
    deaf_in_recharge: bool = flag("Whether it hears nothing either while it recharges.", False)
    query: float = key("Frequency of queries that it answers; 0 Hz = it never answers.", "frequency", 0.0)
    reply: float = key("Frequency of its replies.", "frequency", 0.0)
    tolerance: float = key("A query may be off by this much.", "frequency", 100.0, low=0.0)
    timing_noise: float = key(
        "Standard deviation of the times it reports (the truth is logged beside).", "time", 0.0, low=0.0
    )
    timing_resolution: float = key("Step of the times it reports; 0 = 1 ns.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class Model:
    """A kind of body: geometry, masses, hydrodynamic coefficients, actuators."""

    name: str = text("Name by which vehicles refer to it.")
    type: str = choice("Client type.", ("surface", "underwater", "buoy"))
    title: str = text("One line for people.", "")
    source: str = text("Where the numbers come from.", "")
    validated: str = text("What the model was compared with, and what not.", "")
    box: Box | None = child(Box, "Geometry of a surface vehicle.")
    cylinder: Cylinder | None = child(Cylinder, "Geometry of an underwater vehicle.")
    sphere: Sphere | None = child(Sphere, "Geometry of a buoy.")
    mass: Mass = child(Mass, "Mass and its centre.", required=True)
    inertia: Inertia = child(Inertia, "Inertia about the centre of mass.", required=True)
    buoyancy: Buoyancy | None = child(Buoyancy, "Absent: the volume of the primitive, at its centre.")
    added_mass: Matrix6 = child(Matrix6, "Added mass M_A (positive).", required=True)
    linear_drag: Matrix6 = child(Matrix6, "Force per velocity, opposing: tau = -D nu_r (positive).", required=True)
    quadratic_drag: Matrix6 = child(Matrix6, "tau = -D (abs(nu_r) nu_r), element by element (positive).", required=True)
    lift: Matrix6 | None = child(Matrix6, "Body lift and cross terms: tau = -L abs(u_r) nu_r.")
    thruster: tuple[Thruster, ...] = children(Thruster, "Up to eight thrusters.")
    fin: tuple[Fin, ...] = children(Fin, "Up to four fins.")
    transducer: Transducer | None = child(Transducer, "The acoustic transducer, if it has one.")
    place: str = place()


# --------------------------------------------------------------------------- the fleet


@dataclass(frozen=True)
class Mooring:
    """An elastic line from the body's origin to an anchor. It pulls, never pushes."""

    anchor: Vector = key("Anchor in the world (north, east, down).", "length", count=3)
    length: float = key("Length without load.", "length", low=0.01)
    stiffness: float = key("Force per stretch.", "stiffness", low=0.0)
    damping: float = key("Force per speed of stretching.", "line damping", 0.0, low=0.0)


@dataclass(frozen=True)
class Waypoint:
    """A point of the mission, for the on-board program."""

    north: float = key("North of the origin.", "length")
    east: float = key("East of the origin.", "length")
    depth: float = key("Depth to hold on the leg that leads here.", "length", 0.0, low=0.0)
    speed: float = key("Speed through water on the leg that leads here.", "speed", 1.0, low=0.0)


@dataclass(frozen=True)
class Program:
    """An on-board program that `wavesim trial` starts in a process of its own."""

    run: str = text("Python file, relative to the configuration file.")
    period: float = key("Lockstep period: the program is asked this often.", "time", 0.1, low=1e-3)
    ping_period: float = key("Interval of acoustic queries; 0 s = none.", "time", 0.0, low=0.0)
    ping_offset: float = key("Time of the first query.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class Body:
    """A vehicle or a buoy of the run."""

    name: str = text("Unique name; a broker joins by it.")
    model: str = text("Name of a model, from this file, an included one or the library.")
    position: Vector = key("Start position (north, east, down).", "length", count=3)
    attitude: Vector = key("Start roll, pitch, heading.", "angle", (0.0, 0.0, 0.0), count=3)
    client: str = choice(
        "none: a body without a broker. optional: appears when its broker joins. required: the same, "
        "and `wavesim trial` waits for it before the start.",
        ("none", "optional", "required"),
        "none",
    )
    truth: str = choice(
        "full: the broker receives the true state. none: only sensors and acoustics.",
        ("full", "none"),
        "full",
    )
    transducer: Transducer | None = child(Transducer, "Replaces the model's transducer.")
    mooring: Mooring | None = child(Mooring, "Line to an anchor.")
    program: Program | None = child(Program, "On-board program.")
    waypoint: tuple[Waypoint, ...] = children(Waypoint, "The mission, in order.")
    place: str = place()


# --------------------------------------------------------------------------- the world


@dataclass(frozen=True)
class Time:
    """The simulation timer."""

    step: float = key("Length of a tick.", "time", 0.004, low=1e-4, high=0.1)
    duration: float = key("The run ends by itself here; 0 s = never.", "time", 0.0, low=0.0)
    pace: str = choice(
        "realtime: ticks keep wall time. fast: as fast as the lockstep participants answer.",
        ("realtime", "fast"),
        "realtime",
    )
    speed: float = key("Simulated seconds per wall second in real time.", default=1.0, low=1e-3, high=1e3)


@dataclass(frozen=True)
class Current:
    """Water flow, the same everywhere: mean + amplitude cos(2 pi t / period + phase) along a direction.
    The flow of a <volume>, if there is one, is added."""

    north: float = key("Mean flow to the north.", "speed", 0.0)
    east: float = key("Mean flow to the east.", "speed", 0.0)
    tide_amplitude: float = key("Amplitude of the tidal stream.", "speed", 0.0, low=0.0)
    tide_direction: float = key("Direction to which the stream flows at phase 0.", "angle", 0.0)
    tide_period: float = key("Period of the tidal stream.", "time", 44714.16, low=1.0)
    tide_phase: float = key("Phase at the start.", "angle", 0.0)


@dataclass(frozen=True)
class Bump:
    """A hill (negative: a hole is positive in depth) h exp(-(a^2 dx^2 + b^2 dy^2)) added to the depth."""

    height: float = key("h: added to the depth, so a hill is negative.", "length")
    north: float = key("Centre.", "length")
    east: float = key("Centre.", "length")
    alpha: float = key("a: higher is narrower, along north.", "inverse length", low=0.0)
    beta: float = key("b: higher is narrower, along east.", "inverse length", low=0.0)


@dataclass(frozen=True)
class Bed:
    """Analytic sea bed: D0 + D1 x + D2 y + bumps."""

    depth: float = key("D0: depth at the origin.", "length", 100.0, low=0.0)
    slope_north: float = key("D1: metres of depth per metre north.", default=0.0)
    slope_east: float = key("D2: metres of depth per metre east.", default=0.0)
    bump: tuple[Bump, ...] = children(Bump, "Hills and holes.")


@dataclass(frozen=True)
class Soundings:
    """Sea bed from a file of soundings, as DUNE writes them: `north east depth` in metres. Linear
    between soundings (Delaunay triangles), level with the nearest sounding around the survey."""

    file: str = text("The file, relative to the configuration file.")
    north: float = key("Where the file's origin lies in this world.", "length", 0.0)
    east: float = key("Where the file's origin lies in this world.", "length", 0.0)


@dataclass(frozen=True)
class Spot:
    """A deviation D exp(-(a^2 dx^2 + b^2 dy^2 + g^2 dz^2)) around a point."""

    deviation: float = key("D, in the unit of the field (C or S/m).")
    position: Vector = key("Centre (north, east, down).", "length", count=3)
    alpha: float = key("a: higher is narrower, along north.", "inverse length", low=0.0)
    beta: float = key("b: higher is narrower, along east.", "inverse length", low=0.0)
    gamma: float = key("g: higher is narrower, along depth.", "inverse length", low=0.0)


@dataclass(frozen=True)
class Temperature:
    """Temperature profile: constant to knee_1, one gradient to knee_2, another below; plus spots."""

    surface: float = key("Temperature at the surface.", "temperature", 15.0, low=-2.0, high=40.0)
    knee_1: float = key("Depth of the first knee.", "length", 10.0, low=0.0)
    knee_2: float = key("Depth of the second knee.", "length", 50.0, low=0.0)
    gradient_1: float = key("Change per metre between the knees.", "temperature gradient", -0.05)
    gradient_2: float = key("Change per metre below the second knee.", "temperature gradient", -0.005)
    spot: tuple[Spot, ...] = children(Spot, "Local deviations.")


@dataclass(frozen=True)
class Conductivity:
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
    northward velocity). It replaces the temperature and conductivity profiles and adds its current."""

    file: str = text("The file, relative to the configuration file.")
    latitude: float = key("Latitude of the point of the file that lies at the origin.", "angle")
    longitude: float = key("Longitude of that point.", "angle")


@dataclass(frozen=True)
class World:
    """Sea water, sea bed and flow."""

    density: float = key("Density of the water.", "density", 1025.0, low=1.0)
    gravity: float = key("Acceleration of gravity.", "acceleration", 9.81, low=0.0)
    latitude: float = key("Of the origin of the world.", "angle", 0.0)
    longitude: float = key("Of the origin of the world.", "angle", 0.0)
    pressure_0: float = key("P0: pressure at the surface.", "pressure", 10.1325)
    pressure_1: float = key("P1: pressure per depth.", "pressure gradient", 1.00552)
    pressure_2: float = key("P2: pressure per depth squared.", "pressure curvature", 0.0)
    current: Current = child(Current, "Water flow.")
    bed: Bed = child(Bed, "Analytic sea bed.")
    soundings: Soundings | None = child(Soundings, "Sea bed from soundings, instead of <bed>.")
    temperature: Temperature = child(Temperature, "Temperature profile.")
    conductivity: Conductivity = child(Conductivity, "Conductivity profile.")
    volume: Volume | None = child(Volume, "Gridded water, instead of the profiles.")


@dataclass(frozen=True)
class Acoustics:
    """The acoustic medium: RL = SL - (spreading log10 r + absorption r)."""

    sound_speed: float = key("Speed of sound.", "speed", 1500.0, low=100.0, high=3000.0)
    absorption: float = key("Absorption of the constant model.", "attenuation", 0.005, low=0.0)
    absorption_model: str = choice("constant, or Thorp (1967) by frequency.", ("constant", "thorp"), "constant")
    spreading: float = key("Factor of log10 r: 20 spherical, 10 cylindrical.", default=20.0, low=1.0, high=40.0)
    ambient_noise: float = key("A signal weaker than this is dead, re 1 uPa.", "level", 60.0)


# --------------------------------------------------------------------------- the server


@dataclass(frozen=True)
class Network:
    """The UDP socket and its sessions."""

    address: str = text("Loopback address to bind to.", "127.0.0.1")
    port: int = key("UDP port; 0 = any free one.", default=9750, low=0, high=65535, integer=True)
    state_rate: float = key(
        "How often a client that asks for no rate is sent its state.", "frequency", 20.0, low=0.1, high=1000.0
    )
    keepalive_period: float = key("Interval of keep-alive messages (wall time).", "time", 0.5, low=0.01)
    keepalive_timeout: float = key("A client silent for longer is removed (wall time).", "time", 5.0, low=0.05)
    lockstep_timeout: float = key(
        "A lockstep client or a synchronous emulator may take this long over a step (wall time).", "time", 5.0, low=0.01
    )


@dataclass(frozen=True)
class Shared:
    """Shared memory."""

    vehicles: int = key("Greatest number of vehicles and buoys.", default=64, low=1, high=16384, integer=True)
    signals: int = key("Greatest number of live signals.", default=256, low=1, high=65536, integer=True)
    group: bool = flag("Give the user's group access (mode 0660 instead of 0600).", False)


@dataclass(frozen=True)
class Log:
    """The log file."""

    file: str = text("Where to write; relative to the working folder of the server. Empty = no log.", "")
    state_rate: float = key(
        "How often state, actuation and sensors are written.", "frequency", 10.0, low=0.01, high=10000.0
    )


@dataclass(frozen=True)
class Emulator:
    """An emulator process that `wavesim trial` starts."""

    rate: float = key("How often it computes its values.", "frequency", 10.0, low=0.01, high=1000.0)
    noise: float = key("Standard deviation of white noise, as a multiple of the sensor's own.", default=1.0, low=0.0)


@dataclass(frozen=True)
class Echosounder(Emulator):
    """Distance to the bottom under the vehicle."""

    maximum: float = key("Beyond this range the value is invalid.", "length", 200.0, low=0.1)


@dataclass(frozen=True)
class Emulators:
    """Which sensors exist in this run; each is written by one emulator process."""

    ctd: Emulator | None = child(Emulator, "Pressure, temperature, conductivity, salinity.")
    echosounder: Echosounder | None = child(Echosounder, "Distance to the bottom.")
    ahrs: Emulator | None = child(Emulator, "Roll, pitch, heading and angular rates.")
    speedlog: Emulator | None = child(Emulator, "Speed through water.")

    @property
    def names(self) -> tuple[str, ...]:
        """The sensors of this run."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) is not None)


@dataclass(frozen=True)
class Include:
    """Models from another file."""

    file: str = text("An XML file with a <models> root, relative to this file.")


@dataclass(frozen=True)
class Models:
    """Models of bodies, beside those of the library."""

    model: tuple[Model, ...] = children(Model, "A model.")
    include: tuple[Include, ...] = children(Include, "Models from another file.")


@dataclass(frozen=True)
class Fleet:
    """The bodies of the run, in the order of their rows in shared memory."""

    vehicle: tuple[Body, ...] = children(Body, "A vehicle.")
    buoy: tuple[Body, ...] = children(Body, "A buoy.")

    @property
    def bodies(self) -> tuple[Body, ...]:
        return self.vehicle + self.buoy


@dataclass(frozen=True)
class Config:
    """The root element <wavesim>."""

    name: str = text("Name of the server: of its shared memory, queues and semaphores.", "wavesim")
    seed: int = key("Seed of every random stream.", default=1, low=0, high=2**53, integer=True)
    time: Time = child(Time, "Timer.")
    world: World = child(World, "The sea.")
    acoustics: Acoustics = child(Acoustics, "The acoustic medium.")
    network: Network = child(Network, "UDP.")
    shared: Shared = child(Shared, "Shared memory.")
    log: Log = child(Log, "Logger.")
    models: Models = child(Models, "Models of this run.")
    fleet: Fleet = child(Fleet, "Vehicles and buoys.")
    emulators: Emulators = child(Emulators, "Sensors.")
