"""A voyage in closed form, and the output of an ideal inertial unit on it, as the truth for navigation tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.log import Log, Series
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import STATE
from wavesim_studies.navigation import measurements
from wavesim_studies.navigation.measurement_models import NOISE, Z
from wavesim_world.instruments import HEADING_SIGMA, RATE_SIGMA, SPEED_SIGMA, TILT_SIGMA

Array = Any
GRAVITY = 9.81
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def _smooth(x: Array) -> tuple[Array, Array]:
    """A step from 0 to 1 with three continuous derivatives, and its slope."""
    x = np.clip(x, 0.0, 1.0)
    return x**4 * (35 - 84 * x + 70 * x**2 - 20 * x**3), 140 * x**3 * (1 - x) ** 3


@dataclass(frozen=True)
class Voyage:
    """A lawn mower's way: legs of ``leg`` s, half turns of ``turn`` s to alternate sides; it rolls, pitches and heaves a little."""

    duration: float
    rate: float
    speed: float = 1.5
    leg: float = 300.0
    turn: float = 40.0
    sway: float = 0.03  #: rad and m/s, of roll, pitch and heave
    heading: float = 0.3

    def angles(self, t: Array) -> tuple[Array, Array]:
        """Roll, pitch, heading (T, 3) and their rates."""
        value, slope = np.full(t.shape, self.heading), np.zeros(t.shape)
        begin, side = self.leg, 1.0
        while begin < self.duration:
            s, ds = _smooth((t - begin) / self.turn)
            value, slope = value + side * np.pi * s, slope + side * np.pi * ds / self.turn
            begin, side = begin + self.turn + self.leg, -side
        a, w = self.sway, np.array([0.7, 0.45])
        roll, pitch = a * np.sin(w[0] * t), 0.7 * a * np.sin(w[1] * t + 1.0)
        rates = a * w[0] * np.cos(w[0] * t), 0.7 * a * w[1] * np.cos(w[1] * t + 1.0)
        return np.stack([roll, pitch, value], -1), np.stack([*rates, slope], -1)

    def motion(self, t: Array) -> tuple[Array, Array, Array, Array]:
        """Velocity, acceleration (W), attitude q_WB, rates (B)."""
        angle, rate = self.angles(t)
        roll, pitch, heading = angle.T
        c, s = np.cos(heading), np.sin(heading)
        u, du = self.speed + 0.2 * np.sin(0.02 * t), 0.004 * np.cos(0.02 * t)
        v = np.stack([u * c, u * s, self.sway * np.sin(0.3 * t)], -1)
        a = np.stack([du * c - u * s * rate[:, 2], du * s + u * c * rate[:, 2], 0.3 * self.sway * np.cos(0.3 * t)], -1)
        w = np.stack(
            [
                rate[:, 0] - np.sin(pitch) * rate[:, 2],
                np.cos(roll) * rate[:, 1] + np.sin(roll) * np.cos(pitch) * rate[:, 2],
                -np.sin(roll) * rate[:, 1] + np.cos(roll) * np.cos(pitch) * rate[:, 2],
            ],
            -1,
        )
        return v, a, frames.quaternion(*angle.T), w

    def __post_init__(self) -> None:
        t = np.arange(round(self.duration * self.rate) + 1) / self.rate
        h = 1.0 / self.rate
        fine = (t[:-1, None] + 0.5 * h * (1.0 + _NODES)).ravel()
        v, a, q, w = self.motion(fine)
        f = np.einsum("tji,tj->ti", frames.rotation(q), a - [0.0, 0.0, GRAVITY])

        def mean(values: Array) -> Array:
            return np.einsum("tkc,k->tc", values.reshape(len(t) - 1, len(_NODES), 3), 0.5 * _WEIGHTS)

        p = np.concatenate([np.zeros((1, 3)), np.cumsum(mean(v) * h, axis=0)]) + [0.0, 0.0, 20.0]
        v, _, q, w_now = self.motion(t)
        for name, value in {"t": t, "p": p, "v": v, "q": q, "w": w_now, "R": frames.rotation(q)}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "imu", np.concatenate([t[1:, None], mean(f), mean(w)], axis=1))

    t: Any = None
    p: Any = None
    v: Any = None
    q: Any = None
    w: Any = None
    R: Any = None
    imu: Any = None

    def every(self, seconds: float) -> Array:
        """Indices of the times at multiples of this, but 0."""
        k = round(seconds * self.rate)
        return np.arange(k, len(self.t), k)

    def place(self, k: Array, lever: Any) -> Array:
        """(K, 3) of a point of the body, W."""
        return self.p[k] + self.R[k] @ np.asarray(lever, float)

    def along(self, k: Array, lever: Any) -> Array:
        """(K, 3) velocity of a point of the body over ground, B."""
        return np.einsum("kji,kj->ki", self.R[k], self.v[k]) + np.cross(self.w[k], lever)

    @property
    def headings(self) -> Array:
        return self.angles(self.t)[0][:, 2]

    @property
    def way(self) -> float:
        """Length, m."""
        return float(np.linalg.norm(np.diff(self.p, axis=0), axis=1).sum())


def velocities(
    o: Voyage, seconds: float, sigma: float, lever: Any = (0.0, 0.0, 0.0), sensor: int = 1, **more: Any
) -> Array:
    """Exact rows of a Doppler log."""
    k = o.every(seconds)
    return np.array(
        [
            measurements.velocity(o.t[i], v, sigma, lever, sensor=sensor, **more)
            for i, v in zip(k, o.along(k, lever), strict=True)
        ]
    )


def depths(o: Voyage, seconds: float, sigma: float, sensor: int = 2) -> Array:
    return np.array([measurements.depth(o.t[i], o.p[i, 2], sigma, sensor=sensor) for i in o.every(seconds)])


def compass(o: Voyage, seconds: float, sigma: float, sensor: int = 3) -> Array:
    h = o.headings
    return np.array([measurements.angles(o.t[i], {"heading": h[i]}, sigma, sensor) for i in o.every(seconds)])


def noisy(rows: Array, rng: np.random.Generator) -> Array:
    """The rows with noise of the deviations that they state (uncorrelated)."""
    rows = rows.copy()
    sigma = np.sqrt(rows[:, NOISE : NOISE + 16 : 5])
    rows[:, Z : Z + 4] += sigma * rng.standard_normal(sigma.shape)
    return rows


def sampled(
    o: Voyage, rng: np.random.Generator, gyro: float, force: float, bias: Any = 0.0, force_bias: Any = 0.0
) -> Array:
    """The unit's samples with white noise (densities) and constant biases."""
    imu = o.imu.copy()
    root = np.sqrt(o.rate)
    imu[:, 1:4] += force_bias + force * root * rng.standard_normal((len(imu), 3))
    imu[:, 4:7] += bias + gyro * root * rng.standard_normal((len(imu), 3))
    return imu


CONFIG = """<wavesim><fleet><vehicle name="auv" model="lauv" position="0 0 20 m"><sensors inherit="no">
<imu rate="{rate:g} Hz" attitude="0 0 90 deg" position="0.2 0 0.1 m" grade="tactical"/><dvl rate="2 Hz" position="-0.3 0 0 m"/>
<ahrs rate="{rate:g} Hz" noise="{noise:g}"/><speedlog rate="2 Hz" noise="{noise:g}"/></sensors></vehicle></fleet></wavesim>"""


def logged(o: Voyage, seed: int = 4, noise: float = 1.0) -> Log:
    """The voyage as a log of a vehicle whose inertial unit is mounted askew and ideal; the others have noise. ``noise``: what the
    configuration says of that of AHRS and speed log, where 1 is right."""
    n, rng = len(o.imu), np.random.default_rng(seed)
    mounted = frames.rotation(frames.quaternion(0.0, 0.0, np.pi / 2.0))

    def series(name: str, k: Array, **values: Array) -> Series:
        r = np.zeros(len(k), SENSORS[name].visible.dtype)
        r["valid"], r["sequence"] = 1, np.arange(1, len(k) + 1)
        r["time_ns"] = np.round(o.t[k] * 1e9)
        for field, v in values.items():
            r[field] = v
        return Series(r["time_ns"].astype(np.int64), r, name)

    every, some = np.arange(1, n + 1), o.every(0.5)
    truth = np.zeros(n + 1, STATE.visible.dtype)
    truth["q_WB"], truth["w_WB_B"] = o.q, o.w
    truth["p_WB_W"] = o.p - o.R @ np.array([0.2, 0.0, 0.1])  # the voyage is the inertial unit's
    truth["v_WB_B"] = o.along(np.arange(n + 1), (-0.2, 0.0, -0.1))
    sigma = np.array([TILT_SIGMA, TILT_SIGMA, HEADING_SIGMA])
    roll, pitch, heading = (o.angles(o.t[1:])[0] + sigma * rng.standard_normal((n, 3))).T
    made = Log(Path("made.mcap"), metadata={"configuration": CONFIG.format(rate=o.rate, noise=noise)})
    made.series = {
        "/state/auv": Series(np.round(o.t * 1e9).astype(np.int64), truth, "state"),
        "/sensor/auv/imu": series("imu", every, force=o.imu[:, 1:4] @ mounted, rates=o.imu[:, 4:7] @ mounted),
        "/sensor/auv/dvl": series(
            "dvl", some, bottom=o.along(some, (-0.5, 0.0, -0.1)) + 0.004 * rng.standard_normal((len(some), 3))
        ),
        "/sensor/auv/ahrs": series(
            "ahrs",
            every,
            roll=roll,
            pitch=pitch,
            heading=heading,
            rates=o.w[1:] + RATE_SIGMA * rng.standard_normal((n, 3)),
        ),
        "/sensor/auv/speedlog": series(
            "speedlog", some, v_FB_B=truth["v_WB_B"][some] + SPEED_SIGMA * rng.standard_normal((len(some), 3))
        ),
    }
    made.json["/bodies"] = [(0, {"row": 0, "name": "auv", "model": "lauv", "present": True})]
    return made
