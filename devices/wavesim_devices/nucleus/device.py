"""Virtual Nucleus with its ports, measurements and commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import numpy as np

from wavesim_devices.nmea import sentence
from wavesim_devices.nucleus import packets
from wavesim_devices.nucleus.packets import Attitude, Navigation, WaterState, packet
from wavesim_devices.nucleus.settings import GROUPS, default_values, text_of
from wavesim_devices.ports import Bytes, Connection
from wavesim_devices.seabird import ATMOSPHERE
from wavesim_devices.splitters import LineSplitter
from wavesim_sdk.broker import Step
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.frames import quaternion, rotation
from wavesim_sdk.wire.state import Value

TYPES = ("dvl", "ahrs", "imu", "magnetometer", "ctd", "pressure")  #: sensor types that the Nucleus uses
BEAMS = 3
PASSWORD = "nortek"
PROMPT, WELCOME = b"Please enter password:\r\n", b"Welcome to Nortek Nucleus (WaVeSim)\r\n"
UNKNOWN_POSITION = 9999.0  #: reported value of LAT and LONG if there is no start position
GAUSS, METRES_PER_DBAR, EARTH = 1e4, 0.993, 6_371_000.0
ID = {"SN": str(packets.SERIAL), "STR": '"Nucleus1000"'}
FIRMWARE = {"STR": '"1.7.8"', "MAJOR": "1", "MINOR": "7", "PATCH": "8"}
_EPOCH = datetime.fromtimestamp(0, UTC)


class _CommandError(Exception):
    """Raised for a command that is answered with ERROR. The text of the exception is the answer to GETERROR."""


class Nucleus:
    """Virtual Nucleus. Packets go to all hosts that have logged in; replies go only to the host that sent the command."""

    def __init__(self, sound_speed: float, sensors: Mapping[str, str]) -> None:
        self.sound_speed, self.sensors = sound_speed, sensors
        self.settings, self.saved = default_values(), default_values()
        self.is_measuring, self.triggers = False, 0
        self.hosts: list[StreamConnection] = []
        self._now_ns = self._clock_offset_us = 0
        self._last: dict[str, int] = {}  # number of the last period of each packet
        self._last_ping_ns = -1
        self._velocity = (math.nan,) * 3
        self._altitude = math.nan
        self._moved: tuple[int, np.ndarray] | None = None  # time and velocity of the last bottom track, NED
        self._position = np.zeros(3)

    def connect(self, port: str, send: Bytes) -> Connection:
        """Create the connection to a host on the `command`, `stream` or `serial` port."""
        host = StreamConnection(self, send) if port == "stream" else CommandConnection(self, send, port == "command")
        self.hosts.append(host)
        return host

    # -------------------------------------------------------------- clock and measurements

    def unix_us(self, time_ns: int) -> int:
        """Return the time of the instrument's clock at a simulation time, as Unix time in us."""
        return round(EPOCH.timestamp()) * 1_000_000 + time_ns // 1000 + self._clock_offset_us

    @property
    def clock(self) -> datetime:
        """Current time of the instrument's clock."""
        return _EPOCH + timedelta(microseconds=self.unix_us(self._now_ns))

    def set_clock(self, time: datetime) -> None:
        """Set the clock of the instrument."""
        self._clock_offset_us += (time - self.clock) // datetime.resolution

    def start(self) -> None:
        """Start measuring, either from the origin or from the position in the mission settings."""
        self.is_measuring, self._moved, self._position, self.triggers = True, None, np.zeros(3), 0
        self._last.clear()

    def step(self, step: Step) -> None:
        """Process a new simulation state: send the packets that are due."""
        self._now_ns = step.state.time_ns
        if not self.is_measuring:
            return
        values = {t: v for t, name in self.sensors.items() if (v := step.sensors.get(name)) is not None}
        water, attitude = self._water(values), None
        if (ahrs := values.get("ahrs")) is not None:
            attitude = self._attitude(ahrs, water)
        if (dvl := values.get("dvl")) is not None and dvl.time_ns != self._last_ping_ns and self._pings(dvl.time_ns):
            self._last_ping_ns = dvl.time_ns
            self._ping(dvl, water, attitude)
        if (imu := values.get("imu")) is not None and self._is_due("IMU", imu.time_ns):
            numbers = *imu.force, *imu.rates, water.temperature
            self._send(packets.IMU, packets.vectors(self.unix_us(imu.time_ns), 1, numbers))
        if (field := values.get("magnetometer")) is not None and self._is_due("MAG", field.time_ns):
            numbers = tuple(GAUSS * b for b in field.field)
            self._send(packets.MAGNETOMETER, packets.vectors(self.unix_us(field.time_ns), 0, numbers))
        if ahrs is not None and attitude is not None:
            if self._is_due("AHRS", ahrs.time_ns):
                self._send(packets.AHRS, attitude.data(self.unix_us(ahrs.time_ns)))
            if self._is_due("NAV", ahrs.time_ns):
                self._navigate(ahrs, attitude, water)

    def _is_due(self, group: str, time_ns: int) -> bool:
        """Return whether a packet is due: it is enabled, and it has not yet been sent in the current period."""
        settings = self.settings[group]
        period = time_ns * int(settings["FREQ"]) // 10**9
        if settings.get("DS") == "OFF" or self._last.get(group, -1) >= period:
            return False
        self._last[group] = period
        return True

    def _pings(self, time_ns: int) -> bool:
        if self.settings["TRIG"]["SRC"] == "COMMAND":
            self.triggers, is_triggered = max(self.triggers - 1, 0), self.triggers > 0
            return is_triggered
        return self._is_due("TRIG", time_ns)

    def _send(self, identifier: int, data: bytes) -> None:
        for host in list(self.hosts):
            host.send_packet(packet(identifier, data))

    def _water(self, values: Mapping[str, Value]) -> WaterState:
        mission = self.settings["MISSION"]
        ctd = values.get("ctd")
        gauge = values.get("pressure") or ctd
        pressure = 0.0 if gauge is None else gauge.pressure - ATMOSPHERE
        temperature = 15.0 if ctd is None else ctd.temperature
        return WaterState(float(mission["SV"]) or self.sound_speed, temperature, pressure)

    def _attitude(self, ahrs: Value, water: WaterState) -> Attitude:
        q = quaternion(ahrs.roll, ahrs.pitch, ahrs.heading)
        angles = math.degrees(ahrs.roll), math.degrees(ahrs.pitch), math.degrees(ahrs.heading)
        matrix = rotation(q).flatten().tolist()
        declination = float(self.settings["MISSION"]["DECL"])
        return Attitude(angles, q.tolist(), matrix, declination, water.pressure * METRES_PER_DBAR)

    def _ping(self, dvl: Value, water: WaterState, attitude: Attitude | None) -> None:
        scale, maximum = water.sound_speed / self.sound_speed, float(self.settings["MISSION"]["RANGE"])
        good = [dvl.ranges[k] <= maximum for k in range(BEAMS)]
        beams = [dvl.beams[k] * scale if good[k] else math.nan for k in range(BEAMS)]
        ranges = [dvl.ranges[k] * scale if good[k] else math.nan for k in range(BEAMS)]
        x, y, z = (v * scale if all(good) else math.nan for v in dvl.bottom)
        self._velocity, self._altitude = (x, y, z), dvl.altitude * scale if all(good) else math.nan
        at = self.unix_us(dvl.time_ns)
        if self.settings["BT"]["DS"] == "ON":
            self._send(packets.BOTTOM_TRACK, packets.track(at, water, beams, ranges, self._velocity))
        if self.settings["BT"]["WT"] == "ON":
            none = [math.nan] * BEAMS
            self._send(packets.WATER_TRACK, packets.track(at, water, none, none, [v * scale for v in dvl.water]))
        if self.settings["ALTI"]["DS"] == "ON":
            self._send(packets.ALTIMETER, packets.altimeter(at, water, self._altitude))
        if attitude is not None and math.isfinite(x):
            velocity = np.reshape(attitude.matrix, (3, 3)) @ np.array(self._velocity)
            if self._moved is not None:
                seconds = (dvl.time_ns - self._moved[0]) * 1e-9
                self._position = self._position + 0.5 * (self._moved[1] + velocity) * seconds
            self._moved = dvl.time_ns, velocity

    def _navigate(self, ahrs: Value, attitude: Attitude, water: WaterState) -> None:
        mission, (north, east) = self.settings["MISSION"], self._position[:2].tolist()
        velocity = np.zeros(3) if self._moved is None else self._moved[1]
        latitude: float | None = float(mission["LAT"])
        longitude: float | None = float(mission["LONG"])
        if latitude is None or longitude is None or UNKNOWN_POSITION in (latitude, longitude):
            latitude = longitude = None
        else:
            longitude += math.degrees(east / (EARTH * math.cos(math.radians(latitude))))
            latitude += math.degrees(north / EARTH)
        body = [v if math.isfinite(v) else 0.0 for v in self._velocity]
        course = math.degrees(math.atan2(velocity[1], velocity[0])) % 360.0
        rates = [math.degrees(w) for w in ahrs.rates]
        place = (north, east, attitude.depth)
        found = Navigation(course, self._altitude, latitude, longitude, place, velocity.tolist(), body, rates)
        self._send(packets.INS, found.data(self.unix_us(ahrs.time_ns), attitude, water))


class StreamConnection:
    """Connection to a host on the packet port. It ignores bytes from the host."""

    def __init__(self, nucleus: Nucleus, send: Bytes) -> None:
        self.nucleus, self.send = nucleus, send

    def receive(self, data: bytes) -> None:
        """Ignore bytes from the host."""

    def send_packet(self, data: bytes) -> None:
        """Send a packet."""
        self.send(data)

    def close(self) -> None:
        """Remove the host after it has closed the connection."""
        self.nucleus.hosts.remove(self)


class CommandConnection(StreamConnection):
    """Connection to a host on the command port or the serial port. Over TCP, the command port requires a password."""

    def __init__(self, nucleus: Nucleus, send: Bytes, asks_password: bool) -> None:
        super().__init__(nucleus, send)
        self.errors, self.last_error = 0, "No error"
        self._lines = LineSplitter(1024)
        self._logged_in = not asks_password
        self._commands: dict[str, Callable[[list[str]], list[str]]] = {
            "START": self._start,
            "STOP": self._stop,
            "TRIG": self._trigger,
            "REBOOT": self._reboot,
            "SAVE": self._save,
            "SETDEFAULT": self._set_default,
            "RESTORE": self._restore,
            "SETCLOCKSTR": self._set_clock,
            "GETCLOCKSTR": lambda _: [nucleus.clock.strftime('TIME="%Y-%m-%d %H:%M:%S"')],
            "ID": lambda keys: [_selected(ID, keys)],
            "GETFW": lambda keys: [_selected(FIRMWARE, keys)],
            "GETERROR": lambda _: [f'STR="{self.last_error}"'],
            "GETALL": lambda _: self._all(),
        }
        if asks_password:
            send(PROMPT)

    def send_packet(self, data: bytes) -> None:
        """Send a packet if the host has logged in."""
        if self._logged_in:
            self.send(data)

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from the host."""
        for line in self._lines.feed(data):
            if not self._logged_in:
                self._logged_in = line == PASSWORD
                self.errors += not self._logged_in
                self.send(WELCOME if self._logged_in else PROMPT)
            elif line.startswith("$"):
                self._receive_nmea(line)
            else:
                name, *arguments = line.split(",")
                found = self._execute(name, arguments)
                whole = name.strip().upper() == "GETALL"
                replies = ["ERROR"] if found is None else [*(t if whole else _values(t) for t in found), "OK"]
                self.send("".join(f"{text}\r\n" for text in replies).encode("ascii", errors="replace"))

    def _receive_nmea(self, line: str) -> None:
        body = line[1:].rpartition("*")[0] if "*" in line else line[1:]
        talker, _, rest = body.partition(",")
        if talker != "PNOR" or not body.isascii() or ("*" in line and sentence(body).decode().strip() != line):
            self._fail("wrong checksum or talker")
            found = None
        else:
            name, *arguments = rest.split(",")
            found = self._execute(name, arguments)
        if found is None:
            self.send(sentence("PNOR,ERROR"))
            return
        heads = [""] * len(found) if rest.startswith("GETALL") else [f"{rest.split(',')[0]},"] * len(found)
        self.send(
            b"".join(sentence(f"PNOR,{h}{text}") for h, text in zip(heads, found, strict=True)) + sentence("PNOR,OK")
        )

    def _fail(self, error: str) -> None:
        self.errors += 1
        self.last_error = error

    def _execute(self, name: str, arguments: list[str]) -> list[str] | None:
        """Execute a command and return the lines of its reply, or None if it fails."""
        name = name.strip().upper()
        try:
            if name in self._commands:
                return self._commands[name](arguments)
            group = name[3:].removesuffix("LIM")
            if group not in GROUPS or name[:3] not in ("GET", "SET"):
                raise _CommandError(f"unknown or unsupported command {name}")
            if name.startswith("SET"):
                return self._set(group, arguments)
            keys = [a.strip().upper() for a in arguments if a] or list(GROUPS[group])
            if missing := [k for k in keys if k not in GROUPS[group]]:
                raise _CommandError(f"unknown argument {missing[0]}")
            if name.endswith("LIM"):
                return [",".join(f"{k}=({GROUPS[group][k].limits})" for k in keys)]
            return [",".join(f"{k}={text_of(self.nucleus.settings[group][k])}" for k in keys)]
        except _CommandError as error:
            self._fail(str(error))
            return None

    def _only_idle(self) -> None:
        if self.nucleus.is_measuring:
            raise _CommandError("the instrument is measuring")

    def _set(self, group: str, arguments: list[str]) -> list[str]:
        self._only_idle()
        new: dict[str, float | str] = {}
        for argument in arguments:
            key, _, text = argument.partition("=")
            limit = GROUPS[group].get(key.strip().upper())
            value = None if limit is None else limit.parse(text)
            if value is None:
                allowed = f", limits {limit.limits}" if limit is not None else ""
                raise _CommandError(f"invalid argument {argument}{allowed}")
            new[key.strip().upper()] = value
        self.nucleus.settings[group].update(new)
        return []

    def _start(self, _: list[str]) -> list[str]:
        self._only_idle()
        self.nucleus.start()
        return []

    def _stop(self, _: list[str]) -> list[str]:
        self.nucleus.is_measuring = False
        return []

    def _trigger(self, _: list[str]) -> list[str]:
        if not self.nucleus.is_measuring or self.nucleus.settings["TRIG"]["SRC"] != "COMMAND":
            raise _CommandError("TRIG is valid only after START, and only if the trigger source is COMMAND")
        self.nucleus.triggers += 1
        return []

    def _reboot(self, _: list[str]) -> list[str]:
        self.nucleus.is_measuring, self.nucleus.settings = False, deepcopy(self.nucleus.saved)
        return []

    def _groups(self, arguments: list[str]) -> list[str]:
        """Return the groups of settings that ALL, CONFIG, MISSION, MAGCAL or COMM stands for."""
        parts = {"ALL": list(GROUPS), "MISSION": ["MISSION"], "CONFIG": [g for g in GROUPS if g != "MISSION"]}
        parts |= {"MAGCAL": [], "COMM": []}
        if len(arguments) != 1 or arguments[0].upper() not in parts:
            raise _CommandError("use ALL, CONFIG, MISSION, MAGCAL or COMM")
        self._only_idle()
        return parts[arguments[0].upper()]

    def _save(self, arguments: list[str]) -> list[str]:
        for group in self._groups(arguments):
            self.nucleus.saved[group] = dict(self.nucleus.settings[group])
        return []

    def _set_default(self, arguments: list[str]) -> list[str]:
        for group in self._groups(arguments):
            self.nucleus.settings[group] = default_values()[group]
        return []

    def _restore(self, arguments: list[str]) -> list[str]:
        for group in self._groups(arguments):
            self.nucleus.settings[group] = dict(self.nucleus.saved[group])
        return []

    def _set_clock(self, arguments: list[str]) -> list[str]:
        self._only_idle()
        key, _, text = ",".join(arguments).partition("=")
        try:
            time = datetime.strptime(text.strip('"'), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            time = None
        if key.upper() != "TIME" or time is None:
            raise _CommandError('use TIME="yyyy-mm-dd hh:mm:ss"')
        self.nucleus.set_clock(time)
        return []

    def _all(self) -> list[str]:
        """Return all settings as the commands that set them."""
        lines = [f"ID,{_selected(ID, [])}", f"GETFW,{_selected(FIRMWARE, [])}", 'GETHW,STR="C"']
        lines.append(self.nucleus.clock.strftime('SETCLOCKSTR,TIME="%Y-%m-%d %H:%M:%S"'))
        for group, values in self.nucleus.settings.items():
            lines.append(f"SET{group}," + ",".join(f"{k}={text_of(v)}" for k, v in values.items()))
        return lines


def _selected(values: Mapping[str, str], keys: list[str]) -> str:
    """Return `KEY=value` for the given keys, or for all keys if none are given."""
    chosen = [k.strip().upper() for k in keys if k] or list(values)
    if missing := [k for k in chosen if k not in values]:
        raise _CommandError(f"unknown argument {missing[0]}")
    return ",".join(f"{k}={values[k]}" for k in chosen)


def _values(text: str) -> str:
    """Return the values in `KEY=value,...` without the keys. Only replies in NMEA format contain keys."""
    return ",".join(part.partition("=")[2] or part for part in text.split(","))
