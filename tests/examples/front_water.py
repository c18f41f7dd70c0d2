"""The water of the trial `front`, in closed form. `python -m tests.examples.front_water FILE` writes its volume.

A tidal front, 6 C over 2 km, lies across the area and moves north by 200 m in half an hour. Salinity grows with the
temperature, so that the density is nearly the same on both sides.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from wavesim_sdk.elementary import sin
from wavesim_world.ocean.volume import EARTH_RADIUS, VOLUME_COLUMNS, metres_east

LATITUDE, LONGITUDE = 41.0, -9.5  # degrees, the origin of the trial
NORTHS, EASTS = range(-2500, 2501, 500), range(-1500, 1501, 500)
DEPTHS, TIMES = (0, 20, 40, 80, 120), (0, 1800)


def temperature(north: float, east: float, depth: float, time: float) -> float:
    """Return the temperature in C: 14 south of the front, 8 north of it, and 1 C less for each 100 m of depth."""
    across = (north - 0.2 * east - 200.0 * time / 1800.0) / 1000.0
    return 11.0 - 3.0 * float(sin(1.5707963267948966 * min(max(across, -1.0), 1.0))) - 0.01 * depth


def rows() -> list[str]:
    """Return the lines of the file."""
    north_m = EARTH_RADIUS * 3.141592653589793 / 180.0
    east_m = metres_east(LATITUDE * 3.141592653589793 / 180.0)
    lines = ["elapsed_time_second,depth_meter,latitude_degree,longitude_degree," + ",".join(VOLUME_COLUMNS.values())]
    for time, z, north, east in itertools.product(TIMES, DEPTHS, NORTHS, EASTS):
        t = temperature(north, east, z, time)
        place = f"{LATITUDE + north / north_m:.9f},{LONGITUDE + east / east_m:.9f}"
        lines.append(f"{time},{z},{place},{t:.3f},{35.0 + 0.2 * (t - 11.0):.3f},0,0")
    return lines


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(rows()) + "\n")
