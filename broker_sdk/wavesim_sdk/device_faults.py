"""Faults on the line between a device and its hosts. Commands and configurations refer to the line by the name
``device:NAME``.
"""

from __future__ import annotations

from wavesim_sdk import units
from wavesim_sdk.errors import InvalidArgument, UnknownName
from wavesim_sdk.names import shorten, suggest_name

PREFIX = "device:"
#: kinds of faults whose magnitude is the probability that a byte is affected
BYTE_KINDS = {
    "lost": "bytes are lost",
    "garbled": "one bit of the byte is inverted",
    "doubled": "bytes arrive twice",
}
LATE, SILENT, STALLED, DISCONNECTED, RESTARTED = "late", "silent", "stalled", "disconnected", "restarted"
DEAF_KINDS = (SILENT, DISCONNECTED, RESTARTED)  #: kinds of faults during which all bytes are lost
#: maximum length of a device name in bytes; with the prefix, it must fit into the 31 bytes for the target of a fault
MAX_NAME = 24
KINDS = (*BYTE_KINDS, LATE, SILENT, STALLED, DISCONNECTED, RESTARTED)


def device_of(part: str) -> str:
    """Return the name of the device in the target of a fault, such as ``device:nmea``; empty if the target is not a
    device.
    """
    return part.removeprefix(PREFIX) if part.startswith(PREFIX) else ""


def device_name(label: str) -> str:
    """Return the device name for a label, truncated to the maximum length."""
    return label.encode()[:MAX_NAME].decode(errors="ignore")


def line_fault_amount(kind: str, amount: float | str = 0.0) -> float:
    """Return the magnitude of a fault as a number: a probability per byte, or a delay in s; 0 for the other kinds.

    If ``amount`` is a string, a delay must include its unit. An empty string means that no magnitude is given. Raises
    ValueError if the fault is invalid.
    """
    if kind not in KINDS:
        raise UnknownName(f"unknown fault '{shorten(kind)}'{suggest_name(shorten(kind), KINDS)}")
    if isinstance(amount, str):
        try:
            amount = units.parse(amount, "time" if kind == LATE else "")[0] if amount else 0.0
        except ValueError as error:
            raise InvalidArgument(f"fault '{kind}': {error}") from None
    if kind in BYTE_KINDS and not 0.0 < amount <= 1.0:
        raise InvalidArgument(
            f"fault '{kind}' needs a probability per byte, greater than 0 and at most 1, such as '{kind} 0.001'"
        )
    if kind == LATE and not 0.0 < amount <= 1e9:
        raise InvalidArgument("fault 'late' needs a delay, such as 'late 0.5s'")
    if kind not in (*BYTE_KINDS, LATE) and amount:
        raise InvalidArgument(f"fault '{kind}' does not take an amount")
    return amount
