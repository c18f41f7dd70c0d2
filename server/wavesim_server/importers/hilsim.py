"""Reader for vessels from kjetilbl/hilsim (Ødegaard and Børs-Lind 2017), term by term as `vessel.cpp` computes them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.model_draft import SETTINGS, ModelDraft, TrackedTable, format_numbers

#: hilsim's nonlinear damping terms, each with the name of the corresponding derivative in a WaVeSim model
# (a hilsim name with two factors ends with the factor of the column; the factor before it stands for an absolute value)
DAMPING = {
    "X_uuu": "X_uuu",
    "Y_vvv": "Y_vvv",
    "Y_rv": "Y_v_ar",
    "Y_vr": "Y_r_av",
    "Y_rr": "Y_r_ar",
    "Y_rrr": "Y_rrr",
    "M_qq": "M_q_aq",
    "N_vvv": "N_vvv",
    "N_rv": "N_v_ar",
    "N_vr": "N_r_av",
    "N_rr": "N_r_ar",
    "N_rrr": "N_rrr",
}
#: derivative for each element of hilsim's Coriolis matrix; each element is multiplied by u
CORIOLIS = {"26": "Y_ur", "35": "Z_uq", "46": "K_ur", "55": "M_uq", "66": "N_ur"}
#: keys that hilsim reads but does not use
# (cross-flow replaces the damping of sway and yaw by v alone)
UNUSED = ("x_g", "y_g", "z_g", "X_v", "X_vv", "X_vvv", "surge_max")
_PAIRS = [(i, j) for i in range(6) for j in range(i)]


def read(path: Path, data: dict[str, Any], settings: dict[str, str], angles: str | None) -> ModelDraft:
    """Return the draft model. It contains masses, damping, ITTC friction, cross-flow (counted twice in sway, as in
    `vessel.cpp`), Coriolis terms as derivatives, restoring, wind, waves and two drives.

    hilsim's code adds one term that the file does not contain: a fluid-memory term scaled from another hull.
    """
    d = TrackedTable(data)
    draft = ModelDraft(path.stem.lower(), f"{path.name} (hilsim)", settings, angles)
    draft.attributes["type"] = "surface"
    size = draft.require_numbers("size", 3)
    if size is not None:
        draft.add("box", length=f"{size[0]:g} m", width=f"{size[1]:g} m", height=f"{size[2]:g} m")
    draft.add("mass", value=f"{d['m_11']:g} kg")
    _add_rigid_body(draft, np.array([[d[f"m_{i}{j}"] for j in range(1, 7)] for i in range(1, 7)], float))
    draft.matrix("added-mass", np.array([[d[f"{f}_{v}_dot"] for v in "uvwpqr"] for f in "XYZKMN"], float))
    d.ignore(*UNUSED)
    linear = np.zeros((6, 6))
    for i, f in enumerate("XYZKMN"):
        for j, v in enumerate("uvwpqr"):
            if (name := f"{f}_{v}") not in UNUSED:
                linear[i, j] = -d.get(name, 0.0)
    draft.matrix("linear-drag", linear)
    found = {ours: float(d[theirs]) for theirs, ours in DAMPING.items() if theirs in d}
    turning = {ours: -float(d.get(f"C_rb_{ij}", 0.0)) - float(d.get(f"C_a_{ij}", 0.0)) for ij, ours in CORIOLIS.items()}
    if any(turning.values()):
        draft.attributes["coriolis"] = "no"
        found |= turning
    if "X_uu_c" in d:
        d.ignore("X_uu")
        draft.add("surge-friction", factor=f"{-d['X_uu_c']:g} kg/m", residual="0.014", length=f"{d['L_pp']:g} m")
    else:
        found["X_u_au"] = float(d.get("X_uu", 0.0))
    if "C_d_2d" in d:
        d.ignore("Y_vv", "N_vv")
        density = draft.require_numbers("cross-flow-density", 1)
        if density is not None:
            c = 0.5 * density[0] * d["T"] * d["C_d_2d"]
            draft.add("cross-flow", length=f"{d['L_pp']:g} m", sway=f"{2 * c:.12g} kg/m2", yaw=f"{c:.12g} kg/m2")
    draft.derivatives(found)
    g = np.zeros((6, 6))
    g[2, 2], g[3, 3], g[4, 4], g[2, 4], g[4, 2] = (
        -d["Z_z"],
        -d["K_phi"],
        -d["M_theta"],
        -d["Z_theta"],
        -d["M_z"],
    )
    draft.matrix("restoring", g)
    frontal, lateral = float(d.get("A_Fw", 0.0)), float(d.get("A_Lw", 0.0))
    if frontal or lateral:
        others = ("s_H", "s_L", "CD_l_af_0", "CD_l_af_pi", "CD_t", "delta", "kappa")
        height, forward, *coefficients = (float(d.get(key, 0.0)) for key in others)
        draft.add(
            "wind-drag",
            frontal=f"{frontal:g} m2",
            lateral=f"{lateral:g} m2",
            length=f"{d['L_pp']:g} m",
            height=f"{height:g} m",
            forward=f"{forward:g} m",
            drag=format_numbers(*coefficients),
        )
    if "K_1_w" in d:
        draft.add("wave-filter", gain=format_numbers(*(d[f"K_{i}_w"] for i in range(1, 7))))
    k, low, high = d["K_thruster"] * 3600.0, d["n_min"] / 60.0, d["n_max"] / 60.0
    for side in (1, 2):
        t = draft.add(
            "thruster",
            name=f"thruster-{side}",
            position=format_numbers(d[f"l_x_{side}"], d[f"l_y_{side}"], 0.0) + " m",
            direction="1 0 0",
            law="shaft",
            minimum="0",
            maximum="1",
            motor=format_numbers(low, high - low),
            lag=f"{d['T_n']:g} s",
            coefficients=format_numbers(0.0, k, 0.0),
        )
        if "alpha_max" in d:
            limit = math.degrees(draft.angle(d["alpha_max"], "alpha_max"))
            etree.SubElement(
                t, "swivel", minimum=f"{-limit:.9g} deg", maximum=f"{limit:.9g} deg", lag=f"{d['T_alpha']:g} s"
            )
            etree.SubElement(t, "deflector", lag=f"{d['T_beta']:g} s")
    draft.notes.append("hilsim's code adds the fluid memory of another hull, but this file does not contain it")
    draft.record_unused(d)
    return draft


def _add_rigid_body(draft: ModelDraft, m: Floats) -> None:
    """Add M_RB. If the upper and lower halves of the matrix differ (hilsim accepts any matrix), use the half that the
    user specifies.
    """
    odd = [
        f"m_{i + 1}{j + 1} = {m[i, j]:g} and m_{j + 1}{i + 1} = {m[j, i]:g}" for i, j in _PAIRS if m[i, j] != m[j, i]
    ]
    if odd and (half := draft.require_text("rigid-body", f": {', '.join(odd)}")) is not None:
        if half not in ("upper", "lower"):
            raise ConfigError(f"--set rigid-body: {SETTINGS['rigid-body']}; got '{half}'")
        draft.notes.append(f"the halves of M_RB differ; the {half} half is used: {', '.join(odd)}")
        triangle = np.triu(m) if half == "upper" else np.tril(m)
        m = triangle + triangle.T - np.diag(np.diag(m))
    draft.matrix("rigid-body", m)
