"""Run long tests of the navigation filter: a hundred hours in a lawn-mower pattern, and a log of an hour.

python -m benchmarks.navigation [mowing] [log]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from tests.studies.test_drift import lawn_mower
from tests.studies.voyage import Voyage, logged

from wavesim_studies.navigation import logs


def mowing() -> None:
    """Print the final errors of a hundred runs of an hour, in % of the distance."""
    o = Voyage(3600.0, 5.0)
    for name, scale in (("Doppler log", 0.0), ("Doppler log 0.2 % wrong", 0.002)):
        found = 100.0 * lawn_mower(o, 100, scale)
        median, p95 = np.percentile(found, (50, 95))
        print(f"{name}: {o.way:.0f} m, median {median:.3f} %, 95th of 100 {p95:.3f} %, worst {found.max():.3f} %")


def log() -> None:
    """Filter an hour of data from an IMU at 100 Hz, an AHRS and a Doppler log, with a state at each sample. Print the
    processor time of rows, filter and smoother.
    """
    o = Voyage(3600.0, 100.0)
    made = logged(o)
    for kind in ("cold", "warm"):
        start = time.process_time()
        voyage = logs.estimation_case(made, "auv")
        rows = time.process_time()
        track = voyage.run()
        filtered = time.process_time()
        voyage.run(smooth=True)
        print(
            f"{kind}: {len(voyage.imu)} samples, {len(voyage.rows)} measurements, {len(track.time)} states: rows {rows - start:.2f} s, "
            f"filter {filtered - rows:.2f} s, smoother {time.process_time() - filtered:.2f} s"
        )


def main() -> None:
    parts = {f.__name__: f for f in (mowing, log)}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
