"""Virtual Valeport miniSVS. It reports the values of a body's ``sound_velocity`` sensor.

A measurement is a line with a space and seven digits, the sound velocity in mm/s, such as `` 1500123``. In air, the
sensor reports 0.

Commands: ``#`` interrupts the measurements, and the sensor replies with the prompt ``>``. ``M1`` to ``M60`` start
measurements at the rate in Hz that follows the letter, and ``S`` requests one measurement. These commands end with CR
or LF. The sensor measures once per second when it starts.
"""

from __future__ import annotations

from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import LineSplitter
from wavesim_sdk.broker import Step

TYPES = ("sound_velocity",)
RATES = {f"M{rate}": rate for rate in (1, 2, 4, 8, 16, 32, 60)}  #: commands that start measuring, and their rates in Hz
PROMPT = b">"


class MiniSvs:
    """Virtual miniSVS. All hosts share its port, as with a serial line."""

    def __init__(self, send: Bytes, sensor: str) -> None:
        self.send, self.sensor, self.lines, self.refused = send, sensor, LineSplitter(), 0
        self.rate = 1  #: measurements per second; 0 = none
        self._speed = 0.0
        self._period = -1  # number of the period of the last measurement, from simulation time 0

    @property
    def errors(self) -> int:
        """Number of invalid commands and lines."""
        return self.refused + self.lines.dropped

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        value = step.sensors.get(self.sensor)
        self._speed = value.speed if value is not None else 0.0
        if self.rate and (period := step.state.time_ns * self.rate // 10**9) != self._period:
            self._period = period
            self._measure()

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from the host."""
        *before, last = data.split(b"#")
        for part in before:  # an interrupt needs no line end, and ends an incomplete line
            self._execute(part + b"\r")
            self.rate = 0
            self.send(PROMPT)
        self._execute(last)

    def _execute(self, data: bytes) -> None:
        for line in self.lines.feed(data):
            command = line.upper()
            if command == "S":
                self._measure()
            elif command in RATES:
                self.rate, self._period = RATES[command], -1
            else:
                self.refused += 1

    def _measure(self) -> None:
        self.send(f" {round(self._speed * 1000.0):07d}\r\n".encode("ascii"))
