"""Runs of a boat in closed form, real and simulated, whose differences are planted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.log import Log, Series
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import RECEPTION, SENT, STATE, Outcome

Array = Any
CONFIG = """<wavesim seed="{seed}"><world latitude="{latitude} deg" longitude="10 deg"/><fleet>
<vehicle name="boat" model="lauv" position="0 0 5 m"><sensors inherit="no"><ahrs rate="10 Hz"/><pressure rate="5 Hz"/></sensors></vehicle>
<vehicle name="beacon" model="lauv" position="0 0 20 m"><sensors inherit="no"/></vehicle></fleet></wavesim>"""
WAVES = np.array([[0.9, 0.021, 0.3], [0.5, 0.053, 1.1], [0.3, 0.11, 2.0], [0.15, 0.19, 4.0]])  # rad, Hz, rad


def correlated(rng: np.random.Generator, count: int, sigma: float, steps: float) -> Array:
    """A series with this standard deviation and this correlation time in steps."""
    from scipy.signal import lfilter

    a = np.exp(-1.0 / steps)
    white = rng.standard_normal(count) * sigma * np.sqrt(1.0 - a * a)
    white[0] = sigma * rng.standard_normal()
    return lfilter([1.0], [1.0, -a], white)


def heading(t: Array) -> Array:
    return sum(a * np.sin(2.0 * np.pi * f * t + p) for a, f, p in WAVES)


def speed(t: Array) -> Array:
    return 1.0 + 0.3 * np.sin(2.0 * np.pi * 0.037 * t + 0.5)


def way(t: Array) -> Array:
    """Positions (T, 2) on the course, by fine quadrature."""
    fine = np.arange(t[0] - 1e-9, t[-1] + 0.02, 0.01)
    v = speed(fine)[:, None] * np.stack([np.cos(heading(fine)), np.sin(heading(fine))], axis=1)
    p = np.concatenate([np.zeros((1, 2)), np.cumsum(0.5 * (v[1:] + v[:-1]) * 0.01, axis=0)])
    return np.stack([np.interp(t, fine, p[:, k]) for k in (0, 1)], axis=1)


def table(kind: str, t: Array, **values: Array) -> Series:
    r = np.zeros(len(t), SENSORS[kind].visible.dtype)
    r["valid"], r["sequence"], r["time_ns"] = 1, np.arange(1, len(t) + 1), np.round(t * 1e9)
    for name, x in values.items():
        r[name] = x
    return Series(r["time_ns"].astype(np.int64), r, kind)


def boat(
    seed: int,
    seconds: float = 120.0,
    *,
    clock: float = 0.0,
    drift: float = 0.3,
    noise: float = 1.0,
    bias: Any = (0.0, 0.0, 0.0),
    latitude: float = 59.0,
) -> Log:
    """A run on the common course. Its clock is behind by ``clock`` s; ``drift`` is the standard deviation in m of the
    position about the course, correlated over 3 s; ``noise`` multiplies that of the instruments.
    """
    rng = np.random.default_rng(seed)
    own = np.arange(0.0, seconds, 0.1)
    t = own + clock
    p = np.concatenate([way(t), np.full((len(t), 1), 5.0)], axis=1) + bias
    p += np.stack([correlated(rng, len(t), drift, 30.0) for _ in range(3)], axis=1)
    r = np.zeros(len(t), STATE.visible.dtype)
    r["p_WB_W"], r["q_WB"] = p, frames.quaternion(np.zeros(len(t)), np.zeros(len(t)), heading(t))
    r["v_WB_B"][:, 0] = speed(t)
    r["w_WB_B"][:, 2] = np.gradient(heading(t), t)
    made = Log(
        Path(f"seed-{seed}.mcap"), {"configuration": CONFIG.format(seed=seed, latitude=latitude), "seed": str(seed)}
    )
    made.complete, made.content_hash = True, str(seed)
    made.json["/bodies"] = [
        (0, {"row": k, "name": name, "model": "lauv", "type": "underwater", "present": True})
        for k, name in enumerate(("boat", "beacon"))
    ]
    few = own[::2]
    rate = r["w_WB_B"][:, 2] + noise * 0.01 * rng.standard_normal(len(t))
    made.series["/state/boat"] = Series(np.round(own * 1e9).astype(np.int64), r, "state")
    made.series["/sensor/boat/ahrs"] = table(
        "ahrs", own, heading=heading(t), rates=np.stack([0 * rate, 0 * rate, rate], axis=1)
    )
    made.series["/sensor/boat/pressure"] = table(
        "pressure", few, pressure=15.0 + noise * 0.02 * rng.standard_normal(len(few))
    )
    made.end_ns = int(own[-1] * 1e9)
    return made


def with_sound(
    log: Log, seed: int, *, bias: float = 0.0, sigma: float = 0.2, half: float = 300.0, seconds: float = 120.0
) -> Log:
    """The run with pulses of the boat every 0.2 s that the beacon receives at distances up to 500 m, with a logistic
    share of detections and normal range errors.
    """
    rng = np.random.default_rng(1000 + seed)
    t = np.arange(0.5, seconds - 1.0, 0.2)
    distance = rng.uniform(20.0, 500.0, len(t))
    heard = rng.random(len(t)) < 1.0 / (1.0 + np.exp((distance - half) / 40.0))
    sent = np.zeros(len(t), SENT.visible.dtype)
    sent["id"], sent["emission_ns"] = np.arange(1, len(t) + 1), np.round(t * 1e9)
    r = np.zeros(len(t), RECEPTION.visible.dtype)
    r["id"], r["emission_ns"], r["receiver"] = sent["id"], sent["emission_ns"], 1
    r["arrival_ns"] = r["emission_ns"] + np.round(distance / 1500.0 * 1e9).astype(np.int64)
    r["distance"], r["measured"] = distance, np.nan
    r["one_way"] = distance + bias + sigma * rng.standard_normal(len(t))
    r["outcome"] = np.where(heard, int(Outcome.HEARD), int(Outcome.BELOW_THRESHOLD))
    log.series["/acoustics/sent"] = Series(sent["emission_ns"].astype(np.int64), sent, "sent")
    log.series["/acoustics/reception"] = Series(r["arrival_ns"].astype(np.int64), r, "reception")
    return log
