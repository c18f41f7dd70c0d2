"""Commands of the ``wavesim`` program for JANUS (STANAG 4748), the digital underwater signalling standard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk.cli_commands import unused
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import InvalidArgument, WaveSimError
from wavesim_sdk.terminal_text import echo

if TYPE_CHECKING:
    from wavesim_sdk.janus import JanusReception, ParameterSet

_HZ = Quantity("frequency", "Hz", low=1)
_AMPLITUDE = 0.95


class NoPacket(WaveSimError):
    """A recording contains no packet that could be decoded."""

    exit_code = 20


class _HexNumber(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A number in hexadecimal, such as `3ff`."""

    name = "hex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value, 16)
        except ValueError:
            self.fail(f"'{value}' is not a hexadecimal number", param, ctx)


class _HexBytes(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Bytes in hexadecimal, such as `00ff`."""

    name = "hex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        try:
            return bytes.fromhex(value)
        except ValueError:
            self.fail(f"'{value}' is not hexadecimal: use two digits for each byte, such as 00ff", param, ctx)


def _band(function: Any) -> Any:
    """Add the options for the band."""
    bandwidth = click.option("--bandwidth", type=_HZ, help="Bandwidth; default: a third of the centre frequency.")
    centre = click.option(
        "--centre", type=_HZ, help="Centre frequency; default: 11520 Hz with 4160 Hz bandwidth (parameter set 1)."
    )
    return centre(bandwidth(function))


def _parameters(centre: float | None, bandwidth: float | None) -> ParameterSet:
    from wavesim_sdk.janus import INITIAL_BAND, ParameterSet

    if centre is None and bandwidth is None:
        return INITIAL_BAND
    return ParameterSet(round(centre or INITIAL_BAND.centre), round(bandwidth or 0))


@click.group()
def janus() -> None:
    """Write and read JANUS sound (STANAG 4748).

    \b
    wavesim janus encode "surface now" call.wav
    wavesim janus decode call.wav
    """


@janus.command()
@click.argument("message")
@click.argument("out", metavar="OUT.wav", type=click.Path(path_type=Path))
@click.option("--hex", "as_hex", is_flag=True, help="Read MESSAGE as hexadecimal bytes instead of text.")
@click.option("--station", type=click.IntRange(0, 255), default=0, help="Identifier of the sender.", show_default=True)
@click.option(
    "--class", "class_id", type=click.IntRange(0, 255), help="Class of a packet without message; default: 16."
)
@click.option("--application", type=click.IntRange(0, 63), help="Its application type; default: 0.")
@click.option("--data", type=_HexNumber(), help="Its 34 bits of application data, in hexadecimal; default: 0.")
@click.option("--mobile", is_flag=True, help="Declare the sender mobile.")
@click.option("--wake-up", is_flag=True, help="Begin with the three wake-up tones.")
@click.option("--sampling", type=_HZ, default="48000", show_default=True, help="Sampling rate.")
@click.option(
    "--bits", type=click.Choice(["16", "24", "32"]), default="16", show_default=True, help="32: float samples."
)
@_band
def encode(
    message: str,
    out: Path,
    as_hex: bool,
    station: int,
    sampling: float,
    bits: str,
    wake_up: bool,
    mobile: bool,
    **own: Any,
) -> None:
    """Write MESSAGE as JANUS sound to a WAV file.

    MESSAGE is the cargo of a packet of class 16, application type 0: at most 480 bytes of UTF-8 text. If MESSAGE is
    empty (""), the sound is a single packet; --class, --application and --data set its fields.
    """
    from dataclasses import replace

    from wavesim_sdk import janus as modem
    from wavesim_sdk.wav_files import write_wav

    if out.suffix.lower() != ".wav":
        raise click.BadParameter(f"'{out}' must end in .wav", param_hint="OUT.wav")
    parameters = _parameters(own["centre"], own["bandwidth"])
    cargo = b""
    if message:
        unused('with a message: use "" as MESSAGE for a packet without cargo', "class_id", "application", "data")
        # an argument that is not UTF-8 keeps its bytes
        text = _HexBytes().convert(message, None, None) if as_hex else message.encode("utf-8", "surrogateescape")
        packet, cargo = modem.message(text, station, 1 / parameters.spacing)
    else:
        unused("without a message", "as_hex", "station")
        packet = modem.Packet(
            class_id=16 if own["class_id"] is None else own["class_id"],
            application=own["application"] or 0,
            data=own["data"] or 0,
        )
    transmission = modem.Transmission(replace(packet, mobile=mobile), cargo, parameters, wake_up)
    rate = parameters.check_sampling(sampling, "--sampling")
    samples = transmission.samples(rate)
    write_wav(out, _AMPLITUDE * samples, rate, int(bits))
    echo(
        f"{out}: {len(samples) / rate:.3f} s at {rate} Hz: packet {transmission.packet.to_bytes().hex()}, cargo {len(cargo)} bytes"
    )


@janus.command()
@click.argument("recording", metavar="IN.wav", type=click.Path(path_type=Path))
@click.option("--channel", type=click.IntRange(1), default=1, show_default=True, help="Channel of the file.")
@click.option(
    "--max-speed", type=Quantity("speed", low=0, high=20), default="5", show_default=True, help="Largest speed."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per packet, for scripts.")
@_band
def decode(recording: Path, channel: int, max_speed: float, as_json: bool, **own: Any) -> None:
    """Print the JANUS packets in a WAV file.

    The start is the time of the preamble in the file. The speed is positive if the range decreases. Ec/N0 is the energy
    of a chip relative to the noise density. Cargo has no check sum. The exit code is 20 if the file contains no packet.
    """
    from wavesim_sdk.janus import JanusReceiver
    from wavesim_sdk.wav_files import WavFile

    parameters = _parameters(own["centre"], own["bandwidth"])
    found = 0
    with WavFile(recording) as file:
        if channel > file.channels:
            raise InvalidArgument(f"{recording}: has {file.channels} channels, got --channel {channel}")
        parameters.check_sampling(file.sampling, f"{recording}: the sampling rate")
        receiver = JanusReceiver(file.sampling, parameters, max_speed=max_speed)
        try:
            for block in file.blocks(file.sampling):
                found += _show(receiver.push(block[:, channel - 1]), as_json)
            found += _show(receiver.finish(), as_json)
        except InvalidArgument as error:
            raise InvalidArgument(f"{recording}: {error}") from None
        length = file.count / file.sampling
        if file.truncated:
            echo(f"{recording}: the file is truncated: it ends after {length:.3f} s", err=True)
    if not found:
        raise NoPacket(
            f"{recording}: no JANUS packet found in {length:.3f} s of sound (band around {parameters.centre} Hz)"
        )


def _show(receptions: list[JanusReception], as_json: bool) -> int:
    """Print receptions, and return their number."""
    for r in receptions:
        packet = r.packet
        if as_json:
            values = {"start": r.start, "speed": r.speed, "ec_n0": r.ec_n0, **vars(packet)}
            echo(
                json.dumps(
                    values | {"packet": packet.to_bytes().hex(), "cargo": None if r.cargo is None else r.cargo.hex()}
                )
            )
            continue
        line = f"{r.start:10.4f} s  {r.speed:+5.2f} m/s  Ec/N0 {r.ec_n0:4.1f} dB  {packet.to_bytes().hex()}"
        line += f"  class {packet.class_id} type {packet.application} data {packet.data:x}"
        if r.cargo is None:
            line += "  (the file ends before the cargo is complete)"
        elif r.cargo:
            line += f"  {_text(r.cargo)}"
        echo(line)
    return len(receptions)


def _text(cargo: bytes) -> str:
    """Return cargo as text in quotes if it is text, otherwise in hexadecimal."""
    content = cargo.rstrip(b"\0")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    return f'"{text}"' if text and text.isprintable() else cargo.hex()
