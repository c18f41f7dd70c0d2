"""Identical memory layout for all programs of a run.

A processor predicts branches by their addresses. Linux gives each process different addresses (address space layout
randomisation). In a lockstep run, a dozen processes run the same interpreter in turn and evict each other's branch
predictions. Processes with the same layout reuse the predictions; docs/performance.md states how much time this saves.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

ADDR_NO_RANDOMIZE = 0x0040000  # <linux/personality.h>
QUERY_ONLY = 0xFFFFFFFF


@contextlib.contextmanager
def same_address_layout() -> Iterator[None]:
    """Return a context manager. Programs that are started in its context have the same memory layout, if the system
    permits this.

    Some containers forbid this; in that case, nothing changes. The calling process keeps its own layout. Without random
    addresses, memory errors in native code are easier to exploit, so use this function only for your own programs on
    your own machine.
    """
    personality = ctypes.CDLL(None).personality
    before = personality(ctypes.c_ulong(QUERY_ONLY))
    if before == -1:
        yield
        return
    personality(ctypes.c_ulong(before | ADDR_NO_RANDOMIZE))
    try:
        yield
    finally:
        personality(ctypes.c_ulong(before))
