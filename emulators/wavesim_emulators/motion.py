"""Motion sensors: attitude and heading, IMU, speed log, Doppler log, and the true motion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_emulators import motion_kernels, ray_kernels
from wavesim_emulators.base import Batch, CovarianceNoise, Emulator, Noise
from wavesim_emulators.ranging import BeamGeometry, RaycastEmulator
from wavesim_sdk import frames
from wavesim_sdk.algebra import dot, matvec, pseudo_inverse, vecmat
from wavesim_sdk.arrays import Floats, Record
from wavesim_sdk.elementary import cos, exp, sin
from wavesim_sdk.tables import SensorFault
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import AhrsConfig, SpeedLogConfig
from wavesim_world.config.sensors import DvlConfig as DvlParameters
from wavesim_world.config.sensors import ImuConfig as ImuParameters
from wavesim_world.instruments import HEADING_SIGMA, RATE_SIGMA, SPEED_SIGMA, TILT_SIGMA, dvl_beams


class AhrsEmulator(Emulator):
    """Emulator of an AHRS: roll, pitch, heading and angular rates, without bias. The white noise is 0.1 deg (roll,
    pitch), 0.3 deg (heading) and 0.02 deg/s (rates).
    """

    sensor = "ahrs"
    needs_all_bodies = False
    kernels = motion_kernels.AHRS_KERNELS

    def prepare(self, parameters: AhrsConfig) -> tuple[Floats | None, Floats | None]:
        """Return the Cholesky factors of the declared covariances, divided by the default standard deviations, because
        the kernel multiplies by them.
        """
        orientation = CovarianceNoise(parameters.orientation_covariance).factor
        rates = CovarianceNoise(parameters.angular_rate_covariance).factor
        own = np.array([TILT_SIGMA, TILT_SIGMA, HEADING_SIGMA])[:, None]
        return None if orientation is None else orientation / own, None if rates is None else rates / RATE_SIGMA

    def measure(self, now: Batch, out: Record) -> None:
        noise = now.noise.normals(6)
        for first, factor in zip((0, 3), now.prepared, strict=True):
            if factor is not None:
                noise[:, first : first + 3] = matvec(factor, noise[:, first : first + 3])
        motion_kernels.fill_ahrs(now.state_numbers, now.rows, noise, now.numbers(out))


class SpeedLogEmulator(Emulator):
    """Emulator of a speed log: velocity through the water in B, with white noise of 1 cm/s on each axis."""

    sensor = "speedlog"
    needs_all_bodies = False
    kernels = motion_kernels.SPEED_LOG_KERNELS

    def prepare(self, parameters: SpeedLogConfig) -> Floats | None:
        """Return the Cholesky factor of the declared covariance, divided by the default standard deviation, because the
        kernel multiplies by it.
        """
        factor = CovarianceNoise(parameters.velocity_covariance).factor
        return None if factor is None else factor / SPEED_SIGMA

    def measure(self, now: Batch, out: Record) -> None:
        noise = now.noise.normals(3)
        if now.prepared is not None:
            noise = matvec(now.prepared, noise)
        motion_kernels.fill_speed_log(now.state_numbers, now.rows, noise, now.numbers(out))


def _down_B(q_WB: Floats) -> Floats:
    """Return the unit vector that points down, in B (n, 3)."""
    return np.asarray(frames.rotation(q_WB)[:, 2, :])


EARTH_RATE = 7.292115e-5  #: angular rate of the earth, rad/s (WGS84)
GAUSS_MARKOV_PEAK = (
    #: maximum Allan deviation of a Gauss-Markov process relative to its standard deviation, at 1.89 correlation times
    0.617
)


class PreparedImu(NamedTuple):
    """Configuration of an IMU with the error values of its grade filled in, and the white noise of a sample."""

    parameters: ImuParameters
    force: CovarianceNoise
    rates: CovarianceNoise


class ImuEmulator(Emulator):
    """Emulator of an IMU: mean specific force and angular rate since the last value, at the sensor's position (lever
    arm included). The errors follow IEEE 952: white noise, biases, scale factors and misalignment. The quantisation
    remainder carries over to the next value.
    """

    sensor = "imu"
    needs_all_bodies = False

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        world = loaded.config.world
        self.gravity = world.gravity
        self.earth_rate_W = EARTH_RATE * np.array([cos(world.latitude), 0.0, -sin(world.latitude)])

    def prepare(self, parameters: ImuParameters) -> PreparedImu:
        p = parameters.resolved
        return PreparedImu(p, CovarianceNoise(p.acceleration_covariance), CovarianceNoise(p.angular_rate_covariance))

    def measure(self, now: Batch, out: Record) -> None:
        """Compute the mean specific force and angular rate over the interval, in frame S, which turns with the body: f
        = dv/dt + w x v - g.

        The last two terms are integrated with Simpson's rule. At 50 Hz, the error for a sensor on a lever arm of a body
        that spins at 6 rad/s is below 0.2 mg. If the body also moves across its spin axis, the error grows by 0.5 mg
        per m/s of this velocity.
        """
        p, state, mounting = now.prepared.parameters, now.state, now.mounting
        fresh = now.fresh
        dt = np.where(fresh, 1.0, now.since)[:, None]
        w0, w1 = mounting.to_sensor_frame(out["w_WB_B"]), mounting.to_sensor_frame(state["w_WB_B"])
        v0, v1 = out["v_WS_S"], mounting.to_sensor_frame(mounting.velocity_B(state["v_WB_B"], state["w_WB_B"]))
        q0, q1 = out["q_WB"], state["q_WB"]
        w, v = 0.5 * (w0 + w1), 0.5 * (v0 + v1)
        half = q0 + np.where((q0 * q1).sum(axis=1) < 0.0, -1.0, 1.0)[:, None] * q1
        half /= np.maximum(np.sqrt((half * half).sum(axis=1)), 1e-12)[:, None]
        turning = (np.cross(w0, v0) + 4.0 * np.cross(w, v) + np.cross(w1, v1)) / 6.0
        down = (_down_B(q0) + 4.0 * _down_B(half) + _down_B(q1)) / 6.0
        force = (v1 - v0) / dt + turning - self.gravity * mounting.to_sensor_frame(down)
        out["v_WS_S"], out["q_WB"], out["w_WB_B"] = v1, q1, state["w_WB_B"]
        if p.earth:
            earth = mounting.to_sensor_frame(vecmat(self.earth_rate_W, frames.rotation(half)))
            w, force = w + earth, force + 2.0 * np.cross(earth, v)

        force, w = self._apply_axis_errors(now, force, w)
        root = np.sqrt(dt)
        white, walk, first = now.noise.normals(6), now.noise.for_purpose("walk"), now.noise.for_purpose("turn-on")
        out["force_bias"] += p.accelerometer_walk * root * walk.normals(3)
        out["rates_bias"] += p.gyro_walk * root * walk.normals(3, 3)
        if fresh.any():
            out["force_bias"][fresh] = p.accelerometer_turn_on * first.normals(3)[fresh]
            out["rates_bias"][fresh] = p.gyro_turn_on * first.normals(3, 3)[fresh]
        force = force + out["force_bias"] + now.prepared.force.errors(white[:, :3], p.accelerometer_noise / root)
        w = w + out["rates_bias"] + now.prepared.rates.errors(white[:, 3:], p.gyro_noise / root)
        found = np.concatenate([force, w], axis=1)
        unstable = np.repeat([p.accelerometer_instability, p.gyro_instability], 3) / GAUSS_MARKOV_PEAK
        if unstable.any():
            keep = np.where(fresh, 0.0, exp(-now.since / p.instability_time))[:, None]
            new = now.noise.for_purpose("instability").normals(6)
            out["slow"] = keep * out["slow"] + np.sqrt(1.0 - keep * keep) * unstable * new
            found += out["slow"]
        step = np.repeat([p.accelerometer_step, p.gyro_step], 3)
        counts = step > 0.0
        if counts.any():
            whole = found * dt + out["rest"]
            quantized = np.where(counts, step * np.round(whole / np.where(counts, step, 1.0)), whole)
            out["rest"] = np.where(fresh[:, None], 0.0, whole - quantized)
            found = np.where(counts, quantized / dt, found)
        out["force"], out["rates"] = found[:, :3], found[:, 3:]
        out["valid"] = ~fresh

    @staticmethod
    def _apply_axis_errors(now: Batch, force: Floats, rates: Floats) -> tuple[Floats, Floats]:
        """Apply misalignment and scale factors to force and rate. These errors are constant over the life of an
        instrument.
        """
        p = now.prepared.parameters
        if not (p.misalignment or p.accelerometer_scale or p.gyro_scale):
            return force, rates
        drawn = Noise(now.noise.streams, 0, now.noise.scale, "axes").normals(18).reshape(-1, 2, 3, 3)
        diagonal = np.eye(3, dtype=bool)
        errors = [
            np.where(diagonal, scale, p.misalignment) * drawn[:, k]
            for k, scale in enumerate((p.accelerometer_scale, p.gyro_scale))
        ]
        return (
            force + matvec(errors[0], force),
            rates + matvec(errors[1], rates),
        )


class NavigationEmulator(Emulator):
    """Emulator of the navigation reference: true pose, velocity and acceleration of the body's origin."""

    sensor = "navigation"
    needs_all_bodies = False

    def measure(self, now: Batch, out: Record) -> None:
        state = now.state
        velocity = matvec(now.R_WB, state["v_WB_B"])
        out["a_WB_W"] = (velocity - out["v_before_W"]) / np.where(now.fresh, 1.0, now.since)[:, None]
        out["v_before_W"] = velocity
        out["p_WB_W"], out["euler"] = state["p_WB_W"], frames.euler(state["q_WB"])
        out["v_WB_W"], out["w_WB_B"] = velocity, state["w_WB_B"]
        out["valid"] = ~now.fresh


class DvlBeams(BeamGeometry):
    """Beams of a Doppler log in S. ``solutions`` contains, for each bit mask of beams with bottom lock, the matrix that
    converts beam velocities to a velocity; NaN = none.
    """

    def __init__(self, p: DvlParameters) -> None:
        super().__init__(*dvl_beams(p))
        along, count = self.directions, len(self.directions)
        self.solutions = np.full((1 << count, 3, count), np.nan)
        for mask in range(1 << count):
            used = [k for k in range(count) if mask >> k & 1]
            if len(used) >= 3 and (found := pseudo_inverse(along[used], 1e-3))[1] == 3:
                self.solutions[mask] = 0.0
                self.solutions[mask][:, used] = found[0]
        self.bottom, self.water = CovarianceNoise(p.bottom_covariance), CovarianceNoise(p.water_covariance)
        sigmas = p.bottom_sigma, p.water_sigma
        given = self.bottom.factor, self.water.factor
        self.limits = np.array([p.minimum, *(s if f is None else 1.0 for s, f in zip(sigmas, given, strict=True))])

    def draw(self, normals: Floats) -> Floats:
        """Convert standard normal numbers (n, 2 beams) to the noise of the beams. If a covariance is declared, the
        noise of all beams is derived from a single velocity error with this covariance. A velocity computed from any
        three beams then has the same covariance.
        """
        count = len(self.directions)
        for first, noise in ((0, self.bottom), (count, self.water)):
            if noise.factor is not None:
                error = matvec(noise.factor, normals[:, first : first + 3])
                normals[:, first : first + count] = matvec(self.directions, error)
        return normals


class DvlEmulator(RaycastEmulator):
    """Emulator of a Doppler log with three or four beams: velocity over the bottom from at least three beams with lock,
    and velocity through the water.

    A beam measures the velocity relative to the surface that it hits. If it hits another body, the velocity is relative
    to that body.
    """

    sensor = "dvl"
    kernels = motion_kernels.DVL_KERNELS

    def prepare(self, parameters: DvlParameters) -> DvlBeams:
        return DvlBeams(parameters)

    def measure(self, now: Batch, out: Record) -> None:
        p, janus = now.parameters, now.prepared
        beams = len(janus.directions)
        rays = self.rays(now, janus)
        hit = self.cast(now, rays, p.maximum, surface=False)
        if hit is not None and (hit >= 0).any():
            ranges, along = rays[:, :, ray_kernels.RANGE], rays[:, :, 3:6]
            points = rays[:, :, :3] + np.where(hit >= 0, ranges, 0.0)[:, :, None] * along
            rays[:, :, ray_kernels.CLOSING] = dot(along, self.bodies.velocity(hit, points))
        is_lost = np.zeros((len(now), beams), bool)
        if p.beam_drop_out > 0.0:
            is_lost |= now.noise.uniforms(beams) < p.beam_drop_out
        if now.has_faults:
            is_lost |= (now.fault == SensorFault.UNLOCKED)[:, None]
        noise = janus.draw(now.noise.normals(2 * beams))
        motion_kernels.fill_dvl(
            now.poses, rays, janus.directions, is_lost, janus.solutions, janus.limits, noise, now.numbers(out)
        )
