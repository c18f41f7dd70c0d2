"""Fixed properties of WaVeSim's instruments: beam geometry, and noise that has no configuration key.

Emulators use these values in their computations. Programs that state the accuracy of a measurement also use them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, cos, sin
from wavesim_world.config.adcp import AdcpConfig
from wavesim_world.config.ranging_sensors import MultibeamConfig, RangeBeam, RangerConfig
from wavesim_world.config.sensors import DvlConfig

# Standard deviations at noise="1".
TILT_SIGMA = float(np.radians(0.1))  #: noise of roll and pitch of an AHRS, rad
HEADING_SIGMA = float(np.radians(0.3))  #: noise of the heading of an AHRS, rad
RATE_SIGMA = float(np.radians(0.02))  #: noise of angular rates, rad/s
SPEED_SIGMA = 0.01  #: noise of a speed log, m/s
PRESSURE_SIGMA = 0.01  #: noise of pressure, dbar
TEMPERATURE_SIGMA = 0.002  #: noise of temperature, C

CONDUCTIVITY_SIGMA = 0.0003  #: noise of conductivity, S/m
SALINITY_SIGMA = 0.005
SOUND_SIGMA = 0.02  #: noise of the measured sound speed, m/s
ECHO_SIGMA = 0.02  #: noise of an echosounder, m


def beam_geometry(beams: tuple[RangeBeam, ...]) -> tuple[Floats, Floats]:
    """Return directions and positions (n, 3) in S of individually declared beams."""
    return np.array([b.direction for b in beams]), np.array([b.position for b in beams])


def dvl_beams(p: DvlConfig) -> tuple[Floats, Floats]:
    """Return directions and positions (n, 3) in S of the beams of a Doppler log."""
    if p.beam:
        return beam_geometry(p.beam)
    azimuth = p.first + np.arange(4) * math.pi / 2.0
    around = np.stack([cos(azimuth), sin(azimuth), np.zeros(4)], axis=1)
    return sin(p.angle) * around + (0.0, 0.0, cos(p.angle)), p.radius * around


def adcp_beams(p: AdcpConfig) -> Floats:
    """Return directions (4, 3) in S of the beams of an ADCP."""
    azimuth = p.first + np.arange(4) * math.pi / 2.0
    around = np.stack([cos(azimuth), sin(azimuth), np.zeros(4)], axis=1)
    return np.asarray(sin(p.angle) * around + (0.0, 0.0, cos(p.angle)))


def magnetic_heading(field: Any, roll: Any, pitch: Any) -> Any:
    """Return the magnetic heading (0..2 pi), computed from a magnetic field (..., 3) in B, a roll and a pitch. To
    obtain the true heading, add the declination.
    """
    x, y, z = (np.asarray(field)[..., k] for k in range(3))
    level = y * cos(roll) - z * sin(roll)
    ahead = x * cos(pitch) + (y * sin(roll) + z * cos(roll)) * sin(pitch)
    return np.mod(atan2(-level, ahead), 2.0 * math.pi)


def ranger_beams(p: RangerConfig) -> tuple[Floats, Floats]:
    """Return directions and positions (n, 3) in S of the beams of a rangefinder; the default is one beam ahead."""
    return beam_geometry(p.beam or (RangeBeam(),))


def multibeam_beams(p: MultibeamConfig) -> tuple[Floats, Floats]:
    """Return directions and positions (n, 3) in S of the beams of a multibeam echosounder; the default is a fan."""
    if p.beam:
        return beam_geometry(p.beam)
    a = np.linspace(-0.5, 0.5, p.beams) * p.width
    along = np.stack([np.zeros_like(a), sin(a), cos(a)], axis=1)
    return along, np.zeros_like(along)
