"""What the commander's verbs mean to the front: checks, and the status report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from wavesim_sdk.commander import BODY_VERBS, VERBS
from wavesim_sdk.names import nearest
from wavesim_sdk.tables import RunState

if TYPE_CHECKING:
    from wavesim_server.network.front import Front


def parse(command: dict[str, Any]) -> tuple[str, Any, str]:
    """(verb, argument, error) of a well-formed command."""
    verb = command["verb"]
    if verb in BODY_VERBS:
        return _body_verb(verb, command)
    if verb not in VERBS:
        return verb, None, f"there is no command '{verb[:40]}'{nearest(verb[:40], {**VERBS, **BODY_VERBS})}"
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


def _numbers(value: Any, *counts: int) -> bool:
    """Whether a value is a list of finite numbers of one of these lengths."""
    return (
        isinstance(value, list)
        and len(value) in counts
        and all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in value)
    )


def _body_verb(verb: str, command: dict[str, Any]) -> tuple[str, Any, str]:
    """A verb on one body: its arguments as a list, the name first."""
    name = command.get("vehicle")
    if not isinstance(name, str):
        return verb, None, f"'{verb}' needs vehicle=NAME"
    if verb == "fault":
        actuator, fault, amount = command.get("actuator"), command.get("fault"), command.get("amount", 0.0)
        if not isinstance(actuator, int) or not isinstance(fault, str) or not _numbers([amount], 1):
            return verb, None, "'fault' needs actuator=NUMBER, fault=KIND and, for frozen and reduced, amount=NUMBER"
        return verb, [name, actuator, fault, float(amount)], ""
    if verb == "sensor":
        sensor, fault, amount = command.get("sensor"), command.get("fault"), command.get("amount", 0.0)
        field = command.get("field", "")
        good = isinstance(amount, str) or _numbers([amount], 1)
        if not (isinstance(sensor, str) and isinstance(fault, str) and isinstance(field, str) and good):
            return (
                verb,
                None,
                "'sensor' needs sensor=NAME, fault=KIND and, for bias, spikes and noisy, amount=NUMBER or a text with a unit, for wet "
                "amount=COMPARTMENT, and for one field of the value field=NAME",
            )
        return verb, [name, sensor, fault, amount, field], ""
    if verb == "push":
        force, torque = command.get("force"), command.get("torque", [0.0, 0.0, 0.0])
        if not _numbers(force, 3) or not _numbers(torque, 3):
            return verb, None, "'push' needs force=[X, Y, Z] and, if wanted, torque=[K, M, N]"
        return verb, [name, force, torque], ""
    matrix = command.get("matrix")
    if not isinstance(matrix, list) or len(matrix) != 6 or not all(_numbers(row, *range(1, 9)) for row in matrix):
        return verb, None, "'allocate' needs matrix=[6 rows of one number per thruster]"
    return verb, [name, matrix], ""


def status(front: Front) -> dict[str, Any]:
    """Everything the server knows of itself, of any size: the answer goes out in pieces."""
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
        for row, s in sorted(front.by_row.items())
    ]
    required = [b.name for b in front.config.fleet.bodies if b.client == "required"]
    joined = {s.name for s in front.by_row.values()}
    assert front.udp is not None
    return {
        "name": front.name,
        "configuration": str(front.loaded.path),
        "digest": front.loaded.digest,
        "seed": front.seed,
        **plain,
        "clients": clients,
        "clients_total": len(front.by_row),
        "observers": [w.session.name for w in front.observers.by_token.values()],
        "missing": [n for n in required if n not in joined],
        "drops": dict(front.sessions.drops),
        "acoustic_refused": dict(front.allowance.refused.most_common(24)),
        "queue_dropped": front.udp.dropped,
        "commander_bad": front.queue.bad,
        "commander_unread": front.queue.unread,
        "log": front.log.failed or "ok" if front.log is not None else "off",
    }
