"""The sea off which the medium reflects sound, with its changes during a run."""

from __future__ import annotations

import math

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.moving_surface import SEA_PERIOD
from wavesim_world.ocean.surface import S_AMPLITUDE, S_WAVE_NUMBER


def with_sea(m: Medium, time: float, components: Floats, tide: Floats) -> Medium:
    """Return the medium with another sea from ``time`` (s) on. ``components`` has one row for each wave component of
    the sea; ``tide`` contains amplitude (m), period (s) and phase (rad).

    The medium forgets each earlier sea that ended before the emission of every signal in transit.
    """
    old, waves = m.sea_periods, m.sea_components
    if len(old) and np.array_equal(components, waves[old[-1].first :]):
        return m
    transit = m.signals.emission[m.signals.id > 0]
    oldest = min(float(transit.min()) if len(transit) else math.inf, time)
    ends = [*old.start[1:], time]
    kept = [waves[p.first : p.first + p.count] for p, end in zip(old, ends, strict=False) if end > oldest]
    seas = [*kept, np.asarray(components)]
    periods = np.zeros(len(seas), SEA_PERIOD.dtype).view(np.recarray)
    periods.start = [*old.start[len(old) - len(kept) :], time]
    periods.start[0] = -math.inf
    periods.count = [len(sea) for sea in seas]
    periods.first = np.cumsum(periods.count) - periods.count
    periods.deviation = [math.sqrt(0.5 * float((sea[:, S_AMPLITUDE] * sea[:, S_AMPLITUDE]).sum())) for sea in seas]
    periods.curvature = [_rare_curvature(sea) for sea in seas]
    m.tide[:] = tide
    w = m.water[0]
    w.crest = max(float(sea[:, S_AMPLITUDE].sum()) for sea in seas) + float(tide[0])
    w.moving = w.crest > 0.0
    most = max(len(sea) for sea in seas)
    return m._replace(sea_components=np.concatenate(seas), sea_periods=periods, wave_parts=np.zeros((2, most)))


def _rare_curvature(sea: Floats) -> float:
    """Return a curvature in 1/m that a sea rarely exceeds: the curvature if all crests met at one point, or three times
    the standard deviation of the curvature if that is smaller.
    """
    each = sea[:, S_AMPLITUDE] * sea[:, S_WAVE_NUMBER] * sea[:, S_WAVE_NUMBER]
    return min(float(each.sum()), 3.0 * math.sqrt(0.5 * float((each * each).sum())))
