"""Declare every element and key of ``config.xml``.

The file may use any unit of a quantity; the values in these objects are SI and radians.
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
    """Elastic line from the body's origin to an anchor. It pulls but never pushes, and has neither weight nor drag.
    For a line with both, use <line>.
    """

    anchor: Vector = key("Position of the anchor in the world (north, east, down).", "length", count=3)
    length: float = key("Unstretched length.", "length", low=0.01)
    stiffness: float = key("Tension per elongation.", "stiffness", low=0.0)
    damping: float = key("Tension per rate of elongation.", "line damping", 0.0, low=0.0)


@dataclass(frozen=True)
class Waypoint:
    """Point of the mission, for the on-board program."""

    north: float = key("North of the origin.", "length")
    east: float = key("East of the origin.", "length")
    depth: float = key("Depth to hold on the leg to this waypoint.", "length", 0.0, low=0.0)
    speed: float = key("Speed through water on the leg to this waypoint.", "speed", 1.0, low=0.0)


@dataclass(frozen=True)
class Program:
    """On-board program that `wavesim trial` starts in its own process: a Python file, or a bridge to other software."""

    run: str = text("Path of the Python file, relative to the configuration file.", "")
    bridge: str = text("Name of a bridge, as in `wavesim bridge NAME`, instead of `run`.", "")
    options: str = text("Additional command-line options of the program or the bridge.", "")
    period: float = key(
        "Lockstep period: interval at which the program exchanges data with the server.", "time", 0.1, low=1e-3
    )
    ping_period: float = key("Interval of acoustic queries; 0 s = none.", "time", 0.0, low=0.0)
    ping_offset: float = key("Time of the first query.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class FaultConfig:
    """Scheduled fault of an actuator or a sensor, in simulation time.

    The fault begins at `at`, lasts `for`, and repeats every `every`. When it ends, the part works normally again.
    """

    at: float = key("Time at which the fault begins.", "time", low=0.0)
    duration: float = key("Duration of the fault; 0 s = to the end of the run.", "time", 0.0, low=0.0, name="for")
    every: float = key(
        "Interval from one beginning of the fault to the next; 0 s = the fault does not repeat.", "time", 0.0, low=0.0
    )
    part: str = text("Name of an actuator of the model, or of a sensor of the body.")
    kind: str = text(
        "Kind of fault. Actuator: stuck, lost, reduced, reversed, or frozen (for the time `amount`). Sensor: lost, "
        "frozen, bias, spikes, noisy; also wet for a leak detector and unlocked for a Doppler log."
    )
    amount: str = text(
        "Amount of the fault. Actuator: for reduced, the remaining share; for frozen, the time with a unit. Sensor: "
        "bias with its unit, probability of a spike, factor of the noise, or name of the wet compartment.",
        "",
    )
    field: str = text("Field of the sensor on which the bias, spikes or noise act. Empty: all fields.", "")
    place: str = place()


@dataclass(frozen=True)
class BodyConfig:
    """Vehicle or buoy of the run."""

    name: str = text("Unique name of the body. A broker joins under this name.")
    model: str = text("Name of a model from this file, an included file or the library.")
    position: Vector = key("Initial position (north, east, down).", "length", count=3)
    attitude: Vector = key("Initial roll, pitch, heading.", "angle", (0.0, 0.0, 0.0), count=3)
    velocity: Vector = key(
        "Initial velocity over ground (forward, starboard, down).", "speed", (0.0, 0.0, 0.0), count=3
    )
    angular_velocity: Vector = key(
        "Initial angular velocity about the same axes.", "angular rate", (0.0, 0.0, 0.0), count=3
    )
    speed: float = key(
        "Surge speed through the water that the body has from the start and holds, level and in calm weather, with "
        "its thrusters. The commands of the thrusters follow from the model. 0 m/s = not used.",
        "speed",
        0.0,
    )
    client: str = choice(
        "none: a body without a broker. optional: the body appears when its broker joins. required: the same, and "
        "`wavesim trial` waits for the broker before the start.",
        ("none", "optional", "required"),
        "none",
    )
    truth: str = choice(
        "full: the broker receives the true state. none: it receives only sensor values and acoustics.",
        ("full", "none"),
        "full",
    )
    instruments: str = choice(
        "Rights of sessions with the role `instrument` on this body to its transducer. send: send and listen. "
        "listen: listen only.",
        ("send", "listen"),
        "send",
    )
    watchdog: float = key(
        "Time without a command (simulation time) after which `failsafe` acts; 0 = never.", "time", 0.0, low=0.0
    )
    failsafe: str = choice(
        "Reaction of the actuators when the watchdog acts. zero: go to zero. hold: keep their commands. safe: take "
        "the values of `safe`.",
        ("zero", "hold", "safe"),
        "zero",
    )
    safe: str = text(
        'Commands for failsafe="safe" (N, 1/s, rad, kg), separated by spaces: numbers in the order of the model\'s '
        "actuators, or one NAME=VALUE for each.",
        "",
    )
    transducer: TransducerConfig | None = child(TransducerConfig, "Transducer that replaces the one of the model.")
    sensors: SensorsConfig | None = child(
        SensorsConfig, "Instruments of this body, in addition to those of its model and of the fleet."
    )
    mooring: Mooring | None = child(Mooring, "Elastic line to an anchor.")
    fault: tuple[FaultConfig, ...] = children(FaultConfig, "A scheduled fault.")
    program: Program | None = child(Program, "On-board program.")
    waypoint: tuple[Waypoint, ...] = children(Waypoint, "A waypoint of the mission, in order.")
    place: str = place()


# --------------------------------------------------------------------------- the world


@dataclass(frozen=True)
class TimeConfig:
    """Simulation timer."""

    step: float = key("Length of a tick.", "time", 0.004, low=1e-4, high=0.1)
    duration: float = key("Simulation time at which the run ends; 0 s = never.", "time", 0.0, low=0.0)
    integrator: str = text(
        "Integrator of the equations of motion. rk4: classical Runge-Kutta. dp5: fifth-order Dormand-Prince. euler: "
        "semi-implicit Euler. Another package may provide more (docs/extending.md).",
        "rk4",
    )
    pace: str = choice(
        "realtime: ticks follow wall time. fast: as fast as the lockstep participants answer.",
        ("realtime", "fast"),
        "realtime",
    )
    speed: float = key("Simulated seconds per second of wall time, for pace=realtime.", default=1.0, low=1e-3, high=1e3)


# --------------------------------------------------------------------------- the server


@dataclass(frozen=True)
class Grant:
    """Additional rights of some sessions, beyond driving and listening. No session has them unless they are granted."""

    to: str = text("Name under which the sessions join; * = any name.")
    role: str = choice(
        "Role of the sessions; any = all roles.", ("any", "pilot", "instrument", "listener", "observer"), "any"
    )
    rights: str = text(
        "Rights, separated by spaces: fault (set and clear faults), push (external forces), pose (position and "
        "velocity), allocate (thruster matrix), weather (current, wind, waves), control (start, pause, step, speed, "
        "stop, shutdown), mission (waypoints for a pilot that accepts them)."
    )
    others: bool = flag("Whether the rights also apply to other bodies. no: to the session's own body only.", False)
    place: str = place()


@dataclass(frozen=True)
class NetworkConfig:
    """UDP socket of the server and its sessions."""

    address: str = text("IP address to bind to. An address other than loopback requires `keys`.", "127.0.0.1")
    port: int = key("UDP port; 0 = any free one.", default=9750, low=0, high=65535, integer=True)
    state_rate: float = key(
        "Rate of state messages to a client that does not request a rate.", "frequency", 20.0, low=0.1, high=1000.0
    )
    keepalive_period: float = key("Interval of keep-alive messages (wall time).", "time", 0.5, low=0.01)
    keepalive_timeout: float = key("Silence (wall time) after which a client is removed.", "time", 5.0, low=0.05)
    lockstep_timeout: float = key(
        "Maximum wall time that a lockstep client or a synchronous emulator may take for a step.", "time", 5.0, low=0.01
    )
    lockstep_budget: float = key(
        "Maximum wall time by which one lockstep client or synchronous emulator may delay the simulation beyond its "
        "share of 50 s per simulated second. A client that exceeds it loses its session; an emulator is no longer "
        "waited for. Raise it for a program with long computations.",
        "time", 60.0, low=0.1, high=1e9,
    )  # fmt: skip
    newcomers: str = choice(
        "Whether a pilot may join under a name that the configuration does not contain, as a new body. none: no. "
        "free: yes, but not in lockstep. lockstep: also in lockstep, so that the simulation waits for it.",
        ("none", "free", "lockstep"),
        "none",
    )
    acoustic_rate: float = key(
        "Maximum number of acoustic requests of a client per simulated second, averaged over ten seconds.",
        "frequency",
        20.0,
        low=0.1,
        high=1e5,
    )
    datagram_rate: float = key(
        "Maximum number of datagrams per second (wall time) from a session, or from a host outside its sessions.",
        "frequency",
        5000.0,
        low=10.0,
        high=1e6,
    )
    frame_rate: float = key(
        "Maximum number of bytes of sonar frames sent to a session per second (wall time). Frames beyond this limit "
        "are skipped.",
        "data", 16e6, low=1e4, high=1e9,
    )  # fmt: skip
    keys: str = text(
        "File of pre-shared keys, relative to the configuration file. With it, every datagram is authenticated and "
        "encrypted.",
        "",
    )
    insecure: bool = flag("Whether to serve an address other than loopback without keys.", False)
    takeover: bool = flag(
        "Whether a second client of the same name takes over the body. no: the server refuses it.", False
    )
    restarts: int = key(
        "Maximum number of restarts of a crashed front within a minute; 0 = the server ends. After a restart the "
        "clients must join again; their bodies stay meanwhile. The engine is never restarted, because its state is "
        "lost.",
        default=0, low=0, high=100, integer=True,
    )  # fmt: skip
    observers: int = key(
        "Maximum number of observer sessions; 0 = no observers.", default=8, low=0, high=256, integer=True
    )
    sessions: int = key(
        "Maximum number of sessions of all roles together.", default=4096, low=1, high=65536, integer=True
    )
    grant: tuple[Grant, ...] = children(Grant, "Additional rights of some sessions.")


@dataclass(frozen=True)
class SharedMemoryConfig:
    """Sizes and permissions of shared memory."""

    vehicles: int = key("Maximum number of vehicles and buoys.", default=64, low=1, high=16384, integer=True)
    signals: int = key("Maximum number of live signals.", default=256, low=1, high=65536, integer=True)
    group: bool = flag("Whether the user's group has access (mode 0660 instead of 0600).", False)


@dataclass(frozen=True)
class LogConfig:
    """Log file of the run."""

    file: str = text("Path of the log, relative to the working folder of the server. Empty: no log.", "")
    state_rate: float = key(
        "Rate at which state, actuation and sensor values are logged.", "frequency", 10.0, low=0.01, high=10000.0
    )
    part_size: float = key(
        "File size at which the log continues in another file (NAME.2.mcap, NAME.3.mcap, ...). This limits both the "
        "size of the files and the memory for their index. To read all parts, open the first file.",
        "data", 256e6, low=1e4, high=1e12,
    )  # fmt: skip
    part_time: float = key(
        "Simulation time after which the log continues in another file; 0 s = only `part_size` decides.",
        "time", 0.0, low=0.0,
    )  # fmt: skip
    sync: float = key(
        "Interval (wall time) at which written data is flushed to disk (fsync), so that it survives a loss of "
        "power; 0 s = the operating system decides. Without it, a killed server loses at most half a second.",
        "time", 0.0, low=0.0, high=3600.0,
    )  # fmt: skip
    effort: bool = flag("Whether forces and accelerations of all bodies are logged with each state.", False)
    faded: bool = flag(
        "Whether each node beyond the reach of a signal is logged as well. no: only the number of these nodes is "
        "logged.",
        True,
    )


@dataclass(frozen=True)
class Include:
    """Inclusion of models from another file."""

    file: str = text("Path of an XML file with a <models> root, relative to this file.")


@dataclass(frozen=True)
class Models:
    """Models of bodies, in addition to those of the library."""

    model: tuple[Model, ...] = children(Model, "A model.")
    include: tuple[Include, ...] = children(Include, "A file with more models.")


@dataclass(frozen=True)
class Corner:
    """Corner of a fence."""

    north: float = key("North of the origin.", "length")
    east: float = key("East of the origin.", "length")


@dataclass(frozen=True)
class Fence:
    """Area given by its corners. It does not stop a vehicle: crossing it only sends a notice to the vehicle, the log
    and the viewers.
    """

    name: str = text("Name of the fence, used in the notice.")
    keep: str = choice("Side on which vehicles should stay.", ("inside", "outside"), "inside")
    corner: tuple[Corner, ...] = children(Corner, "A corner, in order around the area; at least three.", least=3)
    place: str = place()


@dataclass(frozen=True)
class FleetConfig:
    """Bodies of the run, in the order of their rows in shared memory."""

    vehicle: tuple[BodyConfig, ...] = children(BodyConfig, "A vehicle.")
    buoy: tuple[BodyConfig, ...] = children(BodyConfig, "A buoy.")
    sensors: SensorsConfig | None = child(
        SensorsConfig, "Instruments that every vehicle carries in addition to its own. Buoys do not carry them."
    )
    fence: tuple[Fence, ...] = children(Fence, "An area that vehicles should not leave, or not enter.")
    line: tuple[Line, ...] = children(Line, "A tether, mooring or tow cable.")

    @property
    def bodies(self) -> tuple[BodyConfig, ...]:
        return self.vehicle + self.buoy


@dataclass(frozen=True)
class Config:
    """Root element <wavesim>."""

    name: str = text("Name of the server, used for its shared memory, queues and semaphores.", "wavesim")
    files: str = text(
        "Folder, relative to the configuration file, in or below which programs, data and key files must lie: `..` "
        "for the parent folder, `/` for any. It stops a configuration from an untrusted source from reading other "
        "files of the machine.",
        ".",
    )
    seed: int = key("Seed of every random stream.", default=1, low=0, high=2**53, integer=True)
    time: TimeConfig = child(TimeConfig, "Simulation timer.")
    world: World = child(World, "The sea.")
    acoustics: Acoustics = child(Acoustics, "The acoustic medium.")
    network: NetworkConfig = child(NetworkConfig, "UDP sessions.")
    shared: SharedMemoryConfig = child(SharedMemoryConfig, "Shared memory.")
    log: LogConfig = child(LogConfig, "Log file.")
    models: Models = child(Models, "Models of this run.")
    fleet: FleetConfig = child(FleetConfig, "Vehicles and buoys.")
