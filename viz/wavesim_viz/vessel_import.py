"""Vessels and results of panel codes that the page uploads, read by `wavesim vehicles import`."""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from wavesim_sdk.log_validation import is_short_text
from wavesim_viz.command_runner import run_module
from wavesim_viz.page_protocol import ImportedVessel, MissingValue
from wavesim_viz.uploads import FileStore, clean_name, unpack, write_below
from wavesim_viz.xml_trees import RequestFailed, parse, to_tree

MOST_UPLOADS = 200  #: maximum number of files in a vessel folder
_MISSING = re.compile(r"--set (\S+?)=\.\.\.\s+\((.*)\)")


def import_vessel(body: Any, uploads: FileStore, results: FileStore) -> ImportedVessel:
    """Read uploaded files of a vessel. The answer contains the models and notes, or the values that are missing and the
    content that a model cannot represent.

    ``uploads`` are the keys of the files, ``settings`` the values of `--set` by key, ``angles`` the unit of angles, and
    ``partial`` permits the omission of content. ``model`` is a model that supplies missing values.
    """
    keys = body.get("uploads")
    if not isinstance(keys, list) or not 0 < len(keys) <= MOST_UPLOADS:
        raise RequestFailed(f"expected 1 to {MOST_UPLOADS} uploaded files")
    settings = body.get("settings") or {}
    if not isinstance(settings, dict) or not all(is_short_text(k) and is_short_text(v) for k, v in settings.items()):
        raise RequestFailed("'settings' in the request must map keys to single lines of text")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "vessel"
        folder.mkdir()
        for key in keys:
            file, data = uploads.get(key)
            if file.lower().endswith(".zip"):
                unpack(data, folder)
            else:
                write_below(folder, clean_name(file), data)
        return _run(_main_file(folder), settings, body, Path(name), results)


def _main_file(folder: Path) -> Path:
    """Return the file or folder that `wavesim vehicles import` reads."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    if not files:
        raise RequestFailed("the upload contains no files")
    for path in files:
        if path.name == "geometry.yml":
            return _with_tables(path.parent, files)
    for path in files:
        if path.name.lower() == "nemoh.cal":
            return path.parent
    for endings in (
        (".sdf",),
        (".urdf",),
        (".nc", ".nc4"),
        (".1",),
        ("_hydra.json",),
        (".json",),
        (".yaml", ".yml"),
        (".ini",),
    ):
        for path in files:
            if path.name.lower().endswith(endings):
                return path
    raise RequestFailed(
        "no vessel found: upload a Panisim folder (it contains geometry.yml), an SDF or URDF file, a HydRA .json, a Capytaine "
        ".nc, WAMIT files or a NEMOH folder"
    )


def _with_tables(vessel: Path, files: Sequence[Path]) -> Path:
    """Put the HydRA file and aerofoil tables next to the other files of a vessel, where the reader looks for them."""
    for path in files:
        table = path.name.endswith("_hydra.json") or path.suffix.lower() == ".csv"
        if table and not (vessel / path.name).exists():
            shutil.copyfile(path, vessel / path.name)
    text = (vessel / "hydrodynamics.yml").read_text(errors="replace") if (vessel / "hydrodynamics.yml").exists() else ""
    named = re.search(r"^hydra_file:\s*['\"]?([^\s'\"#]+)", text, re.MULTILINE)
    hydra = sorted(vessel.glob("*hydra*.json"))
    if named and hydra:
        # the reader expects the name in hydrodynamics.yml; the path there is one of another machine
        stem = PurePosixPath(named.group(1).replace("\\", "/")).stem.replace("_hydra", "")
        if not (vessel / f"{stem}_hydra.json").exists():
            shutil.copyfile(hydra[0], vessel / f"{stem}_hydra.json")
    return vessel


def _run(path: Path, settings: dict[str, str], body: Any, folder: Path, results: FileStore) -> ImportedVessel:
    given = {k: v for k, v in settings.items() if v.strip()}
    arguments = ["vehicles", "import", str(path), "--out", "models.xml"]
    if body.get("angles") in ("deg", "rad"):
        arguments += ["--angles", str(body["angles"])]
    if body.get("partial") is True:
        arguments.append("--partial")
    supplied = _supplied(body.get("model"))
    for _ in range(2):
        found = run_module("wavesim_sdk", [*arguments, *(f"--set={k}={v}" for k, v in given.items())], folder)
        answer = _answer(found.code, found.errors, folder, path)
        extra = {m["key"]: supplied[m["key"]] for m in answer["missing"] if m["key"] in supplied}
        if not extra:
            break
        given |= extra  # the open model has these values
    if found.code == 0:
        for file in folder.iterdir():
            if file.is_file() and file.name != "models.xml":
                results.add(file.name, file.read_bytes(), file.name)
    return answer


def _answer(code: int, errors: Sequence[str], folder: Path, path: Path) -> ImportedVessel:
    answer: ImportedVessel = {
        "models": [],
        "notes": [],
        "missing": [],
        "angles": False,
        "omitted": [],
        "source": path.name,
    }
    if code == 0:
        answer["notes"] = [e.removeprefix("note: ") for e in errors if e.startswith("note: ")]
        answer["models"] = [to_tree(m) for m in parse((folder / "models.xml").read_bytes()).iter("model")]
        return answer
    start = next((k for k, e in enumerate(errors) if e.startswith(("wavesim: ", "Error: "))), len(errors))
    first, rest = errors[start] if start < len(errors) else "", [e.strip() for e in errors[start + 1 :]]
    if "use --partial to omit them" in first:
        answer["omitted"] = rest
    elif "supply" in first and rest:
        for line in rest:
            if line.startswith("--angles"):
                answer["angles"] = True
            elif m := _MISSING.match(line):
                value: MissingValue = {"key": m.group(1), "meaning": m.group(2)}
                answer["missing"].append(value)
    else:
        text = first.removeprefix("wavesim: ").removeprefix("Error: ") or "the command failed"
        # the path is that of a temporary folder
        raise RequestFailed(text.replace(f"{folder}/vessel/", "").replace(f"{folder}/", ""))
    return answer


def _supplied(model: Any) -> dict[str, str]:
    """Return the values of `--set` that a model contains: its size, mass, centre of mass, inertia and linear drag."""
    found: dict[str, str] = {"linear-drag": "0 0 0 0 0 0"}
    if not isinstance(model, dict):
        return {}
    children: list[Any] = [c for c in model.get("children", []) if isinstance(c, dict)]

    def metres(text: str) -> list[float]:
        *numbers, unit = text.replace(",", " ").split()
        factor = {"m": 1.0, "km": 1e3, "cm": 1e-2, "mm": 1e-3}[unit]
        return [factor * float(n) for n in numbers]

    try:
        for child in children:
            a = {k: str(v) for k, v in child.get("attributes", {}).items()}
            match child.get("tag"):
                case "box":
                    found["size"] = " ".join(f"{metres(a[k])[0]:g}" for k in ("length", "width", "height"))
                case "cylinder":
                    across = 2.0 * metres(a["radius"])[0]
                    found["size"] = f"{metres(a['length'])[0]:g} {across:g} {across:g}"
                case "mass":
                    kg = float(a["value"].split()[0])
                    found["mass"] = f"{kg:g}"
                    if "centre" in a:
                        found["centre"] = " ".join(f"{v:g}" for v in metres(a["centre"]))
                case "inertia" if "xx" in a:
                    found["inertia"] = " ".join(a.get(k, "0").split()[0] for k in ("xx", "yy", "zz"))
                case "linear-drag" if "diagonal" in a:
                    found["linear-drag"] = a["diagonal"]
        found.setdefault("centre", "0 0 0")
    except (KeyError, ValueError, IndexError):
        return {}  # the check of the model reports this
    return {k: v for k, v in found.items() if all(math.isfinite(float(n)) for n in v.split())}
