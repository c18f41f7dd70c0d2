"""Run in the environment that has pelagic: read cases of BELLHOP, and print the arrivals at each receiver as JSON."""

import itertools
import json
import sys
from pathlib import Path

import pelagic

NAMES = (
    "amplitude",
    "phase_radians",
    "travel_time_s",
    "attenuation_time_s",
    "top_bounces",
    "bottom_bounces",
    "source_angle_degrees",
    "receiver_angle_degrees",
)
found = []
cases = [pelagic.bellhop.Case.from_dict(case) for case in json.loads(Path(sys.argv[1]).read_text())]
with pelagic.bellhop.run_many(cases, workers=2) as results:
    for result in results:
        arrivals = result.arrivals
        columns = [getattr(arrivals, name).tolist() for name in NAMES]
        rows = [dict(zip(NAMES, row, strict=True)) for row in zip(*columns, strict=True)]
        ends = arrivals.arrival_offset.tolist()
        found.append([rows[a:b] for a, b in itertools.pairwise(ends)])
Path(sys.argv[2]).write_text(json.dumps(found))
