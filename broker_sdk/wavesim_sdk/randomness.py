"""Random numbers that belong to an entity and a purpose, not to the order of calls.

A stream is a 64-bit key made of (seed, entity, purpose); a number is a hash of key and counter, so
it can be drawn again by a restarted process, and nobody's draws depend on another's.  The hash is
SplitMix64 (Steele, Lea & Flood 2014), the normal law by Box & Muller (1958).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from wavesim_sdk.elementary import cos, log

Keys = np.ndarray[Any, np.dtype[np.uint64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


def key(seed: int, entity: str, purpose: str) -> int:
    """The stream of one entity for one purpose."""
    digest = hashlib.blake2b(f"{seed}\0{entity}\0{purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _mix(x: Keys) -> Keys:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def stream(keys: Keys, purpose: str) -> Keys:
    """Streams of their own for one purpose of each key: whatever is drawn from them, it is none of the key's other numbers."""
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    with np.errstate(over="ignore"):
        return _mix(np.asarray(keys, np.uint64) ^ np.uint64(int.from_bytes(digest, "little")))


def uniform(keys: Keys, counter: Any, index: Any = 0) -> Floats:
    """One number in (0, 1) for each key; ``index`` tells several draws at one counter apart. Both may be arrays, which are broadcast
    against the keys."""
    with np.errstate(over="ignore"):
        tick = (2 * np.asarray(counter).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        n = tick + np.asarray(index, np.uint64) * np.uint64(0xD1342543DE82EF95)
        bits = _mix(_mix(np.asarray(keys, np.uint64) + n) + np.uint64(0x9E3779B97F4A7C15))
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def normal(keys: Keys, counter: Any, index: Any = 0) -> Floats:
    """One standard normal number for each key; made of two of :func:`uniform`, so not for keys from which that draws too."""
    u = uniform(keys, counter, 2 * index)
    v = uniform(keys, counter, 2 * index + 1)
    return np.asarray(np.sqrt(-2.0 * log(u)) * cos(2.0 * np.pi * v))
