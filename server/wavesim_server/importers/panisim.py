"""Reader for Panisim/Makara vessel folders: geometry, inertia, hydrodynamics, control surfaces, thrusters, sensors."""

from __future__ import annotations

import csv
import json
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
from wavesim_server.importers.model_draft import EMPTY_VALUES, ModelDraft, TrackedTable, format_numbers

GRAVITY = 9.80665
PROPELLER_LAG_S = 1.0  #: time constant of every propeller in Panisim


def read(folder: Path, settings: dict[str, str], angles: str | None) -> ModelDraft:
    """Return the draft model for a folder, with the terms of Panisim's class `Vessel`.

    The added mass and the restoring matrix come from a HydRA file, and the aerofoil from a NACA table; both files are
    in the folder or next to it.
    """
    geometry, inertia = _read_part(folder, "geometry.yml"), _read_part(folder, "inertia.yml")
    hydro, controls = _read_part(folder, "hydrodynamics.yml"), _read_part(folder, "control_surfaces.yml")
    name = Path(str(hydro.get("hydra_file", folder.name))).stem.replace("_hydra", "")
    draft = ModelDraft(name, f"{folder.name} (Panisim/Makara)", settings, angles)
    draft.attributes |= {"type": "surface", "coriolis": "yes" if hydro.get("coriolis_flag", True) else "no"}
    length = float(geometry["length"])
    draft.add("box", length=f"{length:g} m", width=f"{geometry['breadth']:g} m", height=f"{geometry['depth']:g} m")
    _add_masses(draft, folder, name, geometry, inertia)
    prime = not hydro.get("dim_flag", False)
    speed = float(geometry["Fn"]) * math.sqrt(GRAVITY * length)
    system = {"system": "prime", "length": f"{length:g} m", "speed": f"{speed:.12g} m/s"} if prime else {}
    found = {
        key: float(hydro[key])
        for key in hydro
        if re.fullmatch(r"[XYZKMN]_[a-z_]+", key) and isinstance(hydro[key], (int, float))
    }
    for k, surface in enumerate(controls.get("control_surfaces") or []):
        found |= _add_control_surface(draft, folder, controls, surface if isinstance(surface, dict) else {}, k)
    draft.derivatives(found, **system)
    thrusters = _read_part(folder, "thrusters.yml", needed=False)
    for k, one in enumerate(thrusters.get("thrusters") or []):
        _add_thruster(draft, TrackedTable(one, f"thrusters.yml {k + 1}"))
    _add_sensors(draft, _read_part(folder, "sensors.yml", needed=False))
    _note_start(draft, _read_part(folder, "initial_conditions.yml", needed=False))
    geometry.ignore("geometry_file")  # used for drawing only
    controls.ignore("naca_number", "naca_file", "delta_max", "deltad_max", "area")  # each surface names its own
    for part in (geometry, inertia, hydro, controls, thrusters):
        draft.record_unused(part)
    return draft


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


def _add_masses(draft: ModelDraft, folder: Path, name: str, geometry: TrackedTable, inertia: TrackedTable) -> None:
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
    hydra = next(
        (p for p in (folder / f"{name}_hydra.json", folder.parent / f"{name}_hydra.json") if p.is_file()), None
    )
    data = {} if hydra is None else json.loads(hydra.read_text())
    if added is not None:
        draft.matrix("added-mass", added)
    elif hydra is not None:
        draft.matrix("added-mass", np.array(data["A_inf"], float))
    elif (diagonal := draft.require_numbers("added-mass", 6)) is not None:
        draft.matrix("added-mass", np.diag(diagonal))
    if hydra is not None:
        stiff = np.array(data["C"], float)
        stiff[np.abs(stiff) < 1e-12 * np.abs(stiff).max()] = 0.0  # rounding errors
        draft.matrix("restoring", stiff)
        draft.notes.append(
            f"from {hydra.name}: added mass at infinite frequency and restoring, but not damping and waves"
        )
        geometry.ignore("CB")  # the restoring is about the equilibrium, which includes it
        if (floating := float(inertia.get("buoyancy_mass", mass))) != mass:
            draft.unused.append(f"inertia.yml: buoyancy_mass = {floating:g}, because it differs from the mass")


def _add_control_surface(
    draft: ModelDraft, folder: Path, controls: Mapping[str, Any], table: dict[str, Any], number: int
) -> dict[str, float]:
    """Add a control surface and return its derivatives. Its angle limit is in deg and its rate limit in rad/s, as
    Panisim reads them.
    """
    s = TrackedTable(table, f"control_surfaces.yml {number + 1}")
    limit = math.degrees(draft.angle(float(s["control_surface_delta_max"]), "control_surface_delta_max"))
    common = {
        "name": str(s["control_surface_type"]).lower(),
        "limit": f"{limit:.9g} deg",
        "rate": f"{float(s['control_surface_deltad_max']):.9g} rad/s",
        "lag": f"{s['control_surface_T']:g} s",
    }
    found = {}
    terms = s.get("control_surface_hydrodynamics")
    for key, value in (terms if isinstance(terms, dict) else {}).items():
        found[f"{str(key).partition('_')[0]}_d{number + 1}"] = float(value)
    s.ignore("control_surface_id")
    aerofoil = _read_aerofoil(folder, s.get("control_surface_NACA"), controls.get("naca_file"))
    if aerofoil is None:
        draft.add("fin", law="derivatives", **common)
        s.ignore("control_surface_location", "control_surface_orientation", "control_surface_area")
    else:
        # a rudder is upright; its orientation turns it about x (rad)
        roll, *others = (float(a) for a in s["control_surface_orientation"])
        if any(others):
            draft.unused.append(f"control_surfaces.yml {number + 1}: pitch and yaw of the surface's orientation")
        fin = draft.add(
            "fin",
            law="aerofoil",
            position=format_numbers(*s["control_surface_location"]) + " m",
            normal=format_numbers(0.0, round(math.cos(roll), 12), round(math.sin(roll), 12)),
            area=f"{s['control_surface_area']:g} m2",
            **common,
        )
        etree.SubElement(fin, "aerofoil").text = "  ".join(format_numbers(*row) for row in aerofoil)
    draft.record_unused(s)
    return found


def _read_aerofoil(folder: Path, *names: Any) -> list[tuple[float, float, float]] | None:
    """Return the rows (alpha in deg, CL, CD) of the aerofoil table that a control surface names; None if it does not
    name a table.
    """
    for name in names:
        if name in EMPTY_VALUES:
            continue
        for place in (folder, folder.parent):
            for path in (place / str(name), place / f"NACA{name}.csv"):
                if path.is_file():
                    with path.open(newline="") as file:
                        return [(float(r["Alpha"]), float(r["Cl"]), float(r["Cd"])) for r in csv.DictReader(file)]
        raise ConfigError(f"no aerofoil table '{name}' or 'NACA{name}.csv' in the folder or next to it", str(folder))
    return None


def _add_thruster(draft: ModelDraft, t: TrackedTable) -> None:
    """Add a thruster with the thrust T = (1 - tp) rho D^4 KT0 (1 - J) n abs(n), with n in 1/s. Its direction is the x
    axis rotated by Panisim's roll, pitch and yaw.
    """
    roll, pitch, yaw = (float(a) for a in t["thruster_orientation"])
    along = (
        math.cos(pitch) * math.cos(yaw),
        math.sin(roll) * math.sin(pitch) * math.cos(yaw) + math.cos(roll) * math.sin(yaw),
        -math.cos(roll) * math.sin(pitch) * math.cos(yaw) + math.sin(roll) * math.sin(yaw),
    )
    most, kt = float(t["n_max"]) / 60.0, float(t["KT_at_J0"])
    element = draft.add(
        "thruster",
        name=str(t.get("thruster_name") or f"thruster-{t['thruster_id']}"),
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


#: WaVeSim's sensor type for each Panisim sensor type
SENSORS = {"imu": "imu", "gps": "gps", "uwb": "uwb", "dvl": "dvl", "encoder": "encoder"}
COVARIANCES = {
    "linear_acceleration_covariance": "accelerometer_noise",
    "angular_velocity_covariance": "gyro_noise",
    "position_covariance": "position",
    "linear_velocity_covariance": "bottom_sigma",
}


def _add_sensors(draft: ModelDraft, table: TrackedTable) -> None:
    """Add sensors with their positions, rates and noise levels; list those covariance elements that cannot be used."""
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
            _add_noise(draft, element, TrackedTable(s["custom_covariance"], s["sensor_type"]), kind, rate)
        s.ignore("sensor_topic", "actuator_type", "actuator_id", "custom_covariance")
        draft.record_unused(s)
    draft.record_unused(table)
    if len(list_):
        draft.elements.append(list_)


def _add_noise(draft: ModelDraft, element: etree._Element, covariances: TrackedTable, kind: str, rate: float) -> None:
    for key, ours in COVARIANCES.items():
        if key not in covariances:
            continue
        m = np.array(covariances[key], float).reshape(3, 3)
        sigma = math.sqrt(np.trace(m) / 3.0)
        if ours == "position":
            level = math.sqrt(np.trace(m[:2, :2]))
            if kind == "gps":
                element.set("hacc", f"{level:.6g} m")
                element.set("vacc", f"{math.sqrt(m[2, 2]):.6g} m")
            else:
                element.set("sigma", f"{level / math.sqrt(2.0):.6g} m")
        elif ours == "bottom_sigma":
            element.set(ours, f"{sigma:.6g} m/s")
        else:
            element.set(ours, f"{sigma / math.sqrt(rate):.6g}")  # per sample -> per square root of Hz
        if np.count_nonzero(m - np.diag(np.diag(m))) or np.ptp(np.diag(m)):
            draft.notes.append(
                f"{element.tag}: the noise of {key} is the mean of the variances, the same for each axis"
            )
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
