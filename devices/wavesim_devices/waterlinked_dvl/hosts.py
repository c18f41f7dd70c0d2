"""Connections between the Water Linked DVL and its hosts: JSON, the serial protocol, PD4 and PD6."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from wavesim_devices.dvl import Ensemble, pd4, pd6
from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import JsonSplitter, LineSplitter
from wavesim_devices.waterlinked_dvl import reports
from wavesim_devices.waterlinked_dvl.dead_reckoning import LocalPosition
from wavesim_devices.waterlinked_dvl.instrument import DvlInstrument
from wavesim_devices.waterlinked_dvl.measurement import Measurement
from wavesim_sdk.checksums import crc8

_EPOCH = datetime.fromtimestamp(0, UTC)
#: lines of a PD6 ensemble that the DVL sends
PD6_LINES = (b":TS", b":BI", b":BS", b":BD")


class HostConnection:
    """Connection to one host."""

    def __init__(self, dvl: DvlInstrument, send: Bytes) -> None:
        self.dvl, self.send = dvl, send
        self.errors = 0  #: number of invalid commands

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""

    def report_velocity(
        self, measured: Measurement, time_of_validity: int, time_of_transmission: int, ensemble: Ensemble
    ) -> None:
        """Send a measurement. Its times are Unix times in us."""

    def report_position(self, position: LocalPosition, unix_s: float) -> None:
        """Send a dead reckoning report."""

    def close(self) -> None:
        """Remove the host after it has closed the connection."""
        self.dvl.hosts.remove(self)


def _send_pd(send: Bytes, form: str, ensemble: Ensemble) -> None:
    if form == "pd4":
        send(pd4(ensemble))
    else:
        send(b"".join(line for line in pd6(ensemble).splitlines(keepends=True) if line.startswith(PD6_LINES)))


class PdConnection(HostConnection):
    """Connection on the PD4 or PD6 port. These ports accept no commands."""

    def __init__(self, dvl: DvlInstrument, send: Bytes, form: str) -> None:
        super().__init__(dvl, send)
        self.form = form

    def report_velocity(
        self, measured: Measurement, time_of_validity: int, time_of_transmission: int, ensemble: Ensemble
    ) -> None:
        """Send an ensemble."""
        _send_pd(self.send, self.form, ensemble)


class JsonConnection(HostConnection):
    """Connection on the JSON port."""

    def __init__(self, dvl: DvlInstrument, send: Bytes) -> None:
        super().__init__(dvl, send)
        self._splitter = JsonSplitter()
        self._commands: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "get_config": lambda _: json_settings(dvl),
            "set_config": dvl.configure,
            "reset_dead_reckoning": lambda _: dvl.reset_dead_reckoning(),
            "trigger_ping": lambda _: dvl.trigger_ping(),
            "get_version_info": lambda _: dvl.about(),
            "set_time_ntp": self._set_ntp,
            "get_time_ntp": lambda _: {"ntp_address": dvl.ntp_address},
            "set_time_manual": self._set_time,
            "get_time_status": lambda _: {
                "system_time": _rfc3339(dvl.now_us),
                "ntp_synced": False,
                "ntp_synced_to": "",
                "ntp_seconds_since_last_sync": None,
            },
            "force_sync_ntp": self._sync_ntp,
        }

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from the host."""
        for text in self._splitter.feed(data):
            try:
                message = json.loads(text)
                command, parameters = message["command"], message.get("parameters") or {}
            except (ValueError, KeyError, RecursionError):
                self._fail("", 'invalid command: use {"command": ..., "parameters": {...}}')
                continue
            if command == "calibrate_gyro":
                self.dvl.calibrate_gyro(lambda error: self.send(reports.json_response("calibrate_gyro", error)))
            elif not isinstance(command, str) or command not in self._commands:
                self._fail(command if isinstance(command, str) else "", "unknown command")
            elif not isinstance(parameters, dict):
                self._fail(command, "parameters must be an object")
            else:
                try:
                    self.send(reports.json_response(command, result=self._commands[command](parameters)))
                except ValueError as error:
                    self._fail(command, str(error))

    def _fail(self, command: str, error: str) -> None:
        self.errors += 1
        self.send(reports.json_response(command, error))

    def _set_ntp(self, parameters: Mapping[str, Any]) -> None:
        address = parameters.get("ntp_address")
        if not isinstance(address, str) or not address:
            raise ValueError("ntp_address must be an address or auto")
        self.dvl.ntp_address = address

    def _set_time(self, parameters: Mapping[str, Any]) -> None:
        text = next(iter(parameters.values()), None)
        try:
            moment = datetime.fromisoformat(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            moment = _EPOCH.replace(tzinfo=None)
        if moment.tzinfo is None:
            raise ValueError("the time must be text in RFC 3339 format with a UTC offset, such as 2026-01-01T12:00:00Z")
        self.dvl.set_clock((moment - _EPOCH) // datetime.resolution)

    @staticmethod
    def _sync_ntp(parameters: Mapping[str, Any]) -> None:
        raise ValueError("no NTP server answers")

    def report_velocity(
        self, measured: Measurement, time_of_validity: int, time_of_transmission: int, ensemble: Ensemble
    ) -> None:
        """Send a velocity report."""
        self.send(reports.json_velocity(measured, time_of_validity, time_of_transmission))

    def report_position(self, position: LocalPosition, unix_s: float) -> None:
        """Send a dead reckoning report."""
        self.send(reports.json_position(position, unix_s))


def json_settings(dvl: DvlInstrument) -> dict[str, Any]:
    """Return the settings in the form that the JSON protocol uses, with whole numbers as integers."""
    return {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in asdict(dvl.settings).items()}


def _rfc3339(unix_us: int) -> str:
    return datetime.fromtimestamp(unix_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


#: output of the serial port, by the number in the wcp command: nothing, PD4, PD6, sentences in the new format only, or
#: sentences in both the new and the old format
OUTPUTS: Mapping[str, str] = MappingProxyType({"0": "", "1": "old", "2": "pd6", "3": "new", "6": "pd4"})
LATER = "later"  #: placeholder for a reply that follows later
#: order of the settings in the wcs command
SERIAL_ORDER = (
    "speed_of_sound",
    "mounting_rotation_offset",
    "acoustic_enabled",
    "dark_mode_enabled",
    "range_mode",
    "periodic_cycling_enabled",
)


class SerialConnection(HostConnection):
    """Connection on the serial port. All hosts on this port count as one."""

    def __init__(self, dvl: DvlInstrument, send: Bytes) -> None:
        super().__init__(dvl, send)
        self._splitter = LineSplitter()
        self.output = "new"
        #: for each command letter, the function that returns the reply (empty if accepted), and the allowed numbers of
        #: fields
        self._commands: dict[str, tuple[Callable[..., str | None], Collection[int]]] = {
            "v": (lambda: "wrv,2,8,0", (0,)),
            "w": (self._get_product, (0,)),
            "c": (self._get_settings, (0,)),
            "s": (self._configure, (4, 5, 6)),
            "r": (dvl.reset_dead_reckoning, (0,)),
            "x": (dvl.trigger_ping, (0,)),
            "g": (self._calibrate, (0,)),
            "p": (self._set_output, (1,)),
            "n": (self._set_ntp, (1,)),
            "N": (lambda: f"wrN,{dvl.ntp_address}", (0,)),
            "m": (self._set_time, (1,)),
            "t": (lambda: f"wrs,{dvl.now_us},n,,", (0,)),
            "T": (lambda _: "wrT,n", (1,)),
        }

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from the host."""
        for line in self._splitter.feed(data):
            text, star, checksum = line.partition("*")
            if star and checksum != f"{crc8(text.encode('ascii', errors='replace')):02x}":
                self._reply("wr!", is_error=True)
            elif not text.startswith("wc") or len(text) < 3:
                self._reply("wr?", is_error=True)
            else:
                try:
                    reply = self._execute(text[2], text[3:].removeprefix(",").split(",") if text[3:] else [])
                except ValueError:
                    reply = "wrn"
                if reply != LATER:
                    self._reply(reply, is_error=reply in ("wrn", "wr?"))

    def _reply(self, text: str, *, is_error: bool = False) -> None:
        self.errors += is_error
        self.send(reports.serial_line(text))

    def _execute(self, letter: str, fields: list[str]) -> str:
        """Execute a command and return the reply, or LATER. Raises ValueError if the command is refused."""
        call, counts = self._commands.get(letter, (None, ()))
        if call is None or len(fields) not in counts:
            return "wr?"
        return call(*fields) or "wra"

    def _get_settings(self) -> str:
        s = self.dvl.settings
        acoustic, dark, cycling = (
            "y" if f else "n" for f in (s.acoustic_enabled, s.dark_mode_enabled, s.periodic_cycling_enabled)
        )
        return f"wrc,{s.speed_of_sound:.2f},{s.mounting_rotation_offset:.2f},{acoustic},{dark},{s.range_mode},{cycling}"

    def _get_product(self) -> str:
        about = self.dvl.about()
        return f"wrw,dvl-{self.dvl.variant.name.lower()},{about['version_short']},{about['chipid']}"

    def _calibrate(self) -> str:
        self.dvl.calibrate_gyro(lambda error: self._reply("wrn" if error else "wra", is_error=bool(error)))
        return LATER

    def _set_output(self, number: str) -> str:
        if number not in OUTPUTS:
            return "wrn"
        self.output = OUTPUTS[number]
        return ""

    def _set_ntp(self, address: str) -> str:
        self.dvl.ntp_address = address
        return ""

    def _set_time(self, unix_us: str) -> str:
        if not unix_us.isdigit() or len(unix_us) > 17:
            return "wr?"
        self.dvl.set_clock(int(unix_us))
        return ""

    def _configure(self, *fields: str) -> str:
        new = {n: _serial_value(n, text) for n, text in zip(SERIAL_ORDER, fields, strict=False) if text}
        if None in new.values():
            return "wr?"
        self.dvl.configure(new)
        return "wra"

    def report_velocity(
        self, measured: Measurement, time_of_validity: int, time_of_transmission: int, ensemble: Ensemble
    ) -> None:
        """Send a measurement in the selected output format."""
        if self.output in ("old", "new"):
            old = self.output == "old"
            self.send(reports.serial_velocity(measured, time_of_validity, time_of_transmission, old))
        elif self.output:
            _send_pd(self.send, self.output, ensemble)

    def report_position(self, position: LocalPosition, unix_s: float) -> None:
        """Send a dead reckoning report, unless the output format is PD4 or PD6."""
        if self.output in ("old", "new"):
            self.send(reports.serial_position(position, unix_s))


def _serial_value(name: str, text: str) -> Any:
    """Parse the text of a setting in the serial protocol. Return its value, or None if the text is malformed."""
    if name == "range_mode":
        return text
    if name.endswith("enabled"):
        return {"y": True, "n": False}.get(text)
    try:
        return float(text)
    except ValueError:
        return None
