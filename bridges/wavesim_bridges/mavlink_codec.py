"""Codec for MAVLink 2: declarations of messages, and their frames. It uses neither sockets nor a clock."""

from __future__ import annotations

import binascii
import struct
from dataclasses import dataclass
from typing import Any

from wavesim_bridges.core import MalformedMessage

MAGIC, HEADER, CHECK, SIGNATURE = 0xFD, 10, 2, 13
MOST_PAYLOAD = 255
_TYPES = {
    "u8": ("uint8_t", "B"),
    "i8": ("int8_t", "b"),
    "u16": ("uint16_t", "H"),
    "i16": ("int16_t", "h"),
    "u32": ("uint32_t", "I"),
    "i32": ("int32_t", "i"),
    "u64": ("uint64_t", "Q"),
    "i64": ("int64_t", "q"),
    "f": ("float", "f"),
    "char": ("char", "s"),
}
_TARGET = "u8 target_system, u8 target_component"
_SETPOINT = "f vx, f vy, f vz, f afx, f afy, f afz, f yaw, f yaw_rate"
#: messages: number, name, and fields in the order of the standard; fields after `|` were added to it later
_DECLARED = (
    (0, "HEARTBEAT", "u8 type, u8 autopilot, u8 base_mode, u32 custom_mode, u8 system_status, u8 mavlink_version"),
    (1, "SYS_STATUS", "u32 onboard_control_sensors_present, u32 onboard_control_sensors_enabled, "
     "u32 onboard_control_sensors_health, u16 load, u16 voltage_battery, i16 current_battery, i8 battery_remaining, "
     "u16 drop_rate_comm, u16 errors_comm, u16 errors_count1, u16 errors_count2, u16 errors_count3, u16 errors_count4"),
    (2, "SYSTEM_TIME", "u64 time_unix_usec, u32 time_boot_ms"),
    (4, "PING", f"u64 time_usec, u32 seq, {_TARGET}"),
    (11, "SET_MODE", "u8 target_system, u8 base_mode, u32 custom_mode"),
    (20, "PARAM_REQUEST_READ", f"{_TARGET}, char[16] param_id, i16 param_index"),
    (21, "PARAM_REQUEST_LIST", _TARGET),
    (22, "PARAM_VALUE", "char[16] param_id, f param_value, u8 param_type, u16 param_count, u16 param_index"),
    (23, "PARAM_SET", f"{_TARGET}, char[16] param_id, f param_value, u8 param_type"),
    (24, "GPS_RAW_INT", "u64 time_usec, u8 fix_type, i32 lat, i32 lon, i32 alt, u16 eph, u16 epv, u16 vel, u16 cog, "
     "u8 satellites_visible"),
    (30, "ATTITUDE", "u32 time_boot_ms, f roll, f pitch, f yaw, f rollspeed, f pitchspeed, f yawspeed"),
    (31, "ATTITUDE_QUATERNION", "u32 time_boot_ms, f q1, f q2, f q3, f q4, f rollspeed, f pitchspeed, f yawspeed"),
    (32, "LOCAL_POSITION_NED", "u32 time_boot_ms, f x, f y, f z, f vx, f vy, f vz"),
    (33, "GLOBAL_POSITION_INT", "u32 time_boot_ms, i32 lat, i32 lon, i32 alt, i32 relative_alt, i16 vx, i16 vy, i16 vz, u16 hdg"),
    (40, "MISSION_REQUEST", f"{_TARGET}, u16 seq | u8 mission_type"),
    (41, "MISSION_SET_CURRENT", f"{_TARGET}, u16 seq"),
    (42, "MISSION_CURRENT", "u16 seq | u16 total, u8 mission_state, u8 mission_mode"),
    (43, "MISSION_REQUEST_LIST", f"{_TARGET} | u8 mission_type"),
    (44, "MISSION_COUNT", f"{_TARGET}, u16 count | u8 mission_type"),
    (45, "MISSION_CLEAR_ALL", f"{_TARGET} | u8 mission_type"),
    (46, "MISSION_ITEM_REACHED", "u16 seq"),
    (47, "MISSION_ACK", f"{_TARGET}, u8 type | u8 mission_type"),
    (51, "MISSION_REQUEST_INT", f"{_TARGET}, u16 seq | u8 mission_type"),
    (69, "MANUAL_CONTROL", "u8 target, i16 x, i16 y, i16 z, i16 r, u16 buttons"),
    (73, "MISSION_ITEM_INT", f"{_TARGET}, u16 seq, u8 frame, u16 command, u8 current, u8 autocontinue, f param1, f param2, "
     "f param3, f param4, i32 x, i32 y, f z | u8 mission_type"),
    (74, "VFR_HUD", "f airspeed, f groundspeed, i16 heading, u16 throttle, f alt, f climb"),
    (75, "COMMAND_INT", f"{_TARGET}, u8 frame, u16 command, u8 current, u8 autocontinue, f param1, f param2, f param3, "
     "f param4, i32 x, i32 y, f z"),
    (76, "COMMAND_LONG", f"{_TARGET}, u16 command, u8 confirmation, f param1, f param2, f param3, f param4, f param5, f param6, "
     "f param7"),
    (77, "COMMAND_ACK", f"u16 command, u8 result | u8 progress, i32 result_param2, {_TARGET}"),
    (84, "SET_POSITION_TARGET_LOCAL_NED", f"u32 time_boot_ms, {_TARGET}, u8 coordinate_frame, u16 type_mask, f x, f y, f z, "
     f"{_SETPOINT}"),
    (86, "SET_POSITION_TARGET_GLOBAL_INT", f"u32 time_boot_ms, {_TARGET}, u8 coordinate_frame, u16 type_mask, i32 lat_int, "
     f"i32 lon_int, f alt, {_SETPOINT}"),
    (93, "HIL_ACTUATOR_CONTROLS", "u64 time_usec, f[16] controls, u8 mode, u64 flags"),
    (107, "HIL_SENSOR", "u64 time_usec, f xacc, f yacc, f zacc, f xgyro, f ygyro, f zgyro, f xmag, f ymag, f zmag, "
     "f abs_pressure, f diff_pressure, f pressure_alt, f temperature, u32 fields_updated | u8 id"),
    (111, "TIMESYNC", "i64 tc1, i64 ts1"),
    (113, "HIL_GPS", "u64 time_usec, u8 fix_type, i32 lat, i32 lon, i32 alt, u16 eph, u16 epv, u16 vel, i16 vn, i16 ve, i16 vd, "
     "u16 cog, u8 satellites_visible | u8 id, u16 yaw"),
    (115, "HIL_STATE_QUATERNION", "u64 time_usec, f[4] attitude_quaternion, f rollspeed, f pitchspeed, f yawspeed, i32 lat, "
     "i32 lon, i32 alt, i16 vx, i16 vy, i16 vz, u16 ind_airspeed, u16 true_airspeed, i16 xacc, i16 yacc, i16 zacc"),
    (132, "DISTANCE_SENSOR", "u32 time_boot_ms, u16 min_distance, u16 max_distance, u16 current_distance, u8 type, u8 id, "
     "u8 orientation, u8 covariance"),
    (148, "AUTOPILOT_VERSION", "u64 capabilities, u32 flight_sw_version, u32 middleware_sw_version, u32 os_sw_version, "
     "u32 board_version, u8[8] flight_custom_version, u8[8] middleware_custom_version, u8[8] os_custom_version, u16 vendor_id, "
     "u16 product_id, u64 uid"),
    (242, "HOME_POSITION", "i32 latitude, i32 longitude, i32 altitude, f x, f y, f z, f[4] q, f approach_x, f approach_y, "
     "f approach_z"),
    (244, "MESSAGE_INTERVAL", "u16 message_id, i32 interval_us"),
    (245, "EXTENDED_SYS_STATE", "u8 vtol_state, u8 landed_state"),
    (253, "STATUSTEXT", "u8 severity, char[50] text"),
    (300, "PROTOCOL_VERSION", "u16 version, u16 min_version, u16 max_version, u8[8] spec_version_hash, "
     "u8[8] library_version_hash"),
    (331, "ODOMETRY", "u64 time_usec, u8 frame_id, u8 child_frame_id, f x, f y, f z, f[4] q, f vx, f vy, f vz, f rollspeed, "
     "f pitchspeed, f yawspeed, f[21] pose_covariance, f[21] velocity_covariance | u8 reset_counter, u8 estimator_type, "
     "i8 quality"),
    (435, "AVAILABLE_MODES", "u8 number_modes, u8 mode_index, u8 standard_mode, u32 custom_mode, u32 properties, "
     "char[35] mode_name"),
    (436, "CURRENT_MODE", "u8 standard_mode, u32 custom_mode, u32 intended_custom_mode"),
)  # fmt: skip


_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _mirrored(crc: int) -> int:
    return _MIRRORED[crc & 0xFF] << 8 | _MIRRORED[crc >> 8]


def x25(data: bytes, crc: int = 0xFFFF) -> int:
    """Return the CRC-16/MCRF4XX that MAVLink uses. It is computed by the library's CRC with the same polynomial, after
    reversing all bits.
    """
    return _mirrored(binascii.crc_hqx(data.translate(_MIRRORED), _mirrored(crc)))


@dataclass(frozen=True)
class _Field:
    name: str
    kind: str
    code: str
    count: int  #: number of elements if the field is an array; 0: the field is a single value

    @property
    def size(self) -> int:
        """Size in bytes of one element of the field. On the wire, fields are ordered by this size."""
        return struct.calcsize(self.code)


class MessageLayout:
    """Encoding of one message type. The fields are sorted by size, largest first; fields that were added to the
    standard later follow.
    """

    def __init__(self, number: int, name: str, fields: str) -> None:
        self.number, self.name = number, name
        first, _, later = fields.partition("|")
        own = sorted(map(_field, first.split(",")), key=lambda f: -f.size)
        self._fields = own + [_field(f) for f in later.split(",") if f.strip()]
        self._struct = struct.Struct("<" + "".join(f"{f.count or ''}{f.code}" for f in self._fields))
        crc = x25(f"{name} ".encode())
        for f in own:
            crc = x25(f"{f.kind} {f.name} ".encode() + (bytes([f.count]) if f.count else b""), crc)
        self.crc_extra = (crc & 0xFF) ^ (crc >> 8)

    def pack(self, values: dict[str, Any]) -> bytes:
        """Encode the payload; missing fields are zero."""
        flat: list[Any] = []
        left = dict(values)
        for f in self._fields:
            if f.code == "s":
                flat.append(left.pop(f.name, "").encode()[: f.count])
            elif f.count:
                flat += left.pop(f.name, (0,) * f.count)
            else:
                flat.append(left.pop(f.name, 0))
        if left:
            raise TypeError(f"{self.name} has no field {', '.join(left)}")
        return self._struct.pack(*flat)

    def unpack(self, payload: bytes) -> dict[str, Any]:
        """Decode the fields. Senders truncate trailing zeros, and newer senders may append fields."""
        flat = iter(self._struct.unpack(payload.ljust(self._struct.size, b"\0")[: self._struct.size]))
        found: dict[str, Any] = {}
        for f in self._fields:
            if f.code == "s":
                found[f.name] = next(flat).split(b"\0")[0].decode("ascii", "replace")
            else:
                found[f.name] = tuple(next(flat) for _ in range(f.count)) if f.count else next(flat)
        return found


def _field(text: str) -> _Field:
    kind, name = text.split()
    base, _, count = kind.rstrip("]").partition("[")
    return _Field(name, *_TYPES[base], int(count or 0))


LAYOUTS = {number: MessageLayout(number, name, fields) for number, name, fields in _DECLARED}
NUMBERS = {layout.name: layout.number for layout in LAYOUTS.values()}


@dataclass(frozen=True)
class MavlinkMessage:
    """Received message. ``fields`` maps the field names of the standard to values."""

    name: str
    system: int
    component: int
    fields: dict[str, Any]


class MavlinkWriter:
    """Encoder of one sender's frames."""

    def __init__(self, system: int, component: int) -> None:
        self.system, self.component = system, component
        self._sequence = 0

    def frame(self, name: str, **values: Any) -> bytes:
        """Encode a message for sending."""
        layout = LAYOUTS[NUMBERS[name]]
        payload = layout.pack(values)
        payload = payload.rstrip(b"\0") or payload[:1]
        head = bytes([len(payload), 0, 0, self._sequence, self.system, self.component]) + layout.number.to_bytes(
            3, "little"
        )
        self._sequence = (self._sequence + 1) & 0xFF
        return bytes([MAGIC]) + head + payload + x25(head + payload + bytes([layout.crc_extra])).to_bytes(2, "little")


def read(data: bytes) -> tuple[list[MavlinkMessage], list[str]]:
    """Decode the messages of a datagram, and list the reasons for unusable parts. Skip undeclared messages."""
    found: list[MavlinkMessage] = []
    at = 0
    while at < len(data):
        try:
            message, at = _one(data, at)
        except MalformedMessage as unusable:
            return found, [str(unusable)]
        if message is not None:
            found.append(message)
    return found, []


class MavlinkStream:
    """Decoder of a byte stream that arrives in pieces. After invalid bytes, it resynchronises to the next frame."""

    def __init__(self) -> None:
        self._left = b""

    def feed(self, data: bytes) -> tuple[list[MavlinkMessage], list[str]]:
        """Return the messages that these bytes complete, and the reasons for unusable bytes."""
        found: list[MavlinkMessage] = []
        faults: list[str] = []
        data, at = self._left + data, 0
        while at < len(data):
            start = data.find(MAGIC, at)
            if start != at:
                faults.append("magic")
            if start < 0:
                at = len(data)
                break
            at = start
            whole = len(data) >= at + HEADER and len(data) >= at + HEADER + data[at + 1] + CHECK + SIGNATURE * (
                data[at + 2] & 1
            )
            if not whole:
                break
            try:
                message, at = _one(data, at)
            except MalformedMessage as unusable:
                faults.append(str(unusable))
                at += 1
                continue
            if message is not None:
                found.append(message)
        self._left = data[at:]
        return found, faults


def _one(data: bytes, at: int) -> tuple[MavlinkMessage | None, int]:
    if data[at] != MAGIC:
        raise MalformedMessage("MAVLink 1" if data[at] == 0xFE else "magic")
    if len(data) < at + HEADER + CHECK:
        raise MalformedMessage("size")
    length, incompatible, _, _, system, component = data[at + 1 : at + 7]
    end = at + HEADER + length + CHECK
    if incompatible & ~1:
        raise MalformedMessage("flags")
    if len(data) < end + SIGNATURE * incompatible:
        raise MalformedMessage("size")
    after = end + SIGNATURE * incompatible
    layout = LAYOUTS.get(int.from_bytes(data[at + 7 : at + 10], "little"))
    if layout is None:
        return None, after
    if x25(data[at + 1 : end - CHECK] + bytes([layout.crc_extra])) != int.from_bytes(data[end - CHECK : end], "little"):
        raise MalformedMessage("checksum")
    return MavlinkMessage(layout.name, system, component, layout.unpack(data[at + HEADER : end - CHECK])), after
