"""Recorder that writes the frames from a running sonar to a file for survey software."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from wavesim_devices.sonar_formats import kmall, xtf
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frame_rings import FrameReader
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.tables import RunState

LOOK_S = 0.005
FORMATS: dict[str, Any] = {".xtf": xtf, ".kmall": kmall}


def record(server: str, body: str, name: str, path: Path, frames: int = 0) -> tuple[int, int]:
    """Record the frames from a sonar to the file ``path``. Return the number of frames written and the number of frames
    lost.

    Recording stops after ``frames`` frames (0 = no limit), when the run ends, when the server exits, or on Ctrl-C.
    """
    if path.suffix not in FORMATS:
        raise WaveSimError(f"unknown type of sonar file '{path.suffix}': the name must end in {' or '.join(FORMATS)}")
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
                ended = (
                    not simulation.alive() or simulation.run_state() is RunState.ENDED
                )  # check before reading the ring, so that no frame is missed
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
