"""Reader for HoloOcean scenarios (JSON): one agent with Fossen-based dynamics, and its sensors.

HoloOcean's agents have axes forward, left, up; its dynamics blocks already have forward, starboard, down. The equations are
those of HoloOcean's `fossen_dynamics/torpedo.py`. Agents without such a block are moved by forces inside HoloOcean's
engine, whose parameters a scenario does not contain.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.marine_functions import CROSS_FLOW_DENSITY, section_drag
from wavesim_server.importers.model_draft import ModelDraft, TrackedTable, format_numbers
from wavesim_server.importers.spatial_matrices import shift_matrix
from wavesim_server.importers.torpedo_elements import OpenWaterPropeller, add_body_lift, add_propeller

GRAVITY = 9.81
#: defaults of the blocks `dynamics` and `actuator`, as documented for HoloOcean 2.x
DYNAMICS: dict[str, Any] = {
    "rho": 1026.0,
    "mass": 31.03,
    "length": 1.6,
    "diam": 0.19,
    "r_bg": [0.0, 0.0, 0.02],
    "r_bb": [0.0, 0.0, 0.0],
    "area_fraction": 0.7,
    "T_surge": 20.0,
    "T_sway": 20.0,
    "zeta_roll": 0.3,
    "zeta_pitch": 0.8,
    "T_yaw": 1.0,
    "r44": 0.3,
    "Cd": 0.42,
    "e": 0.7,
}
ACTUATOR: dict[str, Any] = {
    "fin_count": 4,
    "fin_offset_deg": 0.0,
    "fin_center": 0.1,
    "fin_area": 0.00697,
    "CL_delta": 0.5,
    "deltaMax_fin_deg": 15.0,
    "T_delta": 0.1,
    "nMax": 1525.0,
    "T_n": 1.0,
    "D_prop": 0.14,
    "t_prop": 0.1,
    "KT_0": 0.4566,
    "KQ_0": 0.07,
    "KT_max": 0.1798,
    "KQ_max": 0.0312,
    "w": 0.056,
    "Ja_max": 0.6632,
}
#: elements of C_A that HoloOcean's torpedo omits
OMITTED = "15 16 26 35 51 53 61 62"
FADE = 3.0  #: decay constant of the linear damping in surge and sway, s/m
TORQUE_SHARE = 0.1
#: positions of sockets in cm, forward, left, up (HoloOcean's documentation)
SOCKETS = {
    "TorpedoAUV": {
        "DVLSocket": (-30.0, 0.0, -7.0),
        "IMUSocket": (86.0, -3.0, -3.0),
        "DepthSocket": (95.0, 3.0, 3.0),
        "COM": (0.0, 0.0, 0.0),
    },
}
#: sensors that give true values: a model has <navigation> instead
REFERENCES = ("DynamicsSensor", "LocationSensor", "RotationSensor", "VelocitySensor", "OrientationSensor", "PoseSensor")
QUIET = {f"{w}_{e}": "0" for w in ("gyro", "accelerometer") for e in ("walk", "turn_on", "instability")}


def is_scenario(data: Any) -> bool:
    """Return whether JSON or YAML content is a HoloOcean scenario."""
    return isinstance(data, dict) and isinstance(data.get("agents"), list)


def read(
    path: Path, data: dict[str, Any], section: str | None, settings: dict[str, str], angles: str | None
) -> ModelDraft:
    """Return the draft model of an agent. ``section`` names it if the scenario contains several."""
    agents = {str(a.get("agent_name", k)): a for k, a in enumerate(data["agents"])}
    if section is None and len(agents) == 1:
        section = next(iter(agents))
    if section not in agents:
        raise ConfigError(f"select one of the agents in this file with --section: {', '.join(agents)}", str(path))
    agent = TrackedTable(agents[section], f"agent {section}")
    kind, dynamics = str(agent.get("agent_type", "")), str(agent.get("fossen_model", "")).lower()
    if dynamics != "torpedo":
        raise ConfigError(
            f"agent '{section}': {'no fossen_model' if not dynamics else f'fossen_model {dynamics!r}'}; only `torpedo` has its "
            f"parameters in a scenario. Those of the agent type {kind} are in HoloOcean's own code"
            + (" (import otter.py of the Python Vehicle Simulator instead)" if dynamics == "otter" else ""),
            str(path),
        )
    name = re.sub(r"[^a-z0-9-]+", "-", str(section).lower()).strip("-")
    draft = ModelDraft(name, f"{path.name} (HoloOcean), agent {section} of the type {kind}", settings, angles)
    body = _with_defaults(draft, agent.get("dynamics") or {}, DYNAMICS, "dynamics", ("sampleTime", "K_nomoto"))
    actuator = _with_defaults(draft, agent.get("actuator") or {}, ACTUATOR, "actuator", ("x_fin",))
    _add_hull(draft, body)
    _add_propeller(draft, actuator)
    _add_fins(draft, actuator, float(body["rho"]), -0.5 * float(body["length"]))
    _add_sensors(draft, agent.get("sensors") or [], kind, float(data.get("ticks_per_sec", 30)))
    agent.ignore("agent_name", "control_scheme", "control_mode", "autopilot", "location", "rotation")
    agent.ignore("location_randomization", "rotation_randomization")
    draft.record_unused(agent)
    draft.notes.append(
        f'the coefficients apply to <world density="{float(body["rho"]):g} kg/m3" gravity="{GRAVITY:g} m/s2">'
    )
    return draft


def _with_defaults(
    draft: ModelDraft, given: dict[str, Any], defaults: dict[str, Any], block: str, irrelevant: tuple[str, ...]
) -> dict[str, Any]:
    """Return a block of parameters, completed with HoloOcean's defaults; list unknown ones."""
    draft.unused += [f"{block}: {k} = {v}" for k, v in given.items() if k not in defaults and k not in irrelevant]
    missing = [f"{k} = {v}" for k, v in defaults.items() if k not in given]
    if missing:
        draft.notes.append(f"{block}: HoloOcean's documented defaults for {', '.join(missing)}")
    return defaults | {k: v for k, v in given.items() if k in defaults}


def _add_hull(draft: ModelDraft, p: dict[str, Any]) -> None:
    """Add the masses, damping, drag and lift of a torpedo-shaped hull, which counts as a spheroid."""
    m, rho, length, diameter = (float(p[k]) for k in ("mass", "rho", "length", "diam"))
    a, b, area = length / 2.0, diameter / 2.0, float(p["area_fraction"]) * length * diameter
    ix, iy = 0.4 * m * b * b, 0.2 * m * (a * a + b * b)
    e2 = 1.0 - (b / a) ** 2
    e = math.sqrt(e2)
    log = math.log((1.0 + e) / (1.0 - e))
    alpha, beta = 2.0 * (1.0 - e2) / e**3 * (0.5 * log - e), 1.0 / e2 - (1.0 - e2) / (2.0 * e**3) * log
    turn = e2**2 * (beta - alpha) / ((2.0 - e2) * (2.0 * e2 - (2.0 - e2) * (beta - alpha)))
    k1, k2 = alpha / (2.0 - alpha), beta / (2.0 - beta)
    added = np.array([m * k1, m * k2, m * k2, float(p["r44"]) * ix, turn * iy, turn * iy])
    h = shift_matrix(p["r_bg"])
    rigid = h.T @ np.diag([m, m, m, ix, iy, iy]) @ h
    whole = np.diag(rigid) + added
    draft.attributes |= {"type": "underwater", "coriolis_without": OMITTED}
    draft.add("cylinder", length=f"{length:.12g} m", radius=f"{b:.12g} m")
    draft.add("mass", value=f"{m:.12g} kg", centre=format_numbers(*p["r_bg"]) + " m")
    draft.matrix("rigid-body", rigid)
    draft.add("buoyancy", volume=f"{m / rho:.15g} m3", centre=format_numbers(*p["r_bb"]) + " m")
    draft.matrix("added-mass", np.diag(added))
    stiffness = m * GRAVITY * (float(p["r_bg"][2]) - float(p["r_bb"][2]))
    if stiffness < 0.0:
        raise ConfigError("dynamics: r_bg is above r_bb, so the damping of roll and pitch is not defined")
    damping = whole / np.array(
        [float(p["T_surge"]), float(p["T_sway"]), float(p["T_sway"]), 1.0, 1.0, float(p["T_yaw"])]
    )
    for k, key in ((3, "zeta_roll"), (4, "zeta_pitch")):
        damping[k] = 2.0 * float(p[key]) * math.sqrt(stiffness * whole[k])
    fading = np.where(np.arange(6) < 2, damping, 0.0)
    draft.matrix("linear-drag", np.diag(damping - fading))
    draft.add("fading-drag", diagonal=format_numbers(*fading), fade=f"{FADE:g}")
    cross = 0.5 * CROSS_FLOW_DENSITY * diameter * section_drag(diameter, diameter)
    draft.add("cross-flow", length=f"{length:.12g} m", sway=f"{cross:.12g} kg/m2")
    draft.notes.append("cross-flow drag: the exact integral; HoloOcean sums 21 strips of a twentieth of the length")
    add_body_lift(draft, area, diameter, float(p["Cd"]) * math.pi * b * b / area, float(p["e"]), rho)
    draft.notes.append("the fins are at the stern, half a length aft: HoloOcean's code does not use x_fin")


def _add_propeller(draft: ModelDraft, p: dict[str, Any]) -> None:
    add_propeller(
        draft,
        OpenWaterPropeller(
            diameter=float(p["D_prop"]),
            advance=float(p["Ja_max"]),
            kt=(float(p["KT_0"]), float(p["KT_max"])),
            kq=(float(p["KQ_0"]), float(p["KQ_max"])),
            limit=float(p["nMax"]) / 60.0,
            lag=float(p["T_n"]),
            wake=float(p["w"]),
            torque_share=TORQUE_SHARE,
            deduction=float(p["t_prop"]),
        ),
    )


def _add_fins(draft: ModelDraft, p: dict[str, Any], rho: float, stern: float) -> None:
    """Add equally spaced fins at the stern; the first one is at an angle from starboard towards down."""
    count = int(p["fin_count"])
    for k in range(count):
        angle = math.radians(float(p["fin_offset_deg"]) + 360.0 * k / count)
        c, s = round(math.cos(angle), 15), round(math.sin(angle), 15)
        at = np.array([stern, float(p["fin_center"]) * c, float(p["fin_center"]) * s])
        force = 0.5 * rho * float(p["fin_area"]) * float(p["CL_delta"]) * np.array([0.0, s, -c])
        draft.add(
            "fin",
            name=f"fin-{k + 1}",
            law="coefficients",
            normal=format_numbers(0.0, s, -c),
            per_angle=format_numbers(*force, *np.cross(at, force)),
            limit=f"{float(p['deltaMax_fin_deg']):.9g} deg",
            lag=f"{float(p['T_delta']):.12g} s",
        )
    if any(
        abs(math.sin(2.0 * math.radians(float(p["fin_offset_deg"]) + 360.0 * k / count))) > 1e-9 for k in range(count)
    ):
        draft.notes.append("fins that are oblique: sway and heave change the speed at the fin differently in HoloOcean")


def _add_sensors(draft: ModelDraft, sensors: list[dict[str, Any]], kind: str, ticks: float) -> None:
    element = etree.Element("sensors")
    names: set[str] = set()
    for entry in sensors:
        s = TrackedTable(entry, f"sensor {entry.get('sensor_name', entry.get('sensor_type'))}")
        type_ = str(s["sensor_type"])
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", str(s.get("sensor_name", type_)))[:31]
        rate = float(s.get("Hz", ticks / float(s.get("tick_every", 1))))
        common = {"name": name, "rate": f"{rate:g} Hz"}
        s.ignore("ros_publish", "lcm_channel")
        if type_ in REFERENCES:
            s.ignore("configuration", "socket")
            type_, common = "navigation", common | {"name": "navigation"}
        else:
            common |= _mounting(draft, s, kind, name)
        configuration = TrackedTable(s.get("configuration") or {}, f"sensor {name}") if type_ != "navigation" else None
        found = _instrument(type_, configuration)
        if found is None:
            draft.unused.append(f"sensor {name} of the type {s['sensor_type']}")
            continue
        tag, keys = found
        if common["name"] not in names:
            etree.SubElement(element, tag, common | keys)
        names.add(common["name"])
        draft.record_unused(s)
        if configuration is not None:
            draft.record_unused(configuration)
    if len(element):
        draft.elements.append(element)


def _mounting(draft: ModelDraft, s: TrackedTable, kind: str, name: str) -> dict[str, str]:
    socket = str(s.get("socket", ""))
    place = SOCKETS.get(kind, {}).get(socket)
    if place is None:
        place = (0.0, 0.0, 0.0)
        if socket not in ("", "COM", "Origin"):
            draft.unused.append(f"sensor {name}: the position of the socket {socket} of the type {kind} is not known")
    at = np.array(place) / 100.0 + np.array(s.get("location", [0.0] * 3), float)
    roll, pitch, yaw = (float(a) for a in s.get("rotation", [0.0] * 3))
    return {
        "position": format_numbers(at[0], -at[1], -at[2]) + " m",
        "attitude": format_numbers(roll, -pitch, -yaw) + " deg",
    }


def _covariance(c: TrackedTable, key: str) -> str:
    """Return the covariance that `KEYSigma` or `KEYCov` states, in axes forward, starboard, down."""
    matrix = np.zeros((3, 3))
    if c.get(f"{key}Sigma") is not None:
        matrix = np.diag(np.square(np.broadcast_to(np.array(c[f"{key}Sigma"], float).ravel()[:3], 3)))
    elif c.get(f"{key}Cov") is not None:
        given = np.array(c[f"{key}Cov"], float)
        matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given.ravel()[:3], 3))
    flip = np.diag([1.0, -1.0, -1.0])
    return format_numbers(*(flip @ matrix[:3, :3] @ flip).ravel())


def _instrument(kind: str, c: TrackedTable | None) -> tuple[str, dict[str, str]] | None:
    """Return the element and the keys of an instrument, or None for a type without a counterpart."""
    if c is None:
        return "navigation", {}
    if kind == "IMUSensor":
        c.ignore("ReturnBias")
        return "imu", QUIET | {
            "acceleration_covariance": _covariance(c, "Accel"),
            "angular_rate_covariance": _covariance(c, "AngVel"),
        }
    if kind == "DVLSensor":
        c.ignore("DebugLines", "ReturnRange")
        sigma = float(np.max(np.array(c.get("VelSigma", 0.0), float)))
        return "dvl", {
            "angle": f"{float(c.get('Elevation', 22.5)):g} deg",
            "bottom_sigma": f"{sigma:g} m/s",
            **({"maximum": f"{float(c['MaxRange']):g} m"} if "MaxRange" in c else {}),
        }
    if kind == "GPSSensor":
        return "gps", {"position_covariance": _covariance(c, ""), "correlation": "0 s"}
    if kind == "DepthSensor":
        return "pressure", {}
    return None
