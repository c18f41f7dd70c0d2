"""Bridge to QGroundControl and MAVSDK. A vehicle without an autopilot communicates with them over MAVLink. See
docs/bridges/mavlink.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from typing import Any, cast

import click
import numpy as np

from wavesim_bridges.core import STACK_TIMEOUT_S, BridgedVehicle, BridgeOptions, bridge, true_motion
from wavesim_bridges.geo_reference import WorldOrigin, origin_of, origin_options
from wavesim_bridges.mavlink_codec import LAYOUTS, MavlinkMessage, MavlinkWriter, read
from wavesim_bridges.mavlink_mission import ACTIVE, NOT_STARTED, PAUSED, MavlinkMission
from wavesim_bridges.pilot import BoatPilot, RovPilot, Setpoint, pilot_for
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.frames import euler

GCS_PORT, SDK_PORT = 14550, 14540
TICK_S = 0.02  #: interval in s of wall time at which the bridge checks which messages are due
#: flight modes, numbered as in PX4: the main mode in the third byte, the sub-mode in the fourth
MANUAL, HOLD, MISSION, OFFBOARD = 1 << 16, 4 << 16 | 3 << 24, 4 << 16 | 4 << 24, 6 << 16
MODES: dict[tuple[float, float], int] = {(1, 0): MANUAL, (4, 0): HOLD, (4, 3): HOLD, (4, 4): MISSION, (6, 0): OFFBOARD}
NAMES = {
    MANUAL: ("Manual", 0),
    HOLD: ("Hold", 0),
    MISSION: ("Mission", 6),
    OFFBOARD: ("Offboard", 0),
}  #: for each mode, its name and its number among MAVLink's standard modes (0 if it is not a standard mode)
ACCEPTED, DENIED, UNSUPPORTED, FAILED = 0, 2, 3, 4
DEEP_M = 0.5  #: depth in m below which GPS has no fix
MANUAL_SPEED, MANUAL_RATE = 1.0, 0.8  #: speed (m/s) and turn rate (rad/s) at full deflection of a stick
#: messages that are sent without a request, and their rates (Hz)
RATES = {
    "HEARTBEAT": 1.0,
    "SYS_STATUS": 1.0,
    "EXTENDED_SYS_STATE": 1.0,
    "HOME_POSITION": 0.5,
    "SYSTEM_TIME": 1.0,
    "MISSION_CURRENT": 1.0,
    "CURRENT_MODE": 0.5,
    "GPS_RAW_INT": 5.0,
    "VFR_HUD": 5.0,
    "ATTITUDE": 25.0,
    "ATTITUDE_QUATERNION": 10.0,
    "LOCAL_POSITION_NED": 25.0,
    "GLOBAL_POSITION_INT": 25.0,
}
_SENSORS = 1 | 2 | 4 | 0x20 | 0x10000000  # gyro, accelerometer, compass, GPS, ready to be armed
_POSITION, _VELOCITY, _YAW, _YAW_RATE = (1, 2, 4), (8, 16, 32), 1024, 2048  # bits of a mask: set means "ignore"
_NED, _OF_BODY = {1, 7}, {8, 9, 12}


class MavlinkVehicle:
    """Vehicle's side of a MAVLink connection. It uses neither sockets nor a clock: input and output are bytes, and the
    time is an argument.

    ``now`` is wall time in s. A setpoint from a ground station is valid for one second of wall time.
    """

    def __init__(self, system: int, origin: WorldOrigin, drop: Callable[[str], None]) -> None:
        self.origin, self.armed, self.mode = origin, False, MANUAL
        self.motion: VehicleMotion | None = None
        self.is_boat = False
        self._writer, self._drop = MavlinkWriter(system, 1), drop
        self._periods = {name: 1.0 / rate for name, rate in RATES.items()}
        self._next = dict.fromkeys(RATES, 0.0)
        self._setpoints: dict[int, tuple[float, Setpoint]] = {}  # by mode: arrival time and content
        self.mission = MavlinkMission(self._writer, origin)
        self._hold_setpoint = Setpoint()  # position to hold in HOLD
        self._unsent_frames: list[bytes] = []  # of the current mission
        self._handlers: dict[str, Callable[[MavlinkMessage, float], list[bytes]]] = {
            "COMMAND_LONG": self._command,
            "COMMAND_INT": self._command,
            "PING": self._ping,
            "TIMESYNC": self._timesync,
            "PARAM_REQUEST_LIST": self._parameter,
            "PARAM_REQUEST_READ": self._parameter,
            "PARAM_SET": self._parameter,
            **dict.fromkeys(self.mission.names, self.mission.receive),
            "SET_MODE": self._set_mode,
            "MANUAL_CONTROL": self._manual,
            "SET_POSITION_TARGET_LOCAL_NED": self._local,
            "SET_POSITION_TARGET_GLOBAL_INT": self._global,
        }

    # -- receiving

    def receive(self, data: bytes, now: float) -> list[bytes]:
        """Process a datagram and return the answers."""
        messages, faults = read(data)
        for fault in faults:
            self._drop(fault)
        answers: list[bytes] = []
        for m in messages:
            target = m.fields.get("target_system", m.fields.get("target", 0))
            call = self._handlers.get(m.name)
            if (
                call is not None
                and target in (0, self._writer.system)
                and m.fields.get("target_component", 0) in (0, 1)
            ):
                answers += call(m, now)
        return answers

    def current_setpoint(self, now: float) -> Setpoint | None:
        """Return the current setpoint for the pilot. None means that the thrusters must stop."""
        if self.mode in (HOLD, MISSION):
            wish = self.mission.setpoint() if self.mode == MISSION else None
            return (wish or self._hold_setpoint) if self.armed else None
        at, wish = self._setpoints.get(self.mode, (-math.inf, None))
        return wish if self.armed and now - at <= STACK_TIMEOUT_S else None

    def update_motion(self, motion: VehicleMotion) -> None:
        """Store a new state of the vehicle."""
        if self.motion is None:
            self._set_hold_setpoint(motion)
        self.motion = motion
        if self.armed and self.mode == MISSION:
            self._unsent_frames += self.mission.update_progress(motion, level=self.is_boat)

    def _set_hold_setpoint(self, motion: VehicleMotion) -> None:
        self._hold_setpoint = Setpoint(motion.position.copy(), heading=float(euler(motion.attitude)[2]))

    def _enter_mode(self, mode: int | None) -> bool:
        if mode is None or (mode == MISSION and not self.mission.items):
            return False
        if self.motion is not None and mode != self.mode:
            self._set_hold_setpoint(self.motion)
        if mode == MISSION and self.mission.complete:
            self.mission.go_to(0)
        self.mode = mode
        self._next["HEARTBEAT"] = self._next["CURRENT_MODE"] = self._next["MISSION_CURRENT"] = 0.0
        return True

    def _command(self, m: MavlinkMessage, now: float) -> list[bytes]:
        f = m.fields
        result, more = ACCEPTED, list[bytes]()
        first, second = f["param1"], f["param2"]
        match f["command"]:
            case 400 if first in (0.0, 1.0):
                self._arm(first == 1.0)
            case 176 if self._enter_mode(_mode(second, f["param3"])):
                pass
            case 262:
                result = ACCEPTED if first == NAMES[MISSION][1] and self._enter_mode(MISSION) else FAILED
            case 300 if self._enter_mode(MISSION):
                pass
            case 224 if self.mission.items and math.isfinite(first) and self.mission.go_to(int(first)):
                more = self.mission.mission_current_frame()
            case 400 | 176 | 300 | 224:
                result = DENIED
            case 511 if self._name(first) in RATES and math.isfinite(second):
                name = self._name(first)
                self._periods[name] = (
                    math.inf if second < 0 else max(second * 1e-6, TICK_S) if second else 1.0 / RATES[name]
                )
                self._next[name] = now
            case 510:
                more = self._interval(first)
            case 512 if frames := self._frames(self._name(first), second):
                more = frames
            case 410:
                more = self._frames("HOME_POSITION")
            case 519:
                more = self._frames("PROTOCOL_VERSION")
            case 520:
                more = self._frames("AUTOPILOT_VERSION")
            case 511 | 512:
                result = DENIED
            case _:
                result = UNSUPPORTED
        return [
            self._writer.frame(
                "COMMAND_ACK", command=f["command"], result=result, target_system=m.system, target_component=m.component
            ),
            *more,
        ]

    @staticmethod
    def _name(number: float) -> str:
        return LAYOUTS[int(number)].name if math.isfinite(number) and int(number) in LAYOUTS else ""

    def _interval(self, number: float) -> list[bytes]:
        """Encode a message that states the interval of another message in us. The interval is 0 for an unknown message,
        and -1 for a message that is sent on request only.
        """
        name = self._name(number)
        period = self._periods.get(name, 0.0)
        interval_us = round(1e6 * period) if math.isfinite(period) else -1
        return [self._writer.frame("MESSAGE_INTERVAL", message_id=int(number) if name else 0, interval_us=interval_us)]

    def _arm(self, armed: bool) -> None:
        self.armed = armed
        self._next["HEARTBEAT"] = 0.0

    def _set_mode(self, m: MavlinkMessage, now: float) -> list[bytes]:
        mode = m.fields["custom_mode"]
        if m.fields["base_mode"] & 1:
            self._enter_mode(_mode(mode >> 16 & 0xFF, mode >> 24))
        return []

    def _ping(self, m: MavlinkMessage, now: float) -> list[bytes]:
        if m.fields["target_system"]:
            return []  # an answer to a message of this vehicle
        return [self._writer.frame("PING", **{**m.fields, "target_system": m.system, "target_component": m.component})]

    def _timesync(self, m: MavlinkMessage, now: float) -> list[bytes]:
        if m.fields["tc1"]:
            return []
        return [self._writer.frame("TIMESYNC", tc1=int(now * 1e9), ts1=m.fields["ts1"])]

    def _parameter(self, m: MavlinkMessage, now: float) -> list[bytes]:
        """Encode the list of parameters, because ground stations wait for it. It contains only one parameter, the
        system ID.
        """
        if m.name == "PARAM_REQUEST_READ" and m.fields["param_index"] != 0 and m.fields["param_id"] != "MAV_SYS_ID":
            return []
        return [
            self._writer.frame(
                "PARAM_VALUE",
                param_id="MAV_SYS_ID",
                param_value=float(self._writer.system),
                param_type=9,
                param_count=1,
            )
        ]

    def _manual(self, m: MavlinkMessage, now: float) -> list[bytes]:
        sticks = {k: m.fields[k] for k in "xyzr"}
        if any(abs(v) > 1000 for v in sticks.values() if v != 32767):
            self._drop("stick value beyond 1000")
            return []
        x, y, r = (0.0 if sticks[k] == 32767 else sticks[k] / 1000.0 for k in "xyr")
        z = 0.0 if sticks["z"] == 32767 else sticks["z"] / 500.0 - 1.0
        velocity = MANUAL_SPEED * np.array([x, y, -min(max(z, -1.0), 1.0)])
        self._setpoints[MANUAL] = (
            now,
            Setpoint(velocity=velocity, body_velocity=True, rate=MANUAL_RATE * r if r else math.nan),
        )
        return []

    def _local(self, m: MavlinkMessage, now: float) -> list[bytes]:
        return self._target(m, now, tuple(m.fields[k] for k in "xyz"), m.fields["coordinate_frame"])

    def _global(self, m: MavlinkMessage, now: float) -> list[bytes]:
        f = m.fields
        if f["coordinate_frame"] not in (0, 3, 5, 6):
            self._drop("frame")
            return []
        latitude, longitude = 1e-7 * f["lat_int"], 1e-7 * f["lon_int"]
        if abs(latitude) > 90.0 or abs(longitude) > 180.0:
            self._drop("latitude or longitude out of range")
            return []
        return self._target(m, now, (*self.origin.metres(latitude, longitude), -f["alt"]), 1)

    def _target(self, m: MavlinkMessage, now: float, position: tuple[float, ...], frame: int) -> list[bytes]:
        """Store a setpoint. ``frame`` is the MAVLink frame of the velocity; a position must be in frame 1, the local
        NED frame.
        """
        f, mask = m.fields, m.fields["type_mask"]

        def used(values: tuple[float, ...], bits: tuple[int, ...]) -> list[float | None]:
            return [None if mask & bit else v for v, bit in zip(values, bits, strict=True)]

        place = used(position, _POSITION)
        speed = used(tuple(f[k] for k in ("vx", "vy", "vz")), _VELOCITY)
        heading, rate = used((f["yaw"], f["yaw_rate"]), (_YAW, _YAW_RATE))
        if frame not in _NED | _OF_BODY or (frame != 1 and place != [None] * 3):
            self._drop("frame")
        elif any(v is not None and not math.isfinite(v) for v in (*place, *speed, rate)):
            self._drop("not finite")
        else:
            p, v = (np.array([math.nan if a is None else a for a in b]) for b in (place, speed))
            if heading is None or not math.isfinite(heading):
                heading = math.nan
            turn = math.nan if rate is None else rate
            self._setpoints[OFFBOARD] = now, Setpoint(p, v, frame in _OF_BODY, heading, turn)
        return []

    # -- sending

    def take_due_frames(self, now: float) -> list[bytes]:
        """Return the messages that are due now."""
        found, self._unsent_frames = self._unsent_frames + self.mission.take_due_frames(now), []
        for name, at in self._next.items():
            if now >= at:
                self._next[name] = (
                    max(at + self._periods[name], now) if math.isfinite(self._periods[name]) else math.inf
                )
                found += self._frames(name)
        return found

    def _frames(self, name: str, which: float = 0.0) -> list[bytes]:
        """Encode a message with its current content. For AVAILABLE_MODES, ``which`` selects one mode, counted from 1; 0
        selects all modes.
        """
        if name == "AVAILABLE_MODES":
            return [
                self._writer.frame(
                    name,
                    number_modes=len(NAMES),
                    mode_index=k,
                    standard_mode=standard,
                    custom_mode=mode,
                    mode_name=text,
                )
                for k, (mode, (text, standard)) in enumerate(NAMES.items(), 1)
                if which in (0.0, k)
            ]
        if name == "MISSION_CURRENT":
            going = self.armed and self.mode == MISSION
            return self.mission.mission_current_frame(
                ACTIVE if going else PAUSED if self.mission.current else NOT_STARTED
            )
        content = self._content(name)
        return [] if content is None else [self._writer.frame(name, **content)]

    def _content(self, name: str) -> dict[str, Any] | None:
        """Return the content of a message, or None if the message is unknown or not available yet."""
        if call := getattr(self, f"_is_{name.lower()}", None):
            return cast("dict[str, Any]", call())
        call = getattr(self, f"_of_{name.lower()}", None)
        return None if call is None or self.motion is None else cast("dict[str, Any]", call(self.motion))

    # independent of the motion: a station that connects before the world starts must identify the vehicle

    def _is_heartbeat(self) -> dict[str, Any]:
        base = 1 | (64 if self.mode == MANUAL else 12 if self.mode == MISSION else 8) | (128 if self.armed else 0)
        return {
            "type": 11 if self.is_boat else 12,
            "base_mode": base,
            "custom_mode": self.mode,
            "mavlink_version": 3,
            "system_status": 4 if self.armed else 3,
        }

    def _is_sys_status(self) -> dict[str, Any]:
        names = ("present", "enabled", "health")
        return {
            **{f"onboard_control_sensors_{n}": _SENSORS for n in names},
            "voltage_battery": 0xFFFF,
            "current_battery": -1,
            "battery_remaining": -1,
        }

    def _is_extended_sys_state(self) -> dict[str, Any]:
        return {"landed_state": 2 if self.armed else 1}

    def _is_current_mode(self) -> dict[str, Any]:
        return {"standard_mode": NAMES[self.mode][1], "custom_mode": self.mode, "intended_custom_mode": self.mode}

    def _of_vfr_hud(self, m: VehicleMotion) -> dict[str, Any]:
        heading = round(math.degrees(float(euler(m.attitude)[2]))) % 360
        speed, depth, down = math.hypot(m.velocity[0], m.velocity[1]), float(m.position[2]), float(m.velocity[2])
        return {"groundspeed": speed, "heading": heading, "alt": -depth, "climb": -down}

    def _of_system_time(self, m: VehicleMotion) -> dict[str, Any]:
        return {"time_boot_ms": _ms(m)}

    def _is_home_position(self) -> dict[str, Any]:
        return {
            "latitude": round(self.origin.latitude * 1e7),
            "longitude": round(self.origin.longitude * 1e7),
            "q": (1, 0, 0, 0),
        }

    def _of_gps_raw_int(self, m: VehicleMotion) -> dict[str, Any]:
        speed = math.hypot(m.velocity[0], m.velocity[1])
        course = round(math.degrees(math.atan2(m.velocity[1], m.velocity[0])) * 100) % 36000
        at_surface = m.position[2] <= DEEP_M
        return {
            "time_usec": round(m.time * 1e6),
            "fix_type": 3 if at_surface else 1,
            **self._place(m),
            "eph": 100,
            "epv": 100,
            "vel": min(round(100 * speed), 0xFFFF),
            "cog": course,
            "satellites_visible": 12 if at_surface else 0,
        }

    def _of_attitude(self, m: VehicleMotion) -> dict[str, Any]:
        angles = zip(("roll", "pitch", "yaw"), euler(m.attitude), m.rates, strict=True)
        return {"time_boot_ms": _ms(m), **{k: float(v) for n, a, r in angles for k, v in ((n, a), (f"{n}speed", r))}}

    def _of_attitude_quaternion(self, m: VehicleMotion) -> dict[str, Any]:
        q, rates = map(float, m.attitude), map(float, m.rates)
        return {
            "time_boot_ms": _ms(m),
            **dict(zip(("q1", "q2", "q3", "q4"), q, strict=True)),
            **dict(zip(("rollspeed", "pitchspeed", "yawspeed"), rates, strict=True)),
        }

    def _of_local_position_ned(self, m: VehicleMotion) -> dict[str, Any]:
        values = map(float, (*m.position, *m.velocity))
        return {"time_boot_ms": _ms(m), **dict(zip(("x", "y", "z", "vx", "vy", "vz"), values, strict=True))}

    def _of_global_position_int(self, m: VehicleMotion) -> dict[str, Any]:
        v = (min(max(round(100 * float(a)), -32768), 32767) for a in m.velocity)
        heading = round(math.degrees(float(euler(m.attitude)[2])) * 100) % 36000
        place = self._place(m)
        return {
            "time_boot_ms": _ms(m),
            **place,
            "relative_alt": place["alt"],
            "hdg": heading,
            **dict(zip(("vx", "vy", "vz"), v, strict=True)),
        }

    def _is_autopilot_version(self) -> dict[str, Any]:
        takes = 4 | 8 | 128 | 256 | 8192  # missions, COMMAND_INT, local and global setpoints, MAVLink 2
        return {"capabilities": takes, "flight_sw_version": 0x00010000, "uid": self._writer.system}

    def _is_protocol_version(self) -> dict[str, Any]:
        return {"version": 200, "min_version": 200, "max_version": 200}

    def _place(self, m: VehicleMotion) -> dict[str, int]:
        latitude, longitude = self.origin.degrees(float(m.position[0]), float(m.position[1]))
        return {"lat": round(latitude * 1e7), "lon": round(longitude * 1e7), "alt": round(-1e3 * float(m.position[2]))}


def _mode(main: float, sub: float) -> int | None:
    """Return the requested mode. The command contains the mode either as separate main and sub-modes (as in PX4) or as
    one number (as in QGroundControl).
    """
    return MODES.get((main, sub)) or (int(main) if main in NAMES else None)


def _ms(m: VehicleMotion) -> int:
    return round(m.time * 1e3) & 0xFFFFFFFF


class GroundStationSocket(asyncio.DatagramProtocol):
    """Socket for both kinds of ground station: QGroundControl and MAVSDK."""

    def __init__(self, station: MavlinkVehicle, instance: int) -> None:
        self._station = station
        self._addresses = [("127.0.0.1", port + instance) for port in (GCS_PORT, SDK_PORT)]
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the socket when it has been opened."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        """Process a datagram from a ground station and send the answers to its sender."""
        if self._transport is not None:
            for frame in self._station.receive(data, time.monotonic()):
                self._transport.sendto(frame, address)

    def error_received(self, error: Exception) -> None:
        """Ignore errors that report a closed port: no ground station is listening there."""

    async def send_due(self) -> None:
        """Send due messages while the bridge is running."""
        while True:
            for frame in self._station.take_due_frames(time.monotonic()):
                for address in self._addresses:
                    if self._transport is not None:
                        self._transport.sendto(frame, address)
            await asyncio.sleep(TICK_S)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class MavlinkBridge:
    """Vehicle whose built-in pilot follows the setpoints of ground stations. Its thrusters stop when the vehicle is
    disarmed, or when the ground stations stop sending.
    """

    def __init__(self, seat: BridgeOptions, origin: WorldOrigin, instance: int) -> None:
        self.vehicle = BridgedVehicle(seat, self._on_joined)
        self.station = MavlinkVehicle(1 + instance, origin, self.vehicle.count_dropped)
        self.port = GroundStationSocket(self.station, instance)
        self._pilot: RovPilot | BoatPilot  # set when the vehicle has joined
        self._vehicle_present = asyncio.Event()

    async def run(self) -> None:
        """Run until the simulation ends."""
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self.port, local_addr=("127.0.0.1", 0))
        sender = asyncio.create_task(self._send())
        try:
            async for broker, step in self.vehicle.steps():
                self._answer_step(broker, step)
        finally:
            sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sender
            self.port.close()

    def _on_joined(self, broker: AsyncBroker) -> None:
        """Set the vehicle type before the first heartbeat, because ground stations keep the type of the first
        heartbeat.
        """
        self._pilot = pilot_for(broker.actuators)
        self.station.is_boat = isinstance(self._pilot, BoatPilot)
        self._vehicle_present.set()

    async def _send(self) -> None:
        await self._vehicle_present.wait()
        await self.port.send_due()

    def _answer_step(self, broker: AsyncBroker, step: Step) -> None:
        pilot = self._pilot
        motion = true_motion(step, "the built-in pilot")
        self.station.update_motion(motion)
        setpoint = self.station.current_setpoint(time.monotonic())
        if setpoint is None:
            pilot.rest()
            broker.answer([0.0] * len(broker.actuators))
        else:
            broker.answer(pilot.commands(setpoint, motion, self.vehicle.options.period))


@bridge("mavlink", period=0.02)
@origin_options
@click.option(
    "--instance",
    type=click.IntRange(0, 254),
    default=0,
    show_default=True,
    help="Number that is added to the port numbers and to the MAVLink system ID.",
)
def command(
    seat: BridgeOptions, latitude: float | None, longitude: float | None, config: str | None, instance: int
) -> None:
    """Fly with QGroundControl or MAVSDK, without an autopilot. Both can detect, arm and command the vehicle, and a
    simple built-in pilot steers it.
    """
    asyncio.run(MavlinkBridge(seat, origin_of(latitude, longitude, config), instance).run())
