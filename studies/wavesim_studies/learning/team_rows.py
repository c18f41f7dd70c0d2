"""Teams for training libraries with one shared policy: each member of each team is a copy with its own observation and
action.

from wavesim_studies.learning.sb3 import VecEnv
envs = VecEnv("TeamLocalisation", 1280, members=5)  # 256 teams
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from wavesim_sdk.arrays import Array, Mask
from wavesim_sdk.errors import ConfigError
from wavesim_studies.learning.core import check_buffer, checked_mask
from wavesim_studies.learning.team_core import SUBSTEPS, VectorLocalisation
from wavesim_studies.learning.team_tables import BOUND, TeamOutput

__all__ = ["TeamRows"]


class TeamRows:
    """Members of teams as copies of a task, with the interface of :class:`~wavesim_studies.learning.core.Core`.

    Copy ``i`` is member ``i % members`` of team ``i // members``. If a member is lost, its episode is terminated, and
    its observations and rewards are then zero. The steps with zeros count as a separate episode, which is truncated
    when the episode of the team ends.
    """

    units: ClassVar = {"error": "m", "sigma": "m"}  #: units of :meth:`infos`

    def __init__(
        self, copies: int, *, members: int = 5, known: int = 1, limit: int = 300, substeps: int = SUBSTEPS
    ) -> None:
        if members > 0 and copies % members:
            raise ConfigError(f"the number of copies must be a multiple of {members} members, got {copies}")
        self.vector = VectorLocalisation(copies // max(members, 1), members, known, limit, substeps=substeps)
        self.copies, self.actions, self.size, self.bound = copies, self.vector.actions, self.vector.size, BOUND
        self.success = np.zeros(copies, bool)  #: always False, because this task has no criterion for success
        self.limit = limit  #: maximum number of steps of an episode

    @property
    def outputs(self) -> TeamOutput:
        """Outputs of the last step."""
        return self.vector.outputs

    def seed(self, seed: int) -> None:
        """Seed all teams: team ``k`` uses the random numbers of seed + k."""
        self.vector.seed(seed)

    def set_threads(self, count: int) -> None:
        """Divide the teams among ``count`` threads, starting with the next step."""
        self.vector.set_threads(count)

    def set_reset_mode(self, mode: int) -> None:
        """Select when a team starts a new episode, as in :class:`~wavesim_studies.learning.core.Core`."""
        self.vector.set_reset_mode(mode)

    def set_observation_buffer(self, observation: Array) -> None:
        """Write future observations into the caller's C-contiguous float32 array (n, size)."""
        check_buffer(observation, (self.copies, self.size))
        self.vector.set_observation_buffer(observation)

    def reset_copies(self, chosen: Mask | None = None) -> None:
        """Start new episodes in all teams, or in those whose members the mask ``chosen`` (n,) selects. Raise ValueError
        if the mask has the wrong shape or selects only some members of a team.
        """
        teams: Mask | None = None
        if chosen is not None:
            by_team = checked_mask(chosen, self.copies).reshape(self.vector.teams, self.vector.members)
            teams = np.all(by_team, axis=1)
            if (by_team.any(axis=1) != teams).any():
                raise ValueError("the mask must select all members of a team, or none of them")
        self.vector.reset(chosen=teams)

    def step(self, actions: Array) -> None:
        """Advance all teams by one step with ``actions`` (n, 9) float32. The results are then in ``outputs``."""
        self.vector.advance(actions)
        o, v = self.vector.outputs, self.vector
        if o.ended.any():  # the episodes of lost members end with their team's episode
            o.truncated[np.repeat(o.ended, v.members) & ~o.present] = True

    def infos(self) -> dict[str, Array]:
        """Return the quantities (n,) of this step for the infos of Gymnasium, by name."""
        o = self.outputs
        return {
            "error": o.error,
            "sigma": o.sigma,
            "heard": o.heard,
            "lost": o.lost,
            "present": o.present,
            "reward_error": o.parts[:, 0],
            "reward_energy": o.parts[:, 1],
            "reward_packets": o.parts[:, 2],
        }
