"""Resource use of other processes, from /proc."""

from __future__ import annotations

import os
from pathlib import Path


def memory_mb(pid: int) -> float:
    """Return the proportional set size: shared pages are divided among their users."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_s(pid: int) -> float:
    """Return the user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> dict[str, int]:
    """Return the processes of the server by name."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            if parent == pid and name in ("wavesim-engine", "wavesim-front"):
                found[name.removeprefix("wavesim-")] = int(entry.name)
    return found
