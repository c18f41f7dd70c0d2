"""A floating hemisphere: the heave coefficients of Hulme 1982 (J. Fluid Mech. 121, table 1), and files of panel codes with them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

RADIUS, DENSITY, G = 5.0, 1000.0, 9.81
MASS = 2.0 / 3.0 * math.pi * DENSITY * RADIUS**3
STIFFNESS = DENSITY * G * math.pi * RADIUS**2
#: k a, added mass over the displaced mass, damping over the displaced mass and frequency
HEAVE = np.array(
    [
        (0.05, 0.8764, 0.1036),
        (0.1, 0.8627, 0.1816),
        (0.2, 0.7938, 0.2793),
        (0.3, 0.7157, 0.3254),
        (0.4, 0.6452, 0.3410),
        (0.5, 0.5861, 0.3391),
        (0.6, 0.5381, 0.3271),
        (0.7, 0.4999, 0.3098),
        (0.8, 0.4698, 0.2899),
        (0.9, 0.4464, 0.2691),
        (1.0, 0.4284, 0.2484),
        (1.2, 0.4047, 0.2096),
        (1.4, 0.3924, 0.1756),
        (1.6, 0.3871, 0.1469),
        (1.8, 0.3864, 0.1229),
        (2.0, 0.3884, 0.1031),
        (2.5, 0.3988, 0.0674),
        (3.0, 0.4111, 0.0452),
        (4.0, 0.4322, 0.0219),
        (5.0, 0.4471, 0.0116),
        (6.0, 0.4574, 0.0066),
        (7.0, 0.4647, 0.0040),
        (8.0, 0.4700, 0.0026),
        (9.0, 0.4740, 0.0017),
        (10.0, 0.4771, 0.0012),
    ]
)
INFINITE = 0.5  #: added mass at infinite frequency, likewise
FREQUENCIES = np.sqrt(HEAVE[:, 0] * G / RADIUS)
ADDED, DAMPING = HEAVE[:, 1] * MASS, HEAVE[:, 2] * MASS * FREQUENCIES
#: of a wave of 1 m, by Haskind's relation for a body that is alike all round: B = k X^2 w/(2 rho g^2)
FORCE = np.sqrt(2.0 * DENSITY * G**3 * DAMPING / FREQUENCIES**3)
LAG = np.linspace(0.0, 0.6, len(FREQUENCIES))  #: rad, of that force: any, to see which way the codes' phases turn
SETTINGS = {
    "size": "10 10 10",
    "mass": f"{MASS}",
    "centre": "0 0 1",
    "inertia": "2e6 2e6 2e6",
    "linear-drag": "0 0 0 0 0 0",
}
GRAVITY = 0.3 * MASS * G  #: N m per rad, of roll and pitch


def heave(w: float) -> float:
    """Motion per amplitude by Hulme's coefficients."""
    a, b, x = (float(np.interp(w, FREQUENCIES, y)) for y in (ADDED, DAMPING, FORCE))
    return abs(x / (STIFFNESS - w * w * (MASS + a) + 1j * w * b))


def _six(values: np.ndarray) -> np.ndarray:
    m = np.zeros((len(values), 6, 6))
    m[:, 2, 2] = values
    return m


def stiffness() -> np.ndarray:
    """(6, 6), of the codes' axes and of body axes."""
    return np.diag([0.0, 0.0, STIFFNESS, GRAVITY, GRAVITY, 0.0])


def capytaine(path: Path, headings: tuple[float, ...] = (0.0, 90.0, 180.0), some: slice = slice(None)) -> Path:
    """A NetCDF file as Capytaine's users write it."""
    import xarray

    dofs = ["Surge", "Sway", "Heave", "Roll", "Pitch", "Yaw"]
    w = FREQUENCIES[some]
    force = np.zeros((2, len(w), len(headings), 6))
    z = (FORCE * np.exp(1j * LAG))[some]
    force[0, :, :, 2], force[1, :, :, 2] = z.real[:, None], z.imag[:, None]  # e^(-i w t): what lags is positive
    square = ("omega", "radiating_dof", "influenced_dof")
    xarray.Dataset(
        {
            "added_mass": (square, _six(ADDED[some])),
            "radiation_damping": (square, _six(DAMPING[some])),
            "excitation_force": (("complex", "omega", "wave_direction", "influenced_dof"), force),
            "hydrostatic_stiffness": (("influenced_dof", "radiating_dof"), stiffness()),
            "rotation_center": (("xyz",), np.zeros(3)),
            "rho": ((), DENSITY),
        },
        coords={
            "omega": w,
            "radiating_dof": dofs,
            "influenced_dof": dofs,
            "wave_direction": np.radians(headings),
            "complex": ["re", "im"],
        },
    ).to_netcdf(path, engine="scipy")
    return path


def wamit(path: Path, length: float = 2.0) -> Path:
    """NAME.1, .3, .hst with a length scale, as dimensionless numbers by period; the added mass at period 0."""
    one, three = ["WAMIT Numeric Output"], ["WAMIT Numeric Output"]
    one.append(f" 0.0 3 3 {INFINITE * MASS / (DENSITY * length**3):.6e}")
    for w, a, b, x, lag in zip(FREQUENCIES, ADDED, DAMPING, FORCE, LAG, strict=True):
        t = 2.0 * math.pi / w
        one.append(f" {t:.6e} 3 3 {a / (DENSITY * length**3):.6e} {b / (DENSITY * w * length**3):.6e}")
        for heading in (0.0, 90.0, 180.0):
            z = x / (DENSITY * G * length**2) * np.exp(-1j * lag)
            for i in range(1, 7):
                v = z if i == 3 else 0j
                three.append(
                    f" {t:.6e} {heading:.2f} {i} {abs(v):.6e} {math.degrees(-lag):.6e} {v.real:.6e} {v.imag:.6e}"
                )
    path.write_text("\n".join(one) + "\n")
    path.with_suffix(".3").write_text("\n".join(three) + "\n")
    power = 2 + np.add.outer([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1])
    c = stiffness() / (DENSITY * G * float(length) ** power)
    path.with_suffix(".hst").write_text(
        "".join(f" {i + 1} {j + 1} {c[i, j]:.6e}\n" for i in range(6) for j in range(6))
    )
    return path


def nemoh(folder: Path) -> Path:
    """A folder of NEMOH 2; phases in rad."""
    (folder / "Results").mkdir(parents=True)
    (folder / "Mesh").mkdir()
    turns = "".join(f"2 {a} 0. 0. 0.\t! about a point\n" for a in ("1. 0. 0.", "0. 1. 0.", "0. 0. 1."))
    (folder / "Nemoh.cal").write_text(
        f"--- Environment\n{DENSITY}\t! RHO ! KG/M**3 ! Fluid specific volume\n{G}\t! G ! M/S**2 ! Gravity\n"
        f"1\t! Number of bodies\n{turns}{turns}{len(FREQUENCIES)} 0.3 4.4 ! Number of wave frequencies, Min, and Max (rad/s)\n"
    )
    text = ['VARIABLES="w (rad/s)"', '"A   1   1" "B   1   1"']
    for dof in range(6):
        text.append(f'Zone t="Motion of body    1 in DoF   {dof + 1}",I= {len(FREQUENCIES)},F=POINT')
        for w, a, b in zip(FREQUENCIES, ADDED, DAMPING, strict=True):
            pairs = [(a, b) if dof == i == 2 else (0.0, 0.0) for i in range(6)]
            text.append(f"{w:.7e} " + " ".join(f"{x:.7e} {y:.7e}" for x, y in pairs))
    (folder / "Results/RadiationCoefficients.tec").write_text("\n".join(text) + "\n")
    text = ['VARIABLES="w (rad/s)"', '"abs(F   1   1)" "angle(F   1   1)"']
    for heading in (0, 90, 180):
        text.append(f'Zone t="Diffraction force - beta = {heading:7.3f} deg",I= {len(FREQUENCIES)},F=POINT')
        for w, x, lag in zip(FREQUENCIES, FORCE, LAG, strict=True):
            pairs = [(x, lag) if i == 2 else (0.0, 0.0) for i in range(6)]
            text.append(f"{w:.7e} " + " ".join(f"{a:.7e} {b:.7e}" for a, b in pairs))
    (folder / "Results/ExcitationForce.tec").write_text("\n".join(text) + "\n")
    (folder / "Mesh/KH.dat").write_text("\n".join(" ".join(f"{v:.7e}" for v in row) for row in stiffness()) + "\n")
    return folder
