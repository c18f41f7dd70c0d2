"""Program that solves the potential flow around a body with Capytaine, in a separate process.

    python -m wavesim_studies.from_mesh.panel_program IN.npz OUT.npz SECONDS

It prints progress lines ``FRACTION TEXT``. It prints one line that states the reason to standard error and exits with
code 2 if the flow cannot be computed. The axes are those of Capytaine: x forward, y to port, z up, with the water
surface at z = 0; the time factor is exp(-i w t).

IN.npz: ``vertices`` (n, 3), ``faces`` (k, 3), ``symmetric`` (the mesh is the half with y >= 0), ``origin`` (3,),
``density``, ``gravity``, ``frequencies`` (f,) in rad/s and ``headings`` (h,) in rad. Without frequencies, the body is
in unbounded water.

OUT.npz: ``infinite`` (2, 6, 6), the added mass in unbounded water or at infinite frequency, with unknown sources and
with unknown potential. For a hull at the surface also ``added_mass`` and ``damping`` (f, 6, 6), ``force`` (f, h,
6), and the Kochin functions ``kochin_radiation`` (f, 6, t) and ``kochin_diffraction`` (f, h, t) at the angles
``angles`` (t,).
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

MEMORY = 6 << 30  #: maximum address space of this program, in bytes
ANGLES = 240  #: directions of the Kochin functions over the full circle, in steps of 1.5 deg
DOFS = ("Surge", "Sway", "Heave", "Roll", "Pitch", "Yaw")


def solve(given: Any) -> dict[str, Any]:
    """Return the arrays of OUT.npz for the arrays of IN.npz."""
    import capytaine
    from capytaine.bem.airy_waves import froude_krylov_force
    from capytaine.post_pro.kochin import compute_kochin

    capytaine.set_logging("ERROR")
    mesh = capytaine.Mesh(vertices=given["vertices"], faces=given["faces"], auto_check=False)
    frequencies, floating = given["frequencies"], len(given["frequencies"]) > 0
    lid = mesh.generate_lid() if floating else None
    if given["symmetric"]:
        mesh = capytaine.ReflectionSymmetricMesh(half=mesh, plane="xOz")
        if floating:
            lid = mesh.generate_lid()
    body = capytaine.FloatingBody(mesh=mesh, lid_mesh=lid)
    body.add_all_rigid_body_dofs(rotation_center=given["origin"])
    # without waves, the program does not need Capytaine's tables, which take a minute to compute at first use
    tables: dict[str, Any] = {"tabulation_nr": 10, "tabulation_nz": 5, "tabulation_nb_integration_points": 11}
    tables = {} if floating else tables | {"tabulation_cache_dir": None}
    if floating:
        _tell(0.0, "tables of the wave potential (once for this user)")
    solver = capytaine.BEMSolver(green_function=capytaine.Delhommeau(**tables))
    water = {"rho": float(given["density"]), "water_depth": np.inf}

    def matrices(radiating: list[Any]) -> tuple[Any, Any]:
        m = np.zeros((2, 6, 6))
        for j, r in enumerate(radiating):
            for i, name in enumerate(DOFS):
                m[0, i, j], m[1, i, j] = r.added_masses[name], r.radiation_dampings[name]
        return m[0], m[1]

    def radiation(surface: float, omega: float, method: str = "indirect") -> list[Any]:
        return [
            solver.solve(
                capytaine.RadiationProblem(body=body, radiating_dof=d, omega=omega, free_surface=surface, **water),
                method=method,
                _check_wavelength=False,
            )
            for d in DOFS
        ]

    surface = 0.0 if floating else np.inf
    infinite = [matrices(radiation(surface, np.inf, method))[0] for method in ("indirect", "direct")]
    out: dict[str, Any] = {"infinite": np.array(infinite)}
    if not floating:
        return out
    water["g"] = float(given["gravity"])
    _tell(0.02, "added mass at infinite frequency")
    angles = 2.0 * np.pi / ANGLES * np.arange(ANGLES)
    rows: dict[str, list[Any]] = {
        k: [] for k in ("added_mass", "damping", "force", "kochin_radiation", "kochin_diffraction")
    }
    for k, w in enumerate(frequencies):
        radiated = radiation(0.0, w)
        scattered = [
            solver.solve(
                capytaine.DiffractionProblem(body=body, wave_direction=b, omega=w, **water), _check_wavelength=False
            )
            for b in given["headings"]
        ]
        a, b = matrices(radiated)
        rows["added_mass"].append(a)
        rows["damping"].append(b)
        incident = [froude_krylov_force(s.problem) for s in scattered]
        rows["force"].append([[s.forces[d] + f[d] for d in DOFS] for s, f in zip(scattered, incident, strict=True)])
        rows["kochin_radiation"].append([compute_kochin(r, angles) for r in radiated])
        rows["kochin_diffraction"].append([compute_kochin(s, angles) for s in scattered])
        _tell(0.02 + 0.98 * (k + 1) / len(frequencies), f"waves of {2.0 * np.pi / w:.3g} s")
    return out | {name: np.array(values) for name, values in rows.items()} | {"angles": angles}


def _tell(fraction: float, text: str) -> None:
    sys.stdout.write(f"{fraction:.3f} {text}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    source, out, seconds = arguments
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (2 * int(seconds), 2 * int(seconds) + 1))
    try:
        with np.load(source) as data:
            found = solve({name: data[name] for name in data.files})
        np.savez(Path(out), **found)
    except MemoryError:
        sys.stderr.write("the panel method needs too much memory: use fewer panels\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
