"""IMC 5.4.31 messages, generated from IMC.xml by generate_imc.py: do not edit."""

from __future__ import annotations

from wavesim_bridges.imc_codec import ImcMessage


class EntityState(ImcMessage, number=1, layout="BBt"):
    state: int  #: Enumerated
    flags: int  #: Bitfield
    description: str
    ESTA_NORMAL = 1
    ESTA_FAILURE = 4


class EntityInfo(ImcMessage, number=3, layout="BttHH"):
    id: int
    label: str
    component: str
    act_time: int  #: s
    deact_time: int  #: s


class EntityList(ImcMessage, number=5, layout="Bt"):
    op: int  #: Enumerated
    list: str  #: TupleList
    OP_REPORT = 0
    OP_QUERY = 1


class SimulatedState(ImcMessage, number=50, layout="ddffffffffffffffff"):
    lat: float  #: rad
    lon: float  #: rad
    height: float  #: m
    x: float  #: m
    y: float  #: m
    z: float  #: m
    phi: float  #: rad
    theta: float  #: rad
    psi: float  #: rad
    u: float  #: m/s
    v: float  #: m/s
    w: float  #: m/s
    p: float  #: rad/s
    q: float  #: rad/s
    r: float  #: rad/s
    svx: float  #: m/s
    svy: float  #: m/s
    svz: float  #: m/s


class LeakSimulation(ImcMessage, number=51, layout="Bt"):
    op: int  #: Enumerated
    entities: str


class Heartbeat(ImcMessage, number=150, layout=""):
    pass


class Announce(ImcMessage, number=151, layout="tBHddft"):
    sys_name: str
    sys_type: int  #: Enumerated
    owner: int
    lat: float  #: rad
    lon: float  #: rad
    height: float  #: m
    services: str
    SYSTEMTYPE_UUV = 2
    SYSTEMTYPE_UAV = 4


class LblRange(ImcMessage, number=200, layout="Bf"):
    id: int
    range: float  #: m


class LblBeacon(ImcMessage, number=202, layout="tddfBBB"):
    beacon: str
    lat: float  #: rad
    lon: float  #: rad
    depth: float  #: m
    query_channel: int
    reply_channel: int
    transponder_delay: int  #: ms


class LblConfig(ImcMessage, number=203, layout="Bl"):
    op: int  #: Enumerated
    beacons: tuple[ImcMessage, ...]
    OP_SET_CFG = 0
    OP_GET_CFG = 1
    OP_CUR_CFG = 2


class Rpm(ImcMessage, number=250, layout="h"):
    value: int  #: rpm


class GpsFix(ImcMessage, number=253, layout="HBHBBfddfBffffff"):
    validity: int  #: Bitfield
    type: int  #: Enumerated
    utc_year: int
    utc_month: int
    utc_day: int
    utc_time: float  #: s
    lat: float  #: rad
    lon: float  #: rad
    height: float  #: m
    satellites: int
    cog: float  #: rad
    sog: float  #: m/s
    hdop: float
    vdop: float
    hacc: float  #: m
    vacc: float  #: m
    GFT_MANUAL_INPUT = 3


class EulerAngles(ImcMessage, number=254, layout="ddddd"):
    time: float  #: s
    phi: float  #: rad
    theta: float  #: rad
    psi: float  #: rad
    psi_magnetic: float  #: rad


class AngularVelocity(ImcMessage, number=256, layout="dddd"):
    time: float  #: s
    x: float  #: rad/s
    y: float  #: rad/s
    z: float  #: rad/s


class Acceleration(ImcMessage, number=257, layout="dddd"):
    time: float  #: s
    x: float  #: m/s/s
    y: float  #: m/s/s
    z: float  #: m/s/s


class GroundVelocity(ImcMessage, number=259, layout="Bddd"):
    validity: int  #: Bitfield
    x: float  #: m/s
    y: float  #: m/s
    z: float  #: m/s


class WaterVelocity(ImcMessage, number=260, layout="Bddd"):
    validity: int  #: Bitfield
    x: float  #: m/s
    y: float  #: m/s
    z: float  #: m/s


class Distance(ImcMessage, number=262, layout="Bllf"):
    validity: int  #: Enumerated
    location: tuple[ImcMessage, ...]
    beam_config: tuple[ImcMessage, ...]
    value: float  #: m


class Temperature(ImcMessage, number=263, layout="f"):
    value: float  #: °C


class Depth(ImcMessage, number=265, layout="f"):
    value: float  #: m


class Conductivity(ImcMessage, number=269, layout="f"):
    value: float  #: S/m


class ServoPosition(ImcMessage, number=281, layout="Bf"):
    id: int
    value: float  #: rad


class SetThrusterActuation(ImcMessage, number=301, layout="Bf"):
    id: int
    value: float


class SetServoPosition(ImcMessage, number=302, layout="Bf"):
    id: int
    value: float  #: rad


class EstimatedState(ImcMessage, number=350, layout="ddffffffffffffffffff"):
    lat: float  #: rad
    lon: float  #: rad
    height: float  #: m
    x: float  #: m
    y: float  #: m
    z: float  #: m
    phi: float  #: rad
    theta: float  #: rad
    psi: float  #: rad
    u: float  #: m/s
    v: float  #: m/s
    w: float  #: m/s
    vx: float  #: m/s
    vy: float  #: m/s
    vz: float  #: m/s
    p: float  #: rad/s
    q: float  #: rad/s
    r: float  #: rad/s
    depth: float  #: m
    alt: float  #: m


class IndicatedSpeed(ImcMessage, number=352, layout="d"):
    value: float  #: m/s


class TrueSpeed(ImcMessage, number=353, layout="d"):
    value: float  #: m/s


class DesiredHeading(ImcMessage, number=400, layout="d"):
    value: float  #: rad


class DesiredZ(ImcMessage, number=401, layout="fB"):
    value: float  #: m
    z_units: int  #: Enumerated
    Z_DEPTH = 1
    Z_ALTITUDE = 2
    Z_HEIGHT = 3


class DesiredSpeed(ImcMessage, number=402, layout="dB"):
    value: float
    speed_units: int  #: Enumerated
    SUNITS_METERS_PS = 0


class DesiredRoll(ImcMessage, number=403, layout="d"):
    value: float  #: rad


class VehicleState(ImcMessage, number=500, layout="BBtHdHIBtd"):
    op_mode: int  #: Enumerated
    error_count: int
    error_ents: str
    maneuver_type: int
    maneuver_stime: float  #: s
    maneuver_eta: int  #: s
    control_loops: int  #: Bitfield
    flags: int  #: Bitfield
    last_error: str
    last_error_time: float  #: s
    VS_BOOT = 5


class EntityParameter(ImcMessage, number=801, layout="tt"):
    name: str
    value: str


class EntityParameters(ImcMessage, number=802, layout="tl"):
    name: str
    params: tuple[ImcMessage, ...]


class SetEntityParameters(ImcMessage, number=804, layout="tl"):
    name: str
    params: tuple[ImcMessage, ...]


class UamTxFrame(ImcMessage, number=814, layout="HtBr"):
    seq: int
    sys_dst: str
    flags: int  #: Bitfield
    data: bytes
    UTF_ACK = 1


class UamRxFrame(ImcMessage, number=815, layout="ttBr"):
    sys_src: str
    sys_dst: str
    flags: int  #: Bitfield
    data: bytes
    URF_PROMISCUOUS = 1


class UamTxStatus(ImcMessage, number=816, layout="HBt"):
    seq: int
    value: int  #: Enumerated
    error: str
    UTS_DONE = 0
    UTS_FAILED = 1
    UTS_BUSY = 3
    UTS_INV_ADDR = 4
    UTS_IP = 5
    UTS_INV_SIZE = 7


class UamRxRange(ImcMessage, number=817, layout="Htf"):
    seq: int
    sys: str
    value: float  #: m


class UamTxRange(ImcMessage, number=818, layout="Htf"):
    seq: int
    sys_dst: str
    timeout: float  #: s
