"""Virtual analogue-to-digital and digital-to-analogue converters of a software modem (UASP2).

Clients connect to the command port and send one JSON object per line. They receive the samples of a hydrophone as
datagrams on a port of their choice, and play their own samples through the transducer. The clock of the device counts
microseconds of simulation time.
"""

from __future__ import annotations

import base64
import json
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_devices.hydrophone_blocks import HydrophoneBlock, HydrophoneBlocks
from wavesim_devices.ports import Bytes, Connection, UdpTarget
from wavesim_devices.splitters import LineSplitter
from wavesim_devices.uasp.packets import PacketSplitter, decode_samples, encode_packet
from wavesim_sdk import __version__
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.sounds import level_of_sound

PROTOCOL = "0.2.0"
DATA_PORT = 9810  #: usual port for the samples; a client sets the port with `istart`
OUTPUT_RATES = (48000, 96000, 192000, 250000)  #: sampling rates for transmission in Hz
MAX_OUTPUT_S = 60.0  #: longest signal in s
OUTPUT_BUFFER = 1_920_000  #: maximum number of samples in the output buffer of a client
LONGEST_LINE = 400_000  #: maximum length of a line; a packet may have up to 65 535 samples
MAX_WAITING_BYTES = 4_000_000  #: maximum total length of the lines that wait for the first block
MAX_GAIN_DB = 120.0
MAX_REPORTED = 10  #: number of refused signals that are reported individually
#: parameters that are known from the first block of the hydrophone on
CONVERTER_PARAMETERS = ("iseqno", "iblksize", "irate", "irates", "ichannels")


@dataclass(frozen=True)
class UaspModel:
    """Output of the device: the source level in dB of a sine between -1 and 1, and the initial sampling rate in Hz."""

    level: float = 185.0
    rate: int = 96000


class UaspError(Exception):
    """Raised for a command that the device rejects."""


def _number(value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UaspError
    return float(value)


def _whole(value: Any, low: int, high: int) -> int:
    if _number(value, low, high) != int(value):
        raise UaspError
    return int(value)


@dataclass
class SignalOutput:
    """Signal of a client, from its request until its end. Times are simulation times in ns."""

    client: UaspConnection
    id: dict[str, Any]  #: the field ``id`` of the command, or nothing
    duration: float  #: in s
    start_ns: int | None = None  #: None until the server has sent the signal
    began: bool = False

    def end_ns(self) -> int:
        """Return the end of a signal whose start is known."""
        return (self.start_ns or 0) + round(self.duration * 1e9)


class UaspConnection:
    """Connection to a client, with its own output buffer."""

    def __init__(self, device: UaspDevice, send: Bytes) -> None:
        self.device, self.send = device, send
        self.errors = 0  #: number of invalid commands
        self.buffer: list[Any] = []  #: samples for the next transmission
        self.buffered = 0
        self._lines = LineSplitter(LONGEST_LINE)
        self._waiting: deque[str] = deque()  # lines that wait for the first block
        self._waiting_bytes = 0

    def receive(self, data: bytes) -> None:
        """Process bytes received from the client."""
        dropped = self._lines.dropped
        for line in self._lines.feed(data):
            if self._waiting:
                self._wait(line)
            else:
                self._obey(line)
        self.errors += self._lines.dropped - dropped

    def close(self) -> None:
        """Stop the stream of the client after it has closed the connection."""
        self.device.forget(self)

    def _wait(self, line: str) -> None:
        if self._waiting_bytes + len(line) > MAX_WAITING_BYTES:
            self.errors += 1
            return
        self._waiting.append(line)
        self._waiting_bytes += len(line)

    def resume(self) -> None:
        """Process the lines that were waiting for the first block of the hydrophone."""
        lines, self._waiting, self._waiting_bytes = self._waiting, deque(), 0
        for line in lines:
            self._obey(line)

    def _obey(self, line: str) -> None:
        try:
            command = json.loads(line)
            if not isinstance(command, dict):
                raise UaspError
            needed = command.get("param") in CONVERTER_PARAMETERS and command.get("action") in ("get", "set")
            if needed and not self.device.is_known:
                self._wait(line)
                return
            handler = _HANDLERS.get(command.get("action"))
            if handler is None:
                raise UaspError
            handler(self, command)
        except (UaspError, ValueError, TypeError, OverflowError, RecursionError):
            self.errors += 1

    def say(self, **message: Any) -> None:
        """Send a message to the client."""
        self.send(json.dumps(message).encode() + b"\n")

    def _answer(self, command: dict[str, Any], **message: Any) -> None:
        self.say(**message, **identifier(command))

    def _version(self, command: dict[str, Any]) -> None:
        self._answer(command, name="wavesim", version=__version__, protocol=PROTOCOL)

    def _get(self, command: dict[str, Any]) -> None:
        name = command.get("param")
        self._answer(command, param=name, value=self.device.value(name))

    def _set(self, command: dict[str, Any]) -> None:
        self.device.change(command.get("param"), command.get("value"))

    def _reset_input(self, _: dict[str, Any]) -> None:
        self.device.reset_input()

    def _start_input(self, command: dict[str, Any]) -> None:
        blocks = command.get("blocks")
        count = None if blocks is None else _whole(blocks, 1, 2**53)
        self.device.start_stream(self, _whole(command.get("port"), 1, 65535), count)

    def _stop_input(self, _: dict[str, Any]) -> None:
        self.device.stop_stream()

    def _clear_output(self, _: dict[str, Any]) -> None:
        self.buffer, self.buffered = [], 0

    def _append_output(self, command: dict[str, Any]) -> None:
        samples = decode_samples(base64.b64decode(command.get("data", ""), validate=True))
        if self.buffered + len(samples) > OUTPUT_BUFFER:
            raise UaspError
        self.buffer.append(samples)
        self.buffered += len(samples)

    def _start_output(self, command: dict[str, Any]) -> None:
        time = command.get("time")
        time = None if time is None else _whole(time, 0, 2**63)
        if not self.buffer:
            raise UaspError
        samples = np.concatenate(self.buffer)
        self._clear_output(command)
        self.device.play(self, samples, time, identifier(command))

    def _stop_output(self, _: dict[str, Any]) -> None:
        """Do nothing: a signal that the server has accepted is sent completely, as in Virtual Acoustic Ocean."""

    def _quit(self, _: dict[str, Any]) -> None:
        self.send(b"")


_HANDLERS: dict[Any, Callable[[UaspConnection, dict[str, Any]], None]] = {
    "version": UaspConnection._version,
    "get": UaspConnection._get,
    "set": UaspConnection._set,
    "ireset": UaspConnection._reset_input,
    "istart": UaspConnection._start_input,
    "istop": UaspConnection._stop_input,
    "oclear": UaspConnection._clear_output,
    "odata": UaspConnection._append_output,
    "ostart": UaspConnection._start_output,
    "ostop": UaspConnection._stop_output,
    "quit": UaspConnection._quit,
}


def identifier(command: dict[str, Any]) -> dict[str, Any]:
    """Return the field ``id`` of a command, which its answers and events repeat; nothing if the command has none."""
    return {"id": command["id"]} if "id" in command else {}


@dataclass
class DataConnection:
    """Handler of datagrams from the receivers of the samples. It ignores each datagram and counts it as an error."""

    errors: int = field(default=0, init=False)

    def receive(self, data: bytes) -> None:
        """Count a datagram."""
        self.errors += 1

    def close(self) -> None:
        """Do nothing, because there is no connection."""


class UaspDevice:
    """Virtual converters: the samples of a hydrophone go to one client at a time, and all clients may transmit.

    ``target`` is the destination of the samples, and ``report`` receives a text for each signal that the server refuses.
    """

    def __init__(
        self, broker: AsyncBroker, hydrophone: str, target: UdpTarget, model: UaspModel, report: Callable[[str], None]
    ) -> None:
        self.broker, self.model, self.report = broker, model, report
        self.target = target
        self.blocks = HydrophoneBlocks(broker, hydrophone)
        self.time_ns = self.origin_ns = 0  #: simulation time now, and at the origin of the device's clock
        self.input_gain = self.output_gain = 0.0
        self.output_rate, self.muted = model.rate, False
        self.refused = 0  #: number of signals that the server refused
        self._rate = 0.0  # sampling rate of the hydrophone in Hz; 0 until its first block has arrived
        self._channels = 0
        self._cutter = PacketSplitter(1)
        self._clients: list[UaspConnection] = []
        self._send_data: Bytes = lambda data: None
        self._receiver: UaspConnection | None = None  # client that receives the stream
        self._left: int | None = None  # number of packets until the stream stops; None = it does not stop
        self._requested: dict[int, SignalOutput] = {}  # signals that the server has not sent yet, by request
        self._outputs: list[SignalOutput] = []  # signals whose start is known
        target.address = None

    @property
    def is_known(self) -> bool:
        """Whether the first block of the hydrophone has arrived."""
        return self._rate > 0.0

    def connect(self, port: str, send: Bytes) -> Connection:
        """Create the connection to a host."""
        if port == "data":
            self._send_data = send
            return DataConnection()
        self._clients.append(UaspConnection(self, send))
        return self._clients[-1]

    def forget(self, client: UaspConnection) -> None:
        """Remove a client. If it received the stream, the stream stops."""
        self._clients.remove(client)
        if client is self._receiver:
            self.stop_stream()

    # -- parameters ------------------------------------------------------------------------

    def value(self, name: Any) -> Any:
        """Return the value of a parameter. Raises UaspError if there is no such parameter."""
        values: dict[Any, Any] = {
            "time": self._microseconds(self.time_ns),
            "iseqno": self._cutter.number,
            "iblksize": self._cutter.size,
            "irate": self._rate,
            "irates": [self._rate],
            "ichannels": self._channels,
            "igain": self.input_gain,
            "obufsize": min(OUTPUT_BUFFER, round(MAX_OUTPUT_S * self.output_rate)),
            "orate": self.output_rate,
            "orates": sorted({*OUTPUT_RATES, self.model.rate}),
            "ochannels": 1,
            "ogain": self.output_gain,
            "omute": self.muted,
        }
        if not isinstance(name, str) or name not in values:
            raise UaspError
        return values[name]

    def change(self, name: Any, value: Any) -> None:
        """Set a parameter. Raises UaspError if the value is invalid."""
        if name == "igain":
            self.input_gain = _number(value, -MAX_GAIN_DB, MAX_GAIN_DB)
        elif name == "ogain":
            self.output_gain = _number(value, -MAX_GAIN_DB, MAX_GAIN_DB)
        elif name == "omute" and isinstance(value, bool):
            self.muted = value
        elif name in ("irate", "orate") and _number(value, 0, 1e9) in self.value(name + "s"):
            if name == "orate":
                self.output_rate = int(value)
        else:
            raise UaspError

    def _microseconds(self, time_ns: float) -> int:
        return round((time_ns - self.origin_ns) * 1e-3)

    # -- input -----------------------------------------------------------------------------

    def reset_input(self) -> None:
        """Set the clock and the numbers of the packets to 0. The first packet begins with the next sample."""
        self.origin_ns = self.time_ns
        self._restart_packets()

    def _restart_packets(self) -> None:
        if self.is_known:
            first = math.ceil(self.origin_ns * 1e-9 * self._rate - 1e-6)
            self.origin_ns = round(first * 1e9 / self._rate)  # so that sample times are whole sampling periods
            self._cutter.restart(first)

    def start_stream(self, client: UaspConnection, port: int, count: int | None) -> None:
        """Send the samples to a UDP port on loopback from now on. ``count`` is the number of packets; None = no limit."""
        self._receiver, self._left = client, count
        self.target.address = ("127.0.0.1", port)

    def stop_stream(self) -> None:
        """Stop sending samples."""
        self._receiver, self.target.address = None, None

    def _stream(self, block: HydrophoneBlock) -> None:
        if (block.rate, len(block.samples)) != (self._rate, self._channels):
            self._rate, self._channels = block.rate, len(block.samples)
            self._cutter = PacketSplitter(self._channels)
            self._restart_packets()
            for client in list(self._clients):
                client.resume()
        gain = np.float32(10.0 ** (0.05 * self.input_gain))
        samples = np.clip(block.samples * gain, -1.0, 1.0)
        for number, first, part in self._cutter.cut(block.first, samples):
            time = self._microseconds(first * 1e9 / self._rate)
            if self._receiver is None or time < 0:
                continue
            self._send_data(encode_packet(time, number, part))
            if self._left is not None:
                self._left -= 1
                if not self._left:
                    self.stop_stream()

    # -- output ----------------------------------------------------------------------------

    def play(self, client: UaspConnection, samples: Any, time: int | None, own_id: dict[str, Any]) -> None:
        """Transmit samples at a time of the device's clock in us; None, or a time in the past, means now."""
        duration = len(samples) / self.output_rate
        if duration > MAX_OUTPUT_S:
            raise UaspError
        at = None if time is None else self.origin_ns + 1000 * time
        if at is not None and at <= self.time_ns:
            at = None
        output = SignalOutput(client, own_id, duration)
        if self.muted or not samples.any():
            output.start_ns = self.time_ns if at is None else at
            self._outputs.append(output)
            return
        level = level_of_sound(samples, self.model.level + self.output_gain, "peak")
        try:
            request = self.broker.transmit(samples, self.output_rate, level, at=at)
        except InvalidArgument as error:
            self._refuse(output, str(error))
        else:
            self._requested[request] = output

    def _refuse(self, output: SignalOutput, reason: str) -> None:
        self.refused += 1
        if self.refused <= MAX_REPORTED:
            self.report(f"a signal of {output.duration:.3g} s was not sent: {reason}")

    def _follow_outputs(self, step: Step) -> None:
        for sent in step.sent:
            output = self._requested.pop(sent.request, None)
            if output is not None:
                output.start_ns, output.duration = sent.emission_ns, sent.duration
                self._outputs.append(output)
        for refused in step.refused:
            output = self._requested.pop(refused.request, None)
            if output is not None:
                self._refuse(output, refused.text)
        for output in list(self._outputs):
            assert output.start_ns is not None
            if not output.began and self.time_ns >= output.start_ns:
                output.began = True
                self._notify(output, "ostart", output.start_ns)
            if output.began and self.time_ns >= output.end_ns():
                self._outputs.remove(output)
                self._notify(output, "ostop", output.end_ns())

    def _notify(self, output: SignalOutput, event: str, time_ns: int) -> None:
        if output.client in self._clients:
            output.client.say(event=event, time=self._microseconds(time_ns), **output.id)

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self.time_ns = step.state.time_ns
        if step.time_changes:
            self._requested.clear()
            self._outputs.clear()
        if self.time_ns < self.origin_ns:  # the simulation was reset
            self.origin_ns = 0
            self._restart_packets()
        self._follow_outputs(step)
        for block in self.blocks.take():
            self._stream(block)
