"""Bridges: existing on-board software flies WaVeSim's vehicles unchanged."""
