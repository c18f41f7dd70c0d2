"""Sounds of pingers, from WAV files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import ConfigError, InvalidArgument
from wavesim_sdk.sounds import check_band, checked_sound
from wavesim_sdk.tables import MAX_SIGNAL_S
from wavesim_sdk.wav_files import WavFile
from wavesim_world.config.loaded import LoadedConfig


class PingerSound(NamedTuple):
    """Samples of a pinger's sound, its sampling rate in Hz, and the edges of the band that it occupies, in Hz."""

    samples: Array
    sampling: float
    low: float
    high: float

    @property
    def duration(self) -> float:
        """Duration in s."""
        return len(self.samples) / self.sampling


def pinger_sounds(loaded: LoadedConfig) -> dict[str, PingerSound]:
    """Return the sounds of all pingers in a configuration, by the names of their files. Raises ConfigError for the first
    invalid file.
    """
    bodies = [loaded.transducer(body) for body in loaded.config.fleet.bodies]
    models = [model.transducer for model in loaded.models.values()]
    pingers = [t.pinger for t in (*bodies, *models) if t is not None and t.pinger is not None]
    return {name: read_sound(loaded.data_file(name)) for name in dict.fromkeys(p.waveform for p in pingers) if name}


def read_sound(path: Path) -> PingerSound:
    """Read a WAV file with one channel. Raises ConfigError if it cannot be a sound."""
    from wavesim_kernels.occupied_band import occupied_band  # imports Numba, so only when needed

    try:
        with WavFile(path) as file:
            if file.channels != 1:
                raise InvalidArgument(f"the file has {file.channels} channels; the sound of a pinger has one")
            if file.count > MAX_SIGNAL_S * file.sampling:
                raise InvalidArgument(
                    f"the sound lasts {file.count / file.sampling:.0f} s; the maximum is {MAX_SIGNAL_S:g} s"
                )
            blocks = list(file.blocks(65_536))
            x = np.concatenate(blocks)[:, 0] if blocks else np.zeros(0)
            samples, sampling = checked_sound(x, file.sampling)
        low, high = occupied_band(samples, sampling)
        check_band(high, sampling)
    except OSError as error:
        raise ConfigError(f"cannot read the sound of a pinger: {error.strerror}", str(path)) from None
    except InvalidArgument as error:
        raise ConfigError(str(error).removeprefix(f"{path}: "), str(path)) from None
    return PingerSound(samples, sampling, low, high)
