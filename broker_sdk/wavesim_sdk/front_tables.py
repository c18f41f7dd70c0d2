"""Tables of the wavefronts that hydrophones receive: the waveform of each signal, and its fronts along each path.

A front is one instant of an emission, followed along a propagation path to a hydrophone. A signal has a front at the
start of its emission, at regular intervals after it and at the end. The samples of a hydrophone follow from the fronts
and the waveform.
"""

from __future__ import annotations

from typing import NamedTuple

from wavesim_sdk.arrays import Record
from wavesim_sdk.tables import Table, integer, value

__all__ = ["FRONT", "FRONT_INTERVAL_S", "FRONT_TABLES", "MAX_ELEMENTS", "WAVEFORM", "FrontBatch"]

MAX_ELEMENTS = 8  #: maximum number of elements of a hydrophone
FRONT_INTERVAL_S = 0.02  #: interval between the fronts of a signal in s; with a longer time step, the time step

WAVEFORM = Table(
    "waveform",
    "A signal that was emitted, described for the synthesis of its samples.",
    "engine",
    (
        integer("signal", "", "Number of the signal."),
        integer("source", "", "Row of the transducer that emitted the signal."),
        integer("kind", "", "Kind of the signal: 0 pulse, 1 data, 2 range request, 3 range reply."),
        integer("code", "", "Code of the signal; 0 = none."),
        integer("modulation", "", "Number of the modem's modulation; 0 = none."),
        integer("samples", "", "Number of the samples of the signal; 0 = the nominal waveform of its kind."),
        value("emission", "s", "Simulation time at which the emission started."),
        value("duration", "s", "Duration of the signal."),
        value("frequency", "Hz", "Carrier frequency."),
        value("band", "Hz", "Bandwidth of the signal."),
        value("source_level", "dB re 1 uPa at 1 m", "Source level of the signal."),
        value("absorption", "dB/m", "Absorption coefficient at the carrier frequency."),
    ),
)

FRONT = Table(
    "front",
    "A front of a signal at a hydrophone on one propagation path.",
    "engine",
    (
        integer("signal", "", "Number of the signal."),
        integer("receiver", "", "Row of the hydrophone in the `hydrophone` table."),
        integer("generation", "", "Generation number of the hydrophone, as in the `instruments` table."),
        integer("path", "", "Number of the propagation path. All fronts of a path have the same number."),
        integer("number", "", "Number of the front, from 0 at the start of the emission."),
        integer("last", "", "1 = last front of the signal, at the end of the emission."),
        value("emission", "s", "Simulation time of emission."),
        value("arrival", "s", "Simulation time of arrival at the reference point of the hydrophone."),
        value("level", "dB re 1 uPa", "Level at the carrier frequency, without fluctuation."),
        value(
            "phase",
            "rad",
            "Phase of bounces and caustics, without travel, for a time dependence exp(+i w t): pi for a surface bounce.",
        ),
        value("length", "m", "Length of the path."),
        integer("surface", "", "Number of surface bounces on the path."),
        integer("bottom", "", "Number of bottom bounces on the path."),
        value("times", "s", "Simulation time of arrival at each element; NaN = no such element.", MAX_ELEMENTS),
        value("rates", "", "Seconds of emission time per second of arrival time at each element.", MAX_ELEMENTS),
    ),
)

FRONT_TABLES = (WAVEFORM, FRONT)


class FrontBatch(NamedTuple):
    """New waveforms and fronts of all hydrophones.

    The waveform of a signal comes in the same batch as its first front, or in an earlier one. The fronts are in the
    order of their arrivals at the reference points. All fronts that arrive at the reference point of their hydrophone until
    ``time_ns`` are in this batch or in an earlier one.
    """

    waveforms: Record  #: records of WAVEFORM
    fronts: Record  #: records of FRONT
    time_ns: int  #: simulation time in ns up to which the fronts are complete
    is_restarted: bool = False  #: whether the reader must discard everything from earlier batches
    lost: int = 0  #: number of records that were overwritten before they were read, or discarded
