"""A hydrophone whose row another one used just before: its first block contains only what it hears itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wavesim_server import Lab
from wavesim_world.config import LoadedConfig

RATE = 8000
WORLD = """<time step="10 ms" pace="fast"/><world><bed depth="200 m"/></world>
<acoustics sound_speed="1500 m/s" absorption="0 dB/m" ambient_noise="70 dB"/>
<fleet><vehicle name="a" model="lauv" position="0 0 5 m" client="none"><sensors>
<hydrophone name="ears" sampling="8 kHz" rate="5 Hz" ambient="no" bits="0" gain="40 dB"/></sensors></vehicle>
<buoy name="pinger" model="buoy" position="30 0 5 m"><transducer source_level="160 dB" pulse="20 ms" recharge="100 ms">
<pinger frequency="2 kHz" period="0.25 s" offset="0.44 s"/></transducer></buoy></fleet>"""


def test_the_first_block_contains_no_sound_that_the_previous_hydrophone_heard(
    config: Callable[..., LoadedConfig],
) -> None:
    """The ping of 0.44 s arrives at 0.46 s. The first hydrophone leaves at 0.5 s, after its last block. The second one
    enters at once, and its first block begins at about 0.4 s. It hears only the ping of 0.69 s, also after a return.
    """
    lab = Lab(config(WORLD), imaging=True)
    lab.advance(50)
    row = lab.row("a")
    lab.leave(row)
    assert lab.enter("a") == row
    snapshot, sounds = lab.snapshot(), []
    for _ in range(2):
        lab.take_frames()
        lab.advance(40)
        blocks = lab.take_frames()
        first = blocks[0].first_sample
        assert first < 0.45 * RATE, "the first block covers the time of the first ping"
        sounds.append(np.concatenate([b.samples[0] for b in blocks]))
        heard = np.flatnonzero(sounds[-1])
        assert (heard[[0, -1]] + first) / RATE == pytest.approx([0.71, 0.73], abs=1e-3)
        lab.restore(snapshot)
    assert np.array_equal(*sounds)
