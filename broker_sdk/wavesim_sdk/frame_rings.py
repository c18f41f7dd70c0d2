"""Shared-memory rings with the newest frames from each imaging sonar, camera, lidar and hydrophone of a server on this
machine.

A segment ``/wavesim.NAME.sonars`` contains one ring for each row of the ``sonar`` table, followed by one for each row
of the ``lidar`` table, one for each row of the ``hydrophone`` table and, in reverse order, one for each row of the
``camera`` table. The segment begins like the
other segments: magic ``WAVESONR``, version, 16 bytes of the record hash, the size of the segment, and the PID and start
time of the server. The number of rings, the number of slots per ring, the number of bytes per slot and the indices of the
first lidar ring and of the first hydrophone ring follow (8 bytes each).

Ring k begins at ``HEADER + k (RING + slots slot_bytes)`` with three numbers. ``begun`` is the number of the frame that
is being written. ``done`` is the number of the last complete frame. ``logged`` is the number of the last logged frame
plus one (0 = no log). Frame n is in slot ``(n - 1) % slots``: a record (:data:`FRAME`) followed by ``bytes`` of
payload. A reader copies the frame and then checks ``begun``: the copy is valid if ``begun`` is at most ``n + slots -
1``.
"""

from __future__ import annotations

import hashlib
import time
from typing import Any

import numpy as np

from wavesim_sdk.errors import AttachError, UnknownPart
from wavesim_sdk.imaging_frames import FRAME_SENSOR_TYPES, RECORD, ImagingFrame, no_such_source
from wavesim_sdk.shared_memory import RingSegment, require_owner, segment_name

MAGIC = b"WAVESONR"
VERSION = 3
HEADER_NUMBERS = 12  #: number of 8-byte integers in the header
HEADER, RING = 4096, 64
SLOTS = 4
LOOK_S = 0.0005  #: interval in s at which to check whether the log writer has read a frame
SEGMENT = RingSegment(
    "sonars",
    MAGIC,
    VERSION,
    hashlib.sha256(repr(RECORD.descr).encode()).hexdigest()[:16].encode(),
    HEADER,
    "segment of frame rings",
    "imaging sonars, cameras, lidars or hydrophones",
)


class FrameRings:
    """Frame rings of a server in mapped memory. ``begun``, ``done`` and ``logged`` are views with one number per ring."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.header = np.frombuffer(memory, np.int64, HEADER_NUMBERS, 0)
        self.rings, self.slots, self.slot_bytes, *first = (int(n) for n in self.header[7:])
        self._first = dict(zip(("lidar", "hydrophone"), first, strict=True))
        self._each = RING + self.slots * self.slot_bytes
        self.begun, self.done, self.logged = (
            np.ndarray(self.rings, np.int64, memory, HEADER + 8 * k, (self._each,)) for k in range(3)
        )

    @classmethod
    def create(cls, server: str, rings: int, size: int, group: bool = False, first: tuple[int, int] = (0, 0)) -> None:
        """Create the segment of frame rings for a server. Raises OSError on failure. ``first`` contains the indices of
        the first lidar ring, which equals the number of sonar rings, and of the first hydrophone ring.
        """
        SEGMENT.create(server, HEADER + rings * (RING + SLOTS * size), (rings, SLOTS, size, *first), group)

    @classmethod
    def attach(cls, server: str, writable: bool = False) -> FrameRings:
        """Map the frame rings of a server. Raises NotRunning or AttachError, with the reason, on failure."""
        memory = SEGMENT.attach(server, writable)
        header = [int(n) for n in np.frombuffer(memory, np.int64, HEADER_NUMBERS)]
        rings, slots, size = header[7:10]
        if min(rings, slots - 1, size - RECORD.itemsize) < 0 or HEADER + rings * (RING + slots * size) > len(memory):
            raise AttachError(
                f"{segment_name(server, SEGMENT.part)} is damaged: {rings} rings of {slots} x {size} bytes do not fit into its {len(memory)} bytes"
            )
        require_owner(server, memory)
        return cls(memory)

    def ring_index(self, type_: str, place: int) -> int:
        """Return the number of an instrument's ring, given the type of the instrument and its row in the table of that
        type.
        """
        if type_ == "camera":
            return self.rings - 1 - place
        return place + self._first.get(type_, 0)

    def _slot(self, ring: int, number: int) -> int:
        return HEADER + ring * self._each + RING + (number - 1) % self.slots * self.slot_bytes

    def write(self, ring: int, record: Any, *payload: bytes, patience: float = 0.0) -> int:
        """Append a frame and return its number. Only one writer may call this at a time.

        The call waits up to ``patience`` s of wall-clock time until the log writer has read the frame that is to be
        overwritten.
        """
        body = b"".join(payload)
        if RECORD.itemsize + len(body) > self.slot_bytes:
            raise AttachError(f"a frame of {len(body)} bytes does not fit into its ring")
        number = int(self.done[ring]) + 1
        limit = time.monotonic() + patience
        while 0 < self.logged[ring] <= number - self.slots and time.monotonic() < limit:
            time.sleep(LOOK_S)
        self.begun[ring] = number
        record["number"], record["bytes"] = number, len(body)
        at = self._slot(ring, number)
        self._memory[at : at + RECORD.itemsize] = record.tobytes()
        at += RECORD.itemsize
        self._memory[at : at + len(body)] = body
        self.done[ring] = number
        return number

    def read(self, ring: int, number: int) -> ImagingFrame | None:
        """Return a frame by its number, or None if it has not been written yet or has already been overwritten."""
        if not 0 < number <= int(self.done[ring]):
            return None
        at = self._slot(ring, number)
        record = np.frombuffer(bytes(self._memory[at : at + RECORD.itemsize]), RECORD)[0]
        size = min(int(record["bytes"]), self.slot_bytes - RECORD.itemsize)
        at += RECORD.itemsize
        payload = bytes(self._memory[at : at + max(size, 0)])
        if int(self.begun[ring]) >= number + self.slots or int(record["number"]) != number:
            return None
        return ImagingFrame(record, payload)


class FrameReader:
    """Sequential reader of the frames from one instrument. ``dropped`` counts the frames that were overwritten before
    they were read.
    """

    def __init__(self, rings: FrameRings, ring: int, name: str = "") -> None:
        self.rings, self.ring, self.name = rings, ring, name
        self.last_read = self.dropped = 0

    @classmethod
    def open(cls, server: str, body: str, name: str) -> FrameReader:
        """Open the frames from a sonar, camera, lidar or hydrophone on a body of a running server."""
        from wavesim_sdk.attach import SharedState

        suite = SharedState(server).instruments(body)
        types = {n: bytes(entry["type"]).decode() for n, entry in suite.items()}
        if types.get(name) not in FRAME_SENSOR_TYPES:
            there = [n for n, type_ in types.items() if type_ in FRAME_SENSOR_TYPES]
            raise UnknownPart(no_such_source(body, name, there))
        rings = FrameRings.attach(server)
        return cls(rings, rings.ring_index(types[name], int(suite[name]["place"])), name)

    def next(self) -> ImagingFrame | None:
        """Return the oldest unread frame that still exists, or None if there is no new frame."""
        while True:
            done = int(self.rings.done[self.ring])
            if self.last_read >= done:
                return None
            first = max(self.last_read + 1, done - self.rings.slots + 2)
            self.dropped += first - self.last_read - 1
            self.last_read = first
            frame = self.rings.read(self.ring, first)
            if frame is not None:
                return frame
            self.dropped += 1


def remove_rings(server: str) -> list[str]:
    """Remove the segment of frame rings of a server if it exists. Return its name in a list, which is empty if the
    segment did not exist.
    """
    return SEGMENT.remove(server)
