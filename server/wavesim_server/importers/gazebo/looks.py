"""Visual meshes."""
from __future__ import annotations
def add_appearance(draft, robot, body):
    pass
