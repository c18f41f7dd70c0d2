"""The trial table. It is computed only from the log of the trial."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.actuators import CLIPPED
from wavesim_sdk.guidance.encounters import CONTACT_NOTICE_PREFIX, closest_passes
from wavesim_sdk.log import Log, read, straight_line_errors
from wavesim_sdk.tables import RECEPTION, SENT, STATE, Outcome, SignalKind
from wavesim_sdk.terminal_text import finite_json

#: run counters that should be 0, each with the text that is printed if the counter is not 0
TROUBLE_TEXTS = {
    "contacts_dropped": "contacts between bodies were omitted because there were too many at the same time",
    "paths_dropped": "propagation paths were omitted because their node already had the maximum number of stronger paths (<acoustics paths>), or because the paths had too many turning points",
    "events_dropped": "records are missing from the log because the front end did not keep up",
    "sensors_late": "emulator answers exceeded the time limit",
}


#: explanation of each column in the text table; the last two entries appear only if a vehicle has such values
COLUMNS = {
    "distance": "length of the true track",
    "sent, heard, lost": "signals that the body sent, signals that reached it and were received, and signals that reached it but were lost",
    "ranges": "two-way ranges; /min: ranges per minute; error rms, max: range error relative to the true distance",
    "nav rms, nav max": "horizontal error of the position that the on-board program estimates; dead reck.: horizontal error of its dead reckoning at the end of the run",
}
#: an instrument appears in the text table if at least this fraction of its measurements has no value
LEAST_SHARE = 0.01
LEAST_STRAIGHT_LINE_ERROR_M = 0.001  #: the text table omits straight-line errors whose maximum is smaller
MAX_VEHICLES_FOR_PASSES = 64  #: maximum number of vehicles for which closest passes are computed


def two_way_ranges(receptions: Any) -> tuple[Any, Any]:
    """Return the receptions with a two-way range, and their range errors in m. A range error is the measured range
    minus the mean of the true distances that the query and the reply travelled.
    """
    outward = {(int(r["id"]), int(r["receiver"])): float(r["distance"]) for r in receptions if r["outcome"] == 0}
    found = receptions[np.isfinite(receptions["measured"])]
    true = [0.5 * (outward.get((int(r["query"]), int(r["source"])), np.nan) + r["distance"]) for r in found]
    return found, found["measured"] - np.array(true, float)


def exchange_errors(receptions: Any, sound_speed: float) -> Any:
    """Return the straight-line error in m of each two-way range: the mean of the errors of the query and of the reply.

    The errors are in the order of :func:`two_way_ranges`. An error is NaN if the query is not among the receptions.
    """
    error = straight_line_errors(receptions, sound_speed)
    heard = receptions["outcome"] == Outcome.HEARD
    outward = {
        (int(r["id"]), int(r["receiver"])): float(e) for r, e in zip(receptions[heard], error[heard], strict=True)
    }
    replies = np.isfinite(receptions["measured"])
    pairs = zip(receptions[replies], error[replies], strict=True)
    return np.array([0.5 * (outward.get((int(r["query"]), int(r["source"])), np.nan) + e) for r, e in pairs], float)


def delivery_fates(receptions: Any) -> Any:
    """Return one reception for each pair of signal and node.

    For each pair, this is the reception whose outcome is "received" or, if there is none, the one along the most direct
    path.

    A signal may arrive along several paths, some of which may be blocked by an obstacle. It still counts as only one
    delivery or one loss.
    """
    bounces = receptions["surface"] + receptions["bottom"]
    order = np.lexsort((receptions["arrival_ns"], bounces, receptions["outcome"] != Outcome.HEARD))
    pairs = np.stack([receptions["id"][order], receptions["receiver"][order]])
    _, first = np.unique(pairs, axis=1, return_index=True)
    return receptions[np.sort(order[first])]


def packet_delivery(sent: Any, receptions: Any) -> dict[str, Any] | None:
    """Return statistics of data packets: their delivery, the losses by cause, and the use of the channel.

    Returns None if there are no packets. ``receptions`` come from :func:`delivery_fates`.
    """
    data = sent[(sent["kind"] == SignalKind.DATA) & (sent["outcome"] == 0)]
    if not len(data):
        return None
    talkers = set(sent["source"][~np.isin(sent["kind"], [SignalKind.PULSE, SignalKind.SOUND])].tolist())
    at = receptions[receptions["kind"] == SignalKind.DATA]
    at = at[np.isin(at["receiver"], list(talkers))]
    causes = Counter(Outcome(int(o)).name.lower() for o in at["outcome"] if o)
    delivered = int((at["outcome"] == 0).sum())
    return {
        "sent": len(data),
        "deliveries_possible": len(at),
        "delivered": delivered,
        "delivery_ratio": round(delivered / max(len(at), 1), 4),
        "lost": dict(sorted(causes.items())),
        "bits": int(8 * data["payload_bytes"].sum()),
    }


def trial_table(path: Path | Log) -> dict[str, Any]:
    """Return the trial table as plain data."""
    log = read(path)
    sent = log.get("/acoustics/sent", SENT).records
    receptions = log.get("/acoustics/reception", RECEPTION).records
    found, residuals = two_way_ranges(receptions)
    straight = exchange_errors(receptions, log.sound_speed)
    # a one-way range needs an emission time that the receiver knows, so only scheduled pings count
    scheduled = sent["id"][(sent["request"] == 0) & (sent["query"] == 0) & (sent["kind"] == SignalKind.PULSE)]
    minutes = max(log.end_ns * 1e-9 / 60.0, 1e-9)
    frozen = {name: time_ns * 1e-9 for time_ns, m in log.json.get("/frozen", []) for name in m["bodies"]}
    became = delivery_fates(receptions)
    notices = log.json.get("/notices", [])
    near = _closest_passes(log, frozen)
    vehicles = []
    for row, body in sorted(log.bodies.items()):
        name = body["name"]
        track = log.get(f"/state/{name}", STATE).records["p_WB_W"]
        mine = became[became["receiver"] == row]
        lost = Counter(Outcome(int(o)).name.lower() for o in mine["outcome"] if o)
        entry: dict[str, Any] = {
            "name": name,
            "model": body["model"],
            "distance_m": None if name in frozen else _length(track),
            "sent": int(((sent["source"] == row) & (sent["outcome"] == 0)).sum()),
            "not_sent": int(((sent["source"] == row) & (sent["outcome"] != 0)).sum()),
            "heard": int((mine["outcome"] == 0).sum()),
            "lost": dict(sorted(lost.items())),
        }
        if name in frozen:
            entry["frozen_at_s"] = frozen[name]
        if name in near:
            other, least, when = near[name]
            entry["closest"] = {"to": other, "distance_m": round(least, 2), "time_s": round(when, 3)}
        if clipped := _clipped(notices, name):
            entry["clipped"] = clipped
        if silent := _without_value(log, body):
            entry["without_value"] = silent
        if touched := [
            (t * 1e-9, m["text"])
            for t, m in notices
            if m["body"] == name and m["text"].startswith(CONTACT_NOTICE_PREFIX)
        ]:
            entry["contacts"] = [{"time_s": t, "text": text} for t, text in touched]
        residual = residuals[found["receiver"] == row]
        if len(residual):
            entry |= {
                "ranges": len(residual),
                "ranges_per_minute": round(len(residual) / minutes, 2),
                **_error_statistics(residual, "range"),
                **_straight_line(straight[found["receiver"] == row], "range"),
            }
        single = mine[(mine["outcome"] == 0) & np.isin(mine["id"], scheduled)]
        single = single[np.isfinite(single["one_way"])]
        if len(single) and body["type"] != "buoy":
            entry |= {
                "one_way_ranges": len(single),
                "one_way_per_minute": round(len(single) / minutes, 2),
                **_error_statistics(single["one_way"] - single["distance"], "one_way"),
                **_straight_line(straight_line_errors(single, log.sound_speed), "one_way"),
            }
        _, nav, dead = log.navigation_errors(name)
        if len(nav):
            entry |= {
                "navigation_rms_m": round(float(np.sqrt(np.mean(nav**2))), 2),
                "navigation_max_m": round(float(nav.max()), 2),
            }
            if np.isfinite(dead[-1]):  # a program need not send its dead reckoning
                entry["dead_reckoning_end_m"] = round(float(dead[-1]), 2)
        vehicles.append(entry)
    return {
        "log": str(path),
        "duration_s": log.end_ns * 1e-9,
        "seed": log.metadata.get("seed"),
        "content_hash": log.content_hash,
        "complete": log.complete,
        "health": log.json["/host/health"][-1][1] if "/host/health" in log.json else {},
        "damage": [m["text"] for _, m in log.json.get("/host/damage", [])],
        "vehicles": vehicles,
        "utilisation": round(float(sent["duration"][sent["outcome"] == 0].sum()) / max(log.end_ns * 1e-9, 1e-9), 4),
        "packets": packet_delivery(sent, became),
    }


def _clipped(notices: Any, name: str) -> list[str]:
    """Return the latest notice about each actuator of one body whose commands were clipped."""
    found = {}
    for _, m in notices:
        if m["body"] == name and m["text"].startswith(CLIPPED):
            text = m["text"].removeprefix(CLIPPED)
            found[text.partition(" takes ")[0]] = text
    return list(found.values())


def _without_value(log: Log, body: dict[str, Any]) -> dict[str, float]:
    """Return the fraction of measurements without a value for each instrument.

    The fraction is 1 if there is no measurement. Instruments without missing values are omitted.
    """
    there = log.sensors(body["name"])
    found = {}
    for name in dict.fromkeys([*(i["name"] for i in body.get("instruments", ())), *there]):
        series = there.get(name)
        share = 1.0 if series is None or not len(series.records) else float(np.mean(series.records["valid"] != 1))
        if share > 0.0:
            found[name] = round(share, 4)
    return found


def _closest_passes(log: Log, frozen: dict[str, float]) -> dict[str, tuple[str, float, float]]:
    """Return the other vehicle that came closest to each vehicle.

    If there are more than MAX_VEHICLES_FOR_PASSES vehicles, the result is empty, because comparing all pairs would take
    too long.
    """
    names = [b["name"] for _, b in sorted(log.bodies.items()) if b["type"] != "buoy" and b["name"] not in frozen]
    if len(names) > MAX_VEHICLES_FOR_PASSES:
        return {}
    states = {name: log.get(f"/state/{name}", STATE) for name in names}
    return closest_passes({name: (s.time_ns * 1e-9, s.records["p_WB_W"]) for name, s in states.items()})


def _length(track: Any) -> float:
    return round(float(np.linalg.norm(np.diff(track, axis=0), axis=1).sum()), 1)


def _error_statistics(error: Any, name: str) -> dict[str, float]:
    """Return the root mean square, median and maximum error."""
    return {
        f"{name}_error_rms_m": round(float(np.sqrt(np.mean(error**2))), 4),
        f"{name}_error_median_m": round(float(np.median(np.abs(error))), 4),
        f"{name}_error_max_m": round(float(np.abs(error).max()), 4),
    }


def _straight_line(error: Any, name: str) -> dict[str, float]:
    """Return the mean and the largest straight-line error; nothing if the log does not state the assumed sound speed."""
    good = error[np.isfinite(error)]
    if not len(good):
        return {}
    return {
        f"{name}_straight_line_error_mean_m": round(float(good.mean()), 4),
        f"{name}_straight_line_error_max_m": round(float(np.abs(good).max()), 4),
    }


def table_json(table: dict[str, Any]) -> str:
    """Return the table as JSON, with null in place of NaN and infinity."""
    return finite_json(table, 2)


def _shortcomings(v: dict[str, Any]) -> list[str]:
    """Return lines of text about a vehicle's instruments that lack values, and about its clipped commands."""
    # the first values of some instruments lack a reference, hence the minimum
    silent = [
        f"{name} {100 * share:.0f} %" for name, share in v.get("without_value", {}).items() if share >= LEAST_SHARE
    ]
    lines = [f"{v['name']:9} fraction of time without sensor values: {', '.join(silent)}"] if silent else []
    return lines + [f"{v['name']:9} clipped: {text}" for text in v.get("clipped", ())]


def _straight_line_texts(v: dict[str, Any]) -> list[str]:
    """Return a line of text for each kind of range whose straight-line error is not zero."""
    return [
        f"{v['name']:9} error of its {title} ranges due to the speed and path of sound: mean "
        f"{v[f'{kind}_straight_line_error_mean_m']:+.3f} m, "
        f"max {v[f'{kind}_straight_line_error_max_m']:.3f} m"
        for kind, title in (("range", "two-way"), ("one_way", "one-way"))
        if v.get(f"{kind}_straight_line_error_max_m", 0.0) >= LEAST_STRAIGHT_LINE_ERROR_M
    ]


def _legend(table: dict[str, Any]) -> list[str]:
    """Return the lines that explain the columns that contain values."""
    keys = {"ranges": "ranges", "nav rms, nav max": "navigation_rms_m"}
    shown = [c for c in COLUMNS if c not in keys or any(keys[c] in v for v in table["vehicles"])]
    return ["", *(f"{column}: {COLUMNS[column]}" for column in shown), ""]


def _vehicle_line(v: dict[str, Any]) -> str:
    """Return the line for a vehicle, aligned with the headings of the table."""
    distance = "   FROZEN" if v["distance_m"] is None else f"{v['distance_m']:7.0f} m"
    line = f"{v['name']:9} {distance} {v['sent']:5} {v['heard']:6} {sum(v['lost'].values()):5}  "
    if "ranges" in v:
        line += f"{v['ranges']:6} {v['ranges_per_minute']:5.1f} "
        line += f"{v['range_error_rms_m']:7.3f} m {v['range_error_max_m']:6.3f} m   "
    else:
        line += " " * 42
    if "navigation_rms_m" in v:
        line += f"{v['navigation_rms_m']:5.2f} m {v['navigation_max_m']:6.2f} m"
    if "dead_reckoning_end_m" in v:
        line += f" {v['dead_reckoning_end_m']:8.1f} m"
    return line.rstrip()


def table_text(table: dict[str, Any]) -> str:
    """Return the table as text."""
    head = f"{'':9} {'distance':>9} {'sent':>5} {'heard':>6} {'lost':>5}  {'ranges':>6} {'/min':>5} {'error rms':>9} {'max':>8}   {'nav rms':>7} {'nav max':>8} {'dead reck.':>10}"
    lines = [
        f"{table['duration_s']:.0f} s simulated"
        + (f" in {table['wall_s']:.1f} s ({table['realtime_factor']:.0f} x real time)" if "wall_s" in table else ""),
        "",
        head,
    ]
    for v in table["vehicles"]:
        lines.append(_vehicle_line(v))
        if v["lost"] or v["not_sent"]:
            parts = [f"{n} {r.replace('_', ' ')}" for r, n in v["lost"].items()]
            parts += [f"{v['not_sent']} not sent (recharging)"] if v["not_sent"] else []
            lines.append(f"{'':10}lost: {', '.join(parts)}")
    lines += _legend(table)
    for v in table["vehicles"]:
        if "frozen_at_s" in v:
            lines.append(f"{v['name']:9} FROZEN at {v['frozen_at_s']:.3f} s: its state diverged (NaN or infinity)")
    lines += [line for v in table["vehicles"] for line in _shortcomings(v)]
    pairs = set()
    for v in table["vehicles"]:
        if (c := v.get("closest")) and frozenset((v["name"], c["to"])) not in pairs:
            pairs.add(frozenset((v["name"], c["to"])))
            lines.append(f"{v['name']:9} closest to {c['to']}: {c['distance_m']:.2f} m after {c['time_s']:.1f} s")
    for v in table["vehicles"]:
        if touched := v.get("contacts"):
            more = f", and {len(touched) - 1} more" if len(touched) > 1 else ""
            lines.append(f"{v['name']:9} {touched[0]['text']}, after {touched[0]['time_s']:.3f} s{more}")
    for v in table["vehicles"]:
        if "one_way_ranges" in v:
            lines.append(
                f"{v['name']:9} {v['one_way_ranges']} one-way ranges measured with its own clock, {v['one_way_per_minute']:.1f} per minute, error rms "
                f"{v['one_way_error_rms_m']:.3f} m, max {v['one_way_error_max_m']:.3f} m"
            )
    lines += [line for v in table["vehicles"] for line in _straight_line_texts(v)]
    lines += [
        *([""] if lines[-1] else []),
        f"channel use: signals occupy {100 * table['utilisation']:.1f} % of the time",
    ]
    if (p := table["packets"]) is not None:
        lost = ", ".join(f"{n} {r.replace('_', ' ')}" for r, n in p["lost"].items()) or "none"
        lines.append(
            f"packets: {p['sent']} sent, {p['delivered']} of {p['deliveries_possible']} deliveries "
            f"({100 * p['delivery_ratio']:.1f} %), {p['bits'] / table['duration_s']:.0f} bit/s; lost: {lost}"
        )
    lines += [f"{n} {TROUBLE_TEXTS[t]}" for t, n in table["health"].items() if n and t in TROUBLE_TEXTS]
    for label, code in table.get("ended_early", {}).items():
        lines.append(f"{label} ended early (code {code})")
        lines += [f"{'':10}{said}" for said in table.get("last_words", {}).get(label, ())]
    lines += [f"LOST      {text}" for text in table["damage"]]
    lines += ["", f"seed {table['seed']}, content hash {table['content_hash'][:16]}"]
    return "\n".join(lines)
