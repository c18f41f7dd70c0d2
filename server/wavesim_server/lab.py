"""The engine for programs and notebooks. Bodies have names, instruments run in this process, and tracks are recorded.

    from wavesim_server import Lab
    lab = Lab('<wavesim><fleet><sensors><ctd/><ahrs/></sensors></fleet></wavesim>')
    for k in range(20):
        lab.enter(f"auv{k}", "lauv", (0.0, 20.0 * k, 15.0))
    lab.commands({name: {"propeller": 8.0} for name in lab.names})
    lab.ping(lab.row("auv0"), 25e3)
    lab.run(60.0, every=0.5)
    print(lab.states(), lab.sensors("auv3").ctd.temperature, lab.heard())
    lab.plot()

Sensor values equal those that emulators would send to a broker in lockstep, because the models and the random numbers
are the same. ``lab.frame("auv3", "eye")`` returns the image of a sonar, camera or lidar, or a block of samples of a
hydrophone; with ``imaging=True``, these instruments also measure at their rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk import arguments, frames
from wavesim_sdk.actuators import order_command
from wavesim_sdk.arrays import Record
from wavesim_sdk.errors import InvalidArgument, UnknownName
from wavesim_sdk.extras import check_installed
from wavesim_sdk.imaging_frames import ImagingFrame, no_such_source
from wavesim_sdk.names import suggest_name
from wavesim_sdk.sensors import HEAD_COLUMNS, sensor_table_of, value_count
from wavesim_sdk.tables import Outcome, SignalKind
from wavesim_sdk.wire.state import Layout, Sensors, Value
from wavesim_server.argument_checks import checked_ticks
from wavesim_server.imaging import InstantFrames
from wavesim_server.instrument_banks import InstrumentBanks
from wavesim_server.instruments import InstrumentRegistry, describe_instrument
from wavesim_server.simulation import Simulation
from wavesim_server.snapshots import Snapshot
from wavesim_world.config import LoadedConfig, Model, load, load_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Lab", "States"]

Command = Sequence[float | None] | Mapping[Any, float]
#: unit and number of digits for each column of :class:`States`
STATE_COLUMNS = {
    "north": ("m", 2),
    "east": ("m", 2),
    "depth": ("m", 2),
    "roll": ("deg", 1),
    "pitch": ("deg", 1),
    "heading": ("deg", 1),
    "speed": ("m/s", 3),
}


class States(Mapping[str, Any]):
    """Current states of the bodies by name, for example ``states["lauv"]["depth"]``.

    ``table`` contains the complete rows of the `state` table, one for each body.
    """

    def __init__(self, names: Sequence[str], table: Record) -> None:
        self.names, self.table = tuple(names), table
        p, angles = table["p_WB_W"], np.degrees(frames.euler(table["q_WB"]).reshape(-1, 3))
        speed = np.linalg.norm(table["v_WB_B"], axis=1)
        self.columns = dict(
            zip(STATE_COLUMNS, [*p.T, angles[:, 0], angles[:, 1], angles[:, 2] % 360.0, speed], strict=True)
        )

    def __getitem__(self, name: str) -> dict[str, float]:
        if name not in self.names:
            raise UnknownName(f"unknown body '{name}'{suggest_name(name, self.names)}")
        k = self.names.index(name)
        return {column: float(values[k]) for column, values in self.columns.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def _rows(self) -> list[list[str]]:
        head = ["", *(f"{column} ({unit})" for column, (unit, _) in STATE_COLUMNS.items())]
        digits = [d for _, d in STATE_COLUMNS.values()]
        numbers_ = zip(*self.columns.values(), strict=True)
        return [head] + [
            [name, *(f"{v:.{d}f}" for v, d in zip(row, digits, strict=True))]
            for name, row in zip(self.names, numbers_, strict=True)
        ]

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        return "<table><tr>" + "".join(f"<th>{cell}</th>" for cell in head) + f"</tr>{body}</table>"


class Lab(Simulation):
    """A simulation with instruments.

    ``configuration`` is a file, the text of a configuration (``<wavesim>...``), or a loaded configuration. If the
    configuration is given as text, ``folder`` is the folder that contains the files to which it refers. If ``imaging``
    is set, sonars, cameras, lidars and hydrophones measure at their rates, and :meth:`take_frames` returns their frames.
    """

    def __init__(
        self,
        configuration: str | Path | LoadedConfig = "<wavesim/>",
        seed: int | None = None,
        folder: str | Path | None = None,
        *,
        imaging: bool = False,
    ) -> None:
        loaded = _load_configuration(configuration, folder)
        self._initial_entries: list[dict[str, Any]] = []
        self.instruments = InstrumentRegistry(loaded.sensor_rows, round(loaded.config.time.step * 1e9))
        super().__init__(loaded, seed)
        self._imaging = imaging
        self._banks = InstrumentBanks(self, self.instruments, imaging)
        self._instant_frames = InstantFrames(self, self.instruments, self._banks)
        #: time in s, names of the bodies, and their rows in the `state` table, for each record made by :meth:`run`
        self.tracks: list[tuple[float, tuple[str, ...], Record]] = []
        self.enter_residents()

    def __repr__(self) -> str:
        named = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
        return f"<Lab '{self.config.name}' at {self.time_ns * 1e-9:.3f} s: {len(self.names)} bodies ({named})>"

    # -- bodies --------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The names of the bodies in the simulation, in the order of the rows."""
        return [self.occupants[row].name for row in self.rows]

    def row(self, name: str) -> int:
        """Return the row of a body. Raises UnknownName, suggesting the most similar name, if the body is unknown."""
        found = self.row_of(name)
        if found is None:
            raise UnknownName(f"unknown body '{name}'{suggest_name(name, self.names)}")
        return found

    def enter(
        self,
        name: str,
        model: str = "",
        position: Sequence[float] = (0.0, 0.0, 0.0),
        attitude: Sequence[float] = (0.0, 0.0, 0.0),
        row: int | None = None,
        variant: Model | None = None,
        generation: int = 0,
    ) -> int:
        """Add a body with its instruments; see :meth:`Simulation.enter`."""
        entry_arguments = {
            "name": name,
            "model": model,
            "position": position,
            "attitude": attitude,
            "row": row,
            "variant": variant,
        }
        row = super().enter(name, model, position, attitude, row, variant, generation)
        try:
            self.instruments.enter(row, self.loaded.suite_by_name(name, self.occupants[row].model.name))
        except ValueError:
            super().leave(row)
            raise
        if self.tick == 0:
            self._initial_entries.append(entry_arguments)
        return row

    def leave(self, row: int) -> None:
        """Remove a body with its instruments; see :meth:`Simulation.leave`."""
        name = self._occupants.in_row(row).name
        super().leave(row)
        self.instruments.leave(row)
        if self.tick == 0:
            self._initial_entries = [e for e in self._initial_entries if e["name"] != name]

    def reset(self, seed: int | None = None) -> None:
        """Reset the simulation to its beginning. The bodies that were added before the first tick return to their
        initial poses.

        With the same ``seed``, the run that follows is identical to the last bit. Another ``seed`` changes only the
        random numbers.
        """
        entered = self._initial_entries
        Lab.__init__(self, self.loaded, self.seed if seed is None else seed, imaging=self._imaging)
        for e in entered:
            if self.row_of(e["name"]) is None:
                self.enter(**e)

    def snapshot(self) -> Snapshot:
        """Return the complete state at this tick, including the instruments; see :meth:`Simulation.snapshot`."""
        return self._capture(instruments=self.instruments.save(), banks=self._banks.save())

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot; see :meth:`Simulation.restore`. Later tracks are discarded, and so are all frames that
        :meth:`take_frames` has not returned.
        """
        parts = self._put_back(snapshot, "instruments", "banks")
        self.instruments.restore(parts["instruments"], self.suite_in_row)
        self._banks.restore(parts["banks"], self.seed)
        self.tracks = [track for track in self.tracks if track[0] <= self.time_s]

    _OUTSIDE = frozenset({"instruments", "_banks", "_instant_frames", "_imaging", "tracks"})

    # -- commands, time ------------------------------------------------------------------------

    def commands(self, values: Mapping[str, Command]) -> None:
        """Set actuator commands for many bodies by name; see :meth:`command`.

        Raises InvalidArgument if any command is invalid. In that case, no command changes.
        """
        rows = [self.row(name) for name in values]
        found = [order_command(self.occupants[row].actuators, v) for row, v in zip(rows, values.values(), strict=True)]
        for row, numbers_ in zip(rows, found, strict=True):
            self.fleet.command(row, numbers_)

    def advance(self, ticks: int = 1) -> None:
        """Advance by whole ticks; instruments measure when they are due. Raises InvalidArgument if the number of ticks is
        negative.
        """
        end = self.tick + checked_ticks(ticks)
        if self.tick == 0 and self._banks.by_type:
            self._banks.measure(list(self._banks.by_type))
        while self.tick < end:
            super().advance(self._banks.next_due(end) - self.tick)
            self._banks.measure_due()

    def run(self, seconds: float, every: float = 0.0) -> None:
        """Advance by ``seconds`` and record the states in :attr:`tracks`.

        ``every`` is the interval in seconds between records (0 = no records).

        Raises InvalidArgument if ``seconds`` or ``every`` is negative or not finite.
        """
        arguments.at_least_zero("seconds", seconds, "s")
        arguments.at_least_zero("every", every, "s")
        end = self.tick + round(seconds * 1e9) // self.step_ns
        period = max(1, round(every * 1e9) // self.step_ns) if every else 0
        while self.tick < end:
            if period and self.tick % period == 0:
                self._record_track()
            stop = (self.tick // period + 1) * period if period else end
            self.advance(min(stop, end) - self.tick)
        if period and self.tick % period == 0:
            self._record_track()

    def _record_track(self) -> None:
        now = self.time_ns * 1e-9
        if not self.tracks or self.tracks[-1][0] != now:
            self.tracks.append((now, tuple(self.names), self.state()[self.rows]))

    def transmit(
        self,
        body: int | str,
        samples: Any,
        sampling_rate: float,
        level: float | None = None,
        at: int | None = None,
        scale: str = "rms",
        *,
        number: int = 0,
    ) -> None:
        """Play a sound with the transducer of a body, given by its name or its row; see :meth:`Simulation.transmit`."""
        row = self.row(body) if isinstance(body, str) else body
        super().transmit(row, samples, sampling_rate, level, at, scale, number=number)

    # -- results -------------------------------------------------------------------------------

    def states(self) -> States:
        """Return the current states of the bodies."""
        return States(self.names, self.state()[self.rows])

    def sensors(self, name: str) -> Sensors:
        """Return the newest values from a body's instruments by name, for example
        ``lab.sensors("lauv").ctd.temperature``.

        Before the first tick, these are the initial values, which a broker would receive with its first state. Sonars,
        cameras and lidars have no values before ``advance(0)`` or the first tick. Reading the values does not affect
        the run.
        """
        if self.tick == 0:  # a pose, a fault or the weather may still change before the first tick
            with self._banks.initial_values():
                return self._newest_values(name)
        return self._newest_values(name)

    def _newest_values(self, name: str) -> Sensors:
        found: dict[str, Value] = {}
        for k, entry in enumerate(self.instruments.installed(self.row(name))):
            instrument = entry.instrument
            if instrument.type not in self._banks.by_type:
                continue
            record = self._banks.by_type[instrument.type].table[entry.place]
            if record["valid"] == 1:
                count = value_count(sensor_table_of(instrument.type))
                values = np.frombuffer(record.tobytes(), np.float64)[HEAD_COLUMNS : HEAD_COLUMNS + count]
                layout = Layout(describe_instrument(k, instrument, self.step_ns))
                found[instrument.name] = Value(layout, int(record["time_ns"]), tuple(values.tolist()))
        return Sensors(found)

    def records(self, name: str) -> Iterator[tuple[int, str, Record]]:
        """Yield the newest record from each instrument on a body; skip instruments without a measurement.

        Each item is (number in the suite, type, one-row slice of the table for that type).
        """
        for k, entry in enumerate(self.instruments.installed(self.row(name))):
            station = self._banks.by_type.get(entry.instrument.type)
            if station is not None and station.table[entry.place]["sequence"] > 0:
                yield k, entry.instrument.type, station.table[entry.place : entry.place + 1]

    def frame(self, name: str, instrument: str, seed: int | None = None) -> ImagingFrame:
        """Return a frame of a sonar, camera, lidar or hydrophone on a body at this tick, for the current poses of all
        bodies.

        The frame equals the first frame of an emulator that starts at this tick. Its noise depends on the tick and on
        ``seed``, which is by default the seed of the simulation. Use another seed for each frame of a data set. A sonar
        transmitted its ping before this tick, from the position that is extrapolated back with its current velocity. A
        hydrophone gives the newest complete block of samples.

        Raises UnknownName if the body has no such instrument, and InvalidArgument if a sonar or camera is in air, or if
        a hydrophone has no complete block yet.
        """
        return self._instant_frames.compute(self.row(name), instrument, self.seed if seed is None else seed)

    def take_frames(self, name: str = "", instrument: str = "") -> list[ImagingFrame]:
        """Return the frames since the last call, of all sonars, cameras, lidars and hydrophones, or of those on one body
        or with one name. All other frames are discarded.

        The frames are bit-identical to those of the emulators of a server in lockstep. They are collected in memory
        while :meth:`advance` runs.

        Raises InvalidArgument if the lab was created without ``imaging=True``. Raises UnknownName if there is no such
        body or instrument; no frame is then discarded.
        """
        if not self._imaging:
            raise InvalidArgument("this lab collects no frames; create it with Lab(..., imaging=True), or use frame()")
        self._check_source(name, instrument)
        frames = self._banks.frames.take()
        return [f for f in frames if name in ("", f.body) and instrument in ("", f.name)]

    def _check_source(self, name: str, instrument: str) -> None:
        """Raise UnknownName if no frame can come from this body and instrument. Frames of a body that has left may
        still be available.
        """
        sources: dict[str, list[str]] = {}
        for row in self.rows:
            carried = [e.instrument for e in self.instruments.installed(row)]
            own = [i.name for i in carried if i.type in self._banks.imaging_types]
            sources[self.occupants[row].name] = own
        for body, source in self._banks.frames.sources():
            sources.setdefault(body, []).append(source)
        if name and name not in sources:
            raise UnknownName(f"unknown body '{name}'{suggest_name(name, sources)}")
        available = dict.fromkeys(i for body, own in sources.items() if name in ("", body) for i in own)
        if instrument and instrument not in available:
            raise UnknownName(no_such_source(name, instrument, available))

    def heard(self) -> list[dict[str, Any]]:
        """Return the signals received since the last call of this method or of :meth:`take_signals`, in chronological
        order.

        Each item has the keys ``time`` (s), ``receiver`` and ``source`` (names), ``kind``, and ``distance`` (m,
        true).
        """
        _, receptions = self.take_signals()
        name = {row: o.name for row, o in self.occupants.items()}
        return [
            {
                "time": int(r["arrival_ns"]) * 1e-9,
                "receiver": name.get(int(r["receiver"]), ""),
                "source": name.get(int(r["source"]), ""),
                "kind": SignalKind(int(r["kind"])).name.lower(),
                "distance": float(r["distance"]),
            }
            for r in receptions[receptions["outcome"] == Outcome.HEARD]
        ]

    def plot(self) -> Figure:
        """Plot the tracks from above, and the depth over time (needs matplotlib). Raises InvalidArgument if no tracks
        were recorded.
        """
        check_installed("matplotlib")
        from matplotlib.figure import Figure

        if not any(there for _, there, _ in self.tracks):
            raise InvalidArgument("no tracks recorded yet; record them with run(seconds, every=0.5)")
        figure = Figure(figsize=(9, 4.5), layout="constrained")
        chart, depths = figure.subplots(1, 2)
        names = dict.fromkeys(n for _, there, _ in self.tracks for n in there)
        for name in names:
            at = [(t, table["p_WB_W"][there.index(name)]) for t, there, table in self.tracks if name in there]
            t, p = np.array([t for t, _ in at]), np.array([p for _, p in at])
            (line,) = chart.plot(p[:, 1], p[:, 0], label=name if len(names) <= 12 else None)
            depths.plot(t, p[:, 2], color=line.get_color())
        # keeps the chart as wide as it is high, also for a straight track
        chart.set_aspect("equal", adjustable="datalim")
        chart.set(xlabel="east (m)", ylabel="north (m)")
        depths.set(xlabel="time (s)", ylabel="depth (m)")
        depths.invert_yaxis()
        if len(names) <= 12:
            chart.legend(fontsize=8)
        return figure


def _load_configuration(configuration: str | Path | LoadedConfig, folder: str | Path | None) -> LoadedConfig:
    if isinstance(configuration, str) and configuration.lstrip().startswith("<"):
        return load_text(configuration, folder)
    if folder is not None:
        raise InvalidArgument(
            "`folder` is valid only for a configuration given as text; a configuration file uses its own folder"
        )
    return configuration if isinstance(configuration, LoadedConfig) else load(configuration)
