"""Status of the server. The answer can be large; therefore, it is sent in pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wavesim_sdk.fences import corner_points, fences_in_rows
from wavesim_sdk.shared_memory import TableView
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire.messages import Role
from wavesim_server.network.crews import Crews
from wavesim_server.network.data_loss import DataLossReport
from wavesim_server.network.emulator_sessions import EmulatorSessions
from wavesim_server.network.observers import Observers
from wavesim_server.network.simulation_clock import SimulationClock
from wavesim_server.network.step_exchange import StepExchange
from wavesim_world.config import LoadedConfig


@dataclass(frozen=True)
class StatusReport:
    """The objects whose state the `status` command reports."""

    name: str
    loaded: LoadedConfig
    seed: int
    step_ns: int
    clock: SimulationClock
    crews: Crews
    observers: Observers
    emulators: EmulatorSessions
    steps: StepExchange
    drops: Mapping[str, int]  #: number of dropped datagrams by reason
    acoustic_refused: Counter[str]  #: number of refused acoustic requests by client name
    data_loss: DataLossReport
    fences: TableView

    def make(self, now: float, gauges: Mapping[str, Any], stood_still_s: float) -> dict[str, Any]:
        """Return the answer to the commander's `status` command; ``gauges`` contains the parts of the answer that
        concern the process and the keys.
        """
        clock, log = self.clock(), self.data_loss.log
        plain = {k: clock[k].item() for k in clock.dtype.names}
        plain["state"] = RunState(plain["state"]).name.lower()
        members = sorted(self.crews.by_token.values(), key=lambda m: (m.row, m.ordinal))
        required = [b.name for b in self.loaded.config.fleet.bodies if b.client == "required"]
        piloted = {m.grant.body for m in members if m.role is Role.PILOT}
        return {
            "name": self.name,
            "configuration": str(self.loaded.path),
            "digest": self.loaded.digest,
            "seed": self.seed,
            **plain,
            "clients": [
                {
                    "name": m.session.name,
                    "id": m.row,
                    "role": m.role.name.lower(),
                    "address": f"{m.session.address[0]}:{m.session.address[1]}",
                    "lockstep_s": m.grant.lockstep_ticks * self.step_ns * 1e-9,
                    "rtt_ms": round(m.session.rtt_statistics.mean * 1e3, 3),
                    "waited_for": m.session.token in self.steps.barrier.waiting,
                    **self.steps.account(m.session.name, now),
                }
                for m in members
            ],
            "slow": self.steps.slow_names,
            "clients_total": len(members),
            "observers": [w.session.name for w in self.observers.by_token.values()],
            "emulators": [
                {"sensor": s.name, "address": f"{s.address[0]}:{s.address[1]}"}
                for s, _ in self.emulators.by_token.values()
            ],
            "missing": [n for n in required if n not in piloted],
            "drops": dict(self.drops),
            "acoustic_refused": dict(self.acoustic_refused.most_common(24)),
            **gauges,
            "fences": [
                {"name": f.name, "keep": f.keep, "corners": corner_points(f).tolist()}
                for f in fences_in_rows(self.fences.snapshot()[1])
            ],
            "damage": self.data_loss.texts,
            "stood_still_s": round(stood_still_s, 3),
            "log": log.failure or "ok" if log is not None else "off",
        }
