"""A collision avoidance method of your own: the smallest turn to starboard that keeps all other vessels clear.

    wavesim traffic imazu 1 2 --avoider examples/studies/starboard.py:Starboard

A turn is clear if each vessel stays at least 12 ship lengths away for the time in which own ship sails 60 lengths.
"""

import math

from wavesim_sdk.guidance.encounters import closest_approach

TURNS = [math.radians(degrees) for degrees in (0, 40, 50, 60, 70, 80, 90)]  # other vessels notice large turns


class Starboard:
    """Avoider that turns to starboard, and returns to its mission when the mission course is clear."""

    def __init__(self, length, speed):
        self.clear_distance, self.horizon = 12.0 * length, 60.0 * length / speed

    def order(self, place, velocity, wanted, targets, way):
        course, speed = wanted
        for turn in TURNS:
            if all(self._is_clear(course + turn, speed, place, target) for target in targets):
                return (course + turn, speed) if turn else None
        return course, 0.0  # no turn is clear: stop

    def _is_clear(self, course, speed, place, target):
        away = target.place[0] - place[0], target.place[1] - place[1]
        velocity = speed * math.cos(course), speed * math.sin(course)
        motion = target.velocity[0] - velocity[0], target.velocity[1] - velocity[1]
        distance, time = closest_approach(away, motion)
        return time < 0.0 or time > self.horizon or distance > self.clear_distance
