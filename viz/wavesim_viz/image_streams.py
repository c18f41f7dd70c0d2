"""Images from sonars, cameras and lidars, and sound from hydrophones, for pages. Each frame is packed once and kept as long as a page that connects
later may need it.

On the websocket, an image consists of ``WVS1``, the length of its header (u4), the header, and the data, all
little-endian. The header is JSON, padded with spaces to a multiple of 4 bytes. The samples from a sonar are u1 (beams,
bins); those of a camera are rows of red, green and blue values. Those of a 3D sonar are u1 (rows, columns): 0 = no
echo, 255 = maximum range. Soundings are rows of f4: north, east, down, starboard, sigma (m). Points of a lidar are rows
of f4: north, east, down (NaN = unknown pose), starboard and ahead in the sensor frame (m). Sound is i2: the samples of
one channel of a hydrophone, of which 32768 is full scale.
"""

from __future__ import annotations

import json
import struct
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frame_rings import FrameReader
from wavesim_sdk.imaging_frames import SOUNDING_COLUMNS, ImagingFrame
from wavesim_sdk.log import frames
from wavesim_viz.frame import decode_text, to_json_value
from wavesim_viz.page_content import ImageKind
from wavesim_viz.page_protocol import ImageHeader, ImageMessage

#: number of images kept for pages that connect later, by kind: enough for a full circle, or to fill a screen with lines
MAX_KEPT = {
    "forward": 1,
    "sidescan": 800,
    "scanning": 400,
    "bathymetry": 1500,
    "camera": 1,
    "3d": 1,
    "lidar": 1,
    "hydrophone": 200,
}
MAX_POINTS = 12_000  #: maximum number of points of a lidar's scan that are sent to a page
RETRY_S = 0.5
MAX_READ = 20  #: maximum number of frames that are read from a log in one call
MAX_RECEIVED = 64  #: maximum number of received frames that have not been read yet
_Y, _SIGMA, _DETECTION = (SOUNDING_COLUMNS.index(n) for n in ("y", "sigma_z", "detection"))


class FrameStream(Protocol):
    """Frames from one sonar in time order."""

    def new(self) -> tuple[bool, list[ImagingFrame]]:
        """Return whether earlier frames are no longer valid, and the frames that have arrived since the last call. This
        method does not block.
        """

    def close(self) -> None:
        """Release the source of the frames."""


class RestartDetector:
    """Detector of time changes in the frames from one sonar. After a time change, a frame has a lower time than the
    previous one.
    """

    def __init__(self) -> None:
        self._last_ns = -1  #: time of the last frame in ns

    def check(self, found: list[ImagingFrame]) -> tuple[bool, list[ImagingFrame]]:
        """Return whether the time has changed, and the frames that follow the change."""
        first = 0
        for k, frame in enumerate(found):
            time_ns = int(frame.record["time_ns"])
            if time_ns < self._last_ns:
                first = -k - 1  # a change before the first frame counts too
            self._last_ns = time_ns
        return first < 0, found[-first - 1 :] if first < 0 else found


class LiveFrames:
    """Frames from the rings of a running server."""

    def __init__(self, reader: FrameReader) -> None:
        self._reader, self._restarts = reader, RestartDetector()

    def new(self) -> tuple[bool, list[ImagingFrame]]:
        return self._restarts.check(list(iter(self._reader.next, None)))

    def close(self) -> None:
        pass


class ReceivedFrames:
    """Frames received over a network."""

    def __init__(self, done: Callable[[], None]) -> None:
        """``done`` is called when no page shows the frames any longer."""
        self._came: deque[ImagingFrame] = deque(maxlen=MAX_RECEIVED)
        self._done, self._restarts = done, RestartDetector()

    def add(self, frame: ImagingFrame) -> None:
        """Add a frame. The receiving thread calls this method."""
        self._came.append(frame)

    def new(self) -> tuple[bool, list[ImagingFrame]]:
        return self._restarts.check([self._came.popleft() for _ in range(len(self._came))])

    def close(self) -> None:
        self._done()


class LoggedFrames:
    """Frames from a log. The payloads may be too large for memory, so a thread copies them into an unnamed file for
    random access.
    """

    def __init__(self, path: Path, body: str, name: str, now: Any) -> None:
        """``now`` is a function that returns the replay time in s."""
        self._now, self._shown, self._end_offsets = now, 0, [0]
        self._times: list[int] = []
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        self._lock, self._closed = threading.Lock(), False
        threading.Thread(target=self._copy, args=(path, body, name), daemon=True).start()

    def _copy(self, path: Path, body: str, name: str) -> None:
        for frame in frames(path, body, name):
            data = frame.data
            with self._lock:
                if self._closed:
                    return
                self._file.seek(self._end_offsets[-1])
                self._file.write(data)
                self._end_offsets.append(self._end_offsets[-1] + len(data))
                self._times.append(int(frame.record["time_ns"]))

    def new(self) -> tuple[bool, list[ImagingFrame]]:
        with self._lock:
            until = int(np.searchsorted(self._times, int(self._now() * 1e9), "right"))
            back = until < self._shown
            first = 0 if back else self._shown
            if until == first:
                self._shown = until
                return back, []
            kept = max(first, until - MAX_KEPT[self._read(first).kind])
            self._shown = until
            return back or kept > first, [self._read(k) for k in range(kept, until)]

    def _read(self, k: int) -> ImagingFrame:
        self._file.seek(self._end_offsets[k])
        return ImagingFrame.from_bytes(self._file.read(self._end_offsets[k + 1] - self._end_offsets[k]))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._file.close()


class SequentialFrames:
    """All frames from a log, in order. They are read from the file up to the replay time. After a jump back, reading
    restarts at the beginning. No frames are kept.
    """

    def __init__(self, path: Path, body: str, name: str, now: Any) -> None:
        """``now`` is a function that returns the replay time in s."""
        self._now, self._select = now, (path, body, name)
        self._rest = frames(path, body, name)
        self._next: ImagingFrame | None = None
        self._last_ns = -1  #: time of the last frame that was returned, in ns

    def new(self) -> tuple[bool, list[ImagingFrame]]:
        now_ns, back = int(self._now() * 1e9), False
        if now_ns < self._last_ns:
            self._rest, self._next, self._last_ns, back = frames(*self._select), None, -1, True
        found: list[ImagingFrame] = []
        while len(found) < MAX_READ:
            self._next = self._next or next(self._rest, None)
            if self._next is None or int(self._next.record["time_ns"]) > now_ns:
                break
            found.append(self._next)
            self._last_ns, self._next = int(self._next.record["time_ns"]), None
        return back, found

    def close(self) -> None:
        self._rest = iter(())


def picture(row: int, frame: ImagingFrame, epoch: int, channel: int = 0) -> bytes:
    """Pack a frame, or one ``channel`` of the sound of a hydrophone, for a page. A new ``epoch`` makes all earlier frames
    invalid.
    """
    r = frame.record
    head: ImageHeader = {
        "row": row,
        "body": frame.body,
        "name": frame.name,
        "preset": decode_text(r["preset"]),
        "kind": cast("ImageKind", frame.kind),
        "epoch": epoch,
        "number": int(r["number"]),
        "time": int(r["time_ns"]) * 1e-9,
        "beams": int(r["beams"]),
        "bins": int(r["bins"]),
        "saturated": int(r["saturated"]),
        "heading": float(np.degrees(r["euler"][2])),
        "at": r["p_WS_W"],
        "range": float(r["range"]),
        "sector": float(r["sector"]),
        "height": float(r["fan_height"]),
        "azimuth": float(r["azimuth"]),
        "tilt": float(r["tilt"]),
        "frequency": float(r["frequency"]),
        "altitude": float(r["altitude"]),
        "gain": float(r["gain"]),
        "tvg": float(r["tvg"]),
        "hold": float(r["hold"]),
        "absorption": float(r["absorption"]),
        "floor": float(r["floor"]),
        "span": float(r["span"]),
        "channel": 0,
        "channels": 1,
    }
    if frame.kind == "bathymetry":
        s = frame.samples
        good = s[:, _DETECTION] > 0.0
        numbers = np.column_stack([frame.points[good], s[good][:, [_Y, _SIGMA]]]).astype("<f4").tobytes()
        head["bins"] = 5
    elif frame.kind == "lidar":
        seen = np.flatnonzero(np.isfinite(frame.ranges))
        seen = seen[:: max(1, -(-len(seen) // MAX_POINTS))]
        own = frame.points_S.reshape(-1, 3)[seen]
        numbers = np.column_stack([frame.points.reshape(-1, 3)[seen], own[:, [1, 0]]]).astype("<f4").tobytes()
        head["beams"], head["bins"] = len(seen), 5
    elif frame.kind == "hydrophone":
        head["channels"] = int(r["beams"])
        head["channel"] = channel = min(channel, head["channels"] - 1)
        whole = frame.voltages[channel] * (32768.0 / float(r["span"]))
        numbers = np.clip(np.rint(whole), -32768, 32767).astype("<i2").tobytes()
        head["beams"], head["tvg"] = 1, 0.0
        head["time"] = (frame.first_sample + int(r["bins"])) / frame.sampling_rate  # the end of the block
    elif frame.kind == "3d":
        far = frame.samples["range"]
        numbers = np.maximum(far >> 8, far > 0).astype(np.uint8).tobytes()
    elif int(r["sample_bytes"]) == 2:
        numbers = (frame.samples >> 8).astype(np.uint8).tobytes()
    else:
        numbers = frame.samples.tobytes()
    text = json.dumps(to_json_value(head), separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    return b"WVS1" + struct.pack("<I", len(text)) + text + numbers


class ImageStream:
    """Newest images from one sonar, camera or lidar, or newest sound from one channel of a hydrophone."""

    def __init__(self, source: Any, row: int, name: str, channel: int = 0) -> None:
        self._source, self.row, self.name, self.channel = source, row, name, channel
        self._stream: FrameStream | None = None
        self._version, self._due, self.epoch = -1, 0.0, 0
        self.trouble = ""  #: reason why this instrument has no image; empty if it has one
        self.made = 0  #: number of images packed so far
        self.pictures: deque[bytes] = deque()

    def read(self, now: float) -> None:
        """Store new frames. A new epoch starts when the server restarts or another body occupies the row."""
        version = self._source.scene()[0]
        if self._stream is None or version != self._version:
            if now < self._due:
                return
            self._due, self._version = now + RETRY_S, version
            self.close()
            try:
                self._stream = self._source.open_frames(self.row, self.name)
            except WaveSimError as error:
                self.trouble = str(error)
                return
            self.trouble = ""
            self._start_epoch()
        back, found = self._stream.new()
        if back:
            self._start_epoch()
        for frame in found:
            self.pictures.append(picture(self.row, frame, self.epoch, self.channel))
            self.made += 1
            while len(self.pictures) > MAX_KEPT[frame.kind]:
                self.pictures.popleft()

    def to_message(self) -> ImageMessage:
        """Return the status message with the error and the epoch. The page needs the epoch from this message if it has
        not received an image of this epoch yet.
        """
        return {
            "type": "picture",
            "row": self.row,
            "name": self.name,
            "channel": self.channel,
            "trouble": self.trouble,
            "epoch": self.epoch,
        }

    def _start_epoch(self) -> None:
        self.epoch += 1
        self.pictures.clear()

    def after(self, number: int) -> list[bytes]:
        """Return the stored images, except those among the first ``number`` images of the stream."""
        n = min(self.made - number, len(self.pictures))
        return list(self.pictures)[len(self.pictures) - n :] if n > 0 else []

    def close(self) -> None:
        """Release the stream, because no page shows it any longer."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
