"""The channel code of JANUS: a convolutional code of rate 1/2 and constraint length 9, and the interleaver."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from wavesim_sdk.errors import InvalidArgument

GENERATORS = (0o753, 0o561)  #: the newest bit is the highest
TAIL = 8  #: zero bits after the data, which return the encoder to its initial state
_STATES = 256
PACKET_CHIPS = 144

Bits = npt.NDArray[np.uint8]


def _parity(values: npt.NDArray[np.int64]) -> Bits:
    for shift in (8, 4, 2, 1):
        values = values ^ values >> shift
    return (values & 1).astype(np.uint8)


@functools.cache
def interleaver(count: int) -> npt.NDArray[np.int64]:
    """Return the index of the coded bit that each of ``count`` chips carries."""
    step = 5
    while not (count < step * step and count % step and all(step % p for p in range(2, step))):
        step += 1
    order = step * np.arange(count) % count
    order.flags.writeable = False  # shared by all callers
    return order


def chip_count(size: int) -> int:
    """Return the number of chips that carry ``size`` bytes."""
    return 2 * (8 * size + TAIL)


def encode(data: bytes) -> Bits:
    """Return the chips (0 or 1) that carry these bytes."""
    bits = np.concatenate([np.unpackbits(np.frombuffer(data, np.uint8)), np.zeros(TAIL, np.uint8)])
    # register at each step: the present bit and the eight before it
    padded = np.concatenate([np.zeros(TAIL, np.uint8), bits]).astype(np.int64)
    register = np.zeros(len(bits), np.int64)
    for age in range(TAIL + 1):
        register |= padded[TAIL - age : len(padded) - age] << 8 - age
    coded = np.stack([_parity(register & g) for g in GENERATORS], axis=1).ravel()
    return coded[interleaver(len(coded))]


@functools.cache
def _signs() -> npt.NDArray[np.float64]:
    """Return the signs of the two coded bits for each transition: (coded bit, oldest bit, new bit, 128).

    A state consists of the last eight bits, with the newest at the high end. A transition drops the oldest bit; the
    last axis is the seven bits between.
    """
    oldest, new, between = np.ogrid[:2, :2, :128]
    register = new << 8 | between << 1 | oldest
    return np.stack([2.0 * _parity(register & g) - 1.0 for g in GENERATORS])


def decode(soft: npt.ArrayLike) -> bytes | list[bytes]:
    """Return the most likely bytes for soft decisions (Viterbi's algorithm).

    ``soft`` has one value per chip: positive for a 1, with the magnitude as the weight; for example the energy at the
    tone of a 1 minus the energy at the tone of a 0. Shape (chips,), or (packets, chips) for a list of results.
    """
    values = np.asarray(soft, float)
    count = values.shape[-1]
    if values.ndim > 2 or count % 16 or count <= 2 * TAIL or not np.isfinite(values).all():
        raise InvalidArgument(f"expected finite soft decisions for whole bytes, got an array of shape {values.shape}")
    batch = values.reshape(-1, count)
    coded = np.empty_like(batch)
    coded[:, interleaver(count)] = batch
    of_first, of_second = _signs()
    score = np.full((len(batch), _STATES), -np.inf)
    score[:, 0] = 0.0
    steps = count // 2
    chosen = np.empty((steps, len(batch), _STATES), np.uint8)
    for step in range(steps):
        first, second = coded[:, 2 * step, None, None], coded[:, 2 * step + 1, None, None]
        zero, one = (
            score[:, None, oldest::2] + first * of_first[oldest] + second * of_second[oldest] for oldest in (0, 1)
        )
        chosen[step] = (one > zero).reshape(-1, _STATES)
        score = np.maximum(zero, one).reshape(-1, _STATES)
    rows = np.arange(len(batch))
    state = np.zeros(len(batch), np.int64)
    bits = np.empty((len(batch), steps), np.uint8)
    for step in range(steps - 1, -1, -1):
        bits[:, step] = state >> 7
        state = (state & 127) << 1 | chosen[step, rows, state]
    results = [row.tobytes() for row in np.packbits(bits[:, :-TAIL], axis=1)]
    return results if values.ndim == 2 else results[0]
