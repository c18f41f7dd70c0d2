"""Noise sources of bodies in the medium: what they radiate, and how they are added and removed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_kernels.radiated_noise import REFERENCE_HZ
from wavesim_sdk import frames
from wavesim_sdk.algebra import matvec
from wavesim_sdk.arrays import Floats
from wavesim_sdk.front_tables import NOISE_SEGMENT_S, RADIATED_NOISE
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.dynamics.fleet import VehicleType
from wavesim_world.config.acoustics import RadiatedNoise

#: band in Hz, around the reference frequency, in which the level of the sea is compared with that of a noise source
BAND_HZ = 1e4


def add_source(m: Medium, row: int, noise: RadiatedNoise, vehicle_type: VehicleType, key: int, time: float) -> None:
    """Let a body radiate noise from its next segment on. ``key`` is the key of its random numbers. Call
    :func:`set_conditions` and :func:`place_source` as well.
    """
    source, signal = m.noise_sources[row], m.noise_signals[row]
    entry = source.entry + 1
    m.noise_sources[row], m.noise_signals[row] = 0, 0
    source.active, source.entry = 1, entry
    source.next = math.ceil(time / NOISE_SEGMENT_S - 1e-9)
    source.shaft, source.blades = _shaft_slot(noise, vehicle_type), noise.blades
    source.x, source.y, source.z = noise.position
    source.level, source.slope = noise.level, noise.slope
    source.blade_level, source.machine, source.machine_level = noise.blade_level, noise.machine, noise.machine_level
    source.last_rate = math.nan
    signal.source, signal.kind, signal.code = row, RADIATED_NOISE, key >> 1
    signal.frequency, signal.band, signal.duration = REFERENCE_HZ, 1.0, NOISE_SEGMENT_S
    signal.source_level, signal.beam, signal.query_source, signal.next = noise.level, -1, -1, -1


def set_conditions(m: Medium, row: int, absorption: float, noise: float) -> None:
    """Set the absorption (dB/m) at the reference frequency, and the ambient noise (dB) in BAND_HZ around it. Fronts far
    below the ambient noise are omitted; a tone keeps them longer.
    """
    source, signal = m.noise_sources[row], m.noise_signals[row]
    louder = max(source.blade_level - source.level, source.machine_level - source.level, 0.0)
    signal.absorption, signal.noise = absorption, noise - 40.0 - louder


def place_source(m: Medium, row: int, position: Floats, attitude: Floats, velocity: Floats) -> None:
    """Set the position of a noise source at both ends of the tick to its current position, so that its path does not
    contain a jump. ``position`` is in W; ``attitude`` is q_WB; ``velocity`` is u v w p q r in B.
    """
    source = m.noise_sources[row]
    both: Any = m.noise_places[:, row]
    R, p = frames.rotation(attitude), np.array([source.x, source.y, source.z])
    both.x, both.y, both.z = position + matvec(R, p)
    both.vx, both.vy, both.vz = matvec(R, velocity[:3] + np.cross(velocity[3:], p))


def remove_source(m: Medium, row: int) -> None:
    """End the noise of a body; the current segment is emitted to its end."""
    if len(m.noise_sources):
        m.noise_sources[row].active = 0


def active_rows(m: Medium) -> list[int]:
    """Return the rows of the bodies that radiate noise."""
    rows: list[int] = np.flatnonzero(m.noise_sources.active).tolist()
    return rows


def _shaft_slot(noise: RadiatedNoise, vehicle_type: VehicleType) -> int:
    """Return the slot of the thruster with the propeller; -1 = there are no tones from a propeller."""
    if not noise.blades:
        return -1
    shafts = [t.name for t in vehicle_type.model.thruster if t.law == "shaft"]
    slots: dict[str, Any] = {a.name: a.slot for a in vehicle_type.actuators}
    return int(slots[noise.propeller or shafts[0]])
