"""Materials and objects of a world, in the order of their label numbers in frames; see
:mod:`wavesim_sdk.frame_labels`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from wavesim_sdk.frame_labels import (
    BED,
    FIRST_BOARD,
    FIRST_BODY,
    FIRST_OBSTACLE,
    FIRST_TARGET,
    SURFACE,
    LabelName,
    LabelNames,
)
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.world import World

HULL_MATERIAL = "steel"  #: name of the material of all bodies
SURFACE_MATERIAL = "surface"  #: name of the last material, which is the water surface


def material_names(world: World) -> tuple[str, ...]:
    """Return the names of the materials in a world, in the order of their numbers."""
    ground, o = world.ground, world.obstacles
    obstacles: list[Any] = [*o.block, *o.pier, *o.tunnel, *o.mesh]
    names = [ground.material, HULL_MATERIAL, *(made.material for made in (*ground.region, *obstacles))]
    return (*dict.fromkeys(names), SURFACE_MATERIAL)


def _obstacles(world: World) -> Iterator[LabelName]:
    o = world.obstacles
    kinds: tuple[tuple[str, Sequence[Any]], ...] = (("block", o.block), ("pier", o.pier), ("tunnel", o.tunnel))
    for kind, declared in kinds:
        for n, one in enumerate(declared, 1):
            yield LabelName(f"{kind} {n}", one.category or kind)
    names = [
        m.file if [b.file for b in o.mesh].count(m.file) == 1 else f"{m.file} {n}" for n, m in enumerate(o.mesh, 1)
    ]
    for name, m in zip(names, o.mesh, strict=True):
        yield LabelName(f"mesh {name}", m.category or PurePosixPath(m.file).stem)


def label_names(loaded: LoadedConfig) -> LabelNames:
    """Return the names of all labels in the frames of a configuration.

    The bodies of the configuration have the rows in which a server adds them. A body that joins later is not included.
    """
    world = loaded.config.world
    objects = {BED: LabelName("bed", "bed"), SURFACE: LabelName("surface", "surface")}
    bodies = (LabelName(b.name, b.model) for b in loaded.config.fleet.bodies)
    targets = (LabelName(t.name, "target") for t in world.target)
    boards = (LabelName(b.name, "board") for b in world.board)
    for first, some in (
        (FIRST_BODY, bodies),
        (FIRST_OBSTACLE, _obstacles(world)),
        (FIRST_TARGET, targets),
        (FIRST_BOARD, boards),
    ):
        objects |= dict(enumerate(some, first))
    return LabelNames(material_names(world), objects)


def obstacle_labels(world: World) -> list[int]:
    """Return the label of each block, of each pier, of each tunnel and of each mesh, in this order."""
    return [FIRST_OBSTACLE + n for n, _ in enumerate(_obstacles(world))]
