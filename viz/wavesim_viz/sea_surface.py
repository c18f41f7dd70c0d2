"""Sea surface for the page: the wave components that act on bodies, from the run's configuration and seed."""

from __future__ import annotations

from typing import NamedTuple

from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.surface import S_AMPLITUDE, S_EAST, S_FREQUENCY, S_NORTH, S_PHASE, sea_components


class SeaState(NamedTuple):
    """State of the sea: significant height (m), peak frequency (rad/s) and direction of travel (rad). None means the
    configured value.
    """

    height: float | None = None
    peak: float | None = None
    direction: float | None = None


AS_CONFIGURED = SeaState()


class SeaSurface:
    """Configured sea with a given seed. Its waves are recomputed only when its state has changed."""

    def __init__(self, loaded: LoadedConfig, seed: int, depth: float | None = None) -> None:
        """``depth`` is the water depth in m that applies if the soundings of the bed are not available."""
        self._loaded, self._seed, self._depth = loaded, seed, depth
        self._of: SeaState | None = None
        self._components: list[list[float]] = []

    def components(self, state: SeaState = AS_CONFIGURED) -> list[list[float]]:
        """Return the wave components. Each has an amplitude (m), an angular frequency (rad/s), wave numbers north and
        east (rad/m), and a phase (rad). The result is empty for a calm sea.
        """
        if state != self._of:
            sea = sea_components(self._loaded, self._seed, *state, self._depth)
            self._components, self._of = sea[:, [S_AMPLITUDE, S_FREQUENCY, S_NORTH, S_EAST, S_PHASE]].tolist(), state
        return self._components
