"""Files for the design of controllers in other programs: linear models, and the matrices of the equation of motion.

The suffix selects the format: ``.json``, ``.mat`` (MATLAB and Octave) or ``.npz`` (NumPy).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import savemat

from wavesim_sdk.terminal_text import finite_json
from wavesim_server.dynamics import parameter_rows as P
from wavesim_studies.linear_models.linearisation import LinearModel, lags
from wavesim_studies.linear_models.trim import free_motion
from wavesim_world.config import Model

#: parts of the equation of motion that matrices cannot represent, by the attribute of the model
OTHER_TERMS = {
    "lift": "body lift per unit of surge speed",
    "fading_drag": "linear drag that decreases with speed",
    "cross_flow": "cross-flow drag",
    "surge_friction": "surge friction",
    "body_lift": "lift and drag of the hull as a slender wing",
    "derivatives": "named derivatives",
    "memory": "fluid memory",
    "radiation": "radiated waves",
    "load": "loads",
    "hull": "buoyancy of the hull mesh",
    "wind_drag": "wind forces",
    "wave_filter": "wave forces",
    "rao": "wave forces",
    "fin": "forces of the fins",
    "ballast": "ballast tanks",
    "actuator": "actuators from other packages",
    "term": "terms from other packages",
}


def linear_model_content(model: LinearModel) -> dict[str, Any]:
    """Return the arrays and names of a linear model, as its files contain them."""
    trim, poles = model.trim, np.linalg.eigvals(model.A)
    return {
        "model": trim.model,
        "speed": trim.speed,
        "A": model.A,
        "B": model.B,
        "B_force": model.B_force,
        "states": list(model.states),
        "state_units": list(model.state_units),
        "inputs": list(model.inputs),
        "input_units": list(model.input_units),
        "trim_state": trim.state,
        "trim_memory": trim.memory,
        "trim_actuators": trim.actuators,
        "poles_real": poles.real,
        "poles_imag": poles.imag,
    }


def fossen_matrices(model: Model) -> dict[str, Any]:
    """Return the matrices of M nu_r' + C(nu_r) nu_r + (D_L + D_Q abs(nu_r)) nu_r + g(eta) = tau, in SI units about the
    origin of the body frame.

    ``M_RB`` and ``M_A`` are the inertia matrices, ``D_L`` and ``D_Q`` the drag matrices; C follows from M_RB + M_A. ``W``
    and ``B`` are weight and buoyancy in N, ``r_G`` and ``r_B`` their centres in m. For hulls with linear restoring, ``G``
    contains the 6x6 restoring matrix. ``T`` (6, thrusters) contains the force and moment per unit of thrust.
    ``not_in_matrices`` lists the terms of the model that the matrices do not represent.
    """
    motion = free_motion(model)
    p, thrusters = motion.form.compiled.params, len(model.thruster)

    def matrix(row: int) -> Any:
        return p[row : row + 36].reshape(6, 6).copy()

    G = np.zeros((6, 6))
    G[:, 2:5] = p[P.RESTORING : P.RESTORING + 18].reshape(6, 3)
    total, added = matrix(P.TOTAL_INERTIA), matrix(P.ADDED_MASS)
    weight = float(p[P.WEIGHT])
    found: dict[str, Any] = {
        "model": model.name,
        "M_RB": total - added,
        "M_A": added,
        "D_L": matrix(P.LINEAR_DRAG),
        "D_Q": matrix(P.QUADRATIC_DRAG),
        "W": weight,
        "B": float(p[P.FULL_BUOYANCY]),
        "r_G": p[P.WEIGHT_MOMENT : P.WEIGHT_MOMENT + 3] / weight if weight else np.zeros(3),
        "r_B": p[P.FULL_BUOYANCY_CENTRE : P.FULL_BUOYANCY_CENTRE + 3].copy(),
        "T": p[P.THRUSTER_WRENCH : P.THRUSTER_WRENCH + 6 * thrusters].reshape(-1, 6).T.copy(),
        "thrusters": [t.name for t in model.thruster],
        "actuators": [a.name for a in motion.actuators],
        "actuator_minimum": np.array([a.minimum for a in motion.actuators]),
        "actuator_maximum": np.array([a.maximum for a in motion.actuators]),
        "actuator_lag": lags(model),
        "not_in_matrices": [text for name, text in OTHER_TERMS.items() if getattr(model, name)],
    }
    if model.restoring is not None:
        found["G"] = G
    return found


def write_content(content: dict[str, Any], path: Path) -> None:
    """Write arrays, numbers, texts and lists of texts to a file in the format of its suffix."""
    suffix = path.suffix.lower()
    if suffix == ".json":
        path.write_text(finite_json({k: np.asarray(v).tolist() for k, v in content.items()}, indent=2) + "\n")
    elif suffix == ".mat":
        savemat(path, {k: np.array(v, dtype=object) if isinstance(v, list) else v for k, v in content.items()})
    else:
        arrays: dict[str, Any] = {k: np.asarray(v) for k, v in content.items()}
        np.savez(path, **arrays)
