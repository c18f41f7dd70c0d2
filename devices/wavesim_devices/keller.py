"""Virtual Keller 33X pressure transmitter (Keller bus). It reports the values of a body's ``pressure`` sensor.

A command consists of address, function, data, and a CRC-16 (polynomial A001, reflected; initial value FFFF; high byte
first). A reply repeats address and function. Numbers are big-endian; pressures are f32 in bar. The transmitter does not
reply to a command with a wrong CRC or for another address. Address 250 reaches every transmitter. Until function 48 has
initialised the transmitter, it replies with exception 32.

The PAA variant reports absolute pressure; the PA variant reports pressure relative to 1 bar. Function 95 sets the zero
point to the current pressure.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from wavesim_devices.ports import Bytes
from wavesim_sdk import checksums
from wavesim_sdk.broker import Step

TYPES = ("pressure", "temperature", "ctd")  #: sensor types that the transmitter uses
VARIANTS = {"PA": 1.0, "PAA": 0.0}  #: zero point of each variant, as an absolute pressure in bar
DBAR_PER_BAR = 10.0
ANY_ADDRESS = 250
INITIALISE, SERIAL_NUMBER, READ, READ_INTEGER, ZERO = 48, 69, 73, 74, 95
#: length of the data of each function; it also delimits the commands, because the bus has no start byte
DATA_BYTES = {INITIALISE: 0, SERIAL_NUMBER: 0, READ: 1, READ_INTEGER: 1, ZERO: 1}
EXCEPTION = 0x80  #: bit of the function byte that marks a reply as an exception
ILLEGAL_FUNCTION, ILLEGAL_ADDRESS, NOT_INITIALISED = 1, 2, 32
P1, T, TOB1 = 1, 3, 4  #: channels: pressure, temperature of the housing, temperature of the pressure sensor
IDENTITY = bytes((5, 20, 12, 50, 10))  #: device class and group, firmware (year and week), length of the buffer
SERIAL = 123456
NOMINAL_TEMPERATURE = 20.0  #: temperature in C if the body has no thermometer
UNMEASURED = 0x02  #: bit of the status: P1 is invalid


def crc16(data: bytes) -> bytes:
    """Return the two bytes of the CRC."""
    return checksums.crc16(data, 0xFFFF).to_bytes(2, "big")


class KellerSplitter:
    """Splitter that divides the bytes from the bus into commands. It drops bytes one at a time until the next bytes
    form a valid command, and counts the dropped bytes.
    """

    MAX_BYTES = 5

    def __init__(self) -> None:
        self.dropped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Return address, function and data of each complete command."""
        found: list[tuple[int, int, bytes]] = []
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= 4:
            function = self._buffer[at + 1]
            # the length of an unknown function is unknown: it is accepted if it has no data
            end = at + 4 + DATA_BYTES.get(function, 0)
            if end > len(self._buffer):
                break
            body = bytes(self._buffer[at : end - 2])
            if crc16(body) == self._buffer[end - 2 : end]:
                found.append((body[0], function, body[2:]))
                at = end
            else:
                self.dropped += 1
                at += 1
        del self._buffer[:at]
        return found


class KellerTransmitter:
    """Virtual 33X transmitter. All hosts share its port, as with a serial line."""

    def __init__(
        self, send: Bytes, sensors: dict[str, str], address: int = 1, variant: str = "PA", *, echoes: bool = False
    ) -> None:
        self.send, self.sensors, self.address, self.zero_bar = send, sensors, address, VARIANTS[variant]
        self.echoes = echoes  #: whether the host receives its own bytes, as on a two-wire RS-485 line
        self.splitter, self.refused = KellerSplitter(), 0
        self.is_initialised = False
        self._pressure_bar, self._temperature = math.nan, math.nan
        self._offset_bar = 0.0
        self._functions: dict[int, Callable[[bytes], bytes | None]] = {
            INITIALISE: self._initialise,
            SERIAL_NUMBER: lambda _: struct.pack(">I", SERIAL),
            READ: self._read,
            READ_INTEGER: self._read_integer,
            ZERO: self._set_zero,
        }

    @property
    def errors(self) -> int:
        """Number of bytes that are not part of a command, plus the number of replies with an exception."""
        return self.splitter.dropped + self.refused

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        found = step.sensors.get(self.sensors["pressure"])
        self._pressure_bar = found.pressure / DBAR_PER_BAR - self.zero_bar if found is not None else math.nan
        names = (self.sensors[t] for t in ("temperature", "ctd") if t in self.sensors)
        measured = [v.temperature for name in names if (v := step.sensors.get(name)) is not None]
        self._temperature = measured[0] if measured else NOMINAL_TEMPERATURE

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from a host."""
        if self.echoes:
            self.send(data)
        for address, function, arguments in self.splitter.feed(data):
            if address not in (self.address, ANY_ADDRESS):
                continue
            exception = 0
            if function not in self._functions:
                exception = ILLEGAL_FUNCTION
            elif not self.is_initialised and function != INITIALISE:
                exception = NOT_INITIALISED
            elif (answer := self._functions[function](arguments)) is None:
                exception = ILLEGAL_ADDRESS
            else:
                self._reply(address, function, answer)
            if exception:
                self.refused += 1
                self._reply(address, function | EXCEPTION, bytes((exception,)))

    def _reply(self, address: int, function: int, data: bytes) -> None:
        body = bytes((address, function)) + data
        self.send(body + crc16(body))

    def _initialise(self, _: bytes) -> bytes:
        status = b"\x01" if self.is_initialised else b"\x00"
        self.is_initialised = True
        return IDENTITY + status

    def _value(self, channel: int) -> float | None:
        if channel == P1:
            return self._pressure_bar - self._offset_bar
        return self._temperature if channel in (T, TOB1) else None

    def _read(self, arguments: bytes) -> bytes | None:
        value = self._value(arguments[0])
        if value is None:
            return None
        return struct.pack(">fB", value, UNMEASURED if math.isnan(value) else 0)

    def _read_integer(self, arguments: bytes) -> bytes | None:
        """Return the value of a channel as an integer, in units of 1 Pa or 0.01 C."""
        value = self._value(arguments[0])
        if value is None:
            return None
        scaled = 0 if math.isnan(value) else round(value * (1e5 if arguments[0] == P1 else 100.0))
        return struct.pack(">iB", scaled, UNMEASURED if math.isnan(value) else 0)

    def _set_zero(self, arguments: bytes) -> bytes | None:
        """Execute command 0 (set the zero point to the current pressure) or 1 (restore the original zero point)."""
        if arguments[0] not in (0, 1):
            return None
        if arguments[0]:
            self._offset_bar = 0.0
        elif not math.isnan(self._pressure_bar):
            self._offset_bar = self._pressure_bar
        return b"\x00"
