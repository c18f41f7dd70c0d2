"""Run a network in one process, without a server: all programs exchange packets with one simulation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from mac import SECOND, ChannelChange, Heard, Protocol, Station

from wavesim_sdk.arrays import Record
from wavesim_sdk.tables import Outcome, SignalKind
from wavesim_server import Simulation

KEPT_NS = 120 * SECOND  #: time for which the payload of a packet is kept; it is longer than any packet travels


def run(sim: Simulation, stations: Mapping[str, Station], seconds: float) -> tuple[Record, Record]:
    """Advance a simulation by ``seconds`` while its nodes send packets; return the records of all signals (sent,
    receptions).

    ``stations`` has the program of each sending node by the name of its body. All programs have the same period, which
    is a multiple of the time step. The result does not depend on the order of the programs.
    """
    ordered = sorted(stations.items())
    rows = {name: sim.row_of(name) for name, _ in ordered}
    if missing := [name for name, row in rows.items() if row is None]:
        raise ValueError(f"no body of the simulation has the name '{missing[0]}'")
    programs = [(row, station) for name, station in ordered if (row := rows[name]) is not None]
    period = ordered[0][1].period
    listeners = {
        rows[name]: station
        for name, station in ordered
        if type(station.protocol).on_reception is not Protocol.on_reception
    }
    sensing = {
        rows[name]: station for name, station in ordered if type(station.protocol).on_channel is not Protocol.on_channel
    }
    heard: dict[int | None, list[Heard]] = {row: [] for row in rows.values()}
    payloads: dict[int, tuple[int, bytes]] = {}
    parts: list[tuple[Record, Record]] = []
    for _ in range(round(seconds * SECOND) // period):
        now = sim.time_ns
        for row, station in programs:
            if heard[row] or station.is_due(now):
                for t in station.step(now, heard[row]):
                    sim.send(row, t.payload, t.to, at=t.at)
                heard[row].clear()
        sim.advance(period // sim.step_ns)
        sent, receptions = sim.take_signals()
        changes = sim.take_channel_states()
        if sensing and len(changes):
            columns = (changes[name].tolist() for name in ("receiver", "busy", "clock_ns"))
            for receiver, busy, at in zip(*columns, strict=True):
                if receiver in sensing:
                    sensing[receiver].protocol.on_channel(ChannelChange(at, bool(busy)))
        parts.append((sent, receptions))
        if listeners:
            _hand_out(sim.time_ns, (sent, receptions), payloads, listeners, heard)
    return np.concatenate([s for s, _ in parts]), np.concatenate([r for _, r in parts])


def _hand_out(
    now: int,
    signals: tuple[Record, Record],
    payloads: dict[int, tuple[int, bytes]],
    listeners: Mapping[int | None, Station],
    heard: dict[int | None, list[Heard]],
) -> None:
    """Give each listening program the packets that its node has received."""
    sent, receptions = signals
    for s in sent:
        payloads[int(s["id"])] = int(s["emission_ns"]), s["payload"].ljust(int(s["payload_bytes"]), b"\0")
    got = (receptions["outcome"] == Outcome.HEARD) & (receptions["kind"] == SignalKind.DATA)
    for r in receptions[got]:
        station = listeners.get(int(r["receiver"]))
        if station is not None:
            payload = payloads[int(r["id"])][1]
            end = int(r["reported_ns"]) + station.protocol.node.duration(len(payload))
            heard[int(r["receiver"])].append(Heard(end, int(r["from_address"]), int(r["to_address"]), payload))
    for old in [i for i, (emission, _) in payloads.items() if emission < now - KEPT_NS]:
        del payloads[old]
