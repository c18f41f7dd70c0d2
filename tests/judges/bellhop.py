"""Run in the environment that has pelagic: read cases of BELLHOP, and print each arrival as JSON."""

import json
import sys
from pathlib import Path

import pelagic

NAMES = ("amplitude", "phase_radians", "travel_time_s", "top_bounces", "bottom_bounces")
found = []
for case in json.loads(Path(sys.argv[1]).read_text()):
    arrivals = pelagic.bellhop.Case.from_dict(case).run().arrivals
    columns = [getattr(arrivals, name).tolist() for name in NAMES]
    found.append([dict(zip(NAMES, row, strict=True)) for row in zip(*columns, strict=True)])
Path(sys.argv[2]).write_text(json.dumps(found))
