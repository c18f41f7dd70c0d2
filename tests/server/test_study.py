"""Studies: each model starts at its usual position, and a state that diverges is NaN."""

from __future__ import annotations

import numpy as np

from wavesim_server.study import TRACK, batch, varied
from wavesim_world.config import library
from wavesim_world.config.vehicle import Derivative, Derivatives


def test_each_model_starts_where_it_belongs() -> None:
    """Left alone, hulls and buoys stay afloat where they are put, upright; underwater vehicles have 1000 m above them, and
    aircraft below them."""
    models = list(library().values())
    tracks = batch(models, {}, 10.0)
    assert np.isfinite(tracks).all()
    for model, track in zip(models, tracks, strict=True):
        if model.type == "underwater":
            assert track[0, TRACK.index("down")] == 1000.0
        elif model.type == "aircraft":
            assert track[0, TRACK.index("down")] == -1000.0
        else:
            assert np.ptp(track[:, TRACK.index("down")]) < 0.05, model.name
            assert np.abs(track[:, TRACK.index("roll")]).max() < 0.05, model.name
    assert batch(models[:1], {}, 1.0, depth=7.0)[0, 0, TRACK.index("down")] == 7.0


def test_a_state_that_diverges_is_nan() -> None:
    """A force that grows with the cube of the speed, along it."""
    wild = varied("lauv", derivatives=Derivatives(derivative=(Derivative(name="X_uuu", value=1e3),)))
    (lost,) = batch([wild], {}, 4.0, velocity=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert np.isfinite(lost[0]).all() and np.isnan(lost[-1, 1:]).all() and np.isfinite(lost[:, 0]).all()
