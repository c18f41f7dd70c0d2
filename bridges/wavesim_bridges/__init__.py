"""Bridges, through which existing on-board software drives WaVeSim's vehicles without changes."""
