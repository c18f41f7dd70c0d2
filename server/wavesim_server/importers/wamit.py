"""Reader for WAMIT's numeric output: NAME.1 (added mass, damping), .3 (exciting force), .4 (motion), .hst, .mmx.

The files contain dimensionless numbers (WAMIT User Manual, ch. 4): A/(rho L^k), B/(rho w L^k), X/(rho g a L^m), C/(rho g
L^k). Phases lead the elevation at the body's origin. The first column is the period, unless the user states otherwise;
a period of zero means infinite frequency, and a negative period means zero frequency.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_server.importers import panel_results
from wavesim_server.importers.model_draft import ModelDraft

SUFFIXES = (".1", ".3", ".4", ".hst", ".mmx")
_ROTATIONAL = np.array([0, 0, 0, 1, 1, 1])


def read(path: Path, draft: ModelDraft) -> panel_results.PanelResults:
    """Return the results from all files of a run; ``path`` is any one of them. Raises ValueError, naming the file, if a
    file is invalid.
    """
    beside = {s: path.with_suffix(s) for s in SUFFIXES}
    if not beside[".1"].exists():
        raise ValueError(f"missing {beside['.1'].name} (added mass and damping) in the same folder")
    if not any(beside[s].exists() for s in (".3", ".4")):
        raise ValueError(
            f"missing {beside['.3'].name} (exciting force) or {beside['.4'].name} (motion) in the same folder"
        )
    mass, length, gravity = _read_mass_matrix(beside[".mmx"]) if beside[".mmx"].exists() else (None, 0.0, 0.0)
    length = length or _required_number(draft, "length")
    gravity = gravity or _required_number(draft, "gravity")
    density = _required_number(draft, "water-density")
    column = draft.settings.get("wave-column", "period")
    if "wave-column" in draft.settings:
        draft.used_settings.add("wave-column")
    if column not in ("period", "frequency"):
        raise ValueError(f"--set wave-column={column}: use period or frequency")
    found = panel_results.PanelResults(density=density)
    found.notes = (f"the first column of {path.stem}.1 was read as the wave {column}",)
    if mass is not None and np.diag(mass).min() > 0.0:
        found.rigid_body = density * mass * panel_results.AXIS_SIGN_PRODUCTS
    found.coefficients = _read_radiation(beside[".1"], column, density, length)
    if beside[".3"].exists():
        found.operators = _read_wave_response(
            beside[".3"], column, density * gravity * length ** (2.0 + _ROTATIONAL), "force"
        )
    else:
        found.operators = _read_wave_response(beside[".4"], column, length ** (-1.0 * _ROTATIONAL), "motion")
    if beside[".hst"].exists():
        c = np.zeros((6, 6))
        for i, j, value in _numbers(beside[".hst"], 3):
            c[_dof(beside[".hst"], i), _dof(beside[".hst"], j)] = value
        power = 2.0 + np.add.outer(_ROTATIONAL, _ROTATIONAL)
        found.stiffness = density * gravity * length**power * c * panel_results.AXIS_SIGN_PRODUCTS
    return found


def _required_number(draft: ModelDraft, key: str) -> float:
    given = draft.require_numbers(key, 1)
    return given[0] if given is not None else 1.0  # a missing value is refused at the end, together with all other gaps


def _numbers(path: Path, least: int) -> list[list[float]]:
    """Return the rows of numbers that follow a header line."""
    rows = []
    for k, line in enumerate(path.read_text().splitlines(), 1):
        try:
            row = [float(word) for word in line.split()]
        except ValueError:
            if k == 1:
                continue
            raise ValueError(f"{path.name} line {k}: expected numbers") from None
        if row and len(row) < least:
            raise ValueError(f"{path.name} line {k} has {len(row)} numbers; at least {least} are needed")
        if row:
            rows.append(row)
    if not rows:
        raise ValueError(f"{path.name} is empty")
    return rows


def _dof(path: Path, number: float) -> int:
    if number not in range(1, 7):
        raise ValueError(f"{path.name} contains mode {number:g}; a single rigid body has only modes 1 to 6")
    return int(number) - 1


def _frequency(value: float, column: str) -> float:
    """Return the frequency in rad/s for a value in the first column. The value may also stand for infinite or zero
    frequency.
    """
    if column == "period":
        return np.inf if value == 0.0 else 0.0 if value < 0.0 else 2.0 * np.pi / value
    return np.inf if value < 0.0 else value


def _read_radiation(path: Path, column: str, density: float, length: float) -> panel_results.RadiationCoefficients:
    found: dict[float, Array] = {}
    for value, i, j, *ab in _numbers(path, 4):
        w, at = _frequency(value, column), (_dof(path, i), _dof(path, j))
        scale = density * length ** (3.0 + _ROTATIONAL[at[0]] + _ROTATIONAL[at[1]])
        m = found.setdefault(w, np.zeros((2, 6, 6)))
        m[0][at] = scale * ab[0]
        if 0.0 < w < np.inf:
            if len(ab) < 2:
                raise ValueError(f"{path.name} has no damping at {w:.4g} rad/s")
            m[1][at] = scale * w * ab[1]
    infinite = found.pop(np.inf, None)
    found.pop(0.0, None)
    a, b = (np.array([m[k] for m in found.values()]) for k in (0, 1))
    return panel_results.make_coefficients(list(found), a, b, None if infinite is None else infinite[0])


def _read_wave_response(path: Path, column: str, scale: Array, use: str) -> panel_results.PanelOperators:
    """Read force or motion operators; entries that are missing for a frequency and heading are zero."""
    found: dict[tuple[float, float], Array] = {}
    for value, heading, i, _, _, real, imaginary, *_ in _numbers(path, 7):
        x = found.setdefault((_frequency(value, column), heading), np.zeros(6, complex))
        k = _dof(path, i)
        x[k] = scale[k] * (real + 1j * imaginary)
    w, headings = (sorted({key[k] for key in found if 0.0 < key[0] < np.inf}) for k in (0, 1))
    if lacking := [(a, b) for a in w for b in headings if (a, b) not in found]:
        raise ValueError(f"{path.name} lacks {lacking[0][0]:.4g} rad/s at the heading {lacking[0][1]:g} deg")
    response = np.array([[found[a, b] for b in headings] for a in w]).transpose(2, 0, 1)
    return panel_results.make_operators(w, np.radians(headings), response, use)


def _read_mass_matrix(path: Path) -> tuple[Array, float, float]:
    """Return the mass matrix divided by the density, the length scale, and gravity."""
    text = path.read_text()
    mass = np.zeros((6, 6))
    said = re.search(r"Gravity:\s*(\S+)\s+Length scale:\s*(\S+)", text)
    if said is None:
        raise ValueError(f"{path.name} does not contain the gravitational acceleration and the length scale")
    rows = re.findall(r"^\s*([1-6])\s+([1-6])\s+([-+.\dEe]+)(?:\s.*)?$", text, re.MULTILINE)
    for i, j, value in rows[:36]:
        mass[int(i) - 1, int(j) - 1] = float(value)
    return mass, float(said[2]), float(said[1])
