"""Bodies on given courses, for tests of fronts, and the exact times at which a point of one hears a point of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_server import Simulation, tick
from wavesim_server.acoustics import front_arrays, medium_arrays
from wavesim_server.dynamics import block_rows as B
from wavesim_world.config import load_text

WORLD = """<wavesim><time step="{step}"/><shared vehicles="4"/><world><bed depth="{depth} m"/>{world}</world>
<acoustics sound_speed="1500 m/s" {acoustics}>{multipath}</acoustics><fleet>
<vehicle name="source" model="lauv" position="0 0 20 m"><transducer {transducer}>{beam}</transducer></vehicle>
<vehicle name="listener" model="lauv" position="300 0 20 m"><transducer position="0.5 0 0.1 m" threshold="0 dB"/>
<sensors>{hydrophone}</sensors></vehicle></fleet></wavesim>"""
#: an element at the reference point, one abeam, and one as far away as allowed
ELEMENTS = ((0.0, 0.0, 0.0), (0.1, 0.3, 0.05), (-3.0, 4.0, 0.0))
HYDROPHONE = (
    '<hydrophone position="0.5 0 0.1 m">'
    + "".join(f'<element position="{x} {y} {z} m"/>' for x, y, z in ELEMENTS)
    + "</hydrophone>"
)
SOUND_SPEED = 1500.0


def world(step: str = "20 ms", order: int = 2, folder: Any = None, **parts: Any) -> Any:
    """Return the configuration of a world with a source and a listener; ``order`` is the number of bounces."""
    given: dict[str, Any] = {
        "step": step,
        "depth": 60,
        "world": "",
        "acoustics": "",
        "multipath": f'<multipath order="{order}"/>',
        "transducer": 'source_level="190 dB" pulse="70 ms"',
        "beam": "",
        "hydrophone": HYDROPHONE,
    }
    return load_text(WORLD.format(**(given | parts)), folder)


@dataclass(frozen=True)
class Course:
    """A circle around a point that drifts, with a heading that turns at ``turn`` rad/s."""

    start: tuple[float, float, float]
    drift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0
    turn: float = 0.0

    def pose(self, t: float) -> tuple[Any, Any, Any]:
        """Return (position, velocity, rotation from B to W) at a time in s."""
        c, s = np.cos(self.turn * t), np.sin(self.turn * t)
        position = np.add(self.start, np.multiply(self.drift, t)) + self.radius * np.array([c, s, 0.0])
        velocity = np.asarray(self.drift) + self.radius * self.turn * np.array([-s, c, 0.0])
        return position, velocity, np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    def point(self, t: float, lever: Any) -> Any:
        """Return the position in W of a point that is fixed in B."""
        position, _, R = self.pose(t)
        return position + R @ np.asarray(lever)


class Courses:
    """A simulation whose bodies follow given courses instead of the equations of motion."""

    def __init__(self, loaded: Any, courses: Mapping[str, Course]) -> None:
        self.sim = Simulation(loaded)
        self.courses = {self.sim.enter(name): course for name, course in courses.items()}
        self.sim.contacts.sort_rows()
        for row in self.courses:
            self._set(row, 0.0)
            self.sim._place_transducer(row)

    def _set(self, row: int, t: float) -> None:
        course, b = self.courses[row], self.sim.fleet.body(row)
        position, velocity, R = course.pose(t)
        b[B.PX : B.PX + 3], b[B.NU : B.NU + 3] = position, R.T @ velocity
        b[B.QW : B.QW + 4] = np.cos(course.turn * t / 2), 0.0, 0.0, np.sin(course.turn * t / 2)
        b[B.NU + 3 : B.NU + 6] = 0.0, 0.0, course.turn

    def advance(self, seconds: float) -> None:
        """Move the bodies along their courses, and advance the sound."""
        sim, step = self.sim, self.sim.step_ns * 1e-9
        for n in range(sim.tick + 1, sim.tick + round(seconds / step) + 1):
            for row in self.courses:
                if row in sim.occupants:
                    self._set(row, n * step)
            tick.update_transducers(sim.fleet.arrays, sim._scratch, sim.channel.table, n)
            for kernel in (tick.advance_acoustics, tick.advance_hydrophones):
                while code := kernel(sim.tick_executor.packed_state(), n, (n - 1) * step, n * step):
                    self._make_room(code)
            sim.channel.collect()
            sim.tick = n

    def _make_room(self, code: int) -> None:
        if code == front_arrays.GROW_FRONTS:
            self.sim.channel.grow_fronts()
            return
        if code == medium_arrays.GROW:
            self.sim.channel.grow()
        self.sim.channel.collect()


def image(point: Any, path: int, depth: float) -> Any:
    """Return the mirror image of a point for a path with ``path // 2`` bounces; if odd, the first is off the bottom."""
    x, y, z = point
    for bounce in range(path // 2):
        z = 2.0 * depth - z if (bounce + path) % 2 else -z
    return np.array([x, y, z])


def arrival(leaves: Any, listener: Callable[[float], Any], emission: float) -> float:
    """Return the time at which sound from a point ``leaves`` at ``emission`` reaches a moving point (bisection, Newton)."""
    time = emission
    for _ in range(200):
        new = emission + float(np.linalg.norm(listener(time) - leaves)) / SOUND_SPEED
        if new == time:
            break
        time = new
    return time
