"""Run by test_navigators.py in an environment with evo and GTSAM: `python navigators.py FOLDER` prints its results as
JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gtsam
import numpy as np
from evo.core import metrics
from evo.tools import file_interface


def errors(folder: Path) -> dict[str, Any]:
    """Absolute and relative errors of a track, without alignment."""
    pair = [file_interface.read_tum_trajectory_file(str(folder / f"{name}.tum")) for name in ("truth", "estimate")]
    ape = metrics.APE(metrics.PoseRelation.translation_part)
    ape.process_data(tuple(pair))
    rpe = metrics.RPE(metrics.PoseRelation.translation_part, 10.0, metrics.Unit.meters, pairs_from_reference=True)
    rpe.process_data(tuple(pair))
    return {"absolute": ape.error.tolist(), "relative": rpe.error.tolist()}


def smoothed(folder: Path) -> dict[str, Any]:
    """All states of a linear system at once, as a factor graph: means and marginal covariances."""
    given = np.load(folder / "linear.npz")
    F, Q, P, z, u, sigma = (given[k] for k in ("F", "Q", "P", "z", "u", "sigma"))
    n, every, graph = len(u), int(given["every"]), gtsam.GaussianFactorGraph()

    def add(blocks: dict[int, Any], b: Any, covariance: Any) -> None:
        W, unit = np.linalg.inv(np.linalg.cholesky(covariance)), gtsam.noiseModel.Unit.Create(len(b))
        graph.add(gtsam.JacobianFactor(*(x for k, A in blocks.items() for x in (k, W @ A)), W @ b, unit))

    add({0: np.eye(len(F))}, np.zeros(len(F)), P)
    for k in range(n):
        add({k: -F, k + 1: np.eye(len(F))}, u[k], Q)
        if (k + 1) % every == 0:
            row = np.zeros((1, len(F)))
            row[0, 0] = 1.0
            add({k + 1: row}, np.array([z[k // every]]), np.array([[float(sigma) ** 2]]))
    found = graph.optimize()
    marginals = gtsam.Marginals(graph, found)
    times = range(1, n + 1)
    return {
        "x": [found.at(k).tolist() for k in times],
        "P": [marginals.marginalCovariance(k).tolist() for k in times],
    }


if __name__ == "__main__":
    print(json.dumps({**errors(Path(sys.argv[1])), **smoothed(Path(sys.argv[1]))}))
