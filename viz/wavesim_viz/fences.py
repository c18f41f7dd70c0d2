"""Fences for the page. This module provides the fences of a configuration, of a running server, and of a log at any
time. It also finds the bodies that violate fences, and sends the changes that a page requests.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

import numpy as np

from wavesim_sdk import commands
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.fences import corner_points, violates
from wavesim_sdk.log import Log
from wavesim_sdk.wire.items import Fence
from wavesim_viz.frame import ViewerFrame
from wavesim_viz.page_content import FenceInfo, RosterEntry
from wavesim_viz.page_protocol import FencesRequest
from wavesim_world.config import LoadedConfig

__all__ = ["FenceHistory", "change_fences", "configured_fences", "fence_infos", "fence_violations"]


def fence_infos(fences: Iterable[Fence]) -> list[FenceInfo]:
    """Return fences in the form that the page uses."""
    return [
        {"name": f.name, "keep": f.keep, "corners": [(north, east) for north, east in corner_points(f).tolist()]}
        for f in fences
    ]


def _requests(loaded: LoadedConfig | None) -> list[Fence]:
    return [f.request() for f in loaded.config.fleet.fence] if loaded is not None else []


def configured_fences(loaded: LoadedConfig | None) -> list[FenceInfo]:
    """Return the fences of a configuration; none if the configuration is unknown."""
    return fence_infos(_requests(loaded))


class FenceHistory:
    """Fences of a logged run: the fences of its configuration, as changed by the logged commands."""

    def __init__(self, log: Log, loaded: LoadedConfig | None) -> None:
        current = {f.name: f for f in _requests(loaded)}
        self._times, self._fences = [0], [fence_infos(current.values())]
        for time_ns, message in log.json.get("/commands", []):
            if message["verb"] != "fence":
                continue
            try:
                fence = commands.make_command("fence", message["arguments"])
            except ValueError:  # a log from another program
                continue
            assert isinstance(fence, Fence)
            if fence.corners:
                current[fence.name] = fence
            else:
                current.pop(fence.name, None)
            self._times.append(time_ns)
            self._fences.append(fence_infos(current.values()))

    def at(self, time_ns: float) -> list[FenceInfo]:
        """Return the fences at a time of the log."""
        return self._fences[max(bisect.bisect_right(self._times, time_ns) - 1, 0)]


def fence_violations(
    fences: Iterable[FenceInfo], frame: ViewerFrame, roster: Sequence[RosterEntry]
) -> dict[int, list[str]]:
    """Return, by row, a description of each fence that a body violates. Buoys never violate a fence."""
    b = np.asarray(frame.bodies, float)
    watched = b[np.isin(b[:, 0], [r[0] for r in roster if r[3] != "buoy"]) & np.isfinite(b[:, 1:3]).all(axis=1)]
    rows, p = watched[:, 0].astype(int), watched[:, 1:3]
    found: dict[int, list[str]] = {}
    for fence in fences:
        keep, corners = fence["keep"], np.array(fence["corners"], float).reshape(-1, 2)
        side = "outside" if keep == "inside" else "inside"
        for row in rows[violates(keep, corners, p)].tolist():
            found.setdefault(row, []).append(f"{side} the fence '{fence['name']}' (keep {keep})")
    return found


def change_fences(server: str, request: FencesRequest) -> tuple[bool, str]:
    """Send the changes that a page requests to a server, one after another, until one of them is refused."""
    done: list[str] = []
    try:
        with Commander(server) as commander:
            for change in request.changes:
                reply = commander.send("fence", **change)
                if not reply.ok:
                    return False, "; ".join([*done, reply.text])
                done.append(reply.text)
    except WaveSimError as error:
        return False, "; ".join([*done, str(error)])
    return True, "; ".join(done)
