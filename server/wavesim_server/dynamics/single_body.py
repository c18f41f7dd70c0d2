"""Forces and accelerations of one body in chosen states, in still water and still air.

The compiled equation of motion evaluates them. Nothing is integrated, so a state need not be reachable.
"""

from __future__ import annotations

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import effort
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.bodies import BodyArrays, ModelArrays
from wavesim_server.dynamics.fleet import VehicleType
from wavesim_server.dynamics.sizes import FINS, LANES, SLOTS, TABLE_POINTS, THRUSTERS
from wavesim_server.row_pool import aligned_zeros, grown_to


class SingleBody:
    """One body whose state, actuator values and states of fluid memory are given."""

    def __init__(self, form: VehicleType) -> None:
        kind = form.compiled
        ints = kind.ints.copy()
        ints[M.ACTUATOR_TABLES :][ints[M.ACTUATOR_TABLES :] >= 0] += 1  # table 0 is empty, as in a fleet
        tables = grown_to(np.zeros((1, 2, TABLE_POINTS)), 1 + len(kind.tables))
        for k, table in enumerate(kind.tables):
            tables[1 + k] = table
        self._params, self._models = kind.params[None], ModelArrays(ints[None], tables)
        self._block = np.zeros((B.ROWS, LANES))
        self._block[B.PRESENT] = 1.0
        self._block[B.ACTUATOR_EFFECT : B.ACTUATOR_EFFECT + THRUSTERS + FINS] = 1.0
        self._rest = kind.rest_values
        self.memory_states = int(kind.ints[M.STATES]) - B.RIGID_ROWS  #: number of states of its fluid memory
        self._scratch = effort.make_scratch(aligned_zeros(W.SIZE))
        self._out, self._last = np.zeros((LANES, effort.EFFORT)), np.zeros((LANES, B.RIGID_ROWS))

    @property
    def rest_values(self) -> Floats:
        """Actuator values (SLOTS,) before any command."""
        return self._rest.copy()

    def efforts(self, states: Floats, actuators: Floats) -> Floats:
        """Return rows of the `effort` table (n, effort.EFFORT) for n states (n, 13) and actuator values (n, SLOTS).

        A state contains the position in W, the quaternion q_WB, and the velocity over ground and the angular velocity
        in B, as in the rows of a block. The states of the fluid memory are zero.
        """
        return self.efforts_with_memory(states, actuators, np.zeros((len(states), self.memory_states)))[0]

    def efforts_with_memory(self, states: Floats, actuators: Floats, memory: Floats) -> tuple[Floats, Floats]:
        """Return the rows of :meth:`efforts` for given states (n, memory_states) of the fluid memory, and the
        derivatives of these states, of the same shape.
        """
        found, rates = np.empty((len(states), effort.EFFORT)), np.empty(memory.shape)
        kept, first_rate = self.memory_states, W.DERIVATIVES + B.RIGID_ROWS
        work = self._scratch.work.reshape(-1, LANES)
        for first in range(0, len(states), LANES):
            n = len(states[first : first + LANES])
            self._block[: B.RIGID_ROWS, :n] = states[first : first + n].T
            self._block[: B.RIGID_ROWS, n:] = self._block[: B.RIGID_ROWS, :1]
            self._block[B.MEMORY_STATE : B.MEMORY_STATE + kept, :n] = memory[first : first + n].T
            self._block[B.MEMORY_STATE : B.MEMORY_STATE + kept, n:] = memory[first, :, None]
            self._block[B.ACTUATOR_STATE : B.ACTUATOR_STATE + SLOTS, :n] = actuators[first : first + n].T
            self._block[B.ACTUATOR_STATE : B.ACTUATOR_STATE + SLOTS, n:] = actuators[first, :, None]
            self._last[:] = self._block[: B.RIGID_ROWS].T
            bodies = BodyArrays(self._block.reshape(1, -1), np.arange(LANES), np.array([[LANES, 0, 0]]), self._params)
            effort.fill_efforts(
                bodies,
                self._models,
                self._scratch,
                np.arange(LANES),
                self._last,
                np.zeros(LANES, np.int64),
                1.0,
                self._out,
            )
            found[first : first + n] = self._out[:n]
            rates[first : first + n] = work[first_rate : first_rate + kept, :n].T
        return found, rates
