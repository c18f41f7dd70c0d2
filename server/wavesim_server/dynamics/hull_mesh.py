"""Hull of a model, read from the mesh file to which the model refers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.algebra import matvec
from wavesim_sdk.errors import ConfigError
from wavesim_server.dynamics.sizes import HULL_TABLES, TABLE_FACES
from wavesim_world.config import Model
from wavesim_world.hull import Hull
from wavesim_world.ocean import mesh

#: maximum number of triangles in a hull; a body at the surface evaluates each triangle four times per step
MAX_FACES = HULL_TABLES * TABLE_FACES


def hull_of(model: Model) -> Hull | None:
    """Return the hull of a model in body axes; None if the model has no mesh. Raises ConfigError if the mesh is
    invalid.
    """
    h = model.hull
    if h is None:
        return None
    path = Path(model.place.rpartition(":")[0]).parent / h.file
    triangles = mesh.read_mesh(path)
    if len(triangles) > MAX_FACES:
        raise ConfigError(
            f"the hull has {len(triangles)} triangles; the maximum is {MAX_FACES}; simplify the mesh", str(path)
        )
    turned = matvec(frames.rotation(frames.quaternion(*h.attitude)), h.scale * triangles) + np.array(h.position)
    try:
        return Hull(turned)
    except ValueError as error:
        raise ConfigError(f"the hull: {error}", str(path)) from None
