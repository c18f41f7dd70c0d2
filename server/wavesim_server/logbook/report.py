"""The table of a trial, computed from its log alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.log import Log, read
from wavesim_sdk.tables import ESTIMATE, RECEPTION, SENT, STATE, Outcome


def exchanges(log: Log) -> Any:
    """Every completed query and reply: an array of records.

    Columns: ``row`` of the asker, ``beacon`` row, ``query`` and ``reply`` signal numbers, ``asked_ns``, ``heard_ns`` (exact),
    ``reported_ns`` (by the instrument), ``turn_ns`` (from the query's arrival to the reply), ``out`` and
    ``back``: true lengths of the legs in m.
    """
    kind = np.dtype(
        [(n, "i8") for n in ("row", "beacon", "query", "reply", "asked_ns", "heard_ns", "reported_ns", "turn_ns")]
        + [("out", "f8"), ("back", "f8")]
    )
    receptions = log.get("/acoustics/reception", RECEPTION).records
    heard = receptions[receptions["outcome"] == Outcome.HEARD]
    outward = {(int(r["id"]), int(r["receiver"])): r for r in heard}
    found = []
    for r in heard:
        first = outward.get((int(r["query"]), int(r["source"]))) if r["query"] else None
        if first is None or r["receiver"] != first["source"]:
            continue
        turn = int(r["emission_ns"]) - int(first["arrival_ns"])
        found.append(
            (
                r["receiver"],
                r["source"],
                r["query"],
                r["id"],
                first["emission_ns"],
                r["arrival_ns"],
                r["reported_ns"],
                turn,
                first["range"],
                r["range"],
            )
        )
    return np.array(found, kind)


def errors(log: Log, name: str) -> tuple[Any, Any, Any]:
    """(times s, navigation error m, dead-reckoning error m) of a vehicle that published estimates."""
    estimate, state = log.get(f"/estimate/{name}", ESTIMATE), log.get(f"/state/{name}", STATE)
    both, i, k = np.intersect1d(estimate.time_ns, state.time_ns, return_indices=True)
    believed, true = estimate.records[i], state.records["p_WB_W"][k]
    good = np.isfinite(believed["p_WB_W"][:, 0])
    horizontal = slice(0, 2)
    nav = np.linalg.norm((believed["p_WB_W"] - true)[good, horizontal], axis=1)
    dead = np.linalg.norm((believed["dead_reckoning_W"] - true)[good, horizontal], axis=1)
    return both[good] * 1e-9, nav, dead


def make(path: Path) -> dict[str, Any]:
    """The table as plain data."""
    log = read(path)
    sound_speed = _sound_speed(log)
    sent = log.get("/acoustics/sent", SENT).records
    receptions = log.get("/acoustics/reception", RECEPTION).records
    pairs = exchanges(log)
    vehicles = []
    for row, body in sorted(log.bodies.items()):
        name = body["name"]
        track = log.get(f"/state/{name}", STATE).records["p_WB_W"]
        mine = receptions[receptions["receiver"] == row]
        lost = Counter(Outcome(int(o)).name.lower() for o in mine["outcome"] if o)
        entry: dict[str, Any] = {
            "name": name,
            "model": body["model"],
            "distance_m": round(float(np.linalg.norm(np.diff(track, axis=0), axis=1).sum()), 1)
            if len(track) > 1
            else 0.0,
            "sent": int(((sent["source"] == row) & (sent["outcome"] == 0)).sum()),
            "not_sent": int(((sent["source"] == row) & (sent["outcome"] != 0)).sum()),
            "heard": int((mine["outcome"] == 0).sum()),
            "lost": dict(sorted(lost.items())),
        }
        own = pairs[pairs["row"] == row]
        if len(own):
            measured = sound_speed * (own["reported_ns"] - own["asked_ns"] - own["turn_ns"]) * 1e-9
            residual = 0.5 * (measured - own["out"] - own["back"])
            entry["ranges"] = len(own)
            entry["range_error_rms_m"] = round(float(np.sqrt(np.mean(residual**2))), 4)
            entry["range_error_max_m"] = round(float(np.abs(residual).max()), 4)
        _, nav, dead = errors(log, name)
        if len(nav):
            entry |= {
                "navigation_rms_m": round(float(np.sqrt(np.mean(nav**2))), 2),
                "navigation_max_m": round(float(nav.max()), 2),
                "dead_reckoning_end_m": round(float(dead[-1]), 2),
            }
        vehicles.append(entry)
    return {
        "log": str(path),
        "duration_s": log.end_ns * 1e-9,
        "seed": log.metadata.get("seed"),
        "content_hash": log.content_hash,
        "vehicles": vehicles,
    }


def _sound_speed(log: Log) -> float:
    """From the receptions themselves: true path over time of flight."""
    r = log.get("/acoustics/reception", RECEPTION).records
    good = r[(r["outcome"] == 0) & (r["range"] > 1.0)]
    if not len(good):
        return float("nan")
    return float(np.median(good["range"] / ((good["arrival_ns"] - good["emission_ns"]) * 1e-9)).round(6))


def text(table: dict[str, Any]) -> str:
    """The table for people."""
    head = f"{'':9} {'distance':>9} {'sent':>5} {'heard':>6} {'lost':>5}  {'ranges':>6} {'error rms':>9} {'max':>8}   {'nav rms':>7} {'nav max':>8} {'dead reck.':>10}"
    lines = [
        f"{table['duration_s']:.0f} s simulated"
        + (f" in {table['wall_s']:.1f} s ({table['realtime_factor']:.0f} x real time)" if "wall_s" in table else ""),
        "",
        head,
    ]
    for v in table["vehicles"]:
        line = f"{v['name']:9} {v['distance_m']:7.0f} m {v['sent']:5} {v['heard']:6} {sum(v['lost'].values()):5}  "
        if "ranges" in v:
            line += f"{v['ranges']:6} {v['range_error_rms_m']:7.3f} m {v['range_error_max_m']:6.3f} m   "
        else:
            line += " " * 36
        if "navigation_rms_m" in v:
            line += f"{v['navigation_rms_m']:5.2f} m {v['navigation_max_m']:6.2f} m {v['dead_reckoning_end_m']:8.1f} m"
        lines.append(line.rstrip())
        if v["lost"] or v["not_sent"]:
            parts = [f"{n} {r.replace('_', ' ')}" for r, n in v["lost"].items()]
            parts += [f"{v['not_sent']} not sent (recharging)"] if v["not_sent"] else []
            lines.append(f"{'':10}lost: {', '.join(parts)}")
    lines += ["", f"seed {table['seed']}, content hash {table['content_hash'][:16]}"]
    return "\n".join(lines)
