"""The configuration model: every element and key of ``config.xml``, declared once.

Units in the file are the user's choice; the values in these objects are SI and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.acoustics import Acoustics, TransducerConfig
from wavesim_sdk.config.lines import Line
from wavesim_sdk.config.schema import Vector, child, children, choice, flag, key, place, text
from wavesim_sdk.config.sensors import SensorsConfig
from wavesim_sdk.config.vehicle import Model
from wavesim_sdk.config.world import World

# --------------------------------------------------------------------------- the fleet


@dataclass(frozen=True)
class Mooring:
    """An elastic line from the body's origin to an anchor. It pulls, never pushes, and has no weight and no drag: for those
    there is <line>."""

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
    """An on-board program that `wavesim trial` starts in a process of its own: a Python file, or a bridge to other software."""

    run: str = text("Python file, relative to the configuration file.", "")
    bridge: str = text("Instead: name of a bridge, as in `wavesim bridge NAME`.", "")
    options: str = text("More options of the program or the bridge, as on its command line.", "")
    period: float = key("Lockstep period: the program is asked this often.", "time", 0.1, low=1e-3)
    ping_period: float = key("Interval of acoustic queries; 0 s = none.", "time", 0.0, low=0.0)
    ping_offset: float = key("Time of the first query.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class FaultConfig:
    """A fault by the clock (simulation time) of an actuator or a sensor: from `at` on, `for` some time, and again `every`
    so often. When it ends, the part is whole."""

    at: float = key("When it begins.", "time", low=0.0)
    duration: float = key("How long it lasts; 0 s: to the end.", "time", 0.0, low=0.0, name="for")
    every: float = key("How often it comes back, from one beginning to the next; 0 s: never.", "time", 0.0, low=0.0)
    part: str = text("Name of an actuator of the model, or of a sensor of the body.")
    kind: str = text(
        "Of an actuator: stuck, lost, reduced, reversed, or frozen (for the time `amount`). Of a sensor: lost, frozen, "
        "bias, spikes, noisy; wet of a leak detector, unlocked of a Doppler log."
    )
    amount: str = text(
        "Of reduced: the share that is left. Of frozen: the time, with a unit. Of a sensor: bias with its unit, chance of a "
        "spike, factor of the noise, wet compartment.",
        "",
    )
    field: str = text("Field of the sensor that a bias, spikes or noise act on; empty: all.", "")
    place: str = place()


@dataclass(frozen=True)
class BodyConfig:
    """A vehicle or a buoy of the run."""

    name: str = text("Unique name; a broker joins by it.")
    model: str = text("Name of a model, from this file, an included one or the library.")
    position: Vector = key("Start position (north, east, down).", "length", count=3)
    attitude: Vector = key("Start roll, pitch, heading.", "angle", (0.0, 0.0, 0.0), count=3)
    velocity: Vector = key("Start velocity over ground (forward, starboard, down).", "speed", (0.0, 0.0, 0.0), count=3)
    angular_velocity: Vector = key("Start angular velocity about these axes.", "angular rate", (0.0, 0.0, 0.0), count=3)
    speed: float = key(
        "Surge speed through the water that it has from the start and holds, level, in calm weather, by its thrusters: their "
        "commands follow from the model. 0 m/s: none.",
        "speed",
        0.0,
    )
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
    instruments: str = choice(
        "What sessions of the role `instrument` on this body may do with its transducer: send and listen, or listen only.",
        ("send", "listen"),
        "send",
    )
    watchdog: float = key(
        "Without a command for this long (simulation time) `failsafe` acts; 0 = never.", "time", 0.0, low=0.0
    )
    failsafe: str = choice(
        "What the actuators do then: zero, hold their commands, or take the values `safe`.",
        ("zero", "hold", "safe"),
        "zero",
    )
    safe: str = text(
        'Commands for failsafe="safe" with blanks between: numbers in the order of the model\'s actuators, or NAME=VALUE '
        "each (N, 1/s, rad, kg).",
        "",
    )
    transducer: TransducerConfig | None = child(TransducerConfig, "Replaces the model's transducer.")
    sensors: SensorsConfig | None = child(
        SensorsConfig, "Its own instruments, beside those of its model and of the fleet."
    )
    mooring: Mooring | None = child(Mooring, "Line to an anchor.")
    fault: tuple[FaultConfig, ...] = children(FaultConfig, "A fault by the clock.")
    program: Program | None = child(Program, "On-board program.")
    waypoint: tuple[Waypoint, ...] = children(Waypoint, "The mission, in order.")
    place: str = place()


# --------------------------------------------------------------------------- the world


@dataclass(frozen=True)
class TimeConfig:
    """The simulation timer."""

    step: float = key("Length of a tick.", "time", 0.004, low=1e-4, high=0.1)
    duration: float = key("The run ends by itself here; 0 s = never.", "time", 0.0, low=0.0)
    integrator: str = text(
        "rk4: classical Runge-Kutta. dp5: Dormand and Prince's fifth order. euler: semi-implicit Euler. Or one that another "
        "package offers (docs/extending.md).",
        "rk4",
    )
    pace: str = choice(
        "realtime: ticks keep wall time. fast: as fast as the lockstep participants answer.",
        ("realtime", "fast"),
        "realtime",
    )
    speed: float = key("Simulated seconds per wall second in real time.", default=1.0, low=1e-3, high=1e3)


# --------------------------------------------------------------------------- the server


@dataclass(frozen=True)
class Grant:
    """What some sessions may do beside steering and listening; nobody may unless it is granted."""

    to: str = text("Name with which they join; * = any.")
    role: str = choice("Their role; any: all of them.", ("any", "pilot", "instrument", "listener", "observer"), "any")
    rights: str = text(
        "With blanks between: fault (break and mend), push (forces from outside), pose (place and velocity), allocate "
        "(the thrusters' matrix), weather (current, wind, waves), control (start, pause, step, speed, stop, shutdown), "
        "mission (waypoints for a pilot that takes them)."
    )
    others: bool = flag("yes: on other bodies too; no: on the own one only.", False)
    place: str = place()


@dataclass(frozen=True)
class NetworkConfig:
    """The UDP socket and its sessions."""

    address: str = text("Address to bind to; one that is not loopback needs `keys`.", "127.0.0.1")
    port: int = key("UDP port; 0 = any free one.", default=9750, low=0, high=65535, integer=True)
    state_rate: float = key(
        "How often a client that asks for no rate is sent its state.", "frequency", 20.0, low=0.1, high=1000.0
    )
    keepalive_period: float = key("Interval of keep-alive messages (wall time).", "time", 0.5, low=0.01)
    keepalive_timeout: float = key("A client silent for longer is removed (wall time).", "time", 5.0, low=0.05)
    lockstep_timeout: float = key(
        "A lockstep client or a synchronous emulator may take this long over a step (wall time).", "time", 5.0, low=0.01
    )
    lockstep_budget: float = key(
        "Wall time for which one lockstep client or synchronous emulator may keep the simulation waiting beyond its share, "
        "which is 50 s for each simulated second. The session of a client that exceeds it is ended; such an emulator is no longer "
        "waited for. Raise it for a program that computes long over each step.",
        "time", 60.0, low=0.1, high=1e9,
    )  # fmt: skip
    newcomers: str = choice(
        "Whether a pilot may join under a name that the configuration does not have, as a new body. none: no. free: yes, but "
        "not in lockstep. lockstep: also in lockstep, so that time waits for it.",
        ("none", "free", "lockstep"),
        "none",
    )
    acoustic_rate: float = key(
        "Acoustic requests that a client may make per simulated second, on average over ten.",
        "frequency",
        20.0,
        low=0.1,
        high=1e5,
    )
    datagram_rate: float = key(
        "Datagrams per second (wall time) that a session, or a host outside of its sessions, may send.",
        "frequency",
        5000.0,
        low=10.0,
        high=1e6,
    )
    frame_rate: float = key(
        "Bytes of frames of sonars that a session is sent per second (wall time), at most; those for which there is no time are left out.",
        "data", 16e6, low=1e4, high=1e9,
    )  # fmt: skip
    keys: str = text(
        "File of pre-shared keys, relative to the configuration file: with it every datagram is authenticated and encrypted.",
        "",
    )
    insecure: bool = flag("Serve an address that is not loopback without keys.", False)
    takeover: bool = flag("Whether a second client of a name takes the body over; no: it is refused.", False)
    restarts: int = key(
        "How often within a minute a front that crashed is started again; its clients have to join again, their bodies stay "
        "meanwhile. 0: the server ends. (The engine is never: its state is gone.)",
        default=0, low=0, high=100, integer=True,
    )  # fmt: skip
    observers: int = key(
        "Greatest number of observer sessions; 0 = none may observe.", default=8, low=0, high=256, integer=True
    )
    sessions: int = key(
        "Greatest number of sessions of all roles together.", default=4096, low=1, high=65536, integer=True
    )
    grant: tuple[Grant, ...] = children(Grant, "Rights of some sessions.")


@dataclass(frozen=True)
class SharedMemoryConfig:
    """Shared memory."""

    vehicles: int = key("Greatest number of vehicles and buoys.", default=64, low=1, high=16384, integer=True)
    signals: int = key("Greatest number of live signals.", default=256, low=1, high=65536, integer=True)
    group: bool = flag("Give the user's group access (mode 0660 instead of 0600).", False)


@dataclass(frozen=True)
class LogConfig:
    """The log file."""

    file: str = text("Where to write; relative to the working folder of the server. Empty = no log.", "")
    state_rate: float = key(
        "How often state, actuation and sensors are written.", "frequency", 10.0, low=0.01, high=10000.0
    )
    part_size: float = key(
        "A file of this size is finished, and the log goes on in another (NAME.2.mcap, NAME.3.mcap, ...), so that neither files "
        "nor the memory for their index grow without end. Whoever reads the first reads all.",
        "data", 256e6, low=1e4, high=1e12,
    )  # fmt: skip
    part_time: float = key(
        "A file that lasted for this long (simulation time) is finished as well; 0 s: its size alone decides.",
        "time", 0.0, low=0.0,
    )  # fmt: skip
    sync: float = key(
        "How often (wall time) what was written is made to last through a loss of power (fsync); 0 s: the system decides. A "
        "killed server loses at most half a second without it.",
        "time", 0.0, low=0.0, high=3600.0,
    )  # fmt: skip
    effort: bool = flag("Whether forces and accelerations of all bodies are written with each state.", False)
    faded: bool = flag(
        "Whether each node beyond a signal's reach gets a record as well; no: only their number is logged.", True
    )


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
class Corner:
    """A corner of a fence."""

    north: float = key("North of the origin.", "length")
    east: float = key("East of the origin.", "length")


@dataclass(frozen=True)
class Fence:
    """An area by its corners. It stops nobody: a vehicle that crosses it is told so by a notice, as are log and viewers."""

    name: str = text("Its name, for the notice.")
    keep: str = choice("Where vehicles should be.", ("inside", "outside"), "inside")
    corner: tuple[Corner, ...] = children(Corner, "A corner, in order around the area.", least=3)
    place: str = place()


@dataclass(frozen=True)
class FleetConfig:
    """The bodies of the run, in the order of their rows in shared memory."""

    vehicle: tuple[BodyConfig, ...] = children(BodyConfig, "A vehicle.")
    buoy: tuple[BodyConfig, ...] = children(BodyConfig, "A buoy.")
    sensors: SensorsConfig | None = child(
        SensorsConfig, "Instruments that every vehicle (no buoy) carries besides its own."
    )
    fence: tuple[Fence, ...] = children(Fence, "An area to stay in, or out of.")
    line: tuple[Line, ...] = children(Line, "A tether, mooring or tow cable.")

    @property
    def bodies(self) -> tuple[BodyConfig, ...]:
        return self.vehicle + self.buoy


@dataclass(frozen=True)
class Config:
    """The root element <wavesim>."""

    name: str = text("Name of the server: of its shared memory, queues and semaphores.", "wavesim")
    files: str = text(
        "Folder, relative to the configuration file, that programs, data and key files must lie in (or below): `..` for the one "
        "above, `/` for any. Nothing else of the machine is read for a configuration of somebody else's.",
        ".",
    )
    seed: int = key("Seed of every random stream.", default=1, low=0, high=2**53, integer=True)
    time: TimeConfig = child(TimeConfig, "Timer.")
    world: World = child(World, "The sea.")
    acoustics: Acoustics = child(Acoustics, "The acoustic medium.")
    network: NetworkConfig = child(NetworkConfig, "UDP.")
    shared: SharedMemoryConfig = child(SharedMemoryConfig, "Shared memory.")
    log: LogConfig = child(LogConfig, "Logger.")
    models: Models = child(Models, "Models of this run.")
    fleet: FleetConfig = child(FleetConfig, "Vehicles and buoys.")
