"""Sentences on the Micro-Modem's serial port. Sentences from the host begin with CC. Sentences from the modem begin
with CA, or with SN for navigation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from wavesim_sdk.checksums import xor
from wavesim_sdk.wire.items import Reception

CHECKSUM_ERROR, UNKNOWN_COMMAND, INVALID_ARGUMENT, BUSY, NOT_SENT = 1, 2, 3, 4, 5  #: error codes in CAERR,...,NMEA

_PARAMETERS = """
AGC=0 AGN=250 ASD=0 BND=3 BR1=3 BW0=4000 CRL=50 CST=1 CTO=10 DTH=108 DTO=10 DTP=50 ECD=50 FC0=25000 FMD=1
FML=200 IRE=0 MFD=0 MOD=0 NDT=120 NPT=50 NRL=25 NRV=0 PAD=2 PCM=0 POW=-100 PRL=50 PTH=50 PTO=14 REV=1 RXA=0
RXD=1 RXP=1 SCG=0 SGP=0 SHF=0 SNR=0 SNV=0 SRC=0 TAT=50 TOA=0 TXD=0 TXF=1 TXP=1 XST=1
"""
#: default of each CCCFG parameter that hosts may set; a real modem has more parameters
DEFAULTS = {name: int(value) for name, _, value in (text.partition("=") for text in _PARAMETERS.split())}


class InvalidSentence(Exception):
    """Raised for a sentence from the host that the modem cannot execute. The arguments are the code and the text of the
    CAERR reply.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def checksum(body: str) -> int:
    """Return the checksum: the exclusive or of all characters between the dollar sign and the asterisk."""
    return xor(body.encode("ascii", errors="replace"))


def sentence(*fields: object) -> bytes:
    """Return a sentence with its checksum and line end."""
    body = ",".join(map(str, fields))
    return f"${body}*{checksum(body):02X}\r\n".encode("ascii", errors="replace")


def parse(line: str) -> tuple[str, list[str]] | None:
    """Return the name and the fields in a sentence from the host, or None if the line is not a sentence. The checksum
    is optional.

    Raises InvalidSentence if the checksum is wrong.
    """
    start = line.find("$")
    if start < 0:
        return None
    body, star, digits = line[start + 1 :].partition("*")
    if star:
        try:
            right = int(digits.strip(), 16) == checksum(body)
        except ValueError:
            right = False
        if not right:
            raise InvalidSentence(CHECKSUM_ERROR, "Bad checksum")
    name, *fields = (part.strip() for part in body.split(","))
    return name, fields


def whole(fields: list[str], index: int, low: int, high: int) -> int:
    """Return a field as a whole number. Raises InvalidSentence if it is missing or out of range."""
    try:
        value = int(fields[index])
    except (IndexError, ValueError):
        raise InvalidSentence(INVALID_ARGUMENT, f"Field {index + 1} is not a number") from None
    if not low <= value <= high:
        raise InvalidSentence(INVALID_ARGUMENT, f"Field {index + 1} must be between {low} and {high}")
    return value


def data(fields: list[str], index: int, most: int) -> bytes:
    """Return a field of hexadecimal digits as at most ``most`` bytes. Raises InvalidSentence if it is invalid or too
    long.
    """
    try:
        found = bytes.fromhex(fields[index])
    except (IndexError, ValueError):
        raise InvalidSentence(INVALID_ARGUMENT, f"Field {index + 1} is not hexadecimal") from None
    if len(found) > most:
        raise InvalidSentence(INVALID_ARGUMENT, f"More than {most} bytes")
    return found


@dataclass
class CycleStatistics:
    """Statistics of a reception, as the modem reports them in CACST."""

    reception: Reception
    rate: int
    source: int
    destination: int
    packet_type: int  #: type of the packet: 1 FSK, 2 FSK mini-packet, 3 PSK, 5 flexible
    frames: int = 1
    bad_frames: int = 0

    def fields(self, arrival: datetime, version: int, carrier: float, sound_speed: float) -> list[object]:
        """Return the fields that follow CACST, in version 0 or 6 of the sentence. Detector values that are not
        simulated are 0.
        """
        r = self.reception
        level, snr = round(r.level), f"{r.snr:.1f}"
        doppler = f"{sound_speed * (r.frequency / carrier - 1.0):.1f}"
        mode = 1 if self.bad_frames else 0
        stamp = arrival.strftime("%Y%m%d%H%M%S." if version else "%H%M%S.") + f"{arrival.microsecond // 100:04d}"
        found: list[object] = [version] if version else []
        found += [mode, stamp, 7, 0, 0, 0, level, 250, 0, 0, 0, 0, self.rate, self.source, self.destination]
        found += [0, self.packet_type, self.frames, self.bad_frames, level, snr, snr, snr, f"{-r.snr:.1f}", 200]
        return [*found, doppler, round(r.level - r.snr), round(carrier), 4000]
