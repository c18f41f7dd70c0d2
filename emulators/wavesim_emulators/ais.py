"""Emulator of AIS: the times at which stations report, and the reports that a receiver obtains."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from wavesim_emulators.base import Batch, Emulator
from wavesim_emulators.radar import horizon
from wavesim_kernels import randomness
from wavesim_sdk import ais
from wavesim_sdk.algebra import matvec
from wavesim_sdk.arrays import Floats, Record
from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.elementary import atan2, hypot
from wavesim_sdk.frames import euler, rotation
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.sensors import AIS_STATIONS
from wavesim_world.config import LoadedConfig
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.sensors import AisConfig as Declared

#: time in s without a report after which a station is removed; aids to navigation and anchored vessels report every 180
#: s
EXPIRY_S = 600.0
COLUMNS = (
    "mmsi",
    "latitude",
    "longitude",
    "sog",
    "cog",
    "heading",
    "turn",
    "age",
    "station",
    "kind",
    "status",
    "length",
    "width",
)


class AisStation(NamedTuple):
    """State of an AIS station at a tick."""

    body: int
    declared: Declared
    due: bool  #: whether the station reports at this tick


class AisEmulator(Emulator):
    """Emulator of AIS. Each station reports on its own clock at the intervals of its class and speed. Every station
    within antenna range receives the report completely or not at all. Slots and collisions are not modelled.
    """

    sensor = "ais"

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        w = loaded.config.world
        self.origin = Origin(w.latitude, w.longitude)
        self._declared = functools.cache(self._find)

    def _find(self, body: bytes, model: bytes, name: bytes) -> Declared | None:
        """Return the configuration of an AIS instrument."""
        suite = self.loaded.suite_by_name(body.decode(), model.decode())
        found = next((i.parameters for i in suite if i.type == "ais" and i.name == name.decode()), None)
        return found if isinstance(found, Declared) else None

    def begin(self, view: FleetSnapshot, weather: object) -> None:
        self._view = view
        self._stations: dict[int, list[AisStation]] = {}  # by period

    def stations(self, period: int) -> list[AisStation]:
        """Return all AIS stations. The state of each station shows whether it was due to report within the last
        ``period`` ticks.
        """
        if period not in self._stations:
            # by MMSI, because the rows of bodies depend on the order in which their clients joined
            self._stations[period] = sorted(self._find_stations(period), key=lambda s: s.declared.mmsi)
        return self._stations[period]

    def _find_stations(self, period: int) -> Iterator[AisStation]:
        view = self._view
        fitted = view.tables["instruments"]
        for entry in fitted[(fitted["body"] >= 0) & (fitted["type"] == b"ais")]:
            body = int(entry["body"])
            who = view.identity[body]
            declared = self._declared(bytes(who["name"]), bytes(who["model"]), bytes(entry["name"]))
            if who["present"] == 1 and declared is not None:
                yield AisStation(body, declared, self._due(view.state[body], declared, period))

    def _due(self, state: Record, declared: Declared, period: int) -> bool:
        """Return whether the station's clock has passed a multiple of the reporting interval since the last value of
        the instrument. The phase of the clock is derived from the MMSI of the station.
        """
        u, v, _ = state["v_WB_B"].tolist()
        turning = abs(float(state["w_WB_B"][2])) >= declared.turning
        every = ais.reporting_interval(
            ais.STATION_CLASSES[declared.station], math.sqrt(u * u + v * v), turning, declared.status
        )
        if every == 0.0:
            return False
        every_ns = round(every * 1e9)
        now = self._view.time_ns + declared.mmsi * 7_919_000_000 % every_ns
        step_ns = round(self.loaded.config.time.step * 1e9)
        return self._view.tick == 0 or now // every_ns > (now - period * step_ns) // every_ns

    def _report(self, s: AisStation) -> tuple[Floats, ais.AisReport]:
        """Return the antenna position in W and the current data of the station, both without errors."""
        who, state, declared = self._view.identity[s.body], self._view.state[s.body], s.declared
        R_WB = rotation(state["q_WB"])
        velocity = matvec(R_WB, state["v_WB_B"])
        length, width = shape_of(self.loaded.model(who["model"].decode())).size[:2]
        return state["p_WB_W"] + matvec(R_WB, np.asarray(declared.position)), ais.AisReport(
            declared.mmsi,
            ais.STATION_CLASSES[declared.station],
            sog=float(hypot(velocity[0], velocity[1])),
            cog=float(atan2(velocity[1], velocity[0])) % (2.0 * math.pi),
            heading=float(euler(state["q_WB"])[2]) % (2.0 * math.pi),
            turn=float(state["w_WB_B"][2]),
            time=self._view.time_ns * 1e-9,
            status=declared.status,
            name=declared.called or who["name"].decode(),
            ship_type=declared.kind,
            length=float(length),
            width=float(width),
        )

    def measure(self, now: Batch, out: Record) -> None:
        for name in (*COLUMNS, "called"):
            out[name][now.fresh] = math.nan
        forgotten = ~(now.time - out["reported"] <= EXPIRY_S)
        forgotten[:, 0] = False
        out["mmsi"][forgotten] = math.nan
        own = {int(row): k for k, row in enumerate(now.rows)}
        for s in self.stations(now.period):
            k = own.get(s.body)
            mine = k is not None and (s.due or now.fresh[k])
            if not (mine or s.due):
                continue
            place, report = self._report(s)
            if k is not None and mine:
                self._write(now, k, out[k], 0, place, report)
            for i in range(len(now)) if s.due else ():
                if i != k and self._received(now, i, place, report.mmsi):
                    self._write(now, i, out[i], self._place(out[i], report.mmsi), place, report)
        out["age"] = now.time - out["reported"]
        absent = np.isnan(out["mmsi"])
        for name in COLUMNS:
            out[name][absent] = math.nan
        out["called"].reshape(-1, AIS_STATIONS, 3)[absent] = math.nan

    def _received(self, now: Batch, k: int, place: Floats, mmsi: int) -> bool:
        own, p = now.p_WS_W[k], now.parameters
        away = place - own
        distance = math.sqrt(float((away * away).sum()))
        if place[2] > 0.0 or distance > min(p.maximum, float(horizon(-own[2], -place[2]))):
            return False
        return not p.loss or bool(
            randomness.uniform(now.noise.for_purpose("loss").keys[k : k + 1], now.tick, mmsi)[0] >= p.loss
        )

    @staticmethod
    def _place(row: Any, mmsi: int) -> int:
        """Return the row for a report from a station: the row of the station's last report, otherwise a free row,
        otherwise the row of the oldest report.
        """
        numbers = row["mmsi"][1:]
        for k, number in enumerate(numbers.tolist()):
            if number == mmsi:
                return k + 1
        free = np.flatnonzero(np.isnan(numbers))
        return int(free[0] if len(free) else np.argmin(row["reported"][1:])) + 1

    def _write(self, now: Batch, k: int, row: Any, i: int, antenna: Floats, r: ais.AisReport) -> None:
        """Return a report, quantised as in its AIS message."""
        place, sigma = antenna, now.parameters.sigma * float(now.noise.scale[k])
        if sigma:
            key = now.noise.for_purpose("place").keys[k : k + 1]
            error = [float(randomness.normal(key, now.tick, 2 * r.mmsi + j)[0]) for j in (0, 1)]
            place = antenna + sigma * np.array([*error, 0.0])
        latitude, longitude, _ = self.origin.geodetic(place[None])
        moves = r.kind != ais.AID_TO_NAVIGATION
        columns = {
            "mmsi": float(r.mmsi),
            "latitude": ais.quantise(float(latitude[0]), ais.STEP_ANGLE),
            "longitude": ais.quantise(float(longitude[0]), ais.STEP_ANGLE),
            "sog": ais.quantise(r.sog or 0.0, ais.STEP_SPEED) if moves else math.nan,
            "cog": ais.quantise(r.cog or 0.0, ais.STEP_COURSE) % (2.0 * math.pi) if moves else math.nan,
            "heading": ais.quantise(r.heading or 0.0, ais.STEP_HEADING) % (2.0 * math.pi) if moves else math.nan,
            "turn": r.turn if r.kind == ais.CLASS_A else math.nan,
            "station": float(r.kind),
            "kind": float(r.ship_type),
            "status": float(r.status),
            "length": r.length,
            "width": r.width,
        }
        for name, value in columns.items():
            row[name][i] = value
        row["called"].reshape(-1, 3)[i] = ais.packed(r.name)
        row["reported"][i] = now.time
