"""Environments for teams whose members communicate through the engine's acoustic medium.

A packet arrives after the travel time r/c. A member receives the packet if the member is not transmitting and no other
packet arrives at the same time.

    from wavesim_studies.learning import teams
    env = teams.Localisation(members=5)
    observations, infos = env.reset(seed=1)
    while env.agents:
        observations, rewards, terminations, truncations, infos = env.step({a: env.action_space(a).sample() for a in
        env.agents})

    many = teams.VectorLocalisation(teams=256, members=5)
    observations = many.reset(seed=1)
    observations, rewards, terminations, truncations, infos = many.step(np.zeros((256, 5, 9), np.float32))

In cooperative localisation, one member knows its position. The others use dead reckoning from heading and speed, in a
current that they cannot measure. A packet contains the estimated position of its sender, and the range follows from the
delay of the packet. :class:`Localisation` provides one team through PettingZoo's interface.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from pettingzoo import ParallelEnv

from wavesim_sdk.arrays import Array
from wavesim_studies.learning.team_core import FAR, VectorLocalisation, configuration
from wavesim_studies.learning.team_tables import ACTIONS, BOUND, OWN, PER_MEMBER, SEND_VALUE

__all__ = [
    "FAR",
    "OWN",
    "PER_MEMBER",
    "Localisation",
    "TransmissionSchedule",
    "VectorLocalisation",
    "aloha",
    "configuration",
    "evaluate_schedule",
    "tdma",
    "transmit_always",
    "transmit_never",
]


class Localisation(ParallelEnv):  # type: ignore[misc]
    """A team of ``members`` vehicles, of which the first ``known`` have GPS. An episode has at most ``limit`` steps of
    one second.

    An action has these values, each from -1 to 1: course (fraction of half a turn), speed, whether to send (above 0),
    level, start of the transmission within the step (0 or less: immediately; 1: so late that the transmission ends with
    the step), and payload bytes with any content. docs/learning.md describes observation and reward.
    """

    metadata: dict[str, Any] = {"render_modes": [], "name": "wavesim_localisation_v0", "is_parallelizable": True}  # noqa: RUF012  # as PettingZoo declares it

    def __init__(self, members: int = 5, known: int = 1, limit: int = 300, render_mode: str | None = None) -> None:
        self.vector = VectorLocalisation(1, members, known, limit, autoreset="Disabled")  #: the team as a vector
        self.known, self.limit, self.render_mode = known, limit, render_mode
        self.possible_agents = [f"m{k}" for k in range(members)]
        self.agents: list[str] = []
        self._numbers = {a: k for k, a in enumerate(self.possible_agents)}
        box = gymnasium.spaces.Box
        self._observed = {a: box(-BOUND, BOUND, (self.vector.size,), np.float32) for a in self.possible_agents}
        self._acted = {a: box(-1.0, 1.0, (ACTIONS,), np.float32) for a in self.possible_agents}
        self.state_space = box(-np.inf, np.inf, (members * 8,), np.float32)

    def observation_space(self, agent: str) -> Any:
        """Return the observation space of a member. Repeated calls return the same object."""
        return self._observed[agent]

    def action_space(self, agent: str) -> Any:
        """Return the action space of a member. Repeated calls return the same object."""
        return self._acted[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Place the members at equal angles around the centre, at distances of 100 to 150 m, in a random current. The
        same seed always produces the same start.
        """
        self.agents = list(self.possible_agents)
        seen = self.vector.reset(seed)[0]
        return {a: seen[k].copy() for a, k in self._numbers.items()}, {a: {} for a in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Advance all members by one second. Raise ValueError unless each member has a complete action."""
        if wrong := [a for a in self.agents if np.shape(np.asarray(actions.get(a))) != (ACTIONS,)]:
            raise ValueError(f"'{wrong[0]}' expects an action of {ACTIONS} numbers, got {actions.get(wrong[0])!r:.60}")
        given = np.zeros((1, len(self.possible_agents), ACTIONS), np.float32)
        for a in self.agents:
            given[0, self._numbers[a]] = actions[a]
        results = self.vector.step(given)
        observations, rewards, gone, late = (
            {a: array[0, self._numbers[a]].copy() for a in self.agents} for array in results[:4]
        )
        received: dict[int, list[dict[str, Any]]] = {k: [] for k in self._numbers.values()}
        for r in self.vector.receptions():
            received[int(r["receiver"])].append(
                {
                    "source": int(r["source"]),
                    "outcome": int(r["outcome"]),
                    "sent_ns": int(r["emission_ns"]),
                    "arrival_ns": int(r["arrival_ns"]),
                    "range": float(r["one_way"]),
                    "level": float(r["level"]),
                }
            )
        infos = {a: self._info(results[4], self._numbers[a], received) for a in self.agents}
        self.agents = [a for a in self.agents if not (gone[a] or late[a])]
        return (
            observations,
            {a: float(r) for a, r in rewards.items()},
            {a: bool(g) for a, g in gone.items()},
            {a: bool(t) for a, t in late.items()},
            infos,
        )

    @staticmethod
    def _info(infos: dict[str, Array], k: int, received: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
        error, energy, packets = infos["parts"][0, k].tolist()
        return {
            "error": float(infos["error"][0, k]),
            "sigma": float(infos["sigma"][0, k]),
            "reward_error": error,
            "reward_energy": energy,
            "reward_packets": packets,
            "receptions": received[k],
        }

    def state(self) -> Any:
        """Return a complete state for a central critic: true position (m), velocity (m/s) and estimation error (m) of
        each member.
        """
        return self.vector.state().astype(np.float32).ravel()

    def render(self) -> None:
        """Do nothing: rendering is not supported."""

    def close(self) -> None:
        """Do nothing: there are no resources to release."""


# ------------------------------------------------------------------ baselines for learners


class TransmissionSchedule:
    """Baseline in which each member follows its own circle. ``when(step)`` returns a mask of the members that send in a
    step. The mask has the shape (teams, members), or can be broadcast to it.
    """

    def __init__(self, env: Localisation | VectorLocalisation, when: Callable[[int], Any]) -> None:
        self.env, self._when = env, when
        self._vector = vector_of(env)

    def actions(self, step: int) -> Array:
        """Return the actions (teams, members, 9) of all members at a step; steps count from 0."""
        v = self._vector
        actions = np.zeros((v.teams, v.members, ACTIONS), np.float32)
        actions[..., 0] = (step / 100.0 + 0.37 * np.arange(v.members) + 1.0) % 2.0 - 1.0
        actions[..., 1], actions[..., 3] = 0.5, 1.0
        actions[..., SEND_VALUE] = np.where(self._when(step), 1.0, -1.0)
        return actions

    def act(self, step: int) -> dict[str, Any]:
        """Return the actions of the members of a PettingZoo environment at a step; steps count from 0."""
        assert isinstance(self.env, Localisation)
        actions = self.actions(step)[0]
        return {a: actions[self.env.possible_agents.index(a)] for a in self.env.agents}


def vector_of(env: Localisation | VectorLocalisation) -> VectorLocalisation:
    """Return the vector environment behind a team environment. A vector environment is returned unchanged."""
    return env.vector if isinstance(env, Localisation) else env


def transmit_never(env: Localisation | VectorLocalisation) -> TransmissionSchedule:
    """Return a schedule in which no member sends."""
    return TransmissionSchedule(env, lambda step: False)


def tdma(env: Localisation | VectorLocalisation) -> TransmissionSchedule:
    """Return a schedule in which the members send one after the other, for one step each."""
    members = vector_of(env).members
    return TransmissionSchedule(env, lambda step: np.arange(members) == step % members)


def aloha(env: Localisation | VectorLocalisation, share: float = 0.184, seed: int = 0) -> TransmissionSchedule:
    """Return a schedule in which each member sends at random, in a fraction ``share`` of all steps."""
    random, v = np.random.default_rng(seed), vector_of(env)
    return TransmissionSchedule(env, lambda step: random.random((v.teams, v.members)) < share)


def transmit_always(env: Localisation | VectorLocalisation) -> TransmissionSchedule:
    """Return a schedule in which all members send in every step."""
    return TransmissionSchedule(env, lambda step: True)


def evaluate_schedule(
    env: Localisation | VectorLocalisation, plan: TransmissionSchedule, seed: int
) -> dict[str, float]:
    """Run one episode of each team; team k has the seed ``seed`` + k. Return the RMS error (m) of members without GPS.
    Also return, as means over the teams, the numbers of packets sent and received, and the sum of rewards per member.
    """
    v = vector_of(env)
    v.reset(seed)
    square = count = heard = sent = total = 0.0
    going = np.ones(v.teams, bool)
    for step in range(v.limit):
        actions = plan.actions(step)
        _, rewards, _, _, infos = v.step(actions)
        there = infos["present"] & going[:, None]
        sent += float((there & (actions[..., SEND_VALUE] > 0.0)).sum())
        heard += float(infos["heard"][there].sum())
        total += float(rewards[there].sum()) / v.members
        square += float((infos["error"] ** 2)[:, v.known :][there[:, v.known :]].sum())
        count += float(there[:, v.known :].sum())
        going &= ~infos["ended"]
        if not going.any():
            break
    return {
        "rms": math.sqrt(square / max(count, 1.0)),
        "sent": sent / v.teams,
        "heard": heard / v.teams,
        "reward": total / v.teams,
    }
