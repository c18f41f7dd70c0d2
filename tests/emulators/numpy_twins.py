"""Readable twins of the compiled emulators: the same values from NumPy, formula by formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_emulators import motion, ranging, ray_kernels, water
from wavesim_emulators.base import Batch
from wavesim_sdk import frames
from wavesim_sdk.algebra import dot, matmul, matvec, pseudo_inverse, vecmat
from wavesim_sdk.sensors import DVL_BEAMS
from wavesim_sdk.tables import SensorFault
from wavesim_world.instruments import (
    CONDUCTIVITY_SIGMA,
    ECHO_SIGMA,
    HEADING_SIGMA,
    PRESSURE_SIGMA,
    RATE_SIGMA,
    SPEED_SIGMA,
    TEMPERATURE_SIGMA,
    TILT_SIGMA,
    dvl_beams,
)
from wavesim_world.ocean import seawater
from wavesim_world.ocean.bodies import BodyObstacles
from wavesim_world.ocean.water import depth_of_pressure


class Pose:
    """Poses of the sensors of a batch."""

    def __init__(self, now: Batch) -> None:
        state, mounting = now.view.state[now.rows], now.mounting
        self.R_WB = frames.rotation(state["q_WB"])
        self.p_WS_W = state["p_WB_W"] + matvec(self.R_WB, mounting.lever)
        self.depth = self.p_WS_W[:, 2] + now.weather["level"]
        self.R_WS = matmul(self.R_WB, mounting.R_BS) if mounting.is_rotated else self.R_WB
        self.v_WS_W = matvec(self.R_WB, mounting.velocity_B(state["v_WB_B"], state["w_WB_B"]))
        self.through = mounting.to_sensor_frame(mounting.velocity_B(state["v_FB_B"], state["w_WB_B"]))
        self.water = np.column_stack([self.p_WS_W[:, :2], self.depth])


class Ctd(water.CtdEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        pose, noise = Pose(now), now.noise.normals(3)
        pressure = self.water.pressure(pose.water) + PRESSURE_SIGMA * noise[:, 0]
        temperature = self.water.temperature(pose.water, now.time) + TEMPERATURE_SIGMA * noise[:, 1]
        conductivity = self.water.conductivity(pose.water, now.time) + CONDUCTIVITY_SIGMA * noise[:, 2]
        gauge = np.maximum(pressure - self.water.world.pressure_0, 0.0)
        out["pressure"], out["temperature"], out["conductivity"] = pressure, temperature, conductivity
        out["salinity"] = seawater.salinity(conductivity, temperature, gauge)
        out["valid"] = pose.depth >= 0.0


class Pressure(water.PressureEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        pose = Pose(now)
        out["pressure"] = self.water.pressure(pose.water) + PRESSURE_SIGMA * now.noise(0)
        out["depth"] = depth_of_pressure(self.water.world, out["pressure"])
        out["valid"] = pose.depth >= 0.0


class Temperature(water.TemperatureEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        pose = Pose(now)
        out["temperature"] = self.water.temperature(pose.water, now.time) + TEMPERATURE_SIGMA * now.noise(0)
        out["valid"] = pose.depth >= 0.0


class Conductivity(water.ConductivityEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        pose = Pose(now)
        out["conductivity"] = self.water.conductivity(pose.water, now.time) + CONDUCTIVITY_SIGMA * now.noise(0)
        out["valid"] = pose.depth >= 0.0


class Ahrs(motion.AhrsEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        angles, noise = frames.euler(now.state["q_WB"]), now.noise.normals(6)
        out["roll"] = angles[:, 0] + TILT_SIGMA * noise[:, 0]
        out["pitch"] = angles[:, 1] + TILT_SIGMA * noise[:, 1]
        out["heading"] = np.mod(angles[:, 2] + HEADING_SIGMA * noise[:, 2], 2 * np.pi)
        out["rates"] = now.state["w_WB_B"] + RATE_SIGMA * noise[:, 3:]


class SpeedLog(motion.SpeedLogEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        out["v_FB_B"] = now.state["v_FB_B"] + SPEED_SIGMA * now.noise.normals(3)


def cast(emulator: ranging.RaycastEmulator, now: Batch, pose: Pose, beams: ranging.BeamGeometry, surface: bool) -> Any:
    """Return origins and directions of rays in W, their ranges, and the bodies hit."""
    is_level = getattr(now.parameters, "level", False)
    along = beams.directions[None] if is_level else matvec(pose.R_WS[:, None], beams.directions)
    starts = pose.p_WS_W[:, None, :] + matvec(pose.R_WS[:, None], beams.positions)
    limit, level = now.parameters.maximum, float(now.weather["level"])
    ranges = emulator.scene.cast(starts, along, limit, surface=surface, level=level)
    bodies = BodyObstacles(emulator._shapes, now.view.rows, now.view.identity, now.view.state)
    return starts, along, *bodies.cast(starts, along, ranges, limit, now.rows)


class Dvl(motion.DvlEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        p, pose, beams = now.parameters, Pose(now), now.prepared
        along_S, _ = dvl_beams(p)
        count = len(along_S)
        starts, along, ranges, hit = cast(self, now, pose, beams, surface=False)
        lock = np.isfinite(ranges) & (ranges >= p.minimum)
        if p.beam_drop_out > 0.0:
            lock &= np.stack([now.noise.uniform(k) for k in range(count)], axis=1) >= p.beam_drop_out
        lock &= (now.fault != SensorFault.UNLOCKED)[:, None]
        noise = now.noise.normals(2 * count)
        over = matvec(along_S, vecmat(pose.v_WS_W, pose.R_WS))
        if (hit >= 0).any():
            points = starts + np.where(hit >= 0, ranges, 0.0)[:, :, None] * along
            over -= dot(along, self.bodies.velocity(hit, points))
        found = over + p.bottom_sigma * noise[:, :count]
        through = matvec(along_S, pose.through) + p.water_sigma * noise[:, count:]
        out["bottom"], out["beams"], out["ranges"] = np.nan, np.nan, np.nan
        for k in range(len(now)):
            used = np.flatnonzero(lock[k])
            if len(used) >= 3 and (solved := pseudo_inverse(along_S[used], 1e-3))[1] == 3:
                inverse = np.zeros((3, count))
                inverse[:, used] = solved[0]
                out["bottom"][k] = matvec(inverse, found[k])
        out["water"] = matvec(pseudo_inverse(along_S, 1e-3)[0], through)
        assert count <= DVL_BEAMS
        out["beams"][:, :count], out["ranges"][:, :count] = (
            np.where(lock, found, np.nan),
            np.where(lock, ranges, np.nan),
        )
        locked = lock.sum(axis=1)
        down = np.where(lock, ranges * along[:, :, 2], 0.0).sum(axis=1)
        out["altitude"] = np.where(locked > 0, down / np.maximum(locked, 1), np.nan)
        out["locked"], out["valid"] = locked, pose.depth > 0.0


class Echosounder(ranging.EchosounderEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        pose = Pose(now)
        distance = cast(self, now, pose, now.prepared, surface=False)[2].min(axis=1)
        out["range"] = np.where(np.isfinite(distance), distance + ECHO_SIGMA * now.noise(0), np.nan)
        in_water = pose.depth >= -ray_kernels.FLOATING
        out["valid"] = in_water & np.isfinite(distance) & (distance > now.parameters.minimum)


class Ranger(ranging.RangerEmulator):
    def measure(self, now: Batch, out: Any) -> None:
        ranges = cast(self, now, Pose(now), now.prepared, surface=True)[2]
        count = ranges.shape[1]
        found = ranges + now.parameters.sigma * now.noise.normals(count)
        out["range"] = np.nan
        out["range"][:, :count] = np.where(np.isfinite(found), found, np.nan)


TWINS = (Ctd, Pressure, Temperature, Conductivity, Ahrs, SpeedLog, Dvl, Echosounder, Ranger)
