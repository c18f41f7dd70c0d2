"""The IMC messages (protocol of DUNE and Neptus) that the bridge uses, each declared once. Angles in rad, other
quantities in SI units.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_bridges.imc_codec import UNKNOWN_ENTITY, ImcMessage, register_message


@register_message(1, "BBt")
@dataclass(frozen=True)
class EntityState(ImcMessage):
    """State of the entity that sends the packet. Flag 1 means that the entity needs attention."""

    state: int
    flags: int
    description: str


NORMAL, FAILURE = 1, 4  #: states of a DUNE entity


@register_message(5, "Bt")
@dataclass(frozen=True)
class EntityList(ImcMessage):
    """List of a system's entities. ``op`` 0 reports it in ``list``, as `Label=number;Label=number`; ``op`` 1 requests
    it.
    """

    op: int
    list: str

    @property
    def numbers(self) -> dict[str, int]:
        """Return the numbers of the entities by label, without invalid entries."""
        pairs = (entry.rpartition("=")[::2] for entry in self.list.split(";"))
        return {label: int(number) for label, number in pairs if number.isdecimal() and int(number) < UNKNOWN_ENTITY}


REPORT, QUERY = 0, 1


@register_message(50, "ddf fff fff fff fff fff")
@dataclass(frozen=True)
class SimulatedState(ImcMessage):
    """Simulated state: origin (rad, m); offset north, east, down (m); roll, pitch, heading (rad); velocity through the
    water in the body frame (m/s); rates (rad/s); velocity of the water, north, east, down (m/s).
    """

    lat: float
    lon: float
    height: float
    x: float
    y: float
    z: float
    phi: float
    theta: float
    psi: float
    u: float
    v: float
    w: float
    p: float
    q: float
    r: float
    svx: float
    svy: float
    svz: float


@register_message(51, "Bt")
@dataclass(frozen=True)
class LeakSimulation(ImcMessage):
    """Simulated leak. ``op`` 1: water enters at these sensors (comma-separated labels; empty means all). ``op`` 0: the
    leak has ended.
    """

    op: int
    entities: str


@register_message(150)
@dataclass(frozen=True)
class Heartbeat(ImcMessage):
    """Indication that the sender is running."""


UUV = 2


@register_message(151, "tBHddft")
@dataclass(frozen=True)
class Announce(ImcMessage):
    """Identity, position (rad, m) and addresses of the sender."""

    sys_name: str
    sys_type: int
    owner: int
    lat: float
    lon: float
    height: float
    services: str


@register_message(200, "Bf")
@dataclass(frozen=True)
class LblRange(ImcMessage):
    """Range to a beacon. ``id`` is the beacon's index in the configuration; ``range`` is in m."""

    id: int
    range: float


@register_message(202, "tddfBBB")
@dataclass(frozen=True)
class LblBeacon(ImcMessage):
    """Name and position (rad, m) of a beacon. The bridge ignores channels and delay (ms)."""

    beacon: str
    lat: float
    lon: float
    depth: float
    query_channel: int
    reply_channel: int
    transponder_delay: int


@register_message(203, "Bl")
@dataclass(frozen=True)
class LblConfig(ImcMessage):
    """Beacons of the long baseline. ``op`` 0 sets them, 1 requests them, and 2 answers a request."""

    op: int
    beacons: tuple[ImcMessage, ...]


SET_CFG, GET_CFG, CUR_CFG = 0, 1, 2


@register_message(250, "h")
@dataclass(frozen=True)
class Rpm(ImcMessage):
    value: int


@register_message(253, "HBHBBfddfBffffff")
@dataclass(frozen=True)
class GpsFix(ImcMessage):
    """GPS fix. With ``type`` 3, an operator sets the vehicle's position. Bits of ``validity``: date, time, position,
    course, speed, hacc, vacc, hdop, vdop.
    """

    validity: int
    type: int
    utc_year: int
    utc_month: int
    utc_day: int
    utc_time: float
    lat: float
    lon: float
    height: float
    satellites: int
    cog: float
    sog: float
    hdop: float
    vdop: float
    hacc: float
    vacc: float


MANUAL_INPUT = 3


@register_message(254, "ddddd")
@dataclass(frozen=True)
class EulerAngles(ImcMessage):
    time: float
    phi: float
    theta: float
    psi: float
    psi_magnetic: float


@register_message(256, "dddd")
@dataclass(frozen=True)
class AngularVelocity(ImcMessage):
    time: float
    x: float
    y: float
    z: float


@register_message(257, "dddd")
@dataclass(frozen=True)
class Acceleration(ImcMessage):
    time: float
    x: float
    y: float
    z: float


@register_message(259, "Bddd")
@dataclass(frozen=True)
class GroundVelocity(ImcMessage):
    """Velocity over ground. Bits of ``validity``: x, y, z."""

    validity: int
    x: float
    y: float
    z: float


@register_message(260, "Bddd")
@dataclass(frozen=True)
class WaterVelocity(ImcMessage):
    """Velocity through the water. Bits of ``validity``: x, y, z."""

    validity: int
    x: float
    y: float
    z: float


@register_message(262, "Bllf")
@dataclass(frozen=True)
class Distance(ImcMessage):
    validity: int
    location: tuple[ImcMessage, ...]
    beam_config: tuple[ImcMessage, ...]
    value: float


@register_message(263, "f")
@dataclass(frozen=True)
class Temperature(ImcMessage):
    value: float


@register_message(265, "f")
@dataclass(frozen=True)
class Depth(ImcMessage):
    value: float


@register_message(269, "f")
@dataclass(frozen=True)
class Conductivity(ImcMessage):
    value: float


@register_message(281, "Bf")
@dataclass(frozen=True)
class ServoPosition(ImcMessage):
    id: int
    value: float


@register_message(301, "Bf")
@dataclass(frozen=True)
class SetThrusterActuation(ImcMessage):
    id: int
    value: float


@register_message(302, "Bf")
@dataclass(frozen=True)
class SetServoPosition(ImcMessage):
    id: int
    value: float


@register_message(350, "ddf fff fff fff fff fff ff")
@dataclass(frozen=True)
class EstimatedState(ImcMessage):
    """Estimated state: reference (rad, m); offset north, east, down (m); roll, pitch, heading (rad); velocity over
    ground in the body frame and in the world (m/s); rates (rad/s); depth and altitude (m; -1: unknown).
    """

    lat: float
    lon: float
    height: float
    x: float
    y: float
    z: float
    phi: float
    theta: float
    psi: float
    u: float
    v: float
    w: float
    vx: float
    vy: float
    vz: float
    p: float
    q: float
    r: float
    depth: float
    alt: float


@register_message(500, "BBtHdHIBtd")
@dataclass(frozen=True)
class VehicleState(ImcMessage):
    op_mode: int
    error_count: int = 0
    error_ents: str = ""
    maneuver_type: int = 0xFFFF
    maneuver_stime: float = -1.0
    maneuver_eta: int = 0xFFFF
    control_loops: int = 0
    flags: int = 0
    last_error: str = ""
    last_error_time: float = -1.0


BOOT = 5  #: operation mode in VehicleState of a vehicle whose on-board software is not running


@register_message(801, "tt")
@dataclass(frozen=True)
class EntityParameter(ImcMessage):
    name: str
    value: str


@register_message(802, "tl")
@dataclass(frozen=True)
class EntityParameters(ImcMessage):
    """Current parameters of an entity."""

    name: str
    params: tuple[ImcMessage, ...]


@register_message(804, "tl")
@dataclass(frozen=True)
class SetEntityParameters(ImcMessage):
    """Parameters of an entity to set."""

    name: str
    params: tuple[ImcMessage, ...]


@register_message(814, "HtBr")
@dataclass(frozen=True)
class UamTxFrame(ImcMessage):
    """Packet to send by modem. Flag 1 requests an acknowledgement."""

    seq: int
    sys_dst: str
    flags: int
    data: bytes


@register_message(815, "ttBr")
@dataclass(frozen=True)
class UamRxFrame(ImcMessage):
    """Packet that a modem received. Flag 1 means that it was addressed to another modem."""

    sys_src: str
    sys_dst: str
    flags: int
    data: bytes


ACKNOWLEDGED = PROMISCUOUS = 1


@register_message(816, "HBt")
@dataclass(frozen=True)
class UamTxStatus(ImcMessage):
    """Status of the modem request ``seq``."""

    seq: int
    value: int
    error: str


DONE, FAILED, CANCELED, BUSY, INV_ADDR, IN_PROGRESS, UNSUPPORTED, INV_SIZE = range(8)


@register_message(817, "Htf")
@dataclass(frozen=True)
class UamRxRange(ImcMessage):
    seq: int
    sys: str
    value: float


@register_message(818, "Htf")
@dataclass(frozen=True)
class UamTxRange(ImcMessage):
    """Range request to a modem, with ``timeout`` in s."""

    seq: int
    sys_dst: str
    timeout: float
