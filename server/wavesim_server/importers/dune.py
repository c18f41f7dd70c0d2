"""Reader for one section in DUNE's vsim-models.ini (LSTS; DUNE Simulator manual, sec. 4)."""

from __future__ import annotations

import configparser
import math
from pathlib import Path

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.model_draft import ModelDraft, TrackedTable, format_numbers

FIN_ANGLE = 0.4363  #: angle in rad at which a fin has its maximum force
PLANAR = ("ASV", "Boat")


def read(path: Path, section: str | None, settings: dict[str, str], angles: str | None) -> ModelDraft:
    """Return the draft model for one section of the file.

    Thrust, drag, lift, Coriolis and restoring have the same terms as in DUNE. The file contains the total inertia
    matrix, so M_RB is that matrix minus the added mass. Fin commands are fractions of 0.4363 rad (25 deg). Because DUNE
    moves its boats only in the horizontal plane, their sections do not contain usable values for the other axes, and
    the user must state which axes move.
    """
    parser = configparser.ConfigParser(inline_comment_prefixes=("#",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case: the documented way
    parser.read_string(path.read_text())
    names = [s.rpartition("/")[2] for s in parser.sections() if "Model/" in s and "Mass" in parser[s]]
    if section not in names:
        raise ConfigError(f"select one of the models in this file with --section: {', '.join(names)}", str(path))
    name = next(k for k in parser.sections() if k.rpartition("/")[2] == section)
    s = TrackedTable(parser[name], f"[{name}]")

    def numbers(key: str) -> list[float]:
        try:
            return [float(n) for n in s[key].replace("\n", " ").split(",") if n.strip()]
        except (KeyError, ValueError):
            raise ConfigError(f"[{name}] lacks numbers for '{key}'", str(path)) from None

    kind = s.get("Type", "")
    draft = ModelDraft(section, f"{path.name}, section {name} (DUNE simulator)", settings, angles)
    draft.attributes["type"] = "surface" if kind in PLANAR else "underwater"
    if kind in PLANAR and (active := draft.require_text("active")) is not None:
        draft.attributes["active"] = " ".join(active.replace(",", " ").split())
    length, width, height = numbers("Volume")
    draft.add("box", length=f"{length:g} m", width=f"{width:g} m", height=f"{height:g} m")
    mass, lift = numbers("Mass")[0], numbers("Buoyancy")
    draft.add("mass", value=f"{mass:g} kg", centre=format_numbers(*(-x for x in lift)) + " m")
    given = "Added Mass Coefficients" in s
    added = [-x for x in numbers("Added Mass Coefficients")] if given else draft.require_numbers("added-mass", 6)
    if added is not None:
        draft.matrix("rigid-body", np.diag(np.array(numbers("Inertial Matrix")) - added))
        draft.matrix("added-mass", np.diag(added))
    draft.add("buoyancy", volume=f"{length * width * height:.12g} m3")
    for tag, key in (("linear-drag", "Linear Drag Coefficients"), ("quadratic-drag", "Quadratic Drag Coefficients")):
        m, c = np.zeros((6, 6)), [-x for x in numbers(key)]
        m[range(6), range(6)] = c[:6]
        m[1, 5], m[2, 4], m[4, 2], m[5, 1] = c[6:]
        draft.matrix(tag, m)
    if "Body Lift Coefficients" in s:
        c = [-x for x in numbers("Body Lift Coefficients")]
        m = np.zeros((6, 6))
        m[1, 1], m[1, 5], m[2, 2], m[2, 4], m[4, 2], m[4, 4], m[5, 1], m[5, 5] = c
        draft.matrix("lift", m)
    limit = numbers("Engine Max Force")[0]
    for k in range(int(numbers("Engine Count")[0])):
        b1, b2, rpm = numbers(f"Engine Parameters {k}")
        psi, theta = numbers(f"Engine Orientation {k}")  # rad, by DUNE's manual
        along = math.cos(psi) * math.cos(theta), math.sin(psi) * math.cos(theta), math.sin(theta)
        draft.add(
            "thruster",
            name=f"engine-{k}",
            position=format_numbers(*numbers(f"Engine Position {k}")) + " m",
            direction=format_numbers(*np.round(along, 12)),
            law="shaft",
            minimum="-1",
            maximum="1",
            lag="0 s",
            motor=f"0 {rpm / 60:.12g}",
            coefficients=format_numbers(0.0, b1, -b2),
            inflow="total",
            thrust_limit=f"{limit:g} N",
        )
    for k in range(int(numbers("Fin Count")[0])):
        force, at = np.array(numbers(f"Fin Force {k}")), numbers(f"Fin Position {k}")
        per = np.concatenate([force, np.cross(at, force)]) / 2 / FIN_ANGLE
        draft.add(
            "fin",
            name=f"fin-{k}",
            position=format_numbers(*at) + " m",
            normal=format_numbers(*force / np.linalg.norm(force)),
            law="coefficients",
            per_angle=format_numbers(*per),
            speed="total",
            limit=f"{FIN_ANGLE} rad",
        )
    s.ignore("Integration Method")  # a setting of the solver
    draft.record_unused(s)
    return draft
