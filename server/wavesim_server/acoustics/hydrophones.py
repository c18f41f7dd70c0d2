"""The hydrophones of a simulation: where they are mounted, and the fronts that reach them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk import frames
from wavesim_sdk.algebra import matvec
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.front_tables import FRONT_INTERVAL_S, FrontBatch
from wavesim_server import array_tables
from wavesim_server.acoustics import front_arrays, medium_arrays
from wavesim_server.acoustics.front_history import FrontHistory
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.sound_store import SoundStore
from wavesim_world.config.sensors import InstrumentConfig

SENSOR = "hydrophone"  #: sensor type of the instruments that receive fronts
_DERIVED = frozenset({"tables", "_written"})


class Hydrophones:
    """The hydrophones on all bodies.

    A hydrophone has the same number here as its row in the `hydrophone` table: both use the lowest free number, in the
    order in which bodies enter.

    :param of: the medium of the transducers
    :param count: maximum number of hydrophones
    :param groups: maximum number of groups of FRONT_ELEMENTS elements of a hydrophone
    :param step: length of a tick in s
    """

    def __init__(self, of: Medium, count: int, groups: int, step: float, seed: int) -> None:
        self._seed = seed
        self._free = list(range(count))
        self._generations = np.zeros(count, np.int64)  # number of hydrophones that have used each row
        self._places: dict[int, list[int]] = {}  # numbers of the hydrophones on each body
        medium = front_arrays.share_sea(front_arrays.allocate_listening_medium(of, count), of)
        interval = max(step, FRONT_INTERVAL_S)
        fronts = front_arrays.allocate_fronts(count, groups, len(medium.signals), len(of.nodes), interval)
        self.history = FrontHistory()
        self._set_arrays(medium, fronts)

    def _set_arrays(self, medium: Medium, fronts: front_arrays.FrontArrays) -> None:
        """Store the arrays, and the tables of their addresses that the kernels receive."""
        self.medium, self.fronts = medium, fronts
        self.tables = array_tables.address_table(medium), array_tables.address_table(fronts)
        counters = np.asarray(fronts.counters)  # members of a record array are slow to access
        self._written = counters["waveforms"], counters["fronts"]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a snapshot, without addresses and views."""
        return {name: value for name, value in vars(self).items() if name not in _DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set_arrays(self.medium, self.fronts)
        self.history.restart(self._in_progress())

    # -- bodies --------------------------------------------------------------------------------

    @property
    def _element_room(self) -> int:
        """Number of rows of elements for each hydrophone."""
        return len(self.fronts.elements) // len(self.fronts.hydrophones)

    def check_room(self, suite: Sequence[InstrumentConfig]) -> None:
        """Raise InvalidArgument if there is no room for the hydrophones in a suite."""
        found: list[Any] = [i.parameters for i in suite if i.type == SENSOR]
        wanted, room = len(found), self._element_room
        if most := max((len(h.element_positions) for h in found if len(h.element_positions) > room), default=0):
            raise InvalidArgument(
                f"no room for a hydrophone with {most} elements (maximum {room}); add to the configuration a body with "
                "such a hydrophone"
            )
        if wanted > len(self._free):
            raise InvalidArgument(
                f"no room for {wanted} more hydrophones: the hydrophones in the configuration determine their number; "
                "add to the configuration a body whose model has these hydrophones"
            )

    def add(self, row: int, name: str, suite: Sequence[InstrumentConfig], time: float) -> None:
        """Add the hydrophones on a body, which hear the fronts that are emitted from now on."""
        m, f = self.medium, self.fronts
        self._places[row] = []
        for instrument in suite:
            if instrument.type != SENSOR:
                continue
            place = heapq.heappop(self._free)
            self._places[row].append(place)
            self._generations[place] += 1
            h: Any = instrument.parameters
            record, node = f.hydrophones[place], m.nodes[f.counters[0].rows + place]
            elements = mounted_elements(h.position, h.attitude, h.element_positions)
            record.body, record.elements = row, len(elements)
            record.x, record.y, record.z = h.position
            for e, (x, y, z) in zip(f.elements[place * self._element_room :], elements, strict=False):
                e.x, e.y, e.z = x, y, z
            node.active, node.since, node.beam = 1, time, -1
            node.key = randomness.key(self._seed, f"{name}.{instrument.name}", "hydrophone")
            m.counters[0].nodes += 1

    def remove(self, row: int) -> None:
        """Remove the hydrophones on a body."""
        for place in self._places.pop(row, ()):
            self.medium.nodes[self.fronts.counters[0].rows + place].active = 0
            self.medium.counters[0].nodes -= 1
            heapq.heappush(self._free, place)

    def place(self, row: int, position: Floats, attitude: Floats, velocity: Floats) -> None:
        """Set the places of a body's hydrophones at both ends of the tick to the current ones, so that their path does
        not contain a jump. ``position`` is in W; ``attitude`` is q_WB; ``velocity`` is u v w p q r in B.
        """
        R, f = frames.rotation(attitude), self.fronts
        for place in self._places.get(row, ()):
            h, first = f.hydrophones[place], place * self._element_room
            ends: list[tuple[Any, Any]] = [(h, self.medium.places[:, f.counters[0].rows + place])]
            ends += [(f.elements[k], f.element_places[:, k]) for k in range(first, first + h.elements)]
            for lever, both in ends:
                p = np.array([lever.x, lever.y, lever.z])
                both.x, both.y, both.z = position + matvec(R, p)
                both.vx, both.vy, both.vz = matvec(R, velocity[:3] + np.cross(velocity[3:], p))

    # -- sound ---------------------------------------------------------------------------------

    def share_sea(self, of: Medium) -> None:
        """Use the present beams, sound field and sea of the medium of the transducers."""
        self._set_arrays(front_arrays.share_sea(self.medium, of), self.fronts)

    @property
    def live_beams(self) -> Any:
        """Rows of the beam patterns of all fronts that are in transit or still to be emitted."""
        m, f = self.medium, self.fronts
        return np.concatenate([m.signals.beam[m.signals.id > 0], f.emitted.beam[: f.counters[0].emitting]])

    def grow(self) -> None:
        """Increase the capacity of the arrays that lack room."""
        medium = medium_arrays.grow_medium(self.medium)
        self._set_arrays(medium, front_arrays.grow_fronts(self.fronts, len(medium.signals)))

    # -- results -------------------------------------------------------------------------------

    def collect(self, sounds: SoundStore) -> None:
        """Collect the records that the kernel has written during an advance. ``sounds`` contains the sounds of the
        signals that have been sent.
        """
        waveforms, fronts = (int(count[0]) for count in self._written)
        if not (waveforms or fronts):
            return
        f, counters = self.fronts, self.fronts.counters[0]
        found = np.array(f.fronts[:fronts])  # in the order of their ticks only
        found = found[np.argsort(found["arrival"], kind="stable")]
        places = found["receiver"] % len(self._generations)
        found["generation"] = self._generations[places]  # bodies enter only between two advances
        described = np.array(f.waveforms[:waveforms])
        sounds.mark(described)
        self.history.add(described, found, self._in_progress)
        counters.waveforms = counters.fronts = counters.first_front = 0

    def _in_progress(self) -> set[int]:
        """Return the numbers of the signals that are being emitted or have fronts in transit."""
        m, f = self.medium, self.fronts
        emitting = f.emitted.id[: f.counters[0].emitting]
        return {*emitting.tolist(), *m.signals.id[m.signals.id > 0].tolist()}

    @property
    def signals_in_use(self) -> set[int]:
        """Numbers of the signals that a hydrophone can still hear, or whose fronts are still kept."""
        return self._in_progress() | self.history.heard()

    def take(self, time_ns: int) -> FrontBatch:
        """Return the waveforms and fronts since the last call. Call this between ticks, at the simulation time
        ``time_ns``.
        """
        return self.history.take(time_ns)


def mounted_elements(position: Sequence[float], attitude: Sequence[float], elements: Sequence[Any]) -> Floats:
    """Return the positions (n, 3) of elements in B, in m, from their positions in the frame S of their instrument."""
    R = frames.rotation(frames.quaternion(*attitude))
    return np.array([np.asarray(position) + matvec(R, np.asarray(e)) for e in elements])
