"""One layout of memory for all programs of a run.

A processor predicts branches by their addresses. Linux gives each process other addresses (address space layout
randomisation), so a dozen processes that run the same interpreter in turn, as those of a run in lockstep do, spoil each
other's predictions; with the same layout in all of them they share what was learnt. See docs/performance.md for what that gives.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

ADDR_NO_RANDOMIZE = 0x0040000  # <linux/personality.h>
QUERY_ONLY = 0xFFFFFFFF


@contextlib.contextmanager
def same_address_layout() -> Iterator[None]:
    """Programs that this thread starts inside have the same layout of memory, where the system permits it.

    Some containers forbid it; then nothing changes. The calling process itself keeps its layout. Without random
    addresses a fault of memory in native code is easier to exploit: for programs of one's own on one's own machine only.
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
