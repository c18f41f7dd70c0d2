"""Base classes of emulators that produce frames. They handle the rings, wait for the log to read them, and provide the
names for a record. Emulators of images also have a scene.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wavesim_emulators.base import Batch, Emulator
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_sdk import frame_rings
from wavesim_sdk.attach import FleetSnapshot, SharedState
from wavesim_sdk.errors import NotRunning
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.bodies import BodyObstacles, ModelShapes

PATIENCE_S = 2.0  #: maximum time in s to wait for the log to read a frame before it is overwritten
_WARM: set[type] = set()  # emulators whose kernels this process has loaded


class FrameEmulator(Emulator):
    """Base class of emulators that write frames."""

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self._rings: frame_rings.FrameRings | None = None
        self._simulation: SharedState | None = None
        self._write_frame: Callable[..., int] | None = None
        #: whether a frame can be measured at any time of a run, independently of earlier frames
        self.is_instant = False

    def open(self, server: str) -> None:
        self._rings = frame_rings.FrameRings.attach(server, writable=True)
        with contextlib.suppress(NotRunning):  # rings without a server, as in tests
            self._simulation = SharedState(server)
        self._warm_up_once()

    def open_remote(self, write_frame: Callable[..., int]) -> None:
        self._write_frame = write_frame
        self._warm_up_once()

    def _warm_up_once(self) -> None:
        if type(self) not in _WARM:
            self.warm_up()
            _WARM.add(type(self))

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache, so that the first frame of a run is not delayed by seconds."""

    def names_of(self, now: Batch, i: int, place: int) -> tuple[bytes, bytes]:
        """Return the names of the body and the instrument in a row."""
        entries = now.view.tables["instruments"]
        entry = entries[(entries["type"] == self.sensor.encode()) & (entries["place"] == place)][0]
        return bytes(now.view.identity["name"][now.rows[i]]), bytes(entry["name"])

    def write(self, place: int, record: Any, *payload: bytes) -> int:
        """Add a frame to the ring of an instrument. Return its number, or 0 if there are no rings."""
        if self._write_frame is not None:
            return self._write_frame(place, record, *payload)
        if self._rings is None:
            return 0
        # in real time there is no time to wait for the log
        real = self._simulation is not None and 0.0 < self._simulation.clock()["speed"] <= 1.0
        return self._rings.write(
            self._rings.ring_index(self.sensor, place), record, *payload, patience=0.0 if real else PATIENCE_S
        )


class SceneEmulator(FrameEmulator):
    """Base class of emulators that cast rays into the world and write frames."""

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.world = SonarScene(loaded)
        self._shapes = ModelShapes(loaded)

    def begin(self, view: FleetSnapshot, weather: Any) -> None:
        self.bodies = BodyObstacles(self._shapes, view.rows, view.identity, view.state)


def euler_of(R: Any) -> Any:
    """Return roll, pitch and heading of a rotation matrix."""
    return np.array(
        [math.atan2(R[2, 1], R[2, 2]), math.asin(max(-1.0, min(1.0, -R[2, 0]))), math.atan2(R[1, 0], R[0, 0])]
    )
