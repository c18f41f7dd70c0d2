"""Models from the parameter files of other simulators: DUNE, Panisim/Makara, hilsim, UUV Simulator/Gazebo.

Each reader gives a :class:`Draft`: attributes and elements of a <model>, and what the file does not say.
Nothing is guessed: a draft with gaps is refused with the list of them, and the user fills them in with
``--set``.  Angles without a unit are read as ``--angles`` says.
"""

from __future__ import annotations

import configparser
import csv
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lxml import etree

from wavesim_sdk.errors import ConfigError

Array = np.ndarray[Any, np.dtype[np.float64]]
FIN_ANGLE = 0.4363  #: DUNE: angle at which a fin has its greatest force, rad
FIN_ANGLE = 0.4363  #: DUNE: angle at which a fin has its greatest force, rad
FLIP = np.diag([1.0, -1.0, -1.0, 1.0, -1.0, -1.0])  #: forward-left-up to forward-starboard-down
#: what may be given by ``--set``, and its meaning
SETTINGS = {
    "mass": "mass in kg",
    "added-mass": "diagonal of the added mass, six numbers",
    "inertia": "moments of inertia about x, y, z in kg m2, three numbers",
    "size": "length, width, height in m, three numbers",
    "thrusters": "thrusters as `x y z dx dy dz max` in m and N, seven numbers each",
    "cross-flow-density": "density of the water in kg/m3 that the drag was made for",
}


def _text(*numbers: float) -> str:
    return " ".join(f"{float(n) + 0.0:.12g}" for n in numbers)


@dataclass
class Draft:
    """A model in the making."""

    name: str
    source: str
    settings: dict[str, str]
    angles: str | None
    attributes: dict[str, str] = field(default_factory=dict)
    elements: list[etree._Element] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, tag: str, text: str = "", **attributes: str) -> etree._Element:
        """An element of the model."""
        element = etree.Element(tag, attributes)
        element.text = text or None
        self.elements.append(element)
        return element

    def matrix(self, tag: str, m: Array) -> None:
        """A 6x6 element: its diagonal if it has nothing else."""
        if np.count_nonzero(m - np.diag(np.diag(m))) == 0:
            self.add(tag, diagonal=_text(*np.diag(m)))
        else:
            self.add(tag, "\n" + "\n".join("      " + _text(*row) for row in m) + "\n    ")

    def ask(self, key: str, count: int) -> list[float] | None:
        """Numbers that the user gave for what the file lacks; notes the gap otherwise."""
        if key not in self.settings:
            self.missing.append(f"--set {key}=...  ({SETTINGS[key]})")
            return None
        numbers = [float(n) for n in re.split(r"[\s,]+", self.settings[key].strip())]
        if count and len(numbers) != count:
            raise ConfigError(f"--set {key}: {SETTINGS[key]}; {len(numbers)} were given")
        return numbers

    def angle(self, value: float, where: str) -> float:
        """An angle of the file in rad, by the unit that the user names."""
        if self.angles is None:
            note = f"--angles deg or --angles rad  (the file gives no unit for {where})"
            if note not in self.missing:
                self.missing.append(note)
            return 0.0
        return math.radians(value) if self.angles == "deg" else value

    def xml(self, path: Path) -> str:
        """The models file; ConfigError with all gaps."""
        if self.missing:
            gaps = "\n  ".join(self.missing)
            raise ConfigError(f"the file does not say all that a model needs; give\n  {gaps}", str(path))
        root = etree.Element("models")
        model = etree.SubElement(root, "model", {"name": self.name, "source": self.source, **self.attributes})
        model.extend(self.elements)
        etree.indent(root)
        return etree.tostring(root, pretty_print=True, xml_declaration=True, encoding="utf-8").decode()


def read(path: Path, section: str | None, settings: dict[str, str], angles: str | None) -> str:
    """The models file for a parameter file of any known kind. ConfigError says what is wrong or missing."""
    unknown = [k for k in settings if k not in SETTINGS]
    if unknown:
        raise ConfigError(f"--set {unknown[0]}: unknown; allowed are {', '.join(SETTINGS)}")
    try:
        return _read(path, section, settings, angles)
    except KeyError as error:
        raise ConfigError(f"it lacks the key {error}", str(path)) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"it does not hold what such files hold: {error}", str(path)) from None


def _read(path: Path, section: str | None, settings: dict[str, str], angles: str | None) -> str:
    try:
        if path.is_dir():
            return _panisim(path, settings, angles)
        if path.suffix == ".ini":
            return _dune(path, section, settings, angles)
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read it: {error.strerror}", str(path)) from None
    except (yaml.YAMLError, configparser.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read it: {error}", str(path)) from None
    if isinstance(data, dict) and "m_11" in data:
        return _hilsim(path, data, settings, angles)
    if isinstance(data, dict) and ("Ma" in data or "hydro_coef" in data):
        return _uuv(path, data, settings, angles)
    raise ConfigError(
        "no known kind: a DUNE .ini, a Panisim folder, a hilsim or UUV Simulator YAML is needed", str(path)
    )


# ------------------------------------------------------------------ DUNE


def _dune(path: Path, section: str | None, settings: dict[str, str], angles: str | None) -> str:
    """A section of DUNE's vsim-models.ini (LSTS; DUNE Simulator manual, sec. 4).

    The thrust, drag, lift, Coriolis and restoring terms are DUNE's; the inertia matrix of the file is the total, so
    M_RB is it less the added mass. The fins take the angle as a share of 0.4363 rad (25 deg).
    """
    parser = configparser.ConfigParser(inline_comment_prefixes=("#",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case: the documented way
    parser.read_string(path.read_text())
    names = [s.rpartition("/")[2] for s in parser.sections() if "Model/" in s and "Mass" in parser[s]]
    if section not in names:
        raise ConfigError(f"name one of its models by --section: {', '.join(names)}", str(path))
    s = parser[next(k for k in parser.sections() if k.rpartition("/")[2] == section)]

    def numbers(key: str) -> list[float]:
        try:
            return [float(n) for n in s[key].replace("\n", " ").split(",") if n.strip()]
        except (KeyError, ValueError):
            raise ConfigError(f"[{s.name}] lacks numbers for '{key}'", str(path)) from None

    kind = s.get("Type", "")
    draft = Draft(section, f"{path.name}, section {s.name} (DUNE simulator)", settings, angles)
    draft.attributes["type"] = "surface" if kind in ("ASV", "Boat") else "underwater"
    length, width, height = numbers("Volume")
    draft.add("box", length=f"{length:g} m", width=f"{width:g} m", height=f"{height:g} m")
    mass, lift = numbers("Mass")[0], numbers("Buoyancy")
    draft.add("mass", value=f"{mass:g} kg", centre=_text(*(-x for x in lift)) + " m")
    given = "Added Mass Coefficients" in s
    added = [-x for x in numbers("Added Mass Coefficients")] if given else draft.ask("added-mass", 6)
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
        psi, theta = numbers(f"Engine Orientation {k}")  # DUNE's manual: rad
        along = math.cos(psi) * math.cos(theta), math.sin(psi) * math.cos(theta), math.sin(theta)
        draft.add(
            "thruster", name=f"engine-{k}", position=_text(*numbers(f"Engine Position {k}")) + " m",
            direction=_text(*np.round(along, 12)), law="shaft", minimum="-1", maximum="1", lag="0 s",
            motor=f"0 {rpm / 60:.12g}", coefficients=_text(0.0, b1, -b2), inflow="total", thrust_limit=f"{limit:g} N",
        )  # fmt: skip
    for k in range(int(numbers("Fin Count")[0])):
        force, at = np.array(numbers(f"Fin Force {k}")), numbers(f"Fin Position {k}")
        per = np.concatenate([force, np.cross(at, force)]) / 2 / FIN_ANGLE
        draft.add(
            "fin", name=f"fin-{k}", position=_text(*at) + " m", normal=_text(*force / np.linalg.norm(force)),
            law="coefficients", per_angle=_text(*per), speed="total", limit=f"{FIN_ANGLE} rad",
        )  # fmt: skip
    return draft.xml(path)


# ------------------------------------------------------------------ UUV Simulator, Gazebo, MarineGym


def _uuv(path: Path, d: dict[str, Any], settings: dict[str, str], angles: str | None) -> str:
    """Parameter sets in forward-left-up axes, as UUV Simulator writes them."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", str(d.get("model") or d.get("name") or path.stem)).lower()
    draft = Draft(name, f"{path.name} (forward-left-up axes turned to forward-starboard-down)", settings, angles)
    draft.attributes["type"] = "underwater"
    size = [d[k] for k in ("length", "width", "height")] if "length" in d else draft.ask("size", 3)
    if size is not None:
        draft.add("box", length=f"{size[0]:g} m", width=f"{size[1]:g} m", height=f"{size[2]:g} m")
    flip = FLIP[:3, :3]
    mass = [d["mass"]] if "mass" in d else draft.ask("mass", 1)
    if mass is not None:
        draft.add("mass", value=f"{mass[0]:g} kg", centre=_text(*flip @ d.get("cog", [0.0, 0.0, 0.0])) + " m")
    if "inertial" in d:
        i = d["inertial"]
        draft.add(
            "inertia", xx=f"{i['ixx']:g}", yy=f"{i['iyy']:g}", zz=f"{i['izz']:g}", xy=f"{-i['ixy'] + 0.0:g}",
            xz=f"{-i['ixz'] + 0.0:g}", yz=f"{i['iyz']:g}",
        )  # fmt: skip
    elif (three := draft.ask("inertia", 3)) is not None:
        draft.add("inertia", xx=f"{three[0]:g}", yy=f"{three[1]:g}", zz=f"{three[2]:g}")
    cob = d.get("cob", [0.0, 0.0, d.get("coBM", 0.0)])
    draft.add("buoyancy", volume=f"{d['volume']:.12g} m3", centre=_text(*flip @ cob) + " m")
    h = d.get("hydro_coef")
    if h:
        draft.matrix("added-mass", np.diag(np.array(h["added_mass"], float)))
        draft.matrix("linear-drag", np.diag(np.array(h["linear_damping"], float)))
        draft.matrix("quadratic-drag", np.diag(np.array(h["quadratic_damping"], float)))
    else:
        added = FLIP @ np.array(d["Ma"], float) @ FLIP
        draft.matrix("added-mass", 0.5 * (added + added.T))
        if "linear_damping" in d:
            draft.matrix("linear-drag", np.diag(-np.array(d["linear_damping"], float)))
        if "quad_damping" in d:
            draft.matrix("quadratic-drag", np.diag(-np.array(d["quad_damping"], float)))
        if "linear_damping_forward_speed" in d:
            draft.matrix("lift", -FLIP @ np.array(d["linear_damping_forward_speed"], float) @ FLIP)
    _thrusters(draft)
    return draft.xml(path)


def _thrusters(draft: Draft) -> None:
    """Thrusters that the user gives, since such files hold none with place and direction."""
    numbers = draft.ask("thrusters", 0)
    for k in range(len(numbers or ()) // 7):
        x, y, z, dx, dy, dz, most = (numbers or [])[7 * k : 7 * k + 7]
        draft.add(
            "thruster", name=f"thruster-{k}", position=_text(x, y, z) + " m", direction=_text(dx, dy, dz), law="force",
            minimum=f"{-most:g}", maximum=f"{most:g}", lag="0 s",
        )  # fmt: skip


# ------------------------------------------------------------------ hilsim


def _hilsim(path: Path, d: dict[str, Any], settings: dict[str, str], angles: str | None) -> str:
    """A vessel of kjetilbl/hilsim (Ødegaard and Børs-Lind 2017): 6x6 masses, linear damping, ITTC friction, cross-flow, restoring."""
    draft = Draft(path.stem.lower(), f"{path.name} (hilsim)", settings, angles)
    draft.attributes["type"] = "surface"
    size = draft.ask("size", 3)
    if size is not None:
        draft.add("box", length=f"{size[0]:g} m", width=f"{size[1]:g} m", height=f"{size[2]:g} m")
    draft.add("mass", value=f"{d['m_11']:g} kg")
    rigid = np.array([[d[f"m_{i}{j}"] for j in range(1, 7)] for i in range(1, 7)], float)
    draft.matrix("rigid-body", 0.5 * (rigid + rigid.T))
    added = np.array([[d[f"{f}_{v}_dot"] for v in "uvwpqr"] for f in "XYZKMN"], float)
    draft.matrix("added-mass", added)
    linear = np.zeros((6, 6))
    for i, f in enumerate("XYZKMN"):
        for j, v in enumerate("uvwpqr"):
            linear[i, j] = -d.get(f"{f}_{v}", 0.0)
    draft.matrix("linear-drag", linear)
    if "X_uu_c" in d:
        draft.add("surge-friction", factor=f"{-d['X_uu_c']:g} kg/m", residual="0.014", length=f"{d['L_pp']:g} m")
    if "C_d_2d" in d:
        density = draft.ask("cross-flow-density", 1)
        if density is not None:
            c = 0.5 * density[0] * d["T"] * d["C_d_2d"]
            draft.add("cross-flow", length=f"{d['L_pp']:g} m", sway=f"{c:.12g} kg/m2")
    g = np.zeros((6, 6))
    g[2, 2], g[3, 3], g[4, 4], g[2, 4], g[4, 2] = (
        -d["Z_z"], -d["K_phi"], -d["M_theta"], -d["Z_theta"], -d["M_z"],
    )  # fmt: skip
    draft.matrix("restoring", g)
    if d.get("A_Fw"):
        draft.add(
            "wind-drag", frontal=f"{d['A_Fw']:g} m2", lateral=f"{d['A_Lw']:g} m2", length=f"{d['L_pp']:g} m",
            height=f"{d['s_H']:g} m", forward=f"{d['s_L']:g} m",
            drag=_text(d["CD_l_af_0"], d["CD_l_af_pi"], d["CD_t"], d["delta"], d["kappa"]),
        )  # fmt: skip
    if "K_1_w" in d:
        draft.add("wave-filter", gain=_text(*(d[f"K_{i}_w"] for i in range(1, 7))))
    k, low, high = d["K_thruster"] * 3600.0, d["n_min"] / 60.0, d["n_max"] / 60.0
    for side in (1, 2):
        t = draft.add(
            "thruster", name=f"thruster-{side}", position=_text(d[f"l_x_{side}"], d[f"l_y_{side}"], 0.0) + " m",
            direction="1 0 0", law="shaft", minimum="0", maximum="1", motor=_text(low, high - low),
            lag=f"{d['T_n']:g} s", coefficients=_text(0.0, k, 0.0),
        )  # fmt: skip
        if "alpha_max" in d:
            limit = math.degrees(draft.angle(d["alpha_max"], "alpha_max"))
            etree.SubElement(
                t, "swivel", minimum=f"{-limit:.9g} deg", maximum=f"{limit:.9g} deg", lag=f"{d['T_alpha']:g} s"
            )
            etree.SubElement(t, "deflector", lag=f"{d['T_beta']:g} s")
    return draft.xml(path)


# ------------------------------------------------------------------ Panisim, Makara


def _naca(folder: Path, *names: Any) -> list[tuple[float, float, float]] | None:
    """Rows (alpha in deg, CL, CD) of the aerofoil table that a control surface names; None if it names none."""
    for name in names:
        if name in (None, "None", ""):
            continue
        for place in (folder, folder.parent):
            for path in (place / str(name), place / f"NACA{name}.csv"):
                if path.is_file():
                    with path.open(newline="") as file:
                        return [(float(r["Alpha"]), float(r["Cl"]), float(r["Cd"])) for r in csv.DictReader(file)]
        raise ConfigError(f"there is no aerofoil table '{name}' or 'NACA{name}.csv' in it or beside it", str(folder))
    return None


def _panisim(folder: Path, settings: dict[str, str], angles: str | None) -> str:
    """A vessel folder of Panisim/Makara: geometry, inertia, hydrodynamics, control surfaces, thrusters; the added
    mass and restoring from a HydRA file, an aerofoil from a NACA table, both beside it."""

    def part(name: str) -> dict[str, Any]:
        found = yaml.safe_load((folder / name).read_text()) or {}
        if not isinstance(found, dict):
            raise ConfigError("no table of keys", str(folder / name))
        return found

    geometry, inertia, hydro = part("geometry.yml"), part("inertia.yml"), part("hydrodynamics.yml")
    controls = part("control_surfaces.yml")
    surfaces = controls.get("control_surfaces") or []
    name = Path(str(hydro.get("hydra_file", folder.name))).stem.replace("_hydra", "")
    draft = Draft(name, f"{folder.name} (Panisim/Makara)", settings, angles)
    draft.attributes |= {"type": "surface", "coriolis": "yes" if hydro.get("coriolis_flag", True) else "no"}
    length, g = float(geometry["length"]), 9.80665
    draft.add("box", length=f"{length:g} m", width=f"{geometry['breadth']:g} m", height=f"{geometry['depth']:g} m")
    mass = float(inertia["mass"])
    draft.add("mass", value=f"{mass:g} kg", centre=_text(*geometry["CG"]["position"]) + " m")
    draft.add("inertia", gyration=_text(*geometry["gyration"]) + " m")
    hydra = next(
        (p for p in (folder / f"{name}_hydra.json", folder.parent / f"{name}_hydra.json") if p.is_file()), None
    )
    if hydra is not None:
        data = json.loads(hydra.read_text())
        a, c = np.array(data["A_inf"], float), np.array(data["C"], float)
        a[np.abs(a) < 1e-3 * np.sqrt(np.outer(np.abs(np.diag(a)), np.abs(np.diag(a))))] = 0.0
        draft.matrix("added-mass", 0.5 * (a + a.T))
        stiff = np.zeros((6, 6))
        stiff[2:5, 2:5] = np.where(np.abs(c[2:5, 2:5]) > 1e-2, c[2:5, 2:5], 0.0)
        draft.matrix("restoring", stiff)
    elif (added := draft.ask("added-mass", 6)) is not None:
        draft.matrix("added-mass", np.diag(added))
    prime = not hydro.get("dim_flag", False)
    speed = float(geometry["Fn"]) * math.sqrt(g * length)
    system = {"system": "prime", "length": f"{length:g} m", "speed": f"{speed:.12g} m/s"} if prime else {}
    list_ = draft.add("derivatives", **system)
    for key, value in hydro.items():
        if re.fullmatch(r"[XYZKMN]_[a-z_]+", key) and isinstance(value, (int, float)):
            etree.SubElement(list_, "derivative", name=key, value=f"{value:.12g}")
    for k, item in enumerate(surfaces):
        s = item if isinstance(item, dict) else {}
        for key, value in (s.get("control_surface_hydrodynamics") or {}).items():
            if value:
                letter = str(key).partition("_")[0]
                etree.SubElement(list_, "derivative", name=f"{letter}_d{k + 1}", value=f"{value:.12g}")
        limit = math.degrees(draft.angle(float(s["control_surface_delta_max"]), "control_surface_delta_max"))
        rate = math.degrees(draft.angle(float(s["control_surface_deltad_max"]), "control_surface_deltad_max"))
        common = {
            "name": str(s["control_surface_type"]).lower(),
            "limit": f"{limit:.9g} deg",
            "rate": f"{rate:.9g} deg/s",
            "lag": f"{s['control_surface_T']:g} s",
        }
        table = _naca(folder, s.get("control_surface_NACA"), controls.get("naca_file"))
        if table is None:
            draft.add("fin", law="derivatives", **common)
        else:
            # a rudder stands upright; turned about x by its orientation (rad)
            roll = draft.angle(float(s["control_surface_orientation"][0]), "control_surface_orientation")
            fin = draft.add(
                "fin", law="aerofoil", position=_text(*s["control_surface_location"]) + " m",
                normal=_text(0.0, round(math.cos(roll), 12), round(math.sin(roll), 12)),
                area=f"{s['control_surface_area']:g} m2", **common,
            )  # fmt: skip
            etree.SubElement(fin, "aerofoil").text = "  ".join(_text(*row) for row in table)
    return draft.xml(folder)
