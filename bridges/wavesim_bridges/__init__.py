"""Bridges that let existing on-board software drive WaVeSim's vehicles without modification."""
