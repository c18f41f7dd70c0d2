"""Frames of sonars, cameras, lidars and hydrophones at any tick, computed inside the engine process."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from wavesim_sdk.errors import InvalidArgument, UnknownName
from wavesim_sdk.imaging_frames import FRAME_SENSOR_TYPES, ImagingFrame, no_such_source
from wavesim_server.frame_collector import FrameCollector
from wavesim_server.instrument_banks import InstrumentBanks
from wavesim_server.instruments import InstalledInstrument, InstrumentRegistry, installed_emulators
from wavesim_server.simulation import Simulation


class InstantFrames:
    """Frames of the instruments of a simulation at its current tick, whether or not a measurement is due.

    Such a frame is bit-identical to the first frame of an emulator that starts at this tick.
    """

    def __init__(self, simulation: Simulation, registry: InstrumentRegistry, banks: InstrumentBanks) -> None:
        self._simulation, self._registry, self._banks = simulation, registry, banks
        self._emulators: dict[str, Any] = {}
        self._collector = FrameCollector(simulation)

    def compute(self, row: int, instrument: str, seed: int) -> ImagingFrame:
        """Return the frame of an instrument on the body in a row; ``seed`` selects the random numbers."""
        entry = self._installed(row, instrument)
        type_ = entry.instrument.type
        emulator = self._emulators.get(type_)
        if emulator is None:
            emulator = self._emulators[type_] = installed_emulators()[type_].load()(self._simulation.loaded)
            emulator.open_remote(functools.partial(self._collector.add, type_))
            emulator.is_instant = True
            if type_ == "hydrophone":
                emulator.connect(self._banks.fronts.reader())
        view = self._banks.view()
        instruments = self._registry.rows.copy()
        instruments["body"][np.arange(len(instruments)) != entry.row] = -1
        emulator.sensor_bank(seed, self._simulation.loaded.sensor_rows[type_]).compute_now(
            dataclasses.replace(view, tables={**view.tables, "instruments": instruments}, version=None)
        )
        frames = self._collector.take()
        if not frames:
            name = self._simulation.occupants[row].name
            reason = "has no block of samples yet" if type_ == "hydrophone" else "is not under water"
            raise InvalidArgument(f"no frame: the {type_} '{instrument}' of '{name}' {reason}")
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
