"""Target list of a radar: echoes of bodies above the water at each scan, and tracks that follow them.

An echo is associated with a track only by its range and bearing. The tracks of ships that pass close to each other can
therefore be swapped, as at sea.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_emulators.base import Batch
from wavesim_emulators.ranging import RaycastEmulator
from wavesim_kernels import randomness
from wavesim_sdk.arrays import Floats, Ints, Record
from wavesim_sdk.elementary import atan2, hypot, sin_cos
from wavesim_sdk.sensors import RADAR_TARGETS

#: distance in m to the radio horizon, divided by the square root of the antenna height in m (4/3 earth radius)
HORIZON = 4110.0
#: half width of the gate that associates an echo with a track, in standard deviations; an allowance for a turn is added
GATE_SIGMAS = 6.0
TARGET_ACCELERATION = 1.0  #: maximum acceleration of a target, m/s2
MIN_HITS, SCANS = 5, 10  #: a track is kept while at least MIN_HITS of the last SCANS scans contained an echo of it
CONFIRM_SCANS = 3  #: number of scans before a track is confirmed
MANOEUVRE_MEMORY, MANOEUVRE_SIGMAS = (
    10.0,
    3.5,
    #: if an echo deviates from the prediction by MANOEUVRE_SIGMAS standard deviations, the track keeps only
    #: MANOEUVRE_MEMORY scans
)
MAX_TRACK_NUMBER = 99


def horizon(height: Any, other: Any) -> Any:
    """Return the distance in m to the radar horizon, for an antenna and a target at these heights in m above the water."""
    return HORIZON * (np.sqrt(np.maximum(height, 0.0)) + np.sqrt(np.maximum(other, 0.0)))


def gains(scans: float, memory: int) -> tuple[float, float]:
    """Return the gains (alpha, beta) of a straight-line fit with fading memory to the last ``scans`` scans. At most
    ``memory`` scans are used.
    """
    k = min(scans, float(memory))
    return 2.0 * (2.0 * k - 1.0) / (k * (k + 1.0)), 6.0 / (k * (k + 1.0))


class RadarEmulator(RaycastEmulator):
    """Emulator of a radar: echoes with errors in range and bearing. Land, obstacles, hulls and the horizon hide
    whatever is behind them. Tracks are relative to the ground; own ship's position has no errors.
    """

    sensor = "radar"

    def measure(self, now: Batch, out: Record) -> None:
        p = now.parameters
        targets = self.bodies.p.copy()
        top = targets[:, 2] - self.bodies.half[:, 2]  # of the upright hull
        targets[:, 2] = 0.5 * (np.minimum(targets[:, 2], 0.0) + top)
        for k in range(len(now)):
            antenna = now.p_WS_W[k]
            away = targets - antenna
            distance = np.sqrt((away * away).sum(axis=1))
            seen = (self.bodies.rows != now.rows[k]) & (distance > p.minimum) & (distance < p.maximum)
            seen &= (top < 0.0) & (distance < horizon(-antenna[2], -top))
            there = np.flatnonzero(seen)
            there = there[self._in_sight(antenna, away[there], distance[there], there, int(now.rows[k]))]
            echoes = self._detect(now, k, away[there], there)
            self._update_tracks(now, out, k, echoes)

    def _in_sight(self, antenna: Floats, away: Floats, distance: Floats, there: Ints, own: int) -> Any:
        """Return which bodies are visible from the antenna."""
        if not len(there):
            return np.zeros(0, bool)
        along = (away / distance[:, None])[None]
        start = np.broadcast_to(antenna, (1, 1, 3))
        ranges = self.scene.cast(start, along, float(distance.max()), surface=False)
        clear = ranges[0] > distance
        reach = np.broadcast_to(distance, (1, len(there))) * 1.0
        _, hit = self.bodies.cast(start, along, reach, float(distance.max()), np.array([own]))
        return clear & ((hit[0] < 0) | (hit[0] == there))

    def _detect(self, now: Batch, k: int, away: Floats, there: Ints) -> list[tuple[float, float]]:
        """Return the positions (north, east) of the echoes relative to the antenna in the scan of instrument k."""
        p, noise = now.parameters, now.noise
        key = noise.keys[k : k + 1]
        found = []
        for j, rel in zip(self.bodies.rows[there].tolist(), away, strict=True):
            draws = noise.for_purpose("echo").keys[k : k + 1]
            if randomness.uniform(noise.for_purpose("detection").keys[k : k + 1], now.tick, j)[0] > p.detection:
                continue
            error = [float(randomness.normal(draws, now.tick, 2 * j + i)[0]) * float(noise.scale[k]) for i in (0, 1)]
            r = float(hypot(rel[0], rel[1])) + p.range_sigma * error[0]
            s, c = sin_cos(float(atan2(rel[1], rel[0])) + p.bearing_sigma * error[1])
            found.append((r * c, r * s))
        if p.false_echoes > 0.0:
            chance = [float(randomness.uniform(key, now.tick, 1000 + i)[0]) for i in range(3 * 16)]
            for i in range(16):  # sixteen draws, each with one sixteenth of the expected number
                if chance[3 * i] < p.false_echoes / 16.0:
                    r = p.minimum + (0.5 * p.maximum - p.minimum) * math.sqrt(chance[3 * i + 1])
                    s, c = sin_cos(2.0 * math.pi * chance[3 * i + 2])
                    found.append((r * c, r * s))
        return found

    def _update_tracks(self, now: Batch, out: Record, k: int, echoes: list[tuple[float, float]]) -> None:
        """Update the tracks of instrument k with this scan."""
        p, row, since = now.parameters, out[k], float(now.since[k])
        if now.fresh[k]:
            row["scans"], row["next"] = 0.0, 1.0
        place = now.p_WS_W[k]
        live = [i for i in range(RADAR_TARGETS) if row["scans"][i] > 0.0]
        for i in live:
            row["north"][i] += row["v_north"][i] * since
            row["east"][i] += row["v_east"][i] * since
        places = [(place[0] + n, place[1] + e) for n, e in echoes]
        pairs = []
        for i in live:
            for j, (n, e) in enumerate(places):
                dn, de = n - row["north"][i], e - row["east"][i]
                r = math.sqrt(echoes[j][0] * echoes[j][0] + echoes[j][1] * echoes[j][1])
                # a young track has an uncertain speed: accept a fast echo
                free = (
                    15.0 * since if row["scans"][i] < CONFIRM_SCANS else 0.0
                ) + 0.5 * TARGET_ACCELERATION * since * since
                gate = GATE_SIGMAS * (p.range_sigma + p.bearing_sigma * r) + free
                square = dn * dn + de * de
                if square < gate * gate:
                    pairs.append((square, i, j))
        taken: dict[int, int] = {}
        for _, i, j in sorted(pairs):
            if i not in taken and j not in taken.values():
                taken[i] = j
        for i in live:
            self._update_track(row, i, places[taken[i]] if i in taken else None, place, since, p)
        for j, at in enumerate(places):
            if j not in taken.values():
                self._start_track(row, at, now.time)
        self._write_tracks(row, place, now.time, p.trend)

    def _update_track(
        self, row: Any, i: int, at: tuple[float, float] | None, place: Floats, since: float, p: Any
    ) -> None:
        row["missed"][i] = (int(row["missed"][i]) << 1 | (at is None)) & (1 << SCANS) - 1
        if at is None:
            row["age"][i] += since
            lost = int(row["missed"][i]).bit_count() > SCANS - MIN_HITS
            if lost or (row["scans"][i] < CONFIRM_SCANS and int(row["missed"][i]) & 3 == 3):
                row["scans"][i] = 0.0
            return
        row["age"][i] = 0.0
        errors = at[0] - row["north"][i], at[1] - row["east"][i]
        off = math.sqrt(errors[0] * errors[0] + errors[1] * errors[1])
        scans = min(float(row["scans"][i]), float(p.memory))
        if scans > MANOEUVRE_MEMORY and off > MANOEUVRE_SIGMAS * (
            p.range_sigma + p.bearing_sigma * float(hypot(at[0] - place[0], at[1] - place[1]))
        ):
            scans = MANOEUVRE_MEMORY  # the target turns
        row["scans"][i] = scans + 1.0
        alpha, beta = gains(scans + 1.0, p.memory)
        for axis, speed, error in (("north", "v_north", errors[0]), ("east", "v_east", errors[1])):
            row[axis][i] += alpha * error
            if since > 0.0:
                row[speed][i] += beta * error / since

    def _start_track(self, row: Any, at: tuple[float, float], time: float) -> None:
        """Start a new track if there is room for it."""
        free = [i for i in range(RADAR_TARGETS) if row["scans"][i] == 0.0]
        if not free:
            return
        used = {int(row["target"][i]) for i in range(RADAR_TARGETS) if row["scans"][i] > 0.0}
        number = int(row["next"])
        while number in used:
            number = number % MAX_TRACK_NUMBER + 1
        i = free[0]
        row["next"], row["target"][i] = number % MAX_TRACK_NUMBER + 1, number
        row["north"][i], row["east"][i] = at
        row["v_north"][i] = row["v_east"][i] = row["age"][i] = row["missed"][i] = 0.0
        row["scans"][i], row["since"][i] = 1.0, time

    def _write_tracks(self, row: Any, place: Floats, time: float, trend: float) -> None:
        for i in range(RADAR_TARGETS):
            if row["scans"][i] == 0.0:
                for name in ("target", "range", "bearing", "course", "speed", "age", "status"):
                    row[name][i] = math.nan
                continue
            n, e = row["north"][i] - place[0], row["east"][i] - place[1]
            row["range"][i], row["bearing"][i] = hypot(n, e), np.mod(atan2(e, n), 2.0 * math.pi)
            row["status"][i] = 2.0 if row["scans"][i] >= CONFIRM_SCANS else 1.0
            known = time - row["since"][i] >= trend and row["scans"][i] >= CONFIRM_SCANS
            vn, ve = row["v_north"][i], row["v_east"][i]
            row["speed"][i] = hypot(vn, ve) if known else math.nan
            row["course"][i] = np.mod(atan2(ve, vn), 2.0 * math.pi) if known else math.nan
