"""Water Linked Sonar 3D-15: images over UDP, and the HTTP interface (release 1.8.0). Time is simulation time."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_devices.cerulean import check_sonar_type
from wavesim_devices.http import NOT_FOUND, HttpAnswer, HttpConnection
from wavesim_devices.json_fields import ChoiceField, Fields, InvalidContent, NumberField, check_fields
from wavesim_devices.ports import Bytes, Connection, UdpTarget
from wavesim_devices.sensor_selection import NewValueFilter
from wavesim_devices.waterlinked_sonar import packets
from wavesim_sdk.broker import Step
from wavesim_sdk.epoch import unix, utc
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.onboard import BrokerBase

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

TYPES = ("sonar", "imu")  #: sensors that the device reads
GROUP, PORT = "224.0.0.96", 4747
LOW, HIGH = "low-frequency", "high-frequency"  #: names of the modes
MAX_RANGE = {LOW: 15.0, HIGH: 4.0}  #: maximum range of the instrument, m
PIXEL_SCALE = 0.001  #: unit of the pixels of a range image, m
STEPS_PER_DB = 5.0  #: pixel values per dB in the strength image; a factor of 10 in amplitude spans 100 values
#: duration of a batch of IMU samples in ns; it is short enough to keep the latency of the samples below 100 ms
IMU_BATCH_NS = 80_000_000
TEMPERATURE_C = 30.0
ABOUT = {
    "chipid": "0x57415645",
    "hardware_revision": 6,
    "is_ready": True,
    "product_id": 21045,
    "product_name": "Sonar 3D-15",
    "variant": "",
    "version": "1.8.0 (wavesim)",
    "version_short": "1.8.0",
}
_API = "/api/v1/integration/"
_RANGE: Fields = {"min": NumberField(0.0, 1e4), "max": NumberField(0.0, 1e4)}
_SPEED = NumberField(1000.0, 2000.0)
_MODE, _SALINITY = ChoiceField((LOW, HIGH)), ChoiceField(("salt", "fresh"))
_UDP_MODE, _UDP_PORT = ChoiceField(("multicast", "unicast", "disabled")), NumberField(0, 65535, is_whole=True)


def _check_flag(content: Any) -> bool:
    if not isinstance(content, bool):
        raise InvalidContent("the content must be true or false")
    return content


def _check_text(content: Any, name: str) -> str:
    if not isinstance(content, dict) or not isinstance(content.get(name), str):
        raise InvalidContent(f"the content must be an object with the text '{name}'")
    return str(content[name])


def _status(name: str, message: str, status: str = "ok") -> dict[str, Any]:
    return {"id": f"{name}-{status}", "message": message, "operational": True, "status": status}


class _UdpConnection:
    """Connection to the receivers of the sonar's datagrams. The sonar ignores every datagram from a receiver and counts
    it as an error.
    """

    def __init__(self) -> None:
        self.errors = 0

    def receive(self, data: bytes) -> None:
        self.errors += 1

    def close(self) -> None:
        pass


class Sonar3D15:
    """Virtual Sonar 3D-15. ``sonars`` maps each available mode to the name of the 3D sonar that provides it."""

    def __init__(
        self,
        broker: BrokerBase,
        sonars: Mapping[str, str],
        imu: str,
        target: UdpTarget,
        multicast: tuple[str, int] = (GROUP, PORT),
        protocol: str = "RIP2",
    ) -> None:
        self.broker, self.sonars, self.protocol = broker, sonars, protocol
        self.target, self.multicast = target, multicast
        self.errors = 0  #: number of rejected requests
        self.enabled, self.mode, self.salinity = False, next(iter(sonars)), "salt"
        self.speed_of_sound = 0.0  #: speed of sound that a host has set, m/s; 0 = the true speed of sound
        self.udp: dict[str, Any] = {"mode": "disabled", "unicast_destination_ip": "", "unicast_destination_port": 0}
        self._reach = dict(MAX_RANGE)  # the configured range of a sonar may be shorter; its frames tell
        self.range = (0.0, self._reach[self.mode])  #: minimum and maximum range in m
        self.ntp_address, self.clock_offset = "auto", timedelta()
        self.imu_enabled, self._imu, self._has_imu = False, NewValueFilter({"imu": imu} if imu else {}), bool(imu)
        self._samples: list[Any] = []
        self._batch, self._batch_end_ns, self._now_ns = 0, 0, 0
        self._send_datagram: Bytes = lambda data: None
        broker.subscribe_frames(sonars[self.mode])
        self._get: dict[str, Callable[[], Any]] = {
            "about": lambda: ABOUT,
            "status": lambda: {
                "api": _status("api", "Integration API is operational"),
                "temperature": _status("temperature", "Temperature is normal"),
                "systems_check": _status("systems-check", "The systems are operational"),
                "time": _status("time", "Not synchronized with an NTP server", "warning"),
            },
            "temperature": lambda: TEMPERATURE_C,
            "acoustics/enabled": lambda: self.enabled,
            "acoustics/mode": lambda: self.mode,
            "acoustics/range": lambda: dict(zip(("min", "max"), self.range, strict=True)),
            "acoustics/salinity": lambda: self.salinity,
            "acoustics/speed_of_sound": lambda: self.speed_of_sound,
            "output/imu-batch/enabled": lambda: self.imu_enabled,
            "time/ntp": lambda: {"ntp_address": self.ntp_address},
            "time/status": self._time_status,
            "udp": lambda: self.udp,
        }
        self._post: dict[str, Callable[[Any], Any]] = {
            "acoustics/enabled": self._enable,
            "acoustics/mode": self._set_mode,
            "acoustics/range": self._set_range,
            "acoustics/salinity": self._set_salinity,
            "acoustics/speed_of_sound": self._set_speed_of_sound,
            "output/imu-batch/enabled": self._enable_imu,
            "time/manual": self._set_time,
            "time/ntp": self._set_ntp,
            "time/ntp/force-sync": self._synchronise,
            "udp": self._set_udp,
        }

    # -- hosts -----------------------------------------------------------------------------------

    def connect(self, port: str, send: Bytes) -> Connection:
        """Create the connection to a host on the `http` or `udp` port."""
        if port == "udp":
            self._send_datagram = send
            return _UdpConnection()
        return HttpConnection(self.handle, send)

    def handle(self, method: str, path: str, content: Any) -> HttpAnswer:
        """Answer a host's request."""
        name = path.removeprefix(_API).strip("/") if path.startswith(_API) else ""
        if method == "GET" and name in self._get:
            return HttpAnswer(200, self._get[name]())
        if method == "POST" and name in self._post:
            try:
                answer = self._post[name](content)
            except InvalidContent as error:
                self.errors += 1
                return HttpAnswer(400, {"error": str(error)})
            return HttpAnswer(204) if answer is None else HttpAnswer(200, answer)
        self.errors += 1
        return NOT_FOUND

    def _enable(self, content: Any) -> None:
        self.enabled = _check_flag(content)

    def _set_mode(self, content: Any) -> None:
        mode = _MODE.check("mode", content)
        if mode not in self.sonars:
            raise InvalidContent(f"the vehicle has no 3D sonar for the mode {mode}")
        if mode != self.mode:
            self.mode, self.range = str(mode), (0.0, self._reach[str(mode)])
            self.broker.subscribe_frames(self.sonars[self.mode])  # instead of the other one

    def _set_range(self, content: Any) -> None:
        values = check_fields(content, _RANGE, ("min", "max"))
        if not values["min"] < values["max"] <= self._reach[self.mode]:
            raise InvalidContent(f"min must be less than max, and max must be at most {self._reach[self.mode]:g} m")
        self.range = values["min"], values["max"]

    def _set_salinity(self, content: Any) -> None:
        self.salinity = str(_SALINITY.check("salinity", content))

    def _set_speed_of_sound(self, content: Any) -> None:
        is_automatic = not isinstance(content, bool) and content == 0
        self.speed_of_sound = 0.0 if is_automatic else float(_SPEED.check("the speed of sound", content))

    def _enable_imu(self, content: Any) -> None:
        if _check_flag(content) and not self._has_imu:
            raise InvalidContent("the vehicle has no imu sensor")
        self.imu_enabled = bool(content)

    def _set_udp(self, content: Any) -> None:
        fields: Fields = {
            "mode": _UDP_MODE,
            "unicast_destination_ip": _AddressField(),
            "unicast_destination_port": _UDP_PORT,
        }
        udp = {**self.udp, "unicast_destination_ip": "", "unicast_destination_port": 0}
        udp |= check_fields(content, fields, ("mode",))
        unicast = udp["unicast_destination_ip"], udp["unicast_destination_port"]
        if udp["mode"] == "unicast" and not all(unicast):
            raise InvalidContent("unicast needs unicast_destination_ip and unicast_destination_port")
        self.udp = udp
        self.target.address = {"multicast": self.multicast, "unicast": unicast, "disabled": None}[udp["mode"]]

    # -- time ------------------------------------------------------------------------------------

    def _civil_time(self, time_ns: int) -> tuple[int, int]:
        """Return the time of the sonar's clock at a simulation time, as (whole seconds since 1970, ns)."""
        return unix(time_ns + self.clock_offset // timedelta(microseconds=1) * 1000)

    def _time_status(self) -> dict[str, Any]:
        now = utc(self._now_ns) + self.clock_offset
        return {
            "system_time": now.isoformat().replace("+00:00", "Z"),
            "ntp_synced": False,
            "ntp_synced_to": "",
            "ntp_seconds_since_last_sync": None,
        }

    def _set_time(self, content: Any) -> None:
        try:
            now = datetime.fromisoformat(_check_text(content, "now"))
            if now.tzinfo is None or now.year < 1971:
                raise ValueError
            self.clock_offset = now.astimezone(UTC) - utc(self._now_ns)
        except (ValueError, OverflowError):
            raise InvalidContent("now must be a time with a time zone, as in RFC 3339") from None

    def _set_ntp(self, content: Any) -> None:
        address = _check_text(content, "ntp_address")
        if not 0 < len(address) <= 253 or not address.isprintable() or " " in address:
            raise InvalidContent("ntp_address must be an address or auto")
        self.ntp_address = address

    def _synchronise(self, content: Any) -> dict[str, Any]:
        check_fields(content, {"timeout_seconds": NumberField(0.0, 3600.0)}, ("timeout_seconds",))
        return {"success": False, "message": "no NTP server answers", "status": self._time_status()}

    # -- images ----------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._now_ns = step.state.time_ns
        for frame in self.broker.take_frames():
            if frame.name != self.sonars[self.mode]:
                continue
            check_sonar_type(frame, "3d", "a Sonar 3D-15")
            self._reach[self.mode] = float(frame.record["range"])
            self.range = self.range[0], min(self.range[1], self._reach[self.mode])
            if self.enabled:
                self._send_images(frame)
        for _, value in self._imu.new_values(step.sensors):
            if self.enabled and self.imu_enabled:
                self._samples.append((self._civil_time(value.time_ns), value.force, value.rates))
        if self._now_ns >= self._batch_end_ns:
            self._batch_end_ns = self._now_ns + IMU_BATCH_NS
            self._send_imu_batch()

    def _send_images(self, frame: ImagingFrame) -> None:
        r, true = frame.record, float(frame.record["sound_speed"])
        speed = self.speed_of_sound or true
        rows, columns = int(r["beams"]), int(r["bins"])
        head = packets.ImageHead(
            self._civil_time(int(r["ping_ns"])),
            int(r["number"]) % (1 << 32),
            speed,
            self.range[1],
            round(float(r["frequency"])),
            (columns, rows),
            (math.degrees(float(r["sector"])), math.degrees(float(r["fan_height"]))),
        )
        # the pitch of the protocol grows upwards from the first row, and the rows of a frame begin at the top
        ranges, level = frame.ranges[::-1], frame.samples["level"][::-1]
        ranges = ranges * (speed / true)
        there = (ranges >= self.range[0]) & (ranges <= self.range[1])
        pixels = np.where(there, np.clip(np.rint(np.nan_to_num(ranges) / PIXEL_SCALE), 1, 65535), 0)
        strength = np.clip(level * (float(r["span"]) / 65535 * STEPS_PER_DB), 1, 255)
        self._send(packets.RANGE_IMAGE, packets.range_image(head, PIXEL_SCALE, pixels))
        shades = np.where(there, np.rint(strength), 0)
        self._send(packets.BITMAP, packets.bitmap(head, packets.SIGNAL_STRENGTH, shades))

    def _send_imu_batch(self) -> None:
        if self._samples:
            self._send(packets.IMU_BATCH, packets.imu_batch(self._batch, self._samples))
            self._batch, self._samples = (self._batch + 1) % (1 << 32), []

    def _send(self, kind: str, message: bytes) -> None:
        data = packets.packet(kind, message, self.protocol)
        if len(data) > packets.MAX_PACKET:
            raise BrokerError(
                f"an image of a Sonar 3D-15 has at most 256 x 64 pixels; sonar '{self.sonars[self.mode]}' has more"
            )
        self._send_datagram(data)


class _AddressField:
    """Setting whose value is a loopback address or empty."""

    def check(self, name: str, value: Any) -> str:
        """Return the address. Raises InvalidContent if it is invalid."""
        try:
            if value == "" or (isinstance(value, str) and ipaddress.IPv4Address(value).is_loopback):
                return str(value)
        except ValueError:
            pass
        raise InvalidContent(f"{name} must be an IPv4 address on loopback (127.0.0.0/8)")
