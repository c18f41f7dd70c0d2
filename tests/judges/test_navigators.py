"""evo and GTSAM check the errors of tracks and the smoother."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.judges.test_judges import absent
from tests.studies.voyage import Voyage
from wavesim_sdk import frames
from wavesim_server.logbook.datasets import tum_lines
from wavesim_studies.navigation import FilterDesign, estimate, metrics
from wavesim_studies.navigation import measurements as make

pytestmark = pytest.mark.navigators
N, EVERY, DT = 200, 5, 0.1


@pytest.fixture(scope="module")
def asked(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the judges say, beside what they were asked."""
    judge, folder = root / ".venv-navigators/bin/python", tmp_path_factory.mktemp("asked")
    if not judge.exists():
        absent("evo and GTSAM are not installed (`make test-navigators` does it)")
    rng, o = np.random.default_rng(6), Voyage(150.0, 10.0, leg=30.0)
    p = o.p + np.cumsum(0.02 * rng.standard_normal(o.p.shape), axis=0)
    turns = o.angles(o.t)[0] + np.cumsum(1e-3 * rng.standard_normal(o.p.shape), axis=0)
    q, time_ns = frames.quaternion(*turns.T), np.round(o.t * 1e9).astype(np.int64)
    for name, places, attitudes in (("truth", o.p, o.q), ("estimate", p, q)):
        (folder / f"{name}.tum").write_text(tum_lines(time_ns, places, attitudes))
    noise, walk, sigma = 0.05, 0.02, 0.5
    imu, z = np.zeros((N, 7)), np.cumsum(rng.standard_normal(N // EVERY))
    imu[:, 0], imu[:, 3], imu[:, 1] = DT * np.arange(1, N + 1), -9.81, rng.standard_normal(N)
    F = np.array([[1.0, DT, -0.5 * DT * DT], [0.0, 1.0, -DT], [0.0, 0.0, 1.0]])
    Q = np.diag([0.0, 0.0, walk**2 * DT])
    Q[:2, :2] = noise**2 * np.array([[DT**3 / 3, DT**2 / 2], [DT**2 / 2, DT]])
    u = np.array([0.5 * DT * DT, DT, 0.0]) * imu[:, 1:2]
    np.savez(folder / "linear.npz", F=F, Q=Q, P=np.diag([4.0, 1.0, 0.09]), z=z, u=u, sigma=sigma, every=EVERY)
    done = subprocess.run(
        [str(judge), Path(__file__).with_name("navigators.py"), folder], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    design = FilterDesign(gyro_noise=1e-9, accelerometer_noise=noise, accelerometer_walk=walk)
    still = [2.0, 1.0, 1e-9, 1e-12, 0.3]
    start = design.start(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), still, clones=0)
    rows = [make.position(imu[EVERY * (k + 1) - 1, 0], (z[k], 0.0), sigma, gate=1e9) for k in range(len(z))]
    track = estimate(design, start, imu, rows, imu[:, 0], smooth=True).smoothed()
    return {"results": json.loads(done.stdout.splitlines()[-1]), "o": o, "p": p, "q": q, "track": track}


def test_errors_are_those_of_evo(asked: dict[str, Any]) -> None:
    o, results = asked["o"], asked["results"]
    assert metrics.absolute_trajectory_error(asked["p"], o.p) == pytest.approx(results["absolute"], abs=1e-6)
    ours = metrics.relative_pose_error(asked["p"], asked["q"], o.p, o.q, 10.0)
    assert len(ours) > 15 and ours == pytest.approx(results["relative"], abs=1e-6)


def test_where_all_is_linear_the_smoother_is_the_batch_solution_of_gtsam(asked: dict[str, Any]) -> None:
    track, results = asked["track"], asked["results"]
    assert track.x[:, [0, 3, 13]] == pytest.approx(np.array(results["x"]), abs=1e-5)
    found = track.covariance[:, [0, 3, 12]][:, :, [0, 3, 12]]
    assert np.abs(found - np.array(results["P"])).max() < 1e-4
