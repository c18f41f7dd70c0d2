"""Mass, balance and rest position of a vehicle from its mesh."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import ConfigError
from wavesim_studies.from_mesh.mesh_preparation import PreparedMesh
from wavesim_world.hull import FloatingState, Hull

DENSITY = 1025.0
#: submerged vehicles: range of the mass divided by the mass of the displaced water
LEAST_RATIO, MOST_RATIO = 0.8, 1.25
LOWERED = 0.05  #: assumed distance of the centre of mass below the centre of buoyancy, as a share of the height


@dataclass(frozen=True)
class MassOptions:
    """Mass in kg, and what the user knows about its distribution.

    ``centre`` is the centre of mass (m), ``inertia`` are the moments of inertia about it (kg m2), and ``displacement`` is
    the volume of displaced water (m3) of a vehicle with a flooded hull. None stands for an assumption.
    """

    mass: float
    kind: str = "underwater"
    centre: tuple[float, float, float] | None = None
    inertia: tuple[float, float, float] | None = None
    displacement: float | None = None


class VehicleBalance(NamedTuple):
    """Balance of a vehicle: centre of mass (m), inertia (3, 3; kg m2) about it, displaced volume (m3) when submerged
    and its centre (m), mass of the water that floods the hull (kg), roll and pitch at rest (rad), and the floating state
    of a vehicle at the surface.
    """

    mass: float
    centre: Array
    inertia: Array
    volume: float
    buoyancy: Array
    flooded: float
    roll: float
    pitch: float
    afloat: FloatingState | None
    notes: tuple[str, ...]


def balance(mesh: PreparedMesh, options: MassOptions) -> VehicleBalance:
    """Return the balance of a vehicle. Raises ConfigError if it sinks, capsizes or does not fit its mass."""
    notes = []
    if options.inertia is None:
        inertia = options.mass / mesh.volume * mesh.inertia
        notes.append("inertia: the mass is distributed evenly over the volume of the mesh (--inertia)")
    else:
        inertia = np.diag(options.inertia)
    found = _afloat(mesh, options, notes) if options.kind == "surface" else _submerged(mesh, options, notes)
    return found._replace(inertia=_clean(inertia), notes=(*notes,))


def _clean(inertia: Array) -> Array:
    """Return an inertia matrix without the products that are rounding errors of the mesh."""
    scale = np.sqrt(np.outer(np.diag(inertia), np.diag(inertia)))
    return np.where(np.abs(inertia) > 1e-3 * scale, inertia, 0.0)


def _submerged(mesh: PreparedMesh, options: MassOptions, notes: list[str]) -> VehicleBalance:
    volume = mesh.volume if options.displacement is None else options.displacement
    ratio = options.mass / (DENSITY * volume)
    if not LEAST_RATIO <= ratio <= MOST_RATIO:
        what = "the mesh displaces" if options.displacement is None else "--displacement is"
        raise ConfigError(
            f"{what} {DENSITY * volume:.4g} kg of water, which does not fit a mass of {options.mass:g} kg: if water floods "
            "the hull, state the displaced mass with --displacement; otherwise check --mass and --unit, or use "
            "--type surface"
        )
    flooded = max(DENSITY * (mesh.volume - volume), 0.0) if options.displacement is not None else 0.0
    if flooded:
        notes.append(f"water that floods the hull: {flooded:.4g} kg move with it, as added mass")
    centre = np.array(options.centre) if options.centre is not None else mesh.centre.copy()
    if options.centre is None:
        drop = LOWERED * float(mesh.size[2])
        centre = centre + [0.0, 0.0, drop]
        notes.append(f"centre of mass: assumed {drop:.3g} m below the centre of buoyancy (--centre)")
    arm = centre - mesh.centre
    length = math.sqrt(float(arm @ arm))
    if arm[2] <= 0.0 or length < 1e-9:
        raise ConfigError(
            "the centre of mass is not below the centre of buoyancy, so the vehicle capsizes: lower --centre"
        )
    net = DENSITY * volume - options.mass
    notes.append(f"net buoyancy when submerged: {9.81 * net:+.3g} N")
    return VehicleBalance(
        options.mass,
        centre,
        np.zeros((3, 3)),
        volume,
        mesh.centre,
        flooded,
        math.atan2(float(arm[1]), float(arm[2])),
        -math.asin(float(arm[0]) / length),
        None,
        (),
    )


def _afloat(mesh: PreparedMesh, options: MassOptions, notes: list[str]) -> VehicleBalance:
    if options.displacement is not None:
        raise ConfigError("--displacement applies to --type underwater only: a floating vehicle displaces its mass")
    hull = Hull(mesh.hull)
    if options.mass >= DENSITY * hull.volume:
        raise ConfigError(
            f"the hull displaces at most {DENSITY * hull.volume:.4g} kg, so a mass of {options.mass:g} kg sinks: check "
            "--mass and --unit, or use --type underwater"
        )
    centre = np.array(options.centre) if options.centre is not None else mesh.centre.copy()
    found = hull.afloat(options.mass, centre.tolist(), DENSITY)
    if options.centre is None:
        centre[:2] = found.centre[:2]
        notes.append(
            "centre of mass: assumed at the height of the mesh's centre of volume, where the hull floats level"
        )
        found = hull.afloat(options.mass, centre.tolist(), DENSITY)
    for name, gm in (("roll", found.gm_roll), ("pitch", found.gm_pitch)):
        if gm <= 0.0:
            raise ConfigError(
                f"the hull capsizes: its metacentric height in {name} is {gm:.3g} m with the centre of mass at "
                f"{centre[2]:.3g} m (down); state a lower one with --centre"
            )
    roll, pitch = _rest(hull, options.mass, centre)
    return VehicleBalance(options.mass, centre, np.zeros((3, 3)), hull.volume, mesh.centre, 0.0, roll, pitch, found, ())


def _rest(hull: Hull, mass: float, centre: Array) -> tuple[float, float]:
    """Return roll and pitch in rad at which the centre of buoyancy is straight above the centre of mass."""
    from scipy.optimize import root

    def arms(angles: Array) -> list[float]:
        (roll, pitch) = angles
        down = np.array([-math.sin(pitch), math.sin(roll) * math.cos(pitch), math.cos(roll) * math.cos(pitch)], float)
        arm = hull.wetted_part(down.tolist(), hull.level(down.tolist(), mass / DENSITY)).centre - centre
        across = np.cross(arm, down)
        return [float(across[0]), float(across[1])]

    if max(abs(x) for x in arms(np.zeros(2))) < 1e-4 * float(np.ptp(hull.triangles.reshape(-1, 3), axis=0).max()):
        return 0.0, 0.0
    found = root(arms, np.zeros(2), tol=1e-6)
    if not found.success or np.abs(found.x).max() > math.radians(30.0):
        raise ConfigError(
            "the hull does not float near its upright attitude: move --centre towards the centre of buoyancy"
        )
    return float(found.x[0]), float(found.x[1])
