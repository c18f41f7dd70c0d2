"""Mosaics of all side-scan sonars and multibeam echosounders of a source, for the chart and the sea bed of pages.

On the websocket, a tile consists of ``WVM1``, the length of its header (u4), the header (JSON, padded with spaces to a
multiple of 4 bytes), and rows of f4 from south to north, in which NaN means no data.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from wavesim_sdk.errors import WaveSimError
from wavesim_viz.frame import to_json_value
from wavesim_viz.image_streams import FrameStream
from wavesim_viz.mosaic_tiles import TILE_CELLS, GrowingMosaic
from wavesim_viz.page_content import RosterEntry
from wavesim_viz.page_protocol import MosaicLayer, MosaicMessage, MosaicTileHeader

KINDS = ("sidescan", "bathymetry")
MOST_LAYERS = 8
RETRY_S = 2.0
UPDATE_S = 0.5  #: interval in s between two computations of the values
MOST_COMPUTED = 60  #: maximum number of tiles that are computed in one pass
READ_S = 0.015  #: maximum wall time in s for one pass of reading frames
#: percentiles of the values that are mapped to the ends of the colour scale; a side-scan sonar has more outliers at the
#: low end, because its shadows are black
SHARES = {"sidescan": (5.0, 99.5), "bathymetry": (0.5, 99.5)}
SAMPLED = 50_000  #: maximum number of values from which the percentiles are computed


class SonarMosaic:
    """Mosaic of one sonar, and the stream of the sonar's frames."""

    def __init__(self, row: int, body: str, name: str, stream: FrameStream) -> None:
        self.row, self.body, self.name, self.stream = row, body, name, stream
        self.mosaic: GrowingMosaic | None = None  #: the mosaic; None until the first frame
        self.epoch = 0  #: number of the epoch; tiles from another epoch are invalid
        self.ignored = False  #: whether the stream is ignored because its frames cannot form a mosaic
        self._due, self._settled = 0.0, True
        self.limits = (0.0, 1.0)

    def read(self, until: float) -> None:
        """Add new frames until there are no more, or until the monotonic time ``until``."""
        while not self.ignored:
            back, found = self.stream.new()
            if back:
                self.mosaic, self.epoch = None, self.epoch + 1
            if not found:
                return
            for frame in found:
                if frame.kind not in KINDS:
                    self.ignored = True
                    self.stream.close()
                    return
                if self.mosaic is None:
                    self.mosaic = GrowingMosaic(frame.kind == "sidescan")
                cell = self.mosaic.cell
                self.mosaic.add(frame)
                if self.mosaic.cell != cell:
                    self.epoch += 1
            self._settled = False
            if time.monotonic() > until:
                return

    def compute(self, now: float) -> None:
        """Compute the values of changed tiles, and the limits of the colour scale."""
        if self.mosaic is None or self._settled or now < self._due:
            return
        self._due = now + UPDATE_S
        self._settled = self.mosaic.update(MOST_COMPUTED)
        values = [t.values for t in self.mosaic.tiles.values() if t.values is not None]
        if values:
            step = max(1, len(values) * TILE_CELLS**2 // SAMPLED)
            sample = np.concatenate([v.ravel() for v in values])[::step]
            sample = sample[np.isfinite(sample)]
            if len(sample):
                low, high = (float(v) for v in np.percentile(sample, SHARES[self.kind]))
                self.limits = round(low, 2), round(max(high, low + 0.1), 2)

    @property
    def kind(self) -> Literal["sidescan", "bathymetry"]:
        """Kind of the sonar: ``sidescan`` or ``bathymetry``."""
        assert self.mosaic is not None
        return "sidescan" if self.mosaic.sidescan else "bathymetry"

    def to_message(self) -> MosaicLayer:
        assert self.mosaic is not None
        return {
            "row": self.row,
            "body": self.body,
            "name": self.name,
            "kind": self.kind,
            "epoch": self.epoch,
            "cell": self.mosaic.cell,
            "low": self.limits[0],
            "high": self.limits[1],
        }

    def tiles(self, version: int) -> Iterator[bytes]:
        """Yield the packed tiles that have changed since a version."""
        assert self.mosaic is not None
        for (north, east), tile in list(self.mosaic.tiles.items()):
            if tile.values is None or tile.version <= version:
                continue
            head: MosaicTileHeader = {
                "row": self.row,
                "name": self.name,
                "epoch": self.epoch,
                "south": north * TILE_CELLS * self.mosaic.cell,
                "west": east * TILE_CELLS * self.mosaic.cell,
                "cell": self.mosaic.cell,
                "cells": TILE_CELLS,
            }
            text = json.dumps(to_json_value(head), separators=(",", ":")).encode()
            text += b" " * (-len(text) % 4)
            yield b"WVM1" + struct.pack("<I", len(text)) + text + tile.values.astype("<f4").tobytes()


class LiveMosaic:
    """Mosaics of a source. Each mosaic begins when a page first shows it."""

    def __init__(self, source: Any) -> None:
        self._source = source
        #: streams by row, name of the sonar, and generation of the body
        self.layers: dict[tuple[int, str, int], SonarMosaic] = {}
        self._version, self._retry = -1, 0.0

    def read(self, roster: list[RosterEntry], now: float) -> None:
        """Read the new frames from all sonars. When a server restarts, all mosaics start again."""
        version = self._source.scene()[0]
        if version != self._version:
            self._version = version
            self.close()
        if now >= self._retry:
            self._retry = now + RETRY_S
            self._open(roster)
        for layer in self.layers.values():
            layer.read(time.monotonic() + READ_S)
            layer.compute(now)

    def _open(self, roster: list[RosterEntry]) -> None:
        """Open the frames from new sonars, and forget the sonars of bodies that have left."""
        present = {(row, generation) for row, _, _, _, generation in roster}
        for key in [k for k in self.layers if (k[0], k[2]) not in present]:
            self.layers.pop(key).stream.close()
        for row, body, _, _, generation in roster:
            equipment = self._source.equipment(row)
            for sensor in equipment["sensors"] if equipment is not None else ():
                key = (row, sensor["name"], generation)
                if sensor["type"] == "sonar" and key not in self.layers and len(self.layers) < MOST_LAYERS:
                    try:
                        stream = self._source.open_frames(row, sensor["name"], every=True)
                    except WaveSimError:  # it may send frames later
                        continue
                    self.layers[key] = SonarMosaic(row, body, sensor["name"], stream)

    def shown(self) -> list[SonarMosaic]:
        """Return the mosaics that have data."""
        return [layer for layer in self.layers.values() if layer.mosaic is not None]

    def to_message(self) -> MosaicMessage:
        waiting = sum(layer.mosaic is None and not layer.ignored for layer in self.layers.values())
        return {"type": "mosaic", "layers": [layer.to_message() for layer in self.shown()], "waiting": waiting}

    def close(self) -> None:
        for layer in self.layers.values():
            layer.stream.close()
        self.layers.clear()
