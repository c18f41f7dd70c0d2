"""The memory of the hydrophones and of the fronts that they receive, declared once.

The hydrophones have their own medium, with the same arrays and the same propagation as the medium of the
transducers. Its signals are fronts, which have no duration. Its nodes are hydrophones: hydrophone k has the row
``rows + k``, so that the rows of transducers and hydrophones differ; ``rows`` is the number of transducer rows. The
arrays in this module add what a front needs beyond an ordinary signal.

The frames are W (north-east-down) and B (the body). Times are seconds since the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Ints
from wavesim_sdk.front_tables import FRONT, FRONT_ELEMENTS, WAVEFORM
from wavesim_sdk.tables import Table, integer, value
from wavesim_server import array_tables
from wavesim_server.acoustics import medium_arrays
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.types import Records

PATHS = 64  #: number of indices of paths; paths of one front with the same index differ by multiples of this number
#: signal-to-noise ratio in the band of a signal, in dB, below which its fronts are omitted; a correlation over the
#: signal can detect it far below the noise
FLOOR_DB = -40.0
MAX_LAYERED_PAIRS = 16_384  #: maximum number of pairs whose rays through layers are remembered
#: return code of the kernel when the arrays of the hydrophones need more room; see medium_arrays for the other codes
GROW_FRONTS = 3

HYDROPHONE = Table(
    "installed_hydrophone",
    "A hydrophone of a body.",
    "medium",
    (
        integer("body", "", "Row of the body."),
        integer("elements", "", "Number of elements."),
        value("x", "m", "Position of the hydrophone, B."),
        value("y", "m", ""),
        value("z", "m", ""),
    ),
)

ELEMENT = Table(
    "element",
    "An element of a hydrophone.",
    "medium",
    (value("x", "m", "Position of the element, B."), value("y", "m", ""), value("z", "m", "")),
)

ELEMENT_PLACE = Table(
    "element_place",
    "An element at the end of a tick.",
    "medium",
    (
        value("x", "m", "Position, W."),
        value("y", "m", ""),
        value("z", "m", ""),
        value("vx", "m/s", "Velocity, W."),
        value("vy", "m/s", ""),
        value("vz", "m/s", ""),
    ),
)

EMITTING = Table(
    "emitting",
    "A signal, or a segment of a body's noise, that is being emitted. Its source may leave before the emission ends.",
    "medium",
    (
        integer("number", "", "Number of the next front."),
        integer("last", "", "Number of the last front."),
        integer("entry", "", "Number of transducers that had used the row of the source when the signal was sent."),
        value("start", "s", "Start of the emission."),
        value("time", "s", "Time of the last front."),
        value("x", "m", "Position of the source at that time, W."),
        value("y", "m", ""),
        value("z", "m", ""),
        value("vx", "m/s", "Velocity of the source at that time, W."),
        value("vy", "m/s", ""),
        value("vz", "m/s", ""),
        value("slope", "dB s/m", "Increase in the source level with the speed of the source."),
    ),
)

FRONT_SIGNAL = Table(
    "front_signal",
    "A front in transit. Its row is that of its signal in the medium of the hydrophones.",
    "medium",
    (
        integer("signal", "", "Number of the signal that the front belongs to."),
        integer("number", "", "Number of the front."),
        integer("last", "", "1 = last front of the signal."),
    ),
)

FRONT_COUNTERS = Table(
    "front_counters",
    "Numbers of records, and the state of the current tick.",
    "medium",
    (
        integer("tick", "", "Number of the newest tick that has begun."),
        integer("first_front", "", "Row of the first front that this tick has written."),
        integer("last_signal", "", "Number of the newest signal whose emission has been noticed."),
        integer("emitting", "", "Signals that are being emitted."),
        integer("waveforms", "", "Waveforms that have not been collected yet."),
        integer("fronts", "", "Fronts that have not been collected yet."),
        integer("rows", "", "Number of rows of transducers."),
        value("interval", "s", "Time between the fronts of a signal."),
    ),
)


class FrontArrays(NamedTuple):
    """Arrays of the hydrophones in addition to their medium, in one tuple that is passed to kernels as a whole."""

    hydrophones: Records  #: HYDROPHONE (hydrophones,)
    elements: Records  #: ELEMENT (hydrophones * n,) for at most n elements of each; n is a multiple of FRONT_ELEMENTS
    element_places: Records  #: ELEMENT_PLACE (2, hydrophones * n): at the end of even and odd ticks
    emitting: Records  #: EMITTING (n,)
    emitted: Records  #: SIGNAL (n,): the signals that are being emitted, as they were sent
    front_signals: Records  #: FRONT_SIGNAL, one for each signal in the medium of the hydrophones
    #: number of arrivals of each front so far, for each path index of each hydrophone (signals, hydrophones * PATHS)
    arrivals: Ints
    waveforms: Records  #: WAVEFORM (n,)
    fronts: Records  #: FRONT (n,)
    counters: Records  #: FRONT_COUNTERS (1,)


_DTYPES = {
    "hydrophones": (HYDROPHONE.dtype, 1),
    "elements": (ELEMENT.dtype, 1),
    "element_places": (ELEMENT_PLACE.dtype, 2),
    "emitting": (EMITTING.dtype, 1),
    "emitted": (medium_arrays.SIGNAL.dtype, 1),
    "front_signals": (FRONT_SIGNAL.dtype, 1),
    "arrivals": (np.dtype(np.int64), 2),
    "waveforms": (WAVEFORM.dtype, 1),
    "fronts": (FRONT.dtype, 1),
    "counters": (FRONT_COUNTERS.dtype, 1),
}

#: the table with the addresses of the arrays; with compilation off, the arrays themselves
FrontTable = Ints | FrontArrays
unpack_fronts: Callable[[FrontTable], FrontArrays] = array_tables.make_views("FrontArrays", _DTYPES)
#: tables of a simulation without hydrophones, which no kernel reads
NO_TABLE: Any = np.zeros((0, 3), np.int64)


def _zeros(name: str, *shape: int) -> Any:
    dtype, _ = _DTYPES[name]
    array = np.zeros(shape, dtype)
    return array.view(np.recarray) if dtype.names else array


def allocate_fronts(hydrophones: int, groups: int, signals: int, rows: int, interval: float) -> FrontArrays:
    """Allocate the arrays for a number of hydrophones, none of which is in use. ``groups`` is the maximum number of
    groups of FRONT_ELEMENTS elements of a hydrophone, ``signals`` the number of signals in the medium of the hydrophones,
    ``rows`` the number of transducer rows, and ``interval`` the time between fronts.
    """
    elements = hydrophones * groups * FRONT_ELEMENTS
    f = FrontArrays(
        hydrophones=_zeros("hydrophones", hydrophones),
        elements=_zeros("elements", elements),
        element_places=_zeros("element_places", 2, elements),
        emitting=_zeros("emitting", 16),
        emitted=_zeros("emitted", 16),
        front_signals=_zeros("front_signals", signals),
        arrivals=_zeros("arrivals", signals, hydrophones * PATHS),
        waveforms=_zeros("waveforms", 256),
        fronts=_zeros("fronts", 1024),
        counters=_zeros("counters", 1),
    )
    f.counters[0].rows, f.counters[0].interval, f.counters[0].tick = rows, interval, -1
    return f


def grow_fronts(f: FrontArrays, signals: int) -> FrontArrays:
    """Return the same arrays with more room: for a number of signals, and for twice as many of all other records that
    fill more than half of their array.
    """
    c = f.counters[0]
    counts = {"emitting": c.emitting, "emitted": c.emitting, "waveforms": c.waveforms, "fronts": c.fronts}
    new: dict[str, Any] = {}
    for name, count in counts.items():
        old = getattr(f, name)
        if 2 * count >= len(old):
            new[name] = np.concatenate([old, np.zeros_like(old)]).view(np.recarray)
    if signals > len(f.front_signals):
        for name in ("front_signals", "arrivals"):
            old = getattr(f, name)
            longer = _zeros(name, signals, *old.shape[1:])
            longer[: len(old)] = old
            new[name] = longer
    return f._replace(**new)


def allocate_listening_medium(of: Medium, hydrophones: int) -> Medium:
    """Allocate the medium of the hydrophones, with the same water as the medium of the transducers.

    All its paths are followed, and the phases of their bounces are computed.
    """
    w = of.water[0]
    nodes = len(of.nodes) + hydrophones
    iso = w.mode == medium_arrays.ISOVELOCITY
    paths = 1 + 2 * int(w.order) if iso else 1 if w.mode == medium_arrays.GRADIENT else int(w.paths)
    signals = 64
    chunks = signals * (hydrophones * paths + 1)
    waiting = chunks * medium_arrays.CHUNK_SIZE
    # rays are remembered in a sound field, and through layers
    pairs, most = 64, len(of.pairs) or (MAX_LAYERED_PAIRS if w.mode == medium_arrays.RAYS else 0)
    while pairs < min(4 * len(of.nodes) * hydrophones, most):
        pairs *= 2
    m = medium_arrays.allocate_medium(
        nodes=nodes,
        signals=signals,
        emissions=4,
        chunks=chunks,
        waiting=waiting,
        waiting_rays=0 if iso else waiting,
        candidates=64,
        kept_rays=0 if iso else 64,
        hearings=4,
        events=16,
        profile=len(of.profile_z),
        pairs=pairs if most else 0,
        sent=1,
        receptions=16,
    )
    m.profile_z[:], m.profile_c[:] = of.profile_z, of.profile_c
    m.water[0] = of.water[0]
    m.water[0].paths_per_node = paths
    m.water[0].summing = medium_arrays.COHERENT
    m.water[0].floor = FLOOR_DB
    return m


def share_sea(m: Medium, of: Medium) -> Medium:
    """Return the medium of the hydrophones with the beams, the sound field and the sea of the medium of the
    transducers.
    """
    m.water[0].moving, m.water[0].crest = of.water[0].moving, of.water[0].crest
    return m._replace(
        beams=of.beams,
        field_c=of.field_c,
        field_times=of.field_times,
        sea_components=of.sea_components,
        sea_periods=of.sea_periods,
        wave_parts=of.wave_parts,
        tide=of.tide,
    )
