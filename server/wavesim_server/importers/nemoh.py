"""Reader for NEMOH folders (version 2 or 3): Nemoh.cal, Results/RadiationCoefficients.tec and ExcitationForce.tec,
KH.dat, Inertia.dat.

NEMOH's time factor is ``exp(-i w t)``, so its phases lag; this reader reverses their sign. The files do not state the
unit of the phases.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_server.importers import panel_results
from wavesim_server.importers.model_draft import ModelDraft


def read(folder: Path, draft: ModelDraft) -> panel_results.PanelResults:
    """Return the results of a run for one body. Raises ValueError, naming the file, if a file is invalid."""
    cal = [line.split("!")[0].split() for line in _require_file(folder, "Nemoh.cal").read_text().splitlines()]
    said = {
        k: line.split("!", 1)[1].lower()
        for k, line in enumerate(_require_file(folder, "Nemoh.cal").read_text().splitlines())
        if "!" in line
    }

    def value(words: str) -> list[float]:
        for k, comment in said.items():
            if words in comment:
                return [float(x) for x in cal[k]]
        raise ValueError(f"Nemoh.cal lacks the {words}")

    if (bodies := value("number of bodies")[0]) != 1.0:
        raise ValueError(f"the run has {bodies:g} bodies; only one can be imported")
    found = panel_results.PanelResults(density=value("fluid specific volume")[0], depth=_depth(cal))
    w, m = _read_zones(_require_file(folder, "RadiationCoefficients.tec"), "Motion of body")
    if len(m) != 6 or m[0].shape[1] != 12:
        raise ValueError(
            f"RadiationCoefficients.tec has {len(m)} motions, or lacks some of the six forces for a motion; six of each are needed"
        )
    a, b = (np.array([x[:, k::2] for x in m]).transpose(1, 2, 0) for k in (0, 1))
    found.coefficients = panel_results.make_coefficients(w, a, b)
    force = _require_file(folder, "ExcitationForce.tec")
    w, x = _read_zones(force, "xcitation force|iffraction force")
    headings = [float(h) for h in re.findall(r"beta\s*=\s*([-+.\dEe]+)", force.read_text())]
    unit = draft.angle(1.0, "the phases of ExcitationForce.tec")
    z = np.array([f[:, 0::2] * np.exp(-1j * unit * f[:, 1::2]) for f in x])
    found.operators = panel_results.make_operators(w, np.radians(headings), z.transpose(2, 1, 0), "force")
    for name, folders in (("stiffness", ("KH.dat", "Kh.dat")), ("rigid_body", ("Inertia.dat",))):
        for file in (f for f in folders if (p := _find_file(folder, f)) and p):
            m6 = np.loadtxt(_require_file(folder, file))
            if m6.shape != (6, 6):
                raise ValueError(f"{file} contains {m6.shape} numbers; 6 x 6 are needed")
            setattr(found, name, m6 * panel_results.AXIS_SIGN_PRODUCTS)
            break
    return found


def _find_file(folder: Path, name: str) -> Path | None:
    """Find a file in the folder or one level below it, regardless of capitalisation."""
    fits = sorted(p for p in (*folder.glob("*"), *folder.glob("*/*")) if p.name.lower() == name.lower() and p.is_file())
    preferred = [p for p in fits if p.parent.name.lower() == "mechanics"]
    found = preferred or fits
    return found[0] if found else None


def _require_file(folder: Path, name: str) -> Path:
    path = _find_file(folder, name)
    if path is None:
        raise ValueError(f"missing file {name}")
    return path


def _depth(cal: list[list[str]]) -> float:
    """Return the depth of the reference point for the moments. Raises ValueError if this point is not vertically below
    the origin of the mesh.
    """
    points = set()
    for words in cal:
        if len(words) == 7 and words[0] == "2":
            points.add(tuple(float(x) for x in words[4:7]))
    if len(points) != 1:
        raise ValueError(f"Nemoh.cal names {len(points)} points for its rotations and moments; one is needed")
    x, y, z = points.pop()
    if x or y:
        raise ValueError(f"the moments refer to x = {x:g}, y = {y:g} m and the phases to 0, 0; compute both at 0, 0")
    return -z


def _read_zones(path: Path, title: str) -> tuple[Array, list[Array]]:
    """Return the frequencies in rad/s, and a table of the other columns for each zone."""
    zones: list[list[list[float]]] = []
    for k, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("VARIABLES") and "rad/s" not in line:
            raise ValueError(f"{path.name}: the first column is {line[10:].strip()}; it must be w (rad/s)")
        if line.lower().lstrip().startswith("zone"):
            if not re.search(title, line):
                raise ValueError(f"{path.name} line {k}: unknown zone")
            zones.append([])
        elif zones and line.strip():
            try:
                zones[-1].append([float(x) for x in line.split()])
            except ValueError:
                raise ValueError(f"{path.name} line {k}: expected numbers") from None
    try:
        tables = [np.array(z) for z in zones]
        w = tables[0][:, 0]
        if any(t.shape != tables[0].shape or (t[:, 0] != w).any() for t in tables):
            raise IndexError
    except (IndexError, ValueError):
        raise ValueError(f"{path.name}: the zones have different frequencies") from None
    return w, [t[:, 1:] for t in tables]
