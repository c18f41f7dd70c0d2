"""Recorder that writes the frames from a sonar to a file for survey software, or those from a hydrophone to a sound
file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from wavesim_devices.sonar_formats import kmall, xtf
from wavesim_devices.sound_files import SUFFIXES, SoundFile
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frame_rings import FrameReader
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.tables import RunState

LOOK_S = 0.005
FORMATS: dict[str, Any] = {".xtf": xtf, ".kmall": kmall}


class FrameFile(Protocol):
    """File that receives frames."""

    def add(self, frame: ImagingFrame) -> None: ...
    def close(self) -> None: ...


class SurveyFile:
    """File for survey software: a header, followed by the pings."""

    def __init__(self, path: Path, origin: Origin, period: float) -> None:
        self._format, self._origin, self._period = FORMATS[path.suffix], origin, period
        self._file, self._is_empty = path.open("wb"), True

    def add(self, frame: ImagingFrame) -> None:
        if self._is_empty:
            self._file.write(self._format.file_header(frame, self._origin))
        self._is_empty = False
        self._file.write(self._format.ping(frame, self._origin, self._period))

    def close(self) -> None:
        self._file.close()


def _check_suffix(path: Path) -> None:
    if path.suffix not in (known := (*FORMATS, *SUFFIXES)):
        raise WaveSimError(f"unknown type of recording '{path.suffix}': the name must end in {' or '.join(known)}")


def _new_frames(simulation: SharedState, reader: FrameReader) -> Iterator[ImagingFrame]:
    """Yield the frames in a ring until the run ends, the server exits, or on Ctrl-C."""
    try:
        while True:
            ended = (
                not simulation.alive() or simulation.run_state() is RunState.ENDED
            )  # check before reading the ring, so that no frame is missed
            frame = reader.next()
            if frame is not None:
                yield frame
            elif ended:
                return
            else:
                time.sleep(LOOK_S)
    except KeyboardInterrupt:
        return


def record(server: str, body: str, name: str, path: Path, frames: int = 0) -> tuple[int, int]:
    """Record the frames from a sonar or hydrophone to the file ``path``. Return the number of frames written and the
    number of frames lost.

    Recording stops after ``frames`` frames (0 = no limit), when the run ends, when the server exits, or on Ctrl-C.
    """
    _check_suffix(path)
    check_writable(path)
    simulation = SharedState(server)
    reader = FrameReader.open(server, body, name)
    world = simulation.world()
    period = int(simulation.instruments(body)[name]["period"]) * int(world["step_ns"]) * 1e-9
    origin = Origin(*(float(x) for x in world["origin"]))
    recording: FrameFile = SoundFile(path) if path.suffix in SUFFIXES else SurveyFile(path, origin, period)
    return _write(recording, _new_frames(simulation, reader), frames), reader.dropped


def record_log(log: Path, body: str, name: str, path: Path, frames: int = 0) -> int:
    """Write the logged blocks of a hydrophone to the sound file ``path``; return their number."""
    from wavesim_sdk.log import frames as logged_frames

    if path.suffix not in SUFFIXES:
        raise WaveSimError(
            f"a log gives sound files, whose names end in {' or '.join(SUFFIXES)}, not '{path.suffix}'; for survey "
            "software, use `wavesim log export`"
        )
    check_writable(path)
    written = _write(SoundFile(path), logged_frames(log, body, name), frames)
    if not written:
        raise WaveSimError(f"{log} has no blocks of '{name}' on '{body}'; set log=\"1\" for it in the configuration")
    return written


def _write(recording: FrameFile, source: Iterator[ImagingFrame], most: int) -> int:
    written = 0
    try:
        for frame in source:
            recording.add(frame)
            written += 1
            if written == most:
                break
    finally:
        recording.close()
    return written
