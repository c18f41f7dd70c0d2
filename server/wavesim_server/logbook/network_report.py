"""The network report: load, throughput, losses, delays, energy and fairness of the packets of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from wavesim_sdk.arrays import Floats, Ints, Record
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.log import Log, read
from wavesim_sdk.tables import RECEPTION, SENT, Outcome, SignalKind
from wavesim_server.logbook.information_age import information_ages
from wavesim_server.logbook.report import delivery_fates

__all__ = ["jain_index", "network_table", "report_of_log", "report_text"]

#: acoustic impedance (Pa s/m) of sea water with a density of 1025 kg/m3 and a sound speed of 1500 m/s
IMPEDANCE = 1025.0 * 1500.0
QUANTILES = (0.5, 0.9, 0.99, 1.0)
MISSING = "no_record"  #: reason for the loss of a packet that has no record at its destination
MAX_NODES_IN_TEXT = 30  #: maximum number of nodes that the text lists


def jain_index(shares: Floats) -> float:
    """Return Jain's fairness index of the throughputs of all nodes: 1 if they are equal, 1/n if one node has all.

    NaN if there is no throughput. Source: Jain, Chiu and Hawe, DEC-TR-301 (1984).
    """
    x = np.asarray(shares, float)
    total = float((x * x).sum())
    return float(x.sum()) ** 2 / (len(x) * total) if total else math.nan


def radiated_energy(sent: Record) -> Floats:
    """Return the acoustic energy in J of each signal, which is radiated equally in all directions."""
    pressure_squared = 1e-12 * 10.0 ** (sent["source_level"] / 10.0)  # Pa2 at 1 m
    return np.asarray(4.0 * math.pi * pressure_squared / IMPEDANCE * sent["duration"])


def energy_by_outcome(packets: Record, at: Record) -> dict[str, float]:
    """Return the radiated energy in J by the outcome of the packets that it was used for. The energy of a packet is
    divided equally among its destinations. ``at`` contains the reception of each packet at each destination.
    """
    energy = dict(zip(packets["id"].tolist(), radiated_energy(packets).tolist(), strict=True))
    destinations = Counter(at["id"].tolist())
    used: Counter[str] = Counter()
    for number, outcome in zip(at["id"].tolist(), at["outcome"].tolist(), strict=True):
        used[Outcome(outcome).name.lower() if outcome else "delivered"] += energy[number] / destinations[number]
    if unrecorded := sum(value for number, value in energy.items() if number not in destinations):
        used[MISSING] = unrecorded
    return dict(sorted(used.items()))


def network_table(
    sent: Record, receptions: Record, seconds: float, addresses: Mapping[int, int] | None = None
) -> dict[str, Any]:
    """Return the statistics of all data packets of a run as plain data.

    ``sent`` and ``receptions`` are the records that a log contains or that ``Simulation.take_signals`` returns, and
    ``seconds`` is the duration of the run. ``addresses`` maps the row of a node to its modem address. Nodes that send
    packets need no entry. A packet to one address counts as delivered if the node with this address receives it; a
    packet to all counts separately at each node with a modem.

    Raises InvalidArgument if ``seconds`` is not positive.
    """
    if not seconds > 0.0:
        raise InvalidArgument(f"the duration of a run must be positive, got {seconds:g} s")
    offered = sent[sent["kind"] == SignalKind.DATA]
    packets = offered[offered["outcome"] == 0]
    known = dict(addresses or {}) | dict(zip(offered["source"].tolist(), offered["from_address"].tolist(), strict=True))
    received = receptions[receptions["kind"] == SignalKind.DATA]
    at = delivery_fates(received)
    own = np.array([known.get(int(row), -1) for row in at["receiver"]], np.int64)
    at = at[(own >= 0) & ((at["to_address"] == 0) | (at["to_address"] == own)) & np.isin(at["id"], packets["id"])]
    causes = Counter(Outcome(int(o)).name.lower() for o in at["outcome"] if o)
    single = packets["id"][packets["to_address"] != 0]
    if missing := int((~np.isin(single, at["id"])).sum()):
        causes[MISSING] = missing
    good = at[at["outcome"] == 0]
    delay = (good["arrival_ns"] - good["emission_ns"]) * 1e-9 + good["duration"]
    sizes = dict(zip(packets["id"].tolist(), packets["payload_bytes"].tolist(), strict=True))
    bits = 8 * sum(sizes[int(i)] for i in good["id"])
    energy = float(radiated_energy(packets).sum())
    ends = received["arrival_ns"] * 1e-9 + received["duration"]
    ages = information_ages(good, float(ends.max()) if len(ends) else 0.0)
    sources, receivers = np.unique(offered["source"]), np.unique(at["receiver"])
    rows = np.union1d(sources, receivers)
    counts = {
        "sent": _count(packets["source"], rows),
        "delivered": _count(good["source"], rows),
        "received": _count(good["receiver"], rows),
        "lost": _count(at["receiver"][at["outcome"] != 0], rows),
    }
    return {
        "duration_s": seconds,
        "offered": len(offered),
        "sent": len(packets),
        "deliveries_possible": len(at) + missing,
        "delivered": len(good),
        "lost": dict(sorted(causes.items())),
        "offered_load": float(offered["duration"].sum()) / seconds,
        "sent_load": float(packets["duration"].sum()) / seconds,
        "throughput": float(good["duration"].sum()) / seconds / max(len(receivers), 1),
        "bits_per_second": bits / seconds,
        "delay_s": {f"{100 * q:.0f} %": float(np.quantile(delay, q)) for q in QUANTILES} if len(delay) else {},
        "energy_j": energy,
        "energy_per_bit_j": energy / bits if bits else math.nan,
        "energy_by_outcome_j": energy_by_outcome(packets, at),
        "fairness": jain_index(counts["delivered"][np.isin(rows, sources)].astype(float)),
        "nodes": [
            {"row": int(row), **{name: int(numbers[k]) for name, numbers in counts.items()}}
            for k, row in enumerate(rows)
        ],
        "age_s": _summary(ages),
        "pairs": ages,
    }


def _summary(ages: list[dict[str, Any]]) -> dict[str, float]:
    """Return the ages of information in s of all pairs together; nothing without pairs."""
    if not ages:
        return {}
    peaks = [age["peak"] for age in ages if age["updates"] > 1]
    return {
        "mean": float(np.mean([age["mean"] for age in ages])),
        "peak": float(np.mean(peaks)) if peaks else math.nan,
        "highest": max(age["highest"] for age in ages),
    }


def _count(given: Ints, rows: Ints) -> Ints:
    """Return how often each row occurs among the given rows."""
    return np.bincount(np.searchsorted(rows, given), minlength=len(rows))


def configured_addresses(configuration: str) -> dict[str, int]:
    """Return the modem addresses of the bodies in the text of a configuration, by name."""
    found = {}
    for body in ElementTree.fromstring(configuration).iter() if configuration.strip() else ():
        modem = body.find("transducer/modem")
        if modem is not None and "name" in body.attrib:
            found[body.attrib["name"]] = int(modem.get("address", "0"))
    return found


def addresses_of_log(log: Log) -> dict[int, int]:
    """Return the configured modem addresses of the bodies of a log, by row."""
    given = configured_addresses(log.metadata.get("configuration", ""))
    return {row: given[body["name"]] for row, body in log.bodies.items() if body["name"] in given}


def report_of_log(path: Path | Log) -> dict[str, Any]:
    """Return :func:`network_table` of a log, with the names of the nodes.

    Raises InvalidArgument if the log contains no data packets.
    """
    log = read(path)
    sent = log.get("/acoustics/sent", SENT).records
    if not (sent["kind"] == SignalKind.DATA).any():
        raise InvalidArgument("the log contains no data packets; a network report needs nodes with modems that send")
    names = {row: body["name"] for row, body in log.bodies.items()}
    receptions = log.get("/acoustics/reception", RECEPTION).records
    table = network_table(sent, receptions, log.end_ns * 1e-9, addresses_of_log(log))
    for node in table["nodes"]:
        node["name"] = names.get(node["row"], str(node["row"]))
    for pair in table["pairs"]:
        for end in ("source", "receiver"):
            pair[f"{end}_name"] = names.get(pair[end], str(pair[end]))
    return table


def report_text(table: dict[str, Any]) -> str:
    """Return a network report as text."""
    possible = max(table["deliveries_possible"], 1)
    lost = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in table["lost"].items()) or "none"
    ages = {"mean peak" if name == "peak" else name: value for name, value in table["age_s"].items()}
    total = max(table["energy_j"], 1e-300)
    uses = ", ".join(
        f"{100 * e / total:.1f} % {name.replace('_', ' ')}" for name, e in table["energy_by_outcome_j"].items()
    )
    age = ", ".join(f"{value:.3f} s {name}" for name, value in ages.items() if not math.isnan(value)) or "none"
    delays = ", ".join(f"{q} {value:.3f} s" for q, value in table["delay_s"].items()) or "none"
    lines = [
        f"duration      {table['duration_s']:.1f} s",
        f"packets       {table['offered']} offered, {table['sent']} sent",
        f"deliveries    {table['delivered']} of {table['deliveries_possible']} ({100 * table['delivered'] / possible:.1f} %)",
        f"lost          {lost}",
        f"load          {table['offered_load']:.4f} offered, {table['sent_load']:.4f} sent",
        f"throughput    {table['throughput']:.4f} per receiver, {table['bits_per_second']:.1f} bit/s in total",
        f"delay         {delays}",
        f"energy        {table['energy_j']:.3g} J, {table['energy_per_bit_j']:.3g} J per delivered bit",
        f"energy for    {uses or 'nothing'}",
        f"age           {age}",
        f"fairness      {table['fairness']:.4f}",
        "",
        "load, throughput: packet durations per time; throughput counts what a receiver gets, on average",
        "delay: from the start of the transmission to the end of the reception",
        "energy: sound that is radiated equally in all directions; fairness: Jain's index of the senders",
        "age: time since the newest packet that has arrived was sent; mean over time, mean peak, highest, of all pairs",
    ]
    if len(table["nodes"]) <= MAX_NODES_IN_TEXT:
        lines += ["", f"{'node':16} {'sent':>7} {'delivered':>9} {'received':>9} {'lost':>7}"]
        lines += [
            f"{node.get('name', node['row']):16} {node['sent']:7} {node['delivered']:9} {node['received']:9} {node['lost']:7}"
            for node in table["nodes"]
        ]
    return "\n".join(lines)
