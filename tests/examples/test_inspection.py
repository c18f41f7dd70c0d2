"""An ROV that is controlled only by the picture of its sonar, as received over the network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.test_trials import trial
from wavesim_sdk import frames
from wavesim_sdk.log import frames as pictures
from wavesim_sdk.log import read
from wavesim_sdk.tables import STATE

AWAY = 4.0


@pytest.mark.long
@pytest.mark.system
@pytest.mark.xdist_group("trials")
@pytest.mark.timeout(200)
def test_station_at_a_pile_then_along_a_quay(root: Path, tmp_path: Path) -> None:
    trial(root, tmp_path, "inspection", 66)
    path = next(tmp_path.glob("inspection*/run.mcap"))
    state = read(path).get("/state/rov", STATE)
    t, p = state.time_ns * 1e-9, state.records["p_WB_W"]
    heading = np.array([frames.euler(q)[2] for q in state.records["q_WB"]])
    eye = p[:, :2] + 0.25 * np.stack([np.cos(heading), np.sin(heading)], axis=1)
    held, along = (t > 20.0) & (t < 30.0), t > 58.0
    pile = np.hypot(*(np.array([8.0, 0.8]) - eye).T) - 0.4
    assert np.abs(pile - AWAY)[held].max() < 0.35, "in a current, for ten seconds"
    assert np.ptp(p[held], axis=0).max() < 0.35
    assert np.abs(9.0 - eye[along, 1] - AWAY).max() < 0.3, "and off the quay"
    assert np.degrees(heading[along]) == pytest.approx(90.0, abs=2.0), "which it faces"
    assert p[t > 35.0, 0][0] - p[-1, 0] > 2.5, "and passes"
    assert len(list(pictures(path, "rov", "eye"))) == 132
