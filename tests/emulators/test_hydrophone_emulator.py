"""Blocks of the emulator of hydrophones from given fronts: the clock, the surface, and a row that another body uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulators.bench import Bench, Make, bench
from tests.emulators.hydrophone_twin import Emission, at_rest
from wavesim_emulators.hydrophone.emulator import HydrophoneEmulator
from wavesim_sdk.arrays import Record
from wavesim_sdk.front_tables import FRONT, WAVEFORM, FrontBatch
from wavesim_sdk.imaging_frames import RECORD, ImagingFrame

RATE = 8000
TICKS = 25  #: of 4 ms from block to block
KEYS = f'sampling="{RATE} Hz" rate="10 Hz" ambient="no" bits="0" gain="40 dB"'
DEEP = (0.0, 0.0, 20.0)


class Listening:
    """A bench with hydrophones whose fronts the test adds, and the blocks that the emulator wrote."""

    def __init__(self, config: Make, keys: str = KEYS, bodies: int = 1) -> None:
        self.bench: Bench = bench(config, HydrophoneEmulator, keys, bodies=bodies, period=TICKS)
        for row in range(bodies):
            self.bench.put(DEEP, row=row)
        self.blocks: list[ImagingFrame] = []
        self._waveforms: list[Record] = []
        self._fronts: list[Record] = []
        self.lost = 0  #: records that the source lost since the last call
        self.bench.emulator.open_remote(self._write)
        self.bench.emulator.connect(self._take)

    def _write(self, place: int, record: Any, *payload: bytes) -> int:
        record["bytes"] = sum(map(len, payload))
        data = np.asarray(record, RECORD).tobytes() + b"".join(payload)
        self.blocks.append(ImagingFrame.from_bytes(data))
        return len(self.blocks)

    def _take(self) -> FrontBatch:
        waveforms = np.concatenate([np.zeros(0, WAVEFORM.dtype), *self._waveforms])
        fronts = np.concatenate([np.zeros(0, FRONT.dtype), *self._fronts])
        self._waveforms, self._fronts, lost, self.lost = [], [], self.lost, 0
        return FrontBatch(waveforms, fronts, 0, lost=lost)

    def hear(self, signal: int, start: float, duration: float = 0.02, generation: int = 1) -> None:
        """Let a tone of 2 kHz arrive 20 ms after the start of its emission."""
        e = Emission(
            at_rest(0, 0, 20), at_rest(30, 0, 20), signal=signal, start=start, duration=duration, frequency=2e3
        )
        self._waveforms.append(e.waveform())
        fronts = e.fronts()
        fronts["generation"] = generation
        self._fronts.append(fronts)

    def run(self, first: int, last: int) -> list[ImagingFrame]:
        """Return the new blocks of the due ticks ``first`` to ``last``, in units of blocks."""
        before = len(self.blocks)
        for k in range(first, last + 1):
            self.bench.at(k * TICKS)
        return self.blocks[before:]


def joined(blocks: list[ImagingFrame]) -> tuple[int, Any]:
    """Return the number of the first sample and all samples of the first channel; no block may be missing."""
    first = after = blocks[0].first_sample
    for b in blocks:
        assert b.first_sample == after
        after += int(b.record["bins"])
    return first, np.concatenate([np.asarray(b.samples[0]) for b in blocks])


@pytest.mark.parametrize("offset", [0.0, -10.0, 3.0])
def test_the_clock_may_show_any_time_at_the_start(config: Make, offset: float) -> None:
    """The same samples, with other numbers: the first one is taken at the start of the run, also before 0."""
    listening = Listening(config, f'{KEYS} clock_offset="{offset} s"')
    listening.hear(1, 0.1)
    first, sound = joined(listening.run(1, 4))
    assert first == offset * RATE and len(sound) == pytest.approx(0.37 * RATE, abs=5)
    heard = np.flatnonzero(sound)
    assert heard[[0, -1]] == pytest.approx([0.12 * RATE, 0.14 * RATE], abs=2)


def test_nothing_is_clipped_above_the_water(config: Make) -> None:
    listening = Listening(config, KEYS.replace('bits="0"', 'bits="16" full_scale="0.00001"'))
    listening.hear(1, 0.1, 0.5)
    (clipped,) = listening.run(1, 3)[-1:]
    assert clipped.record["saturated"] > 100 and listening.bench.out["clipped"][0] > 100
    listening.bench.put((0.0, 0.0, -5.0))
    (silent,) = listening.run(4, 4)
    assert not silent.samples.any()
    assert silent.record["saturated"] == listening.bench.out["clipped"][0] == 0


def test_a_hydrophone_that_uses_a_row_again_hears_from_its_first_block(config: Make) -> None:
    """A body leaves, and another one enters between two blocks. Its first block contains the sound since then, but not
    the sound that the first body heard after its last block.
    """
    listening = Listening(config)
    listening.run(1, 3)
    listening.hear(1, 0.29)
    listening.bench.leave(0)
    listening.bench.enter(0, "b7")
    listening.hear(2, 0.32, generation=2)
    blocks = listening.run(4, 5)
    assert {b.body for b in blocks} == {"b7"}
    first, sound = joined(blocks)
    assert (np.flatnonzero(sound)[0] + first) / RATE == pytest.approx(0.34, abs=1e-3)


def test_a_fault_makes_the_noise_louder(config: Make) -> None:
    def blocks(fault: bool) -> list[Any]:
        listening = Listening(config, KEYS.replace('ambient="no"', 'gain="20 dB"').replace('gain="40 dB"', ""))
        found = listening.run(1, 2)
        if fault:
            listening.bench.fault(0, "noisy", 3.0)
        found += listening.run(3, 3)
        if fault:
            listening.bench.fault(0, "none")
        return [np.asarray(b.samples) for b in found + listening.run(4, 4)]

    quiet, loud = blocks(False), blocks(True)
    assert [len(quiet), len(loud)] == [4, 4]
    assert all(np.array_equal(quiet[k], loud[k]) for k in (0, 1, 3))
    assert loud[2] == pytest.approx(3.0 * quiet[2], rel=1e-6) and quiet[2].any()


def test_frames_at_any_time_may_overlap(config: Make) -> None:
    """A frame of a tick is the same when it is asked for again, also with another seed, and parts that two frames share
    are the same.
    """
    listening = Listening(config)
    listening.bench.emulator.is_instant = True
    listening.hear(1, 0.05, 0.4)

    def frame(tick: int, seed: int = 1) -> ImagingFrame:
        count = len(listening.bench.out)
        listening.bench.emulator.sensor_bank(seed, count).compute_now(listening.bench.view(tick))
        return listening.blocks[-1]

    first, again, other, later = frame(60), frame(60), frame(60, 2), frame(70)
    assert first.samples.any() and first.payload == again.payload == other.payload
    shift = later.first_sample - first.first_sample
    assert 0 < shift < first.samples.shape[1]
    assert np.array_equal(later.samples[:, :-shift], first.samples[:, shift:])
    noisy = Listening(config, KEYS.replace('ambient="no"', ""))
    noisy.bench.emulator.is_instant, listening = True, noisy
    assert frame(60).payload == frame(60).payload != frame(60, 2).payload


def test_lost_arrivals_are_counted(config: Make) -> None:
    """The count continues when another process takes over or a fault changes the values, and begins again for another
    hydrophone in the row.
    """
    listening = Listening(config)

    def counted(tick: int, lost: int) -> float:
        listening.lost = lost
        listening.run(tick, tick)
        return float(listening.bench.out["lost"][0])

    assert [counted(1, 0), counted(2, 5), counted(3, 0), counted(4, 2)] == [0.0, 5.0, 5.0, 7.0]
    listening.bench.fault(0, "bias", 100.0, "lost")
    assert counted(5, 0) == 107.0
    listening.bench.fault(0, "none")
    listening.bench.replace(keep=True)
    listening.bench.emulator.open_remote(listening._write)
    listening.bench.emulator.connect(listening._take)
    assert [counted(6, 0), counted(7, 1)] == [7.0, 8.0]
    listening.bench.leave(0)
    listening.bench.enter(0, "b7")
    assert [counted(8, 0), counted(9, 4)] == [0.0, 4.0]
