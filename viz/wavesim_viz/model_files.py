"""Files named in a model that the configurator edits: the hull mesh, the response operators and the drawing."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.algebra import matvec
from wavesim_sdk.errors import ConfigError
from wavesim_viz.uploads import MOST_UPLOAD, FileStore, clean_name, write_below
from wavesim_viz.xml_trees import RequestFailed
from wavesim_world.config import Model
from wavesim_world.hull import Hull
from wavesim_world.ocean import mesh


def supply(model: Any, folder: Path, results: FileStore, places: Sequence[Path]) -> dict[str, bytes]:
    """Copy the files named in a model into a folder, and return them. Search for each file among the results of this
    session, then in the folders ``places``. Raise RequestFailed if a file is not found.
    """
    found = {}
    for name in _named_files(model):
        kept = results.find(name)
        data = kept[1] if kept else next((d for p in places if (d := _content(p, name)) is not None), None)
        if data is None:
            raise RequestFailed(f"the model names the file '{name}', which is not in {places[0]}")
        write_below(folder, clean_name(name), data)
        found[name] = data
    return found


def _named_files(model: Any) -> list[str]:
    """Return the files that a model names: its hull, its response operators and its drawing."""
    if not isinstance(model, dict):
        return []
    attributes, children = model.get("attributes"), model.get("children")
    names = [attributes.get("appearance")] if isinstance(attributes, dict) else []
    for child in children if isinstance(children, list) else []:
        if (
            isinstance(child, dict)
            and child.get("tag") in ("hull", "rao")
            and isinstance(child.get("attributes"), dict)
        ):
            names.append(child["attributes"].get("file"))
    return [str(clean_name(n)) for n in dict.fromkeys(names) if isinstance(n, str) and n]


def _content(folder: Path, name: str) -> bytes | None:
    """Return the content of a file below a folder, or None if there is no such file."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file() or path.stat().st_size > MOST_UPLOAD:
        return None
    return path.read_bytes()


def hull_triangles(model: Model, folder: Path) -> str:
    """Return the triangles of <hull> in body axes for the page, or an empty string. Raises ConfigError if the mesh is
    invalid.
    """
    h = model.hull
    if h is None:
        return ""
    triangles = mesh.read_mesh(folder / h.file)
    turned = matvec(frames.rotation(frames.quaternion(*h.attitude)), h.scale * triangles) + np.array(h.position)
    try:
        Hull(turned)
    except ValueError as error:
        raise ConfigError(f"the hull: {error}", h.file) from None
    return base64.b64encode(turned.astype("<f4").tobytes()).decode()
