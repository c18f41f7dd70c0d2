"""Virtual Sea-Bird SBE 37 (MicroCAT, moored CTD) and SBE 45 (thermosalinograph), and CTD files (.cnv).

A sample of the SBE 37 contains temperature (T90, C), conductivity (S/m), pressure (dbar), date and time. An example is
``24.8339, 0.97795,   -9.262, 07 Jan 2000, 04:51:39``. A sample of the SBE 45 contains temperature, conductivity,
salinity and sound speed (m/s). An example is ``24.8339,  0.97795,   5.0123, 1495.123``.

Commands end with CR or LF. The instrument echoes each command, replies, and sends the prompt ``S>``.

Commands: ``TS`` takes one sample. ``GO`` or ``STARTNOW`` starts sampling every ``INTERVAL`` seconds until ``STOP``
arrives. ``INTERVAL=n`` or ``SAMPLEINTERVAL=n`` sets the interval. ``DS`` shows the status. ``OUTPUTSAL=Y/N`` and
``OUTPUTSV=Y/N`` (SBE 45) switch the output of salinity and sound speed on or off.

Like the real instruments, the device reports the absolute pressure minus the pressure of the standard atmosphere. The
device takes conductivity and temperature from the newest value of the body's ``ctd`` sensor. Time is simulation time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import LineSplitter
from wavesim_sdk.broker import Step
from wavesim_sdk.epoch import EPOCH
from wavesim_world.ocean import seawater, sound

ATMOSPHERE = 10.1325  #: pressure of the standard atmosphere in dbar
T68 = 1.00024  #: ratio of a temperature on the IPTS-68 scale to the same temperature on ITS-90
PROMPT = b"S>"
MIN_INTERVAL_S, MAX_INTERVAL_S = 1, 21600


def line37(time: datetime, temperature: float, conductivity: float, pressure: float) -> bytes:
    """Return a sample line of an SBE 37. Temperature is in C (ITS-90), conductivity in S/m, pressure in dbar above
    atmospheric pressure.
    """
    return (
        f"{temperature:.4f},{conductivity:9.5f},{pressure:9.3f}, "
        f"{time.day:02d} {_MONTHS[time.month - 1]} {time.year}, {time:%H:%M:%S}\r\n"
    ).encode("ascii")


def line45(
    temperature: float, conductivity: float, salinity: float | None = None, sound_speed: float | None = None
) -> bytes:
    """Return a sample line of an SBE 45. Temperature is in C (ITS-90) and conductivity in S/m; salinity and sound speed
    (m/s) are optional.
    """
    parts = [f"{temperature:.4f}", f"{conductivity:9.5f}"]
    parts += [f"{salinity:9.4f}"] if salinity is not None else []
    parts += [f"{sound_speed:9.3f}"] if sound_speed is not None else []
    return (",".join(parts) + "\r\n").encode("ascii")


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class SeaBirdDevice:
    """Virtual SBE 37 or SBE 45; ``model`` is 37 or 45."""

    def __init__(self, model: int, send: Bytes, ctd: str = "ctd", epoch: datetime = EPOCH) -> None:
        self.model, self.send, self.ctd, self.epoch = model, send, ctd, epoch
        self.lines, self.refused = LineSplitter(), 0
        self.interval, self.logging = (10, False) if model == 37 else (1, True)
        self.salinity = self.sound = True
        self.time = 0.0
        self._values: tuple[float, float, float] | None = None  # pressure, temperature, conductivity
        self._next = 0.0
        self._asked = False  # the host requested a sample before the first value
        self._verbs: dict[str, Callable[[str], bytes]] = {
            "TS": lambda _: self._sample(),
            "GO": self._go,
            "STARTNOW": self._go,
            "STOP": self._stop,
            "DS": lambda _: self._status(),
            "INTERVAL": self._set_interval,
            "SAMPLEINTERVAL": self._set_interval,
        }
        if model == 45:
            self._verbs["OUTPUTSAL"] = lambda v: self._flag("salinity", v)
            self._verbs["OUTPUTSV"] = lambda v: self._flag("sound", v)

    @property
    def errors(self) -> int:
        """Number of invalid commands and lines."""
        return self.refused + self.lines.dropped

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for line in self.lines.feed(data):
            verb, _, value = (part.strip() for part in line.upper().partition("="))
            answer = self._verbs[verb](value) if verb in self._verbs else self._refuse("?CMD")
            self.send(line.encode("ascii", errors="replace") + b"\r\n" + answer + PROMPT)

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self.time = step.time
        value = step.sensors.get(self.ctd)
        self._values = (value.pressure, value.temperature, value.conductivity) if value is not None else None
        if self._asked and self._values is not None:
            self._asked = False
            self.send(self._sample())
        if self.logging and self.time >= self._next:
            self._next = (self.time // self.interval + 1) * self.interval
            if self._values is not None:
                self.send(self._sample())

    def _refuse(self, text: str) -> bytes:
        self.refused += 1
        return f"{text}\r\n".encode()

    def _sample(self) -> bytes:
        if self._values is None:  # out of the water, or without an emulator
            self._asked = True
            return b""
        absolute, t68, conductivity = self._values
        t90 = t68 / T68
        if self.model == 37:
            time = self.epoch + timedelta(seconds=self.time)
            return line37(time, t90, conductivity, absolute - ATMOSPHERE)
        surface = np.zeros(1)
        found = seawater.salinity(surface + conductivity, surface + t68, surface)
        salinity, speed = float(found[0]), float(sound.chen_millero(surface + t68, found, surface)[0])
        return line45(t90, conductivity, salinity if self.salinity else None, speed if self.sound else None)

    def _go(self, _value: str) -> bytes:
        self.logging, self._next = True, self.time
        return b""

    def _stop(self, _value: str) -> bytes:
        self.logging = False
        return b""

    def _set_interval(self, value: str) -> bytes:
        if not value.isdigit() or not MIN_INTERVAL_S <= int(value) <= MAX_INTERVAL_S:
            return self._refuse(f"invalid interval: use {MIN_INTERVAL_S} to {MAX_INTERVAL_S} s")
        self.interval = int(value)
        return b""

    def _flag(self, name: str, value: str) -> bytes:
        if value not in ("Y", "N"):
            return self._refuse("Y or N")
        setattr(self, name, value == "Y")
        return b""

    def _status(self) -> bytes:
        time = self.epoch + timedelta(seconds=self.time)
        state = "logging data" if self.logging else "not logging: received stop command"
        name = "SBE37-SM" if self.model == 37 else "SBE45"
        return (
            f"{name} V 3.0  SERIAL NO. 0001    {time:%d %b %Y %H:%M:%S}\r\n{state}\r\n"
            f"sample interval = {self.interval} seconds\r\n"
        ).encode()


def cnv(time_s: Any, values: Any, latitude: float, longitude: float, epoch: datetime = EPOCH) -> str:
    """Return the text of a CTD file (.cnv) for records of the ``ctd`` table. Times are in s, the position in rad."""
    time = np.asarray(time_s, float)
    gauge = np.asarray(values["pressure"], float) - ATMOSPHERE
    columns = (
        ("timeS: Time, Elapsed [seconds]", time),
        ("prDM: Pressure, Digiquartz [db]", gauge),
        ("depSM: Depth [salt water, m]", seawater.depth(gauge, latitude)),
        ("t090C: Temperature [ITS-90, deg C]", np.asarray(values["temperature"], float) / T68),
        ("c0S/m: Conductivity [S/m]", np.asarray(values["conductivity"], float)),
        ("sal00: Salinity, Practical [PSU]", np.asarray(values["salinity"], float)),
        ("flag: flag", np.zeros(len(time))),
    )
    start = (epoch + timedelta(seconds=float(time[0]) if len(time) else 0.0)).astimezone(UTC)
    stamp = f"{_MONTHS[start.month - 1]} {start:%d %Y %H:%M:%S}"
    head = [
        "* Sea-Bird SBE 37 Data File:",
        "* FileName = wavesim.hex",
        "* Software Version Seasave V 7",
        f"* System UTC = {stamp}",
        f"* NMEA Latitude = {_degrees(latitude, 'NS')}",
        f"* NMEA Longitude = {_degrees(longitude, 'EW')}",
        f"* NMEA UTC (Time) = {stamp}",
        "* simulated by WaVeSim",
        f"# nquan = {len(columns)}",
        f"# nvalues = {len(time)}",
        "# units = specified",
        *(f"# name {k} = {name}" for k, (name, _) in enumerate(columns)),
        *(
            f"# span {k} = {np.min(v, initial=np.inf):.5f}, {np.max(v, initial=-np.inf):.5f}"
            for k, (_, v) in enumerate(columns)
        ),
        f"# interval = seconds: {float(np.median(np.diff(time))) if len(time) > 1 else 1.0:g}",
        f"# start_time = {stamp}",
        "# bad_flag = -9.990e-29",
        "# file_type = ascii",
        "*END*",
    ]
    rows = [
        "".join(f"{v:11.5f}" if k != 4 else f"{v:11.6f}" for k, v in enumerate(row))
        for row in zip(*(c for _, c in columns), strict=True)
    ]
    return "\r\n".join([*head, *rows, ""])


def _degrees(angle: float, letters: str) -> str:
    """Return an angle in degrees and minutes, such as ``41 10.80 N``."""
    degrees = abs(np.degrees(angle))
    whole = int(degrees)
    width = 2 if letters == "NS" else 3
    return f"{whole:0{width}d} {60.0 * (degrees - whole):07.4f} {letters[0] if angle >= 0 else letters[1]}"
