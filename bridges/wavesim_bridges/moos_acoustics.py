"""Acoustics for a MOOS community: requests and receptions of sound as strings of the form `name=value,name=value`. This
module uses neither sockets nor a clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from wavesim_bridges.core import MalformedMessage
from wavesim_sdk.tables import MAX_PAYLOAD
from wavesim_sdk.wire.items import Reception

SEND, RANGE, MESSAGE = "ACOUSTIC_SEND", "BRS_RANGE_REQUEST", "NODE_MESSAGE_LOCAL"
REQUEST_VARIABLES = (SEND, RANGE, MESSAGE)
EVERYBODY = "all"
_KINDS = ("pulse", "data", "range request", "range reply", "sound")


class TransducerClient(Protocol):
    """Methods of a broker that request the transmission of sound."""

    def ping(self, frequency: float) -> int: ...
    def send(self, payload: bytes, to: int = 0) -> int: ...
    def range_to(self, address: int) -> int: ...


def pairs(text: str) -> dict[str, str]:
    """Parse a string such as `to=5,text="one, two"`. Names become lower case; commas within quotation marks belong to a
    value.
    """
    found: dict[str, str] = {}
    parts = text.split('"')
    parts[1::2] = [part.replace(",", "\0") for part in parts[1::2]]
    for piece in "".join(parts).split(","):
        name, equals, value = piece.partition("=")
        if equals:
            found[name.strip().lower()] = value.replace("\0", ",").strip()
    return found


def _number(text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise MalformedMessage("invalid number in a request") from None
    if not 0.0 <= value <= most:
        raise MalformedMessage("invalid number in a request")
    return value


def request(variable: str, text: str) -> Callable[[TransducerClient], int]:
    """Parse a request for the transducer. Raise MalformedMessage if the text contains no request."""
    fields = pairs(text)
    if variable == RANGE:
        if "id" in fields:
            address = int(_number(fields["id"], 255))
            return lambda t: t.range_to(address)
        if "frequency" in fields:
            frequency = _number(fields["frequency"], 1e6)
            return lambda t: t.ping(frequency)
        raise MalformedMessage("range target missing")
    if variable == MESSAGE:
        if "dest_node" not in fields or "var_name" not in fields:
            raise MalformedMessage("invalid node message")
        payload, to = text.encode(), 0
    else:
        to = int(_number(fields.get("to", "0"), 255))
        try:
            payload = bytes.fromhex(fields["hex"]) if "hex" in fields else fields["text"].encode()
        except (KeyError, ValueError):
            raise MalformedMessage("nothing to send") from None
    if not 0 < len(payload) <= MAX_PAYLOAD:
        raise MalformedMessage("too long for a packet" if payload else "nothing to send")
    return lambda t: t.send(payload, to)


def _readable(payload: bytes) -> str | None:
    text = payload.decode(errors="replace")
    return text if "�" not in text and text.isprintable() else None


def reception_variables(r: Reception, vehicle: str, now: float) -> dict[str, str]:
    """Return the variables and strings that report a reception. ``now`` is MOOS time in s."""
    who = str(r.from_address or r.code or f"{r.frequency / 1e3:.1f}kHz")
    said = [f"time={now:.3f}", f"kind={_KINDS[r.kind] if r.kind < len(_KINDS) else r.kind}", f"from={r.from_address}"]
    said += [
        f"to={r.to_address}",
        f"code={r.code}",
        f"frequency={r.frequency:.1f}",
        f"level={r.level:.1f}",
        f"snr={r.snr:.1f}",
    ]
    found: dict[str, str] = {}
    if r.range is not None:
        said.append(f"range={r.range:.3f}")
        found["BRS_RANGE_REPORT"] = f"vname={vehicle},range={r.range:.3f},id={who},time={now:.3f}"
    if r.azimuth is not None and r.elevation is not None:
        said += [f"azimuth={math.degrees(r.azimuth):.2f}", f"elevation={math.degrees(r.elevation):.2f}"]
    if r.payload is not None:
        text = _readable(r.payload)
        said.append(f"hex={r.payload.hex()}" if text is None else f'text="{text}"')
        fields = pairs(text or "")
        if "var_name" in fields and fields.get("dest_node", "").lower() in (vehicle.lower(), EVERYBODY):
            found["NODE_MESSAGE"] = text or ""
    found["ACOUSTIC_HEARD"] = ",".join(said)
    return found
