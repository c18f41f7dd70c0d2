"""Force that an operator's program applies to the hull of a body. The force ends automatically if the program exits."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

from wavesim_sdk.attach import SharedState
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import CommanderError, WaveSimError

__all__ = ["BodyForce"]

#: wall time in s for which a force acts if it is not renewed, while the simulation runs at a set speed, such as real
#: time
VALID_S = 0.5
_UNPACED_S = 10.0  #: simulation time in s for which a force acts if the simulation runs as fast as possible


class BodyForce:
    """Force and moment on a body, in body axes, for a local server. Call :meth:`apply` at least every 0.2 s."""

    def __init__(self, server: str, body: str) -> None:
        self.body = body
        self._commander = Commander(server)
        self._state = SharedState(server)
        self._acts = False
        self._lock = threading.Lock()  # a window may close while its last force is being sent

    def apply(self, force: Sequence[float], torque: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        """Apply a force (N) and a moment (N m) for half a second. Raises CommanderError if the server refuses it."""
        with self._lock:
            self._send([*force, *torque])

    def _send(self, wrench: list[float]) -> None:
        if not any(wrench) and not self._acts:
            return
        pace = float(self._state.clock()["speed"])
        valid = VALID_S * max(pace, 0.1) if pace > 0.0 else _UNPACED_S
        reply = self._commander.send(
            "push", body=self.body, force=wrench[:3], torque=wrench[3:], duration=valid if any(wrench) else None
        )
        if not reply.ok:
            raise CommanderError(reply.text)
        self._acts = any(wrench)

    def close(self) -> None:
        """Stop applying the force."""
        with contextlib.suppress(WaveSimError):
            self.apply((0.0, 0.0, 0.0))
        self._commander.close()

    def __enter__(self) -> BodyForce:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
