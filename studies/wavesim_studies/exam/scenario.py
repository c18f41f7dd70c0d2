"""Scenarios of the exam: frozen configurations with three levels, and a statement of what a program may know.

A scenario consists of a configuration (NAME.xml) and a description (NAME.toml). The configuration contains
placeholders in braces, whose values depend on the level, and on the seed where the description gives a deviation.
All random numbers are independent between scenarios, levels and seeds. The description lists the seeds of the exam.
``frozen.json`` contains a digest of each scenario. A scenario whose files differ from its digest is refused, because
results of different files cannot be compared.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import shutil
import tomllib
import xml.sax.saxutils
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk.errors import ConfigError, UnknownName, WaveSimError
from wavesim_sdk.names import suggest_name

__all__ = ["LEVELS", "AlteredScenario", "Scenario", "frozen_digests", "names", "scenario"]

LEVELS = ("easy", "medium", "hard")
FOLDER = Path(str(importlib.resources.files("wavesim_studies.exam"))) / "scenarios"
FROZEN = "frozen.json"
PILOT = "pilot.py"


class AlteredScenario(WaveSimError):
    """The files of a scenario, or the scenario of a result, differ from the frozen ones."""

    exit_code = 2


@dataclass(frozen=True)
class FilterSettings:
    """Prior knowledge that the scenario states, and that the reference filter and the bound use."""

    current_sigma: float = 0.1  #: standard deviation of each component of the current in m/s
    #: time constant of the current in s; 0 means that the current is constant
    current_time: float = 0.0
    sound_sigma: float = 0.0  #: relative standard deviation of the assumed speed of sound
    clock_sigma: float = 0.0  #: standard deviation of the offset of a vehicle's clock in s
    drift_sigma: float = 0.0  #: standard deviation of the drift of a vehicle's clock
    agility: float = 0.1  #: random acceleration of the vehicles in m/s/sqrt(s)
    adaptive: bool = False  #: whether the reference filter adapts its noise


@dataclass(frozen=True)
class Scenario:
    """One scenario. Lengths are in m, times in s."""

    name: str
    title: str
    question: str  #: the difficulty that the scenario examines, as one sentence
    knowledge: tuple[str, ...]  #: statement of what a program may know
    vehicles: tuple[str, ...]  #: vehicles whose positions are scored
    duration: float
    requirement: float  #: horizontal error up to which a position counts as available
    score_from: float  #: time from which errors are scored; earlier times count only for the first fix
    seeds: tuple[int, ...]  #: seeds of the cases of each level
    digest: str
    text: str = field(repr=False)  #: configuration with placeholders
    description: dict[str, Any] = field(repr=False)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of further files that the configuration needs and a program may know."""
        return tuple(self.description.get("files", ()))

    def level(self, level: str) -> dict[str, Any]:
        """Return the values of a level. Raise UnknownName if it does not exist."""
        if level not in LEVELS:
            raise UnknownName(f"unknown level '{level}'{suggest_name(level, LEVELS)}")
        found: dict[str, Any] = self.description["levels"][level]
        return found

    def start_sigma(self, level: str) -> float:
        """Return the standard deviation in m of the north and east coordinates of the stated start position."""
        return float(self.level(level)["start_sigma"])

    def settings(self, level: str) -> FilterSettings:
        """Return the prior knowledge at a level."""
        known = FilterSettings.__dataclass_fields__
        values = {**self.description.get("prior", {}), **self.level(level)}
        return FilterSettings(**{k: v for k, v in values.items() if k in known})

    def start_errors(self, level: str, seed: int, vehicle: str) -> tuple[float, float]:
        """Return the errors (north, east) in m of the stated start position."""
        return self._normal_pair(level, seed, vehicle, "start", self.start_sigma(level))

    def run_seed(self, level: str, seed: int) -> int:
        """Return the seed of the simulation, of 31 bits."""
        return self._key(level, seed, "", "run") >> 33

    def configuration(self, level: str, seed: int, program: str = PILOT) -> str:
        """Return the configuration of a level and a seed. ``program`` is the on-board program of the scored vehicles."""
        values = {k: str(v) for k, v in self.level(level).items()}
        for name, drawn in self.description.get("random", {}).items():
            sigma = float(self.level(level).get(f"{name}_sigma", drawn["sigma"]))
            value = float(drawn.get("mean", 0.0)) + self._normal_pair(level, seed, name, "value", sigma)[0]
            values[name] = f"{value:.6f} {drawn['unit']}"
        text = self.text
        for name, value_text in values.items():
            text = text.replace("{" + name + "}", value_text)
        return text.replace("{program}", xml.sax.saxutils.escape(program, {'"': "&quot;"}))

    def write(self, folder: Path, level: str, seed: int, program: Path | None = None) -> Path:
        """Write the configuration and its files to a folder, and return the path of the configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        for file in (PILOT, *self.files):
            shutil.copyfile(FOLDER / file, folder / file)
        path = folder / "config.xml"
        path.write_text(self.configuration(level, seed, PILOT if program is None else str(program.resolve())))
        return path

    def _key(self, level: str, seed: int, entity: str, purpose: str) -> int:
        """Return the key of random numbers, which differ between scenarios, levels, seeds, entities and purposes."""
        return randomness.key(seed, entity, f"exam {self.name} {level} {purpose}")

    def _normal_pair(self, level: str, seed: int, entity: str, purpose: str, sigma: float) -> tuple[float, float]:
        key = np.array([self._key(level, seed, entity, purpose)], np.uint64)
        a, b = (float(randomness.normal(key, k)[0]) for k in (0, 1))
        return sigma * a, sigma * b


def names() -> tuple[str, ...]:
    """Return the names of the scenarios, in the order of the exam."""
    return tuple(frozen_digests())


def frozen_digests() -> dict[str, str]:
    """Return the digest of each frozen scenario, by name."""
    found: dict[str, str] = json.loads((FOLDER / FROZEN).read_text())
    return found


def digest_of(name: str) -> str:
    """Return the digest of the files of a scenario, as they are now."""
    description = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    digest = hashlib.sha256()
    for file in (f"{name}.xml", f"{name}.toml", *description.get("files", ())):
        digest.update(hashlib.sha256((FOLDER / file).read_bytes()).digest())
    return digest.hexdigest()


def scenario(name: str) -> Scenario:
    """Return a scenario by name.

    Raise UnknownName if it does not exist, and AlteredScenario if its files differ from the frozen ones.
    """
    frozen = frozen_digests()
    if name not in frozen:
        raise UnknownName(f"unknown scenario '{name}'{suggest_name(name, frozen)}")
    try:
        digest = digest_of(name)
    except (OSError, ValueError) as error:
        raise AlteredScenario(f"the files of scenario '{name}' cannot be read: {error}") from None
    if digest != frozen[name]:
        raise AlteredScenario(
            f"the files of scenario '{name}' in {FOLDER} were changed; results would not be comparable. Reinstall "
            "wavesim-studies, or copy the scenario and run it with `wavesim trial`"
        )
    return unchecked_scenario(name, digest)


def unchecked_scenario(name: str, digest: str) -> Scenario:
    """Return a scenario without comparing its digest."""
    d = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    if sorted(d["levels"]) != sorted(LEVELS):
        raise ConfigError(f"scenario '{name}' must have the levels {', '.join(LEVELS)}")
    return Scenario(
        name,
        d["title"],
        d["question"],
        tuple(d["knowledge"]),
        tuple(d["vehicles"]),
        float(d["duration"]),
        float(d["requirement"]),
        float(d["score_from"]),
        tuple(d["seeds"]),
        digest,
        (FOLDER / f"{name}.xml").read_text(),
        d,
    )
