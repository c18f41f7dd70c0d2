"""Many teams for cooperative localisation that advance together: the core of the team environments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk import frames
from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.guidance import control
from wavesim_server import Simulation, array_tables
from wavesim_server.acoustics.types import Records
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.row_pool import aligned_zeros
from wavesim_studies.learning import team_kernels as kernels
from wavesim_studies.learning import team_tables as layout
from wavesim_studies.learning.core import checked_mask
from wavesim_studies.learning.kernels import FleetView
from wavesim_studies.learning.shares import Shares
from wavesim_studies.learning.team_sound import TeamSound
from wavesim_studies.learning.team_tables import ACTIONS, BYTES, CONTROL_S, INTERVALS, OWN, PER_MEMBER, STEP_S
from wavesim_world.config import load_text

__all__ = ["VectorLocalisation", "configuration"]

MODEL = "lauv"
SUBSTEPS = 4  #: default number of Runge-Kutta steps between two commands of the autopilot
BIT_RATE, PREAMBLE = 160.0, 0.05
PAYLOAD = 8 + BYTES  #: number of bytes in a packet: four numbers of two bytes, and the free bytes
PACKET_S = PREAMBLE + 8 * PAYLOAD / BIT_RATE  #: duration of a packet in s
LEVELS = (150.0, 188.0)  #: source levels in dB re 1 uPa at 1 m for the minimum and the maximum action
FASTEST = 1.6  #: speed through water in m/s at the maximum action
FAR = 3000.0  #: distance in m from the centre beyond which a member counts as lost
#: standard deviations of the members' unknown errors: heading (rad), speed scale, current (m/s per axis), range (m)
HEADING, SCALE, CURRENT, RANGE = 0.03, 0.02, 0.2, 1.0
GPS = 0.5  #: position accuracy in m of members with GPS
CLOCK_OFFSET, CLOCK_DRIFT = 0.2e-3, 1e-6  #: standard deviations of offset (s) and drift of the members' clocks
TIMING_NOISE = 0.1e-3  #: standard deviation in s of a measured arrival time
AUTOPILOT = (
    control.HeadingController(1.0, 1.2, math.radians(25.0)),
    control.DepthController(limit=math.radians(25.0)),
    control.SpeedController(12.0, 4.0, 0.0, 12.0),
)
#: start depth in m of the vehicles in the configuration; each episode places them elsewhere
_DEPTH = 20.0


def configuration(members: int, substeps: int = SUBSTEPS) -> str:
    """Return the configuration of a team in deep water with a constant sound speed, ambient noise, and clocks with
    small errors.
    """
    fleet = "".join(
        f"""<vehicle name="m{k}" model="{MODEL}" position="0 {30 * k} {_DEPTH:g} m" client="optional">
        <transducer position="0.3 0 0.08 m" threshold="80 dB" recharge="0 s" timing_noise="{TIMING_NOISE:g} s">
        <clock offset_deviation="{CLOCK_OFFSET:g} s" drift_deviation="{1e6 * CLOCK_DRIFT:g} ppm"/>
        <modem address="{k + 1}" frequency="25 kHz" bandwidth="4 kHz" bit_rate="{BIT_RATE:g}" preamble="{PREAMBLE:g} s" payload="{PAYLOAD}"/>
        </transducer></vehicle>"""
        for k in range(members)
    )
    return f"""<wavesim><time step="{CONTROL_S / substeps:g} s"/><shared vehicles="{members}"/><world><bed depth="200 m"/></world>
    <acoustics ambient_noise="70 dB" max_range="{2.05 * FAR:g} m"/><fleet>{fleet}</fleet></wavesim>"""


class VectorLocalisation:
    """Teams of ``members`` vehicles, of which the first ``known`` have GPS. All teams advance in one compiled call.

    An episode has at most ``limit`` steps of one second. It ends earlier if all members are lost. ``substeps`` is the
    number of Runge-Kutta steps between two commands of the autopilot. ``autoreset`` selects when a team starts a new
    episode: in the step that ends its episode ("SameStep"), in the next step ("NextStep"), or only when :meth:`reset` is
    called ("Disabled"). Actions, observations and rewards are described in docs/learning.md.

    All arrays have the shape (teams, members, ...). The next step overwrites them.
    """

    MODES = ("NextStep", "SameStep", "Disabled")

    def __init__(
        self,
        teams: int,
        members: int = 5,
        known: int = 1,
        limit: int = 300,
        *,
        substeps: int = SUBSTEPS,
        autoreset: str = "SameStep",
    ) -> None:
        if not 2 <= members <= 20 or not 0 <= known <= members:
            raise ConfigError(
                f"a team needs 2 to 20 members, any number of them with GPS; got {members} members and {known} with GPS"
            )
        if teams < 1 or limit < 1 or not 2 <= substeps <= 200:
            raise ConfigError(
                f"teams and limit must be >= 1 and substeps 2 to 200, got {teams} teams, limit {limit}, {substeps} substeps"
            )
        if autoreset not in self.MODES:
            raise ConfigError(f"unknown autoreset mode '{autoreset}': use one of {', '.join(self.MODES)}")
        self.teams, self.members, self.known, self.limit, self.autoreset = teams, members, known, limit, autoreset
        self.size = OWN + PER_MEMBER * (members - 1)  #: number of values in an observation
        self.actions = ACTIONS  #: number of values in an action
        self._groups, self._ticks = -(-teams // LANES), INTERVALS * substeps
        self._seeded = self._started = False
        self._make_bodies(Simulation(load_text(configuration(members, substeps))))
        self.rules = layout.TeamRules(
            members, known, limit, substeps, self.MODES.index(autoreset), FAR, FASTEST, *LEVELS, PACKET_S, HEADING,
            SCALE, CURRENT, GPS, RANGE, CLOCK_OFFSET, CLOCK_DRIFT,
        )  # fmt: skip
        n, blocks, lanes = teams * members, self._groups * members, LANES
        self.arrays = layout.TeamArrays(
            aligned_zeros((blocks, layout.MEMBER * lanes)),
            aligned_zeros((self._groups, layout.TEAM * lanes)),
            np.zeros(self._groups * lanes, np.uint64),
            np.zeros((n * layout.RING, layout.PACKET)),
            self.media.memory,
            self.media.start,
            aligned_zeros(layout.WORK * lanes),
            np.zeros(lanes, bool),
        )
        #: outputs of the last step, with one row for each member of each team
        self.outputs = layout.TeamOutput(
            np.zeros((n, self.size), np.float32),
            np.zeros(n),
            np.zeros(n, bool),
            np.zeros(n, bool),
            np.zeros((n, self.size), np.float32),
            np.zeros((n, layout.PARTS)),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(n, bool),
            np.zeros(teams, bool),
        )
        self._threads = Shares(self._groups)

    def _make_bodies(self, sim: Simulation) -> None:
        """Create the bodies and the media of all teams from a simulation of one team."""
        rows = [sim.enter(f"m{k}") for k in range(self.members)]
        fleet, n = sim.fleet, self.members
        block, lane = divmod(int(fleet.slots[rows[0]]), LANES)
        blocks = aligned_zeros((self._groups * n, B.SIZE))
        blocks[:] = np.repeat(fleet.blocks[block].reshape(B.ROWS, LANES)[:, lane], LANES)
        heads = np.full((len(blocks), B.HEAD_SIZE), 0, np.int64)
        heads[:, B.HEAD_BODIES], heads[:, B.HEAD_MODEL] = LANES, fleet.block_heads[block, B.HEAD_MODEL]
        self.fleet = FleetView(
            blocks, heads, fleet.params.copy(), fleet.model_ints.copy(), fleet.tables.copy(), aligned_zeros(W.SIZE)
        )
        team, member = np.arange(self.teams)[:, None], np.arange(n)[None, :]
        slots = np.ascontiguousarray((team // LANES * n + member) * LANES + team % LANES)
        slot_of = {a.name: a.slot for a in fleet.actuators(rows[0])}
        heading, depth, speed = AUTOPILOT
        self.autopilot = layout.Autopilot(
            heading.kp, heading.kd, heading.limit, depth.kz, depth.ki, depth.kp, depth.kd, depth.pitch_limit,
            depth.limit, speed.kp, speed.ki, speed.high, slot_of["propeller"], slot_of["rudder-top"],
            slot_of["plane-port"],
        )  # fmt: skip
        self.media = TeamSound(sim, blocks, heads, slots, STEP_S, LEVELS[1])

    def seed(self, seed: int) -> None:
        """Seed all teams: team ``k`` uses the random numbers of seed + k."""
        self.arrays.keys[: self.teams] = [randomness.key(seed + k, "team", "learning") for k in range(self.teams)]
        self.arrays.groups.reshape(self._groups, layout.TEAM, LANES)[:, layout.EPISODE] = 0.0
        self._seeded = True

    def reset(self, seed: int | None = None, chosen: Array | None = None) -> Array:
        """Start new episodes and return the observations. The mask ``chosen`` (teams,) selects teams; None selects all.

        Team ``k`` uses the random numbers of seed + k. Without a seed, the random numbers of the previous seed
        continue. Raise ValueError if the mask has the wrong shape.
        """
        if seed is not None or not self._seeded:
            self.seed(int(np.random.default_rng().integers(2**31)) if seed is None else seed)
        mask = checked_mask(chosen, self.teams)
        self._started = True
        kernels.reset_selected(self._current_tables()[0][0], self.media.packed, mask)
        return self._by_team(self.outputs.observation)

    def set_threads(self, count: int) -> None:
        """Divide the teams among ``count`` threads, starting with the next step. The results do not depend on the number
        of threads.
        """
        self._threads.set_threads(count)

    def set_reset_mode(self, mode: int) -> None:
        """Select when a team starts a new episode, by the index of the mode in ``MODES``."""
        self.rules = self.rules._replace(mode=mode)

    def set_observation_buffer(self, observation: Array) -> None:
        """Write future observations into the caller's array (teams times members, size)."""
        observation[:] = self.outputs.observation
        self.outputs = self.outputs._replace(observation=observation)

    def _current_tables(self) -> list[tuple[Any, Any]]:
        """Return the table and the emission of each thread. They are rebuilt after an array or a rule has been replaced."""
        return self._threads.tables((self.rules, self.outputs), self._thread_state, _packed_state)

    def _thread_state(self) -> tuple[layout.TeamState, Any]:
        """Return the state of the teams with the scratch arrays of one thread, and the emission of that thread."""
        state = layout.TeamState(
            self.fleet._replace(work=aligned_zeros(W.SIZE)),
            self.arrays._replace(work=aligned_zeros(layout.WORK * LANES), chosen=np.zeros(LANES, bool)),
            self.autopilot,
            self.rules,
            self.outputs,
        )
        return state, self.media.emission.copy()

    def place(self, team: int, member: int, position: Sequence[float], heading: float = 0.0) -> None:
        """Move a member to a position (m, in W) with a heading (rad), at a surge speed of 1 m/s. The member knows its new
        position, and its autopilot holds the new depth. Call this only between two steps.
        """
        self._check_started()
        row, lane = team // LANES * self.members + member, team % LANES
        b = self.fleet.blocks[row].reshape(B.ROWS, LANES)[:, lane]
        c = self.arrays.members[row].reshape(layout.MEMBER, LANES)[:, lane]
        b[: B.STATE_ROWS] = 0.0
        b[B.PX : B.PX + 3], b[B.QW : B.QW + 4], b[B.NU] = position, frames.quaternion(0.0, 0.0, heading), 1.0
        c[layout.ESTIMATE : layout.ESTIMATE + 2], c[layout.DEPTH] = position[:2], position[2]
        self.media.place_members(team, int(self.arrays.groups[team // LANES, layout.STEP * LANES + lane]) * self._ticks)

    def _by_team(self, array: Array) -> Array:
        return array.reshape(self.teams, self.members, *array.shape[1:])

    def advance(self, actions: Array) -> None:
        """Advance all teams by one step with ``actions`` (teams times members, ACTIONS) float32.

        The results are then in ``outputs``. Raise ValueError if ``actions`` has the wrong shape, and RuntimeError before
        the first reset.
        """
        if actions.shape != (self.teams * self.members, ACTIONS):  # the kernel would read beyond it
            raise ValueError(f"expected actions of shape {(self.teams * self.members, ACTIONS)}, got {actions.shape}")
        self._check_started()
        tables, media, failures = self._current_tables(), self.media, []

        def advance(k: int, first: int, end: int) -> None:
            table, emission = tables[k]
            failures.append(kernels.step(table, media.packed, media.address, emission, actions, first, end))

        self._threads.run(advance)
        if any(failures):
            raise WaveSimError(f"the acoustic medium of a team has too little capacity ({sum(failures)} failures)")

    def _check_started(self) -> None:
        if not self._started:
            raise RuntimeError("call reset() first")

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
        """Advance all teams by one step with ``actions`` (teams, members, 9).

        Returns observations (teams, members, size), rewards, terminations, truncations (teams, members) and infos.
        ``infos`` contains for each member the estimation ``error`` and its expected standard deviation ``sigma`` in m,
        the three parts of the reward (``parts``), the numbers of packets ``heard`` and ``lost`` in this step, and
        whether the member was ``present`` in this step. It also contains the mask ``ended`` (teams,) of the teams whose
        episode has ended, with their last observations in ``last``. Raise ValueError if ``actions`` has the wrong shape.
        """
        given = np.ascontiguousarray(actions, np.float32)
        if given.shape != (self.teams, self.members, ACTIONS):
            raise ValueError(f"expected actions of shape {(self.teams, self.members, ACTIONS)}, got {given.shape}")
        self.advance(given.reshape(-1, ACTIONS))
        o, by_team = self.outputs, self._by_team
        infos = {
            name: by_team(getattr(o, name)) for name in ("error", "sigma", "parts", "heard", "lost", "present", "last")
        }
        infos["ended"] = o.ended
        return by_team(o.observation), by_team(o.reward), by_team(o.terminated), by_team(o.truncated), infos

    def receptions(self, team: int = 0) -> Records:
        """Return the engine's records (``reception`` table) of those receptions of a team that ended in the last step.
        ``source`` and ``receiver`` are member numbers. After an automatic reset in the same step, there are none.
        """
        return self.media.receptions(team)

    def state(self) -> Array:
        """Return the complete states (teams, members, 8) for a central critic: true position (m), velocity over ground
        in B (m/s) and estimation error (m, north and east) of each member.
        """
        self._check_started()
        n, blocks = self.members, self.fleet.blocks.reshape(self._groups, self.members, B.ROWS, LANES)
        found = np.zeros((self._groups, LANES, n, 8))
        bodies, own = (
            array.reshape(self._groups, n, -1, LANES).transpose(0, 3, 1, 2) for array in (blocks, self.arrays.members)
        )
        found[..., :3], found[..., 3:6] = bodies[..., B.PX : B.PX + 3], bodies[..., B.NU : B.NU + 3]
        found[..., 6:] = own[..., layout.ESTIMATE : layout.ESTIMATE + 2] - found[..., :2]
        return found.reshape(-1, n, 8)[: self.teams]


def _packed_state(state: tuple[layout.TeamState, Any]) -> tuple[Any, Any]:
    arrays, emission = state
    return array_tables.pack(arrays), emission
