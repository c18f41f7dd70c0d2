"""Logs of runs of one vehicle in a :class:`~wavesim_server.Lab`, without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from wavesim_sdk.errors import LogError
from wavesim_sdk.sensors import sensor_table_of
from wavesim_server import Lab
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import LoadedConfig

#: program that returns the commands for all actuators, given the time (s), a row of the `state` table, and the period
#: (s)
Program = Callable[[float, np.void, float], Mapping[str, float]]


def record(
    loaded: LoadedConfig,
    name: str,
    log: Path,
    seconds: float,
    seed: int,
    program: Program | None,
    *,
    every: float,
    state: float,
    ping: float = 0.0,
) -> None:
    """Run a vehicle and write its log.

    New sensor values are recorded every ``every`` seconds. ``state`` is the period in s at which the program commands
    the actuators, and at which the true states and the commands are recorded; it must be a multiple of ``every``. If
    ``ping`` is not 0, the vehicle queries the beacons with this period in s; the log then also contains the acoustic
    signals.
    """
    lab, writer = Lab(loaded, seed), LogWriter(log, loaded, seed)
    row = lab.row(name)
    body = next(b for b in loaded.config.fleet.bodies if b.name == name)
    for b in loaded.config.fleet.bodies if ping > 0.0 else (body,):
        writer.body(0, lab.row(b.name), b.name, b.model, loaded.models[b.model].type, True)
    pings, frequency = round(ping / every), _query(loaded, body.name) if ping > 0.0 else 0.0
    seen: dict[int, int] = {}
    ratio, ticks, steps = round(state / every), round(every / loaded.config.time.step), round(seconds / every)
    for k in range(steps + 1):
        if k % ratio == 0:
            states = lab.state()
            if program is not None:
                lab.command(row, dict(program(k * every, states[row], state)))
            writer.table(lab.time_ns, "state", [row], states[row : row + 1].tobytes())
            writer.table(lab.time_ns, "actuation", [row], lab.actuation()[row : row + 1].tobytes())
        for number, kind, found in lab.records(name):
            if seen.get(number) != int(found["sequence"][0]):
                seen[number] = int(found["sequence"][0])
                size = sensor_table_of(kind).visible.dtype.itemsize
                writer.table(lab.time_ns, kind, [(row, number)], found.tobytes()[:size])
        if pings:
            if k % pings == 0:
                lab.ping(row, frequency)
            writer.signals(*lab.take_signals())
        lab.advance(ticks)
    writer.close()
    if writer.failure:
        raise LogError(f"{log}: {writer.failure}")


def _query(loaded: LoadedConfig, name: str) -> float:
    """Return the frequency in Hz of the queries that the first beacon answers."""
    for body in loaded.config.fleet.bodies:
        transducer = loaded.transducer(body)
        if body.name != name and transducer is not None and transducer.query > 0.0:
            return float(transducer.query)
    raise LogError(f"no beacon answers queries from '{name}'; give one a <transducer> with `query`")
