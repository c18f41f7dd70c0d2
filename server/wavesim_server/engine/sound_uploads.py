"""Sounds whose samples clients have sent, but which they have not played yet."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.wire.items import MAX_SOUND_SAMPLES, SoundPart

#: maximum size and number of all sounds; the oldest are discarded
MAX_BYTES, MAX_SOUNDS = 8 * 4 * MAX_SOUND_SAMPLES, 4096


@dataclass
class SoundUpload:
    """The samples of a sound that have arrived so far. ``count`` is the number of samples of the whole sound."""

    count: int
    data: bytearray = field(default_factory=bytearray)


class SoundUploads:
    """The sounds of all sessions, each from its first part until it is played.

    In lockstep, a session may send several sounds before the first one is played.
    """

    def __init__(self) -> None:
        #: by the row of the body, the number of the session, and the number of the sound
        self._sounds: dict[tuple[int, int, int], SoundUpload] = {}
        self._bytes = 0

    def add(self, row: int, request: int, part: SoundPart) -> None:
        """Add a part. Ignore a part that does not continue its sound; the sound then remains incomplete."""
        key = row, request >> 32, part.sound
        if part.first == 0:
            self._remove(key)
            self._sounds[key] = SoundUpload(part.count)
        upload = self._sounds.get(key)
        if upload is None or part.count != upload.count:
            return
        if len(part.data) % 4 or 4 * part.first != len(upload.data) or part.first + len(part.data) // 4 > part.count:
            return
        upload.data += part.data
        self._bytes += len(part.data)
        while self._bytes > MAX_BYTES or len(self._sounds) > MAX_SOUNDS:
            self._remove(next(iter(self._sounds)))

    def take(self, row: int, request: int, sound: int) -> Array:
        """Return the samples of a session's sound, and forget them. Raises ValueError if some of them have not arrived."""
        key = row, request >> 32, sound
        upload = self._sounds.get(key)
        if upload is None:
            raise ValueError(f"sound {sound} has no samples: send SOUND_PART before TRANSMIT")
        self._remove(key)
        if len(upload.data) != 4 * upload.count:
            raise ValueError(
                f"the sound is incomplete: {len(upload.data) // 4} of {upload.count} samples have arrived in order"
            )
        return np.frombuffer(bytes(upload.data), "<f4")

    def remove_body(self, row: int) -> None:
        """Forget the sounds of all sessions of a body."""
        for key in [key for key in self._sounds if key[0] == row]:
            self._remove(key)

    def _remove(self, key: tuple[int, int, int]) -> None:
        upload = self._sounds.pop(key, None)
        if upload is not None:
            self._bytes -= len(upload.data)
