"""The sounds of a simulation that can still be heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wavesim_sdk.arrays import Array, Record
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.front_tables import SOUND_SLOTS, StoredSound
from wavesim_sdk.sounds import MAX_SAMPLES


@dataclass
class SoundStore:
    """The samples of all sounds that are planned, are being emitted, or can still be heard by a hydrophone.

    Every sound has a place among ``MAX_SAMPLES`` samples and a slot, which it keeps until it is released. Shared memory
    uses the same places.
    """

    sounds: dict[int, StoredSound] = field(default_factory=dict)  #: by number
    planned: dict[int, bool] = field(default_factory=dict)  #: sounds that are still to be sent; True = repeatedly
    signals: dict[int, int] = field(default_factory=dict)  #: number of the sound of each signal
    last: int = 0  #: number of the newest sound

    def add(self, samples: Array, sampling: float, in_use: Callable[[], set[int]], keep: bool = False) -> int:
        """Add a sound, and return its number. ``in_use`` returns the numbers of the signals that can still be heard;
        with ``keep``, the sound belongs to a pinger. Raises InvalidArgument if there is no room.
        """
        place = self._place(len(samples))
        if place is None:
            self.release(in_use())
            place = self._place(len(samples))
        if place is None:
            used = sum(len(s.samples) for s in self.sounds.values())
            raise InvalidArgument(
                f"no room for a sound of {len(samples)} samples: {len(self.sounds)} sounds with {used} samples are planned "
                f"or can still be heard; the maximum is {MAX_SAMPLES} samples in {SOUND_SLOTS} sounds"
            )
        self.last += 1
        self.sounds[self.last] = StoredSound(self.last, *place, sampling, samples)
        self.planned[self.last] = keep
        return self.last

    def _place(self, count: int) -> tuple[int, int] | None:
        """Return the lowest free slot, and the first gap that is large enough; None if there is none."""
        used = sorted((s.offset, s.offset + len(s.samples)) for s in self.sounds.values())
        slots = {s.slot for s in self.sounds.values()}
        slot = next((k for k in range(SOUND_SLOTS) if k not in slots), None)
        offset = 0
        for first, end in used:
            if first - offset >= count:
                break
            offset = end
        return None if slot is None or offset + count > MAX_SAMPLES else (slot, offset)

    def note_sent(self, number: int, signal: int, was_sent: bool) -> None:
        """Record that a planned sound was sent as a signal, or that it was refused at the time of its emission."""
        if number not in self.sounds:
            return
        if was_sent:
            self.signals[signal] = number
        if not self.planned.get(number, False):
            self.planned.pop(number, None)
            if not was_sent:
                del self.sounds[number]

    def drop(self, number: int) -> None:
        """Record that a planned sound will not be sent any more."""
        self.planned.pop(number, None)
        if number not in self.signals.values():
            self.sounds.pop(number, None)

    def release(self, in_use: set[int]) -> None:
        """Release the sounds of all signals that can no longer be heard."""
        self.signals = {signal: number for signal, number in self.signals.items() if signal in in_use}
        needed = {*self.planned, *self.signals.values()}
        self.sounds = {number: sound for number, sound in self.sounds.items() if number in needed}

    def mark(self, waveforms: Record) -> None:
        """Set the column ``samples`` of WAVEFORM records."""
        for k, signal in enumerate(waveforms["signal"].tolist()):
            waveforms["samples"][k] = self.signals.get(signal, 0)

    def of(self, waveforms: Record) -> tuple[StoredSound, ...]:
        """Return the sounds that WAVEFORM records refer to."""
        numbers = dict.fromkeys(waveforms["samples"].tolist())
        return tuple(self.sounds[n] for n in numbers if n in self.sounds)
