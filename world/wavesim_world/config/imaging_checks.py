"""Checks of the configuration of imaging sonars, cameras and lidars, and of the materials, targets and boards in their
scene.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frame_labels import AFTER_BOARDS, FIRST_BOARD, FIRST_OBSTACLE, FIRST_TARGET
from wavesim_world.config.imaging import TYPICAL, MaterialConfig
from wavesim_world.config.lidar import LidarConfig
from wavesim_world.config.ranging_sensors import CameraConfig, SonarConfig
from wavesim_world.config.validation import fail_at
from wavesim_world.config.world import World
from wavesim_world.sonars import frame_sizes, lens, materials, presets

_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


def materials_of(world: World) -> dict[str, materials.Material]:
    """Return the materials that a configuration declares, by name."""
    found = {}
    for m in world.material:
        grain = materials.Sediment.from_grain_size(m.grain) if m.law == "sediment" else None
        found[m.name] = materials.Material(
            m.name, grain, m.lambert, m.reflection, m.slope, m.patch, m.cell, m.colour, texture_of(m)
        )
    return found


def texture_of(m: MaterialConfig) -> materials.Texture:
    """Return the texture of a declared material: typical values, except those that its keys replace."""
    typical = materials.typical_texture(m.grain) if m.law == "sediment" else materials.Texture()
    if m.patch > 0.0:  # the K distribution already varies the strength
        typical = replace(typical, variation=0.0)
    given = {
        "variation": m.texture,
        "scale": m.scale,
        "ripple": m.ripple,
        "ripple_length": m.ripple_length,
        "ripple_heading": m.ripple_heading,
    }
    return replace(typical, **{name: float(value) for name, value in given.items() if value != TYPICAL})


def check(world: World) -> None:
    """Raise ConfigError for an unknown material, an invalid name, a board with invalid cells, or more objects than there
    are label numbers.
    """
    own, o = materials_of(world), world.obstacles
    counted: tuple[tuple[str, Sequence[Any], int], ...] = (
        ("obstacles", (*o.block, *o.pier, *o.tunnel, *o.mesh), FIRST_TARGET - FIRST_OBSTACLE),
        ("targets", world.target, FIRST_BOARD - FIRST_TARGET),
        ("boards", world.board, AFTER_BOARDS - FIRST_BOARD),
    )
    for what, declared, most in counted:
        if len(declared) > most:
            fail_at(
                declared[most].place,
                f"the world has {len(declared)} {what}, but frames have only {most} labels for {what}; remove some",
            )
    named: list[Any] = [*world.material, *world.target, *world.board]
    for m in named:
        if not _NAME.fullmatch(m.name):
            fail_at(m.place, f"invalid name '{m.name}': use 1 to 31 letters, digits, - and _")
    for b in world.board:
        if not b.cell_rows or len({len(row) for row in b.cell_rows}) > 1 or set("".join(b.cell_rows)) - {"0", "1"}:
            fail_at(b.place, f"invalid cells of board '{b.name}': use rows of 0 and 1 with equal lengths")
    made_of: list[Any] = [world.ground, *world.ground.region, *o.block, *o.pier, *o.tunnel, *o.mesh]
    for made in made_of:
        try:
            materials.find_material(made.material, own)
        except ConfigError as error:
            fail_at(made.place, error.message)


def check_sonar(s: SonarConfig, sound_speed: float, who: str) -> None:
    """Raise ConfigError if the configuration of an imaging sonar is invalid; ``who`` is the name of the instrument in
    the message.
    """
    try:
        p = presets.find_preset(s.preset)
    except ConfigError as error:
        fail_at(s.place, f"{who}: {error.message}")
    reach = s.range or p.range
    if reach > p.max_range:
        fail_at(s.place, f"{who}: range {reach:g} m is above the maximum of a {p.title}, {p.max_range:g} m")
    if reach < 4.0 * p.resolution:
        fail_at(
            s.place,
            f"{who}: range {reach:g} m is too short: use at least four times the range resolution of a {p.title}, "
            f"{p.resolution:.2g} m",
        )
    if s.rate > sound_speed / (2.0 * reach) * (1.0 + 1e-9):
        fail_at(
            s.place,
            f"{who}: rate {s.rate:g} Hz is too high: over a range of {reach:g} m the maximum is {sound_speed / (2.0 * reach):.3g} pings per second",
        )
    if s.bits not in (8, 16):
        fail_at(s.place, f"{who}: `bits` must be 8 or 16")
    if s.beams and p.kind in ("sidescan", "scanning"):
        fail_at(s.place, f"{who}: the number of beams of a {p.kind} sonar is fixed; remove `beams`")
    if s.bins and p.kind == "3d":
        fail_at(s.place, f"{who}: a 3D sonar has no range samples; remove `bins`")
    if s.beams == 1 and p.kind == "3d":
        fail_at(s.place, f"{who}: a 3D sonar needs at least 2 columns (`beams`)")
    if (s.rows or s.height) and p.kind != "3d":
        fail_at(s.place, f"{who}: only a 3D sonar has `rows` and `height`; remove them")
    if s.sector and p.kind in ("forward", "bathymetry", "3d") and s.sector > math.radians(170.0):
        fail_at(s.place, f"{who}: sector {math.degrees(s.sector):.0f} deg is above the maximum, 170 deg")
    size = frame_sizes.payload_bytes(s)
    if size > frame_sizes.MAX_BYTES:
        fail_at(
            s.place,
            f"{who}: a frame of {size} bytes does not fit into its ring (maximum {frame_sizes.MAX_BYTES}); use fewer beams or bins",
        )


def check_lidar(c: LidarConfig, who: str) -> None:
    """Raise ConfigError if the configuration of a lidar is invalid; ``who`` is the name of the instrument in the
    message.
    """
    p = c.resolved
    if p.upper <= p.lower:
        fail_at(c.place, f"{who}: `upper` must be greater than `lower`")
    if p.range <= p.minimum:
        fail_at(c.place, f"{who}: `range` must be greater than `minimum`")


def check_camera(c: CameraConfig, who: str) -> None:
    """Raise ConfigError if the configuration of a camera is invalid; ``who`` is the name of the instrument in the
    message.
    """
    if not lens.is_invertible(c.width, c.height, c.view, c.distortion):
        fail_at(
            c.place,
            f"{who}: its distortion folds the image; choose k1 and k2 so that r (1 + k1 r^2 + k2 r^4) increases from "
            "the centre to the corners",
        )
