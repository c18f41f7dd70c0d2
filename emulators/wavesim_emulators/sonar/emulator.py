"""Emulator of imaging sonars. It computes the pings of each sonar at its rate, and writes them as frames to the
rings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wavesim_emulators.base import Batch
from wavesim_emulators.sonar.design import SonarDesign
from wavesim_emulators.sonar.frame_emulator import SceneEmulator, euler_of
from wavesim_emulators.sonar.imaging import ForwardLookingSonar, PingResult, ScanningSonar, SideScanSonar, SonarPose
from wavesim_emulators.sonar.multibeam import MultibeamSonar
from wavesim_emulators.sonar.sonar_3d import Sonar3D
from wavesim_sdk import imaging_frames as frames
from wavesim_sdk.arrays import Record
from wavesim_world.config import LoadedConfig
from wavesim_world.config.ranging_sensors import SonarConfig as Declared
from wavesim_world.ocean.sound import francois_garrison
from wavesim_world.sonars import frame_sizes, presets

SONAR_TYPES: dict[str, Any] = {
    "forward": ForwardLookingSonar,
    "sidescan": SideScanSonar,
    "scanning": ScanningSonar,
    "bathymetry": MultibeamSonar,
    "3d": Sonar3D,
}


def design_of(loaded: LoadedConfig, p: Declared, noise: bool) -> SonarDesign:
    """Return the design of a configured sonar, with all parameters resolved for the configured water."""
    a = loaded.config.acoustics
    preset = frame_sizes.resolve_preset(p)
    absorbed = francois_garrison(preset.frequency, a.temperature, a.salinity, a.depth, a.ph)
    return SonarDesign(
        preset,
        preset.range,
        preset.bins,
        a.sound_speed,
        absorbed,
        p.gain,
        p.tvg,
        p.hold or math.inf,
        p.floor,
        p.span,
        p.bits,
        p.volume,
        noise=noise,
        speckle=p.speckle and noise,
        labels=p.truth,
        stabilised=p.stabilised,
        equidistant=p.equidistant,
        assumed_speed=p.assumed_speed,
        minimum=preset.minimum,
        multipath=p.multipath,
    )


@dataclass
class SonarInstrument:
    """Sonar of an emulator: its sonar engine and the constant part of its frame record."""

    generation: int
    key: int  #: key of the random number generator
    engine: Any
    record: Any


class SonarEmulator(SceneEmulator):
    """Emulator of all imaging sonars. A ping is complete at the tick at which it is due. It was transmitted one two-way
    travel time earlier; the two-way travel time is twice the range divided by the sound speed. The pose at the time of
    transmission is extrapolated with constant velocities.
    """

    sensor = "sonar"

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self._instruments: dict[int, SonarInstrument] = {}
        self.newest: dict[int, PingResult] = {}  #: newest ping of each sensor, by its row in the `sonar` table

    def warm_up(self) -> None:
        here = SonarPose(np.zeros(3), np.eye(3), np.ones(3), np.ones(3))
        for preset in ("p900-45", "starfish-450", "sonar-3d15-low"):
            small = replace(presets.find_preset(preset), beams=2, sector=0.1, rows=2)
            for bits, bins, labels in ((8, 8, True), (16, 64, False)):
                made = SonarDesign(small, 2.0, bins, bits=bits, labels=labels)
                engine = SONAR_TYPES[small.kind](made, self.world, 0.0, 1)
                engine.ping(here, 0)
                engine.multipath.warm_up()

    def measure(self, now: Batch, out: Record) -> None:
        mounted = now.mounted
        keys = now.noise.streams("frames")
        turning = np.einsum("nij,nj->ni", mounted.R_WB, mounted.w_WB_B)
        R_WS = np.broadcast_to(mounted.R_WS, (len(now), 3, 3))
        for i, place in enumerate(now.table_rows.tolist()):
            own = self._instrument(now, i, place, int(out["generation"][i]), int(keys[i]))
            d: SonarDesign = own.engine.design
            out["valid"][i] = 0
            if now.time < d.ping_time and not self.is_instant:
                continue
            pose = SonarPose(mounted.p_WS_W[i], R_WS[i], mounted.v_WS_W[i], turning[i]).before(d.ping_time)
            level = float(now.weather["level"])
            if pose.p[2] + level <= 0.0:  # in air
                continue
            self.world.set_bodies(self.bodies, int(now.rows[i]))
            if self.is_instant:
                own.engine.fresh = True
            frame = own.engine.ping(pose, now.tick // now.period, level)
            out["valid"][i] = 1
            out["frame"][i] = self._publish(place, own.record, frame, now)
            for name in ("range", "beams", "bins"):
                out[name][i] = own.record[name]
            out["saturated"][i] = frame.saturated / (own.record["beams"] * own.record["bins"])
            out["altitude"][i] = frame.altitude

    def _instrument(self, now: Batch, i: int, place: int, generation: int, key: int) -> SonarInstrument:
        known = self._instruments.get(place)
        if known is None or known.generation != generation:
            p: Declared = now.parameters
            noise = bool(np.broadcast_to(now.noise.scale, (len(now),))[i] > 0.0)
            made = design_of(self.loaded, p, noise)
            engine = SONAR_TYPES[made.preset.kind](made, self.world, self.loaded.config.world.wind.mean, key)
            record = describe(made, *self.names_of(now, i, place), generation, p.preset)
            known = SonarInstrument(generation, key, engine, record)
            self._instruments[place] = known
        elif known.key != key:
            known.engine.restart(key)
            known.key = key
        return known

    def _publish(self, place: int, record: Any, frame: PingResult, now: Batch) -> int:
        pose = frame.pose
        record["time_ns"] = now.time_ns
        record["ping_ns"] = now.time_ns - round(2e9 * float(record["range"]) / float(record["sound_speed"]))
        record["saturated"], record["altitude"], record["azimuth"] = frame.saturated, frame.altitude, frame.azimuth
        record["p_WS_W"], record["v_WS_W"] = pose.p, pose.v
        record["euler"] = euler_of(pose.R)
        self.newest[place] = frame
        data = frame.soundings if frame.levels is None else frame.levels
        payload = [np.ascontiguousarray(data).tobytes()]
        if frame.labels is not None:
            payload.append(frame.labels.astype("<i2").tobytes())
        return self.write(place, record, *payload)


def describe(d: SonarDesign, body: bytes, name: bytes, generation: int, preset: str) -> Any:
    """Return a frame record with all fields that stay the same from frame to frame."""
    p = d.preset
    beams, bins, sample_bytes = {
        "bathymetry": (p.beams, len(frames.SOUNDING_COLUMNS), 8),
        "3d": (p.rows, p.beams, frames.PIXEL_3D.itemsize),
    }.get(p.kind, (p.beams, d.bins, d.bits // 8))
    return frames.frame_record(
        generation=generation,
        body=body,
        name=name,
        preset=preset.encode(),
        kind=frames.FRAME_KINDS.index(p.kind),
        beams=beams,
        bins=bins,
        sample_bytes=sample_bytes,
        labels=int(d.labels and p.kind != "bathymetry"),
        range=d.range,
        sector=p.sector if p.kind in ("forward", "bathymetry", "3d") else 0.0,
        tilt=p.tilt,
        frequency=p.frequency,
        bandwidth=p.bandwidth,
        sound_speed=d.sound_speed,
        absorption=d.absorption,
        source_level=p.source_level,
        gain=d.gain,
        tvg=d.tvg,
        hold=d.hold,
        floor=d.floor,
        span=d.span,
        beam_width=p.beam,
        fan_height=p.height or p.vertical,
    )
