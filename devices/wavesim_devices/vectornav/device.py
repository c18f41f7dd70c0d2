"""Virtual VectorNav sensor: registers, commands and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType

from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import LineSplitter
from wavesim_devices.vectornav.codec import BinaryOutput, Numbers, crc16, is_known, line
from wavesim_devices.vectornav.sample import Sampler
from wavesim_sdk.broker import Step
from wavesim_sdk.checksums import xor

#: sensor types that the VectorNav device uses
TYPES = ("ahrs", "imu", "magnetometer", "gps", "ctd", "pressure")
#: base rate of the measurements of each model, Hz
BASE_RATES: Mapping[str, int] = MappingProxyType({"VN-100": 800, "VN-200": 800, "VN-300": 400})
BAUD_RATES = (9600, 19200, 38400, 57600, 115200, 128000, 230400, 460800, 921600)
ASCII_RATES = (1, 2, 4, 5, 10, 20, 25, 40, 50, 100, 200)  #: allowed rates of the ASCII output, Hz
CHECKSUM, COMMAND, TOO_FEW, TOO_MANY, VALUE, REGISTER, NOT_ALLOWED, BAUD = (
    0x03,
    0x04,
    0x05,
    0x06,
    0x07,
    0x08,
    0x09,
    0x0C,
)
_ANGLE, _ACCELERATION, _RATE, _MAGNETIC = "{:+08.3f}", "{:+07.3f}", "{:+010.6f}", "{:+08.4f}"
#: registers that contain measurements, with their quantities and formats
_MEASURED: Mapping[int, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        8: (("ypr", _ANGLE),),
        9: (("quaternion", "{:+.6f}"),),
        17: (("magnetic", _MAGNETIC),),
        18: (("acceleration", _ACCELERATION),),
        19: (("rates", _RATE),),
        20: (("magnetic", _MAGNETIC), ("acceleration", _ACCELERATION), ("rates", _RATE)),
        27: (("ypr", _ANGLE), ("magnetic", _MAGNETIC), ("acceleration", _ACCELERATION), ("rates", _RATE)),
        54: (
            ("magnetic", _MAGNETIC), ("acceleration", _ACCELERATION), ("rates", _RATE), ("temperature", "{:+05.1f}"),
            ("pressure", "{:+08.3f}"),
        ),
        58: (
            ("tow", "{:.6f}"), ("week", "{:.0f}"), ("fix", "{:.0f}"), ("satellites", "{:02.0f}"), ("gps_lla", "{:+.8f}"),
            ("gps_velocity", _ANGLE), ("gps_accuracy", _ANGLE), ("speed_accuracy", _ANGLE), ("time_accuracy", "{:.2e}"),
        ),
        63: (
            ("tow", "{:.6f}"), ("week", "{:.0f}"), ("ins_status", "hex"), ("ypr", _ANGLE), ("lla", "{:+.8f}"),
            ("velocity", _ANGLE), ("attitude_accuracy", "{:.1f}"), ("position_accuracy", "{:.1f}"),
            ("speed_accuracy", "{:.2f}"),
        ),
        80: (("deltas", "{:+.6f}"),),
    }
)  # fmt: skip
_COUNTS = {"ypr": 3, "quaternion": 4, "deltas": 7, "lla": 3, "gps_lla": 3}
_VECTORS = ("magnetic", "acceleration", "rates", "velocity", "gps_velocity", "gps_accuracy")
#: for each type of ASCII output, the register whose content it sends
ASCII_TYPES: Mapping[int, tuple[str, int]] = MappingProxyType(
    {
        1: ("VNYPR", 8), 2: ("VNQTN", 9), 10: ("VNMAG", 17), 11: ("VNACC", 18), 12: ("VNGYR", 19), 13: ("VNMAR", 20),
        14: ("VNYMR", 27), 19: ("VNIMU", 54), 20: ("VNGPS", 58), 22: ("VNINS", 63), 30: ("VNDTV", 80),
    }
)  # fmt: skip


class _CommandError(Exception):
    """Raised for a command that is answered with VNERR and an error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def measured_fields(register: int, numbers: Numbers) -> str:
    """Return the content of a register that contains measurements."""
    texts = []
    for name, layout in _MEASURED[register]:
        if name == "tow":
            values: list[float] = [numbers.get("tow_ns", (0,))[0] * 1e-9]
        elif name == "attitude_accuracy":
            values = [max(numbers["ypr_accuracy"])]
        else:
            count = 3 if name in _VECTORS else _COUNTS.get(name, 1)
            values = list(numbers.get(name, (0.0,) * count))
        texts += [f"{int(v):04X}" if layout == "hex" else layout.format(v) for v in values]
    return ",".join(texts)


@dataclass
class RegisterSettings:
    """Registers that a host can write."""

    ascii_type: int
    ascii_rate: int = 40
    baud: int = 115200
    #: port mask and binary output, by register
    outputs: dict[int, tuple[int, BinaryOutput]] = field(default_factory=dict)


class VectorNav:
    """Virtual VectorNav sensor. All hosts share its port, as with a serial line."""

    def __init__(self, send: Bytes, model: str, sensors: Mapping[str, str]) -> None:
        self.send, self.model, self.sensors = send, model, sensors
        self.sampler, self.is_paused, self.errors = Sampler(), False, 0
        self.settings = self._factory()
        self._saved = self._factory()
        self._lines = LineSplitter(512)
        self._last_ns = -1
        self._last_period: dict[int, int] = {}  # by register of the output
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "VNRRG": self._read,
            "VNWRG": self._write,
            "VNASY": self._pause,
            "VNWNV": lambda _: self._save(),
            "VNRFS": lambda _: self._load(self._factory()),
            "VNRST": lambda _: self._load(self._saved),
            "VNKMD": lambda f: self._acknowledge("VNKMD", f, 1),
            "VNKAD": lambda f: self._acknowledge("VNKAD", f, 1),
            "VNSGB": lambda f: self._acknowledge("VNSGB", f, 0),
        }

    def _factory(self) -> RegisterSettings:
        return RegisterSettings(14 if self.model == "VN-100" else 22)

    # -------------------------------------------------------------- outputs

    def step(self, step: Step) -> None:
        """Process a new simulation state: send the outputs whose period has begun."""
        values = {t: v for t, name in self.sensors.items() if (v := step.sensors.get(name)) is not None}
        if "imu" not in values or "ahrs" not in values or values["imu"].time_ns == self._last_ns:
            return
        self._last_ns = now = values["imu"].time_ns
        self.sampler.take(values)
        s = self.settings
        if self.is_paused:
            return
        if s.ascii_type and self._begins(6, now * s.ascii_rate // 10**9):
            name, register = ASCII_TYPES[s.ascii_type]
            self.send(line(f"{name},{measured_fields(register, self.sampler.numbers)}"))
        for register, (mask, output) in s.outputs.items():
            if mask and self._begins(register, now * BASE_RATES[self.model] // (output.divisor * 10**9)):
                self.send(output.frame(self.sampler.numbers))

    def _begins(self, register: int, period: int) -> bool:
        """Return whether a new period of an output has begun since its last message."""
        last = self._last_period.get(register)
        self._last_period[register] = period
        return last is None or period > last

    # -------------------------------------------------------------- commands

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from a host."""
        dropped = self._lines.dropped
        for text in self._lines.feed(data):
            start = text.rfind("$")
            if start < 0:
                self.errors += 1
                continue
            try:
                self.send(line(self._execute(text[start + 1 :])))
            except _CommandError as error:
                self._fail(error.code)
        if self._lines.dropped > dropped:
            self._fail(0x02)

    def _fail(self, code: int) -> None:
        self.errors += 1
        self.send(line(f"VNERR,{code:02X}"))

    def _execute(self, text: str) -> str:
        body, star, check = text.rpartition("*")
        data = body.encode("ascii", errors="replace")
        if not star or check.upper() not in ("XX", f"{xor(data):02X}", f"{crc16(data):04X}"):
            raise _CommandError(CHECKSUM)
        name, *fields = body.split(",")
        if name not in self._commands:
            raise _CommandError(NOT_ALLOWED if name == "VNTAR" else COMMAND)
        return self._commands[name](fields)

    @staticmethod
    def _number(text: str, base: int = 10) -> int:
        try:
            return int(text, base)
        except ValueError:
            raise _CommandError(VALUE) from None

    def _read(self, fields: list[str]) -> str:
        if not fields:
            raise _CommandError(TOO_FEW)
        return f"VNRRG,{fields[0]},{self._content(self._number(fields[0]))}"

    def _content(self, register: int) -> str:
        s = self.settings
        if register in _MEASURED:
            return measured_fields(register, self.sampler.numbers)
        if register in (75, 76, 77):
            if register not in s.outputs:
                return "0,0,0"
            mask, output = s.outputs[register]
            return ",".join((f"{mask},{output.divisor},{output.groups:02X}", *(f"{f:04X}" for f in output.fields)))
        fixed = {
            1: self.model, 2: "4", 3: "100012345", 4: "3.0.0.0", 5: str(s.baud), 6: str(s.ascii_type),
            7: str(s.ascii_rate),
        }  # fmt: skip
        if register not in fixed:
            raise _CommandError(REGISTER)
        return fixed[register]

    def _write(self, fields: list[str]) -> str:
        if len(fields) < 2:
            raise _CommandError(TOO_FEW)
        register, s = self._number(fields[0]), self.settings
        if register in (75, 76, 77):
            self._write_output(register, fields[1:])
        elif register in (5, 6, 7):
            value = self._number(fields[1])
            if len(fields) > 3:
                raise _CommandError(TOO_MANY)
            if register == 5:
                if value not in BAUD_RATES:
                    raise _CommandError(BAUD)
                s.baud = value
            elif register == 6:
                if value and value not in ASCII_TYPES:
                    raise _CommandError(VALUE)
                s.ascii_type = value
            else:
                if value not in ASCII_RATES:
                    raise _CommandError(VALUE)
                s.ascii_rate = value
            self._last_period.pop(6, None)
        elif register in _MEASURED or register in (1, 2, 3, 4):
            raise _CommandError(NOT_ALLOWED)
        else:
            raise _CommandError(REGISTER)
        return "VNWRG," + ",".join(fields)

    def _write_output(self, register: int, fields: list[str]) -> None:
        if len(fields) < 3:
            raise _CommandError(TOO_FEW)
        mask, divisor, groups = self._number(fields[0]), self._number(fields[1]), self._number(fields[2], 16)
        bits = tuple(self._number(f, 16) for f in fields[3:])
        if not 0 <= mask <= 3 or not 0 <= groups < 256 or (mask and not 1 <= divisor <= 65535):
            raise _CommandError(VALUE)
        if len(bits) != groups.bit_count():
            raise _CommandError(TOO_FEW if len(bits) < groups.bit_count() else TOO_MANY)
        if not is_known(groups, bits):
            raise _CommandError(VALUE)
        self._last_period.pop(register, None)
        self.settings.outputs.pop(register, None)
        if mask and groups:
            self.settings.outputs[register] = mask, BinaryOutput(groups, bits, divisor)

    def _pause(self, fields: list[str]) -> str:
        if fields[:1] not in (["0"], ["1"]):
            raise _CommandError(VALUE if fields else TOO_FEW)
        self.is_paused = fields[0] == "0"
        return f"VNASY,{fields[0]}"

    def _save(self) -> str:
        self._saved = deepcopy(self.settings)
        return "VNWNV"

    def _load(self, settings: RegisterSettings) -> str:
        name = "VNRST" if settings is self._saved else "VNRFS"
        self.settings, self.is_paused = deepcopy(settings), False
        if name == "VNRFS":
            self._saved = deepcopy(settings)
        self._last_period.clear()
        return name

    @staticmethod
    def _acknowledge(name: str, fields: list[str], count: int) -> str:
        if len(fields) < count:
            raise _CommandError(TOO_FEW)
        return ",".join((name, *fields))
