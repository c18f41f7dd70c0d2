"""Temperature and salinity from files in DUNE's format: one file for each quantity and time, with its own origin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.world import SampleFile, Samples
from wavesim_world.ocean.volume import EARTH_RADIUS, LIMITS, MAX_BYTES, VOLUME_COLUMNS, ScatteredSamples, metres_east

_DEGREE = math.pi / 180.0
_ORIGIN = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 360.0)}
#: maximum distance in m of a point from its origin along each axis; a local plane is not accurate farther away
_MAX_OFFSET = 1e6
_DEEPEST = LIMITS["depth_meter"]


class SeparateSamples:
    """Temperature and salinity, each with its own points and times."""

    def __init__(self, quantities: Sequence[ScatteredSamples]) -> None:
        self.quantities = tuple(quantities)

    def __call__(self, p_W: Floats, time_s: float = 0.0) -> Floats:
        """Return an array (2, ...) of temperature and salinity at positions (..., 3)."""
        return np.concatenate([samples(p_W, time_s) for samples in self.quantities])


def read_sample_files(loaded: LoadedConfig, samples: Samples) -> SeparateSamples:
    """Read the files of a <samples> element. Raises ConfigError, naming the line, if a line is invalid."""
    return SeparateSamples(
        [
            _read_series(loaded, samples, "temperature", samples.temperature),
            _read_series(loaded, samples, "salinity", samples.salinity),
        ]
    )


def _read_series(
    loaded: LoadedConfig, samples: Samples, quantity: str, files: Sequence[SampleFile]
) -> ScatteredSamples:
    points, values, times = [], [], []
    for file in files:
        origin, data = read_sample_file(loaded.data_file(file.file), quantity)
        north = (origin[0] - samples.latitude / _DEGREE) * EARTH_RADIUS * _DEGREE
        east = (origin[1] - samples.longitude / _DEGREE) * metres_east(samples.latitude)
        points.append(data[:, :3] + (north, east, 0.0))
        values.append(data[:, 3:])
        times.append(np.full(len(data), file.time))
    return ScatteredSamples(
        np.concatenate(points), np.concatenate(times), np.concatenate(values), samples.radius, samples.power
    )


def read_sample_file(path: Path, quantity: str) -> tuple[tuple[float, float], Floats]:
    """Return the origin (latitude and longitude in deg) and the samples (n, 4) of a file: metres to the north, east and
    down of the origin, and the value. ``quantity`` is temperature or salinity. Points with the value `nan` are omitted.
    """
    what = f"the {quantity} file"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{what} is larger than {MAX_BYTES >> 20} MiB", str(path))
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read {what}: {error.strerror}", str(path)) from None
    origin: dict[str, float] = {}
    samples: list[list[float]] = []
    seen: dict[tuple[float, ...], int] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("["):
            if text.strip("[] ").lower() != quantity:
                raise ConfigError(f"the section of {what} is {text[:40]}; use [{quantity.title()}]", str(path), number)
            continue
        if not text or text.startswith("#"):
            continue
        name, equals, rest = text.partition("=")
        if equals and not name.strip().lower().startswith("data"):
            _read_origin(origin, name.strip(), rest.strip(), path, number)
            continue
        for part in filter(str.strip, (rest if equals else text).split(",")):
            sample = _sample(part, quantity, path, number)
            if math.isnan(sample[3]):
                continue  # not measured
            if (at := tuple(sample[:3])) in seen:
                raise ConfigError(f"duplicate line: its point equals that of line {seen[at]}", str(path), number)
            seen[at] = number
            samples.append(sample)
    for name in _ORIGIN:
        if name not in origin:
            raise ConfigError(f"{what} has no origin: add a line `{name.title()} (degrees) = ...`", str(path))
    if not samples:
        raise ConfigError(f"{what} has no samples: after `Data =`, write one line `x y z d` for each sample", str(path))
    return (origin["latitude"], origin["longitude"]), np.array(samples)


def _read_origin(origin: dict[str, float], name: str, text: str, path: Path, number: int) -> None:
    key = next((key for key in _ORIGIN if name.lower().startswith(key)), "")
    if not key:
        raise ConfigError(f"unknown name '{name[:40]}': use Latitude, Longitude and Data", str(path), number)
    low, high = _ORIGIN[key]
    found = _numbers([text])
    if not found or not low <= found[0] <= high:
        raise ConfigError(f"the {key} is '{text[:40]}'; use {low:g} to {high:g} degrees", str(path), number)
    origin[key] = found[0]


def _sample(text: str, quantity: str, path: Path, number: int) -> list[float]:
    values = _numbers(text.split())
    if len(values) != 4:
        raise ConfigError("invalid sample: use four numbers, x y z d, and a comma between samples", str(path), number)
    limits = (
        ("x", (-_MAX_OFFSET, _MAX_OFFSET)),
        ("y", (-_MAX_OFFSET, _MAX_OFFSET)),
        ("z", _DEEPEST),
        (f"the {quantity}", LIMITS[VOLUME_COLUMNS[quantity]]),
    )
    for value, (name, (low, high)) in zip(values, limits, strict=True):
        if not low <= value <= high and not (math.isnan(value) and name not in ("x", "y", "z")):
            raise ConfigError(f"{name} is {value:g}; use {low:g} to {high:g}", str(path), number)
    return values


def _numbers(words: list[str]) -> list[float]:
    """Return words as numbers, or an empty list if any word is not a number."""
    try:
        return [float(w) for w in words]
    except ValueError:
        return []
