"""The sea's surface for the page: the components that bodies feel, composed from the same configuration and seed."""

from __future__ import annotations

from typing import NamedTuple

from wavesim_sdk.config import Loaded
from wavesim_sdk.ocean.surface import S_A, S_EAST, S_NORTH, S_PHASE, S_W, sea_of


class State(NamedTuple):
    """Significant height (m), peak frequency (rad/s), whither (rad); None: as it is configured."""

    height: float | None = None
    peak: float | None = None
    direction: float | None = None


AS_CONFIGURED = State()


class Seas:
    """The sea of a configuration with a seed; composed anew only when its state has changed."""

    def __init__(self, loaded: Loaded, seed: int, depth: float | None = None) -> None:
        """``depth`` in m: where the soundings of the bed are not at hand."""
        self._loaded, self._seed, self._depth = loaded, seed, depth
        self._of: State | None = None
        self._told: list[list[float]] = []

    def told(self, state: State = AS_CONFIGURED) -> list[list[float]]:
        """Of each component: amplitude (m), angular frequency (rad/s), wave number north and east (rad/m), phase (rad). Empty: calm."""
        if state != self._of:
            sea = sea_of(self._loaded, self._seed, *state, self._depth)
            self._told, self._of = sea[:, [S_A, S_W, S_NORTH, S_EAST, S_PHASE]].tolist(), state
        return self._told
