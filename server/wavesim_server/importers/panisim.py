"""Reader for Panisim/Makara vessel folders: geometry, inertia, hydrodynamics, control surfaces, thrusters, sensors."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import hydra, panel_hull
from wavesim_server.importers import panisim_vessel as vessel
from wavesim_server.importers.hull import add_radiation
from wavesim_server.importers.model_draft import EMPTY_VALUES, ModelDraft, TrackedTable, format_numbers

PROPELLER_LAG_S = 1.0  #: time constant of every propeller in Panisim
#: defaults for a control surface, from the boat in the manual: angle limit in deg, rate limit in rad/s, time constant
#: in s
DELTA_MAX_DEG, DELTA_RATE, SURFACE_LAG_S = 35.0, 1.0, 0.1
#: largest rate limit of a control surface that is read in rad/s, as in Panisim; larger limits are read in deg/s, as in
#: its manual
FASTEST_RATE = 2.0 * math.pi
#: lift slope (1/rad) and stall of a rudder of aspect ratio 2 (Whicker and Fehlner 1958), if there is no aerofoil table
LIFT_SLOPE, STALL_DEG = 2.44, 24.0
_MOTION = re.compile(r"[XYZKMN](?:_?a?[uvwpqr]){1,4}")
#: coefficients that Panisim computes from the hull file and adds to hydrodynamics.yml
_CROSS_FLOW = re.compile(r"[YN]_[vr]_a[vr]|[ZM]_[wq]_a[wq]")


def read(folder: Path, settings: dict[str, str], angles: str | None) -> ModelDraft:
    """Return the draft model for a folder, with the terms of Panisim's class `Vessel`.

    The added mass and the restoring matrix come from a HydRA file, the aerofoil from a NACA table, and the sections of
    the hull from a .gdf file; these are in the folder or next to it. Missing values are taken from Panisim's manual or
    estimated, and a note reports each of them.
    """
    folder = folder.resolve()
    geometry, inertia = _read_part(folder, "geometry.yml"), _read_part(folder, "inertia.yml")
    hydro, controls = _read_part(folder, "hydrodynamics.yml"), _read_part(folder, "control_surfaces.yml", needed=False)
    start = _read_part(folder, "initial_conditions.yml", needed=False)
    draft = ModelDraft(folder.name, f"{folder.name} (Panisim/Makara)", settings, angles)
    agent = vessel.find_agent(folder, draft)
    draft.name = vessel.model_name(folder, agent, hydro.get("hydra_file"))
    mass = float(inertia["mass"])
    place = np.array((start.get("start_location") or [0.0] * 3), float)
    underwater = vessel.is_underwater(draft, agent, geometry, mass, place)
    draft.attributes |= {
        "type": "underwater" if underwater else "surface",
        "coriolis": "yes" if hydro.get("coriolis_flag", True) else "no",
    }
    if any(agent.active):
        draft.attributes["active"] = " ".join(m for m, on in zip("uvwpqr", agent.active, strict=True) if on)
    draft.add("box", **{k: f"{geometry[of]:g} m" for k, of in zip(("length", "width", "height"), _SIZE, strict=True)})
    hull = _hull_sections(draft, folder, geometry, underwater)
    _add_masses(draft, folder, agent, (geometry, inertia, hydro), hull)
    found = {key: float(hydro[key]) for key in hydro if _MOTION.fullmatch(key) and isinstance(hydro[key], (int, float))}
    system = vessel.derivative_system(draft, agent, geometry, hydro, found)
    _add_cross_flow(draft, geometry, hydro, found, hull)
    for k, surface in enumerate(controls.get("control_surfaces") or []):
        found |= _add_control_surface(draft, folder, controls, surface if isinstance(surface, dict) else {}, k)
    draft.derivatives(found, **system)
    thrusters = _read_part(folder, "thrusters.yml", needed=False)
    for k, one in enumerate(thrusters.get("thrusters") or []):
        _add_thruster(draft, TrackedTable(one, f"thrusters.yml {k + 1}"))
    _add_sensors(draft, _read_part(folder, "sensors.yml", needed=False))
    _note_start(draft, start)
    geometry.ignore("Fn")  # if U is given
    hydro.ignore("hydra_file")
    controls.ignore("naca_number", "naca_file", "delta_max", "deltad_max", "area")  # each surface names its own
    for part in (geometry, inertia, hydro, controls, thrusters):
        draft.record_unused(part)
    _demote(draft, "orientation_covariance", "an <imu> has no attitude")
    if (folder / "guidance.yml").is_file():
        draft.notes.append("guidance.yml: its waypoints belong to a mission and not to the model")
    return draft


_SIZE = ("length", "breadth", "depth")


def _demote(draft: ModelDraft, what: str, why: str) -> None:
    """Turn the unused entries that contain ``what`` into notes, because the model does not need them."""
    draft.notes += [f"{item}: omitted, because {why}" for item in draft.unused if what in item]
    draft.unused = [item for item in draft.unused if what not in item]


def _read_part(folder: Path, name: str, needed: bool = True) -> TrackedTable:
    path = folder / name
    if not needed and not path.is_file():
        return TrackedTable({})
    found = yaml.safe_load(path.read_text()) or {}
    if not isinstance(found, dict):
        raise ConfigError("expected a table of keys", str(path))
    return TrackedTable(found, name)


def _matrix(table: TrackedTable, key: str) -> Floats | None:
    """Return a 6x6 matrix from the file, or None if the file contains None."""
    value = table.get(key)
    return None if isinstance(value, str | None) and value in EMPTY_VALUES else np.array(value, float).reshape(6, 6)


def _hull_sections(
    draft: ModelDraft, folder: Path, geometry: TrackedTable, underwater: bool
) -> tuple[Path, Floats] | None:
    """Return the panel hull's file and its sections (x, beam, draft), or None if there is no such file."""
    draft.used_settings.add("hull-file")
    named = draft.settings.get("hull-file", geometry.get("geometry_file"))
    path = vessel.locate(folder, named)
    if "hull-file" in draft.settings:
        path = Path(draft.settings["hull-file"].strip())
    if path is None or (path.suffix.lower() != ".gdf" and "hull-file" not in draft.settings):
        if named not in EMPTY_VALUES:
            draft.notes.append(f"geometry.yml: geometry_file = {named} is not a panel hull in the folder or next to it")
        return None
    try:
        return path, panel_hull.cross_sections(panel_hull.read_gdf(path), underwater)
    except ValueError as error:
        raise ConfigError(str(error), str(path)) from None


def _add_cross_flow(
    draft: ModelDraft,
    geometry: TrackedTable,
    hydro: TrackedTable,
    found: dict[str, float],
    hull: tuple[Path, Floats] | None,
) -> None:
    """Add the cross-flow drag by Hoerner's curve, if the file enables it with Panisim's key `cross_flow_drag`."""
    if not hydro.get("cross_flow_drag", False):
        return
    own = [key for key in found if _CROSS_FLOW.fullmatch(key)]
    if own:
        draft.notes.append(f"cross_flow_drag: the file already contains {', '.join(own)}; the model uses these")
        return
    if hull is None:
        draft.unused.append(
            f"hydrodynamics.yml: cross_flow_drag = True, because the panel hull '{geometry.get('geometry_file')}' is not "
            "in the folder or next to it; give it with --set hull-file=FILE.gdf"
        )
        return
    element = draft.add("cross-flow", coefficient="hoerner")
    for row in hull[1]:
        x, beam, depth = (f"{n:.6g} m" for n in row)
        etree.SubElement(element, "section", x=x, beam=beam, draft=depth)
    draft.notes.append(
        f"cross_flow_drag: {len(hull[1])} sections of {hull[0].name}; the drag is their integral, whereas Panisim fits "
        "eight coefficients to it"
    )


def _add_masses(
    draft: ModelDraft,
    folder: Path,
    agent: vessel.AgentEntry,
    parts: tuple[TrackedTable, TrackedTable, TrackedTable],
    hull: tuple[Path, Floats] | None,
) -> None:
    geometry, inertia, hydro = parts
    underwater = draft.attributes["type"] == "underwater"
    mass, centre = float(inertia["mass"]), TrackedTable(geometry["CG"], "geometry.yml: CG")
    draft.add("mass", value=f"{mass:g} kg", centre=format_numbers(*centre["position"]) + " m")
    draft.record_unused(centre)
    rigid, added = _matrix(inertia, "inertia_matrix"), _matrix(inertia, "added_mass_matrix")
    gyration = geometry.get("gyration")
    if rigid is not None:
        draft.matrix("rigid-body", rigid)
    else:
        draft.add(
            "inertia", gyration=format_numbers(*(gyration if gyration is not None else geometry["gyration"])) + " m"
        )
    own = f"{draft.name}_hydra.json"
    file = next((p for p in (folder / own, folder.parent / own) if p.is_file()), None)
    file = file or vessel.locate(folder, hydro.get("hydra_file"))
    results = None if file is None else hydra.read(file)
    if added is not None:
        draft.matrix("added-mass", added)
    elif results is not None and results.infinite is not None:
        draft.matrix("added-mass", results.infinite)
    elif "added-mass" in draft.settings:
        draft.matrix("added-mass", np.diag(draft.require_numbers("added-mass", 6) or []))
    else:
        draft.used_settings.add("added-mass")
        sections = vessel.box_sections(geometry, mass, agent.density, underwater) if hull is None else hull[1]
        estimate = vessel.estimated_added_mass(sections, mass, agent.density, underwater)
        draft.matrix("added-mass", np.diag([float(f"{m:.4g}") for m in estimate]))
        draft.notes.append(
            f"added mass: no matrix and no HydRA file '{hydro.get('hydra_file')}'; estimated by strips of elliptic "
            f"sections from the {'box' if hull is None else 'hull file'} (expect 30 % error); --set added-mass=... replaces it"
        )
    if file is not None and results is not None and results.stiffness is not None and not underwater:
        draft.matrix("restoring", results.stiffness)
        memory, note = hydra.identify_memory(results, file.name)
        draft.notes += [note, *results.notes]
        if memory is not None:
            add_radiation(draft, memory)
        geometry.ignore("CB")  # the restoring is about the equilibrium, which includes it
        if (floating := float(inertia.get("buoyancy_mass", mass))) != mass:
            draft.unused.append(f"inertia.yml: buoyancy_mass = {floating:g}, because it differs from the mass")
        return
    _add_buoyancy(draft, agent, geometry, inertia, np.array(centre["position"], float))


def _add_buoyancy(
    draft: ModelDraft, agent: vessel.AgentEntry, geometry: TrackedTable, inertia: TrackedTable, gravity: Floats
) -> None:
    """Add the weight and buoyancy of a vessel without a HydRA file: Panisim's forces at CG and CB."""
    mass = float(inertia["mass"])
    floating = float(vessel.or_default(draft, inertia, "inertia.yml", "buoyancy_mass", mass, "equal to the mass"))
    underwater = draft.attributes["type"] == "underwater"
    if underwater:
        table = vessel.or_default(draft, geometry, "geometry.yml", "CB", {"position": [0.0] * 3}, "at the origin")
        place = TrackedTable(table, "geometry.yml: CB")
        centre = format_numbers(*place["position"]) + " m"
        draft.add("buoyancy", volume=f"{floating / agent.density:.9g} m3", centre=centre)
        draft.record_unused(place)
        return
    if floating != mass:
        draft.notes.append("buoyancy_mass differs from the mass; a floating vessel displaces its mass")
    if "CB" not in geometry:
        draft.notes.append(
            "geometry.yml: CB is missing: the vessel floats like a box with its length, breadth and depth"
        )
        return
    place = TrackedTable(geometry["CB"], "geometry.yml: CB")
    arm = gravity - np.array(place["position"], float)
    draft.record_unused(place)
    weight = mass * agent.gravity
    waterplane = agent.density * agent.gravity * float(geometry["length"]) * float(geometry["breadth"])
    draft.matrix("restoring", np.diag([0.0, 0.0, waterplane, weight * arm[2], weight * arm[2], 0.0]))
    draft.notes.append(
        "restoring: roll and pitch from the distance between CG and CB, as in Panisim; heave from a waterplane area of length times breadth"
    )
    if arm[2] <= 0.0:
        draft.notes.append("restoring: CG is not below CB, so roll and pitch are unstable if they are free")
    if arm[0] or arm[1]:
        draft.unused.append(
            f"geometry.yml: the static moment of CG and CB, which are {format_numbers(*arm[:2])} m apart"
        )


def _add_control_surface(
    draft: ModelDraft, folder: Path, controls: Mapping[str, Any], table: dict[str, Any], number: int
) -> dict[str, float]:
    """Add a control surface and return its derivatives. Its angle limit is in deg and its rate limit in rad/s, as
    Panisim reads them.
    """
    where = f"control_surfaces.yml {number + 1}"
    s = TrackedTable(table, where)
    given = s.get("control_surface_type") or s.get("control_surface_name")
    if "control_surface_type" not in s:
        draft.notes.append(f"{where}: control_surface_type is missing: {given or 'surface'}")
    s.ignore("control_surface_id", "control_surface_name")
    name = vessel.actuator_name(draft, str(given or f"surface-{number + 1}"))
    most = float(_limit(draft, s, controls, "delta_max", DELTA_MAX_DEG))
    if draft.angles is None and "control_surface_name" in s:
        draft.notes.append(f"{where}: control_surface_delta_max is in deg, as the manual states; --angles changes this")
        limit = most
    else:
        limit = math.degrees(draft.angle(most, "control_surface_delta_max"))
    rate = float(_limit(draft, s, controls, "deltad_max", DELTA_RATE))
    if rate > FASTEST_RATE:
        draft.notes.append(f"{where}: control_surface_deltad_max = {rate:g} is in deg/s")
        rate = math.radians(rate)
    lag = float(vessel.or_default(draft, s, where, "control_surface_T", SURFACE_LAG_S))
    common = {"name": name, "limit": f"{limit:.9g} deg", "rate": f"{rate:.9g} rad/s", "lag": f"{lag:g} s"}
    terms = s.get("control_surface_hydrodynamics")
    if isinstance(terms, dict):
        draft.add("fin", law="derivatives", **common)
        s.ignore(
            "control_surface_location",
            "control_surface_orientation",
            "control_surface_area",
            "control_surface_NACA",
        )
        draft.record_unused(s)
        return {f"{str(key).partition('_')[0]}_d{number + 1}": float(value) for key, value in terms.items()}
    angles = s.get("control_surface_orientation") or [0.0] * 3
    chord, normal = vessel.surface_axes(draft, where, name, [float(a) for a in angles])
    fin = draft.add(
        "fin",
        position=format_numbers(*s["control_surface_location"]) + " m",
        chord=format_numbers(*np.round(chord, 12)),
        normal=format_numbers(*np.round(normal, 12)),
        area=f"{s['control_surface_area']:g} m2",
        **common,
    )
    named = [n for n in (s.get("control_surface_NACA"), controls.get("naca_file")) if n not in EMPTY_VALUES]
    path = next((p for n in named for p in _aerofoil_files(folder, n) if p is not None), None)
    if path is None:
        draft.notes.append(
            f"{where}: no aerofoil table {' or '.join(map(str, named)) or 'is named'}; the lift is that of a rudder of "
            f"aspect ratio 2: {LIFT_SLOPE:g} per rad, stall at {STALL_DEG:g} deg"
        )
        fin.set("lift_slope", f"{LIFT_SLOPE:g}")
        fin.set("stall", f"{STALL_DEG:g} deg")
    else:
        fin.set("law", "aerofoil")
        with path.open(newline="") as file:
            rows = [(float(r["Alpha"]), float(r["Cl"]), float(r["Cd"])) for r in csv.DictReader(file)]
        etree.SubElement(fin, "aerofoil").text = "  ".join(format_numbers(*row) for row in rows)
    draft.record_unused(s)
    return {}


def _limit(draft: ModelDraft, surface: TrackedTable, controls: Mapping[str, Any], key: str, default: float) -> Any:
    """Return a limit of a surface: its own, otherwise the one that the file states for all surfaces, otherwise the
    default.
    """
    if f"control_surface_{key}" in surface:
        return surface[f"control_surface_{key}"]
    reason = f"{controls[key]:g}, of all surfaces" if key in controls else f"{default:g}"
    draft.notes.append(f"control_surfaces.yml: control_surface_{key} is missing: {reason}")
    return controls.get(key, default)


def _aerofoil_files(folder: Path, name: Any) -> list[Path | None]:
    return [vessel.locate(folder, name), vessel.locate(folder, f"NACA{name}.csv")]


def _add_thruster(draft: ModelDraft, t: TrackedTable) -> None:
    """Add a thruster with the thrust T = (1 - tp) rho D^4 KT0 (1 - J) n abs(n), with n in 1/s. Its direction is the x
    axis rotated by Panisim's roll, pitch and yaw.
    """
    along = vessel.rotation(*(float(a) for a in t.get("thruster_orientation") or [0.0] * 3))[:, 0]
    most, kt = float(t["n_max"]) / 60.0, float(t["KT_at_J0"])
    given = t.get("thruster_name") or f"thruster-{t['thruster_id']}"
    if kt == 0.0:
        draft.unused.append(f"thrusters.yml: '{given}', because its thrust is 0 (KT_at_J0)")
        return
    element = draft.add(
        "thruster",
        name=vessel.actuator_name(draft, str(given)),
        position=format_numbers(*t["thruster_location"]) + " m",
        direction=format_numbers(*np.round(along, 12)),
        law="shaft",
        minimum=format_numbers(-most),
        maximum=format_numbers(most),
        lag=f"{PROPELLER_LAG_S:g} s",
    )
    etree.SubElement(
        element,
        "open-water",
        diameter=f"{t['D_prop']:g} m",
        kt=format_numbers(kt, -kt),
        torque_share="0",
        deduction=format_numbers(float(t.get("tp") or 0.0)),
    )
    t.ignore("thruster_id", "T_prop", "J_vs_KT")  # Panisim does not use these
    draft.record_unused(t)


#: WaVeSim sensor type for each Panisim sensor type
SENSORS = {"imu": "imu", "gps": "gps", "uwb": "uwb", "dvl": "dvl", "encoder": "encoder"}
#: WaVeSim sensor and its key for each Panisim covariance. In WaVeSim, the attitude is a value of the AHRS
COVARIANCES = {
    "orientation_covariance": ("ahrs", "orientation_covariance"),
    "linear_acceleration_covariance": ("imu", "acceleration_covariance"),
    "angular_velocity_covariance": ("imu", "angular_rate_covariance"),
    "position_covariance": ("", "position_covariance"),
    "linear_velocity_covariance": ("dvl", "bottom_covariance"),
}
#: keys of the errors that Panisim's sensors do not have, by sensor type
WHITE = {
    "imu": ("gyro_walk", "gyro_turn_on", "accelerometer_walk", "accelerometer_turn_on"),
    "gps": ("correlation",),
}


def _add_sensors(draft: ModelDraft, table: TrackedTable) -> None:
    """Add sensors with their positions, rates and covariances."""
    list_ = etree.Element("sensors")
    for k, one in enumerate(table.get("sensors") or []):
        s = TrackedTable(one, f"sensors.yml {k + 1}")
        kind = SENSORS.get(str(s["sensor_type"]).lower())
        if kind is None:
            draft.unused.append(f"sensors.yml {k + 1}: a sensor of type {s['sensor_type']}")
            continue
        rate = float(s["publish_rate"])
        element = etree.SubElement(list_, kind, rate=f"{rate:g} Hz")
        if any(place := s.get("sensor_location") or ()):
            element.set("position", format_numbers(*place) + " m")
        if any(turn := s.get("sensor_orientation") or ()):
            element.set("attitude", format_numbers(*turn) + " rad")
        if s.get("use_custom_covariance"):
            _add_noise(draft, element, TrackedTable(s["custom_covariance"], s["sensor_type"]))
        s.ignore("sensor_topic", "actuator_type", "actuator_id", "custom_covariance")
        draft.record_unused(s)
    draft.record_unused(table)
    if len(list_):
        draft.elements.append(list_)


def _add_noise(draft: ModelDraft, element: etree._Element, covariances: TrackedTable) -> None:
    """Add the covariances of a sensor's values. An IMU with an attitude becomes an IMU and an AHRS at the same rate."""
    for key in WHITE.get(element.tag, ()):
        element.set(key, "0 s" if key == "correlation" else "0")
    for key, (kind, ours) in COVARIANCES.items():
        if key not in covariances:
            continue
        bearer = element
        if kind not in ("", element.tag):
            bearer = etree.Element(kind, rate=element.get("rate", ""))
            element.addnext(bearer)
        bearer.set(ours, format_numbers(*np.array(covariances[key], float).ravel()))
    draft.record_unused(covariances)


def _note_start(draft: ModelDraft, table: TrackedTable) -> None:
    """Add a note about the start values. The note contains the element to write, because the start is part of a vehicle
    and not of a model.
    """
    if not table:
        return
    place, turn, motion = (
        [float(x) for x in table.get(f"start_{what}") or [0.0] * n]
        for what, n in (("location", 3), ("orientation", 3), ("velocity", 6))
    )
    draft.notes.append(
        f'initial state of the vehicle: <vehicle model="{draft.name}" position="{format_numbers(*place)} m" attitude="{format_numbers(*turn)} rad" '
        f'velocity="{format_numbers(*motion[:3])} m/s" angular_velocity="{format_numbers(*motion[3:])} rad/s" .../>'
    )
    draft.record_unused(table)  # includes `use_quaternion`: a rotation by a quaternion is not read
