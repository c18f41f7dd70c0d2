"""What the commander's verbs mean to the front: checks, and the status report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from wavesim_sdk.commander import VERBS
from wavesim_sdk.config.load import nearest
from wavesim_sdk.tables import RunState

if TYPE_CHECKING:
    from wavesim_server.network.front import Front


def parse(command: dict[str, Any]) -> tuple[str, float | int | None, str]:
    """(verb, argument, error) of a well-formed command."""
    verb = command["verb"]
    if verb not in VERBS:
        return verb, None, f"there is no command '{verb[:40]}'{nearest(verb[:40], VERBS)}"
    name = VERBS[verb][0]
    if not name:
        return verb, None, ""
    value = command.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return verb, None, f"'{verb}' needs {name}=NUMBER"
    if verb == "step" and (value != int(value) or not 1 <= value <= 10_000_000):
        return verb, None, "a step is 1 to 10 000 000 whole ticks"
    if verb == "speed" and (value < 0 or value > 1000):
        return verb, None, "speed is 0 (as fast as possible) to 1000"
    return verb, value, ""


def status(front: Front) -> dict[str, Any]:
    """Everything the server knows of itself, small enough for one message."""
    clock = front._clock()
    plain = {k: clock[k].item() for k in clock.dtype.names}
    plain["state"] = RunState(plain["state"]).name.lower()
    clients = [
        {
            "name": s.name,
            "id": row,
            "address": f"{s.address[0]}:{s.address[1]}",
            "lockstep_s": s.join.lockstep_ns * 1e-9,
            "rtt_ms": round(s.rtt.mean * 1e3, 3),
            "waited_for": front.step is not None and row in front.step.waiting,
        }
        for row, s in sorted(front.by_row.items())[:24]
    ]
    required = [b.name for b in front.config.fleet.bodies if b.client == "required"]
    joined = {s.name for s in front.by_row.values()}
    assert front.udp is not None
    return {
        "name": front.name,
        "seed": front.seed,
        **plain,
        "clients": clients,
        "clients_total": len(front.by_row),
        "missing": [n for n in required if n not in joined],
        "drops": dict(front.sessions.drops),
        "queue_dropped": front.udp.dropped,
        "commander_bad": front.queue.bad,
        "log": front.log.failed or "ok" if front.log is not None else "off",
    }
