"""A trial of drifting receivers and acoustic tags with known truth, made with NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavesim_studies.field_trials.clock_solution import Survey
from wavesim_studies.field_trials.detection_files import DetectionTrial

FIXED, TOWED, RECEIVERS, KEEPER = (501, 502, 503), 700, 19, 4


@dataclass(frozen=True)
class Twin:
    trial: DetectionTrial
    survey: Survey
    positions: np.ndarray
    sound_speed: float
    clocks: np.ndarray  #: (N, 3): offset in s at time 0, drift, change of the drift in 1/s
    towed: np.ndarray  #: time, east, north of each ping of the towed tag
    tags: np.ndarray  #: positions of the fixed tags (3, 3)


def reading(clock: np.ndarray, time: np.ndarray) -> np.ndarray:
    """What a clock shows at a true time."""
    return time + clock[..., 0] + clock[..., 1] * time + clock[..., 2] * time * time


def twin(
    seed: int,
    span: float = 60_000.0,
    curvature: float = 1e-12,
    late: float = 0.03,
    noise: float = 0.35e-3,
    held_error: float = 0.0,
) -> Twin:
    """Nineteen receivers over 240 x 290 m; half of them are surveyed to ``held_error`` in m, the others to 2 m."""
    rng = np.random.default_rng(seed)
    grid = np.array([(60.0 * i, 70.0 * k) for i in range(5) for k in range(4)])[:RECEIVERS]
    positions = np.column_stack([grid + rng.uniform(-15.0, 15.0, grid.shape), rng.uniform(0.7, 2.0, RECEIVERS)])
    held = np.arange(RECEIVERS) % 2 == 0
    homes = dict(zip(FIXED, (KEEPER, 9, 13), strict=True))
    surveyed = positions.copy()
    surveyed[~held, :2] += rng.normal(0.0, 2.0, (int((~held).sum()), 2))
    surveyed[held, :2] += np.random.default_rng([seed, 1]).normal(0.0, held_error, (int(held.sum()), 2))
    clocks = np.column_stack(
        [
            rng.uniform(-100.0, 100.0, RECEIVERS),
            rng.uniform(-18e-6, 18e-6, RECEIVERS),
            rng.uniform(-curvature, curvature, RECEIVERS),
        ]
    )
    clocks[KEEPER] = 0.0
    speed, found = float(rng.uniform(1490.0, 1560.0)), []
    own = np.random.default_rng([seed, 2])
    tags = {}
    for fixed, n in homes.items():  # a fixed tag is 1 to 3 m from the receiver on its mooring
        bearing, away = own.uniform(0.0, 2.0 * np.pi), own.uniform(1.0, 3.0)
        tags[fixed] = positions[n] + (away * np.sin(bearing), away * np.cos(bearing), 0.0)
    pings = [
        (tag, t, *tags[tag]) for tag, n in homes.items() for t in np.cumsum(rng.uniform(400, 600, int(span / 500)))
    ]
    times = 20_000.0 + np.cumsum(rng.uniform(20.0, 40.0, 150))
    angle = times / 400.0
    towed = np.column_stack([times, 120.0 + 140.0 * np.cos(angle), 105.0 + 135.0 * np.sin(2.0 * angle)])
    pings += [(TOWED, t, x, y, 1.0) for t, x, y in towed]
    for tag, time, x, y, z in pings:
        distance = np.sqrt(((positions - (x, y, z)) ** 2).sum(axis=1))
        heard = rng.uniform(size=RECEIVERS) < 0.97 / (1.0 + np.exp((distance - 215.0) / 30.0))
        error = rng.normal(0.0, noise, RECEIVERS) + (rng.uniform(size=RECEIVERS) < late) * rng.exponential(
            2e-3, RECEIVERS
        )
        shown = reading(clocks, time + distance / speed + error)
        found += [(n, tag, np.round(1e3 * shown[n]) / 1e3) for n in np.flatnonzero(heard)]
    found.sort(key=lambda row: row[2])
    moored = np.zeros(RECEIVERS, np.int64)
    for tag, n in homes.items():
        moored[n] = tag
    receiver, tag, local = (np.array(column) for column in zip(*found, strict=True))
    gps = np.column_stack([times, towed[:, 1:] + rng.normal(0.0, 2.0, (len(times), 2))])
    names = tuple(f"r{n + 1:02d}" for n in range(RECEIVERS))
    trial = DetectionTrial(
        names,
        tuple(range(1001, 1001 + RECEIVERS)),
        surveyed,
        moored,
        receiver,
        tag,
        local,
        gps,
        (500_000.0, 2_700_000.0),
        1.5e9,
    )
    moored_tags = np.array([tags[fixed] for fixed in homes])
    return Twin(trial, Survey(KEEPER, held, held_deviation=held_error), positions, speed, clocks, towed, moored_tags)
