"""Memory for the sound of many teams: the arrays of the engine's acoustic medium for each team.

The medium itself is the engine's (:mod:`wavesim_server.acoustics.medium`). In this module, the mutable arrays of each
team are stored in one row of a large array, so that a reset copies one row. Teams share the constant arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.tables import RECEPTION
from wavesim_server import Simulation, array_tables, tick
from wavesim_server.acoustics import medium_arrays, medium_setup
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.reception import detection_range
from wavesim_server.acoustics.types import Records
from wavesim_server.dynamics.bodies import BodyArrays
from wavesim_server.indirect_calls import kernel_address
from wavesim_server.row_pool import CACHE_LINE, aligned_zeros

__all__ = ["TeamSound"]

#: arrays that differ between teams; the other arrays are constant, or not used in water of uniform sound speed
_OWN = (
    "nodes", "places", "detected", "signals", "emissions", "wheel", "chunks", "waiting", "candidates",
    "ongoing_receptions", "hearings", "events", "event_wheel", "bins", "bin_ends", "tick", "counters", "sent",
    "receptions",
)  # fmt: skip


class TeamSound:
    """Media of teams whose members are the vehicles of ``sim``, which must not have advanced yet.

    ``blocks`` (n, B.SIZE) contains the bodies of all teams; row k of ``slots`` (teams, members) contains the slots of
    team k. Each member sends at most one signal per ``interval`` s, with at most ``level`` dB.
    """

    def __init__(
        self, sim: Simulation, blocks: Array, heads: Array, slots: Array, interval: float, level: float
    ) -> None:
        state, _ = sim.tick_executor.state()
        teams, members = slots.shape
        #: emission of one packet with the maximum length, as the engine prepares it
        self.emission = _packet_emission(sim)
        self.template = _empty_medium(sim, members, interval, level, self.emission)
        self._offsets, size = {}, 0
        for name in _OWN:
            self._offsets[name] = size
            size += -(-getattr(self.template, name).nbytes // CACHE_LINE) * CACHE_LINE
        #: the mutable arrays as 64-bit words: ``memory`` is the current content for each team, and ``start`` is the
        #: initial content, which is the same for all teams
        self.memory = aligned_zeros((teams, size // 8), np.uint64)
        self.start = aligned_zeros(size // 8, np.uint64)
        self._fill(self.start)
        self.memory[:] = self.start
        self.media = [self._views(row) for row in self.memory]
        self._tables = [array_tables.address_table(m) for m in self.media]  # kept: the states contain their addresses
        scratch = state.scratch._replace(
            order=np.arange(members),
            counters=np.array([members, 0, 0]),
            transducer_levers=state.scratch.transducer_levers.copy(),
        )
        states = [
            state._replace(
                bodies=BodyArrays(blocks, slots[k], heads, state.bodies.params), medium_table=table, scratch=scratch
            )
            for k, table in enumerate(self._tables)
        ]
        self.states = states  #: state of each team for the engine's kernels
        packed = [array_tables.pack(s) for s in states]
        self.address = kernel_address(tick.advance_acoustics, packed[0], 0, 0.0, 0.0)
        #: (teams, 1): state of each team, packed for the engine's kernels; if compilation is disabled, this is
        #: ``states``
        self.packed: Any = states
        if isinstance(packed[0], np.ndarray):
            self.packed = np.empty((teams, 1), packed[0].dtype)
            for row, one in zip(self.packed, packed, strict=True):
                row[:] = one

    def _fill(self, row: Array) -> None:
        """Write the arrays of the template into a row of memory."""
        for name, view in self._views(row)._asdict().items():
            if name in _OWN:
                view[...] = getattr(self.template, name)

    def _views(self, row: Array) -> Medium:
        """Return a medium whose mutable arrays are views of a row of memory."""
        room, new = row.view(np.uint8), {}
        for name, offset in self._offsets.items():
            like = getattr(self.template, name)
            view = room[offset : offset + like.nbytes].view(like.dtype).reshape(like.shape)
            new[name] = view.view(np.recarray) if like.dtype.names else view
        return self.template._replace(**new)

    def place_members(self, team: int, number: int) -> None:
        """Update the transducers of a team whose members were moved at the end of tick ``number``."""
        state = self.states[team]
        tick.update_transducers(state.bodies, state.scratch, state.medium_table, number)

    def receptions(self, team: int) -> Records:
        """Return a copy of the records of the receptions that ended in the last step of a team, in chronological
        order.
        """
        m = self.media[team]
        count = int(m.counters[0].receptions)
        return np.asarray(m.receptions)[:count].view(RECEPTION.dtype).copy().view(np.recarray)


def _packet_emission(sim: Simulation) -> Records:
    """Return the engine's record of the emission of a packet with the maximum length."""
    row = next(iter(sim.channel.nodes))
    modem = sim.channel.nodes[row].transducer.modem
    assert modem is not None
    sim.send(row, bytes(modem.payload))
    planned = medium_setup.planned_emissions(sim.channel.medium)
    found = np.asarray(sim.channel.medium.emissions)[planned[:1]].copy()
    found["handle"] = 0
    return array_tables.record_argument(found)  # type: ignore[no-any-return]


def _empty_medium(sim: Simulation, members: int, interval: float, level: float, emission: Records) -> Medium:
    """Return a silent medium with the nodes and the water of a simulation. It has room for all signals in transit."""
    of, packet = sim.channel.medium, np.asarray(emission)[0]
    w = np.asarray(of.water)[0]
    reach = min(
        detection_range(
            float(level - packet["noise"] - w["floor"]), float(w["spreading"]), float(packet["absorption"])
        ),
        float(w["max_range"]),
    )
    travel = reach / float(w["fastest"])
    live = members * (math.ceil(travel / interval) + 2)
    ticks = math.ceil((travel + interval) / float(w["step"])) + 4
    m = medium_arrays.allocate_medium(
        nodes=members,
        signals=live,
        emissions=2 * members + 4,
        chunks=ticks + live * members // medium_arrays.CHUNK_SIZE + members + 8,
        waiting=(ticks + live * members // medium_arrays.CHUNK_SIZE + members + 8) * medium_arrays.CHUNK_SIZE,
        waiting_rays=0,
        candidates=live * members + 16,
        kept_rays=0,
        hearings=2 * members * members + 4,
        events=(live + 4) * members + 16,
        profile=len(of.profile_z),
        sent=2 * members,
        receptions=3 * members * members + 2 * members,
    )
    m.nodes[:], m.water[:] = of.nodes[:members], of.water
    m.profile_z[:], m.profile_c[:] = of.profile_z, of.profile_c
    m.counters[0].nodes = members
    m.nodes["since"] = 0.0
    return m
