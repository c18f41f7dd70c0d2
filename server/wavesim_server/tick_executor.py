"""Execution of the compiled tick, with the arrays on which it works, its kernels, and its threads."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wavesim_kernels.compiler import compile_for_types
from wavesim_server import indirect_calls, tick
from wavesim_server.acoustics import front_arrays, medium, medium_arrays
from wavesim_server.acoustics.channel import AcousticChannel
from wavesim_server.array_tables import pack
from wavesim_server.contacts import Contacts
from wavesim_server.dynamics.bodies import TickScratch
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_server.environment.weather_model import WeatherModel
from wavesim_server.line_system import LineSystem
from wavesim_server.seabed import SeaBed
from wavesim_server.threads import TickThreads


class TickExecutor:
    """Executor that advances all bodies and the acoustic signals in a simulation. ``threads`` is the number of threads
    for large fleets.
    """

    def __init__(
        self,
        fleet: FleetDynamics,
        weather_model: WeatherModel,
        contacts: Contacts,
        line_system: LineSystem,
        channel: AcousticChannel,
        sea_bed: SeaBed,
        scratch: TickScratch,
        threads: int,
    ) -> None:
        self._fleet, self._weather_model, self._contacts = fleet, weather_model, contacts
        self._line_system, self._channel, self._scratch = line_system, channel, scratch
        self.threads = TickThreads(threads)
        self.environment = tick.Environment(sea_bed, weather_model.flow)
        self.scene = medium.AcousticScene(
            contacts.memory.obstacles, sea_bed.parameters, sea_bed.mesh, np.zeros(1, np.int64)
        )
        self._step_ns = round(fleet.step * 1e9)
        self._sources: tuple[Any, ...] = (None,)  # arrays that the present tick state was built from
        self._state: tuple[tick.TickState, Any]
        self._acoustics_address: Any = None
        self._hydrophones_address: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a snapshot, without the threads, addresses and tables, which are rebuilt when needed."""
        state = vars(self) | {"threads": self.threads.count, "_sources": (None,)}
        state |= {"_acoustics_address": None, "_hydrophones_address": None}
        state.pop("_state", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"threads": TickThreads(state["threads"])})

    def advance(self, now: int, last: int) -> int:
        """Advance from tick ``now`` to tick ``last``, and return ``last``; collect the sound records."""
        is_half_done = False
        shared = self.threads.is_worthwhile(int(self._scratch.counters[0]))
        while now < last or is_half_done:
            state, table = self.state()
            if shared:
                now, code, is_half_done = self.threads.run_ticks(state, table, self._step_ns, now, last, is_half_done)
            else:
                now, code, is_half_done = tick.run_ticks(
                    table,
                    self._acoustics_kernel(table),
                    self._hydrophones_kernel(table),
                    self._step_ns,
                    now,
                    last,
                    is_half_done,
                )
            if code == front_arrays.GROW_FRONTS:
                self._channel.grow_fronts()
                continue  # the tick may still renumber the fronts that it has written
            if code == medium_arrays.GROW:
                self._channel.grow()
            self._channel.collect()
        return now

    def state(self) -> tuple[tick.TickState, Any]:
        """Return all arrays on which a tick works, and the kernels' table of these arrays.

        The table is rebuilt when one of the arrays has been replaced.
        """
        f = self._fleet
        made_of = (
            f.blocks, f.slots, f.block_heads, f.params, f.model_ints, f.tables, f.sequence, f.work, f.actuator_holds, f.hold_count, f.setpoints, f.speed_averages,
            f.average_windows, f.feedback, self._contacts.memory, self._weather_model.weather, self.environment, self._line_system.arrays, self._scratch,
            self._channel.table, self.scene, *self._channel.hydrophone_tables,
        )  # fmt: skip
        if not all(map(operator.is_, made_of, self._sources)):
            state = tick.TickState(f.arrays, tick.FleetArrays(f.models, *made_of[6:14]), f.integrator, *made_of[14:])
            self._sources, self._state = made_of, (state, pack(state))
        return self._state

    def packed_state(self) -> Any:
        """Return the kernels' table of all arrays on which a tick works."""
        return self.state()[1]

    def _acoustics_kernel(self, table: Any) -> Any:
        """Return the address of the kernel that computes the sound of a tick. The address stays valid, because replaced
        arrays have the same types.
        """
        if self._acoustics_address is None:
            self._acoustics_address = indirect_calls.kernel_address(tick.advance_acoustics, table, 0, 0.0, 0.0)
        return self._acoustics_address

    def _hydrophones_kernel(self, table: Any) -> Any:
        """Return the address of the kernel that computes the fronts of a tick; 0 = there are no hydrophones."""
        if self._channel.hydrophones is None:
            return 0
        if self._hydrophones_address is None:
            self._hydrophones_address = indirect_calls.kernel_address(tick.advance_hydrophones, table, 0, 0.0, 0.0)
        return self._hydrophones_address

    # -- compilation ---------------------------------------------------------------------------

    def compile_motion(self) -> None:
        """Compile the motion kernels that the tick kernel calls."""
        compile_for_types(tick.advance_motion, self.state()[0], self._step_ns, 0)

    def compile_tick(self) -> None:
        """Compile the tick kernel, but not the kernel that computes the sound."""
        compile_for_types(tick.run_ticks, self.state()[1], 0, 0, self._step_ns, 0, 0, False)

    def compile_sound(self) -> None:
        """Compile the kernel that computes the sound of a tick."""
        self._acoustics_kernel(self.state()[1])
