"""Response amplitude operators from a plain table (CSV), which a spreadsheet or the post-processor of a panel code can
write.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import sin_cos
from wavesim_server.dynamics.types import Complexes

AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
DRIFT = ("drift_surge", "drift_sway", "drift_yaw")
COLUMNS = ("heading_deg", "frequency", *(f"{a}{part}" for a in AXES for part in ("", "_phase_deg")))
#: for each axis, the sign by which the response of a symmetric hull is multiplied when the same wave comes from the
#: other side
_MIRRORED = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
_MIRRORED_DRIFT = np.array([1.0, -1.0, -1.0])


def read_operator_table(path: Path) -> tuple[Floats, Floats, Complexes, Floats]:
    """Read a table of operators. Return the frequencies (f,) in rad/s, the headings (h,) in rad, the operators (6, f,
    h) and the mean drift (3, f, h).

    A header names the columns :data:`COLUMNS`, in any order. Each line has one heading and one frequency, with the
    amplitude and the phase for each axis. The three ``DRIFT`` columns are either all present or all absent. Lines that
    begin with # are ignored. Headings cover the circle in equal steps from 0 (following sea). For a hull with
    port-starboard symmetry, headings from 0 to 180 deg are sufficient, because the other half is their mirror image.
    Raises OSError if the file cannot be read, and ValueError if it is not such a table.
    """
    with path.open(newline="", encoding="utf-8") as file:
        lines = [(k, line) for k, line in enumerate(file, 1) if line.strip() and not line.startswith("#")]
    if not lines:
        raise ValueError("the table is empty")
    rows = [[cell.strip() for cell in row] for row in csv.reader(line for _, line in lines)]
    names = rows[0]
    drifts = [name for name in DRIFT if name in names]
    if missing := [n for n in (*COLUMNS, *(DRIFT if drifts else ())) if n not in names]:
        raise ValueError(f"missing column {', '.join(missing)}")
    if unknown := [n for n in names if n not in (*COLUMNS, *DRIFT)] or [n for n in set(names) if names.count(n) > 1]:
        raise ValueError(
            f"unexpected column {1 + names.index(unknown[0])}: use {', '.join((*COLUMNS, *DRIFT))}, once each"
        )
    values = np.empty((len(rows) - 1, len(names)))
    for k, row in enumerate(rows[1:]):
        try:
            values[k] = [float(cell) for cell in row]
        except ValueError:
            raise ValueError(f"line {lines[k + 1][0]}: expected {len(names)} numbers") from None
    column = dict(zip(names, values.T, strict=True))
    headings, i = np.unique(column["heading_deg"], return_inverse=True)
    frequencies, j = np.unique(column["frequency"], return_inverse=True)
    if len(values) != len(headings) * len(frequencies) or len(set(zip(i.tolist(), j.tolist(), strict=True))) != len(
        values
    ):
        raise ValueError(
            f"the table has {len(values)} lines, but needs one for each combination of {len(headings)} headings and {len(frequencies)} frequencies"
        )
    response = np.empty((6, len(frequencies), len(headings)), complex)
    for k, axis in enumerate(AXES):
        sine, cosine = sin_cos(np.radians(column[f"{axis}_phase_deg"]))
        response[k, j, i] = column[axis] * cosine + 1j * (column[axis] * sine)
    drift = np.zeros((3, len(frequencies), len(headings)))
    for k, name in enumerate(drifts):
        drift[k, j, i] = column[name]
    if len(headings) > 1 and headings[0] == 0.0 and headings[-1] == 180.0:
        inner = slice(len(headings) - 2, 0, -1)
        response = np.concatenate([response, _MIRRORED[:, None, None] * response[:, :, inner]], axis=2)
        drift = np.concatenate([drift, _MIRRORED_DRIFT[:, None, None] * drift[:, :, inner]], axis=2)
        headings = np.concatenate([headings, 360.0 - headings[inner]])
    steps = np.diff([*headings, 360.0]) if headings[-1] < 360.0 else np.diff(headings)
    if headings[0] != 0.0 or not all(math.isclose(s, steps[0], abs_tol=1e-6) for s in steps):
        raise ValueError("the headings must run from 0 to 180 or 360 deg in equal steps")
    return frequencies, np.radians(headings), response, drift
