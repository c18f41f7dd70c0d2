"""Baseband service of the physical agent: it transmits the user's signals, and records with a hydrophone.

Samples are between -1 and 1. In transmission, a baseband signal of magnitude 1, or a passband sine of amplitude 1, has
the source level ``refPowerLevel`` + ``signalPowerLevel`` in dB; rms levels are limited to ``refPowerLevel``. In a
recording, the same values are the full scale of the hydrophone. The real and imaginary parts of baseband samples
alternate. Passband signals have the carrier 0.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_devices.hydrophone_blocks import HydrophoneBlocks, MissingSamples, SampleHistory
from wavesim_devices.transmitter import Progress
from wavesim_devices.unet.agents import SERVICES, UNET, AgentParameter, integer, number
from wavesim_devices.unet.conversion import margin, to_baseband, to_passband
from wavesim_devices.unet.fjage import AgentMessage
from wavesim_devices.unet.sound import LOWEST_POWER_DB, PhysicalAgent
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.sounds import USABLE, checked_sound, level_of_sound
from wavesim_sdk.wire.items import SignalSent

LONGEST_LINE = 32_000_000  #: maximum length of a line; samples may be decimal numbers
MAX_SIGNAL_S = 20.0  #: longest signal and longest recording in s
HISTORY_S = 30.0  #: time in s for which samples of the hydrophone are kept
MAX_RECORDINGS = 16
PASSBAND_FACTOR = 8  #: default sampling rate of passband signals, as a multiple of the baseband rate (assumed)
MAX_RATE = 500e3  #: highest sampling rate of a transmitted signal in Hz
_NUMBERS = {"[F": "<f4", "[D": "<f8", "[I": "<i4", "[S": "<i2", "[J": "<i8"}


def to_json_floats(values: Any) -> dict[str, str]:
    """Return numbers in the form in which fjåge sends them: little-endian 32-bit floats in base64."""
    return {"clazz": "[F", "data": base64.b64encode(np.asarray(values, "<f4").tobytes()).decode()}


def from_json_numbers(value: Any) -> Any:
    """Return the numbers in a list or in a base64 object. Raises ValueError if the value is neither."""
    if isinstance(value, dict) and value.get("clazz") in _NUMBERS and isinstance(value.get("data"), str):
        return np.frombuffer(base64.b64decode(value["data"], validate=True), _NUMBERS[value["clazz"]]).astype(float)
    if isinstance(value, list) and all(type(v) in (int, float) and abs(v) < 1e30 for v in value):
        return np.array(value, float)
    raise ValueError("the signal must be a list of numbers")


def _optional(value: Any, low: float, high: float, name: str) -> float | None:
    try:
        return None if value is None else number(value, low, high)
    except ValueError:
        raise ValueError(f"invalid {name}") from None


def _time_us(value: Any, name: str) -> int | None:
    time = _optional(value, 0, 2**52, name)
    return None if time is None else round(time)


def _factor(rate: float, base: float) -> int:
    """Return ``rate`` divided by ``base``, or 0 if the result is not a whole number."""
    ratio = rate / base
    return round(ratio) if abs(ratio - round(ratio)) < 1e-9 * ratio else 0


@dataclass(frozen=True)
class BasebandRecording:
    """Recording that a program has requested. ``first`` is the number of the hydrophone's first sample in it."""

    message: AgentMessage
    first: int
    count: int  #: number of baseband samples
    carrier: float
    rate: float  #: sampling rate of the baseband samples in Hz
    factor: int  #: passband samples per baseband sample


class BasebandService:
    """Part of the physical agent that sends and records signals. ``step`` must be called at each simulation step."""

    def __init__(self, phy: PhysicalAgent, blocks: HydrophoneBlocks, carrier: float) -> None:
        self.phy, self.blocks = phy, blocks
        self.carrier, self.rate, self.power = carrier, 12000.0, 0.0
        self.block_size, self.blocks_left = 65536, 0  #: size and number of passband blocks to record
        self.history = SampleHistory(HISTORY_S)
        self._recordings: list[BasebandRecording] = []
        self._next_block = 0  # number of the first sample of the next passband block
        phy.services += (SERVICES + "BASEBAND",)
        phy.parameters[-1] |= {
            "carrierFrequency": AgentParameter(lambda: self.carrier, self._set_carrier),
            "basebandRate": AgentParameter(lambda: self.rate, self._set_rate),
            "signalPowerLevel": AgentParameter(lambda: self.power, self._set_power),
            "maxSignalLength": AgentParameter(lambda: math.floor(MAX_SIGNAL_S * self.rate)),
            "maxPreambleID": AgentParameter(lambda: 0),
            "preambleDuration": AgentParameter(lambda: 0.0),
            "pbsblk": AgentParameter(lambda: self.block_size, self._set_block_size),
            "pbscnt": AgentParameter(lambda: self.blocks_left, self._set_blocks),
        }
        phy.requests |= {  # type: ignore[operator]
            UNET + "bb.TxBasebandSignalReq": self._transmit,
            UNET + "bb.RecordBasebandSignalReq": self._record,
        }

    def _set_carrier(self, value: Any) -> None:
        self.carrier = number(value, 1.0, MAX_RATE)

    def _set_rate(self, value: Any) -> None:
        self.rate = number(value, 100.0, MAX_RATE)

    def _set_power(self, value: Any) -> None:
        self.power = number(value, LOWEST_POWER_DB, 0.0)

    def _set_block_size(self, value: Any) -> None:
        self.block_size = integer(value, 1, 2**20)

    def _set_blocks(self, value: Any) -> None:
        if not self.blocks_left:
            self._next_block = self._sample_now()
        self.blocks_left = integer(value, 0, 10**6)

    def _sample_now(self) -> int:
        """Return the number of the next sample of the hydrophone, or 0 if its sampling rate is not known yet."""
        return math.ceil((self.phy.transmitter.time or 0.0) * self.history.rate - 1e-6)

    # -- transmission ----------------------------------------------------------------------

    def _transmit(self, message: AgentMessage) -> None:
        try:
            samples, rate, level = self._passband(message.fields)
            at = _time_us(message.fields.get("txTime"), "txTime")
            checked_sound(samples, rate, "peak")
            level = min(level_of_sound(samples, level, "peak"), self.phy.level)
            if self.phy.transmitter.full:
                raise ValueError("the queue is full")
        except (ValueError, InvalidArgument) as error:
            self.phy.refuse(message, str(error))
            return
        container = self.phy.container
        container.agree(message)
        left: list[SignalSent] = []

        def ended() -> None:
            container.reply(message, UNET + "phy.TxFrameNtf", txTime=left[0].emission_ns // 1000)

        def failed(reason: str) -> None:
            container.reply(message, UNET + "FailureNtf", "FAILURE", reason=reason)

        self.phy.transmitter.play(
            samples, rate, level, Progress(left.append, ended, failed), at=None if at is None else at * 1000
        )

    def _passband(self, fields: Any) -> tuple[Any, float, float]:
        """Return the passband samples within +-1 for a request, their sampling rate in Hz, and the source level of a
        full-scale sine in dB. Raises ValueError, stating the reason, if the signal cannot be sent.
        """
        if fields.get("preamble"):
            raise ValueError("preambles are not supported")
        if fields.get("channels") not in (None, 0, 1):
            raise ValueError("there is only one channel")
        given = fields.get("fc")
        carrier = self.carrier if given is None else _optional(given, 0.0, MAX_RATE, "fc") or 0.0
        values = from_json_numbers(fields.get("signal"))
        rate = _optional(fields.get("fs") or None, 100.0, MAX_RATE, "fs")
        if carrier == 0.0:
            rate = rate or min(PASSBAND_FACTOR * self.rate, MAX_RATE)
            samples = values
        else:
            rate = rate or self.rate
            if len(values) % 2:
                raise ValueError("a baseband signal needs a real and an imaginary part for each sample")
            factor = math.ceil((carrier + 0.5 * rate) / (0.97 * USABLE * rate))
            if factor * rate > MAX_RATE:
                raise ValueError("fc and fs are too high")
            if len(values) > 2 * MAX_SIGNAL_S * rate:
                raise ValueError(f"the signal is longer than {MAX_SIGNAL_S:g} s")
            samples = to_passband(values[::2] + 1j * values[1::2], rate, carrier, factor) if len(values) else values
            rate *= factor
        if len(samples) > MAX_SIGNAL_S * rate:
            raise ValueError(f"the signal is longer than {MAX_SIGNAL_S:g} s")
        largest = float(np.abs(samples).max(initial=0.0))
        level = self.phy.level + self.power
        if 1.0 < largest < math.inf:
            samples, level = np.clip(samples / largest, -1.0, 1.0), level + 20.0 * math.log10(largest)
        return samples.astype(np.float32), rate, level

    # -- recording -------------------------------------------------------------------------

    def _record(self, message: AgentMessage) -> None:
        try:
            self._recordings.append(self._recording(message))
        except ValueError as error:
            self.phy.refuse(message, str(error))
            return
        self.phy.container.agree(message)
        self._finish_recordings()

    def _recording(self, message: AgentMessage) -> BasebandRecording:
        fields, rate = message.fields, self.history.rate
        if not rate:
            raise ValueError("the hydrophone has not sent any samples yet")
        if len(self._recordings) >= MAX_RECORDINGS:
            raise ValueError("too many recordings have been requested")
        time, length = _time_us(fields.get("recTime"), "recTime"), fields.get("recLen", fields.get("recLength"))
        longest = math.floor(MAX_SIGNAL_S * self.rate)
        try:
            count = integer(length, 1, longest) if length else longest
        except ValueError:
            raise ValueError(f"recLen must be a whole number from 1 to {longest}") from None
        factor = _factor(rate, self.rate)
        if not factor:
            raise ValueError(f"basebandRate must be {rate:g} Hz divided by a whole number")
        if self.carrier + 0.5 * self.rate > 0.5 * rate:
            raise ValueError(f"the band reaches beyond half the sampling rate of the hydrophone, {rate:g} Hz")
        first = self._sample_now() if time is None else math.ceil(time * 1e-6 * rate - 1e-6)
        if time is not None and first < self.history.end - (HISTORY_S - 1.0) * rate:
            raise ValueError(f"samples are kept for {HISTORY_S:g} s only")
        return BasebandRecording(message, first, count, self.carrier, self.rate, factor)

    def _finish_recordings(self) -> None:
        for recording in list(self._recordings):
            before = margin(recording.factor)
            end = recording.first + (recording.count - 1) * recording.factor + 1
            try:
                samples = self.history.between(recording.first - before, end + before)
            except MissingSamples:
                self._recordings.remove(recording)
                self.phy.container.reply(
                    recording.message, UNET + "FailureNtf", "FAILURE", reason="samples are missing"
                )
                continue
            if samples is None:
                continue
            self._recordings.remove(recording)
            baseband = to_baseband(samples, self.history.rate, recording.carrier, recording.factor)
            self.phy.container.reply(
                recording.message,
                UNET + "bb.RxBasebandSignalNtf",
                **self._signal(recording.first, recording.carrier, recording.rate),
                signal=to_json_floats(np.stack([baseband.real, baseband.imag], axis=1).ravel()),
            )

    def _signal(self, first: int, carrier: float, rate: float) -> dict[str, Any]:
        time = round(first * 1e6 / self.history.rate)
        return {"rxTime": time, "fc": carrier, "fs": rate, "channels": 1, "preamble": 0}

    def _publish_blocks(self) -> None:
        while self.blocks_left:
            try:
                samples = self.history.between(self._next_block, self._next_block + self.block_size)
            except MissingSamples:
                self._next_block = self.history.end
                return
            if samples is None:
                return
            fields = self._signal(self._next_block, 0.0, self.history.rate)
            self.phy.notify("", UNET + "bb.RxBasebandSignalNtf", **fields, signal=to_json_floats(samples))
            self._next_block += self.block_size
            self.blocks_left -= 1

    def step(self) -> None:
        """Process the new blocks of the hydrophone."""
        for block in self.blocks.take():
            self.history.add(block)
        self._finish_recordings()
        self._publish_blocks()
