"""Common frame of a real and a simulated track: conversion between origins and, on request, alignment of the tracks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.frames import wrap
from wavesim_sdk.geodesy import Origin
from wavesim_studies.navigation.pose_tracks import PoseTrack

__all__ = ["ALIGNMENTS", "FrameAlignment", "aligned", "in_frame"]

ALIGNMENTS = ("none", "start", "translation", "yaw")
FAR_M = 10_000.0  #: distance in m between the origins above which tracks are compared only after alignment


@dataclass(frozen=True)
class FrameAlignment:
    """Motion that was applied to the real track after the conversion between the origins: first a rotation about the down
    axis, then a translation.
    """

    kind: str = "none"
    yaw: float = 0.0  #: rotation in rad
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)  #: translation in m
    origins: str = "not stated; taken as equal"  #: text about the origins of both frames


def in_frame(track: PoseTrack, own: Origin | None, other: Origin | None, far_allowed: bool) -> tuple[PoseTrack, str]:
    """Return a track with its origin converted to another one, and a text about the origins.

    Raise LogError if the origins are far apart, unless that is allowed.
    """
    if own is None or other is None:
        if own is None and other is None:
            return track, "not stated; taken as equal"
        which = "the real run" if own is None else "the simulation"
        return track, f"not stated for {which}; taken as equal"
    if (own.latitude, own.longitude) == (other.latitude, other.longitude):
        return track, "equal"
    apart = other.ned(own.latitude, own.longitude)
    distance = float(np.linalg.norm(apart[:2]))
    if distance > FAR_M or float(apart[2]) > FAR_M:
        if far_allowed:
            return track, f"{distance / 1000.0:.0f} km apart; ignored, because the tracks are aligned"
        raise LogError(
            f"the origins of the real and the simulated world are {distance / 1000.0:.0f} km apart; set latitude and "
            "longitude of the simulated <world>, or compare shapes with --align start or --align translation"
        )
    p = np.nan_to_num(track.p)
    moved = other.from_ecef(own.ecef(p))
    north = other.from_ecef(own.ecef([1.0, 0.0, 0.0])) - other.from_ecef(own.ecef([0.0, 0.0, 0.0]))
    turned = _turned(track, math.atan2(north[1], north[0]))
    moved = np.where(np.isfinite(track.p), moved, np.nan)
    return replace(turned, p=moved), f"{distance:.1f} m apart; converted"


def _turned(track: PoseTrack, yaw: float) -> PoseTrack:
    """Return a track rotated by ``yaw`` about the down axis through the origin. Vectors in B do not change."""
    c, s = math.cos(yaw), math.sin(yaw)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    level = np.nan_to_num(track.p) @ R.T
    level[:, 2] = track.p[:, 2]
    q = track.q
    if q is not None:
        w, x, y, z = q.T
        ch, sh = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
        q = np.stack([ch * w - sh * z, ch * x - sh * y, ch * y + sh * x, ch * z + sh * w], axis=1)
    return replace(track, p=level, q=q, covariance=None)


def moved(track: PoseTrack, alignment: FrameAlignment) -> PoseTrack:
    """Return a track after the rotation and the translation of an alignment."""
    turned = _turned(track, alignment.yaw) if alignment.yaw else track
    return replace(turned, p=turned.p + alignment.translation)


def aligned(real: PoseTrack, p: Floats, heading: Floats | None, kind: str, origins: str) -> FrameAlignment:
    """Return the alignment of a real track with simulated positions (T, 3) at the same times.

    ``start`` makes the first poses equal (position, and heading if both are known); ``translation`` makes the mean
    positions equal; ``yaw`` also rotates, so that the positions fit best (Umeyama 1991, without scale).
    """
    if kind == "none":
        return FrameAlignment("none", origins=origins)
    a, b = real.p, p
    yaw = 0.0
    if kind == "start" and heading is not None and real.q is not None:
        yaw = float(wrap(heading[0] - frames.euler(real.q[:1])[0, 2]))
    elif kind == "yaw":
        flat_a, flat_b = a[:, :2] - a[:, :2].mean(axis=0), b[:, :2] - b[:, :2].mean(axis=0)
        cross = float((flat_a[:, 0] * flat_b[:, 1] - flat_a[:, 1] * flat_b[:, 0]).sum())
        yaw = math.atan2(cross, float((flat_a * flat_b).sum()))
    turned = moved(real, FrameAlignment(kind, yaw)).p
    shift = (b - turned)[0] if kind == "start" else (b - turned).mean(axis=0)
    shift = np.where(np.isfinite(shift), shift, 0.0)
    return FrameAlignment(kind, yaw, (float(shift[0]), float(shift[1]), float(shift[2])), origins)
