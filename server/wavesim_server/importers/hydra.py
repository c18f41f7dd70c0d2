"""Reader for the result file of HydRA (`NAME_hydra.json`), the panel code that Panisim/Makara uses.

The matrices in the file have the axes x forward, y to port and z up; Panisim converts them to z down, and so does this
reader. In `w`, -1 stands for infinite frequency and 0 for zero frequency. AM and BD have the dimensions frequency, row,
column, group of headings and speed.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import retardation
from wavesim_server.importers.panel_results import AXIS_SIGN_PRODUCTS, PanelResults, make_coefficients

TAKEN = "added mass at infinite frequency and restoring"


def read(path: Path) -> PanelResults:
    """Return the added mass, damping, restoring and rigid-body mass matrix of a result file, in body axes."""
    try:
        data = json.loads(path.read_text())
        infinite, stiff = (np.array(data[k], float).reshape(6, 6) for k in ("A_inf", "C"))
        rigid = np.array(data["M"], float).reshape(6, 6) if "M" in data else None
        w = np.array(data.get("w", []), float).ravel()
        waves = w > 0.0
        added, damping = (
            np.array(data.get(k, []), float).reshape(len(w), 6, 6, -1)[waves, :, :, 0] if waves.any() else None
            for k in ("AM", "BD")
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the file: {error}", str(path)) from None
    except KeyError as error:
        raise ConfigError(f"missing key {error}: this is not a HydRA result file", str(path)) from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"not a valid HydRA result file: {error}", str(path)) from None
    stiff = stiff * AXIS_SIGN_PRODUCTS
    stiff[np.abs(stiff) < 1e-12 * np.abs(stiff).max()] = 0.0  # rounding errors
    if not np.isfinite(infinite).all() or not np.isfinite(stiff).all():
        raise ConfigError("some values are not finite", str(path))
    coefficients = None
    if added is not None and damping is not None and damping.any():
        coefficients = make_coefficients(w[waves], added, damping, infinite)
    return PanelResults(
        coefficients=coefficients,
        stiffness=stiff,
        rigid_body=None if rigid is None else rigid * AXIS_SIGN_PRODUCTS,
        notes=(
            f"{path.name}: its matrices were converted from axes with y to port and z up to axes with y to starboard and "
            "z down",
        ),
        infinite=infinite * AXIS_SIGN_PRODUCTS,
    )


def identify_memory(found: PanelResults, name: str) -> tuple[retardation.RadiationMemory | None, str]:
    """Return the radiation memory that follows from the damping, and a note; None if the file determines no memory."""
    if found.coefficients is None:
        return None, f"from {name}: {TAKEN}, but not damping and waves"
    try:
        memory = retardation.identify_memory(found.coefficients)
    except ValueError as error:
        return None, f"from {name}: {TAKEN}, but not damping and waves, because {error}"
    return memory, f"from {name}: {TAKEN}, and radiation damping, but not waves"
