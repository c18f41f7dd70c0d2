"""Frames from the instruments of a simulation, computed inside the engine process."""

from __future__ import annotations

import functools
from typing import Any

from wavesim_sdk.frame_labels import LabelNames
from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_server.simulation import Simulation
from wavesim_world.sonars.scene_labels import label_names


class FrameCollector:
    """Frames from the instruments of a simulation, each with the number that it would have in a frame ring."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._frames: list[ImagingFrame] = []
        #: number of the newest frame, by sensor type and row in the table of that type
        self.numbers: dict[tuple[str, int], int] = {}

    @functools.cached_property
    def _names(self) -> LabelNames:
        return label_names(self._simulation.loaded)

    def names(self) -> LabelNames:
        """Return the names of the labels, including the names of the bodies that are present."""
        names = self._names
        for row, occupant in self._simulation.occupants.items():
            names = names.with_body(row, occupant.name, occupant.model.name)
        return names

    def add(self, type_: str, place: int, record: Any, *payload: bytes) -> int:
        """Add a frame of an instrument and return its number."""
        body = b"".join(payload)
        number = self.numbers[type_, place] = self.numbers.get((type_, place), 0) + 1
        record["number"], record["bytes"] = number, len(body)
        self._frames.append(ImagingFrame(record.copy(), body, self.names()))
        return number

    def sources(self) -> dict[tuple[str, str], None]:
        """Return the names of the body and the instrument of each collected frame, without duplicates."""
        return dict.fromkeys((f.body, f.name) for f in self._frames)

    def take(self) -> list[ImagingFrame]:
        """Return all frames since the last call, in the order in which they were computed."""
        frames, self._frames = self._frames, []
        return frames
