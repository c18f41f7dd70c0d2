"""Tables of trims over a range of speeds."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.terminal_text import finite_json
from wavesim_studies.linear_models.trim import find_trim, free_motion
from wavesim_world.config import Model

MOST = 1000  #: largest number of speeds in a table


def speeds_of(first: float, last: float, step: float) -> tuple[float, ...]:
    """Return the speeds from ``first`` to ``last`` at intervals of ``step``, all in m/s.

    Raise ConfigError if the step does not lead from the first to the last speed, or if there are more than 1000 speeds.
    """
    if step == 0.0 or (last - first) * step < 0.0:
        raise ConfigError(f"a step of {step:g} m/s does not lead from {first:g} to {last:g} m/s")
    count = int((last - first) / step + 1e-9) + 1
    if count > MOST:
        raise ConfigError(f"{count} speeds are more than the largest number, {MOST}; choose a larger step")
    return tuple(round(first + k * step, 12) for k in range(count))


def trim_rows(model: str | Model, speeds: Sequence[float], depth: float | None) -> list[dict[str, Any]]:
    """Return one row for each speed over ground in m/s.

    A row contains ``speed_m_s``, ``roll_deg``, ``pitch_deg``, ``yaw_deg``, ``depth_m``, and ``actuators`` with a value for
    each ``NAME (UNIT)``. Where there is no trim, the row contains the speed and the ``problem``.
    """
    motion, rows = free_motion(model), []
    for speed in speeds:
        row: dict[str, Any] = {"speed_m_s": speed}
        try:
            found = find_trim(motion, speed, depth)
        except ConfigError as error:
            row["problem"] = error.args[0]
        else:
            roll, pitch, yaw = np.degrees(found.attitude)
            row |= {"roll_deg": roll, "pitch_deg": pitch, "yaw_deg": yaw, "depth_m": found.state[2]}
            row["actuators"] = {
                f"{n} ({u})" if u else n: v for n, u, v in zip(found.names, found.units, found.actuators, strict=True)
            }
        rows.append(row)
    return rows


def write_table(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the rows to a CSV or JSON file. In CSV, each actuator has a column, and rows without a trim have empty cells."""
    if path.suffix.lower() == ".json":
        path.write_text(finite_json(rows, indent=2, default=float) + "\n")
        return
    flat = [{k: v for k, v in row.items() if k != "actuators"} | row.get("actuators", {}) for row in rows]
    columns = list(dict.fromkeys(key for row in flat for key in row if key != "problem"))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*columns, "problem"])
        writer.writeheader()
        writer.writerows(flat)
