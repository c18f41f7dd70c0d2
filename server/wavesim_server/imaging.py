"""Frames of sonars, cameras and lidars in the process of the engine."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk.errors import InvalidArgument, UnknownName
from wavesim_sdk.frame_labels import LabelNames
from wavesim_sdk.imaging_frames import FRAME_SENSOR_TYPES, ImagingFrame, no_such_source
from wavesim_server.instruments import InstalledInstrument, InstrumentRegistry, installed_emulators
from wavesim_server.simulation import Simulation
from wavesim_world.sonars.scene_labels import label_names

if TYPE_CHECKING:
    from wavesim_server.instrument_banks import InstrumentBanks


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
        """Return the names of the labels, with the bodies that are present."""
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
        """Return the bodies and the instruments (names) from which there are frames."""
        return dict.fromkeys((f.body, f.name) for f in self._frames)

    def take(self) -> list[ImagingFrame]:
        """Return all frames since the last call, in the order in which they were computed."""
        frames, self._frames = self._frames, []
        return frames


class InstantFrames:
    """Frames of the instruments of a simulation at its current tick, whether or not a measurement is due.

    Such a frame has the same bits as the first frame of an emulator that starts at this tick.
    """

    def __init__(self, simulation: Simulation, registry: InstrumentRegistry, banks: InstrumentBanks) -> None:
        self._simulation, self._registry, self._banks = simulation, registry, banks
        self._emulators: dict[str, Any] = {}
        self._collector = FrameCollector(simulation)

    def compute(self, row: int, instrument: str, seed: int) -> ImagingFrame:
        """Return the frame of an instrument on the body in a row, with the random numbers of a seed."""
        entry = self._installed(row, instrument)
        type_ = entry.instrument.type
        emulator = self._emulators.get(type_)
        if emulator is None:
            emulator = self._emulators[type_] = installed_emulators()[type_].load()(self._simulation.loaded)
            emulator.open_remote(functools.partial(self._collector.add, type_))
            emulator.is_instant = True
        view = self._banks.view()
        instruments = self._registry.rows.copy()
        instruments["body"][np.arange(len(instruments)) != entry.row] = -1
        emulator.sensor_bank(seed, self._simulation.loaded.sensor_rows[type_]).compute_now(
            dataclasses.replace(view, tables={**view.tables, "instruments": instruments}, version=None)
        )
        frames = self._collector.take()
        if not frames:
            name = self._simulation.occupants[row].name
            raise InvalidArgument(f"no frame: the {type_} '{instrument}' of '{name}' is not under water")
        return frames[0]

    def _installed(self, row: int, instrument: str) -> InstalledInstrument:
        carried = {
            e.instrument.name: e
            for e in self._registry.installed(row)
            if e.instrument.type in FRAME_SENSOR_TYPES and e.instrument.type in installed_emulators()
        }
        if instrument not in carried:
            raise UnknownName(no_such_source(self._simulation.occupants[row].name, instrument, carried))
        return carried[instrument]
