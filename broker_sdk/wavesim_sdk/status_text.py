"""Text output of a server's status: a summary for the user, and a list of all values."""

from __future__ import annotations

from typing import Any

#: counters that stay 0 in a run without problems, and the text with which the summary reports each of them
TROUBLE = {
    "events_dropped": "records are missing from the log",
    "sensors_late": "values from an emulator were late",
    "contacts_dropped": "contacts between bodies were omitted",
    "paths_dropped": "propagation paths were omitted",
    "queue_dropped": "datagrams were lost because the server was too slow",
    "commander_bad": "invalid commands",
}


def summary(status: dict[str, Any]) -> list[str]:
    """Return the lines of a status summary: state, address, bodies, clients, missing programs and problems."""
    pace = f", {status['realtime_factor']:.1f} x real time" if status["state"] == "running" else ""
    address = "{}:{}".format(*status["address"]) if status.get("address") else "not reported"
    lines = [
        f"server     {status['name']}: {status['state']} at {status['time_ns'] * 1e-9:.3f} s (tick {status['tick']}){pace}",
        f"address    UDP {address}",
        f"file       {status['configuration']}, seed {status['seed']}",
        f"bodies     {status['vehicles']} vehicles, {status['buoys']} buoys",
        f"log        {status['log']}",
    ]
    lines += [f"client     {_client(c)}" for c in status["clients"]]
    lines += [f"observer   {name}" for name in status["observers"]]
    if replaced := status.get("keys", {}).get("replaced_in_use"):
        lines.append(f"keys       replaced, but still in use: {', '.join(replaced)}")
    if status["missing"]:
        lines.append(f"missing    {', '.join(status['missing'])}: a required program has not joined")
    if status["slow"]:
        lines.append(f"slow       {', '.join(status['slow'])}: the simulation waits for these clients")
    lines += [f"trouble    {status[key]} {text}" for key, text in TROUBLE.items() if status.get(key)]
    if drops := status["drops"]:
        lines.append(f"trouble    ignored datagrams: {', '.join(f'{n} {reason}' for reason, n in drops.items())}")
    if refused := status["acoustic_refused"]:
        lines.append(
            f"trouble    refused acoustic requests: {', '.join(f'{n} from {who}' for who, n in refused.items())}"
        )
    return lines + [f"trouble    {text}" for text in status["damage"]]


def all_values(status: dict[str, Any]) -> list[str]:
    """Return one line for each value of a server's status, excluding the list of clients."""
    shown = {k: v for k, v in status.items() if k != "clients"}
    return [f"{key:18} {value if value != {} and value != [] else '-'}" for key, value in shown.items()]


def _client(c: dict[str, Any]) -> str:
    text = f"{c['name']} ({c['role']}) from {c['address']}, round trip {c['rtt_ms']} ms"
    if c["waited_for"]:
        text += ", lockstep is waiting for it"
    if c["lockstep_s"]:
        text += f", waited {c['waited_s']:.1f} s in total, budget left {c['budget_left_s']:.1f} s"
    return text
