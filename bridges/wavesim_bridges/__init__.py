"""Bridges: existing on-board software drives WaVeSim's vehicles without changes."""
