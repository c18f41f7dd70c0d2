"""AIS sentences for the reports that an `ais` sensor lists, encoded by pyais.

The encoder uses these messages of ITU-R M.1371-5: 1 (class A), 18 (class B), 21 (aids to navigation), 5 and 24 (name,
call sign, type, size). An unknown value becomes the code for "not available".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from pyais.encode import encode_msg
from pyais.messages import (
    MessageType1,
    MessageType5,
    MessageType18,
    MessageType21,
    MessageType24PartA,
    MessageType24PartB,
    Payload,
)

from wavesim_sdk import ais
from wavesim_sdk.epoch import utc
from wavesim_sdk.wire.state import Value

STATIC_PERIOD = 360.0  #: interval in s at which messages 5 and 24 are repeated
EPFD_GPS = 1  #: code for the type of positioning device: a GPS receiver


class VoyageData(MessageType5):
    """AIS message 5 that can contain reserved ship types. Without this class, pyais would replace a reserved type with
    another type.
    """

    @classmethod
    def fields(cls) -> tuple[Any, ...]:
        plain = {"from_converter": None}
        return tuple(
            f.evolve(metadata={**f.metadata, **plain}) if f.name == "ship_type" else f for f in super().fields()
        )


class AisSentences:
    """Encoder of AIS sentences. It encodes each report once, and the name, type and size of each station every six
    minutes.
    """

    def __init__(self, clock: Callable[[float], datetime] = utc) -> None:
        self._clock = clock
        self._reported_at: dict[tuple[int, bool], float] = {}
        self._static: dict[tuple[int, bool], float] = {}
        self._number = 0

    def lines(self, value: Value) -> Iterator[bytes]:
        for i, r in enumerate(ais.reports(value)):
            if r is None or r.kind == ais.RECEIVER:
                continue
            own = i == 0
            if r.time <= self._reported_at.get((r.mmsi, own), -math.inf) + 1e-3:
                continue
            self._reported_at[r.mmsi, own] = r.time
            yield from self._sentences(position_report(r, self._clock), own)
            if r.time >= self._static.get((r.mmsi, own), -math.inf) + STATIC_PERIOD:
                self._static[r.mmsi, own] = r.time
                for message in static_reports(r):
                    yield from self._sentences(message, own)

    def _sentences(self, message: Payload, own: bool) -> Iterator[bytes]:
        self._number += 1
        yield from sentences(message, own, self._number)


def sentences(message: Payload, own: bool = False, number: int = 0) -> Iterator[bytes]:
    """Yield the sentences of a message: ``!AIVDM`` for other stations, ``!AIVDO`` for the receiver's own station.

    ``number`` identifies the message to which the sentences of a multi-sentence message belong.
    """
    for line in encode_msg(message, sentence_type="VDO" if own else "VDM", seq_id=number % 10):
        yield f"{line}\r\n".encode("ascii")


def position_report(r: ais.AisReport, clock: Callable[[float], datetime] = utc) -> Payload:
    """Return message 1, 18 or 21, depending on the type of station. ``clock`` converts a simulation time in ns into the
    time to report.
    """
    common = {
        "mmsi": r.mmsi,
        "accuracy": 1,
        "lon": _in_steps(r.longitude, ais.STEP_ANGLE, 181 * 600_000) / 600_000,
        "lat": _in_steps(r.latitude, ais.STEP_ANGLE, 91 * 600_000) / 600_000,
        "second": clock(r.time * 1e9).second,
    }
    if r.kind == ais.AID_TO_NAVIGATION:
        aid: Any = MessageType21.create(
            **common, aid_type=r.ship_type, name=ais.six_bit_text(r.name), epfd=EPFD_GPS, **_size(r)
        )
        aid.name_ext = None  # without it, the message has its shortest form
        return aid  # type: ignore[no-any-return]
    common["speed"] = (1023 if r.sog is None else min(1022, _in_steps(abs(r.sog), ais.STEP_SPEED))) / 10
    common["course"] = (3600 if r.cog is None else _in_steps(r.cog, ais.STEP_COURSE) % 3600) / 10
    common["heading"] = 511 if r.heading is None else _in_steps(r.heading, ais.STEP_HEADING) % 360
    if r.kind == ais.CLASS_A:
        return MessageType1.create(**common, status=r.status, turn=_turn(r.turn), maneuver=0)
    return MessageType18.create(**common, cs=r.kind == ais.CLASS_B, band=1)


def static_reports(r: ais.AisReport) -> Iterator[Payload]:
    """Yield message 5 or both parts of message 24. Yield nothing for an aid to navigation, because message 21 contains
    its name.
    """
    name, callsign = ais.six_bit_text(r.name), ais.six_bit_text(r.callsign)
    if r.kind == ais.CLASS_A:
        yield VoyageData.create(
            mmsi=r.mmsi,
            ais_version=2,
            callsign=callsign,
            shipname=name,
            ship_type=r.ship_type,
            epfd=EPFD_GPS,
            hour=24,
            minute=60,
            destination=ais.six_bit_text(r.destination),
            **_size(r),
        )
    elif r.kind in (ais.CLASS_B, ais.CLASS_B_SO):
        yield MessageType24PartA.create(mmsi=r.mmsi, shipname=name)
        spare = bytes([EPFD_GPS << 4])  # the standard's edition 5 has the type of the positioning device there
        yield MessageType24PartB.create(
            mmsi=r.mmsi, partno=1, ship_type=r.ship_type, callsign=callsign, spare_1=spare, **_size(r)
        )


def _in_steps(value: float | None, step: float, unknown: int = 0) -> int:
    """Return a value as a whole number of units of ``step``, the resolution of a field in a report. Halves are rounded
    up. ``unknown`` is the result for a value of None.
    """
    return unknown if value is None else math.floor(value / step + 0.5)


def turn_code(turn: float | None) -> int:
    """Return the rate-of-turn field of message 1: 4.733 times the square root of the rate in deg/min, with its sign and
    at most 126. The value -128 means "not available".
    """
    if turn is None:
        return -128
    code = min(126, _in_steps(4.733 * math.sqrt(math.degrees(abs(turn)) * 60.0), 1.0))
    return code if turn >= 0.0 else -code


def _turn(turn: float | None) -> float:
    """Return the rate of turn in deg/min that pyais encodes as the code for ``turn`` (rad/s), or -128 if ``turn`` is
    None.
    """
    code = turn_code(turn)
    return -128.0 if turn is None else math.copysign((code / 4.733) ** 2, code)


def _size(r: ais.AisReport) -> dict[str, int]:
    """Return the distances from the reported position, which is the middle of the vessel, to the bow, stern, port side
    and starboard side.
    """
    length, width = min(1022, _in_steps(r.length, 1.0)), min(126, _in_steps(r.width, 1.0))
    return {
        "to_bow": length // 2,
        "to_stern": length - length // 2,
        "to_port": width // 2,
        "to_starboard": width - width // 2,
    }
