"""Report of a model from a mesh: the source and the uncertainty of each number, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wavesim_studies.from_mesh.model_builder import BuiltModel, VehicleParts
from wavesim_studies.from_mesh.steps import StepTime

#: keys of the sheet and their names
LABELS = {
    "mass_kg": "mass (kg)",
    "displacement_kg": "displacement when submerged (kg)",
    "net_buoyancy_N": "net buoyancy when submerged (N)",
    "draft_m": "draft (m)",
    "metacentric_height_m": "metacentric height (m)",
    "natural_periods_s": "natural periods (s)",
    "full_speed_m_s": "full speed (m/s)",
    "turning_diameter_m": "diameter of the turning circle (m)",
    "turning_rate_deg_s": "rate of turn (deg/s)",
    "bollard_pull_N": "bollard pull (N)",
    "roll_at_rest_deg": "roll at rest (deg)",
    "pitch_at_rest_deg": "pitch at rest (deg)",
    "straight_line_stable": "holds a straight course",
    "upright": "stays upright",
}


def sheet_lines(sheet: dict[str, Any]) -> list[str]:
    """Return the figures of a model as lines of text."""
    return [f"{LABELS.get(k, k):34} {value_text(v)}" for k, v in sheet.items()]


def value_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {'-' if v is None else v}" for k, v in value.items())
    return "-" if value is None else str(value)


def page(parts: VehicleParts, built: BuiltModel, sheet: dict[str, Any], times: Sequence[StepTime]) -> str:
    """Return the report as Markdown."""
    lines = [f"# {parts.name}: model from {parts.file}", ""]
    lines += ["Every coefficient is computed or estimated from the mesh. Nothing was measured.", ""]
    lines += ["## Behaviour", "", "| figure | value |", "|---|---|"]
    lines += [f"| {LABELS.get(k, k)} | {value_text(v)} |" for k, v in sheet.items()]
    lines += ["", "## Where each number comes from", ""]
    lines += [f"- {_cell(note)}" for note in parts.notes]
    lines += ["", "| thruster or fin | source |", "|---|---|"]
    lines += [f"| {t.name} | {_cell(t.source)} |" for t in parts.thrusters]
    lines += [f"| {f.name} | {_cell(f.source)} |" for f in parts.fins]
    lines += ["", "## Uncertainty", ""]
    lines += ["The standard deviations are relative. They belong to log-normal distributions.", ""]
    lines += ["| coefficient | value (SI) | deviation | source |", "|---|---|---|---|"]
    lines += [
        f"| `{v.path}` | {v.value:.4g} | {100.0 * v.sd / abs(v.value):.0f} % | {_cell(v.source)} |"
        for v in built.values
    ]
    if parts.added.table:
        head, *rows = parts.added.table
        lines += ["", "## Convergence of the added mass", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", "## Time of each step", "", "| step | s |", "|---|---|"]
    lines += [f"| {t.name} | {t.seconds:.1f} |" for t in times]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")
