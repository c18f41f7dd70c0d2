"""glTF files that viewers draw instead of the primitive shapes of models."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wavesim_viz.xml_trees import RequestFailed

MOST_BYTES = 64 * 2**20  #: maximum size of a file
MOST_TRIANGLES = 200_000  #: maximum number of triangles in a file
_MAGIC, _JSON_CHUNK = b"glTF", 0x4E4F534A
_TRIANGLES = 4  #: primitive mode of glTF for separate triangles, which is its default
#: extensions that a file may require, besides those of materials; the page has no decoder for compressed meshes or for
#: textures in the format of graphics processors
_EXTENSIONS = frozenset(
    ("KHR_lights_punctual", "KHR_mesh_quantization", "KHR_texture_transform", "EXT_texture_avif", "EXT_texture_webp")
)
_MATERIALS = "KHR_materials_"


def find_appearance(name: str, folders: Iterable[Path]) -> Path:
    """Return the path of the file that a model names, in the first folder that contains it. Raise RequestFailed with the
    reason if there is none.
    """
    if Path(name).suffix.lower() != ".glb":
        hint = "export it as one .glb file, which contains its textures"
        raise RequestFailed(f"the appearance '{name}' is not a .glb file: {hint}")
    searched = []
    for folder in dict.fromkeys(f.resolve() for f in folders):
        file = (folder / name).resolve()
        if not file.is_relative_to(folder):
            raise RequestFailed(f"the appearance '{name}' is outside the folder of the configuration: copy it there")
        if file.is_file():
            return file
        searched.append(str(folder))
    raise RequestFailed(f"the appearance '{name}' does not exist in {' or '.join(searched)}")


def read_appearance(file: Path) -> bytes:
    """Return the content of a .glb file that the page can draw. Raise RequestFailed with the reason if it cannot."""
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise RequestFailed(f"{file.name} has {size / 2**20:.0f} MiB; the maximum is {MOST_BYTES >> 20} MiB")
    content = file.read_bytes()
    described = _description(file.name, content)
    required = described.get("extensionsRequired") or []
    foreign = [e for e in required if e not in _EXTENSIONS and not str(e).startswith(_MATERIALS)]
    if foreign:
        raise RequestFailed(f"{file.name} requires {', '.join(map(str, foreign))}: export it without compression")
    try:
        outside = _outside_files(described)
        triangles = sum(_triangles(described, p) for m in described.get("meshes", []) for p in m["primitives"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise RequestFailed(f"{file.name} is damaged: export it again") from None
    if outside:
        raise RequestFailed(f"{file.name} refers to '{outside[0]}': export one .glb file, which contains its textures")
    if not triangles:
        raise RequestFailed(f"{file.name} contains no triangles")
    if triangles > MOST_TRIANGLES:
        raise RequestFailed(
            f"{file.name} has {triangles} triangles; the maximum is {MOST_TRIANGLES}: simplify it before the export"
        )
    return content


def _description(name: str, content: bytes) -> dict[str, Any]:
    """Return the JSON chunk of a .glb file."""
    if content[:4] != _MAGIC:
        raise RequestFailed(f"{name} is not a binary glTF file")
    try:
        version, length, chunk, kind = struct.unpack_from("<IIII", content, 4)
        if version != 2:
            raise RequestFailed(f"{name} is a glTF file of version {version}: export it as version 2")
        if length != len(content) or kind != _JSON_CHUNK:
            raise ValueError
        found = json.loads(content[20 : 20 + chunk])
    except (ValueError, struct.error):  # invalid JSON and UTF-8 are ValueErrors too
        raise RequestFailed(f"{name} is damaged or incomplete: export it again") from None
    if not isinstance(found, dict):
        raise RequestFailed(f"{name} is damaged or incomplete: export it again")
    return found


def _outside_files(described: dict[str, Any]) -> Sequence[str]:
    uris = (str(part.get("uri", "data:")) for kind in ("buffers", "images") for part in described.get(kind, []))
    return [uri for uri in uris if not uri.startswith("data:")]


def _triangles(described: dict[str, Any], primitive: dict[str, Any]) -> int:
    """Return the number of triangles in one primitive. Lines and points count as none."""
    if primitive.get("mode", _TRIANGLES) < _TRIANGLES:
        return 0
    points = primitive["indices"] if "indices" in primitive else primitive["attributes"]["POSITION"]
    return int(described["accessors"][points]["count"]) // 3
