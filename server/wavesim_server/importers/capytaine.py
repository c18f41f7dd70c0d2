"""Reader for Capytaine data sets (NetCDF, as written by ``export_dataset`` or by xarray's ``to_netcdf``).

Capytaine's time factor is ``exp(-i w t)``; therefore, this reader conjugates the forces.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.extras import check_installed
from wavesim_server.importers import panel_results
from wavesim_server.importers.model_draft import ModelDraft


def read(path: Path, draft: ModelDraft) -> panel_results.PanelResults:
    """Return the results for one rigid body. Raises ValueError if the file does not contain a Capytaine data set."""
    data = _variables(path)
    for name in ("added_mass", "radiation_damping", "omega", "wave_direction", "radiating_dof", "influenced_dof"):
        if name not in data:
            raise ValueError(f"missing variable '{name}'")
    if np.any(data.get("forward_speed", (("",), np.zeros(1)))[1] != 0.0):
        raise ValueError("the tables were computed with forward speed; use tables at zero speed")
    w = np.atleast_1d(data["omega"][1]).astype(float)
    a, b = (_matrix_variable(data, name, "omega") for name in ("added_mass", "radiation_damping"))
    infinite = a[np.isinf(w)][0] if np.isinf(w).any() else None
    if "excitation_force" in data:
        x = _excitation_force(data, "excitation_force")
    elif "diffraction_force" in data and "Froude_Krylov_force" in data:
        x = _excitation_force(data, "diffraction_force") + _excitation_force(data, "Froude_Krylov_force")
    else:
        raise ValueError("missing variable 'excitation_force'")
    whole = np.isfinite(a).all(axis=(1, 2)) & np.isfinite(b).all(axis=(1, 2)) & np.isfinite(x).all(axis=(0, 2))
    whole &= np.isfinite(w) & (w > 0.0)
    if not whole.any():
        raise ValueError("there is no frequency at which all values are finite")
    notes: tuple[str, ...] = ()
    if lost := int((~whole & np.isfinite(w) & (w > 0.0)).sum()):
        notes = (f"{lost} of {len(w)} frequencies are omitted because they contain values that are not finite",)
    found = panel_results.PanelResults(notes=notes)
    found.coefficients = panel_results.make_coefficients(w[whole], a[whole], b[whole], infinite)
    found.operators = panel_results.make_operators(
        w[whole], np.atleast_1d(data["wave_direction"][1]), x[:, whole], "force"
    )
    for name, at in (("hydrostatic_stiffness", "stiffness"), ("inertia_matrix", "rigid_body")):
        if name in data:
            setattr(found, at, _matrix_variable(data, name)[0] * panel_results.AXIS_SIGN_PRODUCTS)
    if "rho" in data:
        found.density = float(np.ravel(data["rho"][1])[0])
    if "rotation_center" in data:
        x0, y0, z0 = np.ravel(data["rotation_center"][1])[:3]
        if x0 or y0:
            raise ValueError(
                f"the rotation centre is {x0:g}, {y0:g} m from the origin, but the phases refer to the origin: use the rotation centre 0, 0"
            )
        found.depth = -float(z0)
    else:
        depth = draft.require_numbers("origin-depth", 1)
        found.depth = depth[0] if depth is not None else 0.0
    return found


def _variables(path: Path) -> dict[str, tuple[tuple[str, ...], Array]]:
    """Return the dimensions and the values of each variable; strings are not converted."""
    if path.read_bytes()[:4] == b"\x89HDF":
        try:
            import h5py
        except ImportError:
            raise ValueError(
                "the file is in NetCDF 4 format; run `pip install h5py`, or write the file with "
                "dataset.to_netcdf(FILE, format='NETCDF3_64BIT')"
            ) from None
        with h5py.File(path, "r") as file:
            return {
                name: (
                    tuple(file[d[0]].name.lstrip("/") for d in v.attrs["DIMENSION_LIST"])
                    if "DIMENSION_LIST" in v.attrs
                    else ((name,) if v.ndim else ()),
                    v[()] if not h5py.check_string_dtype(v.dtype) else np.asarray(v.asstr()[()]),
                )
                for name, v in file.items()
                if isinstance(v, h5py.Dataset)
            }
    check_installed("scipy")
    from scipy.io import netcdf_file

    with netcdf_file(path, "r", mmap=False) as file:
        return {name: _join_characters(v.dimensions, np.array(v.data)) for name, v in file.variables.items()}


def _join_characters(dimensions: tuple[str, ...], data: Array) -> tuple[tuple[str, ...], Array]:
    """Join characters into strings along the last dimension."""
    if data.dtype.kind != "S":
        return dimensions, data.astype(data.dtype.newbyteorder("="))
    joined = [b"".join(row).decode().strip("\0 ") for row in data.reshape(-1, data.shape[-1])]
    return dimensions[:-1], np.array(joined).reshape(data.shape[:-1])


def _dof_indices(names: Array) -> list[int]:
    """Return the index (0 to 5) of each degree of freedom. Raises ValueError if there is more than one rigid body."""
    found = []
    for name in np.ravel(names):
        word = str(name).lower()
        if word not in panel_results.DOFS:
            raise ValueError(
                f"unknown degree of freedom '{name}'; only a single body with the degrees of freedom "
                f"{', '.join(panel_results.DOFS)} can be imported"
            )
        found.append(panel_results.DOFS.index(word))
    return found


def _ordered_variable(data: Any, name: str, *first: str) -> Array:
    """Return a variable with its dimensions in the given order. Any other dimension must have length 1."""
    dimensions, values = data[name]
    if lost := [d for d in dimensions if d not in first and values.shape[dimensions.index(d)] != 1]:
        raise ValueError(f"'{name}' has several values for {lost[0]}; one value is needed")
    values = values.reshape([s for d, s in zip(dimensions, values.shape, strict=True) if d in first])
    kept = [d for d in dimensions if d in first]
    if missing := [d for d in first if d not in kept]:
        values, kept = values.reshape(*values.shape, *[1] * len(missing)), kept + missing
    return np.asarray(values.transpose([kept.index(d) for d in first]))


def _matrix_variable(data: Any, name: str, *first: str) -> Array:
    """Return the matrices (..., 6, 6) of a variable, with forces as rows and motions as columns."""
    values = _ordered_variable(data, name, *first, "influenced_dof", "radiating_dof")
    values = values.reshape(-1, *values.shape[-2:])
    whole = np.zeros((len(values), 6, 6))
    whole[
        np.ix_(range(len(values)), _dof_indices(data["influenced_dof"][1]), _dof_indices(data["radiating_dof"][1]))
    ] = values
    return whole


def _excitation_force(data: Any, name: str) -> Array:
    """Return the excitation force (6, frequencies, headings) with leading phases."""
    if "complex" in data[name][0]:
        parts = _ordered_variable(data, name, "complex", "influenced_dof", "omega", "wave_direction")
        names = [str(x) for x in np.ravel(data["complex"][1])] if "complex" in data else ["re", "im"]
        values = parts[names.index("re")] - 1j * parts[names.index("im")]
    else:
        values = np.conj(_ordered_variable(data, name, "influenced_dof", "omega", "wave_direction"))
    whole = np.zeros((6, *values.shape[1:]), complex)
    whole[_dof_indices(data["influenced_dof"][1])] = values
    return whole
