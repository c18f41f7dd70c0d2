"""Random numbers that depend on the entity and the purpose, but not on the order of calls.

A stream is a 64-bit key made from (seed, entity, purpose); a random number is a hash of the key and a counter.
Therefore, a restarted process can draw the same numbers again, and streams are independent of each other. The hash is
SplitMix64 (Steele, Lea & Flood 2014); normal numbers use the method of Box & Muller (1958).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats, Keys
from wavesim_sdk.elementary import cos, log


def key(seed: int, entity: str, purpose: str) -> int:
    """Return the random-stream key of an entity for a purpose."""
    digest = hashlib.blake2b(f"{seed}\0{entity}\0{purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def splitmix64(x: Any) -> Any:
    """Return the output of the SplitMix64 function for a 64-bit number or an array of them.

    Kernels can also call this function and :func:`random_bits`, once :mod:`wavesim_kernels.compiled_elementary` is
    imported.
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def random_bits(key: Any, counter: Any, index: Any) -> Any:
    """Return 64 random bits from a key; ``index`` distinguishes several draws with the same counter. All numbers are
    uint64.
    """
    tick = (np.uint64(2) * counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    n = tick + index * np.uint64(0xD1342543DE82EF95)
    return splitmix64(splitmix64(key + n) + np.uint64(0x9E3779B97F4A7C15))


def stream(keys: Keys, purpose: str) -> Keys:
    """Return, for each key, the key of a separate random stream for the given purpose.

    The separate stream never shares a random number with the stream of the original key.
    """
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    with np.errstate(over="ignore"):
        return np.asarray(splitmix64(np.asarray(keys, np.uint64) ^ np.uint64(int.from_bytes(digest, "little"))))


def uniform(keys: Keys, counter: Any, index: Any = 0) -> Floats:
    """Return one uniform random number in (0, 1) for each key; ``index`` distinguishes several draws with the same
    counter.

    ``counter`` and ``index`` may be arrays, which are broadcast against the keys.
    """
    with np.errstate(over="ignore"):
        bits: Keys = random_bits(
            np.asarray(keys, np.uint64), np.asarray(counter).astype(np.uint64), np.asarray(index, np.uint64)
        )
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def normal(keys: Keys, counter: Any, index: Any = 0) -> Floats:
    """Return one standard normal random number for each key.

    This function uses two numbers from :func:`uniform`, so do not call :func:`uniform` with the same keys.
    """
    u = uniform(keys, counter, 2 * index)
    v = uniform(keys, counter, 2 * index + 1)
    return np.asarray(np.sqrt(-2.0 * log(u)) * cos(2.0 * np.pi * v))
