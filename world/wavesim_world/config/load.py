"""Reader of configurations. It builds a configuration from its XML (:mod:`~wavesim_world.config.build`), and then
checks conditions that the declaration cannot express.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_world.config import fault_checks, replay_checks, semantic_checks, xml
from wavesim_world.config.array_tables import read_arrays
from wavesim_world.config.build import build_root, library, parse_file, read_included_models
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.missions import read_missions
from wavesim_world.config.model import Config
from wavesim_world.config.vehicle import Model


def load(path: str | Path) -> LoadedConfig:
    """Read and check a configuration file."""
    path = Path(path)
    root, text = parse_file(path)
    return _checked(root, text, path)


def _checked(root: Any, text: str, path: Path) -> LoadedConfig:
    config = build_root(root, "wavesim", Config, path)
    models, texts = read_included_models(config.models, path, {})
    digest = hashlib.sha256("\0".join([text, *texts]).encode()).hexdigest()
    loaded = LoadedConfig(config, models, path.resolve(), text, digest)
    loaded.check_model_files()
    used = {b.model: loaded.model(b.model) for b in config.fleet.bodies if _known(b.model, models, b.place)}
    loaded = dataclasses.replace(loaded, models={**models, **used})
    loaded = read_arrays(read_missions(loaded))
    semantic_checks.check(loaded.config, loaded.models, loaded.path)
    fault_checks.check(loaded)
    replay_checks.check(loaded)
    return loaded


def load_text(text: str, folder: str | Path | None = None) -> LoadedConfig:
    """Read and check a configuration from a string.

    Relative paths in the configuration refer to ``folder``. If ``folder`` is None, they raise ConfigError.
    """
    if folder is not None:
        path = Path(folder) / "configuration"
        return _checked(xml.parse(text.encode(), str(path)), text, path)
    with tempfile.TemporaryDirectory() as empty:
        path = Path(empty).resolve() / "config.xml"
        path.write_text(text)
        try:
            return load(path)
        except ConfigError as error:  # the temporary folder means nothing to the user
            raise _without_folder(error, path) from None


def _without_folder(error: ConfigError, path: Path) -> ConfigError:
    """Return the error for a configuration that was given as text: if a file is missing, its message mentions the
    parameter ``folder``.
    """
    inside = os.path.relpath(error.file, path.parent) if error.file else path.name
    searched = f" (searched in {path.parent})"
    message = error.message.replace(searched, "").replace(f"{path.parent}{os.sep}", "")
    if searched in error.message or inside != path.name:
        message += "; pass `folder`, the folder that contains the files named in the text"
    return ConfigError(message, "configuration" if inside == path.name else inside, error.line)


def _known(name: str, models: dict[str, Model], where: str) -> bool:
    known = {*models, *library()}
    if name not in known:
        file, _, line = where.rpartition(":")
        raise ConfigError(f"unknown model '{name}'{suggest_name(name, sorted(known))}", file, int(line))
    return True
