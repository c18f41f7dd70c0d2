"""The server's status, of any size; the answer is sent in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wavesim_sdk.tables import RunState
from wavesim_sdk.wire.messages import Role

if TYPE_CHECKING:
    from wavesim_server.network.front import Front


def _waits(front: Front, name: str) -> dict[str, Any]:
    """Return the time that the simulation has waited for a client, and the client's remaining budget (wall time)."""
    account = front.waits.accounts.get(name)
    now = max(front.now - since, 0.0) if (since := front.held().get(name)) is not None else 0.0
    waited, left = (
        (account.waited_s if account is not None else 0.0),
        front.waits.left(name, front.tick * front.step_ns * 1e-9),
    )
    return {"waited_s": round(waited + now, 3), "budget_left_s": round(left - now, 3)}


def server_status(front: Front) -> dict[str, Any]:
    """Return the answer to the commander's `status`."""
    clock = front.clock()
    plain = {k: clock[k].item() for k in clock.dtype.names}
    plain["state"] = RunState(plain["state"]).name.lower()
    members = sorted(front.crews.by_token.values(), key=lambda m: (m.row, m.ordinal))
    required = [b.name for b in front.config.fleet.bodies if b.client == "required"]
    piloted = {m.grant.body for m in members if m.role is Role.PILOT}
    return {
        "name": front.name,
        "configuration": str(front.loaded.path),
        "digest": front.loaded.digest,
        "seed": front.seed,
        **plain,
        "clients": [
            {
                "name": m.session.name,
                "id": m.row,
                "role": m.role.name.lower(),
                "address": f"{m.session.address[0]}:{m.session.address[1]}",
                "lockstep_s": m.grant.lockstep_ticks * front.step_ns * 1e-9,
                "rtt_ms": round(m.session.rtt_statistics.mean * 1e3, 3),
                "waited_for": m.session.token in front.barrier.waiting,
                **_waits(front, m.session.name),
            }
            for m in members
        ],
        "slow": [*front.waits.slow, *(f"emulator {s}" for s in sorted(front.slow_emulators))],
        "clients_total": len(members),
        "observers": [w.session.name for w in front.observers.by_token.values()],
        "missing": [n for n in required if n not in piloted],
        "drops": dict(front.sessions.drops),
        "acoustic_refused": dict(front.request_handler.acoustic_quota.refused.most_common(24)),
        **front.gauges(),
        "damage": front.data_loss.texts,
        "stood_still_s": round(front.stood_still_s, 3),
        "log": front.log.failure or "ok" if front.log is not None else "off",
    }
