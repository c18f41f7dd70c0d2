"""Run in the environment that has mhkit: read a PD0 file with mhkit, and print the values as JSON."""

import json
import sys
from pathlib import Path

from mhkit.dolfyn.io import rdi

data = rdi.read_rdi(sys.argv[1])
names = ("vel_bt", "dist_bt", "vel", "heading", "pitch", "roll", "temp", "c_sound", "depth")
found = {name: data[name].values.tolist() for name in names}
found["time"] = [str(t) for t in data.time.values]
found["attributes"] = {
    k: str(data.attrs[k]) for k in ("coord_sys", "orientation", "beam_angle", "n_beams", "inst_make")
}
Path(sys.argv[2]).write_text(json.dumps(found))
