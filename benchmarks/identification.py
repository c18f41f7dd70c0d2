"""Count how often the stated intervals of a fit contain the true coefficients (`python -m benchmarks.identification [MODEL
...] [--seeds N]`).

Each seed has other noise. A deviation is that of the fitted from the true value, in stated standard deviations.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from tests.studies.lake import CASES, planted_trial

from wavesim_studies.identification import ShootingOptions, fit, parse_unknowns
from wavesim_world.config import library

SEEDS = 1000  #: first seed


def standard_deviations(name: str, seed: int) -> list[float]:
    """Return the deviation of each fitted coefficient of one of the planted cases, in stated standard deviations. The priors
    are log-normal, so that it is that of the logarithm.
    """
    planted, trial = planted_trial(name, SEEDS + seed)
    model = library()[name]
    unknowns = parse_unknowns([*planted], model, [*trial.channels], 1)
    result = fit(model, [trial], unknowns, ShootingOptions())
    found = []
    for k, u in enumerate(unknowns):
        low, high = (math.log(abs(x)) for x in result.interval(k))
        off = math.log(abs(result.value(k) / planted[u.path]))
        found.append(off / (abs(high - low) / 2.0 / 1.96))
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=[*CASES])
    parser.add_argument("--seeds", type=int, default=50)
    options = parser.parse_args(arguments)
    worst = 1.0
    print(
        "| vehicle | coefficient | inside the 95 % interval | mean deviation | rms deviation |\n|---|---|---|---|---|"
    )
    for name in options.models:
        z = np.array([standard_deviations(name, seed) for seed in range(options.seeds)])
        inside = np.abs(z) < 1.96
        for k, path in enumerate(CASES[name][0]):
            mean, rms = np.mean(z[:, k]), np.sqrt(np.mean(z[:, k] ** 2))
            print(f"| {name} | `{path}` | {inside[:, k].sum()} of {len(z)} | {mean:.2f} | {rms:.2f} |")
        worst = min(worst, float(inside.mean()))
        rms = np.sqrt(np.mean(z**2))
        print(
            f"| {name} | all | {inside.sum()} of {z.size} ({100 * inside.mean():.0f} %) | {np.mean(z):.2f} | {rms:.2f} |",
            flush=True,
        )
    return 0 if worst >= 0.89 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
