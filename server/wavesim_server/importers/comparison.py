"""Accelerations of an imported model, computed by the compiled equation of motion."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import effort
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.importers.model_draft import ModelDraft

DEPTH = 1000.0  #: depth in m at which underwater vehicles are compared


def accelerations(draft: ModelDraft, world: str, motion: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return the accelerations (n, 6) of a model without gaps, and its actuator values (n, actuators).

    A row of ``motion`` (n, 12) contains north, east, down, roll, pitch, yaw and u, v, w, p, q, r. A row of ``share``
    (n, actuators) contains fractions of the largest actuator values. ``world`` contains the attributes of <world>.
    """
    from wavesim_server.dynamics.single_body import SingleBody
    from wavesim_server.study import empty_sea
    from wavesim_world.config.build import read_models

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(draft.xml(path, True).xml)
        model = next(iter(read_models(path).values()))
    sim = empty_sea(1, 0.01, f'<world {world}><bed depth="11000 m"/></world>')
    form = sim.fleet.vehicle_type(model, False)
    body, slots = SingleBody(form), [a.slot for a in form.actuators]
    values = share * np.array([min(abs(a.minimum), abs(a.maximum)) for a in form.actuators])
    states = np.zeros((len(motion), B.RIGID_ROWS))
    states[:, :3], states[:, B.NU : B.NU + 6] = motion[:, :3], motion[:, 6:]
    states[:, 2] += DEPTH if model.type == "underwater" else 0.0
    for k, row in enumerate(motion):
        states[k, B.QW : B.QW + 4] = frames.quaternion(*row[3:6])
    actuators = np.tile(body.rest_values, (len(motion), 1))
    actuators[:, slots] = values
    found = body.efforts(states, actuators)[:, effort.ACCELERATION : effort.ACCELERATION + 6]
    free = form.compiled.params[P.FREE_DOFS : P.FREE_DOFS + 6] != 0.0
    return np.where(free, found, 0.0), values
