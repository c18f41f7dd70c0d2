"""Run in the environment that has pelagic: read cases of KRAKEN, and print its transmission loss in dB as JSON."""

import json
import sys
from pathlib import Path

import pelagic

found = []
for case in json.loads(Path(sys.argv[1]).read_text()):
    result = pelagic.kraken.Case.from_dict(case).run()
    found.append(result.frequencies[0].field.transmission_loss()[0].tolist())
Path(sys.argv[2]).write_text(json.dumps(found))
