"""Names of the label numbers in the frames of imaging sonars and cameras.

A label consists of a material and an object. The number of a material is an index into :attr:`LabelNames.materials`.
The numbers of objects are:

======================  ===========================================================
-1                      nothing: no ray hits anything here
0, 1                    sea bed, water surface
2 + row                 body in this row of the `state` table
20000, 20001, ...       obstacles: blocks, piers, tunnels, meshes, in this order
28000, 28001, ...       point targets
31000, 31001, ...       boards (cameras only)
-n, for n from 2        shadow of object n (sonars only); its material is -1
======================  ===========================================================

A world therefore has at most 8000 obstacles, 3000 targets and 1768 boards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["LabelName", "LabelNames"]

NOTHING, BED, SURFACE = -1, 0, 1  #: labels of cells without an echo, of the sea bed and of the water surface
FIRST_BODY = 2  #: label of the body in row 0
FIRST_OBSTACLE, FIRST_TARGET, FIRST_BOARD, AFTER_BOARDS = 20_000, 28_000, 31_000, 2**15
SHADOW = "shadow"  #: category of all shadows


class LabelName(NamedTuple):
    """Object in a scene: its name, which is unique, and its category, such as the model of a body."""

    name: str
    category: str


class LabelNames(Mapping[int, str]):
    """Names of objects by their label number, for example ``names[20000]`` = "block 1" and ``names[-20000]`` = "shadow
    of block 1".

    ``materials`` contains the names of the materials. ``objects`` contains all objects except shadows.
    """

    def __init__(self, materials: Sequence[str], objects: Mapping[int, LabelName]) -> None:
        self.materials, self.objects = tuple(materials), dict(objects)

    def __getitem__(self, number: int) -> str:
        number = int(number)
        return f"shadow of {self.objects[-number].name}" if number < NOTHING else self.objects[number].name

    def __iter__(self) -> Iterator[int]:
        return iter(self.objects)

    def __len__(self) -> int:
        return len(self.objects)

    def __repr__(self) -> str:
        return f"LabelNames({dict(self)}, materials={list(self.materials)})"

    def category(self, number: int) -> str:
        """Return the category of an object: `bed`, `surface`, the model of a body, the category of an obstacle,
        `target`, `board` or `shadow`.
        """
        return SHADOW if number < NOTHING else self.objects[int(number)].category

    def with_body(self, row: int, name: str, model: str) -> LabelNames:
        """Return a copy of these names, extended by the name of the body that has entered ``row``."""
        return LabelNames(self.materials, {**self.objects, FIRST_BODY + row: LabelName(name, model)})

    def to_json(self) -> str:
        """Return the names as a JSON object with the keys ``materials`` and ``objects``."""
        objects = {str(n): [o.name, o.category] for n, o in self.objects.items()}
        return json.dumps({"materials": list(self.materials), "objects": objects}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> LabelNames:
        """Parse the result of :meth:`to_json`. Raises ValueError if the text is invalid."""
        return cls._parse(json.loads(text))

    @classmethod
    def _parse(cls, value: Any) -> LabelNames:
        try:
            materials, objects = value["materials"], value["objects"].items()
            found = {int(n): LabelName(*map(_short_text, o)) for n, o in objects}
            return cls([_short_text(m) for m in materials], found)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"invalid label names: {error}") from None


def _short_text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 256 or not value.isprintable():
        raise ValueError("invalid label names: a name must be a printable string of at most 256 characters")
    return value
