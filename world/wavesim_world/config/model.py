"""Declarations of the main elements and keys of a configuration file.

A configuration file may use any supported unit; the objects contain SI values and radians.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from wavesim_sdk.device_faults import device_name
from wavesim_sdk.guidance.control import Waypoint
from wavesim_sdk.wire.items import Fence as FenceRequest
from wavesim_world.config.acoustics import Acoustics, RadiatedNoise, TransducerConfig
from wavesim_world.config.lines import Line
from wavesim_world.config.schema import Vector, child, children, choice, flag, key, place, text
from wavesim_world.config.sensors import SensorsConfig
from wavesim_world.config.vehicle import Model
from wavesim_world.config.world import World

MAX_COORDINATE = 1e7  #: largest distance from the origin along each axis in m


def coordinate(doc: str, count: int = 1) -> Any:
    """Declare a position in the world frame, or one coordinate of it."""
    return key(doc, "length", count=count, low=-MAX_COORDINATE, high=MAX_COORDINATE)


# --------------------------------------------------------------------------- the fleet


@dataclass(frozen=True)
class Mooring:
    """Elastic mooring line from the body's origin to an anchor. It transmits tension only, and has neither weight nor
    drag. For a line with weight and drag, use <line>.
    """

    anchor: Vector = key("Position of the anchor in the world (north, east, down).", "length", count=3)
    length: float = key("Unstretched length of the mooring line.", "length", low=0.01)
    stiffness: float = key("Stiffness of the mooring line: tension per unit of elongation.", "stiffness", low=0.0)
    damping: float = key(
        "Damping of the mooring line: tension per unit of elongation rate.", "line damping", 0.0, low=0.0
    )


@dataclass(frozen=True)
class WaypointConfig(Waypoint):
    """Waypoint of the mission that the on-board program follows."""

    north: float = coordinate("North coordinate of the waypoint, relative to the origin of the world.")
    east: float = coordinate("East coordinate of the waypoint, relative to the origin of the world.")
    depth: float = key(
        "Depth on the leg to this waypoint. For an aircraft, a negative depth is the height above the water.",
        "length",
        0.0,
        low=-MAX_COORDINATE,
        high=MAX_COORDINATE,
    )
    speed: float = key(
        "Speed through the water, or through the air for an aircraft, on the leg to this waypoint.",
        "speed",
        1.0,
        low=0.0,
    )


@dataclass(frozen=True)
class MissionConfig:
    """Mission that is read from a file: a QGroundControl plan (`.plan`), a MAVLink mission as text (`.waypoints`), a
    Panisim guidance file (`.yml`) or a table (`.csv`). Its waypoints replace <waypoint> (docs/missions.md).
    """

    file: str = text("Path of the mission file, relative to the configuration file.")
    speed: float = key(
        "Speed through the water on legs that have no speed in the file; 0 = the file's default speed or, if the file "
        "has none, 1 m/s.",
        "speed",
        0.0,
        low=0.0,
    )
    acceptance: float = key(
        "Distance within which a waypoint counts as reached; 0 = the distance in the mission file or, if the file has "
        "none, the on-board program's default.",
        "length",
        0.0,
        low=0.0,
    )
    lookahead: float = key(
        "Lookahead distance of line-of-sight guidance; 0 = the distance in the mission file or, if the file has none, "
        "the on-board program's default.",
        "length",
        0.0,
        low=0.0,
    )
    place: str = place()


@dataclass(frozen=True)
class Program:
    """On-board program (a Python file, or a bridge to other software) that `wavesim trial` starts in a separate
    process.
    """

    run: str = text("Path of the on-board program's Python file, relative to the configuration file.", "")
    bridge: str = text("Name of the bridge to run instead of a Python file, as in `wavesim bridge NAME`.", "")
    options: str = text("Additional command-line options for the on-board program or the bridge.", "")
    period: float = key(
        "Lockstep period: interval of simulation time at which the on-board program exchanges data with the server.",
        "time",
        0.1,
        low=1e-3,
    )
    ping_period: float = key(
        "Interval of the acoustic queries that the on-board program sends; 0 s = no queries.", "time", 0.0, low=0.0
    )
    ping_offset: float = key("Simulation time of the first acoustic query.", "time", 0.0, low=0.0)
    own_process: bool = flag(
        "Whether the on-board program runs in its own process even if the trial runs in one process (`wavesim trial "
        "--in-process`, campaigns).",
        False,
    )


@dataclass(frozen=True)
class DeviceConfig:
    """Virtual instrument that `wavesim trial` starts alongside the on-board program, in a separate process. Existing
    drivers connect to the ports of the instrument.
    """

    name: str = text("Name of the device, as in `wavesim device NAME`.", "")
    run: str = text(
        "File with a device of your own, instead of `name`, as in `wavesim device run FILE BODY OPTIONS`. The path is "
        "relative to the folder of the configuration.",
        "",
    )
    options: str = text("Command-line options of the device, as in `wavesim device NAME BODY OPTIONS`.", "")
    period: float = key(
        "Lockstep period: interval of simulation time at which the device receives states and sends sound. The server "
        "waits for its answer, so that the device behaves identically in every run. 0 s = free-running: the server "
        "does not wait.",
        "time",
        0.1,
        low=0.0,
    )
    place: str = place()

    @property
    def label(self) -> str:
        """Name for messages and files: the name of the device, or the name of its file without the extension."""
        return self.name or PurePath(self.run).stem


def device_names(devices: Sequence[DeviceConfig]) -> list[str]:
    """Return the names by which faults refer to the devices of a body. If a label is repeated, the suffixes -2, -3 and
    so on are appended.
    """
    labels = [device_name(d.label) for d in devices]
    counts = [labels[: k + 1].count(label) for k, label in enumerate(labels)]
    return [label if n == 1 else f"{label}-{n}" for label, n in zip(labels, counts, strict=True)]


@dataclass(frozen=True)
class FaultConfig:
    """Scheduled fault of an actuator, a sensor or a device, in simulation time.

    `at` specifies the start of the fault, `for` its duration, and `every` the interval at which it repeats. After the
    fault, the actuator, sensor or device works normally again.
    """

    at: float = key("Simulation time at which the fault begins.", "time", low=0.0)
    duration: float = key("Duration of the fault; 0 s = until the end of the run.", "time", 0.0, low=0.0, name="for")
    every: float = key(
        "Interval between the starts of the repeated fault; 0 s = the fault does not repeat.", "time", 0.0, low=0.0
    )
    part: str = text(
        "Target of the fault: the name of an actuator or sensor of the body, or `device:` followed by the name of a "
        "<device>."
    )
    kind: str = text(
        "Kind of fault. Actuators: stuck, lost, reduced, reversed, or frozen (for the duration `amount`). Sensors: lost, "
        "frozen, bias, spikes or noisy; leak detectors also have wet, and Doppler velocity logs unlocked. Devices: "
        "lost, garbled, doubled, late, silent, stalled, disconnected or restarted."
    )
    amount: str = text(
        "Magnitude of the fault, with its unit if it has one. Actuators: reduced: remaining fraction of the force; "
        "frozen: duration. Sensors: bias: the bias; spikes: probability of a spike; noisy: noise factor; wet: "
        "compartment. Devices: lost, garbled or doubled: probability per byte; late: delay.",
        "",
    )
    field: str = text("Sensor field to which the bias, spikes or noise apply. Empty: all fields of the sensor.", "")
    place: str = place()


@dataclass(frozen=True)
class BodyConfig:
    """Vehicle or buoy that takes part in the run."""

    name: str = text("Unique name of the body. A broker joins under this name.")
    model: str = text("Name of the body's model, from this file, an included file or the library.")
    position: Vector = coordinate("Initial position of the body (north, east, down).", count=3)
    attitude: Vector = key("Initial roll, pitch and heading of the body.", "angle", (0.0, 0.0, 0.0), count=3)
    velocity: Vector = key(
        "Initial velocity of the body over ground (forward, starboard, down).", "speed", (0.0, 0.0, 0.0), count=3
    )
    angular_velocity: Vector = key(
        "Initial angular velocity of the body about its forward, starboard and down axes.",
        "angular rate",
        (0.0, 0.0, 0.0),
        count=3,
    )
    speed: float = key(
        "Initial surge speed through the water. From the model, the server computes thruster commands that maintain "
        "this speed in level motion; the actuators start with them instead of `initial`. For an aircraft, it is the "
        "airspeed; pitch, roll and control surfaces are then also computed. 0 m/s = not used.",
        "speed",
        0.0,
    )
    client: str = choice(
        "Broker of the body. none: the body has no broker. optional: the body appears when its broker joins. "
        "required: the body appears when its broker joins, and `wavesim trial` waits for the broker before the start.",
        ("none", "optional", "required"),
        "none",
    )
    truth: str = choice(
        "Data that the broker receives. full: the true state, sensor values and acoustics. none: only sensor values "
        "and acoustics.",
        ("full", "none"),
        "full",
    )
    instruments: str = choice(
        "Rights of `instrument` sessions to use this body's transducer. send: they may send and "
        "listen. listen: they may only listen.",
        ("send", "listen"),
        "send",
    )
    watchdog: float = key(
        "Time limit of the watchdog. If no command arrives for this duration (simulation time), `failsafe` takes "
        "effect. 0 "
        "= no limit.",
        "time",
        0.0,
        low=0.0,
    )
    failsafe: str = choice(
        "Behaviour of the actuators when the watchdog expires. zero: all commands become zero. hold: the last "
        "commands remain. safe: the commands in `safe` apply.",
        ("zero", "hold", "safe"),
        "zero",
    )
    safe: str = text(
        'Actuator commands for failsafe="safe", separated by spaces. Specify numbers in the order of the model\'s '
        "actuators, or NAME=VALUE for each actuator. The units are N, 1/s, rad or kg, depending on the actuator.",
        "",
    )
    transducer: TransducerConfig | None = child(
        TransducerConfig, "Acoustic transducer of this body. It replaces the transducer of the model."
    )
    radiated_noise: RadiatedNoise | None = child(RadiatedNoise, "Noise that this body radiates into the water.")
    sensors: SensorsConfig | None = child(
        SensorsConfig, "Instruments of this body, in addition to those from its model and the fleet."
    )
    mooring: Mooring | None = child(Mooring, "Elastic mooring line to an anchor.")
    fault: tuple[FaultConfig, ...] = children(FaultConfig, "Scheduled fault of an actuator or a sensor.")
    program: Program | None = child(Program, "On-board program of this body.")
    device: tuple[DeviceConfig, ...] = children(
        DeviceConfig, "Virtual instrument of this body, to which existing drivers connect."
    )
    waypoint: tuple[WaypointConfig, ...] = children(
        WaypointConfig, "Waypoint of the mission; list the waypoints in order."
    )
    mission: MissionConfig | None = child(MissionConfig, "Mission from a file, instead of <waypoint>.")
    place: str = place()


# --------------------------------------------------------------------------- the world


@dataclass(frozen=True)
class TimeConfig:
    """Time step, duration and pace of the simulation."""

    step: float = key("Simulation time step: the length of a tick.", "time", 0.004, low=1e-4, high=0.1)
    duration: float = key("Simulation time at which the run ends; 0 s = never.", "time", 0.0, low=0.0)
    integrator: str = text(
        "Integrator of the equations of motion. rk4: classical Runge-Kutta. dp5: fifth-order Dormand-Prince. euler: "
        "semi-implicit Euler. Other packages may provide more integrators (docs/extending.md).",
        "rk4",
    )
    pace: str = choice(
        "Pace of the simulation. realtime: ticks follow wall time. fast: ticks run as fast as the lockstep "
        "participants answer.",
        ("realtime", "fast"),
        "realtime",
    )
    speed: float = key(
        "Number of simulated seconds per second of wall time, if `pace` is realtime.", default=1.0, low=1e-3, high=1e3
    )
    snapshot_period: float = key(
        "Interval between automatic snapshots in the server's memory; 0 s = none. `wavesim rewind` and the viewer's time "
        "slider return to these snapshots.",
        "time",
        0.0,
        low=0.0,
    )
    snapshots: int = key(
        "Maximum number of automatic snapshots; a further one replaces the oldest.",
        default=60,
        low=1,
        high=10000,
        integer=True,
    )


# --------------------------------------------------------------------------- the server


@dataclass(frozen=True)
class Grant:
    """Rights granted to certain sessions in addition to the rights of their roles. A session without a grant has no
    additional rights.
    """

    to: str = text("Name under which a session must join to receive these rights; * = any name.")
    role: str = choice(
        "Role that a session must have to receive these rights; any = all roles.",
        ("any", "pilot", "instrument", "listener", "observer"),
        "any",
    )
    rights: str = text(
        "Rights, separated by spaces. fault: set and clear faults. push: apply forces. pose: set position and "
        "velocity. allocate: set the thruster matrix. weather: set current, wind and waves. control: start, pause, step, "
        "stop, shut down, set the speed. mission: send waypoints to a pilot that accepts them."
    )
    others: bool = flag(
        "Whether the rights also apply to other bodies. no: the rights apply only to the session's own body.", False
    )
    place: str = place()


@dataclass(frozen=True)
class NetworkConfig:
    """UDP socket of the server and its sessions."""

    address: str = text(
        "IP address to which the server binds. An address other than loopback requires `keys`.", "127.0.0.1"
    )
    port: int = key("UDP port of the server; 0 = any free port.", default=9750, low=0, high=65535, integer=True)
    state_rate: float = key(
        "Rate of state messages to a client that does not request a rate.",
        "frequency",
        20.0,
        low=0.1,
        high=1000.0,
    )
    keepalive_period: float = key("Interval of keep-alive messages (wall time).", "time", 0.5, low=0.01)
    keepalive_timeout: float = key(
        "Duration of silence (wall time) after which the server removes a client.", "time", 5.0, low=0.05
    )
    lockstep_timeout: float = key(
        "Maximum wall time that a lockstep client or a synchronous emulator may take for one step.",
        "time",
        5.0,
        low=0.01,
    )
    lockstep_budget: float = key(
        "Wall-time budget of each lockstep client and synchronous emulator. Delays of up to 50 s per simulated second "
        "do not count. A client that has used up its budget loses its session; the simulation stops waiting for an "
        "emulator that has done so. Increase the budget for programs with long computations.",
        "time",
        60.0,
        low=0.1,
        high=1e9,
    )
    newcomers: str = choice(
        "Whether a pilot may join as a new body, under a name that the configuration does not contain. none: no pilot "
        "may. free: only a pilot without lockstep may. lockstep: any pilot may; the simulation waits for a pilot in "
        "lockstep.",
        ("none", "free", "lockstep"),
        "none",
    )
    acoustic_rate: float = key(
        "Maximum number of acoustic requests from a client per simulated second, averaged over ten seconds.",
        "frequency",
        20.0,
        low=0.1,
        high=1e5,
    )
    datagram_rate: float = key(
        "Maximum number of datagrams per second (wall time) from a session, or from a host without a session.",
        "frequency",
        5000.0,
        low=10.0,
        high=1e6,
    )
    frame_rate: float = key(
        "Maximum number of bytes of sonar frames sent to a session per second (wall time). Frames beyond this limit "
        "are skipped.",
        "data",
        16e6,
        low=1e4,
        high=1e9,
    )
    keys: str = text(
        "File of keys (`wavesim keys`), relative to the configuration file. If given, every datagram is authenticated and "
        "encrypted. Empty: no keys.",
        "",
    )
    insecure: bool = flag("Whether the server may use an address other than loopback without keys.", False)
    takeover: str = choice(
        "Whether a second pilot with the same name takes over the body. no: the server refuses the second pilot. yes: "
        "the first pilot receives BYE. return: the first pilot waits, and resumes driving when the second one leaves.",
        ("no", "yes", "return"),
        "no",
    )
    restarts: int = key(
        "Maximum number of restarts of the front end (the network process) within a minute; 0 = the server exits if "
        "the front end crashes. After a restart, the clients must join again. Their bodies remain in the simulation. "
        "The engine is never restarted, because its state is lost.",
        default=0,
        low=0,
        high=100,
        integer=True,
    )
    observers: int = key(
        "Maximum number of observer sessions; 0 = no observers.", default=8, low=0, high=256, integer=True
    )
    sessions: int = key("Maximum total number of sessions in all roles.", default=4096, low=1, high=65536, integer=True)
    grant: tuple[Grant, ...] = children(Grant, "Additional rights for some sessions.")


@dataclass(frozen=True)
class SharedMemoryConfig:
    """Sizes and permissions of shared memory."""

    vehicles: int = key(
        "Maximum number of vehicles and buoys in shared memory.", default=64, low=1, high=16384, integer=True
    )
    signals: int = key(
        "Maximum number of live acoustic signals in shared memory.", default=256, low=1, high=65536, integer=True
    )
    group: bool = flag("Whether the user's group may access the shared memory (mode 0660 instead of 0600).", False)


@dataclass(frozen=True)
class LogConfig:
    """Log file of the run."""

    file: str = text("Path of the log, relative to the working folder of the server. Empty: no log is written.", "")
    state_rate: float = key(
        "Rate, in simulation time, at which the log records state, actuation and sensor values.",
        "frequency",
        10.0,
        low=0.01,
        high=10000.0,
    )
    part_size: float = key(
        "File size at which the log continues in another file (NAME.2.mcap, NAME.3.mcap, ...). This limits the size "
        "of each file and the memory for its index. To read all files, open the first one.",
        "data",
        256e6,
        low=1e4,
        high=1e12,
    )
    part_time: float = key(
        "Simulation time after which the log continues in another file; 0 s = only the file size (`part_size`) "
        "decides.",
        "time",
        0.0,
        low=0.0,
    )
    sync: float = key(
        "Interval (wall time) at which written data is flushed to disk (fsync), so that it survives a power failure; "
        "0 s = the operating system decides. Even at 0 s, a killed server loses at most half a second of data.",
        "time",
        0.0,
        low=0.0,
        high=3600.0,
    )
    effort: bool = flag("Whether the log contains the forces and accelerations of all bodies with each state.", False)
    faded: bool = flag(
        "Whether the log lists each node that a signal does not reach. no: it contains only the number of these nodes.",
        True,
    )


@dataclass(frozen=True)
class Include:
    """File from which models are included."""

    file: str = text("Path of an XML file with the root element <models>, relative to this configuration file.")


@dataclass(frozen=True)
class Models:
    """Models of bodies, in addition to those in the library."""

    model: tuple[Model, ...] = children(Model, "Model of a body.")
    include: tuple[Include, ...] = children(Include, "File whose models are included.")


@dataclass(frozen=True)
class Corner:
    """Corner of a fence."""

    north: float = coordinate("North coordinate of the corner, relative to the origin of the world.")
    east: float = coordinate("East coordinate of the corner, relative to the origin of the world.")


@dataclass(frozen=True)
class Fence:
    """Area defined by its corners. A fence does not stop a vehicle. If a vehicle crosses the boundary of the area, the
    vehicle, the log and the viewers receive a notice.
    """

    name: str = text("Name of the fence, as used in notices.")
    keep: str = choice(
        "Side of the fence on which vehicles must stay: inside or outside the area.", ("inside", "outside"), "inside"
    )
    corner: tuple[Corner, ...] = children(
        Corner, "Corner of the area. List at least three corners, in order around the area.", least=3
    )
    place: str = place()

    def request(self) -> FenceRequest:
        """Return the fence as a protocol record, as the server and viewers use it."""
        return FenceRequest(self.name, self.keep, tuple(v for c in self.corner for v in (c.north, c.east)))


@dataclass(frozen=True)
class FleetConfig:
    """Vehicles, buoys, lines and fences of the run. Bodies are listed in the order of their rows in shared memory."""

    vehicle: tuple[BodyConfig, ...] = children(BodyConfig, "Vehicle of the run.")
    buoy: tuple[BodyConfig, ...] = children(BodyConfig, "Buoy of the run.")
    sensors: SensorsConfig | None = child(
        SensorsConfig, "Instruments that every vehicle carries in addition to its own. Buoys do not carry them."
    )
    fence: tuple[Fence, ...] = children(Fence, "Area that vehicles must not leave, or must not enter.")
    line: tuple[Line, ...] = children(Line, "Tether, mooring or tow cable between bodies, or from a body to an anchor.")

    @property
    def bodies(self) -> tuple[BodyConfig, ...]:
        return self.vehicle + self.buoy


@dataclass(frozen=True)
class Config:
    """Root element <wavesim> of the configuration."""

    name: str = text("Name of the server, used for its shared memory, queues and semaphores.", "wavesim")
    seed: int = key("Seed for all random numbers in the simulation.", default=1, low=0, high=2**53, integer=True)
    time: TimeConfig = child(TimeConfig, "Time step, duration and pace of the simulation.")
    world: World = child(World, "Environment: sea water, sea bed, flow, wind, waves, obstacles.")
    acoustics: Acoustics = child(Acoustics, "Acoustic medium: sound speed, losses, noise, echoes.")
    network: NetworkConfig = child(NetworkConfig, "UDP socket of the server, and limits of its sessions.")
    shared: SharedMemoryConfig = child(SharedMemoryConfig, "Sizes and permissions of shared memory.")
    log: LogConfig = child(LogConfig, "Log file of the run.")
    models: Models = child(Models, "Models of bodies, in addition to those in the library.")
    fleet: FleetConfig = child(FleetConfig, "Vehicles, buoys, lines and fences of the run.")
