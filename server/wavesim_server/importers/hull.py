"""Hull from the result tables of a panel code: added mass, radiation memory, restoring, and the response operators in a
separate file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import capytaine, hydra, nemoh, panel_results, retardation, wamit
from wavesim_server.importers.model_draft import ModelDraft, format_numbers


def is_panel_output(path: Path) -> bool:
    """Return whether a path is the output of a panel code."""
    if path.is_dir():
        return any(p.name.lower() == "nemoh.cal" for p in path.iterdir())
    return path.suffix.lower() in (".nc", ".nc4", ".json", *wamit.SUFFIXES)


def read(path: Path, settings: dict[str, str], angles: str | None) -> ModelDraft:
    """Return the hull from a Capytaine NetCDF file, a HydRA JSON file, a NEMOH folder, or the WAMIT files (``path`` is
    any one of them).

    Raises ConfigError, with the reason, if the results cannot be imported.
    """
    try:
        return _read(path, settings, angles)
    except ValueError as error:
        raise ConfigError(str(error), str(path)) from None


def _read(path: Path, settings: dict[str, str], angles: str | None) -> ModelDraft:
    name = re.sub(r"[^A-Za-z0-9_-]", "-", path.stem if path.is_file() else path.resolve().name).lower()
    draft = ModelDraft(name, f"{path.name} (panel code)", settings, angles)
    draft.attributes |= {"type": "surface", "coriolis_added": "plane"}
    if path.is_dir():
        found = nemoh.read(path, draft)
    elif path.suffix.lower() in wamit.SUFFIXES:
        found = wamit.read(path, draft)
    elif path.suffix.lower() == ".json":
        found = hydra.read(path)
    else:
        found = capytaine.read(path, draft)
    draft.notes += found.notes
    size = draft.require_numbers("size", 3)
    if size is not None:
        draft.add("box", length=f"{size[0]:g} m", width=f"{size[1]:g} m", height=f"{size[2]:g} m")
    _add_masses(draft, found)
    drag = draft.require_numbers("linear-drag", 6)
    if "active" in settings:
        active = draft.require_text("active")
        draft.attributes["active"] = active or ""
    if path.suffix.lower() in wamit.SUFFIXES:
        depth = draft.require_numbers("origin-depth", 1)
        found.depth = depth[0] if depth is not None else 0.0
    stiffness = found.stiffness
    if stiffness is None:
        given = draft.require_numbers("restoring", 36)
        stiffness = np.array(given).reshape(6, 6) if given is not None else np.zeros((6, 6))
    if draft.missing or (found.infinite is None and (found.coefficients is None or found.operators is None)):
        return draft
    found.stiffness = stiffness
    if found.infinite is not None:
        _add_restoring(draft, stiffness, found.depth)
        memory, note = hydra.identify_memory(found, path.name)
        draft.notes.append(note)
        _add_fluid(draft, found, found.infinite, memory, drag or [])
    else:
        _add_hydrodynamics(draft, found, drag or [])
    return draft


def add_panel_results(draft: ModelDraft, found: panel_results.PanelResults, linear_drag: Sequence[float]) -> None:
    """Add the masses, the restoring, the fluid memory and the wave forces of a hull to a model, for results that are
    complete. Raises ValueError if the tables do not determine the memory.
    """
    _add_masses(draft, found)
    _add_hydrodynamics(draft, found, linear_drag)


def _add_hydrodynamics(draft: ModelDraft, found: panel_results.PanelResults, linear_drag: Sequence[float]) -> None:
    """Add <restoring>, <added-mass>, <linear-drag>, <radiation> and <rao>."""
    assert found.coefficients is not None
    assert found.stiffness is not None
    _add_restoring(draft, found.stiffness, found.depth)
    memory = retardation.identify_memory(found.coefficients)
    _add_fluid(draft, found, memory.infinite, memory, linear_drag)


def _add_fluid(
    draft: ModelDraft,
    found: panel_results.PanelResults,
    infinite: Floats,
    memory: retardation.RadiationMemory | None,
    linear_drag: Sequence[float],
) -> None:
    draft.matrix("added-mass", infinite)
    draft.add("linear-drag", diagonal=format_numbers(*linear_drag))
    if memory is not None:
        add_radiation(draft, memory)
    if found.density:
        draft.notes.append(
            f"the tables are for water of {found.density:g} kg/m3; set <world density=...> to this value"
        )
    if found.operators is None:
        return
    w = found.operators.frequencies
    draft.notes.append(
        f"the operators cover wave periods from {2 * np.pi / w[-1]:.3g} to {2 * np.pi / w[0]:.3g} s; for other periods, the values at the nearest end of this range are used"
    )
    file = f"{draft.name}.rao.csv"
    draft.files[file] = panel_results.operators_csv(found.operators)
    draft.add("rao", file=file, use=found.operators.use)


def _add_masses(draft: ModelDraft, found: panel_results.PanelResults) -> None:
    """Add <mass> and <rigid-body> or <inertia>, from the file or from the user's values."""
    if found.rigid_body is not None:
        m = 0.5 * (found.rigid_body + found.rigid_body.T)
        if m[0, 0] > 0.0 and np.linalg.eigvalsh(m).min() > 0.0:
            mass = m[0, 0]
            draft.add(
                "mass",
                value=f"{mass:.12g} kg",
                centre=format_numbers(m[1, 5] / mass, -m[0, 5] / mass, m[0, 4] / mass) + " m",
            )
            draft.matrix("rigid-body", m)
            return
        draft.notes.append(
            "the mass matrix in the file has no inertia about some axes; the command uses the values from the options"
        )
    mass_, centre, inertia = (
        draft.require_numbers("mass", 1),
        draft.require_numbers("centre", 3),
        draft.require_numbers("inertia", 3),
    )
    if mass_ is not None and centre is not None:
        draft.add("mass", value=f"{mass_[0]:.12g} kg", centre=format_numbers(*centre) + " m")
    if inertia is not None:
        draft.add("inertia", xx=f"{inertia[0]:.12g}", yy=f"{inertia[1]:.12g}", zz=f"{inertia[2]:.12g}")


def _add_restoring(draft: ModelDraft, g: np.ndarray, depth: float) -> None:
    """Add the restoring columns for heave, roll and pitch. The other columns are set to zero, because they come from
    numerical noise of the mesh or from a mooring.
    """
    g = g.copy()
    size = np.sqrt(np.abs(np.diag(g)))
    size[size == 0.0] = size.max() if size.max() else 1.0
    for j in (0, 1, 5):
        if np.abs(g[:, j] / (size * size[j])).max() > 1e-3:
            draft.unused.append(f"stiffness in {panel_results.DOFS[j]}: {format_numbers(*g[:, j])}")
        g[:, j] = 0.0
    element = etree.Element("restoring", {"z": f"{depth:g} m"})
    element.text = "\n" + "\n".join("      " + format_numbers(*row) for row in g) + "\n    "
    draft.elements.append(element)


def add_radiation(draft: ModelDraft, memory: retardation.RadiationMemory) -> None:
    """Add <radiation>, and a note about the fit error."""
    if len(memory.frequencies):
        element = draft.add("radiation")
        for k, w in enumerate(memory.frequencies):
            etree.SubElement(
                element,
                "oscillator",
                frequency=f"{w:.9g} rad/s",
                damping=format_numbers(*memory.damping[k]),
                coupling=format_numbers(*memory.coupling[k]),
            )
        draft.notes.append(
            f"radiation memory: {len(memory.frequencies)} oscillators, least squares in the frequency domain, passive; slowest "
            f"pole {memory.poles.real.max():.3g} 1/s"
        )
    for (i, j), (rms, damping, added) in memory.errors.items():
        draft.notes.append(
            f"radiation {panel_results.DOFS[i]}-{panel_results.DOFS[j]}: damping error {100 * rms:.1f} % rms and {100 * damping:.1f} % "
            f"maximum; added-mass error {100 * added:.1f} % maximum. Errors are relative to the largest value in the table"
        )
