"""Configuration that passed every check, with the models and instruments of each body."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections import Counter
from pathlib import Path

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_world.config.acoustics import TransducerConfig
from wavesim_world.config.build import library
from wavesim_world.config.model import BodyConfig, Config
from wavesim_world.config.primitives import mounted
from wavesim_world.config.sensors import InstrumentConfig, SensorsConfig
from wavesim_world.config.vehicle import Model
from wavesim_world.file_access import allowed_folders


@dataclasses.dataclass(frozen=True)
class LoadedConfig:
    """Configuration that passed every check.

    ``models`` contains the models that the fleet uses and all models in the file. ``text`` is the text of the file as
    read. ``digest`` is the SHA-256 of this text and of the included model and mission files. ``notices`` lists the
    entries of the mission files that are ignored.
    """

    config: Config
    models: dict[str, Model]
    path: Path
    text: str
    digest: str
    notices: tuple[str, ...] = ()

    def model(self, name: str) -> Model:
        """Return a model of this configuration or of the library by name. Raises ConfigError, suggesting the nearest
        match, if there is no such model.
        """
        found = self.models.get(name) or library().get(name)
        if found is None:
            known = sorted({*self.models, *library()})
            raise ConfigError(f"unknown model '{name}'{suggest_name(name, known)}")
        return found

    def transducer(self, body: BodyConfig) -> TransducerConfig | None:
        """Return the acoustic transducer of a body. If the body has none, return the transducer of its model."""
        return body.transducer or self.model(body.model).transducer

    def suite(self, body: BodyConfig) -> tuple[InstrumentConfig, ...]:
        """Return the instruments of a body, in the order fleet, model, body."""
        return self._suite(self.model(body.model), body.sensors)

    def suite_of_model(self, model: Model | str) -> tuple[InstrumentConfig, ...]:
        """Return the instruments of a body that has this model but is not in the configuration, such as one that joins
        later.
        """
        return self._suite(self.model(model) if isinstance(model, str) else model, None)

    def suite_by_name(self, name: str, model: str) -> tuple[InstrumentConfig, ...]:
        """Return the instruments of the body with this name, or the instruments of the model if there is no such body."""
        body = self._bodies.get(name)
        return self.suite_of_model(model) if body is None else self.suite(body)

    @functools.cached_property
    def _bodies(self) -> dict[str, BodyConfig]:
        return {b.name: b for b in self.config.fleet.bodies}

    @functools.cached_property
    def sensor_rows(self) -> dict[str, int]:
        """Number of rows needed in the shared-memory table of each sensor type. Types that cannot occur are omitted.

        For each sensor type, a body in the configuration needs one row per instrument of that type. A body that joins
        later is assumed to need as many rows as the model with the most such instruments.
        """
        total: Counter[str] = Counter()
        for body in self.config.fleet.bodies:
            total.update(i.type for i in self.suite(body))
        declared = self.config.fleet.sensors
        suites = [() if declared is None else declared.instruments]
        largest: Counter[str] = Counter()
        for suite in (*suites, *map(self.suite_of_model, self.models.values())):
            largest |= Counter(i.type for i in suite)
        for name, count in largest.items():
            total[name] += count * (self.config.shared.vehicles - len(self.config.fleet.bodies))
        return {name: count for name, count in sorted(total.items()) if count}

    def _suite(self, model: Model, own: SensorsConfig | None) -> tuple[InstrumentConfig, ...]:
        everybody = None if model.type == "buoy" else self.config.fleet.sensors
        found: dict[str, InstrumentConfig] = {}
        for sensors in (everybody, model.sensors, own):
            if sensors is None:
                continue
            if not sensors.inherit:
                found.clear()
            found |= {i.name: mounted(i, model) for i in sensors.instruments}
        return tuple(found.values())

    def data_file(self, name: str) -> Path:
        """Return the path of a file that the configuration names. Raises ConfigError if the file is neither in the
        folder of the configuration nor in a folder that the user allows.
        """
        return self._usable(name, self.path.parent)

    def check_model_files(self) -> None:
        """Raise ConfigError if a model of this configuration names a file that the configuration may not use."""
        for model in self.models.values():
            folder = Path(model.place.rpartition(":")[0]).parent
            for named in (model.hull, model.rao):
                if named is not None:
                    self._usable(named.file, folder)

    def file_beside(self, name: str, place: str) -> Path:
        """Return the path of a file that an element names, given the element's place (file:line). Raises ConfigError as
        :meth:`data_file` does.
        """
        return self._usable(name, Path(place.rpartition(":")[0]).parent)

    def _usable(self, name: str, folder: Path) -> Path:
        found = folder / name
        if not self.may_use(found):
            raise ConfigError(
                f"file '{name}' is outside the folder of the configuration; move it there or, if you trust the "
                f"configuration, allow access to the file's folder: --files {os.path.relpath(found.resolve().parent)}",
                str(self.path),
            )
        return found

    def may_use(self, path: Path) -> bool:
        """Return whether the configuration may use a file. The file must be in the folder of the configuration or in a
        folder that the user allows.
        """
        allowed = (self.path.parent, *allowed_folders())
        return any(path.resolve().is_relative_to(folder.resolve()) for folder in allowed)
