"""Base class of all emulators. An emulator computes the values of one sensor type from the motion of the bodies that
carry such sensors.

A new emulator states its sensor type and computes the values from poses::

    class Depth(Emulator):
        sensor = "depth"
        def measure(self, now, out):
            out["depth"] = now.mounted.p_WS_W[:, 2] + 0.01 * now.noise(0)

``now`` describes instruments at the present time. These instruments have equal parameters, and may be on any number of
bodies. ``out`` has one row for each instrument. :class:`~wavesim_emulators.sensor_bank.SensorBank` handles everything
else: bodies with such an instrument, due times, latency, drop-outs, faults at run time and hot swap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from wavesim_emulators import bank_kernels
from wavesim_emulators.batch import (
    Batch,
    CovarianceNoise,
    Mounting,
    Noise,
    NoiseStreams,
    SensorKinematics,
    steady_weather,
)
from wavesim_emulators.sensor_bank import SensorBank
from wavesim_kernels.compiler import compile_for_types
from wavesim_sdk.arrays import Floats, Ints, Mask, Record
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.front_tables import FrontBatch
from wavesim_sdk.sensors import sensor_table_of
from wavesim_world.config import LoadedConfig

__all__ = [
    "Batch",
    "CovarianceNoise",
    "Emulator",
    "Floats",
    "Ints",
    "Mask",
    "Mounting",
    "Noise",
    "NoiseStreams",
    "SensorKinematics",
    "steady_weather",
]


class Emulator:
    """Emulator of one sensor type. The object keeps no state between values. State belongs in hidden columns of the
    sensor's table, where a replacement process can read it.
    """

    sensor: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()  #: other shared-memory tables that the emulator reads, at the same tick

    #: whether the emulator reads bodies without an instrument of its type; over the network, an emulator receives only
    #: the bodies that it needs
    needs_all_bodies: ClassVar[bool] = True

    #: whether the emulator needs the waveforms and fronts of sound; see :meth:`connect`
    needs_fronts: ClassVar[bool] = False

    #: kernels of :meth:`measure`, each with arguments of the types that it receives
    kernels: ClassVar[bank_kernels.Kernels] = ()

    def __init__(self, loaded: LoadedConfig) -> None:
        self.loaded = loaded

    @classmethod
    def load_kernels(cls) -> None:
        """Load the kernels, or compile them, so that they do not delay the first value."""
        for kernel, *arguments in (*bank_kernels.KERNELS, *cls.kernels):
            compile_for_types(kernel, *arguments)

    def prepare(self, parameters: Any) -> Any:
        """Derive quantities that depend only on the parameters. This method is called once for all instruments with
        equal parameters.
        """
        return None

    def sensor_bank(self, seed: int, count: int) -> SensorBank:
        """Create all instruments of this type, with a table of ``count`` rows, for use without a server."""
        return SensorBank(self, seed, np.zeros(count, sensor_table_of(self.sensor).dtype))

    def open(self, server: str) -> None:
        """Attach to additional tables. A process that serves a server on its own machine calls this once."""

    def open_remote(self, write_frame: Callable[..., int]) -> None:
        """Prepare to serve a server on another machine; ``write_frame(row, record, *payload)`` sends it a frame. This
        method is called instead of :meth:`open`, before the emulator joins.
        """

    def connect(self, take: Callable[[], FrontBatch]) -> None:
        """Set the source of the fronts: a function that returns those since its last call. An emulator with
        :attr:`needs_fronts` must override this method.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement connect()")

    def begin(self, view: FleetSnapshot, weather: Any) -> None:
        """Prepare a tick. This method is called once per tick, before :meth:`measure`."""

    def measure(self, now: Batch, out: Record) -> None:
        """Write the values into the columns of ``out``. ``out["valid"]`` is 1 before the call; set it to 0 for a
        missing value.

        Before the call, ``out`` contains the last values and, in its hidden columns, the state that belongs to them.
        Both are zero where ``now.fresh`` is set.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement measure()")
