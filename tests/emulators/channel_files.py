"""Synthetic measured channels: taps that drift, in a file of the uwa-channels format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def write_channel(
    path: Path, response: Any, delay_rate: float, time_rate: float, carrier: float, **fields: Any
) -> Path:
    """Write impulse responses (time, receiver, delay), and other fields such as ``phi_hat`` (time, receiver)."""
    import h5py

    response = np.asarray(response, complex)
    stored = np.empty(response.shape, [("real", "f8"), ("imag", "f8")])
    stored["real"], stored["imag"] = response.real, response.imag
    with h5py.File(path, "w") as file:
        file["h_hat"] = stored
        for name, value in (("fs_delay", delay_rate), ("fs_time", time_rate), ("fc", carrier)):
            file[f"params/{name}"] = np.full((1, 1), value)
        for name, value in ({"version": 1.0} | fields).items():
            file[name] = np.atleast_2d(np.asarray(value, float))
    return path
