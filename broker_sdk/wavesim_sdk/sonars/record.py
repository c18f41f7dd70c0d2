"""Writing the frames of a running sonar into a file that survey software reads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.sonars import kmall, xtf
from wavesim_sdk.sonars.frames import FrameReader
from wavesim_sdk.tables import RunState

LOOK_S = 0.005
FORMATS: dict[str, Any] = {".xtf": xtf, ".kmall": kmall}


def record(server: str, body: str, name: str, path: Path, frames: int = 0) -> tuple[int, int]:
    """(frames written, frames lost), until so many are there (0 = no limit), the run or the server ends, or Ctrl-C."""
    if path.suffix not in FORMATS:
        raise WaveSimError(f"a file of sonar frames ends in {' or '.join(FORMATS)}, not '{path.suffix}'")
    format_ = FORMATS[path.suffix]
    simulation = SharedState(server)
    reader = FrameReader.open(server, body, name)
    world = simulation.world()
    period = int(simulation.instruments(body)[name]["period"]) * int(world["step_ns"]) * 1e-9
    origin = Origin(*(float(x) for x in world["origin"]))
    written = 0
    with path.open("wb") as out:
        try:
            while not frames or written < frames:
                ended = not simulation.alive() or simulation.run_state() is RunState.ENDED  # looked at before the ring
                frame = reader.next()
                if frame is None:
                    if ended:
                        break
                    time.sleep(LOOK_S)
                    continue
                if not written:
                    out.write(format_.file_header(frame, origin))
                out.write(format_.ping(frame, origin, period))
                written += 1
        except KeyboardInterrupt:
            pass
    return written, reader.dropped
