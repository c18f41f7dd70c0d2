"""Messages in logs from other programs that contain values of instruments or the motion of the vehicle: their fields,
with units and axes. As these formats define, body vectors have the axes forward, starboard and down, and local
positions have the axes north, east and down.

The columns are written as in an import map: ``NAME=FIELD:UNIT``. ``MESSAGE.FIELD`` is a field of another message from
the same source at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wavesim_studies.navigation.columns import ColumnRole

#: values of a track, beyond those of the instruments
TRACK_ROLES = {
    "latitude": ColumnRole("angle"),
    "longitude": ColumnRole("angle"),
    "north": ColumnRole("length"),
    "east": ColumnRole("length"),
    "down": ColumnRole("length"),
    "up": ColumnRole("length"),
    "roll": ColumnRole("angle"),
    "pitch": ColumnRole("angle"),
    "heading": ColumnRole("angle"),
    "attitude": ColumnRole("", size=4),  #: quaternion, scalar first, from body to north, east, down
    "velocity": ColumnRole("speed", size=3),  #: over ground: north, east, down
    "rates": ColumnRole("angular rate", size=3),
    "origin_latitude": ColumnRole("angle"),
    "origin_longitude": ColumnRole("angle"),
}


@dataclass(frozen=True)
class InstrumentMessage:
    """Message with the values of one instrument."""

    message: str
    type: str  #: type of the instrument
    columns: str
    least: Mapping[str, float] = field(default_factory=dict)  #: smallest values of fields that mark a valid message
    bits: Mapping[str, int] = field(default_factory=dict)  #: bits of fields that mark a valid message
    equal: Mapping[str, float] = field(default_factory=dict)  #: values of fields that a message must have
    sigma: str = ""  #: field with the standard deviation, and its unit
    period: str = ""  #: field with the period over which values are displacements, and its unit
    air: bool = False  #: whether the pressure is that of the air or of the hull, unless the vehicle is a submarine
    note: str = ""


@dataclass(frozen=True)
class TrackMessage:
    """Message with the motion of the vehicle: the simulator's ground truth, or the vehicle's own estimate."""

    message: str
    true: bool
    columns: str


@dataclass(frozen=True)
class LogFormat:
    """Format of a log: the messages that are used, in the order of preference for each type of instrument."""

    program: str
    times: str
    instruments: tuple[InstrumentMessage, ...]
    tracks: tuple[TrackMessage, ...]


_XYZ = "force=xacc,yacc,zacc:{} rates=xgyro,ygyro,zgyro:{}"
_FIX = "latitude=lat:degE7 longitude=lon:degE7 height=alt:mm"
_ATTITUDE = "roll=ATTITUDE.roll:rad pitch=ATTITUDE.pitch:rad heading=ATTITUDE.yaw:rad"
_BITS = {"validity": 7}
_MAVLINK = LogFormat(
    "MAVLink telemetry of a ground station",
    "time of the autopilot, moved to the receiver's Unix time",
    (
        InstrumentMessage("HIGHRES_IMU", "imu", _XYZ.format("m/s2", "rad/s")),
        InstrumentMessage("SCALED_IMU", "imu", _XYZ.format("mg", "mrad/s")),
        InstrumentMessage("RAW_IMU", "imu", _XYZ.format("mg", "mrad/s"), note="units as ArduPilot sends them"),
        InstrumentMessage("SCALED_IMU2", "imu", _XYZ.format("mg", "mrad/s")),
        InstrumentMessage("HIL_SENSOR", "imu", _XYZ.format("m/s2", "rad/s")),
        InstrumentMessage(
            "ATTITUDE",
            "ahrs",
            "roll=roll:rad pitch=pitch:rad heading=yaw:rad rates=rollspeed,pitchspeed,yawspeed:rad/s",
        ),
        InstrumentMessage("VISION_POSITION_DELTA", "dvl", "bottom=position_delta:m", period="time_delta_usec:us"),
        InstrumentMessage(
            "ODOMETRY", "dvl", "bottom=vx,vy,vz:m/s", equal={"child_frame_id": 12}, note="body axes (FRD)"
        ),
        InstrumentMessage("SCALED_PRESSURE2", "pressure", "pressure=press_abs:hPa", air=True),
        InstrumentMessage("SCALED_PRESSURE", "pressure", "pressure=press_abs:hPa", air=True),
        InstrumentMessage("HIL_SENSOR", "pressure", "pressure=abs_pressure:hPa", air=True),
        InstrumentMessage("GPS_RAW_INT", "gps", _FIX, least={"fix_type": 3}, sigma="h_acc:mm"),
        InstrumentMessage("HIL_GPS", "gps", _FIX, least={"fix_type": 3}),
        InstrumentMessage("GPS2_RAW", "gps", _FIX, least={"fix_type": 3}, sigma="h_acc:mm"),
    ),
    (
        TrackMessage(
            "HIL_STATE_QUATERNION",
            True,
            "latitude=lat:degE7 longitude=lon:degE7 up=alt:mm velocity=vx,vy,vz:cm/s attitude=attitude_quaternion rates=rollspeed,pitchspeed,yawspeed:rad/s",
        ),
        TrackMessage(
            "SIM_STATE",
            True,
            "latitude=lat_int:degE7 longitude=lon_int:degE7 up=alt:m velocity=vn,ve,vd:m/s attitude=q1,q2,q3,q4 rates=xgyro,ygyro,zgyro:rad/s",
        ),
        TrackMessage("LOCAL_POSITION_NED", False, f"north=x:m east=y:m down=z:m velocity=vx,vy,vz:m/s {_ATTITUDE}"),
        TrackMessage(
            "GLOBAL_POSITION_INT",
            False,
            f"latitude=lat:degE7 longitude=lon:degE7 up=relative_alt:mm velocity=vx,vy,vz:cm/s {_ATTITUDE}",
        ),
    ),
)
_ARDUPILOT = LogFormat(
    "ArduPilot, on-board log",
    "time since the start, moved to Unix time by the GPS week; else time since the start",
    (
        InstrumentMessage("IMU", "imu", "force=AccX,AccY,AccZ:m/s2 rates=GyrX,GyrY,GyrZ:rad/s"),
        InstrumentMessage("ATT", "ahrs", "roll=Roll:deg pitch=Pitch:deg heading=Yaw:deg"),
        InstrumentMessage("VISO", "dvl", "bottom=PosDX,PosDY,PosDZ:m", period="dt:s"),
        InstrumentMessage("BARO", "pressure", "pressure=Press:Pa", air=True),
        InstrumentMessage("GPS", "gps", "latitude=Lat:deg longitude=Lng:deg height=Alt:m", least={"Status": 3}),
    ),
    (
        TrackMessage(
            "SIM", True, "latitude=Lat:deg longitude=Lng:deg up=Alt:m roll=Roll:deg pitch=Pitch:deg heading=Yaw:deg"
        ),
        TrackMessage(
            "XKF1",
            False,
            "north=PN:m east=PE:m down=PD:m velocity=VN,VE,VD:m/s roll=Roll:deg pitch=Pitch:deg heading=Yaw:deg",
        ),
    ),
)
_PX4_FIXES = (
    InstrumentMessage("vehicle_gps_position", "gps", "latitude=latitude_deg:deg longitude=longitude_deg:deg height=altitude_msl_m:m", least={"fix_type": 3}, sigma="eph:m"),
    InstrumentMessage("vehicle_gps_position", "gps", _FIX, least={"fix_type": 3}, sigma="eph:m", note="only in older logs"),
    InstrumentMessage("sensor_gps", "gps", "latitude=latitude_deg:deg longitude=longitude_deg:deg height=altitude_msl_m:m", least={"fix_type": 3}, sigma="eph:m"),
    InstrumentMessage("sensor_gps", "gps", _FIX, least={"fix_type": 3}, sigma="eph:m", note="only in older logs"),
)  # fmt: skip
_PX4_TRACK = (
    "north=x:m east=y:m down=z:m velocity=vx,vy,vz:m/s attitude={}.q "
    "origin_latitude=ref_lat:deg origin_longitude=ref_lon:deg"
)
_PX4 = LogFormat(
    "PX4, on-board log (ULog)",
    "time since the start, moved to Unix time by the GPS; else time since the start",
    (
        InstrumentMessage("sensor_combined", "imu", "force=accelerometer_m_s2:m/s2 rates=gyro_rad:rad/s"),
        InstrumentMessage("vehicle_attitude", "ahrs", "attitude=q rates=vehicle_angular_velocity.xyz:rad/s"),
        InstrumentMessage("vehicle_attitude", "ahrs", "attitude=q", note="only in older logs"),
        InstrumentMessage(
            "vehicle_visual_odometry",
            "dvl",
            "bottom=velocity:m/s",
            equal={"velocity_frame": 3},
            note="body axes (FRD)",
        ),
        InstrumentMessage("sensor_baro", "pressure", "pressure=pressure:Pa", air=True),
        InstrumentMessage("vehicle_air_data", "pressure", "pressure=baro_pressure_pa:Pa", air=True),
        *_PX4_FIXES,
    ),
    (
        TrackMessage("vehicle_local_position_groundtruth", True, _PX4_TRACK.format("vehicle_attitude_groundtruth")),
        TrackMessage("vehicle_local_position", False, _PX4_TRACK.format("vehicle_attitude")),
    ),
)
_POSE = "latitude=lat:rad longitude=lon:rad north=x:m east=y:m {} roll=phi:rad pitch=theta:rad heading=psi:rad rates=p,q,r:rad/s"
_DUNE = LogFormat(
    "DUNE (IMC 5.4 and 5.5)",
    "Unix time of the vehicle",
    (
        InstrumentMessage(
            "Acceleration", "imu", "force=x,y,z:m/s2 rates=AngularVelocity.x,AngularVelocity.y,AngularVelocity.z:rad/s"
        ),
        InstrumentMessage(
            "EulerAngles",
            "ahrs",
            "roll=phi:rad pitch=theta:rad heading=psi:rad rates=AngularVelocity.x,AngularVelocity.y,AngularVelocity.z:rad/s",
        ),
        InstrumentMessage("EulerAngles", "ahrs", "roll=phi:rad pitch=theta:rad heading=psi:rad"),
        InstrumentMessage("GroundVelocity", "dvl", "bottom=x,y,z:m/s", bits=_BITS),
        InstrumentMessage("WaterVelocity", "speedlog", "v_FB_B=x,y,z:m/s", bits=_BITS),
        InstrumentMessage("Depth", "pressure", "depth=value:m"),
        InstrumentMessage(
            "GpsFix", "gps", "latitude=lat:rad longitude=lon:rad height=height:m", bits={"validity": 4}, sigma="hacc:m"
        ),
    ),
    (
        TrackMessage("SimulatedState", True, _POSE.format("down=z:m")),
        TrackMessage("EstimatedState", False, _POSE.format("down=depth:m velocity=vx,vy,vz:m/s")),
    ),
)
FORMATS = {".tlog": _MAVLINK, ".bin": _ARDUPILOT, ".ulg": _PX4, ".lsf": _DUNE, ".lsf.gz": _DUNE}
