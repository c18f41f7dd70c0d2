"""Folders with the SDF or URDF files of a model."""

from __future__ import annotations

from pathlib import Path

from wavesim_sdk.errors import ConfigError
from wavesim_studies.model_export.description import describe_model
from wavesim_studies.model_export.sdf import write_sdf
from wavesim_studies.model_export.urdf import missing_in_urdf, write_urdf
from wavesim_world.config import Model


def write_description(
    model: str | Model, form: str, folder: Path, source: Path | None = None
) -> tuple[list[Path], list[str]]:
    """Write the SDF or URDF files (``form``) of a model to a folder, which is created if necessary.

    ``source`` is the folder of the models file, in which the glTF file of the model lies. Return the paths of the files and
    texts about everything that they do not contain. Raise ConfigError for an aircraft, and if the folder cannot be
    written.
    """
    described = describe_model(model, source)
    try:
        folder.mkdir(exist_ok=True)
        if form == "sdf":
            return write_sdf(described, folder), described.missing
        return write_urdf(described, folder), missing_in_urdf(described)
    except OSError as error:
        raise ConfigError(f"cannot write to the folder {folder}: {error.strerror}; choose another --out") from None
