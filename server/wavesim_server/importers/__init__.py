"""Models from the parameter files of other simulators (DUNE, Panisim/Makara, hilsim, UUV Simulator, Gazebo), and hulls
from result tables of panel codes (Capytaine, HydRA, NEMOH, WAMIT).

Each reader returns a :class:`~wavesim_server.importers.model_draft.ModelDraft`: the attributes and elements of a
<model>, the values that the file lacks, and the content that a model cannot represent. No content is dropped silently,
and no value is guessed, except those that Panisim's manual implies; each of these has a note. A draft with gaps is
rejected with a list of the gaps, and the user supplies the values with ``--set``. A draft that omits content is
rejected with a list of that content, unless the user passes ``--partial``. ``--angles`` sets the unit of those angles
for which the file does not state a unit.
"""

from __future__ import annotations

import configparser
from collections.abc import Sequence
from pathlib import Path

import yaml

from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import (
    dune,
    fossen,
    gazebo,
    hilsim,
    holoocean,
    hull,
    panisim,
    stonefish,
    stonefish_scenario,
    uuv,
)
from wavesim_server.importers.model_draft import SETTINGS, ImportedModel, ModelDraft

#: prefixes of --set keys that name a variable of source code or an argument of a scenario
PREFIXES = (fossen.PREFIX, stonefish_scenario.PREFIX)

__all__ = ["ImportedModel", "read"]


def read(
    path: Path,
    section: str | None,
    settings: dict[str, str],
    angles: str | None,
    partial: bool = False,
    folders: Sequence[Path] = (),
) -> ImportedModel:
    """Convert a parameter file of any known type to a models file. ``folders`` are searched for the files that a
    description names. Raises ConfigError, listing the entries, if entries are invalid, values are missing or content
    would be omitted.
    """
    unknown = [k for k in settings if k not in SETTINGS and not k.startswith(PREFIXES)]
    if unknown:
        raise ConfigError(f"--set {unknown[0]}: unknown key; allowed: {', '.join(SETTINGS)}")
    try:
        return _read(path, section, settings, angles, folders).xml(path, partial)
    except KeyError as error:
        raise ConfigError(f"missing key {error}", str(path)) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"unexpected content for this type of file: {error}", str(path)) from None


def _read(
    path: Path, section: str | None, settings: dict[str, str], angles: str | None, folders: Sequence[Path]
) -> ModelDraft:
    try:
        if path.suffix.lower() in gazebo.SUFFIXES:
            return gazebo.read(path, section, settings, angles, folders)
        if path.suffix == ".json" and holoocean.is_scenario(scenario := yaml.safe_load(path.read_text())):
            return holoocean.read(path, scenario, section, settings, angles)
        if path.exists() and hull.is_panel_output(path):
            return hull.read(path, settings, angles)
        if path.is_dir():
            return panisim.read(path, settings, angles)
        if path.suffix in (".scn", ".xml") and stonefish.is_scenario(path):
            return stonefish.read(path, section, settings, angles, folders)
        if path.suffix in (".py", ".m"):
            return fossen.read(path, settings, angles)
        if path.suffix == ".ini":
            return dune.read(path, section, settings, angles)
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read the file: {error.strerror}", str(path)) from None
    except (yaml.YAMLError, configparser.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the file: {error}", str(path)) from None
    if isinstance(data, dict) and "m_11" in data:
        return hilsim.read(path, data, settings, angles)
    if isinstance(data, dict) and ("Ma" in data or "hydro_coef" in data):
        return uuv.read(path, data, settings, angles)
    raise ConfigError(
        "unknown file type: use a DUNE .ini, a Panisim or NEMOH folder, a hilsim or UUV Simulator YAML, an SDF, URDF or xacro "
        "file, a Stonefish .scn, a HoloOcean .json, a vehicle of Fossen's simulators (.py or .m), a Capytaine .nc, a HydRA "
        ".json or a WAMIT .1",
        str(path),
    )
