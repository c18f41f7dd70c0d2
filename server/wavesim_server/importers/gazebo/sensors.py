"""Instruments of a vehicle."""
from __future__ import annotations
def add_all(draft, robot, body):
    pass
