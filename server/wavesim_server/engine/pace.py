"""Pacing in real time: the times at which the next ticks are due, their lateness, and the speed of the simulation.
Callers pass ``now``.
"""

from __future__ import annotations

from wavesim_world.config.model import TimeConfig

CHUNK_S = 0.004  #: wall time that one group of ticks covers at higher speeds
#: maximum number of ticks in a group; it is limited because no command is handled within a group
MAX_TICKS_AT_ONCE = 1000
CATCH_UP_S = 0.25  #: lateness beyond which the schedule skips the lost time
MEASURING_WINDOW_S = 1.0  #: time window over which the speed is measured


class TickPacer:
    """Schedules ticks at a speed given in simulated seconds per wall second; 0 = as fast as possible."""

    def __init__(self, step_s: float, speed: float) -> None:
        self.step_s, self.speed = step_s, speed
        self.late_count = 0  #: number of ticks that began more than one step late
        self.lateness_ns = self.lateness_max_ns = self.slipped_ns = 0
        self.slips = 0
        self.factor = 0.0  #: simulated seconds per wall second
        self._deadline: float | None = None
        self._planned = 0
        self._measured_from: tuple[float, int] | None = None  # wall time, simulation time

    @classmethod
    def from_config(cls, time: TimeConfig) -> TickPacer:
        """Return the pacer for a configuration."""
        return cls(round(time.step * 1e9) * 1e-9, time.speed if time.pace == "realtime" else 0.0)

    def restart(self) -> None:
        """Restart the schedule when the clock starts or the speed changes."""
        self._deadline, self._planned, self._measured_from = None, 0, None

    def next_deadline(self, now: float, most: int) -> float:
        """Return the time at which the next tick is due or, at higher speeds, the next group of at most ``most`` ticks."""
        if not self._planned:
            self._planned = 1
            if self.speed > 1.0:
                ticks = int(min(CHUNK_S, self.step_s) / self.step_s * self.speed)
                self._planned = max(1, min(ticks, most, MAX_TICKS_AT_ONCE))
            self._deadline = (now if self._deadline is None else self._deadline) + self._duration(self._planned)
        assert self._deadline is not None
        return self._deadline

    def _duration(self, ticks: int) -> float:
        return ticks * self.step_s / self.speed

    def take_due_ticks(self, now: float, most: int) -> int:
        """Return the number of ticks that are due at ``now``.

        The number is limited to ``most``, because a participant may have become due before the end of the planned
        group.
        """
        assert self._deadline is not None
        ticks = min(self._planned, most)
        self._deadline -= self._duration(self._planned - ticks)
        self._planned = 0
        late = now - self._deadline
        self.lateness_ns = int(late * 1e9)
        self.lateness_max_ns = max(self.lateness_max_ns, self.lateness_ns)
        if late > self._duration(ticks):
            self.late_count += ticks
        if late > CATCH_UP_S:
            self.slips += 1
            self.slipped_ns += int(late * 1e9)
            self._deadline += late
        return ticks

    def measure_speed(self, now: float, time_ns: int) -> float:
        """Return the simulated seconds per wall second, averaged over the last second."""
        if self._measured_from is None:
            self._measured_from = (now, time_ns)
        wall = now - self._measured_from[0]
        if wall >= MEASURING_WINDOW_S:
            self.factor = (time_ns - self._measured_from[1]) * 1e-9 / wall
            self._measured_from = (now, time_ns)
        return self.factor
