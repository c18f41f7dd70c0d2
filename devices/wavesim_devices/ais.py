"""AIS sentences for the reports that a sensor `ais` lists."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wavesim_sdk import ais
from wavesim_sdk.wire.state import Value


class AisSentences:
    """Encoder of AIS sentences: it sends each report once, and the name, type and size of each station every six
    minutes.
    """

    def __init__(self) -> None:
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
            yield from self._sentences(ais.position_report(r), own)
            if r.time >= self._static.get((r.mmsi, own), -math.inf) + ais.STATIC_PERIOD:
                self._static[r.mmsi, own] = r.time
                for bits in ais.static_reports(r):
                    yield from self._sentences(bits, own)

    def _sentences(self, bits: ais.BitFields, own: bool) -> Iterator[bytes]:
        self._number += 1
        yield from ais.sentences(bits, own, number=self._number)
