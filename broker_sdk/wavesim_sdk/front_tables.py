"""Tables of the wavefronts that hydrophones receive: the waveform of each signal, and its fronts along each path.

A front is one instant of an emission, followed along a propagation path to a hydrophone. A signal has a front at the
start of its emission, at regular intervals after it and at the end. The samples of a hydrophone follow from the fronts
and the waveform.
"""

from __future__ import annotations

from typing import NamedTuple

from wavesim_sdk.arrays import Array, Record
from wavesim_sdk.tables import Table, integer, value

__all__ = [
    "FRONT",
    "FRONT_ELEMENTS",
    "FRONT_INTERVAL_S",
    "FRONT_TABLES",
    "MAX_ELEMENTS",
    "NOISE_SEGMENT_S",
    "RADIATED_NOISE",
    "SOUND",
    "SOUND_SLOTS",
    "WAVEFORM",
    "FrontBatch",
    "StoredSound",
]

MAX_ELEMENTS = 64  #: maximum number of elements of a hydrophone
FRONT_ELEMENTS = 8  #: number of elements that a record of FRONT describes
SOUND_SLOTS = 256  #: maximum number of sounds that can be heard at the same time
FRONT_INTERVAL_S = 0.02  #: interval between the fronts of a signal in s; with a longer time step, the time step
RADIATED_NOISE = 5  #: kind of a waveform that is a segment of the noise of a body
#: duration in s of the segments into which the noise of a body is divided; they begin at multiples of it
NOISE_SEGMENT_S = 0.5

WAVEFORM = Table(
    "waveform",
    "A signal that was emitted, described for the synthesis of its samples.",
    "engine",
    (
        integer("signal", "", "Number of the signal."),
        integer("source", "", "Row of the body that emitted the signal."),
        integer(
            "kind",
            "",
            "Kind of the signal: 0 pulse, 1 data, 2 range request, 3 range reply, 4 sound, 5 radiated noise.",
        ),
        integer("code", "", "Code of the signal, 0 = none; for radiated noise, the key of the random numbers."),
        integer("modulation", "", "Number of the modem's modulation; 0 = none, -1 = the signal is a sound."),
        integer(
            "samples", "", "Number of the sound that the signal consists of; 0 = the nominal waveform of its kind."
        ),
        value("emission", "s", "Simulation time at which the emission started."),
        value("duration", "s", "Duration of the signal."),
        value("frequency", "Hz", "Carrier frequency."),
        value("band", "Hz", "Bandwidth of the signal."),
        value(
            "source_level",
            "dB re 1 uPa at 1 m",
            "Source level of the signal; for radiated noise, the spectrum level at the carrier, at rest.",
        ),
        value("absorption", "dB/m", "Absorption coefficient at the carrier frequency."),
        value("cycles", "", "Phase of the blade rate at the start of the emission, in cycles."),
        value("rate", "Hz", "Blade rate of the propeller at the start of the emission; 0 = no tones."),
        value("rate_end", "Hz", "Blade rate at the end of the emission."),
        value("blade_level", "dB re 1 uPa at 1 m", "Level of the tone at the blade rate, at rest."),
        value("machine", "Hz", "Fundamental frequency of the machine; 0 = none."),
        value("machine_level", "dB re 1 uPa at 1 m", "Level of the machine's fundamental, at rest."),
    ),
)

FRONT = Table(
    "front",
    "A front of a signal at a hydrophone on one propagation path.",
    "engine",
    (
        integer("signal", "", "Number of the signal."),
        integer(
            "receiver",
            "",
            "Row of the hydrophone in the `hydrophone` table. A record describes eight elements; for those from number "
            "8 k on, counted from 0, k times the number of rows of this table is added.",
        ),
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
        value("times", "s", "Simulation time of arrival at each element; NaN = no such element.", FRONT_ELEMENTS),
        value("rates", "", "Seconds of emission time per second of arrival time at each element.", FRONT_ELEMENTS),
    ),
)

SOUND = Table(
    "sound",
    "A sound that can be heard. Its samples are in the same segment.",
    "engine",
    (
        integer("number", "", "Number of the sound, as in the column `samples` of `waveform`; 0 = an unused row."),
        integer("offset", "", "Number of its first sample among the samples of all sounds."),
        integer("count", "", "Number of samples."),
        value("sampling", "Hz", "Sampling rate."),
    ),
)

FRONT_TABLES = (WAVEFORM, FRONT, SOUND)


class StoredSound(NamedTuple):
    """A sound that hydrophones can hear, and its place in shared memory."""

    number: int  #: number of the sound, as in the column ``samples`` of WAVEFORM
    slot: int
    offset: int  #: number of the first of its samples among those of all sounds
    sampling: float  #: sampling rate in Hz
    samples: Array  #: float32


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
    sounds: tuple[StoredSound, ...] = ()  #: the sounds that the waveforms refer to
