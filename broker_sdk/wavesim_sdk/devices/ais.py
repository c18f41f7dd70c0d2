"""AIS sentences for the reports that a sensor `ais` lists."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wavesim_sdk import ais
from wavesim_sdk.sensors import AIS_STATIONS
from wavesim_sdk.wire.state import Value


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def reports(value: Value) -> list[ais.AisReport | None]:
    """Return the reports of a sensor `ais` by slot, with the own station first and None for an empty slot."""
    found: list[ais.AisReport | None] = []
    for i in range(AIS_STATIONS):
        if not math.isfinite(value.mmsi[i]):
            found.append(None)
            continue
        kind = int(value.station[i])
        found.append(
            ais.AisReport(
                int(value.mmsi[i]),
                kind,
                _known(value.latitude[i]),
                _known(value.longitude[i]),
                _known(value.sog[i]),
                _known(value.cog[i]),
                _known(value.heading[i]),
                _known(value.turn[i]),
                value.time_ns * 1e-9 - value.age[i],
                int(value.status[i]),
                ais.unpacked(value.called[3 * i : 3 * i + 3]),
                "",
                int(value.kind[i]),
                value.length[i],
                value.width[i],
            )
        )
    return found


class AisSentences:
    """Encoder of AIS sentences: it sends each report once, and the name, type and size of each station every six
    minutes.
    """

    def __init__(self) -> None:
        self._reported_at: dict[tuple[int, bool], float] = {}
        self._static: dict[tuple[int, bool], float] = {}
        self._number = 0

    def lines(self, value: Value) -> Iterator[bytes]:
        for i, r in enumerate(reports(value)):
            if r is None or r.kind == ais.RECEIVER:
                continue
            own = i == 0
            if r.time <= self._reported_at.get((r.mmsi, own), -math.inf) + 1e-3:
                continue
            self._reported_at[r.mmsi, own] = r.time
            yield from self._sentences(ais.position_report(r), own)
            if r.time >= self._static.get((r.mmsi, own), -math.inf) + ais.STATIC_PERIOD:
                self._static[r.mmsi, own] = r.time
                for bits in ais.static_reports(r):
                    yield from self._sentences(bits, own)

    def _sentences(self, bits: ais.BitFields, own: bool) -> Iterator[bytes]:
        self._number += 1
        yield from ais.sentences(bits, own, number=self._number)
